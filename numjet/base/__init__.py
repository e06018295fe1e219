"""Layer 0: errors, configuration and pytrees. Imports nothing else of numjet."""
