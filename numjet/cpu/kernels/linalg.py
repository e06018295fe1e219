"""cholesky and triangular_solve by LAPACK and BLAS, called from native code.

The routines see C-contiguous matrices column by column, that is transposed: lower becomes upper,
left becomes right. For: `kernels.GENERATORS`. What would break it: a matrix of 2^31 rows.
"""

from __future__ import annotations

import math
from typing import Any

from numjet.cpu.builder import Builder, Value
from numjet.cpu.graph import Node
from numjet.cpu.program import SpecialStep, Step

# The first letter of a routine, the real element, and reals in an element.
_LETTERS = {
    "float32": ("s", "float", 1),
    "float64": ("d", "double", 1),
    "complex64": ("c", "float", 2),
    "complex128": ("z", "double", 2),
}


def _copy(b: Builder, source: Value, target: Value, nbytes: int) -> None:
    with b.if_(b.icmp("ne", source, target)):
        b.module.declare("llvm.memcpy.p0.p0.i64", "void", ("ptr", "ptr", "i64", "i1"))
        b.line(
            f"call void @llvm.memcpy.p0.p0.i64(ptr {target.ref}, ptr {source.ref}, "
            f"i64 {nbytes}, i1 false)"
        )


def _integers(b: Builder, *values: int) -> list[Value]:
    """Addresses of 32-bit integers."""
    base = b.module.array(values, "i32")
    return [b.gep(base, 4 * k) for k in range(len(values))]


def cholesky(build: Any, node: Node) -> list[Step] | None:
    """The step of a Cholesky factorization; NaN where a matrix is not positive definite."""
    x, out = node.ins[0], node.outs[0]
    known = _LETTERS.get(x.dtype.name)
    if known is None or not x.size:
        return None
    letter, real, reals = known
    n = x.shape[-1]
    size = x.dtype.itemsize
    count = math.prod(x.shape[:-2])

    def emit(b: Builder, reads: list[Value], writes: list[Value]) -> None:
        _copy(b, reads[0], writes[0], x.nbytes)
        order = _integers(b, n)[0]
        info = b.alloca("i32")
        upper = b.module.string("U")
        nan = b.const(math.nan, real)
        zero = b.const(0, real)
        with b.loop(0, count) as matrices:
            a = b.gep(writes[0], b.mul(matrices.index, n * n * size))
            b.call(f"nj_lapack_{letter}potrf", "void", upper, order, a, order, info)
            failed = b.icmp("ne", b.load(info, "i32"), 0)
            with b.loop(0, n) as rows:
                line = b.gep(a, b.mul(rows.index, n * size))
                # Zeros right of the diagonal; NaN everywhere where the routine gave up.
                start = b.select(failed, 0, b.mul(b.add(rows.index, 1), reals))
                value = b.select(failed, nan, zero)
                with b.loop(start, n * reals) as columns:
                    b.store(value, b.gep(line, b.mul(columns.index, size // reals)))

    reads = [build.materialize(x)]
    step = SpecialStep(
        "cholesky", reads, [out], emit, inplace=[(out, reads[0])], flops=count * n**3 // 3
    )
    return [step]


def triangular_solve(build: Any, node: Node) -> list[Step] | None:
    """The step of a triangular solve, or None for a matrix to conjugate but not transpose."""
    a, right = node.ins
    out, params = node.outs[0], node.params
    known = _LETTERS.get(out.dtype.name)
    if known is None or not right.size or a.dtype != out.dtype or right.dtype != out.dtype:
        return None
    letter, real, reals = known
    conjugate = params["conjugate_a"] and reals == 2
    if conjugate and not params["transpose_a"]:
        return None
    rows, columns = right.shape[-2:]
    n = a.shape[-1]
    size = out.dtype.itemsize
    count = math.prod(right.shape[:-2])
    how = ("C" if conjugate else "T") if params["transpose_a"] else "N"
    words = ("R" if params["left_side"] else "L", "U" if params["lower"] else "L", how,
             "U" if params["unit_diagonal"] else "N")  # fmt: skip

    def emit(b: Builder, reads: list[Value], writes: list[Value]) -> None:
        _copy(b, reads[1], writes[0], right.nbytes)
        letters = [b.module.string(word) for word in words]
        m_, n_, lda = _integers(b, columns, rows, n)
        one = b.module.array([1.0] + [0.0] * (reals - 1), real)
        with b.loop(0, count) as matrices:
            matrix = b.gep(reads[0], b.mul(matrices.index, n * n * size))
            x = b.gep(writes[0], b.mul(matrices.index, rows * columns * size))
            b.call(f"nj_blas_{letter}trsm", "void", *letters, m_, n_, one, matrix, lda, x, m_)

    reads = [build.materialize(v) for v in node.ins]
    flops = count * n * rows * columns
    step = SpecialStep(
        "triangular_solve", reads, [out], emit, inplace=[(out, reads[1])], flops=flops
    )
    return [step]
