"""One group of nodes to one loop nest: elementwise, rows, columns, chunks, moments, updates."""
