"""Python functions called from traced and compiled code: `pure_callback`, `io_callback`,
`debug_callback`, `debug_print`, `effects_barrier`.

They flatten arguments and results; the primitives are in `ops.callback`. Callbacks receive Arrays
and run while the program waits, in the thread that called it.
"""

from __future__ import annotations

import functools
import logging
import string
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.api.flat import array_leaves, check_callable, name_of
from numjet.base import config, tree
from numjet.base.errors import JaxRuntimeError
from numjet.core import dtypes
from numjet.core.array import Array, ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.trace import EVAL, Tracer, current_trace
from numjet.ops.callback import VMAP_METHODS, debug_callback_p, io_callback_p, pure_callback_p
from numjet.ops.constraint import pending_axes, whole


def _result_avals(what: str, specs: Any) -> tuple[tuple[ShapedArray, ...], Any]:
    leaves, treedef = tree.tree_flatten(specs)
    avals = []
    for x in leaves:
        shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
        if shape is None or dtype is None:
            if isinstance(x, bool | int | float | complex):
                shape, dtype = (), dtypes.canonical(np.asarray(x).dtype)
            else:
                raise TypeError(
                    f"{what}: result_shape_dtypes must be a pytree of objects with shape and "
                    f"dtype, such as numjet.ShapeDtypeStruct, got {x!r}."
                )
        if dtypes.canonical(dtype) != dtype and np.dtype(dtype).itemsize >= 8:
            raise ValueError(
                f"{what}: result_shape_dtypes cannot specify 64-bit types when enable_x64 is "
                f"disabled, got {np.dtype(dtype)}."
            )
        avals.append(ShapedArray(tuple(shape), dtypes.canonical(dtype)))
    return tuple(avals), treedef


def _run(what: str, fun: Callable, args: Sequence[Any], kwargs: dict) -> Any:
    """`fun(*args, **kwargs)`. What it raises becomes a JaxRuntimeError that tells all of it
    and has it as its cause: libraries catch that type, and look for their own one's name."""
    try:
        return fun(*args, **kwargs)
    except Exception as error:
        first = error.__traceback__
        told = traceback.format_exception(type(error), error, first and first.tb_next)
        raise JaxRuntimeError(
            f"{what}: {name_of(fun)} raised an exception while the program ran.\n"
            + "".join(told).rstrip()
        ) from error


def _flat_callback(what: str, fun: Callable, in_tree: Any, out_tree: Any) -> Callable:
    """`fun` from flat arrays to the flat leaves of its result."""

    def flat(*leaves: Any) -> list[Any]:
        args, kwargs = tree.tree_unflatten(in_tree, leaves)
        result = _run(what, fun, args, kwargs)
        if out_tree.num_leaves == 0:
            return []  # whatever it returns
        outs, found = tree.tree_flatten(result)
        if found.num_leaves != out_tree.num_leaves:
            raise JaxRuntimeError(
                f"{what}: Mismatched number of outputs from callback {name_of(fun)}. Expected: "
                f"{out_tree.num_leaves}, Actual: {found.num_leaves}. "
                + tree.structure_difference("result_shape_dtypes", out_tree, "the result", found)
            )
        return outs

    if config.jax_form():
        flat.told = f"_FlatCallback(callback_func={fun}, in_tree={in_tree})"  # type: ignore[attr-defined]
    return flat


def _check_whole(what: str, leaves: Sequence[Any]) -> None:
    """Raise ValueError where an argument is a part of a sum inside of `shard_map`."""
    for x in leaves:
        if isinstance(x, Tracer) and x.aval.placed is not None:
            whole(x, pending_axes(x), what)


