"""The project's examples and its demo, run whole on XLA's CPU plugin."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from xla.plugin import PLATFORM, needs_plugin

ROOT = Path(__file__).resolve().parents[2]
ACCEPTANCE = ROOT.parent / "shared" / "acceptance" / "seed_examples.py"


def run(devices: int, *arguments: object) -> str:
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "NUMJET_PLATFORMS": PLATFORM,
        "NUMJET_NUM_CPU_DEVICES": str(devices), "NUMJET_DEFAULT_MATMUL_PRECISION": "highest",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=environment, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_plugin
@pytest.mark.skipif(not ACCEPTANCE.exists(), reason="the examples lie beside the repository")
@pytest.mark.parametrize("devices", [1, 8] if PLATFORM == "xla_cpu" else [1])
def test_every_example_of_the_founding_documents(devices: int) -> None:
    assert run(devices, ACCEPTANCE, "numjet").endswith("44 passed, 0 failed\n")


@needs_plugin
def test_the_demo(tmp_path: Path) -> None:
    told = run(4, ROOT / "examples" / "digits.py", "--out", tmp_path / "digits.png")
    assert "held-out accuracy" in told
    assert (tmp_path / "digits.png").stat().st_size > 10_000
