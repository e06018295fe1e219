"""Linear algebra that StableHLO does not have, in terms of our own primitives.

Each function of `EXPANSIONS` takes tracers and the params of the primitive of its name and gives
its results; matrices lie in the last two axes and are worked on side by side. For `xla.hlo`.
Sources: Golub & Van Loan, Matrix Computations, 4th edition: LU with partial pivoting (3.4),
Householder QR (5.2), Jacobi's methods for symmetric eigenvalues (8.5) and, one-sided, for singular
values (8.6.3) with the parallel order of its tournament.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.structural import broadcast_in_dim, convert, full, moveaxis, reduce_sum
from numjet.ops.arithmetic import sign
from numjet.ops.linalg_core import triangular_solve_p
from numjet.ops.reduce import argmax
from numjet.ops.scan import scan
from numjet.ops.shape import broadcasted_iota, concatenate, pad, reshape, select_n
from numjet.ops.sort import sort_p
from numjet.ops.transcendental import rsqrt, sqrt
from numjet.ops.while_loop import fori_loop, while_loop

INDEX = np.dtype(np.int32)
# Jacobi's methods square the error in a sweep once it is small; what has not converged after so
# many never does (values that are no numbers).
SWEEPS = 24


# ------------------------------------------------------------------ small helpers
def _to(x: Any, shape: tuple) -> Any:
    """`x` repeated to a shape; its axes are the last ones, or of size one."""
    if x.shape == shape:
        return x
    first = len(shape) - x.ndim
    kept = [a for a in range(x.ndim) if x.shape[a] == shape[first + a]]
    x = reshape(x, tuple(x.shape[a] for a in kept))
    return broadcast_in_dim(x, shape, tuple(first + a for a in kept))


def _where(condition: Any, x: Any, y: Any) -> Any:
    shape = np.broadcast_shapes(condition.shape, x.shape, y.shape)
    return select_n(_to(condition, shape), _to(y, shape), _to(x, shape))


def _zeros(x: Any, shape: tuple) -> Any:
    return full(shape, 0, x.dtype)


def _flat(x: Any, kept: int = 2) -> tuple[Any, tuple]:
    """One batch axis in front, and the batch's shape."""
    batch = x.shape[: x.ndim - kept]
    return reshape(x, (math.prod(batch), *x.shape[x.ndim - kept :])), batch


def _places(shape: tuple, axis: int) -> Any:
    return broadcasted_iota(INDEX, shape, axis)


def _eye(x: Any, count: int, m: int, n: int) -> Any:
    same = _places((count, m, n), 1) == _places((count, m, n), 2)
    return convert(same, x.dtype)


def _column(x: Any, k: Any) -> Any:
    """x[:, :, k], by a sum over one: `k` is known only as the program runs."""
    return reduce_sum(_where(_places(x.shape, 2) == k, x, _zeros(x, ())), (2,))


def _row(x: Any, k: Any) -> Any:
    """x[:, k, :], where k is one number or one for each matrix."""
    k = k if getattr(k, "ndim", 0) == 0 else k[:, None, None]
    return reduce_sum(_where(_places(x.shape, 1) == k, x, _zeros(x, ())), (1,))


def _swap_rows(x: Any, k: Any, p: Any) -> Any:
    """Rows k and p[matrix] exchanged."""
    rows = _places(x.shape, 1)
    first, second = _row(x, k)[:, None, :], _row(x, p)[:, None, :]
    return _where(rows == k, second, _where(rows == p[:, None, None], first, x))


# ------------------------------------------------------------------ LU
def lu(x: Any) -> list:
    """Factors in one matrix, the pivots (LAPACK's, from 0), and the permutation of the rows."""
    a, batch = _flat(x)
    count, m, n = a.shape
    size = min(m, n)
    order = _places((count, m, 1), 1)
    pivots = full((count, size), 0, INDEX)

    def step(k: Any, state: tuple) -> tuple:
        a, order, pivots = state
        rows = _places((count, m), 1)
        column = _column(a, k)
        # LAPACK looks for the largest sum of both parts' magnitudes.
        weight = abs(column.real)
        if dtypes.is_complex(a.dtype):
            weight = weight + abs(column.imag)
        weight = _where(rows >= k, weight, full((), -1, weight.dtype))
        p = argmax(weight, 1, INDEX)
        a, order = _swap_rows(a, k, p), _swap_rows(order, k, p)
        pivots = _where(_places((count, size), 1) == k, p[:, None], pivots)
        row, column = _row(a, k), _column(a, k)
        pivot = _column(row[:, None, :], k)  # one number for each matrix
        safe = _where(pivot == 0, full((), 1, a.dtype), pivot)
        low = _where(rows > k, column / safe, _zeros(a, ()))
        kept = _where(_places((count, m, n), 2) > k, row[:, None, :], _zeros(a, ()))
        a = a - low[:, :, None] * kept
        here = (_places(a.shape, 2) == k) & (_places(a.shape, 1) > k)
        return _where(here, low[:, :, None], a), order, pivots

    a, order, pivots = fori_loop(0, size, step, (a, order, pivots))
    return [reshape(a, x.shape), reshape(pivots, (*batch, size)), reshape(order, (*batch, m))]


