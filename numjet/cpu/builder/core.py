"""The function writer's core: arithmetic, comparisons, casts, calls, labels.

For `builder`, which adds memory, lanes and structured control flow. Every method appends one line
and returns the name it defines. A line is (name or None, instruction), an instruction being a tuple
of its operation and operands as `builder.text` lists them; or it is text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from numjet.cpu.builder.module import Module
from numjet.cpu.builder.text import Line, spelled
from numjet.cpu.builder.types import _CONSTANTS, TYPES, Value, const_lanes, like


def _alike(a: Value | float, b: Value | float, what: str) -> tuple[Value, Value]:
    """Both as values of one type; a number takes the other's type."""
    if not isinstance(b, Value):
        if not isinstance(a, Value):
            raise TypeError(f"builder: {what} of two numbers; make one a constant")
        return a, _CONSTANTS[b, a.type]
    if not isinstance(a, Value):
        return _CONSTANTS[a, b.type], b
    if a.type != b.type:
        raise TypeError(f"builder: {what} of {a.type} and {b.type}; cast one of them")
    return a, b


def _word(ref: str) -> str:
    """How a constant, or each lane of one whose lanes are equal, is spelled."""
    return ref[:-1].rpartition(" ")[2] if ref[:6] == "splat " else ref


def _binary(
    float_op: str | None, int_op: str | None, name: str, neutral: Sequence[str] = (),
    absorbing: Sequence[str] = (),
):  # fmt: skip
    """The method for a two-operand instruction chosen by operand type.

    neutral: the integers (and truth values) which as the second operand give the first; absorbing:
    those that give themselves.
    """

    def method(self: Writer, a: Value | float, b: Value | float) -> Value:
        a, b = _alike(a, b, name)
        type = a.type
        op = float_op if TYPES[type].is_float else int_op
        if op is None:
            raise TypeError(f"builder: {name} is not defined for {type}")
        if b.ref[0] != "%":
            word = _word(b.ref)
            if word in neutral:
                return a
            if word in absorbing:
                return b
        return self.pure((op, type, a.ref, b.ref), type)

    method.__name__ = name
    method.__doc__ = f"`{float_op or int_op}` of two values of one type."
    return method


def _cast(op: str):
    def method(self: Writer, x: Value, element: str) -> Value:
        type = like(x.type, TYPES[element].element)
        if type == x.type:
            return x
        return self.pure((op, type, x.type, x.ref), type)

    method.__name__ = op
    method.__doc__ = f"`{op}` to `element` (a scalar type, or a vector type whose element counts)."
    return method


# So much of a function's variables may lie on the stack: some ten functions call one another.
STACK_BYTES = 4096
_SMALL, _ALIGNMENT = 256, 64
# Spilled registers may be more than that: each page is touched, so that the guard page is met.
_PROBED = '"probe-stack"="inline-asm"'
TAKE, GIVE = "@nj_program_take", "@nj_program_give"
_ARRAY = re.compile(r"\[(\d+) x (.+)\]")


