"""Which of how many processes this one is, and what carries messages between them.

`distributed.initialize` sets it, once, before arrays are made. `transport` is None for one process.
"""
from __future__ import annotations

from typing import Any


class Cluster:
    """index: this process's number. count: how many there are. transport: what the collectives of
    programs run on (`spread.mpi.Transport`)."""

    index = 0
    count = 1
    transport: Any = None
