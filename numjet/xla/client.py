"""Clients of plugins: devices, buffers, programs and their execution.

`client(platform)` gives the one client of a platform, made at first use. Everything here speaks in
NumPy arrays of physical dtypes and in `DeviceBuffer`s. For `xla.backend`. What would break it: a
client used in a forked child (its threads are not there; `client` makes a new one).
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import threading
from collections.abc import Callable, Sequence
from ctypes import byref, c_int64, c_void_p

import numpy as np

from numjet.base.errors import XlaError
from numjet.base.handles import handles
from numjet.core.hooks import Remote
from numjet.core.remote import Device
from numjet.xla import pjrt, plugins
from numjet.xla.buffers import (
    HOST_PLATFORMS,
    NUMBERS,
    ONLY_DURING_CALL,
    ZERO_COPY,
    DeviceBuffer,
    may_stay,
)
from numjet.xla.options import compile_options
from numjet.xla.programs import LoadedProgram


class XlaDevice(Device):
    """A device of a plugin's client. Identity is equality."""

    __slots__ = (
        "client", "handle", "device_kind", "process_index", "local_hardware_id", "sharding",
        "memories", "memory_kinds",
    )  # fmt: skip

    def __init__(self, client: Client, handle: int) -> None:
        self.client, self.handle = client, handle
        call = client.plugin.call
        description = call("Device_GetDescription", device=handle).description
        self.id = call("DeviceDescription_Id", description=description).id
        kind = call("DeviceDescription_Kind", description=description)
        self.device_kind = pjrt.text(kind.text, kind.size)
        self.process_index = call("DeviceDescription_ProcessIndex", description=description).index
        self.local_hardware_id = call("Device_LocalHardwareId", device=handle).id
        self.memories = self._memories()  # handles, by kind; that of arrays by default is first
        self.memory_kinds = tuple(self.memories) or ("device",)
        self.sharding = Remote.single(self)  # of arrays that were put there

    def _memories(self) -> dict[str, int]:
        """The handles of its memories, by kind; none where the plugin does not tell."""
        call = self.client.plugin.call
        try:
            first = call("Device_DefaultMemory", device=self.handle).memory
            found = call("Device_AddressableMemories", device=self.handle)
        except XlaError:
            return {}
        out: dict[str, int] = {}
        for handle in (first, *(c_void_p * found.count).from_address(found.memories)):
            kind = call("Memory_Kind", memory=handle)
            out.setdefault(pjrt.text(kind.text, kind.size), handle)
        return out

    def __reduce__(self) -> tuple:
        return _found, (self.client.platform, self.id)

    @property
    def platform(self) -> str:  # type: ignore[override]
        """What kind of hardware it is: "gpu" for one of cuda's, else the client's name."""
        return "gpu" if self.client.platform == "cuda" else self.client.platform

    @property
    def host_id(self) -> int:
        return self.process_index

    def memory_stats(self) -> dict[str, int] | None:
        """Bytes in use, their peak and limit, as the plugin counts them; None where it does not."""
        try:
            found = self.client.plugin.call("Device_MemoryStats", device=self.handle)
        except XlaError:
            return None
        out = {"bytes_in_use": found.bytes_in_use}
        for name, flag in (
            ("peak_bytes_in_use", "has_peak"), ("num_allocs", "has_allocs"),
            ("largest_alloc_size", "has_largest"), ("bytes_limit", "has_limit"),
            ("bytes_reserved", "has_reserved"), ("pool_bytes", "has_pool"),
        ):  # fmt: skip
            if getattr(found, flag):
                out[name] = getattr(found, name)
        return out

    def __repr__(self) -> str:
        return f"{self.client.platform.title().replace('_', '')}Device(id={self.id})"

    def __str__(self) -> str:
        return f"{self.client.platform}:{self.id}"


