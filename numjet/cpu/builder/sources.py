"""Whether native functions can be compiled here, and whether they test what they read.

For those who keep such code, in processes that find it kept: neither the functions nor `notation`,
which has a parser behind it, are imported for it.
"""

from __future__ import annotations

import os
from typing import Any

# Whether native code tests what it reads (`notation_checks`).
CHECKED = os.environ.get("NUMJET_NATIVE_CHECKS", "") not in ("", "0")

MISSING = "native code is compiled from numjet's .py files, and they are not there."


def readable() -> bool:
    """Whether native functions can be compiled here: not where only .pyc files are installed."""
    loader: Any = globals().get("__loader__")
    return loader is not None and loader.get_source(__name__) is not None