def pure_callback(
    callback: Callable,
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    vectorized: Any = None,
    **kwargs: Any,
) -> Any:
    """`callback(*args, **kwargs)`, run by Python whenever the program runs.

    callback: takes Arrays and returns a pytree of arrays; it must be free of side effects, since it
    may be left out, or run twice. result_shape_dtypes: a pytree of objects with shape and dtype,
    what it returns. args, kwargs: pytrees of arrays. vmap_method: how `vmap` calls it: "sequential"
    once an example, "expand_dims" with a leading axis of size 1 on arguments that are not mapped,
    "broadcast_all" with the batch axis on all arguments, "legacy_vectorized". sharding: the device
    that it runs for. vectorized: the old form of vmap_method.

    An exception of the callback surfaces as JaxRuntimeError, a result of another shape as
    ValueError. Raises ValueError when it is differentiated (give it a rule with `custom_jvp`),
    NotImplementedError under `vmap` without vmap_method.

    >>> import numpy as np
    >>> import numjet as nj
    >>> f = lambda x: nj.pure_callback(np.sinc, nj.ShapeDtypeStruct((), np.float32), x)
    >>> print(nj.jit(f)(0.0))
    1.0
    """
    del sharding
    check_callable("pure_callback", callback)
    if vectorized is not None:
        raise TypeError(
            "pure_callback: the argument vectorized is gone. Use vmap_method='sequential' for "
            "vectorized=False and vmap_method='expand_dims' for vectorized=True."
        )
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ValueError(
            "vmap_method must be one of the allowed methods "
            f"{[*VMAP_METHODS, None]}, but got: {vmap_method} (pure_callback)."
        )
    avals, out_tree = _result_avals("pure_callback", result_shape_dtypes)
    leaves, in_tree = array_leaves("pure_callback", (args, kwargs))
    _check_whole("pure_callback", leaves)
    outs = pure_callback_p.bind(
        *leaves,
        callback=_flat_callback("pure_callback", callback, in_tree, out_tree),
        result_avals=avals,
        vmap_method=vmap_method,
    )
    return tree.tree_unflatten(out_tree, outs)


