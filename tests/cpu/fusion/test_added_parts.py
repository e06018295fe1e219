"""Sums with updates of zeros: which are updates in place (`fusion.added_parts`)."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

C = np.arange(300, dtype=np.float32)
W = np.array([[2.0, -1.0, 5.0]], np.float32)


def _zeros():
    return jnp.zeros((5, 300), jnp.float32)


# What a loop scans, made before it by sums and updates of zeros.
SCANNED = {
    "update": lambda i: lax.dynamic_update_slice(_zeros(), W, (i, i)),
    "sum of updates": lambda i: (lax.dynamic_update_slice(_zeros(), W, (i, i))
                                 + lax.dynamic_update_slice(_zeros(), W * 3, (0, i))),
    "scatter": lambda i: _zeros().at[jnp.array([0, 3, 3]), jnp.array([7, 2, 2]) + i].add(W[0]),
    "sum": lambda i: (jnp.where(_zeros() + i > 1, 3.0, _zeros())
                      + lax.mul(_zeros() + 2, _zeros() + i)),
}  # fmt: skip


@pytest.mark.parametrize("name", SCANNED)
@pytest.mark.parametrize("reverse", [False, True])
def test_rows_of_what_was_made_before_a_loop_are_added_as_they_are(name, reverse) -> None:
    """What the whole array was made of is no update of a row."""

    def f(c, i):
        def body(carries, row):  # the sort keeps the loop from being one kernel
            total, others = carries
            return (total + row, jnp.sort(others * 2)[::-1]), None

        return lax.scan(body, (c, c), SCANNED[name](i), reverse=reverse)[0]

    whole = np.asarray(SCANNED[name](2))
    np.testing.assert_allclose(nj.jit(f)(C, 2)[0], C + whole.sum(0), rtol=1e-6)
    np.testing.assert_array_equal(nj.jit(f)(C, 2)[1], 32 * C[::-1])
