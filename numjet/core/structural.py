"""The few primitives that the transformations themselves bind.

Broadcast, transpose, conversion, sum (the transpose of broadcast), zeros and the sum of cotangents.
All other primitives live in `ops`. Functions here take Arrays or tracers and accept no Python
sequences.
"""

from __future__ import annotations

import functools
import math
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.base import config
from numjet.base.errors import InconclusiveDimensionOperation
from numjet.core import dtypes, hooks
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.dims import DimExpr
from numjet.core.lowering import Expand, Pointwise, Reduce, elementwise_loops
from numjet.core.primitive import REGISTRY, Linear, Primitive, Zero
from numjet.core.typed_numbers import no_tangents


# ------------------------------------------------------------------ zeros and instantiation
def zeros(aval: ShapedArray) -> Any:
    """An array of zeros of `aval` (float0 for tangents of integers)."""
    if aval.dtype == dtypes.float0:
        return ArrayImpl(np.zeros(aval.shape, dtypes.float0), aval)
    out = full(aval.shape, 0, aval.dtype, aval.weak_type)
    return out if aval.placed is None else hooks.place_again(out, aval.placed)


def given_out(outs: list) -> list:
    """A function's results as its caller sees them: those of dtype float0, which are no values, are
    NumPy arrays."""
    for x in outs:
        if isinstance(x, ArrayImpl) and not x._aval.dtype.itemsize:  # float0 alone has none
            break
    else:
        return outs
    return [
        no_tangents(x.shape) if isinstance(x, ArrayImpl) and x.dtype == dtypes.float0 else x
        for x in outs
    ]


def full(shape: tuple[int, ...], value: Any, dtype: Any, weak_type: bool = False) -> Any:
    """An array of `shape` filled with the Python scalar `value`."""
    if type(value) is DimExpr:
        one: Any = scalar(value, dtype)
        return broadcast_in_dim(one, shape, ()) if shape else one
    if type(dtype) is dtypes.KeyDType:
        words = np.full(dtype.storage.itemsize // 4, value, np.uint32)
        value = words.view(dtype.storage).reshape(())
    elif dtype in dtypes.NARROW_FLOATS:
        value = float(value)  # of an integer 0 NumPy makes the least exponent, not NaN
    one = ArrayImpl(np.asarray(value, dtypes.physical(dtype)), ShapedArray((), dtype, weak_type))
    return broadcast_in_dim(one, shape, ()) if shape else one


def placed_like(x: Any, aval: ShapedArray) -> Any:
    """An array over the Explicit axes of a mesh that an aval is placed over."""
    if x.aval.placed is aval.placed or x.aval.placed == aval.placed:
        return x
    if aval.placed is None:
        return hooks.place_again(x, x.aval.placed.of_entries((None,) * aval.ndim))
    return hooks.place_again(x, aval.placed)


def beside(out: Any, x: Any, whole: bool = True) -> Any:
    """What was computed on the host from a concrete array, where that lies: everywhere on its
    devices, or (not `whole`) cut as it is."""
    sharding: Any = x._sharding if isinstance(x, ArrayImpl) else None
    if sharding is None:
        return out
    if whole and hasattr(sharding, "of_entries"):
        typed = sharding.mesh.explicit_axes
        sharding = sharding.of_entries((None,) * out.ndim if typed else ())
    elif hasattr(sharding, "axis"):  # of pmap: it fits arrays of one rank
        return out
    return hooks.place_again(out, sharding)


def scalar(value: Any, dtype: Any) -> Any:
    """A constant without dimensions; integers out of range wrap around."""
    if type(value) is DimExpr:
        return convert(dim_as_value_p.bind(dim=value), dtype)
    return ArrayImpl(np.asarray(value).astype(dtype), ShapedArray((), dtype))


# Symbolic zeros without dimensions that were made arrays while `make_jaxpr` traces, by their ids:
# JAX hands those to the backward pass of a call as residuals, where other numbers are literals.
INSTANTIATED: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def instantiate(x: Any) -> Any:
    """`x`, with a symbolic zero made an array."""
    if type(x) is not Zero:
        return x
    made = zeros(x.aval)
    if type(made) is ArrayImpl and not made.aval.shape and config.jax_form():
        INSTANTIATED[id(made)] = made
    return made


hooks.install(Zero, {"instantiate": instantiate})


def linear_jvp(primitive_of: Callable[[], Primitive]) -> Callable:
    """The forward rule of a linear primitive of one operand: itself, applied to the tangent."""

    def jvp(primals: tuple, tangents: tuple, **params: Any) -> tuple:
        primitive, (tangent,) = primitive_of(), tangents
        out = primitive.bind(*primals, **params)
        if type(tangent) is Zero or tangent.aval.dtype == dtypes.float0:
            return out, Zero(primitive.out_avals((tangent.aval,), params))
        return out, primitive.bind(tangent, **params)

    return jvp


# ------------------------------------------------------------------ broadcast_in_dim
def _broadcast_abstract(
    x: ShapedArray, *, shape: tuple, broadcast_dimensions: tuple
) -> ShapedArray:
    if len(broadcast_dimensions) != x.ndim:
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must have length equal to operand ndim; got "
            f"broadcast_dimensions {broadcast_dimensions} for operand ndim {x.ndim}."
        )
    if len(shape) < x.ndim:
        raise TypeError(
            "broadcast_in_dim target broadcast shape must have equal or higher rank to the operand "
            f"shape; got {shape} for {x.shape}."
        )
    if any(not 0 <= dim < len(shape) for dim in broadcast_dimensions):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must be a subset of output dimensions, got "
            f"{broadcast_dimensions} for operand ndim {x.ndim} and shape {shape}."
        )
    if list(broadcast_dimensions) != sorted(set(broadcast_dimensions)):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must be strictly increasing and must not "
            f"contain duplicates; got {broadcast_dimensions}."
        )
    for axis, dim in enumerate(broadcast_dimensions):
        if x.shape[axis] not in (1, shape[dim]):
            raise TypeError(
                "broadcast_in_dim operand dimension sizes must either be 1, or be equal to their "
                "corresponding dimensions in the target broadcast shape; got operand of shape "
                f"{x.shape}, target broadcast shape {shape}, broadcast_dimensions "
                f"{tuple(broadcast_dimensions)}: axis {axis} cannot become axis {dim}."
            )
    return ShapedArray(shape, x.dtype, x.weak_type)


