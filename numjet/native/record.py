"""Staged arrays as native code (`trace_ir`): `StageTrace.record`, products, functions of one array.

`fast_native` loads the code, with its own, and calls `install` when it is there. What would break
it: an object of the context that dies (`_keep` holds them), and a method of the Python class that
is replaced later (by a debugger, say: the native code goes on).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.base.slots import slot
from numjet.core import jaxpr, trace
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import NO_EFFECTS, Eqn, Literal, Var
from numjet.core.lowering import Host
from numjet.core.primitive import Primitive
from numjet.native import record_ir as ir
from numjet.native.layout import forever
from numjet.ops.dot import dot_general_p
from numjet.transforms.stage import StageTrace, StageTracer

_CLASSES = {
    cls.__name__: cls
    for cls in (StageTrace, StageTracer, Var, Literal, Eqn, Primitive, ArrayImpl, ShapedArray)
}
_keep: list[Any] = forever([])
in_python = StageTrace.record  # the specification, to which the native code leaves the rest
_context = np.zeros(len(ir.CONTEXT), np.uint64)
# Operands of a product that were traced before, by their avals: the params and the result's aval.
traced_products: dict[tuple[ShapedArray, ShapedArray], tuple[dict, ShapedArray]] = {}
METHODS = "record user_line describe product apply_staged".split()


def offsets() -> tuple[int, ...] | None:
    """Where the slots that the code uses lie, or None where that cannot be told."""
    found: list[int | None] = []
    for name in ir.SLOTS:
        holder, attribute = name.split(".")
        found.append(_in_code() if holder == "code" else slot(_CLASSES[holder], attribute))
    known = [place for place in found if place is not None]
    return tuple(known) if len(known) == len(found) and _functions() else None


def _in_code() -> int | None:
    """Where code objects hold their file's name."""
    code = _in_code.__code__
    words = (ctypes.c_size_t * (type(code).__basicsize__ // 8)).from_address(id(code))
    places = [8 * i for i, word in enumerate(words) if word == id(code.co_filename)]
    return places[0] if len(places) == 1 else None


def _functions() -> dict[str, int] | None:
    """The interpreter's functions, or None where one is missing."""
    found = {}
    for name in ir.CONTEXT:
        if name.startswith("Py"):
            function = getattr(ctypes.pythonapi, name, None)
            if function is None:
                return None
            found[name] = ctypes.cast(function, ctypes.c_void_p).value or 0
    return found


_functions_of: dict[str, Any] = {}  # what `install` was given


def install(
    new_method: Callable, new_function: Callable, methods: dict[str, Any], recording: int
) -> None:
    """Let native code record equations, find lines and walk over programs. `methods` describe it
    (`METHODS`), the others make a method and a function of such descriptions (`operators`);
    recording: the address of the variable that leads to what the code knows."""
    objects = {
        "none": None, "true": True, "false": False, "tuple": tuple, "list": list,
        "no_effects": NO_EFFECTS, "primitive": Primitive, "var": Var, "literal": Literal,
        "eqn": Eqn, "stage_trace": StageTrace, "stage_tracer": StageTracer,
        "array_impl": ArrayImpl, "shaped_array": ShapedArray, "dict": dict, "ndarray": np.ndarray,
        "no_axes": (),
        "record": in_python, "atom": StageTrace.atom,
        "out_avals": Primitive.out_avals, "user_source": trace.user_source,
        "get_frame": sys._getframe, "zero": 0, "one": 1, "two": 2, "internal": trace._internal,
        "trace": trace._current, "products": traced_products, "dot_general": dot_general_p,
        "product": None,  # `install_product` knows
    }  # fmt: skip
    lines = np.zeros(3 * ir.LINES, np.int64)
    words = {name: id(x) for name, x in objects.items()} | (_functions() or {})
    words["lines"] = lines.__array_interface__["data"][0]
    _context[:] = [words[name] for name in ir.CONTEXT]
    ctypes.c_size_t.from_address(recording).value = _context.__array_interface__["data"][0]
    _keep.extend([objects, lines, methods, _context])
    _functions_of.update(methods, new_method=new_method, new_function=new_function)
    record = ctypes.addressof(methods["record"])
    StageTrace.record = new_method(StageTrace, record)  # type: ignore[method-assign]
    trace.user_line = _function("user_line", None)
    jaxpr.describe = _function("describe", None)
    StageTrace.wanted = None


def _function(name: str, known: Any) -> Callable:
    return _functions_of["new_function"](ctypes.addressof(_functions_of[name]), known, None)


def install_product(method: Callable) -> None:
    """Let native code do `x @ y` of staged arrays, with `method` for what it does not know."""
    _context[ir.CONTEXT.index("product")] = id(method)
    _keep.append(method)
    product = ctypes.addressof(_functions_of["product"])
    native = _functions_of["new_method"](StageTracer, product)
    setattr(StageTracer, "__matmul__", native)  # noqa: B010 - a class that has it from another


def staged(primitive: Primitive, avals: dict, function: Callable) -> Callable:
    """`function` of one array, which binds `primitive` for staged ones of known `avals` (the
    result's aval by the operand's, or None): as native code where it can be recorded by that."""
    if "apply_staged" not in _functions_of or primitive.multiple_results or primitive.effects:
        return function
    if type(primitive.loops) is Host:
        return function  # such equations are told apart by their params (`cpu.program.cache`)
    return _function("apply_staged", (None, avals, primitive, {}, function))
