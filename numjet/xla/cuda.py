"""CUDA's driver, by ctypes: what is needed of it beside a plugin.

`settle` waits for a device, for `xla.dlpack`; `within`, `read`, `write` and `finish` move memory on
a stream, for `xla.host_calls`. Nothing is loaded before it is needed. Every call waits without the
GIL. What would break it: a driver before CUDA 9.2, which cannot say the context of a stream.
Source: the documentation of CUDA's driver API.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterator
from ctypes import c_char_p, c_int, c_size_t, c_uint64, c_void_p
from typing import Any

import numpy as np

from numjet.base.errors import XlaError

_LIBRARY = "libcuda.so.1"
_CONTEXT = ctypes.POINTER(c_void_p)  # where one is written to
# What each function takes: an address of a device has 64 bits.
SIGNATURES: dict[str, tuple] = {
    "cuGetErrorString": (c_int, ctypes.POINTER(c_char_p)),
    "cuDevicePrimaryCtxRetain": (_CONTEXT, c_int),
    "cuDevicePrimaryCtxRelease_v2": (c_int,),
    "cuCtxPushCurrent_v2": (c_void_p,),
    "cuCtxPopCurrent_v2": (_CONTEXT,),
    "cuCtxSynchronize": (),
    "cuStreamGetCtx": (c_void_p, _CONTEXT),
    "cuStreamSynchronize": (c_void_p,),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, c_void_p),
    "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, c_void_p),
}


def prototype(name: str) -> Any:
    """The type of a function of the driver."""
    return ctypes.CFUNCTYPE(c_int, *SIGNATURES[name])


@functools.cache
def function(name: str) -> Callable[..., int]:
    """A function of the driver. Raises XlaError where there is no driver, or it lacks this."""
    try:
        return prototype(name)((name, ctypes.CDLL(_LIBRARY)))
    except (OSError, AttributeError) as error:
        raise XlaError(f"CUDA's driver: {error}") from None


def call(name: str, *args: Any) -> None:
    """Call a function of the driver. Raises XlaError with the driver's own words."""
    status = function(name)(*args)
    if status:
        words = c_char_p()
        function("cuGetErrorString")(status, ctypes.byref(words))
        said = (words.value or b"an unknown error").decode()
        raise XlaError(f"{name}: CUDA's driver returned {status}: {said}.")


@contextlib.contextmanager
def _current(context: c_void_p) -> Iterator[None]:
    """A context is this thread's meanwhile."""
    call("cuCtxPushCurrent_v2", context)
    try:
        yield
    finally:
        call("cuCtxPopCurrent_v2", ctypes.byref(c_void_p()))


def settle(number: int) -> None:
    """Wait for everything that was begun on a device."""
    context = c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
    try:
        with _current(context):
            call("cuCtxSynchronize")
    finally:
        call("cuDevicePrimaryCtxRelease_v2", number)


@contextlib.contextmanager
def within(stream: int) -> Iterator[None]:
    """The context of a stream is this thread's meanwhile."""
    context = c_void_p()
    call("cuStreamGetCtx", stream, ctypes.byref(context))
    with _current(context):
        yield


def read(into: np.ndarray, address: int, stream: int) -> None:
    """Begin to copy what lies at an address of the stream's device into an array."""
    if into.nbytes:
        call("cuMemcpyDtoHAsync_v2", into.ctypes.data, address, into.nbytes, stream)


def write(address: int, of: np.ndarray, stream: int) -> None:
    """Begin to copy an array to an address of the stream's device."""
    if of.nbytes:
        call("cuMemcpyHtoDAsync_v2", address, of.ctypes.data, of.nbytes, stream)


def finish(stream: int) -> None:
    """Wait for what was begun on a stream."""
    call("cuStreamSynchronize", stream)
