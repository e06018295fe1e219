"""The list of passes from a closed jaxpr to a native program, and the state they work on.

`PIPELINE` is data: (name, pass) in order, each `pass(build)`. Called by `backend`. What would break
it: reordering entries against the comments beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from numjet.base.config import check_ir
from numjet.base.record import replace
from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr
from numjet.cpu.builder.builder import Module
from numjet.cpu.emit.emit import Launch, emit_launch
from numjet.cpu.fusion import fuse, special
from numjet.cpu.graph import expand, reroll
from numjet.cpu.graph.nodes import Node, Val, flatten
from numjet.cpu.kernels import libraries
from numjet.cpu.link import link
from numjet.cpu.loops.ir import Kernel
from numjet.cpu.loops.text import canonical, text as kernel_text
from numjet.cpu.loops.verify import verify
from numjet.cpu.passes.parallelize import parallelize
from numjet.cpu.passes.prefetch import prefetch
from numjet.cpu.passes.stream import may_stream, stream, streamed
from numjet.cpu.passes.tile import tile
from numjet.cpu.passes.vectorize import vectorize
from numjet.cpu.passes.whole_complex import whole_complex
from numjet.cpu.program import buffers
from numjet.cpu.program.emit import Emitter
from numjet.cpu.program.executable import HostCall
from numjet.cpu.program.steps import (
    Counter,
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


class Build:
    """What one compilation knows: the program under construction and its tables.

    `compile` is given each module of kernels as soon as it is written; without it all
    kernels stand in main's module. `idle` tells whether another thread would compile the next
    module at once.
    """

    def __init__(
        self,
        closed: ClosedJaxpr,
        donate: Sequence[int] = (),
        compile: Callable[[Module], None] | None = None,
        idle: Callable[[], bool] = lambda: False,
    ) -> None:
        self.closed = closed
        self.compile, self.idle = compile, idle
        # Kernels that are not given to `compile` yet, in two modules: that written to, the other.
        self.module, self.beside = Module(link.features()), Module(link.features())
        self.modules = 0
        self.written: dict[str, Launch] = {}  # the kernels and functions in any module, by name
        self.program = Program(donated=frozenset(donate))
        self.emitter: Emitter | None = None
        self.main: Module | None = None  # that of main, where there is one
        self.kernel_count = 0
        self._counters = 0
        self._consts: dict[Any, Val] = {}
        # shapes of the buffers -> kernels on such buffers
        self.kernels: dict[tuple, list[_Annotated]] = {}
        self.names: set[str] = set()  # theirs
        # (id, operands past the caches) -> a kernel as lowered, as annotated
        self.annotated: dict[tuple, tuple[Kernel, Kernel]] = {}
        self.lowered: dict[Any, Any] = {}  # what equal groups share -> how they are lowered
        self.specials: dict[Any, Any] = {}  # the same of special kernels
        self.epilogues: dict[Any, Any] = {}  # what is behind a product -> its function and kernel
        self.origins: dict[int, Any] = {}  # const index -> the object it came from
        self.carries: set[int] = set()  # id(Val) of what loops carry
        # id(Val) of a large carry -> the result of the next block that is its next value; and of
        # those of which a round only writes a window, always the same.
        self.turning: dict[int, int] = {}
        self.windows: set[int] = set()

    # ---- values

    def constant(self, value: Any) -> Val:
        """The value of an array (or scalar) known at compile time; equal scalars are one."""
        array = np.asarray(getattr(value, "_value", value))
        key = (array.tobytes(), array.dtype, array.shape) if array.size <= 1 else id(value)
        found = self._consts.get(key)
        if found is None:
            aval = getattr(value, "aval", None) or ShapedArray(array.shape, array.dtype)
            found = Val.of(aval)
            found.place = Place(Slot("const", found.nbytes, len(self.program.consts)))
            self.origins[len(self.program.consts)] = value
            self.program.consts.append(array)
            self._consts[key] = found
        return found

    def materialize(self, val: Val) -> Val:
        """`val` as memory: a literal becomes an entry of the const table."""
        if val.literal is None:
            return val
        found = self.constant(val.literal)
        if val.aval is not None and found.aval is not val.aval:
            part = found.view(val.shape)
            part.aval = val.aval
            return part
        return found

    def temporary(self, val: Val) -> Val:
        """`val` with a slot of its own in the arena."""
        arena(val)
        return val

    def counter(self) -> Counter:
        """A fresh loop counter."""
        self._counters += 1
        return Counter(f"i{self._counters}")

    def kernel_name(self, hint: str) -> str:
        """A fresh kernel name."""
        self.kernel_count += 1
        return f"{hint}_{self.kernel_count}"

    def started(self, steps: list[Step]) -> list[Step]:
        """`steps`, whose kernels are compiled from now on where nothing about them is open."""
        if self.compile is not None:
            ready = [s for s in steps if isinstance(s, KernelStep) and not may_stream(s)]
            annotate(self, ready)
            for step in ready:
                kernel = self.annotated[id(step.kernel), ()][1]
                if kernel.name not in self.written:
                    self.write(kernel)
            for special in steps:
                if isinstance(special, SpecialStep) and special.early:
                    assert isinstance(special.emit, Function)
                    if special.emit.name not in self.written:
                        self.write(special.emit)
        return steps

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
            self.modules += 1

    @property
    def llvm(self) -> str:
        """The IR text of main's module; "" where there is none."""
        return "" if self.main is None else self.main.text()

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

    # ---- steps

    def block(
        self, jaxpr: Jaxpr, consts: Sequence[Val], args: Sequence[Val]
    ) -> tuple[list[Step], list[Val]]:
        """Steps that compute `jaxpr` on `args`, and its results (literals, arguments or memory)."""
        graph = flatten(jaxpr, consts, args, self.constant, expand.trace)
        return fuse.fuse(self, graph), graph.outs

    def region(self, node: Node) -> list[Step]:
        """Steps of a control region."""
        return control.region(self, node)

    def host(self, node: Node) -> HostStep:
        """A call back into Python for `node`."""
        reads = [self.materialize(v) for v in node.ins]
        ins = [(v.shape, v.dtype, v.aval or ShapedArray(v.shape, v.dtype)) for v in node.ins]
        call = HostCall(node.primitive, node.params, ins, [(v.shape, v.dtype) for v in node.outs])
        index = len(self.program.consts)
        self.program.consts.append(None)
        self.program.hosts[index] = call
        return HostStep(node.primitive.name, reads, list(node.outs), index)


