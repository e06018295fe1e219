"""Loops behind products: bias, activation, residual, mask, cast, softmax of rows.

`pair(fusion)` says which product each group of loops may follow; `steps` makes the two one step:
the group's kernel runs on each piece of the product as soon as it is finished, on the same thread,
while it is in the nearest cache. Where nobody else reads the product it is never written to memory:
each piece lies on the stack. The kernel's loops stay what they are, over the pieces in place of the
rows, so results are the same to the bit. For: `fuse`. What would break it: a kernel that reads the
product elsewhere than where its loops stand.

Loops that sweep over rows follow where one strip holds them (64 float32 with 32 vector registers);
sums over columns (of what follows a product too), products in more than two loops and those that
stream a vector stay apart.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from numjet.base.config import check_ir
from numjet.base.record import replace
from numjet.core import lowering as low
from numjet.cpu.emit.emit import emit_launch, emit_round
from numjet.cpu.graph.nodes import Val
from numjet.cpu.kernels.idioms import size_of
from numjet.cpu.kernels.products import gemm, gemm_task
from numjet.cpu.kernels.products.dot import Known
from numjet.cpu.link import link
from numjet.cpu.loops.cost import default_lanes
from numjet.cpu.loops.index import Dyn, Index, LoopVar, atoms, clamp, linear_address, stride
from numjet.cpu.loops.ir import (
    COMPLEX_PARTS,
    Alloc,
    Buffer,
    For,
    Kernel,
    Load,
    Rewriter,
    Stmt,
    Store,
    address,
    exprs,
    walk,
)
from numjet.cpu.loops.verify import verify
from numjet.cpu.lower.core import unflatten
from numjet.cpu.lower.groups import Compilation, Fusion, Group
from numjet.cpu.passes import parallelize
from numjet.cpu.passes.vectorize import vectorize
from numjet.cpu.program.steps import KernelStep, SpecialStep, Step

# Bytes that loops behind a product read and write beside it, as multiples of its own: pieces take
# short parts of every row, which is slower for loops that memory bounds.
MOST_BESIDE = 4


def pair(fusion: Fusion) -> dict[int, tuple[Group, bool]]:
    """Numbers of groups that may run behind a product: (its group, whether only they read it).

    The group is the product's first reader and the next step: a product that waited would keep its
    operands alive.
    """
    products: dict[Val, tuple[Group, Val]] = {}  # the value or a view of it -> group, product
    for group in fusion.groups:
        node = group.node
        if node is not None and type(node.rule) is low.Kernel and len(node.outs) == 1:
            products[node.outs[0]] = group, node.outs[0]
    if not products:
        return {}
    for node in fusion.graph.nodes:
        out = node.outs[0] if node.outs else None  # a call for its effects alone has none
        if out is not None and out.base is not None:
            root, start, terms = out.root()
            if root in products and not start and not terms:
                products[out] = products[root]
    readers: dict[Val, set[int]] = {}
    for number, key in fusion.computed:
        if key in products:
            readers.setdefault(products[key][1], set()).add(number)
    kept = {products[v][1] for v in fusion.graph.outs if v in products}
    found: dict[int, tuple[Group, bool]] = {}
    for key, numbers in readers.items():
        first = fusion.groups[min(numbers)]
        between = fusion.groups[products[key][0].number + 1 : first.number]
        if first.make is None and not any(
            g.make is not None or any(m.live for m in g.members) for g in between
        ):
            found[first.number] = products[key][0], len(numbers) == 1 and key not in kept
    return found


def steps(fusion: Fusion, group: Group, product: Any, alone: bool) -> list[Step]:
    """The steps of a product's group and of the loops behind it, as one where that is possible."""
    build, first = fusion.build, product.make()
    known = first[0].product if len(first) == 1 and type(first[0]) is SpecialStep else None
    if known is None:
        return [*first, *fusion.lower(group)]
    parts = _split(fusion, group)
    if parts is not None:
        joined = _join(build, first[0], fusion.lower(parts[0]), alone)
        if joined is not None:
            return [joined, *fusion.lower(parts[1])]
        _count(fusion, parts[1], group.number)
    loops = fusion.lower(group)
    joined = _join(build, first[0], loops, alone)
    return [*first, *loops] if joined is None else [joined]


