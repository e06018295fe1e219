"""Check a kernel of the loop IR: types, definitions before use, indices in their bounds.

`verify(kernel)` raises InternalError naming the statement. It runs after every pass in tests and
with `config.check_ir`. Runtime indices are trusted to their stated range; the emitter's checked
mode tests those while running.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from numjet.base.errors import InternalError
from numjet.cpu.loops.index import Atom, Clamp, Dyn, Index, LoopVar, Mod, atoms, rewrite
from numjet.cpu.loops.ir import (
    COMPARISONS,
    COMPLEX_PARTS,
    REDUCTIONS,
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
    Skew,
    Stmt,
    Store,
    Update,
    UpdateArg,
    While,
)
from numjet.cpu.loops.text import expression, text

_BOOL = np.dtype(bool)
_PREDICATES = COMPARISONS | {"is_finite", "is_nan", "is_inf", "either_nan"}


def verify(kernel: Kernel) -> Kernel:
    """Raise InternalError if the kernel breaks a rule of the IR; else return it."""
    try:
        _Verifier(kernel).block(kernel.body, set(), set(), set(kernel.buffers))
    except _Broken as error:
        raise InternalError(f"loop IR: {error}\n{text(kernel)}") from None
    return kernel


class _Broken(Exception):
    """What is wrong, without the kernel's text."""


