"""What classes and functions are called where programs ask: by the names that JAX's have.

For classes of values that users meet inside of traced functions and in jaxprs, and for classes and
functions that say JAX's module under its name. What would break it: a class that is pickled and not
found by the name it has here, and code that asks `__module__` whether numjet wrote something, not
`is_own` or `home`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any


def shown_as(name: str) -> Callable[[type], type]:
    """A decorator: `type(x).__name__` of the class's instances is `name`."""

    def named(made: type) -> type:
        made.__name__ = made.__qualname__ = name
        return made

    return named


def renamed(function: Any, name: str, module: str) -> Any:
    """Another function of the same code, which says this name: an alias that costs its calls
    nothing."""
    made = FunctionType(
        function.__code__, function.__globals__, name, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    made.__doc__, made.__annotations__ = function.__doc__, function.__annotations__
    made.__qualname__, made.__module__ = name, module
    return made


# By address: a class or function, and the module that it said at first.
_moved: dict[int, tuple[Any, str]] = {}


def move(made: Any, module: str) -> None:
    """Let a class or function of numjet say that it is of another module."""
    _moved.setdefault(id(made), (made, made.__module__))
    made.__module__ = module


def home(made: Any) -> str | None:
    """The module of numjet that has a class or function which was moved."""
    return _moved.get(id(made), (None, None))[1]


def is_own(made: Any) -> bool:
    """Whether numjet wrote a class or function, whatever module it says."""
    return id(made) in _moved or str(made.__module__).partition(".")[0] == "numjet"
