"""Where equations come from: lines, and the names of scopes around them.

For programs that read or set these as they do JAX's. Names are kept in `core.names`; what would
break it: a stack of names that is set and not restored, which these do as context managers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from numjet.base.name_stack import NameStack as NameStack
from numjet.core import names, trace
from numjet.core.debug_info import SourceInfo as SourceInfo


def current() -> SourceInfo:
    """The user's line that calls this, and the names of scopes.

    >>> from numjet.extend import source_info_util
    >>> str(source_info_util.current().name_stack)
    ''
    """
    return SourceInfo(trace.user_source(2), current_name_stack())


def new_source_info() -> SourceInfo:
    """One without a line and without names.

    >>> from numjet.extend import source_info_util
    >>> print(source_info_util.new_source_info().traceback)
    None
    """
    return SourceInfo(None, NameStack())


def current_name_stack() -> NameStack:
    """The names of scopes around the caller.

    >>> from numjet.extend import source_info_util
    >>> with source_info_util.extend_name_stack("layer"):
    ...     print(source_info_util.current_name_stack())
    layer
    """
    return names.current_names.get()


def new_name_stack(name: str = "") -> NameStack:
    """A stack of one name, or of none.

    name: that of a scope, "" for none.

    >>> from numjet.extend import source_info_util
    >>> str(source_info_util.new_name_stack("layer").extend("dense"))
    'layer/dense'
    """
    return NameStack((name,) if name else ())


@contextlib.contextmanager
def set_name_stack(name_stack: NameStack) -> Iterator[None]:
    """A context in which these are the names of scopes.

    name_stack: a NameStack.

    >>> from numjet.extend import source_info_util
    >>> with source_info_util.set_name_stack(source_info_util.NameStack(("a", "b"))):
    ...     print(source_info_util.current_name_stack())
    a/b
    """
    with names.names_set(name_stack):
        yield


@contextlib.contextmanager
def extend_name_stack(name: str) -> Iterator[NameStack]:
    """A context inside of one more scope, whose names it gives.

    name: that of the scope.

    >>> from numjet.extend import source_info_util
    >>> with source_info_util.extend_name_stack("layer") as names:
    ...     len(names)
    1
    """
    stack = current_name_stack().extend(name)
    with set_name_stack(stack):
        yield stack


def transform_name_stack(name: str) -> Any:
    """A context in which the names of scopes stand in a transformation.

    name: that of the transformation.

    >>> from numjet.extend import source_info_util
    >>> with source_info_util.extend_name_stack("layer"):
    ...     with source_info_util.transform_name_stack("jvp"):
    ...         print(source_info_util.current_name_stack())
    layer/jvp()
    """
    return set_name_stack(current_name_stack().transform(name))


def reset_name_stack() -> Any:
    """A context without names.

    >>> from numjet.extend import source_info_util
    >>> with source_info_util.reset_name_stack():
    ...     len(source_info_util.current_name_stack())
    0
    """
    return set_name_stack(NameStack())


@contextlib.contextmanager
def user_context(traceback: Any, *, name_stack: NameStack | None = None) -> Iterator[None]:
    """A context for binding an equation again, with the names of scopes it had.

    traceback: the line it came from; it gets that of the program which binds it again. name_stack:
    the names, None for those that are current.

    >>> from numjet.extend import source_info_util
    >>> names = source_info_util.new_name_stack("layer")
    >>> with source_info_util.user_context(None, name_stack=names):
    ...     print(source_info_util.current_name_stack())
    layer
    """
    del traceback
    with set_name_stack(current_name_stack() if name_stack is None else name_stack):
        yield


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """The line as text: `file:line (function)`, or "unknown".

    source_info: a SourceInfo. num_frames: how many lines JAX would give; one is kept.

    >>> from numjet.extend import source_info_util
    >>> source_info_util.summarize(source_info_util.new_source_info())
    'unknown'
    """
    del num_frames  # one line is kept
    return str(source_info.traceback) if source_info.traceback is not None else "unknown"


def register_exclusion(path: str) -> None:
    """Count lines of some files as a library's: messages and equations name who called it.

    path: what the files' names begin with, such as a library's folder.

    >>> from numjet.extend import source_info_util
    >>> source_info_util.register_exclusion("/opt/mylibrary/")
    """
    trace.exclude(path)
