"""What tells the code of native functions apart: their source and the compiler's, unread.

For those who keep such code, in processes that find it kept: neither the functions nor `notation`,
which has a parser behind it, are imported for it. What would break it: native functions that take
something from a module which is not named.
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Iterable
from typing import Any

from numjet.cpu import host

BUILDER = tuple(f"numjet.cpu.builder.{name}" for name in (
    "records", "notation", "notation_values", "notation_calls", "notation_source",
    "notation_checks", "builder", "core", "module", "structured", "text", "types", "vectors",
))  # fmt: skip
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


# Whether native code tests what it reads (`notation_checks`).
CHECKED = os.environ.get("NUMJET_NATIVE_CHECKS", "") not in ("", "0")


def identity(modules: Iterable[str], *facts: object) -> str:
    """A text that changes when the source of `modules`, the compiler or the facts do."""
    contents = [_content(name) for name in (*BUILDER, *modules)]
    return host.sha256(b"".join([repr(facts).encode(), *contents])).hex()


MISSING = "native code is compiled from numjet's .py files, and they are not there."


def readable() -> bool:
    """Whether native functions can be compiled here: not where only .pyc files are installed."""
    loader: Any = globals().get("__loader__")
    return loader is not None and loader.get_source(__name__) is not None


def _content(module: str) -> bytes:
    """The source of a module; its code where there are only .pyc files."""
    try:
        with open(os.path.join(_PACKAGE, *module.split(".")[1:]) + ".py", "rb") as file:
            return file.read()
    except OSError:
        from importlib.util import find_spec

        loader: Any = getattr(find_spec(module), "loader", None)
        return marshal.dumps(loader.get_code(module))
