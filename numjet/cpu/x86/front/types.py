"""Types and constants of the IR text, as the generator sees them: which registers hold them.

For: every file of this package. What would break it: a spelling of a constant that LLVM reads
otherwise; `tests/cpu/x86` compares both generators on the emitters' programs.
"""

from __future__ import annotations

import struct

from numjet.core.memo import remembered


class Unsupported(Exception):
    """The text holds something that only LLVM compiles; what it is, for those who count."""


GENERAL, VECTOR, MASK = 0, 1, 2  # register classes


class Vectors:
    """The vector registers that code is generated for: 32 of 64 bytes, or 16 of 32 (AVX2).

    `narrow` says that they are the latter: instructions have VEX encodings, there are no registers
    of masks. Types depend on it: `use` forgets those of lanes.
    """

    __slots__ = ("bits", "bytes", "count", "length", "narrow")

    def __init__(self) -> None:
        self.set(64)

    def set(self, size: int) -> None:
        self.bytes, self.bits = size, 8 * size
        self.narrow = size == 32
        self.count, self.length = (16, 1) if self.narrow else (32, 2)


VECTORS = Vectors()


def use(size: int) -> None:
    """Generate for registers of so many bytes from now on."""
    if size != VECTORS.bytes:
        VECTORS.set(size)
        for text in [text for text in TYPES if text[0] == "<"]:
            del TYPES[text]

_BITS = {"float": 32, "double": 64, "half": 16, "bfloat": 16, "ptr": 64}
_LETTER = {8: "b", 16: "w", 32: "d", 64: "q"}


class Type:
    """A first-class type. `parts` registers of class `cls` hold a value, the last one in full.

    length: 0, 1, 2 for vector registers of 16, 32, 64 bytes; `lanes` is 0 for scalars.
    """

    __slots__ = (
        "bits", "cls", "element", "float", "float_suffix", "lanes", "length", "letter", "parts",
        "size", "text", "width",
    )  # fmt: skip

    def __init__(self, text: str, element: str, lanes: int) -> None:
        self.text, self.element, self.lanes = text, element, lanes
        self.float = element in ("float", "double", "half", "bfloat")
        self.bits = _BITS.get(element) or int(element[1:])
        if not self.float and self.bits not in (1, 8, 16, 32, 64):
            raise Unsupported(f"type {text}")
        total = self.bits * max(lanes, 1)
        self.size = max(total // 8, 1)
        self.parts = max(1, total // VECTORS.bits)
        self.length = 0 if total <= 128 else 1 if total == 256 or VECTORS.narrow else 2
        if lanes and (lanes & (lanes - 1) or (self.bits == 1 and lanes > 64)):
            raise Unsupported(f"type {text}")
        self.cls = GENERAL
        if lanes and self.bits == 1:
            self.cls, self.parts, self.length = MASK, 1, 0
        elif lanes or self.float:
            self.cls = VECTOR
        self.letter = _LETTER.get(self.bits, "b")
        scalar = "s" if not lanes else "p"
        self.float_suffix = scalar + ("d" if self.bits == 64 else "s")
        self.width = 64 if self.bits == 64 else 32  # of instructions on general registers


class _Types(dict):
    def __missing__(self, text: str) -> Type:
        element, lanes = text, 0
        if text[0] == "<":
            count, _, element = text[1:-1].partition(" x ")
            lanes = int(count) if count.isdigit() else 0
        if (
            (lanes == 0) == (text[0] == "<")
            or (element not in _BITS and not (element[:1] == "i" and element[1:].isdigit()))
        ):  # fmt: skip
            raise Unsupported(f"type {text[:40]}")
        made = self[text] = Type(text, element, lanes)
        return made


TYPES: dict[str, Type] = _Types()
PTR = TYPES["ptr"]


class Constant:
    """Bits of each lane (None: unspecified); `splat` is the one all lanes share, or None."""

    __slots__ = ("lanes", "splat")

    def __init__(self, lanes: tuple[int | None, ...], alike: bool = False) -> None:
        self.lanes = lanes
        if alike:
            self.splat: int | None = lanes[0] or 0
            return
        known = {lane for lane in lanes if lane is not None} or {0}
        self.splat = known.pop() if len(known) == 1 else None

    def packed(self, bits: int) -> bytes:
        """The lanes as they lie in memory."""
        size = bits // 8
        if self.splat is not None and None not in self.lanes:
            return self.splat.to_bytes(size, "little") * len(self.lanes)
        return b"".join([(lane or 0).to_bytes(size, "little") for lane in self.lanes])

    def mask(self) -> int:
        """Lanes of one bit as a number."""
        return sum(1 << k for k, lane in enumerate(self.lanes) if lane)


def scalar_bits(type: Type, text: str) -> int | None:
    """The bits of a scalar constant, zero-extended; None for an unspecified one."""
    bits = type.bits
    if text[:2] == "0x" and type.float:
        if text[2] in "HR":
            return int(text[3:], 16)
        double = int(text, 16)
        if bits == 64:
            return double
        if bits == 32:
            return _narrow(double)
        raise Unsupported(f"constant {type.text} {text}")
    if text in ("poison", "undef"):
        return None
    if text in ("null", "false", "zeroinitializer"):
        return 0
    if text == "true":
        return 1
    if not type.float:
        return int(text) & ((1 << bits) - 1)
    value = float(text)
    if bits == 16:
        raise Unsupported(f"constant {type.text} {text}")
    form = ("<d", "<Q") if bits == 64 else ("<f", "<I")
    return struct.unpack(form[1], struct.pack(form[0], value))[0]


def _narrow(double: int) -> int:
    """A float's bits from those of the double that spells it (payloads of NaNs kept)."""
    exponent = (double >> 52 & 0x7FF) - 896
    if 0 < exponent < 255 and not double & 0x1FFFFFFF:
        return double >> 63 << 31 | exponent << 23 | double >> 29 & 0x7FFFFF
    if double >> 52 & 0x7FF == 0x7FF and double & ((1 << 52) - 1):
        return (double >> 63) << 31 | 0x7F800000 | (double >> 29 & 0x7FFFFF)
    value = struct.unpack("<d", double.to_bytes(8, "little"))[0]
    return struct.unpack("<I", struct.pack("<f", value))[0]


def _lanes(type: Type, text: str) -> Constant:
    scalar = TYPES[type.element]
    if text[0] == "<":
        items = [item.partition(" ")[2] for item in text[1:-1].split(", ")]
        return Constant(tuple([scalar_bits(scalar, item) for item in items]))
    if text.startswith("splat ("):
        text = text[7:-1].partition(" ")[2]
    return Constant((scalar_bits(scalar, text),) * type.lanes, True)


@remembered("constants of machine code", 4096)
def constant(type: Type, text: str) -> Constant:
    """What a constant operand of the text means."""
    try:
        if not type.lanes:
            return Constant((scalar_bits(type, text),), True)
        return _lanes(type, text)
    except ValueError:
        raise Unsupported(f"constant {text[:40]}") from None


def signed(value: int, bits: int) -> int:
    """An unsigned number's two's complement reading."""
    return value - (1 << bits) if value >> (bits - 1) & 1 else value
