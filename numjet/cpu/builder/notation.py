"""The compiler of the notation: native functions (`builder.records`) to a module of LLVM IR.

It parses the Python source of the functions, follows their calls to further ones, and writes what
they do with the function writer: statements and control flow here, values in `notation_values`.
Variables become values directly (a loop's head and the places where branches meet have a phi for
each that changes), since modules of the runtime run through no passes. What is wrong is told with
the file and the line. For: the native layer and the runtime, which compile once and keep the code.
What would break it: a Python file that changed between import and compilation.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from numjet.cpu.builder.builder import Module, Value
from numjet.cpu.builder.notation_calls import Values
from numjet.cpu.builder.notation_source import NoSource, source_of
from numjet.cpu.builder.notation_values import NotationError, Translator, Typed, static_text
from numjet.cpu.builder.records import NULL, Int, Native


def module_text(
    functions: Sequence[Native],
    *,
    attributes: str = "nounwind",
    pause: tuple[str, str] = ("", ""),
    checked: bool = False,
    external: bool = True,
) -> str:
    """The module of these functions, which are visible outside, and of all that they call.

    attributes: of each function. pause: a declaration and a statement in LLVM IR. checked: test
    every address, type and index and the error indicator, and end the process where one is wrong.
    external: whether symbols of the process may be referred to.
    """
    unit = _Unit(attributes, pause, checked, external)
    for function in functions:
        unit.symbol(function, exported=True)
    while unit.waiting:
        native, exported = unit.waiting.pop(0)
        _Function(unit, native, exported).write()
    parts = [static_text(*static) for static in unit.statics.values()]
    return "\n".join([pause[0], *unit.declared.values(), *parts, unit.module.text()])


class _Unit:
    """A module in the making."""

    def __init__(
        self, attributes: str, pause: tuple[str, str], checked: bool, external: bool
    ) -> None:
        self.module = Module(frozenset())
        self.attributes, self.pause = attributes, pause
        self.checked, self.external = checked, external
        self.names: dict[int, str] = {}
        self.waiting: list[tuple[Native, bool]] = []
        self.statics: dict[str, tuple[Any, str, dict[str, int], bool]] = {}
        self.declared: dict[str, str] = {}  # functions with a variable number of arguments

    def symbol(self, function: Native, exported: bool = False) -> str:
        """The name of a function of this module, which is written if it was not."""
        found = self.names.get(id(function))
        if found is None:
            taken = list(self.names.values()).count(function.name)
            found = f"{function.name}.{taken}" if taken else function.name
            self.names[id(function)] = found
            self.waiting.append((function, exported or function.exported))
        return found


def _assigned(statements: Sequence[ast.stmt]) -> set[str]:
    """The variables that statements change."""
    return {
        node.id
        for statement in statements
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


Exits = list[tuple[str, dict[str, Typed]]]


class _Function(Values):
    """One function in the making."""

    def __init__(self, unit: _Unit, native: Native, exported: bool) -> None:
        self.tree = source_of(native)
        arguments, result = native.types()
        names = [argument.arg for argument in self.tree.args.args]
        translator = Translator(native)
        types = [  # named apart from the writer's own values and labels
            (f"a.{name}", translator.abi(kind)) for name, kind in zip(names, arguments, strict=True)
        ]
        super().__init__(
            unit, translator, unit.module, unit.names[id(native)], types, translator.abi(result),
            linkage="" if exported else "internal", attributes=unit.attributes,
        )  # fmt: skip
        self.result_type = result
        self.env = {
            name: self.widened(value, kind)
            for name, value, kind in zip(names, self.args, arguments, strict=True)
        }
        translator.locals = {*names, *_assigned(self.tree.body)}
        self.live = True
        self.loops: list[tuple[str, Exits, str, Exits]] = []  # continue, break: label and exits

    def write(self) -> None:
        """Write the function's body."""
        self.statements(self.tree.body)
        if self.live:
            if self.result_type not in (None, type(None)):
                self.fail(self.tree, "the function may end without a value")
            self.ret()
        self.lines = [line for line in self.lines if line != ""]

    # ---- statements

    def statements(self, body: Sequence[ast.stmt]) -> None:
        """Write statements in order, until control has left."""
        for statement in body:
            if not self.live:
                return
            self.node = statement
            write: Callable | None = getattr(self, f"do_{type(statement).__name__}", None)
            if write is None:
                self.fail(statement, f"{type(statement).__name__} is not a part of the notation")
            else:
                write(statement)

    def do_Pass(self, _: ast.Pass) -> None:
        """Nothing."""

    def do_Expr(self, node: ast.Expr) -> None:
        """A call for its effect, or a docstring."""
        if not isinstance(node.value, ast.Constant):
            self.expression(node.value)

    def do_Assign(self, node: ast.Assign) -> None:
        """target = value, for one target or several of the same value."""
        value = self.expression(node.value)
        for target in node.targets:
            self.assign(target, value)

    def do_AnnAssign(self, node: ast.AnnAssign) -> None:
        """target: type = value."""
        kind = self.translator.type_of(node.annotation)
        if node.value is None:
            self.fail(node, "a declared variable needs a value")
        else:
            self.assign(node.target, self.converted(self.expression(node.value), kind, node))

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        """target op= value."""
        value = self.binary(
            node.op, self.expression(node.target), self.expression(node.value), node
        )
        self.assign(node.target, value)

    def assign(self, target: ast.expr, value: Typed) -> None:
        """Store a value in a variable, a field or an element."""
        if isinstance(target, ast.Name):
            known = self.env.get(target.id)
            if value.is_constant and value.content is NULL and known is not None:
                value = self.converted(value, known.type, target)
            self.env[target.id] = value
        elif isinstance(target, (ast.Attribute, ast.Subscript)):
            self.store_as(self.address(target), value, target)
        else:
            self.fail(target, "only variables, fields and elements are assigned to")

    def do_Return(self, node: ast.Return) -> None:
        """The end of the function."""
        if node.value is None:
            self.ret()
        else:
            out = self.passed(self.expression(node.value), self.result_type, node)
            self.ret(out)
        self.live = False

    def do_If(self, node: ast.If) -> None:
        """A branch; of one on a constant only the arm that is taken is written."""
        constant = self.constant(node.test)
        if constant is not None:
            self.statements(node.body if constant.content else node.orelse)
            return
        yes, no, end = self.new_label("then"), self.new_label("else"), self.new_label("end")
        self.branch(node.test, yes, no)
        before, exits = self.env, Exits()
        for label, body in ((yes, node.body), (no, node.orelse)):
            self.arm(label, dict(before), body, end, exits)
        self.meet(end, exits, node)

    def do_Match(self, node: ast.Match) -> None:
        """A choice by an integer."""
        constant = self.constant(node.subject)
        cases: list[tuple[list[int] | None, list[ast.stmt]]] = []
        for case in node.cases:
            if case.guard is not None:
                self.fail(case.pattern, "a case has no condition")
            cases.append((self.numbers(case.pattern), case.body))
        if constant is not None:
            taken = [b for n, b in cases if n is None or constant.content in n]
            self.statements(taken[0] if taken else [])
            return
        subject = self.materialized(self.expression(node.subject), node).ref
        end, exits, before = self.new_label("end"), Exits(), self.env
        labels = [self.new_label("case") for _ in cases]
        other = end
        pairs = []
        for label, (numbers, _) in zip(labels, cases, strict=True):
            if numbers is None:
                other = label
            else:
                pairs += [f"i64 {number}, label %{label}" for number in numbers]
        self.line(f"switch i64 {subject}, label %{other} [ {' '.join(pairs)} ]")
        if other == end:
            exits.append((self.label, dict(before)))
        for label, (_, body) in zip(labels, cases, strict=True):
            self.arm(label, dict(before), body, end, exits)
        self.meet(end, exits, node)

    def numbers(self, pattern: ast.pattern) -> list[int] | None:
        """The integers of a case; None: all others."""
        if isinstance(pattern, ast.MatchValue):
            found = self.constant(pattern.value)
            if found is not None:
                return [int(found.content)]
        elif isinstance(pattern, ast.MatchOr):
            parts = [self.numbers(part) or [] for part in pattern.patterns]
            return [number for part in parts for number in part]
        elif isinstance(pattern, ast.MatchAs) and pattern.pattern is None and not pattern.name:
            return None
        self.fail(pattern, "a case is an integer known when this is compiled, or `_`")
        return None

    def do_While(self, node: ast.While) -> None:
        """A loop with its test before."""
        found = self.constant(node.test)
        endless = found is not None and bool(found.content)
        self.repeat(node, lambda body, out: self.branch(node.test, body, out), None, endless)

    def do_For(self, node: ast.For) -> None:
        """for k in range(...)."""
        call = node.iter
        if (
            not isinstance(call, ast.Call)
            or not isinstance(call.func, ast.Name)
            or call.func.id != "range"
            or not isinstance(node.target, ast.Name)
        ):
            self.fail(node, "a for loop is `for k in range(...)`")
            return
        bounds = [self.expression(argument) for argument in call.args]
        start, stop = ((Typed.of(0), *bounds) if len(bounds) == 1 else bounds)[:2]
        step = bounds[2] if len(bounds) == 3 else Typed.of(1)
        last = self.materialized(stop, node)
        name = node.target.id
        self.env[name] = Typed(self.materialized(start, node), Int)

        def test(body: str, out: str) -> None:
            self.cond_br(self.icmp("slt", self.materialized(self.env[name], node), last), body, out)

        def advance() -> None:
            k = self.materialized(self.env[name], node)
            self.env[name] = Typed(self.add(k, self.materialized(step, node)), Int)

        self.repeat(node, test, advance)
        self.env.pop(name, None)

    def do_Break(self, _: ast.Break) -> None:
        """Leave the innermost loop."""
        self.jump(*self.loops[-1][2:])

    def do_Continue(self, _: ast.Continue) -> None:
        """The innermost loop's next round."""
        self.jump(*self.loops[-1][:2])

    # ---- control flow

    def jump(self, label: str, exits: Exits) -> None:
        """Go to where others come too."""
        exits.append((self.label, self.env))
        self.br(label)
        self.live = False

    def arm(
        self, label: str, env: dict[str, Typed], body: Sequence[ast.stmt], end: str, exits: Exits
    ) -> None:
        """Write one of several ways to `end`."""
        self.block(label)
        self.env, self.live = env, True
        self.statements(body)
        if self.live:
            self.jump(end, exits)

    def meet(self, label: str, exits: Exits, node: ast.AST) -> None:
        """Go on where these ways meet, if there are any."""
        self.live = bool(exits)
        if not exits:
            self.env = {}
            return
        self.block(label)
        names = [name for name in exits[0][1] if all(name in env for _, env in exits)]
        self.env = {
            name: self.merged([(env[name], at) for at, env in exits], node) for name in names
        }

    def merged(self, ways: list[tuple[Typed, str]], node: ast.AST) -> Typed:
        """A variable where ways meet."""
        first = ways[0][0]
        if all(value == first for value, _ in ways):
            return first
        kind = self.common_type([value for value, _ in ways])
        if kind is None:  # of no one type: it cannot be read from here on
            return Typed(None, None)
        incoming = [(self.converted(v, kind, node).content, at) for v, at in ways]
        lengths = [v.length if v.length is not None else Value("-1", "i64") for v, _ in ways]
        made = self.phi(incoming[0][0].type, incoming)
        length = None
        if self.unit.checked and any(v.length is not None for v, _ in ways):
            length = self.phi("i64", [(n, at) for n, (_, at) in zip(lengths, ways, strict=True)])
        return Typed(made, kind, length)

    def repeat(
        self, node: ast.While | ast.For, test: Callable, advance: Callable[[], None] | None,
        endless: bool = False,
    ) -> None:
        """A loop: `test(body, out)` branches, `advance` comes before the next test."""
        if node.orelse:
            self.fail(node, "a loop has no else")
        head, body, latch, out, end = map(self.new_label, ("head", "body", "next", "out", "end"))
        stored = _assigned([node])
        self.env = {k: v for k, v in self.env.items() if v.type is not None or k not in stored}
        changing = [name for name in self.env if name in stored]
        for name in changing:
            value = self.env[name]
            self.env[name] = Typed(self.materialized(value, node), self.common_type([value]))
        before, entry = self.env, self.label
        self.br(head)
        self.block(head)
        slot = len(self.lines)
        self.env = dict(before)
        for name in changing:
            self.lines.append("")
            self.count += 1
            start = before[name]
            self.env[name] = Typed(Value(f"%v{self.count}", start.content.type), start.type)
        phis = dict(self.env)
        test(body, out)
        ended: Exits = []
        again: Exits = []
        self.loops.append((latch, again, end, ended))
        self.arm(body, dict(phis), node.body, latch, again)
        self.loops.pop()
        self.meet(latch, again, node)
        if self.live:
            if advance is not None:
                advance()
            self.br(head)
        for k, name in enumerate(changing):
            pairs = [(before[name].content.ref, entry)]
            if self.live:
                back = self.converted(self.env[name], before[name].type, node).content
                pairs.append((back.ref, self.label))
            phi = phis[name].content
            self.lines[slot + k] = phi.ref, ("phi", phi.type, tuple(pairs))
        self.block(out)
        if endless:
            self.unreachable()
        else:
            ended.append((out, phis))
            self.br(end)
        self.meet(end, ended, node)

    def branch(self, node: ast.expr, yes: str, no: str) -> None:
        """Go to one of two labels by a condition."""
        constant = self.constant(node)
        if constant is not None:
            self.br(yes if constant.content else no)
        elif isinstance(node, ast.Call) and self.expands(node) is not None:
            self.expanded(node, lambda body: self.branch(body, yes, no))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.branch(node.operand, no, yes)
        elif isinstance(node, ast.BoolOp):
            for value in node.values[:-1]:
                further = self.new_label("also")
                if isinstance(node.op, ast.And):
                    self.branch(value, further, no)
                else:
                    self.branch(value, yes, further)
                self.block(further)
            self.branch(node.values[-1], yes, no)
        else:
            self.cond_br(self.truth(self.expression(node), node), yes, no)


__all__ = ["NoSource", "NotationError", "module_text"]
