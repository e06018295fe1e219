"""Derivatives with respect to sparse arrays: with respect to their values, at their places."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from numjet import numpy as jnp
from numjet.api.derivatives import autodiff, jacobians
from numjet.base import tree
from numjet.experimental.sparse.bcoo import BCOO
from numjet.experimental.sparse.bcsr import BCSR
from numjet.experimental.sparse.transform import is_sparse


def _of_values(transform: Callable, wrap: Callable) -> Callable:
    def derivative(
        fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
    ) -> Callable:
        @functools.wraps(fun)
        def run(*args: Any, **keywords: Any) -> Any:
            nums = (argnums,) if isinstance(argnums, int) else tuple(argnums)
            chosen = [args[i] for i in nums]
            values = [tree.tree_map(_data, x, is_leaf=is_sparse) for x in chosen]

            def of_values(*given: Any) -> Any:
                filled = list(args)
                for i, x, v in zip(nums, chosen, given, strict=True):
                    filled[i] = tree.tree_map(_with_data, x, v, is_leaf=is_sparse)
                return fun(*filled, **keywords)

            whole = transform(of_values, argnums=tuple(range(len(nums))), has_aux=has_aux, **kwargs)
            single = isinstance(argnums, int)
            return wrap(whole(*values), chosen, single, has_aux)

        return run

    derivative.__doc__ = f"""`{transform.__name__}` of a function of sparse arguments too.

    fun: a function, which is given sparse arrays; `sparsify` it where it is written for dense
    ones. argnums: the arguments, one or several. has_aux, kwargs: as of `{transform.__name__}`. A
    derivative with respect to a sparse array is one with the same places.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> found = sparse.{transform.__name__}(lambda m: (m * 3).sum())(m)
    """
    return derivative


def _data(x: Any) -> Any:
    return x.data if is_sparse(x) else x


def _with_data(x: Any, data: Any) -> Any:
    if not is_sparse(x):
        return data
    leaves, static = x.tree_flatten()
    return type(x)((data, *leaves[1:]), **static)


def _gradients(found: Any, chosen: Sequence[Any], single: bool, _: bool) -> Any:
    grads = tuple([
        tree.tree_map(_with_data, x, g, is_leaf=is_sparse)
        for x, g in zip(chosen, found, strict=True)
    ])  # fmt: skip
    return grads[0] if single else grads


def _grad(found: Any, chosen: Sequence[Any], single: bool, has_aux: bool) -> Any:
    if has_aux:
        return _gradients(found[0], chosen, single, has_aux), found[1]
    return _gradients(found, chosen, single, has_aux)


def _value_and_grad(found: Any, chosen: Sequence[Any], single: bool, has_aux: bool) -> Any:
    return found[0], _gradients(found[1], chosen, single, has_aux)


def _jacobian(found: Any, chosen: Sequence[Any], single: bool, has_aux: bool) -> Any:
    jacobians, aux = found if has_aux else (found, None)

    def wrapped(parts: Any) -> Any:
        made = tuple([_place(x, j) for x, j in zip(chosen, parts, strict=True)])
        return made[0] if single else made

    # The arguments are the innermost structure, a tuple of them for each output.
    is_parts = lambda t: isinstance(t, tuple) and len(t) == len(chosen)
    made = tree.tree_map(wrapped, jacobians, is_leaf=is_parts)
    return (made, aux) if has_aux else made


def _place(x: Any, jacobian: Any) -> Any:
    """A derivative of an output, its axes first, by the values of x: sparse in the axes of x."""
    if not is_sparse(x):
        return jacobian
    outer = jacobian.shape[: jacobian.ndim - x.data.ndim]
    if isinstance(x, BCSR):
        parts = [jnp.broadcast_to(i, (*outer, *i.shape)) for i in (x.indices, x.indptr)]
        return BCSR((jacobian, *parts), shape=(*outer, *x.shape))
    x = x if isinstance(x, BCOO) else x.to_bcoo()
    indices = jnp.broadcast_to(x.indices, (*outer, *x.indices.shape))
    return BCOO((jacobian, indices), shape=(*outer, *x.shape), indices_sorted=x.indices_sorted,
                unique_indices=x.unique_indices)  # fmt: skip


grad = _of_values(autodiff.grad, _grad)
value_and_grad = _of_values(autodiff.value_and_grad, _value_and_grad)
jacfwd = _of_values(jacobians.jacfwd, _jacobian)
jacrev = _of_values(jacobians.jacrev, _jacobian)
jacobian = jacrev
