"""LU and Cholesky factors of one large matrix, and real systems, cut over the thread pool.

LU: panels of PANEL columns are transposed and factored by LAPACK; what is right of them is solved
by BLAS, a share of the columns a task, and updated by the product library (`gemm`). Cholesky:
LAPACK factors squares on the diagonal, the rows below are solved and updated by BLAS, some rows a
task. For: `factors` and `linalg`. What would break it: a matrix that is not C-contiguous, or of one
panel.
"""

from __future__ import annotations

from typing import Any

from numjet.cpu import host
from numjet.cpu.builder.builder import Builder, Value, vector
from numjet.cpu.graph.nodes import Val
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.idioms import lanes_of, parallel_call, table
from numjet.cpu.kernels.linalg.lapack import TURN_PREFIX, Element, call, copy
from numjet.cpu.kernels.products import gemm

# Columns of a panel: its factors are not cut, what it updates is.
PANEL = 64
# Rows of a square of Cholesky's factor, and of a task below it.
SQUARE, _ROWS = 64, 64
# Rows from which two threads gain more than the panels lose.
LEAST_ROWS = 192
# Columns of right-hand sides that are worth a task.
_SIDES = 16


def alone(x: Val, n: int) -> bool:
    """Whether a square matrix is alone and so large that all threads factor it together."""
    return n >= LEAST_ROWS and x.size == n * n