def _broadcast_reference(x: np.ndarray, *, shape: tuple, broadcast_dimensions: tuple) -> np.ndarray:
    if broadcast_dimensions:
        expanded = [1] * len(shape)
        for axis, dim in enumerate(broadcast_dimensions):
            expanded[dim] = x.shape[axis]
        x = x.reshape(expanded)
    if math.prod(shape) > _DENSE:
        return np.broadcast_to(x, shape)
    out = np.empty(shape, x.dtype)
    out[...] = x
    return out


# Up to so many elements a copy takes less time than NumPy's broadcast_to, and so do its readers.
_DENSE = 1024


def _broadcast_loops(
    e: Any, index: list, x: Any, *, shape: tuple, broadcast_dimensions: tuple
) -> Any:
    return x(
        *[
            index[dim] if x.shape[axis] != 1 or shape[dim] == 1 else e.index_const(0)
            for axis, dim in enumerate(broadcast_dimensions)
        ]
    )


def _broadcast_transpose(ct: Any, x: Any, *, shape: tuple, broadcast_dimensions: tuple) -> list:
    if type(x) is not Linear:
        return [None]
    aval = x.aval
    stretched = aval.ndim == len(shape)
    ones_too = stretched or not config.jax_form()  # JAX sums axes of size 1 and adds them again
    kept = [
        dim
        for axis, dim in enumerate(broadcast_dimensions)
        if aval.shape[axis] == shape[dim] and (ones_too or shape[dim] != 1)
    ]
    ct = reduce_sum(ct, tuple(d for d in range(len(shape)) if d not in kept))
    if type(broadcast_dimensions) is TangentAxes and ct.aval.ndim not in (0, aval.ndim):
        return [REGISTRY["reshape"].bind(ct, new_sizes=aval.shape, dimensions=None)]
    axes = tuple(axis for axis, dim in enumerate(broadcast_dimensions) if dim in kept)
    return [broadcast_in_dim(ct, aval.shape, axes) if ct.aval.ndim != aval.ndim else ct]


def _broadcast_batch(
    axis: Any, args: tuple, dims: tuple, *, shape: tuple, broadcast_dimensions: tuple
) -> tuple:
    x = moveaxis(args[0], dims[0], 0)
    dims_after = numpy_axes(tuple([d + 1 for d in broadcast_dimensions]))
    out = broadcast_in_dim(x, (x.shape[0], *shape), (0, *dims_after))
    return out, 0


