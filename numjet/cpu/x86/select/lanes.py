"""Selection of what moves lanes: choices by a mask, single lanes in and out, shuffles.

A family of `select.select`. A choice whose chosen side is one operation becomes that operation
under the mask; which shuffle takes which instructions `select.permutes` plans. What would break it:
a result's register that is set before the operation under the mask has read it (`_computed`).
"""

from __future__ import annotations

from collections.abc import Callable

from numjet.cpu.x86.back.encode import GPR, OPS
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.instructions import (
    Binary,
    Call,
    Compare,
    Extract,
    Insert,
    Select,
    Shuffle,
)
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
from numjet.cpu.x86.select import permutes
from numjet.cpu.x86.select.flags import compare_floats
from numjet.cpu.x86.select.operands import (
    last,
    mask_word,
    part_mask,
    part_masks,
    scaled,
    scales,
    seed,
    three,
)
from numjet.cpu.x86.select.select import Selector, handles

_BLENDS = {"b": "vpblendmb", "w": "vpblendmw", "d": "vblendmps", "q": "vblendmpd"}
_MOVES = {"b": "vmovdqu8", "w": "vmovdqu16", "d": "vmovups", "q": "vmovupd"}
_ARITHMETIC = {
    "fadd": "vadd", "fsub": "vsub", "fmul": "vmul", "fdiv": "vdiv", "add": "vpadd", "sub": "vpsub",
}  # fmt: skip
# select(a < b, a, b) and its like are one instruction, which answers its last operand on NaN.
_EXTREMA = {("olt", 0): "vmin", ("olt", 1): "vmax", ("ogt", 0): "vmax", ("ogt", 1): "vmin"}


@handles("select", classes=(VECTOR, MASK))
def blend(s: Selector, instruction: Select) -> None:
    """select by lanes, of floats, or between whole vectors by one bit."""
    _, name, _, type, condition, a, b, condition_type = instruction
    if type.cls == MASK:
        _blend_masks(s, instruction)
        return
    d = s.define(name)
    if simpler(s, d, instruction):
        return
    pieces = part_masks(s, condition, type) if condition_type.lanes else None
    k0, compared = (-1, None) if pieces else _condition_mask(s, condition, condition_type, type)
    scalar = not condition_type.lanes and type.lanes
    made = _computed(s, d, type, a, b)
    for part in range(type.parts):
        k = k0 if scalar else pieces[part] if pieces else part_mask(s, k0, type, part)
        if made is not None:
            _masked(s, d + part, type, part, made, b, k)
            continue
        if b[0] != "%" and constant(type, b).splat == 0:
            op = OPS[_MOVES[type.letter]]
            if not type.lanes:
                x = s.vector(type, a, part)
                s.put(d, (formats.v3, OPS["vmov" + type.float_suffix], d, x, x, k, 1, 0, None))
            else:
                last(s, op, d + part, -1, type, a, part, k, 1)
        elif not type.lanes:
            x, y = s.vector(type, a), s.vector(type, b)
            s.put(d, (formats.v3, OPS[_BLENDS[type.letter]], d, y, x, k, 0, 0, None))
        else:
            last(s, OPS[_BLENDS[type.letter]], d + part, s.vector(type, b, part), type, a, part, k)
    if compared is not None:
        compare_floats(s, compared, k0, 0)


def copied(s: Selector, d: int, type: Type, x: str) -> None:
    """Write d = x."""
    if x[0] == "%" and s.tie(x, d):
        return
    for part in range(type.parts):
        if x[0] == "%":
            made = s.vector(type, x, part)
            s.put(d + part, (formats.vmove, OPS["vmovaps"], d + part, made, type.length))
        else:
            s.fill(d + part, type, constant(type, x), part, s.put)


def _computed(s: Selector, d: int, type: Type, a: str, b: str) -> Binary | Call | None:
    """The arithmetic behind `a` where only the chosen lanes of `d` can be computed by it."""
    if not type.lanes or a[0] != "%" or a == b:
        return None
    called = s.once(a, Call)
    if called is not None:
        zero = b[0] != "%" and constant(type, b).splat == 0
        return called if zero and scales(called) else None
    made = s.once(a, Binary)
    if made is None or made.op not in _ARITHMETIC:
        return None
    x, y = made.a, made.b
    if type.size < 16 or any(z != b and s.reg.get(z) == d for z in (x, y)):
        return None  # d is set to b before these are read
    return made


