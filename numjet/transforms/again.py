"""Functions of one traced array whose other arguments are static: staged once, then bound again.

`again(key, x, fun)` is `fun(x)`. When an operand of its aval comes the second time, `fun` is
staged: checks, promotion and plans are made then, and later ones meet the equations that came of
it. Several of them are linearized as one operation (`transforms.eager.Whole`). What would break it:
a key that does not name the function and all that it depends on beside x's aval and the traced
flags.

`as_one(function, args, kwargs)` does the same for functions of several arrays, where they are
differentiated outside of `jit`: the other arguments are a part of what names the function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any

from numjet.base import config
from numjet.core import dtypes, hooks
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.deferred import DeferredArray, Plan
from numjet.core.jaxpr import ASKED, Jaxpr, Literal
from numjet.core.memo import Memo
from numjet.core.primitive import NO_EFFECTS
from numjet.core.trace import Tracer, current_trace
from numjet.transforms.eager import LinearizeTrace, LinearTracer, Whole, linearized
from numjet.transforms.stage import StageTrace, apart, bind_known, stage

# By key, aval and flags: constants, equations, and the place of the result in the row of the
# operand, the constants and the equations' results; as a plan, and as one operation to linearize.
# False where an operand came once, None where the function is called each time.
_known = Memo("equations of functions of one traced array", counted=True)


def again(
    key: Hashable, x: Array, fun: Callable[[Any], Any],
    learn: Callable[[Plan | Whole], None] | None = None,
) -> Any:  # fmt: skip
    """`fun(x)`. learn: told the plan that it is, where it was written down, or what it is as one
    operation, where it was linearized."""
    trace: Any = current_trace()
    if type(trace) is StageTrace and trace.calls is not None:
        one = functools.partial(_again, key, fun, learn)
        return apart(one, one, (x,), {})
    return _again(key, fun, learn, x)


def _again(key: Hashable, fun: Callable, learn: Callable | None, x: Array) -> Any:
    whole = key, x.aval, config.trace_key()
    found = _known.get(whole)
    if found is False:
        found = _learn(whole, x, fun)
    elif found is None:
        _known.setdefault(whole, False)
    if not found:
        return fun(x)
    _known.used()
    constants, equations, out, plan, one, asked = found
    config.asked.note(asked)
    trace = current_trace()
    if type(x) is LinearTracer:
        if one is not None and type(trace) is LinearizeTrace:
            linear = linearized(trace, one, x)
            if linear is not None:
                if learn is not None:
                    learn(one)
                return linear
    elif plan is not None and trace.at_once and not config.numeric_checks[0]:
        if isinstance(x, Tracer):  # one that outlived its trace
            x.in_scope(equations[0][0].name)
        later = hooks.defer_plan(plan, [x])
        if later is not None:
            if learn is not None and type(later) is DeferredArray:
                learn(plan)
            return later
    return _bound(constants, equations, out, x)


def _bound(constants: list, equations: list, out: int, x: Any) -> Any:
    values = [x, *constants]
    for primitive, params, places, aval in equations:
        operands = tuple([values[i] for i in places])
        if primitive.multiple_results:
            values.extend(primitive.bind(*operands, **params))
        else:
            values.append(bind_known(primitive, operands, params, aval))
    return values[out]


_Found = tuple[list, list, int, Plan | None, Whole | None, int]


def _learn(whole: tuple, x: Array, fun: Callable[[Any], Any]) -> _Found | None:
    failed = False
    try:
        jaxpr, consts = stage(lambda t: [fun(t)], [x.aval])
    except (TypeError, ValueError, IndexError, NotImplementedError):
        failed = True  # raised again where x's own trace can tell where it comes from
    if failed:
        return None
    found = _known[whole] = None if consts else _read(jaxpr)
    return found


def _read(jaxpr: Jaxpr) -> _Found | None:
    """The equations over a row of values, or None where they cannot be bound as they are."""
    places: dict[Any, int] = {jaxpr.invars[0]: 0}
    constants: list[Any] = []
    avals: dict[int, Any] = {}
    for eqn in jaxpr.eqns:
        if eqn.effects is not NO_EFFECTS or eqn.primitive.collective:
            return None
        for atom in eqn.invars:
            if type(atom) is Literal and id(atom.value) not in places:
                constants.append(atom.value)
                avals[id(atom.value)] = atom.aval
                places[id(atom.value)] = len(constants)
    count = 1 + len(constants)
    equations = []
    for eqn in jaxpr.eqns:
        at = [places[id(a.value) if type(a) is Literal else a] for a in eqn.invars]
        equations.append((eqn.primitive, eqn.params, at, eqn.outvars[0].aval))
        for var in eqn.outvars:
            places[var] = count
            count += 1
    (out,) = jaxpr.outvars
    if type(out) is Literal:
        return None
    plan = None
    if equations and places[out] == count - 1 and type(jaxpr.invars[0].aval) is ShapedArray:
        plan = Plan([jaxpr.invars[0].aval], [as_array(c) for c in constants], equations)
        known = [avals[id(c)] for c in constants]
        plan = plan if [c.aval for c in plan.constants] == known else None
    one = None
    if len(equations) > 1 or equations and equations[0][0].multiple_results:
        one = Whole(functools.partial(_bound, constants, equations, places[out]))
    return constants, equations, places[out], plan, one, jaxpr.cache.get(ASKED, 0)


# ------------------------------------------------------------------ several arrays
# By the function, its arguments that are no arrays, and the flags.
_wholes: dict[tuple, Whole] = Memo("functions of arrays that are linearized as one operation")
_ARRAYS = frozenset((LinearTracer, ArrayImpl, DeferredArray))
_OTHERS = frozenset((int, float, complex, bool, str, type(None)))
_ARRAY = object()  # in the place of each array


def as_one(function: Callable, args: tuple, kwargs: dict | None = None) -> Any:
    """`function(*args, **kwargs)` by a rule for the whole of it; None where it is to be called."""
    trace = current_trace()
    if type(trace) is not LinearizeTrace or hooks.guards is not None:
        return None
    kwargs = kwargs or {}
    arrays: list[Any] = []
    place: list[Any] = []
    for x in (*args, *kwargs.values()):
        kind = type(x)
        if kind in _ARRAYS:
            if type(x.aval.dtype) is dtypes.KeyDType:
                return None
            arrays.append(x)
            place.append(_ARRAY)
        elif kind in _OTHERS or kind is tuple and _OTHERS.issuperset(map(type, x)):
            place.append((kind, repr(x)))  # which tells zeros, and NaN equals itself
        else:
            return None
    key = function, tuple(place), tuple(kwargs), config.trace_key()
    whole = _wholes.get(key)
    if whole is None:
        fixed = [None if type(x) in _ARRAYS else x for x in (*args, *kwargs.values())]
        at = [i for i, mark in enumerate(place) if mark is _ARRAY]
        whole = _wholes[key] = Whole(
            functools.partial(_called, function, fixed, at, len(args), tuple(kwargs))
        )
    return linearized(trace, whole, *arrays)


def _called(
    function: Callable, fixed: list, at: list[int], count: int, names: tuple[str, ...], *arrays: Any
) -> Any:
    """The function, of one result, of arrays in these places among the other arguments."""
    values = list(fixed)
    for i, x in zip(at, arrays, strict=True):
        values[i] = x
    out = function(*values[:count], **dict(zip(names, values[count:], strict=True)))
    if not isinstance(out, Array):
        raise TypeError("a function of several results is not linearized as one.")
    return out
