"""Lowering: one fused group to one loop-IR kernel and the step that runs it.

`lower(build, fusion, group)` chooses the loops: flat or nested for elementwise groups
(`lower_flat`), a row at a time for reductions over the last axes (`lower_rows`), blocks of columns
for the others (`lower_columns`).
"""

from __future__ import annotations

from typing import Any

from numjet.cpu import lower_columns, lower_flat, lower_rows
from numjet.cpu.lower_core import Lowering
from numjet.cpu.program import Step


def lower(build: Any, fusion: Any, group: Any) -> list[Step]:
    """The steps (one kernel) that compute the stored values of `group`."""
    lowering = Lowering(build, fusion, group)
    if group.reduced is None or not any(m.row for m in lowering.members):
        return lower_flat.lower(lowering)
    last = (
        max(a for a, n in enumerate(group.shape) if n > 1)
        if any(n > 1 for n in group.shape)
        else -1
    )
    if last < 0 or last in group.reduced:
        return lower_rows.lower(lowering)
    return lower_columns.lower(lowering)
