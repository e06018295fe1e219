"""Deferred evaluation of large eager operations: written down, and run together when one is read.

`core.evaluate` hands an operation on large operands, or on deferred ones, to `defer` (by way of
`hooks.defer`). It becomes a row of the calling thread's `Tape`; its results are `DeferredArray`s. A
tape is finished when one of them is read: what somebody still holds is computed by one compiled
program, which is found again by the rows, and what nobody holds is never in memory.

What a deferred operation reads must not change until it runs. Values of arrays are immutable, but
the memory of an array that was made from a NumPy array without a copy is the user's, who may write
to it (`fixed`): such operands are copied where they are small, else the operation runs at once.
Nothing is deferred that could raise or be observed when it runs: operations that call Python, that
have effects, or whose results are checked (debug_nans).

A tape without reads ends where its program would begin anew: after `SOFT` rows, at the operation
and line with which an earlier tape began. So the rounds of a loop are cut alike, and their programs
are few. What would break it: a row that depends on anything that is not in its form, and an array
whose value is changed in place.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.api.eager import deferred_jaxprs
from numjet.api.eager.deferred_forms import FORM_BYTES, MASK, Form, Row, form_of, row_by_row
from numjet.api.execution import any_size, dispatch
from numjet.base import config, spans
from numjet.base.config import check_bounds
from numjet.base.record import NamedTuple
from numjet.core import hooks
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.deferred import (
    RESULTS,
    DeferredArray,
    Held,
    Open,
    Place,
    Plan,
    Record,
    arrive,
    deferred,
    note_piece,
    parts,
)
from numjet.core.evaluate import _EXACT as EXACT, LARGE, evaluate_python
from numjet.core.jaxpr import ClosedJaxpr
from numjet.core.memo import Memo, WeighedMemo
from numjet.core.primitive import Primitive
from numjet.cpu.program.executable import Executable
from numjet.cpu.runtime import memory
from numjet.native import calls, deferral as native

# From so many rows on a tape ends where an earlier one began, and at so many anywhere.
SOFT = 256
HARD = 2048
# A user's memory of so many bytes is copied rather than read at once.
COPIED = 1 << 22
COPIED_AT_ONCE = 1 << 17  # by operations that were written down before, whatever their operands
# So few rows are compiled when they are met for the first time (some 1 ms a row), others when they
# are met again, since the loop that comes back to them may be none: until so many programs were
# compiled, and one more for so many that were found again.
FEW = 24
FIRST = 32
FIRST_OF_A_PATTERN = 4
FOUND_FOR_ONE = 4
# A chain of elementwise operations is compiled for a size when it was met so often with it.
USES_OF_ONE_SIZE = 16

_new = object.__new__

_programs = WeighedMemo(
    "programs of deferred operations", 1024, dispatch.PROGRAM_BYTES, dispatch.weight
)
# What rows are called, and which results are parts of what: by what tells rows from others.
_sequences = WeighedMemo(
    "names of deferred operations", 1024, FORM_BYTES, lambda known: 64 * len(known.names)
)
# Programs that native code calls, by what tells rows from others (`native.deferral.run_found`): the
# function, what the rows are called, how many results they have, and the program.
_ready = WeighedMemo(
    "programs of deferred operations, called natively", 1024, dispatch.PROGRAM_BYTES,
    lambda entry: dispatch.weight(entry[-1]) if entry else 64,
)  # fmt: skip
# So many sets of held results are kept for rows.
_KEPT = 16
_counts = {"found": 0, "compiled": 0}
_starts: set[tuple] = set()
_MAX_STARTS = 4096


class _Local(threading.local):
    """What each thread has open."""

    def __init__(self) -> None:
        self.open = Open()
        self.open.tape = Tape(self.open.lock)


class Tape(Record):
    """Operations that were written down, by one thread, and their inputs."""

    __slots__ = ()

    def __init__(self, lock: Any) -> None:
        self.rows = []
        self.inputs, self.avals, self.places = [], [], {}
        self.bytes, self.limit = 0, config.eager_fusion_bytes.value
        self.taken, self.lock = None, lock

    # -------------------------------------------------------------- writing
    def code(self, x: ArrayImpl, view: bool = False) -> int | None:
        """The code of an input; None where its memory cannot be kept as it is, nor copied because
        the result is a `view` of it."""
        value, aval = x._value, x._aval
        known = self.places.get(id(value))
        if known is not None:
            return known
        form = None
        if not value.flags.c_contiguous:
            value, aval, form = row_by_row(value, aval)
        holder = [value]
        del value
        if dispatch.fixed(holder, form is not None):
            (value,) = holder
            if form is None:
                self.places[id(value)] = -1 - len(self.inputs)
        elif holder[0].nbytes <= COPIED and not view:
            value = memory.empty(aval.shape, holder[0].dtype)
            value[...] = holder[0]
        else:
            return None
        self.inputs.append(value)
        self.avals.append(aval)
        self.bytes += value.nbytes
        code = -len(self.inputs)
        if form is None or self.rows is None:
            return code
        rows = self.rows
        rows.append((form, (), code))
        return len(rows) - 1 << RESULTS

    def full(self, form: Form) -> str:
        """Why the tape ends before a row of this form; "" where it does not."""
        n = len(self.rows)
        if n >= SOFT:
            if n >= HARD:
                return "so many operations"
            if form.begins and (form.number, hooks.user_line()) in _starts:
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
        with self.lock:
            if self.rows is not None:
                self.taken = self.rows
                self.rows = None
            if self.taken is None:
                return
            local = _local.open
            before, local.busy = local.busy, True
            try:
                # The thread whose it is may be adding an operand meanwhile, of no row.
                rows = list(self.taken)
                n = min(len(self.inputs), len(self.avals))
                _run(_Taken(self.inputs[:n], self.avals[:n]), rows, why)
            finally:
                local.busy = before
            self.taken = None
            self.inputs, self.places = [], {}


class _Taken(NamedTuple):
    """The inputs of a tape that has ended."""

    inputs: list[np.ndarray]
    avals: list[ShapedArray]


_local = _Local()


# Whether operations are deferred, as it was at a state of the flags (`config.state`): twice the
# state, and one more if so; one number, since threads read and write it at any time. And the bytes
# that a tape may keep.
_known_at = array("q", [-1, 0])


def _enabled() -> bool:
    state = config.state[0]
    known = _known_at[0]
    if state == known >> 1 and state >= 0:
        return bool(known & 1)
    found = bool(
        config.eager_fusion.value
        and not config.numeric_checks[0]
        and config.eager_compile.value
        and not config.disable_jit.value
    )
    if state >= 0:
        _known_at[1] = config.eager_fusion_bytes.value
        _known_at[0] = 2 * state + found
    return found


def defer(primitive: Primitive, arrays: list, params: dict, avals: tuple, out: Any) -> Any:
    """Write an operation down: `hooks.defer`."""
    local = _local.open
    if local.busy or not _enabled():
        return None
    form = form_of(primitive, params, avals, out)
    if form is None:
        return None
    if form.numpys and DeferredArray not in map(type, arrays):
        return None
    if form.primitive.name in EXACT and DeferredArray not in map(type, arrays):
        for x in arrays:
            if not x._value.flags.c_contiguous:
                return None  # NumPy reads what does not lie row by row without a copy
    if not form.several and DeferredArray in map(type, arrays):
        equation = primitive, form.params, tuple(range(len(arrays))), out
        _plans[primitive, *avals, *params.items()] = Plan(avals, [], [equation])
    local.busy = True
    try:
        return _write(local, form, arrays)
    finally:
        local.busy = False


def _write(local: Open, form: Form, arrays: list) -> Any:
    while True:
        opened = _opened(local, form, arrays, form.view)
        if opened is None:
            return None
        tape, rows, codes = opened
        first = len(rows) << RESULTS
        if form.several:
            outs = [deferred(tape, first + k, aval) for k, aval in enumerate(form.outs)]
            rows.append((form, tuple(map(Held, outs)), *codes))
        else:
            out = deferred(tape, first, form.outs[0])
            rows.append((form, Held(out), *codes))
        if tape.rows is rows:
            return outs if form.several else out


def _opened(
    local: Open, form: Form, arrays: Sequence, view: bool
) -> tuple[Tape, list, list[int]] | None:
    """The thread's tape, its rows, and the codes of operands; None where one cannot be kept.
    `view`: whether the result is a view of them."""
    while True:
        tape = local.tape
        rows = tape.rows
        if rows is None:
            tape = local.tape = Tape(local.lock)
            rows = tape.rows
        if len(rows) >= SOFT or tape.bytes > tape.limit:
            why = tape.full(form)
            if why:
                tape.finish(why)
                continue
        codes = []
        for x in arrays:
            if type(x) is DeferredArray:
                place = x._pending
                if place is not None and place.record is tape:
                    codes.append(place.code)
                    continue
            code = tape.code(x, view)
            if code is None:
                return None
            codes.append(code)
        rows = tape.rows
        if rows is None:  # an operand was another's, whose value was waited for
            continue
        if not rows:
            _begin(form)
            tape.limit = config.eager_fusion_bytes.value
        return tape, rows, codes


def prepare(plan: Plan) -> bool:
    """Whether a plan can be written down: `hooks.prepare`."""
    native.prepare(plan, _forms_of(plan))
    return bool(plan.forms)


def defer_plan(plan: Plan, arrays: Sequence) -> Any:
    """Write the operations of a plan down: `hooks.defer_plan`."""
    if plan.forms is None:
        prepare(plan)
    forms = plan.forms
    local = _local.open
    if not forms or local.busy or not _enabled():
        return None
    kept = plan.kept
    if len(forms) == 1 and kept is None:
        out = _next_row(local.tape, forms[0], (*arrays, *plan.constants))
        if out is not None:
            return out
    if DeferredArray not in map(type, arrays):
        for x in arrays:
            if x._aval.size >= LARGE and not x._value.flags.c_contiguous:
                return None  # NumPy may read it without a copy
    local.busy = True
    try:
        while True:
            view = len(forms) == 1 and forms[0].view
            opened = _opened(local, forms[0], (*arrays, *plan.constants), view)
            if opened is None:
                return None
            tape, rows, codes = opened
            last = len(forms) - 1
            outs: list[DeferredArray] = []
            for k, (form, equation) in enumerate(zip(forms, plan.equations, strict=True)):
                operands = [codes[place] for place in equation[2]]
                code = len(rows) << RESULTS
                codes.append(code)
                if k == last if kept is None else k in kept:
                    outs.append(deferred(tape, code, form.outs[0]))
                    rows.append((form, Held(outs[-1]), *operands))
                else:
                    rows.append((form, (), *operands))
            if tape.rows is rows:
                return outs[0] if kept is None else outs
    finally:
        local.busy = False


def _next_row(tape: Tape, form: Form, arrays: Sequence) -> Any:
    """`form` as the next row where the tape goes on and knows the operands: what most rows are."""
    rows = tape.rows
    if not rows or len(rows) >= SOFT or tape.bytes > tape.limit:
        return None
    codes = []
    for x in arrays:
        if type(x) is DeferredArray:
            place = x._pending
            if place is None or place.record is not tape:
                return None
            codes.append(place.code)
        else:
            code = tape.places.get(id(x._value))
            if code is None:
                return None
            codes.append(code)
    out = _new(DeferredArray)
    place = _new(Place)
    n = len(rows)
    place.record, place.code = tape, n << RESULTS
    out._aval, out._pending = form.outs[0], place
    row = form, Held(out), *codes
    if len(rows) != n:  # what was allocated has run a finalizer that computes
        return None
    rows.append(row)
    # Else another thread has finished the tape meanwhile: this row is nobody's.
    return out if tape.rows is rows else None


# Operations with operands that wait, as they were deferred: by primitive, avals and params.
_plans: dict[tuple, Plan] = Memo("deferred operations", 4096)


def defer_again(primitive: Primitive, args: tuple, params: dict) -> Any:
    """`defer` for avals and params that were deferred before: `hooks.defer_again`."""
    try:
        plan = _plans.get((primitive, *[x._aval for x in args], *params.items()))
    except (AttributeError, TypeError):  # another kind of operand; params that do not hash
        return None
    if plan is None:
        return None
    if not plan.told and hooks.learn_later is not None:
        plan.told = True
        hooks.learn_later(primitive, params, plan)
    return hooks.defer_plan(plan, args)


def planned(
    primitive: Primitive, avals: tuple, params: dict, out: ShapedArray, waits: bool,
    function: Callable,
) -> Callable | None:  # fmt: skip
    """`hooks.planned`."""
    form = form_of(primitive, params, avals, out)
    if form is None or form.several or form.numpys and not waits:
        return None
    plan = Plan(avals, [], [(primitive, form.params, tuple(range(len(avals))), out)])
    native.prepare(plan, (form,))
    return native.planned(plan, function)


def _forms_of(plan: Plan) -> tuple[Form, ...]:
    """The forms of a plan's operations; () where not all of them are deferred."""
    avals = list(plan.avals)
    forms = []
    for primitive, params, places, out in plan.equations:
        operands = tuple([avals[place] for place in places])
        form = None if primitive.multiple_results else form_of(primitive, params, operands, out)
        if form is None:
            return ()
        forms.append(form)
        avals.append(out)
    return tuple(forms)