broadcast_in_dim_p = Primitive(
    "broadcast_in_dim",
    linear=True,
    abstract=_broadcast_abstract,
    reference=_broadcast_reference,
    jvp=linear_jvp(lambda: broadcast_in_dim_p),
    transpose=_broadcast_transpose,
    batch=_broadcast_batch,
    loops=Pointwise(_broadcast_loops),
)


def broadcast_in_dim(x: Any, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]) -> Any:
    """`x` with axis i becoming axis `broadcast_dimensions[i]` of an array of `shape`; the rest
    repeats."""
    if x.shape == shape and len(broadcast_dimensions) == len(shape):
        return x
    return broadcast_in_dim_p.bind(
        x, shape=tuple(shape), broadcast_dimensions=tuple(broadcast_dimensions)
    )


# ------------------------------------------------------------------ transpose
def _transpose_abstract(x: ShapedArray, *, permutation: tuple) -> ShapedArray:
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError(
            "transpose permutation isn't a permutation of operand dimensions, got permutation "
            f"{permutation} for {x.str_short()}: it must name each of its {x.ndim} axes once."
        )
    return ShapedArray(tuple([x.shape[i] for i in permutation]), x.dtype, x.weak_type)


def _inverse(permutation: tuple) -> tuple:
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def _transpose_loops(e: Any, index: list, x: Any, *, permutation: tuple) -> Any:
    return x(*[index[i] for i in _inverse(permutation)])


def _transpose_batch(axis: Any, args: tuple, dims: tuple, *, permutation: tuple) -> tuple:
    (x,), (dim,) = args, dims
    rest = [i + (i >= dim) for i in permutation]
    return transpose(x, (dim, *rest)), 0


transpose_p = Primitive(
    "transpose",
    linear=True,
    abstract=_transpose_abstract,
    reference=lambda x, *, permutation: x.transpose(permutation),
    jvp=linear_jvp(lambda: transpose_p),
    transpose=lambda ct, x, *, permutation: [transpose(ct, _inverse(permutation))],
    batch=_transpose_batch,
    loops=Pointwise(_transpose_loops),
)


def transpose(x: Any, permutation: tuple[int, ...]) -> Any:
    """Permute axes: output axis i is input axis `permutation[i]`."""
    permutation = tuple(permutation)
    if permutation == tuple(range(len(permutation))) and len(permutation) == x.ndim:
        return x
    return transpose_p.bind(x, permutation=permutation)


def moveaxis(x: Any, source: int, destination: int) -> Any:
    """Move one axis; both counted from the front."""
    if source == destination:
        return x
    order = [i for i in range(x.ndim) if i != source]
    order.insert(destination, source)
    return transpose(x, tuple(order))


# ------------------------------------------------------------------ conversion
def _convert_abstract(x: ShapedArray, *, new_dtype: Any, weak_type: bool) -> ShapedArray:
    if type(x.dtype) is dtypes.KeyDType and new_dtype != x.dtype:
        raise ValueError(
            f"convert_element_type: PRNG keys cannot become {new_dtype}. Take random.key_data(key)."
        )
    return ShapedArray(x.shape, new_dtype, weak_type)


def _convert_reference(x: np.ndarray, *, new_dtype: Any, weak_type: bool) -> np.ndarray:
    new_dtype = dtypes.physical(new_dtype)
    if new_dtype in dtypes._INTEGER and dtypes.is_inexact(x.dtype):
        return to_integer(x, new_dtype)
    if x.dtype.kind == "c" and not dtypes.is_complex(new_dtype):
        x = x.real
        if new_dtype == dtypes.bool_:
            return x.astype(bool)
    return x.astype(new_dtype)


@functools.cache
def _bounds(dtype: np.dtype) -> tuple[float, float, int]:
    """The least and the largest integer, as floats not beyond them, and the bits."""
    info = dtypes.iinfo(dtype)
    high = float(info.max)
    return float(info.min), float(np.nextafter(high, 0)) if info.bits == 64 else high, info.bits


