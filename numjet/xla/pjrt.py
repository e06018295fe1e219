"""The PJRT C interface by ctypes: functions by name, checked structs, errors as exceptions.

`Plugin(path)` loads a shared library that exports `GetPjrtApi`; `plugin.call("Client_Devices",
client=...)` fills the function's argument struct, calls it, raises `XlaError` with XLA's own text
where it fails, and returns the struct. For `xla.client`; nothing else touches an address. Source:
the public header pjrt_c_api.h, minor versions 0.81 to 0.116, whose structs only grow: the size that
a caller states says which fields it knows.
"""

from __future__ import annotations

import ctypes
import functools
from ctypes import POINTER, byref, c_bool, c_char_p, c_float, c_int, c_int64, c_size_t, c_void_p
from typing import Any

from numjet.base.errors import XlaError

MAJOR = 0
OLDEST_MINOR = 72  # the first with all functions that are called here

# The functions of the table, in its order, up to the last that is used.
_TABLE = """
Error_Destroy Error_Message Error_GetCode Plugin_Initialize Plugin_Attributes Event_Destroy
Event_IsReady Event_Error Event_Await Event_OnReady Client_Create Client_Destroy
Client_PlatformName Client_ProcessIndex Client_PlatformVersion Client_Devices
Client_AddressableDevices Client_LookupDevice Client_LookupAddressableDevice
Client_AddressableMemories Client_Compile Client_DefaultDeviceAssignment
Client_BufferFromHostBuffer DeviceDescription_Id DeviceDescription_ProcessIndex
DeviceDescription_Attributes DeviceDescription_Kind DeviceDescription_DebugString
DeviceDescription_ToString Device_GetDescription Device_IsAddressable Device_LocalHardwareId
Device_AddressableMemories Device_DefaultMemory Device_MemoryStats Memory_Id Memory_Kind
Memory_DebugString Memory_ToString Memory_AddressableByDevices Executable_Destroy Executable_Name
Executable_NumReplicas Executable_NumPartitions Executable_NumOutputs
Executable_SizeOfGeneratedCodeInBytes Executable_GetCostAnalysis Executable_OutputMemoryKinds
Executable_OptimizedProgram Executable_Serialize LoadedExecutable_Destroy
LoadedExecutable_GetExecutable LoadedExecutable_AddressableDevices LoadedExecutable_Delete
LoadedExecutable_IsDeleted LoadedExecutable_Execute Executable_DeserializeAndLoad
LoadedExecutable_Fingerprint Buffer_Destroy Buffer_ElementType Buffer_Dimensions
Buffer_UnpaddedDimensions Buffer_DynamicDimensionIndices Buffer_GetMemoryLayout
Buffer_OnDeviceSizeInBytes Buffer_Device Buffer_Memory Buffer_Delete Buffer_IsDeleted
Buffer_CopyToDevice Buffer_ToHostBuffer Buffer_IsOnCpu Buffer_ReadyEvent Buffer_UnsafePointer
Buffer_IncreaseExternalReferenceCount Buffer_DecreaseExternalReferenceCount
Buffer_OpaqueDeviceMemoryDataPointer CopyToDeviceStream_Destroy CopyToDeviceStream_AddChunk
CopyToDeviceStream_TotalBytes CopyToDeviceStream_GranuleSize CopyToDeviceStream_CurrentBytes
TopologyDescription_Create TopologyDescription_Destroy TopologyDescription_PlatformName
TopologyDescription_PlatformVersion TopologyDescription_GetDeviceDescriptions
TopologyDescription_Serialize TopologyDescription_Attributes Compile
Executable_OutputElementTypes Executable_OutputDimensions Buffer_CopyToMemory
Client_CreateViewOfDeviceBuffer Executable_Fingerprint Client_TopologyDescription
Executable_GetCompiledMemoryStats
""".split()
_PLACE = {name: k for k, name in enumerate(_TABLE)}

