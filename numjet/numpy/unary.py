"""Functions of one (or two) floating arguments: exponentials, trigonometry, complex parts, special
combinations such as logaddexp."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from numjet.core import dtypes
from numjet.core.array import ArrayImpl
from numjet.core.structural import full, scalar
from numjet.numpy import lax_names as lax
from numjet.numpy.elementwise import (
    _select,
    absolute,
    as_bool,
    broadcast_like,
    constant,
    floor,
    full_scalar,
    logical_and,
    logical_not,
    maximum,
    minimum,
    multiply,
    not_equal,
    power,
    prepared,
    remainder,
    subtract,
    trunc,
    unary,
    where,
    zeros_like,
)
from numjet.numpy.fast import eager
from numjet.numpy.promote import (
    as_arrays,
    cast,
    float_dtype,
    one_array,
    promote_dtypes,
    promote_inexact,
    promote_numeric,
    promote_shapes,
    refuse,
    strong,
)
from numjet.ops.complex_ops import conjugate as conjugate_of
from numjet.ops.while_loop import while_loop


def _float(name: str, doc: str, primitive: str | None = None) -> Callable:
    operation = getattr(lax, primitive or name)
    return unary(name, doc, lambda x: operation(x), primitive or name, inexact=True)


exp = _float("exp", "e to the power of x.")
exp2 = _float("exp2", "2 to the power of x.")
expm1 = _float("expm1", "exp(x) - 1, exact near 0.")
log = _float("log", "The natural logarithm.")
log1p = _float("log1p", "log(1 + x), exact near 0.")
sin = _float("sin", "The sine of x radians.")
cos = _float("cos", "The cosine of x radians.")
tan = _float("tan", "The tangent of x radians.")
arcsin = asin = _float("arcsin", "The angle in [-pi/2, pi/2] whose sine is x.", "asin")
arccos = acos = _float("arccos", "The angle in [0, pi] whose cosine is x.", "acos")
arctan = atan = _float("arctan", "The angle in (-pi/2, pi/2) whose tangent is x.", "atan")
sinh = _float("sinh", "The hyperbolic sine.")
cosh = _float("cosh", "The hyperbolic cosine.")
tanh = _float("tanh", "The hyperbolic tangent.")
arcsinh = asinh = _float("arcsinh", "The inverse of sinh.", "asinh")
arccosh = acosh = _float("arccosh", "The inverse of cosh.", "acosh")
arctanh = atanh = _float("arctanh", "The inverse of tanh.", "atanh")
sqrt = _float("sqrt", "The square root.")
cbrt = _float("cbrt", "The cube root.")


def _scaled_log(name: str, base: float) -> Callable:
    def logarithm(x: Any, /) -> Any:
        (x,) = promote_inexact(one_array(name, x))
        value = lax.log(x)
        if dtypes.is_complex(x.aval.dtype):      # part by part: infinities stay what they are
            real, imag = lax.real(value), lax.imag(value)
            unit = constant(math.log(base), real)
            return strong(lax.complex(lax.div(real, unit), lax.div(imag, unit)))
        return strong(lax.div(value, constant(math.log(base), x)))

    logarithm.__name__ = logarithm.__qualname__ = name
    logarithm.__doc__ = f"The logarithm to base {base:g}."
    return logarithm


log2 = _scaled_log("log2", 2.0)
log10 = _scaled_log("log10", 10.0)


# ------------------------------------------------------------------ complex parts
def real(val: Any, /) -> Any:
    """The real part."""
    x = one_array("real", val)
    return lax.real(x) if dtypes.is_complex(x.aval.dtype) else x


def imag(val: Any, /) -> Any:
    """The imaginary part: zeros for real arrays."""
    x = one_array("imag", val)
    return (
        lax.imag(x)
        if dtypes.is_complex(x.aval.dtype)
        else full(x.aval.shape, 0, x.aval.dtype, x.aval.weak_type)
    )


def conj(x: Any, /) -> Any:
    """The complex conjugate."""
    x = one_array("conj", x)
    return conjugate_of(x)


conjugate = conj


def angle(z: Any, deg: bool = False) -> Any:
    """The angle of complex numbers in the plane."""
    z = one_array("angle", z)
    re, im = real(z), imag(z)
    if not dtypes.is_inexact(re.aval.dtype):
        re, im = cast(re, float_dtype()), cast(im, float_dtype())
    out = strong(lax.atan2(im, re))
    return rad2deg(out) if deg else out


def iscomplex(x: Any) -> Any:
    """Whether the imaginary part is non-zero."""
    return not_equal(imag(x), 0)


def isreal(x: Any) -> Any:
    """Whether the imaginary part is zero."""
    return logical_not(iscomplex(x))


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex."""
    if x is None:
        return False
    found = x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype
    return dtypes.is_complex(found)


