"""Avals: the names under which libraries ask for a tangent's."""

from __future__ import annotations

import numpy as np

from numjet.core.avals import ShapedArray


def test_names_of_the_tangents_aval():
    aval = ShapedArray((2,), np.dtype(np.int32))
    for name in ("to_tangent_aval", "to_cotangent_aval", "to_ct_aval", "at_least_vspace"):
        assert getattr(aval, name)() is aval.tangent()
