"""The core: dtypes, avals, primitives, traces, jaxprs and arrays. Imports only `numjet.base`."""
