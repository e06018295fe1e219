"""Random bits of the generators Philox and Threefry from an explicit state: rng_bit_generator.

For `lax`; `numjet.random` has keys. Philox4x32-10 and Threefry2x32-20 as in Salmon, Moraes, Dror &
Shaw, Parallel random numbers: as easy as 1, 2, 3, SC 2011.
"""
from __future__ import annotations

import enum
import math
from typing import Any

import numpy as np

from numjet.core import dtypes, hooks
from numjet.core.array import ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.effects import ORDERED_IO
from numjet.core.evaluate import LARGE
from numjet.core.lowering import Host
from numjet.core.primitive import Primitive
from numjet.core.structural import broadcast_in_dim, convert, moveaxis
from numjet.ops.arithmetic import add, mul
from numjet.ops.arrange import stack
from numjet.ops.composed import composed
from numjet.ops.families import constant_like
from numjet.ops.logic import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    lt,
    shift_left,
    shift_right_logical,
)
from numjet.ops.mulhi import mulhi_p
from numjet.ops.random_bits import GROUPS, PARITY, ROTATIONS
from numjet.ops.shape import canonical_shape, concatenate, expand_dims, iota, reshape
from numjet.ops.slicing import index_in_dim, slice_in_dim

UINT32 = np.dtype(np.uint32)


