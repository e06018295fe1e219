"""`shard_map`: a function of one device's part, run for every device of a mesh.

The function is mapped over an axis for each axis of the mesh, which collectives see by name:
arguments are cut into blocks, and the blocks of the results are put together. That is one program
on whole arrays, so that every transformation applies; over several processes the partitioner finds
the collectives in it again.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from numjet.api.flat import array_leaves, check_callable, name_of
from numjet.api.maps.shard_map_arguments import array_specs, of_values, values_of, without_objects
from numjet.api.maps.shard_map_blocks import (
    block_shape,
    check_rank,
    cut_into_blocks,
    joined_blocks,
    kept_apart,
    laid_out,
    moved,
    over_mapped,
    pinned,
    sums_over,
)
from numjet.api.maps.shard_map_equation import equation, executed, shown
from numjet.api.maps.shard_map_values import of_members
from numjet.api.placement.mesh import (
    AbstractMesh,
    AxisType,
    Mesh,
    check_devices_of,
    context_mesh,
    get_abstract_mesh,
    use_abstract_mesh,
)
from numjet.api.placement.reshard import typed_mesh
from numjet.api.placement.sharding import NamedSharding, PartitionSpec, axes_of, without_ones
from numjet.base import config, tree
from numjet.base.record import record
from numjet.base.tracebacks import unnamed_boundary
from numjet.core import hi, hooks
from numjet.core.array import ArrayImpl, as_array
from numjet.core.avals import ShapedArray, any_placed
from numjet.core.jaxpr import Jaxpr, eval_jaxpr
from numjet.core.refs import Ref
from numjet.core.sharded import ShardedArray
from numjet.core.shared import Flow, Shared
from numjet.core.structural import given_out, moveaxis
from numjet.core.trace import EVAL, Tracer, current_trace
from numjet.ops.constraint import pending_axes, settled, sum_cast_p
from numjet.transforms.batch import Axis, BatchTrace, batch_call, extend_axis_env
from numjet.transforms.stage import StageTrace, stage
from numjet.transforms.varying import along, results, varies

# The mesh of the shard_map that runs, and the axes that it and those around it map over.
_around: ContextVar[tuple[Any, frozenset]] = ContextVar(
    "numjet.shard_map", default=(None, frozenset())
)
hooks.mapped_mesh = lambda: _around.get()[0]
hooks.member_text = lambda tracer: of_members(tracer, _around.get()[0])


class _InferFromArgs:
    """Stands for specs that the arguments tell."""

    def __repr__(self) -> str:
        return "Infer"


Infer = _InferFromArgs()


def shard_map(
    f: Callable | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = Infer,
    mesh: Mesh | None = None,
    axis_names: Any = frozenset(),
    check_vma: bool = True,
) -> Callable:
    """`f` applied to each device's block of the arguments; collectives join the devices.

    in_specs, out_specs: pytree prefixes of PartitionSpecs that say which dimensions are cut over
    which axes of `mesh` (or of the current mesh, or of the shard_map around this one); None among
    in_specs for what is cut over none. Of what is unreduced over an axis `f` gets, and gives, parts
    of the sum. Without in_specs the arguments' own layouts serve, over Explicit axes. axis_names:
    the axes that `f` is mapped over, all by default; over the others its arguments are whole.
    check_vma: test that an output that is not cut over an axis does not vary along it, and in
    gradients taken inside of `f` count what does not vary once; without the test the first device's
    value is taken, and each device's value is one of its own. Without `f` the result is a
    decorator. Differentiable.
    Raises ValueError when a dimension is no multiple of the parts it is cut into, for an axis that
    the mesh has not, where there is no mesh or another one is the current one, and, where all axes
    are mapped and of type Explicit, for an argument whose type says that it lies otherwise.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> mesh, spec = nj.make_mesh((1,), ("x",), nj.sharding.AxisType.Auto), nj.P("x")
    >>> f = nj.shard_map(lambda x: nj.lax.psum(x, "x"), mesh=mesh, in_specs=spec, out_specs=nj.P())
    >>> f(jnp.arange(2.0))
    Array([0., 1.], dtype=float32)
    """
    if f is None:
        return functools.partial(
            shard_map, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names,
            check_vma=check_vma,
        )  # fmt: skip
    check_callable("shard_map", f)
    if not isinstance(mesh, Mesh | AbstractMesh | None):
        raise TypeError(
            "shard_map requires a `Mesh` or an `AbstractMesh` instance for its `mesh` argument, "
            f"but got {mesh} of type {type(mesh)}."
        )
    for what, given in (("in_specs", in_specs), ("out_specs", out_specs)):
        for spec in () if given is Infer else tree.tree_leaves(given):
            if not isinstance(spec, PartitionSpec | hi.HiPspec):
                raise TypeError(
                    f"shard_map {what} argument must be a pytree of `PartitionSpec` instances, "
                    f"but it holds {spec} of type {type(spec).__name__}."
                )

    return _mapper(f, mesh, in_specs, out_specs, axis_names, check_vma)


def unchecked(
    f: Callable, mesh: Any, in_specs: Any, out_specs: Any, axis_names: Any = frozenset(),
    check_vma: bool = True,
) -> Callable:  # fmt: skip
    """`shard_map` whatever the current mesh is, and however the arguments' types say they lie: of
    functions that are run for a caller's."""
    return _mapper(f, mesh, in_specs, out_specs, axis_names, check_vma, checked=False)


