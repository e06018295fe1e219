"""Emission of a Program: what it is as data, the kernels it calls, and where there is control flow
the native main function, as LLVM IR text.

    i32 main(ptr inputs, ptr outputs, ptr arena, ptr consts)

The first two are tables of pointers, the last is described in `entry`. It returns 0, or 1 when a
callback into Python failed. Kernels with equal loops are written once. Called by `pipeline` after
`buffers.plan`. What would break it: a kernel generator that writes anything but one void function
of pointers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numjet.cpu.builder.builder import Builder, Module, Value
from numjet.cpu.emit.emit import Launch
from numjet.cpu.graph.nodes import Val
from numjet.cpu.link import link
from numjet.cpu.program.buffers import same_place
from numjet.cpu.program.steps import (
    Apart,
    CondStep,
    CopyStep,
    Function,
    HostStep,
    KernelStep,
    LoopStep,
    Program,
    SpecialStep,
    Step,
    UpdateStep,
    WhileStep,
    place_of,
    walk,
)
from numjet.cpu.program.table import ProgramTable
from numjet.cpu.runtime.entry import HEADER, MAIN, PLACES, STEPS

PTR, I64, I32 = "ptr", "i64", "i32"

class Emitter:
    """Writes one program. launch(kernel) writes a loop-IR kernel (or a special step's function);
    kernels() is the module where they go, `module` that of main."""

    def __init__(
        self,
        program: Program,
        launch: Callable[[Any], Launch],
        kernels: Callable[[], Module] | None = None,
    ) -> None:
        self.program, self.launch = program, launch
        self.module = Module(link.features())
        self.b: Any = None
        self.bases: dict[tuple[str, int], Value] = {}
        self.failed: str | None = None
        self.known: dict[Any, Value] = {}  # addresses computed in this block or around it
        self.tables: dict[int, Value] = {}  # pointer tables passed to kernels, by length
        self.table = ProgramTable(launch, kernels or (lambda: self.module))

    def write(self) -> Module | None:
        """The module of main; None when the program is all data."""
        self.table.choose(self.program.steps)
        if self.table.whole:
            self.table.run(self.program.steps)
            return self.module if self.module.functions else None
        arguments = [("inputs", PTR), ("outputs", PTR), ("arena", PTR), ("consts", PTR)]
        b = self.b = Builder(self.module, MAIN, arguments, I32)
        self._bases()
        self.steps(self.program.steps)
        b.ret(b.const(0, I32))
        if self.failed is not None:
            b.block(self.failed)
            b.ret(b.const(1, I32))
        if self.table.places:
            self._places()
        return self.module

    def _places(self) -> None:
        """At the entry of main: the addresses of what the table names."""
        b = self.b
        self.module.declare(PLACES, "void", [PTR] * 5)
        operands = (*[argument.ref for argument in b.args], "%places")
        b._allocas.append(("%places", f"[{len(self.table.places)} x ptr]", 1, 64))
        b.opening.append((None, ("call", "void", f"@{PLACES}", (PTR,) * 5, operands, "")))

    def _bases(self) -> None:
        """Load the table entries that any step uses, at the entry of the function."""
        b = self.b
        inputs, outputs, arena, consts = b.args
        self.bases["arena", -1] = arena
        wanted: set[tuple[str, int]] = set()
        for step in self.program.walk():
            if step in self.table.chosen:
                continue
            vals = [*step.reads, *step.writes]
            if isinstance(step, WhileStep):
                vals.append(step.test)
            if isinstance(step, HostStep):
                wanted.add(("const", step.index))
            for val in vals:
                slot = place_of(val).slot.owner()
                if slot.kind != "arena":
                    wanted.add((slot.kind, slot.index))
        tables = {"input": inputs, "output": outputs, "const": consts}
        for kind, index in sorted(wanted):
            first = HEADER if kind == "const" else 0
            self.bases[kind, index] = b.load(b.gep(tables[kind], 8 * (first + index)), PTR, 8)

    def pointer(self, val: Val) -> Value:
        """The address of `val`."""
        b, place = self.b, place_of(val)
        slot = place.slot.owner()
        key = (slot, place.offset)
        if not place.terms and key in self.known:
            return self.known[key]
        if slot.kind == "arena":
            base = self.bases["arena", -1]
        else:
            base = self.bases[slot.kind, slot.index]
        offset = slot.offset + place.offset
        if offset:
            base = b.gep(base, offset)
        if not place.terms:
            self.known[key] = base
        for counter, stride in place.terms:
            step = stride if isinstance(stride, int) else self.apart(stride)
            base = b.gep(base, b.mul(counter.value, step))
        return base

    def apart(self, stride: Apart) -> Value:
        """The bytes from one value's memory to another's."""
        b = self.b
        here, there = (b.ptrtoint(self.pointer(v), I64) for v in (stride.here, stride.there))
        return b.sub(there, here)

    def inside(self, steps: Sequence[Step]) -> None:
        """Steps of an inner block: addresses computed there are not known after it."""
        outer = self.known
        self.known = dict(outer)
        self.steps(steps)
        self.known = outer

    def steps(self, steps: Sequence[Step]) -> None:
        chosen = self.table.chosen
        run: list[Step] = []
        for step in steps:
            if step in chosen:
                run.append(step)
                continue
            self.run(run)
            run = []
            _WRITERS[type(step)](self, step)
        self.run(run)

    def run(self, steps: Sequence[Step]) -> None:
        """A long run of steps, as a part of the table."""
        b = self.b
        start, size = self.table.run(steps)
        if not size:
            return  # copies to where things are, and loops of these
        part = (b.const(start, I64), b.const(size, I64))
        status = b.call(STEPS, I32, b.args[3], Value("%places", PTR), *part)
        if any([isinstance(step, HostStep) for step in walk(steps)]):
            self._unless_failed(status)

    def kernel(self, step: KernelStep) -> None:
        self.call(step.kernel, step.operands)

    def call(self, kernel: Any, operands: Sequence[Val]) -> None:
        """Call a function on a table of pointers to `operands`."""
        b = self.b
        launch = self.launch(kernel)
        count = len(operands)
        table = self.tables.get(count)
        if table is None:
            table = self.tables[count] = b.alloca(PTR, max(count, 1))
        for k, val in enumerate(operands):
            b.store(self.pointer(val), b.gep(table, 8 * k) if k else table, 8)
        if not launch.grain:
            b.call(launch.name, "void", table)
            return
        self.module.declare(launch.name, "void", (PTR, I64, I64))
        chunks = (b.const(launch.extent, I64), b.const(launch.grain, I64))
        b.call("nj_parallel_for", "void", Value(f"@{launch.name}", PTR), table, *chunks)

    def update(self, step: UpdateStep) -> None:
        self.copy(CopyStep(step.source, step.target))
        self.kernel(step)

    def special(self, step: SpecialStep) -> None:
        if isinstance(step.emit, Function):
            self.call(step.emit, [*step.reads, *step.writes])
            return
        step.emit(
            self.b, [self.pointer(v) for v in step.reads], [self.pointer(v) for v in step.writes]
        )

    def copy(self, step: CopyStep) -> None:
        if step.source.nbytes == 0 or same_place(step.source, step.target):
            return
        to, source = self.pointer(step.target), self.pointer(step.source)
        self.b.memcpy(to, source, step.source.nbytes)

    def host(self, step: HostStep) -> None:
        b = self.b
        vals = [*step.reads, *step.writes]
        table = b.alloca(PTR, len(vals) + 1)
        for k, val in enumerate(vals):
            b.store(self.pointer(val), b.gep(table, 8 * k), 8)
        status = b.gep(table, 8 * len(vals))
        b.store(b.const(1, I64), status, 8)
        answer = b.call(self.bases["const", step.index], I32, table)
        self._unless_failed(answer if step.answers else b.load(status, I64, 8))

    def _unless_failed(self, status: Value) -> None:
        """Leave main when a callback failed."""
        b = self.b
        if self.failed is None:
            self.failed = b.new_label("failed")
        following = b.new_label("after")
        b.cond_br(b.icmp("ne", status, 0), self.failed, following)
        b.block(following)

    def while_(self, step: WhileStep) -> None:
        b, turn = self.b, step.turn
        with b.while_([] if turn is None else [b.const(0, I64)]) as loop:
            outer, self.known = self.known, dict(self.known)
            if turn is not None:
                turn.old.value = loop.values[0]
                turn.new.value = b.xor(turn.old.value, 1)
            self.steps(step.cond)
            test = b.load(self.pointer(step.test), "i8", 1)
            loop.test(b.icmp("ne", test, 0))
            self.steps(step.body)
            self.known = outer
            if turn is not None:
                loop.yield_(turn.new.value)
        if turn is not None:
            with b.if_(b.icmp("ne", loop.results[0], 0)):
                outer, self.known = self.known, dict(self.known)
                for last, other in turn.pairs:
                    self.copy(CopyStep(other, last))
                self.known = outer

    def loop(self, step: LoopStep) -> None:
        b = self.b
        if step.length == 0:
            return
        with b.loop(0, step.length) as loop:
            step.counter.value = loop.index
            if step.turn is not None:
                # After the last round the first memory of each pair is the old one.
                step.turn.old.value = b.and_(b.add(loop.index, step.length & 1), 1)
                step.turn.new.value = b.xor(step.turn.old.value, 1)
            self.inside(step.body)

    def cond(self, step: CondStep) -> None:
        b = self.b
        bits = step.index.dtype.itemsize * 8
        kind = f"i{bits}"
        index = b.load(self.pointer(step.index), kind, bits // 8)
        labels = [b.new_label("case") for _ in step.branches]
        end = b.new_label("esac")
        last = len(labels) - 1
        if step.index.dtype.kind in "ub":
            index = b.umin(index, last)
        else:
            index = b.max(b.min(index, last), 0)
        cases = " ".join(f"{kind} {k}, label %{label}" for k, label in enumerate(labels[:-1]))
        b.line(f"switch {kind} {index.ref}, label %{labels[-1]} [ {cases} ]")
        for label, branch in zip(labels, step.branches, strict=True):
            b.block(label)
            self.inside(branch)
            b.br(end)
        b.block(end)


_WRITERS: dict[type, Callable[[Emitter, Any], None]] = {
    KernelStep: Emitter.kernel,
    SpecialStep: Emitter.special,
    CopyStep: Emitter.copy,
    HostStep: Emitter.host,
    WhileStep: Emitter.while_,
    LoopStep: Emitter.loop,
    CondStep: Emitter.cond,
    UpdateStep: Emitter.update,
}
