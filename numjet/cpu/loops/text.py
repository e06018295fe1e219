"""Print kernels of the loop IR as one would write them on a whiteboard, and canonically.

`text(kernel)` is for people (`compiled.as_text()`, error messages, golden files);
`canonical(kernel)` numbers every name in order of appearance, so that equal kernels have equal
texts whatever their variables are called: the key by which they are compiled once. Anyone may
call both. What would break `canonical`: a property that changes the code and is not printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.core.dtypes import short_name
from numjet.cpu.loops.index import Atom, Clamp, Div, Dyn, Index, LoopVar, Mod, sum_text
from numjet.cpu.loops.ir import (
    Alloc,
    Buffer,
    Cast,
    Const,
    Define,
    Expr,
    For,
    If,
    IndexValue,
    Kernel,
    Load,
    Local,
    Op,
    ReadLocal,
    Select,
    Skew,
    Stmt,
    Store,
    Update,
    UpdateArg,
    While,
    exprs,
    stmt_exprs,
    stmt_indices,
)

# Expressions nested deeper, or used more often than once when this large, get a line of their own.
_INLINE = 24


def text(kernel: Kernel) -> str:
    """The kernel in readable form."""
    return _Printer(False).kernel(kernel)


def canonical(kernel: Kernel) -> str:
    """A text that equal kernels share: names are numbered in order of appearance."""
    return _Printer(True).kernel(kernel)


def expression(e: Expr) -> str:
    """One expression, for messages."""
    return _Printer(False).expr(e)


class _Printer:
    def __init__(self, numbered: bool):
        self.numbered = numbered
        self.names: dict[Any, str] = {}
        self.used: set[str] = set()
        self.lines: list[str] = []
        self.shared: dict[int, str] = {}
        self.depths: dict[int, int] = {}
        self.uses: dict[int, int] = {}

    def name(self, x: Any, stem: str) -> str:
        """The name of a variable, local or buffer; unique within the kernel."""
        found = self.names.get(x)
        if found is None:
            wanted = stem if self.numbered else x.name
            found = f"{wanted}{len(self.names)}" if self.numbered else wanted
            number = 1
            while found in self.used:
                number += 1
                found = f"{wanted}{number}"
            self.used.add(found)
            self.names[x] = found
        return found

    def kernel(self, k: Kernel) -> str:
        arguments = ", ".join(
            f"{self.declare(x)}{'' if x.role == 'in' else ' ' + x.role}" for x in k.buffers
        )
        name = "" if self.numbered else " " + k.name
        self.lines.append(f"kernel{name}({arguments}):")
        self.count_uses(k.body)
        self.block(k.body, 1)
        return "\n".join(self.lines) + "\n"

    def declare(self, x: Buffer) -> str:
        shape = ",".join(map(str, x.shape))
        return f"{self.name(x, 'b')}: {short_name(x.dtype)}[{shape}]"

    def count_uses(self, stmts: Sequence[Stmt]) -> None:
        """How often each expression is used and how large it would print."""
        for e in exprs(stmts):
            size = 1
            for a in e.args_():
                self.uses[id(a)] = self.uses.get(id(a), 0) + 1
                size += min(self.depths.get(id(a), 1), _INLINE + 1)
            self.depths[id(e)] = size

    # -- statements -------------------------------------------------------------------------

    def block(self, stmts: Sequence[Stmt], depth: int) -> None:
        before = dict(self.shared)
        for s in stmts:
            self.stmt(s, depth)
        self.shared = before

    def line(self, depth: int, words: str) -> None:
        self.lines.append("  " * depth + words)

    def stmt(self, s: Stmt, depth: int) -> None:
        self.shared = {}
        for e in stmt_exprs(s):
            self.name_large(e, depth)
        for i in stmt_indices(s):
            self.name_in_index(i, depth)
        if isinstance(s, For):
            notes = "".join(
                f" {word}"
                for word in (
                    s.kind if s.kind != "serial" else "",
                    f"lanes={s.lanes}" if s.lanes else "",
                    f"unroll={s.unroll}" if s.unroll != 1 else "",
                    f"grain={s.grain}" if s.grain else "",
                )
                if word
            )
            extent = str(s.extent) if isinstance(s.extent, int) else self.index(s.extent)
            if not isinstance(s.extent, int):
                extent += f" <= {s.var.extent}"
            self.line(depth, f"for {self.name(s.var, 'i')} < {extent}{notes}:")
            self.block(s.body, depth + 1)
        elif isinstance(s, While):
            self.line(depth, f"while {self.expr(s.condition)}:")
            self.block(s.body, depth + 1)
        elif isinstance(s, If):
            self.line(depth, f"if {self.expr(s.condition)}:")
            self.block(s.then, depth + 1)
            if s.otherwise:
                self.line(depth, "else:")
                self.block(s.otherwise, depth + 1)
        elif isinstance(s, Alloc):
            self.line(depth, f"scratch {self.declare(s.buffer)}")
        elif isinstance(s, Store):
            at = self.access(s.buffer, s.index, s.part)
            self.line(depth, f"{at} = {self.expr(s.value)}")
        elif isinstance(s, Define):
            local = f"{self.local(s.local)}: {short_name(s.local.dtype)}"
            self.line(depth, f"{local} = {self.expr(s.value)}")
        elif isinstance(s, Update):
            self.line(depth, f"{self.local(s.local)} {s.op}= {self.expr(s.value)}")
        elif isinstance(s, UpdateArg):
            both = f"{self.local(s.local)}, {self.local(s.position)}"
            self.line(depth, f"{both} arg{s.op}= {self.expr(s.value)}, {self.expr(s.at)}")
        else:
            self.line(depth, f"{self.local(s.local)} = {self.expr(s.value)}")

    def name_in_index(self, i: Index, depth: int) -> None:
        for atom, _ in i.terms:
            if type(atom) is Dyn:
                self.name_large(atom.expr, depth)
            for p in atom.parts():
                self.name_in_index(p, depth)

    def name_large(self, e: Expr, depth: int) -> None:
        """Lines for the large expressions inside `e` that are used again or nest too deep."""
        order: list[Expr] = []
        seen: set[int] = set()
        pending: list[tuple[Expr, bool]] = [(e, False)]
        while pending:
            top, done = pending.pop()
            if done:
                order.append(top)
            elif id(top) not in seen:
                seen.add(id(top))
                pending.append((top, True))
                pending += [(a, False) for a in top.args_()]
        for x in order:
            for i in x.indices_():
                self.name_in_index(i, depth)
            again = self.uses.get(id(x), 0) > 1 and self.depths.get(id(x), 1) > 3
            deep = self.depths.get(id(x), 1) > _INLINE
            if x is not e and (again or deep) and id(x) not in self.shared:
                value = self.expr(x)
                if self.numbered:
                    name = f"t{len(self.shared)}"
                else:
                    name = f"t{len(self.shared) + 1}"
                self.line(depth, f"{name} := {value}")
                self.shared[id(x)] = name

    # -- expressions ------------------------------------------------------------------------

    def local(self, x: Local) -> str:
        return self.name(x, "v")

    def access(self, buffer: Buffer, index: Sequence[Index], part: int | None) -> str:
        inside = ", ".join(self.index(i) for i in index)
        tail = "" if part is None else (".real", ".imag")[part]
        return f"{self.name(buffer, 'b')}[{inside}]{tail}"

    def expr(self, e: Expr) -> str:
        if id(e) in self.shared:
            return self.shared[id(e)]
        if isinstance(e, Const):
            return repr(e.value) if not self.numbered else f"{e.value!r}{short_name(e.dtype)}"
        if isinstance(e, Load):
            return self.access(e.buffer, e.index, e.part)
        if isinstance(e, ReadLocal):
            return self.local(e.local)
        if isinstance(e, IndexValue):
            return f"{short_name(e.dtype)}({self.index(e.index)})"
        if isinstance(e, Skew):
            return f"skew({self.name(e.buffer, 'b')})"
        inside = ", ".join(self.expr(a) for a in e.args_())
        if isinstance(e, Op):
            return f"{e.name}({inside})"
        if isinstance(e, Select):
            return f"select({inside})"
        assert isinstance(e, Cast)
        return f"{'bits_' if e.bits else ''}{short_name(e.dtype)}({inside})"

    def index(self, i: Index) -> str:
        terms = [(self.atom(a), k) for a, k in i.terms]
        if self.numbered:
            terms.sort()
        return sum_text(terms, i.const)

    def atom(self, a: Atom) -> str:
        if isinstance(a, LoopVar):
            return self.name(a, "i")
        if isinstance(a, Dyn):
            bounds = f" in {a.lo}..{a.hi}" if self.numbered else ""
            return f"({self.expr(a.expr)}{bounds})"
        inside = [self.index(p) for p in a.parts()]
        if isinstance(a, Div | Mod):
            simple = len(a.arg.terms) == 1 and not a.arg.const
            word = inside[0] if simple else f"({inside[0]})"
            return f"({word}{'//' if isinstance(a, Div) else '%'}{a.divisor})"
        if isinstance(a, Clamp):
            return f"clamp({inside[0]}, {a.low}, {a.high})"
        return f"(({inside[0]})*({inside[1]}))"
