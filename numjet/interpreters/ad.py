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

from numjet.api.compiled.jit import clear_caches
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
    """A tangent as an array: zeros where it is `Zero`.

    tangent: an array or a `Zero`.

    >>> from numjet.interpreters import ad
    >>> ad.instantiate_zeros(ad.Zero(jnp.ones(2).aval))
    Array([0., 0.], dtype=float32)
    """
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
    """The transpose rule of a primitive.

    p: a primitive. Raises NotImplementedError where there is none.

    >>> from numjet.interpreters import ad
    >>> neg_p = nj.make_jaxpr(jnp.negative)(1.0).eqns[0].primitive
    >>> callable(ad.get_primitive_transpose(neg_p))
    True
    """
    try:
        return primitive_transposes[p]
    except KeyError:
        raise NotImplementedError(
            f"Transpose rule (for reverse-mode differentiation) for {p.name!r} not implemented"
        ) from None


# ------------------------------------------------------------------ making rules
def deflinear(primitive: Primitive, transpose_rule: Callable) -> None:
    """Say that a primitive is linear in all operands.

    primitive: the primitive; its tangent is itself, of tangents. transpose_rule(ct, **params) gives
    a cotangent for each operand.

    >>> from numjet.extend.core import Primitive
    >>> from numjet.interpreters import ad
    >>> half_p = Primitive("half")
    >>> _ = half_p.def_impl(lambda x: x / 2)
    >>> _ = half_p.def_abstract_eval(lambda x: x)
    >>> ad.deflinear(half_p, lambda ct: [half_p.bind(ct)])
    >>> nj.grad(half_p.bind)(8.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    deflinear2(primitive, lambda ct, *_, **params: transpose_rule(ct, **params))


def deflinear2(primitive: Primitive, transpose_rule: Callable) -> None:
    """As `deflinear`, for a rule that looks at the operands.

    primitive: the primitive. transpose_rule(ct, *operands, **params) gives a cotangent for each
    operand, which are `UndefinedPrimal`.

    >>> from numjet.extend.core import Primitive
    >>> from numjet.interpreters import ad
    >>> third_p = Primitive("third")
    >>> _ = third_p.def_impl(lambda x: x / 3)
    >>> _ = third_p.def_abstract_eval(lambda x: x)
    >>> ad.deflinear2(third_p, lambda ct, x: [third_p.bind(ct)])
    >>> nj.grad(third_p.bind)(9.0).round(3)
    Array(0.333, dtype=float32, weak_type=True)
    """

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
    """Give a primitive of one result a rule for tangents, operand by operand.

    primitive: the primitive. jvprules: for each operand `rule(tangent, *primals, **params)`, or
    None where it has no derivative. What the rules give is added up.

    >>> from numjet.extend.core import Primitive
    >>> from numjet.interpreters import ad
    >>> square_p = Primitive("square of one")
    >>> _ = square_p.def_impl(lambda x: x * x)
    >>> _ = square_p.def_abstract_eval(lambda x: x)
    >>> ad.defjvp(square_p, lambda t, x: 2 * x * t)
    >>> nj.grad(square_p.bind)(3.0)
    Array(6., dtype=float32, weak_type=True)
    """


    def without_result(rule: Callable) -> Callable:
        return lambda t, _, *primals, **params: rule(t, *primals, **params)

    defjvp2(primitive, *[None if rule is None else without_result(rule) for rule in jvprules])


def defjvp2(primitive: Primitive, *jvprules: Callable | None) -> None:
    """As `defjvp`, for rules that use the result.

    primitive: the primitive. jvprules: `rule(tangent, out, *primals, **params)` each, or None.

    >>> from numjet.extend.core import Primitive
    >>> from numjet.interpreters import ad
    >>> root_p = Primitive("root")
    >>> _ = root_p.def_impl(jnp.sqrt)
    >>> _ = root_p.def_abstract_eval(lambda x: x)
    >>> ad.defjvp2(root_p, lambda t, out, x: t / (2 * out))
    >>> nj.grad(root_p.bind)(4.0)
    Array(0.25, dtype=float32, weak_type=True)
    """

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple:
        out = primitive.bind(*primals, **params)
        total: Any = Zero(aval_of(out).tangent())
        for rule, t in zip(jvprules, tangents, strict=True):
            if rule is not None and type(t) is not Zero:
                total = add_tangents(total, rule(t, out, *primals, **params))
        return out, total

    primitive_jvps[primitive] = jvp


def defbilinear(prim: Primitive, lhs_rule: Callable, rhs_rule: Callable) -> None:
    """Say that a primitive is linear in each of two operands.

    prim: the primitive. lhs_rule(ct, lhs, rhs, **params) and rhs_rule, likewise, give the cotangent
    of the operand that is `UndefinedPrimal` then.

    >>> from numjet.extend.core import Primitive
    >>> from numjet.interpreters import ad
    >>> times_p = Primitive("times")
    >>> _ = times_p.def_impl(lambda x, y: x * y)
    >>> _ = times_p.def_abstract_eval(lambda x, y: x)
    >>> ad.defbilinear(times_p, lambda ct, _, y: times_p.bind(ct, y),
    ...                  lambda ct, x, _: times_p.bind(x, ct))
    >>> nj.grad(times_p.bind)(2.0, 5.0)
    Array(5., dtype=float32, weak_type=True)
    """
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
    """Whether a transpose rule got this for an operand that the primitive is linear in.

    x: what the rule got.

    >>> from numjet.interpreters import ad
    >>> ad.is_undefined_primal(jnp.ones(2)), ad.is_undefined_primal(ad.UndefinedPrimal(None))
    (False, True)
    """
    return type(x) is UndefinedPrimal


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents or cotangents x and y, where each may be `Zero`.

    >>> from numjet.interpreters import ad
    >>> ad.add_tangents(ad.Zero(jnp.ones(2).aval), jnp.ones(2))
    Array([1., 1.], dtype=float32)
    """
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else add_any(as_array(x), as_array(y))


def add_jaxvals(x: Any, y: Any) -> Any:
    """The sum of two arrays x and y of one aval, as cotangents are added.

    >>> from numjet.interpreters import ad
    >>> ad.add_jaxvals(jnp.ones(2), jnp.ones(2))
    Array([2., 2.], dtype=float32)
    """
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
    """Outputs and tangents of a flat function: one that takes arrays and gives a sequence of them.

    fun: the function, wrapped by `linear_util` or not; with has_aux it gives a pair, whose second
    part comes third. primals, tangents: as many arrays; tangents may be `Zero`. instantiate:
    whether (or for which outputs) zero tangents become arrays. transform_stack: a name for what is
    traced, which is not shown here. Raises TypeError for other numbers of tangents.

    >>> from numjet.interpreters import ad
    >>> ad.jvp(lambda x, y: [x * y], (2.0, 3.0), (1.0, 0.0))
    ([Array(6., dtype=float32, weak_type=True)], [Array(3., dtype=float32, weak_type=True)])
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
    """Not there: raises NotImplementedError, as its arguments are JAX's own containers. Use
    numjet.linearize.

    traceable, primals_ft, has_aux, is_vjp: what JAX's takes.

    >>> from numjet.interpreters import ad
    >>> ad.linearize(jnp.sin, None)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    raise NotImplementedError(
        "interpreters.ad.linearize works on internal containers. Use numjet.linearize(fun, "
        "*primals), which gives the outputs and the linear function."
    )

