"""Writing statements of the loop IR: assignments, branches, loops in order.

`StatementWriter` keeps locals in SSA form (what a loop or branch changes goes through its phis),
computes before each loop what does not change in it, and runs every loop in order, one round after
the other; `emit.vector` derives from it and knows vector loops. Inside one, a branch
whose condition varies runs both arms under masks, and a while loop runs as long as any lane does.
What would break it: a store to a buffer through another name (only the rule of `Buffer` allows it).
"""

from __future__ import annotations

from collections.abc import Sequence

from numjet.base.errors import InternalError
from numjet.cpu import host
from numjet.cpu.builder.builder import TYPES, Builder, Value
from numjet.cpu.emit import values as ev
from numjet.cpu.emit.exprs import ExprWriter
from numjet.cpu.loops.index import Index
from numjet.cpu.loops.ir import (
    Alloc,
    Assign,
    Buffer,
    Define,
    Expr,
    For,
    If,
    IndexValue,
    Load,
    Local,
    Stmt,
    Store,
    Update,
    UpdateArg,
    While,
    assigned,
    blocks,
    defined,
    exprs,
    stmt_exprs,
    stmt_indices,
    stored,
    walk,
)
from numjet.cpu.loops.scope import Dependence

# Scratch lives on the stack of the thread that runs the loop around it.
_STACK_BYTES = 1 << 20


