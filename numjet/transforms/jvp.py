"""Forward-mode differentiation: push a primal and a tangent through every operation.

`jvp_call` is used by `api.derivatives.autodiff` and by linearization. Symbolic zeros (`Zero`) never
materialize.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numjet.core import hooks
from numjet.core.array import Array, as_array
from numjet.core.avals import Placed, ShapedArray
from numjet.core.debug_info import derived
from numjet.core.hi import linear_rules
from numjet.core.jaxpr import ClosedJaxpr, eval_at_own_lines, note_form
from numjet.core.names import named as named_line
from numjet.core.primitive import Primitive, Zero
from numjet.core.refs import RefUse
from numjet.core.structural import instantiate, placed_like
from numjet.core.trace import (
    Trace,
    Tracer,
    aval_of,
    current_trace,
    enter_trace,
    leave_trace,
    set_trace,
    user_source,
)
from numjet.transforms.stage import closed_over, stage

_new = object.__new__


class JVPTracer(Tracer):
    """A primal with its tangent."""

    __slots__ = ("primal", "tangent", "aval")

    def __init__(self, trace: JVPTrace, primal: Any, tangent: Any) -> None:
        self.owner, self.primal, self.tangent = trace, primal, tangent
        self.aval: ShapedArray = primal.aval

    def concrete(self) -> Any:
        primal = self.primal
        return primal.concrete() if isinstance(primal, Tracer) else primal

    def differentiated(self) -> bool:
        return type(self.tangent) is not Zero

    def origin(self) -> str:
        return self.primal.origin() if isinstance(self.primal, Tracer) else self.owner.origin()

    def __repr__(self) -> str:
        if self.owner.parent.name == "linearization":  # reverse mode
            tangent = self.aval.tangent().str_short(True)
            return f"GradTracer(primal={self.primal}, typeof(tangent)={tangent})"
        return f"JVPTracer(primal={self.primal}, tangent={self.tangent})"


class JVPTrace(Trace):
    """Runs each primitive's jvp rule under the parent trace."""

    name = "differentiation"

    def __init__(self, parent: Trace) -> None:
        self.parent: Any = parent
        self.staging = parent.staging
        self.source = user_source(3)

    def origin(self) -> str:
        """A sentence on where the values of this trace come from."""
        return f"It was made by the differentiation at {self.source}." if self.source else ""

    def process(self, primitive: Primitive, args: tuple, params: dict) -> Any:
        if primitive.higher_order:
            args, params = closed_over(args, params)
        primals: list[Any] = []
        tangents: list[Any] = []
        active = mixed = False
        for x in args:
            if type(x) is JVPTracer and x.owner is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
                active = True
            else:  # numbers and NumPy arrays, which libraries bind, too, are arrays to the rules
                primals.append(x if hasattr(x, "aval") else as_array(x))
                tangents.append(None)
                mixed = True
        parent, staging = self.parent, self.staging
        token = enter_trace(parent)
        # All that a rule binds comes from one line; what calls the user's functions has more.
        named = (
            active
            and staging is not None
            and staging.source is None
            and not primitive.higher_order
        )
        if named:
            staging.source = named_line(hooks.user_line())
        try:
            if not active or primitive.jvp is None:
                return parent.process(primitive, tuple(primals), params)
            if mixed:
                for i, t in enumerate(tangents):
                    if t is not None:
                        continue
                    x = primals[i]
                    tangents[i] = Zero((x.aval if isinstance(x, Array) else aval_of(x)).tangent())
            out, tangent = primitive.jvp(tuple(primals), tuple(tangents), **params)
        finally:
            leave_trace(token)
            if named:
                staging.source = None
        if primitive.multiple_results:
            return [
                JVPTracer(self, p, t) if type(t) is not Zero else p
                for p, t in zip(out, tangent, strict=True)
            ]
        if type(tangent) is Zero:
            return out
        tracer = _new(JVPTracer)
        tracer.owner, tracer.primal, tracer.tangent, tracer.aval = self, out, tangent, out.aval
        return tracer


def jvp_call(
    fun: Callable,
    primals: Sequence[Any],
    tangents: Sequence[Any],
) -> tuple[list[Any], list[Any], JVPTrace]:
    """Run flat `fun` on primals with tangents (`Zero` allowed); returns flat outs and tangents."""
    parent = current_trace()
    trace = JVPTrace(parent)
    if Placed.active:
        tangents = [
            placed_like(t, p.aval) if isinstance(t, Array) and isinstance(p, Array) else t
            for p, t in zip(primals, tangents, strict=True)
        ]
    ins = [
        p if type(t) is Zero else JVPTracer(trace, p, t)
        for p, t in zip(primals, tangents, strict=True)
    ]
    with set_trace(trace):
        outs = fun(*ins)
    return (*split_outputs(trace, outs), trace)


def split_outputs(trace: JVPTrace, outs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Primals and tangents of a differentiated function's outputs."""
    primals, tangents = [], []
    for x in outs:
        if type(x) is JVPTracer and x.owner is trace:
            primals.append(x.primal)
            tangents.append(x.tangent)
        else:
            primals.append(x)
            tangents.append(Zero(aval_of(x).tangent()))
    return primals, tangents


def jvp_jaxpr(
    closed: ClosedJaxpr,
    nonzero: Sequence[bool],
    instantiate_out: bool | Sequence[bool] = False,
    use: RefUse | None = None,
) -> tuple[ClosedJaxpr, list[bool]]:
    """The jaxpr of primals and the nonzero tangents, to all primal outputs and the nonzero
    tangents.

    `instantiate_out` says which output tangents must be there even when zero. Remembered with the
    jaxpr, unless rules by the user write references from outside: `use` tells of these.
    """
    n_out = len(closed.jaxpr.outvars)
    force = (
        [instantiate_out] * n_out if isinstance(instantiate_out, bool) else list(instantiate_out)
    )
    key = ("jvp", tuple(nonzero), tuple(force), linear_rules.get())
    note_form(closed)
    found = closed.cache.get(key)
    if found is not None:
        note_form(found[0])
        return found
    avals = closed.in_avals
    nonzero_out: list[bool] = []

    def fun(*args: Any) -> list[Any]:
        primals, given = args[: len(avals)], iter(args[len(avals) :])
        tangents = [
            next(given) if nz else Zero(a.tangent()) for nz, a in zip(nonzero, avals, strict=True)
        ]
        outs, out_tangents, _ = jvp_call(
            lambda *xs: eval_at_own_lines(closed.jaxpr, closed.consts, xs, current_trace()),
            primals,
            tangents,
        )
        nonzero_out.extend(
            type(t) is not Zero or f for t, f in zip(out_tangents, force, strict=True)
        )
        return outs + [
            instantiate(t) for t, nz in zip(out_tangents, nonzero_out, strict=True) if nz
        ]

    in_avals = avals + [a.tangent() for a, nz in zip(avals, nonzero, strict=True) if nz]
    jaxpr, consts = stage(fun, in_avals, use=use)
    jaxpr.debug = derived(closed.jaxpr, results=len(jaxpr.outvars))
    result = ClosedJaxpr(jaxpr, consts), nonzero_out
    if use is None or not (use.written or use.fixed):
        closed.cache[key] = result
    return result
