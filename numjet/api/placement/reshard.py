"""Values laid out over a mesh, and functions within which its axes have other types: `reshard`,
`with_sharding_constraint`, `auto_axes`, `explicit_axes`, and what `out_sharding` of other functions
means.

Axes of type Explicit are a part of what arrays are (`core.avals`, `partition.explicit`); a layout
over them is asked for here. What would break it: a sharding over axes alone outside of a traced
function, which is refused.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from numjet.api.placement.devices import Sharding, check_manual, mark, put
from numjet.api.placement.layout import Format
from numjet.api.placement.mesh import (
    AbstractMesh,
    AxisType,
    Mesh,
    check_devices_of,
    check_entered,
    chosen_axes,
    context_mesh,
    current_mesh,
    get_abstract_mesh,
    mesh_of_constraints,
    note_context,
)
from numjet.api.placement.sharding import NamedSharding, PartitionSpec, axes_of, of_nowhere
from numjet.base import config, tree
from numjet.base.errors import DuplicateSpecError
from numjet.core import hooks
from numjet.core.array import Array, as_array
from numjet.core.avals import SummedAxes, lenient
from numjet.core.remote import RemoteArray
from numjet.core.sharded import ShardedArray
from numjet.core.trace import EVAL, Tracer, current_trace
from numjet.ops.constraint import mesh_cast_p
from numjet.partition.sums import check_asked


def reshard(xs: Any, out_shardings: Any) -> Any:
    """`xs` (a pytree of arrays) laid out as `out_shardings` say.

    out_shardings: a sharding, a PartitionSpec of the current mesh, or a pytree of them. As
    `lax.with_sharding_constraint`, but a layout must be given, whose None entries past an array's
    dimensions mean nothing. Derivative: the identity. Raises ValueError for None and for a layout
    that does not fit a shape.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> nj.reshard(jnp.arange(2), nj.NamedSharding(nj.make_mesh((1,), ("x",)), nj.P("x")))
    Array([0, 1], dtype=int32)
    """
    is_place = lambda s: s is None or isinstance(s, PartitionSpec)  # noqa: E731
    for place in tree.tree_leaves(out_shardings, is_place):
        if place is None:
            raise ValueError(
                "reshard: out_shardings must name a layout for each array, got None. Leave arrays "
                "out that are to stay as they are."
            )
        if isinstance(place, Sharding) and not isinstance(place, NamedSharding):
            raise TypeError(
                "`out_sharding` argument of reshard only supports instances of `NamedSharding` or "
                f"`PartitionSpec`. Got {place} of type: {type(place).__name__}. Use "
                "numjet.device_put to move arrays to a device."
            )
    return _laid_out("reshard", xs, out_shardings)


@contextlib.contextmanager
def within_types(mesh: Any) -> Iterator[None]:
    """Make a mesh the current one, that of axes alone included."""
    note_context()
    has_devices = not isinstance(mesh, AbstractMesh)
    token = current_mesh.set(mesh) if has_devices else None
    of_axes = chosen_axes.set(None if has_devices else mesh)
    try:
        yield
    finally:
        chosen_axes.reset(of_axes)
        if token is not None:
            current_mesh.reset(token)


def typed_mesh(mesh: Any, axes: Sequence[Any], kind: AxisType) -> Any:
    """The mesh, some of whose axes have another type."""
    types = [kind if n in axes else t for n, t in zip(mesh.axis_names, mesh.axis_types)]
    return mesh.update(axis_types=tuple(types))


def over_types(x: Any, mesh: Any) -> Any:
    """An array, or a traced one, that lies as it did over a mesh whose axes have other types."""
    if isinstance(x, Tracer):
        return x if x.aval.placed is None else mesh_cast_p.bind(x, mesh=mesh)
    if x.is_deleted():
        return x  # whoever reads it says so
    sharding = x._sharding if type(x) in (ShardedArray, RemoteArray) else None
    if not isinstance(sharding, NamedSharding) or isinstance(mesh, AbstractMesh):
        return x
    if sharding.mesh.shape_tuple != mesh.shape_tuple:
        return x
    other = sharding.over_mesh(mesh)
    if mesh.are_all_axes_auto:  # whose specs end with the last axis that is cut
        other = other.update(spec=other.of_layout(other.layout(x.ndim)).spec)
    if type(x) is RemoteArray:
        return RemoteArray(x._buffer, x.aval, other)
    return ShardedArray(x._block, x.aval, other)


def _with_types(
    name: str, f: Any, axes: Any, kind: AxisType, what: str, given: Any
) -> Callable:
    """`f`, run where some axes of the mesh are of that type; `what` is the layout of its arguments
    (in_sharding) or results (out_sharding) outside."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        layout = kwargs.pop(what, given)
        if layout is None:
            raise TypeError(f"{name}: Missing required keyword argument: {what!r}")
        mesh: Any = get_abstract_mesh()
        if not context_mesh().empty and context_mesh().abstract_mesh == mesh:
            mesh = context_mesh()
        if mesh.empty:
            named = [s for s in tree.tree_leaves(layout, lambda s: isinstance(s, PartitionSpec))
                     if isinstance(s, NamedSharding)]  # fmt: skip
            if what == "in_sharding":
                raise ValueError(
                    "Context mesh cannot be empty. Please use `jax.set_mesh` API to enter into a "
                    "mesh context when using `explicit_axes` API."
                )
            if not named:
                return f(*args, **kwargs)  # there are no axes whose types could be others
            mesh = named[0].mesh
        wanted = mesh.axis_names if axes is None else axes_of(axes)
        for axis in wanted:
            if axis not in mesh.axis_names:
                raise ValueError(
                    f"{name}: the current mesh has no axis {axis!r}; its axes are "
                    f"{mesh.axis_names}."
                )
        if set(get_abstract_mesh().manual_axes) & set(wanted):
            raise NotImplementedError(
                "Going from `Manual` AxisType to `Auto` or `Explicit` AxisType is not allowed: "
                f"{name} is called inside of a shard_map over {get_abstract_mesh().manual_axes}."
            )
        inside = typed_mesh(mesh, wanted, kind)
        with within_types(inside):
            leaves, treedef = tree.tree_flatten(args)
            given_args = [over_types(as_array(x), inside) if _is_array(x) else x for x in leaves]
            args = treedef.unflatten(given_args)
            if what == "in_sharding":
                args = _laid_out(name, args, layout)
            out = f(*args, **kwargs)
        out = tree.tree_map(lambda x: over_types(x, mesh) if isinstance(x, Array) else x, out)
        with within_types(mesh):
            return _laid_out(name, out, layout) if what == "out_sharding" else out

    return call


