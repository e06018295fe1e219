"""Generated sharded programs, each run six ways, which have to give the same values.

    python tools/sharded.py SEED COUNT [--ways NAME,...] [--show]

The ways: one device; 8 virtual devices of one process; 2 and 4 processes; 2 processes of 2 devices;
8 devices of XLA's CPU plugin (where it is installed). A program is drawn from its seed while it is
traced: operations on arrays laid out at random, constraints, loops, `shard_map`, derivatives. A way
is one launch that runs all programs; if it ends early, it is launched again behind the program that
it ended in. Exit status 1 where values differ by more than their type's rounding (and by more than
the program's results vary when each of its values is disturbed by roundings), or where a program
fails one way and not on one device.
"""
from __future__ import annotations

import argparse
import importlib.util
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
# Name -> processes (0: no mpiexec), devices of each, platform.
WAYS = {"one": (0, 1, ""), "virtual": (0, 8, ""), "two": (2, 1, ""), "four": (4, 1, ""),
        "twice two": (2, 2, ""), "plugin": (0, 8, "xla_cpu")}  # fmt: skip
TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "int64": 0, "int32": 0}
MOST = 1 << 13  # elements of a value
DISTURBED, SPREAD = 12, 8.0  # runs with disturbed values; so many times their range is admitted


# ------------------------------------------------------------------ programs
class Drawer:
    """Draws a program's operations while it is traced: the same for the same seed and shapes."""

    def __init__(self, seed: int, mesh: Any) -> None:
        self.d, self.mesh = np.random.default_rng(seed), mesh

    def pick(self, things: Any) -> Any:
        return things[int(self.d.integers(len(things)))]

    def chance(self, p: float) -> bool:
        return bool(self.d.random() < p)

    def spec(self, shape: tuple) -> Any:
        """A layout for an array of this shape."""
        import numjet as nj

        names = list(self.d.permutation(list(self.mesh.axis_names)))
        entries: list[Any] = []
        for n in shape:
            taken: list = []
            # The draw does not depend on the mesh's size: each way draws the same.
            while names and self.chance(0.4):
                taken.append(str(names.pop()))
            # Devices of one process stand behind those of processes.
            taken.sort()
            parts = int(np.prod([self.mesh.shape[a] for a in taken]))
            if n % 8 or n % parts:
                taken = []
            entries.append(tuple(taken) if len(taken) > 1 else taken[0] if taken else None)
        return nj.P(*entries)

    def axis(self, x: Any) -> int:
        return int(self.d.integers(x.ndim))


def _unary(c: Drawer, x: Any, vals: list) -> Any:
    from numjet import numpy as jnp

    return c.pick([jnp.tanh, jnp.sin, jnp.cos, lambda v: v * 0.5, lambda v: jnp.maximum(v, 0.1),
                   lambda v: jnp.exp(-v * v), jnp.negative,
                   lambda v: v / (1 + v * v)])(x)  # fmt: skip


def _binary(c: Drawer, x: Any, vals: list) -> Any:
    from numjet import numpy as jnp

    others = [v for v in vals if v.shape == x.shape]
    y = c.pick(others)
    if c.chance(0.4):
        y = y.mean(c.axis(x), keepdims=True)
    return c.pick([jnp.add, jnp.subtract, jnp.multiply, jnp.maximum])(x, y)


def _reduce(c: Drawer, x: Any, vals: list) -> Any:
    from numjet import numpy as jnp

    axes = tuple(sorted({c.axis(x) for _ in range(int(c.d.integers(1, 3)))}))
    return c.pick([jnp.mean, jnp.max, jnp.min, jnp.var])(x, axes, keepdims=c.chance(0.5))


