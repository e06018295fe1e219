"""What can fail in a checked program: the sites, the primitive behind `check`, and their messages.

A site is one place of a program that may report an error; it knows which arrays it reports (its
payload) and how to tell the error from them. `rewrite.py` finds the sites of a jaxpr and makes the
program that reports them; `check_p` is the operation that `check` leaves in a program until then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numjet.base import tree
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.effects import HostEffect
from numjet.core.lowering import Expand
from numjet.core.primitive import Primitive
from numjet.lax import dynamic_index_in_dim
from numjet.numpy import any as jnp_any, arange, argmax, where


class JaxRuntimeError(ValueError):
    """A check failed; the message is the check's."""


class FailedCheckError(JaxRuntimeError):
    """Category: `check` was called with False."""


class NaNError(JaxRuntimeError):
    """Category: an operation made a NaN."""


class DivisionByZeroError(JaxRuntimeError):
    """Category: a divisor was zero."""


class OOBError(JaxRuntimeError):
    """Category: an index was out of bounds."""


@dataclass(frozen=True)
class UserMessage:
    """The text of `check(pred, text, *args, **kwargs)`, with the structure of its arguments."""

    text: str
    structure: Any

    def __call__(self, values: Sequence[Any]) -> str:
        args, kwargs = tree.tree_unflatten(self.structure, [as_array(v) for v in values])
        return f"{self.text.format(*args, **kwargs)} (`check` failed)"


@dataclass(frozen=True)
class PlainMessage:
    """A text without values."""

    text: str

    def __call__(self, values: Sequence[Any]) -> str:
        return self.text


@dataclass(frozen=True)
class IndexMessage:
    """An index, and the axis of an array of `shape` that it does not fit; the values are both."""

    shape: tuple[int, ...]

    def __call__(self, values: Sequence[Any]) -> str:
        index, axis = int(values[0]), int(values[1])
        return (
            f"out-of-bounds indexing for array of shape {self.shape}: index {index} is out of "
            f"bounds for axis {axis} with size {self.shape[axis]}. "
        )


@dataclass(frozen=True)
class Site:
    """A place that may report an error of `category`, with arrays of `avals`, told by `message`."""

    category: type
    message: Callable[[Sequence[Any]], str]
    avals: tuple[ShapedArray, ...] = ()


@dataclass(frozen=True)
class ErrorMessage:
    """The message of an error that was reported before: its number (from 1) among `sites`, then
    the payloads of all of them."""

    sites: tuple[Site, ...]

    def __call__(self, values: Sequence[Any]) -> str:
        number, at = int(values[0]) - 1, 1
        for site in self.sites[:number]:
            at += len(site.avals)
        site = self.sites[number]
        return site.message(values[at : at + len(site.avals)])


NOT_FUNCTIONALIZED = (
    "Cannot abstractly evaluate a checkify.check which was not functionalized. Wrap the function "
    "that calls it: err, out = checkify.checkify(f)(…), outside of jit, scan and pmap; or use "
    "debug_check, which does nothing where there is no checkify around it."
)
CHECK = HostEffect("Check", io=False, ordered=False, refused=NOT_FUNCTIONALIZED)
DEBUG_CHECK = HostEffect("DebugCheck", io=False, ordered=False)
CHECKS = frozenset([CHECK, DEBUG_CHECK])


def _evaluate(bad: Any, *values: Any, message: Callable, debug: bool) -> list[Any]:
    if bool(bad) and not debug:
        raise JaxRuntimeError(message(values))
    return []


def _lower(*_: Any, message: Callable, debug: bool) -> list[Any]:
    if not debug:
        raise ValueError(NOT_FUNCTIONALIZED)
    return []


def last_failing(bad: Any) -> Any:
    """The position of the last True of a vector."""
    return argmax(where(bad, arange(bad.shape[0]), -1))


def _batch(axis: Any, args: tuple, dims: tuple, **params: Any) -> tuple:
    bad, *values = args
    at = last_failing(bad) if dims[0] is not None else 0
    values = [
        x if d is None else dynamic_index_in_dim(x, at, d, keepdims=False)
        for x, d in zip(values, dims[1:], strict=True)
    ]
    check_p.bind(bad if dims[0] is None else jnp_any(bad), *values, **params)
    return [], []


check_p = Primitive(
    "check",
    multiple_results=True,
    higher_order=True,
    differentiable=False,  # it sees primals and has no results
    abstract=lambda bad, *values, message, debug: [],
    evaluate=_evaluate,
    batch=_batch,
    loops=Expand(_lower),
    effects=lambda *, debug, **_: frozenset([DEBUG_CHECK if debug else CHECK]),
)
