"""Machine code of x86-64 with AVX-512 or AVX2: instructions, labels and constants, to bytes.

For: the direct generator alone. Functions append one instruction to a `Code`; nothing is checked
that the generator knows already. Registers are numbers: 0-31 vectors, 0-15 general (in the order of
the machine: rax rcx rdx rbx rsp rbp rsi rdi r8...), 0-7 masks. Operands have the places they have
in the encoding, reg, vvvv and r/m, which is the order of Intel's syntax save for stores and the
like (names in `_s`, whose destination is r/m) and shifts by a count (`vpslldi`: vvvv is the
destination, reg is 0). What is not there (vvvv of two-operand instructions) is 0.

A vector instruction is written in its VEX form, which is shorter, wherever there is one. A jump
takes two bytes where it reaches; `Code.finish` decides. Constants are labels of data behind the
code, equal ones once, and instructions read them relative to their own address, so that the text
needs no relocation save for the addresses of symbols outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from numjet.core.memo import remembered
from numjet.cpu.x86.back import opcodes
from numjet.cpu.x86.front.types import VECTORS, Unsupported

_PREFIX = {"np": 0, "66": 1, "f3": 2, "f2": 3}
_MAP = {"0f": 1, "0f38": 2, "0f3a": 3}
_BYTE_REGISTERS = (4, 5, 6, 7)  # spl bpl sil dil need a REX prefix, else they mean ah ch dh bh

# What a register adds to an EVEX prefix and ModRM byte, by number; the prefix holds bits inverted.
_REG = [(r >> 3 & 1) << 15 | (r >> 4) << 12 | (r & 7) << 43 for r in range(32)]
_VVVV = [(r & 15) << 19 | (r >> 4) << 27 for r in range(32)]
_RM = [(r >> 3 & 1) << 13 | (r >> 4) << 14 | (r & 7) << 40 for r in range(32)]
# The same for VEX with three bytes.
_VEX_REG = [(r >> 3) << 15 | (r & 7) << 35 for r in range(16)]
_VEX_RM = [(r >> 3) << 13 | (r & 7) << 32 for r in range(16)]


class Op:
    """One line of `opcodes.VECTOR`, with the constant bits of its encodings as integers."""

    __slots__ = (
        "element", "evex", "fixed", "memory_vex", "name", "only_vex", "units", "vex2", "vex3",
    )

    def __init__(self, name: str, line: str) -> None:
        self.name = name
        prefix, table, w, opcode, memory, vex, *length = line.split()
        pp, mm = _PREFIX[prefix], _MAP[table]
        code, _, digit = opcode.partition("/")
        byte, extension = int(code, 16), int(digit or 0) << 3
        self.fixed = int("".join(length).removeprefix("L") or -1)
        self.units, self.element = _memory_units(memory)
        self.only_vex = memory == "V"
        self.memory_vex = vex in ("v", "v1")
        self.evex = (
            0x62 | (0xF0 | mm) << 8 | (int(w) << 7 | 0x7C | pp) << 16 | 0x08 << 24
            | byte << 32 | (0xC0 | extension) << 40
        )
        self.vex3 = self.vex2 = 0
        if vex != "-":
            wide = vex == "v1"
            tail = byte | (0xC0 | extension) << 8
            self.vex3 = 0xC4 | (0xE0 | mm) << 8 | (wide << 7 | 0x78 | pp) << 16 | tail << 24
            if mm == 1 and not wide:
                self.vex2 = 0xC5 | (0xF8 | pp) << 8 | tail << 16


def _memory_units(memory: str) -> tuple[tuple[int, int, int], int]:
    """Bytes of the memory operand for the three lengths, and of one broadcast element or 0."""
    if memory in ("-", "V"):
        return (1, 1, 1), 0
    if memory == "D":
        return (8, 32, 64), 0
    if memory[0] in "FHQO":
        part = "FHQO".index(memory[0])
        return (16 >> part, 32 >> part, 64 >> part), int(memory[1:] or 0)
    return (int(memory),) * 3, 0


class General:
    """One line of `opcodes.GENERAL`."""

    __slots__ = (
        "byte_form", "byte_rm", "immediate", "name", "narrow", "opcode", "plain", "prefix", "reg",
        "wide",
    )

    def __init__(self, name: str, line: str) -> None:
        self.name = name
        prefix, opcode, *flags = line.split()
        code, _, digit = opcode.partition("/")
        self.prefix = b"" if prefix == "-" else bytes.fromhex(prefix)
        self.opcode = bytes.fromhex(code)
        self.reg = int(digit or 0)
        self.byte_form = self.opcode[:-1] + bytes([self.opcode[-1] - 1]) if "b" in flags else b""
        self.byte_rm = "8" in flags
        self.plain = not self.prefix and not self.byte_rm
        self.wide = "4" not in flags
        self.immediate = next((flag for flag in flags if flag in ("i8", "is", "iz")), "")
        # The form whose immediate is a byte that is extended.
        self.narrow = bytes([self.opcode[-1] + 2]) if self.immediate == "is" else b""


class _Ops(dict[str, Op]):
    def __missing__(self, name: str) -> Op:
        op = self[name] = Op(name, opcodes.VECTOR[name])
        return op


class _Generals(dict[str, General]):
    def __missing__(self, name: str) -> General:
        op = self[name] = General(name, opcodes.GENERAL[name])
        return op


OPS = _Ops()
GPR = _Generals()

_LABEL, _JUMP, _ALIGN, _ADDRESS = range(4)
_ALWAYS = -1  # the condition of an unconditional jump

# Instructions of 1 to 9 bytes that do nothing, as both makers recommend them.
_NOPS = [
    bytes.fromhex(text)
    for text in (
        "", "90", "6690", "0f1f00", "0f1f4000", "0f1f440000", "660f1f440000", "0f1f8000000000",
        "0f1f840000000000", "660f1f840000000000",
    )
]


class Code:
    """Text under construction: bytes, and marks for what depends on where the bytes will lie."""

    __slots__ = ("_labels", "buffer", "constants", "data", "marks", "slots")

    def __init__(self) -> None:
        self.buffer = bytearray()
        # (position in buffer, kind, label, extra), in order; jumps and padding take no room yet
        self.marks: list[tuple[int, int, int, int]] = []
        self.constants: dict[bytes, int] = {}
        self.slots: dict[str, int] = {}
        self.data: list[tuple[int, bytes, int]] = []  # (label, bytes, alignment)
        self._labels = 0

    def label(self) -> int:
        """A new label, to be `place`d once."""
        self._labels += 1
        return self._labels - 1

    def place(self, label: int) -> None:
        """`label` is here."""
        self.marks.append((len(self.buffer), _LABEL, label, 0))

    def align(self, to: int) -> None:
        """Fill with instructions that do nothing up to a multiple of `to`, a power of two <= 64."""
        self.marks.append((len(self.buffer), _ALIGN, 0, to))

    def constant(self, data: bytes) -> int:
        """The label of read-only `data`, aligned to its size, at most 64; equal data once."""
        label = self.constants.get(data)
        if label is None:
            alignment = 1 << min(len(data) - 1, 63).bit_length()
            label = self.constants[data] = self.block(data, alignment)
        return label

    def block(self, data: bytes, alignment: int) -> int:
        """The label of read-only `data` of its own."""
        label = self.label()
        self.data.append((label, data, alignment))
        return label

    def slot(self, symbol: str) -> int:
        """The label of eight bytes that hold the address of `symbol`."""
        label = self.slots.get(symbol)
        if label is None:
            label = self.slots[symbol] = self.block(bytes(8), 8)
        return label

    def jump(self, label: int) -> None:
        self.marks.append((len(self.buffer), _JUMP, label, _ALWAYS))

    def jump_if(self, condition: int, label: int) -> None:
        """condition: a value of `opcodes.CONDITIONS`."""
        self.marks.append((len(self.buffer), _JUMP, label, condition))

    def call(self, label: int) -> None:
        """Call code at a label."""
        self.buffer.append(0xE8)
        self._address(label, 0)

    def call_symbol(self, symbol: str) -> None:
        """Call through the slot of `symbol`, which may be anywhere."""
        self.buffer += b"\xff\x15"
        self._address(self.slot(symbol), 0)

    def _address(self, label: int, trailing: int) -> None:
        """Four bytes: `label` relative to the end of this instruction, `trailing` bytes later."""
        self.marks.append((len(self.buffer), _ADDRESS, label, trailing))
        self.buffer += b"\0\0\0\0"

    def finish(self) -> tuple[bytes, list[int], list[tuple[int, str]]]:
        """The text with its constants behind it, the places of the labels, and the relocations.

        A relocation (place, symbol) wants the 64-bit address of the symbol at that place.
        The text has to be aligned to 64 bytes.
        """
        places = [0] * self._labels
        long, size = self._layout(places)
        out = bytearray()
        done = 0
        for number, (position, kind, label, extra) in enumerate(self.marks):
            if kind == _LABEL:
                continue
            out += self.buffer[done:position]
            done = position
            if kind == _JUMP:
                out += _jump(extra, places[label] - len(out), number in long)
            elif kind == _ALIGN:
                out += _padding(-len(out) % extra)
            else:
                out += (places[label] - len(out) - 4 - extra).to_bytes(4, "little", signed=True)
                done += 4
        out += self.buffer[done:]
        for label, data, _ in self._ordered_data():
            out += bytes(places[label] - len(out))
            out += data
        return bytes(out), places, [(places[at], symbol) for symbol, at in self.slots.items()]

    def _layout(self, places: list[int]) -> tuple[set[int], int]:
        """Fill in `places`; returns the numbers of the marks that are long jumps, and the size."""
        long: set[int] = set()
        marks = [(n, *mark) for n, mark in enumerate(self.marks) if mark[1] != _ADDRESS]
        while True:
            shift = 0  # what jumps and padding have added so far
            jumps = []
            for number, position, kind, label, extra in marks:
                if kind == _LABEL:
                    places[label] = position + shift
                elif kind == _JUMP:
                    if number in long:
                        shift += 5 + (extra != _ALWAYS)
                    else:
                        shift += 2
                        jumps.append((number, label, position + shift))
                else:
                    shift += -(position + shift) % extra
            size = len(self.buffer) + shift
            grown = [n for n, label, end in jumps if not -128 <= places[label] - end <= 127]
            if not grown:
                break
            long.update(grown)
        for label, data, alignment in self._ordered_data():
            size += -size % alignment
            places[label] = size
            size += len(data)
        return long, size

    def _ordered_data(self) -> Iterator[tuple[int, bytes, int]]:
        return iter(sorted(self.data, key=lambda item: -item[2]))


def _jump(condition: int, distance: int, long: bool) -> bytes:
    """distance: of the target from the first byte of the jump."""
    if not long:
        head = b"\xeb" if condition == _ALWAYS else bytes((0x70 | condition,))
        return head + (distance - 2).to_bytes(1, "little", signed=True)
    head = b"\xe9" if condition == _ALWAYS else bytes((0x0F, 0x80 | condition))
    return head + (distance - len(head) - 4).to_bytes(4, "little", signed=True)


def _padding(count: int) -> bytes:
    return _NOPS[9] * (count // 9) + _NOPS[count % 9]


@remembered("encoded addresses", 4096)
def _address(
    base: int | None, index: int | None, scale: int, disp: int, unit: int
) -> tuple[int, int, bytes]:
    """ModRM's mod and rm for [base + index*scale + disp], the high bits, and the bytes after it.

    unit: what a displacement of one byte counts. The high bits are those of the registers, base's
    as 1, index's as 2, and the fifth bit of a vector of indices as 4.
    """
    high = 0 if base is None else base >> 3
    if index is not None:
        high |= (index >> 3 & 1) << 1 | (index >> 4) << 2
    low = 5 if base is None else base & 7
    if index is None and low != 4 and base is not None:
        rm, tail = low, b""
    else:
        chosen = 4 if index is None else (scale.bit_length() - 1) << 3 | index & 7
        rm, tail = 4, bytes((chosen << 3 | low,))
    if not -(1 << 31) <= disp < 1 << 31:
        raise Unsupported("a long displacement")
    if base is None:
        return rm, high, tail + disp.to_bytes(4, "little", signed=True)
    if disp == 0 and low != 5:
        return rm, high, tail
    part, rest = divmod(disp, unit)
    if not rest and -128 <= part <= 127:
        return rm | 0x40, high, tail + part.to_bytes(1, "little", signed=True)
    return rm | 0x80, high, tail + disp.to_bytes(4, "little", signed=True)


# What the high bits of `_address` change in EVEX and in VEX with three bytes.
_EVEX_HIGH = [(h & 1) << 13 | (h >> 1 & 1) << 14 | (h >> 2) << 27 for h in range(8)]
_VEX_HIGH = [(h & 1) << 13 | (h >> 1 & 1) << 14 for h in range(4)]


def rr(
    code: Code, op: Op, reg: int, vvvv: int, rm: int,
    k: int = 0, z: int = 0, length: int = 2, imm: int | None = None,
) -> None:
    """Append `op` on registers. k: the mask, 0 for none; z: zero what it leaves out.

    length: 0 for 16, 1 for 32, 2 for 64 bytes; scalars have their own.
    """
    if op.fixed >= 0:
        length = op.fixed
    if op.vex3 and not k and (length < 2 or op.only_vex) and (reg | vvvv | rm) < 16:
        _vex(code, op, reg, vvvv, rm, length)
    else:
        _wide(op)
        word = op.evex ^ _REG[reg] ^ _VVVV[vvvv] ^ _RM[rm] ^ (z << 31 | length << 29 | k << 24)
        code.buffer += word.to_bytes(6, "little")
    if imm is not None:
        code.buffer.append(imm & 255)


def _wide(op: Op) -> None:
    if VECTORS.narrow:
        raise Unsupported(f"{op.name} of AVX-512")


def rrs(code: Code, op: Op, operands: Iterable[tuple[int, int, int]]) -> None:
    """Append `op` on each (reg, vvvv, rm) of 64 bytes."""
    base = op.evex ^ 2 << 29
    code.buffer += b"".join(
        [(base ^ _REG[a] ^ _VVVV[b] ^ _RM[c]).to_bytes(6, "little") for a, b, c in operands]
    )


def _vex(code: Code, op: Op, reg: int, vvvv: int, rm: int, length: int) -> None:
    if op.vex2 and rm < 8:
        word = op.vex2 ^ (
            (reg >> 3) << 15 | (reg & 7) << 27 | vvvv << 11 | length << 10 | rm << 24
        )
        code.buffer += word.to_bytes(4, "little")
    else:
        word = op.vex3 ^ _VEX_REG[reg] ^ _VEX_RM[rm] ^ (vvvv << 19 | length << 18)
        code.buffer += word.to_bytes(5, "little")


def rm(
    code: Code, op: Op, reg: int, vvvv: int,
    base: int | None, index: int | None = None, scale: int = 1, disp: int = 0,
    k: int = 0, z: int = 0, length: int = 2, broadcast: int = 0, imm: int | None = None,
) -> None:
    """Append `op` with memory at [base + index*scale + disp] as its r/m operand.

    broadcast: 1 reads one element for all. index may be a vector's number in a gather or scatter.
    """
    if op.fixed >= 0:
        length = op.fixed
    if (
        op.memory_vex and not k and not broadcast and (length < 2 or op.only_vex)
        and (reg | vvvv) < 16
    ):
        modrm, high, tail = _address(base, index, scale, disp, 1)
        if op.vex2 and not high:
            word = op.vex2 ^ ((reg >> 3) << 15 | (reg & 7) << 27 | vvvv << 11 | length << 10)
            word ^= (modrm ^ 0xC0) << 24
            code.buffer += word.to_bytes(4, "little")
        else:
            word = op.vex3 ^ _VEX_REG[reg] ^ _VEX_HIGH[high] ^ (vvvv << 19 | length << 18)
            word ^= (modrm ^ 0xC0) << 32
            code.buffer += word.to_bytes(5, "little")
    else:
        _wide(op)
        modrm, high, tail = _address(
            base, index, scale, disp, op.element if broadcast else op.units[length]
        )
        word = op.evex ^ _REG[reg] ^ _VVVV[vvvv] ^ _EVEX_HIGH[high] ^ (modrm ^ 0xC0) << 40
        word ^= z << 31 | length << 29 | broadcast << 28 | k << 24
        code.buffer += word.to_bytes(6, "little")
    code.buffer += tail
    if imm is not None:
        code.buffer.append(imm & 255)


def rip(
    code: Code, op: Op, reg: int, vvvv: int, label: int,
    k: int = 0, z: int = 0, length: int = 2, broadcast: int = 0, imm: int | None = None,
) -> None:
    """Append `op` with the data at `label` as its r/m operand."""
    if op.fixed >= 0:
        length = op.fixed
    if (
        op.memory_vex and not k and not broadcast and (length < 2 or op.only_vex)
        and (reg | vvvv) < 16
    ):
        if op.vex2:
            word = op.vex2 ^ ((reg >> 3) << 15 | (reg & 7) << 27 | vvvv << 11 | length << 10)
            code.buffer += (word ^ 0xC5 << 24).to_bytes(4, "little")
        else:
            word = op.vex3 ^ _VEX_REG[reg] ^ (vvvv << 19 | length << 18)
            code.buffer += (word ^ 0xC5 << 32).to_bytes(5, "little")
    else:
        _wide(op)
        word = op.evex ^ _REG[reg] ^ _VVVV[vvvv] ^ 0xC5 << 40
        word ^= z << 31 | length << 29 | broadcast << 28 | k << 24
        code.buffer += word.to_bytes(6, "little")
    code._address(label, imm is not None)
    if imm is not None:
        code.buffer.append(imm & 255)


def _head(op: General, reg: int, high: int, size: int, byte_rex: bool) -> bytearray:
    """Prefixes and REX of an instruction; high: as of `_address`."""
    out = bytearray()
    if size == 2:
        out.append(0x66)
    out += op.prefix
    rex = high | reg >> 3 << 2
    if size == 8 and op.wide:
        rex |= 8
    if rex or byte_rex:
        out.append(0x40 | rex)
    return out


def _immediate(op: General, size: int, imm: int | None) -> tuple[bytes, bytes]:
    """The opcode for this size and immediate, and the immediate's bytes."""
    opcode = op.byte_form if size == 1 and op.byte_form else op.opcode
    if imm is None:
        return opcode, b""
    if op.immediate == "i8" or size == 1:
        return opcode, bytes((imm & 255,))
    if op.immediate == "is" and -128 <= imm <= 127:
        return op.narrow, bytes((imm & 255,))
    width = min(size, 4)
    return opcode, (imm & (1 << 8 * width) - 1).to_bytes(width, "little")


