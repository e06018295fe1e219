"""Linearization of concrete values, by rules that are derived once and then run as they are.

A function that is differentiated again and again without being compiled meets the same primitives
at the same avals. `LinearizeTrace` runs a `Rule` for such an operation, and takes the general way,
through the primitive's jvp rule and partial evaluation, until there is one. A rule is derived by
staging just that way and its transpose, and written as Python functions that call what evaluates
each equation. It holds whatever the values: jvp and transpose rules never look at them.

What would break it: a primitive's rule that depends on more than avals, params and traced flags.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from numjet.base import config
from numjet.base.class_names import shown_as
from numjet.core import dtypes, hooks
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.deferred import DeferredArray, Plan
from numjet.core.evaluate import executor
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from numjet.core.lowering import Host
from numjet.core.memo import Memo
from numjet.core.primitive import Primitive, Zero
from numjet.core.sharded import ShardedArray
from numjet.core.structural import broadcast_in_dim_p
from numjet.core.trace import (
    EVAL,
    Tracer,
    aval_of,
    current_trace,
    enter_trace,
    leave_trace,
    set_trace,
)
from numjet.transforms import linearize as general
from numjet.transforms.jvp import JVPTrace, JVPTracer
from numjet.transforms.linear_steps import LinearStep, Rule
from numjet.transforms.linearize import Linearized, PartialTrace, PartialTracer, tape_to_jaxpr
from numjet.transforms.replay import ReplayTrace
from numjet.transforms.simplify import dce_jaxpr
from numjet.transforms.stage import StageTrace, stage
from numjet.transforms.transpose import transpose_jaxpr

CHECKS = config.numeric_checks
# Deriving a rule takes as long as some ten uses of an operation without it.
USES_BEFORE_DERIVING = 8
# Values of the traced flags, and what makes executors (rules hold these, and native ones come after
# a while: `hooks.executor`) -> (primitive, avals, which operands are active, params) -> a Rule, the
# number of uses while there is none yet, or None where there can be none.
_rules: dict[tuple, dict[tuple, Any]] = {}
_NAME = "rules of eager differentiation"
_new = object.__new__


@shown_as("LinearizeTracer")
class LinearTracer(Tracer):
    """A concrete primal; `tangent` is a variable of the record, or a known value."""

    __slots__ = ("primal", "tangent", "aval")

    def __init__(self, trace: LinearizeTrace, primal: Any, tangent: Any) -> None:
        self.owner, self.primal, self.tangent = trace, primal, tangent
        self.aval = primal.aval

    def concrete(self) -> Any:
        return self.primal

    def differentiated(self) -> bool:
        return True  # values whose tangent is zero are no tracers of this trace

    def __repr__(self) -> str:
        tangent = self.aval.tangent().str_short(True)
        return f"GradTracer(primal={self.primal}, typeof(tangent)={tangent})"

    def origin(self) -> str:
        return self.owner.origin()


class LinearizeTrace(JVPTrace):
    """Evaluates primals and records the linear part in the parent, a `PartialTrace` where nothing
    else traces."""

    at_once = True

    def __init__(self, parent: PartialTrace) -> None:
        super().__init__(parent)
        key = config.trace_key(), hooks.executor
        rules = _rules.get(key)
        if rules is None:
            rules = _rules.setdefault(key, Memo(_NAME))
        self.rules: dict[tuple, Any] = rules
        self.tape: list[Any] = parent.tape

    def process(
        self, primitive: Any, args: tuple, params: dict, forward: Callable | None = None
    ) -> Any:
        """`primitive` on these operands; where its rule needs nothing of the primals, `forward` of
        them is the primal result."""
        if primitive.higher_order or CHECKS[0]:
            return self.derived(primitive, args, params)
        key: list[Any] = [primitive]
        primals, variables = [], []
        mask, bit = 0, 1
        for x in args:
            if type(x) is LinearTracer and x.owner is self:
                var = x.tangent
                aval = x.aval
                if type(var) is not Var or var.aval is not aval:
                    return self.derived(primitive, args, params)
                variables.append(var)
                mask |= bit
                x = x.primal
                if type(x) is ShardedArray:
                    return self.derived(primitive, args, params)
            elif type(x) is ArrayImpl or type(x) is DeferredArray:
                aval = x.aval
            else:
                return self.derived(primitive, args, params)
            primals.append(x)
            key.append(aval)
            bit += bit
        if not mask or primitive.jvp is None:
            return self.parent.process(primitive, tuple(primals), params)
        key.append(mask)
        if params:
            key.extend(params.items())
        found = tuple(key)
        rule = self.rules.get(found)
        if type(rule) is not Rule:
            out = self.derived(primitive, args, params)
            if rule is not None or found not in self.rules:
                avals = key[1 : 1 + len(args)]
                _count(self.rules, found, rule or 0, primitive, avals, mask, params)
            return out
        out, residuals = (forward(*primals), ()) if forward else rule.forward(*primals)
        if rule.aval is None:
            return out
        if rule.alias is None:
            tangent = _new(Var)
            tangent.aval = rule.aval
            self.tape.append(LinearStep(rule, residuals, variables, tangent))
        else:
            tangent = variables[rule.alias]
        tracer = _new(LinearTracer)
        tracer.owner, tracer.primal, tracer.tangent, tracer.aval = self, out, tangent, out.aval
        return tracer

    def derived(self, primitive: Primitive, args: tuple, params: dict) -> Any:
        """`process` by the primitive's jvp rule."""
        parent: Any = self.parent
        primals: list[Any] = []
        tangents: list[Any] = []
        active = False
        for x in args:
            if type(x) is LinearTracer and x.owner is self:
                tangent = x.tangent
                primals.append(x.primal)
                tangents.append(PartialTracer(parent, tangent) if type(tangent) is Var else tangent)
                active = True
            else:
                x = x if hasattr(x, "aval") else as_array(x)
                primals.append(x)
                tangents.append(Zero((x.aval if isinstance(x, Array) else aval_of(x)).tangent()))
        token = enter_trace(parent)
        try:
            if not active or primitive.jvp is None:
                return parent.process(primitive, tuple(primals), params)
            out, tangent = primitive.jvp(tuple(primals), tuple(tangents), **params)
        finally:
            leave_trace(token)
        if primitive.multiple_results:
            return [self._pair(p, t) for p, t in zip(out, tangent, strict=True)]
        return self._pair(out, tangent)

    def _pair(self, out: Any, tangent: Any) -> Any:
        if type(tangent) is Zero:
            return out
        if type(tangent) is PartialTracer and tangent.owner is self.parent:
            tangent = tangent.jaxpr_var
        return LinearTracer(self, out, tangent)

    def repeat(self, x: Any, shape: tuple[int, ...]) -> Any:
        """`x` repeated to a shape, for an operation on an operand whose value is not there yet:
        written down where x is small, too, since NumPy's view would be no row of the tape."""
        aval = x.aval
        if aval.shape == shape:
            return x
        known = _repeats.get((aval, shape))
        if known is None:
            first = len(shape) - aval.ndim
            params = {"shape": shape, "broadcast_dimensions": tuple(range(first, len(shape)))}
            run = executor(broadcast_in_dim_p, (aval,), params)
            out = aval.update(shape=shape)
            later = hooks.planned(broadcast_in_dim_p, (aval,), params, out, True, run)
            known = _repeats[aval, shape] = params, later or run
        return self.process(broadcast_in_dim_p, (x,), *known)


