"""Selection of LLVM's intrinsic functions on lanes: fma, extrema, rounding, counts of bits.

A family of `select.select`, whose functions register by the intrinsic's name (`intrinsic`). A fused
multiplication overwrites the operand that ends there. What would break it: an extremum whose
instruction returns its second operand for NaN, where the function's result is NaN.
"""

from __future__ import annotations

from numjet.cpu.x86.back.encode import GPR, OPS
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.instructions import Call, Fma, Negation, result_of
from numjet.cpu.x86.front.parse import typed
from numjet.cpu.x86.front.types import (  # fmt: skip
    GENERAL,
    MASK,
    VECTOR,
    VECTORS,
    Type,
    Unsupported,
    constant,
)
from numjet.cpu.x86.select.flags import flags_between, negated
from numjet.cpu.x86.select.operands import (
    extend,
    full_mask,
    last,
    pattern,
    scaled,
    seed,
    seed_general,
    swap_for_memory,
    three,
)
from numjet.cpu.x86.select.select import Selector, handles, intrinsic, size_of


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


@intrinsic("fabs", alike=True)
def fabs(s: Selector, instruction: Call, parts: list[str]) -> None:
    name, type = result_of(instruction)
    d = s.define(name)
    for part in range(type.parts):
        x = s.vector(type, parts[0], part)
        pattern(s, "and", d + part, x, type, (1 << (type.bits - 1)) - 1)


@intrinsic("copysign", alike=True)
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
        s.put(d + part, (formats.v3ct, op, d + part, y, data, -1, 0, type.length, 1, imm))
        if tied[0] != "%" or s.reg.get(tied, -1) + part != d + part:
            seed(s, d + part, type, tied, part)


@intrinsic("sqrt", alike=True)
def sqrt(s: Selector, instruction: Call, parts: list[str]) -> None:
    name, type = result_of(instruction)
    if type.bits == 16:
        raise Unsupported("half arithmetic")
    d = s.define(name)
    for part in range(type.parts):
        x = -1 if type.lanes else s.vector(type, parts[0], part)
        last(s, OPS["vsqrt" + type.float_suffix], d + part, x, type, parts[0], part)


_ROUNDING = {"roundeven": 8, "rint": 4, "nearbyint": 12, "floor": 9, "ceil": 10, "trunc": 11}


@intrinsic(*_ROUNDING, alike=True)
def rounded(s: Selector, instruction: Call, parts: list[str]) -> None:
    name, type = result_of(instruction)
    if type.bits == 16:
        raise Unsupported("half arithmetic")
    imm = _ROUNDING[instruction.callee.split(".")[1]]
    d, word = s.define(name), "vround" if VECTORS.narrow else "vrndscale"
    for part in range(type.parts):
        x = -1 if type.lanes else s.vector(type, parts[0], part)
        last(s, OPS[word + type.float_suffix], d + part, x, type, parts[0], part, imm=imm)


@intrinsic("maximum", "minimum", alike=True)
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
    numbers = " nnan" in f" {instruction.flags}"
    if numbers or (a[0] != "%" and b[0] == "%" and is_number(type, a)):
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
        s.put(d + part, (formats.v3t, move, d + part, x if not type.lanes else -1, x, k, 0,
                         type.length, None))
        last(s, OPS[op + suffix], d + part, x, type, b, part)
        s.put(k, (formats.v3, OPS["vcmp" + suffix], k, x, x, -1, 0, type.length, 3))


def is_number(type: Type, text: str) -> bool:
    """Whether no lane of a constant is NaN."""
    bits = {16: 0x7C00, 32: 0x7F800000, 64: 0x7FF << 52}[type.bits]
    largest = (1 << (type.bits - 1)) - 1
    return all([(lane or 0) & largest <= bits for lane in constant(type, text).lanes])


_INTEGER = {"smin": "vpmins", "smax": "vpmaxs", "umin": "vpminu", "umax": "vpmaxu"}


@intrinsic(*_INTEGER, alike=True)
def integer_extremum(s: Selector, instruction: Call, parts: list[str]) -> None:
    (name, type), callee = result_of(instruction), instruction.callee
    word = callee[6:10]
    a, b = parts
    d = s.define(name)
    if type.cls == VECTOR:
        if swap_for_memory(s, a, b):
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
        s.put(d, (formats.g2t, GPR["cmov" + other], 4, d, z))
        s.emit((formats.gread, GPR["cmp"], 4, y, z))
        s.put(d, (formats.gmove, GPR["mov"], 8, d, y))
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
    s.out[place] = (formats.g2t, GPR["cmov" + negated(found)], size, d, x)
    s.end[d] = place
    if not tied:
        seed_general(s, d, type, a)


@intrinsic("abs")
def absolute(s: Selector, instruction: Call, parts: list[str]) -> None:
    name, type = result_of(instruction)
    x = typed(parts[0])[1]
    if type.cls != VECTOR:
        raise Unsupported("abs of an integer")
    d = s.define(name)
    for part in range(type.parts):
        last(s, OPS["vpabs" + type.letter], d + part, -1, type, x, part)


@intrinsic("ctpop", "ctlz")
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
    s.put(d, (formats.g2, count, size_of(type), d, s.general(type, x)))


@intrinsic("x86.avx512.mask.scalef")
def scalef(s: Selector, instruction: Call, parts: list[str]) -> None:
    assert instruction.type is not None
    d = s.define(instruction.name)
    for part in range(instruction.type.parts):
        scaled(s, instruction, d + part, part)


@intrinsic("x86.avx512.mask.getexp", "x86.avx512.mask.getmant")
def getexp(s: Selector, instruction: Call, parts: list[str]) -> None:
    name, type = result_of(instruction)
    (_, x), *options = [typed(part) for part in parts]
    imm = None
    if "getmant" in instruction.callee:
        (_, number), *options = options
        imm = int(number)
    _, mask, *rounding = options
    full_mask(mask, rounding)
    op = OPS[("vgetexp" if imm is None else "vgetmant") + type.float_suffix]
    d = s.define(name)
    for part in range(type.parts):
        last(s, op, d + part, -1, type, x, part, imm=imm)
