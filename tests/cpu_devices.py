"""Virtual devices of this process, for as long as tests need them."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def cpu_devices(count: int) -> Iterator[list[Any]]:
    """So many devices, which are given; afterwards as many as before."""
    import numjet  # conftest.py, which imports this, sets variables that numjet reads first

    before = numjet.config.num_cpu_devices
    numjet.config.update("num_cpu_devices", count)
    try:
        yield numjet.devices()[:count]
    finally:
        numjet.config.update("num_cpu_devices", before)
