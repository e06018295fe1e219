"""Runs the examples of this project that are written for JAX's libraries, each for a few steps.

They name JAX alone, so they run on numjet and on JAX as they are; each ends with an error where it
did not learn what it should.
"""
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize(
    "name",
    ["flax_vision", "haiku_autoencoder", "hierarchical_model", "neural_ode", "text_transformer"],
)
def test_example(name, tmp_path):
    picture = tmp_path / f"{name}.png"
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", "--quick", "--out", picture],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert picture.stat().st_size > 10_000
