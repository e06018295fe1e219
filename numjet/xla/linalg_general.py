"""Matrices without symmetry: Hessenberg, tridiagonal and Schur forms, eigenvalues and vectors.

In terms of our own primitives, as `xla.linalg`, whose table these functions are in; a batch is
worked on one matrix after the other, since each takes its own number of steps. Sources: Golub &
Van Loan, Matrix Computations, 4th edition: reduction to Hessenberg form (7.4), the QR algorithm
with double and single shifts and deflation (7.5), triangular eigenvectors (7.6).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.structural import convert, full, reduce_sum
from numjet.ops.cond import switch
from numjet.ops.scan import scan
from numjet.ops.shape import concatenate, pad, reshape, rev
from numjet.ops.slicing import dynamic_slice, dynamic_update_slice
from numjet.ops.transcendental import sqrt
from numjet.ops.while_loop import fori_loop, while_loop
from numjet.xla.basics import (
    INDEX,
    column_of,
    conjugate_transpose,
    eye,
    flattened,
    places,
    reflector,
    where,
    zeros,
)

# Steps that one eigenvalue may take before the matrix is given up (it holds values that are no
# numbers), and after how many the shift is chosen at will, in case the usual ones go round in a
# circle.
STEPS, EXCEPTIONAL = 30, 10


def _each(fun: Callable, x: Any) -> list:
    """`fun(matrix)` for each matrix of a batch, one after the other."""
    if x.ndim == 2:
        return list(fun(x))
    matrices, batch = flattened(x)
    outs = scan(lambda _, one: ((), tuple(fun(one))), (), matrices)[1]
    return [reshape(y, (*batch, *y.shape[1:])) for y in outs]


def _real(value: float, like: Any) -> Any:
    return full((), value, dtypes.real_of(like.dtype))


# ------------------------------------------------------------------ two-sided reductions
def _reduced(a: Any) -> tuple[Any, Any]:
    """Hessenberg form with the reflections stored below it, and their factors; all matrices of a
    batch (one leading axis) at once."""
    count, n, _ = a.shape
    taus = full((count, max(n - 1, 0)), 0, a.dtype)

    def step(k: Any, state: tuple) -> tuple:
        a, taus = state
        x, rows = column_of(a, k), places((count, n), 1)
        v, tau, top = reflector(x, rows, k + 1)
        wide = tau.conj()[:, None] * v
        right = v.conj()[:, None, :] @ a
        # Columns before this one are finished: reflections are stored in them.
        right = where(places(right.shape, 2) >= k, right, zeros(a, ()))
        a = a - wide[:, :, None] * right
        left = a @ v[:, :, None]
        a = a - left * (tau[:, None] * v.conj())[:, None, :]
        kept = where(rows == k + 1, top[:, None], where(rows > k + 1, v, column_of(a, k)))
        a = where(places(a.shape, 2) == k, kept[:, :, None], a)
        return a, where(places(taus.shape, 1) == k, tau[:, None], taus)

    return fori_loop(0, n - 1, step, (a, taus)) if n > 1 else (a, taus)


def hessenberg(a: Any) -> list:
    """The form with the reflections below its diagonals, and their factors."""
    x, batch = flattened(a)
    form, taus = _reduced(x)
    return [reshape(form, a.shape), reshape(taus, (*batch, taus.shape[1]))]


def tridiagonal(a: Any, *, lower: bool) -> list:
    """A Hermitian matrix's reflections with its other triangle, both diagonals, the factors."""
    x, batch = flattened(a)
    count, n, _ = x.shape
    x = x if lower else rev(x, (1, 2))
    below = places(x.shape, 1) > places(x.shape, 2)
    same = places(x.shape, 1) == places(x.shape, 2)
    nothing = zeros(x, ())
    low = where(below, x, nothing)
    whole = low + conjugate_transpose(low) + where(same, convert(x.real, x.dtype), nothing)
    form, taus = _reduced(whole)
    unit = eye(x, count, n, n)
    d = reduce_sum(unit * form, (2,)).real
    e = reduce_sum(unit[:, : n - 1, : n - 1] * form[:, 1:, : n - 1], (2,)).real
    kept = where(below | same, form, x) if n > 1 else x
    if not lower:
        kept, d, e, taus = rev(kept, (1, 2)), rev(d, (1,)), rev(e, (1,)), rev(taus, (1,))
    return [reshape(y, (*batch, *y.shape[1:])) for y in (kept, d, e, taus)]


