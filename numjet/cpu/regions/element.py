"""Loops that update single elements of arrays as one kernel: scalars in registers, arrays in place.

`lower(build, node)` gives the steps of a while or scan in which every array that is carried is
updated by elements or small windows (scatter, dynamic_update_slice, inner loops and branches of
such), or None. A carry lies in the memory of its result from the beginning, which starts as a copy
of the first value (none where that dies). Every read of such an array is given a name before the
next update is written: an expression may stand anywhere, a load may not. Two readers of versions
one of which is gone, carries that change places and arrays computed as a whole are left to
`control`. What would break it: a statement that stores to a memory without making a new version.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from numjet.core import lowering as low
from numjet.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, unclosed
from numjet.cpu.graph.nodes import Node, Val
from numjet.cpu.loops.index import Index, LoopVar, dynamic, linear_address
from numjet.cpu.loops.ir import Buffer, Const, For, If, IndexValue, Kernel, Stmt, While
from numjet.cpu.lower import update as lower_update
from numjet.cpu.lower.access import WEIGHTS
from numjet.cpu.lower.groups import Compilation
from numjet.cpu.program.steps import CopyStep, KernelStep, Step
from numjet.cpu.regions.element_forward import forward
from numjet.cpu.regions.element_jaxprs import (
    FEW,
    SPARSE,
    SUMS,
    Choices,
    bounds,
    carried,
    counting,
    maker_of,
    ordered,
    sparse,
    step_of,
    suits,
)
from numjet.cpu.regions.element_values import (
    Few,
    Lazy,
    Memory,
    RangeEmitter,
    Row,
    Sparse,
    Version,
    near,
    range_of,
)
from numjet.cpu.regions.loop_kernel import failed
from numjet.cpu.regions.scalar import MAX_NODES, NAMED_DEPTH, Array, NotScalar, ScalarKernel, native

# Operations that cost so much are done on more elements than these by a kernel, as vectors: each
# takes 5 ns alone, and a step of the program 18.
DEAR, DEAR_ELEMENTS = 8, 3
_REDUCTIONS = {"add": "add", "mul": "mul", "max": "max", "min": "min"}


def lower(build: Compilation, node: Node) -> list[Step] | None:
    """The steps of a loop over elements of arrays, or None."""
    if not suits(node):
        return None
    try:
        return _Kernel(build).steps(node)
    except (NotScalar, NotImplementedError):
        return None
    except Exception as error:
        failed("a loop over elements", error)
        return None


def _counts(dtype: np.dtype) -> bool:
    """Whether integers of a type are indices: those from 2**63 on are not."""
    return dtype.kind in "iu" and dtype != np.uint64


def _places(shape: Sequence[int]) -> Iterator[tuple[Index, ...]]:
    """The index of each element, in order of rows."""
    for at in np.ndindex(*shape):
        yield tuple([Index.of(i) for i in at])


# ---- the kernel


class _Carry:
    """What a loop carries from round to round: locals, or a memory."""

    __slots__ = ("after", "known", "locals", "memory", "single")

    def __init__(self, locals_: list[Any], memory: Memory | None = None, single: bool = False):
        self.locals, self.memory, self.single = locals_, memory, single
        self.known: Any = None  # the value in a round, where the range of a counter is known
        self.after: Any = None  # and behind the loop, where it needs no local


class _Reader:
    """An operand as a rule sees it."""

    __slots__ = ("dtype", "kernel", "shape", "value")

    def __init__(self, kernel: _Kernel, value: Any, val: Val) -> None:
        self.kernel, self.value, self.shape, self.dtype = kernel, value, val.shape, val.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __call__(self, *index: Any) -> Any:
        at = tuple([Index.of(i) for i in index]) if self.shape else ()
        return self.kernel.element(self.value, self.shape, at)


class _Site:
    """One element of an update, as `lower.update` asks for its place."""

    def __init__(self, kernel: _Kernel, node: Node, args: list[Any]) -> None:
        self.kernel, self.e = kernel, kernel.e
        self.domain: list[Index] = []
        self.values = {v: x for v, x in zip(node.ins, args, strict=True)}

    def element(self, val: Val, at: tuple) -> Any:
        return self.kernel.element(self.values[val], val.shape, at)


class _Kernel(ScalarKernel):
    def __init__(self, build: Compilation) -> None:
        super().__init__(build)
        self.e = RangeEmitter()
        self.body: list[Stmt] = []  # where statements go now
        self.testing = False  # a condition is written: nothing can be named
        self.memories: list[Memory] = []
        # By the list of statements that is written; it is kept, so that no other has its id.
        self.nearby: dict[tuple[int, Index], tuple[Index, list[Stmt]]] = {}
        self.works: list[tuple[Buffer, Val]] = []
        self.copies: list[Step] = []
        self.carried: list[Val] = []  # results that are read as well
        self.serial = 0
        self.rounds, self.flops, self.looping = 1, 0, False
        self.results: Sequence[Val] = ()

    # ---- values

    def value(self, val: Val, env: dict[Val, Any]) -> Any:
        found = env.get(val)
        return self.operand(val) if found is None else found

    def name(self, value: Any) -> Any:
        """`value` as it is now."""
        return self.e.read_local(self.define(value, self.body))

    def element(self, value: Any, shape: Sequence[int], at: tuple) -> Any:
        """The element of `value` at the indices `at`."""
        kind = type(value)
        if kind is Array:
            return self.e.load(value.buffer, at)
        if kind is Version:
            if not value.current:
                raise NotScalar
            buffer = value.memory.buffer
            if self.testing:
                return self.e.load(buffer, at)
            return self.name(self.e.load(buffer, tuple([self.inside(i) for i in at])))
        if kind is Row:
            return self.element(value.value, value.shape, (value.at, *at))
        if kind is Few:
            where = linear_address(at, tuple(shape))
            if not where.terms:
                return value.elements[where.const]
            position = self.e.index_value(where, np.int64)
            found = value.elements[-1]
            for k in reversed(range(len(value.elements) - 1)):
                found = self.e.select(self.e.eq(position, k), value.elements[k], found)
            return found
        if kind is Lazy:
            found = value.memo.get(at)
            if found is None:
                node = value.node
                found = node.rule.fn(self.e, list(at), *value.readers, **node.params)
                found = list(found) if isinstance(found, tuple | list) else [found]
                if not any([self.changes(r.value) for r in value.readers]):
                    value.memo[at] = found
            return found[value.position]
        if kind is Sparse:
            if value.plain is None:
                raise NotScalar
            return self.element(value.plain, shape, at)
        return value

    def inside(self, i: Index) -> Index:
        """A place that a clamp keeps inside, without what that takes where it is there already:
        a branch that is predicted takes no time, wrapping and clamping 5 cycles and more."""
        direct = near(self.e, i)
        if direct is None:
            return i
        key = id(self.body), i
        if key not in self.nearby:
            test, place = direct
            local = self.define(self.e.index_value(place, np.int64), self.body, "p")
            otherwise = self.e.assign(local, self.e.index_value(i, np.int64))
            self.body.append(If(self.e.not_(test), tuple(otherwise)))
            self.nearby[key] = dynamic(self.e.read_local(local), i.lo, i.hi), self.body
        return self.nearby[key][0]

    def changes(self, value: Any) -> bool:
        """Whether an element is not the same wherever it is read."""
        kind = type(value)
        if kind is Row:
            return self.changes(value.value)
        if kind is Sparse:
            return self.changes(value.plain)
        if kind is Lazy:
            return any([self.changes(r.value) for r in value.readers])
        return kind is Version

    def version(self, memory: Memory) -> Version:
        """The contents of `memory` from now on."""
        self.serial += 1
        memory.current = self.serial
        return Version(memory, self.serial)

    def memory(self, buffer: Buffer) -> Memory:
        made = Memory(buffer, 0)
        self.version(made)
        self.memories.append(made)
        return made

    def work(self, val: Val) -> Buffer:
        buffer = Buffer(f"work{len(self.works)}", val.dtype, val.shape, "work")
        self.works.append((buffer, self.build.temporary(Val(val.shape, val.dtype))))
        return buffer

    # ---- evaluation

    def call(self, jaxpr: ClosedJaxpr | Jaxpr, args: Sequence[Any], body: list[Stmt]) -> list[Any]:
        graph, env = self.graph(jaxpr, args)
        depth: dict[Val, int] = {}
        self.nodes += len(graph.nodes)
        self.flops += len(graph.nodes) * self.rounds
        if self.nodes > MAX_NODES:
            raise NotScalar
        outer, self.body = self.body, body
        choices = Choices(graph)
        for node in ordered(graph.nodes, choices):
            if node.effects or any([not v.size or not native(v) for v in node.outs]):
                raise NotScalar
            given = [self.value(v, env) for v in node.ins]
            if node in choices.old:
                outs = [given[2 - choices.old[node]]]  # the update, left out where it is
            elif node in choices.guards:
                test, old = choices.guards[node]
                guard = self.value(test, env)
                outs = [
                    self.update(node, given, given[0], None, self.e.not_(guard) if old else guard)
                ]
            else:
                outs = self.node(node, given)
            level = 1 + max([depth.get(v, 0) for v in node.ins], default=0)
            for val, out in zip(node.outs, outs, strict=True):
                if level >= NAMED_DEPTH and val.size == 1:
                    out = self.name(out)
                env[val] = out
                depth[val] = level % NAMED_DEPTH
        found = [self.value(v, env) for v in graph.outs]
        self.body = outer
        return found

    def node(self, node: Node, args: list[Any]) -> list[Any]:
        rule = type(node.rule)
        if rule is low.Region:
            return self.region(node, args, self.body, node.outs)
        if node.primitive.name in SPARSE and sparse(node.outs[0], maker_of):
            plain = self.pointwise(node, args)[0] if rule is low.Pointwise else None
            return [Sparse([(node, args)], plain)]
        if lower_update.writes_parts(node):
            return [self.update(node, args, args[0])]
        if node.primitive.name in SUMS and Sparse in map(type, args):
            if Version in map(type, args) or all([type(x) is Sparse for x in args]):
                return [self.sum(args)]
        if rule is low.Pointwise:
            return self.pointwise(node, args)
        if rule is low.Reduce:
            return [self.reduce(node, args[0])]
        raise NotScalar

    def pointwise(self, node: Node, args: list[Any]) -> list[Any]:
        readers = [_Reader(self, x, v) for x, v in zip(args, node.ins, strict=True)]
        shape, size = node.outs[0].shape, node.outs[0].size
        if size > FEW:
            memo: dict = {}
            return [Lazy(node, readers, k, memo) for k in range(len(node.outs))]
        if size > DEAR_ELEMENTS and WEIGHTS.get(node.primitive.name, 1) >= DEAR:
            raise NotScalar
        found = []
        for at in _places(shape):
            one = node.rule.fn(self.e, list(at), *readers, **node.params)
            found.append(list(one) if isinstance(one, tuple | list) else [one])
        if size == 1:
            return found[0]
        return [Few([one[k] for one in found]) for k in range(len(node.outs))]

    def reduce(self, node: Node, value: Any) -> Any:
        val, out, op = node.ins[0], node.outs[0], node.rule.op
        if val.size == 1 and not op.startswith("arg"):
            return value
        if val.size > FEW or op not in _REDUCTIONS or val.dtype != out.dtype:
            raise NotScalar
        if val.dtype.itemsize < 4 and val.dtype.kind in "fV":
            raise NotScalar  # added up in more digits than the elements have
        axes = set(node.params["axes"])
        sums: dict[tuple, Any] = {}
        combine = getattr(self.e, _REDUCTIONS[op])
        for at in np.ndindex(*val.shape):
            place = tuple([i for a, i in enumerate(at) if a not in axes])
            one = self.element(value, val.shape, tuple([Index.of(i) for i in at]))
            sums[place] = combine(sums[place], one) if place in sums else one
        return Few(list(sums.values())) if out.size > 1 else next(iter(sums.values()))

    def sum(self, args: list[Any]) -> Any:
        """A sum of arrays of which one is zero but for few elements."""
        if type(args[0]) is Sparse and type(args[1]) is Sparse:
            return Sparse([*args[0].parts, *args[1].parts])
        found, few = args if type(args[1]) is Sparse else reversed(args)
        for part, given in few.parts:
            if part.primitive.name == "pad":
                found = self.padded(part, given[0], found)
            else:
                found = self.update(part, given, found, "add")
        return found

    def padded(self, node: Node, value: Any, version: Any) -> Version:
        """Add elements at known places."""
        if type(version) is not Version or not version.current:
            raise NotScalar
        shape, config = node.ins[0].shape, node.params["padding_config"]
        found = [self.element(value, shape, at) for at in _places(shape)]
        for at, x in zip(np.ndindex(*shape), found, strict=True):
            edges = zip(at, config, strict=True)
            place = tuple([Index.of(low + i * (inner + 1)) for i, (low, _, inner) in edges])
            self.body.extend(self.written(version.memory.buffer, place, x, {}, "add"))
        return self.version(version.memory)

    def update(
        self,
        node: Node,
        args: list[Any],
        version: Any,
        method: str | None = None,
        guard: Any = None,
    ) -> Version:
        """Write the elements of an update, where `guard` holds; the version after it."""
        operand, updates = node.ins[0], lower_update.updates_of(node)
        if type(version) is not Version or not version.current or not 0 < updates.size <= FEW:
            raise NotScalar
        sliced = node.primitive.name == "dynamic_update_slice"
        place = lower_update.slice_place if sliced else lower_update.scatter_place
        method = method or lower_update.METHODS.get(node.primitive.name)
        window = () if sliced else node.params["dimension_numbers"].update_window_dims
        # Positions one after the other, since later ones win; a window's elements are apart.
        axes = sorted(range(len(updates.shape)), key=lambda a: a in window)
        site: Any = _Site(self, node, args)
        buffer, stores = version.memory.buffer, []
        for at in np.ndindex(*[updates.shape[a] for a in axes]):
            domain = [Index.of(0)] * len(axes)
            for a, i in zip(axes, at, strict=True):
                domain[a] = Index.of(i)
            site.domain = domain
            index, _, conditions = place(site, node, operand)
            value = site.element(updates, tuple(domain))
            stores += self.written(buffer, index, value, conditions, method)
        self.body.extend(stores if guard is None else [If(guard, tuple(stores))])
        return self.version(version.memory)

    def written(
        self,
        buffer: Buffer,
        at: tuple,
        value: Any,
        conditions: dict[int, Any],
        method: str | None,
    ) -> list[Stmt]:
        """The statements that write one element, if its `conditions`, by axis, hold."""

        def store(at: tuple) -> list[Stmt]:
            new = value
            if method is not None:
                new = getattr(self.e, method)(self.e.load(buffer, at), value)
            return self.e.store(buffer, at, new)

        def where(tests: Sequence[Any], stores: list[Stmt]) -> list[Stmt]:
            return [If(functools.reduce(self.e.and_, tests), tuple(stores))] if tests else stores

        plain = where(list(conditions.values()), store(at))
        direct = [near(self.e, i) for i in at]
        tests = [found[0] for found in direct if found is not None]
        if not tests:
            return plain
        value = self.name(value)
        places = [i if found is None else found[1] for i, found in zip(at, direct, strict=True)]
        # What is inside as it stands fulfils its condition; those of other axes remain.
        rest = [x for axis, x in conditions.items() if direct[axis] is None]
        near_by = where(rest, store(tuple(places)))
        return [If(functools.reduce(self.e.and_, tests), tuple(near_by), tuple(plain))]

    # ---- regions

    def enter(
        self,
        node: Node,
        values: Sequence[Any],
        inits: Sequence[Val],
        outs: Sequence[Val],
        var: LoopVar | None = None,
    ) -> list[_Carry]:
        """What a loop carries, with its first values; `var` is the variable of a scan."""
        held: list[_Carry] = []
        taken: set[Memory] = set()
        for k, (value, val) in enumerate(zip(values, inits, strict=True)):
            if val.size == 1:
                counter = self.count(node, k, value, var) if var is not None else None
                held.append(counter or _Carry([self.define(value, self.body, "c")], single=True))
            elif self.updated(node, k, val):
                memory = self.hold(value, val, outs[k], taken)
                taken.add(memory)
                self.version(memory)
                held.append(_Carry([], memory))
            else:
                elements = [self.element(value, val.shape, at) for at in _places(val.shape)]
                held.append(_Carry([self.define(x, self.body, "c") for x in elements]))
        return held

    def updated(self, node: Node, k: int, val: Val) -> bool:
        """Whether carry k lies in memory."""
        return val.size > FEW or bool(carried(node.rule.name, node.params, k, True))

    def hold(self, value: Any, val: Val, out: Val, taken: set[Memory]) -> Memory:
        """The memory of a carry: its own where the loop is the kernel, else that of its value."""
        if value is None:
            self.copies.append(CopyStep(self.build.materialize(val), out))
            self.carried.append(out)
            return self.memory(self.output(out))
        if type(value) is Version and value.current and value.memory not in taken:
            return value.memory
        raise NotScalar

    def count(self, node: Node, k: int, first: Any, var: LoopVar) -> _Carry | None:
        """Carry k of a scan as known by the loop's variable, where each round adds a number."""
        if not _counts(first.dtype) or type(first) not in (Const, IndexValue):
            return None
        params, e = node.params, self.e
        step = step_of(unclosed(params["jaxpr"])[0], params["num_consts"] + k, k)
        info = np.iinfo(first.dtype)
        start = e.value_index(first)
        if step is None:
            return None
        end = start + step * var.extent
        if min(start.lo, end.lo) < info.min or max(start.hi, end.hi) > info.max:
            return None  # may wrap around
        carry = _Carry([], single=True)
        carry.known = e.index_value(start + Index.of(var) * step, first.dtype)
        carry.after = e.index_value(end, first.dtype)
        return carry

    def bound(self, carry: _Carry, node: Node, k: int, first: Any, args: Sequence[Any]) -> None:
        """Note the range of carry k of a while, which begins as `first` and counts up or down to
        what its condition compares it with."""
        if not _counts(first.dtype):
            return
        params = node.params
        test, body = unclosed(params["cond_jaxpr"])[0], unclosed(params["body_jaxpr"])[0]
        n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
        step = step_of(body, n_body + k, k)
        if not step:
            return
        low, high = range_of(first)
        info = np.iinfo(first.dtype)
        low, high = (low, int(info.max)) if step > 0 else (int(info.min), high)
        for name, other in bounds(test, n_cond + k):
            if type(other) is Literal:
                ends = int(other.value), int(other.value)
            elif other in test.invars:
                at = test.invars.index(other)
                same = at < n_cond or body.outvars[at - n_cond] is body.invars[n_body + at - n_cond]
                ends = range_of(args[at if at < n_cond else n_body + at]) if same else (
                    int(info.min), int(info.max)
                )  # fmt: skip
            else:
                continue
            if name in ("lt", "le"):
                high = min(high, ends[1] - (name == "lt"))
            else:
                low = max(low, ends[0] + (name == "gt"))
        # A round that passes the bound ends the loop, unless the counter wraps around.
        if low <= high and (high + step <= info.max if step > 0 else low + step >= info.min):
            read = self.e.read_local(carry.locals[0])
            carry.known = self.e.index_value(dynamic(read, low, high), first.dtype)

    def read(self, carry: _Carry) -> Any:
        """What is carried, as it is in a round."""
        return self.now(carry) if carry.known is None else carry.known

    def now(self, carry: _Carry) -> Any:
        """What is carried, at any time."""
        if carry.after is not None:
            return carry.after
        if carry.memory is not None:
            return Version(carry.memory, carry.memory.current)
        found = [self.e.read_local(x) for x in carry.locals]
        return found[0] if carry.single else Few(found)

    def leave(
        self, held: list[_Carry], results: list[Any], vals: Sequence[Val], body: list[Stmt]
    ) -> None:
        """Set what is carried to the results of a round, all at once."""
        self.body, outer = body, self.body
        new = []
        for carry, value, val in zip(held, results, vals, strict=True):
            if carry.after is not None:
                continue
            if carry.memory is not None:
                if type(value) is not Version or value.memory is not carry.memory:
                    raise NotScalar
                if not value.current:
                    raise NotScalar
                continue
            found = [value]
            if not carry.single:
                found = [self.element(value, val.shape, at) for at in _places(val.shape)]
            new += [
                (local, self.define(x, body))
                for local, x in zip(carry.locals, found, strict=True)
                if x is not self.e.read_local(local)
            ]
        for local, x in new:
            body.extend(self.e.assign(local, self.e.read_local(x)))
        self.body = outer

    def kept(self) -> dict[Memory, int]:
        return {m: m.current for m in self.memories}

    def only(self, held: list[_Carry], before: dict[Memory, int]) -> None:
        """Check that a round changed nothing but carries, and make their contents new."""
        mine = [carry.memory for carry in held if carry.memory is not None]
        for memory, current in before.items():
            if memory.current != current and memory not in mine:
                raise NotScalar
        for memory in mine:
            self.version(memory)

    def region(
        self, node: Node, args: list[Any], body: list[Stmt], outs: Sequence[Val]
    ) -> list[Any]:
        if node.rule.name == "while":
            return self.loop(node, args, body)
        return super().region(node, args, body, outs)

    def loop(self, node: Node, args: list[Any], body: list[Stmt]) -> list[Any]:
        params = node.params
        n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
        first, second = args[:n_cond], args[n_cond : n_cond + n_body]
        self.looping = True
        inits = node.ins[n_cond + n_body :]
        held = self.enter(node, args[n_cond + n_body :], inits, node.outs)
        for k, carry in enumerate(held):
            if carry.single:
                self.bound(carry, node, k, args[n_cond + n_body + k], args)
        before = self.kept()
        written: list[Stmt] = []
        self.testing = True
        (test,) = self.call(params["cond_jaxpr"], [*first, *map(self.now, held)], written)
        self.testing = False
        running = None
        if written:  # not an expression: tested before the loop and after each round
            (test,) = self.call(params["cond_jaxpr"], [*first, *map(self.now, held)], body)
            running = self.define(test, body)
            test = self.e.read_local(running)
        if self.kept() != before:
            raise NotScalar
        inside: list[Stmt] = []
        results = self.call(params["body_jaxpr"], [*second, *map(self.read, held)], inside)
        self.leave(held, results, inits, inside)
        self.only(held, before)
        if running is not None:
            before = self.kept()
            (again,) = self.call(params["cond_jaxpr"], [*first, *map(self.now, held)], inside)
            if self.kept() != before:
                raise NotScalar
            inside.extend(self.e.assign(running, again))
        body.append(While(test, tuple(inside)))
        return [self.now(carry) for carry in held]

    def scan(self, node: Node, args: list[Any], body: list[Stmt], outs: Sequence[Val]) -> list[Any]:
        params, e = node.params, self.e
        length, n_consts, n_carry = params["length"], params["num_consts"], params["num_carry"]
        if length == 0:
            raise NotScalar
        first = n_consts + n_carry
        inits = node.ins[n_consts:first]
        self.names += 1
        var = LoopVar(f"i{self.names}", length)
        held = self.enter(node, args[n_consts:first], inits, outs, var)
        at = length - 1 - Index.of(var) if params["reverse"] else Index.of(var)
        stacked = [(val, self.stack(val)) for val in outs[n_carry:]]
        before = self.kept()
        inside: list[Stmt] = []
        self.body, outer = inside, self.body
        rows = []
        for x, val in zip(args[first:], node.ins[first:], strict=True):
            count = counting(val)
            if count is not None:
                rows.append(e.index_value(count[0] + at * count[1], val.dtype))
            elif val.size == length:
                zeros = [Index.of(0)] * (len(val.shape) - 1)
                rows.append(self.element(x, val.shape, (at, *zeros)))
            else:
                rows.append(Row(x, val.shape, at))
        self.body = outer
        self.rounds *= length
        given = [*args[:n_consts], *map(self.read, held), *rows]
        results = self.call(params["jaxpr"], given, inside)
        self.rounds //= length
        self.body, outer = inside, self.body
        for (val, buffer), out in zip(stacked, results[n_carry:], strict=True):
            shape = val.shape[1:]
            for place, x in [(p, self.element(out, shape, p)) for p in _places(shape)]:
                inside.extend(e.store(buffer, [at, *place], x))
        self.body = outer
        self.leave(held, results[:n_carry], inits, inside)
        self.only(held, before)
        body.extend(forward(For(var, length, tuple(inside))))
        found = [self.now(carry) for carry in held]
        for val, buffer in stacked:
            memory = self.memory(buffer)
            whole = Version(memory, memory.current)
            nowhere = tuple([Index.of(0)] * len(val.shape))
            found.append(self.element(whole, val.shape, nowhere) if val.size == 1 else whole)
        return found

    def stack(self, val: Val) -> Buffer:
        """The memory of what a scan stacks."""
        return self.output(val) if any([v is val for v in self.results]) else self.work(val)

    def cond(self, node: Node, args: list[Any], body: list[Stmt]) -> list[Any]:
        index, *operands = args
        e, before = self.e, self.kept()
        branches: list[tuple[list[Stmt], list[Any]]] = []
        ends: list[dict[Memory, int]] = []
        for jaxpr in node.params["branches"]:
            for memory, current in before.items():
                memory.current = current
            inside: list[Stmt] = []
            branches.append((inside, self.call(jaxpr, operands, inside)))
            ends.append(self.kept())
        found: list[Any] = []
        changed = [m for m in before if any([end[m] != before[m] for end in ends])]
        for k, val in enumerate(node.outs):
            values = [results[k] for _, results in branches]
            one = values[0].memory if type(values[0]) is Version else None
            if one is not None and all(
                [
                    type(x) is Version and x.memory is one and x.serial == end.get(one)
                    for x, end in zip(values, ends, strict=True)
                ]
            ):
                found.append(one)
            else:
                found.append(self.choose(val, values, branches, ends, body))
        chosen = tuple(branches[-1][0])
        for k in reversed(range(len(branches) - 1)):
            test = e.not_(index) if index.dtype.kind == "b" else e.le(index, k)
            chosen = (If(test, tuple(branches[k][0]), chosen),)
        body.extend(chosen)
        for memory, current in before.items():
            memory.current = current
        for memory in changed:
            self.version(memory)
        return [Version(x, x.current) if type(x) is Memory else x for x in found]

    def choose(
        self, val: Val, values: list[Any], branches: list, ends: list, body: list[Stmt]
    ) -> Any:
        """A result of branches that is a few elements."""
        if val.size > FEW:
            raise NotScalar
        places = list(_places(val.shape))
        locals_ = [self.define(self.e.const(0, val.dtype), body, "r") for _ in places]
        outer = self.body
        for value, (inside, _), end in zip(values, branches, ends, strict=True):
            for memory, current in end.items():
                memory.current = current
            self.body = inside
            for local, at in zip(locals_, places, strict=True):
                x = self.element(value, val.shape, at)
                inside.extend(self.e.assign(local, x))
        self.body = outer
        found = [self.e.read_local(x) for x in locals_]
        return found[0] if val.size == 1 else Few(found)

    # ---- the step

    def steps(self, node: Node) -> list[Step]:
        """Copies of what is updated, and the kernel."""
        name, params = node.rule.name, node.params
        if name == "scan":
            first, count = params["num_consts"], params["num_carry"]
        else:
            first, count = params["cond_nconsts"] + params["body_nconsts"], len(node.outs)
        args: list[Any] = []
        for k, val in enumerate(node.ins):
            mine = first <= k < first + count and val.size > 1
            # What is updated lies in the result: its first value is not read.
            mine = mine and self.updated(node, k - first, val)
            args.append(None if mine else self.operand(val))
        self.results = node.outs
        body = self.body
        return self.finish(node, self.region(node, args, body, node.outs), body)

    def finish(self, node: Node, outs: list[Any], body: list[Stmt]) -> list[Step]:
        """Store the results that are in registers and make the steps."""
        late: list[tuple[Val, list[Any]]] = []
        stored = {v for _, v in self.outputs}
        for val, value in zip(node.outs, outs, strict=True):
            if val not in stored:
                found = [self.element(value, val.shape, at) for at in _places(val.shape)]
                late.append((val, [self.define(x, body) for x in found]))
        for val, locals_ in late:
            buffer = self.output(val)
            for at, local in zip(_places(val.shape), locals_, strict=True):
                body.extend(self.e.store(buffer, at, self.e.read_local(local)))
        ins = list(self.inputs.values())
        parts = [*self.outputs, *self.works, *ins]
        reads = [v for _, v in ins]
        kernel = Kernel(
            self.build.kernel_name("elements"),
            tuple([b for b, _ in parts]),
            tuple(body),
            {"annotated": True, "looping": self.looping},
        )
        writes = [v for _, v in [*self.outputs, *self.works]]
        pairs = [
            (w, r) for w, _ in late for r in reads if w.size == r.size == 1 and w.nbytes == r.nbytes
        ]
        step = KernelStep(
            kernel, [v for _, v in parts], [*reads, *self.carried], writes, pairs, self.flops
        )
        return [*self.copies, step]
