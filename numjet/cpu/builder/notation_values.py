"""The values of the notation: expressions, conversions and memory, as LLVM IR.

For `notation_calls`, which adds calls, and `notation`, which writes statements. Integers are 64
bits wide everywhere but in memory and in arguments; a variable is a value with the type that was
declared for it. In a checked build every address, index and declared class is tested before it is
used.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from numjet.base.record import NamedTuple
from numjet.cpu.builder.builder import Builder, Value
from numjet.cpu.builder.notation_checks import Checks
from numjet.cpu.builder.records import (
    NULL,
    SCALARS,
    STATICS,
    Array,
    Double,
    Inline,
    Int,
    Native,
    Pointer,
    Record,
    Records,
    layout_of,
    size_of,
)


class NotationError(TypeError):
    """A native function that is not in the notation."""


class Typed(NamedTuple):
    """A value: of LLVM IR with its declared type, or (`CONSTANT`) of Python; `length`: of an
    array, where a checked build knows it."""

    content: Any
    type: Any
    length: Value | None = None

    @property
    def is_constant(self) -> bool:
        return self.type is CONSTANT

    @classmethod
    def of(cls, content: Any) -> Typed:
        """A constant."""
        return cls(content, CONSTANT)


class Place(NamedTuple):
    """Where a field or an element lies, its type (None: it is a record), and its alignment, unless
    it is the type's."""

    at: Value
    kind: Any
    align: int | None = None


CONSTANT = "constant"
_UNKNOWN: Any = object()
_NUMBERS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "div", ast.Mod: "rem",
            ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor", ast.LShift: "shl",
            ast.RShift: "ashr", ast.Div: "div"}  # fmt: skip
_ORDER = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt",
          ast.GtE: "sge"}  # fmt: skip
_FLOATS = {"eq": "oeq", "ne": "une", "slt": "olt", "sle": "ole", "sgt": "ogt", "sge": "oge"}


def origin_of(kind: Any) -> Any:
    """The class behind a type such as `Array[Int]`."""
    return getattr(kind, "__origin__", kind)


def is_function(kind: Any) -> bool:
    """Whether a type is one of functions: `Callable[[...], ...]`."""
    return origin_of(kind).__name__ == "Callable" if hasattr(kind, "__origin__") else False


def static_text(record: Any, name: str, initial: dict[str, int], exported: bool) -> str:
    """The definition of a record that the module holds."""
    layout = layout_of(type(record))
    kinds, values, at = [], [], 0
    for field, value in sorted(initial.items(), key=lambda item: layout.field(item[0])[0]):
        offset, kind = layout.field(field)
        spelled, size, _ = SCALARS[kind]
        kinds += [f"[{offset - at} x i8]", spelled]
        values += [f"[{offset - at} x i8] zeroinitializer", f"{spelled} {value}"]
        at = offset + size
    kinds.append(f"[{layout.size - at} x i8]")
    values.append(f"[{layout.size - at} x i8] zeroinitializer")
    return (
        f"@{name} = {'hidden' if exported else 'internal'} global <{{ {', '.join(kinds)} }}> "
        f"<{{ {', '.join(values)} }}>, align 64"
    )


class Translator:
    """What names and types mean in one native function."""

    def __init__(self, native: Native) -> None:
        self.native = native
        self.scope = {**vars(builtins), **native.scope()}
        self.locals: set[str] = set()

    def type_of(self, node: ast.expr) -> Any:
        """The type that an expression names."""
        return eval(ast.unparse(node), self.scope)

    def abi(self, kind: Any) -> str:
        """A type as LLVM IR has it in arguments and in memory."""
        if kind in (None, type(None)):
            return "void"
        return SCALARS[kind][0] if kind in SCALARS else "ptr"


