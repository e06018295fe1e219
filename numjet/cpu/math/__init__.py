"""Vector elementary functions, written as IR: see `emit`."""
