"""The special matrices of numjet.scipy.linalg: Toeplitz, Hilbert, Pascal and others."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.numpy import lax_names as lax
from numjet.numpy.creation import array
from numjet.numpy.elementwise import absolute, divide, multiply, negative, subtract
from numjet.numpy.indexing import getitem
from numjet.numpy.joining import concatenate
from numjet.numpy.logic import where
from numjet.numpy.promote import (
    as_arrays,
    broadcast,
    canonical_dtype,
    cast,
    one_array,
    promote_dtypes,
    promote_inexact,
    strong,
)
from numjet.numpy.shape import atleast_1d, atleast_2d, expand_dims
from numjet.ops.complex_ops import conjugate


def _floats(values: np.ndarray) -> Any:
    return array(values, dtypes.canonical(dtypes.float64))


def block_diag(*arrs: Any) -> Any:
    """The matrix with the given blocks on its diagonal, zeros elsewhere.

    arrs: arrays of at most two axes (ValueError for more), no lists (TypeError); vectors are rows,
    numbers 1 by 1 blocks. Result: their promoted dtype.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.block_diag(jnp.eye(2), 5.0)
    Array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 5.]], dtype=float32)
    """
    if not arrs:
        return lax.full((1, 0), 0, dtypes.canonical(dtypes.float64))
    parts = promote_dtypes(*[atleast_2d(x) for x in as_arrays("block_diag", *arrs)])
    if any(p.aval.ndim != 2 for p in parts):
        raise ValueError(
            "block_diag: arguments must have at most two dimensions, got "
            f"{[p.aval.shape for p in parts]}."
        )
    width = sum(p.aval.shape[1] for p in parts)
    zero = lax.full((), 0, parts[0].aval.dtype)
    rows, before = [], 0
    for p in parts:
        own = p.aval.shape[1]
        rows.append(lax.pad(p, zero, [(0, 0, 0), (before, width - before - own, 0)]))
        before += own
    return strong(concatenate(rows, 0))


def _rows(name: str, *xs: Any) -> list[Any]:
    """The arguments as strong arrays [..., n] of one dtype."""
    arrays = [atleast_1d(x) for x in as_arrays(name, *xs)]
    return [strong(x) for x in promote_dtypes(*arrays)]


def _with_batch(c: Any, r: Any) -> tuple[Any, Any]:
    """Both with the leading axes that they broadcast to."""
    lead = np.broadcast_shapes(c.aval.shape[:-1], r.aval.shape[:-1])
    return tuple(broadcast(x, (*lead, x.aval.shape[-1])) for x in (c, r))  # type: ignore[return-value]


def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix with first column c and first row r, constant along diagonals.

    c: [..., m]; r: [..., n], c's conjugate unless given; its first element is not read. Leading
    axes are a batch. Result: [..., m, n].

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.toeplitz(jnp.array([1, 2, 3]))
    Array([[1, 2, 3],
           [2, 1, 2],
           [3, 2, 1]], dtype=int32)
    """
    if r is None:
        (c,) = _rows("toeplitz", c)
        r = conjugate(c)
    else:
        c, r = _rows("toeplitz", c, r)
    c, r = _with_batch(c, r)
    m, n = c.aval.shape[-1], r.aval.shape[-1]
    line = concatenate([lax.rev(c, (c.aval.ndim - 1,)), getitem(r, (..., slice(1, None)))], -1)
    index = (np.arange(m)[::-1, None] + np.arange(n)[None]).astype(np.int32)
    return getitem(line, (..., as_array(index)))


def hankel(c: Any, r: Any = None) -> Any:
    """The matrix with first column c and last row r, constant along antidiagonals.

    c: [..., m]; r: [..., n], zeros unless given; its first element is not read. Leading axes are a
    batch. Result: [..., m, n].

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.hankel(jnp.array([1, 2, 3]))
    Array([[1, 2, 3],
           [2, 3, 0],
           [3, 0, 0]], dtype=int32)
    """
    if r is None:
        (c,) = _rows("hankel", c)
        r = lax.full(c.aval.shape, 0, c.aval.dtype)
    else:
        c, r = _rows("hankel", c, r)
    c, r = _with_batch(c, r)
    line = concatenate([c, getitem(r, (..., slice(1, None)))], -1)
    index = np.arange(c.aval.shape[-1])[:, None] + np.arange(r.aval.shape[-1])[None]
    return getitem(line, (..., as_array(index.astype(np.int32))))


