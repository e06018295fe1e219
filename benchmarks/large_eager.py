"""Programs on large arrays without `jit`, beside numjet's own `jit`, JAX and PyTorch.

    python benchmarks/large_eager.py [--peer PYTHON] [--torch PYTHON] [--only NAMES] [--rounds N]
                                     [--processor]

A process for each package runs every program in turn, eagerly and under `jit`; in each round the
least of several calls counts, and of all rounds the least. The rows with `sizes` call a function on
1,000 arrays of ever new sizes, once. `memory` is how far three steps of the transformer raise the
resident size, on numjet with `eager_fusion` on and off. PYTHON has JAX, by default the tests'
oracle; PyTorch is left out where none is named. With --processor all run on one processor, and
the time is what they had of it. NAMES are separated by semicolons.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import memory
import models
import numpy as np
import peers
from rows import training

N = 10**6
SIZES = range(100_000, 101_000)
CALLS = 5  # of which the least counts, in a round


def chain(s: Any) -> Callable:
    return lambda x: s.np.tanh(s.np.exp(-x * x) + s.np.sin(x)) * 2


def softmax(s: Any) -> Callable:
    def run(x: Any) -> Any:
        shifted = s.np.exp(x - x.max(-1, keepdims=True))
        return shifted / shifted.sum(-1, keepdims=True)

    return run


def layer_norm(s: Any) -> Callable:
    def run(x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred / s.np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)

    return run


def layer_norm_var(s: Any) -> Callable:
    return lambda x: (x - x.mean(-1, keepdims=True)) / s.np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def pairwise(s: Any) -> Callable:
    return lambda x, y: s.np.sqrt(((x[:, None, :] - y[None, :, :]) ** 2).sum(-1))


def pairwise_product(s: Any) -> Callable:
    def run(x: Any, y: Any) -> Any:
        squares = (x * x).sum(1)[:, None] + (y * y).sum(1)[None, :] - 2 * x @ y.T
        return s.np.sqrt(s.np.maximum(squares, 0))

    return run


def black_scholes(s: Any) -> Callable:
    def normal(x: Any) -> Any:
        return 0.5 * (1 + s.lax.erf(x / math.sqrt(2)))

    def run(spot: Any, strike: Any, years: Any) -> Any:
        spread = 0.3 * s.np.sqrt(years)
        high = (s.np.log(spot / strike) + (0.02 + 0.045) * years) / spread
        discounted = strike * s.np.exp(-0.02 * years)
        return spot * normal(high) - discounted * normal(high - spread)

    return run


def adam(s: Any, loss: Callable) -> Callable:
    """A step of Adam by `tree.map`: (parameters, two moments, data...) to new ones and the loss."""

    def run(parameters: Any, first: Any, second: Any, *data: Any) -> tuple:
        value, gradient = s.value_and_grad(loss)(parameters, *data)
        first = s.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
        second = s.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)
        parameters = s.map(
            lambda p, m, v: p - 1e-3 * m / (s.np.sqrt(v) + 1e-8), parameters, first, second
        )
        return parameters, first, second, value

    return run


def trained(inputs: Callable) -> Callable:
    def make(rng: np.random.Generator) -> tuple:
        parameters, *data = inputs(rng)
        zeros = peers.convert(parameters, np.zeros_like)
        return parameters, zeros, zeros, *data

    return make


def uniform(*shapes: tuple) -> Callable:
    return lambda rng: tuple([rng.uniform(0.5, 1.5, shape).astype(np.float32) for shape in shapes])


ROWS: dict[str, tuple[Callable, Callable]] = {
    "chain": (chain, uniform((N,))),
    "softmax": (softmax, uniform((1000, 1000))),
    "layer norm": (layer_norm, uniform((1000, 1000))),
    "layer norm, var": (layer_norm_var, uniform((1000, 1000))),
    "pairwise": (pairwise, uniform((1000, 16), (1000, 16))),
    "pairwise, product": (pairwise_product, uniform((1000, 16), (1000, 16))),
    "Black-Scholes": (black_scholes, uniform((N,), (N,), (N,))),
    "MLP, Adam": (lambda s: adam(s, models.mlp_loss(s)), trained(models.mlp_inputs)),
    "transformer, Adam": (
        lambda s: adam(s, models.transformer_loss(s)), trained(models.transformer_inputs)),
}
WITH_SIZES = {"chain, 1,000 sizes": chain, "softmax, 1,000 sizes": softmax}


def torch_programs(torch: Any) -> dict[str, Callable]:
    """The same in PyTorch's words."""

    def softmax(x: Any) -> Any:
        shifted = torch.exp(x - x.amax(-1, keepdim=True))
        return shifted / shifted.sum(-1, keepdim=True)

    def layer_norm(x: Any) -> Any:
        centred = x - x.mean(-1, keepdim=True)
        return centred / torch.sqrt((centred * centred).mean(-1, keepdim=True) + 1e-5)

    def layer_norm_var(x: Any) -> Any:
        spread = torch.sqrt(x.var(-1, keepdim=True, correction=0) + 1e-5)
        return (x - x.mean(-1, keepdim=True)) / spread

    def pairwise_product(x: Any, y: Any) -> Any:
        squares = (x * x).sum(1)[:, None] + (y * y).sum(1)[None, :] - 2 * x @ y.T
        return torch.sqrt(squares.clamp(min=0))

    def normal(x: Any) -> Any:
        return 0.5 * (1 + torch.erf(x / math.sqrt(2)))

    def black_scholes(spot: Any, strike: Any, years: Any) -> Any:
        spread = 0.3 * torch.sqrt(years)
        high = (torch.log(spot / strike) + (0.02 + 0.045) * years) / spread
        discounted = strike * torch.exp(-0.02 * years)
        return spot * normal(high) - discounted * normal(high - spread)

    def trained(loss: Callable) -> Callable:
        pytree = torch.utils._pytree

        def run(parameters: Any, first: Any, second: Any, *data: Any) -> tuple:
            flat, spec = pytree.tree_flatten(parameters)
            flat = [leaf.detach().requires_grad_() for leaf in flat]
            value = loss(pytree.tree_unflatten(flat, spec), *data)
            gradient = pytree.tree_unflatten(torch.autograd.grad(value, flat), spec)
            with torch.no_grad():
                first = pytree.tree_map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
                second = pytree.tree_map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)
                parameters = pytree.tree_map(
                    lambda p, m, v: p - 1e-3 * m / (torch.sqrt(v) + 1e-8),
                    parameters, first, second,
                )  # fmt: skip
            return parameters, first, second, value.detach()

        return run

    return {
        "chain": lambda x: torch.tanh(torch.exp(-x * x) + torch.sin(x)) * 2,
        "softmax": softmax, "layer norm": layer_norm, "layer norm, var": layer_norm_var,
        "pairwise": lambda x, y: torch.sqrt(((x[:, None, :] - y[None, :, :]) ** 2).sum(-1)),
        "pairwise, product": pairwise_product, "Black-Scholes": black_scholes,
        "MLP, Adam": trained(training.torch_mlp_loss(torch)),
        "transformer, Adam": trained(training.torch_transformer_loss(torch)),
    }  # fmt: skip


