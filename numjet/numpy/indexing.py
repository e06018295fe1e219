"""Reading by index: NumPy's whole index language on immutable arrays.

`parse` turns an index into a `Plan` that says, axis by axis, what happens; `numjet.numpy.at` shares
it for writes. Static ints and slices become slice, rev and squeeze; traced integers dynamic_slice;
arrays one gather. Concrete arrays outside of transformations are indexed by NumPy itself: its
result differs only out of bounds, where it raises and the complete way decides (reads clamp).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.api.compiled.shown import FLAG, apart, kept, wanted
from numjet.base.errors import (
    InconclusiveDimensionOperation,
    NonConcreteBooleanIndexError,
    ShardingTypeError,
)
from numjet.base.record import NamedTuple
from numjet.core import dtypes, hooks
from numjet.core.array import Array, ArrayImpl, as_array, is_arraylike
from numjet.core.avals import ShapedArray, is_lenient
from numjet.core.dims import DimExpr, any_symbolic, index_of, largest, smallest
from numjet.core.evaluate import LARGE, another
from numjet.core.memo import Memo
from numjet.core.structural import convert_element_type_p, scalar
from numjet.core.trace import Tracer, concrete_or_none, current_trace
from numjet.native.operators import Forms
from numjet.numpy import dynamic_slices, lax_names as lax
from numjet.numpy.elementwise import add
from numjet.numpy.logic import less, where
from numjet.numpy.promote import broadcast, join_shapes
from numjet.ops.shape import iota_p
from numjet.ops.slicing import index_dtype, narrow_index
from numjet.transforms.again import again, as_one
from numjet.transforms.eager import LinearTracer

INT32 = np.dtype(np.int32)


class Slice(NamedTuple):
    """Axis `axis` from `start`, `size` elements apart by `step` (negative: backwards)."""

    axis: int
    start: int
    size: int
    step: int
    limit: Any = None  # where it ends, of symbolic sizes


class Plan(NamedTuple):
    """What an index does to an array of `shape` (with axes of size 1 added for boolean scalars).

    slots: the result's axes in order: a Slice, None (a new axis) or "block" (the axes that the
    index arrays broadcast to; once at most). ints: {axis: static position}. arrays: {axis: integer
    Array}. A static position out of bounds is kept as it is.
    """

    shape: tuple[int, ...]
    slots: list
    ints: dict[int, int]
    arrays: dict[int, Any]
    block: tuple[int, ...]

    def result_shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        out: list[int] = []
        for slot in self.slots:
            if slot is None:
                out.append(1)
            elif slot == "block":
                out.extend(self.block)
            else:
                out.append(slot.size)
        return tuple(out)


# ------------------------------------------------------------------ parsing
def _is_item(x: Any) -> bool:
    """Whether `x`, in a list, can be no number of an array of positions."""
    return x is None or x is Ellipsis or isinstance(x, (slice, Sequence, Array, np.ndarray))


def _items(index: Any) -> list[Any]:
    if isinstance(index, list):
        raise TypeError(
            "Using a non-tuple sequence for multidimensional indexing is not allowed; use "
            f"`arr[{'tuple' if any(map(_is_item, index)) else 'array'}(seq)]` for {index!r}: an "
            "array holds positions along an axis, a tuple an item for each."
        )
    return list(index) if isinstance(index, tuple) else [index]


def _normalize(item: Any, position: int) -> Any:
    """One index item as int, slice, None, Ellipsis, bool or an Array."""
    kind = type(item)
    if kind is int or kind is slice or item is None or item is Ellipsis or kind is bool:
        return item
    if isinstance(item, np.integer):
        # Of 64 bits without enable_x64 the low 32 count, as in arrays of positions.
        return int(item.astype(dtypes.canonical(item.dtype)))
    if isinstance(item, np.bool_):
        return bool(item)
    if isinstance(item, (list, tuple)):
        if not len(item):
            return as_array(np.zeros((0,), INT32))
        if any(isinstance(v, Tracer) for v in item):
            raise TypeError(
                "Lists and tuples of traced values are not allowed within an index: "
                f"got {item!r}. Use jnp.stack."
            )
        item = np.asarray(item)
    if isinstance(item, str):
        raise TypeError(f"JAX does not support string indexing; got idx={item!r}.")
    if isinstance(item, (float, complex)):
        raise TypeError(
            "Indexer must have integer or boolean type, got indexer with type "
            f"{type(item).__name__} at position {position}: {item!r}."
        )
    if isinstance(item, np.ndarray) and dtypes.kind(item.dtype) not in "iub":
        raise TypeError(
            "Indexer must have integer or boolean type, got indexer with type "
            f"{item.dtype} at position {position}."
        )
    if (
        not isinstance(item, Array)
        and not hasattr(item, "__array__")
        and hasattr(item, "__index__")
    ):
        return operator.index(item)
    if not is_arraylike(item):
        if isinstance(item, Sequence) and not isinstance(item, str):
            raise TypeError(
                "Using a non-tuple sequence for multidimensional indexing is not allowed: "
                f"make an array of {item!r}."
            )
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or "
            f"boolean arrays are valid indices. Got {item!r}."
        )
    array = as_array(item)
    dtype = array.aval.dtype
    if not (dtypes.is_integer(dtype) or dtype == dtypes.bool_):
        raise TypeError(
            "Indexer must have integer or boolean type, got indexer with type "
            f"{dtype} at position {position}. Convert it with .astype(int)."
        )
    if not array.aval.shape and type(array) is ArrayImpl and not (FLAG.uses and wanted()):
        return array._value[()].item()
    return array


def parse(index: Any, shape: tuple[int, ...]) -> Plan:
    """What `index` does to an array of `shape`. IndexError when it has too many parts."""
    items = [_normalize(item, i) for i, item in enumerate(_items(index))]
    used = 0
    for item in items:
        if isinstance(item, Array):
            used += item.aval.ndim if item.aval.dtype == dtypes.bool_ else 1
        elif item is not None and item is not Ellipsis and type(item) is not bool:
            used += 1
    if used > len(shape):
        raise IndexError(
            f"Too many indices: array is {len(shape)}-dimensional, but {used} were "
            f"indexed (shape {shape})."
        )
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...').")
    fill: list[Any] = [slice(None)] * (len(shape) - used)
    if dots:
        items[dots[0] : dots[0] + 1] = fill or [Ellipsis]
    else:
        items += fill
    return _assign(items, shape)


def _assign(items: list[Any], shape: tuple[int, ...]) -> Plan:
    axis, wide = 0, list(shape)
    slots: list[Any] = []
    ints: dict[int, int] = {}
    arrays: dict[int, Any] = {}
    # How many slots, and empty ellipses, came before each advanced item.
    advanced: list[tuple[int, int]] = []
    gaps = 0
    any_array = any(
        type(item) is bool
        or isinstance(item, Array)
        and (item.aval.ndim or item.aval.dtype == dtypes.bool_)
        for item in items
    )
    for position, item in enumerate(items):
        if item is None:
            slots.append(None)
            continue
        if item is Ellipsis:
            gaps += 1  # as in NumPy, it separates index arrays even where it stands for no axis
            continue
        if (
            type(item) is bool
            or isinstance(item, Array)
            and not item.aval.ndim
            and (item.aval.dtype == dtypes.bool_)
        ):
            flag = item if type(item) is bool else bool(_concrete_mask(item))
            wide.insert(axis, 1)
            arrays[axis] = as_array(np.zeros((1 if flag else 0,), INT32))
            advanced.append((len(slots), gaps))
            axis += 1
            continue
        if isinstance(item, slice):
            slots.append(_slice(item, axis, wide[axis], position))
            axis += 1
            continue
        if type(item) is int:
            ints[axis] = item
            if any_array:
                advanced.append((len(slots), gaps))
            axis += 1
            continue
        if item.aval.dtype == dtypes.bool_:
            for found in _true_places(item, wide[axis:], position):
                arrays[axis] = found
                axis += 1
            advanced.append((len(slots), gaps))
            continue
        arrays[axis] = item
        advanced.append((len(slots), gaps))
        axis += 1
    if not arrays:
        return Plan(tuple(wide), slots, ints, arrays, ())
    block = join_shapes("indexing", [a.aval.shape for a in arrays.values()])
    if block or any_array:
        # Adjacent index arrays stay in place; separated ones put their axes in front.
        together = len(set(advanced)) == 1
        slots.insert(advanced[0][0] if together else 0, "block")
    return Plan(tuple(wide), slots, ints, arrays, block)


def _true_places(item: Any, sizes: list[int], position: int) -> list[Any]:
    """The index arrays that a mask means; `sizes` are those of its axes and of the rest."""
    mask = _concrete_mask(item)
    own = sizes[: mask.ndim]
    if mask.shape != tuple(own):
        raise IndexError(
            "boolean index did not match shape of indexed array in index "
            f"{position}: got {mask.shape}, expected {own}."
        )
    return [as_array(x.astype(index_dtype(n))) for x, n in zip(np.nonzero(mask), mask.shape)]


def _concrete_mask(item: Any) -> np.ndarray:
    known = concrete_or_none(item)
    if known is None:
        raise NonConcreteBooleanIndexError(
            f"Array boolean indices must be concrete; got {item.aval}, which is traced: the "
            "result's size depends on its values. Use jnp.where(mask, x, other), x.at[...] with "
            f"jnp.where, or jnp.nonzero(mask, size=...). {item.origin()}".rstrip()
        )
    return np.asarray(known)


def _slice(item: slice, axis: int, n: int, position: int) -> Slice:
    parts = []
    for part in (item.start, item.stop, item.step):
        if part is not None and type(part) is not int:
            if isinstance(part, Tracer) and part.concrete() is None:
                raise IndexError(
                    f"Slice entries must be static integers. Got {item} at position {position}, "
                    f"with a traced value. {part.origin()} Use lax.dynamic_slice_in_dim(x, start, "
                    "size) with a static size, or make the argument static."
                )
            try:
                part = index_of(part)
            except TypeError:
                raise TypeError(
                    f"Slice entries must be static integers. Got {item} at position {position}."
                ) from None
        parts.append(part)
    if parts[2] == 0:
        raise ValueError(f"slice step cannot be zero: {item} at position {position}.")
    if any_symbolic((n, *parts)):
        return Slice(axis, *_symbolic_slice(parts, n))
    start, stop, step = slice(*parts).indices(n)
    count = len(range(start, stop, step))
    return Slice(axis, start if count else 0, count, step)


def _symbolic_slice(parts: list[Any], n: Any) -> tuple[Any, Any, int, Any]:
    """The first place, the number of places, the step and, of a positive step, the end of a slice,
    by expressions."""
    start, stop, step = parts
    step = 1 if step is None else step
    low, high = (0, n) if step > 0 else (-1, n - 1)

    def place(x: Any, default: Any) -> Any:
        if x is None:
            return default
        return largest(low, n + x) if x < 0 else smallest(high, x)

    start, stop = place(start, low if step > 0 else high), place(stop, high if step > 0 else low)
    over, by = (stop - start, step) if step > 0 else (start - stop, -step)
    count = largest(0, over + by - 1)
    count = count if by == 1 else count // by
    return start, count, step, start + largest(0, over) if step > 0 else None


# ------------------------------------------------------------------ reading
_rows: dict[ShapedArray, ShapedArray] = Memo("rows")


_ranges: dict[tuple, ShapedArray] = Memo("ranges of rows")


index_forms = Forms()  # of integers and slices; see `fast_native`


def getitem(x: Any, index: Any, /) -> Any:
    """x[index]; positions out of bounds are clamped."""
    if hooks.guards is not None:
        hooks.guards.index(x, index)
    if type(x) is not ArrayImpl or not current_trace().at_once:
        if FLAG.uses and kept():
            return apart(getitem, getitem, (x, index), {})
        if type(x) is LinearTracer and isinstance(index, Array):
            linear = as_one(_complete, (x, index))
            if linear is not None:
                return linear
        out = _complete(x, index)
        return another(x) if out is x else out
    aval = x.aval
    if type(index) is int:
        row = _rows.get(aval)
        if row is None:
            if not aval.shape:
                return _complete(x, index)
            row = _rows[aval] = ShapedArray(aval.shape[1:], aval.dtype, aval.weak_type)
            index_forms.learn_view(aval, None, row)
        if -aval.shape[0] <= index < aval.shape[0]:
            return ArrayImpl(x._value[index, ...], row)
        return _complete(x, index)
    plain = index if type(index) is slice or index is None else numpy_index(index)
    if plain is None and index is not None:
        return _complete(x, index)
    if (plain is not index or type(index) is np.ndarray) and many_places(plain):
        return _complete(x, index)
    try:
        value = x._value[plain]
    except (IndexError, OverflowError, TypeError, ValueError):
        return _complete(x, index)
    if type(value) is not np.ndarray:
        value = np.asarray(value)
    key = (aval, value.shape)
    found = _ranges.get(key)
    if found is None:
        found = _ranges[key] = ShapedArray(value.shape, aval.dtype, aval.weak_type)
        if aval.shape and value.shape[:1] and value.shape[1:] == aval.shape[1:]:
            index_forms.learn_view(aval, value.shape[0], found)
    return ArrayImpl(value, found)


def many_places(index: Any) -> bool:
    """Whether an index of NumPy's names so many places that a program finds them sooner."""
    if type(index) is tuple:
        return any(map(many_places, index))
    return type(index) is np.ndarray and index.size >= LARGE and index.dtype != np.bool_


