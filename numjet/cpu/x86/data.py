"""Constant data of modules: tables of numbers and strings, to bytes."""

from __future__ import annotations

import re

from numjet.cpu.x86.types import TYPES, Unsupported, scalar_bits

_TABLE = re.compile(r"private unnamed_addr constant \[(\d+) x (\w+)\] (.*), align (\d+)$")


def table(text: str) -> tuple[bytes, int]:
    """Bytes and alignment of a global's definition."""
    found = _TABLE.match(text)
    if not found:
        raise Unsupported(f"data {text[:30]}")
    count, element, values, align = found.groups()
    type = TYPES[element]
    if values.startswith('c"'):
        data = re.sub(
            rb"\\([0-9A-Fa-f]{2})", lambda m: bytes([int(m[1], 16)]), values[2:-1].encode()
        )
    elif values == "zeroinitializer":
        data = bytes(int(count) * type.size)
    else:
        if type.bits < 8 or type.element == "ptr":
            raise Unsupported(f"data of {element}")
        items = [item.rpartition(" ")[2] for item in values[1:-1].split(", ")]
        data = b"".join(
            [(scalar_bits(type, item) or 0).to_bytes(type.size, "little") for item in items]
        )
    return data, int(align)
