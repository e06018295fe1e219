"""Docstrings keep what they promise: they name what is raised, and say what becomes a float.

Each public function of arrays is called as its own example calls it, but for one array of another
kind: complex, integers, booleans, with an axis more or none, longer, without elements. What it
raises then has to stand in its docstring or in that of a function which this names in backticks
(`sum` for `prod`), and so has "float" where integers give floats. That "integers become floats" is
tried, too.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import io
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from test_docstrings import PUBLIC, public

import numjet as nj
import numjet.numpy as jnp
from numjet.core.array import ArrayImpl

NAMESPACES = [
    name for name in PUBLIC
    if re.fullmatch(r"numjet|numjet\.(numpy|lax|nn|random|scipy)(\..*)?", name)
]  # fmt: skip
# The result's dtype comes from several operands.
JOINED = r"promot|one (shape and )?dtype|common dtype|whose dtype|which the result has|dtype stays"


def example_call(module: ModuleType, name: str, function: Callable) -> tuple[tuple, dict] | None:
    """The arguments that the example in a docstring calls the function with, first."""
    calls = []

    def recorded(*args: Any, **named: Any) -> Any:
        calls.append((args, named))
        return function(*args, **named)

    recorded.__name__ = name
    home = importlib.import_module(getattr(function, "__module__", module.__name__))
    scope = {**vars(home), "nj": nj, "jnp": jnp, "numjet": nj, name: recorded}
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.setattr(module, name, recorded)
        for example in doctest.DocTestParser().get_examples(inspect.getdoc(function) or ""):
            if example.exc_msg is not None:  # which raises
                return None
            exec(compile(example.source, "<example>", "single"), scope)
    return calls[0] if calls else None


def others(x: Any) -> Iterator[tuple[str, Any]]:
    """Arrays of other kinds than x, and what they are."""
    yield "complex", x.astype(jnp.complex64)
    if jnp.issubdtype(x.dtype, jnp.floating):
        yield "integers", x.astype(jnp.int32)
    else:
        yield "floats", x.astype(jnp.float32)
    yield "booleans", x.astype(bool)
    yield "an axis more", x[None]
    if x.ndim:
        yield "no elements", x[:0]
    if x.size and x.ndim:
        yield "longer", jnp.concatenate([x, x[:1]])
        yield "a scalar", x.ravel()[0]


def told(module: ModuleType, text: str, depth: int = 2) -> str:
    """What a docstring says, and the docstrings it refers to."""
    found = [text.split(">>>")[0]]
    for reference in set(re.findall(r"`([\w.]+)`", found[0])) if depth else ():
        for base in (module, jnp, nj):
            value: Any = base
            for part in reference.removeprefix("jnp.").split("."):
                value = getattr(value, part, None)
            if callable(value) and (inspect.getdoc(value) or text) != text:
                found.append(told(module, inspect.getdoc(value) or "", depth - 1))
                break
    return "\n".join(found)


def broken(module: ModuleType, name: str, function: Callable) -> list[str]:
    """What the docstring of a function leaves out."""
    called = example_call(module, name, function)
    if called is None:
        return []
    args, named = called
    text = inspect.getdoc(function) or ""
    whole = told(module, text)
    found = []
    for at, x in [*enumerate(args), *named.items()]:
        if type(x) is not ArrayImpl or jnp.issubdtype(x.dtype, nj.dtypes.prng_key):
            continue
        for kind, other in others(x):
            changed, names = list(args), dict(named)
            if isinstance(at, int):
                changed[at] = other
            else:
                names[at] = other
            try:
                out = function(*changed, **names)
            except Exception as error:
                classes = [c.__name__ for c in type(error).__mro__[:-3]]
                floats = re.search(r"integers (become|count as|as) floats", text)
                false = kind == "integers" and floats and isinstance(error, TypeError)
                if false or not any(c in whole for c in classes):
                    found.append(f"{kind} for {at} raise {type(error).__name__}: {error!s:.60}")
                continue
            if kind == "integers" and jnp.issubdtype(getattr(out, "dtype", bool), jnp.floating):
                if "float" not in whole and not re.search(JOINED, whole):
                    found.append(f"integers for {at} give {out.dtype}")
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("namespace", NAMESPACES)
def test_docstrings_name_what_is_raised(namespace: str) -> None:
    module = importlib.import_module(namespace)
    holes = {
        name: broken(module, name, value)
        for name, value in public(module).items() if not isinstance(value, type)
    }  # fmt: skip
    lines = [f"  {name}: {'; '.join(lacks)}" for name, lacks in holes.items() if lacks]
    assert not lines, f"{namespace}:\n" + "\n".join(lines)
