"""Emit kernels of the loop IR as LLVM IR text, loops already vectorized.

`emit_kernel(module, kernel)` writes `void NAME(ptr buffers)`: `buffers` points to the data pointers
of `kernel.buffers` in order. A top-level loop with a grain becomes a function of its own,
`void NAME_parK(ptr context, i64 begin, i64 end)`, that `nj_parallel_for` calls with ranges.

A vector loop runs in steps of `lanes × unroll`; what varies over its lanes is a vector. A masked
tail finishes it; nothing is read or written past the end. Locals that the loop updates but does
not own become `unroll` vectors of partial results, combined afterwards in a fixed order.

Who may call it: the CPU backend's pipeline and tests, with verified kernels. What would break it: a
loop marked "vector" whose iterations depend on each other other than through Update.
"""

from __future__ import annotations

from collections.abc import Sequence

from numjet.base.config import check_ir
from numjet.base.errors import InternalError
from numjet.cpu import emit_values as ev
from numjet.cpu import link
from numjet.cpu.builder import TYPES, Builder, Module, Value, vector
from numjet.cpu.emit_exprs import ExprWriter, _fits32
from numjet.cpu.emit_scope import Dependence, Dependences
from numjet.cpu.emit_tile import Tile, transpose
from numjet.cpu.index import Index, stride
from numjet.cpu.loop_cost import cost, default_lanes, reductions
from numjet.cpu.loop_ir import (
    Alloc,
    Assign,
    Buffer,
    Define,
    Expr,
    For,
    If,
    IndexValue,
    Kernel,
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

# A vector body this costly is written once, always masked, when there is a tail: the mask costs
# a few percent and saves compiling the body twice.
_HEAVY = 60
# Scratch lives on the stack of the thread that runs the loop around it.
_STACK_BYTES = 1 << 20


def emit_kernel(module: Module, kernel: Kernel, check: bool | None = None) -> None:
    """Write `kernel` into `module` as `void kernel.name(ptr buffers)`.

    check: trap on an index out of its axis (default: config.check_ir).
    """
    check = check_ir.value if check is None else check
    b = Builder(module, kernel.name, [("buffers", "ptr")])
    emitter = _Emitter(b, {}, Dependences(stored(kernel.body)), check)
    emitter.kernel = kernel
    emitter.order = list(kernel.buffers)
    emitter.context = b.args[0]
    emitter.load_pointers(kernel.buffers, kernel.body)
    emitter.block(kernel.body, top=True)
    b.ret()


def _used(stmts: Sequence[Stmt]) -> set[Buffer]:
    return stored(stmts) | {e.buffer for e in exprs(stmts) if isinstance(e, Load)}


class _Emitter(ExprWriter):
    """One LLVM function: the kernel's, or that of a parallel loop's body."""

    kernel: Kernel
    order: list[Buffer]  # the buffers behind `context`, then scratch of the kernel
    context: Value
    parallel_count = 0

    def load_pointers(self, buffers: Sequence[Buffer], body: Sequence[Stmt]) -> None:
        """Fetch the data pointers of the buffers that `body` uses."""
        used = _used(body)
        for k, buffer in enumerate(buffers):
            if buffer in used and buffer not in self.pointers:
                slot = self.b.gep(self.context, k, "ptr") if k else self.context
                self.pointers[buffer] = self.b.load(slot, "ptr", 8)

    # -- statements -------------------------------------------------------------------------

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
                if top and s.grain and self._separable(s):
                    self._parallel(s)
                else:
                    self._for(s)
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

    def _set(self, local: Local, value: Value) -> None:
        self.locals[local] = self.widen(value) if local in self.varying else value
        self.scopes.kill([local])

    def _define(self, s: Define) -> None:
        self._set(s.local, self.eval(s.value))

    def _assign(self, s: Assign) -> None:
        self._blend(s.local, self.eval(s.value))

    def _blend(self, local: Local, value: Value) -> None:
        """Set a local in the active lanes."""
        if self.mask is not None and (self.predicated or local in self.partials):
            value = self.b.select(self.mask, self.widen(value), self.widen(self.locals[local]))
        self._set(local, value)

    partials: frozenset[Local] = frozenset()  # accumulators of the vector loop around

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
        better = _beats(self.b, s, value, best)
        if TYPES[better.type].lanes:
            value, best, at, old = (self.widen(x) for x in (value, best, at, old))
        at, old = self.alike([at, old])
        self._blend(s.position, self.b.select(better, at, old))
        self._blend(s.local, self.b.select(better, value, best))

    def _carried(self, stmts: Sequence[Stmt]) -> list[Local]:
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
        carried = self._carried(s.then + s.otherwise)
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
            self._carried(stmts)
            self.block(stmts)
            self.mask, self.predicated = outer

    def _while(self, s: While) -> None:
        carried = self._carried(s.body)
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

    # -- hoisting ---------------------------------------------------------------------------

    def hoist(self, stmts: Sequence[Stmt], changing: set[Dependence]) -> None:
        """Compute now, before a loop, what its body needs and what does not change in it."""
        inside = {s.var for s in walk(stmts) if isinstance(s, For)}
        changing = changing | inside | self.inner_allocs(stmts)
        for s in stmts:
            if isinstance(s, If):
                continue  # may not run: its loads may not be made
            for e in stmt_exprs(s):
                self._hoist_expr(e, changing)
            for i in stmt_indices(s):
                if not isinstance(s, Store):
                    self._hoist_index(i, changing)
            if isinstance(s, Store):
                self._hoist_access(s.buffer, s.index, s.part, changing)
            for inner in blocks(s):
                if not isinstance(s, While):
                    self.hoist(inner, changing)

    def inner_allocs(self, stmts: Sequence[Stmt]) -> set[Dependence]:
        return {s.buffer for s in walk(stmts) if isinstance(s, Alloc)}

    def _hoist_expr(self, e: Expr, changing: set[Dependence]) -> None:
        pending, seen = [e], set()
        while pending:
            top = pending.pop()
            if id(top) in seen:
                continue
            seen.add(id(top))
            if isinstance(top, Load):
                known = top.buffer in self.pointers
            else:
                known = True
            if known and changing.isdisjoint(self.deps.expr(top)):
                if top.args_() or isinstance(top, Load | IndexValue):
                    self.eval(top)
                continue
            pending += top.args_()
            if isinstance(top, Load):
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
            single = Index(((atom, 1),), 0)
            if changing.isdisjoint(self.deps.index(single)):
                self.index_scalar(single)

    # -- loops ------------------------------------------------------------------------------

    def _for(self, s: For, start: Value | int = 0, stop: Value | int | None = None) -> None:
        """A loop from `start` to `stop` (default: all of it)."""
        if stop is None:
            stop = s.extent if isinstance(s.extent, int) else self.index_scalar(s.extent)
        if s.kind == "vector" and self.vec is None:
            found = reductions(s)
            if found is not None:
                self._vector(s, start, stop, found)
                return
        self._serial(s, start, stop)

    def _serial(self, s: For, start: Value | int, stop: Value | int) -> None:
        carried = self._carried(s.body)
        changed: list[Dependence] = [s.var, *carried, *stored(s.body)]
        if start == 0 and stop == 1:
            self.vars[s.var] = (None, 0)
            self.block(s.body)
            return
        if s.kind == "tile" and self.vec is not None:
            self._tile(s, carried)
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
                self._copies(s, loop.index, unroll)
                loop.yield_(*[self.locals[x] for x in carried])
            self.locals.update(zip(carried, loop.results, strict=True))
        if main is not stop:
            for k in range(main, stop):
                self.vars[s.var] = (None, k)
                self.block(s.body)
        self.scopes.kill(changed)

    def _tile(self, s: For, carried: list[Local]) -> None:
        """A loop whose strided accesses are moved in blocks, transposed in registers."""
        assert isinstance(s.extent, int)
        self.vars[s.var] = (None, 0)
        self.scopes.push()
        if not self.predicated:
            self._tile_loads(s)
            self._tile_stores(s)
        if s.unroll > 1:
            for k in range(s.extent):
                self.vars[s.var] = (None, k)
                self.block(s.body)
        else:
            with self.b.loop(0, s.extent, 1, [self.locals[x] for x in carried]) as loop:
                self.locals.update(zip(carried, loop.values, strict=True))
                self.vars[s.var] = (loop.index, 0)
                self.block(s.body)
                loop.yield_(*[self.locals[x] for x in carried])
            self.locals.update(zip(carried, loop.results, strict=True))
        self.vars[s.var] = (None, 0)
        for (buffer, lin), tile in self.sinks.items():
            self._write_tile(buffer, lin, tile)
        self.sinks.clear()
        self.scopes.pop()
        self.scopes.kill([s.var, *carried, *stored(s.body)])

    def _crosses(self, s: For, lin: Index) -> bool:
        return self.lane_stride(lin) not in (None, 0, 1, -1) and stride(lin, s.var) == 1

    def _tile_loads(self, s: For) -> None:
        """Read the blocks that the body wants, one row a lane, and turn them."""
        written = stored(s.body)
        for e in exprs(s.body):
            if not isinstance(e, Load) or e.buffer in written or e.part is not None:
                continue
            lin = self.linear(e.buffer, e.index, None)
            key = ("tile", id(e.buffer), lin)
            if self._crosses(s, lin) and self.scopes.get(key) is None:
                element = ev.memory_type(e.buffer.dtype)
                tile = Tile(self.b, s.var, element, self.lanes, s.unroll > 1)
                rows = [
                    self._read_row(e.buffer, lin, r, tile.width, tile.type)
                    for r in range(self.lanes)
                ]
                tile.fill(self.b, transpose(self.b, rows, self.lanes)[: tile.width])
                self.scopes.put(key, tile, self.deps.index(lin))

    def _tile_stores(self, s: For) -> None:
        """Let the strided stores of the body wait for the end of the loop."""
        read = {e.buffer for e in exprs(s.body) if isinstance(e, Load)}
        places: dict[Buffer, list[Index]] = {}
        for x in s.body:
            if isinstance(x, Store) and x.part is None and x.buffer not in read:
                places.setdefault(x.buffer, []).append(self.linear(x.buffer, x.index, None))
        inner = [x.buffer for y in s.body for b in blocks(y) for x in walk(b)
                 if isinstance(x, Store)]  # fmt: skip
        for buffer, linears in places.items():
            lin = linears[0]
            if len(linears) == 1 and buffer not in inner and self._crosses(s, lin):
                element = ev.memory_type(buffer.dtype)
                self.sinks[buffer, lin] = Tile(self.b, s.var, element, self.lanes, s.unroll > 1)

    def _row(self, buffer: Buffer, lin: Index, row: int) -> Value:
        """The address of what lane `row` has at lin."""
        step = self.lane_stride(lin)
        assert step is not None
        return self.pointer(buffer, lin + row * step)

    def _read_row(self, buffer: Buffer, lin: Index, row: int, width: int, type: str) -> Value:
        b, lanes = self.b, self.lanes
        active = lanes if self.mask is None else self.active
        if isinstance(active, int):
            if row >= active:
                return b.const(0, type)
            address = self._row(buffer, lin, row)
        else:
            # Rows past the end are read from the last one there is.
            step = self.lane_stride(lin)
            assert step is not None
            last = b.min(b.sub(active, 1), row)
            address = b.gep(self.pointer(buffer, lin), b.mul(last, step), TYPES[type].element)
        if width == lanes:
            return b.load(address, type)
        some = b.lanes([k < width for k in range(lanes)], "i1")
        return b.masked_load(address, some, b.const(0, type))

    def _write_tile(self, buffer: Buffer, lin: Index, tile: Tile) -> None:
        b, lanes = self.b, self.lanes
        rows = transpose(b, tile.all(b), lanes)
        some = b.lanes([k < tile.width for k in range(lanes)], "i1")
        active = lanes if self.mask is None else self.active
        for r in range(lanes):
            if isinstance(active, int):
                if r >= active:
                    break
                mask = None if tile.width == lanes else some
            else:
                mask = b.and_(b.splat(b.icmp("sgt", active, r), lanes), some)
            self._store_vector(rows[r], self._row(buffer, lin, r), mask)

    def _copies(self, s: For, index: Value, unroll: int) -> None:
        self.scopes.push()
        if unroll > 1:
            self.vars[s.var] = (index, 0)
            self._hoist_addresses(s.body)
        for k in range(unroll):
            self.vars[s.var] = (index, k)
            self.block(s.body)
        self.scopes.pop()

    def _vector(
        self, s: For, start: Value | int, stop: Value | int, found: list[Update | UpdateArg]
    ) -> None:
        """A loop in steps of lanes; `found`: the statements that reduce into outer locals."""
        lanes = s.lanes or default_lanes(s, link.vector_bytes())
        static = isinstance(start, int) and isinstance(stop, int)
        if static:
            while lanes > 1 and lanes // 2 >= stop - start:
                lanes //= 2
        if lanes == 1:
            self._serial(s, start, stop)
            return
        unroll = max(1, min(s.unroll, (stop - start) // lanes) if static else s.unroll)
        changed: list[Dependence] = [s.var, *self._carried(s.body), *stored(s.body)]
        self.scopes.kill(changed)
        self.hoist(s.body, set(changed) | defined(s.body))
        self.vec, self.lanes = s.var, lanes
        self.varying = _varying(s, self.deps)
        outer = {x: self.locals[x] for x in self._reduced(found)}
        self.partials = frozenset(outer)
        self.varying |= self.partials
        partial = [self._initial(found) for _ in range(unroll)]
        self._vector_rounds(s, start, stop, unroll, partial)
        self.vec, self.lanes, self.mask, self.varying = None, 0, None, set()
        self.partials = frozenset()
        self.scopes.kill(changed)
        for r in found:
            self._combine(r, partial, outer)
        self.scopes.kill(changed)

    def _reduced(self, found: Sequence[Update | UpdateArg]) -> list[Local]:
        names: dict[Local, None] = {}
        for r in found:
            names[r.local] = None
            if isinstance(r, UpdateArg):
                names[r.position] = None
        return list(names)

    def _initial(self, found: Sequence[Update | UpdateArg]) -> dict[Local, Value]:
        """Accumulators that hold nothing yet."""
        values = {}
        for r in found:
            op, dtype = r.op, r.local.dtype
            values[r.local] = ev.constant(self.b, ev.identity(op, dtype), dtype, self.lanes)
            if isinstance(r, UpdateArg):
                narrow = isinstance(r.at, IndexValue) and _fits32(r.at.index)
                element = "i32" if narrow else ev.register_type(r.position.dtype)
                largest = (1 << (TYPES[element].bits - 1)) - 1
                values[r.position] = self.b.const(largest, vector(element, self.lanes))
        return values

    def _vector_rounds(
        self, s: For, start: Value | int, stop: Value | int, unroll: int,
        partial: list[dict[Local, Value]],
    ) -> None:  # fmt: skip
        b, lanes = self.b, self.lanes
        step = lanes * unroll
        if isinstance(start, int) and isinstance(stop, int):
            count = stop - start
            whole = count // step * step
            rest = count - whole
            if rest % lanes and whole and unroll == 1 and cost(s.body) > _HEAVY:
                whole, rest = 0, count
            if whole:
                self._rounds(s, start, start + whole, unroll, partial, False)
            if rest and rest % lanes == 0:
                self._rounds(s, start + whole, stop, 1, partial, False)
            elif rest:
                self._rounds(s, start + whole, stop, 1, partial, True)
            return
        aligned = isinstance(s.extent, int) and s.extent % step == 0
        if aligned:
            self._rounds(s, start, stop, unroll, partial, False)
            return
        if unroll == 1 and cost(s.body) > _HEAVY:
            self._rounds(s, start, stop, 1, partial, True)
            return
        first, last = b.value(start, "i64"), b.value(stop, "i64")
        count = last if start == 0 else b.sub(last, first)
        whole_count = b.and_(count, -step) if step & (step - 1) == 0 else b.mul(
            b.udiv(count, step), step)
        middle = whole_count if start == 0 else b.add(first, whole_count)
        self._rounds(s, first, middle, unroll, partial, False)
        self._rounds(s, middle, last, 1, partial, True)

    def _rounds(
        self, s: For, start: Value | int, stop: Value | int, unroll: int,
        partial: list[dict[Local, Value]], masked: bool,
    ) -> None:  # fmt: skip
        """Steps of lanes × unroll from start to stop, the lanes past stop masked off."""
        b, lanes = self.b, self.lanes
        static = isinstance(start, int) and isinstance(stop, int)
        if static and stop - start <= lanes * unroll:
            if masked:
                self.mask = b.lanes([k < stop - start for k in range(lanes)], "i1")
                self.active = stop - start
            for u in range(unroll):
                self._one(s, None, start + u * lanes, partial[u])
            self.mask = None
            return
        keys = [(u, x) for u in range(unroll) for x in partial[u]]
        values = [partial[u][x] for u, x in keys]
        with b.loop(start, stop, lanes * unroll, values) as loop:
            for (u, x), value in zip(keys, loop.values, strict=True):
                partial[u][x] = value
            if masked:
                self.mask = self._tail_mask(loop.index, stop)
            self.scopes.push()
            if unroll > 1:
                self.vars[s.var] = (loop.index, 0)
                self._hoist_addresses(s.body)
            for u in range(unroll):
                self._one(s, loop.index, u * lanes, partial[u])
            self.scopes.pop()
            self.mask = None
            loop.yield_(*[partial[u][x] for u, x in keys])
        for (u, x), value in zip(keys, loop.results, strict=True):
            partial[u][x] = value

    def _hoist_addresses(self, stmts: Sequence[Stmt]) -> None:
        """The addresses that unrolled copies share, but for constants: affine terms only."""
        changing = {s.var for s in walk(stmts) if isinstance(s, For)}
        changing |= set(assigned(stmts)) | stored(stmts) | defined(stmts)
        accesses = [(s.buffer, s.index, s.part) for s in walk(stmts) if isinstance(s, Store)]
        accesses += [(e.buffer, e.index, e.part) for e in exprs(stmts) if isinstance(e, Load)]
        for buffer, index, part in accesses:
            if buffer in self.pointers:
                self.pointer(buffer, self.linear(buffer, index, part), changing, plain=True)

    def _tail_mask(self, index: Value, stop: Value | int) -> Value:
        b, lanes = self.b, self.lanes
        left = b.sub(b.value(stop, "i64"), index)
        # In 32 bits: more than the lanes is all of them.
        self.active = b.min(left, lanes)
        left = b.trunc(self.active, "i32")
        return b.icmp("slt", b.iota("i32", lanes), b.splat(left, lanes))

    def _one(self, s: For, index: Value | None, offset: int, partial: dict[Local, Value]) -> None:
        self.vars[s.var] = (index, offset)
        self.locals.update(partial)
        self.scopes.kill(partial)
        self.block(s.body)
        for x in partial:
            partial[x] = self.locals[x]

    def _combine(
        self, r: Update | UpdateArg, partial: list[dict[Local, Value]], outer: dict[Local, Value]
    ) -> None:
        """Join the partial results of one reduction into its local."""
        b, dtype = self.b, r.local.dtype
        parts = [p[r.local] for p in partial]
        if isinstance(r, Update):
            while len(parts) > 1:
                half = (len(parts) + 1) // 2
                low, high = parts[:half], parts[half:]
                parts = [
                    ev.apply(b, r.op, dtype, x, high[k]) if k < len(high) else x
                    for k, x in enumerate(low)
                ]
            value = ev.reduce_lanes(b, r.op, dtype, parts[0])
            self._set(r.local, ev.apply(b, r.op, dtype, outer[r.local], value))
            return
        best = parts[0]
        for x in parts[1:]:
            best = ev.apply(b, r.op, dtype, best, x)
        best = ev.reduce_lanes(b, r.op, dtype, best)
        positions = [p[r.position] for p in partial]
        lanes = TYPES[positions[0].type].lanes
        lowest = None
        for x, at in zip(parts, positions, strict=True):
            wide = b.splat(best, lanes)
            if dtype in ev.FLOATS:
                # Where NaN is best, `best` equals nothing and the lanes that hold NaN match.
                nan = b.splat(b.fcmp("uno", best, best), lanes)
                same = b.or_(b.fcmp("oeq", x, wide), b.and_(nan, b.fcmp("uno", x, x)))
            else:
                same = b.icmp("eq", x, wide)
            largest = b.const((1 << (TYPES[at.type].bits - 1)) - 1, at.type)
            at = b.select(same, at, largest)
            lowest = at if lowest is None else b.min(lowest, at)
        assert lowest is not None
        first = b.reduce("min", lowest)
        largest = b.const((1 << (TYPES[first.type].bits - 1)) - 1, first.type)
        found = b.icmp("ne", first, largest)
        old = outer[r.position]
        if TYPES[first.type].bits != TYPES[old.type].bits:
            wider = TYPES[first.type].bits < TYPES[old.type].bits
            first = (b.sext if wider else b.trunc)(first, old.type)
        better = b.and_(found, _beats(b, r, best, outer[r.local]))
        self._set(r.position, b.select(better, first, old))
        self._set(r.local, b.select(better, best, outer[r.local]))

    # -- parallel loops ---------------------------------------------------------------------

    def _separable(self, s: For) -> bool:
        """Whether the loop needs no local from outside."""
        needed: set[Dependence] = set()
        for e in exprs([s]):
            needed |= self.deps.expr(e)
        outside = set(self.locals) - defined(s.body)
        return outside.isdisjoint(needed) and outside.isdisjoint(assigned(s.body))

    def _parallel(self, s: For) -> None:
        b, module = self.b, self.b.module
        used = [x for x in self.order if x in _used([s]) and x in self.pointers]
        context, order = self.context, list(self.kernel.buffers)
        if any(x.role == "scratch" for x in used):
            order = used
            context = b.alloca("ptr", len(order), 8)
            for k, x in enumerate(order):
                b.store(self.pointers[x], b.gep(context, k, "ptr"), 8)
        self.parallel_count += 1
        name = f"{self.kernel.name}_par{self.parallel_count}"
        body = Builder(
            module, name, [("context", "ptr"), ("begin", "i64"), ("end", "i64")],
            linkage="internal",
        )  # fmt: skip
        inner = _Emitter(body, {}, self.deps, self.check)
        inner.kernel, inner.order, inner.context = self.kernel, list(order), body.args[0]
        inner.load_pointers(order, [s])
        unit, grain = 1, s.grain
        begin, end = body.args[1:]
        if s.kind == "vector":
            lanes = s.lanes or default_lanes(s, link.vector_bytes())
            block = lanes * s.unroll
            unit, grain = (s.grain + block - 1) // block * block, 1
        extent = s.extent if isinstance(s.extent, int) else self.index_scalar(s.extent)
        if unit > 1:
            begin, end = body.mul(begin, unit), body.mul(end, unit)
            if isinstance(s.extent, int):
                limit: Value | int = s.extent
            else:
                limit = inner.index_scalar(s.extent)
            if not (isinstance(limit, int) and limit % unit == 0):
                end = body.min(end, limit)
            if isinstance(extent, int):
                extent = (extent + unit - 1) // unit
            else:
                extent = b.udiv(b.add(extent, unit - 1), unit)
        inner.scopes.push()
        inner._for(s, begin, end)
        body.ret()
        b.call(
            "nj_parallel_for", "void", Value(f"@{name}", "ptr"), context,
            b.value(extent, "i64"), b.const(grain, "i64"),
        )  # fmt: skip
        self.scopes.kill(stored(s.body))


def _beats(b: Builder, s: UpdateArg, value: Value, best: Value) -> Value:
    """Whether `value` replaces `best`: strictly beyond it, or the first NaN."""
    dtype = s.local.dtype
    word = "gt" if s.op == "max" else "lt"
    if dtype not in ev.FLOATS:
        return ev.apply(b, word, dtype, value, best)
    # u… also holds when either is NaN; a NaN that is there already stays.
    return b.and_(b.fcmp("u" + word, value, best), b.fcmp("ord", best, best))


def _varying(s: For, deps: Dependences) -> set[Dependence]:
    """The loop variable, and the locals of its body that take different values in its lanes."""
    varying: set[Dependence] = {s.var}
    grew = True

    def visit(stmts: Sequence[Stmt], control: bool) -> bool:
        grew = False
        for x in stmts:
            varies = control or any(not varying.isdisjoint(deps.expr(e)) for e in stmt_exprs(x))
            if isinstance(x, Define | Assign | Update | UpdateArg):
                targets = [x.local, x.position] if isinstance(x, UpdateArg) else [x.local]
                for local in targets:
                    if varies and local not in varying:
                        varying.add(local)
                        grew = True
            for block in blocks(x):
                grew |= visit(block, control or (isinstance(x, If | While) and varies))
        return grew

    while grew:
        grew = visit(s.body, False)
    return varying
