"""Compiled programs of a plugin: execution with everything for a call prepared, and what the plugin
knows of them.

`LoadedProgram` is made by `xla.client`. A call takes a frame (the argument struct and the lists of
buffers that it points to) from a list of those that nobody uses, so that threads never share one.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Sequence
from ctypes import byref, c_void_p
from typing import Any

from numjet.xla import pjrt
from numjet.xla.buffers import DeviceBuffer


class _Frame:
    """One call's argument struct and its lists, for `devices` devices."""

    __slots__ = ("ins", "outs", "events", "_lists", "made", "ref", "quick")

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
        self.quick = self.ref, self.ins, self.outs  # for generated code


# Programs of several devices get a number each time they run, by which their devices find one
# another, and are started one after the other, so that all devices see the same order.
_launches = itertools.count(1)
_starting = threading.Lock()


class LoadedProgram:
    """A compiled program on its devices."""

    starting, launches = _starting, _launches

    def __init__(self, client: Any, handle: int, devices: tuple) -> None:
        self.client, self.handle, self.devices = client, client.loaded_of(handle), devices
        self.num_devices = len(devices)
        call = client.plugin.call
        found = call("LoadedExecutable_GetExecutable", loaded=handle).executable
        self.executable = client.description_of(found)
        self.num_outputs = call("Executable_NumOutputs", executable=self.executable).count
        self.execute = client.plugin.function("LoadedExecutable_Execute")
        self.options = pjrt.ExecuteOptions(struct_size=ctypes.sizeof(pjrt.ExecuteOptions))
        self.frames: list[_Frame] = []
        # The threads of XLA's CPU wait for each other in collectives: a second program of several
        # devices that took some of them would hold up both.
        self.name = "a program"
        self.alone = len(devices) > 1 and client.platform == "xla_cpu"

    def new_frame(self, count: int) -> _Frame:
        """A frame for a call with `count` arguments a device."""
        return _Frame(self, count)

    @property
    def address(self) -> int:
        """Where the plugin's function that runs it lies."""
        return ctypes.cast(self.execute, c_void_p).value or 0

    def pattern(self, count: int) -> tuple[list[int], int, int]:
        """The words of the argument struct of a run with `count` arguments, and which of them are
        the lists of arguments and of results, which are empty here."""
        made = _Frame(self, count).made
        kind = type(made)
        made.arguments = made.outputs = None
        words = (ctypes.c_size_t * (ctypes.sizeof(made) // 8)).from_buffer_copy(made)
        return list(words), kind.arguments.offset // 8, kind.outputs.offset // 8

    def __call__(self, arguments: Sequence[DeviceBuffer]) -> list[DeviceBuffer]:
        """Run on buffers; results, still being computed."""
        if self.num_devices == 1:
            return self._run(arguments, False)
        with _starting:
            self.options.launch_id = next(_launches) & 0x7FFFFFFF
            return self._run(arguments, self.alone)

    def finished(self, arguments: Sequence[DeviceBuffer]) -> list[DeviceBuffer]:
        """As a call, but it returns when all is done; raises what the program met."""
        self.options.launch_id = next(_launches) & 0x7FFFFFFF
        return self._run(arguments, True)

    def _run(self, arguments: Sequence[DeviceBuffer], wait: bool) -> list[DeviceBuffer]:
        try:
            frame = self.frames.pop()
        except IndexError:
            frame = self.new_frame(len(arguments))
        for d, row in enumerate(frame.ins if arguments else ()):
            row[:] = [b.handles[d] for b in arguments]
        frame.made.events = ctypes.addressof(frame.events) if wait else None
        error = self.execute(frame.ref)
        if error:
            self.client.plugin.check(error)
        client, devices = self.client, self.devices
        made = client.handle_of
        results = [DeviceBuffer(tuple([made(row[k]) for row in frame.outs]), devices)
                   for k in range(self.num_outputs)]
        for buffer in results:
            buffer.maker = self.name
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


