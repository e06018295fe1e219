"""Shapes, windows at computed places, reductions and running sums, as StableHLO.

Methods named like the primitives that they stand for take (out aval, operands, params); the others
help. For `xla.hlo`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.ops.indexing import GatherScatterMode
from numjet.xla.elements import Elements
from numjet.xla.writer import BOOL, WIDE, Value, numbers, spec


class Arrays(Elements):
    """Everything that moves elements, and what adds them up."""

    def __init__(self) -> None:
        super().__init__()
        # Regions of reductions: names inside one are not seen outside, so it is written again.
        self._combiners: dict[tuple[str, np.dtype], str] = {}
        self.for_cpu = False  # whether the program is for one device of XLA's CPU compiler
        self.for_gpu = False  # for its GPU compiler
        self.several = False  # whether it is for several devices
        self.places: set[str] = set()  # names of arrays whose elements are their places

    # -- shapes -----------------------------------------------------------------------------
    def reshaped(self, x: Value, shape: Sequence[int]) -> Value:
        """The same elements row by row in another shape."""
        return x if x.shape == tuple(shape) else self.op("reshape", [x], shape, x.dtype)

    def permuted(self, x: Value, permutation: Sequence[int]) -> Value:
        """Axes in another order."""
        if list(permutation) == list(range(len(x.shape))):
            return x
        shape = [x.shape[p] for p in permutation]
        return self.op("transpose", [x], shape, x.dtype, f"permutation = {numbers(permutation)}")

    def counting(self, shape: Sequence[int], dimension: int, dtype: Any) -> Value:
        """The position along an axis."""
        wide = np.dtype(np.int32) if np.dtype(dtype) == BOOL else np.dtype(dtype)
        made = self.op("iota", [], shape, wide, f"iota_dimension = {dimension} : i64")
        if np.prod(shape) == shape[dimension]:
            self.places.add(made.ref)
        return self.cast(made, dtype)

    def part(
        self, x: Value, starts: Sequence[int], limits: Sequence[int],
        strides: Sequence[int] | None = None,
    ) -> Value:
        """A rectangle of elements."""
        strides = [1] * len(starts) if strides is None else strides
        shape = [max(0, -(-(b - a) // s)) for a, b, s in zip(starts, limits, strides, strict=True)]
        if tuple(shape) == x.shape:
            return x
        return self.op(
            "slice", [x], shape, x.dtype,
            f"limit_indices = {numbers(limits)}, start_indices = {numbers(starts)}, "
            f"strides = {numbers(strides)}",
        )  # fmt: skip

    def padded(self, x: Value, value: Value, config: Sequence[tuple[int, int, int]]) -> Value:
        """Elements added before, behind and between (or taken away: negative counts)."""
        # What is taken away goes first: XLA's partitioner leaves a pad of the operand's shape out.
        ends = [(max(0, -a), n - max(0, -b)) if not i else (0, n)
                for n, (a, b, i) in zip(x.shape, config, strict=True)]  # fmt: skip
        if all(a <= b for a, b in ends):
            x = self.part(x, *zip(*ends, strict=True)) if ends else x
            config = [(a, b, i) if i else (max(0, a), max(0, b), 0) for a, b, i in config]
        low, high, inner = zip(*config, strict=True) if config else ((), (), ())
        shape = [max(0, n + a + b + max(0, n - 1) * i)
                 for n, a, b, i in zip(x.shape, low, high, inner, strict=True)]
        made = self.op(
            "pad", [x, value], shape, x.dtype,
            f"edge_padding_high = {numbers(high)}, edge_padding_low = {numbers(low)}, "
            f"interior_padding = {numbers(inner)}",
        )  # fmt: skip
        if self.several:
            (made,) = self.ops("optimization_barrier", [made], [(made.shape, made.dtype)])
        return made

    def broadcast_in_dim(self, out: Any, x: Value, *, shape: tuple, broadcast_dimensions: tuple):
        if x.shape == tuple(shape):
            return x
        return self.op("broadcast_in_dim", [x], shape, x.dtype,
                       f"broadcast_dimensions = {numbers(broadcast_dimensions)}")

    def reshape(self, out: Any, x: Value, *, new_sizes: tuple, dimensions: Any) -> Value:
        return self.reshaped(x, out.shape)

    def squeeze(self, out: Any, x: Value, *, dimensions: tuple) -> Value:
        return self.reshaped(x, out.shape)

    def transpose(self, out: Any, x: Value, *, permutation: tuple) -> Value:
        return self.permuted(x, permutation)

    def rev(self, out: Any, x: Value, *, dimensions: tuple) -> Value:
        return self.op("reverse", [x], x.shape, x.dtype, f"dimensions = {numbers(dimensions)}")

    def iota(self, out: Any, *, dtype: Any, shape: tuple, dimension: int) -> Value:
        return self.counting(shape, dimension, spec(out)[1])

    def concatenate(self, out: Any, *xs: Value, dimension: int) -> Value:
        return self.op("concatenate", xs, out.shape, xs[0].dtype, f"dimension = {dimension} : i64")

    def pad(self, out: Any, x: Value, value: Value, *, padding_config: Sequence) -> Value:
        return self.padded(x, value, padding_config)

    def slice(self, out: Any, x: Value, *, start_indices: tuple, limit_indices: tuple,
              strides: tuple | None) -> Value:  # fmt: skip
        return self.part(x, start_indices, limit_indices, strides)

    def bitcast_convert_type(self, out: Any, x: Value, *, new_dtype: Any) -> Value:
        shape, dtype = spec(out)
        if BOOL in (x.dtype, dtype) and x.dtype != dtype:
            byte = np.dtype(np.uint8)
            return self.cast(x, dtype) if x.dtype == BOOL and dtype == byte else self.ne(x, 0)
        return self.op("bitcast_convert", [x], shape, dtype)

    def _starts(self, x: Value, sizes: Sequence[int], starts: Sequence[Value]) -> list[Value]:
        """Starts of a window that lies inside of `x`.

        XLA makes one slice of two, and then forgets the outer one's clamping and takes the inner
        one's for a window of the outer size: slices that begin inside are right all the same.
        """
        dtype = starts[0].dtype if len({v.dtype for v in starts}) == 1 else np.dtype(np.int64)
        last = [n - size for n, size in zip(x.shape, sizes, strict=True)]
        top = np.iinfo(dtype).max
        return [self.min(self.max(self.cast(v, dtype), 0), min(n, top)) if n else
                self.const(0, dtype) for v, n in zip(starts, last, strict=True)]  # fmt: skip

    def window(self, x: Value, starts: Sequence[Value], sizes: Sequence[int]) -> Value:
        """A rectangle at starts inside."""
        return self.op("dynamic_slice", [x, *starts], sizes, x.dtype,
                       f"slice_sizes = {numbers(sizes)}")

    def dynamic_slice(self, out: Any, x: Value, *starts: Value, slice_sizes: tuple) -> Value:
        if not starts:
            return x
        return self.window(x, self._starts(x, slice_sizes, starts), slice_sizes)

    def dynamic_update_slice(self, out: Any, x: Value, update: Value, *starts: Value) -> Value:
        if not starts:
            return update
        return self.op("dynamic_update_slice", [x, update, *self._starts(x, update.shape, starts)],
                       x.shape, x.dtype)

    # -- gather and scatter -----------------------------------------------------------------
    def _signed(self, indices: Value) -> Value:
        """Indices as signed numbers that hold any extent."""
        return indices if indices.dtype == np.int32 else self.cast(indices, np.int64)

    def _limits(self, shape: Sequence[int], sizes: Sequence[int], axes: Sequence[int],
                dtype: np.dtype) -> Value:  # fmt: skip
        """The greatest start of a window along each indexed axis."""
        top = np.iinfo(dtype).max
        return self.constant(np.array([min(shape[a] - sizes[a], top) for a in axes], dtype))

    def _nearest(self, indices: Value, limits: Value) -> Value:
        """The starts of windows inside that are next to these."""
        high = self.broadcast(limits, indices.shape, (len(indices.shape) - 1,))
        return self.max(self.min(indices, high), 0)

    def _within(self, indices: Value, limits: Value) -> Value:
        """Whether all components of each index are starts of windows inside."""
        last = len(indices.shape) - 1
        high = self.broadcast(limits, indices.shape, (last,))
        low = self.broadcast(self.const(0, indices.dtype), indices.shape)
        fits = self.and_(self.ge(indices, low), self.le(indices, high))
        return self.reduced("and", fits, (last,), True)

    def gather(
        self, out: Any, operand: Value, indices: Value, *, dimension_numbers: Any,
        slice_sizes: tuple, mode: GatherScatterMode, fill_value: Any = None, **_: Any,
    ) -> Value:  # fmt: skip
        d = dimension_numbers
        indices = self._signed(indices)
        rank = len(indices.shape)
        at, axes = indices, d.start_index_map
        if axes and math.prod(indices.shape[:-1]) == 1:  # XLA makes a slice of it (see `_starts`)
            limits = self._limits(operand.shape, slice_sizes, axes, indices.dtype)
            at = self._nearest(indices, limits)
        made = self.op(
            "gather", [operand, at], out.shape, operand.dtype,
            f"dimension_numbers = #stablehlo.gather<offset_dims = {[*d.offset_dims]}, "
            f"collapsed_slice_dims = {[*d.collapsed_slice_dims]}, "
            f"operand_batching_dims = {[*d.operand_batching_dims]}, "
            f"start_indices_batching_dims = {[*d.start_indices_batching_dims]}, "
            f"start_index_map = {[*axes]}, index_vector_dim = {rank - 1}>, "
            f"indices_are_sorted = false, slice_sizes = {numbers(slice_sizes)}",
        )  # fmt: skip
        if mode != GatherScatterMode.FILL_OR_DROP or not axes:
            return made
        limits = self._limits(operand.shape, slice_sizes, axes, indices.dtype)
        inside = self._within(indices, limits)
        batch = [a for a in range(len(out.shape)) if a not in d.offset_dims]
        mask = self.op("broadcast_in_dim", [inside], out.shape, BOOL,
                       f"broadcast_dimensions = {numbers(batch)}")
        return self.select(mask, made, self.constant(_fill(fill_value, operand.dtype)))

    def _scatter(self, combine: Callable, operand: Value, indices: Value, updates: Value,
                 d: Any, mode: GatherScatterMode) -> Value:  # fmt: skip
        indices = self._signed(indices)
        gone = sorted([*d.inserted_window_dims, *d.operand_batching_dims])
        axes = d.scatter_dims_to_operand_dims
        if mode == GatherScatterMode.CLIP and axes:
            # The extents of a window, by operand axis.
            sizes = [1] * len(operand.shape)
            window = [a for a in range(len(operand.shape)) if a not in gone]
            for axis, place in zip(window, d.update_window_dims, strict=True):
                sizes[axis] = updates.shape[place]
            limits = self._limits(operand.shape, sizes, axes, indices.dtype)
            indices = self._nearest(indices, limits)
        if axes and math.prod(indices.shape[:-1]) == 1:
            # XLA's CPU compiler makes a loop of slices of a scatter, and of a loop of one round a
            # slice, which may begin outside of a device's part: the fault that `_starts` tells of.
            # So there is a second place, -1, which no array has.
            place = self.reshaped(indices, (1, len(axes)))
            nowhere = self.broadcast(self.const(-1, place.dtype), place.shape)
            update = self.reshaped(updates, (1, *[updates.shape[a] for a in d.update_window_dims]))
            indices, updates = self._joined(place, nowhere), self._joined(update, update)
            d = type(d)(tuple(range(1, len(updates.shape))), tuple(gone), axes)
        scalar = ((), operand.dtype)
        region = self.region([scalar, scalar], lambda a, b: [combine(a, b)])
        return self.op(
            "scatter", [operand, indices, updates], operand.shape, operand.dtype,
            "indices_are_sorted = false, "
            f"scatter_dimension_numbers = #stablehlo.scatter<"
            f"update_window_dims = {[*d.update_window_dims]}, "
            f"inserted_window_dims = {[*d.inserted_window_dims]}, "
            f"input_batching_dims = {[*d.operand_batching_dims]}, "
            f"scatter_indices_batching_dims = {[*d.scatter_indices_batching_dims]}, "
            f"scatter_dims_to_operand_dims = {[*axes]}, "
            f"index_vector_dim = {len(indices.shape) - 1}>, unique_indices = false",
            [region],
        )  # fmt: skip

    def _joined(self, x: Value, y: Value) -> Value:
        """Two arrays of one row."""
        return self.op("concatenate", [x, y], (2, *x.shape[1:]), x.dtype, "dimension = 0 : i64")

    def scatter(self, out: Any, operand: Value, indices: Value, updates: Value, *,
                dimension_numbers: Any, mode: Any, **_: Any) -> Value:  # fmt: skip
        return self._scatter(lambda a, b: b, operand, indices, updates, dimension_numbers, mode)

    def scatter_add(self, out: Any, operand: Value, indices: Value, updates: Value, *,
                    dimension_numbers: Any, mode: Any, **_: Any) -> Value:  # fmt: skip
        return self._scatter(self.add, operand, indices, updates, dimension_numbers, mode)

    def scatter_sub(self, out: Any, operand: Value, indices: Value, updates: Value, *,
                    dimension_numbers: Any, mode: Any, **_: Any) -> Value:  # fmt: skip
        return self._scatter(self.sub, operand, indices, updates, dimension_numbers, mode)

    def scatter_mul(self, out: Any, operand: Value, indices: Value, updates: Value, *,
                    dimension_numbers: Any, mode: Any, **_: Any) -> Value:  # fmt: skip
        return self._scatter(self.mul, operand, indices, updates, dimension_numbers, mode)

    def scatter_min(self, out: Any, operand: Value, indices: Value, updates: Value, *,
                    dimension_numbers: Any, mode: Any, **_: Any) -> Value:  # fmt: skip
        return self._scatter(self.min, operand, indices, updates, dimension_numbers, mode)

    def scatter_max(self, out: Any, operand: Value, indices: Value, updates: Value, *,
                    dimension_numbers: Any, mode: Any, **_: Any) -> Value:  # fmt: skip
        return self._scatter(self.max, operand, indices, updates, dimension_numbers, mode)

    # -- reductions -------------------------------------------------------------------------
    def reduced(self, op: str, x: Value, axes: Sequence[int], initial: Any) -> Value:
        """`x` combined over axes by add, mul, max, min, and, or, xor; 16-bit floats in 32 bits."""
        dtype = x.dtype
        wide = WIDE.get(dtype.name) if op in ("add", "mul") else None
        if wide is not None:
            x = self.cast(x, wide)
        start = self.const(initial, x.dtype)
        region = self._combiners.get((op, x.dtype))
        if region is None:
            combine = getattr(self, op if op not in ("and", "or") else op + "_")
            if self.for_cpu and op in ("max", "min") and x.dtype in (np.float32, np.float64):
                combine = self._greater if op == "max" else self._less
            scalar = ((), x.dtype)
            region = self.region([scalar, scalar], lambda a, b: [combine(a, b)])
            self._combiners[op, x.dtype] = region
        shape = [n for a, n in enumerate(x.shape) if a not in axes]
        made = self.op("reduce", [x, start], shape, x.dtype, f"dimensions = {numbers(axes)}",
                       [region])
        return self.cast(made, dtype)

    # XLA's CPU compiler makes vectors of these, not of its maximum and minimum: along rows they
    # take a tenth of the time.
    def _greater(self, a: Value, b: Value) -> Value:
        return self.select(self.or_(self.ge(a, b), self.ne(a, a)), a, b)

    def _less(self, a: Value, b: Value) -> Value:
        return self.select(self.or_(self.le(a, b), self.ne(a, a)), a, b)

    def reduction(self, op: str, out: Any, x: Value, params: dict) -> Value:
        """A primitive whose `loops` is `Reduce(op)`."""
        axes = params["axes"]
        if op in ("argmax", "argmin"):
            return self._position(op, out, x, axes)
        initial = {"add": 0, "mul": 1, "or": 0, "xor": 0}.get(op)
        if op == "and":
            initial = True if x.dtype == BOOL else -1
        elif initial is None:
            initial = least(x.dtype) if op == "max" else greatest(x.dtype)
        return self.reduced(op, x, axes, initial)

    def _position(self, op: str, out: Any, x: Value, axes: Sequence[int]) -> Value:
        """Where the first extreme lies; a NaN is greater and less than all."""
        (axis,) = axes
        index = np.dtype(np.int32)
        at = self.counting(x.shape, axis, index)
        start = [self.const(least(x.dtype) if op == "argmax" else greatest(x.dtype), x.dtype),
                 self.const(np.iinfo(index).max, index)]
        direction = "GT" if op == "argmax" else "LT"

        def combine(a: Value, i: Value, b: Value, j: Value) -> list[Value]:
            nan, other = self.ne(a, a), self.ne(b, b)
            better = self.or_(self._ordered(direction, a, b), self.and_(nan, self.not_(other)))
            worse = self.or_(self._ordered(direction, b, a), self.and_(other, self.not_(nan)))
            first = self.or_(better, self.and_(self.not_(worse), self.lt(i, j)))
            return [self.select(first, a, b), self.select(first, i, j)]

        # Whoever is at no place is worse than anything, infinities at a place too.
        scalars = [((), x.dtype), ((), index)] * 2
        region = self.region(scalars, combine)
        shape = [n for a, n in enumerate(x.shape) if a != axis]
        made = self.ops("reduce", [x, at, *start], [(shape, x.dtype), (shape, index)],
                        f"dimensions = {numbers(axes)}", [region])
        return self.cast(made[1], spec(out)[1])

    # -- running combinations ---------------------------------------------------------------
    def _windows(self, combine: Callable, neutral: Value, x: Value, axis: int,
                 reverse: bool) -> Value:  # fmt: skip
        """All prefixes combined, as windows that reach back to the beginning: XLA's GPU compiler
        knows them, and combines blocks and then their results."""
        rank, n = len(x.shape), x.shape[axis]
        sizes = numbers([n if a == axis else 1 for a in range(rank)])
        around = [0, n - 1] if reverse else [n - 1, 0]
        ends = [around if a == axis else [0, 0] for a in range(rank)]
        ones, scalar = numbers([1] * rank), ((), x.dtype)
        return self.op(
            "reduce_window", [x, neutral], x.shape, x.dtype,
            f"base_dilations = {ones}, padding = dense<{ends}> : tensor<{rank}x2xi64>, "
            f"window_dilations = {ones}, window_dimensions = {sizes}, window_strides = {ones}",
            [self.region([scalar, scalar], lambda a, b: [combine(a, b)])],
        )  # fmt: skip

    def _running(self, combine: Callable, initial: Any, x: Value, axis: int, reverse: bool,
                 known: bool = True) -> Value:  # fmt: skip
        """All prefixes combined, in as many steps as the length has bits; known: by one of XLA's
        own operations."""
        dtype = x.dtype
        wide = WIDE.get(dtype.name)
        if wide is not None:
            x = self.cast(x, wide)
        neutral, n, step = self.const(initial, x.dtype), x.shape[axis], 1
        if self.for_gpu and known and dtype.kind != "c" and 0 not in x.shape:
            return self.cast(self._windows(combine, neutral, x, axis, reverse), dtype)
        while step < n:
            config = [(0, 0, 0)] * len(x.shape)
            config[axis] = (-step, step, 0) if reverse else (step, -step, 0)
            x = combine(self.padded(x, neutral, config), x)
            step *= 2
        return self.cast(x, dtype)

    def cumsum(self, out: Any, x: Value, *, axis: int, reverse: bool) -> Value:
        return self._running(self.add, 0, x, axis, reverse)

    def cumprod(self, out: Any, x: Value, *, axis: int, reverse: bool) -> Value:
        return self._running(self.mul, 1, x, axis, reverse)

    def cummax(self, out: Any, x: Value, *, axis: int, reverse: bool) -> Value:
        return self._running(self.max, least(x.dtype), x, axis, reverse)

    def cummin(self, out: Any, x: Value, *, axis: int, reverse: bool) -> Value:
        return self._running(self.min, greatest(x.dtype), x, axis, reverse)

    def cumlogsumexp(self, out: Any, x: Value, *, axis: int, reverse: bool) -> Value:
        def combine(a: Value, b: Value) -> Value:
            top = self.max(a, b)
            gap = self.neg(self.abs(self.sub(a, b)))
            same = self.eq(a, b)  # both infinite: their difference is no number
            gap = self.select(same, self.broadcast(self.const(0, gap.dtype), gap.shape), gap)
            return self.add(top, self.call("log1p", self.call("exp", gap)))

        return self._running(combine, -math.inf, x, axis, reverse, False)


def _fill(fill_value: Any, dtype: np.dtype) -> np.ndarray:
    """What stands for places outside: NaN, the least integer, the greatest unsigned one, True."""
    if fill_value is not None:
        return np.array(fill_value).astype(dtype)
    if dtype.kind in "fcV":
        return np.array(math.nan).astype(dtype)
    if dtype == BOOL:
        return np.array(True)
    return np.array(least(dtype) if dtype.kind == "i" else greatest(dtype), dtype)


def least(dtype: np.dtype) -> Any:
    """The least value of a dtype."""
    if dtype == BOOL:
        return False
    if dtype.kind in "iu":
        return int(np.iinfo(dtype).min)
    return complex(-math.inf, -math.inf) if dtype.kind == "c" else -math.inf


def greatest(dtype: np.dtype) -> Any:
    """The greatest value of a dtype."""
    if dtype == BOOL:
        return True
    if dtype.kind in "iu":
        return int(np.iinfo(dtype).max)
    return complex(math.inf, math.inf) if dtype.kind == "c" else math.inf
