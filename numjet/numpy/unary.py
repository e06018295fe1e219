"""Functions of one (or two) floating arguments: exponentials, trigonometry, complex parts, special
combinations such as logaddexp."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from numjet.api.custom import jvp_of_arrays
from numjet.api.shown import FLAG, FORMS, wanted
from numjet.core import dtypes
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.deferred import DeferredArray
from numjet.core.evaluate import LARGE, another
from numjet.core.structural import full
from numjet.numpy import lax_names as lax
from numjet.numpy.elementwise import (
    absolute,
    broadcast_like,
    constant,
    full_scalar,
    multiply,
    prepared,
    remainder,
    select,
    subtract,
    unary,
    zeros_like,
)
from numjet.numpy.fast import eager
from numjet.numpy.logic import (
    as_bool,
    greater,
    less,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
    where,
)
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
    unmixed,
)
from numjet.ops import transcendental
from numjet.ops.arrange import broadcast_shapes
from numjet.ops.complex_ops import conjugate as conjugate_of
from numjet.ops.while_loop import while_loop

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
            return FORMS["_of_natural_log"](value, base)
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
    out = not_equal(imag(x), 0)
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
    x = strong(x)
    if not dtypes.is_inexact(x.aval.dtype):
        return _false(x)
    return lax.eq(lax.abs(x), constant(np.inf, x))


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


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether |a - b| <= atol + rtol * |b|, element by element.

    a, b: numbers, broadcast to one shape (PRNG keys too: whether they are equal). rtol, atol: the
    relative and the absolute tolerance, broadcast too; mind that `b` is the reference. Returns
    booleans. Infinities are close to equal ones only, NaN to NaN only with `equal_nan`. ValueError
    for shapes that do not broadcast. TypeError or ValueError for shapes that do not broadcast.

    >>> jnp.isclose(jnp.array([1.0, 1.1]), jnp.array([1.000001, 1.0]))
    Array([ True, False], dtype=bool)
    """
    if all([dtypes.is_key(getattr(v, "dtype", None)) for v in (a, b)]):
        return lax.eq(*promote_shapes("isclose", a, b))
    x, y = promote_shapes("isclose", *promote_numeric(*unmixed("isclose", a, b)))
    if not dtypes.is_inexact(x.aval.dtype):
        # The tolerance is a float.
        x, y = (cast(v, dtypes.canonical(dtypes.float64)) for v in (x, y))
    kind = dtypes.real_of(x.aval.dtype)
    rtol, atol = (cast(one_array("isclose", v), kind) for v in (rtol, atol))
    if rtol.aval.shape or atol.aval.shape:
        x, y, rtol, atol = promote_shapes("isclose", x, y, rtol, atol)
    close = lax.le(absolute(subtract(x, y)), _plus(atol, multiply(rtol, absolute(y))))
    both_finite = logical_and(isfinite(x), isfinite(y))
    out = (
        select(both_finite, close, lax.eq(x, y))
        if close.aval.shape
        else where(both_finite, close, lax.eq(x, y))
    )
    if equal_nan:
        out = lax.bitwise_or(out, logical_and(isnan(x), isnan(y)))
    return out


def _plus(x: Any, y: Any) -> Any:
    return lax.add(x, y)


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
    return lax.mul(x, _weak_of_scalars(math.pi / 180, x))


def rad2deg(x: Any, /) -> Any:
    """Radians as degrees: x * 180 / pi.

    x: real numbers of any shape; integers and booleans count as floats.

    >>> jnp.rad2deg(jnp.array([0, jnp.pi])).round(4)
    Array([  0., 180.], dtype=float32)
    """
    (x,) = promote_inexact(one_array("rad2deg", x))
    return lax.mul(x, _weak_of_scalars(180 / math.pi, x))


radians, degrees = deg2rad, rad2deg


def _weak_of_scalars(value: Any, x: Any) -> Any:
    """A scalar of x's dtype, weakly typed only beside numbers (no axes), as in JAX."""
    return strong(constant(value, x)) if x.aval.ndim else constant(value, x)


def hypot(x1: Any, x2: Any, /) -> Any:
    """sqrt(x1**2 + x2**2), without overflow on the way.

    x1, x2: real numbers, broadcast to one shape and dtype; integers and booleans count as floats.
    Infinite where either is infinite. The derivatives at (0, 0) are 1/2 each. ValueError for
    complex numbers.

    >>> jnp.hypot(3.0, jnp.array([4.0, 0.0]))
    Array([5., 3.], dtype=float32)
    """
    x, y = prepared("hypot", promote_inexact, x1, x2)
    if dtypes.is_complex(x.aval.dtype):
        raise ValueError("hypot does not support complex numbers.")
    x, y = lax.abs(x), lax.abs(y)
    large, small = lax.max(x, y), lax.min(x, y)
    zero = lax.eq(large, zeros_like(large))
    safe = select(zero, broadcast_like(constant(1, large), large), large)
    ratio = lax.div(small, safe)
    out = lax.mul(large, lax.sqrt(lax.add(_weak_of_scalars(1, ratio), lax.square(ratio))))
    out = select(zero, large, out)
    infinite = lax.bitwise_or(lax.eq(x, constant(np.inf, x)), lax.eq(y, constant(np.inf, y)))
    return select(infinite, broadcast_like(constant(np.inf, out), out), out)


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
    # |x| as x sign(x), whose derivative at 0 is 0, as that of the scaled function there.
    return lax.mul(lax.exp(lax.mul(x, lax.sign(x))), lax.bessel_i0e(x))