def gr(code: Code, op: General, reg: int, rm: int, size: int = 8, imm: int | None = None) -> None:
    """Append a general instruction on registers. size: of the operands, 1, 2, 4 or 8 bytes.

    reg: the destination, 0 where the instruction has one operand (`neg`, `shli`, `addi`, `call_r`:
    it is rm). An immediate of 8-byte operands is 32 bits, extended.
    """
    if imm is None and size > 2 and op.plain:
        rex = rm >> 3 | reg >> 3 << 2 | (8 if size == 8 and op.wide else 0)
        buffer = code.buffer
        if rex:
            buffer.append(0x40 | rex)
        buffer += op.opcode
        buffer.append(0xC0 | ((op.reg | reg) & 7) << 3 | rm & 7)
        return
    byte_rex = (op.byte_rm and rm in _BYTE_REGISTERS) or (
        size == 1 and (reg in _BYTE_REGISTERS or rm in _BYTE_REGISTERS)
    )
    opcode, tail = _immediate(op, size, imm)
    out = _head(op, reg, rm >> 3, size, byte_rex)
    out += opcode
    out.append(0xC0 | ((op.reg | reg) & 7) << 3 | rm & 7)
    code.buffer += out + tail


def gm(
    code: Code, op: General, reg: int,
    base: int | None, index: int | None = None, scale: int = 1, disp: int = 0,
    size: int = 8, imm: int | None = None,
) -> None:
    """Append a general instruction with memory at [base + index*scale + disp] as r/m."""
    modrm, high, address = _address(base, index, scale, disp, 1)
    if imm is None and size > 2 and op.plain:
        rex = high | reg >> 3 << 2 | (8 if size == 8 and op.wide else 0)
        buffer = code.buffer
        if rex:
            buffer.append(0x40 | rex)
        buffer += op.opcode
        buffer.append(modrm | ((op.reg | reg) & 7) << 3)
        buffer += address
        return
    opcode, tail = _immediate(op, size, imm)
    out = _head(op, reg, high, size, size == 1 and reg in _BYTE_REGISTERS)
    out += opcode
    out.append(modrm | ((op.reg | reg) & 7) << 3)
    out += address
    code.buffer += out + tail


