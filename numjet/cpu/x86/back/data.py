"""Constant data of modules: tables of numbers and strings, to bytes."""

from __future__ import annotations

import re

from numjet.cpu.x86.front.types import TYPES, Unsupported, scalar_bits

_TABLE = "private unnamed_addr constant ["
_ADDRESS, _ADDRESS_END = "i64 ptrtoint (ptr @", " to i64)"


def table(text: str) -> tuple[bytes, int, list[tuple[int, str]]]:
    """Bytes and alignment of a global's definition, and (place, symbol) of addresses in it."""
    addresses = []
    head, _, rest = text.partition("] ")
    values, _, align = rest.rpartition(", align ")
    if not head.startswith(_TABLE) or not align.isdigit():
        raise Unsupported(f"data {text[:30]}")
    count, _, element = head[len(_TABLE) :].partition(" x ")
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
        if "ptrtoint" in values:
            spelled = values[1:-1].split(", ")
            for k, item in enumerate(spelled):
                if item.startswith(_ADDRESS) and item.endswith(_ADDRESS_END):
                    addresses.append((8 * k, item[len(_ADDRESS) : -len(_ADDRESS_END)]))
                    spelled[k] = "i64 0"
            values = f"[{', '.join(spelled)}]"
        items = [item.rpartition(" ")[2] for item in values[1:-1].split(", ")]
        data = b"".join(
            [(scalar_bits(type, item) or 0).to_bytes(type.size, "little") for item in items]
        )
    return data, int(align), addresses
