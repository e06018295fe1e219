"""sparsify: functions of dense arrays, run on sparse ones.

The function is traced once as if its arguments were dense; then its jaxpr is run, each operation
that meets a sparse array by a rule of this file. An operation whose result would be dense is
refused: nothing becomes as large as the dense array behind the user's back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from numjet import lax, numpy as jnp
from numjet.api.compiled.abstract import eval_shape
from numjet.api.compiled.jit import jit
from numjet.base import tree
from numjet.core.array import Array
from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import ClosedJaxpr, Jaxpr, Literal
from numjet.core.structural import convert
from numjet.core.trace import Tracer, aval_of
from numjet.experimental.sparse import layouts, operations as ops
from numjet.experimental.sparse.bcoo import BCOO, DIVIDED, JAXSparse, unknown_rule
from numjet.experimental.sparse.bcsr import BCSR
from numjet.experimental.sparse.convolution import bcoo_conv_general_dilated
from numjet.ops.bodies import flatten_values
from numjet.ops.composed import composed
from numjet.transforms.custom_rules import run_call
from numjet.transforms.stage import stage

# What `todense` of a traced array is in a jaxpr.
todense_p = composed("todense", lambda x: x)


def is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


def todense(arr: Any) -> Any:
    """A dense array of a sparse one; others as they are. In a sparsified function too.

    arr: an array of either kind.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> print(sparse.todense(m)[0])
    [1. 0.]
    """
    if is_sparse(arr):
        return arr.todense()
    return todense_p.bind(arr) if isinstance(arr, Tracer) else arr


def sparsify(f: Callable, use_tracer: bool = False) -> Callable:
    """`f` for arguments some of which are sparse, and by what they are made of.

    Its results are sparse where the operations that make them keep zeros: products, sums over axes,
    functions with f(0) = 0, reshapes and slices; BCSR where all sparse operands are and two axes
    are sparse. What would make a dense array raises
    NotImplementedError: `todense` says that it may. use_tracer changes nothing.

    >>> import numjet.numpy as jnp
    >>> m = BCOO.fromdense(jnp.eye(3))
    >>> print(sparsify(lambda m, v: 2 * m @ v)(m, jnp.arange(3.0)))
    [0. 2. 4.]
    """

    @functools.wraps(f)
    def run(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.tree_flatten((args, kwargs), is_leaf=is_sparse)
        places = [i for i, x in enumerate(leaves) if is_sparse(x) or isinstance(x, Array)]
        values = [leaves[i] for i in places]
        out_tree: list = []

        def flat(*given: Any) -> list[Any]:
            filled = list(leaves)
            for i, x in zip(places, given, strict=True):
                filled[i] = x
            inner, keywords = tree.tree_unflatten(structure, filled)
            outs, treedef = flatten_values(f(*inner, **keywords))
            out_tree.append(treedef)
            return outs

        jaxpr, consts = stage(flat, [_aval(x) for x in values], getattr(f, "__name__", "sparsify"))
        outs = evaluate(jaxpr, consts, _apart(values))
        return tree.tree_unflatten(out_tree[0], outs)

    return run


def _aval(x: Any) -> ShapedArray:
    return ShapedArray(x.shape, x.dtype) if is_sparse(x) else aval_of(x)


def _apart(values: list) -> list:
    """`values`, of which no two sparse ones share their indices: as arguments do in JAX."""
    met, made = set(), []
    for x in values:
        if isinstance(x, BCOO):
            if id(x.indices) in met:
                x = BCOO((x.data, jnp.array(x.indices)), **x._static())
            met.add(id(x.indices))
        made.append(x)
    return made


def _coordinates(x: Any) -> Any:
    return x.to_bcoo() if is_sparse(x) and not isinstance(x, BCOO) else x


def _by_rows(x: Any) -> Any:
    return BCSR.from_bcoo(x) if isinstance(x, BCOO) and x.n_sparse == 2 else x


def evaluate(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Run a jaxpr on values some of which are sparse."""
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    read = lambda v: v.value if type(v) is Literal else env[v]
    for eqn in jaxpr.eqns:
        values = [read(v) for v in eqn.invars]
        many = eqn.primitive.multiple_results
        if not any(map(is_sparse, values)):
            out = eqn.primitive.bind(*values, **eqn.params)
        else:
            rule = _RULES.get(eqn.primitive.name)
            if rule is None:
                raise NotImplementedError(unknown_rule(eqn.primitive.name))
            out = rule(*[_coordinates(x) for x in values], **eqn.params)
            if all(isinstance(x, BCSR) for x in values if is_sparse(x)):
                out = [_by_rows(x) for x in out] if many else _by_rows(out)
        if many:
            env.update(zip(eqn.outvars, out, strict=True))
        else:
            env[eqn.outvars[0]] = out
    return [read(v) for v in jaxpr.outvars]


