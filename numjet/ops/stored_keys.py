"""Programs on what their values are stored as: PRNG keys of other implementations than threefry as
the uint32 array of their words.

For compilers, which have no such keys: `Storage().rewritten` writes a program anew. The words lie
along the last axis: what moves keys moves them as `vmap` over that axis does. Functions of Python
see arrays of the dtypes they were written for. A subclass stores other dtypes in ways of its own
(`cpu.graph.storage`). What would break it: a primitive whose batch rule is not that of its
elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.base.errors import InternalError
from numjet.core import dtypes
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.dtypes import uint32
from numjet.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var, subjaxprs
from numjet.core.lowering import Expand, Region
from numjet.core.structural import broadcast_in_dim, moveaxis
from numjet.core.trace import set_trace
from numjet.ops.reduce import reduce_and_p, reduce_or_p
from numjet.ops.shape import reshape
from numjet.transforms.batch import Axis
from numjet.transforms.stage import StageTrace, stage_expansion, with_jaxprs

# What makes keys of words, and words of keys.
_WORDS = ("random_wrap_words", "random_unwrap_words")


def has_words(aval: Any) -> bool:
    """Whether an aval is one of keys that are stored as plain bytes."""
    return type(aval.dtype) is dtypes.KeyDType and aval.dtype is not dtypes.key_dtype


def uses_words(jaxpr: Jaxpr) -> bool:
    """Whether there are such keys in a program."""
    if any([has_words(v.aval) for v in (*jaxpr.constvars, *jaxpr.invars)]):
        return True
    return any([
        any([has_words(v.aval) for v in eqn.outvars])
        or eqn.primitive.name in _WORDS
        or any([uses_words(inner) for inner in subjaxprs(eqn.params)])
        for eqn in jaxpr.eqns
    ])  # fmt: skip


def viewed(x: np.ndarray, aval: Any) -> np.ndarray:
    """The same bytes, as an array of `aval`."""
    flat = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
    return flat.view(dtypes.physical(aval.dtype)).reshape(aval.shape)


class Storage:
    """How values are stored, and programs written anew for that."""

    def aval(self, aval: Any) -> Any:
        """What holds values of `aval`; `aval` itself where nothing changes."""
        if has_words(aval):
            return ShapedArray((*aval.shape, aval.dtype.itemsize // 4), uint32)
        return aval

    def other(
        self, trace: StageTrace, eqn: Any, values: list, avals: list, results: list
    ) -> list:
        """The results of an operation that has to do with no keys."""
        return self.record(trace, eqn, values, eqn.params)

    def rewritten(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        """`closed` on what values are stored as, its operands and results too."""
        trace = StageTrace("storage")
        with set_trace(trace):
            args = [trace.new_arg(self.aval(v.aval)) for v in closed.jaxpr.invars]
            consts = [self.value(x) for x in closed.consts]
            outs = self._run(trace, closed.jaxpr, consts, args)
            jaxpr, held = trace.finish(outs)
        return ClosedJaxpr(jaxpr, held)

    def value(self, x: Any) -> Any:
        """A constant, as what holds it in the rewritten program."""
        aval = x.aval if hasattr(x, "aval") else ShapedArray(np.shape(x), x.dtype)
        stored = self.aval(aval)
        if stored is aval:
            return x
        return ArrayImpl(viewed(np.asarray(getattr(x, "_value", x)), stored), stored)

    def record(self, trace: StageTrace, eqn: Any, values: list, params: dict) -> list:
        """An equation of these params, on values as they are stored."""
        if "callback" in params and "result_avals" in params:
            avals, results = [v.aval for v in eqn.invars], eqn.params["result_avals"]
            if any([self.aval(a) is not a for a in (*avals, *results)]):
                params = {**params, "result_avals": tuple([self.aval(a) for a in results]),
                          "callback": _Called(self, params["callback"], avals, results)}
        found = trace.record(eqn.primitive, values, params)
        return found if eqn.primitive.multiple_results else [found]

    def _run(
        self, trace: StageTrace, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]
    ) -> list[Any]:
        env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
        env.update(zip(jaxpr.invars, args, strict=True))

        def read(atom: Any) -> Any:
            return self.value(atom.value) if type(atom) is Literal else env[atom]

        for eqn in jaxpr.eqns:
            values = [read(v) for v in eqn.invars]
            trace.source = eqn.source
            avals = [v.aval for v in eqn.invars]
            results = [v.aval for v in eqn.outvars]
            if type(eqn.primitive.loops) is Region or "callback" in eqn.params:
                params = {name: with_jaxprs(p, self.rewritten) for name, p in eqn.params.items()}
                outs = self.record(trace, eqn, values, params)
            elif any([has_words(a) for a in (*avals, *results)]):
                if type(eqn.primitive.loops) is Expand and eqn.primitive.name not in _WORDS:
                    # What it is made of draws from keys.
                    closed = stage_expansion(eqn.primitive.loops, eqn.params, tuple(avals))
                    held = [self.value(x) for x in closed.consts]
                    outs = self._run(trace, closed.jaxpr, held, values)
                else:
                    outs = self._of_words(eqn, values, avals, results)
            else:
                outs = self.other(trace, eqn, values, avals, results)
            env.update(zip(eqn.outvars, outs, strict=True))
        trace.source = None
        return [read(v) for v in jaxpr.outvars]

    def _of_words(self, eqn: Any, values: list, avals: list, results: list) -> list:
        """An operation on keys, on their words."""
        name, params = eqn.primitive.name, eqn.params
        if name == "random_wrap_words":
            return [reshape(values[0], self.aval(results[0]).shape)]
        if name == "random_unwrap_words":
            return [reshape(values[0], results[0].shape)]
        if name == "convert_element_type":
            return values
        words = next(a.dtype.itemsize // 4 for a in (*avals, *results) if has_words(a))
        dims = [a.ndim if has_words(a) else None for a in avals]
        found, at = eqn.primitive.batch(Axis(words), tuple(values), tuple(dims), **params)
        if not eqn.primitive.multiple_results:
            found, at = [found], [at]
        return [_last(name, x, d, a, words) for x, d, a in zip(found, at, results, strict=True)]


class _Called:
    """A function of Python, on what its arrays are stored as."""

    def __init__(
        self, storage: Storage, function: Any, avals: Sequence[Any], results: Sequence[Any]
    ) -> None:
        self.storage, self.function, self.avals, self.results = storage, function, avals, results

    def __call__(self, *args: Any) -> list:
        given = [
            x if self.storage.aval(a) is a else ArrayImpl(viewed(np.asarray(x), a), a)
            for x, a in zip(args, self.avals, strict=True)
        ]
        outs = self.function(*given)
        return [self._given(y, a) for y, a in zip(outs, self.results, strict=True)]

    def _given(self, value: Any, aval: Any) -> Any:
        stored = self.storage.aval(aval)
        if stored is aval:
            return value
        found = np.asarray(getattr(value, "_value", value)).astype(dtypes.physical(aval.dtype))
        return viewed(found, stored)


def _last(name: str, x: Any, at: int | None, aval: Any, words: int) -> Any:
    """A result with the axis of the words, which lies `at`, as its last."""
    if at is not None:
        x = moveaxis(x, at, aval.ndim)
    if has_words(aval):
        if at is None:
            x = broadcast_in_dim(x, (*aval.shape, words), tuple(range(aval.ndim)))
        return x
    if at is None:
        return x
    if name not in ("eq", "ne"):
        raise InternalError(f"{name} of keys has no meaning for their words.")
    return (reduce_and_p if name == "eq" else reduce_or_p).bind(x, axes=(aval.ndim,))
