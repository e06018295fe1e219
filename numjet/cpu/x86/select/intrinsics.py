"""Selection of LLVM's intrinsic functions."""

from __future__ import annotations

from collections.abc import Callable

from numjet.cpu.x86.back.encode import GPR, OPS
from numjet.cpu.x86.front import forms
from numjet.cpu.x86.front.instructions import Call, Cast, Fma, Negation, result_of
from numjet.cpu.x86.front.parse import split, typed
from numjet.cpu.x86.front.types import (  # fmt: skip
    GENERAL,
    MASK,
    TYPES,
    VECTOR,
    Type,
    Unsupported,
    constant,
)
from numjet.cpu.x86.select.compare import flags_between, negated
from numjet.cpu.x86.select.control import plain_call
from numjet.cpu.x86.select.convert import to_integer, whole, widened
from numjet.cpu.x86.select.gather import gather, scatter
from numjet.cpu.x86.select.lanes import reduce_
from numjet.cpu.x86.select.masks import part_mask
from numjet.cpu.x86.select.memory import Memory, load_vector, store_vector
from numjet.cpu.x86.select.operands import (
    full_mask,
    last,
    pattern,
    scaled,
    seed,
    swap_for_memory,
    three,
)
from numjet.cpu.x86.select.scalar import extend, seed_general
from numjet.cpu.x86.select.select import Selector, handles, size_of

Handler = Callable[[Selector, Call, list[str]], None]
_known: dict[str, tuple[Handler, str]] = {}


@handles("call")
def call(s: Selector, instruction: Call) -> None:
    name, callee = instruction.name, instruction.callee
    if not callee.startswith("@llvm.") or ".mem" in callee:
        plain_call(s, instruction)
    elif name is None or name in s.reg:
        intrinsic(s, instruction)


def intrinsic(s: Selector, instruction: Call) -> None:
    """A call of `@llvm.…`."""
    callee, arguments, type = instruction.callee, instruction.arguments, instruction.type
    found = _known.get(callee)
    if found is None:
        name = word = callee[6:]
        handler = None
        while handler is None:
            name, point, _ = name.rpartition(".")
            if not point:
                raise Unsupported(callee.rstrip("0123456789."))
            handler = _HANDLERS.get(name)
        found = _known[callee] = (handler, word)
    if isinstance(arguments, tuple):  # all of one type
        assert type is not None
        parts = [*arguments]
        if found[0] not in _ALIKE:
            parts = [f"{type.text} {x}" for x in parts]
    elif type is not None and found[0] in _ALIKE:
        # Arguments of one type: split at its name.
        text = type.text
        parts = arguments[len(text) + 1 :].split(f", {text} ")
    else:
        parts = split(arguments)
    found[0](s, instruction, parts)


@handles("fma")
def fma(s: Selector, instruction: Fma) -> None:
    """a·b + c in the form that overwrites an operand which ends here, or one loaded for it."""
    _, name, _, type, a, b, c = instruction
    if type.bits == 16:
        raise Unsupported("half arithmetic")
    word = "vfmadd"
    if "fneg" in s.counts:
        a, minus_a = _unsigned(s, a)
        b, minus_b = _unsigned(s, b)
        c, minus_c = _unsigned(s, c)
        word = ("vfnm" if minus_a != minus_b else "vfm") + ("sub" if minus_c else "add")
    if a[0] != "%" or (b[0] == "%" and s.readable(a) and not s.readable(b)):
        a, b = b, a
    d = s.define(name)
    tied = _tied_operand(s, d, a, b, c)
    if tied == "c":
        form, second, third = "231", a, b
    elif tied == "b":
        form, second, third = ("213", a, c) if not _reads(s, a) else ("132", c, a)
    elif c[0] != "%" and b[0] != "%":
        form, second, third = ("213", b, c) if tied == "a" else ("213", a, c)
        tied = tied or "b"
    else:
        form, second, third = ("132", c, b) if _reads(s, b) else ("213", b, c)
        if tied is None and c[0] != "%":
            form, second, third, tied = "231", a, b, "c"
    op = OPS[f"{word}{form}{type.float_suffix}"]
    copied = {"a": a, "b": b, "c": c}[tied or "a"]
    for part in range(type.parts):
        last(s, op, d + part, s.vector(type, second, part), type, third, part, tied=True)
        if copied[0] != "%" or s.reg.get(copied, -1) + part != d + part:
            seed(s, d + part, type, copied, part)


