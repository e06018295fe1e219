"""The axes of `shard_map` along which it is known what varies, and gradients taken where it is not.

`transforms.varying` reads the axes and follows flows; `api.maps.shared_gradients` counts the
gradients; `jit` sees from the counts that a function took one while it was traced.
"""
from __future__ import annotations

import itertools
import threading
from collections.abc import Collection, Sequence
from contextvars import ContextVar
from typing import Any

from numjet.base.record import record, replace


@record(frozen=True)
class ManualAxisType:
    """Over which manual axes of a mesh a value differs, or is a sum that is pending or done.

    varying, unreduced, reduced: sets of names, of which no two have one in common (ValueError).
    `typeof(x).manual_axis_type` is one, for a value inside of `shard_map`.

    >>> from numjet import sharding
    >>> sorted(sharding.ManualAxisType(varying={"x"}).varying)
    ['x']
    """

    varying: frozenset = frozenset()
    unreduced: frozenset = frozenset()
    reduced: frozenset = frozenset()

    def __init__(
        self,
        *,
        varying: Collection = frozenset(),
        unreduced: Collection = frozenset(),
        reduced: Collection = frozenset(),
    ) -> None:
        given = {"varying": varying, "unreduced": unreduced, "reduced": reduced}
        for name, axes in given.items():
            object.__setattr__(self, name, frozenset(axes))
        for one, other in itertools.combinations(given, 2):
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
        return replace(self, **changes)

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


@record(frozen=True)
class Told:
    """What of a function's arguments and results does not vary. around: the axes of shard_maps that
    test it. axes: for each of which it is known its name and size, and a flag for each argument and
    each result."""

    around: tuple[tuple[Any, int], ...]
    axes: list[tuple[Any, int, list[bool], list[bool]]]


def rule_error(i: int, aval: Any, name: Any, shared: bool) -> ValueError:
    """That the i-th cotangent that a custom_vjp rule gives varies along an axis of `shard_map`, and
    its argument does not (shared), or the other way."""
    one, other = ("varies", "does not") if shared else ("does not vary", "does")
    how = "Sum it with lax.psum" if shared else "Cast it with lax.pcast(..., to='varying')"
    return ValueError(
        "Custom VJP bwd rule must produce an output with the same type as the args tuple of the "
        f"primal function, but at output[{i}] the bwd rule produced an output of type "
        f"{aval.str_short()} that {one} over the axis {name!r} of shard_map where the input "
        f"{other}, so the manual axis types do not match. {how}."
    )


class Shared:
    """axes: pairs (name, size) of the axes of shard_maps around that test what varies (check_vma).
    mapped: the names of the axes of all shard_maps around. here: what was counted in this thread.
    ruled: while a rule by the user runs, the axes along which it is given and gives whole
    cotangents anyway. told: what is known of its call, from when that was staged.
    """

    mapped: ContextVar[frozenset] = ContextVar("numjet.mapped_axes", default=frozenset())
    axes: ContextVar[tuple[tuple[Any, int], ...]] = ContextVar("numjet.tested_axes", default=())
    ruled: ContextVar[frozenset] = ContextVar("numjet.ruled_axes", default=frozenset())
    told: ContextVar[Told | None] = ContextVar("numjet.told_axes", default=None)
    here = _Counts()

    @classmethod
    def tests(cls, name: Any) -> bool:
        """Whether a `shard_map` around tests what varies along this axis."""
        return any([name == own for own, _ in cls.axes.get()])

    @classmethod
    def note(cls) -> None:
        """A gradient was taken where it is not known what varies."""
        cls.here.unknown += 1
