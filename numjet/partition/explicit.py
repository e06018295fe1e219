"""Placements over Explicit axes of a mesh as a part of types: those of an operation's results.

`core.primitive` asks (`core.hooks.placed_results`) where an operand is placed. The rules are those
that the partitioner cuts operations by (`families`); here a factor that operands cut differently,
or that only a choice would cut, is no matter of cost but an error of types, unless the caller asked
for a layout of the result (`core.avals.lenient`). What would break it: an operation whose rule has
no factor for an axis that results keep.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.base.errors import ShardingTypeError
from numjet.core.avals import ShapedArray, SummedAxes, is_lenient
from numjet.core.primitive import Primitive
from numjet.partition.families import rule_of
from numjet.partition.rules import Cuts, Layout, Rule, count, layout_of, results
from numjet.partition.sums import NO_SUMS, Sums, result_sums, sums_of

# What operations do, as errors say it.
_DOING = {"slice": "slicing", "pad": "padding"}
# Operations that keep the axes that they lengthen, shorten, turn or transform where they are.
_KEPT = frozenset(
    "slice dynamic_slice pad concatenate rev fft reduce_window_sum reduce_window_max "
    "reduce_window_min".split()
)


def placed_results(primitive: Primitive, avals: tuple, params: dict) -> Any:
    """The aval or avals of an operation's results."""
    bare = tuple([a.bare() if type(a) is ShapedArray else a for a in avals])
    if primitive.name in _OWN:
        return primitive.abstract(*avals, **params)
    found = primitive.out_avals(bare, params)
    outs = found if primitive.multiple_results else [found]
    mesh = _mesh(primitive, avals)
    layouts = [_layout(a) for a in avals]
    rule = rule_of(primitive, bare, outs, params)
    sizes, asked = mesh.mesh.shape, is_lenient()
    if asked:
        free: list = [None] * len(outs)
        placed = free if rule is None else results(rule, layouts, free, sizes)
        sums = _open_sums(primitive, avals, type(asked) is SummedAxes)
        if type(asked) is SummedAxes and primitive.name in ("dot_general", "reduce_sum"):
            asked.found.append((primitive.name, _summed(primitive, layouts, params)))
    else:
        sums = result_sums(primitive, avals)
        placed = _strict(primitive, avals, outs, layouts, params, rule, sizes)
    made = [
        _over(primitive, a, mesh, layout, sizes, sums)
        for a, layout in zip(outs, placed, strict=True)
    ]
    if not asked:
        key = (avals, tuple(params.items())) if params else avals
        primitive._abstract_cache[key] = made if primitive.multiple_results else made[0]
    return made if primitive.multiple_results else made[0]


def _mesh(primitive: Primitive, avals: tuple) -> Any:
    """A sharding over the mesh of the operands: with devices, where one of them names some."""
    found: Any = None
    for a in avals:
        if a.placed is None:
            continue
        if found is not None and a.placed.mesh.shape_tuple != found.mesh.shape_tuple:
            raise ValueError(
                f"{primitive.name}: Mesh for all inputs should be equal. Got one mesh: "
                f"{found.mesh.abstract_mesh} and another mesh: {a.placed.mesh.abstract_mesh}. Move "
                "the arrays to one mesh with numjet.device_put."
            )
        if found is None or a.placed.mesh is not a.placed.mesh.abstract_mesh:
            found = a.placed
    return found


def _layout(aval: ShapedArray) -> Layout:
    if aval.placed is None:
        return ((),) * aval.ndim
    return tuple([e if type(e) is tuple else () if e is None else (e,) for e in aval.placed.spec])


def _open_sums(primitive: Primitive, avals: tuple, pending: bool) -> Sums:
    """The sums of results where the caller says how these are placed. pending: refuse what is not
    linear in pending sums all the same."""
    try:
        return result_sums(primitive, avals)
    except (ShardingTypeError, NotImplementedError):
        if pending and any([sums_of(a)[0] for a in avals]):
            raise
        return NO_SUMS


