"""Tracebacks without this package's frames, for the flag `traceback_filtering`.

An exception that leaves the outermost of our functions that call the user's is stripped of the
frames in between, so that what is left are the user's lines. For every layer with such functions:
`boundary` makes one, or a function calls `hide` itself and says so by `is_boundary`. What would
break it: another statement than a bare `raise` after `hide`, which adds a frame again.
"""

from __future__ import annotations

import builtins
import functools
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar

from numjet.base import config

F = TypeVar("F", bound=Callable[..., Any])

_OURS = (str(Path(__file__).resolve().parents[1]), "<numjet")
_NOTE = (
    "--------------------\n"
    "For simplicity, numjet has removed its internal frames from the traceback of this exception. "
    "Set NUMJET_TRACEBACK_FILTERING=off (or the flag traceback_filtering) to see them."
)
# The code of the functions that filter what they raise.
_boundaries: set[CodeType] = set()


class UnfilteredStackTrace(Exception):  # noqa: N818 - the name programs see
    """The whole traceback of an exception whose own has the user's lines alone."""


def is_boundary(fun: F) -> F:
    """Say that a function calls `hide` for what it raises."""
    _boundaries.add(fun.__code__)  # type: ignore[attr-defined]
    return fun


def boundary(fun: F) -> F:
    """A function whose exceptions have the user's lines alone."""
    return functools.update_wrapper(unnamed_boundary(fun), fun)  # type: ignore[return-value]


def unnamed_boundary(fun: F) -> F:
    """`boundary` of a function that is made in each call of another one, which names it after the
    user's: names of its own cost a microsecond."""

    def filtered(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            hide(error)
            raise

    _boundaries.add(filtered.__code__)  # the same for all
    return filtered  # type: ignore[return-value]


def hide(error: Exception) -> None:
    """Take our frames from the traceback of an exception that a boundary is about to raise again,
    where no other boundary is around it."""
    mode = config.traceback_filtering.value
    if mode == "off" or _is_inside(sys._getframe(2)):
        return
    if mode == "auto":
        mode = "tracebackhide" if hasattr(builtins, "__IPYTHON__") else "quiet_remove_frames"
    if mode == "tracebackhide":
        entry = error.__traceback__
        while entry is not None:
            if _is_ours(entry.tb_frame):
                entry.tb_frame.f_locals["__tracebackhide__"] = True
            entry = entry.tb_next
        return
    whole = error.__traceback__
    kept = [(entry, frame) for entry, frame in _entries(whole) if not _is_ours(frame)]
    filtered: TracebackType | None = None
    for entry, frame in reversed(kept):
        filtered = TracebackType(filtered, frame, entry.tb_lasti, entry.tb_lineno)
    if mode == "remove_frames":
        told = "".join(traceback.format_exception(type(error), error, whole))
        cause = UnfilteredStackTrace(
            f"The stack trace below has the frames of numjet, too.\n\n{told}"
        ).with_traceback(whole)
        cause.__cause__, cause.__suppress_context__ = error.__cause__, True
        error.__cause__, error.__suppress_context__ = cause, True
    elif _NOTE not in getattr(error, "__notes__", ()):
        error.add_note(_NOTE)
    error.__traceback__ = filtered


def _entries(entry: TracebackType | None) -> list[tuple[TracebackType, FrameType]]:
    found = []
    while entry is not None:
        found.append((entry, entry.tb_frame))
        entry = entry.tb_next
    return found


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_OURS)


def _is_inside(frame: FrameType | None) -> bool:
    """Whether a boundary is among the callers."""
    while frame is not None:
        if frame.f_code in _boundaries:
            return True
        frame = frame.f_back
    return False
