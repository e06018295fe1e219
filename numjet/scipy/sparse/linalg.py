"""numjet.scipy.sparse.linalg: linear systems by iteration, for operators known by their products.

Vectors are pytrees of arrays. Derivatives are those of the solution (`custom_linear_solve`), not of
the iteration. Sources: Hestenes & Stiefel 1952; van der Vorst, "Bi-CGSTAB", 1992; Saad & Schultz,
"GMRES", 1986.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet import lax, numpy as jnp
from numjet.api.derivatives.implicit import custom_linear_solve
from numjet.base import tree
from numjet.base.record import NamedTuple
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.scipy.linalg import solve_triangular

_UNBOUNDED = 2**31 - 1


def _dot(x: Any, y: Any) -> Any:
    """Σ conj(x) y over all leaves."""
    return functools.reduce(operator.add, tree.tree_leaves(tree.tree_map(jnp.vdot, x, y)))


def _square(x: Any) -> Any:
    return _dot(x, x).real


def _plus(x: Any, factor: Any, y: Any) -> Any:
    """x + factor y."""
    return tree.tree_map(lambda a, b: a + factor.astype(b.dtype) * b, x, y)


def _minus(x: Any, y: Any) -> Any:
    return tree.tree_map(jnp.subtract, x, y)


def _operator(name: str, what: str, matrix: Any) -> Callable:
    """The function of a matrix, or the function itself."""
    if callable(matrix):
        return matrix
    shape = getattr(matrix, "shape", None)
    if shape is None or not hasattr(matrix, "__matmul__"):
        raise TypeError(
            f"{name}: {what}, the linear operator must be either a function or ndarray: {matrix!r}."
            " Sparse arrays will do, too."
        )
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(
            f"{name}: {what}, the linear operator must be a square matrix, but has shape: {shape}"
        )
    if isinstance(matrix, np.ndarray):
        matrix = jnp.asarray(matrix)
    return lambda x: matrix @ x


def _conjugate_gradients(product: Any, b: Any, goal: Any, most: Any, inverse: Any) -> Any:
    def going(state: tuple) -> Any:
        _, residual, _, _, k = state
        return (_square(residual) > goal) & (k < most)

    def step(state: tuple) -> tuple:
        x, residual, size, direction, k = state
        image = product(direction)
        length = size / _dot(direction, image).real.astype(size.dtype)
        x, residual = _plus(x, length, direction), _plus(residual, -length, image)
        better = inverse(residual)
        new = _dot(residual, better).real
        return x, residual, new, _plus(better, new / size, direction), k + 1

    first, zero = inverse(b), tree.tree_map(jnp.zeros_like, b)
    return lax.while_loop(going, step, (zero, b, _dot(b, first).real, first, 0))[0]


def _bicgstab(product: Any, b: Any, goal: Any, most: Any, inverse: Any) -> Any:
    def going(state: tuple) -> Any:
        residual, k = state[1], state[-1]
        return (_square(residual) > goal) & (k < most) & (k >= 0)

    def step(state: tuple) -> tuple:
        x, residual, direction, rho, k = state
        turned = inverse(direction)
        image = product(turned)
        alpha = rho / _dot(b, image)
        half = _plus(residual, -alpha, image)
        turned_half = inverse(half)
        image_half = product(turned_half)
        size = _square(image_half)
        omega = _dot(image_half, half) / jnp.where(size > 0, size, 1).astype(alpha.dtype)
        omega = jnp.where(_square(half) < goal, 0, omega)  # half a step is enough
        x = _plus(_plus(x, alpha, turned), omega, turned_half)
        residual = _plus(half, -omega, image_half)
        new = _dot(b, residual)
        beta = (new / rho) * (alpha / jnp.where(omega == 0, 1, omega))
        direction = _plus(residual, beta, _plus(direction, -omega, image))
        # A breakdown: the residual is orthogonal to the first, or no step is left.
        broken = (new == 0) | (omega == 0)
        return x, residual, direction, new, jnp.where(broken, -1, k + 1)

    zero = tree.tree_map(jnp.zeros_like, b)
    return lax.while_loop(going, step, (zero, b, b, _dot(b, b), jnp.asarray(0)))[0]


class _Basis(NamedTuple):
    """Orthonormal vectors of a Krylov space, rows of the leaves of `vectors`, on which the operator
    is `rotation`^H `triangle`; `rest` is the first residual after the rotations: behind the first
    `count` entries stands one more, the norm of what these vectors leave."""

    vectors: Any
    rotation: Any
    triangle: Any
    rest: Any
    count: Any


def _combined(basis: Any, factors: Any) -> Any:
    """Σ factors[k] basis[k]."""
    return tree.tree_map(lambda v: jnp.tensordot(factors.astype(v.dtype), v, 1), basis)


def _components(basis: Any, x: Any) -> Any:
    """The scalar products of all vectors of a basis with x."""
    parts = tree.tree_map(
        lambda v, y: jnp.conj(v.reshape(v.shape[0], -1)) @ jnp.ravel(y), basis, x
    )
    return functools.reduce(operator.add, tree.tree_leaves(parts))


def _extended(product: Callable, basis: _Basis) -> _Basis:
    """The basis with one vector more, by Arnoldi's method: made orthogonal twice, so that it is so
    to rounding (Giraud, Langou & Rozložník 2005)."""
    vectors, rotation, triangle, rest, k = basis
    x = product(tree.tree_map(lambda v: v[k], vectors))
    column = jnp.zeros_like(rest)
    for _ in range(2):
        part = _components(vectors, x)
        x, column = _minus(x, _combined(vectors, part)), column + part
    size = jnp.sqrt(_square(x))
    unit = tree.tree_map(lambda a: jnp.where(size > 0, a / jnp.where(size > 0, size, 1), 0), x)
    vectors = tree.tree_map(lambda v, a: v.at[k + 1].set(a.astype(v.dtype)), vectors, unit)
    column = rotation @ column.at[k + 1].set(size.astype(rest.dtype))
    a, b = column[k], column[k + 1]
    length = jnp.sqrt((a * a.conj() + b * b.conj()).real)
    safe = jnp.where(length > 0, length, 1).astype(rest.dtype)
    turn = jnp.array([[a.conj(), b.conj()], [-b, a]]) / safe
    turn = jnp.where(length > 0, turn, jnp.eye(2, dtype=rest.dtype))

    def turned(x: Any) -> Any:
        both = turn @ jnp.stack([x[k], x[k + 1]])
        return x.at[k].set(both[0]).at[k + 1].set(both[1])

    triangle = triangle.at[:, k].set(turned(column)[:-1])
    return _Basis(vectors, turned(rotation), triangle, turned(rest), k + 1)


def _gmres(restart: int, product: Any, b: Any, goal: Any, most: Any, inverse: Any) -> Any:
    size = sum(x.size for x in tree.tree_leaves(b))
    count = min(restart, size)
    dtype = jnp.result_type(*tree.tree_leaves(b))

    def going(state: tuple) -> Any:
        _, left, before, _, k = state
        # A breakdown, or all that rounding allows: a whole round made it no better.
        return (left > goal) & (left < before) & (k < most)

    def step(state: tuple) -> tuple:
        x, left, _, residual, k = state
        norm = jnp.sqrt(left)
        vectors = tree.tree_map(
            lambda r: jnp.zeros((count + 1, *r.shape), r.dtype).at[0].set(r / norm.astype(r.dtype)),
            residual,
        )
        rest = jnp.zeros(count + 1, dtype).at[0].set(norm.astype(dtype))
        start = _Basis(
            vectors, jnp.eye(count + 1, dtype=dtype), jnp.eye(count, dtype=dtype), rest,
            jnp.asarray(0),
        )  # fmt: skip
        found = lax.while_loop(
            lambda s: (s.count < count) & (jnp.square(jnp.abs(s.rest[s.count])) > goal),
            lambda s: _extended(lambda x: product(inverse(x)), s),
            start,
        )
        known = jnp.arange(count) < found.count
        factors = solve_triangular(found.triangle, jnp.where(known, found.rest[:-1], 0))
        factors = jnp.where(known, factors, 0)
        basis = tree.tree_map(lambda v: v[:-1], found.vectors)
        better = tree.tree_map(jnp.add, x, inverse(_combined(basis, factors)))
        residual = _minus(b, product(better))
        now = _square(residual)
        x = tree.tree_map(lambda a, b: jnp.where(now < left, a, b), better, x)
        return x, now, left, residual, k + 1

    left, zero = _square(b), tree.tree_map(jnp.zeros_like, b)
    return lax.while_loop(going, step, (zero, left, jnp.full_like(left, jnp.inf), b, 0))[0]


def _solve(
    name: str, method: Callable, symmetric: bool, A: Any, b: Any, x0: Any, tol: Any, atol: Any,
    maxiter: int | None, M: Any,
) -> tuple[Any, None]:  # fmt: skip
    product = _operator(name, "A", A)
    inverse = (lambda x: x) if M is None else _operator(name, "M", M)
    b = tree.tree_map(_inexact, b)
    start = b if x0 is None else tree.tree_map(_inexact, x0)
    (starts, structure), (wanted, like) = tree.tree_flatten(start), tree.tree_flatten(b)
    if structure != like:
        raise ValueError(
            f"{name}: x0 and b must have matching tree structure, got {structure} and {like}."
        )
    shapes = [[x.shape for x in leaves] for leaves in (starts, wanted)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"{name}: arrays in x0 and b must have matching shapes, got {shapes[0]} and "
            f"{shapes[1]}."
        )
    size = sum(x.size for x in tree.tree_leaves(b))
    most = 10 * size if maxiter is None else maxiter

    def solve(product: Callable, b: Any) -> Any:
        goal = jnp.maximum(jnp.square(tol) * _square(b), jnp.square(atol))
        return method(product, b, goal, most, inverse)

    # The transpose of a Hermitian matrix is its conjugate: another one, unless it is real.
    symmetric = symmetric and not any(dtypes.is_complex(x.dtype) for x in tree.tree_leaves(b))
    rest: dict = {"symmetric": True} if symmetric else {"transpose_solve": solve}
    if x0 is None:
        return custom_linear_solve(product, b, solve, **rest), None
    # The equation of what is missing, so that derivatives do not begin there.
    start = lax.stop_gradient(start)
    missing = custom_linear_solve(product, _minus(b, product(start)), solve, **rest)
    return tree.tree_map(jnp.add, start, missing), None


def _inexact(x: Any) -> Any:
    x = jnp.asarray(x)
    return x if dtypes.is_inexact(x.dtype) else x.astype(dtypes.canonical(float))


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """The x with A x = b, by conjugate gradients: (x, None).

    A: Hermitian and positive definite, a matrix or a function of pytrees like b. b: an array or a
    pytree of them. x0: where to begin, zeros unless given. tol, atol: it stops where |b - A x| <=
    max(tol |b - A x0|, atol). maxiter: after as many steps, 10 times the components unless given.
    M: what approximates A's inverse, a matrix or a function. Result: x like b; whether it converged
    is not told. Derivative: by solving with A again, whatever the steps were. Raises ValueError for
    structures and shapes that differ. Source: Hestenes and Stiefel, Methods of conjugate gradients
    for solving linear systems (1952). SciPy tells a status instead of None, and calls `tol` `rtol`;
    there is no `callback`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.sparse.linalg import cg
    >>> x, _ = cg(lambda x: 4.0 * x, jnp.array([4.0, 8.0]))
    >>> print(x)
    [1. 2.]
    """
    return _solve("cg", _conjugate_gradients, True, A, b, x0, tol, atol, maxiter, M)


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """The x with A x = b, by stabilized biconjugate gradients: (x, None).

    A: any square matrix, or a function of pytrees like b. b, x0, tol, atol, maxiter, M: as of `cg`.
    Derivative: by solving with A, or its transpose, again. Raises ValueError for structures and
    shapes that differ. Source: van der Vorst, Bi-CGSTAB (1992). Raises TypeError where A gives
    other dtypes than b has. SciPy tells a status instead of None, and calls `tol` `rtol`; there is
    no `callback`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.sparse.linalg import bicgstab
    >>> x, _ = bicgstab(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([4.0, 8.0]))
    >>> print(x.round(4))
    [1. 2.]
    """
    return _solve("bicgstab", _bicgstab, False, A, b, x0, tol, atol, maxiter, M)


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, Any]:
    """The x with A x = b, by the generalized minimal residual method: (x, 0).

    A: any square matrix, or a function of pytrees like b. b, x0, tol, atol, M: as of `cg`. restart:
    after so many products the search begins anew. maxiter: how often at most (by default as long as
    each time brings it nearer). solve_method: "batched" or "incremental" (ValueError for others),
    and both end as soon as x is near enough. Derivative: by solving with A, or its transpose,
    again. Source: Saad and Schultz, GMRES (1986). Raises TypeError where A gives other dtypes than
    b has. SciPy tells a status instead of 0, and calls `tol` `rtol`; there is no `callback` and no
    callback_type.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.sparse.linalg import gmres
    >>> x, _ = gmres(jnp.array([[0.0, 1.0], [-4.0, 0.0]]), jnp.array([2.0, -4.0]))
    >>> print(x.round(4))
    [1. 2.]
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(
            f"gmres: solve_method must be 'batched' or 'incremental', got {solve_method!r}."
        )
    restart = operator.index(restart)
    if restart < 1:
        raise ValueError(f"gmres: restart must be at least 1, got {restart}.")
    maxiter = _UNBOUNDED if maxiter is None else maxiter
    method = functools.partial(_gmres, restart)
    tol, atol = [jnp.maximum(limit, 0) for limit in (tol, atol)]
    x, _ = _solve("gmres", method, False, A, b, x0, tol, atol, maxiter, M)
    return x, as_array(0)


__all__ = ["bicgstab", "cg", "gmres"]


def __dir__() -> list[str]:
    return [*__all__]
