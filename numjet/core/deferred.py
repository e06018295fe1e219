"""Arrays whose operations were written down and not run: their values come when somebody asks.

A `DeferredArray` is no `ArrayImpl` by type until its value is there, so that every fast way of
concrete arrays leaves it alone (as it leaves a `RemoteArray` alone), and one by type from then on.
`core.evaluate` makes them, by way of `hooks.defer`, which `api.eager.deferral` installs. What would
break it: a slot of its own, with which the type could not change; and code that takes an array of
another type than `ArrayImpl` for a traced one (`isinstance` tells).
"""

from __future__ import annotations

import time
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.base import locks, spans
from numjet.base.record import NamedTuple
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray


class Record:
    """What operations are written down in, and what native code does with it (`native.deferral`).

    `rows` are a list, or None from the moment when it is closed (`taken`, while they run); `inputs`
    are NumPy arrays, with `avals`, and `places` their codes by `id`; the record ends when their
    `bytes` are above `limit`. `lock`: its thread's.
    """

    __slots__ = ("rows", "inputs", "avals", "places", "bytes", "limit", "taken", "lock")
    rows: Any
    inputs: list[np.ndarray]
    avals: list[ShapedArray]
    places: dict[int, int]
    bytes: int
    limit: int
    taken: Any
    lock: Any

    def finish(self, why: str) -> None:
        """Give the arrays made by it that somebody holds their values."""
        raise NotImplementedError("a record of operations runs them: `api.eager.deferral.Tape`.")


class Open:
    """A thread's open record; `busy` while a row is made, and where nothing is to be deferred. One
    thread at a time runs what was written down here: that which holds the `lock`."""

    __slots__ = ("__weakref__", "busy", "lock", "tape")
    tape: Any
    busy: bool
    lock: Any

    def __init__(self) -> None:
        self.tape, self.busy, self.lock = None, False, locks.of_thread()


class FormRecord:
    """What native code reads of an operation's form: which it is, and whether a record began with
    it."""

    __slots__ = ("number", "begins")
    number: int
    begins: bool


# Codes of operands: a row's result is row << RESULTS | number, an input -1 - its number.
RESULTS = 4


class Place:
    """Where in a record an array is made: the `number`th operation's result, as a code."""

    __slots__ = ("record", "code")

    def __init__(self, record: Record, code: int) -> None:
        self.record, self.code = record, code

    def result(self) -> np.ndarray:
        """Never asked for: `DeferredArray` reads its own value."""
        raise NotImplementedError("a deferred array is given its value by its record.")

    def done(self) -> bool:
        """Whoever asks waits for the value, which comes when the record is finished."""
        self.record.finish("is_ready")
        return True


class DeferredArray(ArrayImpl):
    """An Array whose value is made when it is read."""

    __slots__ = ()

    def block_until_ready(self) -> ArrayImpl:
        """As an array's that has its value, without asking for a slot that is empty."""
        place = self._pending
        if place is not None:
            place.record.finish("read")
        if type(self) is DeferredArray:  # it was deleted: the slot's error
            self._value  # noqa: B018
        return self

    def __getattr__(self, name: str) -> Any:
        if name == "_value":
            place = self._pending
            if place is not None:
                place.record.finish("read")
            if type(self) is not DeferredArray:  # it is there, or was deleted meanwhile
                return self._value
            return object.__getattribute__(self, "_value")
        return ArrayImpl.__getattr__(self, name)


# As arrays that have their value are called, and what they are once they have it.
DeferredArray.__name__ = DeferredArray.__qualname__ = "ArrayImpl"
DeferredArray.__module__ = ArrayImpl.__module__


_new = object.__new__


def deferred(record: Record, code: int, aval: ShapedArray) -> DeferredArray:
    """A new array of this aval, made at a place of a record."""
    self: DeferredArray = _new(DeferredArray)
    self._aval = aval
    self._pending = Place(record, code)
    return self


def arrive(array: ArrayImpl, value: np.ndarray) -> None:
    """Give a deferred array its value."""
    if type(array) is DeferredArray:
        array._value = value
        array._pending = None
        array.__class__ = ArrayImpl  # type: ignore[assignment]


Held = weakref.ref[DeferredArray]


def parts(row: tuple) -> tuple[Any, tuple[int, ...], tuple[Held, ...]]:
    """The form, the operands' codes, and who holds the results, of a row as it is written down: one
    tuple of the form, who holds its result (or a tuple, for none or several), and the codes."""
    form, held, *codes = row
    return form, tuple(codes), held if type(held) is tuple else (held,)


class Plan:
    """Operations that are always written down together, on arrays of given avals.

    `equations` are (primitive, params, places, aval): a place is that of an array, counted with the
    constants behind the given ones, or of an earlier equation's result behind these. The last
    equation's result is the plan's, or `kept` says which equations' are; then there are several, as
    a list. `forms` is what `api.eager.deferral` made of it: None before it was asked, () where it
    leaves it alone. `entry` is the same for native code, or None, and points into what is `held`;
    `told` says whether the tables of operations know the plan. `remote` is what `xla.backend` made
    of it.
    """

    __slots__ = (
        "avals", "constants", "entry", "equations", "forms", "held", "kept", "remote", "told"
    )  # fmt: skip

    def __init__(
        self, avals: Sequence[ShapedArray], constants: Sequence[ArrayImpl], equations: Sequence,
        kept: frozenset[int] | None = None,
    ) -> None:  # fmt: skip
        self.kept = kept
        self.avals = (*avals, *[c.aval for c in constants])
        self.constants, self.equations = list(constants), equations
        self.forms: Any = None
        self.entry: Any = None
        self.remote: Any = None
        self.held: tuple = ()
        self.told = False

    @property
    def out(self) -> ShapedArray:
        """The aval of the result."""
        return self.equations[-1][3]


class Piece(NamedTuple):
    """What was run together: see `numjet.debug.eager`."""

    operations: tuple[str, ...]
    kept: int
    why: str
    line: str
    how: str
    milliseconds: float


class Ran:
    """A piece as it is noted: the line of the user's program is written out when somebody asks."""

    __slots__ = ("facts", "made")

    def __init__(
        self, operations: tuple[str, ...], kept: int, why: str, line: Any, how: str, took: float
    ) -> None:
        self.facts: Any = operations, kept, why, line, how, took
        self.made: Piece | None = None

    def piece(self) -> Piece:
        """The piece, the same each time."""
        found = self.made
        if found is None:
            operations, kept, why, line, how, took = self.facts
            found = self.made = Piece(operations, kept, why, str(line or ""), how, took)
        return found


pieces: deque[Ran] = deque(maxlen=256)


def note_piece(
    operations: tuple[str, ...], kept: int, why: str, line: Any, how: str, start: int
) -> None:
    """Note operations that were run together, since `start` (`time.perf_counter_ns`)."""
    end = time.perf_counter_ns()
    pieces.append(Ran(operations, kept, why, line, how, 1e-6 * (end - start)))
    if spans.recorders:
        name = ", ".join(operations[:4]) + (", ..." if len(operations) > 4 else "")
        spans.tell("eager", name, start, end, operations=len(operations), kept=kept, because=why,
                   line=str(line or ""), how=how)
