"""The runtime's native functions, in the notation of `cpu.builder.records`.

Imported when they are compiled, and by tests, which run them as Python.
"""
