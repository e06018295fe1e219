"""Staged arrays as native code (`code.record`): `StageTrace.record`, products, and more; and what
differentiation writes down again (`code.replay`).

`operators` loads the code, with its own, and calls `install` when it is there. What would break
it: an object of the context that dies (`_keep` holds them), and a method of the Python class that
is replaced later (by a debugger, say: the native code goes on).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.core import hooks, trace
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import NO_EFFECTS, Eqn, Literal, Var
from numjet.core.lowering import Host
from numjet.core.memo import Memo
from numjet.core.names import named
from numjet.core.primitive import Primitive
from numjet.cpu.builder.records import place_fields, words
from numjet.native import objects
from numjet.native.entries import address
from numjet.native.layout import context_of, forever, slots_of
from numjet.native.tables import LINES, RecordContext
from numjet.ops.dot import dot_general_p
from numjet.transforms import replay
from numjet.transforms.jvp import JVPTracer
from numjet.transforms.linearize import PartialTracer
from numjet.transforms.stage import StageTrace, StageTracer

# What `native.objects` calls the classes, whose own names are those that programs see.
_CLASSES = {
    "StageTrace": StageTrace, "StageTracer": StageTracer, "Var": Var, "Literal": Literal,
    "Eqn": Eqn, "Primitive": Primitive, "JVPTracer": JVPTracer, "PartialTracer": PartialTracer,
    "ReplayTrace": replay.ReplayTrace, "Pattern": replay.Pattern,
}  # fmt: skip
_CONTEXT = words(RecordContext)
_keep: list[Any] = forever([])
# The specifications, to which the native code leaves the rest.
in_python = StageTrace.record
replay_in_python = replay.ReplayTrace.process
_context = np.zeros(len(_CONTEXT), np.uint64)
# Operands of a product that were traced before, by their avals: the params and the result's aval.
traced_products: dict[tuple[ShapedArray, ShapedArray], tuple[dict, ShapedArray]] = Memo(
    "products of traced arrays"
)
METHODS = (
    "record user_line caller_line describe product apply_staged replay_jvp replay_transposed"
).split()


def reason() -> str:
    """Why native code cannot record; "" when it can: the slots that it uses were found."""
    for name, cls in _CLASSES.items():
        if not slots_of(getattr(objects, name), cls):
            return f"the slots of {name} were not found"
    place = _in_code()
    if place is None:
        return "the file's name was not found in code objects"
    place_fields(objects.Code, {"co_filename": place})
    missing = [x for x in _CONTEXT if x.startswith("Py") and not hasattr(ctypes.pythonapi, x)]
    return f"the interpreter does not have {missing[0]}" if missing else ""


def _in_code() -> int | None:
    """Where code objects hold their file's name."""
    code = _in_code.__code__
    found = (ctypes.c_size_t * (type(code).__basicsize__ // 8)).from_address(id(code))
    places = [8 * i for i, word in enumerate(found) if word == id(code.co_filename)]
    return places[0] if len(places) == 1 else None


_functions_of: dict[str, Any] = {}  # what `install` was given


def install(
    new_method: Callable, new_function: Callable, methods: dict[str, Any], operators: np.ndarray,
    recording: int,
) -> None:  # fmt: skip
    """Let native code record equations, find lines and walk over programs. `methods` describe it
    (`METHODS`), the others make a method and a function of such descriptions (`operators`);
    operators: where what is known of each operator stands (`operators.install_staged`); recording:
    the address of the variable that leads to what the code knows."""
    objects_ = {
        "none": None, "true": True, "false": False, "tuple": tuple, "list": list,
        "no_effects": NO_EFFECTS, "primitive": Primitive, "var": Var, "literal": Literal,
        "eqn": Eqn, "stage_trace": StageTrace, "stage_tracer": StageTracer,
        "array_impl": ArrayImpl, "shaped_array": ShapedArray, "dict": dict, "ndarray": np.ndarray,
        "no_axes": (),
        "record": in_python, "atom": StageTrace.atom,
        "out_avals": Primitive.out_avals, "user_source": trace.user_source,
        "source_of": trace.source_of,
        "get_frame": sys._getframe, "zero": 0, "one": 1, "two": 2, "internal": trace._internal,
        "products": traced_products, "dot_general": dot_general_p,
        "product": None,  # `install_product` knows
        "int": int, "memo": Memo, "pattern": replay.Pattern, "replay_trace": replay.ReplayTrace,
        "jvp_tracer": JVPTracer, "partial_tracer": PartialTracer, "named": named,
        "malformed": replay.malformed, "replay_jvp": replay_in_python,
        "replayed": replay.ReplayTrace.replayed, "transposed": replay.transposed,
        "transposed_as": replay.transposed_as,
    }  # fmt: skip
    lines = np.zeros(3 * LINES, np.int64)
    known = {name: id(x) for name, x in objects_.items()}
    known |= {"lines": address(lines), "operators": address(operators)}
    _context[:] = context_of(RecordContext, known)
    ctypes.c_size_t.from_address(recording).value = address(_context)
    _keep.extend([objects_, lines, methods, _context])
    _functions_of.update(methods, new_method=new_method, new_function=new_function)
    record = ctypes.addressof(methods["record"])
    hooks.install(StageTrace, {"record": new_method(StageTrace, record)})
    hooks.user_line = _function("user_line", None)
    hooks.caller_line = _function("caller_line", None)
    # Entries without code: no line is found there, and what they own is given up by the next.
    hooks.lines_changed = lambda: lines.reshape(LINES, -1)[:, 0].fill(0)
    hooks.describe = _function("describe", None)
    written = ctypes.addressof(methods["replay_jvp"])
    hooks.install(replay.ReplayTrace, {"process": new_method(replay.ReplayTrace, written)})
    hooks.transposed = _function("replay_transposed", None)
    hooks.long_trace = None


def _function(name: str, known: Any) -> Callable:
    return _functions_of["new_function"](ctypes.addressof(_functions_of[name]), known, None)


def install_product(method: Callable) -> None:
    """Let native code do `x @ y` of staged arrays, with `method` for what it does not know."""
    _context[_CONTEXT.index("product")] = id(method)
    _keep.append(method)
    product = ctypes.addressof(_functions_of["product"])
    native = _functions_of["new_method"](StageTracer, product)
    hooks.install(StageTracer, {"__matmul__": native})


def staged(primitive: Primitive, avals: dict, function: Callable) -> Callable:
    """`function` of one array, which binds `primitive` for staged ones of known `avals` (the
    result's aval by the operand's, or None): as native code where it can be recorded by that."""
    if "apply_staged" not in _functions_of or primitive.multiple_results or primitive.effects:
        return function
    if type(primitive.loops) is Host:
        return function  # such equations are told apart by their params (`cpu.program.cache`)
    return _function("apply_staged", (None, avals, primitive, {}, function))
