"""Times programs over several processes beside MPI itself and beside one process.

    python benchmarks/processes.py [--processes 2] [--json FILE]

Launches itself under mpiexec, one thread a process. `psum` rows compare a sum inside a compiled
program with mpi4py's Allreduce on buffers of the same size, alternately; weak scaling rows divide
the time of a step on one process with its share of the data by that on all, measured in one run:
while one process computes alone, the others wait. The minima of several rounds are compared.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROUNDS = 7


def best(call: Callable, before: Callable, repeat: int = 1) -> float:
    """Seconds of the quickest of some rounds."""
    times = []
    for _ in range(ROUNDS):
        before()
        start = time.perf_counter()
        for _ in range(repeat):
            call()
        times.append((time.perf_counter() - start) / repeat)
    return min(times)


def sums(rows: list) -> None:
    """A sum over processes of several sizes, in a loop inside one program."""
    from mpi4py import MPI

    import numjet as nj
    from numjet import lax

    world = MPI.COMM_WORLD
    n = world.size
    mesh = nj.make_mesh((n,), ("x",))
    for count in (1, 1_000, 100_000, 25_000_000):
        rounds = max(1, min(1000, 3_000_000 // count))
        rows_ = nj.NamedSharding(mesh, nj.P("x"))
        data = np.full((1, count), 1.0 / n, np.float32)
        x = nj.make_array_from_process_local_data(rows_, data)

        def local(a: nj.Array, rounds: int = rounds) -> nj.Array:
            if rounds == 1:
                return lax.psum(a, "x")
            # What differs between processes keeps the next round from being free.
            here = lax.axis_index("x") * 1e-9
            return lax.fori_loop(0, rounds, lambda i, v: lax.psum(v, "x") * (1 / n) + here, a)

        f = nj.jit(nj.shard_map(local, mesh=mesh, in_specs=nj.P("x"), out_specs=nj.P("x"),
                                check_vma=False))  # fmt: skip
        f(x)
        sent, got = np.full(count, 1.0 / n, np.float32), np.empty(count, np.float32)

        def plain(rounds: int = rounds, sent: np.ndarray = sent, got: np.ndarray = got) -> None:
            for _ in range(rounds):
                world.Allreduce(sent, got)

        ours = theirs = 9e9
        for _ in range(2):
            theirs = min(theirs, best(plain, world.Barrier) / rounds)
            call = lambda f=f, x=x: f(x).block_until_ready()  # noqa: E731
            ours = min(ours, best(call, world.Barrier) / rounds)
        rows.append({"row": f"psum of {4 * count} bytes", "us": 1e6 * ours, "MPI us": 1e6 * theirs,
                     "MPI / ours": theirs / ours})  # fmt: skip


def weak(rows: list) -> None:
    """Steps of training and a stencil, with the same work for each process."""
    from mpi4py import MPI

    import numjet as nj
    import numjet.numpy as jnp
    from numjet import lax

    world = MPI.COMM_WORLD
    n = world.size
    mesh = nj.make_mesh((n,), ("x",))
    cut, whole = nj.NamedSharding(mesh, nj.P("x")), nj.NamedSharding(mesh, nj.P())
    rng = np.random.default_rng(0)

    def put(share: np.ndarray) -> nj.Array:
        return nj.make_array_from_process_local_data(cut, share)

    def compare(name: str, f: Callable, params: object, share: np.ndarray) -> None:
        alone, data = nj.jit(f), put(share)
        own = nj.tree.map(jnp.asarray, params)
        spread = nj.tree.map(lambda p: nj.device_put(p, whole), params)
        together, local = nj.jit(f), jnp.asarray(share)
        one = many = 9e9
        for _ in range(2):
            for rank in range(n):
                world.Barrier()
                if world.rank == rank == 0:
                    alone(own, local)
                    one = min(one, best(lambda: nj.block_until_ready(alone(own, local)),
                                        lambda: None))  # fmt: skip
            world.Barrier()
            together(spread, data)
            many = min(many, best(lambda: nj.block_until_ready(together(spread, data)),
                                  world.Barrier))  # fmt: skip
        one = world.bcast(one)
        rows.append({"row": f"weak scaling: {name}", "us": 1e6 * many, "one process us": 1e6 * one,
                     "efficiency": one / many})  # fmt: skip

    sizes = [256, 1024, 1024, 10]
    weights = [rng.normal(size=s).astype(np.float32) / 32 for s in zip(sizes, sizes[1:])]

    def mlp(ws: list, x: nj.Array) -> list:
        def loss(ws: list) -> nj.Array:
            h = x
            for w in ws[:-1]:
                h = jnp.tanh(h @ w)
            return jnp.mean((h @ ws[-1]) ** 2)

        return [w - 0.1 * g for w, g in zip(ws, nj.grad(loss)(ws))]

    compare("MLP, 512 examples each", mlp, weights, rng.normal(size=(512, 256)).astype(np.float32))

    ring = [(i, (i + 1) % n) for i in range(n)]
    back = [(d, s) for s, d in ring]

    def step(u: nj.Array) -> nj.Array:
        above, below = lax.ppermute(u[-1:], "x", ring), lax.ppermute(u[:1], "x", back)
        v = jnp.concatenate([above, u, below])
        return u + 0.1 * (v[:-2] + v[2:] + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u)

    def heat(m: object) -> Callable:
        local = lambda u: lax.fori_loop(0, 20, lambda i, v: step(v), u)  # noqa: E731
        return nj.jit(nj.shard_map(local, mesh=m, in_specs=nj.P("x"), out_specs=nj.P("x")))

    u = rng.normal(size=(1000, 2000)).astype(np.float32)
    single = nj.make_mesh((1,), ("x",), devices=nj.local_devices())
    own, many_ = nj.device_put(u, nj.NamedSharding(single, nj.P("x"))), put(u)
    together = heat(mesh)
    keep_ring, keep_back = list(ring), list(back)
    ring[:], back[:] = [(0, 0)], [(0, 0)]
    alone = heat(single)
    if world.rank == 0:
        alone(own)
    ring[:], back[:] = keep_ring, keep_back
    one = many = 9e9
    together(many_)
    for _ in range(2):
        if world.rank == 0:
            one = min(one, best(lambda: alone(own).block_until_ready(), lambda: None))
        world.Barrier()
        many = min(many, best(lambda: together(many_).block_until_ready(), world.Barrier))
    one = world.bcast(one)
    rows.append({"row": "weak scaling: heat, 1000 x 2000 each, 20 steps", "us": 1e6 * many,
                 "one process us": 1e6 * one, "efficiency": one / many})  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if "PMI_RANK" not in os.environ and "OMPI_COMM_WORLD_RANK" not in os.environ:
        beside = Path(sys.executable).parent / "mpiexec"
        launcher = str(beside) if beside.exists() else "mpiexec"
        command = [launcher, "-n", str(options.processes), sys.executable, *sys.argv]
        sys.exit(subprocess.call(command, env={**os.environ, "NUMJET_NUM_THREADS": "1"}))
    import numjet as nj

    nj.distributed.initialize()
    rows: list[dict] = []
    sums(rows)
    weak(rows)
    if nj.process_index() == 0:
        for row in rows:
            name, *rest = row.items()
            print(f"{name[1]:50s}", "  ".join(f"{k}: {v:.4g}" for k, v in rest))
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
