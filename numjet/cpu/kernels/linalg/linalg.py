"""cholesky and triangular_solve: small matrices side by side, others by LAPACK and BLAS.

The routines see C-contiguous matrices column by column, that is transposed: lower becomes upper,
left becomes right. For: `kernels.generator`. What would break it: see `lapack`.
"""

from __future__ import annotations

import math

from numjet.cpu import host
from numjet.cpu.builder.builder import Builder, Value
from numjet.cpu.graph.nodes import Node
from numjet.cpu.kernels.linalg import large, side_by_side
from numjet.cpu.kernels.linalg.lapack import (
    Status,
    call,
    copy,
    each_matrix,
    element_of,
    fill,
    nan_where,
)
from numjet.cpu.program.steps import Step
from numjet.cpu.program.values import Values

# Columns (or rows) of right-hand sides that are worth a task.
_SIDES = 16


def cholesky(build: Values, node: Node) -> list[Step] | None:
    """The step of a Cholesky factorization; its triangle is NaN where a matrix is not positive
    definite."""
    x = node.ins[0]
    element = element_of(x.dtype)
    if element is None or not x.size:
        return None
    n, size = x.shape[-1], x.dtype.itemsize
    if side_by_side.fits(x.dtype, math.prod(x.shape[:-2]), n, n):
        return side_by_side.step(build, node, "cholesky", True, rows=n, columns=n)

    def one(b: Builder, ins: list[Value], outs: list[Value], work: Value) -> None:
        a, status = outs[0], Status(b)
        copy(b, ins[0], a, n * n * size)
        if large.alone(x, n):
            large.cholesky(b, element, n, a, status.place)
        else:
            call(b, f"nj_lapack_{element.letter}potrf", "U", n, a, n, status.place)
        failed = status.failed(b)
        with b.loop(0, n) as rows:
            line, start = b.gep(a, b.mul(rows.index, n * size)), b.add(rows.index, 1)
            # Zeros right of the diagonal; NaN elsewhere where the routine gave up.
            left = b.mul(b.sub(n, start), element.reals)
            fill(b, b.gep(line, b.mul(start, size)), left, element.real, 0.0)
            nan_where(b, failed, element, [(line, start, False)])

    return each_matrix(build, node, one, 0, n**3 * element.reals**2 // 3, inplace=True)


def triangular_solve(build: Values, node: Node) -> list[Step] | None:
    """The step of a triangular solve, or None for a matrix to conjugate but not transpose."""
    a, right = node.ins
    out, params = node.outs[0], node.params
    element = element_of(out.dtype)
    if element is None or not right.size or a.dtype != out.dtype or right.dtype != out.dtype:
        return None
    left, lower, transposed = (params[name] for name in ("left_side", "lower", "transpose_a"))
    conjugate = params["conjugate_a"] and element.complex
    if conjugate and not transposed:
        return None
    rows, columns = right.shape[-2:]
    n, size = a.shape[-1], out.dtype.itemsize
    sides = columns if left else rows
    if side_by_side.fits(out.dtype, math.prod(a.shape[:-2]), n, n, sides):
        return _small(build, node, n, sides)
    how = ("C" if conjugate else "T") if transposed else "N"
    words = ("R" if left else "L", "U" if lower else "L", how,
             "U" if params["unit_diagonal"] else "N")  # fmt: skip

    parts = max(1, min(4 * host.cpu_count(), sides // _SIDES))
    share = -(-sides // parts)
    parts = -(-sides // share)

    def one(
        b: Builder, ins: list[Value], outs: list[Value], work: Value, part: Value | None = None
    ) -> None:
        start = b.const(0, "i64") if part is None else b.mul(part, share)
        count = b.min(b.sub(sides, start), share)
        number = b.alloca("i32")
        b.store(b.trunc(count, "i32"), number)
        offset = b.mul(start, size if left else columns * size)
        given, out = (b.gep(p, offset) for p in (ins[1], outs[0]))
        if not left or part is None:
            copy(b, given, out, b.mul(count, n * size))
        else:
            with b.loop(0, n) as row:
                at = b.mul(row.index, columns * size)
                copy(b, b.gep(given, at), b.gep(out, at), b.mul(count, size))
        factor = b.module.array([1.0] + [0.0] * (element.reals - 1), element.real)
        shape = (number, rows) if left else (columns, number)
        call(b, f"nj_blas_{element.letter}trsm", *words, *shape, factor, ins[0], n, out, columns)

    cost = n * rows * columns * element.reals**2
    return each_matrix(build, node, one, 0, cost, inplace=True, parts=parts)


def _small(build: Values, node: Node, n: int, sides: int) -> list[Step]:
    """Side by side. On the right, the system of the transposes: op(a)ᵀ xᵀ = bᵀ."""
    left, lower, transposed, unit = (
        node.params[name] for name in ("left_side", "lower", "transpose_a", "unit_diagonal")
    )
    flipped = transposed == left
    a = (1, n) if flipped else (n, 1)
    b = (sides, 1) if left else (1, n)
    return side_by_side.step(
        build, node, "triangular", True, rows=n, columns=n, sides=sides, ars=a[0], acs=a[1],
        brs=b[0], bcs=b[1], backward=int(lower == flipped), unit=int(unit),
    )  # fmt: skip
