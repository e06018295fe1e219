"""Programs on an accelerator, beside JAX on the same one: `make gpu`.

    python benchmarks/gpu.py PLATFORM [--jax PYTHON] [--rows NAMES] [--rounds 5] [--out FILE]

PLATFORM is one of numjet's (cuda, tpu, xla_cpu); PYTHON an interpreter with JAX and the plugin for
the same device. Both sides run this file, since numjet has JAX's names, a process each that lives
until the end. Row by row, each compiles its program, and then they take turns: a round is the least
time of calls for a fifth of a second, results waited for. A row is the median of the rounds and its
ratio that of the rounds' ratios; the results of both sides are compared. FILE gets all as JSON.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

NAMES = {"cuda": "cuda", "tpu": "tpu", "xla_cpu": "cpu"}  # platforms, as JAX calls them


def rows(jax: Any, jnp: Any, small: bool) -> dict[str, Callable[[], tuple[Callable, tuple]]]:
    """By name: what makes a function and its arguments. small: sizes for a CPU."""
    rng = np.random.default_rng(0)

    def array(*shape: int, dtype: str = "float32") -> Any:
        return jnp.asarray(rng.standard_normal(shape).astype(np.float32)).astype(dtype)

    def transformer(dtype: str) -> tuple:
        width, words, batch, length = (128, 256, 2, 64) if small else (1024, 8192, 8, 1024)
        params = [array(words, width) * 0.02] + [
            array(a, b) * a**-0.5 for _ in range(4)
            for a, b in ((width, 3 * width), (width, width), (width, 4 * width),
                         (4 * width, width))]
        tokens = jnp.asarray(rng.integers(0, words, (batch, length)))

        def norm(x: Any) -> Any:
            return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)

        def loss(params: list, tokens: Any) -> Any:
            embed, *layers = [w.astype(dtype) for w in params]
            x = embed[tokens]
            for k in range(0, len(layers), 4):
                qkv = (norm(x) @ layers[k]).reshape(batch, length, 3, -1, 64)
                x = x + jax.nn.dot_product_attention(
                    qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], is_causal=True
                ).reshape(x.shape) @ layers[k + 1]
                x = x + jax.nn.gelu(norm(x) @ layers[k + 2]) @ layers[k + 3]
            scores = jax.nn.log_softmax((norm(x) @ embed.T).astype(jnp.float32))
            return -jnp.take_along_axis(scores[:, :-1], tokens[:, 1:, None], 2).mean()

        def step(params: list, tokens: Any) -> list:
            return [w - 0.1 * g for w, g in zip(params, jax.grad(loss)(params, tokens))]

        return jax.jit(step), (params, tokens)

    def cnn(dtype: str) -> tuple:
        batch, size, width = (8, 16, 16) if small else (256, 32, 128)
        params = [array(3, 3, 3, width) * 0.1, array(3, 3, width, width) * 0.02,
                  array(width, 10) * 0.1]
        images, labels = array(batch, size, size, 3), jnp.asarray(rng.integers(0, 10, batch))

        def loss(params: list, images: Any, labels: Any) -> Any:
            a, b, c = [w.astype(dtype) for w in params]
            x = images.astype(dtype)
            for w in (a, b):
                x = jax.nn.relu(jax.lax.conv_general_dilated(
                    x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
            scores = jax.nn.log_softmax((x.mean((1, 2)) @ c).astype(jnp.float32))
            return -jnp.take_along_axis(scores, labels[:, None], 1).mean()

        def step(params: list, images: Any, labels: Any) -> list:
            return [w - 0.1 * g for w, g in zip(params, jax.grad(loss)(params, images, labels))]

        return jax.jit(step), (params, images, labels)

    n = 256 if small else 4096

    def chain(x: Any) -> Any:
        for _ in range(10):
            x = jnp.tanh(x) * 1.5
        return x

    def loop(x: Any) -> Any:
        return jax.lax.scan(lambda c, _: (jnp.sin(c) + 1, None), x, None, length=1000)[0]

    made: dict[str, Callable] = {}  # what takes long to compile comes last
    made["small program"] = lambda: (jax.jit(lambda x: x + 1), (array(8),))
    made["eager chain of 20"] = lambda: (chain, (array(n, n),))
    made["scan of 1,000 steps"] = lambda: (jax.jit(loop), (array(1000),))
    made["softmax"] = lambda: (jax.jit(jax.nn.softmax), (array(n, n),))
    made["sort"] = lambda: (jax.jit(jnp.sort), (array(n, n),))
    made["convolution"] = lambda: (
        jax.jit(lambda x, w: jax.lax.conv(x, w, (1, 1), "SAME")),
        (array(16, 64, n // 32, n // 32), array(64, 64, 3, 3)))
    dtypes = "bfloat16", "float32"
    for dtype in dtypes:
        made[f"product, {dtype}"] = lambda dtype=dtype: (
            jax.jit(jnp.matmul), (array(n, n, dtype=dtype), array(n, n, dtype=dtype)))
    for name, step in (("CNN", cnn), ("transformer", transformer)):
        for dtype in dtypes:
            made[f"{name} step, {dtype}"] = lambda step=step, dtype=dtype: step(dtype)
    return made


class Side:
    """One of the two that are compared: a process that makes and times rows when it is told to."""

    def __init__(self, of: str, python: str, platform: str) -> None:
        self.of = of
        place = {"NUMJET_PLATFORMS": platform, "JAX_PLATFORMS": NAMES[platform],
                 "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        self._process = subprocess.Popen(
            [python, str(Path(__file__).resolve()), platform, "--of", of],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **place})

    def __call__(self, what: str, row: str) -> Any:
        """What the process answers. Raises RuntimeError with its words where it fails."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps([what, row]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process has ended.")
        answer = json.loads(line)
        if isinstance(answer, str):
            raise RuntimeError(answer)
        return answer

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def serve(of: str, small: bool) -> None:
    """Make and time rows as standard input tells, until it ends."""
    jax, jnp = importlib.import_module(of), importlib.import_module(f"{of}.numpy")
    made, function, args = rows(jax, jnp, small), None, ()

    def call() -> float:
        start = time.perf_counter()
        jax.block_until_ready(function(*args))
        return time.perf_counter() - start

    def answer(what: str, row: str) -> Any:
        nonlocal function, args
        if what == "rows":
            return list(made)
        if what == "make":  # the seconds of the first call, and the mean size of what came out
            function, args = made[row]()
            seconds = call()
            leaves = jax.tree.leaves(function(*args))
            sizes = [float(jnp.abs(x.astype(jnp.float32)).mean()) for x in leaves]
            for _ in range(3):
                call()
            return [seconds, sizes]
        until, times = time.perf_counter() + 0.2, []
        while len(times) < 3 or time.perf_counter() < until:
            times.append(call())
        return min(times) * 1e6

    for line in sys.stdin:
        try:
            reply = answer(*json.loads(line))
        except Exception as error:
            reply = f"{type(error).__name__}: {error}"[:2000]
        print(json.dumps(reply), flush=True)


