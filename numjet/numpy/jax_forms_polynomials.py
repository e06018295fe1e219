"""Polynomials, differences along axes, covariances and products with vectors in the operations
that JAX makes them of, as `numpy.jax_forms` has the others: for who looks at jaxprs
(`api.compiled.shown`).

What runs has fewer operations. Each takes the arguments of the function whose calls it shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.api.compiled.shown import Shown, form
from numjet.core import dtypes
from numjet.core.primitive import REGISTRY
from numjet.core.structural import broadcast_in_dim, convert, scalar
from numjet.numpy import lax_names as lax
from numjet.numpy.calculus import (
    convolve,
    diff,
    gradient,
    poly,
    polyadd,
    polyder,
    polyint,
    polysub,
    trapezoid,
)
from numjet.numpy.elementwise import constant
from numjet.numpy.indexing import getitem
from numjet.numpy.nan_reductions import cov
from numjet.numpy.products import matvec, vecmat
from numjet.numpy.promote import (
    as_arrays,
    canonical_axis,
    one_array,
    promote_dtypes,
    promote_inexact,
)
from numjet.numpy.reductions import sum as sum_
from numjet.numpy.shape import atleast_1d, atleast_2d, moveaxis

_atleast_1d, _atleast_2d = Shown(atleast_1d, "atleast_1d"), Shown(atleast_2d, "atleast_2d")
_convolve, _diff = Shown(convolve, "convolve"), Shown(diff, "diff")


def _vectors(*xs: Any) -> bool:
    return all([x.aval.ndim == 1 and dtypes.is_floating(x.aval.dtype) for x in xs])


# ------------------------------------------------------------------ polynomials
@form("polyadd")
def polyadd_in_jax(a1: Any, a2: Any) -> Any:
    """The shorter one is added to the end of the longer one."""
    x, y = promote_dtypes(*as_arrays("polyadd", a1, a2))
    if not _vectors(x, y) or x.aval.size == y.aval.size or not x.aval.size * y.aval.size:
        return polyadd(a1, a2)
    if x.aval.size < y.aval.size:
        x, y = y, x
    return x.at[-y.aval.size :].add(y)


_polyadd = Shown(polyadd_in_jax, "polyadd")


@form("polysub")
def polysub_in_jax(a1: Any, a2: Any) -> Any:
    x, y = promote_dtypes(*as_arrays("polysub", a1, a2))
    if not _vectors(x, y):
        return polysub(a1, a2)
    return _polyadd.call((x, lax.neg(y)), {})


def _steps(first: int, count: int, times: int, x: Any) -> Any:
    """A table of the numbers from `first` on, in row k less k."""
    dtype = x.aval.dtype
    along = lax.iota(dtype, count)
    if first:
        along = lax.add(scalar(first, dtype), along)
    row = broadcast_in_dim(along, (1, count), (1,))
    return lax.sub(row, broadcast_in_dim(lax.iota(dtype, times), (times, 1), (0,)))


@form("polyder")
def polyder_in_jax(p: Any, m: int = 1) -> Any:
    x = one_array("polyder", p)
    if not _vectors(x) or not 0 < m < x.aval.size:
        return polyder(p, m)
    n = x.aval.size - m
    factors = lax.reduce_prod(_steps(m, n, m, x), (0,))
    return lax.mul(getitem(x, (slice(None, -m),)), lax.rev(factors, (0,)))


@form("polyint")
def polyint_in_jax(p: Any, m: int = 1, k: Any = None) -> Any:
    x = one_array("polyint", p)
    if not _vectors(x) or m < 1 or k is not None:
        return polyint(p, m, k)
    none = _atleast_1d.call((constant(0, x),), {})
    zeros = broadcast_in_dim(lax.squeeze(none, (0,)), (m,), ())
    table = _steps(0, x.aval.size + m, m, x)
    factors = lax.rev(lax.reduce_prod(lax.max(constant(1, x), table), (0,)), (0,))
    return lax.div(lax.concatenate([x, zeros], 0), factors)


@form("poly")
def poly_in_jax(seq_of_zeros: Any) -> Any:
    """A product of linear factors."""
    x = _atleast_1d.call((one_array("poly", seq_of_zeros),), {})
    if not _vectors(x):
        return poly(x)
    out = lax.full((1,), 1, x.aval.dtype)
    for i in range(x.aval.size):
        factor = [
            broadcast_in_dim(v, (1,), ()) for v in (constant(1, x), lax.neg(getitem(x, (i,))))
        ]
        out = _convolve.call((out, lax.concatenate(factor, 0)), {"mode": "full"})
    return out


# ------------------------------------------------------------------ along axes
def _cut(x: Any, axis: int, start: int, stop: int) -> Any:
    begin, end = [0] * x.aval.ndim, list(x.aval.shape)
    begin[axis], end[axis] = start, stop
    params = {"start_indices": tuple(begin), "limit_indices": tuple(end)}
    return REGISTRY["slice"].bind(x, **params, strides=(1,) * x.aval.ndim)


@form("gradient")
def gradient_in_jax(f: Any, *varargs: Any, axis: Any = None, edge_order: int | None = None) -> Any:
    x = one_array("gradient", f)
    plain = dtypes.is_floating(x.aval.dtype) and edge_order is None and len(varargs) <= 1
    if not plain or isinstance(axis, tuple) or min(x.aval.shape, default=0) < 3:
        return gradient(f, *varargs, axis=axis, edge_order=edge_order)
    (step,) = as_arrays("gradient", *varargs) if varargs else [constant(1, x)]
    if step.aval.ndim:
        return gradient(f, *varargs, axis=axis)
    step = convert(step, x.aval.dtype)
    axes = range(x.aval.ndim) if axis is None else [canonical_axis(axis, x.aval.ndim, "gradient")]
    out = []
    for i in axes:
        n = x.aval.shape[i]
        first = lax.sub(_cut(x, i, 1, 2), _cut(x, i, 0, 1))
        last = lax.sub(_cut(x, i, n - 1, n), _cut(x, i, n - 2, n - 1))
        inner = lax.mul(lax.sub(_cut(x, i, 2, n), _cut(x, i, 0, n - 2)), constant(0.5, x))
        inner = lax.div(inner, step)
        last = lax.div(last, step)
        out.append(lax.concatenate([lax.div(first, step), inner, last], i))
    return out[0] if len(out) == 1 else out


@form("trapezoid")
def trapezoid_in_jax(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """All samples, less half of those at the ends; or the sum of means times widths."""
    a = one_array("trapezoid", y)
    at = None if x is None else one_array("trapezoid", x)
    if not dtypes.is_floating(a.aval.dtype) or not a.aval.ndim:
        return trapezoid(y, x, dx, axis)
    if at is not None and not (_vectors(at, a) and at.aval.dtype == a.aval.dtype):
        return trapezoid(y, x, dx, axis)
    axis = canonical_axis(axis, a.aval.ndim, "trapezoid")
    if axis != a.aval.ndim - 1:
        a = moveaxis(a, axis, -1)
    half = constant(0.5, a)
    if at is not None:
        widths = _diff.call((at,), {})
        pairs = lax.add(getitem(a, (slice(1, None),)), getitem(a, (slice(None, -1),)))
        return lax.mul(half, sum_(lax.mul(widths, pairs), -1))
    whole = sum_(a, -1)
    ends = lax.add(getitem(a, (..., 0)), getitem(a, (..., -1)))
    inner = lax.sub(whole, lax.mul(half, ends))
    return lax.mul(convert(one_array("trapezoid", dx), a.aval.dtype), inner)


# ------------------------------------------------------------------ covariances and products
@form("cov")
def cov_in_jax(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None,
    fweights: Any = None, aweights: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    (x,) = promote_inexact(one_array("cov", m))
    other = None if y is None else one_array("cov", y)
    if (
        not dtypes.is_floating(x.aval.dtype) or x.aval.ndim > 2 or not x.aval.size
        or fweights is not None or aweights is not None or dtype is not None
        or other is not None and (other.aval.dtype != x.aval.dtype or other.aval.ndim > 2)
    ):  # fmt: skip
        return cov(m, y, rowvar, bias, ddof, fweights, aweights, dtype)
    parts = []
    for v in (x, other):
        if v is not None:
            rows = _atleast_2d.call((v,), {})
            turned = not rowvar and v.aval.shape[0] != 1 and v.aval.ndim == 2
            parts.append(lax.transpose(rows, (1, 0)) if turned else rows)
    x = parts[0] if len(parts) == 1 else lax.concatenate(parts, 0)
    count, n = x.aval.shape
    mean = lax.div(sum_(x, 1), constant(n, x))
    totals = lax.full((count,), n, x.aval.dtype)
    getitem(totals, (0,))
    x = lax.sub(x, broadcast_in_dim(mean, (count, 1), (0,)))
    free = n - ((0 if bias else 1) if ddof is None else ddof)
    product = lax.dot_general(
        x, lax.transpose(x, (1, 0)), (((1,), (0,)), ((), ())),
        preferred_element_type=x.aval.dtype,
    )  # fmt: skip
    out = lax.div(product, constant(free, x))
    return lax.squeeze(out, (0, 1)) if out.aval.shape == (1, 1) else out


def _with_vector(name: str, run: Callable, contracted: Callable[[Any, Any], tuple]) -> None:
    def product(x1: Any, x2: Any, /) -> Any:
        x, y = promote_dtypes(*as_arrays(name, x1, x2))
        if dtypes.is_complex(x.aval.dtype) or x.aval.ndim + y.aval.ndim != 3:
            return run(x1, x2)
        axes = contracted(x, y)
        return lax.dot_general(x, y, (axes, ((), ())), preferred_element_type=x.aval.dtype)

    form(name)(product)


_with_vector("matvec", matvec, lambda x, y: ((1,), (0,)))
_with_vector("vecmat", vecmat, lambda x, y: ((0,), (0,)))
