"""The warning of modules whose functions programs used to import from them."""

from __future__ import annotations

import sys
import warnings
from typing import Any


def warn_importer(text: str) -> None:
    """Warn (DeprecationWarning) the line that imports a name, or reads it of a module: called by
    the module's `__getattr__`."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _module(frame).startswith("numjet."):
        level, frame = level + 1, frame.f_back  # under JAX's name a module of ours is between
        while frame.f_back is not None and _module(frame).startswith("importlib."):
            frame = frame.f_back  # which warnings do not count
    warnings.warn(text, DeprecationWarning, stacklevel=level)


def _module(frame: Any) -> str:
    return str(frame.f_globals.get("__name__", ""))
