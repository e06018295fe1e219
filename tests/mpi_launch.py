"""Runs a script on several processes under mpiexec; skips where mpi4py or mpiexec is not there."""
from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAD = """
import os, sys, time
import numpy as np
import numjet as nj, numjet.numpy as jnp
from numjet import lax
from numjet.sharding import AxisType, NamedSharding, PartitionSpec as P
nj.distributed.initialize()
"""


@functools.cache
def mpiexec() -> str | None:
    """The launcher that belongs to this Python, or one on the path; None without MPI."""
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    check = subprocess.run([sys.executable, "-c", "from mpi4py import MPI"], capture_output=True)
    return found if check.returncode == 0 else None


def run(script: str, processes: int = 2, devices: int = 1, *, fails: bool = False,
        timeout: float = 120, head: str = HEAD, **environment: str) -> str:  # fmt: skip
    """What the script, on `processes` processes with `devices` devices each, printed. fails: it is
    expected to end with an error. head: what it begins with, by default `initialize`."""
    launcher = mpiexec()
    if launcher is None:
        pytest.skip("mpi4py and mpiexec are not there: pip install numjet[mpi]")
    variables = {
        **os.environ, "PYTHONPATH": str(ROOT), "NUMJET_NUM_CPU_DEVICES": str(devices),
        "NUMJET_NUM_THREADS": "1", **environment,
    }  # fmt: skip
    if not fails:  # what a process prints comes in one piece, at its end, and so in whole lines
        variables.pop("PYTHONUNBUFFERED", None)
    result = subprocess.run(
        [launcher, "-n", str(processes), sys.executable, "-c", head + script],
        env=variables, capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip
    output = result.stdout + result.stderr
    assert (result.returncode != 0) == fails, output
    return output