def _summed(primitive: Primitive, layouts: list[Layout], params: dict) -> tuple:
    """For each operand the axes of the mesh that cut what is summed away."""
    if primitive.name == "reduce_sum":
        axes: Sequence = (params["axes"],)
    else:
        axes = params["dimension_numbers"][0]
    return tuple([
        tuple([name for i in own for name in layout[i]])
        for own, layout in zip(axes, layouts, strict=True)
    ])  # fmt: skip


def _over(
    primitive: Primitive, aval: ShapedArray, mesh: Any, layout: Any, sizes: Any, sums: Sums
) -> Any:
    if layout is None or not any(layout):
        if not any(sums):
            return aval
        layout = ((),) * aval.ndim
    slices = "slice" in primitive.name
    remedy = ", or ask for a layout: x.at[...].get(out_sharding=...)" if slices else ""
    for n, axes in zip(aval.shape, layout, strict=True):
        if n % count(axes, sizes):
            what = _DOING.get(primitive.name, primitive.name)
            raise ShardingTypeError(
                f"{what} on sharded dims where out dim ({n}) is not divisible by mesh axes "
                f"({count(axes, sizes)}) with spec ({', '.join(axes)}) is not implemented: the "
                f"result would be {aval.str_short()}. Lay the operands out otherwise with "
                f"numjet.reshard{remedy}."
            )
    cut = {name for axes in layout for name in axes}
    return aval.over(mesh.of_entries(layout, *[names - cut for names in sums]))


def _strict(
    primitive: Primitive, avals: tuple, outs: Sequence[ShapedArray], layouts: list[Layout],
    params: dict, rule: Rule | None, sizes: Any,
) -> list:  # fmt: skip
    name = primitive.name
    if rule is None:
        raise ShardingTypeError(
            f"{name}: no rule says how results of {_shown(avals)} are laid out. Call it inside of "
            "numjet.sharding.auto_axes."
        )
    if name == "dynamic_update_slice" and any(layouts[1]) and layouts[0] != layouts[1]:
        raise ShardingTypeError(
            "dynamic_update_slice operand sharding must be equal to update sharding, got operand "
            f"sharding {avals[0]} and update sharding {avals[1]}."
        )
    if name == "dynamic_update_slice" and any(layouts[1]):
        return [layouts[0]]
    if name == "select_n" and not _alike(layouts):
        raise ShardingTypeError(
            "select cases must have the same shardings, and what chooses among them lies alike, "
            f"got {_shown(avals)}. Lay one of them out as the other with numjet.reshard."
        )
    if name == "dot_general":
        _check_product(layouts, params)
    if name == "gather" and not _gathers(params, layouts[1]):
        raise ShardingTypeError(_ambiguous(name, avals, outs, avals[1]))
    if name == "conv_general_dilated" and (spatial := _convolved(avals, outs, layouts, params)):
        return [spatial]
    if name in _KEPT:
        found = [_kept(name, avals, layouts)]
        _check_once(name, avals, outs, found)
        return found
    if name == "reshape" and any(layouts[0]) and not _of_one_axis(avals[0].shape, outs[0].shape):
        raise ShardingTypeError(_ambiguous(name, avals, outs, avals[0]))
    joined = _joined(avals[0], outs[0], layouts[0]) if name == "reshape" else None
    if joined is not None:
        return [joined]
    cuts: Cuts = {}
    gone = {f for f in rule.whole if not any(f in d for dims in rule.outs for d in dims)}
    twice: set[int] = set()
    for aval, dims, layout in zip(avals, rule.ins, layouts, strict=True):
        for factors, axes in zip(dims, layout, strict=True):
            if axes and not _taken(rule, factors, axes, cuts, gone, twice, sizes):
                raise ShardingTypeError(_ambiguous(name, avals, outs, aval))
    summed = set(cuts if name == "conv_general_dilated" else twice) & set(rule.reduced)
    if summed:
        raise ShardingTypeError(
            "Contracting dimensions are sharded and it is ambiguous how the output should be "
            "sharded. Please specify the output sharding via the `out_sharding` parameter. Got "
            f"{name} of {_shown(avals)}."
        )
    found = [layout_of(dims, cuts) for dims in rule.outs]
    if not all([_sayable(rule, dims, cuts, sizes) for dims in rule.outs]):
        raise ShardingTypeError(_ambiguous(name, avals, outs, avals[0]))
    _check_once(name, avals, outs, found)
    return found


