"""Late bindings: all declared in one module, with a type and a default, and read by way of it."""

from __future__ import annotations

import ast
import importlib
import runpy
from pathlib import Path

import pytest

from numjet.core import hooks
from numjet.cpu.builder.notation_source import syntax_tree

PACKAGE = Path(hooks.__file__).parents[1]
NAMES = {name for name in vars(hooks)["__annotations__"] if not name.startswith("_")}
# Names that stand for what is set on them, so that modules may import them.
CLASSES = {cls.__name__: cls for cls in (hooks.Remote, hooks.Sharded)}
SETTABLE = {f"{name}.{attribute}" for name, cls in CLASSES.items()
            for attribute in vars(cls) if not attribute.startswith("_")}


def test_each_hook_has_a_type_and_a_default_in_python() -> None:
    fresh = runpy.run_path(hooks.__file__)
    assert len(NAMES) >= 6 and NAMES <= set(fresh)
    assert all(fresh[name] is None or callable(fresh[name]) for name in NAMES)
    defaults = {f"{name}.{attribute}": value for name in CLASSES
                for attribute, value in vars(fresh[name]).items() if not attribute.startswith("_")}
    assert set(defaults) == SETTABLE
    for name, value in defaults.items():
        assert value in (False, 0) or callable(value), name
    with pytest.raises(NotImplementedError, match="xla.backend is not loaded"):
        fresh["Remote"].run()


def test_hooks_are_installed_and_read_by_their_module() -> None:
    installed, wrong = set(), []
    for path in PACKAGE.rglob("*.py"):
        tree = syntax_tree(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("core.hooks"):
                wrong += [f"{path}:{node.lineno}: {alias.name}" for alias in node.names
                          if alias.name not in CLASSES]
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value).lstrip("_") == "hooks":
                if node.attr not in NAMES | {"install"}:
                    wrong.append(f"{path}:{node.lineno}: {node.attr}")
                if isinstance(node.ctx, ast.Store):
                    installed.add(node.attr)
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in CLASSES:
                if (name := ast.unparse(node)) not in SETTABLE:
                    wrong.append(f"{path}:{node.lineno}: {name}")
                elif isinstance(node.ctx, ast.Store):
                    installed.add(name)
    assert not wrong
    assert installed == NAMES | SETTABLE


def test_what_lower_layers_need_is_there() -> None:
    importlib.import_module("numjet")
    assert hooks.run_compiled.__module__ == "numjet.api.execution.dispatch"
    assert hooks.user_line() is not None
