"""Derivatives of functions of mutable references.

`jvp` and `linearize` take a reference with a reference of tangents: the function is one of their
values, and what both hold at the end is put back. `vjp` differentiates in the other arguments: the
function closes over the references, so that rules of the user may write them in the backward pass.
What would break it: a reference that is made a part of arrays before `api.flat.RefGiven` is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numjet.api.flat import name_of
from numjet.base import tree
from numjet.core.array import as_array
from numjet.core.debug_info import Tracing
from numjet.core.refs import AbstractRef, Ref, new_ref, refuse_twice, watched
from numjet.core.structural import zeros


class _Values:
    """A function of references as one of values: what it gives, and what they hold at the end."""

    def __init__(self, what: str, fun: Callable, primals: Any, has_aux: bool) -> None:
        self.fun, self.has_aux = fun, has_aux
        leaves, self.in_tree = tree.tree_flatten(tuple(primals))
        self.refs = {i: x for i, x in enumerate(leaves) if isinstance(x, Ref)}
        names = Tracing(fun, what, self.in_tree, by_name=False).names()
        refuse_twice(name_of(fun), what, leaves, names)
        self.values = self.of(leaves)
        self.__name__ = name_of(fun)

    def of(self, leaves: Sequence[Any]) -> list[Any]:
        """Leaves with what references hold in their places. Raises TypeError where the places are
        others than those of the arguments' references."""
        if {i for i, x in enumerate(leaves) if isinstance(x, Ref)} != set(self.refs):
            raise TypeError(
                "primal and tangent arguments must have references in the same places: the tangent "
                "of a mutable array reference is one, too, which is given the tangent of what is "
                "written."
            )
        return [x.value() if i in self.refs else x for i, x in enumerate(leaves)]

    def __call__(self, *values: Any) -> Any:
        arrays = {i: as_array(values[i]) for i in self.refs}
        inner = {i: Ref(AbstractRef(x.aval), x) for i, x in arrays.items()}
        args = [inner.get(i, x) for i, x in enumerate(values)]
        out = self.fun(*tree.tree_unflatten(self.in_tree, args))
        last = [ref.value() for ref in inner.values()]
        return ((out[0], last), out[1]) if self.has_aux else (out, last)

    def put(self, refs: Any, last: Sequence[Any]) -> None:
        """Let those of the leaves `refs` that are references hold what is left in them."""
        for i, value in zip(self.refs, last, strict=True):
            refs[i].put(value)


def jvp(jvp: Callable, fun: Callable, primals: Any, tangents: Any, has_aux: bool) -> Any:
    """What `jvp` gives of references with references of tangents."""
    whole = _Values("jvp", fun, primals, has_aux)
    t_leaves, t_tree = tree.tree_flatten(tuple(tangents))
    if t_tree != whole.in_tree:
        raise TypeError(
            "primal and tangent arguments to jax.jvp must have the same tree structure; got "
            f"{whole.in_tree} and {t_tree}."
        )
    (out, last), (tangent, t_last), *aux = jvp(whole, whole.values, whole.of(t_leaves), has_aux)
    whole.put(whole.refs, last)
    whole.put(t_leaves, t_last)
    return (out, tangent, *aux)


def linearize(linearize: Callable, fun: Callable, primals: Any, has_aux: bool) -> Any:
    """What `linearize` gives of references: a function of tangents and references of tangents."""
    whole = _Values("linearize", fun, primals, has_aux)
    (out, last), linear, *aux = linearize(whole, *whole.values, has_aux=has_aux)
    whole.put(whole.refs, last)

    def of_refs(*tangents: Any) -> Any:
        leaves = tree.tree_leaves(tuple(tangents))
        tangent, t_last = linear(*whole.of(leaves))
        whole.put(leaves, t_last)
        return tangent

    return (out, of_refs, *aux)


class _Filled:
    """A pullback of the other arguments as one of all: references have references of zeros as
    cotangents. Compared by identity, as the static part of a `Partial`."""

    def __init__(self, name: str, in_tree: Any, refs: dict[int, Ref], read: list[Ref]) -> None:
        self.name, self.in_tree, self.read = name, in_tree, [ref.aval for ref in read]
        self.avals = {i: ref.aval.inner_aval.tangent() for i, ref in refs.items()}

    def __call__(self, pullback: Callable, out_ct: Any) -> Any:
        if self.read:
            raise ValueError(
                f"vjp: {self.name} reads an argument that is a mutable array reference of type "
                f"{self.read[0]}, which has no cotangent. Use the reference by closure."
            )
        given = iter(pullback(out_ct))
        found = [
            new_ref(zeros(self.avals[i])) if i in self.avals else next(given)
            for i in range(self.in_tree.num_leaves)
        ]
        return tree.tree_unflatten(self.in_tree, found)


def vjp(vjp: Callable, fun: Callable, primals: Any, has_aux: bool) -> Any:
    """What `vjp` gives of references, in which the function is not differentiated."""
    leaves, in_tree = tree.tree_flatten(tuple(primals))
    refs = {i: x for i, x in enumerate(leaves) if isinstance(x, Ref)}
    names = Tracing(fun, "vjp", in_tree, by_name=False).names()
    refuse_twice(name_of(fun), "vjp", leaves, names)

    def of_others(*others: Any) -> Any:
        given = iter(others)
        whole = [refs[i] if i in refs else next(given) for i in range(len(leaves))]
        return fun(*tree.tree_unflatten(in_tree, whole))

    of_others.__name__ = name_of(fun)
    with watched(refs.values()) as read:
        others = [x for i, x in enumerate(leaves) if i not in refs]
        out, pullback, *aux = vjp(of_others, *others, has_aux=has_aux)
    return (out, tree.Partial(_Filled(name_of(fun), in_tree, refs, read), pullback), *aux)
