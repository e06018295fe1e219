"""A mesh of devices seen as a mesh of processes.

For `api.placement.mesh`. What would break it: devices of a process that are no block of the mesh,
which are refused.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from numjet.base.record import record


@record(frozen=True, eq=False)
class Processes:
    """A mesh seen as a mesh of processes: how many there are along each axis, and which."""

    sizes: dict
    ranks: np.ndarray


def processes_of(mesh: Any) -> Processes:
    """The processes of a mesh's devices. Raises NotImplementedError where those of a process are no
    block of the mesh."""
    table = np.vectorize(lambda d: d.process_index, otypes=[int])(mesh.devices)
    mine = np.argwhere(table == table.flat[0])
    inner = [int(k) for k in mine.max(0) + 1]
    counts = [n // k for n, k in zip(table.shape, inner, strict=True)]
    even = all(n % k == 0 for n, k in zip(table.shape, inner, strict=True))
    ranks = table[tuple([slice(None, None, k) for k in inner])]
    whole = even and bool((np.kron(ranks, np.ones(inner, int)) == table).all())
    if not whole or len(set(ranks.flat)) != ranks.size:
        raise NotImplementedError(
            f"{mesh}: the devices of a process must be a block of the mesh, got the processes "
            f"{table.tolist()}. Order the devices so that those of a process lie together."
        )
    return Processes(dict(zip(mesh.axis_names, counts, strict=True)), ranks)
