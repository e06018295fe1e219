"""Selection of memory accesses: loads, stores, addresses; masked ones, gathers and scatters.

A family of `select.select`. An address is part of the instructions that use it where it fits their
format, and a load with one reader part of that reader. What would break it: a load that is moved to
its reader over a store, of which `Selector.memory` tells.
"""

from __future__ import annotations

from numjet.cpu.x86.back.encode import GPR, OPS
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.instructions import Address, Alloca, Call, Load, Store, result_of
from numjet.cpu.x86.front.parse import typed
from numjet.cpu.x86.front.types import (
    GENERAL,
    MASK,
    PTR,
    TYPES,
    VECTOR,
    VECTORS,
    Type,
    Unsupported,
    constant,
    signed,
)
from numjet.cpu.x86.select.operands import part_mask, seed
from numjet.cpu.x86.select.select import Selector, handles, intrinsic

Memory = tuple[int | None, int | None, int, int]


@handles("alloca")
def alloca(s: Selector, instruction: Alloca) -> None:
    name = instruction.name
    if name not in s.allocas:
        raise Unsupported("an alloca in a branch")
    d = s.define(name)
    s.put(d, (formats.gm, GPR["lea"], 8, d, (0, None, 1, s.allocas[name])))


@handles("getelementptr")
def getelementptr(s: Selector, instruction: Address) -> None:
    _, name, _, type, size, base, index_type, index, _ = instruction
    if type.lanes:
        raise Unsupported("vectors of addresses")
    d = s.define(name)
    if index[0] != "%":
        disp = size * signed(constant(index_type, index).splat or 0, index_type.bits)
        if not -(1 << 31) <= disp < 1 << 31:
            raise Unsupported("a long displacement")
        if base[0] == "%" and base not in s.allocas and s.tie(base, d):
            s.put(d, (formats.g1t, GPR["addi"], 8, d, disp))
            return
        b, i, scale, more = s.address(base)
        s.put(d, (formats.gm, GPR["lea"], 8, d, (b, i, scale, more + disp)))
        return
    if index_type.bits != 64:
        i = s.new(GENERAL)
    else:
        i = s.need(index)
    b = 0 if base in s.allocas else s.general(PTR, base)
    offset = s.allocas.get(base, 0)
    scale = size
    if size not in (1, 2, 4, 8):
        if index_type.bits != 64:
            raise Unsupported("an index of 32 bits")
        t = s.new(GENERAL)
        s.put(d, (formats.gm, GPR["lea"], 8, d, (b, t, 1, offset)))
        s.put(t, (formats.g3i, GPR["imuli"], 8, t, s.need(index), size))
        return
    s.put(d, (formats.gm, GPR["lea"], 8, d, (b, i, scale, offset)))
    if index_type.bits != 64:
        if index_type.bits != 32:
            raise Unsupported("an index of few bits")
        s.put(i, (formats.g2, GPR["movsxd"], 8, i, s.general(index_type, index)))


@handles("load")
def load(s: Selector, instruction: Load) -> None:
    _, name, _, type, pointer, _ = instruction
    d = s.define(name)
    memory = s.address(pointer)
    if type.cls == GENERAL:
        load_general(s, type, d, memory)
    elif type.cls == MASK:
        raise Unsupported("a load of bits")
    else:
        load_vector(s, type, d, memory)


def load_general(s: Selector, type: Type, d: int, memory: Memory) -> None:
    """d = an integer in memory."""
    if type.bits == 64:
        s.put(d, (formats.gm, GPR["mov"], 8, d, memory))
    elif type.bits == 32:
        s.put(d, (formats.gm, GPR["mov"], 4, d, memory))
    elif type.bits == 16:
        s.put(d, (formats.gm, GPR["movzx16"], 4, d, memory))
    else:
        if type.bits == 1:
            s.put(d, (formats.g1t, GPR["andi"], 4, d, 1))
        s.put(d, (formats.gm, GPR["movzx8"], 4, d, memory))


def load_vector(s: Selector, type: Type, d: int, memory: Memory) -> None:
    """d = a float or lanes in memory."""
    base, index, scale, disp = memory
    if type.size >= 16:
        for part in range(type.parts):
            where = (base, index, scale, disp + VECTORS.bytes * part)
            s.put(d + part, (formats.v3m, OPS["vmovups"], d + part, -1, where, -1, 0, type.length,
                             0, None))
    elif type.size in (4, 8):
        op = OPS["vmovsd" if type.size == 8 else "vmovss"]
        s.put(d, (formats.v3m, op, d, -1, memory, -1, 0, 0, 0, None))
    else:
        t = s.new(GENERAL)
        s.put(d, (formats.v3, OPS["vmovd_r"], d, -1, t, -1, 0, 0, None))
        # The address is read before: its registers live until here.
        s.put(t, (formats.gm, GPR["movzx16" if type.size == 2 else "movzx8"], 4, t, memory))


