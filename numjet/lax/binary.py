"""The binary functions of `lax`: operands of one dtype, and of one rank (or none).

For users; the layers below call the functions of `ops`, which these wrap. What is checked here, as
programs written for this interface rely on it: dtypes are not promoted, a Python scalar has its
default dtype, and axes of size one stretch where ranks are equal.
"""
# ruff: noqa: A001 - lax's names
from __future__ import annotations

from typing import Any

from numjet.base import config
from numjet.core import dtypes
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.primitive import Primitive
from numjet.core.structural import broadcast_in_dim, convert
from numjet.core.trace import EVAL, current_trace
from numjet.ops import arithmetic, complex_ops, logic, mulhi as high, special, transcendental
from numjet.ops.arithmetic import add_p, div_p, mul_p, sub_p
from numjet.ops.arrange import broadcast_shapes
from numjet.ops.families import ANY, FLOATING, refusal
from numjet.ops.neighbours import next_narrow


def operands(name: str, *values: Any) -> list[Any]:
    """`values` as arrays of one shape (or none). Raises TypeError for dtypes that differ, ranks
    that differ, and sizes that do not broadcast."""
    arrays = [x if isinstance(x, Array) else as_array(x) for x in values]
    same_dtype(name, arrays)
    shapes = {x.aval.shape for x in arrays if x.aval.shape}
    if len(shapes) > 1:
        if len({len(s) for s in shapes}) > 1:
            raise TypeError(
                f"{name}: arrays must have the same number of dimensions, got {_avals(arrays)}. "
                "The functions of numjet.numpy add axes; here use lax.broadcast_in_dim.")
        try:
            shape = broadcast_shapes(*shapes)
        except ValueError:
            raise TypeError(
                f"{name} got incompatible shapes for broadcasting: {_avals(arrays)}. Sizes must be "
                "equal or 1.") from None
        if config.jax_form() and not current_trace().at_once:
            return arrays
        arrays = [x if x.aval.shape in ((), shape)
                  else broadcast_in_dim(x, shape, tuple(range(len(shape)))) for x in arrays]
    return arrays


def same_dtype(name: str, arrays: list) -> None:
    first = arrays[0].aval.dtype
    if any([x.aval.dtype != first for x in arrays[1:]]):
        if dtypes.float0 in [x.aval.dtype for x in arrays]:
            raise TypeError(refusal(name, dtypes.float0, ANY))
        raise TypeError(
            f"lax.{name} requires arguments to have the same dtypes, got {_avals(arrays)}. The "
            "function of numjet.numpy promotes; here convert with lax.convert_element_type.")


def _avals(arrays: list) -> str:
    return ", ".join(x.aval.str_short() for x in arrays)


def _apply(primitive: Primitive, x: Any, y: Any) -> Any:
    """The primitive on operands that are checked unless they are plainly alike."""
    if type(x) is ArrayImpl and type(y) is ArrayImpl and x.aval is y.aval:
        return primitive.bind(x, y)
    return primitive.bind(*operands(primitive.name, x, y))


# ------------------------------------------------------------------ arithmetic
def add(x: Any, y: Any) -> Any:
    """x + y.

    x, y: integer, floating or complex arrays of one dtype, and of one shape but for axes of size 1,
    or Python numbers. Result: the broadcast shape, the same dtype. Derivative: 1 in both. Integers
    wrap around. Raises TypeError for dtypes that differ and ranks that differ; `numpy` promotes and
    adds axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.add(jnp.ones((2, 1)), jnp.arange(3.0).reshape(1, 3))
    Array([[1., 2., 3.],
           [1., 2., 3.]], dtype=float32)
    """
    if type(x) is ArrayImpl and type(y) is ArrayImpl and x.aval is y.aval:
        return add_p.bind(x, y)
    return add_p.bind(*operands("add", x, y))


def sub(x: Any, y: Any) -> Any:
    """x - y.

    x, y: integer, floating or complex arrays of one dtype, and of one shape but for axes of size 1,
    or Python numbers. Result: the broadcast shape, the same dtype. Derivative: 1 and -1. Integers
    wrap around. Raises TypeError for dtypes that differ and ranks that differ; `numpy` promotes and
    adds axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.sub(jnp.array([3, 1]), 2)
    Array([ 1, -1], dtype=int32)
    """
    if type(x) is ArrayImpl and type(y) is ArrayImpl and x.aval is y.aval:
        return sub_p.bind(x, y)
    return sub_p.bind(*operands("sub", x, y))


