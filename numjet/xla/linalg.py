"""Linear algebra that StableHLO does not have, in terms of our own primitives.

Each function of `EXPANSIONS` takes tracers and the params of the primitive of its name and gives
its results; matrices lie in the last two axes and are worked on side by side. For `xla.hlo`.
Sources: Golub & Van Loan, Matrix Computations, 4th edition: LU with partial pivoting (3.4),
Householder QR (5.2), Jacobi's methods for symmetric eigenvalues (8.5) and, one-sided, for singular
values (8.6.3) with the parallel order of its tournament.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.structural import convert, full, moveaxis
from numjet.ops.arithmetic import sign
from numjet.ops.linalg_core import triangular_solve_p
from numjet.ops.reduce import argmax
from numjet.ops.scan import scan
from numjet.ops.shape import concatenate, pad, reshape
from numjet.ops.sort import sort_p
from numjet.ops.transcendental import rsqrt, sqrt
from numjet.ops.while_loop import fori_loop, while_loop
from numjet.xla import linalg_general
from numjet.xla.basics import (
    INDEX,
    column_of,
    eye,
    flattened,
    places,
    reflector,
    row_of,
    where,
    zeros,
)

# Jacobi's methods square the error in a sweep once it is small; what has not converged after so
# many never does (values that are no numbers).
SWEEPS = 24


def _swap_rows(x: Any, k: Any, p: Any) -> Any:
    """Rows k and p[matrix] exchanged."""
    rows = places(x.shape, 1)
    first, second = row_of(x, k)[:, None, :], row_of(x, p)[:, None, :]
    return where(rows == k, second, where(rows == p[:, None, None], first, x))


# ------------------------------------------------------------------ LU
def lu(x: Any) -> list:
    """Factors in one matrix, the pivots (LAPACK's, from 0), and the permutation of the rows."""
    a, batch = flattened(x)
    count, m, n = a.shape
    size = min(m, n)
    order = places((count, m, 1), 1)
    pivots = full((count, size), 0, INDEX)

    def step(k: Any, state: tuple) -> tuple:
        a, order, pivots = state
        rows = places((count, m), 1)
        column = column_of(a, k)
        # LAPACK looks for the largest sum of both parts' magnitudes.
        weight = abs(column.real)
        if dtypes.is_complex(a.dtype):
            weight = weight + abs(column.imag)
        weight = where(rows >= k, weight, full((), -1, weight.dtype))
        p = argmax(weight, 1, INDEX)
        a, order = _swap_rows(a, k, p), _swap_rows(order, k, p)
        pivots = where(places((count, size), 1) == k, p[:, None], pivots)
        row, column = row_of(a, k), column_of(a, k)
        pivot = column_of(row[:, None, :], k)  # one number for each matrix
        safe = where(pivot == 0, full((), 1, a.dtype), pivot)
        low = where(rows > k, column / safe, zeros(a, ()))
        kept = where(places((count, m, n), 2) > k, row[:, None, :], zeros(a, ()))
        a = a - low[:, :, None] * kept
        here = (places(a.shape, 2) == k) & (places(a.shape, 1) > k)
        return where(here, low[:, :, None], a), order, pivots

    a, order, pivots = fori_loop(0, size, step, (a, order, pivots))
    return [reshape(a, x.shape), reshape(pivots, (*batch, size)), reshape(order, (*batch, m))]


def lu_pivots_to_permutation(pivots: Any, *, permutation_size: int) -> Any:
    """The permutation that exchanging rows in this order makes."""
    flat, batch = flattened(pivots, 1)
    count, size = flat.shape
    order = places((count, permutation_size, 1), 1)

    def step(k: Any, order: Any) -> Any:
        return _swap_rows(order, k, column_of(flat[:, None, :], k)[:, 0])

    order = fori_loop(0, size, step, order)
    return reshape(order, (*batch, permutation_size))


def solve(a: Any, b: Any) -> Any:
    """x in a x = b, by LU."""
    factors, _, order = lu(a)
    flat, batch = flattened(b)
    rows, _ = flattened(order, 1)
    chosen = places((*rows.shape, rows.shape[1]), 2) == rows[:, :, None]
    moved = reshape(convert(chosen, b.dtype) @ flat, b.shape)
    unit = dict(left_side=True, transpose_a=False, conjugate_a=False)
    y = triangular_solve_p.bind(factors, moved, lower=True, unit_diagonal=True, **unit)
    return triangular_solve_p.bind(factors, y, lower=False, unit_diagonal=False, **unit)


# ------------------------------------------------------------------ QR
def _householder(a: Any, pivoting: bool = False) -> tuple[Any, Any, Any]:
    """Reflections below the diagonal and R on and above it, as LAPACK's geqrf; the factors tau; the
    order of the columns: the longest of those that are left comes next where there is pivoting."""
    count, m, n = a.shape
    size = min(m, n)
    taus = full((count, size), 0, a.dtype)
    order = places((count, n, 1), 1)

    def exchanged(k: Any, a: Any, order: Any) -> tuple:
        size = abs(where(places(a.shape, 1) >= k, a, zeros(a, ())))
        scale = size.max((1, 2))[:, None, None]
        size = size / where(scale > 0, scale, full((), 1, scale.dtype))
        length = (size * size).sum(1)
        length = where(places(length.shape, 1) >= k, length, full((), -1, length.dtype))
        p = argmax(length, 1, INDEX)
        return _swap_rows(a.swapaxes(1, 2), k, p).swapaxes(1, 2), _swap_rows(order, k, p)

    def step(k: Any, state: tuple) -> tuple:
        a, taus, order = state
        if pivoting:
            a, order = exchanged(k, a, order)
        rows = places((count, m), 1)
        column = column_of(a, k)
        v, tau, top = reflector(column, rows, k)
        inner = v.conj()[:, None, :] @ a  # (count, 1, n)
        right = where(places(inner.shape, 2) > k, inner, zeros(a, ()))
        a = a - (tau.conj()[:, None] * v)[:, :, None] * right
        made = where(rows == k, top[:, None], where(rows > k, v, column))
        a = where(places(a.shape, 2) == k, made[:, :, None], a)
        return a, where(places(taus.shape, 1) == k, tau[:, None], taus), order

    return fori_loop(0, size, step, (a, taus, order))


def _reflected(a: Any, taus: Any, c: Any, adjoint: bool) -> Any:
    """Q c, or Q' c, for the product Q of reflections stored as `_householder` leaves them."""
    count, m, _ = a.shape
    size = taus.shape[1]

    def step(i: Any, x: Any) -> Any:
        k = i if adjoint else size - 1 - i
        rows = places((count, m), 1)
        v = where(rows == k, full((), 1, a.dtype),
                   where(rows > k, column_of(a, k), zeros(a, ())))
        tau = column_of(taus[:, None, :], k)
        tau = tau.conj() if adjoint else tau
        return x - (tau * v)[:, :, None] * (v.conj()[:, None, :] @ x)

    return fori_loop(0, size, step, c)


def _product(a: Any, taus: Any, columns: int) -> Any:
    """The first columns of H_0 H_1 ... of reflections stored as `_householder` leaves them."""
    count, m, _ = a.shape
    return _reflected(a, taus, eye(a, count, m, columns), False)


def householder_product(a: Any, taus: Any) -> Any:
    """The first columns of a product of reflections."""
    flat, _ = flattened(a)
    return reshape(_product(flat, flattened(taus, 1)[0], a.shape[-1]), a.shape)


def geqrf(x: Any) -> list:
    """Reflections and R in one matrix, and the reflections' factors."""
    a, batch = flattened(x)
    made, taus, _ = _householder(a)
    return [reshape(made, x.shape), reshape(taus, (*batch, taus.shape[1]))]


def ormqr(a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    """Q c, Q' c, c Q or c Q' for the Q of reflections."""
    if not left:  # c Q = (Q' c')'
        turned = c.swapaxes(-1, -2).conj()
        return ormqr(a, taus, turned, left=True, transpose=not transpose).swapaxes(-1, -2).conj()
    (a, _), (taus, _), (flat, _) = flattened(a), flattened(taus, 1), flattened(c)
    return reshape(_reflected(a, taus, flat, transpose), c.shape)


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

    nothing = zeros(b, right.shape[1:])
    _, (factors, ys) = scan(down, (zeros(b, rows[0].shape[1:]), nothing), (*rows, right))
    return moveaxis(scan(up, nothing, (factors, ys), reverse=True)[1], 0, b.ndim - 2)


def qr(x: Any, *, pivoting: bool, full_matrices: bool, compute_q: bool) -> list:
    """Q and R by Householder's reflections, and the columns' order where they were exchanged."""
    a, batch = flattened(x)
    count, m, n = a.shape
    k = m if full_matrices else min(m, n)
    a, taus, order = _householder(a, pivoting)
    upper = places(a.shape, 1) <= places(a.shape, 2)
    r = where(upper, a, zeros(a, ()))[:, :k]
    outs = [reshape(_product(a, taus, k), (*batch, m, k))] if compute_q else []
    outs.append(reshape(r, (*batch, k, n)))
    return [*outs, reshape(order, (*batch, n))] if pivoting else outs


# ------------------------------------------------------------------ Jacobi's methods
def _rotations(alpha: Any, beta: Any, gamma: Any) -> tuple[Any, Any, Any]:
    """(c, s, w): c x - s conj(w) y and s x + c conj(w) y are orthogonal where x'x = alpha,
    y'y = beta and x'y = gamma; w has magnitude one."""
    size = abs(gamma)
    one = full((), 1, size.dtype)
    none = size == 0
    safe = where(none, one, size)
    w = where(none, full((), 1, gamma.dtype), gamma / convert(safe, gamma.dtype))
    zeta = (beta - alpha) / (safe * 2)
    way = where(zeta < 0, -one, one)
    t = where(none, zeros(size, ()), way / (abs(zeta) + sqrt(zeta * zeta + 1)))
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
    return pad(a, zeros(a, ()), [(0, 0, 0), (0, int(both), 0), (0, 1, 0)])


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
    a, batch = flattened(x)
    count, n, _ = a.shape
    keep = places(a.shape, 1) > places(a.shape, 2)
    keep = keep if lower else places(a.shape, 1) < places(a.shape, 2)
    triangle = where(keep, a, zeros(a, ()))
    same = places(a.shape, 1) == places(a.shape, 2)
    own = where(same, convert(a.real, a.dtype), zeros(a, ()))
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
            diagonal = (eye(a, count, size // 2, size // 2) * _halves(upper, 2)[0]).sum(2).real
            other = (eye(a, count, size // 2, size // 2) * _halves(under, 2)[1]).sum(2).real
            cross = (eye(a, count, size // 2, size // 2) * _halves(upper, 2)[1]).sum(2)
            c, s, w = _rotations(diagonal, other, cross)
            return rows(_rotate_columns(a, c, s, w), c, s, w), _rotate_columns(v, c, s, w)

        def off(state: tuple) -> Any:
            a = state[0]
            same = places(a.shape, 1) == places(a.shape, 2)
            square = abs(a) * abs(a)
            rest = where(same, zeros(square, ()), square).sum((1, 2))
            return (rest / (square.sum((1, 2)) + float(np.finfo(square.dtype).tiny))).max()

        state = (a, eye(a, count, size, size))
        a, v = _converged((eps / 4) ** 2, lambda state: fori_loop(0, size - 1, step, state), state,
                          off)
        a, v = a[:, :n, :n], v[:, :n, :n]
    else:
        v = eye(a, count, n, n)
    values = (eye(a, count, n, n) * a).sum(2).real
    if sort_eigenvalues:
        values, order = sort_p.bind(values, places(values.shape, 1), dimension=1, is_stable=True,
                                    num_keys=1)
        v = _columns_in_order(v, order)
    start, stop = subset_by_index or (0, n)
    values = reshape(values[:, start:stop], (*batch, stop - start))
    return [reshape(v[:, :, start:stop], (*batch, n, stop - start)), values] if compute_v else [
        values]


def _columns_in_order(x: Any, order: Any) -> Any:
    chosen = places((*order.shape[:1], x.shape[2], order.shape[1]), 1) == order[:, None, :]
    return x @ convert(chosen, x.dtype)


def svd(x: Any, *, full_matrices: bool, compute_uv: bool) -> list:
    """Singular values in descending order, U and V', by rotations of columns."""
    a, batch = flattened(x)
    count, m, n = a.shape
    if m < n:
        made = svd(a.transpose(0, 2, 1).conj(), full_matrices=full_matrices, compute_uv=compute_uv)
        outs = made[:1]
        if compute_uv:
            outs += [made[2].transpose(0, 2, 1).conj(), made[1].transpose(0, 2, 1).conj()]
        return [reshape(y, (*batch, *y.shape[1:])) for y in outs]
    eps = float(np.finfo(dtypes.real_of(x.dtype)).eps)
    scale = abs(a).max((1, 2))
    scale = where(scale > 0, scale, full((), 1, scale.dtype))
    work, v = a / convert(scale, a.dtype)[:, None, None], eye(a, count, n, n)
    if n > 1:
        work = _even(work, False)
        size = work.shape[2]
        v = eye(a, count, size, size)
        tiny = float(np.finfo(scale.dtype).tiny)

        def step(_: Any, state: tuple) -> tuple:
            work, v, worst = state
            left, right = _halves(work, 2)
            alpha, beta = (abs(left) ** 2).sum(1), (abs(right) ** 2).sum(1)
            gamma = (left.conj() * right).sum(1)
            angle = abs(gamma) / sqrt(alpha * beta + tiny)
            small = abs(gamma) <= tiny
            worst = where((angle > worst) & ~small, angle, worst)
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
    down, order = sort_p.bind(-values, places(values.shape, 1), dimension=1, is_stable=True,
                              num_keys=1)
    values = reshape(-down * scale[:, None], (*batch, n))
    if not compute_uv:
        return [values]
    work, v = _columns_in_order(work, order), _columns_in_order(v, order)
    # The columns are orthogonal, so R is diagonal; Q has whole columns where they are zero.
    q, r = qr(work, pivoting=False, full_matrices=full_matrices, compute_q=True)
    diagonal = (eye(r, count, n, n) * r[:, :n]).sum(2)
    phase = where(diagonal == 0, full((), 1, r.dtype), sign(diagonal))
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
    **linalg_general.EXPANSIONS,
}
