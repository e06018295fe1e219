"""Elementwise arithmetic: sums and products, division and remainders, powers, rounding.

Each promotes dtypes, broadcasts shapes and binds one primitive (or a few). `unary` and `binary`
make the simple ones, here and in the modules above (`logic`, `unary`, `float_parts`), with the
shortcut of `fast` for concrete operands. What would break it: an import of those modules, and
checks of values, which traced operands do not have.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.api.compiled.shown import FLAG, Shown, apart, as_call, in_place, kept, wanted
from numjet.api.eager.large import as_program
from numjet.base import config
from numjet.core import dtypes, hooks
from numjet.core.array import Array, ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.deferred import DeferredArray, Plan
from numjet.core.evaluate import LARGE, another
from numjet.core.memo import Memo
from numjet.core.primitive import REGISTRY
from numjet.core.trace import Tracer, current_trace
from numjet.native.deferral import usable
from numjet.native.known import KnownCalls
from numjet.numpy import lax_names as lax
from numjet.numpy.converted import Conversions
from numjet.numpy.fast import (
    QUIET,
    eager,
    fast_binary,
    fast_unary,
    fix,
    narrowed,
    quick,
    quiet_enter,
    quiet_leave,
)
from numjet.numpy.promote import (
    cast,
    float_dtype,
    inexact as inexact_array,
    one_array,
    promote_dtypes,
    promote_inexact,
    promote_numeric,
    promote_shapes,
    promoted,
    refuse,
    strong,
    unmixed,
)
from numjet.transforms.eager import LinearTracer


def named(name: str, doc: str, function: Callable) -> Callable:
    """Give a made function its name and docstring."""
    function.__name__ = function.__qualname__ = name
    function.__module__ = "numjet.numpy"
    function.__doc__ = doc
    return function


def unary(
    name: str,
    doc: str,
    operation: Callable,
    primitive: str,
    inexact: bool = False,
) -> Callable:
    """`operation` on one array; `inexact` makes integers and booleans floats first."""

    def slow(x: Any) -> Any:
        x = one_array(name, x)
        return operation(inexact_array(x) if inexact else x)

    return named(name, doc, quick(fast_unary(primitive, slow), 1))


def prepared(name: str, promote: Callable, x: Any, y: Any) -> list[Any]:
    """Two arguments as arrays of one dtype and compatible shapes."""
    return promote_shapes(name, *promote(*unmixed(name, x, y)))


def binary(
    name: str,
    doc: str,
    operation: Callable,
    primitive: str,
    promote: Callable = promote_dtypes,
    often: bool = False,
) -> Callable:
    """`operation` on two arrays of one dtype and compatible shapes; often: as of `quick`."""

    def slow(x: Any, y: Any) -> Any:
        return operation(*prepared(name, promote, x, y))

    return named(name, doc, quick(fast_binary(primitive, slow), 2, often))


def zeros_like(x: Any) -> Any:
    """A scalar zero of x's dtype (elementwise operations repeat it)."""
    return constant(0, x)


def constant(value: Any, x: Any) -> Any:
    """A scalar of x's dtype and weak type."""
    aval = x.aval
    return ArrayImpl(
        np.asarray(value).astype(aval.dtype), ShapedArray((), aval.dtype, aval.weak_type)
    )


# ------------------------------------------------------------------ arithmetic
def _add(x: Any, y: Any) -> Any:
    return lax.bitwise_or(x, y) if x.aval.dtype == dtypes.bool_ else lax.add(x, y)


def _multiply(x: Any, y: Any) -> Any:
    return lax.bitwise_and(x, y) if x.aval.dtype == dtypes.bool_ else lax.mul(x, y)


add = binary("add", """x + y, element by element; of booleans `or`.

    x, y: arrays or numbers of any dtype, broadcast to one shape and dtype, which the result has.
    Integers wrap around where they overflow.
    out, where: raise NotImplementedError: use `where`.

    >>> jnp.add(jnp.array([[1], [2]]), jnp.array([0.5, 1.5]))
    Array([[1.5, 2.5],
           [2.5, 3.5]], dtype=float32)
    """, _add, "add")
