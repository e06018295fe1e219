"""Which instruction moves lanes as a shuffle asks for: one plan for each register of the result.

For: the selection of `shufflevector`. `plan` looks at lane numbers alone; sources are called 0 and
1, and lane k of source 1 is number n + k. What would break it: lanes of less than a byte.
"""

from __future__ import annotations

from collections.abc import Callable

from numjet.core.memo import remembered

Picks = tuple[int | None, ...]  # None: whatever

# What `plan` answers:
#   ("same", source)
#   ("unary", op, source, imm or None)
#   ("mixed", op, first source, second source, imm or None)
#   ("blend", op, lanes of source 1 as a number)
#   ("table", op, source, bytes): the pattern is the last operand
#   ("lookup", op, source, bytes): the pattern is the first operand, the source the last
#   ("pair", op, bytes): op overwrites source 0 with what the pattern, its first operand, picks of
#       both
Plan = tuple

_FLOATS = {32: "ps", 64: "pd"}
_LETTERS = {8: "b", 16: "w", 32: "d", 64: "q"}
_UNPACK = {
    8: ("vpunpcklbw", "vpunpckhbw"), 16: ("vpunpcklwd", "vpunpckhwd"),
    32: ("vunpcklps", "vunpckhps"), 64: ("vunpcklpd", "vunpckhpd"),
}  # fmt: skip
BROADCAST = {8: "vpbroadcastb", 16: "vpbroadcastw", 32: "vbroadcastss", 64: "vbroadcastsd"}


Planner = tuple[Callable[[Picks, int, int], Plan], Callable[[Picks, int], Plan]]
# Who plans lanes of one register (its number last) and of two, by whether registers are those of
# AVX2 (`avx2.permutes` registers itself).
PLANNERS: dict[bool, Planner] = {}


@remembered("permutations of lanes", 2048)
def plan(picks: Picks, bits: int, narrow: bool = False) -> Plan:
    """How to make lanes `picks` of a register, each of `bits` bits, from one or two."""
    one, two = PLANNERS[narrow]
    n = len(picks)
    known = [pick for pick in picks if pick is not None]
    if not known:
        return ("same", 0)
    if max(known) < n:
        return one(picks, bits, 0)
    if min(known) >= n:
        return one(tuple([None if p is None else p - n for p in picks]), bits, 1)
    return two(picks, bits)


def follows(picks: Picks, wanted: list[int]) -> bool:
    return all(p is None or p == w for p, w in zip(picks, wanted))


