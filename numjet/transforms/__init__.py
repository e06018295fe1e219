"""The transformations: tracing to jaxprs, differentiation, batching, rewriting. Imports core and
base."""
