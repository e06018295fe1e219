"""The call primitive behind `jit`: a closed jaxpr applied to operands. `api.compiled.jit` makes its
equations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.base import config
from numjet.core.evaluate import run_compiled
from numjet.core.jaxpr import HELD, ClosedJaxpr, Var
from numjet.core.lowering import Region
from numjet.core.ref_equations import OverRefs
from numjet.core.trace import set_trace
from numjet.transforms.batch import Axis, batch_jaxpr_in_place
from numjet.transforms.calls import Bind, call_batch, call_jvp, call_transpose, merge, partition
from numjet.transforms.linearize import partial_eval_jaxpr
from numjet.transforms.simplify import dce_jaxpr
from numjet.transforms.stage import hoist_consts


def _evaluate(*args: Any, jaxpr: ClosedJaxpr, name: str) -> list[Any]:
    return run_compiled(jaxpr, args, name)


def _bind(name: str, held: int = 0) -> Bind:
    return lambda closed, args: call(closed, args, name, held)


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
        if any([i is not None for i in passed]):
            kept = [v for v, i in zip(outvars, passed, strict=True) if i is None]
            closed = ClosedJaxpr(closed.jaxpr.replace(outvars=kept), closed.consts)
        found = closed.cache["without passed", first] = closed, passed
    return found


def _live(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr without what no result depends on: one for one, which prints show."""
    found = closed.cache.get("live")
    if found is None:
        live = ClosedJaxpr(dce_jaxpr(closed.jaxpr)[0], closed.consts)
        found = closed.cache["live"] = live
    return found


def _partial_eval(trace: Any, args: Sequence[Any], params: dict) -> list[Any]:
    closed, name = params["jaxpr"], params["name"]
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
        made = iter(call(known_jaxpr, known_args, name, closed.cache.get(HELD, 0)))
        outs = [next(made) if i is None else known_args[i] for i in passed]
    later: list[Any] = []
    if any(unknown_out):
        params = {"jaxpr": unknown_jaxpr, "name": name}
        later = trace.record(jit_p, [*outs[n_known:], *unknown_args], params)
    return merge(unknown_out, outs, later)


def _jvp(primals: tuple, tangents: tuple, *, jaxpr: ClosedJaxpr, name: str) -> tuple:
    return call_jvp(_bind(name, jaxpr.cache.get(HELD, 0)), jaxpr, primals, tangents)


def _batch(axis: Axis, args: tuple, dims: tuple, *, jaxpr: ClosedJaxpr, name: str) -> tuple:
    held = jaxpr.cache.get(HELD, 0)
    if config.jax_form():
        batched, dims_out = batch_jaxpr_in_place(jaxpr, axis, dims)
        return call(batched, args, name, held), dims_out
    return call_batch(_bind(name, held), jaxpr, axis, args, dims)


jit_p = OverRefs(
    "jit",
    multiple_results=True,
    higher_order=True,
    linear=True,
    abstract=lambda *avals, jaxpr, **_: jaxpr.out_avals,
    evaluate=_evaluate,
    jvp=_jvp,
    batch=_batch,
    transpose=lambda cts, *args, jaxpr, name: call_transpose(_bind(name), jaxpr, cts, args),
    partial_eval=_partial_eval,
    loops=Region("jit"),
    effects=lambda jaxpr, **_: jaxpr.effects,
)


def call(closed: ClosedJaxpr, args: Sequence[Any], name: str, held: int = 0) -> list[Any]:
    """Apply a closed jaxpr as one call equation; its constants become operands. held: how many of
    the first operands are constants already."""
    if closed.consts:
        args, held = [*closed.consts, *args], held + len(closed.consts)
        closed = hoist_consts(closed.jaxpr)
    if held:
        closed.cache[HELD] = held
    return jit_p.bind(*args, jaxpr=closed, name=name)
