"""Compile our programs for TPUs and GPUs that are not here: `make xla-compile`.

    python tools/xla_compile.py [TARGET ...]     # v5e, v4, h100; by default those with a plugin

PJRT's compilers need no device: a topology says what the program is for. The operation suite
(tests/laws/samples.py, one program a primitive), a transformer's loss and its gradient, and
programs over four devices are compiled; what was refused is printed with the compiler's words.
Acceptance and memory are what this shows, neither values nor speed.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import numjet as nj
import numjet.numpy as jnp
from numjet.base.errors import XlaError
from numjet.core.primitive import REGISTRY
from numjet.xla import hlo, host_calls, layouts, pjrt, plugins
from numjet.xla.options import compile_options

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
H100 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98
  device_memory_size: 84978434048 shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 } registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 8 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""


@dataclass(frozen=True)
class Target:
    """What is compiled for: the platform, the topology's name, its options."""

    platform: str
    topology: str
    options: dict[str, str] = field(default_factory=dict)


TARGETS = {
    "v5e": Target("tpu", "v5e:2x2"),
    "v4": Target("tpu", "v4:2x2x1"),
    "h100": Target("cuda", "", {"target_config": H100, "topology": "1x1x4"}),
}


class Compiler:
    """A plugin's compiler for a target."""

    def __init__(self, target: Target) -> None:
        entry = plugins.known(target.platform)
        path = plugins.library(target.platform)
        if entry is None or path is None:
            raise SystemExit(f"{target.platform}: no plugin is installed.")
        for name, value in entry.environment.items():
            os.environ.setdefault(name, value)
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        self.plugin, self.platform = pjrt.Plugin(path), target.platform
        self.calls_python = host_calls.register(self)  # what compiles calls asks for a handler
        options, self._alive = pjrt.named_values(target.options)
        made = self.plugin.call(
            "TopologyDescription_Create", name=target.topology.encode(),
            name_size=len(target.topology), options=ctypes.addressof(options),
            num_options=len(target.options),
        )  # fmt: skip
        self._topology = made.topology

    def __call__(self, text: str, devices: int) -> dict[str, int]:
        """Compile a module; what it takes of a device's memory, where the compiler says so."""
        data = text.encode()
        program = pjrt.Program(
            struct_size=ctypes.sizeof(pjrt.Program), code=data, code_size=len(data),
            format=b"mlir", format_size=4,
        )  # fmt: skip
        options = compile_options(partitions=devices, shardy=devices > 1)
        made = self.plugin.call(
            "Compile", topology=self._topology, program=ctypes.addressof(program),
            options=options, options_size=len(options),
        )  # fmt: skip
        try:
            found = self.plugin.call("Executable_GetCompiledMemoryStats",
                                     executable=made.executable)
            return {"arguments": found.arguments, "temporaries": found.temporaries}
        except XlaError:
            return {}
        finally:
            self.plugin.call("Executable_Destroy", executable=made.executable)


class Place:
    """A device of the programs over several: it has an identity and a platform, hardly more."""

    process_index = 0
    device_kind = "compiled for"

    def __init__(self, number: int, platform: str) -> None:
        self.id, self.platform = number, platform

    @property
    def client(self) -> Place:
        """What says of which platform it is."""
        return self


def operations() -> Iterator[tuple[str, Callable, list]]:
    """One function a primitive: all its samples."""
    from laws.samples import SAMPLES

    groups: dict[str, list] = {}
    for sample in SAMPLES:
        groups.setdefault(sample.primitive, []).append(sample)
    for name, samples in groups.items():
        counts = np.cumsum([0, *[len(s.args) for s in samples]])

        def run(*args: Any, samples: list = samples, counts: Any = counts) -> list:
            ranges = zip(samples, counts[:-1], counts[1:], strict=True)
            return [s.fun(*args[a:b]) for s, a, b in ranges]

        yield name, run, [np.asarray(x) for s in samples for x in s.args]


