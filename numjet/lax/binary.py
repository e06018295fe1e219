"""The binary functions of `lax`: operands of one dtype, and of one rank (or none).

For users; the layers below call the functions of `ops`, which these wrap. What is checked here, as
programs written for this interface rely on it: dtypes are not promoted, a Python scalar has its
default dtype, and axes of size one stretch where ranks are equal.
"""
# ruff: noqa: A001 - lax's names
from __future__ import annotations

from typing import Any

from numjet.core import dtypes
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.primitive import Primitive
from numjet.core.structural import broadcast_in_dim, convert
from numjet.ops import arithmetic, complex_ops, logic, mulhi as high, special, transcendental
from numjet.ops.arithmetic import add_p, div_p, mul_p, sub_p
from numjet.ops.arrange import broadcast_shapes


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
        arrays = [x if x.aval.shape in ((), shape)
                  else broadcast_in_dim(x, shape, tuple(range(len(shape)))) for x in arrays]
    return arrays


def same_dtype(name: str, arrays: list) -> None:
    first = arrays[0].aval.dtype
    if any([x.aval.dtype != first for x in arrays[1:]]):
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
    """x + y. x, y: numbers of one dtype, and of one shape but for axes of size one, or without
    axes. The other functions of this file are alike.

    >>> from numjet import lax, numpy as jnp
    >>> lax.add(jnp.ones((2, 1)), jnp.arange(3.).reshape(1, 3))
    Array([[1., 2., 3.],
           [1., 2., 3.]], dtype=float32)
    """
    if type(x) is ArrayImpl and type(y) is ArrayImpl and x.aval is y.aval:
        return add_p.bind(x, y)
    return add_p.bind(*operands("add", x, y))


def sub(x: Any, y: Any) -> Any:
    """x - y."""
    if type(x) is ArrayImpl and type(y) is ArrayImpl and x.aval is y.aval:
        return sub_p.bind(x, y)
    return sub_p.bind(*operands("sub", x, y))


def mul(x: Any, y: Any, *, out_dtype: Any = None) -> Any:
    """x * y. out_dtype: that of the result; the product is computed in the wider of the two."""
    if out_dtype is None and type(x) is ArrayImpl and type(y) is ArrayImpl and x.aval is y.aval:
        return mul_p.bind(x, y)
    x, y = operands("mul", x, y)
    if out_dtype is None:
        return mul_p.bind(x, y)
    dtype = dtypes.canonical(out_dtype)
    wide = dtypes.promote((dtype, False), (x.aval.dtype, False))[0]
    return convert(mul_p.bind(convert(x, wide), convert(y, wide)), dtype)


def div(x: Any, y: Any) -> Any:
    """x / y; integers truncate as C does, and x / 0 is -1."""
    if type(x) is ArrayImpl and type(y) is ArrayImpl and x.aval is y.aval:
        return div_p.bind(x, y)
    return div_p.bind(*operands("div", x, y))


def rem(x: Any, y: Any) -> Any:
    """The remainder with the sign of x, as C's %."""
    return _apply(arithmetic.rem_p, x, y)


def max(x: Any, y: Any) -> Any:
    """The larger one; NaN if either is."""
    return _apply(arithmetic.max_p, x, y)


def min(x: Any, y: Any) -> Any:
    """The smaller one; NaN if either is."""
    return _apply(arithmetic.min_p, x, y)


def mulhi(x: Any, y: Any, /) -> Any:
    """The upper half of the product of integers, which has twice as many bits: ⌊x y / 2ⁿ⌋ for n
    bits.

    >>> from numjet import lax, numpy as jnp
    >>> lax.mulhi(jnp.uint8(200), jnp.uint8(200))  # 40000 = 156 * 256 + 64
    Array(156, dtype=uint8)
    """
    return _apply(high.mulhi_p, x, y)


def nextafter(x1: Any, x2: Any) -> Any:
    """The next number after x1 towards x2."""
    x1, x2 = operands("nextafter", x1, x2)
    if not dtypes.is_floating(x1.aval.dtype):
        raise TypeError(f"nextafter does not accept dtype {x1.aval.dtype}: it takes real floating "
                        "dtypes. Convert with .astype().")
    return arithmetic.nextafter_p.bind(x1, x2)


