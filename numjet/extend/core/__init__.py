"""Primitives, jaxprs and traces for libraries: `jax.extend.core`'s names.

The classes are those of `numjet.core` and `extend.primitive`; functions that are no method there
are here. `extend.core.primitives` has the primitives themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import Any

import numpy as np

import numjet.core.jaxpr_print  # noqa: F401 - installs how jaxprs print
from numjet.base.errors import (
    ConcretizationTypeError,
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
    InternalError,
    JaxprTypeError as JaxprTypeError,
)
from numjet.core import dtypes, jaxpr as core_jaxpr, jaxpr_check
from numjet.core.array import ArrayImpl as _ArrayImpl, as_array
from numjet.core.avals import AbstractValue, ShapedArray
from numjet.core.debug_info import DebugInfo as DebugInfo
from numjet.core.deferred import DeferredArray as _DeferredArray
from numjet.core.effects import Effect as Effect
from numjet.core.jaxpr import (
    ClosedJaxpr as ClosedJaxpr,
    DropVar as DropVar,
    Eqn as JaxprEqn,
    Jaxpr as Jaxpr,
    Literal as Literal,
    Var as Var,
)
from numjet.core.primitive import NO_EFFECTS
from numjet.core.refs import Ref
from numjet.core.trace import Tracer, concrete_or_none
from numjet.extend.core import primitives as primitives
from numjet.extend.core.primitives import CallPrimitive as CallPrimitive, call_impl as call_impl
from numjet.extend.primitive import Primitive as Primitive
from numjet.extend.traces import (
    TraceTag as TraceTag,
    axis_names,
    find_top_trace as find_top_trace,
    get_opaque_trace_state as get_opaque_trace_state,
    nonempty_axis_env,
    set_current_trace as set_current_trace,
    take_current_trace as take_current_trace,
    under_jit,
    under_vmap,
)
from numjet.extend.types import valid_jaxtype as valid_jaxtype

# Types whose values are arrays, beside Array itself and tracers.
array_types: set[type] = {np.ndarray, *np.sctypeDict.values(), *dtypes.SHORT_NAMES}  # type: ignore[arg-type]
array_types = {kind for kind in array_types if isinstance(kind, type)}
array_types |= {_ArrayImpl, _DeferredArray}
Atom = Var | Literal
Effects = Set[Effect]
no_effects = NO_EFFECTS
unsafe_am_i_under_a_jit_DO_NOT_USE = under_jit
unsafe_am_i_under_a_vmap_DO_NOT_USE = under_vmap
unsafe_get_axis_names_DO_NOT_USE = axis_names
nonempty_axis_env_DO_NOT_USE = nonempty_axis_env


class AbstractToken(AbstractValue):
    """The aval of a token."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "AbstractToken()"


class Token:
    """A value that orders calls: programs run in order here, so that it carries nothing."""

    aval = AbstractToken()

    def __init__(self, buf: Any = None) -> None:
        self._buf = buf

    def block_until_ready(self) -> Token:
        return self


# ------------------------------------------------------------------ jaxprs
def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr, *args: Any) -> Any:
    """`closed_jaxpr` as a function of arrays that gives a list of arrays; with `args`, its result.

    closed_jaxpr: what `make_jaxpr` gives. args: as many arrays as it has inputs. The function
    raises ValueError for another number; it may be transformed like every other.

    >>> from numjet.extend import core
    >>> double = core.jaxpr_as_fun(nj.make_jaxpr(lambda x: 2 * x)(1.0))
    >>> double(4.0)
    [Array(8., dtype=float32, weak_type=True)]
    """

    def run(*args: Any) -> list[Any]:
        n = len(closed_jaxpr.jaxpr.invars)
        if len(args) != n:
            raise ValueError(f"jaxpr_as_fun: the jaxpr takes {n} arguments, got {len(args)}.")
        return eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)

    return run(*args) if args else run


def eval_jaxpr(
    jaxpr: Jaxpr, consts: Any, *args: Any, propagate_source_info: bool = True
) -> list[Any]:
    """Run `jaxpr` on arrays, by binding each of its equations; gives the list of results.

    jaxpr: a Jaxpr, or a closed one, whose constants are given all the same. consts: arrays for its
    constvars; args: for its inputs; references for those that are references, which are changed.
    propagate_source_info: equations that are written down name the line of this call either way.

    >>> from numjet.extend import core
    >>> closed = nj.make_jaxpr(lambda x: x * 3)(1)
    >>> core.eval_jaxpr(closed.jaxpr, closed.consts, 5)
    [Array(15, dtype=int32, weak_type=True)]
    """
    del propagate_source_info
    if isinstance(jaxpr, ClosedJaxpr):
        jaxpr = jaxpr.jaxpr
    return core_jaxpr.eval_jaxpr(
        jaxpr, [_operand(x) for x in consts], *[_operand(x) for x in args]
    )


