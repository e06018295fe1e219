"""Arrays from values: of Python, of NumPy, from memory and files, and filled with one number.

`array` and `asarray` are how the rest of `numjet.numpy` takes what users hand in; `placed` puts a
finished array where `device=` or `out_sharding=` says. What would break it: an array that shares
memory with a NumPy array its owner may still write to, and a Python number that loses its weak
type.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from numjet.api.compiled.shown import FLAG, wanted, written_apart
from numjet.api.maps.mapping import vmap
from numjet.api.placement import interchange
from numjet.api.placement.computed import computed_on
from numjet.api.placement.devices import (
    Sharding,
    SingleDeviceSharding,
    at_default,
    device_put,
    mark,
    over_current,
)
from numjet.api.placement.layout import Format
from numjet.api.placement.reshard import laid_out, over_no_mesh
from numjet.api.placement.sharding import NamedSharding, PartitionSpec
from numjet.base import config
from numjet.core import dtypes, hooks, structural
from numjet.core.array import Array, ArrayImpl, as_array, is_arraylike, wrapped
from numjet.core.avals import ShapedArray
from numjet.core.dims import DimExpr, is_symbolic
from numjet.core.evaluate import another
from numjet.core.given import is_noted
from numjet.core.hooks import Sharded
from numjet.core.memories import MemorySpace
from numjet.core.remote import Device
from numjet.core.sharded import any_sharded
from numjet.core.shared import Shared
from numjet.core.structural import given_out, warn_of_lost_part
from numjet.core.trace import EVAL, Tracer, current_trace
from numjet.cpu.runtime import memory
from numjet.numpy import lax_names as lax
from numjet.numpy.promote import (
    broadcast,
    canonical_dtype,
    canonical_shape,
    cast,
    is_lent,
    join_shapes,
    not_an_array,
    one_array,
    promote_dtypes,
    promoted,
    strong,
)
from numjet.numpy.scalar_types import ScalarMeta, dtype_and_weak

_PLACES = Device, Sharding, PartitionSpec, Format, MemorySpace
_default, _platforms = config.default_device, config.platforms


def placed(
    x: Any, device: Any, out_sharding: Any = None, error: type[Exception] = AttributeError,
    of_values: bool = False, anew: bool = True,
) -> Any:  # fmt: skip
    """`x` on `device` (or with that sharding), or laid out as out_sharding says. error: for what
    is no place. of_values: it was made of values that were there; anew: as in `laid_out`."""
    if out_sharding is not None:
        if device is not None:
            raise ValueError("Only one of `device` or `out_sharding` can be set. Got "
                             f"device={device} and out_sharding={out_sharding}")
        return laid_out(lambda: x, out_sharding, anew=anew)
    if device is None or over_no_mesh(device):
        # Read without looking the flag up in the context, which would cost every creation.
        if not (_default.uses or _default.asks or _platforms.asks or Sharded.placing):
            return x
        return over_current(at_default(x), of_values)
    if not isinstance(device, _PLACES):
        raise error(f"{device!r} is no device and no Sharding. numjet.devices() lists devices.")
    if isinstance(device, NamedSharding) and current_trace() is not EVAL:
        return mark(x, device)
    if isinstance(device, Device | SingleDeviceSharding) and current_trace() is not EVAL:
        if not of_values:  # a program makes it wherever it runs
            return x
        device = SingleDeviceSharding(device) if isinstance(device, Device) else device
    return computed_on(x, device) if of_values else device_put(x, device)


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
    share theirs. ndmin: how many axes there are at least, new ones in front. order: None or 'K';
    NotImplementedError for others, as arrays are laid out row by row. device, out_sharding: where
    it is placed. TypeError for text, objects and other dtypes that arrays cannot hold, ValueError
    for ragged sequences and None, OverflowError for integers that do not fit. copy, order and ndmin
    without their names (`args`) warn: DeprecationWarning. NumPy's ndmax is not there.

    >>> jnp.array([[1, 2], [3, 4.5]])
    Array([[1. , 2. ],
           [3. , 4.5]], dtype=float32)
    """
    if args:
        copy, order, ndmin = _by_position(args, (copy, order, ndmin))
    _check_order("array", order)
    wanted = None if dtype is None else canonical_dtype(dtype, "array")
    out = _convert(object, wanted, copy)
    if out.aval.ndim < ndmin:
        out = lax.reshape(out, (1,) * (ndmin - out.aval.ndim) + out.aval.shape)
    return placed(out, device, out_sharding, ValueError, True, False)


