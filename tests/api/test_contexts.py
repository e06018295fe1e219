"""Flags as context managers, and the contexts that users make."""
from __future__ import annotations

import logging
import re
import threading

import numpy as np
import pytest
from cpu_devices import cpu_devices

import numjet as nj
import numjet.numpy as jnp

X = np.arange(3.0, dtype=np.float32)
SWITCHES = ["allow_f16_reductions", "auto_pcast", "enable_checks", "enable_custom_prng",
            "explain_cache_misses", "jax2tf_associative_scan_reductions", "no_execution",
            "no_tracing", "remove_size_one_mesh_axis_from_type", "softmax_custom_jvp",
            "thread_guard", "threefry_partitionable", "debug_nans", "debug_infs", "enable_x64",
            "checking_leaks", "log_compiles"]
FLAG = {"checking_leaks": "check_tracer_leaks"}


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_has_its_value_within_the_block(name: str) -> None:
    flag = FLAG.get(name, name)
    read = lambda: nj.config.read(flag if flag.startswith("jax2tf") else f"jax_{flag}")
    before = read()
    with getattr(nj, name)(not before):
        assert read() == (not before)
    with getattr(nj, name)():
        assert read() is True
    assert read() == before


@pytest.mark.parametrize("name", ["numpy_rank_promotion", "default_prng_impl", "legacy_prng_key",
                                  "transfer_guard_host_to_device", "default_device",
                                  "array_garbage_collection_guard", "default_matmul_precision"])
def test_a_choice_needs_its_value(name: str) -> None:
    with pytest.raises(TypeError, match="requires an argument"):
        getattr(nj, name)()


@pytest.mark.parametrize("name", ["transfer_guard", "transfer_guard_device_to_host",
                                  "default_prng_impl", "legacy_prng_key"])
def test_values_that_are_no_choices(name: str) -> None:
    with pytest.raises(ValueError), getattr(nj, name)("something"):
        pass


def test_no_execution_stops_eager_and_compiled_code() -> None:
    f = nj.jit(lambda x: x + 1)
    f(X)
    for call in (lambda: f(X), lambda: jnp.sin(jnp.asarray(X))):
        with pytest.raises(RuntimeError, match="no_execution"), nj.no_execution(True):
            call()
    np.testing.assert_array_equal(f(X), X + 1)


def test_no_tracing_lets_known_programs_run() -> None:
    f = nj.jit(lambda x: x + 1)
    f(X)
    with nj.no_tracing(True):
        np.testing.assert_array_equal(f(X), X + 1)
        with pytest.raises(RuntimeError, match="re-tracing"):
            f(X[:2])


def test_misses_are_explained(caplog: pytest.LogCaptureFixture) -> None:
    f = nj.jit(lambda x, *, y=0.0: x + y)
    calls: list = [
        (lambda: f(X), "never seen function"),
        (lambda: f(X), ""),
        (lambda: f(X, y=1.0), r"different input pytree:\n.*\[1\].*'y'"),
        (lambda: f(X[:2], y=1.0), r"input types:\n.*at x, now f32\[2\] and before f32\[3\]"),
        (lambda: f(X, y=jnp.float32(1)), r"at y, now f32\[\]\{weak_type=False\} and before"),
    ]
    with nj.explain_cache_misses(True), caplog.at_level(logging.WARNING):
        for call, why in calls:
            caplog.clear()
            call()
            assert len(caplog.records) == bool(why) and re.search(why, caplog.text), why
        caplog.clear()
        with nj.numpy_rank_promotion("warn"):
            f(X)
        assert "jax_numpy_rank_promotion differs: now warn and before allow" in caplog.text
        for _ in range(2):
            caplog.clear()
            nj.jit(lambda x: x - 1)(X)
        assert "another function defined on the same line" in caplog.text


def test_compilations_are_logged_as_details(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "numjet"):
        nj.jit(lambda x: x * 3.25)(X)
    told = [r.getMessage() for r in caplog.records if r.levelno == logging.DEBUG]
    for start in ("Finished tracing", "Compiling", "Finished XLA compilation"):
        assert any(text.startswith(start) for text in told)