def _mapper(
    f: Callable, mesh: Any, in_specs: Any, out_specs: Any, axis_names: Any, check_vma: bool,
    checked: bool = True,
) -> Callable:  # fmt: skip
    @functools.wraps(f)
    @unnamed_boundary
    def mapped(*args: Any) -> Any:
        where, names = _mapped_axes(mesh, axis_names)
        args = hi.lower(args)
        if in_specs is not Infer and (found := without_objects(f, in_specs, args)) is not None:
            inner, own, arrays = found
            return _mapper(inner, mesh, own, out_specs, axis_names, check_vma, checked)(*arrays)
        if Ref in [*map(type, tree.tree_leaves(args))]:
            values = values_of(args)
            own = (_own_specs(where, names, values) if in_specs is Infer
                   else _specs_of_leaves("in_specs", in_specs, args))  # fmt: skip
            inner, refs = of_values(f, args)
            last = [own[i] for i in refs]
            out, new = _mapper(
                inner, mesh, tuple(own), (out_specs, last), axis_names, check_vma, checked
            )(*values)
            for ref, value in zip(refs.values(), new, strict=True):
                ref.put_back(value)
            return out
        leaves, in_tree = array_leaves("shard_map", args)
        if checked:
            _check_context(mesh, leaves)
        if isinstance(where, AbstractMesh):
            where = _with_devices(where, leaves)
        leaves = [as_array(x) for x in leaves]
        for x in leaves:
            check_devices_of(x, "shard_map", "shard_map's mesh", where)
        specs = (_own_specs(where, names, leaves) if in_specs is Infer
                 else _specs_of_leaves("in_specs", in_specs, args))  # fmt: skip
        _check_names(specs, names, "in_specs")
        if checked:
            _check_sums(where, names, specs)
        if current_trace() is not EVAL:
            _check_mapped_over(specs, "in_specs")
        if checked and where.are_all_axes_explicit and len(names) == len(where.axis_names):
            for i, (spec, x) in enumerate(zip(specs, leaves, strict=True)):
                if not _says(x.aval, spec, where):
                    # What does not fit the shape says that first.
                    block_shape(where, spec, x.aval.shape, f"argument number {i}", name_of(f))
                    raise ValueError(
                        f"in_specs passed to shard_map: {spec} does not match the specs of the "
                        f"input: {x.aval.sharding.spec} for arg: {x.aval}. `in_specs` is an "
                        "optional argument so you can leave it out; else lay the argument out with "
                        "numjet.reshard."
                    )
        out_tree: list = []

        def local(*values: Any) -> list[Any]:
            with _inside(where, names, check_vma):
                out = hi.lower(f(*tree.tree_unflatten(in_tree, values)))
            outs, treedef = array_leaves("shard_map", out, "output")
            out_tree[:] = [(treedef, _specs_of_leaves("out_specs", out_specs, out))]
            return [as_array(x) for x in outs]

        if config.jax_form() and _staged_or_mapped():
            if set(names) == set(where.axis_names) or not where.explicit_axes:
                staged = _Staged(where, names, specs, leaves, name_of(f), check_vma)
                return staged.equation(local, out_tree)
        inner = typed_mesh(where, names, AxisType.Auto)
        manual = _axes_within(where, names)
        if any_placed([x.aval for x in leaves]) or any(s.unreduced or s.reduced for s in specs):
            if len(names) < len(where.axis_names) or not where.are_all_axes_explicit:
                leaves = [moved(names, *pair) for pair in zip(specs, leaves, strict=True)]
            leaves = [over_mapped(inner, *pair) for pair in zip(specs, leaves, strict=True)]
        elif len(names) < len(where.axis_names) and not where.is_multi_process:
            leaves = [
                kept_apart(where, names, spec, x)
                if type(x) is ShardedArray and getattr(x._sharding, "mesh", None) == where else x
                for spec, x in zip(specs, leaves, strict=True)
            ]  # fmt: skip
        blocks, uses = [], []
        with use_abstract_mesh(manual):
            for i, (spec, x) in enumerate(zip(specs, leaves, strict=True)):
                what = f"argument number {i}"
                block, used = cut_into_blocks(inner, names, spec, x, what, name_of(f), where)
                blocks.append(_pending(where, spec.unreduced, block))
                uses.append(used)
        joined = []
        with use_abstract_mesh(manual):
            outs, varying = _run(local, inner, names, blocks, uses, check_vma)
            treedef, wanted = out_tree[0]
            _check_names(wanted, names, "out_specs")
            _check_mapped_over(wanted, "out_specs")
            for i, (spec, x) in enumerate(zip(wanted, outs, strict=True)):
                along = [n for n, flags in zip(names, varying, strict=True) if flags[i]]
                if check_vma:
                    _check_varying(where, spec, along, name_of(f), i)
                _check_pending(spec, pending_axes(x) & {*names}, name_of(f), i)
                x = settled(x, names)
                over = x.aval.placed  # by axes that are not mapped here
                joined.append((joined_blocks(where, spec, x, along), over, len(along)))
        return tree.tree_unflatten(treedef, given_out([
            laid_out(where, names, spec, *whole)
            for spec, whole in zip(wanted, joined, strict=True)
        ]))  # fmt: skip

    return mapped


