"""Special kernels of linear algebra: factorizations, solves, spectra, over LAPACK and by hand."""
