"""LU and QR factors, general systems and products of reflectors by LAPACK.

For: `kernels.generator`. What would break it: see `lapack`.
"""

from __future__ import annotations

import math

from numjet.cpu.builder.builder import Builder, Value
from numjet.cpu.graph.nodes import Node
from numjet.cpu.kernels.linalg import large, side_by_side
from numjet.cpu.kernels.linalg.lapack import (
    Element,
    Scratch,
    Status,
    call,
    copy,
    each_matrix,
    element_of,
    fill,
    nan_where,
    prepare,
    turn,
)
from numjet.cpu.program.steps import Step
from numjet.cpu.program.values import Values

# Columns that LAPACK's blocked QR factorization takes at a time, for its workspace.
_BLOCK = 64


# ------------------------------------------------------------------ lu
def lu(build: Values, node: Node) -> list[Step] | None:
    """LU factors with row pivots, and the permutation they amount to."""
    x = node.ins[0]
    element = element_of(x.dtype)
    if element is None:
        return None
    m, n = x.shape[-2:]
    if side_by_side.fits(x.dtype, math.prod(x.shape[:-2]), m, n):
        return side_by_side.step(build, node, "lu", False, rows=m, columns=n)
    k = min(m, n)
    scratch = Scratch()
    prepare(element)
    cost = m * n * k * element.reals**2
    if m == n and not element.complex and large.alone(x, n):
        panel = scratch.take(n * large.PANEL, element.size)
        large.prepare(element, n)

        def whole(b: Builder, ins: list[Value], outs: list[Value], work: Value) -> None:
            factors, pivots, order = outs
            copy(b, ins[0], factors, x.nbytes)
            large.factor(b, element, n, factors, pivots, b.gep(work, panel), b.alloca("i32"))
            _permutation(b, pivots, k, order, m)

        return each_matrix(build, node, whole, scratch.nbytes, cost)
    transposed = scratch.take(m * n, element.size)

    def one(b: Builder, ins: list[Value], outs: list[Value], work: Value) -> None:
        factors, pivots, order = outs
        work = b.gep(work, transposed)
        turn(b, element, ins[0], work, m, n)
        call(b, f"nj_lapack_{element.letter}getrf", m, n, work, m, pivots, b.alloca("i32"))
        turn(b, element, work, factors, n, m)
        with b.loop(0, k) as each:
            place = b.gep(pivots, b.mul(each.index, 4))
            b.store(b.sub(b.load(place, "i32"), 1), place)
        _permutation(b, pivots, k, order, m)

    return each_matrix(build, node, one, scratch.nbytes, cost)


def _permutation(b: Builder, pivots: Value, count: int, order: Value, size: int) -> None:
    """What `count` exchanges make of 0, 1, …; pivots beyond the last row mean the last."""
    with b.loop(0, size) as each:
        b.store(b.trunc(each.index, "i32"), b.gep(order, b.mul(each.index, 4)))
    with b.loop(0, count) as each:
        pivot = b.load(b.gep(pivots, b.mul(each.index, 4)), "i32")
        pivot = b.zext(b.umin(pivot, size - 1), "i64")
        here, there = (b.gep(order, b.mul(x, 4)) for x in (each.index, pivot))
        x, y = b.load(here, "i32"), b.load(there, "i32")
        b.store(y, here)
        b.store(x, there)


def permutation(build: Values, node: Node) -> list[Step] | None:
    """The permutation of a sequence of row exchanges."""
    count, size = node.ins[0].shape[-1], node.outs[0].shape[-1]

    def one(b: Builder, ins: list[Value], outs: list[Value], work: Value) -> None:
        _permutation(b, ins[0], count, outs[0], size)

    return each_matrix(build, node, one, 0, count + size, ndim=1)


def solve(build: Values, node: Node) -> list[Step] | None:
    """A general system; by division by zero where the matrix is singular."""
    x, right = node.ins
    element = element_of(x.dtype)
    if element is None:
        return None
    n, k = right.shape[-2:]
    if side_by_side.fits(x.dtype, math.prod(x.shape[:-2]), n, n, k):
        return side_by_side.step(build, node, "solve", True, rows=n, columns=n, sides=k)
    scratch = Scratch()
    cost = n * n * (n + 2 * k) * element.reals**2
    if not element.complex and large.alone(x, n):
        return _solve_large(build, node, element, n, k, cost)
    transposed, columns = scratch.take(n * n, element.size), scratch.take(n * k, element.size)
    exchanges = scratch.take(n, 4)
    prepare(element)

    def one(b: Builder, ins: list[Value], outs: list[Value], work: Value) -> None:
        matrix, pivots = b.gep(work, transposed), b.gep(work, exchanges)
        status = Status(b)
        turn(b, element, ins[0], matrix, n, n)
        call(b, f"nj_lapack_{element.letter}getrf", n, n, matrix, n, pivots, status.place)
        sides = outs[0]
        if k > 1:
            sides = b.gep(work, columns)
            turn(b, element, ins[1], sides, n, k)
        else:
            copy(b, ins[1], sides, n * element.size)
        call(b, f"nj_lapack_{element.letter}getrs", "N", n, k, matrix, n, pivots, sides, n,
             b.alloca("i32"))  # fmt: skip
        if k > 1:
            turn(b, element, sides, outs[0], k, n)
        nan_where(b, status.refused(b), element, [(outs[0], n * k, False)])

    return each_matrix(build, node, one, scratch.nbytes, cost, inplace=True)


