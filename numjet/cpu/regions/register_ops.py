"""Operations on small arrays in registers: pointwise nodes as cells.

A pointwise rule is run once, on an index of loop variables (`Template`); for a pattern of elements
those are numbers, so that every read becomes a pattern of the operand. For: `regions.small`. What
would break it: a rule whose expressions read other buffers than its operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.cpu.builder.builder import TYPES, Value
from numjet.cpu.emit import values as ev
from numjet.cpu.graph.nodes import Node, Val
from numjet.cpu.loops.cost import op_cost
from numjet.cpu.loops.index import (
    Clamp,
    Div,
    Dyn,
    Index,
    LoopVar,
    Mod,
    Product,
    atoms,
    linear_address,
    rewrite,
)
from numjet.cpu.loops.ir import Buffer, Cast, Const, Expr, IndexValue, Load, Op, Select
from numjet.cpu.lower.access import KernelEmitter
from numjet.cpu.regions.registers import Cell, NotSmall, Pattern, Registers, lone, parts_of

# An element that costs up to this much is computed anew for each pattern it is wanted at; about
# what a register takes to be put together from the two or three that hold its elements.
AGAIN_COST = 6


class Template:
    """A pointwise node's rule, run once: its results as expressions over loads of operands."""

    def __init__(self, node: Node) -> None:
        e = KernelEmitter()
        self.vars = [LoopVar(f"i{k}", n) for k, n in enumerate(node.outs[0].shape)]
        self.buffers = [Buffer(f"x{k}", v.dtype, v.shape) for k, v in enumerate(node.ins)]
        readers = [_Reader(e, x) for x in self.buffers]
        index = [Index.of(v) for v in self.vars]
        found = node.rule.fn(e, index, *readers, **node.params)
        self.results = list(found) if isinstance(found, tuple | list) else [found]
        if not all(isinstance(x, Expr) for x in self.results):
            raise NotSmall  # a complex pair
        self.number = {x: k for k, x in enumerate(self.buffers)}

    def costs(self, result: Expr, operands: Sequence[Cell]) -> tuple[int, int, bool]:
        """(cost of an element's own operations, with its operands, whether they may branch)."""
        own = again = 0
        branches = False
        seen: set[int] = set()
        todo = [result]
        while todo:
            x = todo.pop()
            if id(x) in seen:
                continue
            seen.add(id(x))
            if isinstance(x, Op):
                own += op_cost(x.name)
                branches |= op_cost(x.name) >= 25 or x.name == "rem"
            elif isinstance(x, Select | Cast):
                own += 1
            elif isinstance(x, Load):
                again += operands[self.number[x.buffer]].again
            todo += x.args_()
            for i in x.indices_():
                todo += [a.expr for a in atoms(i) if type(a) is Dyn]
        return own, own + again, branches


class _Reader:
    """An operand as a rule sees it."""

    __slots__ = ("buffer", "dtype", "e", "shape")

    def __init__(self, e: KernelEmitter, buffer: Buffer) -> None:
        self.e, self.buffer, self.shape, self.dtype = e, buffer, buffer.shape, buffer.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __call__(self, *index: Any) -> Any:
        return self.e.load(self.buffer, [Index.of(i) for i in index] if self.shape else [])


class Made(Cell):
    """One result of a pointwise node."""

    def __init__(
        self, template: Template, position: int, operands: Sequence[Cell], val: Val, top: int
    ) -> None:
        self.template, self.result = template, template.results[position]
        self.operands = operands
        own, again, branches = template.costs(self.result, operands)
        depth = top if branches else max([x.depth for x in operands], default=0)
        super().__init__(val.shape, val.dtype, depth)
        self.chain = 1 + max([x.chain for x in operands], default=0)
        self.moves = own == 0
        self.lazy = own == 0 or (not branches and again <= AGAIN_COST)
        self.again = again if self.lazy else 1
        self.own = own

    def find(self, r: Registers, pattern: Pattern) -> Value:
        if self.lazy or self.size == 1:
            return self.compute(r, self.result, pattern)
        parts = parts_of(self.size, r.lanes)
        if pattern in parts or lone(pattern, parts):
            return self.compute(r, self.result, pattern)
        return r.shuffled(self, parts, pattern)

    def compute(self, r: Registers, result: Expr, pattern: Pattern) -> Value:
        """An expression of the template at the elements of `pattern`."""
        where = np.unravel_index(np.array(pattern), self.shape) if self.shape else ()
        env = dict(zip(self.template.vars, where, strict=True))
        return Evaluation(r, self, env, len(pattern)).value(result)


