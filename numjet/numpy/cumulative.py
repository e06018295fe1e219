"""Running sums and products along an axis, under NumPy's names and the array API's.

What is added up in which dtype is said in `reductions`; extrema that run are `maximum.accumulate`
(`numpy.ufunc`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.api.compiled.shown import FLAG, Shown, wanted
from numjet.core import dtypes
from numjet.numpy import lax_names as lax
from numjet.numpy.promote import (
    canonical_axis,
    canonical_dtype,
    cast,
    int_dtype,
    one_array,
    refuse,
    strong,
)
from numjet.numpy.reductions import accumulating
from numjet.numpy.shape import ravel


def _cumulate(name: str, a: Any, axis: Any, dtype: Any, operation: Callable) -> Any:
    x = one_array(name, a)
    if axis is None or not x.aval.ndim and x.aval.weak_type and axis in (0, -1):  # a number
        x, axis = ravel(x), 0
    axis = canonical_axis(axis, x.aval.ndim, name)
    wanted = None if dtype is None else canonical_dtype(dtype, name)
    if wanted == dtypes.bool_:      # whether any (all) so far: of zeros and ones
        ones = cast(cast(x, wanted), dtypes.int32)
        extreme = lax.cummax if operation is lax.cumsum else lax.cummin
        return cast(extreme(ones, axis), wanted)
    if wanted is not None:
        x = cast(x, wanted)
    elif x.aval.dtype == dtypes.bool_:
        x = cast(x, int_dtype())
    return operation(strong(x), axis)


def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Running sums along `axis`: element i adds up the first i + 1 elements.

    a: numbers of any shape, which the result has. axis: an integer, or None for the flattened
    array. dtype: what is added up and returned, by default a's own (NumPy widens small integers);
    booleans are counted in the default integer. `out` raises NotImplementedError. ValueError for an
    axis out of range.

    >>> jnp.cumsum(jnp.array([[1, 2], [3, 4]]), axis=1)
    Array([[1, 3],
           [3, 7]], dtype=int32)
    """
    refuse("cumsum", out=out)
    return _cumulate("cumsum", a, axis, dtype, lax.cumsum)


def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Running products along `axis`: element i multiplies the first i + 1 elements.

    a: numbers of any shape, which the result has. axis: an integer, or None for the flattened
    array. dtype: what is multiplied and returned, by default a's own (NumPy widens small integers).
    `out` raises NotImplementedError.

    >>> jnp.cumprod(jnp.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int32)
    """
    refuse("cumprod", out=out)
    return _cumulate("cumprod", a, axis, dtype, lax.cumprod)


_promoted = Shown(cumsum, "_cumsum_with_promotion")


def _cumulative(
    name: str, x: Any, axis: Any, dtype: Any, initial: bool, operation: Callable, first: int
) -> Any:
    x = one_array(name, x)
    if not x.aval.ndim:
        kind = "sum" if name.endswith("sum") else "product"
        raise ValueError(
            f"{name}: The input must be non-scalar to take a cumulative {kind}. Give it an axis."
        )
    if axis is None:
        if x.aval.ndim > 1:
            raise ValueError(
                f"{name}: The input array has rank {x.aval.ndim}, however axis was not set: only "
                "vectors need none."
            )
        axis = 0
    axis = canonical_axis(axis, x.aval.ndim, name)
    if first or dtype is not None:
        out = operation(x, axis, dtype)
    else:
        wide = accumulating(name, x, None, True)
        shown = FLAG.uses and wanted() and name == "cumulative_sum"
        out = _promoted.call((wide,), {"axis": axis}) if shown else operation(wide, axis=axis)
    if initial:
        shape = out.aval.shape[:axis] + (1,) + out.aval.shape[axis + 1 :]
        out = lax.concatenate([lax.full(shape, first, out.aval.dtype), out], axis)
    return out


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Running sums along `axis`, as the array API standard has them.

    x: numbers with at least one dimension. axis: may be left out for one dimension only. dtype:
    what is added up and returned; small integers become the default one, as in `sum`.
    include_initial: begin with a 0, one element more. ValueError for scalars and a missing axis.

    >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    return _cumulative("cumulative_sum", x, axis, dtype, include_initial, cumsum, 0)


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Running products along `axis`, as the array API standard has them.

    x: numbers with at least one dimension. axis: may be left out for one dimension only. dtype:
    what is multiplied and returned, by default x's own (NumPy widens small integers); booleans are
    counted.
    include_initial: begin with a 1, one element more. ValueError for scalars and a missing axis.

    >>> jnp.cumulative_prod(jnp.array([1, 2, 3]), include_initial=True)
    Array([1, 1, 2, 6], dtype=int32)
    """
    return _cumulative("cumulative_prod", x, axis, dtype, include_initial, cumprod, 1)
