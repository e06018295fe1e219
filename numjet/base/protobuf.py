"""Protocol buffers, written and read by hand: fields of numbers, doubles and bytes.

For the options that XLA's plugins read (`xla.options`) and the files of profiles (`api.xspace`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator


def varint(number: int) -> bytes:
    """A number of 64 bits, seven at a time, the lowest first."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """A field that holds a number."""
    return varint(field << 3) + varint(value)


def double(field: int, value: float) -> bytes:
    """A field that holds a float64."""
    return varint(field << 3 | 1) + struct.pack("<d", value)


def block(field: int, data: bytes) -> bytes:
    """A field that holds bytes, text or a message."""
    return varint(field << 3 | 2) + varint(len(data)) + data


def fields(data: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """The fields of a message in their order: (number, value). Raises ValueError where the bytes
    are no message."""
    at, end = 0, len(data)

    def read() -> int:
        nonlocal at
        value = shift = 0
        while True:
            if at >= end or shift > 63:
                raise ValueError("a number of the message does not end.")
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    while at < end:
        key = read()
        kind = key & 7
        if kind == 0:
            yield key >> 3, read()
            continue
        if kind not in (1, 2, 5):
            raise ValueError(f"a field of the message has the unknown kind {kind}.")
        size = read() if kind == 2 else 8 if kind == 1 else 4
        if at + size > end:
            raise ValueError("a field of the message is longer than the message.")
        piece = data[at : at + size]
        at += size
        yield key >> 3, piece if kind == 2 else struct.unpack("<d" if kind == 1 else "<f", piece)[0]


def signed(value: int) -> int:
    """A number of 64 bits as one with a sign."""
    return value - (1 << 64) if value >> 63 else value
