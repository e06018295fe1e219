"""dot_general as calls of the product library (`gemm`), for floats and shapes where that pays.

`claims(node)` says whether it does; all other products are loops (`cpu.graph.products`), which fuse
with their neighbours. Axes that lie next to each other in memory, in both operands, count as one;
what cannot be one row, one column and one depth becomes a loop around the product.
For: `kernels.generator`. What would break it: an operand that is not C-contiguous.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from numjet.base.record import NamedTuple, record
from numjet.core.avals import ShapedArray
from numjet.core.memo import remembered
from numjet.core.structural import convert_element_type_p
from numjet.cpu import host
from numjet.cpu.builder.builder import Builder, Value
from numjet.cpu.graph.nodes import Node, Val
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.idioms import (
    FOURS,
    PAIRS,
    lanes_of,
    merge,
    parallel_call,
    size_of,
    strides,
    table,
)
from numjet.cpu.kernels.linalg import lapack
from numjet.cpu.kernels.products import gemm, matvec, small, vecmat
from numjet.cpu.kernels.products.packed import packed
from numjet.cpu.program.steps import Function, SpecialStep, Step
from numjet.cpu.program.values import Values
from numjet.ops.dot import product_dtypes

ELEMENTS = {"float32": "float", "float64": "double"}
ELEMENT_BYTES = {"float": 4, "double": 8}
# Integers that the library multiplies: from so much work on, of a product and of all in its loops.
INTEGERS = {"int32": "i32", "uint32": "i32", "int64": "i64", "uint64": "i64"}
SMALLEST_INTEGERS = 1 << 12, 1 << 16
# Complex products run in BLAS; the letter of its routines.
LETTERS = {"complex64": "c", "complex128": "z"}
# Smaller products run as loops, fused with what follows.
SMALLEST, SMALLEST_BATCHED, SMALLEST_COMPLEX = 500, 1500, 8000
# A matrix of this many bytes is beyond the nearest caches.
LARGE_MATRIX = 1 << 20
# One that is multiplied with a few vectors is read along its depths from so many bytes on.
FEW_VECTORS_BYTES = 1 << 16
_MOST_CALLS = 64
# A left operand whose rows lie next to each other is read a line of the cache and, where each of
# its depths is on another page, an address translation an element: so deep, so far apart and with
# so many columns to multiply with, it is transposed before.
TRANSPOSED_DEPTH, TRANSPOSED_STEP, TRANSPOSED_COLUMNS = 256, 1024, 192
# Multiplications an element of an operand from which a transpose of it is worth while.
TRANSPOSED_WORK = 4
# Rows of a complex product that are worth a thread.
_COMPLEX_ROWS = 16


@record(frozen=True, slots=True)
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


class Window(NamedTuple):
    """A part of an operand that a product reads in place: `start` bytes in, of this shape, with
    these byte strides."""

    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@functools.cache  # NumPy makes up a dtype's name anew each time, in 5 us
def _element(dtype: np.dtype) -> str | None:
    for elements in (ELEMENTS, LETTERS, INTEGERS):
        if dtype.name in elements:
            return elements[dtype.name]
    return None


def analyse(node: Node) -> Product | None:
    """The product of a node, or None where it has no row or no column.

    Beside those of dot_general a node may have the params `windows`, a `Window` or None for each
    operand, `transposed`, the order of the product's axes in its result, and `element`, which of
    `packed.packed` its elements are."""
    lhs, rhs = node.ins
    out = node.outs[0]
    params = node.params
    element = params.get("element") or _element(out.dtype)
    if element is None or lhs.dtype != out.dtype or rhs.dtype != out.dtype:
        return None
    return _analysed(
        element, out.dtype.itemsize, (lhs.shape, rhs.shape, out.shape),
        params["dimension_numbers"], params.get("windows", (None, None)), params.get("transposed"),
    )  # fmt: skip


@remembered("forms of products", 256)
def _analysed(
    element: str, size: int, shapes: tuple[tuple[int, ...], ...], numbers: tuple,
    windows: tuple[Window | None, Window | None], transposed: tuple[int, ...] | None,
) -> Product | None:  # fmt: skip
    (lc, rc), (lb, rb) = numbers
    left, right, _ = shapes
    ls, rs, os = (strides(shape, size) for shape in shapes)
    if windows[0] is not None:
        _, left, ls = windows[0]  # type: ignore[assignment]
    if windows[1] is not None:
        _, right, rs = windows[1]  # type: ignore[assignment]
    if transposed is not None:
        os = [os[transposed.index(a)] for a in range(len(os))]
    lf = [a for a in range(len(left)) if a not in lc and a not in lb]
    rf = [a for a in range(len(right)) if a not in rc and a not in rb]
    batch = merge(
        [(left[i], ls[i], rs[j], os[k]) for k, (i, j) in enumerate(zip(lb, rb, strict=True))]
    )
    rows = merge([(left[i], ls[i], os[len(lb) + k]) for k, i in enumerate(lf)])
    columns = merge([(right[j], rs[j], os[len(lb) + len(lf) + k]) for k, j in enumerate(rf)])
    depth = merge(
        sorted(
            ((left[i], ls[i], rs[j]) for i, j in zip(lc, rc, strict=True)),
            key=lambda axis: -axis[1],
        )
    )
    if bool(rows) != bool(columns):
        return _vector_matrix(element, batch, rows, columns, depth, size)
    if not rows:
        return None
    # The innermost columns must be C's unit stride; among rows and depths the longest is best.
    n, bcs, ccs = columns.pop()
    if ccs != size:  # a transposed result whose last axes are of length 1
        return None
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
    n, bcs, ccs = (rows or columns)[0]
    if ccs != size:
        return None
    swapped = bool(rows)
    if swapped:
        acs, brs = brs, acs
        batch = [(c, y, x, z) for c, x, y, z in batch]
    if brs == size and acs == size and n * k * size >= LARGE_MATRIX:
        return Product(element, 1, n, k, (0, acs), (brs, bcs), 0, batch, [], swapped)
    if bcs != size or k < 8 or n * size < 64:
        return None
    return Product(element, 1, n, k, (0, acs), (brs, bcs), 0, batch, [], swapped)


def claims(node: Node) -> bool:
    """Whether the library is the place for this product."""
    product = analyse(node)
    if product is None or product.k < 4:
        return False
    work = product.m * product.n * product.k
    if product.element in LETTERS.values():
        if work < SMALLEST_COMPLEX or (product.m == 1 and not product.crs):
            return False
        return len(product.loops) <= 2 and not product.depths and _blas(product) is not None
    if product.element not in ELEMENT_BYTES:
        if not _integers_pay(product, work):
            return False
    elif work < (SMALLEST_BATCHED if product.loops else SMALLEST):
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


def _integers_pay(product: Product, work: int) -> bool:
    """Whether the library is faster than loops for a product of integers."""
    if product.m == 1 and not product.crs:
        return False
    if product.element in (PAIRS, FOURS):  # who made them knows
        return work >= SMALLEST_BATCHED
    rows, columns = (4, 8) if product.b[1] == size_of(product.element) else (2, 2)
    least, together = SMALLEST_INTEGERS
    if work < least or product.m < rows or product.n < columns:
        return False
    return work * math.prod([loop[0] for loop in product.loops]) >= together


def depths_last(node: Node) -> bool:
    """Whether a right operand that is transposed is to have its depths last."""
    product = analyse(node)
    return product is not None and _few_vectors(product)


def to_transpose(node: Node) -> int | None:
    """The operand that a product which the library takes is better read transposed, if there is
    one: whose depths lie apart from each other, whose elements that lie next to each other are of
    different products, or whose rows are read with so large a stride."""
    product = analyse(node)
    if product is None or product.element not in ELEMENTS.values():
        return None
    if product.m == 1 and not product.crs:
        return None
    if _few_vectors(product) and product.b[0] != node.outs[0].dtype.itemsize:
        return 1
    work = product.m * product.n * product.k
    for count in (*[d[0] for d in product.depths], *[loop[0] for loop in product.loops]):
        work *= count
    pays = [side for side in (0, 1) if work >= TRANSPOSED_WORK * node.ins[side].size]
    if product.depths and product.k < TRANSPOSED_DEPTH:
        for side, axes in zip((0, 1), node.params["dimension_numbers"][0], strict=True):
            if side in pays and max(axes) - min(axes) >= len(axes):
                return side
    for side, steps in enumerate((product.a, product.b)):
        if side in pays and node.outs[0].dtype.itemsize not in steps:
            return side
    if (
        not product.depths
        and product.a[0] * 4 <= product.a[1]
        and product.a[1] >= TRANSPOSED_STEP
        and product.k >= TRANSPOSED_DEPTH
        and product.n >= TRANSPOSED_COLUMNS
        and product.m >= gemm.TILE_ROWS
    ):
        return 0
    return None


def _few_vectors(product: Product) -> bool:
    """Whether a product is one of a large matrix, read along its depths, and a few vectors."""
    if product.element not in ELEMENT_BYTES:
        return False
    size = ELEMENT_BYTES[product.element]
    few, many = sorted((product.m, product.n))
    columns = product.n == few  # few of the right operand
    return (
        1 < few <= matvec.MOST_VECTORS
        and not product.depths
        and len(product.loops) <= 1
        and product.a[1] == size
        and (columns or product.b[0] == size)
        and product.k >= (2 if few <= 5 else 6) * lanes_of(product.element)
        and many * product.k * size >= FEW_VECTORS_BYTES
    )


def operands(build: Values, node: Node) -> list[Val]:
    """A product's operands in memory."""
    reads = [build.materialize(v) for v in node.ins]
    for side, window in enumerate(node.params.get("windows", ())):
        if window is not None:
            reads[side] = reads[side].view(window.shape, window.start)
    return reads


