"""What stands under `jax.core`: avals, traces, tracers and jaxprs for libraries.

`numjet.core` is our own inside, so that the module of JAX's name is this one. Names that JAX once
had here, and has in `extend.core` now, are here too, as libraries ask for them.
"""

from __future__ import annotations

from typing import Any

from numjet.core.avals import AbstractValue as AbstractValue, ShapedArray as ShapedArray
from numjet.core.dims import is_symbolic, largest, smallest
from numjet.core.trace import (
    EVAL as _EVAL,
    Trace as Trace,
    Tracer as Tracer,
    compile_time as ensure_compile_time_eval,  # noqa: F401 - a public name
)
from numjet.extend import traces as _traces
from numjet.extend.core import (
    Atom as Atom,
    CallPrimitive as CallPrimitive,
    ClosedJaxpr as ClosedJaxpr,
    DebugInfo as DebugInfo,
    DropVar as DropVar,
    Effect as Effect,
    Effects as Effects,
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
    Jaxpr as Jaxpr,
    JaxprEqn as JaxprEqn,
    JaxprTypeError as JaxprTypeError,
    Literal as Literal,
    Primitive as Primitive,
    Token as Token,
    Var as Var,
    check_jaxpr as check_jaxpr,
    concrete_or_error as concrete_or_error,
    eval_jaxpr as eval_jaxpr,
    gensym as gensym,
    jaxpr_as_fun as jaxpr_as_fun,
    jaxprs_in_params as jaxprs_in_params,
    mapped_aval as mapped_aval,
    new_jaxpr_eqn as new_jaxpr_eqn,
    no_effects as no_effects,
    nonempty_axis_env_DO_NOT_USE as nonempty_axis_env_DO_NOT_USE,
    primal_dtype_to_tangent_dtype as primal_dtype_to_tangent_dtype,
    subjaxprs as subjaxprs,
    unmapped_aval as unmapped_aval,
    unsafe_am_i_under_a_jit_DO_NOT_USE as unsafe_am_i_under_a_jit_DO_NOT_USE,
    unsafe_am_i_under_a_vmap_DO_NOT_USE as unsafe_am_i_under_a_vmap_DO_NOT_USE,
    unsafe_get_axis_names_DO_NOT_USE as unsafe_get_axis_names_DO_NOT_USE,
    valid_jaxtype as valid_jaxtype,
)
from numjet.extend.traces import (
    TraceTag as TraceTag,
    find_top_trace as find_top_trace,
    full_lower as full_lower,
    get_opaque_trace_state as get_opaque_trace_state,
    set_current_trace as set_current_trace,
    take_current_trace as take_current_trace,
    trace_state_clean as trace_state_clean,
)
from numjet.extend.types import (
    get_aval as get_aval,
    pytype_aval_mappings as pytype_aval_mappings,
    shaped_abstractify as shaped_abstractify,
)

Value = Any
ParamDict = dict[str, Any]


def eval_context() -> Any:
    """A context in which operations on concrete values run at once.

    >>> from numjet.extend import jax_core
    >>> with jax_core.eval_context():
    ...     print(jnp.ones(2) + 1)
    [2. 2.]
    """
    return _traces.set_current_trace(_EVAL)


def raise_to_shaped(aval: Any, weak_type: bool | None = None) -> Any:
    """`aval`, of which shape and dtype are known: all of them are.

    aval: a ShapedArray; weak_type: the result's, None for the same.

    >>> from numjet.extend import jax_core
    >>> print(jax_core.raise_to_shaped(jnp.ones(2).aval))
    float32[2]
    """
    return aval if weak_type is None else aval.update(weak_type=weak_type)


def min_dim(d1: Any, d2: Any) -> Any:
    """The smaller of two sizes, d1 and d2: a number, or an expression of dimension variables.

    >>> from numjet.extend import jax_core
    >>> jax_core.min_dim(2, 3)
    2
    """
    return smallest(d1, d2)


def max_dim(d1: Any, d2: Any) -> Any:
    """The larger of two sizes, d1 and d2: a number, or an expression of dimension variables.

    >>> from numjet.extend import jax_core
    >>> jax_core.max_dim(2, 3)
    3
    """
    return largest(d1, d2)


def is_constant_dim(d: Any) -> bool:
    """Whether the size d is known, not an expression of dimension variables.

    >>> from numjet.extend import jax_core
    >>> jax_core.is_constant_dim(3)
    True
    """
    return not is_symbolic(d)


def is_constant_shape(s: Any) -> bool:
    """Whether the sizes s are all known, none an expression of dimension variables.

    >>> from numjet.extend import jax_core
    >>> jax_core.is_constant_shape((2, 3))
    True
    """
    return all(map(is_constant_dim, s))


def is_concrete(x: Any) -> bool:
    """Whether the value of x is known; of traced values that of those `grad` and `jvp` follow.

    x: any object; None has no value.

    >>> import numjet as nj
    >>> from numjet.extend import jax_core
    >>> jax_core.is_concrete(nj.numpy.ones(2))
    True
    >>> nj.jit(lambda x: x * jax_core.is_concrete(x))(3.0).item()
    0.0
    """
    return x is not None and (not isinstance(x, Tracer) or x.concrete() is not None)


def thread_local_state() -> Any:
    """Not there: raises NotImplementedError. Use get_opaque_trace_state.

    >>> from numjet.extend import jax_core
    >>> jax_core.thread_local_state()  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    raise NotImplementedError(
        "core.thread_local_state: there is no stack of traces. Compare "
        "extend.core.get_opaque_trace_state() instead."
    )


