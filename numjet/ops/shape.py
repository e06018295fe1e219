"""Primitives that move elements without computing: reshape, squeeze, rev, concatenate, pad,
select_n, iota and copy.

For `lax` and all that is made of primitives; transposition and broadcasting, which transformations
bind themselves, stand in `core.structural`. Elements stay what they were, bit for bit.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.base import config
from numjet.core import dtypes, hooks, structural
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.dims import index_of, largest, size_of
from numjet.core.lowering import Pointwise, elementwise_loops
from numjet.core.primitive import REGISTRY, Linear, Primitive, Zero
from numjet.core.structural import (
    instantiate,
    linear_jvp,
    may_equal,
    moveaxis,
    numpy_axes,
    reduce_sum,
    zeros,
)
from numjet.ops.complex_ops import neg
from numjet.ops.families import NUMERIC, align_batched, refusal
from numjet.transforms.batch import all_to_front, to_front


def canonical_shape(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of Python integers. Raises TypeError for traced or fractional sizes."""
    if isinstance(shape, int | np.integer):
        shape = (shape,)
    try:
        return tuple([size_of(n) for n in shape])
    except TypeError as error:
        if getattr(error, "final", False) or "Shapes must be" in str(error):
            raise
        raise TypeError(
            "Shapes must be 1D sequences of concrete values of integer type, got "
            f"{shape!r}. {error}"
        ) from None


def sizes_of(name: str, shape: Any) -> tuple[int, ...]:
    """The shape of something new. Raises TypeError also for negative sizes."""
    sizes = canonical_shape(shape)
    if any(n < 0 for n in sizes):
        raise TypeError(f"{name} shape must have every element be nonnegative, got {sizes}.")
    return sizes


def canonical_axis(axis: int, ndim: int, error: type[Exception] = ValueError) -> int:
    """A non-negative axis. Raises `error` when it is out of range."""
    axis = index_of(axis)
    if not -ndim <= axis < ndim:
        raise error(f"axis {axis} is out of bounds for array of dimension {ndim}.")
    return axis % ndim


# ------------------------------------------------------------------ reshape
def _reshape_abstract(x: ShapedArray, *, new_sizes: tuple, dimensions: Any) -> ShapedArray:
    if any(n < 0 for n in new_sizes):
        raise TypeError(
            f"reshape new_sizes must all be positive, got {new_sizes} for {x.str_short()}. "
            "numjet.numpy.reshape finds one size that is -1."
        )
    if not may_equal(math.prod(new_sizes), x.size):
        raise ValueError(
            f"reshape: {x.str_short()} has {x.size} elements and cannot get shape {new_sizes} with "
            f"{math.prod(new_sizes)}. Sizes must multiply to the same number."
        )
    return ShapedArray(new_sizes, x.dtype, x.weak_type)


def _reshape_loops(e: Any, index: list, x: Any, *, new_sizes: tuple, dimensions: Any) -> Any:
    linear = e.index_const(0)
    for i, n in zip(index, new_sizes, strict=True):
        linear = linear * n + i
    out = []
    for n in reversed(x.shape):
        out.append(linear % n if n else linear)
        linear = linear // n if n else linear
    return x(*reversed(out))


def _reshape_batch(
    axis: Any, args: tuple, dims: tuple, *, new_sizes: tuple, dimensions: Any
) -> tuple:
    x = moveaxis(args[0], dims[0], 0)
    return reshape(x, (x.shape[0], *new_sizes)), 0


reshape_p = Primitive(
    "reshape",
    linear=True,
    abstract=_reshape_abstract,
    reference=lambda x, *, new_sizes, dimensions: np.reshape(x, new_sizes),
    jvp=linear_jvp(lambda: reshape_p),
    transpose=lambda ct, x, *, new_sizes, dimensions: [reshape(ct, x.aval.shape)],
    batch=_reshape_batch,
    loops=Pointwise(_reshape_loops),
)


