"""The documents are true: files they name exist, limits name every host operation, examples run."""

from __future__ import annotations

import builtins
import doctest
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from test_docstrings import PUBLIC, public

import numjet
from numjet.api.eager import deferral
from numjet.core.lowering import Host
from numjet.core.primitive import REGISTRY

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
LAYERS = ("base", "core", "transforms", "ops", "api", "numpy", "random", "nn", "scipy", "lax")


def modules() -> list[str]:
    """The modules whose examples users read: the public ones, and where their functions live."""
    found = set(PUBLIC)
    for path in (ROOT / "numjet").rglob("*.py"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if name.split(".")[1:2] and name.split(".")[1] in LAYERS and ">>>" in path.read_text():
            found.add(name)
    return sorted(found)


# ------------------------------------------------------------------ architecture.md and its pages
PAGES = ("architecture", "compiler", "eager", "devices")


def named_files(text: str) -> list[str]:
    """Every path in backticks that looks like one of the repository's files or folders."""
    paths = re.findall(r"`([\w./-]+?(?:\.py|\.md|\.toml|/))`", text)
    return sorted({p for p in paths if "/" in p})


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_exists(page: str) -> None:
    names = named_files((DOCS / f"{page}.md").read_text())
    assert names, "the page names files"
    missing = [n for n in names if not any((base / n).exists() for base in (ROOT, ROOT / "numjet"))]
    assert not missing, f"docs/{page}.md names files that do not exist: {missing}"


def test_every_package_below_the_public_names_is_in_the_architecture() -> None:
    text = (DOCS / "architecture.md").read_text()
    for layer in ("base", "core", "transforms", "ops", "cpu", "xla", "api"):
        for path in (ROOT / "numjet" / layer).rglob("__init__.py"):
            package = path.parent.relative_to(ROOT / "numjet")
            assert f"`{package}/`" in text, f"docs/architecture.md does not mention {package}/"


QUOTED = re.compile(r"`([^`\n]+)`")
# What docstrings name that is not in the package's sources: other programs', and patterns of names.
ELSEWHERE = {
    "NUMJET_ENABLE_X64", "NUMPY", "TRACED", "core_map", "gc.enable", "hemv", "make_array_from_...",
    "mpiexec", "nj_blas_dgemv", "nj_blas_sgemm", "nj_lapack_dpotrf", "op_name", "step_N",
    "threading.Timer", "to_lojax", "tp_flags",
}  # fmt: skip


def test_names_in_backticks_are_in_the_sources() -> None:
    texts = {path: path.read_text() for path in (ROOT / "numjet").rglob("*.py")}
    known = {part.removesuffix(".py") for path in texts for part in path.relative_to(ROOT).parts}
    known.update(dir(builtins))
    for text in texts.values():
        known.update(re.findall(r"[A-Za-z_]\w*", QUOTED.sub("", text)))
    gone = {
        (str(path.relative_to(ROOT)), name) for path, text in texts.items()
        for name in QUOTED.findall(text)
        if re.fullmatch(r"[A-Za-z_][\w.]*", name) and name not in ELSEWHERE
        and not known.issuperset(filter(None, name.split(".")))
    }  # fmt: skip
    assert not gone


def test_modules_in_backticks_are_where_their_names_say() -> None:
    """Names of a folder and what is in it: a module, or a name in the folder's or module's code."""
    files = {path.relative_to(ROOT / "numjet"): path.read_text()
             for path in (ROOT / "numjet").rglob("*.py")}  # fmt: skip
    folders = {folder.name for path in files for folder in path.parents}
    words: dict[tuple, set] = {}
    for path, text in files.items():
        parts = path.parent.parts if path.stem == "__init__" else path.with_suffix("").parts
        found = set(re.findall(r"[A-Za-z_]\w*", QUOTED.sub("", text)))
        for k in range(len(parts)):
            words.setdefault(parts[k:], set()).update(found)
    wrong = set()
    for path, text in files.items():
        for name in re.findall(r"`(?:numjet\.)?([a-z_]\w*(?:\.\w+)+)`", text):
            parts = tuple(name.split("."))
            inside = [parts[k] in words.get(parts[:k], ()) for k in range(1, len(parts))]
            if parts[0] in folders and parts not in words and True not in inside:
                wrong.add((str(path), name))
    assert wrong <= {("api/compiled/jit_layouts.py", "core.layouts"),
                     ("extend/traces.py", "core.Trace"),
                     ("scipy/special.py", "math.factorial"),
                     ("experimental/sparse/__init__.py", "linalg.py")}  # fmt: skip


def test_the_list_of_modules_is_that_of_the_sources() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "modules.py"), "--print"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    page = (DOCS / "modules.md").read_text()
    assert page == done.stdout, "docs/modules.md is older than the sources: python tools/modules.py"


