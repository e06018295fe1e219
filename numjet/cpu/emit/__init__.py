"""Loop IR to LLVM IR: scopes, statements, expressions, vectors and tiles."""