def mul(x: Any, y: Any, *, out_dtype: Any = None) -> Any:
    """x · y.

    x, y: integer, floating or complex arrays of one dtype, and of one shape but for axes of size 1,
    or Python numbers. out_dtype: the result's dtype; x and y may then have two, and the product is
    computed in the widest of them. Result: the broadcast shape, the same dtype unless told.
    Integers wrap around. Derivative: y and x. Raises TypeError for dtypes that differ and ranks
    that differ; `numpy` promotes and adds axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.mul(jnp.array([2.0, 3.0]), 4.0)
    Array([ 8., 12.], dtype=float32)
    """
    if out_dtype is None and type(x) is ArrayImpl and type(y) is ArrayImpl and x.aval is y.aval:
        return mul_p.bind(x, y)
    if out_dtype is None:
        return mul_p.bind(*operands("mul", x, y))
    dtype = dtypes.canonical(out_dtype)
    x, y = as_array(x), as_array(y)
    wide = dtypes.join_standard(dtypes.join_standard(dtype, x.aval.dtype), y.aval.dtype)
    x, y = operands("mul", convert(x, wide), convert(y, wide))
    return convert(mul_p.bind(convert(x, wide), convert(y, wide)), dtype)


def div(x: Any, y: Any) -> Any:
    """x / y; of integers, the quotient rounded towards zero.

    x, y: integer, floating or complex arrays of one dtype, and of one shape but for axes of size 1,
    or Python numbers. Result: the broadcast shape, the same dtype. Derivative: 1/y and -x/y².
    Integers divided by zero give -1 (all bits set), where NumPy gives 0. Raises TypeError for
    dtypes that differ and ranks that differ; `numpy` promotes and adds axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.div(jnp.array([7, -7]), 2), lax.div(1.0, 0.0)
    (Array([ 3, -3], dtype=int32), Array(inf, dtype=float32, weak_type=True))
    """
    if type(x) is ArrayImpl and type(y) is ArrayImpl and x.aval is y.aval:
        return div_p.bind(x, y)
    return div_p.bind(*operands("div", x, y))


def rem(x: Any, y: Any) -> Any:
    """The remainder of x / y, with the sign of x, as C's %.

    x, y: integer or real floating arrays of one dtype, and of one shape but for axes of size 1, or
    Python numbers. Result: the broadcast shape, the same dtype. Derivative: 1 in x, -trunc(x/y) in
    y. A remainder by the integer 0 is x. `numpy.remainder` has the sign of y. Raises TypeError for
    dtypes that differ and ranks that differ; `numpy` promotes and adds axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.rem(jnp.array([7, -7]), 3), lax.rem(5.5, 2.0)
    (Array([ 1, -1], dtype=int32), Array(1.5, dtype=float32, weak_type=True))
    """
    return _apply(arithmetic.rem_p, x, y)


def max(x: Any, y: Any) -> Any:
    """The larger one of x and y, element by element; NaN if either is.

    x, y: integer, floating or complex arrays or booleans of one dtype, and of one shape but for
    axes of size 1, or Python numbers. Result: the broadcast shape, the same dtype. Derivative: 1
    for the larger one, 1/2 each where they are equal. Complex numbers are ordered by real, then
    imaginary parts. Raises TypeError for dtypes that differ and ranks that differ; `numpy` promotes
    and adds axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.max(jnp.array([1.0, jnp.nan]), 2.0)
    Array([ 2., nan], dtype=float32)
    """
    return _apply(arithmetic.max_p, x, y)


def min(x: Any, y: Any) -> Any:
    """The smaller one of x and y, element by element; NaN if either is.

    x, y: integer, floating or complex arrays or booleans of one dtype, and of one shape but for
    axes of size 1, or Python numbers. Result: the broadcast shape, the same dtype. Derivative: 1
    for the smaller one, 1/2 each where they are equal. Complex numbers are ordered by real, then
    imaginary parts. Raises TypeError for dtypes that differ and ranks that differ; `numpy` promotes
    and adds axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.min(jnp.array([1.0, jnp.nan]), 2.0)
    Array([ 1., nan], dtype=float32)
    """
    return _apply(arithmetic.min_p, x, y)


