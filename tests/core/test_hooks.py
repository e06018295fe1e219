"""Late bindings: all declared in one module, with a type and a default, and read by way of it."""

from __future__ import annotations

import ast
import importlib
import runpy
from pathlib import Path

from numjet.core import hooks

PACKAGE = Path(hooks.__file__).parents[1]
NAMES = {name for name in vars(hooks)["__annotations__"] if not name.startswith("_")}


def test_each_hook_has_a_type_and_a_default_in_python() -> None:
    fresh = runpy.run_path(hooks.__file__)
    assert len(NAMES) >= 6 and NAMES <= set(fresh)
    assert all(fresh[name] is None or callable(fresh[name]) for name in NAMES)


def test_hooks_are_installed_and_read_by_their_module() -> None:
    installed, wrong = set(), []
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("core.hooks"):
                wrong.append(f"{path}:{node.lineno}")
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value).lstrip("_") == "hooks":
                if node.attr not in NAMES:
                    wrong.append(f"{path}:{node.lineno}: {node.attr}")
                if isinstance(node.ctx, ast.Store):
                    installed.add(node.attr)
    assert not wrong
    assert installed == NAMES


def test_what_lower_layers_need_is_there() -> None:
    importlib.import_module("numjet")
    assert hooks.run_compiled.__module__ == "numjet.api.dispatch"
    assert hooks.user_line() is not None
