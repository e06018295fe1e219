"""Special kernels that sort: words, rows, columns, shares of long rows, the k largest."""
