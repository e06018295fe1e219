"""Selection for AVX2 of lanes with computed numbers, of gathers and of memory behind masks.

As in `choices`. A lane with a computed number is found in memory: all lanes are put into the
frame. A gather's mask is a register that the instruction clears. What would break it: an access
beyond the lanes that a mask holds.
"""

from __future__ import annotations

from numjet.cpu.x86.avx2.choices import BLENDS, three_registers
from numjet.cpu.x86.back.encode import GPR, OPS
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.instructions import Call, Extract, Insert, result_of
from numjet.cpu.x86.front.parse import typed
from numjet.cpu.x86.front.types import (
    GENERAL,
    VECTOR,
    Type,
    Unsupported,
    constant,
)  # fmt: skip
from numjet.cpu.x86.select import accesses, lanes
from numjet.cpu.x86.select.accesses import Memory
from numjet.cpu.x86.select.select import FRAME, Selector, handles, intrinsic

_ROOM = "lanes"  # a place in the frame, under a name that no value has
_ROOM_BYTES = 256


def _room(s: Selector, type: Type) -> int:
    """Where all lanes of a value may be put in the frame."""
    if type.size > _ROOM_BYTES:
        raise Unsupported(f"a computed lane of {type.text}")
    if _ROOM not in s.allocas:
        s.allocas[_ROOM] = -(-s.frame // 64) * 64
        s.frame = s.allocas[_ROOM] + _ROOM_BYTES
    return s.allocas[_ROOM]


def _lane(s: Selector, type: Type, index_type: Type, k: str) -> tuple[Memory, int]:
    """The place of a lane in the room, and the register to which `_find` brings its number."""
    if index_type.bits not in (32, 64):
        raise Unsupported("an index of few bits")
    i = s.new(GENERAL) if index_type.bits == 32 else s.need(k)
    return (FRAME, i, type.bits // 8, _room(s, type)), i


def _find(s: Selector, index_type: Type, k: str, i: int) -> None:
    """Bits above a number of 32 bits are unspecified."""
    if index_type.bits == 32:
        s.put(i, (formats.g2, GPR["mov"], 4, i, s.general(index_type, k)))


def _put_away(s: Selector, type: Type, x: str) -> None:
    """Write all lanes to the room."""
    start = _room(s, type)
    for part in range(type.parts):
        where = (FRAME, None, 1, start + 32 * part)
        y = s.vector(type, x, part)
        s.emit((formats.vstore, OPS["vmovups_s"], y, -1, where, -1, 0, type.length, 0, None))


@handles("extractelement", narrow=True)
def extract(s: Selector, instruction: Extract) -> None:
    """A lane; of 32 bits in one register it is brought down by a permutation."""
    _, name, _, type, x, source, k, index_type = instruction
    if k[0] != "%" or (source.bits == 32 and source.parts == 1):
        lanes.extract(s, instruction)
        return
    d = s.define(name)
    where, i = _lane(s, source, index_type, k)
    if type.cls == VECTOR:
        accesses.load_vector(s, type, d, where)
    else:
        accesses.load_general(s, type, d, where)
    _find(s, index_type, k, i)
    _put_away(s, source, x)


def insert_at(s: Selector, instruction: Insert) -> None:
    """A lane with a computed number is replaced."""
    _, name, _, type, x, scalar, scalar_type, k, index_type = instruction
    d = s.define(name)
    start = _room(s, type)
    for part in range(type.parts):
        whole = (FRAME, None, 1, start + 32 * part)
        s.put(d + part, (formats.v3m, OPS["vmovups"], d + part, -1, whole, -1, 0, type.length, 0,
                         None))  # fmt: skip
    where, i = _lane(s, type, index_type, k)
    if scalar_type.cls == VECTOR:
        op = {32: "vmovss_s", 64: "vmovsd_s"}.get(type.bits)
        if op is None:
            raise Unsupported("a lane of half floats")
        r = s.vector(scalar_type, scalar)
        s.emit((formats.vstore, OPS[op], r, -1, where, -1, 0, 0, 0, None))
    else:
        r = s.general(scalar_type, scalar)
        s.emit((formats.gmread, GPR["mov_s"], type.bits // 8, r, where))
    _find(s, index_type, k, i)
    if x not in ("poison", "undef"):
        _put_away(s, type, x)


# -- masked memory: lanes of 32 and 64 bits by an instruction, the first ones by plain moves


def _mask_of(
    s: Selector, type: Type, mask_type: Type, mask: str, part: int, bits: list[int] | None
) -> int:
    """The register of a mask's part, zeros behind lanes that are less than a register."""
    if type.bits < 32:
        raise Unsupported(f"masked memory of {type.text}")
    size = type.bits // 8
    if bits is None:
        m = s.vector(mask_type, mask, part)
        if type.size >= 16:
            return m
        t = s.new(VECTOR)
        ones = (b"\xff" * type.size).ljust(16, b"\0")
        return s.later(t, (formats.v3c, OPS["vpandd"], t, m, ones, -1, 0, 0, 0, None))
    t = s.new(VECTOR)
    data = b"".join([b"\xff" * size if bits[part] >> k & 1 else bytes(size)
                     for k in range((16 << type.length) // size)])  # fmt: skip
    return s.before(t, (formats.v3c, OPS["vmovups"], t, -1, data, -1, 0, type.length, 0, None))


@intrinsic("masked.load", narrow=True)
def masked_load(s: Selector, instruction: Call, parts: list[str]) -> None:
    name, type = result_of(instruction)
    mask_type, mask = typed(parts[2])
    other = typed(parts[3])[1]
    zero = other[0] != "%" and constant(type, other).splat == 0
    d = s.define(name)
    memory = s.address(parts[0][4:])
    bits = accesses.part_bits(type, mask_type, mask) if mask[0] != "%" else None
    every = (1 << type.lanes // type.parts) - 1
    for part in range(type.parts):
        where, to = accesses.beyond(memory, part), d + part
        if (
            bits is not None and (zero or bits[part] == every)
            and accesses.load_first(s, type, to, where, bits[part])
        ):  # fmt: skip
            continue
        if type.bits < 32:
            if bits is not None:
                _load_known(s, type, to, where, bits[part], other, part)
            else:
                _load_chosen(s, type, to, where, s.vector(mask_type, mask, part), other, part)
            continue
        m = _mask_of(s, type, mask_type, mask, part, bits)
        if not zero:
            x, t = s.vector(type, other, part), s.new(VECTOR)
            op = OPS[BLENDS[type.bits]]
            s.put(to, (formats.v4, op, to, x, t, m, 0, type.length, None))
            to = t
        op = OPS["vmaskmovps" if type.bits == 32 else "vmaskmovpd"]
        s.put(to, (formats.v3m, op, to, m, where, -1, 0, type.length, 0, None))


@intrinsic("masked.store", narrow=True)
def masked_store(s: Selector, instruction: Call, parts: list[str]) -> None:
    type, value = typed(parts[0])
    mask_type, mask = typed(parts[3])
    s.memory = instruction.memory
    memory = s.address(parts[1][4:])
    bits = accesses.part_bits(type, mask_type, mask) if mask[0] != "%" else None
    for part in range(type.parts):
        where, x = accesses.beyond(memory, part), s.vector(type, value, part)
        if bits is not None and accesses.store_first(s, type, x, where, bits[part]):
            continue
        if type.bits < 32:
            if bits is not None:
                _store_known(s, type, x, where, bits[part])
            else:
                _store_chosen(s, type, x, where, s.vector(mask_type, mask, part))
            continue
        m = _mask_of(s, type, mask_type, mask, part, bits)
        op = OPS["vmaskmovps_s" if type.bits == 32 else "vmaskmovpd_s"]
        s.emit((formats.vstore, op, x, m, where, -1, 0, type.length, 0, None))


# -- masked memory of lanes of one and two bytes, which has no instruction

_INSERTS = {1: "vpinsrb", 2: "vpinsrw", 4: "vpinsrd", 8: "vpinsrq"}
_EXTRACTS = {1: "vpextrb_s", 2: "vpextrw_s", 4: "vpextrd_s", 8: "vpextrq_s"}


def _pieces(type: Type, bits: int, half: int) -> list[tuple[int, int]]:
    """(first byte, bytes) of what a constant mask holds in 16 bytes of a register."""
    size = type.bits // 8
    held = [bits >> k // size & 1 for k in range(16 * half, 16 * half + 16)]
    found, place = [], 0
    while place < 16:
        if not held[place]:
            place += 1
            continue
        piece = next(n for n in (8, 4, 2, 1) if not place % n and all(held[place : place + n]))
        found.append((place, piece))
        place += piece
    return found


def _load_known(
    s: Selector, type: Type, d: int, memory: Memory, bits: int, other: str, part: int
) -> None:
    """Write d = the lanes of a constant mask, by few moves."""
    halves, x = [d], s.vector(type, other, part)
    if type.length:
        halves = [s.new(VECTOR), s.new(VECTOR)]
        s.put(d, (formats.v3, OPS["vinsertf32x4"], d, *halves, -1, 0, 1, 1))
    base, index, scale, disp = memory
    for half in range(len(halves) - 1, -1, -1):
        to = halves[half]
        for place, piece in reversed(_pieces(type, bits, half)):
            where, before = (base, index, scale, disp + 16 * half + place), s.new(VECTOR)
            op = OPS[_INSERTS[piece]]
            s.put(to, (formats.v3m, op, to, before, where, -1, 0, 0, 0, place // piece))
            to = before
        if half:
            s.put(to, (formats.vout, OPS["vextractf32x4_s"], x, -1, to, -1, 0, 1, 1))
        else:
            s.put(to, (formats.vmove, OPS["vmovaps"], to, x, 0))


def _store_known(s: Selector, type: Type, x: int, memory: Memory, bits: int) -> None:
    base, index, scale, disp = memory
    for half in range(type.length, -1, -1):
        y = s.new(VECTOR) if half else x
        for place, piece in reversed(_pieces(type, bits, half)):
            where = (base, index, scale, disp + 16 * half + place)
            op = OPS[_EXTRACTS[piece]]
            s.emit((formats.vstore, op, y, -1, where, -1, 0, 0, 0, place // piece))
        if half:
            s.put(y, (formats.vout, OPS["vextractf32x4_s"], x, -1, y, -1, 0, 1, 1))


class _Chosen:
    """Addresses of lanes: in memory where a mask holds, else in the frame, without a branch."""

    def __init__(self, s: Selector, type: Type, memory: Memory) -> None:
        self.s, self.type, self.memory = s, type, memory
        self.start, self.room, self.bits = s.new(GENERAL), s.new(GENERAL), s.new(GENERAL)

    def lane(self, k: int) -> Memory:
        """Where lane k lies; what finds that is written by `found`, of the first lane last."""
        self.place = self.s.new(GENERAL)
        return (self.place, None, 1, k * self.type.bits // 8)

    def found(self) -> None:
        """The next bit, from the top, goes to the carry."""
        s, t = self.s, self.place
        s.put(t, (formats.g2t, GPR["cmovb"], 8, t, self.start))
        for _ in range(self.type.bits // 8):
            s.put(self.bits, (formats.g2t, GPR["add"], 4, self.bits, self.bits))
        s.put(t, (formats.gmove, GPR["mov"], 8, t, self.room))

    def begin(self, mask: int) -> None:
        """The addresses and the mask's bits, the last lane's on top."""
        s, type = self.s, self.type
        room = (FRAME, None, 1, _room(s, type))
        s.put(self.room, (formats.gm, GPR["lea"], 8, self.room, room))
        s.put(self.start, (formats.gm, GPR["lea"], 8, self.start, self.memory))
        left = 32 - min(type.size, 32)
        if left:
            s.put(self.bits, (formats.g1t, GPR["shli"], 4, self.bits, left))
        s.put(self.bits, (formats.v3, OPS["vpmovmskb"], self.bits, -1, mask, -1, 0, type.length,
                          None))  # fmt: skip


def _load_chosen(
    s: Selector, type: Type, d: int, memory: Memory, mask: int, other: str, part: int
) -> None:
    """Write d = the lanes of a mask; the others are read from the frame."""
    size = type.bits // 8
    per, halves = min(type.lanes, 16 // size), [d]
    if type.length:
        halves = [s.new(VECTOR), s.new(VECTOR)]
        s.put(d, (formats.v3, OPS["vinsertf32x4"], d, *halves, -1, 0, 1, 1))
    chosen, op = _Chosen(s, type, memory), OPS[_INSERTS[size]]
    for half, to in enumerate(halves):
        for k in range(per):
            before, where = s.new(VECTOR), chosen.lane(half * per + k)
            s.put(to, (formats.v3m, op, to, before, where, -1, 0, 0, 0, k))
            chosen.found()
            to = before
        s.put(to, (formats.v3, OPS["vpxord"], to, to, to, -1, 0, 0, None))
    chosen.begin(mask)
    room = (FRAME, None, 1, _room(s, type))
    x = s.vector(type, other, part)
    s.emit((formats.vstore, OPS["vmovups_s"], x, -1, room, -1, 0, type.length, 0, None))


def _store_chosen(s: Selector, type: Type, x: int, memory: Memory, mask: int) -> None:
    """Write the lanes of a mask, the others to the frame."""
    size = type.bits // 8
    per, op = min(type.lanes, 16 // size), OPS[_EXTRACTS[size]]
    chosen = _Chosen(s, type, memory)
    for half in range(type.length + 1):
        y = s.new(VECTOR) if half else x
        for k in range(per):
            where = chosen.lane(half * per + k)
            s.emit((formats.vstore, op, y, -1, where, -1, 0, 0, 0, k))
            chosen.found()
        if half:
            s.put(y, (formats.vout, OPS["vextractf32x4_s"], x, -1, y, -1, 0, 1, 1))
    chosen.begin(mask)


# -- gathers


@intrinsic("masked.gather", narrow=True)
def gather(s: Selector, instruction: Call, parts: list[str]) -> None:
    """llvm.masked.gather: the first lanes one by one, others by an instruction a register."""
    name, type = result_of(instruction)
    pointers = typed(parts[0])[1]
    mask_type, mask = typed(parts[2])
    other = typed(parts[3])[1]
    bits = constant(mask_type, mask).mask() if mask[0] != "%" else 0
    if bits and not bits & bits + 1 and (
        other == "zeroinitializer" or bits == (1 << type.lanes) - 1
    ):  # fmt: skip
        accesses.one_by_one(s, type, s.define(name), pointers, bits.bit_length())
        return
    if type.bits < 32 or type.size < 16:
        raise Unsupported(f"gather of {type.text}")
    d = s.define(name)
    base, index_type, index, scale = accesses.indices(s, pointers, type.lanes)
    known = accesses.part_bits(type, mask_type, mask) if mask[0] != "%" else None
    # An instruction of few lanes: as many as there are indices and elements in a register.
    count = min(32 // max(type.bits // 8, index_type.bits // 8), type.lanes)
    wide = index_type.bits > type.bits and type.size > 16
    per = type.lanes // type.parts
    word = f"vgather{'q' if index_type.bits == 64 else 'd'}p{type.float_suffix[1]}_y"
    for part in range(type.parts):
        pieces = [d + part]
        if wide:
            low, high = s.new(VECTOR), s.new(VECTOR)
            s.put(d + part, (formats.v3, OPS["vinsertf32x4"], d + part, low, high, -1, 0, 1, 1))
            pieces = [low, high]
        for half in range(len(pieces) - 1, -1, -1):
            first = part * per + half * count
            # The register is set to the other lanes before, the mask's to what is cleared.
            to, m = pieces[half], s.new(VECTOR)
            if s.reg.get(index) == d:  # what is read would be overwritten
                to = s.new(VECTOR)
                s.put(pieces[half], (formats.vmove, OPS["vmovaps"], pieces[half], to, type.length))
            i = _some(s, index_type, index, first, count)
            length = 1 if count * max(type.bits, index_type.bits) == 256 else 0
            s.put(to, (formats.ygather, OPS[word], to, (base, i, scale, 0), m, length))
            _seed_piece(s, to, type, other, part, half)
            x = _mask_of(s, type, mask_type, mask, part, known)
            if half:
                s.put(m, (formats.vout, OPS["vextractf32x4_s"], x, -1, m, -1, 0, 1, 1))
            else:
                s.put(m, (formats.vmove, OPS["vmovaps"], m, x, type.length))


def _some(s: Selector, type: Type, index: str, first: int, count: int) -> int:
    """A register that begins with the indices from `first` on."""
    per = 256 // type.bits
    part, rest = divmod(first, per)
    x = s.vector(type, index, part)
    if not rest:
        return x
    t = s.new(VECTOR)
    return s.later(t, (formats.vout, OPS["vextracti32x4_s"], x, -1, t, -1, 0, 1, 1))


def _seed_piece(s: Selector, d: int, type: Type, other: str, part: int, half: int) -> None:
    """Write what is in the lanes of a register, or of its half, that are not read."""
    if other[0] != "%" and constant(type, other).splat == 0:
        three_registers(s, "vpxord", d, d, d, type)
        return
    x = s.vector(type, other, part)
    if half:
        s.put(d, (formats.vout, OPS["vextractf32x4_s"], x, -1, d, -1, 0, 1, 1))
    else:
        s.put(d, (formats.vmove, OPS["vmovaps"], d, x, type.length))
