"""Arithmetic primitives: add, sub, mul, div, rem, neg, abs, sign, max, min, integer_pow, square,
clamp."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from numjet.base import config
from numjet.core import dtypes
from numjet.core.array import ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.lowering import elementwise_loops
from numjet.core.primitive import Primitive
from numjet.core.structural import broadcast_in_dim, convert, zeros
from numjet.ops.complex_ops import imag, neg, real
from numjet.ops.families import (
    NUMERIC,
    ORDERED,
    REAL,
    broadcast_tangent,
    constant_like,
    elementwise,
    elementwise_batch,
    elementwise_jvp,
    is_linear,
    pair,
    unbroadcast,
)
from numjet.ops.logic import bitwise_and, eq, ge, gt, lt
from numjet.ops.shape import select_n

# ------------------------------------------------------------------ sums
add_p = elementwise(
    "add",
    accepts=NUMERIC,
    reference=np.add,
    jvp=(lambda t, out, x, y: t, lambda t, out, x, y: t),
    linear=True,
    transpose=lambda ct, x, y: [
        unbroadcast(ct, x) if is_linear(x) else None,
        unbroadcast(ct, y) if is_linear(y) else None,
    ],
    loops=lambda e, x, y: e.add(x, y),
    of_tangents=True,
)
sub_p = elementwise(
    "sub",
    accepts=NUMERIC,
    reference=np.subtract,
    jvp=(lambda t, out, x, y: t, lambda t, out, x, y: neg(t)),
    linear=True,
    transpose=lambda ct, x, y: [
        unbroadcast(ct, x) if is_linear(x) else None,
        unbroadcast(neg(ct), y) if is_linear(y) else None,
    ],
    loops=lambda e, x, y: e.sub(x, y),
    of_tangents=True,
)


def _mul_transpose(ct: Any, x: Any, y: Any) -> list:
    if is_linear(x) and is_linear(y):
        raise AssertionError(
            "mul: both operands depend on the input, so the function is not linear in it. "
            "Differentiate with vjp or grad instead of linear_transpose."
        )
    if is_linear(x):
        return [unbroadcast(mul(ct, y), x), None]
    return [None, unbroadcast(mul(x, ct), y)]


mul_p = elementwise(
    "mul",
    accepts=NUMERIC,
    reference=np.multiply,
    jvp=(lambda t, out, x, y: mul(t, y), lambda t, out, x, y: mul(x, t)),
    linear=True,
    transpose=_mul_transpose,
    loops=lambda e, x, y: e.mul(x, y),
)


# ------------------------------------------------------------------ quotients
def _div_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype == dtypes.complex64:
        # In 64 bits each: NumPy's quotients of 32 overflow where |y| is below 1e-38.
        return np.divide(x, y, dtype=dtypes.complex128).astype(dtypes.complex64)
    if dtypes.is_inexact(x.dtype):
        return np.divide(x, y)
    return _integer_quotient(x, y)[0]


_div_reference.of_floats = np.divide  # type: ignore[attr-defined] # what it calls for them


def _integer_quotient(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """C's quotient and remainder; x / 0 is -1 (all bits), x % 0 is x, and the lowest integer / -1
    wraps."""
    zero = y == 0
    lowest = np.iinfo(x.dtype).min
    overflow = (
        (x == lowest) & (y == y.dtype.type(-1 if lowest else 1)) if lowest else np.zeros_like(zero)
    )
    safe = np.where(zero | overflow, y.dtype.type(1), y)
    q = _truncated(x, safe)
    r = (x - q * safe).astype(x.dtype)
    q = np.where(zero, np.asarray(-1 if lowest else np.iinfo(x.dtype).max, x.dtype), q)
    r = np.where(zero, x, np.where(overflow, x.dtype.type(0), r))
    return q.astype(x.dtype), r.astype(x.dtype)


def _truncated(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    q = np.floor_divide(x, y)
    return np.where((q < 0) & (q * y != x), q + 1, q).astype(x.dtype)


def _div_transpose(ct: Any, x: Any, y: Any) -> list:
    if is_linear(y):
        raise AssertionError("div is linear in its numerator only.")
    return [unbroadcast(div(ct, y), x), None]


def _div_second(t: Any, out: Any, x: Any, y: Any) -> Any:
    # Of 16 bits y² overflows from 256 on; of complex numbers it is NaN then, not infinite.
    if (dtypes.is_complex(y.aval.dtype) or y.aval.dtype.itemsize == 2) and not config.jax_form():
        return mul(neg(t), div(out, y))
    return mul(mul(neg(t), x), integer_pow(y, -2))


div_p = elementwise(
    "div",
    accepts=NUMERIC,
    reference=_div_reference,
    jvp=(
        lambda t, out, x, y: div(t, y),
        _div_second,
    ),
    linear=True,
    transpose=_div_transpose,
    loops=lambda e, x, y: e.div(x, y),
)


def _rem_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.fmod(x, y) if dtypes.is_inexact(x.dtype) else _integer_quotient(x, y)[1]


def _rem_second(t: Any, out: Any, x: Any, y: Any) -> Any:
    # d(x - y trunc(x / y)) / dy
    quotient = div(sub(x, out), y)
    return mul(neg(t), quotient)


rem_p = elementwise(
    "rem",
    accepts=REAL,
    reference=_rem_reference,
    jvp=(lambda t, out, x, y: t, _rem_second),
    loops=lambda e, x, y: e.rem(x, y),
)


# ------------------------------------------------------------------ sign and magnitude
def _complex_sign(x: np.ndarray) -> np.ndarray:
    """z / |z|, of z over its larger part, which neither overflows nor vanishes; z at 0. Infinite
    parts are ±1 beside finite ones, which are 0. NumPy's sign of 2e38 (1 + i) is 0.
    """
    out = np.array(x)
    big = np.maximum(np.abs(x.real), np.abs(x.imag))
    far = np.isinf(big)
    big = np.where(far | (big == 0), 1, big)
    for part in (out.real, out.imag):
        part[...] = np.where(far, np.copysign(np.isinf(part), part), part / big)
    length = np.hypot(out.real, out.imag)
    length = np.where(length == 0, 1, length)
    out.real /= length
    out.imag /= length
    return out


def _sign_reference(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "c":
        return _complex_sign(x)
    sign = np.sign(x)
    # Of the dtypes that are not NumPy's own it keeps the sign of a zero.
    return sign + x.dtype.type(0) if x.dtype.kind == "V" else sign


def _sign_loops(e: Any, x: Any) -> Any:
    # Of a zero of either sign it is +0, as the array standard has it.
    return e.add(e.sign(x), e.const(0, x.dtype)) if dtypes.is_floating(x.dtype) else e.sign(x)


sign_p = elementwise(
    "sign",
    accepts=NUMERIC,
    reference=_sign_reference,
    jvp=None,
    loops=_sign_loops,
)


def _abs_jvp(t: Any, out: Any, x: Any) -> Any:
    if dtypes.is_complex(x.aval.dtype):
        return _complex_abs_tangent(t, out, x)
    # One at zero, as for the positive side.
    return select_n(ge(x, constant_like(x, 0)), neg(t), t)


def _complex_abs_tangent(t: Any, out: Any, x: Any) -> Any:
    # Re(conj(x) t) / |x|, zero at the origin.
    dot = add(mul(real(x), real(t)), mul(imag(x), imag(t)))
    one = broadcast_in_dim(constant_like(out, 1), out.aval.shape, ())
    return div(dot, select_n(eq(out, constant_like(out, 0)), out, one))


abs_p = elementwise(
    "abs",
    accepts=NUMERIC,
    reference=np.abs,
    jvp=_abs_jvp,
    result=dtypes.real_of,
    loops=lambda e, x: e.abs(x),
)


# ------------------------------------------------------------------ extremes
def _choice(condition: Any, yes: int, no: int, t: Any) -> Any:
    """One of two numbers for each element, of t's dtype."""
    shape = condition.aval.shape
    values = [constant_like(t, n) for n in (yes, no)]
    if shape:
        values = [broadcast_in_dim(x, shape, ()) for x in values]
    return select_n(condition, values[1], values[0])


