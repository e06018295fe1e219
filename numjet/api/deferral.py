"""Deferred evaluation of large eager operations: written down, and run together when one is read.

`core.evaluate` hands an operation on large operands, or on deferred ones, to `defer` (by way of
`hooks.defer`). It becomes a row of the calling thread's `Tape`; its results are `DeferredArray`s. A
tape is finished when one of them is read: what somebody still holds is computed by one compiled
program, which is found again by the rows, and what nobody holds is never in memory.

What a deferred operation reads must not change until it runs. Values of arrays are immutable, but
the memory of an array that was made from a NumPy array without a copy is the user's, who may write
to it (`_fixed`): such operands are copied where they are small, else the operation runs at once.
Nothing is deferred that could raise or be observed when it runs: operations that call Python, that
have effects, or whose results are checked (debug_nans).

A tape without reads ends where its program would begin anew: after `SOFT` rows, at the operation
and line with which an earlier tape began. So the rounds of a loop are cut alike, and their programs
are few. What would break it: a row that depends on anything that is not in its form, and an array
whose value is changed in place.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from numjet.api import dispatch
from numjet.base import config
from numjet.core import dtypes, hooks
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.deferred import DeferredArray, Held, arrive, deferred
from numjet.core.evaluate import _EXACT as EXACT, evaluate_python
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from numjet.core.lowering import Kernel, Pointwise, Reduce
from numjet.core.memo import Memo
from numjet.core.primitive import Primitive

# From so many rows on a tape ends where an earlier one began, and at so many anywhere.
SOFT = 128
HARD = 1024
# A user's memory of so many bytes is copied rather than read at once.
COPIED = 1 << 20
# So many programs are compiled when their rows are met for the first time, and one more for so many
# that were found again; beyond, only rows that are met again are worth a compilation.
FIRST = 64
FOUND_FOR_ONE = 4
# Codes of operands: a row's result is row << RESULTS | number, an input -1 - its number.
RESULTS = 4
_MASK = (1 << RESULTS) - 1

_KERNELS = frozenset({"dot_general"})
# What NumPy gives as views: a result that is read is one of what it is a part of, as it would be if
# the operation had run at once.
_VIEWS = frozenset("reshape squeeze broadcast_in_dim name stop_gradient".split())
_PARTS = frozenset("transpose slice rev".split())

_numbers = itertools.count()
_forms: dict[tuple, Any] = Memo("forms of deferred operations", 16384)
_programs: dict[tuple, Any] = Memo("programs of deferred operations", 1024)
_counts = {"found": 0, "compiled": 0}
_starts: set[tuple] = set()
_MAX_STARTS = 4096


class Form:
    """An operation on operands of given avals: all of a row but which operands."""

    __slots__ = ("number", "primitive", "params", "avals", "outs", "several", "view", "part")

    def __init__(self, primitive: Primitive, params: dict, avals: tuple, out: Any) -> None:
        self.number = next(_numbers)
        self.primitive, self.params, self.avals = primitive, params, avals
        self.several = primitive.multiple_results
        self.outs: Sequence[ShapedArray] = out if self.several else (out,)
        self.view = primitive.name in _VIEWS
        self.part = primitive.name in _PARTS


class Row(NamedTuple):
    """One operation: its form, its operands' codes, and who holds its results."""

    form: Form
    codes: tuple[int, ...]
    held: tuple[Held, ...]


class Piece(NamedTuple):
    """What `numjet.debug.eager` tells of a tape that was run."""

    operations: tuple[str, ...]
    kept: int
    why: str
    line: str
    how: str
    milliseconds: float


pieces: deque[Piece] = deque(maxlen=256)


def _form(primitive: Primitive, params: dict, avals: tuple, out: Any) -> Any:
    """The form of an operation, or None where it is not to be deferred."""
    try:
        key = (primitive, avals, *params.items())
        found = _forms.get(key, key)
    except TypeError:  # params that do not hash
        return None
    if found is key:
        found = None
        if _deferrable(primitive, avals, out):
            found = Form(primitive, dict(params), avals, out)
        _forms[key] = found
    return found


def _deferrable(primitive: Primitive, avals: tuple, out: Any) -> bool:
    if primitive.evaluate is not None or primitive.effects or primitive.multiple_results:
        return False
    if primitive.expansion is not None or primitive.collective or primitive.higher_order:
        return False
    rule = primitive.loops
    if not (type(rule) in (Pointwise, Reduce) or type(rule) is Kernel and rule.name in _KERNELS):
        return False
    return all([
        isinstance(a.dtype, np.dtype) and a.dtype != dtypes.float0 and a.dtype.kind in "biufcV"
        for a in (*avals, out)
    ])  # fmt: skip


# ------------------------------------------------------------------ whose memory
def _references(values: Sequence[np.ndarray], k: int) -> int:
    return sys.getrefcount(values[k])


_IN_LIST = _references([np.zeros(1)], 0)


