"""The narrow dtypes - integers of 2 and 4 bits, floats of 4 and 8 - computed with in wider ones.

Arrays of them hold an element a byte. An operation on them means: the same operation on int8, uint8
or float32, whose result is brought back. `core.evaluate` runs NumPy so (`reference`), and
`cpu.graph.narrow` writes compiled programs so; both ask here what is done to params, operands and
results. What would break it: an operation whose result depends on the operands' width and that is
not named in the tables below.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.dtypes import bits
from numjet.core.primitive import Primitive

# Operations that only move elements: they run on the bytes.
MOVES = frozenset(
    "broadcast_in_dim transpose reshape squeeze slice dynamic_slice rev concatenate "
    "pad dynamic_update_slice select_n copy optimization_barrier".split()
)
# Reductions whose result, where nothing is reduced, is the wide dtype's limit.
EXTREMES = frozenset(
    "reduce_max reduce_min cummax cummin reduce_window_max reduce_window_min".split()
)
# Operations on the bits of an integer: signed ones must not bring copies of their sign.
BITS = frozenset(["shift_right_logical", "population_count", "clz"])


def wide(dtype: Any) -> Any:
    """The dtype that is computed with instead of `dtype`, which may be any."""
    if dtype not in dtypes.NARROW:
        return dtype
    if dtype in dtypes.NARROW_FLOATS:
        return dtypes.float32
    return dtypes.int8 if dtype in dtypes.NARROW_SIGNED else dtypes.uint8


def limits(dtype: Any) -> tuple[float, float]:
    """The least and the largest finite value of a narrow dtype."""
    if dtype in dtypes.NARROW_FLOATS:
        table = values(dtype)
        finite = table[np.isfinite(table)]
        return float(finite.min()), float(finite.max())
    size = 1 << bits(dtype)
    return (-size // 2, size // 2 - 1) if dtype in dtypes.NARROW_SIGNED else (0, size - 1)


@functools.cache
def values(dtype: Any) -> np.ndarray:
    """The value of each of a narrow float's bit patterns, in float32."""
    return np.arange(1 << bits(dtype), dtype=np.uint8).view(dtype).astype(np.float32)


def wide_params(params: dict, dtype: Any) -> dict:
    """`params` with wide dtypes in the place of narrow ones, of an operation on `dtype`."""
    found = {
        name: wide(value) if isinstance(value, np.dtype) else value
        for name, value in params.items()
    }
    if "fill_value" in found and found["fill_value"] is None and dtypes.is_integer(dtype):
        least, most = limits(dtype)  # what a gather gives out of bounds
        found["fill_value"] = least or most
    return found


def saturates(primitive: Primitive, of: Any, to: Any) -> bool:
    """Whether a result out of range becomes the nearest value, and does not wrap around."""
    if primitive.name == "convert_element_type":
        return not dtypes.is_integer(of) and of != dtypes.bool_ and dtypes.is_integer(to)
    return primitive.name in EXTREMES


def reference(primitive: Primitive) -> Callable:
    """`primitive.reference`, for operands and results of which some are narrow."""
    return functools.partial(_run, primitive)


def _run(primitive: Primitive, *args: np.ndarray, **params: Any) -> Any:
    if primitive.name == "bitcast_convert_type":
        return _bitcast(args[0], params["new_dtype"])
    whole = primitive.name in BITS
    operands = [_widened(x, whole) for x in args]
    dtype = params.get("new_dtype", args[0].dtype if args else None)
    out = primitive.reference(*operands, **wide_params(params, dtype))  # type: ignore[misc]
    if primitive.multiple_results:
        return list(out)
    if whole:
        if primitive.name == "clz":
            out = out - np.uint8(8 - bits(dtype))
    elif dtype in dtypes.NARROW and args and saturates(primitive, args[0].dtype, dtype):
        out = _clipped(np.asarray(out), dtype)
    return out


def _widened(x: np.ndarray, whole: bool) -> np.ndarray:
    if x.dtype not in dtypes.NARROW:
        return x
    if whole and x.dtype in dtypes.NARROW_SIGNED:
        return (x.astype(np.int8) & np.int8((1 << bits(x.dtype)) - 1)).view(np.uint8)
    return x.astype(wide(x.dtype))


def _clipped(x: np.ndarray, dtype: Any) -> np.ndarray:
    if dtypes.is_integer(dtype):
        return np.clip(x, *limits(dtype))
    if np.isinf(values(dtype)).any():
        return x
    return np.where(np.isinf(x), np.clip(x, *limits(dtype)), x)


def _bitcast(x: np.ndarray, new: Any) -> np.ndarray:
    """The operand's bits, the first element's lowest, cut into elements of the new width."""
    have, want = bits(x.dtype), bits(new)
    raw = np.ascontiguousarray(x)[..., None].view(np.uint8).reshape((*x.shape, x.dtype.itemsize))
    each = np.unpackbits(raw, axis=-1, bitorder="little")[..., :have]
    if have < want:
        each = each.reshape((*x.shape[:-1], want))
    elif have > want:
        each = each.reshape((*x.shape, have // want, want))
    packed = np.packbits(each, axis=-1, bitorder="little")
    return packed.reshape(packed.shape[:-1] + (-1,)).view(dtypes.physical(new))[..., 0]