@handles("store")
def store(s: Selector, instruction: Store) -> None:
    _, _, _, type, value, pointer, memory, hint, aligned = instruction
    s.memory = memory
    where = s.address(pointer)
    if type.cls == GENERAL:
        _store_general(s, type, value, where)
    elif type.cls == MASK:
        raise Unsupported("a store of bits")
    elif value[0] != "%" and not type.lanes and type.bits == 32:
        bits = signed(constant(type, value).splat or 0, 32)
        s.emit((formats.gmi, GPR["movi"], 4, where, bits))
    else:
        base, index, scale, disp = where
        for part in range(type.parts):
            x = s.vector(type, value, part)
            there = (base, index, scale, disp + VECTORS.bytes * part)
            store_vector(s, type, x, there, hint and aligned >= min(type.size, VECTORS.bytes))


def _store_general(s: Selector, type: Type, value: str, where: Memory) -> None:
    size = max(type.bits // 8, 1)
    number = s.integer(type, value)
    if number is not None and -(1 << 31) <= number < 1 << 31:
        if type.bits == 1:
            number &= 1
        s.emit((formats.gmi, GPR["movi"], size, where, number))
    else:
        s.emit((formats.gmread, GPR["mov_s"], size, s.general(type, value), where))


def store_vector(s: Selector, type: Type, x: int, where: Memory, nontemporal: bool) -> None:
    """Write a register's lanes to memory, by a non-temporal store if `nontemporal`."""
    if type.size >= 16:
        op = OPS["vmovntps_s" if nontemporal else "vmovups_s"]
        s.emit((formats.vstore, op, x, -1, where, -1, 0, type.length, 0, None))
    elif type.size in (4, 8):
        op = OPS["vmovsd_s" if type.size == 8 else "vmovss_s"]
        s.emit((formats.vstore, op, x, -1, where, -1, 0, 0, 0, None))
    else:
        op = OPS["vpextrw_s" if type.size == 2 else "vpextrb_s"]
        s.emit((formats.vstore, op, x, -1, where, -1, 0, 0, 0, 0))


# -- masked loads and stores


@intrinsic("masked.load")
def masked_load(s: Selector, instruction: Call, parts: list[str]) -> None:
    name, type = result_of(instruction)
    pointer = parts[0][4:]
    mask_type, mask = typed(parts[2])
    other = typed(parts[3])[1]
    d = s.define(name)
    zero = other[0] != "%" and constant(type, other).splat == 0
    if zero and mask[0] != "%" and type.size >= 16:
        memory = s.address(pointer)
        for part, bits in enumerate(part_bits(type, mask_type, mask)):
            _load_lanes(s, type, d + part, beyond(memory, part), bits)
        return
    k0 = _mask(s, mask_type, mask)
    if k0 == ALL and type.size >= 16:
        load_vector(s, type, d, s.address(pointer))
        return
    if k0 == ALL:
        k0 = s.mask_constant((1 << type.lanes) - 1, type.lanes)
    base, index, scale, disp = s.address(pointer)
    masked = OPS[_MASKED[type.letter]]
    tied = not zero and other[0] == "%" and s.tie(other, d)
    for part in range(type.parts):
        k = part_mask(s, k0, type, part)
        where = (base, index, scale, disp + VECTORS.bytes * part)
        format = formats.v3m if zero else formats.v3mt
        s.put(d + part, (format, masked, d + part, -1, where, k, int(zero), type.length, 0,
                         None))
        if not zero and not tied:
            seed(s, d + part, type, other, part)


ALL = -9  # a mask that holds everywhere
_MASKED = {"b": "vmovdqu8", "w": "vmovdqu16", "d": "vmovups", "q": "vmovupd"}
_PLAIN = {32: ("vmovss", 0), 64: ("vmovsd", 0), 128: ("vmovups", 0), 256: ("vmovups", 1),
          512: ("vmovups", 2)}  # fmt: skip


def part_bits(type: Type, mask_type: Type, mask: str) -> list[int]:
    """The bits of a constant mask, by parts."""
    bits, lanes = constant(mask_type, mask).mask(), type.lanes // type.parts
    return [bits >> lanes * part & (1 << lanes) - 1 for part in range(type.parts)]


def _first(type: Type, bits: int) -> tuple[str, int] | None:
    """(op, length) of a move of just the lanes of a mask, where they are the first ones.

    What has been stored without a mask can be read again at once, what was masked cannot.
    """
    return None if bits & (bits + 1) else _PLAIN.get(bits.bit_length() * type.bits)


def beyond(memory: Memory, part: int) -> Memory:
    """Where a part of a value lies."""
    base, index, scale, disp = memory
    return base, index, scale, disp + VECTORS.bytes * part


def load_first(s: Selector, type: Type, d: int, memory: Memory, bits: int) -> bool:
    """Read the lanes of a constant mask where a plain move does that."""
    first = _first(type, bits)
    if first is not None:
        s.put(d, (formats.v3m, OPS[first[0]], d, -1, memory, -1, 0, first[1], 0, None))
    elif not bits:
        s.put(d, (formats.v3, OPS["vpxord"], d, d, d, -1, 0, 0, None))
    return first is not None or not bits


def store_first(s: Selector, type: Type, x: int, memory: Memory, bits: int) -> bool:
    """Write the lanes of a constant mask where a plain move does that."""
    first = _first(type, bits)
    if first is not None:
        s.emit((formats.vstore, OPS[first[0] + "_s"], x, -1, memory, -1, 0, first[1], 0, None))
    return first is not None or not bits


def _load_lanes(s: Selector, type: Type, d: int, memory: Memory, bits: int) -> None:
    """Read the lanes of a constant mask into a register, zeros into the others."""
    if not load_first(s, type, d, memory, bits):
        k = s.mask_constant(bits, type.lanes // type.parts)
        op = OPS[_MASKED[type.letter]]
        s.put(d, (formats.v3m, op, d, -1, memory, k, 1, type.length, 0, None))


def _store_lanes(s: Selector, type: Type, x: int, memory: Memory, bits: int) -> None:
    """Write the lanes of a constant mask."""
    if not store_first(s, type, x, memory, bits):
        k = s.mask_constant(bits, type.lanes // type.parts)
        op = OPS[_MASKED[type.letter] + "_s"]
        s.emit((formats.vstore, op, x, -1, memory, k, 0, type.length, 0, None))


def _mask(s: Selector, type: Type, text: str) -> int:
    if text[0] == "%":
        return s.need(text)
    bits = constant(type, text).mask()
    if bits == (1 << type.lanes) - 1:
        return ALL
    return s.mask_constant(bits, type.lanes)


@intrinsic("masked.store")
def masked_store(s: Selector, instruction: Call, parts: list[str]) -> None:
    type, value = typed(parts[0])
    pointer = parts[1][4:]
    mask_type, mask = typed(parts[3])
    s.memory = instruction.memory
    if mask[0] != "%" and type.size >= 16:
        memory = s.address(pointer)
        for part, bits in enumerate(part_bits(type, mask_type, mask)):
            _store_lanes(s, type, s.vector(type, value, part), beyond(memory, part), bits)
        return
    k0 = _mask(s, mask_type, mask)
    base, index, scale, disp = s.address(pointer)
    op = OPS[_MASKED[type.letter] + "_s"]
    if k0 == ALL and type.size < 16:
        k0 = s.mask_constant((1 << type.lanes) - 1, type.lanes)
    for part in range(type.parts):
        where = (base, index, scale, disp + VECTORS.bytes * part)
        x = s.vector(type, value, part)
        if k0 == ALL:
            store_vector(s, type, x, where, False)
            continue
        k = part_mask(s, k0, type, part)
        s.emit((formats.vstore, op, x, -1, where, k, 0, type.length, 0, None))


@intrinsic("prefetch")
def prefetch(s: Selector, instruction: Call, parts: list[str]) -> None:
    write, locality = parts[1].split()[1], parts[2].split()[1]
    word = "prefetchw" if write == "1" else "prefetch" + {"0": "nta", "1": "t2", "2": "t1",
                                                         "3": "t0"}[locality]
    s.memory = instruction.memory
    s.emit((formats.gprefetch, GPR[word], s.address(parts[0][4:])))


# -- gathers and scatters: addresses that are a base and a vector of indices


def indices(s: Selector, pointers: str, lanes: int) -> tuple[int, Type, str, int]:
    """(base register, type of the indices, the indices, scale) behind a vector of pointers."""
    made = s.defs.get(pointers)
    if not isinstance(made, Address) or made.base_type.lanes:
        raise Unsupported("pointers of lanes from elsewhere")
    size, base, index_type, index = made.size, made.base, made.offset_type, made.offset
    if size not in (1, 2, 4, 8) or index_type.bits not in (32, 64):
        raise Unsupported("indices of lanes in other units")
    if index[0] != "%" and index_type.bits == 64:
        numbers = [signed(lane or 0, 64) for lane in constant(index_type, index).lanes]
        if all(-(1 << 31) <= number < 1 << 31 for number in numbers):
            index_type = TYPES[f"<{lanes} x i32>"]
            index = f"<{', '.join(f'i32 {number}' for number in numbers)}>"
    return s.general(PTR, base), index_type, index, size


def _plan(s: Selector, type: Type, pointers: str, word: str) -> tuple:
    """(opcode, base, index register, scale, length)."""
    if type.bits not in (32, 64) or type.parts > 1:
        raise Unsupported(f"{word} of {type.text}")
    base, index_type, index, scale = indices(s, pointers, type.lanes)
    if index_type.parts > 1:
        raise Unsupported("indices in several registers")
    total = max(type.bits, index_type.bits) * type.lanes
    length = 0 if total <= 128 else 1 if total == 256 else 2
    op = OPS[f"v{word}{'q' if index_type.bits == 64 else 'd'}{type.float_suffix}"
             + ("_s" if word == "scatter" else "")]
    return op, base, s.vector(index_type, index), scale, length


def _own_mask(s: Selector, type: Type, mask_type: Type, mask: str) -> int:
    """A register of its own for the mask, which the instruction clears."""
    k = s.new(MASK)
    if mask[0] == "%":
        s.later(k, (formats.vmove, OPS["kmovq"], k, s.need(mask), 0))
        return k
    bits = constant(mask_type, mask).mask()
    if bits == (1 << type.lanes) - 1 and type.lanes == 8:
        s.later(k, (formats.v3, OPS["kxnorb"], k, k, k, -1, 0, 0, None))
    elif bits == (1 << type.lanes) - 1 and type.lanes == 16:
        s.later(k, (formats.v3, OPS["kxnorw"], k, k, k, -1, 0, 0, None))
    else:
        s.later(k, (formats.vmove, OPS["kmovq"], k, s.mask_constant(bits, type.lanes), 0))
    return k


@intrinsic("masked.gather")
def gather(s: Selector, instruction: Call, parts: list[str]) -> None:
    """llvm.masked.gather"""
    name, type = result_of(instruction)
    pointers = typed(parts[0])[1]
    mask_type, mask = typed(parts[2])
    other = typed(parts[3])[1]
    d = s.define(name)
    bits = constant(mask_type, mask).mask() if mask[0] != "%" else 0
    if bits and not bits & bits + 1 and other == "zeroinitializer":
        one_by_one(s, type, d, pointers, bits.bit_length())
        return
    op, base, index, scale, length = _plan(s, type, pointers, "gather")
    k = _own_mask(s, type, mask_type, mask)
    if index == d:
        t = s.new(VECTOR)
        s.put(d, (formats.vmove, OPS["vmovaps"], d, t, type.length))
        d = t
    s.put(d, (formats.vgather, op, d, (base, index, scale, 0), k, length))
    if other[0] != "%" or not s.tie(other, d):
        seed(s, d, type, other)


# By the bits of an element: what reads the first, what puts another behind it, and the unit of its
# immediate (None: it has none).
_ELEMENTS = {
    8: ("vpinsrb", "vpinsrb", 1), 16: ("vpinsrw", "vpinsrw", 1),
    32: ("vmovss", "vinsertps", 16), 64: ("vmovsd", "vmovhps", None),
}  # fmt: skip


class OneByOne:
    """The first lanes of a gather, each read by a load of its own; the last is written first.

    The instruction takes 26 cycles for 16 floats in the first cache on Zen 4, this 20, up to an
    eighth longer than it where they are farther; on processors of Intel's that clear buffers
    behind the instruction (Gather Data Sampling) it takes longer still.
    """

    def __init__(self, s: Selector, type: Type, d: int, pointers: str, count: int) -> None:
        self.s, self.type, self.count = s, type, count
        self.base, self.index_type, self.index, self.scale = indices(s, pointers, type.lanes)
        self.known: list[int] | None = None
        if self.index[0] != "%":
            given = constant(self.index_type, self.index).lanes
            self.known = [signed(x or 0, self.index_type.bits) * self.scale for x in given]
        self.word = -1  # the register of two indices
        self.quarter, self.taken = -1, -1  # what they are taken from, and which quarter that is
        lanes = type.lanes // type.parts
        for part in range(type.parts - 1, -1, -1):
            self.lie(d + part, part * lanes, lanes)

    def lie(self, d: int, first: int, count: int) -> None:
        """d = `count` elements from `first` on."""
        s, half = self.s, count // 2
        size, on = count * self.type.bits, min(self.count - first, count)
        if on <= 0:
            s.put(d, (formats.v3, OPS["vpxord"], d, d, d, -1, 0, 0, None))
            return
        if size > 128:
            low, high = s.new(VECTOR), s.new(VECTOR)
            op, length = ("vinsertf64x4", 2) if size == 512 else ("vinsertf32x4", 1)
            s.put(d, (formats.v3, OPS[op], d, low, high, -1, 0, length, 1))
            self.lie(high, first + half, half)
            self.lie(low, first, half)
            return
        bits = self.type.bits
        begin, behind, unit = _ELEMENTS[bits]
        for lane in range(first + on - 1, first, -1):
            before = s.new(VECTOR)
            imm = None if unit is None else lane % (128 // bits) * unit
            self.read(lane, (formats.v3m, OPS[behind], d, before), imm)
            d = before
        if bits >= 32:
            self.read(first, (formats.v3m, OPS[begin], d, -1), None)
        else:
            before = s.new(VECTOR)
            self.read(first, (formats.v3m, OPS[begin], d, before), 0)
            s.put(before, (formats.v3, OPS["vpxord"], before, before, before, -1, 0, 0, None))

    def read(self, lane: int, instruction: tuple, imm: int | None) -> None:
        """`instruction` with the element of a lane as its operand, behind what finds its index."""
        s, d = self.s, instruction[2]
        if self.known is not None:
            where: Memory = (self.base, None, 1, self.known[lane])
            s.put(d, (*instruction, where, -1, 0, 0, 0, imm))
            return
        narrow = self.index_type.bits == 32
        odd = narrow and lane % 2
        if not narrow or odd or lane == self.count - 1:
            self.word = s.new(GENERAL)
        i = s.new(GENERAL) if narrow and not odd else self.word
        s.put(d, (*instruction, (self.base, i, self.scale, 0), -1, 0, 0, 0, imm))
        if odd:
            s.put(i, (formats.g1t, GPR["sari"], 8, i, 32))
            return
        if narrow:
            s.put(i, (formats.g2, GPR["movsxd"], 8, i, self.word))
        self.take(lane * self.index_type.bits // 64)

    def take(self, word: int) -> None:
        """The indices of one word, out of a quarter of their register."""
        s = self.s
        part, quarter = divmod(word // 2, VECTORS.bytes // 16)
        if not quarter:
            x = s.vector(self.index_type, self.index, part)
        else:
            if self.taken != word // 2:
                self.quarter, self.taken = s.new(VECTOR), word // 2
            x = self.quarter
        out = (formats.vout, OPS["vpextrq_s" if word % 2 else "vmovq_r_s"], x, -1, self.word)
        s.put(self.word, (*out, -1, 0, 0, 1 if word % 2 else None))
        if quarter and not word % 2:
            whole = s.vector(self.index_type, self.index, part)
            length = self.index_type.length
            s.put(x, (formats.vout, OPS["vextractf32x4_s"], whole, -1, x, -1, 0, length, quarter))


def one_by_one(s: Selector, type: Type, d: int, pointers: str, count: int) -> None:
    """Write d = the first `count` elements that pointers name, and zeros."""
    OneByOne(s, type, d, pointers, count)


@intrinsic("masked.scatter")
def scatter(s: Selector, instruction: Call, parts: list[str]) -> None:
    """llvm.masked.scatter: in the order of lanes."""
    type, value = typed(parts[0])
    pointers = typed(parts[1])[1]
    mask_type, mask = typed(parts[3])
    s.memory = instruction.memory
    op, base, index, scale, length = _plan(s, type, pointers, "scatter")
    x = s.vector(type, value)
    k = _own_mask(s, type, mask_type, mask)
    s.emit((formats.vscatter, op, x, (base, index, scale, 0), k, length))
