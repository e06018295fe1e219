"""Jaxprs: programs in administrative normal form, and their evaluation.

Built by `transforms.stage`, rewritten by the transformations, compiled by the backends, printed by
`core.jaxpr_print` and checked by `core.jaxpr_check`. A jaxpr is not changed after it is built.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from numjet.base import config
from numjet.base.class_names import shown_as
from numjet.core import hooks
from numjet.core.array import Array, as_array
from numjet.core.avals import Placed, ShapedArray, is_lenient, lenient
from numjet.core.primitive import NO_EFFECTS, Primitive


def _told() -> Any:
    """`core.debug_info`, which few programs ask for."""
    return importlib.import_module("numjet.core.debug_info")


# In the cache of a jaxpr that `jit` calls: how many of its first arguments are values that the
# function closed over, which JAX writes as constants of that jaxpr (`core.jaxpr_held`).
HELD = "held"
# Of a branch and of a checkpointed function how many of its first arguments it closed over; and of
# a jitted function that it is a part of one, whose constants are arguments.
CONSTS, PART = "closed over", "part"
# Where a jaxpr's cache says that it would be another one, or might be, in the other form, JAX's or
# ours (`config.jax_form`); and of a jitted function its form and whether that is so.
ASKED, FORM = "asked", "form"
# And the calls in it that are written otherwise in the other form, with all that they were given,
# and the values of what it closes over.
CALLS, HELD_VALUES = "calls", "held values"


# Params of products by `jax.numpy`, which tell the dtype of the result in JAX's form: by the
# numbers of their axes, and by their identities, since all such products share them.
_products: dict[tuple, dict] = {}
PRODUCTS: dict[int, dict] = {}


def product_params(numbers: tuple) -> dict[str, Any]:
    """Those of a product over these axes (`dimension_numbers`), to be left as they are."""
    found = _products.get(numbers)
    if found is None:
        made = {"dimension_numbers": numbers, "precision": None, "preferred_element_type": None}
        found = _products.setdefault(numbers, made)
        PRODUCTS[id(found)] = found
    return found


class Var:
    """A name bound once. Identity is the variable."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short()}"


class DropVar(Var):
    """The variable of a result that nobody reads, in jaxprs that programs write. Jaxprs of ours
    have plain variables there."""

    __slots__ = ()


class Literal:
    """A constant without dimensions, written in place. `value` is an Array."""

    __slots__ = ("value", "aval")

    def __init__(self, value: Any, aval: ShapedArray) -> None:
        self.value: Any = value if isinstance(value, Array) else as_array(value)
        self.aval = aval

    @property
    def val(self) -> Any:
        return self.value

    def __repr__(self) -> str:
        few = self.aval.weak_type  # digits, of what Python code gave
        return f"Literal({str(self.value) if few else self.value})"


Atom = Var | Literal


@shown_as("JaxprEqn")
class Eqn:
    """`outvars = primitive[params] invars`."""

    __slots__ = ("invars", "outvars", "primitive", "params", "effects", "source")

    def __init__(
        self,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        primitive: Primitive,
        params: dict,
        effects: frozenset = NO_EFFECTS,
        source: Any = None,
        ctx: Any = None,
    ) -> None:
        del ctx  # see the property
        self.invars, self.outvars, self.primitive = invars, outvars, primitive
        self.params, self.effects, self.source = params, effects, source

    @property
    def source_info(self) -> Any:
        """The user's line, as programs that rewrite jaxprs hand it on: a `SourceInfo`."""
        told = _told()
        return told.SourceInfo(self.source, getattr(self.source, "names", told.NO_NAMES))

    @property
    def ctx(self) -> Any:
        """What was set when the equation was made: nothing that matters to it."""
        return _told().CONTEXT

    @property
    def inputs(self) -> Sequence[Atom]:
        return self.invars

    @property
    def outputs(self) -> Sequence[Var]:
        return self.outvars

    def replace(self, **changes: Any) -> Eqn:
        fields = {name: getattr(self, name) for name in self.__slots__} | changes
        if "source_info" in fields:
            fields["source"] = fields.pop("source_info").traceback
        fields.pop("ctx", None)
        return Eqn(**fields)

    def __repr__(self) -> str:
        return hooks.print_equation(self)