def reshape(
    operand: Any, new_sizes: Any, dimensions: Any = None, *, out_sharding: Any = None
) -> Any:
    """operand with another shape of as many elements, in row-major order.

    operand: an array. new_sizes: a tuple of integers; -1 is not understood
    (TypeError). dimensions: a permutation of the axes that is applied first. out_sharding: the
    layout of the result. Raises ValueError where the number of elements differs. `numpy.reshape`
    takes -1.

    >>> from numjet import lax, numpy as jnp
    >>> lax.reshape(jnp.arange(4), (2, 2))
    Array([[0, 1],
           [2, 3]], dtype=int32)
    """
    if out_sharding is not None:
        made = functools.partial(reshape, operand, new_sizes, dimensions)
        return hooks.laid_out(made, out_sharding)
    x = as_array(operand)
    sizes = canonical_shape(new_sizes)
    if dimensions is not None and tuple(dimensions) != tuple(range(x.ndim)):
        x = structural.transpose(x, tuple(dimensions))
    if x.shape == sizes:
        return x
    return reshape_p.bind(x, new_sizes=sizes, dimensions=None)


# ------------------------------------------------------------------ squeeze and expand_dims
def _squeeze_abstract(x: ShapedArray, *, dimensions: tuple) -> ShapedArray:
    for d in dimensions:
        if x.shape[d] != 1:
            raise ValueError(
                "cannot select an axis to squeeze out which has size not equal to one, got "
                f"{x.str_short()} and dimensions={tuple(dimensions)}."
            )
    return ShapedArray(
        tuple([n for i, n in enumerate(x.shape) if i not in dimensions]), x.dtype, x.weak_type
    )


def _squeeze_loops(e: Any, index: list, x: Any, *, dimensions: tuple) -> Any:
    given = iter(index)
    return x(*[e.index_const(0) if d in dimensions else next(given) for d in range(len(x.shape))])


def _squeeze_batch(axis: Any, args: tuple, dims: tuple, *, dimensions: tuple) -> tuple:
    x = moveaxis(args[0], dims[0], 0)
    return squeeze_p.bind(x, dimensions=tuple([d + 1 for d in dimensions])), 0


squeeze_p = Primitive(
    "squeeze",
    linear=True,
    abstract=_squeeze_abstract,
    reference=lambda x, *, dimensions: np.squeeze(x, axis=dimensions),
    jvp=linear_jvp(lambda: squeeze_p),
    transpose=lambda ct, x, *, dimensions: [
        expand_dims(ct, dimensions) if config.jax_form() else reshape(ct, x.aval.shape)
    ],
    batch=_squeeze_batch,
    loops=Pointwise(_squeeze_loops),
)


def squeeze(array: Any, dimensions: Sequence[int]) -> Any:
    """array without some of its axes of size 1.

    array: an array. dimensions: the axes to drop. Result: the other axes in order, array's dtype.
    Derivative: the cotangent reshaped. Raises ValueError for an axis of another size and for one
    that is named twice; `numpy.squeeze` drops all of them where none is named.

    >>> from numjet import lax, numpy as jnp
    >>> lax.squeeze(jnp.zeros((1, 3, 1)), (0,)).shape
    (3, 1)
    """
    x = as_array(array)
    dims = tuple(sorted([canonical_axis(d, x.ndim) for d in dimensions]))
    if len(set(dims)) != len(dims):
        raise ValueError(f"squeeze: dimensions are not unique: {dims}. Name each axis once.")
    return squeeze_p.bind(x, dimensions=dims) if dims else x