# Fields of the argument structs: p pointer, n size_t, l int64, i int, b bool, L a layout, * an
# address given as bytes. Those behind ">" are results.
_FIELDS = {
    "Error_Destroy": "error:p",
    "Error_Message": "error:p > message:p size:n",
    "Error_GetCode": "error:p > code:i",
    "Plugin_Initialize": "",
    "Plugin_Attributes": "> attributes:p count:n",
    "Event_Destroy": "event:p",
    "Event_IsReady": "event:p > ready:b",
    "Event_Error": "event:p",
    "Event_Await": "event:p",
    "Client_Create": "options:p num_options:n kv_get:p kv_get_arg:p kv_put:p kv_put_arg:p "
                     "> client:p kv_try_get:p kv_try_get_arg:p",
    "Client_Destroy": "client:p",
    "Client_PlatformName": "client:p > text:p size:n",
    "Client_PlatformVersion": "client:p > text:p size:n",
    "Client_ProcessIndex": "client:p > index:i",
    "Client_Devices": "client:p > devices:p count:n",
    "Client_AddressableDevices": "client:p > devices:p count:n",
    "Client_Compile": "client:p program:p options:* options_size:n > executable:p",
    "Client_BufferFromHostBuffer":
        "client:p data:p type:i dims:p num_dims:n strides:p num_strides:n semantics:i device:p "
        "memory:p layout:p > done:p buffer:p",
    "DeviceDescription_Id": "description:p > id:i",
    "DeviceDescription_ProcessIndex": "description:p > index:i",
    "DeviceDescription_Kind": "description:p > text:p size:n",
    "DeviceDescription_ToString": "description:p > text:p size:n",
    "Device_GetDescription": "device:p > description:p",
    "Device_LocalHardwareId": "device:p > id:i",
    "Device_AddressableMemories": "device:p > memories:p count:n",
    "Device_DefaultMemory": "device:p > memory:p",
    "Memory_Kind": "memory:p > text:p size:n",
    "Device_MemoryStats":
        "device:p > bytes_in_use:l peak_bytes_in_use:l has_peak:b num_allocs:l has_allocs:b "
        "largest_alloc_size:l has_largest:b bytes_limit:l has_limit:b bytes_reserved:l "
        "has_reserved:b peak_bytes_reserved:l has_peak_reserved:b bytes_reservable_limit:l "
        "has_reservable:b largest_free_block_bytes:l has_free:b pool_bytes:l has_pool:b "
        "peak_pool_bytes:l has_peak_pool:b",
    "Executable_Destroy": "executable:p",
    "Executable_NumOutputs": "executable:p > count:n",
    "Executable_GetCostAnalysis": "executable:p > count:n properties:p",
    "Executable_Serialize": "executable:p > data:p size:n handle:p deleter:p",
    "Executable_OptimizedProgram": "executable:p program:p",
    "Executable_GetCompiledMemoryStats":
        "executable:p > generated_code:l arguments:l outputs:l aliased:l temporaries:l "
        "host_generated_code:l host_arguments:l host_outputs:l host_aliased:l host_temporaries:l "
        "peak:l",
    "Executable_DeserializeAndLoad": "client:p data:* size:n > executable:p options:p "
                                     "options_size:n",
    "LoadedExecutable_Destroy": "executable:p",
    "LoadedExecutable_GetExecutable": "loaded:p > executable:p",
    "LoadedExecutable_Execute": "executable:p options:p arguments:p num_devices:n num_args:n "
                                "outputs:p events:p device:p",
    "Buffer_Destroy": "buffer:p",
    "Buffer_ElementType": "buffer:p > type:i",
    "Buffer_Dimensions": "buffer:p > dims:p count:n",
    "Buffer_OnDeviceSizeInBytes": "buffer:p > size:n",
    "Buffer_Delete": "buffer:p",
    "Buffer_IsDeleted": "buffer:p > deleted:b",
    "Buffer_CopyToDevice": "buffer:p device:p > made:p",
    "Buffer_CopyToMemory": "buffer:p memory:p > made:p",
    "Buffer_Memory": "buffer:p > memory:p",
    "Buffer_ToHostBuffer": "buffer:p layout:p data:p size:n > event:p",
    "Buffer_ReadyEvent": "buffer:p > event:p",
    "Buffer_UnsafePointer": "buffer:p > address:p",
    "Buffer_IncreaseExternalReferenceCount": "buffer:p",
    "Buffer_DecreaseExternalReferenceCount": "buffer:p",
    "Buffer_GetMemoryLayout": "buffer:p > layout:L",
    "Client_CreateViewOfDeviceBuffer":
        "client:p data:p dims:p num_dims:n type:i layout:p device:p deleted:p deleted_arg:p "
        "stream:p > buffer:p memory:p",
    "TopologyDescription_Create": "name:* name_size:n options:p num_options:n > topology:p",
    "TopologyDescription_Destroy": "topology:p",
    "Compile": "topology:p program:p options:* options_size:n client:p > executable:p",
}


