"""One measurement of memory in a fresh process: python memory.py PACKAGE WHAT, prints bytes.

WHAT is one of
  import       resident size after importing the package and a first operation
  planned      what memory_analysis() says a transformer step takes: results and temporaries
  step         how far the resident size rises over three of these steps (from the disk cache)
  flat         how much 10,000 steps of a small MLP leave behind
  donated      how far the resident size rises while donated arrays of 64 MB are updated
  donated_step the same for a training step of a transformer whose parameters are donated
  disk         most bytes seen in a disk cache of 4 MB that three processes fill with 12 MB
Peaks are those of the kernel (VmHWM), reset before the measurement where it allows that.
"""

from __future__ import annotations

import contextlib
import gc
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

import models
import numpy as np
import peers

PAGE = 4096
STEPS = 10_000
CACHE_BOUND, CACHE_ENTRY, CACHE_FILLERS = 4 << 20, 40_000, 3


def resident(name: str = "VmRSS") -> int:
    """Bytes of this process in memory; VmHWM: the most there were."""
    text = pathlib.Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) << 10 for line in text.splitlines() if name in line)


def rise(function: Any) -> int:
    """How far the resident size rises while `function` runs; at least a page, for ratios."""
    gc.collect()
    with contextlib.suppress(OSError):  # a kernel that does not reset the peak reports an older one
        pathlib.Path("/proc/self/clear_refs").write_text("5")
    before = resident()
    function()
    return max(resident("VmHWM") - before, PAGE)


def transformer(space: Any, donate: tuple = ()) -> tuple[Any, Any]:
    """The compiled step and its arguments."""
    arguments = models.transformer_inputs(np.random.default_rng(1))
    arguments = peers.convert(arguments, space.np.asarray)
    step = models.step(space, models.transformer_loss(space))
    return space.jit(step, donate_argnums=donate).lower(*arguments).compile(), arguments


def planned(compiled: Any) -> int:
    """Results and temporaries, as the package itself says."""
    found = compiled.memory_analysis()
    get = found.__getitem__ if isinstance(found, dict) else lambda name: getattr(found, name)
    names = ("output_size_in_bytes", "temp_size_in_bytes")
    return sum(map(get, names)) - get("alias_size_in_bytes")


def measure_import(space: Any) -> int:
    (space.np.ones(10) + 1).block_until_ready()
    return resident()


def measure_planned(space: Any) -> int:
    return planned(transformer(space)[0])


def measure_step(space: Any) -> int:
    compiled, arguments = transformer(space)

    def run() -> None:
        for _ in range(3):
            space.block(compiled(*arguments))

    return rise(run)


def measure_flat(space: Any) -> int:
    layers, x, y = models.mlp_inputs(np.random.default_rng(1), width=64, batch=32)
    layers, x, y = peers.convert((layers, x, y), space.np.asarray)
    step = space.jit(models.step(space, models.mlp_loss(space)))
    for k in range(STEPS + STEPS // 20):
        if k == STEPS // 20:
            gc.collect()
            before = resident()
        _, layers = step(layers, x, y)
    space.block(layers)
    gc.collect()
    return max(resident() - before, PAGE)


def measure_donated(space: Any) -> int:
    arrays = [space.np.ones(1 << 24, np.float32) for _ in range(2)]
    slope = space.np.ones(1 << 24, np.float32)
    put = space.jit(lambda x: x.at[3].set(1), donate_argnums=0)
    descend = space.jit(lambda p, g: p - 1e-3 * g, donate_argnums=0)
    calls = put.lower(arrays[0]).compile(), descend.lower(arrays[1], slope).compile()

    def run() -> None:
        for _ in range(20):
            arrays[0] = calls[0](arrays[0])
            arrays[1] = calls[1](arrays[1], slope)
        space.block(arrays)

    return rise(run)


def measure_donated_step(space: Any) -> int:
    compiled, (parameters, tokens) = transformer(space, (0,))
    _, parameters = compiled(parameters, tokens)

    def run() -> None:
        nonlocal parameters
        for _ in range(5):
            _, parameters = compiled(parameters, tokens)
        space.block(parameters)

    return rise(run)


def measure_disk(space: Any) -> int:
    fill = (
        "import sys, os; from numjet.base import config; from numjet.cpu.link.cache import Store\n"
        "store = Store(sys.argv[1], int(sys.argv[2]))\n"
        "for _ in range(int(sys.argv[3])):\n"
        "    store.put(os.urandom(32).hex(), os.urandom(int(sys.argv[4])))\n"
    )
    most = 0
    with tempfile.TemporaryDirectory() as folder:
        sizes = map(str, (CACHE_BOUND, CACHE_BOUND // CACHE_ENTRY, CACHE_ENTRY))
        command = [sys.executable, "-c", fill, folder, *sizes]
        fillers = [subprocess.Popen(command) for _ in range(CACHE_FILLERS)]
        while True:
            running = any(process.poll() is None for process in fillers)
            total = 0
            for path in pathlib.Path(folder).rglob("*"):
                with contextlib.suppress(FileNotFoundError):  # swept meanwhile
                    total += path.stat().st_size if path.is_file() else 0
            most = max(most, total)
            if not running:
                break
    if any(process.returncode for process in fillers):
        raise RuntimeError("a process that filled the cache failed")
    return most


if __name__ == "__main__":
    package, what = sys.argv[1:]
    sys.setrecursionlimit(20_000)
    print(globals()["measure_" + what](peers.space(package)))