def expand_dims(array: Any, dimensions: Sequence[int]) -> Any:
    """array with axes of size 1 inserted.

    array: an array. dimensions: where the new axes are in the result; negative ones count from its
    end. Raises ValueError for places out of range or named twice.

    >>> from numjet import lax, numpy as jnp
    >>> lax.expand_dims(jnp.array([1, 2]), (0, 2)).shape
    (1, 2, 1)
    """
    x = as_array(array)
    ndim = x.ndim + len(dimensions)
    new = {canonical_axis(d, ndim) for d in dimensions}
    if len(new) != len(dimensions):
        raise ValueError(f"repeated axis in lax.expand_dims: {tuple(dimensions)}.")
    given = iter(x.shape)
    shape = tuple([1 if i in new else next(given) for i in range(ndim)])
    return structural.broadcast_in_dim(x, shape, tuple([i for i in range(ndim) if i not in new]))


# ------------------------------------------------------------------ rev
def _rev_loops(e: Any, index: list, x: Any, *, dimensions: tuple) -> Any:
    return x(*[i * -1 + (x.shape[d] - 1) if d in dimensions else i for d, i in enumerate(index)])


def _rev_batch(axis: Any, args: tuple, dims: tuple, *, dimensions: tuple) -> tuple:
    dim = dims[0]
    return rev_p.bind(args[0], dimensions=tuple([d + (d >= dim) for d in dimensions])), dim


rev_p = Primitive(
    "rev",
    linear=True,
    abstract=lambda x, *, dimensions: x,
    reference=lambda x, *, dimensions: np.flip(x, dimensions),
    jvp=linear_jvp(lambda: rev_p),
    transpose=lambda ct, x, *, dimensions: [rev(ct, dimensions)],
    batch=_rev_batch,
    loops=Pointwise(_rev_loops),
)


def rev(operand: Any, dimensions: Sequence[int]) -> Any:
    """operand with its order reversed along some axes.

    operand: an array. dimensions: the axes, each once. Result: operand's shape and dtype. Its own
    transpose. Raises TypeError for an axis that is named twice or out of range.

    >>> from numjet import lax, numpy as jnp
    >>> lax.rev(jnp.array([1, 2, 3]), (0,))
    Array([3, 2, 1], dtype=int32)
    """
    x = as_array(operand)
    given = [index_of(d) for d in dimensions]
    if not all(0 <= d < x.ndim for d in given):
        wrong = next(d for d in given if not 0 <= d < x.ndim)
        raise TypeError(
            f"rev dimensions must all be less than operand ndim: axis {wrong} is out of range for "
            f"an array with {x.ndim} axes, which are counted from the front."
        )
    dims = tuple(sorted(set(given)))
    if len(dims) != len(given):
        raise TypeError(f"rev dimensions must be unique, got {tuple(given)}.")
    return rev_p.bind(x, dimensions=dims) if dims else x


# ------------------------------------------------------------------ concatenate
def _concatenate_abstract(*avals: ShapedArray, dimension: int) -> ShapedArray:
    first = avals[0]
    if not 0 <= dimension < first.ndim:
        raise TypeError(f"concatenate: axis {dimension} is out of range for {first.str_short()}.")
    for i, a in enumerate(avals):
        same = a.ndim == first.ndim and all(
            m == n
            for d, (m, n) in enumerate(zip(a.shape, first.shape, strict=True))
            if d != dimension
        )
        if not same:
            what = "different numbers of dimensions"
            if a.ndim == first.ndim:
                what = "shapes that differ in dimensions other than the one being concatenated"
            raise TypeError(
                f"Cannot concatenate arrays with {what}. concatenate: shapes must agree except on "
                f"axis {dimension}: operand 0 is {first.str_short()}, operand {i} is "
                f"{a.str_short()}."
            )
        if a.dtype != first.dtype:
            raise TypeError(
                f"lax.concatenate requires arguments to have the same dtypes, got "
                f"{first.str_short()} and {a.str_short()}. numjet.numpy.concatenate promotes."
            )
    total = sum(a.shape[dimension] for a in avals)
    return ShapedArray(
        (*first.shape[:dimension], total, *first.shape[dimension + 1 :]),
        first.dtype,
        all(a.weak_type for a in avals),
    )