def _masked(
    s: Selector, d: int, type: Type, part: int, made: Binary | Call, b: str, k: int
) -> None:
    """Write d = made where the mask holds, b elsewhere."""
    if isinstance(made, Call):
        scaled(s, made, d, part, k)
        return
    op = OPS[_ARITHMETIC[made.op] + (type.float_suffix if made.op[0] == "f" else type.letter)]
    tied = b[0] == "%" and b in (made.a, made.b) and s.tie(b, d, part)
    x = s.vector(type, made.a, part)
    if b[0] != "%" and constant(type, b).splat == 0:
        last(s, op, d, x, type, made.b, part, k, 1)
        return
    tied = tied or (b[0] == "%" and s.tie(b, d, part))
    last(s, op, d, x, type, made.b, part, k, tied=True)
    if not tied:
        seed(s, d, type, b, part)


def simpler(s: Selector, d: int, instruction: Select) -> bool:
    """Write a choice that is one operand, or the smaller or larger one; whether it is."""
    _, _, _, type, condition, a, b, condition_type = instruction
    if condition[0] != "%" and not condition_type.lanes:
        copied(s, d, type, a if constant(condition_type, condition).splat else b)
        return True
    return extremum(s, d, type, condition, a, b)


def extremum(s: Selector, d: int, type: Type, condition: str, a: str, b: str) -> bool:
    made = s.once(condition, Compare, "fcmp")
    if made is None or made.of is not type or type.bits == 16:
        return False
    x, y, predicate = made.a, made.b, made.predicate
    turned = int((a, b) == (y, x))
    if not turned and (a, b) != (x, y):
        return False
    op = _EXTREMA.get((predicate, turned))
    if op is None:
        return False
    for part in range(type.parts):
        three(s, OPS[op + type.float_suffix], d + part, type, a, b, part)
    return True


def _condition_mask(
    s: Selector, condition: str, condition_type: Type, type: Type
) -> tuple[int, Compare | None]:
    """The mask of a condition, and the comparison that makes it where that is still to be written.

    The mask of one bit holds in the first lane, or in all lanes where there are several.
    """
    if condition_type.lanes:
        return s.mask(condition_type, condition), None
    made = s.once(condition, Compare, "fcmp")
    k = s.new(MASK)
    if made is not None and not type.lanes and not made.type.lanes:
        return k, made
    other = s.defs.get(condition)
    if other is not None and other.op == "fcmp" and other.block == s.block.index and not type.lanes:
        return s.masks.setdefault(condition, k), None
    x = s.need(condition)
    if type.lanes:
        t = s.new(GENERAL)
        s.later(k, (formats.v3, OPS["kmovq_r"], k, -1, t, -1, 0, 0, None))
        s.later(t, (formats.g1t, GPR["neg"], 8, t, None))
        s.later(t, (formats.g2, GPR["mov"], 4, t, x))
    else:
        s.later(k, (formats.v3, OPS["kmovd_r"], k, -1, x, -1, 0, 0, None))
    return k, None


def _blend_masks(s: Selector, instruction: Select) -> None:
    _, name, _, type, condition, a, b, condition_type = instruction
    d = s.define(name)
    letter = mask_word(type.lanes)
    if condition_type.lanes:
        k = s.mask(condition_type, condition)
    else:
        k, _ = _condition_mask(s, condition, condition_type, type)
    x, y = s.mask(type, a), s.mask(type, b)
    t, u = s.new(MASK), s.new(MASK)
    s.put(d, (formats.v3, OPS["kor" + letter], d, t, u, -1, 0, 0, None))
    s.put(t, (formats.v3, OPS["kand" + letter], t, k, x, -1, 0, 0, None))
    s.put(u, (formats.v3, OPS["kandn" + letter], u, k, y, -1, 0, 0, None))


# -- single lanes


