"""Square roots of matrices, those without a basis of eigenvectors among them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import numjet as nj
from numjet.scipy.matrix_functions import sqrtm

RNG = np.random.default_rng(0)
TURN = RNG.standard_normal((4, 4))
BLOCK = np.diag([4.0, 4, 4, 9]) + np.diag([1.0, 1, 0], 1)
MATRICES = {
    "one block": np.array([[1.0, 1], [0, 1]]),
    "a block in a turned basis": TURN @ BLOCK @ np.linalg.inv(TURN),
    "random": RNG.standard_normal((6, 6)),
    "complex": RNG.standard_normal((5, 5)) + 1j * RNG.standard_normal((5, 5)),
    "negative": np.diag([-1.0, -4]),
    "singular": np.array([[0.0, 0, 1], [0, 0, 0], [0, 0, 4]]),
    "zero": np.zeros((3, 3)),
    "single": np.array([[9.0]]),
    "empty": np.zeros((0, 0)),
    "batch": RNG.standard_normal((3, 4, 4)),
}


@pytest.mark.parametrize("name", MATRICES)
def test_squares_give_the_matrix(name: str) -> None:
    x = MATRICES[name]
    with nj.enable_x64(True):
        for f in (sqrtm, nj.jit(sqrtm)):
            root = np.asarray(f(x))
            assert root.dtype == np.complex128 and root.shape == x.shape
            np.testing.assert_allclose(root @ root, x, atol=1e-7)
            if x.ndim == 2 and name not in ("singular", "zero", "empty"):
                np.testing.assert_allclose(root, scipy.linalg.sqrtm(x), atol=1e-6)


def test_what_has_no_root_is_not_finite() -> None:
    assert not np.isfinite(sqrtm(np.array([[0.0, 1], [0, 0]]))).all()
