"""Random numbers from explicit keys, in JAX's names: the same key gives the same bits.

Layer 6: built on the operations, not on numjet.numpy.
"""
from __future__ import annotations

from numjet.random.basic import (
    bernoulli,
    categorical,
    choice,
    gumbel,
    normal,
    permutation,
    rademacher,
    randint,
    truncated_normal,
    uniform,
)
from numjet.random.keys import (
    PRNGKey,
    bits,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)

__all__ = [
    "PRNGKey", "bernoulli", "bits", "categorical", "choice", "clone", "fold_in", "gumbel", "key", "key_data",
    "key_dtype", "key_impl", "normal", "permutation", "rademacher", "randint", "split", "truncated_normal", "uniform",
    "wrap_key_data",
]
