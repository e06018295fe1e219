"""What differentiation writes down for an operation, remembered and written again.

A function that is traced under `grad` meets the same operations again and again: layers are alike.
The first time an operation of given avals and params comes, its jvp or transpose rule runs, and
what the rule bound is read off the ends of the records as a `Pattern`; later times the pattern is
written with other operands. It holds whatever the values: rules never look at them. What a rule
makes of anything else than its operands and constants has no pattern and takes the general way.

For differentiation while a function is staged; `transforms.eager` is for concrete values. What
would break it: a primitive's rule that depends on more than avals, params and traced flags.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from numjet.base import config
from numjet.core import trace as lines
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import NO_EFFECTS, Eqn, Literal, Var
from numjet.core.lowering import Host
from numjet.core.primitive import Linear, Primitive, Zero
from numjet.transforms.jvp import JVPTrace, JVPTracer
from numjet.transforms.linearize import PartialTrace, PartialTracer
from numjet.transforms.stage import StageTrace, StageTracer

_new = object.__new__
# Programs of ever new shapes must not fill the memory with patterns.
MAX_PATTERNS = 10_000
# How an operand comes, in the keys of patterns.
_STAGED, _ACTIVE, _CONCRETE = range(3)


class Pattern:
    """Equations over a row of values: the operands, constants, the results of `known`, the linear
    variables, the results of `linear`.

    known, linear: (primitive, params, places of operands, aval of the result) of staged and of
    recorded equations. outs: the places of what the rule returned, None for zeros.
    """

    __slots__ = ("constants", "known", "linear", "outs")

    def __init__(self, constants: list, known: list, linear: list, outs: list) -> None:
        self.constants, self.known, self.linear, self.outs = constants, known, linear, outs


# A pattern by primitive, avals, how operands come, and params; None where there can be none.
Patterns = dict[tuple, Pattern | None]
_jvps: dict[tuple, Patterns] = {}  # by the traced flags
_transposes: dict[tuple, Patterns] = {}


def transposes() -> Patterns:
    """The patterns of transpose rules under the flags of now, for `transposed`."""
    return _transposes.setdefault(config.trace_key(), {})


class ReplayTrace(JVPTrace):
    """A `JVPTrace` whose parent is a `PartialTrace` of a `StageTrace`: primals are staged, and what
    is linear in the tangents recorded."""

    def __init__(self, parent: PartialTrace) -> None:
        super().__init__(parent)
        self.patterns = _jvps.setdefault(config.trace_key(), {})

    def process(self, primitive: Primitive, args: tuple, params: dict) -> Any:
        partial = self.parent
        stage = partial.parent
        key: list[Any] = [primitive]
        values: list[Any] = []
        variables = []
        kinds, unit = 0, 1
        for x in args:
            kind = type(x)
            if kind is JVPTracer and x.owner is self:
                tangent = x.tangent
                aval = x.aval
                if type(tangent) is not PartialTracer or tangent.aval is not aval:
                    break
                variables.append(tangent.jaxpr_var)
                x = x.primal
                if type(x) is not StageTracer or x.owner is not stage:
                    break
                kinds += unit
            elif kind is StageTracer and x.owner is stage:
                aval = x.aval
            elif kind is ArrayImpl:
                aval = x.aval
                kinds += unit + unit
            else:
                break
            values.append(x)
            key.append(aval)
            unit *= 3
        else:
            if unit == 9 and values[0] is values[1]:
                kinds += unit
            if variables and not primitive.higher_order and not primitive.collective:
                key.append(kinds)
                if params:
                    key.extend(params.items())
                return self._replayed(primitive, args, params, tuple(key), values, variables)
        return super().process(primitive, args, params)

    def _replayed(
        self, primitive: Primitive, args: tuple, params: dict, key: tuple, values: list,
        variables: list,
    ) -> Any:  # fmt: skip
        partial = self.parent
        stage = partial.parent
        try:
            pattern = self.patterns.get(key)
        except TypeError:  # params without a hash
            return super().process(primitive, args, params)
        if pattern is None:
            if key in self.patterns:
                return super().process(primitive, args, params)
            mark = _Mark(stage, partial.tape)
            out = super().process(primitive, args, params)
            if type(out) is JVPTracer and out.owner is self:
                results = [out.primal, out.tangent]
            else:
                results = [out, None]
            _remember(self.patterns, key, mark, values, variables, results)
            return out
        line = stage.source
        if line is None:
            stage.source = lines.user_line()
        try:
            source = stage.source
            _write(stage, pattern, values)
        finally:
            stage.source = line
        out, tangent = pattern.outs
        if tangent is None:
            return values[out]  # type: ignore[index]
        values.extend(variables)
        tape = partial.tape
        for linear, its_params, places, aval in pattern.linear:
            var = _new(Var)
            var.aval = aval
            eqn = _new(Eqn)
            eqn.invars, eqn.outvars, eqn.primitive = [values[i] for i in places], [var], linear
            eqn.params, eqn.effects, eqn.source = its_params, NO_EFFECTS, source
            tape.append(eqn)
            values.append(var)
        var = values[tangent]
        unknown = _new(PartialTracer)
        unknown.owner, unknown.jaxpr_var, unknown.aval = partial, var, var.aval
        tracer = _new(JVPTracer)
        tracer.owner, tracer.tangent = self, unknown
        tracer.primal = primal = values[out]  # type: ignore[index]
        tracer.aval = primal.aval
        return tracer


def _write(stage: StageTrace, pattern: Pattern, values: list) -> None:
    """Stage the known equations of a pattern; `values` begins with the operands and grows."""
    values.extend(pattern.constants)
    record = stage.record
    for primitive, params, places, aval in pattern.known:
        values.append(record(primitive, tuple([values[i] for i in places]), params, aval))


def transposed(patterns: Patterns, stage: StageTrace, eqn: Eqn, ct: Any) -> Sequence[Any] | None:
    """What the transpose rule of a recorded equation of one result makes of its cotangent `ct`,
    while `stage` is the current trace; None where the rule has to be called as it is."""
    if type(ct) is not StageTracer or ct.owner is not stage:
        return None
    primitive, params = eqn.primitive, eqn.params
    if primitive.higher_order or primitive.collective:
        return None
    key: list[Any] = [primitive, ct.aval]
    values: list[Any] = [ct]
    kinds, unit = 0, 1
    for x in eqn.invars:
        kind = type(x)
        if kind is Var:
            kinds += unit
        elif kind is ArrayImpl:
            kinds += unit + unit
        elif kind is not StageTracer or x.owner is not stage:  # type: ignore[union-attr]
            return None
        values.append(x)
        key.append(x.aval)
        unit *= 3
    key.append(kinds)
    if params:
        key.extend(params.items())
    found = tuple(key)
    try:
        pattern = patterns.get(found)
    except TypeError:  # params without a hash
        return None
    if pattern is not None:
        _write(stage, pattern, values)
        return [None if place is None else values[place] for place in pattern.outs]
    if found in patterns:
        return None
    mark = _Mark(stage, ())
    arguments = [Linear(x.aval) if type(x) is Var else x for x in eqn.invars]
    results = list(primitive.transpose(ct, *arguments, **params))  # type: ignore[misc]
    _remember(patterns, found, mark, values, (), results)
    return results


# ------------------------------------------------------------------ reading patterns
class _NoPattern(Exception):
    """Something else than operands and constants was used, or more than plain equations made."""


class _Alias(Exception):
    """Operands are one variable, which other operands of the same key are not."""


class _Mark:
    """Where the records ended before a rule ran."""

    __slots__ = ("stage", "eqns", "tape", "taped")

    def __init__(self, stage: StageTrace, tape: Sequence[Eqn]) -> None:
        self.stage, self.eqns, self.tape, self.taped = stage, len(stage.eqns), tape, len(tape)


def _remember(
    patterns: Patterns, key: tuple, mark: _Mark, operands: list, variables: Sequence[Var],
    results: Sequence[Any],
) -> None:  # fmt: skip
    """Keep the pattern of what was written since `mark`, or that there is none."""
    if len(patterns) >= MAX_PATTERNS:
        patterns.clear()
    try:
        patterns[key] = _Reader(mark, operands, variables).pattern(results)
    except _NoPattern:
        patterns[key] = None
    except _Alias:
        pass


class _Reader:
    """Makes a pattern of equations: finds the places of the values that they use."""

    def __init__(self, mark: _Mark, operands: list, variables: Sequence[Var]) -> None:
        self.stage = stage = mark.stage
        self.known = stage.eqns[mark.eqns :]
        self.linear = mark.tape[mark.taped :]
        self.constants: list[Any] = []
        # Group of the row and number there: of variables, and of arrays by identity.
        self.places: dict[Any, tuple[int, int]] = {}
        for i, x in enumerate(operands):
            if type(x) is StageTracer:
                self._place(x.jaxpr_var, 0, i, operands)
            elif type(x) is ArrayImpl:
                self._place(id(x), 0, i, operands)
                if id(x) in stage._const_of:
                    self.places[stage._const_of[id(x)]] = 0, i
        for i, var in enumerate(variables):
            self._place(var, 3, i, operands)
        self.sizes = len(operands), len(self.known), len(variables)

    def _place(self, x: Any, group: int, i: int, operands: list) -> None:
        if x in self.places:
            if len(operands) != 2 or operands[0] is not operands[1]:
                raise _Alias
        else:
            self.places[x] = group, i

    def pattern(self, results: Sequence[Any]) -> Pattern:
        """The pattern of all equations, which returns `results`."""
        known = [self._equation(eqn, 2, i) for i, eqn in enumerate(self.known)]
        linear = [self._equation(eqn, 4, i) for i, eqn in enumerate(self.linear)]
        outs = [None if x is None or type(x) is Zero else self._value(x) for x in results]
        first, third, fourth = self.sizes
        second = len(self.constants)
        starts = [*itertools.accumulate((first, second, third, fourth), initial=0)]

        def resolved(equations: list) -> list:
            return [
                (primitive, params, [starts[group] + i for group, i in places], aval)
                for primitive, params, places, aval in equations
            ]

        return Pattern(
            self.constants,
            resolved(known),
            resolved(linear),
            [None if out is None else starts[out[0]] + out[1] for out in outs],
        )

    def _equation(
        self, eqn: Any, group: int, i: int
    ) -> tuple[Primitive, dict, list[tuple[int, int]], ShapedArray]:
        primitive = eqn.primitive if type(eqn) is Eqn else None
        if (
            primitive is None
            or primitive.multiple_results
            or primitive.higher_order
            or primitive.stage is not None
            or primitive.effects is not NO_EFFECTS
            # Such equations are told apart by their params (`cpu.program_cache`).
            or type(primitive.loops) is Host
        ):
            raise _NoPattern
        places = [self._value(x) for x in eqn.invars]
        (var,) = eqn.outvars
        self.places[var] = group, i
        return primitive, eqn.params, places, var.aval

    def _value(self, x: Any) -> tuple[int, int]:
        """The place of a variable, literal, tracer or array."""
        kind = type(x)
        if kind is Literal:
            x = x.value
        elif kind is StageTracer or kind is PartialTracer:
            x = x.jaxpr_var
        if type(x) is not ArrayImpl:
            found = self.places.get(x) if type(x) is Var else None
            if found is None:
                raise _NoPattern
            return found
        found = self.places.get(id(x))
        if found is None:
            if x.aval.shape:
                raise _NoPattern
            found = self.places[id(x)] = 1, len(self.constants)
            self.constants.append(x)
        return found
