"""Random modules of the IR that the emitters write, whose results have one value for each input.

Each is `define void @f(ptr %in, ptr %out, i64 %n)`: it reads `INPUT_BYTES` at %in, writes what it
has computed to %out, and every result stands there at a known place with a known type. Bits of NaNs
are hidden from everything but the results, where any NaN is as good as another: no generator
promises them.
"""
from __future__ import annotations

import random
import struct
from collections.abc import Callable

INPUT_BYTES = 4096
OUTPUT_BYTES = 1 << 16
BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "float": 32, "double": 64, "half": 16}
INTEGERS = ("i8", "i16", "i32", "i64")
FLOATS = ("float", "double")
INTEGER_PREDICATES = "eq ne slt sle sgt sge ult ule ugt uge".split()
FLOAT_PREDICATES = "oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno".split()
Type = tuple[int, str]  # lanes, 0 for a scalar; element


def spell(type: Type) -> str:
    lanes, element = type
    return f"<{lanes} x {element}>" if lanes else element


def suffix(type: Type) -> str:
    lanes, element = type
    short = {"float": "f32", "double": "f64", "half": "f16"}.get(element, element)
    return f"v{lanes}{short}" if lanes else short


def size(type: Type) -> int:
    return max(type[0], 1) * BITS[type[1]] // 8


