"""`named_scope` and `named_call`: names for parts of a program. They change nothing that runs."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from numjet.api.flat import check_callable


class named_scope(contextlib.ContextDecorator):  # noqa: N801 - a context manager read as a statement
    """`with named_scope("encoder"): ...`, or a decorator: names a part of a program for its reader.

    name: a string (TypeError for others). Scopes nest. Neither jaxprs nor profiles show the names.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> with nj.named_scope("encoder"):
    ...     print(jnp.ones(()))
    1.0
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"named_scope: the name must be a string, got {name!r}.")
        self.name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: Any) -> None:
        return None


def named_call(fun: Callable, *, name: str | None = None) -> Callable:
    """`fun` under the name `name`, within a scope of that name; it computes the same.

    name: a string; by default the function's own. See `named_scope`.

    >>> import numjet as nj
    >>> print(nj.named_call(lambda x: x + 1, name="step")(1))
    2
    """
    check_callable("named_call", fun)

    @functools.wraps(fun)
    def named(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)

    if name is not None:
        named.__name__ = name
    return named
