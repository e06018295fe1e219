"""Selection for AVX2 of what moves lanes: conversions, shuffles, single lanes, masked memory.

As in `choices`. Lanes are narrowed by a shuffle of each register and joined; two sources are
permuted one by one and blended. What would break it: pieces that are joined in another order.
"""

from __future__ import annotations

import struct

from numjet.cpu.x86.avx2.choices import three_registers, with_lanes
from numjet.cpu.x86.avx2.memory import insert_at
from numjet.cpu.x86.back.encode import OPS
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.instructions import Call, Cast, Extract, Insert, result_of
from numjet.cpu.x86.front.parse import typed
from numjet.cpu.x86.front.types import (
    GENERAL,
    VECTOR,
    Type,
    Unsupported,
    constant,
)  # fmt: skip
from numjet.cpu.x86.select import convert, lanes
from numjet.cpu.x86.select.select import Selector, handles, intrinsic

# What puts pieces of so many bytes behind each other.
_JOINS = {2: "vpunpcklwd", 4: "vpunpckldq", 8: "vmovlhps", 16: "vinsertf32x4"}


def joined(s: Selector, d: int, size: int, count: int) -> list[int]:
    """Registers for `count` pieces of `size` bytes, which are put together in d."""
    if count == 1:
        return [d]
    low, high = s.new(VECTOR), s.new(VECTOR)
    half = size * count // 2
    wide = half == 16
    op = OPS[_JOINS[half]]
    s.put(d, (formats.v3, op, d, low, high, -1, 0, int(wide), 1 if wide else None))
    # What joins the lower half is written last: it runs first.
    upper = joined(s, high, size, count // 2)
    return [*joined(s, low, size, count // 2), *upper]


# -- narrower lanes


@handles("trunc", classes=(VECTOR,), narrow=True)
def narrow(s: Selector, instruction: Cast) -> None:
    """The lower bytes of lanes, brought together in each register."""
    _, name, _, type, x, source = instruction
    d = s.define(name)
    per = source.parts // type.parts
    size = min(source.size, 32) * type.bits // source.bits
    for part in range(type.parts):
        pieces = joined(s, d + part, size, per)
        for k in range(per - 1, -1, -1):
            _take_lower(s, pieces[k], s.vector(source, x, part * per + k), type, source)


def _take_lower(s: Selector, d: int, x: int, type: Type, source: Type) -> None:
    """Write d = the lower parts of a register's lanes, one behind the other."""
    step, size = source.bits // 8, type.bits // 8
    length = source.length
    if step == 8 and size == 4:
        if length:  # lanes 0, 2, then 4, 6
            t = s.new(VECTOR)
            s.put(d, (formats.v3, OPS["vpermq"], d, -1, t, -1, 0, 1, 0x08))
            s.put(t, (formats.v3, OPS["vpshufd"], t, -1, x, -1, 0, 1, 0x08))
        else:
            s.put(d, (formats.v3, OPS["vpshufd"], d, -1, x, -1, 0, 0, 0x08))
        return
    table = bytes([k * step + j for k in range(16 // step) for j in range(size)])
    used = len(table)
    table = table.ljust(16, b"\x80")
    if not length:
        s.put(d, (formats.v3c, OPS["vpshufb"], d, x, table, -1, 0, 0, 0, None))
        return
    t = s.new(VECTOR)
    if used == 8:
        s.put(d, (formats.v3, OPS["vpermq"], d, -1, t, -1, 0, 1, 0x08))
    else:  # the pieces of both halves are 4 or 2 bytes
        high = s.new(VECTOR)
        op = OPS[_JOINS[used]]
        s.put(d, (formats.v3, op, d, t, high, -1, 0, 0, None))
        s.put(high, (formats.vout, OPS["vextracti32x4_s"], t, -1, high, -1, 0, 1, 1))
    s.put(t, (formats.v3c, OPS["vpshufb"], t, x, table * 2, -1, 0, 1, 0, None))


@handles("fptrunc", classes=(VECTOR,), narrow=True)
def narrow_floats(s: Selector, instruction: Cast) -> None:
    """double to float, float to half: an instruction makes half a register of a whole one."""
    _, name, _, type, x, source = instruction
    pair = (source.element, type.element)
    if not type.lanes or pair not in (("double", "float"), ("float", "half")):
        convert.width(s, instruction)
        return
    d = s.define(name)
    per = source.parts // type.parts
    for part in range(type.parts):
        pieces = joined(s, d + part, 16, per)
        for k in range(per - 1, -1, -1):
            y = s.vector(source, x, part * per + k)
            if type.bits == 32:
                op = OPS["vcvtpd2ps"]
                s.put(pieces[k], (formats.v3, op, pieces[k], -1, y, -1, 0, source.length, None))
            else:
                op = OPS["vcvtps2ph_s"]
                s.put(pieces[k], (formats.vout, op, y, -1, pieces[k], -1, 0, source.length, 4))


# -- integers and floats


@handles("sitofp", "uitofp", classes=(VECTOR,), narrow=True)
def to_float(s: Selector, instruction: Cast) -> None:
    """Integers to floats; those of 64 bits, and of 32 without sign, by parts (lanes alone)."""
    op, name, _, type, x, source = instruction
    unsigned = op[0] == "u"
    if not type.lanes:
        if unsigned and source.bits == 64:
            raise Unsupported("an unsigned number of 64 bits")
        convert.to_float(s, instruction)
        return
    if source.bits < 32 or (source.bits == 32 and not unsigned):
        convert.to_float(s, instruction)
        return
    if source.bits != 64 or type.bits != 64:
        raise Unsupported(f"{op} of {source.text} to {type.text}")
    # As numbers: the upper half over 2^84, the lower over 2^52, their sum without both. With sign
    # the upper half's is turned, which adds 2^63.
    d = s.define(name)
    low_power, high_power = 0x4330000000000000, 0x4530000000000000
    both = (1 << 84) + (1 << 52) + (0 if unsigned else 1 << 63)
    number = struct.unpack("<Q", struct.pack("<d", float(both)))[0]
    for part in range(type.parts):
        y = s.vector(source, x, part)
        high, low, t, u = [s.new(VECTOR) for _ in range(4)]
        three_registers(s, "vaddpd", d + part, high, low, type)
        with_lanes(s, "vsubpd", high, t, type, number)
        turned = high_power if unsigned else high_power ^ 0x80000000
        with_lanes(s, "vpxorq", t, u, source, turned)
        s.put(u, (formats.v3s, OPS["vpsrlqi"], u, y, source.length, 32))
        data = low_power.to_bytes(8, "little") * (2 * (source.length + 1))
        blend = (formats.v3c, OPS["vpblendd"], low, y, data, -1, 0, source.length, 0, 0xAA)
        s.put(low, blend)


@handles("fptosi", "fptoui", narrow=True)
def from_float(s: Selector, instruction: Cast) -> None:
    op, name, _, type, x, source = instruction
    _to_integer(s, name, type, x, source, op == "fptosi", False)


@intrinsic("fptosi.sat", "fptoui.sat", narrow=True)
def saturating(s: Selector, instruction: Call, parts: list[str]) -> None:
    """fptosi.sat and fptoui.sat."""
    name, type = result_of(instruction)
    source, x = typed(parts[0])
    _to_integer(s, name, type, x, source, "fptosi" in instruction.callee, True)


def _to_integer(
    s: Selector, name: str, type: Type, x: str, source: Type, signed: bool, saturate: bool
) -> None:
    """floats to integers of 32 bits, toward zero; `saturate`: clamped to the range, NaN to 0."""
    if signed and not type.lanes and not saturate and min(type.bits, source.bits) >= 32:
        d = s.define(name)
        op = OPS[f"vcvtt{source.float_suffix}2si{'q' if type.bits == 64 else ''}"]
        s.put(d, (formats.v3, op, d, -1, s.vector(source, x), -1, 0, 0, None))
        return
    if not signed or type.bits != 32 or not type.lanes or source.bits not in (32, 64):
        raise Unsupported(f"a conversion of {source.text} to {type.text}")
    d = s.define(name)
    if source.bits == 32:
        for part in range(type.parts):
            y = s.vector(source, x, part)
            if not saturate:
                s.put(d + part, (formats.v3, OPS["vcvttps2dq"], d + part, -1, y, -1, 0,
                                 type.length, None))  # fmt: skip
                continue
            # Too large gives the smallest number, whose bits are those of the largest, turned.
            t, u, high, known = [s.new(VECTOR) for _ in range(4)]
            three_registers(s, "vpandd", d + part, t, known, type)
            three_registers(s, "vpxord", t, u, high, type)
            s.put(u, (formats.v3, OPS["vcvttps2dq"], u, -1, y, -1, 0, type.length, None))
            limit = struct.pack("<f", 2.0**31)
            compare = OPS["vcmpps_y"]
            s.put(high, (formats.v3c, compare, high, y, limit, -1, 0, type.length, 1, 29))
            s.put(known, (formats.v3, compare, known, y, y, -1, 0, type.length, 7))
        return
    per = source.parts // type.parts
    for part in range(type.parts):
        pieces = joined(s, d + part, 16, per)
        for k in range(per - 1, -1, -1):
            y, t = s.vector(source, x, part * per + k), pieces[k]
            length = source.length
            if not saturate:
                s.put(t, (formats.v3, OPS["vcvttpd2dq"], t, -1, y, -1, 0, length, None))
                continue
            u, v, w, known = [s.new(VECTOR) for _ in range(4)]
            s.put(t, (formats.v3, OPS["vcvttpd2dq"], t, -1, u, -1, 0, length, None))
            largest, least = struct.pack("<d", 2.0**31 - 1), struct.pack("<d", -(2.0**31))
            s.put(u, (formats.v3c, OPS["vminpd"], u, v, largest, -1, 0, length, 1, None))
            s.put(v, (formats.v3c, OPS["vmaxpd"], v, w, least, -1, 0, length, 1, None))
            three_registers(s, "vandpd", w, y, known, source)
            s.put(known, (formats.v3, OPS["vcmppd_y"], known, y, y, -1, 0, length, 7))


# -- single lanes


_FROM_MEMORY = {32: "vbroadcastss", 64: "vbroadcastsd"}
_TAKEN = {8: "vpextrb_s", 16: "vpextrw_s", 32: "vpextrd_s", 64: "vpextrq_s"}


@handles("extractelement", classes=(GENERAL,), narrow=True)
def extract(s: Selector, instruction: Extract) -> None:
    """A lane of integers, out of its 16 bytes."""
    _, name, _, type, x, vector, k, _ = instruction
    if k[0] == "%" or vector.bits < 8:
        lanes.extract(s, instruction)
        return
    d = s.define(name)
    part, lane = divmod(int(k), 256 // vector.bits)
    half, rest = divmod(lane, 128 // vector.bits)
    y = s.vector(vector, x, part)
    t = s.new(VECTOR) if half else y
    if rest or vector.bits < 32:
        s.put(d, (formats.vout, OPS[_TAKEN[vector.bits]], t, -1, d, -1, 0, 0, rest))
    else:
        move = OPS["vmovq_r_s" if vector.bits == 64 else "vmovd_r_s"]
        s.put(d, (formats.vout, move, t, -1, d, -1, 0, 0, None))
    if half:
        s.put(t, (formats.vout, OPS["vextractf32x4_s"], y, -1, t, -1, 0, 1, 1))


@handles("insertelement", classes=(VECTOR,), narrow=True)
def insert(s: Selector, instruction: Insert) -> None:
    """A lane: all lanes of another register are that scalar, of which one is taken."""
    _, name, _, type, x, scalar, scalar_type, k, _ = instruction
    lane = -1 if k[0] == "%" else int(k)
    if x in ("poison", "undef") and not lane:
        lanes.scalar_to_lane(s, s.define(name), type, scalar, scalar_type)
        return
    if lane < 0:
        insert_at(s, instruction)
        return
    d = s.define(name)
    per = 256 // type.bits
    if x in ("poison", "undef"):
        x = "zeroinitializer"
    zeros = x[0] != "%" and constant(type, x).splat == 0
    if zeros and not lane and type.text == "<4 x float>" and scalar[0] == "%":
        r = s.vector(scalar_type, scalar)
        others = 0b1110  # are zero
        s.put(d, (formats.v3, OPS["vinsertps"], d, r, r, -1, 0, 0, others))
        return
    for part in range(type.parts):
        y = s.vector(type, x, part)
        if lane // per != part:
            s.put(d + part, (formats.vmove, OPS["vmovaps"], d + part, y, type.length))
            continue
        t = s.new(VECTOR)
        lanes.blended(s, d + part, y, t, 1 << lane % per, type.bits, type.length)
        load = s.foldable(scalar) if scalar[0] == "%" and type.bits >= 32 else None
        if load is not None:
            op = "vmovddup" if type.bits == 64 and not type.length else _FROM_MEMORY[type.bits]
            memory = s.address(load.pointer)
            s.put(t, (formats.v3m, OPS[op], t, -1, memory, -1, 0, type.length, 0, None))
            continue
        of_floats = scalar_type.cls == VECTOR
        r = s.vector(scalar_type, scalar) if of_floats else s.general(scalar_type, scalar)
        lanes.all_lanes(s, t, 1, type, r, scalar_type.cls)
