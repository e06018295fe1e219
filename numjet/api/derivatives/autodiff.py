"""Differentiation: `jvp`, `linearize`, `grad`, `value_and_grad`, `checkpoint`.

Reverse mode is linearization followed by transposition (`transforms.linearize`,
`transforms.transpose`); `vjp` is in `api.derivatives.pullbacks`, matrices of derivatives in
`api.derivatives.jacobians`. Public as names of `numjet`. What would break it: gradients of another
dtype or weak type than their arguments, which loops and optimizers carry on.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.api.derivatives import value_tangents
from numjet.api.derivatives.pullbacks import linearize_seen, pull
from numjet.api.flat import (
    Flat,
    RefGiven,
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
from numjet.api.placement.mesh import check_all_entered, get_abstract_mesh
from numjet.base import config, tree
from numjet.base.tracebacks import boundary, unnamed_boundary
from numjet.core import dtypes
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.debug_info import Tracing
from numjet.core.given import Noted, Seen, as_given, tangents_as_given, with_dtypes
from numjet.core.hooks import Sharded
from numjet.core.jaxpr import CONSTS, eval_jaxpr
from numjet.core.memo import Memo
from numjet.core.names import transformation
from numjet.core.primitive import Zero
from numjet.core.refs import RefUse, hold
from numjet.core.remote import traced_with
from numjet.core.structural import convert, instantiate
from numjet.core.trace import aval_of, current_trace
from numjet.core.typed_numbers import no_tangents
from numjet.ops.bodies import stage_once
from numjet.ops.constraint import mesh_cast_p
from numjet.transforms.hi_rules import linearizing
from numjet.transforms.jvp import jvp_call
from numjet.transforms.linearize import of_residuals, tape_to_jaxpr
from numjet.transforms.remat import remat_p
from numjet.transforms.stage import hoist_consts, stage
from numjet.transforms.varying import along


# ------------------------------------------------------------------ forward
@boundary
def jvp(
    fun: Callable, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """The value of `fun(*primals)` and its derivative in the direction `tangents` (forward mode).

    primals: a tuple or list of the arguments, pytrees of arrays. tangents: of the same structure,
    shapes and dtypes; those of integers have dtype float0. has_aux: `fun` returns (out, aux).
    Result: (out, out_tangent), with has_aux (out, out_tangent, aux). It costs about as much as two
    evaluations and keeps nothing. Raises TypeError where structures or dtypes differ or `fun` has a
    rule for reverse mode only, ValueError where shapes differ.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> y, t = nj.jvp(jnp.sin, (0.0,), (2.0,))
    >>> print(y, t)
    0.0 2.0
    """
    check_callable("jvp", fun)
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise TypeError(
            "primal and tangent arguments to jax.jvp must be tuples or lists; found "
            f"{type(primals).__name__} and {type(tangents).__name__}."
        )
    noted: Noted = {}
    try:
        leaves, in_tree = array_leaves("jvp", primals, "primals", noted)
    except RefGiven:
        return _ref_arguments().jvp(jvp, fun, primals, tangents, has_aux)
    tangents = value_tangents.flat_form(in_tree, tangents)
    t_leaves, t_tree = array_leaves("jvp", tangents, "tangents", noted)
    if in_tree != t_tree:
        raise TypeError(
            "primal and tangent arguments to jax.jvp must have the same tree structure; primals "
            f"have tree structure {in_tree} whereas tangents have tree structure {t_tree}. "
            + tree.structure_difference("primals", in_tree, "tangents", t_tree)
        )
    checked = [
        _check_tangent(in_tree, i, x.aval, t, noted)
        for i, (x, t) in enumerate(zip(leaves, t_leaves, strict=True))
    ]
    flat = Flat("jvp", fun, in_tree, has_aux)
    with transformation("jvp"):
        if noted:
            flat.noted = noted
            with Seen(noted):
                outs, out_tangents, _ = jvp_call(flat, leaves, checked)
        else:
            outs, out_tangents, _ = jvp_call(flat, leaves, checked)
    n = flat.n_out
    dense = [_dense_tangent(t) for t in out_tangents[:n]]
    if noted:
        dense = tangents_as_given(outs[:n], dense, noted)
        outs = list(as_given(outs, noted))
    result = flat.unflatten(outs[:n]), value_tangents.values(flat.out_tree, dense)
    return (*result, flat.unflatten_aux(outs[n:])) if has_aux else result


def _check_tangent(
    in_tree: Any, i: int, aval: ShapedArray, t: Any, noted: Noted, linear: bool = False
) -> Any:
    """A tangent of the dtype and weak type that its primal asks for; a linear function keeps weak
    types as they are."""
    want, got = aval.tangent(), t.aval
    if want.shape != got.shape or want.dtype != got.dtype:
        path = leaf_name(in_tree, i)
        where = f"at tangents{path} expected {want.str_short()}, got {got.str_short()}"
        if linear:
            raise ValueError(
                "linearized function called on tangent values inconsistent with the original "
                f"primal values: {where}. Convert the tangent with .astype()."
            )
        if want.shape != got.shape:
            raise ValueError(f"jvp called with different primal and tangent shapes: {where}.")
        raise TypeError(
            "primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in "
            f"case of int/bool primal dtype the tangent dtype must be float0: {where}. Convert the "
            "tangent with .astype(), or pass integers as float0."
        )
    if want.dtype == dtypes.float0:
        return Zero(want)
    if linear and got.manual_axis_type is not want.manual_axis_type:
        more = tuple(sorted(map(str, got.manual_axis_type.varying - want.manual_axis_type.varying)))
        if more:
            raise ValueError(
                "linearized function called on tangent values inconsistent with the original "
                f"primal values: at tangents{leaf_name(in_tree, i)} got {got.str_short()} for "
                f"{want.str_short()}. This might be fixed by applying `jax.lax.pcast(..., {more}, "
                "to='varying')` to the primal value passed to `jax.linearize`."
            )
    if want is got or linear:
        return t
    made = convert(t, want.dtype, want.weak_type)
    if id(t) in noted:
        noted[id(made)] = made, *noted[id(t)][1:]
    return made


@boundary
def linearize(fun: Callable, *primals: Any, has_aux: bool = False) -> Any:
    """The value of `fun(*primals)` and its derivative there, as a linear function of tangents.

    primals: the arguments, pytrees of arrays. has_aux: `fun` returns (out, aux). Result: (out,
    linear), with has_aux (out, linear, aux). linear(*tangents) equals the second result of `jvp`,
    without evaluating `fun` again: use it for many directions at one point. It keeps the
    intermediate values that it needs. Raises TypeError or ValueError, from `linear`, for tangents
    that do not fit.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> y, linear = nj.linearize(jnp.square, 3.0)
    >>> print(y, linear(1.0), linear(2.0))
    9.0 6.0 12.0
    """
    check_callable("linearize", fun)
    noted: Noted = {}
    try:
        leaves, in_tree = array_leaves("linearize", primals, noted=noted)
    except RefGiven:
        return _ref_arguments().linearize(linearize, fun, primals, has_aux)
    flat = Flat("linearize", fun, in_tree, has_aux)
    with linearizing():
        result = linearize_seen(flat, leaves, noted, dtyped=False)
    n = flat.n_out
    outs = [t for t in result.out_tangents[:n] if type(t) is not Zero]
    literals = None if current_trace().at_once else ()  # those that were staged as such
    jaxpr, residuals = tape_to_jaxpr(result.tape, result.in_vars, outs, literals)
    zeros = [t if type(t) is Zero else None for t in result.out_tangents[:n]]
    linear = tree.Partial(
        _LinearMap(jaxpr, in_tree, [x.aval for x in leaves], flat.out_tree, zeros), residuals
    )
    values = as_given(result.outs, noted)
    value = flat.unflatten(values[:n])
    return (value, linear, flat.unflatten_aux(values[n:])) if has_aux else (value, linear)


def _ref_arguments() -> Any:
    """`api.derivatives.ref_arguments`, which few programs need."""
    return importlib.import_module("numjet.api.derivatives.ref_arguments")


class _LinearMap:
    """What `linearize` found, without its residuals: `map(residuals, *tangents)`. Compared by
    identity, as the static part of a `Partial` that jit takes and returns."""

    __slots__ = ("jaxpr", "in_tree", "in_avals", "out_tree", "zeros")

    def __init__(
        self, jaxpr: Any, in_tree: Any, in_avals: list, out_tree: Any, zeros: list
    ) -> None:
        self.jaxpr, self.in_tree, self.in_avals = jaxpr, in_tree, in_avals
        self.out_tree, self.zeros = out_tree, zeros

    def __repr__(self) -> str:
        return f"LinearMap({of_residuals(self.jaxpr, len(self.in_avals))})"

    def __call__(self, residuals: Sequence[Any], *tangents: Any) -> Any:
        noted: Noted = {}
        given = value_tangents.flat_form(self.in_tree, tangents)
        leaves, treedef = array_leaves("linearize", given, "tangents", noted)
        if treedef != self.in_tree:
            raise TypeError(
                f"linearize: the linear function takes tangents of structure {self.in_tree}, got "
                f"{treedef}. "
                + tree.structure_difference("the point", self.in_tree, "the tangents", treedef)
            )
        checked = [
            instantiate(_check_tangent(self.in_tree, i, aval, t, noted, True))
            for i, (aval, t) in enumerate(zip(self.in_avals, leaves, strict=True))
        ]
        found = iter(eval_jaxpr(self.jaxpr, [], *residuals, *checked))
        outs = [next(found) if z is None else _dense_tangent(z) for z in self.zeros]
        return value_tangents.values(self.out_tree, as_given(outs, noted))


def _dense_tangent(t: Any) -> Any:
    """A tangent as an array; float0 as a NumPy array."""
    if t.aval.dtype == dtypes.float0:
        return no_tangents(t.aval.shape)
    return instantiate(t)


# ------------------------------------------------------------------ reverse
def value_and_grad(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence = (),
) -> Callable:
    """The value of `fun` and its gradient in the arguments that `argnums` names, from one
    evaluation.

    All arguments are those of `grad`: fun returns a real scalar (with has_aux a pair of it and
    auxiliary data, with holomorphic a complex one), argnums says in which of its arguments it is
    differentiated, allow_int admits integer arguments (float0), reduce_axes has no effect. The
    returned function gives (value, gradient), or ((value, aux), gradient). Raises TypeError for an
    output that is no scalar or not real, and for integer arguments.

    >>> import numjet as nj
    >>> value, slope = nj.value_and_grad(lambda x: x ** 2)(3.0)
    >>> print(value, slope)
    9.0 6.0
    >>> print(nj.value_and_grad(lambda x: (x ** 2, "note"), has_aux=True)(3.0)[0][1])
    note
    """
    check_callable("value_and_grad", fun)
    if reduce_axes:
        raise NotImplementedError(
            "grad: reduce_axes is not supported. Sum over the axis with lax.psum in the function."
        )
    check_argnums("grad", argnums)
    name = name_of(fun)

    @wraps(fun)
    @unnamed_boundary
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        nums: tuple[int, ...]
        if type(argnums) is int and 0 <= argnums < len(args):
            nums, chosen = (argnums,), (args[argnums],)
        else:
            nums = (
                argnums_tuple("grad", argnums, len(args), name)
                if args or argnums != 0
                else _no_args(fun, args, kwargs)
            )
            chosen = tuple([args[i] for i in nums])
        noted: Noted = {}
        leaves, in_tree = array_leaves("grad", chosen, "argument", noted)
        of_values = value_tangents.without_own(in_tree)
        for i, x in enumerate(leaves):
            if (holomorphic or x.aval.dtype is not dtypes.float32) and i not in of_values:
                check_input("grad", name, in_tree, i, x.aval, holomorphic, allow_int)
        flat = Flat("grad", close_over(fun, args, kwargs, nums), in_tree, has_aux)
        result = linearize_seen(flat, leaves, noted)
        outs = result.outs[: flat.n_out]
        if flat.n_out != 1 or flat.out_tree.num_nodes != 1:
            raise TypeError(
                "Gradient only defined for scalar-output functions. Output was of structure "
                f"{flat.out_tree}: {name} must return the loss alone, or (loss, auxiliary data) "
                "with has_aux=True."
            )
        aval = aval_of(outs[0])
        if aval.shape or holomorphic or aval.dtype is not dtypes.float32:
            _check_output(name, aval, holomorphic)
        if Sharded.active:
            check_all_entered([*leaves, outs[0]])
        found = pull(result, leaves, 1, [_first_cotangent(aval, leaves)])
        grads = value_tangents.values(in_tree, found, True)
        grads = grads[0] if isinstance(argnums, int) else grads
        values = as_given(result.outs, noted)
        value = values[0]
        return (
            ((value, flat.unflatten_aux(values[1:])), grads)
            if has_aux
            else (value, grads)
        )

    return described(
        value_and_gradient, fun,
        f"Value and gradient of {{}} with respect to positional argument(s) {argnums}. Takes the "
        "same arguments as {} but returns a pair: its value, and the gradient, of the shape of "
        "these arguments."
    )


def _no_args(fun: Callable, args: tuple, kwargs: dict) -> tuple:
    fun(*args, **kwargs)  # the function's own TypeError says which argument is missing
    raise TypeError(
        "differentiating with respect to argnums=0 requires at least 1 positional arguments to be "
        "passed by the caller, but got only 0 positional arguments. Pass what is differentiated by "
        "position."
    )


_ones: dict[ShapedArray, ArrayImpl] = Memo("ones")


def _one(aval: ShapedArray) -> ArrayImpl:
    found = _ones.get(aval)
    if found is None:
        found = _ones[aval] = ArrayImpl(np.ones((), aval.dtype), aval)
    return found


def _first_cotangent(aval: ShapedArray, leaves: Sequence[Any]) -> Any:
    """The cotangent of a result; where `make_jaxpr` asks, over the mesh around as JAX shows it."""
    one = _one(aval)
    if config.jax_equations.uses and current_trace().staging is not None:
        placed = next((x.aval.placed for x in leaves if x.aval.placed is not None), None)
        mesh = get_abstract_mesh() if placed is None else placed.mesh
        if not mesh.empty and not mesh.manual_axes and config.jax_form():
            return mesh_cast_p.bind(one, mesh=mesh)
    return one


def check_input(
    what: str,
    name: str,
    in_tree: Any,
    i: int,
    aval: ShapedArray,
    holomorphic: bool,
    allow_int: bool,
) -> None:
    dtype = aval.dtype
    if holomorphic:
        if not dtypes.is_complex(dtype):
            raise TypeError(
                f"{what} with holomorphic=True requires inputs with complex dtype, but got "
                f"{dtype.name} as argument{leaf_name(in_tree, i)} of {name}. Convert it with "
                ".astype(complex), or drop holomorphic."
            )
    elif not dtypes.is_inexact(dtype) and not allow_int:
        raise TypeError(
            f"{what} requires real- or complex-valued inputs (input dtype that is a sub-dtype of "
            f"np.inexact), but got {dtype.name} as argument{leaf_name(in_tree, i)} of {name}. Pass "
            "a float, choose other argnums, or set allow_int to True for float0 gradients."
        )


def _check_output(name: str, aval: ShapedArray, holomorphic: bool) -> None:
    if aval.shape:
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output had shape: {aval.shape}. "
            f"It is what {name} returned. Reduce it (jnp.sum, jnp.mean), or "
            "use jacrev or vjp."
        )
    if holomorphic:
        if not dtypes.is_complex(aval.dtype):
            raise TypeError(
                "grad with holomorphic=True requires outputs with complex dtype, but got "
                f"{aval.dtype.name} from {name}."
            )
    elif not dtypes.is_floating(aval.dtype):
        raise TypeError(
            "grad requires real-valued outputs (output dtype that is a sub-dtype of np.floating), "
            f"but got {aval.dtype.name} from {name}. "
            + (
                "For a holomorphic function pass holomorphic=True; otherwise return a real loss, "
                "such as jnp.abs(z)."
                if dtypes.is_complex(aval.dtype)
                else "Integers have no derivative: return a float loss, without .astype(int)."
            )
        )


def grad(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence = (),
) -> Callable:
    """The gradient of `fun` in the arguments that `argnums` names, as a function of the same
    arguments.

    fun: a function with a real scalar as its result (shape (), floating); with has_aux a pair of it
    and a pytree that is passed on. argnums: an integer or several, negative ones from the end; the
    arguments are pytrees of floating or complex arrays. holomorphic: `fun` is complex
    differentiable, and arguments and result are complex. allow_int: integer arguments have
    gradients of dtype float0. reduce_axes is taken for JAX's sake and has no effect.

    The result has the structure, shapes and dtypes of the argument (a tuple where argnums is a
    sequence); with has_aux it is (gradient, aux). It can be differentiated again, mapped and
    compiled. For complex arguments of a real function it is ∂f/∂Re z - i ∂f/∂Im z, as in JAX: the
    conjugate of the direction of steepest ascent. Raises TypeError for an output that is no real
    scalar, for arguments that are not floating, and for argnums that no argument has.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> nj.grad(lambda x, y: jnp.sum(x * y))(jnp.array([1.0, 2.0]), 3.0)
    Array([3., 3.], dtype=float32)
    >>> print(nj.grad(nj.grad(lambda x: x ** 3))(2.0))
    12.0
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @wraps(fun)
    @unnamed_boundary
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, grads = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return described(
        gradient, fun, f"Gradient of {{}} with respect to positional argument(s) {argnums}. Takes "
        "the same arguments as {} but returns the gradient, of the shape of these arguments."
    )


