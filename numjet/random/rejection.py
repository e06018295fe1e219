"""Distributions drawn by rejection: gamma (and what is made of it) and Poisson.

A loop runs until every element is accepted. Sources: Marsaglia & Tsang, "A simple method for
generating gamma variables", 2000; Hörmann, "The transformed rejection method for generating Poisson
random variables", 1993 (means of 10 and more); Knuth's product of uniform values (smaller means).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.api.compiled.jit import jit
from numjet.api.compiled.shown import FLAG, Shown, wanted
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.lowering import Expand
from numjet.core.primitive import Primitive, Zero
from numjet.core.structural import convert, full, reduce_sum, scalar
from numjet.ops import arithmetic as ar
from numjet.ops.arrange import broadcast_shapes
from numjet.ops.composed import composed
from numjet.ops.constraint import sharding_constraint_p
from numjet.ops.families import align_batched
from numjet.ops.logic import bitwise_and, bitwise_not, bitwise_or, eq, floor, ge, gt, le, lt, ne
from numjet.ops.reduce import reduce_max
from numjet.ops.scan_functions import map
from numjet.ops.shape import copy, expand_dims, reshape, select_n
from numjet.ops.slicing import index_in_dim
from numjet.ops.special import lgamma, random_gamma_grad
from numjet.ops.transcendental import exp, log, pow, sqrt
from numjet.ops.while_loop import while_loop
from numjet.random.basic import (
    any_of,
    as_float,
    broadcast_to,
    float_dtype,
    normal_of,
    result_shape,
    safely,
    unit,
)
from numjet.random.keys import refuse_lists, single_key, split_many, split_two
from numjet.random.streams import is_threefry, random_split

# Below this value of 1 - 0.0331 x**4 a uniform value needs no logarithm to be accepted (Marsaglia &
# Tsang).
SQUEEZE = 0.0331
# From this mean on transformed rejection is valid (Hörmann).
POISSON_KNUTH_BELOW = 10


def _split_each(keys: Any, count: int) -> list[Any]:
    """`split` of every key of a vector."""
    new = random_split(keys, shape=(count,))
    return [index_in_dim(new, i, new.ndim - 1, keepdims=False) for i in range(count)]


# ------------------------------------------------------------------ the gamma primitive
def _gamma_abstract(keys: ShapedArray, alpha: ShapedArray, *, log_space: bool) -> ShapedArray:
    if (
        not dtypes.is_key(keys.dtype)
        or keys.shape != alpha.shape
        or not dtypes.is_floating(alpha.dtype)
    ):
        raise TypeError(
            f"random_gamma: expected keys and floats of one shape, got {keys.str_short()} and "
            f"{alpha.str_short()}."
        )
    return alpha.strong()


def _gamma(keys: Any, alpha: Any, *, log_space: bool) -> Any:
    """One gamma value for each key and each shape parameter `alpha`."""
    shape = keys.aval.shape
    if is_threefry(keys) or keys.aval.size == 1:
        return _gamma_together(keys, alpha, log_space=log_space)
    # Bits of several keys of other generators are one stream: here each key has its own.
    count = math.prod(shape)
    each = reshape(keys, (count, 1)), reshape(alpha, (count, 1))
    found = map(lambda pair: _gamma_together(*pair, log_space=log_space), each)
    return reshape(found, shape)


def _gamma_together(keys: Any, alpha: Any, *, log_space: bool) -> Any:
    dtype, shape, placed = alpha.aval.dtype, alpha.aval.shape, keys.aval.placed

    def const(value: float) -> Any:
        found = full(shape, value, dtype)
        # The values that loops start with lie as the keys that they draw with.
        return found if placed is None else sharding_constraint_p.bind(found, sharding=placed)

    one, third = const(1), const(1 / 3)
    large = ge(alpha, one)
    raised = select_n(large, ar.add(alpha, one), alpha)
    d = ar.sub(raised, third)
    c = ar.div(third, sqrt(d))
    keys, boost_keys = _split_each(keys, 2)

    def rejected(x: Any, v: Any, u: Any) -> Any:
        squeezed = ge(u, ar.sub(one, ar.mul(ar.mul(const(SQUEEZE), x), x)))
        exact = ge(log(u), ar.add(ar.mul(x, const(0.5)), ar.mul(d, ar.add(ar.sub(one, v), log(v)))))
        return bitwise_and(squeezed, exact)

    def draw(state: tuple) -> tuple:
        keys, x, v = state
        bad = le(v, const(0))
        next_keys, now = _split_each(keys, 2)
        new = normal_of(now, (), dtype)
        return (
            select_n(bad, keys, next_keys),
            select_n(bad, x, new),
            select_n(bad, v, ar.add(one, ar.mul(new, c))),
        )

    def step(state: tuple) -> tuple:
        keys, x, v, u = state
        bad = rejected(x, v, u)
        next_keys, x_keys, u_keys = _split_each(keys, 3)
        _, new_x, new_v = while_loop(
            lambda s: any_of(le(s[2], const(0))), draw, (x_keys, const(0), const(-1))
        )
        new_u = unit(u_keys, (), dtype)
        return (
            select_n(bad, keys, next_keys),
            select_n(bad, x, ar.mul(new_x, new_x)),
            select_n(bad, v, ar.mul(ar.mul(new_v, new_v), new_v)),
            select_n(bad, u, new_u),
        )

    start = (keys, const(0), one, const(2))
    _, _, v, _ = while_loop(lambda s: any_of(rejected(*s[1:])), step, start)
    uniform = ar.sub(one, unit(boost_keys, (), dtype))
    if log_space:
        boost = select_n(large, ar.div(log(uniform), alpha), const(0))
        return ar.add(ar.add(log(d), log(v)), boost)
    boost = select_n(large, pow(uniform, ar.div(one, alpha)), one)
    return ar.mul(ar.mul(d, v), boost)


def _gamma_jvp(primals: tuple, tangents: tuple, *, log_space: bool) -> tuple:
    """By implicit differentiation of the distribution function (Figurnov, Mohamed & Mnih 2018)."""
    keys, alpha = primals
    out = random_gamma_p.bind(keys, alpha, log_space=log_space)
    if type(tangents[1]) is Zero:
        return out, Zero(out.aval.tangent())
    sample = exp(out) if log_space else out
    slope = random_gamma_grad(alpha, sample)
    if log_space:
        # Tiny samples underflow; there d log(sample) / d alpha tends to -log(sample) / alpha.
        slope = select_n(
            eq(sample, full(sample.aval.shape, 0, sample.aval.dtype)),
            ar.div(slope, sample),
            ar.div(ar.neg(out), alpha),
        )
    return out, ar.mul(tangents[1], slope)


def _gamma_batch(axis: Any, args: tuple, dims: tuple, *, log_space: bool) -> tuple:
    aligned, dim = align_batched(axis, args, dims)
    first, second = aligned
    shape = first.shape if first.ndim >= second.ndim else second.shape
    values = [broadcast_to(x, shape) for x in aligned]
    return random_gamma_p.bind(*values, log_space=log_space), dim


random_gamma_p = Primitive(
    "random_gamma",
    abstract=_gamma_abstract,
    evaluate=_gamma,
    jvp=_gamma_jvp,
    batch=_gamma_batch,
    loops=Expand(_gamma),
)


def gamma_of(key: Any, alpha: Any, shape: tuple, log_space: bool) -> Any:
    """Gamma values of `shape` from one key: element i has the i-th of as many split keys."""
    alpha = broadcast_to(alpha, shape)
    bind = _one_draw_p.bind if FLAG.uses and wanted() else _one_draw
    return bind(key, alpha, log_space=log_space)


def _one_draw(key: Any, alpha: Any, *, log_space: bool) -> Any:
    shape, count = alpha.shape, math.prod(alpha.shape)
    if not count:
        return full(shape, 0, alpha.dtype)
    keys = random_split(key, shape=(count,))
    return reshape(random_gamma_p.bind(keys, reshape(alpha, (count,)), log_space=log_space), shape)


# As jaxprs show it, in one equation.
_one_draw_p = composed("random_gamma_of_key", _one_draw)


def gamma_within(key: Any, alpha: Any, shape: tuple, log_space: bool) -> Any:
    """`gamma_of` for other distributions, which jaxprs show as a call."""
    if FLAG.uses and wanted():
        return _gamma_call.call((key, alpha, shape, log_space), {})
    return gamma_of(key, alpha, shape, log_space)


_gamma_call = Shown(gamma_of, "_gamma")


def gamma(
    key: Any,
    a: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Gamma values with shape parameter `a` and scale 1.

    key: one PRNG key. a: positive numbers; 0 gives 0, negative ones NaN. shape: of the result; by
    default what the parameters broadcast to (ValueError where they do not fit it). dtype: real
    floating, the default one unless given. out_sharding: the layout of the result. Derivative in a:
    by implicit reparameterization (`lax.random_gamma_grad`). Raises TypeError for what is no key,
    ValueError for several keys (use `vmap`) and for another dtype. Source: Marsaglia and Tsang, A
    simple method for generating gamma variables (2000).

    >>> from numjet import random
    >>> random.gamma(random.key(0), 2.0, (2,)).round(4)
    Array([1.5898, 1.7599], dtype=float32)
    """
    return _gamma_public("gamma", key, a, shape, dtype, False)