subtract = binary("subtract", """x - y, element by element.

    x, y: numbers of any dtype but bool, broadcast to one shape and dtype, which the result has.
    Integers wrap around, unsigned ones below 0. TypeError for two booleans: use `logical_xor`.
    out, where: raise NotImplementedError: use `where`.

    >>> jnp.subtract(jnp.array([5, 2]), jnp.array([[1], [2]]))
    Array([[4, 1],
           [3, 0]], dtype=int32)
    """, lax.sub, "sub")
multiply = binary("multiply", """x * y, element by element; of booleans `and`.

    x, y: arrays or numbers of any dtype, broadcast to one shape and dtype, which the result has.
    Integers wrap around where they overflow.
    out, where: raise NotImplementedError: use `where`.

    >>> jnp.multiply(jnp.array([1.0, 2.0]), 3)
    Array([3., 6.], dtype=float32)
    """, _multiply, "mul")
divide = binary("divide", """x / y, element by element, in floats.

    x, y: arrays or numbers of any dtype, broadcast to one shape and dtype; integers and booleans
    count as floats. By zero the result is an infinity or NaN, without a warning.

    >>> jnp.divide(jnp.array([1, 0, -1]), 0)
    Array([ inf,  nan, -inf], dtype=float32)
    """, lax.div, "div", promote_inexact)
true_divide = divide
maximum = binary("maximum", """The larger of x and y, element by element; NaN where either is NaN.

    x, y: arrays or numbers of any dtype, broadcast to one shape and dtype, which the result has.
    Complex numbers are compared by real part, then imaginary part. Where both are equal, each gets
    half of the derivative. See `fmax` for one that ignores NaN.
    out, where: raise NotImplementedError: use `where`.

    >>> jnp.maximum(jnp.array([1.0, 5.0, jnp.nan]), 3.0)
    Array([ 3.,  5., nan], dtype=float32)
    """, lax.max, "max")
minimum = binary("minimum", """The smaller of x and y, element by element; NaN where either is NaN.

    x, y: arrays or numbers of any dtype, broadcast to one shape and dtype, which the result has.
    Complex numbers are compared by real part, then imaginary part. Where both are equal, each gets
    half of the derivative. See `fmin` for one that ignores NaN.
    out, where: raise NotImplementedError: use `where`.

    >>> jnp.minimum(jnp.array([1.0, 5.0, jnp.nan]), 3.0)
    Array([ 1.,  3., nan], dtype=float32)
    """, lax.min, "min")
arctan2 = binary(
    "arctan2",
    """The angle of the point with abscissa y and ordinate x, in (-pi, pi]: arctan(x / y) in the
    right quadrant.

    x, y: numbers, broadcast to one shape and dtype; integers and booleans count as floats. Mind the
    order: the first argument is the ordinate, as in NumPy. The sign of a zero ordinate says on
    which side of the cut the angle lies. At the origin the derivatives are NaN.

    >>> jnp.arctan2(1.0, jnp.array([1.0, 0.0, -1.0])).round(4)
    Array([0.7854, 1.5708, 2.3562], dtype=float32)
    """,
    lax.atan2,
    "atan2",
    promote_inexact,
)


def nextafter(x: Any, y: Any, /) -> Any:
    """The next number after x in the direction of y that the dtype can represent.

    x, y: real numbers, broadcast to one shape and dtype; integers and booleans count as floats. x
    where the two are equal, NaN where either is NaN. Its derivatives are zero. TypeError for
    complex numbers.

    >>> jnp.nextafter(jnp.float32(1), 2) - 1
    Array(1.1920929e-07, dtype=float32)
    """
    return lax.nextafter(*prepared("nextafter", promote_inexact, x, y))


negative = unary("negative", """-x, element by element.

    x: numbers of any dtype but bool (TypeError: use `logical_not`), which the result has, with x's
    shape. Unsigned integers wrap around.
    out, where: raise NotImplementedError: use `where`.

    >>> jnp.negative(jnp.array([1, -2]))
    Array([-1,  2], dtype=int32)
    """, lax.neg, "neg")
