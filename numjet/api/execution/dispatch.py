"""Running jaxprs on concrete arrays: compile once, call, wrap results.

Installs the evaluator that the core's eager mode uses for calls and loops. `api.compiled.jit_core`
calls `compiled` and `execute`.
"""

from __future__ import annotations

import ctypes
import importlib
import itertools
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet import cpu
from numjet.api.execution import any_size, not_finite
from numjet.api.execution.evaluated import Evaluated
from numjet.base import config, spans
from numjet.base.errors import InternalError
from numjet.base.log import compiling
from numjet.base.tree_registry import kind_of
from numjet.core import dtypes, hooks
from numjet.core.array import ArrayImpl, as_array
from numjet.core.avals import Placed, ShapedArray, any_placed
from numjet.core.deferred import DeferredArray
from numjet.core.dims import any_symbolic
from numjet.core.evaluate import check_finite
from numjet.core.hooks import Remote, Sharded
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, bare, eval_closed
from numjet.core.lowering import Host, Kernel, Reduce, Region
from numjet.core.memo import Memo, WeighedMemo
from numjet.core.primitive import Primitive
from numjet.core.remote import kept_home, target
from numjet.core.sharded import ShardedArray, any_sharded, constraint_of, place_of
from numjet.core.stretched import written_out
from numjet.core.trace import EVAL, set_trace
from numjet.cpu.link import link
from numjet.cpu.link.loader import CodeRefused
from numjet.cpu.program.executable import Executable
from numjet.cpu.runtime import events, memory

# Programs whose calls never were quicker than this (seconds) are handed to the device's queue:
# handing over and waiting cost 0.1 ms where pool and caller share two cores, a percent of this.
# The time of the first calls decides, since what an estimate at compile time cannot know - how
# often a loop runs - it cannot decide.
ASYNC_ABOVE = 1e-2
TIMED_CALLS = 3


def compiled(closed: ClosedJaxpr, name: str, donate: tuple[int, ...] = ()) -> Any:
    """The executable of `closed`, compiled at the first call and kept with the jaxpr."""
    closed = written_out(closed)
    key = ("executable", donate)
    found = closed.cache.get(key)
    if found is None:
        for aval in closed.in_avals:
            if type(aval) is ShapedArray and any_symbolic(aval.shape):
                raise ValueError(
                    f"{name}: a program of symbolic shapes, such as {aval.str_short()}, is "
                    "compiled when its sizes are known. Export it, and call the Exported."
                )
        start = time.perf_counter()
        asked = config.log_compiles.value
        text = "Compiling jit(%s) with global shapes and types %s."
        compiling(asked, text, name, tuple(closed.in_avals))
        try:
            with spans.span("lower", f"jit({name})"):
                lowered = bare(closed)
            with spans.span("compile", f"jit({name})"):
                found = cpu.compile(lowered, {"donate": donate, "name": name})
        except CodeRefused as reason:
            found = Evaluated(closed, str(reason))
        closed.cache[key] = found
        # In the words that JAX logs it in, which programs look for.
        text = "Finished XLA compilation of jit(%s) in %.6f sec"
        compiling(asked, text, name, time.perf_counter() - start)
    return found


def _references(values: Sequence[np.ndarray], i: int) -> int:
    return sys.getrefcount(values[i])


def _base_references(values: Sequence[np.ndarray], i: int) -> int:
    return sys.getrefcount(values[i].base)


# What the two count where nobody else knows of the array: in the list; of a view, its base.
_IN_LIST = _references([np.zeros(1)], 0)
_OF_VIEW = _base_references([np.zeros(2)[:1]], 0)


def is_shared(values: Sequence[np.ndarray], i: int) -> bool:
    """Whether anyone but this list sees the memory of `values[i]`, so that a program may not
    overwrite it although an Array gave it up."""
    if _references(values, i) > _IN_LIST:
        return True
    base = values[i].base
    if isinstance(base, np.ndarray):
        if _base_references(values, i) > _OF_VIEW + 1:  # and our name for it
            return True
        base = base.base
    return not (base is None or getattr(base, "from_pool", False))


