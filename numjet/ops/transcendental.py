"""Elementary functions: exponentials, logarithms, trigonometry, hyperbolics, roots, powers,
logistic."""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.base import config
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.primitive import Primitive, Zero
from numjet.core.structural import broadcast_in_dim, convert
from numjet.core.trace import EVAL, current_trace
from numjet.ops.accuracy import check_accuracy
from numjet.ops.arithmetic import abs as magnitude, add, div, integer_pow, mul, neg, square, sub
from numjet.ops.complex_ops import complex, imag, real
from numjet.ops.composed import composed
from numjet.ops.families import (
    FLOATING,
    NUMERIC,
    REAL_FLOATING,
    broadcast_tangent,
    constant_like,
    elementwise,
    elementwise_batch,
    pair,
    quiet,
)
from numjet.ops.logic import eq, le, lt
from numjet.ops.shape import select_n


def _unary(
    name: str,
    reference: Any,
    jvp: Any,
    accepts: str = FLOATING,
    call: str = "",
) -> Primitive:
    function = call or name
    return elementwise(
        name,
        accepts=accepts,
        reference=quiet(reference),
        jvp=jvp,
        loops=lambda e, x: e.call(function, x),
    )


def _one(x: Any) -> Any:
    return constant_like(x, 1)


exp_p = _unary("exp", np.exp, lambda t, out, x: mul(t, out))
def _exp2_jvp(t: Any, out: Any, x: Any) -> Any:
    if config.jax_form():
        return mul(log(constant_like(x, 2)), mul(t, out))
    return mul(t, mul(out, constant_like(x, np.log(2))))


exp2_p = _unary("exp2", np.exp2, _exp2_jvp)
log_p = _unary("log", np.log, lambda t, out, x: div(t, x))