_PLAIN = (int, slice, type(None), type(Ellipsis))
_ALL_PLAIN = frozenset(_PLAIN)


def numpy_index(index: Any) -> Any:
    """`index` for NumPy when it is concrete and NumPy gives it the same meaning, else None."""
    kind = type(index)
    if kind in _PLAIN:
        return index
    if kind is ArrayImpl:
        return None if dtypes.is_key(index._aval.dtype) else index._value
    if kind is np.ndarray and dtypes.kind(index.dtype) in "iub":
        return index
    if kind is tuple:
        if _ALL_PLAIN.issuperset(map(type, index)):
            return index
        out = []
        for item in index:
            kind = type(item)
            if kind in _PLAIN:
                out.append(item)
            elif kind is ArrayImpl and not dtypes.is_key(item._aval.dtype):
                out.append(item._value)
            elif kind is np.ndarray and dtypes.kind(item.dtype) in "iub":
                out.append(item)
            else:
                return None
        return tuple(out)
    return None


def _beyond(x: Any, item: Any) -> Any:
    """A place of an index; one past 32 bits is as far past the ends as these go, where numbers of
    64 bits may be positions."""
    if type(item) is not int or -PAST - 1 <= item <= PAST:
        return item
    if item >= 0 and any([type(n) is int and n >= item for n in x.aval.shape]):
        return item
    bits = 8 * dtypes.canonical(dtypes.int64).itemsize
    if bits == 32 or not -(2**63) <= item < 2**63:
        raise OverflowError(f"The index {item} is too large for int{bits}, which positions are.")
    return min(max(item, -PAST - 1), PAST)


