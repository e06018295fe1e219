"""The loop IR: scalar programs over buffers in annotated loops, on one screen.

    Kernel(name, buffers, body)        buffers in the order of the pointers passed: in, out, work
    Stmt  = For(var, extent, body, kind, ...)  run body for var in 0 .. extent-1
          | Alloc(buffer)              scratch begins here, with undefined contents
          | Define(local, value)       a new scalar variable
          | Assign(local, value)       set it
          | Update(local, op, value)   local = op(local, value); may be reassociated
          | UpdateArg(local, position, op, value, at)   running argmax/argmin, first wins
          | Store(buffer, index, value)
          | If(condition, then, otherwise)
          | While(condition, body)     tested before each round
    Expr  = Const | Load | Op | Cast | Select | ReadLocal | IndexValue | Skew  (all with .dtype)
    Index = see `index.py`

Semantics are scalar and sequential. Annotations on a For (`kind`, `lanes`, `unroll`, `grain`) say
how the emitter may run it; they never change results, but that Updates may be reassociated.
An expression is evaluated where its statement stands; both arms of a Select are evaluated, so
indices must be in bounds in either (clamp them); arithmetic never traps.

Arithmetic: integers wrap around, x/0 is -1, INT_MIN/-1 is INT_MIN, x rem 0 is x; shifts by the
width or more give 0 (or the sign); float to integer saturates and NaN gives 0; max and min
propagate NaN. float16 and bfloat16 are stored as such and computed in float32, rounded to nearest
even after each operation. Booleans are bytes 0/1 in memory. Complex values are pairs of real
expressions (`ComplexPair`, see `cpu/loops/build.py`), interleaved in memory: `Load.part` chooses.

Expressions are compared by identity; the `ExprEmitter` (`cpu/loops/build.py`) makes them and shares
equal ones, which is how common subexpressions are found. Who may call it: the lowering of the
CPU backend, its passes and its emitter. What would break it: a Load kept across kernels.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.base.record import field, record, replace
from numjet.core.dtypes import physical
from numjet.cpu.loops.index import Atom, Dyn, Index, LoopVar, atoms, linear_address, rewrite

COMPLEX_PARTS: dict[np.dtype, np.dtype] = {
    np.dtype(np.complex64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.float64),
}
COMPARISONS = frozenset(["eq", "ne", "lt", "le", "gt", "ge"])
REDUCTIONS = frozenset(["add", "mul", "max", "min", "and", "or", "xor"])


@record(frozen=True, eq=False)
class Buffer:
    """Memory of a C-contiguous array.

    Roles: "in" (read only), "out" (written, may be read afterwards; aligned to its element), "work"
    (passed like "out", contents undefined before and after), "scratch" (inside the kernel, made
    by Alloc). An "out" buffer may be the memory of an "in" buffer when every element is read only
    in the iteration that writes it.
    """

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    role: str = "in"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", np.dtype(physical(self.dtype)))
        object.__setattr__(self, "shape", tuple(int(n) for n in self.shape))

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __repr__(self) -> str:
        return self.name


@record(frozen=True, eq=False)
class Local:
    """A scalar variable, alive from its Define to the end of that block."""

    name: str
    dtype: np.dtype

    def __repr__(self) -> str:
        return self.name


# -- expressions ----------------------------------------------------------------------------


class Expr:
    """A value of real, integer or boolean `dtype`. Immutable; compared by identity."""

    __slots__ = ("__weakref__", "_operands", "dtype")
    dtype: np.dtype
    _operands: tuple[Expr, ...]  # see `operands`

    def args_(self) -> tuple[Expr, ...]:
        """The expressions directly inside (those inside indices are not among them)."""
        return ()

    def indices_(self) -> tuple[Index, ...]:
        """The indices directly inside."""
        return ()


class Const(Expr):
    """A constant; `value` is a Python bool, int or float."""

    __slots__ = ("value",)

    def __init__(self, value: Any, dtype: np.dtype):
        self.value, self.dtype = value, dtype


class Load(Expr):
    """The element of `buffer` at `index`; of a complex buffer the part 0 (real) or 1."""

    __slots__ = ("_address", "buffer", "index", "part")
    _address: Index  # see `address`

    def __init__(self, buffer: Buffer, index: tuple[Index, ...], part: int | None = None):
        self.buffer, self.index, self.part = buffer, index, part
        self.dtype = buffer.dtype if part is None else COMPLEX_PARTS[buffer.dtype]

    def indices_(self) -> tuple[Index, ...]:
        return self.index


class Op(Expr):
    """An operation or a mathematical function; the names are those of the ExprEmitter's methods."""

    __slots__ = ("args", "name")

    def __init__(self, name: str, args: tuple[Expr, ...], dtype: np.dtype):
        self.name, self.args, self.dtype = name, args, dtype

    def args_(self) -> tuple[Expr, ...]:
        return self.args


