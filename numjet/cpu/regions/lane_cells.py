"""Values of a loop over independent elements: cells, read at indices of one element's own.

A cell gives the expression of the element at an index, for each of the vectors that run side by
side (`pieces` of the kernel). What changes in the loop may be read at a piece's own elements only;
an example's own elements are told apart by constant indices. For: `regions.lanes`. What would break
it: two of a kernel's pieces with equal indices.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.cpu.graph.nodes import Node, Val
from numjet.cpu.loops.complex import ComplexPair
from numjet.cpu.loops.index import Index
from numjet.cpu.loops.ir import Buffer, Expr, Local, ReadLocal, Select
from numjet.cpu.lower.access import KernelEmitter

At = tuple[Index, ...]
# Elements of one value of an example that are looked at one by one.
MOST_PLACES = 32


class NotLanes(Exception):
    """The region holds something that is not done for each element of the domain alone."""


class Domain:
    """The axes over which elements are independent: the first of a value's axes, or the last."""

    def __init__(self, shape: tuple[int, ...], front: bool) -> None:
        self.shape, self.front, self.size = shape, front, math.prod(shape)

    def axes(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Which axes of a value are the domain's; () where it does not vary over the domain."""
        rank = len(self.shape)
        first = 0 if self.front else len(shape) - rank
        inside = first >= 0 and tuple(shape[first : first + rank]) == self.shape
        return tuple(range(first, first + rank)) if inside else ()

    def places(self, shape: Sequence[int]) -> list[tuple[int, ...]]:
        """An example's elements of a value: their indices, 0 along the axes of the domain."""
        axes = self.axes(shape)
        extents = [1 if a in axes else n for a, n in enumerate(shape)]
        if math.prod(extents) > MOST_PLACES:
            raise NotLanes
        return list(itertools.product(*[range(n) for n in extents]))


class Cell:
    """A value of the region: `read(at)` gives the expression of the element at an index."""

    __slots__ = ("dtype", "shape")

    def __init__(self, val: Any) -> None:
        self.shape, self.dtype = val.shape, val.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def read(self, at: At) -> Any:
        raise NotImplementedError

    def __call__(self, *index: Any) -> Any:
        """As rules read operands."""
        return self.read(tuple([Index.of(i) for i in index]) if self.shape else ())


class Literal(Cell):
    """A constant in every element."""

    __slots__ = ("value",)

    def __init__(self, k: Any, val: Val) -> None:
        super().__init__(val)
        self.value = k.e.const(val.literal, val.dtype)

    def read(self, at: At) -> Any:
        return self.value


class Memory(Cell):
    """An array that nobody writes."""

    __slots__ = ("buffer", "kernel")

    def __init__(self, k: Any, val: Val, buffer: Buffer) -> None:
        super().__init__(val)
        self.kernel, self.buffer = k, buffer

    def read(self, at: At) -> Any:
        axes = self.kernel.domain.axes(self.shape)
        if not axes or tuple([at[a] for a in axes]) not in self.kernel.pieces:
            self.kernel.stray.add(self.buffer)
        return self.kernel.e.load(self.buffer, at)


class Row(Cell):
    """One row of a value."""

    __slots__ = ("row", "whole")

    def __init__(self, whole: Cell, row: Index) -> None:
        super().__init__(whole)
        self.shape, self.whole, self.row = whole.shape[1:], whole, row

    def read(self, at: At) -> Any:
        return self.whole.read((self.row, *at))


class Carried(Cell):
    """A carry, or a result of branches: a local for each of an example's elements."""

    __slots__ = ("axes", "kernel", "locals")

    def __init__(self, k: Any, val: Val) -> None:
        super().__init__(val)
        self.kernel, self.axes = k, k.domain.axes(val.shape)
        self.locals: dict[tuple[int, tuple[int, ...]], Any] = {}

    def read(self, at: At) -> Any:
        piece = 0
        if self.axes:
            found = self.kernel.pieces.get(tuple([at[a] for a in self.axes]))
            if found is None:
                raise NotLanes
            piece = found
        place = []
        for a, i in enumerate(at):
            if a in self.axes:
                place.append(0)
            elif i.is_const:
                place.append(i.const)
            else:
                raise NotLanes
        return self.kernel.e.read_local(self.locals[piece, tuple(place)])


class Pointwise:
    """A pointwise node: its results by index."""

    __slots__ = ("found", "ins", "kernel", "node")

    def __init__(self, k: Any, node: Node, ins: Sequence[Cell]) -> None:
        self.kernel, self.node, self.ins = k, node, ins
        self.found: dict[At, list] = {}

    def at(self, at: At) -> list:
        found = self.found.get(at)
        if found is None:
            self.kernel.spend()
            node = self.node
            result = node.rule.fn(self.kernel.e, list(at), *self.ins, **node.params)
            found = list(result) if isinstance(result, tuple | list) else [result]
            self.found[at] = found
        return found


class Made(Cell):
    """One result of a pointwise node."""

    __slots__ = ("node", "position")

    def __init__(self, node: Pointwise, position: int, val: Val) -> None:
        super().__init__(val)
        self.node, self.position = node, position

    def read(self, at: At) -> Any:
        return self.node.at(at)[self.position]


_COMBINE: dict[str, str] = {
    "add": "add", "mul": "mul", "max": "max", "min": "min",
    "and": "and_", "or": "or_", "xor": "xor",
}  # fmt: skip


class Total(Cell):
    """A reduction over an example's own elements, first to last."""

    __slots__ = ("axes", "found", "kernel", "op", "source")

    def __init__(self, k: Any, op: str, source: Cell, axes: Sequence[int], val: Val) -> None:
        super().__init__(val)
        if op not in _COMBINE or math.prod([source.shape[a] for a in axes]) > MOST_PLACES:
            raise NotLanes
        self.kernel, self.op, self.source, self.axes = k, op, source, tuple(axes)
        self.found: dict[At, Any] = {}

    def read(self, at: At) -> Any:
        found = self.found.get(at)
        if found is not None:
            return found
        e, source = self.kernel.e, self.source
        # Sums of 16-bit floats run in float32, as the reference does.
        short = self.op in ("add", "mul") and self.dtype.itemsize == 2 and self.dtype.kind in "fV"
        for place in itertools.product(*[range(source.shape[a]) for a in self.axes]):
            self.kernel.spend()
            own, rest = iter(place), iter(at)
            index = [
                Index.of(next(own)) if a in self.axes else next(rest)
                for a in range(len(source.shape))
            ]
            value = source.read(tuple(index))
            value = e.cast(value, np.float32) if short else value
            found = value if found is None else getattr(e, _COMBINE[self.op])(found, value)
        found = self.found[at] = e.cast(found, self.dtype) if short else found
        return found


class Across(Cell):
    """A reduction over axes of the domain; what remains is indexed by the `rest` of its axes.

    Where an inner loop of several goes on tells only a while when to end, and a choice between
    keeping an example and what that example's own choice gives (`Emitter`): it is never computed.
    """

    __slots__ = ("kernel", "op", "rest", "source")

    def __init__(self, k: Any, source: Cell, op: str, axes: Sequence[int], val: Val) -> None:
        super().__init__(val)
        rest = list(range(len(k.domain.shape)))
        if isinstance(source, Across):
            if source.op != op:
                raise NotLanes
            rest, source = source.rest, source.source
        elif source.shape != k.domain.shape:
            raise NotLanes
        self.kernel, self.source, self.op = k, source, op
        self.rest = [a for n, a in enumerate(rest) if n not in axes]

    def read(self, at: At) -> Any:
        if self.op != "or":
            raise NotLanes
        own = [
            self.source.read(piece)
            for piece in self.kernel.pieces
            if tuple([piece[a] for a in self.rest]) == at
        ]
        return self.kernel.e.any(own)


class Emitter(KernelEmitter):
    """Makes expressions; chooses for an example as the example does where any of several that it is
    one of decides whether to keep it."""

    def __init__(self) -> None:
        super().__init__()
        self.anys: dict[Local, set[int]] = {}  # a name for "any of" -> expressions it is about
        self._names: dict[frozenset[int], Local] = {}

    @property
    def count(self) -> int:
        """How many different expressions there are."""
        return len(self._made)

    def any(self, own: Sequence[Expr]) -> Expr:
        """Stands for whether one of `own`, or of those of other pieces, holds."""
        key = frozenset([id(x) for x in own])
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = Local("any", np.dtype(bool))
            self.anys[name] = set(key)
        return self.read(name)

    def select(self, condition: Any, x: Any, y: Any) -> Any:
        own = self.anys.get(condition.local) if type(condition) is ReadLocal else None
        if own is None or x is y or isinstance(x, ComplexPair):
            return super().select(condition, x, y)
        if type(x) is not Select or x.otherwise is not y or id(x.condition) not in own:
            raise NotLanes
        return x