def _check_order(name: str, order: Any) -> None:
    if order is not None and order != "K":
        raise NotImplementedError(
            f"{name}: order={order!r} is not supported, only 'K'; arrays are laid out row by row. "
            "Leave it out."
        )


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
    memory of its own; by default it shares that of a NumPy array of the same dtype which is
    read-only, or larger than a megabyte: do not write to it while the result is in use.

    >>> jnp.asarray([1, 2], dtype=float)
    Array([1., 2.], dtype=float32)
    """
    if dtype is None and device is None and out_sharding is None and not copy and order is None:
        if type(a) is ArrayImpl:
            return a
        if isinstance(a, Array):
            return lax.copy_p.bind(a) if is_noted(a) else a
        if type(a) in (int, float, bool, complex):
            return as_array(a)
    _check_order("asarray", order)
    wanted = None if dtype is None else canonical_dtype(dtype, "asarray")
    if copy is None and type(a) is np.ndarray:
        copy = is_lent(a)
    return placed(_convert(a, wanted, bool(copy)), device, out_sharding, ValueError, True, False)


def taking_lists(function: Callable) -> Callable:
    """`function`, which takes lists and tuples of numbers for arrays among its positional
    arguments, as a few of JAX's functions do where others refuse them."""

    @functools.wraps(function)
    def taken(*args: Any, **options: Any) -> Any:
        args = tuple([asarray(x) if isinstance(x, (list, tuple)) else x for x in args])
        return function(*args, **options)

    return taken


@written_apart
def _as_equation(x: Any) -> Any:
    """x as an equation, where `make_jaxpr` traces."""
    return lax.copy_p.bind(x) if wanted() else x


def _convert(x: Any, dtype: Any, copy: bool | None) -> Any:
    if isinstance(x, Array):
        if copy and FLAG.uses:
            x = _as_equation(x)
        out = x if dtype is None else cast(x, dtype)
        if out is x and is_noted(x):
            return lax.copy_p.bind(x)  # an Array of its own, for rules and results
        return another(x) if copy and out is x else out
    if hooks.guards is not None:
        hooks.guards.made("array", "asarray")
    if type(x) in (bool, int, float, complex):
        return as_array(x) if dtype is None else _from_scalar(x, dtype)
    if isinstance(x, np.ndarray | np.generic):
        return _from_numpy(x, dtype, copy)
    if isinstance(x, str | bytes) and dtype is not None:
        return _read(x, dtype)
    if x is None:
        raise ValueError(
            "None is not a valid value for jnp.array. Leave the argument out, or use jnp.nan."
        )
    if isinstance(x, (list, tuple)):
        return _from_sequence(list(x), dtype)
    if (
        hasattr(x, "__len__")
        and hasattr(x, "__getitem__")
        and not (
            hasattr(x, "__array__")
            or hasattr(x, "__jax_array__")
            or hasattr(x, "__numjet_array__")
            or isinstance(x, (bytes, bytearray, memoryview))
        )
    ):
        lent = _lent(x)
        if lent is not None:
            return _from_numpy(lent, dtype, False)
        return _from_sequence(list(x) if not isinstance(x, (str, dict)) else x, dtype)
    if hasattr(x, "__jax_array__") or hasattr(x, "__numjet_array__"):
        out = _convert(as_array(x), dtype, copy)
        if out.aval.weak_type and not is_symbolic(x):  # a value of its own, no number of Python
            out = structural.convert(out, out.aval.dtype)
        return out
    if is_arraylike(x):
        return _convert(as_array(x), dtype, copy)
    if isinstance(x, (bytes, memoryview, bytearray)) or hasattr(x, "__array__"):
        return _from_numpy(np.asarray(x), dtype, copy)
    if hasattr(x, "__dlpack__"):
        return _from_numpy(np.from_dlpack(x), dtype, copy)
    value = np.asarray(x)
    return _from_numpy(value, dtype, False)