def _fixed(values: list[np.ndarray]) -> bool:
    """Whether nobody can write to the memory of the only item, which is the value of an Array."""
    base = values[0].base
    if base is None:  # NumPy's: the Array's and the list's references are all that there are
        return _references(values, 0) <= _IN_LIST + 1
    while type(base) is np.ndarray:
        base = base.base
    return getattr(base, "from_pool", False)


class _Local(threading.local):
    """A thread's open tape; `busy` while a row is made, and where nothing is to be deferred."""

    def __init__(self) -> None:
        self.tape = Tape()
        self.busy = False


class Tape:
    """Operations that were written down, by one thread, and their inputs."""

    __slots__ = ("rows", "inputs", "avals", "places", "bytes", "limit", "lock", "taken", "pid")

    def __init__(self) -> None:
        self.rows: Any = []  # None from the moment when the tape is closed
        self.inputs: list[np.ndarray] = []
        self.avals: list[ShapedArray] = []
        self.places: dict[int, int] = {}  # id of an input -> its code
        self.bytes, self.limit = 0, 0
        self.lock = threading.RLock()
        self.taken: Any = None  # the rows, while they run
        self.pid = os.getpid()

    # -------------------------------------------------------------- writing
    def code(self, x: ArrayImpl) -> int | None:
        """The code of an operand; None where its memory cannot be kept as it is."""
        if type(x) is DeferredArray:
            place = x._pending
            if place is not None and place.record is self:
                return place.code
        value = x._value
        known = self.places.get(id(value))
        if known is not None:
            return known
        holder = [value]
        del value
        if _fixed(holder):
            (value,) = holder
            self.places[id(value)] = -1 - len(self.inputs)
        elif holder[0].nbytes <= COPIED:
            value = holder[0].copy()
        else:
            return None
        self.inputs.append(value)
        self.avals.append(x.aval)
        self.bytes += value.nbytes
        return -len(self.inputs)

    def full(self, form: Form) -> str:
        """Why the tape ends before a row of this form; "" where it does not."""
        n = len(self.rows)
        if n >= SOFT:
            if n >= HARD:
                return "so many operations"
            if (form.number, None) in _starts and (form.number, hooks.user_line()) in _starts:
                return "a round of a loop"
        if self.bytes > self.limit:
            bound = config.eager_fusion_bytes.value
            if self.bytes > bound:
                # Those that only the tape keeps: the list's reference, the loop's and the call's.
                kept = sum([v.nbytes for v in self.inputs if sys.getrefcount(v) <= 3])
                if kept > bound or self.bytes > 16 * bound:
                    return "so much memory"
                self.limit = self.bytes + bound // 4
            else:
                self.limit = bound
        return ""

    # -------------------------------------------------------------- running
    def finish(self, why: str) -> None:
        """Compute what somebody holds. Operations that are written down later go elsewhere."""
        if self.pid != os.getpid():  # a thread that the child does not have may have had the lock
            self.lock, self.pid = threading.RLock(), os.getpid()
        with self.lock:
            if self.rows is not None:
                self.taken = self.rows
                self.rows = None
            if self.taken is None:
                return
            before, _local.busy = _local.busy, True
            try:
                _run(self, list(self.taken), why)
            finally:
                _local.busy = before
            self.taken = None
            self.inputs, self.places = [], {}


_local = _Local()


def _enabled() -> bool:
    return bool(
        config.eager_fusion.value
        and not config.numeric_checks[0]
        and config.eager_compile.value
        and not config.disable_jit.value
    )


def defer(primitive: Primitive, arrays: list, params: dict, avals: tuple, out: Any) -> Any:
    """Write an operation down: `hooks.defer`."""
    local = _local
    if local.busy or not _enabled():
        return None
    form = _form(primitive, params, avals, out)
    if form is None:
        return None
    if form.view or form.part or primitive.name in EXACT:
        later = DeferredArray in map(type, arrays)
        if not later and (form.part or form.view and primitive.name != "broadcast_in_dim"):
            return None  # NumPy's views cost nothing
        if not later and not all([x._value.flags.c_contiguous for x in arrays]):
            return None  # and nor do its strides
    local.busy = True
    try:
        return _write(local, form, arrays)
    finally:
        local.busy = False


def _write(local: _Local, form: Form, arrays: list) -> Any:
    while True:
        tape = local.tape
        if tape.rows is None:
            tape = local.tape = Tape()
        why = tape.full(form)
        if why:
            tape.finish(why)
            continue
        codes = []
        for x in arrays:
            code = tape.code(x)
            if code is None:
                return None
            codes.append(code)
        rows = tape.rows
        if rows is None:  # an operand was another's, whose value was waited for
            continue
        if not rows:
            _begin(form)
        first = len(rows) << RESULTS
        outs = [deferred(tape, first + k, aval) for k, aval in enumerate(form.outs)]
        rows.append(Row(form, tuple(codes), tuple([Held(x) for x in outs])))
        if tape.rows is rows:
            return outs if form.several else outs[0]