def _is_array(x: Any) -> bool:
    return isinstance(x, Array | np.ndarray)


def auto_axes(f: Any = None, /, *, axes: Any = None, out_sharding: Any = None) -> Any:
    """`f`, within which some axes of the mesh are of type Auto; its results are laid out as told.

    f: a function of pytrees of arrays; left out, the result is a decorator. axes: a name, several,
    or None for all. out_sharding: the layout of the results. Raises ValueError for an axis that the
    current mesh has not.

    >>> import numjet as nj
    >>> from numjet import sharding, numpy as jnp
    >>> with nj.set_mesh(nj.make_mesh((1,), ("x",))):
    ...     sharding.auto_axes(lambda x: 2 * x, out_sharding=nj.P("x"))(jnp.arange(2))
    Array([0, 2], dtype=int32)
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    return _with_types("auto_axes", f, axes, AxisType.Auto, "out_sharding", out_sharding)


def explicit_axes(f: Any = None, /, *, axes: Any = None, in_sharding: Any = None) -> Any:
    """`f`, within which some axes of the mesh are of type Explicit; its arguments are laid out as
    told.

    f: a function of pytrees of arrays; left out, the result is a decorator. axes: a name, several,
    or None for all. in_sharding: the layout of the positional arguments. Raises ValueError for an
    axis that the current mesh has not.

    >>> import numjet as nj
    >>> from numjet import sharding, numpy as jnp
    >>> with nj.set_mesh(nj.make_mesh((1,), ("x",))):
    ...     sharding.explicit_axes(lambda x: 2 * x, in_sharding=nj.P("x"))(jnp.arange(2))
    Array([0, 2], dtype=int32)
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    return _with_types("explicit_axes", f, axes, AxisType.Explicit, "in_sharding", in_sharding)