class Worker:
    """Answers the driver's questions: seconds, or bytes."""

    def __init__(self, package: str, processor: bool) -> None:
        self.torch = importlib.import_module(package) if package == "torch" else None
        self.space = None if self.torch else peers.space(package)
        self.clock = time.process_time if processor else time.perf_counter
        self.ready: dict[tuple[str, str], tuple[Callable, tuple]] = {}

    def seconds(self, name: str, way: str) -> float:
        """The least of some calls of a row, compiled or not."""
        if (name, way) not in self.ready:
            build, inputs = ROWS[name]
            if self.torch:
                function, convert = torch_programs(self.torch)[name], self.torch.from_numpy
            else:
                function, convert = build(self.space), self.space.np.array
            arguments = peers.convert(inputs(np.random.default_rng(0)), convert)
            self.ready[name, way] = (
                self.space.jit(function) if way == "jit" else function, arguments)
            for _ in range(8):
                self.call(name, way)
        return min([self.call(name, way) for _ in range(CALLS)])

    def call(self, name: str, way: str) -> float:
        function, arguments = self.ready[name, way]
        start = self.clock()
        out = function(*arguments)
        if self.space:
            self.space.block(out)
        return self.clock() - start

    def sizes(self, name: str, count: int) -> float:
        """The first call on each of so many sizes."""
        function = WITH_SIZES[name](self.space)
        wide = self.space.np.asarray(np.random.default_rng(0).random(2 * SIZES[-1], np.float32))
        start = self.clock()
        for n in SIZES[:count]:
            rows = n - SIZES[0] + 700
            x = wide[:n] if "chain" in name else wide[: 100 * rows].reshape(rows, 100)
            self.space.block(function(x))
        return (self.clock() - start) / count

    def memory(self, fused: bool) -> int:
        """Bytes by which three steps of the transformer raise the resident size, after two."""
        if hasattr(self.space.top.config, "eager_fusion"):
            self.space.top.config.update("eager_fusion", fused)
        build, inputs = ROWS["transformer, Adam"]
        function = build(self.space)
        state = peers.convert(inputs(np.random.default_rng(0)), self.space.np.array)

        def run(count: int) -> None:
            now = state
            for _ in range(count):
                *now, value = function(*now[:3], *state[3:])
                self.space.block(value)
            self.space.block(now)

        return memory.rise(lambda: run(5))


