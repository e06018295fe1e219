"""Hostile calls of every public name: wrong types, arity, dtypes, sizes; objects that lie.

    python tools/hostile.py SEED COUNT [--jobs N]
    python tools/hostile.py --one SEED          the call of a seed, with its traceback

Each call ends in a result or in an exception that the documentation names: TypeError, ValueError,
IndexError, OverflowError, NotImplementedError, MemoryError, or one of numjet.errors but
InternalError; RuntimeError of a deleted array alone. What a lying object raises is its own. A crash
ends a process that had announced the call; memory and time of a call are bounded.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import enum
import importlib
import inspect
import io
import os
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
MODULES = """ numpy numpy.linalg numpy.fft lax lax.linalg nn nn.initializers random scipy.special
scipy.linalg scipy.signal scipy.optimize scipy.fft scipy.ndimage scipy.interpolate scipy.integrate
scipy.sparse.linalg scipy.cluster.vq scipy.spatial.transform scipy.stats scipy.stats.norm
scipy.stats.beta scipy.stats.gamma scipy.stats.poisson scipy.stats.t tree_util tree image dlpack
dtypes flatten_util custom_batching custom_derivatives ad_checkpoint ops sharding
example_libraries.optimizers example_libraries.stax""".split(" ")
MODULES = [name for part in MODULES for name in part.split("\n")]
# What acts on the process, on files or on the network.
LEFT_OUT = set("""save savez load loadtxt savetxt genfromtxt fromfile breakpoint
print_environment_info initialize shutdown start_trace stop_trace start_server stop_server
clear_caches clear_backends set_mesh print live_arrays make_mesh enable_x64 disable_jit
config""".split())
ALLOWED = (TypeError, ValueError, IndexError, OverflowError, NotImplementedError, MemoryError)
# Exceptions of other types whose reason the documentation names.
NAMED: tuple[tuple[type[BaseException], str], ...] = (
    (RuntimeError, "deleted"), (RuntimeError, "Unknown backend"),
    (RuntimeError, "padding type"), (RuntimeError, "unbound axis name"),
    (NameError, "unbound axis name"), (BufferError, "DLPack"), (TimeoutError, ""),
    (AttributeError, "__delitem__"),
    (AttributeError, "must be an array"), (AttributeError, "DimensionNumbers"),
    (AttributeError, "is no device"), (ZeroDivisionError, "a stride of 0"),
    (ZeroDivisionError, "number of sections"),
)  # fmt: skip
SECONDS, GIBIBYTES, BATCH = 20, 6, 500


class Lie(Exception):
    """What lying objects raise: whoever calls them lets it through."""


class Lying:
    """An object whose special methods do not hold what they promise."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"Lying({self.kind!r})"


def lying(kind: str) -> Any:
    """An instance of a class with the method `__kind__` alone, which lies."""
    answers: dict[str, Callable] = {
        "array": lambda self, *_, **__: "no array", "len": lambda self: 10**9,
        "index": lambda self: 2**62, "float": lambda self: 1.5, "iter": lambda self: iter([1, "a"]),
        "array_interface": property(lambda self: {"shape": (-1,)}),  # type: ignore[dict-item]
        "jax_array": lambda self: self, "getitem": lambda self, k: self,
        "bool": lambda self: 1 / 0, "eq": lambda self, other: _raise(),
        "hash": lambda self: _raise(),
    }  # fmt: skip
    return type("Lying" + kind.title(), (Lying,), {f"__{kind}__": answers[kind]})(kind)


def _raise() -> Any:
    raise Lie


class Sub(np.ndarray):
    """A subclass of NumPy's arrays."""


def deleted() -> Any:
    import numjet.numpy as jnp

    x = jnp.ones((3, 4)) + 0
    x.delete()
    return x


