"""Tracing of wrapped flat functions to jaxprs, dead code in jaxprs, and values that may be known.

`trace_to_jaxpr_dynamic` and `dce_jaxpr` are what programs that rewrite jaxprs use. `dce_rules` say
what stays of users' equations; rules for partial evaluation are tables that numjet does not read:
registering raises NotImplementedError. What would break it: nothing below calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numjet.core.array import as_array
from numjet.core.jaxpr import Eqn, Jaxpr
from numjet.core.primitive import REGISTRY
from numjet.extend.linear_util import WrappedFun
from numjet.extend.primitive import Rules
from numjet.extend.types import get_aval
from numjet.transforms.linearize import PartialTracer as JaxprTracer
from numjet.transforms.simplify import EquationRule, dce_jaxpr as _dce
from numjet.transforms.stage import StageTracer as DynamicJaxprTracer, stage

Val = Any


class PartialVal(tuple):
    """A value that is known - (None, value) - or of which the aval is - (aval, None)."""

    __slots__ = ()

    def __new__(cls, xs: tuple[Any, Any]) -> PartialVal:
        return tuple.__new__(cls, xs)

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """One that is known."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: Any) -> PartialVal:
        """One of which the aval is known."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Whether it is known."""
        return self[0] is None

    def get_known(self) -> Any:
        """The value, or None."""
        return self[1] if self[0] is None else None

    def get_aval(self) -> Any:
        """The aval, of a known value too."""
        return get_aval(self[1]) if self[0] is None else self[0]


def trace_to_jaxpr_dynamic(
    fun: WrappedFun,
    in_avals: Sequence[Any],
    *,
    keep_inputs: Sequence[bool] | None = None,
    lower: bool = False,
    auto_dce: bool = False,
) -> tuple[Jaxpr, list[Any], list[Any]]:
    """The jaxpr of a wrapped flat function at avals: (jaxpr, avals of its results, values of its
    constvars).

    fun: what `extend.linear_util.wrap_init` made, of arrays, returning a sequence. in_avals: avals
    of its arguments. keep_inputs: which inputs stay (all where it is None). auto_dce: drop what no
    result needs. lower is taken for JAX's sake.

    >>> import numjet as nj
    >>> from numjet.extend import linear_util
    >>> from numjet.interpreters import partial_eval
    >>> fun = linear_util.wrap_init(lambda x: [x + 1])
    >>> print(partial_eval.trace_to_jaxpr_dynamic(fun, [nj.typeof(1.0)])[0])
    { lambda ; a:f32[]. let b:f32[] = add a 1.0:f32[] in (b,) }
    """
    del lower  # types made of others are lowered: there are none

    def run(*args: Any) -> list[Any]:
        return [as_array(x) for x in fun.call_wrapped(*args)]

    jaxpr, consts = stage(run, list(in_avals), fun.__name__)
    if auto_dce:
        jaxpr, _ = _dce(jaxpr)
    if keep_inputs is not None:
        kept = [v for v, keep in zip(jaxpr.invars, keep_inputs, strict=True) if keep]
        jaxpr = jaxpr.replace(invars=kept)
    if fun.debug_info is not None:
        jaxpr = jaxpr.replace(debug_info=fun.debug_info)
    return jaxpr, jaxpr.out_avals, consts


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """The part of a wrapped flat function that depends on unknown values: (jaxpr, results,
    residuals).

    fun: what `extend.linear_util.wrap_init` made, returning a sequence. pvals: a PartialVal for
    each argument, known or not. instantiate: whether (or which) known results become results of the
    jaxpr. The jaxpr takes (residuals, unknown inputs) to the unknown results; results are
    PartialVals.

    >>> import numjet as nj
    >>> from numjet.extend import linear_util
    >>> from numjet.interpreters import partial_eval
    >>> fun = linear_util.wrap_init(lambda x, y: [x + 1, y * 2])
    >>> pvals = [partial_eval.PartialVal((None, 1)), partial_eval.PartialVal((nj.typeof(2), None))]
    >>> print(partial_eval.trace_to_jaxpr_nounits(fun, pvals)[0])
    { lambda ; a:i32[]. let b:i32[] = mul a 2:i32[] in (b,) }
    """
    from numjet.core.trace import current_trace, set_trace
    from numjet.transforms.linearize import PartialTrace, tape_to_jaxpr

    trace = PartialTrace(current_trace())
    ins: list[Any] = []
    variables = []
    for p in pvals:
        if p.is_known():
            ins.append(as_array(p.get_known()))
        else:
            tracer = trace.new_unknown(p.get_aval())
            variables.append(tracer.jaxpr_var)
            ins.append(tracer)
    with set_trace(trace):
        outs = [as_array(x) for x in fun.call_wrapped(*ins)]
    forced = [instantiate] * len(outs) if isinstance(instantiate, bool) else instantiate
    unknown = [trace.is_unknown(x) or f for x, f in zip(outs, forced, strict=True)]
    results = [
        x.jaxpr_var if trace.is_unknown(x) else x
        for x, u in zip(outs, unknown, strict=True)
        if u
    ]
    jaxpr, residuals = tape_to_jaxpr(trace.tape, variables, results)
    n = len(residuals)
    jaxpr = jaxpr.replace(constvars=jaxpr.invars[:n], invars=jaxpr.invars[n:])
    out_pvals = [
        PartialVal.unknown(x.aval) if u else PartialVal.known(x)
        for x, u in zip(outs, unknown, strict=True)
    ]
    return jaxpr, out_pvals, residuals


