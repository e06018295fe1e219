"""numjet.scipy: parts of SciPy on numjet's arrays, in JAX's names."""
