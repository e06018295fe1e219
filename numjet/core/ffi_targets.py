"""Compiled functions of others under their names, and calls of them on arrays.

For `ops.foreign` and `numjet.ffi`. A target is a handler of XLA's foreign function interface for
each stage that it has, or a function of the older interface; a `Site` is a place of a program that
calls one, with its attributes and the state that the target keeps for it. Handlers see arrays as
XLA hands them out: 64-byte aligned, in the layout that was asked for, elements of less than a byte
packed. What would break it: a frame that two calls share, since handlers of several threads run
side by side.
"""

from __future__ import annotations

import ctypes
import math
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from numjet.base import ffi_structs as structs
from numjet.core import dtypes, ffi_api, hooks
from numjet.core.ffi_api import Context, FfiError

_ALIGNMENT = 64  # that XLA promises its handlers
# Bytes up to which native code copies an array that is not aligned so.
ASIDE = 1 << 16
_BYTE = np.dtype(np.uint8)


@dataclass(frozen=True)
class Target:
    """stages: the addresses of its handlers by the names of their stages; of an untyped one (the
    older interface) that of its function as "execute"."""

    name: str
    stages: dict[str, int]
    typed: bool


_targets: dict[tuple[str, str, bool], Target] = {}  # (name, platform, typed)


def platform_name(platform: str) -> str:
    """The name under which the targets of a platform are kept."""
    name = platform.lower()
    return "host" if name == "cpu" else name


def register(name: str, platform: str, stages: dict[str, int], typed: bool = True) -> None:
    """Make a target known. Raises FfiError where another one has its name, and for handlers of
    another version of the interface or of types that are not registered."""
    place = platform_name(platform)
    if typed and "execute" not in stages:
        raise FfiError(
            structs.INVALID_ARGUMENT,
            f"FFI handler for {name} on a platform {place} must provide an execute implementation.",
        )
    key = name, place, typed
    known = _targets.get(key)
    if known is not None:
        if known.stages != stages:
            raise FfiError(
                structs.INVALID_ARGUMENT,
                f"Duplicate FFI handler registration for {name} on platform {place} with different "
                "addresses: a target is registered once.",
            )
        return
    if typed and place == "host":
        for stage in ("execute", "instantiate"):
            if stage in stages:
                _check(name, stages[stage])
    _targets[key] = Target(name, dict(stages), typed)


ffi_api.register.append(lambda name, platform, stages, traits: register(name, platform, stages))


def _check(name: str, handler: int) -> None:
    """Ask a handler for its version and for the type of the state that it makes."""
    told = structs.Metadata(ctypes.sizeof(structs.Metadata))
    told.version.struct_size = ctypes.sizeof(structs.Version)
    asked = structs.Extension(
        ctypes.sizeof(structs.Extension), structs.METADATA, None, ctypes.addressof(told)
    )
    frame = _frame(None, structs.EXECUTE, ctypes.addressof(asked))
    error = structs.HANDLER(handler)(ctypes.addressof(frame))
    if error:
        raise ffi_api.taken(error)
    major, minor = structs.VERSION
    if told.version.major != major or told.version.minor > minor:
        raise FfiError(
            structs.INVALID_ARGUMENT,
            f"The handler of {name} is of version {told.version.major}.{told.version.minor} of the "
            f"interface, numjet's is {major}.{minor}. Compile it with older headers.",
        )
    if told.state_type and not ffi_api.is_type(told.state_type):
        raise FfiError(
            structs.FAILED_PRECONDITION,
            "Types used by FFI handlers must be registered before the handler registration.",
        )


def _frame(context: Context | None, stage: int, extension: int | None = None) -> structs.Frame:
    """A call frame without operands, results and attributes."""
    frame = structs.Frame(structs.Frame.counted, extension, ffi_api.TABLE)
    frame.context, frame.stage = context.number if context else None, stage
    frame.operands.struct_size = frame.results.struct_size = ctypes.sizeof(structs.List)
    frame.attributes.struct_size = ctypes.sizeof(structs.Attributes)
    return frame