def _solve_large(
    build: Values, node: Node, element: Element, n: int, k: int, cost: int
) -> list[Step]:
    scratch = Scratch()
    copied, panel = (scratch.take(n * count, element.size) for count in (n, large.PANEL))
    exchanges, rows = scratch.take(n, 4), scratch.take(n, 4)
    prepare(element)
    large.prepare(element, n)

    def one(b: Builder, ins: list[Value], outs: list[Value], work: Value) -> None:
        a, pivots, order = (b.gep(work, at) for at in (copied, exchanges, rows))
        status = Status(b)
        copy(b, ins[0], a, n * n * element.size)
        large.factor(b, element, n, a, pivots, b.gep(work, panel), status.place)
        _permutation(b, pivots, n, order, n)
        large.solve(b, element, n, k, a, order, ins[1], outs[0])
        nan_where(b, status.refused(b), element, [(outs[0], n * k, False)])

    return each_matrix(build, node, one, scratch.nbytes, cost)


# ------------------------------------------------------------------ qr
def qr(build: Values, node: Node) -> list[Step] | None:
    """QR factors, Q (where it is asked for) and R, then the order of the columns when pivoting."""
    x, params = node.ins[0], node.params
    element = element_of(x.dtype)
    if element is None:
        return None
    m, n = x.shape[-2:]
    k = min(m, n)
    across = m if params["full_matrices"] else k
    pivoting, wanted = params["pivoting"], params["compute_q"]
    scratch = Scratch()
    transposed = scratch.take(m * max(n, across), element.size)
    taus = scratch.take(k, element.size)
    lwork = max(n, across) * _BLOCK + 3 * n + 1
    space = scratch.take(lwork, element.size)
    reals, places = scratch.take(2 * n, element.size), scratch.take(n, 4)
    prepare(element)

    def one(b: Builder, ins: list[Value], outs: list[Value], work: Value) -> None:
        a, tau, rest = b.gep(work, transposed), b.gep(work, taus), b.gep(work, space)
        info = b.alloca("i32")
        upper = outs[wanted]
        turn(b, element, ins[0], a, m, n)
        if pivoting:
            order = b.gep(work, places)
            fill(b, order, n, "i32", 0)
            extra = [b.gep(work, reals)] if element.complex else []
            call(b, f"nj_lapack_{element.letter}geqp3", m, n, a, m, order, tau, rest, lwork,
                 *extra, info)  # fmt: skip
            with b.loop(0, n) as each:
                at = b.mul(each.index, 4)
                b.store(b.sub(b.load(b.gep(order, at), "i32"), 1), b.gep(outs[wanted + 1], at))
        else:
            call(b, f"nj_lapack_{element.letter}geqrf", m, n, a, m, tau, rest, lwork, info)
        turn(b, element, a, upper, n, across, step=m, to=n)
        with b.loop(1, across) as row:
            line = b.gep(upper, b.mul(row.index, n * element.size))
            left = b.mul(b.min(row.index, n), element.reals)
            fill(b, line, left, element.real, 0.0)
        if wanted:
            _reflect(b, element, m, across, k, a, tau, rest, lwork)
            turn(b, element, a, outs[0], across, m)

    cost = 2 * m * n * k * (1 + wanted) * element.reals**2
    return each_matrix(build, node, one, scratch.nbytes, cost)


def _reflect(b: Builder, element: Element, m: int, n: int, k: int, a: Value, tau: Value,
             space: Value, lwork: int) -> None:  # fmt: skip
    """The first n columns of the product of the k reflectors below the diagonal of `a`."""
    name = "ungqr" if element.complex else "orgqr"
    call(b, f"nj_lapack_{element.letter}{name}", m, n, k, a, m, tau, space, lwork, b.alloca("i32"))


def householder_product(build: Values, node: Node) -> list[Step] | None:
    """The product of reflectors, its first columns."""
    x, taus = node.ins
    element = element_of(x.dtype)
    m, n = x.shape[-2:]
    if element is None or n > m:
        return None
    scratch = Scratch()
    transposed, lwork = scratch.take(m * n, element.size), n * _BLOCK
    space = scratch.take(lwork, element.size)
    prepare(element)
    k = taus.shape[-1]

    def one(b: Builder, ins: list[Value], outs: list[Value], work: Value) -> None:
        a = b.gep(work, transposed)
        turn(b, element, ins[0], a, m, n)
        _reflect(b, element, m, n, k, a, ins[1], b.gep(work, space), lwork)
        turn(b, element, a, outs[0], n, m)

    return each_matrix(build, node, one, scratch.nbytes, 2 * m * n * k * element.reals**2)
