"""Control regions: while, scan and cond as native control flow around blocks of steps.

`region(build, node)` gives the steps of one region node; `fuse` calls it. Bodies are compiled like
programs of their own whose operands are the memory of the enclosing one: constants are read where
they lie, carries are updated in place where nothing reads the old value later, slices of scanned
arrays are views that move with the loop counter. No iteration returns to Python. What would break
it: operand orders other than those the region primitives state in `ops`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from numjet.base.record import NamedTuple, replace
from numjet.core.jaxpr import ClosedJaxpr, Jaxpr, unclosed
from numjet.cpu.fusion import chains
from numjet.cpu.fusion.fuse import fuse
from numjet.cpu.graph import expand
from numjet.cpu.graph.nodes import Node, Val, flatten
from numjet.cpu.loops.ir import Buffer
from numjet.cpu.lower.groups import Compilation
from numjet.cpu.passes.rolling import rolled
from numjet.cpu.program.steps import (
    Apart,
    CondStep,
    CopyStep,
    KernelStep,
    LoopStep,
    Step,
    Turn,
    WhileStep,
    walk,
)
from numjet.cpu.regions import chain, element, lanes, scalar, small

# Smaller carries are copied; long bodies around them stay tables of fixed addresses.
TURNING_BYTES = 1 << 14
# A repeat that needs another memory for its carries takes it up to so many bytes.
LARGE_CARRIES = 1 << 22


def region(build: Compilation, node: Node) -> list[Step]:
    """The steps of a region node; its results' memory is the values `node.outs`."""
    rule = _REGIONS.get(node.rule.name)
    if rule is None:
        raise NotImplementedError(
            f"{node.primitive.name}: the native compiler has no control region named "
            f"{node.rule.name!r}. Give the primitive an Expand or Host lowering."
        )
    if rule not in (_repeat, _chain):  # a repeat's kernels are those of the program without a loop
        for way in WAYS:
            steps = way.lower(build, node)
            if steps is not None:
                return steps
    return rule(build, node)


class Way(NamedTuple):
    """How a region may become one kernel: `lower` gives None where it cannot."""

    lower: Callable[[Compilation, Node], list[Step] | None]
    why: str  # it is tried here


# In this order; what none takes is control flow around steps.
WAYS = (
    Way(scalar.lower, "takes regions of single elements alone: locals are cheaper than any array"),
    Way(element.lower, "changes a few elements of carried arrays in place, where others copy"),
    Way(lanes.lower_several, "examples of several elements: these lie in registers of their own, "
        "where `small` would shuffle lanes (half the time for 32 to 128 Lorenz attractors)"),
    Way(small.lower, "arrays of a few registers: a round calls nothing and stores nothing"),
    Way(lanes.lower, "independent examples that are too large for that, or have one element each"),
)


def _body(
    build: Compilation, jaxpr: ClosedJaxpr | Jaxpr, args: Sequence[Val], turns: _Turns | None = None
) -> tuple[list[Step], list[Val]]:
    """Steps and results of a jaxpr run on `args`; those of a loop's body begin with the carries."""
    inner, consts = unclosed(jaxpr)
    held = [build.constant(c) for c in consts]
    return block(build, inner, held, args, {} if turns is None else turns.positions())


def block(
    build: Compilation,
    jaxpr: Jaxpr,
    consts: Sequence[Val],
    args: Sequence[Val],
    turning: Mapping[Val, int] = MappingProxyType({}),
) -> tuple[list[Step], list[Val]]:
    """Steps that compute `jaxpr` on `args`, and its results (literals, arguments or memory).

    turning: as of `fuse`.
    """
    given = {val: _outside(build, val) for val in args}
    graph = flatten(jaxpr, consts, [given[v] for v in args], build.constant, expand.trace)
    return fuse(build, graph, turning), graph.outs


def _outside(build: Compilation, val: Val) -> Val:
    """A value of the enclosing block as a body has it: what it was made from need not be in memory
    there, or not any more, so that its node is not shown where that reads more than literals."""
    node = val.node
    if node is None or val in build.carries or all([v.literal is not None for v in node.ins]):
        return val
    whole = val.view(val.shape)
    whole.aval = val.aval
    return whole


