"""Files of the compilation cache, read by native code (`code.files`): what it has to know.

`operators` loads the code, with its own, and calls `install`. What would break it: a C library
whose functions are declared otherwise than `tables.FileContext` says.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from numjet.core import hooks
from numjet.cpu import host
from numjet.cpu.builder.records import words
from numjet.native.entries import address
from numjet.native.layout import context_of, forever
from numjet.native.tables import FileContext

_FUNCTIONS = ("openat", "statx", "geteuid", "close", "read")


def install(read: Callable, variable: int) -> None:
    """Let native code read, where the system has what it calls. read: the function of the
    code; the variable leads to what it knows."""
    known = {"none": id(None), "bytes": id(bytes)}
    for name in _FUNCTIONS:
        found = host.symbol_address(name)
        if found is None:
            return
        known[name] = found
    if any([name.startswith("Py") and not hasattr(ctypes.pythonapi, name)
            for name in words(FileContext)]):  # fmt: skip
        return
    context = forever(context_of(FileContext, known))
    ctypes.c_size_t.from_address(variable).value = address(context)
    hooks.read_file = read