def _check_product(layouts: list[Layout], params: dict) -> None:
    """Raise ShardingTypeError where axes that are multiplied pairwise are cut differently."""
    for (mine, theirs), what in zip(
        params["dimension_numbers"],
        ("contracting dimensions to have consistent sharding",
         "lhs batch dimensions and rhs batch dimensions to have the consistent sharding"),
        strict=True,
    ):  # fmt: skip
        for i, j in zip(mine, theirs, strict=True):
            one, other = layouts[0][i], layouts[1][j]
            if one and other and one != other:
                raise ShardingTypeError(
                    f"dot_general requires {what}, got {one} and {other}. Lay one of them out as "
                    "the other with numjet.reshard, or name the result's layout"
                    f"{_REMEDY['dot_general']}."
                )


def _check_once(name: str, avals: tuple, outs: Sequence[ShapedArray], found: list) -> None:
    """Raise ShardingTypeError where an axis of the mesh would cut two axes of a result."""
    for layout in found:
        named = [a for axes in layout for a in axes]
        if len(named) > len(set(named)):
            raise ShardingTypeError(
                f"{name} operation with inputs: {_shown(avals)} produces an illegally sharded "
                f"result: {layout} for the axes of {outs[0].str_short()}. Lay an operand out "
                "otherwise with numjet.reshard, or name the result's layout"
                f"{_REMEDY.get(name, '')}."
            )


def _alike(layouts: Sequence[Layout]) -> bool:
    """Whether cases lie alike, and what chooses among them as they do; those that nobody placed,
    which may be scalars written out, lie as the others."""
    which, cases = layouts[0], {layout for layout in layouts[1:] if any(layout)}
    if len(cases) > 1:
        return False
    return not any(which) or which in cases or not all(map(any, layouts[1:]))


def _of_one_axis(old: tuple, new: tuple) -> bool:
    """Whether a reshape splits one axis, makes one of several that stand side by side, or adds and
    drops axes of size 1 alone: what JAX lays out by itself."""
    if [n for n in old if n != 1] == [n for n in new if n != 1]:
        return True
    first, last = 0, 0
    most = min(len(old), len(new))
    while first < most and old[first] == new[first]:
        first += 1
    while first + last < most and old[-1 - last] == new[-1 - last]:
        last += 1
    return min(len(old), len(new)) - first - last == 1


def _joined(x: ShapedArray, out: ShapedArray, layout: Layout) -> Layout | None:
    """The layout of a reshape that joins axes the first of which are cut, as JAX has it: over the
    axes of the mesh of each, although parts move. None for other reshapes."""
    ends: list[tuple] = []
    i, some = 0, False
    for n in out.shape:
        first, left = i, n
        while i < x.ndim and left % x.shape[i] == 0 and (left > 1 or x.shape[i] == n):
            left //= x.shape[i]
            i += 1
            if left == 1:
                break
        if left > 1:
            return None
        parts = list(layout[first:i])
        cut = [k for k, axes in enumerate(parts) if axes]
        if cut != [*range(len(cut))]:  # not the first ones
            if x.shape[first:i].count(1) < i - first - 1:
                return None
        elif len(cut) > 1:
            some = True
        ends.append(tuple([a for axes in parts for a in axes]))
    return tuple(ends) if some and i == x.ndim else None


def _gathers(params: dict, indices: Layout) -> bool:
    """Whether indices are cut along axes alone that they share with the operand."""
    shared = params["dimension_numbers"].start_indices_batching_dims
    return not any(axes for i, axes in enumerate(indices) if i not in shared)


