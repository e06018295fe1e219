"""Double precision for functions of numjet.scipy.special, whatever `enable_x64` says.

For functions whose terms cancel. What would break it: a function that asks for the flag while it is
traced, to choose the dtype of its result.
"""

from __future__ import annotations

import functools
from typing import Any

from numjet.api.jit import jit
from numjet.base import config


def in_doubles(function: Any) -> Any:
    """`function` jitted, with 64 bits on while it is traced or evaluated."""

    @functools.wraps(function)
    def called(*args: Any) -> Any:
        with config.enable_x64(True):
            return function(*args)

    return jit(called)