def of_context(
    name: str, place: Any, error: type[Exception] = RuntimeError, entered: bool = False
) -> Any:
    """A sharding from a PartitionSpec of the current mesh, or from one over the axes alone of that
    mesh; others as they are. entered: that of `with mesh:` will do. Raises `error` for a
    PartitionSpec where there is no mesh."""
    mesh = mesh_of_constraints() if entered else context_mesh()
    if isinstance(place, PartitionSpec):
        chosen = chosen_axes.get()
        if chosen is not None:
            return NamedSharding(over_chosen(mesh, chosen), place)
        if mesh.empty:
            what, _, argument = name.partition(" ")
            raise error(
                f"{what} requires a non-empty mesh in context if you are passing PartitionSpecs"
                f"{argument and ' to '}{argument} (got {place}). Using PartitionSpec when you are "
                "not under a mesh context is not allowed. Please set a mesh via "
                f"`jax.set_mesh` if a PartitionSpec is passed to {what}, or pass "
                "NamedSharding(mesh, spec)."
            )
        return _named(mesh, place, name)
    if isinstance(place, NamedSharding) and isinstance(place.mesh, AbstractMesh):
        if not mesh.empty and mesh.abstract_mesh == place.mesh:
            return place.update(mesh=mesh)
    return place


def over_chosen(mesh: Any, chosen: AbstractMesh) -> Any:
    """The mesh that `use_abstract_mesh` means: that of `set_mesh` with other names, sizes and types
    of its axes; the axes alone where there is none."""
    if mesh.empty or mesh.size != chosen.size or isinstance(mesh, AbstractMesh):
        return chosen
    if (mesh.axis_names, mesh.axis_sizes, mesh.axis_types) == (
        chosen.axis_names, chosen.axis_sizes, chosen.axis_types
    ):  # fmt: skip
        return mesh
    return Mesh(mesh.devices.reshape(chosen.axis_sizes), chosen.axis_names, chosen.axis_types)


def _named(mesh: Any, spec: PartitionSpec, name: str) -> NamedSharding:
    """The sharding of a spec that was given to `name`, which errors tell."""
    try:
        return NamedSharding(mesh, spec)
    except DuplicateSpecError as error:
        argument = name.split(" ")[-1]
        raise DuplicateSpecError(
            str(error).replace("NamedSharding spec", argument, 1)
        ) from None


def constrained(x: Any, sharding: Sharding) -> Any:
    """An array, or a traced one, laid out as a sharding says."""
    abstract = isinstance(getattr(sharding, "mesh", None), AbstractMesh)
    if isinstance(x, Tracer) or abstract and current_trace() is not EVAL:
        return mark(x, sharding)
    return put(x, sharding)


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """x, laid out as `shardings` say.

    x: a pytree of arrays. shardings: a sharding, a PartitionSpec of the current mesh, or a pytree
    of them. Inside a traced function it is a constraint that the partitioner keeps to. Derivative:
    the identity, with the same constraint. Where all axes of the current mesh are of type Explicit
    it only checks that x lies so, and raises AssertionError. Raises ValueError for a layout that
    does not fit the shape or that names axes of other types than Auto, RuntimeError for a
    PartitionSpec where there is no mesh.

    >>> import numjet as nj
    >>> from numjet import lax, numpy as jnp
    >>> layout = nj.NamedSharding(nj.make_mesh((1,), ("x",), nj.sharding.AxisType.Auto), nj.P("x"))
    >>> nj.jit(lambda x: lax.with_sharding_constraint(x * 2, layout))(jnp.arange(2))
    Array([0, 2], dtype=int32)
    """
    return _laid_out("with_sharding_constraint", x, shardings)


def laid_out(
    make: Callable[[], Any], shardings: Any, name: str | None = None, anew: bool = False
) -> Any:
    """What a function makes, laid out as its caller asked for with `out_sharding`. name: the
    caller's, for errors; that of the function by default. anew: whether results are values that
    operands were not, which over Explicit axes needs `set_mesh` or an operand over the mesh."""
    if name is None:
        name = getattr(getattr(make, "func", None), "__name__", "out_sharding")
    if over_no_mesh(shardings):
        return make()
    if not isinstance(shardings, Sharding | PartitionSpec | Format):
        raise TypeError(
            "`out_sharding` argument only supports instances of `NamedSharding` or "
            f"`PartitionSpec`. Got {shardings!r} of type: {type(shardings)}"
        )
    place = of_context("out_sharding", shardings, ValueError)
    _check_context_of(name, place)
    _check_explicit(name, place)
    asked, summed = getattr(getattr(place, "spec", None), "unreduced", None), SummedAxes()
    with lenient(summed):
        made = make()
    if anew and not isinstance(made, Tracer | ShardedArray):
        check_entered(getattr(place, "mesh", None), made.aval)
    if asked:
        check_asked(asked, summed.found)
    return _laid_out("out_sharding", made, shardings)