class RandomAlgorithm(enum.IntEnum):
    """The generator of `lax.rng_bit_generator`; the default is Philox.

    >>> from numjet import lax, numpy as jnp
    >>> key = jnp.zeros(4, jnp.uint32)
    >>> lax.rng_bit_generator(key, (3,), algorithm=lax.RandomAlgorithm.RNG_PHILOX)[1].shape
    (3,)
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


# The multipliers and Weyl increments of Philox4x32 (table 2 of the paper).
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_INCREMENTS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


def _word(value: int) -> np.ndarray:
    return np.asarray(value & 0xFFFFFFFF, UINT32)


def philox4x32(key: tuple[Any, Any], counter: list) -> list:
    """Four words for each counter of four words; key: two."""
    k0, k1 = key
    c0, c1, c2, c3 = counter
    for _ in range(_ROUNDS):
        high0, low0 = _product(c0, _MULTIPLIERS[0])
        high1, low1 = _product(c2, _MULTIPLIERS[1])
        c0, c1, c2, c3 = (bitwise_xor(bitwise_xor(high1, c1), k0), low1,
                          bitwise_xor(bitwise_xor(high0, c3), k1), low0)
        k0, k1 = add(k0, _word(_INCREMENTS[0])), add(k1, _word(_INCREMENTS[1]))
    return [c0, c1, c2, c3]


def _product(x: Any, by: int) -> tuple[Any, Any]:
    factor = broadcast_in_dim(as_array(_word(by)), x.aval.shape, ())
    return mulhi_p.bind(x, factor), mul(x, factor)


def threefry2x32(key: tuple[Any, Any], counter: tuple[Any, Any]) -> list:
    """Two words for each counter of two words."""
    parity = _word(PARITY)
    keys = (*key, bitwise_xor(bitwise_xor(*key), parity))
    x1, x2 = add(counter[0], keys[0]), add(counter[1], keys[1])
    for group in range(GROUPS):
        for r in ROTATIONS[group % 2]:
            x1 = add(x1, x2)
            turned = bitwise_or(shift_left(x2, _word(r)), shift_right_logical(x2, _word(32 - r)))
            x2 = bitwise_xor(turned, x1)
        x1 = add(x1, keys[(group + 1) % 3])
        x2 = add(add(x2, keys[(group + 2) % 3]), _word(group + 1))
    return [x1, x2]


threefry2x32_p = composed(
    "threefry2x32",
    lambda k1, k2, x1, x2: threefry2x32((k1, k2), (x1, x2)),
    several=True,
    differentiable=False,
)


def threefry_2x32(keypair: Any, count: Any) -> Any:
    """The Threefry-2x32 hash of counters under a key.

    keypair: uint32[2]. count: uint32, any shape: the first half of its elements are the counters'
    first words, the rest their second, and a missing one is 0. Result: count's shape. Raises
    TypeError for other dtypes. Source: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as
    easy as 1, 2, 3 (2011).

    >>> from numjet import numpy as jnp
    >>> from numjet.extend import random as extension
    >>> extension.threefry_2x32(jnp.zeros(2, jnp.uint32), jnp.zeros(2, jnp.uint32))
    Array([1797259609, 2579123966], dtype=uint32)
    """
    key, count = as_array(keypair), as_array(count)
    if key.aval.dtype != UINT32 or count.aval.dtype != UINT32 or key.aval.shape != (2,):
        raise TypeError(
            "threefry_2x32 requires uint32 arguments, the key of shape (2,), got "
            f"{key.aval.str_short()} and {count.aval.str_short()}."
        )
    size = count.aval.size
    half = -(-size // 2)
    flat = reshape(count, (size,))
    if size % 2:
        flat = concatenate([flat, as_array(np.zeros(1, UINT32))], 0)
    words = [index_in_dim(key, i, 0, False) for i in range(2)]
    parts = [slice_in_dim(flat, 0, half), slice_in_dim(flat, half, 2 * half)]
    made = concatenate(threefry2x32_p.bind(*words, *parts), 0)
    return reshape(slice_in_dim(made, 0, size), count.aval.shape)


def _advanced(words: list, by: Any) -> list:
    """A number of several words, the lowest first, plus `by`."""
    out, carry = [], by
    for word in words:
        made = add(word, carry)
        out.append(made)
        carry = convert(lt(made, carry), UINT32)
    return out


def _philox_bits(words: list, count: int) -> tuple[int, Any]:
    """`count` words, block by block, and how many blocks."""
    blocks = -(-count // 4)
    across = lambda w: broadcast_in_dim(w, (blocks,), ())  # noqa: E731
    counter = _advanced([across(w) for w in (*words[2:], *words[:2])], iota(UINT32, blocks))
    made = philox4x32((across(words[0]), across(words[1])), counter)
    return blocks, slice_in_dim(reshape(stack(made, 1), (blocks * 4,)), 0, count)


def _threefry_bits(words: list, shape: tuple, dtype: Any) -> tuple[int, Any]:
    """A word for each element (two for wide ones), and how many blocks. Of narrow dtypes a block's
    two words lie side by side along the first axis of even length, else the longest."""
    wide, full = dtype.itemsize == 8, shape or (1,)
    even = [i for i, n in enumerate(full) if n % 2 == 0]
    axis = even[0] if even else full.index(max(full))
    half = full if wide else (*full[:axis], -(-full[axis] // 2), *full[axis + 1 :])
    blocks = math.prod(half)
    across = lambda w: broadcast_in_dim(w, (blocks,), ())  # noqa: E731
    counter = _advanced([across(w) for w in words[2:]], iota(UINT32, blocks))
    made = threefry2x32((across(words[0]), across(words[1])), (counter[0], counter[1]))
    if wide:
        return blocks, stack(made, 1)
    both = stack([reshape(x, half) for x in made], axis + 1)
    joined = reshape(both, (*half[:axis], 2 * half[axis], *half[axis + 1 :]))
    return blocks, slice_in_dim(joined, 0, full[axis], 1, axis)


def _generate(key: Any, *, shape: tuple, dtype: Any, algorithm: int) -> list:
    words = [index_in_dim(key, i, 0, False) for i in range(key.aval.shape[0])]
    if algorithm == RandomAlgorithm.RNG_THREE_FRY:
        blocks, bits = _threefry_bits(words, shape, dtype)
    else:
        blocks, bits = _philox_bits(words, math.prod(shape) * max(dtype.itemsize // 4, 1))
    state = [*words[:2], *_advanced(words[2:], as_array(_word(blocks)))]
    if dtype.itemsize == 8:
        pairs = convert(reshape(bits, (math.prod(shape), 2)), dtype)
        low, high = index_in_dim(pairs, 0, 1, False), index_in_dim(pairs, 1, 1, False)
        bits = bitwise_or(low, shift_left(high, constant_like(high, 32)))
    elif dtype.itemsize < 4:
        mask = _word((1 << 8 * dtype.itemsize) - 1)
        bits = convert(bitwise_and(bits, mask), dtype)
    return [stack(state), reshape(bits, shape)]


def _generate_batch(
    axis: Any, args: tuple, dims: tuple, *, shape: tuple, dtype: Any, algorithm: int
) -> tuple:
    """Bits for all examples by the first one's state, whose own moves on: one stream, in order.
    Devices draw by their own states each."""
    if axis.of_devices:
        params = {"shape": shape, "dtype": dtype, "algorithm": algorithm}
        return _generate_each(axis, args, dims, **params)
    states = moveaxis(args[0], dims[0], 0)
    first = index_in_dim(states, 0, 0, False)
    state, bits = rng_bit_generator_p.bind(
        first, shape=(axis.size, *shape), dtype=dtype, algorithm=algorithm
    )
    rest = slice_in_dim(states, 1, axis.size)
    return [concatenate([expand_dims(state, (0,)), rest], 0), bits], [0, 0]


rng_bit_generator_p = composed("rng_bit_generator", _generate, several=True, differentiable=False)
_of_words: Any = rng_bit_generator_p.evaluate


def _evaluate(key: Any, *, shape: tuple, dtype: Any, algorithm: int) -> list:
    """`_generate`, by Philox in NumPy: word by word of 64 bits, where products are exact."""
    count = math.prod(shape) * max(dtype.itemsize // 4, 1)
    if algorithm == RandomAlgorithm.RNG_THREE_FRY or type(key) is not ArrayImpl or count >= LARGE:
        return _of_words(key, shape=shape, dtype=dtype, algorithm=algorithm)
    low, words = 0xFFFFFFFF, key._value.tolist()
    blocks = -(-count // 4)
    # The counter's lower half, which the state moves on, and the upper one, which takes the carry.
    begin, above = [a | b << 32 for a, b in (words[2:], words[:2])]
    first = np.arange(blocks, dtype=np.uint64) + np.uint64(begin)
    second = np.uint64(above) + (first < np.uint64(begin)).astype(np.uint64)
    half, mask = np.uint64(32), np.uint64(low)
    c0, c1, c2, c3 = first & mask, first >> half, second & mask, second >> half
    k0, k1 = words[:2]
    for _ in range(_ROUNDS):
        x, y = c0 * np.uint64(_MULTIPLIERS[0]), c2 * np.uint64(_MULTIPLIERS[1])
        c0, c1 = y >> half ^ c1 ^ np.uint64(k0), y & mask
        c2, c3 = x >> half ^ c3 ^ np.uint64(k1), x & mask
        k0, k1 = k0 + _INCREMENTS[0] & low, k1 + _INCREMENTS[1] & low
    bits = np.stack([c0, c1, c2, c3], 1).reshape(-1)[:count]
    if dtype.itemsize == 8:
        bits = bits[::2] | bits[1::2] << half
    end = begin + blocks
    state = np.array([*words[:2], end & low, end >> 32 & low], UINT32)
    made = bits.astype(dtype).reshape(shape)  # of narrow ones the low bits
    return [ArrayImpl(x, ShapedArray(x.shape, x.dtype)) for x in (state, made)]


rng_bit_generator_p.evaluate = _evaluate
_generate_each: Any = rng_bit_generator_p.batch
rng_bit_generator_p.batch = _generate_batch


def rng_bit_generator(key: Any, shape: Any, dtype: Any = np.uint32,
                      algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT, *,
                      out_sharding: Any = None) -> tuple[Any, Any]:
    """Random bits and the generator's state behind them: (state, bits).

    key: uint32[4], the state: two words of key, two of a counter, the lowest first; it moves on by
    one for each block of four words (two for Threefry). shape: of the bits. dtype: unsigned
    integers; narrow ones take the low bits of a word each. algorithm: a RandomAlgorithm.
    out_sharding: the layout of the bits. Under `vmap` the first example's state gives the bits of
    all. Raises TypeError for other dtypes and states. Source: Salmon, Moraes, Dror and Shaw,
    Parallel random numbers: as easy as 1, 2, 3 (2011).

    >>> from numjet import lax, numpy as jnp
    >>> state, bits = lax.rng_bit_generator(jnp.arange(4, dtype=jnp.uint32), (2,))
    >>> print(state, bits.shape, bits.dtype)
    [0 1 3 3] (2,) uint32
    """
    if out_sharding is not None:
        state, bits = rng_bit_generator(key, shape, dtype, algorithm)
        return state, hooks.laid_out(lambda: bits, out_sharding)
    key, dtype = as_array(key), dtypes.requested(dtype, "rng_bit_generator")
    if dtype not in (np.uint8, np.uint16, np.uint32, np.uint64):
        raise TypeError(f"rng_bit_generator: unsupported dtype {dtype}. Pass uint8, uint16, uint32 "
                        "or uint64.")
    if key.aval.shape != (4,) or key.aval.dtype != np.uint32:
        raise TypeError(f"rng_bit_generator: key must be uint32[4], got {key.aval.str_short()}.")
    state, bits = rng_bit_generator_p.bind(key, shape=canonical_shape(shape), dtype=dtype,
                                           algorithm=int(RandomAlgorithm(algorithm)))
    return state, bits


# ------------------------------------------------------------------ rng_uniform
_source = np.random.default_rng()


def _uniform_abstract(a: ShapedArray, b: ShapedArray, *, shape: tuple) -> ShapedArray:
    if a.dtype != b.dtype:
        raise ValueError("Arguments to rng_uniform must have identical dtypes, got "
                         f"{a.str_short()} and {b.str_short()}.")
    if a.shape or b.shape:
        raise ValueError("Arguments to rng_uniform must be scalars, got "
                         f"{a.str_short()} and {b.str_short()}.")
    return ShapedArray(shape, a.dtype)


def _uniform_reference(a: np.ndarray, b: np.ndarray, *, shape: tuple) -> np.ndarray:
    if dtypes.is_integer(a.dtype):
        return _source.integers(a, b, shape, a.dtype)
    return (a + (b - a) * _source.random(shape)).astype(a.dtype)


def _uniform_batch(axis: Any, args: tuple, dims: tuple, *, shape: tuple) -> tuple:
    raise NotImplementedError("rng_uniform: bounds cannot be mapped. Use numjet.random.uniform.")


rng_uniform_p = Primitive(
    "rng_uniform",
    abstract=_uniform_abstract,
    reference=_uniform_reference,
    batch=_uniform_batch,
    loops=Host(),
    differentiable=False,
    effects=frozenset({ORDERED_IO}),
)


def rng_uniform(a: Any, b: Any, shape: Any) -> Any:
    """Uniform numbers in [a, b), other ones at each call.

    a, b: scalars of one dtype, real or integer (ValueError for others). shape: of the result, which
    has their dtype. They come from the process's own generator, which nothing seeds: use
    `numjet.random` for numbers that can be repeated. No derivative flows to a and b.

    >>> from numjet import lax
    >>> x = lax.rng_uniform(0.0, 1.0, (3,))
    >>> bool(((x >= 0) & (x < 1)).all())
    True
    """
    return rng_uniform_p.bind(as_array(a), as_array(b), shape=canonical_shape(shape))
