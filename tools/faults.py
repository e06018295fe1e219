"""The faults campaign: training runs whose ranks are killed at random moments.

    python tools/faults.py [--runs 200] [--processes 3]

Each run trains a few steps, saving every one; a rank kills itself after a random time. Counted are
runs that hang (do not end by themselves within 30 s), that end without a sentence that names the
rank, and that lose more than the last step when they are started again. Exit status 1 where there
are any.
"""
from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TRAIN = """
import os, sys, threading, time, signal
import numpy as np
import numjet as nj, numjet.numpy as jnp
from numjet import checkpoints
nj.distributed.initialize()
folder, victim, delay, steps = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
mesh = nj.make_mesh((nj.device_count(),), ("data",))
rows = nj.NamedSharding(mesh, nj.P("data"))
x = nj.device_put(np.ones((nj.device_count() * 4, 64), np.float32), rows)
w = nj.device_put(np.zeros(64, np.float32), nj.NamedSharding(mesh, nj.P()))
step = nj.jit(lambda w, x: w - 0.1 * nj.grad(lambda w: jnp.mean((x @ w - 1) ** 2))(w))
start = checkpoints.latest(folder) or 0
if start:
    w = checkpoints.restore(folder, w)
step(w, x)
if nj.process_index() == 0:
    print("start", start, flush=True)
if nj.process_index() == victim:
    threading.Timer(delay, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
for i in range(start, start + steps):
    w = step(w, x)
    checkpoints.save(folder, w, i + 1)
    if nj.process_index() == 0:
        print("saved", i + 1, flush=True)
"""


def launch(folder: str, processes: int, victim: int, delay: float, steps: int) -> tuple[str, bool]:
    """What a run printed, and whether it hung."""
    beside = Path(sys.executable).parent / "mpiexec"
    command = [str(beside) if beside.exists() else "mpiexec", "-n", str(processes), sys.executable,
               "-c", TRAIN, folder, str(victim), str(delay), str(steps)]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMJET_NUM_THREADS": "1",
                   "NUMJET_COLLECTIVE_TIMEOUT": "20"}  # fmt: skip
    run = subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)  # fmt: skip
    try:
        out, _ = run.communicate(timeout=60)
        return out, False
    except subprocess.TimeoutExpired:
        run.kill()
        return run.communicate()[0], True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    folder = tempfile.mkdtemp(prefix="numjet-faults-")
    hung, silent, lost, last = 0, 0, 0, 0
    for number in range(options.runs):
        victim, delay = chance.randrange(options.processes), chance.uniform(0, 1.5)
        out, hangs = launch(folder, options.processes, victim, delay, 10**6)
        saved = [int(line.split()[1]) for line in out.splitlines() if line.startswith("saved ")]
        started = [int(line.split()[1]) for line in out.splitlines() if line.startswith("start ")]
        named = f"rank {victim} " in out
        # What was saved before must be there; the step that was being saved may be.
        good = not started or last <= started[0] <= last + 1
        hung, silent, lost = hung + hangs, silent + (not named), lost + (not good)
        if hangs or not named or not good:
            print(f"run {number}: rank {victim} after {delay:.2f} s: hangs {hangs}, named {named}, "
                  f"started at {started}, expected {last}\n{out}")  # fmt: skip
        last = saved[-1] if saved else started[0] if started else last
    shutil.rmtree(folder)
    print(
        f"{options.runs} runs of {options.processes} processes, one killed: {hung} hung, {silent} "
        f"did not name the rank, {lost} lost more than a step; {last} steps in the end"
    )
    sys.exit(bool(hung or silent or lost))


if __name__ == "__main__":
    main()
