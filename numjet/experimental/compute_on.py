"""numjet.experimental.compute_on: which processor of a device computes.

For users. Programs run where their device is: there is one processor on the CPU, and on devices of
XLA nothing is sent to their host. The names are checked, and values are what they are without it,
which the logger `numjet` says once.

>>> import numjet as nj
>>> from numjet.experimental.compute_on import compute_on
>>> @compute_on("device_host")
... @nj.jit
... def twice(x):
...     return 2 * x
>>> twice(3.0)
Array(6., dtype=float32, weak_type=True)
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from numjet.api.placement.devices import device_put
from numjet.base import tree
from numjet.base.log import without_effect

__all__ = [
    "compute_on",
    "compute_on2",
]

_PLACES = ("device_host", "device", "tpu_sparsecore")


def _check(compute_type: Any) -> None:
    if not isinstance(compute_type, str):
        raise TypeError(
            f"compute_on: compute_type has to be a string, got {type(compute_type).__name__}."
        )
    if compute_type not in _PLACES and not compute_type.startswith("gpu_stream:"):
        raise ValueError(
            f"Invalid compute type {compute_type}. Current supported values are `device_host`, "
            "`device`, `tpu_sparsecore`, and `gpu_stream:#`."
        )
    without_effect(f"compute_on({compute_type!r})", "programs run on their device alone")


class compute_on(contextlib.ContextDecorator):  # noqa: N801 - a context manager read as a statement
    """A context, and a decorator of functions: where their operations are to be computed.

    compute_type: "device_host", "device", "tpu_sparsecore" or "gpu_stream:" and a number
    (ValueError for another string, TypeError for what is none). Nothing runs elsewhere for it.

    >>> from numjet.experimental.compute_on import compute_on
    >>> with compute_on("device_host"):
    ...     print(1 + 1)
    2
    """

    def __init__(self, compute_type: str) -> None:
        _check(compute_type)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *raised: object) -> None:
        return None


def compute_on2(
    f: Callable[..., Any] | None = None,
    *,
    compute_type: str,
    out_memory_spaces: Any,
    compiler_options: dict | None = None,
) -> Callable[..., Any]:
    """`f`, to be computed at a place, with its results in named memories.

    f: a function of arrays; a decorator is given where it is left out. compute_type: as for
    `compute_on`. out_memory_spaces: a `memory.Space`, or a tree of them whose structure begins as
    that of the results does. compiler_options has no effect.

    >>> import numjet as nj
    >>> from numjet.experimental.compute_on import compute_on2
    >>> place = {"compute_type": "device_host", "out_memory_spaces": nj.memory.Space.Device}
    >>> compute_on2(nj.numpy.negative, **place)(nj.numpy.ones(2))
    Array([-1., -1.], dtype=float32)
    """
    _check(compute_type)
    if f is None:
        return functools.partial(
            compute_on2, compute_type=compute_type, out_memory_spaces=out_memory_spaces,
            compiler_options=compiler_options,
        )

    @functools.wraps(f)
    def placed(*args: Any, **kwargs: Any) -> Any:
        results = f(*args, **kwargs)
        spaces = tree.broadcast_prefix(
            out_memory_spaces, results, None, "compute_on2: out_memory_spaces"
        )
        leaves, treedef = tree.tree_flatten(results)
        return tree.tree_unflatten(treedef, list(map(device_put, leaves, spaces)))

    return placed