class Cast(Expr):
    """`arg` converted to `dtype`; `bits` reinterprets the same bits instead."""

    __slots__ = ("arg", "bits")

    def __init__(self, arg: Expr, dtype: np.dtype, bits: bool = False):
        self.arg, self.dtype, self.bits = arg, dtype, bits

    def args_(self) -> tuple[Expr, ...]:
        return (self.arg,)


class Select(Expr):
    """`then` where the boolean `condition` holds, else `otherwise`."""

    __slots__ = ("condition", "otherwise", "then")

    def __init__(self, condition: Expr, then: Expr, otherwise: Expr):
        self.condition, self.then, self.otherwise = condition, then, otherwise
        self.dtype = then.dtype

    def args_(self) -> tuple[Expr, ...]:
        return (self.condition, self.then, self.otherwise)


class ReadLocal(Expr):
    """The present value of a local."""

    __slots__ = ("local",)

    def __init__(self, local: Local):
        self.local, self.dtype = local, local.dtype


class IndexValue(Expr):
    """An index as a value of `dtype`."""

    __slots__ = ("index",)

    def __init__(self, index: Index, dtype: np.dtype):
        self.index, self.dtype = index, dtype

    def indices_(self) -> tuple[Index, ...]:
        return (self.index,)


class Skew(Expr):
    """How many elements after the begin of a cache line `buffer` begins, where it lies this time.
    Only the order of what is done may depend on it."""

    __slots__ = ("buffer",)

    def __init__(self, buffer: Buffer):
        self.buffer, self.dtype = buffer, np.dtype(np.int64)


# -- statements -----------------------------------------------------------------------------


@record(frozen=True, eq=False)
class For:
    """Run `body` for var = 0 .. extent-1, in order.

    `extent` is at least 1; an Index is evaluated at entry, and at most var.extent.
    `kind` "serial", "vector" (lane-wise in steps of `lanes`; 0 lets the emitter choose) or "tile"
    (in a vector loop of as many lanes or more: what is contiguous along this one is read in
    blocks and transposed in registers; unrolled whole if `unroll` > 1);
    `unroll` copies of the body a round; `grain` > 0: iterations are independent and may run
    on several threads, at least `grain` of them together.
    """

    var: LoopVar
    extent: int | Index
    body: tuple[Stmt, ...]
    kind: str = "serial"
    unroll: int = 1
    lanes: int = 0
    grain: int = 0


@record(frozen=True, eq=False)
class Alloc:
    """Make a scratch buffer, private to one run of the enclosing block (and to its thread)."""

    buffer: Buffer


@record(frozen=True, eq=False)
class Define:
    local: Local
    value: Expr


@record(frozen=True, eq=False)
class Assign:
    local: Local
    value: Expr


@record(frozen=True, eq=False)
class Update:
    """local = op(local, value), op one of REDUCTIONS."""

    local: Local
    op: str
    value: Expr


@record(frozen=True, eq=False)
class UpdateArg:
    """local, position = value, at  if `value` beats `local` (op "max" or "min"); NaN beats all
    but NaN. Ties keep what is there, so the first wins when `at` grows. Start with `position` 0
    (or the first position) and local the worst value: -inf or the smallest integer for "max".
    """

    local: Local
    position: Local
    op: str
    value: Expr
    at: Expr


@record(frozen=True, eq=False)
class Store:
    """buffer[index] = value; `part` as in Load."""

    buffer: Buffer
    index: tuple[Index, ...]
    value: Expr
    part: int | None = None


@record(frozen=True, eq=False)
class If:
    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()


@record(frozen=True, eq=False)
class While:
    """Run `body` as long as `condition` holds; tested first."""

    condition: Expr
    body: tuple[Stmt, ...]


Stmt = For | Alloc | Define | Assign | Update | UpdateArg | Store | If | While

# Statements with blocks inside, with one value, and those that change a local. Asked for so often
# that making a union each time would be felt.
_NESTED = frozenset((For, If, While))
_VALUED = frozenset((Define, Assign, Update, Store))
_CHANGING = frozenset((Define, Assign, Update, UpdateArg))


@record(frozen=True, eq=False)
class Kernel:
    """A function of the pointers of `buffers`, in this order; scratch is not among them."""

    name: str
    buffers: tuple[Buffer, ...]
    body: tuple[Stmt, ...]
    notes: dict[str, Any] = field(default_factory=dict)


