"""What kernels are written with beside references: conditions, loops, buffers, small arithmetic.

For `pallas`. All of it is made of `lax` and of references, and works outside of kernels, too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet import lax, numpy as jnp
from numjet.api.callbacks import debug_print as _print
from numjet.api.compiled.abstract import make_jaxpr
from numjet.api.execution.costs import cost_analysis
from numjet.base import config, tree
from numjet.core.array import Array, as_array
from numjet.core.jaxpr import eval_jaxpr
from numjet.core.ref_equations import does, run_state_p
from numjet.core.refs import AbstractRef, Ref, RefUse, new_ref
from numjet.core.structural import convert
from numjet.core.trace import EVAL, current_trace
from numjet.experimental.pallas.blocks import CostEstimate
from numjet.experimental.pallas.call import undefined
from numjet.transforms.stage import stage


def when(condition: Any, /) -> Callable:
    """A decorator that calls the function where a condition holds.

    condition: a bool, or a traced scalar: then the function becomes a branch. Result: a decorator
    of functions without arguments.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> from numjet.experimental import pallas as pl
    >>> ref = nj.new_ref(jnp.zeros(2))
    >>> @pl.when(ref[0] == 0)
    ... def _():
    ...     ref[1] = 5.0
    >>> print(ref[...])
    [0. 5.]
    """

    def decorated(fun: Callable) -> None:
        if isinstance(condition, bool | np.bool_):
            if condition:
                fun()
            return

        def branch() -> None:
            fun()

        lax.cond(as_array(condition) != 0, branch, lambda: None)

    return decorated


def loop(
    lower: Any, upper: Any, *, init_carry: Any = None, step: Any = 1, unroll: Any = None
) -> Callable:
    """A decorator that calls the function for lower, lower + step, ... below upper.

    lower, upper, step: integers, or traced ones. init_carry: a tree that the function takes as its
    second argument and returns anew; the last one is what the decorator gives. unroll: rounds at a
    time, as `lax.scan` takes them.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> from numjet.experimental import pallas as pl
    >>> pl.loop(0, 10, init_carry=jnp.int32(0), step=3)(lambda i, total: total + i)
    Array(18, dtype=int32)
    """

    def decorated(body: Callable) -> Any:
        rounds = cdiv(upper - lower, step)

        def once(k: Any, carry: Any) -> Any:
            i = lower + k * step
            return body(i) if init_carry is None else body(i, carry)

        out = lax.fori_loop(0, rounds, once, init_carry, unroll=unroll)
        return None if init_carry is None else out

    return decorated


def _reference(kind: Any) -> Any:
    return new_ref(undefined(kind.shape, kind.dtype))


def run_scoped(f: Callable, *types: Any, collective_axes: Any = (), **kw_types: Any) -> Any:
    """`f` of references to new buffers, which nobody else has.

    f: a function of references. types, kw_types: trees of what has shape and dtype (MemoryRef, or a
    memory space called with both). collective_axes: for other devices. Result: what f gives.

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental import pallas as pl
    >>> def f(buffer):
    ...     buffer[...] = jnp.ones(2)
    ...     return buffer[0]
    >>> print(pl.run_scoped(f, pl.ANY((2,), jnp.float32)))
    1.0
    """
    args = tree.tree_map(_reference, types)
    return f(*args, **tree.tree_map(_reference, kw_types))


def with_scoped(*types: Any, collective_axes: Any = (), **kw_types: Any) -> Callable:
    """A decorator: the function with references to new buffers behind its own arguments.

    types, kw_types, collective_axes: as `run_scoped` takes them.

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental import pallas as pl
    >>> @pl.with_scoped(pl.ANY((2,), jnp.float32))
    ... def f(x, buffer):
    ...     buffer[...] = x
    ...     return buffer[1]
    >>> print(f(jnp.arange(2.0)))
    1.0
    """

    def decorated(f: Callable) -> Callable:
        @functools.wraps(f)
        def scoped(*args: Any, **kwargs: Any) -> Any:
            body = lambda *refs, **named: f(*args, *refs, **kwargs, **named)  # noqa: E731
            return run_scoped(body, *types, collective_axes=collective_axes, **kw_types)

        return scoped

    return decorated


def run_state(f: Callable) -> Callable:
    """A function of a tree of arrays that gives what `f` left in references to them.

    f: a function of a tree of references, which returns None.

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental import pallas as pl
    >>> def double(refs):
    ...     refs[0][...] = 2 * refs[1][...]
    >>> print(pl.run_state(double)((jnp.zeros(2), jnp.ones(2)))[0])
    [2. 2.]
    """

    @functools.wraps(f)
    def run(x: Any) -> Any:
        leaves, treedef = tree.tree_flatten(x)
        if config.jax_form() and (found := _run_state_equation(f, leaves, treedef)) is not None:
            return tree.tree_unflatten(treedef, found)
        refs = [new_ref(value) for value in leaves]
        before = [ref.value() for ref in refs]
        f(tree.tree_unflatten(treedef, refs))
        at_once = current_trace() is EVAL
        left = []
        for given, old, ref in zip(leaves, before, refs, strict=True):
            value = ref.value()
            if at_once and value is old:
                left.append(given)
            else:  # what is written has the weak type of what was there, as JAX has it
                left.append(convert(value, ref.dtype, not at_once and ref.aval.weak_type))
        return tree.tree_unflatten(treedef, left)

    return run


def _run_state_equation(f: Callable, leaves: list, treedef: Any) -> list | None:
    """`run_state` as one equation, where jaxprs are to be read; None where `f` uses values, or
    references, from outside."""
    trace: Any = current_trace()
    if trace.staging is not trace:
        return None
    values = [as_array(x) for x in leaves]

    def flat(*variables: Any) -> list:
        refs = [Ref(v.aval, v) for v in variables]
        f(tree.tree_unflatten(treedef, refs))
        return []

    use, avals = RefUse(), [AbstractRef(x.aval) for x in values]
    jaxpr, consts = stage(flat, avals, "run_state", use=use)  # type: ignore[arg-type]
    if consts or use.refs:
        return None
    flags = {"is_initialized": (True,) * len(avals), "which_linear": (False,) * len(avals)}
    return trace.record_effect(run_state_p, values, {"jaxpr": jaxpr, **flags})


@does(run_state_p)
def _run_state(*values: Any, jaxpr: Any, **_: Any) -> list:
    refs = [new_ref(x) for x in values]
    eval_jaxpr(jaxpr, (), *refs)
    return [ref.get() for ref in refs]


def empty(shape: Sequence[int], dtype: Any, *, out_sharding: Any = None) -> Array:
    """An array of undefined content.

    shape, dtype: its own. out_sharding: where it lies, None.

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental import pallas as pl
    >>> pl.empty((2, 3), jnp.float32).shape
    (2, 3)
    """
    out = undefined(shape, dtype)
    return out if out_sharding is None else lax.with_sharding_constraint(out, out_sharding)


def empty_like(x: Any) -> Any:
    """A tree of arrays of undefined content, of the shapes and dtypes of x.

    x: a tree of what has shape and dtype.

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental import pallas as pl
    >>> pl.empty_like(jnp.ones((2, 3))).shape
    (2, 3)
    """
    return tree.tree_map(lambda leaf: undefined(leaf.shape, leaf.dtype), x)


def empty_ref_like(x: Any) -> Any:
    """A tree of references of undefined content, of the shapes and dtypes of x.

    x: a tree of what has shape and dtype.

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental import pallas as pl
    >>> pl.empty_ref_like(jnp.ones((2, 3))).shape
    (2, 3)
    """
    return tree.tree_map(_reference, x)


def cdiv(a: Any, b: Any) -> Any:
    """a / b, rounded up.

    a, b: integers, or arrays of integers.

    >>> from numjet.experimental import pallas as pl
    >>> pl.cdiv(7, 2)
    4
    """
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    return (a + (b - 1)) // b


def align_to(a: Any, alignment: Any) -> Any:
    """The least multiple of `alignment` that is not below a.

    a, alignment: integers, or arrays of integers.

    >>> from numjet.experimental import pallas as pl
    >>> pl.align_to(9, 4)
    12
    """
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """The least power of two that is not below x. Raises ValueError for negative numbers.

    x: an integer.

    >>> from numjet.experimental import pallas as pl
    >>> pl.next_power_of_2(9)
    16
    """
    if x < 0:
        raise ValueError(f"`next_power_of_2` requires a non-negative integer, got {x}.")
    return 1 << max(x - 1, 0).bit_length()


def strides_from_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """How many elements lie between neighbours along each axis of an array laid out row by row.

    shape: a tuple of integers.

    >>> from numjet.experimental import pallas as pl
    >>> pl.strides_from_shape((2, 3, 4))
    (12, 4, 1)
    """
    return tuple([math.prod(shape[k + 1 :]) for k in range(len(shape))])


def multiple_of(x: Any, values: Sequence[int] | int) -> Any:
    """`x`; says that it is a multiple of `values`, which nothing here uses.

    x: an integer array. values: an integer, or one an axis.

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental import pallas as pl
    >>> pl.multiple_of(jnp.int32(8), 4)
    Array(8, dtype=int32)
    """
    return x


def reciprocal(x: Any, *, approx: bool = False, full_range: bool = True) -> Array:
    """1 / x.

    x: a floating array. approx, full_range: what other devices may leave out; nothing here.

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental import pallas as pl
    >>> print(pl.reciprocal(jnp.array([2.0, 4.0])))
    [0.5  0.25]
    """
    return jnp.reciprocal(x)


def broadcast_to(a: Any, shape: tuple[int, ...]) -> Array:
    """`a` repeated along new and unit axes.

    a: an array. shape: the result's, which a's broadcasts to (ValueError).

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental import pallas as pl
    >>> pl.broadcast_to(jnp.ones(3), (2, 3)).shape
    (2, 3)
    """
    return jnp.broadcast_to(a, shape)


def debug_print(fmt: str, *args: Any) -> None:
    """Print values while the kernel runs.

    fmt: a text, with braces for values. args: arrays; without braces they follow the text.

    >>> from numjet.experimental import pallas as pl
    >>> pl.debug_print("x = {}", 3)
    x = 3
    """
    if args and "{" not in fmt:
        fmt += " {}" * len(args)
    _print(fmt, *args)


def estimate_cost(fun: Callable, *args: Any, **kwargs: Any) -> CostEstimate:
    """Operations of a function, and the bytes of its arguments and results, as a CostEstimate.

    fun: a function of arrays. args, kwargs: its arguments, or what has their shapes and dtypes.

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental import pallas as pl
    >>> pl.estimate_cost(lambda x: x @ x, jnp.ones((4, 4))).flops
    128
    """
    closed = make_jaxpr(functools.partial(fun, **kwargs))(*args)
    told = cost_analysis(closed.jaxpr)
    moved = sum([math.prod(a.shape) * a.dtype.itemsize
                 for a in (*closed.in_avals, *closed.out_avals)])
    return CostEstimate(int(told.get("flops", 0)), int(told.get("transcendentals", 0)), int(moved))
