"""numjet.scipy.sparse.linalg: linear systems by iteration, for operators known by their products.

Vectors are pytrees of arrays. Derivatives are those of the solution (`custom_linear_solve`), not of
the iteration. Sources: Hestenes & Stiefel 1952; van der Vorst, "Bi-CGSTAB", 1992.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from numjet import lax, numpy as jnp
from numjet.api.flat import check_callable
from numjet.api.implicit import custom_linear_solve
from numjet.base import tree
from numjet.core import dtypes


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
    array = jnp.asarray(matrix)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ValueError(
            f"{name}: {what} must be a function or a square matrix, got shape {array.shape}."
        )
    return lambda x: array @ x


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


def _solve(
    name: str, method: Callable, symmetric: bool, A: Any, b: Any, x0: Any, tol: Any, atol: Any,
    maxiter: int | None, M: Any,
) -> tuple[Any, None]:  # fmt: skip
    check_callable(name, method)
    product = _operator(name, "A", A)
    inverse = (lambda x: x) if M is None else _operator(name, "M", M)
    b = tree.tree_map(_inexact, b)
    start = b if x0 is None else tree.tree_map(_inexact, x0)
    shapes = [tree.tree_map(jnp.shape, x) for x in (start, b)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"{name}: x0 and b must have the same structure and shapes, got {shapes[0]} and "
            f"{shapes[1]}."
        )
    size = sum(x.size for x in tree.tree_leaves(b))
    most = 10 * size if maxiter is None else operator.index(maxiter)

    def solve(product: Callable, b: Any) -> Any:
        goal = jnp.maximum(jnp.square(tol) * _square(b), jnp.square(atol))
        return method(product, b, goal, most, inverse)

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
    """(x, None) with A x = b, by conjugate gradients; A hermitian and positive definite.

    A: a function of pytrees like b, or a matrix. M: what approximates A's inverse, likewise. Stops
    where |b - A x| <= max(tol |b - A x0|, atol), or after maxiter steps (10 times the components).

    >>> import numjet.numpy as jnp
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
    """(x, None) with A x = b, by stabilized biconjugate gradients; A may be any matrix, and the
    arguments are those of `cg`.

    >>> import numjet.numpy as jnp
    >>> x, _ = bicgstab(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([4.0, 8.0]))
    >>> print(x.round(4))
    [1. 2.]
    """
    return _solve("bicgstab", _bicgstab, False, A, b, x0, tol, atol, maxiter, M)


__all__ = ["bicgstab", "cg"]
