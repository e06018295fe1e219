"""Collectives: operations across a named axis (of vmap, pmap or shard_map).

Each is interpreted by the batch rule of the map that owns the axis; a map of another axis passes it
on.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.base import config, tree
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.cluster import Cluster, Ranks
from numjet.core.lowering import Host
from numjet.core.primitive import NO_EFFECTS, REGISTRY, Primitive, Zero
from numjet.core.shared import Shared
from numjet.core.structural import (
    MappedAxes,
    broadcast_batch,
    convert,
    linear_jvp,
    moveaxis,
    reduce_sum,
)
from numjet.ops.arithmetic import div, mul
from numjet.ops.constraint import pending_axes, settled, whole
from numjet.ops.logic import eq
from numjet.ops.reduce import reduce_max, reduce_min
from numjet.ops.shape import canonical_axis, iota, reshape
from numjet.ops.slicing import dynamic_index_in_dim
from numjet.transforms.batch import Axis, AxisEffect, axis_size as _axis_size
from numjet.transforms.varying import unknown, varies

AxisName = Any


def _names(axis_name: AxisName, caller: str = "") -> tuple:
    names = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    for name in names:
        _axis_size(name, caller)
    return names


def once(axis_name: AxisName, caller: str = "") -> tuple:
    """The named axes, each of which is there once. caller: the function that asks for them."""
    names = _names(axis_name, caller)
    if len(set(names)) != len(names):
        raise ValueError(f"A collective runs over each axis once: repeated axis in {names}.")
    return names


def _all_names(caller: str, axis_name: AxisName, x: Any, within: Callable) -> tuple[tuple, Any]:
    """The named axes of a reduction, and x reduced by `within` along those that are numbers."""
    given = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    numbers = tuple([n for n in given if type(n) is int])
    if numbers:
        x = tree.tree_map(as_array, x)
        x = tree.tree_map(
            lambda leaf: within(leaf, tuple([canonical_axis(n, leaf.ndim) for n in numbers])), x
        )
    return once(tuple([n for n in given if type(n) is not int]), caller), x


def _place(name: str, axis: int, leaf: Any) -> int:
    """An axis that is cut, not negative. Raises IndexError."""
    try:
        return canonical_axis(axis, leaf.ndim)
    except ValueError:
        raise IndexError(
            f"{name}: axis {axis} is out of range for {leaf.aval.str_short()}."
        ) from None


def axis_size(axis_name: AxisName) -> int:
    """The size of a named axis, a Python integer; of several, the product.

    axis_name: a mapped axis. Raises NameError for an unbound axis.

    >>> import numjet as nj
    >>> from numjet import lax, numpy as jnp
    >>> nj.vmap(lambda x: x * lax.axis_size("i"), axis_name="i")(jnp.array([1, 1]))
    Array([2, 2], dtype=int32)
    """
    size = 1
    for name in _names(axis_name, "axis_size"):
        size *= _axis_size(name)
    return size


def collective_effects(**params: Any) -> frozenset:
    names = params["axes"] if "axes" in params else (params["axis_name"],)
    return frozenset([AxisEffect(n) for n in names]) if names else NO_EFFECTS


def over_processes(name: str, shape: Callable) -> Callable:
    """The reference of a collective: over processes where the axis's name is of these, else there
    is no map that owns the axis. shape(x, params) is the result's."""

    def reference(*arrays: np.ndarray, **params: Any) -> np.ndarray:
        names = params.get("axes", (params.get("axis_name"),))
        if not isinstance(names[0], Ranks):
            _unbound(**params)
        arrays = tuple([np.asarray(x, order="C") for x in arrays])
        dtype = arrays[0].dtype if arrays else np.dtype(np.int32)
        out = np.empty(shape(*arrays, **params), dtype)
        Cluster.transport.run(name, params, arrays, [out])
        return out

    return reference


def _unbound(*_: Any, **params: Any) -> Any:
    names = params.get("axes", (params.get("axis_name"),))
    raise NameError(
        f"Found an unbound axis name: {names[0]}. Collectives run inside "
        "vmap(..., axis_name=…), pmap or shard_map."
    )