def _operand(x: Any) -> Any:
    return x if isinstance(x, Ref) else as_array(x)


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Check a jaxpr: variables are bound once, before their use, and equations have results of the
    avals that their primitives give.

    jaxpr: a Jaxpr. Raises JaxprTypeError, with the equation and the jaxpr, where that is not so.

    >>> from numjet.extend import core
    >>> core.check_jaxpr(nj.make_jaxpr(jnp.sin)(1.0).jaxpr)
    """
    try:
        jaxpr_check.check_jaxpr(jaxpr)
    except InternalError as error:
        raise JaxprTypeError(f"{error}\n\nwhile checking jaxpr:\n\n{jaxpr}") from error


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The jaxprs in the params of `jaxpr`'s equations, those of closed ones too; not what lies in
    them.

    jaxpr: a Jaxpr.

    >>> from numjet.extend import core
    >>> closed = nj.make_jaxpr(nj.jit(jnp.sin))(1.0)
    >>> [len(inner.eqns) for inner in core.subjaxprs(closed.jaxpr)]
    [1]
    """
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def jaxprs_in_params(params: dict) -> Iterator[Jaxpr]:
    """The jaxprs in an equation's params, those of closed ones too.

    params: a dict.

    >>> from numjet.extend import core
    >>> eqn = nj.make_jaxpr(nj.jit(jnp.sin))(1.0).eqns[0]
    >>> [inner.eqns[0].primitive for inner in core.jaxprs_in_params(eqn.params)]
    [sin]
    """
    yield from core_jaxpr.subjaxprs(params)


def gensym() -> Callable[[Any], Var]:
    """A function that makes a new variable of an aval, each time another.

    >>> from numjet.extend import core
    >>> new, aval = core.gensym(), jnp.ones(2).aval
    >>> new(aval) is new(aval), new(aval).aval is aval
    (False, True)
    """
    return Var


def new_jaxpr_eqn(
    invars: Any,
    outvars: Any,
    primitive: Any,
    params: dict,
    effects: Any,
    source_info: Any = None,
    ctx: Any = None,
) -> JaxprEqn:
    """An equation `outvars = primitive[params] invars`.

    invars: variables and literals; outvars: variables; primitive, params: what is applied. effects:
    a set of them. source_info: the line it comes from, or None. ctx: what the equation is in, kept.

    >>> from numjet.extend import core
    >>> jaxpr = nj.make_jaxpr(jnp.sin)(1.0).jaxpr
    >>> eqn = jaxpr.eqns[0]
    >>> ins, outs = eqn.invars, eqn.outvars
    >>> core.new_jaxpr_eqn(ins, outs, eqn.primitive, eqn.params, eqn.effects).primitive
    sin
    """
    source = getattr(source_info, "traceback", source_info)
    return JaxprEqn(list(invars), list(outvars), primitive, params, frozenset(effects), source, ctx)


# ------------------------------------------------------------------ avals
def mapped_aval(size: int, axis: int | None, aval: Any) -> Any:
    """The aval of one example of a batch.

    aval: that of the batch; axis: which of its axes counts the examples, None for none (aval
    itself); size: how many there are. Raises AssertionError where the axis has another size.

    >>> from numjet.extend import core
    >>> print(core.mapped_aval(3, 0, jnp.ones((3, 2)).aval))
    float32[2]
    """
    if axis is None or not isinstance(aval, ShapedArray):
        return aval
    if aval.shape[axis] != size:
        raise AssertionError(
            f"mapped_aval: axis {axis} of {aval.str_short()} has size {aval.shape[axis]}, not "
            f"{size}."
        )
    axis %= aval.ndim
    return aval.update(shape=aval.shape[:axis] + aval.shape[axis + 1 :])


def unmapped_aval(size: int, axis: int | None, aval: Any, explicit_mesh_axis: Any = None) -> Any:
    """The aval of a batch of examples, stacked along a new axis.

    size: how many there are; axis: where the new one stands, None for what is not mapped (aval
    itself). aval: that of an example. explicit_mesh_axis: JAX's name for a mesh's axis, not used.

    >>> from numjet.extend import core
    >>> print(core.unmapped_aval(3, 1, jnp.ones((2, 4)).aval))
    float32[2,3,4]
    """
    if axis is None or not isinstance(aval, ShapedArray):
        return aval
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of tangents of values of a dtype: float0 for integers and booleans.

    primal_dtype: that of the values.

    >>> import numpy as np
    >>> from numjet.extend import core
    >>> core.primal_dtype_to_tangent_dtype(np.dtype(np.float32))
    dtype('float32')
    """
    return dtypes.tangent_dtype(primal_dtype)


def concrete_or_error(force: Any, val: Any, context: str = "") -> Any:
    """`force(val)` of a value that is known.

    force: a function such as `int`, or None for the value itself. val: what may be a tracer;
    context: a sentence for the message. Raises ConcretizationTypeError where the value is not
    known.

    >>> from numjet.extend import core
    >>> core.concrete_or_error(int, jnp.array(3), "The size of the result depends on it.")
    3
    """
    known = val
    if isinstance(val, Tracer):
        known = concrete_or_none(val)
        if known is None:
            raise ConcretizationTypeError(
                f"Abstract tracer value encountered where concrete value is expected: "
                f"{val.aval.str_short()}. {context} {val.origin()}"
            )
    return known if force is None else force(known)