def io_callback(
    callback: Callable,
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """`callback(*args, **kwargs)`, run by Python exactly once each time the program reaches it.

    callback: takes Arrays and returns a pytree of arrays; it may have side effects.
    result_shape_dtypes: a pytree of objects with shape and dtype, what it returns; None for
    nothing. args, kwargs: pytrees of arrays. sharding: the device that it runs for. ordered:
    forbids `vmap`; calls keep the order of the program in any case. Under `vmap` it runs once an
    example. Unlike `pure_callback` it is never left out. Raises ValueError when it is
    differentiated.

    >>> import numjet as nj
    >>> from numjet.experimental import io_callback
    >>> seen = []
    >>> nj.jit(lambda x: io_callback(lambda v: seen.append(int(v)), None, x))(5)
    >>> seen
    [5]
    """
    del sharding
    check_callable("io_callback", callback)
    avals, out_tree = _result_avals("io_callback", result_shape_dtypes)
    leaves, in_tree = array_leaves("io_callback", (args, kwargs))
    _check_whole("io_callback", leaves)
    outs = io_callback_p.bind(
        *leaves,
        callback=_flat_callback("io_callback", callback, in_tree, out_tree),
        result_avals=avals,
        ordered=bool(ordered),
    )
    return tree.tree_unflatten(out_tree, outs)


def debug_callback(
    callback: Callable | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Call `callback(*args, **kwargs)` for its side effects whenever the program runs.

    callback: its result is ignored; without it, the result is a decorator. args, kwargs: arrays
    and numbers arrive as Arrays, everything else as it is. ordered: calls keep the order of the
    program (they do in any case). partitioned changes nothing: an array is one block. Under `vmap`
    it runs once an example; under differentiation it sees primal values; under `checkpoint` it runs
    again when values are recomputed.

    >>> import numjet as nj
    >>> from numjet import debug
    >>> seen = []
    >>> _ = nj.jit(lambda x: debug.callback(lambda v: seen.append(float(v)), x))(2.0)
    >>> seen
    [2.0]
    """
    if callback is None:
        return lambda function: functools.partial(
            debug_callback, function, ordered=ordered, partitioned=partitioned
        )
    check_callable("debug.callback", callback)
    leaves, in_tree = tree.tree_flatten((args, kwargs))
    values = Array | np.ndarray | np.generic | int | float | complex
    dynamic = [isinstance(x, values) for x in leaves]
    static = [None if d else x for x, d in zip(leaves, dynamic, strict=True)]
    arrays, _ = array_leaves(
        "debug.callback", [x for x, d in zip(leaves, dynamic, strict=True) if d]
    )

    def flat(*values: Any) -> list[Any]:
        given = iter(arrays if direct else values)  # the arrays themselves are weak where they were
        filled = [next(given) if d else x for x, d in zip(static, dynamic, strict=True)]
        inner_args, inner_kwargs = tree.tree_unflatten(in_tree, filled)
        if direct:
            callback(*inner_args, **inner_kwargs)
        else:
            _run("debug.callback", callback, inner_args, inner_kwargs)
        return []

    if config.jax_form():
        flat.told = getattr(callback, "told", None)  # type: ignore[attr-defined]
    # Called at once it is a plain call, whose exceptions are the caller's.
    direct = current_trace() is EVAL
    debug_callback_p.bind(*arrays, callback=flat, result_avals=(), ordered=bool(ordered))


class _Check(string.Formatter):
    """Refuses a format string that leaves arguments unused."""

    def check_unused_args(self, used_args: Any, args: Sequence[Any], kwargs: Any) -> None:
        places = [str(i) for i in range(len(args)) if i not in used_args]
        names = [repr(name) for name in kwargs if name not in used_args]
        for kind, unused in (("positional", places), ("keyword", names)):
            if unused:
                raise ValueError(
                    f"Unused {kind} arguments to `jax.debug.print`: {', '.join(unused)}. Write "
                    "{} or {name} for each. You may be passing an f-string (i.e, "
                    '`jax.debug.print(f"{x}")`), which shows a traced value.'
                )

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""  # values are not known yet: only names and positions are checked

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Any) -> Any:
        first, _ = string._string.formatter_field_name_split(field_name)  # type: ignore[attr-defined]
        return self.get_value(first, args, kwargs), first


_CHECK = _Check()
_LOG = logging.getLogger("numjet.debug")


def _strong(x: Any) -> Any:
    return ArrayImpl(x._value, x.aval.strong()) if type(x) is ArrayImpl else x


def debug_print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: Any,
) -> Any:
    """Print `fmt.format(*args, **kwargs)` when the program runs, with the values of traced arrays.

    fmt: a format string; without it, the result is a decorator that prints the arguments of a
    function's calls, its result being the format string. args, kwargs: what is printed. ordered:
    lines keep the order of the program (they do in any case). partitioned changes nothing.
    skip_format_check: do not look for arguments that fmt leaves out. Works under `jit`, `vmap`
    (once an example), `grad` and in loops. Raises ValueError for arguments that the format string
    does not use.

    >>> import numjet as nj
    >>> @nj.jit
    ... def f(x):
    ...     nj.debug.print("x is {x:.1f}", x=x)
    ...     return x + 1
    >>> _ = f(2.0)
    x is 2.0
    """
    if fmt is None:
        return lambda function: functools.wraps(function)(
            lambda *values, **named: debug_print(
                function(*values, **named),
                *values,
                ordered=ordered,
                partitioned=partitioned,
                skip_format_check=True,
                _use_logging=_use_logging,
                **named,
            )
        )
    if not skip_format_check:
        _CHECK.vformat(fmt, args, kwargs)

    # A format is one with values in it by its first field, or by text without braces before it.
    first = next(iter(string.Formatter().parse(fmt)), None)
    fields = first is not None and first[1] is not None
    staged = current_trace().staging is not None  # then values have no weak types any more

    def show(*values: Any, **named: Any) -> None:
        if staged:
            values, named = tree.tree_map(_strong, (values, named))
        if fields:
            text = fmt.format(*values, **named)
        elif named:
            raise AssertionError("Format without placeholders should not have kwargs.")
        else:
            text = " ".join([fmt, *map(str, values)])
        _LOG.info(text) if _use_logging else print(text)

    if config.jax_form():
        leaves, in_tree = tree.tree_flatten((args, kwargs))
        numbers = Array | np.ndarray | np.generic | int | float | complex
        still = [(i, x) for i, x in enumerate(leaves) if not isinstance(x, numbers)]
        show.told = {  # type: ignore[attr-defined]
            "fmt": fmt, "has_placeholders": fields, "in_tree": in_tree, "logging_record": None,
            "np_printoptions": tuple(np.get_printoptions().items()), "ordered": bool(ordered),
            "partitioned": bool(partitioned), "static_args": tuple(still),
        }  # fmt: skip
    debug_callback(show, *args, ordered=ordered, partitioned=partitioned, **kwargs)


def effects_barrier() -> None:
    """Wait for the side effects (callbacks, `debug.print`) of programs that have started.

    >>> import numjet as nj
    >>> nj.jit(lambda x: nj.debug.print("{}", x))(1)
    1
    >>> nj.effects_barrier()
    """
