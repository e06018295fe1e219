"""Differences, integrals, interpolation, convolution and polynomials."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from numjet.api.compiled.shown import FLAG, wanted
from numjet.base.errors import ConcretizationTypeError, ShardingTypeError
from numjet.core import dtypes
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.dims import any_symbolic, largest
from numjet.core.hooks import Sharded
from numjet.core.structural import placed_like
from numjet.core.trace import Tracer, concrete_or_none
from numjet.numpy import lax_names as lax, linalg
from numjet.numpy.creation import array, zeros
from numjet.numpy.cumulative import cumsum
from numjet.numpy.elementwise import (
    absolute,
    add,
    clip,
    divide,
    floor_divide,
    maximum,
    multiply,
    negative,
    remainder,
    subtract,
)
from numjet.numpy.indexing import getitem
from numjet.numpy.joining import concatenate
from numjet.numpy.logic import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    not_equal,
    where,
)
from numjet.numpy.products import dot, outer
from numjet.numpy.promote import (
    as_arrays,
    broadcast,
    canonical_axes,
    canonical_axis,
    cast,
    int_dtype,
    join_shapes,
    one_array,
    promote_dtypes,
    promote_inexact,
)
from numjet.numpy.ranges import arange, vander
from numjet.numpy.reductions import argmax, sum as sum_
from numjet.numpy.repetition import trim_zeros
from numjet.numpy.shape import broadcast_to, moveaxis, ravel, reshape
from numjet.numpy.sorting import argsort, searchsorted
from numjet.ops.arrange import broadcast_shapes
from numjet.ops.conv import conv_general_dilated
from numjet.ops.scan import scan


def _section(x: Any, axis: int, start: int | None, stop: int | None) -> Any:
    return getitem(x, (slice(None),) * axis + (slice(start, stop),))


# ------------------------------------------------------------------ differences and sums
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """The differences of neighbours along `axis`, taken n times.

    a: numbers with at least one axis (ValueError), whose dtype the result has; of booleans whether
    they differ. n: a Python integer, not negative (ValueError); each time the axis gets one
    shorter. prepend, append: what is joined to the ends before; scalars are repeated.

    >>> jnp.diff(jnp.array([1, 4, 9, 16])), jnp.diff(jnp.array([1, 4, 9, 16]), n=2)
    (Array([3, 5, 7], dtype=int32), Array([2, 2], dtype=int32))
    """
    x = one_array("diff", a)
    n = operator.index(n)
    if n < 0:
        raise ValueError(f"diff: order must be non-negative but got {n}.")
    if not x.aval.ndim:
        raise ValueError("diff requires input that is at least one dimensional.")
    if not n:
        return x
    axis = canonical_axis(axis, x.aval.ndim, "diff")
    parts = [x]
    for extra, front in ((prepend, True), (append, False)):
        if extra is not None:
            e = one_array("diff", extra)
            if not e.aval.ndim:
                e = broadcast(e, x.aval.shape[:axis] + (1,) + x.aval.shape[axis + 1 :])
            parts.insert(0, e) if front else parts.append(e)
    x = concatenate(parts, axis)
    combine = not_equal if x.aval.dtype == dtypes.bool_ else subtract
    for _ in range(n):
        x = combine(_section(x, axis, 1, None), _section(x, axis, None, -1))
    return x


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """The differences of neighbours of the flattened array.

    ary: numbers of any shape. to_begin, to_end: what is put before and behind them, as their dtype.
    TypeError for booleans.

    >>> jnp.ediff1d(jnp.array([1, 4, 9]), to_end=0)
    Array([3, 5, 0], dtype=int32)
    """
    x = ravel(one_array("ediff1d", ary))
    out = subtract(getitem(x, slice(1, None)), getitem(x, slice(None, -1)))
    parts = [out]
    for extra, front in ((to_begin, True), (to_end, False)):
        if extra is not None:
            e = cast(ravel(one_array("ediff1d", extra)), out.aval.dtype)
            parts.insert(0, e) if front else parts.append(e)
    return concatenate(parts) if len(parts) > 1 else out


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int | None = None) -> Any:
    """Derivatives along axes: central differences, one-sided ones at the ends.

    f: numbers; integers count as floats. varargs: the spacing: none for 1, one for all axes, or one
    for each; a number, or a vector of coordinates. axis: an integer, a tuple, or None for all.
    edge_order: None only (NotImplementedError); ends are of order 1. Returns an Array for one axis,
    a list for several. ValueError for axes shorter than 2, TypeError for a number of spacings that
    does not fit. Source: Fornberg, Math. Comp. 51 (1988), for coordinates that are not even.

    >>> jnp.gradient(jnp.array([1.0, 4.0, 9.0, 16.0]))
    Array([3., 4., 6., 7.], dtype=float32)
    """
    if edge_order is not None:
        raise NotImplementedError("gradient: edge_order is not supported. Leave it out.")
    given = [array(h) if isinstance(h, (list, tuple)) else h for h in varargs]
    x, *steps = promote_inexact(*as_arrays("gradient", f, *given))
    axes = canonical_axes(axis, x.aval.ndim, "gradient")
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError(f"gradient: give no spacing, one, or one for each of {len(axes)} axes.")
    steps = steps or [cast(as_array(1.0), x.aval.dtype, True)]
    steps = steps * len(axes) if len(steps) == 1 else steps
    out = [_gradient_along(x, i, h) for i, h in zip(axes, steps)]
    return out[0] if len(out) == 1 else out


def _gradient_along(x: Any, axis: int, h: Any) -> Any:
    n = x.aval.shape[axis]
    if n < 2:
        raise ValueError(f"gradient: axis {axis} has size {n}; at least 2 elements are needed.")
    up, down = _section(x, axis, 2, None), _section(x, axis, None, -2)
    first = subtract(_section(x, axis, 1, 2), _section(x, axis, 0, 1))
    last = subtract(_section(x, axis, n - 1, n), _section(x, axis, n - 2, n - 1))
    if not h.aval.ndim:
        inner = divide(subtract(up, down), multiply(h, 2))
        return concatenate([divide(first, h), inner, divide(last, h)], axis)
    if h.aval.shape != (n,):
        raise ValueError(
            f"gradient: spacing arrays must have the same length as the axis, {n} for axis {axis}, "
            f"got {h.aval.shape}."
        )
    lanes = [1] * x.aval.ndim
    lanes[axis] = -1
    gaps = subtract(getitem(h, slice(1, None)), getitem(h, slice(None, -1)))
    left, right = (
        reshape(g, tuple(lanes))
        for g in (getitem(gaps, slice(None, -1)), getitem(gaps, slice(1, None)))
    )
    middle = _section(x, axis, 1, -1)
    a = divide(negative(right), multiply(left, add(left, right)))
    b = divide(subtract(right, left), multiply(left, right))
    c = divide(left, multiply(right, add(left, right)))
    inner = add(add(multiply(a, down), multiply(b, middle)), multiply(c, up))
    return concatenate(
        [divide(first, getitem(gaps, 0)), inner, divide(last, getitem(gaps, -1))], axis
    )


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples along `axis` by the trapezoidal rule.

    y: numbers with at least one axis (ValueError); integers count as floats. x: the coordinates, a
    vector or of y's shape; without them samples are `dx` apart. So do booleans, whose sums NumPy
    takes as `or`.

    >>> jnp.trapezoid(jnp.array([0.0, 1.0, 4.0]), dx=2.0)
    Array(6., dtype=float32)
    """
    if x is None:
        (y,) = promote_inexact(one_array("trapezoid", y))
        n = y.aval.ndim
        if not n:
            raise ValueError("trapezoid: y must have at least one axis.")
        k = canonical_axis(axis, n)
        pairs = add(_section(y, k, 1, None), _section(y, k, None, -1))
        dx = one_array("trapezoid", dx)
        join_shapes("trapezoid", [dx.aval.shape, pairs.aval.shape], TypeError)
        return multiply(0.5, sum_(multiply(dx, pairs), k))
    else:
        y, x = promote_inexact(*as_arrays("trapezoid", y, x))
        y = moveaxis(y, axis, -1)
        x = x if x.aval.ndim == 1 else moveaxis(x, axis, -1)
        step = diff(x)
        step = reshape(step, (1,) * (y.aval.ndim - step.aval.ndim) + step.aval.shape)
    pairs = add(getitem(y, (..., slice(1, None))), getitem(y, (..., slice(None, -1))))
    return multiply(0.5, sum_(multiply(step, pairs), -1))


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """The values at x of the polygon through the points (xp, fp).

    x: real numbers of any shape. xp: a vector of real numbers that rises; fp: one of its length,
    whose numbers may be complex (ValueError otherwise). Integers count as floats. left, right: the
    values outside, by default those at the ends; or 'extrapolate'. period: xp repeats with this
    period, and may be in any order. At xp the derivative is that on the right; it flows to x, xp
    and fp.

    >>> jnp.interp(jnp.array([1.5, 9.0]), jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 10.0, 30.0]))
    Array([ 5., 30.], dtype=float32)
    """
    given = as_arrays("interp", x, xp, fp)
    if any([dtypes.is_complex(v.aval.dtype) for v in given[:2]]):
        raise ValueError("jnp.interp: complex x values not supported. Those of fp may be complex.")
    x, xp, fp = [*promote_inexact(*given[:2]), *promote_inexact(given[2])]
    if xp.aval.ndim != 1 or fp.aval.shape != xp.aval.shape:
        raise ValueError(
            "xp and fp must be one-dimensional arrays of equal size, got "
            f"{xp.aval} and {fp.aval} (interp)."
        )
    if period is not None:
        if xp.aval.shape[0] == 0:
            raise ValueError("interp: xp is empty.")
        p = cast(lax.abs(one_array("interp", period)), x.aval.dtype)
        if p.aval.ndim:
            raise ValueError(f"interp: period must be a scalar; got {p.aval}.")
        x, xp = remainder(x, p), remainder(xp, p)
        order = argsort(xp)
        xp, fp = getitem(xp, order), getitem(fp, order)
        xp = concatenate(
            [reshape(subtract(getitem(xp, -1), p), (1,)), xp, reshape(add(getitem(xp, 0), p), (1,))]
        )
        fp = concatenate([reshape(getitem(fp, -1), (1,)), fp, reshape(getitem(fp, 0), (1,))])
    n = xp.aval.shape[0]
    i = clip(searchsorted(xp, x, side="right"), 1, largest(n - 1, 1))
    x0, x1 = getitem(xp, subtract(i, 1)), getitem(xp, i)
    f0, f1 = getitem(fp, subtract(i, 1)), getitem(fp, i)
    width = subtract(x1, x0)
    f0, f1, _ = promote_dtypes(f0, f1, width)   # slopes of 16-bit values are as exact as points
    # Points closer than this count as one: the slope between them would not be finite.
    flat = less_equal(absolute(width), np.spacing(np.finfo(width.aval.dtype).eps))
    slope = divide(subtract(f1, f0), where(flat, 1, width))
    out = where(flat, f0, add(f0, multiply(subtract(x, x0), slope)))
    extrapolate = "extrapolate"
    for name, end in (("left", left), ("right", right)):
        if isinstance(end, str) and end != extrapolate:
            raise ValueError(
                f"the only valid string value of `{name}` is 'extrapolate', but got: {end!r}"
            )
    if period is None:
        if not (isinstance(left, str) and left == extrapolate):
            out = where(less(x, getitem(xp, 0)), getitem(fp, 0) if left is None else left, out)
        if not (isinstance(right, str) and right == extrapolate):
            out = where(less(getitem(xp, -1), x), getitem(fp, -1) if right is None else right, out)
    return out


