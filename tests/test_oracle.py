"""The oracle helper carries arrays of every dtype there and back, and reports failing scripts."""
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from oracle import run_in_oracle

pytestmark = pytest.mark.oracle


def test_values_come_back_as_they_went():
    arrays = {
        "b": np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3),
        "f": np.array(1.5, np.float16), "c": np.array([1 + 2j], np.complex64),
        "i": np.zeros((0, 3), np.int8), "t": np.array([True]), "s": np.array("text"),
        "e": np.array(2, ml_dtypes.float8_e4m3fn),
    }
    script = "out.update(b=b, f=f, c=c, i=i, t=t, s=s, e=e, x=jnp.sin(1.0), y=jnp.arange(2))"
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
