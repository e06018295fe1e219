"""Functions made of several operations run as one compiled program where operands are large, and
where such calls come often.

`as_program(function)` wraps a public function: called on concrete arrays of `LARGE` elements or
more while nothing traces, it runs compiled, so that what it is made of passes memory once and runs
on all cores; on those of `DEAR` elements or more it runs compiled for its first kinds of calls, and
for later kinds from the `OFTEN`th call on, by native code that knows these calls (`native.calls`);
on smaller ones it is the function itself until a kind of calls has taken as long as compiling does
(`BUDGET`), and compiled from then on. Applied by the public namespaces to functions whose results'
shapes do not depend on values. What would break it: a function that reads values without asking for
them, or whose results are not unique (eigenvectors), which may then be others from one call to the
next.
"""

from __future__ import annotations

import functools
import importlib
import math
import warnings
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any

from numjet.api.compiled.jit import JitFunction, jit
from numjet.api.compiled.shown import CALLS, FLAG, Shown
from numjet.api.eager.prebuilt import prebuilt
from numjet.api.execution.not_finite import among, unexplained
from numjet.base import config, errors, tree
from numjet.core import hooks
from numjet.core.array import ArrayImpl, as_array
from numjet.core.deferred import DeferredArray, Plan
from numjet.core.evaluate import DEAR, LARGE
from numjet.core.hooks import Sharded
from numjet.core.jaxpr import ClosedJaxpr, Eqn, subjaxprs
from numjet.core.lowering import Pointwise, Reduce
from numjet.core.memo import Memo
from numjet.core.sharded import ShardedArray, any_sharded
from numjet.core.trace import EVAL, current_trace, enter_trace, leave_trace
from numjet.native.known import KnownCalls
from numjet.ops.jit_call import jit_p
from numjet.transforms.again import again, as_one
from numjet.transforms.eager import LinearTracer, Whole
from numjet.transforms.stage import apart, hoist_consts, stage

# A function keeps programs for so many combinations of other arguments, and for so many kinds of
# calls with small operands; beyond, it runs operation by operation, since arguments that change
# with each call would compile each time.
_MAX_PROGRAMS = 64
# So many kinds of calls with small operands are counted, for each function.
_MAX_MET = 512
# Small operands are compiled for at once, so that equal calls give equal bits, for so many kinds of
# calls (avals, other arguments); later kinds when a call comes for the `OFTEN`th time, as sizes may
# change with each call and compiling takes as long as a thousand calls.
AT_ONCE = 10
OFTEN = 5
# Of calls below `DEAR` every so many-th is timed, and a kind is compiled for when its calls have
# taken so many seconds, about what compiling takes: at worst twice the time of the better way.
TIMED = 16
BUDGET = 0.01

_ARRAYS = (ArrayImpl, DeferredArray, ShardedArray)
_UNSHARDED = (ArrayImpl, DeferredArray)
_OPERANDS = (*_ARRAYS, float)
CHECKS = config.numeric_checks
# What is raised where the value of a traced operand is asked for.
_VALUE_ASKED = (
    errors.ConcretizationTypeError, errors.TracerArrayConversionError,
    errors.TracerIntegerConversionError, errors.NonConcreteBooleanIndexError,
)  # fmt: skip


def _asks_value(error: Exception) -> bool:
    """Whether the value of a traced operand was asked for (`api.asked` marks other classes)."""
    return isinstance(error, _VALUE_ASKED) or getattr(error, "final", False)


def elements(args: tuple, kwargs: dict) -> int:
    """Those of the largest operand."""
    most = 0
    for x in args:
        if type(x) in _ARRAYS and x.aval.size > most:
            most = x.aval.size
    return most


def drawn(place: int) -> Callable[[tuple, dict], int]:
    """For functions that draw: the elements of the argument `shape`, at `place`."""

    def of_shape(args: tuple, kwargs: dict) -> int:
        shape = args[place] if len(args) > place else kwargs.get("shape")
        if type(shape) is int:
            return shape
        if type(shape) is not tuple or not all([type(n) is int for n in shape]):
            return elements(args, kwargs) if shape is None else 0
        return math.prod(shape)

    return of_shape


