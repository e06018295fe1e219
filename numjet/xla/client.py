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

import ml_dtypes
import numpy as np

from numjet.base.errors import XlaError
from numjet.core.remote import Device
from numjet.xla import pjrt, plugins
from numjet.xla.options import compile_options

# PJRT's numbers of element types.
_NUMBERS = {
    "bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7, "uint32": 8,
    "uint64": 9, "float16": 10, "float32": 11, "float64": 12, "bfloat16": 13, "complex64": 14,
    "complex128": 15, "float8_e5m2": 16, "float8_e4m3fn": 17, "float8_e4m3b11fnuz": 18,
    "float8_e5m2fnuz": 19, "float8_e4m3fnuz": 20, "int4": 21, "uint4": 22, "int2": 24, "uint2": 25,
    "float8_e4m3": 26, "float8_e3m4": 27, "float8_e8m0fnu": 28, "float4_e2m1fn": 29,
}  # fmt: skip
_DTYPES = {
    number: np.dtype(getattr(ml_dtypes, name, None) or name) for name, number in _NUMBERS.items()
}
ONLY_DURING_CALL = 0  # the plugin reads host memory while it is called


class XlaDevice(Device):
    """A device of a plugin's client. Identity is equality."""

    __slots__ = ("client", "handle", "device_kind", "process_index", "local_hardware_id")

    def __init__(self, client: Client, handle: int) -> None:
        self.client, self.handle = client, handle
        call = client.plugin.call
        description = call("Device_GetDescription", device=handle).description
        self.id = call("DeviceDescription_Id", description=description).id
        kind = call("DeviceDescription_Kind", description=description)
        self.device_kind = pjrt.text(kind.text, kind.size)
        self.process_index = call("DeviceDescription_ProcessIndex", description=description).index
        self.local_hardware_id = call("Device_LocalHardwareId", device=handle).id

    @property
    def platform(self) -> str:  # type: ignore[override]
        """The name by which `devices` finds it."""
        return self.client.platform

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
        return f"{self.platform.title().replace('_', '')}Device(id={self.id})"


class DeviceBuffer:
    """One array on one device. `result()` is its value on the host, which waits for it."""

    __slots__ = ("client", "handle", "__weakref__")
    on_device = True

    def __init__(self, client: Client, handle: int) -> None:
        self.client, self.handle = client, handle

    def _shape(self) -> tuple[int, ...]:
        found = self.client.plugin.call("Buffer_Dimensions", buffer=self.handle)
        return tuple((c_int64 * found.count).from_address(found.dims)) if found.count else ()

    def result(self) -> np.ndarray:
        """The value as a NumPy array, row by row."""
        call = self.client.plugin.call
        shape = self._shape()
        dtype = _DTYPES[call("Buffer_ElementType", buffer=self.handle).type]
        out = np.empty(shape, dtype)
        if not out.nbytes:
            return out
        order = (c_int64 * max(len(shape), 1))(*range(len(shape) - 1, -1, -1))
        layout = pjrt.HostLayout(
            struct_size=ctypes.sizeof(pjrt.HostLayout), minor_to_major=ctypes.addressof(order),
            rank=len(shape), tiled_size=ctypes.sizeof(pjrt.HostLayout) - 3 * 8,
        )  # fmt: skip
        made = call("Buffer_ToHostBuffer", buffer=self.handle, layout=ctypes.addressof(layout),
                    data=out.ctypes.data, size=out.nbytes)
        self.client.plugin.wait(made.event)
        return out

    def wait(self) -> None:
        """Wait until it is computed; raises what went wrong."""
        made = self.client.plugin.call("Buffer_ReadyEvent", buffer=self.handle)
        self.client.plugin.wait(made.event)

    def done(self) -> bool:
        """Whether it is computed."""
        call = self.client.plugin.call
        event = call("Buffer_ReadyEvent", buffer=self.handle).event
        try:
            return call("Event_IsReady", event=event).ready
        finally:
            call("Event_Destroy", event=event)

    def address(self) -> int:
        """Where its elements lie, on the device."""
        return self.client.plugin.call("Buffer_UnsafePointer", buffer=self.handle).address or 0

    def delete(self) -> None:
        """Give its memory back now."""
        self.client.plugin.call("Buffer_Delete", buffer=self.handle)

    def copy_to(self, device: XlaDevice) -> DeviceBuffer:
        """A copy on another device of the same client."""
        made = self.client.plugin.call("Buffer_CopyToDevice", buffer=self.handle,
                                       device=device.handle)
        return DeviceBuffer(self.client, made.made)

    def __del__(self) -> None:
        handle, self.handle = self.handle, 0
        if handle and self.client.here():
            self.client.destroy_buffer(handle)