def _complete(x: Any, index: Any) -> Any:
    for item in index if type(index) is tuple else (index,):
        if type(item) is int and not -PAST - 1 <= item <= PAST:
            whole = index if type(index) is tuple else (index,)
            index = tuple([_beyond(x, v) for v in whole])
            break
    if dynamic_slices.among(index):
        x, index = dynamic_slices.cut(x, index)
    if isinstance(x, Tracer):
        key = _static(index if type(index) is tuple else (index,))
        if key is not None:
            return again(key, x, lambda t: take_plan(t, parse(index, t.aval.shape)))
    return take_plan(x, parse(index, x.aval.shape))


def _static(index: tuple) -> tuple | None:
    """An index of numbers, ranges of numbers and new axes, as a key; None for others."""
    key: list[Any] = [getitem]
    for item in index:
        kind = type(item)
        if kind is slice:
            item = (item.start, item.stop, item.step)
            for part in item:
                if part is not None and type(part) is not int:
                    return None
        elif kind is not int and item is not None and item is not Ellipsis:
            return None
        key.append(item)
    return tuple(key)


def get(
    x: Any,
    index: Any,
    *,
    mode: Any = None,
    fill_value: Any = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    wrap_negative_indices: bool = True,
    out_sharding: Any = None,
) -> Any:
    """`x.at[index].get(...)`: getitem with a choice of what happens out of bounds.

    mode: 'clip' (and 'promise_in_bounds', the default, which pay no heed to `fill_value`) or 'fill'
    with `fill_value` (NaN, or the smallest or largest integer, by default).
    """
    if mode is None and wrap_negative_indices:
        return getitem(x, index)
    if FLAG.uses and kept():
        given = {
            "mode": mode, "fill_value": fill_value, "indices_are_sorted": indices_are_sorted,
            "unique_indices": unique_indices, "wrap_negative_indices": wrap_negative_indices,
        }  # fmt: skip
        return apart(get, get, (x, index), given)
    if not wrap_negative_indices:
        index = unwrapped(index, PAST if mode is not None and is_fill(mode) else 0)
    plan = parse(index, x.aval.shape)
    return take_plan(
        x, plan, mode, fill_value, indices_are_sorted, unique_indices, wrap_negative_indices
    )