def loggamma(
    key: Any,
    a: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """The logarithm of gamma values, accurate also where these underflow.

    key: one PRNG key. a: positive numbers, the shape parameter. shape: of the result; by default
    what the parameters broadcast to (ValueError where they do not fit it). dtype: real floating,
    the default one unless given. out_sharding: the layout of the result. Differentiable in a.
    Raises TypeError for what is no key, ValueError for several keys (use `vmap`) and for another
    dtype. Made of values as `gamma`'s.

    >>> from numjet import random
    >>> random.loggamma(random.key(0), 2.0, (2,)).round(4)
    Array([0.4636, 0.5653], dtype=float32)
    """
    return _gamma_public("loggamma", key, a, shape, dtype, True)


def _gamma_public(name: str, key: Any, a: Any, shape: Any, dtype: Any, log_space: bool) -> Any:
    dtype, key = float_dtype(name, dtype), single_key(key, name)
    refuse_lists(name, a)
    a = as_float(a, dtype)
    return gamma_of(key, a, result_shape(name, shape, a), log_space)


# ------------------------------------------------------------------ made of gamma
def beta(
    key: Any,
    a: Any,
    b: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Beta values: g(a) / (g(a) + g(b)) of gamma values.

    key: one PRNG key. a, b: positive numbers. shape: of the result; by default what the parameters
    broadcast to (ValueError where they do not fit it). dtype: real floating, the default one unless
    given. out_sharding: the layout of the result. Differentiable in a and b. Raises TypeError for
    what is no key, ValueError for several keys (use `vmap`) and for another dtype. Made of values
    as `gamma`'s.

    >>> from numjet import random
    >>> random.beta(random.key(0), 2.0, 3.0, (2,)).round(4)
    Array([0.2363, 0.4905], dtype=float32)
    """
    dtype, key = float_dtype("beta", dtype), single_key(key, "beta")
    a, b = safely("beta", a, dtype), safely("beta", b, dtype)
    shape = result_shape("beta", shape, a, b)
    first, second = split_two(key)
    a, b = broadcast_to(a, shape), broadcast_to(b, shape)
    x, y = gamma_within(first, a, shape, True), gamma_within(second, b, shape, True)
    top = ar.max(x, y)
    x, y = exp(ar.sub(x, top)), exp(ar.sub(y, top))
    return ar.div(x, ar.add(x, y))


def dirichlet(
    key: Any,
    alpha: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Points on a simplex: gamma values divided by their sum along the last axis.

    key: one PRNG key. alpha: positive numbers [..., n]. shape: of the result without its last axis;
    by default alpha's. dtype: real floating, the default one unless given. out_sharding: the layout
    of the result. Differentiable in alpha. Raises TypeError for what is no key, ValueError for
    several keys (use `vmap`) and for another dtype, and for alpha without axes. Made of values as
    `gamma`'s.

    >>> from numjet import random, numpy as jnp
    >>> random.dirichlet(random.key(0), jnp.ones(3)).round(4)
    Array([0.3647, 0.4283, 0.207 ], dtype=float32)
    """
    dtype, key = float_dtype("dirichlet", dtype), single_key(key, "dirichlet")
    refuse_lists("dirichlet", alpha)
    alpha = as_float(alpha, dtype)
    if not alpha.ndim:
        raise ValueError("dirichlet requires alpha.ndim >= 1, got a number.")
    shape = result_shape("dirichlet", shape, ShapedArray(alpha.shape[:-1], dtype))
    full_shape = (*shape, alpha.shape[-1])
    x = gamma_of(key, alpha, broadcast_shapes(full_shape, alpha.shape), True)
    last = (x.ndim - 1,)
    x = exp(ar.sub(x, broadcast_to(expand_dims(reduce_max(x, last), last), x.shape)))
    return ar.div(x, broadcast_to(expand_dims(reduce_sum(x, last), last), x.shape))


# ------------------------------------------------------------------ poisson
def _poisson_knuth(key: Any, rate: Any, shape: tuple, dtype: Any, most: int) -> Any:
    def going(product: Any) -> Any:
        return gt(product, ar.neg(rate))

    def step(state: tuple) -> tuple:
        i, k, key, product = state
        key, now = split_two(key)
        k = select_n(going(product), k, ar.add(k, full(shape, 1, dtype)))
        return (
            ar.add(i, scalar(1, i.dtype)),
            k,
            key,
            ar.add(product, log(unit(now, shape, dtypes.float32))),
        )

    state = (scalar(0, dtypes.int32), full(shape, -1, dtype), key, full(shape, 0, dtypes.float32))
    few = lambda s: lt(s[0], scalar(most, dtypes.int32))  # noqa: E731
    return while_loop(lambda s: bitwise_and(any_of(going(s[3])), few(s)), step, state)[1]


def _poisson_rejection(key: Any, rate: Any, shape: tuple, dtype: Any, most: int) -> Any:
    def const(value: float) -> Any:
        return full(shape, value, dtypes.float32)

    log_rate = log(rate)
    b = ar.add(const(0.931), ar.mul(const(2.53), sqrt(rate)))
    a = ar.add(const(-0.059), ar.mul(const(0.02483), b))
    inverse_alpha = ar.add(const(1.1239), ar.div(const(1.1328), ar.sub(b, const(3.4))))
    v_r = ar.sub(const(0.9277), ar.div(const(3.6224), ar.sub(b, const(2))))

    def step(state: tuple) -> tuple:
        i, out, accepted, key = state
        key, u_key, v_key = split_many(key, 3)
        u = ar.sub(unit(u_key, shape, dtypes.float32), const(0.5))
        v = unit(v_key, shape, dtypes.float32)
        rest = ar.sub(const(0.5), ar.abs(u))
        k = floor(
            ar.add(
                ar.add(ar.mul(ar.add(ar.div(ar.mul(const(2), a), rest), b), u), rate), const(0.43)
            )
        )
        s = log(ar.div(ar.mul(v, inverse_alpha), ar.add(ar.div(a, ar.mul(rest, rest)), b)))
        t = ar.sub(ar.add(ar.neg(rate), ar.mul(k, log_rate)), lgamma(ar.add(k, const(1))))
        at_once = bitwise_and(ge(rest, const(0.07)), le(v, v_r))
        refused = bitwise_or(lt(k, const(0)), bitwise_and(lt(rest, const(0.013)), gt(v, rest)))
        accept = bitwise_or(at_once, bitwise_and(bitwise_not(refused), le(s, t)))
        return (
            ar.add(i, scalar(1, i.dtype)),
            select_n(accept, out, convert(k, dtype)),
            bitwise_or(accepted, accept),
            key,
        )

    state = (scalar(0, dtypes.int32), full(shape, -1, dtype), full(shape, False, dtypes.bool_), key)
    return while_loop(
        lambda s: bitwise_and(any_of(bitwise_not(s[2])), lt(s[0], scalar(most, dtypes.int32))),
        step,
        state,
    )[1]


def _poisson(key: Any, lam: Any, dtype: Any) -> Any:
    shape = lam.shape
    most = min(np.iinfo(dtype).max, np.iinfo(np.int32).max)
    small = bitwise_or(ne(lam, lam), lt(lam, full(shape, POISSON_KNUTH_BELOW, dtypes.float32)))
    zero = full(shape, 0, dtypes.float32)
    by_product = _poisson_knuth(key, select_n(small, zero, lam), shape, dtype, most)
    # A large mean where the other method applies: accepted almost at once. One of the two counts,
    # so that both may draw from the key.
    by_rejection = _poisson_rejection(
        copy(key), select_n(small, lam, full(shape, 1e5, dtypes.float32)), shape, dtype, most
    )
    out = select_n(small, by_rejection, by_product)
    return select_n(eq(lam, zero), out, full(shape, 0, dtype))


# The loops' bodies would be traced in each call.
_compiled_poisson = jit(_poisson, static_argnames="dtype")


def poisson(
    key: Any,
    lam: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Poisson counts with mean lam.

    key: one PRNG key. lam: positive numbers; NaN and negative ones give -1. shape: of the result;
    by default what the parameters broadcast to (ValueError where they do not fit it). dtype: an
    integer dtype, int32 unless given. out_sharding: the layout of the result. Raises TypeError for
    what is no key, ValueError for several keys (use `vmap`) and for another dtype. Source: Knuth's
    products for small lam; Hörmann, The transformed rejection method for generating Poisson random
    variables (1993) for others.

    >>> from numjet import random
    >>> random.poisson(random.key(0), 4.0, (3,))
    Array([0, 1, 5], dtype=int32)
    """
    dtype = dtypes.requested(int if dtype is None else dtype, "poisson")
    key = single_key(key, "poisson")
    if not dtypes.is_integer(dtype):
        raise ValueError(f"random.poisson: dtype must be an integer dtype, got {dtype}.")
    lam = convert(as_array(lam), dtypes.float32)
    shape = result_shape("poisson", shape, lam)
    signed = dtype
    if dtype.kind == "u":  # the counts begin at -1
        signed = dtypes.canonical(dtypes.int64 if dtype.itemsize == 8 else dtypes.int32)
    counts = _compiled_poisson(key, broadcast_to(lam, shape), dtype=signed)
    return counts if signed == dtype else convert(counts, dtype)