class LoadedProgram:
    """A compiled program on its devices, with everything for a call prepared."""

    def __init__(self, client: Client, handle: int, devices: int) -> None:
        self.client, self.handle, self.num_devices = client, handle, devices
        call = client.plugin.call
        self.executable = call("LoadedExecutable_GetExecutable", loaded=handle).executable
        self.num_outputs = call("Executable_NumOutputs", executable=self.executable).count
        self._execute = client.plugin.function("LoadedExecutable_Execute")
        self._kind = pjrt.arguments("LoadedExecutable_Execute")
        self._options = pjrt.ExecuteOptions(struct_size=ctypes.sizeof(pjrt.ExecuteOptions))

    def __call__(self, arguments: Sequence[Sequence[DeviceBuffer]]) -> list[list[DeviceBuffer]]:
        """Run on a list of buffers a device; a list of results a device, still being computed."""
        count, outs = len(arguments[0]) if arguments else 0, self.num_outputs
        devices = self.num_devices
        ins = [(c_void_p * max(count, 1))(*[b.handle for b in row]) for row in arguments]
        results = [(c_void_p * max(outs, 1))() for _ in range(devices)]
        in_lists = (c_void_p * devices)(*[ctypes.addressof(row) for row in ins])
        out_lists = (c_void_p * devices)(*[ctypes.addressof(row) for row in results])
        made = self._kind(
            struct_size=ctypes.sizeof(self._kind), executable=self.handle,
            options=ctypes.addressof(self._options), arguments=ctypes.addressof(in_lists),
            num_devices=devices, num_args=count, outputs=ctypes.addressof(out_lists),
        )  # fmt: skip
        error = self._execute(byref(made))
        if error:
            self.client.plugin.check(error)
        client = self.client
        return [[DeviceBuffer(client, row[k]) for k in range(outs)] for row in results]

    def serialize(self) -> bytes:
        """The executable as bytes, for this plugin and version alone."""
        made = self.client.plugin.call("Executable_Serialize", executable=self.executable)
        try:
            return ctypes.string_at(made.data, made.size)
        finally:
            if made.deleter:
                ctypes.CFUNCTYPE(None, c_void_p)(made.deleter)(made.handle)

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, results, temporaries and code."""
        made = self.client.plugin.call("Executable_GetCompiledMemoryStats",
                                       executable=self.executable)
        return {
            "argument_size_in_bytes": made.arguments, "output_size_in_bytes": made.outputs,
            "alias_size_in_bytes": made.aliased, "temp_size_in_bytes": made.temporaries,
            "generated_code_size_in_bytes": made.generated_code,
        }  # fmt: skip

    def cost_analysis(self) -> dict[str, float]:
        """What the plugin estimates of the program, by its own names ("flops", ...)."""
        made = self.client.plugin.call("Executable_GetCostAnalysis", executable=self.executable)
        out: dict[str, float] = {}
        for entry in (pjrt.NamedValue * made.count).from_address(made.properties):
            name = pjrt.text(entry.name, entry.name_size)
            if entry.type == 3:
                out[name] = entry.value.float
            elif entry.type == 1:
                out[name] = entry.value.int64
        return out

    def __del__(self) -> None:
        handle, self.handle = getattr(self, "handle", 0), 0
        if handle and self.client.here():
            self.client.plugin.call("Executable_Destroy", executable=self.executable)
            self.client.plugin.call("LoadedExecutable_Destroy", executable=handle)


class Client:
    """A plugin's client: its devices."""

    def __init__(self, platform: str, path: str) -> None:
        self.platform, self.pid = platform, os.getpid()
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
        handles = (c_void_p * found.count).from_address(found.devices)
        self.devices = [XlaDevice(self, handle) for handle in handles]
        version = self.plugin.call("Client_PlatformVersion", client=self.handle)
        self.platform_version = pjrt.text(version.text, version.size)
        kind = pjrt.arguments("Buffer_Destroy")
        destroy, size = self.plugin.function("Buffer_Destroy"), ctypes.sizeof(kind)
        self.destroy_buffer = lambda handle: destroy(byref(kind(struct_size=size, buffer=handle)))

    def here(self, getpid: Callable[[], int] = os.getpid) -> bool:
        """Whether this process may still call it: not a forked child, not at the very end (when
        names of modules are gone, so that `getpid` is kept here)."""
        return self.pid == getpid()

    def put(self, value: np.ndarray, device: XlaDevice) -> DeviceBuffer:
        """A NumPy array on a device, copied before this returns."""
        if not value.flags.c_contiguous:
            value = np.ascontiguousarray(value)
        number = _NUMBERS.get(value.dtype.name)
        if number is None:
            raise TypeError(f"device_put: arrays of {value.dtype} have no form on {device}.")
        dims = (c_int64 * max(value.ndim, 1))(*value.shape)
        made = self.plugin.call(
            "Client_BufferFromHostBuffer", client=self.handle, data=value.ctypes.data, type=number,
            dims=ctypes.addressof(dims), num_dims=value.ndim, semantics=ONLY_DURING_CALL,
            device=device.handle,
        )  # fmt: skip
        self.plugin.wait(made.done)
        return DeviceBuffer(self, made.buffer)

    def compile(self, code: str, options: bytes, devices: int = 1) -> LoadedProgram:
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

    def load(self, data: bytes, devices: int = 1) -> LoadedProgram:
        """A program that `serialize` wrote."""
        made = self.plugin.call("Executable_DeserializeAndLoad", client=self.handle, data=data,
                                size=len(data))
        return LoadedProgram(self, made.executable, devices)


