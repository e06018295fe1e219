"""Operations written down natively (`code.deferral`): what it has to know, and plans for it.

`operators` loads the code, with its own, and calls `install`; `api.eager.deferral` says what it
writes to (`connect`), in either order. What would break it: an object of the context that dies
(`_keep` holds them), and a slot of `core.deferred`'s classes that holds something else than it
says.
"""

from __future__ import annotations

import ctypes
import itertools
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.base import config, locks
from numjet.base.errors import InternalError
from numjet.core import deferred, hooks
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import Var
from numjet.core.memo import Memo
from numjet.cpu.builder.records import words
from numjet.native import objects
from numjet.native.entries import address
from numjet.native.layout import context_of, forever, slots_of
from numjet.native.tables import WRITTEN, DeferralContext, Written, WrittenStep
from numjet.transforms.eager import LinearizeTrace, LinearTracer
from numjet.transforms.linear_steps import LinearStep, Rule

FUNCTIONS = {"defer_plan": "positional", "planned": "function", "survey": "positional",
             "run_found": "positional",
             "process": "positional", "lifted": "positional",
             "record_key": "positional", "residuals": "positional", "known_call": "function"}
_CLASSES: tuple[tuple[Any, Any, bool], ...] = (
    (objects.Tape, deferred.Record, False), (objects.Open, deferred.Open, True),
    (objects.Place, deferred.Place, True),
    (objects.DeferredArray, deferred.DeferredArray, True), (objects.Plan, deferred.Plan, True),
    (objects.Form, deferred.FormRecord, False), (objects.Var, Var, True),
    (objects.LinearTracer, LinearTracer, True), (objects.Rule, Rule, True),
    (objects.LinearStep, LinearStep, True),
)  # fmt: skip
# What 0.0 is called among a dict's numbers, as it equals -0.0.
PLUS_ZERO = "+0.0"
in_python = LinearizeTrace.process  # the specification, to which the native code leaves the rest
_keep: list[Any] = forever([])
_given: dict[str, Any] = forever({})  # what `install` and `connect` were given
# Small arrays alone do not load `api.eager.deferral`. That takes 1 to 3 ms, which about so many
# derivatives lose that are linearized in Python.
_MISSED = 150
_missed = itertools.count()


def reason() -> str:
    """Why native code cannot write operations down; "" when it can: the slots were found."""
    for record, cls, exact in _CLASSES:
        if not slots_of(record, cls, exact):
            return f"the slots of {cls.__name__} were not found"
    functions = [name for name in words(DeferralContext) if name.startswith("Py")]
    missing = [name for name in functions if not hasattr(ctypes.pythonapi, name)]
    return f"the interpreter does not have {missing[0]}" if missing else ""


def install(
    new_function: Callable, new_method: Callable, methods: dict[str, Any], variable: int
) -> None:
    """The code is there. `methods` describe its functions, `new_function` and `new_method` make one
    of such; the variable leads to what the code knows."""
    _given.update(
        methods=methods, new_function=new_function, new_method=new_method, variable=variable
    )
    _begin()


def connect(known: dict[str, Any], numbers: dict[str, int]) -> None:
    """Say what the code is to know: objects, and numbers (addresses among them)."""
    _given.update(objects=known, numbers=numbers)
    _begin()


def usable() -> bool:
    """Whether the code is there, and knows what it writes to."""
    return "objects" in _given and "variable" in _given


def wanted() -> bool:
    """Whether the code can be used for a derivative that Python linearized. When many such came,
    what it writes to is loaded."""
    if "objects" not in _given and "variable" in _given and next(_missed) >= _MISSED:
        hooks.load_deferral()
    return usable()