def _lines(module: Module) -> int:
    return sum([len(function.lines) for function in module.functions])


def unroll_loops(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` without the repeats in which steps turn out to be loops, which are better fused."""
    eqns: list[Eqn] = []
    for eqn in jaxpr.eqns:
        if eqn.primitive is reroll.repeat_p and not all(
            map(special.stays, eqn.params["jaxpr"].eqns)
        ):
            eqns += reroll.unrolled(eqn)
        else:
            eqns.append(eqn)
    return jaxpr if len(eqns) == len(jaxpr.eqns) else jaxpr.replace(eqns=eqns)


def build_steps(build: Build) -> None:
    """Flatten, fuse and lower the jaxpr to steps over values; bind arguments and results."""
    jaxpr, program = unroll_loops(build.closed.jaxpr), build.program
    for k, var in enumerate(jaxpr.invars):
        arg = Val.of(var.aval)
        arg.place = Place(Slot("input", arg.nbytes, k))
        program.args.append(arg)
    consts = [build.constant(c) for c in build.closed.consts]
    steps, outs = build.block(jaxpr, consts, program.args)
    for k, atom in enumerate(jaxpr.outvars):
        out = Val.of(atom.aval)
        out.place = Place(Slot("output", out.nbytes, k))
        out.number = k
        program.outs.append(out)
    control.deliver(steps, outs, program.outs, build)
    program.steps = steps


def place_values(build: Build) -> None:
    """Every value that a step touches and that has no place yet gets a slot in the arena."""
    for step in build.program.walk():
        for val in (*step.reads, *step.writes):
            arena(val)


def plan_buffers(build: Build) -> None:
    """Share memory in place and lay out the arena."""
    buffers.plan(build.program)


LOOP_PASSES: tuple[Callable[[Kernel], Kernel], ...] = (
    whole_complex,  # before the others: they see elements then, not parts
    tile,  # before vectorize: it needs loops that nobody annotated
    vectorize,  # before parallelize: lanes decide what a chunk costs
    parallelize,
    prefetch,  # after vectorize: vector loops announce
)
ANNOTATED_PASSES = LOOP_PASSES[2:]  # for kernels that were lowered with their vector loops


def annotate_loops(build: Build) -> None:
    """Make equal kernels one, then choose vector loops and loops for threads in each."""
    steps = [step for step in build.program.walk() if isinstance(step, KernelStep)]
    annotate(build, steps)
    for step in steps:
        step.kernel = build.annotated[id(step.kernel), streamed(step)][1]


class _Annotated:
    """A kernel as lowered and as annotated; `text` is what equal ones share, once it is needed."""

    __slots__ = ("kernel", "lowered", "text")

    def __init__(self, lowered: Kernel, kernel: Kernel) -> None:
        self.lowered, self.kernel, self.text = lowered, kernel, ""


def _equal(alike: list[_Annotated], lowered: Kernel) -> Kernel | None:
    """The annotated kernel of one that equals `lowered`, if there is one."""
    if not alike:
        return None
    text = canonical(lowered)
    for other in alike:
        other.text = other.text or canonical(other.lowered)
        if other.text == text:
            return other.kernel
    return None


def annotate(build: Build, steps: Iterable[Step]) -> None:
    """Have `build.annotated` hold the kernels of `steps`."""
    known, seen = build.kernels, build.annotated
    for step in steps:
        if isinstance(step, KernelStep):
            past = streamed(step)
            before = seen.get((id(step.kernel), past))
            if before is not None:
                continue
            lowered = step.kernel
            alike = known.setdefault((past, *[b.shape for b in lowered.buffers]), [])
            kernel = _equal(alike, lowered)
            if kernel is None:
                kernel = lowered
                passes = ANNOTATED_PASSES if kernel.notes.get("annotated") else LOOP_PASSES
                if check_ir.value:
                    verify(kernel)
                for change in passes:
                    kernel = change(kernel)
                    if check_ir.value:
                        verify(kernel)
                if past:
                    kernel = stream(kernel, past)
                if kernel.name in build.names:
                    # Changed since it was started: what was written stays, and is not called.
                    kernel = replace(kernel, name=build.kernel_name(kernel.name))
                build.names.add(kernel.name)
                alike.append(_Annotated(lowered, kernel))
            seen[id(lowered), past] = lowered, kernel


def put(module: Module, kernel: Kernel | Function) -> Launch:
    """Write the code of a kernel or of a special step's function into a module."""
    if not isinstance(kernel, Function):
        return emit_launch(module, kernel)
    kernel.write(module)
    return Launch(kernel.name)


def emit(build: Build) -> None:
    """Write the LLVM IR of main, where there is one, and of every kernel."""

    def launch(kernel: Kernel | Function) -> Launch:
        if kernel.name not in build.written:
            build.write(kernel)
        return build.written[kernel.name]

    build.emitter = Emitter(build.program, launch, lambda: build.module)
    if build.compile is None:
        build.module = build.emitter.module  # one for all, to be looked at
    build.main = build.emitter.write()
    build.flush()
    build.module = build.beside
    build.flush()


PIPELINE: tuple[tuple[str, Callable[[Build], None]], ...] = (
    ("steps", build_steps),
    ("place", place_values),  # after all steps exist: results were bound to their targets by then
    ("buffers", plan_buffers),  # after place: it needs a slot for every value
    ("loops", annotate_loops),  # kernels are equal only before they are annotated apart
    ("emit", emit),  # after buffers: addresses are constants in the code
)


def run(build: Build) -> Build:
    """Run every pass; with `check_ir`, verify the program between them."""
    for _, step in PIPELINE:
        step(build)
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
        "table": build.emitter.table.facts() if build.emitter is not None else {},
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
    return (
        flops / _FLOPS_PER_SECOND + bytes_accessed / _BYTES_PER_SECOND + (1e-3 if looping else 0.0)
    )
