"""Selection of conversions: widths of integers and floats, floats to integers and back, bits.

A family of `select.select`; casts between general registers stand in `select.scalar`. Values of
several registers are widened and narrowed part by part. What would break it: a conversion of floats
to integers that does not saturate where the operation says that it does.
"""

from __future__ import annotations

import struct

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
    Constant,
    Type,
    Unsupported,
    constant,
)  # fmt: skip
from numjet.cpu.x86.select.operands import (
    extend,
    join_masks,
    last,
    mask_word,
    part_mask,
    short,
    widened,
)
from numjet.cpu.x86.select.select import Selector, handles, intrinsic


@handles("trunc", "zext", "sext", "ptrtoint", "inttoptr", classes=(VECTOR, MASK))
def whole(s: Selector, instruction: Cast) -> None:
    """Casts between lanes of integers."""
    op, name, _, type, x, source = instruction
    if op in ("ptrtoint", "inttoptr"):
        raise Unsupported(f"{op} of vectors")
    if source.cls == MASK:
        _from_mask(s, op, name, type, x, source)
    elif type.cls == MASK:
        d = s.define(name)
        for part, piece in enumerate(join_masks(s, d, source, source.parts)):
            k = short(s, source)
            last(s, OPS["vptestm" + source.letter], piece, s.vector(source, x, part), source,
                 f"splat ({source.element} 1)", part, k)
    elif op == "trunc":
        _narrow(s, name, type, x, source)
    else:
        _widen(s, op, name, type, x, source)


