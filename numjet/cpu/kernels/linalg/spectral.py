"""Eigenvalues, singular values, Schur and Hessenberg forms by LAPACK.

A matrix with an infinity or a NaN, or one for which LAPACK does not converge, gives NaN. For:
`kernels.generator`.
"""

from __future__ import annotations

from numjet.cpu.builder.builder import Builder, Value
from numjet.cpu.graph.nodes import Node
from numjet.cpu.kernels.idioms import size_of
from numjet.cpu.kernels.linalg.lapack import (
    Element,
    Scratch,
    Status,
    call,
    copy,
    each_matrix,
    element_of,
    finite,
    nan_where,
    prepare,
    turn,
)
from numjet.cpu.program.steps import Step
from numjet.cpu.program.values import Values

# Columns that LAPACK's blocked reductions take at a time, for their workspace.
_BLOCK = 64


def eigh(build: Values, node: Node) -> list[Step] | None:
    """Eigenvalues of hermitian matrices, and vectors where they are asked for."""
    x, params = node.ins[0], node.params
    element = element_of(x.dtype)
    if element is None:
        return None
    n, real = x.shape[-1], size_of(element.real)
    vectors = params["compute_v"]
    start, stop = params["subset_by_index"] or (0, n)
    scratch = Scratch()
    transposed, values = scratch.take(n * n, element.size), scratch.take(n, real)
    lwork = n * (_BLOCK + 2) + 1 + ((6 * n + 2 * n * n) if vectors else 0)
    space = scratch.take(lwork, element.size)
    reals = 1 + 5 * n + 2 * n * n
    more, whole = scratch.take(reals if element.complex else 0, real), 3 + 5 * n
    integers = scratch.take(whole, 4)
    prepare(element)

    def one(b: Builder, ins: list[Value], outs: list[Value], work: Value) -> None:
        a, w = b.gep(work, transposed), b.gep(work, values)
        status = Status(b)
        with b.if_(finite(b, ins[0], n * n * element.reals, element.real)):
            turn(b, element, ins[0], a, n, n)
            extra: list[Value | int] = [b.gep(work, more), reals] if element.complex else []
            call(
                b, f"nj_lapack_{element.letter}{'heevd' if element.complex else 'syevd'}",
                "V" if vectors else "N", "L" if params["lower"] else "U", n, a, n, w,
                b.gep(work, space), lwork, *extra, b.gep(work, integers), whole, status.place,
            )  # fmt: skip
            copy(b, b.gep(w, start * real), outs[-1], (stop - start) * real)
            if vectors:
                first = b.gep(a, start * n * element.size)
                turn(b, element, first, outs[0], stop - start, n)
        parts = [(outs[-1], stop - start, True)]
        if vectors:
            parts.append((outs[0], n * (stop - start), False))
        nan_where(b, status.failed(b), element, parts)

    cost = (4 + 5 * vectors) * n**3 * element.reals**2
    return each_matrix(build, node, one, scratch.nbytes, cost)