_lock = threading.RLock()
_clients: dict[str, Client] = {}


@atexit.register
def _leave() -> None:
    """At the end of the process nothing is given back one by one."""
    for known in _clients.values():
        known.pid = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_clients.clear)


def client(platform: str) -> Client:
    """The client of a platform, made at first use.

    Raises RuntimeError where its plugin is not installed or finds no device, with what to do.
    """
    platform = plugins.ALIASES.get(platform, platform)
    with _lock:
        found = _clients.get(platform)
        if found is None:
            entry = plugins.known(platform)
            if entry is None:
                raise RuntimeError(f"Unknown backend {platform!r}. Available: 'cpu', "
                                   + ", ".join(repr(k.platform) for k in plugins.KNOWN) + ".")
            path = plugins.library(platform)
            if path is None:
                raise RuntimeError(
                    f"Backend {platform!r} needs a PJRT plugin that is not installed: "
                    f"pip install {entry.extra}. `python -m numjet.doctor` shows what is there."
                )
            try:
                found = Client(platform, path)
            except (XlaError, OSError) as error:
                raise RuntimeError(
                    f"Backend {platform!r} cannot be used: {error} "
                    "`python -m numjet.doctor` says more."
                ) from error
            _clients[platform] = found
    return found


@functools.cache
def one_device_options(number: int) -> bytes:
    """Compile options for one device."""
    return compile_options(devices=[number])
