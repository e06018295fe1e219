"""What compiled programs need while they run: memory, threads, BLAS and LAPACK addresses, events."""
