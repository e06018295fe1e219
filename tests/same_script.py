"""Runs one script under numjet and under JAX (the oracle) and compares what it stores in `out`.

The script sees `np`, `jnp`, `lax`, `linalg`, `fft`, `reduce_window`, `random`, `grad`, `jvp`,
`vmap`, `jit` of the library it runs under.
Entries whose names begin with "~" are compared to rounding, the others exactly, dtypes and shapes
included.
"""

from __future__ import annotations

import numpy as np
from oracle import run_in_oracle

_NAMES = """
from {package} import grad, jit, jvp, lax, random, vmap
import {package}.numpy as jnp
import numpy as np
"""
_THERE = "from jax.lax import fft, linalg, reduce_window\n"
_HERE = """
from numjet.ops import linalg
from numjet.ops.fft import fft
from numjet.ops.window import reduce_window
"""


def _run_here(script: str, x64: bool) -> dict[str, np.ndarray]:
    import numjet

    scope: dict = {"out": {}}
    before = numjet.config.enable_x64
    numjet.config.update("enable_x64", x64)
    try:
        exec(compile(_NAMES.format(package="numjet") + _HERE + script, "<script>", "exec"), scope)
        return {name: np.asarray(value) for name, value in scope["out"].items()}
    finally:
        numjet.config.update("enable_x64", before)


def compare(script: str, *, rtol: float = 1e-4, atol: float = 1e-5, x64: bool = False) -> None:
    """Fail with the names of the entries that differ."""
    want = run_in_oracle(_NAMES.format(package="jax") + _THERE + script, x64=x64)
    got = _run_here(script, x64)
    assert got.keys() == want.keys()
    for name, value in got.items():
        expected = want[name]
        assert value.shape == expected.shape, name
        assert value.dtype == expected.dtype, name
        if name.startswith("~"):
            np.testing.assert_allclose(
                value.astype(np.complex128),
                expected.astype(np.complex128),
                rtol=rtol,
                atol=atol,
                err_msg=name,
            )
        else:
            if value.dtype.isbuiltin != 1:  # NumPy does not know bfloat16's NaN
                value, expected = value.astype(np.float32), expected.astype(np.float32)
            np.testing.assert_array_equal(value, expected, err_msg=name)
