"""while_loop and fori_loop: loops whose trip count may depend on values, as one primitive.

Operands are cond consts, body consts, carry; results are the carry. Differentiable forwards only,
since how many rounds are to be kept is not known: a `fori_loop` of a known count is a scan. What
would break it: another order of operands, which `cpu.regions` and `xla` read, too.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.base import config, errors, tree
from numjet.base.tracebacks import boundary
from numjet.core import dtypes, hi
from numjet.core.array import ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.debug_info import Tracing
from numjet.core.effects import refuse_io
from numjet.core.evaluate import run_compiled
from numjet.core.jaxpr import ClosedJaxpr, Eqn, eval_closed
from numjet.core.lowering import Region
from numjet.core.memo import FunctionMemo
from numjet.core.primitive import REGISTRY, Met, Zero
from numjet.core.ref_equations import OverRefs
from numjet.core.refs import RefUse
from numjet.core.remote import traced_with
from numjet.core.shared import Flow
from numjet.core.structural import broadcast_in_dim, convert, instantiate
from numjet.core.trace import Trace, aval_of, concrete_or_none, current_trace, set_trace
from numjet.ops.arithmetic import add
from numjet.ops.bodies import (
    add_inputs,
    check_carry,
    check_varying,
    convert_all,
    first_name,
    fixed_point,
    flatten_values,
    module_of,
    permute,
    split,
    stage_tree,
    strengthen,
)
from numjet.ops.constraint import broadcast_mapped
from numjet.ops.guarded import guarded, guards
from numjet.ops.logic import bitwise_and, lt
from numjet.ops.reduce import reduce_or
from numjet.ops.scan import as_program, permute_once, scan
from numjet.ops.shape import select_n
from numjet.transforms.batch import Axis, BatchTrace, batch_jaxpr, mapped_to_front
from numjet.transforms.calls import partition, with_zeros
from numjet.transforms.jvp import jvp_jaxpr
from numjet.transforms.linearize import partial_eval_jaxpr
from numjet.transforms.simplify import dce_jaxpr, prune_loop
from numjet.transforms.stage import StageTrace, stage, stage_closed
from numjet.transforms.varying import along, grown


def _abstract(
    *avals: ShapedArray, cond_nconsts: int, body_nconsts: int, cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
) -> list[ShapedArray]:  # fmt: skip
    if cond_jaxpr.out_avals[0].shape and not config.jax_form():
        raise TypeError(
            "while: a loop with a predicate for each example came back from a trace without "
            "`bind`. Write while_p.bind(*args, **params)."
        )
    outs = list(avals[cond_nconsts + body_nconsts :])
    if outs != body_jaxpr.out_avals and config.jax_form():  # weak or not as the body's results are
        return body_jaxpr.out_avals
    return outs


def _evaluate(*args: Any, **params: Any) -> list[Any]:
    if params["cond_jaxpr"].out_avals[0].shape:
        return bind_mapped_while(*args, **params)
    return run_compiled(as_program(while_p, args, params, params["body_jaxpr"]), args, "while")


def _jvp(
    primals: tuple,
    tangents: tuple,
    *,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> tuple:
    _, nz_consts, nz_carry = split(
        [type(t) is not Zero for t in tangents], cond_nconsts, body_nconsts
    )
    nz_carry, derived, _ = fixed_point(
        lambda nz: jvp_jaxpr(body_jaxpr, nz_consts + nz, nz), nz_carry
    )
    n_carry, n_tc = len(nz_carry), sum(nz_consts)
    parts = split(range(len(derived.jaxpr.invars)), body_nconsts, n_carry, n_tc)
    in_order = parts[0] + parts[2] + parts[1] + parts[3]
    derived = permute_once(
        derived, ("while_jvp", tuple(in_order)), in_order, range(len(derived.jaxpr.outvars))
    )
    c_consts, b_consts, carry = split(primals, cond_nconsts, body_nconsts)
    _, t_consts, t_carry = split(tangents, cond_nconsts, body_nconsts)
    given = [instantiate(t) for t, nz in zip(t_carry, nz_carry, strict=True) if nz]
    key = ("while_cond_jvp", tuple(nz_carry))
    cond = cond_jaxpr.cache.get(key)
    if cond is None:
        cond = cond_jaxpr.cache[key] = add_inputs(
            cond_jaxpr, len(cond_jaxpr.jaxpr.invars), [t.aval for t in given]
        )
    outs = while_p.bind(
        *c_consts,
        *b_consts,
        *[t for t in t_consts if type(t) is not Zero],
        *carry,
        *given,
        cond_jaxpr=cond,
        body_jaxpr=derived,
        cond_nconsts=cond_nconsts,
        body_nconsts=body_nconsts + n_tc,
    )
    return outs[:n_carry], with_zeros(outs[:n_carry], nz_carry, outs[n_carry:])


def _batch(
    axis: Axis,
    args: tuple,
    dims: tuple,
    *,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> tuple:
    m_cond, m_body, m_carry = split([d is not None for d in dims], cond_nconsts, body_nconsts)

    many = bool(cond_jaxpr.out_avals[0].shape)  # of a `vmap` inside: see `bind_mapped_while`

    def step(m_carry: list[bool]) -> tuple:
        body, m_out = batch_jaxpr(body_jaxpr, axis, m_body + m_carry, m_carry)
        cond, (m_pred,) = batch_jaxpr(cond_jaxpr, axis, m_cond + m_carry, [many])
        return (body, cond, m_pred), [m or m_pred for m in m_out]

    m_carry, (body, cond, m_pred), _ = fixed_point(step, m_carry)
    c_consts, b_consts, carry = split(mapped_to_front(args, dims), cond_nconsts, body_nconsts)
    carry = [
        x if d is not None or not m else broadcast_mapped(x, None, axis)
        for x, d, m in zip(carry, dims[cond_nconsts + body_nconsts :], m_carry, strict=True)
    ]
    if m_pred and not many and guards(axis, cond_jaxpr.effects | body_jaxpr.effects):
        flags = [True, *m_cond, *m_carry], [True, *m_body, *m_carry]
        cond, _ = batch_jaxpr(guarded(cond_jaxpr), axis, flags[0], True)
        body, _ = batch_jaxpr(guarded(body_jaxpr), axis, flags[1], m_carry)
        outs = _run_with_calls(axis.size, cond, body, c_consts, b_consts, carry)
        return outs, [0] * len(outs)
    if m_pred:
        refuse_io(
            cond.effects | body.effects,
            "vmap-of-while",
            "Examples stop at different steps, and finished ones would call it again; use lax.map.",
        )
        bind = while_p.bind if reaches_users_trace() or is_looked_at() else bind_mapped_while
        outs = bind(
            *c_consts,
            *b_consts,
            *carry,
            cond_jaxpr=cond,
            body_jaxpr=body,
            cond_nconsts=cond_nconsts,
            body_nconsts=body_nconsts,
        )
        return outs, [0] * len(outs)
    outs = while_p.bind(
        *c_consts,
        *b_consts,
        *carry,
        cond_jaxpr=cond,
        body_jaxpr=body,
        cond_nconsts=cond_nconsts,
        body_nconsts=body_nconsts,
    )
    return outs, [0 if m else None for m in m_carry]


def reaches_users_trace() -> bool:
    """Whether a trace that a library wrote in JAX's protocol is the next but for maps."""
    trace: Any = current_trace()
    while isinstance(trace, BatchTrace):
        trace = trace.parent
    return type(trace).process is Trace.process


