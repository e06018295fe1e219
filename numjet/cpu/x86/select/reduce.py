"""Selection of reductions over the lanes of a vector: halves are put together until one is left.

A family of `select.select`. Sums and products of floats are taken only where they may be
reassociated; others are Unsupported. What would break it: extrema that lose NaN, as the
instructions do (`_nan_if_any`).
"""

from __future__ import annotations

from collections.abc import Callable

from numjet.cpu.x86.back.encode import GPR, OPS
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.instructions import Call, Cast, result_of
from numjet.cpu.x86.front.parse import typed
from numjet.cpu.x86.front.types import (
    GENERAL,
    MASK,
    TYPES,
    VECTOR,
    VECTORS,
    Type,
    Unsupported,
    constant,
)
from numjet.cpu.x86.select.operands import last, mask_word, short, widened
from numjet.cpu.x86.select.select import Selector, intrinsic

_SUMS = {
    "fadd": "vadd", "fmul": "vmul", "fmaximum": "vmax", "fminimum": "vmin",
    "add": "vpadd", "mul": "vpmull", "and": "vpand", "or": "vpor",
    "xor": "vpxor", "smin": "vpmins", "smax": "vpmaxs", "umin": "vpminu", "umax": "vpmaxu",
}  # fmt: skip


@intrinsic("vector.reduce")
def reduced(s: Selector, instruction: Call, parts: list[str]) -> None:
    """llvm.vector.reduce.*; lanes of few bits are widened first, which changes no sum's bits."""
    callee = instruction.callee
    source, x = typed(parts[-1])
    kind = callee.split(".")[3]
    if not 8 <= source.bits < 32 or source.float or source.lanes > 32:
        _reduce(s, instruction, parts)
        return
    words = TYPES[f"<{source.lanes} x i32>"]
    name, type = result_of(instruction)
    asked = Cast("", name, instruction.block, type, x, source)
    wide = widened(s, asked, "zext" if kind[0] == "u" else "sext", words)
    _reduce(s, instruction, [f"{words.text} {wide}"])
    s.flush()
    s.write(s.defs[wide])


def _reduce(s: Selector, instruction: Call, parts: list[str]) -> None:
    """llvm.vector.reduce.*: halves are put together until one lane is left."""
    name, type, callee = instruction.name, instruction.type, instruction.callee
    kind = callee.split(".")[3]
    source, x = typed(parts[-1])
    if source.cls == MASK:
        _reduce_mask(s, instruction, kind, source, x)
        return
    if kind not in _SUMS or source.bits < 32 or source.lanes < 2:
        raise Unsupported(f"{callee}")
    start = None
    if kind in ("fadd", "fmul"):
        if "reassoc" not in instruction.flags:
            raise Unsupported("a sum in order")
        start = typed(parts[0])[1]
        word = _SUMS[kind] + "p" + type.float_suffix[1]
    elif kind in ("fmaximum", "fminimum"):
        word = _SUMS[kind] + "p" + type.float_suffix[1]
    else:
        word = _SUMS[kind] + source.letter
    op = OPS[word]
    d = s.define(name)
    t = s.new(VECTOR)
    if kind in ("fmaximum", "fminimum"):
        if "nsz" not in instruction.flags or (source.parts > 1 and not VECTORS.narrow):
            raise Unsupported("an order of zeros")
        _nan_if_any(s, d, type, source, x)
        s.put(d, (formats.vmove, OPS["vmovaps"], d, t, 0))
    elif start is not None:
        neutral = start[0] != "%" and (
            constant(type, start).splat == (1 << (type.bits - 1)) if kind == "fadd" else False
        )
        if neutral:
            s.put(d, (formats.vmove, OPS["vmovaps"], d, t, 0))
        else:
            last(s, OPS[_SUMS[kind] + type.float_suffix], d, t, type, start)
    else:
        out = OPS["vmovq_r_s" if type.bits == 64 else "vmovd_r_s"]
        s.put(d, (formats.vout, out, t, -1, d, -1, 0, 0, None))
    fold(s, op, t, source, x)


def _nan_if_any(s: Selector, d: int, type: Type, source: Type, x: str) -> None:
    """d = NaN where a lane of x is none: the instructions of extrema lose it."""
    if VECTORS.narrow:
        _nan_by_lanes(s, d, type, source, x)
        return
    any_, k, bit = s.new(MASK), s.new(MASK), s.new(GENERAL)
    nan = (0x7FC00000).to_bytes(4, "little")
    op = OPS["vbroadcastss"]
    if type.bits == 64:
        nan, op = (0x7FF8 << 48).to_bytes(8, "little"), OPS["vpbroadcastq"]
    s.put(d, (formats.v3ct, op, d, -1, nan, any_, 0, 0, 0, None))
    s.put(any_, (formats.v3, OPS["kmovd_r"], any_, -1, bit, -1, 0, 0, None))
    s.put(bit, (formats.gset, GPR["setne"], bit))
    s.emit((formats.vread, OPS["kortestw"], k, -1, k, -1, 0, 0, None))
    y = s.vector(source, x)
    compare = OPS["vcmpp" + type.float_suffix[1]]
    s.put(k, (formats.v3, compare, k, y, y, short(s, source), 0, source.length, 3))


