"""Asking for the text of an error, and looking for what a user needs in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def message(error: type[Exception], fun: Callable, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(error) as caught:
        fun(*args, **kwargs)
    assert type(caught.value) is error or type(caught.value).__mro__[1] is not Exception
    return str(caught.value)


def says(text: str, *parts: str) -> None:
    for part in parts:
        assert part in text, f"{part!r} is missing from: {text}"