PAST = 2**31 - 1  # a position that no axis has


def unwrapped(index: Any, instead: int) -> Any:
    """`index` with `instead` for its negative integers, which would count from the end."""
    parts = index if isinstance(index, tuple) else (index,)
    parts = tuple([
        instead if isinstance(p, int | np.integer) and type(p) is not bool and p < 0 else p
        for p in parts
    ])
    return parts if isinstance(index, tuple) else parts[0]


def is_fill(mode: Any) -> bool:
    """Whether `mode` names filling (or dropping)."""
    return mode is not None and lax.GatherScatterMode.from_any(mode) is (
        lax.GatherScatterMode.FILL_OR_DROP
    )


def take_plan(
    x: Any,
    plan: Plan,
    mode: Any = None,
    fill_value: Any = None,
    is_sorted: bool = False,
    unique: bool = False,
    wrap: bool = True,
) -> Any:
    """The elements of x that `plan` names."""
    if x.aval.shape != plan.shape:
        x = lax.reshape(x, plan.shape)
    filling = is_fill(mode)
    arrays = dict(plan.arrays)
    ints = dict(plan.ints)
    shows, dynamic = FLAG.uses and wanted(), all(not a.aval.ndim for a in arrays.values())
    if filling and shows and dynamic and (arrays or ints):
        is_sorted = unique = True
        wrap = wrap and bool(arrays)
    if filling or not current_trace().at_once and not _clips(mode):
        for axis, i in list(ints.items()):
            n = plan.shape[axis]
            if type(n) is DimExpr:
                continue
            if filling and shows:
                i = ints[axis] = i + n if i < 0 else i
            if filling and shows or not -n <= i < n:
                # As an array, which is seen to be outside: by filling, and by checkify.
                dtype = index_dtype(n)
                least, most = dtypes.iinfo(dtype).min, dtypes.iinfo(dtype).max
                arrays[axis] = as_array(np.asarray(min(max(ints.pop(axis), least), most), dtype))
    for axis in [k for k, n in enumerate(plan.shape) if n == 0 and (k in arrays or k in ints)]:
        sizes, several = plan.result_shape(), any(a.aval.ndim for a in arrays.values())
        if several and 0 in sizes:
            return lax.full(sizes, 0, x.aval.dtype)
        raise (TypeError if several else IndexError)(
            f"index is out of bounds for axis {axis} with size 0."
        )
    narrow = dynamic and not filling and "block" not in plan.slots
    if arrays and narrow and wrap and shows:
        steps = {slot.step for slot in plan.slots if isinstance(slot, Slice)}
        if steps <= {1, -1} and not any_symbolic(plan.shape):
            x = _dynamic_block(x, plan, arrays, ints)
            return _shape_result(x, plan, (*ints, *arrays))
    x = _slice_static(x, plan, ints)
    if arrays:
        if narrow:
            x = _dynamic_ints(x, arrays, wrap)
        else:
            x = _gather(
                x, plan, arrays, "fill" if filling else mode, fill_value, is_sorted, unique, wrap
            )
    gone = tuple(ints) + (tuple(arrays) if narrow else ())
    return _shape_result(x, plan, gone)


