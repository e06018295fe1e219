"""numjet.distributed: several processes. There is one so far, and every function says so."""

from __future__ import annotations

from typing import Any


def initialize(*_: Any, **__: Any) -> None:
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
