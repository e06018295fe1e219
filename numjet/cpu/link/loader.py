"""ELF objects to code in memory, without LLVM: `combine` links them to one image, `place` maps it.

For: `link` and `freestanding`, on Linux. LLVM's linker takes half a millisecond for a small program
and 50 KB of bookkeeping, and has to be loaded first. An image is bytes that can be kept: sections
laid out, references among them resolved, so that a later process only maps it and fills in the
addresses of what lies outside. What raises Unsupported is left to LLVM's linker. What would break
it: objects that need constructors, thread-local storage or unwinding (there is none: generated code
never throws, and callbacks into Python never unwind through it).
Source: System V ABI, generic and AMD64 supplement; ELF for the Arm 64-bit Architecture.
"""

from __future__ import annotations

import ctypes
import marshal
import struct
from collections.abc import Iterable, Iterator, Sequence

from numjet.base.errors import InternalError
from numjet.base.record import NamedTuple
from numjet.cpu import host

_MAGIC = b"NJIMAGE1"

_RELOCATABLE = 1  # ET_REL
_X86_64, _AARCH64 = 62, 183  # EM_
_SYMBOLS, _RELA, _ZEROS, _REL = 2, 4, 8, 9  # SHT_
_UNWINDING = 0x70000001  # SHT_X86_64_UNWIND
_CONSTRUCTORS = (".ctors", ".dtors", ".init_array", ".fini_array")
_WRITE, _ALLOCATED, _EXECUTABLE, _THREAD_LOCAL = 1, 2, 4, 0x400  # SHF_
_LOCAL, _WEAK = 0, 2  # STB_
_UNDEFINED = 0  # SHN_UNDEF
# R_X86_64_64, _PC32, _PLT32; _GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX
_ABSOLUTE_64, _RELATIVE_32, _CALL_32, _SLOT_32 = 1, 2, 4, (9, 41, 42)
# R_AARCH64_JUMP26, _CALL26; _ADR_PREL_PG_HI21; _ADD_ABS_LO12_NC and _LDST8_ABS_LO12_NC to _LDST64,
# with the bits of the address that instructions leave out.
_ARM_BRANCHES, _ARM_PAGE = (282, 283), 275
_ARM_LOW = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3}
_ARM = {*_ARM_BRANCHES, _ARM_PAGE, *_ARM_LOW}

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_I32, _U32, _U64 = struct.Struct("<i"), struct.Struct("<I"), struct.Struct("<Q")

REFUSED = "the system refuses memory for compiled code: see SELinux, seccomp or memory limits."


class CodeRefused(InternalError):
    """The system gives no memory that code can run in."""


class Malformed(InternalError):
    """Bytes that are no image, or not the one that they should be."""


class Unsupported(Exception):
    """An object that this linker leaves to LLVM's."""


class Image(NamedTuple):
    """Linked code: `written` bytes that code writes to, whole pages, then code and constants.

    words: (place, number of an import or -1, addend): the 8 bytes there are the addend and the
    address of that import, or of the image itself.
    """

    content: bytes
    written: int
    words: Sequence[tuple[int, int, int]]
    imports: Sequence[str]
    exports: dict[str, int]  # name -> offset

    def pack(self) -> bytes:
        """The image as bytes, for `unpack`."""
        fields = [self.content, self.written, self.words, self.imports, self.exports]
        return _MAGIC + marshal.dumps(fields, 2)


def packed(data: bytes) -> bool:
    """Whether these bytes are a packed image (and not an object)."""
    return data.startswith(_MAGIC)


def unpack(data: bytes) -> Image:
    """The image that `Image.pack` wrote. Raises Malformed for anything else."""
    try:
        image = Image(*marshal.loads(memoryview(data)[len(_MAGIC) :]))
        size, count = len(image.content), len(image.imports)
        good = (
            packed(data)
            and type(image.content) is bytes
            and 0 <= image.written <= size
            and all([0 <= at <= size - 8 and -1 <= n < count for at, n, _ in image.words])
            and all([0 <= at <= size for at in image.exports.values()])
            and {str}.issuperset(map(type, (*image.imports, *image.exports)))
        )
    except (EOFError, ValueError, TypeError, AttributeError) as error:
        raise Malformed(error) from None
    if not good:
        raise Malformed("an image whose parts do not fit")
    return image


# -- linking -------------------------------------------------------------------------------