def _clips(mode: Any) -> bool:
    clip = lax.GatherScatterMode.CLIP
    return mode is not None and lax.GatherScatterMode.from_any(mode) is clip


def _check_whole(aval: ShapedArray, starts: Sequence, limits: Sequence, steps: Sequence) -> None:
    """Raise ShardingTypeError where an axis that is cut over Explicit axes of a mesh is read in
    part, and nobody asked for a layout: of traced values JAX takes the slice."""
    if is_lenient():
        return
    ranges = zip(starts, limits, steps, strict=True)
    for entry, n, read in zip(aval.placed.spec, aval.shape, ranges, strict=True):
        if entry is not None and read != (0, n, 1):
            raise ShardingTypeError(
                "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather "
                "indexing as out sharding could not be resolved unambiguously (or would require "
                f"collectives on the operand): got {aval.str_short()}. lax.slice keeps the layout "
                "where that divides the result."
            )


def _slice_static(x: Any, plan: Plan, ints: dict[int, int]) -> Any:
    """Ranges and static positions (left as axes of size 1)."""
    shape = plan.shape
    starts, limits, steps = [0] * len(shape), list(shape), [1] * len(shape)
    turned, apart = [], []
    for slot in plan.slots:
        if not isinstance(slot, Slice):
            continue
        axis, start, count, step, limit = slot
        if any_symbolic((start, count, step)) and not _is_box(start, count, step):
            apart.append((axis, start, count, step))
            continue
        if step < 0:
            start, step = start + largest(count - 1, 0) * step, -step
            if type(count) is DimExpr or count > 1:
                turned.append(axis)
        if limit is not None or type(count) is DimExpr:
            starts[axis], steps[axis] = start, step
            limits[axis] = start + (count - 1) * step + 1 if limit is None else limit
            continue
        starts[axis], steps[axis] = (start, step) if count > 1 else (start, 1)
        # As far as the step goes: so JAX has it, where the index has no end.
        limits[axis] = smallest(start + count * steps[axis], shape[axis]) if count else start
    for axis, i in ints.items():
        n = shape[axis]
        start = smallest(largest(i + n if i < 0 else i, 0), n - 1)
        starts[axis], limits[axis] = start, start + 1
    if any([s != 0 for s in starts]) or tuple(limits) != shape or any(s != 1 for s in steps):
        if x.aval.placed is not None and not isinstance(x, Tracer):
            _check_whole(x.aval, starts, limits, steps)
        x = lax.slice(x, starts, limits, None if all(s == 1 for s in steps) else steps)
    x = lax.rev(x, tuple(turned)) if turned else x
    for axis, start, count, step in apart:  # whose last place no expression tells
        places = lax.add(lax.mul(_count_up(count), _as_int(step)), _as_int(start))
        x = _complete(x, (slice(None),) * axis + (places,))
    return x