# ------------------------------------------------------------------ attributes
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_SCALARS = frozenset(["bool", *_INTEGERS, "float32", "float64"])
_ELEMENTS = frozenset([*_INTEGERS, "float32", "float64"])


def attributes(given: Sequence[tuple[str, Any]], keep: list) -> structs.Attributes:
    """Attributes as handlers see them, in the order of their names. keep: gets what has to live
    as long. Raises TypeError and FfiError for values that handlers cannot be given."""
    ordered = sorted(given, key=lambda item: item[0].encode())
    made = [_attribute(name, value, keep) for name, value in ordered]
    names = [_text(name.encode(), keep) for name, _ in ordered]
    found = structs.Attributes(ctypes.sizeof(structs.Attributes), None, len(ordered))
    if ordered:
        found.types = _array(ctypes.c_int, [kind for kind, _ in made], keep)
        found.names = _array(ctypes.c_void_p, [ctypes.addressof(x) for x in names], keep)
        found.items = _array(ctypes.c_void_p, [ctypes.addressof(x) for _, x in made], keep)
    return found


def _array(kind: Any, values: Sequence[Any], keep: list) -> int:
    made = (kind * len(values))(*values)
    keep.append(made)
    return ctypes.addressof(made)


def _text(value: bytes, keep: list) -> structs.Text:
    buffer = ctypes.create_string_buffer(value)
    made = structs.Text(ctypes.addressof(buffer), len(value))
    keep += [buffer, made]
    return made


def _attribute(name: str, value: Any, keep: list) -> tuple[int, Any]:
    if isinstance(value, str | bytes):
        return structs.STRING, _text(value.encode() if isinstance(value, str) else value, keep)
    if isinstance(value, dict):
        made = attributes(list(value.items()), keep)
        keep.append(made)
        return structs.DICTIONARY, made
    if isinstance(value, bool | int | float) and not isinstance(value, np.generic):
        kind = {bool: np.bool_, int: np.int64, float: np.float64}
        value = next(as_ for python, as_ in kind.items() if isinstance(value, python))(value)
    if isinstance(value, np.generic):
        return structs.SCALAR, _scalar(name, value, keep)
    if isinstance(value, np.ndarray):
        return structs.ARRAY, _numbers(name, value, keep)
    if isinstance(value, tuple):
        raise FfiError(
            structs.INVALID_ARGUMENT,
            f"Unsupported attribute type for attribute: {name}. Pass np.array(values, dtype).",
        )
    raise TypeError(f"No attribute handler defined for type: {type(value)} (attribute {name!r}).")


def _scalar(name: str, value: np.generic, keep: list) -> structs.Scalar:
    if value.dtype.kind == "c":
        raise TypeError(f"Unsupported scalar attribute type: {type(value)} (attribute {name!r}).")
    if value.dtype.name not in _SCALARS:
        raise FfiError(
            structs.INVALID_ARGUMENT,
            f"Unsupported attribute of {value.dtype} for attribute: {name}. Pass a bool, an "
            "integer, a float32 or a float64.",
        )
    return _held(structs.Scalar, np.asarray(value), keep)


def _numbers(name: str, value: np.ndarray, keep: list) -> structs.Numbers:
    if value.dtype.name not in _ELEMENTS:
        raise FfiError(
            structs.INVALID_ARGUMENT,
            f"Unsupported array element type for attribute: {name}, {value.dtype}. Pass integers, "
            "float32 or float64.",
        )
    return _held(structs.Numbers, value, keep)


def _held(kind: Any, value: np.ndarray, keep: list) -> Any:
    held = np.array(value, order="C", copy=True)
    made = kind(structs.DTYPES[value.dtype.name])
    if kind is structs.Scalar:
        made.value = _address(held)
    else:
        made.size, made.data = held.size, _address(held)
    keep += [held, made]
    return made


