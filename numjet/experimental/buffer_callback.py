"""numjet.experimental.buffer_callback: Python functions that write their results into buffers.

For users. `api.callbacks` calls the function; here are the buffers that it is handed. What it
writes is copied when it returns, so that a buffer that it keeps is no result's memory.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from numjet.api.callbacks import io_callback, pure_callback
from numjet.api.flat import check_callable
from numjet.base import tree
from numjet.base.log import without_effect
from numjet.core.array import as_array

__all__ = [
    "Buffer",
    "ExecutionContext",
    "ExecutionStage",
    "buffer_callback",
]


class ExecutionStage(enum.Enum):
    """What a program does when it calls: here it always executes.

    >>> from numjet.experimental.buffer_callback import ExecutionStage
    >>> ExecutionStage.EXECUTE.value
    3
    """

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


class ExecutionContext:
    """What a callback is told of the call. Made by `buffer_callback` alone (TypeError)."""

    __slots__ = ()

    def __init__(self) -> None:
        raise TypeError("ExecutionContext: buffer_callback makes it, nobody else.")

    @property
    def stage(self) -> ExecutionStage:
        """`ExecutionStage.EXECUTE`."""
        return ExecutionStage.EXECUTE

    @property
    def stream(self) -> int:
        """Not there: raises NotImplementedError, as callbacks run on the CPU."""
        raise NotImplementedError(
            "ExecutionContext.stream: callbacks run on the CPU, which has no streams. Compute with "
            "NumPy."
        )


class Buffer:
    """Memory that a callback reads or, if it is `writeable`, writes, by way of `numpy.asarray` or
    DLPack. Made by `buffer_callback` alone (TypeError)."""

    __slots__ = ("_array", "_value")
    _array: Any  # an Array, which DLPack may hand on; None of a result's
    _value: np.ndarray

    def __init__(self) -> None:
        raise TypeError("Buffer: buffer_callback makes it, nobody else.")

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of its axes."""
        return self._value.shape

    @property
    def dtype(self) -> np.dtype:
        """What its elements are."""
        return self._value.dtype

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return self._value.ndim

    @property
    def writeable(self) -> bool:
        """Whether it is a result's."""
        return self._array is None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy or (dtype is not None and np.dtype(dtype) != self._value.dtype):
            return self._value.astype(dtype or self._value.dtype)
        return self._value

    def __dlpack__(self, **asked: Any) -> Any:
        return (self._value if self._array is None else self._array).__dlpack__(**asked)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def _buffer(value: np.ndarray, array: Any) -> Buffer:
    made = object.__new__(Buffer)
    made._value, made._array = value, array
    return made


def buffer_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: Mapping[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., Any]:
    """A function of pytrees of arrays that has `callback` write its results, whenever the program
    runs.

    callback: is called with an ExecutionContext, the results as a pytree of Buffers, which hold
    zeros, and the arguments with Buffers in place of arrays; it returns None. result_shape_dtypes:
    a pytree of objects with shape and dtype, the results. has_side_effect: whether it is called
    though nobody reads its results. vmap_method: as for `pure_callback`. input_output_aliases: by
    the number of an argument's leaf that of a result's, which then holds the argument at first;
    ValueError where their types differ. command_buffer_compatible: has no effect, which is
    logged once.

    An exception of the callback surfaces as JaxRuntimeError. Raises ValueError when it is
    differentiated, NotImplementedError under `vmap` without vmap_method. With has_side_effect
    `vmap` calls it once for each example.

    >>> import numpy as np
    >>> import numjet as nj
    >>> from numjet.experimental.buffer_callback import buffer_callback
    >>> def twice(ctx, out, x):
    ...     np.multiply(x, 2, out=np.asarray(out))
    >>> f = buffer_callback(twice, nj.ShapeDtypeStruct((3,), np.int32))
    >>> nj.jit(f)(nj.numpy.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    if command_buffer_compatible:
        without_effect("buffer_callback(command_buffer_compatible)", "it is for CUDA's graphs")
    check_callable("buffer_callback", callback)
    specs, out_tree = tree.tree_flatten(result_shape_dtypes)
    if not all(hasattr(spec, "shape") and hasattr(spec, "dtype") for spec in specs):
        raise TypeError(
            "buffer_callback: result_shape_dtypes must be a pytree of objects with shape and dtype,"
            f" such as numjet.ShapeDtypeStruct, got {result_shape_dtypes!r}."
        )
    aliases = dict(input_output_aliases or {})

    @functools.wraps(callback)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree.tree_map(as_array, (args, kwargs))
        leaves = tree.tree_leaves((args, kwargs))
        _check_aliases(aliases, leaves, specs)
        ranks = [x.ndim for x in leaves]

        @functools.wraps(callback)
        def write(args: tuple, kwargs: dict) -> Any:
            given, treedef = tree.tree_flatten((args, kwargs))
            # What `vmap` has put in front of the axes that were known.
            front = np.broadcast_shapes(
                *[x.shape[: x.ndim - n] for x, n in zip(given, ranks, strict=True)]
            )
            outs = [np.zeros((*front, *s.shape), s.dtype) for s in specs]
            for i, o in aliases.items():
                outs[o][...] = np.asarray(given[i])
            taken, named = treedef.unflatten([_buffer(np.asarray(x), x) for x in given])
            written = out_tree.unflatten([_buffer(out, None) for out in outs])
            context = object.__new__(ExecutionContext)
            if callback(context, written, *taken, **named) is not None:
                raise TypeError("buffer_callback: the callback has to return None, and to write "
                                "its results into the buffers.")
            return out_tree.unflatten(outs)

        if has_side_effect:
            return io_callback(write, result_shape_dtypes, args, kwargs)
        return pure_callback(write, result_shape_dtypes, args, kwargs, vmap_method=vmap_method)

    return call


def _check_aliases(aliases: Mapping[int, int], leaves: list, specs: list) -> None:
    for i, o in aliases.items():
        if not (0 <= i < len(leaves) and 0 <= o < len(specs)):
            raise ValueError(
                f"buffer_callback: input_output_aliases has {i}: {o}, of {len(leaves)} arrays that "
                f"are given and {len(specs)} results."
            )
        given, wanted = leaves[i].aval, specs[o]
        if given.shape != tuple(wanted.shape) or given.dtype != wanted.dtype:
            raise ValueError(
                f"buffer_callback: input_output_aliases has {i}: {o}, which have to be of one type,"
                f" got {given.str_short()} and {np.dtype(wanted.dtype)}{[*wanted.shape]}."
            )