# ------------------------------------------------------------------ dead code
def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """A jaxpr without what the used outputs do not need, and which inputs it keeps.

    jaxpr: a Jaxpr. used_outputs: a boolean for each output. instantiate: inputs that stay in any
    case, one boolean for all or one each. Result: (Jaxpr, list of booleans).

    >>> import numjet as nj
    >>> from numjet.interpreters import partial_eval
    >>> jaxpr = nj.make_jaxpr(lambda x, y: (x + 1, y * 2))(1, 2).jaxpr
    >>> print(*partial_eval.dce_jaxpr(jaxpr, [True, False]))
    { lambda ; a:i32[]. let b:i32[] = add a 1:i32[] in (b,) } [True, False]
    """
    used = [used_outputs] * len(jaxpr.outvars) if isinstance(used_outputs, bool) else used_outputs
    found, reads = _dce(jaxpr, list(used), calls=True)
    n = len(jaxpr.invars)
    forced = [instantiate] * n if isinstance(instantiate, bool) else instantiate
    kept = [a or b for a, b in zip(reads, forced, strict=True)]
    invars = [v for v, keep in zip(jaxpr.invars, kept, strict=True) if keep]
    return found.replace(invars=invars), kept


def dce_jaxpr_consts(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool], list[bool]]:
    """As `dce_jaxpr`; tells the constvars that stay too, before the inputs.

    jaxpr: a Jaxpr. used_outputs: a boolean for each output. instantiate: inputs that stay in any
    case. Result: (Jaxpr, booleans of constvars, booleans of inputs).

    >>> import numjet as nj
    >>> from numjet.interpreters import partial_eval
    >>> jaxpr = nj.make_jaxpr(lambda x, y: (x + 1, y * 2))(1, 2).jaxpr
    >>> partial_eval.dce_jaxpr_consts(jaxpr, [True, False])[1:]
    ([], [True, False])
    """
    n = len(jaxpr.constvars)
    forced = (
        [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else list(instantiate)
    )
    whole = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
    found, kept = dce_jaxpr(whole, used_outputs, [False] * n + forced)
    consts = sum(kept[:n])
    found = found.replace(constvars=found.invars[:consts], invars=found.invars[consts:])
    return found, kept[:n], kept[n:]


def dce_jaxpr_call_rule(used_outputs: list[bool], eqn: Eqn) -> tuple[list[bool], Eqn | None]:
    """A call's equation without results that are not used: which operands stay, and the equation.

    used_outputs: a boolean for each result. eqn: an equation with a jaxpr in its params. Result:
    (booleans, equation, or None where nothing is used).

    >>> import numjet as nj
    >>> from numjet.interpreters import partial_eval
    >>> f = nj.custom_jvp(lambda x, y: (x + 1, y * 2))
    >>> _ = f.defjvp(lambda primals, tangents: (f(*primals), tangents))
    >>> [eqn] = nj.make_jaxpr(f)(1.0, 2.0).eqns
    >>> partial_eval.dce_jaxpr_call_rule([False, False], eqn)[1] is None
    True
    """
    return _call_rule(used_outputs, eqn)


def dce_jaxpr_closed_call_rule(used_outputs: list[bool], eqn: Eqn) -> tuple[list[bool], Eqn | None]:
    """As `dce_jaxpr_call_rule`, for calls of closed jaxprs.

    used_outputs: a boolean for each result. eqn: an equation with a closed jaxpr in its params.
    Result: (booleans, equation, or None where nothing is used).

    >>> import numjet as nj
    >>> from numjet.interpreters import partial_eval
    >>> f = nj.custom_jvp(lambda x, y: (x + 1, y * 2))
    >>> _ = f.defjvp(lambda primals, tangents: (f(*primals), tangents))
    >>> [eqn] = nj.make_jaxpr(f)(1.0, 2.0).eqns
    >>> partial_eval.dce_jaxpr_closed_call_rule([True, False], eqn)[0]
    [True, False]
    """
    return _call_rule(used_outputs, eqn)


def _call_rule(used_outputs: list[bool], eqn: Eqn) -> tuple[list[bool], Eqn | None]:
    if not any(used_outputs) and not eqn.effects:
        return [False] * len(eqn.invars), None
    call = eqn.params["call_jaxpr"]
    inner = call if isinstance(call, Jaxpr) else call.jaxpr
    found, kept = dce_jaxpr(inner, used_outputs)
    call = found if isinstance(call, Jaxpr) else call.replace(jaxpr=found)
    return kept, eqn.replace(
        params={**eqn.params, "call_jaxpr": call},
        invars=[v for v, keep in zip(eqn.invars, kept, strict=True) if keep],
        outvars=[v for v, used in zip(eqn.outvars, used_outputs, strict=True) if used],
    )


class _NotRead(dict):
    """A table of rules that numjet has others for."""

    def __init__(self, name: str, instead: str) -> None:
        super().__init__()
        self.name, self.instead = name, instead

    def __setitem__(self, primitive: Any, rule: Callable) -> None:
        raise NotImplementedError(
            f"interpreters.partial_eval.{self.name}: numjet splits and prunes equations by rules "
            f"of its own, so that one for {primitive} would not be used. {self.instead}"
        )


_SPLIT = "An equation with unknown operands is recorded as a whole."
custom_partial_eval_rules = _NotRead("custom_partial_eval_rules", _SPLIT)
partial_eval_jaxpr_custom_rules = _NotRead("partial_eval_jaxpr_custom_rules", _SPLIT)


def _dead_code_rule(primitive: Any) -> Callable | None:
    found = primitive.prune
    return found.rule if type(found) is EquationRule else None


def _set_dead_code_rule(primitive: Any, rule: Callable | None) -> None:
    if primitive in REGISTRY.values():
        raise NotImplementedError(
            f"interpreters.partial_eval.dce_rules: {primitive} is numjet's own primitive, which "
            "has a rule of its own. Register rules for your primitives."
        )
    primitive.prune = None if rule is None else EquationRule(rule)


# rule(used results, equation) -> (read operands, the equation with the used results, or None).
dce_rules = Rules("interpreters.partial_eval.dce_rules", _dead_code_rule, _set_dead_code_rule)

__all__ = [
    "DynamicJaxprTracer", "JaxprTracer", "PartialVal", "custom_partial_eval_rules", "dce_jaxpr",
    "dce_jaxpr_call_rule", "dce_jaxpr_closed_call_rule", "dce_jaxpr_consts", "dce_rules",
    "partial_eval_jaxpr_custom_rules", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__]
