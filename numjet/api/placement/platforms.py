"""Which platform computations belong to that name none, by the flag `platforms`.

For `api.placement.devices`, which lists devices by the names that are given here.
"""

from __future__ import annotations

import functools
import importlib

from numjet.base import config


def chosen() -> str:
    """The name by which the platform of computations that name none is loaded."""
    named = config.platforms.value
    return "cpu" if named in config.NATIVE else _first_installed(named)


@functools.cache
def _first_installed(named: str) -> str:
    """Of platforms, by commas, the first whose plugin is there; the last where none is."""
    plugins = importlib.import_module("numjet.xla.plugins")
    *others, last = [name.strip() for name in named.split(",")]
    for name in (*others, last):
        if name != "cpu" and plugins.known(name) is None:
            known = ["cpu", *[entry.platform for entry in plugins.KNOWN]]
            raise RuntimeError(
                f"Unable to initialize backend {name!r}: Backend {name!r} is not in the list of "
                f"known backends: {known}. Set the flag platforms to one of these, or leave it "
                "out to use the CPU."
            )
    return next((name for name in others if name == "cpu" or plugins.library(name)), last)
