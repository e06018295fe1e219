"""Comparison of trees of numbers."""
from __future__ import annotations

from typing import Any

import numpy as np

import numjet


def close(got: Any, want: Any, tolerance: float = 1e-5) -> None:
    """The same structure, and leaves that differ by up to `tolerance`, relative or absolute."""
    assert numjet.tree.structure(got) == numjet.tree.structure(want), (got, want)
    for x, y in zip(numjet.tree.leaves(got), numjet.tree.leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tolerance, atol=tolerance)


def close_to_rounding(got: np.ndarray, want: np.ndarray, scale: float) -> None:
    """One dtype, and elements that differ by up to `scale` units of it, relative or absolute."""
    tolerance = scale * np.finfo(got.dtype).eps
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
