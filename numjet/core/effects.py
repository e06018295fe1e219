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
    be repeated nor run for a branch not taken), `once` those that may not be repeated, `ordered`
    those whose order is kept. `refused` says why a program with the effect cannot be lowered, where
    it cannot."""

    __slots__ = ("name", "io", "once", "ordered", "refused")

    def __init__(
        self, name: str, io: bool, ordered: bool, refused: str = "", once: bool | None = None
    ) -> None:
        self.name, self.io, self.ordered, self.refused = name, io, ordered, refused
        self.once = io if once is None else once

    def __repr__(self) -> str:
        return self.name


class DebugEffect(HostEffect):
    """That of `debug.print` and `debug.callback`."""

    __slots__ = ()


class OrderedDebugEffect(HostEffect):
    """That of those that keep their order."""

    __slots__ = ()


class IOEffect(HostEffect):
    """That of `io_callback`."""

    __slots__ = ()


class OrderedIOEffect(HostEffect):
    """That of one that keeps its order."""

    __slots__ = ()


DEBUG = DebugEffect("Debug", io=False, ordered=False)
ORDERED_DEBUG = OrderedDebugEffect("OrderedDebug", io=False, ordered=True)
IO = IOEffect("IO", io=True, ordered=False)
ORDERED_IO = OrderedIOEffect("OrderedIO", io=True, ordered=True)
# Of a call of a compiled function that has side effects.
FOREIGN = HostEffect("FfiEffect()", io=False, ordered=False, once=True)


class EffectTypes:
    """A set of types of effects."""

    def __init__(self) -> None:
        self.types: set[type] = set()

    def add_type(self, effect: type) -> None:
        self.types.add(effect)

    def contains(self, effect: Any) -> bool:
        return isinstance(effect, tuple(self.types))


# Those of effects of the user's that loops and branches may have.
control_flow_allowed_effects = EffectTypes()
_PACKAGE = __name__.partition(".")[0]


def refuse_others(effects: Iterable[Any], where: str) -> None:
    """Raise NotImplementedError when `effects` hold one of the user's that loops and branches may
    not have."""
    others = [
        e for e in effects
        if type(e).__module__.partition(".")[0] != _PACKAGE
        and not control_flow_allowed_effects.contains(e)
    ]  # fmt: skip
    if others:
        raise NotImplementedError(
            f"Effects not supported in `{where}`: {others}. Add their types to "
            "experimental.hijax.control_flow_allowed_effects, where they may happen in any round."
        )


def refuse_io(effects: Iterable[Any], where: str, remedy: str) -> None:
    """Raise NotImplementedError when `effects` hold one of input or output."""
    if any(isinstance(e, HostEffect) and e.io for e in effects):
        raise NotImplementedError(f"IO effect not supported in {where}. {remedy}")


def refuse_again(effects: Iterable[Any], where: str, remedy: str) -> None:
    """Raise NotImplementedError when `effects` hold one of calls that may not be repeated."""
    if any(isinstance(e, HostEffect) and e.once for e in effects):
        raise NotImplementedError(f"Effects not supported in {where}. {remedy}")
