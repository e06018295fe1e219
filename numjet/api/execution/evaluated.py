"""Programs where memory may not become code: each operation is evaluated by NumPy, loops by Python.

For `dispatch` alone, in place of a compiled executable, with the same calls. Results are what eager
code gives; it is slower, and a warning says so once. What would break it: a loop primitive that is
not named in `_LOOPS`, whose evaluation asks for a compiled program again.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.core.array import ArrayImpl, as_array
from numjet.core.dtypes import physical
from numjet.core.jaxpr import ClosedJaxpr, Literal, eval_closed
from numjet.core.trace import EVAL, set_trace

_told: list[bool] = []


class Evaluated:
    """`closed` as an executable: called with arrays in order, it returns fresh arrays in order."""

    host_calls = ("every operation",)

    def __init__(self, closed: ClosedJaxpr, reason: str) -> None:
        self.closed, self.measured = closed, math.inf
        if not _told:
            _told.append(True)
            warnings.warn(
                f"numjet cannot run compiled code: {reason} Functions are evaluated operation by "
                "operation from now on, which is slower.",
                RuntimeWarning,
                stacklevel=2,
            )

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        jaxpr = self.closed.jaxpr
        values = [
            ArrayImpl(array, var.aval) for array, var in zip(arrays, jaxpr.invars, strict=True)
        ]
        with set_trace(EVAL):
            eqn = jaxpr.eqns[0] if len(jaxpr.eqns) == 1 else None
            if eqn is not None and eqn.primitive.name in _LOOPS:
                known: dict[Any, Any] = dict(zip(jaxpr.constvars, self.closed.consts, strict=True))
                known.update(zip(jaxpr.invars, values, strict=True))

                def value_of(atom: Any) -> Any:
                    return atom.value if type(atom) is Literal else known[atom]

                made = _LOOPS[eqn.primitive.name]([*map(value_of, eqn.invars)], eqn.params)
                known.update(zip(eqn.outvars, made, strict=True))
                outs = [value_of(v) for v in jaxpr.outvars]
            else:
                outs = eval_closed(self.closed, *values)
        # Nobody else sees the memory of results.
        return [np.array(as_array(x)._value) for x in outs]

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(
            f"{name}: nothing was compiled, since memory may not become code here."
        )


def _while(args: list, params: dict) -> list:
    nc, nb = params["cond_nconsts"], params["body_nconsts"]
    for_cond, for_body, carry = args[:nc], args[nc : nc + nb], args[nc + nb :]
    while bool(eval_closed(params["cond_jaxpr"], *for_cond, *carry)[0]):
        carry = eval_closed(params["body_jaxpr"], *for_body, *carry)
    return carry


def _scan(args: list, params: dict) -> list:
    n, m = params["num_consts"], params["num_carry"]
    consts, carry, xs = args[:n], args[n : n + m], args[n + m :]
    length, body = params["length"], params["jaxpr"]
    rows: list[list[Any]] = [[None] * length for _ in body.out_avals[m:]]
    for k in reversed(range(length)) if params["reverse"] else range(length):
        at = [
            ArrayImpl(x._value[k], aval)
            for x, aval in zip(xs, body.in_avals[n + m :], strict=True)
        ]
        outs = eval_closed(body, *consts, *carry, *at)
        carry = outs[:m]
        for row, y in zip(rows, outs[m:], strict=True):
            row[k] = as_array(y)._value
    stacked = []
    for row, aval in zip(rows, body.out_avals[m:], strict=True):
        whole = aval.update(shape=(length, *aval.shape))
        value = np.stack(row) if row else np.zeros(whole.shape, physical(aval.dtype))
        stacked.append(ArrayImpl(value, whole))
    return [*carry, *stacked]


_LOOPS: dict[str, Callable[[list, dict], list]] = {"while": _while, "scan": _scan}
__all__ = ["Evaluated"]
