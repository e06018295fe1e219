"""Calls of the host in branches and rounds that only some devices of a map take.

Where the devices of a `shard_map` or `pmap` choose differently, all of them run every branch, and
go on with a loop until the last one stops; each keeps its own results. What they call on the host
is no result. `guarded` gives a body one more input, its first, that says whether the calls in it
happen. For the batch rules of `cond` and `while_loop`. What would break it: an operation that holds
a body under other params than those below; then it is refused if the body has input or output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.effects import HostEffect, refuse_io
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, eval_closed
from numjet.ops.callback import debug_callback_p, io_callback_p
from numjet.ops.logic import bitwise_and
from numjet.transforms.batch import Axis
from numjet.transforms.stage import stage_closed

_FLAG = ShapedArray((), dtypes.bool_)


def guards(axis: Axis, effects: Iterable[Any]) -> bool:
    """Whether members of `axis` are devices, of which each makes its own calls of the host, and
    `effects` hold one of such calls."""
    return axis.of_devices and _calls(effects)


def _calls(effects: Iterable[Any]) -> bool:
    return any(isinstance(e, HostEffect) for e in effects)


class _Asked:
    """A callback of one more argument, the first: without it the callback is not called, and its
    results are zeros."""

    __slots__ = ("callback", "avals")

    def __init__(self, callback: Callable, avals: Sequence[ShapedArray]) -> None:
        self.callback, self.avals = callback, avals

    def __call__(self, flag: ArrayImpl, *args: Any) -> list[Any]:
        if flag._value:
            return list(self.callback(*args))
        return [ArrayImpl(np.zeros(a.shape, dtypes.physical(a.dtype)), a) for a in self.avals]


def guarded(closed: ClosedJaxpr) -> ClosedJaxpr:
    """`closed` with one more input, the first, a boolean: without it nothing is called on the host.

    Remembered with the jaxpr. Raises NotImplementedError where an operation holds input or output
    that cannot be held back.
    """
    found = closed.cache.get("guarded")
    if found is None:

        def run(flag: Any, *args: Any) -> list[Any]:
            return _run(closed.jaxpr, closed.consts, flag, args)

        found = closed.cache["guarded"] = stage_closed(run, [_FLAG, *closed.in_avals])
    return found


def _while_asked(cond: ClosedJaxpr) -> ClosedJaxpr:
    """The condition of a loop, guarded: without the flag there is no round. What its body would
    be told by calls that do not happen need not end it."""
    found = cond.cache.get("while asked")
    if found is None:
        inner = guarded(cond)

        def run(flag: Any, *args: Any) -> list[Any]:
            return [bitwise_and(flag, *eval_closed(inner, flag, *args))]

        found = cond.cache["while asked"] = stage_closed(run, inner.in_avals)
    return found


def _run(jaxpr: Jaxpr, consts: Sequence[Any], flag: Any, args: Sequence[Any]) -> list[Any]:
    known: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    known.update(zip(jaxpr.invars, args, strict=True))

    def read(v: Any) -> Any:
        return v.value if type(v) is Literal else known[v]

    for eqn in jaxpr.eqns:
        values = [read(v) for v in eqn.invars]
        if _calls(eqn.effects):
            outs = _bind_guarded(eqn, flag, values)
        else:
            outs = eqn.primitive.bind(*values, **eqn.params)
            outs = outs if eqn.primitive.multiple_results else [outs]
        known.update(zip(eqn.outvars, outs, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _bind_guarded(eqn: Eqn, flag: Any, values: list[Any]) -> Sequence[Any]:
    primitive, params, name = eqn.primitive, eqn.params, eqn.primitive.name
    if primitive is debug_callback_p or primitive is io_callback_p:
        asked = _Asked(params["callback"], params["result_avals"])
        return primitive.bind(flag, *values, **{**params, "callback": asked})
    if name == "jit":
        return eval_closed(guarded(params["jaxpr"]), flag, *values)
    if name == "remat2":
        return primitive.bind(flag, *values, **{**params, "jaxpr": guarded(params["jaxpr"])})
    if name == "scan":
        inner = {"jaxpr": guarded(params["jaxpr"]), "num_consts": params["num_consts"] + 1}
        return primitive.bind(flag, *values, **{**params, **inner})
    if name == "cond":
        branches = tuple([guarded(b) for b in params["branches"]])
        return primitive.bind(values[0], flag, *values[1:], **{**params, "branches": branches})
    if name == "while" and not params["cond_jaxpr"].out_avals[0].shape:
        n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
        inner = {
            "cond_jaxpr": _while_asked(params["cond_jaxpr"]), "cond_nconsts": n_cond + 1,
            "body_jaxpr": guarded(params["body_jaxpr"]), "body_nconsts": n_body + 1,
        }  # fmt: skip
        operands = [flag, *values[:n_cond], flag, *values[n_cond:]]
        return primitive.bind(*operands, **{**params, **inner})
    refuse_io(
        eqn.effects,
        f"{name} within branches and loops of shard_map and pmap whose devices choose differently",
        "Call it outside of that.",
    )
    outs = primitive.bind(*values, **params)
    return outs if primitive.multiple_results else [outs]
