"""Staging: run a Python function once on tracers and write down what it does as a jaxpr.

Used by jit, control flow and every transformation that works on jaxprs. A staged equation records
all that was bound while the trace was current; arrays met on the way become constants (constvars),
arrays without dimensions literals.
"""

from __future__ import annotations

import enum
import functools
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.base import config, errors, tree
from numjet.base.class_names import shown_as
from numjet.base.name_stack import NameStack
from numjet.core import dtypes, hooks
from numjet.core.array import ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.debug_info import Tracing
from numjet.core.jaxpr import (
    ASKED,
    CALLS,
    NO_EFFECTS,
    ClosedJaxpr,
    Eqn,
    Jaxpr,
    Literal,
    Var,
    eval_jaxpr,
)
from numjet.core.jaxpr_check import check_jaxpr
from numjet.core.lowering import Expand
from numjet.core.names import current_names, name_equations, names_set
from numjet.core.primitive import Met, Primitive
from numjet.core.ref_equations import (
    INTERNAL,
    Made,
    RefPrimitive,
    made,
    of_inputs,
    on_operands,
    run_state_p,
)
from numjet.core.refs import Cell, Ref, RefUse, made_around, read_under, variable_of
from numjet.core.shared import NOTHING_MANUAL, Flow
from numjet.core.stretched import written_out_param
from numjet.core.structural import convert
from numjet.core.trace import (
    Trace,
    Tracer,
    aval_of,
    current_trace,
    folding,
    leaked,
    set_trace,
    user_source,
)

_new = object.__new__
# Equations of a trace that is worth native code.
_LONG = 20


@shown_as("DynamicJaxprTracer")
class StageTracer(Tracer):
    """A variable of the jaxpr being built."""

    __slots__ = ("jaxpr_var", "aval", "source")
    source: Any

    def __init__(self, trace: StageTrace, var: Var, source: Any = None) -> None:
        self.owner, self.jaxpr_var, self.aval, self.source = trace, var, var.aval, source

    def origin(self) -> str:
        return self.owner.describe(self)

    def traced_in(self) -> str:
        traced = self.owner.names
        return f"{traced.where()} traced for {traced.label}" if traced else self.owner.fun_name

    def __repr__(self) -> str:
        return f"JitTracer({self.aval})"

# What is traced, for messages.
Names = Tracing | None


