"""A thin writer of LLVM IR text: functions over scalars and explicit vectors.

Used by the native backend's generators (`emit`, `math`, `kernels`, `runtime`). It writes plain
strings into a list, because emitting must cost less than LLVM's parsing of the same line; the
text is deterministic, so that it can be hashed for the object cache.

Values carry their LLVM type; operations are chosen from it (`add` on "<16 x float>" is `fadd`).
Integers are signless, so unsigned operations have names of their own (`udiv`, `lshr`, "ult").
A Python number beside a `Value` becomes a constant of that value's type. No fast-math flags,
except that reductions may reassociate and that `min`/`max` leave the sign of a zero open.

What would break it: a value used in a block that its definition does not dominate (LLVM's verifier
reports that), or a `yield_` whose types differ from the carried values.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from numjet.cpu import link


class Value(NamedTuple):
    """An SSA name or a constant (`ref`) with its LLVM type (`type`)."""

    ref: str
    type: str


class TypeInfo(NamedTuple):
    """What the type string says. `lanes` is 0 for a scalar; `bits` are those of one element."""

    lanes: int
    element: str
    is_float: bool
    bits: int
    mangled: str


_FLOATS = {"half": (16, "f16"), "bfloat": (16, "bf16"), "float": (32, "f32"), "double": (64, "f64")}


class _Types(dict):
    """type string -> TypeInfo, filled on demand."""

    def __missing__(self, text: str) -> TypeInfo:
        if text.startswith("<"):
            lanes, _, element = text[1:-1].partition(" x ")
            scalar = self[element]
            info = TypeInfo(
                int(lanes), element, scalar.is_float, scalar.bits, f"v{lanes}{scalar.mangled}"
            )
        elif text in _FLOATS:
            bits, short = _FLOATS[text]
            info = TypeInfo(0, text, True, bits, short)
        elif text == "ptr":
            info = TypeInfo(0, text, False, 64, "p0")
        elif text[0] == "i" and text[1:].isdigit():
            info = TypeInfo(0, text, False, int(text[1:]), text)
        else:
            raise TypeError(f"builder: {text!r} is not a value type this writer knows")
        self[text] = info
        return info


TYPES = _Types()


def vector(element: str, lanes: int) -> str:
    """The type of `lanes` elements; 0 lanes means the scalar itself."""
    return f"<{lanes} x {element}>" if lanes else element


def like(type: str, element: str) -> str:
    """`type` with another element: like("<8 x float>", "i32") is "<8 x i32>"."""
    lanes = TYPES[type].lanes
    return f"<{lanes} x {element}>" if lanes else element


def _float_text(value: float, element: str) -> str:
    """The exact hexadecimal spelling of `value` rounded to `element`."""
    value = float(value)
    if element == "double":
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    if element == "float":
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = math.copysign(math.inf, value)
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    if element == "half":
        try:
            packed = struct.pack("<e", value)
        except OverflowError:
            packed = struct.pack("<e", math.copysign(math.inf, value))
        return f"0xH{struct.unpack('<H', packed)[0]:04X}"
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    if math.isnan(value):
        return "0xR7FC0"
    # bfloat: round the double to 8 significant bits (to nearest, ties to even) at once.
    exponent = max((bits >> 52 & 0x7FF) - 1023, -126)
    if bits >> 52 & 0x7FF == 0x7FF:
        rounded = value
    else:
        scaled = float(round(math.ldexp(value, 7 - exponent)))
        rounded = math.copysign(math.ldexp(scaled, exponent - 7), value)
    try:
        word = struct.unpack("<I", struct.pack("<f", rounded))[0]
    except OverflowError:
        word = 0xFF800000 if value < 0 else 0x7F800000
    return f"0xR{word >> 16:04X}"


class _Constants(dict):
    """(value, type) -> Value. Zeros of a float type are spelled apart, since -0.0 == 0.0."""

    def __missing__(self, key: tuple) -> Value:
        value, type = key
        info = TYPES[type]
        if info.is_float:
            text = _float_text(value, info.element)
        elif info.element == "ptr":
            if value:
                raise TypeError("builder: the only pointer constant is null (0)")
            text = "null"
        elif info.element == "i1":
            text = "true" if value else "false"
        else:
            text = str(int(value))
        made = Value(f"splat ({info.element} {text})" if info.lanes else text, type)
        if value and not math.isnan(value):
            self[key] = made
        return made


_CONSTANTS = _Constants()


def const(value: float | bool, type: str) -> Value:
    """A constant of `type`; every lane of a vector. Floats are rounded to the type and exact."""
    return _CONSTANTS[value, type]


def const_lanes(values: Sequence[float | int | bool], element: str) -> Value:
    """A vector constant with its own value in each lane."""
    inner = ", ".join(f"{element} {const(v, element).ref}" for v in values)
    return Value(f"<{inner}>", f"<{len(values)} x {element}>")


def poison(type: str) -> Value:
    """An unspecified value, for lanes that nobody reads."""
    return Value("poison", type)


class Module:
    """Functions, declarations and constant data that become one LLVM module.

    `features`: the target's feature names ("avx512f", "fma"); those that `link` compiles for when
    not given. They only let generators choose between equivalent instruction sequences.
    """

    def __init__(self, features: frozenset[str] | None = None) -> None:
        self._features = features
        self.functions: list[Builder] = []
        self.raw: list[str] = []
        self._declared: dict[str, str] = {}
        self._globals: dict[str, str] = {}
        self._arrays: dict[str, str] = {}

    def has(self, feature: str) -> bool:
        """Whether the target has an instruction set extension."""
        if self._features is None:
            return link.target().has(feature)
        return feature in self._features

    def declare(self, name: str, result: str, arguments: Sequence[str]) -> None:
        """Declare an external function (or intrinsic) `name`, once."""
        if name not in self._declared:
            self._declared[name] = f"declare {result} @{name}({', '.join(arguments)})"

    def external(self, name: str) -> Value:
        """The address of an external symbol of data."""
        self._globals.setdefault(name, f"@{name} = external global i8")
        return Value(f"@{name}", "ptr")

    def variable(self, name: str, type: str, initial: str = "zeroinitializer") -> Value:
        """A mutable global variable private to the module; its address."""
        self._globals.setdefault(name, f"@{name} = internal global {type} {initial}, align 64")
        return Value(f"@{name}", "ptr")

    def array(self, values: Sequence[float | int], element: str) -> Value:
        """A constant table; equal tables are stored once. Returns its address (64-aligned)."""
        inner = ", ".join(f"{element} {const(v, element).ref}" for v in values)
        return self._constant(f"[{len(values)} x {element}] [{inner}]")

    def string(self, text: str) -> Value:
        """A zero-terminated UTF-8 string; its address."""
        data = text.encode() + b"\0"
        return self._constant(
            f'[{len(data)} x i8] c"' + "".join(f"\\{byte:02X}" for byte in data) + '"'
        )

    def _constant(self, initial: str) -> Value:
        name = self._arrays.get(initial)
        if name is None:
            name = self._arrays[initial] = f"table{len(self._arrays)}"
            self._globals[name] = f"@{name} = private unnamed_addr constant {initial}, align 64"
        return Value(f"@{name}", "ptr")

    def text(self) -> str:
        """The module as LLVM assembly."""
        defined = {function.name for function in self.functions}
        declared = [line for name, line in self._declared.items() if name not in defined]
        parts = [*self._globals.values(), *declared, *self.raw]
        parts += [function.text() for function in self.functions]
        return "\n".join(parts) + "\n"


class Loop:
    """A running counted loop: `index`, carried `values`, and after it `results`."""

    def __init__(self, index: Value, values: tuple[Value, ...]) -> None:
        self.index = index
        self.values = values
        self.results: tuple[Value, ...] = values
        self.yielded: tuple[Value, ...] | None = None

    def yield_(self, *values: Value) -> None:
        """Say what the carried values are after this iteration; once, as the body's last act."""
        _check_yield(self.values, values, "loop")
        self.yielded = values