class _Object:
    """One ELF object: its sections, its symbols, and where its sections lie in the image."""

    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\2\1":
            raise Unsupported("not a 64-bit little-endian ELF object")
        kind, self.machine = struct.unpack_from("<HH", data, 16)
        if kind != _RELOCATABLE or self.machine not in (_X86_64, _AARCH64):
            raise Unsupported(f"ELF type {kind} for machine {self.machine}")
        (table,) = struct.unpack_from("<Q", data, 40)
        size, count, names = struct.unpack_from("<HHH", data, 58)
        if size != _SECTION.size or not names < count:
            raise Unsupported("extended numbers of sections")
        self.data = data
        # name, type, flags, address, offset, size, link, info, alignment, entry size
        self.sections = list(_SECTION.iter_unpack(data[table : table + size * count]))
        self.places: dict[int, int] = {}  # section -> offset in the image
        self.symbols: list[tuple[int, int, int, int, int, int]] = []
        self._titles, self._strings = self.sections[names][4], 0
        for section in self.sections:
            if section[1] == _SYMBOLS:
                start, end = section[4], section[4] + section[5]
                # name, binding and type, visibility, section, value, size
                self.symbols = list(_SYMBOL.iter_unpack(data[start:end]))
                self._strings = self.sections[section[6]][4]

    def _text(self, start: int) -> str:
        return self.data[start : self.data.index(b"\0", start)].decode()

    def title(self, number: int) -> str:
        """The name of a section."""
        return self._text(self._titles + self.sections[number][0])

    def name(self, symbol: tuple[int, int, int, int, int, int]) -> str:
        """The name of a symbol."""
        return self._text(self._strings + symbol[0])

    def parts(self) -> Iterator[tuple[int, bool]]:
        """The sections that code needs, and whether it writes to them."""
        for number, section in enumerate(self.sections):
            kind, flags = section[1], section[2]
            if not flags & _ALLOCATED or kind == _UNWINDING or not section[5]:
                continue
            title = self.title(number)
            if (
                title.startswith(_CONSTRUCTORS)
                or flags & _THREAD_LOCAL
                or section[8] > host.PAGE
            ):
                raise Unsupported(f"section {title}")
            if title != ".eh_frame":
                yield number, bool(flags & _WRITE) and not title.startswith(".data.rel.ro")