def test_a_flag_without_effect_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            with nj.array_garbage_collection_guard("log"):
                assert nj.config.jax_array_garbage_collection_guard == "log"
    assert len(caplog.records) <= 1
    assert nj.config.jax_array_garbage_collection_guard is None


def test_keys() -> None:
    with nj.enable_custom_prng(True):
        assert nj.random.PRNGKey(0).shape == ()
    raw = nj.random.PRNGKey(0)
    with pytest.raises(ValueError, match="Legacy uint32 key"), nj.legacy_prng_key("error"):
        nj.random.uniform(raw)
    with pytest.warns(UserWarning, match="Legacy uint32 key"), nj.legacy_prng_key("warn"):
        nj.random.uniform(raw)
    with nj.legacy_prng_key("error"):
        nj.random.uniform(nj.random.key(0))


def test_the_default_device(monkeypatch: pytest.MonkeyPatch) -> None:
    with nj.enable_x64(False), cpu_devices(2) as (_, second):
        with nj.default_device(second):
            assert jnp.ones(3).device == second
            assert nj.device_put(X).device == second
        with nj.default_device("cpu"):
            assert jnp.ones(3).device == nj.devices()[0]
    with pytest.raises(ValueError, match="default_device"), nj.default_device(3):
        jnp.ones(2)


def test_programs_are_traced_anew_for_a_users_context() -> None:
    units, seen = nj.make_user_context("metre"), []
    f = nj.jit(lambda x: (seen.append(units.value), x)[1])
    f(X)
    with units("mile"):
        assert units.value == "mile"
        f(X)
        f(X)
    f(X)
    assert seen == ["metre", "mile"]
    with pytest.raises(TypeError, match="value"):
        units()
    with pytest.raises(TypeError), units([]):
        pass


def test_a_users_context_costs_no_trace_where_it_has_no_value_of_its_own() -> None:
    runs: list = []
    f = nj.jit(lambda x: (runs.append(0), x * 2)[1])
    f(X)
    colour, size = nj.make_user_context("red"), nj.make_user_context(1)
    f(X), nj.make_jaxpr(f)(X)
    with colour("red"), size(1):
        f(X)
    with nj.default_matmul_precision("float32"):
        f(X), nj.make_jaxpr(f)(X)
    assert len(runs) == 2  # the precision is part of what is traced
    with size(2):
        f(X), nj.make_jaxpr(f)(X)
        with colour("red"):
            f(X)
    assert len(runs) == 3
    with colour("blue"):
        f(X)
    assert len(runs) == 4


@pytest.mark.parametrize("block", ["flag", "nested", "context"])
def test_flags_set_for_the_process_within_a_block(block) -> None:
    depth = nj.make_user_context(0)
    within = {
        "flag": lambda: nj.numpy_rank_promotion("warn"),
        "nested": lambda: nj.default_matmul_precision("float32"),
        "context": lambda: depth(3),
    }[block]
    f = nj.jit(lambda: jnp.zeros(2) + 1)
    with within():
        assert f().dtype == jnp.float32
        try:
            with nj.numpy_dtype_promotion("strict") if block == "nested" else within():
                nj.config.update("enable_x64", True)
                assert f().dtype == jnp.ones(2).dtype == jnp.float64
            assert f().dtype == jnp.float64
        finally:
            nj.config.update("enable_x64", False)
        assert f().dtype == jnp.float32
    assert f().dtype == jnp.float32


def test_a_flag_set_by_another_thread_is_seen_within_a_block() -> None:
    f = nj.jit(lambda: jnp.zeros(2) + 1)
    try:
        with nj.numpy_rank_promotion("warn"):
            assert f().dtype == jnp.float32
            setter = threading.Thread(target=nj.config.update, args=("enable_x64", True))
            setter.start(), setter.join()
            assert f().dtype == jnp.float64
    finally:
        nj.config.update("enable_x64", False)


def test_without_jit() -> None:
    with nj.disable_jit():
        assert nj.jit(lambda x: 1 if x > 0 else 2)(3.0) == 1
    with nj.disable_jit(False), pytest.raises(nj.errors.TracerBoolConversionError):
        nj.jit(lambda x: 1 if x > 0 else 2)(3.0)