def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex."""
    return not iscomplexobj(x)


# ------------------------------------------------------------------ finite, NaN, infinite
def _false(x: Any) -> Any:
    return full(x.aval.shape, False, dtypes.bool_)


def isnan(x: Any, /) -> Any:
    """Whether x is NaN."""
    x = one_array("isnan", x)
    return lax.ne(x, x) if dtypes.is_inexact(x.aval.dtype) else _false(x)


def isfinite(x: Any, /) -> Any:
    """Whether x is neither NaN nor infinite."""
    x = one_array("isfinite", x)
    if not dtypes.is_inexact(x.aval.dtype):
        return full(x.aval.shape, True, dtypes.bool_)
    if dtypes.is_complex(x.aval.dtype):
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return lax.is_finite(x)


def isinf(x: Any, /) -> Any:
    """Whether x is infinite."""
    x = one_array("isinf", x)
    if dtypes.is_complex(x.aval.dtype):
        return lax.bitwise_or(isinf(lax.real(x)), isinf(lax.imag(x)))
    if not dtypes.is_inexact(x.aval.dtype):
        return _false(x)
    return lax.eq(lax.abs(x), constant(np.inf, x))


def _signed_infinity(name: str, value: float) -> Callable:
    def question(x: Any, /, out: Any = None) -> Any:
        refuse(name, out=out)
        x = one_array(name, x)
        if dtypes.is_complex(x.aval.dtype):
            raise ValueError(f"{name} is not defined for complex numbers.")
        return lax.eq(x, constant(value, x)) if dtypes.is_inexact(x.aval.dtype) else _false(x)

    question.__name__ = question.__qualname__ = name
    question.__doc__ = f"Whether x is {value}."
    return question


isposinf = _signed_infinity("isposinf", np.inf)
isneginf = _signed_infinity("isneginf", -np.inf)


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """x with NaN and infinities replaced, by default by 0 and the largest finite numbers."""
    x = one_array("nan_to_num", x)
    dtype = x.aval.dtype
    if not dtypes.is_inexact(dtype):
        return x
    if dtypes.is_complex(dtype):
        return lax.complex(
            nan_to_num(lax.real(x), copy, nan, posinf, neginf),
            nan_to_num(lax.imag(x), copy, nan, posinf, neginf),
        )
    info = ml_dtypes.finfo(dtype)
    posinf = info.max if posinf is None else posinf
    neginf = info.min if neginf is None else neginf
    out = where(isnan(x), cast(one_array("nan_to_num", nan), dtype), x)
    out = where(isposinf(out), cast(one_array("nan_to_num", posinf), dtype), out)
    return where(isneginf(out), cast(one_array("nan_to_num", neginf), dtype), out)


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether |a - b| <= atol + rtol * |b|, element by element; of PRNG keys whether they are
    equal."""
    if all([dtypes.is_key(getattr(v, "dtype", None)) for v in (a, b)]):
        return lax.eq(*promote_shapes("isclose", a, b))
    x, y = promote_shapes("isclose", *promote_numeric(*as_arrays("isclose", a, b)))
    if not dtypes.is_inexact(x.aval.dtype):
        # The tolerance is a float.
        x, y = (cast(v, dtypes.canonical(dtypes.float64)) for v in (x, y))
    kind = dtypes.real_of(x.aval.dtype)
    rtol, atol = (cast(one_array("isclose", v), kind) for v in (rtol, atol))
    close = lax.le(absolute(subtract(x, y)), _plus(atol, multiply(rtol, absolute(y))))
    both_finite = logical_and(isfinite(x), isfinite(y))
    out = (
        _select(both_finite, close, lax.eq(x, y))
        if close.aval.shape
        else where(both_finite, close, lax.eq(x, y))
    )
    if equal_nan:
        out = lax.bitwise_or(out, logical_and(isnan(x), isnan(y)))
    return out


