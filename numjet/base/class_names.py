"""What classes are called where programs ask: by the names that JAX's classes have.

For classes of values that users meet inside of traced functions and in jaxprs. What would break it:
a class that is pickled, which is found by its name.
"""

from __future__ import annotations

from collections.abc import Callable


def shown_as(name: str) -> Callable[[type], type]:
    """A decorator: `type(x).__name__` of the class's instances is `name`."""

    def named(made: type) -> type:
        made.__name__ = made.__qualname__ = name
        return made

    return named
