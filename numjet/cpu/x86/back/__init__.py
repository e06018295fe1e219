"""Registers, encoding and the object file."""