class _Turns:
    """The carries of a loop that are large: in each round they may be read from one memory and
    written to another, where writing in place would need a copy."""

    def __init__(self, build: Compilation, carries: Sequence[Val]) -> None:
        self.build, self.carries = build, list(carries)
        self.turn = Turn(build.counter(), build.counter())
        self.old: list[Val] = []  # the carries as the body reads them
        self.windows: set[Val] = set()
        for carry in carries:
            old = carry
            if carry.nbytes >= TURNING_BYTES:
                old = carry.view(carry.shape)
                old.aval = carry.aval
            self.old.append(old)

    def positions(self) -> dict[Val, int]:
        """Which of the body's results are next values of carries that may turn."""
        pairs = enumerate(zip(self.carries, self.old, strict=True))
        return {old: k for k, (carry, old) in pairs if old is not carry}

    def find_windows(self, build: Compilation) -> None:
        """Remember the carries of which rounds write only a window that never moves."""
        pairs = zip(self.carries, self.old, strict=True)
        self.windows = {carry for carry, old in pairs if old in build.windows}

    def take(self, goal: Val, memory: Val) -> bool:
        """Let `memory`, the next value of a carry, lie beside it; whether that may be."""
        for carry, old in zip(self.carries, self.old, strict=True):
            if carry is goal and old is not carry:
                break
        else:
            return False
        other = self.build.temporary(Val(carry.shape, carry.dtype))
        self.turn.pairs.append((carry, other))
        apart = Apart(carry, other)
        old.terms = ((self.turn.old, apart),)
        following = carry.view(carry.shape)
        following.terms = ((self.turn.new, apart),)
        memory.base = following
        return True

    def start(self, steps: list[Step], odd: bool) -> Turn | None:
        """Put the first values, which `steps` copy, where the first round reads them."""
        if not self.turn.pairs:
            return None
        pairs = {_memory(carry): other for carry, other in self.turn.pairs}
        for step in list(steps):
            assert isinstance(step, CopyStep)
            other = pairs.get(_memory(step.target))
            if other is None:
                continue
            if step.target in self.windows:
                # Rounds write a window each: what lies around it is the same in both.
                steps.insert(0, CopyStep(step.source, other))
            elif odd:
                step.target = other
        return self.turn


def _memory(val: Val) -> Val:
    return val.root()[0]


def deliver(
    steps: list[Step],
    outs: Sequence[Val],
    targets: Sequence[Val],
    build: Compilation,
    old: Sequence[Val] = (),
    turns: _Turns | None = None,
) -> list[Val]:
    """Make `outs`, computed by `steps`, end in the memory of `targets`.

    A result is written there directly where that is safe; else a copy is appended. `old` are the
    targets that hold values which `steps` may still read (loop carries); `turns` takes those that
    are better written beside the old ones. Returns the values that became part of a target.
    """
    carried = {_memory(v) for v in old}
    early = []
    pairs = []
    for out, target in zip(outs, targets, strict=True):
        if _memory(out) in carried and _memory(target) not in carried:
            # A carry's old value is wanted elsewhere: saved before anything overwrites it.
            early.append(CopyStep(out, target))
        else:
            pairs.append((out, target))
    steps[:0] = early
    outs, targets = [out for out, _ in pairs], [target for _, target in pairs]
    position, last_read = _uses(steps)
    end = len(steps)
    for out, target in zip(outs, targets, strict=True):
        memory = _memory(out)
        if memory in carried and memory is not _memory(target):
            last_read[memory] = end
    copies: list[tuple[Val, Val]] = []
    joined: list[Val] = []
    places = [_memory(out) for out, _ in pairs]
    for out, target in zip(outs, targets, strict=True):
        if out.literal is not None:
            out = build.constant(out.literal)
        memory, start, terms = out.root()
        goal = _memory(target)
        if memory is goal and out.nbytes == target.nbytes and goal in carried:
            continue
        at = read = -1
        fresh = free = (
            memory in position
            and memory.place is None
            and memory not in carried
            and not start
            and not terms
            and memory.nbytes == target.nbytes
        )
        if free and goal in carried:
            at, read = position[memory], last_read.get(goal, -1)
            inplace = steps[at].inplace
            free = read < at or (
                read == at and any(_memory(w) is memory and _memory(r) is goal for w, r in inplace)
            )
        once = fresh and places.count(memory) == 1
        if once and not free and goal in carried and read == at:
            free = _rolled(steps[at], memory, goal, build)
        if free:
            memory.base = target
            joined.append(memory)
        elif not (once and turns is not None and turns.take(target, memory)):
            copies.append((out, target))
    steps += _copy_all(copies, carried, build)
    return joined


