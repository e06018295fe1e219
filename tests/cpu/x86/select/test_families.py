"""The families of the selector know each other through the tables they register in alone."""

from __future__ import annotations

import ast
from pathlib import Path

from numjet.cpu.builder.notation_source import syntax_tree
from numjet.cpu.x86 import generate, select as package
from numjet.cpu.x86.front.types import GENERAL, MASK, VECTOR
from numjet.cpu.x86.select.select import HANDLERS, INTRINSICS

PATHS = Path(package.__path__[0]).glob("*.py")
FILES = {path.stem: syntax_tree(path.read_text()) for path in PATHS}
REGISTERING = {"handles", "intrinsic"}


def registers(tree: ast.Module) -> bool:
    return any(
        isinstance(made, ast.Call) and isinstance(made.func, ast.Name)
        and made.func.id in REGISTERING
        for node in tree.body if isinstance(node, ast.FunctionDef) for made in node.decorator_list
    )


def test_no_family_is_imported_by_another_module_of_the_selector() -> None:
    """Those of AVX2 import each other, and those in whose place they stand."""
    families = {name for name, tree in FILES.items() if registers(tree)}
    assert {"arithmetic", "accesses", "jumps"} <= families
    imported = {
        (name, node.module.rpartition(".")[2])
        for name, tree in FILES.items() for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
    }
    imported |= {
        (name, alias.name)
        for name, tree in FILES.items() for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.endswith(".select")
        for alias in node.names
    }
    assert not {pair for pair in imported if pair[1] in families and pair[0][:4] != "avx2"}
    loaded = {family.__name__.rpartition(".")[2] for family in generate._FAMILIES}
    assert loaded == families


def test_every_table_has_what_the_readers_know() -> None:
    assert {"add", "load", "select", "icmp", "br", "call"} <= HANDLERS[GENERAL].keys()
    assert {"fadd", "shufflevector", "load", "fma"} <= HANDLERS[VECTOR].keys()
    assert {"icmp", "fcmp", "and", "trunc"} <= HANDLERS[MASK].keys()
    assert {"masked.gather", "vector.reduce", "fabs", "fptosi.sat"} <= INTRINSICS.keys()