def svd(build: Values, node: Node) -> list[Step] | None:
    """Singular values, and both sides where they are asked for."""
    x, params = node.ins[0], node.params
    element = element_of(x.dtype)
    if element is None:
        return None
    m, n = x.shape[-2:]
    k, long = min(m, n), max(m, n)
    real = size_of(element.real)
    sides, full = params["compute_uv"], params["full_matrices"]
    left, right = (m, n) if full else (k, k)
    scratch = Scratch()
    transposed = scratch.take(m * n, element.size)
    lwork = 4 * k * k + 7 * k + long + _BLOCK * (m + n)
    space, integers = scratch.take(lwork, element.size), scratch.take(8 * k, 4)
    reals = k * max(5 * k + 7, 2 * long + 2 * k + 1) if element.complex else 0
    more = scratch.take(reals, real)
    us = scratch.take(m * left if sides else 0, element.size)
    vs = scratch.take(n * right if sides else 0, element.size)
    prepare(element)

    def one(b: Builder, ins: list[Value], outs: list[Value], work: Value) -> None:
        a, u, v = b.gep(work, transposed), b.gep(work, us), b.gep(work, vs)
        status = Status(b)
        with b.if_(finite(b, ins[0], m * n * element.reals, element.real)):
            turn(b, element, ins[0], a, m, n)
            extra = [b.gep(work, more)] if element.complex else []
            call(
                b, f"nj_lapack_{element.letter}gesdd", ("A" if full else "S") if sides else "N",
                m, n, a, m, outs[0], u, m, v, right if sides else 1, b.gep(work, space), lwork,
                *extra, b.gep(work, integers), status.place,
            )  # fmt: skip
            if sides:
                turn(b, element, u, outs[1], left, m)
                turn(b, element, v, outs[2], n, right)
        parts = [(outs[0], k, True)]
        if sides:
            parts += [(outs[1], m * left, False), (outs[2], right * n, False)]
        nan_where(b, status.failed(b), element, parts)

    cost = (4 + 12 * sides) * m * n * k * element.reals**2
    return each_matrix(build, node, one, scratch.nbytes, cost)


def eig(build: Values, node: Node) -> list[Step] | None:
    """Eigenvalues of general matrices, left and right vectors as asked for, all complex."""
    x, params = node.ins[0], node.params
    element = element_of(x.dtype)
    if element is None:
        return None
    n, real = x.shape[-1], size_of(element.real)
    wanted = [params[f"compute_{side}_eigenvectors"] for side in ("left", "right")]
    scratch = Scratch()
    transposed, lwork = scratch.take(n * n, element.size), n * (_BLOCK + 4)
    space = scratch.take(lwork, element.size)
    parts = scratch.take(2 * n, real)
    held = [scratch.take(n * n if want else 0, element.size) for want in wanted]
    prepare(element)

    def one(b: Builder, ins: list[Value], outs: list[Value], work: Value) -> None:
        a, w = b.gep(work, transposed), b.gep(work, parts)
        vectors = [b.gep(work, at) for at in held]
        status = Status(b)
        with b.if_(finite(b, ins[0], n * n * element.reals, element.real)):
            turn(b, element, ins[0], a, n, n)
            letters = ["V" if want else "N" for want in wanted]
            values = [outs[0]] if element.complex else [w, b.gep(w, n * real)]
            extra = [w] if element.complex else []
            call(
                b, f"nj_lapack_{element.letter}geev", *letters, n, a, n, *values, vectors[0], n,
                vectors[1], n, b.gep(work, space), lwork, *extra, status.place,
            )  # fmt: skip
            given = [v for v, want in zip(vectors, wanted, strict=True) if want]
            for v, out in zip(given, outs[1:], strict=True):
                if element.complex:
                    turn(b, element, v, out, n, n)
                else:
                    _paired(b, element, n, w, v, out)
            if not element.complex:
                _interleave(b, element, n, w, outs[0])
        failed = [(outs[0], 2 * n, True), *[(out, 2 * n * n, True) for out in outs[1:]]]
        nan_where(b, status.failed(b), element, failed)

    cost = (10 + 15 * any(wanted)) * n**3 * element.reals**2
    return each_matrix(build, node, one, scratch.nbytes, cost)


def _interleave(b: Builder, element: Element, n: int, w: Value, out: Value) -> None:
    """n real and n imaginary parts as n complex numbers."""
    size, real = size_of(element.real), element.real
    with b.loop(0, n) as each:
        at = b.gep(w, b.mul(each.index, size))
        to = b.gep(out, b.mul(each.index, 2 * size))
        b.store(b.load(at, real), to)
        b.store(b.load(b.gep(at, n * size), real), b.gep(to, size))


