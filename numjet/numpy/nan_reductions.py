"""Reductions that ignore NaN, and covariance matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.api.compiled.shown import FLAG, wanted
from numjet.core import dtypes
from numjet.core.array import Array
from numjet.core.structural import scalar
from numjet.numpy import lax_names as lax
from numjet.numpy.averages import in_integers, mean, var
from numjet.numpy.cumulative import cumprod, cumsum
from numjet.numpy.elementwise import divide, maximum, minimum, multiply, subtract
from numjet.numpy.logic import greater, isnan_of, logical_and, logical_not, where
from numjet.numpy.promote import (
    canonical_dtype,
    cast,
    mask_of,
    one_array,
    promote_dtypes,
    promote_inexact,
    reduced_axes,
    refuse,
)
from numjet.numpy.reductions import all, argmax, argmin, max, min, prod, sum
from numjet.numpy.shape import expand_dims, ravel, reshape
from numjet.ops.complex_ops import conjugate
from numjet.ops.reduce import extreme_of

_where = where


def _without_nans(name: str, a: Any, fill: Callable[[Any], Any]) -> tuple[Any, Any]:
    """The array with NaNs replaced, and where they were (None when it can hold none)."""
    x = one_array(name, a)
    if not dtypes.is_inexact(x.aval.dtype):
        return x, None
    nans = isnan_of(x)
    filler = cast(scalar(fill(x.aval.dtype), x.aval.dtype), x.aval.dtype, x.aval.weak_type)
    return where(nans, filler, x), nans


def _valid(x: Any, mask: Any) -> Any:
    """Where `x` is not NaN and the mask, if there is one, holds."""
    valid = logical_not(isnan_of(x))
    return valid if mask is None else logical_and(valid, mask)


def _mask(name: str, where: Any) -> Any:
    """The argument `where`, which may be None."""
    return None if where is None else mask_of(name, where)


def nansum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """The sum over `axis` of what is not NaN; 0 where nothing is left.

    a, axis, dtype, out, keepdims, initial, where: as in `sum`, as are the result's
    shape and dtype and the errors. Where there was NaN the derivative is 0.

    >>> jnp.nansum(jnp.array([1.0, jnp.nan, 2.0]))
    Array(3., dtype=float32)
    """
    x, _ = _without_nans("nansum", a, lambda d: 0)
    return sum(x, axis, dtype, out, keepdims, initial, _mask("nansum", where))


def nanprod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """The product over `axis` of what is not NaN; 1 where nothing is left.

    a, axis, dtype, out, keepdims, initial, where: as in `prod`, as are the result's
    shape and dtype and the errors. Where there was NaN the derivative is 0.

    >>> jnp.nanprod(jnp.array([3.0, jnp.nan, 2.0]))
    Array(6., dtype=float32)
    """
    x, _ = _without_nans("nanprod", a, lambda d: 1)
    return prod(x, axis, dtype, out, keepdims, initial, _mask("nanprod", where))


def _nan_extremum(name: str, reduce: Callable, lowest: bool) -> Callable:
    def extremum(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        x, nans = _without_nans(name, a, lambda d: extreme_of(d, lowest))
        found = reduce(x, axis, out, keepdims, initial, _mask(name, where))
        if nans is None or initial is not None or where is not None:
            return found
        if FLAG.uses and wanted():  # which asks again
            nans = isnan_of(one_array(name, a))
        only = all(nans, axis, keepdims=bool(keepdims))
        return _where(only, scalar(np.nan, found.aval.dtype), found)

    extremum.__name__, extremum.__qualname__ = name, name
    extremum.__doc__ = f"""`{name[3:]}` of what is not NaN; NaN where nothing is left.

    a, axis, out, keepdims, initial, where: as in `{name[3:]}`, as are the
    result's shape and dtype and the errors.

    >>> jnp.{name}(jnp.array([3.0, jnp.nan, 3.0]))
    Array(3., dtype=float32)
    """
    return extremum


nanmax = _nan_extremum("nanmax", max, True)
nanmin = _nan_extremum("nanmin", min, False)


def nanmean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    where: Any = None,
) -> Any:
    """The mean over `axis` of what is not NaN; NaN where nothing is left, without a warning.

    a, axis, dtype, out, keepdims, where: as in `mean`. The derivative is 0 where there was NaN.
    ValueError for an axis out of range.

    >>> jnp.nanmean(jnp.array([[1.0, jnp.nan, 2.0], [3.0, 4.0, 8.0]]), axis=1)
    Array([1.5, 5. ], dtype=float32)
    """
    refuse("nanmean", out=out)
    x = one_array("nanmean", a)
    reduced_axes(axis, x.aval.ndim, "nanmean")
    where = _mask("nanmean", where)
    if not dtypes.is_inexact(x.aval.dtype):
        return mean(x, axis, dtype, None, keepdims, where=where)
    valid = _valid(x, where)
    return mean(_where(valid, x, 0), axis, dtype, None, keepdims, where=valid)


def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
) -> Any:
    """The variance over `axis` of what is not NaN; NaN where nothing is left.

    a, axis, dtype, out, ddof, keepdims, where, mean: as in `var`, as are the result's shape and
    dtype and the errors, but with an integer dtype, in which NaN is 0, the result has it. NumPy's
    `correction` is `ddof`. ValueError for an axis out of range.

    >>> jnp.nanvar(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    refuse("nanvar", out=out)
    x = one_array("nanvar", a)
    reduced_axes(axis, x.aval.ndim, "nanvar")
    where = _mask("nanvar", where)
    kind = None if dtype is None else canonical_dtype(dtype, "nanvar")
    if kind is not None and not dtypes.is_inexact(kind) and not dtypes.is_complex(x.aval.dtype):
        parts = in_integers("nanvar", x, axis, kind, ddof, keepdims, where, mean, promote=True)
        some = greater(parts[1], 0)
        return cast(_where(some, lax.div(parts[0], _where(some, parts[1], 1)), 0), kind)
    if not dtypes.is_inexact(x.aval.dtype):
        return var(x, axis, dtype, None, ddof, keepdims, where=where, mean=mean)
    valid = _valid(x, where)
    return var(_where(valid, x, 0), axis, dtype, None, ddof, keepdims, where=valid, mean=mean)


def nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
) -> Any:
    """The standard deviation over `axis` of what is not NaN: the square root of `nanvar`.

    a, axis, dtype, out, ddof, keepdims, where, mean: as in `var`, as are the result's shape and
    dtype and the errors. The derivative is NaN where all elements are equal. NumPy's `correction`
    is `ddof`. ValueError for an axis out of range.

    >>> jnp.nanstd(jnp.array([1.0, jnp.nan, 5.0]))
    Array(2., dtype=float32)
    """
    return lax.sqrt(nanvar(a, axis, dtype, out, ddof, keepdims, _mask("nanstd", where), mean))


