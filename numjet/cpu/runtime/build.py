"""The runtime's native functions as code: compiled when first used, kept in the cache.

For this folder. With NUMJET_NATIVE_CHECKS=1 the code tests what it reads and is made anew in every
process. What would break it: a fact that the code depends on and that is not in `_facts`.
"""

from __future__ import annotations

import importlib

from numjet.cpu import host
from numjet.cpu.builder import sources
from numjet.cpu.link import link
from numjet.cpu.runtime.entry import DATA_OFFSET


def _facts() -> tuple[object, ...]:
    return host.SYSTEM, host.machine(), host.STACK_BYTES, host.has_threads(), DATA_OFFSET


def text(part: str, functions: str = "functions") -> str:
    """The module of a part's functions (`code.<part>`), in LLVM IR."""
    # A parser stands behind it, which most processes do not need.
    notation = importlib.import_module("numjet.cpu.builder.notation")
    code = importlib.import_module(f"numjet.cpu.runtime.code.{part}")
    module = importlib.import_module("numjet.cpu.builder.module")
    pause = module.pause_ir(link.target().triple)
    return notation.module_text(getattr(code, functions)(), pause=pause, checked=sources.CHECKED)


def _identity(part: str, functions: str) -> str:
    return link.identity(part, functions, *_facts())


def library(part: str, functions: str = "functions", *, quick: bool = False) -> link.Library:
    """The code, linked. It is never unloaded: threads may be inside when the process ends."""
    if sources.CHECKED:
        made = link.load([link.compile_once(text(part, functions), verify=True)])
    else:
        identity = _identity(part, functions)
        made = link.library_of(identity, lambda: text(part, functions), quick=quick)
    made.leak()
    return made


def compile(part: str, functions: str = "functions", *, quick: bool = False) -> None:
    """Have the code in the cache, for whoever needs it next. Any thread may do that."""
    if not sources.CHECKED:
        identity = _identity(part, functions)
        link.library_code(identity, quick=quick, text=lambda: text(part, functions))
