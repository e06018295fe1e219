"""One program, six ways: parallel examples and a transformer's step, on devices and processes.

    python tools/six_ways.py [--ways one,virtual,two,four,"twice two",plugin]

Runs the same values through `pmap` with derivatives, `pmap` with a collective, a heat equation by
`shard_map` with halo exchange, and a step of training of examples/transformer.py whose batch,
heads and sequence are cut over the mesh, by every mesh that so many devices make: on one device, 8
virtual ones, 2 and 4 processes, 2 processes of 2 devices, and 8 devices of XLA's CPU plugin.
Results have to agree with those of one device to 1e-6. Exit status 1 where they do not.
"""
from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
WAYS = {"one": (0, 1, ""), "virtual": (0, 8, ""), "two": (2, 1, ""), "four": (4, 1, ""),
        "twice two": (2, 2, ""), "plugin": (0, 8, "xla_cpu")}  # fmt: skip
MESHES = {1: [(1, 1, 1)], 2: [(2, 1, 1), (1, 2, 1), (1, 1, 2)],
          4: [(2, 2, 1), (2, 1, 2), (1, 2, 2), (4, 1, 1), (1, 4, 1), (1, 1, 4)],
          8: [(2, 2, 2), (4, 2, 1), (1, 2, 4), (2, 1, 4)]}  # fmt: skip
BOUND = 1e-6


