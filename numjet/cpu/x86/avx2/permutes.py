"""As `select.permutes`, with the instructions of AVX2: a plan for each register of 16 or 32 bytes.

Beside the kinds of `permutes.Plan` there are
  ("both", plan of source 0, plan of source 1, bits of a lane, lanes of source 1 as a number)
  ("choose", bits of a lane, lanes of source 1 as a number): bytes or words of two registers
  ("cross", source, bytes, bytes): bytes of the register and of it with its halves exchanged
What would break it: an instruction that AVX2 does not have, which `encode` refuses.
"""

from __future__ import annotations

from numjet.cpu.x86.select import permutes
from numjet.cpu.x86.select.permutes import Picks, Plan


def _one(picks: Picks, bits: int, source: int) -> Plan:
    n = len(picks)
    if permutes.follows(picks, list(range(n))):
        return ("same", source)
    if permutes.follows(picks, [0] * n):
        op = "vmovddup" if bits == 64 and n == 2 else permutes.BROADCAST[bits]
        return ("unary", op, source, None)
    wider = permutes.joined(picks) if bits < 64 else None
    if wider is not None:
        return _one(wider, bits * 2, source)
    per = 128 // bits
    inside = all(p is None or p // per == k // per for k, p in enumerate(picks))
    if bits == 64:
        if inside:
            return ("unary", "vpermilpd", source, permutes.bits_of([p and p & 1 for p in picks], 1))
        return ("unary", "vpermpd", source, permutes.bits_of(list(picks), 2))
    if bits == 32:
        uniform = permutes.repeated(picks, per)
        if uniform is not None:
            return ("unary", "vpermilps", source, permutes.bits_of(uniform, 2))
        if inside:
            return ("table", "vpermilps_v", source, permutes.packed(picks, 32))
        return ("lookup", "vpermps", source, permutes.packed(picks, 32))
    step = bits // 8
    here, there = bytearray(), bytearray()
    for k, p in enumerate(picks):
        same = p is None or p // per == k // per
        at = [((p or 0) * step + j) % 16 for j in range(step)]
        here += bytes(at if same else [0x80] * step)
        there += bytes([0x80] * step if same else at)
    if inside:
        return ("table", "vpshufb", source, bytes(here))
    return ("cross", source, bytes(here), bytes(there))


def _two(picks: Picks, bits: int) -> Plan:
    n = len(picks)
    chosen = sum(1 << k for k, p in enumerate(picks) if p is not None and p >= n)
    if permutes.follows(tuple([None if p is None else p % n for p in picks]), list(range(n))):
        if bits < 32:
            return ("choose", bits, chosen)
        return ("mixed", "vblendps" if bits == 32 else "vblendpd", 0, 1, chosen)
    found = permutes.interleaved(picks, bits)
    if found is not None:
        return found
    if bits == 64:
        blocks = permutes.joined(picks)
        if blocks is not None and n == 4:
            return ("mixed", "vperm2f128", 0, 1, (blocks[0] or 0) | (blocks[1] or 0) << 4)
        for first in range(2):
            if all(
                p is None or (p // n == first ^ k & 1 and p % n // 2 == k // 2)
                for k, p in enumerate(picks)
            ):
                imm = permutes.bits_of([p and p & 1 for p in picks], 1)
                return ("mixed", "vshufpd", first, 1 - first, imm)
    else:
        wider = permutes.joined(picks)
        if wider is not None:
            return _two(wider, bits * 2)
    low = tuple([p if p is not None and p < n else None for p in picks])
    high = tuple([p - n if p is not None and p >= n else None for p in picks])
    return ("both", _one(low, bits, 0), _one(high, bits, 1), bits, chosen)


permutes.PLANNERS[True] = _one, _two
