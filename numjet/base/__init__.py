"""Layer 0: errors, configuration, pytrees and the document printer. Imports nothing else of numjet."""
