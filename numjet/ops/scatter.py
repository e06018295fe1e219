"""scatter: updates of windows of an array at computed positions, the operation behind
x.at[indices].

set, add, sub, mul, min, max and apply. numjet.numpy's `.at` calls these. Duplicate positions:
updates are applied in the order of the indices, so with set the last one wins; derivatives rely on
that order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.lowering import Kernel
from numjet.core.primitive import Linear, Primitive, Zero
from numjet.core.structural import convert, full, instantiate, moveaxis, zeros
from numjet.ops.arithmetic import add, div, mul, neg
from numjet.ops.dimension_checks import scatter_numbers
from numjet.ops.gather import GatherDimensionNumbers, gather
from numjet.ops.indexing import (
    GatherScatterMode,
    ScatterDimensionNumbers,
    as_tuples,
    mapped,
    starts_of,
)
from numjet.ops.logic import bitwise_or, eq, lt, ne
from numjet.ops.reduce import reduce_max
from numjet.ops.shape import reshape, select_n
from numjet.ops.while_loop import while_loop
from numjet.transforms.batch import to_front


def window_sizes(
    operand: ShapedArray, updates_shape: tuple, numbers: ScatterDimensionNumbers
) -> tuple:
    """The window's size along each operand axis."""
    gone = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    window = iter([updates_shape[d] for d in sorted(numbers.update_window_dims)])
    return tuple([1 if axis in gone else next(window) for axis in range(operand.ndim)])


def _abstract_of(name: str) -> Callable:
    def abstract(
        operand: ShapedArray,
        indices: ShapedArray,
        updates: ShapedArray,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        **_: Any,
    ) -> ShapedArray:
        numbers = dimension_numbers
        if not dtypes.is_integer(indices.dtype):
            raise ValueError(
                f"{name}: indices must have an integer type: scatter_indices must be integers, got "
                f"{indices.str_short()}."
            )
        if operand.dtype != updates.dtype:
            raise TypeError(
                f"{name}: operand {operand.str_short()} and updates {updates.str_short()} must "
                "have one dtype. Convert the updates with .astype()."
            )
        if not indices.ndim:
            raise TypeError(
                f"{name}: scatter_indices needs a last axis that holds the index components; add "
                "one with [..., None]."
            )
        scatter_numbers(operand.shape, indices.shape, updates.shape, numbers)
        return ShapedArray(operand.shape, operand.dtype, operand.weak_type and updates.weak_type)

    return abstract


def _reference_of(at: Callable[[np.ndarray, Any, np.ndarray], None]) -> Callable:
    """`at(out, index, updates)` changes `out` in place."""

    def reference(
        operand: np.ndarray,
        indices: np.ndarray,
        updates: np.ndarray,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        mode: GatherScatterMode,
        **_: Any,
    ) -> np.ndarray:
        numbers, batch = dimension_numbers, indices.shape[:-1]
        out = np.array(operand, order="C")
        if not updates.size:
            return out
        sizes = window_sizes(operand, updates.shape, numbers)  # type: ignore[arg-type]
        starts, valid = starts_of(
            indices,
            operand.shape,
            sizes,
            numbers.scatter_dims_to_operand_dims,
            numbers.operand_batching_dims,
            numbers.scatter_indices_batching_dims,
        )
        order = [d for d in range(updates.ndim) if d not in numbers.update_window_dims]
        count = math.prod(batch)
        updates = updates.transpose(order + sorted(numbers.update_window_dims)).reshape(
            count, *sizes
        )
        if mode is GatherScatterMode.CLIP:
            valid = None
        if count == 1:
            if valid is None or valid.all():
                first = [int(starts[a].reshape(())) if a in starts else 0 for a in range(out.ndim)]
                box = tuple([slice(i, i + n) for i, n in zip(first, sizes, strict=True)])
                at(out, box, updates[0])
            return out
        flat = {axis: start.reshape(count) for axis, start in starts.items()}
        if valid is not None:
            chosen = valid.reshape(count)
            updates, flat = updates[chosen], {axis: start[chosen] for axis, start in flat.items()}
        place = _places(operand.shape, sizes, flat, len(updates))
        at(out.reshape(-1), np.broadcast_to(place, updates.shape).reshape(-1), updates.reshape(-1))
        return out

    return reference


def _places(shape: tuple, sizes: tuple, starts: dict, count: int) -> np.ndarray:
    """The row-major positions of `count` windows of `sizes` in an array of `shape`: [count, window
    axes...]; starts[axis] holds those of the windows."""
    ndim, stride = len(shape), 1
    place = np.zeros((count, *[1] * ndim), np.int64)
    for axis in reversed(range(ndim)):
        along = np.arange(sizes[axis]).reshape([-1 if i == axis else 1 for i in range(ndim)])
        if axis in starts:
            along = along + starts[axis].reshape(-1, *[1] * ndim)
        place = place + along * stride
        stride *= shape[axis]
    return place


