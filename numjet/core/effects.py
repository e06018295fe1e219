"""Effects of equations that call the host: what keeps them alive, and in their order.

A primitive's `effects` holds these; dead-code elimination keeps every equation that has one. What
would break it: two objects for one effect, since they are compared by identity.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Effect:
    """What an equation does beside computing its results."""

    __slots__ = ()


class HostEffect(Effect):
    """A call of the host. `io` marks calls that a program's meaning depends on (they may neither
    be repeated nor run for a branch not taken), `ordered` those whose order is kept. `refused` says
    why a program with the effect cannot be lowered, where it cannot."""

    __slots__ = ("name", "io", "ordered", "refused")

    def __init__(self, name: str, io: bool, ordered: bool, refused: str = "") -> None:
        self.name, self.io, self.ordered, self.refused = name, io, ordered, refused

    def __repr__(self) -> str:
        return self.name


DEBUG = HostEffect("Debug", io=False, ordered=False)
ORDERED_DEBUG = HostEffect("OrderedDebug", io=False, ordered=True)
IO = HostEffect("IO", io=True, ordered=False)
ORDERED_IO = HostEffect("OrderedIO", io=True, ordered=True)


def refuse_io(
    effects: Iterable[Any], where: str, remedy: str, what: str = "IO effect"
) -> None:
    """Raise NotImplementedError when `effects` hold one of input or output."""
    if any(isinstance(e, HostEffect) and e.io for e in effects):
        raise NotImplementedError(f"{what} not supported in {where}. {remedy}")