def is_looked_at() -> bool:
    """Whether `make_jaxpr` is the next trace but for maps: it shows a mapped loop as it is."""
    trace: Any = current_trace()
    while isinstance(trace, BatchTrace):
        trace = trace.parent
    return config.jax_form() and type(trace) is StageTrace


def _stage(trace: Any, args: Sequence[Any], params: dict) -> Any:
    if params["cond_jaxpr"].out_avals[0].shape:
        if not config.jax_form():
            return bind_mapped_while(*args, **params)
        Met.shown(while_p, _plain)
    return trace.record(while_p, args, params)


def _plain(eqn: Eqn) -> Eqn:
    """A mapped loop as a call of what runs."""
    if not eqn.params["cond_jaxpr"].out_avals[0].shape:
        return eqn
    run = lambda *args: bind_mapped_while(*args, **eqn.params)  # noqa: E731
    with config.jax_equations(False):
        jaxpr, consts = stage(run, [x.aval for x in eqn.invars], "while")
    params = {"jaxpr": ClosedJaxpr(jaxpr, consts), "name": "while"}
    return eqn.replace(primitive=REGISTRY["jit"], params=params)


# What is remembered with the body of a loop that examples of a batch leave one by one.
MAPPED = "examples stop one by one"


def bind_mapped_while(*args: Any, **params: Any) -> list:
    """The loop whose predicate has a value for each example; its shape is what those of the carry
    begin with. Each example stops on its own: run while any goes on, and keep finished ones.

    JAX's `while` is such a loop itself. Traces of libraries are handed it as that, since their
    values may know no `select_n`, and bind it again through here (`extend.jax_params`).
    """
    cond = params["cond_jaxpr"]
    c_consts, b_consts, carry = split(args, params["cond_nconsts"], params["body_nconsts"])
    return _run_until_all_stop(
        cond, params["body_jaxpr"], *[[as_array(x) for x in v] for v in (c_consts, b_consts, carry)]
    )


