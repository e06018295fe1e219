"""numjet.custom_batching: functions that say themselves how vmap runs them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from numjet.api.derivatives.custom import RULES, positional, resolve_kwargs
from numjet.api.flat import array_leaves, check_callable, name_of
from numjet.base import tree
from numjet.core.debug_info import Tracing
from numjet.core.jaxpr import ClosedJaxpr
from numjet.core.structural import convert
from numjet.ops.custom_vmap import custom_vmap_p
from numjet.ops.scan_functions import map as _map
from numjet.transforms.batch import Axis
from numjet.transforms.stage import hoist_consts, stage


class custom_vmap:  # noqa: N801 - a decorator
    """A function with a batching rule of its own: `f.def_vmap(rule)`.

    fun: the function, which computes the value without vmap.
    `rule(axis_size, in_batched, *args) -> (out, out_batched)`: in_batched has a bool for each leaf
    of the arguments, in their structure; batched leaves have the batch axis first. out_batched has
    one for each leaf of the output.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> @nj.custom_batching.custom_vmap
    ... def f(x):
    ...     return x + 1.0
    >>> @f.def_vmap
    ... def rule(axis_size, in_batched, x):
    ...     return x + 10.0, True
    >>> print(nj.vmap(f)(jnp.zeros(2)))
    [10. 10.]
    """

    def __init__(self, fun: Callable) -> None:
        check_callable("custom_vmap", fun)
        functools.update_wrapper(self, fun)  # type: ignore[arg-type]
        self.fun = fun
        self.vmap_rule: Callable | None = None
        self._positional = positional(fun)

    def __getattr__(self, name: str) -> Any:
        fun = self.__dict__.get("fun")
        if name in RULES and hasattr(fun, name):
            return getattr(fun, name)
        raise AttributeError(f"'custom_vmap' object has no attribute {name!r}")

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def def_vmap(self, vmap_rule: Callable) -> Callable:
        """Set the batching rule. Usable as a decorator.

        vmap_rule(axis_size, in_batched, *args) -> (out, out_batched), as the class says. Result:
        vmap_rule.

        >>> import numjet as nj
        >>> from numjet import custom_batching, numpy as jnp
        >>> f = custom_batching.custom_vmap(lambda x: x + 1.0)
        >>> _ = f.def_vmap(lambda axis_size, in_batched, x: (x + 10.0, True))
        >>> nj.vmap(f)(jnp.zeros(2))
        Array([10., 10.], dtype=float32)
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = name_of(self.fun)
        if self.vmap_rule is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {name} using def_vmap."
            )
        if kwargs or len(args) != self._positional:
            args = resolve_kwargs("custom_vmap", self.fun, args, kwargs)
        leaves, in_tree = array_leaves(name, args)
        out_trees: list = []

        def flat(*values: Any) -> list[Any]:
            result = self.fun(*tree.tree_unflatten(in_tree, values))
            outs, treedef = array_leaves(name, result, "output")
            out_trees.append(treedef)
            return outs

        traced = Tracing(self.fun, "custom_vmap fun", in_tree, by_name=False)
        jaxpr, consts = stage(flat, [x.aval for x in leaves], name, traced)
        jaxpr.debug = traced.told(None)
        closed = hoist_consts(jaxpr)
        outs = custom_vmap_p.bind(
            *consts,
            *leaves,
            call_jaxpr=closed,
            rule=self._flat_rule(closed, in_tree, out_trees[0], len(consts)),
            name=name,
        )
        return tree.tree_unflatten(out_trees[0], outs)

    def _flat_rule(
        self, closed: ClosedJaxpr, in_tree: Any, out_tree: Any, n_consts: int
    ) -> Callable:
        name = name_of(self.fun)

        def flat(axis: Axis, mapped: Sequence[bool], *values: Any) -> tuple[list, list]:
            if self.vmap_rule is None:
                raise AttributeError(
                    f"No batching rule defined for custom_vmap function {name} using def_vmap. "
                    f"Set one with {name}.def_vmap(rule)."
                )
            if any(mapped[:n_consts]):
                raise NotImplementedError(
                    f"{name}: a custom_vmap function closes over a value that is mapped. Pass the "
                    "value as an explicit argument, so that the rule can see it."
                )
            args = tree.tree_unflatten(in_tree, values[n_consts:])
            in_batched = list(tree.tree_unflatten(in_tree, mapped[n_consts:]))
            result = self.vmap_rule(axis.size, in_batched, *args)
            if not isinstance(result, tuple | list) or len(result) != 2:
                raise (ValueError if hasattr(result, "__len__") else TypeError)(
                    f"custom_vmap rule of {name}: must return a pair (output, out_batched), got "
                    f"{result!r}."
                )
            rule = f"({name_of(self.vmap_rule)})"
            outs, found = array_leaves(name, result[0], "output")
            given = tree.tree_structure(result[1])
            if found.num_leaves != given.num_leaves and given.num_leaves > 1 or (
                given != found and type(result[1]) is not bool
            ):
                raise ValueError(
                    "structure of output value and output batching specification returned by "
                    f"custom vmap rule {rule} do not match: {found} and {given}."
                )
            if found != out_tree:
                raise ValueError(
                    f"structure of output returned by custom vmap rule {rule} does not match that "
                    f"of original custom-vmapped function {name}: {found} and {out_tree}."
                )
            batched = tree.broadcast_prefix(result[1], result[0])
            if not any(mapped):  # a rule that was asked of one example, and calls it batched
                batched = [
                    b and x.aval.shape != aval.shape
                    for b, x, aval in zip(batched, outs, closed.out_avals, strict=True)
                ]
            return _checked(name, closed, axis.size, outs, batched), list(batched)

        # What printed jaxprs say of it (`core.jaxpr_print`).
        flat.told = {  # type: ignore[attr-defined]
            "in_tree": tree.tree_structure(([0] * n_consts, tree.tree_unflatten(
                in_tree, [0] * in_tree.num_leaves))),
            "out_tree": out_tree, "rule": repr(self.vmap_rule),
        }  # fmt: skip
        return flat


