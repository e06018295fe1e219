"""Which Python types are arrays to numjet: tables that libraries read, and add their own types to.

`pytype_aval_mappings[type]` gives the aval of a value, `canonicalize_dtype_handlers[type]` the
value as an array. A type that is added to either is accepted wherever an array is; it becomes one
by its handler, or by NumPy's `asarray`. What would break it: a handler that gives a value of its
own type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from numjet.core import array
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.deferred import DeferredArray
from numjet.core.trace import Tracer, aval_of


class _Table(dict):
    """Type -> function of a value; adding a type makes its values arrays."""

    def __init__(self, of_arrays: Callable, values: bool) -> None:
        own = [bool, int, float, complex, np.ndarray, *np.sctypeDict.values(), ml_dtypes.bfloat16]
        super().__init__((kind, of_arrays) for kind in [*own, ArrayImpl, DeferredArray, Tracer])
        self.values_given = values

    def __setitem__(self, kind: type, rule: Callable) -> None:
        super().__setitem__(kind, rule)
        if self.values_given:
            array._CONVERTERS[kind] = lambda x: as_array(rule(x))
        else:
            array._CONVERTERS.setdefault(kind, lambda x: as_array(np.asarray(x)))

    def __delitem__(self, kind: type) -> None:
        super().__delitem__(kind)
        array._CONVERTERS.pop(kind, None)


pytype_aval_mappings = _Table(aval_of, values=False)
canonicalize_dtype_handlers = _Table(as_array, values=True)


def get_aval(x: Any) -> Any:
    """The aval of an array, tracer or scalar.

    x: one of these, or of a type in `pytype_aval_mappings`. Raises TypeError for other values.

    >>> import numpy as np
    >>> from numjet.extend import jax_core
    >>> print(jax_core.get_aval(np.ones((2, 3), np.float32)))
    float32[2,3]
    """
    if isinstance(x, Array):
        return x.aval
    rule = pytype_aval_mappings.get(type(x))
    if rule is not None:
        return rule(x)
    return as_array(x).aval


def shaped_abstractify(x: Any) -> ShapedArray:
    """The aval of an array, tracer, scalar or object with shape and dtype.

    x: one of these. Raises TypeError for other values.

    >>> import numpy as np
    >>> from numjet import api_util
    >>> print(api_util.shaped_abstractify(np.ones(2, np.float32)))
    float32[2]
    """
    try:
        return get_aval(x)
    except TypeError:
        if hasattr(x, "shape") and hasattr(x, "dtype"):
            return ShapedArray(x.shape, x.dtype, getattr(x, "weak_type", False))
        raise TypeError(
            f"Argument {x!r} of type {type(x)} is not a valid JAX type: pass an array, a scalar, "
            "or an object with shape and dtype."
        ) from None


def valid_jaxtype(x: Any) -> bool:
    """Whether `x` is an array, a tracer or a scalar.

    x: anything.

    >>> from numjet.extend import core
    >>> core.valid_jaxtype(1.0), core.valid_jaxtype("text")
    (True, False)
    """
    try:
        get_aval(x)
    except TypeError:
        return False
    return True