sign = unary("sign", """-1, 0 or 1, as x is negative, zero or positive; of complex numbers x / |x|,
    or 0.

    x: numbers of any dtype but bool (TypeError), which the result has, with x's shape. NaN stays
    NaN. The derivative is zero; that of complex numbers is of x / |x|. NumPy 1 gave the sign of the
    real part for these.

    >>> jnp.sign(jnp.array([-2.0, 0.0, 5.0])), jnp.sign(jnp.array([3 + 4j]))
    (Array([-1.,  0.,  1.], dtype=float32), Array([0.6+0.8j], dtype=complex64))
    """, lax.sign, "sign")
square = unary("square", """x * x, element by element.

    x: numbers of any shape and dtype, which the result has; booleans become integers. NumPy makes
    them int8.

    >>> jnp.square(jnp.array([-2, 3]))
    Array([4, 9], dtype=int32)
    """, lambda x: lax.square(promote_numeric(x)[0]), "square")


def positive(x: Any, /) -> Any:
    """+x: x itself as an Array.

    x: an array or number of any dtype, booleans included (NumPy refuses those).

    >>> jnp.positive(jnp.array([-1, 2]))
    Array([-1,  2], dtype=int32)
    """
    return another(one_array("positive", x))


def absolute_of(x: Any) -> Any:
    dtype = x.aval.dtype
    return x if dtype == dtypes.bool_ or dtypes.kind(dtype) == "u" else lax.abs(x)


absolute = unary("absolute", """|x|, element by element: the size of complex numbers, as real ones.

    x: numbers of any shape. The dtype stays, complex64 becomes float32 and complex128 float64;
    booleans and unsigned integers come back as they are. The smallest signed integer has no
    positive counterpart and stays negative. The derivative at 0 is 1.

    >>> jnp.abs(jnp.array([-1.5, 2.0])), jnp.abs(jnp.array([3 + 4j]))
    (Array([1.5, 2. ], dtype=float32), Array([5.], dtype=float32))
    """, absolute_of, "abs")
abs = absolute


def fabs(x: Any, /) -> Any:
    """|x| as a float.

    x: real numbers of any shape; integers and booleans count as floats. TypeError for complex
    numbers: use `abs`. The derivative at 0 is 1.

    >>> jnp.fabs(jnp.array([-1, 2]))
    Array([1., 2.], dtype=float32)
    """
    (x,) = promote_inexact(one_array("fabs", x))
    if dtypes.is_complex(x.aval.dtype):
        raise TypeError(f"fabs does not support complex numbers, got {x.aval.dtype}. Use abs.")
    return lax.abs(x)


def reciprocal(x: Any, /) -> Any:
    """1 / x, element by element.

    x: numbers of any shape; integers and booleans count as floats (NumPy divides them as integers).
    An infinity for zero.

    >>> jnp.reciprocal(jnp.array([2, 4]))
    Array([0.5 , 0.25], dtype=float32)
    """
    (x,) = promote_inexact(one_array("reciprocal", x))
    return lax.integer_pow(x, -1)


def _signs_differ(remainder: Any, y: Any) -> Any:
    zero = zeros_like(y)
    return lax.bitwise_and(
        lax.ne(lax.lt(remainder, zero), lax.lt(y, zero)), lax.ne(remainder, zero)
    )


_NUMPY_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def _quick_division(ufunc: np.ufunc, x: Any, y: Any) -> ArrayImpl | None:
    """The NumPy function where it agrees: concrete x, y a non-zero finite number that keeps x's
    dtype, or both floats of one aval, or integers of one without a division by zero."""
    if type(x) is not ArrayImpl or x.aval.size >= LARGE or x.aval.narrow or not eager():
        return None
    kind = x.aval.dtype.kind
    whole = kind in "iu" and not x.aval.weak_type
    if whole and type(y) is ArrayImpl and y.aval is x.aval and y._value.all():
        with np.errstate(all="ignore"):
            return ArrayImpl(np.asarray(ufunc(x._value, y._value)), x.aval)
    if type(y) is ArrayImpl and y.aval is x.aval and x.aval.dtype in _NUMPY_FLOATS:
        if x.aval.weak_type:
            return None
        with np.errstate(all="ignore"):
            return ArrayImpl(np.asarray(ufunc(x._value, y._value)), x.aval)
    if type(y) not in (int, float) or not y:
        return None
    if x.aval.weak_type or narrowed(x.aval) or not (
        type(y) is int and kind in "if" or type(y) is float and kind == "f" and math.isfinite(y)
    ):
        return None
    try:
        with np.errstate(all="ignore"):
            return ArrayImpl(np.asarray(ufunc(x._value, x.aval.dtype.type(y))), x.aval)
    except OverflowError:
        return None


