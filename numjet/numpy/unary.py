"""Functions of one array: exponentials, trigonometry, complex parts, what is finite or NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from numjet.api.compiled.shown import FLAG, in_place, wanted
from numjet.api.derivatives.custom import jvp_of_arrays
from numjet.core import dtypes
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.deferred import DeferredArray
from numjet.core.evaluate import LARGE, another
from numjet.core.structural import full, scalar
from numjet.numpy import lax_names as lax
from numjet.numpy.elementwise import (
    broadcast_like,
    constant,
    select,
    unary,
    zeros_like,
)
from numjet.numpy.fast import eager
from numjet.numpy.logic import (
    logical_not,
    not_equal,
    where,
)
from numjet.numpy.promote import (
    cast,
    float_dtype,
    one_array,
    promote_inexact,
    refuse,
    strong,
)
from numjet.ops import transcendental
from numjet.ops.complex_ops import conjugate as conjugate_of
from numjet.ops.special_series import polynomial

# What the docstrings of functions of one float have in common, behind their first paragraph.
_X = """

    x: numbers of any shape, which the result has; integers and booleans count as floats.

"""


def _float(name: str, doc: str, primitive: str | None = None) -> Callable:
    operation = getattr(transcendental, primitive or name)
    doc = doc.replace("\n\n", _X, 1)
    return unary(name, doc, lambda x: operation(x), primitive or name, inexact=True)


exp = _float("exp", """e to the power of x.

    Overflows to infinity above 88.7 in float32.

    >>> jnp.exp(jnp.array([0.0, 1.0])).round(4)
    Array([1.    , 2.7183], dtype=float32)
    """)
exp2 = _float("exp2", """2 to the power of x.

    Exact for whole numbers.

    >>> jnp.exp2(jnp.array([3, -1]))
    Array([8. , 0.5], dtype=float32)
    """)
expm1 = _float("expm1", """exp(x) - 1, exact near 0, where the difference would lose digits.

    >>> jnp.expm1(jnp.array([0.0, 1.0])).round(4)
    Array([0.    , 1.7183], dtype=float32)
    """)
log = _float("log", """The natural logarithm.

    -inf at 0, where the derivative is infinite; NaN for negative real numbers. For complex numbers
    the principal value, with an imaginary part in (-pi, pi].

    >>> jnp.log(jnp.array([1.0, 10.0, 0.0])).round(4)
    Array([0.    , 2.3026,   -inf], dtype=float32)
    """)
log1p = _float("log1p", """log(1 + x), exact near 0, where the sum would lose digits.

    -inf at -1, NaN below.

    >>> jnp.log1p(jnp.array([0.0, 1.0])).round(4)
    Array([0.    , 0.6931], dtype=float32)
    """)
sin = _float("sin", """The sine of an angle in radians.

    >>> jnp.sin(jnp.array([0.0, jnp.pi / 2])).round(4)
    Array([0., 1.], dtype=float32)
    """)
cos = _float("cos", """The cosine of an angle in radians.

    >>> jnp.cos(jnp.array([0.0, jnp.pi])).round(4)
    Array([ 1., -1.], dtype=float32)
    """)
tan = _float("tan", """The tangent of an angle in radians.

    >>> jnp.tan(jnp.array([0.0, 0.5])).round(4)
    Array([0.    , 0.5463], dtype=float32)
    """)
arcsin = asin = _float("arcsin", """The angle in [-pi/2, pi/2] whose sine is x.

    NaN for real numbers outside [-1, 1] (make them complex); at -1 and 1 the derivative is
    infinite.

    >>> jnp.arcsin(jnp.array([0.0, 1.0, 2.0])).round(4)
    Array([0.    , 1.5708,    nan], dtype=float32)
    """, "asin")
arccos = acos = _float("arccos", """The angle in [0, pi] whose cosine is x.

    NaN for real numbers outside [-1, 1] (make them complex); at -1 and 1 the derivative is
    infinite.

    >>> jnp.arccos(jnp.array([1.0, 0.0, 2.0])).round(4)
    Array([0.    , 1.5708,    nan], dtype=float32)
    """, "acos")
arctan = atan = _float("arctan", """The angle in (-pi/2, pi/2) whose tangent is x.

    `arctan2` knows the quadrant of a point.

    >>> jnp.arctan(jnp.array([0.0, 1.0, jnp.inf])).round(4)
    Array([0.    , 0.7854, 1.5708], dtype=float32)
    """, "atan")
sinh = _float("sinh", """The hyperbolic sine, (exp(x) - exp(-x)) / 2.

    >>> jnp.sinh(jnp.array([0.0, 0.5])).round(4)
    Array([0.    , 0.5211], dtype=float32)
    """)
cosh = _float("cosh", """The hyperbolic cosine, (exp(x) + exp(-x)) / 2.

    >>> jnp.cosh(jnp.array([0.0, 0.5])).round(4)
    Array([1.    , 1.1276], dtype=float32)
    """)
tanh = _float("tanh", """The hyperbolic tangent, sinh(x) / cosh(x), in [-1, 1].

    >>> jnp.tanh(jnp.array([0.0, 0.5])).round(4)
    Array([0.    , 0.4621], dtype=float32)
    """)
arcsinh = asinh = _float("arcsinh", """The number whose hyperbolic sine is x.

    >>> jnp.arcsinh(jnp.array([0.0, 1.0])).round(4)
    Array([0.    , 0.8814], dtype=float32)
    """, "asinh")
arccosh = acosh = _float("arccosh", """The number, not negative, whose hyperbolic cosine is x.

    NaN for real numbers below 1 (make them complex); at 1 the derivative is infinite.

    >>> jnp.arccosh(jnp.array([1.0, 2.0, 0.5])).round(4)
    Array([0.   , 1.317,   nan], dtype=float32)
    """, "acosh")
arctanh = atanh = _float("arctanh", """The number whose hyperbolic tangent is x.

    An infinity at -1 and 1, NaN for real numbers beyond.

    >>> jnp.arctanh(jnp.array([0.0, 0.5, 1.0])).round(4)
    Array([0.    , 0.5493,    inf], dtype=float32)
    """, "atanh")
sqrt = _float("sqrt", """The square root.

    NaN for negative real numbers (make them complex: the principal root); at 0 the derivative is
    infinite.

    >>> jnp.sqrt(jnp.array([9, 4])), jnp.sqrt(jnp.array([-4 + 0j]))
    (Array([3., 2.], dtype=float32), Array([0.+2.j], dtype=complex64))
    """)
cbrt = _float("cbrt", """The cube root, which negative numbers have too.

    TypeError for complex numbers. At 0 the derivative is infinite.

    >>> jnp.cbrt(jnp.array([27.0, -8.0])).round(4)
    Array([ 3., -2.], dtype=float32)
    """)


def _scaled_log(name: str, base: float) -> Callable:
    def logarithm(x: Any, /) -> Any:
        value = lax.log(*promote_inexact(one_array(name, x)))
        if FLAG.uses and wanted() and dtypes.is_floating(value.aval.dtype):
            return in_place("_of_natural_log", value, base)
        if dtypes.is_complex(value.aval.dtype):  # part by part: infinities stay what they are
            unit = strong(constant(math.log(base), real := lax.real(value)))
            return lax.complex(lax.div(real, unit), lax.div(lax.imag(value), unit))
        return lax.div(value, strong(constant(math.log(base), value)))

    logarithm.__name__ = logarithm.__qualname__ = name
    logarithm.__doc__ = f"""The logarithm to base {base:g}.{_X}    -inf at 0; NaN for real x < 0.

    >>> jnp.{name}(jnp.array([1.0, {base**3:g}]))
    Array([0., 3.], dtype=float32)
    """
    return logarithm


log2 = _scaled_log("log2", 2.0)
log10 = _scaled_log("log10", 10.0)


# ------------------------------------------------------------------ complex parts
def real(val: Any, /) -> Any:
    """The real part.

    val: an array or number of any dtype. Real numbers come back as they are; complex64 becomes
    float32, complex128 float64.

    >>> jnp.real(jnp.array([1 + 2j, 3]))
    Array([1., 3.], dtype=float32)
    """
    x = one_array("real", val)
    return lax.real(x) if dtypes.is_complex(x.aval.dtype) else another(x)


def imag(val: Any, /) -> Any:
    """The imaginary part: zeros of the same dtype for real numbers.

    val: an array or number of any dtype; complex64 becomes float32, complex128 float64.

    >>> jnp.imag(jnp.array([1 + 2j, 3]))
    Array([2., 0.], dtype=float32)
    """
    x = one_array("imag", val)
    return (
        lax.imag(x)
        if dtypes.is_complex(x.aval.dtype)
        else full(x.aval.shape, 0, x.aval.dtype, x.aval.weak_type)
    )


def conj(x: Any, /) -> Any:
    """The complex conjugate; real numbers come back as they are.

    x: an array or number of any dtype, which the result has, with x's shape. Booleans stay booleans
    (NumPy: int8).

    >>> jnp.conj(jnp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    x = one_array("conj", x)
    return conjugate_of(x) if dtypes.is_complex(x.aval.dtype) else another(x)


conjugate = conj


def angle(z: Any, deg: bool = False) -> Any:
    """The angle of complex numbers in the plane, in (-pi, pi]; in degrees where `deg`.

    z: numbers of any shape; real ones have the angles 0 and pi. Returns real floats, of the
    default dtype for integers and a real number without axes. The derivative at 0 is NaN.

    >>> jnp.angle(jnp.array([1.0, 1j, -1.0]), deg=True)
    Array([  0.,  90., 180.], dtype=float32)
    """
    z = one_array("angle", z)
    number = not z.aval.ndim and not dtypes.is_complex(z.aval.dtype)
    re, im = real(z), imag(z)
    if number or not dtypes.is_inexact(re.aval.dtype):
        re, im = cast(re, float_dtype()), cast(im, float_dtype())
    out = lax.atan2(im, re)
    out = strong(out) if number else out  # real numbers alone lose their weak type, as in JAX
    return rad2deg(out) if deg else out


def _is_real(x: Any) -> bool:
    """Whether this is a concrete array of a real dtype, with axes: its values say nothing then."""
    if type(x) is ArrayImpl:
        x._value  # noqa: B018 - raises for an array that was deleted
    elif type(x) is not DeferredArray:
        return False
    return bool(x.aval.ndim) and not dtypes.is_complex(x.aval.dtype)


def _whole(x: Any, value: bool) -> Any:
    """The value for each element of a concrete array."""
    aval = ShapedArray(x.aval.shape, dtypes.bool_)
    if aval.size < LARGE and eager():
        return ArrayImpl(np.full(aval.shape, value), aval)
    return full(aval.shape, value, dtypes.bool_)


def iscomplex(x: Any) -> Any:
    """Whether the imaginary part is non-zero, element by element.

    x: an array or number of any dtype. Returns booleans, False for real dtypes. `iscomplexobj` asks
    for the dtype.

    >>> jnp.iscomplex(jnp.array([1 + 0j, 1j]))
    Array([False,  True], dtype=bool)
    """
    x = one_array("iscomplex", x)
    if _is_real(x):
        return _whole(x, False)
    part = imag(x)
    out = not_equal(part, False if dtypes.is_bool(part.aval.dtype) else 0)
    # Weak of numbers alone, as JAX's.
    return strong(out) if out.aval.ndim or dtypes.is_bool(x.aval.dtype) else out


def isreal(x: Any) -> Any:
    """Whether the imaginary part is zero, element by element.

    x: an array or number of any dtype. Returns booleans, True for real dtypes. `isrealobj` asks for
    the dtype.

    >>> jnp.isreal(jnp.array([1 + 0j, 1j]))
    Array([ True, False], dtype=bool)
    """
    x = one_array("isreal", x)
    if _is_real(x):
        return _whole(x, True)
    return logical_not(iscomplex(x))


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype of x is complex, whatever its values; a Python boolean.

    x: anything with a dtype, or what NumPy makes an array of; None is not complex.

    >>> jnp.iscomplexobj(jnp.array([1 + 0j])), jnp.iscomplexobj(1.0)
    (True, False)
    """
    if x is None:
        return False
    if hasattr(x, "__jax_array__") and not hasattr(x, "dtype"):
        x = one_array("iscomplexobj", x)
    found = x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype
    return dtypes.is_complex(found)


def isrealobj(x: Any) -> bool:
    """Whether the dtype of x is not complex, whatever its values; a Python boolean.

    x: anything with a dtype, or what NumPy makes an array of.

    >>> jnp.isrealobj(jnp.array([1 + 0j])), jnp.isrealobj(1.0)
    (False, True)
    """
    return not iscomplexobj(x)


# ------------------------------------------------------------------ finite, NaN, infinite
def _false(x: Any, weak_type: bool = False) -> Any:
    out = full(x.aval.shape, False, dtypes.bool_)
    return cast(out, dtypes.bool_, weak_type)


def isnan(x: Any, /) -> Any:
    """Whether x is NaN, element by element.

    x: an array or number of any dtype. Returns booleans: False for integers; of complex numbers
    True where either part is NaN.

    >>> jnp.isnan(jnp.array([1.0, jnp.nan, jnp.inf]))
    Array([False,  True, False], dtype=bool)
    """
    x = one_array("isnan", x)
    return lax.ne(x, x) if dtypes.is_inexact(x.aval.dtype) else _false(x, x.aval.weak_type)


def isfinite(x: Any, /) -> Any:
    """Whether x is neither NaN nor infinite, element by element.

    x: an array or number of any dtype. Returns booleans: True for integers; of complex numbers True
    where both parts are finite.

    >>> jnp.isfinite(jnp.array([1.0, jnp.nan, jnp.inf]))
    Array([ True, False, False], dtype=bool)
    """
    x = one_array("isfinite", x)
    if not dtypes.is_inexact(x.aval.dtype):
        return full(x.aval.shape, True, dtypes.bool_)
    if dtypes.is_complex(x.aval.dtype):
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return lax.is_finite(x)


def isinf(x: Any, /) -> Any:
    """Whether x is infinite, element by element.

    x: an array or number of any dtype. Returns booleans: False for integers; of complex numbers
    True where either part is infinite.

    >>> jnp.isinf(jnp.array([1.0, jnp.nan, -jnp.inf]))
    Array([False, False,  True], dtype=bool)
    """
    x = one_array("isinf", x)
    if dtypes.is_complex(x.aval.dtype):
        return lax.bitwise_or(isinf(lax.real(x)), isinf(lax.imag(x)))
    if not dtypes.is_inexact(x.aval.dtype):
        return _false(strong(x))
    return lax.eq(lax.abs(x), scalar(np.inf, x.aval.dtype))


def _signed_infinity(name: str, value: float) -> Callable:
    def question(x: Any, /, out: Any = None) -> Any:
        refuse(name, out=out)
        x = one_array(name, x)
        if dtypes.is_complex(x.aval.dtype):
            raise ValueError(f"{name} is not defined for complex numbers.")
        if not dtypes.is_inexact(x.aval.dtype):
            return _false(x)
        x = strong(x)
        return lax.eq(x, constant(value, x))

    question.__name__ = question.__qualname__ = name
    question.__doc__ = f"""Whether x is {value}, element by element.

    x: real numbers of any shape. Returns booleans, False for integers. ValueError for complex
    numbers, NotImplementedError for `out`.

    >>> jnp.{name}(jnp.array([{"-" * (value < 0)}jnp.inf, jnp.nan]))
    Array([ True, False], dtype=bool)
    """
    return question


isposinf = _signed_infinity("isposinf", np.inf)
isneginf = _signed_infinity("isneginf", -np.inf)


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """x with NaN and infinities replaced.

    x: numbers of any shape and dtype, which the result has; integers come back as they are, the
    parts of complex numbers are treated each. nan, posinf, neginf: what stands in for NaN (0), inf
    and -inf (the largest and the smallest finite number). copy: ignored, arrays are immutable. The
    derivative is 0 where x was replaced.

    >>> jnp.nan_to_num(jnp.array([jnp.nan, jnp.inf, 1.0]), posinf=9.0)
    Array([0., 9., 1.], dtype=float32)
    """
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


# ------------------------------------------------------------------ angles
def _weak_of_numbers(x: Any) -> Any:
    """x, whose weak type stays without axes alone, as in JAX."""
    return strong(x) if x.aval.ndim else x


def deg2rad(x: Any, /) -> Any:
    """Degrees as radians: x * pi / 180.

    x: real numbers of any shape; integers and booleans count as floats.

    >>> jnp.deg2rad(jnp.array([0, 90])).round(4)
    Array([0.    , 1.5708], dtype=float32)
    """
    (x,) = promote_inexact(one_array("deg2rad", x))
    return lax.mul(x, weak_of_scalars(math.pi / 180, x))


def rad2deg(x: Any, /) -> Any:
    """Radians as degrees: x * 180 / pi.

    x: real numbers of any shape; integers and booleans count as floats.

    >>> jnp.rad2deg(jnp.array([0, jnp.pi])).round(4)
    Array([  0., 180.], dtype=float32)
    """
    (x,) = promote_inexact(one_array("rad2deg", x))
    return lax.mul(x, weak_of_scalars(180 / math.pi, x))


radians, degrees = deg2rad, rad2deg


def weak_of_scalars(value: Any, x: Any) -> Any:
    """A scalar of x's dtype, weakly typed only beside numbers (no axes), as in JAX."""
    return strong(constant(value, x)) if x.aval.ndim else constant(value, x)


def sinc(x: Any, /) -> Any:
    """sin(pi x) / (pi x), and 1 at 0.

    x: numbers of any shape; integers and booleans count as floats. Its derivatives at 0 are those
    of the series there.

    >>> jnp.sinc(jnp.array([0.0, 0.5])).round(4)
    Array([1.    , 0.6366], dtype=float32)
    """
    x = _weak_of_numbers(promote_inexact(one_array("sinc", x))[0])
    if x.aval.dtype.itemsize == 2:
        return cast(sinc(cast(x, dtypes.float32)), x.aval.dtype, x.aval.weak_type)
    scaled, one = lax.mul(x, constant(math.pi, x)), broadcast_like(constant(1, x), x)
    near = lax.lt(lax.abs(scaled), constant(0.2, lax.abs(scaled)))
    square, series = lax.square(select(near, scaled, zeros_like(scaled))), one
    for n in (12, 10, 8, 6, 4, 2):
        part = lax.mul(square, constant(1 / (n * (n + 1)), x))
        series = lax.sub(one, lax.mul(series, part))
    safe = select(near, one, scaled)
    return select(near, series, lax.div(lax.sin(safe), safe))


def i0(x: Any) -> Any:
    """The modified Bessel function of the first kind, of order 0.

    x: real numbers of any shape; integers and booleans count as floats. Result: x's shape.
    Derivative: `scipy.special.i1`. ValueError for complex numbers. `numjet.scipy.special.i0e` is
    scaled by exp(-|x|) and does not overflow. Computed by `lax.bessel_i0e`.

    >>> jnp.i0(jnp.array([0.0, 1.0])).round(4)
    Array([1.    , 1.2661], dtype=float32)
    """
    (x,) = promote_inexact(one_array("i0", x))
    if dtypes.is_complex(x.aval.dtype):
        raise ValueError("i0 does not support complex numbers.")
    return bessel_i0(x)


@jvp_of_arrays
def bessel_i0(x: Any) -> Any:
    """I₀ of a real floating array."""
    return lax.mul(lax.exp(lax.abs(x)), lax.bessel_i0e(x))


@jvp_of_arrays
def bessel_i1(x: Any) -> Any:
    """I₁ of a real floating array."""
    return lax.mul(lax.exp(lax.abs(x)), lax.bessel_i1e(x))


# I1(x) / x in powers of x²; up to 1 these are all that double precision sees.
_I1_OVER_X = tuple(0.5 / (4**k * math.factorial(k) * math.factorial(k + 1)) for k in range(10))


def _bessel_i1_rule(t: Any, out: Any, x: Any) -> Any:
    """I₀(x) - I₁(x) / x; the scaled functions' own derivatives jump at 0."""
    near = lax.lt(lax.abs(x), constant(1.0, x))
    series = polynomial(_I1_OVER_X, lax.square(where(near, x, 0)))
    safe = where(near, 1, x)
    quotient = where(near, series, lax.div(bessel_i1(safe), safe))
    return lax.mul(t, lax.sub(bessel_i0(x), quotient))


bessel_i0.defjvps(lambda t, out, x: lax.mul(t, bessel_i1(x)))
bessel_i1.defjvps(_bessel_i1_rule)