def panels(n: int) -> int:
    """How many there are."""
    return -(-n // PANEL)


def prepare(element: Element, n: int) -> None:
    """Begin to make what the products of the updates need of the library."""
    words = {word for values in _plans(element, n) for word in values if isinstance(word, str)}
    symbols = sorted(word for word in words if word.startswith("nj_"))
    libraries.start(gemm.PREFIX + element.real, *symbols)


def _plans(element: Element, n: int) -> list[list[Any]]:
    """The tables of the updates, a panel each: the rest -= its rows below · its columns right."""
    size, found = element.size, []
    for start in range(0, n - PANEL, PANEL):
        rest = n - start - PANEL
        found.append(gemm.plan(
            element.real, rest, rest, PANEL, (size, (n - start) * size), (n * size, size),
            n * size, accumulate=True,
        ))  # fmt: skip
    return found


def factor(
    b: Builder, element: Element, n: int, a: Value, pivots: Value, panel: Value, failed: Value
) -> None:
    """LU factors of `a` in its place, with the row exchanged in each step.

    panel: scratch of n · PANEL elements. failed: where an i32 is set to what LAPACK reports.
    """
    size, plans = element.size, _plans(element, n)
    sizes = table(b.module, [word for plan in plans for word in plan])
    heights, info = b.alloca("i32", 2), b.alloca("i32")
    width_at = b.gep(heights, 4)
    words = b.alloca("i64", 2)
    row = n * size
    b.store(b.const(0, "i32"), failed)
    with b.loop(0, panels(n)) as each:
        start = b.mul(each.index, PANEL)
        m = b.sub(n, start)
        width = b.min(m, PANEL)
        rest = b.sub(m, width)
        b.store(b.trunc(m, "i32"), heights)
        b.store(b.trunc(width, "i32"), width_at)
        corner = b.gep(a, b.mul(start, row + size))
        here = b.gep(pivots, b.mul(start, 4))
        high, wide = b.mul(m, size), b.const(row, "i64")
        turn = f"{TURN_PREFIX}{8 * size}"
        b.call(turn, "void", corner, panel, m, width, wide, high)
        call(b, f"nj_lapack_{element.letter}getrf", heights, width_at, panel, heights, here, info)
        b.store(b.or_(b.load(failed, "i32"), b.load(info, "i32")), failed)
        b.call(turn, "void", panel, corner, width, m, high, wide)
        with b.loop(0, width) as step:
            place = b.gep(here, b.mul(step.index, 4))
            pivot = b.add(b.sub(b.sext(b.load(place, "i32"), "i64"), 1), start)
            b.store(b.trunc(pivot, "i32"), place)
            line = b.add(start, step.index)
            with b.if_(b.icmp("ne", pivot, line)):
                one, two = (b.gep(a, b.mul(x, row)) for x in (line, pivot))
                _exchange(b, element, one, two, start)
                right = b.mul(b.add(start, width), size)
                _exchange(b, element, b.gep(one, right), b.gep(two, right), rest)
        with b.if_(b.icmp("sgt", rest, 0)):
            right = b.gep(corner, PANEL * size)
            b.store(m, words)
            b.store(rest, b.gep(words, 8))
            _solve_right(b, element, n, panel, right, words)
            # The product library adds: what is below the panel's square is negated.
            with b.loop(0, width) as column:
                first = b.gep(panel, b.mul(b.add(b.mul(column.index, m), width), size))
                _negate(b, element, first, rest)
            plan = b.gep(sizes, b.mul(each.index, 8 * len(gemm.FIELDS)))
            below = b.gep(panel, b.mul(width, size))
            under = b.gep(right, PANEL * row)
            b.call(gemm.PREFIX + element.real, "void", plan, below, right, under,
                   b.const(0, "ptr"))  # fmt: skip


def _solve_right(b: Builder, element: Element, n: int, panel: Value, right: Value,
                 words: Value) -> None:  # fmt: skip
    """The rows of U right of a panel; words: the panel's rows, and how many columns are right."""
    size, tasks = element.size, 2 * host.cpu_count()

    def task(b: Builder, pointers: list[Value], begin: Value, end: Value) -> None:
        panel, right, words = pointers
        m, rest = b.load(words, "i64"), b.load(b.gep(words, 8), "i64")
        share = b.and_(b.add(b.div(rest, tasks), _SIDES), -_SIDES)
        heights = b.alloca("i32", 2)
        b.store(b.trunc(m, "i32"), b.gep(heights, 4))
        one = b.module.array([1.0], element.real)
        with b.loop(begin, end) as each:
            start = b.mul(each.index, share)
            count = b.min(share, b.sub(rest, start))
            with b.if_(b.icmp("sgt", count, 0)):
                b.store(b.trunc(count, "i32"), heights)
                call(
                    b, f"nj_blas_{element.letter}trsm", "R", "L", "T", "U", heights, PANEL, one,
                    panel, b.gep(heights, 4), b.gep(right, b.mul(start, size)), n,
                )  # fmt: skip

    parallel_call(b, task, [panel, right, words], tasks, 1)


def solve(b: Builder, element: Element, n: int, k: int, factors: Value, order: Value,
          sides: Value, out: Value) -> None:  # fmt: skip
    """x with L U x = the rows of `sides` in `order`, into other memory."""
    size = element.size
    with b.loop(0, n) as row:
        place = b.sext(b.load(b.gep(order, b.mul(row.index, 4)), "i32"), "i64")
        copy(b, b.gep(sides, b.mul(place, k * size)), b.gep(out, b.mul(row.index, k * size)),
             k * size)  # fmt: skip
    tasks = max(1, min(2 * host.cpu_count(), k // _SIDES))
    share = -(-k // tasks)
    tasks = -(-k // share)

    def task(b: Builder, pointers: list[Value], begin: Value, end: Value) -> None:
        factors, out = pointers
        one, count = b.module.array([1.0], element.real), b.alloca("i32")
        with b.loop(begin, end) as each:
            start = b.mul(each.index, share)
            b.store(b.trunc(b.min(b.sub(k, start), share), "i32"), count)
            columns = b.gep(out, b.mul(start, size))
            for uplo, unit in (("U", "U"), ("L", "N")):  # L and U, as BLAS sees them
                call(b, f"nj_blas_{element.letter}trsm", "R", uplo, "N", unit, count, n, one,
                     factors, n, columns, k)  # fmt: skip

    parallel_call(b, task, [factors, out], tasks, 1)


def cholesky(b: Builder, element: Element, n: int, a: Value, failed: Value) -> None:
    """The lower Cholesky factor in place of `a`; what is above the diagonal is overwritten, too.

    failed: where an i32 is set to what LAPACK reports of some square.
    """
    words, info = b.alloca("i64", 1), b.alloca("i32")
    sizes = b.alloca("i32")
    b.store(b.const(0, "i32"), failed)
    with b.loop(0, n, SQUARE) as each:
        width = b.min(b.sub(n, each.index), SQUARE)
        b.store(b.trunc(width, "i32"), sizes)
        corner = b.gep(a, b.mul(each.index, (n + 1) * element.size))
        call(b, f"nj_lapack_{element.letter}potrf", "U", sizes, corner, n, info)
        b.store(b.or_(b.load(failed, "i32"), b.load(info, "i32")), failed)
        b.store(b.sub(b.sub(n, each.index), SQUARE), words)
        for step in (_solve_below, _update_below):
            parallel_call(b, step(element, n), [corner, words], -(-n // _ROWS), 1)


def _rows_below(b: Builder, words: Value, index: Value) -> tuple[Value, Value]:
    """The first of the rows below a square that task `index` has, and how many they are."""
    start = b.mul(index, _ROWS)
    return start, b.min(b.sub(b.load(words, "i64"), start), _ROWS)


def _solve_below(element: Element, n: int) -> Any:
    """The task that solves its rows below a square of the factor."""

    def task(b: Builder, pointers: list[Value], begin: Value, end: Value) -> None:
        corner, words = pointers
        one = b.module.array([1.0] + [0.0] * (element.reals - 1), element.real)
        number = b.alloca("i32")
        with b.loop(begin, end) as each:
            start, count = _rows_below(b, words, each.index)
            with b.if_(b.icmp("sgt", count, 0)):
                b.store(b.trunc(count, "i32"), number)
                rows = b.gep(corner, b.mul(b.add(start, SQUARE), n * element.size))
                call(
                    b, f"nj_blas_{element.letter}trsm", "L", "U", "C" if element.complex else "T",
                    "N", SQUARE, number, one, corner, n, rows, n,
                )  # fmt: skip

    return task


def _update_below(element: Element, n: int) -> Any:
    """The task that subtracts from its rows their products with the rows above them."""

    def task(b: Builder, pointers: list[Value], begin: Value, end: Value) -> None:
        corner, words = pointers
        minus = b.module.array([-1.0] + [0.0] * (element.reals - 1), element.real)
        one = b.module.array([1.0] + [0.0] * (element.reals - 1), element.real)
        numbers = b.alloca("i32", 2)
        with b.loop(begin, end) as each:
            start, count = _rows_below(b, words, each.index)
            with b.if_(b.icmp("sgt", count, 0)):
                b.store(b.trunc(b.add(start, count), "i32"), numbers)
                b.store(b.trunc(count, "i32"), b.gep(numbers, 4))
                first = b.gep(corner, SQUARE * n * element.size)
                rows = b.gep(first, b.mul(start, n * element.size))
                call(
                    b, f"nj_blas_{element.letter}gemm", "C" if element.complex else "T", "N",
                    numbers, b.gep(numbers, 4), SQUARE, minus, first, n, rows, n, one,
                    b.gep(rows, SQUARE * element.size), n,
                )  # fmt: skip

    return task


def _vectors(b: Builder, element: Element, count: Value, body: Any) -> None:
    """body(byte offset, type) for whole vectors of `count` elements, then for single ones."""
    lanes = lanes_of(element.real)
    whole = b.and_(count, -lanes)
    with b.loop(0, whole, lanes) as each:
        body(b.mul(each.index, element.size), vector(element.real, lanes))
    with b.loop(whole, count) as each:
        body(b.mul(each.index, element.size), element.real)


def _exchange(b: Builder, element: Element, one: Value, two: Value, count: Value) -> None:
    def body(offset: Value, kind: str) -> None:
        here, there = b.gep(one, offset), b.gep(two, offset)
        x, y = b.load(here, kind, element.size), b.load(there, kind, element.size)
        b.store(y, here, element.size)
        b.store(x, there, element.size)

    _vectors(b, element, count, body)


def _negate(b: Builder, element: Element, first: Value, count: Value) -> None:
    def body(offset: Value, kind: str) -> None:
        place = b.gep(first, offset)
        b.store(b.neg(b.load(place, kind, element.size)), place, element.size)

    _vectors(b, element, count, body)