def fixed(values: list[np.ndarray], is_view: bool) -> bool:
    """Whether nobody can write to the memory of the only item, which is the value of an Array, or a
    new view of one."""
    # NumPy's: the Array's and the list's references are all that there are.
    alone = not is_view and _references(values, 0) <= _IN_LIST + 1
    base = values[0].base
    if base is None:
        return alone and values[0].flags.owndata
    bases = [base]
    while type(base) is np.ndarray:
        # Of each array of which it is a view: the view's, the list's and the loop's.
        alone = alone and _references(bases, 0) <= _IN_LIST + 2
        below = base.base
        if below is None:
            return alone and base.flags.owndata
        bases[0] = base = below
        del below
    return getattr(base, "from_pool", False)


def keep_apart(consts: Sequence[Any]) -> None:
    """Give the Arrays among `consts`, what a traced function closed over, memory that nobody else
    can write to: a program computes with what they were when it was traced."""
    for x in consts:
        if type(x) not in (ArrayImpl, ShardedArray) or x.is_deleted() or x._pending is not None:
            continue
        if type(x._value) is np.ndarray and not fixed([x._value], False):
            own = memory.lasting(x._value.shape, x._value.dtype)
            np.copyto(own, x._value)
            x._value = own


def wrap(
    values: Sequence[np.ndarray], closed: ClosedJaxpr, args: Sequence[Any], name: str
) -> list[ArrayImpl]:
    """Arrays around the results of a program of `args`. Where these are tested, the operation that
    made what is no number is named."""
    if config.numeric_checks[0]:
        alone = _is_region(closed)
        try:
            for value in values:
                check_finite(closed.jaxpr.eqns[0].primitive.name if alone else name, value)
        except FloatingPointError:
            if not alone:
                not_finite.again()
                if not not_finite.among(args):
                    with set_trace(EVAL):
                        eval_closed(closed, *args)
                raise FloatingPointError(not_finite.unexplained(name)) from None
            raise
        made = zip(values, closed.out_avals, strict=True)
        return [hooks.computed_here(ArrayImpl(value, aval)) for value, aval in made]
    return [ArrayImpl(value, aval) for value, aval in zip(values, closed.out_avals, strict=True)]


def _is_region(closed: ClosedJaxpr) -> bool:
    """Whether it is a loop or branch alone, which is one operation; calls are what they call."""
    eqns = closed.jaxpr.eqns
    region = eqns[0].primitive.loops if len(eqns) == 1 else None
    return isinstance(region, Region) and region.name not in ("jit", "call")


class Result:
    """One result of a call that was handed over: `value`, once `call` has ended."""

    __slots__ = ("call", "value")

    def __init__(self, call: events.Pending, value: np.ndarray) -> None:
        self.call, self.value = call, value

    def result(self) -> np.ndarray:
        if self.call.wait():
            raise RuntimeError("a compiled program failed.")
        return self.value

    def done(self) -> bool:
        return self.call.done()


def arrived(leaves: Sequence[Any]) -> bool:
    """Wait for the values of deferred arrays; whether there was one."""
    waiting = [x for x in leaves if type(x) is DeferredArray]
    for x in waiting:
        x.block_until_ready()
    # What is flattened next has another type, of which pytrees may have seen none.
    return bool(waiting) and kind_of(ArrayImpl) is None


def may_wait(executable: Any) -> bool:
    """Whether calls of this program may run behind the caller's back: nothing of them happens in
    Python and no result is checked."""
    return (
        config.async_dispatch.value
        and not executable.host_calls
        and not spans.recorders  # which show when it ran
        and not config.numeric_checks[0]
        and not config.check_bounds.value
    )


def submit(
    executable: Any, args: Sequence[ArrayImpl], avals: Sequence[ShapedArray], given: Sequence[Any]
) -> list[ArrayImpl]:
    """Queue a call of `executable` on `args` and return its results-to-be.

    Results of queued calls are taken as they are: the queue keeps the order. Arrays of the user's
    (`given` are the last arguments as passed) are copied, for they may be written before it starts.
    """
    ins: list[Any] = []
    first = len(args) - len(given)
    for i, x in enumerate(args):
        pending = x._pending
        known = type(pending) is Result and not pending.done()
        value = pending.value if known else x._value
        flags = value.flags
        foreign = i >= first and type(given[i - first]) is np.ndarray and flags.writeable
        if foreign or not (flags.c_contiguous and flags.aligned):
            if known:
                value = x._value  # copying reads it
            value = np.array(value, order="C", copy=True)
        ins.append(value)
    program = executable.prepared()
    results = [make() for make in program.makers]
    inputs, outputs = tuple(ins), tuple(results)
    arena = None if program.arenas is None else executable.new_arena()
    address = ctypes.cast(program.function, ctypes.c_void_p).value or 0
    call = events.queue().submit(
        address,
        [
            id(inputs) + _ITEMS,
            id(outputs) + _ITEMS,
            None if arena is None else arena[1].value,
            ctypes.addressof(program.table),
        ],
        (inputs, outputs, arena, executable),
    )
    return [
        ArrayImpl._from_pending(Result(call, value), aval)
        for value, aval in zip(results, avals, strict=True)
    ]