# ------------------------------------------------------------------ checkpoint
def checkpoint(
    fun: Callable,
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: Any = (),
    concrete: Any = None,
) -> Any:
    """`fun`, whose intermediate values are computed again in the backward pass instead of being
    kept.

    fun: a function of pytrees of arrays; with options `functools.partial(checkpoint, ...)` is a
    decorator. policy(primitive, *avals, **params) -> bool says which values may be kept (see
    `checkpoint_policies`); None keeps the arguments only. static_argnums, static_argnames:
    arguments that are Python values. prevent_cse: keep the compiler from merging the second
    computation with the first; of a sequence with an entry for each argument one True does so.
    concrete: an option that is no more (NotImplementedError where it is given). The value and its
    derivatives of every order are those of `fun`; memory is traded for time. `remat` is the same.
    Source: Griewank and Walther, Algorithm 799 (2000).

    >>> import numjet as nj, numjet.numpy as jnp
    >>> print(nj.grad(nj.checkpoint(lambda x: jnp.sin(jnp.sin(x))))(0.0))
    1.0
    """
    if concrete is not None:
        raise NotImplementedError(
            "The `concrete` option to `checkpoint` is not there any more. Name the arguments that "
            "are Python values in static_argnums."
        )
    check_callable("checkpoint", fun)
    statics = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    static_names = (
        (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    )

    @wraps(fun)
    @unnamed_boundary
    def remat(*args: Any, **kwargs: Any) -> Any:
        if not all([-len(args) <= s < len(args) for s in statics]):
            raise ValueError(
                "the `static_argnums` argument to `checkpoint` can only take integer values "
                "greater than or equal to `-len(args)` and less than `len(args)`, but got "
                f"{statics}, while {name_of(fun)} was called with {len(args)} positional arguments."
            )
        nums = (
            tuple([i for i in range(len(args)) if i not in {s % len(args) for s in statics}])
            if args
            else ()
        )
        named = {k: v for k, v in kwargs.items() if k in static_names}
        rest = {k: v for k, v in kwargs.items() if k not in static_names}
        dynamic_args = (tuple([args[i] for i in nums]), rest)
        noted: Noted = {}
        held = hold(dynamic_args) or dynamic_args
        leaves, in_tree = array_leaves("checkpoint", held, noted=noted)
        if not isinstance(prevent_cse, bool):
            tree.flatten_axes("checkpoint prevent_cse", in_tree.children()[0], tuple(prevent_cse))

        def call(dynamic: tuple, kw: dict) -> Any:
            full = list(args)
            for i, x in zip(nums, dynamic, strict=True):
                full[i] = x
            return fun(*full, **kw, **named)

        flat = Flat("checkpoint", call, in_tree)
        use, label, avals = RefUse(), "checkpoint / remat", [x.aval for x in leaves]
        consts: Sequence[Any]
        with traced_with(leaves):
            if kwargs or len(nums) != len(args):
                static = [i for i in range(len(args)) if i not in nums]
                traced = Tracing(fun, label, in_tree, static=static)
                jaxpr, consts = stage(flat, avals, name_of(fun), traced, use, along(leaves))
                jaxpr.debug = traced.told(flat.out_tree)
            else:  # traced once, as under jit
                jaxpr, consts, flat.out_tree = stage_once(
                    fun, in_tree.children()[0], avals, label, use, along(leaves)
                )
        closed = hoist_consts(jaxpr)
        if consts:
            closed.cache[CONSTS] = len(consts)
        outs = remat_p.bind(
            *consts,
            *leaves,
            *use.values(),
            jaxpr=closed,
            policy=policy,
            prevent_cse=prevent_cse,
        )
        n = len(outs) - len(use.written)
        for ref, value in zip(use.written, outs[n:], strict=True):
            ref.put_back(value)
        with_dtypes(noted)
        return flat.unflatten(as_given(outs[:n], noted))

    return remat


def remat(
    fun: Callable,
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable | None = None,
    static_argnums: int | Sequence[int] = (),
    concrete: Any = None,
) -> Any:
    """`checkpoint`, under its older name.

    fun, prevent_cse, policy, static_argnums, concrete: as there, and what is raised too.
    Differentiable to every order.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> print(nj.grad(nj.remat(lambda x: jnp.sin(jnp.sin(x))))(0.0))
    1.0
    """
    return checkpoint(
        fun, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums,
        concrete=concrete,
    )  # fmt: skip
