"""Arguments of drawn programs: values, and the memory that they lie in.

For the fuzzer's programs and judges. Floats are multiples of an eighth, so that sums and
comparisons of arguments are exact in every dtype; what a judge has to allow for comes of rounding
inside the program.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(x) for x in ("f4", "f2")] + [BFLOAT16]
COMPLEX = [np.dtype("c8")]
SIGNED = [np.dtype(x) for x in ("i4", "i1", "i2")]
UNSIGNED = [np.dtype(x) for x in ("u4", "u1", "u2")]
WIDE = {np.dtype(x): np.dtype(y) for x, y in [("f4", "f8"), ("c8", "c16"), ("i4", "i8"),
                                              ("u4", "u8")]}  # fmt: skip
SIZES = (1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 33, 64)
SPECIAL = (np.nan, np.inf, -np.inf, -0.0)


def is_float(dtype: np.dtype) -> bool:
    """Whether a dtype is of real floats, bfloat16 among them."""
    return dtype.kind == "f" or dtype == BFLOAT16


def is_inexact(dtype: np.dtype) -> bool:
    """Whether a dtype rounds."""
    return dtype.kind == "c" or is_float(dtype)


def dtype_of(rng: np.random.Generator, x64: bool) -> np.dtype:
    """A dtype, float32 in half of the cases; of 64 bits often where these are there."""
    families = [FLOATS[:1], FLOATS, COMPLEX, SIGNED, UNSIGNED, [np.dtype("bool")]]
    family = families[rng.choice(6, p=[0.5, 0.15, 0.07, 0.15, 0.08, 0.05])]
    found = family[rng.integers(len(family))]
    return WIDE.get(found, found) if x64 and rng.random() < 0.6 else found


def shape_of(rng: np.random.Generator) -> tuple[int, ...]:
    """A shape of up to three axes, few elements in most cases; sometimes one long or empty axis."""
    rank = int(rng.choice(4, p=[0.1, 0.35, 0.4, 0.15]))
    shape = [int(n) for n in rng.choice(SIZES, rank)]
    kind = rng.random()
    if rank and kind < 0.04:
        shape[int(rng.integers(rank))] = 0
    elif rank and kind < 0.1:
        shape[int(rng.integers(rank))] = int(rng.choice([257, 1000, 4099]))
    while np.prod(shape, dtype=int) > 20000:
        shape.pop()
    return tuple(shape)


def wide_shape_of(rng: np.random.Generator, large: bool) -> tuple[int, ...]:
    """A shape for the wider generator: up to four axes, more of them of 1 or 0, or long ones."""
    rank = int(rng.choice(5, p=[0.06, 0.24, 0.4, 0.22, 0.08]))
    sizes = (*SIZES, 128, 200, 384) if large else (*SIZES, 1, 1, 6, 9)
    shape = [int(n) for n in rng.choice(sizes, rank)]
    kind = rng.random()
    if rank and kind < 0.05:
        shape[int(rng.integers(rank))] = 0
    elif rank and kind < (0.6 if large else 0.12):
        shape[int(rng.integers(rank))] = int(rng.choice([255, 257, 1000, 1024, 4099]))
    while np.prod(shape, dtype=int) > (150_000 if large else 20_000):
        shape.pop()
    return tuple(shape)


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype,
           special: bool = False) -> np.ndarray:  # fmt: skip
    """An array whose floats are exact; with NaN, infinities and -0.0 among them where `special`."""
    if dtype.kind in "biu":
        low, high = {"b": (0, 2), "u": (0, 12), "i": (-9, 10)}[dtype.kind]
        return np.asarray(rng.integers(low, high, shape)).astype(dtype)
    found = rng.integers(-16, 17, shape) / 8.0
    if special:
        found = np.where(rng.random(shape) < 0.15, rng.choice(SPECIAL, shape), found)
    if dtype.kind == "c":
        found = found + 1j * (rng.integers(-16, 17, shape) / 8.0)
    return np.asarray(found).astype(dtype)


def odd_memory(rng: np.random.Generator, x: np.ndarray) -> tuple[np.ndarray, str]:
    """The same values as a NumPy array that lies oddly in memory, and how."""
    kinds = ["strided", "reversed", "unaligned", "read-only", "big-endian", "by columns"]
    kind = kinds[rng.integers(len(kinds))]
    if kind == "big-endian" and x.dtype.isbuiltin == 1 and x.dtype.itemsize > 1:
        return x.astype(x.dtype.newbyteorder(">")), kind
    if kind == "unaligned":
        raw = np.empty(x.nbytes + 1, np.uint8)
        made = raw[1:].view(x.dtype).reshape(x.shape)
        made[...] = x
        return made, kind
    if kind == "read-only":
        made = x.copy()
        made.flags.writeable = False
        return made, kind
    if not x.ndim:
        return np.broadcast_to(x, (3,))[1], "NumPy's scalars"
    if kind == "by columns":
        return np.asfortranarray(x), kind
    if kind == "reversed":
        return x[::-1].copy()[::-1], kind
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    return wide[..., ::2], "strided"