class Call:
    """The call of one seed: a public function and its arguments."""

    def __init__(self, seed: int, names: list[tuple[str, Any]]) -> None:
        self.rng = np.random.default_rng(seed)
        self.name, self.function = names[int(self.rng.integers(len(names)))]
        self.args, self.kwargs = self._arguments()

    def one(self, choices: list) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def plausible(self) -> Any:
        """Something that a function might want."""
        import numjet as nj
        import numjet.numpy as jnp

        return self.one([
            lambda: jnp.arange(12.0).reshape(3, 4), lambda: jnp.eye(4) + 1, lambda: jnp.ones(3),
            lambda: jnp.arange(4), lambda: 1.5, lambda: 2, lambda: nj.random.key(0),
            lambda: np.ones((4, 4), np.float32), lambda: jnp.array([True, False, True]),
            lambda: jnp.ones((2, 3, 4, 4)), lambda: jnp.ones((4, 4), jnp.complex64),
            lambda: (lambda *a, **k: a[0] if a else 1.0), lambda: jnp.float32(0.5),
            lambda: jnp.ones((), jnp.bfloat16), lambda: [1.0, 2.0], lambda: (3, 4),
        ])()  # fmt: skip

    def hostile(self) -> Any:
        """Something that no function wants."""
        import numjet as nj
        import numjet.numpy as jnp

        return self.one([
            lambda: None, lambda: "text", lambda: b"bytes", lambda: object(), lambda: ...,
            lambda: {}, lambda: {"a": jnp.ones(3), 1: 2}, lambda: [], lambda: (),
            lambda: [[1, 2], [3]],
            lambda: 10**30, lambda: -(10**30), lambda: 2**31, lambda: 2**63, lambda: -1,
            lambda: -(2**31) - 1, lambda: float("nan"), lambda: float("inf"), lambda: 1j,
            lambda: True, lambda: int, lambda: np.float32, lambda: slice(None), lambda: jnp.ones(0),
            lambda: jnp.ones((0, 4)), lambda: jnp.ones((3, 0)), lambda: np.ones(3, "M8[s]"),
            lambda: np.array(["a", "b"]), lambda: np.array([object()]), lambda: np.ones(3, ">f8"),
            lambda: np.ones(3, [("x", "f4")]), lambda: np.ma.ones(3), lambda: np.ones(3).view(Sub),
            lambda: np.float64(1e300), lambda: np.ones((1,) * 40), deleted,
            lambda: nj.random.key(0), lambda: nj.ShapeDtypeStruct((3,), np.float32), lambda: jnp,
            lambda: Lie(),
            lambda: lying(self.one(["array", "len", "index", "float", "iter", "array_interface",
                                    "jax_array", "getitem", "bool", "eq", "hash"])),
            lambda: (2**40, 2**40), lambda: (-1, -2), lambda: (2**63, 2), lambda: ("a",),
            lambda: jnp.ones((1, 1, 1, 1, 1)), lambda: np.uint8(255), lambda: range(10**9),
            lambda: self.generator(), lambda: jnp.ones(3, jnp.int8), lambda: lambda: 1,
        ])()  # fmt: skip

    def generator(self) -> Iterator[int]:
        yield 1

    def named(self, name: str) -> Any:
        """A value for a parameter of this name; most fit, some do not."""
        import numjet.numpy as jnp

        if self.rng.random() < 0.3:
            return self.hostile()
        known: list[tuple[tuple[str, ...], list]] = [
            (("axis", "axes", "dimension", "axis1", "axis2"),
             [0, -1, 1, None, (0, 1), 7, (0, 0), 1.5, "x", 10**30, jnp.int32(0), [0]]),
            (("dtype", "out_dtype", "preferred_element_type", "new_dtype"),
             [None, jnp.float32, "int8", "no dtype", int, jnp.ones(3), object, np.dtype("M8"), 5,
              "complex64"]),
            (("shape", "sizes", "newshape", "new_sizes", "sample_shape"),
             [(3,), (2, 6), -1, (-1,), (2**40, 2**40), (2, -3), "ab", (1.5,), 10**20, (), None,
              (jnp.int32(2),)]),
            (("key",), [self._key(), jnp.zeros(2, jnp.uint32), jnp.ones(3), 0, None]),
            (("fun", "f", "func", "body_fun", "cond_fun", "fn", "g", "operator"),
             [lambda *a, **k: a[0] if a else 1.0, lambda: 1, jnp.sin, 3, None, lambda x: "text",
              lambda *a: None]),
            (("mode", "method", "precision", "padding", "kind", "side", "indexing", "order"),
             [None, "clip", "fill", "no such", 3, "same", "valid", "SAME", jnp.ones(2), ["a"]]),
            (("n", "num", "k", "N", "length", "num_classes", "total_repeat_length", "size"),
             [3, 0, -1, 1.5, 2**31, 2**63, None, "x", jnp.int32(3)]),
        ]  # fmt: skip
        for names, values in known:
            if name in names:
                return self.one(values)
        return self.plausible()

    def _key(self) -> Any:
        import numjet as nj

        return nj.random.key(1)

    def _arguments(self) -> tuple[list, dict]:
        try:
            parameters = list(inspect.signature(self.function).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for p in parameters:
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                if p.default is p.empty or (self.rng.random() < 0.25 and len(args) < 6):
                    args.append(self.named(p.name))
                else:
                    break
        for p in parameters[len(args) :]:
            if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD) and self.rng.random() < (
                0.9 if p.default is p.empty else 0.15
            ):
                kwargs[p.name] = self.named(p.name)
            elif p.kind is p.VAR_POSITIONAL:
                args += [self.plausible() for _ in range(int(self.rng.integers(0, 3)))]
        kind = self.rng.random()
        if not parameters:
            args = [self.plausible() for _ in range(int(self.rng.integers(0, 4)))]
        if kind < 0.06:
            args = args[:-1]
        elif kind < 0.14:
            args += [self.hostile() for _ in range(int(self.rng.integers(1, 4)))]
        elif kind < 0.18:
            kwargs["no_such_name"] = self.hostile()
        elif kind < 0.6 and args:
            args[int(self.rng.integers(len(args)))] = self.hostile()
        return args, kwargs

    def shown(self) -> str:
        parts = [_shown(x) for x in self.args]
        parts += [f"{k}={_shown(v)}" for k, v in self.kwargs.items()]
        return f"{self.name}({', '.join(parts)})"

    def run(self) -> BaseException | None:
        """Call; what comes back is looked at, generators and contexts too."""
        try:
            found = self.function(*self.args, **self.kwargs)
            if isinstance(found, types.GeneratorType):
                next(found, None)
            elif isinstance(found, types.FunctionType) and self.rng.random() < 0.7:
                found(*[self.plausible() for _ in range(int(self.rng.integers(0, 3)))])
            elif hasattr(found, "block_until_ready"):
                found.block_until_ready()
        except BaseException as error:  # whatever it is, it is judged
            return error
        return None


