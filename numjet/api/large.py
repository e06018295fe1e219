"""Functions made of several operations run as one compiled program where operands are large.

`as_program(function)` wraps a public function: called on concrete arrays of `LARGE` elements or
more while nothing traces, it runs compiled, so that what it is made of passes memory once and runs
on all cores; else it is the function itself. Applied by the public namespaces to functions whose
results' shapes do not depend on values. What would break it: a function that reads values.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Iterable
from typing import Any

from numjet.api.jit import jit
from numjet.base import config, tree
from numjet.base.errors import ConcretizationTypeError
from numjet.core import hooks
from numjet.core.array import ArrayImpl, as_array
from numjet.core.deferred import DeferredArray
from numjet.core.evaluate import DEAR, LARGE
from numjet.core.jaxpr import ClosedJaxpr, Eqn, subjaxprs
from numjet.core.lowering import Pointwise, Reduce
from numjet.core.memo import Memo
from numjet.core.trace import EVAL, current_trace
from numjet.ops.jit_call import jit_p
from numjet.transforms.stage import hoist_consts, stage

CHECKS = config.numeric_checks
# A function keeps programs for so many combinations of other arguments; beyond, it runs operation
# by operation, since arguments that change with each call would compile each time.
_MAX_PROGRAMS = 64
# So many kinds of small operands are remembered.
_MAX_MET = 1024


_OPERANDS = (ArrayImpl, DeferredArray, float)


def dear_operands(args: tuple, kwargs: dict) -> bool:
    """Whether arrays and numbers with a fraction are all that is given, `DEAR` elements in one:
    other numbers, which may differ in each call, would compile each time."""
    if kwargs or not all([type(x) in _OPERANDS for x in args]):
        return False
    return max([x.aval.size for x in args if type(x) is not float], default=0) >= DEAR


def always(args: tuple, kwargs: dict) -> bool:
    return True


def _large_operand(args: tuple, kwargs: dict) -> bool:
    for x in args:
        kind = type(x)
        if (kind is ArrayImpl or kind is DeferredArray) and x.aval.size >= LARGE:
            return True
    return False


def _elements(args: tuple, kwargs: dict, place: int) -> int:
    """Those of the shape that is given as `shape`, at `place`; 0 where there is none."""
    shape = args[place] if len(args) > place else kwargs.get("shape")
    if type(shape) is int:
        return shape
    if type(shape) is not tuple or not all([type(n) is int for n in shape]):
        return 0
    return math.prod(shape)


def dear_shape(place: int) -> Callable[[tuple, dict], bool]:
    """For functions that draw: `dear_operands`, or `DEAR` elements of the argument `shape`, at
    `place`, with arrays and numbers with a fraction before it, and any numbers behind."""

    def is_dear(args: tuple, kwargs: dict) -> bool:
        if len(args) <= place:
            return dear_operands(args, kwargs)
        if kwargs or not all([type(x) in _OPERANDS for x in args[:place]]):
            return False
        if not all([type(x) is int or type(x) in _OPERANDS for x in args[place + 1 :]]):
            return False
        return _elements(args, kwargs, place) >= DEAR

    return is_dear


def large_shape(place: int) -> Callable[[tuple, dict], bool]:
    """For functions that draw: whether the argument `shape`, at `place`, has so many elements."""

    def is_large(args: tuple, kwargs: dict) -> bool:
        return _elements(args, kwargs, place) >= LARGE

    return is_large


def as_program(
    function: Callable,
    is_large: Callable[[tuple, dict], bool] = _large_operand,
    is_dear: Callable[[tuple, dict], bool] | None = None,
) -> Callable:
    """`function`, compiled for large concrete operands, and for small ones that `is_dear` is true
    of: `always`, or when such operands are met a second time, since sizes may change with each
    call."""
    programs: dict[Any, Any] = {}
    met: set[tuple] = set()
    untraced = object()  # in place of a program that cannot be made

    def is_new(args: tuple) -> bool:
        key = tuple([
            x.aval if type(x) in _OPERANDS[:2] else float if type(x) is float else x for x in args
        ])  # fmt: skip
        if key in met:
            return False
        if len(met) >= _MAX_MET:
            met.clear()
        met.add(key)
        return True

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        large = is_large(args, kwargs)
        if not large and (is_dear is None or not is_dear(args, kwargs)):
            return function(*args, **kwargs)
        if not large and is_dear is not always and is_new(args):
            return function(*args, **kwargs)
        if current_trace() is not EVAL or CHECKS[0]:
            return function(*args, **kwargs)
        if config.disable_jit.value or not config.eager_compile.value:
            return function(*args, **kwargs)
        return run(args, kwargs, large)

    def run(args: tuple, kwargs: dict, large: bool) -> Any:
        # Positional numbers with a fraction are operands, as they may differ in each call.
        given = [type(x) in _OPERANDS for x in args]
        named = {k: v for k, v in kwargs.items() if type(v) in _OPERANDS[:2]}
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
            return program(operands, named) if large else program.compiled(operands, named)
        except ConcretizationTypeError:  # an argument whose value is asked for: not tried again
            programs[key] = untraced
            return function(*args, **kwargs)

    return call


def _is_simple(eqn: Eqn) -> bool:
    primitive = eqn.primitive
    if primitive.name == "custom_jvp_call":
        return all([all(map(_is_simple, inner.eqns)) for inner in subjaxprs(eqn.params)])
    of_rows = type(primitive.loops) in (Pointwise, Reduce)
    return of_rows and not primitive.multiple_results and primitive.evaluate is None


class _Program:
    """A function of a list and a dict of operands, compiled, or written down as one operation."""

    def __init__(self, function: Callable) -> None:
        self.function, self.compiled = function, jit(function)
        # By avals, and what tracing depends on: the jaxpr, its constants and the results' tree.
        self.traced: dict[tuple, Any] = Memo("large functions as operations", 64, passing=True)
        # Whether it is operations on elements and rows alone, as far as was seen.
        self.simple = False

    def __call__(self, operands: list, named: dict) -> Any:
        if config.eager_fusion.value:
            if self.simple and not self._known(operands, named):
                # Written down as the operations that it is, which have programs of any size.
                return self.function(operands, named)
            leaves = [as_array(x) for x in (*operands, *named.values())]
            closed, consts, structure = self._trace(leaves, len(operands), list(named))
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
        return (*[x.aval for x in arrays], config.trace_key()) in self.traced

    def _trace(self, leaves: list, count: int, names: list) -> tuple[ClosedJaxpr, list, Any]:
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
            found = self.traced[key] = hoist_consts(jaxpr), consts, structures[0]
            self.simple = all(map(_is_simple, jaxpr.eqns))
        return found


def wrap_public(
    namespace: dict[str, Any], module: str, names: Iterable[str],
    is_large: Callable[[tuple, dict], bool] = _large_operand,
    is_dear: Callable[[tuple, dict], bool] | None = None,
) -> None:  # fmt: skip
    """Replace functions of a public namespace by their programs."""
    for name in names:
        made = as_program(namespace[name], is_large, is_dear)
        made.__module__ = module  # where pickle finds it
        namespace[name] = made


def _defer(*operation: Any) -> Any:
    """`api.deferral.defer`; that module is loaded when it is first wanted."""
    if not config.eager_fusion.value:
        return None
    importlib.import_module("numjet.api.deferral")
    return hooks.defer(*operation)


hooks.defer = _defer
