"""Sums over devices as a part of types: what is pending over which axes of a mesh (unreduced), and
what is one value whose cotangents are pending sums (reduced).

`partition.explicit` asks for the sums of an operation's results from those of its operands. A
pending sum passes through what is linear in it; what else would read it is refused, so that the
user adds it up first (`reshard`). A reduced value meets values that are reduced as it is, or goes
into a product, whose result is an ordinary one. What would break it: an operation in `_LINEAR` that
is not linear in its first operand.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.base.errors import ShardingTypeError
from numjet.core.avals import ShapedArray
from numjet.core.primitive import Primitive

Sums = tuple[frozenset, frozenset]
NO_SUMS: Sums = (frozenset(), frozenset())

# Linear in their first operand, whatever their record says of all.
_LINEAR = frozenset(
    "convert_element_type reduce_precision optimization_barrier device_put copy stop_gradient "
    "gather dynamic_slice pad".split()
)
# Linear in several operands together, which are to be sums over the same axes.
_TOGETHER: dict[str, tuple[int, ...]] = {
    "add": (0, 1), "sub": (0, 1), "add_any": (0, 1), "dynamic_update_slice": (0, 1),
    "scatter-add": (0, 2), "scatter-sub": (0, 2), "scatter": (0, 2), "complex": (0, 1),
}  # fmt: skip
# Join operands as they are: what nobody placed may be among reduced ones.
_JOINED = frozenset("select_n concatenate dynamic_update_slice pad scatter scatter-add".split())
# Operands that say where, not what.
_PLACES = {
    "select_n": (0,),
    **dict.fromkeys(
        "gather scatter scatter-add scatter-sub scatter-mul scatter-min scatter-max".split(), (1,)
    ),
}
_PRODUCTS = frozenset(("dot_general", "conv_general_dilated"))


def sums_of(aval: Any) -> Sums:
    """The axes over which a value is a pending sum, and over which it is reduced."""
    return NO_SUMS if getattr(aval, "placed", None) is None else aval.placed.sums


def result_sums(primitive: Primitive, avals: Sequence[Any]) -> Sums:
    """Those of an operation's results. Raises ShardingTypeError where operands do not go together,
    NotImplementedError for operations that are not linear in a pending sum."""
    found = [sums_of(a) for a in avals]
    if not any(pending or done for pending, done in found):
        return NO_SUMS
    name = primitive.name
    if any(pending for pending, _ in found):
        return _pending(primitive, avals, found), frozenset()
    if name in _PRODUCTS:
        return NO_SUMS
    return frozenset(), _reduced(name, avals, found)


def _pending(primitive: Primitive, avals: Sequence[Any], found: Sequence[Sums]) -> frozenset:
    name = primitive.name
    sums = [pending for pending, _ in found]
    if name in _PRODUCTS:
        raise ShardingTypeError(
            f"{name}: the operands cannot be unreduced. Got {_shown(avals)}.{_remedy(avals)}"
        )
    if name == "mul" or name == "div" and not sums[1]:
        return _scaled(name, avals, found)
    together = _TOGETHER.get(name)
    if name == "select_n":
        together = tuple(range(1, len(avals)))
    elif name == "concatenate":
        together = tuple(range(len(avals)))
    if together is not None:
        if len({sums[i] for i in together}) > 1 or any(
            s for i, s in enumerate(sums) if i not in together
        ):
            which = (
                f"lhs and rhs to `{name}` must be unreduced along the same mesh axes"
                if len(sums) == 2 and all(sums)
                else f"{'lhs is' if sums[0] else 'rhs is'} unreduced while "
                f"{'rhs' if sums[0] else 'lhs'} is not"
                if len(sums) == 2
                else "all operands must be unreduced along the same mesh axes"
            )
            raise ShardingTypeError(
                f"{name}: {which}, so that one would have to be added up first. Got "
                f"{_shown(avals)}.{_remedy(avals)}"
            )
        return sums[together[0]]
    linear = primitive.linear and name != "div" or name in _LINEAR
    if linear and not any(sums[1:]):
        return sums[0]
    raise NotImplementedError(
        f"{name} of a value that is unreduced, a sum over devices that is not made yet: it is not "
        f"linear in it. Got {_shown(avals)}.{_remedy(avals)}"
    )


def _scaled(name: str, avals: Sequence[Any], found: Sequence[Sums]) -> frozenset:
    (left, _), (right, _) = found
    if left and right:
        raise ShardingTypeError(
            f"mul: the operands cannot both be unreduced, as it is bilinear. Got {_shown(avals)}."
            f"{_remedy(avals)}"
        )
    pending = left or right
    if found[1 if left else 0][1] != pending:
        raise ShardingTypeError(
            f"{name}: what an unreduced operand is scaled by should be reduced along the same "
            f"axes. Got {_shown(avals)}.{_remedy(avals)}"
        )
    return pending


def _reduced(name: str, avals: Sequence[Any], found: Sequence[Sums]) -> frozenset:
    over = {done for _, done in found if done}
    if len(over) > 1:
        raise ShardingTypeError(
            f"{name}: all inputs should be reduced across the same mesh axes. Got {_shown(avals)}."
        )
    (done,) = over
    for i, (a, (_, own)) in enumerate(zip(avals, found, strict=True)):
        if own or not getattr(a, "ndim", 0):
            continue
        cut = () if a.placed is None else [n for axes in a.placed.layout(a.ndim) for n in axes]
        if i in _PLACES.get(name, ()):
            if set(cut) & done:  # each member reads its own rows, as in a product
                return done - set(cut)
            continue
        if a.placed is None and name in _JOINED:
            continue
        how = "sharded" if set(cut) & done else "replicated"
        raise ShardingTypeError(
            f"{name}: inputs cannot be {how} on the same axes that another input is reduced on. "
            f"Got input type: {a.str_short()} and reduced axes {_axes(done)}. Lay one of them out "
            "as the other with numjet.reshard."
        )
    return done


def check_asked(asked: frozenset, summed: Sequence[tuple]) -> None:
    """Raise ShardingTypeError unless the axes over which a caller asks for a pending sum are those
    that the operation sums over. summed: pairs of a name and, for each operand, the axes of the
    mesh that cut what is summed away."""
    if not asked or len(summed) != 1:
        return
    name, operands = summed[0]
    if name == "reduce_sum":
        if not asked <= set(operands[0]):
            raise ShardingTypeError(
                "out_sharding's unreduced axes should be in operand's specs that were summed over. "
                f"Got unreduced axes {_axes(asked)} and summed axes cut over {operands[0]}."
            )
        return
    if operands[0] != operands[1]:
        raise ShardingTypeError(
            "lhs and rhs contracting dims should be sharded identically when out_sharding provided "
            f"to {name} mentions unreduced axes. Got lhs contracting spec {operands[0]}, rhs "
            f"contracting spec {operands[1]}. Lay one out as the other with numjet.reshard."
        )
    if set(operands[0]) != asked:
        raise ShardingTypeError(
            "out_sharding's unreduced axes should be equal to the contracting specs. Got unreduced "
            f"axes {_axes(asked)} and contracting spec {operands[0]}."
        )


def _axes(names: frozenset) -> str:
    return "{" + ", ".join(sorted(map(repr, names))) + "}"


def _shown(avals: Sequence[Any]) -> str:
    return ", ".join([a.str_short(True) for a in avals if type(a) is ShapedArray])


def _remedy(avals: Sequence[Any]) -> str:
    first = next(a for a in avals if sums_of(a)[0])
    return f" Add {first.str_short(True)} up with numjet.reshard, to a PartitionSpec without it."