class Client:
    """A plugin's client: its devices."""

    def __init__(self, platform: str, path: str) -> None:
        self.platform = platform
        # Whether this process may call it: not in a forked child, nor at the very end.
        self.alive = True
        entry = plugins.known(platform)
        for name, value in entry.environment.items() if entry else ():
            os.environ.setdefault(name, value)
        # The plugins report every step of their start otherwise.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
        self.plugin = pjrt.Plugin(path)
        options, alive = pjrt.named_values(plugins.create_options(platform))
        count = len(plugins.create_options(platform))
        made = self.plugin.call("Client_Create", options=ctypes.addressof(options),
                                num_options=count)
        del alive
        self.handle = made.client
        found = self.plugin.call("Client_AddressableDevices", client=self.handle)
        listed = (c_void_p * found.count).from_address(found.devices)
        self._devices = [XlaDevice(self, handle) for handle in listed]
        version = self.plugin.call("Client_PlatformVersion", client=self.handle)
        self.platform_version = pjrt.text(version.text, version.size)
        # What compiled programs depend on; empty where they cannot be kept.
        file = os.stat(path)
        self.identity = " ".join(map(str, (
            platform, path, file.st_size, file.st_mtime_ns, *self.plugin.version,
            self.platform_version, *sorted({d.device_kind for d in self._devices}),
        )))  # fmt: skip
        # Of compiled programs, and of what tells about them.
        self.loaded_of = handles(functools.partial(self.destroy, "LoadedExecutable_Destroy"))
        self.description_of = handles(functools.partial(self.destroy, "Executable_Destroy"))
        # Events and arrays of the host that buffers use where they lie, by their handles, and those
        # whose buffers are gone: programs may still read them.
        self._lent: dict[int, tuple[int, np.ndarray]] = {}
        self.ending: list[tuple[int, np.ndarray]] = []
        self.handle_of = handles(self._destroyer())  # of buffers
        self.wait_for = self._waiter()

    def devices(self) -> list[XlaDevice]:
        """All devices."""
        return list(self._devices)

    local_devices = devices

    def device_count(self) -> int:
        """The number of devices."""
        return len(self._devices)

    local_device_count = device_count

    def process_index(self) -> int:
        """The number of this process among those of the plugin."""
        return self.plugin.call("Client_ProcessIndex", client=self.handle).index  # type: ignore[no-any-return]

    def _destroyer(self) -> Callable[[int], None]:
        """What lets a buffer go, while this process may call the plugin."""
        kind, destroy = pjrt.arguments("Buffer_Destroy"), self.plugin.function("Buffer_Destroy")
        free: list[tuple] = []  # argument structs that nobody uses now
        lent, pop, push = self._lent, free.pop, free.append

        def destroy_buffer(handle: int) -> None:
            if not self.alive:
                return
            # Now, since the next buffer may get the same handle.
            kept = lent.pop(handle, None) if lent else None
            try:
                pair = pop()
            except IndexError:
                made = kind(struct_size=ctypes.sizeof(kind))
                pair = made, byref(made)
            pair[0].buffer = handle
            destroy(pair[1])
            push(pair)
            if kept is not None:
                self.ending.append(kept)
                self.let_go()

        return destroy_buffer

    def _waiter(self) -> Callable[[int], None]:
        """What waits until a buffer is computed, and raises what went wrong: many results of a step
        are waited for one after the other, so the argument structs are there already."""
        names = "Buffer_ReadyEvent", "Event_Await", "Event_Destroy"
        kinds = [pjrt.arguments(name) for name in names]
        find, wait, destroy = [self.plugin.function(name) for name in names]
        check = self.plugin.check
        free: list[tuple] = []  # argument structs that nobody uses now

        def wait_for(handle: int) -> None:
            try:
                frame = free.pop()
            except IndexError:
                made = [kind(struct_size=ctypes.sizeof(kind)) for kind in kinds]
                frame = (*made, *[byref(x) for x in made])
            ready, awaited, destroyed, ready_at, awaited_at, destroyed_at = frame
            ready.buffer = handle
            check(find(ready_at))
            awaited.event = destroyed.event = ready.event
            try:
                check(wait(awaited_at))
            finally:
                check(destroy(destroyed_at))
            free.append(frame)

        return wait_for

    def destroy(self, name: str, handle: int) -> None:
        """Let a program or its description go, while this process may call the plugin."""
        if self.alive:
            self.plugin.call(name, executable=handle)

    def put(self, value: np.ndarray, devices: tuple, kind: str | None = None) -> DeviceBuffer:
        """A NumPy array on each of these devices."""
        return self.put_parts([value] * len(devices), devices, kind)

    def put_parts(self, parts: Sequence[np.ndarray], devices: tuple,
                  kind: str | None = None) -> DeviceBuffer:  # fmt: skip
        """An array of parts, one a device: used where they lie in the host's memory, if nobody can
        write to them, and copied before this returns if somebody can. kind: of the memory that they
        are put in, None for that of arrays by default."""
        made = []
        for value, device in zip(parts, devices, strict=True):
            handle, event = self._put(value, device, kind)
            if event is not None:
                self._lent[handle] = event, value
            made.append(self.handle_of(handle))
        return DeviceBuffer(tuple(made), devices).known_in(kind)

    def let_go(self) -> None:
        """Forget the arrays of the host that nothing reads any more."""
        if not self.alive:
            return
        call = self.plugin.call
        for _ in range(len(self.ending)):
            try:
                event, value = self.ending.pop(0)  # which no other thread has then
            except IndexError:
                return
            if call("Event_IsReady", event=event).ready:
                call("Event_Destroy", event=event)
            else:
                self.ending.append((event, value))

    def _put(self, value: np.ndarray, device: XlaDevice,
             kind: str | None) -> tuple[int, int | None]:  # fmt: skip
        """The handle of an array on a device, and the event of when its memory is let go."""
        stays = kind is None and self.platform in HOST_PLATFORMS and may_stay(value)
        if not value.flags.c_contiguous:
            value = np.ascontiguousarray(value)
        number = NUMBERS.get(value.dtype.name)
        if number is None:
            raise TypeError(f"device_put: arrays of {value.dtype} have no form on {device}.")
        dims = (c_int64 * max(value.ndim, 1))(*value.shape)
        made = self.plugin.call(
            "Client_BufferFromHostBuffer", client=self.handle, data=value.ctypes.data, type=number,
            dims=ctypes.addressof(dims), num_dims=value.ndim, device=device.handle,
            memory=None if kind is None else device.memories[kind],
            semantics=ZERO_COPY if stays else ONLY_DURING_CALL,
        )  # fmt: skip
        if stays:
            return made.buffer, made.done
        self.plugin.wait(made.done)
        return made.buffer, None

    def compile(self, code: str, options: bytes, devices: tuple) -> LoadedProgram:
        """A program of StableHLO text, compiled and loaded. Raises XlaError with XLA's words."""
        data = code.encode()
        program = pjrt.Program(
            struct_size=ctypes.sizeof(pjrt.Program), code=data, code_size=len(data),
            format=b"mlir", format_size=4,
        )  # fmt: skip
        made = self.plugin.call(
            "Client_Compile", client=self.handle, program=ctypes.addressof(program),
            options=options, options_size=len(options),
        )  # fmt: skip
        return LoadedProgram(self, made.executable, devices)

    def load(self, data: bytes, devices: tuple) -> LoadedProgram:
        """A program that `serialize` wrote."""
        made = self.plugin.call("Executable_DeserializeAndLoad", client=self.handle, data=data,
                                size=len(data))
        return LoadedProgram(self, made.executable, devices)


