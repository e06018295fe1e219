"""Making arrays: from values, filled, ranges, identities and triangles, windows, from memory and
files."""

from __future__ import annotations

import builtins
import math
import operator
import os
import warnings
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from numjet.api.devices import at_default, device_put
from numjet.api.sharding import over_no_mesh
from numjet.base import config
from numjet.base.errors import ConcretizationTypeError
from numjet.core import dtypes, structural
from numjet.core.array import Array, ArrayImpl, as_array, is_arraylike
from numjet.core.avals import ShapedArray
from numjet.core.evaluate import LARGE, another
from numjet.core.spread import SpreadArray
from numjet.core.structural import scalar
from numjet.core.trace import EVAL, Tracer, concrete_or_none, current_trace
from numjet.cpu.runtime import memory
from numjet.numpy import lax_names as lax
from numjet.numpy.elementwise import add, divide, multiply, power, subtract, where
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
    not_an_array,
    one_array,
    promote_dtypes,
    promote_inexact,
    promoted,
    strong,
)
from numjet.numpy.scalar_types import dtype_and_weak

_default, _platforms = config.default_device, config.platforms


def placed(x: Any, device: Any) -> Any:
    """`x` on `device` (or with that sharding)."""
    if device is None or over_no_mesh(device):
        # Read without looking the flag up in the context, which would cost every creation.
        if not (_default.uses or _default._global or _platforms._global):
            return x
        return at_default(x)
    return device_put(x, device)


