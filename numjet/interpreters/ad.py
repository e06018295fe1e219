"""Derivative rules of primitives, and what rules need.

`primitive_jvps[p]` is `rule(primals, tangents, **params) -> (out, tangent)`; `primitive_transposes
[p]` is `rule(cotangent, *operands, **params) -> [cotangent or None]`, where operands that the
primitive is linear in are `UndefinedPrimal`. Tangents and cotangents known to be zero are `Zero`.
Rules may be registered for primitives of numjet too. What would break it: see
`extend.primitive`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numjet.api.jit import clear_caches
from numjet.base import tree
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.primitive import Linear as UndefinedPrimal, Primitive, Zero as Zero
from numjet.core.structural import add_any, add_any_p, instantiate, zeros
from numjet.core.trace import aval_of
from numjet.extend.linear_util import WrappedFun
from numjet.extend.primitive import Rules
from numjet.transforms.jvp import (
    JVPTrace as JVPTrace,
    JVPTracer as JVPTracer,
    jvp_call,
)

add_jaxvals_p = add_any_p
zeros_like_aval = zeros


def instantiate_zeros(tangent: Any) -> Any:
    """A tangent as an array: zeros where it is `Zero`."""
    return instantiate(tangent)


tree.register_pytree_node(Zero, lambda z: ((), z.aval), lambda aval, _: Zero(aval))
tree.register_pytree_node(
    UndefinedPrimal, lambda u: ((), u.aval), lambda aval, _: UndefinedPrimal(aval)
)


# ------------------------------------------------------------------ the registers
def _is_users(primitive: Primitive) -> bool:
    return primitive.expansion is not None


def _jvp_rule(primitive: Any) -> Callable | None:
    return primitive.jvp_rule if _is_users(primitive) else primitive.jvp


def _set_jvp(primitive: Any, rule: Callable | None) -> None:
    if _is_users(primitive):
        primitive.jvp_rule = rule
    else:
        primitive.jvp = rule
        clear_caches()  # what was derived from the rule before


def _transpose_rule(primitive: Any) -> Callable | None:
    if _is_users(primitive) and primitive.transpose is not None:
        return primitive.transpose.rule
    return primitive.transpose


def _set_transpose(primitive: Any, rule: Callable | None) -> None:
    if _is_users(primitive):
        primitive.transpose = None if rule is None else _Transposed(rule)
    else:
        primitive.transpose = rule
        clear_caches()


class _Transposed:
    """A transpose rule whose results are arrays, `Zero` or None."""

    __slots__ = ("rule",)

    def __init__(self, rule: Callable) -> None:
        self.rule = rule

    def __call__(self, cts: Any, *args: Any, **params: Any) -> list[Any]:
        found = self.rule(cts, *args, **params)
        return [ct if ct is None or type(ct) is Zero else as_array(ct) for ct in found]


primitive_jvps = Rules("ad.primitive_jvps", _jvp_rule, _set_jvp)
primitive_transposes = Rules("ad.primitive_transposes", _transpose_rule, _set_transpose)


def get_primitive_transpose(p: Primitive) -> Callable:
    """The transpose rule of `p`. Raises NotImplementedError where it has none."""
    try:
        return primitive_transposes[p]
    except KeyError:
        raise NotImplementedError(
            f"Transpose rule (for reverse-mode differentiation) for {p.name!r} not implemented"
        ) from None


# ------------------------------------------------------------------ making rules
def deflinear(primitive: Primitive, transpose_rule: Callable) -> None:
    """`primitive` is linear in all operands; `transpose_rule(ct, **params)` gives a cotangent for
    each."""
    deflinear2(primitive, lambda ct, *_, **params: transpose_rule(ct, **params))


def deflinear2(primitive: Primitive, transpose_rule: Callable) -> None:
    """`primitive` is linear in all operands; `transpose_rule(ct, *operands, **params)`."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple:
        out = primitive.bind(*primals, **params)
        if all([type(t) is Zero for t in tangents]):
            if primitive.multiple_results:
                return out, [Zero(aval_of(x).tangent()) for x in out]
            return out, Zero(aval_of(out).tangent())
        return out, primitive.bind(*map(instantiate, tangents), **params)

    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = transpose_rule


