"""A layout for every value of a jaxpr, from those of its arguments and the user's constraints.

Layouts flow forward through the rules. What no cut operand decides is free - constants, results of
iota, arguments that lie nowhere in particular - and takes the layout in which it is wanted: those
flow backward. Loops are walked until their carries have one layout. For `emit`, and for `api`,
which labels results of programs that run on one block of memory. What would break it: a jaxpr with
calls in it (`flatten` writes them out).
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.core.avals import lenient
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from numjet.partition.families import rule_of
from numjet.partition.rules import (
    Layout,
    Rule,
    Sizes,
    agreed,
    assign,
    dividing,
    layout_of,
    results,
)
from numjet.transforms.simplify import dce_jaxpr
from numjet.transforms.stage import stage_closed

Free = Layout | None

# Calls: what they compute is the jaxpr in this param.
_CALLS = {
    "jit": "jaxpr",
    "remat2": "jaxpr",
    "composite": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "call_hi_primitive": "call_jaxpr",
    "remat_opt": "call_jaxpr",
}
_LOOPS = ("scan", "while", "cond")


def flatten(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr with calls written out, so that only loops and branches hold others, and without
    what nobody reads. Remembered with it."""
    found = closed.cache.get("flat")
    if found is None:
        def run(*args: Any) -> list:
            return _inlined(closed.jaxpr, closed.consts, args)

        with lenient():
            found = stage_closed(run, closed.in_avals)
        # What nobody reads would bring collectives, which are never dropped.
        found = ClosedJaxpr(dce_jaxpr(found.jaxpr)[0], found.consts)
        closed.cache["flat"] = found
    return found


def _inlined(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list:
    env: dict[Any, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args]))
    for eqn in jaxpr.eqns:
        values = [v.value if type(v) is Literal else env[v] for v in eqn.invars]
        name = eqn.primitive.name
        inner = eqn.params.get(_CALLS[name]) if name in _CALLS else None
        if isinstance(inner, ClosedJaxpr):
            out = _inlined(inner.jaxpr, inner.consts, values)
        elif isinstance(inner, Jaxpr):
            out = _inlined(inner, (), values)
        else:
            out = eqn.primitive.bind(*values, **_flat_params(eqn))
            if not eqn.primitive.multiple_results:
                out = [out]
        env.update(zip(eqn.outvars, out, strict=True))
    return [v.value if type(v) is Literal else env[v] for v in jaxpr.outvars]


def _flat_params(eqn: Eqn) -> dict:
    if eqn.primitive.name not in _LOOPS:
        return eqn.params

    def flat(value: Any) -> Any:
        if isinstance(value, ClosedJaxpr):
            return flatten(value)
        return tuple([flat(v) for v in value]) if isinstance(value, tuple) else value

    return {k: flat(v) for k, v in eqn.params.items()}


class Plan:
    """What was found: the layout of each variable (None: free, which is everywhere), and for each
    equation with jaxprs inside what holds there."""

    def __init__(self, sizes: Sizes, apart: bool, known: dict[tuple, tuple]) -> None:
        self.sizes, self.apart = sizes, apart
        # Of jaxprs inside, by id and the layouts of their arguments. Each level of nested loops
        # asks for those within several times, mostly with the same layouts.
        self.known = known
        self.layouts: dict[Var, Free] = {}
        self.open: set[Var] = set()  # results with axes that nothing has cut yet, nor needs whole
        self.inner: dict[int, list[Plan]] = {}  # by id(eqn), one for each jaxpr
        self.carried: dict[int, list[Layout]] = {}  # by id(eqn): carries, or results of branches

    def of(self, atom: Any) -> Free:
        """The layout of a variable or literal, None where it is free."""
        return None if type(atom) is Literal else self.layouts.get(atom)

    def fixed(self, atom: Any) -> Layout:
        """The layout, where everywhere is one too."""
        found = self.of(atom)
        return everywhere(atom.aval.ndim) if found is None else found


