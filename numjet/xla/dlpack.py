"""DLPack of memory on devices: arrays given to other libraries and taken from them, not copied.

`capsule` and `device_of` are what `RemoteArray.__dlpack__` and `__dlpack_device__` call; `taken`
makes an Array of another library's memory on a device. For `xla.backend`, which installs them. The
memory is kept as long as either side needs it: an exported buffer is counted by the plugin and held
here, an imported one calls its owner back when the plugin lets go of it. What would break it: a
plugin that moves buffers while their external count is above zero. Source: the DLPack header,
version 1.0.
"""

from __future__ import annotations

import ctypes
from ctypes import c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

import ml_dtypes
import numpy as np

from numjet.base.errors import XlaError
from numjet.core.avals import ShapedArray
from numjet.core.remote import RemoteArray
from numjet.xla import cuda
from numjet.xla.buffers import NUMBERS, DeviceBuffer

CPU, CUDA, CUDA_MANAGED = 1, 2, 13
_DEVICES = {"xla_cpu": CPU, "cuda": CUDA}
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BFLOAT, BFLOAT16 = 4, np.dtype(ml_dtypes.bfloat16)
_READ_ONLY, _COPIED = 1, 2  # flags of versioned tensors
_LEGACY_STREAM = 1  # CUDA's default stream, on which another library makes its memory ready


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p), ("device", c_int32), ("device_id", c_int32), ("ndim", c_int32),
        ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", c_void_p),
        ("strides", c_void_p), ("offset", c_uint64),
    ]  # fmt: skip


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p),
                ("deleter", c_void_p), ("flags", c_uint64), ("tensor", _Tensor)]


_KINDS: dict[bytes, type[_Managed] | type[_Versioned]] = {
    b"dltensor": _Managed, b"dltensor_versioned": _Versioned
}  # fmt: skip
_USED = {name: b"used_" + name for name in _KINDS}  # capsules refer to these bytes
_python = ctypes.pythonapi
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, ctypes.c_char_p, c_void_p)(
    ("PyCapsule_New", _python))
# Of a capsule by its address: its destructor must not make a reference to it.
_is_named = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _python))
_address_in = ctypes.PYFUNCTYPE(c_void_p, c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _python))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, ctypes.c_char_p)(
    ("PyCapsule_SetName", _python))
_DELETER = ctypes.CFUNCTYPE(None, c_void_p)
_DELETED = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)

# What others hold: the address of a managed tensor -> it, its extents, the buffer.
_given: dict[int, tuple] = {}


@_DELETER
def _returned(address: int) -> None:
    """Another library is done with memory of ours."""
    _, _, buffer = _given.pop(address)
    buffer.hide(buffer.handles[0])


@ctypes.PYFUNCTYPE(None, c_void_p)
def _unused(capsule: int) -> None:
    """A capsule goes: if nobody took it, what it holds goes too."""
    for name in _KINDS:
        if _is_named(capsule, name):
            _returned(_address_in(capsule, name))


def device_of(x: RemoteArray) -> tuple[int, int]:
    """The kind and number of the device of an array, as DLPack numbers them."""
    if x._buffer is None:
        x._value  # noqa: B018 - raises: it was deleted
    if len(x._buffer.devices) > 1:
        raise BufferError("__dlpack__: the array lies on several devices. Take a shard "
                          "(x.addressable_shards[i].data), or move it to one device.")
    (device,) = x._buffer.devices
    kind = _DEVICES.get(device.client.platform)
    if kind is None:
        raise BufferError(f"__dlpack__: DLPack has no number for {device}. Move the array to the "
                          "CPU (numjet.device_put).")
    if kind == CPU:
        return kind, 0
    memory = getattr(x._buffer, "kind", None)
    if memory is not None:
        raise BufferError(f"__dlpack__: the array lies in the memory {memory} of {device}. Move it "
                          f"to the device's own (numjet.device_put), or read it (numpy.asarray).")
    return kind, device.local_hardware_id


