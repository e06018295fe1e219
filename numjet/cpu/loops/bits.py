"""Functions on the bits of floats, in terms of loop IR expressions.

`loops.build.ExprEmitter` offers them as methods; nobody else calls them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet.core.dtypes import float32, float64

# dtype -> (integer dtype of its bits, bits of the mantissa, bits of the exponent)
_FORMATS = {float32: (np.dtype("int32"), 23, 8), float64: (np.dtype("int64"), 52, 11)}


def nextafter(e: Any, x: Any, y: Any) -> Any:
    """The neighbour of x in the direction of y; y where they are equal, NaN where one is."""
    size = x.dtype.itemsize * 8
    integer = np.dtype(f"int{size}")
    bits = e.bitcast(x, integer)
    # The bits of a float grow with its magnitude.
    outward = e.eq(e.lt(x, y), e.gt(x, 0))
    moved = e.bitcast(e.add(bits, e.select(outward, e.const(1, integer), e.const(-1, integer))),
                      x.dtype)  # fmt: skip
    sign = e.and_(e.bitcast(y, integer), e.const(-(1 << (size - 1)), integer))
    smallest = e.bitcast(e.or_(sign, 1), x.dtype)
    found = e.select(e.eq(x, y), y, e.select(e.eq(x, 0), smallest, moved))
    nan = e.or_(e.ne(x, x), e.ne(y, y))
    return e.select(nan, e.const(math.nan, x.dtype), found)


def reduce_precision(e: Any, x: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """x rounded to nearest even as if it had so few bits; too large is infinite, too small zero."""
    if x.dtype not in _FORMATS:
        wide = e.cast(x, float32)
        return e.cast(reduce_precision(e, wide, exponent_bits, mantissa_bits), x.dtype)
    integer, mantissa, exponent = _FORMATS[x.dtype]
    out = x
    if mantissa_bits < mantissa:
        drop = mantissa - mantissa_bits
        bits = e.bitcast(x, integer)
        odd = e.and_(e.shr_logical(bits, drop), 1)
        rounded = e.and_(e.add(bits, e.add(odd, (1 << (drop - 1)) - 1)), -(1 << drop))
        out = e.select(e.call("is_finite", x), e.bitcast(rounded, x.dtype), x)
    if exponent_bits < exponent:
        bias = (1 << (exponent_bits - 1)) - 1
        top = math.ldexp(2 - 2.0**-mantissa_bits, bias)
        infinite = e.call("copysign", e.const(math.inf, x.dtype), x)
        zero = e.call("copysign", e.const(0.0, x.dtype), x)
        size = e.abs(out)
        out = e.select(e.gt(size, top), infinite, out)
        out = e.select(e.lt(size, math.ldexp(1.0, 1 - bias)), zero, out)
    return out
