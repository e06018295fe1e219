"""Implicit differentiation: `custom_root` and `custom_linear_solve`.

For `lax`. A solution's derivative follows from the equation it solves, whatever steps the solver
took: the linear system of the tangents is solved in its stead. What would break it: a solver whose
result does not solve the equation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from numjet.api.derivatives.autodiff import jvp
from numjet.api.derivatives.custom import jvp_of_arrays
from numjet.api.flat import array_leaves
from numjet.base import tree
from numjet.base.tracebacks import boundary
from numjet.core.avals import ShapedArray
from numjet.core.debug_info import Tracing
from numjet.core.jaxpr import ClosedJaxpr, eval_closed
from numjet.core.lowering import Expand
from numjet.core.primitive import Linear, Primitive, Zero
from numjet.core.structural import convert, instantiate
from numjet.core.trace import aval_of
from numjet.ops.arithmetic import neg, sub
from numjet.ops.bodies import split
from numjet.transforms.batch import Axis, all_to_front, batch_jaxpr, mapped_to_front
from numjet.transforms.jvp import jvp_call
from numjet.transforms.stage import hoist_consts, stage
from numjet.transforms.transpose import backward_pass


@boundary
def custom_root(
    f: Callable, initial_guess: Any, solve: Callable, tangent_solve: Callable, has_aux: bool = False
) -> Any:
    """A root of `f`, found by `solve(f, initial_guess)` and differentiated by the implicit function
    theorem.

    f: from a pytree of arrays to one of the same structure. initial_guess: where the solver begins;
    it gets no derivative. solve(f, initial_guess): any method. tangent_solve(g, y): solves the
    linear system g(x) = y. has_aux: `solve` returns (root, auxiliary data). Derivative: dx =
    -(∂f/∂x)⁻¹ df, for what f closes over.

    >>> import numjet as nj
    >>> from numjet import lax
    >>> newton = lambda f, x0: lax.fori_loop(0, 20, lambda i, x: x - f(x) / (2 * x), x0)
    >>> root = lambda a: lax.custom_root(lambda x: x ** 2 - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> print(f"{root(4.0):.3f} {nj.grad(root)(4.0):.3f}")
    2.000 0.250
    """
    guess_leaves, guess_tree = array_leaves("custom_root", initial_guess, "initial_guess")
    avals = [x.aval for x in guess_leaves]

    # Each function becomes one of the values that it closes over: these may be values of any
    # transformation around, which the rule must see as its arguments.
    f_call, f_consts = _closed("f", f, (guess_tree,), avals)
    if f_call.out_tree != guess_tree:
        raise TypeError(
            "custom_root: f() output pytree structure must match initial_guess, got "
            f"{f_call.out_tree} and {guess_tree}."
        )
    solve_call, solve_consts = _closed("solve", lambda x: solve(f, x), (guess_tree,), avals)
    x_avals = [a.strong() for a in f_call.out_avals]
    whole = solve_call.unflatten(solve_call.out_avals)
    solved = tree.tree_structure(whole[0] if has_aux else whole)
    if solved != guess_tree:
        raise TypeError(
            "custom_root: solve() output pytree structure must match initial_guess, got "
            f"{solved} and {guess_tree}."
        )

    def solve_tangent(x: Any, rhs: Any) -> Any:
        return tangent_solve(lambda t: jvp(f, (x,), (t,))[1], rhs)

    tangent_call, tangent_consts = _closed(
        "tangent_solve", solve_tangent, (solved, f_call.out_tree), [*avals, *x_avals]
    )

    guess = tree.tree_unflatten(guess_tree, guess_leaves)
    call = _rooted(f_call, solve_call, tangent_call, guess_tree, has_aux)
    return call(f_consts, solve_consts, tangent_consts, guess)


def _rooted(
    f_call: _Closed, solve_call: _Closed, tangent_call: _Closed, guess_tree: Any, has_aux: bool
) -> jvp_of_arrays:
    """The root as a function of what the user's functions close over, with its derivative, which
    makes another such function: one that held this one would hold itself."""

    # Their names stand in jaxprs.
    @jvp_of_arrays
    def _custom_root(of_f: Any, of_solve: Any, of_tangent: Any, start: Any) -> Any:
        return solve_call(of_solve, start)

    def _root_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple:
        of_f, _, of_tangent, _ = primals
        out = _rooted(f_call, solve_call, tangent_call, guess_tree, has_aux)(*primals)
        x = out[0] if has_aux else out
        f_tangent = jvp(lambda v: f_call(v, x), (of_f,), (tangents[0],))[1]
        x_tangent = tangent_call(of_tangent, x, tree.tree_map(neg, f_tangent))
        if tangent_call.out_tree != guess_tree:
            raise TypeError(
                "custom_root: tangent_solve() output pytree structure must match initial_guess, "
                f"got {tangent_call.out_tree} and {guess_tree}."
            )
        if not has_aux:
            return out, x_tangent
        zero = lambda a: instantiate(Zero(aval_of(a).tangent()))  # noqa: E731
        return out, (x_tangent, tree.tree_map(zero, out[1]))

    _custom_root.defjvp(_root_jvp)
    return _custom_root


class _Closed:
    """A function of pytrees as one of the values it closes over, a list, and then its arguments."""

    def __init__(self, closed: ClosedJaxpr, in_avals: list[ShapedArray], out_tree: Any) -> None:
        self.closed, self.in_avals, self.out_tree = closed, in_avals, out_tree
        self.out_avals = closed.out_avals

    def unflatten(self, outs: Sequence[Any]) -> Any:
        return tree.tree_unflatten(self.out_tree, outs)

    def __call__(self, consts: Sequence[Any], *args: Any) -> Any:
        leaves, _ = array_leaves("custom_root", args)
        values = [
            convert(x, a.dtype, a.weak_type) for x, a in zip(leaves, self.in_avals, strict=True)
        ]
        return self.unflatten(eval_closed(self.closed, *consts, *values))


def _closed(
    what: str, fun: Callable, in_trees: tuple, avals: list[ShapedArray]
) -> tuple[_Closed, list[Any]]:
    """`fun`, of arguments of these structures and types, with the values that it closes over."""
    out_tree: Any = None

    def flat(*values: Any) -> list[Any]:
        nonlocal out_tree
        given = iter(values)
        args = [t.unflatten([next(given) for _ in range(t.num_leaves)]) for t in in_trees]
        outs, out_tree = array_leaves("custom_root", fun(*args), what)
        return outs

    jaxpr, consts = stage(flat, avals, what)
    return _Closed(hoist_consts(jaxpr), avals, out_tree), consts


# ------------------------------------------------------------------ linear systems
# Operands: constants of matvec, vecmat, solve, transpose_solve (in this order), then b. Params hold
# the four jaxprs (constants first); vecmat and transpose_solve may be None. What the solves return
# beside x, auxiliary data, follows it among the outputs and has no derivative.
class _LinearSolveTuple(NamedTuple):
    """Something of each of the functions: jaxprs, or how many constants these begin with."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any

    def turned(self) -> _LinearSolveTuple:
        """That of the transposed system."""
        return _LinearSolveTuple(self.vecmat, self.matvec, self.transpose_solve, self.solve)


_Parts = _LinearSolveTuple


def _parts(args: Sequence[Any], const_lengths: tuple) -> list[list[Any]]:
    return split(args, *const_lengths)


def _run(closed: ClosedJaxpr, consts: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    return eval_closed(closed, *consts, *values)


def _solve_evaluate(*args: Any, jaxprs: _Parts, const_lengths: _Parts) -> list[Any]:
    parts = _parts(args, const_lengths)
    return _run(jaxprs[2], parts[2], parts[4])


def _solve_jvp(primals: tuple, tangents: tuple, *, jaxprs: _Parts, const_lengths: _Parts) -> tuple:
    x = linear_solve_p.bind(*primals, jaxprs=jaxprs, const_lengths=const_lengths)
    parts, t_parts = _parts(primals, const_lengths), _parts(tangents, const_lengths)
    # A x = b gives A dx = db - dA x, where dA x is the tangent of the matvec in its constants.
    rhs = [instantiate(t) for t in t_parts[4]]
    if any(type(t) is not Zero for t in t_parts[0]):
        _, change, _ = jvp_call(lambda *c: _run(jaxprs[0], c, x[: len(rhs)]), parts[0], t_parts[0])
        rhs = [r if type(c) is Zero else sub(r, c) for r, c in zip(rhs, change, strict=True)]
    elif all(type(t) is Zero for t in t_parts[4]):
        return x, [Zero(y.aval.tangent()) for y in x]
    consts = primals[: sum(const_lengths)]
    dx = linear_solve_p.bind(*consts, *rhs, jaxprs=jaxprs, const_lengths=const_lengths)[: len(rhs)]
    return x, [*dx, *[Zero(aux.aval.tangent()) for aux in x[len(rhs) :]]]


def _solve_transpose(cts: list, *args: Any, jaxprs: _Parts, const_lengths: _Parts) -> list:
    if any(type(x) is Linear for x in args[: sum(const_lengths)]):
        raise NotImplementedError("custom_linear_solve is transposed in b only.")
    if jaxprs[3] is None:
        raise TypeError(
            "transpose_solve required for backwards mode automatic differentiation of "
            "custom_linear_solve (or symmetric=True)."
        )
    parts = _parts(args, const_lengths)
    n = len(parts[4])
    consts = [*parts[1], *parts[0], *parts[3], *parts[2]]
    out = linear_solve_p.bind(
        *consts,
        *[instantiate(ct) for ct in cts[:n]],
        jaxprs=jaxprs.turned(),
        const_lengths=const_lengths.turned(),
    )
    return [None] * sum(const_lengths) + out[:n]


def _solve_batch(
    axis: Axis, args: tuple, dims: tuple, *, jaxprs: _Parts, const_lengths: _Parts
) -> tuple:
    mapped = _parts([d is not None for d in dims], const_lengths)
    n = len(mapped[4])
    batched = _LinearSolveTuple._make([
        None if j is None else batch_jaxpr(j, axis, [*mapped[i], *[True] * n], True)[0]
        for i, j in enumerate(jaxprs)
    ])
    consts = sum(const_lengths)
    outs = linear_solve_p.bind(
        *mapped_to_front(args[:consts], dims[:consts]),
        *all_to_front(args[consts:], dims[consts:], axis.size),
        jaxprs=batched,
        const_lengths=const_lengths,
    )
    return outs, [0] * len(outs)


def _solve_abstract(
    *avals: ShapedArray, jaxprs: _Parts, const_lengths: _Parts
) -> list[ShapedArray]:
    return list(jaxprs[2].out_avals)


linear_solve_p = Primitive(
    "custom_linear_solve",
    multiple_results=True,
    higher_order=True,
    linear=True,
    abstract=_solve_abstract,
    evaluate=_solve_evaluate,
    jvp=_solve_jvp,
    transpose=_solve_transpose,
    batch=_solve_batch,
    loops=Expand(_solve_evaluate),
)


@boundary
def custom_linear_solve(
    matvec: Callable,
    b: Any,
    solve: Callable,
    transpose_solve: Callable | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """The x with `matvec(x) = b`, found by `solve(matvec, b)` and differentiated through the
    equation.

    matvec: a linear function. b: a pytree of arrays. solve(matvec, b): finds x, of b's structure,
    in any way; it is not differentiated. transpose_solve(vecmat, b): solves with the transpose,
    which reverse mode needs. symmetric: matvec is its own transpose, and solve solves it. has_aux:
    the solves return (x, auxiliary data), and so does this function. Derivative: matvec(dx) = db -
    (d matvec)(x), for b and for what matvec closes over. Raises ValueError where shapes do not
    fit, TypeError where structures or dtypes do not, and when reverse mode lacks transpose_solve.

    >>> import numjet as nj
    >>> from numjet import lax
    >>> solve = lambda matvec, b: b / matvec(1.0)
    >>> x = lambda a: lax.custom_linear_solve(lambda v: a * v, 6.0, solve, symmetric=True)
    >>> print(x(2.0), nj.grad(x)(2.0))
    3.0 -1.5
    """
    return linear_solve(matvec, b, solve, transpose_solve, symmetric, has_aux)


def linear_solve(
    matvec: Callable,
    b: Any,
    solve: Callable,
    transpose_solve: Callable | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
    vecmat: Callable | None = None,
) -> Any:
    """`custom_linear_solve`; vecmat: the transpose of matvec, where it is written down."""
    leaves, b_tree = array_leaves("custom_linear_solve", b, "b")
    avals = [x.aval for x in leaves]

    staged = functools.partial(_staged, b_tree=b_tree, avals=avals)
    mat, mat_consts = staged("matvec", matvec, matvec, "")
    n_mat = len(mat_consts)

    def transposed(y: Any) -> Any:
        cts, _ = array_leaves("custom_linear_solve", y)
        args = [*mat_consts, *[Linear(a) for a in avals]]
        found = backward_pass(mat, args, cts)[n_mat:]
        return tree.tree_unflatten(b_tree, [instantiate(ct) for ct in found])

    aux_tree: list = []

    def parted(found: Any) -> tuple[Any, list]:
        if not has_aux:
            return found, []
        if not isinstance(found, tuple) or len(found) != 2:
            raise TypeError(
                "custom_linear_solve: with has_aux=True solve returns a pair (x, auxiliary data), "
                f"got {type(found).__name__}."
            )
        aux, treedef = array_leaves("custom_linear_solve", found[1], "auxiliary data")
        aux_tree.append(treedef)
        return found[0], aux

    solves = functools.partial(solve, matvec)
    forward, forward_consts = staged(
        "solve", lambda y: solve(matvec, y), solves, " solve", parted=parted
    )
    out_aux: Any = aux_tree[0] if has_aux else None
    if symmetric:
        back, back_consts, vec, vec_consts = forward, forward_consts, mat, mat_consts
    elif transpose_solve is not None:
        vecmat = vecmat or transposed
        turned = functools.partial(transpose_solve, vecmat), " transpose_solve"
        vec, vec_consts = staged("vecmat", vecmat, *turned)
        back, back_consts = staged(
            "transpose_solve", lambda y: transpose_solve(vecmat, y), *turned, parted=parted
        )
    else:
        vec, vec_consts, back, back_consts = None, [], None, []  # type: ignore[assignment]
    lengths = n_mat, len(vec_consts), len(forward_consts), len(back_consts)
    outs = linear_solve_p.bind(
        *mat_consts,
        *vec_consts,
        *forward_consts,
        *back_consts,
        *leaves,
        jaxprs=_LinearSolveTuple(mat, vec, forward, back),
        const_lengths=_LinearSolveTuple._make(lengths),
    )
    n = len(leaves)
    x = tree.tree_unflatten(b_tree, outs[:n])
    return (x, tree.tree_unflatten(out_aux, outs[n:])) if has_aux else x


def _staged(
    what: str,
    fun: Callable,
    told: Callable,
    suffix: str,
    b_tree: Any,
    avals: list[ShapedArray],
    parted: Callable = lambda found: (found, []),
) -> tuple[ClosedJaxpr, list[Any]]:
    """`fun`, a part of custom_linear_solve, as a jaxpr over constants and leaves like those of
    b, which says that `told` was traced. `parted` splits what it returns into x and the leaves of
    auxiliary data."""

    def flat(*values: Any) -> list[Any]:
        found, aux = parted(fun(tree.tree_unflatten(b_tree, values)))
        outs, treedef = array_leaves("custom_linear_solve", found, what)
        if treedef != b_tree:
            raise TypeError(
                f"custom_linear_solve: {what}() output pytree structure must match b, got "
                f"{treedef} and {b_tree}."
            )
        return [*outs, *aux]

    jaxpr, consts = stage(flat, avals, what)
    in_tree = tree.tree_structure((tree.tree_unflatten(b_tree, avals),))
    traced = Tracing(told, f"custom_linear_solve{suffix}", in_tree, by_name=False,
                     arrange=functools.partial(_behind, len(consts)))  # fmt: skip
    jaxpr.debug = traced.told(b_tree if len(jaxpr.outvars) == len(avals) else None)
    found = [v.aval for v in jaxpr.outvars[: len(avals)]]
    shapes = [a.shape for a in found], [a.shape for a in avals]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"custom_linear_solve: {what}() output shapes must match b, got {shapes[0]} and "
            f"{shapes[1]}."
        )
    for want, got in zip(avals, found, strict=True):
        if want.dtype != got.dtype:
            raise TypeError(
                f"custom_linear_solve: {what} must keep dtypes: expected {want.str_short()}, got "
                f"{got.str_short()}. Convert what it returns."
            )
    return hoist_consts(jaxpr), consts


def _behind(consts: int, names: list[str]) -> list[str]:
    """The names of arguments behind constants, which have none."""
    return [*[""] * consts, *names]