def _pick(t: Any, out: Any, mine: Any, other: Any) -> Any:
    """The tangent of the larger (smaller) operand; half of it where both are equal."""
    kind = t.aval.dtype, t.aval.weak_type
    if config.jax_form():
        return mul(t, div(_choice(eq(mine, out), 1, 0, t), _choice(eq(other, out), 2, 1, t)))
    is_out = convert(eq(mine, out), *kind)
    tie = convert(eq(other, out), *kind)
    return mul(t, div(is_out, add(constant_like(t, 1), mul(is_out, tie))))


max_p = elementwise(
    "max",
    accepts=ORDERED,
    reference=np.maximum,
    jvp=(lambda t, out, x, y: _pick(t, out, x, y), lambda t, out, x, y: _pick(t, out, y, x)),
    loops=lambda e, x, y: e.max(x, y),
)
min_p = elementwise(
    "min",
    accepts=ORDERED,
    reference=np.minimum,
    jvp=(lambda t, out, x, y: _pick(t, out, x, y), lambda t, out, x, y: _pick(t, out, y, x)),
    loops=lambda e, x, y: e.min(x, y),
)


# ------------------------------------------------------------------ powers
def _integer_pow_reference(x: np.ndarray, *, y: int) -> np.ndarray:
    if y < 0:
        one = x.dtype.type(1)
        if x.dtype.kind == "c":  # a power that overflows is NaN, not infinite
            return _integer_pow_reference(_div_reference(one, x), y=-y)
        return np.divide(one, _integer_pow_reference(x, y=-y))
    result = None
    while y:
        if y & 1:
            result = x if result is None else result * x
        y >>= 1
        if y:
            x = x * x
    return np.ones_like(x) if result is None else result