class StatementWriter(ExprWriter):
    """Statements of one LLVM function, loops in order."""

    order: list[Buffer]  # the buffers that have pointers
    partials: frozenset[Local] = frozenset()  # accumulators of the vector loop around

    def block(self, stmts: Sequence[Stmt], top: bool = False) -> None:
        """Statements in a scope of their own."""
        self.scopes.push()
        skip = False
        for k, s in enumerate(stmts):
            if skip:
                skip = False
                continue
            if isinstance(s, Store):
                skip = self._store(s, stmts[k + 1] if k + 1 < len(stmts) else None)
            elif isinstance(s, For):
                self.loop(s, top)
            else:
                getattr(self, "_" + type(s).__name__.lower())(s)
        self.scopes.pop()

    def _store(self, s: Store, following: Stmt | None) -> bool:
        """Write; True when the next statement, the imaginary part, was written too."""
        if (
            s.part == 0
            and isinstance(following, Store)
            and following.part == 1
            and following.buffer is s.buffer
            and following.index == s.index
        ):
            re, im = self.eval(s.value), self.eval(following.value)
            self.store_pair(s.buffer, s.index, re, im)
            self.scopes.kill([s.buffer])
            return True
        value = self.eval(s.value)
        self.store(s.buffer, s.index, value, s.part)
        self.scopes.kill([s.buffer])
        return False

    def _alloc(self, s: Alloc) -> None:
        if s.buffer.nbytes > _STACK_BYTES:
            raise InternalError(
                f"scratch {s.buffer} of {s.buffer.nbytes} bytes exceeds the stack's "
                f"{_STACK_BYTES}; pass it as a buffer of role 'work'"
            )
        if s.buffer not in self.pointers:
            self.pointers[s.buffer] = self.b.alloca("i8", max(s.buffer.nbytes, 1), 64)
            self.order.append(s.buffer)
        self.scopes.kill([s.buffer])

    def set_local(self, local: Local, value: Value) -> None:
        """Give a local its value."""
        self.locals[local] = self.widen(value) if local in self.varying else value
        self.scopes.kill([local])

    def _define(self, s: Define) -> None:
        self.set_local(s.local, self.eval(s.value))

    def _assign(self, s: Assign) -> None:
        self._blend(s.local, self.eval(s.value))

    def _blend(self, local: Local, value: Value) -> None:
        """Set a local in the active lanes."""
        if self.mask is not None and (self.predicated or local in self.partials):
            value = self.b.select(self.mask, self.widen(value), self.widen(self.locals[local]))
        self.set_local(local, value)

    def _update(self, s: Update) -> None:
        old, value = self.alike([self.locals[s.local], self.eval(s.value)])
        self._blend(s.local, ev.apply(self.b, s.op, s.local.dtype, old, value))

    def _updatearg(self, s: UpdateArg) -> None:
        value, best = self.alike([self.eval(s.value), self.locals[s.local]])
        old = self.locals[s.position]
        if isinstance(s.at, IndexValue):
            at = self.index_value(s.at.index, TYPES[old.type].element)
        else:
            at = self.eval(s.at)
        better = beats(self.b, s, value, best)
        if TYPES[better.type].lanes:
            value, best, at, old = (self.widen(x) for x in (value, best, at, old))
        at, old = self.alike([at, old])
        self._blend(s.position, self.b.select(better, at, old))
        self._blend(s.local, self.b.select(better, value, best))

    def carried(self, stmts: Sequence[Stmt]) -> list[Local]:
        """Locals from outside that the statements change; made vectors where they vary."""
        own = defined(stmts)
        found = [x for x in assigned(stmts) if x in self.locals and x not in own]
        for x in found:
            if x in self.varying:
                self.locals[x] = self.widen(self.locals[x])
        return found

    def _if(self, s: If) -> None:
        condition = self.eval(s.condition)
        if TYPES[condition.type].lanes:
            self._masked(s, condition)
            return
        carried = self.carried(s.then + s.otherwise)
        before = [self.locals[x] for x in carried]
        changed: list[Dependence] = [*carried, *stored(s.then + s.otherwise)]
        if s.otherwise:
            with self.b.if_(condition) as branch:
                self.block(s.then)
                branch.yield_(*[self.locals[x] for x in carried])
            self.locals.update(zip(carried, before, strict=True))
            self.scopes.kill(changed)
            with branch.else_():
                self.block(s.otherwise)
                branch.yield_(*[self.locals[x] for x in carried])
        else:
            with self.b.if_(condition, before) as branch:
                self.block(s.then)
                branch.yield_(*[self.locals[x] for x in carried])
        self.locals.update(zip(carried, branch.results, strict=True))
        self.scopes.kill(changed)

    def _masked(self, s: If, condition: Value) -> None:
        """Both arms, each in its lanes."""
        outer = self.mask, self.predicated
        for arm, stmts in ((condition, s.then), (None, s.otherwise)):
            if not stmts:
                continue
            arm = arm or self.b.not_(condition)
            self.mask = arm if outer[0] is None else self.b.and_(outer[0], arm)
            self.predicated = True
            self.carried(stmts)
            self.block(stmts)
            self.mask, self.predicated = outer

    def _while(self, s: While) -> None:
        carried = self.carried(s.body)
        changed: list[Dependence] = [*carried, *stored(s.body)]
        self.scopes.kill(changed)
        self.hoist([s], set(changed) | defined([s]))
        outer = self.mask, self.predicated
        with self.b.while_([self.locals[x] for x in carried]) as loop:
            self.locals.update(zip(carried, loop.values, strict=True))
            self.scopes.push()
            condition = self.eval(s.condition)
            if TYPES[condition.type].lanes:
                # Lanes that are through keep their values: the loop runs while any lane does.
                active = condition if outer[0] is None else self.b.and_(outer[0], condition)
                loop.test(self.b.any(active))
                self.mask, self.predicated = active, True
            else:
                loop.test(condition)
            self.block(s.body)
            self.mask, self.predicated = outer
            loop.yield_(*[self.locals[x] for x in carried])
            self.scopes.pop()
        self.locals.update(zip(carried, loop.results, strict=True))
        self.scopes.kill(changed)

    # -- loops ---------------------------------------------------------------------------------

    def loop(
        self, s: For, top: bool = False, start: Value | int = 0, stop: Value | int | None = None
    ) -> None:
        """A loop from `start` to `stop` (default: all of it); `top` outside of any other."""
        self.serial(s, start, self.extent(s) if stop is None else stop)

    def extent(self, s: For) -> Value | int:
        """How often a loop runs."""
        return s.extent if isinstance(s.extent, int) else self.index_scalar(s.extent)

    def serial(self, s: For, start: Value | int, stop: Value | int) -> None:
        """The rounds one after the other."""
        carried = self.carried(s.body)
        changed: list[Dependence] = [s.var, *carried, *stored(s.body)]
        if start == 0 and stop == 1:
            self.vars[s.var] = (None, 0)
            self.block(s.body)
            return
        self.scopes.kill(changed)
        self.hoist(s.body, set(changed) | defined(s.body))
        unroll = s.unroll if isinstance(start, int) and isinstance(stop, int) else 1
        main = stop
        if isinstance(start, int) and isinstance(stop, int):
            main = start + (stop - start) // unroll * unroll
        once = isinstance(s.extent, Index) and s.extent.lo >= 1
        if not (isinstance(main, int) and main == start):
            values = [self.locals[x] for x in carried]
            with self.b.loop(start, main, unroll, values, at_least_once=once) as loop:
                self.locals.update(zip(carried, loop.values, strict=True))
                self.copies(s, loop.index, unroll)
                loop.yield_(*[self.locals[x] for x in carried])
            self.locals.update(zip(carried, loop.results, strict=True))
        if isinstance(main, int) and isinstance(stop, int):
            for k in range(main, stop):
                self.vars[s.var] = (None, k)
                self.block(s.body)
        self.scopes.kill(changed)

    def copies(self, s: For, index: Value, unroll: int) -> None:
        """The body once for each unrolled round."""
        self.scopes.push()
        if unroll > 1:
            self.vars[s.var] = (index, 0)
            self.hoist_addresses(s.body)
        for k in range(unroll):
            self.vars[s.var] = (index, k)
            for buffer, place, size in self.rows_ahead.get(s.var, ()):
                self.prefetch(buffer, place, size)
            self.block(s.body)
        self.scopes.pop()

    def prefetch(self, buffer: Buffer, index: tuple[Index, ...], size: int) -> None:
        """Prefetch the lines of `size` bytes from an element on."""
        row = self.pointer(buffer, self.linear(buffer, index, None))
        for at in (*range(0, size, host.CACHE_LINE), size - 1):
            self.b.prefetch(self.b.gep(row, at), locality=2)

    # -- hoisting ------------------------------------------------------------------------------

    def hoist(self, stmts: Sequence[Stmt], changing: set[Dependence]) -> None:
        """Compute now, before a loop, what its body needs and what does not change in it."""
        inside = {s.var for s in walk(stmts) if isinstance(s, For)}
        changing = changing | inside | self.inner_allocs(stmts)
        seen: set[int] = set()  # what statements share is looked at once
        for s in stmts:
            if isinstance(s, If):
                continue  # may not run: its loads may not be made
            for e in stmt_exprs(s):
                self._hoist_expr(e, changing, seen)
            for i in stmt_indices(s):
                if not isinstance(s, Store):
                    self._hoist_index(i, changing)
            if isinstance(s, Store):
                self._hoist_access(s.buffer, s.index, s.part, changing)
            for inner in blocks(s):
                if not isinstance(s, While):
                    self.hoist(inner, changing)

    def inner_allocs(self, stmts: Sequence[Stmt]) -> set[Dependence]:
        """The scratch that begins inside."""
        return {s.buffer for s in walk(stmts) if isinstance(s, Alloc)}

    def _hoist_expr(self, e: Expr, changing: set[Dependence], seen: set[int]) -> None:
        pending = [e]
        while pending:
            top = pending.pop()
            if id(top) in seen:
                continue
            seen.add(id(top))
            kind, args = type(top), top.args_()
            known = kind is not Load or top.buffer in self.pointers  # type: ignore[attr-defined]
            if known and changing.isdisjoint(self.deps.expr(top)):
                if args or kind is Load or kind is IndexValue:
                    self.eval(top)
            elif args:
                pending += args
            elif isinstance(top, Load):
                self._hoist_access(top.buffer, top.index, top.part, changing)
            elif isinstance(top, IndexValue):
                self._hoist_index(top.index, changing)

    def _hoist_access(
        self, buffer: Buffer, index: tuple[Index, ...], part: int | None, changing: set
    ) -> None:
        if buffer in self.pointers:
            self.pointer(buffer, self.linear(buffer, index, part), changing)

    def _hoist_index(self, i: Index, changing: set[Dependence]) -> None:
        for atom, _ in i.terms:
            if changing.isdisjoint(self.deps.atom(atom)[0]):
                self.index_scalar(Index(((atom, 1),), 0))

    def hoist_addresses(self, stmts: Sequence[Stmt]) -> None:
        """The addresses that unrolled copies share, but for constants: affine terms only."""
        changing: set[Dependence] = {s.var for s in walk(stmts) if isinstance(s, For)}
        changing |= set(assigned(stmts)) | stored(stmts) | defined(stmts)
        accesses = [(s.buffer, s.index, s.part) for s in walk(stmts) if isinstance(s, Store)]
        accesses += [(e.buffer, e.index, e.part) for e in exprs(stmts) if isinstance(e, Load)]
        for buffer, index, part in accesses:
            if buffer in self.pointers:
                self.pointer(buffer, self.linear(buffer, index, part), changing, plain=True)


def beats(b: Builder, s: UpdateArg, value: Value, best: Value) -> Value:
    """Whether `value` replaces `best`: strictly beyond it, or the first NaN."""
    dtype = s.local.dtype
    word = "gt" if s.op == "max" else "lt"
    if dtype not in ev.FLOATS:
        return ev.apply(b, word, dtype, value, best)
    # u… also holds when either is NaN; a NaN that is there already stays.
    return b.and_(b.fcmp("u" + word, value, best), b.fcmp("ord", best, best))
