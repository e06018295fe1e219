"""Traces by libraries: which one is current, and how a trace written for JAX's protocol is run.

Such a trace is a subclass of `core.Trace` with `process_primitive(primitive, tracers, params)`, and
maybe `process_custom_jvp_call` and `process_custom_vjp_call`; its tracers are a subclass of
`core.Tracer`. It runs between `take_current_trace`, which gives the trace around it, and
`set_current_trace`. Loading this module installs `Trace.process` for them. What would break it: a
trace that does not keep the one around it as `parent_trace`; it counts as the outermost then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numjet.api.derivatives.custom import SymbolicZero
from numjet.core import hooks
from numjet.core.array import as_array
from numjet.core.primitive import Primitive, Zero
from numjet.core.structural import instantiate
from numjet.core.trace import (
    EVAL,
    Trace,
    Tracer,
    current_trace,
    enter_trace,
    leave_trace,
    set_trace,
)
from numjet.extend.jax_params import (
    IN_PARTS,
    accept_extra,
    in_jax_terms,
    in_our_terms,
    is_mapped_loop,
)
from numjet.extend.linear_util import WrappedFun, wrap_init
from numjet.ops.while_loop import bind_mapped_while, reaches_users_trace
from numjet.transforms.batch import BatchTrace, axis_env
from numjet.transforms.custom_rules import custom_jvp_p, custom_vjp_p, run_call
from numjet.transforms.stage import StageTrace


class TraceTag:
    """A mark that tells the tracers of one run of a transformation from those of others."""


class set_current_trace:  # noqa: N801 - a context manager read as a statement
    """`with set_current_trace(trace):` makes it the current one (None: the one that evaluates).

    check_leaks is what `check_tracer_leaks` does everywhere.
    """

    __slots__ = ("trace", "token")

    def __init__(self, trace: Any, check_leaks: bool = False) -> None:
        del check_leaks
        self.trace = EVAL if trace is None else trace

    def __enter__(self) -> Any:
        trace = self.trace
        if _is_foreign(trace) and "parent" not in trace.__dict__:
            trace.parent = getattr(trace, "parent_trace", None) or current_trace()
            trace.staging = trace.parent.staging
        self.token = enter_trace(trace)
        return trace

    def __exit__(self, *exc: Any) -> None:
        leave_trace(self.token)


class take_current_trace:  # noqa: N801 - a context manager read as a statement
    """`with take_current_trace() as trace:` gives the current trace, for who makes another one.
    Until that is set, operations are evaluated or go to the trace as before."""

    def __enter__(self) -> Trace:
        return current_trace()

    def __exit__(self, *exc: Any) -> None:
        return None


def find_top_trace(_: Any = None) -> Trace:
    """The current trace. Its argument is what JAX once asked for, and has no effect.

    >>> from numjet.extend import core
    >>> core.find_top_trace([]).name
    'evaluation'
    """
    return current_trace()


class OpaqueTraceState:
    """Tells whether two moments have the same current trace: equal if they have."""

    __slots__ = ("_trace", "_convention")

    def __init__(self, trace: Trace, convention: Any) -> None:
        self._trace, self._convention = trace, convention

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and other._trace is self._trace

    def __hash__(self) -> int:
        return id(self._trace)


def get_opaque_trace_state(convention: Any = None) -> OpaqueTraceState:
    """What stands for the current trace. Libraries compare it to see whether they are inside the
    transformation in which an object was made.

    convention: the name of the library that asks, not used.

    >>> from numjet.extend import core
    >>> outside = core.get_opaque_trace_state(convention="mine")
    >>> outside == core.get_opaque_trace_state(convention="mine")
    True
    >>> bool(nj.jit(lambda: outside == core.get_opaque_trace_state(convention="mine"))())
    False
    """
    return OpaqueTraceState(current_trace(), convention)


def trace_state_clean() -> bool:
    """Whether no transformation runs.

    >>> from numjet.extend import jax_core
    >>> jax_core.trace_state_clean(), bool(nj.jit(jax_core.trace_state_clean)())
    (True, False)
    """
    return current_trace() is EVAL and not axis_env()


def nonempty_axis_env() -> bool:
    """Whether a named axis is in scope.

    >>> from numjet.extend import core
    >>> core.nonempty_axis_env_DO_NOT_USE()
    False
    """
    return bool(axis_env())


def axis_names() -> list[Any]:
    """The named axes in scope.

    >>> from numjet.extend import core
    >>> _ = nj.vmap(lambda x: print(core.unsafe_get_axis_names_DO_NOT_USE()), axis_name="rows")(
    ...     jnp.ones(2))
    ['rows']
    """
    return list(axis_env())


def _around(kind: type) -> bool:
    trace: Any = current_trace()
    while trace is not None:
        if isinstance(trace, kind):
            return True
        trace = trace.parent
    return False


def under_jit() -> bool:
    """Whether the current trace writes down what is done.

    >>> from numjet.extend import core
    >>> bool(nj.jit(core.unsafe_am_i_under_a_jit_DO_NOT_USE)())
    True
    """
    return isinstance(current_trace(), StageTrace)


def under_vmap() -> bool:
    """Whether a vmap runs.

    >>> from numjet.extend import core
    >>> core.unsafe_am_i_under_a_vmap_DO_NOT_USE()
    False
    """
    return _around(BatchTrace)


def full_lower(x: Any) -> Any:
    """A tracer's `full_lower()`; other values as they are.

    x: a tracer, or anything else.

    >>> from numjet.extend import jax_core
    >>> jax_core.full_lower(3)
    3
    """
    return x.full_lower() if isinstance(x, Tracer) else x


# ------------------------------------------------------------------ traces in JAX's protocol
def _is_foreign(trace: Any) -> bool:
    return type(trace).process is Trace.process


def _process(self: Any, primitive: Primitive, args: tuple, params: dict) -> Any:
    """Hand an operation to a trace in JAX's protocol. What it does meanwhile goes to the trace
    around it, unless it sets another."""
    if primitive is custom_jvp_p or primitive is custom_vjp_p:
        name = f"process_{primitive.name}"
        if getattr(type(self), name, None) in (None, getattr(Trace, name)):
            with set_trace(self):
                return run_call(params["call_jaxpr"], args)
        with set_trace(self.parent):
            return (_hand_jvp if primitive is custom_jvp_p else _hand_vjp)(self, args, params)
    accept_extra()
    if (parts := IN_PARTS.get(primitive)) is not None:
        with set_trace(self):
            return parts(*args, **params)
    with set_trace(self.parent):
        return self.process_primitive(*in_jax_terms(primitive, args, params))


def _called(trace: Any, call: Any, consts: Sequence[Any]) -> Callable:
    """The function with rules itself, of the operands behind its constants."""

    def fun(*xs: Any) -> list[Any]:
        with _where_theirs(trace, xs):
            return run_call(call, [*consts, *xs])

    return fun


def _hand_jvp(trace: Any, args: Sequence[Any], params: dict) -> Any:
    consts, operands = _split_consts(args, params)
    call, rule, symbolic = params["call_jaxpr"], params["jvp"], params["symbolic_zeros"]

    def jvp(*xs: Any) -> list[Any]:
        n = len(xs) // 2
        tangents = [_inner_zero(t) for t in xs[n:]]
        outs, out_tangents = rule(xs[:n], tangents)
        return [*outs, *[_outer_zero(t) if symbolic else instantiate(t) for t in out_tangents]]

    return trace.process_custom_jvp_call(
        custom_jvp_p,
        wrap_init(_called(trace, call, consts)),
        wrap_init(jvp),
        operands,
        symbolic_zeros=symbolic,
    )


def _hand_vjp(trace: Any, args: Sequence[Any], params: dict) -> Any:
    consts, operands = _split_consts(args, params)
    call, fwd, bwd = params["call_jaxpr"], params["fwd"], params["bwd"]
    count: list[int] = []

    def forward(*xs: Any) -> list[Any]:
        # A value and whether it is differentiated, in turns.
        outs, residuals = fwd(xs[::2], [bool(p) for p in xs[1::2]])
        count.append(len(residuals))
        return [*residuals, *outs]

    def backward(*xs: Any) -> list[Any]:
        residuals, cts = xs[: count[-1]], [_inner_zero(ct) for ct in xs[count[-1] :]]
        return list(bwd(residuals, cts))

    return trace.process_custom_vjp_call(
        custom_vjp_p,
        wrap_init(_called(trace, call, consts)),
        wrap_init(forward),
        backward,
        operands,
        out_trees=lambda: (None, count[-1]),
        symbolic_zeros=params["symbolic_zeros"],
    )


def _where_theirs(trace: Any, xs: Sequence[Any]) -> set_trace:
    """The trace under which `xs` are operands: `trace`, if one of them is a value of it."""
    mine = any([getattr(x, "_trace", None) is trace for x in xs if isinstance(x, Tracer)])
    return set_trace(trace if mine else current_trace())


def _split_consts(args: Sequence[Any], params: dict) -> tuple[Sequence[Any], Sequence[Any]]:
    n = params["num_consts"]
    return args[:n], args[n:]


def _inner_zero(x: Any) -> Any:
    return Zero(x.aval) if type(x) is SymbolicZero else x


def _outer_zero(x: Any) -> Any:
    return SymbolicZero(x.aval) if type(x) is Zero else x


# ------------------------------------------------------------------ the protocol of the base class
def _lacks(name: str) -> Callable:
    def method(self: Any, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} has no {name}. A trace defines process_primitive(primitive, "
            "tracers, params)."
        )

    method.__name__ = name
    return method


def _bind_with_trace(self: Primitive, trace: Any, args: Sequence[Any], *avals_params: Any) -> Any:
    """Apply a primitive to `args` under `trace`; the params come last. Those of a function with a
    rule for tangents are `subfuns=(fun, jvp)`, flat functions, and `symbolic_zeros`."""
    self, args, params = in_our_terms(self, tuple(args), avals_params[-1])
    if self is custom_jvp_p and "subfuns" in params:
        fun, jvp = params["subfuns"]
        params = _custom_params(fun, jvp, params.get("symbolic_zeros", False))
    token = enter_trace(EVAL if trace is None else trace)
    try:
        if is_mapped_loop(self, params) and not reaches_users_trace():
            return bind_mapped_while(*args, **params)
        return current_trace().process(self, args, params)
    finally:
        leave_trace(token)


def _custom_params(fun: WrappedFun, jvp: WrappedFun, symbolic_zeros: bool) -> dict:
    def call(*xs: Any) -> list[Any]:
        return [as_array(x) for x in fun.call_wrapped(*xs)]

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list, list]:
        given = [_outer_zero(t) if symbolic_zeros else instantiate(t) for t in tangents]
        found = list(jvp.call_wrapped(*primals, *given))
        n = len(found) // 2
        return (
            [as_array(x) for x in found[:n]],
            [Zero(t.aval) if type(t) is SymbolicZero else as_array(t) for t in found[n:]],
        )

    return {
        "call_jaxpr": call,
        "jvp": rule,
        "name": fun.__name__,
        "num_consts": 0,
        "symbolic_zeros": symbolic_zeros,
    }


def _get_bind_params(self: Primitive, params: dict) -> dict:
    """The params that `bind` takes, from an equation's: all of them."""
    return params


hooks.install(
    Trace,
    {
        "process": _process,
        "process_primitive": _lacks("process_primitive"),
        "process_custom_jvp_call": _lacks("process_custom_jvp_call"),
        "process_custom_vjp_call": _lacks("process_custom_vjp_call"),
        "main": property(lambda self: self),
        "full_raise": lambda self, x: x,
        "is_valid": lambda self: not getattr(self, "done", False),
    },
)
hooks.install(
    Primitive,
    {
        "bind_with_trace": _bind_with_trace,
        "get_bind_params": _get_bind_params,
        "is_effectful": lambda self, params: bool(self.effects_of(params)),
    },
)
