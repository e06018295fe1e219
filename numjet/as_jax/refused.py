"""Names of JAX's experimental modules that numjet refuses: importing one is no error, using it is.

Named by the rows of namespaces.py, loaded when one of them is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class EArray:
    """Arrays of a dtype of the user's own. Raises NotImplementedError."""

    def __init__(self, aval: Any, data: Any) -> None:
        raise NotImplementedError(
            "EArray holds values of a dtype of the user's own, which numjet does not have. Define "
            "a type of values with jax.experimental.hijax."
        )


def primal_tangent_dtype(primal_dtype: Any, tangent_dtype: Any, name: str | None = None) -> Any:
    """Raises NotImplementedError: a dtype whose tangents have another."""
    raise NotImplementedError(
        "primal_tangent_dtype: dtypes of the user's own are not there. Use custom_vjp, whose rule "
        "may compute cotangents in any dtype."
    )


def fused(*, out_spaces: Any) -> Callable:
    """Raises NotImplementedError: one kernel over several memories of an accelerator."""
    raise NotImplementedError(
        "fused: programs run on the memory of the host alone, and jit fuses them. Use jax.jit."
    )


def get_profiled_instructions_proto(tensorboard_dir: str) -> bytes:
    """Raises NotImplementedError: XLA's own record of a recording."""
    raise NotImplementedError(
        "get_profiled_instructions_proto: recordings have no instructions of XLA. Read them with "
        "jax.profiler.ProfileData."
    )


_TRANSFER = (
    "servers that move arrays between programs are not there. Use jax.distributed.initialize, "
    "whose processes move arrays by collectives."
)


class TransferServer:
    """A server of arrays. Raises NotImplementedError."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError(f"TransferServer: {_TRANSFER}")


class TransferConnection:
    """A connection to a server of arrays. Raises NotImplementedError."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError(f"TransferConnection: {_TRANSFER}")


def start_transfer_server(*_: Any, **__: Any) -> Any:
    """Raises NotImplementedError: there are no servers of arrays."""
    raise NotImplementedError(f"start_transfer_server: {_TRANSFER}")


def make_error_array(aval: Any, message: str) -> Any:
    """Raises NotImplementedError: an array that raises where it is read."""
    raise NotImplementedError(
        "make_error_array: an array holds values, no error that is raised later. Raise it at once."
    )
