"""Which of how many processes this one is, and what carries messages between them.

`distributed.initialize` sets it, once, before arrays are made. `transport` is None for one process.
What would break it: a process that leaves the others while they wait for it.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Cluster:
    """index: this process's number. count: how many there are. transport: what the collectives of
    programs run on (`cpu.runtime.mpi.Transport`)."""

    index = 0
    count = 1
    transport: Any = None
    # Where processes that nobody started together have met; and whether they still work together.
    address: str | None = None
    left = False

    @classmethod
    def join(cls, transport: Any) -> None:
        """Be the process that `transport` knows, for good."""
        cls.index, cls.count, cls.transport = transport.index, transport.count, transport

    @classmethod
    def meet_at(cls, address: str) -> None:
        """Remember where processes that nobody started together meet."""
        cls.address = address

    @classmethod
    def leave(cls) -> None:
        """Work together no more."""
        cls.left = True


class Ranks:
    """The name of an axis in the program of one process: which processes are members of one group,
    in order, for all groups."""

    __slots__ = ("groups",)
    groups: tuple[tuple[int, ...], ...]
    _known: dict[tuple, Ranks] = {}

    def __new__(cls, groups: Sequence[Sequence[int]]) -> Ranks:
        key = tuple([tuple([int(i) for i in group]) for group in groups])
        found = cls._known.get(key)
        if found is None:
            found = cls._known[key] = object.__new__(cls)
            found.groups = key
        return found

    @property
    def mine(self) -> tuple[int, ...]:
        """The group of this process."""
        return next(group for group in self.groups if Cluster.index in group)

    def __repr__(self) -> str:
        return f"Ranks{self.groups}"

    def __reduce__(self) -> tuple:
        return Ranks, (self.groups,)


def ranks_of(params: dict) -> Ranks | None:
    """The processes that a collective with these params runs over; None where it runs over the
    members of a map."""
    names = params["axes"] if "axes" in params else (params.get("axis_name"),)
    return names[0] if names and isinstance(names[0], Ranks) else None