def _run_until_all_stop(
    cond: ClosedJaxpr, body: ClosedJaxpr, c_consts: list, b_consts: list, carry: list
) -> list:
    nc, nb = len(c_consts), len(b_consts)
    c_avals, b_avals, avals = ([x.aval for x in v] for v in (c_consts, b_consts, carry))

    def any_goes_on(*args: Any) -> list[Any]:
        (pred,) = eval_closed(cond, *args)
        return [reduce_or(pred, tuple(range(pred.ndim)))]

    def step(*args: Any) -> list[Any]:
        cc, bc, old = split(args, nc, nb)
        (pred,) = eval_closed(cond, *cc, *old)
        new = eval_closed(body, *bc, *old)
        return [
            select_n(
                broadcast_in_dim(pred, x.shape, tuple(range(pred.ndim))),
                x,
                convert(y, x.aval.dtype, x.aval.weak_type),
            )
            for x, y in zip(old, new, strict=True)
        ]

    key = ("while_batched", id(cond), tuple(c_avals))
    config.asked.note()
    found = body.cache.get(key)
    if found is None:
        cond_j, cond_consts = stage(any_goes_on, [*c_avals, *avals], "while_cond")
        body_j, body_consts = stage(step, [*c_avals, *b_avals, *avals], "while_body")
        found = body.cache[key] = (
            ClosedJaxpr(cond_j, cond_consts),
            ClosedJaxpr(body_j, body_consts),
            cond,
        )
        found[1].cache[MAPPED] = True
    return while_p.bind(
        *c_consts,
        *c_consts,
        *b_consts,
        *carry,
        cond_jaxpr=found[0],
        body_jaxpr=found[1],
        cond_nconsts=nc,
        body_nconsts=nc + nb,
    )


def _run_with_calls(
    size: int, cond: ClosedJaxpr, body: ClosedJaxpr, c_consts: list, b_consts: list, carry: list
) -> list:
    """The same of the devices of a map, whose calls of the host each makes as long as its own loop
    runs: `cond` and `body` take first which devices these are, and so is a carry. The condition is
    asked once for a round."""
    nc, nb = len(c_consts), len(b_consts)
    carry = [as_array(x) for x in carry]

    def step(*args: Any) -> list[Any]:
        cc, bc, (active,), old = split(args, nc, nb, 1)
        made = eval_closed(body, active, *bc, *old)
        new = [
            select_n(broadcast_in_dim(active, x.shape, (0,)), x, convert(y, a.dtype, a.weak_type))
            for x, y, a in zip(old, made, avals[1:], strict=True)
        ]
        (goes_on,) = eval_closed(cond, active, *cc, *new)
        return [bitwise_and(active, goes_on), *new]

    (active,) = eval_closed(cond, as_array(np.ones(size, np.bool_)), *c_consts, *carry)
    avals = [aval_of(x) for x in (active, *carry)]
    consts = [aval_of(x) for x in (*c_consts, *b_consts)]
    return while_p.bind(
        *c_consts,
        *b_consts,
        active,
        *carry,
        cond_jaxpr=stage_closed(lambda active, *_: [reduce_or(active, (0,))], avals, "while_cond"),
        body_jaxpr=stage_closed(step, [*consts, *avals], "while_body"),
        cond_nconsts=0,
        body_nconsts=nc + nb,
    )[1:]