def _begin(form: Form) -> None:
    """Note that a tape begins here."""
    if len(_starts) >= _MAX_STARTS:
        _starts.clear()
    _starts.add((form.number, None))
    _starts.add((form.number, hooks.user_line()))


# ------------------------------------------------------------------ running
def _run(tape: Tape, rows: list[Row], why: str) -> None:
    """Compute the results that somebody holds."""
    start = time.perf_counter()
    holders: list[tuple[DeferredArray, int]] = []
    for i, row in enumerate(rows):
        for k, held in enumerate(row.held):
            array = held()
            if array is not None:
                holders.append((array, i << RESULTS | k))
    if not holders:
        return
    roots = _roots(rows, {code for _, code in holders})
    outs = sorted({r for r in [roots.get(code, code) for _, code in holders] if r >= 0})
    values: dict[int, Any] = {-1 - k: v for k, v in enumerate(tape.inputs)}
    how = "views"
    if outs:
        program, how = _program(tape, rows, outs)
        if program is None:
            values.update(_one_by_one(tape, rows, outs))
        else:
            values.update(zip(outs, program(tape.inputs), strict=True))
    for array, code in holders:
        arrive(array, _view(rows, code, values))
    pieces.append(
        Piece(
            tuple([row.form.primitive.name for row in rows]), len(holders), why,
            str(hooks.user_line() or ""), how, 1e3 * (time.perf_counter() - start),
        )
    )  # fmt: skip


def _roots(rows: list[Row], live: set[int]) -> dict[int, int]:
    """For results that are made as views of others: of which."""
    roots: dict[int, int] = {}
    for i, row in enumerate(rows):
        form = row.form
        if form.view or form.part:
            (of,) = row.codes
            root = roots.get(of, of)
            # A part of what nobody needs otherwise is computed alone.
            if form.view or root < 0 or root in live:
                roots[i << RESULTS] = root
    return roots


def _view(rows: list[Row], code: int, values: dict[int, Any]) -> np.ndarray:
    """The value of a result: one that was computed, or a view of it."""
    chain = []
    while code not in values:
        row = rows[code >> RESULTS]
        chain.append(row.form)
        (code,) = row.codes
    value = values[code]
    for form in reversed(chain):
        value = form.primitive.reference(value, **form.params)  # type: ignore[misc]
    return value


def _program(tape: Tape, rows: list[Row], outs: list[int]) -> tuple[Any, str]:
    """The compiled program of the rows, from inputs to these results, and where it came from. None
    where they are to run one by one."""
    key = (
        config.trace_key(), len(tape.inputs), tuple(outs),
        tuple([(row.form.number, row.codes) for row in rows]),
    )  # fmt: skip
    found = _programs.get(key)
    if found is not None and found is not _SEEN:
        _counts["found"] += 1
        return found, "found"
    if found is None and _counts["compiled"] >= FIRST + _counts["found"] // FOUND_FOR_ONE:
        _programs[key] = _SEEN
        return None, "one by one"
    _counts["compiled"] += 1
    program = _programs[key] = dispatch.compiled(_jaxpr(tape, rows, outs), "eager")
    return program, "compiled"


_SEEN = object()


def _jaxpr(tape: Tape, rows: list[Row], outs: list[int]) -> ClosedJaxpr:
    variables: dict[int, Var] = {-1 - k: Var(aval) for k, aval in enumerate(tape.avals)}
    ins = list(variables.values())
    eqns = []
    for i, row in enumerate(rows):
        results = [Var(aval) for aval in row.form.outs]
        variables.update({i << RESULTS | k: v for k, v in enumerate(results)})
        operands = [variables[code] for code in row.codes]
        eqns.append(Eqn(operands, results, row.form.primitive, row.form.params))
    return ClosedJaxpr(Jaxpr([], ins, [variables[code] for code in outs], eqns), [])


def _one_by_one(tape: Tape, rows: list[Row], outs: list[int]) -> dict[int, np.ndarray]:
    """What the rows give for each of `outs`, as if each had run at once."""
    last: dict[int, int] = {}  # by code: the row that reads it last
    for i, row in enumerate(rows):
        last.update(dict.fromkeys(row.codes, i))
    last.update(dict.fromkeys(outs, len(rows)))
    inputs = map(ArrayImpl, tape.inputs, tape.avals)
    values: dict[int, Any] = {-1 - k: x for k, x in enumerate(inputs)}
    for i, row in enumerate(rows):
        first = i << RESULTS
        if not any([first | k in last for k in range(len(row.form.outs))]):
            continue
        args = tuple([values[code] for code in row.codes])
        out = evaluate_python(row.form.primitive, args, row.form.params)
        values.update({first | k: x for k, x in enumerate(out if row.form.several else [out])})
        for code in row.codes:
            if last[code] == i:
                values.pop(code, None)
    return {code: values[code]._value for code in outs}


def finish_here(why: str) -> None:
    """Run what the calling thread has written down."""
    _local.tape.finish(why)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=lambda: finish_here("a fork"))

hooks.defer = defer