def generate(build: Values, node: Node) -> list[Step] | None:
    """The step that computes a dot_general, or None where `claims` is false."""
    if not claims(node):
        return None
    product = analyse(node)
    assert product is not None
    flops = 2 * product.k * node.outs[0].size
    for count, _, _ in product.depths:
        flops *= count
    reads = operands(build, node)
    name = "dot_general"
    if product.m == 1 and not product.crs:
        return [SpecialStep(name, reads, list(node.outs), _vecmat_emit(product), flops=flops)]
    if product.element in LETTERS.values():
        return [SpecialStep(name, reads, list(node.outs), _blas_emit(product), flops=4 * flops)]
    if _few_vectors(product) and product.b[0] == ELEMENT_BYTES[product.element]:
        return [SpecialStep(name, reads, list(node.outs), _few_vectors_emit(product), flops=flops)]
    spec = small.Spec(
        product.element, product.m, product.n, product.k, product.a, product.b, product.crs,
        tuple(product.loops),
    )  # fmt: skip
    few = flops < gemm.PARALLEL_FLOPS and product.element in ELEMENT_BYTES
    if few and not product.depths and small.fits(spec):
        known = Known(spec, True)
        return [
            SpecialStep(
                name, reads, list(node.outs), known.function(), [], flops, True, product=known
            )
        ]
    depths = [(0, 0)]
    for count, x, y in product.depths:
        depths = [(i + x * t, j + y * t) for i, j in depths for t in range(count)]
    function = gemm.function(
        product.element, product.m, product.n, product.k, product.a, product.b, product.crs,
        product.loops, depths,
    )  # fmt: skip
    plain = len(depths) == 1 and len(product.loops) <= 2
    return [
        SpecialStep(
            name, reads, list(node.outs), function, flops=flops,
            product=Known(spec, False) if plain else None,
        )
    ]  # fmt: skip


