"""Functions written as machine code at once, without IR: products, packing, segments, glue.

What `kernels/products` can say in IR as well is said here a second time for the compile bars alone.
Minima, alternating, on a Sapphire Rapids: a strip of the library of products takes 0.17 ms here and
2.9 ms through IR, one of segments 0.54 ms and 4.7 ms, and a first program that multiplies compiles
three to ten of them; the products of the benchmark's `compile_deep` take 1.0 ms and 2.0 ms of
6.5 ms, where the bar (0.05 of JAX's time) leaves nothing. The IR beside them is whole, and is what
LLVM compiles: where those bars move, these modules can go.
"""
