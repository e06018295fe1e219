"""The loop IR and its algebra: grammar, text, verifier, index arithmetic, cost and legality.

A kernel of loops over memory is what `lower` makes, `passes` change and `emit` writes as LLVM IR.
"""
