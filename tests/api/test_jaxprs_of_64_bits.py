"""Jaxprs that show JAX's equations compute the same with 64 bits, indices and counts included."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.base import tree
from numjet.extend.jax_core import eval_jaxpr

CALLS = """
v[i] | v[-i] | m[i] | m[:, i] | m[i, i]
v[jnp.array([0, 1]) + i] | v.at[i].set(2.0) | jnp.take(v, i)
nj.lax.scan(lambda c, k: (c + i, m[k]), 0, jnp.arange(3)) | nj.grad(lambda v: v[i] ** 2)(v)
jnp.bincount(q, length=12) | jnp.bincount(q.astype('int32'), length=12)
jnp.nonzero(q > i, size=4) | jnp.nonzero(m > 3, size=13, fill_value=-1)
jnp.where(q > 3, size=3, fill_value=7) | jnp.argwhere(m > 3, size=12, fill_value=9)
jnp.flatnonzero(q, size=4, fill_value=3) | jnp.linalg.lstsq(m.T, v[:4])
jnp.unique(q % 3, size=4, return_index=True, return_inverse=True, return_counts=True)
jnp.unique(q % 3, size=4, fill_value=8) | jnp.unravel_index(q, (3, 4)) | jnp.searchsorted(v, v + i)
jnp.histogram(v, bins=4) | jnp.digitize(v, v[:4]) | jnp.quantile(v, 0.3) | jnp.median(m, axis=0)
jnp.isin(q, q[:3]) | jnp.roll(v, i) | jnp.pad(q, 2, mode='reflect') | jnp.diag(v[:3], 1)
nj.random.randint(key, (3,), 0, 5) | nj.random.permutation(key, 5) | nj.random.categorical(key, v)
"""
CASES = [call.strip() for line in CALLS.split("\n") for call in line.split(" | ") if call]


@pytest.mark.parametrize("call", CASES)
def test_jaxprs_of_64_bits_compute_the_same(call):
    with nj.enable_x64(True):
        v, q = jnp.arange(1.0, 13.0), jnp.arange(12)
        names = {"nj": nj, "jnp": jnp, "v": v, "m": v.reshape(3, 4), "q": q,
                 "key": nj.random.key(0)}
        f = eval(f"lambda i: {call}", names)
        want = [jnp.asarray(x) for x in tree.tree_leaves(f(2))]
        closed = nj.make_jaxpr(f)(2)
        found = eval_jaxpr(closed.jaxpr, closed.consts, jnp.asarray(2))
        assert [x.aval.strong() for x in found] == [x.aval.strong() for x in want]
        for x, y in zip(found, want, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)