def lu_pivots_to_permutation(pivots: Any, *, permutation_size: int) -> Any:
    """The permutation that exchanging rows in this order makes."""
    flat, batch = _flat(pivots, 1)
    count, size = flat.shape
    order = _places((count, permutation_size, 1), 1)

    def step(k: Any, order: Any) -> Any:
        return _swap_rows(order, k, _column(flat[:, None, :], k)[:, 0])

    order = fori_loop(0, size, step, order)
    return reshape(order, (*batch, permutation_size))


def solve(a: Any, b: Any) -> Any:
    """x in a x = b, by LU."""
    factors, _, order = lu(a)
    flat, batch = _flat(b)
    rows, _ = _flat(order, 1)
    chosen = _places((*rows.shape, rows.shape[1]), 2) == rows[:, :, None]
    moved = reshape(convert(chosen, b.dtype) @ flat, b.shape)
    unit = dict(left_side=True, transpose_a=False, conjugate_a=False)
    y = triangular_solve_p.bind(factors, moved, lower=True, unit_diagonal=True, **unit)
    return triangular_solve_p.bind(factors, y, lower=False, unit_diagonal=False, **unit)


# ------------------------------------------------------------------ QR
def _householder(a: Any) -> tuple[Any, Any]:
    """Reflections below the diagonal and R on and above it, as LAPACK's geqrf; the factors tau."""
    count, m, n = a.shape
    size = min(m, n)
    taus = full((count, size), 0, a.dtype)

    def step(k: Any, state: tuple) -> tuple:
        a, taus = state
        rows = _places((count, m), 1)
        column = _column(a, k)
        alpha = _where(rows == k, column, _zeros(a, ())).sum(1)
        below = _where(rows > k, column, _zeros(a, ()))
        scale = abs(column).max(1)  # squares of small or large numbers stay in range
        scale = _where(scale > 0, scale, full((), 1, scale.dtype))
        rest = (abs(below) / scale[:, None])
        rest = (rest * rest).sum(1)
        lead = abs(alpha) / scale
        norm = sqrt(lead * lead + rest) * scale
        way = _where(alpha.real < 0, full((), -1, norm.dtype), full((), 1, norm.dtype))
        beta = -way * norm
        nothing = rest == 0
        if dtypes.is_complex(a.dtype):
            nothing = nothing & (alpha.imag == 0)
        wide = convert(beta, a.dtype)
        one = full((), 1, a.dtype)
        tau = _where(nothing, _zeros(a, ()), (wide - alpha) / _where(nothing, one, wide))
        gap = _where(nothing, one, alpha - wide)
        v = _where(rows == k, one, below / gap[:, None])
        inner = v.conj()[:, None, :] @ a  # (count, 1, n)
        right = _where(_places(inner.shape, 2) > k, inner, _zeros(a, ()))
        a = a - (tau.conj()[:, None] * v)[:, :, None] * right
        top = _where(nothing, alpha, wide)
        made = _where(rows == k, top[:, None], _where(rows > k, v, column))
        a = _where(_places(a.shape, 2) == k, made[:, :, None], a)
        return a, _where(_places(taus.shape, 1) == k, tau[:, None], taus)

    return fori_loop(0, size, step, (a, taus))


def _product(a: Any, taus: Any, columns: int) -> Any:
    """The first columns of H_0 H_1 ... of reflections stored as `_householder` leaves them."""
    count, m, _ = a.shape
    size = taus.shape[1]

    def step(i: Any, q: Any) -> Any:
        k = size - 1 - i
        rows = _places((count, m), 1)
        v = _where(rows == k, full((), 1, a.dtype),
                   _where(rows > k, _column(a, k), _zeros(a, ())))
        tau = _column(taus[:, None, :], k)
        return q - (tau * v)[:, :, None] * (v.conj()[:, None, :] @ q)

    return fori_loop(0, size, step, _eye(a, count, m, columns))


