"""The heat equation on a plate, in strips over devices or processes that exchange their edges.

    python examples/heat.py [--out heat.png]               on four virtual devices of one process
    mpiexec -n 4 python examples/heat.py                   on four processes

A plate of 256 x 256 cells, cold at its rim, with hot spots; explicit steps of
du/dt = d2u/dx2 + d2u/dy2. Each device holds a strip of rows and sends its first and last row to its
neighbours (`lax.ppermute` in `shard_map`) before each step. The result is compared with the exact
decay of the plate's lowest mode. The picture shows the plate at four times with the strips' edges,
and the decay. Exit status 1 if the decay is off by more than 1 %.
"""

from __future__ import annotations

import argparse
import os
import sys

os.environ.setdefault(
    "NUMJET_NUM_CPU_DEVICES",
    "1" if {"PMI_RANK", "OMPI_COMM_WORLD_RANK"} & os.environ.keys() else "4",
)

import numpy as np

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.experimental.multihost_utils import process_allgather

UNDER_MPI = bool({"PMI_RANK", "OMPI_COMM_WORLD_RANK"} & os.environ.keys())
SIZE = 256
DT = 0.2  # of the square of a cell, below the limit 0.25
FRAMES = (0, 500, 2000, 6000)


def plate() -> np.ndarray:
    """The temperature at the beginning: float32[SIZE, SIZE]."""
    y, x = np.mgrid[:SIZE, :SIZE] / SIZE
    hot = [(0.3, 0.25, 0.05), (0.7, 0.6, 0.1), (0.2, 0.8, 0.03)]
    u = sum(np.exp(-((x - a) ** 2 + (y - b) ** 2) / (2 * r * r)) for a, b, r in hot)
    u[0], u[-1], u[:, 0], u[:, -1] = 0, 0, 0, 0
    return u.astype(np.float32)


def stepper(mesh: nj.sharding.Mesh, steps: int):
    """A compiled function of the plate, laid out by rows, that takes `steps` steps."""
    n = mesh.size
    down, up = [(i, i + 1) for i in range(n - 1)], [(i + 1, i) for i in range(n - 1)]

    def step(_, u):
        # The edges: zeros come where there is no neighbour, which is the rim's temperature.
        above, below = lax.ppermute(u[-1:], "rows", down), lax.ppermute(u[:1], "rows", up)
        tall = jnp.concatenate([above, u, below])
        wide = jnp.pad(u, ((0, 0), (1, 1)))
        around = tall[:-2] + tall[2:] + wide[:, :-2] + wide[:, 2:]
        return u + DT * (around - 4 * u)

    local = lambda u: lax.fori_loop(0, steps, step, u)  # noqa: E731
    rows = nj.P("rows")
    return nj.jit(nj.shard_map(local, mesh=mesh, in_specs=rows, out_specs=rows))


def lowest_mode(u: np.ndarray) -> float:
    """How much of sin(pi x) sin(pi y), which decays slowest, there is."""
    s = np.sin(np.pi * np.arange(1, SIZE + 1) / (SIZE + 1))
    return float(s @ u @ s)


def draw(frames: dict[int, np.ndarray], mesh: nj.sharding.Mesh, path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 5, figsize=(15, 3.2), layout="constrained")
    for ax, (steps, u) in zip(axes, frames.items(), strict=False):
        ax.imshow(u, cmap="inferno", vmin=0, vmax=1)
        for k in range(1, mesh.size):
            ax.axhline(k * SIZE / mesh.size - 0.5, color="white", lw=0.5, alpha=0.6)
        ax.set(title=f"after {steps} steps", xticks=[], yticks=[])
    modes = [lowest_mode(u) for u in frames.values()]
    axes[-1].semilogy(list(frames), modes, "o", label="computed")
    times = np.linspace(0, FRAMES[-1])
    axes[-1].semilogy(times, modes[0] * rate() ** times, label="exact")
    axes[-1].set(title="lowest mode", xlabel="steps")
    axes[-1].legend()
    figure.suptitle(f"{mesh.size} strips on {nj.process_count()} process(es)")
    figure.savefig(path, dpi=110)


def rate() -> float:
    """By what the lowest mode is multiplied in a step."""
    return 1 - 8 * DT * np.sin(np.pi / (2 * (SIZE + 1))) ** 2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="heat.png")
    options = parser.parse_args()
    if UNDER_MPI:
        nj.distributed.initialize()
    count = nj.device_count()
    mesh = nj.make_mesh((count,), ("rows",))
    u = nj.device_put(plate(), nj.NamedSharding(mesh, nj.P("rows")))
    frames, before = {}, 0
    for steps in FRAMES:
        if steps > before:
            u = stepper(mesh, steps - before)(u)
        frames[steps], before = process_allgather(u, tiled=True), steps
    modes = [lowest_mode(frames[s]) for s in (FRAMES[0], FRAMES[-1])]
    error = modes[1] / (modes[0] * rate() ** FRAMES[-1]) - 1
    if nj.process_index() == 0:
        print(f"{count} strips, {nj.process_count()} process(es); the decay of the lowest mode is "
              f"off by {100 * abs(error):.4f} %")  # fmt: skip
        draw(frames, mesh, options.out)
    return int(abs(error) > 0.01)


if __name__ == "__main__":
    sys.exit(main())
