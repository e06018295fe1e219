"""The architecture as a test: imports go downward only, files stay small, importing stays light."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from numjet.cpu.builder.notation_source import syntax_tree

PACKAGE = Path(__file__).resolve().parents[1] / "numjet"
MAX_LINES = 800
# Packages by layer; what is not named here is a public namespace, layer 6.
LAYERS = {"base": 0, "core": 1, "transforms": 2, "ops": 3, "cpu": 4, "xla": 4, "partition": 4,
          "native": 4.5, "api": 5}
PUBLIC, FRONT_DOOR = 6, 7
# The folders of the compiler, from the top down: one imports those below it only.
CPU = ("", "regions", "fusion", "lower", "kernels", "passes", "program", "emit", "math", "runtime",
       "link", "x86", "graph", "loops", "builder", "host")
CPU_ENTRY = {"backend", "pipeline"}
# The folders of `api`, likewise; what stands in none of them is below all.
API = ("derivatives", "exports", "eager", "maps", "compiled", "execution", "placement", "")
# No folder of the compiler, of the native layer or of `api` holds more modules.
MAX_MODULES = 16
# What may hold lines of LLVM's IR, and what reads them.
WRITE_IR = ("cpu/builder/", "cpu/math/", "cpu/emit/", "cpu/kernels/")
READS_IR = "cpu/x86/front/parse.py"
IR_WORDS = ("define ", "getelementptr ", " = load ", "call void @", ", ptr %", "br label ")
# Parameters in cpu/ whose type holds Any, or that have none: this figure only goes down.
MOST_ANY = 384
FRONT_DOOR_MODULES = {"numjet", "numjet.as_jax"}
# Loaded when first needed: each would cost more than numjet's whole import.
HEAVY = {"scipy", "llvmlite", "opt_einsum", "matplotlib", "mpmath", "sklearn", "tensorstore",
         "tqdm"}
FORBIDDEN = {"jax", "jaxlib", "flax", "optax", "torch"}


def module_name(path: Path) -> str:
    parts = ["numjet", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = sorted(PACKAGE.rglob("*.py"))
MODULES = {module_name(path): path for path in FILES}


def layer(module: str) -> int:
    if module in FRONT_DOOR_MODULES or module.startswith("numjet.as_jax."):
        return FRONT_DOOR
    return LAYERS.get(module.split(".")[1], PUBLIC)


def own_module(name: str) -> str:
    """The module of ours that importing `name` loads: the longest known prefix."""
    while name not in MODULES and "." in name:
        name = name.rpartition(".")[0]
    return name


def imports(path: Path, tree: ast.AST) -> Iterator[tuple[str, int]]:
    """(absolute module name, line) of every import, also inside functions and by name."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = package[:len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield f"{name}.{alias.name}", node.lineno
        elif (isinstance(node, ast.Call) and node.args
              and ast.unparse(node.func).endswith("import_module")
              and isinstance(node.args[0], ast.Constant)):
            yield node.args[0].value, node.lineno