def _nan_arg(name: str, find: Callable, lowest: bool) -> Callable:
    def position(a: Any, axis: Any = None, out: Any = None, keepdims: bool | None = None) -> Any:
        x, nans = _without_nans(name, a, lambda d: extreme_of(d, lowest))
        found = find(x, axis, out, keepdims)
        if nans is None:
            return found
        only = all(nans, axis, keepdims=bool(keepdims))
        return _where(only, scalar(-1, found.aval.dtype), found)

    position.__name__, position.__qualname__ = name, name
    position.__doc__ = f"""`{name[3:]}` of what is not NaN; -1 where nothing is left.

    a, axis, out, keepdims: as in `{name[3:]}`, as are the result's shape (int32) and the errors.
    NumPy raises ValueError where nothing is left.

    >>> jnp.{name}(jnp.array([jnp.nan, 5.0, 5.0]))
    Array(1, dtype=int32)
    """
    return position


nanargmax = _nan_arg("nanargmax", argmax, True)
nanargmin = _nan_arg("nanargmin", argmin, False)


def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Running sums along `axis` with NaN as 0.

    a, axis, dtype, out: as in `cumsum`, as are the result's shape and dtype and the errors. Narrow
    integers keep their dtype (NumPy: int64).

    >>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 3.0]))
    Array([1., 1., 4.], dtype=float32)
    """
    x = ravel(one_array("nancumsum", a)) if axis is None else a
    return cumsum(_without_nans("nancumsum", x, lambda d: 0)[0], axis, dtype, out)


def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Running products along `axis` with NaN as 1.

    a, axis, dtype, out: as in `cumprod`, as are the result's shape and dtype and the errors. Narrow
    integers keep their dtype (NumPy: int64).

    >>> jnp.nancumprod(jnp.array([2.0, jnp.nan, 3.0]))
    Array([2., 2., 6.], dtype=float32)
    """
    x = ravel(one_array("nancumprod", a)) if axis is None else a
    return cumprod(_without_nans("nancumprod", x, lambda d: 1)[0], axis, dtype, out)


# ------------------------------------------------------------------ covariance
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    dtype: Any = None,
) -> Any:
    """The covariance matrix of variables that are observed together.

    m, y: numbers with at most two dimensions (ValueError), the variables in rows, or in columns
    where `rowvar` is False; those of y follow those of m. Integers count as floats. bias: divide by
    the number of observations n instead of n - 1; ddof: by n less this. fweights: how often each
    observation counts, integers; aweights: how much. dtype: that of m and y, by default their own;
    the result's is it together with that of aweights. Returns one row and column for each variable,
    a scalar for one; the second of a pair is conjugated.

    >>> jnp.cov(jnp.array([[1.0, 2.0, 3.0], [2.0, 4.0, 9.0]]))
    Array([[ 1. ,  3.5],
           [ 3.5, 13. ]], dtype=float32)
    """
    return _cov("cov", m, y, rowvar, bias, ddof, fweights, aweights, dtype)


