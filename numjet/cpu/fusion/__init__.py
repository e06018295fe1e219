"""Which nodes share a kernel: groups, special nodes, epilogues of products, recomputation."""
