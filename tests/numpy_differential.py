"""Runs one function of numjet.numpy and its namesake of NumPy on the same values."""

from __future__ import annotations

import numpy as np

import numjet
import numjet.numpy as jnp


def convert(x):
    """NumPy arrays (also in lists) as Arrays, everything else as it is."""
    if isinstance(x, np.ndarray):
        return jnp.asarray(x)
    if isinstance(x, list) and x and isinstance(x[0], np.ndarray):
        return [jnp.asarray(v) for v in x]
    return x


def agree(name, *args, tol=2e-5, reference=None, **options):
    """Shapes, structure and values agree; dtypes are numjet's own, so they are not compared."""
    with np.errstate(all="ignore"):
        want = (reference or getattr(np, name))(*args, **options)
    got = getattr(jnp, name)(
        *[convert(a) for a in args], **{k: convert(v) for k, v in options.items()}
    )
    if not isinstance(want, (tuple, list)):
        want, got = [want], [got]
    assert len(want) == len(got)
    for w, g in zip(want, got):
        w, g = np.asarray(w), np.asarray(g)
        assert w.shape == g.shape, (name, w.shape, g.shape)
        np.testing.assert_allclose(g, w.astype(g.dtype), rtol=tol, atol=tol, err_msg=name)


rng = np.random.default_rng(0)
F = rng.standard_normal((3, 4)).astype(np.float32)
G = rng.standard_normal((3, 4)).astype(np.float32)
P = np.abs(F) + np.float32(0.5)
I = rng.integers(-5, 6, (3, 4)).astype(np.int32)
J = rng.integers(1, 6, (3, 4)).astype(np.int32)
B = F > 0
U = J.astype(np.uint32)
V = rng.standard_normal(5).astype(np.float32)
W = rng.standard_normal(5).astype(np.float32)
S = np.sort(V)
C = (F + 1j * G).astype(np.complex64)
N = np.where(np.abs(F) < 0.4, np.float32(np.nan), F)


def check_derivative(f, x, tol=1e-3, eps=1e-6):
    """jvp against a central difference, and vjp against jvp, in random directions (64 bits)."""
    with numjet.enable_x64(True):
        x = jnp.asarray(np.asarray(x, np.float64))
        v = np.random.default_rng(3).standard_normal(x.shape)
        out, tangent = numjet.jvp(f, (x,), (jnp.asarray(v),))
        numeric = (np.asarray(f(x + eps * v)) - np.asarray(f(x - eps * v))) / (2 * eps)
        np.testing.assert_allclose(tangent, numeric, rtol=tol, atol=tol)
        u = np.random.default_rng(4).standard_normal(np.shape(out))
        (back,) = numjet.vjp(f, x)[1](jnp.asarray(u))
        np.testing.assert_allclose(np.vdot(u, tangent), np.vdot(back, v), rtol=tol, atol=tol)
