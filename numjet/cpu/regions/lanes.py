"""Loops whose rounds work on each element of a batch alone: all rounds of a few vectors at a time.

`lower(build, node)` gives the step of a while or scan over carries that are vectors over one domain
(the examples of a vmap, the pixels of an image), or None. The loop over the domain goes outside,
that over rounds inside: a piece of a few vectors keeps its carries in registers for all rounds, and
pieces run on threads. Carries that do not vary over the domain (counters) are computed by each
piece. A while that ends when every example has stopped ends for a piece when all of its examples
have. Tried by `control` before and after `regions.small`. What would break it: a rule that
reads an operand which changes in the loop at another element of the domain than its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from numjet.base.record import replace
from numjet.core import lowering as low
from numjet.core.jaxpr import ClosedJaxpr, Jaxpr, subjaxprs
from numjet.cpu.graph import products
from numjet.cpu.graph.nodes import Graph, Node, Val
from numjet.cpu.link import link
from numjet.cpu.loops.complex import ComplexPair
from numjet.cpu.loops.index import Index, LoopVar, clamp
from numjet.cpu.loops.ir import (
    COMPLEX_PARTS,
    Alloc,
    Buffer,
    Expr,
    For,
    If,
    Kernel,
    ReadLocal,
    Select,
    Stmt,
    While,
    exprs,
)
from numjet.cpu.lower.access import WEIGHTS
from numjet.cpu.lower.core import unflatten
from numjet.cpu.lower.groups import Compilation
from numjet.cpu.passes.parallelize import grain
from numjet.cpu.program.steps import KernelStep, Step
from numjet.cpu.regions import small as lower_small
from numjet.cpu.regions.element_jaxprs import adds_parts
from numjet.cpu.regions.lane_cells import (
    MOST_PLACES,
    Across,
    At,
    Carried,
    Cell,
    Domain,
    Emitter,
    Literal,
    Made,
    Memory,
    NotLanes,
    Pointwise,
    Row,
    Total,
)
from numjet.cpu.regions.loop_kernel import LoopKernel, failed
from numjet.cpu.regions.scalar import native

# Elements an example may carry, in all carries together; more would not stay in registers.
MOST_CARRIED = 32
# Elements that are made in a round, for all vectors of a piece: longer bodies compile slowly, and
# gain nothing over kernels.
MOST_MADE = 1200
# Vectors side by side hide the latency of a round's chain of operations, until so many operations
# are in flight: with 256, not 64, two variables by Runge and Kutta take 0.4 of the time, rows of
# four that are normalized 0.6, and no loop that was measured more.
SIDE_BY_SIDE, MOST_VECTORS = 256, 8
# What a loop carries has to be in registers; what it only reads is read from the first cache as
# quickly, if all of it is so many times the registers: 4 by 4 matrices, whose 16 numbers times four
# vectors are more, took 1.5 times as long so.
BEYOND = 2.5
# Rows of more elements an example are read faster along them: of 32 a loop took 1.3 times as long.
MOST_APART = 16
# What takes few instructions, however long; functions are counted by their weight.
SHORT = 4
# Expressions of all vectors beyond which there are half as many, since all are to be compiled.
MOST_EXPRESSIONS = 800


def lower_several(build: Compilation, node: Node) -> list[Step] | None:
    """`lower` for what `regions.small` might take, where an example has several elements: in its
    registers they change places by shuffles, here they are in different ones. Lorenz' equations for
    32 to 128 examples take half the time and compile in a third. Not so where rows of several
    elements an example are read or stacked, or multiplied."""
    if sum([v.nbytes for v in _carries(node)]) > lower_small.MOST_CARRIED:
        return None
    if node.rule.name == "scan":
        params = node.params
        first = params["num_consts"] + params["num_carry"]
        rows = [*node.ins[first:], *node.outs[params["num_carry"] :]]
        if any([len(v.shape) > 2 for v in rows]):
            return None
    return lower(build, node, several=True)


def lower(build: Compilation, node: Node, several: bool = False) -> list[Step] | None:
    """The kernel of a loop over independent elements, or None; `several`: None, too, where each
    example has but one element."""
    if node.rule.name not in ("while", "scan"):
        return None
    if not all(native(v) and v.size for v in (*node.ins, *node.outs)) or adds_parts(node):
        return None
    try:
        carries = _carries(node)
        for domain in _domains(carries):
            try:
                kernel = LaneKernel(build, node, domain, products=not several)
                steps = kernel.steps()
                while kernel.vectors > 1 and kernel.e.count > MOST_EXPRESSIONS:
                    kernel = LaneKernel(build, node, domain, not several, kernel.vectors // 2)
                    steps = kernel.steps()
            except NotLanes:
                continue
            return None if several and kernel.most == 1 else steps
    except NotImplementedError:
        return None
    except Exception as error:
        failed("a loop over independent elements", error)
    return None


def _carries(node: Node) -> Sequence[Val]:
    return node.outs[: node.params["num_carry"]] if node.rule.name == "scan" else node.outs


def _domains(carries: Sequence[Val]) -> Iterator[Domain]:
    """What may be independent, as the largest carry tells: all elements, its rows, its columns."""
    if not carries:
        return
    shape = max(carries, key=lambda v: v.size).shape
    least = link.vector_bytes() // 8
    seen = set()
    for part, front in ((shape, True), (shape[:1], True), (shape[-1:], False)):
        domain = Domain(part, front)
        if domain.size >= least and (part, len(part) == len(shape) or front) not in seen:
            seen.add((part, len(part) == len(shape) or front))
            yield domain


# ---- the kernel


class LaneKernel(LoopKernel):
    def __init__(
        self, build: Compilation, node: Node, domain: Domain, products: bool,
        vectors: int = MOST_VECTORS,
    ) -> None:
        self.vectors = vectors
        self.node, self.domain, self.products = node, domain, products
        super().__init__(build)
        self.e = Emitter()
        self.stray: set[Buffer] = set()  # inputs read elsewhere than at the piece's own elements
        self.made = self.nodes = 0
        self.rounds = self.most = 1
        self.graphs: list[Graph] = []  # keeps the values alive that cells are known by
        self.pieces: dict[At, int] = {}
        self.first: Any = True  # whether this piece is the first
        self.scratch: list[Buffer] = []  # what a piece keeps in memory of its own

    def spend(self) -> None:
        self.made += 1
        if self.made > MOST_MADE:
            raise NotLanes

    # ---- loops over the domain

    def steps(self) -> list[Step]:
        self.cut(Sizes(self.node, self.domain))
        body: list[Stmt] = []
        outs = self.region(self.node, [self.operand(v) for v in self.node.ins], body, True)
        self.results(self.node.outs, outs, body)
        return self.finish(body, _carries(self.node))

    def cut(self, sizes: Sizes) -> None:
        """Cut the domain into pieces of so many vectors as registers hold."""
        carried, light, widest = sizes.carried, sizes.operations, sizes.widest
        constant, self.most, size = sizes.constant, sizes.most, self.domain.size
        if not carried or carried > MOST_CARRIED:
            raise NotLanes
        if sizes.few and not light:
            raise NotLanes  # all examples would go through what an update in place does to some
        lanes = max(link.vector_bytes() // widest, 2)
        vectors = self.vectors
        while vectors > 1 and (
            vectors * light > SIDE_BY_SIDE
            or vectors * 2 * carried > link.registers()
            or vectors * (2 * carried + constant) > BEYOND * link.registers()
            or vectors * lanes > size
        ):
            vectors //= 2
        self.vectors = vectors
        while lanes // 2 >= size:
            lanes //= 2
        self.lanes, self.width = lanes, vectors * lanes
        count = -(-size // self.width)
        self.block, self.lane = LoopVar("piece", count), LoopVar("lane", min(lanes, size))
        # The last piece ends where the domain does: its first elements are computed twice.
        start = clamp(Index.of(self.block) * self.width, 0, max(size - self.width, 0))
        for v in range(vectors):
            at = tuple(unflatten(start + v * lanes + Index.of(self.lane), self.domain.shape))
            self.pieces[at] = v
        if count > 1:
            self.first = self.e.eq(self.e.index_value(Index.of(self.block), np.int64), 0)

    def results(self, vals: Sequence[Val], outs: Sequence[Cell | None], body: list[Stmt]) -> None:
        """Store what the loop carried last."""
        held: list[tuple[Buffer, Cell, At, Any]] = []
        for val, cell in zip(vals, outs, strict=True):
            if cell is not None:
                buffer = self.output(val)
                for at in self.everywhere(cell.shape):
                    held.append((buffer, cell, at, self.define(cell.read(at), body)))
        for buffer, cell, at, local in held:
            self.store(buffer, (), cell.shape, at, self.e.read_local(local), body)

    def everywhere(self, shape: Sequence[int]) -> list[At]:
        """The indices of the piece's elements of a value."""
        axes = self.domain.axes(shape)
        found = []
        for place in self.domain.places(shape):
            index = [Index.of(i) for i in place]
            for piece in self.pieces if axes else ((),):
                for a, i in zip(axes, piece, strict=True):
                    index[a] = i
                found.append(tuple(index))
        return found

    def store(
        self, buffer: Buffer, ahead: At, shape: Sequence[int], at: At, value: Any, body: list[Stmt]
    ) -> None:
        """Write an element; the first piece writes those that all pieces have."""
        stmts = self.e.store(buffer, (*ahead, *at), value)
        if self.first is True or self.domain.axes(shape):
            body.extend(stmts)
        else:
            body.append(If(self.first, tuple(stmts)))

    # ---- values

    def operand(self, val: Val) -> Cell:
        """A value from outside."""
        if val.literal is not None:
            return Literal(self, val)
        if not native(val) or val.size == 0:
            raise NotLanes
        return Memory(self, val, self.input(val))

    def visited(
        self, jaxpr: ClosedJaxpr | Jaxpr, args: Sequence[Cell], body: list[Stmt] | None
    ) -> tuple[Graph, Callable[[Val], Cell]]:
        """A jaxpr run on `args`: its graph, and the cell of each of its values. Statements go to
        `body`; None where there may be none."""
        graph, env = self.graph(jaxpr, args)
        self.graphs.append(graph)

        def cell(val: Val) -> Cell:
            found = env.get(val)
            return self.operand(val) if found is None else found

        nodes = list(reversed(graph.nodes))
        while nodes:
            node = nodes.pop()
            if type(node.rule) is low.Kernel and node.rule.name == "dot_general" and self.products:
                nodes += reversed(products.expand(node))
                continue
            self.nodes += 1
            outs = self.visit(node, [cell(v) for v in node.ins], body)
            env.update((v, x) for v, x in zip(node.outs, outs, strict=True))
        return graph, cell

    def visit(self, node: Node, ins: list[Cell], body: list[Stmt] | None) -> Sequence[Cell]:
        rule = node.rule
        if node.effects or not all(native(v) and v.size for v in (*node.ins, *node.outs)):
            raise NotLanes
        if type(rule) is low.Region:
            if body is None:
                raise NotLanes
            return self.region(node, ins, body, False)  # type: ignore[return-value]
        if type(rule) is low.Reduce:
            axes = [a % len(ins[0].shape) for a in node.params["axes"]]
            if isinstance(ins[0], Across) or set(axes) & set(self.domain.axes(ins[0].shape)):
                return [Across(self, ins[0], rule.op, axes, node.outs[0])]
            return [Total(self, rule.op, ins[0], axes, node.outs[0])]
        if type(rule) is not low.Pointwise:
            raise NotLanes
        made = Pointwise(self, node, ins)
        cells = [Made(made, k, v) for k, v in enumerate(node.outs)]
        if self.domain.axes(node.outs[0].shape) or node.outs[0].size <= MOST_PLACES:
            # In order, so that no expression is found by a chain of calls as long as the body.
            for at in self.everywhere(node.outs[0].shape):
                made.at(at)
        return cells

    def call(
        self, jaxpr: ClosedJaxpr | Jaxpr, args: Sequence[Cell], body: list[Stmt]
    ) -> list[Cell]:
        """The results of a jaxpr on `args`; statements go to `body`."""
        graph, cell = self.visited(jaxpr, args, body)
        return [cell(v) for v in graph.outs]

    # ---- regions

    def region(
        self, node: Node, args: list[Cell], body: list[Stmt], outside: bool
    ) -> Sequence[Cell | None]:
        """The cells of a region's results; None for those that are in memory, which only the
        region itself (`outside`) writes."""
        name = node.rule.name
        if name == "while":
            return self.while_(node, args, body)
        if name == "cond":
            return self.cond(node, args, body)
        if name == "scan":
            return self.scan(node, args, body, outside)
        raise NotLanes

    def carry(self, vals: Sequence[Val], values: Sequence[Cell] | None, body: list[Stmt]) -> Any:
        """Locals for `vals`, which begin as `values` (None: as zeros)."""
        cells = []
        for k, val in enumerate(vals):
            cell = Carried(self, val)
            for key, at in self.elements(cell):
                value = self.e.const(0, val.dtype) if values is None else values[k].read(at)
                cell.locals[key] = self.define(value, body, "c")
            cells.append(cell)
        return cells

    def elements(self, cell: Carried) -> list[tuple[tuple[int, tuple[int, ...]], At]]:
        """The piece's elements of a carry: the keys of their locals, their indices."""
        found = []
        for at in self.everywhere(cell.shape):
            piece = self.pieces[tuple([at[a] for a in cell.axes])] if cell.axes else 0
            place = tuple([0 if a in cell.axes else i.const for a, i in enumerate(at)])
            found.append(((piece, place), at))
        return found

    def assign(self, cells: Sequence[Carried], values: Sequence[Cell], body: list[Stmt]) -> None:
        """Set all locals at once."""
        new = []
        for cell, value in zip(cells, values, strict=True):
            for key, at in self.elements(cell):
                following = value.read(at)
                if following is not cell.read(at):
                    new.append((cell.locals[key], self.define(following, body)))
        for local, held in new:
            body.extend(self.e.assign(local, self.e.read_local(held)))

    def while_(self, node: Node, args: list[Cell], body: list[Stmt]) -> list[Cell]:
        params = node.params
        n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
        first, second = args[:n_cond], args[n_cond : n_cond + n_body]
        cells = self.carry(node.outs, args[n_cond + n_body :], body)
        graph, cell = self.visited(params["cond_jaxpr"], [*first, *cells], None)
        test = cell(graph.outs[0])
        goes_on: dict[int, Any] = {}
        if isinstance(test, Across):
            if test.op != "or" or test.rest:
                raise NotLanes
            goes_on = {v: test.source.read(at) for at, v in self.pieces.items()}
            condition = list(goes_on.values())[0]
            for other in list(goes_on.values())[1:]:
                condition = self.e.or_(condition, other)
        else:
            condition = test.read(())
        inside: list[Stmt] = []
        self.rounds *= 1000  # nobody knows
        outs = self.call(params["body_jaxpr"], [*second, *cells], inside)
        if goes_on:
            self.check_stops(cells, outs, goes_on)
        self.assign(cells, outs, inside)
        body.append(While(condition, tuple(inside)))
        return cells

    def check_stops(
        self, cells: Sequence[Carried], outs: Sequence[Cell], goes_on: dict[int, Any]
    ) -> None:
        """Make sure that an example which has stopped keeps its values, so that a piece need not
        wait for others."""
        for cell, out in zip(cells, outs, strict=True):
            for (piece, _), at in self.elements(cell):
                old, new = _parts(cell.read(at)), _parts(out.read(at))
                for x, y in zip(old, new, strict=True):
                    if y is x:
                        continue
                    if type(y) is not Select or y.otherwise is not x or not cell.axes:
                        raise NotLanes
                    if y.condition is not goes_on[piece]:
                        raise NotLanes

    def cond(self, node: Node, args: list[Cell], body: list[Stmt]) -> list[Cell]:
        index, *operands = args
        branches = node.params["branches"]
        number = index.read(())
        cells = self.carry(node.outs, None, body)
        arms = []
        for jaxpr in branches:
            inside: list[Stmt] = []
            self.assign(cells, self.call(jaxpr, operands, inside), inside)
            arms.append(tuple(inside))
        chosen = arms[-1]
        for k in reversed(range(len(arms) - 1)):
            test = self.e.not_(number) if number.dtype.kind == "b" else self.e.le(number, k)
            chosen = (If(test, arms[k], chosen),)
        body.extend(chosen)
        return cells

    def scan(
        self, node: Node, args: list[Cell], body: list[Stmt], outside: bool
    ) -> list[Cell | None]:
        params = node.params
        length, n_consts, n_carry = params["length"], params["num_consts"], params["num_carry"]
        stacked = node.outs[n_carry:]
        if length == 0 or (stacked and not outside):
            raise NotLanes
        cells = self.carry(node.outs[:n_carry], args[n_consts : n_consts + n_carry], body)
        self.names += 1
        var = LoopVar(f"t{self.names}", length)
        row = length - 1 - Index.of(var) if params["reverse"] else Index.of(var)
        rows: list[Cell] = []
        for x, val in zip(args[n_consts + n_carry :], node.ins[n_consts + n_carry :], strict=True):
            shape = val.shape[1:]
            if self.domain.axes(shape) and len(self.domain.places(shape)) > MOST_APART:
                raise NotLanes
            rows.append(Row(x, row))
        inside: list[Stmt] = []
        self.rounds *= length
        outs = self.call(params["jaxpr"], [*args[:n_consts], *cells, *rows], inside)
        for val, out in zip(stacked, outs[n_carry:], strict=True):
            self.stack(val, row, out, inside)
        self.assign(cells, outs[:n_carry], inside)
        body.append(For(var, length, tuple(inside)))
        return [*cells, *[None] * len(stacked)]

    def stack(self, val: Val, row: Index, out: Cell, body: list[Stmt]) -> None:
        """Store a row of what a scan stacks."""
        buffer = self.output(val)
        for at in self.everywhere(out.shape):
            self.store(buffer, (row,), out.shape, at, out.read(at), body)

    # ---- the end

    def finish(self, body: Sequence[Stmt], last: Sequence[Val]) -> list[Step]:
        """The kernel and its step. last: results that may be written over what a piece reads, since
        it reads nothing after them."""
        if not self.e.anys.keys().isdisjoint(
            [x.local for x in exprs(body) if type(x) is ReadLocal]
        ):
            raise NotLanes
        inner = For(self.lane, self.lane.extent, tuple(body), "vector", lanes=self.lanes)
        outer = For(self.block, self.block.extent, (*map(Alloc, self.scratch), inner))
        apart = self.domain.size % self.width == 0  # no element is computed twice
        ins = list(self.inputs.values())
        buffers = (*[b for b, _ in self.outputs], *[b for b, _ in ins])
        writes, reads = [v for _, v in self.outputs], [v for _, v in ins]
        loop = replace(outer, grain=grain(outer))
        kernel = Kernel(self.build.kernel_name("lanes"), buffers, (loop,), {"annotated": True})
        stray = {v.root()[0] for b, v in ins if b in self.stray}
        pairs = [
            (w, r)
            for w in writes
            for r in reads
            if apart and w in last and w.shape == r.shape and w.nbytes == r.nbytes
            and r.root()[0] not in stray and self.domain.axes(w.shape)
        ]  # fmt: skip
        flops = self.nodes * self.rounds * self.domain.size
        return [KernelStep(kernel, [*writes, *reads], reads, writes, pairs, flops)]


