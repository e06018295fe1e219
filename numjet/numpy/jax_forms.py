"""Functions in the operations that JAX makes them of, for who looks at jaxprs.

`api.compiled.shown` writes them. What runs has fewer operations, or gives signs of zeros that these
do not. Each takes the arguments of the function whose calls it shows.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet.api.compiled.shown import Shown, form
from numjet.api.derivatives.custom import jvp_of_arrays
from numjet.core import dtypes
from numjet.core.structural import broadcast_in_dim, convert, scalar
from numjet.numpy import lax_names as lax
from numjet.numpy.binary import heaviside
from numjet.numpy.elementwise import constant, floor_divide, prepared, remainder, zeros_like
from numjet.numpy.float_parts import copysign, modf, signbit
from numjet.numpy.logic import where
from numjet.numpy.promote import (
    as_arrays,
    canonical_axis,
    one_array,
    promote_dtypes,
    promote_inexact,
    promote_numeric,
    promoted,
    strong,
)
from numjet.numpy.shape import ravel
from numjet.numpy.take import take

_run_floor_divide, _run_remainder = floor_divide, remainder


@form("floor_divide")
def floor_divide_in_jax(x1: Any, x2: Any, /) -> Any:
    x, y = prepared("floor_divide", promote_numeric, x1, x2)
    if dtypes.is_floating(x.aval.dtype):
        return _divided_floats(x, y)[0]
    if dtypes.kind(x.aval.dtype) != "i":
        return _run_floor_divide(x, y)
    quotient = lax.div(x, y)
    differ = lax.ne(lax.sign(x), lax.sign(y))
    rest = lax.ne(lax.rem(x, y), zeros_like(x))
    down = lax.bitwise_and(*promote_dtypes(differ, rest))
    return where(down, lax.sub(quotient, constant(1, x)), quotient)


def _divided_floats(x: Any, y: Any) -> tuple[Any, Any]:
    """The quotient, whole, and the remainder."""
    rest, zero = lax.rem(x, y), constant(0, x)
    quotient = lax.div(where(lax.eq(y, zero), x, lax.sub(x, rest)), y)
    down = lax.bitwise_and(lax.ne(rest, zero), lax.ne(lax.sign(y), lax.sign(rest)))
    rest = lax.select_n(down, rest, lax.add(rest, y))
    quotient = lax.select_n(down, quotient, lax.sub(quotient, constant(1, x)))
    return lax.round(quotient, 0), rest


@form("remainder")
def remainder_in_jax(x1: Any, x2: Any, /) -> Any:
    x, y = prepared("remainder", promote_numeric, x1, x2)
    kind, zero = dtypes.kind(x.aval.dtype), zeros_like(x)
    if kind not in "iu" and not dtypes.is_floating(x.aval.dtype):
        return _run_remainder(x, y)
    if kind in "iu":
        none, one = lax.eq(y, zero), constant(1, y)
        y = where(none, broadcast_in_dim(one, y.aval.shape, ()) if y.aval.shape else one, y)
    rest = lax.rem(x, y)
    some = lax.ne(rest, zero)
    differ = lax.ne(lax.lt(rest, zero), lax.lt(y, zero))
    return lax.select_n(lax.bitwise_and(differ, some), rest, lax.add(rest, y))


_shown = [Shown(floor_divide_in_jax, "floor_divide"), Shown(remainder_in_jax, "remainder")]


@form("fmod")
def fmod_in_jax(x1: Any, x2: Any, /) -> Any:
    x, y = as_arrays("fmod", x1, x2)
    if dtypes.kind(promoted(x, y)[0]) in "iu" and dtypes.kind(y.aval.dtype) in "iu":
        one, shape = constant(1, y), y.aval.shape
        none = lax.eq(y, zeros_like(y))
        y = where(none, broadcast_in_dim(one, shape, ()) if shape else one, y)
    x, y = prepared("fmod", promote_numeric, x, y)
    return lax.rem(x, y)


@form("of integer powers")
def integer_power_in_jax(x: Any, y: Any) -> Any:
    """Six squarings, of whose products the exponent's low bits choose; 0 to other powers is 0."""
    zero, one = constant(0, x), scalar(1, y.aval.dtype)
    some = lax.bitwise_and(lax.eq(x, zero), lax.ne(y, constant(0, y)))
    out = where(some, zero, constant(1, x))
    for _ in range(6):
        out = where(lax.bitwise_and(y, one), lax.mul(out, x), out)
        x, y = lax.mul(x, x), lax.shift_right_logical(y, one)
    return out