def _join(build: Compilation, product: SpecialStep, loops: list[Step], alone: bool) -> Step | None:
    if len(loops) == 1 and type(loops[0]) is KernelStep:
        return _joined(build, product, loops[0], alone)
    return None


def _split(fusion: Fusion, group: Group) -> tuple[Any, Any] | None:
    """What a group stores element by element, and the sums over columns of that, as two groups:
    the first may run behind a product (the gradient of an activation, that of a bias)."""
    reduced = group.reduced
    if reduced is None or len(group.shape) - 1 in reduced:
        return None
    full = [m for m in group.members if m.live and not m.row]
    rows = [m for m in group.members if m.live and m.row]
    if not full or any(m.phase > 0 for m in full):
        return None
    summed = {m.node.ins[0] for m in rows if type(m.node.rule) is low.Reduce}
    if not summed or not summed <= group.stored.keys():
        return None
    parts = []
    for number, members, axes in (
        (group.number, full, None),
        (len(fusion.groups) + group.number, rows, reduced),
    ):
        outs = {v for m in members for v in m.node.outs}
        stored = {key: val for key, val in group.stored.items() if key in outs}
        parts.append(replace(group, number=number, reduced=axes, members=members, stored=stored))
    _count(fusion, parts[1], parts[1].number)
    return parts[0], parts[1]


def _count(fusion: Fusion, group: Group, number: int) -> None:
    """Let what a group computes, and what only moves elements of that, be of the group `number`."""
    own = {v for m in group.members for v in m.node.outs}

    def moved(val: Val) -> bool:
        node = fusion.inline.get(val)
        if node is None:
            return val in own
        found = any([moved(v) for v in node.ins])
        if found:
            fusion.level[val] = number
        return found

    for member in group.members:
        for val in member.node.ins:
            moved(val)
    for key in own:
        fusion.level[key] = number


def _joined(
    build: Compilation, product: SpecialStep, loops: KernelStep, alone: bool
) -> Step | None:
    out = product.writes[0]
    places = [k for k, v in enumerate(loops.operands) if v.root() == (out, 0, ())]
    if len(places) != 1 or set(loops.operands) - set(loops.reads) - set(loops.writes):
        return None
    (place,) = places
    if sum([v.nbytes for v in loops.operands]) > (1 + MOST_BESIDE) * out.nbytes:
        return None
    key = (loops.kernel, place, alone, product.product)
    if key not in build.epilogues:
        build.epilogues[key] = _behind(build, product.product, loops, place, alone)
    made = build.epilogues[key]
    if made is None:
        return None
    function, kernel, kept = made
    others = [v for k, v in enumerate(loops.operands) if k != place]
    results = set(loops.writes)
    reads = [*product.reads, *[v for v in others if v not in results]]
    writes = [*([] if kept else [out]), *[v for v in others if v in results]]
    # What the product reads again for other pieces may not be overwritten.
    held = [v.root()[0] for v in (*product.reads, out)]
    inplace = [(w, r) for w, r in loops.inplace if r.root()[0] not in held]
    return SpecialStep(
        product.name, reads, writes, function, inplace, product.flops + loops.flops, True,
        behind=kernel,
    )  # fmt: skip


