"""Lanes of one bit as lanes of whole integers, for registers that know no masks (AVX2).

`widen(function)` rewrites a function: a mask is all ones or zeros in lanes as wide as those that
were compared, and is widened or narrowed where it chooses among others. What is written may have
calls of `@llvm.nj.any`, `@llvm.nj.all` and `@llvm.nj.bits`, which no text spells. For: `generate`,
behind the passes that move instructions between blocks. What would break it: an operation on bits
that it does not know, which is left to LLVM.
"""

from __future__ import annotations

from typing import Any

from numjet.cpu.x86.front import instructions as ir
from numjet.cpu.x86.front.parse import Function, split, typed
from numjet.cpu.x86.front.types import MASK, TYPES, Type, Unsupported, constant

_BITS = {"and": "and", "or": "or", "xor": "xor", "add": "xor", "sub": "xor", "mul": "and"}
# The bits of 1.0 and of -1.0.
_ONES = {
    ("uitofp", 32): 0x3F800000, ("sitofp", 32): 0xBF800000,
    ("uitofp", 64): 0x3FF0000000000000, ("sitofp", 64): 0xBFF0000000000000,
}  # fmt: skip
_OPPOSITE = {"ne": "eq", "sge": "slt", "sle": "sgt", "uge": "ult", "ule": "ugt"}
# Orders of bits: what joins the first with the opposite of the second, and whether they change
# places; with sign a one is -1.
_ORDERS = {
    "ugt": ("and", 0), "uge": ("or", 0), "ult": ("and", 1), "ule": ("or", 1),
    "slt": ("and", 0), "sle": ("or", 0), "sgt": ("and", 1), "sge": ("or", 1),
}  # fmt: skip
_USUAL = 32  # bits of a mask that nothing was compared for
_LOOKED_AT = 16  # values behind a phi
_REDUCTIONS = ("@llvm.vector.reduce.or.", "@llvm.vector.reduce.and.")
# Where the mask stands among the arguments of a masked access, and what its elements are found by.
_MASKED = {"masked.load": 2, "masked.store": 3, "masked.gather": 2, "masked.scatter": 3}


def widen(function: Function) -> None:
    """Rewrite every value of a function whose lanes are bits."""
    if any([i.type is not None and i.type.cls == MASK for block in function.blocks
            for i in (*block.phis, *block.instructions)]):  # fmt: skip
        _Widener(function).run()


def _lanes(bits: int, lanes: int) -> Type:
    return TYPES[f"<{lanes} x i{bits}>"]


def _spelled(type: Type, text: str) -> str:
    """A constant mask as a constant of wider lanes."""
    lanes = constant(TYPES[f"<{type.lanes} x i1>"], text).lanes
    if len({lane or 0 for lane in lanes}) == 1:
        return f"splat ({type.element} {-1 if lanes[0] else 0})"
    return f"<{', '.join([f'{type.element} {-1 if lane else 0}' for lane in lanes])}>"


