"""The structures of XLA's foreign function interface, as ctypes has them, and its numbers.

For `core.ffi_api` and `core.ffi_targets`, which call the functions of others, and for
`xla.host_calls`, which is called. Source: the interface's public header, xla/ffi/api/c_api.h
(version 0.3). What would break it: another order of fields, which is the interface itself.
"""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any

VERSION = (0, 3)
METADATA = 1  # of an extension of a call frame: the handler is asked what it is
# Stages of a call.
INSTANTIATE, EXECUTE = 0, 3
# Kinds of attributes.
ARRAY, DICTIONARY, SCALAR, STRING = 1, 2, 3, 4
BUFFER = 1  # the one kind of operands and of results

# Error codes by number.
CODES = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
    "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",
    "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip
UNKNOWN, INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION = 2, 3, 5, 9
UNIMPLEMENTED, INTERNAL = 12, 13

# The number of each dtype, by its name.
DTYPES = {
    "bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7,
    "uint32": 8, "uint64": 9, "float16": 10, "float32": 11, "float64": 12, "complex64": 15,
    "bfloat16": 16, "complex128": 18, "float8_e5m2": 19, "float8_e4m3fn": 20, "int4": 21,
    "uint4": 22, "float8_e4m3b11fnuz": 23, "float8_e5m2fnuz": 24, "float8_e4m3fnuz": 25,
    "int2": 26, "uint2": 27, "float8_e4m3": 28, "float8_e3m4": 29, "int1": 30, "uint1": 31,
    "float4_e2m1fn": 32, "float8_e8m0fnu": 33,
}  # fmt: skip

HEAD: list[Any] = [("struct_size", c_size_t), ("extension", c_void_p)]


def structure(name: str, *fields: tuple, size_to: str = "") -> type[ctypes.Structure]:
    """A structure that begins with its own size and a chain of extensions. size_to: the last field
    that `struct_size` counts; else all are."""
    made = type(name, (ctypes.Structure,), {"_fields_": [*HEAD, *fields]})
    last = size_to or fields[-1][0]
    made.counted = getattr(made, last).offset + getattr(made, last).size  # type: ignore[attr-defined]
    return made


class Version(ctypes.Structure):
    _fields_ = [*HEAD, ("major", c_int), ("minor", c_int)]


class Extension(ctypes.Structure):
    """The one extension of a call frame that there is: where a handler tells what it is."""

    _fields_ = [("struct_size", c_size_t), ("type", c_int), ("next", c_void_p),
                ("metadata", c_void_p)]  # fmt: skip


class Metadata(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("version", Version), ("traits", c_uint32),
                ("state_type", c_int64)]  # fmt: skip


class Buffer(ctypes.Structure):
    """An operand or a result."""

    _fields_ = [*HEAD, ("dtype", c_int), ("data", c_void_p), ("rank", c_int64), ("dims", c_void_p)]


class Text(ctypes.Structure):
    """Characters, which need not end with a null."""

    _fields_ = [("data", c_void_p), ("size", c_size_t)]


class Scalar(ctypes.Structure):
    _fields_ = [("dtype", c_int), ("value", c_void_p)]


class Numbers(ctypes.Structure):
    """An array among the attributes."""

    _fields_ = [("dtype", c_int), ("size", c_size_t), ("data", c_void_p)]


class List(ctypes.Structure):
    """Operands or results of a call."""

    _fields_ = [*HEAD, ("size", c_int64), ("types", c_void_p), ("items", c_void_p)]


class Attributes(ctypes.Structure):
    """Attributes, in the order of their names."""

    _fields_ = [*List._fields_[:4], ("names", c_void_p), ("items", c_void_p)]


class Frame(ctypes.Structure):
    """What a handler is called with. `future` is not counted in its size."""

    _fields_ = [*HEAD, ("api", c_void_p), ("context", c_void_p), ("stage", c_int),
                ("operands", List), ("results", List), ("attributes", Attributes),
                ("future", c_void_p)]  # fmt: skip
    counted = 168


class TypeInfo(ctypes.Structure):
    _fields_ = [*HEAD, ("deleter", c_void_p)]


class Bundle(ctypes.Structure):
    """The handlers of a target, one for each stage."""

    _fields_ = [("instantiate", c_void_p), ("prepare", c_void_p), ("initialize", c_void_p),
                ("execute", c_void_p)]  # fmt: skip


# What the functions of the table take.
NewError = structure("NewError", ("message", c_char_p), ("code", c_int))
ErrorMessage = structure("ErrorMessage", ("error", c_void_p), ("message", c_void_p))
OldError = structure("OldError", ("error", c_void_p))
FutureArgs = structure("FutureArgs", ("future", c_void_p))
FutureError = structure("FutureError", ("future", c_void_p), ("error", c_void_p))
Registration = structure("Registration", ("name", Text), ("platform", Text), ("bundle", Bundle),
                         ("traits", c_uint32))  # fmt: skip
TypeRegistration = structure("TypeRegistration", ("name", Text), ("type_id", c_void_p),
                             ("type_info", c_void_p))  # fmt: skip
ContextData = structure("ContextData", ("context", c_void_p), ("type_id", c_void_p),
                        ("data", c_void_p))  # fmt: skip
StateArgs = structure("StateArgs", ("context", c_void_p), ("stage", c_int), ("type_id", c_void_p),
                      ("state", c_void_p))  # fmt: skip
StreamArgs = structure("StreamArgs", ("context", c_void_p), ("stream", c_void_p))
Allocation = structure("Allocation", ("context", c_void_p), ("size", c_size_t),
                       ("alignment", c_size_t), ("data", c_void_p))  # fmt: skip
Release = structure("Release", ("context", c_void_p), ("size", c_size_t), ("data", c_void_p))
Task = structure("Task", ("context", c_void_p), ("task", c_void_p), ("data", c_void_p))
Threads = structure("Threads", ("context", c_void_p), ("count", c_void_p))
RunArgs = structure("RunArgs", ("context", c_void_p), ("run", c_int64))
DeviceArgs = structure("DeviceArgs", ("context", c_void_p), ("device", c_int32))

# The functions of the table, in their order.
FUNCTIONS = (
    "error_create", "error_message", "error_destroy", "handler_register", "stream_get",
    "type_register", "context_get", "state_set", "state_get", "memory_allocate", "memory_free",
    "pool_schedule", "pool_threads", "future_create", "future_available", "future_error",
    "run_id", "device_ordinal",
)  # fmt: skip


class Api(ctypes.Structure):
    """The table of functions that handlers call."""

    _fields_ = [*HEAD, ("version", Version), ("internal", c_void_p),
                *[(name, c_void_p) for name in FUNCTIONS]]  # fmt: skip


HANDLER = ctypes.CFUNCTYPE(c_void_p, c_void_p)  # a pointer to arguments -> an error, or null
VOID = ctypes.CFUNCTYPE(None, c_void_p)


def text_at(text: Text) -> str:
    """The characters of a Text."""
    return ctypes.string_at(text.data, text.size).decode() if text.size else ""
