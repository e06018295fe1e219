"""Random bits: the Threefry-2x32 counter generator and the primitives over PRNG keys.

A key is two 32-bit words (k1 in the low half of a stored 64-bit word). Element i of a stream is the
block function applied to the counter i, so it needs no other element: streams are pointwise,
partition freely, and fuse with what consumes them. numjet.random is built on the functions at the
end.

Source: Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011 (20
rounds).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.lowering import Pointwise, elementwise_loops
from numjet.core.primitive import Primitive
from numjet.core.structural import broadcast_batch, moveaxis
from numjet.ops.families import align_batched

# Rotations of the even and odd groups of four rounds, and the key schedule's parity word (from the
# paper).
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
GROUPS = 5
_MASK = 0xFFFFFFFF
# Elements of one pass of the NumPy version: four uint32 arrays of this size stay in the first-level
# cache.
_CHUNK = 1 << 12
# Up to this many elements Python integers are quicker than NumPy calls.
_FEW = 6


def threefry2x32(k1: int, k2: int, x1: int, x2: int) -> tuple[int, int]:
    """The block function on Python integers: key (k1, k2), counter (x1, x2)."""
    keys = (k1, k2, k1 ^ k2 ^ PARITY)
    x1, x2 = (x1 + k1) & _MASK, (x2 + k2) & _MASK
    for group in range(GROUPS):
        for r in ROTATIONS[group % 2]:
            x1 = (x1 + x2) & _MASK
            x2 = ((x2 << r | x2 >> (32 - r)) & _MASK) ^ x1
        x1 = (x1 + keys[(group + 1) % 3]) & _MASK
        x2 = (x2 + keys[(group + 2) % 3] + group + 1) & _MASK
    return x1, x2


def threefry2x32_arrays(
    k1: Any, k2: Any, x1: np.ndarray, x2: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The block function on uint32 arrays; x1 and x2 are overwritten with the result."""
    keys = (k1, k2, k1 ^ k2 ^ np.uint32(PARITY))
    x1 += k1
    x2 += k2
    turned = np.empty_like(x2)
    for group in range(GROUPS):
        for r in ROTATIONS[group % 2]:
            x1 += x2
            np.left_shift(x2, np.uint32(r), out=turned)
            np.right_shift(x2, np.uint32(32 - r), out=x2)
            x2 |= turned
            x2 ^= x1
        x1 += keys[(group + 1) % 3]
        x2 += keys[(group + 2) % 3]
        x2 += np.uint32(group + 1)
    return x1, x2


def threefry2x32_loops(e: Any, key: tuple[Any, Any], counter: tuple[Any, Any]) -> tuple[Any, Any]:
    """The block function as element expressions on uint32 values."""
    k1, k2 = key
    keys = (k1, k2, e.xor(e.xor(k1, k2), PARITY))
    x1, x2 = e.add(counter[0], k1), e.add(counter[1], k2)
    for group in range(GROUPS):
        for r in ROTATIONS[group % 2]:
            x1 = e.add(x1, x2)
            x2 = e.xor(e.or_(e.shl(x2, r), e.shr_logical(x2, 32 - r)), x1)
        x1 = e.add(x1, keys[(group + 1) % 3])
        x2 = e.add(x2, e.add(keys[(group + 2) % 3], group + 1))
    return x1, x2


# ------------------------------------------------------------------ words of stored keys
def _words(keys: np.ndarray) -> np.ndarray:
    """uint32[..., 2] of stored keys."""
    return (
        np.ascontiguousarray(keys).reshape(keys.shape).view(np.dtype("<u8"))[..., None].view("<u4")
    )


