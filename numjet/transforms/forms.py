"""A jaxpr in the other form: of one that runs what `make_jaxpr` shows, and the other way.

A function is traced once, as in JAX. Both forms have the same equations but for calls that say so
(`stage.apart`), which are made again with the variables that they were given, and for jitted
functions, which have forms of their own. Whoever asks for the form elsewhere while something is
traced (`config.jax_form`) says that no other follows from it. For `api.compiled.jit_core`. What
would break it: a function that writes other equations under the flag `jax_equations` and does not
ask, or an answer that is remembered and does not tell that it was asked for.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from numjet.base import config, errors, tree
from numjet.base.name_stack import NameStack
from numjet.base.record import NamedTuple
from numjet.core import jit_params
from numjet.core.array import as_array
from numjet.core.jaxpr import (
    ASKED,
    CALLS,
    FORM,
    HELD,
    HELD_VALUES,
    PRODUCTS,
    ClosedJaxpr,
    Eqn,
    Jaxpr,
    Literal,
    Var,
)
from numjet.core.names import names_set
from numjet.core.trace import Tracer, set_trace
from numjet.transforms.stage import Apart, StageTrace, StageTracer, with_jaxprs

_OTHER = "other form"


class _OneForm(Exception):
    """The jaxpr in the other form is not known."""


class _Const(NamedTuple):
    """What a function closes over: its place among what the other form does, or a value."""

    place: int | None
    value: Any = None


def in_form(
    closed: ClosedJaxpr, consts: Sequence[Any], form: bool
) -> tuple[ClosedJaxpr, list[Any]] | None:
    """The jaxpr of a jitted function in this form, JAX's (True) or ours, and the values of its
    first arguments, which it closes over; None where the function is to be traced for it.

    closed, consts: the same in the other form.
    """
    try:
        made, held = _Forms(form).function(closed, consts)
    except _OneForm:
        return None
    return made, [c.value if c.place is None else consts[c.place] for c in held]


def body_in_form(jaxpr: Jaxpr, form: bool) -> Jaxpr | None:
    """The jaxpr of a loop's or a branch's function in this form, where it is the same in both."""
    try:
        return _Forms(form).body(jaxpr)
    except _OneForm:
        return None


class _Forms:
    """Jaxprs in a form, each made once. What is derived of one form is not that of the other, so
    they share equations, and nothing that is remembered with a jaxpr."""

    def __init__(self, form: bool) -> None:
        self.form = form
        self.made: dict[int, Jaxpr] = {}

    def function(
        self, closed: ClosedJaxpr, consts: Sequence[Any] | None
    ) -> tuple[ClosedJaxpr, list[_Const]]:
        """The jaxpr of a jitted function, and what it closes over; consts: what it does in the
        other form, None where only its variables are known."""
        cache = closed.jaxpr.cache
        known, held = cache.get(_OTHER, (None, []))
        if type(known) is weakref.ref:
            jaxpr = known()
            known = jaxpr and ClosedJaxpr(jaxpr, closed.consts)
        if known is not None:
            return known, held
        if ASKED in cache:
            raise _OneForm
        consts = cache.get(HELD_VALUES) if consts is None else consts
        n = cache.get(HELD, 0) if consts is None else len(consts)
        if CALLS in cache:
            jaxpr, held = self.with_calls(closed.jaxpr, cache[CALLS], n, consts)
        else:
            jaxpr = closed.jaxpr.replace(eqns=self.equations(closed.jaxpr.eqns))
            held = [_Const(i) for i in range(n)]
        made = ClosedJaxpr(jaxpr, closed.consts)
        made.cache[FORM] = self.form
        if held and (HELD in cache or not n):  # tracers among them are operands
            made.cache[HELD] = len(held)
        cache[_OTHER] = made, held
        # The way back, of those that close over the same.
        same = [c.place for c in held] == list(range(n))
        if same:
            made.cache[_OTHER] = weakref.ref(closed.jaxpr), held
        else:
            made.cache[ASKED] = 1
        return made, held

    def closed(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        """A jaxpr in an equation's params."""
        cache = closed.jaxpr.cache
        own = cache.get(FORM)
        if own is self.form:
            return closed
        if own is None:
            return ClosedJaxpr(self.body(closed.jaxpr), closed.consts)
        made, held = self.function(closed, None)
        if [c.place for c in held] != list(range(cache.get(HELD, 0))):
            raise _OneForm  # the equation has operands for what it closes over
        return made

    def body(self, jaxpr: Jaxpr) -> Jaxpr:
        found = self.made.get(id(jaxpr))
        if found is None:
            found = self.made[id(jaxpr)] = jaxpr.replace(eqns=self.equations(jaxpr.eqns))
        return found

    def equations(self, eqns: Sequence[Eqn]) -> list[Eqn]:
        return [self.equation(eqn) for eqn in eqns]

    def equation(self, eqn: Eqn) -> Eqn:
        if id(eqn.params) in PRODUCTS:
            dtype = eqn.outvars[0].aval.dtype if self.form else None
            return eqn.replace(params=eqn.params | {"preferred_element_type": dtype})
        params = {name: with_jaxprs(x, self.closed) for name, x in eqn.params.items()}
        if all([value is eqn.params[name] for name, value in params.items()]):
            return eqn
        if eqn.primitive.name == "jit":
            params = self.call(eqn, params)
        return eqn.replace(params=params)

    def call(self, eqn: Eqn, params: dict[str, Any]) -> dict[str, Any]:
        """The params of a call: in JAX's form they say all that may be asked for."""
        neutral = jit_params.completed({}, len(eqn.invars), len(eqn.outvars))
        if self.form:
            return {**neutral, **params}
        if any([params[name] != value for name, value in neutral.items() if name in params]):
            raise _OneForm
        return {name: value for name, value in params.items() if name not in neutral}

    def with_calls(
        self, jaxpr: Jaxpr, calls: Sequence[Apart], n: int, consts: Sequence[Any] | None
    ) -> tuple[Jaxpr, list[_Const]]:
        """The jaxpr with these calls made again, whose first `n` arguments are what it closes
        over, and what it closes over then."""
        if jaxpr.effects:
            raise _OneForm
        name = jaxpr.debug if type(jaxpr.debug) is str else ""
        asks = config.asked.forms
        with names_set(NameStack()), config.jax_equations(self.form):
            again = _Again(self, StageTrace(name), jaxpr)
            for var, value in zip(jaxpr.invars, consts or ()):
                again.trace._const_of[id(value)] = var
            with set_trace(again.trace):
                again.run(calls)
        config.asked.restore(asks)
        return again.finished(n)


