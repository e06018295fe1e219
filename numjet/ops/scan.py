"""scan: a loop of known length with carried values and stacked inputs and outputs, as one
primitive.

`fori_loop` with a known trip count, `map` and every differentiable loop go through it. Operands are
consts, carry, xs; results are carry, ys.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from numjet.base import config, tree
from numjet.base.tracebacks import boundary
from numjet.core import hi
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.debug_info import Tracing
from numjet.core.dims import count_of, largest
from numjet.core.evaluate import run_compiled
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from numjet.core.lowering import Region
from numjet.core.primitive import Linear, Primitive, Zero
from numjet.core.ref_equations import OverRefs
from numjet.core.refs import AbstractRef, Ref, RefUse, refuse_returned, refuse_twice
from numjet.core.remote import traced_with
from numjet.core.structural import (
    add_any,
    convert,
    convert_element_type_p,
    given_out,
    instantiate,
    moveaxis,
    zeros,
)
from numjet.core.trace import aval_of, current_trace, set_trace
from numjet.ops.bodies import (
    check_carry,
    check_varying,
    convert_all,
    first_name,
    fixed_point,
    flatten_values,
    module_of,
    name_of,
    permute,
    split,
    stage_tree,
    strengthen,
    weakened,
)
from numjet.ops.shape import concatenate, expand_dims
from numjet.transforms.batch import Axis, batch_jaxpr, to_front
from numjet.transforms.calls import merge, partition, with_zeros
from numjet.transforms.jvp import jvp_jaxpr
from numjet.transforms.linearize import partial_eval_jaxpr
from numjet.transforms.simplify import dce_jaxpr, prune_loop
from numjet.transforms.stage import stage
from numjet.transforms.transpose import backward_pass
from numjet.transforms.varying import along, grown


def _abstract(
    *avals: ShapedArray, jaxpr: ClosedJaxpr, length: int, num_carry: int, **_: Any
) -> list[ShapedArray]:
    outs = jaxpr.out_avals
    return outs[:num_carry] + [a.update(shape=(length, *a.shape)) for a in outs[num_carry:]]


def _sizes(jaxpr: ClosedJaxpr, num_consts: int, num_carry: int) -> tuple[int, int]:
    """Numbers of xs and ys."""
    return len(jaxpr.jaxpr.invars) - num_consts - num_carry, len(jaxpr.jaxpr.outvars) - num_carry


def _alone(closed: ClosedJaxpr) -> ClosedJaxpr:
    copy = ClosedJaxpr(closed.jaxpr.replace(), closed.consts)
    copy.cache.update((k, v) for k, v in closed.cache.items() if k[0] != "program")
    return copy


def as_program(
    primitive: Primitive, args: Sequence[Any], params: dict, jaxpr: ClosedJaxpr
) -> ClosedJaxpr:
    """A jaxpr of the one equation, remembered with the loop's own jaxpr, for eager evaluation.

    The equation holds copies of the loop's jaxpr, which do not remember the program: it would hold
    itself, and what it was compiled to.
    """
    avals = tuple([aval_of(x) for x in args])
    key = (
        "program",
        primitive.name,
        avals,
        *[v for v in params.values() if not isinstance(v, ClosedJaxpr)],
        *[id(v if v.consts else v.jaxpr) for v in params.values() if isinstance(v, ClosedJaxpr)],
    )
    found = jaxpr.cache.get(key)
    if found is None:
        invars = [Var(a) for a in avals]
        outvars = [Var(a) for a in primitive.out_avals(avals, params)]
        held = {k: _alone(v) if isinstance(v, ClosedJaxpr) else v for k, v in params.items()}
        eqn = Eqn(invars, outvars, primitive, held, primitive.effects_of(held, avals))
        found = jaxpr.cache[key] = ClosedJaxpr(Jaxpr([], invars, outvars, [eqn]), [])
    return found


def _evaluate(*args: Any, **params: Any) -> list[Any]:
    return run_compiled(as_program(scan_p, args, params, params["jaxpr"]), args, "scan")


def _jvp(
    primals: tuple,
    tangents: tuple,
    *,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> tuple:
    n_xs, n_ys = _sizes(jaxpr, num_consts, num_carry)
    nz_consts, nz_carry, nz_xs = split(
        [type(t) is not Zero for t in tangents], num_consts, num_carry
    )
    nz_carry, derived, nz_out = fixed_point(
        lambda nz: jvp_jaxpr(jaxpr, nz_consts + nz + nz_xs, nz + [False] * n_ys), nz_carry
    )
    nc, ncarry = sum(nz_consts), sum(nz_carry)
    parts = split(range(len(derived.jaxpr.invars)), num_consts, num_carry, n_xs, nc, ncarry)
    in_order = parts[0] + parts[3] + parts[1] + parts[4] + parts[2] + parts[5]
    outs = split(range(len(derived.jaxpr.outvars)), num_carry, n_ys, ncarry)
    derived = permute_once(
        derived, ("scan_jvp", tuple(in_order)), in_order, outs[0] + outs[2] + outs[1] + outs[3]
    )
    consts, carry, xs = split(primals, num_consts, num_carry)
    t_consts, t_carry, t_xs = split(tangents, num_consts, num_carry)
    operands = [
        *consts,
        *[t for t in t_consts if type(t) is not Zero],
        *carry,
        *[instantiate(t) for t, nz in zip(t_carry, nz_carry, strict=True) if nz],
        *xs,
        *[t for t in t_xs if type(t) is not Zero],
    ]
    results = scan_p.bind(
        *operands, jaxpr=derived, num_consts=num_consts + nc, num_carry=num_carry + ncarry, **params
    )
    out_carry, out_t_carry, ys, t_ys = split(results, num_carry, ncarry, n_ys)
    nonzero = nz_carry + nz_out[num_carry:]
    return out_carry + ys, with_zeros(out_carry + ys, nonzero, out_t_carry + t_ys)


def permute_once(
    closed: ClosedJaxpr, key: tuple, in_order: Sequence[int], out_order: Sequence[int]
) -> ClosedJaxpr:
    """`permute`, remembered, so that one loop body stays one object."""
    found = closed.cache.get(key)
    if found is None:
        found = closed.cache[key] = permute(closed, in_order, out_order)
    return found


def _batch(
    axis: Axis,
    args: tuple,
    dims: tuple,
    *,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> tuple:
    _, n_ys = _sizes(jaxpr, num_consts, num_carry)
    m_consts, m_carry, m_xs = split([d is not None for d in dims], num_consts, num_carry)
    m_carry, batched, m_out = fixed_point(
        lambda m: batch_jaxpr(jaxpr, axis, m_consts + m + m_xs, m + [False] * n_ys), m_carry
    )
    consts, carry, xs = split(list(zip(args, dims, strict=True)), num_consts, num_carry)
    operands = [x if d is None else moveaxis(x, d, 0) for x, d in consts]
    operands += [
        to_front(x, d, axis.size) if m else x for (x, d), m in zip(carry, m_carry, strict=True)
    ]
    operands += [x if d is None else moveaxis(x, d, 1) for x, d in xs]
    outs = scan_p.bind(
        *operands, jaxpr=batched, num_consts=num_consts, num_carry=num_carry, **params
    )
    return outs, [0 if m else None for m in m_carry] + [1 if m else None for m in m_out[num_carry:]]


def _partial_eval(trace: Any, args: Sequence[Any], params: dict) -> list[Any]:
    jaxpr, num_consts, num_carry = params["jaxpr"], params["num_consts"], params["num_carry"]
    n_ys = _sizes(jaxpr, num_consts, num_carry)[1]
    u_consts, u_carry, u_xs = split([trace.is_unknown(x) for x in args], num_consts, num_carry)

    def step(u_carry: list[bool]) -> tuple:
        known, unknown, u_out, residual_avals = partial_eval_jaxpr(
            jaxpr, u_consts + u_carry + u_xs, u_carry + [False] * n_ys
        )
        return (known, unknown, len(residual_avals)), u_out

    u_carry, (known, unknown, n_res), u_out = fixed_point(step, u_carry)
    k_inputs, u_inputs = partition(args, u_consts + u_carry + u_xs)
    k_consts, k_carry = u_consts.count(False), u_carry.count(False)
    n_known = len(known.jaxpr.outvars) - n_res
    # Residuals that are a constant or an x of the known loop need no stacking: they are passed as
    # they are.
    place = {v: i for i, v in enumerate(known.jaxpr.invars)}
    origin = [place.get(v) if type(v) is Var else None for v in known.jaxpr.outvars[n_known:]]
    is_const = [o is not None and o < k_consts for o in origin]
    is_x = [o is not None and o >= k_consts + k_carry for o in origin]
    stacked = [not (c or x) for c, x in zip(is_const, is_x, strict=True)]
    out_order = [i for i, s in enumerate([True] * n_known + stacked) if s]
    known = permute_once(
        known, ("scan_known", tuple(out_order)), range(len(known.jaxpr.invars)), out_order
    )
    known_outs: list[Any] = []
    if out_order:
        k_params = {**params, "jaxpr": known, "num_consts": k_consts, "num_carry": k_carry}
        with set_trace(trace.parent):
            known_outs = scan_p.bind(*k_inputs, **k_params)
    passed = [k_inputs[o] for o, s in zip(origin, stacked, strict=True) if not s]  # type: ignore[index]
    residuals = merge(stacked, passed, known_outs[n_known:])
    row_res, const_res = partition(residuals, is_const)
    row_at, const_at = partition(range(n_res), is_const)
    n_uconsts, n_ucarry = sum(u_consts), sum(u_carry)
    in_order = [*const_at, *range(n_res, len(unknown.jaxpr.invars)), *row_at]
    later = permute_once(
        unknown, ("scan_unknown", tuple(in_order)), in_order, range(len(unknown.jaxpr.outvars))
    )
    u_params = {
        **params,
        "jaxpr": later,
        "num_consts": len(const_res) + n_uconsts,
        "num_carry": n_ucarry,
    }
    recorded = trace.record(scan_p, [*const_res, *u_inputs, *row_res], u_params)
    return merge(u_carry + u_out[num_carry:], known_outs[:n_known], recorded)


def _transpose(
    cts: list,
    *args: Any,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    length: int,
    reverse: bool,
    **params: Any,
) -> list:
    # Rows without a cotangent, and what only they are computed from, are left out.
    used = [True] * num_carry + [type(ct) is not Zero for ct in cts[num_carry:]]
    whole = {**params, "jaxpr": jaxpr, "num_consts": num_consts, "num_carry": num_carry}
    less = None if all(used) else _prune(whole, tuple(used))
    if less is not None:
        params, ins, outs = less
        found = _transpose(
            [cts[i] for i in outs], *[args[i] for i in ins],
            **params, length=length, reverse=reverse,
        )  # fmt: skip
        place = dict(zip(ins, found, strict=True))
        return [
            place[i] if i in place else Zero(x.aval) if type(x) is Linear else None
            for i, x in enumerate(args)
        ]
    consts, carry, xs = split(args, num_consts, num_carry)
    # A carry that starts from a known value (the zeros of a tangent) evolves linearly all the same;
    # its own cotangent goes nowhere.
    lin_carry = [type(c) is Linear for c in carry]
    lin_consts = [type(x) is Linear for x in consts]
    lin_xs = [type(x) is Linear for x in xs]
    ct_carry = [instantiate(ct) for ct in cts[:num_carry]]
    ct_ys = [instantiate(ct) for ct in cts[num_carry:]]
    use = RefUse()
    body = _transposed_body(jaxpr, num_carry, tuple(lin_consts), tuple(lin_xs), use)
    in_avals = jaxpr.in_avals
    acc = [zeros(a) for a, lin in zip(in_avals, lin_consts, strict=False) if lin]
    operands = [
        *partition(consts, lin_consts)[0],
        *acc,
        *ct_carry,
        *use.values(),
        *ct_ys,
        *partition(xs, lin_xs)[0],
    ]
    results = scan_p.bind(
        *operands,
        jaxpr=body,
        num_consts=num_consts - sum(lin_consts),
        num_carry=sum(lin_consts) + num_carry + len(use.written),
        length=length,
        reverse=not reverse,
        **params,
    )
    ct_consts, ct_carry_out, values, ct_xs = split(
        results, sum(lin_consts), num_carry, len(use.written)
    )
    for ref, value in zip(use.written, values, strict=True):
        ref.put_back(value)
    # What rules of the user give for a weak operand counts as weak, as it does in JAX's loops.
    x_avals = in_avals[num_consts + num_carry :]
    given_consts = iter(weakened(ct_consts, in_avals[:num_consts], lin_consts))
    given_xs = iter(weakened(ct_xs, x_avals, lin_xs))
    return [
        *[next(given_consts) if lin else None for lin in lin_consts],
        *[ct if lin else None for ct, lin in zip(ct_carry_out, lin_carry, strict=True)],
        *[next(given_xs) if lin else None for lin in lin_xs],
    ]


def _transposed_body(
    jaxpr: ClosedJaxpr, num_carry: int, lin_consts: tuple, lin_xs: tuple, use: RefUse
) -> ClosedJaxpr:
    """(residual consts, ct consts, ct carry, ct ys, residual xs) -> (ct consts, ct carry, ct
    xs). What references hold that rules of the user write, as `use` tells, is carried behind the
    ct carry."""
    key = ("scan_transpose", num_carry, lin_consts, lin_xs, config.jax_form())
    found = jaxpr.cache.get(key)
    if found is not None:
        return found
    n_consts = len(lin_consts)
    avals = jaxpr.in_avals
    c_avals, carry_avals, x_avals = split(avals, n_consts, num_carry)
    res_c, ct_c = partition(c_avals, lin_consts)
    res_x, ct_x = partition(x_avals, lin_xs)
    outs = jaxpr.out_avals

    def fun(*values: Any) -> list[Any]:
        rc, acc, ct_carry, ct_ys, rx = split(
            values, len(res_c), len(ct_c), num_carry, len(outs) - num_carry
        )
        args = merge(lin_consts, rc, map(Linear, ct_c))
        args += map(Linear, carry_avals)
        args += merge(lin_xs, rx, map(Linear, ct_x))
        # JAX adds each contribution to a sum at once, which jaxprs show.
        start = acc if config.jax_form() else ()
        found = backward_pass(jaxpr, args, [*ct_carry, *ct_ys], start)
        f_consts, f_carry, f_xs = split(found, n_consts, num_carry)
        total = partition(f_consts, lin_consts)[1]
        if not start:
            pairs = zip(acc, total, strict=True)
            total = [a if type(ct) is Zero else add_any(a, ct) for a, ct in pairs]
        return [
            *total,
            *map(instantiate, f_carry),
            *map(instantiate, partition(f_xs, lin_xs)[1]),
        ]

    staged, consts = stage(
        fun,
        [*res_c, *ct_c, *outs[:num_carry], *outs[num_carry:], *res_x],
        "scan_transpose",
        use=use,
    )
    found = ClosedJaxpr(_not_weakened(staged), consts)
    if n_refs := len(use.written):
        first = len(res_c) + len(ct_c) + num_carry
        last = len(found.invars) - n_refs
        n_ct = len(ct_c) + num_carry
        rest = len(found.outvars) - n_refs
        return permute(
            found,
            [*range(first), *range(last, last + n_refs), *range(first, last)],
            [*range(n_ct), *range(rest, rest + n_refs), *range(n_ct, rest)],
        )
    if not use.fixed:
        jaxpr.cache[key] = found
    return found


def _not_weakened(jaxpr: Jaxpr) -> Jaxpr:
    """The results without conversions that make them weak: as in JAX, the gradient of a carry that
    the loop makes strong is so."""
    of = {
        eqn.outvars[0]: eqn.invars[0]
        for eqn in jaxpr.eqns
        if eqn.primitive is convert_element_type_p
        and eqn.params["weak_type"]
        and eqn.invars[0].aval.dtype == eqn.params["new_dtype"]
    }
    if not of:
        return jaxpr
    outvars = [of.get(v, v) if type(v) is Var else v for v in jaxpr.outvars]
    return dce_jaxpr(jaxpr.replace(outvars=outvars))[0]


def _prune(params: dict, used: tuple[bool, ...]) -> tuple[dict, list[int], list[int]] | None:
    """Without rows and carries that nobody uses, and without the operands read for them only."""
    num_consts, num_carry = params["num_consts"], params["num_carry"]
    found = prune_loop(params["jaxpr"], num_consts, used, [False] * num_carry)
    if found is None:
        return None
    body, ins, outs = found
    consts = sum(i < num_consts for i in ins)
    carry = sum(i < num_carry for i in outs)
    return {**params, "jaxpr": body, "num_consts": consts, "num_carry": carry}, ins, outs


scan_p = OverRefs(
    "scan",
    multiple_results=True,
    higher_order=True,
    linear=True,
    abstract=_abstract,
    evaluate=_evaluate,
    jvp=_jvp,
    batch=_batch,
    partial_eval=_partial_eval,
    prune=_prune,
    transpose=_transpose,
    loops=Region("scan"),
    effects=lambda jaxpr, **_: jaxpr.effects,
)


# ------------------------------------------------------------------ the public functions
@boundary
def scan(
    f: Callable,
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """Run `carry, y = f(carry, x)` over the leading axis of `xs`; returns the last carry and the
    stacked ys.

    f: must return a carry of the same structure, shapes and dtypes. init: the first carry, a
    pytree. xs: a pytree of arrays with equal leading sizes, or None with length, which is how often
    f runs. reverse: from the end. unroll stands in the equation and is left to the compiler. f is
    traced once and compiled to a loop. Differentiable in both modes; reverse mode keeps what f's
    derivative needs of each step. Raises TypeError when the carry changes type, ValueError when
    sizes differ or unroll is negative, IndexError for xs without axes.

    >>> from numjet import lax, numpy as jnp
    >>> total, partial = lax.scan(lambda c, x: (c + x, c + x), 0.0, jnp.array([1.0, 2.0, 3.0]))
    >>> print(total, partial)
    6.0 [1. 3. 6.]
    """
    if not callable(f):
        raise TypeError(f"lax.scan: f argument should be a callable, got {f!r}.")
    init, xs = hi.lower(init), hi.lower(xs)
    xs_leaves, xs_tree = flatten_values(xs)
    n = _length(xs, length)
    rounds = (max(n, 1) if unroll else 1) if isinstance(unroll, bool) else count_of(unroll)
    if rounds < 0:
        raise ValueError(f"scan: `unroll` must be a `bool` or a non-negative `int`, got {unroll}.")
    if config.disable_jit.value:
        return _scan_in_python(f, init, xs_leaves, xs_tree, n, reverse)
    init_leaves, init_tree = flatten_values(init)
    x_avals = [_row(x.aval) for x in xs_leaves]
    carry_avals = [x.aval for x in init_leaves]
    in_tree = tree.tree_structure((init, xs))
    if in_tree.num_leaves != len(init_leaves) + len(xs_leaves):
        return _over_references(f, init, xs, in_tree, (length, reverse, unroll))
    closed: ClosedJaxpr
    flows = along([*init_leaves, *xs_leaves])
    while True:  # each round changes one more dtype, or lets one more vary, so there is an end
        use = RefUse()
        avals = [*carry_avals, *x_avals]
        with traced_with([*init_leaves, *xs_leaves]):
            closed, consts, out_tree = stage_tree(f, in_tree, avals, "scan", use, flows)
        parts = out_tree.children()
        if len(parts) != 2:
            got = closed.out_avals
            shown = got[0].str_short() if tree.treedef_is_leaf(out_tree) else out_tree
            raise TypeError(f"scan body output must be a pair, got {shown}. It is (carry, y).")
        n_carry = parts[0].num_leaves
        got = closed.out_avals[:n_carry]
        if parts[0] == init_tree:
            check_varying("scan", f, flows, init_tree)
            stronger = strengthen(carry_avals, got, init_leaves)
            if grown(flows, n_carry) or stronger != carry_avals:
                carry_avals = stronger
                continue
        break
    check_carry("scan", init_tree, carry_avals, parts[0], got, lambda: first_name(f, in_tree))
    n_refs = len(use.written)
    if n_refs:  # references that the body writes are carried
        ins = split(range(len(closed.invars)), len(consts), n_carry, len(xs_leaves))
        last = split(range(len(closed.outvars)), n_carry, len(closed.outvars) - n_carry - n_refs)
        closed = permute(
            closed, [*ins[0], *ins[1], *ins[3], *ins[2]], [*last[0], *last[2], *last[1]]
        )
    given = convert_all(init_leaves, carry_avals)
    params = {"length": n, "reverse": bool(reverse), "unroll": rounds}
    if not n_refs and _hands_on(closed, len(consts), n_carry) and config.jax_form():
        outs = _without_unchanged(closed, consts, given, xs_leaves, params)
    else:
        outs = scan_p.bind(
            *consts, *given, *use.values(), *xs_leaves, jaxpr=closed, num_consts=len(consts),
            num_carry=n_carry + n_refs, **params,
        )  # fmt: skip
    for ref, value in zip(use.written, outs[n_carry : n_carry + n_refs], strict=True):
        ref.put_back(value)
    # What the body hands on as it came is what was given.
    carries = closed.jaxpr.invars[len(consts) : len(consts) + n_carry]
    for i, (x, v) in enumerate(zip(tree.tree_leaves(init), carries, strict=True)):
        if closed.jaxpr.outvars[i] is v and carry_avals[i].dtype == init_leaves[i].aval.dtype:
            outs[i] = x
    stacked = outs[n_carry + n_refs :]
    return tree.tree_unflatten(out_tree, given_out([*outs[:n_carry], *stacked]))


def _over_references(f: Callable, init: Any, xs: Any, in_tree: Any, options: tuple) -> tuple:
    """`scan` over references among `xs`, whose rows the body reads and writes."""
    traced = Tracing(f, "scan", in_tree, by_name=False)
    refuse_twice(name_of(f), "scan", tree.tree_leaves((init, xs)), traced.names())
    if any([isinstance(x, Ref) for x in tree.tree_leaves(init)]):
        _refuse_carried(f, init, xs, in_tree)
        raise ValueError(
            "scan: mutable array references cannot be carried. Let the body use them as they are, "
            "by closure, or scan over them."
        )
    leaves, treedef = tree.tree_flatten(xs)
    refs = {i: x for i, x in enumerate(leaves) if isinstance(x, Ref)}

    def body(carry: Any, rows: list) -> Any:
        inner = {i: Ref(AbstractRef(rows[i].aval), rows[i]) for i in refs}
        given = [inner.get(i, x) for i, x in enumerate(rows)]
        out = f(carry, tree.tree_unflatten(treedef, given))
        if not isinstance(out, tuple | list) or len(out) != 2:
            return out
        return out[0], (out[1], [ref.value() for ref in inner.values()])

    body.__module__ = module_of(f)
    body.told = lambda _: traced  # type: ignore[attr-defined]
    values = [x.value() if i in refs else x for i, x in enumerate(leaves)]
    carry, (ys, last) = scan(body, init, values, *options)
    for ref, value in zip(refs.values(), last, strict=True):
        ref.put_back(value)
    return carry, ys


def _refuse_carried(f: Callable, init: Any, xs: Any, in_tree: Any) -> None:
    """Raise the ValueError that tells what a body does with a reference in its carry that it may
    not: it hands it on, or uses it by closure, too."""
    leaves = [x if isinstance(x, Ref) else as_array(x) for x in tree.tree_leaves((init, xs))]
    n_carry = tree.tree_structure(init).num_leaves
    names = Tracing(f, "scan", in_tree, by_name=False).names()

    def flat(*values: Any) -> list[Any]:
        given = {
            i: Ref(AbstractRef(values[i].aval), values[i])
            for i, x in enumerate(leaves)
            if isinstance(x, Ref)
        }
        out = f(*tree.tree_unflatten(in_tree, [given.get(i, x) for i, x in enumerate(values)]))
        for path, x in tree.tree_flatten_with_path(out)[0]:
            refuse_returned(x, f"function {name_of(f)} traced for scan", tree.keystr(path))
        for i in given:
            if leaves[i] in (getattr(current_trace(), "refs", None) or ()):
                raise ValueError(
                    f"when tracing {name_of(f)} for scan, a mutable array reference of type "
                    f"{leaves[i].aval} was both closed over and passed as the argument {names[i]}"
                )
        return []

    avals = [x.aval.inner_aval if isinstance(x, Ref) else x.aval for x in leaves]
    stage(flat, [a if i < n_carry else _row(a) for i, a in enumerate(avals)], use=RefUse())


def _hands_on(closed: ClosedJaxpr, num_consts: int, num_carry: int) -> bool:
    """Whether the body hands a carry on as it came, or a row."""
    ins = split(closed.jaxpr.invars, num_consts, num_carry)
    outs = closed.jaxpr.outvars
    return any(map(operator.is_, ins[1], outs)) or not {*ins[2]}.isdisjoint(
        [v for v in outs[num_carry:] if type(v) is Var]
    )


def _without_unchanged(
    closed: ClosedJaxpr, consts: list, carry: list, xs: list, params: dict
) -> list:
    """The results of a scan as JAX writes it: what the body hands on as it came is no carry but one
    of its constants, and rows that are returned as they came are the rows that were given."""
    outvars = closed.jaxpr.outvars
    ins = split(closed.jaxpr.invars, len(consts), len(carry))
    places = split(range(len(closed.invars)), len(consts), len(carry))
    still = [v is w for v, w in zip(ins[1], outvars, strict=False)]
    row_of = dict(zip(ins[2], xs, strict=True))
    new = [n for n, v in enumerate(outvars) if n >= len(carry) or not still[n]]
    new = [n for n in new if n < len(carry) or outvars[n] not in row_of]
    fixed, moving = [[n for n, s in enumerate(still) if s is kind] for kind in (True, False)]
    order = [*[places[1][n] for n in fixed], *places[0], *[places[1][n] for n in moving]]
    found = scan_p.bind(
        *[carry[n] for n in fixed], *consts, *[carry[n] for n in moving], *xs,
        jaxpr=permute(closed, [*order, *places[2]], new), num_consts=len(fixed) + len(consts),
        num_carry=len(moving), **params,
    )  # fmt: skip
    made = dict(zip(new, found, strict=True))
    return [
        made[n] if n in made else carry[n] if n < len(carry) else row_of[v]
        for n, v in enumerate(outvars)
    ]


def _row(aval: ShapedArray) -> ShapedArray:
    if aval.placed is not None and aval.placed.spec[0] is not None:
        raise ValueError(
            f"scan: 0th dimension of all xs should be replicated. Got {aval.placed.spec}. Lay them "
            "out otherwise with numjet.reshard."
        )
    return aval.row()


def _length(xs: Any, length: int | None) -> int:
    sizes = []
    for path, leaf in tree.tree_flatten_with_path(xs)[0]:
        shape = leaf.shape if hasattr(leaf, "shape") else ()
        if not shape:
            # As JAX: an IndexError for what has a shape, which its first entry is asked of.
            raise (IndexError if hasattr(leaf, "shape") else ValueError)(
                f"scan got value with no leading axis to scan over: xs{tree.keystr(path)} has "
                f"shape {shape}."
            )
        sizes.append((f"xs{tree.keystr(path)}", shape[0]))
    if not sizes and length is None:
        raise ValueError("scan got no values to scan over and `length` not provided.")
    names = ", ".join(f"{k} has {n}" for k, n in sizes)
    if length is not None:
        if sizes and type(length) is float and length.is_integer():
            length = int(length)
        if any(n != count_of(length) for _, n in sizes):
            raise ValueError(
                f"scan got `length` argument of {length} which disagrees with leading axis sizes "
                f"{[n for _, n in sizes]}: {names}."
            )
        return largest(count_of(length), 0)  # a negative length is that of no round
    if len({n for _, n in sizes}) > 1:
        raise ValueError(
            "scan got values with different leading axis sizes: "
            + ", ".join(str(n) for _, n in sizes) + f" ({names})."
        )
    return sizes[0][1]


def _scan_in_python(
    f: Callable, carry: Any, leaves: Sequence[Any], treedef: Any, n: int, reverse: bool
) -> tuple:
    ys = []
    for i in reversed(range(n)) if reverse else range(n):
        carry, y = f(carry, tree.tree_unflatten(treedef, [x[i] for x in leaves]))
        ys.append(y)
    if not ys:
        raise ValueError(
            "zero-length scan is not supported in disable_jit() mode because the output type is "
            "unknown."
        )
    if reverse:
        ys.reverse()
    return carry, tree.tree_map(_stack, *ys)


def _stack(*parts: Any) -> Any:
    rows = [expand_dims(as_array(x), (0,)) for x in parts]
    weak = all([x.aval.weak_type for x in rows])
    return concatenate([convert(x, x.aval.dtype, weak) for x in rows], 0)
