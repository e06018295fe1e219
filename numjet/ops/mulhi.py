"""mulhi: the upper half of the product of two integers.

Apart from `ops.arithmetic`, whose functions it is made of. For `lax.mulhi`.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.lowering import Expand
from numjet.core.primitive import Primitive
from numjet.core.structural import convert
from numjet.ops.arithmetic import add, mul
from numjet.ops.families import INTEGRAL, constant_like, elementwise_abstract, elementwise_batch
from numjet.ops.logic import bitwise_and, shift_right_arithmetic, shift_right_logical

# Halves of 64-bit numbers, whose product no wider type holds (Knuth, TAOCP 4.3.1 M; the signed
# form as in Warren, Hacker's Delight, 8-2).
_HALF, _LOW = 32, 0xFFFFFFFF


def _wide(dtype: Any) -> Any:
    return np.dtype(np.int64 if dtypes.issubdtype(dtype, np.signedinteger) else np.uint64)


def _reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    bits, dtype, wide = x.dtype.itemsize * 8, x.dtype, _wide(x.dtype)
    x, y = x.astype(wide), y.astype(wide)
    if bits < 64:
        return ((x * y) >> wide.type(bits)).astype(dtype)
    half, low = wide.type(_HALF), wide.type(_LOW)
    xh, xl, yh, yl = x >> half, x & low, y >> half, y & low
    with np.errstate(over="ignore"):
        carry = ((xl * yl).astype(np.uint64) >> np.uint64(_HALF)).astype(wide)
        middle = xh * yl + carry
        rest = xl * yh + (middle & low)
        return xh * yh + (middle >> half) + (rest >> half)


def _expand(x: Any, y: Any) -> Any:
    dtype = x.aval.dtype
    bits, wide = dtype.itemsize * 8, _wide(dtype)
    x, y = convert(x, wide), convert(y, wide)
    shift = shift_right_arithmetic if wide == np.int64 else shift_right_logical
    if bits < 64:
        return convert(shift(mul(x, y), constant_like(x, bits)), dtype)
    half, low = constant_like(x, _HALF), constant_like(x, _LOW)
    xh, xl, yh, yl = shift(x, half), bitwise_and(x, low), shift(y, half), bitwise_and(y, low)
    carry = shift_right_logical(mul(xl, yl), half)
    middle = add(mul(xh, yl), carry)
    rest = add(mul(xl, yh), bitwise_and(middle, low))
    return add(add(mul(xh, yh), shift(middle, half)), shift(rest, half))


mulhi_p = Primitive(
    "mulhi",
    abstract=elementwise_abstract("mulhi", INTEGRAL, operands=2),
    reference=_reference,
    batch=elementwise_batch(lambda: mulhi_p),
    loops=Expand(_expand),
    differentiable=False,
)