@record(frozen=True, slots=True)
class Known:
    """A product that loops may be put behind: what it computes, and whether by `small`."""

    spec: small.Spec
    small: bool

    def function(self, epilogue: gemm.Epilogue | None = None) -> Function:
        """The function that computes it, `epilogue` behind it."""
        spec = self.spec
        if self.small:
            return small.function(spec, epilogue)
        return gemm.function(
            spec.element, spec.m, spec.n, spec.k, spec.a, spec.b, spec.crs, spec.loops,
            epilogue=epilogue,
        )  # fmt: skip

    def cut(self) -> tuple[list[tuple[int, int]], gemm.Cut]:
        """The loops around pieces of C, outer first, as (count, stride of C); the cut in them."""
        spec = self.spec
        if self.small:
            loops, cut = list(spec.loops), gemm.Cut(spec.n, 1, 1, spec.m)
        else:
            loops = sorted(spec.loops, key=lambda loop: loop[0])
            cut = gemm.cut(spec.element, spec.m, spec.n, spec.k, spec.b, loops, behind=True)
        return [(loop[0], loop[3]) for loop in loops], cut


def widened(node: Node) -> list[Node] | None:
    """The product of 16-bit (or mixed) floats in the dtype it is summed in, and that of small
    integers packed; None where the library would not run that either."""
    out = node.outs[0]
    _, work = product_dtypes(
        node.ins[0].dtype, node.ins[1].dtype, node.params["preferred_element_type"]
    )
    if work.kind in "iu":
        return packed(node, work)
    if work.name not in ELEMENTS or any(v.dtype.kind == "c" for v in node.ins):
        return None
    nodes: list[Node] = []

    def cast(x: Val, dtype: Any, target: Val | None = None) -> Val:
        if x.dtype == dtype:
            return x
        made = target or Val.of(ShapedArray(x.shape, np.dtype(dtype)))
        params = {"new_dtype": np.dtype(dtype), "weak_type": False}
        nodes.append(node.instead([x], [made], params, convert_element_type_p))
        return made

    ins = [cast(x, work) for x in node.ins]
    result = out if out.dtype == work else Val.of(ShapedArray(out.shape, work))
    params = {**node.params, "preferred_element_type": None}
    product = Node(node.primitive, params, ins, [result], node.rule, node.effects, node.source)
    if not claims(product):
        return None
    result.node = product
    nodes.append(product)
    if result is not out:
        cast(result, out.dtype, out)
    return nodes


