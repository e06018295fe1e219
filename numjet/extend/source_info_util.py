"""Where equations come from: lines, and the names of scopes around them.

Names of scopes are kept for who asks for the current ones; equations do not hold them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from numjet.core import trace
from numjet.core.debug_info import SourceInfo as SourceInfo


class NameStack:
    """Names of scopes, the outermost first; `str()` joins them with slashes."""

    __slots__ = ("stack",)

    def __init__(self, stack: tuple[str, ...] = ()) -> None:
        self.stack = stack

    def extend(self, name: str) -> NameStack:
        """This with a scope inside."""
        return NameStack((*self.stack, name))

    def transform(self, transform_name: str) -> NameStack:
        """This inside a transformation."""
        return NameStack((f"{transform_name}({self})",))

    def __add__(self, other: NameStack) -> NameStack:
        return NameStack(self.stack + other.stack)

    def __len__(self) -> int:
        return len(self.stack)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NameStack) and self.stack == other.stack

    def __hash__(self) -> int:
        return hash(self.stack)

    def __str__(self) -> str:
        return "/".join(self.stack)


_names: ContextVar[NameStack] = ContextVar("numjet.name_stack", default=NameStack())  # noqa: B039


def current() -> SourceInfo:
    """The user's line that calls this, and the names of scopes."""
    return SourceInfo(trace.user_source(2), current_name_stack())


def new_source_info() -> SourceInfo:
    """One without a line."""
    return SourceInfo(None, NameStack())


def current_name_stack() -> NameStack:
    """The names of scopes around the caller."""
    return _names.get()


def new_name_stack(name: str = "") -> NameStack:
    """A stack of one name, or of none."""
    return NameStack((name,) if name else ())


@contextlib.contextmanager
def set_name_stack(name_stack: NameStack) -> Iterator[None]:
    """`with set_name_stack(stack):` makes these the names."""
    token = _names.set(name_stack)
    try:
        yield
    finally:
        _names.reset(token)


@contextlib.contextmanager
def extend_name_stack(name: str) -> Iterator[NameStack]:
    """`with extend_name_stack("layer"):` adds a scope."""
    stack = current_name_stack().extend(name)
    with set_name_stack(stack):
        yield stack


def transform_name_stack(name: str) -> Any:
    """`with transform_name_stack("jvp"):` puts the names into a transformation."""
    return set_name_stack(current_name_stack().transform(name))


def reset_name_stack() -> Any:
    """A context without names."""
    return set_name_stack(NameStack())


@contextlib.contextmanager
def user_context(traceback: Any, *, name_stack: NameStack | None = None) -> Iterator[None]:
    """A context for binding an equation again: with the names of scopes it had. Its line is that
    of the program which binds it."""
    del traceback
    with set_name_stack(current_name_stack() if name_stack is None else name_stack):
        yield


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """`file:line (function)`, or "unknown"."""
    del num_frames  # one line is kept
    return str(source_info.traceback) if source_info.traceback is not None else "unknown"


def register_exclusion(path: str) -> None:
    """Lines of files whose names begin with `path` count as a library's: messages and equations
    name the line that called it."""
    trace.exclude(path)