def remainder(x1: Any, x2: Any, /) -> Any:
    """The remainder of dividing x1 by x2, with the sign of x2: x1 - x2 * floor(x1 / x2).

    x1, x2: real numbers, broadcast to one shape and dtype, which the result has; booleans become
    integers. By zero it is 0 for integers and NaN for floats. Derivatives: 1 with respect to x1,
    -floor(x1 / x2) with respect to x2. TypeError for complex numbers. `fmod` has the sign of x1.

    >>> jnp.remainder(jnp.array([5, -5]), 3)
    Array([2, 1], dtype=int32)
    """
    quick = _quick_division(np.remainder, x1, x2)
    if quick is not None:
        return quick
    x, y = prepared("remainder", promote_numeric, x1, x2)
    if dtypes.kind(x.aval.dtype) in "iu":
        # The remainder by one is zero for every x, which stands for the one by zero.
        y = lax.select(lax.eq(y, zeros_like(y)), broadcast_like(constant(1, y), y), y)
        if dtypes.kind(x.aval.dtype) == "u":
            return lax.rem(x, y)
    rem = lax.rem(x, y)
    if dtypes.kind(x.aval.dtype) in "iu":
        return select(_signs_differ(rem, y), lax.add(rem, y), rem)
    return _signed_zero(select(_signs_differ(rem, y), lax.add(rem, y), rem), y)


def _signed_zero(rem: Any, y: Any) -> Any:
    """`rem`, where it is zero with the sign of y. Its derivative stays, and so does its unit in
    traces that have them: nothing is added to `rem` but itself."""
    zero = zeros_like(rem)
    double = lax.add(rem, rem)
    # Zeros of both signs, whose derivatives are 1: 2 rem - rem, and -(rem - 2 rem).
    signed = select(lax.lt(y, zero), lax.neg(lax.sub(rem, double)), lax.sub(double, rem))
    return select(lax.eq(rem, zero), signed, rem)


mod = remainder


def broadcast_like(scalar: Any, x: Any) -> Any:
    """A scalar at x's shape."""
    return full_scalar(scalar, x.aval.shape)


def full_scalar(scalar: Any, shape: tuple[int, ...]) -> Any:
    """A scalar repeated to `shape`."""
    return lax.broadcast_in_dim(scalar, shape, ()) if shape else scalar


def select(predicate: Any, on_true: Any, on_false: Any) -> Any:
    """`where` for operands of one dtype; those without dimensions are repeated."""
    shape = max(predicate.aval.shape, on_true.aval.shape, on_false.aval.shape, key=len)
    on_true = on_true if on_true.aval.shape == shape else full_scalar(on_true, shape)
    on_false = on_false if on_false.aval.shape == shape else full_scalar(on_false, shape)
    if predicate.aval.shape not in ((), shape):
        predicate = full_scalar(predicate, shape)
    return lax.select(predicate, on_true, on_false)


def fmod(x1: Any, x2: Any, /) -> Any:
    """The remainder of dividing x1 by x2, with the sign of x1: x1 - x2 * trunc(x1 / x2).

    x1, x2: real numbers, broadcast to one shape and dtype, which the result has; booleans become
    integers. By zero it is 0 for integers and NaN for floats. Derivatives: 1 with respect to x1,
    -trunc(x1 / x2) with respect to x2. TypeError for complex numbers. `remainder` has the sign of
    x2.

    >>> jnp.fmod(jnp.array([5, -5]), 3)
    Array([ 2, -2], dtype=int32)
    """
    x, y = prepared("fmod", promote_numeric, x1, x2)
    if dtypes.kind(x.aval.dtype) in "iu":
        y = lax.select(lax.eq(y, zeros_like(y)), broadcast_like(constant(1, y), y), y)
    return lax.rem(x, y)