class StageTrace(Trace):
    """Records equations. `names` tell of what, for error messages.

    `record` may be native code (`native.record`), which finds what it needs by `native`.
    """

    __slots__ = (
        "parent", "staging", "fun_name", "names", "eqns", "invars", "constvars", "consts",
        "_const_of", "effects", "source", "done", "refs", "forms", "own", "flows", "marks",
        "outermost", "calls",
    )  # fmt: skip
    name = "staging"

    def __init__(
        self, fun_name: str = "", names: Names = None, flows: dict[Any, Flow] | None = None
    ) -> None:
        self.parent = current_trace()
        self.staging = self
        self.fun_name, self.names = fun_name, names
        self.eqns: list[Eqn] = []
        self.invars: list[Var] = []
        self.constvars: list[Var] = []
        self.consts: list[Any] = []
        self._const_of: dict[int, Var] = {}
        self.effects: frozenset = NO_EFFECTS
        # The line that equations come from, where a transformation knows it; else it is looked up.
        self.source: Any = None
        self.done = False
        # References from outside that were used here, with what they hold; None: none was.
        self.refs: dict[Ref, Cell] | None = None
        # Whether a jaxpr of these references may be made: its inputs may be references.
        self.outermost = False
        # Of values from outside that got another form in here (`core.hi`): one of its references.
        self.forms: dict[int, Ref] | None = None
        # Those that were made in here, by their ids.
        self.own: dict[int, Any] = {}
        # What varies along axes of `shard_map`; None: nobody knows (`transforms.varying`).
        self.flows = flows
        # Where the names of scopes changed: how many equations there were, and the names.
        self.marks: list[tuple[int, NameStack]] = []
        # Calls that the other form writes otherwise (`apart`); None where nobody keeps them.
        self.calls: list[Apart] | None = None

    def new_arg(self, aval: ShapedArray) -> StageTracer:
        if type(aval) is ShapedArray and aval.manual_axis_type is not NOTHING_MANUAL:
            aval = aval.update_manual_axis_type(NOTHING_MANUAL)
        var = Var(aval)
        self.invars.append(var)
        return StageTracer(self, var)

    def atom(self, x: Any) -> Any:
        """The variable or literal for a value met while this trace is current."""
        if type(x) is StageTracer:
            if x.owner is self:
                return x.jaxpr_var
            if x.owner.done:
                raise leaked(x, f"While tracing {self.fun_name or 'a function'}")
        elif isinstance(x, Tracer):
            self.check_encloses(x)
        else:
            if type(x) is not ArrayImpl:
                x = as_array(x)
            if not (x.aval.shape or dtypes.is_key(x.aval.dtype) and config.jax_form()):
                return Literal(x, x.aval)
        var = self._const_of.get(id(x))
        if var is None:
            var = self._const_of[id(x)] = Var(x.aval)
            self.constvars.append(var)
            self.consts.append(x)  # keeps x alive, so its id stays its own
        return var

    def variables(self, values: Sequence[Any]) -> list[Any] | None:
        """The values with variables in place of tracers, also in slices; None where there are
        tracers of another trace."""
        found = list(values)
        for i, x in enumerate(values):
            if type(x) is StageTracer:
                if x.owner is not self:
                    return None
                found[i] = x.jaxpr_var
            elif type(x) is slice:
                parts = self.variables((x.start, x.stop, x.step))
                if parts is None or any([isinstance(part, Tracer) for part in parts]):
                    return None
                found[i] = slice(*parts)
        return found

    def check_encloses(self, x: Tracer) -> None:
        """Raise UnexpectedTracerError unless `x` belongs to a trace around this one."""
        trace = self.parent
        while trace is not None:
            if trace is x.owner or trace.root is not None and trace.root is x.owner.root:
                return
            trace = trace.parent
        raise leaked(x, f"While tracing {self.fun_name or 'a function'}")

    def process(self, primitive: Primitive, args: tuple, params: dict) -> Any:
        if primitive.stage is not None:
            return primitive.stage(self, args, params)
        return self.record(primitive, args, params)

    def record(
        self, primitive: Primitive, args: Sequence[Any], params: dict, out: Any = None
    ) -> Any:
        """Append the equation and return tracers for its outputs.

        `out` is the aval of its one output where the caller knows it.
        """
        if self.done:
            raise errors.UnexpectedTracerError(
                f"{primitive.name}: the trace of {self.fun_name or 'a function'} has ended; a "
                "tracer or a generator outlived it. Return values instead of storing them."
            )
        if primitive.higher_order:
            args, params = closed_over(args, params)
        invars: list[Any] = []
        for x in args:
            if type(x) is StageTracer and x.owner is self:
                invars.append(x.jaxpr_var)
            else:
                invars.append(self.atom(x))
        if out is None:
            out = primitive.out_avals(tuple([var.aval for var in invars]), params)
        effects = primitive.effects
        if effects is not NO_EFFECTS:
            effects = primitive.effects_of(params, tuple([var.aval for var in invars]))
            if primitive.higher_order and effects:
                effects = on_operands(effects, params, invars)
            self.effects = self.effects | effects
        source = self.source or user_source(3)
        if primitive.multiple_results:
            outvars = [Var(aval) for aval in out]
            self.eqns.append(Eqn(invars, outvars, primitive, params, effects, source))
            return [StageTracer(self, v, source) for v in outvars]
        # The constructors written out: calling three of them is half of what an equation costs.
        var = _new(Var)
        var.aval = out
        eqn = _new(Eqn)
        eqn.invars, eqn.outvars, eqn.primitive = invars, [var], primitive
        eqn.params, eqn.effects, eqn.source = params, effects, source
        self.eqns.append(eqn)
        tracer = _new(StageTracer)
        tracer.owner, tracer.jaxpr_var, tracer.aval, tracer.source = self, var, out, source
        return tracer

    def record_effect(
        self, primitive: RefPrimitive, args: Sequence[Any], params: dict, aval: Any = None
    ) -> Any:
        """Append an equation on the reference that is the first of the operands; `aval`: that of a
        new one."""
        if not Made.any:
            made()
        invars = [self.atom(x) for x in args]
        if aval is None:
            aval = primitive.out_avals(tuple([var.aval for var in invars]), params)
        effect = primitive.effect
        effects = NO_EFFECTS
        if primitive is not run_state_p:
            effects = frozenset((INTERNAL if effect is None else effect(invars[0]),))
        self.effects = self.effects | effects
        source = self.source or user_source(3)
        outvars = [Var(a) for a in (aval if primitive.multiple_results else [aval])]
        self.eqns.append(Eqn(invars, outvars, primitive, params, effects, source))
        outs = [StageTracer(self, v, source) for v in outvars]
        return outs if primitive.multiple_results else outs[0]

    def cell(self, ref: Ref, shown: bool = False) -> Cell:
        """What a reference from outside holds in here. shown: the variable that it is, if it is
        used for the first time."""
        if self.refs is None:
            self.refs = {}
        found = self.refs.get(ref)
        if found is None:
            aval: Any = ref.aval if shown else ref.aval.inner_aval
            start = StageTracer(self, Var(aval))
            found = self.refs[ref] = Cell(start, shown)
        return found

    def _close_refs(self, outs: Sequence[Any], use: RefUse | None) -> Sequence[Any]:
        """Make references that were used inputs or constants, what was written outputs."""
        cells, self.refs = self.refs or {}, None
        shown = [ref for ref, cell in cells.items() if cell.shown]
        variables = [cells[ref].start.jaxpr_var for ref in shown]
        written = [ref for ref, cell in cells.items() if cell.value is not cell.start]
        read = [ref for ref in cells if ref not in written and ref not in shown]
        if written and use is None:
            raise NotImplementedError(
                f"While tracing {self.fun_name or 'a function'}: a reference of type "
                f"{written[0].aval} from outside is written where its new value cannot be handed "
                "on. Write it in jit, scan, fori_loop, while_loop, cond, or outside of the "
                "transformation; or return the value."
            )
        for ref in written:
            if ref.reshapes and use is not None and not use.reshapes:
                raise TypeError(
                    f"While tracing {self.fun_name or 'a function'}: a value from outside got "
                    f"arrays of other shapes or dtypes, or more or fewer of them ({ref.aval}). "
                    "In loops and branches it keeps what it holds; change it before, or convert."
                )
        if use is None or not use.reads:
            for ref in read:
                self.constvars.append(cells[ref].start.jaxpr_var)
                self.consts.append(read_under(ref, self.parent))
            if use is not None:
                use.fixed = bool(read)
            read = []
        self.invars.extend([cells[ref].start.jaxpr_var for ref in (*written, *read)])
        if use is not None:
            use.refs, use.written = [*written, *read], written
        for ref, variable in zip(shown, variables, strict=True):
            if use is not None and use.behind and (
                cells[ref].argument or not made_around(ref, self)
            ):
                self.invars.append(variable)
                use.refs.append(ref)
                use.shown.append(ref)
                continue
            self.constvars.append(variable)
            self.consts.append(variable_of(ref, self.parent))
            if use is not None:
                use.fixed = True
        return [
            *outs,
            *[
                convert(cells[ref].value, ref.aval.dtype, ref.aval.weak_type)
                for ref in written
            ],
        ]

    def finish(
        self, outs: Sequence[Any], use: RefUse | None = None
    ) -> tuple[Jaxpr, list[Any]]:
        """The jaxpr returning `outs`, and the values of its constvars."""
        if self.refs is not None:
            outs = self._close_refs(outs, use)
        outvars = [self.atom(x) for x in outs]
        if self.effects:
            self.effects = of_inputs(self.effects, (*self.constvars, *self.invars))
        if self.marks:
            name_equations(self.eqns, self.marks)
        count, last, name = len(self.consts), len(self.eqns), self.fun_name or None
        jaxpr = Jaxpr(self.constvars, self.invars, outvars, self.eqns, self.effects, name)
        consts = self.consts
        if len(consts) != count:  # a finalizer that ran meanwhile has computed with an array
            constvars, consts, eqns = self.constvars[:count], consts[:count], self.eqns[:last]
            jaxpr = Jaxpr(constvars, self.invars, outvars, eqns, self.effects, name)
        self.done = True
        # It refers to itself no longer, so that what it holds goes with the last of its tracers.
        self.staging = None
        if len(self.eqns) > _LONG and hooks.long_trace is not None:
            hooks.long_trace()
        if config.check_ir.value:
            check_jaxpr(jaxpr)
        return jaxpr, consts

    def describe(self, tracer: StageTracer) -> str:
        """Which arguments of the traced function `tracer` depends on, and the line that made it."""
        producer = {v: eqn for eqn in self.eqns for v in eqn.outvars}
        seen, todo, args = set(), [tracer.jaxpr_var], set()
        position = {v: i for i, v in enumerate(self.invars)}
        while todo:
            var = todo.pop()
            if var in seen:
                continue
            seen.add(var)
            if var in position:
                args.add(position[var])
            elif var in producer:
                todo.extend(v for v in producer[var].invars if type(v) is Var)
        known = self.names.names() if self.names else []
        names = [known[i] if i < len(known) else f"number {i}" for i in sorted(args)]
        function = self.function()
        text = f"The error occurred while tracing the function {function}. " if function else ""
        if names:
            plural = "s" if len(names) > 1 else ""
            text += (
                "This concrete value was not available in Python because it depends on the "
                f"value{plural} of the argument{plural} {_enumerated(names)}."
            )
            if tracer.source is not None:
                text += f"\nIt was computed at {tracer.source}."
        elif made := [eqn for eqn in self.eqns if not seen.isdisjoint(eqn.outvars)]:
            text += "This value became a tracer due to JAX operations on these lines:\n"
            for eqn in made[:_MOST_LINES]:
                text += f"\n  operation {eqn}\n    from line {eqn.source}\n"
            if len(made) > _MOST_LINES:
                text += "\nAdditional originating lines are not shown."
        if self.names and self.names.label.startswith("checkpoint"):
            text += "\nArguments that are Python values are named in its static_argnums."
        return text

    def function(self) -> str:
        """The function that is traced, its place, and what for; where that is known."""
        traced = self.names
        return f"{traced.where()} for {traced.label}" if traced else self.fun_name