def defjvp(primitive: Primitive, *jvprules: Callable | None) -> None:
    """A rule for each operand: `rule(tangent, *primals, **params)`, or None for no derivative. The
    results are added up."""


    def without_result(rule: Callable) -> Callable:
        return lambda t, _, *primals, **params: rule(t, *primals, **params)

    defjvp2(primitive, *[None if rule is None else without_result(rule) for rule in jvprules])


def defjvp2(primitive: Primitive, *jvprules: Callable | None) -> None:
    """As `defjvp`, for rules that use the result: `rule(tangent, out, *primals, **params)`."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple:
        out = primitive.bind(*primals, **params)
        total: Any = Zero(aval_of(out).tangent())
        for rule, t in zip(jvprules, tangents, strict=True):
            if rule is not None and type(t) is not Zero:
                total = add_tangents(total, rule(t, out, *primals, **params))
        return out, total

    primitive_jvps[primitive] = jvp


def defbilinear(prim: Primitive, lhs_rule: Callable, rhs_rule: Callable) -> None:
    """`prim` is linear in each of two operands: `lhs_rule(ct, lhs, rhs, **params)` and `rhs_rule`
    give the cotangent of the operand that is `UndefinedPrimal`."""
    defjvp(
        prim,
        lambda t, lhs, rhs, **params: prim.bind(t, rhs, **params),
        lambda t, lhs, rhs, **params: prim.bind(lhs, t, **params),
    )

    def transpose(ct: Any, lhs: Any, rhs: Any, **params: Any) -> list:
        if is_undefined_primal(lhs):
            return [lhs_rule(ct, lhs, rhs, **params), None]
        return [None, rhs_rule(ct, lhs, rhs, **params)]

    primitive_transposes[prim] = transpose


def is_undefined_primal(x: Any) -> bool:
    """Whether a transpose rule got this for an operand that the primitive is linear in."""
    return type(x) is UndefinedPrimal


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents or cotangents, where each may be `Zero`."""
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else add_any(as_array(x), as_array(y))


def add_jaxvals(x: Any, y: Any) -> Any:
    """The sum of two arrays of one aval, as cotangents are added."""
    return add_any(as_array(x), as_array(y))


# ------------------------------------------------------------------ flat functions
def jvp(
    fun: Callable,
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
    instantiate: bool | Sequence[bool] = True,
    transform_stack: bool = True,
) -> Any:
    """Outputs and tangents of a flat function (wrapped by `linear_util` or not) that takes arrays
    and gives a sequence of them.

    With has_aux it gives a pair, whose second part comes third. instantiate: whether (or for which
    outputs) zero tangents become arrays. Raises TypeError for other numbers of tangents.
    """
    del transform_stack  # a name for what is traced, which is not shown here
    if len(primals) != len(tangents):
        raise TypeError(
            f"ad.jvp: {len(primals)} primals need as many tangents, got {len(tangents)}."
        )
    call = fun.call_wrapped if isinstance(fun, WrappedFun) else fun
    aux: list = []

    def run(*args: Any) -> list[Any]:
        found = call(*args)
        if has_aux:
            found, kept = found
            aux.append(kept)
        return [as_array(x) for x in found]

    values = [as_array(x) for x in primals]
    given = [_tangent(x, t) for x, t in zip(values, tangents, strict=True)]
    outs, out_tangents, _ = jvp_call(run, values, given)
    forced = [instantiate] * len(outs) if isinstance(instantiate, bool) else instantiate
    out_tangents = [
        instantiate_zeros(t) if f else t for t, f in zip(out_tangents, forced, strict=True)
    ]
    return (outs, out_tangents, aux[0]) if has_aux else (outs, out_tangents)


def _tangent(primal: Any, tangent: Any) -> Any:
    if type(tangent) is Zero or getattr(tangent, "dtype", None) == dtypes.float0:
        return Zero(primal.aval.tangent())
    return as_array(tangent)


def linearize(traceable: Callable, primals_ft: Any, has_aux: bool = False, is_vjp: bool = False):  # noqa: ANN201
    """Not there: its arguments are JAX's own containers. Use numjet.linearize."""
    raise NotImplementedError(
        "interpreters.ad.linearize works on internal containers. Use numjet.linearize(fun, "
        "*primals), which gives the outputs and the linear function."
    )