def _concatenate_loops(e: Any, index: list, *readers: Any, dimension: int) -> Any:
    """A chain of choices; each operand is read inside its own range only."""
    at = index[dimension]
    parts, start = [], 0
    for x in readers:
        n = x.shape[dimension]
        if n:
            parts.append((start, n, x))
        start += n

    def read(start: int, n: int, x: Any) -> Any:
        place = e.index_clamp(at + (-start), 0, n - 1) if len(parts) > 1 else at
        return x(*index[:dimension], place, *index[dimension + 1 :])

    value = read(*parts[-1])
    for start, n, x in reversed(parts[:-1]):
        value = e.select(e.index_in_range(at, 0, start + n), read(start, n, x), value)
    return value


def _concatenate_jvp(primals: tuple, tangents: tuple, *, dimension: int) -> tuple:
    out = concatenate_p.bind(*primals, dimension=dimension)
    if all(type(t) is Zero for t in tangents):
        return out, Zero(out.aval.tangent())
    return out, concatenate_p.bind(*[instantiate(t) for t in tangents], dimension=dimension)


def _concatenate_transpose(ct: Any, *operands: Any, dimension: int) -> list:
    if config.jax_form():
        sizes = tuple([x.aval.shape[dimension] for x in operands])
        parts = REGISTRY["split"].bind(ct, sizes=sizes, axis=dimension)
        return [p if type(x) is Linear else None for x, p in zip(operands, parts, strict=True)]
    out, start = [], 0
    for x in operands:
        n = x.aval.shape[dimension]
        if type(x) is Linear:
            limits = list(ct.aval.shape)
            starts = [0] * len(limits)
            starts[dimension], limits[dimension] = start, start + n
            out.append(cut(ct, starts, limits))
        else:
            out.append(None)
        start += n
    return out


def cut(x: Any, starts: list, limits: list) -> Any:
    """A slice as padding with negative amounts, so that this file needs no other."""
    edges = [(-s, limit - n, 0) for s, limit, n in zip(starts, limits, x.aval.shape, strict=True)]
    return pad(x, zeros(ShapedArray((), x.aval.dtype, x.aval.weak_type)), edges)


def _concatenate_batch(axis: Any, args: tuple, dims: tuple, *, dimension: int) -> tuple:
    return concatenate_p.bind(*all_to_front(args, dims, axis.size), dimension=dimension + 1), 0


concatenate_p = Primitive(
    "concatenate",
    linear=True,
    abstract=_concatenate_abstract,
    reference=lambda *xs, dimension: np.concatenate(xs, axis=dimension),
    jvp=_concatenate_jvp,
    transpose=_concatenate_transpose,
    batch=_concatenate_batch,
    loops=Pointwise(_concatenate_loops),
)


def concatenate(operands: Sequence[Any], dimension: int) -> Any:
    """Arrays joined along an axis.

    operands: at least one array, of one dtype, equal in all other sizes. dimension: the axis.
    Derivative: each operand gets its slice of the cotangent. Raises TypeError for dtypes or sizes
    that differ and for an axis that is not there, ValueError for no operand; `numpy.concatenate`
    promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.concatenate([jnp.array([1, 2]), jnp.array([3])], 0)
    Array([1, 2, 3], dtype=int32)
    """
    xs = [as_array(x) for x in operands]
    if not xs:
        raise ValueError("concatenate requires a non-empty sequence of arrays.")
    ndim, axis = xs[0].ndim, index_of(dimension)
    if not 0 <= axis < ndim:
        raise TypeError(
            f"concatenate dimension out of bounds: dimension {axis} for shapes "
            f"{', '.join([str(x.shape) for x in xs])}."
        )
    return concatenate_p.bind(*xs, dimension=axis) if len(xs) > 1 else xs[0]


# ------------------------------------------------------------------ pad
def _padded_size(n: int, low: int, high: int, interior: int) -> int:
    return n + low + high + (largest(0, n - 1) * interior if interior else 0)


