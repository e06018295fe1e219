"""Floats by their parts: sign, mantissa and exponent, whole number and fraction, last place.

Reads and writes the bits of IEEE floats, so that signs of zero, subnormal numbers and infinities
come out as in NumPy; the 16-bit formats go through float32 where their exponents are too short.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.structural import full, scalar
from numjet.numpy import lax_names as lax
from numjet.numpy.elementwise import (
    constant,
    full_scalar,
    multiply,
    prepared,
    subtract,
    trunc,
    zeros_like,
)
from numjet.numpy.logic import logical_and, not_equal, where
from numjet.numpy.promote import as_arrays, cast, one_array, promote_inexact, refuse, strong
from numjet.numpy.unary import isfinite, isinf
from numjet.ops.bits import bitcast_convert_type_p


def signbit(x: Any, /) -> Any:
    """Whether the sign bit is set, element by element: of negative numbers, of -0.0 and of some
    NaN.

    x: real numbers of any shape. Returns booleans. ValueError for complex numbers.

    >>> jnp.signbit(jnp.array([-1.0, 0.0, -0.0]))
    Array([ True, False,  True], dtype=bool)
    """
    x = strong(one_array("signbit", x))
    dtype = x.aval.dtype
    if dtypes.is_complex(dtype) or dtypes.is_key(dtype):
        raise ValueError(f"signbit is not well defined for {dtype}.")
    if not dtypes.is_inexact(dtype):
        if dtypes.kind(dtype) == "i":
            return lax.lt(x, zeros_like(x))
        return full(x.aval.shape, False, dtypes.bool_)
    bits = np.dtype(f"int{dtype.itemsize * 8}")
    return lax.lt(_as_bits(x, bits), scalar(0, bits))


def _as_bits(x: Any, dtype: Any) -> Any:
    """The same bits as `dtype`, which may have 64 outside of `enable_x64` too."""
    return bitcast_convert_type_p.bind(x, new_dtype=dtype)


def copysign(x1: Any, x2: Any, /) -> Any:
    """|x1| with the sign of x2, the sign bit of zero included.

    x1, x2: real numbers, broadcast to one shape and dtype; integers and booleans count as floats.
    The derivative with respect to x2 is zero. TypeError for complex numbers.

    >>> jnp.copysign(jnp.array([1.0, -2.0]), -0.0)
    Array([-1., -2.], dtype=float32)
    """
    x, y = prepared("copysign", promote_inexact, x1, x2)
    if dtypes.is_complex(x.aval.dtype):
        raise TypeError(f"copysign does not support complex-valued inputs, got {x.aval.dtype}.")
    size = lax.abs(x)
    return where(signbit(y), lax.neg(size), size)


def ldexp(x1: Any, x2: Any, /) -> Any:
    """x1 * 2**x2, without overflow on the way.

    x1: real numbers; integers and booleans count as floats. x2: integers (ValueError for others),
    broadcast against x1. TypeError or ValueError for shapes that do not broadcast.

    >>> jnp.ldexp(jnp.array([0.5, 3.0]), jnp.array([4, -1]))
    Array([8. , 1.5], dtype=float32)
    """
    x, n = as_arrays("ldexp", x1, x2)
    if not (dtypes.is_integer(n.aval.dtype) or n.aval.dtype == dtypes.bool_):
        raise ValueError(f"ldexp: x2 must be integers, got {n.aval.dtype}.")
    if dtypes.is_complex(x.aval.dtype):
        raise ValueError(f"ldexp is not supported for input types {x.aval.dtype}: take the parts.")
    (x,) = promote_inexact(x)
    dtype = x.aval.dtype
    wide = dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
    info = np.finfo(wide)
    bits = np.dtype(f"int{info.bits}")
    low, high = int(info.minexp), int(info.maxexp) - 1
    n = cast(n, dtypes.int8) if n.aval.dtype in dtypes.NARROW or n.aval.dtype == dtypes.bool_ else n
    limits = np.iinfo(n.aval.dtype)
    bounds = max(3 * low, int(limits.min)), min(3 * high, int(limits.max))
    least, most = [scalar(b, n.aval.dtype) for b in bounds]
    rest = cast(lax.clamp(least, n, most), bits)
    # Powers of two that are normal numbers, the last of them the largest: the others leave a
    # number exact unless it ends as 0, so that one product rounds.
    parts = []
    for _ in range(3):
        part = lax.clamp(scalar(low, bits), rest, scalar(high, bits))
        rest = lax.sub(rest, part)
        parts.append(part)
    out = cast(x, wide)
    for part in reversed(parts):
        power_of_two = lax.shift_left(lax.add(part, scalar(high, bits)), scalar(info.nmant, bits))
        real = _as_bits(power_of_two, wide)
        out = multiply(out, real)
    return cast(out, dtype)


def frexp(x: Any, /) -> tuple[Any, Any]:
    """(m, e) with x = m * 2**e and 0.5 <= |m| < 1: the parts of a float.

    x: real numbers of any shape; integers and booleans count as floats. Returns the mantissas in
    that dtype and the exponents as int32; zeros, infinities and NaN come back with the exponent 0.
    The derivative of m is 2**-e. TypeError for complex numbers.

    >>> jnp.frexp(jnp.array([8.0, 0.75]))
    (Array([0.5 , 0.75], dtype=float32), Array([4, 0], dtype=int32))
    """
    (x,) = promote_inexact(one_array("frexp", x))
    dtype = x.aval.dtype
    wide = dtype if dtype.itemsize >= 4 else dtypes.float32
    value = cast(x, wide)
    info = np.finfo(wide)
    bits = np.dtype(f"int{wide.itemsize * 8}")

    # Subnormal numbers are brought into the normal range first.
    tiny = lax.lt(lax.abs(value), constant(info.tiny, value))
    value = where(tiny, lax.mul(value, constant(2.0 ** (info.nmant + 1), value)), value)
    whole = _as_bits(value, bits)
    mask = (1 << info.bits - 1 - info.nmant) - 1
    exponent = lax.shift_right_logical(whole, scalar(info.nmant, bits))
    exponent = lax.bitwise_and(exponent, scalar(mask, bits))
    bias = -info.minexp + 1
    exponent = lax.sub(exponent, scalar(bias - 1, bits))
    plain = logical_and(isfinite(value), not_equal(value, zeros_like(value)))
    normal = where(tiny, lax.sub(exponent, scalar(info.nmant + 1, bits)), exponent)
    exponent = where(plain, normal, scalar(0, bits))
    # x times 2**-exponent, in two factors that are normal numbers: the mantissa with its
    # derivative.
    half = lax.shift_right_arithmetic(exponent, scalar(1, bits))
    mantissa = cast(x, wide)
    for part in (half, subtract(exponent, half)):
        power_of_two = lax.shift_left(lax.sub(scalar(bias, bits), part), scalar(info.nmant, bits))
        mantissa = multiply(mantissa, _as_bits(power_of_two, wide))
    return cast(mantissa, dtype), cast(exponent, dtypes.int32)


def modf(x: Any, /, out: Any = None) -> tuple[Any, Any]:
    """(fractional part, whole part), both floats: x - trunc(x) and trunc(x).

    x: real numbers of any shape; integers and booleans count as floats. The fractional part of
    whole numbers and infinities is 0 without a sign. The derivatives are 1 and 0. TypeError for
    complex numbers, NotImplementedError for `out`.

    >>> jnp.modf(jnp.array([2.5, -0.25]))
    (Array([ 0.5 , -0.25], dtype=float32), Array([ 2., -0.], dtype=float32))
    """
    refuse("modf", out=out)
    (x,) = promote_inexact(one_array("modf", x))
    whole = trunc(x)
    return where(isinf(x), constant(0, x), subtract(x, whole)), whole


def spacing(x: Any, /) -> Any:
    """The distance from x to the next float away from 0, with the sign of x; of float16 to the
    next larger one, as in NumPy and JAX.

    x: real numbers of any shape; integers and booleans count as floats. NaN for infinities
    and NaN. The derivative is zero. ValueError for complex numbers.

    >>> jnp.spacing(jnp.array([1.0, -4.0]))
    Array([ 1.1920929e-07, -4.7683716e-07], dtype=float32)
    """
    x = strong(promote_inexact(one_array("spacing", x))[0])
    x = lax.stop_gradient(x)
    if dtypes.is_complex(x.aval.dtype):
        raise ValueError(f"spacing is not well-defined for complex numbers, got {x.aval.dtype}.")
    direction = constant(np.inf, x)
    if x.aval.dtype != dtypes.float16:
        direction = copysign(direction, x)
    return where(
        isfinite(x),
        subtract(
            lax.nextafter(
                x,
                direction
                if direction.aval.shape == x.aval.shape
                else full_scalar(direction, x.aval.shape),
            ),
            x,
        ),
        constant(np.nan, x),
    )
