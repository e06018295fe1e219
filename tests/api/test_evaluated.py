"""Where memory may not become code, functions are evaluated, and one warning says why."""

import os
import subprocess
import sys

import pytest

# A filter of system calls (seccomp) that refuses mprotect with PROT_EXEC, as SELinux does.
TEXT = """
import ctypes, struct, sys, warnings
import numpy as np
libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 10, "aarch64": 226}[__import__("os").uname().machine]
rules = [
    (0x20, 0, 0, 0),           # load the number of the call
    (0x15, 0, 3, number),      # not mprotect: allow
    (0x20, 0, 0, 32),          # load its third argument
    (0x45, 0, 1, 4),           # not executable: allow
    (0x06, 0, 0, 0x0005000D),  # refuse: EACCES
    (0x06, 0, 0, 0x7FFF0000),
]
code = b"".join(struct.pack("HBBI", *rule) for rule in rules)
buffer = ctypes.create_string_buffer(code)
program = struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(buffer))
held = ctypes.create_string_buffer(program)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(held)), 0, 0):
    sys.exit(77)
import numjet as nj, numjet.numpy as jnp
from numjet import lax
x = jnp.arange(12.0).reshape(3, 4)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    # Operations that are compiled outside of jit, too, fall back to NumPy and SciPy.
    assert np.isfinite(nj.random.normal(nj.random.key(0), (3,))).all()
    assert lax.erf_inv(jnp.full(300, 0.5)).shape == jnp.sin(jnp.ones(1 << 17))[:300].shape
    f = nj.jit(lambda x: jnp.tanh(x @ x.T) + 1)
    for _ in range(4):
        np.testing.assert_allclose(f(x), np.tanh(np.asarray(x) @ np.asarray(x).T) + 1, rtol=1e-6)
    g = nj.jit(nj.grad(lambda x: jnp.sum(jnp.sin(x) ** 2)))
    np.testing.assert_allclose(g(x), np.sin(2 * np.asarray(x)), rtol=1e-4, atol=1e-5)
    carry, ys = lax.scan(lambda c, y: (c + y, c * 2), jnp.zeros(4), x)
    np.testing.assert_array_equal(carry, np.asarray(x).sum(0))
    assert ys.shape == (3, 4)
    assert lax.while_loop(lambda c: c < 100, lambda c: c * 2, 3) == 192
    assert lax.fori_loop(0, 5, lambda i, c: c + i, 0) == 10
    doubled = nj.jit(lambda x: lax.fori_loop(0, 5, lambda i, c: c * 2, x))  # begins with literals
    np.testing.assert_array_equal(doubled(x), 32 * np.asarray(x))
    examples = nj.vmap(lambda n: lax.while_loop(lambda c: c < n, lambda c: c * 2, 3))
    assert examples(jnp.array([1, 50, 100])).tolist() == [3, 96, 192]
    # Nothing is compiled in vain, and what reads objects natively is not waited for.
    assert "numjet.cpu.pipeline" not in sys.modules
    assert "SELinux" in nj.native.status()
    assert nj.jit(lambda n: lax.cond(n > 2, lambda: 5, lambda: 7))(3) == 5
    donated = nj.jit(lambda v: v + 1, donate_argnums=0)
    assert donated(jnp.zeros(3)).tolist() == [1, 1, 1]
    batches = nj.vmap(lambda v: jnp.sort(v))(x[:, ::-1])
    np.testing.assert_array_equal(batches, x)
said = [w for w in caught if "cannot run compiled code" in str(w.message)]
assert len(said) == 1 and len(caught) == 1, [str(w.message) for w in caught]
print("evaluated")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="filters calls of Linux")
def test_programs_are_evaluated_where_memory_may_not_become_code(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", TEXT], capture_output=True, text=True, timeout=200,
        env={**os.environ, "NUMJET_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip("this system takes no filter")
    assert (done.returncode, done.stdout) == (0, "evaluated\n"), done.stderr