def _partial_eval(trace: Any, args: Sequence[Any], params: dict) -> list[Any]:
    cond_jaxpr, body_jaxpr = params["cond_jaxpr"], params["body_jaxpr"]
    nc, nb = params["cond_nconsts"], params["body_nconsts"]
    u_cond, u_body, u_carry = split([trace.is_unknown(x) for x in args], nc, nb)

    def step(u_carry: list[bool]) -> tuple:
        known, _, u_out, residuals = partial_eval_jaxpr(body_jaxpr, u_body + u_carry, u_carry)
        return (known, residuals), u_out

    u_carry, (known, residuals), _ = fixed_point(step, u_carry)
    k_cond, _, (u_pred,), _ = partial_eval_jaxpr(cond_jaxpr, u_cond + u_carry)
    outs = trace.record(while_p, args, params)
    if u_pred or all(u_carry):
        return outs
    # The known carries run now; the recorded loop runs them again beside the unknown ones.
    n_known = len(known.jaxpr.outvars) - len(residuals)
    key = ("while_known", tuple(u_cond + u_carry))
    pair = known.cache.get(key)
    if pair is None:
        pair = known.cache[key] = (permute(k_cond, None, [0]), permute(known, None, range(n_known)))
    k_args, _ = partition(args, u_cond + u_body + u_carry)
    with set_trace(trace.parent):
        done = iter(
            while_p.bind(
                *k_args,
                cond_jaxpr=pair[0],
                body_jaxpr=pair[1],
                cond_nconsts=u_cond.count(False),
                body_nconsts=u_body.count(False),
            )
        )
    return [x if u else next(done) for x, u in zip(outs, u_carry, strict=True)]


def _transpose(cts: list, *args: Any, **params: Any) -> list:
    raise ValueError(
        "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with "
        "dynamic start/stop values: the number of rounds to store is not known while tracing. Use "
        "lax.scan, or lax.fori_loop with Python integers as bounds; or forward mode (jvp, jacfwd); "
        "or give the function a custom_vjp (implicit differentiation)."
    )


def _prune(params: dict, used: tuple[bool, ...]) -> tuple[dict, list[int], list[int]] | None:
    """Without the carries that neither the condition nor a result depends on."""
    cond, nc, nb = params["cond_jaxpr"], params["cond_nconsts"], params["body_nconsts"]
    _, reads = dce_jaxpr(cond.jaxpr)
    found = prune_loop(params["body_jaxpr"], nb, used, reads[nc:])
    if found is None:
        return None
    body, ins, outs = found
    key = ("while_pruned", *outs)
    test = cond.cache.get(key)
    if test is None:
        test = cond.cache[key] = permute(cond, [*range(nc), *[nc + i for i in outs]])
    kept = {"cond_jaxpr": test, "body_jaxpr": body, "cond_nconsts": nc}
    consts = sum(i < nb for i in ins)
    return {**params, **kept, "body_nconsts": consts}, [*range(nc), *[nc + i for i in ins]], outs


while_p = OverRefs(
    "while",
    multiple_results=True,
    higher_order=True,
    abstract=_abstract,
    evaluate=_evaluate,
    jvp=_jvp,
    batch=_batch,
    partial_eval=_partial_eval,
    stage=_stage,
    prune=_prune,
    transpose=_transpose,
    loops=Region("while"),
    effects=lambda cond_jaxpr, body_jaxpr, **_: cond_jaxpr.effects | body_jaxpr.effects,
)


