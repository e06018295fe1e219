"""Derivatives of functions of mutable references.

`jvp` and `linearize` take a reference with a reference of tangents: the function is one of their
values, and what both hold at the end is put back. `vjp` differentiates in the other arguments: the
function closes over the references, so that rules of the user may write them in the backward pass;
their own cotangents are asked for by `with_refs`.
What would break it: a reference that is made a part of arrays before `api.flat.RefGiven` is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numjet.api.flat import name_of
from numjet.base import tree
from numjet.core.array import as_array
from numjet.core.debug_info import Tracing
from numjet.core.refs import AbstractRef, Ref, RefError, new_ref, refuse_twice, watched
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


class RefVJP:
    """The pullback of a function of references: called, it is one of the other arguments, and
    references have references of zeros as cotangents. A pytree of its `parts`; `static` is compared
    by identity.

    `with_refs` is told a reference for each reference among the arguments, which holds the
    cotangent of what that one is left with, and then that of what it held.
    """

    __slots__ = ("static", "parts")

    def __init__(self, static: _Static, parts: tuple) -> None:
        # (pullback of the other arguments or None, that of all of them as values or None, values)
        self.static, self.parts = static, parts

    def __call__(self, out_ct: Any) -> Any:
        static, pullback = self.static, self.parts[0]
        if static.read or pullback is None:
            aval = (static.read or [*static.avals.values()])[0]
            raise ValueError(
                f"vjp: {static.name} reads or writes an argument that is a mutable array reference "
                f"of type {aval}, which has a cotangent in a reference alone. Call "
                "pullback.with_refs(...), or use the reference by closure."
            )
        given = iter(pullback(out_ct))
        found = [
            new_ref(zeros(static.avals[i].inner_aval.tangent())) if i in static.avals
            else next(given)
            for i in range(static.in_tree.num_leaves)
        ]  # fmt: skip
        return tree.tree_unflatten(static.in_tree, found)

    def with_refs(self, *maybe_ct_refs: Any) -> Callable[[Any], tuple]:
        """The pullback that leaves cotangents in references; see `VJP.with_refs`."""
        static, (_, pullback, values) = self.static, self.parts
        if pullback is None:  # of the function once more, of values
            pullback = static.of_values(values)[1]
        places, treedef = tree.tree_flatten(maybe_ct_refs)
        if treedef != static.in_tree:
            raise ValueError(
                "with_refs: the places must have the structure of the arguments, "
                f"{static.in_tree}, got {treedef}."
            )

        def pull(out_ct: Any) -> Any:
            last = []
            for i, aval in static.avals.items():
                given = isinstance(places[i], Ref)
                last.append(places[i].value() if given else zeros(aval.inner_aval.tangent()))
                if given:
                    places[i].put(zeros(aval.inner_aval.tangent()))
            found = pullback.with_refs(*places)((out_ct, last))
            return static.in_tree.unflatten(found)

        return pull


class _Static:
    """What a pullback knows beside arrays."""

    def __init__(self, vjp: Callable, whole: _Values, name: str) -> None:
        self.name, self.in_tree = name, whole.in_tree
        self.read: list[AbstractRef] = []
        self.avals = {i: ref.aval for i, ref in whole.refs.items()}
        self.vjp, self.whole = vjp, whole

    def of_values(self, values: Sequence[Any]) -> tuple:
        """What `vjp` gives of the function of values."""
        return self.vjp(self.whole, *values, has_aux=self.whole.has_aux)


tree.register_pytree_node(
    RefVJP, lambda x: (x.parts, x.static), lambda static, parts: RefVJP(static, tuple(parts))
)


def vjp(vjp: Callable, fun: Callable, primals: Any, has_aux: bool) -> Any:
    """What `vjp` gives of references. The function closes over them; where it writes to them what
    is differentiated it is one of their values."""
    whole = _Values("vjp", fun, primals, has_aux)
    leaves, refs = tree.tree_leaves(tuple(primals)), whole.refs
    static = _Static(vjp, whole, name_of(fun))

    def of_others(*others: Any) -> Any:
        given = iter(others)
        args = [refs[i] if i in refs else next(given) for i in range(len(leaves))]
        return fun(*tree.tree_unflatten(whole.in_tree, args))

    of_others.__name__ = name_of(fun)
    try:
        with watched(refs.values()) as read:
            others = [x for i, x in enumerate(leaves) if i not in refs]
            out, pullback, *aux = vjp(of_others, *others, has_aux=has_aux)
    except RefError:
        for i, ref in refs.items():  # as they were
            ref.put(whole.values[i])
        (out, last), pullback, *aux = static.of_values(whole.values)
        whole.put(leaves, last)
        return out, RefVJP(static, (None, pullback, whole.values)), *aux
    static.read = [ref.aval for ref in read]
    return out, RefVJP(static, (pullback, None, whole.values)), *aux
