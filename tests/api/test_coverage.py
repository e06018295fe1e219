"""Every public name that is here has the signature of the contract, tools/public_api.csv."""
from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
from versions import needs

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("coverage_tool", ROOT / "tools" / "coverage.py")
assert _spec is not None and _spec.loader is not None
tool = importlib.util.module_from_spec(_spec)
sys.modules["coverage_tool"] = tool
_spec.loader.exec_module(tool)

# Modules whose names are all there. One that is complete joins them.
WHOLE = ("jax.numpy", "jax.numpy.linalg", "jax.numpy.fft", "jax.nn", "jax.nn.initializers",
         "jax.tree", "jax.tree_util", "jax.image", "jax.dtypes", "jax.dlpack", "jax.sharding",
         "jax.stages", "jax.errors", "jax.debug", "jax.distributed", "jax.custom_batching",
         "jax.flatten_util", "jax.test_util", "jax.ops", "jax.typing", "jax.monitoring",
         "jax.lax.linalg", "jax.example_libraries", "jax.example_libraries.optimizers",
         "jax.example_libraries.stax", "jax", "jax.lax", "jax.profiler",
         "jax.experimental.ode", "jax.version")
# Of these some signatures are their own.
NAMED = ("jax.core", "jax.extend", "jax.extend.core", "jax.extend.linear_util", "jax.export",
         "jax.ffi", "jax.random", "jax.custom_derivatives", "jax.interpreters.ad",
         "jax.interpreters.batching", "jax.interpreters.partial_eval", "jax.scipy.linalg",
         "jax.scipy.special", "jax.scipy.stats", "jax.scipy.fft", "jax.scipy.optimize")
# Modules whose signatures all agree.
AGREED = (*WHOLE, "jax.export", "jax.ffi", "jax.scipy.linalg", "jax.scipy.special",
          "jax.scipy.stats")


@pytest.fixture(scope="module")
def found() -> dict:
    return tool.coverage(tool.contract())


def marked(modules: tuple[str, ...]) -> list[Any]:
    """NumPy's own functions have the signatures of NumPy 2.4, and int1 is of ml_dtypes 0.6."""
    newest = [needs("numpy", "2.4"), needs("ml_dtypes", "0.6")]
    return [pytest.param(m, marks=newest) if m == "jax.numpy" else m for m in modules]


@pytest.mark.parametrize("module", marked(AGREED))
def test_signatures_are_the_contracts(found: dict, module: str) -> None:
    assert not found[module].different


@pytest.mark.parametrize("module", marked((*WHOLE, *NAMED)))
def test_no_name_is_missing(found: dict, module: str) -> None:
    assert not found[module].missing


def test_what_an_exception_excuses_does_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    excused = dict(tool.EXCEPTIONS)
    monkeypatch.setattr(tool, "EXCEPTIONS", {})
    entries = {(e.module, e.name): e for e in tool.contract()}
    for key in excused:
        assert tool.difference(tool.find(entries[key]), entries[key]) is not None, key


@pytest.mark.parametrize("ours", [
    "lambda x, z=1, *, k=2: 0", "lambda y, z=1, *, k=2: 0", "lambda x, z=2, *, k=2: 0",
    "lambda x, z=1, k=2: 0", "lambda x, z=1, *, k: 0", "lambda x, *, k=2: 0",
])
def test_what_counts_as_a_difference(ours: str) -> None:
    entry = tool.Entry("m", "f", "function", "(x, z=1, *, k=2)")
    same = ours == "lambda x, z=1, *, k=2: 0"
    assert (tool.difference(eval(ours), entry) is None) == same


def test_printed_signatures_lose_annotations_and_addresses() -> None:
    printed = "(a: 'A | B', /, b: 'C' = <object object at 0x7f00>, *, c=<class 'm.float32'>) -> 'D'"
    assert tool.normal_text(printed) == "(a, /, b=OBJECT, *, c=float32)"


def test_the_page_has_every_name():
    text = tool.PAGE.read_text()
    modules = dict(part.split("\n", 1) for part in text.split("\n## ")[1:])
    for entry in tool.contract():
        assert f"`{entry.name}`" in modules[entry.module], (entry.module, entry.name)


# Public names of ours beside the contract's.
OWN = {
    "jax.api_util": {"flatten_fun", "flatten_fun_nokwargs"},
    "jax.debug": {"eager", "explain_sharding", "log", "memos"},
    "jax.dlpack": {"to_dlpack"},
    "jax.interpreters.xla": {"pytype_aval_mappings"},
    "jax.numpy.linalg": {
        "EigResult", "EighResult", "LinAlgError", "QRResult", "SVDResult", "SlogdetResult"
    },
    "jax.scipy.special": {"lpmn", "lpmn_values"},
    "jax.sharding": {"P", "PmapSharding", "use_mesh"},
    "jax.tree_util": {"KeyPath", "build_tree"},
    "jax.stages": {"CompilerOptions"},
}  # fmt: skip


def test_helpers_are_not_shown_among_public_names() -> None:
    """Of modules with `__all__`; packages show their parts, too."""
    names: dict[str, set[str]] = {}
    for row in tool.contract():
        names.setdefault(row.module, set()).add(row.name)
    looked_at = 0
    for module, theirs in names.items():
        if module == "jax.interpreters.mlir":  # which names what it refuses
            continue
        try:
            ours = importlib.import_module(module.replace("jax", "numjet", 1))
        except ImportError:
            continue
        if hasattr(ours, "__path__") or not hasattr(ours, "__all__"):
            continue
        looked_at += 1
        assert set(dir(ours)) - theirs <= OWN.get(module, set()), module
    assert looked_at > 30