@handles("extractelement")
def extract(s: Selector, instruction: Extract) -> None:
    _, name, _, type, x, vector, k, index_type = instruction
    if vector.cls == MASK:
        raise Unsupported("extractelement of bits")
    d = s.define(name)
    if k[0] == "%":
        source = _at_index(s, vector, x, index_type, k)
    else:
        part, lane = divmod(int(k), VECTORS.bits // vector.bits)
        source = _bring_down(s, s.vector(vector, x, part), vector, lane)
    if type.cls == VECTOR:
        s.put(d, (formats.vmove, OPS["vmovaps"], d, source, 0))
    else:
        op = OPS["vmovq_r_s" if type.bits == 64 else "vmovd_r_s"]
        s.put(d, (formats.vout, op, source, -1, d, -1, 0, 0, None))


def _at_index(s: Selector, vector: Type, x: str, index_type: Type, k: str) -> int:
    """A register whose first lane is the one with a computed number."""
    if vector.parts > 2:
        raise Unsupported("a computed lane of several registers")
    letter = {8: "b", 16: "w", 32: "ps", 64: "pd"}[vector.bits]
    t = s.new(VECTOR)
    index = s.general(index_type, k)
    number = t
    if vector.parts == 2:
        low, high = s.vector(vector, x, 0), s.vector(vector, x, 1)
        s.later(t, (formats.v3t, OPS["vpermi2" + letter], t, low, high, -1, 0, 2, None))
    else:
        number = s.new(VECTOR)
        op = OPS["vpermpd_v" if letter == "pd" else "vperm" + letter]
        length = max(vector.length, 1)
        s.later(t, (formats.v3, op, t, number, s.vector(vector, x), -1, 0, length, None))
    s.later(number, (formats.v3, OPS["vmovd_r"], number, -1, index, -1, 0, 0, None))
    return t


def _bring_down(s: Selector, x: int, type: Type, lane: int) -> int:
    """A register whose first lane is the given one; written before the next instruction."""
    quarter, rest = divmod(lane, 128 // type.bits)
    top = to = x
    if rest:
        top = s.new(VECTOR)
        to = s.new(VECTOR) if quarter else x
        if type.bits >= 32:
            op = OPS["vpermilps" if type.bits == 32 else "vpermilpd"]
            s.later(top, (formats.v3, op, top, -1, to, -1, 0, 0, rest))
        else:
            count = rest * type.bits // 8
            s.later(top, (formats.v3s, OPS["vpsrldqi"], top, to, 0, count))
    elif quarter:
        top = to = s.new(VECTOR)
    if quarter:
        op = OPS["vextractf32x4_s"]
        s.later(to, (formats.vout, op, x, -1, to, -1, 0, max(type.length, 1), quarter))
    return top


@handles("insertelement")
def insert(s: Selector, instruction: Insert) -> None:
    _, name, _, type, x, scalar, scalar_type, k, index_type = instruction
    lane = -1 if k[0] == "%" else int(k)
    if type.cls == MASK:
        if x not in ("poison", "undef") or lane:
            raise Unsupported("insertelement of bits")
        d = s.define(name)
        bit = s.general(scalar_type, scalar)
        s.put(d, (formats.v3, OPS["kmovd_r"], d, -1, bit, -1, 0, 0, None))
        return
    d = s.define(name)
    if x in ("poison", "undef") and not lane:
        scalar_to_lane(s, d, type, scalar, scalar_type)
        return
    # Broadcast the scalar into the one lane.
    tied = x[0] == "%" and s.tie(x, d)
    op, y = _broadcast(s, type, scalar, scalar_type)
    per = VECTORS.bits // type.bits
    for part in range(type.parts):
        if lane < 0:
            bits = _lane_mask(s, type, index_type, k, part)
        elif lane // per == part:
            bits = s.mask_constant(1 << lane % per, min(type.lanes, per))
        if lane < 0 or lane // per == part:
            s.put(d + part, (formats.v3t, op, d + part, -1, y, bits, 0, type.length, None))
        if not tied:
            seed(s, d + part, type, "zeroinitializer" if x in ("poison", "undef") else x, part)


def _lane_mask(s: Selector, type: Type, index_type: Type, k: str, part: int) -> int:
    """A mask of the lane with a computed number."""
    bits, number = s.new(MASK), s.new(VECTOR)
    index = s.general(index_type, k)
    size = type.bits // 8
    lanes = (16 << type.length) // size
    data = b"".join([(part * lanes + n).to_bytes(size, "little") for n in range(lanes)])
    op = OPS["vpcmp" + type.letter]
    s.later(bits, (formats.v3c, op, bits, number, data, -1, 0, type.length, 0, 0))
    op = OPS[f"vpbroadcast{type.letter}_r"]
    if index_type.bits >= type.bits:
        s.later(number, (formats.v3, op, number, -1, index, -1, 0, type.length, None))
        return bits
    if index_type.bits != 32:
        raise Unsupported("an index of few bits")
    wide = s.new(GENERAL)  # bits above a type's are unspecified
    s.later(number, (formats.v3, op, number, -1, wide, -1, 0, type.length, None))
    s.later(wide, (formats.g2, GPR["mov"], 4, wide, index))
    return bits


def scalar_to_lane(s: Selector, d: int, type: Type, scalar: str, scalar_type: Type) -> None:
    """d = the scalar in the first lane."""
    if scalar_type.cls == VECTOR:
        s.put(d, (formats.vmove, OPS["vmovaps"], d, s.vector(scalar_type, scalar), 0))
    else:
        op = OPS["vmovq_r" if type.bits == 64 else "vmovd_r"]
        x = s.general(scalar_type, scalar)
        s.put(d, (formats.v3, op, d, -1, x, -1, 0, 0, None))


def _broadcast(s: Selector, type: Type, scalar: str, scalar_type: Type) -> tuple:
    """(instruction, register) that fills lanes with a scalar."""
    if scalar_type.cls == VECTOR:
        op = {16: "vpbroadcastw", 32: "vbroadcastss", 64: "vbroadcastsd"}[type.bits]
        if op == "vbroadcastsd" and not type.length:
            op = "vpbroadcastq"
        return OPS[op], s.vector(scalar_type, scalar)
    return OPS[f"vpbroadcast{type.letter}_r"], s.general(scalar_type, scalar)


# -- shuffles


@handles("shufflevector")
def shuffle(s: Selector, instruction: Shuffle) -> None:
    _, name, _, type, a, b, source, picked, mask_type = instruction
    lanes = constant(TYPES[f"<{mask_type.lanes} x i32>"], picked).lanes
    if _splat(s, instruction, lanes):
        return
    if type.cls == MASK:
        _shuffle_mask(s, instruction, lanes)
        return
    d = s.define(name)
    if d in (s.reg.get(a), s.reg.get(b)):
        # What is read is overwritten, by parts and before all of it has been read.
        made = s.new(VECTOR, type.parts)
        for part in range(type.parts):
            s.put(d + part, (formats.vmove, OPS["vmovaps"], d + part, made + part, type.length))
        d = made
    if _whole_parts(s, d, type, source, a, b, lanes):
        return
    permute(s, d, type, source, a, b, lanes)


def _shuffle_mask(s: Selector, instruction: Shuffle, lanes: tuple[int | None, ...]) -> None:
    """Bits as bytes, and back."""
    _, name, _, type, a, _, source, _, _ = instruction
    if any(lane is not None and lane >= source.lanes for lane in lanes):
        raise Unsupported("a shuffle of two masks")
    d = s.define(name)
    count = max(type.lanes, source.lanes)
    length = 0 if count <= 16 else 1 if count == 32 else 2
    table = bytes([lane or 0 for lane in lanes]).ljust(16 << length, b"\0")
    whole, moved, numbers = s.new(VECTOR), s.new(VECTOR), s.new(VECTOR)
    s.put(d, (formats.v3, OPS["vpmovb2m"], d, -1, moved, -1, 0, length, None))
    # Lanes that are not there stay 0.
    k = s.mask_constant((1 << type.lanes) - 1, type.lanes) if type.lanes != 16 << length else -1
    op = OPS["vpermb"]
    s.put(moved, (formats.v3, op, moved, numbers, whole, k, int(k >= 0), length, None))
    s.put(numbers, (formats.v3c, OPS["vmovups"], numbers, -1, table, -1, 0, length, 0, None))
    x = s.mask(source, a)
    s.put(whole, (formats.v3, OPS["vpmovm2b"], whole, -1, x, -1, 0, length, None))


def _splat(s: Selector, instruction: Shuffle, lanes: tuple[int | None, ...]) -> bool:
    """One lane, the first, in all: a broadcast, from memory where a load is all it reads."""
    _, name, _, type, a, b, source, _, _ = instruction
    if any(lane not in (0, None) for lane in lanes) or a[0] != "%":
        return False
    made = s.once(a, Insert)
    if made is None or made.x not in ("poison", "undef") or made.lane != "0":
        if source.parts > 1 or source.cls == MASK or source.bits < 8:
            return False
        d, parts = s.define_alike(name)
        all_lanes(s, d, parts, type, s.need(a), VECTOR)
        return True
    scalar, scalar_type = made.scalar, made.scalar_type
    if type.cls == MASK:
        d = s.define(name)
        t = s.new(GENERAL)
        op = OPS["kmovq_r" if type.lanes > 32 else "kmovd_r"]
        s.put(d, (formats.v3, op, d, -1, t, -1, 0, 0, None))
        if type.lanes < 64:
            s.put(t, (formats.g1t, GPR["andi"], 4, t, (1 << type.lanes) - 1
                      if type.lanes < 32 else -1))
        s.put(t, (formats.g1t, GPR["neg"], 8, t, None))
        s.put(t, (formats.g2, GPR["mov"], 4, t, s.general(scalar_type, scalar)))
        return True
    d, parts = s.define_alike(name)
    picked = s.once(scalar, Extract) if scalar[0] == "%" and type.bits >= 32 else None
    if picked is not None and picked.source.parts == 1 and picked.lane[0] != "%":
        # One lane of a register in all: a shuffle instead of a shift and a broadcast.
        length = max(type.length, picked.source.length)
        chosen = _plan((int(picked.lane),) * ((128 << length) // type.bits), type.bits)
        for part in range(parts):
            _planned(s, d + part, picked.source, length, chosen, [(picked.x, 0)])
        return True
    load = s.repeatable(scalar) if scalar[0] == "%" and scalar_type.bits >= 32 else None
    if load is not None:
        # Cheaper than from a register, also for several vectors: that is a shuffle.
        memory = s.address(load.pointer)
        op = OPS["vbroadcastss" if type.bits == 32 else "vbroadcastsd"]
        if type.bits == 64 and not type.length:
            op = OPS["vmovddup"]
        for part in range(parts):
            s.put(d + part, (formats.v3m, op, d + part, -1, memory, -1, 0, type.length, 0, None))
        return True
    if scalar[0] != "%":
        every = Constant(constant(scalar_type, scalar).lanes * type.lanes)
        for part in range(parts):
            s.fill(d + part, type, every, part, s.put)
        return True
    all_lanes(s, d, parts, type, s.need(scalar), scalar_type.cls)
    return True


def all_lanes(s: Selector, d: int, parts: int, type: Type, x: int, cls: int) -> None:
    """Write d = a scalar in all lanes, of so many registers."""
    if cls != VECTOR and VECTORS.narrow:
        t = s.new(VECTOR)
        all_lanes(s, d, parts, type, t, VECTOR)
        move = OPS["vmovq_r" if type.bits == 64 else "vmovd_r"]
        s.put(t, (formats.v3, move, t, -1, x, -1, 0, 0, None))
        return
    if cls == VECTOR:
        op = {8: "vpbroadcastb", 16: "vpbroadcastw", 32: "vbroadcastss", 64: "vbroadcastsd"}
        word = op[type.bits]
        if word == "vbroadcastsd" and not type.length:
            word = "vpbroadcastq"
    else:
        word = f"vpbroadcast{type.letter}_r"
    for part in range(parts):
        s.put(d + part, (formats.v3, OPS[word], d + part, -1, x, -1, 0, type.length, None))


def _whole_parts(
    s: Selector, d: int, type: Type, source: Type, a: str, b: str, lanes: tuple[int | None, ...]
) -> bool:
    """Halves of a vector, and vectors joined, where lanes follow each other."""
    count = len(lanes)
    first = lanes[0] or 0
    if any(lane is not None and lane != first + k for k, lane in enumerate(lanes)):
        return False
    size = type.bits * count // 8
    if count < source.lanes and first % count == 0 and first + count <= source.lanes:
        # One piece of a.
        per = VECTORS.bits // type.bits
        part, rest = divmod(first, per)
        if rest == 0:
            for k in range(type.parts):  # of a constant, each part is a register of its own
                x = s.vector(source, a, part + k)
                s.put(d + k, (formats.vmove, OPS["vmovaps"], d + k, x, type.length))
            return True
        x = s.vector(source, a, part)
        if size >= 16:
            op = OPS["vextractf32x4_s" if size == 16 else "vextractf64x4_s"]
            length = source.length
            imm = rest * type.bits // (size * 8)
            s.put(d, (formats.vout, op, x, -1, d, -1, 0, length, imm))
            return True
        return False
    if count == 2 * source.lanes and first == 0:
        if size > VECTORS.bytes:
            parts = source.parts
            for k in range(type.parts):
                text = a if k < parts else b
                x = s.vector(source, text, k % parts)
                s.put(d + k, (formats.vmove, OPS["vmovaps"], d + k, x, VECTORS.length))
            return True
        if size >= 32:
            op = OPS["vinsertf64x4" if size == 64 else "vinsertf32x4"]
            x, y = s.vector(source, a), s.vector(source, b)
            s.put(d, (formats.v3, op, d, x, y, -1, 0, type.length, 1))
            return True
        if size == 16:
            x, y = s.vector(source, a), s.vector(source, b)
            s.put(d, (formats.v3, OPS["vmovlhps"], d, x, y, -1, 0, 0, None))
            return True
    return False


def _plan(picks: permutes.Picks, bits: int) -> permutes.Plan:
    return permutes.plan(picks, bits, VECTORS.narrow)


def permute(
    s: Selector, d: int, type: Type, source: Type, a: str, b: str, lanes: tuple[int | None, ...]
) -> None:
    """Any lanes of any registers of two operands, a register of the result at a time."""
    bits = type.bits
    length = max(type.length, source.length)
    per, made = min(source.lanes, VECTORS.bits // bits), min(type.lanes, VECTORS.bits // bits)
    for part in range(type.parts):
        picks = lanes[part * made : part * made + made]
        picks += (None,) * ((128 << length) // bits - made)
        used = sorted({pick // per for pick in picks if pick is not None}) or [0]
        sources = [(a, k) if k < source.parts else (b, k - source.parts) for k in used]
        _collect(s, d + part, source, length, bits, sources, [
            None if pick is None else (used.index(pick // per), pick % per) for pick in picks
        ])


def _collect(
    s: Selector, d: int, source: Type, length: int, bits: int, sources: list[tuple[str, int]],
    picks: list[tuple[int, int] | None],
) -> None:
    """Write d, whose lanes are picked from registers: (number in `sources`, lane)."""
    n = len(picks)
    while len(sources) > 2:
        # All but the last into a register of their own, then the last one's lanes among them.
        final = len(sources) - 1
        numbers = [
            None if pick is None else n + pick[1] if pick[0] == final else k
            for k, pick in enumerate(picks)
        ]
        made = _plan(tuple(numbers), bits)
        t = d if made[0] == "pair" else s.new(VECTOR)
        _planned(s, d, source, length, made, [t, sources[final]])
        picks = [None if pick is None or pick[0] == final else pick for pick in picks]
        sources, d = sources[:-1], t
    found = _plan(tuple([None if p is None else p[0] * n + p[1] for p in picks]), bits)
    _planned(s, d, source, length, found, list(sources))


def _planned(
    s: Selector, d: int, source: Type, length: int, made: tuple,
    sources: list[int | tuple[str, int]],
) -> None:
    """Write the instruction of a plan; a source is a register, or an operand and its part."""

    def register(k: int) -> int:
        x = sources[k]
        return x if isinstance(x, int) else s.vector(source, *x)

    kind, *rest = made
    if kind in ("both", "choose", "cross"):
        _of_avx2(s, d, source, length, made, sources, register)
        return
    if kind == "same":
        s.put(d, (formats.vmove, OPS["vmovaps"], d, register(rest[0]), length))
        return
    if kind == "pair" and _overwrites(s, d, source, sources[0]):
        numbers, y = s.new(VECTOR), register(1)
        op = OPS[rest[0].replace("vpermi2", "vpermt2")]
        s.put(d, (formats.v3t, op, d, numbers, y, -1, 0, length, None))
        load = OPS["vmovups"]
        s.put(numbers, (formats.v3c, load, numbers, -1, rest[-1], -1, 0, length, 0, None))
        return
    op = OPS[rest[0].replace("vpermt2", "vpermi2")]
    if kind == "unary":
        s.put(d, (formats.v3, op, d, -1, register(rest[1]), -1, 0, length, rest[2]))
    elif kind == "mixed":
        x, y = register(rest[1]), register(rest[2])
        s.put(d, (formats.v3, op, d, x, y, -1, 0, length, rest[3]))
    elif kind == "blend":
        k = s.mask_constant(rest[1], (16 << length) * 8 // source.bits)
        s.put(d, (formats.v3, op, d, register(0), register(1), k, 0, length, None))
    elif kind == "table":
        x = register(rest[1])
        s.put(d, (formats.v3c, op, d, x, rest[2], -1, 0, length, 0, None))
    else:
        # The pattern is read into a register: for "pair" the one it is overwritten in.
        x = register(0 if kind == "pair" else rest[1])
        if kind == "pair":
            t, y = d, register(1)
            s.put(d, (formats.v3t, op, d, x, y, -1, 0, length, None))
        else:
            t = s.new(VECTOR)
            s.put(d, (formats.v3, op, d, t, x, -1, 0, length, None))
        s.put(t, (formats.v3c, OPS["vmovups"], t, -1, rest[-1], -1, 0, length, 0, None))


def _of_avx2(
    s: Selector, d: int, source: Type, length: int, made: tuple,
    sources: list[int | tuple[str, int]], register: Callable[[int], int],
) -> None:
    """Write the instructions of a plan that needs several."""
    kind, *rest = made
    if kind == "cross":
        which, here, there = rest
        x, y, z, turned = register(which), s.new(VECTOR), s.new(VECTOR), s.new(VECTOR)
        s.put(d, (formats.v3, OPS["vpord"], d, y, z, -1, 0, length, None))
        shuffle_ = OPS["vpshufb"]
        s.put(y, (formats.v3c, shuffle_, y, x, here, -1, 0, length, 0, None))
        s.put(z, (formats.v3c, shuffle_, z, turned, there, -1, 0, length, 0, None))
        s.put(turned, (formats.v3, OPS["vpermq"], turned, -1, x, -1, 0, length, 0x4E))
        return
    if kind == "both":
        x, y = s.new(VECTOR), s.new(VECTOR)
        blended(s, d, x, y, rest[3], rest[2], length)
        _planned(s, y, source, length, rest[1], sources)
        _planned(s, x, source, length, rest[0], sources)
        return
    blended(s, d, register(0), register(1), rest[1], rest[0], length)


def blended(s: Selector, d: int, x: int, y: int, chosen: int, bits: int, length: int) -> None:
    """Write d = y in the lanes whose bits are set, else x (AVX2)."""
    if bits >= 32:
        op = OPS["vblendps" if bits == 32 else "vblendpd"]
        s.put(d, (formats.v3, op, d, x, y, -1, 0, length, chosen))
        return
    m, size = s.new(VECTOR), bits // 8
    mask = b"".join([
        b"\xff" * size if chosen >> k & 1 else bytes(size) for k in range((16 << length) // size)
    ])
    s.put(d, (formats.v4, OPS["vpblendvb"], d, x, y, m, 0, length, None))
    s.put(m, (formats.v3c, OPS["vmovups"], m, -1, mask, -1, 0, length, 0, None))


def _overwrites(s: Selector, d: int, source: Type, operand: int | tuple[str, int]) -> bool:
    """Whether the first operand of a permutation of two ends here, so that d can be its register.

    Then the pattern is only read, and may stay in a register through a loop.
    """
    if isinstance(operand, int):
        return operand == d
    name, _ = operand
    if source.parts > 1 or not name.startswith("%"):
        return False
    return name not in s.reg and s.tie(name, d)