@form("signbit")
def signbit_in_jax(x: Any, /) -> Any:
    """The bits, shifted until the sign is left."""
    x = one_array("signbit", x)
    if not dtypes.is_floating(x.aval.dtype):
        return signbit(x)
    bits = np.dtype(f"int{x.aval.dtype.itemsize * 8}")
    whole = lax.bitcast_convert_type(x, bits)
    return convert(
        lax.shift_right_arithmetic(whole, scalar(bits.itemsize * 8 - 1, bits)), dtypes.bool_
    )


@form("copysign")
def copysign_in_jax(x1: Any, x2: Any, /) -> Any:
    x, y = prepared("copysign", promote_inexact, x1, x2)
    if dtypes.is_complex(x.aval.dtype):
        return copysign(x1, x2)
    return where(_signbit.call((y,), {}), lax.neg(lax.abs(x)), lax.abs(x))


_signbit = Shown(signbit_in_jax, "signbit")


@form("heaviside")
def heaviside_in_jax(x1: Any, x2: Any, /) -> Any:
    x, y = prepared("heaviside", promote_inexact, x1, x2)
    if dtypes.is_complex(x.aval.dtype):
        return heaviside(x1, x2)
    zero = zeros_like(x)
    below, above, sick = lax.lt(x, zero), lax.gt(x, zero), lax.ne(x, x)
    return where(below, zero, where(above, constant(1, x), where(sick, x, y)))


@form("modf")
def modf_in_jax(x: Any, /, out: Any = None) -> tuple[Any, Any]:
    (x,) = promote_inexact(one_array("modf", x))
    if out is not None or dtypes.is_complex(x.aval.dtype):
        return modf(x, out)
    whole = where(lax.ge(x, zeros_like(x)), lax.floor(x), lax.ceil(x))
    return lax.sub(x, whole), whole


@form("_of_natural_log")
def scaled_log_in_jax(value: Any, base: float) -> Any:
    """A logarithm to another base of the natural one."""
    if base == 2:
        return lax.div(value, lax.log(strong(constant(2, value))))
    return lax.mul(value, strong(constant(1 / math.log(base), value)))


