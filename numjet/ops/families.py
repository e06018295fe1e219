"""Constructors for families of primitives, so that a record like `sin_p` is six lines.

Used by the other files of `ops`. The rules made here: elementwise operations take operands of one
shape and dtype, where operands without dimensions stand for every element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.base import config
from numjet.core import dtypes
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.lowering import elementwise_loops
from numjet.core.memo import Memo
from numjet.core.primitive import REGISTRY, Linear, Primitive, Zero
from numjet.core.structural import (
    TangentAxes,
    add_tangents,
    broadcast_in_dim,
    convert,
    moveaxis,
    numpy_axes,
    reduce_sum,
)

FLOATING = "floating"  # real and complex
REAL_FLOATING = "real floating"
NUMERIC = "numeric"
REAL = "real"
INTEGRAL = "integral"
INTEGRAL_OR_BOOL = "integral or boolean"
ANY = "any"
ORDERED = "ordered"  # any but PRNG keys

# The kinds of dtypes that messages name.
_KINDS = {
    FLOATING: "floating, complexfloating",
    REAL_FLOATING: "floating",
    NUMERIC: "integer, floating, complexfloating",
    REAL: "integer, floating",
    INTEGRAL: "integer",
    INTEGRAL_OR_BOOL: "integer, bool",
    ORDERED: "bool, integer, floating, complexfloating",
}
_ACCEPTS: dict[str, Callable[[Any], bool]] = {
    FLOATING: dtypes.is_inexact,
    REAL_FLOATING: dtypes.is_floating,
    NUMERIC: lambda d: dtypes.is_inexact(d) or dtypes.is_integer(d),
    REAL: lambda d: dtypes.is_floating(d) or dtypes.is_integer(d),
    INTEGRAL: dtypes.is_integer,
    INTEGRAL_OR_BOOL: lambda d: dtypes.is_integer(d) or dtypes.is_bool(d),
    ANY: lambda d: True,
    ORDERED: lambda d: not dtypes.is_key(d),
}


def refusal(name: str, dtype: Any, accepts: str, several: bool = False) -> str:
    """The message for an operand whose dtype an operation does not accept; `several`: of some."""
    at = " at position 0" if several else ""
    if dtype == dtypes.float0:
        return f"Called {name} with a float0 array. {dtypes.NO_OPERATIONS}"
    return (
        f"{name} does not accept dtype {dtypes.long_name(dtype)}{at}. Accepted dtypes{at} are "
        f"subtypes of {_KINDS.get(accepts, accepts)}. Convert with .astype()."
    )

# Parameters of JAX's operations that ours lack, which `extend.jax_params` takes off.
_OF_JAX = frozenset(("accuracy", "out_dtype", "rounding_method"))


def elementwise_abstract(
    name: str, accepts: str, result: Callable[[Any], Any] | None = None, *, operands: int
) -> Callable:
    """The shape and dtype rule: one dtype, one shape, scalars broadcast. `result` maps the
    dtype. operands: how many there are. NumPy would write into one too many."""
    accept = _ACCEPTS[accepts]

    def abstract(*avals: ShapedArray, **params: Any) -> ShapedArray:
        if len(avals) != operands:
            raise TypeError(f"{name} takes {operands} operand(s), got {len(avals)}.")
        if params and (unknown := _OF_JAX & params.keys()):
            raise TypeError(f"{name} got an unexpected keyword argument {min(unknown)!r}")
        first = avals[0]
        shape, weak = first.shape, first.weak_type
        for other in avals[1:]:
            if other.dtype != first.dtype:
                raise TypeError(
                    f"{name}: operands must have one dtype, got "
                    f"{', '.join(a.str_short() for a in avals)}. The functions of numjet.numpy "
                    "promote; here convert with lax.convert_element_type."
                )
            if other.shape != shape:
                if not shape:
                    shape = other.shape
                elif other.shape and (stretches := stretched_shape(shape, other.shape)):
                    shape = stretches
                elif other.shape:
                    raise TypeError(
                        f"{name} got incompatible shapes for broadcasting: lax operands must "
                        "have equal "
                        "shapes (or none), got "
                        f"{', '.join(a.str_short() for a in avals)}. The functions of numjet.numpy "
                        "broadcast; here use lax.broadcast_in_dim."
                    )
            weak = weak and other.weak_type
        if not accept(first.dtype):
            raise TypeError(refusal(name, first.dtype, accepts, len(avals) > 1))
        return ShapedArray(shape, result(first.dtype) if result else first.dtype, weak)

    return abstract


def stretched_shape(x: tuple, y: tuple) -> tuple | None:
    """The shape of two that differ in axes of size 1 alone, as equations of `make_jaxpr` have them
    (`core.stretched`)."""
    if len(x) != len(y) or not all([a == b or a == 1 or b == 1 for a, b in zip(x, y)]):
        return None
    return tuple([b if a == 1 else a for a, b in zip(x, y)])


def align_batched(
    axis: Any, args: tuple, dims: tuple, stretches: bool = False
) -> tuple[list, int]:
    """Operands of an elementwise operation brought to one batch axis and one rank.

    Unmapped operands without dimensions stay as they are. stretches: axes of size 1 may be left to
    the operation (`core.stretched`).
    """
    ranks = [x.ndim - (d is not None) for x, d in zip(args, dims, strict=True)]
    rank = max(ranks)
    if all(d is None or r == rank for r, d in zip(ranks, dims, strict=True)):
        mapped = {d for d in dims if d is not None}
        if len(mapped) == 1 and all(
            d is not None or r == 0 for r, d in zip(ranks, dims, strict=True)
        ):
            return list(args), mapped.pop()
    stretches = stretches and config.jax_form()
    out: list[Any] = [None] * len(args)
    for k, (x, d, r) in enumerate(zip(args, dims, ranks, strict=True)):
        if d is None:
            if r:
                size = 1 if stretches else axis.size
                x = broadcast_in_dim(x, (size, *x.shape), numpy_axes(tuple(range(1, r + 1))))
            out[k] = x
        else:
            out[k] = moveaxis(x, d, 0)
    for k, (x, d, r) in enumerate(zip(out, dims, ranks, strict=True)):
        if d is not None:
            if r < rank:
                full = (1,) * rank if stretches else next(
                    y.shape if e is None else tuple(n for i, n in enumerate(y.shape) if i != e)
                    for y, e, s in zip(args, dims, ranks, strict=True)
                    if s == rank
                )
                x = broadcast_in_dim(x, (axis.size, *full), (0,))
            out[k] = x
    return out, 0


def elementwise_batch(primitive_of: Callable[[], Primitive]) -> Callable:
    def batch(axis: Any, args: tuple, dims: tuple, **params: Any) -> tuple:
        if len(args) == 1:
            return primitive_of().bind(*args, **params), dims[0]
        if len(args) == 2 and not params:
            (x, y), (dx, dy) = args, dims
            if dx == dy and x.aval.ndim == y.aval.ndim or dy is None and not y.aval.ndim:
                return primitive_of().bind(x, y), dx
            if dx is None and not x.aval.ndim:
                return primitive_of().bind(x, y), dy
        aligned, dim = align_batched(axis, args, dims, True)
        return primitive_of().bind(*aligned, **params), dim

    return batch


def broadcast_tangent(t: Any, shape: tuple) -> Any:
    """A tangent of an operand that is repeated, at the shape of the result."""
    if t.aval.shape == shape:
        return t
    axes = tuple(range(t.aval.ndim))
    if config.jax_form() and axes:
        return REGISTRY["broadcast_in_dim"].bind(
            t, shape=shape, broadcast_dimensions=TangentAxes(axes)
        )
    return broadcast_in_dim(t, shape, axes)


def elementwise_jvp(
    primitive_of: Callable[[], Primitive], rules: tuple, of_tangents: bool = False
) -> Callable:
    """Forward rule from one rule an operand: `rule(tangent, out, *primals, **params) -> tangent` or
    None. of_tangents: two tangents are combined as the primals are, which jaxprs show."""

    def jvp(primals: tuple, tangents: tuple, **params: Any) -> tuple:
        out = primitive_of().bind(*primals, **params)
        aval = out.aval
        if len(primals) == 1:
            rule, (tangent,) = rules[0], tangents
            if type(tangent) is Zero or rule is None:
                return out, Zero(aval.tangent())
            return out, rule(tangent, out, *primals, **params)
        if of_tangents and Zero not in map(type, tangents) and config.jax_form():
            return out, primitive_of().bind(*tangents, **params)
        total = None
        for rule, tangent in zip(rules, tangents, strict=True):
            if type(tangent) is Zero or rule is None:
                continue
            part = rule(tangent, out, *primals, **params)
            if part.aval.shape != aval.shape:
                part = broadcast_tangent(part, aval.shape)
            total = part if total is None else add_tangents(total, part)
        return out, Zero(aval.tangent()) if total is None else total

    return jvp


def unbroadcast(ct: Any, operand: Any) -> Any:
    """The cotangent of an operand: summed where the operand is repeated."""
    shape, own = ct.aval.shape, operand.aval.shape
    if own == shape:
        return ct
    if not own:
        return reduce_sum(ct, tuple(range(ct.aval.ndim)))
    ct = reduce_sum(ct, tuple([i for i, (n, k) in enumerate(zip(shape, own)) if n != k]))
    return REGISTRY["reshape"].bind(ct, new_sizes=own, dimensions=None)


def elementwise(
    name: str,
    *,
    accepts: str,
    reference: Callable,
    jvp: Any,
    loops: Callable,
    result: Callable[[Any], Any] | None = None,
    linear: bool = False,
    transpose: Callable | None = None,
    of_tangents: bool = False,
) -> Primitive:
    """An elementwise primitive.

    jvp: one rule (one operand), a tuple of rules (one each, None where no tangent flows), or None
    when the result carries no tangents. loops: `fn(e, *values, **params)`.
    """
    primitive: Primitive
    rules = jvp if isinstance(jvp, tuple) else (jvp,)
    primitive = Primitive(
        name,
        abstract=elementwise_abstract(
            name, accepts, result, operands=loops.__code__.co_argcount - 1
        ),
        reference=reference,
        jvp=None if jvp is None else elementwise_jvp(lambda: primitive, rules, of_tangents),
        differentiable=jvp is not None,
        batch=elementwise_batch(lambda: primitive),
        loops=elementwise_loops(loops),
        elementwise=True,
        linear=linear,
        transpose=transpose,
    )
    return primitive


def is_linear(x: Any) -> bool:
    return type(x) is Linear


def quiet(function: Callable) -> Callable:
    """A NumPy function whose result keeps the operand's dtype (16-bit types go through float32)."""

    def call(*args: np.ndarray, **_: Any) -> np.ndarray:
        dtype = args[0].dtype
        if dtype.itemsize <= 2 and dtypes.is_floating(dtype):
            return np.asarray(function(*[a.astype(np.float32) for a in args])).astype(dtype)
        return function(*args)

    call.plain = function  # type: ignore[attr-defined] # for those who know that the types are wide
    return call


