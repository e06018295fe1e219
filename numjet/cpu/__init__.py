"""The native backend: jaxprs to machine code on the host's CPU.

The API layer uses `numjet.cpu.compile`. The compiler's modules load at its first use, so that
importing the package stays cheap.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {"compile": "numjet.cpu.backend", "Executable": "numjet.cpu.program.executable"}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'numjet.cpu' has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(home), name)
    return found
