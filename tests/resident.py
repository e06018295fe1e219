"""The memory that a process takes."""
from __future__ import annotations

import os

STATM = "/proc/self/statm"


def resident() -> int:
    """The bytes of this process that lie in memory, as Linux has them in `STATM`."""
    with open(STATM) as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
