"""Rules that say what stands at an index, over whole arrays: positions become arrays of positions.

A `Pointwise` rule reads operands at computed places. Where no method of the emitter stands for its
primitive, `PullEmitter.pulled` runs the rule itself: an index is an axis of the result, a number,
or an array of positions; reading at axes is broadcasting, at numbers slicing, else gathering.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.core.lowering import Pointwise
from numjet.xla.kernels import Kernels
from numjet.xla.writer import Value, numbers, spec

POSITION = np.dtype(np.int64)


class At:
    """A place along an axis: an axis of the result, a number, or an array of numbers."""

    __slots__ = ("emitter", "shape", "axis", "number", "_value")

    def __init__(self, emitter: PullEmitter, shape: tuple, *, axis: int | None = None,
                 number: int | None = None, value: Value | None = None) -> None:  # fmt: skip
        self.emitter, self.shape = emitter, shape
        self.axis, self.number, self._value = axis, number, value

    @property
    def value(self) -> Value:
        """The numbers, for every element of the result."""
        if self._value is None:
            if self.axis is not None:
                self._value = self.emitter.counting(self.shape, self.axis, POSITION)
            else:
                self._value = self.emitter.const(self.number, POSITION)
        return self._value

    def _with(self, op: str, other: Any, of_numbers: Any) -> At:
        if isinstance(other, At):
            if self.number is not None and other.number is not None:
                return At(self.emitter, self.shape, number=of_numbers(self.number, other.number))
            other = other.value
        elif self.number is not None:
            return At(self.emitter, self.shape, number=of_numbers(self.number, other))
        made = getattr(self.emitter, op)(self.value, other)
        return At(self.emitter, self.shape, value=made)

    def __add__(self, other: Any) -> At:
        if isinstance(other, At) and self.number == 0:
            return other
        return self._with("add", other, lambda a, b: a + b)

    def __mul__(self, other: Any) -> At:
        return self._with("mul", other, lambda a, b: a * b)

    def __sub__(self, other: Any) -> At:
        return self._with("sub", other, lambda a, b: a - b)

    def __floordiv__(self, other: Any) -> At:
        return self._with("div", other, lambda a, b: a // b)

    def __mod__(self, other: Any) -> At:
        return self._with("rem", other, lambda a, b: a % b)

    __radd__, __rmul__ = __add__, __mul__


class Reader:
    """An operand as rules read it."""

    __slots__ = ("emitter", "operand", "shape", "dtype", "out")

    def __init__(self, emitter: PullEmitter, operand: Value, out: tuple) -> None:
        self.emitter, self.operand, self.out = emitter, operand, out
        self.shape, self.dtype = operand.shape, operand.dtype

    def __call__(self, *index: Any) -> Value:
        return self.emitter.read_at(self.operand, index, self.out)


class PullEmitter(Kernels):
    """The part of the emitter that rules with indices receive."""

    _out: tuple = ()

    def pulled(self, loops: Pointwise, out: Any, ins: Sequence[Value], params: dict) -> Value:
        """The result of a rule, run once for all elements."""
        shape, dtype = spec(out)
        before, self._out = self._out, shape
        try:
            index = [At(self, shape, axis=a) for a in range(len(shape))]
            readers = [Reader(self, x, shape) for x in ins]
            made = loops.fn(self, index, *readers, **params)
        finally:
            self._out = before
        return self.broadcast(self.cast(made, dtype), shape)

    def index_const(self, value: int) -> At:
        return At(self, self._out, number=value)

    def index_value(self, i: Any, dtype: Any) -> Value:
        """A place as a number."""
        return self.cast(i.value, dtype) if isinstance(i, At) else self.const(i, dtype)

    def read_at(self, x: Value, index: Sequence[Any], out: tuple) -> Value:
        """The elements at the places, for every element of the result."""
        places = [i if isinstance(i, At) else At(self, out, number=int(i)) for i in index]
        for axis, at in enumerate(places):  # numbers: cut the axis down to one element
            if at.number is not None:
                starts = [at.number if a == axis else 0 for a in range(len(x.shape))]
                limits = [at.number + 1 if a == axis else n for a, n in enumerate(x.shape)]
                x = self.part(x, starts, limits)
        kept = [a for a, at in enumerate(places) if at.number is None]
        x = self.reshaped(x, [x.shape[a] for a in kept])
        axes = [places[a].axis for a in kept]
        plain = [axis for axis in axes if axis is not None]
        if len(plain) == len(axes) and plain == sorted(set(plain)):
            return self.op("broadcast_in_dim", [x], out, x.dtype,
                           f"broadcast_dimensions = {numbers(plain)}") if x.shape != out else x
        columns = [self.broadcast(places[a].value, out) for a in kept]
        stacked = [self.reshaped(c, (*out, 1)) for c in columns]
        starts_value = self.op("concatenate", stacked, (*out, len(kept)), POSITION,
                               f"dimension = {len(out)} : i64")
        rank = len(kept)
        return self.op(
            "gather", [x, starts_value], out, x.dtype,
            "dimension_numbers = #stablehlo.gather<collapsed_slice_dims = "
            f"{list(range(rank))}, start_index_map = {list(range(rank))}, "
            f"index_vector_dim = {len(out)}>, indices_are_sorted = false, "
            f"slice_sizes = {numbers([1] * rank)}",
        )  # fmt: skip