class _Verifier:
    def __init__(self, kernel: Kernel):
        for buffer in kernel.buffers:
            if buffer.role not in ("in", "out", "work"):
                raise InternalError(f"loop IR: {buffer} has role {buffer.role!r} as an argument")
        self.extents: dict[LoopVar, Index] = {}

    def block(
        self, stmts: Sequence[Stmt], vars: set[LoopVar], locals: set[Local], buffers: set[Buffer]
    ) -> None:
        locals, buffers = set(locals), set(buffers)
        for s in stmts:
            self.vars, self.locals, self.buffers = vars, locals, buffers
            self.stmt(s)
            if isinstance(s, Define):
                locals.add(s.local)
            elif isinstance(s, Alloc):
                buffers.add(s.buffer)

    def need(self, holds: bool, message: str) -> None:
        if not holds:
            raise _Broken(message)

    def stmt(self, s: Stmt) -> None:
        vars, locals, buffers = self.vars, self.locals, self.buffers
        if isinstance(s, For):
            extent = s.extent
            if isinstance(extent, Index):
                self.index(extent)
                self.need(extent.hi <= s.var.extent, f"loop {s.var} may exceed its variable")
                self.extents[s.var] = extent
            else:
                self.need(extent == s.var.extent, f"loop {s.var}: extent {extent} is not its own")
            self.need(s.kind in ("serial", "vector", "tile"), f"loop {s.var}: kind {s.kind!r}")
            self.need(s.var not in vars, f"loop variable {s.var} is already in use")
            self.block(s.body, vars | {s.var}, locals, buffers)
        elif isinstance(s, Alloc):
            self.need(s.buffer.role == "scratch", f"{s.buffer} is allocated but not scratch")
        elif isinstance(s, If):
            self.condition(s.condition)
            self.block(s.then, vars, locals, buffers)
            self.block(s.otherwise, vars, locals, buffers)
        elif isinstance(s, While):
            self.condition(s.condition)
            self.block(s.body, vars, locals, buffers)
        elif isinstance(s, Store):
            self.need(s.buffer.role != "in", f"store into the input {s.buffer}")
            self.access(s.buffer, s.index, s.part)
            self.expr(s.value)
            want = COMPLEX_PARTS.get(s.buffer.dtype, s.buffer.dtype)
            self.need(
                s.value.dtype == want,
                f"store of {s.value.dtype} into {s.buffer} of {s.buffer.dtype}",
            )
        else:
            self.assignment(s)

    def assignment(self, s: Define | Assign | Update | UpdateArg) -> None:
        self.expr(s.value)
        self.need(
            s.value.dtype == s.local.dtype,
            f"{s.local} of {s.local.dtype} gets {s.value.dtype}",
        )
        if isinstance(s, Define):
            return
        self.need(s.local in self.locals, f"local {s.local} is set before its definition")
        if isinstance(s, Update):
            self.need(s.op in REDUCTIONS, f"update of {s.local} by unknown {s.op!r}")
        if isinstance(s, UpdateArg):
            self.expr(s.at)
            self.need(s.op in ("max", "min"), f"update of {s.local} by unknown {s.op!r}")
            self.need(s.position in self.locals, f"local {s.position} is set before its definition")
            self.need(s.at.dtype == s.position.dtype, f"{s.position} gets {s.at.dtype}")

    def condition(self, e: Expr) -> None:
        self.expr(e)
        self.need(e.dtype == _BOOL, f"condition {expression(e)} is a {e.dtype}")

    def expr(self, root: Expr) -> None:
        """Check an expression; without recursion, since fused ones are deep."""
        pending = [root]
        seen: set[int] = set()
        while pending:
            e = pending.pop()
            if id(e) in seen:
                continue
            seen.add(id(e))
            pending += e.args_()
            self.one(e)

    def one(self, e: Expr) -> None:
        if isinstance(e, Load):
            self.access(e.buffer, e.index, e.part)
        elif isinstance(e, ReadLocal):
            self.need(e.local in self.locals, f"local {e.local} is read before its definition")
        elif isinstance(e, Skew):
            self.need(e.buffer in self.buffers, f"{e.buffer} is used before its allocation")
        elif isinstance(e, IndexValue):
            self.index(e.index)
            self.need(e.dtype.kind in "iu", f"an index as a {e.dtype}")
        elif isinstance(e, Op):
            kinds = {a.dtype for a in e.args}
            self.need(len(kinds) == 1, f"{e.name} of {sorted(map(str, kinds))}")
            want = _BOOL if e.name in _PREDICATES else next(iter(kinds))
            self.need(e.dtype == want, f"{e.name} of {want} gives {e.dtype}")
        elif isinstance(e, Select):
            self.need(e.condition.dtype == _BOOL, "select by a value that is no boolean")
            self.need(e.then.dtype == e.otherwise.dtype, "select of two dtypes")
        elif isinstance(e, Cast):
            same = e.arg.dtype.itemsize == e.dtype.itemsize
            self.need(same or not e.bits, f"bits of {e.arg.dtype} as {e.dtype}")
        else:
            self.need(isinstance(e, Const), f"{e!r} is no expression")

    def access(self, buffer: Buffer, index: tuple[Index, ...], part: int | None) -> None:
        self.need(buffer in self.buffers, f"{buffer} is used before its allocation")
        self.need(len(index) == len(buffer.shape), f"{buffer} has {len(buffer.shape)} axes, "
                  f"not {len(index)}")  # fmt: skip
        self.need(
            (part is not None) == (buffer.dtype in COMPLEX_PARTS),
            f"{buffer} of {buffer.dtype} accessed with part {part}",
        )
        for axis, (i, n) in enumerate(zip(index, buffer.shape, strict=True)):
            self.index(i)
            if any(type(a) is Dyn for a in atoms(i)):
                continue
            inside = 0 <= i.lo and i.hi < n
            last = i if inside else self.last_rounds(i)
            self.need(
                (i.lo >= 0 or last.lo >= 0) and (i.hi < n or last.hi < n),
                f"index {i} of {buffer} on axis {axis} reaches {i.lo}..{i.hi}, "
                f"the axis has {n} places",
            )

    def last_rounds(self, i: Index) -> Index:
        """The index in the last rounds of the loops whose extent is computed: c*4 + k is at most
        n - 1 when k < min(n - c*4, 4). An extreme of a sum, or of its quotient, is in the first
        round or the last."""
        found = set(atoms(i))
        # A remainder is not monotone: its ends are not in the first and last rounds.
        torn = {v for atom in found if type(atom) is Mod for p in atom.parts() for v in atoms(p)}
        lengths: set[Atom] = set()  # what is at most what it bounds: rounds that are left
        for var, extent in reversed(self.extents.items()):
            lengths.update([a for a in atoms(extent) if type(a) is Clamp])
            if var in atoms(i) and var not in torn:
                only = extent.terms[0][0] if len(extent.terms) == 1 else None
                last = (only.arg if isinstance(only, Clamp) else extent) - 1
                i = rewrite(i, {var: last}.get)  # type: ignore[arg-type]
        for a, k in i.terms:
            if a in lengths and type(a) is Clamp and k > 0:
                i += (a.arg - Index(((a, 1),), 0)) * k
        return i

    def index(self, i: Index) -> None:
        for atom in atoms(i):
            if type(atom) is LoopVar:
                self.need(atom in self.vars, f"variable {atom} is used outside its loop")
            elif type(atom) is Dyn:
                self.expr(atom.expr)
                self.need(atom.expr.dtype.kind in "iub", f"an index from a {atom.expr.dtype}")
