"""Reductions of small arrays in registers.

Few terms are written out, a shuffle or a load each (`Total`). Many run in a loop over the reduced
axis that carries one partial result a register (`_Looped`): the operands lie in memory there, those
that would be read with a stride in a transposed copy made before the loops. For:
`regions.small`. What would break it: an operand whose place in memory is not affine in the reduced
index.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from numjet.cpu.builder.builder import Value
from numjet.cpu.emit import values as ev
from numjet.cpu.graph.nodes import Val
from numjet.cpu.kernels.idioms import fused
from numjet.cpu.loops.index import Dyn, Index, LoopVar, atoms, linear_address
from numjet.cpu.loops.ir import Expr, IndexValue, Load, Op
from numjet.cpu.regions.register_ops import Evaluation, Made, behind
from numjet.cpu.regions.registers import (
    MOST_LINES,
    Cell,
    Memory,
    NotSmall,
    Pattern,
    Registers,
    lone,
    parts_of,
)

# A sum runs in so many parts beside each other, to hide the latency of the adder.
PARTIAL_SUMS = 4
# Up to so many terms, registers counted, are written out.
UNROLLED_TERMS = 48
# A loop carries so many sums at most, and at least so many if it can.
MOST_SUMS, FEW_SUMS = 16, 8
# Registers that are written to memory to be read one element a round.
SPILLED_PARTS = 32
# Transposed copies lie on the stack.
TURNED_BYTES = 1 << 17


class Total(Cell):
    """A reduction of `source` over `axes`."""

    again = 1

    def __init__(self, op: str, source: Cell, axes: Sequence[int], val: Val) -> None:
        super().__init__(val.shape, val.dtype, source.depth)
        self.op, self.source, self.chain = op, source, source.chain + 1
        self.kept = [a for a in range(len(source.shape)) if a not in axes]
        self.axes = [a for a in axes if source.shape[a] > 1]

    def find(self, r: Registers, pattern: Pattern) -> Value:
        if not self.axes:
            return r.at(self.source, pattern)
        if self.size == 1:
            return self._whole(r)
        parts = parts_of(self.size, r.lanes)
        if pattern not in parts and not lone(pattern, parts):
            return r.shuffled(self, parts, pattern)
        shape = self.source.shape
        count = int(np.prod([shape[a] for a in self.axes]))
        if count * len(parts) > UNROLLED_TERMS and len(parts) <= MOST_SUMS:
            wanted = [p[:1] if lone(p[:1], parts) else p for p in parts]
            found = _Looped.sums(r, self, wanted)
            if found is not None:
                memo = r.frames[self.depth].memo
                memo.update({(self, p): x for p, x in zip(wanted, found, strict=True)})
                return memo[self, pattern]
        if count * len(parts) > MOST_LINES:
            raise NotSmall  # each term is a line
        strides = [int(np.prod(shape[a + 1 :])) for a in range(len(shape))]
        out = np.unravel_index(np.array(pattern), [shape[a] for a in self.kept])
        base = sum(x * strides[a] for x, a in zip(out, self.kept, strict=True))
        counts = [shape[a] for a in self.axes]
        steps = np.indices(counts).reshape(len(counts), -1).T @ [strides[a] for a in self.axes]
        terms = [tuple([int(x) for x in base + step]) for step in steps]
        return self._combine(r, terms)

    def _combine(self, r: Registers, terms: Sequence[Pattern]) -> Value:
        """The terms joined, in partial results beside each other."""
        count = min(PARTIAL_SUMS, (len(terms) + 1) // 2)
        held: list[Value | None] = [None] * count
        for k, pattern in enumerate(terms):
            held[k % count] = self._join(r, held[k % count], pattern)
        return self.tree(r, [x for x in held if x is not None])

    def tree(self, r: Registers, values: list[Value]) -> Value:
        """Partial results joined in pairs."""
        while len(values) > 1:
            half = (len(values) + 1) // 2
            values = [
                self._apply(r, x, values[half + k]) if half + k < len(values) else x
                for k, x in enumerate(values[:half])
            ]
        return values[0]

    def _join(self, r: Registers, held: Value | None, pattern: Pattern) -> Value:
        source = self.source
        if held is not None and self.op == "add" and isinstance(source, Made):
            product = source.result
            if isinstance(product, Op) and product.name == "mul" and source.lazy:
                if product.dtype in ev.FLOATS:
                    # A sum of products: one rounding a term.
                    x, y = (source.compute(r, a, pattern) for a in product.args)
                    x, y, held = r.alike([x, y, held])
                    return fused(r.b, x, y, held)
        value = r.at(source, pattern)
        return value if held is None else self._apply(r, held, value)

    def _apply(self, r: Registers, x: Value, y: Value) -> Value:
        x, y = r.alike([x, y])
        return ev.apply(r.b, self.op, self.dtype, x, y)

    def _whole(self, r: Registers) -> Value:
        """All elements, lane-wise first."""
        b, size = r.b, self.source.size
        found = None
        held: dict[int, Value] = {}
        start = 0
        for pattern in parts_of(size, r.lanes):
            width = len(pattern)
            value = r.widen(r.at(self.source, pattern), width)
            if start + width > size and self.op in ("add", "mul", "xor"):
                mask = b.lanes([start + k < size for k in range(width)], "i1")
                rest = ev.constant(b, ev.identity(self.op, self.dtype), self.dtype, width)
                value = b.select(mask, value, rest)
            held[width] = self._apply(r, held[width], value) if width in held else value
            start += width
        for value in held.values():
            part = ev.reduce_lanes(b, self.op, self.dtype, value)
            found = part if found is None else self._apply(r, found, part)
        assert found is not None
        return found


class _Looped(Evaluation):
    """The terms of a sum at one register's elements, as functions of the reduced index.

    `at` is the index of the round, `ahead` what the unrolled copy adds to it.
    """

    def __init__(self, r: Registers, made: Made, env: dict, lanes: int, var: LoopVar) -> None:
        super().__init__(r, made, env, lanes)
        self.var = var
        self.at: Value | None = None
        self.ahead = 0

    @staticmethod
    def sums(r: Registers, total: Total, parts: Sequence[Pattern]) -> list[Value] | None:
        """A sum's registers, computed in a loop; None where that is not possible."""
        source, b = total.source, r.b
        if not isinstance(source, Made) or not source.lazy or r.now != r.top:
            return None
        if total.op != "add" or len(total.axes) != 1 or source.dtype not in ev.FLOATS:
            return None
        axis = total.axes[0]
        var, count = source.template.vars[axis], source.shape[axis]
        terms = []
        for pattern in parts:
            out = np.unravel_index(np.array(pattern), [source.shape[a] for a in total.kept])
            env = dict(zip([source.template.vars[a] for a in total.kept], out, strict=True))
            terms.append(_Looped(r, source, env, len(pattern), var))
        if not all(term.possible() for term in terms):
            return None
        unroll = max(1, min(-(-FEW_SUMS // len(parts)), count))
        zeros = [
            ev.constant(b, 0.0, source.dtype, len(p) if len(p) > 1 else 0)
            for _ in range(unroll)
            for p in parts
        ]
        for term in terms:
            term.prepare()
        with b.loop(0, count - count % unroll, unroll, zeros) as loop:
            held = list(loop.values)
            for ahead in range(unroll):
                for k, term in enumerate(terms):
                    j = ahead * len(parts) + k
                    held[j] = term.joined(held[j], loop.index, ahead)
            loop.yield_(*held)
        held = list(loop.results)
        for rest in range(count - count % unroll, count):
            for k, term in enumerate(terms):
                held[k] = term.joined(held[k], b.const(0, "i64"), rest)
        columns = [held[k :: len(parts)] for k in range(len(parts))]
        return [total.tree(r, column) for column in columns]

    def loads(self) -> list[Load]:
        """The reads of the terms' expression."""
        found: dict[int, Expr] = {}
        todo: list[Expr] = [self.made.result]
        while todo:
            x = todo.pop()
            if id(x) not in found:
                found[id(x)] = x
                todo += x.args_()
        if any(isinstance(x, IndexValue) for x in found.values()):
            raise _Irregular
        return [x for x in found.values() if isinstance(x, Load)]

    def possible(self) -> bool:
        """Whether every operand that changes from round to round can be read in memory."""
        try:
            for load in self.loads():
                self.route(load)
        except _Irregular:
            return False
        return True

    def prepare(self) -> None:
        """Write to memory, before the loop, what its rounds read there."""
        for load in self.loads():
            if self.changes(load):
                self.place(load)
            else:
                super().load(load)

    def changes(self, x: Load) -> bool:
        return any(a is self.var for i in x.index for a in atoms(i))

    def route(self, x: Load) -> tuple[Cell, list[int], int, int] | None:
        """(cell, places in round 0, what a round adds, step between lanes that asks for a
        transposed copy or 0); None where all rounds read the same."""
        if any(type(a) is Dyn for i in x.index for a in atoms(i)):
            raise _Irregular
        if not self.changes(x):
            return None
        cell, index = behind(self.made.operands[self.made.template.number[x.buffer]], x.index)
        address = linear_address(index, cell.shape)
        each = address.coefficient(self.var)
        rest = address - Index.of(self.var) * each
        if any(a is self.var or type(a) is Dyn for a in atoms(rest)):
            raise _Irregular
        lanes = np.broadcast_to(np.asarray(self.known_index(rest)), (self.lanes,))
        places = [int(p) for p in lanes]
        if not isinstance(cell, Memory) and cell.size > SPILLED_PARTS * self.r.lanes:
            raise _Irregular
        first, last = places[0], places[-1]
        run = [min(first + k, last) for k in range(self.lanes)]
        if first == last or places == run:
            return cell, places, each, 0
        step = places[1] - first
        inside = range(step)
        if (
            step <= 1
            or cell.size % step
            or any((p - first) % step for p in places)
            or first % step + each * (self.var.extent - 1) not in inside
            or not isinstance(cell, Memory)
            or cell.depth >= self.r.top
            or cell.size * cell.dtype.itemsize > TURNED_BYTES
        ):
            raise _Irregular
        return cell, places, each, step

    def place(self, x: Load) -> tuple[Memory, list[int], int]:
        """The memory, the places in round 0, what a round adds."""
        found = self.route(x)
        assert found is not None
        cell, places, each, step = found
        if not step:
            return self.r.memory(cell, SPILLED_PARTS), places, each
        assert isinstance(cell, Memory)
        transposed = self.r.transposed(cell, step)
        rows = transposed.shape[1]
        return transposed, [p % step * rows + p // step for p in places], each * rows

    def load(self, x: Load) -> Value:
        if not self.changes(x):
            return super().load(x)
        assert self.at is not None
        memory, places, each = self.place(x)
        offset = self.at if each == 1 else self.r.b.mul(self.at, each)
        places = [p + each * self.ahead for p in places]
        if places[0] == places[-1]:
            places = places[:1]
        return memory.read(self.r, tuple(places), offset)

    def joined(self, held: Value, at: Value, ahead: int) -> Value:
        """The sum with the term of one more round."""
        self.known.clear()
        self.at, self.ahead = at, ahead
        result = self.made.result
        if isinstance(result, Op) and result.name == "mul":
            x, y = (self.value(a) for a in result.args)
            x, y, held = self.r.alike([x, y, held])
            return fused(self.r.b, x, y, held)
        return self.r.b.add(*self.r.alike([held, self.value(result)]))


class _Irregular(Exception):
    """An operand is read in another way than along its elements or rows."""
