"""Special kernels of matrix products: large, small, batched, by a vector."""
