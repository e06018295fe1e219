"""Python functions that a program on a plugin calls: `pure_callback` and its like.

A program's call of the host is a custom call of one handler, registered with the plugin (its FFI
extension, which the CPU's and CUDA's have); the number it carries says which function is meant. The
handler runs in a thread of the plugin, the function in the thread that called the program, which
waits: `running` executes the program in a thread of its own and answers meanwhile. On CUDA the
handler copies operands to the host and results back, on the stream of the program. For `xla.hlo`
and `xla.backend`. What would break it: operands that do not lie row by row, which `xla.hlo` rules
out. Source: the public header pjrt_c_api_ffi_extension.h; that of `base.ffi_structs`.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import queue
import threading
import weakref
from collections.abc import Callable, Sequence
from ctypes import c_char_p, c_int, c_int64, c_size_t, c_void_p
from typing import Any

import numpy as np

from numjet.base import config, ffi_structs as structs
from numjet.base.errors import XlaError
from numjet.core.array import ArrayImpl
from numjet.core.dtypes import physical
from numjet.core.primitive import Primitive
from numjet.xla import cuda

TARGET = "numjet_host_call"
_FFI = 5  # the extension's number
# Elements that have less than a byte: XLA packs them, so they are carried as something wider.
_WIDER = {"int2": np.int8, "int4": np.int8, "uint2": np.uint8, "uint4": np.uint8,
          "float4_e2m1fn": np.float32}


class _Registration(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("name_size", c_size_t),
                ("handler", c_void_p), ("platform", c_char_p), ("platform_size", c_size_t),
                ("traits", c_int)]


_numbers = itertools.count(1)
_known: weakref.WeakValueDictionary[int, HostCall] = weakref.WeakValueDictionary()


class HostCall:
    """One place of a program that calls the host: the primitive, its params, what goes in and out.

    `runs` are the executions of its program that are under way, the innermost last.
    """

    __slots__ = ("number", "primitive", "params", "in_avals", "out_avals", "runs", "__weakref__")

    def __init__(self, primitive: Primitive, params: dict, in_avals: Sequence,
                 out_avals: Sequence) -> None:  # fmt: skip
        self.primitive, self.params = primitive, params
        self.in_avals, self.out_avals = tuple(in_avals), tuple(out_avals)
        self.runs: list[_Run] = []
        self.number = next(_numbers)
        _known[self.number] = self

    def compute(self, operands: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
        """Call the function on arrays, which it may keep, and write its results."""
        ins = [ArrayImpl(x.astype(physical(a.dtype), copy=False), a)
               for x, a in zip(operands, self.in_avals, strict=True)]
        # What it computes with numjet runs on the CPU: the device waits for it.
        with config.default_device("cpu"):
            outs = self.primitive.evaluate(*ins, **self.params)  # type: ignore[misc]
        if not self.primitive.multiple_results:
            outs = [outs]
        for place, out in zip(results, outs, strict=True):
            np.copyto(place, out._value, casting="unsafe")


def carried(aval: Any) -> np.dtype:
    """The dtype that a program hands an array to Python in."""
    dtype = np.dtype(physical(aval.dtype))
    return np.dtype(_WIDER.get(dtype.name, dtype))


def _memory(address: int, aval: Any) -> np.ndarray:
    """The array of an aval that lies at an address of the host."""
    dtype = carried(aval)
    size = int(np.prod(aval.shape, dtype=np.int64)) * dtype.itemsize
    if not size:
        return np.empty(aval.shape, dtype)
    data = (ctypes.c_char * size).from_address(address)
    return np.frombuffer(memoryview(data), dtype).reshape(aval.shape)


def _addresses(found: structs.List) -> list[int]:
    pointers = (c_void_p * found.size).from_address(found.items) if found.size else ()
    return [structs.Buffer.from_address(p).data or 0 for p in pointers]


def _refused(api: structs.Api, message: str) -> int | None:
    create = ctypes.CFUNCTYPE(c_void_p, c_void_p)(api.error_create)
    words = message.encode()
    made = structs.NewError(ctypes.sizeof(structs.NewError), None, words, structs.INTERNAL)
    return create(ctypes.addressof(made))  # type: ignore[no-any-return]


def _stream(frame: structs.Frame) -> int:
    """The stream of the device that the program runs on."""
    api = structs.Api.from_address(frame.api)
    asked = structs.StreamArgs(ctypes.sizeof(structs.StreamArgs), None, frame.context, None)
    error = structs.HANDLER(api.stream_get)(ctypes.addressof(asked))
    if error:
        told = structs.ErrorMessage(ctypes.sizeof(structs.ErrorMessage), None, error, None)
        done = structs.OldError(ctypes.sizeof(structs.OldError), None, error)
        ctypes.CFUNCTYPE(None, c_void_p)(api.error_message)(ctypes.addressof(told))
        words = ctypes.string_at(told.message).decode() if told.message else ""
        ctypes.CFUNCTYPE(None, c_void_p)(api.error_destroy)(ctypes.addressof(done))
        raise XlaError(words)
    return asked.stream or 0


# An order of calls is kept by an operand and a result more, which come last and have no aval.


def _in_place(frame: structs.Frame, call: HostCall) -> bool:
    """Have a call computed whose operands and results lie on the host."""
    operands, results = _addresses(frame.operands), _addresses(frame.results)
    ins = [_memory(p, a).copy() for p, a in zip(operands, call.in_avals, strict=False)]
    outs = [_memory(p, a) for p, a in zip(results, call.out_avals, strict=False)]
    return call.runs[-1].ask(call, ins, outs)


def _copied(frame: structs.Frame, call: HostCall) -> bool:
    """Have a call computed whose operands and results lie on a CUDA device."""
    stream = _stream(frame)
    ins = [np.empty(a.shape, carried(a)) for a in call.in_avals]
    outs = [np.empty(a.shape, carried(a)) for a in call.out_avals]
    with cuda.within(stream):
        for x, address in zip(ins, _addresses(frame.operands), strict=False):
            cuda.read(x, address, stream)
        cuda.finish(stream)
        if not call.runs[-1].ask(call, ins, outs):
            return False
        for address, x in zip(_addresses(frame.results), outs, strict=False):
            cuda.write(address, x, stream)
        cuda.finish(stream)
    return True


def _answered(address: int, compute: Callable[[structs.Frame, HostCall], bool]) -> int | None:
    """What a handler does: of the execution alone, for other stages none is registered."""
    frame = structs.Frame.from_address(address)
    api = structs.Api.from_address(frame.api)
    try:
        if frame.extension:
            extension = structs.Extension.from_address(frame.extension)
            if extension.type == structs.METADATA:  # which version it was written for: the plugin's
                found = structs.Version.from_address(extension.metadata + ctypes.sizeof(c_size_t))
                found.major, found.minor = api.version.major, api.version.minor
                return None
        (item,) = (c_size_t * 1).from_address(frame.attributes.items)
        number = c_int64.from_address(structs.Scalar.from_address(item).value).value
        if compute(frame, _known[number]):
            return None
        return _refused(api, "a function that the program calls raised an exception.")
    except Exception as error:  # nothing may be raised into the plugin
        return _refused(api, f"{type(error).__name__}: {error}")


@structs.HANDLER
def _on_host(address: int) -> int | None:
    return _answered(address, _in_place)


@structs.HANDLER
def _on_cuda(address: int) -> int | None:
    return _answered(address, _copied)


# What XLA's FFI calls the platforms of plugins, and the handler there. None is marked as fit for
# CUDA's graphs: it has to be called every time.
_PLATFORMS = {"xla_cpu": (b"Host", _on_host), "cuda": (b"CUDA", _on_cuda)}


@functools.cache
def register(client: Any) -> bool:
    """Make the handler known to the client's plugin; whether it takes any."""
    address = client.plugin.extension(_FFI)
    if client.platform not in _PLATFORMS or address is None:
        return False  # operands lie in memory that nothing here can read
    if c_size_t.from_address(address).value < 6 * ctypes.sizeof(c_void_p):
        return False
    function = c_size_t.from_address(address + 5 * ctypes.sizeof(c_void_p)).value
    platform, handler = _PLATFORMS[client.platform]
    name, code = TARGET.encode(), ctypes.cast(handler, c_void_p).value
    made = _Registration(_Registration.traits.offset + ctypes.sizeof(c_int), name, len(name),
                         code, platform, len(platform), 0)
    client.plugin.check(structs.HANDLER(function)(ctypes.addressof(made)))
    return True


