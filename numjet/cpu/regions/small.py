"""Loops and branches over small arrays as one function that keeps them in vector registers.

`lower(build, node)` gives the step of a while, scan or cond whose values are a few registers large
(arrays of any size may be read, a scan's inputs and outputs row by row), or None. Tried by
`control` after `regions.scalar`, which takes regions of single elements only. A round of such a
loop calls nothing and stores nothing but the rows of what it stacks. What would break it: a step
whose code reads a carry's first value after its result was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.core import lowering as low
from numjet.core.jaxpr import ClosedJaxpr, Jaxpr, subjaxprs, unclosed
from numjet.cpu.builder.builder import TYPES, Builder, Module, Value
from numjet.cpu.emit import values as ev
from numjet.cpu.graph import expand, products
from numjet.cpu.graph.nodes import Graph, Node, Val, flatten, is_reshape
from numjet.cpu.link import link
from numjet.cpu.lower import update as lower_update
from numjet.cpu.lower.access import WEIGHTS
from numjet.cpu.lower.groups import Compilation
from numjet.cpu.program.steps import SpecialStep, Step
from numjet.cpu.regions.loop_kernel import failed
from numjet.cpu.regions.register_ops import Made, Template
from numjet.cpu.regions.register_sums import Total
from numjet.cpu.regions.registers import Cell, Held, Literal, Memory, NotSmall, Registers, parts_of

# Arrays of so many elements are held an element a register, where elements change places and
# nothing dear is computed of them: a shuffle costs as much as the operations that it makes one.
FEW_ELEMENTS, DEAR = 4, 8
_MOVES = frozenset(["slice", "concatenate", "dynamic_slice", "gather", "rev", "transpose", "pad"])
# What a loop carries must fit in about as many registers as there are.
MOST_CARRIED = 2048
# Operations on registers in a round, as the sizes of the values tell.
MOST_WORK = 1200
# Products of all sums of products in a round: larger ones are better shared among threads.
MOST_PRODUCTS = 40_000
# Cells compute what they read when they are read themselves: ever deeper in Python's stack.
LONGEST_CHAIN = 8
# Rows that an inner scan stacks lie on the stack.
STACKED_BYTES = 1 << 15


def lower(build: Compilation, node: Node) -> list[Step] | None:
    """The step of a small region, or None."""
    try:
        lanes = _Check().region(node)
        return _Function(build, node, lanes).steps()
    except (NotSmall, NotImplementedError):
        return None
    except Exception as error:
        failed("a small loop", error)
        return None


def _native(dtype: np.dtype) -> bool:
    return dtype.kind in "iub" or dtype in (ev.FLOAT32, ev.FLOAT64)


class _Check:
    """A look at a region before any code is written: is it small, and how many lanes suit it."""

    def __init__(self) -> None:
        self.work, self.products = 0.0, 0
        self.widest = self.largest = 1
        self.moves = self.dear = False

    def region(self, node: Node) -> int:
        self.visit(node)
        if self.largest == 1:
            raise NotSmall
        if self.largest <= FEW_ELEMENTS and self.moves and not self.dear:
            return 1
        return max(link.vector_bytes() // self.widest, 2)

    def visit(self, node: Node) -> None:
        name, params = node.rule.name, node.params
        carried = node.outs
        if name == "scan":
            if params["length"] < 2:
                raise NotSmall  # no loop
            carried = carried[: params["num_carry"]]
            bodies = [params["jaxpr"]]
        elif name == "while":
            bodies = [params["cond_jaxpr"], params["body_jaxpr"]]
        elif name == "cond":
            bodies = list(params["branches"])
        else:
            raise NotSmall
        if sum(v.nbytes for v in carried) > MOST_CARRIED:
            raise NotSmall
        for val in carried:
            self.see(val)
        for jaxpr in bodies:
            self.jaxpr(unclosed(jaxpr)[0])

    def see(self, val: Any) -> None:
        if not _native(val.dtype):
            raise NotSmall
        if val.size > 1:
            self.largest = max(self.largest, val.size)
            if val.dtype != np.dtype(bool):
                self.widest = max(self.widest, val.dtype.itemsize)

    def jaxpr(self, jaxpr: Jaxpr) -> None:
        """The equations of a body, those of calls in it too."""
        for eqn in jaxpr.eqns:
            for inner in subjaxprs(eqn.params):
                self.jaxpr(inner)
            name = eqn.primitive.name
            self.moves |= name in _MOVES
            for var in eqn.outvars:
                size = int(np.prod(var.aval.shape))
                self.largest = max(self.largest, size)
                self.dear |= size > 1 and WEIGHTS.get(name, 1) >= DEAR
                self.work += size / (64 // max(np.dtype(_physical(var.aval)).itemsize, 1))
            if name == "dot_general":
                (contracted, _), _ = eqn.params["dimension_numbers"]
                out = int(np.prod(eqn.outvars[0].aval.shape))
                depth = int(np.prod([eqn.invars[0].aval.shape[a] for a in contracted]))
                self.work += 40
                self.products += out * depth
            if self.work > MOST_WORK or self.products > MOST_PRODUCTS:
                raise NotSmall


def _physical(aval: Any) -> Any:
    return Val.of(aval).dtype


class _Function:
    """The function of one region under construction."""

    def __init__(self, build: Compilation, node: Node, lanes: int) -> None:
        self.build, self.node = build, node
        self.name = build.kernel_name("small")
        self.module = Module(link.features())
        self.reads: list[Val] = []
        self.found: dict[int, Cell] = {}
        self.env: dict[Val, Cell] = {}
        self.graphs: list[Graph] = []  # keeps the values alive that `env` knows by identity
        self.rounds = 1
        self.nodes = 0
        names = [(f"a{k}", "ptr") for k in range(len(node.ins) + len(node.outs))]
        self.b = Builder(self.module, self.name, names, linkage="internal")
        self.r = Registers(self.b, lanes)

    def steps(self) -> list[Step]:
        node, b = self.node, self.b
        outs = self.b.args[len(node.ins) :]
        args = [self.operand(v, k) for k, v in enumerate(node.ins)]
        stacked = {}
        if node.rule.name == "scan":
            first = node.params["num_carry"]
            stacked = {k: outs[k] for k in range(first, len(node.outs))}
        cells = self.region(node, args, stacked)
        for k, cell in enumerate(cells):
            if k not in stacked:
                self.r.write(cell, outs[k])
        b.ret()
        reads = [self.build.materialize(v) for v in node.ins]
        module, name = self.module, self.name

        def emit(b: Builder, ins: Sequence[Value], outs: Sequence[Value]) -> None:
            if name not in {f.name for f in b.module.functions}:
                b.module.adopt(module)
            b.call(name, "void", *ins, *outs)

        flops = self.nodes * self.rounds
        return [SpecialStep(name, reads, list(node.outs), emit, flops=flops)]

    def operand(self, val: Val, position: int) -> Cell:
        """A value from outside."""
        if val.literal is not None:
            return Literal(val.literal, val.dtype)
        if not _native(val.dtype) or not val.size:
            raise NotSmall
        return Memory(self.b.args[position], val.shape, val.dtype, 0)

    # ---- graphs

    def call(self, jaxpr: ClosedJaxpr | Jaxpr, args: Sequence[Cell]) -> list[Cell]:
        """The results of a jaxpr on `args`."""
        inner, consts = unclosed(jaxpr)
        if consts or inner.constvars:
            raise NotSmall
        vals = [Val.of(v.aval) for v in inner.invars]
        graph = flatten(inner, [], vals, self.constant, expand.trace)
        self.graphs.append(graph)
        for val, cell in zip(vals, args, strict=True):
            self.env[val] = cell
        for node in graph.nodes:
            self.visit(node)
        return [self.cell(v) for v in graph.outs]

    def constant(self, value: Any) -> Val:
        raise NotSmall  # an array that a jaxpr inside holds

    def cell(self, val: Val) -> Cell:
        return Literal(val.literal, val.dtype) if val.literal is not None else self.env[val]

    def visit(self, node: Node) -> None:
        rule = node.rule
        self.nodes += 1
        if node.effects or not all(_native(v.dtype) and v.size for v in (*node.ins, *node.outs)):
            raise NotSmall
        if self.updates(node):
            raise NotSmall  # better done in place
        ins = [self.cell(v) for v in node.ins]
        if type(rule) is low.Region:
            outs = self.region(node, ins, {})
        elif type(rule) is low.Pointwise and is_reshape(node) and type(ins[0]) is Memory:
            outs = [Memory(ins[0].pointer, node.outs[0].shape, ins[0].dtype, ins[0].depth)]
        elif type(rule) is low.Pointwise:
            template = Template(node)
            outs = [
                Made(template, k, ins, v, self.r.top) for k, v in enumerate(node.outs)
            ]
        elif type(rule) is low.Reduce and not rule.op.startswith("arg"):
            axes = [a % len(ins[0].shape) for a in node.params["axes"]]
            if node.ins[0].dtype != node.outs[0].dtype:
                raise NotSmall
            outs = [Total(rule.op, ins[0], axes, node.outs[0])]
        elif type(rule) is low.Kernel and rule.name == "dot_general":
            for part in products.expand(node):
                self.visit(part)
            return
        else:
            raise NotSmall
        for val, cell in zip(node.outs, outs, strict=True):
            self.env[val] = cell
            if cell.chain > LONGEST_CHAIN and not (isinstance(cell, Made) and cell.lazy):
                self.r.parts(cell)
                cell.chain = 0

    def updates(self, node: Node) -> bool:
        """Whether a node changes a part of what several registers hold."""
        return lower_update.is_update(node, True) and node.ins[0].size > 2 * self.r.lanes

    # ---- regions

    def settle(self, cells: Sequence[Cell]) -> None:
        """Compute what a loop or branch reads before it begins, or leave it to be put there."""
        todo = list(cells)
        while todo:
            cell = todo.pop()
            if isinstance(cell, Made) and cell.lazy:
                todo += cell.operands
            elif isinstance(cell, Made | Total) and cell.depth == self.r.top:
                if cell.size * cell.dtype.itemsize > MOST_CARRIED:
                    raise NotSmall
                self.r.parts(cell)

    def region(self, node: Node, args: list[Cell], stacked: dict[int, Value]) -> list[Cell]:
        self.settle(args)
        name = node.rule.name
        if name == "while":
            return self.while_(node, args)
        if name == "cond":
            return self.cond(node, args)
        return self.scan(node, args, stacked)

    def start(self, cells: Sequence[Cell], vals: Sequence[Val]) -> list[Value]:
        """The registers of carries as they begin: of the shapes and dtypes of `vals`."""
        values: list[Value] = []
        for cell, val in zip(cells, vals, strict=True):
            if cell.size != val.size and not isinstance(cell, Literal):
                raise NotSmall
            values += self.distributed(cell, val)
        return values

    def distributed(self, cell: Cell, val: Val) -> list[Value]:
        kind = ev.register_type(val.dtype)
        found = []
        for pattern in parts_of(val.size, self.r.lanes):
            value = self.r.at(cell, pattern if cell.size > 1 else (0,))
            value = self.r.widen(value, len(pattern))
            if TYPES[value.type].element != kind:
                raise NotSmall
            found.append(value)
        return found

    def held(self, values: Sequence[Value], vals: Sequence[Val]) -> list[Cell]:
        """Cells of the registers of `vals`, as the present frame holds them."""
        cells: list[Cell] = []
        at = 0
        for val in vals:
            count = len(parts_of(val.size, self.r.lanes))
            part = values[at : at + count]
            cells.append(Held(part, val.shape, val.dtype, self.r.top))
            at += count
        return cells

    def while_(self, node: Node, args: list[Cell]) -> list[Cell]:
        params, vals = node.params, node.outs
        n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
        first, second = args[:n_cond], args[n_cond : n_cond + n_body]
        values = self.start(args[n_cond + n_body :], vals)
        self.rounds *= 1000  # nobody knows
        with self.r.frame(), self.b.while_(values) as loop:
            carry = self.held(loop.values, vals)
            (test,) = self.call(params["cond_jaxpr"], [*first, *carry])
            loop.test(self.r.at(test, (0,)))
            outs = self.call(params["body_jaxpr"], [*second, *carry])
            loop.yield_(*self.start(outs, vals))
        return self.held(loop.results, vals)

    def cond(self, node: Node, args: list[Cell]) -> list[Cell]:
        index, *operands = args
        branches, vals = node.params["branches"], node.outs
        if isinstance(index, Literal):
            chosen = min(max(int(index.value), 0), len(branches) - 1)
            return self.call(branches[chosen], operands)
        number = self.r.at(index, (0,))
        return self.held(self.choose(number, branches, operands, vals, 0), vals)

    def choose(
        self, number: Value, branches: Sequence[Any], operands: list[Cell], vals: Sequence[Val],
        k: int,
    ) -> Sequence[Value]:  # fmt: skip
        """The registers of the results of branch `number`, from branch k on."""
        b = self.b
        if k == len(branches) - 1:
            return self.start(self.call(branches[k], operands), vals)
        here = b.not_(number) if number.type == "i1" else b.icmp("sle", number, k)
        with self.r.frame():
            with b.if_(here) as branch:
                branch.yield_(*self.start(self.call(branches[k], operands), vals))
            self.r.frames[-1].memo.clear()
            with branch.else_():
                branch.yield_(*self.choose(number, branches, operands, vals, k + 1))
        return branch.results

    def scan(self, node: Node, args: list[Cell], stacked: dict[int, Value]) -> list[Cell]:
        params, b = node.params, self.b
        length, reverse = params["length"], params["reverse"]
        n_consts, n_carry = params["num_consts"], params["num_carry"]
        if length == 0:
            raise NotSmall
        vals, rows = node.outs[:n_carry], node.outs[n_carry:]
        places = [self.place(stacked, n_carry + k, v) for k, v in enumerate(rows)]
        whole = [self.r.memory(x) for x in args[n_consts + n_carry :]]
        values = self.start(args[n_consts : n_consts + n_carry], vals)
        self.rounds *= length
        with self.r.frame(), b.loop(0, length, 1, values) as loop:
            at = b.sub(length - 1, loop.index) if reverse else loop.index
            inputs: list[Cell] = []
            for x in whole:
                pointer = self.row(x.pointer, at, x.size // length * x.dtype.itemsize)
                inputs.append(Memory(pointer, x.shape[1:], x.dtype, self.r.top))
            carry = self.held(loop.values, vals)
            outs = self.call(params["jaxpr"], [*args[:n_consts], *carry, *inputs])
            following = self.start(outs[:n_carry], vals)
            for place, val, out in zip(places, rows, outs[n_carry:], strict=True):
                part = Val(val.shape[1:], val.dtype)
                cell = Held(self.distributed(out, part), part.shape, part.dtype, self.r.top)
                self.r.write(cell, self.row(place, at, part.nbytes))
            loop.yield_(*following)
        results: list[Cell] = self.held(loop.results, vals)
        for place, val in zip(places, rows, strict=True):
            results.append(Memory(place, val.shape, val.dtype, self.r.top))
        return results

    def row(self, place: Value, at: Value, nbytes: int) -> Value:
        return self.b.gep(place, self.b.mul(at, nbytes))

    def place(self, stacked: dict[int, Value], position: int, val: Val) -> Value:
        """Where the rows of a stacked result go."""
        found = stacked.get(position)
        if found is None:
            if val.nbytes > STACKED_BYTES:
                raise NotSmall
            found = self.b.alloca("i8", val.nbytes)
        return found
