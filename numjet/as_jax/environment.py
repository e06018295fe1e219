"""JAX's environment variables, read when the alias is switched on.

`JAX_ENABLE_X64=1` and the others of that form set the flag of the same name;
`XLA_FLAGS=--xla_force_host_platform_device_count=8` asks for that many virtual devices, and is read
when they are first listed. A variable of numjet's own (`NUMJET_ENABLE_X64`) has the last word.
Called by `numjet.as_jax` alone.
"""

from __future__ import annotations

import os
import re

from numjet.api import devices
from numjet.base import config


def read() -> None:
    """Set the flags that JAX's environment variables name."""
    if any(name.startswith("JAX_") for name in os.environ):
        _read_flags()
    devices.before_first_use.append(_read_device_count)


def _read_device_count() -> None:
    """The number of devices, when they are first asked for: programs set it after importing JAX."""
    found = re.search(
        r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", "")
    )
    if found and "NUMJET_NUM_CPU_DEVICES" not in os.environ:
        config.num_cpu_devices.set(int(found.group(1)))


def _read_flags() -> None:
    from numjet.base import jax_flags

    for name, default in jax_flags.DEFAULTS.items():
        raw = os.environ.get(name.upper())
        if raw is None or f"NUMJET_{name.removeprefix('jax_').upper()}" in os.environ:
            continue
        config.config.update(name, jax_flags.parse(name, raw, default))