hooks.install(ScalarMeta, {"convert": staticmethod(_convert)})


def _from_scalar(x: Any, dtype: Any) -> ArrayImpl:
    with np.errstate(all="ignore"):
        if type(x) is not complex and dtypes.is_integer(dtype):
            value = np.asarray(x, dtype)  # OverflowError when it does not fit, ValueError for NaN
        elif type(x) is complex and not dtypes.is_complex(dtype) and dtype != dtypes.bool_:
            raise TypeError(f"array: the complex number {x!r} does not become {dtype}. Take .real.")
        else:
            value = np.asarray(x).astype(dtype)
    return ArrayImpl(value, ShapedArray((), dtype))


def _read(x: Any, dtype: Any) -> ArrayImpl:
    """Text, objects and dates as numbers of the dtype that is asked for, as NumPy reads them."""
    value = np.array(x)
    if dtype.isbuiltin != 1 and value.dtype.kind in "SU":
        # Whose own reading of text that is no number ends the process.
        raise TypeError(f"array: {x!r} does not become {dtype}. Convert it to numbers first.")
    value = value.astype(dtype)
    return ArrayImpl(value, ShapedArray(value.shape, dtype))


def _from_numpy(x: Any, dtype: Any, copy: bool | None) -> ArrayImpl:
    if isinstance(x, np.ma.MaskedArray) and not copy:
        as_array(x)  # raises ValueError
    if x.dtype.char in "OSUMmVgG" and x.dtype not in dtypes.SHORT_NAMES:
        if dtype is not None and x.dtype.char in "OSUMmgG":
            return _read(x, dtype)
        raise TypeError(
            f"array: values of dtype {x.dtype} are not numbers. Only numeric and "
            "boolean arrays are supported; keep strings and objects in NumPy."
        )
    target = dtypes.canonical(x.dtype) if dtype is None else dtype
    with np.errstate(all="ignore"):
        if target != x.dtype:
            real = x.dtype.kind == "c" and not dtypes.is_complex(target) and target != dtypes.bool_
            if real:
                warn_of_lost_part(x.dtype, target)
            value = _copied(np.asarray(x.real if real else x), target)
        else:
            value = _copied(np.asarray(x), target) if copy else np.asarray(x)
    return ArrayImpl(value, ShapedArray(value.shape, target))


_MANY = 4096


def _copied(value: np.ndarray, dtype: Any) -> np.ndarray:
    """A copy of this dtype; of many numbers in memory that nobody can write to, so that operations
    on them may wait."""
    if value.size < _MANY:
        return value.astype(dtype)
    copy = memory.lasting(value.shape, np.dtype(dtype))
    np.copyto(copy, value, casting="unsafe")
    return copy


def _lent(x: Any) -> Any:
    """A copy of the numbers in the memory that `x` lends by Python's buffer protocol, in their
    dtype (`array.array`, arrays of ctypes, maps of files); None where it lends none."""
    try:
        return np.array(memoryview(x))
    except TypeError:
        return None