# Of how many operations a message tells that made a value of no argument.
_MOST_LINES = 5


def _enumerated(names: Sequence[str]) -> str:
    if len(names) < 3:
        return " and ".join(names)
    return f"{', '.join(names[:-1])}, and {names[-1]}"


def bind_known(primitive: Primitive, args: tuple, params: dict, out: ShapedArray) -> Any:
    """`primitive.bind(*args, **params)` where the result's aval is known to be `out`.

    For the shortcuts of functions that saw operands of these avals before. `params` are kept as
    they are, so equations may share them.
    """
    trace = current_trace()
    if type(trace) is StageTrace and primitive.stage is None:
        return trace.record(primitive, args, params, out)
    return trace.process(primitive, args, params)


# A call that is written otherwise in JAX's form: where its equations begin and end, the functions
# that write it in that form and in ours, what it was given and gave, with variables in place of
# tracers, and the line of one without equations.
Apart = tuple[int, int, Callable, Callable, tuple, Any, Any]
# What stays what it is, as an argument that is kept.
_LASTING = frozenset((
    StageTracer, ArrayImpl, int, float, complex, bool, str, slice, type(None), type(Ellipsis), type,
    np.dtype,
))  # fmt: skip


def apart(shown: Callable, plain: Callable, args: tuple, kwargs: dict) -> Any:
    """A call that `shown` writes as JAX does and `plain` as we do; the two may be one function that
    asks for the form itself. Where a jitted function is traced, what it is given is kept, so that
    the function's jaxpr in the other form follows from this one (`transforms.forms`)."""
    trace: Any = current_trace()
    calls = trace.calls if type(trace) is StageTrace else None
    flag = config.jax_equations
    if calls is None:
        if shown is not plain:
            config.asked.note()
        return (shown if flag.value else plain)(*args, **kwargs)
    begin, asked = len(trace.eqns), config.asked
    asks = asked.forms
    trace.calls = None  # those within are a part of this one
    try:
        flag.count(-1)  # and need not ask
        out = (shown if flag.uses and flag.value else plain)(*args, **kwargs)
    finally:
        flag.count(1)
        trace.calls = calls
    given: Any = None
    if not kwargs and _LASTING.issuperset(map(type, args)):
        given = trace.variables(args)
        given = given and (given, kwargs)
    else:
        given = lasting(trace, (args, kwargs))
    own = type(out) is StageTracer and out.owner is trace
    made = out.jaxpr_var if own else lasting(trace, out)
    if given is None or made is None:
        asked.note()
    else:
        end = len(trace.eqns)
        source = None if end > begin else user_source()
        calls.append((begin, end, shown, plain, given, made, source))
        asked.restore(asks)
    return out