def _taken(
    rule: Rule, factors: tuple, axes: tuple, cuts: Cuts, gone: set, twice: set, sizes: Any
) -> bool:
    """Have an operand's axis, cut over `axes`, cut its factors; False where that cannot be."""
    rest = list(axes)
    for f in factors:
        if f in rule.whole and f not in gone:
            return False
        left, mine = rule.sizes[f], []
        while rest and left % sizes[rest[0]] == 0 and left > 1:
            left //= sizes[rest[0]]
            mine.append(rest.pop(0))
        if mine:
            if f in cuts:
                twice.add(f)
                if cuts[f] != tuple(mine):
                    return False
            cuts[f] = tuple(mine)
        if left > 1:
            break
    return not rest


def _sayable(rule: Rule, dims: Sequence[tuple], cuts: Cuts, sizes: Any) -> bool:
    """Whether each axis of a result is cut from its major factors on."""
    for factors in dims:
        complete = True
        for f in factors:
            if f in cuts and not complete:
                return False
            complete = complete and count(cuts.get(f, ()), sizes) == rule.sizes[f]
    return True


def _convolved(
    avals: tuple, outs: Sequence[ShapedArray], layouts: list[Layout], params: dict
) -> Layout | None:
    """The layout of a convolution along axes that are cut: the operand's, the kernel being whole.
    None where they are not cut."""
    numbers = params["dimension_numbers"]
    lhs, out = numbers.lhs_spec, numbers.out_spec
    if not any(layouts[0][i] for i in lhs[2:]) and not any(layouts[1]):
        return None
    if any(layouts[1]) or layouts[0][lhs[1]]:
        raise ShardingTypeError(
            "Please specify the output sharding via `out_sharding` parameter of "
            f"`conv_general_dilated`: got {_shown(avals)}. Or lay the kernel out whole with "
            "numjet.reshard."
        )
    found: list[tuple] = [()] * outs[0].ndim
    for i, j in zip(lhs, out, strict=True):
        if i != lhs[1]:
            found[j] = layouts[0][i]
    return tuple(found)


def _kept(name: str, avals: tuple, layouts: list[Layout]) -> Layout:
    found: Layout = layouts[0]
    if name == "concatenate":
        for a, layout in zip(avals, layouts, strict=True):
            if any(layout) and any(found) and layout != found:
                raise ShardingTypeError(
                    f"concatenate: All operands should have the same sharding. Got {_shown(avals)}."
                    f" Lay {a.str_short()} out otherwise with numjet.reshard."
                )
            found = layout if any(layout) else found
    return found


_REMEDY = {
    "dot_general": ": jnp.dot(..., out_sharding=...)",
    "reshape": ": jnp.reshape(..., out_sharding=...)",
    "gather": ": x.at[...].get(out_sharding=...)",
    "scatter": ": x.at[...].set(..., out_sharding=...)",
}


def _ambiguous(name: str, avals: tuple, outs: Sequence[ShapedArray], aval: ShapedArray) -> str:
    if name == "reshape":
        return (
            "This reshape is not supported. Please specify the sharding of the output via the "
            f"`out_sharding` argument of lax.reshape. Got operand type: {aval}, new sizes: "
            f"{outs[0].shape}."
        )
    if name == "gather":
        return (
            "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather "
            "indexing as out sharding could not be resolved unambiguously (or would require "
            f"collectives on the operand or the indices). Got {_shown(avals)}."
        )
    if name.startswith("scatter") or name == "dynamic_update_slice":
        return (
            "Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for the "
            "scatter update as out sharding could not be resolved unambiguously (or would require "
            f"collectives on the operands). Got {_shown(avals)}."
        )
    if len(avals) > 1:
        return (
            f"{name} got incompatible shardings for broadcasting: {_shown(avals)}. Lay one of them "
            f"out as the other with numjet.reshard{_REMEDY.get(name, '')}."
        )
    return (
        f"{name}: the input must not be cut along the axis that the operation runs along, got "
        f"{aval}. Lay it out otherwise with numjet.reshard."
    )


def _shown(avals: Sequence[ShapedArray]) -> str:
    return ", ".join([a.str_short(True) for a in avals])


# What says itself how its result is placed.
_OWN = frozenset(("sharding_constraint", "mesh_cast", "sum_cast"))