# ------------------------------------------------------------------ the public functions
@boundary
def while_loop(cond_fun: Callable, body_fun: Callable, init_val: Any) -> Any:
    """Repeat `val = body_fun(val)` while `cond_fun(val)`; returns the last value.

    cond_fun: gives one boolean. body_fun: must keep the structure, shapes and dtypes of its
    argument. init_val: the pytree of arrays to begin with. Forward-mode differentiable; reverse
    mode raises ValueError, since the number of steps is not known (`scan`, `fori_loop`). Under
    `vmap` it runs until all are done. Raises TypeError when val changes its type.

    >>> from numjet import lax
    >>> print(lax.while_loop(lambda x: x < 100, lambda x: x * 2, 3))
    192
    """
    if not (callable(cond_fun) and callable(body_fun)):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    if config.disable_jit.value:
        try:
            val = tree.tree_map(as_array, init_val)  # what the body does in place is its own
            while cond_fun(val):
                val = body_fun(val)
            return val
        except errors.TracerBoolConversionError:
            pass  # examples of a vmap that stop one by one: only the primitive can do that
    init_val = hi.lower(init_val)
    leaves, treedef = flatten_values(init_val)
    avals = [x.aval for x in leaves]
    in_tree = tree.tree_structure((init_val,))
    carried: list[ShapedArray]
    flows = along(leaves)
    while True:  # each round changes one more dtype, or lets one more vary, so there is an end
        use = RefUse()
        with traced_with(leaves):
            body, body_consts, out_tree = stage_tree(
                body_fun, in_tree, avals, "while_body", use, flows
            )
        carried = body.out_avals[: len(body.out_avals) - len(use.written)]
        if out_tree == treedef:
            check_varying("while_loop", body_fun, flows, treedef)
            stronger = strengthen(avals, carried, leaves)
            if grown(flows, len(avals)) or stronger != avals:
                avals = stronger
                continue
        break
    check_carry("while_loop", treedef, avals, out_tree, carried,
                lambda: first_name(body_fun, in_tree))  # fmt: skip
    seen = RefUse(reads=bool(use.written))
    with traced_with(leaves):
        cond, cond_consts, cond_tree = stage_tree(
            cond_fun, in_tree, avals, "while_cond", seen,
            flows={name: Flow(flow.given) for name, flow in flows.items()},
        )  # fmt: skip
    both = [ref for ref in seen.refs if ref in use.written]
    if both:
        raise ValueError(
            "while_loop: cond_fun uses a reference while body_fun writes one: only one of the "
            "functions may hold a mutable array reference of type "
            f"{both[0].aval}. Keep what cond_fun asks in the carry."
        )
    if constant := seen.refs[len(seen.written) :]:  # which nobody writes
        rest = len(cond.invars) - len(constant)
        cond = permute(cond, [*range(rest, len(cond.invars)), *range(rest)])
        cond_consts = [*[ref.value() for ref in constant], *cond_consts]
    if use.written and not seen.written:
        cond = add_inputs(cond, len(cond.invars), [r.aval.inner_aval for r in use.written])
    pred = cond.out_avals[: len(cond.out_avals) - len(seen.written)]
    if (
        not tree.treedef_is_leaf(cond_tree)
        or len(pred) != 1
        or pred[0].shape
        or pred[0].dtype != dtypes.bool_
    ):
        leaf = pred and tree.treedef_is_leaf(cond_tree)
        got = f"output type(s) {pred[:1]}" if leaf else f"pytree {cond_tree}"
        raise TypeError(f"cond_fun must return a boolean scalar, but got {got}.")
    given = convert_all(leaves, avals)
    if seen.written:
        staged = cond, cond_consts, seen.written
        outs = _asking(cond_fun, body_fun, staged, given, in_tree)
        return tree.tree_unflatten(treedef, outs)
    # What the body hands on as it came, and the condition does not read, is what was given.
    carries = zip(leaves, body.jaxpr.invars[len(body_consts) :], body.jaxpr.outvars)
    kept = [i for i, (_, v, w) in enumerate(carries) if v is w]
    if kept:
        read = cond.jaxpr.cache.get("read")
        if read is None:
            read = cond.jaxpr.cache["read"] = dce_jaxpr(cond.jaxpr)[1]
        kept = [i for i in kept if not read[len(cond_consts) + i]]
    if kept and not use.written and config.jax_form():
        outs = _with_constants(kept, cond, cond_consts, body, body_consts, given)
    else:
        outs = while_p.bind(
            *cond_consts, *body_consts, *given, *use.values(), cond_jaxpr=cond, body_jaxpr=body,
            cond_nconsts=len(cond_consts), body_nconsts=len(body_consts),
        )  # fmt: skip
    for ref, value in zip(use.written, outs[len(leaves) :], strict=True):
        ref.put_back(value)
    # Weakly typed where the body's result is.
    outs = [
        convert(x, o.dtype, o.weak_type) if x.aval.dtype == o.dtype else x
        for x, o in zip(outs, carried)
    ]
    if kept:
        for i, x in enumerate(tree.tree_leaves(init_val)):
            if i in kept and leaves[i].aval.dtype == avals[i].dtype:
                outs[i] = x
    return tree.tree_unflatten(treedef, outs)