def _check_context_of(name: str, place: Any) -> None:
    """Raise ValueError where a sharding is over other types of axes than the current mesh has."""
    here, mesh = get_abstract_mesh(), getattr(place, "mesh", None)
    if here.empty or mesh is None or mesh.empty or here.shape_tuple != mesh.shape_tuple:
        return
    if here.manual_axes:  # the types of what a shard_map maps over do not show it
        return
    if here.axis_types != mesh.axis_types:
        raise ValueError(
            f"Context mesh {here} should match the mesh of sharding {mesh.abstract_mesh} passed to "
            f"{name}. Pass a PartitionSpec, or enter the other mesh with numjet.set_mesh."
        )


def over_no_mesh(sharding: Any) -> bool:
    """Whether it is the sharding that an array's type shows outside of a mesh: as a request for a
    layout it asks for nothing."""
    return isinstance(sharding, NamedSharding) and sharding.mesh.empty


def _place_again(x: Any, sharding: NamedSharding) -> Any:
    return x if over_no_mesh(sharding) else constrained(x, of_context("place", sharding))


def _laid_out(name: str, x: Any, shardings: Any) -> Any:
    is_leaf = lambda s: s is None or isinstance(s, Sharding | PartitionSpec | Format)  # noqa: E731
    leaves, treedef = tree.tree_flatten(x)
    specs = tree.flatten_axes(f"{name}: shardings", treedef, shardings, is_leaf)
    out = []
    for leaf, spec in zip(leaves, specs, strict=True):
        if isinstance(spec, Format):
            spec = spec.sharding
        by_axes = isinstance(spec, PartitionSpec) and config.jax_form()
        is_check = name == "with_sharding_constraint"
        if spec is None and is_check:
            raise ValueError(
                "One of with_sharding_constraint arguments got sharding None which is not allowed. "
                "Pass a Sharding or a PartitionSpec for each array, or leave the array out."
            )
        spec = of_context(name, spec, RuntimeError if is_check else ValueError, is_check)
        if spec is not None:
            if not isinstance(spec, Sharding):
                raise TypeError(
                    f"{name}: expected a Sharding, a PartitionSpec or None for each array, got "
                    f"{spec!r} of type {type(spec).__name__}. Pass NamedSharding(mesh, spec)."
                )
            if is_check and isinstance(spec, NamedSharding):
                alone = isinstance(spec.mesh, AbstractMesh) and not spec.mesh.empty
                if alone and current_trace() is EVAL:
                    spec = _over_mesh_of(leaf, spec)
                _check_auto(spec)
                _check_unmapped(spec)
                check_manual("with_sharding_constraint", leaf, spec)
                if isinstance(leaf, Tracer):
                    spec = spec.dividing(np.shape(leaf))
            if not is_check and isinstance(spec, NamedSharding):
                spec = spec.without_open_end(np.ndim(leaf))
            _check_fits(name, spec, tuple(np.shape(leaf)))
            if name == "reshard":
                _check_explicit("reshard", spec)
                leaf = _without_types(leaf, spec)
                spec = _keeping_auto(leaf, spec)
            if not isinstance(leaf, Tracer):
                check_devices_of(leaf, name, "a sharding", spec)
            if is_check and isinstance(spec, NamedSharding):
                spec = _constraint(leaf, spec)
                if by_axes and spec is not None and not context_mesh().empty:  # as JAX shows it
                    spec = NamedSharding(spec.mesh.abstract_mesh, spec.spec)
            elif isinstance(spec, NamedSharding) and spec.mesh.explicit_axes:
                open_ = (None,) * (np.ndim(leaf) - len(spec.spec))
                spec = spec.update(spec=spec.spec.update(partitions=(*spec.spec, *open_)))
        if name == "out_sharding" and isinstance(leaf, Tracer) and _lies_so(leaf.aval, spec):
            spec = None
        out.append(leaf if spec is None else constrained(leaf, spec))
    return tree.tree_unflatten(treedef, out)


