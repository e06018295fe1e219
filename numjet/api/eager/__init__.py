"""Code without `jit`: operations written down and run together, and functions that are compiled."""
