"""Generators of random numbers for libraries: implementations of keys, and threefry itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.ops.generators import threefry2x32_p, threefry_2x32
from numjet.random import key as _key
from numjet.random.implementations import (
    RBG as rbg_prng_impl,
    THREEFRY as threefry_prng_impl,
    UNSAFE_RBG as unsafe_rbg_prng_impl,
    PRNGImpl,
    dtype_of as _dtype_of,
)
from numjet.random.streams import random_seed as _random_seed

__all__ = [
    "PRNGImpl", "define_prng_impl", "random_seed", "rbg_prng_impl", "seed_with_impl",
    "threefry2x32_p", "threefry_2x32", "threefry_prng_impl", "unsafe_rbg_prng_impl",
]  # fmt: skip


def define_prng_impl(
    *,
    key_shape: tuple[int, ...],
    seed: Callable[[Any], Any],
    split: Callable[[Any, tuple[int, ...]], Any],
    random_bits: Callable[[Any, int, tuple[int, ...]], Any],
    fold_in: Callable[[Any, Any], Any],
    name: str = "<unnamed>",
    tag: str = "?",
) -> PRNGImpl:
    """An implementation of keys, for the argument `impl` of `random.key` and the functions like it.

    key_shape: the shape of a key's uint32 words. The functions take the words of one key, can be
    traced, and are mapped over arrays of keys: seed(integer) -> uint32[*key_shape]; split(words,
    shape) -> uint32[*shape, *key_shape]; random_bits(words, bit_width, shape) -> unsigned integers
    of `bit_width` bits, of `shape`; fold_in(words, uint32) -> uint32[*key_shape]. name, tag: what
    the implementation and its dtype are printed as.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> from numjet.extend import random as extension
    >>> impl = extension.define_prng_impl(
    ...     key_shape=(1,), name="counter", tag="cnt",
    ...     seed=lambda s: jnp.asarray(s, jnp.uint32).reshape(1),
    ...     split=lambda words, shape: jnp.zeros((*shape, 1), jnp.uint32) + words,
    ...     random_bits=lambda words, width, shape: jnp.full(shape, words[0], f"uint{width}"),
    ...     fold_in=lambda words, data: words + data)
    >>> nj.random.bits(nj.random.key(5, impl=impl), (2,))
    Array([5, 5], dtype=uint32)
    """
    return PRNGImpl(tuple(key_shape), seed, split, random_bits, fold_in, name, tag)


def seed_with_impl(impl: PRNGImpl, seed: Any) -> Any:
    """The key that a seed gives under an implementation.

    impl: a PRNGImpl. seed: an integer.

    >>> import numjet as nj
    >>> from numjet.extend import random as extension
    >>> nj.random.key_data(extension.seed_with_impl(extension.threefry_prng_impl, 7))
    Array([0, 7], dtype=uint32)
    """
    return _key(seed, impl=impl)


def random_seed(seeds: Any, impl: PRNGImpl) -> Any:
    """The keys that seeds give under an implementation, one each.

    seeds: an integer or an array of them. impl: a PRNGImpl, or the name of one. Result: keys of
    seeds' shape.

    >>> from numjet import numpy as jnp
    >>> from numjet.extend import random as extension
    >>> extension.random_seed(jnp.arange(2), extension.threefry_prng_impl).shape
    (2,)
    """
    return _random_seed(seeds, _dtype_of(impl))
