"""Folds over long windows along one axis, in a number of operations that grows as the logarithm of
the window's length. For `window`, whose fold of one slice for each position would take the compiler
minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.core.structural import full
from numjet.ops.shape import pad, reshape
from numjet.ops.slicing import slice as lax_slice

# What a fold is of: arrays of one shape, such as values and their places.
Arrays = list[Any]
Combine = Callable[[Arrays, Arrays], Arrays]

LONGEST_UNROLLED = 64


def _part(xs: Arrays, axis: int, start: int, size: int, step: int = 1) -> Arrays:
    """`size` elements along `axis`, `step` apart."""
    shape = xs[0].aval.shape
    starts, limits, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], limits[axis], steps[axis] = start, start + (size - 1) * step + 1, step
    return [lax_slice(x, tuple(starts), tuple(limits), tuple(steps)) for x in xs]


def _everywhere(xs: Arrays, combine: Combine, axis: int, count: int, gap: int) -> Arrays:
    """The folds of `count` elements, `gap` apart, from each place on at which they fit.

    Windows of 1, 2, 4, ... elements are made of two of half the length; those that add up to
    `count` are joined, from the first element to the last.
    """
    size = xs[0].aval.shape[axis]
    fitting = size - (count - 1) * gap
    found: Arrays | None = None
    length, done = 1, 0
    while True:
        if count & length:
            part = _part(xs, axis, done * gap, fitting)
            found = part if found is None else combine(found, part)
            done += length
        if done == count:
            return found or []
        size -= length * gap
        xs = combine(_part(xs, axis, 0, size), _part(xs, axis, length * gap, size))
        length *= 2


def fold_windows(
    xs: Arrays,
    combine: Combine,
    total: Callable[[Any, int], Any] | None,
    axis: int,
    *,
    count: int,
    step: int,
    gap: int,
) -> Arrays:
    """The folds of windows of `count` elements, `gap` apart, `step` from one window to the next.

    xs: arrays of one shape. combine: associative, of two lists of such arrays, the earlier first.
    total: what folds one array along an axis at once, where there is such a function. There has to
    be room for one window at least.
    """
    size = xs[0].aval.shape[axis]
    windows = (size - (count - 1) * gap - 1) // step + 1
    if gap > 1 or step == 1 or total is None:
        return _part(_everywhere(xs, combine, axis, count, gap), axis, 0, windows, step)
    # Of blocks of `step` elements each window takes some that are whole, and a part of the next.
    blocks, rest = divmod(count, step)
    room = (windows + blocks) * step - size
    ends = [(0, room if i == axis else 0, 0) for i in range(xs[0].aval.ndim)]
    shape = xs[0].aval.shape
    rows = [
        reshape(
            pad(x, full((), 0, x.aval.dtype), ends),
            (*shape[:axis], windows + blocks, step, *shape[axis + 1 :]),
        )
        for x in xs
    ]
    found: Arrays | None = None
    if blocks:
        whole = [total(x, axis + 1) for x in _part(rows, axis, 0, windows - 1 + blocks)]
        found = _everywhere(whole, combine, axis, blocks, 1)
    if rest:
        next_ones = _part(_part(rows, axis, blocks, windows), axis + 1, 0, rest)
        part = [total(x, axis + 1) for x in next_ones]
        found = part if found is None else combine(found, part)
    return found or []
