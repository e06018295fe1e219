"""The program of one device: the operations on its parts, and the collectives that join them.

`partition` stages each equation for the shapes of one device's parts, its operands moved to the
layouts that its rule needs, and completes what was summed over cut axes. An operation without a
rule has its operands gathered and is computed everywhere. Names of axes of the mesh are the
collectives'. For `api.compiled.sharded_evaluation` and `api.compiled.explain`. What would break it:
a program whose collectives hang on a value that differs between devices (a `cond` on a cut scalar
is moved to everywhere first).
"""
from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from numjet.base.errors import InternalError
from numjet.base.record import field, record
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal
from numjet.core.jaxpr_check import check_jaxpr
from numjet.core.structural import zeros
from numjet.ops.arithmetic import add, mul
from numjet.ops.collective import (
    all_gather,
    all_to_all,
    axis_index,
    pmax_p,
    pmin_p,
    psum_p,
    psum_scatter,
)
from numjet.ops.permute import permute_rows, ppermute
from numjet.ops.shape import concatenate, squeeze
from numjet.ops.slicing import dynamic_slice_in_dim, index_in_dim
from numjet.partition.propagate import (
    Free,
    Plan,
    as_typed,
    eqn_rule,
    everywhere,
    flatten,
    propagate,
)
from numjet.partition.rules import Layout, Sizes, assign, layout_of, local_shape, results
from numjet.transforms.batch import Axis, extend_axis_env
from numjet.transforms.stage import stage_closed

_COMPLETE = {"add": psum_p, "max": pmax_p, "min": pmin_p}


@record(frozen=True, slots=True)
class Move:
    """A collective that was inserted: what it is, over which axes, the bytes that each device gets,
    for which operation and why, and the user's line."""

    kind: str
    axes: tuple
    nbytes: int
    operation: str
    why: str
    source: Any

    def __repr__(self) -> str:
        line = f"  # {self.source}" if self.source else ""
        return (
            f"{self.kind} over {self.axes}, {self.nbytes} bytes, {self.why} "
            f"({self.operation}){line}"
        )


@record(eq=False)
class Partitioned:
    """The program of one device: `closed` on local shapes, layouts of arguments and results, and
    the moves that it makes."""

    closed: ClosedJaxpr
    ins: list[Layout]
    outs: list[Layout]
    sizes: Sizes
    moves: list[Move] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"{self.closed}\n" + "\n".join(map(repr, self.moves))


def partition(
    closed: ClosedJaxpr,
    ins: Sequence[Free],
    outs: Sequence[Free],
    sizes: Sizes,
    members: Sizes | None = None,
) -> Partitioned:
    """The program of one device of a mesh with axes of these sizes (name -> size).

    ins, outs: layouts of arguments and results, None for those that may lie as it suits. members:
    how many there are along each axis that run a program, where one runs it for several devices.
    """
    flat = flatten(closed)
    if flat.consts:
        raise InternalError("partition: constants must be arguments.")
    plan = propagate(flat.jaxpr, ins, outs, sizes)
    found = [plan.fixed(v) for v in flat.jaxpr.invars]
    results = [
        plan.fixed(v) if want is None else want for v, want in zip(flat.jaxpr.outvars, outs)
    ]
    members = sizes if members is None else members
    emitter = _Emitter(sizes, members)
    with contextlib.ExitStack() as stack:
        for name, size in members.items():
            stack.enter_context(extend_axis_env(Axis(size, name)))
        local = emitter.staged(flat, plan, found, results)
    check_jaxpr(local)
    return Partitioned(local, found, results, sizes, emitter.moves)


def _readers(
    jaxpr: Jaxpr, plan: Plan, outs: Sequence[Layout]
) -> dict[Any, list[Layout | None]]:
    """For each variable what reads it: the layout that it is moved to, None for other readers."""
    found: dict[Any, list[Layout | None]] = {}
    for eqn in jaxpr.eqns:
        constrains = eqn.primitive.name == "sharding_constraint"
        want = plan.fixed(eqn.outvars[0]) if constrains else None
        for v in eqn.invars:
            if type(v) is not Literal:
                found.setdefault(v, []).append(want)
    for v, layout in zip(jaxpr.outvars, outs, strict=True):
        if type(v) is not Literal:
            found.setdefault(v, []).append(layout)
    return found


