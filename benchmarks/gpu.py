"""Programs on an accelerator, beside JAX on the same one: `make gpu`.

    python benchmarks/gpu.py PLATFORM [--jax PYTHON] [--rows NAMES]

PLATFORM is one of numjet's (cuda, tpu, xla_cpu); PYTHON an interpreter with JAX and the plugin for
the same device. Each row is the least of several runs, results waited for; both sides run this
file, one process each, since numjet has JAX's names.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
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

    made: dict[str, Callable] = {}
    for dtype in ("bfloat16", "float32"):
        made[f"transformer step, {dtype}"] = lambda dtype=dtype: transformer(dtype)
        made[f"CNN step, {dtype}"] = lambda dtype=dtype: cnn(dtype)
        made[f"product, {dtype}"] = lambda dtype=dtype: (
            jax.jit(jnp.matmul), (array(n, n, dtype=dtype), array(n, n, dtype=dtype)))
    made["convolution"] = lambda: (
        jax.jit(lambda x, w: jax.lax.conv(x, w, (1, 1), "SAME")),
        (array(16, 64, n // 32, n // 32), array(64, 64, 3, 3)))
    made["softmax"] = lambda: (jax.jit(jax.nn.softmax), (array(n, n),))
    made["sort"] = lambda: (jax.jit(jnp.sort), (array(n, n),))
    made["scan of 1,000 steps"] = lambda: (jax.jit(loop), (array(1000),))
    made["eager chain of 20"] = lambda: (chain, (array(n, n),))
    made["small program"] = lambda: (jax.jit(lambda x: x + 1), (array(8),))
    return made


def measure(jax: Any, jnp: Any, chosen: list[str], small: bool) -> dict[str, float]:
    """Microseconds of each row: the least of runs for about a second."""
    found = {}
    for name, make in rows(jax, jnp, small).items():
        if chosen and not any(word in name for word in chosen):
            continue
        function, args = make()
        for _ in range(3):
            jax.block_until_ready(function(*args))
        best, until = float("inf"), time.perf_counter() + 1
        while time.perf_counter() < until:
            start = time.perf_counter()
            jax.block_until_ready(function(*args))
            best = min(best, time.perf_counter() - start)
        found[name] = best * 1e6
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("platform", choices=NAMES)
    parser.add_argument("--jax", default="", help="an interpreter that has JAX")
    parser.add_argument("--rows", default="")
    parser.add_argument("--of", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.of:
        chosen = [word for word in given.rows.split(",") if word]
        package = importlib.import_module(given.of)
        jnp = importlib.import_module(f"{given.of}.numpy")
        print(json.dumps(measure(package, jnp, chosen, given.platform == "xla_cpu")))
        return
    results = {}
    for of, python in (("numjet", sys.executable), ("jax", given.jax)):
        if python:
            place = {"numjet": f"NUMJET_PLATFORMS={given.platform}",
                     "jax": f"JAX_PLATFORMS={NAMES[given.platform]}"}[of]
            done = subprocess.run(
                ["env", place, python, str(Path(__file__).resolve()), given.platform, "--of", of,
                 "--rows", given.rows], capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{of}: {done.stderr.strip()[-2000:]}")
                continue
            results[of] = json.loads(done.stdout.splitlines()[-1])
    print("| row | numjet | JAX | ratio |\n|---|---|---|---|")
    for name, mine in results.get("numjet", {}).items():
        other = results.get("jax", {}).get(name)
        beside = "| | |" if other is None else f"| {other:.1f} us | {mine / other:.2f} |"
        print(f"| {name} | {mine:.1f} us {beside}")


if __name__ == "__main__":
    main()
