"""Markers that stand for what was not given, where None is a value.

Any layer may use them; they are compared with `is`.
"""

from __future__ import annotations

from typing import Any

# The argument of a flag's context manager where there is none.
NOT_GIVEN: Any = object()
