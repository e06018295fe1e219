"""numjet.debug: look into programs that run under transformations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.api.callbacks import (
    debug_callback as callback,
    debug_print as print,  # noqa: A004 - the public name
)


def breakpoint(**_: Any) -> None:  # noqa: A001 - the public name
    """Not supported: programs run to their end. Raises NotImplementedError."""
    raise NotImplementedError(
        "debug.breakpoint is not supported. Use debug.print or debug.callback, or run the function "
        "under numjet.disable_jit() with Python's own breakpoint()."
    )


def inspect_array_sharding(value: Any, *, callback: Callable) -> None:
    """Call `callback(sharding)` with where a concrete array lives. Raises NotImplementedError for
    traced values."""
    sharding = getattr(value, "sharding", None)
    if sharding is None:
        raise NotImplementedError(
            "debug.inspect_array_sharding: a traced value has no sharding. Inspect the arrays that "
            "the function takes and returns."
        )
    callback(sharding)


__all__ = ["breakpoint", "callback", "inspect_array_sharding", "print"]