def _check_unmapped(sharding: NamedSharding) -> None:
    """Raise ValueError where the spec of a constraint names axes that a shard_map around it maps
    its function over."""
    mesh = chosen_axes.get()
    manual = () if mesh is None else mesh.manual_axes
    if not manual:
        return
    named = [a for entry in sharding.spec for a in axes_of(entry) if a in manual]
    if named:
        raise ValueError(
            f"with_sharding_constraint: pspec {sharding.spec} contains a manual axes "
            f"{tuple(named)} of mesh which is not allowed: the function's value is one device's "
            "part along them. Name the mesh's other axes alone."
        )


def _check_fits(name: str, sharding: Sharding, shape: tuple) -> None:
    """Raise ValueError where an array of this shape cannot lie so; `name` was asked for it."""
    try:
        sharding._check_placed(shape)
    except ValueError as error:
        if name != "with_sharding_constraint":
            raise
        raise type(error)(
            f"One of with_sharding_constraint arguments is incompatible with its sharding "
            f"annotation {sharding}: {error}"
        ) from None


def _over_mesh_of(x: Any, sharding: NamedSharding) -> NamedSharding:
    """A sharding over axes alone, over the mesh that an array lies over."""
    if not isinstance(x, Array):
        raise ValueError(
            "Target sharding contains a `numjet.sharding.AbstractMesh` which requires the input "
            f"passed should be a `jax.Array`. Got {type(x)} with shape {np.shape(x)}."
        )
    own: Any = as_array(x).sharding
    if not isinstance(own, NamedSharding):
        raise TypeError(
            "The sharding on the input must be a `NamedSharding` since the target sharding has an "
            f"`AbstractMesh` in it. Got sharding type {type(own)} for shape {x.aval.str_short()}."
        )
    if own.mesh.shape_tuple != sharding.mesh.shape_tuple:
        raise ValueError(
            f"Mesh shape of the input {own.mesh.shape_tuple} does not match the mesh shape of the "
            f"target sharding {sharding.mesh.shape_tuple} for shape {x.aval.str_short()}."
        )
    return sharding.update(mesh=own.mesh)


def _without_types(x: Any, sharding: Any) -> Any:
    """A traced value whose type says nothing of axes that are not of type Explicit any more."""
    placed = x.aval.placed if isinstance(x, Tracer) else None
    mesh = getattr(sharding, "mesh", None)
    if placed is None or mesh is None or placed.mesh.shape_tuple != mesh.shape_tuple:
        return x
    return x if placed.mesh.axis_types == mesh.axis_types else mesh_cast_p.bind(x, mesh=mesh)


def _keeping_auto(x: Any, sharding: Any) -> Any:
    """`sharding`, along the Auto axes of its mesh as x lies already: `reshard` moves nothing along
    these. None where x stays as it is."""
    mesh = getattr(sharding, "mesh", None)
    if mesh is None or not mesh.auto_axes:
        return sharding
    if isinstance(x, Tracer):
        return sharding if mesh.explicit_axes else None
    own = getattr(x, "_sharding", None)
    if not isinstance(own, NamedSharding) or own.mesh.shape_tuple != mesh.shape_tuple:
        return sharding
    told, entries = [axes_of(e) for e in sharding.spec], []
    for i, entry in enumerate(own.spec):
        asked = told[i] if i < len(told) else ()
        kept = (*asked, *[a for a in axes_of(entry) if a in mesh.auto_axes])
        divides = x.shape[i] % math.prod([mesh.shape[a] for a in kept]) == 0
        entries.append(kept if divides else asked)
    entries += told[len(entries):]
    return sharding.update(spec=PartitionSpec(*[e or None for e in entries]))


def _lies_so(aval: Any, sharding: Any) -> bool:
    """Whether a type says already that a traced value lies so over Explicit axes."""
    if aval.placed is None or not isinstance(sharding, NamedSharding):
        return False
    if not sharding.mesh.are_all_axes_explicit:
        return False
    return aval.placed.mesh.shape_tuple == sharding.mesh.shape_tuple and (
        aval.over(sharding).placed == aval.placed
    )