def clamp(min: Any, x: Any, max: Any) -> Any:
    """x limited to [min, max]; the bounds have the shape of x or no axes."""
    low, x, high = [as_array(v) for v in (min, x, max)]
    same_dtype("clamp", [low, x, high])
    return arithmetic.clamp_p.bind(low, x, high)


def pow(x: Any, y: Any) -> Any:
    """x to the power y; y may be integers beside inexact x, and a Python integer gives
    `integer_pow`."""
    if type(y) is int:
        return arithmetic.integer_pow(x, y)
    x, y = as_array(x), as_array(y)
    if dtypes.is_inexact(x.aval.dtype) and dtypes.is_integer(y.aval.dtype):
        y = convert(y, x.aval.dtype, y.aval.weak_type)
    return transcendental.pow_p.bind(*operands("pow", x, y))


def atan2(x: Any, y: Any) -> Any:
    """The angle of the point (y, x), in radians."""
    return _apply(transcendental.atan2_p, x, y)


def complex(x: Any, y: Any) -> Any:
    """x + iy."""
    return _apply(complex_ops.complex_p, x, y)


# ------------------------------------------------------------------ comparisons
def eq(x: Any, y: Any) -> Any:
    """x == y, elementwise."""
    return _apply(logic.eq_p, x, y)


def ne(x: Any, y: Any) -> Any:
    """x != y, elementwise."""
    return _apply(logic.ne_p, x, y)


def _ordered(primitive: Primitive, x: Any, y: Any) -> Any:
    x, y = operands(primitive.name, x, y)
    if dtypes.is_complex(x.aval.dtype):
        raise TypeError(f"{primitive.name} does not accept dtype {x.aval.dtype}: complex numbers "
                        "have no order. Compare real and imaginary parts.")
    return primitive.bind(x, y)


def lt(x: Any, y: Any) -> Any:
    """x < y, elementwise."""
    return _ordered(logic.lt_p, x, y)


def le(x: Any, y: Any) -> Any:
    """x <= y, elementwise."""
    return _ordered(logic.le_p, x, y)


def gt(x: Any, y: Any) -> Any:
    """x > y, elementwise."""
    return _ordered(logic.gt_p, x, y)


def ge(x: Any, y: Any) -> Any:
    """x >= y, elementwise."""
    return _ordered(logic.ge_p, x, y)


# ------------------------------------------------------------------ bits
def bitwise_and(x: Any, y: Any) -> Any:
    """x & y."""
    return _apply(logic.and_p, x, y)


def bitwise_or(x: Any, y: Any) -> Any:
    """x | y."""
    return _apply(logic.or_p, x, y)


def bitwise_xor(x: Any, y: Any) -> Any:
    """x ^ y."""
    return _apply(logic.xor_p, x, y)


def shift_left(x: Any, y: Any) -> Any:
    """x << y; shifts by the width or more give 0."""
    return _apply(logic.shift_left_p, x, y)


def shift_right_arithmetic(x: Any, y: Any) -> Any:
    """x >> y, filling with the sign."""
    return _apply(logic.shift_right_arithmetic_p, x, y)


def shift_right_logical(x: Any, y: Any) -> Any:
    """x >> y, filling with zeros."""
    return _apply(logic.shift_right_logical_p, x, y)


# ------------------------------------------------------------------ special functions
def igamma(a: Any, x: Any) -> Any:
    """The regularized lower incomplete gamma function P(a, x)."""
    return _apply(special.igamma_p, a, x)


def igammac(a: Any, x: Any) -> Any:
    """The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x)."""
    return _apply(special.igammac_p, a, x)


def igamma_grad_a(a: Any, x: Any) -> Any:
    """∂P(a, x)/∂a."""
    return _apply(special.igamma_grad_a_p, a, x)


def random_gamma_grad(*args: Any) -> Any:
    """How a gamma-distributed sample x moves with its shape parameter a: -(∂P/∂a) / (∂P/∂x).

    Takes (a, x)."""
    a, x = operands("random_gamma_grad", *args)
    return special.random_gamma_grad(a, x)


def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function."""
    return special.betainc(*operands("betainc", a, b, x))


def polygamma(m: Any, x: Any) -> Any:
    """The m-th derivative of digamma; m are whole numbers in the dtype of x."""
    return _apply(special.polygamma_p, m, x)


def zeta(x: Any, q: Any) -> Any:
    """Hurwitz's zeta function, Σ (k + q)^-x over k >= 0."""
    return _apply(special.zeta_p, x, q)