class Evaluation:
    """One template at one pattern."""

    def __init__(
        self, r: Registers, made: Made, env: dict[LoopVar, np.ndarray], lanes: int
    ) -> None:
        self.r, self.made, self.env, self.lanes = r, made, env, lanes
        self.known: dict[int, Value] = {}

    def value(self, x: Expr) -> Value:
        found = self.known.get(id(x))
        if found is None:
            found = self.known[id(x)] = self._value(x)
        return found

    def _value(self, x: Expr) -> Value:
        b = self.r.b
        if isinstance(x, Op):
            args = self.r.alike([self.value(a) for a in x.args])
            return ev.apply(b, x.name, x.args[0].dtype, *args)
        if isinstance(x, Const):
            return ev.constant(b, x.value, x.dtype)
        if isinstance(x, Cast):
            change = ev.bit_convert if x.bits else ev.convert
            return change(b, self.value(x.arg), x.arg.dtype, x.dtype)
        if isinstance(x, Select):
            c, y, z = (self.value(a) for a in x.args_())
            if TYPES[c.type].lanes:
                y, z = (self.r.widen(v, TYPES[c.type].lanes) for v in (y, z))
            else:
                y, z = self.r.alike([y, z])
            return b.select(c, y, z)
        if isinstance(x, IndexValue):
            kind = ev.register_type(x.dtype)
            places, moving = self.places(x.index)
            if moving is not None:
                value = self.moved(places, moving)
                return value if kind == "i64" else b.trunc(value, kind)
            return b.const(places[0], kind) if len(set(places)) == 1 else b.lanes(places, kind)
        assert isinstance(x, Load)
        return self.load(x)

    def load(self, x: Load) -> Value:
        """An element of an operand."""
        cell = self.made.operands[self.made.template.number[x.buffer]]
        if cell.size == 1:
            return self.r.at(cell, (0,))
        places, moving = self.places(linear_address(x.index, x.buffer.shape))
        if moving is None:
            return self.r.at(cell, tuple(places))
        cell, index = behind(cell, x.index)
        places, moving = self.places(linear_address(index, cell.shape))
        if moving is None:  # what the runtime index chose from was one element repeated
            return self.r.at(cell, tuple(places) if cell.size > 1 else (0,))
        memory = self.r.memory(cell)
        if TYPES[moving.type].lanes:
            return memory.gather(self.r, self.moved(places, moving))
        if len(set(places)) == 1:
            places = places[:1]
        return memory.read(self.r, tuple(places), moving)

    def places(self, i: Index) -> tuple[list[int], Value | None]:
        """An index in the lanes: known numbers, and what is added to them at run time."""
        b = self.r.b
        total: Any = i.const
        moving = None
        for atom, k in i.terms:
            if any(type(a) is Dyn for a in atoms(Index(((atom, 1),), 0))):
                part = self.runtime(atom)
                part = part if k == 1 else b.mul(part, k)
                moving = part if moving is None else b.add(*self.r.alike([moving, part]))
            else:
                total = total + k * self.known_atom(atom)
        lanes = np.broadcast_to(np.asarray(total), (self.lanes,))
        return [int(p) for p in lanes], moving

    def known_atom(self, atom: Any) -> Any:
        if type(atom) is LoopVar:
            return self.env[atom]
        inside = [self.known_index(p) for p in atom.parts()]
        if type(atom) is Div:
            return inside[0] // atom.divisor
        if type(atom) is Mod:
            return inside[0] % atom.divisor
        if type(atom) is Clamp:
            return np.clip(inside[0], atom.low, atom.high)
        assert type(atom) is Product
        return inside[0] * inside[1]

    def known_index(self, i: Index) -> Any:
        total: Any = i.const
        for atom, k in i.terms:
            total = total + k * self.known_atom(atom)
        return total

    def runtime(self, atom: Any) -> Value:
        """An atom that is known at run time only, as i64."""
        b = self.r.b
        if type(atom) is Dyn:
            kind = atom.expr.dtype.kind
            return (b.sext if kind == "i" else b.zext)(self.value(atom.expr), "i64")
        if type(atom) is not Clamp:
            raise NotSmall
        places, moving = self.places(atom.arg)
        assert moving is not None
        x = self.moved(places, moving)
        return b.min(b.max(x, atom.low), atom.high)

    def moved(self, places: list[int], moving: Value) -> Value:
        """The sum of both parts of an index."""
        if len(set(places)) > 1:
            return self.r.b.add(*self.r.alike([self.r.b.lanes(places, "i64"), moving]))
        return self.r.b.add(moving, places[0]) if places[0] else moving


def behind(cell: Cell, index: tuple[Index, ...]) -> tuple[Cell, tuple[Index, ...]]:
    """The cell, and the place in it, from which movers only hand on the element at `index`."""
    while isinstance(cell, Made) and isinstance(cell.result, Load):
        load, template = cell.result, cell.template
        if any(type(a) is Dyn for i in load.index for a in atoms(i)):
            break
        by: dict[Any, Index] = dict(zip(template.vars, index, strict=True))
        index = tuple([rewrite(i, by.get) for i in load.index])
        cell = cell.operands[template.number[load.buffer]]
    return cell, index
