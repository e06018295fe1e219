"""The writer of LLVM IR: values, instructions, functions and modules, as text.

Imports nothing of the compiler but `cpu.host`. For everything that writes IR.
"""
