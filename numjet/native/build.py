"""Native functions of this layer as code: compiled when first used, kept in the cache.

For `calls` and `operators`. With NUMJET_NATIVE_CHECKS=1 the code tests what it reads
(`builder.notation_checks`), is made anew in every process, and comes at once. What would break it:
a fact that the code depends on and that is not part of its identity.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from numjet.cpu.builder import sources
from numjet.cpu.link import freestanding, link
from numjet.native import objects


def identity(part: str, *facts: object) -> str:
    """A text that tells the code of a part (a module of `native.code`) apart: the sources, where
    objects' fields lie, facts."""
    found = [x.found for x in vars(objects).values() if hasattr(x, "found")]
    return link.identity(part, found, *facts)


def text(part: str, *facts: Any, **options: Any) -> str:
    """The module of a part's functions, in LLVM IR; facts: what they are made for."""
    # A parser stands behind these, which most processes do not need.
    notation = importlib.import_module("numjet.cpu.builder.notation")
    code = importlib.import_module(f"numjet.native.code.{part}")
    return notation.module_text(code.functions(*facts), checked=sources.CHECKED, **options)


def library(part: str, names: Sequence[str], *facts: Any) -> dict[str, int]:
    """The addresses of a part's functions and variables, linked into this process."""
    if sources.CHECKED:
        made = link.load([link.compile_once(text(part, *facts), verify=True)])
    else:
        made = link.library_of(identity(part, *facts), lambda: text(part, *facts))
    made.leak()
    return {name: made.address(name) for name in names}


# For any processor of the architecture, mapped when the package is imported. Switches are
# comparisons: tables would lie outside of the code.
_FREESTANDING = 'nounwind "no-jump-tables"="true"'


def load(part: str, names: Sequence[str], *facts: Any) -> dict[str, int] | None:
    """The addresses of a part's functions and variables, where it was compiled before."""
    if sources.CHECKED:
        return library(part, names, *facts)
    return freestanding.load(identity(part, *facts))


def compile(part: str, *facts: Any) -> None:
    """Compile a part for later calls of `load`."""
    ir = text(part, *facts, attributes=_FREESTANDING, external=False)
    freestanding.build(identity(part, *facts), ir)