def _log1p_reference(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "c":
        return np.log1p(x)
    # NumPy adds the 1 first, and loses what is small beside it.
    a, b, out = x.real, x.imag, np.array(x)
    out.real += 1
    out = np.array(np.log(out))
    near = np.maximum(np.abs(a), np.abs(b)) < 0.5
    a, b = np.where(near, a, 0), np.where(near, b, 0)
    out.real = np.where(near, np.log1p(a * (a + 2) + b * b) / 2, out.real)
    return out


log1p_p = _unary(
    "log1p", _log1p_reference, lambda t, out, x: div(t, add(x, _one(x)))
)


def _expm1_reference(x: np.ndarray) -> np.ndarray:
    out = np.expm1(x)
    if x.dtype.kind != "c":
        return out
    # The array standard's values where NumPy multiplies infinities by zeros.
    a, b, out = x.real, x.imag, np.array(out)
    out.imag = np.where(b == 0, b, out.imag)
    endless = np.isinf(a) & ~np.isfinite(b)
    out[endless & (a < 0)] = -1
    out[endless & (a > 0)] = complex(np.inf, np.nan)
    return out


def _exact_slope(x: Any) -> bool:
    """Whether a slope is computed from a complex x: of the value 1 ± out² and the like cancel."""
    return dtypes.is_complex(x.aval.dtype) and not config.jax_form()


def _expm1_slope(out: Any, x: Any) -> Any:
    return exp(x) if _exact_slope(x) else add(out, _one(x))


expm1_p = _unary(
    "expm1",
    _expm1_reference,
    lambda t, out, x: mul(t, _expm1_slope(out, x)),
)
sin_p = _unary("sin", np.sin, lambda t, out, x: mul(t, cos(x)))
cos_p = _unary("cos", np.cos, lambda t, out, x: neg(mul(t, sin(x))))
def _times_i(x: Any) -> Any:
    return complex(neg(imag(x)), real(x))


def _tanh_slope(out: Any, x: Any) -> Any:
    """1 - out² of complex x; where that cancels (2e / (1 + e²))², e = exp(-x) of x to the right."""
    part = real(x)
    near = le(magnitude(part), constant_like(part, 1))
    right = _choose(near, 1, x, x.aval.shape)
    right = select_n(lt(real(right), constant_like(part, 0)), right, neg(right))
    small = exp(neg(right))
    far = square(div(add(small, small), add(_one(x), square(small))))
    return select_n(near, far, sub(_one(x), square(out)))


def _tan_jvp(t: Any, out: Any, x: Any) -> Any:
    if _exact_slope(x):
        return mul(t, _tanh_slope(_times_i(out), _times_i(x)))
    return mul(t, add(_one(x), square(out)))


tan_p = _unary("tan", np.tan, _tan_jvp)


_ONES = {dtype: np.ones((), dtype) for dtype in (dtypes.float32, dtypes.float64)}


def _both_sides_of_one(x: np.ndarray) -> Any:
    """(1 - x)(1 + x) of NumPy arrays."""
    one = _ONES.get(x.dtype)
    if one is None:
        one = x.dtype.type(1)
    return np.multiply(np.subtract(one, x), np.add(one, x))


# Of real x: 1 - square(x) would lose all that x is away from ±1 but for a rounding of 1.
one_less_square_p = elementwise(
    "one_less_square",
    accepts=REAL_FLOATING,
    reference=_both_sides_of_one,
    jvp=lambda t, out, x: mul(t, mul(constant_like(x, -2), x)),
    loops=lambda e, x: e.mul(
        e.sub(e.const(1, x.dtype), x), e.add(e.const(1, x.dtype), x)
    ),
)


def _one_less_square(x: Any) -> Any:
    if config.jax_form() or dtypes.is_complex(x.aval.dtype):
        return sub(_one(x), square(x))
    return one_less_square_p.bind(x)


def _one_minus(x: Any) -> Any:
    """1 - x of complex x, whose imaginary part, a zero too, has the other sign than x's."""
    return complex(sub(constant_like(real(x), 1), real(x)), neg(imag(x)))


def _asin_slope(x: Any) -> Any:
    # A root of the product would overflow, and has another branch cut.
    if _exact_slope(x):
        return mul(rsqrt(_one_minus(x)), rsqrt(add(x, _one(x))))
    return rsqrt(_one_less_square(x))


def _over_square(t: Any, x: Any) -> Any:
    """t / (1 - x²) of complex x, by two quotients that do not overflow."""
    return div(div(t, _one_minus(x)), add(x, _one(x)))


def _atan_jvp(t: Any, out: Any, x: Any) -> Any:
    if _exact_slope(x):
        return _over_square(t, _times_i(x))
    return div(t, add(_one(x), square(x)))


def _asinh_jvp(t: Any, out: Any, x: Any) -> Any:
    if _exact_slope(x):
        return mul(t, _asin_slope(_times_i(x)))
    return mul(t, rsqrt(add(square(x), _one(x))))


asin_p = _unary("asin", np.arcsin, lambda t, out, x: mul(t, _asin_slope(x)))
acos_p = _unary("acos", np.arccos, lambda t, out, x: mul(t, neg(_asin_slope(x))))
atan_p = _unary("atan", np.arctan, _atan_jvp)
sinh_p = _unary("sinh", np.sinh, lambda t, out, x: mul(t, cosh(x)))
cosh_p = _unary("cosh", np.cosh, lambda t, out, x: mul(t, sinh(x)))
def _tanh_jvp(t: Any, out: Any, x: Any) -> Any:
    if config.jax_form():
        return mul(add(t, mul(t, out)), sub(_one(x), out))
    if dtypes.is_complex(x.aval.dtype):
        return mul(t, _tanh_slope(out, x))
    return mul(t, one_less_square_p.bind(out))  # 1 - out² would lose twice the digits


tanh_p = _unary("tanh", np.tanh, _tanh_jvp)
asinh_p = _unary("asinh", np.arcsinh, _asinh_jvp)
def _acosh_slope(x: Any) -> Any:
    below, above = sub(x, _one(x)), add(x, _one(x))
    if dtypes.is_complex(x.aval.dtype):      # one root of the product has another branch cut
        return mul(rsqrt(below), rsqrt(above))
    return rsqrt(mul(below, above))


acosh_p = _unary(
    "acosh",
    np.arccosh,
    lambda t, out, x: mul(t, _acosh_slope(x)),
)
def _atanh_jvp(t: Any, out: Any, x: Any) -> Any:
    if config.jax_form():
        return mul(integer_pow(add(_one(x), x), -1), div(t, sub(_one(x), x)))
    return _over_square(t, x) if _exact_slope(x) else div(t, _one_less_square(x))


atanh_p = _unary("atanh", np.arctanh, _atanh_jvp)
sqrt_p = _unary("sqrt", np.sqrt, lambda t, out, x: mul(t, div(constant_like(x, 0.5), out)))


def _rsqrt_reference(x: np.ndarray) -> np.ndarray:
    out = np.divide(x.dtype.type(1), np.sqrt(x))
    if x.dtype.kind == "c" and np.isinf(x).any():  # of which both parts of the root are infinite
        out, far = np.array(out), np.isinf(x)
        out.real = np.where(far, 0, out.real)
        out.imag = np.where(far, np.copysign(0, -x.imag), out.imag)
    return out


rsqrt_p = _unary(
    "rsqrt",
    _rsqrt_reference,
    lambda t, out, x: mul(t, mul(constant_like(x, -0.5), div(out, x))),
)


def _cbrt_reference(x: np.ndarray) -> np.ndarray:
    # NumPy's of single precision is off by two units in the last place, at cubes too.
    return np.cbrt(x, dtype=np.float64).astype(x.dtype)


cbrt_p = _unary(
    "cbrt",
    _cbrt_reference,
    lambda t, out, x: mul(t, mul(constant_like(x, 1 / 3), integer_pow(out, -2))),
    accepts=REAL_FLOATING,
)


def _logistic_reference(x: np.ndarray) -> np.ndarray:
    one = x.dtype.type(1)
    if x.dtype.kind == "c":
        right = x.real >= 0
        small = np.exp(np.where(right, -x, x))
        return np.where(right, one, small) / (one + small)
    # exp of a negative number only, so that nothing overflows.
    z = np.exp(-np.abs(x))
    return np.where(x >= 0, one / (one + z), z / (one + z))


logistic_p = _unary(
    "logistic", _logistic_reference, lambda t, out, x: mul(t, mul(out, sub(_one(x), out)))
)


# ------------------------------------------------------------------ two operands
def _atan2_square(x: Any, y: Any) -> Any:
    return add(square(x), square(y))


def _atan2_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "c":
        return np.arctan2(x, y)
    size = np.maximum(*[np.maximum(abs(z.real), abs(z.imag)) for z in (x, y)])
    x, y = x / size, y / size
    return -1j * np.log((y + 1j * x) / np.sqrt(x * x + y * y))


atan2_p = elementwise(
    "atan2",
    accepts=FLOATING,
    reference=quiet(_atan2_reference),
    jvp=(
        lambda t, out, x, y: mul(t, div(y, _atan2_square(x, y))),
        lambda t, out, x, y: mul(neg(t), div(x, _atan2_square(x, y))),
    ),
    loops=lambda e, x, y: e.call("atan2", x, y),
)


def _choose(mask: Any, value: float, x: Any, shape: tuple) -> Any:
    """`value` where `mask` holds, else `x`; scalars are brought to `shape`."""
    constant = constant_like(x, value)
    mask, constant, x = [
        broadcast_in_dim(a, shape, ()) if a.aval.shape != shape else a for a in (mask, constant, x)
    ]
    return select_n(mask, x, constant)


def _pow_first(t: Any, out: Any, x: Any, y: Any) -> Any:
    # y x^(y-1), unmasked: y = 0 makes it 0, and it still depends on y. Not weakly typed.
    x, y = convert(x, x.aval.dtype), convert(y, x.aval.dtype)
    one = constant_like(y, 1)
    if config.jax_form() and y.aval.shape:
        one = broadcast_in_dim(one, y.aval.shape, ())
    return mul(t, mul(y, pow(x, sub(y, one))))


def _pow_second(t: Any, out: Any, x: Any, y: Any) -> Any:
    # x^y log x, with log 0 taken as 0 (x^y is 0 there).
    safe = _choose(eq(x, constant_like(x, 0)), 1, x, x.aval.shape)
    slope = mul(log(safe), out)
    return mul(convert(t, t.aval.dtype) if t.aval.shape == slope.aval.shape else t, slope)


def _pow_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if dtypes.is_integer(x.dtype):
        # Modulo 2 to the width, where a negative exponent is 2 to the width minus it: NumPy refuses
        # such exponents, and squares as often as unsigned ones say.
        unsigned = np.dtype(f"u{x.dtype.itemsize}")
        return np.power(x.view(unsigned), y.view(unsigned), dtype=unsigned).view(x.dtype)
    if y.size and y.item(0) == 0.5 and dtypes.is_floating(x.dtype):
        # NumPy takes the square root where all exponents are 0.5: NaN of -inf, -0 of -0.
        x = np.where(((x == 0) | np.isinf(x)) & (y == 0.5), np.abs(x), x)
    if x.dtype == dtypes.complex64:
        # In 64 bits each: y log x of 32 bits leaves few digits where it is large.
        return np.power(x, y, dtype=dtypes.complex128).astype(dtypes.complex64)
    return quiet(np.power)(x, y)


pow_p = elementwise(
    "pow",
    accepts=NUMERIC,
    reference=_pow_reference,
    jvp=(_pow_first, _pow_second),
    loops=lambda e, x, y: e.pow(x, y),
)


# ------------------------------------------------------------------ functions
def exp(x: Any, *, accuracy: Any = None) -> Any:
    """e to the power x.

    x: a floating or complex array, of any shape, or a Python number. Result: x's shape and dtype.
    accuracy: None, an AccuracyMode or a Tolerance; every implementation here meets it. Derivative:
    exp x. Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.exp(jnp.array([0.0, 1.0, -jnp.inf])).round(4)
    Array([1.    , 2.7183, 0.    ], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy("exp", accuracy)
    return exp_p.bind(as_array(x))


def exp2(x: Any, *, accuracy: Any = None) -> Any:
    """2 to the power x.

    x: a floating or complex array, of any shape, or a Python number. Result: x's shape and dtype.
    accuracy: None, an AccuracyMode or a Tolerance; every implementation here meets it. Derivative:
    2ˣ log 2. Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.exp2(jnp.array([-1.0, 0.0, 3.0]))
    Array([0.5, 1. , 8. ], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy("exp2", accuracy)
    return exp2_p.bind(as_array(x))


def log(x: Any, *, accuracy: Any = None) -> Any:
    """The natural logarithm of x.

    x: a floating or complex array, of any shape, or a Python number. Result: x's shape and dtype.
    accuracy: None, an AccuracyMode or a Tolerance; every implementation here meets it. Derivative:
    1 / x. -∞ at 0, NaN below; complex x have the principal value. Raises TypeError for other
    dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.log(jnp.array([1.0, 0.0, -1.0]))
    Array([  0., -inf,  nan], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy("log", accuracy)
    return log_p.bind(as_array(x))


def log1p(x: Any, *, accuracy: Any = None) -> Any:
    """log(1 + x), exact where x is small.

    x: a floating or complex array, of any shape, or a Python number. Result: x's shape and dtype.
    accuracy: None, an AccuracyMode or a Tolerance; every implementation here meets it. Derivative:
    1 / (1 + x). Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.log1p(jnp.array([0.0, 1e-8, -1.0]))
    Array([0.e+00, 1.e-08,   -inf], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy("log1p", accuracy)
    return log1p_p.bind(as_array(x))


def expm1(x: Any, *, accuracy: Any = None) -> Any:
    """exp(x) - 1, exact where x is small.

    x: a floating or complex array, of any shape, or a Python number. Result: x's shape and dtype.
    accuracy: None, an AccuracyMode or a Tolerance; every implementation here meets it. Derivative:
    exp x. Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.expm1(jnp.array([0.0, 1e-8]))
    Array([0.e+00, 1.e-08], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy("expm1", accuracy)
    return expm1_p.bind(as_array(x))


def sin(x: Any, *, accuracy: Any = None) -> Any:
    """The sine of x in radians.

    x: a floating or complex array, of any shape, or a Python number. Result: x's shape and dtype.
    accuracy: None, an AccuracyMode or a Tolerance; every implementation here meets it. Derivative:
    cos x. Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.sin(jnp.array([0.0, jnp.pi / 6])).round(6)
    Array([0. , 0.5], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy("sin", accuracy)
    return sin_p.bind(as_array(x))


def cos(x: Any, *, accuracy: Any = None) -> Any:
    """The cosine of x in radians.

    x: a floating or complex array, of any shape, or a Python number. Result: x's shape and dtype.
    accuracy: None, an AccuracyMode or a Tolerance; every implementation here meets it. Derivative:
    -sin x. Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.cos(jnp.array([0.0, jnp.pi / 3])).round(6)
    Array([1. , 0.5], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy("cos", accuracy)
    return cos_p.bind(as_array(x))


def tan(x: Any, *, accuracy: Any = None) -> Any:
    """The tangent of x in radians.

    x: a floating or complex array, of any shape, or a Python number. Result: x's shape and dtype.
    accuracy: None, an AccuracyMode or a Tolerance; every implementation here meets it. Derivative:
    1 + tan² x. Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.tan(jnp.array([0.0, jnp.pi / 4])).round(6)
    Array([0., 1.], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy("tan", accuracy)
    return tan_p.bind(as_array(x))


def asin(x: Any) -> Any:
    """The inverse sine of x, in radians, in [-π/2, π/2].

    x: a floating or complex array, of any shape, or a Python number. Result: x's shape and dtype.
    Derivative: 1 / √(1 - x²). NaN outside [-1, 1]; complex x have the principal value. Raises
    TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.asin(jnp.array([0.0, 0.5, 2.0])).round(4)
    Array([0.    , 0.5236,    nan], dtype=float32)
    """
    return asin_p.bind(as_array(x))


def acos(x: Any) -> Any:
    """The inverse cosine of x, in radians, in [0, π].

    x: a floating or complex array, of any shape, or a Python number. Result: x's shape and dtype.
    Derivative: -1 / √(1 - x²). NaN outside [-1, 1]; complex x have the principal value. Raises
    TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.acos(jnp.array([1.0, 0.5, 2.0])).round(4)
    Array([0.    , 1.0472,    nan], dtype=float32)
    """
    return acos_p.bind(as_array(x))


def atan(x: Any) -> Any:
    """The inverse tangent of x, in radians, in [-π/2, π/2].

    x: a floating or complex array, of any shape, or a Python number. Result: x's shape and dtype.
    Derivative: 1 / (1 + x²). Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.atan(jnp.array([0.0, 1.0])).round(4)
    Array([0.    , 0.7854], dtype=float32)
    """
    return atan_p.bind(as_array(x))


def atan2(x: Any, y: Any) -> Any:
    """The angle of the point (y, x), in radians."""
    return atan2_p.bind(*pair(x, y))


def sinh(x: Any) -> Any:
    """The hyperbolic sine, (exp(x) - exp(-x)) / 2.

    x: a floating or complex array, of any shape, or a Python number. Result: x's shape and dtype.
    Derivative: cosh x. Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.sinh(jnp.array([0.0, 1.0])).round(4)
    Array([0.    , 1.1752], dtype=float32)
    """
    return sinh_p.bind(as_array(x))


def cosh(x: Any) -> Any:
    """The hyperbolic cosine, (exp(x) + exp(-x)) / 2.

    x: a floating or complex array, of any shape, or a Python number. Result: x's shape and dtype.
    Derivative: sinh x. Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.cosh(jnp.array([0.0, 1.0])).round(4)
    Array([1.    , 1.5431], dtype=float32)
    """
    return cosh_p.bind(as_array(x))


def tanh(x: Any, *, accuracy: Any = None) -> Any:
    """The hyperbolic tangent, sinh(x) / cosh(x).

    x: a floating or complex array, of any shape, or a Python number. Result: x's shape and dtype.
    accuracy: None, an AccuracyMode or a Tolerance; every implementation here meets it. Derivative:
    1 - tanh² x. Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.tanh(jnp.array([0.0, 1.0, 100.0])).round(4)
    Array([0.    , 0.7616, 1.    ], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy("tanh", accuracy)
    return tanh_p.bind(as_array(x))


def asinh(x: Any) -> Any:
    """The inverse hyperbolic sine, log(x + √(x² + 1)).

    x: a floating or complex array, of any shape, or a Python number. Result: x's shape and dtype.
    Derivative: 1 / √(x² + 1). Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.asinh(jnp.array([0.0, 1.0])).round(4)
    Array([0.    , 0.8814], dtype=float32)
    """
    return asinh_p.bind(as_array(x))


def acosh(x: Any) -> Any:
    """The inverse hyperbolic cosine of x, not negative.

    x: a floating or complex array, of any shape, or a Python number. Result: x's shape and dtype.
    Derivative: 1 / √(x² - 1). NaN below 1; complex x have the principal value. Raises TypeError for
    other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.acosh(jnp.array([1.0, 2.0, 0.0])).round(4)
    Array([0.   , 1.317,   nan], dtype=float32)
    """
    return acosh_p.bind(as_array(x))


def atanh(x: Any) -> Any:
    """The inverse hyperbolic tangent, log((1 + x) / (1 - x)) / 2.

    x: a floating or complex array, of any shape, or a Python number. Result: x's shape and dtype.
    Derivative: 1 / (1 - x²). ±∞ at ±1, NaN outside. Raises TypeError for other dtypes; `numpy`
    promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.atanh(jnp.array([0.0, 0.5, 1.0])).round(4)
    Array([0.    , 0.5493,    inf], dtype=float32)
    """
    return atanh_p.bind(as_array(x))


def sqrt(x: Any, *, accuracy: Any = None) -> Any:
    """The square root of x, not negative.

    x: a floating or complex array, of any shape, or a Python number. Result: x's shape and dtype.
    accuracy: None, an AccuracyMode or a Tolerance; every implementation here meets it. Derivative:
    1 / (2 √x), infinite at 0. NaN below 0; complex x have the principal value. Raises TypeError for
    other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.sqrt(jnp.array([0.0, 4.0, -1.0]))
    Array([ 0.,  2., nan], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy("sqrt", accuracy)
    return sqrt_p.bind(as_array(x))


def rsqrt(x: Any, *, accuracy: Any = None) -> Any:
    """1 / √x.

    x: a floating or complex array, of any shape, or a Python number. Result: x's shape and dtype.
    accuracy: None, an AccuracyMode or a Tolerance; every implementation here meets it. Derivative:
    -x^(-3/2) / 2. Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.rsqrt(jnp.array([0.25, 4.0, 0.0]))
    Array([2. , 0.5, inf], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy("rsqrt", accuracy)
    return rsqrt_p.bind(as_array(x))


def cbrt(x: Any, *, accuracy: Any = None) -> Any:
    """The real cube root of x, of its sign.

    x: a real floating array, of any shape, or a Python number. Result: x's shape and dtype.
    accuracy: None, an AccuracyMode or a Tolerance; every implementation here meets it. Derivative:
    1 / (3 ∛x²). Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.cbrt(jnp.array([-8.0, 27.0])).round(4)
    Array([-2.,  3.], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy("cbrt", accuracy)
    return cbrt_p.bind(as_array(x))


def logistic(x: Any, *, accuracy: Any = None) -> Any:
    """The logistic function 1 / (1 + exp(-x)), without overflow.

    x: a floating or complex array, of any shape, or a Python number. Result: x's shape and dtype.
    accuracy: None, an AccuracyMode or a Tolerance; every implementation here meets it. Derivative
    (y is the result): y (1 - y). Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.logistic(jnp.array([0.0, 100.0, -100.0])).round(4)
    Array([0.5, 1. , 0. ], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy("logistic", accuracy)
    return logistic_p.bind(as_array(x))


def pow(x: Any, y: Any) -> Any:
    """x to the power y; a Python integer gives `integer_pow`."""
    if type(y) is int:
        return integer_pow(x, y)
    a, b = as_array(x), as_array(y)
    if dtypes.is_inexact(a.dtype) and dtypes.is_integer(b.dtype):
        if config.jax_form() or current_trace() is not EVAL:
            return pow_by_integer_p.bind(a, b)
        b = convert(b, a.dtype)
    return pow_p.bind(*pair(a, b))


def _pow_by_integer(x: Any, n: Any) -> Any:
    x, n = as_array(x), as_array(n)
    shape = np.broadcast_shapes(x.aval.shape, n.aval.shape)
    exponent = convert(n, x.aval.dtype, n.aval.weak_type)
    return pow_p.bind(_repeated(x, shape), _repeated(exponent, shape))


def _repeated(x: Any, shape: tuple) -> Any:
    """`x` at a shape whose last axes its own are, but for those of size 1."""
    if x.aval.shape == shape:
        return x
    return broadcast_in_dim(x, shape, tuple(range(len(shape) - x.aval.ndim, len(shape))))


def _pow_by_integer_jvp(primals: tuple, tangents: tuple) -> tuple:
    (x, n), t = map(as_array, primals), tangents[0]
    out = pow_by_integer_p.bind(x, n)
    if type(t) is Zero:
        return out, Zero(out.aval.tangent())
    x, n = convert(x, x.aval.dtype), _repeated(convert(n, x.aval.dtype), out.aval.shape)

    def everywhere(value: float) -> Any:
        c = constant_like(n, value)
        return broadcast_in_dim(c, n.aval.shape, ()) if n.aval.shape else c

    none, zero = eq(n, constant_like(n, 0)), everywhere(0)
    safe = select_n(eq(n, constant_like(n, 0)), n, everywhere(1))
    slope = mul(safe, pow_p.bind(_repeated(x, out.aval.shape), sub(n, everywhere(1))))
    return out, mul(broadcast_tangent(t, out.aval.shape), select_n(none, slope, zero))


# Floats to the power of integers: no tangent flows through these; that of x to the power 0 is 0.
pow_by_integer_p = composed("pow_by_integer", _pow_by_integer)
pow_by_integer_p.jvp = _pow_by_integer_jvp
pow_by_integer_p.batch = elementwise_batch(lambda: pow_by_integer_p)
