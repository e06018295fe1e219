"""The axes of `shard_map` along which it is known what varies, and gradients taken where it is not.

`transforms.varying` reads the axes and follows flows; `api.shared_gradients` counts the gradients;
`jit` sees from the counts that a function took one while it was traced.
"""
from __future__ import annotations

import threading
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any


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
    here: what was counted in this thread."""

    axes: ContextVar[tuple[tuple[Any, int], ...]] = ContextVar("numjet.tested_axes", default=())
    here = _Counts()

    @classmethod
    def note(cls) -> None:
        """A gradient was taken where it is not known what varies."""
        cls.here.unknown += 1
