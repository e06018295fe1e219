"""Deferred evaluation of operations on a device: written down, and run together when one is read.

`xla.backend` hands an operation on arrays of one device to `defer`. It becomes a row of the calling
thread's `Tape`; its results are arrays whose buffers wait (`WaitingBuffer`). Whoever asks such a
buffer for its handles - an execution, a transfer, a look whether it is ready - finishes the tape:
what somebody still holds is computed by one program, what nobody holds never is.

Rows that are met for the first time are run one by one, as without this module, unless operations
among them would have to be compiled first anyhow; rows that are met again get a program of their
own. Host numbers are arguments of it, not constants. Nothing is deferred that could be observed:
operations that call Python or have effects, and those whose results are checked. What would break
it: a buffer that is deleted or donated while a tape that reads it is open (`buffers.finish_readers`
is called first).
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from numjet.base import config
from numjet.base.errors import XlaError
from numjet.base.record import NamedTuple
from numjet.core import hooks
from numjet.core.avals import ShapedArray
from numjet.core.deferred import note_piece
from numjet.core.jaxpr import ClosedJaxpr
from numjet.core.memo import Memo
from numjet.core.primitive import Primitive
from numjet.core.remote import RemoteArray
from numjet.transforms.stage import stage_closed
from numjet.xla.buffers import DeviceBuffer, explained, will_read

# From so many rows on a tape ends where an earlier one began, and at so many anywhere.
SOFT = 64
HARD = 512
# Rows met for the first time, with operations that were never compiled, are one program while so
# few programs were made for rows that were not met again.
FIRST = 32
FEW = 32

logger = logging.getLogger("numjet")
Load = Callable[[ClosedJaxpr, tuple, str], Any]

_numbers = itertools.count()
_starts: set[tuple] = set()
_MAX_STARTS = 4096


class Form:
    """An operation as a row has it: a primitive with parameters, on operands of given avals."""

    __slots__ = ("number", "primitive", "params", "closed", "may_wait", "compiled")

    def __init__(
        self, primitive: Primitive, params: dict, closed: ClosedJaxpr, may_wait: bool
    ) -> None:
        self.number = next(_numbers)
        self.primitive, self.params, self.closed = primitive, params, closed
        self.may_wait = may_wait  # nothing of it can be observed when it runs
        self.compiled: set[tuple] = set()  # the places for which it is a program of its own


class WaitingBuffer(DeviceBuffer):
    """The buffer of a row's result. It is a `DeviceBuffer` once its tape is finished."""

    __slots__ = ()

    def __init__(self, tape: Tape, code: int) -> None:
        self.devices, self.tape, self.code = tape.place, tape, code
        self.source = hooks.user_line()

    def __getattr__(self, name: str) -> Any:
        if name != "handles":
            raise AttributeError(name)
        self.tape.finish("read")
        return self.handles

    def arrive(self, made: DeviceBuffer | XlaError) -> None:
        """Take over what was computed, or what went wrong."""
        if isinstance(made, XlaError):
            self.tape = _Failed(made)
            return
        self.handles, self.maker = made.handles, made.maker
        self.tape = None
        self.__class__ = DeviceBuffer  # type: ignore[assignment]


class _Failed:
    """Stands for the tape of a result that could not be computed."""

    def __init__(self, error: XlaError) -> None:
        self.error = error

    def finish(self, why: str) -> None:
        """Raise what went wrong."""
        raise self.error


class Row(NamedTuple):
    """An operation, where its operands are - results of rows from 0 on, inputs from -1 down - and
    the buffers of its results, as far as somebody holds them."""

    form: Form
    operands: tuple[int, ...]
    results: Sequence[weakref.ref[WaitingBuffer]]


