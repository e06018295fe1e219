"""The logger `numjet`, for what is imported with the package: Python's logging takes a thirtieth of
that, so it is loaded when there is something to say.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any


def logger() -> Any:
    """The logger."""
    return importlib.import_module("logging").getLogger("numjet")


def compiling(asked: bool, text: str, *values: Any) -> None:
    """Say what tracing and compiling do: as a warning where it is asked for (`log_compiles`), else
    to those who look for details (level DEBUG)."""
    if asked:
        logger().warning(text, *values)
    elif "logging" in sys.modules:  # else nobody looks
        logger().debug(text, *values)


_TOLD: set[str] = set()


def without_effect(name: str, what: str) -> None:
    """Say by the logger, once for each name, that what somebody asked for changes nothing here."""
    if name not in _TOLD:
        _TOLD.add(name)
        logger().warning("%s has no effect in numjet: %s.", name, what)