# ------------------------------------------------------------------ reductions across the axis
def _all_reduce(
    name: str, within: Callable, repeated: Callable, jvp: Callable, transpose: Callable | None
) -> Primitive:
    primitive: Primitive

    def batch(axis: Axis, args: tuple, dims: tuple, *, axes: tuple) -> tuple:
        (x,), (dim,) = args, dims
        if axis.name not in axes:
            return primitive.bind(x, axes=axes), dim
        rest = tuple([a for a in axes if a != axis.name])
        if dim is not None and config.jax_form():  # told by its name where it is shown
            x = REGISTRY[within.__name__].bind(x, axes=MappedAxes((dim,)))
        else:
            x = repeated(x, axis.size) if dim is None else within(x, (dim,))
        if axis.of_devices:
            x = _strong(x)
        return (primitive.bind(x, axes=rest) if rest else x), None

    primitive = Primitive(
        name,
        linear=transpose is not None,
        abstract=lambda x, *, axes: x.strong(),
        reference=over_processes(name, lambda x, **_: x.shape),
        jvp=jvp,
        transpose=transpose,
        batch=batch,
        loops=Host(),
        effects=collective_effects,
        collective=True,
    )
    return primitive


def _strong(x: Any) -> Any:
    """What devices have exchanged: as in JAX its dtype counts. (So it does for what reads it in
    traced functions, but not for what reads it where `vmap` runs at once.)"""
    return convert(x, x.aval.dtype, False) if x.aval.weak_type else x


def _times(x: Any, n: int) -> Any:
    return mul(x, convert(as_array(n), x.aval.dtype, True))


def _extreme_jvp(primitive_of: Callable[[], Primitive]) -> Callable:
    """The tangent of the place that holds the extreme; the mean of them at ties."""

    def jvp(primals: tuple, tangents: tuple, *, axes: tuple) -> tuple:
        (x,), (t,) = primals, tangents
        out = primitive_of().bind(x, axes=axes)
        if type(t) is Zero:
            return out, t
        mask = convert(eq(x, out), t.aval.dtype)
        return out, div(psum_p.bind(mul(mask, t), axes=axes), psum_p.bind(mask, axes=axes))

    return jvp


psum_p = _all_reduce(
    "psum",
    reduce_sum,
    _times,
    linear_jvp(lambda: psum_p),
    lambda ct, x, *, axes: [psum_p.bind(ct, axes=axes)],
)
pmax_p = _all_reduce("pmax", reduce_max, lambda x, n: x, _extreme_jvp(lambda: pmax_p), None)
pmin_p = _all_reduce("pmin", reduce_min, lambda x, n: x, _extreme_jvp(lambda: pmin_p), None)


def _countable(x: Any) -> Any:
    return convert(x, dtypes.int32) if x.dtype == dtypes.bool_ else x


def _sum_within(x: Any, axes: tuple) -> Any:
    return reduce_sum(_countable(x), axes)


def _check_states(x: Any, names: tuple) -> None:
    """Raise ValueError inside of `shard_map` where a value varies over some of the axes alone."""
    tested = [n for n, _ in Shared.axes.get() if n in names]
    if len(names) < 2 or not tested or any([unknown(n) is not None for n in tested]):
        return
    varying = [n for n in tested if varies(x, n)]
    if varying and len(varying) < len(names):
        raise ValueError(
            "psum inside of shard_map takes axes over which its operand varies, or axes over which "
            f"it does not, got {names}, of which it varies over {varying}. Call it for each kind, "
            "or cast with lax.pcast(x, ..., to='varying')."
        )


