"""Selection for AVX2 of what has other instructions there: comparisons, choices, arithmetic.

A mask is a vector, all ones or zeros in lanes as wide as those compared (`masks`). What is
registered here stands in the place of the families beside it, where registers are those of AVX2
(`VECTORS.narrow`). What would break it: an instruction of AVX-512, which `encode` refuses.
"""

from __future__ import annotations

from numjet.base.record import NamedTuple
from numjet.cpu.x86.avx2.shifts import shift_bytes_by_lanes, shift_words_by_lanes
from numjet.cpu.x86.back.encode import GPR, OPS
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.instructions import Binary, Call, Compare, Negation, Select, result_of
from numjet.cpu.x86.front.parse import typed
from numjet.cpu.x86.front.types import (
    GENERAL,
    TYPES,
    VECTOR,
    Constant,
    Type,
    Unsupported,
    constant,
)  # fmt: skip
from numjet.cpu.x86.select import arithmetic, intrinsics
from numjet.cpu.x86.select.flags import (
    FLOAT_FLAGS,
    FLOAT_PREDICATES,
    flags_of_lanes,
    float_flags,
    swap_float,
)
from numjet.cpu.x86.select.lanes import simpler
from numjet.cpu.x86.select.logic import rotates
from numjet.cpu.x86.select.operands import last, pattern, swap_for_memory, three
from numjet.cpu.x86.select.select import Selector, handles, intrinsic

BLENDS = {8: "vpblendvb", 16: "vpblendvb", 32: "vblendvps", 64: "vblendvpd"}


def words_of(type: Type) -> Type:
    """Integers in place of a type's lanes."""
    return TYPES[f"<{type.lanes} x i{type.bits}>"]


def three_registers(s: Selector, op: str, d: int, x: int, y: int, type: Type) -> None:
    """Write d = op(x, y)."""
    s.put(d, (formats.v3, OPS[op], d, x, y, -1, 0, type.length, None))


