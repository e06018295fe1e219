"""Abstract values: what is known of an array before it is computed.

Avals are interned: two are equal exactly when they are the same object, so dispatch compares
identities. Never build one by other means than calling the class.
"""

from __future__ import annotations

import contextlib
import math
import weakref
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from numjet.base import locks
from numjet.core import dtypes, hooks
from numjet.core.dims import DimExpr
from numjet.core.memo import Memo
from numjet.core.shared import NOTHING_MANUAL, ManualAxisType, Shared


class AbstractValue:
    """What is known of a value before it is computed."""

    __slots__ = ()


class ShapedArray(AbstractValue):
    """Shape, dtype and weak type of an array.

    `weak_type` marks values that came from Python scalars: their dtype gives way in promotion.
    `narrow`: computed with in a wider dtype (`core.narrow`). `placed`: the axes of a mesh, of type
    Explicit, that cut the array's, and sums over such axes, as a sharding over that mesh; None
    where there are none.
    `manual_axis_type`: over which axes of the shard_maps around the value differs. Only `typeof`
    and who made an aval so knows; operations make avals without. The other arguments are understood
    and left out.
    """

    __slots__ = (
        "shape", "dtype", "weak_type", "ndim", "size", "narrow", "placed", "manual_axis_type",
        "_tangent", "__weakref__",
    )  # fmt: skip
    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    ndim: int
    size: int
    narrow: bool
    placed: Any
    manual_axis_type: ManualAxisType
    _tangent: Any
    _known: dict[tuple, ShapedArray] = Memo("avals", 8192)

    def __new__(
        cls, shape: tuple[int, ...], dtype: Any, weak_type: bool = False, **more: Any
    ) -> ShapedArray:
        if more:
            asked = more.get("sharding")
            if asked is not None and hasattr(asked, "check_placed_sizes"):
                asked.check_placed_sizes(tuple(shape))
            made = ShapedArray(shape, dtype, weak_type).over(asked)
            return made.update_manual_axis_type(more.get("manual_axis_type") or NOTHING_MANUAL)
        try:
            found = _recall((shape, dtype, weak_type))
        except TypeError:  # a list
            found = None
        return _interned(shape, dtype, weak_type) if found is None else found

    def update(
        self,
        shape: Any = None,
        dtype: Any = None,
        weak_type: Any = None,
        sharding: Any = None,
        manual_axis_type: Any = None,
        **_: Any,
    ) -> ShapedArray:
        """This aval with some fields replaced. Axes stay placed where their number does, and behind
        a new first one."""
        manual = self.manual_axis_type if manual_axis_type is None else manual_axis_type
        if manual is not NOTHING_MANUAL:
            bare = self.update_manual_axis_type(NOTHING_MANUAL)
            return bare.update(shape, dtype, weak_type, sharding).update_manual_axis_type(manual)
        new = ShapedArray(
            self.shape if shape is None else tuple(shape),
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
        )
        if sharding is not None:
            return new.over(sharding)
        if self.placed is None:
            return new
        if new.ndim == self.ndim:
            return new.with_axes(self.placed, tuple(self.placed.spec))
        if new.shape[1:] == self.shape:
            return new.with_axes(self.placed, (None, *self.placed.spec))
        return new

    def over(self, sharding: Any) -> ShapedArray:
        """This aval, placed as a sharding says: by its axes of type Explicit."""
        placed = getattr(sharding, "placed", None)
        entries = None if placed is None else placed(self.shape)
        return self.bare() if entries is None else _placed(self.bare(), entries)

    def with_axes(self, placed: Any, entries: tuple) -> ShapedArray:
        """This aval, placed over the mesh of `placed` by these entries of a PartitionSpec, with the
        sums of `placed`."""
        if not any(entries) and not any(placed.sums):
            return self.bare()
        return self.over(placed.of_entries(entries, *placed.sums))

    def bare(self) -> ShapedArray:
        """This aval, placed nowhere."""
        if self.placed is None:
            return self
        return ShapedArray(self.shape, self.dtype, self.weak_type)

    @property
    def mat(self) -> ManualAxisType:
        """`manual_axis_type`."""
        return self.manual_axis_type

    def update_manual_axis_type(self, mat: ManualAxisType) -> ShapedArray:
        """This aval, of a value that differs over the axes that `mat` says."""
        if mat is self.manual_axis_type or mat == self.manual_axis_type:
            return self
        key: tuple = (self.shape, self.dtype, self.weak_type, self.placed, mat)
        key = key[:4] if mat.empty else key
        return _known_or_made(key[:3] if key[3:] == (None,) else key)

    def row(self, axis: int = 0) -> ShapedArray:
        """The aval of one of the parts along an axis."""
        shape = self.shape[:axis] + self.shape[axis + 1 :]
        new = ShapedArray(shape, self.dtype, self.weak_type)
        if self.manual_axis_type is not NOTHING_MANUAL:
            new = new.update_manual_axis_type(self.manual_axis_type)
        if self.placed is None:
            return new
        entries = tuple(self.placed.spec)
        return new.with_axes(self.placed, entries[:axis] + entries[axis + 1 :])

    def strong(self) -> ShapedArray:
        """This aval without weak type."""
        return self.update(weak_type=False) if self.weak_type else self

    def tangent(self) -> ShapedArray:
        """The aval of tangents: same shape, float0 for integers and booleans."""
        if self._tangent is None:
            self._tangent = self.update(dtype=dtypes.tangent_dtype(self.dtype))
        return self._tangent

    def to_tangent_aval(self) -> ShapedArray:
        """`tangent`."""
        return self.tangent()

    at_least_vspace = to_tangent_aval

    def cotangent(self) -> ShapedArray:
        """The aval of cotangents: that of tangents, with sums that are pending where one value is
        said to be reduced, and the other way."""
        own = self.tangent()
        return own if own.placed is None else own.over(own.placed.for_cotangents())

    def to_cotangent_aval(self) -> ShapedArray:
        """`cotangent`."""
        return self.cotangent()

    to_ct_aval = to_cotangent_aval

    def lo_ty(self) -> list[ShapedArray]:
        """The arrays that it stands for: one."""
        return [self]

    def lower_val(self, val: Any) -> list[Any]:
        """The arrays that a value of it is."""
        return [val]

    def raise_val(self, val: Any) -> Any:
        """The value that an array is."""
        return val

    def dec_rank(self, size: int | None, spec: int | None) -> ShapedArray:
        """That of one example, where axis `spec`, of `size`, is mapped; its own for None."""
        if spec is None:
            return self
        if size is not None and self.shape[spec] != size:
            raise ValueError(f"axis {spec} of {self.str_short()} is not of size {size}.")
        spec %= self.ndim
        return self.update(shape=(*self.shape[:spec], *self.shape[spec + 1 :]))

    def inc_rank(self, size: int, spec: int | None) -> ShapedArray:
        """That of `size` examples along the axis `spec`; its own for None."""
        if spec is None:
            return self
        spec %= self.ndim + 1
        return self.update(shape=(*self.shape[:spec], size, *self.shape[spec:]))

    def leading_axis_spec(self) -> int:
        """The axis that loops go along."""
        return 0

    def normalize(self) -> ShapedArray:
        """`strong`."""
        return self.strong()

    def strip_weak_type(self) -> ShapedArray:
        """`strong`."""
        return self.strong()

    def update_weak_type(self, weak_type: bool) -> ShapedArray:
        """This aval with that weak type."""
        return self.update(weak_type=weak_type)

    @property
    def nbytes(self) -> int:
        """How many bytes the elements have."""
        return self.size * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """How many bytes an element has."""
        return self.dtype.itemsize

    @property
    def sharding(self) -> Any:
        """By which axes of type Explicit it is cut, over the current mesh without its devices."""
        return hooks.aval_sharding(self.ndim, self.placed)

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """`float32[2,3]`, with short dtypes `f32[2,3]`. mesh_axis_types: behind it the types of the
        mesh's axes."""
        if mesh_axis_types:
            kinds: dict[str, tuple] = {}
            mesh = self.sharding.mesh
            for axis, kind in zip(mesh.axis_names, mesh.axis_types, strict=True):
                kinds[kind.name] = (*kinds.get(kind.name, ()), axis)
            told = ", ".join([f"{kind}: {axes}" for kind, axes in kinds.items()])
            return f"{self.str_short(short_dtypes)}({{{told}}})"
        name = dtypes.short_name(self.dtype) if short_dtypes else dtypes.long_name(self.dtype)
        manual = self.manual_axis_type
        ends = "" if manual is NOTHING_MANUAL else manual.short([n for n, _ in Shared.axes.get()])
        if self.placed is None:
            return f"{name}[{','.join(map(str, self.shape))}]{ends}"
        if any(self.placed.sums):
            unreduced, reduced = self.placed.sums
            both = manual.update(
                varying=manual.varying - unreduced - reduced,
                unreduced=manual.unreduced | unreduced, reduced=manual.reduced | reduced,
            )  # fmt: skip
            ends = both.short(self.placed.mesh.axis_names)
        axes = [
            f"{n}@({','.join(entry)})" if isinstance(entry, tuple) else f"{n}@{entry}" if entry
            else str(n)
            for n, entry in zip(self.shape, self.placed.spec, strict=True)
        ]  # fmt: skip
        return f"{name}[{','.join(axes)}]{ends}"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"

    def __str__(self) -> str:
        return f"{'~' if self.weak_type else ''}{self.str_short()}"

    def __reduce__(self) -> tuple:
        fields = (self.shape, self.dtype, self.weak_type, self.placed, self.manual_axis_type)
        return _restored, (fields[:4] if fields[4].empty else fields)


