"""An ELF object file for x86-64: one section of code, symbols, relocations.

For: the direct generator; `link.load` reads the result as it reads LLVM's objects. What would break
it: code with writable data (there is no section for it), or that is not position-independent.
Source: System V Application Binary Interface, AMD64 supplement.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")

_CODE, _SYMBOLS, _STRINGS, _RELOCATIONS = 1, 2, 3, 4  # SHT_
_ALLOCATED_CODE = 6  # SHF_ALLOC | SHF_EXECINSTR
_GLOBAL_FUNCTION, _GLOBAL_ANY = 0x12, 0x10  # STB_GLOBAL with STT_FUNC or STT_NOTYPE
_LOCAL_ANY = 0x00  # STB_LOCAL with STT_NOTYPE
_START = ".start"  # the local symbol of the text's first byte
_ABSOLUTE_64 = 1  # R_X86_64_64
_TEXT_INDEX = 1
_ALIGNMENT = 64
_NAMES = b"\0.text\0.rela.text\0.symtab\0.strtab\0.note.GNU-stack\0"


def write(
    text: bytes,
    exports: Iterable[tuple[str, int, int]],
    relocations: Iterable[tuple[int, str]] = (),
    addresses: Iterable[tuple[int, int]] = (),
) -> bytes:
    """The object of `text`, which is aligned to 64 bytes and is both code and constants.

    exports: (name, place, bytes) of its functions. relocations: (place, symbol); the 64-bit address
    of the symbol is wanted there, whether exported here or defined elsewhere. addresses: (place,
    another place of the text, whose address is wanted there).
    """
    strings = bytearray(_NAMES)
    symbols = bytearray(_SYMBOL.size)
    numbers: dict[str, int] = {}

    def symbol(name: str, kind: int, section: int, place: int, size: int) -> int:
        numbers[name] = len(symbols) // _SYMBOL.size
        symbols.extend(_SYMBOL.pack(len(strings), kind, 0, section, place, size))
        strings.extend(name.encode() + b"\0")
        return numbers[name]

    symbol(_START, _LOCAL_ANY, _TEXT_INDEX, 0, 0)
    for name, place, size in exports:
        symbol(name, _GLOBAL_FUNCTION, _TEXT_INDEX, place, size)
    fixes = bytearray()
    for place, name in relocations:
        number = numbers.get(name) or symbol(name, _GLOBAL_ANY, 0, 0, 0)
        fixes += _RELOCATION.pack(place, number << 32 | _ABSOLUTE_64, 0)
    for place, other in addresses:
        fixes += _RELOCATION.pack(place, numbers[_START] << 32 | _ABSOLUTE_64, other)

    out = bytearray(64)
    sections = [bytes(_SECTION.size)]

    def section(
        name: str, kind: int, flags: int, data: bytes | bytearray, link: int, info: int,
        alignment: int, entry: int,
    ) -> None:
        out.extend(bytes(-len(out) % alignment))
        at = _NAMES.index(b"\0" + name.encode() + b"\0") + 1
        sections.append(
            _SECTION.pack(
                at, kind, flags, 0, len(out), len(data), link, info, alignment, entry
            )
        )
        out.extend(data)

    section(".text", _CODE, _ALLOCATED_CODE, text, 0, 0, _ALIGNMENT, 0)
    section(".rela.text", _RELOCATIONS, 0, fixes, 3, _TEXT_INDEX, 8, _RELOCATION.size)
    section(".symtab", _SYMBOLS, 0, symbols, 4, 2, 8, _SYMBOL.size)
    section(".strtab", _STRINGS, 0, strings, 0, 0, 1, 0)
    section(".note.GNU-stack", _CODE, 0, b"", 0, 0, 1, 0)
    out.extend(bytes(-len(out) % 8))
    out[:64] = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 1, 62, 1, 0, 0, len(out), 0, 64, 0, 0,
        _SECTION.size, len(sections), 4,
    )
    for header in sections:
        out += header
    return bytes(out)
