"""numjet.experimental.scheduling_groups: functions whose operations XLA is to schedule together.

For users. Nothing here reads the groups: the functions are called as they are.

>>> import numjet as nj
>>> from numjet.experimental.scheduling_groups import scheduling_group
>>> print(nj.jit(scheduling_group("first")(nj.numpy.sin))(0.0))
0.0
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numjet.base.log import without_effect

__all__ = [
    "scheduling_group",
    "xla_metadata_call",
]


def scheduling_group(name: str) -> Callable[..., Any]:
    """A decorator of functions of arrays: they are one group of this name, which has no effect.

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental.scheduling_groups import scheduling_group
    >>> scheduling_group("first")(jnp.negative)(jnp.ones(2))
    Array([-1., -1.], dtype=float32)
    """
    return xla_metadata_call(scheduling_group=name)


def xla_metadata_call(f: Callable[..., Any] | None = None, **meta: Any) -> Callable[..., Any]:
    """`f`, with notes to XLA's compiler, which have no effect; a decorator where f is left out.

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental.scheduling_groups import xla_metadata_call
    >>> xla_metadata_call(jnp.negative, note="here")(jnp.ones(2))
    Array([-1., -1.], dtype=float32)
    """
    without_effect("xla_metadata_call", "its notes are for XLA's compiler")
    if f is None:
        return functools.partial(xla_metadata_call, **meta)

    @functools.wraps(f)
    def noted(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs)

    return noted