MORE = " `python -m numjet.doctor` says more."  # the end of what is said of a plugin that fails
_lock = threading.RLock()
_clients: dict[str, Client] = {}


@atexit.register
def _leave() -> None:
    """At the end of the process nothing is given back one by one."""
    for known in _clients.values():
        known.alive = False


def _forked() -> None:
    _leave()
    _clients.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def client(platform: str) -> Client:
    """The client of a platform, made at first use.

    Raises RuntimeError where its plugin is not installed or finds no device, with what to do.
    """
    asked, platform = platform, plugins.ALIASES.get(platform, platform)
    with _lock:
        found = _clients.get(platform)
        if found is None:
            entry = plugins.known(platform)
            if entry is None:
                raise RuntimeError(
                    f"Unknown backend {asked}. Available backends are {_present()}. numjet knows "
                    f"{', '.join(['cpu', *[k.platform for k in plugins.KNOWN]])}."
                )
            path = plugins.library(platform)
            if path is None:
                missing = (
                    f"Unknown backend {asked}. Available backends are {_present()}."
                    if asked == platform else
                    f"Unknown backend: {asked!r} requested, but no platforms that are instances of "
                    f"{asked} are present. Platforms present are: {','.join(_present())}."
                )
                raise RuntimeError(
                    f"{missing} It needs a PJRT plugin that is not installed: pip install "
                    f"{entry.extra}. `python -m numjet.doctor` shows what is there."
                )
            try:
                found = Client(platform, path)
            except (XlaError, OSError) as error:
                raise RuntimeError(
                    f"Unable to initialize backend {platform!r}: {error}{MORE}"
                ) from error
            _clients[platform] = found
    return found


def _present() -> list[str]:
    """The platforms whose plugins are installed, and the CPU."""
    return ["cpu", *[k.platform for k in plugins.KNOWN if plugins.library(k.platform)]]


def _found(platform: str, number: int) -> XlaDevice:
    """The device of a platform with this number, here."""
    return next(d for d in client(platform).devices() if d.id == number)


@functools.cache
def options_for(devices: tuple[XlaDevice, ...]) -> bytes:
    """Compile options for devices: one, or partitions of one program."""
    entry = plugins.known(devices[0].client.platform)
    return compile_options(
        partitions=len(devices), devices=[d.id for d in devices], shardy=len(devices) > 1,
        flags=entry.compiling if entry else None,
    )  # fmt: skip
