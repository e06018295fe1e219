"""numjet.ffi: JAX's calls of compiled functions by name, which are refused here.

A target is a function of XLA's binary interface, which takes XLA's own structures. Functions in
shared libraries are called with ctypes or cffi in `pure_callback`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

_REMEDY = (
    "it takes functions of XLA's binary interface, which numjet has not. Call a function of a "
    "shared library with ctypes in numjet.pure_callback; that works under jit and vmap."
)


def _refuse(name: str) -> Any:
    raise NotImplementedError(f"ffi.{name} is not there: {_REMEDY}")


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Any] | None = None,
    output_layouts: Any = None,
    input_output_aliases: dict[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """Not there: raises NotImplementedError. There are no targets of XLA's interface: call
    functions of shared libraries with ctypes in `pure_callback`.

    target_name, result_shape_dtypes, has_side_effect, vmap_method, input_layouts, output_layouts,
    input_output_aliases, custom_call_api_version, legacy_backend_config: what JAX's takes.

    >>> from numjet import ffi
    >>> ffi.ffi_call("f", None)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    return _refuse("ffi_call")


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Any:
    """Not there: raises NotImplementedError. There is no MLIR, and no target to lower to.

    call_target_name, operand_layouts, result_layouts, backend_config, skip_ffi_layout_processing,
    lowering_args: what JAX's takes.

    >>> from numjet import ffi
    >>> ffi.ffi_lowering("f")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    return _refuse("ffi_lowering")


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """Not there: raises NotImplementedError. There is no MLIR, and no target to lower to.

    call_target_name, operand_layouts, result_layouts, backend_config, skip_ffi_layout_processing,
    lowering_args: what JAX's takes.

    >>> from numjet import ffi
    >>> ffi.build_ffi_lowering_function("f")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    return _refuse("build_ffi_lowering_function")


def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any
) -> None:
    """Not there: raises NotImplementedError. Nothing could call the target.

    name, fn, platform, api_version, kwargs: what JAX's takes.

    >>> from numjet import ffi
    >>> ffi.register_ffi_target("f", None)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    _refuse("register_ffi_target")


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Not there: raises NotImplementedError. There are no targets.

    name: what JAX's takes.

    >>> from numjet import ffi
    >>> ffi.register_ffi_target_as_batch_partitionable("f")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    _refuse("register_ffi_target_as_batch_partitionable")


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> None:
    """Not there: raises NotImplementedError. There are no targets that could use the type.

    name, type_registration, platform: what JAX's takes.

    >>> from numjet import ffi
    >>> ffi.register_ffi_type("t", None)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    _refuse("register_ffi_type")


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Not there: raises NotImplementedError. There are no targets that could use the type.

    name, obj, platform: what JAX's takes.

    >>> from numjet import ffi
    >>> ffi.register_ffi_type_id("t", None)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    _refuse("register_ffi_type_id")


def pycapsule(funcptr: Any) -> Any:
    """Not there: raises NotImplementedError. Nothing here takes a function in a capsule.

    funcptr: what JAX's takes.

    >>> from numjet import ffi
    >>> ffi.pycapsule(None)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    return _refuse("pycapsule")


def include_dir() -> str:
    """Not there: raises NotImplementedError. There are no headers of XLA's.

    >>> from numjet import ffi
    >>> ffi.include_dir()  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    return _refuse("include_dir")


__all__ = [
    "build_ffi_lowering_function", "ffi_call", "ffi_lowering", "include_dir", "pycapsule",
    "register_ffi_target", "register_ffi_target_as_batch_partitionable", "register_ffi_type",
    "register_ffi_type_id",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__]