# Repeated operands: by aval and shape, the params and what writes them down.
_repeats: dict[tuple, tuple] = Memo("repeated operands of deferred operations")


def is_deferred(x: Any) -> bool:
    """Whether a value, or a tracer's, is not there yet."""
    return type(x.primal if type(x) is LinearTracer else x) is DeferredArray


def _lifted(trace: LinearizeTrace, primals: Sequence[Any]) -> tuple[list[Var], list[Any]]:
    """Variables for the primals' tangents, and the primals with these."""
    in_vars, ins = [], []
    for x in primals:
        # The constructors written out: a network has many parameters.
        var = _new(Var)
        var.aval = aval = x.aval.tangent()
        in_vars.append(var)
        if aval is not x.aval and aval.dtype == dtypes.float0:
            ins.append(x)
            continue
        tracer = _new(LinearTracer)
        tracer.owner, tracer.primal, tracer.tangent, tracer.aval = trace, x, var, x.aval
        ins.append(tracer)
    return in_vars, ins


def linearize(fun: Callable, primals: Sequence[Any]) -> Linearized:
    """Run flat `fun` at `primals`, recording the part linear in the tangents."""
    current = current_trace()
    if current is not EVAL:
        return general.linearize(
            fun, primals, ReplayTrace if type(current) is StageTrace else JVPTrace
        )
    partial = PartialTrace(EVAL)
    trace = LinearizeTrace(partial)
    ins = hooks.lifted(trace, primals)
    if ins is None:
        in_vars, ins = _lifted(trace, primals)
    else:
        in_vars = [x.tangent for x in ins]
    token = enter_trace(trace)
    try:
        results = fun(*ins)
    finally:
        leave_trace(token)
    outs: list[Any] = []
    tangents: list[Any] = []
    for x in results:
        if type(x) is LinearTracer and x.owner is trace:
            outs.append(x.primal)
            tangents.append(x.tangent)
        else:
            outs.append(x)
            tangents.append(Zero(aval_of(x).tangent()))
    return Linearized(outs, partial.tape, in_vars, tangents)


