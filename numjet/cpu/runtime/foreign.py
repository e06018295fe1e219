"""Calls of compiled functions of others from programs, without Python between.

The first call of a place goes through Python (`ops.foreign`), which finds the target and has it
make its state. `Described.prepare` then makes the frame that `code.foreign` calls the handler with.
What it does not take - the older interface, other layouts than row by row, elements of less than a
byte, arrays without elements - stays with Python. What would break it: a frame that outlives what
it points to; `Described` holds all of it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from numjet.core.ffi_targets import Prepared
from numjet.cpu.builder.records import layout_of, zeros
from numjet.cpu.runtime import build
from numjet.cpu.runtime.code.foreign import Foreign

_ENDED = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Described:
    """What describes a call to native code: `address`. python: the address of the callback that is
    called instead as long as nothing is prepared. failed(error): keeps an exception of the calling
    thread's program."""

    def __init__(self, python: int, failed: Callable[[BaseException], None]) -> None:
        self._call = zeros(Foreign)
        self._call.busy, self._call.otherwise = 1, python
        self._failed = failed
        self._held: list[object] = []
        self.waiting = True  # for `prepare`

    @property
    def address(self) -> int:
        return self._call._at  # type: ignore[no-any-return]

    def prepare(self, prepared: Prepared | None) -> None:
        """Have the next call go to the handler itself. None: calls stay with Python."""
        self.waiting = False
        if prepared is None:
            return
        call = self._call
        arrays = ctypes.c_int64 * max(len(prepared.data), 1)
        tables = [
            arrays(*of)
            for of in (prepared.data, prepared.alias, prepared.nbytes, prepared.aside)
        ]
        ended = _ENDED(self._ended(prepared))
        self._held += [prepared, tables, ended]
        call.handler, call.frame, call.future = prepared.handler, prepared.frame, prepared.future
        call.operands, call.count = prepared.operands, len(prepared.data)
        call.data, call.alias, call.bytes, call.aside = map(ctypes.addressof, tables)
        call.ended = _pointer(ended)
        call.holds = _pointer(ctypes.pythonapi.PyGILState_Check)
        call.release = _pointer(ctypes.pythonapi.PyEval_SaveThread)
        call.take = _pointer(ctypes.pythonapi.PyEval_RestoreThread)
        names = layout_of(Foreign)
        prepared.watched_by(*[self.address + names.field(name)[0] for name in ("runs", "left")])
        call.busy = 0

    def _ended(self, prepared: Prepared) -> Callable[[int | None], None]:
        call, failed = self._call, self._failed

        def ended(error: int | None) -> None:
            try:
                prepared.ended(error)
                call.left = 0
            except BaseException as raised:
                failed(raised)

        return ended


def entry() -> int:
    """The address of what programs call."""
    return build.library("foreign").address("foreign")


def _pointer(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