# ------------------------------------------------------------------ from values
def array(
    object: Any,
    dtype: Any = None,
    *args: Any,
    copy: bool | None = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """An Array of `object`: numbers, nested sequences, NumPy arrays, Arrays, buffers.

    object: what has __array__, __jax_array__ or __dlpack__ is read through these. dtype: by default
    that of the values; Python's floats, and NumPy's of 64 bits, become float32 unless `enable_x64`
    is on, integers int32. copy: whether NumPy's memory is copied; Arrays, which do not change, may
    share theirs. ndmin: how many axes there are at least, new ones in front. order: None, 'K', 'C'
    and 'A', which mean the same here; NotImplementedError for 'F'. device, out_sharding: where it
    is placed. TypeError for text, objects and other dtypes that arrays cannot hold, ValueError for
    ragged sequences and None, OverflowError for integers that do not fit. copy, order and ndmin
    without their names (`args`) warn: DeprecationWarning.

    >>> jnp.array([[1, 2], [3, 4.5]])
    Array([[1. , 2. ],
           [3. , 4.5]], dtype=float32)
    """
    if args:
        copy, order, ndmin = _by_position(args, (copy, order, ndmin))
    if order not in (None, "K", "C", "A"):
        raise NotImplementedError(
            f"array: order={order!r} is not supported; arrays are laid out "
            "row by row. Leave it out."
        )
    wanted = None if dtype is None else canonical_dtype(dtype, "array")
    out = _convert(object, wanted, copy)
    if out.aval.ndim < ndmin:
        out = lax.reshape(out, (1,) * (ndmin - out.aval.ndim) + out.aval.shape)
    return placed(out, device if device is not None else out_sharding)


def _by_position(args: tuple, named: tuple) -> tuple:
    """copy, order and ndmin of `array`, of which the first came without their names."""
    if len(args) > 3:
        raise TypeError(f"array() takes at most 5 positional arguments but {2 + len(args)} were "
                        "given")
    warnings.warn("Passing the copy, order, and ndmin arguments to array positionally is "
                  "deprecated. Use keyword arguments instead.", DeprecationWarning, stacklevel=3)
    return *args, *named[len(args):]


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """`a` as an Array; Arrays of the dtype come back as they are.

    a, dtype, order, device, out_sharding: as in `array`. copy: whether the result must have a
    memory of its own; by default it may share that of a NumPy array of the same dtype.

    >>> jnp.asarray([1, 2], dtype=float)
    Array([1., 2.], dtype=float32)
    """
    if dtype is None and device is None and out_sharding is None and not copy:
        if isinstance(a, Array):
            return a
        if type(a) in (int, float, bool, complex):
            return as_array(a)
    wanted = None if dtype is None else canonical_dtype(dtype, "asarray")
    return placed(_convert(a, wanted, bool(copy)), device if device is not None else out_sharding)


def _convert(x: Any, dtype: Any, copy: bool | None) -> Any:
    if isinstance(x, Array):
        out = x if dtype is None else cast(x, dtype)
        if copy and type(out) is ArrayImpl and out is x:
            return ArrayImpl(x._value, x.aval)  # immutable: the buffer may be shared
        return another(x) if copy and out is x else out
    if type(x) in (bool, int, float, complex):
        return as_array(x) if dtype is None else _from_scalar(x, dtype)
    if isinstance(x, np.ndarray | np.generic):
        return _from_numpy(x, dtype, copy)
    if x is None:
        raise ValueError(
            "None is not a valid value for array(). Leave the argument out, or use jnp.nan."
        )
    if (
        isinstance(x, (list, tuple))
        or hasattr(x, "__len__")
        and hasattr(x, "__getitem__")
        and not (
            hasattr(x, "__array__")
            or hasattr(x, "__jax_array__")
            or hasattr(x, "__numjet_array__")
            or isinstance(x, (bytes, memoryview))
        )
    ):
        return _from_sequence(list(x) if not isinstance(x, (str, dict)) else x, dtype)
    if hasattr(x, "__jax_array__") or hasattr(x, "__numjet_array__"):
        return _convert(as_array(x), dtype, copy)
    if is_arraylike(x):
        return _convert(as_array(x), dtype, copy)
    if isinstance(x, (bytes, memoryview, bytearray)) or hasattr(x, "__array__"):
        return _from_numpy(np.asarray(x), dtype, copy)
    if hasattr(x, "__dlpack__"):
        return _from_numpy(np.from_dlpack(x), dtype, copy)
    value = np.asarray(x)
    return _from_numpy(value, dtype, False)


def _from_scalar(x: Any, dtype: Any) -> ArrayImpl:
    with np.errstate(all="ignore"):
        if type(x) is int and dtypes.is_integer(dtype):
            value = np.asarray(x, dtype)  # OverflowError when it does not fit
        elif type(x) is complex and not dtypes.is_complex(dtype):
            raise TypeError(f"array: the complex number {x!r} does not become {dtype}. Take .real.")
        else:
            value = np.asarray(x).astype(dtype)
    return ArrayImpl(value, ShapedArray((), dtype))


def _from_numpy(x: Any, dtype: Any, copy: bool | None) -> ArrayImpl:
    if x.dtype.kind in "OSUMmV" and x.dtype not in dtypes.SHORT_NAMES:
        if x.dtype.kind == "O" and x.size:
            return _from_sequence(x.tolist(), dtype)
        raise TypeError(
            f"array: values of dtype {x.dtype} are not numbers. Only numeric and "
            "boolean arrays are supported; keep strings and objects in NumPy."
        )
    target = dtypes.canonical(x.dtype) if dtype is None else dtype
    with np.errstate(all="ignore"):
        if target != x.dtype:
            value = np.asarray(
                x.real if x.dtype.kind == "c" and not dtypes.is_complex(target) else x
            )
            value = _copied(value, target)
        else:
            value = _copied(np.asarray(x), target) if copy else np.asarray(x)
    return ArrayImpl(value, ShapedArray(value.shape, target))


def _copied(value: np.ndarray, dtype: Any) -> np.ndarray:
    """A copy of this dtype; of many numbers in memory that nobody can write to, so that operations
    on them may wait."""
    if value.size < LARGE:
        return value.astype(dtype)
    copy = memory.empty(value.shape, np.dtype(dtype))
    np.copyto(copy, value, casting="unsafe")
    return copy


def _from_sequence(x: Any, dtype: Any) -> Any:
    if isinstance(x, (str, dict)):
        raise TypeError(f"array: {x!r} of type {type(x).__name__} is not numeric.")
    leaves: list[Any] = []
    _leaves_of(x, leaves)
    if not leaves or all([type(v) in (int, float, bool, complex) for v in leaves]):
        return _from_python(x, leaves, dtype)
    if any([isinstance(v, Tracer) for v in leaves]) or any(
        [isinstance(v, Array) and dtypes.is_key(v.aval.dtype) for v in leaves]
    ):
        return _stack_nested(x, dtype)
    if dtype is None:
        kinds = {dtype_and_weak(v) for v in leaves}
        dtype = dtypes.canonical(dtypes.promote(*kinds)[0])
    with np.errstate(all="ignore"):
        return _from_numpy(np.array(_plain(x)), dtype, False)


def _leaves_of(x: Any, out: list) -> None:
    for v in x:
        if isinstance(v, (list, tuple)):
            _leaves_of(v, out)
        else:
            if v is None:
                raise ValueError("array: None is not a valid value within a sequence.")
            if isinstance(v, (str, bytes)):
                raise TypeError(
                    f"array: {v!r} is not numeric. Only numbers and booleans are supported."
                )
            out.append(v)


def _plain(x: Any) -> Any:
    """Nested sequences with every array as NumPy's."""
    if isinstance(x, (list, tuple)):
        return [_plain(v) for v in x]
    return np.asarray(
        x if isinstance(x, (np.ndarray, np.generic)) else as_array(x) if is_arraylike(x) else x
    )


def _from_python(x: Any, leaves: list, dtype: Any) -> ArrayImpl:
    if dtype is None:
        kinds = {type(v) for v in leaves}
        kind = (
            complex
            if complex in kinds
            else float
            if float in kinds or not leaves
            else int
            if int in kinds
            else bool
        )
        dtype = dtypes.canonical(kind)
    if dtypes.is_integer(dtype) and not any([type(v) in (float, complex) for v in leaves]):
        value = np.array(x, dtype)
    else:
        with np.errstate(all="ignore"):
            value = np.array(x)
            if value.dtype.kind == "c" and not dtypes.is_complex(dtype):
                raise TypeError(f"array: complex numbers do not become {dtype}. Take .real.")
            value = value.astype(dtype)
    return ArrayImpl(value, ShapedArray(value.shape, dtype))


def _stack_nested(x: Any, dtype: Any) -> Any:
    if not isinstance(x, (list, tuple)):
        out = _convert(x, dtype, False)
        return strong(out) if dtype is not None else out
    parts = [_stack_nested(v, None) for v in x]
    if not parts:
        return zeros((0,), dtype)
    shape = parts[0].aval.shape
    for i, p in enumerate(parts):
        if p.aval.shape != shape:
            raise ValueError(
                f"array: the sequence is ragged: element 0 has shape {shape}, element "
                f"{i} has shape {p.aval.shape}."
            )
    parts = promote_dtypes(*parts)
    out = lax.concatenate([lax.reshape(p, (1, *shape)) for p in parts], 0)
    return cast(out, out.aval.dtype if dtype is None else dtype)


def copy(a: Any, order: str | None = None) -> Any:
    """`a` as a new Array.

    a: anything `array` takes. order: has no effect. Arrays do not change: the memory of one may
    stay shared until a function is given it to overwrite (donated).

    >>> jnp.copy(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    return array(a, copy=True)


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Any:
    r"""The bytes of `buffer` as a vector.

    buffer: bytes, or what has their interface. dtype: what they are; float64 by default, which
    becomes float32 unless `enable_x64` is on. count: how many elements, -1 for all; offset: at
    which byte they begin. ValueError where the buffer is too short.

    >>> jnp.frombuffer(b"\x01\x02", dtype=jnp.uint8)
    Array([1, 2], dtype=uint8)
    """
    return array(np.frombuffer(buffer, dtype=_plain_dtype(dtype), count=count, offset=offset))


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Any:
    """The numbers in a text, as a vector.

    string: the text; sep: what stands between the numbers. dtype: what they are read as. count: how
    many, -1 for all.

    >>> jnp.fromstring("1, 2, 3", dtype=int, sep=",")
    Array([1, 2, 3], dtype=int32)
    """
    return array(np.fromstring(string, dtype=_plain_dtype(dtype), count=count, sep=sep))


def _plain_dtype(dtype: Any) -> Any:
    return getattr(dtype, "dtype", dtype)


def fromfunction(function: Callable, shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """function(i, j, ..., **kwargs) of the positions of an array of `shape`.

    function: called once, with an array of positions along each axis, of `shape` and `dtype`; so it
    must work on arrays. kwargs: are handed on.

    >>> jnp.fromfunction(lambda i, j: i + 10 * j, (2, 3), dtype=int)
    Array([[ 0, 10, 20],
           [ 1, 11, 21]], dtype=int32)
    """
    shape = canonical_shape(shape, "fromfunction")
    dtype = canonical_dtype(dtype, "fromfunction")
    grids = [lax.broadcasted_iota(dtype, shape, i) for i in range(len(shape))]
    return function(*grids, **kwargs)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """An Array of an array of another library, by the DLPack protocol.

    x: an object with __dlpack__ (TypeError). device: where it is placed. copy: whether the memory
    is copied; by default it is shared where dtypes allow.

    >>> import numpy
    >>> jnp.from_dlpack(numpy.arange(3, dtype=numpy.int32))
    Array([0, 1, 2], dtype=int32)
    """
    if isinstance(x, Array):
        return x
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack: expected an array with __dlpack__, got {x!r}.")
    return placed(array(np.from_dlpack(x), copy=bool(copy)), device)


def fromfile(*args: Any, **kwargs: Any) -> Any:
    """Not available: reading a file is not pure. Raises NotImplementedError, whatever `args` and
    `kwargs`.

    >>> jnp.fromfile("data")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    NotImplementedError: fromfile is not supported, because it is not pure...
    """
    raise NotImplementedError(
        "fromfile is not supported, because it is not pure. Use jnp.asarray(numpy.fromfile(...))."
    )


def fromiter(*args: Any, **kwargs: Any) -> Any:
    """Not available: iterators are not pure. Raises NotImplementedError, whatever `args` and
    `kwargs`.

    >>> jnp.fromiter([1, 2], int)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    NotImplementedError: fromiter is not supported, because it is not pure...
    """
    raise NotImplementedError(
        "fromiter is not supported, because it is not pure. Use jnp.asarray(numpy.fromiter(...))."
    )


def load(file: IO[bytes] | str | os.PathLike, *args: Any, **kwargs: Any) -> Any:
    """The array in a file that `save` wrote; what `savez` wrote, as NumPy's mapping.

    file: a path or an open file. args, kwargs: handed to numpy.load, whose errors are raised.

    >>> import io
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.arange(3))
    >>> _ = file.seek(0)
    >>> jnp.load(file)
    Array([0, 1, 2], dtype=int32)
    """
    out = np.load(file, *args, **kwargs)
    return array(out) if isinstance(out, np.ndarray) else out


save, savez = np.save, np.savez


# ------------------------------------------------------------------ filled
def _filled(shape: Any, value: Any, dtype: Any, name: str, weak: bool = False) -> Any:
    shape = canonical_shape(shape, name)
    if type(dtype) is dtypes.KeyDType or current_trace() is not EVAL:
        return structural.full(shape, value, dtype, weak)
    # zeros come from the system's empty pages: touching them is left to the first use.
    out = np.zeros(shape, dtype) if not value else np.full(shape, value, dtype)
    return ArrayImpl(out, ShapedArray(shape, dtype, weak))


def zeros(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """An array of zeros.

    shape: an integer or a tuple of them. dtype: the default float by default. device, out_sharding:
    where it is placed. TypeError for sizes that are negative or traced.

    >>> jnp.zeros((2, 3), dtype=int)
    Array([[0, 0, 0],
           [0, 0, 0]], dtype=int32)
    """
    out = _filled(shape, 0, canonical_dtype(dtype, "zeros", float), "zeros")
    return placed(out, device or out_sharding)


def ones(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """An array of ones.

    shape: an integer or a tuple of them. dtype: the default float by default. device, out_sharding:
    where it is placed. TypeError for sizes that are negative or traced.

    >>> jnp.ones(3)
    Array([1., 1., 1.], dtype=float32)
    """
    out = _filled(shape, 1, canonical_dtype(dtype, "ones", float), "ones")
    return placed(out, device or out_sharding)


def empty(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """An array of zeros: memory is never left undefined, unlike NumPy's.

    shape, dtype, device, out_sharding: as in `zeros`.

    >>> jnp.empty(2)
    Array([0., 0.], dtype=float32)
    """
    return zeros(shape, dtype, device=device, out_sharding=out_sharding)


def full(
    shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """An array of `shape` filled with `fill_value`.

    shape: an integer or a tuple of them. fill_value: a number, or an array that broadcasts to the
    shape (ValueError). dtype: by default that of `fill_value`. device, out_sharding: where it is
    placed.

    >>> jnp.full((2, 2), jnp.array([1, 2]))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    value = _convert(fill_value, None if dtype is None else canonical_dtype(dtype, "full"), False)
    shape = canonical_shape(shape, "full")
    if join_shapes("full", [shape, value.aval.shape]) != shape:
        raise ValueError(
            f"full: fill_value of shape {value.aval.shape} does not broadcast to {shape}."
        )
    return placed(broadcast(value, shape), device if device is not None else out_sharding)


