"""Long runs of steps as data: a table of (function, places) that one small loop walks.

A straight line of calls costs LLVM some 20 us an instruction line, a table next to nothing; a call
through it costs a few nanoseconds at run time. For: `program_emit`. What would break it: a
special step that writes code which depends on anything but its pointers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.cpu.buffers import same_place
from numjet.cpu.builder import Builder, Module
from numjet.cpu.program import Function, KernelStep, SpecialStep, Step, UpdateStep, place_of

# Shorter runs are written as calls.
SHORTEST_RUN = 12
_KINDS = {"arena": 0, "input": 8, "output": 16, "const": 24}

_PLACES = """
define internal void @numjet_places(
  ptr %tables, ptr %kinds, ptr %offsets, ptr %places, i64 %n
) nounwind noinline optnone {
entry:
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %next ]
  %at = shl i64 %k, 3
  %a = getelementptr i8, ptr %kinds, i64 %at
  %kind = load i32, ptr %a, align 4
  %b = getelementptr i8, ptr %a, i64 4
  %index = load i32, ptr %b, align 4
  %c = getelementptr i8, ptr %tables, i32 %kind
  %table = load ptr, ptr %c, align 8
  %d = getelementptr i8, ptr %table, i32 %index
  %base = load ptr, ptr %d, align 8
  %e = getelementptr i8, ptr %offsets, i64 %at
  %offset = load i64, ptr %e, align 8
  %place = getelementptr i8, ptr %base, i64 %offset
  %f = getelementptr i8, ptr %places, i64 %at
  store ptr %place, ptr %f, align 8
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %n
  br i1 %more, label %next, label %done