# ------------------------------------------------------------------ functions as one operation
class Whole:
    """A function of arrays that is linearized as one operation: to rules, a primitive."""

    __slots__ = ("bind",)
    name, multiple_results, higher_order, jvp = "function", False, False, True

    def __init__(self, bind: Callable) -> None:
        self.bind = bind


def linearized(trace: LinearizeTrace, whole: Whole, *args: Any) -> Any:
    """`whole` of these operands by a rule; None where it is to be bound."""
    if CHECKS[0]:
        return None
    key: list[Any] = [whole]
    mask, bit = 0, 1
    for x in args:
        if type(x) is LinearTracer:
            var = x.tangent
            if x.owner is not trace or type(var) is not Var or var.aval is not x.aval:
                return None
            mask |= bit
            if type(x.primal) not in _UNSHARDED:
                return None
        elif type(x) not in _UNSHARDED:
            return None
        key.append(x.aval)
        bit += bit
    if not mask:
        return None
    key.append(mask)
    found = tuple(key)
    rule = trace.rules.get(found)
    if type(rule) is Rule:
        return trace.process(whole, args, {})
    if rule is not None or found not in trace.rules:
        _count(trace.rules, found, rule or 0, whole, key[1:-1], mask, {})
    return None


_UNSHARDED = (ArrayImpl, DeferredArray)


# ------------------------------------------------------------------ making rules
def _count(
    rules: dict,
    key: tuple,
    uses: int,
    primitive: Primitive | Whole,
    avals: Sequence[Any],
    mask: int,
    params: dict,
) -> None:
    """Note a use of an operation without a rule; derive it when there were enough."""
    if uses < USES_BEFORE_DERIVING:
        rules[key] = uses + 1
        return
    token = enter_trace(EVAL)
    rule = None
    try:
        rule = derive(primitive, avals, mask, params)
    except (TypeError, ValueError, IndexError, NotImplementedError):
        # Of a function that asks for values, or has several results: it is called each time.
        if type(primitive) is not Whole:
            raise
    finally:
        leave_trace(token)
    rules[key] = rule


class _NoRule(Exception):
    """The tangent is not an unknown value."""


def derive(
    primitive: Primitive | Whole, avals: Sequence[Any], mask: int, params: dict
) -> Rule | None:
    """The rule of `primitive` at operands of these avals; bit i of `mask`: operand i is active.

    None where its equations are more than calls of NumPy.
    """
    if primitive.multiple_results:
        return None
    linear: Any = None

    def run(*primals: Any) -> list[Any]:
        nonlocal linear
        partial = PartialTrace(current_trace())
        trace = JVPTrace(partial)
        ins, variables = [], []
        for i, x in enumerate(primals):
            if mask >> i & 1:
                unknown = partial.new_unknown(x.aval.tangent())
                variables.append(unknown.jaxpr_var)
                x = JVPTracer(trace, x, unknown)
            ins.append(x)
        with set_trace(trace):
            out = primitive.bind(*ins, **params)
        if type(out) is not JVPTracer:
            return [out]
        if type(out.tangent) is not PartialTracer:
            raise _NoRule
        linear, residuals = tape_to_jaxpr(partial.tape, variables, [out.tangent.jaxpr_var])
        return [out.primal, *residuals]

    try:
        known, consts = stage(run, avals, primitive.name)
    except _NoRule:
        return None
    if any([eqn.primitive.name == "custom_jvp_call" for eqn in known.eqns]):
        whole, held = known, consts
        known, consts = stage(lambda *xs: _plainly(whole, held, xs), avals, primitive.name)
    known, _ = dce_jaxpr(known)
    out, residuals = known.outvars[0], known.outvars[1:]
    forward = written(known, consts, known.invars, out, residuals)
    if forward is None or linear is None:
        return forward and _with_plan(Rule(forward, None, None, None, None), known, consts)
    (tangent,) = linear.outvars
    tangents = linear.invars[len(residuals) :]
    if tangent in tangents:
        rule = Rule(forward, None, linear, tangent.aval, tangents.index(tangent))
        return _with_plan(rule, known, consts)
    reverse = reversed_part(linear, len(tangents))
    if reverse is None:
        return None
    jaxpr, parts = reverse
    *given, ct = jaxpr.invars
    backward = written(jaxpr, [], [ct], None, parts, given)
    if backward is None:
        return None
    rule = Rule(forward, backward, linear, tangent.aval, None, reverse)
    return _with_plan(rule, known, consts)