# ------------------------------------------------------------------ sums of exponentials
def logaddexp(x1: Any, x2: Any, /) -> Any:
    """log(exp(x1) + exp(x2)), without overflow.

    x1, x2: numbers, broadcast to one shape and dtype; integers and booleans count as floats; for
    complex ones the principal value. The derivatives are the two shares of the sum, which add up to
    1 (NaN of -∞ and -∞). out, where: raise NotImplementedError: use `where`.

    >>> jnp.logaddexp(1000.0, jnp.array([0.0, 1000.0])).round(2)
    Array([1000.  , 1000.69], dtype=float32)
    """
    if FLAG.uses and wanted() and "logaddexp" in FORMS:
        return FORMS["logaddexp"](x1, x2)
    x, y = prepared("logaddexp", promote_inexact, x1, x2)
    return _logaddexp(x, y, 1.0)


def logaddexp2(x1: Any, x2: Any, /) -> Any:
    """log2(2**x1 + 2**x2), without overflow.

    x1, x2: numbers, broadcast to one shape and dtype; integers and booleans count as floats. The
    derivatives are the shares of the sum, which add up to 1. out, where: raise NotImplementedError.

    >>> jnp.logaddexp2(3.0, jnp.array([3.0, 1000.0]))
    Array([   4., 1000.], dtype=float32)
    """
    x, y = prepared("logaddexp2", promote_inexact, x1, x2)
    return _logaddexp(x, y, math.log(2))


@jvp_of_arrays
def _logaddexp_of_complex(x: Any, y: Any) -> Any:
    """The principal value, its imaginary part in (-pi, pi], with all digits of large phases."""
    larger = lax.ge(lax.real(x), lax.real(y))
    high, low = select(larger, x, y), select(larger, y, x)
    rest, angle = lax.log1p(lax.exp(lax.sub(low, high))), lax.imag(high)
    total = lax.add(lax.atan2(lax.sin(angle), lax.cos(angle)), lax.imag(rest))
    principal = subtract(math.pi, remainder(subtract(math.pi, total), 2 * math.pi))
    out = lax.complex(lax.add(lax.real(high), lax.real(rest)), principal)
    return strong(out) if out.aval.shape else out


def _logaddexp_of_complex_jvp(primals: tuple, tangents: tuple) -> tuple:
    out = _logaddexp_of_complex(*primals)       # each share of it is exp of the argument less it
    shares = [lax.mul(t, lax.exp(lax.sub(x, out))) for x, t in zip(primals, tangents)]
    return out, lax.add(*shares)


_logaddexp_of_complex.defjvp(_logaddexp_of_complex_jvp)


def _logaddexp(x: Any, y: Any, unit: float) -> Any:
    """In units of `unit` nats: max + log1p(exp(-|x - y|))."""
    if dtypes.is_complex(x.aval.dtype):
        if unit == 1.0:
            return _logaddexp_of_complex(x, y)
        nats = constant(unit, x)
        return lax.div(_logaddexp_of_complex(lax.mul(x, nats), lax.mul(y, nats)), nats)
    # A choice, not max and -|gap|: each branch is the function itself, so that derivatives of every
    # order are right where the arguments are equal.
    larger = lax.ge(x, y)
    high = select(larger, x, y)
    gap = lax.sub(x, y)
    # Infinity and infinity have no difference; their sum is the answer, and its derivative is 1.
    nothing = lax.eq(high, constant(-np.inf, high))
    infinite = lax.bitwise_or(lax.ne(gap, gap), _infinite(high))
    safe = select(infinite, full_scalar(zeros_like(gap), gap.aval.shape), gap)
    falling = select(larger, lax.neg(safe), safe)
    if unit != 1.0:
        falling = lax.mul(falling, _weak_of_scalars(unit, falling))
    # The logarithm of no terms is log 0, which has no derivative.
    terms = lax.exp(select(nothing, lax.add(x, y), falling))
    rest = lax.log1p(select(nothing, lax.sub(terms, constant(1, terms)), terms))
    if unit != 1.0:
        rest = lax.div(rest, _weak_of_scalars(unit, rest))
    # Where the sum is NaN so is its derivative: it is multiplied by what made it NaN.
    one = full_scalar(constant(1, gap), gap.aval.shape)
    sick = select(lax.ne(x, x), x, select(lax.ne(y, y), y, one))
    plain = select(lax.ne(gap, gap), lax.mul(lax.add(x, y), sick), high)
    known = lax.bitwise_and(infinite, lax.bitwise_not(nothing))
    return select(known, plain, lax.add(high, rest))


