"""Generated sharded programs give the same values on one device, on several and on processes; and
the tool that runs them sees when they do not."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mpi_launch
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
sharded = __import__("sharded")


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, str(ROOT / "tools/sharded.py"), *arguments],
        capture_output=True, text=True, timeout=400,
    )  # fmt: skip


def test_some_programs_on_virtual_devices() -> None:
    result = run("7000", "25", "--ways", "virtual")
    assert result.returncode == 0 and "virtual: 25 of 25 agree" in result.stdout, result


def test_some_programs_on_processes() -> None:
    if mpi_launch.mpiexec() is None:
        pytest.skip("mpi4py and mpiexec are not there: pip install numjet[mpi]")
    result = run("8000", "15", "--ways", "four,twice two")
    assert result.returncode == 0 and "twice two: 15 of 15 agree" in result.stdout, result


def test_parallel_examples_on_processes() -> None:
    if mpi_launch.mpiexec() is None:
        pytest.skip("mpi4py and mpiexec are not there: pip install numjet[mpi]")
    result = subprocess.run(
        [sys.executable, str(ROOT / "tools/six_ways.py"), "--ways", "twice two"],
        capture_output=True, text=True, timeout=400,
    )  # fmt: skip
    assert result.returncode == 0 and result.stdout.count("differs by") == 9, result
    assert "too much" not in result.stdout and "transformer (2, 1, 2)" in result.stdout


def test_disturbed_programs_vary_by_roundings() -> None:
    run = sharded.disturbed(7001)
    first, again, other = run(0), run(0), run(1)
    for a, b, c in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, c, rtol=1e-3, atol=1e-3)


def test_differences_are_seen() -> None:
    one = [np.array([1.0, np.nan, 1e6])]
    assert sharded.differs(one, [one[0] + 1e-6]) == ""
    assert "differs by" in sharded.differs(one, [one[0] + 1e-2])
    far = [one[0] + 1e-1]
    assert sharded.differs(one, far, lambda n: [one[0] + 2e-3 * n]) == ""  # it varies as much
    assert "differs by" in sharded.differs(one, far, lambda n: [one[0] + 1e-4 * n])
    assert "differs by" in sharded.differs([np.arange(3)], [np.array([0, 1, 3])])
    assert "float32" in sharded.differs(one, [one[0].astype(np.float32)])
    assert sharded.differs(one, "ended: by a signal") == "ended: by a signal"
    assert sharded.differs("refused", "refused") == ""  # reported once, for one device