def _plainly(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """A jaxpr of values that nobody differentiates any more: functions with derivative rules of
    their own are what they are made of."""
    variables = [*jaxpr.constvars, *jaxpr.invars]
    env: dict[Any, Any] = dict(zip(variables, [*consts, *args], strict=True))
    for eqn in jaxpr.eqns:
        values = [v.value if type(v) is Literal else env[v] for v in eqn.invars]
        inner = eqn.params.get("call_jaxpr")
        if eqn.primitive.name == "custom_jvp_call" and type(inner) is ClosedJaxpr:
            outs = _plainly(inner.jaxpr, inner.consts, values)
        else:
            found = eqn.primitive.bind(*values, **eqn.params)
            outs = found if eqn.primitive.multiple_results else [found]
        env.update(zip(eqn.outvars, outs, strict=True))
    return [v.value if type(v) is Literal else env[v] for v in jaxpr.outvars]


def _with_plan(rule: Rule, known: Jaxpr, consts: Sequence[Any]) -> Rule:
    """The rule, with what `forward` does (`known`) as a plan, if it can be written down."""
    if known.eqns and not any([eqn.primitive.multiple_results for eqn in known.eqns]):
        jaxpr = _in_place(known, consts)
        if jaxpr is not None:
            plan, gives = plan_of(jaxpr.invars, jaxpr.eqns, jaxpr.outvars)
            if hooks.prepare(plan):
                rule.plan, rule.constants = plan, plan.constants
                rule.gives = tuple([k for k in gives if k is not None])
    return rule


def _in_place(jaxpr: Jaxpr, consts: Sequence[Any]) -> Jaxpr | None:
    """A jaxpr with its constants written in place; None where one is no concrete array."""
    if not consts:
        return jaxpr
    if not all([type(x) is ArrayImpl for x in consts]):
        return None
    values: dict[Any, Any] = {
        v: Literal(x, v.aval) for v, x in zip(jaxpr.constvars, consts, strict=True)
    }

    def atom(x: Any) -> Any:
        return x if type(x) is Literal else values.get(x, x)

    eqns = [eqn.replace(invars=list(map(atom, eqn.invars))) for eqn in jaxpr.eqns]
    return jaxpr.replace(constvars=[], eqns=eqns, outvars=list(map(atom, jaxpr.outvars)))


def reversed_part(linear: Jaxpr, n: int) -> tuple[Jaxpr, list] | None:
    """A linear jaxpr turned round: that of its first inputs and a cotangent, with constants written
    in place, and the atoms that are the cotangents of the last `n` inputs (None: zero). None where
    a constant is no concrete array."""
    r = len(linear.invars) - n
    unknown = [i >= r for i in range(len(linear.invars))]
    closed, nonzero = transpose_jaxpr(ClosedJaxpr(linear, []), unknown, [True])
    jaxpr, _ = dce_jaxpr(closed.jaxpr)
    jaxpr = jaxpr.replace(eqns=_without_turns(jaxpr))
    placed = _in_place(jaxpr, closed.consts)
    if placed is None:
        return None
    jaxpr = placed
    given = iter(jaxpr.outvars)
    return jaxpr, [next(given) if there else None for there in nonzero]


def _without_turns(jaxpr: Jaxpr) -> list[Eqn]:
    """The equations, with matrix products that only a transposition reads done the other way round,
    so that gradients of weights lie in memory as the weights do."""
    uses = Counter([v for eqn in jaxpr.eqns for v in eqn.invars] + jaxpr.outvars)
    eqns: list[Eqn] = []
    for eqn in jaxpr.eqns:
        last = eqns[-1] if eqns else None
        if (
            last is None
            or (last.primitive.name, eqn.primitive.name) != ("dot_general", "transpose")
            or eqn.invars[0] is not last.outvars[0]
            or uses[last.outvars[0]] != 1
            or eqn.params["permutation"] != (1, 0)
            or last.params["dimension_numbers"][1] != ((), ())
        ):
            eqns.append(eqn)
            continue
        (left, right), batch = last.params["dimension_numbers"]
        precision = last.params["precision"]
        params = last.params | {
            "dimension_numbers": ((right, left), batch),
            "precision": precision[::-1] if type(precision) is tuple else precision,
        }
        eqns[-1] = last.replace(invars=last.invars[::-1], outvars=eqn.outvars, params=params)
    return eqns


def plan_of(
    ins: list[Var], eqns: Sequence[Eqn], outs: Sequence[Any]
) -> tuple[Plan, list[int | None]]:
    """The equations as a plan, and which of its values `outs` are: operands, constants, and those
    that it gives."""
    constants: list[ArrayImpl] = []
    at: dict[Any, int] = {v: k for k, v in enumerate(ins)}
    atoms = [x for eqn in eqns for x in eqn.invars] + [x for x in outs if x is not None]
    for x in atoms:
        if type(x) is Literal and id(x) not in at:
            at[id(x)] = len(ins) + len(constants)
            constants.append(x.value)
    n = len(ins) + len(constants)

    def place(x: Any) -> int:
        return at[id(x) if type(x) is Literal else x]

    equations = []
    for k, eqn in enumerate(eqns):
        (out,) = eqn.outvars
        places = tuple([place(x) for x in eqn.invars])
        equations.append((eqn.primitive, eqn.params, places, out.aval))
        at[out] = n + k
    kept = sorted({place(x) - n for x in outs if x is not None and place(x) >= n})
    plan = Plan([v.aval for v in ins], constants, equations, frozenset(kept))
    rank = {k + n: n + r for r, k in enumerate(kept)}
    return plan, [None if x is None else rank.get(place(x), place(x)) for x in outs]


def written(
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    arguments: Sequence[Var],
    first: Any,
    outs: Sequence[Any],
    residuals: Sequence[Var] = (),
) -> Callable | None:
    """A Python function of `arguments` (and the values of `residuals` as a tuple, if there are any)
    that runs the equations and returns a tuple of `outs`, with `first` before it unless None.

    None where an equation is more than a call of NumPy.
    """
    space: dict[str, Any] = {}
    names: dict[Any, str] = {None: "None"}

    def constant(value: Any) -> str:
        name = f"c{len(space)}"
        space[name] = value
        return name

    def name(v: Any) -> str:
        return constant(v.value) if type(v) is Literal else names.setdefault(v, f"v{len(names)}")

    def several(values: Sequence[Any]) -> str:
        return f"({''.join([f'{name(v)}, ' for v in values])})"

    for v, value in zip(jaxpr.constvars, consts, strict=True):
        if type(value) is not ArrayImpl:
            return None
        names[v] = constant(value)
    heads, lines = [name(v) for v in arguments], []
    if first is None:
        heads.append("residuals")
        if residuals:
            lines.append(f"{several(residuals)} = residuals")
    last: dict[Any, int] = {
        v: k for k, eqn in enumerate(jaxpr.eqns) for v in eqn.invars if type(v) is Var
    }
    made, needed = set(), {first, *outs}
    for k, eqn in enumerate(jaxpr.eqns):
        primitive = eqn.primitive
        if primitive.evaluate is not None or primitive.multiple_results or eqn.effects:
            return None
        if primitive.lays_out or type(primitive.loops) is Host:
            return None
        run = executor(primitive, tuple([v.aval for v in eqn.invars]), eqn.params)
        args = ", ".join([name(v) for v in eqn.invars])
        lines.append(f"{name(eqn.outvars[0])} = {constant(run)}({args})")
        gone = [v for v in dict.fromkeys(eqn.invars) if v in made and last[v] == k]
        if gone:
            lines.append(f"del {', '.join(map(name, gone))}")
        made.update([v for v in eqn.outvars if v not in needed])
    lines.append(
        f"return {several(outs)}" if first is None else f"return {name(first)}, {several(outs)}"
    )
    body = "\n    ".join(lines)
    code = compile(f"def rule({', '.join(heads)}):\n    {body}\n", "<numjet rule>", "exec")
    exec(code, space)
    return space["rule"]
