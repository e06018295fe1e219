"""Which functions keep the weak type of what was made of Python numbers, beside JAX's answers.

Of numbers (no axes) and of arrays it is not always the same.
"""

from __future__ import annotations

import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

WEAK = {2: lax.full((2,), 2), 0.5: lax.full((2,), 0.5), 1j: lax.full((2,), 1j)}

# Function -> operands (a number, or the array of it) with weak results; of others they are strong.
KEPT = {
    "rint": ["0.5", "[0.5]", "1j", "[1j]"],
    "angle": ["[0.5]", "1j", "[1j]"],
    "isinf": [], "isposinf": [], "isneginf": [], "signbit": [], "spacing": [], "diagflat": [],
    "isnan": ["0.5", "[0.5]", "2", "[2]", "1j", "[1j]"],
    "logical_not": ["0.5", "2", "1j"],
    "iscomplex": ["0.5", "2", "1j"],
    "sinc": ["0.5", "2", "1j"], "deg2rad": ["0.5", "2", "1j"], "rad2deg": ["0.5", "2", "1j"],
    "sort_complex": [],
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_weak_types(name):
    function, found = getattr(jnp, name), []
    for number, array in WEAK.items():
        for text, x in ((str(number), number), (f"[{number}]", array)):
            try:
                out = function(x)
            except ValueError:  # of complex numbers, or of none without axes
                continue
            assert nj.eval_shape(function, x).weak_type == out.weak_type
            found += [text] * out.weak_type
    assert sorted(found) == sorted(KEPT[name])


def test_booleans_are_never_weak():
    for function in (jnp.iscomplex, jnp.isreal, jnp.isnan, jnp.logical_not):
        assert not function(True).weak_type