JaxprEqn = Eqn  # where pickle finds it


class Jaxpr:
    """A function of `constvars` and `invars`: `eqns` in order, then `outvars`."""

    __slots__ = (
        "constvars",
        "invars",
        "eqns",
        "outvars",
        "effects",
        "debug",
        "cache",
        "__weakref__",
    )

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[Eqn],
        effects: frozenset | None = None,
        debug_info: Any = None,
        is_high: bool = False,
    ) -> None:
        del is_high  # JAX says so where there are types in it that are made of others
        self.constvars, self.invars = list(constvars), list(invars)
        self.eqns, self.outvars = list(eqns), list(outvars)
        self.effects = join_effects(self.eqns) if effects is None else effects
        # The function's name, or all that is known of it, or a function that tells it.
        self.debug = debug_info
        self.cache: dict = {}  # derived jaxprs (jvp, batched, ...), kept as long as this one lives

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.outvars]

    @property
    def debug_info(self) -> Any:
        """What is known of the function it was traced from: a `DebugInfo`."""
        kind, known = _told().DebugInfo, self.debug
        if callable(known):
            known = self.debug = known()
        return known if isinstance(known, kind) else kind("", known or "", None, None)

    @property
    def is_high(self) -> bool:
        """Whether there are types in it that are made of others: there are none."""
        return False

    def replace(self, **changes: Any) -> Jaxpr:
        if "debug" in changes:
            changes["debug_info"] = changes.pop("debug")
        fields = {
            name: getattr(self, name)
            for name in ("constvars", "invars", "outvars", "eqns", "effects")
        } | {"debug_info": self.debug} | changes
        return Jaxpr(**fields)

    def __repr__(self) -> str:
        return hooks.print_jaxpr(self)

    def pretty_print(self, **_: Any) -> str:
        return hooks.print_jaxpr(self)


class ClosedJaxpr:
    """A jaxpr with values for its constvars."""

    __slots__ = ("jaxpr", "consts", "__weakref__")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any]) -> None:
        self.jaxpr, self.consts = jaxpr, list(consts)

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.jaxpr.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.jaxpr.outvars]

    @property
    def literals(self) -> list[Any]:
        """`consts`."""
        return self.consts

    @property
    def constvars(self) -> list[Var]:
        return self.jaxpr.constvars

    @property
    def invars(self) -> list[Var]:
        return self.jaxpr.invars

    @property
    def outvars(self) -> list[Atom]:
        return self.jaxpr.outvars

    @property
    def debug_info(self) -> Any:
        return self.jaxpr.debug_info

    @property
    def is_high(self) -> bool:
        return False

    def map_jaxpr(self, f: Any) -> ClosedJaxpr:
        """`f(jaxpr)` with the same constants."""
        return ClosedJaxpr(f(self.jaxpr), self.consts)

    def replace(self, *, jaxpr: Jaxpr | None = None, consts: Any = None) -> ClosedJaxpr:
        """This with another jaxpr, or other constants."""
        return ClosedJaxpr(
            self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else consts
        )

    @property
    def eqns(self) -> list[Eqn]:
        return self.jaxpr.eqns

    @property
    def effects(self) -> frozenset:
        return self.jaxpr.effects

    @property
    def cache(self) -> dict:
        return self.jaxpr.cache

    def __repr__(self) -> str:
        return hooks.print_jaxpr(self.jaxpr)

    def pretty_print(self, **_: Any) -> str:
        return hooks.print_jaxpr(self.jaxpr)


def note_form(closed: ClosedJaxpr) -> None:
    """What is traced uses this jaxpr, which may have another one in the other form."""
    if ASKED in closed.jaxpr.cache or CALLS in closed.jaxpr.cache:
        config.asked.note()


