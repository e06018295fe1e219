"""Functions on functions (vectorize, apply_along_axis), comparisons of whole arrays, packed bits,
and printing."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from numjet.api.maps.mapping import vmap
from numjet.core import dtypes
from numjet.core.array import Array, ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.evaluate import LARGE
from numjet.core.structural import scalar
from numjet.numpy import lax_names as lax
from numjet.numpy.binary import isclose
from numjet.numpy.creation import array
from numjet.numpy.elementwise import multiply
from numjet.numpy.fast import eager
from numjet.numpy.indexing import getitem
from numjet.numpy.logic import as_bool, equal, logical_and, logical_or
from numjet.numpy.promote import (
    as_arrays,
    broadcast,
    canonical_axis,
    cast,
    check_loop_ranks,
    join_shapes,
    one_array,
)
from numjet.numpy.reductions import all as all_, sum as sum_
from numjet.numpy.shape import expand_dims, moveaxis, ravel, reshape, squeeze
from numjet.numpy.unary import isnan


# ------------------------------------------------------------------ whole arrays
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether all elements are close: |a - b| <= atol + rtol * |b|. A boolean Array.

    a, b, rtol, atol, equal_nan: as in `isclose`. TypeError or ValueError for shapes that do not
    broadcast.

    >>> jnp.allclose(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.000001]))
    Array(True, dtype=bool)
    """
    return all_(isclose(a, b, rtol, atol, equal_nan))


