"""Fast paths that read the interpreter's objects natively, each beside its specification in Python.

Layer between `cpu` and `api`. A path that does not pass its self-test is left out, and Python runs.
"""
