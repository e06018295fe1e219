"""The functions that compiled functions of others call back: XLA's table for its foreign calls.

A function of the table takes one structure (`base.ffi_structs`) and gives an error, or null. They
are called from any thread, by `core.ffi_targets`' calls. Pointers that handlers keep (errors,
contexts, futures) are numbers here, which tables translate; nothing is read through them. What
would break it: an exception that leaves a function of the table, which nobody could take, so each
is made an error of the interface.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from numjet.base import config, ffi_structs as structs
from numjet.base.errors import JaxRuntimeError
from numjet.base.ffi_structs import CODES


class FfiError(JaxRuntimeError):
    """An error of the interface: a code and what is told."""

    def __init__(self, code: int, message: str) -> None:
        self.code, self.told = code, message
        name = CODES[code] if 0 <= code < len(CODES) else ""
        super().__init__(f"{name}: {message}")


# ------------------------------------------------------------------ errors
_numbers = itertools.count(1)
_errors: dict[int, tuple[FfiError, Any]] = {}  # number -> the error, the message's memory


def _given(error: FfiError) -> int:
    number = next(_numbers)
    _errors[number] = error, ctypes.create_string_buffer(error.told.encode())
    return number


def taken(number: int) -> FfiError:
    """The error that a handler gave, which is forgotten."""
    found = _errors.pop(number, None)
    if found is None:
        return FfiError(structs.UNKNOWN, "The handler gave an error that the table has not.")
    return found[0]


def _error_create(args: Any) -> int | None:
    return _given(FfiError(args.code, (args.message or b"").decode(errors="replace")))


def _error_message(args: Any) -> None:
    args.message = ctypes.addressof(_errors[args.error][1])


def _error_destroy(args: Any) -> None:
    _errors.pop(args.error, None)


# ------------------------------------------------------------------ types of handlers' states
class _Type:
    def __init__(self, number: int, deleter: int | None) -> None:
        self.number, self.deleter = number, deleter


_types: dict[str, _Type] = {}
_types_by_number: dict[int, _Type] = {}
_types_lock = threading.Lock()


def register_type(name: str, type_id: int, type_info: int | None) -> None:
    """Give a type its number, which is written where `type_id` points. type_info: the address of
    what tells how values are deleted. Raises FfiError for another number than it had."""
    place = ctypes.c_int64.from_address(type_id)
    deleter = structs.TypeInfo.from_address(type_info).deleter if type_info else None
    with _types_lock:
        known = _types.get(name)
        if known is None:
            number = place.value or max(_types_by_number, default=0) + 1
            known = _types_by_number.setdefault(number, _Type(number, None))
            _types[name] = known
        elif place.value not in (0, known.number):
            raise FfiError(
                structs.INVALID_ARGUMENT, f"Type {name} is registered with another number."
            )
        known.deleter = deleter or known.deleter
        place.value = known.number


def is_type(number: int) -> bool:
    """Whether a type has this number."""
    return number in _types_by_number


def delete(number: int, value: int) -> None:
    """Delete a value of the type of this number."""
    deleter = _types_by_number[number].deleter
    if deleter:
        structs.VOID(deleter)(value)


def _type_register(args: Any) -> None:
    register_type(structs.text_at(args.name), args.type_id, args.type_info)


# ------------------------------------------------------------------ one call
class Context:
    """What handlers ask of a call: its number, and the states of its target by stage."""

    __slots__ = ("number", "states", "blocks", "runs", "left")

    def __init__(self, states: dict[int, tuple[int, int]]) -> None:
        self.states = states  # stage -> (the type's number, the address of the state)
        self.number = next(_numbers)
        self.blocks: dict[int, Any] = {}  # address -> memory that a handler asked for
        # Of calls that native code makes: their count, and whether one left something behind.
        self.runs, self.left = ctypes.c_int64(), ctypes.c_int64()
        _contexts[self.number] = self

    @property
    def run(self) -> int:
        """The number of the present call, which no other has."""
        return (self.number << 32) + self.runs.value

    def close(self) -> None:
        """Forget the call, and free its memory."""
        _contexts.pop(self.number, None)
        self.blocks.clear()


_contexts: dict[int, Context] = {}


def _context_get(args: Any) -> None:
    number = ctypes.c_int64.from_address(args.type_id).value
    raise FfiError(structs.NOT_FOUND, f"The call holds no data of type {number}.")


def _state_set(args: Any) -> None:
    context, number = _contexts[args.context], ctypes.c_int64.from_address(args.type_id).value
    if number not in _types_by_number:
        raise FfiError(structs.NOT_FOUND, f"Type {number} of a handler's state is not registered.")
    if args.stage in context.states:
        raise FfiError(structs.FAILED_PRECONDITION, "The state of this stage is set already.")
    context.states[args.stage] = number, args.state
    context.left.value = 1


def _state_get(args: Any) -> None:
    number = ctypes.c_int64.from_address(args.type_id).value
    found = _contexts[args.context].states.get(args.stage)
    if found is None:
        raise FfiError(structs.NOT_FOUND, "The state of this stage is not set.")
    if found[0] != number:
        raise FfiError(
            structs.INVALID_ARGUMENT,
            f"The state of this stage is of type {found[0]}, not of type {number}.",
        )
    args.state = found[1]


def _stream_get(args: Any) -> None:
    raise FfiError(structs.UNIMPLEMENTED, "The CPU has no stream; a GPU has.")


def _memory_allocate(args: Any) -> None:
    alignment = max(args.alignment, 1)
    block = (ctypes.c_char * (args.size + alignment)).from_buffer(
        bytearray(args.size + alignment)
    )
    address = ctypes.addressof(block)
    args.data = address + -address % alignment
    context = _contexts[args.context]
    context.blocks[args.data] = block
    context.left.value = 1


def _memory_free(args: Any) -> None:
    _contexts[args.context].blocks.pop(args.data, None)


def _run_id(args: Any) -> None:
    args.run = _contexts[args.context].run


def _device_ordinal(args: Any) -> None:
    args.device = 0


# ------------------------------------------------------------------ threads
_pool: tuple[int, ThreadPoolExecutor] | None = None  # the process that it belongs to
_pool_lock = threading.Lock()


def _threads() -> int:
    return config.num_threads.value or os.cpu_count() or 1


def _pool_schedule(args: Any) -> None:
    global _pool
    with _pool_lock:
        if _pool is None or _pool[0] != os.getpid():  # threads do not outlive a fork
            _pool = os.getpid(), ThreadPoolExecutor(_threads(), "numjet-ffi")
        _pool[1].submit(structs.VOID(args.task), args.data)


def _pool_threads(args: Any) -> None:
    ctypes.c_int64.from_address(args.count).value = _threads()


class Future:
    """What a handler that returns before its results are there tells of their end."""

    __slots__ = ("number", "error", "done")

    def __init__(self) -> None:
        self.error: FfiError | None = None
        self.done = threading.Event()
        self.number = next(_numbers)
        _futures[self.number] = self


_futures: dict[int, Future] = {}


def wait(number: int) -> None:
    """Wait for the end of a future; raise its error."""
    future = _futures[number]
    try:
        future.done.wait()
    finally:
        _futures.pop(number, None)
    if future.error is not None:
        raise future.error


def _future_create(args: Any) -> None:
    args.future = Future().number


def _future_available(args: Any) -> None:
    _futures[args.future].done.set()


def _future_error(args: Any) -> None:
    future = _futures[args.future]
    future.error = taken(args.error)
    future.done.set()


# ------------------------------------------------------------------ the table
# What registers a handler that a library registers by itself; `core.ffi_targets` sets it.
register: list[Callable[[str, str, dict[str, int], int], None]] = []


def _handler_register(args: Any) -> None:
    bundle = args.bundle
    stages = {name: getattr(bundle, name) for name, _ in bundle._fields_}
    register[0](
        structs.text_at(args.name), structs.text_at(args.platform),
        {name: address for name, address in stages.items() if address}, args.traits,
    )  # fmt: skip


_TAKES: dict[str, tuple[type[ctypes.Structure], Callable[[Any], Any]]] = {
    "error_create": (structs.NewError, _error_create),
    "error_message": (structs.ErrorMessage, _error_message),
    "error_destroy": (structs.OldError, _error_destroy),
    "handler_register": (structs.Registration, _handler_register),
    "stream_get": (structs.StreamArgs, _stream_get),
    "type_register": (structs.TypeRegistration, _type_register),
    "context_get": (structs.ContextData, _context_get),
    "state_set": (structs.StateArgs, _state_set),
    "state_get": (structs.StateArgs, _state_get),
    "memory_allocate": (structs.Allocation, _memory_allocate),
    "memory_free": (structs.Release, _memory_free),
    "pool_schedule": (structs.Task, _pool_schedule),
    "pool_threads": (structs.Threads, _pool_threads),
    "future_create": (structs.FutureArgs, _future_create),
    "future_available": (structs.FutureArgs, _future_available),
    "future_error": (structs.FutureError, _future_error),
    "run_id": (structs.RunArgs, _run_id),
    "device_ordinal": (structs.DeviceArgs, _device_ordinal),
}


def _entry(takes: type[ctypes.Structure], function: Callable[[Any], Any]) -> Any:
    def entry(address: int) -> int | None:
        try:
            return function(takes.from_address(address))  # type: ignore[no-any-return]
        except FfiError as error:
            return _given(error)
        except Exception as error:
            return _given(FfiError(structs.INTERNAL, f"{type(error).__name__}: {error}"))

    return structs.HANDLER(entry)


_entries = {name: _entry(*_TAKES[name]) for name in structs.FUNCTIONS}
_table = structs.Api(
    ctypes.sizeof(structs.Api), None,
    structs.Version(ctypes.sizeof(structs.Version), None, *structs.VERSION), None,
    *[ctypes.cast(_entries[name], ctypes.c_void_p) for name in structs.FUNCTIONS],
)  # fmt: skip
TABLE = ctypes.addressof(_table)
