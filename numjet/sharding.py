"""numjet.sharding: meshes of devices and layouts of arrays over them."""

from numjet.api.placement.devices import (
    PmapSharding as PmapSharding,
    Sharding as Sharding,
    SingleDeviceSharding as SingleDeviceSharding,
)
from numjet.api.placement.mesh import (
    AbstractDevice as AbstractDevice,
    AbstractMesh as AbstractMesh,
    AxisType as AxisType,
    Mesh as Mesh,
    get_abstract_mesh as get_abstract_mesh,
    get_mesh as get_mesh,
    set_mesh as set_mesh,
    set_mesh as use_mesh,
    use_abstract_mesh as use_abstract_mesh,
)
from numjet.api.placement.reshard import (
    auto_axes as auto_axes,
    explicit_axes as explicit_axes,
    reshard as reshard,
)
from numjet.api.placement.sharding import (
    NamedSharding as NamedSharding,
    P as P,
    PartitionSpec as PartitionSpec,
    make_single_device_sharding as make_single_device_sharding,
)
from numjet.core.shared import ManualAxisType as ManualAxisType

__all__ = [
    "AbstractDevice",
    "AbstractMesh",
    "AxisType",
    "ManualAxisType",
    "Mesh",
    "NamedSharding",
    "P",
    "PartitionSpec",
    "PmapSharding",
    "Sharding",
    "SingleDeviceSharding",
    "auto_axes",
    "explicit_axes",
    "get_abstract_mesh",
    "get_mesh",
    "make_single_device_sharding",
    "reshard",
    "set_mesh",
    "use_abstract_mesh",
    "use_mesh",
]


def __dir__() -> list[str]:
    return [*__all__]