def _shown(x: Any) -> str:
    try:
        text = repr(x)
    except BaseException as error:
        text = f"<{type(x).__name__}, whose repr raises {type(error).__name__}>"
    return text if len(text) < 90 else text[:87].replace("\n", " ") + "..."


def public_names() -> list[tuple[str, Any]]:
    """(name, function) of everything public that can be called, methods of arrays among them."""
    import numjet as nj

    found: dict[int, tuple[str, Any]] = {}
    for module_name in MODULES:
        module = importlib.import_module("numjet" + ("." if module_name else "") + module_name)
        for name in getattr(module, "__all__", None) or dir(module):
            if name.startswith("_") or name in LEFT_OUT:
                continue
            value = getattr(module, name, None)
            error = isinstance(value, type) and issubclass(value, BaseException)
            ours = getattr(value, "__module__", "numjet").startswith("numjet")
            if callable(value) and ours and not error and not isinstance(value, enum.EnumType):
                found.setdefault(id(value), (f"{module_name or 'numjet'}.{name}", value))
    x = nj.numpy.arange(12.0).reshape(3, 4)
    for owner, of in (("Array", x), ("Array.at[0]", x.at[0])):
        for name in dir(of):
            if name in ("delete", "__getattr__") or "reduce" in name or hasattr(object, name):
                continue
            if not name.startswith("_") or name.startswith("__"):
                try:
                    value = getattr(of, name)
                except Exception:
                    continue
                if callable(value):
                    found[len(found)] = (f"{owner}.{name}", value)
    return sorted(found.values(), key=lambda pair: pair[0])