class Tape:
    """Operations of one thread on one place, and the buffers that they read. `load(closed, place,
    name)` gives the program of a jaxpr."""

    __slots__ = (
        "place", "load", "rows", "inputs", "avals", "known", "numbers", "count", "bytes", "limit",
        "lock", "ended", "__weakref__",
    )  # fmt: skip

    def __init__(self, place: tuple, load: Load) -> None:
        self.place, self.load = place, load
        self.rows: list[Row] = []
        self.inputs: list[DeviceBuffer] = []
        self.avals: list[ShapedArray] = []
        self.known: dict[int, int] = {}  # id of an input -> its code
        self.numbers: list[Any] = []
        self.count, self.bytes = 0, 0
        self.limit = config.eager_fusion_bytes.value
        self.lock = threading.RLock()
        self.ended = False

    def operand(self, buffer: DeviceBuffer, aval: ShapedArray) -> int:
        """The code of an operand, which becomes an input if no row made it."""
        if type(buffer) is WaitingBuffer and buffer.tape is self:
            return buffer.code
        code = self.known.get(id(buffer))
        if code is None or self.avals[-1 - code] is not aval:
            buffer.handles  # noqa: B018 - another thread's tape is finished
            self.inputs.append(buffer)
            self.avals.append(aval)
            self.bytes += aval.nbytes
            code = self.known[id(buffer)] = -len(self.inputs)
        return code

    def meet(self, number: Any, buffer: DeviceBuffer) -> None:
        """Know an array of the host, too, which is the input `buffer`."""
        code = self.known.get(id(buffer))
        if code is not None and self.avals[-1 - code] is number._aval:
            self.known[id(number)] = code
            self.numbers.append(number)  # so that its id stays its own

    def add(self, form: Form, operands: tuple[int, ...]) -> list[WaitingBuffer] | None:
        """Append a row; the buffers of its results. None where the tape has ended meanwhile."""
        with self.lock:
            if not self.ended and not self.rows:
                _begin(form)
                will_read(self)
            return self.row(form, operands, len(form.closed.out_avals))

    def row(self, form: Form, operands: tuple[int, ...], outs: int) -> list[WaitingBuffer] | None:
        """`add` of so many results, with the lock."""
        while not self.ended:
            first = self.count
            made = [WaitingBuffer(self, first + k) for k in range(outs)]
            row = Row(form, operands, [weakref.ref(b) for b in made])
            # What is allocated may run finalizers, which may compute and read.
            if first == self.count and not self.ended:
                self.count += outs
                self.rows.append(row)
                return made
        return None

    def full(self, form: Form) -> str:
        """Why the tape ends before a row of this form; "" where it does not."""
        n = len(self.rows)
        if n >= HARD:
            return "so many operations"
        if n >= SOFT and (form.number, None) in _starts and (
            form.number, hooks.user_line()) in _starts:  # fmt: skip
            return "a round of a loop"
        if self.bytes > self.limit:
            return "so much memory"
        return ""

    def finish(self, why: str) -> None:
        """Compute what somebody holds. What goes wrong leaves the rows for the next read."""
        with self.lock:
            self.ended = True
            if self.rows:
                # The thread whose it is may be adding an operand meanwhile, of no row.
                n = min(len(self.inputs), len(self.avals))
                _run(_Taken(self.place, self.load, self.rows, self.inputs[:n], self.avals[:n]), why)
            self.rows, self.inputs, self.known, self.numbers = [], [], {}, []


class _Taken(NamedTuple):
    """What is run of a tape that has ended."""

    place: tuple
    load: Load
    rows: list[Row]
    inputs: list[DeviceBuffer]
    avals: list[ShapedArray]


class _Local(threading.local):
    tape: Tape | None = None


_local = _Local()


def _begin(form: Form) -> None:
    """Note that a tape begins here."""
    if len(_starts) >= _MAX_STARTS:
        _starts.clear()
    _starts.add((form.number, None))
    _starts.add((form.number, hooks.user_line()))


# Whether operations are deferred, as it was at a state of the flags (`config.state`).
_known_at = (-1, False)


def enabled() -> bool:
    """Whether the flags ask for it."""
    global _known_at
    state, known = config.state[0], _known_at
    if state >= 0 and state == known[0]:
        return known[1]
    found = config.eager_fusion.value and not any(
        [flag.value for flag in (config.debug_nans, config.debug_infs, config.no_execution,
                                 config.disable_jit)]
    )  # fmt: skip
    if state >= 0:
        _known_at = state, found
    return found  # type: ignore[no-any-return]


def next_row(form: Form, arrays: Sequence[Any]) -> WaitingBuffer | None:
    """The result of a row where the tape goes on, and its operands are results of earlier rows or
    numbers of the host that it has met: what most rows are. None: `defer` decides."""
    tape = _local.tape
    if tape is None or tape.ended or not 0 < len(tape.rows) < SOFT or tape.bytes > tape.limit:
        return None
    codes = []
    for x in arrays:
        kept = x._buffer if type(x) is RemoteArray else x
        if type(kept) is WaitingBuffer and kept.tape is tape:
            codes.append(kept.code)
            continue
        code = tape.known.get(id(kept))
        if code is None or tape.avals[-1 - code] is not x._aval:
            return None
        codes.append(code)
    with tape.lock:
        made = tape.row(form, tuple(codes), 1)
    return None if made is None else made[0]