def _from_sequence(x: Any, dtype: Any) -> Any:
    if isinstance(x, (str, dict)):
        raise TypeError(
            f"Value {x!r} of type {type(x).__name__} is not a valid JAX array type. Only arrays of "
            "numeric types are supported by JAX."
        )
    leaves: list[Any] = []
    _leaves_of(x, leaves, dtype is not None)
    if not leaves or all([type(v) in (int, float, bool, complex) for v in leaves]):
        if leaves and dtype is None and config.numpy_dtype_promotion.value == "strict":
            dtypes.promote(*{dtype_and_weak(v) for v in leaves})  # refuses booleans beside numbers
        return _from_python(x, leaves, dtype)
    if any([isinstance(v, Tracer | DimExpr) for v in leaves]) or any(
        [isinstance(v, Array) and dtypes.is_key(v.aval.dtype) for v in leaves]
    ) or Sharded.active and any_sharded(leaves):
        return _stack_nested(x, dtype)
    asked = dtype is not None
    if not asked:
        kinds = {dtype_and_weak(v) for v in leaves}
        dtype = dtypes.canonical(dtypes.promote(*kinds)[0])
    if any([isinstance(v, str | bytes) for v in leaves]):
        return _read(_plain(x), dtype)
    own = any([isinstance(v, Array) for v in leaves])
    with np.errstate(all="ignore"):
        if not own and dtypes.is_integer(dtype):
            return _from_numpy(np.array(_plain(x), dtype), dtype, False)  # raises as `_from_scalar`
        try:
            made = np.array(_plain(x))
        except ValueError:
            if own:  # as where they are stacked
                raise TypeError("array: the parts of a sequence differ in their shapes.") from None
            raise
    if made.dtype == object and all([is_arraylike(v) for v in leaves]):
        # Of dtypes that NumPy does not join, bfloat16 and integers say.
        with np.errstate(all="ignore"):
            made = np.array(_plain(x, dtypes.physical(dtype)))
    if made.dtype == object and asked and not any([hasattr(v, "shape") for v in leaves]):
        return _read(made, dtype)
    if made.dtype == object:  # with a dtype and a shape, but no arrays: sparse ones, say
        raise ValueError(
            "array: setting an array element with a sequence. Values of type "
            f"{type(leaves[0]).__name__} are no numbers and no arrays; make them arrays first."
        )
    if own:
        return cast(_from_numpy(made, None, False), dtype)
    with np.errstate(all="ignore"):
        return _from_numpy(made, dtype, False)


def _leaves_of(x: Any, out: list, text: bool) -> None:
    """The elements of nested sequences; text: whether it may be among them."""
    for v in x:
        if type(v) in (int, float):
            out.append(v)
        elif isinstance(v, (list, tuple, range)):
            _leaves_of(v, out, text)
        else:
            if v is None:
                raise ValueError("None is not a valid value for jnp.array, nor in a sequence.")
            if isinstance(v, (str, bytes)) and not text:
                raise TypeError(
                    f"Value {v!r} is not a valid JAX array type: array takes numeric values, "
                    "numbers and booleans."
                )
            read = v if is_arraylike(v) or isinstance(v, (str, bytes)) else _read_in(v)
            out.append(v if read is None else read)


def _read_in(v: Any) -> Any:
    """An object within a sequence as NumPy reads it: one that is an array to NumPy, a sequence of
    its own, or lends its memory; None where it is none of these."""
    if hasattr(v, "__array__"):
        return np.asarray(v)
    if not hasattr(v, "__getitem__") or not hasattr(v, "__len__") or isinstance(v, dict):
        return None
    lent = _lent(v)
    return np.asarray(list(v)) if lent is None else lent


def _plain(x: Any, dtype: Any = None) -> Any:
    """Nested sequences with every array as NumPy's, in `dtype`."""
    if isinstance(x, (list, tuple, range)):
        return [_plain(v, dtype) for v in x]
    found = np.asarray(
        x if isinstance(x, (np.ndarray, np.generic)) else as_array(x) if is_arraylike(x) else x
    )
    return found if dtype is None else found.astype(dtype)


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
    if dtypes.is_integer(dtype) and not any([type(v) is complex for v in leaves]):
        value = np.array(x, dtype)
    else:
        with np.errstate(all="ignore"):
            value = np.array(x)
            if value.dtype.kind == "c" and not dtypes.is_complex(dtype) and dtype != dtypes.bool_:
                raise TypeError(f"array: complex numbers do not become {dtype}. Take .real.")
            value = value.astype(dtype)
    return ArrayImpl(value, ShapedArray(value.shape, dtype))


