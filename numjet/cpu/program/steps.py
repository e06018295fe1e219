"""The Program: what a compiled jaxpr does, as steps over pieces of memory.

`fuse` and `control` build the steps, `buffers` gives every slot its address, `program.emit` writes
the native main function. A step works on places; control steps hold blocks of steps, and all
blocks share one set of slots. Printed by `Program.text()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from numjet.base.record import field, record
from numjet.cpu.graph.nodes import Val


class Slot:
    """A piece of memory: entry `index` of the input, output or const table, or part of the arena.

    `buffers` sets `offset`, where in the arena (or in the memory of a result) it begins; `donor` is
    the slot whose memory this one shares.
    """

    __slots__ = ("kind", "index", "nbytes", "offset", "donor")

    def __init__(self, kind: str, nbytes: int, index: int = -1) -> None:
        self.kind, self.nbytes, self.index = kind, nbytes, index
        self.offset = 0
        self.donor: Slot | None = None

    def owner(self) -> Slot:
        """The slot whose memory this is."""
        slot = self
        while slot.donor is not None:
            slot = slot.donor
        return slot

    def __repr__(self) -> str:
        slot = self.owner()
        if slot.kind == "arena":
            return f"arena+{slot.offset}"
        return f"{slot.kind}{slot.index}" + (f"+{slot.offset}" if slot.offset else "")


class Counter:
    """The trip counter of a native loop; `value` is its LLVM value while the loop is emitted."""

    __slots__ = ("name", "value")

    def __init__(self, name: str) -> None:
        self.name = name
        self.value: Any = None


@record(frozen=True, eq=False, slots=True)
class Apart:
    """A stride known when the program runs: from the memory of `here` to that of `there`."""

    here: Val
    there: Val


Terms = tuple[tuple[Counter, int | Apart], ...]


@record(frozen=True, slots=True)
class Place:
    """`offset` bytes into `slot`, plus stride * counter for each of `terms`."""

    slot: Slot
    offset: int = 0
    terms: Terms = ()

    def moved(self, offset: int, terms: Terms = ()) -> Place:
        """The place `offset` bytes further on."""
        if not offset and not terms:
            return self
        return Place(self.slot, self.offset + offset, self.terms + terms)

    def __repr__(self) -> str:
        text = repr(self.slot)
        if self.offset:
            text += f"+{self.offset}"
        for counter, stride in self.terms:
            if isinstance(stride, Apart):
                text += f" or {place_of(stride.there)!r} by {counter.name}"
                continue
            text += f"{'+' if stride >= 0 else '-'}{abs(stride)}*{counter.name}"
        return text


def place_of(val: Val) -> Place:
    """Where `val` lies (aliases resolved)."""
    root, start, terms = val.root()
    return root.place.moved(start, terms)


def arena(val: Val) -> None:
    """Give `val` a slot of its own in the arena, if it has no place yet."""
    root, _, _ = val.root()
    if root.place is None:
        root.place = Place(Slot("arena", root.nbytes))


class Step:
    """Base of the steps: `reads` and `writes` are Vals; `inplace` pairs (write, read) of one size
    for which the write may share the read's memory."""

    reads: Sequence[Val]
    writes: Sequence[Val]
    inplace: Sequence[tuple[Val, Val]]

    def blocks(self) -> Sequence[list[Step]]:
        """The blocks inside."""
        return ()


class ControlStep(Step):
    """A step that holds blocks; what they touch, they say themselves."""

    reads = ()
    writes = ()
    inplace: Sequence[tuple[Val, Val]] = ()


@record(eq=False)
class KernelStep(Step):
    """Run a loop-IR kernel; `operands` follow kernel.buffers."""

    kernel: Any
    operands: list[Val]
    reads: list[Val]
    writes: list[Val]
    inplace: list[tuple[Val, Val]] = field(default_factory=list)
    flops: int = 0

    def __repr__(self) -> str:
        args = ", ".join(f"{v!r}@{place_of(v)!r}" for v in self.operands)
        return f"kernel {self.kernel.name}({args})"


@record(eq=False)
class UpdateStep(KernelStep):
    """Copy `source` to `target` unless they share memory, then let the kernel write parts."""

    source: Any = None
    target: Any = None

    def __repr__(self) -> str:
        return (
            f"copy {self.target!r}@{place_of(self.target)!r} <- "
            f"{self.source!r}@{place_of(self.source)!r}; " + KernelStep.__repr__(self)
        )


@record(frozen=True, slots=True)
class Function:
    """Code that depends on nothing but its operands: `write(module)` adds `void NAME(ptr operands)`
    to an LLVM module; equal names mean equal code."""

    name: str
    write: Callable[[Any], None]


@record(eq=False)
class SpecialStep(Step):
    """Run a special kernel: `emit(builder, read_pointers, write_pointers)` writes the call; a
    `Function` instead is called with a table of those pointers. `early`: it takes long to compile.

    `product` says what a product is to who puts loops behind it (`fusion.epilogues`); `behind` is
    the kernel that does so, run on each block of the product that is finished."""

    name: str
    reads: list[Val]
    writes: list[Val]
    emit: Callable[..., None] | Function
    inplace: list[tuple[Val, Val]] = field(default_factory=list)
    flops: int = 0
    early: bool = False
    product: Any = None
    behind: Any = None

    def __repr__(self) -> str:
        args = ", ".join(f"{v!r}@{place_of(v)!r}" for v in self.reads)
        outs = ", ".join(f"{v!r}@{place_of(v)!r}" for v in self.writes)
        loops = f", {self.behind.name} behind it" if self.behind else ""
        return f"{outs} = special {self.name}({args}){loops}"


