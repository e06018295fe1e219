"""numjet.experimental.topologies: the devices that programs are compiled for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from numjet.api.placement.devices import devices as _devices
from numjet.api.placement.mesh import AxisType as _AxisType, Mesh as _Mesh
from numjet.experimental.mesh_utils import create_device_mesh as _create_device_mesh


class TopologyDescription:
    """Devices that programs may be compiled for. devices: a list of them.

    >>> import numjet as nj
    >>> from numjet.experimental import topologies
    >>> topologies.TopologyDescription(nj.devices()).devices == nj.devices()
    True
    """

    def __init__(self, devices: list[Any]) -> None:
        self.devices = devices

    def __repr__(self) -> str:
        return f"TopologyDescription({self.devices})"


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The devices of a platform, by default those that there are.

    platform: its name. Raises RuntimeError where it has no devices here.

    >>> from numjet.experimental import topologies
    >>> topologies.get_attached_topology().devices[0].platform
    'cpu'
    """
    return TopologyDescription(_devices(platform))


def get_topology_desc(
    topology_name: str = "", platform: str | None = None, **kwargs: Any
) -> NoReturn:
    """Not there: raises NotImplementedError, as programs are compiled for devices that are here.

    topology_name, platform, kwargs: of the devices that are meant. RuntimeError for a platform that
    has none here. `numjet.doctor` and docs/gpu.md say what compiles for others.
    """
    if platform is not None:
        _devices(platform)
    raise NotImplementedError(
        f"topology not implemented for {platform or 'devices that are not here'}: programs are "
        "compiled for the devices of get_attached_topology()."
    )


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: tuple[str, ...],
    *,
    contiguous_submeshes: bool = False,
) -> _Mesh:
    """All devices of a topology as a mesh, whose axes are of type Auto.

    mesh_shape: an integer for each axis of axis_names. contiguous_submeshes: of how a TPU's devices
    are wired; it changes nothing here. Raises ValueError for another number of devices.

    >>> from numjet.experimental import topologies
    >>> here = topologies.get_attached_topology()
    >>> topologies.make_mesh(here, (len(here.devices),), ("x",)).axis_names
    ('x',)
    """
    table = _create_device_mesh(mesh_shape, topo.devices, contiguous_submeshes=contiguous_submeshes)
    return _Mesh(table, axis_names, (_AxisType.Auto,) * len(axis_names))


__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]