class Head(ctypes.Structure):
    """What every struct begins with."""

    _fields_ = [("struct_size", c_size_t), ("extension", c_void_p)]


class Layout(Head):
    """How a buffer lies, or is wanted on the host: dimensions from the innermost outwards."""

    _fields_ = [
        ("tiled_size", c_size_t), ("tiled_extension", c_void_p), ("minor_to_major", c_void_p),
        ("rank", c_size_t), ("tiles", c_void_p), ("tile_sizes", c_void_p), ("num_tiles", c_size_t),
        ("type", c_int),
    ]  # fmt: skip


_TYPES: dict[str, type] = {"p": c_void_p, "n": c_size_t, "l": c_int64, "i": c_int, "b": c_bool,
                           "*": c_char_p, "L": Layout}


@functools.cache
def arguments(name: str) -> type[Head]:
    """The argument struct of a function."""
    words = _FIELDS[name].replace(">", " ").split()
    fields = [(field, _TYPES[kind]) for field, kind in (word.split(":") for word in words)]
    return type(f"PJRT_{name}_Args", (Head,), {"_fields_": fields})


class Program(Head):
    """What is compiled: text or bytes, and their format ("mlir", "hlo")."""

    _fields_ = [("code", c_char_p), ("code_size", c_size_t), ("format", c_char_p),
                ("format_size", c_size_t)]


class ExecuteOptions(Head):
    """Options of one execution, as of minor 0.81."""

    _fields_ = [
        ("send", c_void_p), ("receive", c_void_p), ("num_send", c_size_t),
        ("num_receive", c_size_t), ("launch_id", c_int), ("kept", POINTER(c_int64)),
        ("num_kept", c_size_t), ("context", c_void_p), ("call_location", c_char_p),
        ("num_tasks", c_size_t), ("task_ids", c_void_p), ("incarnation_ids", c_void_p),
    ]  # fmt: skip


class _Number(ctypes.Union):
    _fields_ = [("string", c_char_p), ("int64", c_int64), ("int64s", c_void_p),
                ("float", c_float), ("bool", c_bool)]


class NamedValue(Head):
    """An option or a property: a name and a string, number, list or truth value."""

    _fields_ = [("name", c_void_p), ("name_size", c_size_t), ("type", c_int), ("value", _Number),
                ("value_size", c_size_t)]


def text(address: int | None, size: int) -> str:
    """A string that the plugin gave as address and size."""
    return ctypes.string_at(address, size).decode(errors="replace") if address else ""


def named_values(options: dict[str, Any]) -> tuple[Any, list]:
    """Options as an array of `NamedValue`, and what has to live as long as it does."""
    array = (NamedValue * max(len(options), 1))()
    alive: list[Any] = []
    for entry, (name, value) in zip(array, options.items(), strict=False):
        data = ctypes.create_string_buffer(name.encode())
        entry.struct_size = ctypes.sizeof(NamedValue)
        entry.name, entry.name_size = ctypes.addressof(data), len(name)
        entry.value_size = 1
        if isinstance(value, bool):
            entry.type, entry.value.bool = 4, value
        elif isinstance(value, int):
            entry.type, entry.value.int64 = 1, value
        elif isinstance(value, float):
            entry.type, entry.value.float = 3, value
        elif isinstance(value, str):
            word = value.encode()
            entry.type, entry.value.string, entry.value_size = 0, word, len(word)
            alive.append(word)
        else:
            numbers = (c_int64 * len(value))(*value)
            entry.type, entry.value.int64s = 2, ctypes.addressof(numbers)
            entry.value_size = len(value)
            alive.append(numbers)
        alive.append(data)
    return array, alive