# ------------------------------------------------------------------ rules
def _mul(x: Any, y: Any) -> Any:
    mat, other = (x, y) if is_sparse(x) else (y, x)
    return ops.multiply(mat, other, shared=True)


def _div(x: Any, y: Any) -> Any:
    if is_sparse(y):
        raise NotImplementedError(DIVIDED)
    return ops.multiply(x, y, jnp.true_divide)


def _add(x: Any, y: Any) -> Any:
    return ops.add(x, y, True) if is_sparse(x) else ops.add(y, x, True)


def _sub(x: Any, y: Any) -> Any:
    return ops.add(x, -y, True) if is_sparse(x) else ops.add(-y, x, True)


def _unary(name: str, linear: bool = False) -> Callable:
    function = getattr(lax, name)
    return lambda x, **params: ops.zero_map(x, lambda d: function(d, **params), linear)


def _integer_pow(x: Any, *, y: int) -> Any:
    return ops.power(x, y)


def _convert(x: Any, *, new_dtype: Any, weak_type: bool) -> Any:
    change = lambda d: convert(jnp.asarray(d), new_dtype, weak_type)
    return ops.zero_map(x, change, jnp.issubdtype(new_dtype, jnp.inexact))


def _concatenate(*xs: Any, dimension: int) -> Any:
    if not all(map(is_sparse, xs)):
        raise ValueError(
            "bcoo_concatenate: expected operands to be a sequence of BCOO arrays, got dense ones "
            "among them. Convert them with BCOO.fromdense."
        )
    return layouts.bcoo_concatenate(xs, dimension=dimension)


def _dot_general(x: Any, y: Any, *, dimension_numbers: Any, **_: Any) -> Any:
    return ops.bcoo_dot_general(x, y, dimension_numbers=dimension_numbers)


def _conv(x: Any, y: Any, *, out_sharding: Any = None, **params: Any) -> Any:
    return bcoo_conv_general_dilated(x, y, **params)


def _reshape(x: Any, *, new_sizes: tuple, dimensions: Any = None) -> Any:
    return layouts.bcoo_reshape(x, new_sizes=new_sizes, dimensions=dimensions)


def _dynamic_slice(x: Any, *starts: Any, slice_sizes: tuple) -> Any:
    return layouts.bcoo_dynamic_slice(x, starts, slice_sizes)


def _jit(*args: Any, jaxpr: ClosedJaxpr, name: str) -> list[Any]:
    return jit(lambda *xs: evaluate(jaxpr.jaxpr, jaxpr.consts, xs))(*args)