def _hessenberg_and_q(x: Any) -> tuple[Any, Any]:
    """One matrix's Hessenberg form and the unitary matrix that gives it."""
    n = x.shape[0]
    form, taus = _reduced(x[None])
    rows = places((1, n), 1)

    def step(i: Any, q: Any) -> Any:
        k = n - 2 - i
        v = where(rows == k + 1, full((), 1, x.dtype),
                  where(rows > k + 1, column_of(form, k), zeros(x, ())))
        tau = column_of(taus[:, None, :], k)
        return q - (tau * v)[:, :, None] * (v.conj()[:, None, :] @ q)

    q = fori_loop(0, n - 1, step, eye(x, 1, n, n))[0] if n > 1 else eye(x, 1, n, n)[0]
    form = form[0]
    return where(places(form.shape, 0) <= places(form.shape, 1) + 1, form, zeros(x, ())), q


# ------------------------------------------------------------------ the QR algorithm
def _at(x: Any, i: Any, j: Any) -> Any:
    return reshape(dynamic_slice(x, (i, j), (1, 1)), ())


def _similar(h: Any, z: Any, g: Any, k: Any) -> tuple[Any, Any]:
    """G h Gᴴ and z Gᴴ, where the small G acts on rows (and columns) from k on."""
    size, zero = g.shape[0], 0
    back = g.conj().swapaxes(0, 1)
    rows = dynamic_slice(h, (k, zero), (size, h.shape[1]))
    h = dynamic_update_slice(h, g @ rows, (k, zero))
    columns = dynamic_slice(h, (zero, k), (h.shape[0], size))
    h = dynamic_update_slice(h, columns @ back, (zero, k))
    columns = dynamic_slice(z, (zero, k), (z.shape[0], size))
    return h, dynamic_update_slice(z, columns @ back, (zero, k))


def _matrix(rows: list) -> Any:
    return concatenate([reshape(concatenate([reshape(x, (1,)) for x in row], 0), (1, len(row)))
                        for row in rows], 0)


def _split(h: Any, hi: Any) -> tuple[Any, Any]:
    """Where the active block that ends at `hi` begins; `h` with a zero before it."""
    n = h.shape[0]
    eps = float(np.finfo(dtypes.real_of(h.dtype)).eps)
    tiny = float(np.finfo(dtypes.real_of(h.dtype)).tiny) / eps
    unit = eye(h, 1, n, n)[0]
    size = abs(reduce_sum(unit * h, (1,)))
    under = abs(reduce_sum(unit[: n - 1, : n - 1] * h[1:, : n - 1], (1,)))
    scale = size[1:] + size[: n - 1]
    whole = abs(h).max()
    scale = where(scale == 0, whole, scale)
    small = under <= where(scale * eps > tiny, scale * eps, full((), tiny, scale.dtype))
    at = places((n - 1,), 0) + 1
    lo = where(small & (at <= hi), at, full((), 0, INDEX)).max()
    gone = (places((n, n), 0) == lo) & (places((n, n), 1) == lo - 1)
    return lo, where(gone, zeros(h, ()), h)


def _rotation(x: Any, y: Any) -> Any:
    """The unitary 2x2 matrix that takes (x, y) to (r, 0)."""
    a, b = abs(x), abs(y)
    top = where(a > b, a, b)
    safe = where(top == 0, full((), 1, top.dtype), top)
    r = sqrt((a / safe) * (a / safe) + (b / safe) * (b / safe)) * safe
    none = b == 0
    r = where(none, full((), 1, r.dtype), r)
    one = full((), 1, x.dtype)
    phase = where(a == 0, one, x / convert(where(a == 0, full((), 1, a.dtype), a), x.dtype))
    c = convert(where(none, full((), 1, a.dtype), a / r), x.dtype)
    s = where(none, zeros(x, ()), phase * y.conj() / convert(r, x.dtype))
    return _matrix([[c, s], [-s.conj(), c]])


