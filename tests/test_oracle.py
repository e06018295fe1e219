"""The oracle helper carries arrays of every dtype there and back, keeps answers under all that they
follow from, and reports failing scripts."""
from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import oracle
import pytest
import same_answers
from oracle import run_in_oracle

pytestmark = pytest.mark.oracle
ARRAYS = {
    "b": np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3),
    "f": np.array(1.5, np.float16), "c": np.array([1 + 2j], np.complex64),
    "i": np.zeros((0, 3), np.int8), "t": np.array([True]), "s": np.array("text"),
    "e": np.array(2, ml_dtypes.float8_e4m3fn), "n": np.array([np.nan, -0.0, np.inf]),
}  # fmt: skip


@pytest.fixture(autouse=True)
def asked(monkeypatch) -> None:
    """JAX itself answers."""
    monkeypatch.setenv("NUMJET_ORACLE_ANSWERS", "new")


@pytest.fixture
def kept(monkeypatch, tmp_path):
    """Answers are kept and found in a folder of the test's own."""
    monkeypatch.setattr(oracle, "ANSWERS", tmp_path)
    oracle._answers.cache_clear()
    yield lambda mode: monkeypatch.setenv("NUMJET_ORACLE_ANSWERS", mode)
    oracle._answers.cache_clear()


def test_values_come_back_as_they_went():
    arrays = ARRAYS
    script = "out.update(b=b, f=f, c=c, i=i, t=t, s=s, e=e, n=n, x=jnp.sin(1.0), y=jnp.arange(2))"
    out = run_in_oracle(script, **arrays)
    for name, value in arrays.items():
        assert out[name].dtype == value.dtype and out[name].shape == value.shape
        np.testing.assert_array_equal(out[name], value)
    np.testing.assert_allclose(out["x"], np.sin(1.0), rtol=1e-6)
    assert out["y"].dtype == np.int32
    assert run_in_oracle("out['y'] = jnp.arange(2)", x64=True)["y"].dtype == np.int64


def test_a_failing_script_is_reported():
    with pytest.raises(AssertionError, match="NameError: name 'nothing' is not defined"):
        run_in_oracle("nothing")


def test_devices():
    assert run_in_oracle("out['n'] = jax.device_count()", devices=3)["n"] == 3


def test_values_are_kept_as_they_are():
    nested = {"arrays": ARRAYS, "rows": [("a", True, None, 3, 0.1, 1 + 2j), [np.float32(2).item()]]}
    found = oracle.decoded(json.loads(json.dumps(oracle.encoded(nested))))
    assert found["rows"] == [["a", True, None, 3, 0.1, 1 + 2j], [2.0]]
    for name, value in ARRAYS.items():
        assert found["arrays"][name].dtype == value.dtype
        assert found["arrays"][name].shape == value.shape
        assert found["arrays"][name].tobytes() == value.tobytes()


def test_an_answer_is_another_ones_when_anything_differs():
    x = np.arange(4)
    alike = [("f(x)", False, x), ("f(x) ", False, x), ("f(x)", True, x), ("f(x)", False, x + 1),
             ("f(x)", False, x.reshape(2, 2)), ("f(x)", False, x.astype(np.uint64)),
             ("f(x)", False), ("f(", "x)", False, x)]
    assert len({oracle.digest(*parts) for parts in alike}) == len(alike)
    assert oracle.digest("f(x)", False, x.copy()) == oracle.digest("f(x)", False, x)


def test_kept_answers_need_no_oracle(kept, monkeypatch):
    script = "out['y'] = jnp.arange(3) + x"
    kept("keep")
    assert run_in_oracle(script, x=1)["y"].tolist() == [1, 2, 3]
    kept("")
    monkeypatch.setattr(oracle, "oracle_python", lambda: None)
    found = run_in_oracle(script, x=1)["y"]
    assert found.tolist() == [1, 2, 3] and found.dtype == np.int32
    for change in (dict(x=2), dict(x=1, x64=True), dict(x=1, devices=2), dict(x=1, kept=False)):
        with pytest.raises(pytest.skip.Exception, match="JAX is not installed"):
            run_in_oracle(script, **change)
    kept("new")
    with pytest.raises(pytest.skip.Exception, match="JAX is not installed"):
        run_in_oracle(script, x=1)


def test_cases_are_kept_one_by_one(kept, monkeypatch):
    known = {"sum": "jnp.arange(3).sum()", "raises": "jnp.ones(2) + jnp.ones(3)"}
    kept("keep")
    assert same_answers.differences(known) == {}
    kept("")
    asked = []
    ask = same_answers.run_in_oracle
    monkeypatch.setattr(
        same_answers, "run_in_oracle",
        lambda *args, cases, **named: (asked.append(list(json.loads(cases))),
                                       ask(*args, cases=cases, **named))[1])  # fmt: skip
    assert same_answers.differences(known) == {} and asked == []
    # The names of modules differ, so that the comparison is seen to fail.
    new = {"new": "jnp.arange(2)", "other": "jnp.sin.__module__.split('.')[0]"}
    assert list(same_answers.differences(known | new)) == ["other"]
    assert asked == [["new", "other"]]