def lasting(trace: StageTrace, value: Any) -> Any:
    """The pytree with containers of its own, variables in place of tracers, and copies of small
    arrays that may change; None where it holds what may be another thing later."""
    leaves, treedef = tree.tree_flatten(value)
    for i, x in enumerate(leaves):
        if type(x) is np.ndarray and x.nbytes <= _SMALL and x.dtype != object:
            leaves[i] = x.copy()
        elif type(x) not in _LASTING and not isinstance(x, _MORE_LASTING):
            return None
    kept = trace.variables(leaves)
    return None if kept is None else tree.tree_unflatten(treedef, kept)


_MORE_LASTING = (ArrayImpl, np.generic, enum.Enum, type)
# Bytes of an array of the user's that is kept with a call.
_SMALL = 1 << 16


def stage(
    fun: Callable,
    in_avals: Sequence[ShapedArray],
    fun_name: str = "",
    names: Names = None,
    use: RefUse | None = None,
    flows: dict[Any, Flow] | None = None,
    calls: bool = False,
) -> tuple[Jaxpr, list[Any]]:
    """Trace `fun(*tracers) -> sequence of values` at `in_avals`.

    Returns the jaxpr and the values of its constvars (Arrays, or tracers of enclosing traces).
    `use` says how references from outside are handed on, `flows` what is known of the arguments.
    calls: keep those that are written otherwise in the other form (`apart`).
    """
    if current_names.get().stack:  # a function begins without names
        with names_set(NameStack()):
            return stage(fun, in_avals, fun_name, names, use, flows, calls)
    trace = StageTrace(fun_name, names, flows)
    if use is not None and use.behind:
        trace.outermost = True
    if calls and not config.check_tracer_leaks.value:
        trace.calls = []
    asks = config.asked.forms
    config.jax_equations.count(1)  # so that it is asked
    try:
        with set_trace(folding(trace)):
            outs = fun(*[trace.new_arg(aval) for aval in in_avals])
            jaxpr, consts = trace.finish(outs, use)
    finally:
        config.jax_equations.count(-1)
        kept, trace.calls = trace.calls, None
        trace.staging = None  # also where the function raised
    del outs
    if config.asked.forms != asks:
        jaxpr.cache[ASKED] = 1
    elif kept:  # names of scopes were given to equations alone
        jaxpr.cache.update({ASKED: 1} if trace.marks else {CALLS: kept})
    if config.check_tracer_leaks.value and _references(trace) > _fewest_references():
        importlib.import_module("numjet.transforms.leaks").check(
            trace, "DynamicJaxprTrace", trace.fun_name)
    return jaxpr, consts