def _packed(x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    return x1.astype(np.uint64) | x2.astype(np.uint64) << np.uint64(32)


def _stream(keys: np.ndarray, count: int, combine: Callable, dtype: Any) -> np.ndarray:
    """combine(block function of counter i) for i < count, for every key: keys.shape + (count,)."""
    flat = keys.reshape(-1)
    out = np.empty((flat.size, count), dtype)
    for row, word in zip(out, flat.tolist(), strict=True):
        k1, k2 = word & _MASK, word >> 32
        if count <= _FEW:
            for i in range(count):
                x1, x2 = threefry2x32(k1, k2, 0, i)
                row[i] = combine(np.uint64(x1), np.uint64(x2)).astype(dtype)
            continue
        for start in range(0, count, _CHUNK):
            stop = min(count, start + _CHUNK)
            counter = np.arange(start, stop, dtype=np.uint64)
            pair = threefry2x32_arrays(
                np.uint32(k1),
                np.uint32(k2),
                (counter >> np.uint64(32)).astype(np.uint32),
                counter.astype(np.uint32),
            )
            row[start:stop] = combine(*pair)
    return out.reshape(*keys.shape, count)


def _key_loops(e: Any, word: Any) -> tuple[Any, Any]:
    return e.cast(word, dtypes.uint32), e.cast(e.shr_logical(word, 32), dtypes.uint32)


def _pack_loops(e: Any, x1: Any, x2: Any) -> Any:
    return e.or_(e.cast(x1, dtypes.uint64), e.shl(e.cast(x2, dtypes.uint64), 32))


def _counter_loops(e: Any, index: list, shape: tuple) -> tuple[Any, Any]:
    """The two words of the position in `shape`."""
    flat = e.index_const(0)
    for i, n in zip(index, shape, strict=True):
        flat = flat * n + i
    if math.prod(shape) <= 1 << 32:
        return e.const(0, dtypes.uint32), e.index_value(flat, dtypes.uint32)
    wide = e.index_value(flat, dtypes.uint64)
    return e.cast(e.shr_logical(wide, 32), dtypes.uint32), e.cast(wide, dtypes.uint32)


def _need_keys(name: str, keys: ShapedArray) -> None:
    if not dtypes.is_key(keys.dtype):
        raise TypeError(
            f"{name}: expected PRNG keys, got {keys.str_short()}. Make one with random.key(seed), "
            "or wrap raw words with random.wrap_key_data."
        )


def _key_batch(primitive_of: Callable[[], Primitive]) -> Callable:
    def batch(axis: Any, args: tuple, dims: tuple, **params: Any) -> tuple:
        return primitive_of().bind(moveaxis(args[0], dims[0], 0), **params), 0

    return batch


# ------------------------------------------------------------------ random_bits
_WIDTHS = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}


def _bits_abstract(keys: ShapedArray, *, bit_width: int, shape: tuple) -> ShapedArray:
    _need_keys("random_bits", keys)
    if bit_width not in _WIDTHS:
        raise TypeError(f"random_bits: bit_width must be 8, 16, 32 or 64, got {bit_width}.")
    return ShapedArray((*keys.shape, *shape), _WIDTHS[bit_width])


def _combined(bit_width: int) -> Callable:
    if bit_width == 64:
        return lambda x1, x2: x1.astype(np.uint64) << np.uint64(32) | x2.astype(np.uint64)
    return lambda x1, x2: x1 ^ x2


def _bits_reference(keys: np.ndarray, *, bit_width: int, shape: tuple) -> np.ndarray:
    out = _stream(keys, math.prod(shape), _combined(bit_width), _WIDTHS[bit_width])
    return out.reshape((*keys.shape, *shape))


def _stream_loops(e: Any, index: list, keys: Any, shape: tuple) -> tuple[Any, Any]:
    own = len(index) - len(shape)
    return threefry2x32_loops(
        e, _key_loops(e, keys(*index[:own])), _counter_loops(e, index[own:], shape)
    )


def _bits_loops(e: Any, index: list, keys: Any, *, bit_width: int, shape: tuple) -> Any:
    x1, x2 = _stream_loops(e, index, keys, shape)
    if bit_width == 64:
        return e.or_(e.shl(e.cast(x1, dtypes.uint64), 32), e.cast(x2, dtypes.uint64))
    return e.cast(e.xor(x1, x2), _WIDTHS[bit_width])