def _asking(
    cond_fun: Callable, body_fun: Callable, staged: tuple, given: list, in_tree: Any
) -> list:
    """The results of the loop of a condition that writes references, which it does in every round:
    the body asks it first. What it writes when it says no is lost, as in JAX."""
    cond, cond_consts, written = staged

    def body(val: Any) -> Any:
        cond_fun(val)
        return body_fun(val)

    use, avals = RefUse(), [x.aval for x in given]
    closed, consts, _ = stage_tree(body, in_tree, avals, "while_body", use, along(given))
    n = len(cond.invars) - len(written)
    place = {ref: n + i for i, ref in enumerate(written)}
    others = [ref for ref in use.written if ref not in place]
    cond = add_inputs(cond, len(cond.invars), [ref.aval.inner_aval for ref in others])
    place |= {ref: n + len(written) + i for i, ref in enumerate(others)}
    cond = permute(cond, [*range(n), *[place[ref] for ref in use.written]], [0])
    outs = while_p.bind(
        *cond_consts, *consts, *given, *use.values(), cond_jaxpr=cond, body_jaxpr=closed,
        cond_nconsts=len(cond_consts), body_nconsts=len(consts),
    )  # fmt: skip
    for ref, value in zip(use.written, outs[len(given) :], strict=True):
        ref.put_back(value)
    return outs[: len(given)]


def _with_constants(
    kept: list[int], cond: ClosedJaxpr, cond_consts: list, body: ClosedJaxpr, body_consts: list,
    carry: list,
) -> list:  # fmt: skip
    """The results of a loop as JAX writes it: what is handed on is no carry but a constant."""
    moving = [i for i in range(len(carry)) if i not in kept]
    n, m = len(cond_consts), len(body_consts)
    order = [*[m + i for i in kept], *range(m), *[m + i for i in moving]]
    found = while_p.bind(
        *cond_consts, *[carry[i] for i in kept], *body_consts, *[carry[i] for i in moving],
        cond_jaxpr=permute(cond, [*range(n), *[n + i for i in moving]]),
        body_jaxpr=permute(body, order, moving), cond_nconsts=n, body_nconsts=len(kept) + m,
    )  # fmt: skip
    outs = list(carry)
    for i, x in zip(moving, found, strict=True):
        outs[i] = x
    return outs


@boundary
def fori_loop(
    lower: Any, upper: Any, body_fun: Callable, init_val: Any, *, unroll: int | bool | None = None
) -> Any:
    """Repeat `val = body_fun(i, val)` for i from `lower` to `upper` - 1; returns the last value.

    lower, upper: integers, or floats of one dtype, which may be traced. body_fun(i, val): returns a
    pytree of val's structure, shapes and dtypes. init_val: the pytree to begin with, the result if
    there is nothing to repeat. unroll: left to the compiler. With bounds known while tracing it can
    be differentiated in reverse mode, otherwise forward only. Raises TypeError for other bounds,
    and where val changes its type.

    >>> from numjet import lax
    >>> print(lax.fori_loop(0, 5, lambda i, total: total + i, 0))
    10
    """
    if not callable(body_fun):
        raise TypeError(
            f"lax.fori_loop: body_fun argument should be callable, got {body_fun!r}."
        )
    lower, upper = as_array(lower), as_array(upper)
    floats = dtypes.is_floating(lower.dtype) and lower.dtype == upper.dtype
    alike = floats or lower.weak_type or upper.weak_type
    # A number takes the other bound's dtype where that has a sign, too.
    kinds = dtypes.kind(lower.dtype) == dtypes.kind(upper.dtype) == "i"
    if lower.dtype != upper.dtype and not (alike and kinds):
        raise TypeError(
            "lower and upper arguments to fori_loop must have equal types, got "
            f"{lower.dtype.name} and {upper.dtype.name}."
        )
    for name, x in (("lower", lower), ("upper", upper)):
        if x.shape or not (floats or dtypes.is_integer(x.dtype)):
            raise TypeError(
                f"fori_loop: {name} must be an integer without dimensions, got "
                f"{x.aval.str_short()}. Floats must be of one dtype."
            )
    if config.disable_jit.value and None not in (_known(lower), _known(upper)):
        for i in range(int(lower), int(upper)):
            init_val = body_fun(i, init_val)
            tree.tree_map(as_array, init_val)  # refuses what is no array
        return init_val
    if floats:
        return _count_in_floats(lower, upper, body_fun, init_val)
    dtype, _ = dtypes.promote((lower.dtype, lower.weak_type), (upper.dtype, upper.weak_type))
    low, high = _known(lower), _known(upper)
    form = "while_loop" if low is None or high is None else "scan"

    def bound(x: Any, known: int | None) -> Any:
        weak = x.weak_type and x.dtype == dtype  # and with the lower one the round's number
        if known is None:
            return convert(x, dtype, weak)
        return ArrayImpl(np.asarray(known, dtype), ShapedArray((), dtype, weak))

    lower, upper = bound(lower, low), bound(upper, high)
    counted, repeated = _rounds(body_fun, form)
    if low is not None and high is not None:
        # Counted like a Python integer.
        if -(2**31) <= low and high < 2**31:
            lower = as_array(low)
        (_, out), _ = scan(
            counted,
            (lower, init_val),
            None,
            length=max(0, high - low),
            unroll=1 if unroll is None else unroll,
        )
        return out
    if unroll is not None and unroll is not False and unroll != 1:
        raise ValueError(
            "Can only use `unroll` in `fori_loop` if the loop bounds are statically known."
        )
    return while_loop(_goes_on, repeated, (lower, upper, init_val))[2]