class _Widener:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.defs, self.counts = function.defs, function.counts
        self.made: list[Any] = []
        self.cast: dict[tuple[int, str, int], str] = {}  # in a block, of a name, to so many bits
        self.inverse: dict[str, str] = {}  # masks whose opposite has a name
        self.block = function.blocks[0]
        self.blocks = {block.label: block for block in function.blocks}

    def run(self) -> None:
        """Rewrite all blocks."""
        met = []
        for block in self.function.blocks:
            for number, phi in enumerate(block.phis):
                if phi.type.cls == MASK:
                    met.append((block, number))
                    block.phis[number] = self.defs[phi.name] = phi._replace(  # type: ignore[assignment]
                        type=_lanes(self.width_of_phi(phi), phi.type.lanes)
                    )
        for block in self.function.blocks:
            self.block, self.made = block, []
            for instruction in block.instructions:
                self.rewrite(instruction)
            block.instructions = self.made
        for block, number in met:
            self.incoming(block.phis[number])

    def width_of_phi(self, phi: ir.Phi) -> int:
        """The lanes that were compared for what comes in, as it is or joined with other bits: other
        lanes would be narrowed in every round."""
        seen, pending = {phi.name}, [*phi.incoming.values()]
        while pending and len(seen) < _LOOKED_AT:
            text = pending.pop(0)
            made = self.defs.get(text) if text[0] == "%" and text not in seen else None
            seen.add(text)
            if isinstance(made, ir.Compare) and made.of.bits > 1:
                return made.of.bits
            if isinstance(made, ir.Binary | ir.Select | ir.Compare):
                pending += [made.a, made.b]
        return _USUAL

    def incoming(self, phi: ir.Phi) -> None:
        """Constants and names that come into a phi that was a mask."""
        for label, source in phi.incoming.items():
            if source[0] != "%":
                if "i1 " in source or source in ("true", "false"):
                    phi.incoming[label] = _spelled(phi.type, source)
            elif self.defs[source].type is not phi.type:
                self.block = self.blocks[label]
                self.made = self.block.instructions
                made = self.mask(source, phi.type.lanes, phi.type.bits)
                phi.incoming[label] = made
                self.counts[source] -= 1
                self.counts[made] += 1

    # -- writing

    def add(self, instruction: ir.Value) -> str:
        """Write an instruction of our own."""
        self.made.append(instruction)
        self.defs[instruction.name] = instruction
        for word in (instruction.name, *[x for x in instruction[4:] if isinstance(x, str)]):
            self.counts[word] += 1
        return str(instruction.name)

    def replace(self, old: ir.Value, new: ir.Value) -> None:
        """Write `new`, which has the name of `old`, in its place."""
        for word in [x for x in old[4:] if isinstance(x, str)]:
            self.counts[word] -= 1
        self.counts[new.name] -= 1
        self.add(new)

    def mask(self, text: str, lanes: int, bits: int) -> str:
        """A mask operand with lanes of so many bits."""
        type = _lanes(bits, lanes)
        if text[0] != "%":
            return _spelled(type, text)
        source = self.defs[text].type
        if source.cls == MASK:
            raise Unsupported("a mask that is used before its definition")
        if source is type:
            return text
        key = (self.block.index, text, bits)
        made = self.cast.get(key)
        if made is None:
            op = "sext" if source.bits < bits else "trunc"
            made = self.cast[key] = self.add(
                ir.Cast(op, f"{text}.m{bits}.{self.block.index}", self.block.index, type, text,
                        source))  # fmt: skip
        return made

    def bits_of(self, *texts: str) -> int:
        """The bits of the first named mask's lanes."""
        for text in texts:
            if text[0] == "%":
                return self.defs[text].type.bits
        return _USUAL

    # -- reading

    def rewrite(self, i: ir.Instruction) -> None:
        """Write what an instruction becomes."""
        made = i.type is not None and i.name is not None and i.type.cls == MASK
        if isinstance(i, ir.Compare) and made:
            self.compare(i)
        elif isinstance(i, ir.Select):
            self.select(i)
        elif isinstance(i, ir.Binary) and made:
            self.binary(i)
        elif isinstance(i, ir.Cast) and MASK in (i.type.cls, i.source.cls):
            self.converted(i)
        elif isinstance(i, ir.Shuffle) and made:
            self.shuffle(i)
        elif isinstance(i, ir.Insert) and made:
            self.insert(i)
        elif isinstance(i, ir.Extract) and i.source.cls == MASK:
            self.extract(i)
        elif isinstance(i, ir.Call):
            self.call(i)
        elif made:
            raise Unsupported(f"{i.op} of bits")
        else:
            self.made.append(i)

    def compare(self, i: ir.Compare) -> None:
        if i.of.bits > 1:
            type = _lanes(i.of.bits, i.of.lanes)
            opposite = _OPPOSITE.get(i.predicate) if i.op == "icmp" else None
            if opposite is not None:  # there are no instructions for these
                other = self.inverse[i.name] = f"{i.name}.o"
                made = i._replace(name=other, type=type, predicate=opposite)
                self.replace(i, ir.Binary("xor", i.name, i.block, type, other, _number(type, -1)))
                self.made.insert(-1, made)
                self.defs[other] = made
                for word in (other, i.a, i.b):
                    self.counts[word] += 1
                return
            made = i._replace(type=type)
            self.made.append(made)
            self.defs[i.name] = made
            return
        bits = self.bits_of(i.a, i.b)
        type = _lanes(bits, i.of.lanes)
        a, b = [self.mask(x, i.of.lanes, bits) for x in (i.a, i.b)]
        if i.predicate in _ORDERS:
            op, exchanged = _ORDERS[i.predicate]
            if exchanged:
                a, b = b, a
            none = self.add(ir.Binary("xor", f"{i.name}.n", i.block, type, b, _number(type, -1)))
            self.replace(i, ir.Binary(op, i.name, i.block, type, a, none))
            return
        if i.predicate == "ne":
            self.replace(i, ir.Binary("xor", i.name, i.block, type, a, b))
        else:
            self.replace(i, ir.Compare("icmp", i.name, i.block, type, a, b, "eq", type))

    def select(self, i: ir.Select) -> None:
        type, condition_type = i.type, i.condition_type
        if type.cls != MASK and condition_type.cls != MASK:
            self.made.append(i)
            return
        a, b, condition = i.a, i.b, i.condition
        if type.cls == MASK:
            bits = self.bits_of(a, b, condition if condition_type.lanes else "0")
            a, b = self.mask(a, type.lanes, bits), self.mask(b, type.lanes, bits)
            type = _lanes(bits, type.lanes)
        if condition_type.lanes:
            while condition in self.inverse:
                self.counts[condition] -= 1
                condition, a, b = self.inverse[condition], b, a
                self.counts[condition] += 1
                i = i._replace(condition=condition)
            condition = self.mask(condition, type.lanes, type.bits)
            condition_type = _lanes(type.bits, type.lanes)
        self.replace(i, i._replace(type=type, condition=condition, a=a, b=b,
                                   condition_type=condition_type))  # fmt: skip

    def binary(self, i: ir.Binary) -> None:
        op = _BITS.get(i.op)
        if op is None:
            raise Unsupported("arithmetic of bits")
        bits = self.bits_of(i.a, i.b)
        a, b = [self.mask(x, i.type.lanes, bits) for x in (i.a, i.b)]
        self.replace(i, ir.Binary(op, i.name, i.block, _lanes(bits, i.type.lanes), a, b))

    def converted(self, i: ir.Cast) -> None:
        op, name, block, type, x, source = i
        if op == "trunc" and source.lanes:
            one = self.add(ir.Binary("and", f"{name}.l", block, source, x, _number(source, 1)))
            made = _lanes(source.bits, source.lanes)
            number = _number(source, 1)
            self.replace(i, ir.Compare("icmp", name, block, made, one, number, "eq", source))
        elif op in ("zext", "sext") and type.lanes:
            m = self.mask(x, type.lanes, type.bits)
            if op == "sext":
                self.replace(i, ir.Cast("bitcast", name, block, type, m, type))
            else:
                self.replace(i, ir.Binary("and", name, block, type, m, _number(type, 1)))
        elif (op, type.bits) in _ONES and type.lanes:
            words = _lanes(type.bits, type.lanes)
            m = self.mask(x, type.lanes, type.bits)
            one = f"splat ({words.element} {_ONES[op, type.bits]})"
            made_ = self.add(ir.Binary("and", f"{name}.b", block, words, m, one))
            self.replace(i, ir.Cast("bitcast", name, block, type, made_, words))
        elif op == "bitcast" and not type.lanes and x[0] == "%" and source.lanes >= 8:
            bits = self.bits_of(x)
            if bits == 16 or bits * source.lanes < 128:
                bits = 8 if source.lanes >= 16 else 32
            words, m = _lanes(bits, source.lanes), self.mask(x, source.lanes, bits)
            self.replace(i, ir.Call("call", name, block, type, "@llvm.nj.bits",
                                    f"{words.text} {m}", 0, ""))  # fmt: skip
            self.counts[m] += 1
        elif op == "bitcast" and not source.lanes and type.lanes >= 8:
            self.spread(i)
        else:
            raise Unsupported(f"{op} of {source.text} to {type.text}")

    def spread(self, i: ir.Cast) -> None:
        """Bits of a number as lanes: all lanes hold it, and one bit of each is looked at."""
        lanes, block, name = i.type.lanes, i.block, i.name
        words = _lanes(64 if lanes > 32 else 32, lanes)
        word, x, zero = TYPES[words.element], i.x, TYPES["i64"]
        if i.source.bits < word.bits:
            x = self.add(ir.Cast("zext", f"{name}.w", block, word, x, i.source))
        one = self.add(ir.Insert("insertelement", f"{name}.i", block, words, "poison", x, word,
                                 "0", zero))  # fmt: skip
        every = self.add(ir.Shuffle("shufflevector", f"{name}.e", block, words, one, "poison",
                                    words, "zeroinitializer", _lanes(32, lanes)))  # fmt: skip
        bits = ", ".join([f"{word.text} {1 << k}" for k in range(lanes)])
        held = self.add(ir.Binary("and", f"{name}.h", block, words, every, f"<{bits}>"))
        self.replace(i, ir.Compare("icmp", name, block, words, held, f"<{bits}>", "eq", words))

    def shuffle(self, i: ir.Shuffle) -> None:
        bits = self.bits_of(i.a, i.b)
        a, b = [
            x if x in ("poison", "undef") else self.mask(x, i.source.lanes, bits)
            for x in (i.a, i.b)
        ]
        self.replace(i, i._replace(type=_lanes(bits, i.type.lanes), a=a, b=b,
                                   source=_lanes(bits, i.source.lanes)))  # fmt: skip

    def insert(self, i: ir.Insert) -> None:
        bits = self.bits_of(i.x) if i.x[0] == "%" else _USUAL
        x = i.x if i.x in ("poison", "undef") else self.mask(i.x, i.type.lanes, bits)
        word = TYPES[f"i{bits}"]
        scalar = i.scalar
        if scalar[0] == "%":
            scalar = self.add(
                ir.Cast("sext", f"{i.name}.w", i.block, word, scalar, TYPES["i1"]))  # fmt: skip
        else:
            scalar = "-1" if scalar == "true" else "0"
        self.replace(i, i._replace(type=_lanes(bits, i.type.lanes), x=x, scalar=scalar,
                                   scalar_type=word))  # fmt: skip

    def extract(self, i: ir.Extract) -> None:
        bits = self.bits_of(i.x)
        word = TYPES[f"i{bits}"]
        made = self.add(i._replace(name=f"{i.name}.w", type=word,
                                   source=_lanes(bits, i.source.lanes)))  # fmt: skip
        self.replace(i, ir.Cast("trunc", i.name, i.block, i.type, made, word))

    def call(self, i: ir.Call) -> None:
        callee = i.callee
        if callee.startswith(_REDUCTIONS) and " %" not in f"{i.arguments}":
            type, text = typed(i.arguments)
            if type.cls == MASK:
                held = [lane or 0 for lane in constant(type, text).lanes]
                found = any(held) if ".or." in callee else all(held)
                bit = "true" if found else "false"
                self.replace(i, ir.Binary("and", i.name, i.block, i.type, bit, "true"))
                return
        if not callee.startswith("@llvm.") or "i1> %" not in f"{i.arguments}":
            if i.type is not None and i.type.cls == MASK:
                raise Unsupported("a mask from a call")
            self.made.append(i)
            return
        if callee.startswith(_REDUCTIONS):
            source, x = typed(i.arguments)
            words = _lanes(self.bits_of(x), source.lanes)
            name = "any" if ".or." in callee else "all"
            made = i._replace(callee=f"@llvm.nj.{name}", arguments=f"{words.text} {x}")
        else:
            word = next((word for word in _MASKED if word in callee), None)
            if word is None:
                raise Unsupported(f"{callee.rstrip('0123456789.')} of bits")
            parts = split(i.arguments)
            source, x = typed(parts[_MASKED[word]])
            element = i.type if i.type is not None else typed(parts[0])[0]
            if x[0] == "%":
                m = self.mask(x, source.lanes, element.bits)
                parts[_MASKED[word]] = f"{_lanes(element.bits, source.lanes).text} {m}"
                self.counts[x] -= 1
                self.counts[m] += 1
            made = i._replace(arguments=", ".join(parts))
        self.made.append(made)
        if i.name is not None:
            self.defs[i.name] = made


def _number(type: Type, number: int) -> str:
    return f"splat ({type.element} {number})"
