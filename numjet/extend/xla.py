"""Hooks into XLA's passes. There is no XLA: registering one raises NotImplementedError."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any


class PipelineStage(enum.Enum):
    """Where in XLA's pipeline a hook would run."""

    PRE_SCHEDULER = 0
    POST_SCHEDULER = 1


def register_hlo_module_transformation(
    callback: Callable,
    *,
    name: str,
    stage: PipelineStage = PipelineStage.PRE_SCHEDULER,
    platforms: Sequence[str] | str | None = None,
) -> None:
    """Not there: raises NotImplementedError, as the programs of our compiler are no HLO modules.

    callback, name, stage, platforms: what JAX's takes.

    >>> from numjet.extend import xla
    >>> xla.register_hlo_module_transformation(print, name="p")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    raise NotImplementedError(
        f"register_hlo_module_transformation({name!r}): programs are no HLO modules here."
    )


def clear_hlo_module_transformation(
    name: str,
    stage: PipelineStage = PipelineStage.PRE_SCHEDULER,
    platforms: Any = None,
) -> bool:
    """False: no hook is registered.

    name, stage, platforms: what JAX's takes.

    >>> from numjet.extend import xla
    >>> xla.clear_hlo_module_transformation("p")
    False
    """
    return False