def defer(
    form: Form, place: tuple, buffers: Sequence[DeviceBuffer], avals: Sequence[ShapedArray],
    load: Load, numbers: Sequence[tuple[Any, DeviceBuffer]] = (),
) -> list[WaitingBuffer]:  # fmt: skip
    """Write an operation on buffers at a place down; the buffers of its results. numbers: arrays of
    the host and their buffers."""
    while True:
        tape = _local.tape
        if tape is None or tape.ended or tape.place is not place:
            if tape is not None and tape.rows:
                tape.finish("another device")
            tape = _local.tape = Tape(place, load)
        elif tape.rows and (why := tape.full(form)):
            tape.finish(why)
            continue
        operands = tuple([tape.operand(b, a) for b, a in zip(buffers, avals, strict=True)])
        made = tape.add(form, operands)
        if made is not None:
            for number, buffer in numbers:
                tape.meet(number, buffer)
            return made


# ------------------------------------------------------------------ running
_programs: Memo = Memo("programs of eager operations on devices")
# Programs made for rows met for the first time, and rows met again.
_first = [0, 0]
# What stands for the program of rows that were met once, and of those that cannot be compiled.
_SEEN, _REFUSED = object(), object()


def _run(tape: _Taken, why: str) -> None:
    start = time.perf_counter_ns()
    held: dict[int, WaitingBuffer] = {}
    for row in tape.rows:
        for result in row.results:
            buffer = result()
            if buffer is not None:
                held[buffer.code] = buffer
    if not held:
        return
    outs = tuple(held)
    made, how = _results(tape, outs)
    for code, result in zip(outs, made, strict=True):
        # A finalizer may have read them while the rows ran: others may use their handles by now.
        if type(held[code]) is WaitingBuffer:
            held[code].arrive(result)
    names = tuple([row.form.primitive.name for row in tape.rows])
    note_piece(names, len(outs), why, hooks.user_line(), how, start)


def _results(tape: _Taken, outs: tuple[int, ...]) -> tuple[list, str]:
    """The values of the codes `outs`, and how they were computed."""
    key = (tape.place, outs, tuple(tape.avals), *[(r.form.number, r.operands) for r in tape.rows])
    found = _programs.get(key)
    if found is _SEEN:
        _first[1] += 1
    if found is None and not _pays(tape):
        _programs[key] = _SEEN
    elif found is not _REFUSED:
        try:
            if found is None or found is _SEEN:
                found = _programs[key] = tape.load(_jaxpr(tape, outs), tape.place, "eager")
            return execute(found, tape.inputs), "one program"
        except XlaError as error:  # of which operation, shows when they run one by one
            logger.info("Operations on %s run one by one: %s", tape.place[0], error)
            if found is None or found is _SEEN:
                _programs[key] = _REFUSED
    return _one_by_one(tape, outs), "one by one"


def _pays(tape: _Taken) -> bool:
    """Whether rows that are new are compiled as one at once: there are operations among them that
    had to be compiled otherwise."""
    if len(tape.rows) == 1 or len(tape.rows) > FEW or _first[0] >= FIRST + _first[1] // 4:
        return False
    if sum([tape.place not in row.form.compiled for row in tape.rows]) < 2:
        return False
    _first[0] += 1
    return True


def execute(program: Any, buffers: Sequence[DeviceBuffer]) -> list[DeviceBuffer]:
    """Run a loaded program on buffers."""
    try:
        return program.program([*program.consts, *buffers])  # type: ignore[no-any-return]
    except XlaError as error:
        raise explained(error, program.name) from None


def _jaxpr(tape: _Taken, outs: Sequence[int]) -> ClosedJaxpr:
    """The rows as one program of the inputs."""

    def program(*inputs: Any) -> list:
        results: list = []
        for form, operands, _ in tape.rows:
            args = [results[c] if c >= 0 else inputs[-1 - c] for c in operands]
            out = form.primitive.bind(*args, **form.params)
            results += out if form.primitive.multiple_results else [out]
        return [results[c] for c in outs]

    return stage_closed(program, tuple(tape.avals))


def _one_by_one(tape: _Taken, outs: Sequence[int]) -> list[DeviceBuffer | XlaError]:
    """The results `outs`, each operation a program of its own, or why there is none."""
    last: dict[int, int] = {}
    for i, row in enumerate(tape.rows):
        last.update(dict.fromkeys(row.operands, i))
    wanted = set(outs)
    values: dict[int, Any] = {-1 - k: b for k, b in enumerate(tape.inputs)}
    count = 0
    for i, (form, operands, results) in enumerate(tape.rows):
        args = [values[c] for c in operands]
        problem = next((x for x in args if isinstance(x, XlaError)), None)
        try:
            if problem is None:
                program = tape.load(form.closed, tape.place, form.primitive.name)
                form.compiled.add(tape.place)
                values.update(enumerate(execute(program, args), count))
        except XlaError as error:
            problem = error
        if problem is not None:
            values.update(dict.fromkeys(range(count, count + len(results)), problem))
        count += len(results)
        for c in operands:
            if c >= 0 and last[c] == i and c not in wanted:
                values.pop(c, None)
    return [values[c] for c in outs]
