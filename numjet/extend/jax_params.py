"""Parameters of equations that JAX's primitives have and ours do without.

What they say has no meaning here (layouts over devices, accuracies of the hardware), so that JAX's
own neutral values are the true ones. A trace that a library wrote is handed them beside ours
(`extend.traces`), and a library that binds one of our primitives may give them back: `bind` refuses
any other value. What would break it: an entry for a parameter that a primitive of ours has itself.
"""

from __future__ import annotations

from typing import Any

from numjet.core.primitive import Primitive

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


def with_extra(primitive: Primitive, params: dict[str, Any]) -> dict[str, Any]:
    """`params`, and what JAX's primitive of that name has besides."""
    extra = EXTRA.get(primitive.name)
    return params if extra is None else {**extra, **params}


def without_extra(primitive: Primitive, params: dict[str, Any]) -> dict[str, Any]:
    """`params` without JAX's own. Raises NotImplementedError where one says something."""
    extra = EXTRA.get(primitive.name)
    if extra is None or extra.keys().isdisjoint(params):
        return params
    for name, neutral in extra.items():
        if (given := params.get(name, _NOT_GIVEN)) is not _NOT_GIVEN and given != neutral:
            raise NotImplementedError(
                f"{primitive.name}: {name}={given!r} has no meaning here; leave it out, or pass "
                f"{neutral!r}."
            )
    return {name: value for name, value in params.items() if name not in extra}


def accept_extra() -> None:
    """Let every primitive's `bind` take JAX's params. Does nothing the second time."""
    plain = Primitive.bind
    if plain is _installed[0]:
        return

    def bind(self: Primitive, *args: Any, **params: Any) -> Any:
        return plain(self, *args, **(without_extra(self, params) if params else params))

    _installed[0] = bind
    Primitive.bind = bind  # type: ignore[method-assign]


_installed: list[Any] = [None]