def compared(sides: list[Side], chosen: list[str], rounds: int) -> Iterator[dict[str, Any]]:
    """Row by row what both sides take, in microseconds."""
    for row in sides[0]("rows", ""):
        if chosen and not any([word in row for word in chosen]):
            continue
        found: dict[str, Any] = {"row": row}
        sizes = {}
        for side in sides:
            try:
                found[f"{side.of} first"], sizes[side.of] = side("make", row)
            except RuntimeError as error:
                found[f"{side.of} failed"] = str(error)
        times: dict[str, list[float]] = {of: [] for of in sizes}
        for _ in range(rounds):
            for side in sides:
                if side.of in times:
                    times[side.of].append(side("time", row))
        found |= times
        if len(times) == 2:
            mine, other = times.values()
            found["ratio"] = statistics.median([a / b for a, b in zip(mine, other)])
            found["apart"] = max([abs(a - b) / (abs(b) + 1e-30)
                                  for a, b in zip(*sizes.values())])
        yield found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("platform", choices=NAMES)
    parser.add_argument("--jax", default="", help="an interpreter that has JAX")
    parser.add_argument("--rows", default="", help="parts of names, by commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", default="")
    parser.add_argument("--of", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.of:
        return serve(given.of, given.platform == "xla_cpu")
    sides = [Side("numjet", sys.executable, given.platform)]
    if given.jax:
        sides.append(Side("jax", given.jax, given.platform))
    chosen = [word for word in given.rows.split(",") if word]
    print("| row | numjet | JAX | ratio | first call, seconds | results differ by |")
    print("|---|---|---|---|---|---|", flush=True)
    found = []
    for row in compared(sides, chosen, given.rounds):
        found.append(row)
        cells = [row["row"]]
        for side in sides:
            cells.append(f"{statistics.median(row[side.of]):,.1f} us" if side.of in row
                         else row.get(f"{side.of} failed", ""))
        cells += [f"{row['ratio']:.3f}"] if "ratio" in row else [""] * (3 - len(sides))
        cells.append(" / ".join([f"{row.get(f'{s.of} first', 0):.1f}" for s in sides]))
        cells.append(f"{row['apart']:.1e}" if "apart" in row else "")
        print(f"| {' | '.join(cells)} |", flush=True)
        if given.out:
            Path(given.out).write_text(json.dumps(found, indent=1))
    for side in sides:
        side.close()


if __name__ == "__main__":
    main()
