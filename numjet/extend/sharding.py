"""Shardings of XLA's own kind. There are none: use `numjet.sharding.NamedSharding`."""

from __future__ import annotations

from typing import Any


class GSPMDSharding:
    """Not there: it is made of XLA's description of a sharding."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError(
            "GSPMDSharding holds XLA's description of a sharding. Use sharding.NamedSharding(mesh, "
            "spec)."
        )


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """Not there: raises NotImplementedError, as for `GSPMDSharding`."""
    raise _absent("get_hlo_sharding_from_serialized_proto")


def get_op_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """Not there: raises NotImplementedError, as for `GSPMDSharding`."""
    raise _absent("get_op_sharding_from_serialized_proto")


def get_serialized_proto_from_hlo_sharding(sharding: Any) -> Any:
    """Not there: raises NotImplementedError, as for `GSPMDSharding`."""
    raise _absent("get_serialized_proto_from_hlo_sharding")


def _absent(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"extend.sharding.{name}: XLA's description of a sharding is neither read nor written. Use "
        "sharding.NamedSharding(mesh, spec)."
    )