def _complex_step(h: Any, z: Any, lo: Any, hi: Any, count: Any) -> tuple[Any, Any]:
    """One implicit step with Wilkinson's shift on the block lo..hi."""
    a, b = _at(h, hi - 1, hi - 1), _at(h, hi - 1, hi)
    c, d = _at(h, hi, hi - 1), _at(h, hi, hi)
    half = (a - d) / 2
    root = sqrt(half * half + b * c)
    root = where((half * root.conj()).real < 0, -root, root)
    below = half + root
    none = below == 0
    shift = where(none, d, d - b * c / where(none, full((), 1, h.dtype), below))
    odd = (count + 1) % EXCEPTIONAL == 0
    shift = where(odd, d + convert(abs(c), h.dtype), shift)

    def rotate(k: Any, state: tuple) -> tuple:
        h, z = state
        first = k == lo
        x = where(first, _at(h, lo, lo) - shift, _at(h, k, where(first, k, k - 1)))
        y = where(first, _at(h, lo + 1, lo), _at(h, k + 1, where(first, k, k - 1)))
        return _similar(h, z, _rotation(x, y), k)

    return fori_loop(lo, hi, rotate, (h, z))


def _mirror(x: Any, y: Any, w: Any) -> Any:
    """The symmetric 3x3 reflection that takes (x, y, w) to (r, 0, 0)."""
    scale = where(abs(y) > abs(w), abs(y), abs(w))
    scale = where(abs(x) > scale, abs(x), scale)
    one = full((), 1, x.dtype)
    safe = where(scale == 0, one, scale)
    x, y, w = x / safe, y / safe, w / safe
    rest = y * y + w * w
    norm = sqrt(x * x + rest)
    beta = where(x < 0, norm, -norm)
    none = rest == 0
    tau = where(none, zeros(x, ()), (beta - x) / where(none, one, beta))
    gap = where(none, one, x - beta)
    u = [one, y / gap, w / gap]
    return _matrix([[(one if i == j else zeros(x, ())) - tau * u[i] * u[j] for j in range(3)]
                    for i in range(3)])


def _real_step(h: Any, z: Any, lo: Any, hi: Any, count: Any) -> tuple[Any, Any]:
    """Francis' implicit double step on the block lo..hi, which has three rows or more."""
    a, b = _at(h, hi - 1, hi - 1), _at(h, hi - 1, hi)
    c, d = _at(h, hi, hi - 1), _at(h, hi, hi)
    trace, det = a + d, a * d - b * c
    odd = (count + 1) % EXCEPTIONAL == 0
    size = abs(c) + abs(_at(h, hi - 1, hi - 2))
    trace = where(odd, d * 2 + size * 1.5, trace)
    det = where(odd, (d + size * 0.75) * (d + size * 0.75) + size * size * 0.4375, det)
    p, q = _at(h, lo, lo), _at(h, lo + 1, lo)
    # The first column of (h - s)(h - t), divided by h[lo+1, lo].
    start = ((p * p - trace * p + det) / q + _at(h, lo, lo + 1),
             p + _at(h, lo + 1, lo + 1) - trace, _at(h, lo + 2, lo + 1))

    def reflect(k: Any, state: tuple) -> tuple:
        h, z = state
        first = k == lo
        before = where(first, k, k - 1)
        x, y, w = [where(first, start[i], _at(h, k + i, before)) for i in range(3)]
        w = where(k + 2 > hi, zeros(w, ()), w)  # the last one has two rows
        return _similar(h, z, _mirror(x, y, w), k)

    return fori_loop(lo, hi, reflect, (h, z))


def _standard(h: Any, z: Any, k: Any) -> tuple[Any, Any]:
    """The block of rows k, k + 1 made triangular, or with equal diagonal elements where its
    eigenvalues are a complex pair."""
    a, b, c, d = [_at(h, k + i, k + j) for i in (0, 1) for j in (0, 1)]
    one, zero = full((), 1, h.dtype), zeros(h, ())
    half = (a - d) * 0.5
    under = half * half + b * c
    real = under >= 0
    root = sqrt(where(real, under, zero))
    way = where(half + where(half < 0, -root, root) == 0, zero,
                half + where(half < 0, -root, root))
    # Real: (value - d, c) is the eigenvector that comes first.
    top = where(abs(way) > abs(c), abs(way), abs(c))
    safe = where(top == 0, one, top)
    r = sqrt((way / safe) * (way / safe) + (c / safe) * (c / safe)) * safe
    cs, sn = way / where(r == 0, one, r), c / where(r == 0, one, r)
    # Complex: half the angle whose tangent is (a - d) / (b + c).
    sigma = b + c
    long = sqrt(sigma * sigma + (a - d) * (a - d))
    long = where(long == 0, one, long)
    half_cosine = sqrt((one + abs(sigma) / long) * 0.5)
    half_sine = -half / (long * half_cosine) * where(sigma < 0, -one, one)
    cs, sn = where(real, cs, half_cosine), where(real, sn, half_sine)
    nothing = c == 0
    cs, sn = where(nothing, one, cs), where(nothing, zero, sn)
    h, z = _similar(h, z, _matrix([[cs, sn], [-sn, cs]]), k)
    corner = (places(h.shape, 0) == k + 1) & (places(h.shape, 1) == k)
    h = where(corner & real, zero, h)
    same = (_at(h, k, k) + _at(h, k + 1, k + 1)) * 0.5
    pair = (places(h.shape, 0) == places(h.shape, 1)) & (
        (places(h.shape, 0) == k) | (places(h.shape, 0) == k + 1))
    return where(pair & ~real, same, h), z