def _begin() -> None:
    """Let the code begin when both are known."""
    if not usable():
        return
    known = _given["objects"] | {
        "true": True, "false": False, "list": list, "dict": dict, "tuple": tuple, "empty": (),
        "none": None,
        "ndarray": np.ndarray, "array": ArrayImpl, "deferred": deferred.DeferredArray,
        "place": deferred.Place, "open": deferred.Open, "plan": deferred.Plan,
        "pool_name": "from_pool",
        "float": float, "plus_zero": PLUS_ZERO, "linear_tracer": LinearTracer, "var": Var,
        "shaped_array": ShapedArray,
        "step": LinearStep, "rule": Rule, "memo": Memo, "checks": config.numeric_checks,
        "process": in_python, "mismatched": mismatched, "zero": 0, "rules_name": "rules",
        "tape_name": "tape",
    }  # fmt: skip
    facts = {name: id(x) for name, x in known.items()} | _given["numbers"]
    facts |= {"state": config.state.buffer_info()[0], "thread": 0, "opened": 0}
    context = context_of(DeferralContext, facts)
    _keep.append((known, context))
    ctypes.c_size_t.from_address(_given["variable"]).value = address(context)
    hooks.defer_plan = function("defer_plan", None)
    hooks.lifted = function("lifted", None)
    hooks.record_key = function("record_key", None)
    hooks.residuals = function("residuals", None)
    for name in ("survey", "run_found"):
        _given[name] = function(name, None)
    process = ctypes.addressof(_given["methods"]["process"])
    hooks.install(LinearizeTrace, {"process": _given["new_method"](LinearizeTrace, process)})


def function(name: str, known: Any) -> Callable:
    """A native function with what it is given as `self`."""
    return _given["new_function"](ctypes.addressof(_given["methods"][name]), known, None)


def survey(rows: list) -> tuple[bytes, dict[int, Any]]:
    """What tells rows of a record from others (forms' numbers and operands, as words), and the
    results that somebody holds, by their codes."""
    found = _given.get("survey", _survey)(rows)
    return _survey(rows) if found is None else found


def _survey(rows: list) -> tuple[bytes, dict[int, Any]]:
    key = array("q")
    holders = {}
    for i, (form, codes, helds) in enumerate(map(deferred.parts, rows)):
        key.append(form.number)
        key.append(len(codes))
        key.extend(codes)
        for k, held in enumerate(helds):
            x = held()
            if x is not None:
                holders[i << deferred.RESULTS | k] = x
    return key.tobytes(), holders


def run_found(rows: list, inputs: list, table: dict) -> Any:
    """Run the program of rows on inputs, if the table has it, and give those results their values
    that somebody holds: the entry of the table, which is a tuple of the function and whatever else.
    Where the table does not have it, the bytes that are its key; None where nothing is native."""
    native = _given.get("run_found")
    return None if native is None else native(rows, inputs, table)


def mismatched(given: Any, held: list) -> None:
    """Raise that a program's results are not the arrays that wait for them: for native code."""
    kinds = [type(x).__name__ for x in given] if type(given) is tuple else type(given).__name__
    raise InternalError(f"a program gave {kinds} where {len(held)} arrays were expected.")


def planned(plan: deferred.Plan, complete: Callable) -> Callable:
    """`complete` of arrays of the plan's avals, written down where that can be."""
    return function("planned", (None, plan, complete)) if usable() else complete


_preparing = locks.reentrant()


def prepare(plan: deferred.Plan, forms: tuple) -> None:
    """Give a plan its forms, and make it one for native code if there are some. Once, whoever comes
    first: native code of other threads may be reading what is held."""
    with _preparing:
        if plan.forms is None:
            entry = _entry(plan, forms)
            plan.forms = forms
            plan.entry = entry  # last: it points into all else


def _entry(plan: deferred.Plan, forms: tuple) -> Any:
    arrays = plan.avals
    count = len(arrays) + len(forms)
    if not forms or count > WRITTEN:
        return None
    refs: list[Any] = [np.array([a.nbytes for a in arrays] or [0], np.int64)]
    refs.append(np.array([*map(id, plan.constants), 0], np.int64))
    steps = []
    last = len(forms) - 1
    kept = {last} if plan.kept is None else plan.kept
    for k, (form, (_, _, places, out)) in enumerate(zip(forms, plan.equations, strict=True)):
        refs.append(np.array(places, np.int64))
        step = {
            "form": id(form), "aval": id(out), "kept": k in kept, "count": len(places),
            "place": address(refs[-1]),
        }  # fmt: skip
        steps.append([step[name] for name in words(WrittenStep)])
    refs.append(np.array(steps, np.int64))
    whole = {
        "operands": len(arrays) - len(plan.constants), "constants": len(plan.constants),
        "nbytes": address(refs[0]), "constant": address(refs[1]), "steps": len(steps),
        "step": address(refs[-1]), "outs": 0 if plan.kept is None else len(plan.kept),
        "view": len(forms) == 1 and forms[0].view,
    }  # fmt: skip
    plan.held = tuple(refs)
    return np.array([whole[name] for name in words(Written)], np.int64)