def unwrap(p: Any, discont: Any = None, axis: int = -1, period: Any = 2 * math.pi) -> Any:
    """`p` along `axis` with multiples of `period` added, so that no step is larger than half of it.

    p: real numbers, such as angles. discont: steps of less than this stay, where it is larger than
    half a period. period: 2 pi by default. ValueError for complex numbers. Integers and booleans
    count as floats. NumPy makes booleans integers. IndexError for an axis out of range.

    >>> jnp.unwrap(jnp.array([0, 3, 5, 1]), period=6)
    Array([0, 3, 5, 7], dtype=int32)
    """
    x = one_array("unwrap", p)
    if dtypes.is_complex(x.aval.dtype):
        raise ValueError("jnp.unwrap does not support complex inputs.")
    if x.aval.dtype == dtypes.bool_:
        (x,) = promote_inexact(x)
    axis = canonical_axis(axis, x.aval.ndim, "unwrap", IndexError)
    x, whole = promote_dtypes(x, one_array("unwrap", period))
    if dtypes.is_integer(x.aval.dtype):
        half = floor_divide(whole, 2)
        ambiguous = equal(remainder(whole, 2), 0)
    else:
        half, ambiguous = divide(whole, 2), True
    limit = half if discont is None else maximum(half, discont)
    steps = diff(x, axis=axis)
    wrapped = subtract(remainder(add(steps, half), period), half)
    at_edge = logical_and(equal(wrapped, negative(half)), greater(steps, 0))
    wrapped = where(logical_and(at_edge, ambiguous), half, wrapped)
    correction = subtract(wrapped, steps)
    correction = where(greater_equal(absolute(steps), limit), correction, 0)
    rest = cumsum(correction, axis)
    k = axis % x.aval.ndim
    first = min(1, x.aval.shape[k])
    head = lax.slice_in_dim(x, 0, first, axis=k)
    tail = lax.slice_in_dim(x, first, x.aval.shape[k], axis=k)
    return lax.concatenate([cast(head, rest.aval.dtype), cast(add(tail, rest), rest.aval.dtype)], k)


