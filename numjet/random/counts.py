"""Binomial and multinomial counts.

Few expected successes are counted by the waiting times between them (Devroye, "Non-uniform random
variate generation", 1986, X.4.3), others drawn by transformed rejection (Hörmann, "The generation
of binomial random variates", 1993); a loop runs until every element is accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.api.compiled.jit import jit
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.structural import convert, full, scalar, transpose
from numjet.ops.cumulative import cumsum
from numjet.ops.logic import bitwise_and, bitwise_not, bitwise_or, eq, floor, ge, le, lt
from numjet.ops.scan import scan
from numjet.ops.shape import copy, expand_dims, select_n
from numjet.ops.transcendental import log, log1p, sqrt
from numjet.ops.while_loop import while_loop
from numjet.random.basic import any_of, as_float, broadcast_to, float_dtype, result_shape, unit
from numjet.random.keys import single_key, split_many, split_two
from numjet.random.streams import random_split

# From so many expected successes (or failures, if fewer) on transformed rejection is valid.
WAITING_BELOW = 10


def _by_waiting(key: Any, n: Any, p: Any, dtype: Any) -> Any:
    """Successes whose waiting times, geometric numbers, add up to at most n. 0 <= p <= 1/2."""
    shape, log_q = n.shape, log1p(-p)
    one, zero = full(shape, 1, dtype), full(shape, 0, dtype)

    def step(state: tuple) -> tuple:
        key, waited, count = state
        now, key = split_two(key)
        # Where u or p is 0 the time is infinite.
        waited = waited + floor(log(unit(now, shape, dtype)) / log_q) + one
        return key, waited, select_n(le(waited, n), count, count + one)

    return while_loop(lambda s: any_of(le(s[1], n)), step, (key, zero, zero))[2]


def _stirling(k: Any, dtype: Any) -> Any:
    """log k! - log(√(2π) (k + 1)^(k + 1/2) e^-(k + 1))."""
    # The series below is off by 3e-6 at 0, 1e-9 at 2.
    first = (0.0810614667953272, 0.0413406959554093, 0.0276779256849984)
    x = k + 1.0
    square = x * x
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / x
    for j, value in enumerate(first):
        series = select_n(le(abs(k - j), scalar(0.5, dtype)), series, full(k.shape, value, dtype))
    return series


def _by_rejection(key: Any, n: Any, p: Any, dtype: Any) -> Any:
    """Hörmann's BTRS. 0 < p <= 1/2, n p >= 10."""
    shape = n.shape
    odds = p / (1.0 - p)
    deviation = sqrt(n * p * (1.0 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    alpha = (2.83 + 5.1 / b) * deviation
    center, at_once_below = n * p + 0.5, 0.92 - 4.2 / b
    mode = floor((n + 1.0) * p)
    least = (mode + 0.5) * log((mode + 1.0) / (odds * (n - mode + 1.0)))
    least = least + _stirling(mode, dtype) + _stirling(n - mode, dtype)

    def step(state: tuple) -> tuple:
        key, out, accepted = state
        key, u_key, v_key = split_many(key, 3)
        u = unit(u_key, shape, dtype) - 0.5
        v = unit(v_key, shape, dtype)
        rest = 0.5 - abs(u)
        k = floor((2.0 * a / rest + b) * u + center)
        inside = bitwise_and(ge(k, full(shape, 0, dtype)), le(k, n))
        at_once = bitwise_and(ge(rest, full(shape, 0.07, dtype)), le(v, at_once_below))
        k_ = select_n(inside, mode, k)  # where the logarithms exist
        density = (n + 1.0) * log((n - mode + 1.0) / (n - k_ + 1.0))
        density = density + (k_ + 0.5) * log(odds * (n - k_ + 1.0) / (k_ + 1.0))
        density = density + least - _stirling(k_, dtype) - _stirling(n - k_, dtype)
        likely = le(log(v * alpha / (a / (rest * rest) + b)), density)
        # Elements accepted before take later values, too, while others go on: JAX's stream.
        accept = bitwise_and(inside, bitwise_or(at_once, likely))
        return key, select_n(accept, out, k), bitwise_or(accepted, accept)

    start = (key, full(shape, 0, dtype), full(shape, False, dtypes.bool_))
    return while_loop(lambda s: any_of(bitwise_not(s[2])), step, start)[1]


def _counts(key: Any, n: Any, p: Any, dtype: Any) -> Any:
    """Binomial counts for n and p of one shape; NaN where they are no numbers of trials and no
    probabilities, infinite for infinite n."""
    shape = n.shape
    zero, one = full(shape, 0, dtype), full(shape, 1, dtype)
    valid = bitwise_and(bitwise_and(ge(n, zero), ge(p, zero)), le(p, one))
    endless = bitwise_and(valid, eq(n, full(shape, np.inf, dtype)))
    valid = bitwise_and(valid, lt(n, full(shape, np.inf, dtype)))
    n, p = select_n(valid, zero, floor(n)), select_n(valid, zero, p)
    turned = ge(p, full(shape, 0.5, dtype))
    rarer = select_n(turned, p, one - p)
    few = lt(n * rarer, full(shape, WAITING_BELOW, dtype))
    # Where the other method counts, each has parameters at which it ends at once.
    waiting = _by_waiting(key, select_n(few, zero, n), select_n(few, zero, rarer), dtype)
    hundred, half = full(shape, 100, dtype), full(shape, 0.5, dtype)
    drawn = _by_rejection(copy(key), select_n(few, n, hundred), select_n(few, rarer, half), dtype)
    count = select_n(few, drawn, waiting)
    count = select_n(turned, count, n - count)
    count = select_n(endless, count, full(shape, np.inf, dtype))
    return select_n(bitwise_or(valid, endless), full(shape, np.nan, dtype), count)


# The loops' bodies would be traced in each call.
_compiled_counts = jit(_counts, static_argnames="dtype")


def binomial(
    key: Any, n: Any, p: Any, shape: Sequence[int] | None = None, dtype: Any = None
) -> Any:
    """The number of successes in n trials, as floats.

    key: one PRNG key. n: numbers of trials. p: their probabilities of success, in [0, 1]. shape: of
    the result; by default what n and p broadcast to. dtype: real floating, the default one unless
    given; the counts are drawn in the dtype of p. NaN where n < 0 or p is outside [0, 1], infinite
    where n is. The same key gives JAX's counts, but where rounding decides. Raises TypeError for
    what is no key, ValueError for several keys (use `vmap`) and for another dtype. Source: Hörmann,
    The generation of binomial random variates (1993). No derivative flows to n and p.

    >>> from numjet import random
    >>> random.binomial(random.key(0), 10, 0.5, (3,)).shape
    (3,)
    """
    dtype, key = float_dtype("binomial", dtype), single_key(key, "binomial")
    n, p = as_array(n), as_array(p)
    work = p.dtype if dtypes.is_floating(p.dtype) else float_dtype("binomial", None)
    n, p = as_float(n, work), as_float(p, work)
    shape = result_shape("binomial", shape, n, p)
    n, p = broadcast_to(n, shape), broadcast_to(p, shape)
    return convert(_compiled_counts(key, n, p, dtype=work), dtype)


def multinomial(
    key: Any,
    n: Any,
    p: Any,
    *,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    unroll: int | bool = 1,
) -> Any:
    """How many of n trials fall to each category, as floats unless another dtype is asked for.

    key: one PRNG key. n: numbers of trials. p: [..., k], probabilities of the categories, or what
    is proportional to them. shape: that of the result, with the categories as last axis; by default
    what n (with a further axis) and p broadcast to. dtype: real. unroll: left to the compiler. Each
    category is a `binomial` of the trials that are left, drawn in the floats that n and p join to.
    Raises TypeError for what is no key, ValueError for several keys (use `vmap`) and for a complex
    dtype. No derivative flows to n and p.

    >>> from numjet import random, numpy as jnp
    >>> counts = random.multinomial(random.key(0), 10, jnp.array([0.2, 0.3, 0.5]))
    >>> print(counts.shape, counts.sum())
    (3,) 10.0
    """
    dtype = dtypes.requested(float if dtype is None else dtype, "random.multinomial")
    if dtypes.is_complex(dtype):
        raise ValueError(f"dtype argument to `multinomial` must be a real dtype, got {dtype}.")
    key = single_key(key, "multinomial")
    p, n = as_array(p), as_array(n)
    work, _ = dtypes.promote((p.aval.dtype, p.aval.weak_type), (n.aval.dtype, n.aval.weak_type))
    if not dtypes.is_floating(work):
        work = dtypes.canonical(dtypes.float64)
    elif work.itemsize < 4:
        work = dtypes.float32
    p, n = convert(p, work), convert(n, work)
    if not p.ndim:
        raise ValueError("random.multinomial: p must have an axis of categories, got a scalar.")
    shape = result_shape("multinomial", shape, expand_dims(n, (n.ndim,)), p)
    if not shape[-1]:
        return full(shape, 0, dtype)
    n, p = broadcast_to(n, shape[:-1]), broadcast_to(p, shape)
    return convert(_compiled_shares(key, n, p, dtype=work, unroll=unroll), dtype)


def _shares(key: Any, n: Any, p: Any, dtype: Any, unroll: int | bool) -> Any:
    """How many of n trials fall to each category, of p's last axis."""
    shape = p.shape
    categories, batch = shape[-1], shape[:-1]
    order = (len(batch), *range(len(batch)))
    p = transpose(p, order)
    # Of what is left for a category and those behind it, its part: the last has all.
    left = cumsum(p, 0, reverse=True)
    one = full(p.shape, 1, dtype)
    last = ge(p, left)
    part = select_n(last, p / select_n(last, left, one), one)

    def draw(rest: Any, now: tuple) -> tuple:
        key, part = now
        count = _counts(key, rest, part, dtype)
        return rest - count, count

    keys = random_split(key, shape=(categories,))
    counts = scan(draw, n, (keys, part), unroll=unroll)[1]
    return transpose(counts, (*range(1, len(shape)), 0))


_compiled_shares = jit(_shares, static_argnames=("dtype", "unroll"))
