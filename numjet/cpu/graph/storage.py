"""Programs on values that kernels do not hold, before they are compiled: narrow dtypes, and PRNG
keys of other implementations than threefry.

`backend` asks for it where a program has any. In the rewritten program a narrow value is the uint8
array of its bits (`graph.narrow`), and an array of keys the array of their words
(`ops.stored_keys`).
"""

from __future__ import annotations

from typing import Any

from numjet.core import narrow
from numjet.core.avals import ShapedArray
from numjet.core.dtypes import uint8
from numjet.core.jaxpr import ClosedJaxpr
from numjet.cpu.graph.narrow import computed
from numjet.ops.stored_keys import Storage
from numjet.transforms.stage import StageTrace


class _Bytes(Storage):
    """Narrow values as bytes, keys as their words."""

    def aval(self, aval: Any) -> Any:
        return ShapedArray(aval.shape, uint8) if aval.narrow else super().aval(aval)

    def other(
        self, trace: StageTrace, eqn: Any, values: list, avals: list, results: list
    ) -> list:
        if not any([a.narrow for a in (*avals, *results)]) or eqn.primitive.name in narrow.MOVES:
            return self.record(trace, eqn, values, eqn.params)
        return computed(trace, eqn, values, avals, results)


_STORAGE = _Bytes()


def rewritten(closed: ClosedJaxpr) -> ClosedJaxpr:
    """`closed` on what values are stored as, its operands and results too."""
    return _STORAGE.rewritten(closed)