def _goes_on(carry: tuple) -> Any:
    return lt(carry[0], carry[1])


_made = FunctionMemo("rounds of fori_loop", 256)


def _rounds(body_fun: Callable, form: str) -> tuple[Callable, Callable]:
    """What `scan` and `while_loop` repeat for `body_fun`: the same functions each time, as long as
    it lives, so that a loop outside `jit` traces it once."""
    known = _made.entries(body_fun)
    found = None if known is None else known.get(form)
    if found is not None:
        return found
    # What is remembered with a function must not keep it alive.
    fun = (lambda: body_fun) if known is None else weakref.ref(body_fun)

    def body(i: Any, val: Any) -> Any:
        out = fun()(i, val)  # type: ignore[misc]
        values, in_tree = tree.tree_flatten(hi.lower(val))
        got, out_tree = flatten_values(out)
        want = [aval_of(x) for x in values]
        got_avals = [x.aval for x in got]
        stronger = strengthen(want, got_avals) if out_tree == in_tree else want

        def name() -> str:
            return Tracing(fun(), "", tree.tree_structure((0, 0)), by_name=False).names()[1]

        check_carry(f"fori_loop: {form}", in_tree, stronger, out_tree, got_avals, name)
        return out

    def counted(carry: tuple, _: None) -> tuple:
        return (add(carry[0], 1), body(*carry)), None

    def repeated(carry: tuple) -> tuple:
        return add(carry[0], 1), carry[1], body(carry[0], carry[2])

    counted.__module__ = repeated.__module__ = module_of(body_fun)  # `by_user` asks
    # Messages tell of the user's function: its arguments are the round's number and the value.
    counted.told = lambda in_tree: Tracing(  # type: ignore[attr-defined]
        fun(), "fori_loop", in_tree.children()[0], by_name=False
    )
    repeated.told = lambda in_tree: Tracing(  # type: ignore[attr-defined]
        fun(), "fori_loop", tree.treedef_tuple(_without_upper(in_tree)), by_name=False,
        arrange=lambda names: [names[0], "upper", *names[1:]],
    )  # fmt: skip
    if known is not None:
        known[form] = counted, repeated
    return counted, repeated


def _without_upper(in_tree: Any) -> list[Any]:
    lower, _, val = in_tree.children()[0].children()
    return [lower, val]


def _count_in_floats(lower: Any, upper: Any, body_fun: Callable, init_val: Any) -> Any:
    """`fori_loop` between floats: the places are lower, lower + 1, ... below upper; of bounds that
    are known as many as between their whole parts, as in JAX."""
    one = convert(as_array(1), lower.dtype, lower.weak_type)
    ends = concrete_or_none(lower), concrete_or_none(upper)
    if ends[0] is None or ends[1] is None:
        return while_loop(
            lambda c: lt(c[0], upper), lambda c: (add(c[0], one), body_fun(*c)), (lower, init_val)
        )[1]
    rounds = max(0, int(ends[1]) - int(ends[0]))
    return scan(lambda c, _: ((add(c[0], one), body_fun(*c)), None), (lower, init_val), None,
                length=rounds)[0][1]  # fmt: skip


def _known(x: Any) -> int | None:
    value = concrete_or_none(x)
    return None if value is None else int(value)
