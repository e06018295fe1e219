"""Every public operation without jit on large and on small arrays, beside JAX's: a table of ratios.

    python benchmarks/survey.py [--sizes 3000000,1000] [--only NAMES] [--output FILE.md]
                                [--peer PYTHON] [--repeat N]

Finds the functions of numpy, numpy.fft, lax, nn, scipy.special and random that take one to three
arrays of one size as they are, by calling them on small ones. Then a process for each package
(PYTHON has JAX, by default the tests' oracle: tests/oracle.py) times the calls after the first, the
least of N; what takes longer than `PATIENCE` seconds is left out. The table has the slowest beside
JAX first; its last lines are the geometric means. To find what to mend, not to decide by a percent:
the two packages do not run alternately.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

PATIENCE = 6
SPACES = ("numpy", "numpy.fft", "lax", "nn", "scipy.special", "random")
# Results of another order of size than the operands, effects, or no operation on arrays.
SKIP = set(
    "numpy.outer numpy.kron numpy.vander numpy.ix_ numpy.meshgrid numpy.diag numpy.diagflat "
    "numpy.tri numpy.eye numpy.identity numpy.save numpy.savez numpy.load numpy.convolve "
    "numpy.correlate numpy.polymul numpy.polydiv numpy.roots numpy.poly numpy.bartlett "
    "numpy.blackman numpy.hamming numpy.hanning numpy.kaiser numpy.indices numpy.fromfunction "
    "numpy.array_repr numpy.array_str numpy.printoptions numpy.set_printoptions numpy.cov "
    "numpy.corrcoef numpy.tril_indices numpy.triu_indices numpy.mask_indices lax.iota "
    "lax.broadcasted_iota numpy.arange numpy.linspace numpy.logspace numpy.geomspace numpy.ones "
    "numpy.zeros numpy.empty numpy.full numpy.ndim numpy.shape numpy.size numpy.tril_indices_from "
    "numpy.triu_indices_from numpy.diag_indices numpy.diag_indices_from numpy.array_split "
    "numpy.split numpy.hsplit numpy.histogramdd numpy.histogram2d lax.conv numpy.nonzero "
    "numpy.polyfit scipy.special.bernoulli".split()
)


def operands(package: Any, n: int) -> dict[str, Any]:
    """Arrays of n elements, the same for each package."""
    rng = np.random.default_rng(0)
    jnp = package.numpy
    made = {
        "x": rng.normal(size=n).astype(np.float32),
        "p": rng.uniform(0.1, 0.9, n).astype(np.float32),
        "q": rng.uniform(1.0, 3.0, n).astype(np.float32),
        "k": rng.integers(1, 50, n).astype(np.int32),
        "j": rng.integers(1, 9, n).astype(np.int32),
        "b": rng.integers(0, 2, n).astype(bool),
        "z": (rng.normal(size=n) + 1j * rng.normal(size=n)).astype(np.complex64),
    }
    arrays = {name: jnp.array(value) for name, value in made.items()}
    arrays["key"] = package.random.key(0)
    arrays["shape"] = (n,)
    return arrays


# What a function is tried with, in this order.
WAYS = [
    ("x",), ("p",), ("k",), ("z",), ("b",), ("p", "q"), ("x", "q"), ("k", "j"), ("b", "x", "q"),
    ("p", "p", "q"), ("q", "p", "p"), ("k", "x"), ("j", "p"), ("key", "shape"),
    ("key", "q", "shape"), ("key", "q"), ("key", "p"), ("key", "q", "q"),
]  # fmt: skip


def functions(package: Any) -> dict[str, Callable]:
    """Public functions by their names."""
    found: dict[str, Callable] = {}
    for space in SPACES:
        module = importlib.import_module(f"{package.__name__}.{space}")
        for name in sorted(getattr(module, "__all__", None) or dir(module)):
            value = getattr(module, name, None)
            if callable(value) and not isinstance(value, type) and not name.startswith("_"):
                found[f"{space}.{name}"] = value
    return {name: f for name, f in found.items() if name not in SKIP}


def leaves(package: Any, out: Any) -> list[Any]:
    return [x for x in package.tree_util.tree_leaves(out) if hasattr(x, "block_until_ready")]


def find(package: Any) -> list[tuple[str, tuple[str, ...]]]:
    """Functions that give arrays for some operands, with these."""
    small = operands(package, 48)
    found = []
    for name, function in functions(package).items():
        for way in WAYS:
            try:
                outs = leaves(package, function(*[small[a] for a in way]))
            except Exception:  # whatever a function says to operands that are not for it
                continue
            if outs and max([x.size for x in outs]) <= 96:
                found.append((name, way))
                break
    return found


class Late(Exception):
    """A call took too long."""


def _late(*_: Any) -> None:
    raise Late


def least(package: Any, function: Callable, args: list, repeat: int) -> float:
    """The least time of a call after the first."""
    best = math.inf
    signal.alarm(PATIENCE)
    for k in range(repeat + 1):
        start = time.perf_counter()
        for x in leaves(package, function(*args)):
            x.block_until_ready()
        if k:
            best = min(best, time.perf_counter() - start)
    signal.alarm(0)
    return best


def measure(package: Any, calls: list, n: int, repeat: int) -> dict[str, float]:
    """Seconds of each call, those that take less than PATIENCE altogether."""
    given, known = operands(package, n), functions(package)
    times: dict[str, float] = {}
    signal.signal(signal.SIGALRM, _late)
    for name, way in calls:
        if name in known:
            try:
                times[name] = least(package, known[name], [given[a] for a in way], repeat)
            except Exception:  # too slow, or nothing that this package does: left out
                signal.alarm(0)
    return times


def worker(task: dict[str, Any]) -> Any:
    package = importlib.import_module(task["package"])
    for space in SPACES:
        importlib.import_module(f"{task['package']}.{space}")
    if task["what"] == "find":
        return find(package)
    return measure(package, task["calls"], task["n"], task["repeat"])


def ask(python: str, task: dict[str, Any]) -> Any:
    done = subprocess.run(
        [python, "-W", "ignore", __file__, "--task", json.dumps(task)],
        stdout=subprocess.PIPE, text=True, check=True, env=os.environ | {"JAX_PLATFORMS": "cpu"},
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def table(times: dict[str, dict[str, float]]) -> list[str]:
    """The lines of a table, and how the ratios lie."""
    ours, theirs = times["numjet"], times["jax"]
    ratios = sorted([(ours[f] / theirs[f], f) for f in ours if f in theirs], reverse=True)
    lines = ["| function | numjet, us | jax, us | ratio |", "|---|---|---|---|"]
    lines += [f"| {f} | {1e6 * ours[f]:.1f} | {1e6 * theirs[f]:.1f} | {r:.2f} |" for r, f in ratios]
    if ratios:
        mean = math.exp(sum([math.log(r) for r, _ in ratios]) / len(ratios))
        above = sum([r > 1.1 for r, _ in ratios])
        lines += ["", f"{len(ratios)} functions; geometric mean {mean:.3f}; {above} above 1.1."]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="3000000,1000")
    parser.add_argument("--only", default="")
    parser.add_argument("--output", default="")
    parser.add_argument("--peer", default=os.environ.get("NUMJET_ORACLE_PYTHON", sys.executable))
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task:
        print(json.dumps(worker(json.loads(given.task))))
        return
    calls = ask(sys.executable, {"what": "find", "package": "numjet"})
    wanted = set(filter(None, given.only.split(",")))
    calls = [c for c in calls if not wanted or c[0] in wanted or c[0].split(".")[0] in wanted]
    lines: list[str] = []
    for n in map(int, given.sizes.split(",")):
        task = {"what": "measure", "calls": calls, "n": n, "repeat": given.repeat}
        times = {
            package: ask(python, task | {"package": package})
            for package, python in (("numjet", sys.executable), ("jax", given.peer))
        }
        lines += [f"## {n} elements", "", *table(times), ""]
    print("\n".join(lines))
    if given.output:
        pathlib.Path(given.output).write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
