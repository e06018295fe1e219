"""`vmap` and `pmap`.

`pmap` is one program over the stack of the devices' values: the device axis is a mapped axis that
collectives see by name, so pmap composes with everything vmap does; the native thread pool cuts
that axis among the cores.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from numjet.api.compiled.jit import JitFunction
from numjet.api.compiled.stages import Lowered
from numjet.api.flat import array_leaves, check_callable, described, name_of, wraps
from numjet.api.maps import hi_mapping, vmappable
from numjet.api.placement.devices import CpuDevice, Device, devices as all_devices, place
from numjet.api.placement.mesh import Mesh
from numjet.api.placement.reshard import constrained
from numjet.api.placement.sharding import NamedSharding, PartitionSpec
from numjet.base import config, tree
from numjet.base.errors import IndivisibleError
from numjet.base.tracebacks import unnamed_boundary
from numjet.core import hi
from numjet.core.array import Array, ArrayImpl, as_array, is_arraylike
from numjet.core.avals import Placed
from numjet.core.cluster import Cluster
from numjet.core.debug_info import Tracing
from numjet.core.evaluate import another
from numjet.core.names import transformation
from numjet.core.refs import AbstractRef, Ref, refuse_parts, refuse_returned, refuse_twice
from numjet.core.remote import RemoteArray
from numjet.core.structural import broadcast_in_dim, given_out, moveaxis, placed_like
from numjet.core.trace import Tracer
from numjet.ops.collective import all_gather
from numjet.ops.exchange import first_member
from numjet.transforms import mapped_refs
from numjet.transforms.batch import (
    Axis,
    BatchTracer,
    axes_of_vmap,
    axis_env as named_axes,
    batch_call,
)


def vmap(
    fun: Callable,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    sum_match: bool = False,
) -> Callable:
    """`fun` over an extra axis of its arguments, as one program without a loop.

    in_axes: the axis of the arguments that is mapped: an integer, None (not mapped), or a tuple or
    pytree prefix of the arguments with them. out_axes: likewise where the axis goes in the outputs;
    None for an output that does not vary. axis_name: a name for collectives (`lax.psum`).
    axis_size: the size, needed where no argument is mapped. spmd_axis_name: the axis of the mesh
    that the mapped axis is split over. sum_match is taken for JAX's sake and has no effect. The
    returned function takes and gives pytrees of arrays; keyword arguments are mapped along axis 0.
    Raises ValueError when the sizes of mapped axes differ, when no argument is mapped, and for
    in_axes that do not fit the arguments.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> nj.vmap(jnp.dot)(jnp.ones((2, 3)), jnp.ones((2, 3)))
    Array([3., 3.], dtype=float32)
    >>> nj.vmap(jnp.add, in_axes=(0, None))(jnp.arange(3), 10)
    Array([10, 11, 12], dtype=int32)
    """
    del sum_match
    check_callable("vmap", fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    specs = type(in_axes) is not int and hi_mapping.among(in_axes)
    whole = type(in_axes) is not bool and isinstance(in_axes, int | tuple)
    if not (specs or whole or in_axes is None):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
            f"positional arguments passed to the function, but got {in_axes!r}."
        )
    out_specs = type(out_axes) is not int and hi_mapping.among(out_axes)
    if type(out_axes) is not int and any(
        type(leaf) is bool
        or not (isinstance(leaf, int | hi.MappingSpec) or vmappable.is_spec(leaf))
        for leaf in tree.tree_leaves(out_axes)
    ):
        raise TypeError(
            "vmap out_axes must be an int, None, or a (nested) container of these, but got "
            f"{out_axes!r}."
        )

    @wraps(fun)
    @unnamed_boundary
    def mapped(*args: Any, **kwargs: Any) -> Any:
        if vmappable.TABLE:
            named = axis_name, axis_size, spmd_axis_name
            return _mapped_by_rules(fun, in_axes, out_axes, named, args, kwargs)
        leaves, in_tree = tree.tree_flatten((args, kwargs))
        if type(in_axes) is int and not kwargs:
            axes: list[int | None] = [in_axes] * len(leaves)
        else:
            axes = _axes_of_leaves("vmap", in_axes, args, in_tree)
            if specs:
                leaves, in_tree, axes = hi_mapping.taken_apart(leaves, in_tree, axes, axis_size)
        refs: dict[int, Ref] = {}
        if Ref in map(type, leaves):
            refuse_parts("vmap", (args, kwargs))
            names = Tracing(fun, "vmap", in_tree).names()
            refuse_twice(name_of(fun), "vmap", leaves, names)
        dims = _mapped_leaves("vmap", leaves, axes, in_tree, refs)
        size = _mapped_size("vmap", fun, leaves, dims, in_tree, axis_size)
        parts: dict[int, int | None] = {}  # shown in jaxprs
        for i in [i for i in refs if isinstance(leaves[i], Ref)] if refs else ():
            parts[i], dims[i] = dims[i], None
            del refs[i]
        out_tree: Any = None
        spread: list = [None] if out_specs else []

        def flat(*values: Any) -> list[Any]:
            nonlocal out_tree
            inner: dict[int, Ref] = {}
            if refs or parts:
                inner = {i: Ref(AbstractRef(values[i].aval), values[i]) for i in refs}
                shown = {i: mapped_refs.part(values[i], d) for i, d in parts.items()}
                known = {**inner, **shown}
                values = tuple([known.get(i, x) for i, x in enumerate(values)])
            given, named = tree.tree_unflatten(in_tree, values)
            out = hi.lower(fun(*given, **named))
            if spread:
                spread[:] = [hi_mapping.Places(out)]
            outs, out_tree = tree.tree_flatten(out)
            for x in outs:
                if isinstance(x, Ref):
                    refuse_returned(x, name_of(fun))
            return [*outs, *[ref.value() for ref in inner.values()]] if inner else outs

        axis = Axis(size, axis_name, spmd_axis_name)
        if Placed.active:
            axis.placed = _placed_axis(leaves, dims)
            own = axis.placed and axis.placed.spec[0]
            if own is not None and spmd_axis_name not in (None, own):
                raise ValueError(
                    "Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis type is "
                    f"allowed. Got spmd_axis_name={spmd_axis_name!r} and arrays sharded on "
                    f"explicit_mesh_axis={own!r}."
                )
        with transformation("vmap"):
            outs, out_dims = batch_call(flat, axis, leaves, dims)
        for i in reversed(refs):
            refs[i].put(_place(outs.pop(), out_dims.pop(), dims[i], size))

        def at(i: int) -> str:
            """Which result number `i` is, in words."""
            if places[i] is not None or spread:
                return "at vmap out_axes" if spread else ""
            return f"at vmap out_axes{tree.keystr(tree.leaf_path(out_tree, i))}"

        if type(out_axes) is int:
            places = [out_axes] * len(outs)
        elif spread:
            places = spread[0].of(out_axes, size, out_dims)
        else:
            places = tree.flatten_axes("vmap out_axes", out_tree, out_axes)
        ends = [
            x if d is not None and d == p else _place(x, d, p, size, at(i))
            for i, (x, d, p) in enumerate(zip(outs, out_dims, places, strict=True))
        ]
        if axis.placed is not None:
            ends = [
                x if p is None else placed_like(x, axis.over(x.aval.row(p % x.ndim), p % x.ndim))
                for x, p in zip(ends, places, strict=True)
            ]
        ends = given_out(ends)
        return spread[0].value(ends) if spread else tree.tree_unflatten(out_tree, ends)

    return described(
        mapped, fun,
        "Vectorized version of {}. Takes the arguments of {} with additional axes over which it is "
        "mapped."
    )


def _mapped_by_rules(
    fun: Callable, in_axes: Any, out_axes: Any, axis: tuple, args: tuple, kwargs: dict
) -> Any:
    """A call of `vmap(fun)` where values of some types say themselves how they are mapped."""
    name, given_size, spmd = axis
    leaves, in_tree = tree.tree_flatten((args, kwargs), is_leaf=vmappable.is_one)
    axes = _axes_of_leaves("vmap", in_axes, args, in_tree)
    parts = vmappable.Arguments.of(leaves, axes)
    flat_tree = tree.tree_structure((tuple(parts.arrays), {}))
    dims = _mapped_leaves("vmap", parts.arrays, parts.array_axes, flat_tree)
    size = _mapped_size("vmap", fun, parts.arrays, dims, flat_tree, given_size)
    results: Any = None

    def flat(*values: Any) -> list[Any]:
        nonlocal results
        given, named = tree.tree_unflatten(in_tree, parts.within(values))
        results = vmappable.Results(fun(*given, **named), out_axes, size)
        for x in results.arrays:
            refuse_returned(x, name_of(fun))
        return results.arrays  # type: ignore[no-any-return]

    with transformation("vmap"):
        outs, out_dims = batch_call(flat, Axis(size, name, spmd), parts.arrays, dims)
    return results.whole(
        [
            _place(x, d, p, size, "at vmap out_axes")
            for x, d, p in zip(outs, out_dims, results.array_axes, strict=True)
        ]
    )


def _placed_axis(leaves: Sequence[Any], dims: Sequence[int | None]) -> Any:
    """By which Explicit axes of a mesh the mapped axis is cut; ValueError where arguments
    differ."""
    found, first = None, True
    for x, d in zip(leaves, dims, strict=True):
        if d is None or not x.aval.ndim:
            continue
        placed = x.aval.placed
        entry = None if placed is None else placed.spec[d]
        own = None if entry is None else placed.of_entries((entry,))
        if not first and own != found:
            specs = [None if s is None else s.spec[0] for s in (found, own)]
            raise ValueError(
                "Mapped away dimension of inputs passed to vmap should be sharded the same. Got "
                f"inconsistent axis specs: {specs[0]} vs {specs[1]}. Lay the arguments out alike "
                "with numjet.reshard."
            )
        found, first = own, False
    return found


def _mapped_leaves(
    what: str, leaves: list, axes: list, in_tree: Any, refs: dict[int, Ref] | None = None
) -> list[int | None]:
    """The mapped axis of each leaf. Leaves that are mapped become Arrays, in place; the others stay
    what they are, functions and Python numbers among them. References that are mapped are put into
    `refs`, and their values in their place."""
    dims: list[int | None] = []
    for i, (x, a) in enumerate(zip(leaves, axes, strict=True)):
        if a is None:
            dims.append(None)
            continue
        if not isinstance(x, Array):
            try:
                if isinstance(x, Ref) and refs is not None:
                    refs[i] = x
                    if mapped_refs.shown(x):
                        dims.append(_dim(what, x, a, in_tree, i))
                        continue
                    x = x.value()
                x = leaves[i] = as_array(x)
            except TypeError:
                raise TypeError(
                    f"{what}: {_leaf_name(in_tree, i)} is {x!r} of type {type(x).__name__}, which "
                    "is no array to map over. Use None in in_axes for it, or pass it by closure."
                ) from None
        dims.append(_dim(what, x, a, in_tree, i))
    return dims


def _axes_of_leaves(
    what: str, in_axes: Any, args: tuple, in_tree: Any
) -> list[int | None]:
    """in_axes for every leaf of (args, kwargs), whose structure is `in_tree`; keyword arguments are
    mapped over axis 0."""
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ValueError(
            f"{what} in_axes must be an int, None, or a tuple of entries corresponding to the "
            f"positional arguments passed to the function, but got len(in_axes)={len(in_axes)}, "
            f"len(args)={len(args)}. Give None for arguments that are not mapped."
        )
    for_args, for_kwargs = in_tree.children()
    per_arg = tree.flatten_axes(f"{what} in_axes", for_args, in_axes)
    return per_arg + [0] * for_kwargs.num_leaves


def _dim(what: str, x: Any, axis: Any, in_tree: Any, i: int) -> int:
    if not isinstance(axis, int) or type(axis) is bool:
        raise TypeError(
            f"{what} in_axes must be an int, None, or (nested) container with those types as "
            f"leaves, but got {axis!r}."
        )
    ndim = x.aval.ndim
    if not -ndim <= axis < ndim:
        raise (IndexError if what == "pmap" and ndim else ValueError)(
            f"{what} was requested to map its argument along axis {axis}, which implies that its "
            f"rank should be at least {axis + 1 if axis >= 0 else -axis}, but is only {ndim} (its "
            f"shape is {x.shape}): {_leaf_name(in_tree, i)} has no axis {axis}. Use None in "
            "in_axes for arguments that are not mapped."
        )
    return axis % ndim


def _leaf_name(in_tree: Any, i: int) -> str:
    path = tree.leaf_path(in_tree, i)
    which, rest = path[0], path[1:]
    head = "args" if getattr(which, "idx", 0) == 0 else "kwargs"
    return head + tree.keystr(rest)


def _mapped_size(
    what: str, fun: Callable, leaves: list, dims: list, in_tree: Any, given: int | None
) -> int:
    """The one size of the mapped axes; ValueError where there are several, or none."""
    found = {x.aval.shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None}
    if given is not None:
        found.add(given)
    if len(found) == 1:
        return found.pop()
    sizes: dict[int, list[str]] = {}
    for i, (x, d) in enumerate(zip(leaves, dims, strict=True)):
        if d is not None:
            where = f"axis {d} of {_argument(fun, in_tree, i)} of type {x.aval.str_short()}"
            sizes.setdefault(x.shape[d], []).append(where)
    if not leaves:
        raise ValueError(
            "vmap wrapped function must be passed at least one argument containing an array or "
            f"axis_size must be specified: {name_of(fun)} got none."
        )
    if not sizes:
        raise ValueError(
            f"{what} must have at least one non-None value in in_axes or axis_size must be "
            f"specified: no argument of {name_of(fun)} is mapped, so the axis has no size."
        )
    lines = [f"the `axis_size` argument was {given}"] if given is not None else []
    for size, places in sorted(sizes.items(), key=lambda item: -len(item[1])):
        n, many = len(places), "some axes" if lines else "most axes"
        lines.append(
            f"{'one axis' if n == 1 else f'{many} ({n} of them)'} had size {size}"
            f"{':' if n == 1 else ', e.g.'} {places[0]}"
        )
    raise ValueError(
        f"{what} got inconsistent sizes for array axes to be mapped:\n  * "
        + ";\n  * ".join(lines)
        + f".\nThe sizes of mapped axes of {name_of(fun)} must be equal: use in_axes to choose "
        "other axes, or None for arguments that are not mapped."
    )


def _argument(fun: Callable, in_tree: Any, i: int) -> str:
    """Leaf `i` of (args, kwargs) by the name that the function gives it."""
    path = tree.leaf_path(in_tree, i)
    try:
        names = list(inspect.signature(fun).parameters)
    except (ValueError, TypeError):
        names = []
    if getattr(path[0], "idx", 0) or path[1].idx >= len(names):
        return _leaf_name(in_tree, i)
    return f"argument {names[path[1].idx]}{tree.keystr(path[2:])}"


def _place(x: Any, dim: int | None, place: Any, size: int, where: str = "") -> Any:
    if dim is None and not is_arraylike(x):
        raise TypeError(
            f"Output from batched function {x!r} with type {type(x)} is not a valid JAX type: no "
            "array or scalar."
        )
    if place is None:
        if dim is not None:
            raise ValueError(
                f"{where}, got axis spec None but output was batched on axis {dim}: it depends on "
                "the mapped axis. Reduce it over the axis, or give its out_axes an integer."
            )
        return x
    if dim is None and not isinstance(x, Array):
        x = as_array(x)
    ndim = x.ndim + (dim is None)
    if not isinstance(place, int) or not -ndim <= place < ndim:
        raise ValueError(
            f"vmap out_axes: axis {place} is out of bounds for array of dimension {ndim}, which "
            f"the output is ({ndim - 1} axes a mapped example)."
        )
    place %= ndim
    if dim is None:
        shape = (*x.shape[:place], size, *x.shape[place:])
        return broadcast_in_dim(x, shape, tuple([i for i in range(ndim) if i != place]))
    return moveaxis(x, dim, place)


def pmap(
    fun: Callable,
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Callable:
    """`fun` on several devices at once, each with its slice of the mapped axis; compiled.

    axis_name: the name by which collectives (`lax.psum`, `lax.all_gather`, `lax.ppermute`) join the
    devices. in_axes, out_axes: as of `vmap`. static_broadcasted_argnums: arguments that are Python
    values. devices: which ones, by default the first. backend: their platform. axis_size: the size
    of the mapped axis, otherwise that of the arguments. donate_argnums: arguments whose memory may
    be taken over. A result whose out_axes is None and that differs is the first device's. The
    mapped axis must not be longer than there are devices (ValueError; config `num_cpu_devices` sets
    how many virtual ones the CPU has). Raises ValueError where no argument is mapped, where sizes
    differ, for arguments that are both static and donated, and for a device twice. Results carry
    one slice on each device. Over several processes each gives, and gets, the slices of its own
    devices.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> nj.pmap(lambda x: x + nj.lax.psum(x, "i"), axis_name="i")(jnp.array([1.0]))
    Array([2.], dtype=float32)
    """
    check_callable("pmap", fun)
    if backend not in (None, "cpu") and devices is None:
        devices = all_devices(backend)
    statics, donated = (
        (nums,) if isinstance(nums, int) else tuple(nums)
        for nums in (static_broadcasted_argnums, donate_argnums)
    )
    if devices is not None and not len(devices):
        raise ValueError("'devices' argument to pmap must be non-empty, or None.")
    if devices is not None and len(set(devices)) != len(devices):
        raise ValueError(f"pmap: each of the devices must be there once, got {list(devices)}.")
    if set(statics) & set(donated):
        raise ValueError(
            f"pmap: `static_argnums` {list(statics)} and `donate_argnums` {list(donated)} cannot "
            "intersect: static_broadcasted_argnums are Python values, without memory to give up."
        )
    name = object() if axis_name is None else axis_name
    label = "_internal_pmap_axis_name" if axis_name is None else axis_name
    whole = None in tree.tree_leaves(out_axes, is_leaf=lambda axis: axis is None)
    chosen = None if devices is None else tuple(devices)

    @wraps(fun)
    def stacked(*args: Any, **kwargs: Any) -> Any:
        nums, axes = _dynamic(args, statics, in_axes)

        @wraps(fun)
        def call(*dynamic: Any, **kw: Any) -> Any:
            given = dict(zip(nums, dynamic, strict=True))
            out = fun(*[given.get(i, x) for i, x in enumerate(args)], **kw)
            return _firsts(out, out_axes, name) if whole else out

        mapped = vmap(call, axes, out_axes, name, axis_size, spmd_axis_name=name)
        return mapped(*[args[i] for i in nums], **kwargs)

    jitted = JitFunction(stacked, statics, (), donated, ())
    told = tree.tree_flatten((in_axes, out_axes), is_leaf=lambda axis: axis is None)
    form = ("pmap", axis_name, tuple(told[0]), told[1], statics, donated, chosen, axis_size)
    jitted._core.keep_with(fun, form)

    @wraps(fun)
    def together(key: tuple, *leaves: Any) -> Any:
        mesh, in_tree, dims, nums, count, fixed = key
        out_tree: list = []

        def call(values: list) -> list:
            dynamic, named = tree.tree_unflatten(in_tree, values)
            given = {**dict(fixed), **dict(zip(nums, dynamic, strict=True))}
            outs, treedef = tree.tree_flatten(fun(*[given[i] for i in range(count)], **named))
            out_tree.append(treedef)
            return outs

        outs = _across().mapped(call, mesh, leaves, dims)
        return tree.tree_unflatten(out_tree[0], outs)

    program = JitFunction(together, (0,), (), (), ())

    def over_processes(mesh: Mesh, args: tuple, kwargs: dict) -> Any:
        nums, axes = _dynamic(args, statics, in_axes)
        dynamic = tuple([args[i] for i in nums])
        leaves, in_tree = array_leaves("pmap", (dynamic, kwargs))
        found = _axes_of_leaves("pmap", axes, dynamic, in_tree)
        dims = tuple([None if d is None else d % np.ndim(x) for x, d in zip(leaves, found)])
        fixed = tuple([(i, x) for i, x in enumerate(args) if i not in nums])
        arrays = _across().given(fun, mesh, leaves, dims, axis_size)
        out = program((mesh, in_tree, dims, tuple(nums), len(args), fixed), *arrays)
        for x in tree.tree_leaves([args[i] for i in donated]):
            if isinstance(x, Array):
                x.delete()  # type: ignore[attr-defined]
        outs, treedef = tree.tree_flatten(out)
        places = tree.flatten_axes("pmap out_axes", treedef, out_axes)
        ends = [_across().mine(mesh, x, p) for x, p in zip(outs, places, strict=True)]
        return tree.tree_unflatten(treedef, ends)

    @wraps(fun)
    @unnamed_boundary
    def parallel(*args: Any, **kwargs: Any) -> Any:
        members = chosen or tuple(all_devices())
        _check_not_inside(label, len(members))
        if any(d.process_index != Cluster.index for d in members):
            return over_processes(Mesh(np.array(members), (label,)), args, kwargs)
        n = _check_devices(fun, args, kwargs, in_axes, statics, axis_size, len(members))
        if not isinstance(members[0], CpuDevice):  # one program of as many partitions
            mesh = Mesh(np.array(members[:n]), (label,))
            jitted._core.layouts = (None, _wanted(mesh, out_axes))
            args, kwargs = _on_devices(mesh, args, kwargs, in_axes, statics)
        elif config.jax_form() and not any(
            [axis is not None and axis < 0 for axis in tree.tree_leaves(out_axes)]
        ):
            mesh = Mesh(np.array(members[:n]), (label,))
            return _as_equation(fun, mesh, args, kwargs, in_axes, out_axes, statics, donated)
        elif donated and n > 1:  # what lies on one device is copied to the others
            alone = lambda x: another(x) if type(x) is ArrayImpl else x  # noqa: E731
            args = tuple([tree.tree_map(alone, x) if i in donated else x
                          for i, x in enumerate(args)])  # fmt: skip
        elif any(isinstance(x, Tracer) for x in tree.tree_leaves((args, kwargs))) and (
            not config.jax_form()
        ):  # as arguments lie, so do their cotangents
            mesh = Mesh(np.array(members[:n]), (label,))
            args, kwargs = _on_devices(mesh, args, kwargs, in_axes, statics, Tracer)
        out = jitted(*args, **kwargs)
        leaves, treedef = tree.tree_flatten(out)
        places = tree.flatten_axes("pmap out_axes", treedef, out_axes)
        mesh = Mesh(np.array(members[:n]), (label,))
        if not any(isinstance(x, Tracer) for x in leaves):
            leaves = [_on_mesh(mesh, x, p) for x, p in zip(leaves, places, strict=True)]
        elif not config.jax_form():
            leaves = [
                constrained(x, _cut(mesh, p if p is None else p % x.ndim))
                if isinstance(x, Tracer) else _on_mesh(mesh, x, p)
                for x, p in zip(leaves, places, strict=True)
            ]  # fmt: skip
        return tree.tree_unflatten(treedef, leaves)

    def lower(*args: Any, **kwargs: Any) -> Lowered:
        members, sizes = chosen or tuple(all_devices()), []
        _check_not_inside(label, len(members))

        def check(*args: Any, **kwargs: Any) -> None:
            have = len(members)
            sizes.append(_check_devices(fun, args, kwargs, in_axes, statics, axis_size, have))

        JitFunction(check, statics, (), (), ()).trace(*args, **kwargs)
        traced = jitted.trace(*args, **kwargs)
        if not isinstance(members[0], CpuDevice):
            return traced.lower()
        mesh = Mesh(np.array(members[: sizes[0]]), (label,))
        nums, axes = _dynamic(args, statics, in_axes)
        dims = _axes_of_leaves("pmap", axes, tuple([args[i] for i in nums]), traced.in_tree)
        avals = tree.tree_leaves(traced.in_avals)
        traced.layouts = [_cut(mesh, d if d is None else d % a.ndim) for d, a in zip(dims, avals)]
        places = tree.flatten_axes("pmap out_axes", traced.out_tree, out_axes)
        avals = tree.tree_leaves(traced.out_avals)
        traced.results = [_cut(mesh, d if d is None else d % a.ndim) for d, a in zip(places, avals)]
        return traced.lower()

    parallel.lower = lower  # type: ignore[attr-defined]
    return parallel


def _as_equation(
    fun: Callable, mesh: Mesh, args: tuple, kwargs: dict, in_axes: Any, out_axes: Any,
    statics: tuple, donated: tuple,
) -> Any:  # fmt: skip
    """The results where `make_jaxpr` traces, in the equations that JAX writes."""
    nums, axes = _dynamic(args, statics, in_axes)
    dynamic = tuple([args[i] for i in nums])
    leaves, in_tree = array_leaves("pmap", (dynamic, kwargs))
    dims = _axes_of_leaves("pmap", axes, dynamic, in_tree)
    marks = [tree.tree_map(lambda _, i=i: i in donated, args[i]) for i in nums]
    away = [k for k, mark in enumerate(tree.tree_leaves(marks)) if mark]

    def on_slices(*slices: Any) -> Any:
        mapped, named = tree.tree_unflatten(in_tree, slices)
        given = dict(zip(nums, mapped, strict=True))
        return fun(*[given.get(i, x) for i, x in enumerate(args)], **named)

    equation = importlib.import_module("numjet.api.maps.pmap_equation")
    return equation.mapped(on_slices, mesh, leaves, dims, out_axes, away)


def _firsts(out: Any, out_axes: Any, name: Any) -> Any:
    """What the mapped function returns, with the first device's value of what is to be whole and
    differs."""
    leaves, treedef = tree.tree_flatten(out)
    places = tree.flatten_axes("pmap out_axes", treedef, out_axes)
    return tree.tree_unflatten(treedef, [
        first_member(all_gather(x, name), 0)
        if place is None and isinstance(x, BatchTracer) else x
        for x, place in zip(leaves, places, strict=True)
    ])


def _across() -> Any:
    """What runs over the devices of several processes."""
    return importlib.import_module("numjet.api.maps.pmap_processes")


def _cut(mesh: Mesh, axis: int | None) -> NamedSharding:
    """One slice of an axis a device, or all everywhere."""
    parts = [] if axis is None else [None] * axis + [mesh.axis_names[0]]
    return NamedSharding(mesh, PartitionSpec(*parts))


def _wanted(mesh: Mesh, out_axes: Any) -> Any:
    """The shardings of results, None for axes that count from the end."""
    return tree.tree_map(
        lambda axis: None if axis is not None and axis < 0 else _cut(mesh, axis), out_axes,
        is_leaf=lambda axis: axis is None,
    )  # fmt: skip


def _on_devices(
    mesh: Mesh, args: tuple, kwargs: dict, in_axes: Any, statics: tuple, kind: Any = object
) -> tuple[tuple, dict]:
    """The arguments, those of this kind with a slice on each device of what is mapped, and else on
    each."""
    nums, axes = _dynamic(args, statics, in_axes)
    leaves, in_tree = array_leaves("pmap", (tuple([args[i] for i in nums]), kwargs))
    dims = _axes_of_leaves("pmap", axes, tuple([args[i] for i in nums]), in_tree)
    moved = [
        constrained(x, _cut(mesh, None if d is None else d % x.ndim)) if isinstance(x, kind) else x
        for x, d in zip(leaves, dims, strict=True)
    ]
    dynamic, named = tree.tree_unflatten(in_tree, moved)
    given = dict(zip(nums, dynamic, strict=True))
    return tuple([given.get(i, x) for i, x in enumerate(args)]), named


def _on_mesh(mesh: Mesh, x: Any, axis: int | None) -> Any:
    """A result with its sharding: one slice of `axis` a device, or all of it everywhere."""
    if isinstance(x, np.ndarray):
        return x  # of dtype float0
    sharding = _cut(mesh, None if axis is None else axis % x.ndim)
    if type(x) is RemoteArray:
        return place(x, sharding)
    return place(ArrayImpl(x._value, x.aval), sharding)


def _dynamic(args: tuple, statics: tuple, in_axes: Any) -> tuple[list[int], Any]:
    """The positions of the arguments that are not static, and their in_axes."""
    if any(not -len(args) <= s < len(args) for s in statics):
        raise ValueError(
            f"pmapped function has static_broadcasted_argnums={statics} but was called with only "
            f"{len(args)} positional argument{'s' * (len(args) != 1)}. All static broadcasted "
            "arguments must be passed positionally."
        )
    skipped = {s % len(args) for s in statics}
    nums = [i for i in range(len(args)) if i not in skipped]
    if isinstance(in_axes, tuple | list) and len(in_axes) == len(args):
        in_axes = tuple([in_axes[i] for i in nums])
    return nums, in_axes


def _check_not_inside(label: Any, count: int) -> None:
    """Raise ValueError inside of a function that is mapped over devices already."""
    of_vmap = axes_of_vmap.get()
    around = [name for name in named_axes() if name not in of_vmap]
    if around:
        shown = [n if isinstance(n, str) else "_internal_pmap_axis_name" for n in around]
        raise ValueError(
            f"The context mesh over {shown} should match the mesh of pmap, {label!r}: {count}: one "
            "pmap cannot run inside of another, nor of a shard_map. Use vmap inside."
        )


def _refuse_unmapped(fun: Callable) -> NoReturn:
    raise ValueError(
        f"pmap requires at least one argument with a mapped axis. No argument of {name_of(fun)} "
        "has one: give axis_size."
    )


def _check_devices(
    fun: Callable,
    args: tuple,
    kwargs: dict,
    in_axes: Any,
    statics: tuple,
    given: int | None,
    have: int,
) -> int:
    nums, axes = _dynamic(args, statics, in_axes)
    dynamic = tuple([args[i] for i in nums])
    values = tree.tree_leaves((dynamic, kwargs))
    if given is None and values and not any(map(is_arraylike, values)):
        _refuse_unmapped(fun)
    leaves, in_tree = array_leaves("pmap", (dynamic, kwargs))
    dims = _mapped_leaves(
        "pmap", leaves, _axes_of_leaves("pmap", axes, dynamic, in_tree), in_tree
    )
    found = {x.aval.shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None}
    if not found:
        _refuse_unmapped(fun)
    if given is not None and found - {given}:
        raise ValueError(
            f"pmap of {name_of(fun)}: Specified axis_size {given} doesn't match received axis_size "
            f"{max(found - {given})}."
        )
    lengths = [x.aval.shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None]
    parts = max(min(given or lengths[0], have), 1)
    apart = ValueError if all(n % parts == 0 for n in lengths) else IndivisibleError
    try:
        size = _mapped_size("pmap", fun, leaves, dims, in_tree, given)
    except ValueError as error:
        raise apart(*error.args) from None
    if size > have:
        raise apart(
            f"pmap of {name_of(fun)}: the mapped axis has size {size}, but there are only {have} "
            "devices. Use vmap inside pmap for more than one example a device, or set "
            "NUMJET_NUM_CPU_DEVICES."
        )
    return size
