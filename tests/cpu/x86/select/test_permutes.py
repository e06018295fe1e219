"""Plans of shuffles, carried out lane by lane as the manuals define the instructions."""
from __future__ import annotations

import random

import pytest

from numjet.cpu.x86.select.permutes import plan

SIZES = [(lanes, bits) for bits in (8, 16, 32, 64) for lanes in (2, 4, 8, 16, 32, 64)
         if lanes * bits in (128, 256, 512)]


def carry_out(made: tuple, sources: list[list[int]], bits: int) -> list[int]:
    """The bytes of the result; sources are lists of bytes."""
    kind, *rest = made
    size = len(sources[0])
    if kind == "same":
        return sources[rest[0]]
    if kind == "blend":
        step = bits // 8
        return [sources[rest[1] >> k // step & 1][k] for k in range(size)]
    op = rest[0]
    width = 8 if op.endswith(("64x2", "pd", "sd", "dq", "valignq", "pd_v", "dup")) else 4
    width = {"b": 1, "w": 2}.get(op[-1], width) if op[:5] in ("vperm", "vpbro", "vpshu") else width
    width = {"bw": 1, "wd": 2, "dq": 4}.get(op[-2:], width) if op.startswith("vpunp") else width
    cut = [[tuple(s[k : k + width]) for k in range(0, size, width)] for s in sources]
    n, per = size // width, 16 // width
    if kind == "unary":
        x, imm = cut[rest[1]], rest[2]
        if imm is None:
            out = [x[0]] * n
        elif op == "vpermilps":
            out = [x[k // 4 * 4 + (imm >> 2 * (k % 4) & 3)] for k in range(n)]
        elif op == "vpermilpd":
            out = [x[k // 2 * 2 + (imm >> k & 1)] for k in range(n)]
        elif op == "vpermpd":
            out = [x[k // 4 * 4 + (imm >> 2 * (k % 4) & 3)] for k in range(n)]
    elif kind == "mixed":
        x, y, imm = cut[rest[1]], cut[rest[2]], rest[3]
        if "unpck" in op:
            start = per // 2 if "unpckh" in op else 0
            out = [(x, y)[k & 1][k // per * per + start + k % per // 2] for k in range(n)]
        elif op == "vshufps":
            out = [(x, y)[k % 4 // 2][k // 4 * 4 + (imm >> 2 * (k % 4) & 3)] for k in range(n)]
        elif op == "vshufpd":
            out = [(x, y)[k & 1][k // 2 * 2 + (imm >> k & 1)] for k in range(n)]
        elif op.startswith("valign"):
            out = (y + x)[imm : imm + n]
        elif op == "vshuff64x2":
            blocks = n // 2
            field = blocks.bit_length() - 1
            chosen = [imm >> field * b & blocks - 1 for b in range(blocks)]
            out = [(x, y)[b >= blocks // 2][2 * chosen[b] + k] for b in range(blocks)
                   for k in range(2)]
    else:
        table = rest[-1]
        numbers = [int.from_bytes(table[k : k + width], "little") for k in range(0, size, width)]
        if kind == "pair":
            out = [(cut[0] + cut[1])[k] for k in numbers]
        elif kind == "lookup":
            out = [cut[rest[1]][k] for k in numbers]
        else:
            out = [cut[rest[1]][k // per * per + at % per] for k, at in enumerate(numbers)]
    return [byte for lane in out for byte in lane]


def patterns(n: int, rng: random.Random):
    """Lanes as programs ask for them, and any."""
    yield from ([k] * n for k in (0, n - 1, n))
    yield list(range(n))
    yield list(range(n, 2 * n))
    yield list(reversed(range(n)))
    for by in range(2 * n):
        yield [(k + by) % (2 * n) for k in range(n)]
        yield [(k + by) % n for k in range(n)]
        yield [max(k - by, 0) for k in range(n)]
        yield [n if k < by else k - by for k in range(n)]
        yield [min(k + by, n) for k in range(n)]
    for run in (1, 2, 4, 8):
        if run < n:
            for start in (0, run):
                for second in (n, 0):
                    yield [k // (2 * run) * 2 * run + start + k % run + second * (k // run % 2)
                           for k in range(n)]
    for start in (0, n // 2):
        yield [start + k // 2 + n * (k % 2) for k in range(n)]
    yield [2 * k for k in range(n)]
    yield [2 * k + 1 for k in range(n)]
    for _ in range(200):
        inside = rng.choice([2, 4, 8, n])
        yield [rng.choice([0, n]) + k // inside * inside % n + rng.randrange(min(inside, n))
               if inside <= n else k for k in range(n)]
        yield [rng.randrange(n) for _ in range(n)]
        yield [k + rng.choice([0, n]) for k in range(n)]


@pytest.mark.parametrize("n, bits", SIZES)
def test_plans_pick_what_was_asked_for(n, bits):
    rng = random.Random(n * bits)
    step = bits // 8
    first = list(range(n * step))
    sources = [first, [100 + k for k in first]]
    lanes = [tuple(s[k : k + step]) for s in sources for k in range(0, n * step, step)]
    kinds = set()
    for wanted in patterns(n, rng):
        wanted = [k if 0 <= k < 2 * n else 0 for k in wanted]
        for holes in (0, 0.3):
            picks = tuple(None if rng.random() < holes else k for k in wanted)
            made = plan(picks, bits)
            kinds.add(made[0])
            found = carry_out(made, sources, bits)
            for k, pick in enumerate(picks):
                if pick is not None:
                    assert tuple(found[k * step : k * step + step]) == lanes[pick], (picks, made)
    assert {"same", "blend", "mixed", "unary"} <= kinds


def test_common_shuffles_are_one_cheap_instruction():
    def op(picks, bits):
        return plan(tuple(picks), bits)[1]

    assert op([0] * 16, 32) == "vbroadcastss"
    assert op([0, 8, 2, 10, 4, 12, 6, 14], 64) == "vunpcklpd"
    assert op([0, 9, 2, 11, 4, 13, 6, 15], 64) == "vblendmpd"
    assert op([0, 1, 8, 9, 4, 5, 12, 13], 64) == "vpermt2pd"
    assert op([0, 1, 2, 3, 8, 9, 10, 11], 64) == "vshuff64x2"
    assert op(range(1, 17), 32) == "valignd"
    assert op([k ^ 1 for k in range(16)], 32) == "vpermilps"
    assert op([k ^ 1 for k in range(8)], 64) == "vpermilpd"
    assert op([3, 2, 1, 0, 7, 6, 5, 4], 64) == "vpermpd"
    assert op([k ^ 3 for k in range(16)], 8) == "vpshufb"