def _cov(
    name: str, m: Any, y: Any, rowvar: bool, bias: bool = False, ddof: int | None = None,
    fweights: Any = None, aweights: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    (x,) = promote_inexact(one_array("cov", m))
    if x.aval.ndim > 2 or (y is not None and one_array("cov", y).aval.ndim > 2):
        raise ValueError("cov: m has more than 2 dimensions, or y has. Give at most two.")
    if dtype is not None:
        dtype = canonical_dtype(dtype, name)
        if not dtypes.is_inexact(dtype):
            raise ValueError(f"{name}: dtype must be a subclass of float or complex; got {dtype}.")
        x = cast(x, dtype)
    x = _variables(x, rowvar)
    if y is not None:
        (other,) = promote_inexact(one_array(name, y))
        other = other if dtype is None else cast(other, dtype)
        x = lax.concatenate(promote_dtypes(x, _variables(other, rowvar)), 0)
    if ddof is None:
        ddof = 0 if bias else 1
    if aweights is not None:
        x = promote_dtypes(x, one_array("cov", aweights))[0]
    weights = _weights(x, fweights, aweights)
    if weights is None:
        # Without observations there is no covariance: 0 / 0.
        factor: Any = x.aval.shape[1] - ddof if x.aval.shape[1] else 0
        centered = subtract(x, mean(x, 1, keepdims=True))
        scaled = centered
    else:
        total = sum(weights)
        weights = reshape(weights, (1, -1))
        center = divide(sum(multiply(x, weights), 1, keepdims=True), total)
        centered = subtract(x, center)
        scaled = multiply(centered, weights)
        if aweights is None or not ddof:
            factor = subtract(total, ddof)
        else:
            given = reshape(cast(one_array("cov", aweights), total.aval.dtype), (1, -1))
            shrink = sum(multiply(weights, given))
            factor = subtract(total, multiply(ddof, divide(shrink, total)))
    product = lax.dot_general(centered, conjugate(scaled), (((1,), (1,)), ((), ())))
    if not isinstance(factor, Array):
        factor = scalar(factor, product.aval.dtype)
    out = divide(product, factor)
    return lax.squeeze(out, (0, 1)) if out.aval.shape == (1, 1) else out


def _variables(x: Any, rowvar: bool) -> Any:
    """Variables in rows."""
    if x.aval.ndim < 2:
        return reshape(x, (1, -1))
    return x if rowvar else lax.transpose(x, (1, 0))


def _weights(x: Any, fweights: Any, aweights: Any) -> Any:
    """The product of both weights of the observations; None without any."""
    weights: Any = None
    for given, what in ((fweights, "fweights"), (aweights, "aweights")):
        if given is None:
            continue
        w = one_array("cov", given)
        if w.aval.shape != (x.aval.shape[1],):
            raise RuntimeError(      # NumPy's exception, and JAX's
                f"cov: incompatible numbers of samples and {what}: shape must be "
                f"({x.aval.shape[1]},), got {w.aval.shape}."
            )
        if what == "fweights" and not dtypes.is_integer(w.aval.dtype):
            raise TypeError("cov: fweights must be integers.")
        w = cast(w, dtypes.real_of(x.aval.dtype))
        weights = w if weights is None else multiply(weights, w)
    return weights


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> Any:
    """The matrix of correlation coefficients: `cov` divided by the standard deviations, within [-1,
    1].

    x, y, rowvar, dtype: as `m`, y, rowvar and dtype of `cov`. NaN for variables that are constant.

    >>> jnp.corrcoef(jnp.array([[1.0, 2.0, 3.0], [2.0, 4.0, 9.0]])).round(3)
    Array([[1.   , 0.971],
           [0.971, 1.   ]], dtype=float32)
    """
    c = _cov("corrcoef", x, y, rowvar, dtype=dtype)
    if not c.aval.ndim:
        return divide(c, c)
    n = c.aval.shape[0]
    on_diagonal = lax.eq(
        lax.broadcasted_iota(dtypes.int32, (n, n), 0), lax.broadcasted_iota(dtypes.int32, (n, n), 1)
    )
    diagonal = sum(where(on_diagonal, c, scalar(0, c.aval.dtype)), 1)
    deviations = lax.sqrt(lax.real(diagonal) if dtypes.is_complex(c.aval.dtype) else diagonal)
    deviations = cast(deviations, c.aval.dtype)
    out = divide(divide(c, expand_dims(deviations, 1)), expand_dims(deviations, 0))
    if dtypes.is_complex(out.aval.dtype):
        clipped = [minimum(1, maximum(-1, p(out))) for p in (lax.real, lax.imag)]
        return lax.complex(*clipped)
    return minimum(1, maximum(-1, out))
