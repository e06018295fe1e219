"""Selection of loads, stores and addresses."""

from __future__ import annotations

from numjet.cpu.x86.back.encode import GPR, OPS
from numjet.cpu.x86.front import forms
from numjet.cpu.x86.front.instructions import Address, Alloca, Load, Store
from numjet.cpu.x86.front.types import GENERAL, MASK, PTR, Type, Unsupported, constant, signed
from numjet.cpu.x86.select.select import Selector, handles

Memory = tuple[int | None, int | None, int, int]


@handles("alloca")
def alloca(s: Selector, instruction: Alloca) -> None:
    name = instruction.name
    if name not in s.allocas:
        raise Unsupported("an alloca in a branch")
    d = s.define(name)
    s.put(d, (forms.gm, GPR["lea"], 8, d, (0, None, 1, s.allocas[name])))


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
            s.put(d, (forms.g1t, GPR["addi"], 8, d, disp))
            return
        b, i, scale, more = s.address(base)
        s.put(d, (forms.gm, GPR["lea"], 8, d, (b, i, scale, more + disp)))
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
        s.put(d, (forms.gm, GPR["lea"], 8, d, (b, t, 1, offset)))
        s.put(t, (forms.g3i, GPR["imuli"], 8, t, s.need(index), size))
        return
    s.put(d, (forms.gm, GPR["lea"], 8, d, (b, i, scale, offset)))
    if index_type.bits != 64:
        if index_type.bits != 32:
            raise Unsupported("an index of few bits")
        s.put(i, (forms.g2, GPR["movsxd"], 8, i, s.general(index_type, index)))


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
        s.put(d, (forms.gm, GPR["mov"], 8, d, memory))
    elif type.bits == 32:
        s.put(d, (forms.gm, GPR["mov"], 4, d, memory))
    elif type.bits == 16:
        s.put(d, (forms.gm, GPR["movzx16"], 4, d, memory))
    else:
        if type.bits == 1:
            s.put(d, (forms.g1t, GPR["andi"], 4, d, 1))
        s.put(d, (forms.gm, GPR["movzx8"], 4, d, memory))


def load_vector(s: Selector, type: Type, d: int, memory: Memory) -> None:
    """d = a float or lanes in memory."""
    base, index, scale, disp = memory
    if type.size >= 16:
        for part in range(type.parts):
            where = (base, index, scale, disp + 64 * part)
            s.put(d + part, (forms.v3m, OPS["vmovups"], d + part, -1, where, -1, 0, type.length,
                             0, None))
    elif type.size in (4, 8):
        op = OPS["vmovsd" if type.size == 8 else "vmovss"]
        s.put(d, (forms.v3m, op, d, -1, memory, -1, 0, 0, 0, None))
    else:
        t = s.new(GENERAL)
        s.put(d, (forms.v3, OPS["vmovd_r"], d, -1, t, -1, 0, 0, None))
        # The address is read before: its registers live until here.
        s.put(t, (forms.gm, GPR["movzx16" if type.size == 2 else "movzx8"], 4, t, memory))


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
        s.emit((forms.gmi, GPR["movi"], 4, where, bits))
    else:
        base, index, scale, disp = where
        for part in range(type.parts):
            x = s.vector(type, value, part)
            there = (base, index, scale, disp + 64 * part)
            store_vector(s, type, x, there, hint and aligned >= min(type.size, 64))


def _store_general(s: Selector, type: Type, value: str, where: Memory) -> None:
    size = max(type.bits // 8, 1)
    number = s.integer(type, value)
    if number is not None and -(1 << 31) <= number < 1 << 31:
        if type.bits == 1:
            number &= 1
        s.emit((forms.gmi, GPR["movi"], size, where, number))
    else:
        s.emit((forms.gmread, GPR["mov_s"], size, s.general(type, value), where))


def store_vector(s: Selector, type: Type, x: int, where: Memory, past: bool) -> None:
    """Write a register's lanes to memory; past: beside the caches."""
    if type.size >= 16:
        op = OPS["vmovntps_s" if past else "vmovups_s"]
        s.emit((forms.vstore, op, x, -1, where, -1, 0, type.length, 0, None))
    elif type.size in (4, 8):
        op = OPS["vmovsd_s" if type.size == 8 else "vmovss_s"]
        s.emit((forms.vstore, op, x, -1, where, -1, 0, 0, 0, None))
    else:
        op = OPS["vpextrw_s" if type.size == 2 else "vpextrb_s"]
        s.emit((forms.vstore, op, x, -1, where, -1, 0, 0, 0, 0))

