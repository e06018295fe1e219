"""numjet.custom_derivatives: derivative rules by the user, and helpers for writing them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.api.derivatives.custom import (
    CustomVJPPrimal as CustomVJPPrimal,
    SymbolicZero as SymbolicZero,
    closure_convert as closure_convert,
    custom_gradient as custom_gradient,
    custom_jvp as custom_jvp,
    custom_vjp as custom_vjp,
)
from numjet.api.flat import array_leaves as _array_leaves
from numjet.api.maps.mapping import vmap as _vmap
from numjet.base import tree as _tree
from numjet.core import dtypes
from numjet.core.primitive import Zero as _Zero
from numjet.core.structural import instantiate as _instantiate, zeros as _zeros
from numjet.core.trace import aval_of as _aval_of
from numjet.core.typed_numbers import no_tangents as _no_tangents
from numjet.extend.primitive import Primitive as _Primitive
from numjet.interpreters import ad as _ad, batching as _batching, mlir as _mlir
from numjet.transforms.batch import to_front as _to_front
from numjet.transforms.custom_rules import (
    custom_jvp_p as custom_jvp_call_p,
    custom_vjp_p as custom_vjp_call_p,
)
from numjet.transforms.remat import remat_p as remat_opt_p
from numjet.transforms.stage import stage as _stage


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangent of each leaf of a pytree.

    val: arrays. symbolic_zeros: SymbolicZeros instead of arrays of zeros. Integers have zeros of
    dtype float0.

    >>> from numjet import custom_derivatives, numpy as jnp
    >>> custom_derivatives.zero_from_primal(jnp.ones(2))
    Array([0., 0.], dtype=float32)
    """

    def zero(leaf: Any) -> Any:
        aval = _aval_of(leaf).tangent()
        if symbolic_zeros:
            return SymbolicZero(aval)
        if aval.dtype == dtypes.float0:
            return _no_tangents(aval.shape)
        return _zeros(aval)

    return _tree.tree_map(zero, val)


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """A tree with the value of each CustomVJPPrimal in its place.

    tree: a pytree of them, as a forward function with symbolic zeros gets its arguments. Raises
    TypeError for other leaves.

    >>> from numjet import custom_derivatives
    >>> leaf = custom_derivatives.CustomVJPPrimal(2.0, True)
    >>> custom_derivatives.custom_vjp_primal_tree_values([leaf])
    [2.0]
    """

    def value(leaf: Any) -> Any:
        if not isinstance(leaf, CustomVJPPrimal):
            raise TypeError(
                f"custom_vjp_primal_tree_values: unexpected leaf type {type(leaf)}. The arguments "
                "of a forward function of defvjp(..., symbolic_zeros=True) have CustomVJPPrimal."
            )
        return leaf.value

    return _tree.tree_map(value, tree, is_leaf=lambda leaf: isinstance(leaf, CustomVJPPrimal))


# ------------------------------------------------------------------ linear_call
def linear_call(
    fun: Callable, fun_transpose: Callable, residual_args: Any, linear_args: Any
) -> Any:
    """`fun(residual_args, linear_args)`, which is linear in the second, with a transpose of its
    own: `fun_transpose(residual_args, cotangent)` gives cotangents of linear_args.

    Forward mode calls `fun` again, reverse mode `fun_transpose`, whose own transpose is `fun`.
    Raises NotImplementedError where residual_args are differentiated.

    >>> import numjet as nj
    >>> half = lambda x: linear_call(lambda r, x: x / r, lambda r, ct: ct / r, 2.0, x)
    >>> print(nj.grad(half)(3.0))
    0.5
    """
    residuals, res_tree = _array_leaves("linear_call", residual_args)
    operands, in_tree = _array_leaves("linear_call", linear_args)
    n, out_trees = len(residuals), []

    def flat(*xs: Any) -> list[Any]:
        args = _tree.tree_unflatten(res_tree, xs[:n]), _tree.tree_unflatten(in_tree, xs[n:])
        outs, out_tree = _array_leaves("linear_call", fun(*args), "output")
        out_trees.append(out_tree)
        return outs

    def flat_transpose(*xs: Any) -> list[Any]:
        cts = _tree.tree_unflatten(out_trees[-1], xs[n:])
        found = fun_transpose(_tree.tree_unflatten(res_tree, xs[:n]), cts)
        outs, tree = _array_leaves("linear_call", found, "cotangent")
        if tree != in_tree:
            raise TypeError(
                "linear_call: the transpose output pytree must be of the structure of linear_args, "
                f"{in_tree}, got {tree}."
            )
        return outs

    outs = linear_call_p.bind(
        *residuals, *operands, fun=flat, fun_transpose=flat_transpose, num_res=n
    )
    return _tree.tree_unflatten(out_trees[-1], outs)


linear_call_p = _Primitive("linear_call")
linear_call_p.multiple_results = True


@linear_call_p.def_abstract_eval
def _abstract(*avals: Any, fun: Callable, **_: Any) -> list[Any]:
    return _stage(fun, avals, "linear_call")[0].out_avals


def _call(*args: Any, fun: Callable, **_: Any) -> list[Any]:
    return fun(*args)


linear_call_p.def_impl(_call)
_mlir.register_lowering(linear_call_p, _mlir.lower_fun(_call, multiple_results=True))


def _linear_jvp(primals: Any, tangents: Any, *, num_res: int, **params: Any) -> tuple:
    if any([type(t) is not _Zero for t in tangents[:num_res]]):
        raise NotImplementedError(
            "linear_call: residual_args are differentiated, but only the derivative in linear_args "
            "is known. Pass such values in linear_args, or stop their gradient."
        )
    outs = linear_call_p.bind(*primals, num_res=num_res, **params)
    if all([type(t) is _Zero for t in tangents]):
        return outs, [_Zero.from_primal_value(x) for x in outs]
    given = [_instantiate(t) for t in tangents[num_res:]]
    return outs, linear_call_p.bind(*primals[:num_res], *given, num_res=num_res, **params)


def _linear_transpose(
    cts: Any, *args: Any, fun: Callable, fun_transpose: Callable, num_res: int
) -> list[Any]:
    found = linear_call_p.bind(
        *args[:num_res],
        *[_instantiate(ct) for ct in cts],
        fun=fun_transpose,
        fun_transpose=fun,
        num_res=num_res,
    )
    return [*[None] * num_res, *found]


def _linear_batch(
    axis: Any, args: Any, dims: Any, *, fun: Callable, fun_transpose: Callable, num_res: int
) -> tuple:
    # All operands are mapped, so that the transposed call gives an example's cotangent of each.
    values = [_to_front(x, d, axis.size) for x, d in zip(args, dims, strict=True)]
    outs = linear_call_p.bind(
        *values, fun=_vmap(fun), fun_transpose=_vmap(fun_transpose), num_res=num_res
    )
    return outs, [0] * len(outs)


_ad.primitive_jvps[linear_call_p] = _linear_jvp
_ad.primitive_transposes[linear_call_p] = _linear_transpose


def _batch_mapped(axis: Any, args: Any, dims: Any, **params: Any) -> tuple:
    if all([d is None for d in dims]):
        outs = linear_call_p.bind(*args, **params)
        return outs, [None] * len(outs)
    return _linear_batch(axis, args, dims, **params)


_batching.fancy_primitive_batchers[linear_call_p] = _batch_mapped


__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_jvp_call_p",
    "custom_vjp",
    "custom_vjp_call_p",
    "custom_vjp_primal_tree_values",
    "linear_call",
    "remat_opt_p",
    "zero_from_primal",
]


def __dir__() -> list[str]:
    return [*__all__]