def transformer(dtype: str = "bfloat16") -> tuple[Callable, list]:
    """The loss of a transformer of two layers on 8 sequences of 128 words, as a function of its
    parameters and the words."""
    width, heads, words, layers = 256, 4, 512, 2
    rng = np.random.default_rng(0)

    def weight(*shape: int) -> Any:
        return (rng.standard_normal(shape) * shape[0] ** -0.5).astype(np.float32)

    params = {
        "embed": weight(words, width),
        "layers": [
            {"qkv": weight(width, 3 * width), "out": weight(width, width),
             "up": weight(width, 4 * width), "down": weight(4 * width, width)}
            for _ in range(layers)
        ],
    }  # fmt: skip

    def norm(x: Any) -> Any:
        return x * nj.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)

    def loss(params: Any, tokens: Any) -> Any:
        cast = nj.tree.map(lambda w: w.astype(dtype), params)
        x = cast["embed"][tokens]
        for layer in cast["layers"]:
            qkv = (norm(x) @ layer["qkv"]).reshape(*x.shape[:2], 3, heads, width // heads)
            q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
            x = x + nj.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape) @ (
                layer["out"])
            x = x + nj.nn.gelu(norm(x) @ layer["up"]) @ layer["down"]
        logits = (norm(x) @ cast["embed"].T).astype(jnp.float32)
        picked = jnp.take_along_axis(nj.nn.log_softmax(logits)[:, :-1], tokens[:, 1:, None], 2)
        return -picked.mean()

    return loss, [params, np.zeros((8, 128), np.int32)]


def programs(platform: str) -> Iterator[tuple[str, str, int, Callable[[], str]]]:
    """(kind, name, devices, how its module is made)."""

    def text(fun: Callable, args: list) -> str:
        closed = hlo.stored(nj.make_jaxpr(fun)(*args))
        return hlo.module(closed, devices=(Place(0, platform),)).text

    for name, fun, args in operations():
        reason = None if REGISTRY[name].collective else hlo.unsupported(REGISTRY[name])
        if reason is None:
            yield "operations", name, 1, lambda f=fun, a=args: text(f, a)
    loss, args = transformer()
    for name, fun in (("transformer", loss), ("its gradient", nj.value_and_grad(loss))):
        yield "transformer", name, 1, lambda f=fun: text(f, args)
    devices = tuple(Place(k, platform) for k in range(4))
    table = np.empty(4, object)
    table[:] = devices
    mesh = nj.sharding.Mesh(table.reshape(2, 2), ("data", "model"))

    def sharded() -> str:
        closed = nj.make_jaxpr(nj.value_and_grad(loss))(*args)
        ins = [layouts.everywhere(len(a.shape), devices) for a in closed.in_avals]
        ins[-1] = layouts.layout_of(nj.NamedSharding(mesh, nj.P("data")), 2, devices)
        for i, aval in enumerate(closed.in_avals[:-1]):
            ins[i] = layouts.layout_of(nj.NamedSharding(mesh, nj.P(None, "model")), aval.ndim,
                                       devices)
        return hlo.module(closed, "main", (), devices, ins, [None] * len(closed.out_avals)).text

    def sums() -> str:
        part = nj.shard_map(lambda x: nj.lax.psum(x, "data"), mesh=mesh, in_specs=nj.P("data"),
                            out_specs=nj.P())
        closed = nj.make_jaxpr(part)(np.zeros((8, 4), np.float32))
        ins = [layouts.layout_of(nj.NamedSharding(mesh, nj.P("data")), 2, devices)]
        return hlo.module(closed, "main", (), devices, ins, [None]).text

    yield "four devices", "gradient over data and model", 4, sharded
    yield "four devices", "psum in shard_map", 4, sums


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", default=[])
    parser.add_argument("--only", default="", help="programs whose name holds this")
    given = parser.parse_args()
    names = given.targets or [
        name for name, t in TARGETS.items() if plugins.library(t.platform) is not None]
    if not names:
        print("No plugin that compiles ahead of time is installed: numjet[tpu], numjet[cuda13].")
    refused = 0
    for name in names:
        compiler = Compiler(TARGETS[name])
        counts: dict[str, list] = {}
        for kind, what, devices, text in programs(TARGETS[name].platform):
            if given.only not in what or what in hlo.HOST_CALLS and not compiler.calls_python:
                continue
            row = counts.setdefault(kind, [0, 0, 0.0, 0])
            row[0] += 1
            start = time.perf_counter()
            try:
                taken = compiler(text(), devices)
                row[1] += 1
                row[3] = max(row[3], sum(taken.values()))
            except (XlaError, NotImplementedError) as error:
                refused += 1
                print(f"{name}: {what}: {' '.join(str(error).split())[:300]}", flush=True)
            seconds = time.perf_counter() - start
            row[2] += seconds
            print(f"{name}: {what}: {seconds:.1f} s", file=sys.stderr, flush=True)
        for kind, (count, fine, seconds, size) in counts.items():
            memory = f"{size / 2**20:.0f} MiB" if size else ""
            print(f"| {name} | {kind} | {fine} of {count} | {seconds:.0f} s | {memory} |",
                  flush=True)
    return min(refused, 1)


if __name__ == "__main__":
    sys.exit(main())
