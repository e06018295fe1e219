"""Threefry's streams, in both orders: the primitives of `ops.random_bits`, and with the flag
`threefry_partitionable` off the streams that JAX drew before it had the flag.

In those the words of a stream of n are hashed in pairs, the first half of them being the blocks'
first words and the rest their second, so that every word depends on n. Programs whose results were
recorded then ask for them.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from numjet.api.compiled.jit import jit
from numjet.api.maps.mapping import vmap
from numjet.base import config
from numjet.core import dtypes
from numjet.core.structural import convert
from numjet.ops import random_bits as threefry
from numjet.ops.bits import bitcast_convert_type
from numjet.ops.generators import threefry_2x32
from numjet.ops.logic import bitwise_or, shift_left
from numjet.ops.shape import iota, reshape
from numjet.ops.slicing import slice_in_dim


def random_bits(keys: Any, *, bit_width: int, shape: tuple[int, ...]) -> Any:
    """Unsigned integers of `bit_width` bits: an array of `shape` for every key."""
    if config.threefry_partitionable.value:
        return threefry.random_bits(keys, bit_width=bit_width, shape=shape)
    return _of_each(keys, _halved_bits, bit_width, shape)


def random_split(keys: Any, *, shape: tuple[int, ...]) -> Any:
    """New keys: an array of `shape` for every key."""
    if config.threefry_partitionable.value:
        return threefry.random_split(keys, shape=shape)
    drawn = _of_each(keys, _halved, 2 * math.prod(shape))
    return threefry.random_wrap(reshape(drawn, (*keys.shape, *shape, 2)))


def _of_each(keys: Any, draw: Any, *arguments: Any) -> Any:
    function = lambda words: draw(words, *arguments)
    for _ in keys.shape:
        function = vmap(function)
    return function(threefry.random_unwrap(keys))


@functools.partial(jit, static_argnums=1)
def _halved(words: Any, count: int) -> Any:
    """`count` words of the stream of a key's two."""
    return threefry_2x32(words, iota(dtypes.uint32, count))


@functools.partial(jit, static_argnums=(1, 2))
def _halved_bits(words: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
    size = math.prod(shape)
    if bit_width == 64:
        drawn = convert(_halved(words, 2 * size), dtypes.uint64)
        high, low = slice_in_dim(drawn, 0, size), slice_in_dim(drawn, size, 2 * size)
        made = bitwise_or(shift_left(high, np.uint64(32)), low)
    elif bit_width == 32:
        made = _halved(words, size)
    else:  # parts of words, the lowest first
        narrow = dtypes.uint8 if bit_width == 8 else dtypes.uint16
        parts = bitcast_convert_type(_halved(words, -(-size * bit_width // 32)), narrow)
        made = slice_in_dim(reshape(parts, (parts.size,)), 0, size)
    return reshape(made, shape)