def _paired(b: Builder, element: Element, n: int, w: Value, v: Value, out: Value) -> None:
    """out[i, j]: vector j, whose real and imaginary parts LAPACK keeps in the columns of the first
    and second of two conjugate eigenvalues."""
    size, real = size_of(element.real), element.real
    with b.loop(0, n) as column:
        j = column.index
        imaginary = b.load(b.gep(w, b.mul(b.add(j, n), size)), real)
        second = b.fcmp("olt", imaginary, 0.0)
        pair = b.fcmp("one", imaginary, 0.0)
        first = b.select(second, b.sub(j, 1), j)
        line = b.gep(v, b.mul(first, n * size))
        # A real eigenvalue's vector has no second column; its own is read and not taken.
        other = b.gep(line, b.select(pair, b.const(n * size, "i64"), b.const(0, "i64")))
        with b.loop(0, n) as row:
            at = b.mul(row.index, size)
            to = b.gep(out, b.mul(b.add(b.mul(row.index, n), j), 2 * size))
            y = b.select(pair, b.load(b.gep(other, at), real), 0.0)
            b.store(b.load(b.gep(line, at), real), to)
            b.store(b.select(second, b.neg(y), y), b.gep(to, size))


def schur(build: Values, node: Node) -> list[Step] | None:
    """The Schur form, and its vectors where they are asked for."""
    x = node.ins[0]
    element = element_of(x.dtype)
    if element is None:
        return None
    n, real = x.shape[-1], size_of(element.real)
    vectors = node.params["compute_schur_vectors"]
    scratch = Scratch()
    transposed, lwork = scratch.take(n * n, element.size), n * (_BLOCK + 3)
    space, values = scratch.take(lwork, element.size), scratch.take(2 * n, element.size)
    extra, flags = scratch.take(n, real), scratch.take(n, 4)
    held = scratch.take(n * n if vectors else 0, element.size)
    prepare(element)

    def one(b: Builder, ins: list[Value], outs: list[Value], work: Value) -> None:
        a, w, v = b.gep(work, transposed), b.gep(work, values), b.gep(work, held)
        status = Status(b)
        with b.if_(finite(b, ins[0], n * n * element.reals, element.real)):
            turn(b, element, ins[0], a, n, n)
            parts = [w] if element.complex else [w, b.gep(w, n * element.size)]
            more = [b.gep(work, extra)] if element.complex else []
            call(
                b, f"nj_lapack_{element.letter}gees", "V" if vectors else "N", "N",
                b.const(0, "ptr"), n, a, n, b.alloca("i32"), *parts, v, n, b.gep(work, space),
                lwork, *more, b.gep(work, flags), status.place,
            )  # fmt: skip
            turn(b, element, a, outs[0], n, n)
            if vectors:
                turn(b, element, v, outs[1], n, n)
        nan_where(b, status.failed(b), element, [(out, n * n, False) for out in outs])

    cost = (10 + 15 * vectors) * n**3 * element.reals**2
    return each_matrix(build, node, one, scratch.nbytes, cost)


def hessenberg(build: Values, node: Node) -> list[Step] | None:
    """The Hessenberg form with the reflectors below it, and their factors."""
    x = node.ins[0]
    element = element_of(x.dtype)
    if element is None:
        return None
    n = x.shape[-1]
    scratch = Scratch()
    transposed, lwork = scratch.take(n * n, element.size), n * _BLOCK
    space = scratch.take(lwork, element.size)
    prepare(element)

    def one(b: Builder, ins: list[Value], outs: list[Value], work: Value) -> None:
        a = b.gep(work, transposed)
        turn(b, element, ins[0], a, n, n)
        call(b, f"nj_lapack_{element.letter}gehrd", n, 1, n, a, n, outs[1], b.gep(work, space),
             lwork, b.alloca("i32"))  # fmt: skip
        turn(b, element, a, outs[0], n, n)

    return each_matrix(build, node, one, scratch.nbytes, 4 * n**3 * element.reals**2)
