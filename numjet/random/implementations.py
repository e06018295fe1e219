"""Implementations of keys beside threefry: `rbg`, `unsafe_rbg`, and those that users define.

An implementation is a `PRNGImpl`, four functions on the words of one key; `random.streams` maps
them over arrays of keys. `rbg` splits and folds its two halves by threefry and draws bits by
`lax.rng_bit_generator`; `unsafe_rbg` uses that for everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.structural import moveaxis
from numjet.ops import random_bits as threefry
from numjet.ops.generators import rng_bit_generator
from numjet.ops.logic import bitwise_xor
from numjet.ops.shape import concatenate, reshape
from numjet.ops.slicing import index_in_dim, slice_in_dim
from numjet.random import halves


@dataclass(frozen=True, eq=False, repr=False)
class PRNGImpl:
    """How keys of one kind are made and used.

    key_shape: the shape of a key's uint32 words. seed(integer) -> words; split(words, shape) ->
    words of an array of keys of `shape`; random_bits(words, bit_width, shape) -> unsigned integers;
    fold_in(words, uint32) -> words. Each takes one key, and is mapped over arrays of keys. `name`
    and `tag` are what the implementation and its dtype are printed as.
    """

    key_shape: tuple[int, ...]
    seed: Callable[[Any], Any]
    split: Callable[[Any, tuple[int, ...]], Any]
    random_bits: Callable[[Any, int, tuple[int, ...]], Any]
    fold_in: Callable[[Any, Any], Any]
    name: str = "<unnamed>"
    tag: str = "?"

    def __repr__(self) -> str:
        return f"PRNGSpec({self.name!r})"

    def __str__(self) -> str:
        return self.tag

    def __hash__(self) -> int:
        return hash((self.tag, self.name))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PRNGImpl):
            return all(getattr(self, f) == getattr(other, f) for f in self.__dataclass_fields__)
        return NotImplemented


def _halves(words: Any) -> Any:
    """A key's four words as two keys of threefry."""
    return threefry.random_wrap(reshape(words, (2, 2)))


def _joined(keys: Any) -> Any:
    """Pairs along the first axis of threefry's keys, as words of keys of four."""
    words = threefry.random_unwrap(keys)
    last = words.ndim - 2
    return reshape(moveaxis(words, 0, last), (*words.shape[1:-1], 4))


def _seed(seed: Any) -> Any:
    words = threefry.random_unwrap(threefry.random_seed(seed))
    return concatenate([words, words], 0)


def _bits(words: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
    return rng_bit_generator(words, shape, np.dtype(f"uint{bit_width}"))[1]


RBG = PRNGImpl(
    key_shape=(4,),
    seed=_seed,
    split=lambda words, shape: _joined(halves.random_split(_halves(words), shape=shape)),
    random_bits=_bits,
    fold_in=lambda words, data: _joined(threefry.random_fold_in(_halves(words), data)),
    name="rbg",
    tag="rbg",
)

# Of ten blocks drawn, one is taken: the generator's state is not stirred as threefry's is.
_SKIPPED = 10


def _unsafe_split(words: Any, shape: tuple[int, ...]) -> Any:
    count = math.prod(shape)
    drawn = rng_bit_generator(words, (_SKIPPED * count, 4))[1]
    return reshape(slice_in_dim(drawn, 0, _SKIPPED * count, _SKIPPED), (*shape, 4))


def _unsafe_fold_in(words: Any, data: Any) -> Any:
    drawn = rng_bit_generator(_seed(data), (_SKIPPED, 4))[1]
    return bitwise_xor(words, index_in_dim(drawn, _SKIPPED - 1, 0, False))


UNSAFE_RBG = PRNGImpl(
    key_shape=(4,),
    seed=_seed,
    split=_unsafe_split,
    random_bits=_bits,
    fold_in=_unsafe_fold_in,
    name="unsafe_rbg",
    tag="urbg",
)
THREEFRY = PRNGImpl(
    key_shape=(2,),
    seed=lambda seed: threefry.random_unwrap(threefry.random_seed(seed)),
    split=lambda words, shape: threefry.random_unwrap(
        halves.random_split(threefry.random_wrap(words), shape=shape)
    ),
    random_bits=lambda words, bit_width, shape: halves.random_bits(
        threefry.random_wrap(words), bit_width=bit_width, shape=shape
    ),
    fold_in=lambda words, data: threefry.random_unwrap(
        threefry.random_fold_in(threefry.random_wrap(words), data)
    ),
    name="threefry2x32",
    tag="fry",
)
BY_NAME = {impl.name: impl for impl in (THREEFRY, RBG, UNSAFE_RBG)}
# Other ways to write a built-in implementation.
_ALIASES = {"fry": "threefry2x32", "urbg": "unsafe_rbg"}


def dtype_of(spec: Any) -> dtypes.KeyDType:
    """The dtype of the keys of an implementation: a name, a PRNGImpl or a key dtype.

    Raises ValueError for unknown names, TypeError for other objects.
    """
    if isinstance(spec, dtypes.KeyDType):
        return spec
    if isinstance(spec, PRNGImpl):
        built_in = BY_NAME.get(spec.name)
        return dtypes.KeyDType(spec.name if built_in is spec else spec)
    if isinstance(spec, str):
        name = _ALIASES.get(spec, spec)
        if name in BY_NAME:
            return dtypes.KeyDType(name)
        raise ValueError(
            f'unrecognized PRNG implementation "{spec}". Did you mean one of: '
            f"{', '.join(map(repr, BY_NAME))}? Others are made by "
            "numjet.extend.random.define_prng_impl."
        )
    raise TypeError(
        f"unrecognized type {type(spec)} for specifying PRNG implementation. Pass a name, such as "
        "'threefry2x32', what define_prng_impl made, or the dtype of keys."
    )


def implementation(dtype: dtypes.KeyDType) -> PRNGImpl:
    """The functions behind a key dtype."""
    return BY_NAME[dtype.impl] if isinstance(dtype.impl, str) else dtype.impl
