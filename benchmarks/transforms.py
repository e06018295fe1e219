"""One Fourier transform of each kind, type and length, beside JAX's and SciPy's with all workers.

    python benchmarks/transforms.py [--lengths 2**13,1000000] [--kinds fft,ifft,rfft,irfft]
                                    [--types f,d] [--rows N] [--rounds N] [--peer PYTHON]

A process for each package is asked in turn, `rounds` times; the least wall time of a call and the
least processor time, which others on the machine hardly touch, are compared. PYTHON has JAX.
NUMJET_CPU=x86-64-v3 and XLA_FLAGS=--xla_cpu_max_isa=AVX2 limit the two packages to AVX2.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np
import peers

LENGTHS = "2**13,2**14,2**16,2**18,2**20,2**22,10**6,3*10**6"
ENOUGH = 0.02  # seconds of one measurement


def call(package: str, code: str, kind: str, n: int, rows: int) -> Any:
    """A function without arguments that transforms."""
    rng, shape = np.random.default_rng(0), (rows, n) if rows > 1 else (n,)
    real, complex_ = {"f": ("f4", "c8"), "d": ("f8", "c16")}[code]
    x = rng.standard_normal(shape)
    if kind in ("fft", "ifft"):
        x = (x + 1j * rng.standard_normal(shape)).astype(complex_)
    else:
        x = x.astype(real) if kind == "rfft" else np.fft.rfft(x).astype(complex_)
    length = {"n": n} if kind == "irfft" else {}
    if package == "scipy":
        transform = getattr(importlib.import_module("scipy.fft"), kind)
        return lambda: transform(x, **length, workers=-1)
    library = importlib.import_module(package)
    library.config.update("jax_enable_x64", True)
    jnp = importlib.import_module(f"{package}.numpy")
    transform = library.jit(lambda x: getattr(jnp.fft, kind)(x, **length))
    array = jnp.array(x)
    return lambda: transform(array).block_until_ready()


def worker(package: str) -> None:
    """Answer each line, what to transform, with wall and processor time of a call."""
    given: str = ""
    function: Any = None
    for line in sys.stdin:
        if line != given:
            given, function = line, call(package, *json.loads(line))
            function()
        calls, start, processor = 0, time.perf_counter(), time.process_time()
        while not calls or time.perf_counter() - start < ENOUGH:
            function()
            calls += 1
        spent = time.perf_counter() - start, time.process_time() - processor
        print(json.dumps([s / calls for s in spent]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", default=LENGTHS)
    parser.add_argument("--kinds", default="fft,rfft,irfft")
    parser.add_argument("--types", default="f,d")
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", default=peers.python_of("jax") or sys.executable)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        worker(given.worker)
        return
    processes = {
        package: subprocess.Popen(
            [python, __file__, "--worker", package], text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env=os.environ | {"JAX_PLATFORMS": "cpu"},
        )
        for package, python in (
            ("numjet", sys.executable), ("jax", given.peer), ("scipy", sys.executable))
    }  # fmt: skip
    ratios: dict[str, list[float]] = {"JAX": [], "SciPy": []}
    print("| transform | wall, ms | processor, ms | of JAX: wall | processor "
          "| of SciPy: wall | processor |\n|---|---|---|---|---|---|---|")  # fmt: skip
    for code in given.types.split(","):
        for kind in given.kinds.split(","):
            for length in given.lengths.split(","):
                n = math.prod(int(f) ** int(p or 1) for f, _, p in
                              [part.partition("^") for part in
                               length.replace("**", "^").split("*")])  # fmt: skip
                task = json.dumps([code, kind, n, given.rows])
                least = {package: [math.inf, math.inf] for package in processes}
                for _ in range(given.rounds):
                    for package, process in processes.items():
                        assert process.stdin is not None and process.stdout is not None
                        print(task, file=process.stdin, flush=True)
                        now = json.loads(process.stdout.readline())
                        least[package] = [min(x) for x in zip(least[package], now, strict=True)]
                ours = least["numjet"]
                beside = [[o / t for o, t in zip(ours, least[p], strict=True)]
                          for p in ("jax", "scipy")]  # fmt: skip
                for title, (_, ratio) in zip(ratios, beside, strict=True):
                    ratios[title].append(ratio)
                cells = [f"{1e3 * t:.4f}" for t in ours] + [f"{r:.2f}" for p in beside for r in p]
                name = f"{kind} {n} {'float32' if code == 'f' else 'float64'}"
                print(f"| {name} | {' | '.join(cells)} |", flush=True)
    for title, found in ratios.items():
        mean = math.exp(sum(map(math.log, found)) / len(found))
        print(f"{title}: geometric mean {mean:.3f} of its processor time, worst {max(found):.2f}")
    for process in processes.values():
        process.kill()


if __name__ == "__main__":
    main()