def circulant(c: Any) -> Any:
    """The matrix whose columns are rotations of c.

    c: [..., n]; leading axes are a batch. Result: [..., n, n], of c's dtype.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.circulant(jnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    c = atleast_1d(one_array("circulant", c))
    n = c.aval.shape[-1]
    index = (np.arange(n)[:, None] - np.arange(n)[None]) % n
    return getitem(c, (..., as_array(index.astype(np.int32))))


def companion(a: Any) -> Any:
    """The companion matrix of a polynomial, whose eigenvalues are its roots.

    a: [..., n + 1], coefficients, the highest first, which must not be 0; leading axes are a batch.
    Result: [..., n, n]. Raises ValueError for less than two. Integers become floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.companion(jnp.array([1.0, 2.0, 3.0]))
    Array([[-2., -3.],
           [ 1.,  0.]], dtype=float32)
    """
    (a,) = promote_inexact(*_rows("companion", a))
    n = a.aval.shape[-1] - 1
    if n < 1:
        raise ValueError(
            f"companion: a must have at least two coefficients, got shape {a.aval.shape}."
        )
    head = getitem(a, (..., slice(0, 1)))
    first = expand_dims(divide(negative(getitem(a, (..., slice(1, None)))), head), -2)
    below = cast(array(np.eye(n - 1, n)), a.aval.dtype)
    return concatenate([first, broadcast(below, (*a.aval.shape[:-1], n - 1, n))], -2)


def hilbert(n: int) -> Any:
    """The Hilbert matrix: element (i, j) is 1 / (i + j + 1).

    n: the size, an integer (TypeError). Result: floats [n, n]. It is very badly conditioned.

    >>> from numjet.scipy import linalg
    >>> linalg.hilbert(2).round(4)
    Array([[1.    , 0.5   ],
           [0.5   , 0.3333]], dtype=float32)
    """
    n = operator.index(n)
    if n < 0:
        raise TypeError(f"hilbert: the size must be nonnegative, got {n}.")
    i = np.arange(n)
    return _floats(1 / (i[:, None] + i[None] + 1))


def helmert(n: int, full: bool = False) -> Any:
    """The Helmert matrix: orthonormal contrasts of each element with the mean of those before it.

    n: the size, positive. full: with the constant first row, so that it is orthogonal. Result:
    floats [n - 1, n], or [n, n]. ValueError for n < 1.

    >>> from numjet.scipy import linalg
    >>> linalg.helmert(2).round(4)
    Array([[ 0.7071, -0.7071]], dtype=float32)
    """
    if n < 1:
        raise ValueError(f"helmert: n must be positive, got {n}.")
    rows = np.tril(np.ones((n, n)), -1) - np.diag(np.arange(n))
    rows[0] = 1
    size = np.arange(n) * np.arange(1, n + 1)
    size[0] = n
    rows = rows / np.sqrt(size)[:, None]
    return _floats(rows if full else rows[1:])


def hadamard(n: int, dtype: Any = int) -> Any:
    """The Hadamard matrix of ±1 whose rows are orthogonal.

    n: a power of two (ValueError for others). dtype: of the result, the default integer unless
    given. By Sylvester's construction.

    >>> from numjet.scipy import linalg
    >>> linalg.hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    if n < 1 or n & (n - 1):
        raise ValueError(f"hadamard: n must be a power of 2, got {n}.")
    out = np.ones((1, 1))
    while out.shape[0] < n:
        out = np.block([[out, out], [out, -out]])
    return array(out, canonical_dtype(dtype, "hadamard"))


def _check_kind(name: str, kind: str | None) -> None:
    if kind not in (None, "symmetric", "lower", "upper"):
        raise ValueError(f"{name}: kind must be 'symmetric', 'lower' or 'upper', got {kind!r}.")


