"""Random operands of tests."""
from __future__ import annotations

from typing import Any

import numpy as np


def normal(seed: int, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Normal numbers, the same ones for the same seed and shape."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Normal numbers of a dtype; of a complex one both parts."""
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)
