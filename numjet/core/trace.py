"""Traces and tracers: the one point, `bind`, through which every operation goes.

There is one current trace, held in a context variable; a transformation makes a trace whose
parent is the trace that was current, and runs the user's function under it. Rules run under the
parent, so there is no stack to search. Concrete evaluation is the outermost trace.
"""

from __future__ import annotations

import itertools
import re
import sys
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from numjet.base import errors
from numjet.core import hooks
from numjet.core.array import (
    Array,
    ArrayImpl,
    as_array,
    check_index,
    check_scalar,
    check_truth,
)
from numjet.core.avals import ShapedArray
from numjet.core.evaluate import evaluate
from numjet.core.memo import Memo
from numjet.core.primitive import Primitive, Stretched
from numjet.core.stretched import stretched

_PACKAGE = str(Path(__file__).resolve().parents[1])
# Whether the code of a file is this package's.
_internal: dict[str, bool] = Memo("files of code")
_excluded: tuple[str, ...] = (_PACKAGE, "<numjet")


def exclude(path: str) -> None:
    """Count files whose names begin with `path` as this package's: lines named are their callers'.
    """
    global _excluded
    _excluded = (*_excluded, path)
    _internal.clear()
    _sources.clear()
    hooks.lines_changed()


class Source:
    """The user's line that made an equation: file, line and function."""

    __slots__ = ("code", "line", "at")
    # Of lines with the names of scopes (`core.names`): a context within these names.
    entered: Any = None

    def __init__(self, code: Any, line: int, at: int) -> None:
        self.code, self.line, self.at = code, line, at

    @property
    def column(self) -> int | None:
        """The column that the call begins in, where the code says it."""
        return next(itertools.islice(self.code.co_positions(), self.at // 2, None))[2]

    @property
    def frames(self) -> list[Source]:
        """The lines of a traceback: this one, with the attributes that JAX's frames have."""
        return [self]

    @property
    def file_name(self) -> str:
        return self.code.co_filename

    @property
    def function_name(self) -> str:
        return self.code.co_qualname

    @property
    def function_start_line(self) -> int:
        return self.code.co_firstlineno

    @property
    def line_num(self) -> int:
        return self.line

    def __str__(self) -> str:
        column = f":{self.column}" if self.column is not None else ""
        return f"{self.code.co_filename}:{self.line}{column} ({self.code.co_qualname})"


# By code object (which the source keeps alive) and instruction: finding a line reads a table.
_sources: dict[tuple[int, int], Source] = Memo("lines of the user's", 8192)
# Bound once: looking a method up takes as long as the look-up.
_is_internal, _source_at, _frame_at = _internal.get, _sources.get, sys._getframe


def user_source(depth: int = 2) -> Source | None:
    """Where in the user's code we are: the innermost frame outside this package."""
    frame: Any = _frame_at(depth)
    while frame is not None:
        code = frame.f_code
        name = code.co_filename  # hashed once, which code objects are not
        internal = _is_internal(name)
        if internal is None:
            internal = _internal[name] = name.startswith(_excluded)
        if not internal:
            # `source_of`, written out: without native code this runs once an equation.
            return _source_at((id(code), frame.f_lasti)) or source_of(frame)
        frame = frame.f_back
    return None


def source_of(frame: Any) -> Source:
    """Where a frame is."""
    code, at = frame.f_code, frame.f_lasti
    key = (id(code), at)
    found = _sources.get(key)
    if found is None:
        found = _sources[key] = Source(code, frame.f_lineno, at)
    return found


def is_ours(name: str) -> bool:
    """Whether a file's code is this package's."""
    return name.startswith(_excluded)


def user_line() -> Source | None:
    """`user_source` for the caller of who calls this."""
    return user_source(3)


def caller_line() -> Source | None:
    """`user_source` for who calls this, native code."""
    return user_source(2)


hooks.user_line, hooks.caller_line = user_line, caller_line


class Trace:
    """How operations behave while a transformation runs: `process` interprets one `bind`."""

    parent: Trace | None = None
    name = "trace"
    # The staging trace at or around this one, if any: it notes the user's lines, so who knows for
    # several equations which line they come from tells it (`source`).
    staging: Any = None
    # Whether operations on concrete arrays alone run as where nothing traces.
    at_once = False
    # Traces with the same root share their tracers (`transforms.batch`).
    root: Any = None

    def process(self, primitive: Primitive, args: tuple, params: dict) -> Any:
        raise NotImplementedError(type(self).__name__)


class EvalTrace(Trace):
    """Concrete evaluation: NumPy, at once."""

    __slots__ = ()
    name, at_once = "evaluation", True

    def process(self, primitive: Primitive, args: tuple, params: dict) -> Any:
        return evaluate(primitive, args, params)


EVAL = EvalTrace()
_current: ContextVar[Trace] = ContextVar("numjet.trace", default=EVAL)
current_trace = _current.get
# What `set_trace` does, for code that runs once an operation:
# `token = enter_trace(trace)`, `try: ... finally: leave_trace(token)`.
enter_trace, leave_trace = _current.set, _current.reset


class CompileTimeTrace(Trace):
    """Evaluation inside of other traces: operations on values that are known run at once, others
    under the innermost trace around that has one of the operands."""

    __slots__ = ()
    name = "evaluation at compile time"

    def __init__(self, parent: Trace) -> None:
        self.parent = parent
        self.staging = parent.staging

    def process(self, primitive: Primitive, args: tuple, params: dict) -> Any:
        owners = [x.owner for x in args if isinstance(x, Tracer)]
        trace: Any = self.parent if owners else None
        while trace is not None and trace not in owners:
            trace = trace.parent
        token = _current.set(EVAL if trace is None else trace)
        try:
            return (EVAL if trace is None else trace).process(primitive, args, params)
        finally:
            _current.reset(token)


def compile_time() -> set_trace:
    """A context in which operations on concrete values run at once, also while tracing."""
    return set_trace(CompileTimeTrace(current_trace()))


def folding(trace: Trace) -> Trace:
    """What a function is traced under by `trace`: within `compile_time` operations on concrete
    values run at once there, too."""
    around = trace.parent
    while around is not None:
        if type(around) is CompileTimeTrace:
            return CompileTimeTrace(trace)
        around = around.parent
    return trace


class set_trace:  # noqa: N801 - a context manager read as a statement
    """`with set_trace(trace):` makes it the current one."""

    __slots__ = ("trace", "token")

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __enter__(self) -> Trace:
        self.token = _current.set(self.trace)
        return self.trace

    def __exit__(self, *exc: Any) -> None:
        _current.reset(self.token)


def _bind(self: Primitive, *args: Any, **params: Any) -> Any:
    trace = current_trace()
    try:
        if trace is not EVAL:
            return trace.process(self, args, params)
        if not params and self.run is not None:
            return self.run(*args)
        return evaluate(self, args, params)
    except Stretched as operands:
        shape = operands.out.shape
    except TypeError as error:
        fewer = _fewer_params(params, error)
        if fewer is None:
            raise
        return self.bind(*args, **fewer)
    return self.bind(*stretched(args, shape), **params)


# Params that equations of JAX have and ours have not, with the value that says nothing.
_SAYING_NOTHING = {
    **dict.fromkeys(("accuracy", "algorithm", "implementation", "out_dtype", "out_sharding",
                     "select_callable", "sharding", "subset_by_index", "use_magma")),
    "batch_group_count": 1, "sort_eig_vals": False,
}  # fmt: skip


def _fewer_params(params: dict, error: TypeError) -> dict | None:
    """The params without one that `error` says is not known, where it says nothing: programs that
    are written for JAX's equations bind its primitives with all of theirs."""
    found = re.search(r"unexpected keyword argument '(\w+)'", str(error))
    name = found.group(1) if found else ""
    if name not in params or name not in _SAYING_NOTHING or params[name] != _SAYING_NOTHING[name]:
        return None
    return {key: value for key, value in params.items() if key != name}


hooks.install(Primitive, {"bind": _bind})


class Tracer(Array):
    """A value inside a transformation. Has an aval; operators bind like those of an Array."""

    __slots__ = ("owner",)
    owner: Any  # the trace it belongs to; named so because Array has a method `trace`

    def __init__(self, trace: Trace, aval: Any = None) -> None:
        """For tracers of users' traces (`numjet.extend`): ours have constructors of their own."""
        self.owner = trace
        if aval is not None:
            self.aval = aval  # type: ignore[misc] # a slot of the user's class

    @property
    def _trace(self) -> Any:
        return self.owner

    @_trace.setter
    def _trace(self, trace: Trace) -> None:
        self.owner = trace

    def full_lower(self) -> Any:
        """This tracer: a value that needs no trace is no tracer here."""
        return self

    def to_concrete_value(self) -> Any:
        """The concrete Array it stands for, or None."""
        return self.concrete()

    def concrete(self) -> Any:
        """The concrete Array this tracer stands for, or None when only its aval is known."""
        return None

    def origin(self) -> str:
        """Sentences saying where this value comes from, for error messages."""
        return ""

    def traced_in(self) -> str:
        """The function that is traced, and what for, where that is known."""
        return ""

    def in_scope(self, name: str) -> Tracer:
        """This tracer, which the operation `name` hands on as it is; UnexpectedTracerError where
        nothing is traced any more."""
        if current_trace() is EVAL:
            raise errors.leaked(self, name)
        return self

    def differentiated(self) -> bool:
        """Whether the value has a derivative, which an array of the host would not have."""
        return False

    def _need_number(self, error: type[errors.JAXTypeError], what: str, remedy: str) -> Any:
        """The concrete Array, if nothing is lost when the host computes with its value."""
        if not self.differentiated():
            return self._need_concrete(error, what, remedy)
        where = (
            "Abstract tracer value encountered where concrete value is expected:"
            if error is errors.ConcretizationTypeError
            else f"{_CONVERSIONS[error]} was called on"
        )
        raise error(
            f"{where} traced array with shape {self.aval.str_short()}.\n{what}: the value is "
            "differentiated, and what the host computes with it would have no derivative. "
            f"{self.origin()} {remedy} Where no derivative is wanted pass lax.stop_gradient(x)."
        )

    def _need_concrete(self, error: type[Exception], what: str, remedy: str) -> Any:
        value = self.concrete()
        if value is None:
            origin = self.origin()
            if error is errors.ConcretizationTypeError:
                where = "Abstract tracer value encountered where concrete value is expected:"
            else:
                where = f"{_CONVERSIONS[error]} was called on" if error in _CONVERSIONS else (
                    "Attempted boolean conversion of"
                )
            where = f"{where} traced array with shape {self.aval.str_short()}"
            told = hooks.asked()
            error, where = told or (error, where)
            if " of the argument" not in origin:  # there is none that could be static
                remedy = remedy.replace(_OR_STATIC, "")
            end = "\n" if origin else ""
            raised = error(
                f"{where}.\n{what}: the value is "
                f"traced ({self.aval.str_short()}), so it is not known while the function is "
                f"traced. {origin}{end}{remedy}"
            )
            raised.final = told is not None  # type: ignore[attr-defined] # not to be made another
            raise raised
        return value

    def __bool__(self) -> bool:
        if self.aval.size != 1:
            check_truth(self.aval)
        return bool(
            self._need_concrete(
                errors.TracerBoolConversionError,
                "Python needs True or False (if, while, and, or, not, assert)",
                f"Use lax.cond, lax.while_loop, jnp.where or jnp.logical_and on it{_OR_STATIC}.",
            )
        )

    def __int__(self) -> int:
        check_scalar(self.aval, "int")
        return int(
            self._need_concrete(
                errors.ConcretizationTypeError, _PROBLEM.format("int"), _STATIC
            )
        )

    def __float__(self) -> float:
        check_scalar(self.aval, "float")
        return float(
            self._need_number(
                errors.ConcretizationTypeError, _PROBLEM.format("float"), _STATIC
            )
        )

    def __complex__(self) -> complex:
        check_scalar(self.aval, "complex")
        return complex(
            self._need_number(
                errors.ConcretizationTypeError, _PROBLEM.format("complex"), _STATIC
            )
        )

    def __index__(self) -> int:
        check_index(self.aval)
        return self._need_concrete(
            errors.TracerIntegerConversionError,
            "Python needs an integer (an index, a size, a shape, range())",
            _STATIC,
        ).__index__()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        value = self._need_number(
            errors.TracerArrayConversionError,
            "NumPy was handed this array",
            "Call the numjet.numpy function of the same name, or numjet.pure_callback for host "
            "code.",
        )
        return value.__array__(dtype, copy=copy)

    def item(self, *args: int) -> Any:
        return self._need_concrete(
            errors.ConcretizationTypeError,
            "This occurred in the item() method, which needs a concrete value",
            _STATIC,
        ).item(*args)

    def tolist(self) -> Any:
        return self._need_number(
            errors.ConcretizationTypeError,
            "The tolist() method was called on traced array: it needs a concrete value",
            _STATIC,
        ).tolist()

    def __hash__(self) -> int:
        raise TypeError(
            f"unhashable type: '{type(self).__name__}' (a traced {self.aval.str_short()}). As a "
            "dict key or a static argument pass a Python value instead."
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval})"

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self  # immutable, like the value it stands for

    def __copy__(self) -> Tracer:
        return self

    def __reduce__(self) -> Any:
        return self._unknown("__reduce__", "A traced value cannot be pickled.")

    def delete(self) -> None:
        self._unknown("delete")

    def is_deleted(self) -> bool:
        return self._unknown("is_deleted")

    def devices(self) -> set:
        return self._unknown("devices")

    def addressable_data(self, index: int) -> Any:
        return self._unknown("addressable_data")

    @property
    def sharding(self) -> Any:
        raise AttributeError(
            "The 'sharding' attribute is not available on traced array with shape "
            f"{self.aval.str_short()}: it lies nowhere while the function is traced. "
            "numjet.typeof(x).sharding says what its type knows."
        )

    def unsafe_buffer_pointer(self) -> int:
        return self._unknown("unsafe_buffer_pointer")

    def tobytes(self, order: Any = "C") -> bytes:
        value = None if self.differentiated() else self.concrete()
        return self._unknown("tobytes") if value is None else value.tobytes(order)

    def on_device_size_in_bytes(self) -> int:
        return self._unknown("on_device_size_in_bytes")

    def __dlpack__(self, **_: Any) -> Any:
        return self._unknown("__dlpack__")

    def _unknown(self, method: str, remedy: str = "Ask for it outside of the function.") -> Any:
        """Raise: the method asks where a value lies, and a traced one lies nowhere."""
        raise errors.ConcretizationTypeError(
            "Abstract tracer value encountered where concrete value is expected. The "
            f"{method}() method was called on traced array with shape {self.aval.str_short()}. "
            f"{self.origin()}{' ' if self.origin() else ''}{remedy}"
        )

    def __format__(self, spec: str) -> str:
        value = self.concrete()
        if value is None and spec:
            raise TypeError(
                f"unsupported format string passed to {type(self).__name__}.__format__: the value "
                f"of {self!r} is not known. numjet.debug.print formats it when it is."
            )
        return format(value, spec) if spec else repr(self)


def _unanswered(name: str, known: bool) -> property:
    """An attribute that tells of the memory of arrays, which a traced value has none of. known:
    whether a traced value has it, as JAX sees it."""

    def get(self: Tracer) -> Any:
        where = f"traced array with shape {self.aval.str_short()}"
        if not known:
            raise AttributeError(
                f"{type(self).__name__} has no attribute {name}: The '{name}' attribute is not "
                f"available on {where}. Ask for it outside of the function."
            )
        raise errors.ConcretizationTypeError(
            "Abstract tracer value encountered where concrete value is expected: the "
            f"'{name}' attribute is not available on {where}. {self.origin()}"
            f"{' ' if self.origin() else ''}Ask for it outside of the function."
        )

    return property(get)


for _name in ("addressable_shards", "global_shards", "is_fully_addressable", "is_fully_replicated",
              "committed", "traceback"):  # fmt: skip
    setattr(Tracer, _name, _unanswered(_name, True))
for _name in ("device", "format", "block_until_ready", "copy_to_host_async"):
    setattr(Tracer, _name, _unanswered(_name, False))


_CONVERSIONS = {
    errors.TracerIntegerConversionError: "The __index__() method",
    errors.TracerArrayConversionError: "The numpy.ndarray conversion method __array__()",
}
_PROBLEM = (
    "The problem arose with the `{0}` function: {0}() needs a concrete value (for another dtype "
    "try using `x.astype({0})`)"
)
_OR_STATIC = ", or mark the argument it comes from as static with jit(..., static_argnums=…)"
_STATIC = (
    "If it does not depend on array values, mark the argument as static with "
    "jit(..., static_argnums=…), or compute it with NumPy from shapes."
)


def concrete_or_none(x: Any) -> Any:
    """The Array behind `x` if its value is known now, else None.

    x: an array, a scalar or a tracer. Raises TypeError for other values.

    >>> from numjet.extend import core
    >>> core.concrete_or_none(3)
    Array(3, dtype=int32, weak_type=True)
    >>> _ = nj.jit(lambda x: print(core.concrete_or_none(x)) or x)(3)
    None
    """
    if isinstance(x, Tracer):
        return x.concrete()
    return as_array(x)


def aval_of(x: Any) -> ShapedArray:
    """The aval of an Array, tracer, NumPy array or Python scalar."""
    if isinstance(x, Array):
        return x.aval
    return as_array(x).aval


leaked = errors.leaked


__all__ = [
    "EVAL",
    "ArrayImpl",
    "EvalTrace",
    "Source",
    "Trace",
    "Tracer",
    "aval_of",
    "concrete_or_none",
    "current_trace",
    "enter_trace",
    "leaked",
    "leave_trace",
    "set_trace",
    "user_line",
    "user_source",
]