def _rolled(step: Step, memory: Val, goal: Val, build: Compilation) -> bool:
    """Let a kernel write what is in `memory` over a carry's old value, `goal`, row by row, if its
    rows need few of the old ones; whether it does."""
    if type(step) is not KernelStep:
        return False
    pairs = list(zip(step.kernel.buffers, step.operands, strict=True))
    outs = [(b, v) for b, v in pairs if _memory(v) is memory]
    olds = [(b, v) for b, v in pairs if _memory(v) is goal]
    if len(outs) != 1 or len(olds) != 1 or olds[0][1].root()[1:] != (0, ()):
        return False
    works: list[Val] = []

    def work(dtype: np.dtype, shape: tuple[int, ...]) -> Buffer:
        works.append(build.temporary(Val(shape, dtype)))
        return Buffer(f"rows{len(works)}", dtype, shape, "work")

    kernel = rolled(step.kernel, outs[0][0], olds[0][0], work)
    if kernel is None:
        return False
    step.kernel = replace(kernel, name=build.kernel_name("rows"))
    step.operands = [*step.operands, *works]
    step.writes = [*step.writes, *works]
    step.inplace = [*step.inplace, (outs[0][1], olds[0][1])]
    return True


def _uses(steps: Sequence[Step]) -> tuple[dict[Val, int], dict[Val, int]]:
    """For each memory the position of the step that writes it first, and of the last to read it."""
    position: dict[Val, int] = {}
    last_read: dict[Val, int] = {}
    for k, step in enumerate(steps):
        for part in walk([step]):
            for val in part.reads:
                last_read[_memory(val)] = k
            if isinstance(part, WhileStep):
                last_read[_memory(part.test)] = k
            for val in part.writes:
                position.setdefault(_memory(val), k)
    return position, last_read


def _copy_all(copies: list[tuple[Val, Val]], carried: set[Val], build: Compilation) -> list[Step]:
    """Copies (source, target) as if all at once: carries that one overwrites and another reads go
    through temporaries."""
    sources = {_memory(source) for source, _ in copies}
    clash = any(_memory(target) in sources for _, target in copies)
    steps: list[Step] = []
    staged = []
    for source, target in copies:
        if clash and _memory(source) in carried:
            held = build.temporary(Val(source.shape, source.dtype))
            steps.append(CopyStep(source, held))
            source = held
        staged.append((source, target))
    return steps + [CopyStep(source, target) for source, target in staged]


def _start(build: Compilation, inits: Sequence[Val], carries: Sequence[Val]) -> list[Step]:
    """Copies of the first values into the carries (dropped where the memory is shared)."""
    return [
        CopyStep(build.materialize(init), carry) for init, carry in zip(inits, carries, strict=True)
    ]


def _while(build: Compilation, node: Node) -> list[Step]:
    params, ins, carries = node.params, node.ins, node.outs
    n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
    cond_consts, body_consts = ins[:n_cond], ins[n_cond : n_cond + n_body]
    steps = _start(build, ins[n_cond + n_body :], carries)
    turns = _Turns(build, carries)
    cond, (test,) = _body(build, params["cond_jaxpr"], [*cond_consts, *turns.old])
    if test.literal is not None:
        test = build.constant(test.literal)
    build.carries.update([v for v in turns.old])
    body, outs = _body(build, params["body_jaxpr"], [*body_consts, *turns.old], turns)
    turns.find_windows(build)
    deliver(body, outs, carries, build, old=carries, turns=turns)
    steps.append(WhileStep(cond, test, body, turns.start(steps, odd=False)))
    return steps


