"""The native backend: jaxprs to machine code on the host's CPU."""