def _begin(form: Form) -> None:
    """Note that a tape begins here."""
    if len(_starts) >= _MAX_STARTS:
        _starts.clear()
    form.begins = True
    _starts.add((form.number, hooks.user_line()))


# ------------------------------------------------------------------ running
class _Names:
    """What rows that are alike have in common: what they are called, which results are parts of
    what (and views), and for which held results (by their codes) all are computed."""

    __slots__ = ("names", "aliases", "computed")

    def __init__(self, rows: list[Row]) -> None:
        self.names = tuple([form.name for form, _, _ in rows])
        self.aliases = [
            (k << RESULTS, *row[1], row[0].view) for k, row in enumerate(rows) if row[0].alias
        ]
        self.computed: set[tuple[int, ...]] = set()


def _run(tape: _Taken, written: list[tuple], why: str) -> None:
    """Compute the results that somebody holds."""
    start, line = time.perf_counter_ns(), hooks.user_line()  # which is dearer when kernels ran
    found = None if spans.recorders else native.run_found(written, tape.inputs, _ready)
    if type(found) is tuple:
        _, names, count, _ = found
        note_piece(names, count, why, line, "found", start)
        return
    key, holders = native.survey(written)
    if not holders:
        return
    known = _sequences.get(key)
    if known is None:
        known = _sequences[key] = _Names(list(map(parts, written)))
    outs = tuple(holders)
    if outs in known.computed:  # none is a view of another, and the program may be there
        program = _programs.get((config.trace_key(), len(tape.inputs), outs, key))
        if isinstance(program, Executable):
            _counts["found"] += 1
            for x, value in zip(holders.values(), program(tape.inputs), strict=True):
                arrive(x, value)
            note_piece(known.names, len(outs), why, line, "found", start)
            if found is not None and found not in _ready:
                _make_ready(found, program, known.names, tape, written, outs)
            return
    roots: dict[int, int] = {}  # of results that are views of others: of which
    for code, of, view in known.aliases:
        root = roots.get(of, of)
        # A part of what nobody needs otherwise is computed alone.
        if view or root < 0 or root in holders:
            roots[code] = root
    if roots.keys().isdisjoint(holders):
        if len(known.computed) < _KEPT:
            known.computed.add(outs)
    else:
        outs = tuple(sorted({r for r in [roots.get(code, code) for code in holders] if r >= 0}))
    values: dict[int, Any] = {}
    how = "views"
    if outs:
        compute, how = _program(tape, written, outs, key)
        values.update(zip(outs, compute(tape.inputs), strict=True))
    if roots:
        values.update({-1 - k: v for k, v in enumerate(tape.inputs)})
    for code, x in holders.items():
        arrive(x, values[code] if code in values else _view(written, code, values))
    note_piece(known.names, len(holders), why, line, how, start)


