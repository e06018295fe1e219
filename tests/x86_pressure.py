"""Random modules that keep many values alive, past calls, out of loops in their middle, in memory.

`Pressure` draws from the operations that the direct generator knows, so that long programs reach
what comes behind selection: registers that run out, copies between blocks, what calls change.
`CLOBBERING` is a module whose function `nj_clobbering(double, i64)` leaves no register as it was
that a callee may change; programs call it from cold blocks.
"""

from __future__ import annotations

from x86_programs import BITS, INPUT_BYTES, OUTPUT_BYTES, Program, Type, spell, suffix

_CALLEE = "nj_clobbering"
_SUMS = 40  # vectors that live at once there: more than there are registers


def clobbering() -> str:
    """The module of `nj_clobbering`: a - b, after all vector registers and masks were used."""
    loads = "".join([
        f"  %q{k} = getelementptr i8, ptr %t, i64 {64 * k}\n"
        f"  %v{k} = load <16 x float>, ptr %q{k}, align 64\n"
        f"  %m{k} = fcmp uno <16 x float> %v{k}, %v{k}\n" for k in range(_SUMS)
    ])  # fmt: skip
    chosen = "".join([
        f"  %s{k} = select <16 x i1> %m{k}, <16 x float> %v{(7 * k + 1) % _SUMS}, "
        f"<16 x float> %v{_SUMS - 1 - k}\n"
        f"  store <16 x float> %s{k}, ptr %q{k}, align 64\n" for k in range(_SUMS)
    ])  # fmt: skip
    return f"""define double @{_CALLEE}(double %a, i64 %b) nounwind noinline {{
entry:
  %t = alloca [{16 * _SUMS} x float], align 64
  call void @llvm.memset.p0.i64(ptr align 64 %t, i8 77, i64 {64 * _SUMS}, i1 true)
{loads}{chosen}  %c = sitofp i64 %b to double
  %d = fsub double %a, %c
  ret double %d
}}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""


class Pressure(Program):
    """A module whose values stay alive."""

    def step(self) -> None:
        steps = [
            (self.whole, 4), (self.floating, 5), (self.fused, 3), (self.moved, 2),
            (self.compare, 2), (self.select, 3), (self.masks, 2), (self.shuffle, 3),
            (self.element, 1.5), (self.numbered, 0.7), (self.load, 1.5), (self.keep, 1),
            (self.masked, 2), (self.divide, 0.4), (self.quotient, 0.4), (self.bits, 0.4),
            (self.stack, 0.3), (self.width, 2), (self.cold, 0.5), (self.wide_call, 0.5),
            (self.copied, 0.3), (self.again, 2),
        ]
        if self.depth < 3:
            steps += [(self.loop, 1.2), (self.branch, 1.2), (self.switch, 0.2), (self.call, 0.4),
                      (self.left, 0.6)]
        self.rng.choices([s for s, _ in steps], [w for _, w in steps])[0]()

    def value(self, type: Type, constants: float = 0.2) -> str:
        """Mostly any of the values so far."""
        names, rng = self.values.get(type), self.rng
        if names and rng.random() < 0.95 and rng.random() > 0.6 * constants:
            return rng.choice(names)
        return super().value(type, constants)

    def of(self, elements: tuple[str, ...]) -> Type | None:
        found = [type for type in self.types if type[1] in elements]
        return self.rng.choice(found) if found else None

    # -- operations

    def whole(self) -> None:
        kind = self.of(("i32", "i64"))
        if kind is not None:
            op = self.rng.choice("add sub mul and or xor".split())
            self.define(kind, f"{op} {spell(kind)} {self.value(kind, 0)}, {self.value(kind)}")

    def moved(self) -> None:
        kind, rng = self.of(("i8", "i16", "i32", "i64")), self.rng
        if kind is None:
            return
        last = self.splat(kind, str(BITS[kind[1]] - 1))
        by = self.splat(kind, str(rng.randrange(BITS[kind[1]])))
        if rng.random() < 0.4:
            by = self.hidden(f"and {spell(kind)} {self.value(kind, 0)}, {last}")
        op = rng.choice(["shl", "lshr", "ashr"])
        self.define(kind, f"{op} {spell(kind)} {self.value(kind, 0)}, {by}")

    def quotient(self) -> None:
        """Lanes divided by a number."""
        kind, rng = self.of(("i32",)), self.rng
        if kind is not None and kind[0]:
            op = rng.choice("sdiv udiv srem urem".split())
            by = rng.choice([2, 3, 7, 16, 100, 641, rng.randrange(2, 1 << 31)])
            by = -by if op[0] == "s" and rng.random() < 0.4 else by
            x, divisor = self.value(kind, 0), self.splat(kind, str(by))
            self.define(kind, f"{op} {spell(kind)} {x}, {divisor}")

    def width(self) -> None:
        """Between words and floats of 32 and 64 bits."""
        source, rng = self.of(("float", "double", "i32", "i64")), self.rng
        if source is None:
            return
        element = rng.choice({"float": ["i32", "double"], "double": ["i64", "float"],
                              "i32": ["float", "i64"], "i64": ["double", "i32"]}[source[1]])
        target, x = (source[0], element), self.value(source, 0)
        if source[0] * BITS[element] > 1024:
            return
        narrower = BITS[element] < BITS[source[1]]
        if source[1][0] == element[0] == "i":
            op = "trunc" if narrower else rng.choice(["zext", "sext"])
        elif source[1][0] == "i":
            op = rng.choice(["sitofp", "uitofp"])
        elif element[0] == "i":
            kind = rng.choice(["fptosi", "fptoui"])
            name = f"llvm.{kind}.sat.{suffix(target)}.{suffix(source)}"
            self.define(target, self.intrinsic(target, name, [source])(x))
            return
        else:
            op = "fptrunc" if narrower else "fpext"
        self.define(target, f"{op} {spell(source)} {x} to {spell(target)}")

    def numbered(self) -> None:
        """A lane whose number is the lower half of a register."""
        kind = self.rng.choice([t for t in self.types if t[0]])
        lane = self.hidden(f"and i64 {self.value((0, 'i64'), 0)}, {(5 << 32) + kind[0] - 1}")
        lane = self.hidden(f"trunc i64 {lane} to i32")
        single, x = (0, kind[1]), self.value(kind, 0)
        if self.rng.random() < 0.5:
            self.define(single, f"extractelement {spell(kind)} {x}, i32 {lane}")
        else:
            self.define(kind, f"insertelement {spell(kind)} {x}, {spell(single)} "
                        f"{self.value(single)}, i32 {lane}")

    def again(self) -> None:
        """What was written is read, and may be written over before its reader stands."""
        whole = [(place, kind) for place, kind in self.results if kind in self.types]
        if not whole:
            return
        place, kind = self.rng.choice(whole[-6:])
        at = self.hidden(f"getelementptr i8, ptr %out, i64 {place}")
        self.define(kind, f"load {spell(kind)}, ptr {at}, align 1")
        if self.rng.random() < 0.6:
            self.line(f"store {spell(kind)} {self.value(kind)}, ptr {at}, align 1")

    def copied(self) -> None:
        """Bytes moved or set in the output."""
        count, rng = self.rng.choice([1, 3, 7, 16, 31, 64, 100]), self.rng
        if self.place + count > OUTPUT_BYTES:
            return
        to = self.hidden(f"getelementptr i8, ptr %out, i64 {self.place}")
        source = self.hidden(f"getelementptr i8, ptr %in, i64 {rng.randrange(INPUT_BYTES - 100)}")
        if rng.random() < 0.7:
            self.declared["memcpy"] = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
            self.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {count}, "
                      "i1 false)")
        else:
            self.declared["memset"] = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
            self.line(f"call void @llvm.memset.p0.i64(ptr {to}, i8 {rng.randrange(128)}, "
                      f"i64 {count}, i1 false)")
        self.results += [(self.place + k, (0, "i8")) for k in range(count)]
        self.place += count

    # -- control

    def cold(self) -> None:
        """A call that is declared as cold, on one of two ways."""
        self.declared[_CALLEE] = f"declare double @{_CALLEE}(double, i64) cold"
        condition, start = self.mask(0), self.block
        a, b = self.value((0, "double"), 0), self.value((0, "i64"), 0)
        other = self.value((0, "double"))
        label, after = self.fresh("cold")[1:], self.fresh("warm")[1:]
        self.line(f"br i1 {condition}, label %{label}, label %{after}")
        self.open(label)
        made = self.hidden(f"call double @{_CALLEE}(double {a}, i64 {b})")
        self.line(f"br label %{after}")
        self.open(after)
        self.define((0, "double"), f"phi double [ {made}, %{label} ], [ {other}, %{start} ]")

    def wide_call(self) -> None:
        """Of a function with many arguments, of all classes, some on the stack."""
        rng = self.rng
        kinds: list[Type] = [(0, "i64"), (0, "i32"), (0, "double"), (0, "float"), (8, "double"),
                             (16, "float"), (4, "float"), (2, "double")]
        given = [rng.choice(kinds) for _ in range(rng.randrange(1, 13))]
        while sum(kind[1] in ("float", "double") for kind in given) > 8:
            given.pop(next(k for k, kind in enumerate(given) if kind[1] in ("float", "double")))
        result = rng.choice(given or [kinds[0]])
        given = given or [result]
        op = "sub" if result[1][0] == "i" else "fsub"
        body, last = [], ""
        for k, kind in enumerate(given):
            if kind == result and last:
                body.append(f"  %r{k} = {op} {spell(result)} {last}, %a{k}")
            last = (f"%r{k}" if last else f"%a{k}") if kind == result else last
        name = self.fresh("@")
        arguments = ", ".join([f"{spell(kind)} %a{k}" for k, kind in enumerate(given)])
        self.functions.append("\n".join([
            f"define internal {spell(result)} {name}({arguments}) nounwind {{", "entry:", *body,
            f"  ret {spell(result)} {last}", "}",
        ]))
        operands = ", ".join([f"{spell(kind)} {self.value(kind)}" for kind in given])
        self.define(result, f"call {spell(result)} {name}({operands})")

    def left(self) -> None:
        """A loop that may be left in its middle."""
        rng = self.rng
        label, middle, after = (self.fresh("block")[1:] for _ in range(3))
        carried = [self.any_type() for _ in range(rng.randrange(1, 4))]
        before = [self.value(kind) for kind in carried]
        self.line(f"br label %{label}")
        start = self.block
        self.open(label)
        at, k, k1 = len(self.body), self.fresh("k"), self.fresh("k")
        names = [self.fresh() for _ in carried]
        outside = {kind: list(found) for kind, found in self.values.items()}
        for kind, name in zip(carried, names, strict=True):
            self.values.setdefault(kind, []).append(name)
        self.inner(rng.randrange(1, 6))
        self.values = {kind: list(found) for kind, found in self.inside.items()}
        stop = self.mask(0)
        early = [rng.choice(self.values[kind][-4:]) for kind in carried]
        leaving = self.block
        self.line(f"br i1 {stop}, label %{after}, label %{middle}")
        self.open(middle)
        self.inner(rng.randrange(1, 6))
        inside, self.values = self.inside, outside
        nexts = [rng.choice(inside[kind][-4:]) for kind in carried]
        late = [rng.choice(inside[kind][-4:]) for kind in carried]
        last = self.block
        self.body[at:at] = [f"  {k} = phi i64 [ 0, %{start} ], [ {k1}, %{last} ]"] + [
            f"  {name} = phi {spell(kind)} [ {x}, %{start} ], [ {y}, %{last} ]"
            for name, kind, x, y in zip(names, carried, before, nexts, strict=True)
        ]
        self.line(f"{k1} = add i64 {k}, 1")
        more = self.hidden(f"icmp slt i64 {k1}, 5")
        self.line(f"br i1 {more}, label %{label}, label %{after}")
        self.open(after)
        for kind, x, y in zip(carried, early, late, strict=True):
            self.define(kind, f"phi {spell(kind)} [ {x}, %{leaving} ], [ {y}, %{last} ]")