def _cond(build: Compilation, node: Node) -> list[Step]:
    index, *operands = node.ins
    branches = []
    if index.literal is not None:
        chosen = min(max(int(index.literal), 0), len(node.params["branches"]) - 1)
        steps, outs = _body(build, node.params["branches"][chosen], operands)
        deliver(steps, outs, node.outs, build)
        return steps
    for jaxpr in node.params["branches"]:
        steps, outs = _body(build, jaxpr, operands)
        deliver(steps, outs, node.outs, build)
        branches.append(steps)
    # Once for all pairs: a branch may have thousands of steps, and hundreds of results.
    used = [(steps, _uses(steps)) for steps in branches]
    pairs = [
        (out, val)
        for out in node.outs
        for val in operands
        if val.literal is None
        and val.nbytes
        and (val.shape, val.dtype) == (out.shape, out.dtype)
        and all(_over(steps, uses, out, val) for steps, uses in used)
    ]
    return [CondStep(index, branches, pairs)]


def _over(
    steps: Sequence[Step], uses: tuple[dict[Val, int], dict[Val, int]], out: Val, val: Val
) -> bool:
    """Whether `steps` may write `out` over `val`: they read it before, or element by element.

    uses: what `_uses` says of the steps.
    """
    target, source = _memory(out), _memory(val)
    first, last = uses[0].get(target, -1), uses[1].get(source, -1)
    if first < 0 or last > first:
        return False
    pairs = steps[first].inplace
    return last < first or any(_memory(w) is target and _memory(r) is source for w, r in pairs)


def _scan(build: Compilation, node: Node) -> list[Step]:
    params, ins = node.params, node.ins
    length, reverse = params["length"], params["reverse"]
    n_consts, n_carry = params["num_consts"], params["num_carry"]
    consts, inits = ins[:n_consts], ins[n_consts : n_consts + n_carry]
    carries, stacked = node.outs[:n_carry], node.outs[n_carry:]
    counter = build.counter()

    def row(whole: Val) -> Val:
        part = whole.view(whole.shape[1:])
        stride = part.nbytes
        part.start = (length - 1) * stride if reverse else 0
        part.terms = ((counter, -stride if reverse else stride),)
        return part

    steps = _start(build, inits, carries)
    if length == 0:
        return steps
    rows = [row(build.materialize(x)) for x in ins[n_consts + n_carry :]]
    turns = _Turns(build, carries)
    build.carries.update([v for v in turns.old])
    body, outs = _body(build, params["jaxpr"], [*consts, *turns.old, *rows], turns)
    turns.find_windows(build)
    deliver(body, outs, [*carries, *[row(y) for y in stacked]], build, old=carries, turns=turns)
    steps.append(LoopStep(length, counter, body, turns.start(steps, odd=length % 2 == 1)))
    return steps


def _repeat(build: Compilation, node: Node) -> list[Step]:
    params, carries, length = node.params, node.outs, node.params["length"]
    consts, inits = node.ins[: params["num_consts"]], node.ins[params["num_consts"] :]
    build.carries.update([v for v in carries])

    def rounds(n: int, args: Sequence[Val]) -> tuple[list[Step], Sequence[Val]]:
        steps: list[Step] = []
        for _ in range(n):
            more, args = _body(build, params["jaxpr"], [*consts, *args])
            steps += more
        return steps, args

    one, results = rounds(1, carries)
    body = list(one)
    joined = deliver(body, results, carries, build, old=carries)
    first: list[Step] = []
    if any([isinstance(step, CopyStep) for step in body]):
        # What a round writes cannot lie where it reads.
        if sum([v.nbytes for v in carries]) > LARGE_CARRIES:
            # All rounds one by one need no memory beside: each value lives as long as it is read.
            body, outs = rounds(length, inits)
            deliver(body, outs, carries, build)
            return body
        for val in joined:
            val.base = None
        two, outs = rounds(1, results)
        body = [*one, *two]
        deliver(body, outs, carries, build, old=carries)
        if length % 2:
            first, outs = rounds(1, inits)
            inits = list(outs)
        length //= 2
    return [*first, *_start(build, inits, carries), LoopStep(length, build.counter(), body)]


def _chain(build: Compilation, node: Node) -> list[Step]:
    steps = chain.lower(build, node)
    return fuse(build, chains.separate(node), join=False) if steps is None else steps


_REGIONS: dict[str, Callable[[Compilation, Node], list[Step]]] = {
    "while": _while,
    "cond": _cond,
    "scan": _scan,
    "repeat": _repeat,
    "chain": _chain,
}