def _is_box(start: Any, count: Any, step: Any) -> bool:
    """Whether expressions tell the first place that is read of an axis."""
    if type(step) is DimExpr or step < -1:
        return False
    try:
        return step > 0 or start - largest(count - 1, 0) >= 0
    except InconclusiveDimensionOperation:
        return False


def _count_up(count: Any) -> Any:
    return iota_p.bind(dtype=INT32, shape=(count,), dimension=0)


def _as_int(size: Any) -> Any:
    """A size as an array."""
    return lax.convert(as_array(size), INT32)


def normalized(index: Any, n: int, wrap: bool = True, dtype: np.dtype | None = None) -> Any:
    """Index values as `dtype` (that of positions on the axis), negative ones counted from the
    end."""
    dtype = dtype or index_dtype(n)
    if FLAG.uses and wanted():
        if wrap and dtypes.kind(index.aval.dtype) == "i":
            index = lax.select_n(less(index, 0), index, add(index, n))
        return narrow_index(index, dtype)
    if type(index) is ArrayImpl and index.aval.size < LARGE and type(n) is not DimExpr:
        value = index._value
        if wrap and dtypes.kind(value.dtype) == "i":
            value = np.where(value < 0, value.astype(np.int64) + n, value)
        most = min(dtypes.iinfo(dtype).max, dtypes.iinfo(value.dtype).max)
        value = np.clip(value, -1 if dtypes.kind(value.dtype) == "i" else 0, most)
        return ArrayImpl(value.astype(dtype), ShapedArray(value.shape, dtype))
    signed = dtypes.kind(index.aval.dtype) == "i"
    index = narrow_index(index, dtype)
    return where(less(index, 0), add(index, n), index) if wrap and signed else index


