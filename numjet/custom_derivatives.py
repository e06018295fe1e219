"""numjet.custom_derivatives: derivative rules by the user, and helpers for writing them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.api.custom import (
    CustomVJPPrimal as CustomVJPPrimal,
    SymbolicZero as SymbolicZero,
    closure_convert as closure_convert,
    custom_gradient as custom_gradient,
    custom_jvp as custom_jvp,
    custom_vjp as custom_vjp,
)
from numjet.base import tree as _tree
from numjet.core.structural import zeros as _zeros


def zero_from_primal(x: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangent of `x`: an array, or a SymbolicZero."""
    from_aval = x.aval.tangent()
    return SymbolicZero(from_aval) if symbolic_zeros else _zeros(from_aval)


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """`tree` with the value of each CustomVJPPrimal in its place."""
    return _tree.tree_map(
        lambda leaf: leaf.value if isinstance(leaf, CustomVJPPrimal) else leaf,
        tree,
        is_leaf=lambda leaf: isinstance(leaf, CustomVJPPrimal),
    )


def linear_call(
    fun: Callable, fun_transpose: Callable, residual_args: Any, linear_args: Any
) -> Any:
    """`fun(residual_args, linear_args)`, linear in the second, whose transpose in reverse mode is
    `fun_transpose(residual_args, cotangent)`."""

    @custom_vjp
    def call(residuals: Any, linear: Any) -> Any:
        return fun(residuals, linear)

    call.defvjp(
        lambda residuals, linear: (fun(residuals, linear), residuals),
        lambda residuals, ct: (None, fun_transpose(residuals, ct)),
    )
    return call(residual_args, linear_args)


__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "custom_vjp_primal_tree_values",
    "linear_call",
    "zero_from_primal",
]
