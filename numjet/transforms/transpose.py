"""Transposition: turn a recorded linear function round, from outputs' cotangents to inputs'.

Walks the equations backwards; each linear primitive's transpose rule gives the cotangents of its
operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.base.config import numeric_checks
from numjet.core import dtypes, hooks
from numjet.core.array import Array, ArrayImpl
from numjet.core.avals import Placed, ShapedArray, any_placed, lenient
from numjet.core.debug_info import derived
from numjet.core.deferred import DeferredArray
from numjet.core.hooks import Sharded
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Literal, Var, note_form
from numjet.core.names import NamedSource, names_set
from numjet.core.primitive import Linear, Primitive, Zero
from numjet.core.refs import RefUse
from numjet.core.structural import add_any, placed_like
from numjet.core.trace import EVAL, current_trace
from numjet.transforms.linear_steps import LinearStep
from numjet.transforms.replay import transposes
from numjet.transforms.stage import StageTrace, stage

# Primitives whose rules are the user's: they run, on zeros, also where only zeros arrive.
RUN_ON_ZEROS: set[Primitive] = set()


def backward(
    eqns: Sequence[Eqn],
    env: dict[Var, Any],
    linear: set[Var] | None,
    cotangents: dict[Var, Any],
) -> None:
    """Accumulate into `cotangents` (variable -> value) through `eqns`, last to first.

    `linear` holds the variables the function is linear in (None: all are); other variables' values
    are in `env` (inputs that are no variables are values themselves).
    """
    staging = current_trace().staging
    line = None if staging is None else staging.source
    try:
        _backward(eqns, env, linear, cotangents, staging, line)
    finally:
        if staging is not None:
            staging.source = line


def _backward(
    eqns: Sequence[Eqn],
    env: dict[Var, Any],
    linear: set[Var] | None,
    cotangents: dict[Var, Any],
    staging: Any,
    line: Any,
) -> None:
    trace: Any = current_trace()
    concrete = trace is EVAL and not numeric_checks[0]
    staged = linear is None and type(trace) is StageTrace
    patterns = transposes(len(eqns)) if staged else None
    ends = tuple(cotangents)
    for eqn in reversed(eqns):
        if type(eqn) is LinearStep:
            ct = cotangents.get(eqn.outvars[0])
            if ct is None:
                continue
            # What a rule calls evaluates arrays at home alone.
            at_home = type(ct) is ArrayImpl or type(ct) is DeferredArray
            if not concrete or not at_home or ct.aval is not eqn.rule.aval:
                _backward(eqn.expand(), env, linear, cotangents, staging, line)
                continue
            del cotangents[eqn.outvars[0]]
            for v, part in zip(eqn.invars, eqn.rule.backward(ct, eqn.residuals), strict=True):
                if part is not None:
                    have = cotangents.get(v)
                    cotangents[v] = part if have is None else add_any(have, part)
            continue
        primitive, several = eqn.primitive, None
        if primitive.multiple_results:
            several = [cotangents.pop(v, None) for v in eqn.outvars]
            if all([ct is None for ct in several]) and not (
                primitive in RUN_ON_ZEROS and _is_read(eqn, eqns, ends, linear)
            ):
                continue
        else:
            single = cotangents.pop(eqn.outvars[0], None)
            if single is None:
                continue
        if primitive.transpose is None:
            raise NotImplementedError(
                f"Transpose rule (for reverse-mode differentiation) for {primitive.name!r} not "
                "implemented: it is not linear, or has no such rule. "
                "Use forward mode (jvp, jacfwd), or give the function a custom_vjp."
            )
        if staging is not None:
            # What a rule binds comes from the line of its equation, a user's function from its own.
            told = eqn.source.transposed() if type(eqn.source) is NamedSource else eqn.source
            staging.source = line if primitive.higher_order else told or line
        results: Any = None
        placed = Placed.active and any_placed([v.aval for v in (*eqn.invars, *eqn.outvars)])
        if patterns is not None and several is None and not placed:
            results = hooks.transposed(patterns, trace, eqn, single)
        if results is None:
            cts = single if several is None else several
            if placed:
                results = _as_operands(eqn, cts, env, linear)
            elif Sharded.placing:  # residuals may be of functions within which axes differ in type
                with lenient():
                    results = _by_rule(eqn, cts, env, linear)
            elif primitive.higher_order and type(eqn.source) is NamedSource:
                with names_set(eqn.source.transposed().names):
                    results = _by_rule(eqn, cts, env, linear)
            else:
                results = _by_rule(eqn, cts, env, linear)
        for x, ct in zip(eqn.invars, results, strict=True):
            if type(x) is not Var or ct is None or type(ct) is Zero:
                continue
            if linear is not None and x not in linear:
                continue
            have = cotangents.get(x)
            cotangents[x] = ct if have is None else add_any(have, ct)


def _as_operands(eqn: Eqn, ct: Any, env: dict[Var, Any], linear: set[Var] | None) -> list[Any]:
    """`_by_rule`, where operands are cut over Explicit axes of a mesh: cotangents lie as they."""
    with lenient():
        results = _by_rule(eqn, ct, env, linear)
    return [
        placed_like(ct, x.aval.cotangent()) if type(x) is Var and isinstance(ct, Array) else ct
        for x, ct in zip(eqn.invars, results, strict=True)
    ]


def _is_read(eqn: Eqn, eqns: Sequence[Eqn], ends: tuple, linear: set[Var] | None) -> bool:
    """Whether one of `ends` is computed from a result of `eqn`."""
    read = set(ends)
    for later in reversed(eqns):
        if later is eqn:
            break
        if not read.isdisjoint(later.outvars):
            names = [x for x in later.invars if type(x) is Var]
            read.update([x for x in names if linear is None or x in linear])
    return not read.isdisjoint(eqn.outvars)


def _by_rule(eqn: Eqn, ct: Any, env: dict[Var, Any], linear: set[Var] | None) -> Sequence[Any]:
    """The cotangents of an equation's operands from those of its results (None for zeros)."""
    args: list[Any] = []
    for x in eqn.invars:
        if type(x) is Var:
            args.append(Linear(x.aval) if linear is None or x in linear else env[x])
        else:
            args.append(x.value if type(x) is Literal else x)
    rule: Any = eqn.primitive.transpose
    if eqn.primitive.multiple_results:
        ct = [Zero(v.aval) if x is None else x for v, x in zip(eqn.outvars, ct, strict=True)]
    return rule(ct, *args, **eqn.params)