def _series_of(order: int) -> Any:
    """The derivative of this order of sin(x) / x by its series, whose first term counts at 0."""

    @jvp_of_arrays
    def _sinc_maclaurin(x: Any) -> Any:
        out = lax.mul(x, constant(0, x))
        if order % 2:
            return out
        return lax.add(out, constant((-1) ** (order // 2) / (order + 1), x))

    def _sinc_maclaurin_jvp(primals: tuple, tangents: tuple) -> tuple:
        (x,), (dx,) = primals, tangents
        return _sinc_maclaurin(x), lax.mul(_series_of(order + 1)(x), dx)

    _sinc_maclaurin.defjvp(_sinc_maclaurin_jvp)
    return _sinc_maclaurin


@form("sinc")
def sinc_in_jax(x: Any, /) -> Any:
    (x,) = promote_inexact(one_array("sinc", x))
    zero, scaled = lax.eq(x, constant(0, x)), lax.mul(constant(math.pi, x), x)
    safe = where(zero, constant(1, x), scaled)
    return where(zero, _series_of(0)(scaled), lax.div(lax.sin(safe), safe))


@form("divmod")
def divmod_in_jax(x1: Any, x2: Any, /) -> Any:
    x, y = prepared("divmod", promote_numeric, x1, x2)
    if dtypes.is_floating(x.aval.dtype):
        return _divided_floats(x, y)
    return tuple([each.call((x, y), {}) for each in _shown])


@form("_take")
def take_in_jax(
    a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: Any = None,
    unique_indices: bool = False, indices_are_sorted: bool = False, fill_value: Any = None,
) -> Any:  # fmt: skip
    x, index = one_array("take", a), one_array("take", indices)
    known = mode in (None, "fill", "clip", "wrap")
    if out is not None or not known or dtypes.kind(index.aval.dtype) not in "iu":
        return take(x, index, axis, out, mode, unique_indices, indices_are_sorted, fill_value)
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonical_axis(axis, x.aval.ndim, "take")
    sizes, shape = x.aval.shape, index.aval.shape
    if dtypes.is_key(x.aval.dtype) or not sizes[axis] <= np.iinfo(index.aval.dtype).max:
        return take(x, index, axis, None, mode, unique_indices, indices_are_sorted, fill_value)
    if mode == "wrap":
        index = _shown[1].call((index, constant(sizes[axis], index)), {})
    elif mode != "clip":
        below = lax.lt(index, constant(0, index))
        index = where(below, lax.add(index, constant(sizes[axis], index)), index)
    numbers = lax.GatherDimensionNumbers(
        (*range(axis), *range(axis + len(shape), x.aval.ndim - 1 + len(shape))), (axis,), (axis,)
    )
    return lax.gather(
        x, broadcast_in_dim(index, (*shape, 1), tuple(range(len(shape)))), numbers,
        (*sizes[:axis], 1, *sizes[axis + 1 :]),
        mode={"clip": "clip", "wrap": "promise_in_bounds"}.get(mode, "fill"),
        fill_value=fill_value, unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
    )  # fmt: skip


def _lower(shape: tuple[int, ...], k: Any) -> Any:
    int32 = np.dtype(np.int32)
    rows = lax.add(lax.broadcasted_iota(int32, shape[-2:], 0), scalar(k, int32))
    mask = lax.ge(rows, lax.broadcasted_iota(int32, shape[-2:], 1))
    if len(shape) > 2:
        mask = broadcast_in_dim(mask, shape, (len(shape) - 2, len(shape) - 1))
    return mask


@form("tril")
def tril_in_jax(m: Any, k: int = 0) -> Any:
    x = one_array("tril", m)
    mask = _lower(x.aval.shape, k)
    return lax.select_n(mask, lax.full(x.aval.shape, 0, x.aval.dtype), x)


@form("triu")
def triu_in_jax(m: Any, k: int = 0) -> Any:
    x = one_array("triu", m)
    mask = _lower(x.aval.shape, k - 1)
    return lax.select_n(mask, x, lax.full(x.aval.shape, 0, x.aval.dtype))


@jvp_of_arrays
def logaddexp(x: Any, y: Any) -> Any:
    """max + log1p(exp(-|x - y|)), or the sum where the difference is NaN."""
    high, gap = lax.max(x, y), lax.sub(x, y)
    sick, total = lax.ne(gap, gap), lax.add(x, y)
    return lax.select_n(sick, lax.add(high, lax.log1p(lax.exp(lax.neg(lax.abs(gap))))), total)


def _logaddexp_jvp(primals: tuple, tangents: tuple) -> tuple:
    """Each share of the sum is exp of its argument less the sum."""
    (x, y), (dx, dy) = primals, tangents
    out = logaddexp(x, y)
    share_x, share_y = [
        lax.exp(lax.sub(_finite(v), _finite(out))) for v in (x, y)
    ]
    return out, lax.add(lax.mul(dx, share_x), lax.mul(dy, share_y))


def _finite(x: Any) -> Any:
    """x, and 0 for an infinity."""
    zero, endless = constant(0, x), lax.eq(x, constant(np.inf, x))
    if x.aval.shape:
        zero = broadcast_in_dim(zero, x.aval.shape, ())
    return lax.select_n(endless, x, zero)


logaddexp.defjvp(_logaddexp_jvp)


@form("logaddexp")
def logaddexp_in_jax(x1: Any, x2: Any) -> Any:
    """`numpy.logaddexp` of real numbers, one equation."""
    return logaddexp(*prepared("logaddexp", promote_inexact, x1, x2))