def stage_closed(fun: Callable, in_avals: Sequence[ShapedArray], fun_name: str = "") -> ClosedJaxpr:
    """`stage`, with the constants attached."""
    jaxpr, consts = stage(fun, in_avals, fun_name)
    return ClosedJaxpr(jaxpr, consts)


def stage_expansion(
    rule: Expand, params: dict[str, Any], avals: Sequence[ShapedArray]
) -> ClosedJaxpr:
    """The jaxpr of an operation that is lowered to others, on operands of these avals. Operands of
    64 bits outside of `enable_x64` are computed with in 64 bits."""

    def run(*args: Any) -> list[Any]:
        out = rule.fn(*args, **params)
        return list(out) if isinstance(out, tuple | list) else [out]

    if not config.enable_x64.value and any([aval.dtype in dtypes.WIDE for aval in avals]):
        with config.enable_x64(True):
            return stage_closed(run, avals)
    return stage_closed(run, avals)


def _without_refs(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr`, which makes references, as the function of arrays that it is."""
    variables = [*jaxpr.constvars, *jaxpr.invars]
    n = len(jaxpr.constvars)
    with config.jax_equations(False):
        found, consts = stage(
            lambda *xs: eval_jaxpr(jaxpr, xs[:n], *xs[n:]), [v.aval for v in variables],
            use=RefUse(reads=True),
        )  # fmt: skip
        found = hoist_consts(found).jaxpr
    if consts:  # arrays that the equations made
        raise errors.InternalError(f"a jaxpr of references has constants: {jaxpr}")
    return found.replace(constvars=found.invars[:n], invars=found.invars[n:], debug=jaxpr.debug)


hooks.without_refs = _without_refs


def hoist_consts(jaxpr: Jaxpr) -> ClosedJaxpr:
    """`jaxpr` with its constvars as leading arguments, so that it is closed without constants."""
    if not jaxpr.constvars:
        return ClosedJaxpr(jaxpr, [])
    found = jaxpr.cache.get("hoisted")
    if found is None:
        hoisted = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
        found = jaxpr.cache["hoisted"] = ClosedJaxpr(hoisted, [])
    return found


def with_jaxprs(value: Any, rewrite: Callable[[ClosedJaxpr], ClosedJaxpr]) -> Any:
    """A param of an equation with the jaxprs in it rewritten."""
    if isinstance(value, ClosedJaxpr):
        return rewrite(value)
    if isinstance(value, Jaxpr):
        return hoist_consts(rewrite(ClosedJaxpr(value, [])).jaxpr).jaxpr
    if type(value) is tuple and any([isinstance(x, ClosedJaxpr | Jaxpr) for x in value]):
        return tuple([with_jaxprs(x, rewrite) for x in value])
    return value


def closed_over(args: Sequence[Any], params: dict) -> tuple[Any, dict]:
    """Operands and params of an equation whose jaxprs hold no traced constants: these are operands.

    What a rule by the user closes over is met when the rule runs, which may be while a jaxpr that
    was staged long ago is differentiated or mapped.
    """
    if Met.stretched and not config.jax_equations.value:
        given, params = params, {name: written_out_param(x) for name, x in params.items()}
        if any([x is not given[name] for name, x in params.items()]):
            config.asked.note()
    calls = [n for n in ("jaxpr", "call_jaxpr", "cond_jaxpr", "body_jaxpr") if n in params]
    held = [params[n] for n in calls] + list(params.get("branches", ()))
    if not any(type(closed) is ClosedJaxpr and has_tracers(closed.consts) for closed in held):
        return args, params
    params, before = dict(params), 0
    counts = {"cond_jaxpr": "cond_nconsts", "body_jaxpr": "body_nconsts"}
    for name in calls:
        closed, count = params[name], counts.get(name, "num_consts")
        args = [*args[:before], *closed.consts, *args[before:]]
        params[name] = hoist_consts(closed.jaxpr)
        if count in params:
            params[count] += len(closed.consts)
        before += params[count] if name == "cond_jaxpr" else 0
    if "branches" in params:
        branches = params["branches"]
        # All branches take the constants of each, once.
        consts = {id(c): c for closed in branches for c in closed.consts}
        whole = []
        for closed in branches:
            own = dict(zip(map(id, closed.consts), closed.jaxpr.constvars))
            taken = [own.get(key) or Var(aval_of(c)) for key, c in consts.items()]
            invars = [*taken, *closed.jaxpr.invars]
            whole.append(ClosedJaxpr(closed.jaxpr.replace(constvars=[], invars=invars), []))
        params["branches"] = tuple(whole)
        args = [args[0], *consts.values(), *args[1:]]
    return tuple(args), params


def has_tracers(values: Sequence[Any]) -> bool:
    return bool(values) and any([isinstance(v, Tracer) for v in values])


def _references(trace: StageTrace) -> int:
    return sys.getrefcount(trace)


@functools.cache
def _fewest_references() -> int:
    """How many there are where no traced value is left: each of them refers to its trace."""
    trace = StageTrace("")
    trace.staging = None
    return _references(trace)
