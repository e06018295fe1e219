"""sort by one key, with any number of operands moved along.

Keys become unsigned integers of the same order (NaN last, -0 equal to 0) and move together with a
four-byte payload or a position in one word: least significant digit first, eight bits a pass;
digits that all keys share are skipped. Many rows are sorted side by side (`sorting.rows`), few
short ones by insertion, one long row on all threads (`sorting.long`). Zeros get their signs back in
the order they came in, as a stable sort leaves them. For: `kernels.generator`. What would break it:
rows of 2^32 elements.
"""

from __future__ import annotations

import numpy as np

from numjet.cpu import host
from numjet.cpu.builder.builder import Builder, Module, Value
from numjet.cpu.graph.nodes import Node, Val
from numjet.cpu.kernels import complex_parts
from numjet.cpu.kernels.idioms import parallel_call
from numjet.cpu.kernels.sorting import long as sort_long, rows as sort_rows, shares as sort_shares
from numjet.cpu.kernels.sorting.plan import BUCKETS, SHORT, Key, Words, key_for
from numjet.cpu.program.steps import Place, Slot, SpecialStep, Step
from numjet.cpu.program.values import Values

PARALLEL_ELEMENTS = 1 << 14


def generate(build: Values, node: Node) -> list[Step] | None:
    """The step of a sort by one key, or None for several keys and complex numbers."""
    first = node.ins[0]
    key = key_for(first.dtype)
    axis = node.params["dimension"]
    if node.params["num_keys"] != 1 or key is None or not first.size:
        return None
    if any(v.dtype.itemsize > 8 for v in node.ins) or first.shape[axis] >= 1 << 32:
        return None
    plan = Plan(key, [v.dtype.itemsize for v in node.ins], first.shape, axis, _counts(node))
    if plan.words:
        sort_shares.start(plan)
    return [plan.step(build, node)]


def _counts(node: Node) -> bool:
    """Whether the only payload is the position along the axis, as in argsort."""
    if len(node.ins) != 2 or node.ins[1].dtype != np.int32:
        return False
    made = node.ins[1].node
    return (
        made is not None
        and made.primitive.name == "iota"
        and made.params["dimension"] == node.params["dimension"]
    )


