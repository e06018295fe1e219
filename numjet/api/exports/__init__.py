"""What `export` reads and writes: bytes, layouts, shapes of dimension variables."""