def _plus(x: Any, y: Any) -> Any:
    return lax.add(x, y)


# ------------------------------------------------------------------ angles
def deg2rad(x: Any, /) -> Any:
    """Degrees as radians."""
    (x,) = promote_inexact(one_array("deg2rad", x))
    return lax.mul(x, constant(math.pi / 180, x))


def rad2deg(x: Any, /) -> Any:
    """Radians as degrees."""
    (x,) = promote_inexact(one_array("rad2deg", x))
    return lax.mul(x, constant(180 / math.pi, x))


radians, degrees = deg2rad, rad2deg


def _inexact_as_given(*xs: Any) -> list[Any]:
    """`promote_inexact`, weakly typed only where every operand is."""
    out = promote_inexact(*xs)
    return out if all([x.aval.weak_type for x in xs]) else [strong(x) for x in out]


def hypot(x1: Any, x2: Any, /) -> Any:
    """sqrt(x1**2 + x2**2), without overflow."""
    x, y = prepared("hypot", _inexact_as_given, x1, x2)
    if dtypes.is_complex(x.aval.dtype):
        raise ValueError("hypot does not support complex numbers.")
    x, y = lax.abs(x), lax.abs(y)
    large, small = lax.max(x, y), lax.min(x, y)
    zero = lax.eq(large, zeros_like(large))
    safe = _select(zero, broadcast_like(constant(1, large), large), large)
    ratio = lax.div(small, safe)
    out = lax.mul(large, lax.sqrt(lax.add(constant(1, ratio), lax.square(ratio))))
    out = _select(zero, large, out)
    infinite = lax.bitwise_or(lax.eq(x, constant(np.inf, x)), lax.eq(y, constant(np.inf, y)))
    return _select(infinite, broadcast_like(constant(np.inf, out), out), out)


def sinc(x: Any, /) -> Any:
    """sin(pi x) / (pi x), 1 at 0; its derivatives at 0 are right, too."""
    (x,) = promote_inexact(one_array("sinc", x))
    zero = lax.eq(x, zeros_like(x))
    scaled = lax.mul(x, constant(math.pi, x))
    safe = _select(zero, broadcast_like(constant(1, x), x), scaled)
    # Near 0 the Taylor series carries the derivatives: 1 - t**2 / 6 + t**4 / 120.
    square = lax.square(scaled)
    series = lax.sub(
        constant(1, x),
        lax.mul(square, lax.sub(constant(1 / 6, x), lax.mul(square, constant(1 / 120, x)))),
    )
    return _select(zero, series, lax.div(lax.sin(safe), safe))


def i0(x: Any) -> Any:
    """The modified Bessel function of order 0."""
    (x,) = promote_inexact(one_array("i0", x))
    # |x| as x sign(x), whose derivative at 0 is 0, as that of the scaled function there.
    return lax.mul(lax.exp(lax.mul(x, lax.sign(x))), lax.bessel_i0e(x))


# ------------------------------------------------------------------ sums of exponentials
def logaddexp(x1: Any, x2: Any, /) -> Any:
    """log(exp(x1) + exp(x2)), without overflow."""
    x, y = prepared("logaddexp", promote_inexact, x1, x2)
    return _logaddexp(x, y, 1.0)


def logaddexp2(x1: Any, x2: Any, /) -> Any:
    """log2(2**x1 + 2**x2), without overflow."""
    x, y = prepared("logaddexp2", _inexact_as_given, x1, x2)
    return _logaddexp(x, y, math.log(2))


