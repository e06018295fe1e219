"""Choose which loops run lane-wise: annotate For statements with kind "vector".

Needs a verified kernel. Does: drops loops of extent 1, joins nested loops that walk memory as one,
then takes in each nest the loop whose vectorization costs least by a rough count of
instructions (contiguous accesses are cheap, gathers cost a load a lane, a reduction needs its lanes
combined), with partial results enough to hide latency. When an outer loop is taken, its
rows run side by side and its scratch gets a place for each lane. Keeps: results, but for the
order of Updates.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

from numjet.base.record import record, replace
from numjet.cpu.link import link
from numjet.cpu.loops.cost import (
    column_of_rows,
    cost,
    default_lanes,
    in_short_rows,
    op_cost,
    reductions,
)
from numjet.cpu.loops.index import Div, Dyn, Index, LoopVar, Mod, atoms, stride
from numjet.cpu.loops.ir import (
    COMPLEX_PARTS,
    Alloc,
    Buffer,
    Cast,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    ReadLocal,
    Rewriter,
    Stmt,
    Store,
    Update,
    UpdateArg,
    While,
    address,
    assigned,
    blocks,
    exprs,
    stmt_exprs,
    stored,
    substitute,
    walk,
)
from numjet.cpu.loops.legal import independent, own_scratch
from numjet.cpu.loops.positions import MOST_ROUNDS, Known, apart, round_of
from numjet.cpu.loops.scope import Dependences
from numjet.cpu.math import FUNCTIONS

# Combining the lanes of one partial result at the end of a reduction, in instructions.
_COMBINE = 10
# One lane of a gather or scatter.
_GATHERED_LANE = 1.5
# Bytes of what lanes are gathered from up to which rounds are written out: of a million float32,
# one by one, from 40 KB they take 0.42 ms in rounds of four vectors and 0.46 of one, from 4 MB 3.2
# and 1.2 (Zen 5).
_NEAR = 1 << 16
# Entering and leaving a loop.
_LOOP = 4
# Tiles of 16×16 are what 32 vector registers hold.
_TILE_LANES = 16
# So many instructions at most are written out for the columns of a tile.
_UNROLLED = 160
# AVX2 has 16 registers: long bodies load their constants in every round. From this cost on rounds
# are of two vectors, which share the loads, and of which one computes while the other waits; of
# four where a loop is so many rounds long, unless the body or the weights of its functions are more
# still: code grows with them. On Zen 4, so limited, four take of the time of two: i0e and erfinv
# 0.79 and 0.75, exp, log and sin 0.89 to 0.93, gelu 0.85, erf 1.07, arctan and expm1 as long; tanh
# compiles in 1.15 times the processor time, erfinv in 1.35, lgamma would in 1.9 to gain 0.05. The
# direct generator takes as long with two as LLVM with four, which it would not keep in registers.
_FEW_REGISTERS = 32
_PAIRED, _FOURFOLD, _FUNCTIONS, _LONG = 20, 100, 36, 64
# Rows run side by side when this fraction of the cost remains, and the nest costs this much; where
# they are reduced, with functions, whose vectors are full so, when the second one remains.
_SURE, _SURE_OF_FUNCTIONS = 0.6, 0.9
# Of loops that are worth it only since others repeat them, whose lanes end more often (28 rows of 5
# float64, 0.59: 177 us one by one, side by side 224; 128 of 10 bfloat16, 0.5: 138 and 89).
_SURE_WITHIN = 0.52
# What a function of a row's result takes of what one of a vector does: nothing runs beside it, and
# what follows waits (10,000 rows of 24, log_softmax: 317 us one by one, 155 side by side).
_ALONE, _DEAR = 3, 20
_WORTH_ROWS = 20_000
# So many times that, where each round of the inner loop becomes code of its own.
_WORTH_APART = 4
# Loops whose rounds take at most so many instructions, of one vector, are written so many rounds at
# a time: 250,000 rows of 4 copied one by one took 115 us, so 103.
_SHORT, _COPIES = 8, 8
# Loops inside of lanes that are so short, with a body so light, are written out: among 6 numbers
# 1,000,000 uint8 are looked for in 50 us so, else in 69 (with AVX2 36, 108).
_LIGHT = 8
# Scratch for all lanes must stay in the second-level cache.
_SCRATCH_BYTES = 1 << 17


def vectorize(kernel: Kernel) -> Kernel:
    """Annotate the loops of a kernel; see the module's text."""
    body = drop_unit_loops(kernel.body)
    body = tuple(collapse(s) for s in body)
    chooser = _Chooser(Dependences(stored(body)), link.vector_bytes())
    return replace(kernel, body=chooser.paired(chooser.annotate(body)))