def joined(picks: Picks) -> Picks | None:
    """The same picks of lanes twice as wide, if pairs stay together."""
    out: list[int | None] = []
    for low, high in zip(picks[::2], picks[1::2]):
        if low is None and high is None:
            out.append(None)
            continue
        even = low if low is not None else (high or 0) - 1
        if even & 1 or (high is not None and high != even + 1):
            return None
        out.append(even // 2)
    return tuple(out)


def repeated(picks: Picks, per: int) -> list[int | None] | None:
    """The pattern of `per` lanes that every block of as many follows inside itself, or None.

    Lanes of source 1 come out as per + k.
    """
    n = len(picks)
    found: list[int | None] = [None] * per
    for k, pick in enumerate(picks):
        if pick is None:
            continue
        source, lane = divmod(pick, n)
        if lane // per != k // per:
            return None
        inner = lane % per + per * source
        if found[k % per] not in (None, inner):
            return None
        found[k % per] = inner
    return found


def bits_of(pattern: list[int | None], width: int) -> int:
    """An immediate of fields of `width` bits."""
    return sum(((p or 0) & (1 << width) - 1) << width * k for k, p in enumerate(pattern))


def packed(picks: Picks, bits: int) -> bytes:
    return b"".join((p or 0).to_bytes(bits // 8, "little") for p in picks)


def _one(picks: Picks, bits: int, source: int) -> Plan:
    n = len(picks)
    size = n * bits
    if follows(picks, list(range(n))):
        return ("same", source)
    if follows(picks, [0] * n):
        op = "vmovddup" if bits == 64 and size == 128 else BROADCAST[bits]
        return ("unary", op, source, None)
    wider = joined(picks) if bits < 64 else None
    if wider is not None:
        return _one(wider, bits * 2, source)
    per = 128 // bits
    inside = all(p is None or p // per == k // per for k, p in enumerate(picks))
    uniform = repeated(picks, per)
    if bits == 64:
        if inside:
            return ("unary", "vpermilpd", source, bits_of([p and p & 1 for p in picks], 1))
        quarters = repeated(picks, 4)
        if quarters is not None:
            return ("unary", "vpermpd", source, bits_of(quarters, 2))
        blocks = joined(picks)
        if blocks is not None:
            return ("mixed", "vshuff64x2", source, source, bits_of(list(blocks), 2))
    if bits == 32 and uniform is not None:
        return ("unary", "vpermilps", source, bits_of(uniform, 2))
    if bits >= 32:
        by = next((p - k for k, p in enumerate(picks) if p is not None), 0) % n
        if follows(picks, [(k + by) % n for k in range(n)]):
            return ("mixed", "valign" + _LETTERS[bits], source, source, by)
        if inside and bits == 32:
            return ("table", "vpermilps_v", source, packed(picks, 32))
        return ("lookup", "vpermps" if bits == 32 else "vpermpd_v", source, packed(picks, bits))
    if inside:
        step = bits // 8
        table = bytes([((p or 0) * step + k) % 16 for p in picks for k in range(step)])
        return ("table", "vpshufb", source, table)
    return ("lookup", "vperm" + _LETTERS[bits], source, packed(picks, bits))


def _two(picks: Picks, bits: int) -> Plan:
    n = len(picks)
    if follows(tuple(None if p is None else p % n for p in picks), list(range(n))):
        lanes = sum(1 << k for k, p in enumerate(picks) if p is not None and p >= n)
        op = "vblendm" + _FLOATS[bits] if bits >= 32 else "vpblendm" + _LETTERS[bits]
        return ("blend", op, lanes)
    mixed = interleaved(picks, bits)
    if mixed is not None:
        return mixed
    if bits == 64:
        return _two_of_64(picks)
    wider = joined(picks)
    if wider is not None:
        return _two(wider, bits * 2)
    return _aligned(picks, bits) or ("pair", "vpermt2" + (
        _FLOATS[bits] if bits == 32 else _LETTERS[bits]), packed(picks, bits))


def interleaved(picks: Picks, bits: int) -> Plan | None:
    """An unpacking of halves, or a shuffle of both sources that is the same in each 16 bytes."""
    per = 128 // bits
    uniform = repeated(picks, per)
    if uniform is None:
        return None
    for half in range(2):
        for first in range(2):
            start = half * per // 2
            wanted = [start + k // 2 + per * (first ^ k & 1) for k in range(per)]
            if follows(tuple(uniform), wanted):
                return ("mixed", _UNPACK[bits][half], first, 1 - first, None)
    found = _shuffled(tuple(uniform)) if bits == 32 else None
    return None if found is None else ("mixed", "vshufps", *found)


def _shuffled(pattern: Picks) -> tuple[int, int, int] | None:
    """(first, second, imm) where the lower lanes are of one source and the upper of the other."""
    n = len(pattern)
    for first in range(2):
        low, high = pattern[: n // 2], pattern[n // 2 :]
        if all(p is None or p // n == first for p in low) and all(
            p is None or p // n == 1 - first for p in high
        ):
            return first, 1 - first, bits_of(list(pattern), 2)
    return None


def _two_of_64(picks: Picks) -> Plan:
    n = len(picks)
    for first in range(2):
        if all(
            p is None or (p // n == first ^ k & 1 and p % n // 2 == k // 2)
            for k, p in enumerate(picks)
        ):
            return ("mixed", "vshufpd", first, 1 - first, bits_of([p and p & 1 for p in picks], 1))
    blocks = joined(picks)
    if blocks is not None and n == 8:
        found = _shuffled(blocks)
        if found is not None:
            return ("mixed", "vshuff64x2", *found)
    if blocks is not None and n == 4:
        for first in range(2):
            low, high = blocks
            if (low is None or low // 2 == first) and (high is None or high // 2 == 1 - first):
                imm = bits_of([low, high], 1)
                return ("mixed", "vshuff64x2", first, 1 - first, imm)
    return _aligned(picks, 64) or ("pair", "vpermt2pd", packed(picks, 64))


def _aligned(picks: Picks, bits: int) -> Plan | None:
    """The lanes from some place of one source on, continued by the other's."""
    n = len(picks)
    if bits < 32:
        return None
    by = next(p - k for k, p in enumerate(picks) if p is not None) % (2 * n)
    if not follows(picks, [(k + by) % (2 * n) for k in range(n)]):
        return None
    low = by // n
    return ("mixed", "valign" + _LETTERS[bits], 1 - low, low, by % n)


PLANNERS[False] = _one, _two