def _unsigned(s: Selector, x: str) -> tuple[str, bool]:
    """What `x` is the negative of, which the instruction can do itself; whether it is."""
    made = s.defs.get(x)
    if type(made) is not Negation or made.block != s.block.index or made.x[0] != "%":
        return x, False
    return made.x, True


def _reads(s: Selector, x: str) -> bool:
    """Whether the operand is better read from memory."""
    return x[0] != "%" or s.readable(x)


def _tied_operand(s: Selector, d: int, a: str, b: str, c: str) -> str | None:
    """Which operand's register is `d`: one that is already, or one that ends here."""
    reg, named = s.reg, (("c", c), ("a", a), ("b", b))
    for which, x in named:
        if reg.get(x) == d:
            return which
    for which, x in named:
        if x[0] == "%" and not s.readable(x) and s.tie(x, d):
            return which
    return None


def fabs(s: Selector, instruction: Call, parts: list[str]) -> None:
    name, type = result_of(instruction)
    d = s.define(name)
    for part in range(type.parts):
        x = s.vector(type, parts[0], part)
        pattern(s, "and", d + part, x, type, (1 << (type.bits - 1)) - 1)


def copysign(s: Selector, instruction: Call, parts: list[str]) -> None:
    name, type = result_of(instruction)
    size, sign = parts
    d = s.define(name)
    data = (1 << (type.bits - 1)).to_bytes(type.bits // 8, "little")
    if type.bits == 16:
        data += data
    for part in range(type.parts):
        # Bit k of the immediate: the result where the operands' bits read k in binary.
        if sign[0] == "%" and size[0] == "%" and s.reg.get(sign) == d:
            tied, other, imm = sign, size, 0xE4
        elif size[0] == "%" and s.tie(size, d + part, part):
            tied, other, imm = size, sign, 0xD8
        elif sign[0] == "%" and s.tie(sign, d + part, part):
            tied, other, imm = sign, size, 0xE4
        else:
            tied, other, imm = size, sign, 0xD8
        y = s.vector(type, other, part)
        op = OPS["vpternlogq" if type.bits == 64 else "vpternlogd"]
        s.put(d + part, (forms.v3ct, op, d + part, y, data, -1, 0, type.length, 1, imm))
        if tied[0] != "%" or s.reg.get(tied, -1) + part != d + part:
            seed(s, d + part, type, tied, part)


def sqrt(s: Selector, instruction: Call, parts: list[str]) -> None:
    name, type = result_of(instruction)
    if type.bits == 16:
        raise Unsupported("half arithmetic")
    d = s.define(name)
    for part in range(type.parts):
        x = -1 if type.lanes else s.vector(type, parts[0], part)
        last(s, OPS["vsqrt" + type.float_suffix], d + part, x, type, parts[0], part)


_ROUNDING = {"roundeven": 8, "rint": 4, "nearbyint": 12, "floor": 9, "ceil": 10, "trunc": 11}


def rounded(s: Selector, instruction: Call, parts: list[str]) -> None:
    name, type = result_of(instruction)
    if type.bits == 16:
        raise Unsupported("half arithmetic")
    imm = _ROUNDING[instruction.callee.split(".")[1]]
    d = s.define(name)
    for part in range(type.parts):
        x = -1 if type.lanes else s.vector(type, parts[0], part)
        last(s, OPS["vrndscale" + type.float_suffix], d + part, x, type, parts[0], part, imm=imm)


def extremum(s: Selector, instruction: Call, parts: list[str]) -> None:
    """maximum and minimum: a number unless one of the operands is not."""
    name, type = result_of(instruction)
    if type.bits == 16:
        raise Unsupported("half arithmetic")
    if " nsz" not in f" {instruction.flags}":
        raise Unsupported("an order of zeros")
    a, b = parts
    d = s.define(name)
    if b[0] != "%":
        a, b = b, a
    if a[0] != "%" and b[0] == "%" and _is_number(type, a):
        # The instruction answers its last operand if either is NaN.
        made = OPS[("vmax" if "maximum" in instruction.callee else "vmin") + type.float_suffix]
        for part in range(type.parts):
            three(s, made, d + part, type, a, b, part)
        return
    if s.reg.get(a) == d:
        # The one that is read last must not be overwritten before.
        a, b = b, a
    if s.reg.get(a) == d:
        raise Unsupported("an extremum of a value and itself")
    op = "vmax" if "maximum" in instruction.callee else "vmin"
    suffix = type.float_suffix
    move = OPS[{"ps": "vmovaps", "pd": "vmovapd", "ss": "vmovss", "sd": "vmovsd"}[suffix]]
    for part in range(type.parts):
        # The instruction answers b if either is NaN: then put a where a is NaN.
        k, x = s.new(MASK), s.vector(type, a, part)
        s.put(d + part, (forms.v3t, move, d + part, x if not type.lanes else -1, x, k, 0,
                         type.length, None))
        last(s, OPS[op + suffix], d + part, x, type, b, part)
        s.put(k, (forms.v3, OPS["vcmp" + suffix], k, x, x, -1, 0, type.length, 3))


def _is_number(type: Type, text: str) -> bool:
    """Whether no lane of a constant is NaN."""
    bits = {16: 0x7C00, 32: 0x7F800000, 64: 0x7FF << 52}[type.bits]
    largest = (1 << (type.bits - 1)) - 1
    return all([(lane or 0) & largest <= bits for lane in constant(type, text).lanes])


_INTEGER = {"smin": "vpmins", "smax": "vpmaxs", "umin": "vpminu", "umax": "vpmaxu"}


def integer_extremum(s: Selector, instruction: Call, parts: list[str]) -> None:
    (name, type), callee = result_of(instruction), instruction.callee
    word = callee[6:10]
    a, b = parts
    d = s.define(name)
    if type.cls == VECTOR:
        if swap_for_memory(s, type, a, b):
            a, b = b, a
        for part in range(type.parts):
            three(s, OPS[_INTEGER[word] + type.letter], d + part, type, a, b, part)
        return
    if type.bits < 8:
        raise Unsupported(f"{word} of {type.text}")
    # a if a < b: compare, then move the other one where it does not hold.
    condition = {"smin": "slt", "smax": "sgt", "umin": "ult", "umax": "ugt"}[word]
    if type.bits < 32:
        y, z = s.new(GENERAL), s.new(GENERAL)
        other = negated({"slt": "l", "sgt": "g", "ult": "b", "ugt": "a"}[condition])
        s.put(d, (forms.g2t, GPR["cmov" + other], 4, d, z))
        s.emit((forms.gread, GPR["cmp"], 4, y, z))
        s.put(d, (forms.gmove, GPR["mov"], 8, d, y))
        extend(s, z, type, b, word[0] == "s", 4)
        extend(s, y, type, a, word[0] == "s", 4)
        return
    if a[0] != "%" or s.reg.get(b) == d:
        a, b = b, a
    tied = a[0] == "%" and s.tie(a, d)
    size = size_of(type)
    place = len(s.out)
    x = s.general(type, b)
    s.emit(())
    found = flags_between(s, type, a, b, condition)
    s.out[place] = (forms.g2t, GPR["cmov" + negated(found)], size, d, x)
    s.end[d] = place
    if not tied:
        seed_general(s, d, type, a)


def reduced(s: Selector, instruction: Call, parts: list[str]) -> None:
    """llvm.vector.reduce.*; lanes of few bits are widened first, which changes no sum's bits."""
    callee = instruction.callee
    source, x = typed(parts[-1])
    kind = callee.split(".")[3]
    if not 8 <= source.bits < 32 or source.float or source.lanes > 32:
        reduce_(s, instruction, parts)
        return
    words = TYPES[f"<{source.lanes} x i32>"]
    name, type = result_of(instruction)
    asked = Cast("", name, instruction.block, type, x, source)
    wide = widened(s, asked, "zext" if kind[0] == "u" else "sext", words)
    reduce_(s, instruction, [f"{words.text} {wide}"])
    s.flush()
    whole(s, s.defs[wide])


def absolute(s: Selector, instruction: Call, parts: list[str]) -> None:
    name, type = result_of(instruction)
    x = typed(parts[0])[1]
    if type.cls != VECTOR:
        raise Unsupported("abs of an integer")
    d = s.define(name)
    for part in range(type.parts):
        last(s, OPS["vpabs" + type.letter], d + part, -1, type, x, part)


def counted(s: Selector, instruction: Call, parts: list[str]) -> None:
    """ctpop and ctlz."""
    (name, type), callee = result_of(instruction), instruction.callee
    x = typed(parts[0])[1]
    zeros = "ctlz" in callee
    d = s.define(name)
    if type.cls == VECTOR:
        if zeros and type.bits < 32:
            raise Unsupported("ctlz of few bits")
        op = OPS[("vplzcnt" if zeros else "vpopcnt") + type.letter]
        for part in range(type.parts):
            last(s, op, d + part, -1, type, x, part)
        return
    if type.bits < 32 or type.cls == MASK:
        raise Unsupported(callee)
    count = GPR["lzcnt" if zeros else "popcnt"]
    s.put(d, (forms.g2, count, size_of(type), d, s.general(type, x)))


def scalef(s: Selector, instruction: Call, parts: list[str]) -> None:
    assert instruction.type is not None
    d = s.define(instruction.name)
    for part in range(instruction.type.parts):
        scaled(s, instruction, d + part, part)


def getexp(s: Selector, instruction: Call, parts: list[str]) -> None:
    name, type = result_of(instruction)
    operands = [typed(part) for part in parts]
    imm = None
    if "getmant" in instruction.callee:
        imm = int(operands[1][1])
        full_mask(operands[3], operands[4:])
    else:
        full_mask(operands[2], operands[3:])
    op = OPS[("vgetexp" if imm is None else "vgetmant") + type.float_suffix]
    d = s.define(name)
    for part in range(type.parts):
        last(s, op, d + part, -1, type, operands[0][1], part, imm=imm)


def masked_load(s: Selector, instruction: Call, parts: list[str]) -> None:
    name, type = result_of(instruction)
    pointer = parts[0][4:]
    mask_type, mask = typed(parts[2])
    other = typed(parts[3])[1]
    d = s.define(name)
    zero = other[0] != "%" and constant(type, other).splat == 0
    if zero and mask[0] != "%" and type.size >= 16:
        memory = s.address(pointer)
        for part, bits in enumerate(_part_bits(type, mask_type, mask)):
            _load_lanes(s, type, d + part, _beyond(memory, part), bits)
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
        where = (base, index, scale, disp + 64 * part)
        shape = forms.v3m if zero else forms.v3mt
        s.put(d + part, (shape, masked, d + part, -1, where, k, int(zero), type.length, 0,
                         None))
        if not zero and not tied:
            seed(s, d + part, type, other, part)


ALL = -9  # a mask that holds everywhere
_MASKED = {"b": "vmovdqu8", "w": "vmovdqu16", "d": "vmovups", "q": "vmovupd"}


_PLAIN = {32: ("vmovss", 0), 64: ("vmovsd", 0), 128: ("vmovups", 0), 256: ("vmovups", 1),
          512: ("vmovups", 2)}  # fmt: skip


def _part_bits(type: Type, mask_type: Type, mask: str) -> list[int]:
    """The bits of a constant mask, by parts."""
    bits, lanes = constant(mask_type, mask).mask(), type.lanes // type.parts
    return [bits >> lanes * part & (1 << lanes) - 1 for part in range(type.parts)]


def _first(type: Type, bits: int) -> tuple[str, int] | None:
    """(op, length) of a move of just the lanes of a mask, where they are the first ones.

    What has been stored without a mask can be read again at once, what was masked cannot.
    """
    return None if bits & (bits + 1) else _PLAIN.get(bits.bit_length() * type.bits)


def _beyond(memory: Memory, part: int) -> Memory:
    """Where a part of a value lies."""
    base, index, scale, disp = memory
    return base, index, scale, disp + 64 * part


def _load_lanes(s: Selector, type: Type, d: int, memory: Memory, bits: int) -> None:
    """Read the lanes of a constant mask into a register, zeros into the others."""
    first = _first(type, bits)
    if first is not None:
        s.put(d, (forms.v3m, OPS[first[0]], d, -1, memory, -1, 0, first[1], 0, None))
    elif not bits:
        s.put(d, (forms.v3, OPS["vpxord"], d, d, d, -1, 0, 0, None))
    else:
        k = s.mask_constant(bits, type.lanes // type.parts)
        op = OPS[_MASKED[type.letter]]
        s.put(d, (forms.v3m, op, d, -1, memory, k, 1, type.length, 0, None))


def _store_lanes(s: Selector, type: Type, x: int, memory: Memory, bits: int) -> None:
    """Write the lanes of a constant mask."""
    first = _first(type, bits)
    if first is not None:
        s.emit((forms.vstore, OPS[first[0] + "_s"], x, -1, memory, -1, 0, first[1], 0, None))
    elif bits:
        k = s.mask_constant(bits, type.lanes // type.parts)
        op = OPS[_MASKED[type.letter] + "_s"]
        s.emit((forms.vstore, op, x, -1, memory, k, 0, type.length, 0, None))


def _mask(s: Selector, type: Type, text: str) -> int:
    if text[0] == "%":
        return s.need(text)
    bits = constant(type, text).mask()
    if bits == (1 << type.lanes) - 1:
        return ALL
    return s.mask_constant(bits, type.lanes)


def masked_store(s: Selector, instruction: Call, parts: list[str]) -> None:
    type, value = typed(parts[0])
    pointer = parts[1][4:]
    mask_type, mask = typed(parts[3])
    s.memory = instruction.memory
    if mask[0] != "%" and type.size >= 16:
        memory = s.address(pointer)
        for part, bits in enumerate(_part_bits(type, mask_type, mask)):
            _store_lanes(s, type, s.vector(type, value, part), _beyond(memory, part), bits)
        return
    k0 = _mask(s, mask_type, mask)
    base, index, scale, disp = s.address(pointer)
    op = OPS[_MASKED[type.letter] + "_s"]
    if k0 == ALL and type.size < 16:
        k0 = s.mask_constant((1 << type.lanes) - 1, type.lanes)
    for part in range(type.parts):
        where = (base, index, scale, disp + 64 * part)
        x = s.vector(type, value, part)
        if k0 == ALL:
            store_vector(s, type, x, where, False)
            continue
        k = part_mask(s, k0, type, part)
        s.emit((forms.vstore, op, x, -1, where, k, 0, type.length, 0, None))


def saturating(s: Selector, instruction: Call, parts: list[str]) -> None:
    """fptosi.sat and fptoui.sat."""
    (name, type), callee = result_of(instruction), instruction.callee
    source, x = typed(parts[0])
    to_integer(s, name, type, x, source, "fptosi" in callee, True)


def prefetch(s: Selector, instruction: Call, parts: list[str]) -> None:
    write, locality = parts[1].split()[1], parts[2].split()[1]
    word = "prefetchw" if write == "1" else "prefetch" + {"0": "nta", "1": "t2", "2": "t1",
                                                         "3": "t0"}[locality]
    s.memory = instruction.memory
    s.emit((forms.gprefetch, GPR[word], s.address(parts[0][4:])))


_HANDLERS: dict[str, Handler] = {
    "fabs": fabs, "copysign": copysign, "sqrt": sqrt,
    "maximum": extremum, "minimum": extremum, "abs": absolute,
    "ctpop": counted, "ctlz": counted, **dict.fromkeys(_ROUNDING, rounded),
    **dict.fromkeys(_INTEGER, integer_extremum),
    "x86.avx512.mask.scalef": scalef, "x86.avx512.mask.getexp": getexp,
    "x86.avx512.mask.getmant": getexp, "masked.load": masked_load,
    "masked.store": masked_store, "prefetch": prefetch, "vector.reduce": reduced,
    "fptosi.sat": saturating, "fptoui.sat": saturating,
    "masked.gather": gather, "masked.scatter": scatter,
}  # fmt: skip
_ALIKE = {fabs, copysign, sqrt, extremum, rounded, integer_extremum}