random_bits_p = Primitive(
    "random_bits",
    differentiable=False,
    abstract=_bits_abstract,
    reference=_bits_reference,
    batch=_key_batch(lambda: random_bits_p),
    loops=Pointwise(_bits_loops),
)


# ------------------------------------------------------------------ random_split
def _split_abstract(keys: ShapedArray, *, shape: tuple) -> ShapedArray:
    _need_keys("random_split", keys)
    return ShapedArray((*keys.shape, *shape), keys.dtype)


def _split_reference(keys: np.ndarray, *, shape: tuple) -> np.ndarray:
    return _stream(keys, math.prod(shape), _packed, dtypes.uint64).reshape((*keys.shape, *shape))


def _split_loops(e: Any, index: list, keys: Any, *, shape: tuple) -> Any:
    return _pack_loops(e, *_stream_loops(e, index, keys, shape))


random_split_p = Primitive(
    "random_split",
    differentiable=False,
    abstract=_split_abstract,
    reference=_split_reference,
    batch=_key_batch(lambda: random_split_p),
    loops=Pointwise(_split_loops),
)


# ------------------------------------------------------------------ random_fold_in
def _fold_in_abstract(keys: ShapedArray, data: ShapedArray) -> ShapedArray:
    _need_keys("random_fold_in", keys)
    if data.dtype != dtypes.uint32 or (data.shape and keys.shape and data.shape != keys.shape):
        raise TypeError(
            f"random_fold_in: expected uint32 data of the keys' shape {keys.shape}, or without "
            f"dimensions, got {data.str_short()}."
        )
    return ShapedArray(keys.shape or data.shape, keys.dtype)


def _fold_in_reference(keys: np.ndarray, data: np.ndarray) -> np.ndarray:
    keys, data = np.broadcast_arrays(keys, data)
    if keys.size <= _FEW:
        pairs = [
            threefry2x32(k & _MASK, k >> 32, 0, d)
            for k, d in zip(keys.ravel().tolist(), data.ravel().tolist(), strict=True)
        ]
        return np.array([x1 | x2 << 32 for x1, x2 in pairs], np.uint64).reshape(keys.shape)
    words = _words(keys)
    return _packed(
        *threefry2x32_arrays(
            words[..., 0].copy(),
            words[..., 1].copy(),
            np.zeros(data.shape, np.uint32),
            np.array(data),
        )
    )


def _fold_in_loops(e: Any, key: Any, data: Any) -> Any:
    return _pack_loops(
        e, *threefry2x32_loops(e, _key_loops(e, key), (e.const(0, dtypes.uint32), data))
    )


def _fold_in_batch(axis: Any, args: tuple, dims: tuple) -> tuple:
    aligned, dim = align_batched(axis, args, dims)
    return random_fold_in_p.bind(*aligned), dim


random_fold_in_p = Primitive(
    "random_fold_in",
    differentiable=False,
    elementwise=True,
    abstract=_fold_in_abstract,
    reference=_fold_in_reference,
    batch=_fold_in_batch,
    loops=elementwise_loops(_fold_in_loops),
)


# ------------------------------------------------------------------ random_seed
def _seed_abstract(seeds: ShapedArray) -> ShapedArray:
    if not dtypes.is_integer(seeds.dtype):
        raise TypeError(f"random.key: the seed must be an integer, got {seeds.str_short()}.")
    return ShapedArray(seeds.shape, dtypes.key_dtype)


def _seed_reference(seeds: np.ndarray) -> np.ndarray:
    """The seed's high word first, its low word second; sign bits beyond the seed's width are not
    copied.
    """
    unsigned = seeds.astype(
        np.dtype(f"u{seeds.dtype.itemsize}") if seeds.dtype.itemsize == 8 else np.uint32
    )
    wide = unsigned.astype(np.uint64)
    return wide >> np.uint64(32) | wide << np.uint64(32)