def here() -> dict[str, Any]:
    """All programs on the devices that there are: results by name."""
    import numjet as nj
    from numjet import lax, numpy as jnp
    from numjet.experimental import multihost_utils

    several = bool({"PMI_RANK", "OMPI_COMM_WORLD_RANK"} & os.environ.keys())
    if several:
        nj.distributed.initialize()
    count = nj.device_count()
    gathered = lambda x: multihost_utils.process_allgather(x, tiled=True)  # noqa: E731
    fetched = gathered if several else np.asarray
    found: dict[str, Any] = {}

    # The parallel examples: eight rows, so many on a device.
    rows = np.linspace(0.1, 1, 24, dtype=np.float32).reshape(count, 8 // count, 3)
    first = nj.process_index() * nj.local_device_count()
    mine = slice(first, first + nj.local_device_count())
    derivative = nj.pmap(nj.vmap(nj.vmap(nj.jit(nj.grad(lambda x: jnp.sin(x) ** 2)))))
    found["pmap of derivatives"] = fetched(derivative(rows[mine])).reshape(8, 3)
    share = nj.pmap(lambda x: x / lax.psum(x.sum(), "i"), axis_name="i")
    found["pmap with a collective"] = fetched(share(rows[mine])).reshape(8, 3)

    line = nj.make_mesh((count,), ("x",))
    there = nj.NamedSharding(line, nj.P("x"))
    back = [(i, (i + 1) % count) for i in range(count)]
    forth = [(j, i) for i, j in back]

    def heat(u: Any) -> Any:
        def step(u: Any, _: Any) -> Any:
            left, right = lax.ppermute(u[-1:], "x", back), lax.ppermute(u[:1], "x", forth)
            wide = jnp.concatenate([left, u, right])
            return u + 0.1 * (wide[2:] - 2 * u + wide[:-2]), None

        return lax.scan(step, u, None, length=20)[0]

    u = nj.device_put(np.sin(np.arange(640, dtype=np.float32) / 9).reshape(64, 10), there)
    halo = nj.jit(nj.shard_map(heat, mesh=line, in_specs=nj.P("x"), out_specs=nj.P("x")))
    found["heat equation"] = fetched(halo(u))
    for shape in MESHES[count]:
        found[f"transformer {shape}"] = [fetched(x) for x in _transformer(shape)]
    return found


def _transformer(shape: tuple[int, int, int]) -> list[Any]:
    """The loss and all parameters after a step, data, heads and sequence cut over a mesh."""
    sys.path.insert(0, str(ROOT / "examples"))
    import transformer as example

    import numjet as nj
    from numjet import lax, numpy as jnp, random

    kinds = (nj.sharding.AxisType.Auto,) * 3
    mesh = nj.make_mesh(shape, ("data", "tensor", "seq"), kinds)
    lies = lambda *spec: nj.NamedSharding(mesh, nj.P(*spec))  # noqa: E731
    width, heads = example.WIDTH, example.HEADS
    generator = np.random.default_rng(0)  # whose numbers are the same on all devices

    def drawn(p: Any, spec: Any) -> Any:
        value = generator.normal(0, len(p) ** -0.5, p.shape)
        return nj.device_put(value.astype(np.float32), lies(*spec))

    params = nj.tree.map(drawn, *example.init(random.key(0)))
    letters = example.sequences(generator, 8)

    def logits(params: Any, letters: Any) -> Any:
        length = letters.shape[1]
        cut = lambda x: lax.with_sharding_constraint(x, lies("data", "seq", None))  # noqa: E731
        words = nj.nn.one_hot(letters, example.LETTERS) @ params["embed"]
        x = cut(words + params["place"][:length])
        mask = jnp.tril(jnp.ones((length, length), bool))
        for layer in params["layers"]:
            wide = jnp.einsum("btw,wnhd->btnhd", example.norm(x), layer["qkv"])
            q, k, v = jnp.moveaxis(wide, 2, 0)
            scores = jnp.einsum("bthd,bshd->bhts", q, k) * (width // heads) ** -0.5
            weights = nj.nn.softmax(jnp.where(mask, scores, -1e9))
            x = cut(x + jnp.einsum("bhts,bshd,hdw->btw", weights, v, layer["out"]))
            x = cut(x + nj.nn.gelu(example.norm(x) @ layer["up"]) @ layer["down"])
        return example.norm(x) @ params["head"]

    def loss(params: Any, letters: Any) -> Any:
        log_p = nj.nn.log_softmax(logits(params, letters[:, :-1]))
        right = jnp.sum(log_p * nj.nn.one_hot(letters[:, 1:], example.LETTERS), -1)
        return -jnp.mean(right[:, example.LENGTH // 2 :])

    @nj.jit
    def step(params: Any, letters: Any) -> Any:
        value, grads = nj.value_and_grad(loss)(params, letters)
        return value, nj.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    return nj.tree.leaves(step(params, nj.device_put(letters, lies("data"))))


def launch(way: str, folder: str) -> dict[str, Any]:
    """The results in this way. Raises RuntimeError with what was said where it fails."""
    processes, devices, platform = WAYS[way]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMJET_NUM_THREADS": "1",
                   "NUMJET_NUM_CPU_DEVICES": str(devices)}  # fmt: skip
    if platform:
        environment["NUMJET_PLATFORMS"] = platform
    beside = Path(sys.executable).parent / "mpiexec"
    launcher = [str(beside) if beside.exists() else "mpiexec", "-n", str(processes)]
    out = Path(folder) / way.replace(" ", "_")
    command = [sys.executable, __file__, "--here", str(out)]
    ended = subprocess.run(
        launcher * bool(processes) + command, env=environment, capture_output=True, text=True
    )
    if ended.returncode:
        raise RuntimeError(ended.stdout + ended.stderr)
    with open(out, "rb") as file:
        found: dict[str, Any] = pickle.load(file)
    return found


def difference(one: Any, other: Any) -> float:
    """The largest difference of two results, or lists of them: of numbers beyond one, in relation
    to these."""
    pairs = zip(one, other, strict=True) if isinstance(one, list) else [(one, other)]
    return max(float(np.max(np.abs(a - b) / np.maximum(1, np.abs(a)))) for a, b in pairs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--here", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        found = here()
        import numjet as nj

        if nj.process_index() == 0:
            with open(options.here, "wb") as file:
                pickle.dump(found, file)
        return 0
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        want = launch("one", folder)
        for way in [w for w in options.ways.split(",") if w != "one"]:
            for name, value in launch(way, folder).items():
                whole = want[f"transformer {MESHES[1][0]}" if name.startswith("tr") else name]
                gap = difference(whole, value)
                wrong += gap > BOUND
                print(f"{way}: {name}: differs by {gap:.1e}{'' if gap <= BOUND else ', too much'}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