def to_integer(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Float to integer: truncates, saturates, NaN gives 0."""
    if x.dtype.kind == "c":
        x = x.real
    low, high, bits = _bounds(dtype)
    if x.dtype != np.float32 or bits > 16:  # whose largest integers single precision has
        x = x.astype(np.float64)
    inside = np.minimum(np.maximum(x, low), high)
    out = np.where(np.isnan(x), 0.0, inside).astype(dtype)
    if bits < 64:
        return out
    return np.where(x > high, np.asarray(dtypes.iinfo(dtype).max, dtype), out)


def _convert_loops(e: Any, x: Any, *, new_dtype: Any, weak_type: bool) -> Any:
    if new_dtype == dtypes.bool_ and dtypes.is_complex(x.dtype):
        x = e.real(x)  # as in the reference, the real part tells
    return e.cast(x, dtypes.physical(new_dtype))


def _convert_jvp(primals: tuple, tangents: tuple, **params: Any) -> tuple:
    out = convert_element_type_p.bind(*primals, **params)
    tangent = tangents[0]
    if type(tangent) is Zero or not dtypes.is_inexact(params["new_dtype"]):
        return out, Zero(out.aval.tangent())
    return out, convert_element_type_p.bind(tangent, **params)


def _convert_transpose(ct: Any, x: Any, *, new_dtype: Any, weak_type: bool) -> list:
    aval = x.aval
    if dtypes.is_complex(ct.aval.dtype) and not dtypes.is_complex(aval.dtype):
        ct = convert(ct, dtypes.real_of(ct.aval.dtype))
    if type(ct) is ArrayImpl and not ct.aval.shape and (
        ct.aval.dtype == aval.dtype or config.jax_form()
    ):
        told = ct.aval.update(dtype=aval.dtype, weak_type=aval.weak_type)
        return [ArrayImpl(ct._value.astype(aval.dtype, copy=False), told)]  # no equation
    return [convert(ct, aval.dtype, aval.weak_type)]


convert_element_type_p = Primitive(
    "convert_element_type",
    linear=True,
    elementwise=True,
    abstract=_convert_abstract,
    reference=_convert_reference,
    jvp=_convert_jvp,
    transpose=_convert_transpose,
    batch=lambda axis, args, dims, **p: (convert_element_type_p.bind(*args, **p), dims[0]),
    loops=elementwise_loops(_convert_loops),
)


def warn_of_lost_part(old: Any, new: Any) -> None:
    """Warn, as NumPy does, where numbers of the dtype `old` lose their imaginary part in `new`."""
    if dtypes.is_complex(old) and not dtypes.is_complex(new):
        warnings.warn(
            "Casting complex values to real discards the imaginary part",
            np.exceptions.ComplexWarning,
            stacklevel=3,
        )


def may_equal(count: Any, other: Any) -> bool:
    """Whether two numbers of elements are equal, or of dimension variables, for some of their
    values: for others calls are refused."""
    more = count - other
    if type(more) is not DimExpr:
        return bool(more == 0)
    for positive in (more, -more):
        try:
            if positive >= 1:
                return False
        except InconclusiveDimensionOperation:
            pass
    return True


def convert(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    """`x` as `dtype` (canonical already); nothing happens when it has it."""
    aval = x.aval
    if aval.dtype == dtype and aval.weak_type == weak_type:
        return x
    if aval.weak_type and type(x) is ArrayImpl and not aval.shape and config.jax_form():
        # A number, which JAX does not convert by an equation.
        return ArrayImpl(x._value.astype(dtype), ShapedArray((), dtype, weak_type))
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak_type)


# ------------------------------------------------------------------ reduce_sum
def reduced_shape(name: str, x: ShapedArray, axes: tuple) -> tuple[int, ...]:
    """`x.shape` without `axes`, which must be distinct and in range."""
    if len(set(axes)) != len(axes) or any(not 0 <= a < x.ndim for a in axes):
        if any(not 0 <= a < x.ndim for a in axes):
            raise ValueError(
                f"reduction axes {axes} contains out-of-bounds indices for {x.str_short()} "
                f"({name})."
            )
        raise ValueError(f"duplicate value in 'axes' of reduction: {axes} ({name}).")
    return tuple([n for i, n in enumerate(x.shape) if i not in axes])


def numpy_axes(axes: tuple) -> tuple:
    """The axes; as NumPy's integers where JAX has these, which printed equations show."""
    return tuple(map(np.int64, axes)) if axes and config.jax_form() else axes


class TangentAxes(tuple):
    """The axes of a tangent that is repeated as its operand is: JAX sums its cotangent as that of
    an elementwise operation, which printed equations show. Equal to no other tuple."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is TangentAxes and tuple.__eq__(self, other)

    def __hash__(self) -> int:
        return hash(("tangent", *self))


class MappedAxes(tuple):
    """The axis of the examples in a reduction that was a collective, which printed equations tell.
    Equal to no other tuple, so that nothing remembers one for the other."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is MappedAxes and tuple.__eq__(self, other)

    def __hash__(self) -> int:
        return hash(("mapped", *self))


def batch_reduction(primitive_of: Callable[[], Primitive]) -> Callable:
    """The batch rule of a reduction with params["axes"]."""

    def rule(axis: Any, args: tuple, dims: tuple, *, axes: tuple, **params: Any) -> tuple:
        (x,), (dim,) = args, dims
        shifted = tuple([a + (a >= dim) for a in axes])
        out = primitive_of().bind(x, axes=numpy_axes(shifted), **params)
        return out, dim - sum(a < dim for a in shifted)

    return rule


def _sum_reference(x: np.ndarray, *, axes: tuple) -> np.ndarray:
    dtype = x.dtype
    if dtype.itemsize == 2 and dtypes.is_floating(dtype):
        return np.add.reduce(x, axis=axes, dtype=np.float32).astype(dtype)
    return np.add.reduce(x, axes, dtype)


def _sum_transpose(ct: Any, x: Any, *, axes: tuple) -> list:
    kept = tuple([i for i in range(x.aval.ndim) if i not in axes])
    return [broadcast_in_dim(ct, x.aval.shape, numpy_axes(kept))]


def _sum_abstract(x: ShapedArray, *, axes: tuple) -> ShapedArray:
    if dtypes.is_key(x.dtype):
        raise TypeError("reduce_sum does not accept PRNG keys. Take random.key_data(key).")
    return ShapedArray(reduced_shape("reduce_sum", x, axes), x.dtype, x.weak_type)


reduce_sum_p = Primitive(
    "reduce_sum",
    linear=True,
    abstract=_sum_abstract,
    reference=_sum_reference,
    jvp=linear_jvp(lambda: reduce_sum_p),
    transpose=_sum_transpose,
    batch=batch_reduction(lambda: reduce_sum_p),
    loops=Reduce("add"),
)


def reduce_sum(x: Any, axes: tuple[int, ...]) -> Any:
    """Sum over `axes`; the dtype stays."""
    return reduce_sum_p.bind(x, axes=tuple(axes)) if axes else x


# ------------------------------------------------------------------ add_any
def _add_any_batch(axis: Any, args: tuple, dims: tuple) -> tuple:
    x, y = args
    dx, dy = dims
    if dx is None or dy is None:
        size = axis.size
        x, y = (
            broadcast_batch(a, size) if d is None else moveaxis(a, d, 0)
            for a, d in zip(args, dims, strict=True)
        )
        return add_any(x, y), 0
    return add_any(x, moveaxis(y, dy, dx)), dx


def broadcast_batch(x: Any, size: int) -> Any:
    """`x` repeated along a new leading axis."""
    return broadcast_in_dim(x, (size, *x.shape), numpy_axes(tuple(range(1, x.ndim + 1))))


def _add_any_jvp(primals: tuple, tangents: tuple) -> tuple:
    return add_any_p.bind(*primals), add_tangents(*tangents)


add_any_p = Primitive(
    "add_any",
    linear=True,
    elementwise=True,
    abstract=lambda x, y: (
        x if x is y else ShapedArray(x.shape, x.dtype, x.weak_type and y.weak_type)
    ),
    reference=lambda x, y: np.add(x, y),
    jvp=_add_any_jvp,
    transpose=lambda ct, x, y: [ct, ct],
    batch=_add_any_batch,
    loops=elementwise_loops(lambda e, x, y: e.add(x, y)),
)


def add_any(x: Any, y: Any) -> Any:
    """The sum of two cotangents (or tangents) of the same aval."""
    return add_any_p.bind(x, y)


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents, either of which may be a symbolic zero."""
    if type(x) is Zero:
        return y
    if type(y) is Zero:
        return x
    if x.aval.dtype == dtypes.float0:
        return x
    return add_any(x, y)


# ------------------------------------------------------------------ dim_as_value
def _no_value(*, dim: DimExpr) -> Any:
    raise NotImplementedError(
        f"The value of the symbolic dimension '{dim}' is known when an exported program is called. "
        "Use it in a function that `export` stages, and call the Exported."
    )


dim_as_value_p = Primitive(
    "dim_as_value",
    differentiable=False,
    abstract=lambda *, dim: ShapedArray((), dtypes.canonical(dtypes.int64), True),
    reference=_no_value,
    batch=lambda axis, args, dims, *, dim: (dim_as_value_p.bind(dim=dim), None),
    loops=Expand(_no_value),
)
hooks.install(DimExpr, {"__jax_array__": lambda self: dim_as_value_p.bind(dim=self)})