def _product(c: Drawer, x: Any, vals: list) -> Any:
    from numjet import numpy as jnp

    pairs = [(y, i, j) for y in vals if y.ndim for i in range(x.ndim) for j in range(y.ndim)
             if x.shape[i] == y.shape[j]
             and x.size // x.shape[i] * y.size // y.shape[j] <= MOST]  # fmt: skip
    if not pairs:
        return x
    y, i, j = c.pick(pairs)
    return jnp.tensordot(x, y, ((i,), (j,))) / x.shape[i]


def _batched(c: Drawer, x: Any, vals: list) -> Any:
    from numjet import numpy as jnp

    if x.ndim < 2 or x.size * x.shape[-2] > MOST:
        return x
    return jnp.einsum("...ij,...kj->...ik", x, jnp.cos(x)) / x.shape[-1]


def _transpose(c: Drawer, x: Any, vals: list) -> Any:
    return x.transpose(*[int(i) for i in c.d.permutation(x.ndim)])


def _reshape(c: Drawer, x: Any, vals: list) -> Any:
    if x.ndim >= 2 and c.chance(0.5):
        i = int(c.d.integers(x.ndim - 1))
        return x.reshape(*x.shape[:i], x.shape[i] * x.shape[i + 1], *x.shape[i + 2 :])
    i = c.axis(x)
    if x.shape[i] % 8 or x.ndim > 3:
        return x[..., None]
    k = c.pick([2, 4, 8])
    return x.reshape(*x.shape[:i], k, x.shape[i] // k, *x.shape[i + 1 :])


def _join(c: Drawer, x: Any, vals: list) -> Any:
    from numjet import numpy as jnp

    y, axis = c.pick([v for v in vals if v.shape == x.shape]), c.axis(x)
    if 2 * x.size > MOST:
        return x
    return jnp.stack([x, y], axis) if c.chance(0.3) else jnp.concatenate([x, y], axis)


def _part(c: Drawer, x: Any, vals: list) -> Any:
    from numjet import lax, numpy as jnp

    axis = c.axis(x)
    n = x.shape[axis]
    width = max(1, n // c.pick([1, 2, 3]))
    start = int(c.d.integers(n - width + 1))
    way = int(c.d.integers(4))
    if way == 0:
        return lax.slice_in_dim(x, start, start + width, c.pick([1, 1, 2]), axis)
    if way == 1:
        return lax.dynamic_slice_in_dim(x, (x > 0.0123).sum() % n, width, axis)
    if way == 2:
        return jnp.pad(x, [(1, 2) if i == axis else (0, 0) for i in range(x.ndim)])
    return jnp.take(x, np.array([start, n - 1, 0, start]), axis)


def _move(c: Drawer, x: Any, vals: list) -> Any:
    from numjet import numpy as jnp

    axis = c.axis(x)
    return c.pick([lambda: jnp.roll(x, 3, axis), lambda: jnp.flip(x, axis),
                   lambda: jnp.repeat(x[..., :4], 2, -1),
                   lambda: jnp.diff(x, axis=axis, append=0)])()  # fmt: skip


def _rows(c: Drawer, x: Any, vals: list) -> Any:
    from numjet import nn, numpy as jnp

    axis = c.axis(x)
    return c.pick([lambda: jnp.cumsum(x, axis) / x.shape[axis], lambda: nn.softmax(x, axis),
                   lambda: jnp.sort(x, axis), lambda: nn.logsumexp(x, axis),
                   lambda: x - x.max(axis, keepdims=True), lambda: nn.standardize(x, axis),
                   lambda: jnp.argmax(x, axis) * x.dtype.type(0.01)])()  # fmt: skip


def _update(c: Drawer, x: Any, vals: list) -> Any:
    n = x.shape[0]
    rows = np.array([0, n - 1, n // 2])
    way = int(c.d.integers(3))
    if way == 0:
        return x.at[rows].add(1.5)
    if way == 1:
        return x.at[rows].set(x[rows[::-1]] * 0.5)
    return x.at[(x > 0.0123).sum() % n].multiply(0.5)


def _choose(c: Drawer, x: Any, vals: list) -> Any:
    from numjet import lax, numpy as jnp

    way = int(c.d.integers(3))
    if way == 0:
        return jnp.where(x > x.mean(), x, -0.3 * x)
    if way == 1:
        return lax.cond(x.sum() > 0.0123, lambda v: jnp.sin(v), lambda v: v - v.mean(0), x)
    return lax.select_n((x > 0.0123).astype(np.int32), x, jnp.flip(x, 0))


def _loop(c: Drawer, x: Any, vals: list) -> Any:
    from numjet import lax, numpy as jnp

    way = int(c.d.integers(4))
    if way == 0:
        return lax.scan(lambda s, r: (0.5 * s + r, s.sum() * 0.1 + r), x[0] * 0, x)[1]
    if way == 1:
        return lax.fori_loop(0, 3, lambda i, v: v * 0.5 + jnp.roll(v, 1, 0), x)
    if way == 2:
        return lax.scan(lambda s, _: (jnp.tanh(s + s.mean(0)), s.sum(0)), x, None, length=3)[1]
    return lax.map(lambda r: jnp.sin(r) + r.sum(), x)


def _mapped(c: Drawer, x: Any, vals: list) -> Any:
    import numjet as nj
    from numjet import numpy as jnp

    axis = c.axis(x)
    inner = c.pick([lambda r: r - r.mean(), lambda r: jnp.tanh(r) * r.sum() * 0.1,
                    nj.jit(lambda r: jnp.cos(r) + 0.1),
                    nj.checkpoint(lambda r: jnp.sin(r * r))])  # fmt: skip
    return nj.vmap(inner, axis, axis)(x)


def _constrain(c: Drawer, x: Any, vals: list) -> Any:
    import numjet as nj

    return nj.lax.with_sharding_constraint(x, nj.NamedSharding(c.mesh, c.spec(x.shape)))


def _devices(c: Drawer, x: Any, vals: list) -> Any:
    """A `shard_map` whose result does not depend on how many devices there are."""
    import numjet as nj
    from numjet import lax, numpy as jnp

    axis, name = c.axis(x), str(c.pick(list(c.mesh.axis_names)))
    way, other = int(c.d.integers(7)), (axis + 1) % x.ndim
    if x.shape[axis] % 8 or way in (4, 5) and (x.ndim < 2 or x.shape[other] % 8):
        return jnp.tanh(x)
    n = c.mesh.shape[name]

    def cut(at: int, ndim: int = x.ndim) -> Any:
        return nj.P(*[name if i == at else None for i in range(ndim)])

    def shifted(b: Any) -> Any:
        last = lax.slice_in_dim(b, b.shape[axis] - 1, b.shape[axis], axis=axis)
        came = lax.ppermute(last, name, [(i, (i + 1) % n) for i in range(n)])
        return jnp.concatenate([came, lax.slice_in_dim(b, 0, b.shape[axis] - 1, axis=axis)], axis)

    def turned(b: Any) -> Any:
        b = lax.all_to_all(b, name, other, axis, tiled=True)
        return jnp.cumsum(b, axis) / b.shape[axis]

    f, out = [
        (lambda b: lax.psum(b.sum(axis), name), nj.P()),
        (lambda b: lax.pmax(b.max(axis), name) - lax.pmin(b.min(axis), name), nj.P()),
        (lambda b: b - lax.pmean(b.mean(axis, keepdims=True), name), cut(axis)),
        (shifted, cut(axis)),
        (turned, cut(other)),
        (lambda b: lax.psum_scatter(b.sum(axis, keepdims=True), name, scatter_dimension=other,
                                    tiled=True), cut(other)),
        (lambda b: lax.all_gather(b, name, axis=axis, tiled=True) * 0.5, nj.P()),
    ][way]  # fmt: skip
    return nj.shard_map(f, mesh=c.mesh, in_specs=(cut(axis),), out_specs=out, check_vma=False)(x)


OPERATIONS: list[Callable] = [
    _unary, _unary, _binary, _binary, _reduce, _product, _product, _batched, _transpose, _reshape,
    _join, _part, _part, _move, _rows, _rows, _update, _choose, _loop, _mapped, _constrain,
    _constrain, _devices, _devices,
]  # fmt: skip


def program(
    seed: int, mesh: Any, rounded: Callable = lambda x: x
) -> tuple[Callable, list[np.ndarray], list[Any], Any]:
    """A function, its arguments, their layouts, and those of its results (None: they follow).
    rounded: what becomes of each value."""
    import numjet as nj
    from numjet import numpy as jnp

    c = Drawer(seed, mesh)
    dtype = np.float64 if c.chance(0.7) else np.float32
    shapes = [tuple([c.pick([8, 16]) for _ in range(int(c.d.integers(1, 4)))]) for _ in range(3)]
    arrays = [c.d.normal(size=s).astype(dtype) for s in shapes]
    specs = [c.spec(s) if c.chance(0.8) else None for s in shapes]
    steps, derived = int(c.d.integers(3, 9)), c.chance(0.4)
    inside = int(c.d.integers(1 << 30))

    def run(*args: Any) -> tuple:
        c = Drawer(inside, mesh)
        vals = [rounded(x) for x in args]
        for _ in range(steps):
            x = c.pick(vals) if c.chance(0.4) else vals[-1]
            out = jnp.sin(x) if x.ndim == 0 else c.pick(OPERATIONS)(c, x, vals)
            vals.append(rounded(out.astype(dtype)) if out.size else x)
        return tuple(vals[-2:])

    def derivative(*args: Any) -> Any:
        return nj.grad(lambda *a: sum([jnp.mean(jnp.tanh(v)) for v in run(*a)]), (0, 1, 2))(*args)

    return (derivative if derived else run), arrays, specs, dtype


def _mesh(shape: tuple[int, int]) -> Any:
    import numjet as nj

    return nj.make_mesh(shape, ("x", "y"), (nj.sharding.AxisType.Auto,) * 2)


# ------------------------------------------------------------------ one way
def one_way(seeds: list[int], out: str) -> None:
    """Run the programs here; results of each are appended to the file."""
    import numjet as nj
    from numjet.experimental import multihost_utils

    several = {"PMI_RANK", "OMPI_COMM_WORLD_RANK"} & os.environ.keys()
    if several:
        nj.distributed.initialize()
    n = nj.device_count()
    mesh = _mesh({1: (1, 1), 2: (2, 1), 4: (2, 2), 8: (2, 4)}[n])
    with open(out, "ab") if nj.process_index() == 0 else open(os.devnull, "ab") as file:
        for seed in seeds:
            f, arrays, specs, _ = program(seed, mesh)
            pickle.dump((seed, None), file)
            file.flush()
            placed = [
                nj.device_put(x, nj.NamedSharding(mesh, nj.P() if s is None else s))
                for x, s in zip(arrays, specs, strict=True)
            ]
            try:
                found = [multihost_utils.process_allgather(x, tiled=True) if several
                         else np.asarray(x) for x in nj.jit(f)(*placed)]  # fmt: skip
            except Exception as error:  # the same on all processes: the program goes on
                pickle.dump((seed, f"{type(error).__name__}: {str(error)[:300]}"), file)
            else:
                pickle.dump((seed, [np.asarray(x) for x in found]), file)
            file.flush()


def launch(way: str, seeds: list[int], folder: str) -> dict[int, Any]:
    """What the programs gave in this way: arrays, or a text of what went wrong."""
    processes, devices, platform = WAYS[way]
    found: dict[int, Any] = {}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMJET_ENABLE_X64": "1",
                   "NUMJET_NUM_THREADS": "1", "NUMJET_NUM_CPU_DEVICES": str(devices)}  # fmt: skip
    if platform:
        environment["NUMJET_PLATFORMS"] = platform
    beside = Path(sys.executable).parent / "mpiexec"
    launcher = [str(beside) if beside.exists() else "mpiexec", "-n", str(processes)]
    left = list(seeds)
    while left:
        out = Path(folder) / f"{way.replace(' ', '_')}.{left[0]}"
        command = [sys.executable, __file__, "0", "0", "--here", str(out),
                   "--seeds", ",".join(map(str, left))]  # fmt: skip
        ended = subprocess.run(launcher * bool(processes) + command, env=environment,
                               capture_output=True, text=True)  # fmt: skip
        began = None
        with open(out, "rb") if out.exists() else open(os.devnull, "rb") as file:
            while True:
                try:
                    began, result = pickle.load(file)
                except EOFError:
                    break
                found[began] = "ended: " + (ended.stdout + ended.stderr)[-1500:]
                if result is not None:
                    found[began] = result
        if began is None:
            raise SystemExit(f"{way}: nothing ran.\n{ended.stdout}{ended.stderr}")
        left = left[left.index(began) + 1 :]
    return found


def disturbed(seed: int) -> Callable[[int], list[np.ndarray]]:
    """The results of a program on one device, each of its values disturbed by roundings, by the
    number of the disturbance."""
    sys.path.insert(0, str(ROOT))
    import numjet as nj

    def run(number: int) -> list[np.ndarray]:
        draw = np.random.default_rng(number)

        def rounded(x: Any) -> Any:
            if x.dtype.kind != "f":
                return x
            noise = 1 + draw.integers(-1, 2, x.shape) * np.finfo(x.dtype).eps
            return x * noise.astype(x.dtype)

        with nj.enable_x64(True):
            f, arrays, _, _ = program(seed, _mesh((1, 1)), rounded)
            return [np.asarray(x) for x in nj.jit(f)(*arrays)]

    return run


def differs(
    one: Any, other: Any, disturbed: Callable[[int], list[np.ndarray]] | None = None
) -> str:
    """How two results differ; "" where they do not, or vary as much when the program's values are
    disturbed by roundings."""
    if isinstance(one, str) or isinstance(other, str):
        return "" if isinstance(one, str) else str(other)
    for k, (a, b) in enumerate(zip(one, other, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"result {k}: {a.dtype}{a.shape} and {b.dtype}{b.shape}"
        scale = max(1.0, float(np.abs(a[np.isfinite(a)]).max(initial=0)))
        atol = TOLERANCE[a.dtype.name] * scale
        if np.allclose(a, b, rtol=0, atol=atol, equal_nan=True):
            continue
        runs = np.stack([disturbed(n)[k] for n in range(DISTURBED)]) if disturbed else a[None]
        spread = np.nan_to_num(np.ptp(runs.astype(np.float64), axis=0), posinf=0)
        if not np.isclose(a, b, 0, atol + SPREAD * spread, equal_nan=True).all():
            return f"result {k} of {a.dtype}{a.shape} differs by {np.nanmax(np.abs(a - b)):.2g}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--show", action="store_true", help="print the programs' jaxprs")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    parser.add_argument("--seeds", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        one_way([int(s) for s in options.seeds.split(",")], options.here)
        return
    seeds = list(range(options.seed, options.seed + options.count))
    if options.show:
        sys.path.insert(0, str(ROOT))
        os.environ["NUMJET_ENABLE_X64"] = "1"
        import numjet as nj

        for seed in seeds:
            f, arrays, specs, _ = program(seed, _mesh((1, 1)))
            print(seed, specs, nj.make_jaxpr(f)(*arrays))
        return
    bad = 0
    with tempfile.TemporaryDirectory(prefix="numjet-sharded-") as folder:
        wanted = launch("one", seeds, folder)
        refused = [s for s in seeds if isinstance(wanted[s], str)]
        for way in options.ways.split(","):
            if way == "one":
                continue
            if way == "plugin" and importlib.util.find_spec("xla_plugins") is None:
                print("plugin: left out, as it is not installed (numjet[xla-cpu])")
                continue
            found = launch(way, seeds, folder)
            texts = {s: differs(wanted[s], found[s], disturbed(s)) for s in seeds}
            wrong = [(s, text) for s, text in texts.items() if text]
            for seed, text in wrong:
                print(f"{way}, program {seed}: {text}")
            bad += len(wrong)
            print(f"{way}: {len(seeds) - len(wrong)} of {len(seeds)} agree", flush=True)
        for seed in refused:
            print(f"one device, program {seed}: {wanted[seed]}")
    sys.exit(bool(bad or refused))


if __name__ == "__main__":
    main()