def test_every_pass_is_described() -> None:
    from numjet.cpu.passes.annotate import LOOP_PASSES
    from numjet.cpu.pipeline import EARLY, PIPELINE

    text = (DOCS / "compiler.md").read_text()
    for name in [step.name for step in (*PIPELINE, *EARLY)]:
        assert f"**{name}**" in text or f"`{name}`" in text, f"the pass {name!r} is not described"
    for name in [f.__name__ for f in LOOP_PASSES]:
        assert f"`cpu/passes/{name}.py`" in text, f"the pass {name!r} is not described"


# ------------------------------------------------------------------ limits.md
def test_limits_name_every_operation_that_runs_in_python() -> None:
    for path in [*(ROOT / "numjet/ops").glob("*.py"), *(ROOT / "numjet/api").rglob("*.py")]:
        importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    text = (DOCS / "limits.md").read_text()
    host = sorted(name for name, p in REGISTRY.items() if isinstance(p.loops, Host))
    assert host
    missing = [name for name in host if f"`{name}`" not in text]
    assert not missing, f"docs/limits.md does not name {missing}"


def test_limits_name_no_operation_that_is_native() -> None:
    text = (DOCS / "limits.md").read_text()
    table = text[text.index("| operations") : text.index("The collectives")]
    named = {
        n
        for row in table.splitlines()
        if "|" in row
        for n in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    for name in named:
        assert isinstance(REGISTRY[name].loops, Host), f"{name} has native code by now"


# ------------------------------------------------------------------ docstrings
def examples(module: ModuleType, name: str) -> list[doctest.DocTest]:
    """The examples of a module: of what stands in its file, and of public functions made elsewhere.

    `nj`, `jnp` and `lax` are there without an import.
    """
    names = {"nj": numjet, "jnp": numjet.numpy, "lax": numjet.lax}
    finder, parser = doctest.DocTestFinder(exclude_empty=True), doctest.DocTestParser()
    found = finder.find(module, name, extraglobs=names)
    known = {test.docstring for test in found}
    values = public(module) if name in PUBLIC else {}
    names = vars(module) | values | names
    for key, value in values.items():
        text = value.__doc__ or ""
        if ">>>" in text and text not in known:
            known.add(text)
            found.append(parser.get_doctest(text, dict(names), f"{name}.{key}", name, 0))
    return found


@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings(name: str) -> None:
    module = importlib.import_module(name)
    deferral.finish_here("a new test")  # what an earlier test left is not part of an example
    runner = doctest.DocTestRunner(verbose=False)
    for test in examples(module, name):
        runner.run(test)
    assert not runner.failures, "see the output above"


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_exist_and_are_documented(name: str) -> None:
    module = importlib.import_module(name)
    assert inspect.getdoc(module)
    for key in getattr(module, "__all__", []):
        assert hasattr(module, key), f"{name}.__all__ names {key}"


def test_transformations_have_examples() -> None:
    names = (
        "grad value_and_grad jvp vjp linearize linear_transpose jacfwd jacrev hessian vmap pmap "
        "jit make_jaxpr eval_shape checkpoint custom_jvp custom_vjp closure_convert devices"
    )
    for name in names.split():
        assert ">>>" in (inspect.getdoc(getattr(numjet, name)) or ""), name