class _Again:
    """The equations of a jaxpr written down once more, in another form."""

    def __init__(self, forms: _Forms, trace: StageTrace, jaxpr: Jaxpr) -> None:
        self.forms, self.trace, self.jaxpr = forms, trace, jaxpr
        # What stands for variables of calls that were made again, and the variables of these.
        self.now: dict[Var, Any] = {}
        self.gone: set[Var] = set()

    def atom(self, x: Any) -> Any:
        if type(x) is Literal:
            return x
        found = self.now.get(x)
        if found is None:
            if x in self.gone:  # a call told it otherwise than by its result
                raise _OneForm
            return x
        return found

    def run(self, calls: Sequence[Apart]) -> None:
        at, eqns = 0, self.jaxpr.eqns
        for call in calls:
            self.keep(eqns[at : call[0]])
            self.make(call)
            at = call[1]
        self.keep(eqns[at:])

    def keep(self, eqns: Sequence[Eqn]) -> None:
        for eqn in eqns:
            invars = [self.atom(x) for x in eqn.invars]
            eqn = self.forms.equation(eqn)
            if invars != eqn.invars:
                eqn = eqn.replace(invars=invars)
            self.trace.eqns.append(eqn)

    def make(self, call: Apart) -> None:
        begin, end, shown, plain, given, made, source = call
        leaves, treedef = tree.tree_flatten(given)
        args, kwargs = tree.tree_unflatten(treedef, [self.value(x) for x in leaves])
        trace = self.trace
        trace.source = source or self.jaxpr.eqns[begin].source
        try:
            out = (shown if self.forms.form else plain)(*args, **kwargs)
        except errors.InternalError:
            raise
        except Exception:
            raise _OneForm from None  # the function itself tells
        finally:
            trace.source = None
        before, treedef = tree.tree_flatten(made)
        leaves, now = tree.tree_flatten(out)
        if treedef != now or trace.refs is not None or trace.effects:
            raise _OneForm
        inside = {v for eqn in self.jaxpr.eqns[begin:end] for v in eqn.outvars}
        self.gone |= inside
        for old, new in zip(before, leaves, strict=True):
            if type(old) is not Var:
                if new is not old:
                    raise _OneForm
                continue
            own = type(new) is StageTracer and new.owner is trace
            if isinstance(new, Tracer) and not own or getattr(new, "aval", None) is not old.aval:
                raise _OneForm
            atom = new.jaxpr_var if own else trace.atom(as_array(new))
            if old in inside:
                self.now[old] = atom
            elif atom is not self.atom(old):
                raise _OneForm

    def value(self, x: Any) -> Any:
        """What a call is given for a leaf that was kept with it."""
        if type(x) is slice:
            return slice(*map(self.value, (x.start, x.stop, x.step)))
        if type(x) is not Var:
            return x
        x = self.atom(x)
        if type(x) is Literal:
            return x.value
        if x in self.trace.constvars:
            return self.trace.consts[self.trace.constvars.index(x)]
        return StageTracer(self.trace, x)

    def finished(self, n: int) -> tuple[Jaxpr, list[_Const]]:
        jaxpr, trace = self.jaxpr, self.trace
        outvars = [self.atom(x) for x in jaxpr.outvars]
        known = {v: _Const(i) for i, v in enumerate(jaxpr.invars[:n])}
        known |= {v: _Const(None, x) for v, x in zip(trace.constvars, trace.consts, strict=True)}
        read = [x for eqn in trace.eqns for x in eqn.invars if type(x) is Var]
        held = [v for v in dict.fromkeys([*read, *outvars]) if type(v) is Var and v in known]
        trace.done, trace.staging = True, None
        made = Jaxpr(
            jaxpr.constvars, [*held, *jaxpr.invars[n:]], outvars, trace.eqns, trace.effects,
            jaxpr.debug,
        )  # fmt: skip
        return made, [known[v] for v in held]
