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
    """Raises NotImplementedError: there are no targets of XLA's interface."""
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
    """Raises NotImplementedError: there is no MLIR, and no target to lower to."""
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
    """Raises NotImplementedError: there is no MLIR, and no target to lower to."""
    return _refuse("build_ffi_lowering_function")


def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any
) -> None:
    """Raises NotImplementedError: nothing could call the target."""
    _refuse("register_ffi_target")


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Raises NotImplementedError: there are no targets."""
    _refuse("register_ffi_target_as_batch_partitionable")


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> None:
    """Raises NotImplementedError: there are no targets that could use the type."""
    _refuse("register_ffi_type")


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Raises NotImplementedError: there are no targets that could use the type."""
    _refuse("register_ffi_type_id")


def pycapsule(funcptr: Any) -> Any:
    """Raises NotImplementedError: nothing here takes a function in a capsule."""
    return _refuse("pycapsule")


def include_dir() -> str:
    """Raises NotImplementedError: there are no headers of XLA's."""
    return _refuse("include_dir")
