"""sort, top_k and what follows from them.

Floats order as numbers with NaN last and -0 equal to 0; complex numbers by real part, then
imaginary part.
Sorting permutes, so derivatives are gathers by the permutation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.base import config
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.dims import index_of
from numjet.core.lowering import Kernel
from numjet.core.primitive import Primitive, Zero
from numjet.core.structural import moveaxis
from numjet.ops.gather import GatherDimensionNumbers, gather
from numjet.ops.shape import broadcasted_iota, expand_dims
from numjet.transforms.batch import all_to_front

LARGEST_INT32 = int(np.iinfo(np.int32).max)


def ordered_bits(x: np.ndarray) -> np.ndarray:
    """Unsigned integers in the order of `x` (integers, booleans or real floats; NaN largest)."""
    if x.dtype.kind == "u":
        return x
    if x.dtype.kind == "b":
        return x.view(np.uint8)
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    top = unsigned.type(1 << (8 * x.dtype.itemsize - 1))
    if x.dtype.kind == "i":
        return x.view(unsigned) ^ top
    if x.dtype.itemsize <= 2:
        x = x.astype(np.float32)
        unsigned, top = np.dtype(np.uint32), np.uint32(1 << 31)
    bits = (x + np.zeros((), x.dtype)).view(unsigned)  # -0 + 0 is 0
    bits = np.where(bits & top, ~bits, bits | top)
    return np.where(np.isnan(x), unsigned.type(np.iinfo(unsigned).max), bits)


def stable_order(bits: np.ndarray, axis: int) -> np.ndarray:
    """The stable argsort of unsigned integers along `axis`."""
    n = bits.shape[axis]
    if bits.dtype.itemsize > 4 or n < 64:
        return np.argsort(bits, axis=axis, kind="stable")
    # NumPy sorts integers several times faster than it argsorts: sort (value, position) in one
    # word.
    position = np.arange(n, dtype=np.uint64).reshape(
        [n if i == axis else 1 for i in range(bits.ndim)]
    )
    packed = bits.astype(np.uint64) << np.uint64(32) | position
    packed.sort(axis=axis)
    return (packed & np.uint64(0xFFFFFFFF)).astype(np.int64)


def _abstract(
    *avals: ShapedArray, dimension: int, is_stable: bool, num_keys: int
) -> list[ShapedArray]:
    first = avals[0]
    if any(a.shape != first.shape for a in avals):
        raise TypeError(
            "Arguments to sort must have equal shapes, got "
            f"{', '.join(a.str_short() for a in avals)}."
        )
    if not 0 <= dimension < first.ndim:
        raise ValueError(f"sort: dimension {dimension} is not an axis of {first.str_short()}.")
    if not 1 <= num_keys <= len(avals):
        raise ValueError(
            f"sort: num_keys={num_keys} must be between 1 and the number of operands, "
            f"{len(avals)}."
        )
    for a in avals[:num_keys]:
        if dtypes.is_key(a.dtype):
            raise TypeError("sort: PRNG keys have no order. Sort random.key_data(key).")
    return list(avals)


def _parts(key: np.ndarray) -> tuple[np.ndarray, ...]:
    """The real arrays by which an operand is ordered, each with NaN last."""
    return (key.real, key.imag) if dtypes.is_complex(key.dtype) else (key,)


def _reference(
    *operands: np.ndarray, dimension: int, is_stable: bool, num_keys: int
) -> list[np.ndarray]:
    first = operands[0]
    if len(operands) == 1 and first.dtype.kind in "biuf" and first.dtype.isbuiltin == 1:
        stable = first.dtype.kind == "f" and bool((np.signbit(first) & (first == 0)).any())
        return [np.sort(first, axis=dimension, kind="stable" if stable else None)]
    if num_keys == 1 and not dtypes.is_complex(first.dtype):
        order = stable_order(ordered_bits(first), dimension)
    else:
        keys = [ordered_bits(part) for k in operands[:num_keys] for part in _parts(k)]
        order = np.lexsort(keys[::-1], axis=dimension)
    return [np.take_along_axis(x, order, dimension) for x in operands]


def _jvp(
    primals: tuple, tangents: tuple, *, dimension: int, is_stable: bool, num_keys: int
) -> tuple:
    if all(type(t) is Zero for t in tangents):
        outs = sort_p.bind(*primals, dimension=dimension, is_stable=is_stable, num_keys=num_keys)
        return outs, [Zero(x.aval.tangent()) for x in outs]
    numbers = np.dtype(np.uint32) if config.jax_form() else dtypes.int32
    place = broadcasted_iota(numbers, primals[0].aval.shape, dimension)
    *outs, order = sort_p.bind(
        *primals, place, dimension=dimension, is_stable=is_stable, num_keys=num_keys
    )
    return outs, [
        Zero(x.aval.tangent()) if type(t) is Zero else take_along(t, order, dimension)
        for x, t in zip(outs, tangents, strict=True)
    ]


def take_along(x: Any, order: Any, axis: int) -> Any:
    """x[..., order[..., i, ...], ...] along `axis`; the other axes of both are the same."""
    if not x.aval.size:
        return x
    rest = tuple([i for i in range(x.aval.ndim) if i != axis])
    numbers = GatherDimensionNumbers((), (axis,), (axis,), rest, rest)
    return gather(
        x,
        expand_dims(order, (order.aval.ndim,)),
        numbers,
        [1] * x.aval.ndim,
        mode="promise_in_bounds",
    )


def _batch(axis: Any, args: tuple, dims: tuple, *, dimension: int, **params: Any) -> tuple:
    values = all_to_front(args, dims, axis.size)
    outs = sort_p.bind(*values, dimension=dimension + 1, **params)
    return outs, [0] * len(outs)


sort_p = Primitive(
    "sort",
    multiple_results=True,
    abstract=_abstract,
    reference=_reference,
    jvp=_jvp,
    batch=_batch,
    loops=Kernel("sort"),
)


# ------------------------------------------------------------------ top_k
def _top_k_abstract(x: ShapedArray, *, k: int, axis: int) -> list[ShapedArray]:
    if not 0 <= axis < x.ndim:
        raise ValueError(f"top_k: axis {axis} is not an axis of {x.str_short()}.")
    if k < 0:
        raise ValueError(f"k argument to top_k must be nonnegative, got {k}.")
    if k > x.shape[axis]:
        raise ValueError(
            "k argument to top_k must be no larger than size along axis; got "
            f"k={k} with shape={list(x.shape)} and axis={axis}."
        )
    if dtypes.is_complex(x.dtype) or dtypes.is_key(x.dtype):
        given = "complex inputs" if dtypes.is_complex(x.dtype) else "keys"
        raise ValueError(
            f"top_k is not compatible with {given}: it takes real numbers, got {x.str_short()}."
        )
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return [ShapedArray(shape, d, x.weak_type) for d in (x.dtype, dtypes.int32)]


def _top_k_reference(x: np.ndarray, *, k: int, axis: int) -> list[np.ndarray]:
    order = stable_order(~ordered_bits(x) if x.dtype.kind != "b" else 1 - ordered_bits(x), axis)
    order = np.take(order, np.arange(k), axis=axis)
    return [np.take_along_axis(x, order, axis), order.astype(np.int32)]


def _top_k_jvp(primals: tuple, tangents: tuple, *, k: int, axis: int) -> tuple:
    values, order = top_k_p.bind(*primals, k=k, axis=axis)
    tangent = tangents[0]
    tangent = (
        Zero(values.aval.tangent()) if type(tangent) is Zero else take_along(tangent, order, axis)
    )
    return [values, order], [tangent, Zero(order.aval.tangent())]


def _top_k_batch(axis_data: Any, args: tuple, dims: tuple, *, k: int, axis: int) -> tuple:
    outs = top_k_p.bind(moveaxis(args[0], dims[0], 0), k=k, axis=axis + 1)
    return outs, [0, 0]


top_k_p = Primitive(
    "top_k",
    multiple_results=True,
    abstract=_top_k_abstract,
    reference=_top_k_reference,
    jvp=_top_k_jvp,
    batch=_top_k_batch,
    loops=Kernel("top_k"),
)


# ------------------------------------------------------------------ functions
def _axis(axis: int, ndim: int, name: str) -> int:
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim} ({name}).")
    return int(axis) % ndim


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """operand sorted along an axis, ascending, NaN last.

    operand: an array, or a tuple of arrays of one shape, which move together. dimension: the axis.
    is_stable: keep the order of equal keys (it always is kept). num_keys: how many of the first
    operands decide. Result: of the same shapes and dtypes, a tuple for a tuple. Complex numbers are
    ordered by real, then imaginary parts. Derivative: the same permutation. Raises TypeError for
    shapes that differ, ValueError for an axis out of range.

    >>> from numjet import lax, numpy as jnp
    >>> lax.sort((jnp.array([3, 1, 2]), jnp.array([10, 20, 30])))
    (Array([1, 2, 3], dtype=int32), Array([20, 30, 10], dtype=int32))
    """
    several = isinstance(operand, Sequence)
    given = operand if several else [operand]
    for x in given:
        if not hasattr(x, "shape"):
            raise AttributeError(f"sort: an operand must be an array: {x!r} has no shape.")
    operands = [as_array(x) for x in given]
    if not operands:
        raise TypeError("Sort requires at least one operand.")
    outs = sort_p.bind(
        *operands,
        dimension=_axis(dimension, operands[0].ndim, "sort"),
        is_stable=bool(is_stable),
        num_keys=int(num_keys),
    )
    return tuple(outs) if several else outs[0]


def sort_key_val(
    keys: Any, values: Any, dimension: int = -1, is_stable: bool = True
) -> tuple[Any, Any]:
    """`keys` sorted along an axis, and `values` in the same order.

    keys, values: arrays of one shape. dimension: the axis. is_stable: keep the order of equal keys.
    Result: the pair of both. Derivative: the same permutation. Raises TypeError for shapes that
    differ. Raises ValueError for an axis out of range.

    >>> from numjet import lax, numpy as jnp
    >>> lax.sort_key_val(jnp.array([3, 1, 2]), jnp.array([10, 20, 30]))
    (Array([1, 2, 3], dtype=int32), Array([20, 30, 10], dtype=int32))
    """
    keys, values = sort((keys, values), dimension, is_stable)
    return keys, values


def argsort(operand: Any, axis: int = -1, is_stable: bool = True) -> Any:
    """The int32 positions that sort `operand` along `axis`."""
    operand = as_array(operand)
    axis = _axis(axis, operand.ndim, "argsort")
    place = broadcasted_iota(dtypes.int32, operand.aval.shape, axis)
    return sort((operand, place), axis, is_stable)[1]


def top_k(operand: Any, k: int, *, axis: int = -1) -> list[Any]:
    """The k largest values along an axis, largest first, and their positions: [values, indices].

    operand: a real array (TypeError for complex). k: how many, from 0 to the axis's size
    (ValueError). axis: an integer. indices are int32. NaN counts as largest, and of equal values
    the first comes first. Derivative: that of taking the elements at these positions.

    >>> from numjet import lax, numpy as jnp
    >>> lax.top_k(jnp.array([1, 4, 2]), 2)
    [Array([4, 2], dtype=int32), Array([1, 2], dtype=int32)]
    """
    operand = as_array(operand)
    if not operand.ndim:
        raise ValueError(
            "top_k: axis -1 is out of bounds for array of dimension 0. Give it an "
            "axis."
        )
    axis = _axis(axis, operand.ndim, "top_k")
    if type(operand.aval.shape[axis]) is int and operand.aval.shape[axis] > LARGEST_INT32:
        raise ValueError(
            "top_k returns int32 indices, which will overflow for array dimensions larger than "
            f"{LARGEST_INT32}, got {operand.aval.str_short()}."
        )
    values, order = top_k_p.bind(operand, k=index_of(k), axis=axis)
    return [values, order]
