"""Reductions: max, min, prod, and, or, xor, argmax, argmin, and `reduce` with a known operation.

For `lax` and `numpy`. The sum stands in `core.structural`, since transformations bind it. At ties
the tangent of an extreme is the mean of the tied elements'.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.base import config, tree
from numjet.core import dtypes, hooks
from numjet.core.array import Array, as_array
from numjet.core.avals import ShapedArray
from numjet.core.lowering import Reduce
from numjet.core.primitive import REGISTRY, Primitive, Zero
from numjet.core.structural import (
    batch_reduction,
    broadcast_in_dim,
    convert,
    full,
    reduce_sum,
    reduce_sum_p,
    reduced_shape,
    transpose,
)
from numjet.core.trace import concrete_or_none, current_trace
from numjet.ops import arithmetic, logic
from numjet.ops.arithmetic import add, div, mul
from numjet.ops.families import (
    _ACCEPTS,
    INTEGRAL_OR_BOOL,
    NUMERIC,
    ORDERED,
    refusal,
)  # fmt: skip
from numjet.ops.fold import fold
from numjet.ops.logic import eq
from numjet.ops.shape import canonical_axis, cut, reshape, squeeze
from numjet.transforms.jvp import jvp_call
from numjet.transforms.stage import stage

Axes = Sequence[int]


def _reduction(
    name: str, op: str, accepts: str, reference: Callable, jvp: Callable | None,
    in_jax: Callable | None = None,
) -> Primitive:  # fmt: skip
    primitive: Primitive

    def abstract(x: ShapedArray, *, axes: tuple) -> ShapedArray:
        if not _ACCEPTS[accepts](x.dtype):
            raise TypeError(refusal(name, x.dtype, accepts))
        weak = x.weak_type and accepts != INTEGRAL_OR_BOOL  # bits have a dtype
        return ShapedArray(reduced_shape(name, x, axes), x.dtype, weak)

    def forward(primals: tuple, tangents: tuple, *, axes: tuple) -> tuple:
        if in_jax is not None and config.jax_form() and type(tangents[0]) is not Zero:
            made = jvp_call(lambda x: [in_jax(x, axes)], primals, tangents)
            return made[0][0], made[1][0]
        out = primitive.bind(*primals, axes=axes)
        if type(tangents[0]) is Zero:
            return out, Zero(out.aval.tangent())
        return out, jvp(tangents[0], out, primals[0], axes)  # type: ignore[misc]

    primitive = Primitive(
        name,
        abstract=abstract,
        reference=lambda x, *, axes: reference(x, axes),
        jvp=forward if jvp else None,
        differentiable=jvp is not None,
        batch=batch_reduction(lambda: primitive),
        loops=Reduce(op),
    )
    return primitive


def _broadcast_back(out: Any, shape: tuple, axes: tuple) -> Any:
    return broadcast_in_dim(out, shape, tuple([i for i in range(len(shape)) if i not in axes]))


def _extreme_jvp(t: Any, out: Any, x: Any, axes: tuple) -> Any:
    """The tangent at the extreme; the mean of them at ties."""
    if config.jax_form():
        kept = tuple([1 if i in axes else n for i, n in enumerate(x.aval.shape)])
        whole = REGISTRY["reshape"].bind(out, new_sizes=kept, dimensions=None)
    else:
        whole = _broadcast_back(out, x.aval.shape, axes)
    mask = convert(eq(x, whole), t.aval.dtype)
    count = reduce_sum(mask, axes)
    return div(reduce_sum(mul(t, mask), axes), count)


def _extreme(reduce: Callable, low: bool) -> Callable:
    def reference(x: np.ndarray, axes: tuple) -> np.ndarray:
        if not any(x.shape[a] == 0 for a in axes):
            return reduce(x, axis=axes)
        return np.full(
            [n for i, n in enumerate(x.shape) if i not in axes], extreme_of(x.dtype, low), x.dtype
        )

    return reference


def extreme_of(dtype: Any, lowest: bool) -> Any:
    """The lowest (highest) value of a dtype: -inf (inf) for floats. The start of a maximum
    (minimum)."""
    if dtypes.is_bool(dtype):
        return not lowest
    if dtypes.is_integer(dtype):
        info = dtypes.iinfo(dtype)
        return info.min if lowest else info.max
    return -np.inf if lowest else np.inf


reduce_max_p = _reduction(
    "reduce_max", "max", ORDERED, _extreme(np.maximum.reduce, True), _extreme_jvp
)
reduce_min_p = _reduction(
    "reduce_min", "min", ORDERED, _extreme(np.minimum.reduce, False), _extreme_jvp
)


def _prod_jvp(t: Any, out: Any, x: Any, axes: tuple) -> Any:
    """By halving: the pair (p, d) of a product and its tangent combines as (p q, p e + d q), exact
    also at zeros. Axes that follow each other are halved where they are."""
    shape = x.aval.shape
    kept = [i for i in range(len(shape)) if i not in axes]
    axis = min(axes, default=0)
    if tuple(axes) != tuple(range(axis, axis + len(axes))):
        axis = len(kept)
        order = (*kept, *axes)
        x, t = transpose(x, order), transpose(t, order)
    n = x.aval.size // out.aval.size if out.aval.size else 0
    flat = (*out.aval.shape[:axis], n, *out.aval.shape[axis:])
    p, d = reshape(x, flat), reshape(t, flat)
    if n == 0:
        return reduce_sum(d, (axis,))
    odd: list[tuple[Any, Any]] = []
    while n > 1:
        (p, q, *last), (d, e, *tangent) = _halves(p, axis), _halves(d, axis)
        odd += zip(last, tangent, strict=True)
        p, d, n = mul(p, q), add(mul(p, e), mul(d, q)), n // 2
    for q, e in odd:
        p, d = mul(p, q), add(mul(p, e), mul(d, q))
    return reshape(d, out.aval.shape)


def _halves(x: Any, axis: int) -> list[Any]:
    """The halves of an array along an axis, and of an odd number of elements the last."""
    shape = x.aval.shape
    n = shape[axis] // 2
    ends = [0, n, 2 * n, *[shape[axis]] * (shape[axis] % 2)]
    start, stop = [0] * len(shape), list(shape)
    found = []
    for a, b in itertools.pairwise(ends):
        start[axis], stop[axis] = a, b
        found.append(cut(x, list(start), list(stop)))
    return found


def _product_in_jax(x: Any, axes: tuple) -> Any:
    """A product whose derivative `make_jaxpr` shows, by halves along the first axis."""
    shape = x.aval.shape
    rest = tuple([i for i in range(len(shape)) if i not in axes])
    count = math.prod([shape[i] for i in axes])
    x = reshape(transpose(x, (*axes, *rest)), (count, *[shape[i] for i in rest]))
    one, still = full((), 1, x.aval.dtype), [0] * len(rest)
    if not count:
        return reduce_prod_p.bind(x, axes=(0,))
    while (n := x.aval.shape[0]) > 1:
        half, parts = (n + 1) // 2, []
        for start, stop in ((0, half), (half, n)):
            parts.append(REGISTRY["slice"].bind(
                x, start_indices=(start, *still), limit_indices=(stop, *x.aval.shape[1:]),
                strides=(1,) * (1 + len(rest)),
            ))  # fmt: skip
        if n % 2:
            config_ = ((0, 1, 0), *[(0, 0, 0)] * len(rest))
            parts[1] = REGISTRY["pad"].bind(parts[1], one, padding_config=config_)
        x = mul(*parts)
    return squeeze(x, (0,))


reduce_prod_p = _reduction(
    "reduce_prod",
    "mul",
    NUMERIC,
    lambda x, axes: np.multiply.reduce(x, axis=axes, dtype=x.dtype),
    _prod_jvp,
    in_jax=_product_in_jax,
)
reduce_and_p = _reduction(
    "reduce_and", "and", INTEGRAL_OR_BOOL, lambda x, axes: np.bitwise_and.reduce(x, axis=axes), None
)
reduce_or_p = _reduction(
    "reduce_or", "or", INTEGRAL_OR_BOOL, lambda x, axes: np.bitwise_or.reduce(x, axis=axes), None
)
reduce_xor_p = _reduction(
    "reduce_xor", "xor", INTEGRAL_OR_BOOL, lambda x, axes: np.bitwise_xor.reduce(x, axis=axes), None
)


# ------------------------------------------------------------------ argmax and argmin
def _arg_reduction(name: str, function: Callable) -> Primitive:
    primitive: Primitive

    def abstract(x: ShapedArray, *, axes: tuple, index_dtype: Any) -> ShapedArray:
        if len(axes) != 1:
            raise TypeError(f"{name} takes one axis, got {axes}.")
        if dtypes.is_complex(x.dtype):
            raise TypeError(f"{name}: complex numbers have no order, got {x.str_short()}.")
        if dtypes.is_key(x.dtype):
            raise ValueError(f"{name}: PRNG keys have no order, got {x.str_short()}.")
        if x.shape[axes[0]] == 0:
            raise ValueError(
                "argmin and argmax require non-empty reduced dimension. "
                f"operand.shape={x.shape} axis={axes[0]}: {name} of {x.str_short()}."
            )
        return ShapedArray(reduced_shape(name, x, axes), index_dtype)

    primitive = Primitive(
        name,
        abstract=abstract,
        differentiable=False,
        loops=Reduce(name),
        reference=lambda x, *, axes, index_dtype: np.asarray(function(x, axis=axes[0])).astype(
            index_dtype
        ),
        batch=batch_reduction(lambda: primitive),
    )
    return primitive


argmax_p = _arg_reduction("argmax", np.argmax)
argmin_p = _arg_reduction("argmin", np.argmin)


# ------------------------------------------------------------------ functions
_OF_BITS = "reduce_and", "reduce_or", "reduce_xor"


def _axes(name: str, ndim: int, axes: Any) -> tuple[int, ...]:
    """Axes that are counted from the front."""
    if type(axes) is tuple and all([type(a) is int and 0 <= a < ndim for a in axes]):
        return axes
    if axes is None or isinstance(axes, int | np.integer | Array):
        raise TypeError(f"{name}: axes must be a sequence of integers, got {axes!r}.")
    given, error = tuple(axes), IndexError if name in _OF_BITS else ValueError
    found = tuple([canonical_axis(a, ndim, error=error) for a in given])
    if found != given:
        raise ValueError(
            f"{name}: axes {given} contains out-of-bounds indices: they are counted from the "
            "front. The function of numjet.numpy takes negative ones."
        )
    return found


def _over(primitive: Primitive, operand: Any, axes: Axes) -> Any:
    x = as_array(operand)
    axes = _axes(primitive.name, x.aval.ndim, axes)
    if not axes and (current_trace().at_once or not config.jax_form()):  # nothing to combine
        bits = x.aval.weak_type and primitive.name in _OF_BITS
        return convert(x, x.aval.dtype) if bits else x
    return primitive.bind(x, axes=axes)


def _position(primitive: Primitive, operand: Any, axis: int, index_dtype: Any) -> Any:
    if index_dtype is None:
        raise ValueError(f"{primitive.name}: index_dtype must be an integer type, got None.")
    x, dtype = as_array(operand), dtypes.canonical(index_dtype)
    if isinstance(axis, bool | np.bool_ | np.ndarray | Array):
        raise TypeError(f"{primitive.name}: an axis must be an integer, got {axis!r}.")
    if not 0 <= axis < x.ndim:
        raise ValueError(
            f"{primitive.name}: Invalid axis {axis} for operand shape {x.shape}: axes are counted "
            "from the front here. The function of numjet.numpy takes negative ones."
        )
    if not x.shape[axis]:
        raise ValueError(
            "argmin and argmax require non-empty reduced dimension. "
            f"operand.shape={x.shape} axis={axis}: {primitive.name} of {x.aval.str_short()}."
        )
    if not dtypes.is_integer(dtype):
        raise TypeError(
            f"{primitive.name}: index_dtype must be an integer type, but got {dtype.name}."
        )
    return primitive.bind(x, axes=(int(axis),), index_dtype=dtype)


def sum_over(operand: Any, axes: Axes, *, out_sharding: Any = None) -> Any:
    """The sum over axes; the dtype stays.

    operand: an array of numbers (TypeError for booleans). axes: a tuple of integers from 0.
    out_sharding: the layout of the result. Result: operand's shape without the axes; 0 of no
    elements. Float16 and bfloat16 are summed in float32. Derivative: the cotangent, repeated.
    Raises ValueError for an axis out of range or named twice. `numpy.sum` widens small integers.

    >>> from numjet import lax, numpy as jnp
    >>> lax.reduce_sum(jnp.array([[1, 2], [3, 4]]), (0,))
    Array([4, 6], dtype=int32)
    """
    if out_sharding is not None:
        return hooks.laid_out(functools.partial(sum_over, operand, axes), out_sharding)
    operand = as_array(operand)
    if dtypes.is_bool(operand.aval.dtype):
        raise TypeError("reduce_sum does not accept dtype bool. Use lax.reduce_or or .astype(int).")
    return _over(reduce_sum_p, operand, axes)


def reduce_max(operand: Any, axes: Axes) -> Any:
    """The largest element over axes; NaN if there is one.

    operand: an array; complex numbers are ordered by real, then imaginary parts. axes: a
    tuple of integers from 0. Result: operand's shape without the axes, its dtype; of no elements -∞
    or the least integer. Derivative: 1, shared by equal ones. Raises ValueError for an axis out of
    range. `numpy.max` refuses empty axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.reduce_max(jnp.array([[1, 5], [3, 4]]), (0,))
    Array([3, 5], dtype=int32)
    """
    return _over(reduce_max_p, operand, axes)


def reduce_min(operand: Any, axes: Axes) -> Any:
    """The smallest element over axes; NaN if there is one.

    operand: an array; complex numbers are ordered by real, then imaginary parts. axes: a
    tuple of integers from 0. Result: operand's shape without the axes, its dtype; of no elements ∞
    or the largest integer. Derivative: 1, shared by equal ones. Raises ValueError for an axis out
    of range. `numpy.min` refuses empty axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.reduce_min(jnp.array([[1, 5], [3, 4]]), (0,))
    Array([1, 4], dtype=int32)
    """
    return _over(reduce_min_p, operand, axes)


def reduce_prod(operand: Any, axes: Axes) -> Any:
    """The product over axes; the dtype stays.

    operand: an integer, floating or complex array. axes: a tuple of integers from 0. Result:
    operand's shape without the axes; 1 of no elements. Derivative: the product of the other
    elements, also where there are zeros. Raises ValueError for an axis out of range. Raises
    TypeError for booleans.

    >>> from numjet import lax, numpy as jnp
    >>> lax.reduce_prod(jnp.array([[1, 2], [3, 4]]), (0,))
    Array([3, 8], dtype=int32)
    """
    return _over(reduce_prod_p, operand, axes)


def reduce_and(operand: Any, axes: Axes) -> Any:
    """Bitwise and over axes; of booleans, whether all hold.

    operand: integers or booleans (TypeError for others). axes: a tuple of integers from 0. Result:
    operand's shape without the axes, its dtype; of no elements all bits set. Raises IndexError for
    an axis out of range.

    >>> from numjet import lax, numpy as jnp
    >>> lax.reduce_and(jnp.array([7, 5]), (0,))
    Array(5, dtype=int32)
    """
    return _over(reduce_and_p, operand, axes)


def reduce_or(operand: Any, axes: Axes) -> Any:
    """Bitwise or over axes; of booleans, whether any holds.

    operand: integers or booleans (TypeError for others). axes: a tuple of integers from 0. Result:
    operand's shape without the axes, its dtype; 0 of no elements. Raises IndexError for an axis out
    of range.

    >>> from numjet import lax, numpy as jnp
    >>> lax.reduce_or(jnp.array([1, 4]), (0,))
    Array(5, dtype=int32)
    """
    return _over(reduce_or_p, operand, axes)


def reduce_xor(operand: Any, axes: Axes) -> Any:
    """Bitwise exclusive or over axes; of booleans, whether an odd number holds.

    operand: integers or booleans (TypeError for others). axes: a tuple of integers from 0. Result:
    operand's shape without the axes, its dtype; 0 of no elements. Raises IndexError for an axis out
    of range.

    >>> from numjet import lax, numpy as jnp
    >>> lax.reduce_xor(jnp.array([7, 5]), (0,))
    Array(2, dtype=int32)
    """
    return _over(reduce_xor_p, operand, axes)


def argmax(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The index of the largest element along an axis: of the first, or of the first NaN if there is
    one.

    operand: a real array or booleans. axis: an integer. index_dtype: the result's integer dtype
    (TypeError for others). Result: operand's shape without the axis. No derivative flows. Raises
    ValueError for an axis out of range or of size 0.

    >>> from numjet import lax, numpy as jnp
    >>> lax.argmax(jnp.array([1.0, 3.0, 3.0]), 0, jnp.int32)
    Array(1, dtype=int32)
    """
    return _position(argmax_p, operand, axis, index_dtype)


