"""What every draw is made of: bits, split, fold_in, seed of keys of any implementation.

Threefry's keys go to the primitives of `ops.random_bits` (`random.halves`); those of others to the
functions of their implementation, mapped over arrays of keys. The other files of this package
import these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.api.maps.mapping import vmap
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.ops import key_words, random_bits as threefry
from numjet.random import halves
from numjet.random.implementations import implementation


def is_threefry(keys: Any) -> bool:
    return keys.aval.dtype is dtypes.key_dtype


def _mapped(function: Callable, count: int) -> Callable:
    for _ in range(count):
        function = vmap(function)
    return function


def random_bits(keys: Any, *, bit_width: int, shape: tuple[int, ...]) -> Any:
    """Unsigned integers of `bit_width` bits: an array of `shape` for every key."""
    if is_threefry(keys):
        return halves.random_bits(keys, bit_width=bit_width, shape=tuple(shape))
    draw = implementation(keys.aval.dtype).random_bits
    return _mapped(lambda words: draw(words, bit_width, tuple(shape)), keys.ndim)(
        key_words.unwrap(keys)
    )


def random_split(keys: Any, *, shape: tuple[int, ...]) -> Any:
    """New keys: an array of `shape` for every key."""
    if is_threefry(keys):
        return halves.random_split(keys, shape=tuple(shape))
    dtype = keys.aval.dtype
    split = implementation(dtype).split
    words = _mapped(lambda words: split(words, tuple(shape)), keys.ndim)(key_words.unwrap(keys))
    return key_words.wrap(words, dtype)


def random_fold_in(keys: Any, data: Any) -> Any:
    """Keys changed by uint32 `data`, of the keys' shape where neither is a single one."""
    if is_threefry(keys):
        return threefry.random_fold_in(keys, data)
    dtype, data = keys.aval.dtype, as_array(data)
    fold = implementation(dtype).fold_in
    for _ in range(max(keys.ndim, data.ndim)):
        fold = vmap(fold, (0 if keys.ndim else None, 0 if data.ndim else None))
    return key_words.wrap(fold(key_words.unwrap(keys), data), dtype)


def random_seed(seeds: Any, dtype: Any = dtypes.key_dtype) -> Any:
    """The keys of `dtype` of integer seeds."""
    seeds = as_array(seeds)
    if dtype is dtypes.key_dtype:
        return threefry.random_seed(seeds)
    return key_words.wrap(_mapped(implementation(dtype).seed, seeds.ndim)(seeds), dtype)


def random_wrap(words: Any, dtype: Any = dtypes.key_dtype) -> Any:
    """Keys of `dtype` from uint32[..., *dtype.key_shape]."""
    words = as_array(words)
    if dtype is dtypes.key_dtype:
        return threefry.random_wrap(words)
    return key_words.wrap(words, dtype)


def random_unwrap(keys: Any) -> Any:
    """The uint32[..., *key_shape] words of keys."""
    return threefry.random_unwrap(keys) if is_threefry(keys) else key_words.unwrap(keys)