class _Linker:
    """An image under construction. Behind the sections of all objects stand a stub for each outer
    function that is called, and a slot for each address that is loaded."""

    def __init__(self, objects: list[_Object]) -> None:
        self.content = bytearray()
        self.words: list[tuple[int, int, int]] = []
        self.imports: dict[str, int] = {}
        self._slots: dict[str | int, int] = {}
        self._stubs: dict[str, int] = {}
        parts = [(image, *part) for image in objects for part in image.parts()]
        for image, number, written in parts:
            if written:
                self._lay(image, number)
        self._align(host.PAGE)
        self.written = len(self.content)
        for image, number, written in parts:
            if not written:
                self._lay(image, number)
        self.exports: dict[str, int] = {}
        for image in objects:
            self._define(image)
        for image in objects:
            self._relocate(image)

    def _align(self, size: int) -> None:
        self.content += bytes(-len(self.content) % size)

    def _lay(self, image: _Object, number: int) -> None:
        section = image.sections[number]
        self._align(section[8] or 1)
        image.places[number] = len(self.content)
        start, size = section[4], section[5]
        self.content += bytes(size) if section[1] == _ZEROS else image.data[start : start + size]

    def _define(self, image: _Object) -> None:
        for symbol in image.symbols:
            binding, section = symbol[1] >> 4, symbol[3]
            if binding == _LOCAL or section == _UNDEFINED:
                continue
            name = image.name(symbol)
            if section not in image.places or (name in self.exports and binding != _WEAK):
                raise Unsupported(f"symbol {name}")
            self.exports.setdefault(name, image.places[section] + symbol[4])

    def _relocate(self, image: _Object) -> None:
        """Resolve the references of an object."""
        content, targets = self.content, dict[int, str | int]()
        for section in image.sections:
            first = image.places.get(section[7])
            if section[1] not in (_RELA, _REL) or first is None:
                continue
            if section[1] == _REL:
                raise Unsupported("relocations without addends")
            for offset, info, addend in _RELOCATION.iter_unpack(
                image.data[section[4] : section[4] + section[5]]
            ):
                kind, number, place = info & 0xFFFFFFFF, info >> 32, first + offset
                target = targets.get(number)
                if target is None:
                    target = targets[number] = self._target(image, image.symbols[number])
                if image.machine == _AARCH64:
                    self._relocate_arm(kind, place, target, addend)
                    continue
                if kind == _ABSOLUTE_64:
                    self._word(place, target, addend)
                    continue
                if kind in _SLOT_32:
                    target = self._slot(target)
                elif kind == _CALL_32 and isinstance(target, str):
                    target = self._stub(target)
                elif kind not in (_RELATIVE_32, _CALL_32) or isinstance(target, str):
                    raise Unsupported(f"relocation {kind} to {target}")
                _I32.pack_into(content, place, target + addend - place)

    def _relocate_arm(self, kind: int, place: int, target: str | int, addend: int) -> None:
        """Resolve one reference of an object for ARM: among its own functions and variables."""
        if isinstance(target, str) or kind not in _ARM:
            raise Unsupported(f"relocation {kind} to {target}")
        to = target + addend
        (word,) = _U32.unpack_from(self.content, place)
        if kind in _ARM_BRANCHES:
            word = word & ~0x3FFFFFF | (to - place) >> 2 & 0x3FFFFFF
        elif kind == _ARM_PAGE:  # the image begins with a page
            pages = (to >> 12) - (place >> 12)
            word = word & ~0x60FFFFE0 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
        else:
            word = word & ~0x3FFC00 | (to & 0xFFF) >> _ARM_LOW[kind] << 10
        _U32.pack_into(self.content, place, word)

    def _target(self, image: _Object, symbol: tuple[int, int, int, int, int, int]) -> str | int:
        """Where in the image a symbol lies, or its name where it lies elsewhere."""
        section = symbol[3]
        if symbol[1] >> 4 == _LOCAL and section in image.places:
            return image.places[section] + symbol[4]
        name = image.name(symbol)
        if name in self.exports:
            return self.exports[name]
        if section != _UNDEFINED or symbol[1] >> 4 == _WEAK or not name:
            raise Unsupported(f"symbol {name} in section {section}")
        return name

    def _word(self, place: int, target: str | int, addend: int) -> None:
        if isinstance(target, str):
            number = self.imports.setdefault(target, len(self.imports))
            self.words.append((place, number, addend))
        else:
            self.words.append((place, -1, target + addend))

    def _slot(self, target: str | int) -> int:
        """Where the address of `target` stands."""
        found = self._slots.get(target)
        if found is None:
            self._align(8)
            found = self._slots[target] = len(self.content)
            self.content += bytes(8)
            self._word(found, target, 0)
        return found

    def _stub(self, name: str) -> int:
        """Code that jumps to an outer function, which may be far away."""
        found = self._stubs.get(name)
        if found is None:
            slot = self._slot(name)
            found = self._stubs[name] = len(self.content)
            # jmp [rip + distance], and int3 twice
            self.content += b"\xff\x25" + _I32.pack(slot - found - 6) + b"\xcc\xcc"
        return found


def combine(objects: Iterable[bytes]) -> Image:
    """One image of some objects, which may refer to each other. Raises Unsupported."""
    linker = _Linker([_Object(data) for data in objects])
    content = bytes(linker.content)
    return Image(content, linker.written, linker.words, list(linker.imports), linker.exports)


# -- mapping -------------------------------------------------------------------------------


def place(image: Image, addresses: Sequence[int]) -> int:
    """Where the image lies in memory from now on, its imports being at these addresses.

    `remove` frees it. Raises CodeRefused where the system refuses executable memory.
    """
    content = bytearray(image.content)
    base = host.reserve(max(len(content), 1))
    if base is None:
        raise CodeRefused(REFUSED)
    for where, number, addend in image.words:
        origin = base if number < 0 else addresses[number]
        _U64.pack_into(content, where, origin + addend & 0xFFFFFFFFFFFFFFFF)
    if content:
        ctypes.memmove(base, bytes(content), len(content))
    if not host.make_executable(base + image.written, len(content) - image.written):
        host.unmap(base, len(content))
        raise CodeRefused(REFUSED)
    return base


def remove(base: int, size: int) -> None:
    """Free the memory of an image with so many bytes of content, which `place` returned."""
    host.unmap(base, max(size, 1))
