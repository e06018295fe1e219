"""What debug_nans prints before it raises: a line for each compiled function, public ones too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.experimental import io_callback
from numjet.scipy import stats

LINE = "Invalid nan value encountered in the output of a jax.jit function. Calling the de-optimized"


@pytest.mark.parametrize(
    ("call", "lines"),
    [
        (lambda: lax.log(-1.0), 0),
        (lambda: jnp.log(-1.0), 1),
        (lambda: jnp.zeros(2) / 0, 1),
        (lambda: nj.vmap(jnp.log)(jnp.array([-1.0, 1.0])), 1),
        (lambda: nj.vjp(jnp.sqrt, 0.0)[1](0.0), 0),
        (lambda: nj.jit(lambda x: jnp.log(x) + 1)(-1.0), 2),
        (lambda: nj.jit(nj.jit(jnp.log))(-1.0), 3),
        (lambda: lax.scan(lambda c, x: (c, lax.log(x)), 0.0, jnp.array([1.0, -1.0])), 0),
    ],
)
def test_a_line_for_each_compiled_function(
    call: Callable, lines: int, capsys: pytest.CaptureFixture
) -> None:
    with nj.debug_nans(True), pytest.raises(FloatingPointError):
        call()
    assert capsys.readouterr().out.count(LINE) == lines


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: nj.jit(lambda n: lax.cond(n > 1, lambda: jnp.nan, lambda: 1.0))(2), "in cond"),
        (lambda: lax.cond(True, lambda: jnp.nan, lambda: 1.0), "in cond"),
        (lambda: nj.jit(lambda x: x * 2.0)(jnp.nan), "de-optimized function did not .*inputs"),
        (lambda: nj.jit(lambda x: (jnp.nan, x))(1.0), "de-optimized function did not .*literals"),
    ],
)
def test_what_made_no_number_is_named_or_said_to_be_unknown(call: Callable, text: str) -> None:
    told = r"\(nan\) encountered.*" + text
    with nj.debug_nans(True), pytest.raises(FloatingPointError, match=told):
        call()


def test_no_line_where_nothing_is_compiled(capsys: pytest.CaptureFixture) -> None:
    with nj.debug_nans(True), nj.disable_jit(), pytest.raises(FloatingPointError):
        nj.jit(jnp.log)(-1.0)
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    ("flag", "call"),
    [
        ("debug_infs", lambda: jnp.array([1e20, 1.0]).astype(jnp.float16)),
        ("debug_infs", lambda: jnp.array(1e20).astype(jnp.float16)),
        ("debug_nans", lambda: jnp.linspace(0.0, float("nan"), 4)),
        ("debug_nans", lambda: jnp.linspace(jnp.array(1.0), jnp.inf, 3)),
        ("debug_nans", lambda: nj.pure_callback(lambda: np.array(np.nan, np.float32),
                                                nj.ShapeDtypeStruct((), jnp.float32))),
        ("debug_infs", lambda: io_callback(lambda: np.array([np.inf], np.float32),
                                           nj.ShapeDtypeStruct((1,), jnp.float32))),
    ],
)
def test_conversions_ranges_and_callbacks_are_looked_at(flag: str, call: Callable) -> None:
    call()
    with getattr(nj, flag)(True), pytest.raises(FloatingPointError):
        call()


def test_infinities_within_functions_of_several_operations_are_theirs() -> None:
    x = jnp.array([0.5, -2.0])
    low = -jnp.inf
    with nj.debug_infs(True):
        np.testing.assert_array_equal(jnp.logaddexp(x, low), [0.5, -2])
        window = nj.lax.reduce_window(x, low, nj.lax.max, (2,), (1,), "VALID")
        assert window.tolist() == [0.5]
        assert nj.nn.softmax(x, where=x > 0).tolist() == [1, 0]
        np.testing.assert_allclose(jnp.linalg.pinv(jnp.ones((2, 2))), np.full((2, 2), 0.25), 1e-5)
        with pytest.raises(FloatingPointError, match="inf"):
            jnp.logaddexp(jnp.inf, x)
    with nj.debug_nans(True), pytest.raises(FloatingPointError, match="nan"):
        jnp.logaddexp(jnp.nan, x)


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_numbers_beside_arrays_may_be_nan_on_purpose(dtype: str, jitted: bool) -> None:
    x, there = jnp.array([3, 5], dtype), jnp.array([True, True])

    def beside(x):
        chosen = jnp.where(there, x, jnp.nan)
        return chosen, jnp.minimum(x, jnp.inf), jnp.clip(x, -jnp.inf, jnp.inf)

    with nj.debug_nans(True), nj.debug_infs(True):
        for part in (nj.jit(beside) if jitted else beside)(x):
            assert (part.dtype, part.tolist()) == (x.dtype, [3, 5])
        with pytest.raises(FloatingPointError):
            jnp.where(~there, x, jnp.nan)
        with pytest.raises(FloatingPointError):
            x * jnp.nan
        assert abs(stats.chi2.sf(x[0], jnp.array(2, dtype)).item() - 0.2231) < 1e-2