def top_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported, save those for type checkers alone."""
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            pending.extend(node.orelse)
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        pending.extend(ast.iter_child_nodes(node))


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    return {path: syntax_tree(path.read_text()) for path in FILES}


def test_imports_go_downward(trees):
    wrong = []
    for path, tree in trees.items():
        here = module_name(path)
        for name, line in imports(path, tree):
            if name.split(".")[0] != "numjet":
                continue
            there = own_module(name)
            package_here, package_there = (here + ".").split(".")[1], (there + ".").split(".")[1]
            upward = layer(there) > layer(here)
            sibling = (layer(there) == layer(here) == LAYERS["cpu"]
                       and package_here != package_there)
            if upward or sibling:
                wrong.append(f"{path.relative_to(PACKAGE.parent)}:{line}: "
                             f"{package_here or 'numjet'} may not import {there}")
    assert not wrong, "\n".join(wrong)


def folder_of(module: str, package: str) -> str | None:
    """The folder of a package that a module is in, "" for those that stand in none of them."""
    parts = module.split(".")
    if parts[:2] != ["numjet", package]:
        return None
    known = CPU if package == "cpu" else API
    alone = len(parts) == 2 or parts[2] in CPU_ENTRY or parts[2] not in known
    return "" if alone else parts[2]


@pytest.mark.parametrize(("package", "order"), [("cpu", CPU), ("api", API)])
def test_folders_import_downward(trees, package, order):
    wrong = []
    for path, tree in trees.items():
        here = folder_of(module_name(path), package)
        for name, line in imports(path, tree) if here is not None else ():
            there = folder_of(own_module(name), package) if name != f"numjet.{package}" else None
            if there is not None and order.index(there) < order.index(here):
                wrong.append(f"{path.relative_to(PACKAGE.parent)}:{line}: {package}/{here} may not "
                             f"import {own_module(name)}")
    assert not wrong, "\n".join(wrong)


def circles(graph: dict[str, set[str]]) -> Iterator[tuple[str, ...]]:
    """The groups of modules that import each other, by Kosaraju's two walks."""
    def walk(start: str, edges: dict[str, set[str]], seen: set[str], out: list[str]) -> None:
        stack = [(start, iter(sorted(edges[start])))]
        seen.add(start)
        while stack:
            node, rest = stack[-1]
            following = next((n for n in rest if n not in seen), None)
            if following is None:
                out.append(stack.pop()[0])
            else:
                seen.add(following)
                stack.append((following, iter(sorted(edges[following]))))

    back: dict[str, set[str]] = {node: set() for node in graph}
    for node, edges in graph.items():
        for other in edges:
            back[other].add(node)
    order: list[str] = []
    seen: set[str] = set()
    for node in sorted(graph):
        if node not in seen:
            walk(node, graph, seen, order)
    seen = set()
    for node in reversed(order):
        if node not in seen:
            group: list[str] = []
            walk(node, back, seen, group)
            if len(group) > 1:
                yield tuple(sorted(group))


def test_no_modules_import_each_other(trees):
    graph = {}
    for path, tree in trees.items():
        here = module_name(path)
        names = {own_module(name) for name, _ in imports(path, tree)
                 if name.split(".")[0] == "numjet"}
        graph[here] = {name for name in names if name in MODULES} - {here}
    assert not list(circles(graph))


def test_circles_are_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}
    assert list(circles(graph)) == [("a", "b", "c")]


def test_folders_are_not_crowded():
    crowded = []
    for top in ("cpu", "native", "api"):
        for folder in [PACKAGE / top, *(p for p in (PACKAGE / top).rglob("*") if p.is_dir())]:
            count = len(list(folder.glob("*.py")))
            if count > MAX_MODULES:
                crowded.append(f"{folder.relative_to(PACKAGE)}: {count} modules")
    assert not crowded, "\n".join(crowded)


