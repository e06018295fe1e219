"""Arrays in a device's memory: transfers from and to the host, readiness, deletion.

For `xla.client`, which makes them, and `xla.backend`.
"""

from __future__ import annotations

import ctypes
import gc
import math
import weakref
from collections.abc import Sequence
from ctypes import c_int64
from typing import Any

import ml_dtypes
import numpy as np

from numjet.base import locks
from numjet.base.errors import XlaError
from numjet.core import hooks
from numjet.core.remote import Held, RemoteArray
from numjet.xla import pjrt

# PJRT's numbers of element types.
NUMBERS = {
    "bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7, "uint32": 8,
    "uint64": 9, "float16": 10, "float32": 11, "float64": 12, "bfloat16": 13, "complex64": 14,
    "complex128": 15, "float8_e5m2": 16, "float8_e4m3fn": 17, "float8_e4m3b11fnuz": 18,
    "float8_e5m2fnuz": 19, "float8_e4m3fnuz": 20, "int4": 21, "uint4": 22, "int2": 24, "uint2": 25,
    "float8_e4m3": 26, "float8_e3m4": 27, "float8_e8m0fnu": 28, "float4_e2m1fn": 29,
}  # fmt: skip
_DTYPES = {
    number: np.dtype(getattr(ml_dtypes, name, None) or name) for name, number in NUMBERS.items()
}
ONLY_DURING_CALL = 0  # the plugin reads host memory while it is called
ZERO_COPY = 2  # it reads host memory as long as the buffer is there, and never writes to it
# Plugins whose devices' memory is the host's; arrays of so many bytes are used where they lie
# there, if that is a multiple of so many: looking is quicker than copying from there on.
HOST_PLATFORMS, SHOWN_BYTES, ALIGNMENT = ("xla_cpu",), 1 << 14, 64
# Elements of less than a byte lie together on devices, and one a byte here.
_PACKED = tuple([
    np.dtype(getattr(ml_dtypes, name)) for name in "int4 uint4 int2 uint2 float4_e2m1fn".split()
])
# The code of errors for want of memory, and how many arrays are named then.
_EXHAUSTED, _NAMED = 8, 10


# What will read buffers later, by identity: open tapes of deferred operations (`xla.deferral`).
# Not a WeakSet, which cannot be read while other threads add to it.
_readers: dict[int, weakref.ref] = {}


def will_read(reader: Any) -> None:
    """Note what will read buffers later, as long as anybody else keeps it."""
    key = id(reader)
    _readers[key] = weakref.ref(reader, lambda _: _readers.pop(key, None))


def finish_readers(why: str) -> None:
    """Have done with all that reads buffers later: the memory of some is about to go."""
    for reader in [found() for found in list(_readers.values())]:
        if reader is not None:
            reader.finish(why)


def explained(error: XlaError, name: str) -> XlaError:
    """The error of a program or transfer; for want of memory with the largest arrays that live, and
    the lines that made them."""
    if error.code != _EXHAUSTED:
        return error
    live = [x for x in gc.get_objects() if type(x) is RemoteArray and x._buffer is not None]
    sizes = sorted(((x.aval.nbytes, x) for x in live), key=lambda pair: -pair[0])[:_NAMED]
    lines = [f"{size:>16,} bytes: {x.aval.str_short()} on {x._buffer.devices[0]}"
             f"{'' if x._buffer.source is None else f', made at {x._buffer.source}'}"
             for size, x in sizes]
    return XlaError(
        f"{error} Out of memory in {name}. The largest of {len(live)} arrays that are alive, of "
        f"{sum(x.aval.nbytes for x in live):,} bytes together:\n" + "\n".join(lines) + "\n"
        "Delete some (x.delete()), donate arguments (donate_argnums), or recompute instead of "
        "keeping (numjet.checkpoint).", error.code,
    )  # fmt: skip


def may_stay(value: np.ndarray) -> bool:
    """Whether a host's array may be used where it lies: nobody can write to it, being numjet's own
    or that of `bytes`, and it is large enough and lies well."""
    if value.nbytes < SHOWN_BYTES or not value.flags.c_contiguous or value.dtype in _PACKED:
        return False
    owner = value
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    ours = type(owner.base) is bytes or getattr(owner.base, "from_pool", False)
    return ours and value.ctypes.data % ALIGNMENT == 0


_counting = locks.reentrant()  # finalizers may run anywhere


class _Shown:
    """A part in the host's memory, which NumPy sees where it lies; deleted and donated buffers give
    such memory back when nobody sees it any more."""

    __slots__ = ("buffer", "handle", "shape", "dtype", "__array_interface__")

    def __init__(self, buffer: DeviceBuffer, handle: int, shape: tuple, dtype: np.dtype) -> None:
        self.buffer, self.handle, self.shape, self.dtype = buffer, handle, shape, dtype
        buffer.show(handle)

    def array(self) -> np.ndarray:
        """The part, once it is computed."""
        call = self.buffer.client.plugin.call
        address = call("Buffer_UnsafePointer", buffer=self.handle).address
        size = math.prod(self.shape) * self.dtype.itemsize
        self.__array_interface__ = {
            "version": 3, "shape": (size,), "typestr": "|u1", "data": (address, True),
        }
        return np.asarray(self).view(self.dtype).reshape(self.shape)

    def __del__(self) -> None:
        self.buffer.hide(self.handle)


