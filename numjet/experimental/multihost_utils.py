"""numjet.experimental.multihost_utils: what programs for several processes call, for the one
process there is."""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.base import tree


def sync_global_devices(name: str) -> None:
    """Wait for the other processes: there are none."""
    del name


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The values of process 0: this one's."""
    del is_source
    return tree.tree_map(np.asarray, in_tree)


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The values of all processes, stacked along a new axis (or, `tiled`, joined along the
    first)."""
    return tree.tree_map(
        lambda x: np.asarray(x) if tiled else np.expand_dims(np.asarray(x), 0), in_tree
    )


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Check that all processes hold equal values: the one does."""
    del in_tree, fail_message
