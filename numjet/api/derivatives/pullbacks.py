"""Reverse mode as functions of cotangents: `vjp` and its pullbacks, `linear_transpose`.

A pullback keeps what linearizing recorded and transposes it at each call. For
`api.derivatives.autodiff` and `api.derivatives.jacobians`, which pull back flat cotangents
(`pull`), and for programs. What would break it: a pullback whose pytree leaves out a residual,
since compiled functions return and take it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.api.compiled.jit import JitFunction
from numjet.api.derivatives import value_tangents
from numjet.api.derivatives.gradient_places import DontWant, NotNeeded, placed
from numjet.api.flat import Flat, RefGiven, array_leaves, check_callable, leaf_name, name_of
from numjet.api.maps.shared_gradients import sharing, sharing_of
from numjet.base import tree
from numjet.base.tracebacks import boundary
from numjet.core import dtypes
from numjet.core.array import Array, as_array
from numjet.core.avals import Placed, ShapedArray
from numjet.core.given import Noted, Seen, as_given, with_dtypes
from numjet.core.jaxpr import ClosedJaxpr, Var
from numjet.core.primitive import Linear, Zero
from numjet.core.sharded import ShardedArray
from numjet.core.structural import convert, instantiate, placed_like
from numjet.core.trace import aval_of, current_trace
from numjet.core.typed_numbers import no_tangents
from numjet.transforms.eager import linearize as linearize_flat
from numjet.transforms.linearize import Linearized, live_tape, of_residuals, tape_to_jaxpr
from numjet.transforms.transpose import backward_pass
from numjet.transforms.walks import transpose_tape


class VJP:
    """The pullback of a function at a point: maps cotangents of its outputs to cotangents of its
    arguments. A pytree of its residuals, so that jit and loops take and return it; `parts` is its
    static data.

    `record` is what linearizing recorded, or None for one that was put together from residuals:
    then `jaxpr` maps `residuals` and tangents to output tangents.
    """

    __slots__ = (
        "in_tree", "in_avals", "out_tree", "out_avals", "record", "jaxpr", "residuals", "parts",
        "sharing", "name", "_argument_ids", "_args_res", "__weakref__",
    )  # fmt: skip

    def __init__(self, flat: Flat, in_tree: Any, result: Any, leaves: list) -> None:
        self.in_tree, self.in_avals = in_tree, [x.aval for x in leaves]
        self.out_tree, self.name = flat.out_tree, name_of(flat.fun)
        self.out_avals = [aval_of(x) for x in result.outs[: flat.n_out]]
        self.record = result
        self.residuals: list[Any] = []
        self.jaxpr: Any = None
        self.parts: Any = None
        # No references to the arguments: those that are no residuals may go. The others live as
        # long as the tape, so that their ids are theirs.
        self._argument_ids = [id(x) for x in leaves]
        self._args_res: list | None = None
        self.sharing = sharing(leaves, result.outs[: flat.n_out], result.tape)
        # What no output depends on is not kept while the pullback waits.
        result.tape = live_tape(result.tape, result.out_tangents)

    @boundary
    def __call__(self, out_ct: Any, /, *more: Any) -> tuple:
        if more:
            raise TypeError(
                "The function returned by `jax.vjp` applied to "
                f"{getattr(self, 'name', 'a function')} was called with {1 + len(more)} arguments. "
                "It takes one, of the structure that the function's result has: a tuple of "
                "cotangents, pullback((a, b)), where it returned a tuple."
            )
        return value_tangents.values(self.in_tree, self._gradients(out_ct), True)

    def __repr__(self) -> str:
        parts = _parts_of(self)
        return (
            f"VJP(fun={parts}, in_tree={self.in_tree}, out_tree={self.out_tree}, "
            f"args_res={self._arguments()}, opaque_residuals={self.opaque_residuals})"
        )

    def _arguments(self) -> list:
        """`args_res`, where nobody may put others yet."""
        if self._args_res is not None:
            return self._args_res
        places = _parts_of(self).from_arguments
        leaves = [NotNeeded() if k is None else self.residuals[k] for k in places]
        return list(tree.tree_unflatten(self.in_tree, leaves))

    @property
    def args_res(self) -> list:
        """The arguments that are kept, in trees like theirs, with `NotNeeded()` for the others.
        What is put in the place of one is used from then on.

        >>> import numjet as nj
        >>> _, pullback = nj.vjp(lambda x, y: x * y + y, 3.0, 4.0)
        >>> pullback.args_res[0] = 5.0  # instead of 3.0
        >>> print(*pullback(1.0))
        4.0 6.0
        """
        if self._args_res is None:
            self._args_res = self._arguments()
            self.record, self.jaxpr = None, _parts_of(self).jaxpr
        return self._args_res

    @args_res.setter
    def args_res(self, value: Any) -> None:
        self._args_res, self.record, self.jaxpr = value, None, _parts_of(self).jaxpr

    @property
    def opaque_residuals(self) -> list:
        """What is kept beside arguments.

        >>> import numjet as nj, numjet.numpy as jnp
        >>> nj.vjp(jnp.sin, jnp.zeros(2))[1].opaque_residuals
        [Array([1., 1.], dtype=float32)]
        """
        parts = _parts_of(self)
        return [x for k, x in enumerate(self.residuals) if k not in parts.from_arguments]

    def _kept(self) -> list:
        """The residuals, with what stands in the places of arguments now."""
        if self._args_res is None:
            return self.residuals
        held = tree.tree_leaves(self._args_res, is_leaf=lambda x: type(x) is NotNeeded)
        if len(held) != len(self.in_avals):
            raise ValueError(
                f"vjp: args_res has {len(held)} leaves, but the function was given "
                f"{len(self.in_avals)}. Put a value for each argument, or NotNeeded()."
            )
        kept = list(self.residuals)
        for i, (k, x) in enumerate(zip(self.parts.from_arguments, held, strict=True)):
            if k is None or x is self.residuals[k]:
                continue
            if type(x) is NotNeeded:
                raise ValueError(
                    "vjp: args_res has NotNeeded() in the place of an argument that the pullback "
                    "reads. Put its value there before calling it."
                )
            have, want = as_array(x), self.in_avals[i]
            if have.shape != want.shape:
                raise ValueError(
                    f"vjp: args_res{leaf_name(self.in_tree, i)} must be an array of type "
                    f"{want.str_short()}, which the backward pass needs, got {x!r}."
                )
            kept[k] = convert(have, want.dtype, want.weak_type)
        return kept

    def with_refs(self, *maybe_ct_refs: Any) -> Callable[[Any], tuple]:
        """The pullback that leaves gradients in places, one for each array of the arguments: adds
        them to mutable references, gives them for `ad.GradValue()`, and leaves out those of
        `ad.DontWant()`. Its results have `ad.GradRef()` and `ad.DidntWant()` for the others.

        >>> import numjet as nj, numjet.numpy as jnp
        >>> total = nj.new_ref(jnp.zeros(2))
        >>> _, pullback = nj.vjp(lambda x: (x**2).sum(), jnp.array([1.0, 2.0]))
        >>> pullback.with_refs(total)(1.0), total[...]
        ((GradRef(),), Array([2., 4.], dtype=float32))
        """
        places = tree.tree_leaves(maybe_ct_refs, is_leaf=lambda x: x is None)
        wanted = [not isinstance(place, DontWant) for place in places]
        return lambda cotangents: placed(
            self.in_tree, self._gradients(cotangents, wanted), maybe_ct_refs
        )

    def _gradients(self, cotangents: Any, wanted: list[bool] | None = None) -> list:
        noted: Noted = {}
        cotangents = value_tangents.flat_form(self.out_tree, cotangents)
        leaves, treedef = array_leaves("vjp", cotangents, "cotangent", noted)
        if treedef != self.out_tree:
            raise ValueError(
                "unexpected tree structure. The argument to a VJP function returned by `jax.vjp` "
                "must match the pytree structure of the differentiated function's output, "
                f"{self.out_tree}, got {treedef}. "
                + tree.structure_difference("the output", self.out_tree, "the cotangent", treedef)
            )
        cts = [
            _check_cotangent(self.out_tree, i, aval, ct)
            for i, (aval, ct) in enumerate(zip(self.out_avals, leaves, strict=True))
        ]
        if not noted:
            return self.pull(cts, wanted)
        with Seen(noted):
            found = self.pull(cts, wanted)
        return list(as_given(found, noted))

    def pull(self, cts: Sequence[Any], wanted: list[bool] | None = None) -> list[Any]:
        """Flat cotangents of the arguments, dense. Those that are not `wanted` may be anything."""
        if Placed.active:
            cts = [
                placed_like(ct, a) if isinstance(ct, Array) else ct
                for ct, a in zip(cts, self.out_avals, strict=True)
            ]
        if self.sharing is not None:
            cts = self.sharing.seeds(cts)
        record = self.record
        if record is not None:
            out_tangents = record.out_tangents[: len(self.out_avals)]
            tape = record.tape
            if wanted is not None and not all(wanted) and len(wanted) == len(record.in_vars):
                tape = _reached(tape, [v for v, w in zip(record.in_vars, wanted, strict=True) if w])
            found = transpose_tape(tape, record.in_vars, out_tangents, cts)
        else:
            args = [*self._kept(), *[Linear(a.tangent()) for a in self.in_avals]]
            given = [ct for ct, out in zip(cts, self.parts.given, strict=True) if out]
            found = backward_pass(self.jaxpr, args, given)[len(self.residuals) :]
        if self.sharing is not None:
            found = self.sharing.gradients(found)
        asked = [True] * len(found) if wanted is None else wanted
        return [
            _dense(aval, ct) if w else ct
            for aval, ct, w in zip(self.in_avals, found, asked, strict=True)
        ]


class _PulledBack:
    """The static part of a pullback as a pytree; compared by identity. `given` says which outputs
    have a tangent in the jaxpr, `from_arguments` which residual each argument is, or None."""

    __slots__ = (
        "in_tree", "in_avals", "out_tree", "out_avals", "jaxpr", "given", "sharing",
        "from_arguments",
    )  # fmt: skip

    def __init__(self, pullback: VJP, jaxpr: ClosedJaxpr, given: list[bool]) -> None:
        places = {id(x): k for k, x in enumerate(pullback.residuals)}
        self.from_arguments = [places.get(i) for i in pullback._argument_ids]
        self.in_tree, self.in_avals = pullback.in_tree, pullback.in_avals
        self.out_tree, self.out_avals = pullback.out_tree, pullback.out_avals
        self.jaxpr, self.given, self.sharing = jaxpr, given, pullback.sharing

    def __repr__(self) -> str:
        return repr(of_residuals(self.jaxpr.jaxpr, len(self.in_avals)))


def _parts_of(pullback: VJP) -> _PulledBack:
    if pullback.parts is None:
        record = pullback.record
        tangents = record.out_tangents[: len(pullback.out_avals)]
        given = [type(t) is not Zero for t in tangents]
        jaxpr, pullback.residuals = tape_to_jaxpr(
            record.tape, record.in_vars, [t for t in tangents if type(t) is not Zero],
            None if current_trace().at_once else pullback._argument_ids,
        )
        pullback.parts = _PulledBack(pullback, ClosedJaxpr(jaxpr, []), given)
    return pullback.parts


def _flatten_pullback(pullback: VJP) -> tuple[list, _PulledBack]:
    parts = _parts_of(pullback)
    return pullback._kept(), parts


def _reached(tape: Sequence[Any], variables: Sequence[Any]) -> list:
    """The equations of `tape` whose results depend on `variables`."""
    live, kept = set(variables), []
    for entry in tape:
        if not live.isdisjoint([x for x in entry.invars if type(x) is Var]):
            live.update(entry.outvars)
            kept.append(entry)
    return kept


def _unflatten_pullback(parts: _PulledBack, residuals: Sequence[Any]) -> VJP:
    pullback = object.__new__(VJP)
    pullback.in_tree, pullback.in_avals = parts.in_tree, parts.in_avals
    pullback.out_tree, pullback.out_avals = parts.out_tree, parts.out_avals
    pullback.record, pullback.jaxpr, pullback.parts = None, parts.jaxpr, parts
    pullback.sharing = parts.sharing
    pullback.residuals = list(residuals)
    pullback._argument_ids, pullback._args_res = [], None
    return pullback


tree.register_pytree_node(VJP, _flatten_pullback, _unflatten_pullback)


def pull(result: Linearized, leaves: Sequence[Any], n_out: int, cts: Sequence[Any]) -> list[Any]:
    """Cotangents of `leaves`, dense, from those of the first `n_out` outputs."""
    shared = sharing(leaves, result.outs[:n_out], result.tape)
    if shared is not None:
        cts = shared.seeds(cts)
    found = transpose_tape(result.tape, result.in_vars, result.out_tangents[:n_out], cts)
    if shared is not None:
        found = shared.gradients(found)
    return [
        ct if ct.aval is x.aval and type(ct) is not Zero else _dense(x.aval, ct)
        for x, ct in zip(leaves, found, strict=True)
    ]


def _dense(aval: ShapedArray, ct: Any) -> Any:
    """A cotangent as an array, weakly typed where what made it is; float0 as a NumPy array."""
    if ct.aval.dtype == dtypes.float0:
        return no_tangents(ct.aval.shape)
    if type(ct) is Zero:
        zeros = convert(instantiate(ct), aval.dtype, aval.weak_type)
        return zeros if aval.placed is None else placed_like(zeros, aval.cotangent())
    return ct if ct.aval.dtype == aval.dtype else convert(ct, aval.dtype, aval.weak_type)


def _check_cotangent(out_tree: Any, i: int, aval: ShapedArray, ct: Any) -> Any:
    want, got = aval.tangent(), ct.aval
    if want.shape != got.shape or want.dtype not in (got.dtype, dtypes.float0):
        raise ValueError(
            "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got "
            f"{got.str_short()}, but expected {want.str_short()} because the corresponding output "
            f"of the differentiated function had JAX type {aval.str_short()} "
            f"(cotangent{leaf_name(out_tree, i)})."
        )
    wanted = None if want.placed is None else want.cotangent().placed
    unlike = wanted is not None and (
        any(wanted.sums) or type(ct) is ShardedArray  # which lies over a mesh, cut nowhere
        if got.placed is None
        else got.placed.spec != wanted.spec
    )
    if unlike:
        raise ValueError(
            "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got "
            f"{got.str_short()}, but expected {want.cotangent().str_short()} because the "
            f"corresponding output of the differentiated function had JAX type {aval.str_short()} "
            f"(cotangent{leaf_name(out_tree, i)}). Lay it out with numjet.reshard."
        )
    return Zero(want) if want.dtype == dtypes.float0 else ct


def linearize_seen(
    flat: Flat, leaves: Sequence[Any], noted: Noted, dtyped: bool = True
) -> Linearized:
    """`linearize_flat`, in which derivative rules see what the leaves were made of; with its dtype
    where `dtyped`."""
    if not noted:
        return linearize_flat(flat, leaves)
    if dtyped:
        with_dtypes(noted)
    flat.noted = noted
    with Seen(noted):
        return linearize_flat(flat, leaves)


@boundary
def vjp(fun: Callable, *primals: Any, has_aux: bool = False, reduce_axes: Sequence = ()) -> Any:
    """The value of `fun(*primals)` and the function that pulls a cotangent of it back (reverse
    mode).

    primals: the arguments, pytrees of arrays. has_aux: `fun` returns (out, aux). Result: (out,
    pullback), with has_aux (out, pullback, aux). pullback takes one value of the structure, shapes
    and dtypes of `out` and returns a tuple with one cotangent for each primal (float0 for
    integers); it is a pytree, so that compiled functions may return it. reduce_axes has no effect.
    `pullback` raises ValueError for a cotangent of another structure or shape.

    >>> import numjet as nj
    >>> y, pullback = nj.vjp(lambda x, y: x * y, 3.0, 4.0)
    >>> print(y, *pullback(1.0))
    12.0 4.0 3.0
    """
    if reduce_axes:
        raise NotImplementedError(
            "vjp: reduce_axes is not supported. Sum over the axis with lax.psum inside the "
            "function."
        )
    check_callable("vjp", fun)
    noted: Noted = {}
    try:
        leaves, in_tree = array_leaves("vjp", primals, noted=noted)
    except RefGiven:
        arguments = importlib.import_module("numjet.api.derivatives.ref_arguments")
        return arguments.vjp(vjp, fun, primals, has_aux)
    flat = Flat("vjp", fun, in_tree, has_aux)
    result = linearize_seen(flat, leaves, noted)
    pullback = VJP(flat, in_tree, result, leaves)
    values = as_given(result.outs, noted)
    value = flat.unflatten(values[: flat.n_out])
    return (
        (value, pullback, flat.unflatten_aux(values[flat.n_out :]))
        if has_aux
        else (value, pullback)
    )


def _check_kinds(closed: ClosedJaxpr) -> None:
    """Raise TypeError unless all of the dtypes are inexact, or all are integers."""
    kinds = [[a.dtype for a in avals] for avals in (closed.in_avals, closed.out_avals)]
    inexact = [[dtypes.issubdtype(d, np.inexact) for d in ds] for ds in kinds]
    integers = [[dtypes.issubdtype(d, np.integer) for d in ds] for ds in kinds]
    if not any([all([*ins, *outs]) for ins, outs in (inexact, integers)]):
        raise TypeError(
            "linear_transpose only supports [float or complex] -> [float or complex], and integer "
            f"-> integer functions, but got {kinds[0]} -> {kinds[1]}."
        )


@boundary
def linear_transpose(fun: Callable, *primals: Any, reduce_axes: Sequence = ()) -> Callable:
    """The transpose of the linear function `fun`: maps a cotangent of its result to those of its
    arguments.

    primals: where `fun` is linear it does not matter at which point; they give structure, shapes
    and dtypes only (arrays or ShapeDtypeStructs). reduce_axes has no effect. The returned function
    takes one cotangent and gives a tuple with one for each primal. Complex arguments are
    transposed, not conjugated. Raises NotImplementedError where an operation is not linear in the
    argument, TypeError where integers become floats or the reverse.

    >>> import numjet as nj
    >>> print(*nj.linear_transpose(lambda x: 3.0 * x, 1.0)(2.0))
    6.0
    """
    if reduce_axes:
        raise NotImplementedError("linear_transpose: reduce_axes is not supported.")
    traced = JitFunction(fun, (), (), (), ()).trace(*primals)
    in_tree = tree.tree_structure(tuple(primals))
    closed: ClosedJaxpr = traced.program
    _check_kinds(closed)
    out_tree, shared = traced.out_tree, sharing_of(closed, tree.tree_leaves(primals))
    handed_on = {*closed.jaxpr.outvars}.difference(*[eqn.invars for eqn in closed.jaxpr.eqns])

    def transposed_fun(consts: Sequence[Any], cotangent: Any) -> tuple:
        noted: Noted = {}
        leaves, treedef = array_leaves("linear_transpose", cotangent, "cotangent", noted)
        if treedef != out_tree:
            raise TypeError(
                "linear_transpose: cotangent tree does not match function output: it must have "
                f"the structure {out_tree}, got {treedef}. "
                + tree.structure_difference("the output", out_tree, "the cotangent", treedef)
            )
        cts = []
        for i, (want, ct) in enumerate(zip(closed.out_avals, leaves, strict=True)):
            own, there = ct.aval.placed, want.cotangent().placed
            apart = own is not None and own.spec != getattr(there, "spec", own.spec)
            if want.shape != ct.aval.shape or want.dtype != ct.aval.dtype or apart:
                raise TypeError(
                    "linear_transpose: cotangent type does not match function output: the "
                    f"cotangent{leaf_name(out_tree, i)} must be {want.str_short()}, got "
                    f"{ct.aval.str_short()}."
                )
            cts.append(convert(ct, want.dtype, ct.aval.weak_type))
        if shared is not None:
            cts = shared.seeds(cts)
        held = ClosedJaxpr(closed.jaxpr, consts)
        found = backward_pass(held, [Linear(a) for a in closed.in_avals], cts)
        if shared is not None:
            found = shared.gradients(found)
        found = [instantiate(ct) for ct in found]
        # Where the function hands an argument on, the cotangent is what was given, as in JAX.
        found = [
            as_given([ct], noted)[0] if v in handed_on else ct
            for v, ct in zip(closed.jaxpr.invars, found, strict=True)
        ]
        return tree.tree_unflatten(in_tree, found)

    return tree.Partial(transposed_fun, tuple(closed.consts))