def mulhi(x: Any, y: Any, /) -> Any:
    """The upper half of the product of integers, which has twice as many bits: ⌊x y / 2ⁿ⌋ for n
    bits.

    x, y: integer arrays of one dtype, and of one shape but for axes of size 1. Result: the
    broadcast shape, the same dtype. Raises TypeError for other dtypes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.mulhi(jnp.uint8(200), jnp.uint8(200))  # 40000 = 156 * 256 + 64
    Array(156, dtype=uint8)
    """
    return _apply(high.mulhi_p, x, y)


def nextafter(x1: Any, x2: Any) -> Any:
    """The next floating number after x1 towards x2.

    x1, x2: real floating arrays of one dtype, and of one shape but for axes of size 1. Result: the
    broadcast shape, the same dtype; x2 where they are equal, NaN where either is. Derivative: 0.
    Raises TypeError for other dtypes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.nextafter(jnp.float32(1.0), 2.0) - 1
    Array(1.1920929e-07, dtype=float32)
    """
    x1, x2 = operands("nextafter", x1, x2)
    if not dtypes.is_floating(x1.aval.dtype):
        raise TypeError(f"nextafter does not accept dtype {x1.aval.dtype}: it takes real floating "
                        "dtypes. Convert with .astype().")
    if x1.aval.dtype in dtypes.NARROW_FLOATS:
        return next_narrow(x1, x2)
    return arithmetic.nextafter_p.bind(x1, x2)