class While:
    """A running while loop: `values` at its head, `test` once, then the body, then `yield_`."""

    def __init__(self, builder: Builder, values: tuple[Value, ...], exit: str) -> None:
        self.values = self.results = values
        self.yielded: tuple[Value, ...] | None = None
        self.tested = False
        self._builder = builder
        self._exit = exit

    def test(self, condition: Value) -> None:
        """Leave the loop unless `condition` (i1) holds; `results` are the head's values."""
        body = self._builder.new_label("do")
        self._builder.cond_br(condition, body, self._exit)
        self._builder.block(body)
        self.tested = True

    def yield_(self, *values: Value) -> None:
        """Say what the carried values are at the next test."""
        _check_yield(self.values, values, "while")
        self.yielded = values


class Branch:
    """An `if_`: yield in both arms, then read `results`."""

    def __init__(self, builder: Builder, slot: int, condition: Value) -> None:
        self.results: tuple[Value, ...] = ()
        self._builder = builder
        self._slot = slot
        self._condition = condition
        self._otherwise: tuple[Value, ...] = ()
        self._then: tuple[Value, ...] = ()
        self._yielded: tuple[Value, ...] = ()
        self._then_label = self._then_end = self._end = ""
        self._mark = self._slot_end = -1

    def yield_(self, *values: Value) -> None:
        """The arm's results."""
        self._yielded = values

    @contextmanager
    def else_(self) -> Iterator[None]:
        """The other arm; must follow the `if_` block with nothing emitted between."""
        b = self._builder
        if len(b.lines) != self._mark:
            raise RuntimeError("builder: else_ must follow its if_ block directly")
        del b.lines[self._slot_end :]
        other = b.new_label("else")
        b.lines[self._slot] = _cond_br(self._condition, self._then_label, other)
        b.block(other)
        self._yielded = ()
        yield
        _check_yield(self._then, self._yielded, "else_")
        last = b.label
        b.br(self._end)
        b.block(self._end)
        self.results = tuple(
            b.phi(x.type, ((x, self._then_end), (y, last)))
            for x, y in zip(self._then, self._yielded, strict=True)
        )