def _make_ready(
    key: bytes, program: Executable, names: tuple, tape: _Taken, written: list[tuple],
    outs: tuple[int, ...],
) -> None:  # fmt: skip
    """Let native code run a program that was found: it is needed again and again."""
    avals = [written[code >> RESULTS][0].outs[code & MASK] for code in outs]
    call = None if check_bounds.value else calls.of_arrays(program, tape.inputs, avals)
    _ready[key] = call and (call, names, len(outs), program)


def _view(written: list[tuple], code: int, values: dict[int, Any]) -> np.ndarray:
    """The value of a result: one that was computed, or a view of it."""
    chain = []
    while code not in values:
        form, codes, _ = parts(written[code >> RESULTS])
        chain.append(form)
        (code,) = codes
    value = values[code]
    for form in reversed(chain):
        value = form.primitive.reference(value, **form.params)  # type: ignore[misc]
    return value


def _program(
    tape: _Taken, written: list[tuple], outs: tuple[int, ...], words: bytes
) -> tuple[Callable, str]:
    """A function of the inputs that gives these results of rows (`words` tell them from others),
    and where it came from."""
    key = (config.trace_key(), len(tape.inputs), outs, words)
    found = _programs.get(key, 0)
    if type(found) is not int:
        _counts["found"] += 1
        return found, "found"
    rows = list(map(parts, written))
    if found < USES_OF_ONE_SIZE:
        blocks = _of_any_size(tape, rows, outs)
        if blocks is not None:
            _programs[key] = found + 1
            return blocks
    if not found and (len(rows) > FEW or not _at_first(rows)):
        _programs[key] = 1
        return lambda _: _one_by_one(tape, rows, outs), "one by one"
    _counts["compiled"] += 1
    program = _programs[key] = _compiled(deferred_jaxprs.jaxpr_of(tape.avals, rows, outs))
    return program, "compiled"


