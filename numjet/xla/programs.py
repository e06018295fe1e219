"""Compiled programs of a plugin: execution with everything for a call prepared, and what the plugin
knows of them.

`LoadedProgram` is made by `xla.client`. A call takes a frame (the argument struct and the lists of
buffers that it points to) from a list of those that nobody uses, so that threads never share one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_void_p
from typing import Any

from numjet.xla import pjrt
from numjet.xla.buffers import DeviceBuffer


class _Frame:
    """One call's argument struct and its lists, for `devices` devices."""

    __slots__ = ("ins", "outs", "events", "_lists", "made", "ref")

    def __init__(self, program: LoadedProgram, count: int) -> None:
        devices, outs = program.num_devices, program.num_outputs
        self.ins = [(c_void_p * max(count, 1))() for _ in range(devices)]
        self.outs = [(c_void_p * max(outs, 1))() for _ in range(devices)]
        self.events = (c_void_p * devices)()
        self._lists = [(c_void_p * devices)(*[ctypes.addressof(row) for row in rows])
                       for rows in (self.ins, self.outs)]
        kind = pjrt.arguments("LoadedExecutable_Execute")
        self.made = kind(
            struct_size=ctypes.sizeof(kind), executable=program.handle,
            options=ctypes.addressof(program.options),
            arguments=ctypes.addressof(self._lists[0]), num_devices=devices, num_args=count,
            outputs=ctypes.addressof(self._lists[1]),
        )  # fmt: skip
        self.ref = byref(self.made)


class LoadedProgram:
    """A compiled program on its devices."""

    def __init__(self, client: Any, handle: int, devices: int) -> None:
        self.client, self.handle, self.num_devices = client, handle, devices
        call = client.plugin.call
        self.executable = call("LoadedExecutable_GetExecutable", loaded=handle).executable
        self.num_outputs = call("Executable_NumOutputs", executable=self.executable).count
        self.execute = client.plugin.function("LoadedExecutable_Execute")
        self.options = pjrt.ExecuteOptions(struct_size=ctypes.sizeof(pjrt.ExecuteOptions))
        self.frames: list[_Frame] = []

    def new_frame(self, count: int) -> _Frame:
        """A frame for a call with `count` arguments a device."""
        return _Frame(self, count)

    def __call__(self, arguments: Sequence[Sequence[DeviceBuffer]]) -> list[list[DeviceBuffer]]:
        """Run on a list of buffers a device; a list of results a device, still being computed."""
        return self._run(arguments, False)

    def finished(self, arguments: Sequence[Sequence[DeviceBuffer]]) -> list[list[DeviceBuffer]]:
        """As a call, but it returns when all is done; raises what the program met."""
        return self._run(arguments, True)

    def _run(self, arguments: Sequence[Sequence[DeviceBuffer]], wait: bool) -> list:
        try:
            frame = self.frames.pop()
        except IndexError:
            frame = self.new_frame(len(arguments[0]))
        for row, buffers in zip(frame.ins, arguments, strict=True):
            if buffers:
                row[:] = [b.handle for b in buffers]
        frame.made.events = ctypes.addressof(frame.events) if wait else None
        error = self.execute(frame.ref)
        if error:
            self.client.plugin.check(error)
        client, outs = self.client, self.num_outputs
        results = [[DeviceBuffer(client, row[k]) for k in range(outs)] for row in frame.outs]
        events = list(frame.events) if wait else []
        frame.made.events = None
        self.frames.append(frame)
        problem = None
        for event in events:
            try:
                client.plugin.wait(event)
            except Exception as caught:  # all are waited for: they belong to us
                problem = problem or caught
        if problem is not None:
            raise problem
        return results

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

    def optimized(self) -> bytes:
        """The program after the plugin's passes: a serialized HloModuleProto."""
        call = self.client.plugin.call
        program = pjrt.Program(struct_size=ctypes.sizeof(pjrt.Program))
        call("Executable_OptimizedProgram", executable=self.executable,
             program=ctypes.addressof(program))
        room = ctypes.create_string_buffer(max(program.code_size, 1))
        program.code = ctypes.cast(room, ctypes.c_char_p)
        call("Executable_OptimizedProgram", executable=self.executable,
             program=ctypes.addressof(program))
        return room.raw[: program.code_size]

    def __del__(self) -> None:
        handle, self.handle = getattr(self, "handle", 0), 0
        if handle and self.client.here():
            self.client.plugin.call("Executable_Destroy", executable=self.executable)
            self.client.plugin.call("LoadedExecutable_Destroy", executable=handle)