def capsule(
    x: RemoteArray, *, stream: Any = None, max_version: tuple | None = None,
    dl_device: tuple | None = None, copy: bool | None = None,
) -> Any:  # fmt: skip
    """The DLPack capsule of an array's memory. It is ready: there is nothing to wait for on
    `stream`. Raises BufferError where the memory cannot be given as it is asked for."""
    here = device_of(x)
    dtype = x.aval.dtype
    code = _BFLOAT if dtype == BFLOAT16 else _CODES.get(dtype.kind)
    if code is None or (dtype.isbuiltin != 1 and code != _BFLOAT):
        raise BufferError(f"__dlpack__: DLPack has no element type for {dtype}.")
    if dl_device is not None and tuple(dl_device) != here:
        raise BufferError(f"__dlpack__: the array lies on {x._buffer.devices[0]}, {here} in "
                          f"DLPack's numbers; it is not moved to {tuple(dl_device)}. Use "
                          "numjet.device_put first.")
    buffer = x._buffer.copy_to(x._buffer.devices) if copy else x._buffer
    buffer.wait()
    if not buffer.lies_in_rows(buffer.handles[0], x.ndim):
        raise BufferError("__dlpack__: the array does not lie row by row on its device.")
    buffer.show(buffer.handles[0])
    extents = (c_int64 * (2 * max(x.ndim, 1)))(
        *x.shape, *[int(np.prod(x.shape[a + 1:])) for a in range(x.ndim)])
    versioned = max_version is not None and tuple(max_version) >= (1, 0)
    name = b"dltensor_versioned" if versioned else b"dltensor"
    managed = _KINDS[name]()
    if versioned:
        managed.major, managed.minor = 1, 0
        managed.flags = _COPIED if copy else _READ_ONLY
    managed.deleter = ctypes.cast(_returned, c_void_p)
    tensor = managed.tensor
    tensor.data, tensor.offset = buffer.address(), 0
    tensor.device, tensor.device_id = here
    tensor.code, tensor.bits, tensor.lanes = code, 8 * dtype.itemsize, 1
    tensor.ndim, tensor.shape = x.ndim, ctypes.addressof(extents)
    tensor.strides = tensor.shape + 8 * x.ndim
    address = ctypes.addressof(managed)
    _given[address] = managed, extents, buffer
    return _new_capsule(address, name, ctypes.cast(_unused, c_void_p))


def taken(external: Any, device: Any, kind: int) -> RemoteArray:
    """An Array on a device of the memory of another library's array there, which DLPack says to be
    of `kind`. Raises BufferError where its memory cannot be used as it is."""
    stream = {"stream": _LEGACY_STREAM} if kind != CPU else {}
    try:
        given = external.__dlpack__(max_version=(1, 0), **stream)
    except TypeError:  # of before version 1.0
        given = external.__dlpack__(**stream)
    if kind != CPU:  # the plugin's own streams wait for no other
        cuda.settle(device.local_hardware_id)
    capsule = id(given)
    name = next((name for name in _KINDS if _is_named(capsule, name)), None)
    if name is None:
        raise BufferError(f"from_dlpack: {given!r} is no capsule that was not taken yet.")
    address = _address_in(capsule, name)
    managed = _KINDS[name].from_address(address)
    tensor = managed.tensor
    shape = tuple((c_int64 * tensor.ndim).from_address(tensor.shape)) if tensor.ndim else ()
    dtype = _dtype(tensor)
    if tensor.strides and tensor.ndim and np.prod(shape) > 1:
        strides = tuple((c_int64 * tensor.ndim).from_address(tensor.strides))
        rows = tuple([int(np.prod(shape[a + 1:])) for a in range(tensor.ndim)])
        if any([n > 1 and s != r for n, s, r in zip(shape, strides, rows, strict=True)]):
            raise BufferError(
                f"from_dlpack: an array of shape {shape} with strides {strides} does not lie row "
                "by row. Make it contiguous first."
            )
    deleter = managed.deleter

    @_DELETED
    def released(_: int, __: int) -> None:
        if deleter:
            _DELETER(deleter)(address)
        _taken.pop(address)

    dims = (c_int64 * max(len(shape), 1))(*shape)
    try:
        made = device.client.plugin.call(
            "Client_CreateViewOfDeviceBuffer", client=device.client.handle,
            data=(tensor.data or 0) + tensor.offset, dims=ctypes.addressof(dims),
            num_dims=len(shape), type=NUMBERS[dtype.name], device=device.handle,
            deleted=ctypes.cast(released, c_void_p),
        )  # fmt: skip
    except XlaError as error:
        raise BufferError(f"from_dlpack: {device} does not take this memory: {error}") from None
    _taken[address] = released
    _rename(capsule, _USED[name])
    buffer = DeviceBuffer((device.client.handle_of(made.buffer),), (device,))
    return RemoteArray(buffer, ShapedArray(shape, dtype), device.sharding)


# The callbacks of memory that plugins look at: they live until they were called.
_taken: dict[int, Any] = {}


def _dtype(tensor: _Tensor) -> np.dtype:
    kinds = {code: kind for kind, code in _CODES.items()}
    if tensor.lanes == 1 and tensor.code == _BFLOAT and tensor.bits == 16:
        return BFLOAT16
    try:
        kind = kinds[tensor.code]
        return np.dtype(np.bool_) if kind == "b" else np.dtype(f"{kind}{tensor.bits // 8}")
    except (KeyError, TypeError):
        raise BufferError(
            f"from_dlpack: elements of DLPack's type {tensor.code} with {tensor.bits} bits have no "
            "dtype here."
        ) from None
