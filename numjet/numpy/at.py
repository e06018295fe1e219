"""Writing by index: `x.at[index].set(y)` and its other methods return a new array.

Positions out of bounds are dropped (negative ones count from the end first). Ranges become
dynamic_update_slice, everything else one scatter. Concrete arrays are copied and written by NumPy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.api.compiled.shown import FLAG, apart, kept, wanted
from numjet.api.placement.mesh import check_all_entered
from numjet.api.placement.reshard import laid_out
from numjet.base.errors import ShardingTypeError
from numjet.core import dtypes, hooks
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.avals import is_lenient
from numjet.core.dims import any_symbolic
from numjet.core.hooks import Sharded
from numjet.core.structural import placed_like, scalar
from numjet.core.trace import Tracer, current_trace
from numjet.native.operators import AtIndexSlots, AtSlots, Forms, install_updates
from numjet.numpy import dynamic_slices, lax_names as lax
from numjet.numpy.creation import array as make_array, ones_like
from numjet.numpy.elementwise import (
    add as add_,
    divide,
    maximum,
    minimum,
    multiply,
    power,
    subtract,
)
from numjet.numpy.fast import CHECKS, QUIET, quiet_enter, quiet_leave
from numjet.numpy.indexing import (
    PAST,
    Plan,
    Slice,
    get,
    many_places,
    normalized,
    numpy_index,
    parse,
    stack_indices,
    take_plan,
    unwrapped,
)
from numjet.numpy.logic import where
from numjet.numpy.promote import broadcast, cast, int_dtype, promoted
from numjet.ops.slicing import dynamic_update_slice_p, index_dtype


class IndexUpdateHelper(AtSlots):
    """`x.at`: index it to say where, then call set, add, multiply, ..."""

    __slots__ = ()
    __iter__ = None  # any number is an index: it would never end

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("x.at[index] = value changes nothing. Write x = x.at[index].set(value).")

    def __call__(self, *args: Any) -> Any:
        raise TypeError("x.at takes an index in brackets: x.at[index].set(value).")

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self.array!r})"


# What each write gives, with an example of it on the array [1, 2, 3].
_WRITES = {
    "set": ("x with `values` at the index; one of them where a position comes twice.",
            "at[0].set(9)", "Array([9, 2, 3], dtype=int32)"),
    "add": ("x with `values` added at the index, as often as a position comes.",
            "at[jnp.array([0, 0])].add(5)", "Array([11,  2,  3], dtype=int32)"),
    "subtract": ("x with `values` subtracted at the index, as often as a position comes.",
                 "at[1:].subtract(2)", "Array([1, 0, 1], dtype=int32)"),
    "multiply": ("x multiplied by `values` at the index, as often as a position comes.",
                 "at[1:].multiply(2)", "Array([1, 4, 6], dtype=int32)"),
    "min": ("x with the smaller of the element and of `values` at the index.",
            "at[:].min(2)", "Array([1, 2, 2], dtype=int32)"),
    "max": ("x with the larger of the element and of `values` at the index.",
            "at[:].max(2)", "Array([2, 2, 3], dtype=int32)"),
}


def _write(name: str) -> Callable:
    def method(
        self: IndexUpdateRef,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        x = self.array
        if hooks.guards is not None:
            hooks.guards.index(x, self.index)
        if out_sharding is not None:
            given = (
                name, x, self.index, values, indices_are_sorted, unique_indices, mode,
                wrap_negative_indices,
            )  # fmt: skip
            return laid_out(lambda: update(*given), out_sharding)
        if type(x) is ArrayImpl and mode is None and wrap_negative_indices:
            index = self.index
            out = _eager_write(name, x, index, values)
            if out is not None:
                if type(index) is int:
                    _learn_write(name, x.aval, values, out.aval)
                return out
        return update(
            name,
            x,
            self.index,
            values,
            indices_are_sorted,
            unique_indices,
            mode,
            wrap_negative_indices,
        )

    method.__name__ = method.__qualname__ = name
    what, example, shown = _WRITES[name]
    method.__doc__ = f"""{what}

    values: broadcast to the elements at the index, and converted to x's dtype. mode: positions out
    of bounds are dropped by default, and with 'clip' moved to the end; a name or member of
    `lax.GatherScatterMode`. wrap_negative_indices: negative positions count from the end.
    indices_are_sorted, unique_indices: promises; where they do not hold the result is not defined.
    out_sharding: the layout of the result.

    >>> jnp.array([1, 2, 3]).{example}
    {shown}
    """
    return method


class IndexUpdateRef(AtIndexSlots):
    """`x.at[index]`."""

    __slots__ = ()

    def __init__(self, array: Any, index: Any) -> None:
        self.array, self.index = array, index

    set = _write("set")
    add = _write("add")
    subtract = _write("subtract")
    multiply = mul = _write("multiply")
    min = _write("min")
    max = _write("max")

    def divide(self, values: Any, **options: Any) -> Any:
        """x divided by `values` at the index; where a position comes twice, by both.

        values, options: as in `set`. Integers become floats, in all of x.

        >>> jnp.array([2.0, 4.0]).at[1].divide(8)
        Array([2. , 0.5], dtype=float32)
        """
        x = self.array
        return divide(x, ones_like(x).at[self.index].multiply(values, **options))

    def power(self, values: Any, **options: Any) -> Any:
        """x to the power of `values` at the index; where a position comes twice, of their product.

        values, options: as in `set`.

        >>> jnp.array([2.0, 4.0]).at[1].power(2)
        Array([ 2., 16.], dtype=float32)
        """
        x = self.array
        return power(x, ones_like(x).at[self.index].multiply(values, **options))

    def apply(
        self,
        func: Callable,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """x with `func` of the elements at the index; where a position comes twice, of its result
        again.

        func: an elementwise function that keeps the shape. indices_are_sorted, unique_indices,
        mode, out_sharding, wrap_negative_indices: as in `set`.

        >>> jnp.array([1.0, -4.0]).at[1].apply(jnp.abs)
        Array([1., 4.], dtype=float32)
        """
        x = self.array
        if out_sharding is not None:
            options = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices,
                       "mode": mode, "wrap_negative_indices": wrap_negative_indices}  # fmt: skip
            return laid_out(lambda: self.apply(func, **options), out_sharding)
        plan = parse(self.index, x.aval.shape)
        if not plan.arrays or unique_indices:
            values = func(take_plan(x, plan))
            return update(
                "set",
                x,
                self.index,
                values,
                indices_are_sorted,
                unique_indices,
                mode,
                wrap_negative_indices,
            )
        return _repeated_apply(x, plan, func, mode, wrap_negative_indices)

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        fill_value: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """The elements at the index: x[index], with a choice of what is out of bounds.

        mode: 'clip' gives the element at that end, as x[index] does, whatever `fill_value` is;
        'fill' gives `fill_value`, by default NaN, the smallest signed or the largest unsigned
        integer, or True.
        indices_are_sorted, unique_indices, out_sharding, wrap_negative_indices: as in `set`.

        >>> jnp.array([1.0, 2.0]).at[5].get(mode="fill", fill_value=-1)
        Array(-1., dtype=float32)
        """
        found = lambda: get(  # noqa: E731
            self.array,
            self.index,
            mode=mode,
            fill_value=fill_value,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            wrap_negative_indices=wrap_negative_indices,
        )
        return found() if out_sharding is None else laid_out(found, out_sharding, anew=True)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"'_IndexUpdateRef' object has no attribute {name!r}. Its methods return a new array: "
            "set, add, subtract, multiply, divide, power, min, max, apply; get reads."
        )

    def __call__(self, *args: Any) -> Any:
        raise TypeError("x.at[index] is no function. Write x.at[index].set(value), .add(value), …")

    def __iadd__(self, value: Any) -> Any:
        raise TypeError("x.at[index] += value changes nothing. Write x = x.at[index].add(value).")

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"


class _ConcreteHelper(IndexUpdateHelper):
    """`x.at` of a concrete array where native code makes it."""

    __slots__ = ()


class _ConcreteRef(IndexUpdateRef):
    """`x.at[index]` of a concrete array where native code makes it."""

    __slots__ = ()


_AT: dict[str, np.ufunc] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}
_COMBINE: dict[str, Callable] = {
    "add": add_,
    "subtract": subtract,
    "multiply": multiply,
    "min": minimum,
    "max": maximum,
}
_BASIC = (int, slice, type(None), type(Ellipsis))
_FORMS = {name: Forms() for name in ("set", *_AT)}
# Writes at an integer that native code was told of.
_learned: set[tuple] = set()


def install(doc: str) -> None:
    """Make `x.at` native for concrete arrays, where it can be."""
    install_updates(_ConcreteHelper, _ConcreteRef, _FORMS, doc)


def _learn_write(name: str, x: Any, values: Any, out: Any) -> None:
    given = values.aval if type(values) is ArrayImpl else type(values)
    key = (name, x, given)
    if key not in _learned and len(_learned) < _MAX_LEARNED:
        _learned.add(key)
        _FORMS[name].learn_update(_AT.get(name, np.positive), x, given, out)


_MAX_LEARNED = 10_000


def _eager_write(name: str, x: ArrayImpl, index: Any, values: Any) -> ArrayImpl | None:
    """The write by NumPy on a copy, or None when the complete way must decide."""
    if not current_trace().at_once or CHECKS[0]:
        return None
    dtype = x.aval.dtype
    if name == "set" and type(index) is int and type(values) is int and dtype.kind in "fi":
        # The commonest write: no conversion that could warn, no aval that could change.
        new = x._value.copy()
        try:
            new[index] = values
        except (IndexError, OverflowError):
            return None
        return ArrayImpl(new, x.aval)
    if type(values) is ArrayImpl:
        if values.aval.dtype != dtype or values.aval.ndim > x.aval.ndim:
            return None
        value: Any = values._value
    elif type(values) in (int, float, bool) and dtype.kind in "fiu":
        if dtype.kind != "f" and type(values) is float:
            return None
        value = values
    else:
        return None
    plain = index if type(index) is int else numpy_index(index)
    if plain is None or many_places(plain):
        return None
    if name != "set" and (dtype.kind == "b" or dtypes.is_key(dtype)):
        return None
    new = x._value.copy()
    token = quiet_enter(QUIET)
    try:
        if name == "set":
            new[plain] = value
        elif type(plain) in _BASIC or (
            type(plain) is tuple and all([type(i) in _BASIC for i in plain])
        ):
            new[plain] = _AT[name](new[plain], value)
        else:
            if type(value) is np.ndarray:
                if new.ndim == value.ndim == 1:
                    value = _rows(value, plain)
            else:
                value = dtype.type(value)
            _AT[name].at(new, plain, value)
    except (IndexError, ValueError, TypeError, OverflowError):
        return None
    finally:
        quiet_leave(token)
    return ArrayImpl(new, x.aval)


def _rows(values: np.ndarray, index: Any) -> np.ndarray:
    """A row of values for `ufunc.at` on an array of one axis, with as many axes as the index has.

    NumPy (2.4 and before) reads past the end of a row that it should repeat for rows of an index.
    """
    for item in index if type(index) is tuple else (index,):
        if type(item) is np.ndarray and item.ndim > 1:
            return values.reshape([1] * (item.ndim - 1) + [-1])
    return values


# ------------------------------------------------------------------ the complete way
def update(
    name: str,
    x: Any,
    index: Any,
    values: Any,
    is_sorted: bool = False,
    unique: bool = False,
    mode: Any = None,
    wrap: bool = True,
) -> Any:
    """x with `name` (set, add, subtract, multiply, min, max) done with `values` at `index`."""
    if FLAG.uses and kept():
        return apart(update, update, (name, x, index, values, is_sorted, unique, mode, wrap), {})
    y = values if isinstance(values, Array) else _given(values, x.aval.dtype)
    if Sharded.active and type(y) is ArrayImpl and not is_lenient():
        check_all_entered([x])  # the values become laid out as what they replace
    if x.aval.dtype == y.aval.dtype == dtypes.bool_ and name in ("add", "multiply", "subtract"):
        raise TypeError(
            f"at[].{name}: scatter_{name} does not accept dtype bool. Use .max for 'or', .min for "
            "'and'."
        )
    if name != "set":
        dtypes.refuse_keys(f"at[].{name}", x.aval.dtype)
    weak = x.aval.weak_type      # the updated copy is what x was, weakly typed if x is
    if y.aval.dtype != x.aval.dtype:
        wide = _common_dtype(x, y)
        if wide != x.aval.dtype and name != "set":
            # Combined as x + y would be, then cut.
            wider = cast(x, wide), index, cast(y, wide)
            return cast(update(name, *wider, is_sorted, unique, mode, wrap), x.aval.dtype, weak)
    x = cast(x, x.aval.dtype, weak)
    if not (FLAG.uses and wanted()):  # else once the indices are there, as JAX does
        y = cast(y, x.aval.dtype, weak)
    if dynamic_slices.among(index):
        index = dynamic_slices.positions(index, x.aval.shape)
    masked = _mask_only(x, index)
    if masked is not None and not y.aval.ndim:
        y = cast(y, x.aval.dtype, weak)
        new = y if name == "set" else _COMBINE[name](x, y)
        return where(masked, broadcast(new, x.aval.shape), x)
    plan = parse(index if wrap else unwrapped(index, PAST), x.aval.shape)
    return write_plan(name, x, plan, y, is_sorted, unique, mode, wrap)


def _given(values: Any, dtype: Any) -> Any:
    """Values that are no array as one: a Python integer that the default integer cannot hold, and
    unsigned integers or floats may, is of their dtype."""
    if type(values) is int and not (dtypes.is_bool(dtype) or dtypes.kind(dtype) == "i"):
        high = 1 << 8 * int_dtype().itemsize - 1
        if not -high <= values < high:
            return make_array(values, dtype=dtype)
    return make_array(values)


def accumulated(x: Any, index: Any, values: Any) -> Any:
    """`x.at[index].add(values, mode="drop")`; of booleans whether any is True."""
    name = "max" if x.aval.dtype == dtypes.bool_ else "add"
    return update(name, x, index, values, mode="drop")


def _mask_only(x: Any, index: Any) -> Any:
    """A traced boolean mask of x's leading axes, at the shape of x; None for any other index."""
    item = index[0] if isinstance(index, tuple) and len(index) == 1 else index
    if not isinstance(item, Tracer) or item.aval.dtype != dtypes.bool_ or not item.aval.ndim:
        return None
    n = item.aval.ndim
    if item.aval.shape != x.aval.shape[:n]:
        return None
    return lax.broadcast_in_dim(item, x.aval.shape, tuple(range(n)))