class DeviceBuffer(Held):
    """An array in the memory of `devices`: on one of them, or a part on each. `handles` are the
    plugin's, one a device, made by its client's `handle_of`, so that the memory is given back with
    the last."""

    __slots__ = ("_fetched", "tape", "code", "shown", "kind", "__weakref__")
    _fetched: Any
    # Where it is made, if it is not there yet (`xla.deferral`).
    tape: Any
    code: int
    # How many see its memory by other ways than this; an empty slot where there are none.
    shown: int
    # The kind of memory it is in; an empty slot where that is its devices' default.
    kind: str

    def __init__(self, handles: tuple[int, ...], devices: tuple) -> None:
        self.handles, self.devices, self.source = handles, devices, hooks.user_line()

    @property
    def client(self) -> Any:
        """The client of its devices."""
        return self.devices[0].client

    def known_in(self, kind: str | None) -> DeviceBuffer:
        """This buffer, new, of memory of a kind; None for that of arrays by default."""
        if kind is not None:
            self.kind = kind
            # A tuple of its own: generated calls know by its identity what programs can be given.
            self.devices = tuple([*self.devices])
        return self

    def in_memory(self, kind: str | None) -> DeviceBuffer:
        """The array in memory of a kind, None for that of arrays by default: this or a copy."""
        if getattr(self, "kind", None) == kind:
            return self
        call, made = self.client.plugin.call, self.client.handle_of
        handles = tuple([
            made(call("Buffer_CopyToMemory", buffer=handle,
                      memory=device.memories[kind or device.memory_kinds[0]]).made)
            for handle, device in zip(self.handles, self.devices, strict=True)
        ])  # fmt: skip
        return DeviceBuffer(handles, self.devices).known_in(kind)

    def _begin(self, handle: int) -> tuple[Any, int | None]:
        """The array that a part is being copied to, or where it is seen, and the event that says
        when it is there."""
        call = self.client.plugin.call
        found = call("Buffer_Dimensions", buffer=handle)
        shape = tuple((c_int64 * found.count).from_address(found.dims)) if found.count else ()
        dtype = _DTYPES[call("Buffer_ElementType", buffer=handle).type]
        size = math.prod(shape) * dtype.itemsize
        if size >= SHOWN_BYTES and self.client.platform in HOST_PLATFORMS and (
            dtype not in _PACKED and self.lies_in_rows(handle, len(shape))
        ):
            shown = _Shown(self, handle, shape, dtype)
            return shown, call("Buffer_ReadyEvent", buffer=handle).event
        out = np.empty(shape, dtype)
        if not size:
            return out, None
        order = (c_int64 * max(len(shape), 1))(*range(len(shape) - 1, -1, -1))
        layout = pjrt.Layout(
            struct_size=ctypes.sizeof(pjrt.Layout), minor_to_major=ctypes.addressof(order),
            rank=len(shape), tiled_size=ctypes.sizeof(pjrt.Layout) - 3 * 8,
        )  # fmt: skip
        made = call("Buffer_ToHostBuffer", buffer=handle, layout=ctypes.addressof(layout),
                    data=out.ctypes.data, size=out.nbytes)
        return out, made.event

    def whole(self) -> DeviceBuffer:
        """What its memory belongs to."""
        return self

    def show(self, handle: int) -> None:
        """Keep the memory of a part until `hide`, be the array deleted or given away meanwhile."""
        self.client.plugin.call("Buffer_IncreaseExternalReferenceCount", buffer=handle)
        owner = self.whole()
        with _counting:
            owner.shown = getattr(owner, "shown", 0) + 1

    def hide(self, handle: int) -> None:
        """Somebody who saw a part's memory sees it no more."""
        with _counting:
            self.whole().shown -= 1
        if self.client.alive:
            self.client.plugin.call("Buffer_DecreaseExternalReferenceCount", buffer=handle)

    def lies_in_rows(self, handle: int, ndim: int) -> bool:
        """Whether a part's innermost dimension is its last, and so on."""
        layout = self.client.plugin.call("Buffer_GetMemoryLayout", buffer=handle).layout
        if layout.type != 0 or layout.num_tiles or layout.rank != ndim:
            return False
        order = (c_int64 * ndim).from_address(layout.minor_to_major) if ndim else ()
        return list(order) == list(range(ndim - 1, -1, -1))

    def _begun(self) -> list[tuple[Any, int | None]]:
        """All parts, being copied."""
        made: list[tuple[Any, int | None]] = []
        try:
            for handle in self.handles:
                made.append(self._begin(handle))
        except BaseException:
            _arrived(self.client, made)
            raise
        return made

    def fetch(self) -> None:
        """Begin to copy all parts to the host."""
        if getattr(self, "_fetched", None) is None:
            self._fetched = _Copies(self.client, self._begun())

    def parts(self) -> list[np.ndarray]:
        """The value of each part as a NumPy array, row by row; waits for them."""
        copies = getattr(self, "_fetched", None)
        fetched = None if copies is None else copies.take()
        self._fetched = None
        if fetched is None:
            fetched = self._begun()
        problem = _arrived(self.client, fetched)
        if isinstance(problem, XlaError):
            raise self._explained(problem)
        if problem is not None:
            raise problem
        return [out.array() if type(out) is _Shown else out for out, _ in fetched]

    def result(self) -> np.ndarray:
        """The value of an array on one device."""
        return self.parts()[0]

    def assembled(self, indices: Sequence[tuple], shape: tuple) -> np.ndarray:
        """The whole array of parts that stand at `indices`, (device, index) each."""
        parts = dict(zip(self.devices, self.parts(), strict=True))
        out = np.empty(shape, next(iter(parts.values())).dtype)
        for device, index in indices:
            out[index] = parts[device].reshape(out[index].shape)
        return out

    def _explained(self, error: XlaError) -> XlaError:
        """What went wrong with it, and where it was made."""
        name = getattr(self, "maker", None)
        made = f"{'' if name is None else f' by {name}'}" + (
            "" if self.source is None else f" at {self.source}")
        if made:
            error = XlaError(f"{error} The array was made{made}.", error.code)
        return explained(error, name or "its computation")

    def wait(self) -> None:
        """Wait until it is computed; raises what went wrong."""
        wait_for = self.client.wait_for
        try:
            for handle in self.handles:
                wait_for(handle)
        except XlaError as error:
            raise self._explained(error) from None

    def done(self) -> bool:
        """Whether it is computed."""
        return all([self._done(handle) for handle in self.handles])

    def _done(self, handle: int) -> bool:
        call = self.client.plugin.call
        event = call("Buffer_ReadyEvent", buffer=handle).event
        try:
            return call("Event_IsReady", event=event).ready
        finally:
            call("Event_Destroy", event=event)

    def address(self) -> int:
        """Where its elements lie, on its one device."""
        (handle,) = self.handles
        return self.client.plugin.call("Buffer_UnsafePointer", buffer=handle).address or 0

    def nbytes(self) -> int:
        """Bytes on each device."""
        return self.client.plugin.call("Buffer_OnDeviceSizeInBytes", buffer=self.handles[0]).size

    def delete(self) -> None:
        """Give its memory back now."""
        finish_readers("an array is deleted")
        if not self.client.alive:
            return  # with the process
        if getattr(self, "shown", 0):
            return  # with the last one that sees it
        for handle in self.handles:
            self.client.plugin.call("Buffer_Delete", buffer=handle)

    def copy_to(self, devices: tuple) -> DeviceBuffer:
        """A copy of an array on one device, on each of others of the same client."""
        call = self.client.plugin.call
        kind = self.client.handle_of
        handles = tuple([
            kind(call("Buffer_CopyToDevice", buffer=self.handles[0], device=d.handle).made)
            for d in devices
        ])  # fmt: skip
        return DeviceBuffer(handles, devices)

    def part(self, k: int) -> Lent:
        """The part on the k-th device, which shares its memory with the whole."""
        part = Lent((self.handles[k],), (self.devices[k],), self)
        part.known_in(getattr(self, "kind", None))
        return part


