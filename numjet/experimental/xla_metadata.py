"""numjet.experimental.xla_metadata: notes to XLA's compiler about operations.

For users. Nothing here reads them: programs and their jaxprs are what they are without.

>>> import numjet as nj
>>> from numjet.experimental.xla_metadata import set_xla_metadata
>>> @nj.jit
... def add(a, b):
...     with set_xla_metadata(group="1"):
...         return a + b
>>> add(1, 2)
Array(3, dtype=int32, weak_type=True)
"""

from __future__ import annotations

import contextlib
from typing import Any

from numjet.base import tree
from numjet.base.log import without_effect
from numjet.core.array import as_array

__all__ = [
    "set_xla_metadata",
]


class XlaMetadataContextManager(contextlib.ContextDecorator):
    """What `set_xla_metadata` gives without a value: a context and a decorator."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *raised: object) -> None:
        return None


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """A value with notes, or a context whose operations have them.

    x: a pytree of arrays, given back as Arrays; left out, a context manager, which decorates
    functions, too, is given. kwargs: the notes, which have no effect. TypeError for an x that holds
    what is no array.

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental.xla_metadata import set_xla_metadata
    >>> set_xla_metadata(jnp.ones(2), note="here")
    Array([1., 1.], dtype=float32)
    """
    without_effect("set_xla_metadata", "its notes are for XLA's compiler")
    if x is None:
        return XlaMetadataContextManager()
    return tree.tree_map(as_array, x)
