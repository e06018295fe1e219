"""The axes of `shard_map` along which it is known what varies, and gradients taken where it is not.

`transforms.varying` reads the axes and follows flows; `api.shared_gradients` counts the gradients;
`jit` sees from the counts that a function took one while it was traced.
"""
from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any


@dataclasses.dataclass(frozen=True)
class ManualAxisType:
    """Over which manual axes of a mesh a value differs, or is a sum that is pending or done.

    varying, unreduced, reduced: sets of names, of which no two have one in common (ValueError).
    `typeof(x).manual_axis_type` is one, for a value inside of `shard_map`.

    >>> from numjet import sharding
    >>> sorted(sharding.ManualAxisType(varying={"x"}).varying)
    ['x']
    """

    _: dataclasses.KW_ONLY
    varying: frozenset = frozenset()
    unreduced: frozenset = frozenset()
    reduced: frozenset = frozenset()

    def __post_init__(self) -> None:
        names = ("varying", "unreduced", "reduced")
        for name in names:
            object.__setattr__(self, name, frozenset(getattr(self, name)))
        for i, one in enumerate(names):
            for other in names[i + 1 :]:
                if getattr(self, one) & getattr(self, other):
                    raise ValueError(
                        f"{one} and {other} cannot have common mesh axes. Got "
                        f"{one}={getattr(self, one)} and {other}={getattr(self, other)}"
                    )

    def invarying(self, mesh: Any) -> frozenset:
        """The manual axes of a mesh that it does not name."""
        return frozenset(mesh.manual_axes) - self.varying - self.unreduced - self.reduced

    @property
    def empty(self) -> bool:
        """Whether it names no axis."""
        return not self.vur

    @property
    def vur(self) -> frozenset:
        """All axes that it names."""
        return self.varying | self.unreduced | self.reduced

    def update(self, **changes: Any) -> ManualAxisType:
        """The same with other fields."""
        return dataclasses.replace(self, **changes)

    def to_ct_mat(self) -> ManualAxisType:
        """That of cotangents: a sum that is done has parts for cotangents, and the other way."""
        return self.update(unreduced=self.reduced, reduced=self.unreduced)

    def short(self, order: Sequence[Any] = ()) -> str:
        """`{V:x}`, as types show it; nothing where no axis is named. order: the mesh's axes."""
        parts = []
        for letter, found in zip("VUR", (self.varying, self.unreduced, self.reduced), strict=True):
            if found:
                told = [n for n in order if n in found]
                names = told + sorted(map(str, found - set(told)))
                text = ",".join(map(str, names))
                parts.append(f"{letter}:{text}" if len(names) == 1 else f"{letter}:({text})")
        return f"{{{', '.join(parts)}}}" if parts else ""


NOTHING_MANUAL = ManualAxisType()


class Flow:
    """What varies along an axis in a function that is being staged.

    given: for each of its arguments, whether it varies. varying: the variables that do, of the
    first `consts` constants and `eqns` equations. asked: whether somebody has asked. results: of a
    function that has been staged, whether its results vary.
    """

    __slots__ = ("given", "varying", "begun", "consts", "eqns", "asked", "results")

    def __init__(self, given: Sequence[bool]) -> None:
        self.given = list(given)
        self.restart()

    def restart(self) -> None:
        """Forget what was followed."""
        self.varying: set[Any] = set()
        self.begun = self.asked = False
        self.consts = self.eqns = 0
        self.results: list[bool] = []


class _Counts(threading.local):
    """This thread's gradients inside of staged functions of whose arguments nothing is known."""

    unknown = 0


class Shared:
    """axes: pairs (name, size) of the axes of shard_maps around that test what varies (check_vma).
    mapped: the names of the axes of all shard_maps around. here: what was counted in this thread.
    """

    mapped: ContextVar[frozenset] = ContextVar("numjet.mapped_axes", default=frozenset())
    axes: ContextVar[tuple[tuple[Any, int], ...]] = ContextVar("numjet.tested_axes", default=())
    here = _Counts()

    @classmethod
    def tests(cls, name: Any) -> bool:
        """Whether a `shard_map` around tests what varies along this axis."""
        return any([name == own for own, _ in cls.axes.get()])

    @classmethod
    def note(cls) -> None:
        """A gradient was taken where it is not known what varies."""
        cls.here.unknown += 1