# ------------------------------------------------------------------ operands and results
class Shape:
    """Of an operand or a result: shape, dtype, and order, the axes from the slowest to the fastest;
    and what handlers are told of it."""

    __slots__ = ("shape", "dtype", "order", "in_rows", "width", "nbytes", "number", "dims")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, order: tuple[int, ...]) -> None:
        self.shape, self.dtype, self.order = shape, dtype, order
        self.in_rows = order == tuple(range(len(shape)))
        # The bits of an element in a handler's memory.
        self.width = dtypes.bits(dtype) if dtype in dtypes.NARROW else dtype.itemsize * 8
        self.nbytes = (math.prod(shape) * self.width + 7) // 8
        self.number = structs.DTYPES[dtype.name]
        self.dims = (ctypes.c_int64 * len(shape))(*shape)

    @property
    def stored(self) -> tuple[int, ...]:
        """The shape in memory, row by row."""
        return tuple([self.shape[axis] for axis in self.order])


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


def _empty(nbytes: int) -> np.ndarray:
    """Aligned memory of so many bytes, of at least one."""
    whole = hooks.new_array((max(nbytes, 1) + _ALIGNMENT,), _BYTE)
    start = -_address(whole) % _ALIGNMENT
    return whole[start : start + max(nbytes, 1)]


