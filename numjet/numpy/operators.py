"""The Array's operators, methods and properties, installed on `core.array.Array` when imported.

An operator returns NotImplemented for operands that are no arrays, so that Python raises its own
TypeError and other libraries get their turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.api.compiled.shown import FLAG, wanted
from numjet.api.placement.computed import computed_on
from numjet.api.placement.devices import SingleDeviceSharding
from numjet.core import dtypes, hooks
from numjet.core.array import Array, is_arraylike
from numjet.core.evaluate import another
from numjet.core.remote import Device
from numjet.core.sharded import ShardedArray
from numjet.core.trace import Tracer
from numjet.native import operators as fast_native, record as trace_native
from numjet.numpy import (
    array_methods,
    averages,
    cumulative,
    elementwise as el,
    index_tricks,
    lax_names as lax,
    logic,
    positions,
    products,
    reductions,
    shape as sh,
    sorting,
    unary,
)
from numjet.numpy.at import IndexUpdateHelper, install as install_at
from numjet.numpy.creation import copy as copy_
from numjet.numpy.fast import fast_binary
from numjet.numpy.indexing import getitem, index_forms
from numjet.numpy.promote import canonical_dtype, cast, converted
from numjet.numpy.repetition import repeat
from numjet.numpy.take import choose, compress, take
from numjet.ops.arrange import views
from numjet.ops.slicing import slice_p

_KNOWN = (Array, int, float, complex, bool, np.ndarray, np.generic)


def _accepts(x: Any) -> bool:
    return isinstance(x, _KNOWN) or (not isinstance(x, (list, tuple, str)) and is_arraylike(x))


def _refused(name: str, other: Any) -> Any:
    """What an operator says of an operand that is no array. A list or a tuple is refused at once:
    Python would take the array for a number of repetitions, or compare identities."""
    if isinstance(other, list | tuple):
        raise TypeError(
            f"unsupported operand type(s) for {name}: 'Array' and {type(other).__name__!r}. "
            "Convert with jnp.array first."
        )
    return NotImplemented


def _operator(name: str, function: Callable, primitive: str | None = None) -> tuple:
    """The methods for `x op y` and `y op x`."""

    def forward(x: Any, y: Any) -> Any:
        return function(x, y) if _accepts(y) else _refused(name, y)

    def backward(y: Any, x: Any) -> Any:
        return function(x, y) if _accepts(x) else _refused(name, x)

    if primitive is not None:
        # Slow only for new kinds of operands; see `fast`.
        quick = fast_binary(primitive, forward)
        quick_back = fast_binary(primitive, lambda x, y: backward(y, x))

        def backward_fast(y: Any, x: Any, /) -> Any:
            return quick_back(x, y)

        def backward_traced(y: Any, x: Any, /) -> Any:
            return traced_back(x, y)

        traced_back = quick_back.of_tracers  # type: ignore[attr-defined]
        backward_traced.staged = traced_back.staged  # type: ignore[attr-defined]
        backward_fast.forms = quick_back.forms  # type: ignore[attr-defined]
        backward_fast.of_tracers = backward_traced  # type: ignore[attr-defined]
        quick.__name__, backward_fast.__name__ = f"__{name}__", f"__r{name}__"
        return quick, backward_fast
    forward.__name__, backward.__name__ = f"__{name}__", f"__r{name}__"
    return forward, backward


def _table() -> dict[str, Any]:
    table: dict[str, Any] = {}
    for name, function, primitive in (
        ("add", el.add, "add"),
        ("sub", el.subtract, "sub"),
        ("mul", el.multiply, "mul"),
        ("truediv", el.divide, "div"),
        ("and", logic.bitwise_and, "and"),
        ("or", logic.bitwise_or, "or"),
        ("xor", logic.bitwise_xor, "xor"),
        ("floordiv", el.floor_divide, None),
        ("mod", el.remainder, None),
        ("divmod", el.divmod, None),
        ("pow", el.power, None),
        ("matmul", products.matmul, None),
        ("lshift", logic.left_shift, None),
        ("rshift", logic.right_shift, None),
    ):
        table[f"__{name}__"], table[f"__r{name}__"] = _operator(name, function, primitive)
    for name, function in (
        ("eq", logic.equal),
        ("ne", logic.not_equal),
        ("lt", logic.less),
        ("le", logic.less_equal),
        ("gt", logic.greater),
        ("ge", logic.greater_equal),
    ):
        table[f"__{name}__"] = _operator(name, function, name)[0]
    return table


def _matmul(x: Any, y: Any) -> Any:
    if isinstance(x, Tracer) and isinstance(y, Array):
        out = products.traced_product(x, y)
        if out is not None:
            return out
    return products.matmul(x, y) if _accepts(y) else NotImplemented


def _pow(x: Any, y: Any, modulus: Any = None) -> Any:
    if type(y) is int and modulus is None:
        return el.power(x, y)
    if modulus is not None:
        raise TypeError("pow: a modulus is not supported. Use (x ** y) % modulus.")
    return el.power(x, y) if _accepts(y) else NotImplemented


# ------------------------------------------------------------------ methods with forms of their own
def _astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    """The array as another dtype: see `jnp.astype`.

    dtype: what it becomes; float64 for None. device: where it is placed. copy: an array of its own
    also where nothing changes. NotImplementedError for PRNG keys.

    >>> jnp.array([1.7, -1.7]).astype(int)
    Array([ 1, -1], dtype=int32)
    """
    if dtypes.is_key(self.aval.dtype):
        raise NotImplementedError("astype of PRNG keys is not there. Take random.key_data(key).")
    wanted = canonical_dtype(dtype, "astype", default=dtypes.float64)
    out = converted(self, wanted)
    out = another(out) if copy and out is self else out
    if isinstance(out, Tracer) and isinstance(device, Device):
        device = SingleDeviceSharding(device)
    return out if device is None else computed_on(out, device)


def _not_whole(x: Any, dtype: Any) -> str:
    return (
        "When changing to a larger dtype, its size must be a divisor of the total size in bytes of "
        f"the last axis of the array: {x.aval} as {dtype}."
    )


def _view(self: Any, dtype: Any = None, type: None = None) -> Any:
    """The same bytes as elements of `dtype`.

    Elements of another size are taken from the last axis, which gets longer or shorter (ValueError
    where it does not hold whole ones). Booleans are viewed as uint8; as booleans bytes are != 0.
    Without a dtype it is the array itself. `type` raises NotImplementedError.

    >>> jnp.array([1.0, -2.0]).view(jnp.uint32)
    Array([1065353216, 3221225472], dtype=uint32)
    """
    if type is not None:
        raise NotImplementedError(
            "view: the argument 'type' is not supported: there is one array type."
        )
    if dtype is None:
        return self
    new = canonical_dtype(dtype, "view", default=dtypes.float64)
    x = self
    old = x.aval.dtype
    if old == new:
        return x
    if old == dtypes.bool_:
        x, old = cast(x, dtypes.uint8), dtypes.uint8
    if new == dtypes.bool_:
        return logic.not_equal(_view(x, dtypes.uint8), 0)
    if dtypes.is_complex(old):
        parts = lax.concatenate(
            [sh.expand_dims(lax.real(x), -1), sh.expand_dims(lax.imag(x), -1)], x.aval.ndim
        )
        if new.itemsize == old.itemsize:  # for example complex64 as int64
            return lax.bitcast_convert_type(parts, new)
        if not x.aval.ndim:
            raise ValueError(f"view: {x.aval} has no last axis to hold the elements of {new}.")
        wide = (*x.aval.shape[:-1], 2 * x.aval.shape[-1])
        return _view(sh.reshape(parts, wide), new)
    if dtypes.is_complex(new):
        part = dtypes.real_of(new)
        if new.itemsize == old.itemsize:
            x = lax.bitcast_convert_type(x, part)
        else:
            if not x.aval.ndim or (x.aval.shape[-1] * old.itemsize) % new.itemsize:
                raise ValueError(_not_whole(x, new))
            flat = _view(x, part)
            x = sh.reshape(flat, (*flat.aval.shape[:-1], flat.aval.shape[-1] // 2, 2))
        return lax.complex(getitem(x, (..., 0)), getitem(x, (..., 1)))
    have, want = dtypes.bits(old), dtypes.bits(new)
    if have == want:
        return lax.bitcast_convert_type(x, new)
    if not x.aval.ndim or (x.aval.shape[-1] * have) % want:
        raise ValueError(_not_whole(x, new))
    size = x.aval.shape[-1] * have // want
    if have > want:
        return sh.reshape(lax.bitcast_convert_type(x, new), (*x.aval.shape[:-1], size))
    parts = sh.reshape(x, (*x.aval.shape[:-1], size, want // have))
    return lax.bitcast_convert_type(parts, new)


def _reshape(
    self: Any, *args: Any, order: str = "C", copy: Any = None, out_sharding: Any = None
) -> Any:
    """The elements in another shape: see `jnp.reshape`.

    args: the lengths, or a tuple of them; one may be -1 and follows from the others. order: 'C' row
    by row, 'F' column by column. copy: has no effect. out_sharding: the layout of the result.

    >>> jnp.arange(6).reshape(2, -1)
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    shape = args[0] if len(args) == 1 else args
    return sh.reshape(self, shape, order, out_sharding=out_sharding)


