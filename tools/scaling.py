"""The cost model of docs/scaling.md: constants measured here, and what they foretell.

    python tools/scaling.py --measure          measures the constants and the checks (under mpiexec)
    python tools/scaling.py                    prints the tables from constants on the command line

A message of m bytes takes alpha + beta m seconds. Collectives of p processes are those that MPICH
chooses for long and short messages; a training step is its arithmetic at a measured rate and its
collectives, one after the other as programs run them now. Nothing here is fitted to the steps that
it is checked against.
"""
from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Machine:
    """alpha: seconds a message; beta: seconds a byte; gamma: seconds to add two bytes up; rate:
    floating-point operations a second of one process; call: seconds that a collective costs beside
    MPI's own time; step: seconds that a call of a program costs."""

    alpha: float
    beta: float
    gamma: float
    rate: float
    call: float
    step: float


SHORT = 2048  # bytes below which MPICH doubles instead of scattering


def allreduce(m: Machine, p: int, nbytes: float) -> float:
    """Seconds: recursive doubling for short messages, reduce-scatter and all-gather for long."""
    if p == 1:
        return 0.0
    rounds = math.ceil(math.log2(p))
    if nbytes <= SHORT:
        return m.call + rounds * (m.alpha + (m.beta + m.gamma) * nbytes)
    share = (p - 1) / p * nbytes
    return m.call + 2 * rounds * m.alpha + 2 * m.beta * share + m.gamma * share


def all_gather(m: Machine, p: int, nbytes: float) -> float:
    """Seconds until each has all `nbytes`."""
    if p == 1:
        return 0.0
    return m.call + math.ceil(math.log2(p)) * m.alpha + (p - 1) / p * nbytes * m.beta


def point(m: Machine, nbytes: float) -> float:
    """Seconds of one message."""
    return m.call + m.alpha + m.beta * nbytes


@dataclass(frozen=True)
class Model:
    """A transformer: parameters, layers, width, bytes a number; tokens in one process's batch."""

    parameters: float
    layers: int
    width: int
    tokens: int
    size: int = 4

    @property
    def flops(self) -> float:
        """Of a step of training on one process's tokens."""
        return 6 * self.parameters * self.tokens


def data_parallel(m: Machine, net: Model, p: int) -> float:
    """Seconds of a step: everyone its tokens, one sum a layer."""
    each = net.parameters * net.size / net.layers
    return m.step + net.flops / m.rate + net.layers * allreduce(m, p, each)


def tensor_parallel(m: Machine, net: Model, p: int) -> float:
    """Seconds of a step on the same tokens: a share of each layer, two sums of activations a layer
    forwards and two backwards."""
    activations = net.tokens * net.width * net.size
    return m.step + net.flops / p / m.rate + 4 * net.layers * allreduce(m, p, activations)


def pipeline(m: Machine, net: Model, p: int, pieces: int = 32) -> float:
    """Seconds of a step on the same tokens in `pieces`, a share of the layers on each of p stages:
    the stages fill and drain, and hand activations on."""
    one = net.flops / pieces / p / m.rate
    handed = 2 * point(m, net.tokens / pieces * net.width * net.size)
    return m.step + (pieces + p - 1) * (one + handed)


