"""Code of native functions is kept under all the sources that it comes from."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

import numjet
from numjet.cpu.builder import notation_source
from numjet.cpu.link import link, sources

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


PARTS = [
    f"numjet.{folder}.{path.stem}"
    for folder in ("native.code", "cpu.runtime.code")
    for path in path_of(f"numjet.{folder}").with_suffix("").glob("[a-z]*.py")
]


@pytest.mark.parametrize("part", PARTS)
def test_an_identity_has_every_source(part: str) -> None:
    listed = {
        Path(entry.path)
        for entry in sources._files(str(PACKAGE), sources.NATIVE)
    }
    assert not {path_of(name) for name in imported([part, "numjet.cpu.builder.notation"])} - listed


def test_an_identity_changes_with_sources_and_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = link.identity(1)
    assert link.identity(1) == before != link.identity(2)
    monkeypatch.setattr(link, "sources_digest", {"native": "other"}.get)
    assert link.identity(1) != before
    # Of sources that nobody can look at, for as long as the process lives.
    monkeypatch.setattr(link, "sources_digest", {}.get)
    assert link.identity(1) == link.identity(1) != before
