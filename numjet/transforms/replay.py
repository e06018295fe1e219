"""What differentiation writes down for an operation, remembered and written again.

A function that is traced under `grad` meets the same operations again and again: layers are alike.
When an operation of given avals and params was met before, its jvp or transpose rule runs once
more, and what the rule bound is read off the ends of the records as a `Pattern`; later times the
pattern is written with other operands. It holds whatever the values: rules never look at them. What
a rule makes of anything else than its operands and constants has no pattern and takes the general
way.

For differentiation while a function is staged; `transforms.eager` is for concrete values. What
would break it: a primitive's rule that depends on more than avals, params and traced flags.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.base import config
from numjet.base.errors import InternalError
from numjet.core import hooks
from numjet.core.array import ArrayImpl
from numjet.core.jaxpr import NO_EFFECTS, Eqn, Literal, Var
from numjet.core.lowering import Host
from numjet.core.memo import Memo
from numjet.core.names import named as named_line
from numjet.core.primitive import Linear, Primitive, Zero
from numjet.transforms.jvp import JVPTrace, JVPTracer
from numjet.transforms.linearize import PartialTrace, PartialTracer
from numjet.transforms.stage import StageTrace, StageTracer

_new = object.__new__


class Pattern:
    """Equations over a row of values: the operands, their linear variables, constants, the results
    of `known`, the results of `linear`.

    known, linear: (primitive, params, places of operands, aval of the result) of staged and of
    recorded equations. outs: the places of what the rule returned, None for zeros.
    """

    __slots__ = ("constants", "known", "linear", "outs")

    def __init__(self, constants: list, known: list, linear: list, outs: list) -> None:
        self.constants, self.known, self.linear, self.outs = constants, known, linear, outs


# Programs of no more operations (and twice as many linear equations) gain less than the keys cost.
SHORT = 32
# Reading a pattern costs as much as a rule or two. After one use, transformers of 3 to 12 layers
# are traced 2 to 4 % faster than after two, those of 1 or 2 layers as fast within 3 %.
USES_BEFORE_READING = 1
# A pattern by primitive, avals, how operands come, and params; the number of uses while there is
# none yet, or None where there can be none.
Patterns = dict[tuple, Any]
_jvps: dict[tuple, Patterns] = {}  # by the traced flags
_transposes: dict[tuple, Patterns] = {}


def _patterns(of: dict[tuple, Patterns], name: str) -> Patterns:
    """Those for the traced flags as they are."""
    key = config.trace_key()
    found = of.get(key)
    if found is None:
        found = of[key] = Memo(f"what {name} writes down")
    return found


def transposes(count: int) -> Patterns | None:
    """The patterns of transpose rules under the flags of now, for `transposed`, where so many
    equations are worth it."""
    if count <= 2 * SHORT:
        return None
    config.asked.note()  # which they do not tell
    return _patterns(_transposes, "transposition")


class ReplayTrace(JVPTrace):
    """A `JVPTrace` whose parent is a `PartialTrace` of a `StageTrace`: primals are staged, and what
    is linear in the tangents recorded."""

    # Slots, so that native code can read them. long: SHORT operations were met; tape: the record.
    __slots__ = ("count", "long", "partial", "patterns", "stage", "tape")

    def __init__(self, parent: PartialTrace) -> None:
        super().__init__(parent)
        self.patterns = _patterns(_jvps, "differentiation")
        self.count, self.long = 0, SHORT == 0
        config.asked.note(self.long)
        self.partial, self.tape = parent, parent.tape
        self.stage: Any = parent.parent

    def process(self, primitive: Primitive, args: tuple, params: dict) -> Any:
        """Native code does this for operations that have a pattern (`native.code.replay`)."""
        if not self.long:
            self.count += 1
            if self.count == SHORT:
                self.long = True
                config.asked.note()  # patterns do not tell
            return super().process(primitive, args, params)
        stage = self.stage
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
                if len(variables) == 2 and variables[0] is not variables[1]:
                    # One value with two tangents, as custom rules give it.
                    return super().process(primitive, args, params)
            if variables and not primitive.higher_order and not primitive.collective:
                key.append(kinds)
                if params:
                    key.extend(params.items())
                return self.replayed(primitive, args, params, tuple(key), [*values, *variables])
        return super().process(primitive, args, params)

    def replayed(
        self, primitive: Primitive, args: tuple, params: dict, key: tuple, values: list
    ) -> Any:
        """`process` with the pattern of `key`, or that is to have one. values: the operands, and
        the variables of their tangents."""
        partial, stage, tape = self.partial, self.stage, self.tape
        try:
            pattern = self.patterns.get(key)
        except TypeError:  # params without a hash
            return super().process(primitive, args, params)
        if type(pattern) is not Pattern:
            if pattern != USES_BEFORE_READING:
                _note(self.patterns, key, pattern)
                return super().process(primitive, args, params)
            mark = _Mark(stage, tape)
            out = super().process(primitive, args, params)
            if type(out) is JVPTracer and out.owner is self:
                results = [out.primal, out.tangent]
            else:
                results = [out, None]
            n = len(args)
            _remember(self.patterns, key, mark, values[:n], values[n:], results)
            return out
        line = stage.source
        if line is None:
            stage.source = named_line(hooks.user_line())
        try:
            source = stage.source
            _write(stage, pattern, values)
        finally:
            stage.source = line
        out, tangent = pattern.outs
        if tangent is None:
            return values[out]  # type: ignore[index]
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
    """Stage the known equations of a pattern; `values` holds the operands and grows."""
    values.extend(pattern.constants)
    record = stage.record
    for primitive, params, places, aval in pattern.known:
        values.append(record(primitive, tuple([values[i] for i in places]), params, aval))


def malformed(part: Any) -> None:
    """Raise that a part of a pattern is not as `_read` makes it: for native code."""
    raise InternalError(f"a pattern of differentiation holds {part!r}, which is not a part of one.")


def transposed(patterns: Patterns, stage: StageTrace, eqn: Eqn, ct: Any) -> Sequence[Any] | None:
    """What the transpose rule of a recorded equation of one result makes of its cotangent `ct`,
    while `stage` is the current trace; None where the rule has to be called as it is. Native code
    does this for rules that have a pattern (`native.code.replay`)."""
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
    return transposed_as(patterns, stage, eqn, tuple(key), values)


def transposed_as(
    patterns: Patterns, stage: StageTrace, eqn: Eqn, key: tuple, values: list
) -> Sequence[Any] | None:
    """`transposed` with the pattern of `key`, or that is to have one. values: the cotangent and the
    operands."""
    try:
        pattern = patterns.get(key)
    except TypeError:  # params without a hash
        return None
    if type(pattern) is Pattern:
        _write(stage, pattern, values)
        return [None if place is None else values[place] for place in pattern.outs]
    if pattern != USES_BEFORE_READING:
        _note(patterns, key, pattern)
        return None
    mark = _Mark(stage, ())
    arguments = [Linear(x.aval) if type(x) is Var else x for x in values]
    results = list(eqn.primitive.transpose(*arguments, **eqn.params))  # type: ignore[misc]
    _remember(patterns, key, mark, arguments, (), results)
    return results


hooks.transposed = transposed


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


def _note(patterns: Patterns, key: tuple, uses: int | None) -> None:
    """Count a use of an operation that has no pattern, unless it can have none."""
    if uses is not None or key not in patterns:
        patterns[key] = (uses or 0) + 1


def _remember(
    patterns: Patterns, key: tuple, mark: _Mark, operands: list, variables: Sequence[Var],
    results: Sequence[Any],
) -> None:  # fmt: skip
    """Keep the pattern of what was written since `mark`, or that there is none."""
    try:
        patterns[key] = _read(mark, operands, variables, results)
    except _NoPattern:
        patterns[key] = None
    except _Alias:
        pass


def _read(
    mark: _Mark, operands: list, variables: Sequence[Var], results: Sequence[Any]
) -> Pattern:
    """The pattern of all equations since `mark`, which returns `results`."""
    stage = mark.stage
    known, linear = stage.eqns[mark.eqns :], mark.tape[mark.taped :]
    twice = len(operands) == 2 and operands[0] is operands[1]  # which the key says
    places: dict[Any, int] = {}  # of variables, and of arrays by identity
    number = 0
    for x in (*operands, *variables):
        kind = type(x)
        if kind is StageTracer:
            x = x.jaxpr_var
        elif kind is ArrayImpl:
            x = id(x)
            if x in stage._const_of:
                places[stage._const_of[x]] = number
        if kind is not Linear:
            if x in places and not twice:
                raise _Alias
            places.setdefault(x, number)
        number += 1
    equations = [*known, *linear]
    constants: list[Any] = []
    for eqn in equations:
        if not _plain(eqn):
            raise _NoPattern
        for x in eqn.invars:
            if type(x) is Literal:
                x = x.value
            if type(x) is ArrayImpl and id(x) not in places:
                if x.aval.shape:
                    raise _NoPattern
                places[id(x)] = number
                constants.append(x)
                number += 1
    rows = []
    for eqn in equations:
        at = tuple([_place(places, x) for x in eqn.invars])
        (var,) = eqn.outvars
        rows.append((eqn.primitive, eqn.params, at, var.aval))
        places[var] = number
        number += 1
    outs = [None if x is None or type(x) is Zero else _place(places, x) for x in results]
    return Pattern(constants, rows[: len(known)], rows[len(known) :], outs)


def _plain(eqn: Any) -> bool:
    """Whether an equation can be written with other operands."""
    if type(eqn) is not Eqn:
        return False
    primitive = eqn.primitive
    return (
        primitive.effects is NO_EFFECTS
        and primitive.stage is None
        and not primitive.multiple_results
        and not primitive.higher_order
        # Such equations are told apart by their params (`cpu.program.cache`).
        and type(primitive.loops) is not Host
    )


def _place(places: dict[Any, int], x: Any) -> int:
    """The place of a variable, literal, tracer or array."""
    kind = type(x)
    if kind is Literal:
        x = x.value
        kind = type(x)
    if kind is ArrayImpl:
        x = id(x)
    elif kind is StageTracer or kind is PartialTracer:
        x = x.jaxpr_var
    elif kind is not Var:
        raise _NoPattern
    try:
        return places[x]
    except KeyError:
        raise _NoPattern from None