_recall = ShapedArray._known.get  # bound once: a memo's method takes as long to find as to call
# All avals that anybody has: what was forgotten as seldom used is found here as long as it lives.
_alive: dict[tuple, weakref.KeyedRef] = {}
_making = locks.reentrant()  # finalizers may run anywhere


def _restored(
    shape: tuple, dtype: Any, weak_type: bool, placed: Any, manual: Any = None
) -> ShapedArray:
    return ShapedArray(shape, dtype, weak_type, sharding=placed, manual_axis_type=manual)


class Placed:
    """active: whether there is an aval that is placed; until then nobody looks for one."""

    active = False


class SummedAxes:
    """found: of each operation that summed over axes while a caller's layout was awaited its name
    and, for each operand, the axes of the mesh that cut what was summed away."""

    def __init__(self) -> None:
        self.found: list[tuple[str, tuple]] = []


_lenient: ContextVar[Any] = ContextVar("numjet.lenient", default=False)
is_lenient = _lenient.get


@contextlib.contextmanager
def lenient(summed: SummedAxes | None = None) -> Iterator[None]:
    """Where operands do not say how a result is placed, any placement will do: who calls places it
    again, or writes down once more what was allowed before. summed: gathers what is summed over."""
    token = _lenient.set(summed or True)
    try:
        yield
    finally:
        _lenient.reset(token)