def worker(package: str, processor: bool) -> None:
    answers, sys.stdout = sys.stdout, sys.stderr
    asked = Worker(package, processor)
    for line in sys.stdin:
        what, *given = json.loads(line)
        print(json.dumps(getattr(asked, what)(*given)), file=answers, flush=True)


class Peer:
    """A package's process."""

    def __init__(self, python: str, package: str, processor: bool) -> None:
        command = [python, "-W", "ignore", __file__, "--worker", package]
        if processor:
            command[:0] = ["taskset", "-c", str(max(os.sched_getaffinity(0)))]
            command.append("--processor")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"JAX_PLATFORMS": "cpu"},
        )  # fmt: skip

    def ask(self, *question: Any) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(question), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", default=peers.python_of("jax") or sys.executable)
    parser.add_argument("--torch", default=peers.python_of("torch"))
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--processor", action="store_true")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        worker(given.worker, given.processor)
        return
    wanted = [w.strip() for w in given.only.split(";") if w]

    def start(package: str) -> Peer:
        python = {"numjet": sys.executable, "jax": given.peer, "torch": given.torch}[package]
        return Peer(python, package, given.processor)

    ours, theirs = start("numjet"), start("jax")
    torch = start("torch") if given.torch else None
    print("| program | eager, ms | jit | JAX | PyTorch | to jit | to JAX | to PyTorch |")
    print("|---|---|---|---|---|---|---|---|")
    asked = [(ours, "eager"), (ours, "jit"), (theirs, "eager")]
    if torch:
        asked.append((torch, "eager"))
    for name in [n for n in ROWS if not wanted or n in wanted]:
        best = [math.inf] * len(asked)
        for _ in range(given.rounds):
            best = [min(b, peer.ask("seconds", name, way))
                    for b, (peer, way) in zip(best, asked, strict=True)]  # fmt: skip
        times = [f"{1e3 * b:.2f}" for b in best] + ["-"] * (4 - len(best))
        ratios = [f"{best[0] / b:.2f}" for b in best[1:]]
        print("|", " | ".join([name, *times, *ratios]), "|", flush=True)
    if torch:
        torch.stop()
    for name in [n for n in WITH_SIZES if not wanted or n in wanted]:
        mine, jax = ours.ask("sizes", name, len(SIZES)), theirs.ask("sizes", name, 50)
        print(f"| {name}, a call | {1e3 * mine:.3f} | | {1e3 * jax:.2f} | | | {mine / jax:.3f} | |")
    for peer in (ours, theirs):
        peer.stop()
    if not wanted or "memory" in wanted:
        figures = {}
        for label, package, fused in (
            ("eager_fusion", "numjet", True), ("without", "numjet", False), ("JAX", "jax", True),
        ):  # fmt: skip
            peer = start(package)
            figures[label] = peer.ask("memory", fused) / 2**20
            peer.stop()
        print("memory, MiB:", ", ".join([f"{k} {v:.0f}" for k, v in figures.items()]))


if __name__ == "__main__":
    main()
