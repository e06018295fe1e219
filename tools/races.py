"""Races: threads that do everything at once, while others empty the caches and collect garbage.

    python tools/races.py [--seconds N] [--threads N] [--seed N] [--only NAME,NAME] [--keep]

Each thread draws one of the activities below, of a shape and dtype that are mostly new: operations
on small and on large arrays (which are written down), deferred arrays that other threads read, new
functions under `jit`, `grad` and `vmap`, updates, indexing and slices, products that are traced.
What comes out is compared with NumPy's. One more thread calls `clear_caches()`, another
`gc.collect()`; garbage whose finalizers compute is made all the time, and Python changes threads
as often as it can. With NUMJET_PLATFORMS=xla_cpu the arrays are those of XLA's CPU plugin. Ends
with 1 where a result differs or a thread raises. docs/testing.md says what it found.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import random
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

import numjet as nj
import numjet.numpy as jnp
from numjet.extend.core import jaxpr_as_fun

DTYPES = (np.float32, np.float32, np.int32, np.uint8, np.float16, np.bool_, np.int8)
LARGE = 1 << 17  # elements of arrays whose operations are written down


class Garbage:
    """An object of a cycle, whose finalizer computes with an array."""

    def __init__(self, x: nj.Array) -> None:
        self.x, self.me = x, self

    def __del__(self) -> None:
        y = self.x + 1
        if y.shape != self.x.shape:
            FAILURES.append("a finalizer's result")


FAILURES: list[str] = []
SHARED: deque[tuple[Any, np.ndarray]] = deque(maxlen=16)  # arrays that wait, and what they are


def data(rng: random.Random, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Small whole numbers, so that every order of operations gives the same."""
    made = np.arange(int(np.prod(shape))) % rng.randrange(2, 9)
    return made.reshape(shape).astype(dtype)


def shape_of(rng: random.Random, most: int = 60) -> tuple[int, ...]:
    return tuple([rng.randrange(1, most) for _ in range(rng.randrange(1, 3))])


def small(rng: random.Random) -> None:
    """Operations, one after the other."""
    a = data(rng, shape_of(rng), rng.choice(DTYPES))
    x = jnp.asarray(a)
    same(x * 2, jnp.asarray(a * 2) if a.dtype != np.bool_ else a * 2)
    same(x == x[::-1], a == a[::-1])
    if a.dtype == np.float32:
        same((x + 1.0) * x - x / 2, (a + 1) * a - a / 2)
        same(-abs(x).sum(), -abs(a).sum())
        same(jnp.where(x > 2, x, 1.0), np.where(a > 2, a, 1))
        same(jnp.maximum(x, x[..., ::-1]).max(), a.max())


def parts(rng: random.Random) -> None:
    """Indexing, slices, updates."""
    a = data(rng, (rng.randrange(2, 60), rng.randrange(1, 9)), rng.choice(DTYPES[:4]))
    x, i = jnp.asarray(a), rng.randrange(len(a))
    same(x[i], a[i])
    same(x[i:], a[i:])
    same(x[1:i:2], a[1:i:2])
    same(x[:, 0], a[:, 0])
    same(x[np.array([i, 0])], a[[i, 0]])
    b = a.copy()
    b[i] = 3
    same(x.at[i].set(3), b)
    b = a.copy()
    b[i] += 1
    same(x.at[i].add(1), b)
    same(x.at[i].min(x[0]), np.where(np.arange(len(a))[:, None] == i, np.minimum(a, a[0]), a))


def large(rng: random.Random) -> None:
    """Operations that are written down; some results are read by other threads."""
    n = LARGE + rng.randrange(40) * 64
    a = data(rng, (n,), np.float32)
    x = jnp.asarray(a)
    y = x * 2 + 1
    z = y - x
    if rng.random() < 0.5:
        SHARED.append((z, a + 1))
    if rng.random() < 0.7:
        same(z * y, (a + 1) * (2 * a + 1))
    w = jnp.where(z > 2, z, y)[::2]
    same(w, np.where(a > 1, a + 1, 2 * a + 1)[::2])


def others(rng: random.Random) -> None:
    """Arrays that wait in other threads' records, read, or written down further."""
    try:
        z, want = SHARED[rng.randrange(max(len(SHARED), 1))]
    except IndexError:
        return
    same(z, want) if rng.random() < 0.5 else same(z + z, want + want)


def compiled(rng: random.Random) -> None:
    """A new function of a new shape, called several times, of trees."""
    a, k = data(rng, shape_of(rng), np.float32), rng.randrange(1, 9)
    f = nj.jit(lambda t: {"y": (t["x"][0] * k + 1, t["x"][1].sum())})
    for _ in range(rng.randrange(1, 5)):
        out = f({"x": [a, jnp.asarray(a)]})
        same(out["y"][0], a * k + 1)
        same(out["y"][1], a.sum())