def _from_mask(s: Selector, op: str, name: str, type: Type, x: str, source: Type) -> None:
    d = s.define(name)
    k0 = s.mask(source, x)
    for part in range(type.parts):
        k = part_mask(s, k0, type, part)
        if op == "sext":
            s.put(d + part, (formats.v3, OPS["vpmovm2" + type.letter], d + part, -1, k, -1, 0,
                             type.length, None))
        elif type.bits >= 32:
            data = (1).to_bytes(type.bits // 8, "little")
            word = OPS["vpbroadcastd" if type.bits == 32 else "vpbroadcastq"]
            s.put(d + part, (formats.v3c, word, d + part, -1, data, k, 1, type.length, 0, None))
        else:
            word = OPS["vpbroadcast" + type.letter]
            data = (1).to_bytes(type.bits // 8, "little")
            s.put(d + part, (formats.v3c, word, d + part, -1, data, k, 1, type.length, 0, None))


def _widen(s: Selector, op: str, name: str, type: Type, x: str, source: Type) -> None:
    word = f"vpmov{op[0]}x{source.letter}{type.letter}"
    _widening(s, OPS[word], name, type, x, source)


def _widening(s: Selector, op: object, name: str, type: Type, x: str, source: Type) -> None:
    """An instruction that reads fewer bytes than it makes."""
    d = s.define(name)
    # An instruction that makes 16 bytes reads what they are made of: more than shorter ones have.
    load = s.foldable(x) if x[0] == "%" and type.size >= 16 else None
    unit = min(type.size, VECTORS.bytes) * source.bits // type.bits
    for part in range(type.parts):
        if load is not None:
            base, index, scale, disp = s.address(load.pointer)
            where = (base, index, scale, disp + unit * part)
            s.put(d + part, (formats.v3m, op, d + part, -1, where, -1, 0, type.length, 0, None))
            continue
        whole_, rest = divmod(unit * part, VECTORS.bytes)
        y = s.vector(source, x, whole_)
        if rest:
            t = s.new(VECTOR)
            if unit == 32:
                extract, imm = OPS["vextracti64x4_s"], 1
            else:
                extract, imm = OPS["vextracti32x4_s"], rest // 16
            length = source.length
            u = t
            if rest % 16:  # a piece of 16 bytes
                u = s.new(VECTOR) if imm else y
                s.later(t, (formats.v3s, OPS["vpsrldqi"], t, u, 0, rest % 16))
            if imm:
                s.later(u, (formats.vout, extract, y, -1, u, -1, 0, length, imm))
            y = t
        s.put(d + part, (formats.v3, op, d + part, -1, y, -1, 0, type.length, None))


def _narrow(s: Selector, name: str, type: Type, x: str, source: Type) -> None:
    _gather(s, OPS[f"vpmov{source.letter}{type.letter}_s"], name, type, x, source, True, None)


def _gather(
    s: Selector, op: object, name: str, type: Type, x: str, source: Type, out: bool,
    imm: int | None,
) -> None:
    """An instruction that makes fewer bytes than it reads; pieces are put together."""
    d = s.define(name)
    if source.parts == 1:
        _narrow_part(s, op, d, s.vector(source, x), source.length, out, imm)
        return
    ratio = source.bits // type.bits
    if source.parts == ratio == 2 or (type.parts > 1 and ratio == 2):
        for k in range(type.parts):
            low, high = s.new(VECTOR), s.new(VECTOR)
            s.put(d + k, (formats.v3, OPS["vinsertf64x4"], d + k, low, high, -1, 0, 2, 1))
            _narrow_part(s, op, high, s.vector(source, x, 2 * k + 1), 2, out, imm)
            _narrow_part(s, op, low, s.vector(source, x, 2 * k), 2, out, imm)
        return
    if source.parts == 2 and type.size == 16:
        low, high = s.new(VECTOR), s.new(VECTOR)
        s.put(d, (formats.v3, OPS["vmovlhps"], d, low, high, -1, 0, 0, None))
        _narrow_part(s, op, high, s.vector(source, x, 1), 2, out, imm)
        _narrow_part(s, op, low, s.vector(source, x, 0), 2, out, imm)
        return
    if source.parts == 2 and type.size == 32:
        low, high = s.new(VECTOR), s.new(VECTOR)
        s.put(d, (formats.v3, OPS["vinsertf32x4"], d, low, high, -1, 0, 1, 1))
        _narrow_part(s, op, high, s.vector(source, x, 1), 2, out, imm)
        _narrow_part(s, op, low, s.vector(source, x, 0), 2, out, imm)
        return
    raise Unsupported(f"a cast of {source.text} to {type.text}")


def _narrow_part(
    s: Selector, op: object, d: int, x: int, length: int, out: bool, imm: int | None
) -> None:
    if out:
        s.put(d, (formats.vout, op, x, -1, d, -1, 0, length, imm))
    else:
        s.put(d, (formats.v3, op, d, -1, x, -1, 0, length, imm))


@handles("bitcast")
def bitcast(s: Selector, instruction: Cast) -> None:
    _, name, _, type, x, source = instruction
    if x[0] != "%":
        _cast_constant(s, name, type, constant(source, x), source)
        return
    if (type.cls, source.cls) in ((MASK, GENERAL), (GENERAL, MASK)):
        _bits(s, name, type, x, source)
        return
    if type.cls == source.cls:
        if type.cls == MASK:
            raise Unsupported("a cast of bits")
        d = s.define(name)
        if s.tie(x, d):
            return
        s.wish(x, d)
        y = s.need(x)
        for part in range(type.parts):
            if type.cls == GENERAL:
                s.put(d, (formats.gmove, GPR["mov"], 8, d, y))
            else:
                s.put(d + part, (formats.vmove, OPS["vmovaps"], d + part, y + part, type.length))
        return
    d = s.define(name)
    y = s.need(x)
    if type.bits == 16 and source.bits == 16 or type.size in (4, 8):
        wide = type.size == 8
        if type.cls == VECTOR and source.cls == GENERAL:
            s.put(d, (formats.v3, OPS["vmovq_r" if wide else "vmovd_r"], d, -1, y, -1, 0, 0, None))
            return
        if type.cls == GENERAL and source.cls == VECTOR:
            op = OPS["vmovq_r_s" if wide else "vmovd_r_s"]
            s.put(d, (formats.vout, op, y, -1, d, -1, 0, 0, None))
            return
    raise Unsupported(f"bitcast of {source.text} to {type.text}")


def _cast_constant(s: Selector, name: str, type: Type, value: Constant, source: Type) -> None:
    if MASK in (type.cls, source.cls) or min(type.bits, source.bits) < 8:
        raise Unsupported(f"bitcast of {source.text} to {type.text}")
    data, size = value.packed(source.bits), type.bits // 8
    lanes = [int.from_bytes(data[k : k + size], "little") for k in range(0, len(data), size)]
    d = s.define(name)
    if type.cls == GENERAL:
        s.put(d, (formats.gconst, d, lanes[0]))
        return
    for part in range(type.parts):
        s.fill(d + part, type, Constant(tuple(lanes)), part, s.put)


def _bits(s: Selector, name: str, type: Type, x: str, source: Type) -> None:
    """Lanes of one bit as a number, or a number as such lanes: bits beyond them are 0."""
    to_mask = type.cls == MASK
    lanes = type.lanes if to_mask else source.lanes
    if lanes < 8:
        raise Unsupported(f"bitcast of {source.text} to {type.text}")
    word = mask_word(lanes) if to_mask else "q" if lanes > 32 else "d"
    d = s.define(name)
    op = OPS[f"kmov{word}_{'' if to_mask else 'to_'}r"]
    s.put(d, (formats.v3, op, d, -1, s.need(x), -1, 0, 0, None))


# -- floats


@handles("fpext", "fptrunc")
def width(s: Selector, instruction: Cast) -> None:
    """Between widths of floats."""
    op, name, _, type, x, source = instruction
    pair = (source.element, type.element)
    if pair == ("bfloat", "float"):
        _bfloat(s, instruction)
    elif pair == ("half", "float") or pair == ("float", "half"):
        _half(s, instruction)
    elif pair == ("float", "double"):
        if type.lanes:
            _widening(s, OPS["vcvtps2pd"], name, type, x, source)
        else:
            d = s.define(name)
            y = s.vector(source, x)
            s.put(d, (formats.v3, OPS["vcvtss2sd"], d, y, y, -1, 0, 0, None))
    elif pair == ("double", "float"):
        if type.lanes:
            _gather(s, OPS["vcvtpd2ps"], name, type, x, source, False, None)
        else:
            d = s.define(name)
            y = s.vector(source, x)
            s.put(d, (formats.v3, OPS["vcvtsd2ss"], d, y, y, -1, 0, 0, None))
    else:
        raise Unsupported(f"{op} of {source.text} to {type.text}")


def _bfloat(s: Selector, instruction: Cast) -> None:
    """The upper halves of floats."""
    _, name, _, type, x, source = instruction
    if x[0] != "%":
        raise Unsupported(f"constant {source.text}")
    words = TYPES[f"<{max(type.lanes, 1)} x i32>"]
    wide = widened(s, instruction, "zext", words)
    d = s.define(name)
    for part in range(type.parts):
        y = s.vector(words, wide, part)
        s.put(d + part, (formats.v3s, OPS["vpslldi"], d + part, y, words.length, 16))
    s.write(s.defs[wide])


def _half(s: Selector, instruction: Cast) -> None:
    op, name, _, type, x, source = instruction
    if op == "fpext" and type.lanes:
        _widening(s, OPS["vcvtph2ps"], name, type, x, source)
    elif op == "fpext":
        d = s.define(name)
        s.put(d, (formats.v3, OPS["vcvtph2ps"], d, -1, s.vector(source, x), -1, 0, 0, None))
    else:
        _gather(s, OPS["vcvtps2ph_s"], name, type, x, source, True, 4)


@handles("sitofp", "uitofp")
def to_float(s: Selector, instruction: Cast) -> None:
    """Integers to floats."""
    op, name, _, type, x, source = instruction
    unsigned = "u" if op[0] == "u" else ""
    if type.bits == 16:
        raise Unsupported("half arithmetic")
    if not type.lanes:
        _scalar_to_float(s, instruction, unsigned)
        return
    if source.cls == MASK:
        raise Unsupported(f"{op} of {source.text}")
    if source.bits < 32:
        words = TYPES[f"<{source.lanes} x i32>"]
        wide = widened(s, instruction, "zext" if unsigned else "sext", words)
        to_float(s, Cast("sitofp", name, instruction.block, type, wide, words))
        s.flush()
        s.write(s.defs[wide])
        return
    word = f"vcvt{unsigned}{'qq' if source.bits == 64 else 'dq'}2{type.float_suffix}"
    if source.bits == type.bits:
        d = s.define(name)
        for part in range(type.parts):
            last(s, OPS[word], d + part, -1, source, x, part)
    elif source.bits < type.bits:
        _widening(s, OPS[word], name, type, x, source)
    else:
        _gather(s, OPS[word], name, type, x, source, False, None)


def _scalar_to_float(s: Selector, instruction: Cast, unsigned: str) -> None:
    _, name, _, type, x, source = instruction
    d = s.define(name)
    wide = source.bits == 64 or (unsigned and source.bits == 32)
    word = f"vcvt{'u' if unsigned and source.bits == 64 else ''}si2{type.float_suffix}"
    op = OPS[word + ("q" if wide else "")]
    if source.bits in (32, 64) and not (unsigned and source.bits == 32):
        t = s.general(source, x)
        ready = True
    else:
        t = s.new(GENERAL)
        ready = False
    s.put(d, (formats.v3, op, d, d, t, -1, 0, 0, None))
    # The upper lanes come from d: nothing to wait for.
    s.put(d, (formats.v3, OPS["vxorps"], d, d, d, -1, 0, 0, None))
    if not ready:
        extend(s, t, source, x, not unsigned, 8 if wide else 4)


# -- floats to integers


def to_integer(
    s: Selector, name: str, type: Type, x: str, source: Type, signed: bool, saturate: bool
) -> None:
    """Toward zero; `saturate`: clamped to the range, NaN to 0."""
    if source.bits == 16 or type.cls == MASK or (type.bits == 1):
        raise Unsupported(f"a conversion of {source.text} to {type.text}")
    bits = max(type.bits, 32)
    alike = type.bits == source.bits  # then each register by itself
    if not alike and (source.parts > 1 or bits * max(type.lanes, 1) > 512):
        raise Unsupported(f"a conversion of {source.text} to {type.text}")
    d = s.define(name)
    u = "" if signed else "u"
    op = OPS[f"vcvttp{source.float_suffix[1]}2{u}{'qq' if bits == 64 else 'dq'}"]
    if alike and type.lanes:
        for part in range(type.parts):
            y = s.vector(source, x, part)
            if saturate:
                _saturated(s, d + part, op, y, source, bits, signed, type.length)
            else:
                s.put(d + part, (formats.v3, op, d + part, -1, y, -1, 0, type.length, None))
        return
    length = max(source.length, 0 if bits * max(type.lanes, 1) <= 128 else
                 1 if bits * max(type.lanes, 1) == 256 else 2)
    y = s.vector(source, x)
    whole_ = d if type.bits >= 32 and type.lanes else s.new(VECTOR)
    if whole_ != d:
        _deliver(s, d, type, whole_, signed, saturate, length)
    if not saturate:
        s.put(whole_, (formats.v3, op, whole_, -1, y, -1, 0, length, None))
        return
    _saturated(s, whole_, op, y, source, bits, signed, length)


def _deliver(
    s: Selector, d: int, type: Type, x: int, signed: bool, saturate: bool, length: int
) -> None:
    """From 32- or 64-bit lanes to a scalar or to narrower lanes."""
    t = x
    pending = None
    if type.bits < 32:
        kind = "" if not saturate else "s" if signed else "us"
        op = OPS[f"vpmov{kind}d{type.letter}_s"]
        if type.lanes:
            s.put(d, (formats.vout, op, x, -1, d, -1, 0, length, None))
            return
        t = s.new(VECTOR)
        pending = (formats.vout, op, x, -1, t, -1, 0, length, None)
    move = OPS["vmovq_r_s" if type.bits == 64 else "vmovd_r_s"]
    s.put(d, (formats.vout, move, t, -1, d, -1, 0, 0, None))
    if pending is not None:
        s.put(t, pending)


def _saturated(
    s: Selector, d: int, op: object, x: int, source: Type, bits: int, signed: bool, length: int
) -> None:
    compare = OPS[f"vcmpp{source.float_suffix[1]}"]
    element = source.bits // 8
    k = s.new(MASK)
    if not signed:
        # What is not above 0, NaN too, is 0; what is too large is all ones by itself.
        s.put(d, (formats.v3, op, d, -1, x, k, 1, length, None))
        zero = bytes(element)
        s.put(k, (formats.v3c, compare, k, x, zero, -1, 0, source.length, 1, 30))
        return
    # Too large gives the smallest number: put the largest there.
    power = 2.0 ** (bits - 1)
    limit = struct.pack("<f" if element == 4 else "<d", power)
    largest = ((1 << (bits - 1)) - 1).to_bytes(bits // 8, "little")
    fill = OPS["vpbroadcastd" if bits == 32 else "vpbroadcastq"]
    high = k
    s.put(d, (formats.v3ct, fill, d, -1, largest, high, 0, length, 0, None))
    known = s.new(MASK)
    s.weight[high] += s.use_weight
    s.put(d, (formats.v3, op, d, -1, x, known, 1, length, None))
    s.put(high, (formats.v3c, compare, high, x, limit, -1, 0, source.length, 1, 29))
    s.put(known, (formats.v3, compare, known, x, x, -1, 0, source.length, 7))


@handles("fptosi", "fptoui")
def from_float(s: Selector, instruction: Cast) -> None:
    op, name, _, type, x, source = instruction
    to_integer(s, name, type, x, source, op == "fptosi", False)


@intrinsic("fptosi.sat", "fptoui.sat")
def saturating(s: Selector, instruction: Call, parts: list[str]) -> None:
    """fptosi.sat and fptoui.sat."""
    (name, type), callee = result_of(instruction), instruction.callee
    source, x = typed(parts[0])
    to_integer(s, name, type, x, source, "fptosi" in callee, True)