# ------------------------------------------------------------------ convolution
# So many numbers in all windows are a product of these; of more the windows are not written down
# (1,000,000 numbers with 64: 50 ms and 500 MB of windows and places so, else 3.3 ms).
_WINDOWS = 1 << 14


def _of_windows(x: Any, kernel: Any, low: int, high: int, precision: Any, preferred: Any) -> Any:
    """Windows as rows of a gather: one product with the kernel."""
    padded = lax.pad(x, lax.full((), 0, x.aval.dtype), [(low, high, 0)])
    m = kernel.aval.size
    size = padded.aval.size - m + 1
    if any_symbolic((size, m)):
        rows = add(*[lax.broadcasted_iota(dtypes.int32, (size, m), i) for i in (0, 1)])
    else:
        places = np.arange(size, dtype=np.int32)[:, None] + np.arange(m, dtype=np.int32)[None]
        rows = ArrayImpl(places, ShapedArray(places.shape, places.dtype))
    return dot(getitem(padded, rows), kernel, precision=precision, preferred_element_type=preferred)


def _convolution(
    name: str, a: Any, v: Any, mode: str, flip_v: bool, precision: Any, preferred: Any
) -> Any:
    x, y = promote_inexact(*as_arrays(name, a, v))
    if x.aval.ndim != 1 or y.aval.ndim != 1:
        raise ValueError(
            f"{name}() only support 1-dimensional inputs, got {x.aval} and {y.aval}."
        )
    if not x.aval.size or not y.aval.size:
        raise ValueError(f"{name}: inputs cannot be empty, got {x.aval} and {y.aval}.")
    swapped = x.aval.size < y.aval.size
    if swapped:
        x, y = y, x
    placed = x.aval.placed
    if y.aval.placed is not None:
        raise ShardingTypeError(
            f"{name}: Please specify the output sharding: the shorter of {x.aval} and {y.aval} is "
            "cut over Explicit axes. Lay it out whole with numjet.reshard."
        )
    x = placed_like(x, x.aval.bare())  # windows reach from part to part
    m = y.aval.size
    pads = {"full": (m - 1, m - 1), "same": (m // 2, m - m // 2 - 1), "valid": (0, 0)}
    if mode not in pads:
        raise ValueError(f"{name}: mode must be one of {sorted(pads)}, got {mode!r}.")
    low, high = pads[mode]
    kernel = lax.rev(y, (0,)) if flip_v else y
    size = x.aval.size + low + high - m + 1
    symbolic = any_symbolic((size, m))
    # Results of convolutions are cut as their operands, those of gathers are not.
    many = size * m >= _WINDOWS or Sharded.active and isinstance(x, Tracer)
    if not symbolic and many and not dtypes.is_complex(x.aval.dtype):
        out = conv_general_dilated(
            reshape(x, (1, 1, x.aval.size)), reshape(kernel, (1, 1, m)), (1,), [(low, high)],
            precision=precision, preferred_element_type=preferred,
        )  # fmt: skip
        out = reshape(out, (size,))
    else:
        out = _of_windows(x, kernel, low, high, precision, preferred)
    out = cast(out, out.aval.dtype, y.aval.weak_type and preferred is None)
    out = lax.rev(out, (0,)) if swapped and not flip_v else out
    if placed is None:
        return out
    parts = math.prod([placed.mesh.shape[a] for axes in placed.layout(1) for a in axes])
    if size % parts:
        raise ShardingTypeError(
            f"{name}: the {size} elements of the result are not divisible by the {parts} parts "
            f"that {x.aval} is cut into. Lay the operand out whole with numjet.reshard."
        )
    return placed_like(out, out.aval.with_axes(placed, tuple(placed.spec)))


def convolve(
    a: Any, v: Any, mode: str = "full", *, precision: Any = None, preferred_element_type: Any = None
) -> Any:
    """The convolution of two vectors: element k is the sum of a[i] * v[k - i].

    a, v: vectors that are not empty (ValueError), which promote; integers count as floats. mode:
    'full' gives all n + m - 1 elements, 'same' the middle ones, as many as the longer vector has,
    'valid' those where they overlap whole (ValueError for others). precision,
    preferred_element_type: as in `matmul`. Computed as a product, not by Fourier transforms. NumPy
    keeps integers.

    >>> jnp.convolve(jnp.array([1, 2, 3]), jnp.array([1, 10]))
    Array([ 1., 12., 23., 30.], dtype=float32)
    """
    return _convolution("convolve", a, v, mode, True, precision, preferred_element_type)


def correlate(
    a: Any,
    v: Any,
    mode: str = "valid",
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """The cross-correlation of two vectors: element k is the sum of a[i + k] * conj(v[i]).

    a, v: vectors that are not empty (ValueError), which promote; integers count as floats. mode,
    precision, preferred_element_type: as in `convolve`. NumPy keeps integers.

    >>> jnp.correlate(jnp.array([1, 2, 3]), jnp.array([1, 10]))
    Array([21., 32.], dtype=float32)
    """
    x, y = as_arrays("correlate", a, v)
    if dtypes.is_complex(y.aval.dtype):
        y = lax.conj(y)
    return _convolution("correlate", x, y, mode, False, precision, preferred_element_type)


# ------------------------------------------------------------------ polynomials
# Polynomials of more coefficients are computed in a loop.
_UNROLLED = 128


def polyval(p: Any, x: Any, *, unroll: int = 16) -> Any:
    """The polynomial with the coefficients p at x, by Horner's scheme.

    p: [n, ...], the highest power first; x: numbers of any shape, which broadcasts with p's other
    axes. They promote. unroll: has no effect. ValueError for a scalar p. Narrow integers keep their
    dtype (NumPy: int64).

    >>> jnp.polyval(jnp.array([1, 2, 3]), 2)
    Array(11, dtype=int32)
    """
    p, x = promote_dtypes(*as_arrays("polyval", p, x))
    if p.aval.ndim < 1:
        raise ValueError("polyval: p must have at least one dimension.")
    out = broadcast(
        lax.full((), 0, x.aval.dtype), broadcast_shapes(x.aval.shape, p.aval.shape[1:])
    )
    as_scan = FLAG.uses and wanted()
    if p.aval.shape[0] > _UNROLLED or as_scan:
        rounds = unroll if as_scan else 1
        return scan(lambda out, c: (add(multiply(out, x), c), None), out, p, unroll=rounds)[0]
    for i in range(p.aval.shape[0]):
        out = add(multiply(out, x), getitem(p, i))
    return out


def _sum_of_polynomials(x: Any, y: Any) -> Any:
    """The longer of two with the other added to its end; coefficients may be arrays."""
    if y.aval.shape[0] > x.aval.shape[0]:
        x, y = y, x
    start = x.aval.shape[0] - y.aval.shape[0]
    end = add(getitem(x, slice(start, None)), broadcast_to(y, (y.aval.shape[0], *x.aval.shape[1:])))
    return concatenate([getitem(x, slice(0, start)), end]) if start else end


def _coefficients(name: str, *given: Any) -> list[Any]:
    """The arrays given, none of which is a scalar."""
    found = as_arrays(name, *given)
    for x in found:
        if not x.aval.ndim:
            raise IndexError(
                f"{name}: coefficients must be a vector, got {x.aval.str_short()}. Pass "
                "numpy.atleast_1d(x) for a constant."
            )
    return list(found)


def polyadd(a1: Any, a2: Any) -> Any:
    """The sum of two polynomials.

    a1, a2: vectors of coefficients, the highest power first, which promote. Leading zeros stay.
    Arrays have a coefficient in each row, and the shorter's broadcast to the longer's. IndexError
    for scalars, ValueError for arrays that do not fit.

    >>> jnp.polyadd(jnp.array([1, 2]), jnp.array([1, 0, 0]))
    Array([1, 1, 2], dtype=int32)
    """
    x, y = promote_dtypes(*_coefficients("polyadd", a1, a2))
    return _sum_of_polynomials(x, y)


def polysub(a1: Any, a2: Any) -> Any:
    """The difference of two polynomials.

    a1, a2: vectors of coefficients, the highest power first, which promote. Leading zeros stay.
    IndexError for scalars, ValueError for arrays that do not fit.

    >>> jnp.polysub(jnp.array([1, 2]), jnp.array([1, 0, 0]))
    Array([-1,  1,  2], dtype=int32)
    """
    x, y = promote_dtypes(*_coefficients("polysub", a1, a2))
    return polyadd(x, negative(y))


def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Any:
    """The product of two polynomials, in floats.

    a1, a2: vectors of coefficients, no lists (TypeError), the highest power first, which promote.
    trim_leading_zeros: leave out leading zeros first, which NumPy does; needs known values
    (TypeError). Result: a vector of n1 + n2 - 1 coefficients; integers become floats. ValueError
    for what are no vectors.

    >>> jnp.polymul(jnp.array([1, 2]), jnp.array([1, -2]))
    Array([ 1.,  0., -4.], dtype=float32)
    """
    x, y = as_arrays("polymul", a1, a2)
    if trim_leading_zeros:
        x, y = (_trim_front(v) for v in (x, y))
    # The polynomial without coefficients is 0.
    x, y = (v if v.aval.size else zeros(1, v.aval.dtype) for v in (x, y))
    return convolve(x, y)


def _trim_front(x: Any) -> Any:
    known = concrete_or_none(x)
    if known is None:
        x._need_concrete(
            ConcretizationTypeError,
            "trim_leading_zeros: the result's size depends on the coefficients",
            "Call it outside of transformations.",
        )
    used = np.flatnonzero(known._value)
    return getitem(x, slice(int(used[0]) if used.size else x.aval.size - 1, None))


def polydiv(u: Any, v: Any, *, trim_leading_zeros: bool = False) -> tuple[Any, Any]:
    """(quotient, remainder) of two polynomials.

    u, v: vectors of coefficients, the highest power first, which promote; integers count as floats.
    trim_leading_zeros: leave out the remainder's leading zeros, which NumPy does; needs known
    values (TypeError). IndexError for scalars, ValueError for arrays that do not fit.

    >>> jnp.polydiv(jnp.array([1, -3, 3]), jnp.array([1, -1]))
    (Array([ 1., -2.], dtype=float32), Array([0., 0., 1.], dtype=float32))
    """
    u, v = promote_inexact(*_coefficients("polydiv", u, v))
    m, n = u.aval.shape[0] - 1, v.aval.shape[0] - 1
    count = max(m - n + 1, 1)
    scale = divide(1.0, getitem(v, 0))
    quotient = lax.full((count,), 0, u.aval.dtype)
    rest = u
    for k in range(m - n + 1):
        d = multiply(scale, getitem(rest, k))
        quotient = quotient.at[k].set(d)
        rest = rest.at[k : k + n + 1].add(multiply(negative(d), v))
    if trim_leading_zeros:
        rest = trim_zeros(rest, "f")
    return quotient, rest


def _falling(n: int, dtype: Any) -> Any:
    """n, n - 1, ... 1."""
    return cast(subtract(n, lax.iota(int_dtype(), n)), dtype)


def polyder(p: Any, m: int = 1) -> Any:
    """The coefficients of the m-th derivative of a polynomial.

    p: a vector of coefficients, the highest power first; integers count as floats. m: a Python
    integer, not negative (ValueError). Of a constant there are no coefficients. IndexError for
    scalars. NumPy keeps integers.

    >>> jnp.polyder(jnp.array([1, 2, 3]))
    Array([2., 2.], dtype=float32)
    """
    (p,) = promote_inexact(*_coefficients("polyder", p))
    m = operator.index(m)
    if m < 0:
        raise ValueError("polyder: the order of derivative must be positive.")
    for _ in range(m):
        n = p.aval.shape[0]
        if n <= 1:
            return lax.full((0,), 0, p.aval.dtype)
        p = multiply(getitem(p, slice(None, -1)), _falling(n - 1, p.aval.dtype))
    return p


def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """The coefficients of the m-th integral of a polynomial.

    p: a vector of coefficients, the highest power first; integers count as floats. m: a Python
    integer, not negative (ValueError). k: the constants of the integrals, one or m (ValueError), no
    list (TypeError); 0 by default. IndexError for scalars, TypeError for more than one axis.

    >>> jnp.polyint(jnp.array([2, 2]), k=7)
    Array([1., 2., 7.], dtype=float32)
    """
    (p,) = _coefficients("polyint", p)
    m = operator.index(m)
    if m < 0:
        raise ValueError("polyint: the order of integral must be positive.")
    p, *own = promote_inexact(p, *([] if k is None else [one_array("polyint", k)]))
    k = own[0] if own else None
    if k is not None and np.shape(k) not in ((), (1,), (m,)):
        raise ValueError(
            "polyint: k must be a scalar or a rank-1 array of length 1 or m, got shape "
            f"{np.shape(k)} for m={m}."
        )
    constants = (
        lax.full((m,), 0, p.aval.dtype)
        if k is None
        else broadcast(reshape(cast(k, p.aval.dtype), (-1,)), (m,))
    )
    for i in range(m):
        # The constant is joined first and divided by 1: what is joined after a division was made
        # would pass memory twice.
        n = p.aval.shape[0]
        divisors = cast(maximum(subtract(n, lax.iota(int_dtype(), n + 1)), 1), p.aval.dtype)
        p = divide(concatenate([p, getitem(constants, slice(i, i + 1))]), divisors)
    return p


def poly(seq_of_zeros: Any) -> Any:
    """The coefficients of the polynomial with given roots, the highest power, whose coefficient is
    1, first.

    seq_of_zeros: a vector of roots, or a square matrix, whose eigenvalues are the roots: its
    characteristic polynomial, complex here (NumPy makes it real where it is). ValueError for more
    axes. Integers and booleans count as floats.

    >>> jnp.poly(jnp.array([1, 2]))
    Array([ 1., -3.,  2.], dtype=float32)
    """
    (roots_,) = promote_inexact(one_array("poly", seq_of_zeros))
    roots_ = roots_ if roots_.aval.ndim else reshape(roots_, (1,))
    if roots_.aval.ndim == 2:
        roots_ = linalg.eigvals(roots_)
    elif roots_.aval.ndim > 2:
        raise ValueError("poly: input must be 1-d or a square 2-d array.")
    if 0 in roots_.aval.shape:
        return lax.full((), 1, roots_.aval.dtype)
    out = lax.full((1,), 1, roots_.aval.dtype)
    zero = lax.full((), 0, roots_.aval.dtype)
    for i in range(roots_.aval.shape[0]):
        shifted = lax.pad(out, zero, [(1, 0, 0)])
        out = subtract(lax.pad(out, zero, [(0, 1, 0)]), multiply(getitem(roots_, i), shifted))
    return out


def roots(p: Any, *, strip_zeros: bool = True) -> Any:
    """The roots of a polynomial, complex: the eigenvalues of its companion matrix.

    p: a vector of coefficients, the highest power first. strip_zeros: leave out leading zeros
    first, which needs known values (TypeError); without it they give NaN at the end, and roots that
    are 0 stand before these. IndexError for scalars, ValueError for more than one axis. Computed by
    `lax.linalg.eig`. Always complex (NumPy: real where all roots are).

    >>> jnp.roots(jnp.array([1, -3, 2])).round(3)
    Array([2.+0.j, 1.+0.j], dtype=complex64)
    """
    (p,) = promote_inexact(*_coefficients("roots", p))
    if p.aval.ndim > 1:
        raise ValueError(f"roots: Input must be a rank-1 array, got {p.aval.str_short()}.")
    if strip_zeros and p.aval.size > 1:
        known = concrete_or_none(p)
        if known is None:
            p._need_concrete(
                ConcretizationTypeError,
                "roots: with strip_zeros the result's size depends on the coefficients",
                "Pass strip_zeros=False.",
            )
        used = np.flatnonzero(known._value)
        if not used.size:
            return lax.full((0,), 0, dtypes.complex_of(p.aval.dtype))
        p = getitem(p, slice(int(used[0]), None))
    n = p.aval.shape[0] - 1
    if n < 1:
        return lax.full((0,), 0, dtypes.complex_of(p.aval.dtype))
    places, leading = arange(n), 0
    if not strip_zeros:
        # Leading zeros go to the end, where each is a root 0, which takes the place of a NaN.
        leading = argmax(not_equal(p, 0))
        p = getitem(p, remainder(add(arange(n + 1), leading), n + 1))
    first = divide(negative(getitem(p, slice(1, None))), getitem(p, 0))
    below = array(np.eye(n - 1, n), dtype=p.aval.dtype)
    found = linalg.eigvals(concatenate([reshape(first, (1, n)), below], 0))
    if strip_zeros:
        return found
    found = getitem(found, argsort(equal(found, 0)))
    nan = array(complex(np.nan, np.nan), dtype=found.aval.dtype)
    return where(less(places, subtract(n, leading)), found, nan)


def polyfit(
    x: Any,
    y: Any,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: Any = None,
    cov: bool = False,
) -> Any:
    """The polynomial of degree `deg` that fits points best: least squares by singular values.

    x: a vector; y: a vector of its length, or a matrix with a column for each polynomial. rcond:
    singular values below this part of the largest count as 0; by default the rounding error times
    the number of points. w: weights of the differences, not of their squares. full: also give
    (residuals, rank, singular values, rcond). cov: also give the covariance matrix, scaled by the
    residuals unless it is 'unscaled'. Returns coefficients, the highest power first. TypeError for
    arrays that do not fit, ValueError for a negative degree and for too few points to scale.
    Integers and booleans count as floats. Computed by `lax.linalg.svd`.

    >>> jnp.polyfit(jnp.array([0.0, 1.0, 2.0]), jnp.array([1.0, 3.0, 5.0]), 1).round(3)
    Array([2., 1.], dtype=float32)
    """
    x, y = as_arrays("polyfit", x, y)
    if rcond is None and not dtypes.is_inexact(x.aval.dtype):
        raise ValueError(f"polyfit: x must have floats, or rcond be given; got {x.aval.dtype}.")
    x, y = [promote_inexact(a)[0] for a in (x, y)]
    x, y = promote_inexact(x, y)
    order = operator.index(deg) + 1
    if deg < 0:
        raise ValueError(f"polyfit: expected deg >= 0, got {deg}.")
    told = (
        "expected 1D vector for x" if x.aval.ndim != 1
        else "expected non-empty vector for x" if not x.aval.size
        else "expected 1D or 2D array for y" if y.aval.ndim not in (1, 2)
        else "expected x and y to have same length" if x.aval.shape[0] != y.aval.shape[0]
        else None
    )
    if told is not None:
        raise TypeError(f"polyfit: {told}, got {x.aval}, {y.aval}.")
    if rcond is None:
        rcond = len(x) * float(np.finfo(x.aval.dtype).eps)
    lhs, rhs = vander(x, order), y
    if w is not None:
        (weight,) = promote_inexact(one_array("polyfit", w))
        if weight.aval.ndim != 1:
            raise TypeError(f"polyfit: expected a 1-d array for weights, got {weight.aval}.")
        if weight.aval.shape != y.aval.shape[:1]:
            raise TypeError(
                f"polyfit: expected w and y to have the same length, got {weight.aval}, {y.aval}."
            )
        lhs = multiply(lhs, reshape(weight, (-1, 1)))
        rhs = multiply(rhs, weight if y.aval.ndim == 1 else reshape(weight, (-1, 1)))
    scale = lax.sqrt(sum_(multiply(lhs, lhs), 0))
    scaled_lhs = divide(lhs, reshape(scale, (1, -1)))
    solution, residuals, rank, singular = linalg.lstsq(scaled_lhs, rhs, rcond)
    c = divide(solution, scale if y.aval.ndim == 1 else reshape(scale, (-1, 1)))
    if full:
        return c, residuals, rank, singular, array(float(rcond))
    if cov:
        base = divide(
            linalg.inv(dot(lax.transpose(lhs, (1, 0)), lhs)),
            outer(lax.full((order,), 1, x.aval.dtype), lax.full((order,), 1, x.aval.dtype)),
        )
        if cov == "unscaled":
            factor: Any = 1.0
        else:
            if len(x) <= order:
                raise ValueError(
                    "polyfit: the number of data points must exceed deg to scale the "
                    "covariance matrix."
                )
            factor = divide(residuals, len(x) - order)
        if isinstance(factor, Array):
            factor = reshape(factor, (1, 1) if y.aval.ndim == 1 else (1, 1, -1))
        scaled = (
            multiply(base, factor)
            if y.aval.ndim == 1
            else multiply(reshape(base, (order, order, 1)), factor)
        )
        return c, scaled
    return c
