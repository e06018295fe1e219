"""The generated comparison with JAX: its tables are complete, it sees differences; a short run."""

import csv
import importlib
import sys
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from oracle import NO_ORACLE, oracle_python

TOOLS = Path(__file__).resolve().parents[1] / "tools"
sys.path.insert(0, str(TOOLS))

compare = importlib.import_module("compare")
cases = importlib.import_module("comparison.cases")
judging = importlib.import_module("comparison.judging")
tables = importlib.import_module("comparison.tables")
MODULES = ("numpy", "lax", "nn", "random", "scipy")


def public_functions():
    """The functions of the compared modules in the contract, by their names below the library."""
    with (TOOLS / "public_api.csv").open() as file:
        rows = [(module, name) for module, name, kind, *_ in csv.reader(file) if kind == "function"]
    parts = [(module.split("."), name) for module, name in rows]
    return {".".join([*path[1:], name]) for path, name in parts if path[1:2] and path[1] in MODULES}


def test_every_public_function_has_arguments_or_a_reason():
    found = set(tables.TABLE) | set(tables.EXCEPTIONS)
    assert public_functions() - found == set()
    assert not set(tables.TABLE) & set(tables.EXCEPTIONS)
    assert all(tables.EXCEPTIONS.values())


def test_cases_are_drawn_for_every_function_and_again_the_same():
    count = 2 * len(tables.TABLE)
    first = cases.generate(5, count)
    assert {case.name for case in first} == set(tables.TABLE)
    assert [str(case) for case in first] == [str(case) for case in cases.generate(5, count)]
    assert [str(case) for case in first] != [str(case) for case in cases.generate(6, count)]
    alone = cases.generate(5, 2, "numpy.sum")
    assert [case.key for case in alone] == [case.key for case in first if case.name == "numpy.sum"]


def answer(value, weak=False, kind="Array"):
    value = np.asarray(value)
    return {"eager": ("value", "*", [(kind, str(value.dtype), value.shape, weak, value)])}


RAISES = {"eager": ("raises", ["TypeError", "Exception"], "no")}


@pytest.mark.parametrize("ours, kind", [
    (answer(np.float32([1, np.nan])), None),
    (answer(np.float32([1 + 1e-6, np.nan])), None),
    (answer(np.float32([1.001, np.nan])), "value"),
    (answer(np.float32([1, 2])), "NaN"),
    (answer(np.float64([1, np.nan])), "dtype float64, not float32"),
    (answer(np.float32([[1, np.nan]])), "shape"),
    (answer(np.float32([1, np.nan]), weak=True), "weak type"),
    (answer(np.float32([1, np.nan]), kind="numpy"), "class numpy, not Array"),
    (RAISES, "raises TypeError"),
])
def test_differences_are_seen(ours, kind):
    case = cases.Case(0, "numpy.add", "", (), (), "plain", ("eager",))
    found = list(judging.differences(case, answer(np.float32([1, np.nan])), ours))
    assert [k for k, _ in found] == ([kind] if kind else [])


def test_errors_and_signs_of_zero_are_seen():
    case = cases.Case(0, "numpy.add", "", (), (), "plain", ("eager",))
    sub = {"eager": ("raises", ["NarrowError", "TypeError", "Exception"], "")}
    other = {"eager": ("raises", ["ValueError", "Exception"], "")}

    def kinds(theirs, ours):
        return [kind for kind, _ in judging.differences(case, theirs, ours)]

    assert kinds(RAISES, sub) == []
    assert kinds(RAISES, other) == ["raises ValueError, not TypeError"]
    assert kinds(RAISES, answer(1)) == ["does not raise TypeError"]
    assert kinds(answer(np.float32(0)), answer(np.float32(-0.0))) == ["sign of zero"]
    assert kinds(answer(np.float32(np.inf)), answer(np.float32(-np.inf))) == ["infinity"]


def test_what_the_abstract_phase_does_not_raise_is_no_difference():
    case = cases.Case(0, "numpy.add", "", (), (), "plain", ("eager", "jit"))
    abstract = ("value", "*", [("Array", "float32", (), False, None)])
    theirs, raises = {"jit": abstract, **RAISES}, RAISES["eager"]
    assert list(judging.differences(case, theirs, {"eager": raises, "jit": raises})) == []
    found = judging.differences(case, theirs, {"eager": raises, "jit": answer(1)["eager"]})
    assert [kind for kind, _ in found] == ["jit: does not raise TypeError"]


@pytest.mark.oracle
def test_a_short_run_finds_nothing(tmp_path, monkeypatch):
    if oracle_python() is None:
        pytest.skip(NO_ORACLE)
    monkeypatch.setenv("NUMJET_ORACLE_PYTHON", oracle_python())
    monkeypatch.setenv("NUMJET_COMPARE_CACHE", str(tmp_path))
    # A seventh of the functions, which ones does not depend on the others.
    names = [name for name in tables.TABLE if crc32(name.encode()) % 7 == 0]
    report = compare.compare(1, len(names), names)
    assert report.done == len(names) > 90
    assert not report.groups, str(report)