def _dynamic_ints(x: Any, arrays: dict[int, Any], wrap: bool) -> Any:
    """Traced integers: one dynamic_slice, whose axes of size 1 are dropped later."""
    dtype = index_dtype(*x.aval.shape)
    zero = as_array(np.zeros((), dtype))
    sizes = tuple([1 if k in arrays else n for k, n in enumerate(x.aval.shape)])
    starts = [
        normalized(arrays[k], x.aval.shape[k], wrap, dtype) if k in arrays else zero
        for k in range(x.aval.ndim)
    ]
    return lax.dynamic_slice(x, starts, sizes, allow_negative_indices=False)


def _dynamic_block(x: Any, plan: Plan, arrays: dict[int, Any], ints: dict[int, int]) -> Any:
    """One dynamic_slice as JAX writes it: of traced and static integers and of ranges."""
    dtype = index_dtype(*x.aval.shape)
    ranges = {slot.axis: slot for slot in plan.slots if isinstance(slot, Slice)}
    sizes = tuple([ranges[k].size if k in ranges else 1 for k in range(x.aval.ndim)])
    turned = tuple([k for k, slot in ranges.items() if slot.step < 0])
    known = ints | {
        k: slot.start - (max(slot.size - 1, 0) if slot.step < 0 else 0)
        for k, slot in ranges.items()
    }
    starts = [arrays[k] if k in arrays else scalar(known[k], dtype) for k in range(x.aval.ndim)]
    if len(starts) == 1 and starts[0].aval.weak_type:
        (i,) = starts
        below = less(i, 0)
        beyond = lax.add(_converted(i), scalar(x.aval.shape[0], i.aval.dtype))
        starts = [lax.select_n(below, i, beyond)]
        return lax.dynamic_slice(x, starts, sizes, allow_negative_indices=False)
    alike = len({i.aval.dtype for i in starts}) == 1 and dtypes.kind(starts[0].aval.dtype) == "i"
    if not alike:
        starts = [i if i.aval.dtype == dtype else narrow_index(i, dtype) for i in starts]
    starts = [_converted(i) if i.aval.weak_type else i for i in starts]
    x = lax.dynamic_slice(x, starts, sizes)
    return lax.rev(x, turned) if turned else x


