"""The call primitive behind `jit`: a closed jaxpr applied to operands. `api.compiled.jit_core`
makes its equations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.base import config
from numjet.core import jit_params
from numjet.core.evaluate import run_compiled
from numjet.core.jaxpr import HELD, PART, ClosedJaxpr, Var, eval_jaxpr
from numjet.core.jit_params import UNSPECIFIED
from numjet.core.lowering import Region
from numjet.core.primitive import Linear, Zero
from numjet.core.ref_equations import OverRefs
from numjet.core.refs import RefUse
from numjet.core.trace import current_trace, set_trace
from numjet.ops.constraint import sharding_constraint_p
from numjet.transforms.batch import Axis, batch_jaxpr_in_place
from numjet.transforms.calls import Bind, call_batch, call_jvp, call_transpose, merge, partition
from numjet.transforms.jvp import jvp_jaxpr
from numjet.transforms.linearize import partial_eval_jaxpr
from numjet.transforms.simplify import dce_jaxpr
from numjet.transforms.stage import hoist_consts


class Call(OverRefs):
    """A call: its equations say all that JAX's do where `make_jaxpr` traces (`core.jit_params`),
    and the jaxpr and its name alone elsewhere, where shardings are constraints."""

    __slots__ = ()

    def bind(self, *args: Any, jaxpr: ClosedJaxpr, name: str, **told: Any) -> Any:
        """Call the jaxpr under the current trace."""
        if config.jax_equations.uses and config.jax_equations.value:
            told = jit_params.completed(told, len(args), len(jaxpr.out_avals))
        elif told:
            config.asked.note()
            ins, wanted = told.get("in_shardings", ()), told.get("out_shardings", ())
            args = tuple(_laid_out(args, ins)) if ins else args
            outs = super().bind(*args, jaxpr=jaxpr, name=name)
            return _laid_out(outs, wanted) if wanted else outs
        return super().bind(*args, jaxpr=jaxpr, name=name, **told)


def _laid_out(values: Sequence[Any], shardings: Sequence[Any]) -> list[Any]:
    return [
        x if s is UNSPECIFIED else sharding_constraint_p.bind(x, sharding=s)
        for x, s in zip(values, shardings, strict=True)
    ]


def _evaluate(*args: Any, jaxpr: ClosedJaxpr, name: str, **_: Any) -> list[Any]:
    return run_compiled(jaxpr, args, name)


def _bind(name: str, held: int = 0, told: dict[str, Any] | None = None) -> Bind:
    return lambda closed, args: call(closed, args, name, held, told)


def _places(count: int, flags: Sequence[bool]) -> list[int | None]:
    """Of values behind which those with a flag have a tangent each: which they belong to."""
    return [*range(count), *[i for i, flag in enumerate(flags) if flag]]


def _without_passed(closed: ClosedJaxpr, first: int) -> tuple[ClosedJaxpr, list[int | None]]:
    """The jaxpr without results from the `first` on that are its arguments, and for each result
    the argument's place, or None."""
    found = closed.cache.get(("without passed", first))
    if found is None:
        place = {v: i for i, v in enumerate(closed.jaxpr.invars)}
        outvars = closed.jaxpr.outvars
        passed = [
            place.get(v) if i >= first and type(v) is Var else None for i, v in enumerate(outvars)
        ]
        without = None  # itself, which it does not hold
        if any([i is not None for i in passed]):
            kept = [v for v, i in zip(outvars, passed, strict=True) if i is None]
            without = ClosedJaxpr(closed.jaxpr.replace(outvars=kept), closed.consts)
        found = closed.cache["without passed", first] = without, passed
    return found[0] or closed, found[1]


