"""JAX's environment variables.

`JAX_ENABLE_X64=1` and the others of that form set the flag of the same name; they are read when the
alias is switched on and, since programs set them before they import JAX, again when `jax` is
imported: then those that changed.
`XLA_FLAGS=--xla_force_host_platform_device_count=8` asks for that many virtual devices, and
`XLA_PYTHON_CLIENT_PREALLOCATE`, `XLA_CLIENT_MEM_FRACTION` (or `XLA_PYTHON_CLIENT_MEM_FRACTION`) and
`XLA_PYTHON_CLIENT_ALLOCATOR` say how a GPU's memory is taken; these are read when devices are first
listed. A variable of numjet's own (`NUMJET_ENABLE_X64`) has the last word. Called by
`numjet.as_jax` alone.
"""

from __future__ import annotations

import os
import re

from numjet.api.placement import devices
from numjet.base import config

# The variables that were read, with what they said.
_read: dict[str, str] = {}


def read() -> None:
    """Set the flags that JAX's environment variables name, and arrange for what is read later."""
    read_flags()
    devices.before_first_use.append(_read_late)


def read_flags() -> None:
    """Set the flags whose variables are new, or say something else than when they were read."""
    if not any(name.startswith("JAX_") for name in os.environ):
        return
    from numjet.base import jax_flags

    for name, default in jax_flags.DEFAULTS.items():
        raw = os.environ.get(name.upper())
        if raw is None or f"NUMJET_{name.removeprefix('jax_').upper()}" in os.environ:
            continue
        if _read.get(name) != raw:
            config.config.update(name, jax_flags.parse(name, raw, default))
            _read[name] = raw


# The flags of variables about a GPU's memory. The second name of a flag is the older one.
_MEMORY = (
    ("XLA_PYTHON_CLIENT_PREALLOCATE", "gpu_preallocate"),
    ("XLA_PYTHON_CLIENT_MEM_FRACTION", "gpu_memory_fraction"),
    ("XLA_CLIENT_MEM_FRACTION", "gpu_memory_fraction"),
    ("XLA_PYTHON_CLIENT_ALLOCATOR", "gpu_allocator"),
)


def _read_late() -> None:
    """What is told when devices are first asked for: programs set it after importing JAX."""
    from numjet.base import jax_flags

    for name, flag in _MEMORY:
        raw = os.environ.get(name)
        if raw and f"NUMJET_{flag.upper()}" not in os.environ:
            config.config.update(flag, jax_flags.parse(name, raw, config.FLAGS[flag].value))
    found = re.search(
        r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", "")
    )
    if found and "NUMJET_NUM_CPU_DEVICES" not in os.environ:
        config.num_cpu_devices.set(int(found.group(1)))
