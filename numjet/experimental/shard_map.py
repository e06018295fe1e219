"""numjet.experimental.shard_map: `shard_map` where programs used to import it from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.api.shard_map import shard_map as _shard_map


def shard_map(
    f: Callable, mesh: Any, in_specs: Any, out_specs: Any, check_rep: bool = True, **_: Any
) -> Callable:
    """As `numjet.shard_map`, with positional arguments."""
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)
