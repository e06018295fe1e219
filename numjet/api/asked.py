"""Which exception says that the value of a traced argument is not known: the class that JAX raises
in the function that the user called.

Where Python asks a tracer for its value, `core.trace` raises, and asks here first (`hooks.asked`):
the stack tells which public function was called with the tracer, and the table
(`api.asked_table`) which class JAX raises there. Nothing is looked at before something is raised.
What would break it: a public function whose parameters have other names than in the table (the
class is then the one that Python's question implies), and functions of a public namespace that are
no longer found through `__wrapped__`.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any

from numjet.api.asked_table import TABLE
from numjet.base import errors
from numjet.core import hooks
from numjet.core.trace import Tracer, is_ours

# By the table's word: the class, and the sentence that its message begins with.
_KINDS: dict[str, tuple[type[Exception], str]] = {
    "static": (
        ValueError,
        "Non-hashable static arguments are not supported. An error occurred while trying to hash "
        "an object of type {kind}, {value}",
    ),
    "param": (
        TypeError,
        "parameters to jaxpr equations must have __hash__ and __eq__ methods. The value of "
        "parameter {name} was not hashable: {value}",
    ),
    "shape": (
        TypeError,
        "Shapes must be 1D sequences of concrete values of integer type, got {value}",
    ),
    "hash": (TypeError, "unhashable type: {kind}, {value}"),
    "concrete": (
        errors.ConcretizationTypeError,
        "Abstract tracer value encountered where concrete value is expected: {value}",
    ),
    "type": (TypeError, "a Python value is needed, got {value}"),
    "bool": (
        errors.TracerBoolConversionError,
        "Attempted boolean conversion of {value}",
    ),
    "integer": (
        errors.TracerIntegerConversionError,
        "The __index__() method was called on {value}",
    ),
    "array": (
        errors.TracerArrayConversionError,
        "The numpy.ndarray conversion method __array__() was called on {value}",
    ),
}
# By the code of a public function: its name, and by a parameter with its mark the table's word.
_known: dict[CodeType, tuple[str, dict[str, str]]] = {}


def _read() -> Iterator[tuple[str, str, str, list[str]]]:
    """(word, module, function, parameters) of the table."""
    word = module = ""
    for line in TABLE.strip().split("\n"):
        if line.endswith(":"):
            word, module = line[:-1].split()
            continue
        for row in line.rstrip(";").split(";"):
            name, *parameters = row.split()
            yield word, module, name, parameters


def _code(module: str, name: str) -> CodeType:
    """That of a function, or, behind a dot, of one inside of it."""
    outer, _, inner = name.partition(".")
    code = inspect.unwrap(getattr(importlib.import_module(f"numjet.{module}"), outer)).__code__
    if inner:
        return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == inner)
    return code


def known() -> dict[CodeType, tuple[str, dict[str, str]]]:
    """The table by the functions' code."""
    if not _known:
        for word, module, name, parameters in _read():
            rows = _known.setdefault(_code(module, name), (name, {}))[1]
            for parameter in parameters:
                rows.setdefault(parameter, word)
    return _known


def _mark(x: Any) -> str | None:
    """How an argument is traced, as the table marks it; None where it is not."""
    if isinstance(x, Tracer):
        return "[]" if x.ndim else ""
    if isinstance(x, tuple | list) and any(_mark(item) is not None for item in x):
        return "*"
    return None


def _called() -> tuple[str, str, str, Any] | None:
    """(function, parameter, word, value) of the outermost public function of the table that holds
    a traced argument, on the stack up to the user's code."""
    table, found = known(), None
    frame: Any = sys._getframe(3)  # who asked the tracer
    while frame is not None:
        code = frame.f_code
        if not is_ours(code.co_filename):
            if not frame.f_globals.get("__name__", "").startswith("numpy."):
                break
            frame = frame.f_back  # NumPy's, which was handed a tracer
            continue
        if code in table:
            function, rows = table[code]
            for parameter, value in frame.f_locals.items():
                mark = _mark(value)
                word = None if mark is None else rows.get(parameter + mark)
                if word is not None:
                    found = (function, parameter, word, value)
                    break
        frame = frame.f_back
    return found


def asked() -> tuple[type[Exception], str] | None:
    """The class to raise, and the beginning of the message; None: what Python asked for says it."""
    found = _called()
    if found is None:
        return None
    function, name, word, value = found
    kind, text = _KINDS[word]
    said = text.format(kind=type(value), value=value, name=name)
    return kind, f"{said}, argument {name!r} of {function}"


hooks.asked = asked