def pascal(n: int, kind: str | None = None) -> Any:
    """The Pascal matrix of binomial coefficients.

    n: the size. kind: 'symmetric' (the default, element (i, j) is C(i + j, i)), 'lower' or 'upper'
    (ValueError for others). Result: floats [n, n]; SciPy's `exact` is not there.

    >>> from numjet.scipy import linalg
    >>> linalg.pascal(3)
    Array([[1., 1., 1.],
           [1., 2., 3.],
           [1., 3., 6.]], dtype=float32)
    """
    _check_kind("pascal", kind)
    low = np.array([[math.comb(i, j) for j in range(n)] for i in range(n)], float).reshape(n, n)
    values = low if kind == "lower" else low.T if kind == "upper" else low @ low.T
    return _floats(values)


def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Any:
    """The matrix of the discrete Fourier transform: element (j, k) is exp(-2πi j k / n).

    n: the size. scale: None, 'sqrtn' (divided by √n, unitary) or 'n' (ValueError for others).
    dtype: complex, the default one unless given. Result: [n, n].

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> jnp.abs(linalg.dft(2, "sqrtn")).round(4)
    Array([[0.7071, 0.7071],
           [0.7071, 0.7071]], dtype=float32)
    """
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"dft: scale must be None, 'sqrtn' or 'n', got {scale!r}.")
    i = np.arange(n)
    values = np.exp(-2j * np.pi * (np.outer(i, i) % max(n, 1)) / max(n, 1))
    values = values / {None: 1, "sqrtn": math.sqrt(n), "n": n}[scale]
    return array(
        values,
        dtypes.canonical(dtypes.complex128) if dtype is None else canonical_dtype(dtype, "dft"),
    )


def leslie(f: Any, s: Any) -> Any:
    """The Leslie matrix of a population: fertilities in the first row, survivals below the
    diagonal.

    f: [..., n], s: [..., n - 1] (ValueError for other sizes); leading axes are a batch. Result:
    [..., n, n]. Integers become floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.leslie(jnp.array([1.0, 2.0]), jnp.array([0.5]))
    Array([[1. , 2. ],
           [0.5, 0. ]], dtype=float32)
    """
    f, s = _with_batch(*_rows("leslie", f, s))
    n = f.aval.shape[-1]
    if s.aval.shape[-1] != n - 1 or n < 2:
        raise ValueError(f"leslie: s must have one element less than f, got {f.aval} and {s.aval}.")
    unit = cast(array(np.eye(n - 1)), f.aval.dtype)
    below = multiply(expand_dims(s, -1), unit)
    last = lax.full((*f.aval.shape[:-1], n - 1, 1), 0, f.aval.dtype)
    return concatenate([expand_dims(f, -2), concatenate([below, last], -1)], -2)


def fiedler(a: Any) -> Any:
    """The matrix |a_i - a_j|.

    a: [..., n]; leading axes are a batch. Result: [..., n, n], of a's dtype. Raises TypeError for
    booleans. The derivative of an element 0 is 0.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.fiedler(jnp.array([1, 4, 9]))
    Array([[0, 3, 8],
           [3, 0, 5],
           [8, 5, 0]], dtype=int32)
    """
    weak = one_array("fiedler", a).aval.weak_type
    (a,) = _rows("fiedler", a)
    out = absolute(subtract(expand_dims(a, -1), expand_dims(a, -2)))
    return cast(out, out.aval.dtype, weak)