def _logaddexp(x: Any, y: Any, unit: float) -> Any:
    """In units of `unit` nats: max + log1p(exp(-|x - y|))."""
    if dtypes.is_complex(x.aval.dtype):
        larger = lax.ge(lax.real(x), lax.real(y))
        high, low = _select(larger, x, y), _select(larger, y, x)
        nats = constant(unit, x)
        rest = lax.log1p(lax.exp(lax.mul(lax.sub(low, high), nats)))
        out = lax.add(high, lax.div(rest, nats))
        # The principal value: the imaginary part in (-pi, pi] (units of `unit` nats).
        turn = math.pi / unit
        angle = subtract(turn, remainder(subtract(turn, lax.imag(out)), 2 * turn))
        return lax.complex(lax.real(out), angle)
    high = lax.max(x, y)
    gap = lax.sub(x, y)
    # Equal infinities have no difference; their sum is the answer, and its derivative is finite.
    same = lax.bitwise_or(lax.ne(gap, gap), _infinite(high))
    safe = _select(same, full_scalar(zeros_like(gap), gap.aval.shape), gap)
    # Not -|gap|, whose derivative at 0 is taken to be -1: here both arguments get one half.
    falling = lax.min(safe, lax.neg(safe))
    if unit != 1.0:
        falling = lax.mul(falling, constant(unit, falling))
    rest = lax.log1p(lax.exp(falling))
    if unit != 1.0:
        rest = lax.div(rest, constant(unit, rest))
    # Where the sum is NaN so is its derivative: it is multiplied by what made it NaN.
    one = full_scalar(constant(1, gap), gap.aval.shape)
    sick = _select(lax.eq(high, high), one, high)
    plain = _select(lax.ne(gap, gap), lax.mul(lax.add(x, y), sick), high)
    return _select(same, plain, lax.add(high, rest))


def _infinite(x: Any) -> Any:
    return lax.eq(lax.abs(x), constant(np.inf, x))


# ------------------------------------------------------------------ floats by parts
def signbit(x: Any, /) -> Any:
    """Whether the sign bit is set (also of -0.0)."""
    x = one_array("signbit", x)
    dtype = x.aval.dtype
    if dtypes.is_complex(dtype):
        raise ValueError("signbit is not well-defined for complex numbers.")
    if not dtypes.is_inexact(dtype):
        return lax.lt(x, zeros_like(x)) if dtypes.kind(dtype) == "i" else _false(x)
    bits = np.dtype(f"int{dtype.itemsize * 8}")
    whole = lax.bitcast_convert_type(x, bits)
    return lax.lt(whole, scalar(0, bits))


def copysign(x1: Any, x2: Any, /) -> Any:
    """|x1| with the sign of x2."""
    x, y = prepared("copysign", promote_inexact, x1, x2)
    size = lax.abs(x)
    return where(signbit(y), lax.neg(size), size)


def heaviside(x1: Any, x2: Any, /) -> Any:
    """0 for negative x1, 1 for positive, x2 at 0."""
    x, y = prepared("heaviside", _inexact_as_given, x1, x2)
    zero = zeros_like(x)
    step = where(lax.lt(x, zero), zero, where(lax.gt(x, zero), constant(1, x), y))
    return where(isnan(x), x, step)


def ldexp(x1: Any, x2: Any, /) -> Any:
    """x1 * 2**x2."""
    x, n = as_arrays("ldexp", x1, x2)
    if not (dtypes.is_integer(n.aval.dtype) or n.aval.dtype == dtypes.bool_):
        raise ValueError(f"ldexp: x2 must be integers, got {n.aval.dtype}.")
    (x,) = promote_inexact(x)
    n = cast(n, x.aval.dtype)
    # In two steps, since 2**n may overflow where the product does not.
    half = floor(multiply(n, 0.5))
    scaled = multiply(x, power(constant(2, x), half))
    out = multiply(scaled, power(constant(2, x), subtract(n, half)))
    return where(logical_and(isfinite(x), not_equal(x, 0)), out, x)


