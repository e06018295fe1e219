"""numjet.sharding: meshes of devices and layouts of arrays over them."""

from numjet.api.devices import (
    PmapSharding as PmapSharding,
    Sharding as Sharding,
    SingleDeviceSharding as SingleDeviceSharding,
)
from numjet.api.sharding import (
    AbstractDevice as AbstractDevice,
    AbstractMesh as AbstractMesh,
    AxisType as AxisType,
    ManualAxisType as ManualAxisType,
    Mesh as Mesh,
    NamedSharding as NamedSharding,
    P as P,
    PartitionSpec as PartitionSpec,
    auto_axes as auto_axes,
    explicit_axes as explicit_axes,
    get_abstract_mesh as get_abstract_mesh,
    get_mesh as get_mesh,
    make_single_device_sharding as make_single_device_sharding,
    reshard as reshard,
    set_mesh as set_mesh,
    set_mesh as use_mesh,
    use_abstract_mesh as use_abstract_mesh,
)

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