def clamp(min: Any, x: Any, max: Any) -> Any:
    """x limited to [min, max]: max where it is larger, min where it is smaller.

    min, x, max: real arrays of one dtype; the bounds have the shape of x or no axes. Result: x's
    shape and dtype. min > max gives max. NaN stays. Derivative: 1 in x inside, 1 in a bound where
    it is taken. Raises TypeError for other dtypes and shapes; `numpy.clip` promotes and broadcasts.

    >>> from numjet import lax, numpy as jnp
    >>> lax.clamp(0.0, jnp.array([-1.0, 0.5, 2.0]), 1.0)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    low, x, high = [as_array(v) for v in (min, x, max)]
    same_dtype("clamp", [low, x, high])
    return arithmetic.clamp_p.bind(low, x, high)


def pow(x: Any, y: Any) -> Any:
    """x to the power y.

    x: a floating or complex array. y: an array of the same dtype, or of integers; a Python integer
    gives `integer_pow`. Shapes: one, but for axes of size 1. Result: the broadcast shape, x's
    dtype. Derivative: y x^(y-1) in x, log(x) x^y in y. NaN for negative real x and fractional y.
    Raises TypeError for other dtypes: powers of integers are `integer_pow` and `numpy.power`.

    >>> from numjet import lax, numpy as jnp
    >>> lax.pow(jnp.array([2.0, 9.0]), 0.5).round(4), lax.pow(3.0, 2)
    (Array([1.4142, 3.    ], dtype=float32), Array(9., dtype=float32, weak_type=True))
    """
    x = as_array(x)
    if not dtypes.is_inexact(x.aval.dtype):
        raise TypeError(refusal("pow", x.aval.dtype, FLOATING, several=True))
    if type(y) is int:
        return arithmetic.integer_pow(x, y)
    y = as_array(y)
    if dtypes.is_inexact(x.aval.dtype) and dtypes.is_integer(y.aval.dtype):
        alike = x.aval.shape == y.aval.shape or not (x.aval.shape and y.aval.shape)
        if config.jax_form() or alike and current_trace() is not EVAL:
            return transcendental.pow(x, y)  # whose derivative at a zero to the power 0 is 0
        y = convert(y, x.aval.dtype, y.aval.weak_type)
    return transcendental.pow_p.bind(*operands("pow", x, y))


def atan2(x: Any, y: Any) -> Any:
    """The angle of the point (y, x) with the axis, in radians: atan(x / y) in the right quadrant.

    x, y: floating or complex arrays of one dtype, and of one shape but for axes of size 1, or
    Python numbers. Result: the broadcast shape, the same dtype. Derivative: y / (x² + y²) and -x /
    (x² + y²). The first argument is the ordinate. Raises TypeError for dtypes that differ and ranks
    that differ; `numpy` promotes and adds axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.atan2(jnp.array([1.0, 1.0]), jnp.array([1.0, -1.0])).round(4)
    Array([0.7854, 2.3562], dtype=float32)
    """
    return _apply(transcendental.atan2_p, x, y)


def complex(x: Any, y: Any) -> Any:
    """The complex number x + iy.

    x, y: two float32 or two float64 arrays of one dtype, and of one shape but for axes of size 1,
    or Python numbers. Result: the broadcast shape, complex64 or complex128. Derivative: 1 and i.
    Raises TypeError for dtypes that differ and ranks that differ; `numpy` promotes and adds axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.complex(jnp.array([1.0]), 2.0)
    Array([1.+2.j], dtype=complex64)
    """
    return _apply(complex_ops.complex_p, x, y)


# ------------------------------------------------------------------ comparisons
def eq(x: Any, y: Any) -> Any:
    """x == y, element by element.

    x, y: integer, floating or complex arrays or booleans of one dtype, and of one shape but for
    axes of size 1, or Python numbers. Result: the broadcast shape, booleans. NaN equals nothing.
    Raises TypeError for dtypes that differ and ranks that differ; `numpy` promotes and adds axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.eq(jnp.array([1.0, jnp.nan]), jnp.array([1.0, jnp.nan]))
    Array([ True, False], dtype=bool)
    """
    return _apply(logic.eq_p, x, y)


def ne(x: Any, y: Any) -> Any:
    """x != y, element by element.

    x, y: integer, floating or complex arrays or booleans of one dtype, and of one shape but for
    axes of size 1, or Python numbers. Result: the broadcast shape, booleans. NaN equals nothing.
    Raises TypeError for dtypes that differ and ranks that differ; `numpy` promotes and adds axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.ne(jnp.array([1.0, jnp.nan]), jnp.array([1.0, jnp.nan]))
    Array([False,  True], dtype=bool)
    """
    return _apply(logic.ne_p, x, y)


def _ordered(primitive: Primitive, x: Any, y: Any) -> Any:
    x, y = operands(primitive.name, x, y)
    if dtypes.is_complex(x.aval.dtype):
        raise TypeError(f"{primitive.name} does not accept dtype {x.aval.dtype}: complex numbers "
                        "have no order. Compare real and imaginary parts.")
    return primitive.bind(x, y)


def lt(x: Any, y: Any) -> Any:
    """x < y, element by element.

    x, y: real arrays or booleans of one dtype, and of one shape but for axes of size 1, or Python
    numbers. Result: the broadcast shape, booleans. False where either is NaN. Complex numbers have
    no order (TypeError). Raises TypeError for dtypes that differ and ranks that differ; `numpy`
    promotes and adds axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.lt(jnp.array([1, 2, 3]), 2)
    Array([ True, False, False], dtype=bool)
    """
    return _ordered(logic.lt_p, x, y)


def le(x: Any, y: Any) -> Any:
    """x <= y, element by element.

    x, y: real arrays or booleans of one dtype, and of one shape but for axes of size 1, or Python
    numbers. Result: the broadcast shape, booleans. False where either is NaN. Complex numbers have
    no order (TypeError). Raises TypeError for dtypes that differ and ranks that differ; `numpy`
    promotes and adds axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.le(jnp.array([1, 2, 3]), 2)
    Array([ True,  True, False], dtype=bool)
    """
    return _ordered(logic.le_p, x, y)


def gt(x: Any, y: Any) -> Any:
    """x > y, element by element.

    x, y: real arrays or booleans of one dtype, and of one shape but for axes of size 1, or Python
    numbers. Result: the broadcast shape, booleans. False where either is NaN. Complex numbers have
    no order (TypeError). Raises TypeError for dtypes that differ and ranks that differ; `numpy`
    promotes and adds axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.gt(jnp.array([1, 2, 3]), 2)
    Array([False, False,  True], dtype=bool)
    """
    return _ordered(logic.gt_p, x, y)


def ge(x: Any, y: Any) -> Any:
    """x >= y, element by element.

    x, y: real arrays or booleans of one dtype, and of one shape but for axes of size 1, or Python
    numbers. Result: the broadcast shape, booleans. False where either is NaN. Complex numbers have
    no order (TypeError). Raises TypeError for dtypes that differ and ranks that differ; `numpy`
    promotes and adds axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.ge(jnp.array([1, 2, 3]), 2)
    Array([False,  True,  True], dtype=bool)
    """
    return _ordered(logic.ge_p, x, y)


# ------------------------------------------------------------------ bits
def bitwise_and(x: Any, y: Any) -> Any:
    """x & y, bit by bit.

    x, y: integer or boolean arrays of one dtype, and of one shape but for axes of size 1, or Python
    numbers. Result: the broadcast shape, the same dtype. Raises TypeError for dtypes that differ
    and ranks that differ; `numpy` promotes and adds axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.bitwise_and(jnp.array([6, 5]), 3)
    Array([2, 1], dtype=int32)
    """
    return _apply(logic.and_p, x, y)


def bitwise_or(x: Any, y: Any) -> Any:
    """x | y, bit by bit.

    x, y: integer or boolean arrays of one dtype, and of one shape but for axes of size 1, or Python
    numbers. Result: the broadcast shape, the same dtype. Raises TypeError for dtypes that differ
    and ranks that differ; `numpy` promotes and adds axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.bitwise_or(jnp.array([6, 5]), 3)
    Array([7, 7], dtype=int32)
    """
    return _apply(logic.or_p, x, y)


def bitwise_xor(x: Any, y: Any) -> Any:
    """x ^ y, bit by bit.

    x, y: integer or boolean arrays of one dtype, and of one shape but for axes of size 1, or Python
    numbers. Result: the broadcast shape, the same dtype. Raises TypeError for dtypes that differ
    and ranks that differ; `numpy` promotes and adds axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.bitwise_xor(jnp.array([6, 5]), 3)
    Array([5, 6], dtype=int32)
    """
    return _apply(logic.xor_p, x, y)


def shift_left(x: Any, y: Any) -> Any:
    """The bits of x moved y places to the left, with zeros from the right.

    x, y: integer arrays of one dtype, and of one shape but for axes of size 1, or Python numbers.
    Result: the broadcast shape, the same dtype. y of the width or more (and negative y) gives 0,
    where C leaves it open. Raises TypeError for dtypes that differ and ranks that differ; `numpy`
    promotes and adds axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.shift_left(jnp.array([1, 3]), 4)
    Array([16, 48], dtype=int32)
    """
    return _apply(logic.shift_left_p, x, y)


def shift_right_arithmetic(x: Any, y: Any) -> Any:
    """The bits of x moved y places to the right, with copies of the sign bit.

    x, y: integer arrays of one dtype, and of one shape but for axes of size 1, or Python numbers.
    Result: the broadcast shape, the same dtype. y of the width or more gives 0 or -1, the sign.
    Raises TypeError for dtypes that differ and ranks that differ; `numpy` promotes and adds axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.shift_right_arithmetic(jnp.array([16, -16]), 2)
    Array([ 4, -4], dtype=int32)
    """
    if not (type(x) is ArrayImpl and type(y) is ArrayImpl and x.aval is y.aval):
        x, y = operands("shift_right_arithmetic", x, y)
    dtype = x.aval.dtype
    if dtype not in dtypes.NARROW_UNSIGNED:
        return logic.shift_right_arithmetic_p.bind(x, y)
    # These are held in bytes, whose highest bit is not their own.
    signed = dtypes.NARROW_SIGNED[dtypes.NARROW_UNSIGNED.index(dtype)]
    x, y = convert(x, signed), convert(y, signed)
    return convert(logic.shift_right_arithmetic_p.bind(x, y), dtype)


def shift_right_logical(x: Any, y: Any) -> Any:
    """The bits of x moved y places to the right, with zeros from the left.

    x, y: integer arrays of one dtype, and of one shape but for axes of size 1, or Python numbers.
    Result: the broadcast shape, the same dtype. y of the width or more gives 0. Raises TypeError
    for dtypes that differ and ranks that differ; `numpy` promotes and adds axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.shift_right_logical(jnp.array([16, -16]), 28)
    Array([ 0, 15], dtype=int32)
    """
    return _apply(logic.shift_right_logical_p, x, y)


# ------------------------------------------------------------------ special functions
def igamma(a: Any, x: Any) -> Any:
    """The regularized lower incomplete gamma function P(a, x) = 1/Γ(a) ∫₀ˣ t^(a-1) e^-t dt.

    a: positive, x: not negative, real floats of one dtype, and of one shape but for axes of size 1.
    Result: the broadcast shape, the same dtype; NaN outside. Derivative: x^(a-1) e^-x / Γ(a) in x,
    `igamma_grad_a` in a. Raises TypeError for dtypes that differ. Source: DLMF 8.7, 8.9, 8.12; Gil,
    Segura and Temme, Incomplete gamma function ratios (2012).

    >>> from numjet import lax, numpy as jnp
    >>> lax.igamma(1.0, jnp.array([0.0, 1.0, jnp.inf])).round(4)
    Array([0.    , 0.6321, 1.    ], dtype=float32)
    """
    return _apply(special.igamma_p, a, x)


def igammac(a: Any, x: Any) -> Any:
    """The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x), without cancellation.

    a: positive, x: not negative, real floats of one dtype, and of one shape but for axes of size 1.
    Result: the broadcast shape, the same dtype. Derivative: those of `igamma`, negated. Raises
    TypeError for dtypes that differ. Source: as of `igamma`.

    >>> from numjet import lax, numpy as jnp
    >>> lax.igammac(1.0, jnp.array([0.0, 1.0])).round(4)
    Array([1.    , 0.3679], dtype=float32)
    """
    return _apply(special.igammac_p, a, x)


def igamma_grad_a(a: Any, x: Any) -> Any:
    """The derivative of `igamma` in its first argument, ∂P(a, x)/∂a.

    a: positive, x: not negative, real floats of one dtype, and of one shape but for axes of size 1.
    Result: the broadcast shape, the same dtype. It has itself no derivative in a. Raises TypeError
    for dtypes that differ. Source: the formulas of `igamma`, differentiated.

    >>> from numjet import lax, numpy as jnp
    >>> lax.igamma_grad_a(1.0, jnp.array([0.0, 1.0])).round(4)
    Array([ 0.    , -0.4317], dtype=float32)
    """
    return _apply(special.igamma_grad_a_p, a, x)


def random_gamma_grad(*args: Any) -> Any:
    """How a gamma-distributed sample x moves with its shape parameter a: -(∂P/∂a) / (∂P/∂x).

    args: (a, x), both positive real floats of one dtype. Result: their broadcast shape and dtype.
    It is what makes `random.gamma` differentiable in a. Source: Figurnov, Mohamed and Mnih,
    Implicit reparameterization gradients (2018). Raises TypeError for dtypes that differ.

    >>> from numjet import lax, numpy as jnp
    >>> lax.random_gamma_grad(1.0, jnp.array([1.0])).round(4)
    Array([1.1736], dtype=float32)
    """
    a, x = operands("random_gamma_grad", *args)
    return special.random_gamma_grad(a, x)


def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function I(a, b; x), the integral of t^(a-1) (1-t)^(b-1) over
    [0, x] divided by that over [0, 1].

    a, b: positive real floats; x: in [0, 1]; of one dtype, and of one shape but for axes of size 1.
    Result: the broadcast shape, the same dtype; NaN outside. Derivative: in x x^(a-1) (1-x)^(b-1) /
    B(a, b); in a and b as well. Raises TypeError for dtypes that differ. Source: DLMF 8.17;
    DiDonato and Morris, Algorithm 708 (1992).

    >>> from numjet import lax, numpy as jnp
    >>> lax.betainc(2.0, 1.0, jnp.array([0.0, 0.5, 1.0]))
    Array([0.  , 0.25, 1.  ], dtype=float32)
    """
    return special.betainc(*operands("betainc", a, b, x))


