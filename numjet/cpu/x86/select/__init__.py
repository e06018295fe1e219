"""Instruction selection, a family of operations to a file."""
