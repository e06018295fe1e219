"""Distributions derived from others in the operations that JAX makes them of, as `random.jax_forms`
has the first ones: for who looks at jaxprs (`api.compiled.shown`).

What runs has fewer operations or other bounds. Each takes the arguments of the function whose calls
it shows; parameters that are arrays with axes are left to that function.
"""

from __future__ import annotations

from typing import Any

from numjet.api.compiled.shown import Shown, as_call, form
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.structural import convert, scalar
from numjet.numpy.indexing import getitem
from numjet.numpy.linalg import norm
from numjet.numpy.logic import where
from numjet.ops import arithmetic as ar
from numjet.ops.families import constant_like
from numjet.ops.logic import eq, floor
from numjet.ops.transcendental import exp, log, log1p, pow, sqrt
from numjet.random import continuous as runs
from numjet.random.basic import float_dtype, shown_uniform, unit
from numjet.random.keys import shape_of, single_key, split, split_two
from numjet.random.rejection import gamma


def _plain(shape: Any, *parameters: Any) -> bool:
    return shape is not None and not any([as_array(x).shape for x in parameters])


@form("_rayleigh")
def rayleigh_in_jax(
    key: Any, scale: Any, shape: Any = None, dtype: Any = None, out_sharding: Any = None
) -> Any:
    dtype, shape = float_dtype("rayleigh", dtype), () if shape is None else shape
    if not _plain(shape, scale):
        return runs.rayleigh(key, scale, shape, dtype)
    drawn = unit(single_key(key, "rayleigh"), shape_of(shape), dtype)
    scale = convert(as_array(scale), dtype)
    return ar.mul(scale, sqrt(ar.mul(log(drawn), scalar(-2, dtype))))


@form("_weibull_min")
def weibull_in_jax(
    key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = None
) -> Any:
    dtype, power = float_dtype("weibull_min", dtype), as_array(concentration)
    if not _plain(shape, scale, power) or not dtypes.is_floating(power.dtype):
        return runs.weibull_min(key, scale, concentration, shape, dtype)
    drawn = shown_uniform.call((single_key(key, "weibull_min"), shape_of(shape), dtype, 0, 1), {})
    drawn = ar.neg(log1p(ar.neg(drawn)))
    drawn = pow(drawn, convert(ar.div(constant_like(power, 1), power), dtype))
    return ar.mul(drawn, convert(as_array(scale), dtype))


@form("_pareto")
def pareto_in_jax(
    key: Any, b: Any, shape: Any = None, dtype: Any = None, out_sharding: Any = None
) -> Any:
    dtype, shape = float_dtype("pareto", dtype), () if shape is None else shape
    if not _plain(shape, b):
        return runs.pareto(key, b, shape, dtype)
    b = convert(as_array(b), dtype)
    drawn = _exponential.call((single_key(key, "pareto"), shape_of(shape), dtype), {})
    return exp(ar.div(drawn, b))


_exponential, _gamma = Shown(runs.exponential, "_exponential"), Shown(gamma, "_gamma")


@form("_maxwell")
def maxwell_in_jax(key: Any, shape: Any = (), dtype: Any = None, out_sharding: Any = None) -> Any:
    dtype = float_dtype("maxwell", dtype)
    parts = as_call("_normal", single_key(key, "maxwell"), (*shape_of(shape), 3), dtype)
    return norm(parts, axis=-1)


@form("_double_sided_maxwell")
def double_sided_maxwell_in_jax(
    key: Any, loc: Any, scale: Any, shape: Any = (), dtype: Any = None
) -> Any:
    dtype = float_dtype("double_sided_maxwell", dtype)
    if not _plain(shape, loc, scale):
        return runs.double_sided_maxwell(key, loc, scale, shape, dtype)
    first, second = split_two(single_key(key, "double_sided_maxwell"))
    size = as_call("_maxwell", first, shape, dtype)
    size = ar.mul(as_call("_rademacher", second, shape, dtype), size)
    size = ar.mul(size, convert(as_array(scale), dtype))
    return ar.add(size, convert(as_array(loc), dtype))


@form("_geometric")
def geometric_in_jax(
    key: Any, p: Any, shape: Any = None, dtype: Any = None, out_sharding: Any = None
) -> Any:
    p, shape = as_array(p), () if shape is None else shape
    if not _plain(shape, p) or not dtypes.is_floating(p.dtype) or shape:
        return runs.geometric(key, p, shape, dtype)
    drawn = unit(single_key(key, "geometric"), (), p.dtype)
    drawn = where(eq(drawn, scalar(0, p.dtype)), 1, drawn)
    failures = floor(ar.div(log(drawn), log1p(ar.neg(p))))
    wanted = dtypes.canonical(int if dtype is None else dtype)
    return convert(ar.add(failures, scalar(1, p.dtype)), wanted)


@form("_generalized_normal")
def generalized_normal_in_jax(
    key: Any, p: Any, shape: Any = (), dtype: Any = None, out_sharding: Any = None
) -> Any:
    dtype, p = float_dtype("generalized_normal", dtype), as_array(p)
    if not _plain(shape, p) or p.dtype != dtype:
        return runs.generalized_normal(key, p, shape, dtype)
    keys = split(single_key(key, "generalized_normal"))
    part = lambda i: getitem(keys, (i,))  # noqa: E731
    inverse = lambda: ar.div(constant_like(p, 1), p)  # noqa: E731
    drawn = _gamma.call((part(0), inverse(), shape, dtype), {})
    signs = as_call("_rademacher", part(1), shape, dtype)
    return ar.mul(signs, pow(drawn, convert(inverse(), dtype)))
