"""Steps as data: a table that the runtime walks (`runtime.programs`), not code that LLVM makes.

A straight line of calls costs LLVM some 20 us an instruction line and a function of its own a
third of a millisecond; a table costs next to nothing, and a call through it a few nanoseconds at
run time. A program without control flow is nothing but a table and the functions it names; of
others the long runs of steps are. For: `program.emit`. What would break it: a special step that
writes code which depends on anything but its pointers.

A step is written as 32-bit words: number and kind, how many operands, two 64-bit numbers, the
operands' places. Kinds: CALL function `number` with the operands; CHUNKS: call it so through
nj_parallel_for with extent and grain; COPY so many bytes; HOST: call constant `number`; REPEAT so
often the steps in the so many bytes that follow (the operand means nothing).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from numjet.cpu.builder.builder import Builder, Module
from numjet.cpu.emit.emit import Launch
from numjet.cpu.program.buffers import same_place
from numjet.cpu.program.steps import (
    CopyStep,
    Function,
    HostStep,
    KernelStep,
    LoopStep,
    SpecialStep,
    Step,
    UpdateStep,
    place_of,
    walk,
)
from numjet.cpu.runtime.entry import CALL, CHUNKS, COPY, HEADER, HOST, KIND_BITS, REPEAT, TABLES

# Beside control flow shorter runs are written as calls.
SHORTEST_RUN = 12


class ProgramTable:
    """`choose` marks the steps that become data, `run` writes a run of them, `facts` all of it.

    launch(kernel) writes a kernel or a special step's function; module() is where other special
    steps are written.
    """

    def __init__(self, launch: Callable[[Any], Launch], module: Callable[[], Module]) -> None:
        self.launch, self.module = launch, module
        self.whole = False  # whether the program has no steps but these
        self.chosen: set[Step] = set()
        self.places: dict[tuple[int, int, int], int] = {}
        self.functions: dict[str, int] = {}
        self.chunked = False
        self.most = 1
        self._steps: list[bytes] = []
        self._bytes = 0
        self._bodies: dict[tuple[str, ...], str] = {}  # code of a special step -> its function
        self._emitted: dict[int, str] = {}  # id of a step's `emit` -> the same

    def choose(self, steps: Sequence[Step]) -> None:
        """Mark the steps of a program: all, or those of long runs, in inner blocks too."""
        self.whole = all([_tabular(step) for step in steps])
        if self.whole:
            self.chosen.update([step for step in walk(steps)])
        else:
            self._choose(steps)

    def _choose(self, steps: Sequence[Step]) -> None:
        run: list[Step] = []
        for step in steps:
            if _tabular(step):
                run.append(step)
                continue
            self._take(run)
            run = []
            for block in step.blocks():
                self._choose(block)
        self._take(run)

    def _take(self, run: list[Step]) -> None:
        if len(run) >= SHORTEST_RUN or any([isinstance(step, LoopStep) for step in run]):
            self.chosen.update([step for step in walk(run)])

    def run(self, steps: Sequence[Step]) -> tuple[int, int]:
        """Write `steps`; where they begin, and how many bytes they take."""
        start = self._bytes
        for step in steps:
            if isinstance(step, KernelStep):
                if isinstance(step, UpdateStep):
                    self._copy(step.source, step.target)
                launch = self.launch(step.kernel)
                kind = CHUNKS if launch.grain else CALL
                self.chunked |= kind == CHUNKS
                number = self._function(launch.name)
                self._step(kind, number, step.operands, launch.extent, launch.grain)
            elif isinstance(step, SpecialStep):
                self._step(CALL, self._function(self._special(step)), [*step.reads, *step.writes])
            elif isinstance(step, CopyStep):
                self._copy(step.source, step.target)
            elif isinstance(step, HostStep):
                operands = [*step.reads, *step.writes]
                self._step(HOST, HEADER + step.index, operands, int(step.answers))
                self.most = max(self.most, len(operands) + 1)  # its status
            elif isinstance(step, LoopStep):
                self._repeat(step)
        return start, self._bytes - start

    def facts(self) -> dict[str, Any]:
        """The table as `executable` takes it: plain data."""
        places = b"".join([struct.pack("<iiq", *place) for place in self.places])
        return {
            "functions": list(self.functions),
            "places": places,
            "steps": b"".join(self._steps),
            "bytes": self._bytes if self.whole else 0,
            "most": self.most,
            "whole": self.whole,
            "chunked": self.chunked,
        }

    def _repeat(self, step: LoopStep) -> None:
        at = len(self._steps)
        _, size = self.run(step.body)
        if not size:
            return
        inside = self._steps[at:]
        del self._steps[at:]
        some = next(val for inner in walk(step.body) for val in (*inner.reads, *inner.writes))
        self._step(REPEAT, 0, [some], step.length, size)
        self._steps += inside

    def _function(self, name: str) -> int:
        return self.functions.setdefault(name, len(self.functions))

    def _copy(self, source: Any, target: Any) -> None:
        if source.nbytes and not same_place(source, target):
            self._step(COPY, 0, [target, source], source.nbytes)

    def _step(
        self, kind: int, number: int, vals: Sequence[Any], one: int = 0, two: int = 0
    ) -> None:
        n = len(vals)
        places = [self._place(val) for val in vals]
        words = struct.pack(f"<iiqq{n}i", number << KIND_BITS | kind, n, one, two, *places)
        self._steps.append(words)
        self._bytes += len(words)
        self.most = max(self.most, n)

    def _place(self, val: Any) -> int:
        place = place_of(val)
        slot = place.slot.owner()
        if slot.kind == "arena":
            key = (TABLES["arena"], 0, slot.offset + place.offset)
        else:
            first = HEADER if slot.kind == "const" else 0
            key = (TABLES[slot.kind], 8 * (first + slot.index), slot.offset + place.offset)
        return self.places.setdefault(key, len(self.places))

    def _special(self, step: Any) -> str:
        """The function that runs a special step on a table of pointers; equal ones are one."""
        if isinstance(step.emit, Function):
            return self.launch(step.emit).name
        known = self._emitted.get(id(step.emit))
        if known is not None:
            return known
        module = self.module()
        name = f"special_{len(self._bodies)}"
        before = len(module.functions)
        b = Builder(module, name, [("operands", "ptr")])
        reads, writes = len(step.reads), len(step.writes)
        pointers = [
            b.load(b.gep(b.args[0], 8 * k) if k else b.args[0], "ptr", 8)
            for k in range(reads + writes)
        ]
        step.emit(b, pointers[:reads], pointers[reads:])
        b.ret()
        code = "\n".join(b.body())
        # Tables are numbered in each module, so their contents are part of the code.
        data = [x for x, table in module._arrays.items() if f"@{table}" in code]
        found = self._bodies.setdefault((code, *data), name)
        if found != name:
            del module.functions[before]
        self._emitted[id(step.emit)] = found  # the program keeps its steps meanwhile
        return found


def _tabular(step: Step) -> bool:
    if isinstance(step, KernelStep):
        vals = [*step.operands]
        if isinstance(step, UpdateStep):
            vals += [step.source, step.target]
    elif isinstance(step, SpecialStep | CopyStep | HostStep):
        vals = [*step.reads, *step.writes]
    elif isinstance(step, LoopStep):
        return step.length > 0 and step.turn is None and all([_tabular(s) for s in step.body])
    else:
        return False
    return bool(vals) and not any([place_of(v).terms for v in vals])
