"""Functions on MLIR modules. There are none of these: each raises NotImplementedError."""

from __future__ import annotations

from typing import Any

from numjet.extend.primitive import NO_MLIR, NeedsMLIR


def _refuse(name: str) -> Any:
    raise NeedsMLIR(f"extend.mlir.{name} works on an MLIR module. {NO_MLIR}")


def deserialize_portable_artifact(*_: Any, **__: Any) -> Any:
    """Not there: programs have no MLIR form. Raises NotImplementedError.

    >>> from numjet.extend import mlir
    >>> mlir.deserialize_portable_artifact(b"")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NeedsMLIR: ...
    """
    return _refuse("deserialize_portable_artifact")


def serialize_portable_artifact(*_: Any, **__: Any) -> Any:
    """Not there: programs have no MLIR form. Raises NotImplementedError.

    >>> from numjet.extend import mlir
    >>> mlir.serialize_portable_artifact(None)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NeedsMLIR: ...
    """
    return _refuse("serialize_portable_artifact")


def hlo_to_stablehlo(*_: Any, **__: Any) -> Any:
    """Not there: programs have no MLIR form. Raises NotImplementedError.

    >>> from numjet.extend import mlir
    >>> mlir.hlo_to_stablehlo(b"")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NeedsMLIR: ...
    """
    return _refuse("hlo_to_stablehlo")


def refine_polymorphic_shapes(*_: Any, **__: Any) -> Any:
    """Not there: programs have no MLIR form. Raises NotImplementedError.

    >>> from numjet.extend import mlir
    >>> mlir.refine_polymorphic_shapes(None)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NeedsMLIR: ...
    """
    return _refuse("refine_polymorphic_shapes")


def lower_with_sharding_in_types(ctx: Any, op: Any, aval: Any) -> Any:
    """Not there: programs have no MLIR form. Raises NotImplementedError for every ctx, op and aval.

    >>> from numjet.extend import mlir
    >>> mlir.lower_with_sharding_in_types(None, None, None)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NeedsMLIR: ...
    """
    return _refuse("lower_with_sharding_in_types")
