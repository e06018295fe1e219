"""Times programs over several processes beside MPI itself and beside one process.

    python benchmarks/processes.py [--processes 2] [--json FILE]

Launches itself under mpiexec, one thread a process. `psum` rows compare a sum inside a compiled
program with MPI_Allreduce, called through ctypes, on buffers of the same size, alternately. Weak
scaling rows give two efficiencies of a step on all processes, measured in one run: against one
process that computes its share alone while the others wait, and against all processes that compute
their shares side by side without a word to each other. The first holds what the processes take
from each other on one machine (memory, clock, other users), the second communication alone. The
minima of several rounds are compared.
"""
from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROUNDS = 7


def best(call: Callable, before: Callable, rounds: int = ROUNDS) -> float:
    """Seconds of the quickest of some rounds."""
    times = []
    for _ in range(rounds):
        before()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def allreduce(mpi: Any, world: Any, sent: np.ndarray, got: np.ndarray) -> Callable:
    """A call of MPI_Allreduce on these buffers, with nothing of mpi4py between."""
    function = ctypes.CDLL(mpi.__file__).MPI_Allreduce
    handles = [ctypes.c_int64(mpi._handleof(x)) for x in (mpi.FLOAT, mpi.SUM, world)]
    given = (ctypes.c_void_p(sent.ctypes.data), ctypes.c_void_p(got.ctypes.data),
             ctypes.c_int64(sent.size), *handles)  # fmt: skip
    return lambda: function(*given)


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

        call = allreduce(MPI, world, sent, got)

        def plain(rounds: int = rounds, call: Callable = call) -> None:
            for _ in range(rounds):
                call()

        ours = theirs = 9e9
        for _ in range(2):
            theirs = min(theirs, best(plain, world.Barrier) / rounds)
            ours = min(ours, best(lambda f=f, x=x: f(x).block_until_ready(), world.Barrier)
                       / rounds)  # fmt: skip
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

    def times(name: str, alone: Callable, together: Callable) -> None:
        """alone: the step on this process's share; together: that on all."""
        alone()
        together()
        one, beside, many = [], [], []
        for _ in range(ROUNDS):
            world.Barrier()
            if world.rank == 0:
                one.append(best(alone, lambda: None, rounds=2))
            world.Barrier()
            beside.append(world.allreduce(best(alone, world.Barrier, rounds=2), MPI.MAX))
            many.append(world.allreduce(best(together, world.Barrier, rounds=2), MPI.MAX))
        least = world.bcast(min(one, default=0.0))
        rows.append({"row": f"weak scaling: {name}", "us": 1e6 * min(many),
                     "one alone us": 1e6 * least, "side by side us": 1e6 * min(beside),
                     "against alone": least / min(many),
                     "against side by side": min(beside) / min(many)})  # fmt: skip

    def compare(name: str, f: Callable, params: object, share: np.ndarray) -> None:
        alone, together, data, local = nj.jit(f), nj.jit(f), put(share), jnp.asarray(share)
        own = nj.tree.map(jnp.asarray, params)
        replicated = nj.tree.map(lambda p: nj.device_put(p, whole), params)
        times(name, lambda: nj.block_until_ready(alone(own, local)),
              lambda: nj.block_until_ready(together(replicated, data)))

    sizes = [256, 1024, 1024, 10]
    weights = [rng.normal(size=s).astype(np.float32) / 32 for s in zip(sizes, sizes[1:])]

    def trained(loss: Callable) -> Callable:
        return lambda ws, x: nj.tree.map(lambda w, g: w - 0.1 * g, ws, nj.grad(loss)(ws, x))

    def mlp(ws: list, x: nj.Array) -> nj.Array:
        for w in ws[:-1]:
            x = jnp.tanh(x @ w)
        return jnp.mean((x @ ws[-1]) ** 2)

    compare("MLP, 512 examples each", trained(mlp), weights,
            rng.normal(size=(512, 256)).astype(np.float32))

    width, layers, tokens = 256, 2, 128

    def transformer(ws: list, x: nj.Array) -> nj.Array:
        def normal(v: nj.Array) -> nj.Array:
            return (v - v.mean(-1, keepdims=True)) / jnp.sqrt(v.var(-1, keepdims=True) + 1e-5)

        for w in ws:
            parts = jnp.split(normal(x) @ w["in"], 3, -1)
            q, k, v = [t.reshape(*t.shape[:2], 4, -1) for t in parts]
            scores = nj.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k) / 8.0)
            x = x + jnp.einsum("bhts,bshd->bthd", scores, v).reshape(x.shape) @ w["out"]
            x = x + jnp.tanh(normal(x) @ w["up"]) @ w["down"]
        return jnp.mean(x**2)

    shapes = {"in": (width, 3 * width), "out": (width, width), "up": (width, 4 * width),
              "down": (4 * width, width)}  # fmt: skip
    blocks = [{k: rng.normal(size=s).astype(np.float32) / 32 for k, s in shapes.items()}
              for _ in range(layers)]  # fmt: skip
    compare(f"transformer, 8 x {tokens} tokens each", trained(transformer), blocks,
            rng.normal(size=(8, tokens, width)).astype(np.float32))

    def heat(m: Any, count: int) -> Callable:
        ring = [(i, (i + 1) % count) for i in range(count)]
        back = [(d, s) for s, d in ring]

        def step(u: nj.Array) -> nj.Array:
            above, below = lax.ppermute(u[-1:], "x", ring), lax.ppermute(u[:1], "x", back)
            v = jnp.concatenate([above, u, below])
            return u + 0.1 * (v[:-2] + v[2:] + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u)

        local = lambda u: lax.fori_loop(0, 20, lambda i, v: step(v), u)  # noqa: E731
        return nj.jit(nj.shard_map(local, mesh=m, in_specs=nj.P("x"), out_specs=nj.P("x")))

    single = nj.make_mesh((1,), ("x",), devices=nj.local_devices())
    alone, together = heat(single, 1), heat(mesh, n)
    # A step reads one array of 8 kB a row and writes another: in the second cache, in the third, in
    # the third for one process alone, and in memory.
    for count in (100, 500, 1000, 4000):
        u = rng.normal(size=(count, 2000)).astype(np.float32)
        own, all_of_it = nj.device_put(u, nj.NamedSharding(single, nj.P("x"))), put(u)
        times(f"heat, {count} x 2000 each, 20 steps",
              lambda own=own: alone(own).block_until_ready(),
              lambda all_of_it=all_of_it: together(all_of_it).block_until_ready())


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
