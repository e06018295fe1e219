"""Products and shifts of lanes of one byte, which have no instructions: by lanes of two bytes.

For: `arithmetic`. The upper byte of each pair is computed apart from the lower one, and both are
put together; shifts by one number move all bits and mask what came from the neighbour.
"""

from __future__ import annotations

from numjet.cpu.x86.back.encode import OPS
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.types import VECTOR, Type, constant
from numjet.cpu.x86.select.select import Selector

_LOW, _HIGH = b"\xff\0\xff\0", b"\0\xff\0\xff"
# vpternlog's tables where the third operand is a mask: the first operand there and the second
# elsewhere; the first there, with all of the second added by `or` and by `xor`.
_CHOOSE, _ADD, _TURN = 0xE4, 0xEC, 0x6C
_SHIFTS = {"shl": ("vpsllwi", "vpsllvw"), "lshr": ("vpsrlwi", "vpsrlvw"), "ashr": ("", "vpsravw")}


def product(s: Selector, d: int, type: Type, a: str, b: str) -> None:
    """Write d = a·b."""
    for part in range(type.parts):
        x, y = s.vector(type, a, part), s.vector(type, b, part)
        odd, up, other = s.new(VECTOR), s.new(VECTOR), s.new(VECTOR)
        _join(s, d + part, odd, type, _ADD)
        _two(s, "vpmullw", d + part, x, y, type)
        _two(s, "vpmullw", odd, up, other, type)
        _by(s, "vpsrlwi", up, x, type, 8)
        _masked(s, other, y, type, _HIGH)


def shift(s: Selector, op: str, d: int, type: Type, a: str, b: str) -> None:
    """Write d = a shifted by b, a constant of equal lanes or lanes of numbers."""
    count = constant(type, b).splat if b[0] != "%" else None
    for part in range(type.parts):
        if count is None:
            _by_lanes(s, op, d + part, type, s.vector(type, a, part), s.vector(type, b, part))
        else:
            _by_number(s, op, d + part, type, s.vector(type, a, part), min(count, 8))


def _by_number(s: Selector, op: str, d: int, type: Type, x: int, count: int) -> None:
    left = bytes([0xFF << count & 0xFF if op == "shl" else 0xFF >> count]) * 4
    moved = s.new(VECTOR)
    if op != "ashr":
        _masked(s, d, moved, type, left)
        _by(s, _SHIFTS[op][0], moved, x, type, count)
        return
    # Without sign first; then the sign bit, where it is now, is subtracted twice.
    signs, length = s.new(VECTOR), type.length
    _two(s, "vpsubb", d, moved, signs, type)
    s.put(moved, (formats.v3ct, OPS["vpternlogd"], moved, signs, left, -1, 0, length, 1, _TURN))
    _by(s, "vpsrlwi", moved, x, type, count)
    sign = bytes([0x80 >> count]) * 4
    s.put(signs, (formats.v3c, OPS["vpbroadcastd"], signs, -1, sign, -1, 0, length, 0, None))


def _by_lanes(s: Selector, op: str, d: int, type: Type, x: int, y: int) -> None:
    odd, low, high = s.new(VECTOR), s.new(VECTOR), s.new(VECTOR)
    even, upper = s.new(VECTOR), x
    word = _SHIFTS[op][1]
    _join(s, d, odd, type, _CHOOSE)
    if op == "shl":
        even, upper = x, s.new(VECTOR)
    _two(s, word, d, even, low, type)
    _two(s, word, odd, upper, high, type)
    if op == "shl":  # what the lower byte loses must not reach the upper one
        _masked(s, upper, x, type, _HIGH)
    elif op == "lshr":
        _masked(s, even, x, type, _LOW)
    else:
        left = s.new(VECTOR)
        _by(s, "vpsrawi", even, left, type, 8)
        _by(s, "vpsllwi", left, x, type, 8)
    _masked(s, low, y, type, _LOW)
    _by(s, "vpsrlwi", high, y, type, 8)


def _join(s: Selector, d: int, odd: int, type: Type, table: int) -> None:
    """Write d = d in lower bytes with `odd`."""
    op = OPS["vpternlogd"]
    s.put(d, (formats.v3ct, op, d, odd, _LOW, -1, 0, type.length, 1, table))


def _two(s: Selector, op: str, d: int, x: int, y: int, type: Type) -> None:
    s.put(d, (formats.v3, OPS[op], d, x, y, -1, 0, type.length, None))


def _by(s: Selector, op: str, d: int, x: int, type: Type, count: int) -> None:
    s.put(d, (formats.v3s, OPS[op], d, x, type.length, count))


def _masked(s: Selector, d: int, x: int, type: Type, mask: bytes) -> None:
    s.put(d, (formats.v3c, OPS["vpandd"], d, x, mask, -1, 0, type.length, 1, None))
