"""Differentiation: `grad`, `value_and_grad`, `jvp`, `vjp`, `linearize`, `linear_transpose`,
`jacfwd`, `jacrev`, `hessian`, `checkpoint`.

Reverse mode is linearization followed by transposition (`transforms.linearize`,
`transforms.transpose`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.api.flat import (
    Flat,
    argnums_tuple,
    array_leaves,
    check_callable,
    close_over,
    name_of,
    wraps,
)
from numjet.api.gradient_places import placed
from numjet.api.jit import JitFunction, ShapeDtypeStruct
from numjet.api.mapping import vmap
from numjet.base import tree
from numjet.core import dtypes
from numjet.core.array import ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import ClosedJaxpr, eval_jaxpr
from numjet.core.memo import Memo
from numjet.core.primitive import Linear, Zero
from numjet.core.refs import RefUse, hold
from numjet.core.structural import convert, instantiate
from numjet.core.trace import aval_of
from numjet.ops.shape import reshape
from numjet.transforms.eager import linearize as linearize_flat
from numjet.transforms.jvp import jvp_call
from numjet.transforms.linearize import Linearized, live_tape, tape_to_jaxpr
from numjet.transforms.remat import checkpoint_policies, remat_p
from numjet.transforms.stage import hoist_consts, stage
from numjet.transforms.transpose import backward_pass, transpose_tape


# ------------------------------------------------------------------ forward
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
    for name, x in (("primals", primals), ("tangents", tangents)):
        if not isinstance(x, tuple | list):
            raise TypeError(
                f"jvp: {name} must be a tuple or list of arguments, got {type(x).__name__}."
            )
    leaves, in_tree = array_leaves("jvp", tuple(primals), "primals")
    t_leaves, t_tree = array_leaves("jvp", tuple(tangents), "tangents")
    if in_tree != t_tree:
        raise TypeError(
            f"jvp: primals and tangents must have the same structure: {in_tree} and {t_tree}. "
            + tree.structure_difference("primals", in_tree, "tangents", t_tree)
        )
    checked = [
        _check_tangent(in_tree, i, x.aval, t)
        for i, (x, t) in enumerate(zip(leaves, t_leaves, strict=True))
    ]
    flat = Flat("jvp", fun, in_tree, has_aux)
    outs, out_tangents, _ = jvp_call(flat, leaves, checked)
    n = flat.n_out
    result = flat.unflatten(outs[:n]), flat.unflatten(
        [_dense_tangent(t) for t in out_tangents[:n]]
    )
    return (*result, flat.unflatten_aux(outs[n:])) if has_aux else result


def _check_tangent(in_tree: Any, i: int, aval: ShapedArray, t: Any) -> Any:
    want, got = aval.tangent(), t.aval
    if want.shape != got.shape or want.dtype != got.dtype:
        mistake = TypeError if want.shape == got.shape else ValueError
        raise mistake(
            f"jvp: tangents{_path(in_tree, i)} must have the shape and tangent dtype of its "
            f"primal: expected {want.str_short()}, got {got.str_short()}. Convert the tangent with "
            ".astype(), or pass integers as float0."
        )
    if want.dtype == dtypes.float0:
        return Zero(want)
    return convert(t, want.dtype, want.weak_type) if want is not got else t


def _path(treedef: Any, i: int) -> str:
    marked = tree.tree_unflatten(treedef, range(treedef.num_leaves))
    return tree.keystr(tree.tree_flatten_with_path(marked)[0][i][0])


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
    leaves, in_tree = array_leaves("linearize", primals)
    flat = Flat("linearize", fun, in_tree, has_aux)
    result = linearize_flat(flat, leaves)
    n = flat.n_out
    outs = [t for t in result.out_tangents[:n] if type(t) is not Zero]
    jaxpr, residuals = tape_to_jaxpr(result.tape, result.in_vars, outs)
    zeros = [t if type(t) is Zero else None for t in result.out_tangents[:n]]
    linear = tree.Partial(
        _LinearMap(jaxpr, in_tree, [x.aval for x in leaves], flat.out_tree, zeros), residuals
    )
    value = flat.unflatten(result.outs[:n])
    return (value, linear, flat.unflatten_aux(result.outs[n:])) if has_aux else (value, linear)


class _LinearMap:
    """What `linearize` found, without its residuals: `map(residuals, *tangents)`. Compared by
    identity, as the static part of a `Partial` that jit takes and returns."""

    __slots__ = ("jaxpr", "in_tree", "in_avals", "out_tree", "zeros")

    def __init__(
        self, jaxpr: Any, in_tree: Any, in_avals: list, out_tree: Any, zeros: list
    ) -> None:
        self.jaxpr, self.in_tree, self.in_avals = jaxpr, in_tree, in_avals
        self.out_tree, self.zeros = out_tree, zeros

    def __call__(self, residuals: Sequence[Any], *tangents: Any) -> Any:
        leaves, treedef = array_leaves("linearize", tangents, "tangents")
        if treedef != self.in_tree:
            raise TypeError(
                f"linearize: the linear function takes tangents of structure {self.in_tree}, got "
                f"{treedef}. "
                + tree.structure_difference("the point", self.in_tree, "the tangents", treedef)
            )
        checked = [
            instantiate(_check_tangent(self.in_tree, i, aval, t))
            for i, (aval, t) in enumerate(zip(self.in_avals, leaves, strict=True))
        ]
        found = iter(eval_jaxpr(self.jaxpr, [], *residuals, *checked))
        return tree.tree_unflatten(
            self.out_tree, [next(found) if z is None else _dense_tangent(z) for z in self.zeros]
        )


# ------------------------------------------------------------------ reverse
class VJP:
    """The pullback of a function at a point: maps cotangents of its outputs to cotangents of its
    arguments. A pytree of its residuals, so that jit and loops take and return it; `parts` is its
    static data.

    `record` is what linearizing recorded, or None for one that was put together from residuals:
    then `jaxpr` maps `residuals` and tangents to output tangents.
    """

    __slots__ = (
        "in_tree", "in_avals", "out_tree", "out_avals", "record", "jaxpr", "residuals", "parts",
        "__weakref__",
    )  # fmt: skip

    def __init__(self, flat: Flat, in_tree: Any, result: Any, leaves: list) -> None:
        self.in_tree, self.in_avals = in_tree, [x.aval for x in leaves]
        self.out_tree = flat.out_tree
        self.out_avals = [aval_of(x) for x in result.outs[: flat.n_out]]
        self.record = result
        self.residuals: list[Any] = []
        self.jaxpr: Any = None
        self.parts: Any = None
        # What no output depends on is not kept while the pullback waits.
        result.tape = live_tape(result.tape, result.out_tangents)

    def __call__(self, cotangents: Any) -> tuple:
        return tree.tree_unflatten(self.in_tree, self._gradients(cotangents))

    def with_refs(self, *maybe_ct_refs: Any) -> Callable[[Any], tuple]:
        """The pullback that leaves gradients in places, one for each array of the arguments: adds
        them to mutable references, gives them for `ad.GradValue()`, and leaves out those of
        `ad.DontWant()`. Its results have `ad.GradRef()` and `ad.DidntWant()` for the others.

        >>> import numjet as nj, numjet.numpy as jnp
        >>> total = nj.new_ref(jnp.zeros(2))
        >>> _, pullback = nj.vjp(lambda x: (x**2).sum(), jnp.array([1.0, 2.0]))
        >>> pullback.with_refs(total)(1.0), total[...]
        ((GradRef(),), Array([2., 4.], dtype=float32))
        """
        return lambda cotangents: placed(
            self.in_tree, self._gradients(cotangents), maybe_ct_refs
        )

    def _gradients(self, cotangents: Any) -> list:
        leaves, treedef = array_leaves("vjp", cotangents, "cotangent")
        if treedef != self.out_tree:
            raise ValueError(
                f"vjp: the cotangent must have the structure of the output, {self.out_tree}, got "
                f"{treedef}. "
                + tree.structure_difference("the output", self.out_tree, "the cotangent", treedef)
            )
        cts = [
            _check_cotangent(self.out_tree, i, aval, ct)
            for i, (aval, ct) in enumerate(zip(self.out_avals, leaves, strict=True))
        ]
        return self.pull(cts)

    def pull(self, cts: Sequence[Any]) -> list[Any]:
        """Flat cotangents of the arguments, dense."""
        record = self.record
        if record is not None:
            out_tangents = record.out_tangents[: len(self.out_avals)]
            found = transpose_tape(record.tape, record.in_vars, out_tangents, cts)
        else:
            args = [*self.residuals, *[Linear(a.tangent()) for a in self.in_avals]]
            given = [ct for ct, out in zip(cts, self.parts.given, strict=True) if out]
            found = backward_pass(self.jaxpr, args, given)[len(self.residuals) :]
        return [_dense(aval, ct) for aval, ct in zip(self.in_avals, found, strict=True)]


class _PulledBack:
    """The static part of a pullback as a pytree; compared by identity. `given` says which outputs
    have a tangent in the jaxpr."""

    __slots__ = ("in_tree", "in_avals", "out_tree", "out_avals", "jaxpr", "given")

    def __init__(self, pullback: VJP, jaxpr: ClosedJaxpr, given: list[bool]) -> None:
        self.in_tree, self.in_avals = pullback.in_tree, pullback.in_avals
        self.out_tree, self.out_avals = pullback.out_tree, pullback.out_avals
        self.jaxpr, self.given = jaxpr, given


def _flatten_pullback(pullback: VJP) -> tuple[list, _PulledBack]:
    if pullback.parts is None:
        record = pullback.record
        tangents = record.out_tangents[: len(pullback.out_avals)]
        given = [type(t) is not Zero for t in tangents]
        jaxpr, pullback.residuals = tape_to_jaxpr(
            record.tape, record.in_vars, [t for t in tangents if type(t) is not Zero]
        )
        pullback.parts = _PulledBack(pullback, ClosedJaxpr(jaxpr, []), given)
    return pullback.residuals, pullback.parts


def _unflatten_pullback(parts: _PulledBack, residuals: Sequence[Any]) -> VJP:
    pullback = object.__new__(VJP)
    pullback.in_tree, pullback.in_avals = parts.in_tree, parts.in_avals
    pullback.out_tree, pullback.out_avals = parts.out_tree, parts.out_avals
    pullback.record, pullback.jaxpr, pullback.parts = None, parts.jaxpr, parts
    pullback.residuals = list(residuals)
    return pullback


tree.register_pytree_node(VJP, _flatten_pullback, _unflatten_pullback)


def pull(result: Linearized, leaves: Sequence[Any], n_out: int, cts: Sequence[Any]) -> list[Any]:
    """Cotangents of `leaves`, dense, from those of the first `n_out` outputs."""
    found = transpose_tape(result.tape, result.in_vars, result.out_tangents[:n_out], cts)
    return [_dense(x.aval, ct) for x, ct in zip(leaves, found, strict=True)]


def _dense(aval: ShapedArray, ct: Any) -> Any:
    """A cotangent as an array, weakly typed where what made it is; float0 as a NumPy array."""
    if ct.aval.dtype == dtypes.float0:
        return np.zeros(ct.aval.shape, dtypes.float0)
    if type(ct) is Zero:
        return convert(instantiate(ct), aval.dtype, aval.weak_type)
    return ct if ct.aval.dtype == aval.dtype else convert(ct, aval.dtype, aval.weak_type)


def _dense_tangent(t: Any) -> Any:
    """A tangent as an array; float0 as a NumPy array."""
    if t.aval.dtype == dtypes.float0:
        return np.zeros(t.aval.shape, dtypes.float0)
    return instantiate(t)


def _check_cotangent(out_tree: Any, i: int, aval: ShapedArray, ct: Any) -> Any:
    want, got = aval.tangent(), ct.aval
    if want.shape != got.shape or want.dtype not in (got.dtype, dtypes.float0):
        raise ValueError(
            f"vjp: cotangent{_path(out_tree, i)} must have the shape and dtype of its output: "
            "expected "
            f"{want.str_short()}, got {got.str_short()}."
        )
    return Zero(want) if want.dtype == dtypes.float0 else ct


def vjp(fun: Callable, *primals: Any, has_aux: bool = False, reduce_axes: Sequence = ()) -> Any:
    """The value of `fun(*primals)` and the function that pulls a cotangent of it back (reverse
    mode).

    primals: the arguments, pytrees of arrays. has_aux: `fun` returns (out, aux). Result: (out,
    pullback), with has_aux (out, pullback, aux). pullback takes one value of the structure, shapes
    and dtypes of `out` and returns a tuple with one cotangent for each primal (float0 for
    integers); it is a pytree, so that compiled functions may return it. reduce_axes has no effect.
    `pullback` raises ValueError for a cotangent of another structure or shape.

    >>> import numjet as nj
    >>> y, pullback = nj.vjp(lambda x, y: x * y, 3.0, 4.0)
    >>> print(y, *pullback(1.0))
    12.0 4.0 3.0
    """
    if reduce_axes:
        raise NotImplementedError(
            "vjp: reduce_axes is not supported. Sum over the axis with lax.psum inside the "
            "function."
        )
    check_callable("vjp", fun)
    leaves, in_tree = array_leaves("vjp", primals)
    flat = Flat("vjp", fun, in_tree, has_aux)
    result = linearize_flat(flat, leaves)
    pullback = VJP(flat, in_tree, result, leaves)
    value = flat.unflatten(result.outs[: flat.n_out])
    return (
        (value, pullback, flat.unflatten_aux(result.outs[flat.n_out :]))
        if has_aux
        else (value, pullback)
    )


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
    name = name_of(fun)

    @wraps(fun)
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
        leaves, in_tree = array_leaves("grad", chosen, "argument")
        for i, x in enumerate(leaves):
            _check_input(name, in_tree, i, x.aval, holomorphic, allow_int)
        flat = Flat("grad", close_over(fun, args, kwargs, nums), in_tree, has_aux)
        result = linearize_flat(flat, leaves)
        outs = result.outs[: flat.n_out]
        if flat.n_out != 1 or not tree.treedef_is_leaf(flat.out_tree):
            raise TypeError(
                f"grad: {name} must return one scalar, but it returned the structure "
                f"{flat.out_tree}. Return the "
                "loss alone, or (loss, auxiliary data) with has_aux=True."
            )
        aval = aval_of(outs[0])
        _check_output(name, aval, holomorphic)
        found = pull(result, leaves, 1, [_one(aval)])
        grads = tree.tree_unflatten(in_tree, found)
        grads = grads[0] if isinstance(argnums, int) else grads
        value = flat.unflatten(outs)
        return (
            ((value, flat.unflatten_aux(result.outs[flat.n_out :])), grads)
            if has_aux
            else (value, grads)
        )

    return value_and_gradient


def _no_args(fun: Callable, args: tuple, kwargs: dict) -> tuple:
    fun(*args, **kwargs)  # the function's own TypeError says which argument is missing
    raise ValueError("grad: the function takes no positional argument to differentiate.")


_ones: dict[ShapedArray, ArrayImpl] = Memo("ones")


def _one(aval: ShapedArray) -> ArrayImpl:
    found = _ones.get(aval)
    if found is None:
        found = _ones[aval] = ArrayImpl(np.ones((), aval.dtype), aval)
    return found


def _check_input(
    name: str, in_tree: Any, i: int, aval: ShapedArray, holomorphic: bool, allow_int: bool
) -> None:
    dtype = aval.dtype
    if holomorphic:
        if not dtypes.is_complex(dtype):
            raise TypeError(
                f"grad with holomorphic=True takes complex inputs, but argument{_path(in_tree, i)} "
                f"of {name} is "
                f"{aval.str_short()}. Convert it with .astype(complex), or drop holomorphic."
            )
    elif not dtypes.is_inexact(dtype) and not allow_int:
        raise TypeError(
            f"grad takes real- or complex-valued inputs, but argument{_path(in_tree, i)} of {name} "
            "is "
            f"{aval.str_short()}. Pass a float, choose other argnums, or allow_int=True for float0 "
            "gradients."
        )


def _check_output(name: str, aval: ShapedArray, holomorphic: bool) -> None:
    if aval.shape:
        raise TypeError(
            f"grad: the gradient is defined for functions with a scalar output, but {name} "
            "returned "
            f"{aval.str_short()}. Reduce it (jnp.sum, jnp.mean), or use jacrev or vjp."
        )
    if holomorphic:
        if not dtypes.is_complex(aval.dtype):
            raise TypeError(
                f"grad with holomorphic=True needs a complex output, but {name} returned "
                f"{aval.str_short()}."
            )
    elif not dtypes.is_floating(aval.dtype):
        kind = "complex" if dtypes.is_complex(aval.dtype) else "integer or boolean"
        raise TypeError(
            f"grad needs a real floating output, but {name} returned {kind} {aval.str_short()}. "
            + (
                "For a holomorphic function pass holomorphic=True; otherwise return a real loss, "
                "such as jnp.abs(z)."
                if kind == "complex"
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
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, grads = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return gradient


def linear_transpose(fun: Callable, *primals: Any, reduce_axes: Sequence = ()) -> Callable:
    """The transpose of the linear function `fun`: maps a cotangent of its result to those of its
    arguments.

    primals: where `fun` is linear it does not matter at which point; they give structure, shapes
    and dtypes only (arrays or ShapeDtypeStructs). reduce_axes has no effect. The returned function
    takes one cotangent and gives a tuple with one for each primal. Complex arguments are
    transposed, not conjugated. Raises NotImplementedError where an operation is not linear in the
    argument.

    >>> import numjet as nj
    >>> print(*nj.linear_transpose(lambda x: 3.0 * x, 1.0)(2.0))
    6.0
    """
    if reduce_axes:
        raise NotImplementedError("linear_transpose: reduce_axes is not supported.")
    traced = JitFunction(fun, (), (), (), ()).trace(*primals)
    in_tree = tree.tree_structure(tuple(primals))
    closed: ClosedJaxpr = traced.jaxpr
    out_tree = traced.out_tree

    def transposed(cotangent: Any) -> tuple:
        leaves, treedef = array_leaves("linear_transpose", cotangent, "cotangent")
        if treedef != out_tree:
            raise TypeError(
                f"linear_transpose: the cotangent must have the structure {out_tree}, got "
                f"{treedef}. "
                + tree.structure_difference("the output", out_tree, "the cotangent", treedef)
            )
        cts = []
        for i, (want, ct) in enumerate(zip(closed.out_avals, leaves, strict=True)):
            if want.shape != ct.aval.shape or (
                want.dtype != ct.aval.dtype and not ct.aval.weak_type
            ):
                raise TypeError(
                    f"linear_transpose: cotangent{_path(out_tree, i)} must be {want.str_short()}, "
                    "got "
                    f"{ct.aval.str_short()}."
                )
            cts.append(convert(ct, want.dtype, want.weak_type))
        found = backward_pass(closed, [Linear(a) for a in closed.in_avals], cts)
        return tree.tree_unflatten(in_tree, [instantiate(ct) for ct in found])

    return transposed


# ------------------------------------------------------------------ Jacobians
def _basis(leaves: Sequence[Any]) -> list[Any]:
    """For each leaf the unit vectors of the whole flat space, along a leading axis."""
    sizes = [x.aval.size for x in leaves]
    total, at, out = sum(sizes), 0, []
    for x, n in zip(leaves, sizes, strict=True):
        eye = np.zeros((total, n), dtypes.physical(x.aval.dtype))
        eye[at : at + n] = np.eye(n, dtype=eye.dtype)
        unit = as_array(eye.reshape(total, *x.aval.shape))
        out.append(convert(unit, x.aval.dtype, x.aval.weak_type))
        at += n
    return out


def _unstack(x: Any, leaves: Sequence[Any], axis: int) -> list[Any]:
    """Cut axis `axis` of the whole flat space into one block a leaf, with the leaf's shape."""
    from_shape, at, out = x.shape, 0, []
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
    name = name_of(fun)

    @wraps(fun)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        nums = argnums_tuple("jacfwd", argnums, len(args), name)
        chosen = tuple([args[i] for i in nums])
        leaves, in_tree = array_leaves("jacfwd", chosen)
        for i, x in enumerate(leaves):
            _check_jacfwd_input(name, in_tree, i, x.aval, holomorphic)
        partial = close_over(fun, args, kwargs, nums)
        treedef_out: list = []

        def push(*tangents: Any) -> Any:
            flat = Flat("jacfwd", partial, in_tree, has_aux)
            outs, ts, _ = jvp_call(flat, leaves, tangents)
            n = flat.n_out
            outs[:n] = map(as_array, outs[:n])
            treedef_out.append(flat)
            for x in outs[:n]:
                _check_jacobian_output("jacfwd", name, x.aval, holomorphic)
            return [instantiate(t) for t in ts[:n]], outs[n:]

        columns, aux = vmap(push, in_axes=0, out_axes=(-1, None))(*_basis(leaves))
        flat = treedef_out[0]
        blocks = [_unstack(c, leaves, c.ndim - 1) for c in columns]
        jac = flat.unflatten([_pick(tree.tree_unflatten(in_tree, b), argnums) for b in blocks])
        return (jac, flat.unflatten_aux(aux)) if has_aux else jac

    return jacobian


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
    than `jacfwd` where there are fewer outputs than inputs. `jacobian` is another name of it.
    Raises TypeError for arguments or outputs that are not floating.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> nj.jacrev(lambda x: jnp.array([x[0] * x[1], x[1]]))(jnp.array([1.0, 2.0]))
    Array([[2., 1.],
           [0., 1.]], dtype=float32)
    """
    check_callable("jacrev", fun)
    name = name_of(fun)

    @wraps(fun)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        nums = argnums_tuple("jacrev", argnums, len(args), name)
        chosen = tuple([args[i] for i in nums])
        leaves, in_tree = array_leaves("jacrev", chosen)
        for i, x in enumerate(leaves):
            _check_input(name, in_tree, i, x.aval, holomorphic, allow_int)
        flat = Flat("jacrev", close_over(fun, args, kwargs, nums), in_tree, has_aux)
        result = linearize_flat(flat, leaves)
        outs = [as_array(x) for x in result.outs[: flat.n_out]]
        for x in outs:
            _check_jacobian_output("jacrev", name, aval_of(x), holomorphic)
        pullback = VJP(flat, in_tree, result, leaves)
        rows = vmap(lambda *cts: pullback.pull(cts))(*_basis(outs))
        blocks = [_unstack(r, outs, 0) for r in rows]  # [argument leaf][output leaf]
        jac = flat.unflatten(
            [
                _pick(tree.tree_unflatten(in_tree, [b[i] for b in blocks]), argnums)
                for i in range(len(outs))
            ]
        )
        return (jac, flat.unflatten_aux(result.outs[flat.n_out :])) if has_aux else jac

    return jacobian


jacobian = jacrev


def _pick(by_argument: tuple, argnums: Any) -> Any:
    return by_argument[0] if isinstance(argnums, int) else by_argument


def _check_jacfwd_input(
    name: str, in_tree: Any, i: int, aval: ShapedArray, holomorphic: bool
) -> None:
    if holomorphic:
        _check_input(name, in_tree, i, aval, True, False)
    elif not dtypes.is_floating(aval.dtype):
        raise TypeError(
            f"jacfwd takes real-valued inputs, but argument{_path(in_tree, i)} of {name} is "
            f"{aval.str_short()}. "
            "Pass a float, or holomorphic=True for a holomorphic function of complex inputs."
        )


def _check_jacobian_output(what: str, name: str, aval: ShapedArray, holomorphic: bool) -> None:
    if holomorphic:
        if not dtypes.is_complex(aval.dtype):
            raise TypeError(
                f"{what} with holomorphic=True needs complex outputs, but {name} returned "
                f"{aval.str_short()}."
            )
    elif what == "jacrev" and not dtypes.is_floating(aval.dtype):
        raise TypeError(
            f"{what} needs real floating outputs, but {name} returned {aval.str_short()}. For a "
            "holomorphic "
            "function pass holomorphic=True."
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


# ------------------------------------------------------------------ checkpoint
def checkpoint(
    fun: Callable | None = None,
    *,
    prevent_cse: bool = True,
    policy: Callable | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: Any = (),
    concrete: Any = None,
) -> Any:
    """`fun`, whose intermediate values are computed again in the backward pass instead of being
    kept.

    fun: a function of pytrees of arrays; without it the result is a decorator. policy(primitive,
    *avals, **params) -> bool says which values may be kept (see `checkpoint_policies`); None keeps
    the arguments only. static_argnums, static_argnames: arguments that are Python values.
    prevent_cse: keep the compiler from merging the second computation with the first. concrete is
    taken for JAX's sake and has no effect. The value and its derivatives of every order are those
    of `fun`; memory is traded for time. `remat` is another name of it. Source: Griewank and
    Walther, Algorithm 799 (2000).

    >>> import numjet as nj, numjet.numpy as jnp
    >>> print(nj.grad(nj.checkpoint(lambda x: jnp.sin(jnp.sin(x))))(0.0))
    1.0
    """
    del concrete
    if fun is None:
        return functools.partial(
            checkpoint,
            prevent_cse=prevent_cse,
            policy=policy,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
        )
    check_callable("checkpoint", fun)
    statics = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    static_names = (
        (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    )

    @wraps(fun)
    def remat(*args: Any, **kwargs: Any) -> Any:
        nums = (
            tuple([i for i in range(len(args)) if i not in {s % len(args) for s in statics}])
            if args
            else ()
        )
        named = {k: v for k, v in kwargs.items() if k in static_names}
        rest = {k: v for k, v in kwargs.items() if k not in static_names}
        dynamic_args = (tuple([args[i] for i in nums]), rest)
        leaves, in_tree = array_leaves("checkpoint", hold(dynamic_args) or dynamic_args)

        def call(dynamic: tuple, kw: dict) -> Any:
            full = list(args)
            for i, x in zip(nums, dynamic, strict=True):
                full[i] = x
            return fun(*full, **kw, **named)

        flat = Flat("checkpoint", call, in_tree)
        use = RefUse()
        jaxpr, consts = stage(flat, [x.aval for x in leaves], name_of(fun), use=use)
        outs = remat_p.bind(
            *consts,
            *leaves,
            *use.values(),
            jaxpr=hoist_consts(jaxpr),
            policy=policy,
            prevent_cse=prevent_cse,
        )
        n = len(outs) - len(use.written)
        for ref, value in zip(use.written, outs[n:], strict=True):
            ref.put(value)
        return flat.unflatten(outs[:n])

    return remat


__all__ = [
    "ShapeDtypeStruct",
    "checkpoint",
    "checkpoint_policies",
    "grad",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linear_transpose",
    "linearize",
    "value_and_grad",
    "vjp",
]
