"""Names of scopes, which equations tell with the user's line: `with named_scope("encoder"):`.

The current stack of names is kept for the thread; a function that is staged begins without names.
A staging trace notes where in its equations the names changed, so that recording an equation costs
nothing. What would break it: a transformation that enters its name where its equations are not its
own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from numjet.base.name_stack import NameStack
from numjet.core.trace import Source, current_trace

current_names: ContextVar[NameStack] = ContextVar("numjet.names", default=NameStack())  # noqa: B039


class NamedSource(Source):
    """The user's line, and the names of the scopes around it."""

    __slots__ = ("names",)

    def __init__(self, source: Source, names: NameStack) -> None:
        super().__init__(source.code, source.line, source.at)
        self.names = names

    def transposed(self) -> NamedSource:
        """That of what the transposition of the equation binds here."""
        return NamedSource(self, self.names.transposed(current_names.get()))

    def entered(self) -> Any:
        """A context within the names of the equation, for binding it again."""
        return names_set(current_names.get() + self.names)


_NOTHING = nullcontext()


def named(source: Any) -> Any:
    """A line with the names around it."""
    names = current_names.get()
    return NamedSource(source, names) if names.scoped and source is not None else source


@contextmanager
def names_set(names: NameStack) -> Iterator[NameStack]:
    """A context with these names; the staging trace at or around the current one notes them."""
    before = current_names.get()
    token = current_names.set(names)
    staging = current_trace().staging if names.scoped or before.scoped else None
    if staging is not None:
        staging.marks.append((len(staging.eqns), names))
    try:
        yield names
    finally:
        current_names.reset(token)
        if staging is not None:
            staging.marks.append((len(staging.eqns), before))


def scope(name: str) -> Any:
    """A context inside of a scope."""
    return names_set(current_names.get().extend(name))


def transformation(name: str) -> Any:
    """A context inside of a transformation; nothing where no equations are recorded."""
    if current_trace().staging is None:
        return _NOTHING
    return names_set(current_names.get().transform(name))


def name_equations(eqns: Sequence[Any], marks: list[tuple[int, NameStack]]) -> None:
    """Tell the equations of a trace the names that were noted while they were recorded."""
    ends = [*[at for at, _ in marks[1:]], len(eqns)]
    for (begin, names), end in zip(marks, ends, strict=True):
        if names.scoped:
            for eqn in eqns[begin:end]:
                if type(eqn.source) is Source:
                    eqn.source = NamedSource(eqn.source, names)
