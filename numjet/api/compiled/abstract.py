"""Functions that are traced and not run: `make_jaxpr` and `eval_shape`.

Both trace as `jit` does (`api.compiled.jit`). What would break them: a trace that computes with
values.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from numjet.api.compiled import refs
from numjet.api.compiled.jit import JitFunction
from numjet.api.compiled.jit_arguments import ReturnedSpecError, as_tuple, resolve
from numjet.api.compiled.jit_core import JitCore
from numjet.api.flat import check_callable, wraps
from numjet.base import config, tracebacks, tree
from numjet.core import hi
from numjet.core.named_scalars import with_named_scalars
from numjet.core.refs import Ref
from numjet.ops.bodies import name_of
from numjet.transforms.batch import Axis, extend_axis_env


def make_jaxpr(
    fun: Callable,
    static_argnums: int | Iterable[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable:
    """A function that returns the jaxpr of `fun`: what tracing makes of it for arguments, in the
    equations that JAX writes, as far as they are known.

    static_argnums: arguments that are Python values. axis_env: (name, size) of each axis that
    collectives in `fun` may name. return_shape: return the pair of the jaxpr and the output's
    ShapeDtypeStructs. Arguments may be arrays, numbers or ShapeDtypeStructs. The result is a
    ClosedJaxpr (`.jaxpr`, `.consts`, `.in_avals`, `.out_avals`).

    >>> import numjet as nj, numjet.numpy as jnp
    >>> print(nj.make_jaxpr(jnp.sin)(1.0))
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    """
    check_callable("make_jaxpr", fun)
    nums = as_tuple(static_argnums, int)

    @wraps(fun)
    @tracebacks.unnamed_boundary
    def maker(*args: Any, **kwargs: Any) -> Any:
        core = JitCore(fun, *resolve(fun, nums, ()), (), ())
        core.tells = True
        with contextlib.ExitStack() as stack:
            stack.enter_context(config.jax_equations(True))
            for axis, size in axis_env or ():
                stack.enter_context(extend_axis_env(Axis(size, axis)))
            traced = core.trace(*args, **kwargs)
        jaxpr = with_named_scalars(fun, traced.jaxpr)
        return (jaxpr, traced.out_info) if return_shape else jaxpr

    maker.__name__ = f"make_jaxpr({name_of(fun)})"
    maker.__qualname__ = f"make_jaxpr({getattr(fun, '__qualname__', name_of(fun))})"
    maker.__module__ = "jax"  # as JAX's says
    return maker


@tracebacks.boundary
def eval_shape(fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """Structure, shapes and dtypes of `fun(*args, **kwargs)`, without computing it.

    args, kwargs: pytrees of arrays, or of objects with `shape` and `dtype` such as
    ShapeDtypeStruct. Result: the output's pytree with ShapeDtypeStructs as leaves. `fun` is traced:
    what it raises, TypeErrors for shapes that do not fit among it, arrives.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> nj.eval_shape(jnp.sum, nj.ShapeDtypeStruct((2, 3), "float32"))
    ShapeDtypeStruct(shape=(), dtype=float32)
    """
    check_callable("eval_shape", fun)
    if type(fun) is JitFunction:
        core = fun._core  # which knows static arguments and the layouts of results
        if core.layouts[1] is not None or core._static_argnums or core._static_argnames:
            return fun.eval_shape(*args, **kwargs)
    trace = lambda fun: JitFunction(fun, (), (), (), ()).trace  # noqa: E731
    leaves = tree.tree_leaves((args, kwargs))
    if not any([isinstance(x, Ref) or type(x) in hi.TYPES for x in leaves]):
        try:  # the trace that `jit` of the function takes, too
            return trace(fun)(*args, **kwargs).out_info
        except ReturnedSpecError:
            pass
    return refs.shapes_of(fun, args, kwargs, trace)
