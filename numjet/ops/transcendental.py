"""Elementary functions: exponentials, logarithms, trigonometry, hyperbolics, roots, powers,
logistic."""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.primitive import Primitive
from numjet.core.structural import broadcast_in_dim, convert
from numjet.ops.accuracy import check_accuracy
from numjet.ops.arithmetic import add, div, integer_pow, mul, neg, sub
from numjet.ops.families import (
    FLOATING,
    NUMERIC,
    REAL_FLOATING,
    constant_like,
    elementwise,
    pair,
    quiet,
)
from numjet.ops.logic import eq
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
exp2_p = _unary("exp2", np.exp2, lambda t, out, x: mul(t, mul(out, constant_like(x, np.log(2)))))
log_p = _unary("log", np.log, lambda t, out, x: div(t, x))
log1p_p = _unary(
    "log1p", np.log1p, lambda t, out, x: div(t, add(x, _one(x)))
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


expm1_p = _unary(
    "expm1",
    _expm1_reference,
    lambda t, out, x: mul(t, add(out, _one(x))),
)
sin_p = _unary("sin", np.sin, lambda t, out, x: mul(t, cos(x)))
cos_p = _unary("cos", np.cos, lambda t, out, x: neg(mul(t, sin(x))))
tan_p = _unary("tan", np.tan, lambda t, out, x: mul(t, add(_one(x), mul(out, out))))
asin_p = _unary("asin", np.arcsin, lambda t, out, x: mul(t, rsqrt(sub(_one(x), mul(x, x)))))
acos_p = _unary("acos", np.arccos, lambda t, out, x: mul(neg(t), rsqrt(sub(_one(x), mul(x, x)))))
atan_p = _unary("atan", np.arctan, lambda t, out, x: div(t, add(_one(x), mul(x, x))))
sinh_p = _unary("sinh", np.sinh, lambda t, out, x: mul(t, cosh(x)))
cosh_p = _unary("cosh", np.cosh, lambda t, out, x: mul(t, sinh(x)))
tanh_p = _unary("tanh", np.tanh, lambda t, out, x: mul(t, sub(_one(x), mul(out, out))))
asinh_p = _unary("asinh", np.arcsinh, lambda t, out, x: mul(t, rsqrt(add(mul(x, x), _one(x)))))
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
atanh_p = _unary("atanh", np.arctanh, lambda t, out, x: div(t, sub(_one(x), mul(x, x))))
sqrt_p = _unary("sqrt", np.sqrt, lambda t, out, x: div(t, mul(out, constant_like(x, 2))))
rsqrt_p = _unary(
    "rsqrt",
    lambda x: np.divide(x.dtype.type(1), np.sqrt(x)),
    lambda t, out, x: mul(t, mul(constant_like(x, -0.5), div(out, x))),
)


cbrt_p = _unary(
    "cbrt",
    np.cbrt,
    lambda t, out, x: mul(t, mul(constant_like(x, 1 / 3), integer_pow(out, -2))),
    accepts=REAL_FLOATING,
)


def _logistic_reference(x: np.ndarray) -> np.ndarray:
    one = x.dtype.type(1)
    if x.dtype.kind == "c":
        return one / (one + np.exp(-x))
    # exp of a negative number only, so that nothing overflows.
    z = np.exp(-np.abs(x))
    return np.where(x >= 0, one / (one + z), z / (one + z))


logistic_p = _unary(
    "logistic", _logistic_reference, lambda t, out, x: mul(t, mul(out, sub(_one(x), out)))
)


# ------------------------------------------------------------------ two operands
def _atan2_square(x: Any, y: Any) -> Any:
    return add(mul(x, x), mul(y, y))


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
    # y x^(y-1), unmasked: y = 0 makes it 0, and it still depends on y.
    y_here = y if dtypes.is_inexact(y.aval.dtype) else convert(y, x.aval.dtype)
    return mul(t, mul(y_here, pow(x, sub(y, constant_like(y, 1)))))


def _pow_second(t: Any, out: Any, x: Any, y: Any) -> Any:
    # x^y log x, with log 0 taken as 0 (x^y is 0 there).
    safe = _choose(eq(x, constant_like(x, 0)), 1, x, x.aval.shape)
    return mul(t, mul(out, log(safe)))


def _pow_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if dtypes.is_integer(x.dtype):
        return np.power(x, np.maximum(y, y.dtype.type(0)))
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
    """e to the x."""
    if accuracy is not None:
        check_accuracy("exp", accuracy)
    return exp_p.bind(as_array(x))


def exp2(x: Any, *, accuracy: Any = None) -> Any:
    """2 to the x."""
    if accuracy is not None:
        check_accuracy("exp2", accuracy)
    return exp2_p.bind(as_array(x))


def log(x: Any, *, accuracy: Any = None) -> Any:
    """Natural logarithm."""
    if accuracy is not None:
        check_accuracy("log", accuracy)
    return log_p.bind(as_array(x))


def log1p(x: Any, *, accuracy: Any = None) -> Any:
    """log(1 + x), exact for small x."""
    if accuracy is not None:
        check_accuracy("log1p", accuracy)
    return log1p_p.bind(as_array(x))


def expm1(x: Any, *, accuracy: Any = None) -> Any:
    """exp(x) - 1, exact for small x."""
    if accuracy is not None:
        check_accuracy("expm1", accuracy)
    return expm1_p.bind(as_array(x))


def sin(x: Any, *, accuracy: Any = None) -> Any:
    """Sine of x in radians."""
    if accuracy is not None:
        check_accuracy("sin", accuracy)
    return sin_p.bind(as_array(x))


def cos(x: Any, *, accuracy: Any = None) -> Any:
    """Cosine of x in radians."""
    if accuracy is not None:
        check_accuracy("cos", accuracy)
    return cos_p.bind(as_array(x))


def tan(x: Any, *, accuracy: Any = None) -> Any:
    """Tangent of x in radians."""
    if accuracy is not None:
        check_accuracy("tan", accuracy)
    return tan_p.bind(as_array(x))


def asin(x: Any) -> Any:
    """Inverse sine, in radians."""
    return asin_p.bind(as_array(x))


def acos(x: Any) -> Any:
    """Inverse cosine, in radians."""
    return acos_p.bind(as_array(x))


def atan(x: Any) -> Any:
    """Inverse tangent, in radians."""
    return atan_p.bind(as_array(x))


def atan2(x: Any, y: Any) -> Any:
    """The angle of the point (y, x), in radians."""
    return atan2_p.bind(*pair(x, y))


def sinh(x: Any) -> Any:
    """Hyperbolic sine."""
    return sinh_p.bind(as_array(x))


def cosh(x: Any) -> Any:
    """Hyperbolic cosine."""
    return cosh_p.bind(as_array(x))


def tanh(x: Any, *, accuracy: Any = None) -> Any:
    """Hyperbolic tangent."""
    if accuracy is not None:
        check_accuracy("tanh", accuracy)
    return tanh_p.bind(as_array(x))


def asinh(x: Any) -> Any:
    """Inverse hyperbolic sine."""
    return asinh_p.bind(as_array(x))


def acosh(x: Any) -> Any:
    """Inverse hyperbolic cosine."""
    return acosh_p.bind(as_array(x))


def atanh(x: Any) -> Any:
    """Inverse hyperbolic tangent."""
    return atanh_p.bind(as_array(x))


def sqrt(x: Any, *, accuracy: Any = None) -> Any:
    """Square root."""
    if accuracy is not None:
        check_accuracy("sqrt", accuracy)
    return sqrt_p.bind(as_array(x))


def rsqrt(x: Any, *, accuracy: Any = None) -> Any:
    """1 / sqrt(x)."""
    if accuracy is not None:
        check_accuracy("rsqrt", accuracy)
    return rsqrt_p.bind(as_array(x))


def cbrt(x: Any, *, accuracy: Any = None) -> Any:
    """Cube root."""
    if accuracy is not None:
        check_accuracy("cbrt", accuracy)
    return cbrt_p.bind(as_array(x))


def logistic(x: Any, *, accuracy: Any = None) -> Any:
    """1 / (1 + exp(-x)), without overflow."""
    if accuracy is not None:
        check_accuracy("logistic", accuracy)
    return logistic_p.bind(as_array(x))


def pow(x: Any, y: Any) -> Any:
    """x to the power y; a Python integer gives `integer_pow`."""
    if type(y) is int:
        return integer_pow(x, y)
    a, b = as_array(x), as_array(y)
    if dtypes.is_inexact(a.dtype) and dtypes.is_integer(b.dtype):
        b = convert(b, a.dtype)
    return pow_p.bind(*pair(a, b))
