"""cond and switch: one of several branches, as one primitive.

Operands are the branch index, then the values that all branches take; results are those of the
branch. Under `vmap` with an index for each example all branches run, and each example keeps its
own. What would break it: branches whose results differ in type, which `cond` refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.base import config, tree
from numjet.base.tracebacks import boundary
from numjet.core import dtypes, hi
from numjet.core.array import ArrayImpl, as_array, is_arraylike, wrapped
from numjet.core.avals import ShapedArray
from numjet.core.debug_info import Tracing, place_of
from numjet.core.effects import refuse_io
from numjet.core.jaxpr import CONSTS, ClosedJaxpr, Jaxpr, Var, eval_closed
from numjet.core.lowering import Expand, Region
from numjet.core.memories import MemorySpace
from numjet.core.primitive import REGISTRY, Linear, Primitive, Zero
from numjet.core.ref_equations import OverRefs
from numjet.core.refs import RefUse, refuse_twice
from numjet.core.remote import traced_with
from numjet.core.structural import broadcast_in_dim, convert, given_out, moveaxis, zeros
from numjet.core.trace import EVAL, Tracer, current_trace, set_trace
from numjet.ops.arithmetic import clamp
from numjet.ops.bodies import (
    by_user,
    convert_all,
    differences,
    flatten_values,
    name_of,
    stage_once,
    weakened,
)
from numjet.ops.guarded import guarded, guards
from numjet.ops.logic import eq, ne
from numjet.ops.named import empty_p
from numjet.ops.shape import select_n
from numjet.transforms.batch import Axis, all_to_front, batch_jaxpr, mapped_to_front
from numjet.transforms.calls import merge, partition, with_zeros
from numjet.transforms.jvp import jvp_jaxpr
from numjet.transforms.linearize import partial_eval_jaxpr
from numjet.transforms.simplify import dce_jaxpr
from numjet.transforms.stage import stage
from numjet.transforms.transpose import transpose_jaxpr
from numjet.transforms.varying import along


# ------------------------------------------------------------------ operands of branches not taken
def _chosen_jvp(primals: tuple, tangents: tuple) -> tuple:
    flags, x = primals
    out, t = chosen_p.bind(flags, x), tangents[1]
    return out, t if type(t) is Zero else _where(flags, t)


def _where(flags: Any, t: Any) -> Any:
    if t.aval.dtype == dtypes.float0:
        return t
    mask = broadcast_in_dim(flags, t.aval.shape, tuple(range(flags.ndim)))
    return select_n(mask, zeros(t.aval), t)


def _chosen_batch(axis: Axis, args: tuple, dims: tuple) -> tuple:
    return chosen_p.bind(*all_to_front(args, dims, axis.size)), 0


# (flags, x) -> x, of which only the rows with a flag have a derivative. Where examples of a batch
# choose different branches all branches run on all examples; what a branch makes of examples that
# did not choose it is dropped, but an infinite derivative times the zero that arrives there would
# be NaN.
chosen_p = Primitive(
    "chosen",
    linear=True,
    abstract=lambda flags, x: x,
    reference=lambda flags, x: x,
    jvp=_chosen_jvp,
    transpose=lambda ct, flags, x: [None, _where(flags, ct)],
    batch=_chosen_batch,
    loops=Expand(lambda flags, x: x),
)


# ------------------------------------------------------------------ cond
def _evaluate(index: Any, *operands: Any, branches: tuple) -> list[Any]:
    branch = branches[min(max(int(index), 0), len(branches) - 1)]
    return eval_closed(branch, *operands)


def _jvp(primals: tuple, tangents: tuple, *, branches: tuple) -> tuple:
    nonzero = [type(t) is not Zero for t in tangents[1:]]
    found = [jvp_jaxpr(b, nonzero)[1] for b in branches]
    nz_out = [any(flags) for flags in zip(*found, strict=True)]
    derived = tuple([jvp_jaxpr(b, nonzero, nz_out)[0] for b in branches])
    outs = cond_p.bind(
        *primals, *[t for t in tangents[1:] if type(t) is not Zero], branches=derived
    )
    n = len(nz_out)
    return outs[:n], with_zeros(outs[:n], nz_out, outs[n:])


def _shown_choice(flags: Any, x: Any) -> Any:
    """What `chosen` means, in the equations that JAX writes."""
    stopped = REGISTRY["stop_gradient"].bind(x)
    whole = broadcast_in_dim(flags, x.shape, (0,)) if x.ndim > 1 else flags
    return select_n(whole, stopped, x)


def _as_int32(index: Any) -> Any:
    if type(index) is ArrayImpl and config.jax_form():
        return as_array(np.asarray(index).astype(np.int32))
    return convert(index, dtypes.int32)


def _batch(axis: Axis, args: tuple, dims: tuple, *, branches: tuple) -> tuple:
    index, operands = args[0], args[1:]
    if dims[0] is None:
        mapped = [d is not None for d in dims[1:]]
        found = [batch_jaxpr(b, axis, mapped)[1] for b in branches]
        out_mapped = [any(flags) for flags in zip(*found, strict=True)]
        batched = tuple([batch_jaxpr(b, axis, mapped, out_mapped)[0] for b in branches])
        batched[0].cache[CONSTS] = branches[0].cache.get(CONSTS, 0)
        values = mapped_to_front(operands, dims[1:])
        return cond_p.bind(index, *values, branches=batched), [0 if m else None for m in out_mapped]
    # Examples choose differently: run every branch on all of them and select.
    effects = [e for b in branches for e in b.effects]
    each_calls = guards(axis, effects)
    if not each_calls:
        refuse_io(
            effects,
            "vmap-of-cond",
            "Examples that choose differently run every branch; call it outside the branches.",
        )
    index = moveaxis(index, dims[0], 0)
    if not config.jax_form():
        index = clamp(0, index, len(branches) - 1)
        if len(branches) == 2:
            index = ne(index, 0)
    values = all_to_front(operands, dims[1:], axis.size)
    mapped = [True] * (len(values) + each_calls)
    bodies = [guarded(b) for b in branches] if each_calls else branches
    results = []
    for i, b in enumerate([batch_jaxpr(b, axis, mapped, True)[0] for b in bodies]):
        given = values
        derived = current_trace() is not EVAL  # there may be derivatives
        flags = eq(index, np.asarray(i, index.dtype)) if derived or each_calls else None
        if derived:
            if config.jax_form():
                given = [_shown_choice(flags, x) for x in values]
            else:
                given = [
                    chosen_p.bind(flags, x) if dtypes.is_inexact(x.aval.dtype) else x
                    for x in values
                ]
        results.append(eval_closed(b, *[flags] * each_calls, *given))
    outs = [
        select_n(broadcast_in_dim(index, cases[0].shape, (0,)), *cases)
        for cases in zip(*results, strict=True)
    ]
    for i, out in enumerate(outs):
        if out.aval.weak_type and any(_was_strong(b, i) for b in branches):
            outs[i] = convert(out, out.aval.dtype, False)
    return outs, [0] * len(outs)


def _was_strong(branch: ClosedJaxpr, place: int) -> bool:
    """Whether a weak output was made of a strong one, as another branch's is weak: of examples
    that choose differently, as of operands of a selection, one that is strong makes all strong."""
    out = branch.jaxpr.outvars[place]
    for eqn in reversed(branch.jaxpr.eqns):
        if eqn.outvars[0] is out:
            source = eqn.invars[0].aval if eqn.primitive.name == "convert_element_type" else None
            return source is not None and source.dtype == out.aval.dtype and not source.weak_type
    return False


def _partial_eval(trace: Any, args: Sequence[Any], params: dict) -> list[Any]:
    branches = params["branches"]
    if trace.is_unknown(args[0]):
        return trace.record(cond_p, args, params)
    unknown = [trace.is_unknown(x) for x in args[1:]]
    found = [partial_eval_jaxpr(b, unknown)[2] for b in branches]
    u_out = [any(flags) for flags in zip(*found, strict=True)]
    parts = [partial_eval_jaxpr(b, unknown, u_out) for b in branches]
    known, later = _share_residuals(branches, parts)
    n_known = u_out.count(False)
    known_args, unknown_args = partition(args[1:], unknown)
    with set_trace(trace.parent):
        outs = cond_p.bind(args[0], *known_args, branches=known)
    operands = [args[0], *outs[n_known:], *unknown_args]
    recorded = trace.record(cond_p, operands, {"branches": later}) if any(u_out) else ()
    return merge(u_out, outs, recorded)


def _shown_blanks(slots: Sequence[ShapedArray]) -> dict[ShapedArray, Any]:
    """Zeros for residuals that a branch does not have, as JAX writes them: for every aval, whether
    it is read or not."""
    blanks: dict[ShapedArray, Any] = {}
    for aval in slots:
        if aval not in blanks and dtypes.is_key(aval.dtype):
            blanks[aval] = zeros(aval)
        elif aval not in blanks:
            blank = empty_p.bind(
                dtype=aval.dtype, memory_space=MemorySpace.Device, weak_type=aval.weak_type
            )
            blanks[aval] = broadcast_in_dim(blank, aval.shape, ()) if aval.shape else blank
    return blanks


def _share_residuals(branches: tuple, parts: Sequence[tuple]) -> tuple[tuple, tuple]:
    """Give every branch the same residuals: one slot for each aval as often as some branch needs
    it, zeros where a branch has none. Remembered with the first branch."""
    key = ("cond_residuals", tuple([id(p[0]) for p in parts]), config.jax_form())
    cached = branches[0].cache.get(key)
    if cached is not None:
        return cached[0], cached[1]
    slots: list[ShapedArray] = []
    places = []
    for _, _, _, avals in parts:
        free = list(range(len(slots)))
        place = []
        for aval in avals:
            slot = next((i for i in free if slots[i] is aval), None)
            if slot is None:
                slots.append(aval)
                slot = len(slots) - 1
            else:
                free.remove(slot)
            place.append(slot)
        places.append(place)
    known, later = [], []
    for (k, u, _, avals), place in zip(parts, places, strict=True):
        n_known = len(k.jaxpr.outvars) - len(avals)

        def run(
            *args: Any, k: ClosedJaxpr = k, n_known: int = n_known, place: list = place
        ) -> list[Any]:
            outs = eval_closed(k, *args)
            residuals = dict(zip(place, outs[n_known:], strict=True))
            blank = _shown_blanks(slots).__getitem__ if config.jax_form() else zeros
            return [
                *outs[:n_known],
                *[residuals[i] if i in residuals else blank(a) for i, a in enumerate(slots)],
            ]

        jaxpr, consts = stage(run, k.in_avals, "cond_known")
        known.append(ClosedJaxpr(jaxpr, consts))
        invars = [Var(a) for a in slots]
        for i, slot in enumerate(place):
            invars[slot] = u.jaxpr.invars[i]
        uj = u.jaxpr
        later.append(
            ClosedJaxpr(
                Jaxpr(
                    uj.constvars,
                    [*invars, *uj.invars[len(place) :]],
                    uj.outvars,
                    uj.eqns,
                    uj.effects,
                ),
                u.consts,
            )
        )
    result = tuple(known), tuple(later), parts
    branches[0].cache[key] = result
    return result[0], result[1]


def _transpose(cts: list, *args: Any, branches: tuple) -> list:
    index, operands = args[0], args[1:]
    linear = [type(x) is Linear for x in operands]
    nonzero = [type(ct) is not Zero for ct in cts]
    transposed = []
    for b in branches:
        derived, nz_out = transpose_jaxpr(b, linear, nonzero)
        transposed.append(
            _fill_zeros(
                derived, nz_out, [a for a, lin in zip(b.in_avals, linear, strict=True) if lin]
            )
        )
    values = [x for x in operands if type(x) is not Linear] + [
        ct for ct in cts if type(ct) is not Zero
    ]
    found = cond_p.bind(index, *values, branches=tuple(transposed))
    outs = iter(weakened(found, branches[0].in_avals, linear))
    return [None, *[next(outs) if lin else None for lin in linear]]


def _fill_zeros(
    closed: ClosedJaxpr, present: Sequence[bool], avals: Sequence[ShapedArray]
) -> ClosedJaxpr:
    """`closed` with arrays of zeros for outputs that are not present."""
    if all(present):
        return closed
    key = ("fill_zeros", tuple(present))
    found = closed.cache.get(key)
    if found is None:

        def run(*args: Any) -> list[Any]:
            outs = iter(eval_closed(closed, *args))
            return [next(outs) if p else zeros(a) for p, a in zip(present, avals, strict=True)]

        jaxpr, consts = stage(run, closed.in_avals, "cond_transpose")
        found = closed.cache[key] = ClosedJaxpr(jaxpr, consts)
    return found


def _prune(params: dict, used: tuple[bool, ...]) -> tuple[dict, list[int], list[int]] | None:
    """Without results that nobody uses, and the operands that no branch reads then."""
    branches = params["branches"]
    key = ("cond_pruned", used, branches[1:])
    found = branches[0].cache.get(key)
    if found is None:
        pruned = [dce_jaxpr(b.jaxpr, used) for b in branches]
        ins = [i for i, reads in enumerate(zip(*[r for _, r in pruned], strict=True)) if any(reads)]
        less = tuple(
            ClosedJaxpr(body.replace(invars=[body.invars[i] for i in ins]), b.consts)
            for (body, _), b in zip(pruned, branches, strict=True)
        )
        found = branches[0].cache[key] = less, [0, *[1 + i for i in ins]]
    outs = [i for i, flag in enumerate(used) if flag]
    return {**params, "branches": found[0]}, found[1], outs


cond_p = OverRefs(
    "cond",
    multiple_results=True,
    higher_order=True,
    linear=True,
    abstract=lambda index, *avals, branches: branches[0].out_avals,
    evaluate=_evaluate,
    jvp=_jvp,
    batch=_batch,
    partial_eval=_partial_eval,
    prune=_prune,
    transpose=_transpose,
    loops=Region("cond"),
    effects=lambda branches: frozenset().union(*[b.effects for b in branches]),
)


# ------------------------------------------------------------------ the public functions
_NOT_GIVEN: Any = object()


def _operands(what: str, operands: tuple, operand: Any) -> tuple:
    if operand is _NOT_GIVEN:
        return operands
    if operands:
        raise TypeError(
            f"{what}: operand=... goes with no positional operands, got {len(operands)} of them. "
            "Pass all operands by position."
        )
    return (operand,)


@boundary
def switch(
    index: Any, branches: Sequence[Callable], *operands: Any, operand: Any = _NOT_GIVEN
) -> Any:
    """Run `branches[index](*operands)`; an index out of range is moved into it.

    index: an integer without dimensions. branches: at least one function; all must return pytrees
    of one structure, shapes and dtypes. operands: pytrees of arrays; operand: one, by name, of an
    older form. Under `vmap` with a mapped index all branches run. Derivative: that of the branch
    taken. Raises TypeError when outputs differ or the index is no integer, ValueError for no
    branches.

    >>> from numjet import lax
    >>> print(lax.switch(1, [lambda x: x, lambda x: x * 10.0], 3.0))
    30.0
    """
    operands = _operands("switch", operands, operand)
    if not all(map(callable, branches)):
        raise TypeError(
            "lax.switch: branches argument should be a sequence of callables: switch(index, "
            "branches, *operands)."
        )
    branches = tuple(branches)
    if not branches:
        raise ValueError("Empty branch sequence: switch needs at least one function.")
    if not is_arraylike(index):
        if type(index) in (tuple, list):
            shape = np.shape(index)
            raise TypeError(f"Branch index must be scalar, got {index} of shape {shape}.")
        raise TypeError(f"Index type must be an integer, got {index}.")
    given, index = index, wrapped(index)
    if index.shape:
        raise TypeError(f"Branch index must be scalar, got {given} of shape {index.shape}.")
    if not dtypes.is_integer(index.dtype):
        raise TypeError(f"Index type must be an integer, got {given} as {index.dtype.name}.")
    if len(branches) == 1:
        return branches[0](*operands)
    index = _as_int32(index)
    if config.disable_jit.value and not isinstance(index, Tracer):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    index = clamp(0, index, len(branches) - 1)
    return choose("switch", index, branches, operands)


@boundary
def cond(
    pred: Any,
    true_fun: Callable,
    false_fun: Callable,
    *operands: Any,
    operand: Any = _NOT_GIVEN,
) -> Any:
    """Run `true_fun(*operands)` if `pred`, else `false_fun(*operands)`.

    pred: a boolean or number without dimensions. true_fun, false_fun: must return pytrees of one
    structure, shapes and dtypes. operands: pytrees of arrays; operand: one, by name, of an older
    form. `cond(pred, true_operand, true_fun, false_operand, false_fun)` is understood as well. Only
    one of them runs, except under `vmap` with a mapped predicate, where both do. Derivative: that
    of the branch taken. Raises TypeError when outputs differ, and for a predicate with dimensions.

    >>> from numjet import lax
    >>> print(lax.cond(True, lambda x: x + 1.0, lambda x: x - 1.0, 3.0))
    4.0
    """
    if not callable(true_fun) and callable(false_fun) and len(operands) == 2:
        of_true, run_true, (of_false, run_false) = true_fun, false_fun, operands
        if callable(run_false):
            true_fun, false_fun = (
                lambda x, _: run_true(x),  # type: ignore[misc]
                lambda _, y: run_false(y),
            )
            operands = (of_true, of_false)
    operands = _operands("cond", operands, operand)
    if not (callable(true_fun) and callable(false_fun)):
        raise TypeError(
            "lax.cond: true_fun and false_fun arguments should be callable: cond(pred, true_fun, "
            "false_fun, *operands)."
        )
    if pred is None:
        raise TypeError("cond predicate is None: pass a boolean.")
    if callable(pred) and not is_arraylike(pred):
        raise TypeError(f"Pred type must be either boolean or number, got {pred!r}.")
    if not is_arraylike(pred):
        raise TypeError(f"Pred must be a scalar, got {pred} of type {type(pred)}.")
    if type(pred) is int and pred.bit_length() > 31:    # true, also where no int32 holds it
        pred = True
    pred = as_array(pred)
    if pred.shape or dtypes.is_key(pred.dtype):
        raise TypeError(
            f"Pred must be a scalar, got {pred} of shape {pred.shape} "
            f"({pred.aval.str_short()}). For an elementwise choice use jnp.where."
        )
    if dtypes.is_complex(pred.dtype):
        raise TypeError(
            f"Pred type must be either boolean or number, got {pred.aval.str_short()}."
        )
    if config.disable_jit.value and not isinstance(pred, Tracer):
        return true_fun(*operands) if bool(pred) else false_fun(*operands)
    flag = pred if pred.dtype == dtypes.bool_ else ne(pred, convert(as_array(0), pred.dtype))
    return choose("cond", _as_int32(flag), (false_fun, true_fun), operands)


def choose(what: str, index: Any, branches: Sequence[Callable], operands: tuple) -> Any:
    operands = hi.lower(operands)
    leaves, in_tree = flatten_values(operands)
    given, structure = tree.tree_flatten(operands)
    if len(given) != len(leaves):  # references
        fun = branches[-1 if what == "cond" else 0]
        names = Tracing(fun, what, structure, by_name=False).names()
        refuse_twice(name_of(fun), what, given, names)
    avals = [x.aval for x in leaves]
    staged, trees, flows = [], [], []
    uses = [RefUse(reads=True) for _ in branches]
    # The function for True stands last and is traced first.
    turn = reversed if what == "cond" else iter
    for fun, use in turn([*zip(branches, uses, strict=True)]):
        with traced_with(leaves):
            flows.append(along(leaves))
            jaxpr, consts, out_tree = stage_once(fun, in_tree, avals, what, use, flows[-1])
        staged.append((jaxpr, consts))
        trees.append(out_tree)
    staged, trees = [*turn(staged)], [*turn(trees)]
    refs = _unify_refs(staged, uses)
    out_avals = _join_outputs(
        what, branches, trees, [[v.aval for v in j.outvars] for j, _ in staged]
    )
    if flows[0] and all(map(by_user, branches)):
        _check_varying(what, trees[0], flows)
    # One list of constants for all branches, each once.
    shared = {id(c): c for _, cs in staged for c in cs}
    consts = list(shared.values())
    closed: list[ClosedJaxpr] = []
    for place, (jaxpr, cs) in enumerate(staged):
        # One function in two places is one jaxpr, which prints show and derivatives profit from.
        same = [i for i in range(place) if staged[i][0] is jaxpr] if not consts else []
        if same:
            closed.append(closed[same[0]])
            continue
        own = dict(zip(map(id, cs), jaxpr.constvars, strict=True))
        const_vars = [own.get(key) or Var(c.aval) for key, c in shared.items()]
        invars = [*const_vars, *jaxpr.invars]
        hoisted = Jaxpr([], invars, jaxpr.outvars, jaxpr.eqns, jaxpr.effects, jaxpr.debug)
        closed.append(_with_out_avals(ClosedJaxpr(hoisted, []), out_avals))
        closed[-1].cache[CONSTS] = len(consts)
    values = [*consts, *leaves, *[ref.value() for ref in refs]]
    outs = cond_p.bind(index, *values, branches=tuple(closed))
    # What every branch hands on as it came is the operand itself, whatever the index.
    first, rest = closed[0].jaxpr, [b.jaxpr for b in closed[1:]]
    for i, v in enumerate(first.outvars):
        if v in first.invars:
            place = first.invars.index(v)  # type: ignore[arg-type]
            if all([b.outvars[i] is b.invars[place] for b in rest]):
                outs[i] = values[place]
    n = trees[0].num_leaves
    written = {ref for use in uses for ref in use.written}
    for ref, value in zip(refs, outs[n:], strict=True):
        if ref in written:
            ref.put(value)
    return tree.tree_unflatten(trees[0], given_out(outs[:n]))


def _check_varying(what: str, out_tree: Any, flows: Sequence[dict]) -> None:
    """Raise TypeError where an output of one branch varies over an axis of `shard_map` and that of
    another one does not. flows: of the branches, of two the true one first."""
    two = ("true_fun", "false_fun")
    names = two if what == "cond" else [f"branches[{k}]" for k in range(len(flows))]
    told, remedies = [], []
    for axis in flows[0]:
        results = [flow[axis].results for flow in flows]
        for i, flags in enumerate(zip(*results, strict=False)):
            if i < out_tree.num_leaves and any(flags) and not all(flags):
                path = f"output{tree.keystr(tree.leaf_path(out_tree, i))}"
                told.append(f"{path} varies over the axis {axis!r} of shard_map in one branch and "
                            "does not in another")  # fmt: skip
                for name, flag in zip(names, flags, strict=True):
                    if not flag:
                        remedies.append(f"applying `jax.lax.pcast(..., ({axis!r},), to='varying')` "
                                        f"to the output of {name}: {path}")  # fmt: skip
    if told:
        raise TypeError(
            f"{what} branches must have equal output types but they differ: {'; '.join(told)}, so "
            f"the manual axis types do not match. This might be fixed by {'; '.join(remedies)}."
        )


def _unify_refs(staged: list, uses: Sequence[RefUse]) -> list:
    """Let each branch take the references that any of them uses, behind its operands, and give what
    they hold, behind its results. Changes `staged`; returns the references."""
    refs = list(dict.fromkeys([ref for use in uses for ref in use.refs]))
    if not refs:
        return refs
    for i, ((jaxpr, consts), use) in enumerate(zip(staged, uses, strict=True)):
        n_in = len(jaxpr.invars) - len(use.refs)
        n_out = len(jaxpr.outvars) - len(use.written)
        given = dict(zip(use.refs, jaxpr.invars[n_in:], strict=True))
        last = dict(zip(use.written, jaxpr.outvars[n_out:], strict=True))
        variables = [given.get(ref) or Var(ref.aval.inner_aval) for ref in refs]
        holds = [last.get(ref) or v for ref, v in zip(refs, variables, strict=True)]
        inputs, results = [*jaxpr.invars[:n_in], *variables], [*jaxpr.outvars[:n_out], *holds]
        staged[i] = jaxpr.replace(invars=inputs, outvars=results), consts
    return refs


def _join_outputs(
    what: str, branches: Sequence[Callable], trees: list, avals: list
) -> list[ShapedArray]:
    names = [f"branch {i}" for i in range(len(trees))]
    order = range(1, len(trees))
    if what == "cond":
        names = ["false_fun", "true_fun"]
    for i in order:
        if trees[i] != trees[0]:
            # As cond is written: the function for True first.
            one, other = (i, 0) if what == "cond" else (0, i)
            told = "\n".join([
                f"{names[one]} output{f' at path {path}' if path else ''} is {first} but "
                f"{names[other]} output is {second}, so {why}."
                for path, first, second, why in differences(trees[one], trees[other])
            ])  # fmt: skip
            raise TypeError(
                f"{what} branch outputs must have the same pytree structure, but they differ:\n\n"
                f"{_places(names, branches, one, other)}\n\n{told}\n\nRevise {names[one]} and/or "
                f"{names[other]} so that they give one structure: {trees[one]} and {trees[other]}."
            )
    joined = []
    for leaf, group in enumerate(zip(*avals, strict=True)):
        strong = [a for a in group if not a.weak_type]
        first = strong[0] if strong else group[0]
        placed = next((a.placed for a in group if a.placed is not None), None)
        for i, a in enumerate(group):
            apart = a.placed is not None and a.placed != placed
            if (a.shape, a.dtype) != (first.shape, first.dtype) or apart:
                at = next(j for j, b in enumerate(group) if b is first)
                one, other = (1, 0) if what == "cond" else sorted((at, i))
                path = tree.keystr(tree.leaf_path(trees[0], leaf))
                x, y = group[one], group[other]
                apart_in = "shapes" if x.shape != y.shape else "dtypes"
                raise TypeError(
                    f"{what} branches must have equal output types but they differ.\n\n"
                    f"{_places(names, branches, one, other)}\n\nThe output of {names[one]}"
                    f"{f' at path {path}' if path else ''} has type {x.str_short()} but the "
                    f"corresponding output of {names[other]} has type {y.str_short()}, so the "
                    f"{apart_in} do not match.\n\nRevise {names[one]} and/or {names[other]} so "
                    "that all output types match: convert with .astype() or reshape."
                )
        # Weak where the first branch is, as in JAX; placed where one is.
        joined.append(group[0] if placed is None else group[0].over(placed))
    return joined


def _places(names: list[str], branches: Sequence[Callable], *which: int) -> str:
    return "\n".join([f"{names[i]} is {place_of(branches[i])}" for i in which])


def _with_out_avals(closed: ClosedJaxpr, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    pairs = list(zip(closed.out_avals, avals, strict=True))
    if all(o is a for o, a in pairs):
        return closed
    if all(o.dtype == a.dtype and o.placed == a.placed for o, a in pairs) and config.jax_form():
        return closed  # weak or not: JAX writes no conversion

    def run(*args: Any) -> list[Any]:
        return convert_all(eval_closed(closed, *args), avals)

    jaxpr, consts = stage(run, closed.in_avals, "cond_branch")
    return ClosedJaxpr(jaxpr, consts)
