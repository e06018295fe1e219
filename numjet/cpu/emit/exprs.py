"""Writing expressions and memory accesses of the loop IR as LLVM IR.

`ExprWriter` turns expressions into values of one function under construction, each once a block
(`loops.scope`), scalars where nothing varies over the vector loop's lanes, vectors elsewhere. An
access becomes, by its stride over the lanes, a vector load, a reversed one, a pair of interleaved
parts, a column of rows that are read whole, a scalar, or a gather; its address is a chain of
partial sums, outer loops first, so that inner loops add only what they change. `emit` derives from
it and adds statements.
What would break it: a vector loop whose variable does not step in multiples of its lanes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from numjet.base.errors import InternalError
from numjet.cpu import host
from numjet.cpu.builder.builder import TYPES, Builder, Value, vector
from numjet.cpu.emit import known_lanes, values as ev
from numjet.cpu.emit.transposed_blocks import Tile, picked
from numjet.cpu.link import link
from numjet.cpu.loops.cost import column_of_rows, in_short_rows
from numjet.cpu.loops.index import (
    Atom,
    Clamp,
    Div,
    Dyn,
    Index,
    LoopVar,
    Mod,
    atoms,
    growth,
    lanes_of,
    linear_address,
    rewrite,
    stride,
)
from numjet.cpu.loops.ir import (
    COMPARISONS,
    COMPLEX_PARTS,
    Buffer,
    Cast,
    Const,
    Expr,
    IndexValue,
    Load,
    Local,
    Op,
    ReadLocal,
    Select,
    Skew,
)
from numjet.cpu.loops.positions import question
from numjet.cpu.loops.scope import Dependence, Dependences, Scopes

_COMPARED = {name: getattr(operator, name) for name in COMPARISONS}
_I32 = np.dtype(np.int32)


class ExprWriter:
    """Expressions, indices and accesses of one LLVM function."""

    def __init__(self, b: Builder, pointers: dict[Buffer, Value], deps: Dependences, check: bool):
        self.b, self.pointers, self.deps, self.check = b, pointers, deps, check
        self.scopes = Scopes()
        self.held: list[Any] = []  # statements made here: what is known is found by their `id`
        # A loop variable's value is base + offset; at lane 0 for the vector loop's.
        self.vars: dict[LoopVar, tuple[Value | None, int]] = {}
        self.locals: dict[Local, Value] = {}
        self.vec: LoopVar | None = None
        self.lanes = 0
        self.mask: Value | None = None  # active lanes
        self.active: Value | int = 0  # how many lanes the mask of a tail leaves on
        self.moved_back = False  # all lanes are inside, and the mask says which are not done yet
        self.predicated = False  # the mask excludes more than the lanes past the end
        self.varying: set[Dependence] = set()
        self.sinks: dict[tuple[Buffer, Index], Tile] = {}  # stores that wait for their tile
        # Loads, by place, that ask for what lies so many bytes further on.
        self.ahead: dict[tuple[Buffer, tuple[Index, ...]], int] = {}
        self.rows_ahead: dict[LoopVar, list[tuple]] = {}
        self.streamed: frozenset[Buffer] = frozenset()  # results of non-temporal stores
        self.fence = False  # there were such stores
        # The places of vectors that begin lines in the rounds being written, whatever rows they
        # are in (see `VectorWriter._to_line`).
        self.lined: frozenset[tuple[Buffer, Index]] = frozenset()
        self._linear: dict[tuple, Index] = {}

    # -- expressions ------------------------------------------------------------------------

    def eval(self, e: Expr) -> Value:
        """The value of `e`: a vector if it varies over the lanes, else a scalar."""
        found = self.scopes.get(id(e))
        if found is not None:
            return found
        pending = [e]
        while pending:  # explicit: fused expressions are deeper than Python's stack
            top = pending[-1]
            if self.scopes.get(id(top)) is not None:
                pending.pop()
                continue
            missing = [a for a in top.args_() if self.scopes.get(id(a)) is None]
            if missing and not self._place(top):
                pending += missing
                continue
            pending.pop()
            self.scopes.put(id(top), self._compute(top), self.deps.expr(top))
        return self.scopes.get(id(e))

    def _compute(self, e: Expr) -> Value:
        b = self.b
        if isinstance(e, Op):
            answers = self._answers(e)
            if answers is not None:
                return b.lanes(answers, "i1")
            values = self.alike([self.scopes.get(id(a)) for a in e.args])
            if e.name == "div" and type(e.args[1]) is Const and _is_integer(e.args[0]):
                found = ev.quotient(b, values[0], e.args[1].value, e.dtype)
                if found is not None:
                    return found
            return ev.apply(b, e.name, e.args[0].dtype, *values)
        if isinstance(e, Const):
            return ev.constant(b, e.value, e.dtype)
        if isinstance(e, Load):
            return self.load(e.buffer, e.index, e.part)
        if isinstance(e, Cast):
            place = self._place(e)
            if place is not None:
                return ev.convert(b, self.index_vector(place, "i32"), _I32, e.dtype)
            x = self.scopes.get(id(e.arg))
            change = ev.bit_convert if e.bits else ev.convert
            return change(b, x, e.arg.dtype, e.dtype)
        if isinstance(e, Select):
            c, x, y = (self.scopes.get(id(a)) for a in e.args_())
            if TYPES[c.type].lanes:
                x, y = self.widen(x), self.widen(y)
            else:
                x, y = self.alike([x, y])
            return b.select(c, x, y)
        if isinstance(e, ReadLocal):
            if e.local not in self.locals:
                raise InternalError(f"loop IR: local {e.local} is read before its definition")
            return self.locals[e.local]
        if isinstance(e, Skew):
            before = b.and_(b.ptrtoint(self.pointers[e.buffer], "i64"), host.CACHE_LINE - 1)
            return b.udiv(before, e.buffer.dtype.itemsize)
        assert isinstance(e, IndexValue)
        return self.index_value(e.index, ev.register_type(e.dtype))

    def _answers(self, e: Expr) -> list[bool] | None:
        """What a comparison of an index with a constant says in each lane, where that is known."""
        asked, vec = question(e), self.vec
        if asked is None or vec is None or not self.varies(asked.place):
            return None
        place, added = asked.place, self.known_lanes(asked.place)
        if added is None or (self.vars[vec][0] and growth(place, vec, self.lanes)):
            return None
        first = self._at_lane_0(place)
        if first.terms:
            return None
        return [_COMPARED[asked.name](first.const + k, asked.bound) for k in added]

    def _place(self, e: Expr) -> Index | None:
        """The index that `e` makes a float, if it differs by lane and has 32 bits: 64 have no
        instruction before AVX-512."""
        if type(e) is not Cast or type(e.arg) is not IndexValue or e.dtype not in ev.FLOATS:
            return None
        i = e.arg.index
        return i if self.varies(i) and fits32(i) else None

    def widen(self, x: Value) -> Value:
        """`x` as a vector over the lanes."""
        if TYPES[x.type].lanes or not self.lanes:
            return x
        if x.ref[0] != "%":
            return Value(f"splat ({x.type} {x.ref})", vector(x.type, self.lanes))
        key = ("splat", x.ref)
        found = self.scopes.get(key)
        if found is None:
            found = self.b.splat(x, self.lanes)
            self.scopes.put(key, found)
        return found

    def alike(self, values: list[Value]) -> list[Value]:
        """All as vectors if one is."""
        lanes = [TYPES[v.type].lanes for v in values]
        if any(lanes) and not all(lanes):
            return [self.widen(v) for v in values]
        return values

    def varies(self, i: Index) -> bool:
        """Whether an index takes different values in different lanes."""
        return self.vec is not None and not self.varying.isdisjoint(self.deps.index(i))

    # -- indices ----------------------------------------------------------------------------

    def lane_stride(self, i: Index) -> int | None:
        """How much `i` grows from lane to lane; None when that is not constant."""
        if self.vec is None or not self.varies(i):
            return 0
        for atom in atoms(i):
            if type(atom) is Dyn and not self.varying.isdisjoint(self.deps.expr(atom.expr)):
                return None
        step = stride(i, self.vec, self.lanes)
        if step is None:
            places = self.known_lanes(i)
            if places is not None and self.lanes > 1:
                even = all([p == places[1] * k for k, p in enumerate(places)])
                return places[1] if even else None
        return step

    def index_scalar(self, i: Index) -> Value:
        """The value of an index at lane 0, as i64."""
        if not i.terms:
            return self.b.const(i.const, "i64")
        key = ("index", i)
        found = self.scopes.get(key)
        if found is None:
            total, const = None, i.const
            for atom, k in i.terms:
                value, offset = self._atom_scalar(atom)
                const += offset * k
                if value is None:
                    continue
                part = value if k == 1 else self.b.mul(value, k)
                total = part if total is None else self.b.add(total, part)
            if total is None:
                found = self.b.const(const, "i64")
            else:
                found = self.b.add(total, const) if const else total
            self.scopes.put(key, found, self.deps.index(i))
        return found

    def _atom_scalar(self, atom: Atom) -> tuple[Value | None, int]:
        if type(atom) is LoopVar:
            found = self.vars.get(atom)
            if found is None:
                raise InternalError(f"loop IR: variable {atom} is used outside its loop")
            return found
        if type(atom) is Dyn:
            value = self.eval(atom.expr)
            if TYPES[value.type].lanes:
                value = self.b.extract(value, 0)
            return self._widen_int(value, atom.expr.dtype, "i64"), 0
        known = self._known(atom)
        if known is not None:
            return None, known
        inputs = [self.index_scalar(p) for p in atom.parts()]
        return self._form(atom, inputs), 0

    def _known(self, atom: Atom) -> int | None:
        """The value of a quotient, a remainder or a clamp where its loops are written round by
        round, so that their variables are constants."""
        if type(atom) is LoopVar or type(atom) is Dyn:
            return None
        for a in atom.inside:
            if type(a) is Dyn or (type(a) is LoopVar and self.vars.get(a, (a, 0))[0] is not None):
                return None
        leaf = lambda a: Index.of(self.vars[a][1]) if type(a) is LoopVar else None  # noqa: E731
        return rewrite(Index.of(atom), leaf).const

    def _widen_int(self, x: Value, dtype: np.dtype, element: str) -> Value:
        if TYPES[x.type].bits == TYPES[element].bits:
            return x
        if TYPES[x.type].bits > TYPES[element].bits:
            return self.b.trunc(x, element)
        return (self.b.sext if dtype.kind == "i" else self.b.zext)(x, element)

    def _form(self, atom: Atom, inputs: list[Value]) -> Value:
        b, x = self.b, inputs[0]
        if type(atom) is Clamp:
            arg = atom.arg
            if arg.lo < atom.low:
                x = b.max(x, atom.low)
            return b.min(x, atom.high) if arg.hi > atom.high else x
        if type(atom) is Div:
            return self._floor_div(x, atom.divisor, atom.arg.lo >= 0)
        if type(atom) is Mod:
            c = atom.divisor
            if c & (c - 1) == 0:
                return b.and_(x, c - 1)
            if atom.arg.lo >= 0:
                return b.urem(x, c)
            return b.sub(x, b.mul(self._floor_div(x, c, False), c))
        return b.mul(x, inputs[1])

    def _floor_div(self, x: Value, c: int, positive: bool) -> Value:
        b = self.b
        if c & (c - 1) == 0:
            return b.ashr(x, c.bit_length() - 1)
        if positive:
            return b.udiv(x, c)
        # floor(x/c) = ~(~x / c) for negative x.
        sign = b.ashr(x, TYPES[x.type].bits - 1)
        return b.xor(b.div(b.xor(x, sign), c), sign)

    def index_vector(self, i: Index, element: str | None = None) -> Value:
        """The values of an index in the lanes, i32 if that holds them (or as asked)."""
        b = self.b
        if element is None:
            element = "i32" if fits32(i) else "i64"
        key = ("indices", i, element)
        found = self.scopes.get(key)
        if found is not None:
            return found
        step = self.lane_stride(i)
        if step is not None:
            found = self.widen(self._as(self.index_scalar(i), element))
            if step:
                offsets = b.lanes([step * k for k in range(self.lanes)], element)
                found = b.add(found, offsets)
        elif (added := self.known_lanes(i)) is not None:
            first = self.widen(self._as(self.index_scalar(i), element))
            found = b.add(first, b.lanes(added, element))
        else:
            found = self.widen(b.const(i.const, element)) if i.const else None
            for atom, k in i.terms:
                part = self._atom_vector(atom, element)
                part = part if k == 1 else b.mul(part, k)
                found = part if found is None else b.add(found, part)
        self.scopes.put(key, found, self.deps.index(i))
        return found

    def _as(self, first: Value, element: str) -> Value:
        """An index, which is an i64, as an `element`."""
        if element == "i64":
            return first
        known = first.ref[0] != "%"
        return self.b.const(int(first.ref), element) if known else self.b.trunc(first, element)

    def _atom_vector(self, atom: Atom, element: str) -> Value:
        if type(atom) is LoopVar:
            return self.index_vector(Index(((atom, 1),), 0), element)
        if type(atom) is Dyn:
            value = self.widen(self.eval(atom.expr))
            return self._widen_int(value, atom.expr.dtype, element)
        # The parts may need more bits than the form they make.
        inner = element if all(fits32(p) for p in atom.parts()) else "i64"
        inputs = [self.index_vector(p, inner) for p in atom.parts()]
        result = self._form(atom, inputs)
        return result if inner == element else self.b.trunc(result, element)

    def index_value(self, i: Index, element: str) -> Value:
        """An index as an integer value of LLVM type `element`."""
        if self.varies(i):
            wide = "i64" if element == "i64" or not fits32(i) else "i32"
            x = self.index_vector(i, wide)
        else:
            x = self.index_scalar(i)
        bits, want = TYPES[x.type].bits, TYPES[element].bits
        if bits == want:
            return x
        return self.b.trunc(x, element) if bits > want else self.b.sext(x, element)

    # -- addresses --------------------------------------------------------------------------

    def linear(self, buffer: Buffer, index: tuple[Index, ...], part: int | None) -> Index:
        """The offset of an element (of a part, when complex) from the buffer's start."""
        key = (id(buffer), index, part)
        found = self._linear.get(key)
        if found is None:
            found = linear_address(index, buffer.shape)
            if part is not None:
                found = found * 2 + part
            self._linear[key] = found
        return found

    def pointer(
        self, buffer: Buffer, lin: Index, only: set[Dependence] | None = None, plain: bool = False
    ) -> Value:
        """The address of an element at lane 0. With `only` given, compute ahead the part that
        depends on none of these (loop-invariant code motion) and return that; `plain` leaves
        out what is not affine."""
        b = self.b
        base = self.pointers[buffer]
        element = ev.memory_type(COMPLEX_PARTS.get(buffer.dtype, buffer.dtype))
        stable: list[tuple[Atom, int]] = []
        volatile: list[tuple[Atom, int]] = []
        const = lin.const
        for term in lin.terms:
            atom = term[0]
            known = self._known(atom)
            if known is not None:
                const += term[1] * known
            elif type(atom) is LoopVar:
                if only is None or atom not in only:
                    stable.append(term)
            elif not plain:
                deps, fixed = self.deps.atom(atom)
                if only is None or only.isdisjoint(deps):
                    (stable if fixed else volatile).append(term)
        if only is not None and not stable:
            return base
        key = ("chain", id(buffer), lin.terms)
        done, address = self.scopes.get(key) or ((), base)
        rest = [t for t in stable if t not in done] if done else stable
        if rest:
            if only is not None and self._is_free(rest):
                return address
            address, offset = self._advance(address, rest, element)
            assert offset == 0
            self.scopes.put(key, (tuple(done) + tuple(rest), address))
        if only is not None:
            return address
        if volatile:
            address, offset = self._advance(address, volatile, element)
            const += offset
        for atom, k in lin.terms:
            if type(atom) is LoopVar:
                const += k * self.vars[atom][1]
        if const:
            address = b.gep(address, const * (max(TYPES[element].bits, 8) // 8))
        return address

    def _is_free(self, terms: list) -> bool:
        return all([type(a) is LoopVar and self.vars[a][0] is None for a, _ in terms])

    def _advance(self, address: Value, terms: list, element: str) -> tuple[Value, int]:
        """`address` moved by the terms; offsets of unrolled loop variables are left out."""
        b, total, const = self.b, None, 0
        for atom, k in terms:
            value, offset = self._atom_scalar(atom)
            if type(atom) is not LoopVar:
                const += offset * k
            if value is None:
                continue
            part = value if k == 1 else b.mul(value, k)
            total = part if total is None else b.add(total, part)
        return (address if total is None else b.gep(address, total, element)), const

    # -- memory -----------------------------------------------------------------------------

    def load(self, buffer: Buffer, index: tuple[Index, ...], part: int | None) -> Value:
        """The element of `buffer` at `index`, in register form."""
        b = self.b
        lin = self.linear(buffer, index, part)
        dtype = COMPLEX_PARTS.get(buffer.dtype, buffer.dtype)
        element = ev.memory_type(dtype)
        step = self.lane_stride(lin)
        self.check_bounds(buffer, index)
        if step == 0:
            raw = b.load(self.pointer(buffer, lin), element)
        elif step == 2 and part is not None:
            raw = self._load_part(buffer, lin, part, element)
        elif step == 1:
            address = self.pointer(buffer, lin)
            if (buffer, index) in self.ahead and self.mask is None:
                far = self.ahead[buffer, index]
                b.prefetch(b.gep(address, far))
            raw = self._load_vector(address, vector(element, self.lanes))
        elif step == -1:
            first = self.pointer(buffer, lin - (self.lanes - 1))
            raw = self._reverse(self._load_vector(first, vector(element, self.lanes), True))
        else:
            tile = None if self.predicated else self.scopes.get(("tile", id(buffer), lin))
            places = self.known_lanes(lin) if step is None and self.mask is None else None
            if tile:
                raw = tile.get(b, self.vars)
            elif places is not None and known_lanes.near(places, self.lanes):
                raw = self._load_near(buffer, lin, places, element)
            elif step and self._lies_in_rows(buffer, lin, step, part is not None):
                raw = self._load_column(buffer, lin, step, element)
            elif step and in_short_rows(abs(step), link.vector_bytes()) and not self.predicated:
                raw = self._load_apart(buffer, lin, step, element)
            else:
                raw = self._gather(buffer, lin, element)
        return ev.from_memory(b, raw, dtype)

    def known_lanes(self, i: Index) -> list[int] | None:
        """How much an index is more than at lane 0, in each lane, where that is known: the same in
        all rounds of the loop."""
        if self.vec is None:
            return None
        base, offset = self.vars.get(self.vec, (self.vec, 0))
        if base is not None and growth(i, self.vec, self.lanes) is None:
            return None
        if any([type(a) is Dyn and self.varies(Index(((a, 1),), 0)) for a in atoms(i)]):
            return None
        return lanes_of(i, self.vec, offset, self.lanes)

    def _at_lane_0(self, i: Index) -> Index:
        """An index at lane 0 of the first round."""
        assert self.vec is not None
        at = Index.of(self.vars[self.vec][1])
        return rewrite(i, lambda atom: at if atom is self.vec else None)

    def _load_near(self, buffer: Buffer, lin: Index, places: list[int], element: str) -> Value:
        """Elements whose places, counted from lane 0, are known."""
        deps = self.deps.index(lin) | ({buffer} & self.deps.written)

        def read(first: int, count: int) -> Value:
            key = ("piece", id(buffer), lin + first, count)
            found = self.scopes.get(key)
            if found is None:
                type = vector(element, count) if count > 1 else element
                found = self.b.load(self.pointer(buffer, lin + first), type)
                self.scopes.put(key, found, deps)
            return found

        return known_lanes.pick(self.b, places, read)

    def _load_vector(self, address: Value, type: str, reverse: bool = False) -> Value:
        if self.mask is None or self._all_inside():
            return self.b.load(address, type)
        mask = self._reverse(self.mask) if reverse else self.mask
        return self.b.masked_load(address, mask, self.b.const(0, type))

    def _reverse(self, x: Value) -> Value:
        return self.b.shuffle(x, None, range(self.lanes - 1, -1, -1))

    def _load_part(self, buffer: Buffer, lin: Index, part: int, element: str) -> Value:
        b, key = self.b, ("pairs", id(buffer), lin - part)
        both = self.scopes.get(key)
        if both is None:
            type = vector(element, 2 * self.lanes)
            address = self.pointer(buffer, lin - part)
            if self.mask is None:
                both = b.load(address, type)
            else:
                both = b.masked_load(address, self._twice(self.mask), b.const(0, type))
            deps = self.deps.index(lin) | ({buffer} & self.deps.written)
            self.scopes.put(key, both, deps)
        return b.shuffle(both, None, range(part, 2 * self.lanes, 2))

    def _twice(self, mask: Value) -> Value:
        return self.b.shuffle(mask, None, [k // 2 for k in range(2 * self.lanes)])

    def _lies_in_rows(self, buffer: Buffer, lin: Index, width: int, parts: bool) -> bool:
        """Whether the lanes' elements are a column of short rows, of `width`, in `buffer`."""
        if self.predicated:
            return False
        size = math.prod(buffer.shape) * (2 if parts else 1)
        return in_short_rows(width, link.vector_bytes()) and column_of_rows(lin, width, size)

    def _all_inside(self) -> bool:
        """Whether all lanes may be read, those that the mask excludes too."""
        return self.moved_back and not self.predicated

    def _load_column(self, buffer: Buffer, lin: Index, step: int, element: str) -> Value:
        """One column of as many rows of `step` elements as there are lanes. They are read whole
        and kept for their other columns."""
        column, lanes, type = lin.const % step, self.lanes, vector(element, self.lanes)
        first = lin - column
        deps = self.deps.index(lin) | ({buffer} & self.deps.written)

        def kept(key: tuple, make: Callable) -> Any:
            key = ("rows", id(buffer), first, step, *key)
            found = self.scopes.get(key)
            if found is None:
                found = make()
                self.scopes.put(key, found, deps)
            return found

        def whole() -> list[Value]:
            b, at, size = self.b, self.pointer(buffer, first), max(TYPES[element].bits, 8) // 8
            places = [b.gep(at, k * size * lanes) if k else at for k in range(step)]
            masks = [None if self._all_inside() else self.record_mask(step, k) for k in range(step)]
            return [
                b.load(x, type) if m is None else b.masked_load(x, m, b.const(0, type))
                for x, m in zip(places, masks, strict=True)
            ]

        rows, half = kept((), whole), 1
        while len(rows) % 2 == 0:
            places = range(column // half % 2, 2 * lanes, 2)
            half *= 2
            rows = kept((half, column % half), partial(picked, self.b, rows, places))
        return kept((column,), lambda: self._column(rows, column // half))

    def _load_apart(self, buffer: Buffer, lin: Index, step: int, element: str) -> Value:
        """Elements `step` apart: all from the first to the last are read, and nothing outside."""
        b, lanes, type = self.b, self.lanes, vector(element, self.lanes)
        width, back = abs(step), step < 0
        at, size = self.pointer(buffer, lin + min(step, 0) * (lanes - 1)), TYPES[element].bits // 8
        final = width * (lanes - 1) + 1 - lanes
        starts = [*[s for s in range(0, (width - 1) * lanes, lanes) if s < final], final]
        found = Value("poison", type)
        for k, start in enumerate(starts):
            place = b.gep(at, start * max(size, 1))
            if self.mask is None or self._all_inside():
                row = b.load(place, type)
            else:
                mask = self._mask_apart(width, start, back)
                row = b.masked_load(place, mask, b.const(0, type))
            places = [width * lane - start for lane in range(lanes)]
            if k == 0:
                found = row
            else:
                found = b.shuffle(found, row, [
                    lanes + p if 0 <= p < lanes else -1 if p >= lanes
                    else width * lane if k == 1 else lane
                    for lane, p in enumerate(places)
                ])  # fmt: skip
        return self._reverse(found) if back else found

    def _mask_apart(self, width: int, start: int, back: bool) -> Value:
        """Which elements from `start` on are not outside those of active lanes, `width` apart."""
        if not back:
            return self._first_lanes(self.active, width, start + width - 1)
        active = self.active
        off = self.lanes - active if isinstance(active, int) else self.b.sub(self.lanes, active)
        return self._first_lanes(off, width, start, False)

    def record_mask(self, width: int, k: int) -> Value | None:
        """Which elements of the k-th vector belong to active lanes; None where all do."""
        return None if self.mask is None else self._first_lanes(self.active, width, k * self.lanes)

    def _first_lanes(self, count: Value | int, width: int, before: int, are: bool = True) -> Value:
        """A mask of the first count·width - before lanes; of the others if they `are` not meant."""
        b, lanes = self.b, self.lanes
        if isinstance(count, int):
            return b.lanes([(before + q < count * width) == are for q in range(lanes)], "i1")
        left = b.trunc(b.sub(b.mul(count, width), before), "i32")
        return b.icmp("slt" if are else "sge", b.iota("i32", lanes), b.splat(left, lanes))

    def _column(self, rows: list[Value], column: int) -> Value:
        """One column of rows, each in a vector."""
        shuffle, lanes, found = self.b.shuffle, self.lanes, rows[0]
        places = [divmod(column + len(rows) * k, lanes) for k in range(lanes)]
        for k, row in enumerate(rows[1:], 1):
            found = shuffle(found, row, [
                lanes + at if of == k else -1 if of > k else at if k == 1 else lane
                for lane, (of, at) in enumerate(places)
            ])  # fmt: skip
        return found

    def _offsets(self, buffer: Buffer, lin: Index) -> tuple[Value, Value]:
        """(a scalar address, the lanes' element offsets from it)."""
        same = Index(tuple(t for t in lin.terms if not self.varies(Index((t,), 0))), lin.const)
        return self.pointer(buffer, same), self.index_vector(lin - same)

    def _gather(self, buffer: Buffer, lin: Index, element: str) -> Value:
        b, type = self.b, vector(element, self.lanes)
        base, offsets = self._offsets(buffer, lin)
        mask, count = self.mask, self.lanes
        if mask is not None and self._all_inside():
            mask = None
        elif mask is not None and isinstance(self.active, int) and not self.predicated:
            count = self.active
        bits = TYPES[element].bits
        if link.vector_bytes() >= 64 and (bits >= 32 or bits >= 8 and mask is None):
            return b.gather(b.gep(base, offsets, element), type, mask)
        # No gather instruction: one lane after the other, lanes that are off reading like lane 0,
        # or when that may be off too, the buffer's first element; those that are known are left 0.
        if mask is not None and count == self.lanes:
            safe = b.shuffle(offsets, None, [0] * self.lanes)
            if self.predicated:
                base, zero = self.pointers[buffer], b.const(0, f"<{self.lanes} x i64>")
                offsets = self.index_vector(lin, "i64")
                safe = zero
            offsets = b.select(mask, offsets, safe)
        result = Value("poison", type) if count == self.lanes else b.const(0, type)
        for k in range(count):
            address = b.gep(base, b.extract(offsets, k), element)
            result = b.insert(result, b.load(address, element), k)
        return result

    def store(
        self, buffer: Buffer, index: tuple[Index, ...], value: Value, part: int | None
    ) -> None:
        """buffer[index] = value, given in register form."""
        b = self.b
        lin = self.linear(buffer, index, part)
        dtype = COMPLEX_PARTS.get(buffer.dtype, buffer.dtype)
        raw = ev.to_memory(b, value, dtype)
        step = self.lane_stride(lin)
        self.check_bounds(buffer, index)
        if step == 0:
            if TYPES[raw.type].lanes or self.predicated:
                raise InternalError(f"loop IR: all lanes of a vector loop store to one {buffer}")
            b.store(raw, self.pointer(buffer, lin))
        elif step == 1:
            address = self.pointer(buffer, lin)
            self._store_vector(self.widen(raw), address, self.mask, self.fills_lines(buffer, lin))
        elif step == -1:
            mask = None if self.mask is None else self._reverse(self.mask)
            first = self.pointer(buffer, lin - (self.lanes - 1))
            self._store_vector(self._reverse(self.widen(raw)), first, mask)
        elif (buffer, lin) in self.sinks:
            self.sinks[buffer, lin].put(b, self.widen(raw), self.vars)
        else:
            base, offsets = self._offsets(buffer, lin)
            element = ev.memory_type(dtype)
            b.scatter(self.widen(raw), b.gep(base, offsets, element), self.mask)

    def _store_vector(
        self, value: Value, address: Value, mask: Value | None, nontemporal: bool = False
    ) -> None:
        """Write a vector; `nontemporal` where it fills lines of the cache."""
        if mask is not None:
            self.b.masked_store(value, address, mask)
        elif nontemporal:
            self.b.store(value, address, host.CACHE_LINE, nontemporal=True)
            self.fence = True
        else:
            self.b.store(value, address)

    def fills_lines(self, buffer: Buffer, lin: Index, zero: LoopVar | None = None) -> bool:
        """Whether vectors stored at `lin` (where `zero` is 0) are non-temporal: each fills lines.
        A line written in pieces costs more than it saves: random numbers in half lines took
        14.0 ms so, else 12.5."""
        if buffer not in self.streamed:
            return False
        if (buffer, lin) in self.lined:
            return True
        size = COMPLEX_PARTS.get(buffer.dtype, buffer.dtype).itemsize
        line = host.CACHE_LINE
        if self.vec in self.vars and self.vars[self.vec][0] is None:
            lin = self._at_lane_0(lin)
        if self.lanes * size % line or lin.const * size % line:
            return False
        for atom, k in lin.terms:
            unit = self.lanes if atom is self.vec else 1
            if atom is not zero and k * size * unit % line:
                return False
        return True

    def store_pair(self, buffer: Buffer, index: tuple[Index, ...], re: Value, im: Value) -> None:
        """Both parts of a complex element."""
        lin = self.linear(buffer, index, 0)
        if self.lane_stride(lin) != 2:
            self.store(buffer, index, re, 0)
            self.store(buffer, index, im, 1)
            return
        order = [k // 2 + k % 2 * self.lanes for k in range(2 * self.lanes)]
        both = self.b.shuffle(self.widen(re), self.widen(im), order)
        mask = None if self.mask is None else self._twice(self.mask)
        self._store_vector(both, self.pointer(buffer, lin), mask)

    def check_bounds(self, buffer: Buffer, index: Iterable[Index]) -> None:
        """In the checked mode, stop the process where an index leaves its axis."""
        if not self.check:
            return
        b = self.b
        for i, n in zip(index, buffer.shape, strict=True):
            if 0 <= i.lo and i.hi < n:
                continue
            if self.varies(i):
                bad = b.icmp("uge", self.index_vector(i, "i64"), n)
                if self.mask is not None:
                    bad = b.and_(bad, self.mask)
                bad = b.any(bad)
            else:
                bad = b.icmp("uge", self.index_scalar(i), n)
            with b.if_(bad):
                b.module.declare("abort", "void", (), "cold")
                b.call("abort", "void")


def _is_integer(x: Expr) -> bool:
    """Whether a float was made of an integer."""
    return type(x) is Cast and not x.bits and x.arg.dtype.kind in "iub"


def _in_32(number: int) -> bool:
    return -(2**31) <= number < 2**31


def fits32(i: Index) -> bool:
    """Whether the value and every partial sum fit in 32 bits."""
    return (
        _in_32(i.lo)
        and _in_32(i.hi)
        and all(_in_32(k * e) for a, k in i.terms for e in (a.lo, a.hi))
        and all(fits32(p) or type(a) in (Clamp, Div, Mod) for a, _ in i.terms for p in a.parts())
    )
