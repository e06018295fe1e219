"""A compiled program: its steps, buffers, table, cache entry and executable."""
