"""Distributions made of uniform, normal and gamma values by a formula."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.api.compiled.shown import FLAG, Shown, wanted
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.structural import convert, reduce_sum, scalar
from numjet.ops import arithmetic as ar
from numjet.ops.arrange import broadcast_shapes
from numjet.ops.dot import dot_general
from numjet.ops.families import constant_like
from numjet.ops.linalg import cholesky, eigh, qr, svd
from numjet.ops.linalg_core import diagonal_part, transposed
from numjet.ops.logic import eq, floor, le, lt
from numjet.ops.shape import expand_dims, select_n
from numjet.ops.transcendental import exp, log, log1p, pow, sqrt, tan
from numjet.random.basic import (
    _finfo,
    as_float,
    broadcast_to,
    float_dtype,
    normal_of,
    rademacher,
    result_shape,
    safely,
    unit,
)
from numjet.random.keys import parameter, refuse_lists, shape_of, single_key, split_two
from numjet.random.rejection import gamma_within

# Distributions whose parameters may not be of a wider dtype than the result.
SAFELY = frozenset(
    ("f", "chisquare", "t", "pareto", "wald", "lognormal", "triangular", "rayleigh")
)


def _start(
    name: str, key: Any, dtype: Any, shape: Any, *parameters: Any
) -> tuple[Any, Any, tuple, list[Any]]:
    """The typed key, the dtype, the result's shape, and the parameters at that shape and dtype."""
    dtype = float_dtype(name, dtype, name == "lognormal")
    values = [safely(name, p, dtype) if name in SAFELY else as_float(p, dtype) for p in parameters]
    shape = result_shape(name, shape, *values) if values else shape_of(shape)
    return single_key(key, name), dtype, shape, [broadcast_to(v, shape) for v in values]


def _exponential(key: Any, shape: tuple, dtype: Any) -> Any:
    return ar.neg(log1p(ar.neg(unit(key, shape, dtype))))


