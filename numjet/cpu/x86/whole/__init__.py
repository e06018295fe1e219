"""Functions written as machine code at once, without IR: products, packing, segments, glue.

What `kernels/products` says in IR as well is said here a second time where a bar of the benchmark
needs it. docs/compiler.md has the figures of each: without `glue` compiling the MLP would miss its
bar, without `pack` and `product.strip` together too, without `product.product` compiling 200 small
products would; without `segments` products of few rows and convolutions would run slower. The IR
beside them is whole, and is what LLVM compiles: where those bars move, these modules can go.
"""
