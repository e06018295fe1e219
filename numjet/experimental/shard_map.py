"""numjet.experimental.shard_map: `shard_map` where programs used to import it from, which warns."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

from numjet.api.maps.shard_map import shard_map as _shard_map


def _old(
    f: Callable, mesh: Any, in_specs: Any, out_specs: Any, check_rep: bool = True
) -> Callable:
    """As `numjet.shard_map`, with positional arguments."""
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)


_old.__name__ = _old.__qualname__ = "shard_map"


def _module(frame: Any) -> str:
    return str(frame.f_globals.get("__name__", ""))


def __getattr__(name: str) -> Any:
    if name != "shard_map":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _module(frame).startswith("numjet."):
        level, frame = level + 1, frame.f_back  # under JAX's name a module of ours is between
        while frame.f_back is not None and _module(frame).startswith("importlib."):
            frame = frame.f_back  # which warnings do not count
    warnings.warn(
        "experimental.shard_map is deprecated. Use numjet.shard_map instead.",
        DeprecationWarning, stacklevel=level,
    )  # fmt: skip
    return _old
