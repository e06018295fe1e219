"""Every primitive, a family to a file. Imports core and transforms; knows no backend.

Public are the sums, products and extremes over segments, `ops.segment`, which load when first used.
"""
from __future__ import annotations

import importlib
from typing import Any

_SEGMENTS = ("segment_max", "segment_min", "segment_prod", "segment_sum")


def __getattr__(name: str) -> Any:
    if name in _SEGMENTS:
        return getattr(importlib.import_module("numjet.ops.segment"), name)
    raise AttributeError(f"module 'numjet.ops' has no attribute {name!r}")
