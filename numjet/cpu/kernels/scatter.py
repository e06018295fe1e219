"""scatter, scatter_add, _sub, _mul, _min and _max: updates of windows at computed positions.

Positions are visited in order, so of equal ones the last wins; the operand's memory is taken over
when it dies. Many sums and extrema into few places run on all threads, each into a copy of its own.
For: `kernels.generator`. What would break it: an operand in the memory of the updates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.base.record import record
from numjet.cpu import host
from numjet.cpu.builder.builder import Builder, Value, const, like, vector
from numjet.cpu.graph.nodes import Node, Val
from numjet.cpu.kernels.idioms import (
    ELEMENTS,
    lanes_of,
    merge,
    parallel_call,
    prefix_mask,
    size_of,
    strides,
)
from numjet.cpu.program.steps import Place, Slot, SpecialStep, Step
from numjet.cpu.program.values import Values

_OPS = {
    "scatter": "set", "scatter-add": "add", "scatter-sub": "sub", "scatter-mul": "mul",
    "scatter-min": "min", "scatter-max": "max",
}  # fmt: skip
# Those whose updates may meet in copies first.
_COPIED = ("add", "sub", "min", "max")
# Copies of the places, one a thread, from this many updates and up to this many bytes.
COPIES_FROM, COPIES_BYTES = 1 << 15, 1 << 16
CLIP = "CLIP"


@record(frozen=True, slots=True)
class Combine:
    """How an update meets what is there. Small floats meet as floats, rounded again.

    element: the type of what is there. source: the updates' where that is another, a small float
    that meets floats.
    """

    op: str
    element: str
    unsigned: bool = False
    boolean: bool = False
    source: str = ""

    @property
    def memory(self) -> str:
        return memory(self.element)

    def update(self, b: Builder, load: Callable[[str], Value]) -> Value:
        """An update, or a vector of them, which `load` reads as a type of memory."""
        new = load(memory(self.source or self.element))
        return _as_float(b, new, self.source) if self.source else new

    def apply(self, b: Builder, old: Callable[[], Value], new: Value) -> Value:
        """The new content; `old` reads the present one."""
        if self.op == "set":
            return new
        if self.boolean:
            return b.and_(old(), new) if self.op in ("mul", "min") else b.or_(old(), new)
        return self.met(b, self.op, old(), new)

    def met(self, b: Builder, op: str, x: Value, y: Value) -> Value:
        """Two elements, or vectors of them, by an operation."""
        name = f"u{op}" if self.unsigned and op in ("min", "max") else op
        if self.element not in ("half", "bfloat"):
            return getattr(b, name)(x, y)
        x, y = (_as_float(b, v, self.element) for v in (x, y))
        return self.rounded(b, op, getattr(b, name)(x, y))

    def rounded(self, b: Builder, op: str, x: Value) -> Value:
        """A float that an operation gave as a small float in memory; extrema are some already."""
        if self.element == "bfloat" and op in ("min", "max"):
            return b.trunc(b.lshr(b.bitcast(x, like(x.type, "i32")), 16), "i16")
        return b.bitcast(b.fptrunc(x, self.element), like(x.type, self.memory))


def memory(element: str) -> str:
    """The type that is loaded and stored: processors without bfloats know their bits only."""
    return "i16" if element == "bfloat" else element


def _as_float(b: Builder, x: Value, element: str) -> Value:
    """A small float, or a vector of them, as floats."""
    return b.fpext(b.bitcast(x, like(x.type, element)), "float")


@record(slots=True)
class _Layout:
    """Sizes and byte strides of a scatter."""

    batch: list[tuple[int, int, int, int]]  # size, strides of indices, updates and operand
    components: list[tuple[int, int]]  # operand stride and last start, by index component
    window: list[tuple[int, int, int]]  # size, strides of operand and updates; outer first


def _layout(operand: tuple, indices: tuple, updates: tuple, numbers: Any,
            sizes: tuple[int, int, int]) -> _Layout:  # fmt: skip
    """`sizes`: the bytes of an element of each."""
    size, index_size, update_size = sizes
    ostrides, ustrides = strides(operand, size), strides(updates, update_size)
    istrides = strides(indices, index_size)
    window_dims = sorted(numbers.update_window_dims)
    gone = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    axes = [axis for axis in range(len(operand)) if axis not in gone]
    widths = [1] * len(operand)
    window = []
    for axis, dim in zip(axes, window_dims, strict=True):
        widths[axis] = updates[dim]
        if updates[dim] > 1:
            window.append((updates[dim], ostrides[axis], ustrides[dim]))
    batch_dims = [d for d in range(len(updates)) if d not in numbers.update_window_dims]
    batching = dict(
        zip(numbers.scatter_indices_batching_dims, numbers.operand_batching_dims, strict=True)
    )
    batch = []
    for k, dim in enumerate(batch_dims):
        if updates[dim] > 1:
            along = ostrides[batching[k]] if k in batching else 0
            batch.append((updates[dim], istrides[k], ustrides[dim], along))
    components = [
        (ostrides[axis], operand[axis] - widths[axis])
        for axis in numbers.scatter_dims_to_operand_dims
    ]
    return _Layout(merge(batch), components, merge(window))


def claims(node: Node) -> bool:
    """Whether threads with copies of their own pay: many sums or extrema into few places."""
    if _OPS.get(node.primitive.name) not in _COPIED or node.ins[0].dtype.kind == "b":
        return False
    operand, indices, _ = node.ins
    return operand.nbytes <= COPIES_BYTES and math.prod(indices.shape[:-1]) >= COPIES_FROM


def generate(build: Values, node: Node) -> list[Step] | None:
    """The step of a scatter, or None for an operation or dtype it does not know."""
    operand, indices, updates = node.ins
    op = _OPS.get(node.primitive.name)
    dtype = operand.dtype
    mode = getattr(node.params.get("mode"), "name", "")
    if op is None or not mode or indices.dtype.kind not in "iu":
        return None
    shapes = [operand.shape, updates.shape]
    numbers = node.params["dimension_numbers"]
    if dtype.kind == "c":
        if op not in ("set", "add", "sub"):
            return None
        # A complex number is a window of two real ones.
        shapes = [(*shape, 2) for shape in shapes]
        dtype = np.dtype(f"f{dtype.itemsize // 2}")
        numbers = numbers._replace(
            update_window_dims=(*numbers.update_window_dims, len(updates.shape))
        )
    element = ELEMENTS.get(dtype.name)
    if element is None:
        return None
    combine = Combine(op, element, dtype.kind == "u", dtype.kind == "b")
    reads = [build.materialize(v) for v in node.ins]
    layout = None
    if updates.size:
        sizes = dtype.itemsize, indices.dtype.itemsize, dtype.itemsize
        layout = _layout(shapes[0], indices.shape, shapes[1], numbers, sizes)
    copies = max(2, min(host.cpu_count(), 16)) if claims(node) else 0
    scatter = _Scatter(combine, layout, indices.dtype, mode == CLIP, operand.nbytes, copies)
    if copies and element in ("half", "bfloat") and op in ("add", "sub"):
        sizes = 4, indices.dtype.itemsize, dtype.itemsize
        scatter.share = _Scatter(
            Combine(op, "float", source=element),
            layout and _layout(shapes[0], indices.shape, shapes[1], numbers, sizes),
            indices.dtype, mode == CLIP, 2 * operand.nbytes,
        )  # fmt: skip
    writes = list(node.outs)
    if copies:
        scratch = Val((copies * scatter.share.copy_bytes,), np.dtype(np.uint8))
        scratch.place = Place(Slot("arena", scratch.nbytes))
        writes.append(scratch)

    def emit(b: Builder, reads: list[Value], writes: list[Value]) -> None:
        b.call(scatter.function(b, len(b.module.functions)), "void", *reads, *writes)

    return [
        SpecialStep(node.primitive.name, reads, writes, emit,
                    inplace=[(node.outs[0], reads[0])], flops=updates.size)
    ]  # fmt: skip


class _Scatter:
    """The functions of a scatter. share: the same into the copies, where sums of small floats are
    floats."""

    def __init__(self, combine: Combine, layout: _Layout | None, index: np.dtype, clip: bool,
                 nbytes: int, copies: int = 0) -> None:  # fmt: skip
        self.combine, self.layout, self.index, self.clip = combine, layout, index, clip
        self.nbytes, self.copies, self.share = nbytes, copies, self
        self.copy_bytes = -(-nbytes // 64) * 64

    def function(self, caller: Builder, number: int) -> str:
        """Define (operand, indices, updates, out[, scratch]); its name."""
        module = caller.module
        name = f"scatter{number}"
        names = ["operand", "indices", "updates", "out", *["scratch"] * bool(self.copies)]
        b = Builder(module, name, [(n, "ptr") for n in names], linkage="internal")
        operand, indices, updates, out = b.args[:4]
        with b.if_(b.icmp("ne", operand, out)):
            self.copy(b, out, operand)
        if self.layout is not None:
            if self.copies and self.layout.batch:
                self.in_copies(b, out, indices, updates, b.args[4])
            else:
                self.positions(b, self.layout.batch, indices, updates, out)
        b.ret()
        return name

    def copy(self, b: Builder, to: Value, source: Value) -> None:
        b.memcpy(to, source, self.nbytes)

    def in_copies(self, b: Builder, out: Value, indices: Value, updates: Value,
                  scratch: Value) -> None:  # fmt: skip
        """Every thread does its share of the positions in a copy, and the copies meet in `out`:
        sums begin at zero, extrema with what is there."""
        share, combine = self.share, self.combine
        assert share.layout is not None
        (count, *steps), *inner = share.layout.batch
        copies = min(self.copies, count)
        extrema = combine.op in ("min", "max")

        def task(b: Builder, pointers: list[Value], begin: Value, end: Value) -> None:
            indices, updates, scratch, out = pointers
            with b.loop(begin, end) as tasks:
                mine = b.gep(scratch, b.mul(tasks.index, share.copy_bytes))
                if extrema:
                    self.copy(b, mine, out)
                else:
                    b.memzero(mine, share.copy_bytes)
                start = b.div(b.mul(tasks.index, count), copies)
                stop = b.div(b.mul(b.add(tasks.index, 1), count), copies)
                with b.loop(start, stop) as positions:
                    bases = zip((indices, updates, mine), steps, strict=True)
                    at = [b.gep(p, b.mul(positions.index, s)) if s else p for p, s in bases]
                    share.positions(b, inner, *at)

        parallel_call(b, task, [indices, updates, scratch, out], copies, 1)
        element, held = combine.memory, share.combine.memory
        size, lanes, wide = size_of(element), lanes_of(held), size_of(held)
        # Copies of differences hold them negative.
        op = combine.op if extrema else "add"
        with b.loop(0, self.nbytes // size, lanes) as chunks:
            mask = prefix_mask(b, b.sub(b.const(self.nbytes // size, "i64"), chunks.index), lanes)
            place = b.gep(out, b.mul(chunks.index, size))
            total = b.masked_load(place, mask, const(0, vector(element, lanes)), size)
            if share is not self:
                total = _as_float(b, total, combine.element)
            for k in range(copies):
                offset = b.add(b.mul(chunks.index, wide), k * share.copy_bytes)
                zero = const(0, vector(held, lanes))
                part = b.masked_load(b.gep(scratch, offset), mask, zero, wide)
                total = share.combine.met(b, op, total, part)
            if share is not self:
                total = combine.rounded(b, op, total)
            b.masked_store(total, place, mask, size)

    def positions(self, b: Builder, batch: list, indices: Value, updates: Value,
                  out: Value) -> None:  # fmt: skip
        """Loops over the positions, then the update of one."""
        if batch:
            (count, *steps), *inner = batch
            with b.loop(0, count) as loop:
                at = [b.gep(p, b.mul(loop.index, s)) if s else p
                      for p, s in zip((indices, updates, out), steps, strict=True)]  # fmt: skip
                self.positions(b, inner, *at)
            return
        assert self.layout is not None
        size = self.index.itemsize
        inside = None
        for k, (stride, last) in enumerate(self.layout.components):
            start = b.load(b.gep(indices, k * size), f"i{8 * size}")
            if self.index.kind == "i":
                start = b.sext(start, "i64")
            elif size == 8:
                start = b.umin(start, (1 << 63) - 1)
            else:
                start = b.zext(start, "i64")
            if self.clip:
                start = b.min(b.max(start, 0), last)
            else:
                good = b.icmp("ule", start, last)
                inside = good if inside is None else b.and_(inside, good)
            out = b.gep(out, b.mul(start, stride))
        if inside is None:
            self.window(b, self.layout.window, updates, out)
            return
        with b.if_(inside):
            self.window(b, self.layout.window, updates, out)

    def window(self, b: Builder, axes: list, updates: Value, out: Value) -> None:
        """Combine one window."""
        element, given = self.combine.memory, memory(self.combine.source or self.combine.element)
        size, lanes, step = size_of(element), lanes_of(element), size_of(given)
        if not axes:
            new = self.combine.update(b, lambda kind: b.load(updates, kind, step))
            b.store(self.combine.apply(b, lambda: b.load(out, element, size), new), out, size)
            return
        (count, ostride, ustride), *inner = axes
        if inner or ostride != size or ustride != step or count < 4:
            with b.loop(0, count) as loop:
                self.window(b, inner, b.gep(updates, b.mul(loop.index, ustride)),
                            b.gep(out, b.mul(loop.index, ostride)))  # fmt: skip
            return
        kind = vector(element, lanes)

        def chunk(start: Value | int, mask: Value | None) -> None:
            target = b.gep(out, times(start, size))

            def load(element: str) -> Value:
                source, kind = b.gep(updates, times(start, step)), vector(element, lanes)
                if mask is None:
                    return b.load(source, kind, step)
                return b.masked_load(source, mask, const(0, kind), step)

            new = self.combine.update(b, load)
            if mask is None:
                old = lambda: b.load(target, kind, size)  # noqa: E731
                b.store(self.combine.apply(b, old, new), target, size)
            else:
                old = lambda: b.masked_load(target, mask, const(0, kind), size)  # noqa: E731
                b.masked_store(self.combine.apply(b, old, new), target, mask, size)

        def times(start: Value | int, size: int) -> Value | int:
            return start * size if isinstance(start, int) else b.mul(start, size)

        whole = count // lanes * lanes
        if whole > 4 * lanes:
            with b.loop(0, whole, lanes) as chunks:
                chunk(chunks.index, None)
        else:
            for k in range(0, whole, lanes):
                chunk(k, None)
        if whole < count:
            chunk(whole, prefix_mask(b, count - whole, lanes))
