"""reduce_window: sums, maxima, minima and any other reduction over sliding windows (pooling).

The compiled form is a fold of strided slices of the padded operand, one for each window position,
which the compiler fuses into one loop; long windows are made of shorter ones (`window_folds`). The
derivative of maxima and minima gathers at the winning positions, whose transpose is the scatter-add
that backward pooling needs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.base import tree
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.dims import any_symbolic, index_of, largest
from numjet.core.lowering import Expand
from numjet.core.primitive import Primitive, Zero
from numjet.core.structural import broadcast_in_dim, convert, full, linear_jvp, moveaxis, zeros
from numjet.core.trace import concrete_or_none
from numjet.ops import arithmetic
from numjet.ops.conv_numbers import dilated, padtype_to_pads
from numjet.ops.gather import GatherDimensionNumbers, gather
from numjet.ops.logic import bitwise_and, bitwise_not, bitwise_or, eq, gt, lt, ne
from numjet.ops.reduce import extreme_of, monoid_of, reduce_max, reduce_min, sum_over
from numjet.ops.scatter import ScatterDimensionNumbers, scatter_add
from numjet.ops.shape import expand_dims, iota, pad, padded, reshape, select_n
from numjet.ops.slicing import slice as lax_slice
from numjet.ops.window_folds import LONGEST_UNROLLED, fold_windows

_WINDOW = ("window_dimensions", "window_strides", "window_dilation")
_COMBINE = {
    "add": (np.add, arithmetic.add, sum_over),
    "max": (np.maximum, arithmetic.max, reduce_max),
    "min": (np.minimum, arithmetic.min, reduce_min),
}


# ------------------------------------------------------------------ shapes and slices
def _out_shape(
    shape: tuple,
    *,
    window_dimensions: tuple,
    window_strides: tuple,
    padding: tuple,
    base_dilation: tuple,
    window_dilation: tuple,
) -> tuple:
    each = zip(
        shape, window_dimensions, window_strides, padding, base_dilation, window_dilation,
        strict=True,
    )  # fmt: skip
    out = []
    for n, window, stride, (low, high), base, gap in each:
        size = dilated(n, base) + low + high - dilated(window, gap)
        out.append(largest(size // stride + 1, 0))
    return tuple(out)


def _abstract_of(name: str) -> Callable:
    def abstract(x: ShapedArray, **params: Any) -> ShapedArray:
        for field, value in params.items():
            if len(value) != x.ndim:
                raise TypeError(
                    f"{name}: {field} {value} must have one entry for each axis of {x.str_short()}."
                )
            if field != "padding" and any(v < 1 for v in value):
                raise TypeError(
                    f"{name} {field} must have every element be strictly positive, got {value}."
                )
        return ShapedArray(_out_shape(x.shape, **params), x.dtype, x.weak_type)

    return abstract


def _slices(
    out_shape: tuple,
    *,
    window_dimensions: tuple,
    window_strides: tuple,
    window_dilation: tuple,
    **_: Any,
) -> list[tuple]:
    """For each window position the slice (starts, limits, strides) of a padded operand."""
    found = []
    for position in itertools.product(*[range(w) for w in window_dimensions]):
        # Where there is no window, the operand may end before a window's elements begin.
        starts = tuple(
            [
                p * g if n else 0
                for p, g, n in zip(position, window_dilation, out_shape, strict=True)
            ]
        )
        limits = tuple(
            [
                a + (n - 1) * s + 1 if n else 0
                for a, n, s in zip(starts, out_shape, window_strides, strict=True)
            ]
        )
        found.append((starts, limits, window_strides))
    return found


def _padding(*, padding: tuple, base_dilation: tuple, **_: Any) -> list[tuple]:
    """As `pad` takes it."""
    return [(low, high, b - 1) for (low, high), b in zip(padding, base_dilation, strict=True)]


def _parts(x: Any, value: Any, **params: Any) -> list[Any]:
    """The operand's elements at each window position, each of the output's shape."""
    whole = pad(x, value, _padding(**params))
    shape = _out_shape(x.aval.shape, **params)
    return [lax_slice(whole, *bounds) for bounds in _slices(shape, **params)]


def _neutral(op: str, dtype: Any) -> Any:
    return 0 if op == "add" else extreme_of(dtype, op == "max")


# ------------------------------------------------------------------ sum, max and min
def _reference_of(op: str) -> Callable:
    ufunc = _COMBINE[op][0]

    def reference(x: np.ndarray, **params: Any) -> np.ndarray:
        shape, dtype = _out_shape(x.shape, **params), x.dtype
        if op == "add" and dtype.itemsize <= 2 and dtypes.is_floating(dtype):
            x = x.astype(np.float32)
        whole = padded(x, _neutral(op, x.dtype), padding_config=_padding(**params))
        # Axis by axis: a window of w1 × w2 costs w1 + w2 passes.
        for axis, size in enumerate(shape):
            count, step, gap = (params[field][axis] for field in _WINDOW)
            start = [slice(None)] * x.ndim
            out: Any = None
            for k in range(count):
                start[axis] = (
                    slice(k * gap, k * gap + (size - 1) * step + 1, step) if size else slice(0, 0)
                )
                part = whole[tuple(start)]
                out = part.copy() if out is None else ufunc(out, part, out=out)
            whole = out
        return whole.astype(dtype, copy=False)

    return reference


def _expand_of(op: str) -> Callable:
    combine, total = _COMBINE[op][1:]

    def expand(x: Any, **params: Any) -> Any:
        ndim, kept = x.aval.ndim, x.aval.dtype
        if op == "add" and kept.itemsize <= 2 and dtypes.is_floating(kept):
            x = convert(x, dtypes.float32)
        dtype = x.aval.dtype
        nothing = full((), _neutral(op, dtype), dtype)
        whole = pad(x, nothing, _padding(**params))
        ones, none = (1,) * ndim, ((0, 0),) * ndim
        for axis in range(ndim):
            if params["window_dimensions"][axis] == 1 and params["window_strides"][axis] == 1:
                continue
            along = {k: (*ones[:axis], params[k][axis], *ones[axis + 1 :]) for k in _WINDOW}
            if _is_long(whole, axis, **params):
                (whole,) = fold_windows(
                    [whole],
                    lambda a, b: [combine(a[0], b[0])],
                    lambda x, axis: total(x, (axis,)),
                    axis,
                    **_sizes(axis, **params),
                )
                continue
            parts = _parts(whole, nothing, padding=none, base_dilation=ones, **along)
            # In a tree, so that long windows make no deep chain.
            while len(parts) > 1:
                parts = [
                    combine(*parts[i : i + 2]) if i + 1 < len(parts) else parts[i]
                    for i in range(0, len(parts), 2)
                ]
            whole = parts[0]
        return convert(whole, kept)

    return expand


def _sizes(axis: int, **params: Any) -> dict:
    """As `fold_windows` takes them."""
    fields = zip(("count", "step", "gap"), _WINDOW, strict=True)
    return {name: params[field][axis] for name, field in fields}


def _is_long(
    x: Any, axis: int, *, window_dimensions: tuple, window_dilation: tuple, **_: Any
) -> bool:
    """Whether the windows along an axis of the padded operand are long, and one fits."""
    count = window_dimensions[axis]
    return LONGEST_UNROLLED < count and x.aval.shape[axis] > (count - 1) * window_dilation[axis]


def _batch_of(primitive_of: Callable[[], Primitive]) -> Callable:
    def batch(axis: Any, args: tuple, dims: tuple, **params: Any) -> tuple:
        return primitive_of().bind(moveaxis(args[0], dims[0], 0), **_batched(params)), 0

    return batch


def _batched(params: dict) -> dict:
    front = {
        "window_dimensions": 1,
        "window_strides": 1,
        "padding": (0, 0),
        "base_dilation": 1,
        "window_dilation": 1,
    }
    return {k: (front[k], *v) if k in front else v for k, v in params.items()}


def _sum_transpose(
    ct: Any,
    x: Any,
    *,
    window_dimensions: tuple,
    window_strides: tuple,
    padding: tuple,
    base_dilation: tuple,
    window_dilation: tuple,
) -> list:
    """Element i gets every window that covers it: again sums over windows, of the cotangents."""
    pads = []
    for axis, n in enumerate(x.aval.shape):
        extent = dilated(window_dimensions[axis], window_dilation[axis])
        low = extent - 1 - padding[axis][0]
        covered = dilated(ct.aval.shape[axis], window_strides[axis])
        pads.append((low, dilated(n, base_dilation[axis]) - 1 + extent - covered - low))
    return [
        reduce_window_sum_p.bind(
            ct,
            window_dimensions=window_dimensions,
            window_strides=base_dilation,
            padding=tuple(pads),
            base_dilation=window_strides,
            window_dilation=window_dilation,
        )
    ]


def _extreme_jvp_of(primitive_of: Callable[[], Primitive], largest: bool) -> Callable:
    def jvp(primals: tuple, tangents: tuple, **params: Any) -> tuple:
        (x,) = primals
        out = primitive_of().bind(x, **params)
        if type(tangents[0]) is Zero:
            return out, Zero(out.aval.tangent())
        return out, _at_flat(tangents[0], window_winner_p.bind(x, largest=largest, **params))

    return jvp


reduce_window_sum_p = Primitive(
    "reduce_window_sum",
    linear=True,
    abstract=_abstract_of("reduce_window_sum"),
    reference=_reference_of("add"),
    jvp=linear_jvp(lambda: reduce_window_sum_p),
    transpose=_sum_transpose,
    batch=_batch_of(lambda: reduce_window_sum_p),
    loops=Expand(_expand_of("add")),
)
reduce_window_max_p = Primitive(
    "reduce_window_max",
    abstract=_abstract_of("reduce_window_max"),
    reference=_reference_of("max"),
    jvp=_extreme_jvp_of(lambda: reduce_window_max_p, True),
    batch=_batch_of(lambda: reduce_window_max_p),
    loops=Expand(_expand_of("max")),
)
reduce_window_min_p = Primitive(
    "reduce_window_min",
    abstract=_abstract_of("reduce_window_min"),
    reference=_reference_of("min"),
    jvp=_extreme_jvp_of(lambda: reduce_window_min_p, False),
    batch=_batch_of(lambda: reduce_window_min_p),
    loops=Expand(_expand_of("min")),
)


# ------------------------------------------------------------------ where the extreme is
def _winner_abstract(x: ShapedArray, *, largest: bool, **params: Any) -> ShapedArray:
    out = _abstract_of("window_winner")(x, **params)
    return ShapedArray(out.shape, dtypes.int32)


def _winner_reference(x: np.ndarray, *, largest: bool, **params: Any) -> np.ndarray:
    shape, config = _out_shape(x.shape, **params), _padding(**params)
    whole = padded(x, _neutral("max" if largest else "min", x.dtype), padding_config=config)
    place = np.arange(x.size, dtype=np.int32).reshape(x.shape)
    place = padded(place, -1, padding_config=config)
    best: Any = None
    winner: Any = None
    for starts, limits, steps in _slices(shape, **params):
        part = tuple([slice(*bounds) for bounds in zip(starts, limits, steps, strict=True)])
        value, position = whole[part], place[part]
        if best is None:
            best, winner = value.copy(), position.copy()
            continue
        better = (
            (value > best if largest else value < best)
            | (np.isnan(value) & ~np.isnan(best))
            | ((winner < 0) & (position >= 0))
        )
        best, winner = np.where(better, value, best), np.where(better, position, winner)
    return winner


def _better_of(largest: bool, floating: bool) -> Callable:
    """Of values and their places [value, place] the better ones; of equal ones the first, and the
    first NaN. Padding has places below 0."""

    def better_of(first: list, second: list) -> list:
        (best, winner), (value, position) = first, second
        better = gt(value, best) if largest else lt(value, best)
        if floating:
            better = bitwise_or(better, bitwise_and(ne(value, value), eq(best, best)))
        zero = np.int32(0)
        better = bitwise_or(better, bitwise_and(lt(winner, zero), bitwise_not(lt(position, zero))))
        return [select_n(better, best, value), select_n(better, winner, position)]

    return better_of


def _winner_expand(x: Any, *, largest: bool, **params: Any) -> Any:
    aval, shape = x.aval, _out_shape(x.aval.shape, **params)
    better_of = _better_of(largest, dtypes.is_floating(aval.dtype))
    nothing = full((), _neutral("max" if largest else "min", aval.dtype), aval.dtype)
    places, nowhere = reshape(iota(dtypes.int32, aval.size), aval.shape), full((), -1, dtypes.int32)
    if math.prod(params["window_dimensions"]) > LONGEST_UNROLLED and math.prod(shape):
        best = [pad(x, nothing, _padding(**params)), pad(places, nowhere, _padding(**params))]
        for axis in reversed(range(x.aval.ndim)):
            best = fold_windows(best, better_of, None, axis, **_sizes(axis, **params))
        return best[1]
    values, positions = _parts(x, nothing, **params), _parts(places, nowhere, **params)
    best = [values[0], positions[0]]
    for value, position in zip(values[1:], positions[1:], strict=True):
        best = better_of(best, [value, position])
    return best[1]


def _winner_batch(axis: Any, args: tuple, dims: tuple, *, largest: bool, **params: Any) -> tuple:
    x = moveaxis(args[0], dims[0], 0)
    winner = window_winner_p.bind(x, largest=largest, **_batched(params))
    # Positions within each element of the batch; -1 stays below 0.
    shift = arithmetic.mul(
        iota(dtypes.int32, axis.size), np.int32(x.aval.size // max(axis.size, 1))
    )
    shift = broadcast_in_dim(shift, winner.aval.shape, (0,))
    none = lt(winner, np.int32(0))
    return select_n(none, arithmetic.sub(winner, shift), winner), 0


window_winner_p = Primitive(
    "window_winner",
    differentiable=False,
    abstract=_winner_abstract,
    reference=_winner_reference,
    batch=_winner_batch,
    loops=Expand(_winner_expand),
)


def _at_flat(x: Any, position: Any) -> Any:
    """Elements of `x` at positions in its row-major order; 0 for negative ones."""
    if not x.aval.size:
        return full(position.aval.shape, 0, x.aval.dtype)
    flat = reshape(x, (x.aval.size,))
    return gather(
        flat,
        expand_dims(position, (position.aval.ndim,)),
        GatherDimensionNumbers((), (0,), (0,)),
        (1,),
        mode="fill",
        fill_value=0,
    )


def select_and_scatter_add(
    source: Any,
    operand: Any,
    largest: bool,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
) -> Any:
    """For each window of operand, source's element added where its largest (smallest) element is.

    source: an array of the windows' shape. operand: an array. largest: a boolean.
    window_dimensions, window_strides: integers for each axis. padding: (low, high) for each axis.
    Result: operand's shape, source's elements at the places chosen (the first of equal ones) and
    zeros elsewhere: the gradient of pooling by maxima. Raises TypeError for shapes that do not fit.
    source and operand promote.

    >>> from numjet import lax, numpy as jnp
    >>> x = jnp.array([1.0, 3.0, 2.0, 0.0])
    >>> lax.select_and_scatter_add(jnp.array([5.0, 6.0]), x, True, (2,), (2,), [(0, 0)])
    Array([0., 5., 6., 0.], dtype=float32)
    """
    source, operand = as_array(source), as_array(operand)
    ones = (1,) * operand.ndim
    winner = window_winner_p.bind(
        operand,
        largest=bool(largest),
        window_dimensions=tuple(window_dimensions),
        window_strides=tuple(window_strides),
        padding=tuple([tuple(p) for p in padding]),
        base_dilation=ones,
        window_dilation=ones,
    )
    flat = zeros(ShapedArray((operand.size,), source.dtype))
    out = scatter_add(
        flat, expand_dims(winner, (winner.ndim,)), source, ScatterDimensionNumbers((), (0,), (0,))
    )
    return reshape(out, operand.shape)


# ------------------------------------------------------------------ public functions
def _options(
    x: Any, window: Sequence[int], strides: Any, padding: Any, base: Any, gaps: Any
) -> dict:
    window = tuple([index_of(w) for w in window])
    ones = (1,) * x.ndim
    strides, base, gaps = (
        ones if v is None else tuple([int(i) for i in v]) for v in (strides, base, gaps)
    )
    if len(window) != x.ndim or len(base) != x.ndim:
        raise TypeError(
            "reduce_window got the wrong number of window_dimensions for operand: got operand "
            f"shape {x.shape} with window_dimensions {window}, base_dilation {base}."
        )
    if any(s < 1 for s in strides):
        raise TypeError(
            "reduce_window window_strides must have every element be strictly positive, got "
            f"{strides}."
        )
    if isinstance(padding, str) or hasattr(padding, "name"):
        padding = padtype_to_pads(
            x.shape,  # without the gaps of base_dilation, as in JAX
            [dilated(w, g) for w, g in zip(window, gaps, strict=True)],
            strides,
            padding,
        )
    if len(padding) != x.ndim:
        raise ValueError(f"reduce_window: padding {padding} needs a pair for each of {x.shape}.")
    return {
        "window_dimensions": window,
        "window_strides": strides,
        "base_dilation": base,
        "window_dilation": gaps,
        "padding": tuple([(index_of(low), index_of(high)) for low, high in padding]),
    }


_PRIMITIVES = {"add": reduce_window_sum_p, "max": reduce_window_max_p, "min": reduce_window_min_p}


def _start(value: Any, dtype: Any) -> Any:
    """What a window begins with as an array; infinities on purpose, which nothing made."""
    if type(value) is float and dtypes.is_floating(dtype):
        value = np.asarray(value, dtype)
    return convert(as_array(value), dtype)


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """`computation` folded over windows of an array.

    operand: an array, or a pytree of arrays of one shape. init_value: where folding begins, or a
    pytree of the same structure. computation: associative; add, max and min from their neutral
    values become window sums, maxima and minima. window_dimensions: the window's sizes, one for
    each axis. window_strides: its steps. padding: 'SAME', 'VALID' or (low, high) for each axis;
    padding takes no part. base_dilation, window_dilation: gaps between elements, and within the
    window. Sums, maxima and minima are differentiable. Raises TypeError or ValueError for sizes
    that do not fit.

    >>> from numjet import lax, numpy as jnp
    >>> lax.reduce_window(jnp.arange(6.0), 0.0, lax.add, (2,), (2,))
    Array([1., 5., 9.], dtype=float32)
    """
    leaves, treedef = tree.tree_flatten(operand)
    starts, start_tree = tree.tree_flatten(init_value)
    if treedef != start_tree or not leaves:
        raise ValueError(
            f"reduce_window: operand and init_value must have one structure, got {treedef} and "
            f"{start_tree}."
        )
    xs = [as_array(x) for x in leaves]
    inits = [_start(v, x.dtype) for v, x in zip(starts, xs, strict=True)]
    for v in inits:
        if v.ndim:
            raise TypeError(
                "reduce_window expected init_values to be scalars but init_values have shapes "
                f"{[v.shape for v in inits]}."
            )
    params = _options(
        xs[0], window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    if len(xs) == 1 and treedef == tree.tree_structure(0):
        name = monoid_of(computation, xs[0].dtype)
        known = concrete_or_none(starts[0])
        if (
            name in _PRIMITIVES
            and known is not None
            and known._value == _neutral(name, xs[0].dtype)
        ):
            return _PRIMITIVES[name].bind(xs[0], **params)
        if name in _PRIMITIVES and any_symbolic(params["window_dimensions"]):
            return computation(inits[0], _PRIMITIVES[name].bind(xs[0], **params))
    if any_symbolic(params["window_dimensions"]):
        raise NotImplementedError(
            "reduce_window: a window of symbolic size takes add, max and min of one array alone, "
            f"got the window {params['window_dimensions']}."
        )
    parts = [_parts(x, v, **params) for x, v in zip(xs, inits, strict=True)]
    shape = parts[0][0].aval.shape
    totals = [broadcast_in_dim(v, shape, ()) for v in inits]
    inside: Sequence[Any] = [None] * len(parts[0])
    if any(c != (0, 0, 0) for c in _padding(**params)):
        inside = _parts(
            full(xs[0].shape, True, dtypes.bool_), full((), False, dtypes.bool_), **params
        )
    for here, *several in zip(inside, *parts, strict=True):
        new = computation(
            tree.tree_unflatten(treedef, totals), tree.tree_unflatten(treedef, several)
        )
        if tree.tree_structure(new) != treedef:
            raise ValueError(
                "reduce_window output must have the same tree structure as the operands, got "
                f"{tree.tree_structure(new)} for {treedef}."
            )
        news = [as_array(v) for v in tree.tree_leaves(new)]
        totals = (
            news
            if here is None
            else [select_n(here, old, v) for old, v in zip(totals, news, strict=True)]
        )
    return tree.tree_unflatten(treedef, totals)


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """The shape of `reduce_window`'s result.

    operand_shape: a tuple. window_dimensions, window_strides, base_dilation, window_dilation:
    integers for each axis. padding: (low, high) for each axis.

    >>> from numjet import lax
    >>> lax.reduce_window_shape_tuple((6,), (2,), (2,), [(0, 0)])
    (3,)
    """
    ones = (1,) * len(tuple(operand_shape))
    return _out_shape(
        tuple(operand_shape),
        window_dimensions=tuple(window_dimensions),
        window_strides=tuple(window_strides),
        padding=tuple([tuple(p) for p in padding]),
        base_dilation=tuple(base_dilation or ones),
        window_dilation=tuple(window_dilation or ones),
    )
