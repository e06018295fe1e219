"""The parts of tools/compare.py: generated cases, run under numjet and JAX, compared."""
