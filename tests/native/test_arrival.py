"""Native code arrives while other threads compute: programs run between any two of its steps."""

from __future__ import annotations

import pytest
from python_process import printed, run

from numjet.native import operators

if not operators.possible():
    pytest.skip(f"Python runs: {operators.status()}", allow_module_level=True)

SCRIPT = """
import numpy as np
import numjet as nj, numjet.numpy as jnp
from numjet.native import operators

x = jnp.array(np.linspace(-1, 1, 1 << 17, dtype=np.float32).reshape(256, 512))
w = jnp.array(np.linspace(-0.1, 0.1, 1 << 18, dtype=np.float32).reshape(512, 512))

def loss(w):
    return jnp.mean((jnp.tanh(x @ w + 1) * 2 - jnp.max(x, axis=1, keepdims=True)) ** 2)

def step(w):
    value, gradient = nj.value_and_grad(loss)(w)
    return float(value), np.asarray(w - 0.1 * gradient / (jnp.sqrt(jnp.var(gradient)) + 1))

assert not operators.usable(), operators.status()
wanted = [step(w) for _ in range(4)][-1]

def agrees():
    for _ in range(3):
        value, new = step(w)
        np.testing.assert_allclose(value, wanted[0], rtol=1e-5)
        np.testing.assert_allclose(new, wanted[1], rtol=1e-4, atol=1e-6)

def followed(action):
    def both():
        action()
        agrees()
    return both

operators._waiting[:] = map(followed, operators._waiting)
operators._build()
assert operators.usable(), operators.status()
agrees()
print("arrived")
"""


def test_programs_run_between_the_steps_of_an_arrival(tmp_path):
    # The checked build compiles at import.
    done = run("-c", SCRIPT, NUMJET_CACHE_DIR=str(tmp_path), NUMJET_NATIVE_CHECKS="0")
    assert done.returncode == 0 and "arrived" in done.stdout, done.stderr[-2000:]


def test_code_that_was_wanted_is_made_when_the_process_ends_before(tmp_path):
    """For later processes."""
    assert printed("""
        import numjet.numpy as jnp
        from numjet.core import hooks
        from numjet.native import operators
        operators._build, operators.WAIT_SECONDS = lambda: print("made"), 3600.0
        hooks.long_trace()
        hooks.long_trace()
        print("ends")
    """, NUMJET_CACHE_DIR=str(tmp_path), NUMJET_NATIVE_CHECKS="0") == "ends\nmade\n"


def test_derivatives_of_small_arrays_become_native_after_many():
    """What native code writes to is loaded then, which nothing else asks for."""
    assert printed("""
        import numjet as nj, numjet.numpy as jnp
        from numjet.native import deferral, operators

        operators._build()
        slope = nj.grad(lambda x: jnp.sum(jnp.tanh(x) * 2.0))
        first = slope(jnp.arange(3.0))
        assert operators.usable() and not deferral.usable()
        for _ in range(deferral._MISSED):
            slope(jnp.arange(3.0))
        assert deferral.usable() and (slope(jnp.arange(3.0)) == first).all()
        print("native")
    """) == "native\n"
