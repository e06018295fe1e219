"""A code generator of our own for x86-64 with AVX-512 or AVX2: LLVM IR text to an object file."""
