"""A code generator of our own for x86-64 with AVX-512: LLVM IR text to an object file."""