def _integer_pow_loops(e: Any, x: Any, *, y: int) -> Any:
    if y < 0:
        one = e.const(1, x.dtype)
        if dtypes.is_complex(x.dtype):
            return _integer_pow_loops(e, e.div(one, x), y=-y)
        return e.div(one, _integer_pow_loops(e, x, y=-y))
    result = None
    while y:
        if y & 1:
            result = x if result is None else e.mul(result, x)
        y >>= 1
        if y:
            x = e.mul(x, x)
    return e.const(1, x.dtype) if result is None else result


def _integer_pow_rule(t: Any, out: Any, x: Any, *, y: int) -> Any:
    if y == 0:
        return mul(t, constant_like(t, 0))
    return mul(t, mul(constant_like(x, y), integer_pow(x, y - 1)))


def _integer_pow_abstract(x: ShapedArray, *, y: int) -> ShapedArray:
    if dtypes.is_bool(x.dtype):
        raise TypeError("integer_pow does not accept booleans. Convert with .astype().")
    if y < 0 and dtypes.is_integer(x.dtype):
        raise TypeError(
            f"Integers cannot be raised to negative powers: integer_pow got {x.dtype} ** {y}. "
            "Convert it to float."
        )
    return x


integer_pow_p = Primitive(
    "integer_pow",
    elementwise=True,
    abstract=_integer_pow_abstract,
    reference=_integer_pow_reference,
    jvp=elementwise_jvp(lambda: integer_pow_p, (_integer_pow_rule,)),
    batch=elementwise_batch(lambda: integer_pow_p),
    loops=elementwise_loops(_integer_pow_loops),
)


def _square_reference(x: np.ndarray) -> np.ndarray:
    """Of complex numbers (a - b)(a + b) + 2abi: the parts of the real one do not cancel."""
    if x.dtype.kind != "c":
        return np.square(x)
    out = np.empty_like(x)
    out.real = (x.real - x.imag) * (x.real + x.imag)
    out.imag = 2 * (x.real * x.imag)
    return out


def _square_loops(e: Any, x: Any) -> Any:
    return e.call("square", x) if dtypes.is_complex(x.dtype) else e.mul(x, x)


square_p = elementwise(
    "square",
    accepts=NUMERIC,
    reference=_square_reference,
    jvp=lambda t, out, x: mul(t, mul(constant_like(x, 2), x)),
    loops=_square_loops,
)


def _no_rule(*_: Any) -> Any:
    raise NotImplementedError("Differentiation rule for 'nextafter' not implemented.")


nextafter_p = elementwise(
    "nextafter",
    accepts=REAL,
    reference=np.nextafter,
    jvp=(_no_rule, _no_rule),
    loops=lambda e, x, y: e.nextafter(x, y),
)


# ------------------------------------------------------------------ clamp
def _clamp_abstract(low: ShapedArray, x: ShapedArray, high: ShapedArray) -> ShapedArray:
    for name, bound in (("min", low), ("max", high)):
        if bound.shape and bound.shape != x.shape:
            raise TypeError(
                f"clamp: {name} must have no dimensions or the operand's shape, got "
                f"{bound.str_short()} for "
                f"{x.str_short()}."
            )
        if bound.dtype != x.dtype:
            raise TypeError(
                f"clamp: {name} must have the operand's dtype, got {bound.str_short()} for "
                f"{x.str_short()}."
            )
    return x


def _where(taken: Any, t: Any) -> Any:
    """The tangent `t` where it is taken, else 0: also where it is infinite or NaN."""
    t = broadcast_tangent(t, taken.aval.shape)
    return select_n(taken, zeros(t.aval), t)


def _clamp_jvp(primals: tuple, tangents: tuple) -> tuple:
    def inside(t: Any, out: Any, low: Any, x: Any, high: Any) -> Any:
        return _where(bitwise_and(gt(x, low), lt(x, high)), t)

    def at_low(t: Any, out: Any, low: Any, x: Any, high: Any) -> Any:
        return _where(bitwise_and(gt(low, x), lt(low, high)), t)

    def at_high(t: Any, out: Any, low: Any, x: Any, high: Any) -> Any:
        return _where(gt(x, high), t)

    return elementwise_jvp(lambda: clamp_p, (at_low, inside, at_high))(primals, tangents)