def _set(out: np.ndarray, index: Any, updates: np.ndarray) -> None:
    out[index] = updates


def _inplace(ufunc: np.ufunc) -> Callable:
    def at(out: np.ndarray, index: Any, updates: np.ndarray) -> None:
        if type(index) is tuple:
            out[index] = ufunc(out[index], updates)
        else:
            ufunc.at(out, index, updates)

    return at


def _batch_of(primitive_of: Callable[[], Primitive]) -> Callable:
    def batch(
        axis: Any,
        args: tuple,
        dims: tuple,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        **params: Any,
    ) -> tuple:
        operand, indices, updates = args
        if dims[1] is not None:
            indices = moveaxis(indices, dims[1], 0)
            if primitive_of() is scatter_mul_p and math.prod(indices.aval.shape[1:-1]) <= 1:
                params["unique_indices"] = True  # of each example there is one
        return primitive_of().bind(
            to_front(operand, dims[0], axis.size),
            indices,
            to_front(updates, dims[2], axis.size),
            dimension_numbers=mapped(dimension_numbers, indices_too=dims[1] is not None),
            **params,
        ), 0

    return batch


def _mirror(numbers: ScatterDimensionNumbers) -> GatherDimensionNumbers:
    return GatherDimensionNumbers(*numbers)


def _gather_like(
    x: Any,
    indices: Any,
    updates_shape: tuple,
    *,
    dimension_numbers: ScatterDimensionNumbers,
    mode: GatherScatterMode,
    indices_are_sorted: bool,
    unique_indices: bool,
) -> Any:
    """The elements of `x` where updates of `updates_shape` went; 0 for dropped ones."""
    if mode is GatherScatterMode.PROMISE_IN_BOUNDS:
        mode = GatherScatterMode.FILL_OR_DROP  # what the scatter does
    return gather(
        x,
        indices,
        _mirror(dimension_numbers),
        window_sizes(x.aval, updates_shape, dimension_numbers),
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
        fill_value=0,
    )


def _is_unique(indices: ShapedArray, unique_indices: bool) -> bool:
    return unique_indices or math.prod(indices.shape[:-1]) <= 1


def _no_integer_tangent(out: Any, tangents: tuple) -> bool:
    return not dtypes.is_inexact(out.aval.dtype) or all(type(t) is Zero for t in tangents)


# ------------------------------------------------------------------ add and sub
def _linear_jvp(primitive_of: Callable[[], Primitive]) -> Callable:
    def jvp(primals: tuple, tangents: tuple, **params: Any) -> tuple:
        operand, indices, updates = primals
        primitive = primitive_of()
        out = primitive.bind(operand, indices, updates, **params)
        if _no_integer_tangent(out, (tangents[0], tangents[2])):
            return out, Zero(out.aval.tangent())
        if type(tangents[2]) is Zero and primitive is not scatter_p:
            return out, tangents[0]
        return out, primitive.bind(
            instantiate(tangents[0]), indices, instantiate(tangents[2]), **params
        )

    return jvp