def with_lanes(s: Selector, op: str, d: int, x: int, type: Type, number: int) -> None:
    """Write d = op(x, the same bits in every lane)."""
    data = (number & (1 << type.bits) - 1).to_bytes(type.bits // 8, "little")
    s.put(d, (formats.v3c, OPS[op], d, x, data, -1, 0, type.length, 1, None))


def shifted(s: Selector, op: str, d: int, x: int, type: Type, by: int) -> None:
    """Write d = x shifted by a number."""
    s.put(d, (formats.v3s, OPS[op + type.letter + "i"], d, x, type.length, by))


# -- comparisons


@handles("fcmp", classes=(VECTOR,), narrow=True)
def compare_float_lanes(s: Selector, instruction: Compare) -> None:
    """fcmp of vectors."""
    d, type = s.define(instruction.name), instruction.of
    for part in range(type.parts):
        compare_floats(s, instruction, d + part, part)


def compare_floats(s: Selector, made: Compare, d: int, part: int) -> None:
    """Write mask `d`: where a comparison of floats holds."""
    a, b, type = made.a, made.b, made.of
    if type.bits == 16:
        raise Unsupported("comparison of half floats")
    imm = FLOAT_PREDICATES[made.predicate]
    if a[0] != "%" or (b[0] == "%" and swap_for_memory(s, a, b)):
        a, b, imm = b, a, swap_float(imm)
    three(s, OPS[f"vcmp{type.float_suffix}_y"], d, type, a, b, part, imm)


@handles("fcmp", classes=(GENERAL,), narrow=True)
def fcmp(s: Selector, instruction: Compare) -> None:
    d = s.define(instruction.name)
    if instruction.predicate in FLOAT_FLAGS:
        place = len(s.out)
        s.out.append(())
        s.out[place] = (formats.gset, GPR["set" + float_flags(s, instruction)], d)
        return
    t = s.new(VECTOR)
    s.put(d, (formats.g1t, GPR["andi"], 4, d, 1))
    s.put(d, (formats.vout, OPS["vmovd_r_s"], t, -1, d, -1, 0, 0, None))
    compare_floats(s, instruction, t, 0)


@handles("icmp", classes=(VECTOR,), narrow=True)
def compare_lanes(s: Selector, instruction: Compare) -> None:
    """icmp of vectors: equality, and order with sign; without one the sign is turned first."""
    type, predicate = instruction.of, instruction.predicate
    a, b = instruction.a, instruction.b
    d = s.define(instruction.name)
    if predicate == "eq":
        if swap_for_memory(s, a, b):
            a, b = b, a
        for part in range(type.parts):
            three(s, OPS[f"vpcmpeq{type.letter}_y"], d + part, type, a, b, part)
        return
    if predicate[1:] == "lt":
        a, b = b, a
    if predicate[1:] not in ("lt", "gt"):
        raise Unsupported(f"icmp {predicate} of lanes")
    greater = f"vpcmpgt{type.letter}_y"
    for part in range(type.parts):
        if predicate[0] == "s":
            three(s, OPS[greater], d + part, type, a, b, part)
            continue
        sign = 1 << (type.bits - 1)
        x, y = s.new(VECTOR), s.new(VECTOR)
        three_registers(s, greater, d + part, x, y, type)
        with_lanes(s, "vpxord", y, s.vector(type, b, part), type, sign)
        with_lanes(s, "vpxord", x, s.vector(type, a, part), type, sign)


@intrinsic("nj.any", "nj.all", narrow=True)
def any_or_all(s: Selector, instruction: Call, parts: list[str]) -> None:
    """Whether any or all lanes of a mask hold."""
    type, x = typed(instruction.arguments)
    d = s.define(instruction.name)
    place = len(s.out)
    s.out.append(())
    found = flags_of_lanes(s, type, x, instruction.callee == "@llvm.nj.any")
    s.out[place] = (formats.gset, GPR["set" + found], d)


@intrinsic("nj.bits", narrow=True)
def bits(s: Selector, instruction: Call, parts: list[str]) -> None:
    """The lanes of a mask as the bits of a number."""
    type, x = typed(instruction.arguments)
    move = {8: "vpmovmskb", 32: "vmovmskps", 64: "vmovmskpd"}.get(type.bits)
    if move is None or type.size < 16:
        raise Unsupported(f"the bits of {type.text}")
    d = s.define(instruction.name)
    lanes = type.lanes // type.parts
    for part in range(type.parts - 1, -1, -1):
        t = s.new(GENERAL) if part else d
        if part:
            s.put(d, (formats.g2t, GPR["or"], 8, d, t))
            s.put(t, (formats.g1t, GPR["shli"], 8, t, lanes * part))
        s.put(t, (formats.v3, OPS[move], t, -1, s.vector(type, x, part), -1, 0, type.length, None))


# -- choices


@handles("select", classes=(VECTOR,), narrow=True)
def blend(s: Selector, instruction: Select) -> None:
    """select by lanes, of floats, or between whole vectors by one bit."""
    _, name, _, type, condition, a, b, condition_type = instruction
    d = s.define(name)
    if simpler(s, d, instruction):
        return
    if condition_type.lanes:
        sign = _sign(s, type, condition)
        if sign is not None and 0 not in (_splat(type, a), _splat(type, b)):
            _by_sign(s, d, type, sign, a, b)
            return
        for part in range(type.parts):
            chosen(s, d + part, type, part, (condition_type, condition), a, b)
        return
    mask = s.new(VECTOR)
    made = s.once(condition, Compare, "fcmp")
    compared = made is not None and not type.lanes and made.of.bits == type.bits
    for part in range(type.parts):
        chosen(s, d + part, type, part, mask, a, b)
    if compared:
        assert made is not None
        compare_floats(s, made, mask, 0)
    else:
        _one_bit(s, mask, type, condition)


def _splat(type: Type, text: str) -> int | None:
    """The number in all lanes of a constant."""
    return None if text[0] == "%" else constant(type, text).splat


class _Sign(NamedTuple):
    """Lanes whose signs, shifted to the left by `shift`, choose; `turned`: the second where set."""

    type: Type
    x: str
    shift: int
    turned: bool


def _sign(s: Selector, type: Type, condition: str) -> _Sign | None:
    """What a choice by a comparison with 0 looks at: a sign, or one bit that is moved there."""
    made = s.once(condition, Compare, "icmp") if condition[0] == "%" else None
    if made is None or made.of.bits != type.bits or type.bits not in (32, 64):
        return None
    of, x, number = made.of, made.a, _splat(made.of, made.b)
    if made.predicate == "slt" and number == 0:
        return _Sign(of, x, 0, False)
    if made.predicate == "sgt" and number == (1 << of.bits) - 1:
        return _Sign(of, x, 0, True)
    held = s.once(x, Binary, "and") if made.predicate == "eq" and number == 0 else None
    bit = _splat(of, held.b) if held is not None and held.a[0] == "%" else None
    if held is None or bit is None or bit.bit_count() != 1:
        return None
    return _Sign(of, held.a, of.bits - bit.bit_length(), True)


def _by_sign(s: Selector, d: int, type: Type, sign: _Sign, a: str, b: str) -> None:
    """Write d = a where the lanes' signs are set, else b."""
    if sign.turned:
        a, b = b, a
    for part in range(type.parts):
        mask = s.new(VECTOR) if sign.shift else s.vector(sign.type, sign.x, part)
        chosen(s, d + part, type, part, mask, a, b)
        if sign.shift:
            x = s.vector(sign.type, sign.x, part)
            shifted(s, "vpsll", mask, x, sign.type, sign.shift)


def _one_bit(s: Selector, mask: int, type: Type, condition: str) -> None:
    """Write a mask that holds everywhere or nowhere."""
    t, u = s.new(GENERAL), s.new(VECTOR)
    if type.lanes:
        op = OPS["vpbroadcastd"]
        s.put(mask, (formats.v3, op, mask, -1, u, -1, 0, type.length, None))
    else:
        s.put(mask, (formats.v3, OPS["vpbroadcastd"], mask, -1, u, -1, 0, 0, None))
    s.put(u, (formats.v3, OPS["vmovd_r"], u, -1, t, -1, 0, 0, None))
    s.put(t, (formats.g1t, GPR["neg"], 4, t, None))
    s.put(t, (formats.g1t, GPR["andi"], 4, t, 1))
    s.put(t, (formats.gmove, GPR["mov"], 8, t, s.need(condition)))


def chosen(
    s: Selector, d: int, type: Type, part: int, mask: int | tuple[Type, str], a: str, b: str
) -> None:
    """Write a part of d = a where a mask holds, else b. mask: a register, or an operand."""

    def register() -> int:
        return mask if isinstance(mask, int) else s.vector(mask[0], mask[1], part)

    for word, zero, other in (("vandps", b, a), ("vandnps", a, b)):
        if zero[0] != "%" and constant(type, zero).splat == 0:
            if type.lanes:
                last(s, OPS[word], d, register(), type, other, part)
            else:  # more would be read than a number
                m = register()
                s.put(d, (formats.v3, OPS[word], d, m, s.vector(type, other), -1, 0, 0, None))
            break
    else:
        m = register()
        x = s.vector(type, b, part)
        op, length = OPS[BLENDS[type.bits]], type.length
        load = s.foldable(a) if a[0] == "%" and type.size >= 16 else None
        if a[0] != "%" and (type.size >= 16 or not type.lanes):
            data = s.data(type, constant(type, a), part).ljust(16, b"\0")
            s.put(d, (formats.v4c, op, d, x, data, m, 0, length, 0, None))
        elif load is not None:
            base, index, scale, disp = s.address(load.pointer)
            where = (base, index, scale, disp + 32 * part)
            s.put(d, (formats.v4m, op, d, x, where, m, 0, length, 0, None))
        else:
            y = s.vector(type, a, part)
            s.put(d, (formats.v4, op, d, x, y, m, 0, length, None))


# -- arithmetic


@handles("or", classes=(VECTOR,), narrow=True)
def either(s: Selector, instruction: Binary) -> None:
    """or; two shifts that rotate by whole bytes are a permutation of bytes."""
    type = instruction.type
    found = rotates(s, instruction) if type.size >= 16 else None
    if found is None or found[1] % 8:
        arithmetic.binary(s, instruction)
        return
    rotated, by = found
    step, d = type.bits // 8, s.define(instruction.name)
    lane = [(k - by // 8) % step for k in range(step)]
    table = bytes([first + k for first in range(0, 16, step) for k in lane]) * (type.length + 1)
    for part in range(type.parts):
        x = s.vector(type, rotated, part)
        op, length = OPS["vpshufb"], type.length
        s.put(d + part, (formats.v3c, op, d + part, x, table, -1, 0, length, 0, None))


@handles("mul", classes=(VECTOR,), narrow=True)
def product(s: Selector, instruction: Binary) -> None:
    """Products of lanes; those of 64 bits by halves."""
    _, name, _, type, a, b = instruction
    if type.bits in (16, 32):
        arithmetic.binary(s, instruction)
        return
    d = s.define(name)
    for part in range(type.parts):
        x, y = s.vector(type, a, part), s.vector(type, b, part)
        if type.bits == 8:
            _byte_product(s, d + part, x, y, type)
            continue
        whole_product(s, d + part, x, y, type)


def whole_product(s: Selector, d: int, x: int, y: int, type: Type) -> None:
    """Write d = x·y of lanes of 64 bits: (xh·2³² + xl)(yh·2³² + yl) without what is lost above."""
    low, cross, up, other, t = [s.new(VECTOR) for _ in range(5)]
    three_registers(s, "vpaddq", d, low, t, type)
    three_registers(s, "vpmuludq", low, x, y, type)
    shifted(s, "vpsll", t, cross, type, 32)
    left, right = s.new(VECTOR), s.new(VECTOR)
    three_registers(s, "vpaddq", cross, left, right, type)
    three_registers(s, "vpmuludq", left, up, y, type)
    three_registers(s, "vpmuludq", right, x, other, type)
    shifted(s, "vpsrl", up, x, type, 32)
    shifted(s, "vpsrl", other, y, type, 32)


def _byte_product(s: Selector, d: int, x: int, y: int, type: Type) -> None:
    """Products of bytes, of the lower and the upper ones of pairs."""
    pairs = TYPES[f"<{max(type.lanes // 2, 1)} x i16>"] if type.lanes > 1 else type
    even, odd, low, high, up, other = [s.new(VECTOR) for _ in range(6)]
    three_registers(s, "vpord", d, even, odd, type)
    with_lanes(s, "vpandd", even, low, pairs, 0x00FF)
    three_registers(s, "vpmullw", low, x, y, type)
    s.put(odd, (formats.v3s, OPS["vpsllwi"], odd, high, type.length, 8))
    three_registers(s, "vpmullw", high, up, other, type)
    s.put(up, (formats.v3s, OPS["vpsrlwi"], up, x, type.length, 8))
    s.put(other, (formats.v3s, OPS["vpsrlwi"], other, y, type.length, 8))


@handles("shl", "lshr", "ashr", classes=(VECTOR,), narrow=True)
def shift(s: Selector, instruction: Binary) -> None:
    """Shifts; with sign those of 64 bits are of a number without sign, and of all that it lacks."""
    op, name, _, type, a, b = instruction
    count = constant(type, b).splat if b[0] != "%" else None
    if type.bits == 8:
        if count is None:
            shift_bytes_by_lanes(s, op, s.define(name), type, a, b)
            return
        _shift_bytes(s, op, s.define(name), type, a, min(count, 8))
        return
    if type.bits == 16 and count is None:
        shift_words_by_lanes(s, op, s.define(name), type, a, b)
        return
    if op != "ashr" or type.bits != 64:
        arithmetic.binary(s, instruction)
        return
    d = s.define(name)
    for part in range(type.parts):
        x = s.vector(type, a, part)
        if count is None:
            # (x lshr n ^ m) - m, where m is the sign bit where it comes to lie.
            t, m = s.new(VECTOR), s.new(VECTOR)
            n = s.vector(type, b, part)
            moved = s.new(VECTOR)
            three_registers(s, "vpsubq", d + part, t, m, type)
            three_registers(s, "vpxorq", t, moved, m, type)
            three_registers(s, "vpsrlvq", moved, x, n, type)
            ones = s.new(VECTOR)
            three_registers(s, "vpsrlvq", m, ones, n, type)
            s.fill(ones, type, constant(type, f"splat (i64 {1 << 63})"), 0, s.put)
            continue
        sign, zero, t, u = [s.new(VECTOR) for _ in range(4)]
        if count >= 63:
            three_registers(s, "vpcmpgtq_y", d + part, zero, x, type)
            s.put(zero, (formats.v3, OPS["vpxord"], zero, zero, zero, -1, 0, 0, None))
            continue
        if not count:
            s.put(d + part, (formats.vmove, OPS["vmovaps"], d + part, x, type.length))
            continue
        three_registers(s, "vporq", d + part, t, u, type)
        shifted(s, "vpsll", u, sign, type, 64 - count)
        shifted(s, "vpsrl", t, x, type, count)
        three_registers(s, "vpcmpgtq_y", sign, zero, x, type)
        s.put(zero, (formats.v3, OPS["vpxord"], zero, zero, zero, -1, 0, 0, None))


def _shift_bytes(s: Selector, op: str, d: int, type: Type, a: str, count: int) -> None:
    """By one number: pairs are shifted, and what came from the neighbour is left out."""
    for part in range(type.parts):
        x, t = s.vector(type, a, part), s.new(VECTOR)
        keep = 0xFF << count & 0xFF if op == "shl" else 0xFF >> count
        word = "vpsllwi" if op == "shl" else "vpsrlwi"
        if op != "ashr":
            with_lanes(s, "vpandd", d + part, t, type, keep)
        else:
            # The sign bit, where it is now, is turned and subtracted.
            u, v = s.new(VECTOR), s.new(VECTOR)
            sign = 0x80 >> count
            with_lanes(s, "vpsubb", d + part, u, type, sign)
            with_lanes(s, "vpxord", u, v, type, sign)
            with_lanes(s, "vpandd", v, t, type, keep)
        s.put(t, (formats.v3s, OPS[word], t, x, type.length, count))


@handles("smulhigh", "umulhigh", classes=(VECTOR,), narrow=True)
def high_product(s: Selector, instruction: Binary) -> None:
    """The upper halves of products with a number of 32 bits, of even and of odd lanes."""
    op, name, _, type, a, b = instruction
    d, length = s.define(name), type.length
    made = OPS["vpmuldq" if op[0] == "s" else "vpmuludq"]
    data = constant(type, b).packed(32)[:4] * 2
    for part in range(type.parts):
        x = s.vector(type, a, part)
        even, odd, low, up = [s.new(VECTOR) for _ in range(4)]
        s.put(d + part, (formats.v3, OPS["vpblendd"], d + part, even, odd, -1, 0, length, 0xAA))
        s.put(even, (formats.v3s, OPS["vpsrlqi"], even, low, length, 32))
        s.put(low, (formats.v3c, made, low, x, data, -1, 0, length, 1, None))
        s.put(odd, (formats.v3c, made, odd, up, data, -1, 0, length, 1, None))
        s.put(up, (formats.v3s, OPS["vpsrlqi"], up, x, length, 32))


# -- intrinsic functions


@handles("fneg", narrow=True)
def fneg(s: Selector, instruction: Negation) -> None:
    """-x, and -|x|, whose sign is set."""
    _, name, _, type, x = instruction
    made = s.once(x, Call) if x[0] == "%" else None
    if made is None or not made.callee.startswith("@llvm.fabs."):
        arithmetic.fneg(s, instruction)
        return
    d = s.define(name)
    inner = made.arguments if isinstance(made.arguments, tuple) else (typed(made.arguments)[1],)
    for part in range(type.parts):
        pattern(s, "or", d + part, s.vector(type, inner[0], part), type, 1 << (type.bits - 1))


@intrinsic("copysign", alike=True, narrow=True)
def copysign(s: Selector, instruction: Call, parts: list[str]) -> None:
    name, type = result_of(instruction)
    size, sign = parts
    d = s.define(name)
    top = 1 << (type.bits - 1)
    for part in range(type.parts):
        x, y = s.new(VECTOR), s.new(VECTOR)
        three_registers(s, "vorps", d + part, x, y, type)
        for t, text, word in ((x, size, top - 1), (y, sign, top)):
            if text[0] != "%":
                given = constant(type, text).lanes
                value = Constant(tuple([(lane or 0) & word for lane in given]))
                data = s.data(type, value, part).ljust(16, b"\0")
                s.put(t, (formats.v3c, OPS["vmovups"], t, -1, data, -1, 0, type.length, 0, None))
            else:
                pattern(s, "and", t, s.vector(type, text, part), type, word)


@intrinsic("maximum", "minimum", alike=True, narrow=True)
def float_extremum(s: Selector, instruction: Call, parts: list[str]) -> None:
    """maximum and minimum: a number unless one of the operands is not."""
    _, type = result_of(instruction)
    flags = f" {instruction.flags}"
    a, b = parts
    if b[0] != "%":
        a, b = b, a
    simple = " nnan" in flags or (a[0] != "%" and b[0] == "%" and intrinsics.is_number(type, a))
    if simple or type.bits == 16 or " nsz" not in flags:
        intrinsics.extremum(s, instruction, parts)
        return
    op = ("vmax" if "maximum" in instruction.callee else "vmin") + type.float_suffix
    d = s.define(instruction.name)
    for part in range(type.parts):
        # The instruction answers b if either is NaN: then a is put where it is NaN.
        x, m, t = s.vector(type, a, part), s.new(VECTOR), s.new(VECTOR)
        blended = OPS[BLENDS[type.bits]]
        s.put(d + part, (formats.v4, blended, d + part, t, x, m, 0, type.length, None))
        last(s, OPS[op], t, x, type, b, part)
        op_ = OPS[f"vcmp{type.float_suffix}_y"]
        s.put(m, (formats.v3, op_, m, x, x, -1, 0, type.length, 3))


@intrinsic("smin", "smax", "umin", "umax", alike=True, narrow=True)
def integer_extremum(s: Selector, instruction: Call, parts: list[str]) -> None:
    """Extrema of integers; of 64 bits by a comparison."""
    name, type = result_of(instruction)
    if type.cls != VECTOR or type.bits != 64:
        intrinsics.integer_extremum(s, instruction, parts)
        return
    word = instruction.callee[6:10]
    a, b = parts
    d = s.define(name)
    for part in range(type.parts):
        x, y = s.vector(type, a, part), s.vector(type, b, part)
        larger_or_less(s, word, d + part, x, y, type)


def larger_or_less(s: Selector, word: str, d: int, x: int, y: int, type: Type) -> None:
    """Write d = the extremum `word` of lanes of 64 bits."""
    m = s.new(VECTOR)
    first, second = (x, y) if word.endswith("max") else (y, x)
    s.put(d, (formats.v4, OPS["vblendvpd"], d, y, x, m, 0, type.length, None))
    if word[0] == "s":
        three_registers(s, "vpcmpgtq_y", m, first, second, type)
        return
    p, q = s.new(VECTOR), s.new(VECTOR)
    three_registers(s, "vpcmpgtq_y", m, p, q, type)
    with_lanes(s, "vpxorq", p, first, type, 1 << 63)
    with_lanes(s, "vpxorq", q, second, type, 1 << 63)


@intrinsic("abs", narrow=True)
def absolute(s: Selector, instruction: Call, parts: list[str]) -> None:
    """|x|; of 64 bits (x ^ m) - m, where m is the sign in all bits."""
    name, type = result_of(instruction)
    if type.cls != VECTOR or type.bits != 64:
        intrinsics.absolute(s, instruction, parts)
        return
    d, x_ = s.define(name), typed(parts[0])[1]
    for part in range(type.parts):
        x = s.vector(type, x_, part)
        m, t, zero = [s.new(VECTOR) for _ in range(3)]
        three_registers(s, "vpsubq", d + part, t, m, type)
        three_registers(s, "vpxorq", t, x, m, type)
        three_registers(s, "vpcmpgtq_y", m, zero, x, type)
        s.put(zero, (formats.v3, OPS["vpxord"], zero, zero, zero, -1, 0, 0, None))