def polygamma(m: Any, x: Any) -> Any:
    """The m-th derivative of `digamma`.

    m: whole numbers, not negative, in the dtype of x; x: real floats; of one shape but for axes of
    size 1. Result: the broadcast shape, the same dtype; NaN for other m. Derivative: polygamma(m +
    1, x) in x; none in m (NotImplementedError). Raises TypeError for dtypes that differ. Source:
    DLMF 25.11.12, by `zeta`.

    >>> from numjet import lax, numpy as jnp
    >>> lax.polygamma(1.0, jnp.array([1.0])).round(4)  # π²/6
    Array([1.6449], dtype=float32)
    """
    return _apply(special.polygamma_p, m, x)


def zeta(x: Any, q: Any) -> Any:
    """Hurwitz's zeta function, Σ (k + q)^-x over k >= 0.

    x: above 1, q: real floats of one dtype, and of one shape but for axes of size 1. Result: the
    broadcast shape, the same dtype; ∞ at x = 1, NaN below. Derivative: -x zeta(x + 1, q) in q; in x
    as well. Raises TypeError for dtypes that differ. Source: Euler and Maclaurin's sum, DLMF
    25.11.28.

    >>> from numjet import lax, numpy as jnp
    >>> lax.zeta(2.0, jnp.array([1.0])).round(4)  # π²/6
    Array([1.6449], dtype=float32)
    """
    return _apply(special.zeta_p, x, q)