@record(eq=False)
class HostStep(Step):
    """Call Python back: entry `index` of the const table is the callback's address.

    A word behind the operands is 1 before the call and cleared by what succeeds: ctypes returns
    anything where an exception arrives before the callback's first line (a signal's handler). What
    `answers`, a collective of processes, returns its status instead, as it may be native.
    """

    name: str
    reads: list[Val]
    writes: list[Val]
    index: int
    answers: bool
    inplace: tuple = ()

    def __repr__(self) -> str:
        args = ", ".join(f"{v!r}@{place_of(v)!r}" for v in self.reads)
        outs = ", ".join(f"{v!r}@{place_of(v)!r}" for v in self.writes)
        return f"{outs} = host {self.name}({args})"


@record(eq=False)
class CopyStep(Step):
    """Copy bytes; dropped when both sides lie at the same place."""

    source: Val
    target: Val

    @property
    def reads(self) -> list[Val]:  # type: ignore[override]
        return [self.source]

    @property
    def writes(self) -> list[Val]:  # type: ignore[override]
        return [self.target]

    @property
    def inplace(self) -> list[tuple[Val, Val]]:  # type: ignore[override]
        return [(self.target, self.source)]

    def __repr__(self) -> str:
        return (
            f"copy {self.target!r}@{place_of(self.target)!r} <- "
            f"{self.source!r}@{place_of(self.source)!r}"
        )


@record(eq=False)
class Turn:
    """Carries that change places in each round of a loop: `pairs` of memory, the first of which
    holds the last results. `old` counts 1 where the second memory holds what is read, `new` is
    1 - old."""

    old: Counter
    new: Counter
    pairs: list[tuple[Val, Val]] = field(default_factory=list)

    def memory(self) -> list[Val]:
        """All that must live as long as the loop."""
        return [v for pair in self.pairs for v in pair]


@record(eq=False)
class WhileStep(ControlStep):
    """Run `cond`; leave unless `test` holds; run `body`; again."""

    cond: list[Step]
    test: Val
    body: list[Step]
    turn: Turn | None = None

    @property
    def reads(self) -> list[Val]:  # type: ignore[override]
        return [] if self.turn is None else self.turn.memory()

    def blocks(self) -> Sequence[list[Step]]:
        return (self.cond, self.body)


@record(eq=False)
class LoopStep(ControlStep):
    """Run `body` `length` times with `counter` = 0, 1, ..."""

    length: int
    counter: Counter
    body: list[Step]
    turn: Turn | None = None

    @property
    def reads(self) -> list[Val]:  # type: ignore[override]
        return [] if self.turn is None else self.turn.memory()

    def blocks(self) -> Sequence[list[Step]]:
        return (self.body,)


@record(eq=False)
class CondStep(ControlStep):
    """Run branch number `index` (clamped; a boolean counts as 0 or 1)."""

    index: Val
    branches: list[list[Step]]
    inplace: list[tuple[Val, Val]] = field(default_factory=list)

    @property
    def reads(self) -> list[Val]:  # type: ignore[override]
        return [self.index]

    def blocks(self) -> Sequence[list[Step]]:
        return self.branches


@record(eq=False)
class Program:
    """Steps, the values at the door, and what the tables hold."""

    args: list[Val] = field(default_factory=list)
    outs: list[Val] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    consts: list[np.ndarray | None] = field(default_factory=list)
    hosts: dict[int, Any] = field(default_factory=dict)  # const index -> Host call description
    arena_bytes: int = 0
    # Under `config.check_bounds`: pages of the arena that nobody may touch; what lies between.
    guards: list[int] = field(default_factory=list)
    temporaries: list[tuple[int, int]] = field(default_factory=list)
    donated: frozenset[int] = frozenset()  # arguments whose memory may be overwritten
    aliases: dict[int, int] = field(
        default_factory=dict
    )  # output -> the donated argument it lies in

    def walk(self) -> Iterator[Step]:
        """Every step, those in blocks too, in order."""
        yield from walk(self.steps)

    def text(self) -> str:
        """The program, a step a line."""
        lines = [
            f"program({', '.join(map(repr, self.args))}) -> ({', '.join(map(repr, self.outs))})"
            f"  arena {self.arena_bytes} bytes"
        ]
        _print(self.steps, lines, 1)
        return "\n".join(lines)


def walk(steps: Sequence[Step]) -> Iterator[Step]:
    """The steps and those of their blocks, in order."""
    for step in steps:
        yield step
        for block in step.blocks():
            yield from walk(block)


def _print(steps: Sequence[Step], lines: list[str], depth: int) -> None:
    pad = "  " * depth
    for step in steps:
        if isinstance(step, WhileStep):
            lines.append(f"{pad}while:")
            _print(step.cond, lines, depth + 1)
            lines.append(f"{pad}  test {step.test!r}@{place_of(step.test)!r}")
            lines.append(f"{pad}do:")
            _print(step.body, lines, depth + 1)
        elif isinstance(step, LoopStep):
            lines.append(f"{pad}for {step.counter.name} < {step.length}:")
            _print(step.body, lines, depth + 1)
        elif isinstance(step, CondStep):
            for k, branch in enumerate(step.branches):
                lines.append(f"{pad}case {k} of {step.index!r}@{place_of(step.index)!r}:")
                _print(branch, lines, depth + 1)
        else:
            lines.append(pad + repr(step))
