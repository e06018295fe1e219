"""Writing vector loops and tile loops.

A vector loop runs in steps of `lanes × unroll`; its last round begins early enough to end with the
loop and stores under a mask, or where that cannot be, loads under one too. Outer locals that it
updates become `unroll` vectors of partial results, combined afterwards in a fixed order. A tile
loop inside one moves what is contiguous along it in blocks (`emit.transposed_blocks`). `emit`
derives from `VectorWriter` and adds kernels. What would break it: a loop marked "vector" whose
iterations depend on each other other than through Update.
"""

from __future__ import annotations

from collections.abc import Sequence

from numjet.cpu import host
from numjet.cpu.builder.builder import TYPES, Value, vector
from numjet.cpu.emit import values as ev
from numjet.cpu.emit.exprs import fits32
from numjet.cpu.emit.statements import StatementWriter, beats
from numjet.cpu.emit.transposed_blocks import Tile, deinterleave, interleave, transpose
from numjet.cpu.link import link
from numjet.cpu.loops.cost import cost, default_lanes, reductions
from numjet.cpu.loops.index import Dyn, Index, atoms, stride
from numjet.cpu.loops.ir import (
    Assign,
    Buffer,
    Define,
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
    blocks,
    defined,
    exprs,
    stmt_exprs,
    stored,
    walk,
)
from numjet.cpu.loops.positions import apart, round_of
from numjet.cpu.loops.scope import Dependence, Dependences

# A vector body this costly is written once, always masked, when there is a tail: the mask costs
# a few percent and saves compiling the body twice.
_HEAVY = 60
# Without AVX-512 a masked store takes as long as some 40 operations, and the load behind it waits
# for it (sums of exp over 100 columns took six times as long): only bodies beyond this.
_HEAVY_MASKED = 400
# Rows so short are moved as whole vectors, where shuffles are one instruction also of 8 fields;
# longer ones need fewer shuffles row by row.
_FIELDS = 6
# Vectors from which on a row's results are written line by line (its ends take masks).
_LONG = 8


