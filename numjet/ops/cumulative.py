"""Running sums, products, extremes and log-sum-exps along one axis.

For `lax` and `numpy`. `axis` counts from the front, `reverse` begins at the end. Sums of 16-bit
floats are kept in float32 and rounded once each. What would break it: an integer dtype that NumPy
would widen on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.lowering import Kernel
from numjet.core.primitive import Primitive, Zero
from numjet.core.structural import broadcast_in_dim
from numjet.ops.arithmetic import abs as abs_, add, div, max, max_p, min_p, mul, sub
from numjet.ops.complex_ops import complex as complex_, imag, real
from numjet.ops.families import REAL_FLOATING, constant_like, refusal
from numjet.ops.logic import eq, le, lt
from numjet.ops.scan_functions import associative_scan
from numjet.ops.shape import canonical_axis, pad, select_n
from numjet.ops.transcendental import atan2, cos, exp, log, sin

_DOUBLES = {np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128}
# Of many numbers these lose digits at each step; others lose none.
_ROUNDING = (np.add, np.multiply, np.logaddexp)


def _accumulate(function: Any) -> Callable:
    def reference(x: np.ndarray, *, axis: int, reverse: bool) -> np.ndarray:
        if reverse:
            x = np.flip(x, axis)
        if x.dtype.itemsize <= 2 and dtypes.is_floating(x.dtype):
            out = function.accumulate(x.astype(np.float32), axis=axis).astype(x.dtype)
        elif function in _ROUNDING and x.dtype in _DOUBLES and x.shape[axis] > 256:
            # NumPy takes one number after the other.
            out = function.accumulate(x, axis=axis, dtype=_DOUBLES[x.dtype]).astype(x.dtype)
        else:
            out = function.accumulate(x, axis=axis, dtype=x.dtype)
        return np.flip(out, axis) if reverse else out

    return reference


def _cumulative(
    name: str,
    function: Any,
    jvp: Callable,
    transpose: Callable | None = None,
    floating: bool = False,
) -> Primitive:
    primitive: Primitive

    def abstract(x: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
        if not 0 <= axis < x.ndim:
            raise ValueError(f"axis {axis} is out of bounds for array of shape {x.shape} ({name}).")
        if dtypes.is_bool(x.dtype):
            raise TypeError(f"{name} does not accept booleans. Convert with .astype(int).")
        dtypes.refuse_keys(name, x.dtype)
        if floating and not dtypes.is_floating(x.dtype):
            raise TypeError(refusal(name, x.dtype, REAL_FLOATING))
        return x

    def forward(primals: tuple, tangents: tuple, **params: Any) -> tuple:
        out = primitive.bind(*primals, **params)
        if type(tangents[0]) is Zero:
            return out, Zero(out.aval.tangent())
        return out, jvp(tangents[0], out, primals[0], **params)

    def batch(mapped: Any, args: tuple, dims: tuple, *, axis: int, reverse: bool) -> tuple:
        return primitive.bind(args[0], axis=axis + (axis >= dims[0]), reverse=reverse), dims[0]

    primitive = Primitive(
        name,
        abstract=abstract,
        reference=_accumulate(function),
        jvp=forward,
        transpose=transpose,
        linear=transpose is not None,
        batch=batch,
        loops=Kernel(name),
    )
    return primitive


cumsum_p = _cumulative(
    "cumsum",
    np.add,
    lambda t, out, x, *, axis, reverse: cumsum(t, axis, reverse),
    lambda ct, x, *, axis, reverse: [cumsum(ct, axis, not reverse)],
)


def _cumprod_jvp(t: Any, out: Any, x: Any, *, axis: int, reverse: bool) -> Any:
    """By the recurrence d_n = d_{n-1} x_n + p_{n-1} t_n, as an associative scan of pairs."""
    return associative_pairs(x, t, axis, reverse)


def associative_pairs(x: Any, t: Any, axis: int, reverse: bool) -> Any:
    """The tangent of a running product: combine (p, d) and (q, e) to (p q, p e + d q), doubling the
    distance."""
    n, p, d = x.aval.shape[axis], x, t
    step = 1
    while step < n:
        p_before, d_before = _shift(p, step, axis, reverse, 1), _shift(d, step, axis, reverse, 0)
        d = add(mul(p_before, d), mul(d_before, p))
        p = mul(p_before, p)
        step *= 2
    return d


def _shift(x: Any, step: int, axis: int, reverse: bool, fill: float) -> Any:
    config = [(0, 0, 0)] * x.aval.ndim
    config[axis] = (-step, step, 0) if reverse else (step, -step, 0)
    return pad(x, constant_like(x, fill), config)


cumprod_p = _cumulative("cumprod", np.multiply, _cumprod_jvp)


def _extreme_jvp(extreme: Primitive) -> Callable:
    def tangent(t: Any, out: Any, x: Any, *, axis: int, reverse: bool) -> Any:
        """The tangent of the element that is the extreme, of halves that are equal their mean: by
        pairs, as `associative_scan` combines them."""

        rule = extreme.jvp
        assert rule is not None

        def combine(a: tuple, b: tuple) -> tuple:
            return rule((a[0], b[0]), (a[1], b[1]))

        return associative_scan(combine, (x, t), reverse, axis)[1]

    return tangent


cummax_p = _cumulative("cummax", np.maximum, _extreme_jvp(max_p))
cummin_p = _cumulative("cummin", np.minimum, _extreme_jvp(min_p))


def _logsumexp_jvp(t: Any, out: Any, x: Any, *, axis: int, reverse: bool) -> Any:
    """By doubling: windows (l, d) and (m, e) combine to l' = log(exp l + exp m) and the mean of d
    and e with weights exp(l - l') and exp(m - l'). Every weight is at most 1, so none overflows."""
    n, log_sum, d = x.aval.shape[axis], x, t
    step = 1
    while step < n:
        before = _shift(log_sum, step, axis, reverse, -np.inf)
        d_before = _shift(d, step, axis, reverse, 0)
        top = max(log_sum, before)
        # Where both are -inf the weights are even: any would do.
        top = select_n(eq(top, constant_like(top, -np.inf)), top, _filled(top, 0))
        a, b = exp(sub(log_sum, top)), exp(sub(before, top))
        total = add(a, b)
        empty = eq(total, constant_like(total, 0))
        safe = select_n(empty, total, _filled(total, 1))
        d = div(add(mul(a, d), mul(b, d_before)), safe)
        log_sum = add(top, log(total))
        step *= 2
    return d


def _filled(x: Any, value: float) -> Any:
    return broadcast_in_dim(constant_like(x, value), x.aval.shape, ())


cumlogsumexp_p = _cumulative("cumlogsumexp", np.logaddexp, _logsumexp_jvp, floating=True)


def _complex_logsumexp(x: Any, axis: int, reverse: bool) -> Any:
    """Of complex numbers, by doubling windows; the larger real part is taken out of both. The
    principal values."""
    n, total, step = x.aval.shape[axis], x, 1
    while step < n:
        before = _shift(total, step, axis, reverse, -np.inf)
        top = select_n(lt(real(total), real(before)), total, before)
        top = select_n(eq(real(top), constant_like(real(top), -np.inf)), top, _filled(top, 0))
        total = add(top, log(add(exp(sub(total, top)), exp(sub(before, top)))))
        step *= 2
    angle = imag(total)
    inside = le(abs_(angle), constant_like(angle, np.pi))
    return complex_(real(total), select_n(inside, atan2(sin(angle), cos(angle)), angle))


def _axis(axis: int, ndim: int) -> int:
    """An axis counted from the front, as these functions want it."""
    axis_ = canonical_axis(axis, ndim)
    if axis_ != int(axis):
        raise ValueError(
            f"XLA operations do not allow negative axes: write axis={axis_} for axis={axis}, or "
            "use the function of numjet.numpy."
        )
    return axis_


def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Running sums along an axis.

    operand: an integer, floating or complex array. axis: an integer. reverse: from the end. Result:
    operand's shape and dtype; element i is the sum of elements 0 to i. Its transpose runs the other
    way. Raises TypeError for booleans, ValueError for an axis out of range.

    >>> from numjet import lax, numpy as jnp
    >>> lax.cumsum(jnp.array([1, 2, 3])), lax.cumsum(jnp.array([1, 2, 3]), reverse=True)
    (Array([1, 3, 6], dtype=int32), Array([6, 5, 3], dtype=int32))
    """
    x = as_array(operand)
    return cumsum_p.bind(x, axis=_axis(axis, x.ndim), reverse=bool(reverse))


