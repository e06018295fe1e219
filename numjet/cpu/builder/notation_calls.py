"""The calls of the notation: of functions, conversions, memory on the stack, atomic operations.

For `notation`. An operation `name` of `builder.records` is written by the method `op_name`, with
the same arguments; what it does stands there.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from typing import Any

from numjet.cpu.builder import records
from numjet.cpu.builder.builder import Value
from numjet.cpu.builder.notation_source import expression_of, source_of
from numjet.cpu.builder.notation_values import (
    Expressions,
    Translator,
    Typed,
    is_function,
    origin_of,
)
from numjet.cpu.builder.records import (
    SCALARS,
    Array,
    Double,
    External,
    Int,
    Native,
    Records,
    Single,
    layout_of,
    size_of,
)


class Values(Expressions):
    """A function writer with all expressions of the notation."""

    def of_Call(self, node: ast.Call) -> Typed:
        """A native function, a function by its address, a conversion, or an operation."""
        if node.keywords:
            self.fail(node, "calls have no named arguments")
        if isinstance(node.func, ast.Name) and node.func.id not in self.translator.locals:
            callee = self.translator.scope.get(node.func.id)
            if isinstance(callee, Native):
                if self.expands(node) is not None:
                    return self.expanded(node, self.expression)
                kinds, result = callee.types()
                return self.call_of(f"@{self.unit.symbol(callee)}", kinds, result, node)
            if isinstance(callee, External):
                return self.call_external(callee, node)
            if isinstance(callee, type):
                return self.conversion(callee, node)
            operation = getattr(self, f"op_{node.func.id}", None)
            known = getattr(records, node.func.id, getattr(builtins, node.func.id, None))
            if operation is None or callee is not known:
                self.fail(node, f"{node.func.id} is nothing that native code can call")
            return operation(*node.args)
        if isinstance(node.func, ast.Subscript) and isinstance(
            self.folded(node.func.value), type
        ):  # Array[Int](x)
            return self.conversion(self.translator.type_of(node.func), node)
        target = self.expression(node.func)
        if not is_function(target.type):
            self.fail(node, f"a {self.spelled(target.type)} is no function")
        if self.checks:
            self.checks.address(target.content, node)
        *kinds, result = target.type.__args__
        made = self.call_of(target.content.ref, kinds, result, node)
        if self.checks:
            self.checks.raised(made, node)
        return made

    def expands(self, node: ast.Call) -> Native | None:
        """The native function of a call that is written in its place: one of one expression."""
        if not isinstance(node.func, ast.Name) or node.func.id in self.translator.locals:
            return None
        callee = self.translator.scope.get(node.func.id)
        if not isinstance(callee, Native) or expression_of(callee) is None:
            return None
        return callee if len(node.args) == len(callee.types()[0]) else None

    def expanded(self, node: ast.Call, write: Callable[[ast.expr], Any]) -> Any:
        """What `write` does with the expression of a function that `expands`."""
        callee = self.expands(node)
        assert callee is not None
        body = expression_of(callee)
        assert body is not None
        kinds, result = callee.types()
        given = [
            self.converted(self.expression(x), kind, x)
            for x, kind in zip(node.args, kinds, strict=True)
        ]
        outside = self.translator, self.env
        names = [argument.arg for argument in source_of(callee).args.args]
        self.translator = Translator(callee)
        self.translator.locals = set(names)
        self.env = dict(zip(names, given, strict=True))
        out = write(body)
        if isinstance(out, Typed):
            out = self.converted(out, result, body)
        self.translator, self.env = outside
        return out

    def call_of(
        self, target: str, kinds: Sequence[Any], result: Any, node: ast.Call, spelled: str = ""
    ) -> Typed:
        """A call of a function of these types; spelled: its type, where arguments vary."""
        given = [self.expression(argument) for argument in node.args]
        if len(given) != len(kinds):
            self.fail(node, f"{len(kinds)} arguments are needed, not {len(given)}")
        values = [self.passed(x, kind, node) for x, kind in zip(given, kinds, strict=True)]
        kind = self.translator.abi(result)
        instruction = ("call", spelled or kind, target, tuple([v.type for v in values]),
                       tuple([v.ref for v in values]), "")  # fmt: skip
        if kind == "void":
            self.lines.append((None, instruction))
            return Typed(None, None)
        return self.widened(self.put(instruction, kind), result)

    def call_external(self, callee: External, node: ast.Call) -> Typed:
        """A call of a symbol."""
        if not self.unit.external:
            self.fail(node, f"this module refers to no symbols, such as {callee.symbol}")
        *kinds, result = callee.kind.__args__
        types = [self.translator.abi(kind) for kind in kinds]
        spelled = ""
        if callee.variadic:
            fixed = ", ".join([*types[: callee.variadic], "..."])
            spelled = f"{self.translator.abi(result)} ({fixed})"
            line = f"declare {self.translator.abi(result)} @{callee.symbol}({fixed})"
            self.unit.declared[callee.symbol] = line
        else:
            self.module.declare(callee.symbol, self.translator.abi(result), types)
        return self.call_of(f"@{callee.symbol}", kinds, result, node, spelled)

    def conversion(self, kind: Any, node: ast.Call) -> Typed:
        """A value as one of another type."""
        if len(node.args) != 1:
            self.fail(node, "a conversion takes one value")
        value = self.expression(node.args[0])
        x = self.materialized(value, node)
        if kind in SCALARS:
            if kind is bool:
                return Typed(self.truth(value, node), bool)
            if issubclass(kind, Int):
                if x.type == "ptr":
                    x = self.ptrtoint(x, "i64")
                elif x.type == "i1":
                    x = self.zext(x, "i64")
                elif x.type != "i64":
                    self.fail(node, "a number of floating point is not cut to an integer")
                narrow = SCALARS[kind][0]
                return Typed(self.sext(self.trunc(x, narrow), "i64"), Int)
            wide = "double" if kind is Double else "float"
            if x.type == "i64":
                return Typed(self.sitofp(x, wide), kind)
            cast = self.fptrunc if kind is Single else self.fpext
            return Typed(cast(x, wide), kind)
        if x.type == "i64":
            x = self.inttoptr(x, "ptr")
        if x.type != "ptr":
            self.fail(node, "only an address or an integer is made an address")
        return Typed(x, kind)

    # ---- operations

    def number(self, node: ast.expr) -> Value:
        """An integer."""
        return self.converted(self.expression(node), Int, node).content

    def op_lshr(self, x: ast.expr, n: ast.expr) -> Typed:
        return Typed(self.lshr(self.number(x), self.number(n)), Int)

    def op_below(self, a: ast.expr, b: ast.expr) -> Typed:
        return Typed(self.icmp("ult", self.number(a), self.number(b)), bool)

    def op_ones(self, x: ast.expr) -> Typed:
        return Typed(self.intrinsic("llvm.ctpop", self.number(x)), Int)

    def op_min(self, a: ast.expr, b: ast.expr) -> Typed:
        x, y = self.number(a), self.number(b)
        return Typed(self.select(self.icmp("slt", x, y), x, y), Int)

    def op_max(self, a: ast.expr, b: ast.expr) -> Typed:
        x, y = self.number(a), self.number(b)
        return Typed(self.select(self.icmp("sgt", x, y), x, y), Int)

    def op_place(self, x: ast.expr, name: ast.Constant) -> Typed:
        field = ast.copy_location(ast.Attribute(x, str(name.value), ast.Load()), x)
        found = self.address(field)
        return Typed(found.at, self.array_of(found.kind), Value("1", "i64"))

    def op_stack(self, kind: ast.expr, n: ast.expr | None = None) -> Typed:
        element = self.translator.type_of(kind)
        return self.room(self.array_of(element), size_of(element), n)

    def op_stack_of(self, kind: ast.expr) -> Typed:
        record = self.translator.type_of(kind)
        made = self.room(None, layout_of(record).size, None)
        return Typed(made.content, record)

    def op_stack_records(self, kind: ast.expr, n: ast.expr) -> Typed:
        record = self.translator.type_of(kind)
        rows: Any = Records
        return self.room(rows[record], layout_of(record).size, n)

    def room(self, kind: Any, size: int, n: ast.expr | None) -> Typed:
        """Memory on the stack for so many elements of a size."""
        count = Typed.of(1) if n is None else self.expression(n)
        if count.is_constant:
            words = -(-count.content * size // 8)
            return Typed(self.alloca("i64", words, 16), kind, Value(str(count.content), "i64"))
        made = self.mul(count.content, size)
        room = self.emit(f"alloca i8, i64 {made.ref}, align 16", "ptr")
        return Typed(room, kind, count.content)

    def op_copy(self, to: ast.expr, source: ast.expr, n: ast.expr) -> Typed:
        a, b = self.expression(to), self.expression(source)
        if a.type != b.type or origin_of(a.type) is not Array:
            self.fail(to, "two arrays of one type are copied")
        bytes_ = self.mul(self.number(n), size_of(a.type.__args__[0]))
        if self.checks:
            self.checks.span(a, self.number(n), to)
            self.checks.span(b, self.number(n), to)
        self.call("llvm.memcpy.p0.p0.i64", "void", a.content, b.content, bytes_,
                  Value("false", "i1"))  # fmt: skip
        return Typed(None, None)

    def op_clear(self, to: ast.expr, n: ast.expr) -> Typed:
        a = self.expression(to)
        if self.checks:
            self.checks.span(a, self.number(n), to)
        bytes_ = self.mul(self.number(n), size_of(a.type.__args__[0]))
        zero, plain = Value("0", "i8"), Value("false", "i1")
        self.call("llvm.memset.p0.i64", "void", a.content, zero, bytes_, plain)
        return Typed(None, None)

    # Atomic operations, on an integer of 32 or 64 bits or an address.

    def cell(self, p: ast.expr) -> tuple[Value, Any, str, int]:
        """Address, type, type in LLVM IR and alignment of what an operation works on."""
        place = self.expression(p)
        if origin_of(place.type) is not Array:
            self.fail(p, "an atomic operation takes the place of a field")
        (kind,) = place.type.__args__
        if self.checks:
            self.checks.address(place.content, p)
        return place.content, kind, self.translator.abi(kind), size_of(kind)

    def order(self, node: ast.expr) -> str:
        """A memory order."""
        found = self.constant(node)
        if found is None or not isinstance(found.content, str):
            self.fail(node, "the order is known when this is compiled")
        return found.content

    def op_atomic_load(self, p: ast.expr, order: ast.expr) -> Typed:
        at, kind, spelled, size = self.cell(p)
        text = f"load atomic {spelled}, ptr {at.ref} {self.order(order)}, align {size}"
        return self.widened(self.emit(text, spelled), kind)

    def op_atomic_store(self, p: ast.expr, x: ast.expr, order: ast.expr) -> Typed:
        at, kind, spelled, size = self.cell(p)
        value = self.passed(self.expression(x), kind, x).ref
        self.line(f"store atomic {spelled} {value}, ptr {at.ref} {self.order(order)}, align {size}")
        return Typed(None, None)

    def _modify(self, op: str, p: ast.expr, x: ast.expr, order: ast.expr) -> Typed:
        at, kind, spelled, size = self.cell(p)
        value = self.passed(self.expression(x), kind, x).ref
        text = f"atomicrmw {op} ptr {at.ref}, {spelled} {value} {self.order(order)}, align {size}"
        return self.widened(self.emit(text, spelled), kind)

    def op_atomic_add(self, p: ast.expr, x: ast.expr, order: ast.expr) -> Typed:
        return self._modify("add", p, x, order)

    def op_atomic_exchange(self, p: ast.expr, x: ast.expr, order: ast.expr) -> Typed:
        return self._modify("xchg", p, x, order)

    def op_compare_exchange(
        self, p: ast.expr, expected: ast.expr, x: ast.expr, order: ast.expr, otherwise: ast.expr
    ) -> Typed:
        at, kind, spelled, size = self.cell(p)
        was = self.passed(self.expression(expected), kind, expected).ref
        value = self.passed(self.expression(x), kind, x).ref
        pair = self.emit(
            f"cmpxchg ptr {at.ref}, {spelled} {was}, {spelled} {value} {self.order(order)} "
            f"{self.order(otherwise)}, align {size}", "i64",
        )  # fmt: skip
        text = f"extractvalue {{ {spelled}, i1 }} {pair.ref}, 0"
        return self.widened(self.emit(text, spelled), kind)

    def op_fence(self, order: ast.expr) -> Typed:
        self.line(f"fence {self.order(order)}")
        return Typed(None, None)

    def op_pause(self) -> Typed:
        self.line(self.unit.pause[1])
        return Typed(None, None)
