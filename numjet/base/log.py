"""The logger `numjet`, for what is imported with the package: Python's logging takes a thirtieth of
that, so it is loaded when there is something to say.
"""

from __future__ import annotations

import importlib
from typing import Any


def logger() -> Any:
    """The logger."""
    return importlib.import_module("logging").getLogger("numjet")
