"""The lines that are printed before `debug_nans` and `debug_infs` raise.

A compiled function whose results hold what is no number is run again, operation by operation, to
find the one that made it, and says so in a line on the standard output. JAX compiles its public
functions, too: one that is called outside of `jit` prints the line as well.
`api.execution.dispatch` calls `again` for programs, `core.evaluate` asks `hooks.not_finite` for
single operations. What would break it: a call of `operation` before something is to be raised, as
it looks at the stack.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from numjet.base import config
from numjet.core import hooks
from numjet.core.evaluate import check_finite
from numjet.core.trace import is_ours

_LINE = (
    "Invalid nan value encountered in the output of a jax.jit function. Calling the de-optimized "
    "version."
)
# Namespaces whose functions are compiled ones, and the program that is run again.
_COMPILED = (
    "numjet.numpy.", "numjet.nn.", "numjet.scipy.", "numjet.random.",
    "numjet.api.execution.dispatch",
)  # fmt: skip


def again() -> None:
    """Say that a program is run again."""
    if not config.disable_jit.value:
        print(_LINE)


def among(values: Sequence[Any]) -> bool:
    """Whether some of these have what the flags look for."""
    try:
        for x in values:
            check_finite("", x._value)
    except FloatingPointError:
        return True
    return False


def unexplained(name: str) -> str:
    """What is said of a program of whose operations none made what is no number."""
    kind, flag = ("nan", "debug_nans") if config.debug_nans.value else ("inf", "debug_infs")
    return (
        f"invalid value ({kind}) encountered in jit({name}) ({flag} is on). Run operation by "
        "operation the de-optimized function did not produce invalid values: they are among its "
        "inputs, or results that are literals."
    )


def operation() -> None:
    """Say that of the public function that ran an operation, if one did."""
    frame: Any = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code.co_filename):
        if frame.f_globals.get("__name__", "").startswith(_COMPILED):
            return again()
        frame = frame.f_back
    return None


hooks.not_finite = operation
