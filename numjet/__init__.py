"""numjet: NumPy that differentiates, vectorizes, compiles and parallelizes."""