def checked(function: Callable, args: tuple, kwargs: dict) -> Any:
    """What `function` gives, where results are looked at (debug_nans, debug_infs): as of a compiled
    function its own results count, and of the operations within those that made them bad."""
    looks = config.debug_nans.value or config.debug_infs.value
    if not looks or config.disable_jit.value or not current_trace().at_once:
        return function(*args, **kwargs)
    with config.debug_nans(False), config.debug_infs(False):
        out = function(*args, **kwargs)
    results = [x for x in tree.tree_leaves(out) if type(x) is ArrayImpl]
    if not among(results):
        return out
    function(*args, **kwargs)  # raises where an operation makes what is no number
    raise FloatingPointError(unexplained(getattr(function, "__name__", "function")))


def as_program(
    function: Callable,
    count: Callable[[tuple, dict], int] = elements,
    always: bool = False,
    large: bool = True,
    shown: str | None = None,
) -> Callable:
    """`function`, compiled for large concrete operands (by `count` of the arguments), and for
    smaller ones, from `DEAR` elements on, if there are few kinds of them or they come often.

    always: every concrete call is compiled for; large: False where the function itself sees to
    large operands; shown: the name of its calls where `make_jaxpr` traces
    (`api.compiled.shown`)."""
    programs: dict[Any, Any] = {}
    # With which other arguments it is operations on the rows of one array, which wait as they are.
    of_rows: set[tuple] = set()
    untraced = object()  # in place of a program that cannot be made
    small = _Small(function)
    drawn = function.__module__.startswith("numjet.random")
    # What writes a call where `make_jaxpr` traces; None for operations by themselves.
    form = None if hasattr(function, "forms") else function
    form = Shown(function, shown, whole=drawn).called if shown else form

    def quick(*args: Any, **kwargs: Any) -> Any:
        for x in args:
            if type(x) is LinearTracer:
                return linear(*args, **kwargs) if large else function(*args, **kwargs)
            if type(x) in _ARRAYS and x._aval.size >= DEAR:
                if x._aval.size >= LARGE:
                    return small.large(*args, **kwargs)
                return small.run(*args, **kwargs)
        if FLAG.uses and form is not None and not current_trace().at_once:
            return apart(form, function, args, kwargs)
        if small.calls is not None:
            return small.run(*args, **kwargs)
        return tiny(args, kwargs)

    def tiny(args: tuple, kwargs: dict) -> Any:
        if CHECKS[0]:
            return checked(function, args, kwargs)
        if Sharded.active and _over_auto(args) and _compiles():
            return run(args, kwargs, False)
        small.seen += 1
        return function(*args, **kwargs) if small.seen % TIMED else small.timed(args, kwargs)

    def other(*args: Any, **kwargs: Any) -> Any:
        return small.run(*args, **kwargs)

    def complete(*args: Any, **kwargs: Any) -> Any:
        if FLAG.uses and form is not None and not current_trace().at_once:
            return apart(form, function, args, kwargs)
        size = count(args, kwargs)
        if size < DEAR and not always:
            return tiny(args, kwargs)
        trace = current_trace()
        if trace is not EVAL:
            if not trace.at_once:
                return function(*args, **kwargs)
            if not _plain(args) or not _plain(kwargs.values()):
                return linear(*args, **kwargs) if large else function(*args, **kwargs)
            token = enter_trace(EVAL)
            try:
                return complete(*args, **kwargs)
            finally:
                leave_trace(token)
        if CHECKS[0]:
            return checked(function, args, kwargs)
        if config.disable_jit.value or not config.eager_compile.value:
            return function(*args, **kwargs)
        if size >= LARGE or always:
            return run(args, kwargs, size >= LARGE) if large else function(*args, **kwargs)
        if Sharded.active and _over_auto(args):
            return run(args, kwargs, False)
        return small(args, kwargs)

    def linear(*args: Any, **kwargs: Any) -> Any:
        out = as_one(function, args, kwargs)
        return function(*args, **kwargs) if out is None else out

    def run(args: tuple, kwargs: dict, later: bool) -> Any:
        if later and of_rows and args and type(args[0]) in _UNSHARDED and config.eager_fusion.value:
            others = _others(args, kwargs)
            try:
                known = others in of_rows
            except TypeError:
                known = False
            if known:

                def learn(plan: Plan | Whole) -> None:
                    if small.written is None:
                        small.written = KnownCalls(complete, getattr(function, "__name__", ""))
                    small.written.learn(args, plan, kwargs)
                    small.large = small.written.run

                return again(
                    (function, others), args[0], lambda x: function(x, *args[1:], **kwargs), learn
                )
        # Positional numbers with a fraction are operands, as they may differ in each call.
        given = [type(x) in _OPERANDS for x in args]
        named = {k: v for k, v in kwargs.items() if type(v) in _ARRAYS}
        fixed = [None if is_operand else x for x, is_operand in zip(args, given, strict=True)]
        rest = {k: v for k, v in kwargs.items() if k not in named}
        try:
            key = (
                tuple(given), tuple([(type(x), x) for x in fixed]), tuple(named),
                tuple([(k, type(v), v) for k, v in rest.items()]),
            )  # fmt: skip
            program = programs.get(key)
        except TypeError:  # lists and the like among the other arguments
            return function(*args, **kwargs)
        if program is None:
            if len(programs) >= _MAX_PROGRAMS:
                return function(*args, **kwargs)

            def flat(operands: list, by_name: dict) -> Any:
                values = iter(operands)
                whole = [next(values) if g else x for g, x in zip(given, fixed, strict=True)]
                return function(*whole, **by_name, **rest)

            flat.__name__ = getattr(function, "__name__", "function")
            program = programs[key] = _Program(flat)
        if program is untraced:
            return function(*args, **kwargs)
        try:
            operands = [x for x, g in zip(args, given, strict=True) if g]
            if not later:
                return program.compiled(operands, named)
            out = program(operands, named)
            if program.simple and not program.moves and type(out) is DeferredArray:
                alone = given and given[0] and len(operands) == 1 and not named
                if alone and len(of_rows) < _MAX_PROGRAMS:
                    of_rows.add(_others(args, kwargs))
            return out
        except Exception as error:
            if not _asks_value(error):
                raise
            # For that of an argument: not tried again.
            programs[key] = untraced
            return function(*args, **kwargs)

    small.run = small.otherwise = small.large = complete
    of_operands = count is elements and not always
    made: Any = functools.wraps(function)(quick if of_operands else other)
    return made


