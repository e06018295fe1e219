"""Products of a static shape, written into the program that needs them: small ones.

`function(spec)` computes C = A·B for exactly one shape and layout; equal products of a program
share it, and it is compiled while the rest of the program is still being lowered. A tile is some
rows by up to four vectors, and a row one wide vector that code generation splits over registers:
few lines to compile, 2-3 ms where the general library takes 15. Rows overlap in the last tile,
columns are masked. A is read by broadcasts, B in place, or from a packed copy on the stack where
its columns are not next to each other. One thread. The direct generator writes the product itself,
as a function that this one calls (`x86.whole.product`, of the same tiles). For: `dot` and loop
bodies. What would break it: C's columns not next to each other, or C in the memory of A or B.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from numjet.base.record import record, replace
from numjet.cpu.builder.builder import Builder, Module, Value, vector
from numjet.cpu.kernels.idioms import lanes_of, size_of, transpose_block
from numjet.cpu.kernels.products.gemm import Epilogue
from numjet.cpu.kernels.products.tiles import Line
from numjet.cpu.link import link
from numjet.cpu.program.steps import Function
from numjet.cpu.x86.whole import product
from numjet.cpu.x86.whole.product import Product

# Rows of a tile by its vectors, where there are 32 registers: at most 24 accumulators, and 8 where
# rows allow (the latency of a multiply-add times the two a cycle that processors begin).
_ROWS = {4: (6, 5, 4), 3: (8, 7, 6, 5), 2: (8, 7, 6, 5), 1: (8, 7, 6, 5)}
_ROWS_16 = {2: (6, 5, 4), 1: (8, 7, 6, 5)}
# What writes the loops behind the round of a number.
Behind = Callable[[Value | int], None]
# The most of B that is read in place (it must stay in the nearest cache), and that is packed on
# the stack.
IN_PLACE_BYTES, PACKED_BYTES = 1 << 15, 1 << 15
# Packing turns squares of this side in registers; larger ones are faster and slower to compile.
SQUARE = 4


@record(frozen=True, slots=True)
class Spec:
    """A product: sizes, byte strides of (rows, columns) of A and B, of C's rows, and the loops
    around it as (count, strides of A, B and C), outer first."""

    element: str
    m: int
    n: int
    k: int
    a: tuple[int, int]
    b: tuple[int, int]
    crs: int
    loops: tuple[tuple[int, int, int, int], ...] = ()

    @property
    def in_place(self) -> bool:
        """Whether B's columns are next to each other."""
        return self.b[1] == size_of(self.element) or self.n == 1


def fits(spec: Spec) -> bool:
    """Whether B is small enough to be read over and over."""
    size = size_of(spec.element)
    if spec.in_place:
        return spec.k * min(spec.b[0], spec.n * size) <= IN_PLACE_BYTES
    return spec.k * (spec.n + lanes_of(spec.element)) * size <= PACKED_BYTES


def function(spec: Spec, epilogue: Epilogue | None = None) -> Function:
    """The function that computes `spec` on the addresses of A, B and C; `epilogue` stands in it and
    runs on C once a round of the loops (its pointers stand behind those of A and B)."""

    def write(module: Module) -> None:
        b = Builder(module, name, [("operands", "ptr")])
        table = b.args[0]
        left, right = [b.load(b.gep(table, 8 * k), "ptr", 8) for k in range(2)]
        if epilogue is None:
            c, behind = b.load(b.gep(table, 16), "ptr", 8), None
        else:
            c, behind = _behind(b, spec, epilogue)
        _loops(b, spec, spec.loops, [left, right, c], behind, 0)
        b.ret()

    name = f"product_{_name(spec)}"
    if epilogue is not None:
        name = f"product_with_{epilogue.name}"
        if epilogue.kept:
            spec = replace(spec, crs=spec.n * size_of(spec.element))
            spec = replace(spec, loops=tuple([(*loop[:3], 0) for loop in spec.loops]))
    return Function(name, write)


def _behind(b: Builder, spec: Spec, epilogue: Epilogue) -> tuple[Value, Behind]:
    """C's address, and what writes the loops behind it."""
    pointers = []
    if epilogue.kept:
        pointers.append(b.alloca(f"[{spec.m * spec.n * size_of(spec.element)} x i8]"))
    for k in range(epilogue.count - len(pointers)):
        pointers.append(b.load(b.gep(b.args[0], 8 * (2 + k)), "ptr", 8))
    c = pointers[0 if epilogue.kept else epilogue.place]
    return c, lambda number: epilogue.inline(b, pointers, number)


def _name(spec: Spec) -> str:
    words = [spec.element, spec.m, spec.n, spec.k, *spec.a, *spec.b, spec.crs]
    for loop in spec.loops:
        words += loop
    return "_".join([str(word) for word in words])


