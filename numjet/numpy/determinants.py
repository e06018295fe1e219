"""Determinants and their logarithms: signs and products from an LU factorization.

Part of `numjet.numpy.linalg`, which shows these names. What would break it: a derivative by the
inverse, which singular matrices do not have while their determinants have one (`_adjugate`).
"""

from __future__ import annotations

from typing import Any

from numjet.api.derivatives.custom import jvp_of_arrays
from numjet.base.record import NamedTuple
from numjet.core import dtypes
from numjet.core.trace import concrete_or_none
from numjet.numpy import lax_names as lax
from numjet.numpy.creation import array
from numjet.numpy.elementwise import absolute, add, divide, multiply, negative, sign, subtract
from numjet.numpy.factorizations import lapack_matrices, matrices
from numjet.numpy.index_tricks import diagonal as _diagonal, trace as _trace
from numjet.numpy.indexing import getitem
from numjet.numpy.logic import bitwise_and, equal, less, logical_and, logical_or, not_equal, where
from numjet.numpy.products import matvec
from numjet.numpy.promote import broadcast, cast
from numjet.numpy.ranges import eye, triu
from numjet.numpy.reductions import any as any_, prod as prod_, sum as sum_
from numjet.numpy.shape import expand_dims, matrix_transpose, moveaxis
from numjet.numpy.take import take_along_axis
from numjet.ops import linalg as core
from numjet.ops.cond import cond as cond_
from numjet.ops.scan import scan


class SlogdetResult(NamedTuple):
    """What `slogdet` gives: the sign, and the logarithm of the determinant's size."""
    sign: Any
    logabsdet: Any


def _lu_sign_of_two(x: Any) -> tuple[Any, Any, Any]:
    """The two numbers on the diagonal of U, of matrices 2 by 2, and the sign of the exchange."""
    a, b, c, d = [x[..., i, j] for i in (0, 1) for j in (0, 1)]

    def size(v: Any) -> Any:
        if not dtypes.is_complex(v.aval.dtype):
            return absolute(v)
        return add(absolute(lax.real(v)), absolute(lax.imag(v)))

    exchanged = lax.gt(size(c), size(a))
    first, second = where(exchanged, c, a), where(exchanged, d, b)
    other, last = where(exchanged, a, c), where(exchanged, b, d)
    none = equal(first, 0)
    factor = where(none, 0, divide(other, where(none, 1, first)))
    last = subtract(last, multiply(cast(factor, x.aval.dtype), second))
    parity = where(exchanged, cast(array(-1), x.aval.dtype), cast(array(1), x.aval.dtype))
    return first, last, parity


def _lu_sign(x: Any) -> tuple[Any, Any]:
    """The diagonal of U and the sign of the row exchanges."""
    factors, pivots, _ = core.lu(x)
    diagonal = _diagonal(factors, 0, -2, -1)
    n = pivots.aval.shape[-1]
    moved = not_equal(
        pivots, lax.broadcasted_iota(pivots.aval.dtype, pivots.aval.shape, pivots.aval.ndim - 1)
    )
    odd = bitwise_and(sum_(cast(moved, dtypes.int32), -1), 1)
    parity = (
        cast(subtract(1, multiply(odd, 2)), x.aval.dtype)
        if n
        else lax.full(x.aval.shape[:-2], 1, x.aval.dtype)
    )
    return diagonal, parity