def _at_first(rows: list[Row]) -> bool:
    """Whether rows that are met for the first time are compiled: as long as few programs were that
    nobody came back to, in all, and of the same operations on other sizes."""
    if _counts["compiled"] >= FIRST + _counts["found"] // FOUND_FOR_ONE:
        return False
    pattern = tuple([(form.primitive, codes) for form, codes, _ in rows])
    count = _patterns.get(pattern, 0)
    _patterns[pattern] = count + 1
    return count < FIRST_OF_A_PATTERN


_patterns: dict[tuple, int] = Memo("operations met on several sizes", 1024)


def _compiled(closed: ClosedJaxpr) -> Any:
    program = dispatch.compiled(closed, "eager")
    closed.cache.clear()  # it is found by its rows, and goes when nobody refers to it
    return program


def _of_any_size(
    tape: _Taken, rows: list[Row], outs: tuple[int, ...]
) -> tuple[Callable, str] | None:
    """`_program` of blocks, where the rows were met on arrays of another size."""
    if not all([x.flags.c_contiguous for x in tape.inputs]):
        return None
    results = [rows[code >> RESULTS][0].outs[0] for code in outs]
    flat = deferred_jaxprs.flat(tape.avals, rows, outs, results)
    cutting = flat or deferred_jaxprs.by_rows(tape.avals, rows, outs, results)
    if cutting is None or not cutting.block:
        return None
    key = config.trace_key(), outs, cutting.pattern
    known = _sizes.setdefault(key, cutting.size)
    if known == cutting.size:
        return None
    program, how = _programs.get((key, cutting.block)), "found for any size"
    if program is None:
        how = "compiled for any size"
        program = _programs[key, cutting.block] = _compiled(cutting.jaxpr())
    if not isinstance(program, Executable):
        return None

    def compute(inputs: list[np.ndarray]) -> list[np.ndarray]:
        made = [memory.empty(a.shape, a.dtype) for a in results]
        ins, targets = inputs, made
        if flat is not None:
            ins, targets = [[x.reshape(-1) if x.shape else x for x in xs] for xs in (inputs, made)]
        ran = any_size.run(program, ins, cutting.cut, targets, cutting.size, cutting.block)
        return made if ran else _one_by_one(tape, rows, outs)

    return compute, how