def _check_yield(expected: Sequence[Value], got: Sequence[Value], what: str) -> None:
    if [v.type for v in expected] != [v.type for v in got]:
        raise TypeError(
            f"builder: {what} carries {[v.type for v in expected]}, "
            f"but yields {[v.type for v in got]}"
        )


def _cond_br(condition: Value, then: str, otherwise: str) -> str:
    return f"  br i1 {condition.ref}, label %{then}, label %{otherwise}"


def _binary(float_op: str | None, int_op: str | None, name: str):
    """The method for a two-operand instruction chosen by operand type."""

    def method(self: Builder, a: Value | float, b: Value | float) -> Value:
        if b.__class__ is not Value:
            b = _CONSTANTS[b, a.type]
        elif a.__class__ is not Value:
            a = _CONSTANTS[a, b.type]
        type = a.type
        if type != b.type:
            raise TypeError(f"builder: {name} of {type} and {b.type}; cast one of them")
        op = float_op if TYPES[type].is_float else int_op
        if op is None:
            raise TypeError(f"builder: {name} is not defined for {type}")
        self.count = count = self.count + 1
        ref = f"%v{count}"
        self.lines.append(f"  {ref} = {op} {type} {a.ref}, {b.ref}")
        return Value(ref, type)

    method.__name__ = name
    method.__doc__ = f"`{float_op or int_op}` of two values of one type."
    return method


def _cast(op: str):
    def method(self: Builder, x: Value, element: str) -> Value:
        type = like(x.type, TYPES[element].element)
        if type == x.type:
            return x
        self.count = count = self.count + 1
        ref = f"%v{count}"
        self.lines.append(f"  {ref} = {op} {x.type} {x.ref} to {type}")
        return Value(ref, type)

    method.__name__ = op
    method.__doc__ = f"`{op}` to `element` (a scalar type, or a vector type whose element counts)."
    return method