def householder_product(a: Any, taus: Any) -> Any:
    """The first columns of a product of reflections."""
    flat, _ = _flat(a)
    return reshape(_product(flat, _flat(taus, 1)[0], a.shape[-1]), a.shape)


def geqrf(x: Any) -> list:
    """Reflections and R in one matrix, and the reflections' factors."""
    a, batch = _flat(x)
    made, taus = _householder(a)
    return [reshape(made, x.shape), reshape(taus, (*batch, taus.shape[1]))]


def ormqr(a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    """Q c, Q' c, c Q or c Q' for the Q of reflections."""
    if not left:  # c Q = (Q' c')'
        turned = c.swapaxes(-1, -2).conj()
        return ormqr(a, taus, turned, left=True, transpose=not transpose).swapaxes(-1, -2).conj()
    (a, _), (taus, _), (flat, _) = _flat(a), _flat(taus, 1), _flat(c)
    count, m, _ = a.shape
    size = taus.shape[1]

    def step(i: Any, x: Any) -> Any:
        k = i if transpose else size - 1 - i
        rows = _places((count, m), 1)
        v = _where(rows == k, full((), 1, a.dtype),
                   _where(rows > k, _column(a, k), _zeros(a, ())))
        tau = _column(taus[:, None, :], k)
        tau = tau.conj() if transpose else tau
        return x - (tau * v)[:, :, None] * (v.conj()[:, None, :] @ x)

    return reshape(fori_loop(0, size, step, flat), c.shape)


def tridiagonal_solve(low: Any, diagonal: Any, high: Any, b: Any, **_: Any) -> Any:
    """x in the system of three diagonals, by elimination without exchanges (Thomas)."""
    rows = [moveaxis(y, y.ndim - 1, 0) for y in (low, diagonal, high)]
    right = moveaxis(b, b.ndim - 2, 0)

    def down(state: tuple, row: tuple) -> tuple:
        factor, before = state
        l, d, h, y = row
        pivot = d - l * factor
        made = h / pivot, (y - l[..., None] * before) / pivot[..., None]
        return made, made

    def up(after: Any, row: tuple) -> tuple:
        factor, y = row
        x = y - factor[..., None] * after
        return x, x

    nothing = _zeros(b, right.shape[1:])
    _, (factors, ys) = scan(down, (_zeros(b, rows[0].shape[1:]), nothing), (*rows, right))
    return moveaxis(scan(up, nothing, (factors, ys), reverse=True)[1], 0, b.ndim - 2)


def qr(x: Any, *, pivoting: bool, full_matrices: bool, compute_q: bool) -> list:
    """Q and R by Householder's reflections."""
    if pivoting:
        raise NotImplementedError(
            "qr(pivoting=True) cannot run on a device of XLA. Compute it with backend='cpu'."
        )
    a, batch = _flat(x)
    count, m, n = a.shape
    k = m if full_matrices else min(m, n)
    a, taus = _householder(a)
    upper = _places(a.shape, 1) <= _places(a.shape, 2)
    r = _where(upper, a, _zeros(a, ()))[:, :k]
    outs = [reshape(_product(a, taus, k), (*batch, m, k))] if compute_q else []
    return [*outs, reshape(r, (*batch, k, n))]


# ------------------------------------------------------------------ Jacobi's methods
def _rotations(alpha: Any, beta: Any, gamma: Any) -> tuple[Any, Any, Any]:
    """(c, s, w): c x - s conj(w) y and s x + c conj(w) y are orthogonal where x'x = alpha,
    y'y = beta and x'y = gamma; w has magnitude one."""
    size = abs(gamma)
    one = full((), 1, size.dtype)
    none = size == 0
    safe = _where(none, one, size)
    w = _where(none, full((), 1, gamma.dtype), gamma / convert(safe, gamma.dtype))
    zeta = (beta - alpha) / (safe * 2)
    way = _where(zeta < 0, -one, one)
    t = _where(none, _zeros(size, ()), way / (abs(zeta) + sqrt(zeta * zeta + 1)))
    c = rsqrt(t * t + 1)
    return c, t * c, w


def _turned(top: Any, bottom: Any, axis: int) -> tuple[Any, Any]:
    """The next round of a tournament among the rows (or columns) of two halves: all but the first
    of the upper half move on by one place, round both halves."""
    h = top.shape[axis]
    if h == 1:
        return top, bottom

    def take(x: Any, start: int, stop: int) -> Any:
        index = [slice(None)] * x.ndim
        index[axis] = slice(start, stop)
        return x[tuple(index)]

    return (
        concatenate([take(top, 0, 1), take(bottom, 0, 1), take(top, 1, h - 1)], axis),
        concatenate([take(bottom, 1, h), take(top, h - 1, h)], axis),
    )


def _even(a: Any, both: bool) -> Any:
    """A column (and a row) of zeros where there is an odd number."""
    n = a.shape[2]
    if n % 2 == 0:
        return a
    return pad(a, _zeros(a, ()), [(0, 0, 0), (0, int(both), 0), (0, 1, 0)])


def _converged(limit: float, sweep: Callable, state: tuple, worst: Callable) -> tuple:
    """Sweeps until `worst(state)` is at most `limit`."""

    def more(given: tuple) -> Any:
        i, state = given
        return (i < SWEEPS) & (worst(state) > limit)

    return while_loop(more, lambda given: (given[0] + 1, sweep(given[1])),
                      (full((), 0, INDEX), state))[1]


def _halves(x: Any, axis: int) -> tuple[Any, Any]:
    h = x.shape[axis] // 2
    index = [slice(None)] * x.ndim
    index[axis] = slice(0, h)
    other = list(index)
    other[axis] = slice(h, None)
    return x[tuple(index)], x[tuple(other)]


def _rotate_columns(x: Any, c: Any, s: Any, w: Any) -> Any:
    """Columns of both halves rotated, and moved to the next round."""
    c, s, w = c[:, None, :], s[:, None, :], w[:, None, :]
    c, s = convert(c, x.dtype), convert(s, x.dtype)
    top, bottom = _halves(x, 2)
    bottom = bottom * w.conj()
    first, second = c * top - s * bottom, s * top + c * bottom
    return concatenate(_turned(first, second, 2), 2)


def eigh(x: Any, *, lower: bool, sort_eigenvalues: bool, subset_by_index: Any,
         compute_v: bool) -> list:  # fmt: skip
    """Eigenvectors and eigenvalues of Hermitian matrices, in ascending order."""
    a, batch = _flat(x)
    count, n, _ = a.shape
    keep = _places(a.shape, 1) > _places(a.shape, 2)
    keep = keep if lower else _places(a.shape, 1) < _places(a.shape, 2)
    triangle = _where(keep, a, _zeros(a, ()))
    same = _places(a.shape, 1) == _places(a.shape, 2)
    own = _where(same, convert(a.real, a.dtype), _zeros(a, ()))
    a = triangle + triangle.transpose(0, 2, 1).conj() + own
    if n > 1:
        a = _even(a, True)
        size = a.shape[1]
        eps = float(np.finfo(dtypes.real_of(x.dtype)).eps)

        def rows(x: Any, c: Any, s: Any, w: Any) -> Any:
            return _rotate_columns(x.transpose(0, 2, 1), c, s, w.conj()).transpose(0, 2, 1)

        def step(_: Any, state: tuple) -> tuple:
            a, v = state
            upper, under = _halves(a, 1)
            diagonal = (_eye(a, count, size // 2, size // 2) * _halves(upper, 2)[0]).sum(2).real
            other = (_eye(a, count, size // 2, size // 2) * _halves(under, 2)[1]).sum(2).real
            cross = (_eye(a, count, size // 2, size // 2) * _halves(upper, 2)[1]).sum(2)
            c, s, w = _rotations(diagonal, other, cross)
            return rows(_rotate_columns(a, c, s, w), c, s, w), _rotate_columns(v, c, s, w)

        def off(state: tuple) -> Any:
            a = state[0]
            same = _places(a.shape, 1) == _places(a.shape, 2)
            square = abs(a) * abs(a)
            rest = _where(same, _zeros(square, ()), square).sum((1, 2))
            return (rest / (square.sum((1, 2)) + float(np.finfo(square.dtype).tiny))).max()

        state = (a, _eye(a, count, size, size))
        a, v = _converged((eps / 4) ** 2, lambda state: fori_loop(0, size - 1, step, state), state,
                          off)
        a, v = a[:, :n, :n], v[:, :n, :n]
    else:
        v = _eye(a, count, n, n)
    values = (_eye(a, count, n, n) * a).sum(2).real
    if sort_eigenvalues:
        values, order = sort_p.bind(values, _places(values.shape, 1), dimension=1, is_stable=True,
                                    num_keys=1)
        v = _columns_in_order(v, order)
    start, stop = subset_by_index or (0, n)
    values = reshape(values[:, start:stop], (*batch, stop - start))
    return [reshape(v[:, :, start:stop], (*batch, n, stop - start)), values] if compute_v else [
        values]


def _columns_in_order(x: Any, order: Any) -> Any:
    chosen = _places((*order.shape[:1], x.shape[2], order.shape[1]), 1) == order[:, None, :]
    return x @ convert(chosen, x.dtype)


def svd(x: Any, *, full_matrices: bool, compute_uv: bool) -> list:
    """Singular values in descending order, U and V', by rotations of columns."""
    a, batch = _flat(x)
    count, m, n = a.shape
    if m < n:
        made = svd(a.transpose(0, 2, 1).conj(), full_matrices=full_matrices, compute_uv=compute_uv)
        outs = made[:1]
        if compute_uv:
            outs += [made[2].transpose(0, 2, 1).conj(), made[1].transpose(0, 2, 1).conj()]
        return [reshape(y, (*batch, *y.shape[1:])) for y in outs]
    eps = float(np.finfo(dtypes.real_of(x.dtype)).eps)
    scale = abs(a).max((1, 2))
    scale = _where(scale > 0, scale, full((), 1, scale.dtype))
    work, v = a / convert(scale, a.dtype)[:, None, None], _eye(a, count, n, n)
    if n > 1:
        work = _even(work, False)
        size = work.shape[2]
        v = _eye(a, count, size, size)
        tiny = float(np.finfo(scale.dtype).tiny)

        def step(_: Any, state: tuple) -> tuple:
            work, v, worst = state
            left, right = _halves(work, 2)
            alpha, beta = (abs(left) ** 2).sum(1), (abs(right) ** 2).sum(1)
            gamma = (left.conj() * right).sum(1)
            angle = abs(gamma) / sqrt(alpha * beta + tiny)
            small = abs(gamma) <= tiny
            worst = _where((angle > worst) & ~small, angle, worst)
            c, s, w = _rotations(alpha, beta, gamma)
            return _rotate_columns(work, c, s, w), _rotate_columns(v, c, s, w), worst

        def sweep(state: tuple) -> tuple:
            work, v, _ = state
            nothing = full((count, size // 2), 0, scale.dtype)
            return fori_loop(0, size - 1, step, (work, v, nothing))

        state = (work, v, full((count, size // 2), 1, scale.dtype))
        work, v, _ = _converged(4 * eps, sweep, state, lambda state: state[2].max())
        work, v = work[:, :, :n], v[:, :n, :n]
    values = sqrt((abs(work) ** 2).sum(1))
    down, order = sort_p.bind(-values, _places(values.shape, 1), dimension=1, is_stable=True,
                              num_keys=1)
    values = reshape(-down * scale[:, None], (*batch, n))
    if not compute_uv:
        return [values]
    work, v = _columns_in_order(work, order), _columns_in_order(v, order)
    # The columns are orthogonal, so R is diagonal; Q has whole columns where they are zero.
    q, r = qr(work, pivoting=False, full_matrices=full_matrices, compute_q=True)
    diagonal = (_eye(r, count, n, n) * r[:, :n]).sum(2)
    phase = _where(diagonal == 0, full((), 1, r.dtype), sign(diagonal))
    more = q.shape[2] - n
    if more:
        phase = concatenate([phase, full((count, more), 1, r.dtype)], 1)
    u = q * phase[:, None, :]
    vh = v.transpose(0, 2, 1).conj()
    return [values, reshape(u, (*batch, *u.shape[1:])), reshape(vh, (*batch, n, n))]


EXPANSIONS: dict[str, Callable] = {
    "lu": lu,
    "lu_pivots_to_permutation": lu_pivots_to_permutation,
    "solve": solve,
    "qr": qr,
    "geqrf": geqrf,
    "ormqr": ormqr,
    "tridiagonal_solve": tridiagonal_solve,
    "householder_product": householder_product,
    "eigh": eigh,
    "svd": svd,
}