def _schur_form(x: Any) -> tuple[Any, Any]:
    """(t, z), x = z t zᴴ, of one matrix; NaN where it does not converge."""
    n = x.shape[0]
    if n < 2:
        return x, eye(x, 1, n, n)[0]
    h, z = _hessenberg_and_q(x)
    # A reflection of three rows may reach past the end, where it does nothing.
    margin = [(0, 1, 0), (0, 1, 0)]
    h, z = pad(h, zeros(h, ()), margin), pad(z, zeros(z, ()), [(0, 0, 0), (0, 1, 0)])
    complex_ = dtypes.is_complex(x.dtype)

    def more(state: tuple) -> Any:
        _, _, hi, _, total = state
        return (hi > 0) & (total < STEPS * n)

    def step(state: tuple) -> tuple:
        h, z, hi, count, total = state
        lo, square = _split(h[:n, :n], hi)
        h = pad(square, zeros(h, ()), margin)
        size = hi - lo
        zero = full((), 0, INDEX)

        def done(h: Any, z: Any) -> tuple:
            return h, z, hi - 1, zero

        def two(h: Any, z: Any) -> tuple:
            return *_standard(h, z, lo), hi - 2, zero

        def sweep(h: Any, z: Any) -> tuple:
            made = (_complex_step if complex_ else _real_step)(h, z, lo, hi, count)
            keep = places(h.shape, 0) <= places(h.shape, 1) + 1
            return where(keep, made[0], zeros(h, ())), made[1], hi, count + 1

        cases = [done, sweep] if complex_ else [done, two, sweep]
        last = full((), len(cases) - 1, INDEX)
        h, z, hi, count = switch(where(size < last, size, last), cases, h, z)
        return h, z, hi, count, total + 1

    state = (h, z, full((), n - 1, INDEX), full((), 0, INDEX), full((), 0, INDEX))
    h, z, hi, _, _ = while_loop(more, step, state)
    h, z = h[:n, :n], z[:, :n]
    if complex_:
        h = where(places(h.shape, 0) <= places(h.shape, 1), h, zeros(h, ()))
    failed = hi > 0
    nan = full((), np.nan, x.dtype)
    return where(failed, nan, h), where(failed, nan, z)


def schur(x: Any, *, compute_schur_vectors: bool) -> list:
    """The Schur form (of real matrices with 2x2 blocks) and its vectors."""
    return _each(_schur_form, x)[: 1 + compute_schur_vectors]


# ------------------------------------------------------------------ eigenvectors
def _values(t: Any) -> Any:
    """The eigenvalues on the diagonal blocks of a real Schur form, complex."""
    n = t.shape[0]
    unit = eye(t, 1, n, n)[0]
    d = reduce_sum(unit * t, (1,))
    inside = unit[: n - 1, : n - 1]
    low = reduce_sum(inside * t[1:, : n - 1], (1,))
    up = reduce_sum(inside * t[: n - 1, 1:], (1,))
    size = where(low == 0, zeros(t, ()), sqrt(abs(low)) * sqrt(abs(up)))
    none = full((1,), 0, t.dtype)
    imaginary = concatenate([size, none], 0) - concatenate([none, size], 0)
    kind = dtypes.complex_of(t.dtype)
    return convert(d, kind) + convert(imaginary, kind) * 1j


