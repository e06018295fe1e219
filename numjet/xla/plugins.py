"""The plugins that are known: where their wheels put them, and what each wants to be told.

For `xla.client` and `numjet.doctor`. A platform is found by looking for its file; nothing of a
plugin's own Python is imported, since that of some imports JAX.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numjet.base import config


@dataclass(frozen=True)
class Known:
    """One platform: the packages that may hold its plugin, the file, and what to install."""

    platform: str
    packages: tuple[str, ...]
    patterns: tuple[str, ...]
    extra: str
    environment: dict[str, str] = field(default_factory=dict)
    compiling: dict[str, Any] = field(default_factory=dict)  # flags of its compiler


# NVIDIA's plugin takes three quarters of the card's memory unless told otherwise; here memory is
# taken as it is needed.
KNOWN = (
    Known("cuda", ("jax_plugins.xla_cuda13", "jax_plugins.xla_cuda12"), ("xla_cuda_plugin.so",),
          "'numjet[cuda13]' (or cuda12)"),
    Known("tpu", ("libtpu",), ("libtpu.so",), "'numjet[tpu]'",
          # Else initialization asks a metadata server for minutes where there is none.
          {"TPU_SKIP_MDS_QUERY": "1"}),
    Known("xla_cpu", ("xla_plugins.xla_cpu_pjrt",), ("xla_cpu_pjrt.so",), "'numjet[xla-cpu]'",
          # Else minima and maxima lose the NaN of one operand, and some arrays with a constant
          # behind them (`pad`, a row of zeros) are written beyond their end.
          compiling={"xla_cpu_enable_fast_min_max": False, "xla_cpu_use_fusion_emitters": False}),
)
ALIASES = {"gpu": "cuda", "nvidia": "cuda"}


def known(platform: str) -> Known | None:
    """The platform of that name, or None."""
    platform = ALIASES.get(platform, platform)
    return next((k for k in KNOWN if k.platform == platform), None)


def _folders(package: str) -> list[Path]:
    """Where a package lies, found without importing it (its parents are namespaces)."""
    top, _, rest = package.partition(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return []
    if spec is None or spec.submodule_search_locations is None:
        return []
    return [Path(place, *rest.split(".")) if rest else Path(place)
            for place in spec.submodule_search_locations]


def library(platform: str) -> str | None:
    """The path of the platform's plugin, or None where no wheel with it is installed.

    NUMJET_PJRT_<PLATFORM> (a path) comes first.
    """
    entry = known(platform)
    if entry is None:
        return None
    named = os.environ.get(f"NUMJET_PJRT_{entry.platform.upper()}")
    if named:
        return named
    for package in entry.packages:
        for folder in _folders(package):
            for pattern in entry.patterns:
                for path in sorted(folder.glob(pattern)):
                    return str(path)
    return None


def create_options(platform: str) -> dict[str, Any]:
    """What a client of the platform is created with."""
    if platform == "xla_cpu":
        return {"cpu_device_count": max(1, config.num_cpu_devices.value)}
    if platform == "cuda":
        return {"allocator": config.gpu_allocator.value,
                "preallocate": config.gpu_preallocate.value,
                "memory_fraction": float(config.gpu_memory_fraction.value), **_visible()}
    return {}


def _visible() -> dict[str, list[int]]:
    named = config.cuda_visible_devices.value
    if named in (None, "", "all"):
        return {}
    try:
        return {"visible_devices": [int(number) for number in named.split(",")]}
    except ValueError:
        raise ValueError(
            f"cuda_visible_devices: expected numbers by commas, or 'all', got {named!r}."
        ) from None