def transpose_tape(
    tape: Sequence[Eqn], in_vars: Sequence[Var], out_tangents: Sequence[Any], cts: Sequence[Any]
) -> list[Any]:
    """Cotangents of `in_vars` (`Zero` where none arrives) from those of the outputs."""
    cotangents: dict[Var, Any] = {}
    for var, ct in zip(out_tangents, cts, strict=True):
        if type(var) is Var and type(ct) is not Zero and ct.aval.dtype != dtypes.float0:
            have = cotangents.get(var)
            cotangents[var] = ct if have is None else add_any(have, ct)
    backward(tape, {}, None, cotangents)  # a tape's variables are all unknown, known inputs values
    return [cotangents[v] if v in cotangents else Zero(v.aval) for v in in_vars]


def backward_pass(
    closed: ClosedJaxpr, args: Sequence[Any], cts: Sequence[Any], start: Sequence[Any] = ()
) -> list[Any]:
    """Cotangents of the `Linear` entries of `args` (None for the others), added to those of the
    first of them in `start`.

    Equations that do not depend on linear inputs are evaluated forward first.
    """
    jaxpr = closed.jaxpr
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    linear: set[Var] = set()
    for var, x in zip(jaxpr.invars, args, strict=True):
        if type(x) is Linear:
            linear.add(var)
        else:
            env[var] = x
    linear_eqns = []
    for eqn in jaxpr.eqns:
        if any(type(v) is Var and v in linear for v in eqn.invars):
            linear.update(eqn.outvars)
            linear_eqns.append(eqn)
            continue
        values = [v.value if type(v) is Literal else env[v] for v in eqn.invars]  # type: ignore[index]
        out = eqn.primitive.bind(*values, **eqn.params)
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True))
    first = [v for v in jaxpr.invars if v in linear]
    cotangents: dict[Var, Any] = dict(zip(first, start))
    for v, ct in zip(jaxpr.outvars, cts, strict=True):
        if type(v) is Var and v in linear and type(ct) is not Zero:
            have = cotangents.get(v)
            cotangents[v] = ct if have is None else add_any(have, ct)
    backward(linear_eqns, env, linear, cotangents)
    return [
        (cotangents[v] if v in cotangents else Zero(v.aval)) if v in linear else None
        for v in jaxpr.invars
    ]


def transpose_jaxpr(
    closed: ClosedJaxpr,
    linear: Sequence[bool],
    nonzero_cts: Sequence[bool],
    use: RefUse | None = None,
) -> tuple[ClosedJaxpr, list[bool]]:
    """The jaxpr of (non-linear inputs, nonzero output cotangents) to the nonzero cotangents of
    linear inputs.

    Also says which linear inputs' cotangents are nonzero. Remembered with the jaxpr, unless rules
    by the user read references from outside. Of those that write some `use` tells, and the jaxpr is
    of no use then; without it they are refused.
    """
    key = ("transpose", tuple(linear), tuple(nonzero_cts))
    note_form(closed)
    found = closed.cache.get(key)
    if found is not None:
        note_form(found[0])
        return found
    nonzero_out: list[bool] = []
    avals, outs = closed.in_avals, closed.out_avals

    def fun(*values: Any) -> list[Any]:
        given = iter(values)
        args = [Linear(a) if lin else next(given) for a, lin in zip(avals, linear, strict=True)]
        cts = [next(given) if nz else Zero(a) for a, nz in zip(outs, nonzero_cts, strict=True)]
        results = [
            ct for ct, lin in zip(backward_pass(closed, args, cts), linear, strict=True) if lin
        ]
        nonzero_out.extend(type(ct) is not Zero for ct in results)
        return [ct for ct in results if type(ct) is not Zero]

    in_avals: list[ShapedArray] = [a for a, lin in zip(avals, linear, strict=True) if not lin]
    in_avals += [a for a, nz in zip(outs, nonzero_cts, strict=True) if nz]
    seen = RefUse() if use is None else use
    jaxpr, consts = stage(fun, in_avals, use=seen)
    if seen.written and use is None:
        raise NotImplementedError(
            "A reference from outside is written by a custom_vjp rule within a loop or a branch. "
            "Write it in rules of functions that are called in none."
        )
    jaxpr.debug = derived(closed.jaxpr)
    result = ClosedJaxpr(jaxpr, consts), nonzero_out
    if not (seen.written or seen.fixed):
        closed.cache[key] = result
    return result
