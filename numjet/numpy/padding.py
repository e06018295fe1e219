"""Padding: constant, by repeated elements, ramps and statistics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.api.compiled.shown import FLAG, as_call, wanted
from numjet.core import dtypes
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.dims import DimExpr, any_symbolic, index_of, largest
from numjet.numpy import lax_names as lax
from numjet.numpy.averages import mean
from numjet.numpy.elementwise import round as round_
from numjet.numpy.indexing import getitem
from numjet.numpy.joining import stack, unstack
from numjet.numpy.promote import broadcast, canonical_axis, cast, one_array
from numjet.numpy.quantiles import median
from numjet.numpy.ranges import linspace
from numjet.numpy.reductions import max as max_, min as min_
from numjet.numpy.shape import flip, moveaxis, reshape, squeeze

_STATISTICS: dict[str, Callable] = {
    "maximum": max_,
    "minimum": min_,
    "mean": mean,
    "median": median,
}
# Padding that repeats elements joins so many parts beside the array; of more it gathers.
MOST_PARTS = 6


def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """`array` with values added at the ends of its axes.

    array: an array of any dtype, which the result has. pad_width: how many before and after: a
    number, a pair, a pair for each axis, or a dictionary of these by axis. mode: 'constant'
    (`constant_values`, by default 0), 'edge' repeats the last element, 'reflect' mirrors at it,
    'symmetric' behind it (`reflect_type` 'even' or 'odd'), 'wrap' goes on at the other end,
    'linear_ramp' goes to `end_values`, 'maximum', 'minimum', 'mean' and 'median' are of
    `stat_length` elements, 'empty' adds zeros; or a function as NumPy describes it. kwargs: these
    options, and those of the function. ValueError for negative widths and options of another mode,
    TypeError for widths that are not integers, NotImplementedError for an unknown mode.

    >>> jnp.pad(jnp.array([1, 2, 3]), (1, 2), constant_values=9)
    Array([9, 1, 2, 3, 9, 9], dtype=int32)
    >>> jnp.pad(jnp.array([1, 2, 3]), 2, mode="reflect")
    Array([3, 2, 1, 2, 3, 2, 1], dtype=int32)
    """
    x = one_array("pad", array)
    widths = _pad_pairs(pad_width, x.aval.ndim, "pad_width")
    if callable(mode):
        return _pad_with_function(x, widths, mode, kwargs)
    allowed = {
        "constant": {"constant_values"},
        "linear_ramp": {"end_values"},
        "maximum": {"stat_length"},
        "minimum": {"stat_length"},
        "mean": {"stat_length"},
        "median": {"stat_length"},
        "reflect": {"reflect_type"},
        "symmetric": {"reflect_type"},
        "edge": set(),
        "wrap": set(),
        "empty": set(),
    }
    if mode not in allowed:
        raise NotImplementedError(
            f"Unimplemented padding mode '{mode}' for np.pad. Known: {sorted(allowed)}."
        )
    for option in kwargs:
        if option not in allowed[mode]:
            raise ValueError(f"pad: unsupported keyword arguments for mode {mode!r}: {option!r}.")
    if any(w < 0 for pair in widths for w in pair):
        raise ValueError(f"pad: index can't contain negative values, got widths {widths}.")
    if mode == "constant" and dtypes.is_key(x.aval.dtype):
        raise ValueError("pad: PRNG keys are not padded with a constant. Use mode='edge'.")
    number = kwargs.get("constant_values", 0)
    if mode == "constant" and type(number) in (int, float) and FLAG.uses and wanted():
        return as_call("_pad", x, number, widths=widths)
    if mode in ("constant", "empty"):
        return _pad_constant(x, widths, kwargs.get("constant_values", 0))
    if (
        mode in ("reflect", "symmetric", "wrap", "edge")
        and kwargs.get("reflect_type", "even") == "even"
    ):
        if FLAG.uses and wanted() and not any_symbolic((*x.aval.shape, *sum(widths, ()))):
            pairs = zip(x.aval.shape, widths, strict=True)
            if all([n > 1 and (mode != "wrap" or n >= max(pair)) for n, pair in pairs]):
                return as_call("_pad", x, 0, widths=widths, mode=mode)
        for i, (before, after) in enumerate(widths):
            x = _pad_from_within(x, i, before, after, mode)
        return x
    if mode in ("reflect", "symmetric"):
        for i, (before, after) in enumerate(widths):
            x = _pad_odd(x, i, before, after, mode)
        return x
    for i, (before, after) in enumerate(widths):
        x = _pad_computed(x, i, before, after, mode, kwargs)
    return x


def _pad_pairs(value: Any, rank: int, what: str) -> tuple[tuple[int, int], ...]:
    if isinstance(value, dict):
        pairs = [(0, 0)] * rank
        for axis, v in value.items():
            pair = (v, v) if not isinstance(v, (tuple, list)) else tuple(v)
            pairs[canonical_axis(axis, rank, "pad")] = (
                index_of(pair[0]),
                index_of(pair[1]),
            )
        return tuple(pairs)
    widths = np.asarray(value)
    symbolic = widths.dtype.kind == "O" and all([isinstance(w, int | DimExpr) for w in widths.flat])
    if widths.dtype.kind not in "iu" and not symbolic:
        raise TypeError(f"pad: {what} must be of integral type, got {value!r}.")
    try:
        full = np.broadcast_to(widths, (rank, 2))
    except ValueError:
        raise ValueError(
            f"jnp.pad: {what} with nd={rank} has unsupported shape {np.shape(value)}. Valid shapes "
            f"are ({rank}, 2), (1, 2), (2,), (1,), or ()."
        ) from None
    return tuple([(index_of(a), index_of(b)) for a, b in full])


def _pad_constant(x: Any, widths: Any, values: Any) -> Any:
    leaves = [values] if not isinstance(values, (tuple, list)) else _flatten(values)
    if len(leaves) == 1:
        fill = cast(reshape(one_array("pad", leaves[0]), ()), x.aval.dtype, x.aval.weak_type)
        return lax.pad(x, fill, [(a, b, 0) for a, b in widths])
    pairs = _value_pairs(values, x.aval.ndim)
    for i, ((a, b), (low, high)) in enumerate(zip(widths, pairs)):
        for value, widen in ((low, (a, 0, 0)), (high, (0, b, 0))):
            config = [(0, 0, 0)] * x.aval.ndim
            config[i] = widen
            x = lax.pad(x, cast(one_array("pad", value), x.aval.dtype, x.aval.weak_type), config)
    return x


def _flatten(x: Any) -> list[Any]:
    return [leaf for v in x for leaf in _flatten(v)] if isinstance(x, (tuple, list)) else [x]


def _value_pairs(values: Any, rank: int) -> list[tuple[Any, Any]]:
    if isinstance(values, (tuple, list)) and isinstance(values[0], (tuple, list)):
        pairs = [tuple(v) * (2 if len(v) == 1 else 1) for v in values]
        return [pairs[0]] * rank if len(pairs) == 1 else [(p[0], p[1]) for p in pairs]
    pair = tuple(values) * (2 if len(values) == 1 else 1)
    return [(pair[0], pair[1])] * rank


def _pad_from_within(x: Any, axis: int, before: int, after: int, mode: str) -> Any:
    """Padding that repeats elements."""
    n = x.aval.shape[axis]
    if not before and not after:
        return x
    if not n:
        raise ValueError(f"pad: axis {axis} is empty and cannot be padded with mode {mode!r}.")
    if any_symbolic((n, before, after)):
        return _pad_symbolic(x, axis, before, after, mode)
    position = np.arange(-before, n + after)
    if mode == "edge":
        index = np.clip(position, 0, n - 1)
    elif mode == "wrap":
        index = position % n
    else:
        period = 2 * n if mode == "symmetric" else max(2 * (n - 1), 1)
        index = position % period
        index = np.where(index < n, index, (period - 1 if mode == "symmetric" else period) - index)
    low, high = _runs(index[:before]), _runs(index[before + n :])
    if len(low) + len(high) > MOST_PARTS:
        index = index.astype(np.int32)
        where = ArrayImpl(index, ShapedArray(index.shape, dtypes.int32))
        return getitem(x, (slice(None),) * axis + (where,))
    parts = [[_part(x, axis, run) for run in runs] for runs in (low, high)]
    return lax.concatenate([*parts[0], x, *parts[1]], axis)


def _runs(index: np.ndarray) -> list[list[int]]:
    """`index` cut into parts that repeat one number, or count up or down."""
    runs: list[list[int]] = []
    for i in index.tolist():
        run = runs[-1] if runs else []
        steps = (run[1] - run[0],) if len(run) > 1 else (-1, 0, 1)
        if run and i - run[-1] in steps:
            run.append(i)
        else:
            runs.append([i])
    return runs


def _part(x: Any, axis: int, run: list[int]) -> Any:
    """The elements of `x` along `axis` at the numbers of a run."""
    first, last = run[0], run[-1]
    part = lax.slice_in_dim(x, min(first, last), max(first, last) + 1, axis=axis)
    if last < first:
        return lax.rev(part, (axis,))
    if last == first and len(run) > 1:
        return broadcast(part, x.aval.shape[:axis] + (len(run),) + x.aval.shape[axis + 1 :])
    return part


def _pad_symbolic(x: Any, axis: int, before: Any, after: Any, mode: str) -> Any:
    """`_pad_from_within` of sizes that are expressions."""
    n = x.aval.shape[axis]
    count = before + n + after
    position = lax.iota(dtypes.int32, count) - before
    if mode == "edge":
        index = lax.clamp(0, position, lax.full((), n - 1, dtypes.int32))
    elif mode == "wrap":
        index = position % n
    else:
        period = 2 * n if mode == "symmetric" else largest(2 * (n - 1), 1)
        index = position % period
        turned = (period - 1 if mode == "symmetric" else period) - index
        index = lax.select(index < n, index, turned)
    return getitem(x, (slice(None),) * axis + (index,))


def _pad_odd(x: Any, axis: int, before: int, after: int, mode: str) -> Any:
    """Padding by point reflection at the edges: 2 * edge - mirrored."""
    offset = 1 if mode == "reflect" else 0

    def section(y: Any, lo: int, hi: int) -> Any:
        return lax.slice_in_dim(y, lo, hi, axis=axis)

    while before or after:
        n = x.aval.shape[axis]
        step = n - offset
        if n == 1:
            return _pad_from_within(x, axis, before, after, "edge")
        low, high = min(before, step), min(after, step)
        two = lax.full((), 2, x.aval.dtype)
        parts = []
        if low:
            edge = section(x, 0, 1)
            mirrored = lax.rev(section(x, offset, offset + low), (axis,))
            parts.append(lax.sub(broadcast(lax.mul(two, edge), mirrored.aval.shape), mirrored))
        parts.append(x)
        if high:
            edge = section(x, n - 1, n)
            mirrored = lax.rev(section(x, n - offset - high, n - offset), (axis,))
            parts.append(lax.sub(broadcast(lax.mul(two, edge), mirrored.aval.shape), mirrored))
        x = lax.concatenate(parts, axis)
        before, after = before - low, after - high
    return x


def _pad_computed(x: Any, axis: int, before: int, after: int, mode: str, options: dict) -> Any:
    n = x.aval.shape[axis]

    def section(lo: int, hi: int) -> Any:
        return lax.slice_in_dim(x, lo, hi, axis=axis)

    if mode == "linear_ramp":
        low, high = _value_pairs(_as_pair(options.get("end_values", 0)), x.aval.ndim)[axis]
        parts = []
        for width, value, edge, turned in (
            (before, low, section(0, 1), False),
            (after, high, section(n - 1, n), True),
        ):
            ramp = (
                linspace(
                    cast(one_array("pad", value), x.aval.dtype),
                    squeeze(edge, axis),
                    width,
                    endpoint=False,
                    dtype=x.aval.dtype,
                    axis=axis,
                )
                if width
                else None
            )
            if ramp is not None:
                ramp = cast(flip(ramp, axis) if turned else ramp, x.aval.dtype, x.aval.weak_type)
            parts.append(ramp)
        joined = [p for p in (parts[0], x, parts[1]) if p is not None]
        return lax.concatenate(joined, axis)
    statistic = _STATISTICS[mode]
    length = options.get("stat_length")
    lengths = (n, n) if length is None else _pad_pairs(length, x.aval.ndim, "stat_length")[axis]
    parts = []
    for width, part in (
        (before, section(0, min(lengths[0], n))),
        (after, section(max(n - lengths[1], 0), n)),
    ):
        value = statistic(part, axis=axis, keepdims=True)
        if mode in ("mean", "median") and dtypes.is_integer(x.aval.dtype):
            value = round_(value)
        shape = x.aval.shape[:axis] + (width,) + x.aval.shape[axis + 1 :]
        value = cast(value, x.aval.dtype, x.aval.weak_type)
        parts.append(broadcast(value, shape) if width else None)
    return lax.concatenate([p for p in (parts[0], x, parts[1]) if p is not None], axis)


def _as_pair(value: Any) -> Any:
    return value if isinstance(value, (tuple, list)) else (value, value)


def _pad_with_function(x: Any, widths: Any, function: Callable, options: dict) -> Any:
    x = _pad_constant(x, widths, 0)
    for axis, pair in enumerate(widths):
        moved = moveaxis(x, axis, -1)
        rows = reshape(moved, (-1, moved.aval.shape[-1]))
        done = [function(row, pair, axis, options) for row in unstack(rows)]
        x = moveaxis(reshape(stack(done), moved.aval.shape), -1, axis)
    return x
