"""The distributions everything else is made of: uniform, integers, normal, coin flips,
permutations, choices.

`uniform`, `randint` and `permutation` give JAX's bits exactly, so their arithmetic is fixed: do not
reorder it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from numjet.api.compiled.jit import jit
from numjet.api.compiled.shown import FLAG, Shown, as_call, shown, wanted
from numjet.base.errors import TypePromotionError
from numjet.core import dtypes
from numjet.core.array import ArrayImpl, as_array
from numjet.core.dims import DimExpr
from numjet.core.memo import Memo
from numjet.core.structural import broadcast_in_dim, convert, moveaxis, scalar
from numjet.numpy.take import take
from numjet.ops import arithmetic as ar
from numjet.ops.arrange import broadcast_shapes, stop_gradient
from numjet.ops.bits import bitcast_convert_type
from numjet.ops.complex_ops import complex as make_complex
from numjet.ops.cond import cond
from numjet.ops.cumulative import cumsum
from numjet.ops.fma import fma
from numjet.ops.gather import GatherDimensionNumbers, gather
from numjet.ops.logic import (
    bitwise_and,
    bitwise_or,
    ge,
    gt,
    le,
    lt,
    shift_right_logical,
)
from numjet.ops.reduce import argmax, reduce_or
from numjet.ops.shape import expand_dims, iota, reshape, reshape_p, select_n
from numjet.ops.slicing import index_in_dim, slice_in_dim
from numjet.ops.sort import sort, top_k
from numjet.ops.special import erf, erf_inv
from numjet.ops.transcendental import log, log1p
from numjet.random.keys import parameter, refuse_lists, shape_of, single_key, split_two
from numjet.random.streams import random_bits
from numjet.random.tails import START, far_normal, may_be_far


# ------------------------------------------------------------------ helpers shared with the other
# files
def float_dtype(name: str, dtype: Any, complex_too: bool = False) -> Any:
    """The canonical floating dtype asked for (float32, or float64 with 64 bits)."""
    dtype = dtypes.requested(float if dtype is None else dtype, f"random.{name}")
    if not (dtypes.is_inexact(dtype) if complex_too else dtypes.is_floating(dtype)):
        wanted = "float or complex" if complex_too else "float"
        raise ValueError(f"dtype argument to `{name}` must be a {wanted} dtype, got {dtype}.")
    return dtype


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` at `shape`, by NumPy's rules."""
    if x.shape == shape:
        return x
    axes = tuple(range(len(shape) - x.ndim, len(shape)))
    return broadcast_in_dim(x, shape, axes)