def floor_divide(x1: Any, x2: Any, /) -> Any:
    """The largest whole number not above x1 / x2.

    x1, x2: real numbers, broadcast to one shape and dtype, which the result has (floats stay
    floats); booleans become integers. Integers are divided exactly; by zero their result means
    nothing, where NumPy warns and gives 0, and that of floats is an infinity or NaN. The
    derivatives are zero. TypeError for complex numbers.

    >>> jnp.floor_divide(jnp.array([7, -7]), 2)
    Array([ 3, -4], dtype=int32)
    """
    quick = _quick_division(np.floor_divide, x1, x2)
    if quick is not None:
        return quick
    x, y = prepared("floor_divide", promote_numeric, x1, x2)
    kind = dtypes.kind(x.aval.dtype)
    if kind == "u":
        return lax.div(x, y)
    if kind == "i":
        quotient = lax.div(x, y)
        down = lax.bitwise_and(
            lax.ne(lax.sign(x), lax.sign(y)), lax.ne(lax.rem(x, y), zeros_like(x))
        )
        return select(down, lax.sub(quotient, constant(1, x)), quotient)
    if kind == "c":
        raise TypeError(
            "floor_divide does not support complex numbers: they have no order. Use divide."
        )
    return _float_divmod(x, y)[0]


def divmod(x1: Any, x2: Any, /) -> tuple[Any, Any]:
    """(floor_divide(x1, x2), remainder(x1, x2)) in one step.

    x1, x2: real numbers, broadcast to one shape and dtype, which both results have. By zero and for
    derivatives see these two functions. TypeError for complex numbers.

    >>> jnp.divmod(jnp.array([7, -7]), 2)
    (Array([ 3, -4], dtype=int32), Array([1, 1], dtype=int32))
    """
    x, y = prepared("divmod", promote_numeric, x1, x2)
    if dtypes.kind(x.aval.dtype) in "iu":
        return floor_divide(x, y), remainder(x, y)
    if x.aval.dtype.kind == "c":
        raise TypeError("divmod does not support complex numbers: they have no order.")
    return _float_divmod(x, y)


def _float_divmod(x: Any, y: Any) -> tuple[Any, Any]:
    rem = lax.rem(x, y)
    zero = zeros_like(y)
    # By zero the quotient is the infinity (or NaN) of x / 0.
    numerator = select(lax.eq(y, zero), x, lax.sub(x, rem))
    quotient = lax.div(numerator, y)
    down = _signs_differ(rem, y)
    rem = _signed_zero(select(down, lax.add(rem, y), rem), y)
    whole = lax.round(select(down, lax.sub(quotient, constant(1, x)), quotient))
    # A quotient of zero has the sign of x / y, which is finite then.
    zero = zeros_like(y)
    nothing = lax.eq(whole, zeros_like(whole))
    return select(nothing, lax.mul(lax.round(lax.mul(lax.div(x, y), zero)), zero), whole), rem


# ------------------------------------------------------------------ powers
# Powers known to go into one primitive unchanged; see `fast`.
_powers: dict[tuple, ShapedArray] = Memo("powers")
integer_pow_p = REGISTRY["integer_pow"]
_integer_pow: Any = integer_pow_p.reference


def power(x1: Any, x2: Any, /) -> Any:
    """x1 ** x2, element by element.

    x1, x2: numbers, broadcast to one shape and dtype, which the result has; booleans become
    integers. An exponent that is a Python integer becomes repeated multiplication, and so do
    integer arrays; their products wrap around. Negative numbers to fractions are NaN: make them
    complex. Derivatives: x2 * x1 ** (x2 - 1), and log(x1) * x1 ** x2 (NaN for negative x1) with
    respect to a floating exponent. Raises TypeError for an integer raised to a negative Python
    integer; of negative integers in an array of exponents the low 6 bits count, as in JAX.

    >>> jnp.power(jnp.array([2.0, 4.0]), jnp.array([3, -1]))
    Array([8.  , 0.25], dtype=float32)
    """
    if type(x2) is int and (type(x1) is LinearTracer or type(x1) is DeferredArray):
        return _power_calls.run(x1, x2)
    if type(x2) is int or isinstance(x2, int) and not isinstance(x2, bool):
        if type(x1) is ArrayImpl:
            aval = _powers.get((x1.aval, x2))
            if aval is not None and eager():
                if x2 == 2:
                    return multiply(x1, x1)
                token = quiet_enter(QUIET)
                try:
                    value = _integer_pow(x1._value, y=x2)
                finally:
                    quiet_leave(token)
                return ArrayImpl(fix(value, aval), aval)
            out = _static_power(x1, x2)
            if type(out) is ArrayImpl and out.aval is x1.aval and out.aval.size < LARGE:
                _powers[x1.aval, x2] = out.aval
            return out
        return _static_power(one_array("power", x1), x2)
    if type(x1) is not ArrayImpl or type(x2) is not float and type(x2) is not ArrayImpl:
        return _any_power(x1, x2)
    kind: Any = x2.aval if type(x2) is ArrayImpl else float
    run = _float_powers.get(kinds := (x1.aval, kind))
    if run and eager():
        return run(x1, x2)
    out = _any_power(x1, x2)
    inexact = kind is float or dtypes.is_inexact(kind.dtype)  # others may be looked at
    if run is None and inexact and type(out) is ArrayImpl and eager():
        _float_powers.learn(kinds, kinds, (x1, x2), out)
    return out


