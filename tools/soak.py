"""Soak: mixed programs on many threads for as long as it is told, with everything that disturbs.

    python tools/soak.py [--seconds N] [--threads N]

Each thread draws one of a few dozen programs (`fuzzing`), or one with a shape that no thread has
had before, runs it compiled, and compares with what the same program gave at the start; meanwhile
processes are forked that compute and end, the main thread is interrupted again and again, caches
are emptied, and the disk cache of a megabyte is swept all the time. Printed are steps, new shapes,
forks, interrupts and the resident size by time; ends with 1 where a result differs, a thread
raises, or the second half needs more memory than `GROWTH` MiB above the first.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

# Read when numjet is imported.
os.environ["NUMJET_CACHE_DIR"] = tempfile.mkdtemp(prefix="numjet-soak-")
os.environ["NUMJET_CACHE_BYTES"] = str(1 << 20)

import numpy as np  # noqa: E402
from fuzzing.drawer import draw  # noqa: E402

import numjet as nj  # noqa: E402
import numjet.numpy as jnp  # noqa: E402

GROWTH = 64  # MiB
PROGRAMS = 40


def resident() -> int:
    """Resident bytes of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Soak:
    """What all threads share: the programs, what they gave, and the counts."""

    def __init__(self, seed: int) -> None:
        self.stop = threading.Event()
        self.failures: list[str] = []
        self.steps = self.shapes = self.forks = self.interrupts = 0
        self.lock = threading.Lock()
        self.programs = [self._program(seed + k) for k in range(PROGRAMS)]

    def _program(self, seed: int) -> tuple[bool, Callable[..., list], list, list[bytes]]:
        program = draw(seed)
        given = list(program.arguments.values())
        function = nj.jit(program.function(nj))
        with nj.enable_x64(program.x64):
            first = [np.asarray(x).tobytes() for x in function(*given)]
        return program.x64, function, given, first

    def known(self, rng: random.Random) -> None:
        """A program again: the same bits as at first."""
        x64, function, given, first = rng.choice(self.programs)
        with nj.enable_x64(x64):
            again = [np.asarray(x).tobytes() for x in function(*given)]
        if again != first:
            self.failures.append(f"another result of {function}")

    def fresh(self, rng: random.Random) -> None:
        """A shape that nobody has had, compiled and operation by operation."""
        with self.lock:
            self.shapes += 1
            n = 3 + self.shapes
        x = np.arange(n, dtype=np.float32) / n
        run = nj.jit(lambda x: jnp.sum(jnp.sin(x) * 2 + x[::-1]))
        got, want = float(run(x)), float(np.sum(np.sin(x) * 2 + x))
        if abs(got - want) > 1e-3 * max(1.0, abs(want)):
            self.failures.append(f"{got} instead of {want} for {n} elements")
        y = jnp.asarray(x)
        if abs(float((y * 2 + 1).sum()) - float(np.sum(x * 2 + 1))) > 1e-3 * n:
            self.failures.append(f"an operation on {n} elements")

    def work(self, seed: int) -> None:
        """One thread."""
        rng = random.Random(seed)
        try:
            while not self.stop.is_set():
                for _ in range(20):
                    self.known(rng) if rng.random() < 0.97 else self.fresh(rng)
                with self.lock:
                    self.steps += 20
        except BaseException as error:
            self.failures.append("".join(traceback.format_exception(error)))

    def fork(self) -> None:
        """A child that computes and compiles while other threads of ours do, and ends."""
        child = os.fork()
        if not child:
            code = 1
            faulthandler.dump_traceback_later(30)  # where it stands that does not end
            try:
                x = np.arange(7.0, dtype=np.float32)
                same = np.allclose(nj.jit(lambda x: jnp.cumsum(x * 3))(x), np.cumsum(x * 3))
                code = 0 if same else 2
            finally:
                os._exit(code)
        end = time.monotonic() + 60
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
                status = os.waitpid(child, 0)[1]
                break
            time.sleep(0.01)
        self.forks += 1
        if status:
            self.failures.append(f"a forked process ended with {status}")

    def interrupted(self, rng: random.Random) -> None:
        """A compilation that a signal interrupts somewhere; the next one is whole."""
        k = rng.random()
        run = nj.jit(lambda x: jnp.sort(jnp.cumsum(x * k))[::2] @ jnp.ones(8))
        x = np.arange(16.0, dtype=np.float32)
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.001, 0.08))
            run(x)
        except KeyboardInterrupt:
            self.interrupts += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        want = np.sort(np.cumsum(x * np.float32(k)))[::2].sum()
        if abs(float(run(x)) - want) > 1e-3 * abs(want):
            self.failures.append("a result after an interrupt")


def interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Run for the time asked for; print what happened."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, interrupt)
    soak = Soak(given.seed)
    threads = [threading.Thread(target=soak.work, args=(k,)) for k in range(given.threads)]
    for thread in threads:
        thread.start()
    rng, start, sizes = random.Random(given.seed), time.monotonic(), []
    shown = start
    try:
        while time.monotonic() < start + given.seconds and not soak.failures:
            soak.fork()
            for _ in range(3):
                soak.interrupted(rng)
            if rng.random() < 0.05:
                nj.clear_caches()
            sizes.append(resident() >> 20)
            if time.monotonic() > shown + 10:
                shown = time.monotonic()
                print(f"{shown - start:.0f} s: {soak.steps} steps, {soak.shapes} shapes, "
                      f"{soak.forks} forks, {soak.interrupts} interrupts, {sizes[-1]} MiB",
                      flush=True)  # fmt: skip
    finally:
        soak.stop.set()
        for thread in threads:
            thread.join()
    half = sizes[len(sizes) // 4 : len(sizes) // 2] or sizes
    grown = max(sizes[3 * len(sizes) // 4 :] or sizes) - max(half)
    print(f"{soak.steps} steps, {soak.shapes} new shapes, {soak.forks} forks, {soak.interrupts} "
          f"interrupts; resident {max(half)} MiB, {grown:+d} MiB later")  # fmt: skip
    for failure in soak.failures:
        print(failure)
    sys.exit(bool(soak.failures) or grown > GROWTH)


if __name__ == "__main__":
    main()
