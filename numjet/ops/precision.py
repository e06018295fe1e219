"""reduce_precision: floating numbers rounded to a format of fewer bits, in the same dtype."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.lowering import elementwise_loops
from numjet.core.primitive import Primitive, Zero


def _precision_reference(x: np.ndarray, *, exponent_bits: int, mantissa_bits: int) -> np.ndarray:
    dtype = x.dtype
    if dtype.itemsize < 4:
        wide = _precision_reference(
            x.astype(np.float32), exponent_bits=exponent_bits, mantissa_bits=mantissa_bits
        )
        return wide.astype(dtype)
    have_mantissa, have_exponent = (23, 8) if dtype == dtypes.float32 else (52, 11)
    word: Any = np.uint32 if dtype == dtypes.float32 else np.uint64
    bits: Any = np.atleast_1d(x).view(word)
    drop = have_mantissa - mantissa_bits
    if drop > 0:
        # Round to nearest, ties to even; a carry may run into the exponent, as it should.
        half = word((1 << (drop - 1)) - 1)
        odd = (bits >> word(drop)) & word(1)
        bits = (bits + half + odd) & ~word((1 << drop) - 1)
    out = bits.view(dtype)
    if exponent_bits < have_exponent:
        largest = 2.0 ** (2 ** (exponent_bits - 1))
        smallest = 2.0 ** (2 - 2 ** (exponent_bits - 1))
        size = np.abs(out)
        out = np.where(
            size >= largest,
            np.copysign(dtype.type(np.inf), out),
            np.where(size < smallest, np.copysign(dtype.type(0), out), out),
        )
    return np.where(np.isnan(x), x, out.reshape(x.shape)).astype(dtype)


def _precision_abstract(x: ShapedArray, *, exponent_bits: int, mantissa_bits: int) -> ShapedArray:
    if not dtypes.is_floating(x.dtype):
        raise TypeError(f"reduce_precision takes floating operands, got {x.str_short()}.")
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ValueError(
            f"reduce_precision: exponent_bits must be at least 1 and mantissa_bits at least 0, got "
            f"{exponent_bits} and {mantissa_bits}."
        )
    return x


def _precision_jvp(primals: tuple, tangents: tuple, **params: Any) -> tuple:
    out = reduce_precision_p.bind(*primals, **params)
    return out, tangents[0] if type(tangents[0]) is Zero else reduce_precision_p.bind(
        tangents[0], **params
    )


reduce_precision_p = Primitive(
    "reduce_precision",
    linear=True,
    elementwise=True,
    abstract=_precision_abstract,
    reference=_precision_reference,
    jvp=_precision_jvp,
    transpose=lambda ct, x, **params: [reduce_precision_p.bind(ct, **params)],
    batch=lambda axis, args, dims, **params: (reduce_precision_p.bind(*args, **params), dims[0]),
    loops=elementwise_loops(
        lambda e, x, *, exponent_bits, mantissa_bits: e.reduce_precision(
            x, exponent_bits, mantissa_bits
        )
    ),
)


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """operand rounded to a floating format of fewer bits, in its own dtype.

    operand: a floating or complex array. exponent_bits, mantissa_bits: of the format. Halves round
    to even; what is too large becomes infinite, what is subnormal in that format becomes zero.
    Result: operand's shape and dtype. Derivative: 1, as if nothing was rounded. Raises TypeError
    for other dtypes, ValueError for bits out of range.

    >>> from numjet import lax, numpy as jnp
    >>> lax.reduce_precision(jnp.float32(1.2345), 8, 3)
    Array(1.25, dtype=float32)
    """
    return reduce_precision_p.bind(
        as_array(operand),
        exponent_bits=operator.index(exponent_bits),
        mantissa_bits=operator.index(mantissa_bits),
    )