def _stack_nested(x: Any, dtype: Any) -> Any:
    in_jax = FLAG.uses > 0 and wanted()
    # Strict promotion asks all numbers together, not row by row: rows of weak ones would be strong.
    at_once = in_jax or config.numpy_dtype_promotion.value == "strict"
    if at_once and dtype is None and (leaves := _nested_leaves(x)):
        dtype = promoted(*[_convert(v, None, False) for v in leaves])[0]
    if not isinstance(x, (list, tuple, range)):
        out = _convert(x, dtype, False)
        return strong(out) if dtype is not None else out
    parts: list[Any] = []
    shape: Any = None
    for i, v in enumerate(x):
        part = _stack_nested(v, dtype if at_once else None)
        shape = part.aval.shape if shape is None else shape
        if part.aval.shape != shape:
            raise ValueError(
                f"array: the sequence is ragged: element 0 has shape {shape}, element "
                f"{i} has shape {part.aval.shape}."
            )
        parts.append(lax.expand_dims(part, (0,)) if in_jax else part)
    if not parts:
        return zeros((0,), dtype)
    if not in_jax:
        parts = [lax.reshape(p, (1, *p.aval.shape)) for p in promote_dtypes(*parts)]
    out = lax.concatenate(parts, 0)
    return cast(out, out.aval.dtype if dtype is None else dtype)


def _nested_leaves(x: Any) -> list[Any]:
    if not isinstance(x, (list, tuple, range)):
        return [x]
    return [leaf for v in x for leaf in _nested_leaves(v)]


def copy(a: Any, order: str | None = None) -> Any:
    """`a` as a new Array.

    a: an array or a number; TypeError for lists. order: as in `array`. Arrays do not change: the
    memory of one may stay shared until a function is given it to overwrite (donated).

    >>> jnp.copy(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    return array(one_array("copy", a), copy=True, order=order)


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Any:
    r"""The bytes of `buffer` as a vector.

    buffer: bytes, or what has their interface. dtype: what they are; float64 by default, which
    becomes float32 unless `enable_x64` is on. count: how many elements, -1 for all; offset: at
    which byte they begin. ValueError where the buffer is too short.

    >>> jnp.frombuffer(b"\x01\x02", dtype=jnp.uint8)
    Array([1, 2], dtype=uint8)
    """
    return array(np.frombuffer(buffer, dtype=dtypes.named(dtype), count=count, offset=offset))


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Any:
    """The numbers in a text, as a vector.

    string: the text; sep: what stands between the numbers. dtype: what they are read as. count: how
    many, -1 for all.

    >>> jnp.fromstring("1, 2, 3", dtype=int, sep=",")
    Array([1, 2, 3], dtype=int32)
    """
    return array(np.fromstring(string, dtype=dtypes.named(dtype), count=count, sep=sep))


def fromfunction(function: Callable, shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """function(i, j, ..., **kwargs) of the positions of an array of `shape`.

    function: mapped over all positions: it is called once, with traced numbers of `dtype`, one for
    each axis; what it returns has the axes of `shape` in front. kwargs: are handed on.

    >>> jnp.fromfunction(lambda i, j: i + 10 * j, (2, 3), dtype=int)
    Array([[ 0, 10, 20],
           [ 1, 11, 21]], dtype=int32)
    """
    shape = canonical_shape(shape, "fromfunction")
    dtype = canonical_dtype(dtype, "fromfunction")
    rank = len(shape)
    mapped: Callable = functools.partial(function, **kwargs)
    for i in reversed(range(rank)):
        mapped = vmap(mapped, in_axes=tuple([0 if k == i else None for k in range(rank)]))
    return mapped(*[lax.iota(dtype, n) for n in shape])


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """An Array of an array of another library, by the DLPack protocol.

    x: an object with __dlpack__ (TypeError). device: where it is placed. copy: whether the memory
    is copied; by default it is shared where dtypes allow.

    >>> import numpy
    >>> jnp.from_dlpack(numpy.arange(3, dtype=numpy.int32))
    Array([0, 1, 2], dtype=int32)
    """
    return interchange.from_dlpack(x, device, copy)


def fromfile(*args: Any, **kwargs: Any) -> Any:
    """Not available: reading a file is not pure. Raises NotImplementedError, whatever `args` and
    `kwargs`.

    NumPy's parameters are `dtype`, `count`, `sep` and `offset`.

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

    NumPy's parameters are `dtype` and `count`.

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

    file: a path or an open file. args, kwargs: handed to numpy.load, whose errors are raised. Its
    keywords (mmap_mode, encoding, fix_imports, max_header_size, ...) come with them.

    >>> import io
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.arange(3))
    >>> _ = file.seek(0)
    >>> jnp.load(file)
    Array([0, 1, 2], dtype=int32)
    """
    out = np.load(file, *args, **kwargs)
    if isinstance(out, np.ndarray) and out.dtype == "V2":
        out = out.view(dtypes.bfloat16)  # NumPy does not know the dtype that `save` wrote
    return array(out) if isinstance(out, np.ndarray) and out.dtype != object else out


save, savez = np.save, np.savez


# ------------------------------------------------------------------ filled
def _filled_on(x: Any, device: Any, out_sharding: Any) -> Any:
    """`placed`, with JAX's exception for a PartitionSpec that is too long, IndexError."""
    if type(device) is NamedSharding:
        device.shard_shape(x.aval.shape)
    return placed(x, device, out_sharding)