def _bytes(type: str) -> int:
    """How many bytes a variable of the type takes."""
    array = _ARRAY.fullmatch(type)
    if array is not None:
        return int(array[1]) * _bytes(array[2])
    info = TYPES[type]
    return -(-max(info.lanes, 1) * info.bits // 8)


def _call(result: str, callee: str, args: Sequence[Value], flags: str) -> tuple:
    types, refs = tuple([a.type for a in args]), tuple([a.ref for a in args])
    return ("call", result, callee, types, refs, flags)


class Writer:
    """Writes one function. `arguments`: (name, type) or (name, type, attributes) each."""

    def __init__(
        self,
        module: Module,
        name: str,
        arguments: Sequence[tuple[str, ...]] = (),
        result: str = "void",
        *,
        linkage: str = "",
        attributes: str = "nounwind",
    ) -> None:
        self.module = module
        self.name = name
        self.result = result
        self.local = bool(linkage)
        self.lines: list[Line] = []
        self.count = 0
        self.label = "entry"
        self.known: dict[tuple, Value] = {}  # see `pure`
        self.narrower: dict[str, Value] = {}  # wider floats: what they were made of
        # What writes the function for the direct generator in place of its lines.
        self.whole: Callable[[Any], None] | None = None
        self.glue = "optnone" in attributes
        self._labels = 0
        self._allocas: list[tuple[str, str, int, int]] = []  # name, type, count, alignment
        self.opening: list[Line] = []  # before the other lines
        written = []
        values = []
        for argument in arguments:
            type = argument[1]
            if type.startswith("ptr "):  # "ptr noalias": attributes beside the type
                argument = (argument[0], "ptr", type[4:])
            extra = f" {argument[2]}" if len(argument) > 2 else ""
            written.append(f"{argument[1]}{extra} %{argument[0]}")
            values.append(Value(f"%{argument[0]}", argument[1]))
        self.args = tuple(values)
        self._head = (
            f"define {linkage + ' ' if linkage else ''}{result} @{name}"
            f"({', '.join(written)}) {attributes} {_PROBED} {{"
        )
        module.functions.append(self)

    def text(self) -> str:
        """The function's definition."""
        return "\n".join([self._head, "entry:", *self.body(), "}"])

    def body(self) -> list[str]:
        """The lines of the function as text."""
        stacked, lines = self.finished()
        return [*stacked, *map(spelled, lines)]

    def finished(self) -> tuple[list[str], list[Line]]:
        """What lies on the stack, and the other lines of the function, which has been written.

        Where all variables together are more than STACK_BYTES, the large ones lie in a block that
        the runtime lends: a thread's stack may be 128 KiB, and has no guard against long steps.
        """
        stacked, lent, total = [], list[tuple[str, int]](), 0
        large = sum([_bytes(type) * count for _, type, count, _ in self._allocas]) > STACK_BYTES
        for ref, type, count, align in self._allocas:
            size = _bytes(type) * count
            if large and size > _SMALL:
                lent.append((ref, total))
                total += -(-size // _ALIGNMENT) * _ALIGNMENT
            else:
                stacked.append(f"  {ref} = alloca {type}, i64 {count}, align {align}")
        if not lent:
            return stacked, [*self.opening, *self.lines]
        self.module.declare(TAKE[1:], "ptr", ["i64"])
        self.module.declare(GIVE[1:], "void", ["ptr"])
        lines: list[Line] = [("%lent", ("call", "ptr", TAKE, ("i64",), (str(total),), ""))]
        for ref, place in lent:
            address = ("getelementptr", "ptr", "i8", "ptr", "%lent", "i64", str(place))
            lines.append((ref, address))
        for line in (*self.opening, *self.lines):
            if line.__class__ is tuple and line[1][0] == "ret":
                lines.append((None, ("call", "void", GIVE, ("ptr",), ("%lent",), "")))
            lines.append(line)
        return stacked, lines

    # ---- plumbing

    def emit(self, text: str, type: str) -> Value:
        """Append the instruction `text` that gives a value of `type`."""
        self.count = count = self.count + 1
        ref = f"%v{count}"
        self.lines.append(f"  {ref} = {text}")
        return Value(ref, type)

    def put(self, instruction: tuple, type: str) -> Value:
        """Append an instruction that gives a value of `type`."""
        self.count = count = self.count + 1
        ref = f"%v{count}"
        self.lines.append((ref, instruction))
        return Value(ref, type)

    def pure(self, instruction: tuple, type: str) -> Value:
        """As `put`, of an instruction that depends on its operands alone: once in a block."""
        found = self.known.get(instruction)
        if found is None:
            self.count = count = self.count + 1
            ref = f"%v{count}"
            self.lines.append((ref, instruction))
            found = self.known[instruction] = Value(ref, type)
        return found

    def line(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append("  " + text)

    def const(self, value: float | bool, type: str) -> Value:
        """A constant of `type` (every lane)."""
        return _CONSTANTS[value, type]

    def lanes(self, values: Sequence[float | int | bool], element: str) -> Value:
        """A vector constant, lane by lane."""
        return const_lanes(values, element)

    def value(self, x: Value | float, type: str) -> Value:
        """`x` itself, or the constant of `type` when it is a Python number."""
        return x if isinstance(x, Value) else _CONSTANTS[x, type]

    # ---- arithmetic

    add = _binary("fadd", "add", "add", ("0",))
    sub = _binary("fsub", "sub", "sub", ("0",))
    mul = _binary("fmul", "mul", "mul", ("1",))
    div = _binary("fdiv", "sdiv", "div", ("1",))
    rem = _binary("frem", "srem", "rem")
    udiv = _binary(None, "udiv", "udiv", ("1",))
    urem = _binary(None, "urem", "urem")
    and_ = _binary(None, "and", "and_", ("-1", "true"), ("0", "false"))
    or_ = _binary(None, "or", "or_", ("0", "false"), ("-1", "true"))
    xor = _binary(None, "xor", "xor", ("0", "false"))
    shl = _binary(None, "shl", "shl", ("0",))
    lshr = _binary(None, "lshr", "lshr", ("0",))
    ashr = _binary(None, "ashr", "ashr", ("0",))

    def not_(self, x: Value) -> Value:
        """All bits inverted."""
        return self.xor(x, _CONSTANTS[True if TYPES[x.type].element == "i1" else -1, x.type])

    def neg(self, x: Value) -> Value:
        """-x; only the sign bit of a float changes."""
        if TYPES[x.type].is_float:
            return self.pure(("fneg", x.type, x.ref), x.type)
        return self.sub(0, x)

    def abs(self, x: Value) -> Value:
        """|x|; the most negative integer stays itself."""
        if TYPES[x.type].is_float:
            head, mark, digits = x.ref.partition("0x")
            if mark and x.ref[0] in "0s" and digits[0] not in "HR":  # a constant
                return Value(f"{head}0x{int(digits[0], 16) & 7:X}{digits[1:]}", x.type)
            return self.intrinsic("llvm.fabs", x)
        return self.intrinsic("llvm.abs", x, Value("false", "i1"))

    def fma(self, a: Value | float, b: Value | float, c: Value | float) -> Value:
        """a·b + c, rounded once. One of them at least is a Value."""
        known = a if isinstance(a, Value) else b if isinstance(b, Value) else c
        assert isinstance(known, Value)
        type = known.type
        x = a if isinstance(a, Value) else _CONSTANTS[a, type]
        y = b if isinstance(b, Value) else _CONSTANTS[b, type]
        z = c if isinstance(c, Value) else _CONSTANTS[c, type]
        if x.type != type or y.type != type or z.type != type:
            raise TypeError(f"builder: fma of {x.type}, {y.type} and {z.type}; cast them alike")
        self.module.fused.add(type)
        return self.put(("fma", type, x.ref, y.ref, z.ref), type)

    def _extremum(
        self, a: Value | float, b: Value | float, word: str, signed: bool, flags: str = "nsz "
    ) -> Value:
        a, b = _alike(a, b, word)
        info = TYPES[a.type]
        if info.is_float:
            return self.intrinsic(f"llvm.{word}imum", a, b, flags=flags, pure=True)
        if info.element == "i1":
            # As truth values; the signed order of one bit would be upside down.
            return self.and_(a, b) if word == "min" else self.or_(a, b)
        return self.intrinsic(f"llvm.{'s' if signed else 'u'}{word}", a, b, pure=True)

    def min(self, a: Value | float, b: Value | float) -> Value:
        """The smaller; NaN if either is NaN. Integers as signed."""
        return self._extremum(a, b, "min", True)

    def max(self, a: Value | float, b: Value | float) -> Value:
        """The larger; NaN if either is NaN. Integers as signed."""
        return self._extremum(a, b, "max", True)

    def of_numbers(self, word: str, a: Value, b: Value) -> Value:
        """The min or max of floats, in one instruction: undefined where either is NaN."""
        return self._extremum(a, b, word, True, "nnan nsz ")

    def umin(self, a: Value | int, b: Value | int) -> Value:
        """The smaller, as unsigned."""
        return self._extremum(a, b, "min", False)

    def umax(self, a: Value | int, b: Value | int) -> Value:
        """The larger, as unsigned."""
        return self._extremum(a, b, "max", False)

    def sqrt(self, x: Value) -> Value:
        """The correctly rounded square root."""
        return self.intrinsic("llvm.sqrt", x)

    # ---- comparison and choice

    def icmp(self, predicate: str, a: Value | int, b: Value | int) -> Value:
        """Compare integers or pointers: eq ne slt sle sgt sge ult ule ugt uge."""
        return self._compare("icmp", predicate, a, b)

    def fcmp(self, predicate: str, a: Value | float, b: Value | float) -> Value:
        """Compare floats: oeq une olt ole ogt oge uno ord …; `o…` is false, `u…` true on NaN."""
        return self._compare("fcmp", predicate, a, b)

    def _compare(self, op: str, predicate: str, a: Value | float, b: Value | float) -> Value:
        a, b = _alike(a, b, op)
        type = a.type
        if predicate == "ne" and _word(b.ref) == "false":
            return a
        made = like(type, "i1")
        return self.pure((op, made, predicate, type, a.ref, b.ref), made)

    def select(self, condition: Value, a: Value | float, b: Value | float) -> Value:
        """a where `condition` (i1, or a vector of them), else b."""
        a, b = _alike(a, b, "select")
        type = a.type
        known = _word(condition.ref)
        if known in ("true", "false"):
            return a if known == "true" else b
        instruction = ("select", type, condition.type, condition.ref, a.ref, b.ref)
        return self.pure(instruction, type)

    # ---- casts

    sitofp = _cast("sitofp")
    uitofp = _cast("uitofp")
    trunc = _cast("trunc")
    zext = _cast("zext")
    sext = _cast("sext")
    _fpext = _cast("fpext")
    _fptrunc = _cast("fptrunc")
    ptrtoint = _cast("ptrtoint")
    inttoptr = _cast("inttoptr")

    def fpext(self, x: Value, element: str) -> Value:
        """A wider float of the same value."""
        found = self._extended(x, element)
        self.narrower[found.ref] = x
        return found

    def _extended(self, x: Value, element: str) -> Value:
        if TYPES[x.type].element != "half" or self.module.converts_half():
            return self._fpext(x, element)
        # By integers, scaled to a float's exponents, which is exact for subnormal numbers too.
        bits = self.zext(self.bitcast(x, like(x.type, "i16")), "i32")
        magnitude = self.shl(self.and_(bits, 0x7FFF), 13)
        sign = self.shl(self.and_(bits, 0x8000), 16)
        floats = like(x.type, "float")
        scaled = self.bitcast(self.mul(self.bitcast(magnitude, floats), 2.0**112), magnitude.type)
        special = self.or_(magnitude, 0x7F800000)
        special = self.select(
            self.icmp("ugt", magnitude, 0x7C00 << 13), self.or_(special, 0x400000), special
        )
        found = self.select(self.icmp("uge", magnitude, 0x7C00 << 13), special, scaled)
        return self._fpext(self.bitcast(self.or_(found, sign), floats), element)

    def fptrunc(self, x: Value, element: str) -> Value:
        """A narrower float, rounded to nearest even."""
        narrow = self.narrower.get(x.ref)
        if narrow is not None and TYPES[narrow.type].element == TYPES[element].element:
            return narrow
        if TYPES[element].element == "half" and not self.module.converts_half():
            return self._round_half(self._fptrunc(x, "float"))
        if TYPES[element].element != "bfloat":
            return self._fptrunc(x, element)
        # By integers: LLVM calls a library routine that is not there on processors without an
        # instruction for it, and the instruction takes subnormal numbers for zero.
        bits = self.bitcast(self.round_bfloat(self._fptrunc(x, "float")), like(x.type, "i32"))
        return self.bitcast(self.trunc(self.lshr(bits, 16), "i16"), like(x.type, "bfloat"))

    def _round_half(self, x: Value) -> Value:
        """A float rounded to half, by integers."""
        bits = self.bitcast(x, like(x.type, "i32"))
        magnitude, sign = self.and_(bits, 0x7FFFFFFF), self.and_(self.lshr(bits, 16), 0x8000)
        # The other bias, and half a place, less one where the last place is even.
        odd = self.and_(self.lshr(magnitude, 13), 1)
        normal = self.lshr(self.add(self.add(magnitude, 0xFFF - (112 << 23)), odd), 13)
        # Places of a float between 1/2 and 1 are those of the smallest halfs: the sum is rounded.
        half = self.add(self.bitcast(magnitude, x.type), 0.5)
        small = self.sub(self.bitcast(half, bits.type), 0x3F000000)
        found = self.select(self.icmp("ult", magnitude, 113 << 23), small, normal)
        found = self.umin(found, 0x7C00)
        nan = self.or_(self.and_(self.lshr(magnitude, 13), 0x3FF), 0x7E00)
        found = self.select(self.icmp("ugt", magnitude, 0x7F800000), nan, found)
        return self.bitcast(self.trunc(self.or_(found, sign), "i16"), like(x.type, "half"))

    def round_bfloat(self, x: Value) -> Value:
        """A float rounded to nearest even to bfloat precision, still a float; NaN stays one."""
        bits = self.bitcast(x, like(x.type, "i32"))
        odd = self.and_(self.lshr(bits, 16), 1)
        rounded = self.and_(self.add(bits, self.add(odd, 0x7FFF)), -0x10000)
        quiet = self.and_(self.or_(bits, 0x400000), -0x10000)
        return self.bitcast(self.select(self.fcmp("uno", x, x), quiet, rounded), x.type)

    def fptosi(self, x: Value, element: str, saturate: bool = True) -> Value:
        """Toward zero; out of range clamps and NaN gives 0 (unspecified if not `saturate`)."""
        return self._float_to_int(x, element, saturate, "fptosi")

    def fptoui(self, x: Value, element: str, saturate: bool = True) -> Value:
        """As `fptosi`, to an unsigned range."""
        return self._float_to_int(x, element, saturate, "fptoui")

    def _float_to_int(self, x: Value, element: str, saturate: bool, op: str) -> Value:
        type = like(x.type, TYPES[element].element)
        bits, unsigned = TYPES[type].bits, op == "fptoui"
        clamped = saturate and TYPES[type].lanes and 1 < bits <= 32
        if clamped and self.module.has("sse4.1") and not self.module.has("avx512f"):
            # LLVM converts these lane by lane: so what is out of range, or NaN, does not reach it.
            top = (1 << bits) - 1 if unsigned else (1 << (bits - 1)) - 1
            low = float(0 if unsigned else ~top)
            x = self.select(self.fcmp("ord", x, x), x, 0.0)
            x = self.select(self.fcmp("olt", x, low), low, x)
            if bits < 32:
                x = self.select(self.fcmp("ogt", x, float(top)), float(top), x)
                return self.trunc(self.fptosi(x, "i32", saturate=False), element)
            above = self.fcmp("oge", x, float(top + 1))
            inside = self.pure((op, type, x.type, self.select(above, 0.0, x).ref), type)
            return self.select(above, self.const(top, type), inside)
        if saturate:
            return self.intrinsic(f"llvm.{op}.sat", x, result=type, overload=(type, x.type))
        return self.pure((op, type, x.type, x.ref), type)

    def bitcast(self, x: Value, type: str) -> Value:
        """The same bits as `type`; a scalar element type keeps the lanes when widths agree."""
        source, target = TYPES[x.type], TYPES[type]
        if source.lanes and not target.lanes and target.bits == source.bits:
            type = f"<{source.lanes} x {type}>"
        if type == x.type:
            return x
        return self.pure(("bitcast", type, x.type, x.ref), type)

    # ---- calls

    def intrinsic(
        self,
        name: str,
        *args: Value,
        result: str | None = None,
        overload: Sequence[str] | None = None,
        flags: str = "",
        pure: bool = False,
    ) -> Value:
        """Call an overloaded intrinsic; once in a block if it is `pure`, of its operands alone.

        The overload suffix comes from the types in `overload` and the result from `result`; both
        default to the first argument's type. `name` with a suffix of its own needs `overload=()`.
        """
        first = args[0].type
        for type in (first,) if overload is None else overload:
            name += "." + TYPES[type].mangled
        result = result or first
        declared = self.module._declared
        if name not in declared:
            declared[name] = f"declare {result} @{name}({', '.join([a.type for a in args])})"
        instruction = _call(result, f"@{name}", args, flags)
        if result == "void":
            self.lines.append((None, instruction))
            return Value("", "void")
        return self.pure(instruction, result) if pure else self.put(instruction, result)

    def call(self, callee: str | Value, result: str, *args: Value) -> Value:
        """Call a function by name (declared when not defined in the module) or by address."""
        if isinstance(callee, Value):
            target = callee.ref
        else:
            target = f"@{callee}"
            self.module.declare(callee, result, [a.type for a in args])
        instruction = _call(result, target, args, "")
        if result == "void":
            self.lines.append((None, instruction))
            return Value("", "void")
        return self.put(instruction, result)

    # ---- control flow

    def new_label(self, stem: str = "b") -> str:
        """A fresh block name."""
        self._labels += 1
        return f"{stem}{self._labels}"

    def block(self, label: str) -> None:
        """Start writing the block `label`; the previous one must have ended with a branch."""
        self.lines.append(f"{label}:")
        self.label = label
        self.known = {}

    def br(self, label: str) -> None:
        """Jump."""
        self.lines.append((None, ("br", label)))

    def cond_br(self, condition: Value, then: str, otherwise: str) -> None:
        """Jump to `then` if `condition` (i1) holds, else to `otherwise`."""
        self.lines.append((None, ("cbr", condition.ref, then, otherwise)))

    def ret(self, value: Value | None = None) -> None:
        """Return from the function."""
        self.lines.append((None, ("ret", "void", "") if value is None else ("ret", *value[::-1])))

    def unreachable(self) -> None:
        """End a block that control never leaves."""
        self.lines.append((None, ("unreachable",)))

    def phi(self, type: str, incoming: Sequence[tuple[Value, str]]) -> Value:
        """The value that came with the edge taken: (value, label of the block it comes from)."""
        pairs = tuple([(value.ref, label) for value, label in incoming])
        return self.put(("phi", type, pairs), type)
