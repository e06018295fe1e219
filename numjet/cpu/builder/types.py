"""Values, types and constants of LLVM IR text.

For `builder` and its parts; everyone else imports these names from `cpu.builder.builder`. Types are
LLVM's own strings; what they mean is looked up once a string. A constant spelled inexactly would
change results, so floats are written by their bits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from numjet.base.record import NamedTuple
from numjet.core.memo import Memo


class Value(NamedTuple):
    """An SSA name or a constant (`ref`) with its LLVM type (`type`)."""

    ref: str
    type: str


class TypeInfo(NamedTuple):
    """What the type string says. `lanes` is 0 for a scalar; `bits` are those of one element."""

    lanes: int
    element: str
    is_float: bool
    bits: int
    mangled: str


_DOUBLE, _SINGLE = struct.Struct(">d"), struct.Struct("<f")
_FLOATS = {"half": (16, "f16"), "bfloat": (16, "bf16"), "float": (32, "f32"), "double": (64, "f64")}


class _Types(dict):
    """type string -> TypeInfo, filled on demand."""

    def __missing__(self, text: str) -> TypeInfo:
        if text.startswith("<"):
            lanes, _, element = text[1:-1].partition(" x ")
            scalar = self[element]
            info = TypeInfo(
                int(lanes), element, scalar.is_float, scalar.bits, f"v{lanes}{scalar.mangled}"
            )
        elif text in _FLOATS:
            bits, short = _FLOATS[text]
            info = TypeInfo(0, text, True, bits, short)
        elif text == "ptr":
            info = TypeInfo(0, text, False, 64, "p0")
        elif text[0] == "i" and text[1:].isdigit():
            info = TypeInfo(0, text, False, int(text[1:]), text)
        else:
            raise TypeError(f"builder: {text!r} is not a value type this writer knows")
        self[text] = info
        return info


TYPES = _Types()


def vector(element: str, lanes: int) -> str:
    """The type of `lanes` elements; 0 lanes means the scalar itself."""
    return f"<{lanes} x {element}>" if lanes else element


def like(type: str, element: str) -> str:
    """`type` with another element: like("<8 x float>", "i32") is "<8 x i32>"."""
    lanes = TYPES[type].lanes
    return f"<{lanes} x {element}>" if lanes else element


def _float_text(value: float, element: str) -> str:
    """The exact hexadecimal spelling of `value` rounded to `element`."""
    value = float(value)
    if element == "double":
        return "0x" + _DOUBLE.pack(value).hex().upper()
    if element == "float":
        try:
            (value,) = _SINGLE.unpack(_SINGLE.pack(value))
        except OverflowError:
            value = math.copysign(math.inf, value)
        return "0x" + _DOUBLE.pack(value).hex().upper()
    if element == "half":
        try:
            packed = struct.pack("<e", value)
        except OverflowError:
            packed = struct.pack("<e", math.copysign(math.inf, value))
        return f"0xH{struct.unpack('<H', packed)[0]:04X}"
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    if math.isnan(value):
        return "0xR7FC0"
    # bfloat: round the double to 8 significant bits (to nearest, ties to even) at once.
    exponent = max((bits >> 52 & 0x7FF) - 1023, -126)
    if bits >> 52 & 0x7FF == 0x7FF:
        rounded = value
    else:
        scaled = float(round(math.ldexp(value, 7 - exponent)))
        rounded = math.copysign(math.ldexp(scaled, exponent - 7), value)
    try:
        word = struct.unpack("<I", struct.pack("<f", rounded))[0]
    except OverflowError:
        word = 0xFF800000 if value < 0 else 0x7F800000
    return f"0xR{word >> 16:04X}"


class _Constants(Memo):
    """(value, type) -> Value. Zeros of a float type are spelled apart, since -0.0 == 0.0."""

    def __missing__(self, key: tuple) -> Value:
        value, type = key
        info = TYPES[type]
        if info.is_float:
            text = _float_text(value, info.element)
        elif info.element == "ptr":
            if value:
                raise TypeError("builder: the only pointer constant is null (0)")
            text = "null"
        elif info.element == "i1":
            text = "true" if value else "false"
        else:
            text = str(int(value))
        made = Value(f"splat ({info.element} {text})" if info.lanes else text, type)
        if value and not math.isnan(value):
            self[key] = made
        return made


_CONSTANTS = _Constants("constants of generated code", 4096)


def const(value: float | bool, type: str) -> Value:
    """A constant of `type`; every lane of a vector. Floats are rounded to the type and exact."""
    return _CONSTANTS[value, type]


def const_lanes(values: Sequence[float | int | bool], element: str) -> Value:
    """A vector constant with its own value in each lane."""
    inner = ", ".join(f"{element} {const(v, element).ref}" for v in values)
    return Value(f"<{inner}>", f"<{len(values)} x {element}>")


def poison(type: str) -> Value:
    """An unspecified value, for lanes that nobody reads."""
    return Value("poison", type)
