"""Code of native functions is kept under all the sources that it comes from."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

import numjet
from numjet.cpu.builder import notation_source, sources
from numjet.cpu.runtime import build as runtime
from numjet.native import build

PACKAGE = Path(numjet.__file__).parent
# Whose facts are part of the identity: `host` of the platform, `base` and `core` of no code.
ELSEWHERE = ("numjet.cpu.host", "numjet.base.", "numjet.core.")


def path_of(module: str) -> Path:
    return PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py")


def imported(modules: Iterable[str]) -> set[str]:
    """All modules of this package that these import, directly or not, and themselves."""
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in found or name.startswith(ELSEWHERE):
            continue
        found.add(name)
        for node in ast.walk(notation_source.syntax_tree(path_of(name).read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numjet"):
                inside = [f"{node.module}.{alias.name}" for alias in node.names]
                inside = [name for name in inside if path_of(name).exists()]
                waiting += inside or [str(node.module)]
    return found


PARTS = {f"native: {part}": [f"numjet.{name}" for name in names]
         for part, names in build.MODULES.items()}  # fmt: skip
PARTS |= {f"runtime: {path.stem}": runtime.modules(path.stem)
          for path in path_of("numjet.cpu.runtime.code").with_suffix("").glob("[a-z]*.py")}


@pytest.mark.parametrize("part", PARTS)
def test_an_identity_has_every_source(part: str) -> None:
    listed = {*PARTS[part], *sources.BUILDER}
    missing = imported([PARTS[part][0], "numjet.cpu.builder.notation"]) - listed
    assert not missing


def test_an_identity_changes_with_each_source(monkeypatch: pytest.MonkeyPatch) -> None:
    content, names = sources._content, PARTS["native: calls"]
    before = sources.identity(names)
    assert sources.identity(names, 1) != before
    for changed in (*names, *sources.BUILDER):
        monkeypatch.setattr(
            sources, "_content", lambda name, changed=changed: content(name) + b"#" * (
                name == changed))
        assert sources.identity(names) != before