def _triangular(t: Any, z: Any) -> tuple[Any, Any]:
    """A real Schur form and its vectors with complex pairs made triangular."""
    n = t.shape[0]
    kind = dtypes.complex_of(t.dtype)

    def step(k: Any, state: tuple) -> tuple:
        t, z = state
        a, b, c, d = [_at(t, k + i, k + j) for i in (0, 1) for j in (0, 1)]
        pair = c != 0
        # The eigenvalue with positive imaginary part comes first, as `_values` has it.
        way = sqrt((a - d) * (a - d) * 0.25 + b * c)
        way = where(way.imag < 0, -way, way)
        g = _rotation((a - d) * 0.5 + way, c)
        same = convert(eye(t, 1, 2, 2)[0], kind)
        t, z = _similar(t, z, where(pair, g, same), k)
        corner = (places(t.shape, 0) == k + 1) & (places(t.shape, 1) == k)
        return where(corner, zeros(t, ()), t), z

    t, z = convert(t, kind), convert(z, kind)
    return fori_loop(0, n - 1, step, (t, z)) if n > 1 else (t, z)


def _substituted(t: Any, w: Any, upward: bool) -> Any:
    """Vectors of triangular `t`, one a column: right ones upwards from the diagonal, left ones
    downwards, where `t` is its adjoint and `w` conjugate."""
    n = t.shape[0]
    eps = float(np.finfo(dtypes.real_of(t.dtype)).eps)
    tiny = float(np.finfo(dtypes.real_of(t.dtype)).tiny)
    least = abs(t).max() * eps + tiny / eps
    at = places((n,), 0)

    def step(i: Any, x: Any) -> Any:
        j = n - 1 - i if upward else i
        row = reshape(dynamic_slice(t, (j, 0), (1, n)), (n,))
        own = reduce_sum(where(at == j, row, zeros(t, ())), (0,))
        # What lies on the diagonal meets zeros: x[j] is not known yet.
        right = (row[None, :] @ x)[0]
        gap = own - w
        gap = where(abs(gap) < least, convert(least, t.dtype), gap)
        beyond = at > j if upward else at < j
        made = where(beyond, -right / gap, where(at == j, full((), 1, t.dtype), zeros(t, ())))
        return dynamic_update_slice(x, made[None], (j, 0))

    return fori_loop(0, n, step, full((n, n), 0, t.dtype))


def _unit(v: Any, w: Any, real: bool) -> Any:
    """Columns of length one whose largest element is real; conjugate for conjugate values."""
    size = abs(v)
    scale = size.max(0)
    scale = where(scale == 0, full((), 1, scale.dtype), scale)
    v = v / convert(scale, v.dtype)
    size = abs(v)
    v = v / convert(sqrt(reduce_sum(size * size, (0,))), v.dtype)
    size = abs(v)
    first = size == size.max(0)[None]
    first = first & (places(v.shape, 0) == where(
        first, places(v.shape, 0), full((), v.shape[0], INDEX)).min(0)[None])
    lead = reduce_sum(where(first, v, zeros(v, ())), (0,))
    v = v * (lead.conj() / convert(abs(lead), v.dtype))[None]
    v = where(first, convert(v.real, v.dtype), v)
    if not real:
        return v
    v = where((w.imag == 0)[None], convert(v.real, v.dtype), v)
    before = concatenate([v[:, :1], v[:, :-1]], 1).conj()
    return where((w.imag < 0)[None], before, v)


def eig(x: Any, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool,
        enable_eigvec_derivs: bool) -> list:  # fmt: skip
    """Eigenvalues of general matrices, left and right vectors as asked for."""
    real = not dtypes.is_complex(x.dtype)
    kind = dtypes.complex_of(x.dtype)

    def one(a: Any) -> tuple:
        t, z = _schur_form(a)
        n = a.shape[0]
        w = _values(t) if real else reduce_sum(eye(t, 1, n, n)[0] * t, (1,))
        if not (compute_left_eigenvectors or compute_right_eigenvectors):
            return (w,)
        if real:
            t, z = _triangular(t, z)
        outs = [w]
        if compute_left_eigenvectors:
            adjoint = t.conj().swapaxes(0, 1)
            outs.append(_unit(z @ _substituted(adjoint, w.conj(), False), w, real))
        if compute_right_eigenvectors:
            outs.append(_unit(z @ _substituted(t, w, True), w, real))
        return tuple(outs)

    if 0 in x.shape:
        both = compute_left_eigenvectors + compute_right_eigenvectors
        return [full(x.shape[:-1], 0, kind), *[full(x.shape, 0, kind)] * both]
    return _each(one, x)


EXPANSIONS: dict[str, Callable] = {
    "hessenberg": hessenberg,
    "tridiagonal": tridiagonal,
    "schur": schur,
    "eig": eig,
}
