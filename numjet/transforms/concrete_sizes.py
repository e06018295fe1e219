"""Programs of symbolic sizes, written again for given ones.

`concrete(closed, values)` is the jaxpr with `values` for its dimension variables: ints, or
expressions of other variables. Each equation is recorded again with its sizes replaced, so that its
abstract rule checks them. What would break it: a primitive that keeps sizes in its params in
anything but tuples, lists, dicts, avals and jaxprs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.dim_terms import MOST
from numjet.core.dims import DimExpr, substituted
from numjet.core.jaxpr import ClosedJaxpr, Jaxpr, Literal
from numjet.core.structural import dim_as_value_p
from numjet.core.trace import set_trace
from numjet.transforms.stage import StageTrace


def concrete(closed: ClosedJaxpr, values: Mapping[str, Any]) -> ClosedJaxpr:
    """`closed` for these values of its variables."""
    return _Sizes(values).closed(closed)


def _check_sizes(aval: Any) -> None:
    for n in getattr(aval, "shape", ()):
        if type(n) is int and n > MOST:
            raise ValueError(
                f"A program of symbolic shapes counts places in 32 bits; {aval.str_short()} is too "
                "large for it. Export the function for these shapes."
            )


class _Sizes:
    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self.known: dict[int, tuple[Jaxpr, Any]] = {}  # by the id of a jaxpr, which is kept

    def closed(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        found = self.known.get(id(closed.jaxpr))
        if found is None:
            trace = StageTrace("a program of symbolic sizes")
            with set_trace(trace):
                consts = [trace.new_arg(self.param(v.aval)) for v in closed.jaxpr.constvars]
                args = [trace.new_arg(self.param(v.aval)) for v in closed.jaxpr.invars]
                outs = self.written(trace, closed.jaxpr, [*consts, *args])
                jaxpr, new = trace.finish(outs)
            found = self.known[id(closed.jaxpr)] = (closed.jaxpr, (jaxpr, new))
        jaxpr, new = found[1]
        count = len(closed.consts)
        whole = Jaxpr(
            [*jaxpr.constvars, *jaxpr.invars[:count]], jaxpr.invars[count:], jaxpr.outvars,
            jaxpr.eqns, jaxpr.effects, closed.jaxpr.debug,
        )  # fmt: skip
        return ClosedJaxpr(whole, [*new, *closed.consts])

    def open(self, jaxpr: Jaxpr) -> Jaxpr:
        """A jaxpr whose constants are arguments of the equation around it."""
        found = self.known.get(id(jaxpr))
        if found is None:
            plain = Jaxpr([], [*jaxpr.constvars, *jaxpr.invars], jaxpr.outvars, jaxpr.eqns)
            made = self.closed(ClosedJaxpr(plain, []))
            count = len(jaxpr.constvars)
            if made.consts:  # arrays of one element, or sizes: as literals they need none
                raise NotImplementedError(
                    "export: constants arose in a jaxpr that takes its constants from outside."
                )
            ins = made.jaxpr.invars
            whole = made.jaxpr.replace(constvars=ins[:count], invars=ins[count:])
            found = self.known[id(jaxpr)] = (jaxpr, whole)
        return found[1]

    def written(self, trace: StageTrace, jaxpr: Jaxpr, args: Sequence[Any]) -> list:
        env = dict(zip([*jaxpr.constvars, *jaxpr.invars], args, strict=True))

        def read(atom: Any) -> Any:
            return atom.value if type(atom) is Literal else env[atom]

        for eqn in jaxpr.eqns:
            params = {name: self.param(value) for name, value in eqn.params.items()}
            trace.source = eqn.source
            if eqn.primitive is dim_as_value_p:
                outs = [as_array(params["dim"])]
            else:
                found = trace.record(eqn.primitive, [read(v) for v in eqn.invars], params)
                outs = found if eqn.primitive.multiple_results else [found]
                for out in outs:
                    _check_sizes(out.aval)
            env.update(zip(eqn.outvars, outs, strict=True))
        trace.source = None
        return [read(v) for v in jaxpr.outvars]

    def param(self, value: Any) -> Any:
        kind = type(value)
        if kind is DimExpr:
            return substituted(value, self.values)
        if kind is ShapedArray:
            shape = self.param(value.shape)
            return value if shape == value.shape else value.update(shape=shape)
        if kind is ClosedJaxpr:
            return self.closed(value)
        if kind is Jaxpr:
            return self.open(value)
        if isinstance(value, tuple):
            items = [self.param(v) for v in value]
            return kind(*items) if hasattr(value, "_fields") else tuple(items)
        if kind is list:
            return [self.param(v) for v in value]
        if kind is dict:
            return {k: self.param(v) for k, v in value.items()}
        return value
