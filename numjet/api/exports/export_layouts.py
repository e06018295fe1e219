"""How exported functions say where arguments and results lie: by axes, whose devices a call tells.

For `numjet.export`. What would break it: a program that names devices of the process which exported
it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numjet.api.placement.devices import SingleDeviceSharding, WhereRun, bound, mark, place
from numjet.api.placement.mesh import AbstractMesh, AxisType, Mesh
from numjet.api.placement.sharding import NamedSharding, PartitionSpec
from numjet.base import config
from numjet.core.array import ArrayImpl
from numjet.core.jaxpr import ClosedJaxpr, Eqn
from numjet.core.sharded import axes_named, constraint_of, counts_named, place_of
from numjet.core.trace import Tracer
from numjet.transforms.stage import with_jaxprs


@dataclass(frozen=True)
class Layout:
    """How an array lies on any mesh of these axes. is_type: its type says so, as axes are Explicit.
    """

    axes: tuple[tuple[str, int], ...]
    spec: Any
    is_type: bool

    def on(self, mesh: Any) -> NamedSharding:
        """The sharding over a mesh. Raises ValueError where the mesh has other axes."""
        if tuple(mesh.shape.items()) != self.axes:
            raise ValueError(
                f"NamedSharding new mesh {mesh} does not match the mesh used for export, whose "
                f"axes are {dict(self.axes)}. Make one with make_mesh."
            )
        return NamedSharding(mesh, self.spec)

    def marked(self, x: Any) -> Any:
        """A traced value that lies so, on whichever devices the program runs."""
        if self.is_type or not isinstance(x, Tracer):
            return x
        whole = math.prod([size for _, size in self.axes]) == 1
        return mark(x, _WHOLE if whole else NamedSharding(_axes(self.axes), self.spec))


def laid_out(shardings: Sequence[Any]) -> tuple[Layout | None, ...]:
    """The layouts that shardings over meshes say; None for others."""
    return tuple([
        Layout(tuple(s.mesh.shape.items()), s.spec, AxisType.Explicit in s.mesh.axis_types)
        if isinstance(s, NamedSharding) else None
        for s in shardings
    ])  # fmt: skip


def devices_of(leaves: Sequence[Any], layouts: Sequence[Any], closed: ClosedJaxpr) -> int:
    """How many devices arguments lie over, for a program exported for them; or values are laid out
    over, by what `jit` was told and by constraints within."""
    found = [*[getattr(x, "sharding", None) for x in leaves], *layouts, constraint_of(closed)]
    return max([s.mesh.size for s in found if isinstance(s, NamedSharding)], default=1)


def check_calls(closed: ClosedJaxpr, count: int) -> None:
    """Raise ValueError where a program for `count` devices calls one exported for others."""
    for named in counts_named(closed):
        named.check(count)


def portable(closed: ClosedJaxpr, count: int, told: Sequence[Any]) -> ClosedJaxpr:
    """A program for `count` devices that names none: constraints are by axes alone, those of one
    device say that values are whole. Where the axes of several meshes have the same sizes, they are
    called as the first of the layouts `told` calls them."""
    first = next((_axes(s.axes) for s in told if s is not None), None)

    named = constraint_of(closed) or axes_named(closed) or place_of(closed)
    return _renamed(closed, count, first) if named is not None else closed


def _renamed(closed: ClosedJaxpr, count: int, first: AbstractMesh | None) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    eqns = [eqn.replace(params=_renamed_params(eqn, count, first)) for eqn in jaxpr.eqns]
    return ClosedJaxpr(jaxpr.replace(eqns=eqns), closed.consts)


def _renamed_params(eqn: Eqn, count: int, first: AbstractMesh | None) -> dict:
    found = {
        name: with_jaxprs(value, lambda closed: _renamed(closed, count, first))
        for name, value in eqn.params.items()
    }
    sharding: Any = found.get("sharding")
    mesh = getattr(sharding, "mesh", None)
    if isinstance(sharding, SingleDeviceSharding) or mesh is not None and count == 1:
        return {**found, "sharding": _WHOLE}
    if mesh is None or mesh.explicit_axes:
        return found
    if first is not None and first.axis_sizes == mesh.axis_sizes:
        ndim = eqn.outvars[0].aval.ndim
        own = sharding if _is_open(sharding) else _over(sharding, first, ndim)
    else:
        own = sharding.update(mesh=mesh.abstract_mesh)
    return {**found, "sharding": own}


def _is_open(sharding: Any) -> bool:
    """Whether a constraint leaves the layout of a dimension open."""
    return any([entry is PartitionSpec.UNCONSTRAINED for entry in sharding.spec])


def _axes(axes: Sequence[tuple[str, int]]) -> AbstractMesh:
    names, sizes = zip(*axes) if axes else ((), ())
    return AbstractMesh(sizes, names)


_WHOLE = NamedSharding(AbstractMesh((), ()), PartitionSpec())


def ran(x: Any, name: str, count: int) -> Any:
    """A result of a program that was exported for so many devices, bound to where it ran."""
    if isinstance(x, Tracer):
        return x if config.jax_form() else mark(x, WhereRun(name, count))
    return bound(x) if isinstance(x, ArrayImpl) else x


def over_mesh_of(leaves: Sequence[Any], outs: list, told: Sequence[Any]) -> list:
    """The results of a call; those of which nothing was told say the axes of the mesh that the
    arguments lie over, where these have the sizes of the export's."""
    meshes = [getattr(getattr(x, "_sharding", None), "mesh", None) for x in leaves]
    mesh = next((m for m in meshes if isinstance(m, Mesh)), None)
    if mesh is None:
        return [bound(x) if isinstance(x, ArrayImpl) else x for x in outs]
    return [x if t is not None else _named(x, mesh) for x, t in zip(outs, told, strict=True)]


def _named(x: Any, mesh: Mesh) -> Any:
    own: Any = getattr(x, "_sharding", None)
    if not isinstance(own, NamedSharding) or own.mesh == mesh:
        return x
    if own.mesh.devices_in_order != mesh.devices_in_order or (
        own.mesh.axis_sizes != mesh.axis_sizes
    ):
        return x
    return place(x, _over(own, mesh, x.ndim))


def _over(sharding: NamedSharding, mesh: Any, ndim: int) -> NamedSharding:
    """A sharding over the axes of another mesh of the same sizes."""
    names = dict(zip(sharding.mesh.axis_names, mesh.axis_names, strict=True))
    entries = [tuple([names[a] for a in axes]) for axes in sharding.layout(ndim)]
    return NamedSharding(mesh, PartitionSpec()).of_layout(entries)
