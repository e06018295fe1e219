"""Native functions of this layer as code: compiled when first used, kept in the cache.

For `calls` and `operators`. With NUMJET_NATIVE_CHECKS=1 the code tests what it reads
(`builder.notation_checks`), is made anew in every process, and comes at once. What would break it:
a fact that the code depends on and that is not part of its identity.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from numjet.cpu.builder import sources
from numjet.cpu.link import link
from numjet.native import objects

CHECKED = os.environ.get("NUMJET_NATIVE_CHECKS", "") not in ("", "0")
# The modules that the code of each part comes from.
_MODULES = {
    "calls": ("code.calls", "tables", "objects"),
}


def identity(part: str, *facts: object) -> str:
    """A text that tells the code of a part apart: its source and where objects' fields lie."""
    found = [x.found for x in vars(objects).values() if hasattr(x, "found")]
    return sources.identity([f"numjet.native.{name}" for name in _MODULES[part]], found, *facts)


def text(part: str, **options: Any) -> str:
    """The module of a part's functions, in LLVM IR."""
    # A parser stands behind these, which most processes do not need.
    notation = importlib.import_module("numjet.cpu.builder.notation")
    code = importlib.import_module(f"numjet.native.{_MODULES[part][0]}")
    return notation.module_text(code.FUNCTIONS, checked=CHECKED, **options)


def library(part: str, names: list[str]) -> dict[str, int]:
    """The addresses of a part's functions, linked into this process."""
    if CHECKED:
        made = link.load([link.compile_once(text(part), verify=True)])
    else:
        made = link.library_of(identity(part), lambda: text(part))
    made.leak()
    return {name: made.address(name) for name in names}

