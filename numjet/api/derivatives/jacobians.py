"""Whole matrices of derivatives: `jacfwd`, `jacrev`, `hessian`.

One `jvp` or one pullback for each unit vector, vectorized by `vmap`. Public as names of `numjet`;
sparse arrays have their own forms of these. What would break it: a `vmap` rule that is missing for
an operation's derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.api.derivatives.autodiff import check_input
from numjet.api.derivatives.pullbacks import VJP, linearize_seen
from numjet.api.flat import (
    Flat,
    argnums_tuple,
    array_leaves,
    check_argnums,
    check_callable,
    close_over,
    described,
    leaf_name,
    name_of,
    wraps,
)
from numjet.api.maps.mapping import vmap
from numjet.api.placement.devices import over_current
from numjet.base import config, tree
from numjet.base.tracebacks import unnamed_boundary
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.dims import is_symbolic
from numjet.core.given import Noted, Seen, as_given
from numjet.core.structural import (
    broadcast_in_dim,
    convert,
    convert_element_type_p,
    instantiate,
    scalar,
    zeros,
)
from numjet.core.trace import aval_of
from numjet.ops.arithmetic import add, sub
from numjet.ops.logic import eq
from numjet.ops.named import split_p
from numjet.ops.shape import broadcasted_iota, iota, reshape
from numjet.transforms.jvp import jvp_call


def _basis(leaves: Sequence[Any]) -> list[Any]:
    """For each leaf the unit vectors of the whole flat space, along a leading axis."""
    sizes = [x.aval.size for x in leaves]
    total, at, out = sum(sizes), 0, []
    if config.jax_form() and not is_symbolic(total):
        return _shown_basis(leaves, sizes, total)
    for x, n in zip(leaves, sizes, strict=True):
        if is_symbolic(total):
            rows = sub(iota(dtypes.int32, total), scalar(at, dtypes.int32))
            columns = broadcast_in_dim(iota(dtypes.int32, n), (total, n), (1,))
            on = eq(broadcast_in_dim(rows, (total, n), (0,)), columns)
            unit = reshape(convert(on, x.aval.dtype), (total, *x.aval.shape))
            out.append(convert(unit, x.aval.dtype, x.aval.weak_type))
            at += n
            continue
        eye = np.zeros((total, n), dtypes.physical(x.aval.dtype))
        eye[at : at + n] = np.eye(n, dtype=eye.dtype)
        unit = over_current(as_array(eye.reshape(total, *x.aval.shape)), False)
        out.append(convert(unit, x.aval.dtype, x.aval.weak_type))
        at += n
    return out


def _shown_basis(leaves: Sequence[Any], sizes: list[int], total: int) -> list[Any]:
    """`_basis` in the equations that JAX writes."""
    rows, columns = [broadcasted_iota(dtypes.int32, (total, total), axis) for axis in (0, 1)]
    on = eq(add(rows, scalar(0, dtypes.int32)), columns)
    dtype = dtypes.promote(*[(x.aval.dtype, False) for x in leaves])[0]
    whole, out = convert(on, dtype), []
    for x, unit in zip(leaves, _blocks(whole, sizes, 1), strict=True):
        aval = x.aval
        if aval.ndim != 1:
            unit = reshape(unit, (total, *aval.shape))
        out.append(
            convert_element_type_p.bind(unit, new_dtype=aval.dtype, weak_type=aval.weak_type)
        )
    return out


def _blocks(x: Any, sizes: list[int], axis: int) -> list[Any]:
    """Parts of the whole flat space along an axis, as one equation."""
    return split_p.bind(x, sizes=tuple(map(np.int64, sizes)), axis=axis)


def _unstack(x: Any, leaves: Sequence[Any], axis: int) -> list[Any]:
    """Cut axis `axis` of the whole flat space into one block a leaf, with the leaf's shape."""
    from_shape, at, out = x.shape, 0, []
    if config.jax_form() and not is_symbolic(x.aval.size):
        parts = _blocks(x, [leaf.aval.size for leaf in leaves], axis)
        shapes = [(*from_shape[:axis], *y.aval.shape, *from_shape[axis + 1 :]) for y in leaves]
        return [
            part if part.shape == shape else reshape(part, shape)
            for part, shape in zip(parts, shapes, strict=True)
        ]
    for leaf in leaves:
        shape, n = leaf.aval.shape, leaf.aval.size
        index = tuple([slice(None)] * axis + [slice(at, at + n)])
        out.append(reshape(x[index], (*from_shape[:axis], *shape, *from_shape[axis + 1 :])))
        at += n
    return out