def result_shape(
    name: str, shape: Any, *operands: Any, error: type[Exception] = ValueError
) -> tuple[int, ...]:
    """`shape`, which the operands must broadcast to (else `error`); by default what they broadcast
    to."""
    common = broadcast_shapes(*[x.shape for x in operands])
    if shape is None:
        return common
    shape = shape_of(shape, broadcasts=True)
    try:
        fits = broadcast_shapes(common, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise error(
            f"random.{name}: Incompatible shapes for broadcasting: parameters of "
            f"shapes={[x.shape for x in operands]} do not broadcast "
            f"to the shape {shape} asked for."
        )
    return shape


def any_of(x: Any) -> Any:
    """Whether any element is true, of an array of any rank."""
    return reduce_or(x, tuple(range(x.ndim))) if x.ndim else x


def as_float(x: Any, dtype: Any) -> Any:
    return convert(parameter(x), dtype)


def safely(name: str, x: Any, dtype: Any) -> Any:
    """`as_float` of a parameter that may not be of a wider dtype (TypePromotionError)."""
    x = parameter(x)
    given = x.aval.dtype
    if dtypes.is_floating(given) and not x.aval.weak_type:
        if dtypes.promote((given, False), (dtype, False))[0] != dtype:
            raise TypePromotionError(
                f"{name}: In arguments to {name}, cannot safely cast argument of type {given.name} "
                f"to {dtype.name}. Convert it with .astype()."
            )
    return convert(x, dtype)


# ------------------------------------------------------------------ uniform
def _finfo(dtype: Any) -> Any:
    return (
        ml_dtypes.finfo(dtype)
        if dtype.itemsize <= 2 and dtype != dtypes.float16
        else np.finfo(dtype)
    )


def _rounds_once(low: Any, high: Any, dtype: Any) -> bool:
    """Whether u * (high - low) + low may depend on the product's rounding (unknown bounds: yes)."""
    if dtype.itemsize < 4:
        return False
    if not all(isinstance(x, ArrayImpl) and not x.ndim for x in (low, high)):
        return True
    low, high = low._value, high._value
    span = float(high - low)
    return float(low) != 0 and (not math.isfinite(span) or math.frexp(span)[0] != 0.5)


# From this many elements on the compiled form is drawn: NumPy needs a hundred passes for each.
# Fewer are drawn by it where their shape was drawn before; the bits are the same.
COMPILED_FROM = 1 << 14
_COMPILED_AGAIN = 1 << 8
_drawn: dict[tuple, int] = Memo("shapes of small draws")


def is_large(shape: tuple[int, ...], *operands: Any) -> bool:
    """Whether to draw by compiled code: many elements, asked for outside of any transformation."""
    count = math.prod(shape)
    if type(count) is DimExpr:
        return False
    if count < _COMPILED_AGAIN or not all([isinstance(x, ArrayImpl) for x in operands]):
        return False
    if count >= COMPILED_FROM:
        return True
    times = _drawn.get(shape, 0)
    if times < 2:
        _drawn[shape] = times + 1
    return times >= 2


def uniform_of(key: Any, shape: tuple[int, ...], dtype: Any, low: Any, high: Any) -> Any:
    """Floats in [low, high): random mantissas under the exponent of 1, minus 1, scaled."""
    draw = _compiled_uniform if is_large(shape, key, low, high) else _uniform
    return draw(key, low, high, shape=shape, dtype=dtype, fused=_rounds_once(low, high, dtype))


def unit_floats(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Floats in [0, 1), of random bits."""
    info = _finfo(dtype)
    width, mantissa = dtype.itemsize * 8, info.nmant
    if dtypes.bits(dtype) < 8:
        raise TypeError(
            f"random.uniform only accepts 8-, 16-, 32-, or 64-bit dtypes, got {dtype}. Draw "
            "float32 and convert."
        )
    drawn = 8 if mantissa < 8 else width
    unsigned = np.dtype(f"u{dtype.itemsize}")
    words = random_bits(key, bit_width=drawn, shape=shape)
    if drawn != width:
        words = convert(words, unsigned)
    one = np.ones((), dtype).view(unsigned)
    words = bitwise_or(
        shift_right_logical(words, scalar(drawn - mantissa, unsigned)), scalar(one, unsigned)
    )
    return ar.sub(bitcast_convert_type(words, dtype), scalar(1, dtype))


def _uniform(
    key: Any, low: Any, high: Any, *, shape: tuple[int, ...], dtype: Any, fused: bool
) -> Any:
    floats = unit_floats(key, shape, dtype)
    if low.ndim or high.ndim:
        low, high = broadcast_to(low, shape), broadcast_to(high, shape)
    span = ar.sub(high, low)
    return ar.max(low, fma(floats, span, low) if fused else ar.add(ar.mul(floats, span), low))


_compiled_uniform = jit(_uniform, static_argnames=("shape", "dtype", "fused"))


def unit(key: Any, shape: tuple[int, ...], dtype: Any, low: Any = 0.0, high: Any = 1.0) -> Any:
    """`uniform_of` between Python numbers."""
    if FLAG.uses and wanted():
        return shown_uniform.call((key, shape, dtype, float_bound(low), float_bound(high)), {})
    return uniform_of(key, shape, dtype, scalar(low, dtype), scalar(high, dtype))


def broadcast_shown(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` repeated to a shape; where jaxprs are looked at with axes of size 1 in front, as JAX."""
    if not (FLAG.uses and wanted()):
        return broadcast_to(x, shape)
    more = len(shape) - x.ndim
    if not x.ndim or not more:
        return x
    return broadcast_in_dim(x, (1,) * more + x.shape, tuple(range(more, len(shape))))


def uniform(
    key: Any,
    shape: Sequence[int] = (),
    dtype: Any = None,
    minval: Any = 0.0,
    maxval: Any = 1.0,
    *,
    out_sharding: Any = None,
) -> Any:
    """Floats uniformly distributed in [minval, maxval).

    key: one PRNG key. minval, maxval: numbers or arrays that broadcast to the shape. shape: of the
    result, () by default; bounds of one element each go with it too, and the result then has the
    shape of minval. dtype: real floating, the default one unless given. out_sharding: the layout of
    the result. Differentiable in minval and maxval. Raises TypeError for what is no key, ValueError
    for several keys (use `vmap`) and for another dtype. Made of `bits`.

    >>> from numjet import random
    >>> random.uniform(random.key(0), (2,)).round(4)
    Array([0.9477, 0.9786], dtype=float32)
    """
    dtype, shape = float_dtype("uniform", dtype), shape_of(shape)
    low, high = as_float(minval, dtype), as_float(maxval, dtype)
    if shape == () and low.size == high.size == 1 and (low.shape or high.shape):
        # One number between bounds of one element: it has the lower one's shape, as in JAX.
        inner = [reshape(bound, ()) for bound in (low, high)]
        return reshape(uniform_of(single_key(key, "uniform"), shape, dtype, *inner), low.shape)
    result_shape("uniform", shape, low, high, error=TypeError if shape else ValueError)
    return uniform_of(single_key(key, "uniform"), shape, dtype, low, high)


shown_uniform = Shown(uniform, "_uniform")


def float_bound(x: Any) -> Any:
    """A bound as `_uniform` is handed it: NumPy's numbers are strongly typed."""
    return as_array(x) if isinstance(x, np.generic) else float(x)


# ------------------------------------------------------------------ randint
def randint(
    key: Any,
    shape: Sequence[int],
    minval: Any,
    maxval: Any,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Integers uniformly distributed in [minval, maxval).

    key: one PRNG key. shape: of the result. minval, maxval: integers or arrays that broadcast to
    the shape; what the dtype cannot hold is moved into its range, Python integers that no int32
    holds raise OverflowError. An empty range gives minval. dtype: an integer dtype (TypeError for
    others), int32 unless given. out_sharding: the layout of the result. Where the range's size is
    no power of two some values are more probable, by less than 2^-32. Raises TypeError for what is
    no key, ValueError for several keys (use `vmap`). Made of `bits`.

    >>> from numjet import random
    >>> random.randint(random.key(0), (4,), 0, 10)
    Array([9, 0, 2, 3], dtype=int32)
    """
    dtype = dtypes.requested(int if dtype is None else dtype, "random.randint")
    if not dtypes.is_integer(dtype):
        raise TypeError(f"randint only accepts integer dtypes, got {dtype}.")
    refuse_lists("randint", minval, maxval)
    low, high = _integer(minval, "minval"), _integer(maxval, "maxval")
    key = single_key(key, "randint")
    shape = result_shape("randint", shape_of(shape, broadcasts=True), low, high)
    info = dtypes.iinfo(dtype)
    if info.bits < 32:
        # Small types are drawn as int32, whose range holds one past their largest value.
        low, high = convert(low, dtypes.int32), convert(high, dtypes.int32)
        low = ar.min(scalar(info.max, dtypes.int32), ar.max(low, scalar(info.min, dtypes.int32)))
        high = ar.min(
            scalar(info.max + 1, dtypes.int32), ar.max(high, scalar(info.min, dtypes.int32))
        )
        return convert(_randint(key, shape, low, high, dtypes.int32, None), dtype)
    own = dtypes.iinfo(high.dtype)
    beyond = gt(high, scalar(info.max, high.dtype)) if own.max > info.max else None
    return _randint(key, shape, _clipped(low, dtype), _clipped(high, dtype), dtype, beyond)


def _integer(x: Any, what: str) -> Any:
    info = dtypes.iinfo(dtypes.canonical(int))
    if isinstance(x, int) and not isinstance(x, bool) and not info.min <= x <= info.max:
        raise OverflowError(
            f"random.randint: {what}={x} does not fit {info.dtype}. Pass an array of a wider or "
            "unsigned dtype, or turn on 64 bits with enable_x64."
        )
    x = as_array(x)
    if dtypes.is_floating(x.dtype):
        return convert(x, dtypes.canonical(int))
    if not dtypes.is_integer(x.dtype):
        raise TypeError(f"random.randint: {what} must be an integer, got {x.aval.str_short()}.")
    return x


def _clipped(x: Any, dtype: Any) -> Any:
    own, info = dtypes.iinfo(x.dtype), dtypes.iinfo(dtype)
    if own.min < info.min:
        x = ar.max(x, scalar(info.min, x.dtype))
    if own.max > info.max:
        x = ar.min(x, scalar(info.max, x.dtype))
    return convert(x, dtype)


def _randint(key: Any, shape: tuple, low: Any, high: Any, dtype: Any, beyond: Any) -> Any:
    width = dtype.itemsize * 8
    unsigned = np.dtype(f"u{dtype.itemsize}")
    first, second = split_two(key)
    upper = random_bits(first, bit_width=width, shape=shape)
    lower = random_bits(second, bit_width=width, shape=shape)
    common = broadcast_shapes(low.shape, high.shape)
    low, high = broadcast_to(low, common), broadcast_to(high, common)
    one = broadcast_to(scalar(1, unsigned), common)
    span = select_n(le(high, low), convert(ar.sub(high, low), unsigned), one)
    if beyond is not None:
        # The whole range up to and with the largest value: one more, which may wrap to 0, meaning
        # "all".
        span = select_n(
            bitwise_and(broadcast_to(beyond, common), gt(high, low)), span, ar.add(span, one)
        )
    # 2**width modulo span without wider integers.
    half = broadcast_to(scalar(1 << (width // 2), unsigned), common)
    multiplier = ar.rem(half, span)
    multiplier = ar.rem(ar.mul(multiplier, multiplier), span)
    span, multiplier = broadcast_to(span, shape), broadcast_to(multiplier, shape)
    offset = ar.add(ar.mul(ar.rem(upper, span), multiplier), ar.rem(lower, span))
    return ar.add(broadcast_to(low, shape), convert(ar.rem(offset, span), dtype))


# ------------------------------------------------------------------ normal
def normal_of(key: Any, shape: tuple, dtype: Any) -> Any:
    """Standard normal floats: the inverse distribution function of a uniform value in (-1, 1)."""
    if FLAG.uses and wanted() and dtypes.is_floating(dtype):
        return as_call("_normal", key, shape, dtype)
    return (_compiled_normal if is_large(shape, key) else _normal)(key, shape=shape, dtype=dtype)


def _normal(key: Any, *, shape: tuple, dtype: Any) -> Any:
    if dtypes.is_complex(dtype):
        real = dtypes.real_of(dtype)
        first, second = split_two(key)
        x, y = normal_of(first, shape, real), normal_of(second, shape, real)
        root = scalar(np.sqrt(2), real)
        return make_complex(ar.div(x, root), ar.div(y, root))
    low = np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype), dtype=dtype)
    return ar.mul(scalar(np.sqrt(2), dtype), erf_inv(unit(key, shape, dtype, low, 1)))


_compiled_normal = jit(_normal, static_argnames=("shape", "dtype"))


def normal(
    key: Any, shape: Sequence[int] = (), dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Standard normal values; complex ones have variance 1/2 in each part.

    key: one PRNG key. shape: of the result, () by default. dtype: floating or complex, the default
    float unless given. out_sharding: the layout of the result. Made by the inverse distribution
    function of uniform values. Raises TypeError for what is no key, ValueError for several keys
    (use `vmap`) and for another dtype. Source: inversion with `lax.erf_inv`.

    >>> from numjet import random
    >>> random.normal(random.key(0), (2,)).round(4)
    Array([1.6226, 2.0253], dtype=float32)
    """
    return normal_of(
        single_key(key, "normal"), shape_of(shape), float_dtype("normal", dtype, complex_too=True)
    )


def truncated_normal(
    key: Any,
    lower: Any,
    upper: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Standard normal values on condition that they lie between lower and upper.

    key: one PRNG key. lower, upper: arrays; nothing outside (lower, upper) comes out. shape: of the
    result; by default what the parameters broadcast to (ValueError where they do not fit it).
    dtype: real floating, the default one unless given. out_sharding: the layout of the result.
    Differentiable in the bounds. Raises TypeError for what is no key, ValueError for several keys
    (use `vmap`) and for another dtype. Made as `normal` is; in the tails, from 2 on, by Newton's
    method.

    >>> from numjet import random
    >>> random.truncated_normal(random.key(0), -1.0, 1.0, (2,)).round(4)
    Array([0.8619, 0.9413], dtype=float32)
    """
    dtype, key = float_dtype("truncated_normal", dtype), single_key(key, "truncated_normal")
    refuse_lists("truncated_normal", lower, upper)
    far = may_be_far(lower, upper)
    lower, upper = as_float(lower, dtype), as_float(upper, dtype)
    shape = result_shape("truncated_normal", shape, lower, upper)
    root = scalar(np.sqrt(2), dtype)
    low, high = erf(ar.div(lower, root)), erf(ar.div(upper, root))
    out = ar.mul(root, erf_inv(uniform_of(key, shape, dtype, low, high)))
    if far:
        out = _or_in_a_tail(key, shape, out, lower, upper)
    # Rounding must not put a value on the bounds.
    infinity = scalar(np.inf, dtype)
    floor = ar.nextafter(stop_gradient(lower), broadcast_to(infinity, lower.shape))
    ceiling = ar.nextafter(stop_gradient(upper), broadcast_to(ar.neg(infinity), upper.shape))
    return ar.min(broadcast_to(ceiling, shape), ar.max(broadcast_to(floor, shape), out))


def _or_in_a_tail(key: Any, shape: tuple, out: Any, lower: Any, upper: Any) -> Any:
    """`out`, but of the same random bits by `far_normal` where both bounds lie in one tail."""
    dtype = out.aval.dtype
    start = scalar(START, dtype)
    tail = bitwise_or(
        ge(lower, broadcast_to(start, lower.shape)),
        le(upper, broadcast_to(ar.neg(start), upper.shape)),
    )

    def drawn(tail: Any, out: Any, *bounds: Any) -> Any:
        ends = [broadcast_to(x, shape) for x in bounds]
        return select_n(broadcast_to(tail, shape), out, far_normal(unit(key, shape, dtype), *ends))

    some = reduce_or(tail, tuple(range(tail.ndim)))
    return cond(some, drawn, lambda tail, out, *bounds: out, tail, out, lower, upper)


# ------------------------------------------------------------------ bernoulli and rademacher
def bernoulli(
    key: Any,
    p: Any = 0.5,
    shape: Sequence[int] | None = None,
    mode: str = "low",
    *,
    out_sharding: Any = None,
) -> Any:
    """True with probability p.

    key: one PRNG key. p: floats (TypeError for others) in [0, 1]. shape: of the result; by default
    p's, to which p must broadcast (ValueError). mode: 'low', or 'high', which takes twice the
    random bits and is exact for tiny p. out_sharding: the layout of the result. Result: booleans.
    No derivative flows to p. Raises TypeError for what is no key, ValueError for several keys (use
    `vmap`) and for another mode. Made of `bits`.

    >>> from numjet import random
    >>> random.bernoulli(random.key(0), 0.5, (4,))
    Array([False, False,  True,  True], dtype=bool)
    """
    if mode not in ("low", "high"):
        raise ValueError(f"random.bernoulli: mode must be 'low' or 'high', got {mode!r}.")
    key, p = single_key(key, "bernoulli"), parameter(p)
    if not dtypes.is_floating(p.dtype):
        raise TypeError(
            f"random.bernoulli: the probability `p` must have a floating dtype, got {p.dtype}."
        )
    dtype = p.dtype if dtypes.is_floating(p.dtype) else dtypes.canonical(float)
    p = convert(p, dtype)
    shape = result_shape("bernoulli", shape, p)
    p = broadcast_to(p, shape)
    if mode == "low":
        return lt(unit(key, shape, dtype), p)
    both = unit(key, (2, *shape), dtype)
    first, second = (index_in_dim(both, i, 0, keepdims=False) for i in (0, 1))
    return lt(ar.mul(second, scalar(_finfo(dtype).eps, dtype)), ar.sub(p, first))


def rademacher(
    key: Any, shape: Sequence[int] = (), dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """-1 or 1 with equal probability.

    key: one PRNG key. shape: of the result, () by default. dtype: any number type, int32 unless
    given. out_sharding: the layout of the result. Raises TypeError for what is no key, ValueError
    for several keys (use `vmap`). Made of `bits`.

    >>> from numjet import random
    >>> random.rademacher(random.key(0), (4,))
    Array([-1, -1,  1,  1], dtype=int32)
    """
    dtype = dtypes.requested(int if dtype is None else dtype, "rademacher")
    flips = bernoulli(
        key,
        np.float32(0.5) if dtypes.canonical(float) == dtypes.float32 else 0.5,
        shape_of(shape, broadcasts=True),
    )
    # -1 and 1 are both true.
    work = dtypes.int32 if dtypes.is_bool(dtype) else dtype
    drawn = ar.sub(ar.mul(scalar(2, work), convert(flips, work)), scalar(1, work))
    return convert(drawn, dtype)


# ------------------------------------------------------------------ permutation and choice
def _refuse_symbolic(size: Any) -> None:
    if type(size) is DimExpr:
        raise NotImplementedError(
            f"random.permutation of arrays of symbolic size ({size}): the number of rounds "
            "depends on it. Sort by random words: jnp.argsort(random.bits(key, shape))."
        )


def _shuffled(key: Any, x: Any, axis: int) -> Any:
    """`x` sorted by random words along `axis`, so often that equal words hardly matter."""
    # Each round leaves a chance of about n**2 / 2**32 that two words are equal; rounds make it
    # below 1/n.
    _refuse_symbolic(x.size)
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, now = split_two(key)
        x = sort((random_bits(now, bit_width=32, shape=x.shape), x), axis)[1]
    return x


def take_rows(x: Any, order: Any, axis: int) -> Any:
    """The slices of `x` at int positions `order` along `axis` (in bounds)."""
    if not x.shape[axis]:
        return reshape(x, (*x.shape[:axis], *order.shape, *x.shape[axis + 1 :]))
    offsets = tuple(range(axis)) + tuple(
        range(axis + order.ndim, axis + order.ndim + x.ndim - axis - 1)
    )
    numbers = GatherDimensionNumbers(offsets, (axis,), (axis,))
    sizes = [1 if i == axis else n for i, n in enumerate(x.shape)]
    return gather(x, expand_dims(order, (order.ndim,)), numbers, sizes, mode="promise_in_bounds")


def _axis(
    name: str, axis: int, ndim: int, error: type[Exception] = ValueError
) -> int:
    if not -ndim <= axis < ndim:
        raise error(
            f"random.{name}: axis {axis} is out of bounds for array of dimension {ndim}."
        )
    return axis % ndim


def _taken(x: Any, order: Any, axis: int, distinct: bool = False) -> Any:
    if FLAG.uses and wanted():
        return _shown_take.call((x, order), {"axis": axis, "unique_indices": distinct})
    return take_rows(x, order, axis)


_shown_take = Shown(take, "_take")
_shown_shuffle, _shown_randint = shown(_shuffled, "_shuffle"), shown(randint, "_randint")


def permutation(
    key: Any, x: Any, axis: int = 0, independent: bool = False, *, out_sharding: Any = None
) -> Any:
    """A random order.

    key: one PRNG key. x: an array, or an integer for range(x). axis: along which its entries are
    put into another order. independent: an order of its own for every row instead of moving whole
    slices. out_sharding: the layout of the result. Result: x's shape and dtype. Raises TypeError
    for what is no key and for an `x` that is a float without axes, ValueError for several keys (use
    `vmap`). By sorting `bits`.

    >>> from numjet import random
    >>> random.permutation(random.key(0), 5)
    Array([0, 1, 4, 3, 2], dtype=int32)
    """
    _refuse_symbolic(x)
    key, x = single_key(key, "permutation"), as_array(x)
    if not x.ndim:
        if not dtypes.is_integer(x.dtype):
            raise TypeError("random.permutation: x must be an integer or at least 1-dimensional.")
        return _shown_shuffle(key, iota(x.dtype, max(int(x), 0)), 0)
    axis = _axis("permutation", operator.index(axis), x.ndim)
    if independent or x.ndim == 1:
        return _shown_shuffle(key, x, axis)
    return _taken(x, _shown_shuffle(key, iota(dtypes.int32, x.shape[axis]), 0), axis, True)


def choice(
    key: Any,
    a: Any,
    shape: Sequence[int] = (),
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    mode: str | None = None,
) -> Any:
    """Samples from an array (or range) along an axis.

    key: one PRNG key. a: an array, or an integer for range(a). shape: how many samples, () by
    default; the result's shape is a's with the axis replaced by it. replace: whether an entry may
    come again. p: floats, one probability for each entry; uniform where not given. axis: of a.
    mode: as of `gumbel`, for samples without replacement with p. Raises TypeError for what is no
    key, ValueError for several keys (use `vmap`) and for an empty `a`, a `p` of another shape, or
    more samples than entries without replacement. With p by inversion of its sums, without
    replacement by the Gumbel-max trick (`categorical`); else by `randint` or `permutation`.

    >>> from numjet import random, numpy as jnp
    >>> random.choice(random.key(0), jnp.array([10, 20, 30]), (4,))
    Array([20, 10, 30, 20], dtype=int32)
    """
    if not isinstance(shape, Iterable):
        raise TypeError(f"random.choice: shape must be a sequence of sizes, got {shape!r}.")
    size = a if type(a) is DimExpr else None
    key, a, shape = single_key(key, "choice"), as_array(a), shape_of(shape, broadcasts=True)
    count = math.prod(shape)
    if a.ndim:
        axis = _axis("choice", axis, a.ndim)
        n = a.shape[axis]
    else:
        n = int(a) if size is None else size
    index_dtype = a.dtype if dtypes.is_integer(a.dtype) else dtypes.canonical(int)
    if n <= 0 and count:
        raise ValueError("random.choice: a must be greater than 0 unless no samples are taken.")
    if not replace and count > n:
        raise ValueError(
            f"random.choice: Cannot take a larger sample (size {count}) than population (size {n}) "
            "when 'replace=False'."
        )
    if p is None:
        if not replace:
            whole = permutation(key, a if a.ndim else n, axis)
            taken = slice_in_dim(whole, 0, count, axis=axis if a.ndim else 0)
            return reshape(
                taken, (*a.shape[:axis], *shape, *a.shape[axis + 1 :]) if a.ndim else shape
            )
        order = _shown_randint(key, shape, 0, n)
        if not a.ndim and len(shape) != 1 and FLAG.uses and wanted():
            order = reshape_p.bind(order, new_sizes=shape, dimensions=None)
    else:
        p = as_array(p)
        p = convert(p, p.dtype if dtypes.is_floating(p.dtype) else dtypes.canonical(float))
        if p.shape != (n,):
            raise ValueError(
                "p must be None or a 1D vector with the same size as a.shape[axis]: random.choice "
                f"got shape {p.shape} for {n} entries."
            )
        if replace:
            total = cumsum(p)
            last = index_in_dim(total, n - 1, 0, keepdims=False)
            r = ar.mul(
                broadcast_to(last, shape), ar.sub(scalar(1, p.dtype), unit(key, shape, p.dtype))
            )
            order = _positions(total, r)
        else:
            order = top_k(ar.add(gumbel_of(key, (n,), p.dtype, mode), log(p)), count)[1]
            order = reshape(order, shape)
    return _taken(a, order, axis) if a.ndim else convert(order, index_dtype)


def _positions(rising: Any, values: Any) -> Any:
    """How many entries of the sorted vector `rising` are below each value, by bisection."""
    n = rising.shape[0]
    shape = values.shape
    low = broadcast_to(scalar(0, dtypes.int32), shape)
    high = broadcast_to(scalar(n, dtypes.int32), shape)
    two = scalar(2, dtypes.int32)
    for _ in range(31 if type(n) is DimExpr else max(1, math.ceil(math.log2(n + 1)))):
        middle = ar.add(low, ar.div(ar.sub(high, low), two))
        below = lt(take_rows(rising, middle, 0), values)
        open_ = lt(low, high)
        low = select_n(bitwise_and(below, open_), low, ar.add(middle, scalar(1, dtypes.int32)))
        high = select_n(below, middle, high)
    return low


# ------------------------------------------------------------------ gumbel and categorical
def gumbel_of(key: Any, shape: tuple, dtype: Any, mode: str | None) -> Any:
    mode = mode or "low"
    if mode not in ("low", "high"):
        raise ValueError(f"random.gumbel: mode must be 'low' or 'high', got {mode!r}.")
    tiny = _finfo(dtype).tiny
    if mode == "low":
        if FLAG.uses and wanted():
            return _shown_gumbel.call((key, shape, dtype), {})
        return ar.neg(log(ar.neg(log(unit(key, shape, dtype, tiny, 1)))))
    both = unit(key, (2, *shape), dtype)
    high, low = (index_in_dim(both, i, 0, keepdims=False) for i in (0, 1))
    fine = ar.add(ar.add(high, ar.mul(scalar(_finfo(dtype).eps, dtype), low)), scalar(tiny, dtype))
    x = select_n(ge(high, scalar(0.5, dtype)), fine, high)
    return ar.neg(log(ar.neg(log1p(ar.neg(x)))))


_shown_gumbel = Shown(gumbel_of, "_gumbel")


def gumbel(
    key: Any,
    shape: Sequence[int] = (),
    dtype: Any = None,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Gumbel values: -log(-log u).

    key: one PRNG key. mode: 'low' (the default), or 'high', which takes twice the random bits for
    the tail. shape: of the result, () by default. dtype: real floating, the default one unless
    given. out_sharding: the layout of the result. Raises TypeError for what is no key, ValueError
    for several keys (use `vmap`) and for another dtype or mode. By inversion, as `exponential`.

    >>> from numjet import random
    >>> random.gumbel(random.key(0), (2,)).round(4)
    Array([2.9234, 3.8326], dtype=float32)
    """
    return gumbel_of(single_key(key, "gumbel"), shape_of(shape), float_dtype("gumbel", dtype), mode)


def categorical(
    key: Any,
    logits: Any,
    axis: int = -1,
    shape: Sequence[int] | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Indices along an axis with probabilities softmax(logits).

    key: one PRNG key. logits: real floats, logarithms of what the probabilities are proportional
    to. axis: the categories. shape: of the result; ends with logits' shape without the axis, which
    it is by default. replace: False draws distinct indices, along the leading axes of the shape.
    mode: as of `gumbel`. out_sharding: the layout of the result. Result: int32. No derivative flows
    to logits. Raises TypeError for what is no key, ValueError for several keys (use `vmap`), for
    other dtypes, for shapes that do not fit or more samples than categories without replacement,
    IndexError for an axis out of bounds. Source: the Gumbel-max trick.

    >>> from numjet import random, numpy as jnp
    >>> random.categorical(random.key(0), jnp.zeros(3), shape=(5,))
    Array([1, 1, 2, 1, 2], dtype=int32)
    """
    key, logits = single_key(key, "categorical"), as_array(logits)
    if not dtypes.is_floating(logits.dtype):
        raise ValueError(f"random.categorical: logits must be floats, got {logits.dtype}.")
    axis = _axis("categorical", axis, logits.ndim, IndexError)
    batch = (*logits.shape[:axis], *logits.shape[axis + 1 :])
    shape = batch if shape is None else shape_of(shape, broadcasts=True)
    if broadcast_shapes(shape, batch) != shape:
        raise ValueError(
            f"random.categorical: shape {shape} must end with the batch shape {batch} of the "
            f"logits."
        )
    prefix = shape[: len(shape) - len(batch)]
    dtype = logits.dtype
    if replace:
        own = list(shape[len(prefix) :])
        own.insert(axis, logits.shape[axis])
        full = (*prefix, *own)
        noisy = ar.add(gumbel_of(key, full, dtype, mode), broadcast_shown(logits, full))
        return argmax(noisy, axis + len(prefix), dtypes.canonical(int))
    noisy = ar.add(logits, gumbel_of(key, logits.shape, dtype, mode))
    k = math.prod(prefix)
    if k > logits.shape[axis]:
        raise ValueError(
            f"random.categorical: cannot take {k} samples without replacement from "
            f"{logits.shape[axis]} classes."
        )
    order = moveaxis(top_k(noisy, k, axis=axis)[1], axis, 0)
    return reshape(order, shape)
