"""Rematerialization: `checkpoint` trades memory for computing again.

A remat equation keeps only its inputs (and what its policy names) between the forward and the
backward pass; the backward pass runs the forward part again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from numjet.base import config, log
from numjet.base.record import NamedTuple, record
from numjet.core import dtypes
from numjet.core.avals import ShapedArray
from numjet.core.effects import refuse_again
from numjet.core.hi import forward_rules
from numjet.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Var, eval_at_own_lines, eval_closed
from numjet.core.lowering import Region, elementwise_loops
from numjet.core.primitive import REGISTRY, Primitive
from numjet.core.ref_equations import OverRefs
from numjet.core.structural import linear_jvp
from numjet.core.trace import set_trace
from numjet.transforms.calls import Bind, call_batch, call_jvp, call_transpose, merge, partition
from numjet.transforms.linearize import partial_eval_jaxpr
from numjet.transforms.simplify import dce_jaxpr

Policy = Callable[..., bool]


def _evaluate(*args: Any, jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    return eval_closed(jaxpr, *args)


def _bind(params: dict) -> Bind:
    return lambda closed, args: remat_p.bind(*args, jaxpr=closed, **params)


def _partial_eval(trace: Any, args: Sequence[Any], params: dict) -> list[Any]:
    closed: ClosedJaxpr = params["jaxpr"]
    refuse_again(
        closed.effects,
        "partial-eval of `checkpoint`/`remat`",
        "An IO callback would run again when values are recomputed; call it outside.",
    )
    unknown = [trace.is_unknown(x) for x in args]
    known_jaxpr, later, unknown_out, kept, told = _split(closed, tuple(unknown), params["policy"])
    if told:
        log.compiling(False, "%s", told)
    known_outs: list[Any] = []
    if known_jaxpr.jaxpr.outvars:
        with set_trace(trace.parent):
            known_args = partition(args, unknown)[0]
            if config.jax_form():  # as JAX writes it
                known_outs = eval_at_own_lines(
                    known_jaxpr.jaxpr, known_jaxpr.consts, known_args, trace.parent
                )
            else:
                known_outs = remat_p.bind(*known_args, **{**params, "jaxpr": known_jaxpr})
    n_known = len(closed.jaxpr.outvars) - sum(unknown_out)
    saved = known_outs[n_known:]
    later_params = {**params, "jaxpr": later, "differentiated": True}
    operands = [x for x, keep in zip(args, kept, strict=True) if keep]
    unknown_outs = trace.record(remat_p, [*saved, *operands], later_params)
    return merge(unknown_out, known_outs, unknown_outs)


def _split(closed: ClosedJaxpr, unknown: tuple, policy: Policy | None) -> tuple:
    """Known part (known inputs -> known outputs, saved values) and the part that runs later, from
    the inputs that it reads and the saved values to the unknown outputs; which outputs these are,
    and which inputs."""
    shown = config.jax_form()
    key = ("remat", unknown, policy, shown)
    found = closed.cache.get(key)
    if found is not None:
        return found
    # Loops and calls are split inside, so that each equation of the later part is either computed
    # again from what is known or linear in what is not.
    known, linear, unknown_out, _ = partial_eval_jaxpr(closed, unknown)
    forward = known.jaxpr
    n_known = len(unknown_out) - sum(unknown_out)
    known_outs, residuals = forward.outvars[:n_known], forward.outvars[n_known:]
    saved = [
        v
        for eqn in forward.eqns
        if policy is not None
        for v, kept in zip(eqn.outvars, _keeps(policy, eqn), strict=True)
        if kept
    ]
    is_saved = set(saved)
    again = [
        eqn.replace(outvars=[Var(v.aval) if v in is_saved else v for v in eqn.outvars])
        for eqn in forward.eqns
        if not all(v in is_saved for v in eqn.outvars)
    ]
    n_res = len(residuals)
    linear_in, value_of = linear.jaxpr.invars, dict(zip(linear.jaxpr.invars, residuals))

    def rename(atom: Atom) -> Atom:
        return value_of.get(atom, atom) if type(atom) is Var else atom

    eqns = again + [
        eqn.replace(invars=[rename(x) for x in eqn.invars]) for eqn in linear.jaxpr.eqns
    ]
    invars = merge(unknown, forward.invars, linear_in[n_res:])
    outs = [rename(x) for x in linear.jaxpr.outvars]
    later, _ = dce_jaxpr(Jaxpr(forward.constvars, invars, outs, eqns))
    read = {v: None for eqn in later.eqns for v in eqn.invars if type(v) is Var}
    saved = [v for v in read if v in is_saved]  # as they are read
    kept = [u or v in read or v in outs for u, v in zip(unknown, invars, strict=True)]
    operands = [v for v, keep in zip(invars, kept, strict=True) if keep]
    later = later.replace(invars=[*saved, *operands])
    now, _ = dce_jaxpr(forward.replace(outvars=[*known_outs, *saved], effects=None))
    if shown:
        now = _rounded(now, saved)
    inputs = [v for v, u, keep in zip(invars, unknown, kept, strict=True) if keep and not u]
    result = (
        ClosedJaxpr(now, known.consts), ClosedJaxpr(later, known.consts), unknown_out, kept,
        _told(inputs, saved, forward),
    )  # fmt: skip
    closed.cache[key] = result
    return result


def _rounded(now: Jaxpr, saved: Sequence[Var]) -> Jaxpr:
    """The known part as JAX writes it: a float that is kept and also read in it is rounded to its
    own dtype where it is made, so that both are the same value."""
    read = {v for eqn in now.eqns for v in eqn.invars if type(v) is Var}
    rounded: dict[Any, Var] = {}
    eqns = []
    for eqn in now.eqns:
        eqns.append(eqn.replace(invars=[rounded.get(x, x) for x in eqn.invars]) if rounded else eqn)
        for v in eqn.outvars:
            if v in saved and v in read and dtypes.is_floating(v.aval.dtype):
                rounded[v] = Var(v.aval)
                info = dtypes.finfo(v.aval.dtype)
                eqns.append(eqn.replace(
                    primitive=REGISTRY["reduce_precision"], invars=[v], outvars=[rounded[v]],
                    params={"exponent_bits": info.nexp, "mantissa_bits": info.nmant},
                ))
    return now.replace(eqns=eqns, outvars=[rounded.get(x, x) for x in now.outvars])


def _told(inputs: Sequence[Var], saved: Sequence[Var], forward: Jaxpr) -> str:
    """What is kept between the passes, as a line of the log: arguments, and intermediate values
    with what made them."""
    producer = {v: eqn for eqn in forward.eqns for v in eqn.outvars}
    arguments = "\n".join([f"  {v.aval.str_short()}" for v in inputs])
    values = "\n".join([
        f"  {v.aval.str_short()} from {producer[v].primitive.name} at {producer[v].source}"
        for v in saved
    ])
    start = "remat-decorated function saving"
    if not saved:
        return f"{start} inputs with shapes:\n{arguments}" if inputs else ""
    if not inputs:
        return f"{start} these intermediates:\n{values}"
    return f"{start} inputs with shapes:\n{arguments}\nand saving these intermediates:\n{values}"


def _keeps(policy: Policy, eqn: Eqn) -> list[bool]:
    """Which results of an equation the policy keeps: those of an operation that it names, and what
    such an operation gives in each round of a loop, or in the branches."""
    if policy(eqn.primitive, *[x.aval for x in eqn.invars], **eqn.params):
        return [True] * len(eqn.outvars)
    if eqn.primitive.name == "scan":
        carried = eqn.params["num_carry"]
        rows = _made_by_kept(policy, eqn.params["jaxpr"].jaxpr)[carried:]
        return [False] * carried + [bool(kept) for kept in rows]
    if eqn.primitive.name == "jit":
        return [bool(kept) for kept in _made_by_kept(policy, eqn.params["jaxpr"].jaxpr)]
    if eqn.primitive.name == "cond":
        told = [_made_by_kept(policy, branch.jaxpr) for branch in eqn.params["branches"]]
        return [any(kept) and False not in kept for kept in zip(*told, strict=True)]
    return [False] * len(eqn.outvars)


def _made_by_kept(policy: Policy, jaxpr: Jaxpr) -> list[bool | None]:
    """Of each result whether an operation made it that the policy keeps; None: it is a constant, as
    of the branches that were not taken."""
    producer = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    kept: list[bool | None] = []
    for v in jaxpr.outvars:
        eqn = producer.get(v) if type(v) is Var else None
        if type(v) is not Var or eqn is not None and not any(type(x) is Var for x in eqn.invars):
            kept.append(None)
        else:
            kept.append(eqn is not None and _keeps(policy, eqn)[eqn.outvars.index(v)])
    return kept


def _jvp(primals: tuple, tangents: tuple, *, jaxpr: ClosedJaxpr, **params: Any) -> tuple:
    before = forward_rules.set(True)
    try:
        return call_jvp(_bind(params), jaxpr, primals, tangents)
    finally:
        forward_rules.reset(before)


remat_p = OverRefs(
    "remat2",
    multiple_results=True,
    higher_order=True,
    linear=True,
    abstract=lambda *avals, jaxpr, **_: jaxpr.out_avals,
    evaluate=_evaluate,
    jvp=_jvp,
    batch=lambda axis, args, dims, *, jaxpr, **p: call_batch(_bind(p), jaxpr, axis, args, dims),
    transpose=lambda cts, *args, jaxpr, **p: call_transpose(_bind(p), jaxpr, cts, args),
    partial_eval=_partial_eval,
    loops=Region("call"),
    effects=lambda jaxpr, **_: jaxpr.effects,
)


# ------------------------------------------------------------------ names, for policies
def _name_abstract(x: ShapedArray, *, name: str) -> ShapedArray:
    return x


name_p = Primitive(
    "name",
    linear=True,
    elementwise=True,
    abstract=_name_abstract,
    reference=lambda x, *, name: x,
    jvp=linear_jvp(lambda: name_p),
    transpose=lambda ct, x, *, name: [ct],
    batch=lambda axis, args, dims, **p: (name_p.bind(*args, **p), dims[0]),
    loops=elementwise_loops(lambda e, x, *, name: x),
)


class SaveableType:
    """The answer of a policy for a value that is kept: true."""

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return "Saveable"


class RecomputeType:
    """The answer of a policy for a value that is computed again: false."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "Recompute"