def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Running products along an axis.

    operand: an integer, floating or complex array. axis: an integer. reverse: from the end. Result:
    operand's shape and dtype. Differentiable, also where there are zeros. Raises TypeError for
    booleans, ValueError for an axis out of range.

    >>> from numjet import lax, numpy as jnp
    >>> lax.cumprod(jnp.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int32)
    """
    x = as_array(operand)
    return cumprod_p.bind(x, axis=_axis(axis, x.ndim), reverse=bool(reverse))


def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Running maxima along an axis.

    operand: an integer, floating or complex array (ordered by real, then imaginary parts). axis: an
    integer. reverse: from the end. Result: operand's shape and dtype; NaN stays from where it comes
    on. Derivative: that of the element taken. Raises TypeError for booleans, ValueError for an axis
    out of range.

    >>> from numjet import lax, numpy as jnp
    >>> lax.cummax(jnp.array([1, 3, 2, 4]))
    Array([1, 3, 3, 4], dtype=int32)
    """
    x = as_array(operand)
    return cummax_p.bind(x, axis=_axis(axis, x.ndim), reverse=bool(reverse))


def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Running minima along an axis.

    operand: an integer, floating or complex array (ordered by real, then imaginary parts). axis: an
    integer. reverse: from the end. Result: operand's shape and dtype; NaN stays from where it comes
    on. Derivative: that of the element taken. Raises TypeError for booleans, ValueError for an axis
    out of range.

    >>> from numjet import lax, numpy as jnp
    >>> lax.cummin(jnp.array([3, 1, 2, 0]))
    Array([3, 1, 1, 0], dtype=int32)
    """
    x = as_array(operand)
    return cummin_p.bind(x, axis=_axis(axis, x.ndim), reverse=bool(reverse))


def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Running log Σ exp along an axis, without overflow.

    operand: a floating or complex array. axis: an integer. reverse: from the end. Result: operand's
    shape and dtype. Raises TypeError for other dtypes, ValueError for an axis out of range.

    >>> from numjet import lax, numpy as jnp
    >>> lax.cumlogsumexp(jnp.zeros(3)).round(4)
    Array([0.    , 0.6931, 1.0986], dtype=float32)
    """
    x = as_array(operand)
    axis = _axis(axis, x.ndim)
    if dtypes.is_complex(x.aval.dtype):
        return _complex_logsumexp(x, axis, bool(reverse))
    return cumlogsumexp_p.bind(x, axis=axis, reverse=bool(reverse))
