"""Random modules of vectors of equal lanes, of every width of elements, and of their masks.

`Lanes` draws masks of comparisons of all widths, which meet in bitwise operations, choices, loops
and branches, become numbers and come from them; conversions between all widths; extrema, sums of
lanes and lanes with computed numbers of all elements.
"""

from __future__ import annotations

from collections.abc import Callable

from x86_programs import BITS, FLOATS, INTEGERS, Program, Type, spell, suffix

_LIMIT = 1024  # bits of a vector
_LANES = (2, 4, 8, 8, 16, 16, 32, 64)


class Lanes(Program):
    """A module of one number of lanes."""

    lanes = 0

    def step(self) -> None:
        if not self.lanes:
            self.begin()
        if self.rng.random() < 0.5:
            super().step()
            return
        steps: list[tuple[Callable, float]] = [
            (self.joined, 4), (self.chosen, 3), (self.numbers, 3), (self.words, 1.5),
            (self.moved, 2), (self.one, 2), (self.whether, 1.5), (self.saturated, 2),
            (self.extremum, 2), (self.absolute, 1), (self.together, 2), (self.every, 1.5),
            (self.half, 1), (self.picked, 2), (self.ordered, 1),
        ]
        if self.depth < 2:
            steps += [(self.carried, 1), (self.parted, 1)]
        self.rng.choices([s for s, _ in steps], [w for _, w in steps])[0]()

    def begin(self) -> None:
        """Have all operations on elements that fit in vectors of as many lanes, and on numbers."""
        elements = INTEGERS + FLOATS
        self.lanes = self.rng.choice(_LANES)
        fitting = [(self.lanes, e) for e in elements if self.lanes * BITS[e] <= _LIMIT]
        self.types = [(0, e) for e in elements] + fitting * 3
        self.values = {type: names for type, names in self.values.items() if not type[0]}

    def vector(self, elements: tuple[str, ...] = INTEGERS + FLOATS) -> Type:
        found = [t for t in self.types if t[0] and t[1] in elements]
        return self.rng.choice(found or [t for t in self.types if t[0]])

    @property
    def bits_type(self) -> Type:
        return (self.lanes, "i1")

    def some(self) -> str:
        """A mask, of a comparison of any width or an older one; seldom a constant."""
        rng = self.rng
        if rng.random() < 0.1:
            return self.constant(self.bits_type)
        return self.compare(self.lanes) if rng.random() < 0.5 else self.mask(self.lanes)

    # -- masks

    def joined(self) -> None:
        rng, type = self.rng, self.bits_type
        a, b = self.some(), self.some()
        op = rng.choice(["and", "or", "xor", "and", "or", "not", "add", "select"])
        if op == "not":
            self.define(type, f"xor {spell(type)} {a}, splat (i1 true)")
        elif op == "select":
            condition = self.some()
            self.define(type, f"select {spell(type)} {condition}, {spell(type)} {a}, "
                        f"{spell(type)} {b}")
        else:
            self.define(type, f"{op} {spell(type)} {a}, {b}")

    def ordered(self) -> None:
        predicate = self.rng.choice("eq ne slt sle sgt sge ult ule ugt uge".split())
        type = self.bits_type
        self.define(type, f"icmp {predicate} {spell(type)} {self.some()}, {self.some()}")

    def chosen(self) -> None:
        """By lanes, or between masks by one bit."""
        if self.rng.random() < 0.2:
            type = self.bits_type
            a, b = self.some(), self.some()
            self.define(type, f"select i1 {self.mask(0)}, {spell(type)} {a}, {spell(type)} {b}")
            return
        type = self.vector()
        a, b, condition = self.value(type), self.value(type), self.some()
        if self.rng.random() < 0.2:
            zero = "zeroinitializer"
            a, b = (zero, b) if self.rng.random() < 0.5 else (a, zero)
        self.define(type, f"select {spell(self.bits_type)} {condition}, {spell(type)} {a}, "
                    f"{spell(type)} {b}")

    def numbers(self) -> None:
        type = self.vector()
        ops = ["zext", "sext"] if type[1] in INTEGERS else ["uitofp", "sitofp"]
        x = self.some()
        if x[0] == "%":
            op = self.rng.choice(ops)
            self.define(type, f"{op} {spell(self.bits_type)} {x} to {spell(type)}")

    def words(self) -> None:
        """A mask as one number, and back."""
        if self.lanes < 8:
            return
        word, type = (0, f"i{self.lanes}"), self.bits_type
        if self.rng.random() < 0.6:
            x = self.some()
            if x[0] == "%":
                self.define(word, f"bitcast {spell(type)} {x} to {word[1]}")
        else:
            self.define(type, f"bitcast {word[1]} {self.value(word, 0)} to {spell(type)}")

    def moved(self) -> None:
        type, rng, count = self.bits_type, self.rng, self.lanes
        a, b = self.some(), self.some()
        two = rng.random() < 0.4
        picked = [rng.randrange(count * (1 + two)) for _ in range(count)]
        if rng.random() < 0.3:
            picked = [rng.randrange(count)] * count
        chosen = ", ".join(f"i32 {k}" for k in picked)
        self.define(type, f"shufflevector {spell(type)} {a}, {spell(type)} "
                    f"{b if two else 'poison'}, <{count} x i32> <{chosen}>")

    def one(self) -> None:
        type = self.bits_type
        lane = self.rng.randrange(self.lanes)
        x = self.some()
        if self.rng.random() < 0.5 and x[0] == "%":
            self.define((0, "i1"), f"extractelement {spell(type)} {x}, i64 {lane}")
        else:
            self.define(type, f"insertelement {spell(type)} {x}, i1 {self.mask(0)}, i64 {lane}")

    def whether(self) -> None:
        kind, type = self.rng.choice(["and", "or"]), self.bits_type
        call = self.intrinsic((0, "i1"), f"llvm.vector.reduce.{kind}.{suffix(type)}", [type])
        x = self.some()
        if x[0] == "%":
            self.define((0, "i1"), call(x))

    # -- numbers

    def saturated(self) -> None:
        """Of lanes and single floats, to integers of all widths."""
        source = self.any_type(FLOATS)
        limit = [e for e in INTEGERS if source[0] * BITS[e] <= _LIMIT]
        target = (source[0], self.rng.choice(limit))
        kind = self.rng.choice(["fptosi", "fptoui"])
        name = f"llvm.{kind}.sat.{suffix(target)}.{suffix(source)}"
        self.define(target, self.intrinsic(target, name, [source])(self.value(source, 0)))

    def every(self) -> None:
        """Any integers as floats, and integers as wider and narrower ones."""
        source = self.any_type(INTEGERS)
        fitting = [e for e in INTEGERS + FLOATS if source[0] * BITS[e] <= _LIMIT]
        element = self.rng.choice([e for e in fitting if e != source[1]])
        target, x = (source[0], element), self.value(source, 0)
        if element in FLOATS:
            op = self.rng.choice(["sitofp", "uitofp"])
        else:
            narrower = BITS[element] < BITS[source[1]]
            op = "trunc" if narrower else self.rng.choice(["zext", "sext"])
        self.define(target, f"{op} {spell(source)} {x} to {spell(target)}")

    def half(self) -> None:
        """Through floats of two bytes."""
        if self.lanes * 32 > _LIMIT:
            return
        type, half = (self.lanes, "float"), (self.lanes, "half")
        number = self.number_of(type, self.value(type, 0))
        narrow = self.hidden(f"fptrunc {spell(type)} {number} to {spell(half)}")
        self.define(type, f"fpext {spell(half)} {narrow} to {spell(type)}")

    def extremum(self) -> None:
        type = self.vector()
        a, b = self.value(type), self.value(type)
        if type[1] in INTEGERS:
            name = f"llvm.{self.rng.choice('smin smax umin umax'.split())}.{suffix(type)}"
            self.define(type, self.intrinsic(type, name, [type, type])(a, b))
            return
        name = f"llvm.{self.rng.choice(['minimum', 'maximum'])}.{suffix(type)}"
        call = self.intrinsic(type, name, [type, type], "nsz ")
        self.define(type, f"fadd {spell(type)} {self.hidden(call(a, b))}, "
                    f"{self.splat(type, '0.0')}")

    def absolute(self) -> None:
        type = self.vector(INTEGERS)
        call = self.intrinsic(type, f"llvm.abs.{suffix(type)}", [type, (0, "i1")])
        self.define(type, call(self.value(type, 0), "false"))

    def together(self) -> None:
        """All lanes put together."""
        type = self.vector(INTEGERS)
        kind = self.rng.choice("add mul and or xor smin smax umin umax".split())
        name, result = f"llvm.vector.reduce.{kind}.{suffix(type)}", (0, type[1])
        self.define(result, self.intrinsic(result, name, [type])(self.value(type, 0)))

    def picked(self) -> None:
        """Every lane, one after the other, or one with a computed number."""
        type, rng = self.vector(), self.rng
        single, x = (0, type[1]), self.value(type, 0)
        lane = str(rng.randrange(self.lanes))
        if rng.random() < 0.4:
            wide = self.hidden(f"and i64 {self.value((0, 'i64'), 0)}, {self.lanes - 1}")
            lane = wide
        if rng.random() < 0.5:
            self.define(single, f"extractelement {spell(type)} {x}, i64 {lane}")
        else:
            self.define(type, f"insertelement {spell(type)} {x}, {spell(single)} "
                        f"{self.value(single)}, i64 {lane}")

    # -- control

    def carried(self) -> None:
        """A mask that a loop carries, of comparisons of several widths."""
        type, rng = self.bits_type, self.rng
        first, start = self.some(), self.block
        label, after = self.fresh("loop")[1:], self.fresh("end")[1:]
        self.line(f"br label %{label}")
        self.open(label)
        at = len(self.body)
        k, k1, name = self.fresh("k"), self.fresh("k"), self.fresh()
        hidden = {t: list(names) for t, names in self.values.items()}
        self.values.setdefault(type, []).append(name)
        self.inner(rng.randrange(1, 6))
        inside, self.values = self.inside, hidden
        again = rng.choice(inside[type][-3:])
        last = self.block
        self.body[at:at] = [
            f"  {k} = phi i64 [ 0, %{start} ], [ {k1}, %{last} ]",
            f"  {name} = phi {spell(type)} [ {first}, %{start} ], [ {again}, %{last} ]",
        ]
        self.line(f"{k1} = add i64 {k}, 1")
        more = self.hidden(f"icmp slt i64 {k1}, {rng.choice(['%n', '2', '5'])}")
        self.line(f"br i1 {more}, label %{label}, label %{after}")
        self.open(after)
        self.values.setdefault(type, []).append(again)

    def parted(self) -> None:
        """A mask from either way of a branch."""
        type, rng = self.bits_type, self.rng
        condition, other, start = self.mask(0), self.some(), self.block
        then, after = self.fresh("block")[1:], self.fresh("block")[1:]
        self.line(f"br i1 {condition}, label %{then}, label %{after}")
        self.open(then)
        self.inner(rng.randrange(1, 4))
        found = self.inside.get(type) or [self.constant(type)]
        made, last = rng.choice(found[-3:]), self.block
        self.line(f"br label %{after}")
        self.open(after)
        self.define(type, f"phi {spell(type)} [ {other}, %{start} ], [ {made}, %{last} ]")
