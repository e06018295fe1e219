"""Stacks of names: scopes and the transformations between them, the outermost first.

For `core.names`, which keeps the current one, and for who reads or makes them. What would break it:
nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence


class Transform(str):
    """The name of a transformation in a stack of names."""

    __slots__ = ()


class NameStack:
    """Names of scopes, the outermost first; `str()` joins them with slashes. The names of
    transformations stand around the scope that follows: `jvp(encoder)/dense`."""

    __slots__ = ("stack", "scoped")

    def __init__(self, stack: Sequence[str] = ()) -> None:
        self.stack = tuple(stack)
        # Whether there is a scope: names of transformations alone are not told.
        self.scoped = any(type(name) is not Transform for name in self.stack)

    def extend(self, name: str) -> NameStack:
        """This with a scope inside."""
        return NameStack((*self.stack, name))

    def transform(self, transform_name: str) -> NameStack:
        """This with a transformation inside."""
        return NameStack((*self.stack, Transform(transform_name)))

    def transposed(self, outer: NameStack) -> NameStack:
        """This for what the transposition of such an equation binds, where `outer` are the names
        around it: what was linearized there has its name within `transpose`."""
        n = len(outer.stack)
        inner = self.stack[n:]
        if self.stack[:n] != outer.stack or not inner or type(inner[0]) is not Transform:
            return self
        return NameStack((*outer.stack, Transform("transpose"), *inner))

    def __add__(self, other: NameStack) -> NameStack:
        return NameStack(self.stack + other.stack)

    def __len__(self) -> int:
        return len(self.stack)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NameStack) and self.stack == other.stack

    def __hash__(self) -> int:
        return hash(self.stack)

    def __repr__(self) -> str:
        kinds = [type(name) is Transform for name in self.stack] if self.scoped else []
        shown = [
            f"{'Transform' if other else 'Scope'}(name={str(name)!r})"
            for name, other in zip(self.stack, kinds)
        ]
        return f"NameStack(stack=({', '.join(shown)}{',' * (len(shown) == 1)}))"

    def __str__(self) -> str:
        parts: list[str] = []
        around: list[str] = []
        for name in self.stack:
            if type(name) is Transform:
                around.append(name)
            else:
                parts.append("".join([f"{t}(" for t in around]) + name + ")" * len(around))
                around = []
        if around:
            parts.append("".join([f"{t}(" for t in around]) + ")" * len(around))
        return "/".join(parts)