def _shape(spec: Spec) -> tuple[int, int]:
    """Vectors and rows of a tile."""
    rows = _ROWS if link.registers() == 32 else _ROWS_16
    vectors = -(-spec.n // lanes_of(spec.element))
    # The fewest strips; among equal ones the narrowest, so that they divide the columns evenly.
    strips = -(-vectors // max(rows))
    width = -(-vectors // strips)
    best = min(rows[width], key=lambda r: (-(-spec.m // r) * r, rows[width].index(r)))
    return width, min(best, spec.m)


def _loops(
    b: Builder,
    spec: Spec,
    loops: Sequence[tuple[int, ...]],
    pointers: list[Value],
    behind: Behind | None,
    number: Value | int,
) -> None:
    """The product in its loops; `number` counts their rounds."""
    if not loops:
        _product(b, spec, *pointers)
        if behind is not None:
            behind(number)
        return
    (count, *strides), *inner = loops
    with b.loop(0, count, carried=pointers) as each:
        at: Value | int = number
        if behind is not None:
            at = each.index
            if isinstance(number, Value):
                at = b.add(b.mul(number, count), at)
        _loops(b, spec, inner, list(each.values), behind, at)
        each.yield_(*[b.gep(p, s) if s else p for p, s in zip(each.values, strides, strict=True)])


def _product(b: Builder, spec: Spec, a: Value, source: Value, c: Value) -> None:
    """One product; a function of its own where the direct generator writes that itself."""
    stride = spec.b[0]
    if not spec.in_place:
        lanes, size = lanes_of(spec.element), size_of(spec.element)
        stride = -(-spec.n // lanes) * lanes * size
        source = _packed(b, spec, source, stride)
    vectors, rows = _shape(spec)
    sizes = (size_of(spec.element), spec.m, spec.n, spec.k, *spec.a, stride, spec.crs)
    reach = max(abs(x) for x in (*spec.a, stride, spec.crs)) * max(spec.m, 1)
    if not link.direct() or reach >= 1 << 31:
        _strips(b, spec, a, source, stride, c)
        return
    known = Product(*sizes, vectors, rows)
    name = "_".join(["strips", *map(str, known)])
    if all([f.name != name for f in b.module.functions]):
        _Known(b.module, name, spec, known)
    b.call(name, "void", a, source, c)


class _Known(Builder):
    """A product that the direct generator knows; IR only where a module is left to LLVM."""

    def __init__(self, module: Module, name: str, spec: Spec, known: Product) -> None:
        pointers = [("a", "ptr"), ("b", "ptr"), ("c", "ptr")]
        super().__init__(module, name, pointers, linkage="internal")
        self.whole = functools.partial(product.product, p=known)
        self.sizes, self.spec = known, spec

    def body(self) -> list[str]:
        if not self.lines:
            a, source, c = self.args
            _strips(self, self.spec, a, source, self.sizes.brs, c)
            self.ret()
        return super().body()


def _strips(b: Builder, spec: Spec, a: Value, source: Value, stride: int, c: Value) -> None:
    """The product, strip by strip; `stride`: of B's rows."""
    lanes, size = lanes_of(spec.element), size_of(spec.element)
    vectors, rows = _shape(spec)
    width = vectors * lanes
    whole = spec.n // width
    if whole == 1:
        _strip(b, spec, rows, width, a, source, stride, c)
    elif whole:
        with b.loop(0, whole * width * size, width * size) as strips:
            x, y = b.gep(source, strips.index), b.gep(c, strips.index)
            _strip(b, spec, rows, width, a, x, stride, y)
    rest = spec.n - whole * width
    if rest:
        offset = whole * width * size
        x, y = (b.gep(p, offset) if offset else p for p in (source, c))
        _strip(b, spec, rows, rest, a, x, stride, y)


def _strip(
    b: Builder, spec: Spec, rows: int, columns: int, a: Value, source: Value, stride: int, c: Value
) -> None:
    """All rows of `columns` columns."""
    line = Line(spec.element, columns)
    ars, acs = spec.a
    parts = len(line.kinds)

    def tile(at: Value, to: Value) -> None:
        start = (at, source, *line.zeros() * rows)
        with b.loop(0, spec.k, carried=start) as steps:
            x, y, *sums = steps.values
            sums = line.multiply(b, [b.gep(x, r * ars) if r else x for r in range(rows)], y, sums)
            steps.yield_(b.gep(x, acs), b.gep(y, stride), *sums)
        sums = list(steps.results[2:])
        for r in range(rows):
            place = b.gep(to, r * spec.crs) if r else to
            line.store(b, sums[r * parts : (r + 1) * parts], place)

    if spec.m == rows:
        tile(a, c)
        return
    with b.loop(0, spec.m, rows) as tiles:
        row = b.min(tiles.index, spec.m - rows) if spec.m % rows else tiles.index
        tile(b.gep(a, b.mul(row, ars)), b.gep(c, b.mul(row, spec.crs)))


def _packed(b: Builder, spec: Spec, source: Value, stride: int) -> Value:
    """A copy of B with rows of `stride` bytes; what is beyond its columns is left as it was."""
    size = size_of(spec.element)
    copy = b.alloca(f"[{spec.k * stride} x i8]")
    brs, bcs = spec.b
    side = SQUARE if brs == size and min(spec.k, spec.n) >= SQUARE else 1
    kind = vector(spec.element, side if side > 1 else 0)

    def position(index: Value, extent: int) -> Value:
        """Where a square begins; the last one overlaps its neighbour."""
        return b.min(index, extent - side) if extent % side else index

    with b.loop(0, spec.n, side) as columns:
        j = position(columns.index, spec.n)
        here, to = b.gep(source, b.mul(j, bcs)), b.gep(copy, b.mul(j, size))
        with b.loop(0, spec.k, side) as rows:
            i = position(rows.index, spec.k)
            x, y = b.gep(here, b.mul(i, brs)), b.gep(to, b.mul(i, stride))
            block = [b.load(b.gep(x, r * bcs) if r else x, kind, size) for r in range(side)]
            for r, line in enumerate(transpose_block(b, block) if side > 1 else block):
                b.store(line, b.gep(y, r * stride) if r else y, size)
    return copy