class Plugin:
    """A loaded plugin: its table of functions."""

    def __init__(self, path: str) -> None:
        self.path = path
        library = ctypes.CDLL(path)
        get = getattr(library, "GetPjrtApi", None)
        if get is None:
            raise XlaError(f"{path} is no PJRT plugin: it exports no GetPjrtApi.")
        get.restype = c_void_p
        self._api = get()
        size, _ = self._words(2)
        # The table begins behind its own head and the head and numbers of the version.
        self._first = ctypes.sizeof(Head) + ctypes.sizeof(Head) + 2 * ctypes.sizeof(c_int)
        self._count = (size - self._first) // ctypes.sizeof(c_void_p)
        version = (c_int * 2).from_address(self._api + 2 * ctypes.sizeof(Head))
        self.version = (version[0], version[1])
        if self.version[0] != MAJOR or self.version[1] < OLDEST_MINOR:
            raise XlaError(
                f"{path} speaks PJRT {self.version[0]}.{self.version[1]}; numjet knows "
                f"{MAJOR}.{OLDEST_MINOR} and newer minor versions. Install another release of the "
                "plugin."
            )
        self._functions: dict[str, Any] = {}
        self.call("Plugin_Initialize")  # skipping it ends the process in some plugins

    def _words(self, count: int) -> list[int]:
        return list((c_size_t * count).from_address(self._api))

    def function(self, name: str) -> Any:
        """The function of the table; it takes a reference to a struct (`byref`) and returns the
        address of an error."""
        found = self._functions.get(name)
        if found is None:
            place = _PLACE[name]
            address = None
            if place < self._count:
                offset = self._first + place * ctypes.sizeof(c_void_p)
                address = c_void_p.from_address(self._api + offset).value
            if not address:
                raise XlaError(f"PJRT_{name} is not in {self.path} (PJRT {self.version[0]}."
                               f"{self.version[1]}).")
            restype = None if name in ("Error_Destroy", "Error_Message") else c_void_p
            found = ctypes.CFUNCTYPE(restype)(address)  # converting a reference takes 0.1 us
            self._functions[name] = found
        return found

    def extension(self, number: int) -> int | None:
        """The address of an extension of the table, by its type; None where there is none."""
        at = self._words(2)[1]
        while at:
            if c_int.from_address(at + ctypes.sizeof(c_size_t)).value == number:
                return at
            at = c_size_t.from_address(at + 2 * ctypes.sizeof(c_size_t)).value
        return None

    def call(self, name: str, /, **given: Any) -> Any:
        """Call a function; its struct. Raises XlaError with the plugin's own words."""
        made = arguments(name)(struct_size=ctypes.sizeof(arguments(name)), **given)
        self.check(self.function(name)(byref(made)))
        return made

    def check(self, error: int | None) -> None:
        """Raise what a function returned, if it is an error."""
        if not error:
            return
        kind = arguments("Error_Message")
        message = kind(struct_size=ctypes.sizeof(kind), error=error)
        self.function("Error_Message")(byref(message))
        words = text(message.message, message.size)
        kind = arguments("Error_GetCode")
        code = kind(struct_size=ctypes.sizeof(kind), error=error)
        self.function("Error_GetCode")(byref(code))
        kind = arguments("Error_Destroy")
        self.function("Error_Destroy")(byref(kind(struct_size=ctypes.sizeof(kind), error=error)))
        raise XlaError(words, code.code)

    def wait(self, event: int | None) -> None:
        """Wait for an event, and let it go; raises what it brings."""
        if event:
            try:
                self.call("Event_Await", event=event)
            finally:
                self.call("Event_Destroy", event=event)