def _like(name: str, a: Any, dtype: Any, shape: Any) -> tuple[tuple, Any, bool]:
    if isinstance(a, Array):
        found, weak, own = a.aval.dtype, a.aval.weak_type, a.aval.shape
    elif isinstance(a, (list, tuple)):
        raise TypeError(not_an_array(name, a))
    elif hasattr(a, "dtype") and hasattr(a, "shape"):
        found, weak, own = dtypes.canonical(a.dtype), getattr(a, "weak_type", False), a.shape
    else:
        aval = one_array(name, a).aval
        found, weak, own = aval.dtype, aval.weak_type, aval.shape
    if dtype is not None:
        found, weak = canonical_dtype(dtype, name), False
    return (own if shape is None else canonical_shape(shape, name)), found, bool(weak)


def _place_like(a: Any, shape: tuple, device: Any, out_sharding: Any) -> Any:
    """Where a result goes: where it is told to, else where an array of this shape is laid out."""
    if device is not None or out_sharding is not None:
        return out_sharding if device is None else device
    return a.sharding if type(a) is SpreadArray and a.aval.shape == tuple(shape) else None


def zeros_like(
    a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """Zeros of the shape and dtype of `a`.

    a: an array or number. dtype, shape: instead of those of `a`. device: where it is placed.
    out_sharding: the layout of the result. TypeError for a list.

    >>> jnp.zeros_like(jnp.array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    shape, dtype, weak = _like("zeros_like", a, dtype, shape)
    out = _filled(shape, 0, dtype, "zeros_like", weak)
    return placed(out, _place_like(a, shape, device, out_sharding))


def ones_like(
    a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """Ones of the shape and dtype of `a`.

    a: an array or number. dtype, shape: instead of those of `a`. device: where it is placed.
    out_sharding: the layout of the result. TypeError for a list.

    >>> jnp.ones_like(jnp.array([1.5, 2.5]))
    Array([1., 1.], dtype=float32)
    """
    shape, dtype, weak = _like("ones_like", a, dtype, shape)
    out = _filled(shape, 1, dtype, "ones_like", weak)
    return placed(out, _place_like(a, shape, device, out_sharding))


def empty_like(prototype: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
    """Zeros of the shape and dtype of `prototype`: memory is never left undefined, unlike NumPy's.

    prototype: an array or number. dtype, shape: instead of its own. device: where it is placed.
    TypeError for a list.

    >>> jnp.empty_like(jnp.array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    shape, dtype, weak = _like("empty_like", prototype, dtype, shape)
    return placed(_filled(shape, 0, dtype, "empty_like", weak), device)


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """`fill_value` repeated to the shape of `a`, as a's dtype.

    a: an array or number. fill_value: a number or an array that broadcasts. dtype, shape: instead
    of those of `a`. device: where it is placed. out_sharding: the layout of the result. TypeError
    for a list.

    >>> jnp.full_like(jnp.array([1, 2]), 7)
    Array([7, 7], dtype=int32)
    """
    shape, dtype, weak = _like("full_like", a, dtype, shape)
    value = cast(one_array("full_like", fill_value), dtype, weak)
    return placed(broadcast(value, shape), _place_like(a, shape, device, out_sharding))


# ------------------------------------------------------------------ ranges
def _concrete(x: Any, name: str, what: str) -> Any:
    if isinstance(x, Array):
        if x.aval.shape:
            raise ValueError(f"{name}: arguments must be scalars; got {what}={x}")
        if isinstance(x, Tracer):
            x = x._need_concrete(
                ConcretizationTypeError,
                f"{name} needs a concrete {what}",
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
    ValueError for arrays with axes and a step of 0). With one argument that is the stop, the start
    0; the step is 1 by default. dtype: by default that to which they promote. device: where it is
    placed. out_sharding: the layout of the result. With a fractional step the size may be one off:
    use `linspace`.

    >>> jnp.arange(3), jnp.arange(1, 8, 2)
    (Array([0, 1, 2], dtype=int32), Array([1, 3, 5, 7], dtype=int32))
    """
    if (
        type(start) is int
        and dtype is None
        and device is None
        and out_sharding is None
        and current_trace() is EVAL
        and (stop is None or type(stop) is int and (step is None or type(step) is int and step))
    ):
        kind = int_dtype()
        bounds = (start,) if stop is None else (start, stop, 1 if step is None else step)
        low, high, by = bounds if len(bounds) == 3 else (0, start, 1)
        dtypes.check_elements((high - low) // by, "arange")
        value = np.arange(*bounds).astype(kind)
        return ArrayImpl(value, ShapedArray(value.shape, kind))
    layout = device if device is not None else out_sharding
    first = "stop" if stop is None else "start"
    for x, what in ((start, first), (stop, "stop"), (step, "step")):
        if isinstance(x, (list, tuple)) or getattr(x, "ndim", False):
            raise ValueError(f"arange: arguments must be scalars; got {what}={x}")
    given = [x for x in (start, stop, step) if x is not None]
    wanted = canonical_dtype(dtype, "arange")
    if wanted is None:
        wanted = dtypes.canonical(dtypes.promote(*[dtype_and_weak(x) for x in given])[0])
    start, stop, step = (
        None if x is None else _concrete(x, "arange", what)
        for x, what in ((start, first), (stop, "stop"), (step, "step"))
    )
    if stop is None:
        start, stop = 0, start
    if step is None:
        step = 1
    if step == 0:
        raise ValueError("arange: step must not be zero.")
    size = (
        math.ceil((stop - start) / step)
        if not all(isinstance(v, (int, np.integer)) for v in (start, stop, step))
        else -((int(start) - int(stop)) // int(step))
    )
    size = builtins.max(0, size)
    dtypes.check_elements(size, "arange")
    if current_trace() is not EVAL and size > 1 and dtypes.kind(wanted) in "iuf":
        # Written as an iota, so that programs compute it instead of carrying it.
        iota = lax.iota(wanted, size)
        if step != 1:
            iota = lax.mul(iota, scalar(step, wanted))
        out = iota if not start else lax.add(iota, scalar(start, wanted))
        return out if layout is None else placed(out, layout)
    if dtypes.kind(wanted) in "iu":
        value = np.arange(size, dtype=wanted) * wanted.type(int(step)) + _wrapped(start, wanted)
    else:
        exact = np.arange(size, dtype=np.complex128 if wanted.kind == "c" else np.float64)
        value = exact * step + start
    with np.errstate(all="ignore"):
        value = np.asarray(value).astype(wanted)
    return placed(ArrayImpl(value, ShapedArray(value.shape, wanted)), layout)


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
    that is left out. retstep: give (values, step). dtype: of the result; integers are rounded down.
    axis: where the new axis stands. device: where it is placed. Differentiable in start and stop.

    >>> jnp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"linspace: the number of samples must not be negative, got {num}.")
    dtypes.check_elements(num, "linspace")
    start, stop = one_array("linspace", start), one_array("linspace", stop)
    wanted = canonical_dtype(dtype, "linspace")
    computed = inexact_dtype(promoted(start, stop)[0])
    if wanted is None:
        wanted = computed
    computed = inexact_dtype(dtypes.promote((computed, False), (wanted, False))[0])
    start, stop = cast(start, computed), cast(stop, computed)
    shape = join_shapes("linspace", [start.aval.shape, stop.aval.shape])
    start, stop = broadcast(start, shape), broadcast(stop, shape)
    gaps = num - 1 if endpoint else num
    real = dtypes.real_of(computed)
    step = divide(subtract(stop, start), gaps) if gaps > 0 else lax.full((), np.nan, computed)
    lanes = (num,) + (1,) * len(shape)
    if num > 1:
        # The fraction is taken of both ends, so that the last value is exactly `stop`.
        t = divide(lax.reshape(cast(arange(num), real), lanes), cast(as_array(float(gaps)), real))
        t = broadcast(cast(t, computed), (num, *shape))
        low, high = (broadcast(x, (num, *shape)) for x in (start, stop))
        out = add(multiply(low, subtract(1, t)), multiply(high, t))
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
        out = structural.moveaxis(out, 0, canonical_axis(axis, out.aval.ndim, "linspace"))
    if dtypes.is_integer(wanted) and not dtypes.is_integer(computed):
        out = lax.floor(out)
    out = placed(cast(out, wanted), device)
    return (out, step) if retstep else out


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
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    out = power(cast(one_array("logspace", base), exponents.aval.dtype), exponents)
    return out if dtype is None else cast(out, canonical_dtype(dtype, "logspace"))


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    """`num` values from start to stop with a constant ratio.

    start, stop: not zero, of one sign; complex ones lie on a spiral. num, endpoint, dtype, axis: as
    in `linspace`. The last value is exactly stop where both are scalars.

    >>> jnp.geomspace(1, 100, 3).round(3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    start, stop = promote_inexact(one_array("geomspace", start), one_array("geomspace", stop))
    ratio = lax.log(divide(stop, start))
    exponents = linspace(structural.zeros(ratio.aval), ratio, num, endpoint, axis=axis)
    position = canonical_axis(axis, exponents.aval.ndim, "geomspace")
    first = (
        lax.reshape(start, start.aval.shape[:position] + (1,) + start.aval.shape[position:])
        if start.aval.ndim
        else start
    )
    out = multiply(first, lax.exp(exponents))
    wanted = promoted(start, stop)[0] if dtype is None else canonical_dtype(dtype, "geomspace")
    if endpoint and num > 1 and not start.aval.ndim and not stop.aval.ndim:
        last = cast(lax.reshape(stop, (1,)), out.aval.dtype)
        out = lax.concatenate([lax.slice_in_dim(out, 0, num - 1, axis=0), last], 0)
    return cast(out, wanted)


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
    shape = canonical_shape((N, N if M is None else M), "eye")
    if current_trace() is EVAL and not isinstance(k, Array):
        value = np.eye(shape[0], shape[1], operator.index(k), dtype)
        return placed(ArrayImpl(value, ShapedArray(shape, dtype)), device)
    rows = lax.broadcasted_iota(np.dtype(np.int32), shape, 0)
    columns = lax.broadcasted_iota(np.dtype(np.int32), shape, 1)
    offset = cast(one_array("eye", k), np.dtype(np.int32))
    return placed(cast(lax.eq(lax.add(rows, offset), columns), dtype), device)


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
    return cast(lower_mask((N, N if M is None else M), k), dtype)


def lower_mask(shape: Any, k: int = 0) -> Any:
    """True at and below the diagonal `k`."""
    shape = canonical_shape(shape, "tri")
    if isinstance(k, Array):
        if not dtypes.is_integer(k.aval.dtype) or k.aval.ndim:
            raise TypeError(f"tri: k must be an integer without dimensions, got {k.aval}.")
        known = concrete_or_none(k)
        k = cast(k, dtypes.int32) if known is None else int(known)
    if current_trace() is EVAL and not isinstance(k, Array):
        return ArrayImpl(
            np.tri(shape[0], shape[1], k, dtype=np.bool_), ShapedArray(shape, dtypes.bool_)
        )
    rows = lax.broadcasted_iota(np.dtype(np.int32), shape, 0)
    columns = lax.broadcasted_iota(np.dtype(np.int32), shape, 1)
    shift = k if isinstance(k, Array) else scalar(k, np.dtype(np.int32))
    return lax.ge(lax.add(rows, shift), columns)


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
        raise ValueError(f"tril: needs at least two dimensions, got shape {x.aval.shape}.")
    return where(
        broadcast(lower_mask(x.aval.shape[-2:], k), x.aval.shape), x, scalar(0, x.aval.dtype)
    )


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
        raise ValueError(f"triu: needs at least two dimensions, got shape {x.aval.shape}.")
    return where(
        broadcast(lower_mask(x.aval.shape[-2:], k - 1), x.aval.shape),
        scalar(0, x.aval.dtype),
        x,
    )


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The powers of x as columns: Vandermonde's matrix.

    x: a vector (ValueError), whose dtype the result has. N: how many columns, by default len(x).
    increasing: from x**0 on; else the highest power is first.

    >>> jnp.vander(jnp.array([2, 3]), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    x = one_array("vander", x)
    if x.aval.ndim != 1:
        raise ValueError(f"vander: x must have one dimension, got shape {x.aval.shape}.")
    n = x.aval.shape[0] if N is None else operator.index(N)
    exponents = np.arange(n) if increasing else np.arange(n)[::-1]
    columns = [lax.reshape(power(x, int(e)), (x.aval.shape[0], 1)) for e in exponents]
    return lax.concatenate(columns, 1) if columns else zeros((x.aval.shape[0], 0), x.aval.dtype)


# ------------------------------------------------------------------ windows
def bartlett(M: int) -> Any:
    """Bartlett's window: a triangle that is 0 at both ends.

    M: how many points, a Python integer. Returns a vector of the default float.

    >>> jnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return array(np.bartlett(M), float_dtype())


def blackman(M: int) -> Any:
    """Blackman's window: 0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t) for t from 0 to 1.

    M: how many points, a Python integer. Returns a vector of the default float.

    >>> jnp.blackman(5)[1:4]
    Array([0.34, 1.  , 0.34], dtype=float32)
    """
    return array(np.blackman(M), float_dtype())


def hamming(M: int) -> Any:
    """Hamming's window: 0.54 - 0.46 cos(2 pi t) for t from 0 to 1.

    M: how many points, a Python integer. Returns a vector of the default float.

    >>> jnp.hamming(5)
    Array([0.08, 0.54, 1.  , 0.54, 0.08], dtype=float32)
    """
    return array(np.hamming(M), float_dtype())


def hanning(M: int) -> Any:
    """Hann's window: 0.5 - 0.5 cos(2 pi t) for t from 0 to 1.

    M: how many points, a Python integer. Returns a vector of the default float.

    >>> jnp.hanning(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return array(np.hanning(M), float_dtype())


def kaiser(M: int, beta: Any) -> Any:
    """Kaiser's window: I0(beta sqrt(1 - t²)) / I0(beta) for t from -1 to 1.

    M: how many points, a Python integer. beta: the shape, a scalar; may be traced, and the window
    is differentiable in it. Returns a vector of the default float.

    >>> jnp.kaiser(3, 2.0).round(3)
    Array([0.439, 1.   , 0.439], dtype=float32)
    """
    if not isinstance(beta, Tracer):
        return array(np.kaiser(M, float(beta)), float_dtype())
    # exp(-|z|) I0(z) does not overflow, and the factors are put back together.
    (beta,) = promote_inexact(beta)
    t = array(np.linspace(-1, 1, M) if M > 1 else np.zeros(M), beta.aval.dtype)
    z = multiply(beta, lax.sqrt(subtract(1, multiply(t, t))))
    return multiply(divide(lax.bessel_i0e(z), lax.bessel_i0e(beta)), lax.exp(subtract(z, beta)))