def join_effects(eqns: Iterable[Eqn]) -> frozenset:
    effects = NO_EFFECTS
    for eqn in eqns:
        if eqn.effects:
            effects = effects | eqn.effects
    return effects


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Run `jaxpr` by binding each equation under the current trace."""
    return _eval_eqns(jaxpr, consts, args, None)


def eval_closed(closed: ClosedJaxpr, *args: Any) -> list[Any]:
    """`eval_jaxpr` of a jaxpr with its constants."""
    return _eval_eqns(closed.jaxpr, closed.consts, args, None)


def eval_at_own_lines(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], trace: Any) -> Any:
    """`eval_jaxpr` under `trace`, where what is recorded of an equation has the line of that
    equation, not of who calls this."""
    staging = trace.staging
    if staging is None:
        return eval_jaxpr(jaxpr, consts, *args)
    line = staging.source
    try:
        return _eval_eqns(jaxpr, consts, args, staging)
    finally:
        staging.source = line


def _eval_eqns(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], staging: Any) -> list[Any]:
    if Placed.active and not is_lenient():
        with lenient():  # its equations were checked when they were written down
            return _eval_eqns(jaxpr, consts, args, staging)
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    for eqn in jaxpr.eqns:
        values = [v.value if type(v) is Literal else env[v] for v in eqn.invars]  # type: ignore[index]
        if staging is not None:
            staging.source = eqn.source
        if id(eqn.params) in PRODUCTS:
            config.asked.note()
        entered = getattr(eqn.source, "entered", None)
        if entered is not None:  # a line with the names of scopes (`core.names`)
            with entered():
                out = eqn.primitive.bind(*values, **eqn.params)
        else:
            out = eqn.primitive.bind(*values, **eqn.params)
        if eqn.primitive.__class__ is not Primitive:
            out = _arrays(out)  # a rule of the user's may give NumPy's arrays
        if eqn.primitive.multiple_results:
            env.update(zip(eqn.outvars, out, strict=True))
        else:
            env[eqn.outvars[0]] = out
    return [v.value if type(v) is Literal else env[v] for v in jaxpr.outvars]  # type: ignore[index]


def _arrays(out: Any) -> Any:
    """Results of a user's primitive, with Arrays in place of numbers and NumPy arrays."""
    if isinstance(out, tuple | list):
        return [_arrays(x) for x in out]
    host = np.ndarray | np.generic | int | float | complex
    return as_array(out) if isinstance(out, host) else out


def bare(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr whose types say nothing of a mesh, for what compiles it. Remembered with it."""
    if not Placed.active:
        return closed
    found = closed.cache.get("bare")
    if found is None:
        found = closed.cache["bare"] = ClosedJaxpr(_bare(closed.jaxpr), closed.consts)
    return found


def _bare_inside(value: Any) -> Any:
    if type(value) is ClosedJaxpr:
        return ClosedJaxpr(_bare(value.jaxpr), value.consts)
    if type(value) is Jaxpr:
        return _bare(value)
    if type(value) is tuple and any([type(v) is ClosedJaxpr for v in value]):
        return tuple([_bare_inside(v) for v in value])
    return value


def _bare(jaxpr: Jaxpr) -> Jaxpr:
    known: dict[Atom, Atom] = {}

    def atom(v: Any) -> Any:
        if v.aval.__class__ is not ShapedArray or v.aval.placed is None:
            return v
        if v not in known:
            at = v.aval.bare()
            known[v] = Literal(v.value, at) if type(v) is Literal else Var(at)
        return known[v]

    eqns = []
    for eqn in jaxpr.eqns:
        params = {k: _bare_inside(v) for k, v in eqn.params.items()}
        ins, outs = [atom(v) for v in eqn.invars], [atom(v) for v in eqn.outvars]
        eqns.append(eqn.replace(invars=ins, outvars=outs, params=params))
    consts, ins = [atom(v) for v in jaxpr.constvars], [atom(v) for v in jaxpr.invars]
    outs = [atom(v) for v in jaxpr.outvars]
    return jaxpr.replace(constvars=consts, invars=ins, outvars=outs, eqns=eqns)


def unclosed(jaxpr: ClosedJaxpr | Jaxpr) -> tuple[Jaxpr, Sequence[Any]]:
    """A jaxpr and the values of its constants, of which one that is not closed has none."""
    return (jaxpr.jaxpr, jaxpr.consts) if isinstance(jaxpr, ClosedJaxpr) else (jaxpr, ())


def subjaxprs(params: dict) -> Iterable[Jaxpr]:
    """Every jaxpr that stands in an equation's params."""
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, ClosedJaxpr):
                yield item.jaxpr
            elif isinstance(item, Jaxpr):
                yield item
