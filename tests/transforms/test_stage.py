"""Staging: values that outlive the function they belong to are found."""

from __future__ import annotations

import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax


def test_leaked_values_of_every_kind_of_staging_are_found():
    kept = []
    with nj.check_tracer_leaks():
        assert nj.jit(nj.grad(lambda x: lax.scan(lambda c, y: (c * y, c), x, jnp.ones(3))[0]))(2.0)
        for leaking in (
            lambda: nj.jit(lambda x: kept.append(x) or x)(1.0),
            lambda: nj.jit(lambda x: kept.append([jnp.sin(x)]) or x)(1.0),
            lambda: lax.scan(lambda c, x: (kept.append(c) or c, x), 0.0, jnp.ones(3)),
            lambda: nj.vmap(nj.jit(lambda x: kept.append(x) or x))(jnp.ones(3)),
        ):
            with pytest.raises(nj.errors.UnexpectedTracerError, match="Leaked trace"):
                leaking()
            kept.clear()
