"""Arrays by rule: ranges and grids of numbers, identities and triangles, windows.

For every module above `creation`, which holds arrays from values. What would break it: bounds and
lengths that are traced where they decide the shape; bounds of linspace and geomspace, which do not,
may be.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from numjet.api.compiled.shown import FLAG, apart, as_call, kept, wanted
from numjet.base.config import jax_form as in_jax_form, numeric_checks
from numjet.base.errors import ConcretizationTypeError
from numjet.core import dtypes, structural
from numjet.core.array import Array, ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.dims import any_symbolic, index_of, largest
from numjet.core.structural import scalar
from numjet.core.trace import Tracer, concrete_or_none, current_trace
from numjet.numpy import lax_names as lax
from numjet.numpy.creation import array, placed, zeros
from numjet.numpy.elementwise import add, divide, multiply, power, subtract
from numjet.numpy.logic import where
from numjet.numpy.promote import (
    broadcast,
    canonical_axis,
    canonical_dtype,
    canonical_shape,
    cast,
    float_dtype,
    inexact_dtype,
    int_dtype,
    join_shapes,
    one_array,
    promote_inexact,
    promoted,
    strong,
)
from numjet.numpy.scalar_types import dtype_and_weak
from numjet.ops.families import NUMERIC, refusal
from numjet.ops.fma import fma, fused


# ------------------------------------------------------------------ ranges
def _concrete(x: Any, name: str, what: str) -> Any:
    if isinstance(x, Array):
        if x.aval.shape:
            raise ValueError(f"{name}: arguments must be scalars; got {what}={x}")
        if isinstance(x, Tracer):
            x = x._need_concrete(
                ConcretizationTypeError,
                f"It arose in the jnp.{name} argument {what!r}: {name} needs a concrete {what}",
                "The result's shape depends on it: make it static, or use "
                "lax.broadcasted_iota with a fixed size.",
            )
        return x._value[()]
    return x


def arange(
    start: Any,
    stop: Any = None,
    step: Any = None,
    dtype: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Evenly spaced values: start, start + step, ... before stop.

    start, stop, step: real numbers whose values are known (ConcretizationTypeError while tracing;
    ValueError for arrays with axes and complex numbers, TypeError for lists, ZeroDivisionError for
    a step of 0). With one argument that is the stop, the start 0; the step is 1 by default. dtype:
    by default that to which they promote. device: where it is placed. out_sharding: the layout of
    the result. With a fractional step the size may be one off: use `linspace`.

    >>> jnp.arange(3), jnp.arange(1, 8, 2)
    (Array([0, 1, 2], dtype=int32), Array([1, 3, 5, 7], dtype=int32))
    """
    if (
        type(start) is int
        and dtype is None
        and device is None
        and out_sharding is None
        and current_trace().at_once
        and (step is None or type(step) is int and step)
        and (stop is None or type(stop) is int)
    ):
        kind = int_dtype()
        low, high = (0, start) if stop is None else (start, stop)
        by = 1 if step is None else step
        dtypes.check_elements((high - low) // by, "arange")
        value = np.arange(low, high, by).astype(kind)
        return placed(ArrayImpl(value, ShapedArray(value.shape, kind)), None)
    if any_symbolic((start, stop, step)):
        symbolic = _symbolic_range(start, stop, step, canonical_dtype(dtype, "arange"))
        return placed(symbolic, device, out_sharding)
    first = "stop" if stop is None else "start"
    for i, (x, what) in enumerate(((start, first), (stop, "stop"), (step, "step"))):
        if isinstance(x, (list, tuple)):
            raise TypeError(
                f"arange requires ndarray, scalar, or None arguments, got {type(x)} at position "
                f"{i}. Give its elements one by one."
            )
        if getattr(x, "ndim", False):
            raise ValueError(f"arange: arguments must be scalars; got {what}={x}")
        if x is not None and type(x) is not int and dtypes.is_complex(dtype_and_weak(x)[0]):
            raise ValueError(
                f"arange: complex numbers have no order, got {what}={x}. Multiply a real range."
            )
    is_free = device is None and out_sharding is None
    if FLAG.uses and is_free and kept():
        return apart(arange, arange, (start, stop, step, dtype), {})
    given = [x for x in (start, stop, step) if x is not None]
    wanted = canonical_dtype(dtype, "arange")
    if wanted is None:
        kinds = [dtype_and_weak(0 if type(x) is int else x) for x in given]  # large ones wrap
        wanted = dtypes.canonical(dtypes.promote(*kinds)[0])
    if dtypes.is_bool(wanted):
        raise TypeError(f"arange: {refusal('iota', wanted, NUMERIC)}")
    start, stop, step = (
        None if x is None else _concrete(x, "arange", what)
        for x, what in ((start, first), (stop, "stop"), (step, "step"))
    )
    if stop is None:
        start, stop = 0, start
    steps = step is not None
    if step is None:
        step = 1
    if step == 0:
        raise ZeroDivisionError("division by zero: the step of arange must not be zero.")
    size = (
        math.ceil((stop - start) / step)
        if not all(isinstance(v, (int, np.integer)) for v in (start, stop, step))
        else -((int(start) - int(stop)) // int(step))
    )
    size = builtins.max(0, size)
    dtypes.check_elements(size, "arange")
    if not current_trace().at_once and size > 1 and dtypes.kind(wanted) in "iuf":
        # Written as an iota, so that programs compute it instead of carrying it.
        iota = lax.iota(wanted, size)
        if in_jax_form():
            out = lax.mul(scalar(step, wanted), iota) if steps else iota
            out = lax.add(scalar(start, wanted), out) if steps or start else out
            return out if is_free else placed(out, device, out_sharding, of_values=True)
        if step != 1:
            iota = lax.mul(iota, scalar(step, wanted))
        out = iota if not start else lax.add(iota, scalar(start, wanted))
        return out if is_free else placed(out, device, out_sharding, of_values=True)
    if dtypes.kind(wanted) in "iu":
        value = np.arange(size, dtype=wanted) * _wrapped(step, wanted) + _wrapped(start, wanted)
    else:
        exact = np.arange(size, dtype=np.complex128 if wanted.kind == "c" else np.float64)
        value = exact * step + start
    with np.errstate(all="ignore"):
        value = np.asarray(value).astype(wanted)
    return placed(ArrayImpl(value, ShapedArray(value.shape, wanted)), device, out_sharding)


def _symbolic_range(start: Any, stop: Any, step: Any, dtype: Any) -> Any:
    """A range one of whose bounds is an expression of dimension variables."""
    start, stop = 0 if stop is None else start, start if stop is None else stop
    step = 1 if step is None else step
    try:
        start, stop, step = [index_of(x) for x in (start, stop, step)]
    except TypeError:
        raise ValueError(
            "In arange with non-constant arguments all of start, stop, and step must be either "
            f"dimension expressions or integers: start={start}, stop={stop}, step={step}."
        ) from None
    if type(step) is int and step == 0:
        raise ValueError("arange has step == 0")
    dtype = int_dtype() if dtype is None else dtype
    gap, by = (stop - start, step) if step > 0 else (start - stop, -step)
    size = largest(0, gap + by - 1)
    size = size if by == 1 else size // by
    out = lax.iota(dtype, size)
    if step != 1:
        out = lax.mul(out, lax.full((size,), step, dtype))
    return out if start == 0 else lax.add(out, lax.full((size,), start, dtype))


def _wrapped(x: Any, dtype: np.dtype) -> Any:
    return np.asarray(int(x) if not isinstance(x, np.generic) else x).astype(dtype)[()]


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """`num` evenly spaced values from start to stop.

    start, stop: numbers or arrays that broadcast; integers count as floats. num: a Python integer,
    not negative (ValueError). endpoint: whether stop is the last value, exactly; else the first
    that is left out. retstep: give (values, step). dtype: of the result; integers are rounded down,
    of complex values the real parts. axis: where the new axis stands. device: where it is placed.
    Differentiable in start and stop. IndexError for an axis out of range.

    >>> jnp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    num = index_of(int(num) if isinstance(num, Tracer) else num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    dtypes.check_elements(num, "linspace")
    start, stop = one_array("linspace", start), one_array("linspace", stop)
    asked = canonical_dtype(dtype, "linspace")
    computed = inexact_dtype(promoted(start, stop)[0])
    if asked is None:
        asked = computed
    if FLAG.uses and wanted() and num > 1 and axis == 0 and not retstep and device is None and (
        asked == computed == np.float32
    ):
        return as_call("_linspace", start, stop, num, endpoint, dtype=computed)
    if asked in (np.float32, np.float64) and not dtypes.is_complex(computed):
        computed = asked                # in whose roundings JAX counts
    else:
        computed = _wide_enough(computed, asked)
    start, stop = cast(start, computed), cast(stop, computed)
    shape = join_shapes("linspace", [start.aval.shape, stop.aval.shape])
    start, stop = broadcast(start, shape), broadcast(stop, shape)
    gaps = num - 1 if endpoint else num
    once = computed in (np.float32, np.float64)
    concrete = type(start) is type(stop) is ArrayImpl and not shape and not retstep and not axis
    concrete = concrete and not numeric_checks[0]
    if num > 1 and once and concrete and asked == computed and current_trace().at_once:
        line = _line(start._value[()], stop._value[()], num, gaps)
        return placed(ArrayImpl(line, ShapedArray(line.shape, asked)), device, error=ValueError)
    real = dtypes.real_of(computed)
    step = divide(subtract(stop, start), gaps) if gaps > 0 else lax.full((), np.nan, computed)
    lanes = (num,) + (1,) * len(shape)
    if num > 1:
        # Both ends have their part in each value. `stop` is divided first: from 0 to 25 in five
        # steps all values are whole, where the third would be 25 * float32(0.6) > 15.
        part = cast(divide(scalar(1, real), scalar(gaps, real)), computed)
        at = cast(lax.reshape(cast(arange(num), real), lanes), computed)
        at = broadcast(at, (num, *shape))
        low, high = (broadcast(x, (num, *shape)) for x in (start, multiply(stop, part)))
        rest = multiply(low, subtract(1, multiply(at, part)))
        # Rounded once, as JAX's compiled loop does: both print the same digits.
        out = fma(high, at, rest) if once else add(rest, multiply(high, at))
        if endpoint:
            last = broadcast(lax.reshape(stop, (1, *shape)), (1, *shape))
            out = lax.concatenate([lax.slice_in_dim(out, 0, num - 1, axis=0), last], 0)
    else:
        out = (
            broadcast(lax.reshape(start, (1, *shape)), (num, *shape))
            if num
            else zeros((0, *shape), computed)
        )
    if axis:
        place = canonical_axis(axis, out.aval.ndim, "linspace", IndexError)
        out = structural.moveaxis(out, 0, place)
    if dtypes.is_integer(asked) and not dtypes.is_integer(computed):
        out = lax.floor(lax.real(out) if dtypes.is_complex(computed) else out)
    out = placed(cast(out, asked), device, error=ValueError, of_values=True)
    return (out, step) if retstep else out


def _wide_enough(computed: Any, asked: Any) -> Any:
    """The dtype to compute values in that `asked` is to hold, of ends that are `computed`."""
    return computed if asked is None else dtypes.join_standard(computed, inexact_dtype(asked))


def _line(start: Any, stop: Any, num: int, gaps: int) -> np.ndarray:
    """The values of `linspace` between two floats of one dtype, by the same roundings."""
    dtype = start.dtype.type
    at, part = np.arange(num, dtype=dtype), dtype(1) / dtype(gaps)
    with np.errstate(all="ignore"):
        line = fused(stop * part, at, start * (dtype(1) - at * part))
    if gaps < num:
        line[-1] = stop
    return line


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """`num` values from base**start to base**stop whose exponents are evenly spaced.

    start, stop, num, endpoint, dtype, axis: as in `linspace`. base: a number or an array that
    broadcasts.

    >>> jnp.logspace(0, 3, 4, base=2)
    Array([1., 2., 4., 8.], dtype=float32)
    """
    if FLAG.uses and wanted():
        static = {"num": num, "endpoint": endpoint, "dtype": dtype, "axis": axis}
        return as_call("_logspace", start, stop, base, **static)
    return logspace_of(start, stop, base, num=num, endpoint=endpoint, dtype=dtype, axis=axis)


def logspace_of(
    start: Any, stop: Any, base: Any, *, num: int, endpoint: bool, dtype: Any, axis: int
) -> Any:
    """`logspace`, without a call around it."""
    start, stop = one_array("logspace", start), one_array("logspace", stop)
    asked = canonical_dtype(dtype, "logspace")
    computed = _wide_enough(inexact_dtype(promoted(start, stop)[0]), asked)
    exponents = linspace(start, stop, num, endpoint, dtype=computed, axis=axis)
    base = one_array("logspace", base)
    wide = dtypes.complex_of(computed) if dtypes.is_complex(base.aval.dtype) else computed
    out = power(cast(base, wide), cast(exponents, wide))
    return cast(out, computed if asked is None else asked)


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    """`num` values from start to stop with a constant ratio.

    start, stop: not zero, of one sign; complex ones lie on a spiral. num, endpoint, dtype, axis: as
    in `linspace`. Result: floats, or dtype, with the new axis of num values. The last value is
    exactly stop where both are scalars.

    >>> jnp.geomspace(1, 100, 3).round(3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    if FLAG.uses and wanted():
        static = {"num": num, "endpoint": endpoint, "dtype": dtype, "axis": axis}
        return as_call("_geomspace", start, stop, **static)
    return geomspace_of(start, stop, num=num, endpoint=endpoint, dtype=dtype, axis=axis)


def geomspace_of(
    start: Any, stop: Any, *, num: int, endpoint: bool, dtype: Any, axis: int
) -> Any:
    """`geomspace`, without a call around it."""
    start, stop = one_array("geomspace", start), one_array("geomspace", stop)
    asked = canonical_dtype(dtype, "geomspace")
    if asked is None:
        start, stop = promote_inexact(start, stop)
    else:
        computed = _wide_enough(inexact_dtype(promoted(start, stop)[0]), asked)
        start, stop = cast(start, computed), cast(stop, computed)
    num = index_of(int(num) if isinstance(num, Tracer) else num)
    ratio = lax.log(divide(stop, start))
    exponents = linspace(structural.zeros(ratio.aval), ratio, num, endpoint, axis=axis)
    position = canonical_axis(axis, exponents.aval.ndim, "geomspace")
    lengths = (1,) * (ratio.aval.ndim - start.aval.ndim) + start.aval.shape
    first = (
        lax.reshape(start, lengths[:position] + (1,) + lengths[position:])
        if start.aval.ndim
        else start
    )
    out = multiply(first, lax.exp(exponents))
    if endpoint and num > 1 and not start.aval.ndim and not stop.aval.ndim:
        last = cast(lax.reshape(stop, (1,)), out.aval.dtype)
        if not dtypes.is_complex(last.aval.dtype):  # of 0 and from one sign to the other: NaN
            good = lax.lt(lax.reshape(ratio, (1,)), array([np.inf], ratio.aval.dtype))
            last = lax.select(good, last, array([np.nan], last.aval.dtype))
        out = lax.concatenate([lax.slice_in_dim(out, 0, num - 1, axis=0), last], 0)
    return cast(out, promoted(start, stop)[0] if asked is None else asked)


# ------------------------------------------------------------------ matrices
def eye(N: int, M: int | None = None, k: Any = 0, dtype: Any = None, *, device: Any = None) -> Any:
    """Ones on the diagonal `k` of an N x M array of zeros.

    N: how many rows; M: how many columns, by default N. k: 0 for the main diagonal, positive above,
    negative below; may be traced. dtype: the default float by default. device: where it is placed.

    >>> jnp.eye(2, 3, k=1)
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    dtype = canonical_dtype(dtype, "eye", float)
    if any([isinstance(n, int) and n < 0 for n in (N, M)]):
        raise ValueError(f"eye: negative dimensions are not allowed, got {N} and {M}.")
    shape = canonical_shape((N, N if M is None else M), "eye")
    if current_trace().at_once and not isinstance(k, Array) and not any_symbolic(shape):
        if isinstance(k, float):
            raise ValueError(f"eye: k must be a scalar integer, got {k!r}.")
        if not isinstance(k, int | np.integer | np.ndarray):
            raise TypeError(f"eye: k must be a scalar integer, got {k!r}.")
        value = np.eye(shape[0], shape[1], index_of(k), dtype)
        return placed(ArrayImpl(value, ShapedArray(shape, dtype)), device, error=ValueError)
    if type(k) is int and not any_symbolic(shape):  # beyond the corners all diagonals are alike
        k = min(max(k, -shape[0]), shape[1])
    rows = lax.broadcasted_iota(np.dtype(np.int32), shape, 0)
    columns = lax.broadcasted_iota(np.dtype(np.int32), shape, 1)
    offset = _near(one_array("eye", k))
    return placed(cast(lax.eq(lax.add(rows, offset), columns), dtype), device, error=ValueError)


def identity(n: int, dtype: Any = None) -> Any:
    """The n x n identity matrix.

    n: an integer. dtype: the default float by default.

    >>> jnp.identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    """Ones at and below the diagonal `k` of an N x M array, zeros above.

    N: how many rows; M: how many columns, by default N. k: 0 for the main diagonal, positive above;
    may be traced. dtype: float32 by default.

    >>> jnp.tri(2, 3)
    Array([[1., 0., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    dtype = canonical_dtype(dtype, "tri", dtypes.float32)
    if type(k) is int:
        np.dtype(int_dtype()).type(k)
    return placed(cast(lower_mask((N, N if M is None else M), k), dtype), None)


def lower_mask(shape: Any, k: int = 0) -> Any:
    """True at and below the diagonal `k`."""
    shape = canonical_shape(shape, "tri")
    if isinstance(k, Array):
        if not dtypes.is_integer(k.aval.dtype) or k.aval.ndim:
            raise TypeError(f"tri: k must be an integer without dimensions, got {k.aval}.")
        known = concrete_or_none(k)
        k = _near(k) if known is None else int(known)
    if current_trace().at_once and not isinstance(k, Array) and not any_symbolic(shape):
        return ArrayImpl(
            np.tri(shape[0], shape[1], k, dtype=np.bool_), ShapedArray(shape, dtypes.bool_)
        )
    rows = lax.broadcasted_iota(np.dtype(np.int32), shape, 0)
    shift = k if isinstance(k, Array) else scalar(k, np.dtype(np.int32))
    moved = lax.add(rows, shift)
    return lax.ge(moved, lax.broadcasted_iota(np.dtype(np.int32), shape, 1))


def _near(k: Any) -> Any:
    """A traced number of a diagonal in 32 bits: one far outside stays outside."""
    bound = 1 << 30
    if k.aval.dtype in (np.int64, np.uint64, np.uint32):
        low = 0 if k.aval.dtype.kind == "u" else -bound
        k = lax.clamp(scalar(low, k.aval.dtype), k, scalar(bound, k.aval.dtype))
    return cast(k, dtypes.int32)


def tril(m: Any, k: int = 0) -> Any:
    """The lower triangle of the last two axes, zeros above the diagonal `k`.

    m: (..., rows, columns) of any dtype, which the result has (ValueError for fewer axes). k: 0 for
    the main diagonal, positive above, negative below.

    >>> jnp.tril(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 0],
           [3, 4]], dtype=int32)
    """
    x = one_array("tril", m)
    if x.aval.ndim < 2:
        raise ValueError(f"Argument to tril must be at least 2D, got shape {x.aval.shape}.")
    if isinstance(k, float | bool | np.bool_):
        raise TypeError(f"tril: k must be an integer, got {k!r}.")
    return where(broadcast(lower_mask(x.aval.shape[-2:], k), x.aval.shape), x, _zero_of(x))


def _zero_of(x: Any) -> Any:
    """What stands for zeros beside `x`: one element, or zeros that lie as `x` does where its type
    says so."""
    if x.aval.placed is not None:
        return structural.zeros(x.aval)
    return cast(scalar(0, x.aval.dtype), x.aval.dtype, x.aval.weak_type)


def triu(m: Any, k: int = 0) -> Any:
    """The upper triangle of the last two axes, zeros below the diagonal `k`.

    m: (..., rows, columns) of any dtype, which the result has (ValueError for fewer axes). k: 0 for
    the main diagonal, positive above, negative below.

    >>> jnp.triu(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 2],
           [0, 4]], dtype=int32)
    """
    x = one_array("triu", m)
    if x.aval.ndim < 2:
        raise ValueError(f"Argument to triu must be at least 2D, got shape {x.aval.shape}.")
    if isinstance(k, float | bool | np.bool_):
        raise TypeError(f"triu: k must be an integer, got {k!r}.")
    return where(broadcast(lower_mask(x.aval.shape[-2:], k - 1), x.aval.shape), _zero_of(x), x)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The powers of x as columns: Vandermonde's matrix.

    x: a vector (ValueError), whose dtype the result has. N: how many columns, not negative
    (ValueError), by default len(x). increasing: from x**0 on; else the highest power is first.
    Booleans count as integers. Narrow integers keep their dtype (NumPy: int64).

    >>> jnp.vander(jnp.array([2, 3]), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    x = strong(one_array("vander", x))
    if x.aval.ndim != 1:
        raise ValueError(f"vander: x must be a one-dimensional array, got shape {x.aval.shape}.")
    n = x.aval.shape[0] if N is None else index_of(N)
    if n < 0:
        raise ValueError(f"vander: N must be nonnegative, got {n}.")
    exponents = np.arange(n) if increasing else np.arange(n)[::-1]
    columns = [lax.reshape(power(x, int(e)), (x.aval.shape[0], 1)) for e in exponents]
    return lax.concatenate(columns, 1) if columns else zeros((x.aval.shape[0], 0), x.aval.dtype)


# ------------------------------------------------------------------ windows
def _points(name: str, M: Any) -> int:
    """How many points a window has."""
    if (count := int(M)) < 0:
        raise TypeError(f"{name}: the number of points must not be negative, got {count}.")
    return count


def _shown_window(count: int, parts: tuple[float, ...]) -> Any:
    """The first part less the second one's cosine wave, and more waves, by equations."""
    dtype = float_dtype()
    place, out = lax.iota(dtype, count), scalar(parts[0], dtype)
    for wave, part in enumerate(parts[1:], 1):
        turns = lax.mul(scalar(2 * wave * math.pi, dtype), place)
        height = lax.cos(lax.div(turns, scalar(count - 1, dtype)))
        height = height if part == 1 else lax.mul(scalar(part, dtype), height)
        out = lax.sub(out, height) if wave == 1 else lax.add(out, height)
    return out


