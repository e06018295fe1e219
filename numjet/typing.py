"""numjet.typing: types for annotations of functions that take arrays."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from numjet.core.array import Array

ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex


class SupportsDType(Protocol):
    """Anything with a dtype."""

    @property
    def dtype(self) -> np.dtype: ...


DTypeLike = str | type[Any] | np.dtype | SupportsDType

__all__ = ["ArrayLike", "DTypeLike"]


def __dir__() -> list[str]:
    return [*__all__]