class Expressions(Builder):
    """A function writer with the expressions of the notation."""

    result_type: Any
    env: dict[str, Typed]

    def __init__(self, unit: Any, translator: Translator, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.unit, self.translator = unit, translator
        self.node: ast.AST = ast.Pass()
        self.checks = Checks(self) if unit.checked else None

    def fail(self, node: ast.AST, message: str) -> NoReturn:
        """Say what is not in the notation, and where."""
        code = self.translator.native.function.__code__
        line = getattr(node, "lineno", getattr(self.node, "lineno", code.co_firstlineno))
        raise NotationError(f"{code.co_filename}:{line}: {self.name}: {message}")

    # ---- constants

    def constant(self, node: ast.expr) -> Typed | None:
        """The value of an expression of names and numbers that are known now, or None."""
        found = self.folded(node)
        numbers = (int, float, str, type(None))
        return Typed.of(found) if isinstance(found, numbers) or found is NULL else None

    def folded(self, node: ast.expr) -> Any:
        """What an expression is in Python, when that is known now; else `_UNKNOWN`."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            if node.id in self.translator.locals:
                return _UNKNOWN
            found = self.translator.scope.get(node.id, _UNKNOWN)
            return _UNKNOWN if isinstance(found, Pointer) and found is not NULL else found
        if isinstance(node, ast.Attribute):
            of = self.folded(node.value)
            return _UNKNOWN if of is _UNKNOWN else getattr(of, node.attr, _UNKNOWN)
        parts: list[ast.expr] = []
        if isinstance(node, ast.BinOp):
            parts = [node.left, node.right]
        elif isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.UnaryOp):
            parts = [node.operand]
        elif isinstance(node, ast.BoolOp):
            parts = node.values
        if parts:
            if all(isinstance(self.folded(part), (int, float, str)) for part in parts):
                return eval(ast.unparse(node), self.translator.scope)
        return _UNKNOWN

    # ---- types

    def widened(self, value: Value, kind: Any) -> Typed:
        """A value from memory or an argument; integers become as wide as they are computed with."""
        if kind in SCALARS and issubclass(kind, Int):
            return Typed(self.sext(value, "i64"), Int)
        return Typed(value, kind)

    def common_type(self, values: Sequence[Typed]) -> Any:
        """The one type that these values have, or None."""
        kinds = []
        for value in values:
            kind = value.type
            if value.is_constant:
                content = value.content
                if content is NULL:
                    continue
                kind = bool if isinstance(content, bool) else Int if isinstance(content, int) else (
                    Double if isinstance(content, float) else None)  # fmt: skip
            kinds.append(kind)
        if not kinds:
            return Pointer
        first = kinds[0]
        if all(kind == first for kind in kinds):
            return first
        pointers = [isinstance(origin_of(k), type) and issubclass(origin_of(k), Pointer)
                    for k in kinds]  # fmt: skip
        if all(pointers):
            shared = [c for c in origin_of(first).__mro__
                      if all(issubclass(origin_of(k), c) for k in kinds)]  # fmt: skip
            return shared[0] if shared[0] not in (Array, Records, Inline) else Pointer
        return None

    def converted(self, value: Typed, kind: Any, node: ast.AST) -> Typed:
        """A value as one of a type that takes it as it is, else an error."""
        if value.is_constant:
            content = value.content
            if kind in SCALARS:
                number = bool if kind is bool else int if issubclass(kind, Int) else (int, float)
                if not isinstance(content, number):
                    self.fail(node, f"{content!r} is no {kind.__name__}")
                wide = "i64" if issubclass(kind, Int) else SCALARS[kind][0]
                kind = Int if issubclass(kind, Int) else kind
                return Typed(self.const(content, wide), kind)
            if content is not NULL:
                self.fail(node, f"{content!r} is no address")
            return Typed(Value("null", "ptr"), kind)
        if value.type == kind or kind is Pointer and value.content.type == "ptr":
            return value
        if kind in SCALARS and value.type in SCALARS and issubclass(kind, Int):
            if issubclass(value.type, Int):
                return Typed(value.content, Int)
        elif isinstance(kind, type) and isinstance(value.type, type):
            if issubclass(value.type, kind):
                return Typed(value.content, kind, value.length)
        elif origin_of(kind) is Array and origin_of(value.type) is Inline:
            if kind.__args__ == value.type.__args__:
                return Typed(value.content, kind, value.length)
        self.fail(node, f"a {self.spelled(kind)} is needed, and this is a "
                        f"{self.spelled(value.type)}")  # fmt: skip

    @staticmethod
    def array_of(element: Any) -> Any:
        """The type of arrays of such elements."""
        return Array[element]

    @staticmethod
    def spelled(kind: Any) -> str:
        """A type as the source has it."""
        return str(kind) if hasattr(kind, "__args__") else getattr(kind, "__name__", str(kind))

    def materialized(self, value: Typed, node: ast.AST) -> Value:
        """A value as one of LLVM IR."""
        if value.is_constant:
            kind = self.common_type([value])
            if kind is None:
                self.fail(node, f"{value.content!r} is no value of the notation")
            return self.converted(value, kind, node).content
        if value.content is None:
            self.fail(node, "this has no value, or one of two types")
        return value.content

    def passed(self, value: Typed, kind: Any, node: ast.AST) -> Value:
        """A value as an argument or in memory has it."""
        if kind in (None, type(None)):
            self.fail(node, "there is no value to be given here")
        made = self.converted(value, kind, node).content
        narrow = SCALARS[kind][0] if kind in SCALARS else "ptr"
        return self.trunc(made, narrow) if made.type != narrow else made

    # ---- expressions

    def expression(self, node: ast.expr) -> Typed:
        """The value of an expression."""
        found = self.constant(node)
        if found is not None:
            return found
        write: Callable | None = getattr(self, f"of_{type(node).__name__}", None)
        if write is None:
            self.fail(node, f"{type(node).__name__} is not a part of the notation")
        return write(node)

    def of_Name(self, node: ast.Name) -> Typed:
        """A variable, a function as an address, or a record of the module."""
        if node.id in self.translator.locals:
            if node.id not in self.env:
                self.fail(node, f"{node.id} may have no value here")
            if self.env[node.id].type is None:
                self.fail(node, f"{node.id} has no one type here")
            return self.env[node.id]
        found = self.translator.scope.get(node.id)
        if isinstance(found, Native):
            kinds, result = found.types()
            return Typed(Value(f"@{self.unit.symbol(found)}", "ptr"), Callable[kinds, result])
        if isinstance(found, Record) and id(found) in STATICS:
            name = STATICS[id(found)][1]
            self.unit.statics[name] = STATICS[id(found)]
            return Typed(Value(f"@{name}", "ptr"), type(found))
        self.fail(node, f"{node.id} is nothing that native code can use")

    def of_Attribute(self, node: ast.Attribute) -> Typed:
        """A field."""
        found = self.address(node)
        if origin_of(found.kind) is Inline:
            return Typed(found.at, self.array_of(found.kind.__args__[0]), self.length(node))
        return self.loaded(found, self.length(node))

    def of_Subscript(self, node: ast.Subscript) -> Typed:
        """An element, or the address of one."""
        base = self.expression(node.value)
        found = self.element(node, base)
        if isinstance(node.slice, ast.Slice):
            return Typed(found.at, base.type)
        if found.kind is None:
            return Typed(found.at, base.type.__args__[0])
        return self.loaded(found, None)

    def loaded(self, place: Place, length: Value | None) -> Typed:
        """What is in memory."""
        spelled = self.translator.abi(place.kind)
        if spelled == "i1":
            return Typed(self.trunc(self.load(place.at, "i8"), "i1"), bool)
        value = self.widened(self.load(place.at, spelled, place.align), place.kind)
        return Typed(value.content, value.type, length)

    def store_as(self, place: Place, value: Typed, node: ast.AST) -> None:
        """Store a value in its place."""
        if place.kind is None or origin_of(place.kind) is Inline:
            self.fail(node, "records are not assigned to as a whole")
        made = self.passed(value, place.kind, node)
        made = self.zext(made, "i8") if made.type == "i1" else made
        self.store(made, place.at, place.align)

    def length(self, node: ast.Attribute) -> Value | None:
        """The number of elements of a field, which another field counts."""
        if not self.unit.checked:
            return None
        base = self.expression(node.value)
        if node.attr in base.type.room:
            return Value(str(base.type.room[node.attr]), "i64")
        counted = base.type.sized.get(node.attr)
        if counted is None:
            return None
        offset, kind = layout_of(base.type).field(counted)
        return self.loaded(Place(self.gep(base.content, offset), kind), None).content

    def address(self, node: ast.expr) -> Place:
        """Where a field or an element lies."""
        if isinstance(node, ast.Attribute):
            base = self.expression(node.value)
            if not (isinstance(base.type, type) and issubclass(base.type, Record)):
                self.fail(node, f"a {self.spelled(base.type)} has no fields")
            try:
                offset, kind = layout_of(base.type).field(node.attr)
            except AttributeError as error:
                self.fail(node, str(error))
            if self.checks:
                self.checks.record(base.content, base.type, node)
            return Place(self.gep(base.content, offset), kind, 1 if base.type.packed else None)
        assert isinstance(node, ast.Subscript)
        return self.element(node, self.expression(node.value))

    def element(self, node: ast.Subscript, base: Typed) -> Place:
        """Where an element lies."""
        if origin_of(base.type) not in (Array, Records):
            self.fail(node, f"a {self.spelled(base.type)} has no elements")
        (element,) = base.type.__args__
        of_records = origin_of(base.type) is Records
        size = layout_of(element).size if of_records else size_of(element)
        start = node.slice.lower if isinstance(node.slice, ast.Slice) else node.slice
        index = self.expression(start) if start is not None else Typed.of(0)
        if index.is_constant:
            at: Value | int = index.content * size
        else:
            at = self.mul(self.converted(index, Int, node).content, size)
        if self.checks:
            whole = isinstance(node.slice, ast.Slice)
            self.checks.element(base, self.materialized(index, node), whole, node)
        return Place(self.gep(base.content, at), None if of_records else element)

    def of_BinOp(self, node: ast.BinOp) -> Typed:
        """Arithmetic, and addresses so many bytes further."""
        return self.binary(node.op, self.expression(node.left), self.expression(node.right), node)

    def binary(self, op: ast.operator, a: Typed, b: Typed, node: ast.AST) -> Typed:
        """An operation on two values."""
        name = _NUMBERS.get(type(op))
        if name is None:
            self.fail(node, f"{type(op).__name__} is not a part of the notation")
        x, y = self.materialized(a, node), self.materialized(b, node)
        if x.type == "ptr":
            if name != "add" or y.type != "i64":
                self.fail(node, "to an address a number of bytes is added, nothing else")
            return Typed(self.gep(x, y), a.type)
        floating = x.type in ("double", "float")
        if y.type != x.type or floating != isinstance(op, ast.Div) and floating != (
            name in ("add", "sub", "mul")
        ) and floating or isinstance(op, ast.Div) and not floating:
            self.fail(node, f"{name} of {self.spelled(a.type)} and {self.spelled(b.type)}")
        kind = b.type if a.is_constant else a.type
        return Typed(getattr(self, name)(x, y), Int if x.type == "i64" else kind)

    def of_UnaryOp(self, node: ast.UnaryOp) -> Typed:
        """-x, ~x and `not x`."""
        if isinstance(node.op, ast.Not):
            return Typed(self.not_(self.truth(self.expression(node.operand), node)), bool)
        value = self.expression(node.operand)
        x = self.materialized(value, node)
        if isinstance(node.op, ast.USub):
            return Typed(self.neg(x), value.type)
        if isinstance(node.op, ast.Invert) and x.type == "i64":
            return Typed(self.not_(x), Int)
        self.fail(node, "this operator is not a part of the notation")

    def of_Compare(self, node: ast.Compare) -> Typed:
        """A comparison of two."""
        if len(node.ops) > 1 or type(node.ops[0]) not in _ORDER:
            self.fail(node, "a comparison is one of two values, by order or for being equal")
        a, b = self.expression(node.left), self.expression(node.comparators[0])
        x, y = self.materialized(a, node), self.materialized(b, node)
        if x.type != y.type:
            self.fail(node, f"a {self.spelled(a.type)} is compared with a {self.spelled(b.type)}")
        predicate = _ORDER[type(node.ops[0])]
        if x.type in ("double", "float"):
            return Typed(self.fcmp(_FLOATS[predicate], x, y), bool)
        if x.type == "ptr" and predicate not in ("eq", "ne"):
            predicate = "u" + predicate[1:]
        return Typed(self.icmp(predicate, x, y), bool)

    def truth(self, value: Typed, node: ast.AST) -> Value:
        """Whether a value is neither zero nor NULL nor false."""
        x = self.materialized(value, node)
        if x.type == "i1":
            return x
        if x.type in ("double", "float"):
            self.fail(node, "a number of floating point is no condition")
        return self.icmp("ne", x, 0)

    def of_BoolOp(self, node: ast.BoolOp) -> Typed:
        """`and`, `or` as a value."""
        yes, no, end = self.new_label("yes"), self.new_label("no"), self.new_label("end")
        self.branch(node, yes, no)
        for label in (yes, no):
            self.block(label)
            self.br(end)
        self.block(end)
        ways = [(Value("true", "i1"), yes), (Value("false", "i1"), no)]
        return Typed(self.phi("i1", ways), bool)

    def of_IfExp(self, node: ast.IfExp) -> Typed:
        """`a if condition else b`; only one of the two is computed."""
        known = self.constant(node.test)
        if known is not None:
            return self.expression(node.body if known.content else node.orelse)
        labels = [self.new_label(stem) for stem in ("yes", "no", "end")]
        self.branch(node.test, labels[0], labels[1])
        ways = []
        for label, arm in ((labels[0], node.body), (labels[1], node.orelse)):
            self.block(label)
            ways.append((self.expression(arm), self.label))
            self.br(labels[2])
        self.block(labels[2])
        kind = self.common_type([value for value, _ in ways])
        if kind is None:
            self.fail(node, "the two values are not of one type")
        made = [(self.converted(value, kind, node).content, at) for value, at in ways]
        return Typed(self.phi(made[0][0].type, made), kind)

    def branch(self, node: ast.expr, yes: str, no: str) -> None:
        """Go to one of two labels by a condition."""
        raise NotImplementedError  # `notation` writes control flow
