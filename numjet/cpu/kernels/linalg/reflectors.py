"""QR factors as reflectors, products with them, tridiagonal forms and systems by LAPACK.

For: `kernels.generator`. What would break it: see `lapack`.
"""

from __future__ import annotations

from numjet.cpu.builder.builder import Builder, Value
from numjet.cpu.graph.nodes import Node
from numjet.cpu.kernels.linalg.lapack import (
    Scratch,
    Status,
    call,
    copy,
    each_matrix,
    element_of,
    nan_where,
    prepare,
    turn,
)
from numjet.cpu.program.steps import Step
from numjet.cpu.program.values import Values

# Columns that LAPACK's blocked routines take at a time, for their workspace.
_BLOCK = 64


def geqrf(build: Values, node: Node) -> list[Step] | None:
    """R and the reflectors of a QR factorization, and their factors."""
    x = node.ins[0]
    element = element_of(x.dtype)
    if element is None:
        return None
    m, n = x.shape[-2:]
    scratch = Scratch()
    transposed, lwork = scratch.take(m * n, element.size), n * _BLOCK
    space = scratch.take(lwork, element.size)
    prepare(element)

    def one(b: Builder, ins: list[Value], outs: list[Value], work: Value) -> None:
        a = b.gep(work, transposed)
        turn(b, element, ins[0], a, m, n)
        call(b, f"nj_lapack_{element.letter}geqrf", m, n, a, m, outs[1], b.gep(work, space), lwork,
             b.alloca("i32"))  # fmt: skip
        turn(b, element, a, outs[0], n, m)

    return each_matrix(build, node, one, scratch.nbytes, 2 * m * n * min(m, n) * element.reals**2)


def ormqr(build: Values, node: Node) -> list[Step] | None:
    """The product of reflectors with a matrix, from the left or the right."""
    a, taus, c = node.ins
    element = element_of(c.dtype)
    if element is None:
        return None
    m, n = c.shape[-2:]
    rows, columns = a.shape[-2:]
    k, left = taus.shape[-1], node.params["left"]
    name = "unmqr" if element.complex else "ormqr"
    transposed = ("C" if element.complex else "T") if node.params["transpose"] else "N"
    scratch = Scratch()
    factors, matrix = scratch.take(rows * columns, element.size), scratch.take(m * n, element.size)
    lwork = (n if left else m) * _BLOCK + (_BLOCK + 1) * _BLOCK
    space = scratch.take(lwork, element.size)
    prepare(element)

    def one(b: Builder, ins: list[Value], outs: list[Value], work: Value) -> None:
        reflectors, x = b.gep(work, factors), b.gep(work, matrix)
        turn(b, element, ins[0], reflectors, rows, columns)
        turn(b, element, ins[2], x, m, n)
        call(b, f"nj_lapack_{element.letter}{name}", "L" if left else "R", transposed, m, n, k,
             reflectors, rows, ins[1], x, m, b.gep(work, space), lwork,
             b.alloca("i32"))  # fmt: skip
        turn(b, element, x, outs[0], n, m)

    return each_matrix(build, node, one, scratch.nbytes, 4 * m * n * k * element.reals**2)


def tridiagonal(build: Values, node: Node) -> list[Step] | None:
    """A Hermitian matrix reduced to tridiagonal form, with the reflectors that do it."""
    x = node.ins[0]
    element = element_of(x.dtype)
    if element is None:
        return None
    n = x.shape[-1]
    name = "hetrd" if element.complex else "sytrd"
    which = "L" if node.params["lower"] else "U"
    scratch = Scratch()
    transposed, lwork = scratch.take(n * n, element.size), n * _BLOCK
    # OpenBLAS's `hemv` reads four numbers past its vector, which here are the factors.
    factors = scratch.take(n + 4, element.size)
    space = scratch.take(lwork, element.size)
    prepare(element)

    def one(b: Builder, ins: list[Value], outs: list[Value], work: Value) -> None:
        a, taus = b.gep(work, transposed), b.gep(work, factors)
        turn(b, element, ins[0], a, n, n)
        call(b, f"nj_lapack_{element.letter}{name}", which, n, a, n, outs[1], outs[2], taus,
             b.gep(work, space), lwork, b.alloca("i32"))  # fmt: skip
        copy(b, taus, outs[3], max(n - 1, 0) * element.size)
        turn(b, element, a, outs[0], n, n)

    return each_matrix(build, node, one, scratch.nbytes, 2 * n**3 * element.reals**2)


def tridiagonal_solve(build: Values, node: Node) -> list[Step] | None:
    """A tridiagonal system; NaN where it is singular."""
    diagonal, right = node.ins[1], node.ins[3]
    element = element_of(right.dtype)
    if element is None:
        return None
    n, k = right.shape[-2:]
    scratch = Scratch()
    places = [scratch.take(n, element.size) for _ in range(3)]
    sides = scratch.take(n * k, element.size)
    prepare(element)
    line = n * element.size

    def one(b: Builder, ins: list[Value], outs: list[Value], work: Value) -> None:
        dl, d, du = (b.gep(work, at) for at in places)
        # LAPACK overwrites the diagonals, and counts the lower one from its second row.
        copy(b, b.gep(ins[0], element.size if n > 1 else 0), dl, line - element.size)
        copy(b, ins[1], d, line)
        copy(b, ins[2], du, line)
        x = b.gep(work, sides)
        turn(b, element, ins[3], x, n, k)
        status = Status(b)
        call(b, f"nj_lapack_{element.letter}gtsv", n, k, dl, d, du, x, n, status.place)
        nan_where(b, status.failed(b), element, [(x, n * k, False)])
        turn(b, element, x, outs[0], k, n)

    cost = 8 * n * (k + 1) * element.reals**2
    return each_matrix(build, node, one, scratch.nbytes, cost, ndim=1) if diagonal.size else None