def everywhere(ndim: int) -> Layout:
    """The layout of an array that is not cut."""
    return ((),) * ndim


def propagate(
    jaxpr: Jaxpr, ins: Sequence[Free], outs: Sequence[Free] | None, sizes: Sizes,
    apart: bool = False, known: dict[tuple, tuple] | None = None,
) -> Plan:  # fmt: skip
    """Layouts for all variables; ins, outs: those that are given (None: free). apart: labels
    alone, as XLA's partitioner finds them: an axis that operands cut differently is whole in the
    result, where else the largest operand decides, and parts need not be equally long. known: plans
    of jaxprs inside that were found before."""
    known = {} if known is None else known
    wanted: dict[Any, Layout] = {}
    given = [None] * len(jaxpr.outvars) if outs is None else outs
    for v, layout in zip(jaxpr.outvars, given, strict=True):
        if layout is not None and type(v) is Var:
            wanted.setdefault(v, layout)
    plan = _forward(jaxpr, ins, {}, Plan(sizes, apart, known))
    if plan.open or any(plan.of(v) is None for v in _read(jaxpr)):
        _backward(jaxpr, plan, wanted)
        plan = _forward(jaxpr, ins, wanted, Plan(sizes, apart, known))
    return plan


def _read(jaxpr: Jaxpr) -> list:
    return [v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is not Literal] + [
        v for v in jaxpr.outvars if type(v) is not Literal
    ]


def _forward(
    jaxpr: Jaxpr, ins: Sequence[Free], wanted: dict[Any, Layout], plan: Plan
) -> Plan:
    for v, layout in zip(jaxpr.invars, ins, strict=True):
        plan.layouts[v] = wanted.get(v) if layout is None else layout
    for eqn in jaxpr.eqns:
        for v, layout in zip(eqn.outvars, _results(eqn, plan, wanted), strict=True):
            plan.layouts[v] = as_typed(v.aval, layout, plan.sizes)
    return plan


def as_typed(aval: Any, layout: Free, sizes: Sizes) -> Free:
    """The layout with the Explicit axes that the type of the value shows."""
    if aval.placed is None:
        return layout
    mesh = aval.placed.mesh
    own = _among(sizes, aval.placed.layout(aval.ndim), mesh)
    if own is None:
        return layout
    shown = {*mesh.explicit_axes, *[a for axes in own for a in axes]}
    rest = everywhere(aval.ndim) if layout is None else layout
    return tuple([
        (*axes, *[a for a in other if a not in shown])
        for axes, other in zip(own, rest, strict=True)
    ])  # fmt: skip


def _results(eqn: Eqn, plan: Plan, wanted: dict[Any, Layout]) -> Sequence[Free]:
    name = eqn.primitive.name
    if name == "sharding_constraint":
        return [constraint(eqn, plan.of(eqn.invars[0]), plan.sizes)]
    if name in _LOOPS:
        return _LOOP_RESULTS[name](eqn, plan)
    ins = [plan.of(v) for v in eqn.invars]
    hopes = [wanted.get(v) for v in eqn.outvars]
    free = all(layout is None for layout in ins)
    if free and not any(h is not None and any(h) for h in hopes):
        return [None] * len(eqn.outvars)
    if name == "custom_partitioning":
        operands = [plan.fixed(v) for v in eqn.invars]
        found = eqn.params["rules"].layouts(plan.sizes, *_described(eqn, operands))
        if found is not None:
            return found
    rule = eqn_rule(eqn, plan.apart)
    if rule is None:
        return [None if free else everywhere(v.aval.ndim) for v in eqn.outvars]
    # What a broadcast gives has axes that nothing has cut yet, and what is made of that alone.
    mine = [v in plan.open or plan.of(v) is None for v in eqn.invars]
    if name == "broadcast_in_dim" or not free and not rule.reduced and all(mine):
        plan.open.update(eqn.outvars)
    if not plan.apart:
        return results(rule, ins, hopes, plan.sizes)
    return results(rule, agreed(rule, ins), hopes, plan.sizes, uneven=True)