def _axes_within(where: Any, names: Sequence[Any]) -> AbstractMesh:
    """The axes that a function mapped over these sees: they are Manual, with those of the
    functions around."""
    return typed_mesh(where.abstract_mesh, [*_around.get()[1], *names], AxisType.Manual)


def _staged_or_mapped() -> bool:
    """Whether a function is being staged, here or around maps."""
    trace: Any = current_trace()
    while type(trace) is BatchTrace:
        trace = trace.parent
    return type(trace) is StageTrace


@contextlib.contextmanager
def _inside(where: Any, names: Sequence[Any], check_vma: bool) -> Iterator[None]:
    """What runs is a function of one device's part."""
    before = _around.get()[1]
    token = _around.set((where, before | set(names)))
    mapped = Shared.mapped.set(before | set(names))
    others = tuple([pair for pair in Shared.axes.get() if pair[0] not in names])
    mine = tuple([(n, where.shape[n]) for n in names]) if check_vma else ()
    if without_ones.value:
        mine = tuple([(n, size) for n, size in mine if size > 1])
    tested = Shared.axes.set(others + mine)
    try:
        yield
    finally:
        Shared.axes.reset(tested)
        Shared.mapped.reset(mapped)
        _around.reset(token)


@record(frozen=True)
class _Staged:
    """A shard_map as one equation: its mesh, its axes, the specs of its arguments, these, the
    function's name, and whether it tests what varies."""

    where: Any
    names: list
    specs: list[PartitionSpec]
    leaves: list
    name: str
    check_vma: bool

    def equation(self, local: Callable, out_tree: list) -> Any:
        """Trace the function of one device's part, and write the equation down."""
        where, names = self.where, self.names
        avals = []
        for i, (spec, x) in enumerate(zip(self.specs, self.leaves, strict=True)):
            block = block_shape(where, spec, x.aval.shape, f"argument number {i}", self.name)
            aval = ShapedArray(block, x.aval.dtype, x.aval.weak_type)
            avals.append(aval.over(_of_sum(where, spec.unreduced)) if spec.unreduced else aval)
        flows = along(self.leaves)
        if self.check_vma:
            named = [_named(spec) for spec in self.specs]
            flows.update({n: Flow([n in own for own in named]) for n in names})
        with contextlib.ExitStack() as stack:
            manual = _axes_within(where, names)
            stack.enter_context(use_abstract_mesh(manual))
            for n in names:
                stack.enter_context(extend_axis_env(Axis(where.shape[n], n, n)))
            jaxpr, consts = stage(local, avals, self.name, flows=flows)
            ((treedef, wanted),) = out_tree
            _check_names(wanted, names, "out_specs")
            stack.enter_context(_inside(where, names, self.check_vma))
            known = {n: results(flow, n, jaxpr, consts) for n, flow in flows.items()}
            for i, spec in enumerate(wanted):
                along_ = [n for n in names if self.check_vma and known[n][i]]
                if self.check_vma:
                    _check_varying(where, spec, along_, self.name, i)
                check_rank(spec, len(jaxpr.outvars[i].aval.shape))
            body = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
            given = [
                *[frozenset([n for n in flows if varies(c, n)]) for c in consts],
                *[frozenset([n for n, flow in flows.items() if flow.given[i]])
                  for i in range(len(avals))],
            ]  # fmt: skip
            told = shown(body, given)
        outs = shard_map_p.bind(
            *consts, *self.leaves, jaxpr=told, mesh=where, check_vma=self.check_vma,
            in_specs=(*[PartitionSpec()] * len(consts), *self.specs), out_specs=tuple(wanted),
            newly_manual_axes=frozenset(names),
        )  # fmt: skip
        return tree.tree_unflatten(treedef, outs)