def _blas(product: Product) -> tuple[tuple[str, int], tuple[str, int]] | None:
    """How BLAS sees the operands, rows as columns: (transposed, leading dimension) of a and b."""
    size = 8 if product.element == "c" else 16
    found = []
    for long, short in (product.a, product.b):
        if short == size:
            found.append(("N", long // size))
        elif long == size:
            found.append(("T", short // size))
        else:
            return None
    return found[0], found[1]


def _blas_emit(product: Product) -> Any:
    ways = _blas(product)
    assert ways is not None
    (turn_a, lda), (turn_b, ldb) = ways
    real, size = ("float", 8) if product.element == "c" else ("double", 16)
    loops = [(1, 0, 0, 0)] * (2 - len(product.loops)) + product.loops
    (many, *outer), (some, *inner) = loops
    repeats = many * some
    blocks, flops = 1, 8 * repeats * product.m * product.n * product.k
    if flops >= gemm.PARALLEL_FLOPS:
        cores = host.cpu_count()
        blocks = max(1, min(-(-cores // repeats), product.m // _COMPLEX_ROWS))
    rows = -(-product.m // blocks)
    blocks = -(-product.m // rows)
    tasks = repeats * blocks

    def emit(b: Builder, reads: list[Value], writes: list[Value]) -> None:
        def task(b: Builder, pointers: list[Value], begin: Value, end: Value) -> None:
            one = b.module.array([1.0, 0.0, 0.0, 0.0], real)
            height = b.alloca("i32")
            with b.loop(begin, end) as each:
                rest, first = b.udiv(each.index, blocks), b.mul(b.urem(each.index, blocks), rows)
                b.store(b.trunc(b.min(b.sub(product.m, first), rows), "i32"), height)
                one_loop, other = b.udiv(rest, some), b.urem(rest, some)
                steps = zip(pointers, outer, inner, (product.a[0], 0, product.crs), strict=True)
                left, right, result = [
                    b.gep(p, b.add(b.add(b.mul(one_loop, x), b.mul(other, y)), b.mul(first, z)))
                    for p, x, y, z in steps
                ]
                lapack.call(
                    b, f"nj_blas_{product.element}gemm", turn_b, turn_a, product.n, height,
                    product.k, one, right, max(ldb, 1), left, max(lda, 1), b.gep(one, size),
                    result, product.crs // size,
                )  # fmt: skip

        grain = tasks
        if flops >= gemm.PARALLEL_FLOPS:
            grain = max(1, tasks * gemm.PARALLEL_FLOPS // (8 * flops))
        parallel_call(b, task, [*reads, *writes], tasks, grain)

    return emit


def _vecmat_emit(product: Product) -> Any:
    batch = product.loops[0] if product.loops else (1, 0, 0, 0)
    element, n, k = product.element, product.n, product.k
    (_, xs), (brs, bcs) = product.a, product.b
    size = ELEMENT_BYTES[element]
    if brs < bcs:
        values = matvec.plan(n, k, bcs, batch, 1, (0, size, 0))
        return _call(f"{matvec.PREFIX}1_{element}", values, product.swapped)
    values = vecmat.plan(element, n, k, xs, brs, batch)
    return _call(vecmat.PREFIX + element, values, product.swapped)


def _few_vectors_emit(product: Product) -> Any:
    """A matrix times a few vectors, which are the left operand or the columns of the right one."""
    batch = product.loops[0] if product.loops else (1, 0, 0, 0)
    size, k = ELEMENT_BYTES[product.element], product.k
    swapped = product.n <= matvec.MOST_VECTORS
    if swapped:
        vectors, rows, ars, xrs = product.n, product.m, product.a[0], product.b[1]
        steps = (xrs, product.crs, size)
        batch = (batch[0], batch[2], batch[1], batch[3])
    else:
        vectors, rows, ars, xrs = product.m, product.n, product.b[1], product.a[0]
        steps = (xrs, size, product.crs)
    values = matvec.plan(rows, k, ars, batch, vectors, steps)
    return _call(f"{matvec.PREFIX}{vectors}_{product.element}", values, swapped)


def _call(symbol: str, values: list[int], swapped: bool) -> Any:
    """A call of a library's function on the vectors, the matrix and the result."""
    libraries.start(symbol)

    def emit(b: Builder, reads: list[Value], writes: list[Value]) -> None:
        x, y = reads[::-1] if swapped else reads
        b.call(symbol, "void", table(b.module, values), x, y, writes[0])

    return emit