def _any_power(x1: Any, x2: Any) -> Any:
    x, y = unmixed("power", x1, x2)
    if type(y) is ArrayImpl and not y.aval.shape and not dtypes.is_inexact(y.aval.dtype):
        whole = dtypes.is_integer(x.aval.dtype) and isinstance(x2, Array)
        if whole and int(y) < 0 and not current_trace().at_once:
            return _integer_power(*prepared("power", promote_numeric, x, y))  # its low bits count
        if dtypes.is_integer(y.aval.dtype) or type(x2) is bool:
            return _static_power(x, int(y))  # whose dtype does not count, as in JAX
    dtype, weak = promoted(x, y)
    x2_weak = y.aval.weak_type
    if dtypes.is_integer(dtype) or dtype == dtypes.bool_:
        x, y = prepared("power", promote_numeric, x, y)
        return _integer_power(x, y)
    if dtypes.is_integer(y.aval.dtype) and dtypes.is_inexact(x.aval.dtype):
        # The exponent stays an integer: exact, and no tangent flows through it.
        if narrowed(x.aval):
            dtype = x.aval.dtype
        if config.jax_form():
            x, y = promote_shapes("power", x, y)
            if not (isinstance(x, Tracer) and x.differentiated()):
                cast(y, dtype, weak)  # of which JAX makes nothing
            return lax.pow(cast(x, dtype, x.aval.weak_type), y)
        y = cast(y, dtypes.int32) if y.aval.dtype.itemsize < 4 else strong(y)
        x, y = promote_shapes("power", cast(x, dtype, weak), y)
        out = lax.pow(x, y)
        return cast(out, dtype, True) if weak and x2_weak else out
    x, y = prepared("power", promote_inexact, x, y)
    return lax.pow(x, y)


pow = power


def _power_again(x: Any, exponent: int) -> Any:
    """`power` of an array that waits or is linearized."""
    aval = x.aval  # its value may be there afterwards, and it an array as any other
    out = _static_power(x, exponent)
    if exponent != 1 and dtypes.is_floating(aval.dtype) and usable():
        params = {"y": exponent}
        if type(out) is DeferredArray:
            plan = Plan([aval], [], [(integer_pow_p, params, (0,), out.aval)])
            if hooks.prepare(plan):
                _power_calls.learn((x, exponent), plan)
        elif type(out) is LinearTracer and type(x) is LinearTracer:
            _power_calls.learn_linear((x, exponent), integer_pow_p, params)
    return out


_power_calls = KnownCalls(_power_again, "power")
_float_powers = Conversions(REGISTRY["pow"], _any_power)


def _static_power(x: Any, exponent: int) -> Any:
    dtypes.refuse_keys("power", x.aval.dtype)
    if x.aval.dtype == dtypes.bool_:
        (x,) = promote_numeric(x)
    if exponent < 0 and dtypes.is_integer(x.aval.dtype):
        raise TypeError(
            f"Integers cannot be raised to negative powers: power got {x.aval} ** "
            f"{exponent}. Make one a float: x ** {exponent}.0, or x.astype(float)."
        )
    if exponent == 2:
        return lax.integer_pow(x, 2)
    return lax.integer_pow(x, exponent)


def _integer_power(x: Any, y: Any) -> Any:
    if FLAG.uses and wanted() and (not y.aval.shape or y.aval.shape == x.aval.shape):
        return in_place("of integer powers", x, y)
    return _by_squaring(x, y)