def _expanded(
    *arrays: Any, jaxpr: Jaxpr, mesh: Any, in_specs: tuple, out_specs: tuple, check_vma: bool,
    newly_manual_axes: frozenset,
) -> list:  # fmt: skip
    """The results of an equation, by operations on whole arrays."""
    run = lambda *values: tuple(eval_jaxpr(executed(jaxpr), (), *values))  # noqa: E731
    with config.jax_equations(False):
        return list(unchecked(
            run, mesh, in_specs, out_specs, newly_manual_axes, check_vma
        )(*arrays))  # fmt: skip


def _whole_avals(*, jaxpr: Jaxpr, mesh: Any, out_specs: tuple, **_: Any) -> list[ShapedArray]:
    """The types of an equation's results."""
    found = []
    for x, spec in zip(executed(jaxpr).outvars, out_specs, strict=True):
        counts = [math.prod([mesh.shape[a] for a in axes_of(entry)]) for entry in spec]
        counts += [1] * (x.aval.ndim - len(counts))
        shape = tuple([n * k for n, k in zip(x.aval.shape, counts, strict=True)])
        whole = ShapedArray(shape, x.aval.dtype, x.aval.weak_type)
        found.append(whole.over(NamedSharding(mesh, spec)) if mesh.explicit_axes else whole)
    return found


def _again(local: Callable, out_tree: list, *staged: Any) -> list:
    return _Staged(*staged).equation(local, out_tree)