def jacfwd(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable:
    """The Jacobian of `fun` by forward mode: one `jvp` for each element of the argument,
    vectorized.

    Arguments as of `grad` (fun may return any pytree of arrays; argnums, has_aux, holomorphic). The
    returned function gives, for each leaf of the output and of the argument, an array of the
    output's shape followed by the argument's; with has_aux (Jacobian, aux). Better than `jacrev`
    where there are fewer inputs than outputs. Raises TypeError for arguments that are not real
    floating (complex with holomorphic).

    >>> import numjet as nj, numjet.numpy as jnp
    >>> nj.jacfwd(lambda x: x ** 2)(jnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    check_callable("jacfwd", fun)
    check_argnums("jacfwd", argnums)
    name = name_of(fun)

    @wraps(fun)
    @unnamed_boundary
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        partial, leaves, in_tree, noted = _chosen("jacfwd", fun, argnums, args, kwargs)
        for i, x in enumerate(leaves):
            _check_jacfwd_input(name, in_tree, i, x.aval, holomorphic)
        treedef_out: list = []

        def push(*tangents: Any) -> Any:
            flat = Flat("jacfwd", partial, in_tree, has_aux)
            outs, ts, _ = jvp_call(flat, leaves, tangents)
            n = flat.n_out
            outs[:n] = map(as_array, outs[:n])
            treedef_out.append(flat)
            for x in outs[:n]:
                _check_jacobian_output("jacfwd", name, x.aval, holomorphic)
            # Integer results do not change: zeros of their own dtype, not of float0.
            return [
                zeros(x.aval.strong())
                if t.aval.dtype == dtypes.float0
                else convert(instantiate(t), t.aval.dtype, x.aval.weak_type)
                for x, t in zip(outs[:n], ts[:n], strict=True)
            ], outs[n:]

        with Seen(noted):
            columns, aux = vmap(push, in_axes=0, out_axes=(-1, None))(*_basis(leaves))
        flat = treedef_out[0]
        blocks = [_unstack(c, leaves, c.ndim - 1) for c in columns]
        jac = flat.unflatten([_pick(tree.tree_unflatten(in_tree, b), argnums) for b in blocks])
        if not has_aux:
            return jac
        return jac, flat.unflatten_aux(as_given(aux, noted))

    return described(
        jacobian, fun,
        f"Jacobian of {{}} with respect to positional argument(s) {argnums}. Takes the same "
        "arguments as {} but returns the derivatives of its output with respect to these."
    )


def jacrev(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable:
    """The Jacobian of `fun` by reverse mode: one pullback for each element of the output,
    vectorized.

    Arguments as of `grad` (fun may return any pytree of arrays; argnums, has_aux, holomorphic,
    allow_int). The returned function gives, for each leaf of the output and of the argument, an
    array of the output's shape followed by the argument's; with has_aux (Jacobian, aux). Better
    than `jacfwd` where there are fewer outputs than inputs. `jacobian` is the same.
    Raises TypeError for arguments or outputs that are not floating.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> nj.jacrev(lambda x: jnp.array([x[0] * x[1], x[1]]))(jnp.array([1.0, 2.0]))
    Array([[2., 1.],
           [0., 1.]], dtype=float32)
    """
    check_callable("jacrev", fun)
    name = name_of(fun)

    @wraps(fun)
    @unnamed_boundary
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        partial, leaves, in_tree, noted = _chosen("jacrev", fun, argnums, args, kwargs)
        for i, x in enumerate(leaves):
            check_input("jacrev", name, in_tree, i, x.aval, holomorphic, allow_int)
        flat = Flat("jacrev", partial, in_tree, has_aux)
        result = linearize_seen(flat, leaves, noted)
        outs = [as_array(x) for x in result.outs[: flat.n_out]]
        for x in outs:
            _check_jacobian_output("jacrev", name, aval_of(x), holomorphic)
        pullback = VJP(flat, in_tree, result, leaves)
        rows = vmap(lambda *cts: _whole(leaves, pullback.pull(cts)))(*_basis(outs))
        blocks = [_unstack(r, outs, 0) for r in rows]  # [argument leaf][output leaf]
        jac = flat.unflatten(
            [
                _pick(tree.tree_unflatten(in_tree, [b[i] for b in blocks]), argnums)
                for i in range(len(outs))
            ]
        )
        if not has_aux:
            return jac
        return jac, flat.unflatten_aux(as_given(result.outs[flat.n_out :], noted))

    return described(
        jacobian, fun,
        f"Jacobian of {{}} with respect to positional argument(s) {argnums}. Takes the same "
        "arguments as {} but returns the derivatives of its output with respect to these."
    )


def jacobian(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable:
    """`jacrev`, under another name.

    fun, argnums, has_aux, holomorphic, allow_int: as there. Raises TypeError for arguments or
    outputs that are not floating. Differentiable to every order.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> nj.jacobian(lambda x: x ** 2)(jnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    return jacrev(fun, argnums, has_aux, holomorphic, allow_int)


def _chosen(which: str, fun: Callable, argnums: Any, args: tuple, kwargs: dict) -> tuple:
    """The function of the arguments that are differentiated, their leaves and structure, and what
    these leaves were made of."""
    nums = argnums_tuple(which, argnums, len(args), name_of(fun))
    chosen = tuple([args[i] for i in nums])
    noted: Noted = {}
    leaves, in_tree = array_leaves(which, chosen, noted=noted)
    return close_over(fun, args, kwargs, nums), leaves, in_tree, noted


def _whole(leaves: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    """Cotangents, weakly typed as the arguments are; zeros of their own dtype for integers."""
    return [
        convert(ct, ct.aval.dtype, x.aval.weak_type)
        if dtypes.is_inexact(x.aval.dtype)
        else zeros(x.aval.strong())
        for x, ct in zip(leaves, cts, strict=True)
    ]


def _pick(by_argument: tuple, argnums: Any) -> Any:
    return by_argument[0] if isinstance(argnums, int) else by_argument


def _check_jacfwd_input(
    name: str, in_tree: Any, i: int, aval: ShapedArray, holomorphic: bool
) -> None:
    if holomorphic:
        check_input("jacfwd", name, in_tree, i, aval, True, False)
    elif not dtypes.is_floating(aval.dtype):
        raise TypeError(
            "jacfwd requires real-valued inputs (input dtype that is a sub-dtype of np.floating), "
            f"but got {aval.dtype.name} as argument{leaf_name(in_tree, i)} of {name}. "
            "Pass a float, or holomorphic=True for a holomorphic function of complex inputs."
        )


def _check_jacobian_output(what: str, name: str, aval: ShapedArray, holomorphic: bool) -> None:
    if holomorphic:
        if not dtypes.is_complex(aval.dtype):
            raise TypeError(
                f"{what} with holomorphic=True requires outputs with complex dtype, but got "
                f"{aval.dtype.name} from {name}."
            )
    elif what == "jacrev" and not dtypes.is_floating(aval.dtype):
        raise TypeError(
            f"{what} requires real-valued outputs (output dtype that is a sub-dtype of "
            f"np.floating), but got {aval.dtype.name} from {name}. For a holomorphic function pass "
            "holomorphic=True."
        )


def hessian(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable:
    """The second derivatives of `fun`: forward mode over reverse mode.

    Arguments as of `grad` (fun: usually with a scalar result; argnums, has_aux, holomorphic). The
    returned function gives arrays of the output's shape followed twice by the argument's; pytrees
    give a tree in a tree. For a product of the Hessian with one vector take `jvp` of `grad`, which
    costs no matrix. Raises TypeError for arguments that are not floating.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> nj.hessian(lambda x: jnp.sum(x ** 3))(jnp.array([1.0, 2.0]))
    Array([[ 6.,  0.],
           [ 0., 12.]], dtype=float32)
    """
    return jacfwd(
        jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
        argnums,
        has_aux=has_aux,
        holomorphic=holomorphic,
    )