def exponential(
    key: Any, shape: Sequence[int] = (), dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Exponential values with mean 1: -log u.

    key: one PRNG key. shape: of the result, () by default. dtype: real floating, the default one
    unless given. out_sharding: the layout of the result. Raises TypeError for what is no key,
    ValueError for several keys (use `vmap`) and for another dtype. Source: inversion, Devroye,
    Non-uniform random variate generation (1986), II.2.

    >>> from numjet import random
    >>> random.exponential(random.key(0), (2,)).round(4)
    Array([2.9501, 3.8434], dtype=float32)
    """
    key, dtype, shape, _ = _start("exponential", key, dtype, shape)
    return _exponential(key, shape, dtype)


def laplace(
    key: Any, shape: Sequence[int] = (), dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Laplace values: density exp(-|x|) / 2.

    key: one PRNG key. shape: of the result, () by default. dtype: real floating, the default one
    unless given. out_sharding: the layout of the result. Raises TypeError for what is no key,
    ValueError for several keys (use `vmap`) and for another dtype. By inversion, as `exponential`.

    >>> from numjet import random
    >>> random.laplace(random.key(0), (2,)).round(4)
    Array([-2.257 , -3.1503], dtype=float32)
    """
    key, dtype, shape, _ = _start("laplace", key, dtype, shape)
    u = unit(key, shape, dtype, -1 + _finfo(dtype).epsneg, 1)
    return ar.mul(ar.sign(u), log1p(ar.neg(ar.abs(u))))


def logistic(
    key: Any, shape: Sequence[int] = (), dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Logistic values: log(u / (1 - u)).

    key: one PRNG key. shape: of the result, () by default. dtype: real floating, the default one
    unless given. out_sharding: the layout of the result. Raises TypeError for what is no key,
    ValueError for several keys (use `vmap`) and for another dtype. By inversion, as `exponential`.

    >>> from numjet import random
    >>> random.logistic(random.key(0), (2,)).round(4)
    Array([2.8964, 3.8218], dtype=float32)
    """
    key, dtype, shape, _ = _start("logistic", key, dtype, shape)
    u = unit(key, shape, dtype, _finfo(dtype).tiny, 1)
    return ar.sub(log(u), log1p(ar.neg(u)))


def cauchy(
    key: Any, shape: Sequence[int] = (), dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Cauchy values: tan(π (u - 1/2)).

    key: one PRNG key. shape: of the result, () by default. dtype: real floating, the default one
    unless given. out_sharding: the layout of the result. Raises TypeError for what is no key,
    ValueError for several keys (use `vmap`) and for another dtype. By inversion, as `exponential`.

    >>> from numjet import random
    >>> random.cauchy(random.key(0), (2,)).round(3)
    Array([ 6.027, 14.838], dtype=float32)
    """
    key, dtype, shape, _ = _start("cauchy", key, dtype, shape)
    u = unit(key, shape, dtype, _finfo(dtype).eps, 1)
    return tan(ar.mul(scalar(np.pi, dtype), ar.sub(u, scalar(0.5, dtype))))


def pareto(
    key: Any,
    b: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Pareto values of 1 and more: u^(-1/b).

    key: one PRNG key. b: positive numbers, the exponent. shape: of the result; by default what the
    parameters broadcast to (ValueError where they do not fit it). dtype: real floating, the default
    one unless given. out_sharding: the layout of the result. Differentiable in b. Raises TypeError
    for what is no key, ValueError for several keys (use `vmap`) and for another dtype. By
    inversion, as `exponential`.

    >>> from numjet import random
    >>> random.pareto(random.key(0), 3.0, (2,)).round(4)
    Array([2.6735, 3.6007], dtype=float32)
    """
    key, dtype, shape, (b,) = _start("pareto", key, dtype, shape, b)
    return exp(ar.div(_exponential(key, shape, dtype), b))


def rayleigh(
    key: Any,
    scale: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Rayleigh values: scale √(-2 log u).

    key: one PRNG key. scale: positive numbers. shape: of the result; by default what the parameters
    broadcast to (ValueError where they do not fit it). dtype: real floating, the default one unless
    given. out_sharding: the layout of the result. Differentiable in scale. Raises TypeError for
    what is no key, ValueError for several keys (use `vmap`) and for another dtype. By inversion, as
    `exponential`.

    >>> from numjet import random
    >>> random.rayleigh(random.key(0), 2.0, (2,)).round(4)
    Array([0.6558, 0.4162], dtype=float32)
    """
    key, dtype, shape, (scale,) = _start("rayleigh", key, dtype, shape, scale)
    u = unit(key, shape, dtype)
    return ar.mul(scale, sqrt(ar.mul(log(u), scalar(-2, dtype))))


def weibull_min(
    key: Any, scale: Any, concentration: Any, shape: Sequence[int] = (), dtype: Any = None
) -> Any:
    """Weibull values: scale (-log u)^(1 / concentration).

    key: one PRNG key. scale, concentration: positive numbers or arrays. shape: of what is drawn, ()
    by default; the result's is what it and the parameters broadcast to. dtype: of what is drawn,
    real floating, the default one unless given; the result's joins it with the parameters'.
    Differentiable in both. Raises TypeError for what is no key, ValueError for several keys (use
    `vmap`) and for another dtype. By inversion, as `exponential`.

    >>> from numjet import random
    >>> random.weibull_min(random.key(0), 1.0, 2.0, (2,)).round(4)
    Array([1.7176, 1.9605], dtype=float32)
    """
    c = as_array(concentration)
    if not dtypes.is_floating(c.aval.dtype):
        c = as_float(c, float_dtype("weibull_min", dtype))
    power = ar.div(constant_like(c, 1), c)
    key, dtype, shape, _ = _start("weibull_min", key, dtype, shape)
    values = [_exponential(key, shape, dtype), as_array(scale), power]
    # As in JAX: what was drawn meets the parameters, whose shapes and dtypes count too.
    common = dtypes.promote(*[(x.aval.dtype, x.aval.weak_type) for x in values])[0]
    values = [as_float(x, common) for x in values]
    full = broadcast_shapes(*[x.shape for x in values])
    drawn, scale, power = [broadcast_to(x, full) for x in values]
    return ar.mul(pow(drawn, power), scale)


def lognormal(
    key: Any,
    sigma: Any = np.float32(1.0),  # noqa: B008 - immutable
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """exp of normal values with mean 0.

    key: one PRNG key. sigma: the standard deviation of the logarithm. shape: of the result; by
    default what the parameters broadcast to (ValueError where they do not fit it). dtype: floating
    or complex, the default one unless given. out_sharding: the layout of the result. Differentiable
    in sigma. Raises TypeError for what is no key, ValueError for several keys (use `vmap`) and for
    another dtype. Made as `normal` is.

    >>> from numjet import random
    >>> random.lognormal(random.key(0), 0.5, (2,)).round(4)
    Array([2.2509, 2.7528], dtype=float32)
    """
    key, dtype, shape, (sigma,) = _start("lognormal", key, dtype, shape, sigma)
    return exp(ar.mul(normal_of(key, shape, dtype), sigma))


def maxwell(
    key: Any, shape: Sequence[int] = (), dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """The length of a standard normal vector of three components.

    key: one PRNG key. shape: of the result, () by default. dtype: real floating, the default one
    unless given. out_sharding: the layout of the result. Raises TypeError for what is no key,
    ValueError for several keys (use `vmap`) and for another dtype. Made as `normal` is.

    >>> from numjet import random
    >>> random.maxwell(random.key(0), (2,)).round(4)
    Array([2.6311, 0.991 ], dtype=float32)
    """
    key, dtype, shape, _ = _start("maxwell", key, dtype, shape)
    x = normal_of(key, (*shape, 3), dtype)
    return sqrt(reduce_sum(ar.mul(x, x), (len(shape),)))


def double_sided_maxwell(
    key: Any, loc: Any, scale: Any, shape: Sequence[int] = (), dtype: Any = None
) -> Any:
    """loc plus or minus scale times Maxwell values.

    key: one PRNG key. loc, scale: numbers or arrays, whose shape goes behind `shape`. shape: of the
    samples; without one it is that of the parameters, which is there twice then. dtype: real
    floating, the default one unless given. Raises TypeError for what is no key, ValueError for
    several keys (use `vmap`) and for another dtype. Made as `normal` is.

    >>> from numjet import random
    >>> random.double_sided_maxwell(random.key(0), 0.0, 1.0, (2,)).round(4)
    Array([1.5457, 1.5741], dtype=float32)
    """
    refuse_lists("double_sided_maxwell", loc, scale)
    loc, scale = as_array(loc), as_array(scale)
    key, dtype, _, (loc, scale) = _start("double_sided_maxwell", key, dtype, None, loc, scale)
    shape = (*(shape_of(shape) or loc.shape), *loc.shape)
    first, second = split_two(key)
    size = ar.mul(maxwell(first, shape, dtype), convert(rademacher(second, shape), dtype))
    return ar.add(ar.mul(size, broadcast_to(scale, shape)), broadcast_to(loc, shape))


def triangular(
    key: Any,
    left: Any,
    mode: Any,
    right: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Values with a triangular density from left over mode to right.

    key: one PRNG key. left, mode, right: numbers, not descending. shape: of the result; by default
    what the parameters broadcast to (ValueError where they do not fit it). dtype: real floating,
    the default one unless given. out_sharding: the layout of the result. Differentiable in all
    three. Raises TypeError for what is no key, ValueError for several keys (use `vmap`) and for
    another dtype. By inversion, as `exponential`.

    >>> from numjet import random
    >>> random.triangular(random.key(0), 0.0, 1.0, 2.0, (2,)).round(4)
    Array([1.6765, 1.793 ], dtype=float32)
    """
    key, dtype, shape, (left, mode, right) = _start(
        "triangular", key, dtype, shape, left, mode, right
    )
    start = ar.sub(mode, left)
    span = ar.sub(right, left)
    again = FLAG.uses and wanted()
    width = lambda: ar.sub(right, left) if again else span  # noqa: E731
    share = ar.div(start, span)
    u = unit(key, shape, dtype)
    rising = ar.add(left, sqrt(ar.mul(ar.mul(u, width()), ar.sub(mode, left) if again else start)))
    below = ar.mul(ar.sub(scalar(1, dtype), u), width())
    falling = ar.sub(right, sqrt(ar.mul(below, ar.sub(right, mode))))
    return select_n(lt(u, share), falling, rising)


def wald(
    key: Any,
    mean: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Inverse Gaussian values with scale 1.

    key: one PRNG key. mean: positive numbers. shape: of the result; by default what the parameters
    broadcast to (ValueError where they do not fit it). dtype: real floating, the default one unless
    given. out_sharding: the layout of the result. Differentiable in mean. Raises TypeError for what
    is no key, ValueError for several keys (use `vmap`) and for another dtype. Source: Michael,
    Schucany and Haas, Generating random variates using transformations with multiple roots (1976).

    >>> from numjet import random
    >>> random.wald(random.key(0), 1.0, (2,)).round(4)
    Array([0.3806, 0.4157], dtype=float32)
    """
    key, dtype, shape, (mean,) = _start("wald", key, dtype, shape, mean)
    first, second = split_two(key)
    v, z = normal_of(first, shape, dtype), unit(second, shape, dtype)
    # Of the roots, whose product is mean², the larger is found without a difference.
    y = ar.mul(mean, ar.mul(v, v))
    root = ar.mul(sqrt(y), sqrt(ar.add(y, scalar(4, dtype))))
    ratio = ar.add(scalar(1, dtype), ar.mul(scalar(0.5, dtype), ar.add(y, root)))
    x = ar.div(mean, ratio)
    return select_n(le(z, ar.div(mean, ar.add(mean, x))), ar.mul(mean, ratio), x)


# ------------------------------------------------------------------ made of gamma
def chisquare(
    key: Any,
    df: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Chi-square values: sums of df squared standard normal values.

    key: one PRNG key. df: positive numbers, the degrees of freedom, which need not be whole. shape:
    of the result; by default what the parameters broadcast to (ValueError where they do not fit
    it). dtype: real floating, the default one unless given. out_sharding: the layout of the result.
    Differentiable in df. Raises TypeError for what is no key, ValueError for several keys (use
    `vmap`) and for another dtype. Made of values as `gamma`'s.

    >>> from numjet import random
    >>> random.chisquare(random.key(0), 3.0, (2,)).round(4)
    Array([2.2051, 2.49  ], dtype=float32)
    """
    key, dtype, shape, (df,) = _start("chisquare", key, dtype, shape, df)
    return _chisquare(key, df, shape, dtype)


def _chisquare(key: Any, df: Any, shape: tuple, dtype: Any) -> Any:
    two = scalar(2, dtype)
    return ar.mul(exp(gamma_within(key, ar.div(df, two), shape, True)), two)


_shown_chisquare = Shown(_chisquare, "_chisquare")


def _chisquare_call(*args: Any) -> Any:
    return _shown_chisquare.call(args, {})


def f(
    key: Any,
    dfnum: Any,
    dfden: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """F values: the quotient of two chi-square values, each divided by its degrees of freedom.

    key: one PRNG key. dfnum, dfden: positive numbers, the degrees of freedom. shape: of the result;
    by default what the parameters broadcast to (ValueError where they do not fit it). dtype: real
    floating, the default one unless given. out_sharding: the layout of the result. Differentiable
    in both. Raises TypeError for what is no key, ValueError for several keys (use `vmap`) and for
    another dtype. Made of values as `gamma`'s.

    >>> from numjet import random
    >>> random.f(random.key(0), 3.0, 4.0, (2,)).round(4)
    Array([2.7039, 0.226 ], dtype=float32)
    """
    key, dtype, shape, (n, m) = _start("f", key, dtype, shape, dfden, dfnum)
    second, first = split_two(key)
    draw = _chisquare_call if FLAG.uses and wanted() else _chisquare
    top, bottom = draw(first, m, shape, dtype), draw(second, n, shape, dtype)
    return ar.div(ar.div(top, m), ar.div(bottom, n))


def t(
    key: Any,
    df: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Student's t values.

    key: one PRNG key. df: positive numbers, the degrees of freedom. shape: of the result; by
    default what the parameters broadcast to (ValueError where they do not fit it). dtype: real
    floating, the default one unless given. out_sharding: the layout of the result. Differentiable
    in df. Raises TypeError for what is no key, ValueError for several keys (use `vmap`) and for
    another dtype. A `normal` value by the root of a `gamma` value.

    >>> from numjet import random
    >>> random.t(random.key(0), 3.0, (2,)).round(4)
    Array([ 0.6902, -3.2393], dtype=float32)
    """
    key, dtype, shape, (df,) = _start("t", key, dtype, shape, df)
    first, second = split_two(key)
    normal, half = normal_of(first, shape, dtype), ar.div(df, scalar(2, dtype))
    return ar.mul(normal, sqrt(ar.div(half, gamma_within(second, half, shape, False))))


def generalized_normal(
    key: Any, p: float, shape: Sequence[int] = (), dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Values with density proportional to exp(-|x|^p).

    key: one PRNG key. p: a positive number. shape: of the result, () by default. dtype: real
    floating, the default one unless given. out_sharding: the layout of the result. Raises TypeError
    for what is no key, ValueError for several keys (use `vmap`) and for another dtype. The 1/p-th
    power of a `gamma` value, with a random sign.

    >>> from numjet import random
    >>> random.generalized_normal(random.key(0), 2.0, (2,)).round(4)
    Array([0.9543, 0.0902], dtype=float32)
    """
    key, dtype, shape, _ = _start("generalized_normal", key, dtype, shape)
    first, second = split_two(key)
    inverse = _inverse(p, dtype)
    result_shape("generalized_normal", shape, inverse)
    sign, power = convert(rademacher(second, shape), dtype), broadcast_to(inverse, shape)
    # Gamma values of small parameters underflow, their logarithms do not.
    return ar.mul(sign, exp(ar.mul(power, gamma_within(first, inverse, shape, True))))


def _inverse(p: Any, dtype: Any) -> Any:
    """1 / p, of an exponent that may be traced."""
    if isinstance(p, int | float):
        return scalar(1 / p, dtype)
    return ar.div(scalar(1, dtype), convert(as_array(p), dtype))


def ball(
    key: Any,
    d: int,
    p: float = 2,
    shape: Sequence[int] = (),
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Uniform points of the unit ball of the p-norm in d dimensions.

    key: one PRNG key. d: an integer. p: a positive number, 2 for Euclid's norm. shape: of the
    result without its last axis, which holds the d coordinates; () by default. dtype: real
    floating, the default one unless given. out_sharding: the layout of the result. Raises TypeError
    for what is no key, ValueError for several keys (use `vmap`) and for another dtype. Source:
    Barthe, Guédon, Mendelson and Naor, A probabilistic approach to the geometry of the ℓp-ball
    (2005).

    >>> from numjet import random
    >>> random.ball(random.key(0), 2).round(4)
    Array([0.9172, 0.3928], dtype=float32)
    """
    shape = shape_of((*shape_of(shape), d), broadcasts=True)[:-1]
    key, dtype, shape, _ = _start("ball", key, dtype, shape)
    first, second = split_two(key)
    g = generalized_normal(first, p, (*shape, d), dtype)
    power = pow(ar.abs(g), broadcast_to(as_float(p, dtype), g.shape))
    total = ar.add(reduce_sum(power, (len(shape),)), _exponential(second, shape, dtype))
    radius = pow(total, broadcast_to(_inverse(p, dtype), shape))
    return ar.div(g, broadcast_to(expand_dims(radius, (len(shape),)), g.shape))


# ------------------------------------------------------------------ matrices and vectors
def orthogonal(
    key: Any,
    n: int,
    shape: Sequence[int] = (),
    dtype: Any = None,
    m: int | None = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Uniformly distributed orthogonal (unitary) matrices, or their first columns.

    key: one PRNG key. n: rows. m: columns, n unless given; the columns are orthonormal, or the rows
    where m exceeds n. shape: of the leading axes of the result [..., n, m]. dtype: floating or
    complex, the default float unless given. out_sharding: the layout of the result. Raises
    TypeError for what is no key, ValueError for several keys (use `vmap`) and for another dtype.
    Source: Mezzadri, How to generate random matrices from the classical compact groups (2007).

    >>> from numjet import random
    >>> random.orthogonal(random.key(0), 2).shape
    (2, 2)
    """
    dtype, key, shape = (
        float_dtype("orthogonal", dtype, complex_too=True),
        single_key(key, "orthogonal"),
        shape_of(shape),
    )
    n = operator.index(n)
    m = n if m is None else operator.index(m)
    q, r = qr(normal_of(key, (*shape, max(n, m), min(n, m)), dtype), full_matrices=False)
    diagonal = reduce_sum(diagonal_part(r), (r.ndim - 2,))
    q = ar.mul(q, broadcast_to(expand_dims(ar.sign(diagonal), (q.ndim - 2,)), q.shape))
    return q if n >= m else transposed(q)


def multivariate_normal(
    key: Any,
    mean: Any,
    cov: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    method: str = "cholesky",
    *,
    out_sharding: Any = None,
) -> Any:
    """Normal vectors with the given mean and covariance.

    key: one PRNG key. mean: [..., n]. cov: [..., n, n], symmetric, positive semidefinite. method:
    'cholesky' (the fastest; NaN for singular ones), 'eigh' or 'svd', how its root is found. shape:
    of the result without its last axis; by default what the leading axes broadcast to. dtype: real
    floating; by default that of mean and cov together, of 32 bits at least. out_sharding: the
    layout of the result. Differentiable in mean and cov. Raises TypeError for what is no key,
    ValueError for several keys (use `vmap`) and for another dtype, shapes that do not fit or
    another method. Computed by `lax.linalg.cholesky`.

    >>> from numjet import random, numpy as jnp
    >>> random.multivariate_normal(random.key(0), jnp.zeros(2), jnp.eye(2)).round(4)
    Array([1.6226, 2.0253], dtype=float32)
    """
    if dtype is None:
        given = [parameter(x).aval for x in (mean, cov)]
        joined = dtypes.promote(*[(a.dtype, a.weak_type) for a in given])[0]
        dtype = joined if dtypes.is_floating(joined) and joined.itemsize >= 4 else None
    key, dtype = single_key(key, "multivariate_normal"), float_dtype("multivariate_normal", dtype)
    mean, cov = as_float(mean, dtype), as_float(cov, dtype)
    if not mean.ndim or cov.ndim < 2 or cov.shape[-2:] != (mean.shape[-1],) * 2:
        raise ValueError(
            f"random.multivariate_normal: mean of shape {mean.shape} and cov of shape {cov.shape} "
            "must be (..., n) and (..., n, n)."
        )
    batch = broadcast_shapes(mean.shape[:-1], cov.shape[:-2])
    shape = batch if shape is None else shape_of(shape)
    if broadcast_shapes(shape, batch) != shape:
        raise ValueError(
            f"random.multivariate_normal: shape {shape} must end with the batch shape {batch}."
        )
    if method == "cholesky":
        factor = cholesky(cov)
    elif method == "eigh":
        vectors, values = eigh(cov)
        factor = ar.mul(
            vectors, broadcast_to(expand_dims(sqrt(values), (cov.ndim - 2,)), cov.shape)
        )
    elif method == "svd":
        u, s, _ = svd(cov)
        factor = ar.mul(u, broadcast_to(expand_dims(sqrt(s), (cov.ndim - 2,)), cov.shape))
    else:
        raise ValueError(
            "method must be one of {'cholesky', 'eigh', 'svd'}, but random.multivariate_normal got "
            f"{method!r}."
        )
    n = mean.shape[-1]
    x = normal_of(key, (*shape, n), dtype)
    if factor.ndim == 2:
        x = dot_general(x, factor, (((x.ndim - 1,), (1,)), ((), ())))
    else:
        factor = broadcast_to(factor, (*shape, n, n))
        axes = tuple(range(len(shape)))
        x = dot_general(factor, x, (((factor.ndim - 1,), (x.ndim - 1,)), (axes, axes)))
    return ar.add(broadcast_to(mean, x.shape), x)


def geometric(
    key: Any,
    p: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """The number of trials up to the first success, 1 or more.

    key: one PRNG key. p: the probability of success, in (0, 1]. shape: of the result; by default
    what the parameters broadcast to (ValueError where they do not fit it). dtype: an integer dtype,
    int32 unless given. out_sharding: the layout of the result. Raises TypeError for what is no key,
    ValueError for several keys (use `vmap`) and for another dtype. Source: Devroye, Non-uniform
    random variate generation (1986), X.2.

    >>> from numjet import random
    >>> random.geometric(random.key(0), 0.5, (3,))
    Array([1, 1, 2], dtype=int32)
    """
    dtype, key, p = (
        dtypes.requested(int if dtype is None else dtype, "geometric"),
        single_key(key, "geometric"),
        as_array(p),
    )
    if not dtypes.is_integer(dtype):
        raise ValueError(f"dtype argument to `geometric` must be an int dtype, got {dtype}.")
    p = convert(p, p.dtype if dtypes.is_floating(p.dtype) else dtypes.canonical(float))
    shape = result_shape("geometric", shape, p)
    u = unit(key, shape, p.dtype)
    # 0, one draw in 256 of bfloat16, stands for 1: its logarithm would be no number of failures.
    zero, one = [broadcast_to(scalar(x, p.dtype), shape) for x in (0, 1)]
    u = select_n(eq(u, zero), u, one)
    failures = floor(ar.div(log(u), broadcast_to(log1p(ar.neg(p)), shape)))
    return convert(ar.add(failures, scalar(1, p.dtype)), dtype)