shard_map_p = equation(_expanded, _whole_avals, _again)


def _written_out(trace: Any, args: Sequence[Any], params: dict) -> Any:
    if config.jax_form():
        return trace.record(shard_map_p, args, params)
    return _expanded(*args, **params)


shard_map_p.stage = _written_out


def _mapped_axes(mesh: Any, axis_names: Any) -> tuple[Any, list]:
    """The mesh, and the names of its axes that are mapped here, in its order."""
    if not isinstance(axis_names, set | frozenset):
        raise TypeError(
            "`axis_names` argument of shard_map should be of type `frozenset` or `set`. Got type: "
            f"{type(axis_names)}"
        )
    around, taken = _around.get()
    where = mesh if mesh is not None else around if around is not None else context_mesh()
    if isinstance(where, Mesh) and where.empty:
        if mesh is not None:
            raise ValueError(f"shard_map requires a non-empty mesh. Got {where}.")
        raise ValueError(
            "The context mesh cannot be empty. Pass mesh=... to shard_map, or use "
            "`numjet.set_mesh(mesh)` to enter into a mesh context."
        )
    unknown = set(axis_names) - set(where.axis_names)
    if unknown:
        raise ValueError(
            f"shard_map requires axis_names={set(axis_names)} to be a subset of the mesh's axes "
            f"{where.axis_names}."
        )
    again = set(axis_names) & taken
    if again:
        raise ValueError(
            f"shard_map: the axes {sorted(map(str, again))} are mapped by a shard_map around this "
            "one already. Name others in axis_names."
        )
    return where, [
        n for n in where.axis_names if (n in axis_names if axis_names else n not in taken)
    ]


def _with_devices(mesh: AbstractMesh, leaves: Sequence[Any]) -> Any:
    """The mesh of devices that the arguments lie over, for the axes alone of it.

    Raises ValueError for concrete arguments of which none lies over a mesh, or one does over
    another mesh.
    """
    arrays = [x for x in leaves if not isinstance(x, Tracer)]
    if not arrays:
        return mesh
    meshes = [getattr(getattr(x, "sharding", None), "mesh", None) for x in arrays]
    found = [over for over in meshes if isinstance(over, Mesh)]
    for over in found:
        if over.shape_tuple != mesh.shape_tuple:
            raise ValueError(
                f"Mesh shape of the input {over.shape_tuple} does not match the mesh shape passed "
                f"to shard_map {mesh.shape_tuple}. Move the argument to a mesh of that shape."
            )
    if not found:
        raise ValueError(
            "Please pass `jax.Array`s with a `NamedSharding` as input to `shard_map` when passing "
            "`AbstractMesh` to the mesh argument: it has no devices, and the arguments, which are "
            f"of type {', '.join(sorted({type(x).__name__ for x in arrays}))}, lie over no mesh."
        )
    return found[0].update(axis_types=mesh.axis_types)


def _own_specs(mesh: Mesh, names: Sequence[Any], leaves: Sequence[Any]) -> list[PartitionSpec]:
    """The specs that the arguments have over the mapped axes, where the types of these make them
    part of what the arguments are."""
    if not set(names) <= set(mesh.explicit_axes):
        kinds = ", ".join(str(t) for n, t in zip(mesh.axis_names, mesh.axis_types) if n in names)
        raise TypeError(
            "shard_map in_specs argument must be a pytree of `PartitionSpec` instances, but it was "
            f"left out, and the axes {tuple(names)} are of type {kinds}. It may be left out where "
            "all mapped axes are of type Explicit."
        )
    found = []
    for x in leaves:
        entries = () if x.aval.placed is None else x.aval.placed.spec
        own = [[a for a in axes_of(entry) if a in names] for entry in entries]
        sums = sums_over(names, x)
        found.append(PartitionSpec(*[tuple(a) or None for a in own], **sums))
    return found


