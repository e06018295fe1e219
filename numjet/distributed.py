"""numjet.distributed: several processes. There is one so far, and every function says so."""

from __future__ import annotations

from typing import Any


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: Any = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Not supported. Raises NotImplementedError."""
    raise NotImplementedError(
        "distributed.initialize: numjet runs in one process, on all of its cores. Leave the call "
        "out, and use vmap, pmap or a mesh of virtual devices (config num_cpu_devices)."
    )


def shutdown() -> None:
    """Nothing was started, so there is nothing to shut down."""


def is_initialized() -> bool:
    """Whether several processes work together: never."""
    return False


__all__ = ["initialize", "is_initialized", "shutdown"]
