"""Random compositions of three transformations agree with JAX, in 64 bits."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from api.compositions import build, programs, run
from oracle import run_in_oracle

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

HERE = Path(__file__).parent
COUNT = 72


def chosen() -> list[tuple[str, ...]]:
    with nj.enable_x64(True):
        bases, transformations, _ = build(nj, jnp, lax)
    return programs(list(bases), list(transformations), COUNT)


@pytest.fixture(scope="module")
def expected() -> dict:
    source = (HERE / "compositions.py").read_text()
    script = source + f"""
from jax import lax
for i, program in enumerate({chosen()!r}):
    out[str(i)] = run(jax, jnp, lax, program)
"""
    return run_in_oracle(script, x64=True)


@pytest.mark.oracle
@pytest.mark.parametrize("number", range(COUNT), ids=["-".join(p) for p in chosen()])
def test_composition_agrees_with_the_oracle(number: int, expected: dict) -> None:
    with nj.enable_x64(True):
        got = run(nj, jnp, lax, chosen()[number])
    np.testing.assert_allclose(np.asarray(got), expected[str(number)], rtol=1e-7, atol=1e-8)