def _live(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr without what no result depends on: one for one, which prints show."""
    found = closed.cache.get("live")
    if found is None:
        live = ClosedJaxpr(dce_jaxpr(closed.jaxpr)[0], closed.consts)
        found = closed.cache["live"] = live
    return found


def _partial_eval(trace: Any, args: Sequence[Any], params: dict) -> list[Any]:
    closed, name = params["jaxpr"], params["name"]
    told = {key: value for key, value in params.items() if key in jit_params.NAMES}
    unknown = [trace.is_unknown(x) for x in args]
    known_jaxpr, unknown_jaxpr, unknown_out, residual_avals = partial_eval_jaxpr(
        closed, unknown, keep_zeros=config.jax_form()
    )
    known_args, unknown_args = partition(args, unknown)
    n_known = len(known_jaxpr.out_avals) - len(residual_avals)
    first = n_known
    if config.jax_form():  # without what nothing reads and what is handed on, as JAX writes it
        known_jaxpr, first = _live(known_jaxpr), 0
    known_jaxpr, passed = _without_passed(known_jaxpr, first)
    with set_trace(trace.parent):
        known = told
        if told:
            of_known = [i for i, flag in enumerate(unknown_out) if not flag]
            of_outs = [*of_known, *[None] * len(residual_avals)]
            kept = [i for i, at in zip(of_outs, passed, strict=True) if at is None]
            known = jit_params.derived(told, [i for i, u in enumerate(unknown) if not u], kept)
        made = iter(call(known_jaxpr, known_args, name, closed.cache.get(HELD, 0), known))
        outs = [next(made) if i is None else known_args[i] for i in passed]
    later: list[Any] = []
    if any(unknown_out):
        unknown_jaxpr.cache[PART] = 1
        params = {"jaxpr": unknown_jaxpr, "name": name}
        if told:
            ins = [*[None] * len(residual_avals), *[i for i, u in enumerate(unknown) if u]]
            outs_of = [i for i, u in enumerate(unknown_out) if u]
            params.update(jit_params.derived(told, ins, outs_of))
        later = trace.record(jit_p, [*outs[n_known:], *unknown_args], params)
    return merge(unknown_out, outs, later)


def _jvp(primals: tuple, tangents: tuple, *, jaxpr: ClosedJaxpr, name: str, **told: Any) -> tuple:
    held = jaxpr.cache.get(HELD, 0)
    if not told:
        return call_jvp(_bind(name, held), jaxpr, primals, tangents)
    ins = _places(len(primals), [type(t) is not Zero for t in tangents])

    def bind(closed: ClosedJaxpr, args: list) -> list:
        nonzero_out = jvp_jaxpr(jaxpr, [type(t) is not Zero for t in tangents], use=RefUse())[1]
        outs = _places(len(jaxpr.out_avals), nonzero_out)
        if len(args) != len(ins) or len(closed.out_avals) != len(outs):  # references besides
            return call(closed, args, name, held)
        return call(closed, args, name, held, jit_params.derived(told, ins, outs))

    return call_jvp(bind, jaxpr, primals, tangents)


def _batch(
    axis: Axis, args: tuple, dims: tuple, *, jaxpr: ClosedJaxpr, name: str, **told: Any
) -> tuple:
    held = jaxpr.cache.get(HELD, 0)
    if config.jax_form():
        batched, dims_out = batch_jaxpr_in_place(jaxpr, axis, dims)
        return call(batched, args, name, held, jit_params.mapped(told, dims, dims_out)), dims_out
    return call_batch(_bind(name, held), jaxpr, axis, args, dims)


def _transpose(cts: list, *args: Any, jaxpr: ClosedJaxpr, name: str, **told: Any) -> list:
    if not told:
        return call_transpose(_bind(name), jaxpr, cts, args)
    linear = [i for i, x in enumerate(args) if type(x) is Linear]
    nonzero = [i for i, ct in enumerate(cts) if type(ct) is not Zero]

    def bind(closed: ClosedJaxpr, operands: list) -> list:
        closed.cache[PART] = 1
        residuals = len(operands) - len(nonzero)
        if len(closed.out_avals) != len(linear):  # some cotangents are zero
            return call(closed, operands, name)
        return call(closed, operands, name, 0, jit_params.turned(told, residuals, linear, nonzero))

    return call_transpose(bind, jaxpr, cts, args)


jit_p = Call(
    "jit",
    multiple_results=True,
    higher_order=True,
    linear=True,
    abstract=lambda *avals, jaxpr, **_: jaxpr.out_avals,
    evaluate=_evaluate,
    jvp=_jvp,
    batch=_batch,
    transpose=_transpose,
    partial_eval=_partial_eval,
    loops=Region("jit"),
    effects=lambda jaxpr, **_: jaxpr.effects,
)


def call(
    closed: ClosedJaxpr, args: Sequence[Any], name: str, held: int = 0,
    told: dict[str, Any] | None = None,
) -> list[Any]:  # fmt: skip
    """Apply a closed jaxpr as one call equation; its constants become operands. held: how many of
    the first operands are constants already. told: what the equation says besides."""
    if closed.consts:
        args, held = [*closed.consts, *args], held + len(closed.consts)
        closed = hoist_consts(closed.jaxpr)
    if held:
        closed.cache[HELD] = held
    if told and told.get("inline") and (trace := current_trace()).staging is trace:
        return eval_jaxpr(closed.jaxpr, [], *args)
    return jit_p.bind(*args, jaxpr=closed, name=name, **told or {})
