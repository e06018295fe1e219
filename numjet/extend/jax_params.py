"""How equations of our primitives look in JAX's terms, for traces that libraries wrote.

Parameters that JAX's primitives have and ours do without say what has no meaning here (layouts over
devices, accuracies of the hardware), so that JAX's own neutral values are the true ones. Such a
trace is handed them beside ours (`extend.traces`), and a library that binds one of our primitives
may give them back: `bind` refuses any other value. Where two primitives of ours are one of JAX's, a
parameter says which; and one that JAX does not have is handed over as the operations it consists
of. What would break it: an entry for a parameter that a primitive of ours has itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.api.derivatives.implicit import custom_linear_solve
from numjet.core import hooks
from numjet.core.array import ArrayImpl, as_array
from numjet.core.primitive import Primitive
from numjet.lax import linalg, stop_gradient
from numjet.ops.dot import dot_general
from numjet.ops.linalg_core import solve_p
from numjet.ops.logic import round_away_p, round_even_p
from numjet.ops.while_loop import (
    bind_mapped_while,
    is_looked_at,
    reaches_users_trace,
    while_p,
)
from numjet.scipy.linalg import lu_solve

# Primitive -> the parameters that it lacks, and their neutral values.
EXTRA: dict[str, dict[str, Any]] = {
    "jit": {"inline": False, "keep_unused": False},
    **{
        name: {"sharding": None}
        for name in ("broadcast_in_dim", "convert_element_type", "iota", "reshape")
    },
    **{name: {"out_sharding": None} for name in ("conv_general_dilated", "dot_general",
                                                 "reduce_sum")},
    **{
        name: {"accuracy": None}
        for name in ("cbrt", "cos", "exp", "exp2", "expm1", "log", "log1p", "logistic", "rsqrt",
                     "sin", "sqrt", "tan", "tanh")
    },
}  # fmt: skip

_NOT_GIVEN = object()
_NUMBERS = frozenset((bool, int, float, complex))


# Primitive -> JAX's primitive, and the parameters that tell it from others.
_VARIANTS: dict[Primitive, tuple[Primitive, dict[str, Any]]] = {
    round_away_p: (round_away_p, {"rounding_method": 0}),
    round_even_p: (round_away_p, {"rounding_method": 1}),
}


def in_jax_terms(
    primitive: Primitive, args: tuple, params: dict[str, Any]
) -> tuple[Primitive, tuple, dict[str, Any]]:
    """An operation as a trace of JAX's protocol is handed it. Weak scalars are Python numbers."""
    args = tuple([_number(x) for x in args])
    if (variant := _VARIANTS.get(primitive)) is not None:
        return variant[0], args, {**params, **variant[1]}
    extra = EXTRA.get(primitive.name)
    return primitive, args, params if extra is None else {**extra, **params}


def _solve_in_parts(a: Any, b: Any) -> Any:
    """`solve` by operations that JAX has."""
    factors, pivots, _ = linalg.lu(stop_gradient(a))

    def product(x: Any, trans: int) -> Any:
        batch = tuple(range(x.ndim - 2))
        axis = x.ndim - 1 - trans
        return dot_general(a, x, (((axis,), (x.ndim - 2,)), (batch, batch)))

    def solved(x: Any, trans: int) -> Any:
        return lu_solve((factors, pivots), x, trans)

    return custom_linear_solve(
        lambda x: product(x, 0),
        b,
        lambda _, x: solved(x, 0),
        lambda _, x: solved(x, 1),
    )


# Primitives that JAX does not have -> what they consist of.
IN_PARTS: dict[Primitive, Callable[..., Any]] = {solve_p: _solve_in_parts}


def _number(x: Any) -> Any:
    if type(x) is ArrayImpl and x.aval.weak_type and not x.aval.shape:
        number = x.item()
        return number if as_array(number).aval is x.aval else x
    return x


def in_our_terms(
    primitive: Primitive, args: tuple, params: dict[str, Any]
) -> tuple[Primitive, tuple, dict[str, Any]]:
    """The inverse of `in_jax_terms`. Raises NotImplementedError where a parameter of JAX's says
    something."""
    if _NUMBERS.issuperset(map(type, args)):  # beside an array a number is of its dtype
        args = tuple(map(as_array, args))
    if primitive is round_away_p and "rounding_method" in params:
        return (round_even_p if params["rounding_method"] == 1 else round_away_p), args, {}
    extra = EXTRA.get(primitive.name)
    if extra is None or extra.keys().isdisjoint(params):
        return primitive, args, params
    if primitive.name == "jit":  # which takes what it says in `make_jaxpr`
        return primitive, args, params
    for name, neutral in extra.items():
        if (given := params.get(name, _NOT_GIVEN)) is not _NOT_GIVEN and given != neutral:
            raise NotImplementedError(
                f"{primitive.name}: {name}={given!r} has no meaning here; leave it out, or pass "
                f"{neutral!r}."
            )
    return primitive, args, {name: value for name, value in params.items() if name not in extra}


def is_mapped_loop(primitive: Primitive, params: dict[str, Any]) -> bool:
    """Whether it is a `while` with a predicate for each example, which traces of libraries alone
    are handed."""
    return primitive is while_p and bool(params["cond_jaxpr"].out_avals[0].shape)


def accept_extra() -> None:
    """Let every primitive's `bind` take JAX's params. Does nothing the second time."""
    plain = Primitive.bind
    if plain is _installed[0]:
        return

    def bind(self: Primitive, *args: Any, **params: Any) -> Any:
        primitive, operands, rest = in_our_terms(self, args, params)
        if is_mapped_loop(primitive, rest) and not (reaches_users_trace() or is_looked_at()):
            return bind_mapped_while(*operands, **rest)
        return plain(primitive, *operands, **rest)

    _installed[0] = bind
    hooks.install(Primitive, {"bind": bind})


_installed: list[Any] = [None]
