"""The metadata of the distributions `jax` and `jaxlib` for who asks `importlib.metadata`.

Made by finder.py, where nothing is installed under these names; what is installed comes second.
"""

from __future__ import annotations

import sys
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from typing import Any


class AliasDistribution(Distribution):
    """The metadata of `jax` or `jaxlib`: a name and a version, no files."""

    def __init__(self, name: str, version: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"

    def read_text(self, filename: str) -> str | None:
        return self._text if filename in ("METADATA", "PKG-INFO") else None

    def locate_file(self, path: Any) -> Any:
        raise FileNotFoundError(f"numjet under JAX's name is not a folder of its own: no {path}.")


def installed(name: str, besides: Path | None = None) -> Distribution | None:
    """The distribution `name` that is in a folder of `sys.path`, other than `besides`."""
    context = DistributionFinder.Context(name=name, path=sys.path)
    for finder in sys.meta_path:
        find = getattr(finder, "find_distributions", None)
        if find is None or type(finder).__module__.startswith("numjet.as_jax"):
            continue
        for found in find(context):
            if Path(str(found.locate_file(""))).absolute() != besides:
                return found
    return None
