"""Memory of a process that meets ever new shapes, in compiled functions or without.

    python tools/shapes.py [COUNT] [--eager]

Runs a function on COUNT (20,000) arrays of different shapes, and prints how large the process is
now and then. docs/testing.md has what it printed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import numjet as nj
import numjet.numpy as jnp


def resident() -> float:
    """The process's resident memory, in MiB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=20_000)
    parser.add_argument("--eager", action="store_true")
    given = parser.parse_args()

    def eager(x: nj.Array) -> nj.Array:
        return (jnp.tanh(x) * 2 + x.sum()).reshape(-1)[:2]

    compiled = nj.jit(lambda x: x * 2 + 1)
    for k in range(given.count):
        shape = (k % 141 + 1, k // 141 + 1)
        (eager if given.eager else compiled)(jnp.asarray(np.ones(shape, np.float32)))
        if k + 1 in (500, 1000, 2000) or (k + 1) % 5000 == 0:
            print(f"{k + 1} shapes: {resident():.1f} MiB", flush=True)


if __name__ == "__main__":
    main()
