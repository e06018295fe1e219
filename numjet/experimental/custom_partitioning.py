"""numjet.experimental.custom_partitioning: functions whose authors say how they are cut."""

from numjet.api.maps.custom_partition import (
    BATCHING as BATCHING,
    ArrayMapping as ArrayMapping,
    CompoundFactor as CompoundFactor,
    SdyShardingRule as SdyShardingRule,
    custom_partitioning as custom_partitioning,
)
from numjet.ops.custom_partition import custom_partitioning_p as custom_partitioning_p

__all__ = [
    "BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "custom_partitioning",
    "custom_partitioning_p",
]  # fmt: skip