@as_program
def _by_squaring(x: Any, y: Any) -> Any:
    """x ** y for integer arrays by repeated squaring: one product for each bit of the exponent."""
    shape = max(x.aval.shape, y.aval.shape, key=len)
    x, y = (a if a.aval.shape == shape else full_scalar(a, shape) for a in (strong(x), strong(y)))
    if dtypes.kind(y.aval.dtype) == "i":
        # There is no integer for negative exponents: JAX takes the low 6 bits of every exponent.
        y = select(lax.lt(y, zeros_like(y)), lax.bitwise_and(y, constant(63, y)), y)
    return lax.pow(x, y)


def float_power(x: Any, y: Any, /) -> Any:
    """x ** y, computed in floats.

    x, y: numbers, broadcast to one shape and dtype; integers and booleans count as floats of the
    default width (NumPy computes in float64 at least). Negative bases with fractional exponents are
    NaN.

    >>> jnp.float_power(2, jnp.array([-1, 3]))
    Array([0.5, 8. ], dtype=float32)
    """
    x, y = prepared("float_power", promote_inexact, x, y)
    return lax.pow(x, y)


# ------------------------------------------------------------------ rounding
NEAREST_EVEN = 1  # the rounding method of lax.round: to the nearest, halves to even


def _rounding(name: str, doc: str, operation: Callable, primitive: str) -> Callable:
    def slow(x: Any) -> Any:
        x = one_array(name, x)
        if dtypes.is_integer(x.aval.dtype) or x.aval.dtype == dtypes.bool_:
            return x
        if dtypes.is_complex(x.aval.dtype):
            raise TypeError(f"{name} does not support complex numbers. Round .real and .imag.")
        return operation(x)

    return named(name, doc, quick(fast_unary(primitive, slow), 1))


floor = _rounding("floor", """The largest whole number not above x.

    x: real numbers of any shape; floats stay floats, integers and booleans come back as they are.
    The derivative is zero. TypeError for complex numbers.

    >>> jnp.floor(jnp.array([1.7, -1.2]))
    Array([ 1., -2.], dtype=float32)
    """, lax.floor, "floor")
ceil = _rounding("ceil", """The smallest whole number not below x.

    x: real numbers of any shape; floats stay floats, integers and booleans come back as they are.
    The derivative is zero. TypeError for complex numbers.

    >>> jnp.ceil(jnp.array([1.7, -1.2]))
    Array([ 2., -1.], dtype=float32)
    """, lax.ceil, "ceil")


def trunc(x: Any) -> Any:
    """x without its fractional part: rounded towards zero.

    x: real numbers of any shape; floats stay floats, integers and booleans come back as they are.
    The derivative is zero. TypeError for complex numbers.

    >>> jnp.trunc(jnp.array([1.7, -1.2]))
    Array([ 1., -1.], dtype=float32)
    """
    x = one_array("trunc", x)
    if not dtypes.is_inexact(x.aval.dtype):
        return x
    return select(lax.lt(x, zeros_like(x)), lax.ceil(x), lax.floor(x))


def rint(x: Any, /) -> Any:
    """x rounded to the nearest whole number, halves to the even one.

    x: numbers of any shape; integers and booleans become floats, and the parts of complex numbers
    are rounded each. The derivative is zero.

    >>> jnp.rint(jnp.array([0.5, 1.5, 2.2]))
    Array([0., 2., 2.], dtype=float32)
    """
    if FLAG.uses and wanted():
        return as_call("rint", x)
    x = one_array("rint", x)
    dtypes.refuse_keys("rint", x.aval.dtype)
    x = x if dtypes.is_inexact(x.aval.dtype) else cast(x, float_dtype())
    if dtypes.is_complex(x.aval.dtype):
        return lax.complex(rint(lax.real(x)), rint(lax.imag(x)))
    return lax.round(x, NEAREST_EVEN)


