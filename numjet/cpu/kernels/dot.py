"""dot_general as calls of the product library (`gemm`), for floats and shapes where that pays.

`claims(node)` says whether it does; all other products are loops (`cpu.products`), which fuse with
their neighbours. Axes that lie next to each other in memory, in both operands, count as one; what
cannot be one row, one column and one depth becomes a loop around the product.
For: `kernels.GENERATORS`. What would break it: an operand that is not C-contiguous.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numjet.cpu.builder import Builder, Value
from numjet.cpu.graph import Node
from numjet.cpu.kernels import gemm, vecmat
from numjet.cpu.kernels.common import merge, strides, table
from numjet.cpu.program import SpecialStep, Step

ELEMENTS = {"float32": "float", "float64": "double"}
# Smaller products run as loops, fused with what follows.
SMALLEST = 500
_MOST_CALLS = 64


@dataclass(slots=True)
class Product:
    """What a dot_general is: a matrix product, loops around it, and depths summed one by one."""

    element: str
    m: int
    n: int
    k: int
    a: tuple[int, int]  # byte strides along m and k
    b: tuple[int, int]  # along k and n
    crs: int
    loops: list[tuple[int, int, int, int]]  # count, strides of a, b, c; outer first
    depths: list[tuple[int, int, int]]  # count, strides of a, b
    swapped: bool = False  # b is the left operand


def analyse(node: Node) -> Product | None:
    """The product of a node, or None where it has no row or no column."""
    lhs, rhs = node.ins
    out = node.outs[0]
    element = ELEMENTS.get(out.dtype.name)
    if element is None or lhs.dtype != out.dtype or rhs.dtype != out.dtype:
        return None
    (lc, rc), (lb, rb) = node.params["dimension_numbers"]
    size = out.dtype.itemsize
    ls, rs, os = (strides(v.shape, size) for v in (lhs, rhs, out))
    lf = [a for a in range(len(lhs.shape)) if a not in lc and a not in lb]
    rf = [a for a in range(len(rhs.shape)) if a not in rc and a not in rb]
    batch = merge(
        [(lhs.shape[i], ls[i], rs[j], os[k]) for k, (i, j) in enumerate(zip(lb, rb, strict=True))]
    )
    rows = merge([(lhs.shape[i], ls[i], os[len(lb) + k]) for k, i in enumerate(lf)])
    columns = merge([(rhs.shape[j], rs[j], os[len(lb) + len(lf) + k]) for k, j in enumerate(rf)])
    depth = merge(
        sorted(
            ((lhs.shape[i], ls[i], rs[j]) for i, j in zip(lc, rc, strict=True)),
            key=lambda axis: -axis[1],
        )
    )
    if bool(rows) != bool(columns):
        return _vector_matrix(element, batch, rows, columns, depth, size)
    if not rows:
        return None
    # The innermost columns must be C's unit stride; among rows and depths the longest is best.
    n, bcs, _ = columns.pop()
    best = max(range(len(rows)), key=lambda i: rows[i][0])
    m, ars, crs = rows.pop(best)
    k, acs, brs = (1, 0, 0)
    if depth:
        k, acs, brs = depth.pop(max(range(len(depth)), key=lambda i: depth[i][0]))
    loops = [
        *[(c, x, y, z) for c, x, y, z in batch],
        *[(c, x, 0, z) for c, x, z in rows],
        *[(c, 0, y, z) for c, y, z in columns],
    ]
    loops = [tuple(x) for x in loops]  # type: ignore[misc]
    return Product(element, m, n, k, (ars, acs), (brs, bcs), crs, loops, depth)  # type: ignore[arg-type]


def _vector_matrix(
    element: str, batch: list, rows: list, columns: list, depth: list, size: int
) -> Product | None:
    """x·B as a product of one row; None where B's columns are not next to each other."""
    if len(depth) != 1 or len(rows) + len(columns) != 1:
        return None
    k, acs, brs = depth[0]
    n, bcs, _ = (rows or columns)[0]
    swapped = bool(rows)
    if swapped:
        acs, brs = brs, acs
        batch = [(c, y, x, z) for c, x, y, z in batch]
    if bcs != size or k < 8 or n * size < 64:
        return None
    return Product(element, 1, n, k, (0, acs), (brs, bcs), 0, batch, [], swapped)


def claims(node: Node) -> bool:
    """Whether the library is the place for this product."""
    product = analyse(node)
    if product is None or product.m * product.n * product.k < SMALLEST:
        return False
    if product.m == 1 and not product.crs:
        # Reading B is all the work: loops do as well while it is in the nearest cache.
        return len(product.loops) <= 1 and product.n * product.k >= 1 << 14
    calls = 1
    for depth in product.depths:
        calls *= depth[0]
    for loop in sorted(product.loops)[:-2]:
        calls *= loop[0]
    return calls <= _MOST_CALLS


def generate(build: Any, node: Node) -> list[Step] | None:
    """The step that computes a dot_general, or None where `claims` is false."""
    if not claims(node):
        return None
    product = analyse(node)
    assert product is not None
    flops = 2 * product.k * node.outs[0].size
    for count, _, _ in product.depths:
        flops *= count
    reads = [build.materialize(v) for v in node.ins]
    name = "dot_general"
    if product.m == 1 and not product.crs:
        return [SpecialStep(name, reads, list(node.outs), _vecmat_emit(product), flops=flops)]
    loops = sorted(product.loops, key=lambda axis: axis[0])
    around, batches = loops[:-2], loops[-2:]
    depths = [(0, 0)]
    for count, x, y in product.depths:
        depths = [(i + x * t, j + y * t) for i, j in depths for t in range(count)]

    def emit(b: Builder, reads: list[Value], writes: list[Value]) -> None:
        for more in (False, True):
            some = depths[1:] if more else depths[:1]
            values = gemm.plan(
                product.element, product.m, product.n, product.k, product.a, product.b,
                product.crs, batches, more,
            )  # fmt: skip
            gemm.calls(b, product.element, values, around, some, [*reads, *writes])

    return [SpecialStep(name, reads, list(node.outs), emit, flops=flops)]


def _vecmat_emit(product: Product) -> Any:
    def emit(b: Builder, reads: list[Value], writes: list[Value]) -> None:
        batch = product.loops[0] if product.loops else (1, 0, 0, 0)
        values = vecmat.plan(
            product.element, product.n, product.k, product.a[1], product.b[0], batch
        )
        x, y = reads[::-1] if product.swapped else reads
        name = vecmat.PREFIX + product.element
        b.call(name, "void", table(b.module, values), x, y, writes[0])

    return emit