def _packed(value: np.ndarray, width: int) -> np.ndarray:
    """Elements of `width` bits, which lie a byte each, side by side: the first in the low bits."""
    count = 8 // width
    flat = value.reshape(-1).view(np.uint8) & ((1 << width) - 1)
    rows = np.zeros((-(-flat.size // count), count), np.uint8)
    rows.reshape(-1)[: flat.size] = flat
    shifts = np.arange(count, dtype=np.uint8) * np.uint8(width)
    return np.bitwise_or.reduce(rows << shifts, axis=1)


def _unpacked(memory: np.ndarray, of: Shape) -> np.ndarray:
    width = of.width
    count, size = 8 // width, math.prod(of.shape)
    shifts = np.arange(count, dtype=np.uint8) * np.uint8(width)
    mask = np.uint8((1 << width) - 1)
    bits = ((memory[:, None] >> shifts) & mask).reshape(-1)[:size]
    if of.dtype in dtypes.NARROW_FLOATS:
        return bits.view(of.dtype)
    if of.dtype in dtypes.NARROW_SIGNED:
        sign = np.uint8(1 << (width - 1))
        return ((bits ^ sign).astype(np.int8) - np.int8(sign)).astype(of.dtype)
    return bits.astype(of.dtype)


def _bytes_of(value: np.ndarray, of: Shape) -> np.ndarray:
    """An operand's bytes, laid out as it was asked for."""
    turned = np.ascontiguousarray(value if of.in_rows else value.transpose(of.order))
    return _packed(turned, of.width) if of.width < 8 else turned.reshape(-1).view(_BYTE)


def _operand(value: np.ndarray, of: Shape) -> np.ndarray:
    found = _bytes_of(value, of)
    if found.size and not _address(found) % _ALIGNMENT:
        return found
    memory = _empty(found.size)
    memory[: found.size] = found
    return memory


def _result(memory: np.ndarray, of: Shape) -> np.ndarray:
    memory = memory[: of.nbytes]
    flat = _unpacked(memory, of) if of.width < 8 else memory.view(of.dtype)
    if of.in_rows:
        return flat.reshape(of.shape)
    return np.ascontiguousarray(flat.reshape(of.stored).transpose(np.argsort(of.order)))


def _buffers(given: Sequence[int], shapes: Sequence[Shape], keep: list) -> structs.List:
    """Arrays of these addresses as handlers see them."""
    made = [
        structs.Buffer(
            ctypes.sizeof(structs.Buffer), None, of.number, address, len(of.shape),
            ctypes.addressof(of.dims),
        )  # fmt: skip
        for address, of in zip(given, shapes, strict=True)
    ]
    keep += made
    found = structs.List(ctypes.sizeof(structs.List), None, len(made))
    found.types = _array(ctypes.c_int, [structs.BUFFER] * len(made), keep)
    found.items = _array(ctypes.c_void_p, [ctypes.addressof(x) for x in made], keep)
    return found


# ------------------------------------------------------------------ calls
def _delete_states(states: dict[int, tuple[int, int]]) -> None:
    for number, address in states.values():
        ffi_api.delete(number, address)


class Site:
    """A place of a program that calls the target of a name.

    given: the attributes. version: 4 for handlers; of the older interface 1 for functions of
    results and operands, 2 with a status, 3 with a text and its length before that: `text`.
    """

    def __init__(
        self, name: str, given: Sequence[tuple[str, Any]], version: int, text: str | None
    ) -> None:
        self.name, self.version, self.text = name, version, (text or "").encode()
        self._keep: list[Any] = []
        self._attributes = attributes(given, self._keep)
        self._states: dict[int, tuple[int, int]] = {}
        self._ready, self._lock = False, threading.Lock()
        weakref.finalize(self, _delete_states, self._states).atexit = False

    def __call__(
        self,
        operands: Sequence[np.ndarray],
        shapes: Sequence[Shape],
        results: Sequence[Shape],
        aliases: Sequence[tuple[int, int]],
    ) -> list[np.ndarray]:
        """The target's results. aliases: (operand, result) that have one memory. Raises FfiError
        for what a handler tells, and where there is no such target."""
        target = self._target()
        outs = [_empty(of.nbytes) for of in results]
        shared = dict(aliases)
        ins = []
        for i, (value, of) in enumerate(zip(operands, shapes, strict=True)):
            if i in shared:
                content = _bytes_of(value, of)
                outs[shared[i]][: content.size] = content
                ins.append(outs[shared[i]])
            else:
                ins.append(_operand(value, of))
        if target.typed:
            self._instantiate(target)
            self._execute(target, ins, shapes, outs, results)
        else:
            self._call_untyped(target, ins, outs)
        return [_result(memory, of) for memory, of in zip(outs, results, strict=True)]

    def _target(self) -> Target:
        typed = self.version >= 4
        found = _targets.get((self.name, "host", typed))
        if found is not None:
            return found
        if typed:
            raise FfiError(
                structs.NOT_FOUND,
                f"No FFI handler registered for {self.name} on a platform Host. Register it with "
                "ffi.register_ffi_target(name, ffi.pycapsule(function), platform='cpu').",
            )
        raise FfiError(
            structs.NOT_FOUND,
            f"No registered implementation for untyped custom call to {self.name} for Host. "
            "Register it with ffi.register_ffi_target(..., api_version=0).",
        )

    def _instantiate(self, target: Target) -> None:
        if self._ready:
            return
        with self._lock:
            if not self._ready and "instantiate" in target.stages:
                context = Context(self._states)
                try:
                    frame = _frame(context, structs.INSTANTIATE)
                    frame.attributes = self._attributes
                    _run(target.stages["instantiate"], frame)
                finally:
                    context.close()
            self._ready = True

    def _execute(
        self,
        target: Target,
        ins: Sequence[np.ndarray],
        shapes: Sequence[Shape],
        outs: Sequence[np.ndarray],
        results: Sequence[Shape],
    ) -> None:
        keep: list[Any] = []
        context = Context({**self._states})
        try:
            frame = _frame(context, structs.EXECUTE)
            frame.operands = _buffers([*map(_address, ins)], shapes, keep)
            frame.results = _buffers([*map(_address, outs)], results, keep)
            frame.attributes = self._attributes
            _run(target.stages["execute"], frame)
        finally:
            context.close()

    def prepared(
        self,
        shapes: Sequence[Shape],
        results: Sequence[Shape],
        aliases: Sequence[tuple[int, int]],
    ) -> Prepared | None:
        """A frame for calls on arrays that lie as handlers see them, after a first call; None
        where arrays have to be brought into another form, and for the older interface."""
        plain = all(of.in_rows and of.width >= 8 and of.nbytes for of in (*shapes, *results))
        if not plain or self.version < 4:
            return None
        return Prepared(self, self._target().stages["execute"], shapes, results, aliases)

    def _call_untyped(
        self, target: Target, ins: Sequence[np.ndarray], outs: Sequence[np.ndarray]
    ) -> None:
        if self.version < 1:
            raise FfiError(
                structs.INVALID_ARGUMENT,
                f"Unknown custom-call API version enum value: {self.version} "
                "(API_VERSION_UNSPECIFIED).",
            )
        keep: list[Any] = []
        given = _array(ctypes.c_void_p, [_address(x) for x in ins], keep)
        if len(outs) == 1:
            result = _address(outs[0])
        else:
            result = _array(ctypes.c_void_p, [_address(x) for x in outs], keep)
        # A status is a C++ object, which is all zeros as long as nothing failed.
        status = ctypes.create_string_buffer(64)
        values: list[Any] = [result, given]
        if self.version >= 3:
            values += [ctypes.c_char_p(self.text), ctypes.c_size_t(len(self.text))]
        if self.version >= 2:
            values.append(ctypes.addressof(status))
        kinds = [type(x) if not isinstance(x, int) else ctypes.c_void_p for x in values]
        ctypes.CFUNCTYPE(None, *kinds)(target.stages["execute"])(*values)
        if status.raw.strip(b"\0"):
            raise FfiError(structs.INTERNAL, f"The function {self.name} set its status to failed.")


class Prepared:
    """The frame of calls that come one after the other, for native code that has the arrays.

    handler, frame: addresses. future: of the frame's word for one. data: where the addresses of
    operands, then of results stand, of `nbytes` each. alias: for each operand the number of the
    array, a result, that it shares its memory with, or 0. aside: for each aligned
    memory that it may be copied to, or 0.
    """

    def __init__(
        self,
        site: Site,
        handler: int,
        shapes: Sequence[Shape],
        results: Sequence[Shape],
        aliases: Sequence[tuple[int, int]],
    ) -> None:
        self.handler, self.operands = handler, len(shapes)
        self._site, self._states, self._keep = site, {**site._states}, []  # type: ignore[var-annotated]
        context = self._context = Context({**self._states})
        weakref.finalize(self, context.close).atexit = False
        frame = self._frame = _frame(context, structs.EXECUTE)
        frame.operands = _buffers([0] * len(shapes), shapes, self._keep)
        frame.results = _buffers([0] * len(results), results, self._keep)
        frame.attributes = site._attributes
        at = structs.Buffer.data.offset
        self.data = [
            ctypes.addressof(x) + at for x in self._keep if isinstance(x, structs.Buffer)
        ]
        self.nbytes = [of.nbytes for of in (*shapes, *results)]
        shared = dict(aliases)
        self.alias = [len(shapes) + shared[k] if k in shared else 0 for k in range(len(shapes))]
        self._aside = [_empty(n) if n <= ASIDE else None for n in self.nbytes]
        self.aside = [0 if memory is None else _address(memory) for memory in self._aside]
        self.frame = ctypes.addressof(frame)
        self.future = self.frame + structs.Frame.future.offset

    def watched_by(self, runs: int, left: int) -> None:
        """Say where the calls are counted, and where it is written that `ended` has work."""
        self._context.runs = ctypes.c_int64.from_address(runs)
        self._context.left = ctypes.c_int64.from_address(left)

    def ended(self, error: int | None) -> None:
        """See to what a call left: raise its error, wait for its future, free its memory."""
        future, self._frame.future = self._frame.future, None
        try:
            if error:
                raise ffi_api.taken(error)
            if future:
                ffi_api.wait(future)
        finally:
            self._context.blocks.clear()
            self._context.states = {**self._states}


def _run(handler: int, frame: structs.Frame) -> None:
    """Call a handler and wait for its end; raise its error."""
    error = structs.HANDLER(handler)(ctypes.addressof(frame))
    if error:
        raise ffi_api.taken(error)
    if frame.future:
        ffi_api.wait(frame.future)
