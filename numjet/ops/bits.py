"""bitcast_convert_type: the same bits as another dtype.

For `lax` and for what looks at the parts of numbers. What would break it: parts in another order
than the low ones first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.lowering import Pointwise
from numjet.core.primitive import Primitive
from numjet.core.structural import convert, moveaxis
from numjet.ops.arrange import stop_gradient


def _bitcast_shape(x: ShapedArray, new: Any) -> tuple[int, ...]:
    have, want = dtypes.bits(x.dtype), dtypes.bits(new)
    if have == want:
        return x.shape
    if have > want:
        return (*x.shape, have // want)
    if not x.shape or x.shape[-1] != want // have:
        raise ValueError(
            f"Attempting to convert array of shape {x.shape} from {x.dtype} of size {have} bits to "
            f"{new} of size {want} bits: bitcast_convert_type takes the last axis away, which must "
            f"be of size {want // have}."
        )
    return x.shape[:-1]


def _bitcast_abstract(x: ShapedArray, *, new_dtype: Any) -> ShapedArray:
    return ShapedArray(_bitcast_shape(x, new_dtype), new_dtype)


def _bitcast_reference(x: np.ndarray, *, new_dtype: Any) -> np.ndarray:
    want = dtypes.physical(new_dtype)
    if x.dtype.itemsize > want.itemsize:
        return np.ascontiguousarray(x).reshape((*x.shape, 1)).view(want)
    if x.dtype.itemsize < want.itemsize:
        return np.ascontiguousarray(x).view(want)[..., 0]
    return x.view(want) if x.ndim else np.ascontiguousarray(x).reshape(1).view(want).reshape(())


def _bitcast_loops(e: Any, index: list, x: Any, *, new_dtype: Any) -> Any:
    want = dtypes.physical(new_dtype)
    have = x.dtype
    if have.itemsize == want.itemsize:
        return e.bitcast(x(*index), want)
    unsigned = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}
    wide, narrow = (
        unsigned[max(have.itemsize, want.itemsize)],
        unsigned[min(have.itemsize, want.itemsize)],
    )
    bits = narrow.itemsize * 8
    if have.itemsize > want.itemsize:
        word = e.bitcast(x(*index[:-1]), wide)
        shift = e.mul(e.index_value(index[-1], wide), e.const(bits, wide))
        return e.bitcast(e.cast(e.shr_logical(word, shift), narrow), want)
    total = None
    for k in range(want.itemsize // have.itemsize):
        part = e.cast(e.bitcast(x(*index, e.index_const(k)), narrow), wide)
        part = e.shl(part, e.const(k * bits, wide)) if k else part
        total = part if total is None else e.or_(total, part)
    return e.bitcast(total, want)


def _bitcast_batch(axis: Any, args: tuple, dims: tuple, *, new_dtype: Any) -> tuple:
    return bitcast_convert_type_p.bind(moveaxis(args[0], dims[0], 0), new_dtype=new_dtype), 0


bitcast_convert_type_p = Primitive(
    "bitcast_convert_type",
    differentiable=False,
    abstract=_bitcast_abstract,
    reference=_bitcast_reference,
    batch=_bitcast_batch,
    loops=Pointwise(_bitcast_loops),
)


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Any:
    """The same bits as another dtype.

    operand: an array. new_dtype: of the same width, or narrower (a new last axis holds the parts,
    the low ones first), or wider (the last axis, which must have their number, goes). Result:
    new_dtype, and else operand's shape. No derivative flows. Raises ValueError where the widths do
    not fit and for complex numbers of real ones, TypeError for booleans and other complex ones.

    >>> from numjet import lax, numpy as jnp
    >>> lax.bitcast_convert_type(jnp.float32(1.0), jnp.int32)
    Array(1065353216, dtype=int32)
    >>> lax.bitcast_convert_type(jnp.uint16(258), jnp.uint8)
    Array([2, 1], dtype=uint8)
    """
    x = as_array(operand)
    new = dtypes.requested(new_dtype, "bitcast_convert_type", 3)
    if x.dtype == new and (dtypes.is_key(new) or dtypes.is_bool(new)):
        return convert(x, new)  # strong
    if x.dtype == new and dtypes.is_complex(new):
        return convert(stop_gradient(x), new)
    if dtypes.is_key(x.dtype):
        raise ValueError("bitcast_convert_type takes no PRNG keys. Use random.key_data(key).")
    _bitcast_shape(x.aval, new)  # raises ValueError
    for dtype in (x.dtype, new):
        if dtypes.is_complex(dtype) or dtypes.is_bool(dtype):
            raise TypeError(
                "lax.bitcast_convert_type does not support bool or complex values unless the "
                f"operand and destination types match. Got operand dtype={x.dtype.name}, "
                f"new_dtype={new.name}. Consider using the arr.view() method instead."
            )
    return bitcast_convert_type_p.bind(x, new_dtype=new)