class Builder:
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
        self.lines: list[str] = []
        self.count = 0
        self.label = "entry"
        self._labels = 0
        self._allocas: list[str] = []
        spelled = []
        values = []
        for argument in arguments:
            type = argument[1]
            if type.startswith("ptr "):  # "ptr noalias": attributes beside the type
                argument = (argument[0], "ptr", type[4:])
            extra = f" {argument[2]}" if len(argument) > 2 else ""
            spelled.append(f"{argument[1]}{extra} %{argument[0]}")
            values.append(Value(f"%{argument[0]}", argument[1]))
        self.args = tuple(values)
        self._head = (
            f"define {linkage + ' ' if linkage else ''}{result} @{name}"
            f"({', '.join(spelled)}) {attributes} {{"
        )
        module.functions.append(self)

    def text(self) -> str:
        """The function's definition."""
        return "\n".join([self._head, "entry:", *self._allocas, *self.lines, "}"])

    # ---- plumbing

    def emit(self, text: str, type: str) -> Value:
        """Append the instruction `text` that gives a value of `type`."""
        self.count = count = self.count + 1
        ref = f"%v{count}"
        self.lines.append(f"  {ref} = {text}")
        return Value(ref, type)

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
        return x if x.__class__ is Value else _CONSTANTS[x, type]

    # ---- arithmetic

    add = _binary("fadd", "add", "add")
    sub = _binary("fsub", "sub", "sub")
    mul = _binary("fmul", "mul", "mul")
    div = _binary("fdiv", "sdiv", "div")
    rem = _binary("frem", "srem", "rem")
    udiv = _binary(None, "udiv", "udiv")
    urem = _binary(None, "urem", "urem")
    and_ = _binary(None, "and", "and_")
    or_ = _binary(None, "or", "or_")
    xor = _binary(None, "xor", "xor")
    shl = _binary(None, "shl", "shl")
    lshr = _binary(None, "lshr", "lshr")
    ashr = _binary(None, "ashr", "ashr")

    def not_(self, x: Value) -> Value:
        """All bits inverted."""
        return self.xor(x, _CONSTANTS[True if TYPES[x.type].element == "i1" else -1, x.type])

    def neg(self, x: Value) -> Value:
        """-x; only the sign bit of a float changes."""
        if TYPES[x.type].is_float:
            return self.emit(f"fneg {x.type} {x.ref}", x.type)
        return self.sub(0, x)

    def abs(self, x: Value) -> Value:
        """|x|; the most negative integer stays itself."""
        if TYPES[x.type].is_float:
            return self.intrinsic("llvm.fabs", x)
        return self.intrinsic("llvm.abs", x, Value("false", "i1"))

    def fma(self, a: Value | float, b: Value | float, c: Value | float) -> Value:
        """a·b + c, rounded once. One of them at least is a Value."""
        type = next(x for x in (a, b, c) if x.__class__ is Value).type
        if a.__class__ is not Value:
            a = _CONSTANTS[a, type]
        if b.__class__ is not Value:
            b = _CONSTANTS[b, type]
        if c.__class__ is not Value:
            c = _CONSTANTS[c, type]
        if a.type != type or b.type != type or c.type != type:
            raise TypeError(f"builder: fma of {a.type}, {b.type} and {c.type}; cast them alike")
        name = f"llvm.fma.{TYPES[type].mangled}"
        declared = self.module._declared
        if name not in declared:
            declared[name] = f"declare {type} @{name}({type}, {type}, {type})"
        self.count = count = self.count + 1
        ref = f"%v{count}"
        self.lines.append(
            f"  {ref} = call {type} @{name}({type} {a.ref}, {type} {b.ref}, {type} {c.ref})"
        )
        return Value(ref, type)

    def _extremum(self, a: Value | float, b: Value | float, word: str, signed: bool) -> Value:
        type = a.type if a.__class__ is Value else b.type
        a, b = self.value(a, type), self.value(b, type)
        info = TYPES[type]
        if info.is_float:
            return self.intrinsic(f"llvm.{word}imum", a, b, flags="nsz ")
        if info.element == "i1":
            # As truth values; the signed order of one bit would be upside down.
            return self.and_(a, b) if word == "min" else self.or_(a, b)
        return self.intrinsic(f"llvm.{'s' if signed else 'u'}{word}", a, b)

    def min(self, a: Value | float, b: Value | float) -> Value:
        """The smaller; NaN if either is NaN. Integers as signed."""
        return self._extremum(a, b, "min", True)

    def max(self, a: Value | float, b: Value | float) -> Value:
        """The larger; NaN if either is NaN. Integers as signed."""
        return self._extremum(a, b, "max", True)

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
        if b.__class__ is not Value:
            b = _CONSTANTS[b, a.type]
        elif a.__class__ is not Value:
            a = _CONSTANTS[a, b.type]
        type = a.type
        if type != b.type:
            raise TypeError(f"builder: {op} of {type} and {b.type}; cast one of them")
        return self.emit(f"{op} {predicate} {type} {a.ref}, {b.ref}", like(type, "i1"))

    def select(self, condition: Value, a: Value | float, b: Value | float) -> Value:
        """a where `condition` (i1, or a vector of them), else b."""
        type = a.type if a.__class__ is Value else b.type
        a, b = self.value(a, type), self.value(b, type)
        if type != b.type:
            raise TypeError(f"builder: select of {type} and {b.type}; cast one of them")
        return self.emit(
            f"select {condition.type} {condition.ref}, {type} {a.ref}, {type} {b.ref}", type
        )

    # ---- casts

    sitofp = _cast("sitofp")
    uitofp = _cast("uitofp")
    trunc = _cast("trunc")
    zext = _cast("zext")
    sext = _cast("sext")
    fpext = _cast("fpext")
    fptrunc = _cast("fptrunc")
    ptrtoint = _cast("ptrtoint")
    inttoptr = _cast("inttoptr")

    def fptosi(self, x: Value, element: str, saturate: bool = True) -> Value:
        """Toward zero; out of range clamps and NaN gives 0 (unspecified if not `saturate`)."""
        return self._float_to_int(x, element, saturate, "fptosi")

    def fptoui(self, x: Value, element: str, saturate: bool = True) -> Value:
        """As `fptosi`, to an unsigned range."""
        return self._float_to_int(x, element, saturate, "fptoui")

    def _float_to_int(self, x: Value, element: str, saturate: bool, op: str) -> Value:
        type = like(x.type, TYPES[element].element)
        if saturate:
            return self.intrinsic(f"llvm.{op}.sat", x, result=type, overload=(type, x.type))
        return self.emit(f"{op} {x.type} {x.ref} to {type}", type)

    def bitcast(self, x: Value, type: str) -> Value:
        """The same bits as `type`; a scalar element type keeps the lanes when widths agree."""
        source, target = TYPES[x.type], TYPES[type]
        if source.lanes and not target.lanes and target.bits == source.bits:
            type = f"<{source.lanes} x {type}>"
        if type == x.type:
            return x
        return self.emit(f"bitcast {x.type} {x.ref} to {type}", type)

    # ---- memory

    def gep(self, base: Value, index: Value | int, element: str = "i8") -> Value:
        """The address `index` elements (bytes by default) after `base`; vectors of them too."""
        if index.__class__ is not Value:
            index = _CONSTANTS[index, "i64"]
        lanes = TYPES[index.type].lanes or TYPES[base.type].lanes
        return self.emit(
            f"getelementptr {element}, {base.type} {base.ref}, {index.type} {index.ref}",
            vector("ptr", lanes),
        )

    def load(self, pointer: Value, type: str, align: int | None = None) -> Value:
        """Read a value; `align` defaults to one element's size."""
        align = align or max(TYPES[type].bits // 8, 1)
        return self.emit(f"load {type}, ptr {pointer.ref}, align {align}", type)

    def store(
        self, value: Value, pointer: Value, align: int | None = None, nontemporal: bool = False
    ) -> None:
        """Write a value; a non-temporal store must be aligned to the whole vector to be one."""
        info = TYPES[value.type]
        align = align or max(info.bits // 8, 1)
        hint = ""
        if nontemporal:
            hint = ", !nontemporal !{i32 1}"
        self.lines.append(
            f"  store {value.type} {value.ref}, ptr {pointer.ref}, align {align}{hint}"
        )

    def masked_load(
        self, pointer: Value, mask: Value, other: Value, align: int | None = None
    ) -> Value:
        """Lanes where `mask` holds from memory, the rest from `other`; those are not touched."""
        type = other.type
        name = f"llvm.masked.load.{TYPES[type].mangled}.p0"
        self.module.declare(name, type, ("ptr", "i32", mask.type, type))
        align = align or max(TYPES[type].bits // 8, 1)
        return self.emit(
            f"call {type} @{name}(ptr {pointer.ref}, i32 {align}, {mask.type} {mask.ref}, "
            f"{type} {other.ref})",
            type,
        )

    def masked_store(
        self, value: Value, pointer: Value, mask: Value, align: int | None = None
    ) -> None:
        """Write the lanes where `mask` holds."""
        type = value.type
        name = f"llvm.masked.store.{TYPES[type].mangled}.p0"
        self.module.declare(name, "void", (type, "ptr", "i32", mask.type))
        align = align or max(TYPES[type].bits // 8, 1)
        self.lines.append(
            f"  call void @{name}({type} {value.ref}, ptr {pointer.ref}, i32 {align}, "
            f"{mask.type} {mask.ref})"
        )

    def gather(self, pointers: Value, type: str, mask: Value | None = None) -> Value:
        """Lane k from address k; lanes outside `mask` are 0 and not read."""
        info = TYPES[type]
        mask = mask or _CONSTANTS[True, f"<{info.lanes} x i1>"]
        name = f"llvm.masked.gather.{info.mangled}.v{info.lanes}p0"
        self.module.declare(name, type, (pointers.type, "i32", mask.type, type))
        return self.emit(
            f"call {type} @{name}({pointers.type} {pointers.ref}, i32 {max(info.bits // 8, 1)}, "
            f"{mask.type} {mask.ref}, {type} zeroinitializer)",
            type,
        )

    def scatter(self, value: Value, pointers: Value, mask: Value | None = None) -> None:
        """Lane k to address k, in lane order where addresses collide."""
        type = value.type
        info = TYPES[type]
        mask = mask or _CONSTANTS[True, f"<{info.lanes} x i1>"]
        name = f"llvm.masked.scatter.{info.mangled}.v{info.lanes}p0"
        self.module.declare(name, "void", (type, pointers.type, "i32", mask.type))
        self.lines.append(
            f"  call void @{name}({type} {value.ref}, {pointers.type} {pointers.ref}, "
            f"i32 {max(info.bits // 8, 1)}, {mask.type} {mask.ref})"
        )

    def prefetch(self, pointer: Value, write: bool = False, locality: int = 3) -> None:
        """Ask for the line at `pointer`; never faults."""
        self.module.declare("llvm.prefetch.p0", "void", ("ptr", "i32", "i32", "i32"))
        self.lines.append(
            f"  call void @llvm.prefetch.p0(ptr {pointer.ref}, i32 {int(write)}, "
            f"i32 {locality}, i32 1)"
        )

    def alloca(self, type: str, count: int = 1, align: int = 64) -> Value:
        """Stack space for `count` values, reserved once at the function's entry."""
        self.count += 1
        ref = f"%v{self.count}"
        self._allocas.append(f"  {ref} = alloca {type}, i64 {count}, align {align}")
        return Value(ref, "ptr")

    # ---- lanes

    def splat(self, x: Value | float, lanes: int, element: str | None = None) -> Value:
        """`x` in every one of `lanes` lanes (0: x itself); a number needs `element`."""
        if x.__class__ is not Value:
            return _CONSTANTS[x, vector(element, lanes)]
        if not lanes:
            return x
        type = f"<{lanes} x {x.type}>"
        one = self.emit(f"insertelement {type} poison, {x.type} {x.ref}, i64 0", type)
        return self.emit(
            f"shufflevector {type} {one.ref}, {type} poison, <{lanes} x i32> zeroinitializer", type
        )

    def extract(self, x: Value, lane: Value | int) -> Value:
        """One lane as a scalar."""
        lane = self.value(lane, "i64")
        return self.emit(
            f"extractelement {x.type} {x.ref}, {lane.type} {lane.ref}", TYPES[x.type].element
        )

    def insert(self, x: Value, scalar: Value | float, lane: Value | int) -> Value:
        """`x` with one lane replaced."""
        lane = self.value(lane, "i64")
        scalar = self.value(scalar, TYPES[x.type].element)
        return self.emit(
            f"insertelement {x.type} {x.ref}, {scalar.type} {scalar.ref}, "
            f"{lane.type} {lane.ref}",
            x.type,
        )

    def shuffle(self, a: Value, b: Value | None, lanes: Sequence[int]) -> Value:
        """Lanes picked from a followed by b; -1 leaves one unspecified."""
        other = f"{a.type} poison" if b is None else f"{b.type} {b.ref}"
        mask = ", ".join("i32 poison" if k < 0 else f"i32 {k}" for k in lanes)
        return self.emit(
            f"shufflevector {a.type} {a.ref}, {other}, <{len(lanes)} x i32> <{mask}>",
            f"<{len(lanes)} x {TYPES[a.type].element}>",
        )

    def concat(self, parts: Sequence[Value]) -> Value:
        """Vectors of one type joined; their number is a power of two."""
        parts = list(parts)
        while len(parts) > 1:
            lanes = 2 * TYPES[parts[0].type].lanes
            parts = [
                self.shuffle(parts[k], parts[k + 1], range(lanes)) for k in range(0, len(parts), 2)
            ]
        return parts[0]

    def slice(self, x: Value, start: int, size: int) -> Value:
        """`size` neighbouring lanes from `start`."""
        return self.shuffle(x, None, range(start, start + size))

    def iota(self, element: str, lanes: int) -> Value:
        """0, 1, 2, … in the lanes (scalar 0 when `lanes` is 0)."""
        return const_lanes(range(lanes), element) if lanes else _CONSTANTS[0, element]

    def reduce(self, op: str, x: Value, start: Value | None = None) -> Value:
        """All lanes combined: add mul min max umin umax and or xor. Float sums may reassociate."""
        info = TYPES[x.type]
        if not info.lanes:
            return x
        result = info.element
        if not info.is_float:
            word = {"min": "smin", "max": "smax"}.get(op, op)
            if result == "i1":
                word = {"min": "and", "max": "or", "umin": "and", "umax": "or"}.get(op, op)
            return self.intrinsic(f"llvm.vector.reduce.{word}", x, result=result)
        if op in ("min", "max"):
            return self.intrinsic(
                f"llvm.vector.reduce.f{op}imum", x, result=result, flags="nsz "
            )
        if start is None:
            start = _CONSTANTS[-0.0 if op == "add" else 1.0, result]
        return self.intrinsic(
            f"llvm.vector.reduce.f{op}", start, x,
            result=result, overload=(x.type,), flags="reassoc ",
        )  # fmt: skip

    def any(self, mask: Value) -> Value:
        """i1: does any lane hold."""
        return self.reduce("or", mask)

    def all(self, mask: Value) -> Value:
        """i1: do all lanes hold."""
        return self.reduce("and", mask)

    # ---- calls

    def intrinsic(
        self,
        name: str,
        *args: Value,
        result: str | None = None,
        overload: Sequence[str] | None = None,
        flags: str = "",
    ) -> Value:
        """Call an overloaded intrinsic.

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
        spelled = ", ".join([f"{a.type} {a.ref}" for a in args])
        if result == "void":
            self.lines.append(f"  call {flags}void @{name}({spelled})")
            return Value("", "void")
        self.count = count = self.count + 1
        ref = f"%v{count}"
        self.lines.append(f"  {ref} = call {flags}{result} @{name}({spelled})")
        return Value(ref, result)

    def call(self, callee: str | Value, result: str, *args: Value) -> Value:
        """Call a function by name (declared when not defined in the module) or by address."""
        if callee.__class__ is Value:
            target = callee.ref
        else:
            target = f"@{callee}"
            self.module.declare(callee, result, [a.type for a in args])
        spelled = ", ".join([f"{a.type} {a.ref}" for a in args])
        if result == "void":
            self.lines.append(f"  call void {target}({spelled})")
            return Value("", "void")
        return self.emit(f"call {result} {target}({spelled})", result)

    # ---- control flow

    def new_label(self, stem: str = "b") -> str:
        """A fresh block name."""
        self._labels += 1
        return f"{stem}{self._labels}"

    def block(self, label: str) -> None:
        """Start writing the block `label`; the previous one must have ended with a branch."""
        self.lines.append(f"{label}:")
        self.label = label

    def br(self, label: str) -> None:
        """Jump."""
        self.lines.append(f"  br label %{label}")

    def cond_br(self, condition: Value, then: str, otherwise: str) -> None:
        """Jump to `then` if `condition` (i1) holds, else to `otherwise`."""
        self.lines.append(_cond_br(condition, then, otherwise))

    def ret(self, value: Value | None = None) -> None:
        """Return from the function."""
        self.lines.append("  ret void" if value is None else f"  ret {value.type} {value.ref}")

    def unreachable(self) -> None:
        """End a block that control never leaves."""
        self.lines.append("  unreachable")

    def phi(self, type: str, incoming: Sequence[tuple[Value, str]]) -> Value:
        """The value that came with the edge taken: (value, label of the block it comes from)."""
        spelled = ", ".join([f"[ {v.ref}, %{label} ]" for v, label in incoming])
        return self.emit(f"phi {type} {spelled}", type)

    def _open_phis(self, initial: Sequence[Value]) -> tuple[int, tuple[Value, ...]]:
        """Reserve a line and a name for each phi of a loop's head."""
        slot = len(self.lines)
        values = []
        for value in initial:
            self.lines.append("")
            self.count += 1
            values.append(Value(f"%v{self.count}", value.type))
        return slot, tuple(values)

    def _close_phis(
        self, slot: int, phis: Sequence[Value], initial: Sequence[Value], before: str,
        again: Sequence[Value], latch: str,
    ) -> None:  # fmt: skip
        for k, (phi, first, next_) in enumerate(zip(phis, initial, again, strict=True)):
            self.lines[slot + k] = (
                f"  {phi.ref} = phi {phi.type} [ {first.ref}, %{before} ], "
                f"[ {next_.ref}, %{latch} ]"
            )

    @contextmanager
    def loop(
        self,
        start: Value | int,
        stop: Value | int,
        step: Value | int = 1,
        carried: Sequence[Value] = (),
        at_least_once: bool = False,
    ) -> Iterator[Loop]:
        """`for index in range(start, stop, step)` with step > 0, tested at the bottom.

        The body must end with `yield_` when values are carried. `results` afterwards are the last
        values (the initial ones when the loop does not run). A test before the loop is left out
        when constants or `at_least_once` show that it runs.
        """
        runs = at_least_once
        if start.__class__ is not Value and stop.__class__ is not Value:
            runs = runs or start < stop
        type = next((x.type for x in (start, stop, step) if x.__class__ is Value), "i64")
        start, stop, step = (self.value(x, type) for x in (start, stop, step))
        carried = tuple(carried)
        body, exit = self.new_label("loop"), self.new_label("end")
        if runs:
            self.br(body)
        else:
            self.cond_br(self.icmp("slt", start, stop), body, exit)
        before = self.label
        self.block(body)
        initial = (start, *carried)
        slot, phis = self._open_phis(initial)
        loop = Loop(phis[0], phis[1:])
        yield loop
        if loop.yielded is None:
            if carried:
                raise RuntimeError("builder: a loop with carried values must yield_ them")
            loop.yielded = ()
        following = self.add(loop.index, step)
        latch = self.label
        self.cond_br(self.icmp("slt", following, stop), body, exit)
        self._close_phis(slot, phis, initial, before, (following, *loop.yielded), latch)
        self.block(exit)
        if runs:
            loop.results = loop.yielded
        else:
            loop.results = tuple(
                self.phi(x.type, ((x, before), (y, latch)))
                for x, y in zip(carried, loop.yielded, strict=True)
            )

    @contextmanager
    def while_(self, carried: Sequence[Value] = ()) -> Iterator[While]:
        """A loop tested where its body says `test(condition)`; `results` are the head's values."""
        carried = tuple(carried)
        head, exit = self.new_label("while"), self.new_label("end")
        before = self.label
        self.br(head)
        self.block(head)
        slot, phis = self._open_phis(carried)
        loop = While(self, phis, exit)
        yield loop
        if not loop.tested:
            raise RuntimeError("builder: a while loop must test() a condition")
        if loop.yielded is None:
            if carried:
                raise RuntimeError("builder: a loop with carried values must yield_ them")
            loop.yielded = ()
        latch = self.label
        self.br(head)
        self._close_phis(slot, phis, carried, before, loop.yielded, latch)
        self.block(exit)

    @contextmanager
    def if_(self, condition: Value, otherwise: Sequence[Value] = ()) -> Iterator[Branch]:
        """Run the body if `condition` (i1) holds.

        `branch.yield_(...)` names its results; without an `else_` arm they are `otherwise` where
        the body does not run. `with branch.else_():` may follow directly. Then `branch.results`.
        """
        slot = len(self.lines)
        before = self.label
        self.lines.append("")
        branch = Branch(self, slot, condition)
        branch._then_label, branch._end = self.new_label("then"), self.new_label("end")
        self.block(branch._then_label)
        yield branch
        branch._then = branch._yielded
        branch._then_end = self.label
        self.br(branch._end)
        self.lines[slot] = _cond_br(condition, branch._then_label, branch._end)
        branch._slot_end = len(self.lines)
        self.block(branch._end)
        if otherwise:
            _check_yield(otherwise, branch._then, "if_")
            branch.results = tuple(
                self.phi(x.type, ((x, branch._then_end), (y, before)))
                for x, y in zip(branch._then, otherwise, strict=True)
            )
        branch._mark = len(self.lines)