# The first size that rows were met with.
_sizes: dict[tuple, int] = Memo("sizes of deferred operations", 1024)


def _one_by_one(tape: _Taken, rows: list[Row], outs: Sequence[int]) -> list[np.ndarray]:
    """What the rows give for each of `outs`, as if each had run at once."""
    last: dict[int, int] = {}  # by code: the row that reads it last
    for i, (_, codes, _) in enumerate(rows):
        last.update(dict.fromkeys(codes, i))
    last.update(dict.fromkeys(outs, len(rows)))
    inputs = map(ArrayImpl, tape.inputs, tape.avals)
    values: dict[int, Any] = {-1 - k: x for k, x in enumerate(inputs)}
    for i, (form, codes, _) in enumerate(rows):
        first = i << RESULTS
        if not any([first | k in last for k in range(len(form.outs))]):
            continue
        args = tuple([values[code] for code in codes])
        out = evaluate_python(form.primitive, args, form.params)
        values.update({first | k: x for k, x in enumerate(out if form.several else [out])})
        for code in codes:
            if last[code] == i:
                values.pop(code, None)
    return [values[code]._value for code in outs]


def finish_here(why: str) -> None:
    """Run what the calling thread has written down."""
    _local.open.tape.finish(why)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=lambda: finish_here("a fork"))

hooks.defer, hooks.defer_plan, hooks.defer_again = defer, defer_plan, defer_again
hooks.planned, hooks.prepare = planned, prepare
native.connect(
    {
        "tape": Tape, "local": _local, "open_name": "open",
        "defer_plan": defer_plan, "starts": _starts, "code": Tape.code,
    },
    {
        "enabled": _known_at.buffer_info()[0], "soft": SOFT, "hard": HARD, "results": RESULTS,
        "copied": COPIED_AT_ONCE,
    },
)  # fmt: skip
