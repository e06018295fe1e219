"""softmax, logsumexp, standardize, one_hot: functions that look at a whole axis."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from numjet.api.compiled.shown import FLAG, Shown, wanted, written_apart
from numjet.api.derivatives.custom import jvp_of_arrays
from numjet.base.errors import ConcretizationTypeError
from numjet.core import dtypes
from numjet.core.array import Array, as_array
from numjet.core.dims import DimExpr, index_of
from numjet.core.trace import Tracer, concrete_or_none
from numjet.nn.jax_forms import logsumexp_in_jax, one_hot_in_jax
from numjet.numpy import lax_names as lax
from numjet.numpy.averages import mean as mean_
from numjet.numpy.elementwise import (
    absolute,
    add,
    clip,
    constant,
    divide,
    multiply,
    reciprocal,
    sign,
    subtract,
)
from numjet.numpy.logic import equal, not_equal, where
from numjet.numpy.promote import (
    as_arrays,
    broadcast,
    canonical_dtype,
    cast,
    check_ranks,
    float_dtype,
    join_shapes,
    names_and_axes,
    one_array,
    promote_inexact,
    reduced_axes,
)
from numjet.numpy.reductions import max as max_, sum as sum_
from numjet.numpy.shape import expand_dims
from numjet.numpy.unary import exp, isfinite, log
from numjet.ops.arrange import stop_gradient
from numjet.ops.collective import axis_index, axis_size
from numjet.transforms.again import again

_where = where


def _peak(x: Any, axis: Any, mask: Any) -> Any:
    """The largest element, as a constant of differentiation: it only keeps numbers in range."""
    if FLAG.uses and wanted():
        return stop_gradient(max_(x, axis, keepdims=True, where=mask, initial=-np.inf))
    return stop_gradient(max_(stop_gradient(x), axis, keepdims=True, where=mask, initial=-np.inf))


def _numbers(name: str, x: Any) -> Any:
    x = one_array(name, x)
    if dtypes.is_bool(x.aval.dtype):
        raise TypeError(f"{name} does not accept dtype bool. Convert it with .astype().")
    return x


def _masked_numbers(name: str, x: Any) -> Any:
    """`x` beside a mask and -∞, where integers and booleans are floats of the default dtype."""
    x = one_array(name, x)
    if dtypes.is_integer(x.aval.dtype) or dtypes.is_bool(x.aval.dtype):
        return cast(x, float_dtype(), x.aval.weak_type)
    return promote_inexact(x)[0]


def softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """exp(x) divided by its sum along an axis, without overflow.

    x: a real array; integers become floats. axis: an integer, several, or None for all. where:
    booleans that broadcast to x; elements without are left out, and 0 in the result. Result: x's
    shape; sums to 1, or to 0 where nothing is left. Derivative (y is the result):
    y (dx - Σ y dx). Raises ValueError where `where` does not broadcast, TypeError for booleans
    without it.

    >>> from numjet import nn, numpy as jnp
    >>> nn.softmax(jnp.array([0.0, 0.0, 5.0]), where=jnp.array([True, True, False]))
    Array([0.5, 0.5, 0. ], dtype=float32)
    """
    if where is None:
        (x,) = promote_inexact(_numbers("softmax", x))
    else:
        x = _masked_numbers("softmax", x)
    if where is not None and FLAG.uses and wanted():
        high = max_(x, axis, keepdims=True, where=where, initial=-np.inf)
        grown = exp(subtract(_where(where, x, -np.inf), stop_gradient(high)))
        out = divide(grown, sum_(grown, axis, keepdims=True, where=where))
        return _where(where, out, 0)
    x = x if where is None else _where(where, x, -np.inf)
    if FLAG.uses and wanted():
        grown = exp(subtract(x, _peak(x, axis, None)))
        return divide(grown, sum_(grown, axis, keepdims=True))
    # A rule of its own matters to transformations only, and costs an eager call as much again.
    out = _traced_softmax(x, axis) if isinstance(x, Tracer) else _normalized(x, axis)
    return out if where is None else _where(where, out, 0)


def _normalized(x: Any, axis: Any) -> Any:
    grown = exp(subtract(x, _peak(x, axis, None)))
    total = sum_(grown, axis, keepdims=True)
    if x.dtype not in (dtypes.float32, dtypes.float64):
        return divide(grown, total)  # 1 / total may be too small for float16
    # A sum with a 1 in it: its inverse is a normal number, and within a rounding as good as a
    # division of each element, which takes 16 cycles a vector where a product takes one.
    return multiply(grown, reciprocal(total))


_softmax = jvp_of_arrays(_normalized, nondiff_argnums=(1,))


def _traced_softmax(x: Any, axis: Any) -> Any:
    if type(axis) is int and isinstance(x, Tracer):
        return again((_softmax, axis), x, lambda t: _softmax(t, axis))
    return _softmax(x, axis)


@_softmax.defjvp
def _softmax_jvp(axis: Any, primals: tuple, tangents: tuple) -> tuple:
    """dy = y (dx - Σ y dx): nothing but the result is kept for the backward pass."""
    (x,), (dx,) = primals, tangents
    y = _traced_softmax(x, axis)
    return y, multiply(y, subtract(dx, sum_(multiply(y, dx), axis, keepdims=True)))


def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """The logarithm of `softmax`: x - logsumexp(x), without overflow.

    x: a real array; integers become floats. axis: an integer, several, or None for all. where:
    booleans that broadcast to x; elements without are left out, and -∞ in the result. Raises
    ValueError for an axis out of range, TypeError for booleans without `where`.

    >>> from numjet import nn, numpy as jnp
    >>> nn.log_softmax(jnp.array([0.0, 0.0])).round(4)
    Array([-0.6931, -0.6931], dtype=float32)
    """
    if where is None:
        (x,) = promote_inexact(_numbers("log_softmax", x))
    else:
        x = _masked_numbers("log_softmax", x)
    masked = x if where is None else _where(where, x, -np.inf)
    shifted = subtract(masked, _peak(masked, axis, None))
    out = subtract(shifted, log(sum_(exp(shifted), axis, keepdims=True)))
    return out if where is None else _where(where, out, -np.inf)


def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    """log Σ b exp(a) along an axis, without overflow.

    a: a real or complex array; integers become floats. axis: an integer, several, or None for all.
    b: weights that broadcast to a; they may be negative. keepdims: the axes stay, with size 1.
    return_sign: the result is (log |Σ|, sign) instead of NaN for a negative sum. where: booleans
    that broadcast to a; elements without are left out. Result: -∞ of nothing. Derivative: the
    softmax. Source: Blanchard, Higham and Higham, Accurately computing the log-sum-exp and softmax
    functions (2021).

    >>> from numjet import nn, numpy as jnp
    >>> nn.logsumexp(jnp.array([1000.0, 1000.0])).round(3)
    Array(1000.693, dtype=float32)
    """
    if b is None:
        (x,) = promote_inexact(one_array("logsumexp", a))
    else:
        x, b = promote_inexact(*as_arrays("logsumexp", a, b))
        check_ranks("logsumexp", [x.aval.shape, b.aval.shape])
        x = _where(not_equal(b, 0), x, -np.inf)
    if where is not None:
        shape = join_shapes("logsumexp", [x.aval.shape, one_array("logsumexp", where).aval.shape])
        x = _where(broadcast(one_array("logsumexp", where), shape), broadcast(x, shape), -np.inf)
    names, axis = names_and_axes(axis)
    axes = reduced_axes(axis, x.aval.ndim, "logsumexp")
    if not names and FLAG.uses and wanted() and not dtypes.is_complex(x.aval.dtype):
        return logsumexp_in_jax(x, axes, b, keepdims, return_sign)
    real = lax.real(x) if dtypes.is_complex(x.aval.dtype) else x
    high = stop_gradient(max_(stop_gradient(real), (*names, *axes), keepdims=True, initial=-np.inf))
    high = _where(isfinite(high), high, 0)
    high = cast(high, real.aval.dtype)
    # The difference is not weakly typed, whatever x is.
    grown = exp(lax.sub(x, broadcast(cast(high, x.aval.dtype), x.aval.shape)))
    if b is not None:
        shape = join_shapes("logsumexp", [grown.aval.shape, b.aval.shape])
        grown = lax.mul(broadcast(grown, shape), broadcast(b, shape))
    total = sum_(grown, (*names, *axes), keepdims=True)
    if return_sign:
        signs = sign(total)
        total = absolute(total)
    out = add(
        log(total), cast(high, total.aval.dtype) if dtypes.is_complex(total.aval.dtype) else high
    )
    if not keepdims:
        out = lax.squeeze(out, axes) if axes else out
        if return_sign:
            signs = lax.squeeze(signs, axes) if axes else signs
    return (out, signs) if return_sign else out


def logmeanexp(x: Any, axis: Any = None, where: Any = None, keepdims: bool = False) -> Any:
    """log of the mean of exp(x) along an axis, without overflow.

    x: a real array. axis: an integer, several, or None for all. where: booleans that broadcast to
    x; elements without do not count. keepdims: the axes stay, with size 1. Integers become floats.

    >>> from numjet import nn, numpy as jnp
    >>> nn.logmeanexp(jnp.array([1000.0, 1000.0]))
    Array(1000., dtype=float32)
    """
    (x,) = promote_inexact(one_array("logmeanexp", x))
    total = logsumexp(x, axis, keepdims=keepdims, where=where)
    if where is None:
        axes = reduced_axes(axis, x.aval.ndim, "logmeanexp")
        count = math.prod([x.aval.shape[i] for i in axes])
        if FLAG.uses and wanted():
            return subtract(total, log(constant(count, x)))
        return subtract(total, math.log(count) if count else -math.inf)
    count = sum_(broadcast(one_array("logmeanexp", where), x.aval.shape), axis, keepdims=keepdims)
    return subtract(total, log(cast(count, x.aval.dtype)))


def standardize(
    x: Any,
    axis: Any = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-5,
    where: Any = None,
    *,
    algorithm: str = "fast",
) -> Any:
    """x minus its mean, divided by its standard deviation, along an axis.

    x: a real floating array. axis: an integer, several, or None for all. mean, variance: those to
    use instead of x's own. epsilon: what is added to the variance. where: booleans; elements
    without do not count. algorithm: 'fast' takes the variance as E[x²] - E[x]², 'stable' as E[(x -
    E[x])²] (ValueError for others). Result: x's shape. IndexError for an axis out of range.

    >>> from numjet import nn, numpy as jnp
    >>> nn.standardize(jnp.array([1.0, 3.0])).round(4)
    Array([-1.,  1.], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: algorithm must be 'fast' or 'stable', got {algorithm!r}.")
    (x,) = promote_inexact(one_array("standardize", x))
    if mean is None:
        mean = mean_(x, axis, keepdims=True, where=where)
    if variance is None:
        if algorithm == "fast":
            variance = subtract(
                mean_(lax.square(x), axis, keepdims=True, where=where),
                lax.square(one_array("standardize", mean)),
            )
        else:
            variance = mean_(lax.square(subtract(x, mean)), axis, keepdims=True, where=where)
    # Rounding may leave E[x²] - E[x]² below zero.
    variance = clip(variance, 0)
    centered = subtract(x, mean)
    return multiply(centered, lax.rsqrt(cast(add(variance, epsilon), x.aval.dtype)))


@written_apart
def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: Any = -1) -> Any:
    """A 1 at the position that each element of x names, 0 elsewhere.

    x: an array of integers, no booleans (TypeError); those outside [0, num_classes) give zeros
    alone. num_classes: an integer. dtype: of the result, the default float unless given. axis:
    where the axis of the classes goes; or the name of a mapped axis of as many members
    (ValueError), of which each gets its class. Result: x's shape with a further axis, as it is
    under a name. No derivative flows.

    >>> from numjet import nn, numpy as jnp
    >>> nn.one_hot(jnp.array([0, 2, 5]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.],
           [0., 0., 0.]], dtype=float32)
    """
    if not hasattr(num_classes, "__index__") and type(num_classes) is not DimExpr:
        raise TypeError(f"one_hot: num_classes must be an integer, got {num_classes!r}.")
    if isinstance(num_classes, Tracer):
        known = concrete_or_none(num_classes)
        if known is None:
            raise ConcretizationTypeError(
                f"{num_classes.aval.str_short()} is traced, so its value is not known. The error "
                "arose in jax.nn.one_hot argument `num_classes`. The result's shape depends on it: "
                f"give an integer, or make it static. {num_classes.origin()}"
            )
        num_classes = int(known)
    num_classes = index_of(num_classes)
    if x is None:
        raise ValueError("one_hot: None is no array of positions.")
    index = x if isinstance(x, Array) else as_array(np.asarray(x))
    wanted_dtype = (
        dtypes.canonical(dtypes.float64) if dtype is None else canonical_dtype(dtype, "one_hot")
    )
    if dtypes.is_bool(index.aval.dtype):
        raise TypeError("one_hot does not accept dtype bool. Convert it with .astype(int).")
    if not hasattr(axis, "__index__"):
        if (size := axis_size(axis)) != num_classes:
            raise ValueError(
                f"one_hot: Expected num_classes to match the size of axis {axis}, but "
                f"{num_classes} != {size}."
            )
        return cast(equal(index, axis_index(axis)), wanted_dtype)
    rank = index.aval.ndim + 1
    axis = axis + rank if axis < 0 else axis
    if not 0 <= axis < rank:
        raise ValueError(f"one_hot: axis {axis} is out of range for a result of {rank} dimensions.")
    shape = index.aval.shape[:axis] + (num_classes,) + index.aval.shape[axis:]
    kind = index.aval.dtype
    if dtypes.is_inexact(kind):
        warnings.warn(
            f"jax.nn.one_hot input should be integer-typed; got dtype={kind}",
            DeprecationWarning,
            stacklevel=2,
        )
    if FLAG.uses and wanted():
        return _shown_one_hot.call((x, num_classes), {"dtype": wanted_dtype, "axis": axis})
    classes = lax.broadcasted_iota(kind, shape, axis)
    return cast(equal(expand_dims(index, axis), classes), wanted_dtype)


_shown_one_hot = Shown(one_hot_in_jax, "_one_hot")