done:
  ret void
}
"""

# The first is run once a call, and compiled in a fifth of the time without optimization.
# A word for the function, one for how many operands, one each.
_STEPS = """
define internal void @numjet_steps(ptr %places, ptr %words, i64 %n) nounwind {{
entry:
  %operands = alloca [{most} x ptr], align 64
  %end = getelementptr i8, ptr %words, i64 %n
  br label %step
step:
  %at = phi ptr [ %words, %entry ], [ %after, %call ]
  %number = load i32, ptr %at, align 4
  %a = getelementptr i8, ptr %at, i64 4
  %count = load i32, ptr %a, align 4
  %first = getelementptr i8, ptr %at, i64 8
  %bytes = shl i32 %count, 2
  %after = getelementptr i8, ptr %first, i32 %bytes
  br label %operand
operand:
  %from = phi ptr [ %first, %step ], [ %from1, %operand ]
  %to = phi ptr [ %operands, %step ], [ %to1, %operand ]
  %place = load i32, ptr %from, align 4
  %b = getelementptr ptr, ptr %places, i32 %place
  %value = load ptr, ptr %b, align 8
  store ptr %value, ptr %to, align 8
  %from1 = getelementptr i8, ptr %from, i64 4
  %to1 = getelementptr i8, ptr %to, i64 8
  %more = icmp ult ptr %from1, %after
  br i1 %more, label %operand, label %call
call:
  %c = getelementptr ptr, ptr @numjet_functions, i32 %number
  %function = load ptr, ptr %c, align 8
  call void %function(ptr %operands)
  %on = icmp ult ptr %after, %end
  br i1 %on, label %step, label %done
done:
  ret void
}}
"""


class StepTable:
    """The runs of a program: `choose` marks the steps, `run` writes one, `finish` the rest."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.chosen: set[int] = set()  # id(step)
        self.places: dict[tuple[int, int, int], int] = {}
        self.functions: dict[str, int] = {}
        self.most = 0
        self._bodies: dict[tuple[str, ...], str] = {}  # code of a special step -> its function
        self._emitted: dict[int, str] = {}  # id of a step's `emit` -> the same

    def choose(self, steps: Sequence[Step]) -> None:
        """Mark the steps of long runs, in inner blocks too."""
        run: list[Step] = []
        for step in steps:
            if _tabular(step):
                run.append(step)
                continue
            self._take(run)
            run = []
            for block in step.blocks():
                self.choose(block)
        self._take(run)

    def _take(self, run: list[Step]) -> None:
        if len(run) >= SHORTEST_RUN:
            self.chosen.update([id(step) for step in run])

    def run(self, b: Any, steps: Sequence[Step], emit_kernel: Any) -> None:
        """The call that runs `steps`."""
        words: list[int] = []
        for step in steps:
            if isinstance(step, KernelStep):
                name, vals = emit_kernel(self.module, step.kernel), step.operands
            else:
                name, vals = self._special(step, emit_kernel), [*step.reads, *step.writes]
            words.append(self.functions.setdefault(name, len(self.functions)))
            words.append(len(vals))
            words += [self._place(v) for v in vals]
            self.most = max(self.most, len(vals))
        stream = self._words(words, "i32")
        b.line(f"call void @numjet_steps(ptr %places, ptr {stream}, i64 {4 * len(words)})")

    def _words(self, words: Sequence[int], kind: str) -> str:
        inside = ", ".join([f"{kind} {word}" for word in words])
        return self.module.constant(f"[{len(words)} x {kind}] [{inside}]").ref

    def _place(self, val: Any) -> int:
        place = place_of(val)
        slot = place.slot.owner()
        if slot.kind == "arena":
            key = (0, 0, slot.offset + place.offset)
        else:
            key = (_KINDS[slot.kind], slot.index * 8, slot.offset + place.offset)
        return self.places.setdefault(key, len(self.places))

    def _special(self, step: Any, emit_kernel: Any) -> str:
        """The function that runs a special step on a table of pointers; equal ones are one."""
        if isinstance(step.emit, Function):
            return emit_kernel(self.module, step.emit)
        known = self._emitted.get(id(step.emit))
        if known is not None:
            return known
        name = f"special_{len(self._bodies)}"
        before = len(self.module.functions)
        b = Builder(self.module, name, [("operands", "ptr")])
        reads, writes = len(step.reads), len(step.writes)
        pointers = [
            b.load(b.gep(b.args[0], 8 * k) if k else b.args[0], "ptr", 8)
            for k in range(reads + writes)
        ]
        step.emit(b, pointers[:reads], pointers[reads:])
        b.ret()
        code = (*b._allocas, "", *b.lines)
        found = self._bodies.setdefault(code, name)
        if found != name:
            del self.module.functions[before]
        self._emitted[id(step.emit)] = found  # the program keeps its steps meanwhile
        return found

    def finish(self, b: Any) -> None:
        """Write the tables, and at the entry of main (`b`) the code that finds all places."""
        if not self.functions:
            return
        n = len(self.places)
        names = ", ".join([f"ptr @{name}" for name in self.functions])
        self.module.raw += [
            f"@numjet_functions = private constant [{len(self.functions)} x ptr] [{names}]",
            _PLACES,
            _STEPS.format(most=self.most),
        ]
        kinds = self._words([word for place in self.places for word in place[:2]], "i32")
        offsets = self._words([offset for _, _, offset in self.places], "i64")
        lines = [
            f"%places = alloca [{n} x ptr], align 64",
            "%tables = alloca [4 x ptr], align 64",
            "%arenas = alloca ptr, align 8",
            "store ptr %arena, ptr %arenas, align 8",
            "store ptr %arenas, ptr %tables, align 8",
        ]
        for k, table in enumerate(("inputs", "outputs", "consts"), 1):
            lines.append(f"%tables{k} = getelementptr i8, ptr %tables, i64 {8 * k}")
            lines.append(f"store ptr %{table}, ptr %tables{k}, align 8")
        lines.append(
            f"call void @numjet_places(ptr %tables, ptr {kinds}, ptr {offsets}, ptr %places, "
            f"i64 {n})"
        )
        b._allocas += [f"  {line}" for line in lines]


def _tabular(step: Step) -> bool:
    if isinstance(step, UpdateStep):
        if not same_place(step.source, step.target):
            return False
    elif not isinstance(step, KernelStep | SpecialStep):
        return False
    vals = [*step.operands] if isinstance(step, KernelStep) else [*step.reads, *step.writes]
    return bool(vals) and not any(place_of(v).terms for v in vals)