# -- walking and rewriting ------------------------------------------------------------------


def blocks(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The statement lists directly inside."""
    kind = type(stmt)
    if kind is For or kind is While:
        return (stmt.body,)  # type: ignore[union-attr]
    return (stmt.then, stmt.otherwise) if kind is If else ()  # type: ignore[union-attr]


def walk(stmts: Sequence[Stmt]) -> list[Stmt]:
    """Every statement, outer before inner, in order."""
    found: list[Stmt] = []
    for stmt in stmts:
        if type(stmt) in _NESTED:
            found += _inside(stmt)
        else:
            found.append(stmt)
    return found


def _inside(stmt: Stmt) -> list[Stmt]:
    """A statement with blocks and every statement in them, found once."""
    found = stmt.__dict__.get("_inside")
    if found is None:
        found = stmt.__dict__["_inside"] = [stmt]
        for block in blocks(stmt):
            found += walk(block)
    return found


def stmt_exprs(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions directly in a statement (those inside indices are not among them)."""
    kind = type(stmt)
    if kind in _VALUED:
        return (stmt.value,)  # type: ignore[union-attr]
    if kind is UpdateArg:
        return (stmt.value, stmt.at)  # type: ignore[union-attr]
    return (stmt.condition,) if kind is If or kind is While else ()  # type: ignore[union-attr]


def stmt_indices(stmt: Stmt) -> tuple[Index, ...]:
    """The indices directly in a statement."""
    if isinstance(stmt, Store):
        return stmt.index
    if isinstance(stmt, For) and isinstance(stmt.extent, Index):
        return (stmt.extent,)
    return ()


def address(access: Load | Store) -> Index:
    """The element offset of an access from the begin of its buffer; found once."""
    found = getattr(access, "_address", None)
    if found is None:
        found = linear_address(access.index, access.buffer.shape)
        object.__setattr__(access, "_address", found)
    return found


def operands(e: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside, those in indices too; found once."""
    try:
        return e._operands
    except AttributeError:
        found = e.args_()
        for i in e.indices_():
            if i.terms:
                found += tuple([a.expr for a in atoms(i) if type(a) is Dyn])
        e._operands = found
        return found


def exprs(stmts: Sequence[Stmt]) -> list[Expr]:
    """Every distinct expression under the statements, operands first, also those in indices."""
    seen: dict[int, Expr] = {}
    for stmt in stmts:
        seen.update(_exprs(stmt))
    return list(seen.values())


def _exprs(stmt: Stmt) -> dict[int, Expr]:
    """The expressions under one statement by their ids, found once."""
    seen = stmt.__dict__.get("_exprs")
    if seen is not None:
        return seen
    seen = {}
    pending = list(reversed(stmt_exprs(stmt)))
    for i in stmt_indices(stmt):
        pending += [a.expr for a in atoms(i) if type(a) is Dyn]
    while pending:  # explicit: fused expressions are deeper than Python's stack
        top = pending[-1]
        if id(top) in seen:
            pending.pop()
            continue
        missing = [a for a in operands(top) if id(a) not in seen]
        if missing:
            pending += missing
        else:
            pending.pop()
            seen[id(top)] = top
    for block in blocks(stmt):
        for inner in block:
            seen.update(_exprs(inner))
    stmt.__dict__["_exprs"] = seen
    return seen


def assigned(stmts: Sequence[Stmt]) -> list[Local]:
    """The locals that the statements change (those they define included), in order."""
    found: dict[Local, None] = {}
    for stmt in walk(stmts):
        if type(stmt) in _CHANGING:
            found[stmt.local] = None  # type: ignore[union-attr]
        if type(stmt) is UpdateArg:
            found[stmt.position] = None
    return list(found)


def defined(stmts: Sequence[Stmt]) -> set[Local]:
    """The locals that the statements define."""
    return {s.local for s in walk(stmts) if type(s) is Define}


def stored(stmts: Sequence[Stmt]) -> set[Buffer]:
    """The buffers that the statements write (or allocate)."""
    return {s.buffer for s in walk(stmts) if type(s) is Store or type(s) is Alloc}


class Rewriter:
    """Rebuilds statements and expressions with loop variables, locals and buffers replaced.

    `var` maps LoopVar -> Index, `local` Local -> Local, `load` is asked for each Load after its
    indices were rewritten and may return another expression. Unchanged parts are shared.
    """

    def __init__(
        self,
        var: dict[LoopVar, Index] | None = None,
        local: dict[Local, Local] | None = None,
        load: Callable[[Load], Expr | None] | None = None,
        buffer: dict[Buffer, Buffer] | None = None,
    ):
        self.var, self.local, self.load_hook = var or {}, local or {}, load
        self.buffer = buffer or {}
        self._memo: dict[int, tuple[Expr, Expr]] = {}

    def _leaf(self, atom: Atom) -> Index | None:
        if type(atom) is Dyn:
            new = self.expr(atom.expr)
            return None if new is atom.expr else Index.of(Dyn(new, atom.lo, atom.hi))
        return self.var.get(atom)  # type: ignore[call-overload]

    def index(self, i: Index) -> Index:
        return rewrite(i, self._leaf)

    def indices(self, index: tuple[Index, ...]) -> tuple[Index, ...]:
        new = tuple([self.index(i) for i in index])
        return index if all(map(operator.is_, index, new)) else new

    def expr(self, e: Expr) -> Expr:
        memo = self._memo
        pending = [e] if id(e) not in memo else []
        while pending:  # explicit: fused expressions are deeper than Python's stack
            top = pending[-1]
            missing = [a for a in self._needs(top) if id(a) not in memo]
            if missing:
                pending += missing
            else:
                pending.pop()
                if id(top) not in memo:
                    memo[id(top)] = (top, self._expr(top))
        return memo[id(e)][1]

    def _needs(self, e: Expr) -> Sequence[Expr]:
        """What has to be rebuilt before `e`, of that which is not yet."""
        return operands(e)

    def _expr(self, e: Expr) -> Expr:
        if isinstance(e, Load):
            index = self.indices(e.index)
            buffer = self.buffer.get(e.buffer, e.buffer)
            new = e
            if index is not e.index or buffer is not e.buffer:
                new = Load(buffer, index, e.part)
            return (self.load_hook and self.load_hook(new)) or new
        if isinstance(e, ReadLocal):
            local = self.local.get(e.local)
            return e if local is None else ReadLocal(local)
        if isinstance(e, IndexValue):
            i = self.index(e.index)
            return e if i is e.index else IndexValue(i, e.dtype)
        if isinstance(e, Skew):
            return Skew(self.buffer[e.buffer]) if e.buffer in self.buffer else e
        old = e.args_()
        args = tuple([self._memo[id(a)][1] for a in old])
        if all(map(operator.is_, args, old)):
            return e
        if isinstance(e, Op):
            return Op(e.name, args, e.dtype)
        if isinstance(e, Cast):
            return Cast(args[0], e.dtype, e.bits)
        return Select(*args)

    def block(self, stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple([self.stmt(s) for s in stmts])

    def stmt(self, s: Stmt) -> Stmt:
        if isinstance(s, For):
            extent = s.extent if isinstance(s.extent, int) else self.index(s.extent)
            body = self.block(s.body)
            return For(s.var, extent, body, s.kind, s.unroll, s.lanes, s.grain)
        if isinstance(s, Alloc):
            return Alloc(self.buffer.get(s.buffer, s.buffer))
        if isinstance(s, Store):
            buffer = self.buffer.get(s.buffer, s.buffer)
            return Store(buffer, self.indices(s.index), self.expr(s.value), s.part)
        if isinstance(s, If):
            return If(self.expr(s.condition), self.block(s.then), self.block(s.otherwise))
        if isinstance(s, While):
            return While(self.expr(s.condition), self.block(s.body))
        local = self.local.get(s.local, s.local)
        if isinstance(s, UpdateArg):
            position = self.local.get(s.position, s.position)
            return UpdateArg(local, position, s.op, self.expr(s.value), self.expr(s.at))
        if isinstance(s, Update):
            return Update(local, s.op, self.expr(s.value))
        return type(s)(local, self.expr(s.value))


class FreshRewriter(Rewriter):
    """A rewriter that gives each loop a variable of its own, and each local and scratch that begins
    there: what it rebuilds may stand beside what it was made of, and be rebuilt again."""

    def stmt(self, s: Stmt) -> Stmt:
        if type(s) is Define and s.local not in self.local:
            self.local[s.local] = Local(s.local.name, s.local.dtype)
        elif type(s) is Alloc and s.buffer not in self.buffer:
            self.buffer[s.buffer] = replace(s.buffer)
        if type(s) is not For:
            return super().stmt(s)
        var = LoopVar(s.var.name, s.var.extent)
        self.var[s.var] = Index.of(var)
        return replace(super().stmt(s), var=var)


def substitute(stmts: Sequence[Stmt], var: LoopVar, by: Index) -> tuple[Stmt, ...]:
    """The statements with loop variable `var` replaced."""
    return Rewriter(var={var: by}).block(stmts)
