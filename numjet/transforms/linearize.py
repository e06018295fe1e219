"""Partial evaluation, and linearization with it.

A function of known and unknown values is run once: what depends on known values alone happens under
the parent trace at once, what depends on unknown ones is recorded. With primals known and tangents
unknown, the record is the linear part of the function, which `transforms.transpose` turns round.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from numjet.base.class_names import shown_as
from numjet.core import dtypes, hooks
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.debug_info import derived
from numjet.core.evaluate import evaluate
from numjet.core.jaxpr import (
    NO_EFFECTS,
    ClosedJaxpr,
    Eqn,
    Jaxpr,
    Literal,
    Var,
    eval_at_own_lines,
    note_form,
)
from numjet.core.lowering import Host
from numjet.core.names import current_names, named, transformation
from numjet.core.primitive import Primitive
from numjet.core.structural import INSTANTIATED
from numjet.core.trace import (
    EVAL,
    Trace,
    Tracer,
    current_trace,
    enter_trace,
    leave_trace,
    set_trace,
)
from numjet.transforms.jvp import JVPTrace, JVPTracer, split_outputs
from numjet.transforms.linear_steps import expanded
from numjet.transforms.stage import StageTrace, closed_over, stage

_new = object.__new__


@shown_as("JaxprTracer")
class PartialTracer(Tracer):
    """An unknown value: a variable of the record."""

    __slots__ = ("jaxpr_var", "aval")

    def __init__(self, trace: PartialTrace, var: Var) -> None:
        self.owner, self.jaxpr_var, self.aval = trace, var, var.aval

    def __repr__(self) -> str:
        return f"Traced<{self.aval}:JaxprTrace>"


class PartialTrace(Trace):
    """Known equations go to the parent, unknown ones to `tape`.

    A recorded equation's inputs are variables of the record, or known values as they are.
    """

    name = "linearization"

    def __init__(self, parent: Trace) -> None:
        self.parent = parent
        self.staging = parent.staging
        self.tape: list[Eqn] = []

    def new_unknown(self, aval: ShapedArray) -> PartialTracer:
        return PartialTracer(self, Var(aval))

    def is_unknown(self, x: Any) -> bool:
        return type(x) is PartialTracer and x.owner is self

    def process(self, primitive: Primitive, args: tuple, params: dict) -> Any:
        if primitive.higher_order:
            args, params = closed_over(args, params)
        for x in args:
            if type(x) is PartialTracer and x.owner is self:
                break
        else:
            parent = self.parent
            if type(parent) is StageTrace and primitive.stage is None:
                return parent.record(primitive, args, params)  # does not look at the current trace
            if parent is EVAL and not params and primitive.run is not None:
                return primitive.run(*args)
            if parent is EVAL and primitive.evaluate is None and type(primitive.loops) is not Host:
                # NumPy alone runs, which does not look either.
                return evaluate(primitive, args, params)
            token = enter_trace(parent)  # type: ignore[arg-type]
            try:
                return parent.process(primitive, args, params)  # type: ignore[union-attr]
            finally:
                leave_trace(token)
        if primitive.partial_eval is not None:
            return primitive.partial_eval(self, args, params)
        return self.record(primitive, args, params)

    def record(self, primitive: Primitive, args: Sequence[Any], params: dict) -> Any:
        """Write the equation down; outputs are unknown."""
        inputs: list[Any] = []
        avals = []
        for x in args:
            if type(x) is PartialTracer and x.owner is self:
                x = x.jaxpr_var
            elif not isinstance(x, Array):
                x = as_array(x)
            inputs.append(x)
            avals.append(x.aval)
        out = primitive.out_avals(tuple(avals), params)
        effects = primitive.effects
        if effects is not NO_EFFECTS:
            effects = primitive.effects_of(params, tuple(avals))
        source = None
        if self.staging is not None:
            source = self.staging.source
            if source is None and current_names.get().scoped:
                source = named(hooks.user_line())
        if primitive.multiple_results:
            outvars = [Var(aval) for aval in out]
            self.tape.append(Eqn(inputs, outvars, primitive, params, effects, source))
            return [PartialTracer(self, v) for v in outvars]
        # The constructors written out, as in `StageTrace.record`.
        var = _new(Var)
        var.aval = out
        eqn = _new(Eqn)
        eqn.invars, eqn.outvars, eqn.primitive = inputs, [var], primitive
        eqn.params, eqn.effects, eqn.source = params, effects, source
        self.tape.append(eqn)
        tracer = _new(PartialTracer)
        tracer.owner, tracer.jaxpr_var, tracer.aval = self, var, out
        return tracer


def live_tape(tape: Sequence[Eqn], outs: Sequence[Any]) -> list[Eqn]:
    """The equations of `tape` that `outs` (variables) depend on, or that have effects."""
    needed = {v for v in outs if type(v) is Var}
    kept = []
    for eqn in reversed(tape):
        if not eqn.effects:
            for out in eqn.outvars:
                if out in needed:
                    break
            else:
                continue
        for v in eqn.invars:
            if type(v) is Var:
                needed.add(v)
        kept.append(eqn)
    kept.reverse()
    return kept


def tape_to_jaxpr(
    tape: Sequence[Eqn],
    invars: Sequence[Var],
    outs: Sequence[Any],
    arguments: Container[int] | None = (),
) -> tuple[Jaxpr, list[Any]]:
    """A jaxpr of (residuals, *invars) from recorded equations; returns it with the residual values.

    `outs` are variables or known values. Arrays without dimensions are literals, but for those
    whose ids are among `arguments`; None: none are.
    """
    tape = live_tape(expanded(tape), outs)
    residual_of: dict[int, Var] = {}
    residuals: list[Any] = []

    def atom(x: Any) -> Any:
        if type(x) is Var:
            return x
        if not isinstance(x, Tracer):
            if not isinstance(x, ArrayImpl):
                x = as_array(x)
            if not x.aval.shape and arguments is not None and id(x) not in arguments:
                return Literal(x, x.aval)
        var = residual_of.get(id(x))
        if var is None:
            var = residual_of[id(x)] = Var(x.aval)
            residuals.append(x)
        return var

    eqns = [eqn.replace(invars=[atom(x) for x in eqn.invars]) for eqn in tape]
    outvars = [atom(x) for x in outs]
    return Jaxpr([], [*residual_of.values(), *invars], outvars, eqns), residuals


def of_residuals(jaxpr: Jaxpr, count: int) -> Jaxpr:
    """A jaxpr of residuals and `count` others, as one whose constants are the residuals."""
    first = len(jaxpr.invars) - count
    return jaxpr.replace(constvars=jaxpr.invars[:first], invars=jaxpr.invars[first:])


class Linearized:
    """The result of linearizing a flat function: primal outputs and the recorded linear part.

    `in_vars` are the tangent variables (one for each nonzero input tangent), `out_tangents` a
    variable, a known value or a `Zero` for each output.
    """

    __slots__ = ("outs", "tape", "in_vars", "out_tangents")

    def __init__(self, outs: list, tape: list, in_vars: list, out_tangents: list) -> None:
        self.outs, self.tape, self.in_vars, self.out_tangents = outs, tape, in_vars, out_tangents


def linearize(
    fun: Callable, primals: Sequence[Any], make: Callable[[PartialTrace], JVPTrace] = JVPTrace
) -> Linearized:
    """Run flat `fun` at `primals`, recording the part linear in the tangents. `make` makes the
    trace of both."""
    partial = PartialTrace(current_trace())
    trace = make(partial)
    in_vars, ins = [], []
    for x in primals:
        tangent = partial.new_unknown(x.aval.tangent())
        in_vars.append(tangent.jaxpr_var)
        ins.append(x if tangent.aval.dtype == dtypes.float0 else JVPTracer(trace, x, tangent))
    with set_trace(trace), transformation("jvp"):
        outs = fun(*ins)
    primal_outs, tangents = split_outputs(trace, outs)
    out_tangents = [
        t.jaxpr_var if type(t) is PartialTracer and t.owner is partial else t for t in tangents
    ]
    return Linearized(primal_outs, partial.tape, in_vars, out_tangents)


def partial_eval_jaxpr(
    closed: ClosedJaxpr,
    unknown: Sequence[bool],
    instantiate_out: bool | Sequence[bool] = False,
    keep_zeros: bool = False,
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], list[ShapedArray]]:
    """Split a jaxpr by which inputs are known.

    Returns `known` (known inputs -> known outputs, residuals), `unknown` (residuals, unknown inputs
    -> unknown outputs), which outputs are unknown, and the residuals' avals. `instantiate_out`
    forces outputs to be unknown; with `keep_zeros` symbolic zeros that were made arrays are
    residuals.
    Remembered with the jaxpr.
    """
    n_out = len(closed.jaxpr.outvars)
    force = (
        [instantiate_out] * n_out if isinstance(instantiate_out, bool) else list(instantiate_out)
    )
    key = ("partial_eval", tuple(unknown), tuple(force), keep_zeros)
    note_form(closed)
    found = closed.cache.get(key)
    if found is not None:
        note_form(found[0])
        return found
    record: dict[str, Any] = {}

    def known_fun(*known_args: Any) -> list[Any]:
        trace = PartialTrace(current_trace())
        given = iter(known_args)
        ins, in_vars = [], []
        for aval, unk in zip(closed.in_avals, unknown, strict=True):
            if unk:
                tracer = trace.new_unknown(aval)
                in_vars.append(tracer.jaxpr_var)
                ins.append(tracer)
            else:
                ins.append(next(given))
        with set_trace(trace):
            outs = eval_at_own_lines(closed.jaxpr, closed.consts, ins, trace)
        is_unknown = [trace.is_unknown(x) or f for x, f in zip(outs, force, strict=True)]
        unknown_outs = [
            x.jaxpr_var if trace.is_unknown(x) else x
            for x, unk in zip(outs, is_unknown, strict=True)
            if unk
        ]
        kept = INSTANTIATED if keep_zeros else ()
        jaxpr, residuals = tape_to_jaxpr(trace.tape, in_vars, unknown_outs, kept)
        record.update(jaxpr=jaxpr, unknown=is_unknown, avals=[r.aval for r in residuals])
        return [x for x, unk in zip(outs, is_unknown, strict=True) if not unk] + residuals

    known_avals = [a for a, unk in zip(closed.in_avals, unknown, strict=True) if not unk]
    jaxpr, consts = stage(known_fun, known_avals)
    jaxpr.debug = record["jaxpr"].debug = derived(closed.jaxpr)
    result = (
        ClosedJaxpr(jaxpr, consts),
        ClosedJaxpr(record["jaxpr"], []),
        record["unknown"],
        record["avals"],
    )
    closed.cache[key] = result
    return result
