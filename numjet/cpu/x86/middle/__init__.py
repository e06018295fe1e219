"""Changes to a function before its instructions are selected."""
