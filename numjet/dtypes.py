"""numjet.dtypes: dtypes beyond NumPy's, and questions about dtypes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from numjet.base.errors import TypePromotionError as TypePromotionError
from numjet.core.dtypes import extended, float0, prng_key
from numjet.numpy.scalar_types import (
    canonicalize_dtype,
    finfo,
    iinfo,
    issubdtype as _issubdtype,
    result_type,
    scalar_type_of,
)

bfloat16 = ml_dtypes.bfloat16


def issubdtype(a: Any, b: Any) -> bool:
    """Whether a dtype is, or lies below, another in NumPy's hierarchy of types and its extensions.

    a, b: dtypes or abstract types such as `numpy.floating`; bfloat16, the 4-bit integers and keys
    have places in it too.

    >>> from numjet import dtypes, numpy as jnp
    >>> dtypes.issubdtype(jnp.bfloat16, jnp.floating)
    True
    """
    return _issubdtype(a, b)


def itemsize_bits(dtype: Any) -> int:
    """The size of an element in bits.

    dtype: anything that names one; int4 and uint4 have 4, int2 2.

    >>> from numjet import dtypes, numpy as jnp
    >>> dtypes.itemsize_bits(jnp.int4), dtypes.itemsize_bits("float32")
    (4, 32)
    """
    # NumPy's scalar types have an attribute `dtype` too, which is no dtype.
    found = np.dtype(dtype if isinstance(dtype, type) else getattr(dtype, "dtype", dtype))
    if found.name in ("int2", "uint2"):
        return 2
    if found.name in ("int4", "uint4", "float4_e2m1fn"):
        return 4
    return found.itemsize * 8


__all__ = [
    "TypePromotionError",
    "bfloat16",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "result_type",
    "scalar_type_of",
]


def __dir__() -> list[str]:
    return [*__all__]
