"""What pyproject.toml promises: the packages that `make portability` tests are its lower bounds."""

from __future__ import annotations

import re
import symtable
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_the_lowest_versions_are_the_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds = dict(re.fullmatch(r"(\w+)>=([\d.]+)", x).groups() for x in project["dependencies"])
    text = (ROOT / "tests" / "lowest-requirements.txt").read_text()
    pinned = dict(re.findall(r"^(\w+)==([\d.]+)$", text, re.M))
    assert pinned.keys() == bounds.keys()
    for name, bound in bounds.items():
        assert re.fullmatch(rf"{re.escape(bound)}(\.0)*", pinned[name]), (name, bound)


def _mixed_names(table: symtable.SymbolTable) -> Iterator[tuple[str, str]]:
    """Function, name: what one comprehension binds and another of the function reads as global."""
    inlined = []
    waiting = list(table.get_children()) if table.get_type() == "function" else []
    while waiting:
        inner = waiting.pop()
        if inner.get_name() in ("listcomp", "setcomp", "dictcomp"):
            inlined.append(inner)
            waiting += inner.get_children()
    symbols = [symbol for inner in inlined for symbol in inner.get_symbols()]
    bound = {s.get_name() for s in symbols if s.is_local() and not s.is_parameter()}
    for symbol in symbols:
        if symbol.is_global() and symbol.get_name() in bound:
            yield table.get_name(), symbol.get_name()
    for inner in table.get_children():
        yield from _mixed_names(inner)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="symbol tables tell less since 3.13")
def test_comprehensions_are_what_cpython_3_12_0_and_1_inline_rightly():
    # These versions take the global for the other comprehension's variable: UnboundLocalError.
    text = "def f(xs): return [type for type in xs], [type(x) for x in xs]"
    assert list(_mixed_names(symtable.symtable(text, "f", "exec"))) == [("f", "type")]
    found = [(path.name, *names) for path in (ROOT / "numjet").rglob("*.py")
             for names in _mixed_names(symtable.symtable(path.read_text(), str(path), "exec"))]
    assert not found
