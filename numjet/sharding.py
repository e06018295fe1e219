"""numjet.sharding: meshes of devices and layouts of arrays over them."""

from numjet.api.devices import (
    PmapSharding as PmapSharding,
    Sharding as Sharding,
    SingleDeviceSharding as SingleDeviceSharding,
)
from numjet.api.sharding import (
    AbstractMesh as AbstractMesh,
    AxisType as AxisType,
    Mesh as Mesh,
    NamedSharding as NamedSharding,
    P as P,
    PartitionSpec as PartitionSpec,
    get_abstract_mesh as get_abstract_mesh,
    get_mesh as get_mesh,
    set_mesh as set_mesh,
    set_mesh as use_mesh,
)

__all__ = [
    "AbstractMesh",
    "AxisType",
    "Mesh",
    "NamedSharding",
    "P",
    "PartitionSpec",
    "PmapSharding",
    "Sharding",
    "SingleDeviceSharding",
    "get_abstract_mesh",
    "get_mesh",
    "set_mesh",
    "use_mesh",
]