def round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """`a` rounded to `decimals` places, halves to the even digit.

    a: numbers of any shape and dtype, which the result has; integers come back as they are, the
    parts of complex numbers are rounded each. decimals: a Python integer, negative for tens and
    hundreds. Decimal fractions that are not exact in binary are rounded as what they are. The
    derivative is zero. Raises NotImplementedError for integers with negative decimals and for
    `out`, ValueError for booleans.

    >>> jnp.round(jnp.array([2.5, 3.14159]), 2), jnp.round(jnp.array([1250.0]), -2)
    (Array([2.5 , 3.14], dtype=float32), Array([1200.], dtype=float32))
    """
    refuse("round", out=out)
    x = one_array("round", a)
    dtypes.refuse_keys("round", x.aval.dtype)
    decimals = int(decimals) if isinstance(decimals, Array) else operator.index(decimals)
    dtype = x.aval.dtype
    if dtypes.is_bool(dtype):
        raise ValueError("round: booleans are not rounded. Convert them with .astype(int).")
    if FLAG.uses and wanted() and (decimals >= 0 or dtypes.is_floating(dtype)):
        return as_call("round", x, decimals)
    if not dtypes.is_inexact(dtype):
        if decimals < 0:
            raise NotImplementedError(
                "round of an integer is not implemented for decimals < 0. "
                "Round floats: round(x.astype(float), decimals)."
            )
        return x
    if dtypes.is_complex(dtype):
        return lax.complex(round(lax.real(x), decimals), round(lax.imag(x), decimals))
    nearest = NEAREST_EVEN
    if not decimals:
        return lax.round(x, nearest)
    wide = cast(x, float_dtype()) if dtype.itemsize < 4 else x
    if decimals > np.finfo(wide.aval.dtype).precision + LARGEST_SCALED:
        return cast(another(x), dtype, x.aval.weak_type and not x.aval.shape)
    factor = 10.0 ** builtins.abs(decimals)
    scale = constant(factor, wide)
    if decimals > 0:
        rounded = lax.div(lax.round(lax.mul(wide, scale), nearest), scale)
    else:
        rounded = lax.mul(lax.round(lax.div(wide, scale), nearest), scale)
    # As JAX: an array that is scaled is of its dtype, a scalar remains weak.
    return cast(rounded, dtype, x.aval.weak_type and not x.aval.shape)


around = round
# Beyond this many digits more than a dtype has, a number with so many decimals is what it was.
LARGEST_SCALED = 24


def clip(
    arr: Any = None,
    /,
    min: Any = None,
    max: Any = None,
) -> Any:
    """`arr` limited to [min, max], element by element.

    arr, min, max: real numbers, broadcast to one shape and dtype, which the result has. Either
    bound may be missing. Where min > max the result is max. At a bound, the array and the bound get
    half of the derivative each. ValueError for complex numbers and without an array. NumPy's
    a_min, a_max are `min`, `max`.

    >>> jnp.clip(jnp.arange(5), 1, 3)
    Array([1, 1, 2, 3, 3], dtype=int32)
    """
    if arr is None:
        raise ValueError("clip: no array was given. Call clip(x, min, max).")
    if FLAG.uses and kept():
        return apart(clip, clip, (arr, min, max), {})
    x = one_array("clip", arr)
    for bound in (x, min, max):
        if type(bound) in (int, float) or bound is None:
            continue
        if dtypes.is_complex(one_array("clip", bound).aval.dtype):
            raise ValueError(
                "clip: Complex values have no ordering and cannot be clipped. Clip .real and .imag."
            )
    if FLAG.uses and wanted():
        return _shown_clip.call((x, min, max) if max is not None else (x, min), {})
    if min is not None:
        x = maximum(min, x)
    if max is not None:
        x = minimum(max, x)
    return another(x) if x is arr else x


def clip_by_name(x: Any, low: Any, high: Any) -> Any:
    """`clip`, where `make_jaxpr` traces, with bounds that are given by name, as methods give them:
    the equation has its operands in the order of the names."""
    bounds = {name: v for name, v in (("max", high), ("min", low)) if v is not None}
    if any([dtypes.is_complex(one_array("clip", v).aval.dtype) for v in (x, *bounds.values())]):
        return clip(x, low, high)  # raises
    return _shown_clip.call((x,), bounds)


def _clipped(x: Any, min: Any = None, max: Any = None) -> Any:
    if min is not None:
        x = maximum(min, x)
    return x if max is None else minimum(max, x)


_shown_clip = Shown(_clipped, "clip")