@nj.jit
def known(x: Any, y: Any) -> Any:
    """A function that all threads call."""
    return x * 2 + y, (x - y).sum()


def called(rng: random.Random) -> None:
    """One function of all threads."""
    a = data(rng, (rng.randrange(1, 20),), np.float32)
    x = jnp.asarray(a)
    for _ in range(6):
        out, total = known(x, a)
        same(out, a * 3)
        same(total, 0)


def derived(rng: random.Random) -> None:
    """`grad` and `vmap`, eagerly and compiled."""
    a = data(rng, (rng.randrange(1, 9), rng.randrange(1, 30)), np.float32)
    k = float(rng.randrange(1, 9))
    f = nj.grad(lambda x: (x * x * k).sum())
    same(f(a), 2 * k * a)
    g = nj.vmap(lambda x: x * k - x.sum())
    want = a * k - a.sum(1, keepdims=True)
    same(g(a), want)
    if rng.random() < 0.3:
        same(nj.jit(f)(a), 2 * k * a)
        same(nj.jit(g)(a), want)


def traced(rng: random.Random) -> None:
    """Products and functions of traced arrays."""
    a = data(rng, (rng.randrange(1, 30), rng.randrange(1, 30)), np.float32)
    x = jnp.asarray(a)

    def f(x: Any) -> Any:
        y = x @ x.T
        return jnp.abs(y) + jnp.sqrt(y * y), y[0], jnp.where(y > 3, y, 0)

    closed = nj.make_jaxpr(f)(x)
    out = jaxpr_as_fun(closed)(x)
    y = a @ a.T
    for got, want in zip(out, (2 * y, y[0], np.where(y > 3, y, 0)), strict=True):
        same(got, want)


def garbage(rng: random.Random) -> None:
    """Cycles whose finalizers compute, on small arrays or ones that are written down."""
    for _ in range(20):
        n = rng.randrange(1, 50) if rng.random() < 0.8 else LARGE
        Garbage(jnp.ones(n))


def same(got: Any, want: Any) -> None:
    """Compare; the shape too."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or not np.array_equal(got, want):
        caller = sys._getframe(1)
        FAILURES.append(
            f"{caller.f_code.co_name}, line {caller.f_lineno}: {got.shape} {got.dtype} instead of "
            f"{want.shape} {want.dtype}, {got.ravel()[:8]} instead of {want.ravel()[:8]}"
        )


ACTIVITIES: dict[str, Callable[[random.Random], None]] = {
    f.__name__: f
    for f in (small, parts, large, others, compiled, called, derived, traced, garbage)
}


def main() -> None:
    """Run for the time asked for; print what happened."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", action="store_true", help="leave the caches alone")
    given = parser.parse_args()
    faulthandler.enable()
    stop = threading.Event()
    wanted = given.only.split(",") if given.only else list(ACTIVITIES)
    chosen = [ACTIVITIES[name] for name in wanted]
    counts = dict.fromkeys(wanted, 0)

    def work(seed: int) -> None:
        rng = random.Random(seed)
        while not stop.is_set():
            activity = rng.choice(chosen)
            try:
                activity(rng)
            except BaseException as error:
                FAILURES.append("".join(traceback.format_exception(error)))
            counts[activity.__name__] += 1

    def disturb(action: Callable[[], Any], pause: float) -> None:
        while not stop.is_set():
            try:
                action()
            except BaseException as error:
                FAILURES.append("".join(traceback.format_exception(error)))
            time.sleep(pause)

    threads = [
        threading.Thread(target=work, args=(given.seed * 1000 + k,)) for k in range(given.threads)
    ]
    if not given.keep:
        threads.append(threading.Thread(target=disturb, args=(nj.clear_caches, 0.003)))
    threads.append(threading.Thread(target=disturb, args=(gc.collect, 0.01)))
    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(50, 5, 5)
    sys.setswitchinterval(1e-6)
    end = time.monotonic() + given.seconds
    for thread in threads:
        thread.start()
    while time.monotonic() < end and len(FAILURES) < 10:
        time.sleep(0.5)
    stop.set()
    faulthandler.dump_traceback_later(120, exit=True)  # where they stand that do not end
    for thread in threads:
        thread.join()
    faulthandler.cancel_dump_traceback_later()
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)
    print(*FAILURES[:10], sep="\n")
    print(f"{sum(counts.values())} steps: {counts}, {len(FAILURES)} failures")
    sys.exit(bool(FAILURES))


if __name__ == "__main__":
    main()