def _common_dtype(x: Any, y: Any) -> Any:
    """The dtype of both together; a warning where it is not that of x."""
    if dtypes.is_key(x.aval.dtype) or dtypes.is_key(y.aval.dtype):
        raise TypeError(
            f"at[]: cannot write {y.aval} into {x.aval}: PRNG keys and numbers do not mix."
        )
    dtype = promoted(x, y)[0]
    if dtype != x.aval.dtype:
        warnings.warn(
            "scatter inputs have incompatible types: cannot safely cast value from "
            f"dtype={y.aval.dtype} to dtype={x.aval.dtype}. Convert it with .astype first.",
            FutureWarning,
            stacklevel=4,
        )
    return dtype


def write_plan(
    name: str,
    x: Any,
    plan: Plan,
    y: Any,
    is_sorted: bool = False,
    unique: bool = False,
    mode: Any = None,
    wrap: bool = True,
) -> Any:
    """x with `y` (which broadcasts to the plan's result) written or combined."""
    own = x.aval.shape
    result = plan.result_shape()
    if not _fits(y.aval.shape, result):
        raise ValueError(
            f"Incompatible shapes for broadcasting: the value of shape {y.aval.shape} "
            f"does not fit the indexed shape {result}."
        )
    clip = mode is not None and lax.GatherScatterMode.from_any(mode) is lax.GatherScatterMode.CLIP
    for axis in plan.ints:
        if plan.shape[axis] == 0:
            raise IndexError(f"index is out of bounds for axis {axis} with size 0.")
    # What is outside is written as an equation, for checkify.
    kept = isinstance(x, Tracer) or not current_trace().at_once
    plan, outside = _bound(plan, clip, kept)
    if outside and not kept or 0 in result or not x.aval.size:
        return x
    if x.aval.shape != plan.shape:
        x = lax.reshape(x, plan.shape)
    steady = all(s is None or s == "block" or s.step == 1 for s in plan.slots)
    whole = not plan.arrays and not plan.ints and result == plan.shape
    stepped = not plan.arrays and "block" not in plan.slots  # slices alone
    if FLAG.uses and wanted() and None not in plan.slots and stepped and not steady:
        if all([s.step > 0 for s in plan.slots]):
            return _scatter(name, x, plan, plan.slots, y, True, True, mode, wrap, result)
    if steady and not whole and None not in plan.slots and FLAG.uses and wanted():
        unmoved = is_sorted or all(not a.aval.ndim for a in plan.arrays.values())
        unique = unique or unmoved
        return _scatter(name, x, plan, plan.slots, y, unmoved, unique, mode, wrap, result)
    y = broadcast(cast(y, x.aval.dtype, x.aval.weak_type), result)
    slots = [s for s in plan.slots if s is not None]
    if len(slots) != len(plan.slots):
        y = lax.reshape(y, plan._replace(slots=slots).result_shape())
    y, slots = _forward(y, slots, len(plan.block))
    steady = all(s == "block" or s.step == 1 for s in slots)
    if not plan.arrays and steady and not outside:
        out = _write_range(name, x, plan.ints, slots, y)
    else:
        out = _scatter(name, x, plan, slots, y, is_sorted, unique, mode, wrap)
    out = lax.reshape(out, own) if out.aval.shape != own else out
    return out if x.aval.placed is None or x.aval.shape != own else placed_like(out, x.aval)


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether `shape` broadcasts to `wanted`."""
    return len(shape) <= len(wanted) and all(
        [n in (1, m) for n, m in zip(shape[::-1], wanted[::-1])]
    )


def _bound(plan: Plan, clip: bool, kept: bool) -> tuple[Plan, bool]:
    """Static positions counted from the front; whether one is outside (and nothing is written).

    Outside, `clip` takes the nearest position, unless positions are `kept` as they are.
    """
    ints, outside = {}, False
    for axis, i in plan.ints.items():
        n = plan.shape[axis]
        i = i + n if i < 0 else i
        if not 0 <= i < n:
            if kept:
                limits = dtypes.iinfo(index_dtype(n))
                i, outside = min(max(i, limits.min), limits.max), True
            elif not clip or not n:
                return plan, True
            else:
                i = min(max(i, 0), n - 1)
        ints[axis] = i
    return plan._replace(ints=ints), outside


def _forward(y: Any, slots: list, width: int) -> tuple[Any, list]:
    """Backward ranges made forward, with the values reversed."""
    turned, out, axis = [], [], 0
    for slot in slots:
        if slot == "block":
            out.append(slot)
            axis += width
            continue
        if slot.step < 0:
            slot = Slice(slot.axis, slot.start + (slot.size - 1) * slot.step, slot.size, -slot.step)
            if slot.size > 1:
                turned.append(axis)
        if slot.size == 1:
            slot = slot._replace(step=1)
        out.append(slot)
        axis += 1
    return (lax.rev(y, tuple(turned)) if turned else y), out


def _write_range(name: str, x: Any, ints: dict[int, int], slots: list, y: Any) -> Any:
    """A box of x: dynamic_update_slice at static positions."""
    starts, sizes = [0] * x.aval.ndim, [1] * x.aval.ndim
    for axis, i in ints.items():
        starts[axis] = i
    for slot in slots:
        starts[slot.axis], sizes[slot.axis] = slot.start, slot.size
    y = lax.reshape(y, tuple(sizes))
    if name != "set":
        whole = tuple(sizes) == x.aval.shape
        old = x if whole else lax.slice(x, starts, [a + n for a, n in zip(starts, sizes)])
        y = _COMBINE[name](old, y)
    if tuple(sizes) == x.aval.shape:
        return y
    if x.aval.placed is not None and y.aval.placed is not None and not is_lenient():
        cut = x.aval.placed.layout(x.aval.ndim)
        if any([axes and n != m for axes, n, m in zip(cut, sizes, x.aval.shape)]):
            raise ShardingTypeError(
                "Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for "
                f"the scatter update: a part of an axis that is cut, of {x.aval}, becomes {y.aval}."
            )
    dtype = index_dtype(*x.aval.shape)
    return dynamic_update_slice_p.bind(x, y, *[scalar(s, dtype) for s in starts])


def _everywhere(shape: tuple, value: Any, dtype: Any) -> Any:
    """One index at all places: a constant, but where sizes are symbolic."""
    if not shape:
        return scalar(value, dtype)
    if any_symbolic((*shape, value)):
        return lax.full(shape, value, dtype)
    return as_array(np.full(shape, value, dtype))


_SCATTER = {
    "set": "scatter",
    "add": "scatter_add",
    "subtract": "scatter_sub",
    "multiply": "scatter_mul",
    "min": "scatter_min",
    "max": "scatter_max",
}


def scatter_layout(plan: Plan, slots: list, wrap: bool) -> tuple[Any, Any]:
    """The indices and dimension numbers of the scatter that writes where `plan` reads."""
    batch: list[int] = []  # the axes that walk over positions, in the order of the values' axes
    strided: dict[int, int] = {}
    window, at, block_at = [], 0, 0
    for slot in slots:
        if slot == "block":
            block_at = len(batch)
            batch.extend(plan.block)
            at += len(plan.block)
        elif slot.step != 1:
            strided[slot.axis] = len(batch)
            batch.append(slot.size)
            at += 1
        else:
            window.append(at)
            at += 1
    shape = tuple(batch)

    def along(value: Any, first: int, rank: int) -> Any:
        lanes = (1,) * first + value.aval.shape + (1,) * (len(shape) - first - rank)
        return broadcast(lax.reshape(value, lanes), shape)

    dtype = index_dtype(*plan.shape)
    parts: dict[int, Any] = {}
    for axis, index in plan.arrays.items():
        index = broadcast(normalized(index, plan.shape[axis], wrap, dtype), plan.block)
        parts[axis] = along(index, block_at, len(plan.block))
    for axis, i in plan.ints.items():
        parts[axis] = _everywhere(shape, i, dtype)
    for slot in slots:
        if slot == "block":
            continue
        if slot.step != 1:
            if FLAG.uses and wanted() and not any_symbolic((slot.start, slot.size)):
                steps = lax.mul(scalar(slot.step, dtype), lax.iota(dtype, slot.size))
                values = lax.add(scalar(slot.start, dtype), steps)
            elif any_symbolic((slot.start, slot.size)):
                values = lax.iota(dtype, slot.size) * slot.step + scalar(slot.start, dtype)
            else:
                values = as_array(slot.start + slot.step * np.arange(slot.size, dtype=dtype))
            parts[slot.axis] = along(values, strided[slot.axis], 1)
        elif slot.size != plan.shape[slot.axis]:
            parts[slot.axis] = _everywhere(shape, slot.start, dtype)
    axes = tuple(sorted(parts))
    inserted = tuple(sorted([*plan.arrays, *plan.ints, *strided]))
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(window),
        inserted_window_dims=inserted,
        scatter_dims_to_operand_dims=axes,
    )
    return stack_indices([parts[k] for k in axes], shape), numbers


def _scatter(
    name: str,
    x: Any,
    plan: Plan,
    slots: list,
    y: Any,
    is_sorted: bool,
    unique: bool,
    mode: Any,
    wrap: bool,
    shape: tuple[int, ...] | None = None,
) -> Any:
    """One scatter; shape: what `y` is repeated to, once the indices are there."""
    indices, numbers = scatter_layout(plan, slots, wrap)
    unique = unique or not plan.arrays
    y = y if shape is None else broadcast(cast(y, x.aval.dtype, x.aval.weak_type), shape)
    if name == "multiply" and dtypes.is_bool(x.aval.dtype):
        raise TypeError("at[].multiply: booleans have no product; use .min (and).")
    return getattr(lax, _SCATTER[name])(
        x, indices, y, numbers, indices_are_sorted=is_sorted, unique_indices=unique, mode=mode
    )


def _repeated_apply(x: Any, plan: Plan, func: Callable, mode: Any, wrap: bool) -> Any:
    own = x.aval.shape
    if own != plan.shape:
        x = lax.reshape(x, plan.shape)
    kept = isinstance(x, Tracer) or not current_trace().at_once
    plan, outside = _bound(plan, False, kept)
    if outside and not kept or 0 in plan.result_shape():
        return lax.reshape(x, own)
    slots = [s for s in plan.slots if s is not None]
    shape = plan._replace(slots=slots).result_shape()
    dummy = as_array(np.zeros(shape, np.int8))
    _, slots = _forward(dummy, slots, len(plan.block))
    indices, numbers = scatter_layout(plan, slots, wrap)
    out = lax.scatter_apply(x, indices, func, numbers, update_shape=shape, mode=mode)
    return lax.reshape(out, own) if out.aval.shape != own else out
