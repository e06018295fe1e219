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