def _converted(i: Any) -> Any:
    """The position without weak type: by an equation also of an array whose value is known."""
    return convert_element_type_p.bind(i, new_dtype=i.aval.dtype, weak_type=False)


def stack_indices(parts: list[Any], batch: tuple[int, ...]) -> Any:
    """Index components (each broadcast to `batch` already) beside each other on a last axis."""
    shows = FLAG.uses and wanted()
    if not shows and all(type(p) is ArrayImpl and p.aval.size < LARGE for p in parts):
        value = np.stack([np.broadcast_to(p._value, batch) for p in parts], -1)
        return ArrayImpl(value, ShapedArray(value.shape, value.dtype))
    if shows:
        columns = [lax.expand_dims(broadcast(p, batch), (len(batch),)) for p in parts]
    else:
        columns = [lax.reshape(broadcast(p, batch), (*batch, 1)) for p in parts]
    return columns[0] if len(columns) == 1 else lax.concatenate(columns, len(batch))


def _gather(
    x: Any,
    plan: Plan,
    arrays: dict[int, Any],
    mode: Any,
    fill_value: Any,
    is_sorted: bool,
    unique: bool,
    wrap: bool,
) -> Any:
    axes = sorted(arrays)
    dtype = index_dtype(*[x.aval.shape[k] for k in axes])
    indices = stack_indices(
        [normalized(arrays[k], x.aval.shape[k], wrap, dtype) for k in axes], plan.block
    )
    # Static positions are axes of size 1 here; they are dropped at the end.
    rest = [k for k in range(x.aval.ndim) if k not in arrays]
    before = _axes_before_block(plan, rest)
    width = len(plan.block)
    offset = tuple([i if i < before else i + width for i in range(len(rest))])
    numbers = lax.GatherDimensionNumbers(
        offset_dims=offset, collapsed_slice_dims=tuple(axes), start_index_map=tuple(axes)
    )
    sizes = tuple([1 if k in arrays else n for k, n in enumerate(x.aval.shape)])
    return lax.gather(
        x,
        indices,
        numbers,
        sizes,
        mode=mode,
        fill_value=fill_value,
        indices_are_sorted=is_sorted,
        unique_indices=unique,
    )


def _axes_before_block(plan: Plan, rest: list[int]) -> int:
    """How many of the axes `rest` that a gather keeps come before the block in the result."""
    kept = 0
    for slot in plan.slots:
        if slot == "block":
            break
        if slot is not None:
            kept += 1
    else:
        kept = sum([1 for k in rest if k not in plan.ints])
    count = 0
    for position, axis in enumerate(rest):
        if count == kept:
            return position
        if axis not in plan.ints:
            count += 1
    return len(rest)


def _shape_result(x: Any, plan: Plan, gone: tuple) -> Any:
    """Drop the axes of static and traced positions, and add the new ones."""
    if None in plan.slots or "block" in plan.slots or x.aval.ndim < len(plan.shape):
        shape = plan.result_shape()
        if "block" not in plan.slots and FLAG.uses and wanted():
            x = lax.squeeze(x, gone) if gone else x
            return lax.expand_dims(x, [i for i, slot in enumerate(plan.slots) if slot is None])
        at = tuple([i for i, n in enumerate(shape) if n != 1])
        same = x.aval.shape == tuple([shape[i] for i in at])  # where the new axes alone have size 1
        if not gone and same and len(at) < len(shape) and FLAG.uses and wanted():
            return lax.broadcast_in_dim(x, shape, at)
        return x if x.aval.shape == shape else lax.reshape(x, shape)
    return lax.squeeze(x, gone) if gone else x