def argmin(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The index of the smallest element along an axis: of the first, or of the first NaN if there
    is one.

    operand: a real array or booleans. axis: an integer. index_dtype: the result's integer dtype
    (TypeError for others). Result: operand's shape without the axis. No derivative flows. Raises
    ValueError for an axis out of range or of size 0.

    >>> from numjet import lax, numpy as jnp
    >>> lax.argmin(jnp.array([3.0, 1.0, 1.0]), 0, jnp.int32)
    Array(1, dtype=int32)
    """
    return _position(argmin_p, operand, axis, index_dtype)


_MONOIDS = {
    "add": (reduce_sum_p, add),
    "max": (reduce_max_p, arithmetic.max),
    "min": (reduce_min_p, arithmetic.min),
    "mul": (reduce_prod_p, mul),
    "and": (reduce_and_p, logic.bitwise_and),
    "or": (reduce_or_p, logic.bitwise_or),
    "xor": (reduce_xor_p, logic.bitwise_xor),
}


def monoid_of(computation: Callable, dtype: Any) -> str | None:
    """The name of the primitive that `computation(x, y)` applies, if it is one operation with a
    known reduction."""
    aval = ShapedArray((), dtype)
    jaxpr, _ = stage(lambda x, y: [as_array(computation(x, y))], [aval, aval])
    if (
        len(jaxpr.eqns) == 1
        and len(jaxpr.eqns[0].invars) == 2
        and set(jaxpr.eqns[0].invars) == set(jaxpr.invars)
    ):
        name = jaxpr.eqns[0].primitive.name
        return name if name in _MONOIDS and jaxpr.outvars[0] is jaxpr.eqns[0].outvars[0] else None
    return None


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable,
    dimensions: Axes,
    out_sharding: Any = None,
) -> Any:
    """Elements combined over axes with an associative `computation(x, y)`.

    operands: an array, or a pytree of arrays of one shape. init_values: scalars of the same
    structure, neutral for the computation. computation: one of add, mul, max, min, bitwise_and,
    bitwise_or, bitwise_xor becomes that reduction; any other is applied to halves, about log₂ n
    times. dimensions: the axes that go. out_sharding: the layout of the result. Raises ValueError
    where structures differ, TypeError for dtypes that the computation does not take, and for
    scalars of other dtypes that are not the neutral ones of a known reduction.

    >>> from numjet import lax, numpy as jnp
    >>> lax.reduce(jnp.array([[1, 2], [3, 4]]), 0, lax.add, (0,))
    Array([4, 6], dtype=int32)
    """
    if out_sharding is not None:
        given = operands, init_values, computation, dimensions
        return hooks.laid_out(functools.partial(reduce, *given), out_sharding)
    leaves, treedef = tree.tree_flatten(operands)
    starts, start_tree = tree.tree_flatten(init_values)
    if treedef != start_tree:
        raise ValueError(
            "reduce: Operands must have the same tree structure as init_values, got "
            f"{treedef} and {start_tree}."
        )
    xs = [as_array(x) for x in leaves]
    if not xs or any(x.aval.shape != xs[0].aval.shape for x in xs):
        raise ValueError(
            "reduce: operands must be arrays of one shape, got "
            f"{', '.join(x.aval.str_short() for x in xs) or 'none'}."
        )
    values = [as_array(v) for v in starts]
    if any(v.aval.ndim for v in values):
        raise ValueError(
            "reduce found non-scalar initial value: folding begins with a scalar, got "
            f"{', '.join(v.aval.str_short() for v in values)}."
        )
    axes = _axes("reduce", xs[0].aval.ndim, dimensions)
    name = monoid_of(computation, xs[0].aval.dtype) if treedef == _LEAF else None
    out = xs[0] if name is None else _over(_MONOIDS[name][0], xs[0], axes)
    neutral: Any = {"add": 0, "mul": 1, "or": 0, "xor": 0}.get(name or "")
    if name in ("max", "min"):
        neutral = extreme_of(out.aval.dtype, name == "max")
    elif name == "and":  # all bits
        neutral = np.array(-1).astype(out.aval.dtype)
    known = None if neutral is None else concrete_or_none(values[0])
    if known is not None and known._value.astype(out.aval.dtype) == neutral:
        return tree.tree_unflatten(treedef, [out])
    for x, v in zip(xs, values, strict=True):
        if x.aval.dtype != v.aval.dtype:
            raise TypeError(
                "reduce: operand dtypes should match corresponding initial value dtypes, got "
                f"{x.aval.str_short()} and {v.aval.str_short()}."
            )
    if name is None:
        return tree.tree_unflatten(treedef, fold(computation, treedef, xs, values, axes))
    out = _MONOIDS[name][1](out, values[0])
    return tree.tree_unflatten(treedef, [out])


_LEAF = tree.tree_structure(0)