_ITEMS = tuple.__basicsize__  # where a tuple's items begin: a table of array objects


def run(
    closed: ClosedJaxpr, args: Sequence[Any], name: str, is_whole: bool = False
) -> list[Any]:
    """Compile (once) and run; under `disable_jit` operation by operation instead (but for a loop
    or branch alone, which is one operation). is_whole: on whole arrays, the caller lays the results
    out."""
    closed = written_out(closed)
    if config.disable_jit.value and not _is_region(closed):
        return eval_closed(closed, *args)
    sharded = Sharded.active and any_sharded(args)
    place = target(args, name) if Remote.active and not sharded else None
    if place is not None:
        return Remote.run(closed, args, place, name) if place else run_home(closed, args, name)
    constrains = Sharded.marks and not is_whole and (
        constraint_of(closed) is not None or place_of(closed) is not None)  # fmt: skip
    if sharded or constrains or Placed.active and any_placed(closed.out_avals):
        return Sharded.run(closed, args, name)
    return _natively(closed, args, name)


def _natively(closed: ClosedJaxpr, args: Sequence[Any], name: str) -> list[Any]:
    executable = compiled(closed, name)
    values = [(x if type(x) is ArrayImpl else as_array(x))._value for x in args]
    return wrap(executable(values), closed, args, name)


def run_home(closed: ClosedJaxpr, args: Sequence[Any], name: str) -> list[Any]:
    """Run on the CPU, where an argument was put; the results belong there, too."""
    outs = _natively(closed, args, name)
    kept_home(outs, args)
    return outs


Remote.home = run_home


# What NumPy gives at once, as a view, or by a library that uses all cores.
_NUMPYS = frozenset("reshape squeeze broadcast_in_dim transpose slice rev name "
                    "stop_gradient add_any bitcast_convert_type".split())
_BLAS_TYPES = ("float32", "float64", "complex64", "complex128")
# Programs that are found by what was called, not kept with a jaxpr, take so many bytes together.
PROGRAM_BYTES = 1 << 26


def weight(program: Any) -> int:
    """About the bytes that are there as long as a program (or what says that there is none) is."""
    return getattr(program, "held_bytes", 64)


_operations = WeighedMemo("compiled operations", 4096, PROGRAM_BYTES, weight)
# Sizes may change with each call: an operation is compiled at first sight for so many. For others
# elementwise ones run by blocks, and reductions, of which NumPy does so many elements in the time
# that compiling takes, by NumPy until they come again. What comes often is compiled for its size.
_AT_FIRST = 4
_QUICK = 1 << 21
_OFTEN = 16
_sizes: dict[tuple, int] = Memo("sizes of compiled operations")
_met = object()  # in place of a program


def operation(primitive: Primitive, avals: tuple, params: dict, out: Any) -> Any:
    """One operation on large operands as a compiled function, or None where NumPy does it as well.

    The function takes a list of NumPy arrays and gives a list of results.
    """
    if primitive.name in _NUMPYS or config.disable_jit.value or not config.eager_compile.value:
        return None
    try:
        key = (primitive, avals, tuple(params.items()))
        found = _operations.get(key, key)
        if found is not key and found is not _met:  # None, too
            return found
        if found is key and _is_passing(primitive, avals):
            if any_size.is_elementwise(primitive, avals, out):
                found = _operations[key] = _by_blocks(primitive, avals, params, out, key)
                return found
            if _is_quick(primitive, avals):
                _operations[key] = _met
                return None
    except TypeError:  # params that do not hash
        return None
    found = None if _by_library(primitive, avals) else _compiled_operation(
        primitive, avals, params, out)
    _operations[key] = found
    return found


