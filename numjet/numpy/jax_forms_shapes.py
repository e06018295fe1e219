"""Functions that move and make elements in the operations that JAX makes them of, as
`numpy.jax_forms` has the others: for who looks at jaxprs (`api.compiled.shown`).

What runs has fewer operations. Each takes the arguments that its function hands to `as_call`.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.api.compiled.shown import Shown, as_call, form
from numjet.core import dtypes
from numjet.core.primitive import REGISTRY
from numjet.core.structural import broadcast_in_dim, convert, scalar
from numjet.numpy import lax_names as lax
from numjet.numpy.binary import hypot, isclose
from numjet.numpy.calculus import convolve, correlate
from numjet.numpy.elementwise import NEAREST_EVEN, constant, prepared, rint, round, zeros_like
from numjet.numpy.functional import allclose
from numjet.numpy.indexing import getitem
from numjet.numpy.logic import where
from numjet.numpy.products import cross, kron
from numjet.numpy.promote import (
    as_arrays,
    canonical_axes,
    cast,
    float_dtype,
    one_array,
    promote_dtypes,
    promote_inexact,
    promoted,
    strong,
)
from numjet.numpy.ranges import geomspace_of, linspace, logspace_of, vander
from numjet.numpy.reductions import sum as sum_
from numjet.numpy.sets import COMPARED, isin
from numjet.numpy.shape import flip, swapaxes
from numjet.numpy.unary import log10
from numjet.ops.conv import conv_general_dilated

_INT = np.dtype(np.int32)


@form("round")
def round_in_jax(a: Any, decimals: int = 0) -> Any:
    x = one_array("round", a)
    dtype = x.aval.dtype
    if dtypes.is_complex(dtype):
        return lax.complex(round(lax.real(x), decimals), round(lax.imag(x), decimals))
    if not dtypes.is_floating(dtype):
        return x
    if not decimals:
        return lax.round(x, NEAREST_EVEN)
    wide = cast(x, np.float32) if dtype.itemsize < 4 else x
    scale = constant(10.0**decimals, wide)
    rounded = lax.div(lax.round(lax.mul(wide, scale), NEAREST_EVEN), scale)
    return cast(rounded, dtype, x.aval.weak_type)


@form("around")
def around_in_jax(a: Any, decimals: int = 0, out: Any = None) -> Any:
    return round(a, decimals, out) if out is not None else _round.call((a, decimals), {})


_round = Shown(round_in_jax, "round")


@form("trunc")
def trunc_in_jax(x: Any) -> Any:
    x = one_array("trunc", x)
    if not dtypes.is_inexact(x.aval.dtype):
        return x
    return where(lax.lt(x, zeros_like(x)), lax.ceil(x), lax.floor(x))


@form("hypot")
def hypot_in_jax(x1: Any, x2: Any, /) -> Any:
    x, y = prepared("hypot", promote_inexact, x1, x2)
    if dtypes.is_complex(x.aval.dtype):
        return hypot(x1, x2)
    x, y = lax.abs(x), lax.abs(y)
    endless = strong(constant(np.inf, x))
    infinite = lax.bitwise_or(lax.eq(x, endless), lax.eq(y, endless))
    large, small = lax.max(x, y), lax.min(x, y)
    zero = lax.eq(large, zeros_like(large))
    again, one = lax.eq(large, zeros_like(large)), constant(1, large)
    if large.aval.shape:
        one = broadcast_in_dim(one, large.aval.shape, ())
    ratio = lax.div(small, where(again, one, large))
    out = lax.mul(large, lax.sqrt(lax.add(constant(1, ratio), lax.square(ratio))))
    return where(infinite, constant(np.inf, out), where(zero, large, out))


@form("rint")
def rint_in_jax(x: Any) -> Any:
    x = one_array("rint", x)
    x = x if dtypes.is_inexact(x.aval.dtype) else cast(x, float_dtype())
    if dtypes.is_complex(x.aval.dtype):
        return lax.complex(rint(lax.real(x)), rint(lax.imag(x)))
    return lax.round(x, NEAREST_EVEN)


# ------------------------------------------------------------------ axes
def _placed(x: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    return x if x.aval.shape == shape else broadcast_in_dim(x, shape, axes)


@form("atleast_1d")
def atleast_1d_in_jax(*arys: Any) -> Any:
    out = [_placed(x, x.aval.shape or (1,), ()) for x in as_arrays("atleast_1d", *arys)]
    return out[0] if len(out) == 1 else out


@form("atleast_2d")
def atleast_2d_in_jax(*arys: Any) -> Any:
    out = []
    for x in as_arrays("atleast_2d", *arys):
        more = max(2 - x.aval.ndim, 0)
        out.append(_placed(x, (1,) * more + x.aval.shape, tuple(range(more, more + x.aval.ndim))))
    return out[0] if len(out) == 1 else out


@form("atleast_3d")
def atleast_3d_in_jax(*arys: Any) -> Any:
    out = []
    for x in as_arrays("atleast_3d", *arys):
        own = x.aval.shape
        shape, axes = {0: ((1, 1, 1), ()), 1: ((1, *own, 1), (1,)), 2: ((*own, 1), (0, 1))}.get(
            len(own), (own, ())
        )
        out.append(_placed(x, shape, axes))
    return out[0] if len(out) == 1 else out


@form("_roll_static")
def roll_in_jax(x: Any, shift: tuple[int, ...], axis: tuple[int, ...]) -> Any:
    for amount, i in zip(shift, axis, strict=True):
        n = x.aval.shape[i]
        k = amount % n if n else 0
        if not k:
            continue
        parts = [_part(x, i, start, stop) for start, stop in ((n - k, n), (0, n - k))]
        x = lax.concatenate(parts, i)
    return x


@form("rot90")
def rot90_in_jax(m: Any, k: int = 1, *, axes: tuple[int, ...] = (0, 1)) -> Any:
    x = one_array("rot90", m)
    first, second = canonical_axes(axes, x.aval.ndim, "rot90")
    k %= 4
    if k == 2:
        return _flip.call((_flip.call((x, first), {}), second), {})
    if k == 1:
        x = _flip.call((x, second), {})
    x = swapaxes(x, first, second) if k else x
    return _flip.call((x, second), {}) if k == 3 else x


_flip = Shown(flip, "_flip")


# ------------------------------------------------------------------ diagonals
def _on_diagonal(shape: tuple[int, int], offset: int) -> Any:
    rows, columns = [lax.broadcasted_iota(_INT, shape, i) for i in (0, 1)]
    return lax.eq(lax.add(rows, scalar(offset, _INT)), columns)


@form("diagonal")
def diagonal_in_jax(x: Any, offset: int = 0) -> Any:
    """Of a matrix."""
    n, m = x.aval.shape
    count = max(0, min(n + min(offset, 0), m - max(offset, 0)))
    near, far = [lax.iota(_INT, count) for _ in range(2)]
    if offset:
        far = lax.add(scalar(abs(offset), _INT), far)
    return getitem(x, (far, near) if offset < 0 else (near, far))


_diagonal = Shown(diagonal_in_jax, "diagonal")


@form("_diag")
def diag_in_jax(v: Any, k: int = 0) -> Any:
    x = one_array("diag", v)
    if x.aval.ndim == 2:
        return _diagonal.call((x, k), {})
    if x.aval.ndim != 1:
        raise ValueError(f"diag input must be 1d or 2d, got {x.aval}.")
    zero = scalar(0, x.aval.dtype)
    x = REGISTRY["pad"].bind(x, zero, padding_config=((max(-k, 0), max(k, 0), 0),))
    n = x.aval.shape[0]
    on = _on_diagonal((n, n), k)
    return where(on, broadcast_in_dim(x, (n, 1), (0,)), constant(0, x))


@form("trace")
def trace_in_jax(x: Any, offset: Any = 0, *, dtype: Any = None) -> Any:
    """Of a matrix."""
    kept = where(
        _on_diagonal(x.aval.shape, offset), x, lax.full(x.aval.shape, 0, x.aval.dtype)
    )
    return sum_(kept, (-2, -1), dtype)


@form("of unravel_index")
def unravelled_in_jax(x: Any, sizes: tuple[int, ...]) -> tuple[Any, ...]:
    """Rests of divisions; what lies outside is at the ends."""
    rests = []
    for n in sizes[::-1]:
        x, rest = as_call("divmod", x, n)
        rests.append(rest)
    above, below = lax.gt(x, constant(0, x)), lax.lt(x, constant(-1, x))
    return tuple([
        where(above, n - 1, where(below, 0, rest)) for n, rest in zip(sizes, rests[::-1])
    ])  # fmt: skip


# ------------------------------------------------------------------ ranges and padding
@form("_linspace")
def linspace_in_jax(start: Any, stop: Any, num: int, endpoint: bool, *, dtype: Any) -> Any:
    low, high = [convert(x, dtype) for x in as_arrays("linspace", start, stop)]
    shape = np.broadcast_shapes(low.aval.shape, high.aval.shape)
    low, high = [x if x.aval.shape == shape else _placed(x, shape, ()) for x in (low, high)]
    gaps = num - endpoint
    over = scalar(gaps, dtype)
    lax.div(lax.sub(high, low), over)  # the step, which only retstep=True returns
    at = lax.iota(dtype, gaps if endpoint else num)
    rank = len(shape)
    if rank:
        at = lax.reshape(at, (at.aval.shape[0], *[1] * rank))
    at = lax.div(at, over)
    whole = (1, *shape)
    out = lax.add(
        lax.mul(lax.reshape(low, whole), lax.sub(scalar(1, dtype), at)),
        lax.mul(lax.reshape(high, whole), at),
    )
    if not endpoint:
        return out
    return lax.concatenate([out, broadcast_in_dim(high, whole, tuple(range(1, rank + 1)))], 0)


@form("_pad")
def pad_in_jax(x: Any, constant_values: Any, *, widths: tuple, mode: str = "constant") -> Any:
    if mode != "constant":
        for axis, (before, after) in enumerate(widths):
            if before or after:
                x = _pad_from_within(x, axis, before, after, mode)
        return x
    fill = convert(one_array("pad", constant_values), x.aval.dtype)
    config = tuple([(np.int64(low), np.int64(high), 0) for low, high in widths])
    return REGISTRY["pad"].bind(x, fill, padding_config=config)


def _pad_from_within(x: Any, axis: int, before: int, after: int, mode: str) -> Any:
    """Padding along one axis with elements of it."""
    n = x.aval.shape[axis]
    if mode == "wrap":
        low = [_part(x, axis, n - before, n)] if before else []
        high = [_part(x, axis, 0, after)] if after else []
        return lax.concatenate([*low, x, *high], axis)
    if mode == "edge":
        first = _repeated(_part(x, axis, 0, 1), axis, before)
        last = _repeated(_part(x, axis, n - 1, n), axis, after)
        return lax.concatenate([first, x, last], axis)
    skip = int(mode == "reflect")  # the edge itself
    most = n - skip
    _part(x, axis, 0, 1)  # JAX's equations read each edge, which these modes do not use
    for count in _rounds(before, most):
        turned = _flip.call((_part(x, axis, skip, count + skip), axis), {})
        x = lax.concatenate([turned, x], axis)
    n = x.aval.shape[axis]
    _part(x, axis, n - 1, n)
    for count in _rounds(after, most):
        n = x.aval.shape[axis]
        turned = _flip.call((_part(x, axis, n - count - skip, n - skip), axis), {})
        x = lax.concatenate([x, turned], axis)
    return x


def _rounds(width: int, most: int) -> list[int]:
    whole, rest = divmod(width, most)
    return [most] * whole + [rest] * bool(rest)


def _part(x: Any, axis: int, start: int, stop: int) -> Any:
    begin, end = [0] * x.aval.ndim, list(x.aval.shape)
    begin[axis], end[axis] = start, stop
    params = {"start_indices": tuple(begin), "limit_indices": tuple(end)}
    return REGISTRY["slice"].bind(x, **params, strides=(1,) * x.aval.ndim)


def _repeated(x: Any, axis: int, count: int) -> Any:
    """An axis of size 1, `count` times."""
    own = x.aval.shape
    wide = (*own[: axis + 1], count, *own[axis + 1 :])
    axes = tuple([i for i in range(len(wide)) if i != axis + 1])
    return lax.reshape(broadcast_in_dim(x, wide, axes), (*own[:axis], count, *own[axis + 1 :]))


# ------------------------------------------------------------------ products and comparisons
@form("_in1d")
def isin_in_jax(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *,
    method: str = "auto",
) -> Any:  # fmt: skip
    """A comparison of all with all."""
    x, y = promote_dtypes(*as_arrays("isin", element, test_elements))
    few = x.aval.size * y.aval.size <= COMPARED and y.aval.size and method == "auto"
    if not few or y.aval.ndim != 1:
        return isin(element, test_elements, assume_unique, invert, method=method)
    rank = x.aval.ndim
    rows = broadcast_in_dim(x, (*x.aval.shape, 1), tuple(range(rank)))
    columns = broadcast_in_dim(y, (*[1] * rank, y.aval.size), (rank,))
    if invert:
        return lax.reduce_and(lax.ne(rows, columns), (rank,))
    return lax.reduce_or(lax.eq(rows, columns), (rank,))


@form("vander")
def vander_in_jax(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    x = one_array("vander", x)
    if x.aval.ndim != 1 or not dtypes.is_floating(x.aval.dtype):
        return vander(x, N, increasing)
    n = x.aval.shape[0] if N is None else N
    powers = lax.iota(x.aval.dtype, n)
    if not increasing:
        powers = lax.sub(scalar(n - 1, x.aval.dtype), powers)
    return lax.pow(
        broadcast_in_dim(x, (x.aval.size, 1), (0,)), broadcast_in_dim(powers, (1, n), (1,))
    )


# ------------------------------------------------------------------ convolutions
def _windows(x: Any, kernel: Any, mode: str, precision: Any, preferred: Any) -> Any:
    m = kernel.aval.size
    low, high = {"full": (m - 1, m - 1), "same": (m // 2, m - m // 2 - 1), "valid": (0, 0)}[mode]
    x, kernel = [broadcast_in_dim(v, (1, 1, v.aval.size), (2,)) for v in (x, kernel)]
    out = conv_general_dilated(
        x, kernel, (1,), [(low, high)], precision=precision, preferred_element_type=preferred
    )
    return lax.squeeze(out, (0, 1))


def _conv(x: Any, y: Any, mode: str, op: str, precision: Any, preferred_element_type: Any) -> Any:
    if op == "convolve" and x.aval.size < y.aval.size:
        x, y = y, x
    kernel = _flip.call((y,), {}) if op == "convolve" else y
    return _windows(x, kernel, mode, precision, preferred_element_type)


_conv_shown = Shown(_conv, "_conv")


def _of_two_vectors(name: str, run: Callable, usual: str) -> None:
    def both(
        a: Any, v: Any, mode: str = usual, *, precision: Any = None,
        preferred_element_type: Any = None,
    ) -> Any:  # fmt: skip
        x, y = promote_inexact(*as_arrays(name, a, v))
        plain = x.aval.ndim == y.aval.ndim == 1 and x.aval.size * y.aval.size > 0
        plain = plain and (name == "convolve" or x.aval.size >= y.aval.size)
        if not plain or dtypes.is_complex(y.aval.dtype) or mode not in ("full", "same", "valid"):
            return run(
                a, v, mode, precision=precision, preferred_element_type=preferred_element_type
            )
        return _conv_shown.call((x, y, mode, name, precision, preferred_element_type), {})

    form(name)(both)


_of_two_vectors("convolve", convolve, "full")
_of_two_vectors("correlate", correlate, "valid")


@form("kron")
def kron_in_jax(a: Any, b: Any) -> Any:
    x, y = as_arrays("kron", a, b)
    if x.aval.dtype != y.aval.dtype or x.aval.ndim != y.aval.ndim:
        return kron(a, b)
    rank = x.aval.ndim
    wide = [n for size in x.aval.shape for n in (size, 1)]
    other = [n for size in y.aval.shape for n in (1, size)]
    x = broadcast_in_dim(x, tuple(wide), tuple(range(0, 2 * rank, 2)))
    y = broadcast_in_dim(y, tuple(other), tuple(range(1, 2 * rank, 2)))
    sizes = [math.prod(pair) for pair in zip(wide[::2], other[1::2], strict=True)]
    return lax.reshape(lax.mul(x, y), tuple(sizes))


@form("cross")
def cross_in_jax(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> Any:
    x, y = as_arrays("cross", a, b)
    if not x.aval.shape == y.aval.shape == (3,) or x.aval.dtype != y.aval.dtype:
        return cross(a, b, axisa, axisb, axisc, axis)
    x0, x1, x2, y0, y1, y2 = [getitem(v, (i,)) for v in (x, y) for i in range(3)]
    pairs = ((x1, y2, x2, y1), (x2, y0, x0, y2), (x0, y1, x1, y0))
    parts = [lax.sub(lax.mul(p, q), lax.mul(r, s)) for p, q, r, s in pairs]
    return lax.concatenate([broadcast_in_dim(p, (1,), ()) for p in parts], 0)


def _real_pair(x: Any, y: Any) -> bool:
    """Whether these are real numbers that `isclose` compares as floats."""
    kinds = [v.aval.dtype for v in (x, y)]
    return all([dtypes.is_floating(d) or dtypes.is_integer(d) for d in kinds])


@form("isclose")
def isclose_in_jax(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Any:
    x, y = as_arrays("isclose", a, b)
    if not _real_pair(x, y):
        return isclose(a, b, rtol, atol, equal_nan)
    x, y = [strong(v) for v in prepared("isclose", promote_inexact, x, y)]
    relative, absolute = [convert(one_array("isclose", t), x.aval.dtype) for t in (rtol, atol)]
    neither = lax.bitwise_and(lax.ne(x, x), lax.ne(y, y))
    finite = lax.is_finite(y)
    apart = lax.abs(lax.sub(x, y))
    near = lax.le(apart, lax.add(absolute, lax.mul(relative, lax.abs(y))))
    same = lax.eq(x, y)
    out = lax.bitwise_or(same, lax.bitwise_and(finite, near))
    return lax.bitwise_or(out, neither) if equal_nan else out


_isclose = Shown(isclose_in_jax, "isclose")


@form("allclose")
def allclose_in_jax(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Any:
    x, y = as_arrays("allclose", a, b)
    if not _real_pair(x, y):
        return allclose(a, b, rtol, atol, equal_nan)
    near = _isclose.call((x, y, rtol, atol, equal_nan), {})
    return lax.reduce_and(near, tuple(range(near.aval.ndim)))


# ------------------------------------------------------------------ powers
def _numbers(name: str, *xs: Any) -> tuple[bool, list[Any]]:
    """Whether these are real numbers, and they as strong floats."""
    arrays = as_arrays(name, *xs)
    dtype = promoted(*arrays)[0]
    dtype = dtype if dtypes.is_inexact(dtype) else float_dtype()
    real = dtypes.is_floating(dtype) and not any([x.aval.shape for x in arrays])
    return real, [cast(x, dtype) for x in arrays]


@form("_logspace")
def logspace_in_jax(start: Any, stop: Any, base: Any, **static: Any) -> Any:
    real, ends = _numbers("logspace", start, stop)
    ten = one_array("logspace", base)
    if not real or static["dtype"] is not None or ten.aval.shape:
        return logspace_of(start, stop, base, **static)
    first, last = ends
    exponents = linspace(first, last, static["num"], static["endpoint"], axis=static["axis"])
    return lax.pow(cast(ten, exponents.aval.dtype), exponents)


@form("_geomspace")
def geomspace_in_jax(start: Any, stop: Any, **static: Any) -> Any:
    """Powers of ten with the first number's sign."""
    real, (first, last) = _numbers("geomspace", start, stop)
    if not real or static["dtype"] is not None:
        return geomspace_of(start, stop, **static)
    sign = lax.sign(first)
    ends = [log10(lax.div(x, sign)) for x in (first, last)]
    return lax.mul(sign, as_call("_logspace", *ends, 10.0, **static))