def _infinite(x: Any) -> Any:
    return lax.eq(lax.abs(x), constant(np.inf, x))


# ------------------------------------------------------------------ floats by parts


def heaviside(x1: Any, x2: Any, /) -> Any:
    """0 where x1 is negative, 1 where it is positive, x2 where it is zero.

    x1, x2: real numbers, broadcast to one shape and dtype; integers and booleans count as floats.
    NaN where x1 is NaN. The derivative with respect to x1 is zero. TypeError for complex numbers.

    >>> jnp.heaviside(jnp.array([-1.0, 0.0, 1.0]), 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    x, y = as_arrays("heaviside", x1, x2)
    number = not x.aval.ndim
    x, y = promote_shapes("heaviside", *promote_inexact(x, y), any_rank=True)
    if dtypes.is_complex(x.aval.dtype):
        raise TypeError(f"heaviside: lt does not accept dtype {x.aval.dtype}: it has no order.")
    if not number:
        x, y = strong(x), strong(y)
    zero = zeros_like(x)
    step = where(lax.lt(x, zero), zero, where(lax.gt(x, zero), constant(1, x), y))
    return where(isnan(x), x, step)


# ------------------------------------------------------------------ ignoring NaN
def fmax(x1: Any, x2: Any) -> Any:
    """The larger of x1 and x2, element by element; the other one where one is NaN.

    x1, x2: arrays or numbers, broadcast to one shape and dtype, which the result has. Where both
    are equal, x2 gets the derivative.

    >>> jnp.fmax(jnp.array([1.0, jnp.nan]), 0.5)
    Array([1. , 0.5], dtype=float32)
    """
    x, y = promote_dtypes(*unmixed("fmax", x1, x2))
    return where(logical_or(greater(x, y), isnan(y)), x, y)


def fmin(x1: Any, x2: Any) -> Any:
    """The smaller of x1 and x2, element by element; the other one where one is NaN.

    x1, x2: arrays or numbers, broadcast to one shape and dtype, which the result has. Where both
    are equal, x2 gets the derivative.

    >>> jnp.fmin(jnp.array([1.0, jnp.nan]), 0.5)
    Array([0.5, 0.5], dtype=float32)
    """
    x, y = promote_dtypes(*unmixed("fmin", x1, x2))
    return where(logical_or(less(x, y), isnan(y)), x, y)


# ------------------------------------------------------------------ integers
def gcd(x1: Any, x2: Any) -> Any:
    """The greatest common divisor, never negative: Euclid's algorithm, element by element.

    x1, x2: integers, broadcast to one shape and dtype, which the result has. That of 0 and x is
    |x|. ValueError for other dtypes.

    >>> jnp.gcd(jnp.array([12, -18, 0]), 8)
    Array([4, 2, 8], dtype=int32)
    """
    x, y = _integers("gcd", x1, x2, any_rank=True)
    if type(x) is type(y) is ArrayImpl and eager():
        return ArrayImpl(np.asarray(np.gcd(x._value, y._value)), x.aval)

    def step(state: tuple) -> tuple:
        x, y = state
        safe = where(as_bool(y), y, constant(1, y))
        return where(as_bool(y), y, x), where(as_bool(y), lax.rem(x, safe), y)

    # Euclid's algorithm, until the last element has its answer.
    state = while_loop(lambda state: not_equal(state[1], 0).any(), step,
                           (absolute(x), absolute(y)))
    return absolute(state[0])  # the least integer stays negative, and leaves such remainders


def lcm(x1: Any, x2: Any) -> Any:
    """The least common multiple, never negative, element by element; 0 where either is 0.

    x1, x2: integers, broadcast to one shape and dtype, which the result has. ValueError for other
    dtypes. The divisor is found by Euclid's algorithm.

    >>> jnp.lcm(jnp.array([4, 6, 0]), 10)
    Array([20, 30,  0], dtype=int32)
    """
    x, y = _integers("lcm", x1, x2)
    x, y = absolute(x), absolute(y)
    divisor = gcd(x, y)
    safe = where(as_bool(divisor), divisor, constant(1, divisor))
    return where(as_bool(divisor), multiply(x, lax.div(y, safe)), constant(0, x))


def _integers(name: str, x1: Any, x2: Any, any_rank: bool = False) -> list[Any]:
    x, y = promote_dtypes(*as_arrays(name, x1, x2))
    if not dtypes.is_integer(x.aval.dtype):
        raise ValueError(f"{name}: arguments must be integers, got {x.aval.dtype}.")
    shape = broadcast_shapes(x.aval.shape, y.aval.shape)
    if shape:
        x, y = strong(x), strong(y)  # weak of numbers alone, as in JAX
    x, y = promote_shapes(name, x, y, any_rank=any_rank)
    return [v if v.aval.shape == shape else full_scalar(v, shape) for v in (x, y)]