def bartlett(M: int) -> Any:
    """Bartlett's window: a triangle that is 0 at both ends.

    M: how many points, a Python integer, not negative (TypeError). Returns a vector of the default
    float.

    >>> jnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return array(np.bartlett(_points("bartlett", M)), float_dtype())


def blackman(M: int) -> Any:
    """Blackman's window: 0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t) for t from 0 to 1.

    M: how many points, a Python integer, not negative (TypeError). Returns a vector of the default
    float.

    >>> jnp.blackman(5)[1:4]
    Array([0.34, 1.  , 0.34], dtype=float32)
    """
    count = _points("blackman", M)
    if count > 1 and FLAG.uses and wanted():
        return _shown_window(count, (0.42, 0.5, 0.08))
    return array(np.blackman(count), float_dtype())


def hamming(M: int) -> Any:
    """Hamming's window: 0.54 - 0.46 cos(2 pi t) for t from 0 to 1.

    M: how many points, a Python integer, not negative (TypeError). Returns a vector of the default
    float.

    >>> jnp.hamming(5)
    Array([0.08, 0.54, 1.  , 0.54, 0.08], dtype=float32)
    """
    count = _points("hamming", M)
    if count > 1 and FLAG.uses and wanted():
        return _shown_window(count, (0.54, 0.46))
    return array(np.hamming(count), float_dtype())


def hanning(M: int) -> Any:
    """Hann's window: 0.5 - 0.5 cos(2 pi t) for t from 0 to 1.

    M: how many points, a Python integer, not negative (TypeError). Returns a vector of the default
    float.

    >>> jnp.hanning(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    count = _points("hanning", M)
    if count > 1 and FLAG.uses and wanted():
        return lax.mul(scalar(0.5, float_dtype()), _shown_window(count, (1.0, 1.0)))
    return array(np.hanning(count), float_dtype())


def kaiser(M: int, beta: Any) -> Any:
    """Kaiser's window: I0(beta sqrt(1 - t²)) / I0(beta) for t from -1 to 1.

    M: how many points, as in `hamming`. beta: the shape, a scalar or one for each point; may
    be traced, and the window is differentiable in it. Returns a vector of the default float.

    >>> jnp.kaiser(3, 2.0).round(3)
    Array([0.439, 1.   , 0.439], dtype=float32)
    """
    M = _points("kaiser", M)
    if not getattr(beta, "ndim", 0) and not isinstance(beta, Tracer | str | complex):
        return array(np.kaiser(M, float(beta)), float_dtype())
    # exp(-|z|) I0(z) does not overflow, and the factors are put back together.
    (beta,) = promote_inexact(one_array("kaiser", beta))
    t = array(np.linspace(-1, 1, M) if M > 1 else np.zeros(M), beta.aval.dtype)
    z = multiply(beta, lax.sqrt(subtract(1, multiply(t, t))))
    return multiply(divide(lax.bessel_i0e(z), lax.bessel_i0e(beta)), lax.exp(subtract(z, beta)))