class _Copies:
    """Arrays that are being copied to, and their events: for one reader. Whoever forgets it waits,
    so that nobody writes to memory that is given back."""

    __slots__ = ("_client", "_fetched")

    def __init__(self, client: Any, fetched: list) -> None:
        self._client, self._fetched = client, [fetched]

    def take(self) -> list | None:
        """The arrays and events, for who asks first."""
        try:
            return self._fetched.pop()  # type: ignore[no-any-return] # nobody else has it then
        except IndexError:
            return None

    def __del__(self) -> None:
        fetched = self.take()
        if fetched and self._client.alive:
            _arrived(self._client, fetched)


class Lent(DeviceBuffer):
    """A buffer of parts of another, whose handles it has."""

    __slots__ = ("owner",)

    def __init__(self, handles: tuple[int, ...], devices: tuple, owner: Any) -> None:
        super().__init__(handles, devices)
        self.owner = owner

    def whole(self) -> DeviceBuffer:
        return self.owner.whole()  # type: ignore[no-any-return]


def _arrived(client: Any, fetched: Sequence[tuple[Any, int | None]]) -> Any:
    """Wait until nobody writes to these arrays any more: what went wrong, or None."""
    problem = None
    for _, event in fetched:
        try:
            client.plugin.wait(event)
        except BaseException as error:  # an interrupt too: the others are waited for
            problem = problem or error
    return problem
