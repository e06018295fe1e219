"""Staging: values that outlive the function they belong to are found."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.core.avals import ShapedArray
from numjet.transforms import stage


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
            with pytest.raises(Exception, match="Leaked trace"):
                leaking()
            kept.clear()


def test_a_finalizer_that_computes_while_a_program_ends_is_no_part_of_it(monkeypatch):
    """What it computed with was among the constants, but not among their variables."""
    kept, make = jnp.arange(3.0) + 0, stage.Jaxpr

    def made(*args):
        jaxpr = make(*args)
        kept + jnp.float32(2)  # as a finalizer that runs where something is allocated
        return jaxpr

    monkeypatch.setattr(stage, "Jaxpr", made)
    closed = stage.stage_closed(lambda x: [x * 2], [ShapedArray((3,), np.dtype(np.float32))])
    assert len(closed.jaxpr.constvars) == len(closed.consts) == 0
    assert [str(eqn.primitive) for eqn in closed.jaxpr.eqns] == ["mul"]


def test_a_jitted_function_that_nobody_holds_goes_at_once() -> None:
    held = jnp.ones(3)
    f = nj.jit((lambda x: lambda: x)(held))
    for _ in range(3):
        f()
    gone = weakref.ref(held)
    del held, f
    assert gone() is None