class VectorWriter(StatementWriter):
    """Statements of one LLVM function; loops in order, lane-wise or in tiles."""

    def loop(
        self, s: For, top: bool = False, start: Value | int = 0, stop: Value | int | None = None
    ) -> None:
        """A loop from `start` to `stop` (default: all of it), as it is annotated."""
        if stop is None:
            stop = self.extent(s)
        if s.kind == "vector" and self.vec is None:
            found = reductions(s)
            if found is not None:
                self._vector(s, start, stop, found)
                return
        if s.kind == "tile" and self.vec is not None:
            self._tile(s)
            return
        self.serial(s, start, stop)

    # -- vector loops --------------------------------------------------------------------------

    def _vector(
        self, s: For, start: Value | int, stop: Value | int, found: list[Update | UpdateArg]
    ) -> None:
        """A loop in steps of lanes; `found`: the statements that reduce into outer locals."""
        lanes = s.lanes or default_lanes(s, link.vector_bytes())
        count = None  # how many rounds, when that is known
        if isinstance(start, int) and isinstance(stop, int):
            count = stop - start
            while lanes > 1 and lanes // 2 >= count:
                lanes //= 2
        if lanes == 1:
            self.serial(s, start, stop)
            return
        unroll = s.unroll if count is None else max(1, min(s.unroll, count // lanes))
        changed: list[Dependence] = [s.var, *self.carried(s.body), *stored(s.body)]
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
                narrow = isinstance(r.at, IndexValue) and fits32(r.at.index)
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
            lined = None if partial[0] else self._to_line(s, start, count)
            if lined is not None:
                self._rounds_by_line(s, *lined, stop, partial)
                return
            whole = count // step * step
            rest = count - whole
            if rest % lanes and whole and unroll == 1 and self._is_heavy(s):
                whole, rest = 0, count
            if whole:
                self._rounds(s, start, start + whole, unroll, partial, False)
            if rest and rest % lanes == 0:
                self._rounds(s, start + whole, stop, 1, partial, False)
            elif rest:
                if rest > lanes and self._masks_are_dear(s):
                    self._rounds(s, start + whole, stop - rest % lanes, 1, partial, False)
                    whole = count - rest % lanes
                self._rounds(s, start + whole, stop, 1, partial, True)
            return
        aligned = isinstance(s.extent, int) and s.extent % step == 0
        if aligned:
            self._rounds(s, start, stop, unroll, partial, False)
            return
        if unroll == 1 and self._is_heavy(s):
            self._rounds(s, start, stop, 1, partial, True)
            return
        first, last = b.value(start, "i64"), b.value(stop, "i64")
        length = last if start == 0 else b.sub(last, first)
        if step & (step - 1) == 0:
            whole_length = b.and_(length, -step)
        else:
            whole_length = b.mul(b.udiv(length, step), step)
        middle = whole_length if start == 0 else b.add(first, whole_length)
        self._rounds(s, first, middle, unroll, partial, False)
        self._rounds(s, middle, last, 1, partial, True)

    def _is_heavy(self, s: For) -> bool:
        """Whether a body is written once, masked in all rounds."""
        if self.b.module.has("avx512f"):
            return cost(s.body) > _HEAVY
        return cost(s.body, rounds=False) > _HEAVY_MASKED

    def _masks_are_dear(self, s: For) -> bool:
        """Whether stores under a mask that is computed are written lane by lane."""
        if self.b.module.has("avx512bw"):
            return False
        return any([x.buffer.dtype.itemsize < 4 for x in s.body if type(x) is Store])

    def _to_line(
        self, s: For, start: int, count: int
    ) -> tuple[Value, frozenset[tuple[Buffer, Index]]] | None:
        """Where the streamed results of a loop begin a line, as far as the loops around say: the
        rounds before that, and the places of these results. None where every round begins one or
        it does not pay. 10,000 rows of 1,000 float32 (62.5 lines): layer norm takes 2.7 ms so,
        3.9 with ordinary stores, softmax 4.0 and 5.4."""
        if not self.streamed or start or count < _LONG * self.lanes or cost(s.body) > _HEAVY:
            return None
        if not self._may_begin_anywhere(s):
            return None
        places = frozenset(
            (x.buffer, self.linear(x.buffer, x.index, None))
            for x in s.body
            if isinstance(x, Store) and x.buffer in self.streamed and x.part is None
        )
        if len({(lin, buffer.dtype) for buffer, lin in places}) != 1:
            return None
        (buffer, lin), *_ = places
        if buffer.dtype.itemsize * self.lanes != host.CACHE_LINE:
            return None
        if self.lane_stride(lin) != 1 or self.fills_lines(buffer, lin):
            return None
        self.vars[s.var] = (None, 0)
        self.scopes.push()  # what holds of the first round alone is forgotten
        before = self.b.and_(self.b.sub(0, self.index_scalar(lin)), self.lanes - 1)
        self.scopes.pop()
        return before, places

    def _rounds_by_line(
        self, s: For, before: Value, places: frozenset, stop: int,
        partial: list[dict[Local, Value]],
    ) -> None:  # fmt: skip
        """All rounds of a loop whose results at `places` begin a line after `before` rounds."""
        b, lanes = self.b, self.lanes
        last = b.const(stop, "i64")
        middle = b.add(before, b.and_(b.sub(last, before), -lanes))
        # The ends stay in lines of their own: one that reached back into a line just streamed would
        # fetch it again (softmax of 10,000 rows of 1,000 took 1.35 times as long).
        self._rounds(s, 0, before, 1, partial, True, False)
        self.lined = places
        self._rounds(s, before, middle, 1, partial, False)
        self.lined = frozenset()
        self._rounds(s, middle, last, 1, partial, True, False)

    def _rounds(
        self, s: For, start: Value | int, stop: Value | int, unroll: int,
        partial: list[dict[Local, Value]], masked: bool, may_move: bool = True,
    ) -> None:  # fmt: skip
        """Steps of lanes × unroll from start to stop, the lanes past stop masked off; the last one
        begins before where it `may_move` and that is right."""
        b, lanes = self.b, self.lanes
        known = isinstance(start, int) and isinstance(stop, int)
        back = masked and may_move and self._may_move_back(s, stop)
        if known and stop - start <= lanes * unroll:  # type: ignore[operator]
            assert isinstance(start, int) and isinstance(stop, int)
            first = stop - lanes if back else start
            if masked:
                self.mask = b.lanes([start <= first + k < stop for k in range(lanes)], "i1")
                self.active, self.moved_back = stop - start, back
            for u in range(unroll):
                self._one(s, None, first + u * lanes, partial[u])
            self.mask, self.moved_back = None, False
            return
        keys = [(u, x) for u in range(unroll) for x in partial[u]]
        values = [partial[u][x] for u, x in keys]
        with b.loop(start, stop, lanes * unroll, values) as loop:
            for (u, x), value in zip(keys, loop.values, strict=True):
                partial[u][x] = value
            index = loop.index
            if back:
                index = self._move_back(index, stop)
            elif masked:
                self.mask = self._tail_mask(index, stop)
            self.scopes.push()
            if unroll > 1:
                self.vars[s.var] = (index, 0)
                self.hoist_addresses(s.body)
            for u in range(unroll):
                self._one(s, index, u * lanes, partial[u])
            self.scopes.pop()
            self.mask, self.moved_back = None, False
            loop.yield_(*[partial[u][x] for u, x in keys])
        for (u, x), value in zip(keys, loop.results, strict=True):
            partial[u][x] = value

    def _may_move_back(self, s: For, stop: Value | int) -> bool:
        """Whether the last round may begin `lanes` before the end, so that its loads are whole.

        Lanes that an earlier round computed are masked off where something is stored. On Zen 5 a
        load under a mask that is computed waits for the stores before it: bodies of 200 operations
        took 1.6 times as long. A buffer that is read and written stays as it is: a load across two
        stores waits for both (a variance over columns took 1.7 times as long).
        """
        least = stop if isinstance(stop, int) else s.extent
        if self.predicated or not isinstance(least, int) or least < self.lanes:
            return False
        written = stored(s.body)
        for x in walk(s.body):
            if type(x) not in (Define, Assign, Store, Update):
                return False
            if type(x) is Store and (x.part is not None or not self._in_order(x)):
                return False
        loads = [e for e in exprs(s.body) if type(e) is Load]
        if not all([e.part is None and e.buffer not in written and self._in_order(e)
                    for e in loads]):  # fmt: skip
            return False
        return self._may_begin_anywhere(s)

    def _may_begin_anywhere(self, s: For) -> bool:
        """Whether a round may begin where the loop's variable is no multiple of the lanes: no index
        has a quotient or a remainder that is even within such blocks only."""
        places = [self.linear(x.buffer, x.index, None) for x in walk(s.body) if type(x) is Store]
        for e in exprs(s.body):
            places += [self.linear(e.buffer, e.index, None)] if type(e) is Load else e.indices_()
        return all([stride(i, s.var) is not None or not self._even(i) for i in places])

    def _even(self, i: Index) -> bool:
        """Whether what lanes add to an index is known where rounds begin at multiples of them."""
        return self.lane_stride(i) is not None or self.known_lanes(i) is not None

    def _in_order(self, e: Load | Store) -> bool:
        return self.lane_stride(self.linear(e.buffer, e.index, None)) in (0, 1)

    def _move_back(self, index: Value, stop: Value | int) -> Value:
        """Where a round begins that stays within the loop; sets the mask of what is its own."""
        b, lanes = self.b, self.lanes
        first = b.min(index, b.sub(b.value(stop, "i64"), lanes))
        if not isinstance(stop, int):  # it may be less than the lanes
            first = b.max(first, 0)
        done = b.splat(b.trunc(b.sub(index, first), "i32"), lanes)
        self.mask = b.icmp("sge", b.iota("i32", lanes), done)
        if not isinstance(stop, int):
            left = b.trunc(b.min(b.sub(stop, first), lanes), "i32")
            inside = b.icmp("slt", b.iota("i32", lanes), b.splat(left, lanes))
            self.mask = b.and_(self.mask, inside)
        self.moved_back = True
        return first

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
            self.set_local(r.local, ev.apply(b, r.op, dtype, outer[r.local], value))
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
        better = b.and_(found, beats(b, r, best, outer[r.local]))
        self.set_local(r.position, b.select(better, first, old))
        self.set_local(r.local, b.select(better, best, outer[r.local]))

    # -- tile loops ----------------------------------------------------------------------------

    def _tile(self, s: For) -> None:
        """A loop whose strided accesses are moved in blocks, transposed in registers."""
        assert isinstance(s.extent, int)
        carried = self.carried(s.body)
        self.scopes.kill([s.var, *carried, *stored(s.body)])
        self.hoist(s.body, {s.var, *carried, *stored(s.body), *defined(s.body)})
        self.vars[s.var] = (None, 0)
        self.scopes.push()
        if not self.predicated:
            self._tile_loads(s)
            self._tile_stores(s)
        if s.unroll > 1:
            rounds: list[Sequence[Stmt]] = [s.body] * s.extent
            if apart(s, self.vec) and not self._reads_tiles(s):
                rounds = [round_of(s, k) for k in range(s.extent)]
                self.held.append(rounds)
            for k, body in enumerate(rounds):
                self.vars[s.var] = (None, k)
                self.block(body)
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
        if stride(lin, s.var) != 1 or self.lane_stride(lin) in (None, 0, 1, -1):
            return False
        read = [a.expr for a in atoms(lin) if type(a) is Dyn]
        if not read:
            return True
        # What is computed in each round may be another row for each column.
        inside = {s.var, *self.carried(s.body), *stored(s.body), *defined(s.body)}
        return all([inside.isdisjoint(self.deps.expr(e)) for e in read])

    def _reads_tiles(self, s: For) -> bool:
        """Whether the body reads blocks that `_tile_loads` turned, and that are no columns."""
        for e in exprs(s.body):
            if isinstance(e, Load) and e.part is None:
                lin = self.linear(e.buffer, e.index, None)
                if self._crosses(s, lin):
                    first = Index(tuple(t for t in lin.terms if t[0] is not s.var), lin.const)
                    step = self.lane_stride(lin)
                    if step is None or not self._lies_in_rows(e.buffer, first, step, False):
                        return True
        return False

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
                far = self.ahead.get((e.buffer, e.index), 0)
                tile.fill(self.b, self._read_tile(e.buffer, lin, tile, far))
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

    def _read_tile(self, buffer: Buffer, lin: Index, tile: Tile, far: int) -> list[Value]:
        b, lanes = self.b, self.lanes
        if self._records(lin, tile):
            vectors = []
            for k in range(tile.width):
                address = self.pointer(buffer, lin + k * lanes)
                mask = self.record_mask(tile.width, k)
                if mask is None:
                    vectors.append(b.load(address, tile.type))
                else:
                    vectors.append(b.masked_load(address, mask, b.const(0, tile.type)))
            return deinterleave(b, vectors, lanes)
        if far and self.mask is None:
            for r in range(lanes):
                # Into the second-level cache: rows apart may share few sets of the first.
                b.prefetch(b.gep(self._row(buffer, lin, r), far), locality=2)
        rows = [self._read_row(buffer, lin, r, tile.width, tile.type) for r in range(lanes)]
        return transpose(b, rows, lanes)[: tile.width]

    def _records(self, lin: Index, tile: Tile) -> bool:
        """Whether the lanes' rows are short and follow each other without gaps."""
        most = _FIELDS + 2 if link.vector_bytes() >= 64 and tile.width % 4 == 0 else _FIELDS
        return self.lane_stride(lin) == tile.width <= most

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
        if self._records(lin, tile):
            for k, x in enumerate(interleave(b, tile.all(b), lanes)):
                mask = self.record_mask(tile.width, k)
                self._store_vector(x, self.pointer(buffer, lin + k * lanes), mask)
            return
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
            nontemporal = False
            if mask is None:
                step = self.lane_stride(lin)
                assert step is not None
                nontemporal = self.fills_lines(buffer, lin + r * step, tile.var)
            self._store_vector(rows[r], self._row(buffer, lin, r), mask, nontemporal)


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
