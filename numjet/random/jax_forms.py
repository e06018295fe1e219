"""Draws in the operations that JAX makes them of, for who looks at jaxprs (`api.compiled.shown`).

What runs has fewer operations. Each takes the arguments of the function whose calls it shows.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from numjet.api.compiled.shown import CALLS, PREPARED, Shown, form
from numjet.core import dtypes
from numjet.core.array import Array, as_array
from numjet.core.primitive import REGISTRY
from numjet.core.structural import broadcast_in_dim, convert, scalar
from numjet.numpy.elementwise import clip
from numjet.ops import arithmetic as ar
from numjet.ops.arrange import stop_gradient
from numjet.ops.logic import bitwise_and, gt, le, lt
from numjet.ops.shape import select_n
from numjet.ops.special import erf, erf_inv
from numjet.ops.transcendental import log
from numjet.random import basic
from numjet.random.basic import broadcast_shown, float_dtype, unit_floats
from numjet.random.keys import shape_of, single_key, split_two
from numjet.random.streams import random_bits


@form("_uniform")
def uniform_in_jax(
    key: Any, shape: Any, dtype: Any, minval: Any, maxval: Any, out_sharding: Any = None
) -> Any:
    dtype, shape = float_dtype("uniform", dtype), shape_of(shape)
    bounds = [convert(as_array(x), dtype) for x in (minval, maxval)]
    low, high = [_of_rank(x, len(shape)) for x in bounds]
    floats = unit_floats(single_key(key, "uniform"), shape, dtype)
    drawn = ar.add(ar.mul(floats, ar.sub(high, low)), low)
    if not shape:
        drawn = REGISTRY["reshape"].bind(drawn, new_sizes=(), dimensions=None)
    return ar.max(low, drawn)


def _of_rank(x: Any, rank: int) -> Any:
    """x with axes of size 1 in front."""
    more = rank - x.ndim
    if more <= 0:
        return x
    return broadcast_in_dim(x, (1,) * more + x.shape, tuple(range(more, rank)))


def _real(key: Any, shape: Any, dtype: Any) -> Any:
    low = np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype), dtype=dtype)
    bounds = scalar(low, dtype), scalar(1, dtype)
    drawn = _uniform.call((key, shape, dtype, *bounds), {})
    return ar.mul(scalar(np.sqrt(2), dtype), erf_inv(drawn))


_uniform, _normal_real = basic.shown_uniform, Shown(_real, "_normal_real")


@form("_normal")
def normal_in_jax(key: Any, shape: Any, dtype: Any, out_sharding: Any = None) -> Any:
    dtype = float_dtype("normal", dtype, complex_too=True)
    if dtypes.is_complex(dtype):
        real = dtypes.real_of(dtype)
        parts = [
            convert(_normal_real.call((half, shape_of(shape), real), {}), dtype)
            for half in split_two(single_key(key, "normal"))
        ]
        total = ar.add(parts[0], ar.mul(scalar(1j, dtype), parts[1]))
        return ar.div(total, scalar(np.sqrt(2), dtype))
    return _normal_real.call((single_key(key, "normal"), shape_of(shape), dtype), {})


@form("_bernoulli")
def bernoulli_in_jax(
    key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low", out_sharding: Any = None
) -> Any:
    p = as_array(p)
    if mode != "low" or not dtypes.is_floating(p.dtype):
        return basic.bernoulli(key, p, shape, mode)
    shape = basic.result_shape("bernoulli", shape, p)
    return lt(basic.unit(single_key(key, "bernoulli"), shape, p.dtype), broadcast_shown(p, shape))


_bernoulli = Shown(bernoulli_in_jax, "_bernoulli")


@form("_rademacher")
def rademacher_in_jax(
    key: Any, shape: Any = (), dtype: Any = None, out_sharding: Any = None
) -> Any:
    drawn = _bernoulli.call((single_key(key, "rademacher"), 0.5, shape_of(shape)), {})
    signs = convert(drawn, dtypes.canonical(int if dtype is None else dtype))
    two, one = scalar(2, signs.dtype), scalar(1, signs.dtype)
    return ar.sub(ar.mul(two, signs), one)


@form("_gumbel")
def gumbel_in_jax(
    key: Any, shape: Any = (), dtype: Any = None, mode: Any = None, out_sharding: Any = None
) -> Any:
    dtype, shape = float_dtype("gumbel", dtype), shape_of(shape)
    if mode not in (None, "low"):
        return basic.gumbel(key, shape, dtype, mode)
    bounds = {"minval": scalar(dtypes.finfo(dtype).tiny, dtype), "maxval": 1.0}
    drawn = _uniform.call((single_key(key, "gumbel"), shape, dtype), bounds)
    return ar.neg(log(ar.neg(log(drawn))))


@form("_truncated_normal")
def truncated_normal_in_jax(
    key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None, out_sharding: Any = None
) -> Any:
    dtype = float_dtype("truncated_normal", dtype)
    lower, upper = [convert(as_array(x), dtype) for x in (lower, upper)]
    shape = basic.result_shape("truncated_normal", shape, lower, upper)
    root = scalar(np.sqrt(2), dtype)
    bounds = [erf(ar.div(x, root)) for x in (lower, upper)]
    drawn = _uniform.call((single_key(key, "truncated_normal"), shape, dtype, *bounds), {})
    out = ar.mul(root, erf_inv(drawn))
    least, most = [
        ar.nextafter(stop_gradient(x), scalar(end, dtype))
        for x, end in ((lower, np.inf), (upper, -np.inf))
    ]
    return clip(out, least, most)


@form("_randint")
def randint_in_jax(
    key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None, out_sharding: Any = None
) -> Any:
    shape, dtype = shape_of(shape), dtypes.canonical(int if dtype is None else dtype)
    bounds = [as_array(x) for x in (minval, maxval)]
    if dtype != np.int32 or any([x.dtype != np.int32 for x in bounds]):
        return basic.randint(key, shape, minval, maxval, dtype)
    basic.result_shape("randint", shape, *bounds)
    ends = -(2**31), 2**31 - 1
    least, most = [scalar(end, dtype) for end in ends]
    beyond = gt(bounds[1], clip(most, least, most))
    inner = [convert(clip(x, *ends), dtype) for x in bounds]
    low, high = [_of_rank(x, len(shape)) for x in inner]
    first, second = split_two(single_key(key, "randint"))
    upper = random_bits(first, bit_width=32, shape=shape)
    lower = random_bits(second, bit_width=32, shape=shape)
    unsigned = np.dtype(np.uint32)
    span = convert(ar.sub(high, low), unsigned)
    empty = le(high, low)
    span = select_n(empty, span, _of_rank(scalar(1, unsigned), len(shape)))
    span = select_n(bitwise_and(beyond, gt(high, low)), span, ar.add(span, scalar(1, unsigned)))
    half = ar.rem(scalar(1 << 16, unsigned), span)
    factor = ar.rem(ar.mul(half, half), span)
    offset = ar.add(ar.mul(ar.rem(upper, span), factor), ar.rem(lower, span))
    return ar.add(low, convert(ar.rem(offset, span), dtype))


def _with_typed_key(name: str, args: tuple) -> tuple:
    """The arguments of a draw with a typed key: raw ones are wrapped before the call, as in JAX."""
    if args and isinstance(args[0], Array) and not dtypes.is_key(args[0].dtype):
        return single_key(args[0], name), *args[1:]
    return args


def _with_chance(args: tuple) -> tuple:
    """The arguments of `bernoulli` with an Array of floats as the chance."""
    key, *rest = _with_typed_key("bernoulli", args)
    if rest and isinstance(rest[0], float):
        rest[0] = scalar(rest[0], float_dtype("bernoulli", float))
    return key, *rest


for _name, _call in CALLS["numjet.random"].items():
    PREPARED[_call] = functools.partial(_with_typed_key, _name)
PREPARED["_bernoulli"] = _with_chance
