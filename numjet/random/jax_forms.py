"""Draws in the operations that JAX makes them of, for who looks at jaxprs (`api.shown`).

What runs has fewer operations. Each takes the arguments of the function whose calls it shows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.api.shown import Shown, form
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.primitive import REGISTRY
from numjet.core.structural import broadcast_in_dim, convert, scalar
from numjet.ops import arithmetic as ar
from numjet.ops.special import erf_inv
from numjet.random.basic import float_dtype, normal, unit_floats
from numjet.random.keys import shape_of, single_key


@form("_uniform")
def uniform_in_jax(
    key: Any, shape: Any, dtype: Any, minval: Any, maxval: Any, out_sharding: Any = None
) -> Any:
    dtype, shape = float_dtype("uniform", dtype), shape_of(shape)
    bounds = [convert(as_array(x), dtype) for x in (minval, maxval)]
    low, high = [_of_rank(x, len(shape)) for x in bounds]
    floats = unit_floats(single_key(key, "uniform"), shape, dtype)
    drawn = ar.add(ar.mul(floats, ar.sub(high, low)), low)
    if not shape:
        drawn = REGISTRY["reshape"].bind(drawn, new_sizes=(), dimensions=None)
    return ar.max(low, drawn)


def _of_rank(x: Any, rank: int) -> Any:
    """x with axes of size 1 in front."""
    more = rank - x.ndim
    if more <= 0:
        return x
    return broadcast_in_dim(x, (1,) * more + x.shape, tuple(range(more, rank)))


def _real(key: Any, shape: Any, dtype: Any) -> Any:
    low = np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype), dtype=dtype)
    bounds = scalar(low, dtype), scalar(1, dtype)
    drawn = _uniform.call((key, shape, dtype, *bounds), {})
    return ar.mul(scalar(np.sqrt(2), dtype), erf_inv(drawn))


_uniform, _normal_real = Shown(uniform_in_jax, "_uniform"), Shown(_real, "_normal_real")


@form("_normal")
def normal_in_jax(key: Any, shape: Any, dtype: Any, out_sharding: Any = None) -> Any:
    dtype = float_dtype("normal", dtype, complex_too=True)
    if dtypes.is_complex(dtype):
        return normal(key, shape, dtype)
    return _normal_real.call((single_key(key, "normal"), shape_of(shape), dtype), {})