def _transpose(self: Any, *axes: Any) -> Any:
    """The array with its axes in another order: see `jnp.transpose`.

    axes: for each axis of the result that of the array, one by one or as a tuple; reversed by
    default.

    >>> jnp.zeros((2, 3, 4)).transpose(1, 0, 2).shape
    (3, 2, 4)
    """
    if not axes or axes[0] is None:
        return sh.transpose(self)
    alone = len(axes) == 1 and not isinstance(axes[0], (int, np.integer))
    return sh.transpose(self, axes[0] if alone else axes)


def _item(self: Any, *args: Any) -> Any:
    """The element as a Python number.

    args: the position of the element; without one there must be one element (ValueError). While
    tracing it raises ConcretizationTypeError.

    >>> jnp.array([[1, 2]]).item(0, 1)
    2
    """
    if not args and self.aval.size != 1:
        raise ValueError(
            f"can only convert an array of size 1 to a Python scalar: got {self.aval}."
        )
    return self._value.item(*args)


def _flatten(self: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """The elements in one dimension, as `ravel`.

    order: 'C' row by row, 'F' column by column. out_sharding: the layout of the result.

    >>> jnp.array([[1, 2], [3, 4]]).flatten()
    Array([1, 2, 3, 4], dtype=int32)
    """
    return sh.ravel(self, order, out_sharding=out_sharding)


def _clip(self: Any, min: Any = None, max: Any = None) -> Any:
    """The elements limited to [min, max]: see `jnp.clip`.

    min, max: bounds that broadcast; either may be missing.

    >>> jnp.arange(5).clip(1, 3)
    Array([1, 1, 2, 3, 3], dtype=int32)
    """
    if FLAG.uses and wanted():
        return el.clip_by_name(self, min, max)
    return el.clip(self, min, max)


def _sort(
    self: Any,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Any:
    """A sorted copy along `axis`, where NumPy's method works in place: see `jnp.sort`.

    axis, kind, order, stable, descending: as there.

    >>> jnp.array([3, 1, 2]).sort()
    Array([1, 2, 3], dtype=int32)
    """
    return sorting.sort(self, axis, kind=kind, order=order, stable=stable, descending=descending)


def _trace(
    self: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Any:
    """The sum of the diagonal of two axes: see `jnp.trace`.

    offset, axis1, axis2, dtype, out: as there.

    >>> jnp.array([[1, 2], [3, 4]]).trace()
    Array(5, dtype=int32)
    """
    return index_tricks.trace(self, offset, axis1, axis2, dtype, out)


def _round(self: Any, ndigits: int | None = None) -> Any:
    if ndigits is None:  # Python's own gives integers then
        return cast(el.round(self), canonical_dtype(int, "round"))
    return el.round(self, ndigits)


def _real(self: Any) -> Any:
    return lax.real(self) if dtypes.is_complex(self.aval.dtype) else another(self)


def _imag(self: Any) -> Any:
    if dtypes.is_complex(self.aval.dtype):
        return lax.imag(self)
    return lax.full(self.aval.shape, 0, self.aval.dtype)


def _iterate(self: Any) -> Any:
    if not self.aval.shape:
        raise TypeError("iteration over a 0-d array")
    n = self.aval.shape[0]
    if isinstance(self, Tracer):
        int(n)  # raises for a symbolic size
        return _each(self) if FLAG.uses and wanted() else iter(lax.unstack(self))
    if type(self.aval.dtype) is dtypes.KeyDType:
        return (getitem(self, i) for i in range(n))
    if type(self) is ShardedArray and self.is_fully_replicated and hasattr(self._sharding, "mesh"):
        return (getitem(self, i) for i in range(n))  # they lie on all devices
    return views(self)


def _each(x: Tracer) -> Any:
    """The parts of x along its first axis, as they are asked for."""
    shape = x.aval.shape
    for i in range(shape[0]):
        first = (i,) + (0,) * (len(shape) - 1)
        part = slice_p.bind(
            x, start_indices=first, limit_indices=(i + 1, *shape[1:]), strides=(1,) * len(shape)
        )
        yield lax.squeeze(part, (0,))


def _property(get: Callable, doc: str) -> property:
    return property(get, doc=doc)


_AT_DOC = """Write by index: x.at[i].set(y) is a copy of x with y at the index i.

    Indexing it gives an object with the methods set, add, subtract, multiply, divide, power, min,
    max, apply, and get. In a compiled function an intermediate x that is not used again is written
    in place.

    >>> jnp.zeros(3).at[1].set(5.0)
    Array([0., 5., 0.], dtype=float32)
    """


def _copy(self: Any) -> Any:
    """A new array of the same elements: see `jnp.copy`.

    >>> jnp.arange(3).copy()
    Array([0, 1, 2], dtype=int32)
    """
    return copy_(self)


def _compress(self: Any, condition: Any, axis: int | None = None, **options: Any) -> Any:
    """The slices along `axis` where the vector `condition` holds: see `jnp.compress`.

    options: size, fill_value and out, as there.

    >>> jnp.array([1, 2, 3]).compress(jnp.array([True, False, True]))
    Array([1, 3], dtype=int32)
    """
    return compress(condition, self, axis, **options)


def install() -> None:
    """Give every Array its operators, methods and properties."""
    table = _table()
    power = _operator("pow", el.power)
    table["__pow__"], table["__rpow__"] = _pow, power[1]
    table["__matmul__"] = _matmul
    table.update(
        {
            "__getitem__": getitem,
            "__iter__": _iterate,
            "__neg__": lambda x: el.negative(x),
            "__pos__": lambda x: el.positive(x),
            "__abs__": lambda x: el.absolute(x),
            "__invert__": lambda x: logic.invert(x),
            "__round__": _round,
            "at": _property(IndexUpdateHelper, _AT_DOC),
            "T": _property(sh.transpose, "The axes reversed."),
            "mT": _property(sh.matrix_transpose, "The last two axes exchanged."),
            "real": _property(_real, "The real part."),
            "imag": _property(_imag, "The imaginary part."),
            "astype": _astype,
            "view": _view,
            "reshape": _reshape,
            "transpose": _transpose,
            "flatten": _flatten,
            "ravel": sh.ravel,
            "squeeze": sh.squeeze,
            "swapaxes": sh.swapaxes,
            "repeat": repeat,
            "clip": _clip,
            "round": el.round,
            "copy": _copy,
            "conj": unary.conj,
            "conjugate": unary.conj,
            "dot": products.dot,
            "sum": reductions.sum,
            "prod": reductions.prod,
            "mean": averages.mean,
            "var": averages.var,
            "std": averages.std,
            "max": reductions.max,
            "min": reductions.min,
            "all": reductions.all,
            "any": reductions.any,
            "argmax": reductions.argmax,
            "argmin": reductions.argmin,
            "ptp": reductions.ptp,
            "cumsum": cumulative.cumsum,
            "cumprod": cumulative.cumprod,
            "sort": _sort,
            "argsort": sorting.argsort,
            "nonzero": positions.nonzero,
            "searchsorted": sorting.searchsorted,
            "take": take,
            "choose": choose,
            "compress": _compress,
            "trace": _trace,
            "item": _item,
            "argpartition": sorting.argpartition,
            "__hash__": Array.__hash__,
            **array_methods.METHODS,
        }
    )
    table.update(array_methods.refusing_keys(table))
    hooks.install(Array, table)
    for name, method in table.items():
        of_tracers = getattr(method, "of_tracers", None)
        if of_tracers is not None:  # those of every array ask first what the operands are
            of_tracers.__name__ = name
            hooks.install(Tracer, {name: of_tracers})
            known, primitive = of_tracers.staged
            fast_native.install_staged(name, known, primitive, of_tracers)
    forms: dict[str, fast_native.Forms] = {
        "__neg__": el.negative.forms,  # type: ignore[attr-defined]
        "__abs__": el.absolute.forms,  # type: ignore[attr-defined]
        "__invert__": logic.invert.forms,  # type: ignore[attr-defined]
        "__getitem__": index_forms,
        "__matmul__": products.product_forms,
    }
    install_at(_AT_DOC)
    for name, kind in fast_native.OPERATORS.items():
        if kind == "update":
            continue
        method = table[name]
        fast_native.install(name, method, forms[name] if name in forms else method.forms)
    fast_native.when_ready(lambda: trace_native.install_product(_matmul))
