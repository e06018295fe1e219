"""custom_partitioning: functions whose authors say how they are cut over devices.

For `experimental.custom_partitioning`. A call is one equation (`ops.custom_partition`); the
partitioner asks the functions given to `def_partition`. What would break it: a partition that
computes something else than the function, which is what one process with its devices runs.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from numjet.api.flat import array_leaves, check_callable, name_of, wraps
from numjet.api.placement.mesh import AbstractMesh
from numjet.api.placement.shape_struct import ShapeDtypeStruct
from numjet.api.placement.sharding import NamedSharding, PartitionSpec
from numjet.base import tree
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.ops.custom_partition import custom_partitioning_p
from numjet.partition.rules import Layout, Rule, Sizes
from numjet.transforms.stage import hoist_consts, stage

BATCHING = "…"


class CompoundFactor(tuple):
    """Factors that one dimension is made of, the major first."""

    __slots__ = ()

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise ValueError(f"A compound factor should contain at least two factors: {factors}.")
        for each in factors:
            if not isinstance(each, str):
                raise ValueError(
                    f"Each element of CompoundFactor must be a str, but got {type(each)}."
                )
        if BATCHING in factors or "..." in factors:
            raise ValueError("Ellipsis can't be used in a compound factor.")
        return tuple.__new__(cls, factors)


class ArrayMapping(tuple):
    """The factors of an array's dimensions: a name or a CompoundFactor each."""

    __slots__ = ()

    def __new__(cls, *dim_mappings: Any) -> ArrayMapping:
        for each in dim_mappings:
            if not isinstance(each, str | CompoundFactor):
                raise ValueError(
                    "Each element of ArrayMapping must be a str or CompoundFactor, but got "
                    f"{type(each)}."
                )
        if BATCHING in dim_mappings[1:]:
            raise ValueError("Ellipsis can only be used at the beginning of a dimension list.")
        return tuple.__new__(cls, dim_mappings)


class SdyShardingRule:
    """Which factors the dimensions of operands and results run over; reduction_factors,
    need_replication_factors, permutation_factors: some of them, over which results are summed,
    which are not cut, and along which elements move; factor_sizes: how long those are that only
    stand in CompoundFactors. ValueError for sizes of others, and for names that are no factors."""

    __slots__ = ("operand_mappings", "result_mappings", "factor_sizes", "whole")

    def __init__(
        self,
        operand_mappings: Sequence[Any],
        result_mappings: Sequence[Any],
        *,
        reduction_factors: Sequence[str] = (),
        need_replication_factors: Sequence[str] = (),
        permutation_factors: Sequence[str] = (),
        **factor_sizes: int,
    ) -> None:
        self.operand_mappings = tuple([ArrayMapping(*m) for m in operand_mappings])
        self.result_mappings = tuple([ArrayMapping(*m) for m in result_mappings])
        self.factor_sizes = factor_sizes
        self.whole = (*need_replication_factors, *permutation_factors)
        dims = [d for m in (*self.operand_mappings, *self.result_mappings) for d in m]
        alone = {d for d in dims if isinstance(d, str)}
        joined = {f for d in dims if isinstance(d, CompoundFactor) for f in d} - {"1"}
        for name, n in factor_sizes.items():
            if name not in alone | joined:
                raise ValueError(
                    f"Factor {name} is not used in the rule, but size is provided: {n}."
                )
            if name in alone:
                raise ValueError(
                    f"Factor {name} represents a whole dimension; do not specify its size, which "
                    "is that of the array."
                )
        for name in sorted(joined - alone - set(factor_sizes)):
            raise ValueError(
                f"Factor {name} is only used in compound factors; must specify its size: {name}=..."
            )
        told = {
            "reduction_factors": reduction_factors, "permutation_factors": permutation_factors,
            "need_replication_factors": need_replication_factors,
        }  # fmt: skip
        for kind, names in told.items():
            for name in names:
                if name not in alone | joined:
                    raise ValueError(f"Factor {name} in {kind} is not used in the rule.")

    def __repr__(self) -> str:
        parts = self.operand_mappings, self.result_mappings, self.factor_sizes
        return f"SdyShardingRule({', '.join(map(repr, parts))})"


def _parsed(text: str, sizes: dict[str, int]) -> SdyShardingRule:
    """The rule that "i j, j k -> i k" is; "..." stands for leading dimensions, "(i j)" for one of
    two factors."""
    if text.count("(") != text.count(")"):
        raise ValueError(f"Brackets are not balanced in rule: {text!r}.")
    if text.count("->") != 1:
        raise ValueError(f"There is no -> in rule: {text!r}. Write 'i j, j k -> i k'.")

    def mapping(part: str) -> tuple:
        dims: list[Any] = []
        for word in re.findall(r"\([^()]*\)|[^\s()]+", part):
            if word.startswith("("):
                dims.append(CompoundFactor(*word[1:-1].split()))
            elif re.fullmatch(r"\.\.\.|[A-Za-z][A-Za-z0-9_]*|1", word):
                dims.append(BATCHING if word == "..." else word)
            else:
                raise ValueError(f"sharding_rule: {word!r} in {text!r} is no factor.")
        return ArrayMapping(*dims)

    left, right = [[mapping(p) for p in side.split(",")] for side in text.split("->")]
    return SdyShardingRule(
        left, right, reduction_factors=(), need_replication_factors=(), permutation_factors=(),
        **sizes,
    )  # fmt: skip