def _over_auto(args: tuple) -> bool:
    """Whether an argument lies over Auto axes of a mesh: then results lie as those of one program
    do, which are cut where parts of it, such as slices for `roll`, would be whole."""
    for x in args:
        if type(x) is ShardedArray and x._aval.placed is None:
            return hasattr(x._sharding, "layout")
    return False


def _compiles() -> bool:
    off = config.disable_jit.value or not config.eager_compile.value
    return current_trace() is EVAL and not off


class _Small:
    """The programs of a function for operands of less than `LARGE` elements. `run` takes a call:
    native code that knows those that came often, and hands the others to `otherwise`. `large` takes
    one with large operands, and asks `written` first, if there are calls that are written down."""

    calls: Any = None
    written: KnownCalls | None = None
    made = 0  # kinds of calls that were compiled for
    seen = 0  # calls with fewer than `DEAR` elements
    met: dict[tuple, int]
    taken: dict[tuple, float]
    programs: dict[tuple, JitFunction | None]
    tried: set[tuple]

    def __init__(self, function: Callable) -> None:
        self.function = self.run = self.otherwise = self.large = function

    def begin(self) -> None:
        """What the first call of this size needs: most functions never have one."""
        name = getattr(self.function, "__name__", "a function")
        self.programs = {}  # by the places and names of the other arguments; None: untraced
        self.tried = set()  # which calls there was a try to prebuild, with the flags as they are
        self.met = Memo(f"calls of {name}, counted", _MAX_MET, passing=True)
        self.taken = Memo(f"seconds of calls of {name}", _MAX_MET, passing=True)

    def timed(self, args: tuple, kwargs: dict) -> Any:
        """A call that stands for the `TIMED` before it: one of the function itself."""
        off = CHECKS[0] or config.disable_jit.value or config.no_tracing.value
        if current_trace() is not EVAL or off or not config.eager_compile.value:
            return self.function(*args, **kwargs)
        start = perf_counter()
        out = self.function(*args, **kwargs)
        seconds = TIMED * (perf_counter() - start)
        if not hasattr(self, "met"):
            self.begin()
        try:
            key = (*map(_kind, args), *[(name, _kind(x)) for name, x in kwargs.items()])
            before = self.taken.get(key)
        except TypeError:  # as below
            return out
        self.taken[key] = seconds + (before or 0.0)
        # Not by one alone: it may have waited for something else.
        if before is not None and before + seconds > BUDGET and self.met.get(key) != OFTEN:
            self.compile(key, args, kwargs)
        return out

    def compile(self, key: tuple, args: tuple, kwargs: dict) -> None:
        """Compile for a kind of calls, and let native code take them."""
        self.met[key] = OFTEN - 1
        try:
            for _ in range(2):  # by the second call it is known how long the program takes
                self(args, kwargs)
        except Exception as error:
            warnings.warn(
                f"{self.function.__name__}: calls like the last one run operation by operation, as "
                f"compiling them raises {type(error).__name__}: {error}",
                RuntimeWarning,
                stacklevel=4,
            )
        self.met[key] = OFTEN

    def __call__(self, args: tuple, kwargs: dict) -> Any:
        if not hasattr(self, "met"):
            self.begin()
        try:
            key = (*map(_kind, args), *[(name, _kind(x)) for name, x in kwargs.items()])
            times = self.met.get(key, 0)
        except TypeError:  # not hashable: lists, arrays of others, what waits
            return self.function(*args, **kwargs)
        if times < OFTEN and self.made >= (AT_ONCE if times < OFTEN - 1 else _MAX_PROGRAMS):
            self.met[key] = min(times + 1, OFTEN - 1)
            return self.function(*args, **kwargs)
        places = tuple([i for i, x in enumerate(args) if type(x) not in _OPERANDS])
        names = tuple([name for name, x in kwargs.items() if type(x) is not ArrayImpl])
        program: Any = self.programs.get((places, names), self)
        if program is self:
            program = JitFunction(self.function, places, names, (), ())
            self.programs[places, names] = program
        if program is None or config.no_tracing.value:
            return self.function(*args, **kwargs)
        try:
            out = program(*args, **kwargs)
        except Exception as error:
            if not _asks_value(error):
                raise
            # For that of an argument: not tried again.
            self.programs[places, names] = None
            return self.function(*args, **kwargs)
        if times < OFTEN:
            self.met[key] = OFTEN
            self.made += 1
        else:  # by the second call it is known how long the program takes
            self.prebuild(program, key, args, kwargs)
        return out

    def prebuild(self, program: JitFunction, key: tuple, args: tuple, kwargs: dict) -> None:
        """Let native code take such calls, if it can."""
        if self.calls is not None and not self.calls.current():
            self.calls, self.run = None, self.otherwise
            self.tried.clear()
        if key not in self.tried:
            self.tried.add(key)
            calls = prebuilt(program, args, kwargs, self.calls)
            if calls is not None and self.calls is None:
                self.calls, self.run = calls, calls.function(self.otherwise)