def _behind(build: Compilation, product: Known, loops: KernelStep, place: int, alone: bool) -> Any:
    """(function of product and loops, the loops as a kernel over pieces, whether pieces are kept on
    the stack), or None."""
    buffers = loops.kernel.buffers
    source = buffers[place]
    if any(x.role == "work" or x.dtype in COMPLEX_PARTS for x in buffers):
        return None
    others = [x for k, x in enumerate(buffers) if k != place]
    ins = [x for x in others if x.role == "in"]
    outs = [x for x in others if x.role == "out"]
    keeps = alone and len(others) < gemm_task.MOST_POINTERS
    body: For | None
    if _over(product, loops.kernel, source):
        # One piece, which lies as the product does: the loops stay what they are.
        kept, tile = keeps and source.nbytes <= gemm_task.PIECE_BYTES, source
        inner = vectorize(Kernel("piece", (), loops.kernel.body, {})).body
        body = For(LoopVar("p", 1), 1, inner, grain=1)
    else:
        pieces = _Pieces(product)
        shape = (pieces.cut.piece_rows, pieces.cut.columns)
        tile = Buffer("piece", source.dtype, shape)
        kept = keeps and tile.nbytes <= gemm_task.PIECE_BYTES
        body = pieces.loops(loops.kernel, source, tile if kept else None)
    if body is None:
        return None
    if product.small and parallelize.worth(body):
        return None  # it is worth several threads, the product is not
    order = (tile, *ins, *outs) if kept else (*ins, source, *outs)
    kernel = Kernel(build.kernel_name("behind"), order, (body,), {"annotated": True})
    if check_ir.value:
        verify(kernel)
    epilogue = gemm.Epilogue(
        kernel.name,
        len(order),
        kept,
        len(ins),
        functools.partial(emit_launch, kernel=kernel),
        lambda b, pointers, number: emit_round(b, kernel, pointers, number),
    )
    return product.function(epilogue), kernel, kept


def _over(product: Known, kernel: Kernel, source: Buffer) -> bool:
    """Whether a product is one piece and a kernel's loops run over it, `source`, in the order of
    memory: over its elements, each access in step or at one place, or over its rows."""
    spec = product.spec
    chain, body = _chain(kernel)
    if not product.small or spec.loops or not chain:
        return False
    covered = math.prod([s.var.extent for s in chain])
    position = linear_address([Index.of(s.var) for s in chain], [s.var.extent for s in chain])
    if any(isinstance(s, For) for s in body):
        rows = position * spec.n
        return covered * spec.n == source.size and _within_rows(body, source, rows, spec.n)
    return covered == source.size and _reads_at(body, source, position) and _in_step(chain[-1])


