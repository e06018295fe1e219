"""`named_scope` and `named_call`: names for parts of a program, which equations tell. They change
nothing that runs."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from numjet.api.flat import check_callable
from numjet.core.names import scope


class named_scope(contextlib.ContextDecorator):  # noqa: N801 - a context manager read as a statement
    """`with named_scope("encoder"): ...`, or a decorator: names a part of a program for its reader.

    name: a string (TypeError for others). Scopes nest. Equations of jaxprs have the names in their
    `source_info.name_stack`; profiles do not show them.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> @nj.named_scope("encoder")
    ... def encode(x):
    ...     return jnp.sin(x)
    >>> print(nj.make_jaxpr(encode)(1.0).eqns[0].source_info.name_stack)
    encoder
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"named_scope name argument must be a string, got {name!r}.")
        self.name = name
        self._entered: list[Any] = []

    def __enter__(self) -> None:
        context = scope(self.name)
        context.__enter__()
        self._entered.append(context)

    def __exit__(self, *exc: Any) -> None:
        self._entered.pop().__exit__(None, None, None)


def named_call(fun: Callable, *, name: str | None = None) -> Callable:
    """`fun` under the name `name`, within a scope of that name; it computes the same.

    name: a string; by default the function's own. See `named_scope`.

    >>> import numjet as nj
    >>> print(nj.named_call(lambda x: x + 1, name="step")(1))
    2
    """
    check_callable("named_call", fun)
    title = getattr(fun, "__name__", "named") if name is None else name

    @functools.wraps(fun)
    def named(*args: Any, **kwargs: Any) -> Any:
        with scope(title):
            return fun(*args, **kwargs)

    named.__name__ = title
    return named
