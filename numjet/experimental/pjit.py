"""numjet.experimental.pjit: `jit` by its older name for several devices, which warns."""

import warnings
from collections.abc import Callable
from typing import Any

from numjet.api.jit import jit
from numjet.api.reshard import with_sharding_constraint as with_sharding_constraint

__all__ = ["pjit", "with_sharding_constraint"]


def pjit(fun: Callable, **options: Any) -> Any:
    """`jit`, whose in_shardings and out_shardings may hold PartitionSpecs of `with mesh:`.

    fun, options: as of `jit`. Warns (DeprecationWarning): use `jit` and `set_mesh`. Raises
    RuntimeError for PartitionSpecs where there is no mesh.

    >>> import warnings, numjet as nj, numjet.numpy as jnp
    >>> from numjet.experimental.pjit import pjit
    >>> with warnings.catch_warnings(action="ignore"), nj.make_mesh((1,), ("x",)):
    ...     print(pjit(lambda x: 2 * x, in_shardings=nj.P("x"))(jnp.arange(2)))
    [0 2]
    """
    warnings.warn(
        "pjit has been deprecated. Please use numjet.jit instead.", DeprecationWarning, stacklevel=2
    )
    made = jit(fun, **options)
    made._core.within_mesh = True
    return made