def _filled(shape: Any, value: Any, dtype: Any, name: str, weak: bool = False) -> Any:
    shape = canonical_shape(shape, name)
    if hooks.guards is not None:
        hooks.guards.made(name)
    if type(dtype) is dtypes.KeyDType or not current_trace().at_once:
        return structural.full(shape, value, dtype, weak)
    # zeros come from the system's empty pages: touching them is left to the first use.
    out = np.zeros(shape, dtype) if not value else np.full(shape, value, dtype)
    return ArrayImpl(out, ShapedArray(shape, dtype, weak))


def _own_dtype(shape: Any, dtype: Any, name: str) -> Any:
    try:
        return canonical_dtype(dtype, name, float)
    except TypeError as error:
        if not isinstance(dtype, int) or isinstance(dtype, bool):
            raise
        raise TypeError(
            f"{error}. Did you accidentally write `jax.numpy.{name}({shape}, {dtype})` when you "
            f"meant `jax.numpy.{name}(({shape}, {dtype}))`? The shape is one argument, a tuple."
        ) from None


def zeros(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """An array of zeros.

    shape: an integer or a tuple of them. dtype: the default float by default. device, out_sharding:
    where it is placed. TypeError for sizes that are negative or traced.

    >>> jnp.zeros((2, 3), dtype=int)
    Array([[0, 0, 0],
           [0, 0, 0]], dtype=int32)
    """
    out = _filled(shape, 0, _own_dtype(shape, dtype, "zeros"), "zeros")
    return _filled_on(out, device, out_sharding)


def ones(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """An array of ones.

    shape: an integer or a tuple of them. dtype: the default float by default. device, out_sharding:
    where it is placed. TypeError for sizes that are negative or traced.

    >>> jnp.ones(3)
    Array([1., 1., 1.], dtype=float32)
    """
    out = _filled(shape, 1, _own_dtype(shape, dtype, "ones"), "ones")
    return _filled_on(out, device, out_sharding)


def empty(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """An array of zeros: memory is never left undefined, unlike NumPy's.

    shape, dtype, device, out_sharding: as in `zeros`.

    >>> jnp.empty(2)
    Array([0., 0.], dtype=float32)
    """
    out = _filled(shape, 0, _own_dtype(shape, dtype, "empty"), "empty")
    return _filled_on(out, device, out_sharding)


def full(
    shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """An array of `shape` filled with `fill_value`.

    shape: an integer or a tuple of them. fill_value: a number, or an array (no list: TypeError)
    that broadcasts to the shape (ValueError). dtype: by default that of `fill_value`, which becomes
    it as by `astype`, of an integer that does not fit the lowest bits. device, out_sharding: where
    it is placed.

    >>> jnp.full((2, 2), jnp.array([1, 2]))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    dtype = None if dtype is None else canonical_dtype(dtype, "full")
    shape = canonical_shape(shape, "full")
    if type(fill_value) is int or type(fill_value) is float and dtype is not None and (
        dtypes.is_integer(dtype)
    ):
        value = wrapped(fill_value, dtype)
        value = value if dtype is None else cast(value, dtype)
    elif fill_value is None or isinstance(fill_value, (list, tuple)):
        raise TypeError(not_an_array("full", fill_value, 1))
    else:
        value = _convert(fill_value, dtype, False)
    if join_shapes("full", [shape, value.aval.shape]) != shape:
        raise ValueError(
            f"full: fill_value of shape {value.aval.shape} does not broadcast to {shape}."
        )
    if device is not None:
        value = structural.convert(value, value.aval.dtype, False)
    return _filled_on(broadcast(value, shape), device, out_sharding)


def _like(name: str, a: Any, dtype: Any, shape: Any) -> tuple[tuple, Any, bool]:
    if isinstance(a, Array):
        found, weak, own = a.aval.dtype, a.aval.weak_type, a.aval.shape
    elif isinstance(a, (list, tuple)):
        raise TypeError(not_an_array(name, a))
    elif hasattr(a, "dtype") and hasattr(a, "shape"):
        found, weak, own = a.dtype, getattr(a, "weak_type", False), a.shape
        if type(found) is not dtypes.KeyDType:
            found = dtypes.canonical(found)
            dtypes.check_supported(found)
    else:
        aval = one_array(name, a).aval
        found, weak, own = aval.dtype, aval.weak_type, aval.shape
    if dtype is not None:
        found, weak = canonical_dtype(dtype, name), False
    return (own if shape is None else canonical_shape(shape, name)), found, bool(weak)


def _made_like(out: Any, a: Any, device: Any, out_sharding: Any = None) -> Any:
    """A result where it is told to go, else where an array of this shape is laid out; it varies
    inside of `shard_map` as `a` does."""
    if device is None and out_sharding is None:
        device = lax.place_like(a, out.aval.shape)
    out = _filled_on(out, device, out_sharding)
    out = lax.varied_like(out, a) if Shared.axes.get() else out
    return out if out.dtype.itemsize else given_out([out])[0]


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
    return _made_like(out, a, device, out_sharding)


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
    return _made_like(out, a, device, out_sharding)


def empty_like(prototype: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
    """Zeros of the shape and dtype of `prototype`: memory is never left undefined, unlike NumPy's.

    prototype: an array or number. dtype, shape: instead of its own. device: where it is placed.
    TypeError for a list.

    >>> jnp.empty_like(jnp.array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    shape, dtype, weak = _like("empty_like", prototype, dtype, shape)
    out = _filled(shape, 0, dtype, "empty_like", weak)
    return _made_like(out, prototype, device)


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
    if type(dtype) is dtypes.KeyDType and type(fill_value) is int:  # in each word of a key
        value = structural.full((), fill_value, dtype)
    elif type(fill_value) is complex and not weak:
        value = cast(_from_scalar(fill_value, dtype), dtype, weak)
    else:
        fill = wrapped(fill_value, dtype) if type(fill_value) is int else fill_value
        value = cast(one_array("full_like", fill), dtype, weak)
    if value.aval.ndim > len(shape):
        raise ValueError(
            f"Cannot broadcast to shape with fewer dimensions: full_like makes {shape} of "
            f"fill_value, whose shape is {value.aval.shape}."
        )
    return _made_like(broadcast(value, shape), a, device, out_sharding)