class _Emitter:
    def __init__(self, devices: Sizes, members: Sizes) -> None:
        self.devices, self.sizes = devices, members
        self.moves: list[Move] = []
        self.rounds = 1  # how often what is written now runs
        self.readers: dict[Any, list[Layout | None]] = {}  # layouts that a value is moved to

    def staged(
        self, closed: ClosedJaxpr, plan: Plan, ins: Sequence[Layout], outs: Sequence[Layout]
    ) -> ClosedJaxpr:
        """A jaxpr for parts: arguments laid out as `ins`, results as `outs`."""
        avals = [
            v.aval.bare().update(shape=local_shape(v.aval.shape, layout, self.sizes))
            for v, layout in zip(closed.jaxpr.invars, ins, strict=True)
        ]

        def run(*args: Any) -> list:
            return self.run(closed.jaxpr, plan, ins, outs, args)

        return stage_closed(run, avals)

    def run(
        self, jaxpr: Jaxpr, plan: Plan, ins: Sequence[Layout], outs: Sequence[Layout], args: Any
    ) -> list:
        env: dict[Any, tuple[Any, Layout]] = {}
        for v, layout, x in zip(jaxpr.invars, ins, args, strict=True):
            env[v] = x, layout

        def read(atom: Any) -> tuple[Any, Layout]:
            return (atom.value, ()) if type(atom) is Literal else env[atom]

        outer, self.readers = self.readers, _readers(jaxpr, plan, outs)
        for eqn in jaxpr.eqns:
            values = [read(v) for v in eqn.invars]
            for v, (x, layout) in zip(eqn.outvars, self.eqn(eqn, plan, values), strict=True):
                shape = local_shape(v.aval.shape, layout, self.sizes)
                if x.aval.shape != shape:
                    raise InternalError(
                        f"partition: {eqn.primitive.name} gave {x.aval.shape} for {v.aval.shape} "
                        f"laid out as {layout}."
                    )
                want = as_typed(v.aval, layout, self.sizes) or layout
                if want != layout:
                    x = self.moved((x, layout), want, eqn.primitive.name, "as typed", eqn.source)
                env[v] = x, want
        self.readers = outer
        return [
            self.moved(read(v), want, "the program", "to the result's layout", None)
            for v, want in zip(jaxpr.outvars, outs, strict=True)
        ]

    def eqn(self, eqn: Eqn, plan: Plan, values: list) -> list[tuple[Any, Layout]]:
        name = eqn.primitive.name
        if name in ("scan", "while", "cond"):
            return getattr(self, f"_{name}")(eqn, plan, values)
        if name == "sharding_constraint":
            want = plan.fixed(eqn.outvars[0])
            return [(self.moved(values[0], want, name, "as constrained", eqn.source), want)]
        if name == "custom_partitioning":
            return self._custom(eqn, plan, values)
        if name == "permute_rows" and any(values[0][1]):
            return [self._permuted(eqn, *values[0])]
        rule = eqn_rule(eqn)
        if rule is None:
            return self._everywhere(eqn, values)
        ins = [plan.of(v) for v in eqn.invars]
        wanted = [plan.of(v) for v in eqn.outvars]
        cuts = assign(rule, ins, wanted, self.devices)
        args = [
            self.moved(value, layout_of(dims, cuts), name, "for its operand", eqn.source)
            for value, dims in zip(values, rule.ins, strict=True)
        ]
        layouts = [layout_of(dims, cuts) for dims in rule.outs]
        params = eqn.params
        if name == "sum_cast":  # a type's word alone
            params = {"sharding": None}
        if rule.local is not None:
            shapes = [
                local_shape(v.aval.shape, layout, self.sizes)
                for v, layout in zip(eqn.outvars, layouts, strict=True)
            ]
            params = rule.local(params, [x.aval.shape for x in args], shapes)
        if rule.reduced and name.startswith("reduce_") and all(
            args[0].aval.shape[i] == 1 for i in params["axes"]
        ):  # one row each: the collective does it all
            outs = squeeze(args[0], params["axes"])
        else:
            outs = eqn.primitive.bind(*args, **params)
        if not eqn.primitive.multiple_results:
            outs = [outs]
        for kind, complete in _COMPLETE.items():
            axes = tuple([a for f, how in rule.reduced.items() if how == kind
                          for a in cuts.get(f, ()) if self.sizes[a] > 1])
            at = self._scattered(eqn, layouts, axes) if kind == "add" else None
            if at is not None:
                (x,), (axis,) = outs, axes
                outs = [psum_scatter(x, axis, scatter_dimension=at, tiled=True)]
                self._note("reduce_scatter", axes, outs[0], name, "sums of parts", eqn.source)
                cut = tuple([(*a, axis) if i == at else a for i, a in enumerate(layouts[0])])
                return [(outs[0], cut)]
            if axes:
                outs = [complete.bind(x, axes=axes) for x in outs]
                for x in outs:
                    self._note(complete.name, axes, x, name, "sums of parts", eqn.source)
        ends = results(rule, ins, wanted, self.devices)
        return [
            (self.moved((x, have), want, name, "as it was", eqn.source), want)
            for x, have, want in zip(outs, layouts, ends, strict=True)
        ]

    def _scattered(self, eqn: Eqn, layouts: list[Layout], axes: tuple) -> int | None:
        """The dimension that a sum over an axis is then cut along, over the same axis, by its only
        reader: the devices need no more than their parts of the sum."""
        readers = self.readers.get(eqn.outvars[0], [])
        if len(axes) != 1 or len(readers) != 1 or readers[0] is None or len(layouts) != 1:
            return None
        (have,), (want,) = layouts, readers
        for i in range(len(have)):
            cut = tuple([(*a, axes[0]) if j == i else a for j, a in enumerate(have)])
            if cut == want:
                return i
        return None

    def _custom(self, eqn: Eqn, plan: Plan, values: list) -> list[tuple[Any, Layout]]:
        """What the function's author gives each device to run."""
        name, wanted = eqn.primitive.name, [plan.fixed(v) for v in eqn.outvars]
        run, before, after = eqn.params["rules"].parts(
            self.sizes,
            [v.aval for v in eqn.invars],
            [layout or everywhere(v.aval.ndim)
             for (_, layout), v in zip(values, eqn.invars, strict=True)],
            [v.aval for v in eqn.outvars],
            wanted,
        )  # fmt: skip
        args = [
            self.moved(value, want, name, "for its operand", eqn.source)
            for value, want in zip(values, before, strict=True)
        ]
        outs = run(*args)
        for x, layout, v in zip(outs, after, eqn.outvars, strict=True):
            if x.aval.shape != local_shape(v.aval.shape, layout, self.sizes):
                raise ValueError(
                    f"custom_partitioning: the partition of {eqn.params['rules']} gave a part of "
                    f"shape {x.aval.shape} of a result of shape {v.aval.shape} that is cut as "
                    f"{layout}."
                )
        return [
            (self.moved((x, have), want, name, "as it was", eqn.source), want)
            for x, have, want in zip(outs, after, wanted, strict=True)
        ]

    def _everywhere(self, eqn: Eqn, values: list) -> list[tuple[Any, Layout]]:
        args = [
            self.moved((x, layout), everywhere(len(layout)), eqn.primitive.name,
                       "no rule: computed everywhere", eqn.source)
            for x, layout in values
        ]
        outs = eqn.primitive.bind(*args, **eqn.params)
        if not eqn.primitive.multiple_results:
            outs = [outs]
        return [(x, everywhere(x.aval.ndim)) for x in outs]

    def _note(self, kind: str, axes: tuple, x: Any, operation: str, why: str, at: Any) -> None:
        nbytes = x.aval.nbytes * self.rounds
        self.moves.append(Move(kind, axes, nbytes, operation, why, at))

    def moved(
        self, value: tuple[Any, Layout], want: Layout, operation: str, why: str, at: Any
    ) -> Any:
        """A part of a value with its layout, laid out as `want`."""
        x, have = value
        have = have or everywhere(len(want))
        if have == want:
            return x
        now = [list(axes) for axes in have]
        for i, j in [(i, j) for i in range(len(now)) for j in range(len(now)) if i != j]:
            # An axis that cuts another dimension than before: the devices exchange parts.
            while now[i] and tuple(now[j] + now[i][-1:]) == want[j][: len(now[j]) + 1] and (
                tuple(now[i][:-1]) == want[i][: len(now[i]) - 1]
                and len(now[i]) > len(want[i])
                and x.aval.shape[j] % self.sizes[now[i][-1]] == 0
            ):
                axis = now[i].pop()
                now[j].append(axis)
                if self.sizes[axis] == 1:
                    continue
                x = all_to_all(x, axis, j, i, tiled=True)
                self._note("all_to_all", (axis,), x, operation, why, at)
        kept = []
        for i, axes in enumerate(now):
            same = 0
            while same < min(len(axes), len(want[i])) and axes[same] == want[i][same]:
                same += 1
            for axis in reversed(axes[same:]):
                if self.sizes[axis] == 1:
                    continue
                x = all_gather(x, axis, axis=i, tiled=True)
                self._note("all_gather", (axis,), x, operation, why, at)
            kept.append(same)
        for i, same in enumerate(kept):
            for axis in want[i][same:]:
                if self.sizes[axis] == 1:
                    continue
                width = x.aval.shape[i] // self.sizes[axis]
                x = dynamic_slice_in_dim(x, mul(axis_index(axis), width), width, i)
        return x

    def _permuted(self, eqn: Eqn, x: Any, layout: Layout) -> tuple[Any, Layout]:
        """Rows that change places, between devices where they are cut."""
        at, perm = eqn.params["axis"], eqn.params["perm"]
        axes = [a for a in layout[at] if self.sizes[a] > 1]
        if len(axes) > 1:
            want = (*layout[:at], (), *layout[at + 1 :])
            whole = self.moved((x, layout), want, "ppermute", "over several axes", eqn.source)
            out = permute_rows(whole, at, perm)
            return self.moved((out, want), layout, "ppermute", "as it was", eqn.source), layout
        if not axes:
            return permute_rows(x, at, perm), layout
        (axis,), width = axes, x.aval.shape[at]
        rows = []
        for target in range(width):
            parts = []
            for source in range(width):
                pairs = tuple([
                    (s // width, d // width)
                    for s, d in perm
                    if d % width == target and s % width == source
                ])
                row = index_in_dim(x, source, at, keepdims=True)
                if len(pairs) == self.sizes[axis] and all(s == d for s, d in pairs):
                    parts.append(row)
                elif pairs:
                    parts.append(ppermute(row, axis, pairs))
                    self._note("ppermute", (axis,), row, "ppermute", "between devices", eqn.source)
            total = parts[0] if parts else zeros(index_in_dim(x, 0, at, keepdims=True).aval)
            for part in parts[1:]:  # each member receives from one of them, and zeros
                total = add(total, part)
            rows.append(total)
        return (rows[0] if width == 1 else concatenate(rows, at)), layout

    # -------------------------------------------------------------- loops and branches
    def _scan(self, eqn: Eqn, plan: Plan, values: list) -> list[tuple[Any, Layout]]:
        nc, nk = eqn.params["num_consts"], eqn.params["num_carry"]
        (inner,), carry = plan.inner[id(eqn)], plan.carried[id(eqn)]
        closed, length = eqn.params["jaxpr"], eqn.params["length"]
        ins = [inner.fixed(v) for v in closed.jaxpr.invars]
        rows = [((), *a) for a in ins[nc + nk :]]
        args = self._operands(eqn, values, [*ins[:nc], *carry, *rows])
        outs = [*carry, *[inner.fixed(v) for v in closed.jaxpr.outvars[nk:]]]
        self.rounds *= length
        body = self.staged(closed, inner, ins, outs)
        self.rounds //= max(length, 1)
        found = eqn.primitive.bind(*args, **{**eqn.params, "jaxpr": body})
        layouts = [*carry, *[((), *a) for a in outs[nk:]]]
        return list(zip(found, layouts, strict=True))

    def _while(self, eqn: Eqn, plan: Plan, values: list) -> list[tuple[Any, Layout]]:
        nc, nb = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
        (test, inner), carry = plan.inner[id(eqn)], plan.carried[id(eqn)]
        cond, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
        test_ins = [test.fixed(v) for v in cond.jaxpr.invars]
        ins = [inner.fixed(v) for v in body.jaxpr.invars]
        args = self._operands(eqn, values, [*test_ins[:nc], *ins[:nb], *carry])
        params = {
            **eqn.params,
            "cond_jaxpr": self.staged(cond, test, test_ins, [everywhere(0)]),
            "body_jaxpr": self.staged(body, inner, ins, carry),
        }
        return list(zip(eqn.primitive.bind(*args, **params), carry, strict=True))

    def _cond(self, eqn: Eqn, plan: Plan, values: list) -> list[tuple[Any, Layout]]:
        plans, outs = plan.inner[id(eqn)], plan.carried[id(eqn)]
        layouts = [plan.fixed(v) for v in eqn.invars]
        args = self._operands(eqn, values, layouts)
        branches = tuple([
            self.staged(b, p, layouts[1:], outs)
            for b, p in zip(eqn.params["branches"], plans, strict=True)
        ])
        found = eqn.primitive.bind(*args, **{**eqn.params, "branches": branches})
        return list(zip(found, outs, strict=True))

    def _operands(self, eqn: Eqn, values: list, layouts: Sequence[Layout]) -> list:
        return [
            self.moved(value, want, eqn.primitive.name, "for its operand", eqn.source)
            for value, want in zip(values, layouts, strict=True)
        ]