def _sequence_too(name: str, x: Any) -> Any:
    return array(x) if isinstance(x, (list, tuple)) else one_array(name, x)


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether both arrays have one shape and equal elements. A boolean Array.

    a1, a2: arrays, numbers or nested lists, compared in their common dtype. equal_nan: NaN equals
    NaN.

    >>> jnp.array_equal(jnp.array([1, 2]), [1, 2])
    Array(True, dtype=bool)
    """
    x, y = (_sequence_too("array_equal", a) for a in (a1, a2))
    if x.aval.shape != y.aval.shape:
        return scalar(False, dtypes.bool_)
    same = equal(x, y)
    if equal_nan:
        same = logical_or(same, logical_and(isnan(x), isnan(y)))
    return all_(same)


def array_equiv(a1: Any, a2: Any) -> Any:
    """Whether the arrays are equal once they are broadcast. A boolean Array, False where they
    cannot be.

    a1, a2: arrays, numbers or nested lists.

    >>> jnp.array_equiv(jnp.array([1, 1]), 1)
    Array(True, dtype=bool)
    """
    x, y = (_sequence_too("array_equiv", a) for a in (a1, a2))
    try:
        shape = join_shapes("array_equiv", [x.aval.shape, y.aval.shape])
    except ValueError:
        return scalar(False, dtypes.bool_)
    return all_(equal(broadcast(x, shape), broadcast(y, shape)))


def isscalar(element: Any) -> bool:
    """Whether `element` is a number or an array without axes; a Python boolean.

    element: anything; text counts, as in NumPy, which does not count arrays.

    >>> jnp.isscalar(3.0), jnp.isscalar(jnp.array(3.0)), jnp.isscalar(jnp.array([3.0]))
    (True, True, False)
    """
    if isinstance(element, (Array, np.ndarray)):
        return element.ndim == 0
    return (
        bool(np.isscalar(element))
        or hasattr(element, "__jax_array__")
        and (element.__jax_array__().ndim == 0)
    )


def iterable(y: Any) -> bool:
    """Whether `iter(y)` works; a Python boolean.

    y: anything.

    >>> jnp.iterable(jnp.arange(3)), jnp.iterable(3)
    (True, False)
    """
    try:
        iter(y)
    except TypeError:
        return False
    return True


def array_repr(
    arr: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None
) -> str:
    """What numpy.array_repr shows of an array: its elements after the name of its class.

    arr: an Array, or NumPy's (AttributeError for others). max_line_width, precision,
    suppress_small: as in numpy.array_repr.

    >>> jnp.array_repr(jnp.array([1, 2]))
    'ArrayImpl([1, 2], dtype=int32)'
    """
    return np.array_repr(arr, max_line_width, precision, suppress_small)


def array_str(
    a: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None
) -> str:
    """What str() shows of an array.

    a: an array. max_line_width, precision, suppress_small: as in numpy.array_str.

    >>> jnp.array_str(jnp.array([0.123456, 2.0]), precision=2)
    '[0.12 2.  ]'
    """
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)


# ------------------------------------------------------------------ applying functions
def apply_along_axis(func1d: Callable, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """`func1d` of each vector of `arr` along `axis`; what it gives takes the axis's place.

    func1d: called as func1d(vector, *args, **kwargs), once for all of them, under `vmap` (NumPy
    calls it for each). axis: an integer (ValueError).

    >>> jnp.apply_along_axis(jnp.cumsum, 1, jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [3, 7]], dtype=int32)
    """
    x = one_array("apply_along_axis", arr)
    axis = canonical_axis(axis, x.aval.ndim, "apply_along_axis")
    f = lambda v: func1d(v, *args, **kwargs)
    for i in range(1, x.aval.ndim - axis):
        f = vmap(f, in_axes=i, out_axes=-1)
    for _ in range(axis):
        f = vmap(f, in_axes=0, out_axes=0)
    return f(x)


def apply_over_axes(func: Callable, a: Any, axes: Sequence[int]) -> Any:
    """`func(a, axis)` for one of the `axes` after another, on what the last one gave.

    func: gives an array with the axis or without it; then it is kept with size 1. a: an array.
    ValueError for what has another rank.

    >>> jnp.apply_over_axes(jnp.sum, jnp.array([[1, 2], [3, 4]]), [0, 1])
    Array([[10]], dtype=int32)
    """
    x = one_array("apply_over_axes", a)
    for axis in axes:
        out = one_array("apply_over_axes", func(x, axis))
        if out.ndim == x.aval.ndim - 1:
            out = expand_dims(out, axis)
        if out.ndim != x.aval.ndim:
            raise ValueError("apply_over_axes: the function must keep or remove the axis.")
        x = out
    return x


_NAME = r"(?:\w+|\d+)"
_CORE = rf"\((?:{_NAME}(?:,{_NAME})*)?\)"
_SIGNATURE = rf"^{_CORE}(?:,{_CORE})*->{_CORE}(?:,{_CORE})*$"


def parse_signature(text: str) -> tuple[list[tuple], list[tuple]]:
    """The names of the core axes of each argument and of each result."""
    if not isinstance(text, str):
        raise TypeError(f"vectorize: signature is a string or None, got {text!r}.")
    text = text.replace(" ", "")
    if not re.match(_SIGNATURE, text):
        raise ValueError(
            f"vectorize: not a valid gufunc signature: {text!r}. Write it like '(n,m),(m)->(n)'."
        )
    return tuple(
        [  # type: ignore[return-value]
            [tuple([d for d in core.split(",") if d]) for core in re.findall(r"\(([^)]*)\)", side)]
            for side in text.split("->")
        ]
    )


def vectorize(
    pyfunc: Callable, *, excluded: Collection[int | str] = frozenset(), signature: str | None = None
) -> Callable:
    """`pyfunc` mapped over the leading axes of its arguments, which broadcast against each other.

    pyfunc: a function of Arrays; it is called once, under `vmap`. signature: the core axes that one
    call takes and gives, such as '(n),(n)->()'; without one, calls take and give scalars. excluded:
    positions and names of arguments that are handed on as they are, as None is. Calls raise
    ValueError where core axes do not fit, TypeError for other numbers of arguments or results;
    ValueError for a signature that cannot be read. NumPy's `otypes`, `doc` and `cache` are not
    there.

    >>> dot = jnp.vectorize(lambda x, y: x @ y, signature="(n),(n)->()")
    >>> dot(jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1]))
    Array([12, 34], dtype=int32)
    """
    if any(not isinstance(e, (str, int)) for e in excluded):
        raise TypeError(
            f"vectorize: excluded must be a set of positions and names, got {excluded!r}."
        )
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"vectorize: positions in excluded must not be negative: {excluded!r}.")

    @functools.wraps(pyfunc)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        named = {k: v for k, v in kwargs.items() if k in excluded}
        mapped_names = [k for k in kwargs if k not in excluded]
        positions = [i for i in range(len(args)) if i not in excluded]
        fixed = dict(enumerate(args))

        def call(*values: Any) -> Any:
            full = {**fixed, **dict(zip(positions, values))}
            rest = dict(zip(mapped_names, values[len(positions) :]))
            return pyfunc(*[full[i] for i in range(len(args))], **named, **rest)

        return _broadcast_map(
            call, [args[i] for i in positions] + [kwargs[k] for k in mapped_names], signature
        )

    return wrapped


def _broadcast_map(call: Callable, values: list[Any], signature: str | None) -> Any:
    outs = None
    cores: list[tuple] = [()] * len(values)
    if signature is not None:
        cores, outs = parse_signature(signature)
    if len(cores) != len(values):
        raise TypeError(
            f"vectorize: wrong number of positional arguments: expected {len(cores)}, "
            f"got {len(values)}."
        )
    if any([v is None for v in values]):
        call, values, cores = _without_none(call, values, cores, signature)
    values = [array(v) if isinstance(v, (list, tuple)) else v for v in values]
    values = as_arrays("vectorize", *values)
    leads, sizes = core_sizes(values, cores)
    check_loop_ranks("vectorize", signature, values, [len(core) for core in cores])
    lead = join_shapes("vectorize", leads, ValueError)
    squeezed = []
    maps: list[list[Any]] = []
    for x, own in zip(values, leads):
        wide = (1,) * (len(lead) - len(own)) + own
        mapped = [n != 1 for n in wide]
        kept = tuple([n for n, keep in zip(wide, mapped) if keep])
        if len(kept) != len(own):
            x = squeeze(x, tuple([i for i, n in enumerate(own) if n == 1]))
        squeezed.append(x)
        maps.append(mapped)
    f = with_checked_results(call, outs, sizes)
    ones = []
    for i in range(len(lead) - 1, -1, -1):
        flags = [m[i] for m in maps]
        if not any(flags):
            ones.append(i)
            continue
        f = vmap(f, in_axes=tuple([0 if flag else None for flag in flags]))
    out = f(*squeezed)
    if not ones:
        return out
    widen = lambda y: expand_dims(y, tuple(sorted(ones)))
    return tuple([widen(y) for y in out]) if isinstance(out, (tuple, list)) else widen(out)


def _without_none(
    call: Callable, values: list[Any], cores: list[tuple], signature: str | None
) -> tuple[Callable, list[Any], list[tuple]]:
    """What is mapped of a call to which None is handed on."""
    places = {i for i, v in enumerate(values) if v is None}
    if any([cores[i] for i in places]):
        raise ValueError(
            f"vectorize: Cannot pass None at locations {places} with signature={signature!r}: "
            "these arguments have core axes."
        )

    def inner(*given: Any) -> Any:
        rest = iter(given)
        return call(*[None if v is None else next(rest) for v in values])

    kept = [i for i in range(len(values)) if i not in places]
    return inner, [values[i] for i in kept], [cores[i] for i in kept]


def core_sizes(values: Sequence[Any], cores: Sequence[tuple]) -> tuple[list[tuple], dict[str, int]]:
    """The leading shape of each argument, and the sizes of the named core axes."""
    sizes: dict[str, int] = {}
    leads = []
    for x, core in zip(values, cores):
        if x.ndim < len(core):
            raise ValueError(
                f"input with shape {x.shape} does not have enough dimensions for all core "
                f"dimensions {core} (vectorize)."
            )
        split = x.ndim - len(core)
        for name, n in zip(core, x.shape[split:]):
            if sizes.setdefault(name, n) != n:
                raise ValueError(
                    f"vectorize: inconsistent size for core dimension {name!r}: {n} "
                    f"and {sizes[name]}."
                )
        leads.append(x.shape[:split])
    return leads, sizes


def with_checked_results(
    call: Callable, outs: list[tuple] | None, sizes: dict[str, int]
) -> Callable:
    """`call`, whose results must have the core axes `outs`."""
    if outs is None:
        return call

    def f(*args: Any) -> Any:
        made = call(*args)
        several = made if isinstance(made, (tuple, list)) else (made,)
        if len(several) != len(outs):
            raise TypeError(
                f"vectorize: wrong number of output arguments: expected {len(outs)}, which the "
                f"signature names, got {len(several)}."
            )
        known = dict(sizes)
        for y, core in zip(several, outs):
            shape = np.shape(y) if not isinstance(y, Array) else y.aval.shape
            if len(shape) != len(core):
                raise ValueError(
                    f"vectorize: the output shape {shape} does not match core dimensions {core}, "
                    "which the signature names."
                )
            for name, n in zip(core, shape):
                if known.setdefault(name, n) != n:
                    raise ValueError(
                        f"vectorize: inconsistent size for core dimension {name!r}: "
                        f"{n} and {known[name]}."
                    )
        return made

    return f


# ------------------------------------------------------------------ bits
def packbits(a: Any, axis: int | None = None, bitorder: str = "big") -> Any:
    """Elements as bits, 1 where they are not zero, eight to a uint8.

    a: integers or booleans (TypeError). axis: an integer, or None for the flattened array; the last
    byte is filled with zeros. bitorder: 'big' has the first element highest, 'little' lowest
    (ValueError for others). IndexError for an axis out of range.

    >>> jnp.packbits(jnp.array([1, 0, 1]))
    Array([160], dtype=uint8)
    """
    x = one_array("packbits", a)
    if not (dtypes.is_integer(x.aval.dtype) or x.aval.dtype == dtypes.bool_):
        raise TypeError(
            f"packbits: expected an input of integer or boolean data type, got {x.aval.dtype}."
        )
    _check_order(bitorder)
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonical_axis(axis, x.aval.ndim, "packbits", IndexError)
    if type(x) is ArrayImpl and x.aval.dtype.kind in "iub" and eager():
        # NumPy packs bytes at memory's speed, but compares wider integers one by one.
        wide = x.aval.dtype.itemsize > 1 and x.aval.size >= LARGE
        order: Any = bitorder
        packed = np.asarray(np.packbits((as_bool(x) if wide else x)._value, axis, order), order="C")
        return ArrayImpl(packed, ShapedArray(packed.shape, packed.dtype))
    x = moveaxis(as_bool(x), axis, -1)
    n = x.aval.shape[-1]
    count = -(-n // 8)
    widths = [(0, 0, 0)] * (x.aval.ndim - 1) + [(0, 8 * count - n, 0)]
    x = lax.pad(cast(x, dtypes.uint8), lax.full((), 0, dtypes.uint8), widths)
    x = reshape(x, (*x.aval.shape[:-1], count, 8))
    weights = np.array([1 << i for i in range(8)], np.uint8)
    weights = weights[::-1].copy() if bitorder == "big" else weights
    weights = weights.reshape((1,) * (x.aval.ndim - 1) + (8,))
    out = sum_(multiply(x, array(weights)), -1, dtype=np.uint8)
    return moveaxis(out, -1, axis)


def unpackbits(
    a: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Any:
    """The bits of bytes as zeros and ones, in uint8.

    a: uint8 (TypeError). axis: an integer, or None for the flattened array. count: how many bits to
    give, more being zeros; by default all. bitorder: 'big' gives the highest bit first, 'little'
    the lowest (ValueError for others). NumPy also counts negative numbers from the end. IndexError
    for an axis out of range.

    >>> jnp.unpackbits(jnp.array([5], dtype=jnp.uint8))
    Array([0, 0, 0, 0, 0, 1, 0, 1], dtype=uint8)
    """
    x = one_array("unpackbits", a)
    if x.aval.dtype != dtypes.uint8:
        raise TypeError(f"unpackbits: expected an input of unsigned byte type, got {x.aval.dtype}.")
    _check_order(bitorder)
    if axis is None:
        x, axis = ravel(x), 0
    x = moveaxis(x, canonical_axis(axis, x.aval.ndim, "unpackbits", IndexError), -1)
    shifts = np.arange(8, dtype=np.uint8)
    shifts = array(shifts[::-1].copy() if bitorder == "big" else shifts)
    wide = (*x.aval.shape, 8)
    bits = lax.shift_right_logical(broadcast(expand_dims(x, -1), wide), broadcast(shifts, wide))
    bits = lax.bitwise_and(bits, lax.full(wide, 1, dtypes.uint8))
    bits = reshape(bits, (*x.aval.shape[:-1], 8 * x.aval.shape[-1]))
    if count is not None:
        n = bits.aval.shape[-1]
        if count > n:
            bits = lax.pad(
                bits,
                lax.full((), 0, dtypes.uint8),
                [(0, 0, 0)] * (bits.aval.ndim - 1) + [(0, count - n, 0)],
            )
        else:
            bits = getitem(bits, (..., slice(None, count)))
    return moveaxis(bits, -1, axis)


def _check_order(bitorder: str) -> None:
    if bitorder not in ("big", "little"):
        raise ValueError(f"bitorder must be 'big' or 'little', got {bitorder!r}.")