def det(a: Any) -> Any:
    """The determinant of square matrices.

    a: (..., n, n) of floats or complex; integers count as floats. Of n up to 3 by cofactors, else
    by elimination. The derivative, the matrix of cofactors, is that of singular matrices too.
    ValueError for matrices that are not square, NotImplementedError for 16-bit floats by
    elimination, which is by `lax.linalg.lu`.

    >>> jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    x = matrices("det", a, True)
    n = x.aval.shape[-1]

    def at(i: int, j: int) -> Any:
        return getitem(x, (..., i, j))

    if n == 0:
        lapack_matrices("det", x)
        return lax.full(x.aval.shape[:-2], 1, x.aval.dtype)
    if n == 1:
        return at(0, 0)
    if n == 2:
        return subtract(multiply(at(0, 0), at(1, 1)), multiply(at(0, 1), at(1, 0)))
    if n == 3:
        # Cofactors: derivatives exist for singular matrices, too.
        total = None
        for i, j, k, s in (
            (0, 1, 2, 1),
            (1, 2, 0, 1),
            (2, 0, 1, 1),
            (2, 1, 0, -1),
            (0, 2, 1, -1),
            (1, 0, 2, -1),
        ):
            term = multiply(multiply(at(0, i), at(1, j)), at(2, k))
            total = term if total is None else (add if s > 0 else subtract)(total, term)
        return total
    return _det_by_factors(lapack_matrices("det", x, True))


@jvp_of_arrays
def _det_by_factors(x: Any) -> Any:
    diagonal, parity = _lu_sign(x)
    return multiply(parity, prod_(diagonal, -1))


@_det_by_factors.defjvp
def _det_by_factors_jvp(primals: tuple, tangents: tuple) -> tuple:
    # d det x = trace(adj(x) dx), which is det x trace(x^-1 dx) where there is an inverse. With
    # P x = L U it is the sign of P times trace(adj(U) L^-1 P dx), whatever the rank.
    (x,), (dx,) = primals, tangents
    factors, _, order = core.lu(x)
    diagonal, parity = _lu_sign(x)
    value = _det_by_factors(x)
    change = take_along_axis(dx, expand_dims(order, -1), -2)
    change = core.triangular_solve(
        factors, change, left_side=True, lower=True, unit_diagonal=True
    )
    zero = equal(diagonal, 0)

    def regular(factors: Any, change: Any) -> Any:
        # Ones for zeros: under vmap both branches are computed, and NaN would reach the other.
        own = broadcast(eye(x.aval.shape[-1], dtype=bool), x.aval.shape)
        on = logical_and(own, expand_dims(zero, -2))
        solved = core.triangular_solve(where(on, 1, factors), change, left_side=True)
        return multiply(value, _trace(solved, 0, -2, -1))

    def singular(factors: Any, change: Any) -> Any:
        terms = multiply(_adjugate(triu(factors)), matrix_transpose(change))
        return multiply(parity, sum_(terms, (-2, -1)))

    somewhere = any_(zero)
    known = concrete_or_none(somewhere)
    if known is not None:
        return value, (singular if known._value else regular)(factors, change)
    return value, cond_(somewhere, singular, regular, factors, change)


def _adjugate(u: Any) -> Any:
    """The adjugate of upper triangular matrices, a column at a time and without a division: that
    of [[V, v], [0, c]] is [[c adj(V), -adj(V) v], [0, det V]]."""
    n, lead = u.aval.shape[-1], u.aval.shape[:-2]
    rows = lax.iota(dtypes.int32, n)

    def step(carry: tuple, item: tuple) -> tuple:
        known, det = carry
        k, column = item
        pivot = sum_(where(equal(rows, k), column, 0), -1)
        last = negative(matvec(known, where(less(rows, k), column, 0)))
        last = where(equal(rows, k), expand_dims(det, -1), last)
        scaled = multiply(expand_dims(pivot, (-2, -1)), known)
        known = where(equal(rows, k), expand_dims(last, -1), scaled)
        return (known, multiply(det, pivot)), None

    start = lax.full(u.aval.shape, 0, u.aval.dtype), lax.full(lead, 1, u.aval.dtype)
    (out, _), _ = scan(step, start, (rows, moveaxis(u, -1, 0)))
    return out


def slogdet(a: Any, *, method: str | None = None) -> SlogdetResult:
    """(sign, logabsdet) of the determinant of square matrices: the sign, or phase of complex
    numbers, and the natural logarithm of the size. It does not overflow where `det` would.

    a: (..., n, n) of floats or complex; integers count as floats. A singular matrix gives 0 and
    -inf. method: 'lu' or 'qr' (ValueError for others), which has no effect. ValueError for matrices
    that are not square, NotImplementedError for 16-bit floats. Computed by `lax.linalg.lu`.

    >>> sign, log = jnp.linalg.slogdet(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> sign, jnp.exp(log).round(3)
    (Array(-1., dtype=float32), Array(2., dtype=float32))
    """
    if method not in (None, "lu", "qr"):
        raise ValueError(f"slogdet: method must be None, 'lu' or 'qr', got {method!r}.")
    x = lapack_matrices("slogdet", a, True)
    phase, logs = _slogdet(x)
    weak = x.aval.weak_type
    return SlogdetResult(cast(phase, phase.aval.dtype, weak), cast(logs, logs.aval.dtype, weak))


@jvp_of_arrays
def _slogdet(x: Any) -> tuple[Any, Any]:
    def parts(diagonal: Any) -> tuple[Any, Any, Any]:
        size = absolute(diagonal)
        zero = equal(size, 0)
        turn = divide(diagonal, cast(where(zero, 1, size), diagonal.aval.dtype))
        return zero, turn, lax.log(size)

    if x.aval.shape[-1] == 2:
        # Elementwise throughout, which is one loop; a stacked diagonal is in memory between two.
        first, last, parity = _lu_sign_of_two(x)
        (none, turn, logs), (no_last, last_turn, last_logs) = parts(first), parts(last)
        singular, turn = logical_or(none, no_last), multiply(turn, last_turn)
        logs = add(logs, last_logs)
    else:
        diagonal, parity = _lu_sign(x)
        zero, turns, sizes = parts(diagonal)
        singular, turn, logs = any_(zero, -1), prod_(turns, -1), sum_(sizes, -1)
    phase = multiply(parity, turn)
    if not dtypes.is_complex(phase.aval.dtype):
        phase = sign(phase)
    return where(singular, cast(array(0), x.aval.dtype), phase), logs


def _solve_by_factors(x: Any, b: Any) -> Any:
    """x^-1 b by substitution, which gives infinities of a singular matrix and no NaN at once."""
    factors, _, order = core.lu(x)
    b = take_along_axis(b, expand_dims(order, -1), -2)
    y = core.triangular_solve(factors, b, left_side=True, lower=True, unit_diagonal=True)
    return core.triangular_solve(factors, y, left_side=True)


@_slogdet.defjvp
def _slogdet_jvp(primals: tuple, tangents: tuple) -> tuple:
    # d log det x = trace(x^-1 dx); its imaginary part turns the phase.
    (x,), (dx,) = primals, tangents
    phase, logs = _slogdet(x)
    change = _trace(_solve_by_factors(x, dx), 0, -2, -1)
    if dtypes.is_complex(x.aval.dtype):
        turn = multiply(phase, lax.complex(multiply(logs, 0), lax.imag(change)))
        return (phase, logs), (turn, lax.real(change))
    return (phase, logs), (multiply(phase, 0), change)