def strings(tree: ast.Module) -> Iterator[ast.Constant]:
    """The texts in a module that are no docstrings."""
    said = {
        id(node.body[0].value) for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node


def ir_words(tree: ast.Module) -> list[ast.Constant]:
    """The texts of a module, docstrings apart, that hold LLVM's IR."""
    return [node for node in strings(tree)
            if any(word in node.value for word in IR_WORDS)]


def test_llvm_ir_is_written_where_it_is_the_subject(trees):
    # Glue between Python and machine code is written in the notation of native functions.
    wrong = []
    for path, tree in trees.items():
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(WRITE_IR) or name == READS_IR:
            continue
        wrong += [f"{name}:{node.lineno}: {node.value[:60]!r}" for node in ir_words(tree)]
    assert not wrong, "\n".join(wrong)


def parameters(tree: ast.Module) -> Iterator[ast.expr | None]:
    """The annotations of the parameters of all functions."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            given = node.args
            for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg,
                        given.kwarg):
                if one is not None and one.arg not in ("self", "cls"):
                    yield one.annotation


def is_any(annotation: ast.expr | None) -> bool:
    return annotation is None or any(
        isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(annotation))


def test_parameters_of_the_compiler_have_types(trees):
    found = [is_any(annotation) for path, tree in trees.items()
             if path.is_relative_to(PACKAGE / "cpu") and path.parent.name != "code"
             for annotation in parameters(tree)]
    assert sum(found) < len(found) / 10
    assert sum(found) <= MOST_ANY, f"{sum(found)} parameters of cpu/ hold Any: was {MOST_ANY}"


HOOKS = "numjet.core.hooks"


def own_names(tree: ast.Module, path: Path) -> dict[str, str]:
    """What the names that a file imports from this package stand for."""
    package = module_name(path).split(".")[: None if path.name == "__init__.py" else -1]
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = package[:len(package) - node.level + 1] if node.level else []
            where = ".".join([*base, *([node.module] if node.module else [])])
            found |= {a.asname or a.name: f"{where}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.asname or a.name.split(".")[0]: a.name for a in node.names}
    return {name: whole for name, whole in found.items() if whole.split(".")[0] == "numjet"}


def base_name(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def late_bindings(tree: ast.Module, path: Path) -> Iterator[tuple[str, int]]:
    """(what, line) of attributes that a module sets on modules, classes or functions of others."""
    names = own_names(tree, path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            if (whole := names.get(base_name(node.value))) is not None:
                yield whole, node.lineno
        elif (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
              and node.func.id in ("setattr", "delattr")):
            if (whole := names.get(base_name(node.args[0]))) is not None:
                yield whole, node.lineno


def test_late_bindings_stand_in_hooks(trees):
    wrong = [f"{path.relative_to(PACKAGE)}:{line}: an attribute of {whole}; give it a name, a type "
             f"and a default in {HOOKS}"
             for path, tree in trees.items() for whole, line in late_bindings(tree, path)
             if not whole.startswith(HOOKS)]
    assert not wrong, "\n".join(wrong)


def test_hooks_say_who_installs_methods(trees):
    from numjet.core import hooks

    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("hooks.install"):
                module = module_name(path).removeprefix("numjet.")
                assert module in hooks.install.__doc__, (path, node.lineno)


def test_late_bindings_are_seen():
    source = ("from ..core import trace as t\nfrom ..core.array import Array\nt.printer = 1\n"
              "Array.a.b += 1\nsetattr(Array, 'x', 2)\nx = t.printer\nx.value = 3\n")
    found = list(late_bindings(ast.parse(source), PACKAGE / "api" / "jit.py"))
    assert found == [("numjet.core.trace", 3), ("numjet.core.array.Array", 4),
                     ("numjet.core.array.Array", 5)]


def test_jax_is_never_imported(trees):
    wrong = [f"{path}:{line}: {name}" for path, tree in trees.items()
             for name, line in imports(path, tree) if name.split(".")[0] in FORBIDDEN]
    assert not wrong, "\n".join(wrong)


def test_heavy_libraries_are_imported_when_needed(trees):
    wrong = []
    for path, tree in trees.items():
        # The linker is itself loaded on the first compilation.
        allowed = {"llvmlite"} if path.match("cpu/link/*.py") else set()
        for node in top_level(tree):
            for name, line in imports(path, ast.Module([node], [])):
                if name.split(".")[0] in HEAVY - allowed:
                    wrong.append(f"{path}:{line}: {name} at import time; "
                                 "import it in the function that needs it")
    assert not wrong, "\n".join(wrong)


def test_files_are_small_and_say_what_they_are_for(trees):
    wrong = []
    for path, tree in trees.items():
        lines = len(path.read_text().splitlines())
        if lines > MAX_LINES:
            wrong.append(f"{path}: {lines} lines, at most {MAX_LINES}; split it by concern")
        if not ast.get_docstring(tree):
            wrong.append(f"{path}: no module docstring")
    assert not wrong, "\n".join(wrong)


def test_the_checks_see_relative_and_nested_imports(tmp_path):
    source = "def f():\n    from ..ops import shape\n    import jax.numpy\nfrom . import tree\n"
    found = dict(imports(PACKAGE / "base" / "tree.py", ast.parse(source)))
    assert found == {"numjet.ops.shape": 2, "jax.numpy": 3, "numjet.base.tree": 4}
    assert layer("numjet.ops.shape") == 3 and layer("numjet") == 7 and layer("numjet.lax") == 6


def test_ir_by_hand_is_seen():
    assert ir_words(ast.parse('X = f"""\ndefine void @f({x}) {{"""'))
    assert ir_words(ast.parse('def f():\n    "Text."\n    return "  %p = getelementptr i8"'))
    assert not ir_words(ast.parse('"""We define getelementptr."""\nX = "a definition"'))