def _additive_transpose(sign: Callable[[Any], Any]) -> Callable:
    def transpose(ct: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> list:
        to_updates = None
        if type(updates) is Linear:
            to_updates = sign(_gather_like(ct, indices, updates.aval.shape, **params))
        return [ct if type(operand) is Linear else None, None, to_updates]

    return transpose


def _scatter(
    name: str, at: Callable, *, jvp: Callable, transpose: Callable | None = None
) -> Primitive:
    primitive: Primitive
    primitive = Primitive(
        name,
        abstract=_abstract_of(name),
        reference=_reference_of(at),
        jvp=jvp,
        linear=transpose is not None,
        transpose=transpose,
        batch=_batch_of(lambda: primitive),
        loops=Kernel("scatter"),
    )
    return primitive


scatter_add_p = _scatter(
    "scatter-add",
    _inplace(np.add),
    jvp=_linear_jvp(lambda: scatter_add_p),
    transpose=_additive_transpose(lambda x: x),
)
scatter_sub_p = _scatter(
    "scatter-sub",
    _inplace(np.subtract),
    jvp=_linear_jvp(lambda: scatter_sub_p),
    transpose=_additive_transpose(neg),
)


# ------------------------------------------------------------------ set
def _set_transpose(ct: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> list:
    """The operand's cotangent is zero where something was written; of several updates of one place
    the last one gets the cotangent."""
    aval = updates.aval
    to_operand = to_updates = None
    if type(operand) is Linear:
        to_operand = scatter_p.bind(ct, indices, zeros(aval.update(dtype=ct.aval.dtype)), **params)
    if type(updates) is Linear:
        to_updates = _gather_like(ct, indices, aval.shape, **params)
        if not _is_unique(indices.aval, params["unique_indices"]) and aval.size:
            number = ArrayImpl(
                np.arange(aval.size, dtype=np.int32).reshape(aval.shape),
                ShapedArray(aval.shape, dtypes.int32),
            )
            last = scatter_p.bind(full(ct.aval.shape, -1, dtypes.int32), indices, number, **params)
            won = eq(_gather_like(last, indices, aval.shape, **params), number)
            to_updates = select_n(won, zeros(to_updates.aval), to_updates)
    return [to_operand, None, to_updates]


scatter_p = _scatter("scatter", _set, jvp=_linear_jvp(lambda: scatter_p), transpose=_set_transpose)


# ------------------------------------------------------------------ mul
def _mul_jvp(primals: tuple, tangents: tuple, **params: Any) -> tuple:
    operand, indices, updates = primals
    out = scatter_mul_p.bind(operand, indices, updates, **params)
    if _no_integer_tangent(out, (tangents[0], tangents[2])):
        return out, Zero(out.aval.tangent())
    parts = []
    if type(tangents[0]) is not Zero:
        parts.append(scatter_mul_p.bind(tangents[0], indices, updates, **params))
    if type(tangents[2]) is not Zero:
        if not _is_unique(indices.aval, params["unique_indices"]):
            raise NotImplementedError(
                "scatter_mul: the derivative with respect to updates needs unique indices. "
                "Pass unique_indices=True when they are."
            )
        factor = _gather_like(operand, indices, updates.aval.shape, **params)
        parts.append(
            scatter_add_p.bind(
                zeros(out.aval.strong()), indices, mul(tangents[2], factor), **params
            )
        )
    return out, parts[0] if len(parts) == 1 else add(*parts)


def _mul_transpose(ct: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> list:
    if type(updates) is Linear:
        raise NotImplementedError(
            "scatter_mul: transposition with respect to updates is not linear."
        )
    return [scatter_mul_p.bind(ct, indices, updates, **params), None, None]


scatter_mul_p = _scatter(
    "scatter-mul", _inplace(np.multiply), jvp=_mul_jvp, transpose=_mul_transpose
)


# ------------------------------------------------------------------ min and max
def _extreme_jvp(primitive_of: Callable[[], Primitive]) -> Callable:
    """Winners (elements equal to the result) share the tangent in equal parts."""

    def jvp(primals: tuple, tangents: tuple, **params: Any) -> tuple:
        operand, indices, updates = primals
        out = primitive_of().bind(operand, indices, updates, **params)
        if _no_integer_tangent(out, (tangents[0], tangents[2])):
            return out, Zero(out.aval.tangent())
        dtype = out.aval.dtype
        # What was NaN before stays itself where nothing reached it.
        kept = convert(bitwise_or(eq(operand, out), ne(operand, operand)), dtype)
        won = convert(eq(updates, _gather_like(out, indices, updates.aval.shape, **params)), dtype)
        winners = scatter_add_p.bind(kept, indices, won, **params)
        tangent = scatter_add_p.bind(
            mul(instantiate(tangents[0]), kept),
            indices,
            mul(instantiate(tangents[2]), won),
            **params,
        )
        one = full(out.aval.shape, 1, dtype)
        return out, div(tangent, select_n(eq(winners, zeros(winners.aval)), winners, one))

    return jvp


scatter_min_p = _scatter(
    "scatter-min", _inplace(np.minimum), jvp=_extreme_jvp(lambda: scatter_min_p)
)
scatter_max_p = _scatter(
    "scatter-max", _inplace(np.maximum), jvp=_extreme_jvp(lambda: scatter_max_p)
)


# ------------------------------------------------------------------ public functions
def _call(
    primitive: Primitive,
    operand: Any,
    indices: Any,
    updates: Any,
    numbers: Any,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: Any,
) -> Any:
    operand, indices, updates = as_array(operand), as_array(indices), as_array(updates)
    mode = GatherScatterMode.from_any(mode)
    if mode is GatherScatterMode.ONE_HOT:
        raise NotImplementedError(
            f"{primitive.name}: mode 'one_hot' is not supported. Use mode='drop'."
        )
    if primitive in (scatter_add_p, scatter_mul_p):
        for x in (operand, updates):
            if dtypes.is_bool(x.aval.dtype):
                raise TypeError(f"{primitive.name} does not accept dtype bool, got {x.aval}.")
    return primitive.bind(
        operand,
        indices,
        updates,
        dimension_numbers=as_tuples(dimension_numbers_of(numbers)),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=mode,
    )


def dimension_numbers_of(numbers: Any) -> ScatterDimensionNumbers:
    """Checks the type."""
    if not isinstance(numbers, ScatterDimensionNumbers):
        raise AttributeError(
            f"{numbers!r} has no attribute 'update_window_dims': dimension_numbers must be "
            "ScatterDimensionNumbers."
        )
    return numbers


def _public(primitive: Primitive, what: str, example: str, more: str) -> Callable:
    def scatter_function(
        operand: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Any:
        return _call(
            primitive,
            operand,
            scatter_indices,
            updates,
            dimension_numbers,
            indices_are_sorted,
            unique_indices,
            mode,
        )

    scatter_function.__name__ = scatter_function.__qualname__ = primitive.name.replace("-", "_")
    name = scatter_function.__name__
    scatter_function.__doc__ = (
        f"operand with windows at many positions {what} updates.\n\n"
        "operand: an array. scatter_indices: integers [..., k], the last axis holds the components "
        "of\none position. updates: of operand's dtype, for each position a window. "
        "dimension_numbers:\nScatterDimensionNumbers, which say what axes mean. "
        "indices_are_sorted, unique_indices: promises\nabout the positions. mode: 'drop' (default; "
        "windows that reach outside change nothing), 'clip'\n(they are moved inside), "
        f"'promise_in_bounds'. Result: operand's shape and dtype.\n{more}\n"
        "Raises TypeError when shapes do not fit, ValueError for indices that are no integers. "
        "`numpy`'s\n`x.at[...]` is easier.\n\n"
        ">>> from numjet import lax, numpy as jnp\n"
        ">>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))\n"
        f">>> lax.{name}(jnp.array([1, 2, 3]), jnp.array([[1]]), jnp.array([5]), numbers)\n"
        f"Array([{example}], dtype=int32)"
    )
    return scatter_function


_LINEAR = "Linear in operand and updates."
_SHARED = "Derivative: that of the one taken, shared by equal ones."
scatter = _public(
    scatter_p, "replaced by", "1, 5, 3",
    "Of several for one place any may stay. Linear in operand and updates.",
)  # fmt: skip
scatter_add = _public(scatter_add_p, "increased by", "1, 7, 3", _LINEAR)
scatter_sub = _public(scatter_sub_p, "decreased by", " 1, -3,  3", _LINEAR)
scatter_mul = _public(scatter_mul_p, "multiplied by", " 1, 10,  3", "Differentiable in both.")
scatter_min = _public(scatter_min_p, "lowered to", "1, 2, 3", _SHARED)
scatter_max = _public(scatter_max_p, "raised to", "1, 5, 3", _SHARED)


def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:
    """operand with the elementwise `func` applied at positions, once for each time one occurs.

    operand: an array. scatter_indices, dimension_numbers, indices_are_sorted, unique_indices, mode:
    as of `scatter`. func: from an element to one of the same dtype. update_shape: the shape that
    updates would have (windows and positions). Raises TypeError when shapes do not fit. Raises
    ValueError for indices that are no integers.

    >>> from numjet import lax, numpy as jnp
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> x, at = jnp.array([1, 2, 3]), jnp.array([[1]])
    >>> lax.scatter_apply(x, at, lambda x: -x, numbers, update_shape=(1,))
    Array([ 1, -2,  3], dtype=int32)
    """
    operand, indices = as_array(operand), as_array(scatter_indices)
    mode = GatherScatterMode.from_any(mode)
    ones = full(tuple(update_shape), 1, dtypes.int32)
    options = {
        "indices_are_sorted": indices_are_sorted,
        "unique_indices": unique_indices,
        "mode": mode,
    }
    counts = scatter_add(
        full(operand.aval.shape, 0, dtypes.int32), indices, ones, dimension_numbers, **options
    )

    def once(x: Any, i: Any) -> Any:
        new = as_array(func(x))
        if new.aval.shape != x.aval.shape:
            raise TypeError(
                f"scatter_apply: func must keep the shape {x.aval.shape}, it gave {new.aval.shape}."
            )
        return select_n(lt(i, counts), x, convert(new, x.aval.dtype, x.aval.weak_type))

    zero = full(counts.aval.shape, 0, dtypes.int32)
    if _is_unique(indices.aval, unique_indices) or not operand.aval.size:
        return once(operand, zero)
    axes = tuple(range(operand.aval.ndim))
    most = reshape(reduce_max(counts, axes) if axes else counts, ())
    one = full((), 1, dtypes.int32)
    _, out = while_loop(
        lambda c: lt(c[0], most),
        lambda c: (add(c[0], one), once(c[1], broadcast_like(c[0], counts))),
        (full((), 0, dtypes.int32), operand),
    )
    return out


def broadcast_like(scalar: Any, x: Any) -> Any:
    """`scalar` at the shape of `x`."""
    return add(full(x.aval.shape, 0, scalar.aval.dtype), scalar)
