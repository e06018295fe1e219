"""The axes of `shard_map` along which it is known what varies, and gradients taken where it is not.

`api.shared_gradients` reads the one and counts the others; `jit`, and what stages bodies of loops,
see from the counts that a function did so while it was traced.
"""
from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Any


class _Counts(threading.local):
    """This thread's gradients inside of staged functions, where it is not known what varies; and
    those of them with collectives."""

    unknown = 0
    joined = 0


class Shared:
    """axes: pairs (name, size) of the axes of shard_maps around that test what varies (check_vma).
    here: what was counted in this thread."""

    axes: ContextVar[tuple[tuple[Any, int], ...]] = ContextVar("numjet.tested_axes", default=())
    here = _Counts()

    @classmethod
    def note(cls, joined: bool) -> None:
        """A gradient was taken where it is not known what varies; whether it has collectives."""
        cls.here.unknown += 1
        cls.here.joined += joined
