"""Calls of Python functions on the host: `pure_callback`, `io_callback` and `debug_callback`.

The param `callback` is flat: `callback(*arrays) -> list of values`, one for each of `result_avals`.
Eager code and compiled programs (also inside loops and branches) call it with concrete Arrays;
its exceptions surface at the caller. `api.callbacks` holds the public functions. What would break
it: a callback that keeps state between calls and is passed to `pure_callback`, since equations
without effects may be dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.base.config import numeric_checks
from numjet.base.errors import JaxRuntimeError
from numjet.core import dtypes, hooks
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.effects import DEBUG, IO, ORDERED_DEBUG, ORDERED_IO
from numjet.core.evaluate import check_finite
from numjet.core.lowering import Host
from numjet.core.primitive import Primitive
from numjet.core.structural import broadcast_in_dim, moveaxis
from numjet.core.trace import EVAL, set_trace
from numjet.transforms.batch import Axis, mapped_to_front, to_front

VMAP_METHODS = (
    "sequential",
    "sequential_unrolled",
    "expand_dims",
    "broadcast_all",
    "legacy_vectorized",
)


def _abstract(*avals: ShapedArray, result_avals: tuple, **_: Any) -> list[ShapedArray]:
    return list(result_avals)


def _evaluate(*args: Any, callback: Callable, result_avals: tuple, **_: Any) -> list[Any]:
    with set_trace(EVAL):
        outs = callback(*map(_strong, args))
    found = [_result(i, x, a) for i, (x, a) in enumerate(zip(outs, result_avals, strict=True))]
    return checked("callback", found) if numeric_checks[0] else found


def checked(name: str, found: list[ArrayImpl]) -> list[Any]:
    """Results of a function outside, looked at as those of operations are."""
    for x in found:
        check_finite(name, x._value)
    return [*map(hooks.computed_here, found)]


def _strong(x: ArrayImpl) -> ArrayImpl:
    """What a callback is handed: an array whose dtype counts."""
    return ArrayImpl(x._value, x.aval.strong()) if x.aval.weak_type else x


def _result(i: int, value: Any, aval: ShapedArray) -> ArrayImpl:
    """`value` as an Array of `aval`. A copy, unless it is immutable already."""
    if isinstance(value, ArrayImpl) and value.aval.dtype == aval.dtype:
        found = value._value
    elif dtypes.is_key(aval.dtype):
        raise TypeError(
            f"callback: result {i} must be an array of PRNG keys ({aval.str_short()}), got "
            f"{type(value).__name__}."
        )
    else:
        found = np.asarray(value)
        given = found.dtype if found.dtype == aval.dtype else dtypes.canonical(found.dtype)
        if given != aval.dtype:
            raise JaxRuntimeError(
                f"Incorrect output dtype for return value #{i} of a callback: Expected: "
                f"{aval.dtype}, Actual: {given}. Convert it in the callback, or correct "
                "result_shape_dtypes."
            )
        if found.shape == aval.shape:
            found = np.array(found, dtype=aval.dtype, order="C", copy=True)
    if found.shape != aval.shape:
        raise JaxRuntimeError(
            f"Incorrect output shape for return value #{i} of a callback: Expected: {aval.shape}, "
            f"Actual: {found.shape}. Reshape it in the callback, or correct result_shape_dtypes."
        )
    return ArrayImpl(found, aval)


def _one_by_one(
    callback: Callable, mapped: tuple[bool, ...], size: int, avals: tuple[ShapedArray, ...]
) -> Callable:
    """`callback` for each example along the leading axis of mapped arguments, in order; results
    (of `avals` each) are stacked."""

    def looped(*args: Any) -> list[Any]:
        rows = []
        for k in range(size):
            example = [
                ArrayImpl(x._value[k, ...], x.aval.update(shape=x.aval.shape[1:])) if m else x
                for x, m in zip(args, mapped, strict=True)
            ]
            rows.append(
                [
                    _result(i, y, a)._value
                    for i, (y, a) in enumerate(zip(callback(*example), avals, strict=True))
                ]
            )
        out = []
        for i, aval in enumerate(avals):
            whole = np.empty((size, *aval.shape), dtypes.physical(aval.dtype))
            for k in range(size):
                whole[k] = rows[k][i]
            out.append(ArrayImpl(whole, aval.update(shape=whole.shape)))
        return out

    return looped


def _batch_looped(primitive: Primitive, axis: Axis, args: tuple, dims: tuple, params: dict) -> Any:
    values = mapped_to_front(args, dims)
    avals = params["result_avals"]
    callback = _one_by_one(
        params["callback"], tuple([d is not None for d in dims]), axis.size, avals
    )
    outs = primitive.bind(*values, **{**params, "callback": callback, "result_avals": tuple(
        [a.update(shape=(axis.size, *a.shape)) for a in avals]
    )})
    return outs, [0] * len(outs)


def by_method(x: Any, dim: int | None, size: int, method: str) -> tuple[Any, bool]:
    """An operand as one of the methods wants it that call once for all examples, and whether it has
    an axis for them, the first."""
    if dim is not None or method == "broadcast_all":
        return to_front(x, dim, size), True
    if method != "expand_dims":
        return x, False
    shape = x.aval.shape
    return broadcast_in_dim(x, (1, *shape), tuple(range(1, 1 + len(shape)))), True


# ------------------------------------------------------------------ pure_callback
def _pure_batch(axis: Axis, args: tuple, dims: tuple, **params: Any) -> tuple:
    method = "sequential" if axis.of_devices else params["vmap_method"]
    if method is None:
        raise NotImplementedError(
            "vmap is only supported for the pure_callback primitive when vmap_method is one of "
            f"{', '.join(map(repr, VMAP_METHODS))}. Got vmap_method=None. Pass "
            "pure_callback(..., vmap_method='sequential') to call it once an example, or "
            "'expand_dims' or 'broadcast_all' when it takes arrays with leading batch axes."
        )
    if method.startswith("sequential"):
        return _batch_looped(pure_callback_p, axis, args, dims, params)
    values = [by_method(x, d, axis.size, method)[0] for x, d in zip(args, dims, strict=True)]
    avals = tuple([a.update(shape=(axis.size, *a.shape)) for a in params["result_avals"]])
    outs = pure_callback_p.bind(*values, **{**params, "result_avals": avals})
    return outs, [0] * len(outs)


def _no_derivative(what: str) -> Callable:
    def jvp(primals: tuple, tangents: tuple, **_: Any) -> tuple:
        raise ValueError(
            f"{what} do not support JVP. Please use `jax.custom_jvp` to use callbacks while taking "
            "gradients. The derivative of a Python function is not known. A custom_vjp rule will "
            "do, too, and so does lax.stop_gradient around the arguments."
        )

    return jvp


pure_callback_p = Primitive(
    "pure_callback",
    multiple_results=True,
    higher_order=True,
    abstract=_abstract,
    evaluate=_evaluate,
    jvp=_no_derivative("Pure callbacks"),
    batch=_pure_batch,
    loops=Host(),
)


# ------------------------------------------------------------------ io_callback and debug_callback
def _io_batch(axis: Axis, args: tuple, dims: tuple, **params: Any) -> tuple:
    if params["ordered"] and not axis.of_devices:
        raise ValueError(
            "Cannot `vmap` ordered IO callback: examples have no order among each other. Pass "
            "ordered=False, or use lax.map."
        )
    return _batch_looped(io_callback_p, axis, args, dims, params)


def _no_transpose(cts: list, *args: Any, **_: Any) -> list:
    raise ValueError(
        "IO callbacks do not support transpose. What a Python function does is not linear; call it "
        "outside of the function that is transposed."
    )


io_callback_p = Primitive(
    "io_callback",
    multiple_results=True,
    higher_order=True,
    abstract=_abstract,
    evaluate=_evaluate,
    jvp=_no_derivative("IO callbacks"),
    transpose=_no_transpose,
    batch=_io_batch,
    loops=Host(),
    effects=lambda *, ordered, **_: frozenset([ORDERED_IO if ordered else IO]),
)

class _Rounds:
    """A callback without results for each example of one or several maps, in the order of the
    `loops`: (which arguments are mapped, the size) of each, of which the first turns slowest. The
    axes of an argument that are mapped stand in front, in the order of the loops."""

    __slots__ = ("callback", "loops")

    def __init__(self, callback: Callable, loops: tuple) -> None:
        self.callback, self.loops = callback, loops

    def __call__(self, *args: Any) -> list[Any]:
        return self._run(args, self.loops)

    def _run(self, args: tuple, loops: tuple) -> list[Any]:
        if not loops:
            return list(self.callback(*args))
        (mapped, size), *rest = loops
        for k in range(size):
            example = [
                ArrayImpl(x._value[k, ...], x.aval.row()) if m else x
                for x, m in zip(args, mapped, strict=True)
            ]
            self._run(tuple(example), tuple(rest))
        return []


def _debug_batch(axis: Axis, args: tuple, dims: tuple, **params: Any) -> tuple:
    # As in JAX the innermost map, which comes first, turns slowest.
    callback = params["callback"]
    base, loops = (
        (callback.callback, callback.loops) if type(callback) is _Rounds else (callback, ())
    )
    values = [
        x if d is None else moveaxis(x, d, sum([mapped[i] for mapped, _ in loops]))
        for i, (x, d) in enumerate(zip(args, dims, strict=True))
    ]
    mapped = tuple([d is not None for d in dims])
    rounds = _Rounds(base, (*loops, (mapped, axis.size)))
    return debug_callback_p.bind(*values, **{**params, "callback": rounds}), []


debug_callback_p = Primitive(
    "debug_callback",
    multiple_results=True,
    higher_order=True,
    abstract=_abstract,
    evaluate=_evaluate,
    differentiable=False,  # it sees primals and has no results
    batch=_debug_batch,
    loops=Host(),
    effects=lambda *, ordered, **_: frozenset([ORDERED_DEBUG if ordered else DEBUG]),
)