_PLAIN = frozenset((ArrayImpl, DeferredArray, int, float, complex, bool, str, type(None)))


def _plain(values: Iterable) -> bool:
    """Whether nothing among arguments is traced, or may hold what is."""
    for x in values:
        if type(x) not in _PLAIN and (type(x) is not tuple or not _plain(x)):
            return False
    return True


def _others(args: tuple, kwargs: dict) -> tuple:
    """All arguments but the first, with their types."""
    rest = args[1:]
    return rest, (*map(type, rest),), (*kwargs.items(),), (*map(type, kwargs.values()),)


def _kind(x: Any) -> Any:
    """What a program depends on: an operand's aval, another argument with its type."""
    if type(x) is ArrayImpl:
        return x.aval
    if type(x) is float:
        return float
    hash(x)
    return type(x), x


def _is_simple(eqn: Eqn) -> bool:
    primitive = eqn.primitive
    if primitive.name == "custom_jvp_call":
        return all([all(map(_is_simple, inner.eqns)) for inner in subjaxprs(eqn.params)])
    of_rows = type(primitive.loops) in (Pointwise, Reduce)
    return of_rows and not primitive.multiple_results and primitive.evaluate is None


# Rows stay rows in these, as `any_size.roles` has it.
_OF_ROWS = frozenset(("broadcast_in_dim", "squeeze", "reshape"))


def _moves(eqn: Eqn) -> bool:
    """Whether an equation takes elements to other places."""
    primitive = eqn.primitive
    if primitive.name in _OF_ROWS:
        return False
    if type(primitive.loops) is Pointwise and not primitive.loops.elementwise:
        return True
    return any([any(map(_moves, inner.eqns)) for inner in subjaxprs(eqn.params)])