def any_placed(avals: Iterable[Any]) -> bool:
    """Whether one of the avals is cut over Explicit axes of a mesh."""
    for a in avals:
        if type(a) is ShapedArray and a.placed is not None:
            return True
    return False


def _placed(aval: ShapedArray, placed: Any) -> ShapedArray:
    Placed.active = True
    return _known_or_made((aval.shape, aval.dtype, aval.weak_type, placed))


def _known_or_made(key: tuple) -> ShapedArray:
    found = ShapedArray._known.get(key)
    return _make(key) if found is None else found


def _interned(shape: Any, dtype: Any, weak_type: Any) -> ShapedArray:
    shape = tuple([n if type(n) is DimExpr else int(n) for n in shape])
    if not isinstance(dtype, np.dtype | dtypes.KeyDType):
        dtype = np.dtype(dtype)
    return _make((shape, dtype, bool(weak_type)))


def _make(key: tuple) -> ShapedArray:
    """The aval of this shape, dtype, weak type and, where there are more entries, placement and
    manual axes."""
    shape, dtype = key[:2]
    with _making:
        ref = _alive.get(key)
        found = None if ref is None else ref()
        if found is None:
            made: Any = object.__new__(ShapedArray)
            made.shape, made.dtype, made.weak_type = key[:3]
            made.placed = key[3] if len(key) > 3 else None
            made.manual_axis_type = key[4] if len(key) > 4 else NOTHING_MANUAL
            made.ndim, made.size = len(shape), math.prod(shape)
            made.narrow = dtype in dtypes.NARROW
            made._tangent = None
            new = weakref.KeyedRef(made, _died, key)
            ref = _alive.get(key)  # again: a finalizer may have made it meanwhile
            found = None if ref is None else ref()
            if found is None:
                _alive[key], found = new, made
    ShapedArray._known[key] = found
    return found


def _died(ref: weakref.KeyedRef) -> None:
    with _making:
        if _alive.get(ref.key) is ref:
            del _alive[ref.key]