class Plan(Words):
    """One sort: the algorithm, and how the rows are shared out."""

    def __init__(
        self, key: Key, sizes: list[int], shape: tuple[int, ...], axis: int, counted: bool = False
    ) -> None:
        super().__init__(key, sizes, shape, axis, counted)
        self.tasks = 1
        self.long = self.n >= sort_long.LONG and self.rows < host.cpu_count()
        self.long &= type(self) is Plan
        if self.rows > 1 and not self.long and self.rows * self.n >= PARALLEL_ELEMENTS:
            self.tasks = min(self.rows, 4 * host.cpu_count())
        self.task_bytes = -(-2 * self.n * self.word_bytes // 64) * 64
        self.network = type(self) is Plan and sort_rows.fits(self)
        self.words = type(self) is Plan and sort_shares.fits(self, beside=self.network)
        self.network &= not self.words
        if self.words:
            self.word = sort_shares.word_of(self)
            self.task_bytes = sort_shares.scratch_bytes(self)
        elif self.long:
            self.task_bytes = sort_long.scratch_bytes(self)
        if self.network or self.words:
            # Equal keys keep their order by their positions.
            self.carried = counted
        # Rows are sorted one digit after the other.
        self.radix = self.n > SHORT and not self.network and not self.words
        if self.network:
            self.tasks = min(self.tasks, sort_rows.batches(self))
            self.task_bytes = sort_rows.scratch_bytes(self)

    def step(self, build: Values, node: Node) -> Step:
        """The step that runs `function` for `node`."""
        scratch = Val((self.tasks * self.task_bytes,), np.dtype(np.uint8))
        scratch.place = Place(Slot("arena", scratch.nbytes))

        def emit(b: Builder, reads: list[Value], writes: list[Value]) -> None:
            b.call(self.function(b.module), "void", *reads, *writes)

        reads = [build.materialize(v) for v in node.ins]
        flops = self.rows * self.n * max(self.n.bit_length(), 1)
        writes = [*node.outs, scratch]
        return SpecialStep(node.primitive.name, reads, writes, emit, flops=flops)

    def function(self, module: Module) -> str:
        """Define the sort in `module`; its name."""
        sizes = "_".join(map(str, self.sizes))
        kind = f"{type(self).__name__.lower()}_{self.key.kind}{self.key.bits}_{self.key.exponent}"
        name = f"sort{kind}_{sizes}_{self.rows}_{self.n}_{self.inner}_{self.keep}_{self.counted}"
        if any(f.name == name for f in module.functions):
            return name
        ins, outs = self.counts()
        names = [f"p{k}" for k in range(ins + outs + 1)]
        b = Builder(module, name, [(p, "ptr") for p in names], linkage="internal")
        if self.long:
            with b.loop(0, self.rows) as rows:
                sources = self.bases(b, list(b.args[:ins]), rows.index, self.n)
                targets = self.bases(b, list(b.args[ins:-1]), rows.index, self.n)
                row = (sort_shares.WordRow if self.words else sort_long.LongRow)(self, module)
                row.emit(b, sources, targets, b.args[-1])
            b.ret()
            return name

        units = sort_rows.batches(self) if self.network else self.rows

        def task(b: Builder, pointers: list[Value], begin: Value, end: Value) -> None:
            scratch = pointers[-1]
            counts = None
            if self.radix:
                counts = b.alloca("i64", BUCKETS * self.key.bits // 8)
            with b.loop(begin, end) as tasks:
                start = b.div(b.mul(tasks.index, units), self.tasks)
                stop = b.div(b.mul(b.add(tasks.index, 1), units), self.tasks)
                one = b.gep(scratch, b.mul(tasks.index, self.task_bytes))
                if self.network:
                    with b.loop(start, stop) as batches:
                        sort_rows.RowBatch(self).emit(
                            b, pointers[:ins], pointers[ins:-1], one, batches.index
                        )
                    return
                two = b.gep(one, self.n * self.word_bytes)
                with b.loop(start, stop) as rows:
                    sources = self.bases(b, pointers[:ins], rows.index, self.n)
                    targets = self.bases(b, pointers[ins:-1], rows.index, self.keep)
                    if self.words:
                        sort_shares.WordRow(self, module).row(b, sources, targets, one, two)
                    else:
                        self.row(b, sources, targets, one, two, counts)

        parallel_call(b, task, list(b.args), self.tasks, 1)
        b.ret()
        return name

    def counts(self) -> tuple[int, int]:
        """How many operands and results."""
        return len(self.sizes), len(self.sizes)

    def row(self, b: Builder, ins: list[Value], outs: list[Value], one: Value, two: Value,
            counts: Value | None) -> None:  # fmt: skip
        """Sort one row: words to `one`, sorted to wherever it ends, then out."""
        key = self.key
        digits = key.bits // 8
        if counts is not None:
            with b.loop(0, digits * BUCKETS, 8) as clear:
                b.store(b.const(0, "<8 x i64>"), b.gep(counts, b.mul(clear.index, 8)), 8)
        negative_zeros = b.const(0, "i64")
        with b.loop(0, self.n, carried=[negative_zeros]) as load:
            i = load.index
            word, ordered, negative = self.word_at(b, ins, i)
            zeros = load.values[0]
            if negative is not None:
                zeros = b.add(zeros, b.zext(negative, "i64"))
            b.store(word, b.gep(one, b.mul(i, self.word_bytes)), self.word_bytes)
            if counts is not None:
                for digit in range(digits):
                    part = b.and_(b.lshr(ordered, 8 * digit), BUCKETS - 1)
                    wide = part if key.width == 64 else b.zext(part, "i64")
                    slot = b.gep(counts, b.add(b.mul(wide, 8), digit * BUCKETS * 8))
                    b.store(b.add(b.load(slot, "i64"), 1), slot)
            load.yield_(zeros)
        negative_zeros = load.results[0]
        if counts is None:
            self.insertion(b, one, b.const(self.n, "i64"))
            source = one
        else:
            passes = self.radix_pass(b.module)
            with b.loop(0, digits, carried=[one, two]) as turns:
                here, there = turns.values
                table = b.gep(counts, b.mul(turns.index, BUCKETS * 8))
                shift = b.add(b.mul(turns.index, 8), self.shift)
                moved = b.call(passes, "i1", here, there, b.const(self.n, "i64"), shift, table)
                turns.yield_(b.select(moved, there, here), b.select(moved, here, there))
            source = turns.results[0]
        self.finish(b, ins, outs, source, 0, self.keep)
        if key.kind == "f" and type(self) is Plan:
            with b.if_(b.icmp("ne", negative_zeros, 0)):
                self.restore_zeros(b, ins[0], outs[0])


def expand(node: Node) -> list[Node] | None:
    """A sort by several keys as sorts by one, the last key first: each of them is stable. Complex
    numbers are two keys, and go apart."""
    if any([x.dtype.kind == "c" for x in node.ins]) and node.ins[0].size:
        before, inner, after = complex_parts.sort(node)
        return [*before, *(expand(inner) or [inner]), *after]
    keys = node.params["num_keys"]
    if keys == 1 or any(key_for(v.dtype) is None for v in node.ins[:keys]) or not node.ins[0].size:
        return None
    nodes: list[Node] = []
    values = list(node.ins)
    for key in range(keys - 1, -1, -1):
        order = [key, *[k for k in range(len(values)) if k != key]]
        made = [Val.of(v.aval) for v in node.outs] if key else list(node.outs)
        params = {**node.params, "num_keys": 1, "is_stable": True}
        ins, outs = ([x[k] for k in order] for x in (values, made))
        nodes.append(node.instead(ins, outs, params))
        values = made
    return nodes