class _Pieces:
    """Where the elements of a product's pieces lie: `row` counts rows of its `n` columns through
    the whole result, in the order of memory."""

    def __init__(self, product: Known) -> None:
        spec = self.spec = product.spec
        batches, self.cut = product.cut()
        cut = self.cut
        counts = [count for count, _ in batches]
        self.units = cut.strips * cut.pieces
        for count in counts:
            self.units *= count
        self.unit = LoopVar("p", self.units)
        rest = Index.of(self.unit)
        number, rest = rest % cut.pieces, rest // cut.pieces
        self.strip, rest = rest % cut.strips, rest // cut.strips
        first = number * cut.piece_rows
        line = spec.n * size_of(spec.element)
        strides = [*[step for _, step in batches], spec.crs]
        self.regular = not any(step % line for step in strides)
        self.row = Index.of(0)
        for count, step in reversed(batches):
            self.row = self.row + rest % count * (step // line)
            rest = rest // count
        rows = min(cut.piece_rows, spec.m)
        self.i = LoopVar("i", rows)
        self.rows = clamp(spec.m - first, 1, rows)
        here = clamp(first + Index.of(self.i), 0, spec.m - 1)
        self.row = self.row + here * (spec.crs // line if spec.m > 1 else 1)

    def loops(self, kernel: Kernel, source: Buffer, tile: Buffer | None) -> For | None:
        """The kernel's loops over pieces, `source` being the product; reading `tile`, the present
        piece, in its place. None where they are not such loops."""
        chain, body = _chain(kernel)
        n = self.spec.n
        if not chain or not self.regular:
            return None
        covered = math.prod([s.var.extent for s in chain])
        if any(isinstance(s, For) for s in body):
            if covered * n != source.size:
                return None
            return self._of_rows(chain, body, source, tile)
        if covered != source.size:
            return None
        cut = self.cut
        columns = min(cut.columns, n)
        j = LoopVar("j", columns)
        column = self.strip * cut.columns + Index.of(j)
        extents = [s.var.extent for s in chain]
        if not _reads_at(body, source, linear_address([Index.of(s.var) for s in chain], extents)):
            return None
        if extents[-1] == n:
            by = [*unflatten(self.row, extents[:-1]), column]
        else:
            by = unflatten(self.row * n + column, extents)
        body = _replaced(body, chain, by, source, tile, lambda _: (Index.of(self.i), Index.of(j)))
        loop = For(j, _extent(clamp(n - self.strip * cut.columns, 1, columns)), body)
        return self._wrapped((loop,)) if _in_step(loop) else None

    def _of_rows(
        self, chain: list[For], body: tuple[Stmt, ...], source: Buffer, tile: Buffer | None
    ) -> For | None:
        """Loops that sweep over whole rows."""
        n = self.spec.n
        if self.cut.strips > 1:
            return None
        outer = linear_address([Index.of(s.var) for s in chain], [s.var.extent for s in chain]) * n
        if not _within_rows(body, source, outer, n):
            return None

        def inside(e: Load) -> Index:
            return address(e) - outer

        by = unflatten(self.row, [s.var.extent for s in chain])
        body = _replaced(
            body, chain, by, source, tile, lambda e: (Index.of(self.i), inside(e))
        )
        return self._wrapped(body)

    def _wrapped(self, body: tuple[Stmt, ...]) -> For:
        inner = vectorize(Kernel("piece", (), body, {})).body
        rows = For(self.i, _extent(self.rows), inner)
        return For(self.unit, self.units, (rows,), grain=1)


def _extent(x: Index) -> int | Index:
    return x.const if x.is_const else x


def _chain(kernel: Kernel) -> tuple[list[For], tuple[Stmt, ...]]:
    """The loops around all else, and what they hold."""
    chain: list[For] = []
    body = kernel.body
    while len(body) == 1 and isinstance(body[0], For):
        loop = body[0]
        if loop.kind != "serial" or loop.grain or not isinstance(loop.extent, int):
            return [], body
        chain.append(loop)
        body = loop.body
    return chain, body


def _within_rows(body: Sequence[Stmt], source: Buffer, outer: Index, n: int) -> bool:
    """Whether the product is only read in the row of `n` that begins at `outer`."""
    for e in exprs(body):
        if isinstance(e, Load) and e.buffer is source:
            column = address(e) - outer
            if column.lo < 0 or column.hi >= n:
                return False
    return True


def _reads_at(body: Sequence[Stmt], source: Buffer, position: Index) -> bool:
    """Whether the product is only read, and results are only written, where the loops stand."""
    for s in walk(body):
        if isinstance(s, Alloc):
            return False
        if isinstance(s, Store) and address(s) != position:
            return False
    return all(
        address(e) == position
        for e in exprs(body)
        if isinstance(e, Load) and e.buffer is source
    )


def _replaced(
    body: Sequence[Stmt], chain: list[For], by: list[Index], source: Buffer,
    tile: Buffer | None, place: Any,
) -> tuple[Stmt, ...]:  # fmt: skip
    """The statements with the loops' variables replaced, reading the tile if there is one."""
    if tile is not None:

        def load(e: Load) -> Load | None:
            return Load(tile, place(e)) if e.buffer is source else None

        body = Rewriter(load=load).block(body)
    var = {s.var: index for s, index in zip(chain, by, strict=True)}
    return Rewriter(var=var).block(body)


def _in_step(loop: For) -> bool:
    """Whether every access moves with the loop's lanes, or not at all."""
    lanes = default_lanes(loop, link.vector_bytes())
    places = [address(s) for s in walk(loop.body)
              if isinstance(s, Store)]  # fmt: skip
    for e in exprs(loop.body):
        if isinstance(e, Load):
            places.append(address(e))
    return all(
        not any(type(a) is Dyn for a in atoms(place)) and stride(place, loop.var, lanes) in (0, 1)
        for place in places
    )