def _check_context(mesh: Any, leaves: Sequence[Any]) -> None:
    """Raise ValueError where the mesh that is given, or over which the first argument lies that
    lies over one, is another than that of the context."""
    here = get_abstract_mesh()
    if here.empty:
        return
    given = mesh
    if mesh is None or mesh is here:
        own = [getattr(x._sharding, "mesh", None) for x in leaves if isinstance(x, ArrayImpl)]
        given = next((m for m in own if isinstance(m, Mesh)), None)
    if given is not None and given.abstract_mesh != here:
        raise ValueError(
            f"The context mesh {here} should match the mesh passed to shard_map {given}: leave "
            "mesh out, enter that mesh (numjet.set_mesh), or move the arguments to the context's."
        )


def _check_sums(mesh: Any, names: Sequence[Any], specs: Sequence[PartitionSpec]) -> None:
    """Raise where in_specs name pending sums over a mesh whose axes' types do not tell of them."""
    if mesh.are_all_axes_explicit:
        return
    for spec in specs:
        if not spec.unreduced and not spec.reduced:
            continue
        if len(names) < len(mesh.axis_names):
            raise NotImplementedError(
                "unreduced/reduced can only be passed to in_specs when shard_map is in full manual "
                f"mode: got {spec}, of the axes {mesh.axis_names} these alone are mapped: "
                f"{tuple(names)}. Map all of them."
            )
        raise ValueError(
            f"{'unreduced' if spec.unreduced else 'reduced'} in in_specs {spec} can only be used "
            "when the mesh passed to shard_map contains axis names all of type `Explicit`, whose "
            f"types tell of sums that are pending: got {mesh}."
        )


def _check_mapped_over(specs: Sequence[PartitionSpec], what: str) -> None:
    """Raise ValueError where specs name the axes that a `vmap` around lays its examples over."""
    trace: Any = current_trace()
    while trace is not None:
        axis = getattr(trace, "axis", None)
        if axis is not None and axis.spmd is not None and not axis.of_devices:
            if any(not _named(s).isdisjoint(axes_of(axis.spmd)) for s in specs):
                raise ValueError(f"vmap spmd_axis_name cannot appear in shard_map {what}")
        trace = getattr(trace, "parent", None)


def _says(aval: ShapedArray, spec: PartitionSpec, mesh: Any) -> bool:
    """Whether a type says that the array lies over a mesh as a spec does."""
    placed = aval.placed
    if without_ones.value:
        spec = spec.update(partitions=[
            tuple([a for a in axes_of(entry) if mesh.shape[a] > 1]) or None for entry in spec
        ])  # fmt: skip
    if placed is None:
        return not any(spec) and not spec.unreduced and not spec.reduced
    wanted = [*spec, *[None] * (aval.ndim - len(spec))]
    return list(map(axes_of, placed.spec)) == list(map(axes_of, wanted)) and (
        placed.sums == (spec.unreduced, spec.reduced)
    )


def _check_names(specs: Sequence[PartitionSpec], names: Sequence[Any], what: str) -> None:
    for spec in specs:
        for entry in (*spec, tuple(spec.unreduced), tuple(spec.reduced)):
            for name in axes_of(entry):
                if name not in names:
                    raise ValueError(
                        f"shard_map {what} argument must refer to an axis marked as manual "
                        f"({frozenset(names)}), but: {what} refers to {name!r} in {spec}. Check "
                        f"the {what} values passed to shard_map."
                    )


def _run(
    local: Callable, mesh: Mesh, names: Sequence[Any], blocks: list, uses: list, tests: bool
) -> tuple[list, list]:
    """`local` mapped over all axes: the results, with an axis in front for each along which they
    vary, and for each axis which results do. tests: what varies is tested."""
    varying: list[list[bool]] = []
    outs = _run_along(local, mesh, names, blocks, uses, tests, varying)
    return outs, varying[::-1]


