"""How arrays lie over several devices, as Shardy's annotations.

A `Layout` says of each dimension by which axes of a mesh it is cut; a mesh is the sizes of its axes
and the order of its devices among those of the program. For `xla.backend` and `xla.hlo`. Shardings
are taken by what they have (`mesh` and `spec`, or `devices` and `axis`), since
`api.placement.sharding` lies above.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.base.record import NamedTuple


class Layout(NamedTuple):
    """axes: name and size each; order: the place of each device of the mesh among the program's,
    None where they are the same; dims: the axes that cut each dimension, None where that is open.
    """

    axes: tuple[tuple[str, int], ...]
    order: tuple[int, ...] | None
    dims: tuple[tuple[str, ...] | None, ...]


def everywhere(ndim: int, devices: tuple) -> Layout:
    """The whole array on each device."""
    return Layout((("devices", len(devices)),), None, ((),) * ndim)


def layout_of(sharding: Any, ndim: int, devices: tuple) -> Layout:
    """The layout that a sharding is for the program of these devices.

    Raises ValueError where the sharding is over other devices.
    """
    mesh = getattr(sharding, "mesh", None)
    if mesh is None:
        members = tuple(getattr(sharding, "devices", ()))
        if len(members) < 2:
            return everywhere(ndim, devices)
        dims: list[Any] = [()] * ndim
        dims[sharding.axis] = ("devices",)
        return Layout((("devices", len(members)),), _order(members, devices), tuple(dims))
    names = {name: f"a{i}" for i, name in enumerate(mesh.axis_names)}
    axes = tuple([(names[n], size) for n, size in mesh.shape.items()])
    dims = []
    for i in range(ndim):
        entry = sharding.spec[i] if i < len(sharding.spec) else None
        if entry is type(sharding.spec).UNCONSTRAINED:
            dims.append(None)
        else:
            cut = () if entry is None else entry if isinstance(entry, tuple | list) else (entry,)
            dims.append(tuple([names[n] for n in cut]))
    # A mesh of axes alone is over the devices of the program.
    members = getattr(mesh, "devices_in_order", devices)
    return Layout(axes, _order(members, devices), tuple(dims))


def _order(members: tuple, devices: tuple) -> tuple[int, ...] | None:
    if members == devices:
        return None
    places = {device: i for i, device in enumerate(devices)}
    if len(members) != len(devices) or not places.keys() >= set(members):
        raise ValueError(
            f"Received incompatible devices: a sharding over {list(members)} in a computation on "
            f"{list(devices)}. Move the arrays to the same devices with numjet.device_put."
        )
    return tuple([places[m] for m in members])


class Meshes:
    """The meshes that the layouts of a module name."""

    def __init__(self) -> None:
        self._names: dict[tuple, str] = {}

    def text(self, layout: Layout) -> str:
        """The attribute that a layout is."""
        name = self._names.setdefault(layout[:2], f"mesh{len(self._names)}")
        dims = ", ".join(
            "{?}" if axes is None else "{" + ", ".join(f'"{a}"' for a in axes) + "}"
            for axes in layout.dims
        )
        return f"#sdy.sharding<@{name}, [{dims}]>"

    def definitions(self) -> Sequence[str]:
        """Their lines, at the head of the module."""
        lines = []
        for (axes, order), name in self._names.items():
            sizes = ", ".join(f'"{a}"={n}' for a, n in axes)
            ids = "" if order is None else f", device_ids=[{', '.join(map(str, order))}]"
            lines.append(f'"sdy.mesh"() {{mesh = #sdy.mesh<[{sizes}]{ids}>, sym_name = "{name}"}} '
                         ": () -> ()")
        return lines