def grip(code: Code, op: General, reg: int, label: int) -> None:
    """Append a general instruction of 8 bytes with the data at `label` as r/m."""
    out = _head(op, reg, 0, 8, False)
    out += op.opcode
    out.append(5 | ((op.reg | reg) & 7) << 3)
    code.buffer += out
    code._address(label, 0)


def move_constant(code: Code, reg: int, value: int) -> None:
    """Set a general register to a 64-bit value. The flags are kept."""
    value &= (1 << 64) - 1
    low = reg & 7
    if value < 1 << 32:
        code.buffer += (b"\x41" if reg > 7 else b"") + bytes((0xB8 | low,))
        code.buffer += value.to_bytes(4, "little")
    elif value >= (1 << 64) - (1 << 31):
        code.buffer += bytes((0x48 | reg >> 3, 0xC7, 0xC0 | low))
        code.buffer += (value & 0xFFFFFFFF).to_bytes(4, "little")
    else:
        code.buffer += bytes((0x48 | reg >> 3, 0xB8 | low)) + value.to_bytes(8, "little")


def push(code: Code, reg: int) -> None:
    code.buffer += (b"\x41" if reg > 7 else b"") + bytes((0x50 | reg & 7,))


def pop(code: Code, reg: int) -> None:
    code.buffer += (b"\x41" if reg > 7 else b"") + bytes((0x58 | reg & 7,))


# Instructions without operands.
RET = b"\xc3"
CQO = b"\x48\x99"
CDQ = b"\x99"
VZEROUPPER = b"\xc5\xf8\x77"


# The stack pointer, and how far below it a page lies at least that has not been touched yet.
_RSP, _PAGE = 4, 4096


def reserve(code: Code, size: int) -> None:
    """Take so many bytes of stack, and touch each page of them: the stack may end with one."""
    for below in range(_PAGE, size, _PAGE):
        gm(code, GPR["movi"], 0, _RSP, None, 1, -below, 4, 0)
    gr(code, GPR["subi"], 0, _RSP, 8, size)
