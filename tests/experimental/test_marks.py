"""Names that programs for accelerators use (compute_on, xla_metadata, scheduling_groups): they are
there, they check what they are given, and they change no value."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.base import log
from numjet.experimental.compute_on import compute_on, compute_on2
from numjet.experimental.scheduling_groups import scheduling_group, xla_metadata_call
from numjet.experimental.xla_metadata import set_xla_metadata

X = jnp.arange(4.0)


def test_a_function_computed_on_the_host_gives_the_same():
    @compute_on("device_host")
    @nj.jit
    def twice(x):
        return 2 * x

    @nj.jit
    def f(x):
        with compute_on("device_host"):
            y = twice(x)
        return compute_on("gpu_stream:1")(nj.jit(jnp.sin))(y)

    np.testing.assert_allclose(f(X), np.sin(2 * np.arange(4.0)), rtol=1e-6)
    np.testing.assert_allclose(nj.grad(lambda x: f(x).sum())(X), 2 * np.cos(2 * np.arange(4.0)),
                               rtol=1e-6)
    assert twice.__name__ == "twice"


@pytest.mark.parametrize("wrong, error", [("elsewhere", ValueError), (3, TypeError)])
def test_places_are_checked(wrong, error):
    with pytest.raises(error):
        compute_on(wrong)
    with pytest.raises(error):
        compute_on2(jnp.sin, compute_type=wrong, out_memory_spaces=nj.memory.Space.Device)


def test_results_go_to_the_memories_that_are_named():
    device, host = nj.memory.Space.Device, nj.memory.Space.Host

    @compute_on2(compute_type="device_host", out_memory_spaces=(device, {"a": host}))
    def f(x):
        return (x, x + 1), {"a": 2 * x}

    (x, more), rest = f(X)
    assert np.array_equal(x, X) and np.array_equal(more, X + 1)
    assert np.array_equal(rest["a"], 2 * X)
    (x, more), rest = nj.jit(f)(X)
    assert np.array_equal(rest["a"], 2 * X)
    with pytest.raises(ValueError, match="out_memory_spaces"):
        compute_on2(lambda x: [x], compute_type="device", out_memory_spaces=(device,))(X)


def test_notes_for_the_compiler_change_nothing():
    def f(a, b):
        with set_xla_metadata(group="1", count=3):
            return set_xla_metadata({"sum": a + b}, note=True)["sum"]

    assert np.array_equal(nj.jit(f)(X, X), 2 * X)
    assert np.array_equal(nj.vmap(f)(X, X), 2 * X)
    assert np.array_equal(set_xla_metadata(note="1")(jnp.negative)(X), -X)
    with pytest.raises(TypeError):
        set_xla_metadata(lambda x: x, note="1")


def test_groups_of_operations_change_nothing():
    group = scheduling_group(name="first")
    assert np.array_equal(nj.jit(group(jnp.negative))(X), -X)
    assert xla_metadata_call(lambda y: {"a": y}, note="1")(X)["a"] is X


def test_it_is_said_once(caplog, monkeypatch):
    monkeypatch.setattr(log, "_TOLD", set())
    for _ in range(2):
        compute_on("device_host")
        set_xla_metadata(X, note="here")
        scheduling_group("first")(jnp.sin)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 3 and all("has no effect in numjet" in text for text in said)
