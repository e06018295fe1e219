"""Functions give the layout that was asked for: the check behind the tests of `out_sharding`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cpu_devices import cpu_devices

import numjet
from numjet.sharding import NamedSharding, PartitionSpec


def check(f: Callable[[Any, Any], Any], x: Any) -> None:
    """`f(x, layout)` has the layout, eagerly and compiled, and the values of `f(x, None)`."""
    with cpu_devices(2):
        layout = NamedSharding(numjet.make_mesh((2,), ("x",)), PartitionSpec("x"))
        plain = f(x, None)
        with numjet.set_mesh(layout.mesh):
            eager, compiled = f(x, layout), numjet.jit(lambda x: f(x, layout))(x)
        assert not hasattr(plain.sharding, "spec")
        whole = PartitionSpec("x", *[None] * (plain.ndim - 1))
        assert eager.sharding.is_equivalent_to(layout, plain.ndim)
        assert compiled.sharding == layout.update(spec=whole)
        assert eager.aval == compiled.aval != plain.aval
        # Factorizations of what lies over a mesh round otherwise.
        np.testing.assert_allclose(eager, plain, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(compiled, plain, rtol=1e-6, atol=1e-7)
