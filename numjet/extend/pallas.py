"""numjet.extend.pallas: JAX's extension of Pallas' lowerings, which are not there."""

from __future__ import annotations

from typing import Any

_REMEDY = (
    "there is no Pallas: numjet compiles fused kernels itself. Write functions with numjet.numpy "
    "and lax under jit."
)


class GridMapping:
    """How a kernel's grid lies over its operands. Raises NotImplementedError."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError(f"extend.pallas.GridMapping: {_REMEDY}")


def register_lowering_rule(*_: Any, **__: Any) -> Any:
    """Not there: raises NotImplementedError, as there are no kernels to lower.

    >>> from numjet.extend import pallas
    >>> pallas.register_lowering_rule(None)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    raise NotImplementedError(f"extend.pallas.register_lowering_rule: {_REMEDY}")
