"""numjet.experimental.control_deps: which of two operations XLA is to run first.

For users. Programs here run their operations in the order in which they were traced, where the
compiler sees no quicker one: what is asked has no effect, which is logged once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.base.log import without_effect
from numjet.core.array import as_array

__all__ = [
    "control_dep",
    "schedule",
]


def control_dep(src: Any, dst: Any) -> tuple[()]:
    """A wish that `src` be computed before `dst`, which has no effect.

    src, dst: arrays (TypeError for others).

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental.control_deps import control_dep
    >>> x = jnp.ones(2)
    >>> control_dep(jnp.sin(x), jnp.cos(x))
    ()
    """
    as_array(src), as_array(dst)
    without_effect("control_dep", "its order is for XLA's compiler")
    return ()


def schedule(ops: Sequence[Any]) -> None:
    """A wish that arrays be computed in this order, which has no effect.

    ops: arrays (TypeError for others).

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental.control_deps import schedule
    >>> schedule([jnp.zeros(2), jnp.ones(2)])
    """
    for before, after in zip(ops, ops[1:], strict=False):
        control_dep(before, after)
