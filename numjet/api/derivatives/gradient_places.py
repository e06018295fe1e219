"""Where a pullback leaves the gradients of its arguments: what `vjp(...)[1].with_refs` is told.

`numjet.ad` shows these names. A place is a mutable reference, to which the gradient is added,
`GradValue()` for the gradient itself, or `DontWant()` for none.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from numjet.base import tree
from numjet.base.tree_registry import register_pytree_node
from numjet.core.refs import Ref


class _Place:
    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


class GradValue(_Place):
    """The gradient is wanted as a result."""

    __slots__ = ()


class GradRef(_Place):
    """Stands in the results for a gradient that was added to a reference."""

    __slots__ = ()


class DontWant(_Place):
    """The gradient is not wanted."""

    __slots__ = ()


class DidntWant(_Place):
    """Stands in the results for a gradient that was not wanted."""

    __slots__ = ()


class NotNeeded(_Place):
    """Stands for an argument whose value the pullback does not keep."""

    __slots__ = ()


for _stand_in in (GradRef, DidntWant, NotNeeded):  # leaves of no tree
    register_pytree_node(_stand_in, lambda _: ((), ()), lambda *_, make=_stand_in: make())

ad = SimpleNamespace(
    DontWant=DontWant, DidntWant=DidntWant, GradRef=GradRef, GradValue=GradValue
)


def placed(in_tree: Any, gradients: list, places: tuple) -> Any:
    """The results of a pullback, its flat gradients put where `places` say.

    Raises ValueError where the places have not the structure of the arguments.
    """
    leaves, treedef = tree.tree_flatten(places, is_leaf=lambda x: x is None)
    if treedef != in_tree:
        raise ValueError(
            f"with_refs: the places must have the structure of the arguments, {in_tree}, got "
            f"{treedef}. Pass a reference, GradValue() or DontWant() for each array."
        )
    out: list[Any] = []
    for place, gradient in zip(leaves, gradients, strict=True):
        if isinstance(place, Ref):
            place.addupdate(gradient)
            out.append(GradRef())
        elif isinstance(place, DontWant):
            out.append(DidntWant())
        else:
            out.append(gradient)
    return tree.tree_unflatten(in_tree, out)
