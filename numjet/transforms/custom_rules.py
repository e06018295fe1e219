"""Derivative rules given by the user: the primitives behind `custom_jvp` and `custom_vjp`.

Their operands are flat; `call_jaxpr` is the function itself, a Python callable while it has not
been staged and a closed jaxpr after. `api.derivatives.custom` holds the public decorators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numjet.base import config, tree_paths
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.debug_info import Tracing
from numjet.core.given import array_of, note_tangent
from numjet.core.jaxpr import ClosedJaxpr, eval_closed
from numjet.core.lowering import Expand, Region
from numjet.core.primitive import Primitive, Zero
from numjet.core.refs import RefUse
from numjet.core.shared import Flow, Shared, Told, rule_error
from numjet.core.structural import convert, instantiate, moveaxis, reduce_sum, zeros
from numjet.core.trace import aval_of, set_trace
from numjet.core.typed_numbers import no_tangents
from numjet.transforms.batch import (
    Axis,
    AxisEffect,
    BatchTrace,
    batch_again,
    extend_axis_env,
    mapped_to_front,
    to_front,
)
from numjet.transforms.jvp import jvp_call
from numjet.transforms.stage import hoist_consts, stage
from numjet.transforms.transpose import RUN_ON_ZEROS
from numjet.transforms.varying import along, results


def run_call(call: Any, args: Sequence[Any]) -> list[Any]:
    """Run a `call_jaxpr` param, whichever form it has."""
    if type(call) is ClosedJaxpr:
        return eval_closed(call, *args)
    return call(*args)


def _abstract(*avals: ShapedArray, call_jaxpr: Any, **_: Any) -> list[ShapedArray]:
    return call_jaxpr.out_avals


def _evaluate(*args: Any, call_jaxpr: Any, **_: Any) -> list[Any]:
    return run_call(call_jaxpr, args)


def effects_of_call(*, call_jaxpr: Any, **_: Any) -> frozenset:
    return call_jaxpr.effects if type(call_jaxpr) is ClosedJaxpr else frozenset()


def _effects_of_rules(*, call_jaxpr: Any, fwd: Callable, **_: Any) -> frozenset:
    """Those of a function with a rule, which may use the axes that were mapped where it was staged
    though the function itself does not."""
    own: frozenset = effects_of_call(call_jaxpr=call_jaxpr)
    return own | frozenset([AxisEffect(name) for name in getattr(fwd, "axes", ())])


def stage_call(primitive_of: Callable[[], Primitive]) -> Callable:
    def rule(trace: Any, args: Sequence[Any], params: dict) -> list[Any]:
        call = params["call_jaxpr"]
        if type(call) is not ClosedJaxpr:
            avals = [aval_of(x) for x in args]
            traced = None
            if told := getattr(call, "traced", None):
                fun, decorator, in_tree, static = told
                traced = Tracing(fun, f"{decorator} fun", in_tree, static=static, by_name=False)
            use = RefUse() if "bwd" in params else None
            flows = along(args)
            jaxpr, consts = stage(call, avals, params["name"], traced, use, flows)
            if "fwd" in params and Shared.mapped.get():
                params = {**params, "fwd": _telling(params["fwd"], flows, jaxpr, consts)}
            if traced is not None:
                jaxpr.debug = traced.told(None)
            params = {
                **params,
                "call_jaxpr": hoist_consts(jaxpr),
                "num_consts": params["num_consts"] + len(consts),
            }
            args = [*consts, *args]
            if use is not None and use.written:
                return _record_writing(trace, primitive_of(), args, params, use.written)
        return trace.record(primitive_of(), args, params)

    return rule


def _telling(fwd: Callable, flows: dict[Any, Flow], jaxpr: Any, consts: Sequence[Any]) -> Callable:
    """The forward rule of a call that is staged inside of `shard_map`, which finds what varies
    there (`Shared.told`) also where it runs apart from the arguments."""
    sizes = dict(Shared.axes.get())
    told = None if not flows else Told(Shared.axes.get(), [
        (name, sizes[name], [not flag for flag in flow.given],
         [not flag for flag in results(flow, name, jaxpr, consts)])
        for name, flow in flows.items()
    ])  # fmt: skip

    def telling(primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list, list]:
        before = Shared.told.set(told)
        try:
            return fwd(primals, perturbed)
        finally:
            Shared.told.reset(before)

    telling.__name__ = getattr(fwd, "__name__", "fwd")  # which jaxprs show
    telling.axes = tuple(Shared.mapped.get())  # type: ignore[attr-defined]  # that rules may use
    return telling


def _record_writing(
    trace: Any, primitive: Primitive, args: Sequence[Any], params: dict, refs: list
) -> list[Any]:
    """Record a call of a `custom_vjp` function that writes references from outside: what they hold
    comes behind the operands, and what they hold then behind the results."""
    n = len(refs)

    def fwd(primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list, list]:
        outside = [ref.value() for ref in refs]
        for ref, value in zip(refs, primals[-n:], strict=True):
            ref.put(value)
        outs, residuals = params["fwd"](primals[:-n], perturbed[:-n])
        last = [ref.value() for ref in refs]
        for ref, value in zip(refs, outside, strict=True):
            ref.put(value)
        return [*outs, *last], residuals

    def bwd(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        return [*params["bwd"](residuals, cts), *[None] * n]

    fwd.writes = n  # type: ignore[attr-defined]  # of its results these are no function's of x
    fwd.__name__, bwd.__name__ = params["fwd"].__name__, params["bwd"].__name__
    operands = [*args, *[ref.value() for ref in refs]]
    outs = trace.record(primitive, operands, {**params, "fwd": fwd, "bwd": bwd})
    for ref, value in zip(refs, outs[-n:], strict=True):
        ref.put(value)
    return outs[:-n]


def _run_unknown(trace: Any, args: Sequence[Any], params: dict) -> list[Any]:
    # Partial evaluation only ever builds linear functions, whose derivative is not asked for again.
    with set_trace(trace):
        return run_call(params["call_jaxpr"], args)


class _Mapped:
    """Which outputs of a mapped custom function have the mapped axis (in front). The function, or
    the rule that runs in its place, is the first to tell; who runs later does as it did. every: all
    have it."""

    __slots__ = ("name", "size", "flags", "every")

    def __init__(self, name: str, size: int, every: bool = False) -> None:
        self.name, self.size, self.every = name, size, every
        self.flags: list[bool] | None = None

    def is_one_call(self, axis: Axis, dims: Sequence[int | None]) -> bool:
        """Whether nothing is mapped, by `vmap`: of arguments and residuals, which are at `dims`,
        and of outputs. A value that the devices of `shard_map` have in common is one for each."""
        none = not any(self.flags or ()) and all([d is None for d in dims])
        return none and not axis.of_devices

    def arrange(self, outs: Sequence[Any], flags: list[bool], dims: Sequence[Any]) -> list[Any]:
        """`outs`, mapped where `flags` says so, with the axis where it was found to be."""
        if self.flags is None:
            self.flags = [True] * len(flags) if self.every else flags
        if any(flag and not known for flag, known in zip(flags, self.flags, strict=True)):
            raise NotImplementedError(
                f"vmap of {self.name}: the derivative rule gives an output that depends on the "
                "mapped axis where the function gives one that does not. Make the function's "
                "output depend on its mapped arguments, for example by adding 0 * x."
            )
        return [
            to_front(as_array(x), d, self.size) if flag else x
            for x, d, flag in zip(outs, dims, self.flags, strict=True)
        ]


def _batched_call(
    call: Any, trace: BatchTrace, dims: Sequence[int | None], mapped: _Mapped
) -> Callable:
    def batched(*args: Any) -> list[Any]:
        outs, out_dims = batch_again(lambda *xs: run_call(call, xs), trace, args, dims)
        return mapped.arrange(outs, [d is not None for d in out_dims], out_dims)

    return batched


def _out_dims(mapped: _Mapped) -> list[int | None]:
    assert mapped.flags is not None
    return [0 if flag else None for flag in mapped.flags]


def _no_const_tangents(name: str, tangents: Sequence[Any]) -> None:
    if any(type(t) is not Zero for t in tangents):
        raise NotImplementedError(
            f"{name}: its function closes over a value that is being differentiated. Pass the "
            "value as an explicit argument, so that the rule can see it."
        )


# ------------------------------------------------------------------ custom_jvp
def _custom_jvp_jvp(
    primals: tuple,
    tangents: tuple,
    *,
    call_jaxpr: Any,
    jvp: Callable,
    name: str,
    num_consts: int,
    symbolic_zeros: bool,
) -> tuple:
    # Of values that the function closes over the rule says nothing: they have no derivative, as in
    # JAX. A rule that uses one itself meets a tracer that has ended, which says so.
    primals, tangents = primals[num_consts:], tangents[num_consts:]
    if not symbolic_zeros:
        tangents = tuple([_dense_tangent(t) for t in tangents])
    outs, out_tangents = jvp(primals, tangents)
    matched = [_match_tangent(name, x, t) for x, t in zip(outs, out_tangents, strict=True)]
    arrays = [x if type(t) is Zero else array_of(x) for x, t in zip(outs, matched, strict=True)]
    for x, t in zip(arrays, matched, strict=True):
        note_tangent(x, t)
    return arrays, matched


def _dense_tangent(t: Any) -> Any:
    """A tangent as rules see it."""
    return no_tangents(t.aval.shape) if t.aval.dtype == dtypes.float0 else instantiate(t)


def _match_tangent(name: str, primal: Any, tangent: Any) -> Any:
    if type(tangent) is Zero:
        return tangent
    want, have = aval_of(primal).tangent(), aval_of(tangent)
    if want.dtype == dtypes.float0:
        return Zero(want)
    if want.shape != have.shape or (want.dtype != have.dtype and not (
        have.weak_type and dtypes.is_inexact(have.dtype)
    )):
        raise TypeError(
            "Custom JVP rule must produce primal and tangent outputs with corresponding shapes "
            f"and dtypes. Expected {want.str_short()} (tangent type of "
            f"{aval_of(primal).str_short()}) but got {have.str_short()}. The function is {name}."
        )
    return convert(tangent, want.dtype, have.weak_type) if want.dtype != have.dtype else tangent


def batch_jvp(
    axis: Axis, args: tuple, dims: tuple, *, call_jaxpr: Any, jvp: Callable, **params: Any
) -> tuple:
    inner = dims[params["num_consts"] :]
    trace, mapped = axis.trace, _Mapped(params["name"], axis.size)

    def batched_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple:
        n = len(primals)
        given = [i for i, t in enumerate(tangents) if type(t) is not Zero]  # the rest stays Zero
        flat = [*primals, *[tangents[i] for i in given]]
        zeros_in = [
            None if type(t) is not Zero else Zero(t.aval if d is None else t.aval.row(d))
            for t, d in zip(tangents, inner, strict=True)
        ]
        found: list[bool] = []

        def both(*xs: Any) -> list[Any]:
            full: list[Any] = list(zeros_in)
            for i, t in zip(given, xs[n:], strict=True):
                full[i] = t
            outs, out_tangents = jvp(xs[:n], full)
            found[:] = [type(t) is not Zero for t in out_tangents]
            return [*outs, *[t for t in out_tangents if type(t) is not Zero]]

        outs, out_dims = batch_again(both, trace, flat, [*inner, *[inner[i] for i in given]])
        half = len(found)
        rest = iter(zip(outs[half:], out_dims[half:], strict=True))
        pairs = [next(rest) if there else (None, None) for there in found]
        flags = [d is not None or t[1] is not None for d, t in zip(out_dims, pairs)]
        first = mapped.arrange(outs[:half], flags, out_dims[:half])
        assert mapped.flags is not None
        return first, [
            (to_front(as_array(t), d, axis.size) if flag else t) if there
            else Zero(aval_of(x).tangent())
            for x, (t, d), there, flag in zip(first, pairs, found, mapped.flags, strict=True)
        ]  # fmt: skip

    batched_jvp.__name__ = getattr(jvp, "__name__", "jvp")  # which jaxprs show
    call = _batched_call(call_jaxpr, trace, dims, mapped)
    outs = custom_jvp_p.bind(*args, call_jaxpr=call, jvp=batched_jvp, **params)
    return outs, _out_dims(mapped)


custom_jvp_p = Primitive(
    "custom_jvp_call",
    multiple_results=True,
    higher_order=True,
    abstract=_abstract,
    evaluate=_evaluate,
    jvp=_custom_jvp_jvp,
    batch=batch_jvp,
    partial_eval=_run_unknown,
    loops=Region("call"),
    effects=effects_of_call,
    stage=stage_call(lambda: custom_jvp_p),
)


# ------------------------------------------------------------------ custom_vjp
def _custom_vjp_jvp(
    primals: tuple,
    tangents: tuple,
    *,
    call_jaxpr: Any,
    fwd: Callable,
    bwd: Callable,
    name: str,
    num_consts: int,
    symbolic_zeros: bool,
) -> tuple:
    _no_const_tangents(name, tangents[:num_consts])
    primals, tangents = primals[num_consts:], tangents[num_consts:]
    perturbed = [type(t) is not Zero for t in tangents]
    outs, residuals = fwd(primals, perturbed)
    n = len(outs) - getattr(fwd, "writes", 0)
    out_avals = [aval_of(x).tangent() for x in outs[:n]]
    given = [t for t in tangents if type(t) is not Zero]
    lin = custom_lin_p.bind(
        *residuals,
        *given,
        num_res=len(residuals),
        bwd=bwd,
        name=name,
        out_avals=tuple(out_avals),
        perturbed=tuple(perturbed),
        in_avals=tuple([aval_of(x).tangent() for x in primals]),
        symbolic_zeros=symbolic_zeros,
    )
    out_tangents = [
        Zero(a) if a.dtype == dtypes.float0 else t for a, t in zip(out_avals, lin, strict=True)
    ]
    out_tangents += [Zero(aval_of(x).tangent()) for x in outs[n:]]
    return [
        x if type(t) is Zero else array_of(x) for x, t in zip(outs, out_tangents, strict=True)
    ], out_tangents


def _batched_bwd(
    bwd: Callable,
    trace: BatchTrace,
    res_dims: Sequence[int | None] | None,
    in_dims: Sequence[int | None],
    mapped: _Mapped | None = None,
    tested: bool = False,
) -> Callable:
    """A backward function over the mapped axis: residuals have it at `res_dims` (None: leading),
    output cotangents leading where `mapped` says so (None: all). The cotangent of an output that is
    not mapped is the whole one, of all places of the axis. Cotangents of inputs that are not mapped
    are summed: those that the rule gives for each place are asked for with an equal part of the
    whole at each, so that the sum counts it once. Of a function that has nothing mapped the rule
    runs once. tested: the axis is one of a `shard_map` that tests what varies; what does not is
    one value there, and so is its cotangent."""

    def run(residuals: Sequence[Any], cts: Sequence[Any], flags: Sequence[bool]) -> list:
        """What the rule gives, with the mapped axis where it has one: None and Zero as they are."""
        n = len(residuals)
        present = [type(ct) is not Zero for ct in cts]
        found: list[Any] = []

        def flat(*xs: Any) -> list[Any]:
            given = iter(xs[n:])
            inner = [
                next(given) if p else Zero(_unbatched(ct.aval) if flag else ct.aval)
                for p, ct, flag in zip(present, cts, flags, strict=True)
            ]
            found.extend(bwd(xs[:n], inner))
            return [r for r in found if r is not None and type(r) is not Zero]

        args = [*residuals, *[ct for ct, p in zip(cts, present, strict=True) if p]]
        at = [0 if flag else None for flag in flags]
        dims = [*([0] * n if res_dims is None else res_dims),
                *[d for d, p in zip(at, present, strict=True) if p]]  # fmt: skip
        pairs = iter(zip(*batch_again(flat, trace, args, dims), strict=True))
        return [(None, None) if r is None or type(r) is Zero else next(pairs) for r in found]

    def batched(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        if mapped is not None and mapped.is_one_call(trace.axis, [*in_dims, *(res_dims or ())]):
            with extend_axis_env(trace.axis):
                return list(bwd(residuals, cts))
        flags = [True] * len(cts) if mapped is None or mapped.flags is None else mapped.flags
        flags = flags[: len(cts)]
        size = trace.axis.size
        given = run(residuals, cts, flags)
        whole = [not flag and type(ct) is not Zero for ct, flag in zip(cts, flags, strict=True)]
        summed = any([dim is None and d is not None for (_, d), dim in zip(given, in_dims)])
        if summed and any(whole) and not tested:
            parts = [to_front(_part(ct, size), None, size) if w else ct
                     for ct, w in zip(cts, whole, strict=True)]  # fmt: skip
            shared = run(residuals, parts, [f or w for f, w in zip(flags, whole, strict=True)])
            given = [one if dim is None else pair
                     for pair, one, dim in zip(given, shared, in_dims, strict=True)]  # fmt: skip
        cotangents: list[Any] = []
        for i, ((ct, ct_dim), dim) in enumerate(zip(given, in_dims, strict=True)):
            if ct is None:
                cotangents.append(None)
                continue
            if tested and (dim is None) is not (ct_dim is None):
                own = aval_of(ct) if ct_dim is None else aval_of(ct).row(ct_dim)
                raise rule_error(i, own, trace.axis.name, dim is None)
            if dim is None:
                cotangents.append(ct if ct_dim is None else reduce_sum(ct, (ct_dim,)))
            else:
                cotangents.append(moveaxis(to_front(ct, ct_dim, size), 0, dim))
        return cotangents

    batched.in_tree = getattr(bwd, "in_tree", None)  # type: ignore[attr-defined]
    return batched


def batch_vjp(
    axis: Axis,
    args: tuple,
    dims: tuple,
    *,
    call_jaxpr: Any,
    fwd: Callable,
    bwd: Callable,
    **params: Any,
) -> tuple:
    tested = axis.of_devices and Shared.tests(axis.name)
    if axis.of_devices and not tested:
        # Each device has a value of its own of what they have in common, and its own cotangent of
        # it, to which the rule need not be linear.
        args = tuple([x if d is not None else to_front(x, None, axis.size)
                      for x, d in zip(args, dims, strict=True)])  # fmt: skip
        dims = tuple([0 if d is None else d for d in dims])
    inner = dims[params["num_consts"] :]
    trace = axis.trace
    mapped = _Mapped(params["name"], axis.size, axis.of_devices and not tested)
    res_dims: list[int | None] = []  # where the residuals of the last forward rule are mapped

    def batched_fwd(primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple:
        count = []

        def flat(*xs: Any) -> list[Any]:
            outs, residuals = fwd(xs, perturbed)
            count.append(len(outs))
            return [*outs, *residuals]

        outs, out_dims = batch_again(flat, trace, primals, inner)
        n = count[0]
        flags = [d is not None for d in out_dims[:n]]
        first = mapped.arrange(outs[:n], flags, out_dims[:n])
        res_dims[:] = [None if d is None else 0 for d in out_dims[n:]]
        return first, mapped_to_front([as_array(x) for x in outs[n:]], out_dims[n:])

    batched_bwd = _batched_bwd(bwd, trace, res_dims, inner, mapped, tested)
    if tested:  # the rules may run when shard_map has ended
        ruled = Shared.axes.get(), axis.name
        batched_fwd, batched_bwd = _ruled(batched_fwd, *ruled), _ruled(batched_bwd, *ruled)
    batched_fwd.writes = getattr(fwd, "writes", 0)  # type: ignore[attr-defined]
    batched_fwd.__name__ = getattr(fwd, "__name__", "fwd")  # which jaxprs show
    batched_bwd.__name__ = getattr(bwd, "__name__", "bwd")
    outs = custom_vjp_p.bind(
        *args,
        call_jaxpr=_batched_call(call_jaxpr, trace, dims, mapped),
        fwd=batched_fwd,
        bwd=batched_bwd,
        **params,
    )
    return outs, _out_dims(mapped)


def _ruled(rule: Callable, around: tuple, name: Any) -> Callable:
    """A rule over an axis of a `shard_map` that tests what varies, where `around` are those that
    do: it is given, and gives, whole cotangents of what does not vary along it."""

    def run(*args: Any) -> Any:
        axes = Shared.axes.set(around)
        ruled = Shared.ruled.set(Shared.ruled.get() | {name})
        try:
            return rule(*args)
        finally:
            Shared.ruled.reset(ruled)
            Shared.axes.reset(axes)

    run.in_tree = getattr(rule, "in_tree", None)  # type: ignore[attr-defined]
    return run


def _part(ct: Any, size: int) -> Any:
    """One of `size` equal parts of a cotangent."""
    return ct if aval_of(ct).dtype == dtypes.float0 else ct / size


def _unbatched(aval: ShapedArray) -> ShapedArray:
    return aval.row()


custom_vjp_p = Primitive(
    "custom_vjp_call",
    multiple_results=True,
    higher_order=True,
    abstract=_abstract,
    evaluate=_evaluate,
    jvp=_custom_vjp_jvp,
    batch=batch_vjp,
    partial_eval=_run_unknown,
    loops=Region("call"),
    effects=_effects_of_rules,
    stage=stage_call(lambda: custom_vjp_p),
)


# ------------------------------------------------------------------ the linear part of a custom_vjp
# function
def _lin_run(*args: Any, bwd: Callable, **params: Any) -> list[Any]:
    forward = getattr(bwd, "forward", None)  # what runs it, of operations that know both ways
    return _lin_refuse(**params) if forward is None else forward(*args)


def _lin_jvp(primals: tuple, tangents: tuple, *, num_res: int, bwd: Callable, **params: Any) -> Any:
    if getattr(bwd, "forward", None) is None:
        return _lin_refuse(**params)
    return jvp_call(bwd.forward, primals, tangents)[:2]  # type: ignore[attr-defined]


def _lin_refuse(*_: Any, name: str, **__: Any) -> Any:
    raise TypeError(
        f"can't apply forward-mode autodiff (jvp) to a custom_vjp function: {name} has a rule for "
        "its reverse derivative only. Use grad, vjp or jacrev, or give it a custom_jvp rule."
    )


def _lin_transpose(
    cts: list,
    *args: Any,
    num_res: int,
    bwd: Callable,
    name: str,
    out_avals: tuple,
    perturbed: tuple,
    in_avals: tuple,
    symbolic_zeros: bool,
) -> list:
    residuals = args[:num_res]
    given = [ct if symbolic_zeros and type(ct) is Zero else instantiate(ct) for ct in cts]
    given = [
        zeros(a) if a.dtype == dtypes.float0 else ct for ct, a in zip(given, out_avals, strict=True)
    ]
    results = bwd(residuals, given)
    in_tree = getattr(bwd, "in_tree", None)
    checked = [
        _match_cotangent(name, (in_tree, i), a, ct)
        for i, (a, ct) in enumerate(zip(in_avals, results, strict=True))
    ]
    return [None] * num_res + [ct for ct, p in zip(checked, perturbed, strict=True) if p]


def _at(leaf: tuple[Any, int]) -> str:
    """Where a leaf of the arguments is, given their structure (None: not known) and its number."""
    in_tree, i = leaf
    return f"[{i}]" if in_tree is None else tree_paths.keystr(tree_paths.leaf_path(in_tree, i))


def _match_cotangent(name: str, leaf: tuple[Any, int], want: ShapedArray, ct: Any) -> Any:
    if ct is None or want.dtype == dtypes.float0:
        return None
    if type(ct) is Zero:
        if ct.aval.shape != want.shape:
            raise ValueError(
                f"Custom VJP bwd rule of {name} must produce an output with the same type as the "
                f"args tuple of the primal function, but at output{_at(leaf)} the bwd rule "
                f"produced a SymbolicZero of type {ct.aval.str_short()} corresponding to an input "
                f"of type {want.str_short()}. Consider just returning a None here instead."
            )
        return None
    if config.disable_bwd_checks.value:
        return ct
    have = aval_of(ct)
    # Of a complex number the real part moves a real argument; JAX hands other dtypes on.
    kinds = (dtypes.is_inexact, dtypes.is_integer, dtypes.is_bool)
    numbers = dtypes.is_inexact(want.dtype) and any([kind(have.dtype) for kind in kinds])
    fits = have.dtype == want.dtype or have.weak_type or numbers
    if have.shape != want.shape or not fits:
        raise ValueError(
            f"Custom VJP bwd rule of {name} must produce an output with the same type as the args "
            f"tuple of the primal function, but at output{_at(leaf)} the bwd rule produced an "
            f"output of type {have.str_short()} corresponding to an input of type "
            f"{want.str_short()}{', so the shapes do not match' * (have.shape != want.shape)}. "
            "Return None where no gradient flows."
        )
    if have.placed != want.placed and have.placed is not None:
        raise ValueError(
            f"Custom VJP bwd rule of {name} must produce an output with the same type as the args "
            f"tuple of the primal function: at output{_at(leaf)} expected {want.str_short()}, "
            f"got {have.str_short()}. Lay it out otherwise with numjet.reshard."
        )
    return convert(ct, want.dtype, have.weak_type) if have.dtype != want.dtype else ct


def _lin_batch(
    axis: Axis,
    args: tuple,
    dims: tuple,
    *,
    num_res: int,
    bwd: Callable,
    out_avals: tuple,
    perturbed: tuple,
    in_avals: tuple,
    **params: Any,
) -> tuple:
    res_dims = dims[:num_res]
    given = iter(dims[num_res:])
    in_dims = [next(given) if p else None for p in perturbed]

    out_avals = tuple([a.update(shape=(axis.size, *a.shape)) for a in out_avals])
    in_avals = tuple(
        [
            a if d is None else a.update(shape=(*a.shape[:d], axis.size, *a.shape[d:]))
            for a, d in zip(in_avals, in_dims, strict=True)
        ]
    )
    outs = custom_lin_p.bind(
        *args,
        num_res=num_res,
        bwd=_batched_bwd(bwd, axis.trace, res_dims, in_dims),
        out_avals=out_avals,
        perturbed=perturbed,
        in_avals=in_avals,
        **params,
    )
    return outs, [0] * len(outs)


custom_lin_p = Primitive(
    "custom_lin",
    multiple_results=True,
    higher_order=True,
    linear=True,
    abstract=lambda *avals, out_avals, **_: list(out_avals),
    evaluate=_lin_run,
    jvp=_lin_jvp,
    transpose=_lin_transpose,
    batch=_lin_batch,
    loops=Expand(_lin_run),
)
RUN_ON_ZEROS.add(custom_lin_p)