def _seed_loops(e: Any, seed: Any) -> Any:
    unsigned = e.cast(seed, dtypes.uint64 if seed.dtype.itemsize == 8 else dtypes.uint32)
    wide = e.cast(unsigned, dtypes.uint64)
    return e.or_(e.shr_logical(wide, 32), e.shl(wide, 32))


random_seed_p = Primitive(
    "random_seed",
    differentiable=False,
    elementwise=True,
    abstract=_seed_abstract,
    reference=_seed_reference,
    batch=lambda axis, args, dims: (random_seed_p.bind(*args), dims[0]),
    loops=elementwise_loops(_seed_loops),
)


# ------------------------------------------------------------------ random_wrap and random_unwrap
def _wrap_abstract(words: ShapedArray) -> ShapedArray:
    if words.dtype != dtypes.uint32 or not words.ndim or words.shape[-1] != 2:
        expected = (
            f"expected key_data.dtype = uint32; got dtype={words.dtype.name}"
            if words.dtype != dtypes.uint32
            else f"expected key_data.shape to end with (2,); got shape={words.shape}"
        )
        raise TypeError(f"JAX encountered invalid PRNG key data: {expected} for threefry2x32.")
    return ShapedArray(words.shape[:-1], dtypes.key_dtype)


def _wrap_batch(axis: Any, args: tuple, dims: tuple) -> tuple:
    return random_wrap_p.bind(moveaxis(args[0], dims[0], 0)), 0


random_wrap_p = Primitive(
    "random_wrap",
    differentiable=False,
    abstract=_wrap_abstract,
    reference=lambda words: _packed(words[..., 0], words[..., 1]),
    batch=_wrap_batch,
    loops=Pointwise(
        lambda e, index, words: _pack_loops(
            e, words(*index, e.index_const(0)), words(*index, e.index_const(1))
        )
    ),
)


def _unwrap_abstract(keys: ShapedArray) -> ShapedArray:
    _need_keys("key_data", keys)
    return ShapedArray((*keys.shape, 2), dtypes.uint32)


def _unwrap_loops(e: Any, index: list, keys: Any) -> Any:
    shift = e.mul(e.index_value(index[-1], dtypes.uint64), 32)
    return e.cast(e.shr_logical(keys(*index[:-1]), shift), dtypes.uint32)


random_unwrap_p = Primitive(
    "random_unwrap",
    differentiable=False,
    abstract=_unwrap_abstract,
    reference=_words,
    batch=_key_batch(lambda: random_unwrap_p),
    loops=Pointwise(_unwrap_loops),
)


# ------------------------------------------------------------------ functions
def random_bits(keys: Any, *, bit_width: int, shape: tuple[int, ...]) -> Any:
    """Unsigned integers of `bit_width` bits: an array of `shape` for every key."""
    return random_bits_p.bind(keys, bit_width=bit_width, shape=tuple(shape))


def random_split(keys: Any, *, shape: tuple[int, ...]) -> Any:
    """New keys: an array of `shape` for every key."""
    return random_split_p.bind(keys, shape=tuple(shape))


def random_fold_in(keys: Any, data: Any) -> Any:
    """Keys changed by uint32 `data`."""
    keys, data = as_array(keys), as_array(data)
    if keys.ndim and data.ndim and keys.shape != data.shape:
        data = broadcast_batch(data, keys.shape[0])
    return random_fold_in_p.bind(keys, data)


def random_seed(seeds: Any) -> Any:
    """The key of an integer seed."""
    return random_seed_p.bind(as_array(seeds))


def random_wrap(words: Any) -> Any:
    """Keys from uint32[..., 2]."""
    return random_wrap_p.bind(as_array(words))


def random_unwrap(keys: Any) -> Any:
    """The uint32[..., 2] words of keys."""
    return random_unwrap_p.bind(keys)
