"""`nextafter` of floats of 4 and 8 bits, which are computed with in float32 otherwise: there the
next number is not the narrow dtype's.

For `lax.nextafter` and `numpy.nextafter`. What would break it: a narrow format whose bits do not
count up with the size of what they stand for.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from numjet.core import dtypes, narrow
from numjet.core.array import as_array
from numjet.core.structural import convert
from numjet.ops import arithmetic
from numjet.ops.arithmetic import add, mul, sub
from numjet.ops.bits import bitcast_convert_type
from numjet.ops.logic import eq, ge, gt, ne


def _number(x: Any) -> Any:
    return convert(x, dtypes.int32)


def _choose(mask: Any, x: Any, y: Any) -> Any:
    """x where `mask` is 1, y where it is 0."""
    return add(y, mul(mask, sub(x, y)))


def next_narrow(x: Any, y: Any) -> Any:
    """The neighbour of x in the direction of y, y where they are equal, NaN where one is.

    x, y: arrays of one float dtype of 4 or 8 bits, of one shape or without axes.
    """
    dtype = x.aval.dtype
    few = dtypes.bits(dtype) == 4
    whole = np.dtype(ml_dtypes.uint4) if few else dtypes.uint8
    x_bits, y_bits = (_number(bitcast_convert_type(z, whole)) for z in (x, y))
    up = _number(gt(y, x))
    table = narrow.values(dtype)
    half = len(table) // 2
    if table[1] != -table[half + 1]:  # an exponent alone, without a sign
        out = add(x_bits, sub(mul(up, 2), 1))
    else:
        negative = _number(ge(x_bits, half))
        size = sub(x_bits, mul(negative, half))
        outward = _number(ne(up, negative))
        at_zero = _number(eq(size, 0))
        size = _choose(at_zero, 1, add(size, sub(mul(outward, 2), 1)))
        negative = _choose(at_zero, sub(1, up), negative)
        if np.isnan(table[half]):  # there is one zero
            negative = mul(negative, _number(ne(size, 0)))
        out = add(size, mul(negative, half))
    for mask, other in ((eq(x, y), y_bits), (ne(y, y), y_bits), (ne(x, x), x_bits)):
        out = _choose(_number(mask), other, out)
    return bitcast_convert_type(convert(out, whole), dtype)


def nextafter(x: Any, y: Any) -> Any:
    """The next number after x towards y, of any float dtype."""
    x, y = as_array(x), as_array(y)
    narrow_dtype = x.aval.dtype in dtypes.NARROW_FLOATS
    return next_narrow(x, y) if narrow_dtype else arithmetic.nextafter(x, y)
