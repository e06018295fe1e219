"""What call primitives (jit, checkpoint), branches and loops share: rules that derive the called
jaxpr and call that; values sorted by flags.

`bind(closed, args)` makes the derived call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from numjet.core.jaxpr import ClosedJaxpr
from numjet.core.primitive import Linear, Zero
from numjet.core.refs import RefUse
from numjet.core.trace import aval_of
from numjet.transforms.batch import Axis, batch_jaxpr, mapped_to_front
from numjet.transforms.jvp import jvp_jaxpr
from numjet.transforms.transpose import backward_pass, transpose_jaxpr

Bind = Callable[[ClosedJaxpr, list], list]


def call_jvp(bind: Bind, closed: ClosedJaxpr, primals: tuple, tangents: tuple) -> tuple:
    """Call the jaxpr of primals and nonzero tangents."""
    use = RefUse()
    derived, nonzero_out = jvp_jaxpr(closed, [type(t) is not Zero for t in tangents], use=use)
    given = [t for t in tangents if type(t) is not Zero]
    outs = bind(derived, [*primals, *given, *use.values()])
    n, n_refs = len(closed.jaxpr.outvars), len(use.written)
    if n_refs:  # by rules of the user
        for ref, value in zip(use.written, outs[-n_refs:], strict=True):
            ref.put_back(value)
        outs = outs[:-n_refs]
    return outs[:n], with_zeros(outs[:n], nonzero_out, outs[n:])


def with_zeros(outs: Sequence[Any], nonzero: Sequence[bool], given: Sequence[Any]) -> list[Any]:
    """A tangent of each of `outs`: symbolic zeros among those `given` for the nonzero ones."""
    tangents = iter(given)
    return [
        next(tangents) if nz else Zero(aval_of(x).tangent())
        for nz, x in zip(nonzero, outs, strict=True)
    ]


def call_batch(bind: Bind, closed: ClosedJaxpr, axis: Axis, args: tuple, dims: tuple) -> tuple:
    """Call the batched jaxpr, batch axes leading."""
    batched, mapped_out = batch_jaxpr(closed, axis, [d is not None for d in dims])
    outs = bind(batched, mapped_to_front(args, dims))
    return outs, [0 if mapped else None for mapped in mapped_out]


def call_transpose(bind: Bind, closed: ClosedJaxpr, cts: list, args: tuple) -> list:
    """Call the transposed jaxpr on the residuals and the nonzero cotangents."""
    linear = [type(x) is Linear for x in args]
    nonzero = [type(ct) is not Zero for ct in cts]
    use = RefUse()
    transposed, nonzero_out = transpose_jaxpr(closed, linear, nonzero, use)
    if use.written:  # by rules of the user: they run where the references are
        return backward_pass(closed, args, cts)
    values = [x for x in args if type(x) is not Linear]
    outs = iter(bind(transposed, values + [ct for ct in cts if type(ct) is not Zero]))
    flags = iter(nonzero_out)
    return [
        (next(outs) if next(flags) else Zero(x.aval)) if is_linear else None
        for x, is_linear in zip(args, linear, strict=True)
    ]


def partition(values: Sequence[Any], flags: Sequence[bool]) -> tuple[list[Any], list[Any]]:
    """The values without their flag, and those with it."""
    pairs = list(zip(values, flags, strict=True))
    return [x for x, flag in pairs if not flag], [x for x, flag in pairs if flag]


def merge(flags: Sequence[bool], without: Iterable[Any], those: Iterable[Any]) -> list[Any]:
    """The inverse of `partition`."""
    rest, flagged = iter(without), iter(those)
    return [next(flagged) if flag else next(rest) for flag in flags]
