"""The dozen functions of llvmlite's shared library that this package calls, through ctypes.

For: `link` alone. The library is opened by file and not through `llvmlite.binding` for two
reasons, both measured: importing the Python layer takes 28-45 ms where opening the library
takes 12, and the layer's global lock lets only one thread compile at a time, although LLVM
itself needs no lock between contexts. What would break it: a llvmlite whose C functions take
other arguments; the supported versions are pinned in pyproject.toml.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import os
from ctypes import c_bool, c_char_p, c_int, c_size_t, c_uint, c_uint8, c_uint64, c_void_p

from numjet.base.errors import InternalError
from numjet.cpu import host


class LinkElement(ctypes.Structure):
    """One input of LLVMPY_LLJIT_Link: kind 2 is an object image, 3 a library ("" = process)."""

    _fields_ = [("kind", c_uint8), ("value", c_char_p), ("length", c_size_t)]


class SymbolAddress(ctypes.Structure):
    """One imported or exported symbol of LLVMPY_LLJIT_Link."""

    _fields_ = [("name", c_char_p), ("address", c_uint64)]


OBJECT_IMAGE = 2
JIT_LIBRARY = 3

# These return at once: giving up the interpreter for them costs more than they do.
_SHORT = (
    "LLVMPY_ContextCreate",
    "LLVMPY_GetBufferStart",
    "LLVMPY_GetBufferSize",
    "LLVMPY_SetCommandLine",
)

_ERROR = ctypes.POINTER(c_void_p)  # char**: a string the library allocated

_SIGNATURES = {
    "LLVMPY_GetVersionInfo": (c_uint, []),
    "LLVMPY_InitializeNativeTarget": (c_int, []),
    "LLVMPY_InitializeNativeAsmPrinter": (c_int, []),
    "LLVMPY_DisposeString": (None, [c_void_p]),
    "LLVMPY_GetProcessTriple": (None, [_ERROR]),
    "LLVMPY_GetHostCPUName": (None, [_ERROR]),
    "LLVMPY_GetHostCPUFeatures": (c_int, [_ERROR]),
    "LLVMPY_GetTargetFromTriple": (c_void_p, [c_char_p, _ERROR]),
    "LLVMPY_CreateTargetMachine": (
        c_void_p,
        [c_void_p, c_char_p, c_char_p, c_char_p, c_int, c_char_p, c_char_p, c_int, c_int, c_char_p],
    ),
    "LLVMPY_DisposeTargetMachine": (None, [c_void_p]),
    "LLVMPY_ContextCreate": (c_void_p, []),
    "LLVMPY_ContextDispose": (None, [c_void_p]),
    "LLVMPY_ParseAssembly": (c_void_p, [c_void_p, c_char_p, _ERROR]),
    "LLVMPY_DisposeModule": (None, [c_void_p]),
    "LLVMPY_VerifyModule": (c_int, [c_void_p, _ERROR]),
    "LLVMPY_TargetMachineEmitToMemory": (c_void_p, [c_void_p, c_void_p, c_int, _ERROR]),
    "LLVMPY_GetBufferStart": (c_void_p, [c_void_p]),
    "LLVMPY_GetBufferSize": (c_size_t, [c_void_p]),
    "LLVMPY_DisposeMemoryBuffer": (None, [c_void_p]),
    "LLVMPY_SetCommandLine": (None, [c_char_p, c_char_p]),
    "LLVMPY_CreateLLJITCompiler": (c_void_p, [c_void_p, c_bool, c_bool, _ERROR]),
    "LLVMPY_LLJIT_Link": (
        c_void_p,
        [
            c_void_p,
            c_char_p,
            ctypes.POINTER(LinkElement),
            c_size_t,
            ctypes.POINTER(SymbolAddress),
            c_size_t,
            ctypes.POINTER(SymbolAddress),
            c_size_t,
            _ERROR,
        ],
    ),
    "LLVMPY_LLJITLookup": (
        c_void_p,
        [c_void_p, c_char_p, c_char_p, ctypes.POINTER(c_uint64), _ERROR],
    ),
    "LLVMPY_LLJIT_Dylib_Tracker_Dispose": (c_bool, [c_void_p, _ERROR]),
}


class LLVM:
    """The opened library; `lib.LLVMPY_…` calls release the GIL and take no lock."""

    def __init__(self) -> None:
        self.lib = ctypes.CDLL(library_path())
        holding = ctypes.PyDLL(self.lib._name, handle=self.lib._handle)
        for name in _SHORT:
            setattr(self.lib, name, getattr(holding, name))
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self.lib, name)
            function.restype = result
            function.argtypes = arguments
        self.lib.LLVMPY_InitializeNativeTarget()
        self.lib.LLVMPY_InitializeNativeAsmPrinter()
        packed = self.lib.LLVMPY_GetVersionInfo()
        self.version = f"{packed >> 16 & 255}.{packed >> 8 & 255}.{packed & 255}"

    def take_string(self, pointer: c_void_p) -> str:
        """The text of a string the library allocated, which is freed; "" for NULL."""
        if not pointer.value:
            return ""
        text = ctypes.string_at(pointer.value).decode("utf-8", "replace")
        self.lib.LLVMPY_DisposeString(pointer)
        return text

    def text(self, function: str) -> str:
        """Result of a library function whose only argument is the string to fill."""
        out = c_void_p()
        getattr(self.lib, function)(ctypes.byref(out))
        return self.take_string(out)

    def machine_code(
        self, machine: int, ir_text: str, *, verify: bool = False, assembly: bool = False
    ) -> bytes:
        """The object file of `ir_text` for a target machine, or its assembly text.

        Raises InternalError with LLVM's message for IR that is not valid.
        """
        lib, error = self.lib, c_void_p()
        context = lib.LLVMPY_ContextCreate()
        module = buffer = None
        try:
            module = lib.LLVMPY_ParseAssembly(context, ir_text.encode(), ctypes.byref(error))
            if not module:
                self._invalid("parse", error, ir_text)
            if verify and lib.LLVMPY_VerifyModule(module, ctypes.byref(error)):
                self._invalid("verify", error, ir_text)
            buffer = lib.LLVMPY_TargetMachineEmitToMemory(
                machine, module, 0 if assembly else 1, ctypes.byref(error)
            )
            if not buffer:
                self._invalid("generate code for", error, ir_text)
            start, size = lib.LLVMPY_GetBufferStart(buffer), lib.LLVMPY_GetBufferSize(buffer)
            return ctypes.string_at(start, size)
        finally:
            if buffer:
                lib.LLVMPY_DisposeMemoryBuffer(buffer)
            if module:
                lib.LLVMPY_DisposeModule(module)
            lib.LLVMPY_ContextDispose(context)

    def _invalid(self, step: str, error: c_void_p, ir_text: str) -> None:
        # The offending line says more than a whole module; callers attach the module.
        raise InternalError(
            f"LLVM cannot {step} a generated module of {len(ir_text)} characters: "
            f"{self.take_string(error).strip()}"
        )


def library_path() -> str:
    """The file of llvmlite's shared library."""
    spec = importlib.machinery.PathFinder.find_spec("llvmlite")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("numjet compiles through llvmlite; install it: pip install llvmlite")
    name = host.llvm_library_name()
    for folder in spec.submodule_search_locations:
        path = os.path.join(folder, "binding", name)
        if os.path.exists(path):
            return path
    raise InternalError(
        f"llvmlite is installed but {name} is not in its 'binding' folder; "
        "reinstall llvmlite in a version named in pyproject.toml"
    )