clamp_p = Primitive(
    "clamp",
    elementwise=True,
    abstract=_clamp_abstract,
    reference=lambda low, x, high: np.minimum(np.maximum(x, low), high),
    jvp=_clamp_jvp,
    batch=elementwise_batch(lambda: clamp_p),
    loops=elementwise_loops(lambda e, low, x, high: e.min(e.max(x, low), high)),
)


# ------------------------------------------------------------------ functions
def add(x: Any, y: Any) -> Any:
    """x + y."""
    if type(x) is not ArrayImpl or type(y) is not ArrayImpl:
        x, y = pair(x, y)
    return add_p.bind(x, y)


def sub(x: Any, y: Any) -> Any:
    """x - y."""
    if type(x) is not ArrayImpl or type(y) is not ArrayImpl:
        x, y = pair(x, y)
    return sub_p.bind(x, y)


def mul(x: Any, y: Any) -> Any:
    """x * y."""
    if type(x) is not ArrayImpl or type(y) is not ArrayImpl:
        x, y = pair(x, y)
    return mul_p.bind(x, y)


def div(x: Any, y: Any) -> Any:
    """x / y; integers truncate as C does, and x / 0 is -1."""
    if type(x) is not ArrayImpl or type(y) is not ArrayImpl:
        x, y = pair(x, y)
    return div_p.bind(x, y)


def rem(x: Any, y: Any) -> Any:
    """The remainder with the sign of x, as C's %."""
    return rem_p.bind(*pair(x, y))


def sign(x: Any) -> Any:
    """-1, 0 or 1 by the sign of x; of complex x, x / |x| (0 at 0).

    x: an integer, floating or complex array, of any shape, or a Python number. Result: x's shape
    and dtype. Derivative: 0. NaN stays. Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.sign(jnp.array([-2.0, 0.0, jnp.nan]))
    Array([-1.,  0., nan], dtype=float32)
    """
    return sign_p.bind(as_array(x))


def abs(x: Any) -> Any:
    """|x|.

    x: an integer, floating or complex array, of any shape, or a Python number. Result: x's shape
    and dtype. Derivative: sign(x), 1 at 0; of complex x the conjugate of x / |x|. Complex x give a
    real result. The least signed integer stays negative. Raises TypeError for other dtypes, and
    for unsigned integers; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.abs(jnp.array([-2, 3])), lax.abs(3 + 4j)
    (Array([2, 3], dtype=int32), Array(5., dtype=float32, weak_type=True))
    """
    x = as_array(x)
    if x.aval.dtype.name.startswith("uint"):
        raise TypeError(
            f"abs does not accept dtype {x.aval.dtype.name}: unsigned integers are not negative. "
            "Use numpy.abs, which takes them."
        )
    return abs_p.bind(x)


def max(x: Any, y: Any) -> Any:
    """The larger one; NaN if either is."""
    return max_p.bind(*pair(x, y))


def min(x: Any, y: Any) -> Any:
    """The smaller one; NaN if either is."""
    return min_p.bind(*pair(x, y))


def integer_pow(x: Any, y: int) -> Any:
    """x to the fixed integer power y, by repeated multiplication.

    x: an integer, floating or complex array. y: a Python integer; 0 gives ones. Result: x's shape
    and dtype. Derivative: y x^(y-1). Raises TypeError for integer x with negative y.

    >>> from numjet import lax, numpy as jnp
    >>> lax.integer_pow(jnp.array([2.0, -3.0]), 3)
    Array([  8., -27.], dtype=float32)
    """
    x = as_array(x)
    y = operator.index(y)
    dtypes.refuse_keys("integer_pow", x.aval.dtype)
    return x if y == 1 else integer_pow_p.bind(x, y=y)


def square(x: Any) -> Any:
    """x · x.

    x: an integer, floating or complex array, of any shape, or a Python number. Result: x's shape
    and dtype. Derivative: 2 x. Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.square(jnp.array([3, -2]))
    Array([9, 4], dtype=int32)
    """
    return square_p.bind(as_array(x))


def reciprocal(x: Any) -> Any:
    """1 / x.

    x: a floating or complex array, of any shape, or a Python number. Result: x's shape and dtype.
    Derivative: -1 / x². Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.reciprocal(jnp.array([4.0, 0.0]))
    Array([0.25,  inf], dtype=float32)
    """
    return integer_pow(x, -1)


def nextafter(x: Any, y: Any) -> Any:
    """The next number after x towards y."""
    return nextafter_p.bind(*pair(x, y))


def clamp(min: Any, x: Any, max: Any) -> Any:  # noqa: A002 - lax's names
    """x limited to [min, max]."""
    x = as_array(x)
    low, high = pair(min, x)[0], pair(max, x)[0]
    return clamp_p.bind(low, x, high)
