"""What classes are called where programs ask: by the names that JAX's classes have.

For classes of values that users meet inside of traced functions and in jaxprs, and for those that
say JAX's module under its name. What would break it: a class that is pickled and not found by the
name it has here, and code that asks a class's `__module__` whether numjet wrote it, not `is_own`.
"""

from __future__ import annotations

from collections.abc import Callable


def shown_as(name: str) -> Callable[[type], type]:
    """A decorator: `type(x).__name__` of the class's instances is `name`."""

    def named(made: type) -> type:
        made.__name__ = made.__qualname__ = name
        return made

    return named


# By address: a class, and the module that it said at first.
_moved: dict[int, tuple[type, str]] = {}


def move(made: type, module: str) -> None:
    """Let a class of numjet say that it is of another module."""
    _moved.setdefault(id(made), (made, made.__module__))
    made.__module__ = module


def home(kind: type) -> str | None:
    """The module of numjet that has a class which was moved."""
    return _moved.get(id(kind), (None, None))[1]


def is_own(kind: type) -> bool:
    """Whether numjet wrote a class, whatever module it says."""
    return id(kind) in _moved or str(kind.__module__).partition(".")[0] == "numjet"