Saveable, Recompute = SaveableType(), RecomputeType()


class Offloadable(NamedTuple):
    """The answer of a policy for a value that waits in another memory. There is one memory, so that
    such a value is kept."""

    src: str
    dst: str

    def __bool__(self) -> bool:
        return True


@record(frozen=True)
class DotsSaveable:
    """The policy that keeps products, all or those without batch axes (then no convolutions)."""

    only_if_no_batch_dims: bool

    def __call__(self, primitive: Primitive, *_: Any, **params: Any) -> bool:
        if self.only_if_no_batch_dims:
            return primitive.name == "dot_general" and not params["dimension_numbers"][1][0]
        return primitive.name in ("dot_general", "conv_general_dilated")


@record(frozen=True)
class SaveOnlyTheseNames:
    """The policy that keeps the values of these names alone."""

    saveable_names: frozenset[str]

    def __call__(self, primitive: Primitive, *_: Any, **params: Any) -> bool:
        return primitive is name_p and params["name"] in self.saveable_names


@record(frozen=True)
class SaveAnyNamesButThese:
    """The policy that keeps the values of all names but these."""

    names: frozenset[str]

    def __call__(self, primitive: Primitive, *_: Any, **params: Any) -> bool:
        return primitive is name_p and params["name"] not in self.names