def fiedler_companion(a: Any) -> Any:
    """A pentadiagonal companion matrix of a polynomial, whose eigenvalues are its roots.

    a: [n + 1], coefficients, the highest first, which must not be 0. Result: [n, n]. Source:
    Fiedler, A note on companion matrices (2003). Integers become floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.fiedler_companion(jnp.array([1.0, 2.0, 3.0, 4.0]))
    Array([[-2., -3.,  1.],
           [ 1.,  0.,  0.],
           [ 0., -4.,  0.]], dtype=float32)
    """
    weak = one_array("fiedler_companion", a).aval.weak_type
    (a,) = promote_inexact(*_rows("fiedler_companion", a))
    if a.aval.shape[-1] <= 2:
        one = a.aval.shape[-1] == 2
        out = companion(a) if one else lax.full((*a.aval.shape[:-1], 0, 0), 0, a.aval.dtype)
        return cast(out, out.aval.dtype, weak)
    c = negative(divide(a, getitem(a, (..., slice(0, 1)))))
    n = c.aval.shape[-1] - 1
    pattern = np.zeros((n, n), np.float32)
    position = np.zeros((n, n), np.int32)
    # Coefficients on the first superdiagonal (odd places) and subdiagonal, ones in between.
    position[0, 0] = 1
    for k in range(n - 1):
        if k % 2 == 0:
            position[k, k + 1] = k + 2
            pattern[k + 1, k] = 0 if k else 1
        else:
            position[k + 1, k - 1 + 1] = k + 2
    for k in range(0, n - 2, 2):
        pattern[k, k + 2] = 1
    for k in range(1, n - 2, 2):
        pattern[k + 2, k] = 1
    for k in range(1, n - 1, 2):
        position[k + 1, k] = k + 2
    values = getitem(c, (..., as_array(position)))
    return where(as_array(position > 0), values, cast(array(pattern), c.aval.dtype))


def invhilbert(n: int) -> Any:
    """The inverse of the Hilbert matrix, whose elements are whole numbers.

    n: the size. Result: floats [n, n], rounded where they have more digits; SciPy's `exact` is not
    there.

    >>> from numjet.scipy import linalg
    >>> linalg.invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)
    """
    values = [
        [
            (-1) ** (i + j)
            * (i + j + 1)
            * math.comb(n + i, n - j - 1)
            * math.comb(n + j, n - i - 1)
            * math.comb(i + j, i) ** 2
            for j in range(n)
        ]
        for i in range(n)
    ]
    return _floats(np.array(values, float).reshape(n, n))


def invpascal(n: int, kind: str | None = None) -> Any:
    """The inverse of the Pascal matrix.

    n: the size. kind: 'symmetric' (the default), 'lower' or 'upper' (ValueError for others).
    Result: floats [n, n]. SciPy's `exact` is not there.

    >>> from numjet.scipy import linalg
    >>> linalg.invpascal(2)
    Array([[ 2., -1.],
           [-1.,  1.]], dtype=float32)
    """
    _check_kind("invpascal", kind)
    low = np.array(
        [[(-1) ** (i - j) * math.comb(i, j) if j <= i else 0 for j in range(n)] for i in range(n)],
        float,
    ).reshape(n, n)
    values = low if kind == "lower" else low.T if kind == "upper" else low.T @ low
    return _floats(values)


def convolution_matrix(a: Any, n: int, mode: str = "full") -> Any:
    """The matrix whose product with v is convolve(a, v).

    a: [..., m]; leading axes are a batch. n: the length of v, positive. mode: 'full', 'same' or
    'valid', as of `numpy.convolve`. Raises ValueError for other n or modes. Raises IndexError for
    an `a` without elements.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.convolution_matrix(jnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)
    """
    if n <= 0:
        raise ValueError(f"convolution_matrix: n must be a positive integer; got {n}.")
    (a,) = _rows("convolution_matrix", a)
    m = a.aval.shape[-1]
    if mode not in ("full", "same", "valid"):
        raise ValueError(
            f"convolution_matrix: mode must be 'full', 'same' or 'valid', got {mode!r}."
        )
    index = np.arange(m + n - 1)[:, None] - np.arange(n)[None]
    inside = (index >= 0) & (index < m)
    values = getitem(a, (..., as_array(np.clip(index, 0, m - 1).astype(np.int32))))
    full = where(as_array(inside), values, lax.full((), 0, a.aval.dtype))
    if mode == "full":
        return full
    total = max(m, n) if mode == "same" else max(m, n) - min(m, n) + 1
    start = (m + n - 1 - total) // 2
    return getitem(full, (..., slice(start, start + total), slice(None)))