def _run_along(
    local: Callable, mesh: Mesh, names: Sequence[Any], values: Sequence[Any], uses: list,
    tests: bool, varying: list[list[bool]],
) -> list:  # fmt: skip
    """`local` mapped over the axes `names`; `varying` gets what varies, of the last axis first."""
    if not names:
        return local(*values)
    name, *inner = names
    pin = functools.partial(pinned, mesh, [name]) if mesh.is_multi_process else None
    axis = Axis(mesh.shape[name], name, name, pin, tested=tests)
    dims = [0 if name in used else None for used in uses]
    outs, places = batch_call(
        lambda *xs: _run_along(local, mesh, inner, xs, uses, tests, varying), axis, values, dims
    )
    varying.append([d is not None for d in places])
    return [
        x if d is None or d == 0 else moveaxis(x, d, 0) for x, d in zip(outs, places, strict=True)
    ]


def _named(spec: PartitionSpec) -> set:
    """The axes along which a value of that spec may vary."""
    return {a for entry in spec for a in axes_of(entry)} | spec.unreduced


def _check_varying(
    mesh: Mesh, spec: PartitionSpec, along: Sequence[Any], name: str, i: int
) -> None:
    named = _named(spec)
    alike = [n for n in mesh.axis_names if n in spec.unreduced and n not in along]
    if alike:
        raise ValueError(
            f"shard_map applied to the function {name!r} was given out_specs {spec} for output "
            f"number {i}, which is no sum over {alike}: it does not vary along them. Cast it with "
            "lax.pcast(x, ..., to='varying'), or leave unreduced out."
        )
    extra = [n for n in along if n not in named and mesh.shape[n] > 1]
    if extra:
        raise ValueError(
            f"shard_map applied to the function {name!r} was given out_specs which require "
            f"replication which can't be statically inferred given the mesh {dict(mesh.shape)}: "
            f"of output number {i} out_specs is {spec} which implies that the corresponding output "
            f"value is only varying across mesh axes {_listed(n for n in along if n in named)} and "
            f"not {_listed(extra)}, but it was inferred to be possibly varying over "
            f"{_listed(along)}. Reduce it over these axes (lax.psum, ...), name them in out_specs, "
            "or pass check_vma=False."
        )


def _check_pending(spec: PartitionSpec, pending: frozenset, name: str, i: int) -> None:
    """Raise ValueError where a pending sum is given as something else."""
    if not pending <= spec.unreduced:
        raise ValueError(
            f"shard_map applied to the function {name!r} was given out_specs {spec} for output "
            f"number {i}, which is unreduced over {_listed(sorted(map(str, pending)))}: each "
            "device has a part of a sum. Add it up with lax.psum, or name the axes in "
            "P(unreduced=...)."
        )


def _pending(mesh: Any, axes: Any, x: Any) -> Any:
    """A value that is a part of a sum over these mapped axes, as its type says from here on."""
    return sum_cast_p.bind(x, sharding=_of_sum(mesh, axes)) if axes else x


def _of_sum(mesh: Any, axes: frozenset) -> NamedSharding:
    """The placement of a part of a sum over these axes."""
    typed = typed_mesh(mesh.abstract_mesh, [*axes], AxisType.Explicit)
    return NamedSharding(typed, PartitionSpec(unreduced=axes))


hooks.pending_sum = lambda x, axes: _pending(_around.get()[0], frozenset(axes), x)


def _listed(names: Iterable[Any]) -> str:
    return "{" + ",".join(map(str, names)) + "}"


def _specs_of_leaves(what: str, specs: Any, value: Any) -> list[PartitionSpec]:
    """A PartitionSpec for each leaf of `value`. None stands for one among in_specs alone."""
    is_spec = lambda s: (  # noqa: E731
        s is None and what == "in_specs" or isinstance(s, PartitionSpec | hi.HiPspec)
    )
    if is_spec(specs):
        found = [specs] * len(tree.tree_leaves(value))
    else:
        found = tree.flatten_axes(f"shard_map {what}", tree.tree_structure(value), specs, is_spec)
    if any([isinstance(s, hi.HiPspec) for s in found]):
        found = array_specs(what, found, value)
    return [PartitionSpec() if s is None else s for s in found]