def _described(eqn: Eqn, ins: Sequence[Layout]) -> tuple[list, Sequence[Layout], list]:
    """The avals of an equation's operands, how they lie, and the avals of its results."""
    return [v.aval for v in eqn.invars], ins, [v.aval for v in eqn.outvars]


def eqn_rule(eqn: Eqn, apart: bool = False) -> Rule | None:
    """The rule of an equation; apart: as in `propagate`."""
    avals = [v.aval for v in eqn.invars]
    outs = [v.aval for v in eqn.outvars]
    if apart and eqn.primitive.name == "dynamic_slice":  # XLA knows where a slice begins, or not
        apart = all([type(v) is Literal for v in eqn.invars[1:]])
    return rule_of(eqn.primitive, avals, outs, eqn.params, apart)


def constraint(eqn: Eqn, have: Free, sizes: Sizes) -> Free:
    """The layout that a constraint asks for; axes that it leaves open stay as they are."""
    sharding: Any = eqn.params.get("sharding")
    if not hasattr(sharding, "layout"):  # of one device
        return have
    ndim = eqn.outvars[0].aval.ndim
    wanted = sharding.layout(ndim, everywhere(ndim) if have is None else have)
    found = _among(sizes, wanted, sharding.mesh)
    return have if found is None else found


def label(aval: Any, layout: Free, sizes: Sizes) -> Free:
    """The layout that an array shows: `as_typed`, of axes that divide it."""
    found = as_typed(aval, layout, sizes)
    return None if found is None else dividing(aval.shape, found, sizes)


def _among(sizes: Sizes, layout: Layout, mesh: Any) -> Free:
    """A layout over the axes that `sizes` has. Those of another mesh of the same devices are the
    ones in their places, where all have the same sizes; else None."""
    if all([name in sizes for axes in layout for name in axes]):
        return layout
    own = mesh.shape
    if [*own.values()] != [*sizes.values()]:
        return None
    names = dict(zip(own, sizes))
    return tuple([tuple([names.get(name, name) for name in axes]) for axes in layout])


def _backward(jaxpr: Jaxpr, plan: Plan, wanted: dict[Any, Layout]) -> None:
    """Give free variables the layout in which they are read."""
    for eqn in reversed(jaxpr.eqns):
        if eqn.primitive.name in _LOOPS:
            _want(eqn.invars, _loop_operands(eqn, plan), plan, wanted)
            continue
        if eqn.primitive.name == "sharding_constraint":
            _want(eqn.invars, [constraint(eqn, plan.of(eqn.invars[0]), plan.sizes)], plan, wanted)
            continue
        if not any(type(v) is Var and (plan.of(v) is None or v in plan.open) for v in eqn.invars):
            continue
        rule = eqn_rule(eqn, plan.apart)
        if rule is None:
            continue
        hopes = [wanted.get(v) for v in eqn.outvars]
        cuts = assign(rule, [_have(v, plan) for v in eqn.invars], hopes, plan.sizes)
        if cuts:
            _want(eqn.invars, [layout_of(dims, cuts) for dims in rule.ins], plan, wanted)


def _have(atom: Any, plan: Plan) -> Free:
    """The layout that an operand has; None where it may yet be cut as it pleases."""
    found = plan.of(atom)
    return None if found is None or not any(found) and atom in plan.open else found


def _want(
    atoms: Sequence[Any], layouts: Sequence[Free], plan: Plan, wanted: dict[Any, Layout]
) -> None:
    for v, layout in zip(atoms, layouts, strict=True):
        if type(v) is Var and layout is not None and any(layout) and (
            plan.of(v) is None or v in plan.open
        ):
            wanted.setdefault(v, layout)


