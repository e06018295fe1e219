"""The logger `numjet`, for what is imported with the package: Python's logging takes a thirtieth of
that, so it is loaded when there is something to say.
"""

from __future__ import annotations

import importlib
from typing import Any


def logger() -> Any:
    """The logger."""
    return importlib.import_module("logging").getLogger("numjet")


_TOLD: set[str] = set()


def without_effect(name: str, what: str) -> None:
    """Say by the logger, once for each name, that what somebody asked for changes nothing here."""
    if name not in _TOLD:
        _TOLD.add(name)
        logger().warning("%s has no effect in numjet: %s.", name, what)
