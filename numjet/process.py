"""The process that programs run in: its number among others, its arrays, its environment.

For users. There is one process; names that JAX has renamed warn, as there.
"""
from __future__ import annotations

import gc
import platform
import sys
import warnings
from typing import Any

import numpy as np

from numjet.api.placement.devices import device_count, devices, process_count, process_index
from numjet.core.array import ArrayImpl
from numjet.core.deferred import DeferredArray
from numjet.core.remote import RemoteArray
from numjet.core.sharded import ShardedArray
from numjet.version import __version__


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of all processes, ascending.

    backend: as of `devices`. Raises RuntimeError for a platform that is not there.

    >>> import numjet as nj
    >>> nj.process_indices()
    [0]
    """
    return list(range(process_count(backend)))


def _renamed(old: str, new: str) -> None:
    warnings.warn(f"numjet.{old} has been renamed to numjet.{new}. This alias will eventually be "
                  "removed; please update your code.", UserWarning, stacklevel=3)


def host_count(backend: str | None = None) -> int:
    """The old name of `process_count`; warns (DeprecationWarning).

    backend: as of `devices`.

    >>> import numjet as nj
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     nj.host_count()
    1
    """
    _renamed("host_count", "process_count")
    return process_count(backend)


def host_id(backend: str | None = None) -> int:
    """The old name of `process_index`; warns (DeprecationWarning).

    backend: as of `devices`.

    >>> import numjet as nj
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     nj.host_id()
    0
    """
    _renamed("host_id", "process_index")
    return process_index(backend)


def host_ids(backend: str | None = None) -> list[int]:
    """The old name of `process_indices`; warns (DeprecationWarning).

    backend: as of `devices`.

    >>> import numjet as nj
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     nj.host_ids()
    [0]
    """
    _renamed("host_ids", "process_indices")
    return process_indices(backend)


def live_arrays(platform: str | None = None) -> list[Any]:
    """The Arrays that exist, as far as Python's garbage collector knows of them, in no order;
    without those that were deleted or donated.

    Returns a list. platform: None for all, or a platform's name; RuntimeError for one that is not
    there. Those that only local variables of compiled code hold are not among them. For looking for
    what keeps memory.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> x = jnp.arange(3)
    >>> any(y is x for y in nj.live_arrays())
    True
    """
    devices(platform)
    kinds = (ArrayImpl, DeferredArray, ShardedArray, RemoteArray)
    return [x for x in gc.get_objects() if type(x) in kinds and not x.is_deleted()]


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the versions and the machine that a report of a fault should name.

    return_string: give the text back instead of printing it.

    >>> import numjet as nj
    >>> nj.print_environment_info(return_string=True).startswith("numjet")
    True
    """
    lines = [
        f"numjet: {__version__}",
        f"numpy:  {np.__version__}",
        f"python: {sys.version}",
        f"device info: cpu, {device_count()} local devices",
        f"process_count: {process_count()}",
        f"platform: {platform.uname()}",
    ]
    text = "\n".join(lines) + "\n"
    if return_string:
        return text
    print(text, end="")
    return None
