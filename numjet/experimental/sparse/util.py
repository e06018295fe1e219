"""What the formats' operations are told besides arrays, and the warnings they give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.api.maps.mapping import vmap
from numjet.base.record import NamedTuple
from numjet.experimental.sparse.layouts import (
    SparseEfficiencyError as SparseEfficiencyError,
    SparseEfficiencyWarning as SparseEfficiencyWarning,
)


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """An operation that a GPU's library has no fast form of; never given on CPUs."""


class SparseInfo(NamedTuple):
    """What a sparse array is besides its data and indices."""

    shape: tuple[int, ...]
    indices_sorted: bool = False
    unique_indices: bool = False


class COOInfo(NamedTuple):
    """What a COO is besides its data, rows and columns."""

    shape: tuple[int, ...]
    rows_sorted: bool = False
    cols_sorted: bool = False


def nfold_vmap(fun: Callable, N: int, *, broadcasted: bool = True, in_axes: Any = 0) -> Callable:
    """`vmap` applied N times.

    fun: a function; N: how often. broadcasted: axes of size 1 stand for any size. in_axes: as of
    `vmap`, each time.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental.sparse import util
    >>> f = util.nfold_vmap(lambda x, y: x @ y, 2)
    >>> f(jnp.ones((2, 1, 4)), jnp.ones((1, 3, 4))).shape
    (2, 3)
    """
    for _ in range(N):
        fun = (broadcasting_vmap if broadcasted else vmap)(fun, in_axes)
    return fun


def broadcasting_vmap(fun: Callable, in_axes: Any = 0, out_axes: Any = 0) -> Callable:
    """`vmap` where an axis of size 1 stands for the size of the others.

    fun: a function of arrays. in_axes: an integer, or one or None for each argument. out_axes: as
    of `vmap`.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental.sparse import util
    >>> util.broadcasting_vmap(lambda x, y: x + y)(jnp.ones((1, 2)), jnp.ones((3, 2))).shape
    (3, 2)
    """

    def run(*args: Any) -> Any:
        axes = [in_axes] * len(args) if isinstance(in_axes, int) else list(in_axes)
        sizes = [None if a is None else x.shape[a] for x, a in zip(args, axes, strict=True)]
        if any(n not in (None, 1) for n in sizes):
            given = list(args)
            for i, (x, a, n) in enumerate(zip(args, axes, sizes, strict=True)):
                if n == 1:
                    given[i], axes[i] = x.squeeze(a), None
            return vmap(fun, tuple(axes), out_axes)(*given)
        return vmap(fun, tuple(axes), out_axes)(*args)

    return run