class _Program:
    """A function of a list and a dict of operands, compiled, or written down as one operation."""

    def __init__(self, function: Callable) -> None:
        self.function, self.compiled = function, jit(function)
        # By avals, and what tracing depends on: the jaxpr, its constants and the results' tree.
        self.traced: dict[tuple, Any] = Memo("large functions as operations", 64, passing=True)
        # Whether it is operations on elements and rows alone, as far as was seen; whether it moves
        # elements, too. Such operations have no programs of any size, and on the same avals again
        # they are one operation.
        self.simple = self.moves = False
        self.met: dict[tuple, bool] = Memo("large functions of new sizes", 64, passing=True)

    def __call__(self, operands: list, named: dict) -> Any:
        laid_out = Sharded.active and any_sharded((*operands, *named.values()))
        if config.eager_fusion.value and not laid_out:
            if self.simple and not self._known(operands, named):
                # Written down as the operations that it is, which have programs of any size.
                return self.function(operands, named)
            leaves = [as_array(x) for x in (*operands, *named.values())]
            closed, consts, structure = self._trace(leaves, len(operands), list(named))
            if closed is None:
                return self.function(operands, named)
            arrays = [*consts, *leaves]
            outs = hooks.defer(
                jit_p, arrays, {"jaxpr": closed, "name": self.function.__name__},
                tuple([x.aval for x in arrays]), closed.out_avals,
            )  # fmt: skip
            if outs is not None:
                return tree.tree_unflatten(structure, outs)
        return self.compiled(operands, named)

    def _known(self, operands: list, named: dict) -> bool:
        """Whether the operation on such operands is there, or its errors are for it to tell."""
        arrays = (*operands, *named.values())
        if not all([isinstance(x, ArrayImpl) and not x.is_deleted() for x in arrays]):
            return True
        key = (*[x.aval for x in arrays], config.trace_key())
        if key in self.traced or key in self.met:
            return True
        if self.moves:
            self.met[key] = True
        return False

    def _trace(
        self, leaves: list, count: int, names: list
    ) -> tuple[ClosedJaxpr | None, list, Any]:
        """What `traced` holds for such operands. The jaxpr is None where nothing is read of them:
        then the results are repeated constants, which are views and need no memory."""
        avals = [x.aval for x in leaves]
        key = (*avals, config.trace_key())
        found = self.traced.get(key)
        if found is None:
            structures: list[Any] = []

            def flat(*values: Any) -> list[Any]:
                by_name = dict(zip(names, values[count:], strict=True))
                outs, structure = tree.tree_flatten(self.function(list(values[:count]), by_name))
                structures.append(structure)
                return [as_array(x) for x in outs]

            jaxpr, consts = stage(flat, avals, self.function.__name__)
            read = {id(x) for eqn in jaxpr.eqns for x in eqn.invars} | set(map(id, jaxpr.outvars))
            closed = hoist_consts(jaxpr) if any([id(v) in read for v in jaxpr.invars]) else None
            found = self.traced[key] = closed, consts, structures[0]
            self.simple = all(map(_is_simple, jaxpr.eqns))
            self.moves = any(map(_moves, jaxpr.eqns))
        return found


def wrap_public(
    namespace: dict[str, Any], module: str, names: Iterable[str],
    count: Callable[[tuple, dict], int] = elements, always: bool = False, large: bool = True,
) -> None:  # fmt: skip
    """Replace functions of a public namespace by their programs; the rest as for `as_program`."""
    for name in names:
        made = as_program(namespace[name], count, always, large, CALLS[module].get(name))
        made.__module__ = module  # where pickle finds it
        namespace[name] = made


def _wanted(name: str) -> Callable:
    """The hook of this name by `api.eager.deferral`, which is loaded when it is first wanted."""

    def load(*args: Any) -> Any:
        if not config.eager_fusion.value:
            return None
        _load()
        return getattr(hooks, name)(*args)

    return load


def _load() -> None:
    importlib.import_module("numjet.api.eager.deferral")


hooks.load_deferral = _load
hooks.defer, hooks.defer_plan = _wanted("defer"), _wanted("defer_plan")
hooks.planned = _wanted("planned")