def _pad_abstract(x: ShapedArray, value: ShapedArray, *, padding_config: tuple) -> ShapedArray:
    if value.shape or value.dtype != x.dtype:
        raise TypeError(
            "pad operand and padding_value must be same dtype, and the value without dimensions: "
            f"got {x.str_short()} and {value.str_short()}."
        )
    if len(padding_config) != x.ndim:
        raise ValueError(
            "length of padding_config must equal the number of axes of operand, got "
            f"padding_config {padding_config} for {x.str_short()}: give (low, high, interior) for "
            "each axis."
        )
    if any(i < 0 for _, _, i in padding_config):
        raise ValueError(
            "interior padding in padding_config must be nonnegative, got "
            f"{padding_config}."
        )
    sizes = [_padded_size(n, *c) for n, c in zip(x.shape, padding_config, strict=True)]
    if any([n < 0 for n in sizes]):
        raise ValueError(
            f"pad: Dimension size after padding is not at least 0: {padding_config} of "
            f"{x.str_short()} leaves {tuple(sizes)}."
        )
    return ShapedArray(
        tuple(sizes),
        x.dtype,
        x.weak_type and value.weak_type,
    )


def padded(x: np.ndarray, value: Any, *, padding_config: Sequence) -> np.ndarray:
    """`pad` for NumPy arrays."""
    shape = [_padded_size(n, *c) for n, c in zip(x.shape, padding_config, strict=True)]
    out = np.full(shape, value, x.dtype)
    source, target = [], []
    for n, m, (low, _, interior) in zip(x.shape, shape, padding_config, strict=True):
        step = interior + 1
        first = (-low + step - 1) // step if low < 0 else 0
        last = min(n - 1, (m - 1 - low) // step) if n else -1
        count = max(0, last - first + 1)
        source.append(slice(first, first + count))
        begin = low + first * step
        target.append(slice(begin, begin + count * step, step) if count else slice(0, 0))
    out[tuple(target)] = x[tuple(source)]
    return out


def _pad_loops(e: Any, index: list, x: Any, value: Any, *, padding_config: tuple) -> Any:
    inside, place = None, []
    for i, n, amounts in zip(index, x.shape, padding_config, strict=True):
        low, high, interior = map(int, amounts)  # of NumPy's integers an index would be slow
        step = interior + 1
        if n == 0:
            return value()
        shifted = i + (-low)
        if low > 0 or high > 0 or (low < 0 and interior):
            ok = e.index_in_range(shifted, 0, (n - 1) * step + 1)
            inside = ok if inside is None else e.and_(inside, ok)
            shifted = e.index_clamp(shifted, 0, (n - 1) * step)
        if interior:
            on_grid = e.eq(e.index_value(shifted % step, dtypes.int32), e.const(0, dtypes.int32))
            inside = on_grid if inside is None else e.and_(inside, on_grid)
            shifted = shifted // step
        place.append(shifted)
    element = x(*place)
    return element if inside is None else e.select(inside, element, value())


def _pad_jvp(primals: tuple, tangents: tuple, *, padding_config: tuple) -> tuple:
    out = pad_p.bind(*primals, padding_config=padding_config)
    if all(type(t) is Zero for t in tangents):
        return out, Zero(out.aval.tangent())
    return out, pad_p.bind(*[instantiate(t) for t in tangents], padding_config=padding_config)


def _pad_transpose(ct: Any, x: Any, value: Any, *, padding_config: tuple) -> list:
    ct_x = ct_value = None
    if type(x) is Linear and config.jax_form():
        ct_x = _unpadded_in_jax(ct, x.aval.shape, padding_config)
    elif type(x) is Linear:
        # Take the outer padding off, then the interior one.
        trimmed = pad(
            ct,
            zeros(ShapedArray((), ct.aval.dtype)),
            [(-low, -high, 0) for low, high, _ in padding_config],
        )
        ct_x = strided(trimmed, tuple([i + 1 for _, _, i in padding_config]))
    if type(value) is Linear:
        total = reduce_sum(ct, tuple(range(ct.aval.ndim)))
        mine = ct_x
        if mine is None:
            mine = _pad_transpose(ct, Linear(x.aval), value.aval, padding_config=padding_config)[0]
        ct_value = structural.add_any(total, neg(reduce_sum(mine, tuple(range(mine.aval.ndim)))))
    return [ct_x, ct_value]


def _unpadded_in_jax(ct: Any, shape: tuple[int, ...], padding_config: tuple) -> Any:
    """The same in JAX's two operations, which `make_jaxpr` shows."""
    config_ = tuple([numpy_axes((-low, -high, 0)) for low, high, _ in padding_config])
    zero = zeros(ShapedArray((), ct.aval.dtype))
    trimmed = REGISTRY["pad"].bind(ct, zero, padding_config=config_)
    return REGISTRY["slice"].bind(
        trimmed, start_indices=numpy_axes((0,) * len(shape)), limit_indices=trimmed.aval.shape,
        strides=numpy_axes(tuple([i + 1 for _, _, i in padding_config])),
    )  # fmt: skip


def strided(x: Any, strides: tuple[int, ...]) -> Any:
    """Every `strides[i]`-th element along axis i, from the first."""
    for axis, step in enumerate(strides):
        n = x.aval.shape[axis]
        if step == 1 or n == 0:
            continue
        count = -(-n // step)
        x = pad(
            x,
            zeros(ShapedArray((), x.aval.dtype)),
            [(0, count * step - n, 0) if a == axis else (0, 0, 0) for a in range(x.aval.ndim)],
        )
        shape = x.aval.shape
        x = reshape(x, (*shape[:axis], count, step, *shape[axis + 1 :]))
        keep = [(0, 0, 0)] * x.aval.ndim
        keep[axis + 1] = (0, 1 - step, 0)
        x = squeeze(pad(x, zeros(ShapedArray((), x.aval.dtype)), keep), (axis + 1,))
    return x


def _pad_batch(axis: Any, args: tuple, dims: tuple, *, padding_config: tuple) -> tuple:
    (x, value), (dx, dv) = args, dims
    config = tuple(padding_config)
    if dv is None:
        return pad_p.bind(x, value, padding_config=(*config[:dx], (0, 0, 0), *config[dx:])), dx
    x = to_front(x, dx, axis.size)
    inside = structural.broadcast_in_dim(as_array(True), x.shape, ())
    zero = zeros(ShapedArray((), x.aval.dtype))
    padded = pad(x, zero, [(0, 0, 0), *config])
    mask = pad(inside, as_array(False), [(0, 0, 0), *config])
    filling = structural.broadcast_in_dim(value, padded.shape, (0,))
    return select_n(mask, filling, padded), 0


pad_p = Primitive(
    "pad",
    linear=True,
    abstract=_pad_abstract,
    reference=padded,
    jvp=_pad_jvp,
    transpose=_pad_transpose,
    batch=_pad_batch,
    loops=Pointwise(_pad_loops),
)


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    """operand with elements added at both ends of each axis and between its elements.

    operand: an array. padding_value: what is added, of operand's dtype, without dimensions.
    padding_config: (low, high, interior) for each axis; negative low and high cut off. Result:
    operand's dtype. Linear in operand and value. Raises TypeError or ValueError for a configuration
    that does not fit.

    >>> from numjet import lax, numpy as jnp
    >>> lax.pad(jnp.array([1, 2]), 0, [(1, 2, 1)])
    Array([0, 1, 0, 2, 0, 0], dtype=int32)
    """
    x, value = as_array(operand), as_array(padding_value)
    if value.ndim:
        raise ValueError(f"pad: padding_value must be a scalar, got {value.aval.str_short()}.")
    config = tuple(
        [(size_of(a), size_of(b), size_of(c)) for a, b, c in padding_config]
    )
    if all(c == (0, 0, 0) for c in config) and len(config) == x.ndim:
        _pad_abstract(x.aval, value.aval, padding_config=config)
        return x
    return pad_p.bind(x, value, padding_config=config)


# ------------------------------------------------------------------ select_n
def _select_abstract(which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
    if not cases:
        raise ValueError("select_n() must have at least one case.")
    first = cases[0]
    if not (dtypes.is_bool(which.dtype) or which.dtype == dtypes.int32):
        raise TypeError(
            "select `which` must be boolean or integer type (int32), got "
            f"{which.str_short()}."
        )
    if dtypes.is_bool(which.dtype) and len(cases) > 2:
        raise TypeError(
            f"select with boolean `which` cannot have > 2 cases, got {len(cases)}."
        )
    for c in cases[1:]:
        if c.shape != first.shape or c.dtype != first.dtype:
            what = "shapes" if c.shape != first.shape else "dtypes"
            raise TypeError(
                f"select cases must have the same {what}"
                f", got {first.str_short()} and {c.str_short()}. jnp.where broadcasts and promotes."
            )
    if which.shape and which.shape != first.shape:
        raise TypeError(
            "select `which` must be scalar or have the same shape as cases, got "
            f"{which.str_short()} for {first.str_short()}."
        )
    return ShapedArray(first.shape, first.dtype, all(c.weak_type for c in cases))


def _select_reference(which: np.ndarray, *cases: np.ndarray) -> np.ndarray:
    if len(cases) == 1:
        return cases[0]
    if which.dtype == np.bool_:
        return np.where(which, cases[1], cases[0])
    out = cases[0]
    for i, c in enumerate(cases[1:], 1):
        out = np.where(which >= i, c, out)
    return out


def _select_loops(e: Any, which: Any, *cases: Any) -> Any:
    out = cases[0]
    if len(cases) == 2 and which.dtype == dtypes.bool_:
        return e.select(which, cases[1], cases[0])
    for i, c in enumerate(cases[1:], 1):
        out = e.select(e.ge(which, e.const(i, dtypes.int32)), c, out)
    return out


def _select_jvp(primals: tuple, tangents: tuple) -> tuple:
    out = select_n_p.bind(*primals)
    if all(type(t) is Zero for t in tangents[1:]):
        return out, Zero(out.aval.tangent())
    return out, select_n_p.bind(primals[0], *[instantiate(t) for t in tangents[1:]])


def _select_transpose(ct: Any, which: Any, *cases: Any) -> list:
    nothing = zeros(ct.aval)
    return [
        None,
        *[
            select_n(which, *[ct if j == i else nothing for j in range(len(cases))])
            if type(c) is Linear
            else None
            for i, c in enumerate(cases)
        ],
    ]


def _select_batch(axis: Any, args: tuple, dims: tuple) -> tuple:
    which, cases = args[0], args[1:]
    if dims[0] is None and which.ndim == 0:
        return select_n_p.bind(which, *all_to_front(cases, dims[1:], axis.size)), 0
    if (
        dims[0] is not None
        and which.ndim == 1
        and any(x.ndim - (d is not None) for x, d in zip(cases, dims[1:], strict=True))
    ):
        front = all_to_front(cases, dims[1:], axis.size)
        which = structural.broadcast_in_dim(which, front[0].shape, (0,))
        return select_n_p.bind(which, *front), 0
    aligned, dim = align_batched(axis, args, dims)
    shapes = {x.shape for x in aligned[1:]}
    if len(shapes) > 1 or (aligned[0].shape and aligned[0].shape not in shapes):
        aligned, dim = all_to_front(args, dims, axis.size), 0
    return select_n_p.bind(*aligned), dim


select_n_p = Primitive(
    "select_n",
    linear=True,
    elementwise=True,
    abstract=_select_abstract,
    reference=_select_reference,
    jvp=_select_jvp,
    transpose=_select_transpose,
    batch=_select_batch,
    loops=elementwise_loops(_select_loops),
)


def select_n(which: Any, *cases: Any) -> Any:
    """cases[which], element by element.

    which: booleans (False takes the first of two cases) or int32 from 0 on, of the cases' shape or
    without axes. cases: arrays of one shape and dtype. Derivative: to the case that was taken.
    Raises TypeError for shapes or dtypes that differ.

    >>> from numjet import lax, numpy as jnp
    >>> lax.select_n(jnp.array([0, 2]), jnp.array([1, 2]), jnp.array([3, 4]), jnp.array([5, 6]))
    Array([1, 6], dtype=int32)
    """
    return select_n_p.bind(as_array(which), *[as_array(c) for c in cases])


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """on_true where pred holds, else on_false.

    pred: booleans of the cases' shape, or without axes. on_true, on_false: arrays of one shape and
    dtype. Derivative: to the case that was taken. Raises TypeError for shapes or dtypes that
    differ; `numpy.where` broadcasts and promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([3, 4]))
    Array([1, 4], dtype=int32)
    """
    return select_n(pred, on_false, on_true)


# ------------------------------------------------------------------ iota
def _iota_reference(*, dtype: Any, shape: tuple, dimension: int) -> np.ndarray:
    n = shape[dimension]
    line = (
        np.arange(n).astype(dtype).reshape([n if i == dimension else 1 for i in range(len(shape))])
    )
    return np.broadcast_to(line, shape)


iota_p = Primitive(
    "iota",
    differentiable=False,
    abstract=lambda *, dtype, shape, dimension: ShapedArray(shape, dtype),
    reference=_iota_reference,
    batch=lambda axis, args, dims, **p: (iota_p.bind(**p), None),
    loops=Pointwise(
        lambda e, index, *, dtype, shape, dimension: e.index_value(index[dimension], dtype)
    ),
)


def iota(dtype: Any, size: int) -> Any:
    """0, 1, ..., size - 1.

    dtype: a number type. size: an integer, not negative (TypeError). Result: [size].
    `numpy.arange` takes a start and a step.

    >>> from numjet import lax, numpy as jnp
    >>> lax.iota(jnp.float32, 3)
    Array([0., 1., 2.], dtype=float32)
    """
    return broadcasted_iota(dtypes.requested(dtype, "iota", 3), (size_of(size),), 0)


def broadcasted_iota(
    dtype: Any, shape: Sequence[int], dimension: int, *, out_sharding: Any = None
) -> Any:
    """An array whose elements are their index along `dimension`.

    dtype: a number type. shape: of the result. dimension: an axis. out_sharding: the layout of the
    result. Raises TypeError for other dtypes and negative sizes, ValueError for an axis out of
    range.

    >>> from numjet import lax, numpy as jnp
    >>> lax.broadcasted_iota(jnp.int32, (2, 3), 1)
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    if out_sharding is not None:
        made = functools.partial(broadcasted_iota, dtype, shape, dimension)
        return hooks.laid_out(made, out_sharding, None, True)
    shape, dimension = sizes_of("iota", shape), index_of(dimension)
    dtype = dtypes.requested(dtype, "iota", 3)
    dtypes.check_supported(dtype)
    if dtypes.is_bool(dtype):
        raise TypeError(refusal("iota", dtype, NUMERIC))
    if not 0 <= dimension < len(shape):
        raise ValueError(
            f"iota dimension must be between 0 and len(shape), got dimension={dimension} for "
            f"shape={shape}"
        )
    return iota_p.bind(dtype=dtype, shape=shape, dimension=dimension)


# ------------------------------------------------------------------ copies
copy_p = Primitive(
    "copy",
    linear=True,
    elementwise=True,
    abstract=lambda x: x,
    reference=lambda x: x.copy(),
    jvp=linear_jvp(lambda: copy_p),
    transpose=lambda ct, x: [ct],
    batch=lambda axis, args, dims: (copy_p.bind(*args), dims[0]),
    loops=elementwise_loops(lambda e, x: x),
)


def copy(x: Any) -> Any:
    """A fresh array with the same values."""
    return copy_p.bind(as_array(x))
