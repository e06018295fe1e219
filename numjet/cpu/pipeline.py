"""The list of passes from a closed jaxpr to a native program.

`PIPELINE` is data: each pass is a function of the parts of a `Build` that it names. Called by
`backend`. What would break it: reordering entries against the comments beside them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from numjet.base.record import NamedTuple
from numjet.core.dtypes import check_elements
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr
from numjet.cpu.builder.builder import Module
from numjet.cpu.emit.emit import Launch, emit_launch
from numjet.cpu.fusion import standalone
from numjet.cpu.graph import reroll
from numjet.cpu.graph.nodes import Val
from numjet.cpu.kernels import libraries
from numjet.cpu.link import link
from numjet.cpu.loops.ir import Kernel
from numjet.cpu.loops.text import text as kernel_text
from numjet.cpu.lower.groups import Compilation
from numjet.cpu.passes.annotate import Annotated, annotate
from numjet.cpu.passes.stream import may_stream
from numjet.cpu.program import buffers
from numjet.cpu.program.emit import Emitter
from numjet.cpu.program.steps import (
    Function,
    HostStep,
    KernelStep,
    LoopStep,
    Place,
    Program,
    Slot,
    SpecialStep,
    Step,
    arena,
)
from numjet.cpu.regions import control

# A module costs LLVM 2-3 ms beside its lines, so kernels are compiled together, so many lines at
# once, unless a core has nothing to do meanwhile.
MODULE_LINES = 400
# From so many on there are two modules, so that two cores compile what is left at the end.
SHARED_LINES = 100


class Modules:
    """The modules that a program's kernels are written to.

    `compile` is given each as soon as it is written; without it all kernels stand in main's module.
    `idle` tells whether another thread would compile the next one at once.
    """

    def __init__(
        self, compile: Callable[[Module], None] | None, idle: Callable[[], bool]
    ) -> None:
        self.compile, self.idle = compile, idle
        # Kernels that are not given to `compile` yet, in two modules: that written to, the other.
        self.module, self.beside = Module(link.features()), Module(link.features())
        self.written: dict[str, Launch] = {}  # the kernels and functions in any module, by name
        self.main: Module | None = None  # that of main, where there is one
        self.table: dict[str, Any] = {}  # what the runtime walks instead of main, or beside it

    def launch(self, kernel: Kernel | Function) -> Launch:
        """How a kernel is called, whose code is written and compiled unless it was before."""
        if kernel.name not in self.written:
            self.write(kernel)
        return self.written[kernel.name]

    def write(self, kernel: Kernel | Function) -> None:
        """Write a kernel's code and have it compiled, with others or alone."""
        lines = _lines(self.module)
        if self.compile is not None and lines >= SHARED_LINES and _lines(self.beside) < lines:
            self.module, self.beside = self.beside, self.module
        self.written[kernel.name] = put(self.module, kernel)
        lines = _lines(self.module)
        if lines >= MODULE_LINES or (self.idle() and not libraries.busy()):
            self.flush()

    def flush(self) -> None:
        """Have the kernels of the module that is written to compiled."""
        if self.compile is not None and self.module.functions:
            self.compile(self.module)
            self.module = Module(link.features())

    def finish(self) -> None:
        """Have both modules compiled."""
        self.flush()
        self.module = self.beside
        self.flush()


def _lines(module: Module) -> int:
    return sum([len(function.lines) for function in module.functions])


def put(module: Module, kernel: Kernel | Function) -> Launch:
    """Write the code of a kernel or of a special step's function into a module."""
    if not isinstance(kernel, Function):
        return emit_launch(module, kernel)
    kernel.write(module)
    return Launch(kernel.name)


class Build:
    """The parts of one compilation, which passes name and `backend` reads when they are through."""

    def __init__(
        self,
        closed: ClosedJaxpr,
        donate: Sequence[int] = (),
        compile: Callable[[Module], None] | None = None,
        idle: Callable[[], bool] = lambda: False,
    ) -> None:
        self.closed = closed
        self.program = Program(donated=frozenset(donate))
        self.modules = Modules(compile, idle)
        self.compilation = Compilation(self.program, control.region, self.started)
        self.annotated = Annotated(self.compilation.kernel_name)

    def started(self, steps: list[Step]) -> list[Step]:
        """`steps`, of which EARLY is done from now on."""
        if self.modules.compile is not None:
            for step in EARLY:
                step.run(steps, *[getattr(self, part) for part in step.parts])
        return steps

    @property
    def llvm(self) -> str:
        """The IR text of main's module; "" where there is none."""
        return "" if self.modules.main is None else self.modules.main.text()

    def kernel_texts(self) -> list[str]:
        """Each kernel as loops; special kernels and calls of Python by name."""
        texts = []
        for step in self.program.walk():
            if isinstance(step, KernelStep):
                texts.append(kernel_text(step.kernel))
            elif isinstance(step, SpecialStep | HostStep):
                texts.append(repr(step))
                if isinstance(step, SpecialStep) and step.behind is not None:
                    texts.append(kernel_text(step.behind))
        return texts