class _Rules:
    """What the partitioner asks of one call. `held` operands in front are what the function closes
    over, which the user's functions do not hear of."""

    __slots__ = ("owner", "static", "in_tree", "out_tree", "held")

    def __init__(
        self, owner: custom_partitioning, static: tuple, in_tree: Any, out_tree: Any, held: int
    ) -> None:
        self.owner, self.static, self.held = owner, static, held
        self.in_tree, self.out_tree = in_tree, out_tree

    def __repr__(self) -> str:
        return name_of(self.owner.fun)

    def rule(self, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> Rule | None:
        """The factors that a sharding rule names; None where there is none."""
        given = self.owner.sharding_rule
        if given is None or self.owner.infer_sharding_from_operands is not None:
            return None
        closed, avals = avals[: self.held], avals[self.held :]
        if callable(given):
            given = given(*self.static, *self._told({}, avals, None, outs, None))
        if isinstance(given, str):
            given = _parsed(given, self.owner.factor_sizes)
        sides = given.operand_mappings, given.result_mappings
        arrays = avals, outs
        for mappings, some, what in zip(sides, arrays, ("operands", "results"), strict=True):
            if len(mappings) != len(some):
                raise ValueError(
                    f"sharding_rule has {len(mappings)} {what}, but the function has {len(some)}."
                )
        sizes: dict[str, int] = dict(given.factor_sizes)
        numbers: dict[str, int] = {}
        ins, results = [
            [_dims(m, a.shape, sizes) for m, a in zip(mappings, some, strict=True)]
            for mappings, some in zip(sides, arrays, strict=True)
        ]
        for dims in (*ins, *results):
            for factors in dims:
                for f in factors:
                    numbers.setdefault(f, len(numbers))

        def placed(side: list) -> list:
            return [[tuple([numbers[f] for f in d]) for d in dims] for dims in side]

        whole = {numbers[f] for f in (*self.owner.whole, *given.whole) if f in numbers}
        held: list = [[()] * a.ndim for a in closed]
        known = {numbers[f]: sizes[f] for f in numbers}
        return Rule(held + placed(ins), placed(results), known, whole)

    def layouts(
        self, sizes: Sizes, avals: Sequence[ShapedArray], ins: Sequence[Layout],
        outs: Sequence[ShapedArray],
    ) -> list[Layout] | None:  # fmt: skip
        """The layouts of results, where the function's author infers them."""
        infer = self.owner.infer_sharding_from_operands
        if infer is None:
            return None
        given = avals[self.held :], ins[self.held :]
        found = infer(*self.static, *self._told(sizes, *given, outs, None))
        return [s.layout(a.ndim) for s, a in zip(self.out_tree.flatten_up_to(found), outs)]

    def parts(
        self, sizes: Sizes, avals: Sequence[ShapedArray], ins: Sequence[Layout],
        outs: Sequence[ShapedArray], wanted: Sequence[Layout],
    ) -> tuple[Callable, list[Layout], list[Layout]]:  # fmt: skip
        """What a device runs on its parts, and the layouts of operands and results."""
        closed, avals = avals[: self.held], avals[self.held :]
        _, lower, results, args = self.owner.partition(
            *self.static, *self._told(sizes, avals, ins[self.held :], outs, wanted)
        )
        if not isinstance(args, tuple | list):
            args = (args,)
        before = [s.layout(a.ndim) for s, a in zip(self.in_tree.flatten_up_to(tuple(args)), avals)]
        after = [s.layout(a.ndim) for s, a in zip(self.out_tree.flatten_up_to(results), outs)]

        def run(*parts: Any) -> list:
            out = lower(*tree.tree_unflatten(self.in_tree, parts[self.held :]))
            return [as_array(x) for x in self.out_tree.flatten_up_to(out)]

        return run, [((),) * a.ndim for a in closed] + before, after

    def _told(
        self, sizes: Sizes, avals: Sequence[ShapedArray], ins: Any, outs: Any, wanted: Any
    ) -> tuple[Any, Any, Any]:
        """The mesh, and what operands and results are, as the user's functions see them."""
        mesh = AbstractMesh(tuple(sizes.values()), tuple(sizes))
        over = NamedSharding(mesh, PartitionSpec())

        def described(some: Sequence[ShapedArray], layouts: Any) -> list:
            return [
                ShapeDtypeStruct(a.shape, a.dtype, sharding=None if layouts is None
                                 else over.of_layout(layouts[k]))
                for k, a in enumerate(some)
            ]  # fmt: skip

        return (mesh, tree.tree_unflatten(self.in_tree, described(avals, ins)),
                tree.tree_unflatten(self.out_tree, described(outs, wanted)))  # fmt: skip


def _dims(mapping: Sequence[Any], shape: Sequence[int], sizes: dict[str, int]) -> list[tuple]:
    """The factors of each dimension, whose sizes are noted."""
    dims = list(mapping)
    if BATCHING in dims:
        extra = len(shape) - len(dims) + 1
        dims[:1] = [f"{BATCHING}{extra - k}" for k in range(extra)]
    if len(dims) != len(shape):
        raise ValueError(
            f"sharding_rule names {len(dims)} dimensions for an array of shape {tuple(shape)}."
        )
    found: list[tuple] = []
    names = [f for d in dims for f in (d if isinstance(d, CompoundFactor) else (d,)) if f != "1"]
    if len(set(names)) != len(names):
        raise ValueError(f"sharding_rule: a factor stands twice in {mapping}.")
    for factors, n in zip(dims, shape, strict=True):
        if factors == "1" or n == 1:
            found.append(())
            continue
        several = isinstance(factors, CompoundFactor)
        found.append(tuple(factors) if several else (factors,))
        if not several and sizes.setdefault(factors, n) != n:
            raise ValueError(
                f"sharding_rule: factor {factors!r} is {sizes[factors]} and {n} long."
            )
    return found


class custom_partitioning:  # noqa: N801 - JAX's name
    """A function, and how it is cut over the devices of a mesh.

    fun: a function of pytrees of arrays. static_argnums: arguments that are Python values. Call
    `def_partition` before the function. One process, with all its devices, runs `fun` as it is; of
    several processes each runs what `partition` gives. It has no derivative and no rule for `vmap`:
    give them to a function around it.
    """

    def __init__(self, fun: Callable, static_argnums: Sequence[int] = ()) -> None:
        check_callable("custom_partitioning", fun)
        self.fun, self.static_argnums = fun, tuple(static_argnums)
        self.partition: Any = None
        self.infer_sharding_from_operands: Any = None
        self.sharding_rule: Any = None
        self.factor_sizes: dict[str, int] = {}
        self.whole: tuple[str, ...] = ()
        wraps(fun)(self)

    def def_partition(
        self,
        partition: Callable,
        infer_sharding_from_operands: Callable | None = None,
        propagate_user_sharding: Callable | None = None,
        decode_shardings: bool = True,
        sharding_rule: Any = None,
        *,
        reduction_factors: Sequence[str] = (),
        need_replication_factors: Sequence[str] = (),
        permutation_factors: Sequence[str] = (),
        **factor_sizes: int,
    ) -> Callable:
        """Say how the function is cut; returns `partition`.

        partition(*static, mesh, arg_shapes, result_shape) gives the mesh, the function of a
        device's parts, and the shardings of results and of arguments (a tuple); the function may
        use collectives over the mesh's axes. infer_sharding_from_operands, of the same arguments,
        gives the shardings of results; sharding_rule says it as a text instead, "i j, j k -> i k",
        with need_replication_factors (which are not cut) and the sizes of factors in parentheses.
        propagate_user_sharding is not asked, and of reduction_factors and permutation_factors
        nothing follows here. Shardings are over a mesh without devices.
        """
        del propagate_user_sharding, decode_shardings, reduction_factors
        if not isinstance(sharding_rule, str | SdyShardingRule | None) and not callable(
            sharding_rule
        ):
            raise TypeError(f"rule must be a str, but got {type(sharding_rule)}")
        if isinstance(sharding_rule, str):
            _parsed(sharding_rule, factor_sizes)
        self.partition, self.infer_sharding_from_operands = partition, infer_sharding_from_operands
        self.sharding_rule, self.factor_sizes = sharding_rule, factor_sizes
        self.whole = (*need_replication_factors, *permutation_factors)
        return partition

    def __call__(self, *args: Any) -> Any:
        if self.partition is None:
            raise AttributeError(
                "custom_partitioning: the function was called before def_partition said how it is "
                "cut."
            )
        fixed = {i % len(args) for i in self.static_argnums}
        dynamic = tuple([x for i, x in enumerate(args) if i not in fixed])
        leaves, in_tree = array_leaves("custom_partitioning", dynamic)
        leaves = [as_array(x) for x in leaves]
        out_trees: list = []

        def flat(*values: Any) -> list:
            given = iter(tree.tree_unflatten(in_tree, values))
            out = self.fun(*[x if i in fixed else next(given) for i, x in enumerate(args)])
            outs, out_tree = array_leaves("custom_partitioning", out, "output")
            out_trees.append(out_tree)
            return [as_array(x) for x in outs]

        jaxpr, consts = stage(flat, [x.aval for x in leaves])[:2]
        call = hoist_consts(jaxpr)
        static = tuple([args[i] for i in sorted(fixed)])
        rules = _Rules(self, static, in_tree, out_trees[0], len(consts))
        outs = custom_partitioning_p.bind(*consts, *leaves, call_jaxpr=call, rules=rules)
        return tree.tree_unflatten(out_trees[0], outs)