def pair(x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands as arrays; a Python scalar takes the dtype of the array beside it, unless that
    would lose a part of it (1.5 beside integers): then the primitive refuses the pair.
    """
    if type(x) is ArrayImpl and type(y) is ArrayImpl:
        return x, y
    if isinstance(x, Array) and isinstance(y, Array) and x.aval.dtype is y.aval.dtype:
        return x, y
    a, b = as_array(x), as_array(y)
    if a.dtype != b.dtype:
        if b.weak_type and not b.shape and _fits(b, a):
            b = convert(b, a.dtype, True)
        elif a.weak_type and not a.shape and _fits(a, b):
            a = convert(a, b.dtype, True)
    return a, b


def _fits(scalar: Any, array: Any) -> bool:
    """Whether the weakly typed `scalar` beside `array` leaves the array's dtype as it is."""
    dtype: np.dtype = array.dtype
    return dtypes.promote_wide((scalar.dtype, True), (dtype, array.weak_type)) == dtype


def constant_like(x: Any, value: Any) -> Any:
    """A weakly typed scalar of `x`'s dtype."""
    dtype = x.aval.dtype
    key = (dtype, type(value), value)
    found = _constants.get(key)
    if found is None:
        found = ArrayImpl(np.asarray(value, dtype), ShapedArray((), dtype, True))
        if value:  # 0.0 equals -0.0, so zeros are made anew
            _constants[key] = found
    return found


# Constants of rules that were made before: most are small numbers.
_constants: dict[tuple, ArrayImpl] = Memo("constants of rules")