def _check_explicit(what: str, sharding: Any) -> None:
    """Raise ValueError where a sharding names axes that are not of type Explicit."""
    if not isinstance(sharding, NamedSharding):
        return
    kinds = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_types, strict=True))
    _check_unconstrained(sharding)
    for axis in [a for entry in sharding.spec for a in axes_of(entry)]:
        if kinds[axis] is not AxisType.Explicit:
            raise ValueError(
                f"PartitionSpec passed to {what} cannot contain axis names that are of type Auto "
                f"or Manual. Got PartitionSpec: {sharding.spec} with axis name: {axis} of type: "
                f"AxisType.{kinds[axis].name}. Use lax.with_sharding_constraint, or device_put."
            )


def _check_unconstrained(sharding: NamedSharding) -> None:
    if PartitionSpec.UNCONSTRAINED in sharding.spec and not sharding.mesh.auto_axes:
        raise ValueError(
            f"{sharding.spec} cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`. "
            f"Got mesh axis_types: {sharding.mesh.axis_types}"
        )


def _asserts(mesh: Any) -> bool:
    """Whether a constraint over the mesh only looks at the type: here all axes are Explicit."""
    chosen = chosen_axes.get()
    here = context_mesh() if chosen is None else chosen
    return here.are_all_axes_explicit and mesh.are_all_axes_explicit


def _check_auto(sharding: NamedSharding) -> None:
    """Raise ValueError where a constraint names axes that are a part of types, or mapped here."""
    mesh = sharding.mesh
    if _asserts(mesh):
        return
    _check_unconstrained(sharding)
    named = {axis for entry in sharding.spec for axis in axes_of(entry)}
    if not named <= set(mesh.auto_axes):
        raise ValueError(
            "The spec of NamedSharding passed to with_sharding_constraint can only refer to Auto "
            f"axes of the mesh. Got spec={sharding.spec} and mesh={mesh.abstract_mesh}. You "
            "probably meant to use `reshard` API?"
        )


def _constraint(x: Any, sharding: NamedSharding) -> NamedSharding | None:
    """What a constraint asks for: of a traced value the Explicit axes that its type shows, and
    then its own; None where it was to be tested only, and holds."""
    if _asserts(sharding.mesh):
        _check_placed(x, sharding)
        return None
    placed = x.aval.placed if isinstance(x, Tracer) else None
    if placed is None or not sharding.mesh.explicit_axes:
        return sharding
    entries: list[Any] = []
    # The type's own spec: a layout leaves axes of one device out, which types show.
    typed, own = (
        [*spec, *[None] * (x.ndim - len(spec))] for spec in (x.aval.sharding.spec, sharding.spec)
    )
    for shown, entry in zip(typed, own, strict=True):
        axes = (*axes_of(shown), *axes_of(entry))
        entries.append(axes if len(axes) > 1 else axes[0] if axes else entry)
    return sharding.update(spec=sharding.spec.update(partitions=entries))


def _check_placed(x: Any, sharding: NamedSharding) -> None:
    """Raise AssertionError unless the type of `x` says that it lies as a sharding says."""
    aval = as_array(x).aval
    if aval.over(sharding).placed != aval.placed:
        raise AssertionError(
            "`with_sharding_constraint` acts as an assert when all axes of mesh are of type "
            f"`Explicit`. The array sharding: {aval.sharding.spec} did not match the sharding "
            f"provided: {sharding.spec}. Use numjet.reshard to change the sharding."
        )


def over_current_mesh(places: Any, is_place: Callable[[Any], bool]) -> Any:
    """The pytree `places` with shardings over the current mesh for its PartitionSpecs."""

    def over(place: Any) -> Any:
        if not isinstance(place, PartitionSpec):
            return place
        return of_context("device_put", place, ValueError)

    is_leaf = lambda n: is_place(n) or isinstance(n, PartitionSpec)  # noqa: E731
    return tree.tree_map(over, places, is_leaf=is_leaf)


hooks.laid_out, hooks.place_again = laid_out, _place_again
hooks.over_current_mesh, hooks.sharding_of_nowhere = over_current_mesh, of_nowhere
