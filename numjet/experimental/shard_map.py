"""numjet.experimental.shard_map: `shard_map` where programs used to import it from, which warns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.api.maps.shard_map import shard_map as _shard_map
from numjet.experimental.former import warn_importer as _warn_importer


def _old(
    f: Callable, mesh: Any, in_specs: Any, out_specs: Any, check_rep: bool = True
) -> Callable:
    """As `numjet.shard_map`, with positional arguments."""
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)


_old.__name__ = _old.__qualname__ = "shard_map"


def __getattr__(name: str) -> Any:
    if name != "shard_map":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _warn_importer("experimental.shard_map is deprecated. Use numjet.shard_map instead.")
    return _old