def unroll_loops(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` without the repeats in which steps turn out to be loops, which are better fused."""
    eqns: list[Eqn] = []
    for eqn in jaxpr.eqns:
        if eqn.primitive is reroll.repeat_p and not all(
            map(standalone.stays, eqn.params["jaxpr"].eqns)
        ):
            eqns += reroll.unrolled(eqn)
        else:
            eqns.append(eqn)
    return jaxpr if len(eqns) == len(jaxpr.eqns) else jaxpr.replace(eqns=eqns)


def build_steps(closed: ClosedJaxpr, compilation: Compilation) -> None:
    """Flatten, fuse and lower the jaxpr to steps over values; bind arguments and results."""
    jaxpr, program = unroll_loops(closed.jaxpr), compilation.program
    for eqn in jaxpr.eqns:
        for var in eqn.outvars:
            check_elements(math.prod(getattr(var.aval, "shape", ())), eqn.primitive.name)
    for k, var in enumerate(jaxpr.invars):
        arg = Val.of(var.aval)
        arg.place = Place(Slot("input", arg.nbytes, k))
        program.args.append(arg)
    consts = [compilation.constant(c) for c in closed.consts]
    steps, outs = control.block(compilation, jaxpr, consts, program.args)
    for k, atom in enumerate(jaxpr.outvars):
        out = Val.of(atom.aval)
        out.place = Place(Slot("output", out.nbytes, k))
        out.number = k
        program.outs.append(out)
    control.deliver(steps, outs, program.outs, compilation)
    program.steps = steps


def place_values(program: Program) -> None:
    """Every value that a step touches and that has no place yet gets a slot in the arena."""
    for step in program.walk():
        for val in (*step.reads, *step.writes):
            arena(val)


def annotate_loops(program: Program, annotated: Annotated) -> None:
    """Make equal kernels one, with vector loops and loops for threads."""
    annotate(program.walk(), annotated)


def emit(program: Program, modules: Modules) -> None:
    """Write the code of main, where there is one, and of every kernel."""
    emitter = Emitter(program, modules.launch, lambda: modules.module)
    if modules.compile is None:
        modules.module = emitter.module  # one for all, to be looked at
    modules.main = emitter.write()
    modules.table = emitter.table.facts()
    modules.finish()


def begin(steps: Sequence[Step], annotated: Annotated, modules: Modules) -> None:
    """Annotate the kernels of `steps` about which nothing is open, write and compile their code."""
    for kernel in [
        annotated.kernel(step)
        for step in steps if isinstance(step, KernelStep) and not may_stream(step)
    ]:  # fmt: skip
        modules.launch(kernel)
    for step in steps:
        if isinstance(step, SpecialStep) and step.early:
            assert isinstance(step.emit, Function)
            modules.launch(step.emit)


class Pass(NamedTuple):
    """`run` is given these parts of the `Build`, and changes no other."""

    name: str
    run: Callable[..., None]
    parts: tuple[str, ...]


PIPELINE: tuple[Pass, ...] = (
    Pass("steps", build_steps, ("closed", "compilation")),  # EARLY runs meanwhile
    # After all steps exist: results were bound to their targets by then.
    Pass("place", place_values, ("program",)),
    Pass("buffers", buffers.plan, ("program",)),  # after place: it needs a slot for every value
    # Kernels are equal only before they are annotated apart.
    Pass("loops", annotate_loops, ("program", "annotated")),
    Pass("emit", emit, ("program", "modules")),  # after buffers: addresses are constants in code
)
# Parts of "loops" and "emit" that are done to steps as soon as they were made, while "steps" goes
# on: other threads, and LLVM, compile their kernels meanwhile. It may see no place of a value:
# what depends on one (`may_stream`) waits.
EARLY: tuple[Pass, ...] = (Pass("begin", begin, ("annotated", "modules")),)


def run(build: Build) -> Build:
    """Run every pass."""
    for step in PIPELINE:
        step.run(*[getattr(build, part) for part in step.parts])
    return build


def facts(build: Build) -> dict[str, Any]:
    """What the executable reports: sizes, costs, counts."""
    program = build.program
    steps = list(program.walk())
    flops, bytes_accessed = _costs(program.steps)
    kernels = sum(1 for s in steps if isinstance(s, KernelStep | SpecialStep))
    return {
        "arena_bytes": program.arena_bytes,
        "guards": program.guards,
        "temporaries": program.temporaries,
        "num_kernels": kernels,
        "host_calls": [s.name for s in steps if isinstance(s, HostStep)],
        "flops": flops,
        "bytes": bytes_accessed,
        "argument_bytes": sum(v.nbytes for v in program.args),
        "output_bytes": sum(v.nbytes for v in program.outs),
        "alias_bytes": sum(program.outs[k].nbytes for k in program.aliases),
        "seconds": _seconds(program, flops, bytes_accessed),
        "table": build.modules.table,
    }


def _costs(steps: Sequence[Step]) -> tuple[int, int]:
    """Operations and bytes of one run of `steps`; of loops of unknown length, one round."""
    flops = moved = 0
    for step in steps:
        flops += getattr(step, "flops", 0)
        moved += sum([v.nbytes for v in step.reads]) + sum([v.nbytes for v in step.writes])
        rounds = step.length if isinstance(step, LoopStep) else 1
        for block in step.blocks():
            inside = _costs(block)
            flops += rounds * inside[0]
            moved += rounds * inside[1]
    return flops, moved


# A rough machine: what decides whether a call should let other Python threads run.
_FLOPS_PER_SECOND, _BYTES_PER_SECOND = 2e10, 2e10


def _seconds(program: Program, flops: float, bytes_accessed: float) -> float:
    looping = any(
        step.blocks() or (isinstance(step, KernelStep) and step.kernel.notes.get("looping"))
        for step in program.steps
    )
    # A collective waits for other processes.
    waiting = any([getattr(call, "over_processes", False) for call in program.hosts.values()])
    unknown = 1e-3 if looping or waiting else 0.0
    return flops / _FLOPS_PER_SECOND + bytes_accessed / _BYTES_PER_SECOND + unknown