def tables(m: Machine) -> str:
    """Efficiencies up to 4,096 processes, as Markdown."""
    big = Model(parameters=1.2e8, layers=12, width=768, tokens=512)
    lines = ["| processes | data | tensor | pipeline | data x tensor 8 |", "|---|---|---|---|---|"]
    alone = m.step + big.flops / m.rate
    for k in range(0, 13):
        p = 2**k
        data = alone / data_parallel(m, big, p)
        tensor = alone / p / tensor_parallel(m, big, p) if p <= 64 else None
        staged = alone / p / pipeline(m, big, p) if p <= big.layers else None
        both = None
        if p >= 8:
            layer = big.parameters * big.size / big.layers / 8
            seconds = tensor_parallel(m, big, 8) + big.layers * allreduce(m, p // 8, layer)
            both = alone / 8 / seconds
        cells = ["" if x is None else f"{100 * x:.0f} %" for x in (data, tensor, staged, both)]
        lines.append(f"| {p} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


# ------------------------------------------------------------------ measuring
def _quickest(call, barrier, rounds: int = 15) -> float:
    found = []
    for _ in range(rounds):
        barrier()
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def measure() -> None:
    """On each process: constants, and a step of training beside what the model says of it."""
    import numpy as np
    from mpi4py import MPI

    import numjet as nj
    import numjet.numpy as jnp

    nj.distributed.initialize()
    world = MPI.COMM_WORLD
    p, here = world.size, world.rank

    def exchange(count: int, times: int) -> float:
        sent, got = np.zeros(count, np.uint8), np.zeros(count, np.uint8)
        peer = here ^ 1

        def call() -> None:
            for _ in range(times):
                if peer < p:
                    world.Sendrecv(sent, peer, 0, got, peer, 0)

        return _quickest(call, world.Barrier) / times

    alpha = exchange(8, 200)
    beta = exchange(1 << 24, 1) / (1 << 24)
    a, b = np.ones(1 << 22, np.float32), np.ones(1 << 22, np.float32)
    gamma = _quickest(lambda: np.add(a, b, out=b), lambda: None) / a.nbytes

    width, rows = 512, 256
    w = [np.random.default_rng(0).normal(size=(width, width)).astype(np.float32) / 25] * 4
    x = np.random.default_rng(here).normal(size=(rows, width)).astype(np.float32)

    def loss(ws, x):
        for v in ws:
            x = jnp.tanh(x @ v)
        return jnp.mean(x**2)

    step = nj.jit(nj.grad(loss))
    own = [jnp.asarray(v) for v in w]
    alone = min(_quickest(lambda: nj.block_until_ready(step(own, x)), world.Barrier)
                for _ in range(2))  # fmt: skip
    flops = 6 * rows * 4 * width * width
    mesh = nj.make_mesh((p,), ("data",))
    replicated = [nj.device_put(v, nj.NamedSharding(mesh, nj.P())) for v in w]
    data = nj.make_array_from_process_local_data(nj.NamedSharding(mesh, nj.P("data")), x)
    together = _quickest(lambda: nj.block_until_ready(step(replicated, data)), world.Barrier)
    tiny = nj.make_array_from_process_local_data(
        nj.NamedSharding(mesh, nj.P("data")), np.ones(4, np.float32)
    )
    twice, total = nj.jit(lambda v: v * 2), nj.jit(lambda v: v.sum())
    nj.block_until_ready((twice(tiny), total(tiny)))
    called = _quickest(lambda: twice(tiny).block_until_ready(), world.Barrier, 50)
    summed = _quickest(lambda: total(tiny).block_until_ready(), world.Barrier, 50)
    plain = _quickest(lambda: world.Allreduce(np.ones(1, np.float32), np.ones(1, np.float32)),
                      world.Barrier, 50)  # fmt: skip
    if here == 0:
        machine = Machine(alpha, beta, gamma, flops / alone, max(summed - called - plain, 0.0),
                          called)  # fmt: skip
        said = called + alone + 4 * allreduce(machine, p, 4 * width * width)
        print(json.dumps({"processes": p, **machine.__dict__, "step alone": alone,
                          "step together": together, "the model says": said}))  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--constants", help="a JSON object of them")
    options = parser.parse_args()
    if {"PMI_RANK", "OMPI_COMM_WORLD_RANK"} & os.environ.keys():
        measure()
    elif options.measure:
        beside = Path(sys.executable).parent / "mpiexec"
        launcher = str(beside) if beside.exists() else "mpiexec"
        command = [launcher, "-n", str(options.processes), sys.executable, __file__, "--measure"]
        sys.exit(subprocess.call(command, env={**os.environ, "NUMJET_NUM_THREADS": "1"}))
    else:
        given = json.loads(options.constants) if options.constants else CLUSTER
        print(tables(Machine(**{k: given[k] for k in Machine.__dataclass_fields__})))


# A cluster as they are built: 2 microseconds and 12.5 GB/s a process, 100 GFLOPS, and this
# package's own costs as measured.
CLUSTER = {"alpha": 2e-6, "beta": 8e-11, "gamma": 5e-11, "rate": 1e11, "call": 1e-6,
           "step": 1.5e-4}


if __name__ == "__main__":
    main()