def _is_passing(primitive: Primitive, avals: tuple) -> bool:
    """Whether an operation that is new has come with many sizes before."""
    kind = (primitive, *[(a.dtype, a.ndim) for a in avals])
    count = _sizes.get(kind, 0)
    if count < _AT_FIRST:
        _sizes[kind] = count + 1
    return count >= _AT_FIRST


def _is_quick(primitive: Primitive, avals: tuple) -> bool:
    """Whether NumPy does an operation once in less time than it takes to compile it."""
    return type(primitive.loops) is Reduce and all([
        a.size <= _QUICK and a.dtype.kind in "fiub" and a.dtype.name != "float16" for a in avals
    ])  # fmt: skip


def _by_blocks(
    primitive: Primitive, avals: tuple, params: dict, out: ShapedArray, whole: tuple
) -> Any:
    """An elementwise operation by the program of a block of elements: one for an octave of sizes.
    When it came often it becomes the program of its size, as `whole`. None where there is none."""
    block = any_size.block_of(out.size)
    if not block:
        return _compiled_operation(primitive, avals, params, out)
    parts = tuple([any_size.as_block(a, block) for a in avals])
    part = any_size.as_block(out, block)
    key = (*whole[:1], parts, *whole[2:])
    program = _operations.get(key, key)
    if program is key:
        program = _operations[key] = _compiled_operation(primitive, parts, params, part)
    if not isinstance(program, Executable):
        return None
    cut, dtype = [bool(a.shape) for a in avals], dtypes.physical(out.dtype)
    uses = itertools.count(1)

    def call(values: Sequence[np.ndarray]) -> list[np.ndarray]:
        if next(uses) == _OFTEN:
            _operations[whole] = _compiled_operation(primitive, avals, params, out)
        made = memory.empty(out.shape, dtype)
        flat = [np.ascontiguousarray(x).reshape(-1) if x.ndim else x for x in values]
        if not any_size.run(program, flat, cut, [made.reshape(-1)], out.size, block):
            raise InternalError(f"{primitive.name}: the program of a block failed.")
        return [made]

    return call


def _by_library(primitive: Primitive, avals: tuple) -> bool:
    """Whether BLAS or LAPACK, as NumPy calls it, is at home here: products of wide floats, one
    matrix."""
    if primitive.name == "dot_general":
        return all([a.dtype.name in _BLAS_TYPES for a in avals])
    return isinstance(primitive.loops, Kernel) and avals[0].ndim == 2 and primitive.loops.name in (
        "cholesky", "eig", "eigh", "hessenberg", "householder_product", "lu", "qr", "schur",
        "solve", "svd", "triangular_solve",
    )


def _compiled_operation(primitive: Primitive, avals: tuple, params: dict, out: Any) -> Any:
    if isinstance(primitive.loops, Host) or dtypes.float0 in [a.dtype for a in avals]:
        return None
    outs = out if primitive.multiple_results else [out]
    ins, results = [Var(a) for a in avals], [Var(a) for a in outs]
    eqn = Eqn(ins, results, primitive, params)
    try:
        with spans.span("compile", primitive.name):
            executable = cpu.compile(ClosedJaxpr(Jaxpr([], ins, results, [eqn]), []), {})
    except CodeRefused:  # NumPy does it then, for which nobody has to be warned
        return None
    return None if executable.host_calls else executable


hooks.run_compiled, hooks.operation, hooks.cache = run, operation, link
hooks.new_array = memory.empty


def _following() -> Any:
    """`api.execution.key_reuse`, which few programs ask for."""
    return importlib.import_module("numjet.api.execution.key_reuse")


def _guards() -> Any:
    """`api.execution.guards`, which few programs ask for."""
    return importlib.import_module("numjet.api.execution.guards")


for _flag in config.transfer_guards:
    _flag.on_block(lambda level: _guards().block(level))
    _flag.on_change(lambda level: _guards().refresh())
    if _flag.value is not None:
        _guards().refresh()
    config.transfer_guard.on_change(_flag.set)
config.debug_key_reuse.on_block(lambda value: _following().following(value))
config.debug_key_reuse.on_change(lambda value: _following().follow(value))
if config.debug_key_reuse.value:
    _following().follow(True)
