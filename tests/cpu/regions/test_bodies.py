"""Bodies of loops read values that are made outside of them."""

from __future__ import annotations

import numpy as np

import numjet as nj
import numjet.numpy as jnp
from numjet import lax


def test_bodies_read_transposes_made_outside():
    w = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    rows = np.random.default_rng(1).standard_normal((2, 3, 4)).astype(np.float32)

    def constant(w, c):
        m = jnp.sin(w).T
        return lax.scan(lambda c, _: (m @ c, None), c, None, length=3)[0]

    def scanned(x):
        batch = (((1,), (1,)), ((0,), (0,)))
        return lax.map(lambda r: lax.dot_general(r, r, batch), jnp.transpose(x, (1, 0, 2)))

    m = np.sin(w).T
    np.testing.assert_allclose(nj.jit(constant)(w, w), m @ m @ m @ w, rtol=1e-4)
    want = np.sum(rows**2, axis=2).T
    np.testing.assert_allclose(nj.jit(scanned)(rows), want, rtol=1e-5)
