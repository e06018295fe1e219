"""fma: x * y + z rounded once.

numjet.random.uniform and numjet.numpy.linspace scale with it, because the bits they promise were
defined by a fused multiply-add.
Compiled code has the instruction. In NumPy float32 goes through float64, where the product is
exact; float64 carries the rounding errors of product and sum along (Dekker 1971).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.ops.arithmetic import mul
from numjet.ops.families import REAL_FLOATING, elementwise

# Splits a 53-bit significand into two halves of 26 bits.
_SPLITTER = float(2**27 + 1)


def fused(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """`fma` of NumPy arrays."""
    if x.dtype != np.float64:
        return np.asarray(x.astype(np.float64) * y + z).astype(x.dtype)
    with np.errstate(all="ignore"):
        xh = _SPLITTER * x - (_SPLITTER * x - x)
        yh = _SPLITTER * y - (_SPLITTER * y - y)
        xl, yl = x - xh, y - yh
        product = x * y
        low = ((xh * yh - product) + xh * yl + xl * yh) + xl * yl
        total = product + z
        back = total - product
        error = (product - (total - back)) + (z - back)
        fine = total + (error + low)
    return np.where(np.isfinite(fine), fine, total)


def _loops(e: Any, x: Any, y: Any, z: Any) -> Any:
    if x.dtype.itemsize >= 4:
        return e.call("fma", x, y, z)
    wide = [e.cast(v, dtypes.float64) for v in (x, y, z)]
    return e.cast(e.add(e.mul(wide[0], wide[1]), wide[2]), x.dtype)


fma_p = elementwise(
    "fma",
    accepts=REAL_FLOATING,
    reference=fused,
    jvp=(
        lambda t, out, x, y, z: mul(t, y),
        lambda t, out, x, y, z: mul(x, t),
        lambda t, out, x, y, z: t,
    ),
    loops=_loops,
)


def fma(x: Any, y: Any, z: Any) -> Any:
    """x * y + z, rounded once; one dtype, one shape (or none)."""
    return fma_p.bind(x, y, z)
