"""A jaxpr as the text of a StableHLO module.

`module_text(closed)` is for `xla.backend` and `lower(...).as_text("stablehlo")`. What a primitive
becomes follows from its record: elementwise ones from their `loops` rule, which receives an emitter
over whole arrays; reductions, loops and those written in terms of others from theirs. StableHLO's
own operations are methods of `Emitter` of the primitive's name (`arrays`, `kernels`), what it lacks
of linear algebra is in `linalg`; a record's `hlo` comes before all these.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from numjet.base import config
from numjet.base.record import NamedTuple
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, subjaxprs
from numjet.core.lowering import Expand, Host, Pointwise, Reduce, Region
from numjet.core.primitive import Primitive
from numjet.core.stretched import written_out
from numjet.ops.stored_keys import Storage, uses_words
from numjet.transforms.stage import stage_closed
from numjet.xla import linalg
from numjet.xla.buffers import HOST_PLATFORMS
from numjet.xla.host_calls import TARGET, HostCall, carried
from numjet.xla.layouts import Layout, Meshes, everywhere, layout_of
from numjet.xla.pull import PullEmitter
from numjet.xla.writer import Value, in_rows, spec

INDEX = np.dtype(np.int32)
# On GPUs a round of a short loop takes as long as its kernels take to be started: so many rounds of
# so many operations together are written as one, which XLA makes few kernels of.
_ROUNDS, _OPERATIONS = 16, 128
HOST_CALLS = frozenset(("pure_callback", "io_callback", "debug_callback", "ffi_call"))
TURN: tuple[tuple, np.dtype] = (), np.dtype(np.uint8)


def _numbered(name: str) -> Iterator[str]:
    yield name
    for k in itertools.count():
        yield f"{name}_{k}"


class _Scan(NamedTuple):
    """A loop over rows: its body, what each round is given, how much of it is carried."""

    jaxpr: ClosedJaxpr
    consts: list[Value]
    xs: list[Value]
    num_carry: int
    reverse: bool


class Emitter(PullEmitter):
    """Writes the equations of jaxprs."""

    def __init__(self, devices: tuple = ()) -> None:
        super().__init__()
        self.devices, self.meshes = devices, Meshes()
        client = getattr(devices[0], "client", None) if devices else None
        platform = getattr(client, "platform", None)
        # Of one device: collectives of several take no comparisons.
        self.for_cpu = platform in HOST_PLATFORMS and len(devices) == 1
        self.for_gpu = platform == "cuda"
        self.several = len(devices) > 1
        self.functions: list[str] = []
        self.calls: list[HostCall] = []
        self._named: dict[int, tuple[str, Any]] = {}
        # What keeps calls of the host in their order: a value that each takes and gives.
        self._turn: Value | None = None

    # -- jaxprs -----------------------------------------------------------------------------
    def run(self, jaxpr: Jaxpr, consts: Sequence[Value], args: Sequence[Value]) -> list[Value]:
        """Write a jaxpr's equations on values."""
        known = dict(zip(jaxpr.constvars, consts, strict=True))
        known.update(zip(jaxpr.invars, args, strict=True))

        def read(atoms: Sequence) -> list[Value]:
            return [self.literal(a) if type(a) is Literal else known[a] for a in atoms]

        for eqn in jaxpr.eqns:
            known.update(zip(eqn.outvars, self.equation(eqn, read(eqn.invars)), strict=True))
        return read(jaxpr.outvars)

    def literal(self, atom: Literal) -> Value:
        """A constant that stands in an equation."""
        shape, dtype = spec(atom.aval)
        value = getattr(atom.value, "_value", atom.value)
        return self.constant(np.asarray(value).astype(dtype).reshape(shape))

    def closed(self, closed: ClosedJaxpr, args: Sequence[Value]) -> list[Value]:
        """Write a closed jaxpr's equations on values."""
        consts = [self.constant(_memory(c)) for c in closed.consts]
        return self.run(closed.jaxpr, consts, args)

    def equation(self, eqn: Eqn, ins: list[Value]) -> list[Value]:
        """Write one equation; its results."""
        primitive = eqn.primitive
        avals = [v.aval for v in eqn.invars]
        outs = [v.aval for v in eqn.outvars]
        if primitive.expansion is not None:  # of the user's
            inner = primitive.expansion(tuple(avals), outs, eqn.params)
            if inner is not None:
                return self.closed(inner, ins)
            return self._host_call(primitive, outs, ins, eqn.params, avals)
        if primitive.multiple_results:
            return list(self.apply(primitive, outs, ins, eqn.params, avals))
        return [self.apply(primitive, eqn.outvars[0].aval, ins, eqn.params, avals)]

    def apply(self, p: Primitive, out: Any, ins: list[Value], params: dict, avals: list) -> Any:
        loops = p.loops
        if callable(p.hlo):
            return p.hlo(self, out, *ins, **params)
        if p.name == "sharding_constraint":
            return self._laid_out(ins[0], params.get("sharding"))
        if p.name in HOST_CALLS:
            return self._host_call(p, out, ins, params, avals)
        if p.name in linalg.EXPANSIONS:
            with config.default_matmul_precision("highest"):
                return self._expanded(p, linalg.EXPANSIONS[p.name], ins, params, avals)
        if isinstance(loops, Pointwise) and loops.elementwise:
            return self._elementwise(loops, out, ins, params)
        if isinstance(loops, Reduce):
            return self.reduction(loops.op, out, ins[0], params)
        if isinstance(loops, Expand):
            return self._expanded(p, loops.fn, ins, params, avals)
        if isinstance(loops, Region):
            return getattr(self, f"region_{loops.name}")(out, ins, **params)
        method = getattr(self, p.name.replace("-", "_"), None)
        if method is None and isinstance(loops, Pointwise):
            return self.pulled(loops, out, ins, params)
        if method is None:
            raise NotImplementedError(
                f"{p.name} cannot run on a device of XLA: {unsupported(p)} Compute it on the CPU "
                "(jit(..., backend='cpu')), outside the compiled function."
            )
        return method(out, *ins, **params)

    def _elementwise(self, loops: Pointwise, out: Any, ins: list[Value], params: dict) -> Value:
        shape, dtype = spec(out)
        made = loops.fn(self, [None] * len(shape), *ins, **params)
        return self.broadcast(self.cast(made, dtype) if made.dtype != dtype else made, shape)

    def _expanded(self, p: Primitive, fn: Callable, ins: list[Value], params: dict,
                  avals: list) -> Any:  # fmt: skip
        def run(*args: Any) -> list:
            made = fn(*args, **params)
            return list(made) if isinstance(made, tuple | list) else [made]

        outs = self.closed(stage_closed(run, tuple(avals)), ins)
        return outs if p.multiple_results else outs[0]

    def _laid_out(self, x: Value, sharding: Any) -> Value:
        """`x` as a sharding says, where the program is of several devices."""
        if len(self.devices) < 2 or sharding is None:
            return x
        text = self.meshes.text(layout_of(sharding, len(x.shape), self.devices))
        return self.op("sdy.sharding_constraint", [x], x.shape, x.dtype, f"sharding = {text}")

    # -- calls of the host ------------------------------------------------------------------
    def _host_call(self, p: Primitive, outs: list, ins: list[Value], params: dict,
                   avals: list) -> list[Value]:  # fmt: skip
        call = HostCall(p, params, avals, outs)
        self.calls.append(call)
        ins = [self.cast(x, carried(a)) for x, a in zip(ins, avals, strict=True)]
        kinds = [(tuple(a.shape), carried(a)) for a in outs]
        ordered = params.get("ordered", False)
        if ordered:
            ins, kinds = [*ins, self._my_turn()], [*kinds, TURN]
        effect = str(bool(p.effects_of(params, tuple(avals)))).lower()
        made = self.ops(
            "custom_call", ins, kinds,
            f'api_version = 4 : i32, backend_config = {{id = {call.number} : i64}}, '
            f'call_target_name = "{TARGET}", has_side_effect = {effect}, '
            f'operand_layouts = {in_rows([len(x.shape) for x in ins])}, '
            f'result_layouts = {in_rows([len(shape) for shape, _ in kinds])}',
        )  # fmt: skip
        if ordered:
            self._turn = made.pop()
        return [self.cast(x, spec(a)[1]) for x, a in zip(made, outs, strict=True)]

    def _my_turn(self) -> Value:
        return self.const(0, TURN[1]) if self._turn is None else self._turn

    def _turns(self, *jaxprs: ClosedJaxpr) -> list[Value]:
        """What loops and branches over these carry beside their own values: the turn, where an
        order is kept inside."""
        ordered = any(getattr(e, "ordered", False) for j in jaxprs for e in j.effects)
        return [self._my_turn()] if ordered else []

    def _with_turn(self, turn: Sequence[Value], write: Callable[[], list]) -> list[Value]:
        """What `write` gives, and the turn after it."""
        if not turn:
            return write()
        before, self._turn = self._turn, turn[0]
        made = [*write(), self._turn]
        self._turn = before
        return made

    def _after(self, turn: list, made: list[Value]) -> list[Value]:
        if turn:
            self._turn = made.pop()
        return made

    # -- calls and control flow -------------------------------------------------------------
    def region_jit(
        self, outs: Any, ins: list[Value], *, jaxpr: ClosedJaxpr, name: str = "f", **_: Any
    ) -> list:
        return self._call(jaxpr, ins, name)

    def _call(self, closed: ClosedJaxpr, ins: list[Value], name: str = "f") -> list[Value]:
        """A function of its own, written once for a jaxpr."""
        if self._turns(closed):
            return self.closed(closed, ins)
        found = self._named.get(id(closed.jaxpr))
        outs = [spec(a) for a in closed.out_avals]
        if found is None:
            own = "".join(c if c.isalnum() else "_" for c in name.replace(">", "")) or "f"
            taken = {"main", *[known for known, _ in self._named.values()]}
            name = next(n for n in _numbered(own) if n not in taken)
            self._named[id(closed.jaxpr)] = (name, closed)  # which keeps the jaxpr alive
            self.function(name, "private", closed, [(x.shape, x.dtype) for x in ins])
        else:
            name = found[0]
        made = self.ops("func.call", ins, outs, f"callee = @{name}")
        return made

    def function(self, name: str, visibility: str, closed: ClosedJaxpr, ins: Sequence,
                 marks: Mapping[int, str] = MappingProxyType({}),
                 out_marks: Mapping[int, str] = MappingProxyType({})) -> None:  # fmt: skip
        """Write a function of the module; `marks` are attributes of its arguments, `out_marks` of
        its results."""
        values = [Value(self.name(), tuple(s), np.dtype(d)) for s, d in ins]
        before, self._turn = self._turn, None
        around, self._constants = self._constants, []  # which a function does not see
        with self._inside() as lines:
            outs = self.closed(closed, values)
            self._turn = before
            kinds = ", ".join(x.type for x in outs)
            lines.append(f'"func.return"({", ".join(x.ref for x in outs)}) : ({kinds}) -> ()')
        self._constants = around
        results = ", ".join(
            f"{x.type}{f' {{{out_marks[i]}}}' if i in out_marks else ''}"
            for i, x in enumerate(outs)
        )
        head = ", ".join(
            f"{v.ref}: {v.type}{f' {{{marks[i]}}}' if i in marks else ''}"
            for i, v in enumerate(values)
        )
        body = "\n".join("  " + line for line in lines)
        self.functions.append(
            f"func.func {visibility} @{name}({head}) -> ({results}) {{\n{body}\n}}"
        )

    def region_call(self, outs: Any, ins: list[Value], **params: Any) -> list:
        if "policy" in params and ins:
            # What is computed again stays apart from what was computed before.
            ins = self.ops("optimization_barrier", ins, [(x.shape, x.dtype) for x in ins])
        return self.closed(next(p for p in params.values() if isinstance(p, ClosedJaxpr)), ins)

    def region_cond(self, outs: Any, ins: list[Value], *, branches: tuple, **_: Any) -> list:
        index, *operands = ins
        if index.dtype != INDEX:
            index = self.cast(index, INDEX)
        last = len(branches) - 1
        index = self.max(self.min(index, last), 0)
        turn = self._turns(*branches)
        regions = [
            self.region([], lambda b=b: self._with_turn(turn, lambda: self.closed(b, operands)))
            for b in branches
        ]
        kinds = [*[spec(a) for a in outs], *[TURN] * len(turn)]
        return self._after(turn, self.ops("case", [index], kinds, "", regions))

    def region_while(
        self, outs: Any, ins: list[Value], *, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr,
        cond_nconsts: int, body_nconsts: int,
    ) -> list:  # fmt: skip
        c_consts, b_consts = ins[:cond_nconsts], ins[cond_nconsts : cond_nconsts + body_nconsts]
        carry = ins[cond_nconsts + body_nconsts :]
        first, last = cond_nconsts + body_nconsts, len(ins)
        turn = self._turns(body_jaxpr)

        def test(*values: Value) -> list[Value]:
            return self.closed(cond_jaxpr, [*values[:cond_nconsts], *values[first:last]])

        def body(*values: Value) -> list[Value]:
            inner = list(values[cond_nconsts:last])
            made = self._with_turn(values[last:], lambda: self.closed(body_jaxpr, inner))
            return [*values[:first], *made]

        made = self._while([*c_consts, *b_consts, *carry, *turn], test, body)
        return self._after(turn, made)[first:]

    def _while(self, carry: list[Value], test: Callable, body: Callable) -> list[Value]:
        kinds = [(x.shape, x.dtype) for x in carry]
        regions = [self.region(kinds, test), self.region(kinds, body)]
        return self.ops("while", carry, kinds, "", regions)

    def region_scan(
        self, outs: Any, ins: list[Value], *, jaxpr: ClosedJaxpr, length: int, num_consts: int,
        num_carry: int, reverse: bool = False, **_: Any,
    ) -> list:  # fmt: skip
        consts, carry = ins[:num_consts], ins[num_consts : num_consts + num_carry]
        xs = ins[num_consts + num_carry :]
        specs = [spec(a) for a in outs]
        ys = [self.broadcast(self.const(0, d), s) for s, d in specs[num_carry:]]
        if not length:
            return [*carry, *ys]
        scan = _Scan(jaxpr, consts, xs, num_carry, reverse)
        turn = self._turns(jaxpr)
        together = 1 if turn or not self.for_gpu else _together(jaxpr, length)
        state, done = [*carry, *ys, *turn], 0
        if together < length:
            state = self._rounds(scan, state, length, together)
            done = length - length % together
        if done < length:
            at = self.const(0 if reverse else done, INDEX)
            state = self._block(scan, state, at, length - done)
        return self._after(turn, state)

    def _rounds(self, scan: _Scan, state: list[Value], length: int, together: int) -> list[Value]:
        """The loop of a scan, `together` rounds at once, as often as they go into its length: its
        state (what is carried, results row by row, the turn of host calls) after that."""
        fixed, first = [*scan.consts, *scan.xs], len(scan.consts)

        def test(i: Value, *_: Value) -> list[Value]:
            return [self.lt(i, length // together)]

        def body(i: Value, *values: Value) -> list[Value]:
            known, now = list(values[: len(fixed)]), list(values[len(fixed) :])
            at = i if together == 1 else self.mul(i, together)
            if scan.reverse:
                at = self.sub(length - together, at)
            inner = scan._replace(consts=known[:first], xs=known[first:])
            return [self.add(i, 1), *known, *self._block(inner, now, at, together)]

        return self._while([self.const(0, INDEX), *fixed, *state], test, body)[1 + len(fixed) :]

    def _block(self, scan: _Scan, state: list[Value], at: Value, count: int) -> list[Value]:
        """The state of a scan after the rounds of rows `at` to `at + count`."""
        results, first = len(scan.jaxpr.out_avals), scan.num_carry
        carry, ys, turn = state[:first], state[first:results], state[results:]
        blocks, rows = [self._rows(x, at, count) for x in scan.xs], []
        for k in reversed(range(count)) if scan.reverse else range(count):
            given = [*scan.consts, *carry, *[self._at(block, k) for block in blocks]]
            made = self._with_turn(turn, functools.partial(self.closed, scan.jaxpr, given))
            turn = [made.pop()] if turn else []
            carry = made[:first]
            rows.append(made[first:])
        if scan.reverse:
            rows.reverse()
        stacked = [self._with_rows(y, [row[i] for row in rows], at) for i, y in enumerate(ys)]
        return [*carry, *stacked, *turn]

    def _rows(self, x: Value, at: Value, count: int) -> Value:
        """x[at : at + count]"""
        if count == x.shape[0]:
            return x
        sizes = (count, *x.shape[1:])
        starts = [at, *[self.const(0, INDEX)] * (len(x.shape) - 1)]
        return self.window(x, starts, sizes)

    def _at(self, x: Value, k: int) -> Value:
        """x[k]"""
        if x.shape[0] > 1:
            x = self.part(x, [k, *[0] * (len(x.shape) - 1)], [k + 1, *x.shape[1:]])
        return self.reshaped(x, x.shape[1:])

    def _with_rows(self, x: Value, rows: list[Value], at: Value) -> Value:
        """`x` with x[at : at + len(rows)] = rows"""
        starts = [at, *[self.const(0, INDEX)] * (len(x.shape) - 1)]
        pieces = [self.reshaped(row, (1, *row.shape)) for row in rows]
        shape = (len(rows), *x.shape[1:])
        update = pieces[0] if len(pieces) == 1 else self.op(
            "concatenate", pieces, shape, x.dtype, "dimension = 0 : i64")
        return self.op("dynamic_update_slice", [x, update, *starts], x.shape, x.dtype)


def _together(jaxpr: ClosedJaxpr, length: int) -> int:
    """How many rounds of a loop are written as one: none in which there are loops."""
    operations = _operations(jaxpr.jaxpr)
    most = min(_ROUNDS, _OPERATIONS // max(operations, 1), length)
    if most < 2:
        return 1
    return next((n for n in range(most, most // 2, -1) if length % n == 0), most)


def _operations(jaxpr: Jaxpr) -> int:
    """The operations of a round; more than are written together where there are loops in it."""
    count = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in ("while", "scan"):
            return _OPERATIONS + 1
        inner = [_operations(j) for j in subjaxprs(eqn.params)]
        count += sum(inner) or 1
    return count


def unsupported(p: Primitive) -> str | None:
    """Why a primitive has no form on devices of XLA; None where it has one."""
    derived = isinstance(p.loops, Pointwise | Reduce | Region | Expand)
    if derived or callable(p.hlo) or p.name in linalg.EXPANSIONS or p.name in HOST_CALLS:
        return None
    if p.expansion is not None:
        return None
    if hasattr(Emitter, p.name.replace("-", "_")):
        return None
    if isinstance(p.hlo, str):
        return p.hlo
    return "it calls Python." if isinstance(p.loops, Host) else "no rule is written."


def _memory(value: Any) -> np.ndarray:
    return np.asarray(getattr(value, "_value", value))


STORAGE = Storage()


def stored(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program on what its values are in a device's memory: keys are the words that they are made
    of, but for threefry's, which are numbers."""
    closed = written_out(closed)
    return STORAGE.rewritten(closed) if uses_words(closed.jaxpr) else closed


class Module(NamedTuple):
    """The text of a module, and the calls of the host that it makes: they have to live as long as
    the program does."""

    text: str
    calls: list[HostCall]


def module(
    closed: ClosedJaxpr, name: str = "main", donate: Sequence[int] = (), devices: tuple = (),
    ins: Sequence[Layout] = (), outs: Sequence[Layout | None] = (),
) -> Module:  # fmt: skip
    """The module of a closed jaxpr; its consts are the first arguments of @main.

    donate: arguments whose memory results may take. devices: those of a program of several; then
    ins, outs are the layouts of arguments and results, None where XLA chooses.
    """
    emitter = Emitter(devices)
    jaxpr = closed.jaxpr
    whole = ClosedJaxpr(
        jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars]), []
    )
    first = len(jaxpr.constvars)
    specs = [spec(v.aval) for v in whole.jaxpr.invars]
    marks: dict[int, list[str]] = {first + i: ["jax.buffer_donor = true"] for i in donate}
    out_marks = {}
    if len(devices) > 1:
        known = [*[everywhere(len(s), devices) for s, _ in specs[:first]], *ins]
        for i, layout in enumerate(known):
            marks.setdefault(i, []).append(f"sdy.sharding = {emitter.meshes.text(layout)}")
        out_marks = {i: f"sdy.sharding = {emitter.meshes.text(layout)}"
                     for i, layout in enumerate(outs) if layout is not None}
    emitter.function("main", "public", whole, specs,
                     {i: ", ".join(words) for i, words in marks.items()}, out_marks)
    safe = "".join(c if c.isalnum() else "_" for c in name) or "main"
    lines = [f"module @{safe} {{", *emitter.meshes.definitions(), *emitter.functions, "}", ""]
    return Module("\n".join(lines), emitter.calls)


def module_text(closed: ClosedJaxpr, name: str = "main") -> str:
    """The text of `module`, for `stored` values."""
    return module(stored(closed), name).text


def own_module(closed: ClosedJaxpr) -> str:
    """The text of a module whose @main takes the arguments of `closed` alone: its consts are
    constants there. For `shown`."""
    closed = stored(closed)
    emitter = Emitter()
    emitter.function("main", "public", closed, [spec(a) for a in closed.in_avals])
    return "\n".join(["module {", *emitter.functions, "}", ""])