def map_blocks(s: Stmt, change) -> Stmt:
    """A statement with each of its blocks replaced by change(block)."""
    if isinstance(s, For | While):
        body = change(s.body)
        return s if body is s.body else replace(s, body=body)
    if isinstance(s, If):
        return replace(s, then=change(s.then), otherwise=change(s.otherwise))
    return s


def _same(new: list[Stmt], old: Sequence[Stmt]) -> bool:
    """Whether a block was left as it is: then what is known of it stays known."""
    return len(new) == len(old) and all(map(operator.is_, new, old))


def drop_unit_loops(stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Replace each loop of extent 1 by its body at index 0."""
    out: list[Stmt] = []
    for s in stmts:
        s = map_blocks(s, drop_unit_loops)
        if isinstance(s, For) and isinstance(s.extent, int) and s.extent == 1:
            out += substitute(s.body, s.var, Index.of(0))
        else:
            out.append(s)
    return stmts if type(stmts) is tuple and _same(out, stmts) else tuple(out)


def collapse(s: Stmt) -> Stmt:
    """Join perfectly nested loops into one where every address stays affine in it."""
    if not isinstance(s, For | While | If) or s.__dict__.get("_collapsed"):
        return s
    s = _collapsed(s)
    s.__dict__["_collapsed"] = True  # `tile` and `vectorize` both ask
    return s


def _collapsed(s: Stmt) -> Stmt:
    s = map_blocks(s, _collapse_all)
    while isinstance(s, For) and len(s.body) == 1 and isinstance(s.body[0], For):
        inner = s.body[0]
        plain = all(
            isinstance(x.extent, int) and x.kind == "serial" and not x.grain and x.unroll == 1
            for x in (s, inner)
        )
        if not plain:
            return s
        assert isinstance(s.extent, int) and isinstance(inner.extent, int)
        if not _runs_on(s.var, inner.var, inner.body):
            return s
        var = LoopVar(s.var.name, s.extent * inner.extent)
        one = Index.of(var)
        by = {s.var: one // inner.extent, inner.var: one % inner.extent}
        body = Rewriter(var=by).block(inner.body)
        if not _affine(body, var):
            return s
        s = For(var, var.extent, body)
    return s


def _collapse_all(block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    out = [collapse(x) for x in block]
    return block if _same(out, block) else tuple(out)


def _runs_on(outer: LoopVar, inner: LoopVar, body: Sequence[Stmt]) -> bool:
    """Whether every address where both variables stand alone goes on over the ends of the inner
    loop; a cheap test before the loops are joined to see."""
    places = [address(s) for s in walk(body) if isinstance(s, Store)]
    for e in exprs(body):
        if isinstance(e, Load):
            places.append(address(e))
        else:
            places += e.indices_()
    for place in places:
        apart = far = near = 0
        for atom, k in place.terms:
            if atom is outer:
                far = k
            elif atom is inner:
                near = k
            elif type(atom) is not LoopVar:
                apart = 1
        if not apart and far != near * inner.extent:
            return False
    return True


def _affine(body: Sequence[Stmt], var: LoopVar) -> bool:
    def fine(i: Index) -> bool:
        for a in atoms(i):
            if (type(a) is Div or type(a) is Mod) and any([x is var for x in a.inside]):
                return False
        return True

    for e in exprs(body):
        if not all([fine(i) for i in ((address(e),) if type(e) is Load else e.indices_())]):
            return False
    return all([fine(address(s)) for s in walk(body) if type(s) is Store])


def _one_round(s: Stmt) -> bool:
    """Whether a statement stores what lies at known places, or a loop of one vector does."""
    if type(s) is For:
        return s.kind == "vector" and s.var.extent <= s.lanes and all(map(_one_round, s.body))
    found = [i for e in exprs([s]) for i in e.indices_()]
    return type(s) is Store and not any([type(a) is Dyn for i in found for a in atoms(i)])


def _short_rows(s: For) -> For | None:
    """A loop whose inner loops write a short row: with one inner loop along that, whose rounds are
    written one by one. Transposed, such rows are moved whole."""
    loops: list[For] = []
    body = s.body
    while len(body) == 1 and type(body[0]) is For:
        if body[0].kind != "serial" or type(body[0].extent) is not int:
            return None
        loops.append(body[0])
        body = body[0].body
    n = math.prod([x.var.extent for x in loops])
    if len(loops) < 2 or n > MOST_ROUNDS:
        return None
    stores = [x for x in body if type(x) is Store and x.part is None]
    if len(stores) < len(body):
        return None
    var, by, unit = LoopVar(loops[-1].var.name, n), {}, 1
    for x in reversed(loops):
        by[x.var] = Index.of(var) // unit % x.var.extent
        if any([address(y).coefficient(x.var) != unit for y in stores]):
            return None
        unit *= x.var.extent
    joined = For(var, n, Rewriter(var=by).block(body))
    return replace(s, body=(joined,)) if apart(joined, s.var) else None


@record()
class _Choice:
    """A block annotated, and what it costs."""

    stmts: tuple[Stmt, ...]
    cost: float


class _Chooser:
    def __init__(self, deps: Dependences, vector_bytes: int):
        self.deps, self.vector_bytes = deps, vector_bytes
        self.along: LoopVar | None = None  # the innermost loop around what is counted
        self.times = 1  # how often the loops around repeat what is chosen for

    def annotate(self, stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return self.block(stmts).stmts

    def block(self, stmts: Sequence[Stmt]) -> _Choice:
        out: list[Stmt] = []
        total = 0.0
        plain = [s for s in stmts if not isinstance(s, For | While | If)]
        total += self.count(plain, None, 0)
        for s in stmts:
            if isinstance(s, For):
                best = self.loop(s)
                out += best.stmts
                total += best.cost
            elif isinstance(s, While | If):
                inner = [self.block(x) for x in blocks(s)]
                made = iter(inner)
                out.append(map_blocks(s, lambda _, made=made: next(made).stmts))
                total += sum(x.cost for x in inner) * (20 if isinstance(s, While) else 1) + 2
            else:
                out.append(s)
        return _Choice(tuple(out), total)

    def loop(self, s: For) -> _Choice:
        """The cheaper of: this loop lane-wise, or in order with the best inside."""
        if s.kind != "serial" or s.grain:
            return _Choice((s,), s.var.extent * cost(s.body))
        n, unroll = s.var.extent, 1
        around, self.times = self.times, self.times * n
        inner = self.block(s.body)
        self.times = around
        if inner.cost <= _SHORT and all([_one_round(x) for x in inner.stmts]):
            unroll = n if n <= _COPIES else math.gcd(n, _COPIES)
        serial = _Choice(
            (replace(s, body=inner.stmts, unroll=unroll),), n * (inner.cost + 1) + _LOOP
        )
        lanes = self.lanes(s)
        if lanes < 2 or not self.legal(s, lanes):
            return serial
        found = reductions(s)
        assert found is not None
        total = self.rounds(s, lanes)
        joined = _short_rows(s)
        if joined is not None and self.rounds(joined, lanes) < total:
            s, total = joined, self.rounds(joined, lanes)
        if lanes > _TILE_LANES and any(isinstance(x, For) for x in s.body):
            # Rows of narrow integers: tiles of fewer lanes instead of gathers.
            fewer = self.rounds(s, _TILE_LANES)
            if fewer < total:
                lanes, total = _TILE_LANES, fewer
        total += sum(_COMBINE * (2 if isinstance(r, UpdateArg) else 1) for r in found)
        if total >= serial.cost:
            return serial
        if any(isinstance(x, For) for x in s.body):
            # Rows side by side: more code, so the gain must be sure and the work worth it.
            alone = any(isinstance(x, For) and apart(x, s.var) for x in s.body)
            worth = _WORTH_ROWS * (_WORTH_APART if alone else 1)
            dear = any(isinstance(e, Op) and op_cost(e.name) >= _DEAR for e in exprs(s.body))
            reduces = any(isinstance(x, Update) for x in walk(s.body))
            sure = _SURE_OF_FUNCTIONS if dear and reduces else _SURE
            if serial.cost < worth:
                if serial.cost * self.times < worth or not self.near(s, lanes):
                    return serial
                sure = min(sure, _SURE_WITHIN)
            if total > sure * serial.cost:
                return serial
        light = cost(s.body)
        unroll = 1
        if not any(isinstance(x, For | While) for x in walk(s.body)):
            rounds = s.var.extent // lanes
            # Partial results hide the latency of the adder; other light loops save the counting.
            wanted = 4 if light <= 14 else 2 if light <= 40 and found else 1
            if any([self.from_afar(e, s.var) for e in exprs(s.body)]):
                wanted = 1
            while wanted > 1 and rounds < 2 * wanted:
                wanted //= 2
            unroll = wanted
        made = _lane_scratch(replace(s, kind="vector", lanes=lanes, unroll=unroll), lanes)
        if lanes <= _TILE_LANES:
            made = replace(made, body=_tile_inner(made.body, s.var, lanes))
        return _Choice((replace(made, body=_written_out(made.body)),), total)

    def rounds(self, s: For, lanes: int) -> float:
        """Instructions of all rounds of a loop, lane-wise."""
        return -(-s.var.extent // lanes) * (self.count(s.body, s.var, lanes) + 1) + _LOOP

    def lanes(self, s: For) -> int:
        lanes = default_lanes(s, self.vector_bytes)
        weight = cost(s.body) if self.vector_bytes == _FEW_REGISTERS else 0
        if weight >= _PAIRED and s.var.extent >= 8 * lanes:
            if not any(isinstance(x, For | While) for x in walk(s.body)):
                names = [e.name for e in exprs(s.body) if isinstance(e, Op)]
                functions = sum([FUNCTIONS[n].weight for n in names if n in FUNCTIONS])
                light = functions <= _FUNCTIONS and weight <= _FOURFOLD
                four = light and s.var.extent >= _LONG * lanes and not link.written_directly()
                return (4 if four else 2) * lanes
        while lanes > 2 and lanes // 2 >= s.var.extent:
            lanes //= 2
        return lanes

    def paired(self, stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Loops over lanes that were so before, with several vectors a round where they evaluate
        functions (light ones have several operands a round: maxima of columns took 1.2 times)."""
        if self.vector_bytes != _FEW_REGISTERS:
            return stmts
        out: list[Stmt] = []
        for s in stmts:
            if isinstance(s, For) and s.kind == "vector" and not s.lanes:
                called = any([isinstance(e, Op) and e.name in FUNCTIONS for e in exprs(s.body)])
                lanes = self.lanes(s) if called else 0
                if lanes > default_lanes(s, self.vector_bytes):
                    s = replace(s, lanes=lanes)
                out.append(s)
            else:
                out.append(map_blocks(s, self.paired))
        return stmts if _same(out, stmts) else tuple(out)

    def legal(self, s: For, lanes: int) -> bool:
        if s.var.extent < 2 or reductions(s) is None or not independent(s, self.deps):
            return False
        own = own_scratch(s)
        if sum(x.nbytes for x in own) * lanes > _SCRATCH_BYTES:
            return False
        if own and any(x.dtype in COMPLEX_PARTS for x in own):
            return False
        changing = {s.var, *assigned(s.body), *own}
        for x in walk(s.body):
            if isinstance(x, For):
                if x.kind != "serial" or x.grain:
                    return False
                if isinstance(x.extent, Index) and changing & self.deps.index(x.extent):
                    return False
            # A store that an inner loop repeats under a changing condition is fine: it is masked.
        return True

    # -- counting ---------------------------------------------------------------------------

    def count(self, stmts: Sequence[Stmt], var: LoopVar | None, lanes: int) -> float:
        """Instructions of one run of the statements, lane-wise over `var` (None: scalars)."""
        total = 0.0
        flat: list[Stmt] = []
        for s in stmts:
            if isinstance(s, For):
                around, self.along = self.along, s.var
                if lanes and apart(s, var):
                    rounds = [round_of(s, k) for k in range(s.var.extent)]
                    total += sum([self.count(x, var, lanes) for x in rounds]) + _LOOP
                else:
                    total += s.var.extent * (1 + self.count(s.body, var, lanes)) + _LOOP
                self.along = around
            elif isinstance(s, While):
                total += 20 * (2 + self.count(s.body, var, lanes))
                flat.append(s)
            elif isinstance(s, If):
                total += 2 + self.count((*s.then, *s.otherwise), var, lanes)
                flat.append(s)
            else:
                flat.append(s)
        for s in flat:
            if isinstance(s, Store):
                total += self.access(s, var, lanes)
        seen: set[int] = set()
        pending = [e for s in flat for e in stmt_exprs(s)]
        while pending:
            e = pending.pop()
            if id(e) in seen:
                continue
            seen.add(id(e))
            pending += e.args_()
            total += self.one(e, var, lanes)
        return total

    def one(self, e: Expr, var: LoopVar | None, lanes: int) -> float:
        if isinstance(e, Load):
            return self.access(e, var, lanes)
        if isinstance(e, Op):
            price = op_cost(e.name)
            if var is None and price >= _DEAR and any(type(a) is ReadLocal for a in e.args):
                price *= _ALONE
            if price == 1 and e.dtype.itemsize < 4 and e.dtype.kind in "fV":
                price = 4  # rounded after each operation
            if lanes and e.name in ("div", "rem") and e.dtype.kind in "iu":
                price = 10 * lanes if e.dtype.itemsize > 4 else 30
            return price
        return 1 if isinstance(e, Cast) else 0

    def from_afar(self, e: Expr, var: LoopVar) -> bool:
        """Whether lanes are gathered from more than the first cache holds."""
        if type(e) is not Load or not self.gathered(e, var):
            return False
        return math.prod(e.buffer.shape) * e.buffer.dtype.itemsize > _NEAR

    def gathered(self, at: Load | Store, var: LoopVar) -> bool:
        """Whether each lane's place is computed."""
        return any([type(a) is Dyn and not self.fixed(a, var) for a in atoms(address(at))])

    def access(self, at: Load | Store, var: LoopVar | None, lanes: int) -> float:
        if var is None:
            return 1
        lin = address(at)
        if self.gathered(at, var):
            return _GATHERED_LANE * lanes
        step = stride(lin, var, lanes)
        if step == 0:
            return 1
        if step in (1, -1):
            # Two cache lines a vector when rows are not aligned; a reversal is a shuffle.
            return 1 if step == 1 else 2
        crosses = self.along is not None and stride(lin, self.along) == 1
        if type(at) is Load and at.part is None and step is not None:
            if in_short_rows(abs(step), self.vector_bytes):
                if not crosses or column_of_rows(lin, step, math.prod(at.buffer.shape)):
                    return abs(step) + 1  # all that lies between is read, and shuffles
        if at.part is None and step is not None and crosses and lanes <= _TILE_LANES:
            assert self.along is not None
            # A load or store a row, and the shuffles of a transpose.
            width = min(self.along.extent, lanes)
            each = lanes * lanes.bit_length() / width + 1
            if step == width:
                each = min(each, width)
            return min(each, _GATHERED_LANE * lanes)
        # A step that is known needs no index from a register; so AVX2, whose tails are dear, reads
        # 10 picked columns (300,000 floats: 92 us, along rows 130), AVX-512 along rows (96, 136).
        known = step is not None and type(at) is Load and self.vector_bytes < 64
        return lanes if known else _GATHERED_LANE * lanes

    def near(self, s: For, lanes: int) -> bool:
        """Whether what neighbouring lanes read and write lies in rows that one load takes whole."""
        places: list[Load | Store] = [x for x in walk(s.body) if type(x) is Store]
        places += [e for e in exprs(s.body) if type(e) is Load]
        for at in places:
            step = stride(address(at), s.var, lanes)
            if step is None or self.gathered(at, s.var):
                return False
            if step not in (0, 1, -1) and not in_short_rows(abs(step), self.vector_bytes):
                return False
        return True

    def fixed(self, atom: Dyn, var: LoopVar) -> bool:
        """Whether a runtime index is the same in all lanes: known before the loop."""
        deps = self.deps.expr(atom.expr)
        return var not in deps and all([type(d) is LoopVar for d in deps])


def _written_out(stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Write the rounds of short and light inner loops one by one: what a round reads that all
    lanes share is read before the loop around, and lanes that are bits need no form of their own
    between rounds."""
    out: list[Stmt] = []
    for s in stmts:
        s = map_blocks(s, _written_out)
        if isinstance(s, For) and s.kind == "serial" and type(s.extent) is int and not s.grain:
            light = all([isinstance(x, Store | Update) for x in s.body]) and cost(s.body) <= _LIGHT
            if light and s.extent <= _COPIES:
                for k in range(s.extent):
                    out += substitute(s.body, s.var, Index.of(k))
                continue
        out.append(s)
    return tuple(out)


def _tile_inner(stmts: Sequence[Stmt], var: LoopVar, lanes: int) -> tuple[Stmt, ...]:
    """Let inner loops move what they walk contiguously, and lanes over `var` do not, in tiles."""
    out: list[Stmt] = []
    for s in stmts:
        s = map_blocks(s, lambda block: _tile_inner(block, var, lanes))
        if isinstance(s, For) and s.kind == "serial" and _crosses(s, var, lanes):
            out += _cut(s, var, lanes)
        else:
            out.append(s)
    return tuple(out)


def _crosses(s: For, var: LoopVar, lanes: int) -> bool:
    if not isinstance(s.extent, int) or any(isinstance(x, For | While) for x in walk(s.body)):
        return False
    places: list[Load | Store] = [x for x in s.body if isinstance(x, Store) and x.part is None]
    places += [e for e in exprs(s.body) if isinstance(e, Load) and e.part is None]
    for at in places:
        if any([type(a) is Dyn for i in at.index for a in atoms(i)]):
            continue
        lin = address(at)
        if stride(lin, s.var) == 1 and stride(lin, var, lanes) not in (None, 0, 1, -1):
            return True
    return False


def _cut(s: For, lane: LoopVar, lanes: int) -> list[Stmt]:
    """A loop in tiles of `lanes` rounds, then the rest."""
    assert isinstance(s.extent, int)
    # Rounds that ask where they stand are written one by one: each is only its own part.
    price = 0 if apart(s, lane) else cost(s.body)

    def tiles(start: Index, width: int) -> Stmt:
        var = LoopVar(s.var.name, width)
        body = substitute(s.body, s.var, start + Index.of(var))
        return For(var, width, body, "tile", width if width * price <= _UNROLLED else 1)

    whole, rest = divmod(s.extent, lanes)
    out: list[Stmt] = []
    if whole == 1 or not price:
        out += [tiles(Index.of(k * lanes), lanes) for k in range(whole)]
    elif whole:
        outer = LoopVar("tile", whole)
        out.append(For(outer, whole, (tiles(Index.of(outer) * lanes, lanes),)))
    if rest == 1 and not price:
        out += Known({s.var: Index.of(s.extent - 1)}).block(s.body)
    elif rest:
        out.append(tiles(Index.of(whole * lanes), rest))
    return out


def _lane_scratch(s: For, lanes: int) -> For:
    """Give scratch that begins inside the loop one place for each lane."""
    own = own_scratch(s)
    if not own:
        return s
    wide = {x: Buffer(x.name, x.dtype, (*x.shape, lanes), "scratch") for x in own}
    lane = Index.of(s.var) % lanes
    loads: dict[tuple, Expr] = {}

    def load(e: Load) -> Expr | None:
        if e.buffer not in wide:
            return None
        key = (e.buffer, e.index, e.part)
        if key not in loads:
            loads[key] = Load(wide[e.buffer], (*e.index, lane), e.part)
        return loads[key]

    rewriter = Rewriter(load=load)

    def change(x: Stmt) -> Stmt:
        x = map_blocks(x, lambda block: tuple(change(y) for y in block))
        if isinstance(x, Alloc) and x.buffer in wide:
            return Alloc(wide[x.buffer])
        if isinstance(x, Store) and x.buffer in wide:
            return Store(wide[x.buffer], (*x.index, lane), x.value, x.part)
        return x

    return replace(s, body=tuple(change(x) for x in rewriter.block(s.body)))