def _checked(
    name: str, closed: ClosedJaxpr, size: int, outs: Sequence[Any], batched: Sequence[bool]
) -> list[Any]:
    """The rule's outputs in the dtypes of the function's. Raises ValueError for other shapes."""
    good = []
    for x, aval, is_batched in zip(outs, closed.out_avals, batched, strict=True):
        want = (size, *aval.shape) if is_batched else aval.shape
        if x.aval.shape != want:
            raise ValueError(
                f"custom_vmap rule of {name}: expected an output of shape {want} (out_batched "
                f"{bool(is_batched)}), got {x.aval.str_short()}."
            )
        good.append(convert(x, aval.dtype, aval.weak_type))
    return good


def sequential_vmap(f: Callable) -> custom_vmap:
    """`f`, of which `vmap` runs one example after the other in a loop.

    f: a function of pytrees of arrays. Result: a custom_vmap. For functions that cannot be
    vectorized, or whose vectorized form needs too much memory.

    >>> import numjet as nj
    >>> from numjet import custom_batching, numpy as jnp
    >>> nj.vmap(custom_batching.sequential_vmap(lambda x: x * x))(jnp.arange(3))
    Array([0, 1, 4], dtype=int32)
    """
    wrapped = custom_vmap(f)

    def rule(axis_size: int, in_batched: Any, *args: Any) -> tuple:
        leaves, treedef = tree.tree_flatten(args)
        mapped = tree.tree_leaves(in_batched)

        def one(rows: Sequence[Any]) -> Any:
            given = iter(rows)
            return wrapped(
                *tree.tree_unflatten(
                    treedef,
                    [next(given) if m else x for x, m in zip(leaves, mapped, strict=True)],
                )
            )

        out = _map(one, [x for x, m in zip(leaves, mapped, strict=True) if m])
        return out, tree.tree_map(lambda _: True, out)

    wrapped.def_vmap(rule)
    return wrapped


__all__ = ["custom_vmap", "sequential_vmap"]


def __dir__() -> list[str]:
    return [*__all__]