def psum(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The sum over the named axis, for every member.

    x: a pytree of arrays; a Python number gives itself times the axis's size. axis_name: a mapped
    axis, or several, numbers of x's own axes among them. axis_index_groups: lists of positions,
    each with a sum of its own. Its transpose is a psum of cotangents. Raises NameError for an
    unbound axis, ValueError for one that is named twice or is none of x's.

    >>> import numjet as nj
    >>> from numjet import lax, numpy as jnp
    >>> nj.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([0.25, 0.75], dtype=float32)
    """
    names, x = _all_names("psum", axis_name, x, _sum_within)
    if axis_index_groups is not None:
        return _grouped("psum", x, names, axis_index_groups)

    def one(leaf: Any) -> Any:
        if type(leaf) in (int, float, complex):
            return leaf * axis_size(names)
        leaf = settled(_countable(as_array(leaf)), names)
        _check_states(leaf, names)
        return psum_p.bind(leaf, axes=names) if names else leaf

    return tree.tree_map(one, x)


def pmean(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The mean over the named axis, for every member.

    x: a pytree of arrays. axis_name: a mapped axis, or several. axis_index_groups: lists of
    positions, each with a mean of its own. Derivative: each member gets the mean of the cotangents.
    Raises NameError for an unbound axis, ValueError for one that is named twice.

    >>> import numjet as nj
    >>> from numjet import lax, numpy as jnp
    >>> nj.vmap(lambda x: lax.pmean(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([2., 2.], dtype=float32)
    """
    names = once(axis_name, "pmean")
    if axis_index_groups is not None:
        return _grouped("pmean", x, names, axis_index_groups)
    n = axis_size(names)

    def one(leaf: Any) -> Any:
        leaf = as_array(leaf)
        if not dtypes.is_inexact(leaf.dtype):
            leaf = convert(leaf, dtypes.canonical(dtypes.float64), leaf.aval.weak_type)
        return div(psum(leaf, names), convert(as_array(n), leaf.dtype, True))

    return tree.tree_map(one, x)


def pmax(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The maximum over the named axis, for every member.

    x: a pytree of arrays. axis_name: a mapped axis, or several, numbers of x's own axes among them.
    axis_index_groups: lists of positions, each with a maximum of its own. Raises NameError for an
    unbound axis, ValueError for one that is named twice or is none of x's.

    >>> import numjet as nj
    >>> from numjet import lax, numpy as jnp
    >>> nj.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(jnp.array([1, 3]))
    Array([3, 3], dtype=int32)
    """
    names, x = _all_names("pmax", axis_name, x, reduce_max)
    if axis_index_groups is not None:
        return _grouped("pmax", x, names, axis_index_groups)
    if not names:
        return tree.tree_map(as_array, x)
    return tree.tree_map(
        lambda leaf: pmax_p.bind(whole(as_array(leaf), names, "pmax"), axes=names), x)  # fmt: skip


def pmin(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The minimum over the named axis, for every member.

    x: a pytree of arrays. axis_name: a mapped axis, or several, numbers of x's own axes among them.
    axis_index_groups: lists of positions, each with a minimum of its own. Raises NameError for an
    unbound axis, ValueError for one that is named twice or is none of x's.

    >>> import numjet as nj
    >>> from numjet import lax, numpy as jnp
    >>> nj.vmap(lambda x: lax.pmin(x, "i"), axis_name="i")(jnp.array([1, 3]))
    Array([1, 1], dtype=int32)
    """
    names, x = _all_names("pmin", axis_name, x, reduce_min)
    if axis_index_groups is not None:
        return _grouped("pmin", x, names, axis_index_groups)
    if not names:
        return tree.tree_map(as_array, x)
    return tree.tree_map(
        lambda leaf: pmin_p.bind(whole(as_array(leaf), names, "pmin"), axes=names), x)  # fmt: skip


# ------------------------------------------------------------------ axis_index
def _axis_index_batch(axis: Axis, args: tuple, dims: tuple, *, axis_name: Any) -> tuple:
    rows = iota(dtypes.int32, axis.size)
    return (rows if axis.pin is None else axis.pin(rows)), 0


axis_index_p = Primitive(
    "axis_index",
    abstract=lambda *, axis_name: ShapedArray((), dtypes.int32),
    reference=over_processes("axis_index", lambda **_: ()),
    batch=_axis_index_batch,
    loops=Host(),
    differentiable=False,
    effects=collective_effects,
    collective=True,
)


def axis_index(axis_name: AxisName) -> Any:
    """This member's position along the named axis, an int32 scalar.

    axis_name: a mapped axis; of several the position counts row by row. Raises NameError for an
    unbound axis.

    >>> import numjet as nj
    >>> from numjet import lax, numpy as jnp
    >>> nj.vmap(lambda x: x * lax.axis_index("i"), axis_name="i")(jnp.array([5, 5, 5]))
    Array([ 0,  5, 10], dtype=int32)
    """
    index: Any = None
    for name in _names(axis_name, "axis_index"):
        here = axis_index_p.bind(axis_name=name)
        index = here if index is None else index * _axis_size(name) + here
    return as_array(np.int32(0)) if index is None else index


# ------------------------------------------------------------------ pvary
def _vary_batch(mapped: Axis, args: tuple, dims: tuple, *, axis_name: Any) -> tuple:
    (x,), (dim,) = args, dims
    if mapped.name != axis_name:
        return pvary_p.bind(x, axis_name=axis_name), dim
    return (broadcast_batch(x, mapped.size), 0) if dim is None else (x, dim)


pvary_p = Primitive(
    "pvary",
    linear=True,
    abstract=lambda x, *, axis_name: x,
    reference=lambda x, *, axis_name: x,
    jvp=linear_jvp(lambda: pvary_p),
    transpose=lambda ct, x, *, axis_name: [ct],
    batch=_vary_batch,
    loops=Host(),
    effects=collective_effects,
    collective=True,
)


def varied(x: Any, names: Sequence) -> Any:
    """`x` as a value that varies over those of the axes where `shard_map` tests what does."""
    for name, _ in Shared.axes.get():
        if name in names:
            x = pvary_p.bind(x, axis_name=name)
    return x


def varied_like(out: Any, x: Any) -> Any:
    """`out` as a value that varies over the axes of `shard_map` along which `x` does."""
    axes = [n for n, _ in Shared.axes.get() if varies(x, n) and not varies(out, n)]
    return varied(out, [n for n in axes if n not in pending_axes(x)])


# ------------------------------------------------------------------ all_gather
def _gather_abstract(x: ShapedArray, *, axis_name: Any, axis: int, size: int) -> ShapedArray:
    return x.update(shape=(*x.shape[:axis], size, *x.shape[axis:]))


def _gather_batch(
    mapped: Axis, args: tuple, dims: tuple, *, axis_name: Any, axis: int, size: int
) -> tuple:
    (x,), (dim,) = args, dims
    if mapped.name != axis_name:
        x = moveaxis(x, dim, 0)
        return all_gather_p.bind(x, axis_name=axis_name, axis=axis + 1, size=size), 0
    if dim is None:
        x, dim = broadcast_batch(x, size), 0
    return moveaxis(x, dim, axis), None


def _gather_transpose(ct: Any, x: Any, *, axis_name: Any, axis: int, size: int) -> list:
    total = psum_p.bind(ct, axes=(axis_name,))
    return [dynamic_index_in_dim(total, axis_index(axis_name), axis, keepdims=False)]


all_gather_p = Primitive(
    "all_gather",
    linear=True,
    abstract=_gather_abstract,
    reference=over_processes(
        "all_gather", lambda x, axis, size, **_: (*x.shape[:axis], size, *x.shape[axis:])
    ),
    jvp=linear_jvp(lambda: all_gather_p),
    transpose=_gather_transpose,
    batch=_gather_batch,
    loops=Host(),
    effects=collective_effects,
    collective=True,
)


def all_gather(
    x: Any,
    axis_name: AxisName,
    *,
    axis_index_groups: Any = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """Every member's value, stacked along a new axis, for every member.

    x: a pytree of arrays. axis_name: the mapped axis, or several. axis_index_groups: lists of
    positions, which gather among themselves. axis: where the new axis goes; with tiled, the axis
    along which the values are joined. to: what the result is known to be inside of `shard_map`:
    'varying' (each member's own), 'invarying' or 'reduced' (one value for all). Derivative: its
    transpose is `psum_scatter`. Raises NameError for an unbound axis, ValueError for another word.

    >>> import numjet as nj
    >>> from numjet import lax, numpy as jnp
    >>> nj.vmap(lambda x: lax.all_gather(x, "i"), axis_name="i")(jnp.array([1, 2]))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    if to not in ("varying", "invarying", "reduced"):
        raise ValueError(
            "Got unexpected `to` value for `all_gather`. Allowed `to` values are: 'varying', "
            f"'invarying', 'reduced', got {to!r}."
        )
    if axis_index_groups is not None:
        options = {"axis": axis, "tiled": tiled}
        names = _names(axis_name, "all_gather")
        return _grouped("all_gather", x, names, axis_index_groups, **options)
    if isinstance(axis_name, tuple | list) and len(axis_name) != 1:
        return _gather_over_all(x, once(axis_name, "all_gather"), axis, tiled, to)
    (name,) = _names(axis_name, "all_gather")
    size = _axis_size(name)

    def one(leaf: Any) -> Any:
        leaf = whole(as_array(leaf), (name,), "all_gather")
        if not leaf.ndim and tiled:
            raise ValueError("all_gather: tiled=True needs an axis to join along, got a scalar.")
        place = canonical_axis(axis, leaf.ndim + (not tiled))
        out = all_gather_p.bind(leaf, axis_name=name, axis=place, size=size)
        if tiled:
            shape = leaf.shape
            out = reshape(out, (*shape[:place], size * shape[place], *shape[place + 1 :]))
        return varied(out, (name,)) if to == "varying" else out

    return tree.tree_map(one, x)


def _gather_over_all(x: Any, names: tuple, axis: int, tiled: bool, to: str) -> Any:
    """`all_gather` over several axes, the first of which counts slowest."""

    def one(leaf: Any) -> Any:
        leaf = as_array(leaf)
        if not names:
            return leaf
        place, shape = canonical_axis(axis, leaf.ndim + (not tiled)), leaf.shape
        for name in reversed(names):
            leaf = all_gather(leaf, name, axis=place, to=to)
        width = shape[place] if tiled else 1
        rest = shape[place + 1 :] if tiled else shape[place:]
        return reshape(leaf, (*shape[:place], axis_size(names) * width, *rest))

    return tree.tree_map(one, x)


def _grouped(name: str, x: Any, names: tuple, groups: Any, **options: Any) -> Any:
    """A collective within groups of the axis's members (`ops.groups`)."""
    values = [leaf for leaf in tree.tree_leaves(x) if type(leaf) not in (int, float, complex)]
    if name in ("psum", "pmean") and values and any([Shared.tests(n) for n in names]):
        raise NotImplementedError(
            f"{name}: axis_index_groups are for functions that are not tested for what varies. "
            "Pass check_vma=False to shard_map."
        )
    return importlib.import_module("numjet.ops.groups").collective(
        name,
        x,
        groups,
        lambda leaf: all_gather(leaf, names),
        axis_index(names),
        axis_size(names),
        **options,
    )


# ------------------------------------------------------------------ all_to_all
def pswapaxes(x: Any, axis_name: AxisName, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Swap the mapped axis with `axis` of each member's array.

    x: a pytree of arrays whose `axis` has the size of the named axis. axis_name: a mapped axis.
    axis_index_groups: lists of positions, which swap among themselves. It is `all_to_all` that
    splits and joins along the same axis. Raises ValueError where sizes do not fit, NameError for an
    unbound axis.

    >>> import numjet as nj
    >>> from numjet import lax, numpy as jnp
    >>> nj.vmap(lambda x: lax.pswapaxes(x, "i", 0), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def _exchanged_shape(x: Any, *, split_axis: int, concat_axis: int, **_: Any) -> tuple:
    shape = list(x.shape)
    size = shape.pop(split_axis)
    shape.insert(concat_axis, size)
    return tuple(shape)


def _all_to_all_abstract(x: ShapedArray, **params: Any) -> ShapedArray:
    return x.update(shape=_exchanged_shape(x, **params)).strong()


def _all_to_all_batch(
    mapped: Axis,
    args: tuple,
    dims: tuple,
    *,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
) -> tuple:
    (x,), (dim,) = args, dims
    if mapped.name != axis_name:
        x = moveaxis(x, dim, 0)
        return all_to_all_p.bind(
            x, axis_name=axis_name, split_axis=split_axis + 1, concat_axis=concat_axis + 1
        ), 0
    x = broadcast_batch(x, mapped.size) if dim is None else moveaxis(x, dim, 0)
    if mapped.of_devices:
        x = _strong(x)
    # Axis split_axis counts destinations, the batch axis sources: destinations become the batch
    # axis.
    x = moveaxis(x, split_axis + 1, 0)
    return moveaxis(x, 1, concat_axis + 1), 0


all_to_all_p = Primitive(
    "all_to_all",
    linear=True,
    abstract=_all_to_all_abstract,
    reference=over_processes("all_to_all", _exchanged_shape),
    jvp=linear_jvp(lambda: all_to_all_p),
    transpose=lambda ct, x, *, axis_name, split_axis, concat_axis: [
        all_to_all_p.bind(ct, axis_name=axis_name, split_axis=concat_axis, concat_axis=split_axis)
    ],
    batch=_all_to_all_batch,
    loops=Host(),
    effects=collective_effects,
    collective=True,
)


def all_to_all(
    x: Any,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Send slice j along split_axis to member j, and stack what comes along concat_axis.

    x: a pytree of arrays whose split_axis has the size of the named axis (a multiple of it with
    tiled). axis_name: the mapped axis, or several, whose members count row by row. tiled: split and
    join existing axes instead of consuming and making one. axis_index_groups: lists of positions,
    which exchange among themselves. Its transpose is all_to_all with the axes exchanged. Raises
    ValueError where sizes do not fit, IndexError for an axis that x has not, NameError for an
    unbound one.

    >>> import numjet as nj
    >>> from numjet import lax, numpy as jnp
    >>> nj.vmap(lambda x: lax.all_to_all(x, "i", 0, 0), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    if axis_index_groups is not None:
        options = {"split_axis": split_axis, "concat_axis": concat_axis, "tiled": tiled}
        names = _names(axis_name, "all_to_all")
        return _grouped("all_to_all", x, names, axis_index_groups, **options)
    names = once(axis_name, "all_to_all")
    if not names:
        return x
    n = axis_size(names)

    def one(leaf: Any) -> Any:
        leaf = whole(as_array(leaf), names, "all_to_all")
        split = _place("all_to_all", split_axis, leaf)
        shape = leaf.shape
        if shape[split] % n if tiled else shape[split] != n:
            raise ValueError(
                f"all_to_all: axis {split} of {leaf.aval.str_short()} must "
                f"{'be a multiple of' if tiled else 'equal'} the size {n} of axis {axis_name!r}."
            )
        if not tiled:
            return _exchanged_over(names, leaf, split, canonical_axis(concat_axis, leaf.ndim))
        concat = _place("all_to_all", concat_axis, leaf)
        leaf = reshape(leaf, (*shape[:split], n, shape[split] // n, *shape[split + 1 :]))
        out = _exchanged_over(names, leaf, split, concat)
        shape = out.shape
        return reshape(out, (*shape[:concat], n * shape[concat + 1], *shape[concat + 2 :]))

    return tree.tree_map(one, x)


def _exchanged_over(names: tuple, x: Any, split: int, concat: int) -> Any:
    """`all_to_all` over one axis; over several one after the other, of which x's splits in two."""
    if len(names) == 1:
        return all_to_all_p.bind(x, axis_name=names[0], split_axis=split, concat_axis=concat)
    x = moveaxis(x, split, 0)
    rest = x.shape[1:]
    x = reshape(x, (*[_axis_size(name) for name in names], *rest))
    for place, name in enumerate(names):
        x = all_to_all_p.bind(x, axis_name=name, split_axis=place, concat_axis=place)
    return moveaxis(reshape(x, (axis_size(names), *rest)), 0, concat)


# ------------------------------------------------------------------ reduce_scatter
def _scattered_shape(x: Any, *, axis: int, **_: Any) -> tuple:
    return (*x.shape[:axis], *x.shape[axis + 1 :])


def _scatter_batch(mapped: Axis, args: tuple, dims: tuple, *, axis_name: Any, axis: int) -> tuple:
    (x,), (dim,) = args, dims
    if mapped.name != axis_name:
        return reduce_scatter_p.bind(moveaxis(x, dim, 0), axis_name=axis_name, axis=axis + 1), 0
    # Axis `axis` of a member counts the members.
    if dim is None:
        total = moveaxis(_times(x, mapped.size), axis, 0)
    else:
        total = reduce_sum(moveaxis(moveaxis(x, dim, 0), axis + 1, 0), (1,))
    return (total if mapped.pin is None else mapped.pin(total)), 0


reduce_scatter_p = Primitive(
    "reduce_scatter",
    linear=True,
    abstract=lambda x, **params: x.update(shape=_scattered_shape(x, **params)),
    reference=over_processes("reduce_scatter", _scattered_shape),
    jvp=linear_jvp(lambda: reduce_scatter_p),
    transpose=lambda ct, x, *, axis_name, axis: [
        all_gather_p.bind(ct, axis_name=axis_name, axis=axis, size=x.aval.shape[axis])
    ],
    batch=_scatter_batch,
    loops=Host(),
    effects=collective_effects,
    collective=True,
)


def psum_scatter(
    x: Any,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Sum over the named axis and give each member its slice of the sum.

    x: a pytree of arrays. axis_name: a mapped axis, or several, whose members count row by row.
    scatter_dimension: the axis that is cut, of the named axis's size, which goes; with tiled, of a
    multiple of it, which stays. axis_index_groups: lists of positions, each with a sum of its own.
    Its transpose is `all_gather`. Raises NameError for an unbound axis, ValueError for sizes that
    do not fit, IndexError for an axis that x has not, TypeError for booleans.

    >>> import numjet as nj
    >>> from numjet import lax, numpy as jnp
    >>> nj.vmap(lambda x: lax.psum_scatter(x, "i"), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """
    if axis_index_groups is not None:
        options = {"scatter_dimension": scatter_dimension, "tiled": tiled}
        names = _names(axis_name, "psum_scatter")
        return _grouped("psum_scatter", x, names, axis_index_groups, **options)
    names = once(axis_name, "psum_scatter")
    if not names:
        return x
    n = axis_size(names)

    def one(leaf: Any) -> Any:
        leaf = as_array(leaf)
        if leaf.dtype == dtypes.bool_:
            raise TypeError(
                "psum_scatter does not accept dtype bool. Convert it with .astype(jnp.int32)."
            )
        leaf = settled(leaf, names)
        place = _place("psum_scatter", scatter_dimension, leaf)
        shape = leaf.shape
        if shape[place] % n if tiled else shape[place] != n:
            raise ValueError(
                f"psum_scatter: axis {place} of {leaf.aval.str_short()} must "
                f"{'be a multiple of' if tiled else 'equal'} the size {n} of axis {axis_name!r}."
            )
        width = (shape[place] // n,) if tiled else ()
        sizes = [_axis_size(name) for name in names]
        if tiled or len(sizes) != 1:
            leaf = reshape(leaf, (*shape[:place], *sizes, *width, *shape[place + 1 :]))
        for name in names:
            leaf = reduce_scatter_p.bind(leaf, axis_name=name, axis=place)
        return leaf

    return tree.tree_map(one, x)