def _remat(*args: Any, jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    return evaluate(jaxpr.jaxpr, jaxpr.consts, args)


def _custom(*args: Any, call_jaxpr: Any, **_: Any) -> list[Any]:
    if type(call_jaxpr) is ClosedJaxpr:
        return evaluate(call_jaxpr.jaxpr, call_jaxpr.consts, args)
    return run_call(call_jaxpr, args)


def _cond(index: Any, *args: Any, branches: tuple) -> list[Any]:
    runs = [functools.partial(lambda b, *xs: evaluate(b.jaxpr, b.consts, xs), b) for b in branches]
    first, *others = [tree.tree_structure(eval_shape(run, *args)) for run in runs]
    for other in others:
        if first != other:
            raise TypeError(
                "sparsified true_fun output must have same type structure as sparsified false_fun "
                f"output, but there are differences: {first} and {other}."
            )
    return lax.switch(index, runs, *args)


def _scan(
    *args: Any, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, length: int, reverse: bool,
    **_: Any,
) -> list[Any]:  # fmt: skip
    consts, carry = args[:num_consts], args[num_consts : num_consts + num_carry]
    rows = args[num_consts + num_carry :]
    if any(map(is_sparse, rows)):
        raise NotImplementedError("sparse rule for scan: rows of a sparse array; close over it.")

    def body(carry: Any, row: Any) -> tuple:
        outs = evaluate(jaxpr.jaxpr, jaxpr.consts, [*consts, *carry, *row])
        return outs[:num_carry], outs[num_carry:]

    last, stacked = lax.scan(body, list(carry), list(rows), length=length, reverse=reverse)
    return [*last, *stacked]


def _while(
    *args: Any, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int,
    body_nconsts: int,
) -> list[Any]:  # fmt: skip
    nc, nb = cond_nconsts, cond_nconsts + body_nconsts
    return lax.while_loop(
        lambda c: evaluate(cond_jaxpr.jaxpr, cond_jaxpr.consts, [*args[:nc], *c])[0],
        lambda c: evaluate(body_jaxpr.jaxpr, body_jaxpr.consts, [*args[nc:nb], *c]),
        list(args[nb:]),
    )


_LINEAR = ("neg", "real", "imag")
_UNARY = ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "abs", "sign", "sqrt",
          "cbrt", "expm1", "log1p", "floor", "ceil", "square", "erf", "bessel_i1e",
          "stop_gradient")  # fmt: skip
_RULES: dict[str, Callable] = {
    **{name: _unary(name, True) for name in _LINEAR},
    **{name: _unary(name) for name in _UNARY},
    "mul": _mul,
    "div": _div,
    "add": _add,
    "add_any": _add,
    "sub": _sub,
    "integer_pow": _integer_pow,
    "convert_element_type": _convert,
    "copy": lambda x: x,
    "concatenate": _concatenate,
    "dot_general": _dot_general,
    "conv_general_dilated": _conv,
    "reshape": _reshape,
    "squeeze": lambda x, *, dimensions: layouts.bcoo_squeeze(x, dimensions=dimensions),
    "transpose": lambda x, *, permutation: layouts.bcoo_transpose(x, permutation=permutation),
    "broadcast_in_dim": lambda x, *, shape, broadcast_dimensions: layouts.bcoo_broadcast_in_dim(
        x, shape=shape, broadcast_dimensions=broadcast_dimensions),
    "reduce_sum": lambda x, *, axes: ops.reduce_sum(x, axes),
    "conj": lambda x, **_: ops.zero_map(x, lax.conj, True),
    "slice": lambda x, **params: layouts.bcoo_slice(x, **params),
    "dynamic_slice": _dynamic_slice,
    "gather": lambda x, starts, *, dimension_numbers, slice_sizes, mode=None, **_: ops.bcoo_gather(
        x, starts, dimension_numbers, slice_sizes, mode=mode),
    "rev": lambda x, *, dimensions: layouts.bcoo_rev(x, dimensions),
    "name": lambda x, *, name: x,
    "todense": lambda x: x.todense(),
    "jit": _jit,
    "remat2": _remat,
    "custom_jvp_call": _custom,
    "custom_vjp_call": _custom,
    "cond": _cond,
    "scan": _scan,
    "while": _while,
}  # fmt: skip

__all__ = ["sparsify", "todense"]