# ------------------------------------------------------------------ loops and branches
def _meet(a: Free, b: Free) -> Free:
    """What both layouts cut alike."""
    if a is None or b is None:
        return b if a is None else a
    return tuple([x if x == y else () for x, y in zip(a, b, strict=True)])


def _within(closed: ClosedJaxpr, ins: Sequence[Free], plan: Plan) -> Plan:
    key = (id(closed), *ins)
    found = plan.known.get(key)
    if found is None:
        made = propagate(closed.jaxpr, ins, None, plan.sizes, plan.apart, plan.known)
        found = plan.known[key] = closed, made  # whose id is no other's as long as it lives
    return found[1]


def _settled(
    closed: ClosedJaxpr, before: list, carry: list, after: list, around: Plan
) -> tuple[Plan, list]:
    """The plan of a loop's body whose carries are laid out alike before and after a round."""
    while True:
        plan = _within(closed, [*before, *carry, *after], around)
        ends = [plan.of(v) for v in closed.jaxpr.outvars[: len(carry)]]
        met = [_meet(a, b) for a, b in zip(carry, ends, strict=True)]
        if met == carry:
            fixed = [
                everywhere(v.aval.ndim) if m is None else m
                for m, v in zip(met, closed.jaxpr.outvars)
            ]
            if fixed != carry:  # free to the end: everywhere
                plan = _within(closed, [*before, *fixed, *after], around)
            return plan, fixed
        carry = met


def _scan(eqn: Eqn, plan: Plan) -> list[Free]:
    nc, nk = eqn.params["num_consts"], eqn.params["num_carry"]
    ins = [plan.of(v) for v in eqn.invars]
    rows: list[Free] = [None if a is None else a[1:] for a in ins[nc + nk :]]
    closed = eqn.params["jaxpr"]
    inner, carry = _settled(closed, ins[:nc], ins[nc : nc + nk], rows, plan)
    plan.inner[id(eqn)], plan.carried[id(eqn)] = [inner], carry
    stacked = [inner.of(v) for v in closed.jaxpr.outvars[nk:]]
    return [*carry, *[None if a is None else ((), *a) for a in stacked]]


def _while(eqn: Eqn, plan: Plan) -> list[Free]:
    nc, nb = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    ins = [plan.of(v) for v in eqn.invars]
    body = eqn.params["body_jaxpr"]
    inner, carry = _settled(body, ins[nc : nc + nb], ins[nc + nb :], [], plan)
    test = _within(eqn.params["cond_jaxpr"], [*ins[:nc], *carry], plan)
    plan.inner[id(eqn)], plan.carried[id(eqn)] = [test, inner], carry
    return list(carry)


def _cond(eqn: Eqn, plan: Plan) -> list[Free]:
    ins = [plan.of(v) for v in eqn.invars[1:]]
    plans, outs = [], None
    for branch in eqn.params["branches"]:
        inner = _within(branch, ins, plan)
        plans.append(inner)
        found = [inner.of(v) for v in branch.jaxpr.outvars]
        outs = found if outs is None else [_meet(a, b) for a, b in zip(outs, found, strict=True)]
    assert outs is not None
    plan.inner[id(eqn)] = plans
    fixed = [everywhere(v.aval.ndim) if a is None else a for a, v in zip(outs, eqn.outvars)]
    plan.carried[id(eqn)] = fixed
    return list(fixed)


_LOOP_RESULTS = {"scan": _scan, "while": _while, "cond": _cond}


def _loop_operands(eqn: Eqn, plan: Plan) -> list[Free]:
    """The layouts in which a loop reads its operands, where the loop decides."""
    count = len(eqn.invars)
    found: list[Free] = [None] * count
    if eqn.primitive.name == "scan":
        nc, nk = eqn.params["num_consts"], eqn.params["num_carry"]
        found[nc : nc + nk] = plan.carried[id(eqn)]
    elif eqn.primitive.name == "while":
        nk = len(eqn.outvars)
        found[count - nk :] = plan.carried[id(eqn)]
    return found


