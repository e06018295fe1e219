"""Machine code for any processor of the architecture, which refers to nothing but its arguments and
its own variables.

For: code that has to be there when the package is imported, before anybody asks which processor
this is. Such a module is compiled once and kept in the object cache as a linked image, which later
processes map. What would break it: IR that refers to symbols (refused when it is compiled), and
systems other than Linux, where None is the answer: callers stay with Python.
"""

from __future__ import annotations

from ctypes import byref, c_void_p

from numjet.base.errors import InternalError
from numjet.cpu import host
from numjet.cpu.link import link, loader

_FORMAT = 3


def _key(identity: str) -> str:
    """What code is kept under. LLVM is not loaded for it."""
    triple = host.object_machine()
    return host.blake2(f"freestanding {_FORMAT} {triple}\n{identity}".encode()).hex()


def reason() -> str:
    """Why code cannot be mapped here; "" where it can be, as what follows wants."""
    if not host.maps_code():
        return "code is mapped on 64-bit Linux only"
    return "" if host.executes_code() else loader.REFUSED


def load(identity: str) -> dict[str, int] | None:
    """The addresses of the functions and variables built before under `identity`, or None.

    `identity` must name everything that the IR depends on.
    """
    data = link.cache_get(_key(identity))
    if data is None:
        return None
    try:
        image = loader.unpack(data)
    except loader.Malformed as damage:
        link.cache_damaged(_key(identity), damage)
        return None
    try:
        base = loader.place(image, ())
    except loader.CodeRefused:  # no memory: callers stay with Python
        return None
    return {name: base + offset for name, offset in image.exports.items()}


def build(identity: str, ir_text: str) -> None:
    """Compile `ir_text` for later calls of `load`."""
    link.cache_put(_key(identity), _linked(_compile(ir_text)))


def _compile(ir_text: str) -> bytes:
    """An ELF object for any processor of this architecture."""
    library = link._llvm()
    lib, error = library.lib, c_void_p()
    triple = host.object_machine().encode()
    reference = lib.LLVMPY_GetTargetFromTriple(triple, byref(error))
    if not reference:
        raise InternalError(f"no LLVM target for {triple!r}: {library.take_string(error)}")
    target = lib.LLVMPY_CreateTargetMachine(
        reference, triple, b"", b"", 2, b"pic", b"small", 0, 1, b""
    )
    try:
        return library.machine_code(target, ir_text)
    finally:
        lib.LLVMPY_DisposeTargetMachine(target)


def _linked(data: bytes) -> bytes:
    """The image of an object that refers to nothing outside of itself, packed."""
    try:
        image = loader.combine([data])
    except loader.Unsupported as error:
        raise InternalError(f"freestanding code cannot be linked: {error}") from None
    if image.imports:
        raise InternalError(f"freestanding code refers to {list(image.imports)}.")
    return image.pack()
