"""References under `vmap` in jaxprs that are to be read: one example's part of a reference outside.

Where `make_jaxpr` shows references (`core.ref_equations`) a reference that is mapped, or made in a
mapped function, is read and written where all examples' values lie: `a[:,0] <- b`. What would break
it: an index with arrays, which is applied to what is read of all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core import ref_equations as equations
from numjet.core.primitive import REGISTRY
from numjet.core.refs import AbstractRef, Ref, new_ref, variable_of, whole
from numjet.core.structural import broadcast_batch, moveaxis
from numjet.core.trace import EVAL, Tracer, current_trace, set_trace


class MappedRef(Ref):
    """An example's part of `outer`, whose axis `dim` is mapped by the trace `home`; `tracer(value,
    dim)` makes one of its values."""

    __slots__ = ("outer", "dim", "tracer")
    home: Any

    def __init__(self, outer: Ref, dim: int, trace: Any, tracer: Any, aval: Any) -> None:
        self.aval = AbstractRef(aval, outer.aval.memory_space, outer.aval.kind)
        self.home, self.origin = trace, outer.origin
        self.outer, self.dim, self.tracer = outer, dim, tracer

    @property
    def _value(self) -> Any:
        with set_trace(self.home.parent):
            whole = self.outer.value()
        return self.tracer(whole, self.dim)

    @_value.setter
    def _value(self, value: Any) -> None:
        with set_trace(self.home.parent):
            self.outer.put(self._whole(value, self.dim))

    def _whole(self, value: Any, dim: int) -> Any:
        """All examples' values, along the axis `dim`."""
        if isinstance(value, Tracer) and value.owner is self.home:
            return moveaxis(value.value, value.dim, dim)  # type: ignore[attr-defined]
        return moveaxis(broadcast_batch(value, self.home.axis.size), 0, dim)

    def _place(self, idx: Any) -> tuple[tuple, int] | None:
        """The index of the whole, and the axis of examples in what is there; None where it is
        another kind of index."""
        if current_trace() is not self.home:
            return None
        if whole(idx):
            return (...,), self.dim
        index = equations.indexer(self._index(idx), self.shape)
        if index is None or index.int_indexer_shape:
            return None
        if equations.owned_by(index, [self.home]):
            return self._mapped_place(index)
        parts = list(index.index())
        before = [type(s) is equations.Slice for s in index.indices[: self.dim]]
        return (*parts[: self.dim], slice(None), *parts[self.dim :]), sum(before)

    def _mapped_place(self, index: equations.NDIndexer) -> tuple[tuple, int] | None:
        """`_place` for an index whose numbers are all mapped."""
        parts, at = list(index.index()), []
        for i, (part, entry) in enumerate(zip(parts, index.indices, strict=True)):
            if type(entry) is not equations.Slice:
                if not (isinstance(part, Tracer) and part.owner is self.home):
                    return None
                parts[i] = part.value  # type: ignore[attr-defined]
                at.append(i + (i >= self.dim))
            elif entry.is_dynamic_start:
                return None
        params = {"shape": (self.home.axis.size,), "dtype": np.dtype(np.int32), "dimension": 0}
        with set_trace(self.home.parent):
            examples = REGISTRY["iota"].bind(**params)
        at = sorted([*at, self.dim])
        joined = at == [*range(at[0], at[-1] + 1)]  # else their axis comes first
        place = (*parts[: self.dim], examples, *parts[self.dim :])
        return place, at[0] if joined else 0

    def get(self, idx: Any = None) -> Any:
        place = self._place(idx)
        if place is None:
            return super().get(idx)
        with set_trace(self.home.parent):
            found = self.outer.get(place[0])
        return self.tracer(found, place[1])

    def swap(self, value: Any, idx: Any = None) -> Any:
        place = self._place(idx)
        if place is None:
            return super().swap(value, idx)
        value = self._fitting("swap", value, self._part(idx))
        with set_trace(self.home.parent):
            old = self.outer.swap(self._whole(value, place[1]), place[0])
        return self.tracer(old, place[1])

    def addupdate(self, x: Any, idx: Any = None) -> None:
        place = self._place(idx)
        if place is None:
            super().addupdate(x, idx)
            return
        x = self._fitting("addupdate", x, self._part(idx))
        with set_trace(self.home.parent):
            self.outer.addupdate(self._whole(x, place[1]), place[0])


def shown(ref: Any) -> bool:
    """Whether an argument of a mapped function is a reference that equations can name here."""
    return isinstance(ref, Ref) and current_trace() is not EVAL and variable_of(ref) is not None


def part(ref: Ref, dim: Any) -> Ref:
    """What a mapped function is given for such an argument, whose axis `dim` is mapped."""
    trace: Any = current_trace()
    return MappedRef(ref, dim, trace, trace.tracer, ref.aval.inner_aval.dec_rank(None, dim))


def made(trace: Any, value: Any, tracer: Any, params: dict) -> Ref | None:
    """A new reference of a mapped value; None where references are not shown."""
    parent = trace.parent
    if parent.staging is not parent or getattr(value, "owner", None) is not trace:
        return None
    with set_trace(parent):
        outer = new_ref(value.value, **params)
    return MappedRef(outer, value.dim, trace, tracer, value.aval)
