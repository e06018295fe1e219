"""Machine code that needs no linker: functions that refer to nothing but their arguments.

For: code that has to be there when the package is imported, where loading LLVM would cost more than
the import. Such a module is compiled once, for any processor of the architecture, and kept in the
object cache as a table of its functions and their bytes; a later process maps these bytes as they
are. What would break it: IR that refers to symbols or constants in memory (refused when it is
compiled), and systems other than Linux, where None is the answer and callers stay with Python.
"""

from __future__ import annotations

import hashlib
import struct
from ctypes import byref, c_void_p

from numjet.base.errors import InternalError
from numjet.cpu import link, platform

_FORMAT = 1
_ALLOCATED = 2  # SHF_ALLOC
_RELOCATIONS = (4, 9)  # SHT_RELA, SHT_REL
_SYMBOLS = 2  # SHT_SYMTAB
_FUNCTION = 2  # STT_FUNC


def _key(identity: str) -> str:
    """What code is kept under. LLVM is not loaded for it."""
    triple = platform.freestanding_triple()
    state = hashlib.sha256(f"freestanding {_FORMAT} {triple}\n".encode())
    state.update(identity.encode())
    return state.hexdigest()


def supported() -> bool:
    """Whether code can be mapped here."""
    return platform.freestanding_triple() is not None


def load(identity: str) -> dict[str, int] | None:
    """The addresses of the functions built before under `identity`, or None.

    `identity` must name everything that the IR depends on.
    """
    data = link.cache_get(_key(identity)) if supported() else None
    return None if data is None else _map(data)


def build(identity: str, ir_text: str) -> None:
    """Compile `ir_text` for later calls of `load`."""
    if supported():
        link.cache_put(_key(identity), _extract(_compile(ir_text)))


def _compile(ir_text: str) -> bytes:
    """An ELF object for any processor of this architecture."""
    library = link._llvm()
    lib, error = library.lib, c_void_p()
    triple = (platform.freestanding_triple() or "").encode()
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


def _extract(image: bytes) -> bytes:
    """The code of an ELF object with its functions' offsets: lines of text, a zero byte, bytes.

    Raises InternalError when the code refers to anything outside of itself.
    """
    if image[:6] != b"\x7fELF\x02\x01":
        raise InternalError("expected a 64-bit little-endian ELF object.")
    (table,) = struct.unpack_from("<Q", image, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", image, 0x3A)
    # name, type, flags, address, offset, size, link, info
    sections = [struct.unpack_from("<IIQQQQII", image, table + i * size) for i in range(count)]

    def name(offset: int, strings: int) -> str:
        start = sections[strings][4] + offset
        return image[start : image.index(b"\0", start)].decode()

    named = [name(section[0], names_at) for section in sections]
    text = named.index(".text")
    for section, title in zip(sections, named, strict=True):
        own = title in (".text", ".eh_frame") or not section[5]
        if section[2] & _ALLOCATED and not own:
            raise InternalError(f"freestanding code has a section {title}.")
        if section[1] in _RELOCATIONS and section[7] == text:
            raise InternalError("freestanding code refers to symbols.")
    symbols = sections[[section[1] for section in sections].index(_SYMBOLS)]
    lines = []
    for at in range(symbols[4], symbols[4] + symbols[5], 24):
        label, info, _, where, offset, _ = struct.unpack_from("<IBBHQQ", image, at)
        if info & 15 == _FUNCTION and where == text:
            lines.append(f"{name(label, symbols[6])} {offset}")
    start = sections[text][4]
    return "\n".join(lines).encode() + b"\0" + image[start : start + sections[text][5]]


def _map(data: bytes) -> dict[str, int] | None:
    """Addresses of the functions; None where the system refuses executable memory. Never freed."""
    lines, _, code = data.partition(b"\0")
    base = platform.map_code(code)
    if base is None:
        return None
    addresses = {}
    for line in lines.decode().splitlines():
        function, offset = line.split()
        addresses[function] = base + int(offset)
    return addresses