def frexp(x: Any, /) -> tuple[Any, Any]:
    """(m, e) with x = m * 2**e and 0.5 <= |m| < 1."""
    (x,) = promote_inexact(one_array("frexp", x))
    dtype = x.aval.dtype
    wide = dtype if dtype.itemsize >= 4 else dtypes.float32
    value = cast(x, wide)
    info = np.finfo(wide)
    bits = np.dtype(f"int{wide.itemsize * 8}")

    # Subnormal numbers are brought into the normal range first.
    tiny = lax.lt(lax.abs(value), constant(info.tiny, value))
    value = where(tiny, multiply(value, 2.0 ** (info.nmant + 1)), value)
    whole = lax.bitcast_convert_type(value, bits)
    mask = (1 << info.bits - 1 - info.nmant) - 1
    exponent = lax.shift_right_logical(whole, scalar(info.nmant, bits))
    exponent = lax.bitwise_and(exponent, scalar(mask, bits))
    bias = -info.minexp + 1
    exponent = subtract(exponent, bias - 1)
    plain = logical_and(isfinite(value), not_equal(value, 0))
    exponent = where(plain, where(tiny, subtract(exponent, info.nmant + 1), exponent), 0)
    # x times 2**-exponent, in two factors that are normal numbers: the mantissa with its
    # derivative.
    half = lax.shift_right_arithmetic(exponent, scalar(1, bits))
    mantissa = cast(x, wide)
    for part in (half, subtract(exponent, half)):
        power_of_two = lax.shift_left(subtract(bias, part), scalar(info.nmant, bits))
        mantissa = multiply(mantissa, lax.bitcast_convert_type(power_of_two, wide))
    return cast(mantissa, dtype), cast(exponent, dtypes.int32)


def modf(x: Any, /, out: Any = None) -> tuple[Any, Any]:
    """The fractional and the whole part, both with the sign of x."""
    refuse("modf", out=out)
    (x,) = promote_inexact(one_array("modf", x))
    whole = trunc(x)
    rest = where(isinf(x), constant(0, x), subtract(x, whole))
    return copysign(rest, x), copysign(whole, x)


def spacing(x: Any, /) -> Any:
    """The distance to the next float away from 0."""
    (x,) = promote_inexact(one_array("spacing", x))
    direction = copysign(constant(np.inf, x), x)
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


# ------------------------------------------------------------------ ignoring NaN
def fmax(x1: Any, x2: Any) -> Any:
    """The larger element; the other where one is NaN."""
    x, y = promote_dtypes(*as_arrays("fmax", x1, x2))
    return where(isnan(x), y, where(isnan(y), x, maximum(x, y)))


def fmin(x1: Any, x2: Any) -> Any:
    """The smaller element; the other where one is NaN."""
    x, y = promote_dtypes(*as_arrays("fmin", x1, x2))
    return where(isnan(x), y, where(isnan(y), x, minimum(x, y)))


# ------------------------------------------------------------------ integers
def gcd(x1: Any, x2: Any) -> Any:
    """The greatest common divisor."""
    x, y = _integers("gcd", x1, x2)
    if type(x) is type(y) is ArrayImpl and eager():
        return ArrayImpl(np.asarray(np.gcd(x._value, y._value)), x.aval)

    def step(state: tuple) -> tuple:
        x, y = state
        safe = where(as_bool(y), y, constant(1, y))
        return where(as_bool(y), y, x), where(as_bool(y), lax.rem(x, safe), y)

    # Euclid's algorithm, until the last element has its answer.
    state = while_loop(lambda state: not_equal(state[1], 0).any(), step,
                           (absolute(x), absolute(y)))
    return state[0]


def lcm(x1: Any, x2: Any) -> Any:
    """The least common multiple."""
    x, y = _integers("lcm", x1, x2)
    x, y = absolute(x), absolute(y)
    divisor = gcd(x, y)
    safe = where(as_bool(divisor), divisor, constant(1, divisor))
    return where(as_bool(divisor), multiply(x, lax.div(y, safe)), constant(0, x))


def _integers(name: str, x1: Any, x2: Any) -> list[Any]:
    x, y = promote_dtypes(*as_arrays(name, x1, x2))
    if not dtypes.is_integer(x.aval.dtype):
        raise ValueError(f"{name}: arguments must be integers, got {x.aval.dtype}.")
    shape = np.broadcast_shapes(x.aval.shape, y.aval.shape)
    x, y = promote_shapes(name, x, y)
    return [v if v.aval.shape == shape else full_scalar(v, shape) for v in (x, y)]