def _nan_by_lanes(s: Selector, d: int, type: Type, source: Type, x: str) -> None:
    """As `_nan_if_any`, with masks that are vectors."""
    mask, bit, unknown = s.new(VECTOR), s.new(GENERAL), s.new(VECTOR)
    nan = (0x7FC00000 if type.bits == 32 else 0x7FF8 << 48).to_bytes(type.bits // 8, "little")
    op = OPS["vblendvps" if type.bits == 32 else "vblendvpd"]
    s.put(d, (formats.v4c, op, d, d, nan.ljust(16, b"\0"), mask, 0, 0, 0, None))
    s.put(mask, (formats.v3, OPS["vmovq_r"], mask, -1, bit, -1, 0, 0, None))
    s.put(bit, (formats.g1t, GPR["neg"], 8, bit, None))
    s.put(bit, (formats.gset, GPR["setne"], bit))
    length = source.length
    ones = (b"\xff" * source.size).ljust(16, b"\0")[: 16 << length]
    s.emit((formats.vreadc, OPS["vptest"], unknown, -1, ones, -1, 0, length, 0, None))
    compare = OPS[f"vcmpp{type.float_suffix[1]}_y"]
    for part in range(source.parts - 1, -1, -1):
        y, m = s.vector(source, x, part), unknown
        if part:
            m, before = s.new(VECTOR), s.new(VECTOR)
            s.put(unknown, (formats.v3, OPS["vpord"], unknown, m, before, -1, 0, length, None))
            unknown = before
        s.put(m, (formats.v3, compare, m, y, y, -1, 0, length, 3))


def _combine(s: Selector, op: object, d: int, x: int, y: int, length: int) -> None:
    """Write d = op(x, y); op: an instruction, or a function that writes several."""
    if callable(op):
        op(s, d, x, y, length)
    else:
        s.put(d, (formats.v3, op, d, x, y, -1, 0, length, None))


def fold(s: Selector, op: object, t: int, source: Type, x: str) -> None:
    """Write `t`, whose first lane is all lanes of `x` put together."""
    bits = source.bits
    width = min(source.size, VECTORS.bytes)
    steps: list[tuple[str, int | None]] = []  # from the last to the first
    if bits == 32:
        steps.append(("vmovshdup", None))
    if width >= 16:
        steps.append(("vpermilpd", 1))
    if width >= 32:
        steps.append(("vextractf32x4_s", 1))
    if width >= 64:
        steps.append(("vextractf64x4_s", 1))
    for word, imm in steps:
        low, high = s.new(VECTOR), s.new(VECTOR)
        length = {"vextractf64x4_s": 1}.get(word, 0)
        _combine(s, op, t, low, high, length)
        if word.endswith("_s"):
            s.put(high, (formats.vout, OPS[word], low, -1, high, -1, 0, length + 1, imm))
        else:
            s.put(high, (formats.v3, OPS[word], high, -1, low, -1, 0, 0, imm))
        t = low
    if source.parts == 1:
        s.put(t, (formats.vmove, OPS["vmovaps"], t, s.vector(source, x), source.length))
    else:
        _halve(s, op, t, source.parts, lambda part: s.vector(source, x, part))


def _halve(
    s: Selector, op: object, t: int, count: int, register: Callable[[int], int]
) -> None:
    """Write t, in which `count` registers are put together, each with the one half of them on."""
    half = count // 2
    if half == 1:
        _combine(s, op, t, register(0), register(1), VECTORS.length)
        return
    made = [s.new(VECTOR) for _ in range(half)]
    _halve(s, op, t, half, lambda part: made[part])
    for part, r in enumerate(made):
        x, y = register(part), register(part + half)
        _combine(s, op, r, x, y, VECTORS.length)


def _reduce_mask(
    s: Selector, instruction: Call, kind: str, source: Type, x: str
) -> None:
    d = s.define(instruction.name)
    if kind not in ("or", "and") or x[0] != "%":
        raise Unsupported(f"reduce.{kind} of bits")
    k = s.need(x)
    lanes = source.lanes
    letter = mask_word(lanes)
    condition = "ne" if kind == "or" else "b"
    if lanes < 8 and kind == "and":
        # Whether a bit differs from its one: what counts ones counts eight.
        t = s.new(MASK)
        s.put(d, (formats.gset, GPR["sete"], d))
        s.emit((formats.vread, OPS["kortestb"], t, -1, t, -1, 0, 0, None))
        ones = s.mask_constant((1 << lanes) - 1, lanes)
        s.put(t, (formats.v3, OPS["kxorb"], t, k, ones, -1, 0, 0, None))
        return
    s.put(d, (formats.gset, GPR["set" + condition], d))
    s.emit((formats.vread, OPS["kortest" + letter], k, -1, k, -1, 0, 0, None))
