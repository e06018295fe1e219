"""Every public operation on large and on small arrays, beside JAX's: a table of ratios.

    python benchmarks/survey.py [--jit] [--sizes 3000000,1000] [--only NAMES] [--record FILE.jsonl]
                                [--output FILE.md] [--peer PYTHON] [--repeat N] [--rounds N]
                                [--warm SECONDS] [--processor] [--dtype DTYPE]

Finds the functions of numpy, numpy.fft, lax, nn, scipy.special and random that take one to three
arrays of one size as they are, by calling them on small ones; `extra` has calls of other kinds.
A process for each package (PYTHON has JAX, by default the tests' oracle: tests/oracle.py) times
each call in turn, in each round the least of N calls after the first (the table has the least of
all rounds, and the median of the rounds' ratios); if it takes longer than `PATIENCE` seconds its
process is ended, and another goes on. Each result is written to FILE.jsonl at once; what is there
already is not run again, so that an interrupted survey goes on there.
The table has the slowest beside JAX first, then what only one package did; its last lines are the
geometric means. With --jit calls are jitted; NUMJET_CPU=x86-64-v3 and
XLA_FLAGS=--xla_cpu_max_isa=AVX2 in the environment limit the two packages to AVX2. With --processor
both run on one processor and what is measured is the time that their processes had it, of several
calls in a row where they are short: so on a machine that others use too. With --warm each call is
repeated for so long before it is timed: small calls without --jit are compiled for once they have
taken 10 ms together, so that `--sizes 12 --warm 0.1 --processor` shows what a loop of them takes.
With --dtype all operands are small numbers of that dtype (JAX_ENABLE_X64=1 for those of 64 bits).
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import pathlib
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import peers

# Seconds after which a call is given up, and after which calls are not repeated.
PATIENCE = 15
BUDGET = 1.0
SPACES = ("numpy", "numpy.fft", "lax", "nn", "scipy.special", "random")
# Results of another order of size than the operands, effects, or no operation on arrays.
SKIP = set(
    "numpy.outer numpy.kron numpy.vander numpy.ix_ numpy.meshgrid numpy.diag numpy.diagflat "
    "numpy.tri numpy.eye numpy.identity numpy.save numpy.savez numpy.load numpy.convolve "
    "numpy.correlate numpy.polymul numpy.polydiv numpy.roots numpy.poly numpy.bartlett "
    "numpy.blackman numpy.hamming numpy.hanning numpy.kaiser numpy.indices numpy.fromfunction "
    "numpy.array_repr numpy.array_str numpy.printoptions numpy.set_printoptions numpy.cov "
    "numpy.corrcoef numpy.tril_indices numpy.triu_indices numpy.mask_indices lax.iota "
    "lax.broadcasted_iota numpy.arange numpy.linspace numpy.logspace numpy.geomspace numpy.ones "
    "numpy.zeros numpy.empty numpy.full numpy.ndim numpy.shape numpy.size numpy.tril_indices_from "
    "numpy.triu_indices_from numpy.diag_indices numpy.diag_indices_from numpy.array_split "
    "numpy.split numpy.hsplit numpy.histogramdd numpy.histogram2d lax.conv numpy.nonzero "
    "numpy.polyfit scipy.special.bernoulli".split()
)


def operands(package: Any, n: int, dtype: str = "") -> dict[str, Any]:
    """Arrays of n elements, the same for each package; of one dtype if that is given."""
    rng = np.random.default_rng(0)
    jnp = package.numpy
    made = {
        "x": rng.normal(size=n).astype(np.float32),
        "p": rng.uniform(0.1, 0.9, n).astype(np.float32),
        "q": rng.uniform(1.0, 3.0, n).astype(np.float32),
        "k": rng.integers(1, 50, n).astype(np.int32),
        "j": rng.integers(1, 9, n).astype(np.int32),
        "b": rng.integers(0, 2, n).astype(bool),
        "z": (rng.normal(size=n) + 1j * rng.normal(size=n)).astype(np.complex64),
    }
    if dtype[:1] in ("i", "u", "b") and dtype != "bfloat16":
        made |= {name: np.abs(np.round(3 * made[name])) for name in "xpq"}
    arrays = {name: jnp.array(value) for name, value in made.items()}
    if dtype:
        arrays = {name: value if name == "b" else jnp.real(value).astype(dtype)
                  for name, value in arrays.items()}
    arrays["key"] = package.random.key(0)
    arrays["shape"] = (n,)
    return arrays


# What a function is tried with, in this order.
WAYS = [
    ("x",), ("p",), ("k",), ("z",), ("b",), ("p", "q"), ("x", "q"), ("k", "j"), ("b", "x", "q"),
    ("p", "p", "q"), ("q", "p", "p"), ("k", "x"), ("j", "p"), ("key", "shape"),
    ("key", "q", "shape"), ("key", "q"), ("key", "p"), ("key", "q", "q"),
]  # fmt: skip


def functions(package: Any) -> dict[str, Callable]:
    """Public functions by their names."""
    found: dict[str, Callable] = {}
    for space in SPACES:
        module = importlib.import_module(f"{package.__name__}.{space}")
        for name in sorted(getattr(module, "__all__", None) or dir(module)):
            value = getattr(module, name, None)
            if callable(value) and not isinstance(value, type) and not name.startswith("_"):
                found[f"{space}.{name}"] = value
    return {name: f for name, f in found.items() if name not in SKIP}


def leaves(package: Any, out: Any) -> list[Any]:
    return [x for x in package.tree_util.tree_leaves(out) if hasattr(x, "block_until_ready")]


def find(package: Any, dtype: str) -> list[tuple[str, tuple[str, ...]]]:
    """Functions that give arrays for some operands, with these."""
    small = operands(package, 48, dtype)
    found = []
    for name, function in functions(package).items():
        for way in WAYS:
            try:
                outs = leaves(package, function(*[small[a] for a in way]))
            except Exception:  # whatever a function says to operands that are not for it
                continue
            if outs and max([x.size for x in outs]) <= 96:
                found.append((name, way))
                break
    return found


def extra(package: Any) -> dict[str, tuple[Callable, tuple[str, ...]]]:
    """Calls of other kinds than functions of arrays of one size, with what they are given."""
    jnp, lax, nn, linalg = package.numpy, package.lax, package.nn, package.numpy.linalg

    def rows(x: Any, width: int) -> Any:
        return x[: x.size // width * width].reshape(-1, width)

    def matrices(x: Any, k: int) -> Any:
        return x[: x.size // (k * k) * k * k].reshape(-1, k, k)

    def half(dtype: Any) -> Callable:
        def chain(x: Any) -> Any:
            y = x.astype(dtype)
            return jnp.tanh(y * y + y) * y

        return chain

    def pictures(x: Any, channels: int) -> Any:
        side = int((x.size // channels) ** 0.5)
        return x[: side * side * channels].reshape(1, side, side, channels)

    def convolved(x: Any) -> Any:
        kernel = jnp.ones((3, 3, 4, 4), x.dtype)
        return lax.conv_general_dilated(
            pictures(x, 4), kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    calls: dict[str, tuple[Callable, tuple[str, ...]]] = {
        "x + 1": (lambda x: x + 1, ("x",)),
        "x * x - x": (lambda x: x * x - x, ("x",)),
        "x ** 3": (lambda x: x**3, ("x",)),
        "k ** 3": (lambda k: k**3, ("k",)),
        "k ** j": (lambda k, j: k**j, ("k", "j")),
        "p ** 2.5": (lambda p: p**2.5, ("p",)),
        "k // j": (lambda k, j: k // j, ("k", "j")),
        "k % j": (lambda k, j: k % j, ("k", "j")),
        "k // 7": (lambda k: k // 7, ("k",)),
        "x // q": (lambda x, q: x // q, ("x", "q")),
        "x % q": (lambda x, q: x % q, ("x", "q")),
        "k >> 1": (lambda k: k >> 1, ("k",)),
        "k int8 + k int8": (lambda k: k.astype("int8") + k.astype("int8"), ("k",)),
        "x[::-1]": (lambda x: x[::-1], ("x",)),
        "x[k]": (lambda x, k: x[k], ("x", "k")),
        "x[7:-7:2]": (lambda x: x[7:-7:2], ("x",)),
        "x.at[k].add(x)": (lambda x, k: x.at[k].add(x), ("x", "k")),
        "x.at[5:].set(1)": (lambda x: x.at[5:].set(1), ("x",)),
        "rows.T": (lambda x: jnp.array(rows(x, 40).T), ("x",)),
        "half float16": (half("float16"), ("x",)),
        "half bfloat16": (half("bfloat16"), ("x",)),
        "concatenate columns": (lambda x: jnp.concatenate([rows(x, 4)] * 3, axis=1), ("x",)),
        "stack": (lambda x, q: jnp.stack([x, q], axis=-1), ("x", "q")),
        "top_k 8 of rows": (lambda x: lax.top_k(rows(x, 100), 8), ("x",)),
        "top_k 100": (lambda x: lax.top_k(x, min(100, x.size)), ("x",)),
        "median of rows": (lambda x: jnp.median(rows(x, 50), axis=1), ("x",)),
        "percentile of columns": (
            lambda x: jnp.percentile(rows(x, 50), jnp.array([10.0, 90.0]), axis=0), ("x",)),
        "convolution 3x3": (convolved, ("x",)),
        "convolve 31": (lambda x: jnp.convolve(x, jnp.ones(31, x.dtype)), ("x",)),
        "resize": (
            lambda x: package.image.resize(
                pictures(x, 3), (1, *[n // 2 for n in pictures(x, 3).shape[1:3]], 3), "bilinear"),
            ("x",)),
        "max pool": (
            lambda x: lax.reduce_window(
                pictures(x, 4), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), ("x",)),
    }
    for dtype in "int8 int16 float16 bfloat16 bool uint8 uint32 complex64".split():
        def cast(x: Any, dtype: str = dtype) -> Any:
            return x.astype(dtype)

        calls[f"x.astype({dtype})"] = cast, ("x",)
        calls[f"k.astype({dtype})"] = cast, ("k",)
    for name in "sum mean var std max argmax prod cumsum sort argsort any".split():
        for axis in (0, 1):
            def along(x: Any, f: Callable = getattr(jnp, name), axis: int = axis) -> Any:
                return f(rows(x, 100), axis=axis)

            calls[f"{name} axis {axis}"] = along, ("x",)
    for name in "softmax log_softmax logsumexp standardize".split():
        for axis in (0, 1):
            def normal(x: Any, f: Callable = getattr(nn, name), axis: int = axis) -> Any:
                return f(rows(x, 100), axis=axis)

            calls[f"{name} axis {axis}"] = normal, ("x",)
    for name in "det inv slogdet eigvalsh cholesky eigvals svd qr".split():
        for k in (2, 4):
            def batch(x: Any, f: Callable = getattr(linalg, name), k: int = k) -> Any:
                a = matrices(x, k)
                return f(a @ a.mT + jnp.eye(k) if f is linalg.cholesky else a)

            calls[f"{name} {k}x{k}"] = batch, ("x",)
    calls["solve 3x3"] = lambda x: linalg.solve(matrices(x, 3), matrices(x, 3)[..., :1]), ("x",)
    calls["matmul 4x4"] = lambda x: matrices(x, 4) @ matrices(x, 4), ("x",)
    for length in (8, 64, 60, 1024):
        def spectrum(x: Any, length: int = length) -> Any:
            return jnp.fft.fft(rows(x, length))

        def real(x: Any, length: int = length) -> Any:
            return jnp.fft.rfft(rows(x, length))

        calls[f"fft {length}"] = spectrum, ("z",)
        calls[f"rfft {length}"] = real, ("x",)
    calls["gradient of sum tanh"] = package.grad(lambda x: jnp.tanh(x * x).sum()), ("x",)
    norms = package.vmap(lambda row: jnp.sqrt((row * row).sum()))
    calls["vmap of norm"] = lambda x: norms(rows(x, 30)), ("x",)
    return calls


def jitted(package: Any, function: Callable, args: list) -> tuple[Callable, list]:
    """The function under jit, and its arguments, of which tuples are constants."""
    constant = {i: a for i, a in enumerate(args) if isinstance(a, tuple)}

    def call(*arrays: Any) -> Any:
        rest = iter(arrays)
        return function(*[constant[i] if i in constant else next(rest) for i in range(len(args))])

    return package.jit(call), [a for i, a in enumerate(args) if i not in constant]


def least(
    package: Any, function: Callable, args: list, repeat: int, processor: bool, warm: float = 0.0
) -> float:
    """The least time of a call after the first, and after those of `warm` seconds."""
    clock = time.process_time if processor else time.perf_counter
    end = time.perf_counter() + warm
    while time.perf_counter() < end:
        package.block_until_ready(function(*args))
    best, end, calls = math.inf, time.perf_counter() + BUDGET, 1
    for k in range(repeat + 1):
        start = clock()
        for _ in range(calls):
            for x in leaves(package, function(*args)):
                x.block_until_ready()
        spent = (clock() - start) / calls
        if k:
            best = min(best, spent)
            if processor:
                calls = max(1, int(2e-3 / max(best, 1e-6)))
            if time.perf_counter() > end:
                break
    return best


def worker(name: str) -> None:
    """Answer the questions that come, a line each."""
    package = importlib.import_module(name)
    for space in (*SPACES, "image"):
        importlib.import_module(f"{name}.{space}")
    known = {f: (call, None) for f, call in functions(package).items()} | extra(package)
    answers, sys.stdout = sys.stdout, sys.stderr
    given: dict[tuple[int, str], dict[str, Any]] = {}
    last: tuple[Any, Callable, list] = (None, len, [])  # as it is asked again in the next round
    for line in sys.stdin:
        task = json.loads(line)
        try:
            if task["what"] == "find":
                ways = find(package, task["dtype"])
                answer = [*ways, *[(call, ws) for call, (_, ws) in extra(package).items()]]
            else:
                kind = task["n"], task["dtype"]
                if kind not in given:
                    given[kind] = operands(package, *kind)
                if last[0] != task:
                    args = [given[kind][a] for a in task["way"]]
                    function = known[task["call"]][0]
                    if task["jit"]:
                        function, args = jitted(package, function, args)
                    last = task, function, args
                answer = least(
                    package, *last[1:], task["repeat"], task["processor"], task["warm"])
        except Exception as error:  # nothing that this package does: said in the record
            answer = f"{type(error).__name__}: {error}"[:200]
        print(json.dumps(answer), file=answers, flush=True)


class Worker:
    """The process of a package."""

    def __init__(self, python: str, package: str, processor: bool, script: str = __file__) -> None:
        self.command = [python, "-W", "ignore", script, "--worker", package]
        if processor:
            one = sorted(os.sched_getaffinity(0))
            self.command[:0] = ["taskset", "-c", str(one[os.getpid() % len(one)])]
        self.process: subprocess.Popen | None = None

    def ask(self, task: dict[str, Any], patience: float) -> Any:
        """Its answer, or a sentence about why there is none."""
        if self.process is None:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                stderr=subprocess.DEVNULL, env=os.environ | {"JAX_PLATFORMS": "cpu"},
            )  # fmt: skip
            patience += PATIENCE
        ins, outs = self.process.stdin, self.process.stdout
        assert ins is not None and outs is not None
        try:
            print(json.dumps(task), file=ins, flush=True)
            ready = select.select([outs], [], [], patience)[0]
            line = outs.readline() if ready else ""
        except BrokenPipeError:
            line, ready = "", [outs]
        if line:
            return json.loads(line)
        self.stop()
        return "the process died" if ready else f"took longer than {patience:.0f} s"

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


def least_of(times: list[Any]) -> Any:
    """The least of some times, or what was said instead of the last."""
    return min(times) if type(times[-1]) is float else times[-1]


Record = dict[tuple[int, str], dict[str, Any]]


def read(file: pathlib.Path | None) -> Record:
    """By size and call, what each package said last."""
    found: Record = {}
    if file is not None and file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            found[entry["n"], entry["call"]] = entry["answers"]
    return found


def survey(given: argparse.Namespace, file: pathlib.Path | None) -> Record:
    """Ask both packages for what is not in the record yet."""
    record = read(file)
    workers = {"numjet": Worker(sys.executable, "numjet", given.processor),
               "jax": Worker(given.peer, "jax", given.processor)}
    try:
        calls = workers["numjet"].ask({"what": "find", "dtype": given.dtype}, 20 * PATIENCE)
        wanted = set(filter(None, given.only.split(",")))
        calls = [c for c in calls if not wanted or c[0] in wanted or c[0].split(".")[0] in wanted]
        for n in map(int, given.sizes.split(",")):
            for call, way in calls:
                if (n, call) in record:
                    continue
                task = {"what": "time", "call": call, "way": way, "n": n,
                        "repeat": given.repeat, "jit": given.jit, "dtype": given.dtype,
                        "processor": given.processor, "warm": given.warm}  # fmt: skip
                told: dict[str, list[Any]] = {package: [] for package in workers}
                for _ in range(given.rounds):
                    for package, process in workers.items():
                        if all([type(t) is float for t in told[package]]):
                            told[package].append(process.ask(task, PATIENCE))
                answers = {package: least_of(times) for package, times in told.items()}
                if all([type(a) is float for a in answers.values()]):
                    turns = [ours / theirs for ours, theirs in zip(*told.values(), strict=True)]
                    answers["turns"] = statistics.median(turns)
                record[n, call] = answers
                if file is not None:
                    with file.open("a", encoding="utf-8") as out:
                        print(json.dumps({"n": n, "call": call, "answers": answers}), file=out)
    finally:
        for process in workers.values():
            process.stop()
    return record


def table(record: Record, n: int) -> list[str]:
    """The lines of a table, and how the ratios lie."""
    times = {call: answers for (size, call), answers in record.items() if size == n}
    both = {c: (a["numjet"], a["jax"]) for c, a in times.items()
            if type(a["numjet"]) is float and type(a["jax"]) is float}  # fmt: skip
    ratios = sorted([(ours / theirs, call) for call, (ours, theirs) in both.items()], reverse=True)
    lines = ["| call | numjet, us | jax, us | ratio | median of turns |", "|---|---|---|---|---|"]
    for r, call in ratios:
        ours, theirs = both[call]
        turns = times[call].get("turns", r)
        lines.append(f"| {call} | {1e6 * ours:.1f} | {1e6 * theirs:.1f} | {r:.2f} | {turns:.2f} |")
    for call, answers in times.items():
        if call not in both:
            said = [f"{a:.4f} s" if type(a) is float else str(a) for a in answers.values()]
            lines.append(f"| {call} | {' | '.join(said)} | | |")
    if ratios:
        mean = math.exp(sum([math.log(r) for r, _ in ratios]) / len(ratios))
        above = [sum([r > bound for r, _ in ratios]) for bound in (1.1, 2)]
        lines += ["", f"{len(ratios)} calls; geometric mean {mean:.3f}; {above[0]} above 1.1, "
                  f"{above[1]} above 2."]  # fmt: skip
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jit", action="store_true")
    parser.add_argument("--sizes", default="3000000,1000")
    parser.add_argument("--only", default="")
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--peer", default=peers.python_of("jax") or sys.executable)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--processor", action="store_true")
    parser.add_argument("--warm", type=float, default=0.0)
    parser.add_argument("--dtype", default="")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        worker(given.worker)
        return
    record = survey(given, given.record)
    lines: list[str] = []
    for n in map(int, given.sizes.split(",")):
        lines += [f"## {n} elements", "", *table(record, n), ""]
    print("\n".join(lines))
    if given.output:
        given.output.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