def _parts(value: Any) -> tuple[Expr, ...]:
    return (value.re, value.im) if isinstance(value, ComplexPair) else (value,)


class Sizes:
    """What a region tells before it is lowered.

    carried, constant: elements of an example that change in the loop, that it reads in each round;
    operations: about how many a round takes; widest: bytes of the widest element that differs
    between examples; most: elements that an example has in one value; few: whether some examples
    alone get new elements in a round.
    """

    def __init__(self, node: Node, domain: Domain) -> None:
        self.domain, self.widest, self.most, self.operations = domain, 1, 1, 0
        self.few = False
        params = node.params
        count = params["num_consts"] if node.rule.name == "scan" else params["body_nconsts"]
        first = 0 if node.rule.name == "scan" else params["cond_nconsts"]
        self.carried = sum([self.see(v) for v in _carries(node)])
        self.constant = sum([self.see(v) for v in node.ins[first : first + count]])
        for inner in subjaxprs(params):
            self.walk(inner)

    def see(self, val: Val) -> int:
        """How many elements an example has in a value; 0 where all examples share it."""
        if not self.domain.axes(val.shape):
            return 0
        size = COMPLEX_PARTS.get(val.dtype, val.dtype).itemsize
        small = val.dtype.kind in "fV" and size < 4  # computed as float32
        self.widest = max(self.widest, 4 if small else size)
        count = len(self.domain.places(val.shape))
        self.most = max(self.most, count)
        return count * (2 if val.dtype.kind == "c" else 1)

    def walk(self, jaxpr: Jaxpr) -> None:
        for eqn in jaxpr.eqns:
            for inner in subjaxprs(eqn.params):
                self.walk(inner)
            count = max([self.see(Val.of(v.aval)) for v in eqn.outvars], default=0)
            name = eqn.primitive.name
            if name == "dynamic_update_slice" and count:
                self.few = self.few or not self.see(Val.of(eqn.invars[1].aval))
            if name == "dot_general":
                (contracted, _), _ = eqn.params["dimension_numbers"]
                count *= math.prod([eqn.invars[0].aval.shape[a] for a in contracted])
            elif type(eqn.primitive.loops) is low.Reduce:
                count = self.see(Val.of(eqn.invars[0].aval))
            elif not eqn.primitive.elementwise:
                continue
            weight = WEIGHTS.get(name, 1)
            self.operations += count * (weight if weight > SHORT else 1)
