"""What a benchmark row is: its inputs, its program for each package, the bar it has to meet.

Imported by the driver and by every peer's worker, so it needs NumPy only. The rows themselves are
in `rows/`, one module a topic. numjet and JAX run the identical code, `Row.array`, which takes a
`Space` (see peers.py); the other packages have programs of their own in `Row.others`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

ROWS: dict[str, Row] = {}
# Bars of the geometric mean of the ratios to JAX, of groups of rows and of all rows.
# In how many ways the bytes of a row are moved to find what memory allows (see physical.py).
WAYS = 4
GROUP_BARS = {"science": 0.5, "long": 0.4, "": 0.35}


@dataclass(frozen=True)
class Row:
    """One line of the table.

    inputs(rng) gives the arguments as a tuple of trees of NumPy arrays, drawn from `rng`.
    array(space), others[peer](module) build the function of these arguments that is timed.
    bars: limits on numjet's time over another's: "jax", "numpy", "best" (the fastest peer),
    "row:NAME" (numjet's own time of another row); "limit" is the least fraction of the physical
    limit, "seconds" an absolute time (of one unit, see `per`), "bytes" the same of memory.
    reads, writes, flops: what the row has to move and to compute at least; they give the limit.
    per: units a call does (equations, say); reported times are of one unit.
    block: wait for each result (else only for the last of a batch, which times the dispatch).
    blas: the peers may leave library threads spinning, so they are given time to fall asleep.
    compare: peers whose results have to agree (None: all).
    cold: what a fresh process measures, with cold.py, or with memory.py where the unit is "bytes".
    """

    name: str
    title: str
    group: str
    inputs: Callable[[np.random.Generator], tuple]
    array: Callable[[Any], Callable]
    others: dict[str, Callable] = field(default_factory=dict)
    bars: dict[str, float] = field(default_factory=dict)
    reads: float = 0
    writes: float = 0
    flops: float = 0
    double: bool = False
    x64: bool = False
    per: int = 1
    block: bool = True
    blas: bool = False
    compare: tuple[str, ...] | None = None
    tolerance: float | None = None
    only: tuple[str, ...] | None = None
    repeats: int = 7
    cold: str = ""
    unit: str = "seconds"

    def arguments(self) -> tuple:
        """The random inputs, the same in every process."""
        return self.inputs(np.random.default_rng(zlib.crc32(self.name.encode())))

    def peers(self) -> list[str]:
        """The packages that have a program for this row."""
        if self.only is not None:
            return list(self.only)
        return ["numjet", "jax", *self.others]


def row(name: str, title: str, group: str, **options: Any) -> None:
    """Register a row."""
    if name in ROWS:
        raise ValueError(f"two rows are called {name!r}")
    options.setdefault("inputs", lambda rng: ())
    ROWS[name] = Row(name, title, group, **options)


def select(wanted: str) -> list[Row]:
    """The rows named in a comma-separated list: by name, by group or by the name's beginning."""
    if not wanted:
        return list(ROWS.values())
    names = [word.strip() for word in wanted.split(",") if word.strip()]
    for word in names:
        if not any(matches(row, word) for row in ROWS.values()):
            known = ", ".join(ROWS)
            raise SystemExit(f"no row is called {word!r}. There are: {known}")
    return [row for row in ROWS.values() if any(matches(row, word) for word in names)]


def matches(row: Row, word: str) -> bool:
    return word in (row.name, row.group) or row.name.startswith(word + "_")
