"""A slow, obvious interpreter of the loop IR: the executable meaning that compiled kernels
match."""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.cpu.loops.index import Atom, Clamp, Div, Dyn, Index, LoopVar, Mod
from numjet.cpu.loops.ir import (
    COMPLEX_PARTS,
    Alloc,
    Assign,
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
    Stmt,
    Store,
    Update,
    UpdateArg,
)

_FUNCTIONS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
    "neg": np.negative, "abs": np.abs, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "not": np.invert, "eq": np.equal, "ne": np.not_equal, "lt": np.less,
    "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "div": np.divide,
    "sqrt": np.sqrt, "floor": np.floor,
}  # fmt: skip


class Interpreter:
    def __init__(self, kernel: Kernel, arrays: tuple[np.ndarray, ...]):
        self.memory: dict[Buffer, np.ndarray] = dict(zip(kernel.buffers, arrays, strict=True))
        self.vars: dict[LoopVar, int] = {}
        self.locals: dict[Local, Any] = {}
        with np.errstate(all="ignore"):
            self.block(kernel.body)

    def atom(self, a: Atom) -> int:
        if isinstance(a, LoopVar):
            return self.vars[a]
        if isinstance(a, Dyn):
            return int(self.expr(a.expr))
        parts = [self.index(p) for p in a.parts()]
        if isinstance(a, Div):
            return parts[0] // a.divisor
        if isinstance(a, Mod):
            return parts[0] % a.divisor
        if isinstance(a, Clamp):
            return min(max(parts[0], a.low), a.high)
        return parts[0] * parts[1]

    def index(self, i: Index) -> int:
        return i.const + sum(k * self.atom(a) for a, k in i.terms)

    def place(self, buffer: Buffer, index: tuple[Index, ...]) -> tuple[int, ...]:
        at = tuple(self.index(i) for i in index)
        assert all(0 <= i < n for i, n in zip(at, buffer.shape, strict=True)), (buffer, at)
        return at

    def expr(self, e: Expr) -> Any:
        if isinstance(e, Const):
            return e.dtype.type(e.value)
        if isinstance(e, Load):
            value = self.memory[e.buffer][self.place(e.buffer, e.index)]
            return value if e.part is None else (value.real, value.imag)[e.part]
        if isinstance(e, ReadLocal):
            return self.locals[e.local]
        if isinstance(e, IndexValue):
            return np.asarray(self.index(e.index)).astype(e.dtype)[()]
        if isinstance(e, Select):
            return self.expr(e.then) if self.expr(e.condition) else self.expr(e.otherwise)
        args = [self.expr(a) for a in e.args_()]
        if isinstance(e, Cast):
            array = np.asarray(args[0])
            return (array.view(e.dtype) if e.bits else array.astype(e.dtype))[()]
        assert isinstance(e, Op)
        return _FUNCTIONS[e.name](*args)

    def block(self, stmts: tuple[Stmt, ...]) -> None:
        for s in stmts:
            self.stmt(s)

    def stmt(self, s: Stmt) -> None:
        if isinstance(s, For):
            for k in range(s.extent if isinstance(s.extent, int) else self.index(s.extent)):
                self.vars[s.var] = k
                self.block(s.body)
        elif isinstance(s, If):
            self.block(s.then if self.expr(s.condition) else s.otherwise)
        elif isinstance(s, Alloc):
            self.memory[s.buffer] = np.full(s.buffer.shape, 77, s.buffer.dtype)
        elif isinstance(s, Store):
            value, at = self.expr(s.value), self.place(s.buffer, s.index)
            memory = self.memory[s.buffer]
            if s.part is not None:
                memory.view(COMPLEX_PARTS[s.buffer.dtype]).reshape(*memory.shape, 2)[
                    (*at, s.part)
                ] = value
            else:
                memory[at] = value
        elif isinstance(s, Define | Assign):
            self.locals[s.local] = self.expr(s.value)
        elif isinstance(s, Update):
            self.locals[s.local] = _FUNCTIONS[s.op](self.locals[s.local], self.expr(s.value))
        elif isinstance(s, UpdateArg):
            value, best = self.expr(s.value), self.locals[s.local]
            beyond = value > best if s.op == "max" else value < best
            if best == best and (beyond or value != value):
                self.locals[s.local], self.locals[s.position] = value, self.expr(s.at)
        else:
            while self.expr(s.condition):
                self.block(s.body)


def interpret(kernel: Kernel, *arrays: np.ndarray) -> None:
    """Run `kernel` on the arrays, in place."""
    Interpreter(kernel, arrays)