class _Run:
    """One execution of a program that calls the host."""

    def __init__(self) -> None:
        self.requests: queue.SimpleQueue = queue.SimpleQueue()
        self.problem: BaseException | None = None
        self.ended = False

    def ask(self, call: HostCall, operands: list[np.ndarray], results: list[np.ndarray]) -> bool:
        """In a thread of the plugin: have the caller's thread compute; whether it could."""
        answered = threading.Event()
        self.requests.put((call, operands, results, answered))
        answered.wait()
        return self.problem is None

    def serve(self) -> None:
        """In the caller's thread: answer until the execution has ended."""
        while not self.ended:
            try:
                request = self.requests.get()
                if request is None:
                    return
                call, operands, results, answered = request
            except BaseException as error:  # an interrupt: what is asked from now on is refused
                self.problem = self.problem or error
                continue
            try:
                if self.problem is None:
                    call.compute(operands, results)
            except BaseException as error:
                self.problem = error
            finally:
                answered.set()


def running(calls: Sequence[HostCall], execute: Callable[[], Any]) -> Any:
    """`execute()`, which runs a program to its end, in a thread of its own, while this one computes
    what the program asks for; its result. Raises what a function raised."""
    run, outcome = _Run(), []

    def body() -> None:
        try:
            outcome.append(execute())
        except XlaError as error:
            outcome.append(error)
        finally:
            run.ended = True
            run.requests.put(None)

    for call in calls:
        call.runs.append(run)
    thread = threading.Thread(target=body, name="numjet-xla-program", daemon=True)
    try:
        thread.start()
        run.serve()
        thread.join()
    finally:
        for call in calls:
            call.runs.remove(run)
    if run.problem is not None:
        raise run.problem
    (result,) = outcome
    if isinstance(result, XlaError):
        raise result
    return result