def everything_saveable(*_: Any, **__: Any) -> bool:
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    return False


dots_saveable = DotsSaveable(only_if_no_batch_dims=False)
dots_with_no_batch_dims_saveable = DotsSaveable(only_if_no_batch_dims=True)


def save_only_these_names(*names: str) -> Policy:
    return SaveOnlyTheseNames(frozenset(names))


def save_any_names_but_these(*names: str) -> Policy:
    return SaveAnyNamesButThese(frozenset(names))


def save_anything_except_these_names(*names: str) -> Policy:
    dropped = frozenset(names)
    return lambda primitive, *_, **params: (
        not (primitive is name_p and params["name"] in dropped)
    )


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Callable:
    """Products without batch axes wait in the other memory, which is the same here."""
    keeps = dots_with_no_batch_dims_saveable
    place = Offloadable(offload_src, offload_dst)

    def policy(primitive: Primitive, *avals: Any, **params: Any) -> Any:
        return place if keeps(primitive, *avals, **params) else Recompute

    return policy


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> Callable:
    """Named values are kept, others wait in the other memory, which is the same here. Raises
    ValueError where a name is in both lists."""
    saved, offloaded = set(names_which_can_be_saved), set(names_which_can_be_offloaded)
    if saved & offloaded:
        raise ValueError(
            f"The names {sorted(saved & offloaded)} are to be both saved and offloaded. Name "
            "each in one of the lists."
        )
    place = Offloadable(offload_src, offload_dst)

    def policy(primitive: Primitive, *_: Any, **params: Any) -> Any:
        if primitive is not name_p or params["name"] not in saved | offloaded:
            return Recompute
        return Saveable if params["name"] in saved else place

    return policy


def save_from_both_policies(first: Policy, second: Policy) -> Policy:
    def policy(primitive: Primitive, *avals: Any, **params: Any) -> Any:
        return first(primitive, *avals, **params) or second(primitive, *avals, **params)

    return policy


class CheckpointPolicies(SimpleNamespace):
    """The policies of `checkpoint`: which intermediate values the backward pass may keep."""


checkpoint_policies = CheckpointPolicies(
    dots_saveable=dots_saveable,
    checkpoint_dots=dots_saveable,
    dots_with_no_batch_dims_saveable=dots_with_no_batch_dims_saveable,
    checkpoint_dots_with_no_batch_dims=dots_with_no_batch_dims_saveable,
    everything_saveable=everything_saveable,
    nothing_saveable=nothing_saveable,
    save_only_these_names=save_only_these_names,
    save_any_names_but_these=save_any_names_but_these,
    save_anything_except_these_names=save_anything_except_these_names,
    offload_dot_with_no_batch_dims=offload_dot_with_no_batch_dims,
    save_and_offload_only_these_names=save_and_offload_only_these_names,
    save_from_both_policies=save_from_both_policies,
)
