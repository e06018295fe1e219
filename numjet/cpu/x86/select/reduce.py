"""Selection of reductions over the lanes of a vector: halves are put together until one is left.

A family of `select.select`. Sums and products of floats are taken only where they may be
reassociated; others are Unsupported. What would break it: extrema that lose NaN, as the
instructions do (`_nan_if_any`).
"""

from __future__ import annotations

from numjet.cpu.x86.back.encode import GPR, OPS
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.instructions import Call, Cast, result_of
from numjet.cpu.x86.front.parse import typed
from numjet.cpu.x86.front.types import GENERAL, MASK, TYPES, VECTOR, Type, Unsupported, constant
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
        if "nsz" not in instruction.flags or source.parts > 1:
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
    _fold(s, op, t, source, x)


def _nan_if_any(s: Selector, d: int, type: Type, source: Type, x: str) -> None:
    """d = NaN where a lane of x is none: the instructions of extrema lose it."""
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


def _fold(s: Selector, op: object, t: int, source: Type, x: str) -> None:
    """Write `t`, whose first lane is all lanes of `x` put together."""
    bits = source.bits
    width = min(source.size, 64)
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
        s.put(t, (formats.v3, op, t, low, high, -1, 0, length, None))
        if word.endswith("_s"):
            s.put(high, (formats.vout, OPS[word], low, -1, high, -1, 0, length + 1, imm))
        else:
            s.put(high, (formats.v3, OPS[word], high, -1, low, -1, 0, 0, imm))
        t = low
    parts = [s.vector(source, x, part) for part in range(source.parts)]
    if len(parts) == 1:
        s.put(t, (formats.vmove, OPS["vmovaps"], t, parts[0], source.length))
        return
    if len(parts) > 2:
        raise Unsupported(f"a reduction of {source.parts} registers")
    s.put(t, (formats.v3, op, t, parts[0], parts[1], -1, 0, 2, None))


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
