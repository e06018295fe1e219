"""Shifts for AVX2 of lanes of one and two bytes by the numbers in other lanes.

For `choices`. There are instructions for lanes of four bytes alone: the upper halves are
computed apart from the lower ones. What would break it: numbers of bits that a lane does not have,
whose result nobody promises.
"""

from __future__ import annotations

from numjet.cpu.x86.back.encode import OPS
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.types import VECTOR, Type
from numjet.cpu.x86.select.select import Selector

_LOW_WORDS, _HIGH_WORDS = b"\xff\xff\0\0", b"\0\0\xff\xff"
_LOW_BYTES, _HIGH_BYTES = b"\xff\0\xff\0", b"\0\xff\0\xff"
_BY_LANES = {"shl": "vpsllvd", "lshr": "vpsrlvd", "ashr": "vpsravd"}


def _three(
    s: Selector, op: str, d: int, x: int, y: int, type: Type, imm: int | None = None
) -> None:
    s.put(d, (formats.v3, OPS[op], d, x, y, -1, 0, type.length, imm))


def _by(s: Selector, op: str, d: int, x: int, type: Type, count: int) -> None:
    s.put(d, (formats.v3s, OPS[op], d, x, type.length, count))


def _only(s: Selector, d: int, x: int, type: Type, mask: bytes) -> None:
    s.put(d, (formats.v3c, OPS["vpandd"], d, x, mask, -1, 0, type.length, 1, None))


def shift_words_by_lanes(s: Selector, op: str, d: int, type: Type, a: str, b: str) -> None:
    """Write d = a shifted by b, of lanes of two bytes."""
    word = _BY_LANES[op]
    for part in range(type.parts):
        x, y = s.vector(type, a, part), s.vector(type, b, part)
        even, odd, low, high = [s.new(VECTOR) for _ in range(4)]
        _three(s, "vpblendw", d + part, even, odd, type, 0xAA)
        upper = s.new(VECTOR) if op == "shl" else x
        _three(s, word, odd, upper, high, type)
        if op == "shl":  # what the lower half loses must not reach the upper one
            _only(s, upper, x, type, _HIGH_WORDS)
        if op == "ashr":
            moved, left = s.new(VECTOR), s.new(VECTOR)
            _three(s, word, even, moved, low, type)
            _by(s, "vpsradi", moved, left, type, 16)
            _by(s, "vpslldi", left, x, type, 16)
        else:
            lower = x if op == "shl" else s.new(VECTOR)
            _three(s, word, even, lower, low, type)
            if op == "lshr":
                _only(s, lower, x, type, _LOW_WORDS)
        _only(s, low, y, type, _LOW_WORDS)
        _by(s, "vpsrldi", high, y, type, 16)


def shift_bytes_by_lanes(s: Selector, op: str, d: int, type: Type, a: str, b: str) -> None:
    """Write d = a shifted by b, of bytes: products with powers of two."""
    left = op == "shl"
    powers = bytes([1 << n if left else 128 >> n for n in range(8)]) + bytes(8)
    for part in range(type.parts):
        x, y = s.vector(type, a, part), s.vector(type, b, part)
        even, odd, factors, table = [s.new(VECTOR) for _ in range(4)]
        low, high, even_factors, odd_factors = [s.new(VECTOR) for _ in range(4)]
        _three(s, "vpord", d + part, even, odd, type)
        moved, upper = s.new(VECTOR), s.new(VECTOR)
        # x·2^n below, and above where it is; or x·2^(7-n) moved by 7, above by 7 and back by 8.
        _only(s, odd, upper, type, _HIGH_BYTES)
        if left:
            _by(s, "vpsllwi", upper, high, type, 8)
        else:
            _by(s, "vpsllwi", upper, high, type, 1)
        _three(s, "vpmullw", high, moved, odd_factors, type)
        _by(s, "vpsrawi" if op == "ashr" else "vpsrlwi", moved, x, type, 8)
        product = low
        if left:
            _only(s, even, low, type, _LOW_BYTES)
        else:
            down = s.new(VECTOR)
            _only(s, even, down, type, _LOW_BYTES)
            _by(s, "vpsrawi" if op == "ashr" else "vpsrlwi", down, low, type, 7)
        lower = s.new(VECTOR)
        _three(s, "vpmullw", product, lower, even_factors, type)
        if op == "ashr":
            t = s.new(VECTOR)
            _by(s, "vpsrawi", lower, t, type, 8)
            _by(s, "vpsllwi", t, x, type, 8)
        else:
            _only(s, lower, x, type, _LOW_BYTES)
        _only(s, even_factors, factors, type, _LOW_BYTES)
        _by(s, "vpsrlwi", odd_factors, factors, type, 8)
        _three(s, "vpshufb", factors, table, y, type)
        every = powers * (type.length + 1)
        s.put(table, (formats.v3c, OPS["vmovups"], table, -1, every, -1, 0, type.length, 0, None))
