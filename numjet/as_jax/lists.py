"""Functions of `jax.numpy` that give lists; those of `numjet.numpy` give the standard's tuples.

Named by namespaces.py. Lists and tuples are different pytrees: a program that maps over grids
beside a list of its own needs JAX's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from numjet import numpy


def _listed(fun: Callable) -> Callable:
    @functools.wraps(fun)
    def listed(*args, **kwargs):
        return list(fun(*args, **kwargs))

    return listed


broadcast_arrays = _listed(numpy.broadcast_arrays)
meshgrid = _listed(numpy.meshgrid)
