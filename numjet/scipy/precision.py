"""The dtypes of functions of numjet.scipy.special: double precision, whatever `enable_x64` says,
for those whose terms cancel; and which dtypes some take, as JAX's do.

What would break it: a function that asks for the flag while it is traced, to choose the dtype of
its result.
"""

from __future__ import annotations

import functools
from typing import Any

from numjet.api.compiled.jit import jit
from numjet.base import config
from numjet.core import dtypes
from numjet.core.structural import scalar
from numjet.numpy import lax_names as lax
from numjet.numpy.promote import one_array, strong


def float_array(name: str, x: Any) -> Any:
    """The argument as a strong array of float32 or float64; TypeError for other dtypes."""
    x = one_array(name, x)
    if x.aval.dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(
            f"{name}: dtype {x.aval.dtype} is not supported. Take float32 or float64: "
            "x.astype(float)."
        )
    return strong(x)


def strong_throughout(x: Any) -> Any:
    """`x` without weak type, which its derivative does not get back: as where JAX multiplies by
    constants of x's dtype."""
    return lax.mul(x, scalar(1, x.aval.dtype)) if x.aval.weak_type else x


def refuse_complex(name: str, *arrays: Any) -> None:
    """ValueError where one of the arrays is complex."""
    if any([dtypes.is_complex(x.aval.dtype) for x in arrays]):
        raise ValueError(f"{name} does not support complex-valued inputs.")


def in_doubles(function: Any) -> Any:
    """`function` jitted, with 64 bits on while it is traced or evaluated."""

    @functools.wraps(function)
    def called(*args: Any) -> Any:
        with config.enable_x64(True):
            return function(*args)

    return jit(called)