class Program:
    """One module under construction; `text()` when it is done, `results` (place, type)."""

    def __init__(self, seed: int, steps: int = 40) -> None:
        self.rng = random.Random(seed)
        self.body: list[str] = []
        self.declared: dict[str, str] = {}
        self.functions: list[str] = []
        self.values: dict[Type, list[str]] = {}
        self.results: list[tuple[int, Type]] = []
        self.number = 0
        self.block = "entry"
        self.place = 0
        self.depth = 0
        bits = self.rng.choice([128, 256, 512, 512, 512, 1024])
        # Most programs compute with whole words alone.
        elements = self.rng.choice([INTEGERS, ("i32", "i64"), ("i32", "i64")]) + FLOATS
        self.types: list[Type] = [(0, e) for e in elements]
        self.types += [(bits // BITS[e], e) for e in elements if bits // BITS[e] <= 64]
        # Vectors of equal lanes, which masks and conversions join.
        lanes = self.rng.choice([2, 4, 8, 8, 16, 16, 32])
        self.types += [(lanes, e) for e in elements if lanes * BITS[e] <= 1024] * 2
        for _ in range(3):
            self.load()
        for _ in range(steps):
            self.step()
        for type, names in list(self.values.items()):
            for name in names[-6:]:
                self.store(type, name)

    # -- text

    def text(self) -> str:
        head = "define void @f(ptr %in, ptr %out, i64 %n) nounwind {\nentry:\n"
        return "\n".join([
            *self.declared.values(), *self.functions, head + "\n".join(self.body), "  ret void",
            "}\n",
        ])

    def fresh(self, prefix: str = "v") -> str:
        self.number += 1
        return f"%{prefix}{self.number}" if prefix != "@" else f"@g{self.number}"

    def line(self, text: str) -> None:
        self.body.append("  " + text)

    def define(self, type: Type, text: str) -> str:
        name = self.fresh()
        self.line(f"{name} = {text}")
        self.values.setdefault(type, []).append(name)
        return name

    def hidden(self, text: str) -> str:
        """A value that later steps do not see."""
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def open(self, label: str) -> None:
        self.body.append(f"{label}:")
        self.block = label

    def intrinsic(self, result: Type, name: str, types: list[Type], flags: str = "") -> Callable:
        spelled = ", ".join(map(spell, types))
        self.declared[name] = f"declare {spell(result)} @{name}({spelled})"

        def call(*operands: str) -> str:
            inner = ", ".join(f"{spell(t)} {x}" for t, x in zip(types, operands))
            return f"call {flags}{spell(result)} @{name}({inner})"

        return call

    # -- operands

    def constant(self, type: Type) -> str:
        lanes, element = type
        if not lanes:
            return self.scalar(element)
        if self.rng.random() < 0.7:
            return f"splat ({element} {self.scalar(element)})"
        return "<" + ", ".join(f"{element} {self.scalar(element)}" for _ in range(lanes)) + ">"

    def scalar(self, element: str) -> str:
        rng = self.rng
        if element == "i1":
            return rng.choice(["true", "false"])
        if element in INTEGERS:
            top = 1 << BITS[element] - 1
            return str(rng.choice([0, 1, -1, 2, 7, top - 1, -top, rng.randrange(-top, top)]))
        return rng.choice(["0.0", "-0.0", "1.0", "-1.5", "2.0", "0x7FF0000000000000",
                           "0xFFF0000000000000", "0x7FF8000000000000", "0x3FB99999A0000000",
                           "0x4168000000000000", "0x36A0000000000000"])

    def value(self, type: Type, constants: float = 0.2) -> str:
        """An operand: a recent value, an older one, a constant or something loaded."""
        rng = self.rng
        if rng.random() < constants:
            return self.constant(type)
        names = self.values.get(type)
        if names and rng.random() < 0.9:
            return rng.choice(names[-4:] if rng.random() < 0.6 else names)
        return self.load(type)

    def mask(self, lanes: int) -> str:
        return self.value((lanes, "i1")) if self.values.get((lanes, "i1")) else self.compare(lanes)

    def number_of(self, type: Type, x: str) -> str:
        """x with 0 for NaN: a value whose bits everybody agrees on."""
        nan = self.hidden(f"fcmp uno {spell(type)} {x}, {x}")
        zero = self.splat(type, "0.0")
        condition = spell((type[0], "i1"))
        return self.hidden(
            f"select {condition} {nan}, {spell(type)} {zero}, {spell(type)} {x}")

    def splat(self, type: Type, scalar: str) -> str:
        return f"splat ({type[1]} {scalar})" if type[0] else scalar

    def any_type(self, elements: tuple[str, ...] = INTEGERS + FLOATS) -> Type:
        return self.rng.choice([t for t in self.types if t[1] in elements])

    def address(self, base: str, bytes: int, limit: int) -> str:
        """A pointer to `bytes` bytes inside `limit` at base."""
        rng = self.rng
        offset = rng.randrange(0, limit - bytes - 256)
        if rng.random() < 0.5:
            return self.hidden(f"getelementptr i8, ptr {base}, i64 {offset}")
        element, scale = rng.choice([("i8", 1), ("float", 4), ("double", 8), ("i16", 2)])
        near = self.hidden(f"getelementptr i8, ptr {base}, i64 {offset - offset % 8}")
        index = self.hidden(f"and i64 {self.value((0, 'i64'), 0)}, {128 // scale - 1}")
        if rng.random() < 0.3:
            index = self.hidden(f"add i64 {index}, {rng.randrange(128 // scale)}")
        return self.hidden(f"getelementptr {element}, ptr {near}, i64 {index}")

    # -- steps; each adds an operation or two

    def step(self) -> None:
        steps: list[tuple[Callable, float]] = [
            (self.integer, 4), (self.floating, 5), (self.fused, 3), (self.shift, 2),
            (self.compare, 2), (self.select, 3), (self.masks, 2), (self.convert, 3), (self.cast, 2),
            (self.shuffle, 4), (self.element, 2), (self.reduce, 1.5), (self.load, 1),
            (self.keep, 1), (self.masked, 2), (self.gather, 1), (self.divide, 0.5),
            (self.saturate, 0.5), (self.bits, 0.5), (self.stack, 0.3), (self.bitcast, 2),
        ]
        if self.depth < 2:
            steps += [(self.loop, 0.8), (self.branch, 0.8), (self.switch, 0.2), (self.call, 0.4)]
        self.rng.choices([s for s, _ in steps], [w for _, w in steps])[0]()

    def load(self, type: Type | None = None) -> str:
        type = type or self.any_type()
        if type[1] == "i1":
            return self.compare(type[0])
        offset = self.rng.randrange(0, INPUT_BYTES - size(type))
        pointer = self.hidden(f"getelementptr i8, ptr %in, i64 {offset}")
        return self.define(type, f"load {spell(type)}, ptr {pointer}, align 1")

    def store(self, type: Type, name: str) -> None:
        if type[1] == "i1":
            wide = (type[0], "i8")
            name, type = self.hidden(f"zext {spell(type)} {name} to {spell(wide)}"), wide
        if self.place + size(type) > OUTPUT_BYTES:
            return
        pointer = self.hidden(f"getelementptr i8, ptr %out, i64 {self.place}")
        self.line(f"store {spell(type)} {name}, ptr {pointer}, align 1")
        self.results.append((self.place, type))
        self.place += size(type)

    def keep(self) -> None:
        """A store in the middle; loads of the input may be moved over it, not changed by it."""
        type = self.any_type()
        self.store(type, self.value(type, 0))

    def integer(self) -> None:
        type = self.any_type(INTEGERS)
        op = self.rng.choice("add sub mul and or xor and or xor".split())
        a, b = self.value(type, 0.1), self.value(type)
        if self.rng.random() < 0.15:
            kind = self.rng.choice("smin smax umin umax".split())
            call = self.intrinsic(type, f"llvm.{kind}.{suffix(type)}", [type, type])
            self.define(type, call(a, b))
        else:
            self.define(type, f"{op} {spell(type)} {a}, {b}")

    def floating(self) -> None:
        type, rng = self.any_type(FLOATS), self.rng
        a, b = self.value(type), self.value(type)
        op = rng.choice("fadd fsub fmul fdiv fneg sqrt fabs copysign minimum maximum round".split())
        if op == "fneg":
            self.define(type, f"fneg {spell(type)} {a}")
        elif op in ("sqrt", "fabs", "round"):
            if op == "round":
                op = rng.choice("trunc floor ceil rint roundeven".split())
            call = self.intrinsic(type, f"llvm.{op}.{suffix(type)}", [type])
            self.define(type, call(a))
        elif op in ("copysign", "minimum", "maximum"):
            b = self.number_of(type, b) if op == "copysign" else b
            nsz = op != "copysign"
            call = self.intrinsic(
                type, f"llvm.{op}.{suffix(type)}", [type, type], "nsz " if nsz else "")
            if nsz:  # the sign of a zero is anybody's guess until something is added
                self.define(type, f"fadd {spell(type)} {self.hidden(call(a, b))}, "
                            f"{self.splat(type, '0.0')}")
            else:
                self.define(type, call(a, b))
        else:
            self.define(type, f"{op} {spell(type)} {a}, {b}")

    def fused(self) -> None:
        type = self.any_type(FLOATS)
        call = self.intrinsic(type, f"llvm.fma.{suffix(type)}", [type] * 3)
        operands = [self.value(type, 0.15) for _ in range(3)]
        for k in range(3):
            if self.rng.random() < 0.15:
                operands[k] = self.hidden(f"fneg {spell(type)} {operands[k]}")
        self.define(type, call(*operands))

    def shift(self) -> None:
        type, rng = self.any_type(INTEGERS), self.rng
        bits = BITS[type[1]]
        by = self.splat(type, str(rng.randrange(bits)))
        if rng.random() < 0.4:
            mask = self.splat(type, str(bits - 1))
            by = self.hidden(f"and {spell(type)} {self.value(type, 0)}, {mask}")
        self.define(type, f"{rng.choice(['shl', 'lshr', 'ashr'])} {spell(type)} "
                    f"{self.value(type, 0.1)}, {by}")

    def divide(self) -> None:
        type, rng = (0, rng_type := self.rng.choice(["i32", "i64"])), self.rng
        by = self.hidden(f"and {rng_type} {self.value(type, 0)}, 127")
        by = self.hidden(f"or {rng_type} {by}, 1") if rng.random() < 0.7 else "7"
        op = rng.choice("sdiv udiv srem urem".split())
        self.define(type, f"{op} {rng_type} {self.value(type, 0)}, {by}")

    def compare(self, lanes: int | None = None) -> str:
        if lanes is None:
            type = self.any_type()
        else:
            fitting = [(lanes, e) for e in INTEGERS + FLOATS if lanes * BITS[e] <= 1024]
            type = self.rng.choice(fitting)
        word, predicates = ("fcmp", FLOAT_PREDICATES) if type[1] in FLOATS else (
            "icmp", INTEGER_PREDICATES)
        return self.define(
            (type[0], "i1"), f"{word} {self.rng.choice(predicates)} {spell(type)} "
            f"{self.value(type)}, {self.value(type)}")

    def select(self) -> None:
        type = self.any_type()
        lanes = type[0] if self.rng.random() < 0.8 else 0
        a, b = self.value(type), self.value(type)
        if self.rng.random() < 0.3 and type[1] in FLOATS:  # the idiom of min and max
            condition = self.define((type[0], "i1"), f"fcmp {self.rng.choice(['olt', 'ogt'])} "
                                    f"{spell(type)} {a}, {b}")
            lanes = type[0]
        else:
            condition = self.mask(lanes)
        self.define(type, f"select {spell((lanes, 'i1'))} {condition}, {spell(type)} {a}, "
                    f"{spell(type)} {b}")

    def masks(self) -> None:
        lanes = self.rng.choice(self.types)[0]
        type = (lanes, "i1")
        a, b = self.mask(lanes), self.mask(lanes)
        if self.rng.random() < 0.25:
            b = self.splat(type, "true")
        self.define(type, f"{self.rng.choice(['and', 'or', 'xor'])} {spell(type)} {a}, {b}")

    def convert(self) -> None:
        """Between numbers of as many lanes."""
        source, rng = self.any_type(), self.rng
        kinds = [e for e in INTEGERS + FLOATS if source[0] * BITS[e] <= 1024 and e != source[1]]
        target = (source[0], rng.choice(kinds))
        x = self.value(source, 0)
        narrower = BITS[target[1]] < BITS[source[1]]
        if source[1] in INTEGERS and target[1] in INTEGERS:
            op = "trunc" if narrower else rng.choice(["zext", "sext"])
        elif source[1] in INTEGERS:
            op = rng.choice(["sitofp", "uitofp"])
        elif target[1] in FLOATS:
            op = "fptrunc" if narrower else "fpext"
        else:
            return
        self.define(target, f"{op} {spell(source)} {x} to {spell(target)}")

    def saturate(self) -> None:
        source = self.any_type(FLOATS)
        kinds = [e for e in ("i32", "i64") if source[0] * BITS[e] <= 1024]
        target = (source[0], self.rng.choice(kinds))
        op = self.rng.choice(["fptosi", "fptoui"])
        call = self.intrinsic(
            target, f"llvm.{op}.sat.{suffix(target)}.{suffix(source)}", [source])
        self.define(target, call(self.value(source)))

    def cast(self) -> None:
        """From and to masks, and to halves and back."""
        if self.rng.random() < 0.3:
            type = self.any_type(("float",))
            half = spell((type[0], "half"))
            narrow = self.hidden(
                f"fptrunc {spell(type)} {self.number_of(type, self.value(type))} to {half}")
            self.define(type, f"fpext {half} {narrow} to {spell(type)}")
            return
        type = self.any_type(INTEGERS)
        if self.rng.random() < 0.5:
            op = self.rng.choice(["zext", "sext"])
            mask = spell((type[0], "i1"))
            self.define(type, f"{op} {mask} {self.mask(type[0])} to {spell(type)}")
        else:
            self.define((type[0], "i1"),
                        f"trunc {spell(type)} {self.value(type)} to {spell((type[0], 'i1'))}")

    def bitcast(self) -> None:
        to = {"float": "i32", "double": "i64", "i32": "float", "i64": "double"}
        source = self.any_type(tuple(to))
        x = self.value(source)
        if source[1] in FLOATS:
            x = self.number_of(source, x)
        target = (source[0], to[source[1]])
        self.define(target, f"bitcast {spell(source)} {x} to {spell(target)}")

    def shuffle(self) -> None:
        vectors = [t for t in self.types if t[0]]
        type, rng = rng_type = self.rng.choice(vectors), self.rng
        lanes, element = type
        kind = rng.choice("broadcast random two reverse rotate interleave half runs".split())
        other = self.value(type, 0) if kind in ("two", "interleave") else "poison"
        count = lanes
        if kind == "broadcast":
            x = self.hidden(f"insertelement {spell(type)} poison, {element} "
                            f"{self.value((0, element))}, i64 0")
            picked = [0] * lanes
        else:
            x = self.value(type, 0)
            if kind == "reverse":
                picked = list(reversed(range(lanes)))
            elif kind == "rotate":
                by = rng.randrange(lanes)
                picked = [(k + by) % lanes for k in range(lanes)]
            elif kind == "interleave":
                start = rng.choice([0, lanes // 2])
                picked = [start + k // 2 + lanes * (k % 2) for k in range(lanes)]
            elif kind == "half" and lanes > 2:
                count = lanes // 2
                start = rng.choice([0, count])
                picked = [start + k for k in range(count)]
            elif kind == "runs":
                run = 1 << rng.randrange(lanes.bit_length())
                picked = [k // run * run for k in range(lanes)]
            else:
                picked = [rng.randrange(lanes * (2 if kind == "two" else 1)) for _ in range(lanes)]
        chosen = "<" + ", ".join(f"i32 {k}" for k in picked) + ">"
        self.define((count, element), f"shufflevector {spell(rng_type[0])} {x}, {spell(type)} "
                    f"{other}, <{count} x i32> {chosen}")

    def element(self) -> None:
        type = self.rng.choice([t for t in self.types if t[0]])
        lanes, element = type
        index = str(self.rng.randrange(lanes))
        if self.rng.random() < 0.3:
            index = self.hidden(f"and i64 {self.value((0, 'i64'), 0)}, {lanes - 1}")
        if self.rng.random() < 0.5:
            self.define((0, element), f"extractelement {spell(type)} {self.value(type, 0)}, "
                        f"i64 {index}")
        else:
            self.define(type, f"insertelement {spell(type)} {self.value(type)}, {element} "
                        f"{self.value((0, element))}, i64 {index}")

    def reduce(self) -> None:
        rng = self.rng
        type = rng.choice([t for t in self.types if t[0]])
        if rng.random() < 0.4:
            type = (type[0], "i1")
        element, name = type[1], f"llvm.vector.reduce.{{}}.{suffix(type)}"
        x = self.mask(type[0]) if element == "i1" else self.value(type, 0)
        result = (0, element)
        if element == "i1":
            self.define(result, self.intrinsic(result, name.format(rng.choice(["and", "or"])),
                                               [type])(x))
        elif element in INTEGERS:
            op = rng.choice("add mul and or xor smin smax umin umax".split())
            self.define(result, self.intrinsic(result, name.format(op), [type])(x))
        else:
            op = rng.choice(["fminimum", "fmaximum"])
            call = self.intrinsic(result, name.format(op), [type], "nsz ")
            self.define(result, f"fadd {element} {self.hidden(call(x))}, 0.0")

    def masked(self) -> None:
        type = self.rng.choice([t for t in self.types if t[0]])
        mask_type, mask = (type[0], "i1"), self.mask(type[0])
        pointer = (0, "ptr")
        if self.rng.random() < 0.6:
            name = f"llvm.masked.load.{suffix(type)}.p0"
            self.declared[name] = (f"declare {spell(type)} @{name}(ptr, i32, "
                                   f"{spell(mask_type)}, {spell(type)})")
            at = self.address("%in", size(type), INPUT_BYTES)
            other = self.rng.choice(["zeroinitializer", self.value(type)])
            self.define(type, f"call {spell(type)} @{name}({spell(pointer)} {at}, i32 1, "
                        f"{spell(mask_type)} {mask}, {spell(type)} {other})")
            return
        self.store(type, self.value(type))
        place, _ = self.results[-1]
        at = self.hidden(f"getelementptr i8, ptr %out, i64 {place}")
        name = f"llvm.masked.store.{suffix(type)}.p0"
        self.declared[name] = (f"declare void @{name}({spell(type)}, ptr, i32, "
                               f"{spell(mask_type)})")
        self.line(f"call void @{name}({spell(type)} {self.value(type)}, ptr {at}, i32 1, "
                  f"{spell(mask_type)} {mask})")

    def gather(self) -> None:
        fitting = [t for t in self.types if t[0] in (4, 8, 16) and t[1] in ("i32", "i64", *FLOATS)]
        if not fitting:
            return
        type = self.rng.choice(fitting)
        lanes = type[0]
        index_type = (lanes, self.rng.choice(["i32", "i64"]))
        index = self.hidden(f"and {spell(index_type)} {self.value(index_type)}, "
                            f"{self.splat(index_type, '255')}")
        pointers = self.hidden(f"getelementptr {type[1]}, ptr %in, {spell(index_type)} {index}")
        name = f"llvm.masked.gather.{suffix(type)}.v{lanes}p0"
        self.declared[name] = (f"declare {spell(type)} @{name}(<{lanes} x ptr>, i32, "
                               f"<{lanes} x i1>, {spell(type)})")
        mask = self.rng.choice([self.mask(lanes), "splat (i1 true)"])
        other = self.rng.choice(["zeroinitializer", self.value(type)])
        self.define(type, f"call {spell(type)} @{name}(<{lanes} x ptr> {pointers}, i32 1, "
                    f"<{lanes} x i1> {mask}, {spell(type)} {other})")

    def bits(self) -> None:
        type = (0, self.rng.choice(["i32", "i64"]))
        op = self.rng.choice(["ctlz", "ctpop"])
        if op == "ctpop":
            self.define(type, self.intrinsic(type, f"llvm.ctpop.{type[1]}", [type])(
                self.value(type)))
        else:
            call = self.intrinsic(type, f"llvm.ctlz.{type[1]}", [type, (0, "i1")])
            self.define(type, call(self.value(type), "false"))

    def stack(self) -> None:
        type = self.any_type()
        if self.depth:
            return
        slot = self.fresh("slot")
        self.body.insert(0, f"  {slot} = alloca {spell(type)}, i64 1, align 64")
        self.line(f"store {spell(type)} {self.value(type)}, ptr {slot}, align 1")
        if type[0]:
            index = self.hidden(f"and i64 {self.value((0, 'i64'), 0)}, {type[0] - 1}")
            at = self.hidden(f"getelementptr {type[1]}, ptr {slot}, i64 {index}")
            self.define((0, type[1]), f"load {type[1]}, ptr {at}, align 1")
        self.define(type, f"load {spell(type)}, ptr {slot}, align 1")

    # -- control

    def inner(self, steps: int) -> None:
        """Steps whose values end with the block they are in."""
        outer = {type: list(names) for type, names in self.values.items()}
        self.depth += 1
        for _ in range(steps):
            self.step()
        self.depth -= 1
        self.inside, self.values = self.values, outer

    def loop(self) -> None:
        """A counted loop that carries some values round."""
        rng = self.rng
        label, after, start = self.fresh("loop")[1:], self.fresh("end")[1:], self.block
        carried = [self.any_type() for _ in range(rng.randrange(1, 4))]
        before = [self.value(type) for type in carried]
        counts = rng.choice(["%n", "1", str(rng.randrange(2, 9))])
        self.line(f"br label %{label}")
        start = self.block
        self.open(label)
        at = len(self.body)
        k, k1 = self.fresh("k"), self.fresh("k")
        names = [self.fresh() for _ in carried]
        hidden = {type: list(found) for type, found in self.values.items()}
        for type, name in zip(carried, names):
            self.values.setdefault(type, []).append(name)
        self.values.setdefault((0, "i64"), []).append(k)
        self.inner(rng.randrange(3, 12))
        inside, self.values = self.inside, hidden
        nexts = [rng.choice(inside[type][-3:]) for type in carried]
        last = self.block
        phis = [f"  {k} = phi i64 [ 0, %{start} ], [ {k1}, %{last} ]"]
        phis += [f"  {name} = phi {spell(type)} [ {x}, %{start} ], [ {y}, %{last} ]"
                 for name, type, x, y in zip(names, carried, before, nexts)]
        self.body[at:at] = phis
        self.line(f"{k1} = add i64 {k}, 1")
        more = self.hidden(f"icmp slt i64 {k1}, {counts}")
        self.line(f"br i1 {more}, label %{label}, label %{after}")
        self.open(after)
        # What was defined in the loop's last round is visible behind it.
        for type, name in zip(carried, nexts):
            self.values.setdefault(type, []).append(name)

    def branch(self) -> None:
        rng = self.rng
        condition = self.mask(0)
        then, other, after = (self.fresh("block")[1:] for _ in range(3))
        both = rng.random() < 0.5
        start = self.block
        self.line(f"br i1 {condition}, label %{then}, label %{other if both else after}")
        types = [self.any_type() for _ in range(rng.randrange(1, 3))]
        sources = {start: [self.constant(type) for type in types]}
        if both:
            del sources[start]
        for label in (then, other) if both else (then,):
            self.open(label)
            kept = self.values
            self.inner(rng.randrange(1, 6))
            inside, self.values = self.inside, self.values
            picked = []
            for type in types:
                names = inside.get(type) or [self.constant(type)]
                picked.append(rng.choice(names[-3:]))
            sources[self.block] = picked
            self.line(f"br label %{after}")
            assert kept.keys() >= self.values.keys()
        self.open(after)
        for k, type in enumerate(types):
            incoming = ", ".join(f"[ {found[k]}, %{label} ]" for label, found in sources.items())
            self.define(type, f"phi {spell(type)} {incoming}")

    def switch(self) -> None:
        rng = self.rng
        type = self.any_type()
        number = self.hidden(f"and i32 {self.value((0, 'i32'), 0)}, 7")
        labels = [self.fresh("case")[1:] for _ in range(3)]
        after = self.fresh("block")[1:]
        cases = " ".join(f"i32 {k * 2}, label %{label}" for k, label in enumerate(labels))
        start = self.block
        self.line(f"switch i32 {number}, label %{after} [ {cases} ]")
        sources = {start: self.constant(type)}
        for label in labels:
            self.open(label)
            self.inner(rng.randrange(0, 3))
            names = self.inside.get(type) or [self.constant(type)]
            sources[self.block] = rng.choice(names[-3:])
            self.line(f"br label %{after}")
        self.open(after)
        incoming = ", ".join(f"[ {x}, %{label} ]" for label, x in sources.items())
        self.define(type, f"phi {spell(type)} {incoming}")

    def call(self) -> None:
        """Of a function of the module, which changes every register it may."""
        types = [(0, "i64"), (0, "double"), (0, "ptr"), (0, "i32"), (0, "float")]
        name = self.fresh("@")
        result = self.rng.choice([(0, "i64"), (0, "double"), (0, "i32")])
        body = {
            "i64": "  %r = sub i64 %a, 7\n  ret i64 %r",
            "double": "  %w = fpext float %e to double\n  %r = fsub double %b, %w\n  ret double %r",
            "i32": "  %l = load i32, ptr %c, align 1\n  %r = xor i32 %l, %d\n  ret i32 %r",
        }[result[1]]
        self.functions.append(
            f"define internal {result[1]} {name}(i64 %a, double %b, ptr %c, i32 %d, float %e) "
            f"nounwind {{\nentry:\n{body}\n}}")
        operands = [self.value(types[0]), self.value(types[1]), "%in", self.value(types[3]),
                    self.value(types[4])]
        spelled = ", ".join(f"{t[1]} {x}" for t, x in zip(types, operands))
        self.define(result, f"call {result[1]} {name}({spelled})")


def inputs(seed: int) -> bytes:
    """Numbers of all kinds: small and special ones, and any bits."""
    rng = random.Random(seed)
    out = bytearray()
    while len(out) < INPUT_BYTES:
        kind = rng.randrange(5)
        if kind == 0:
            out += rng.randbytes(8)
        elif kind == 1:
            out += struct.pack("<d", rng.choice([rng.gauss(0, 3), 0.0, -0.0, float("inf"),
                                                 float("nan"), 1e300, 5e-324]))
        elif kind == 2:
            out += struct.pack("<ff", rng.gauss(0, 3), rng.choice(
                [rng.gauss(0, 1e4), -0.0, float("-inf"), float("nan"), 1e-40]))
        elif kind == 3:
            out += struct.pack("<q", rng.randrange(-9, 9))
        else:
            out += struct.pack("<ii", rng.randrange(-9, 9), rng.randrange(-(1 << 31), 1 << 31))
    return bytes(out[:INPUT_BYTES])