def wrong(error: BaseException) -> str:
    """What is wrong about an exception, or ""."""
    from numjet import errors

    if isinstance(error, errors.InternalError):
        return "InternalError"
    known = [v for v in vars(errors).values() if isinstance(v, type)]
    if isinstance(error, ALLOWED) or isinstance(error, tuple(known)):
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    # What a lying object raises itself arrives as it is.
    if isinstance(error, Lie | ZeroDivisionError) and "hostile" in frames[-1].filename:
        return ""
    text = str(error)
    if any(isinstance(error, kind) and part in text for kind, part in NAMED):
        return ""
    if "numjet" not in "".join(f.filename for f in frames[1:]):
        return ""
    return type(error).__name__


def _late(*_: Any) -> None:
    raise TimeoutError


def work(seed: int, count: int) -> None:
    """Calls in this process, each announced."""
    import faulthandler

    faulthandler.enable()
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(2000)
    names = public_names()
    limit = GIBIBYTES << 30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGALRM, _late)
    os.chdir(tempfile.mkdtemp())
    out = sys.stdout
    for k in range(seed, seed + count):
        print(f"seed {k}", file=out, flush=True)
        with contextlib.redirect_stdout(io.StringIO()):
            call = Call(k, names)
            signal.alarm(SECONDS)
            try:
                try:
                    error = call.run()
                finally:  # the alarm may ring in here, where it rang inside of one long C call
                    signal.alarm(0)
            except TimeoutError as late:
                error = late
        if error is not None and wrong(error):
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{last.filename.replace(str(ROOT) + '/', '')}:{last.lineno}"
            text = str(error).split("\n")[0][:150]
            parts = (f"found {k}", wrong(error), place, call.shown(), text)
            print("\t".join(parts), file=out, flush=True)
        if isinstance(error, TimeoutError):
            print(f"slow {k}\t{call.shown()}", file=out, flush=True)
    print("done", file=out, flush=True)


def batch(seed: int, count: int) -> list[str]:
    """The lines of calls that end as they should not; after a crash, the rest in a new process."""
    found, end = [], seed + count
    while seed < end:
        path = os.pathsep.join([str(ROOT), str(ROOT / "tools")])
        done = subprocess.run(
            [sys.executable, __file__, "--work", str(seed), str(end - seed)],
            env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=60 + count * SECONDS,
        )  # fmt: skip
        lines = done.stdout.splitlines()
        found += [line for line in lines if line.startswith("found")]
        if lines and lines[-1] == "done":
            break
        last = [int(line.split()[1]) for line in lines if line.startswith("seed ")] or [seed]
        found.append(f"found {last[-1]}\tcrash\t{done.returncode}\t\t{done.stderr[-1500:]}")
        seed = last[-1] + 1
    return found


def main() -> None:
    """Read the command line; run; end with 1 where a call ended as it should not."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("count", type=int, nargs="?", default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--one", type=int)
    parser.add_argument("--work", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(*given.work)
        return
    if given.one is not None:
        call = Call(given.one, public_names())
        print(call.shown())
        error = call.run()
        if error is not None:
            traceback.print_exception(error)
        return
    starts = range(given.seed, given.seed + given.count, BATCH)
    with ThreadPoolExecutor(given.jobs) as pool:
        parts = pool.map(lambda s: batch(s, min(BATCH, given.seed + given.count - s)), starts)
        found = [line for part in parts for line in part]
    # One line for each place; the first call there stands for all.
    by_place: dict[tuple, list[str]] = collections.defaultdict(list)
    for line in found:
        _, kind, place, *_ = line.split("\t")
        by_place[kind, place].append(line)
    for lines in by_place.values():
        print(f"{len(lines)} x {lines[0]}")
    print(f"{given.count} calls from seed {given.seed}, {len(found)} ended as they should not")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
