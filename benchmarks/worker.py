"""A long-lived process that runs one package's programs for the driver.

    python worker.py PEER        started by run.py, speaks pickled messages on stdin and stdout

A message is a tuple (command, argument...); the answer is ("ok", value) or ("error", text).
  load ROW     build the row's program and its inputs, run it twice; value: samples of the results
  calibrate    seconds of one call
  batch N      run N calls, value: seconds a call
  unload       forget the row
  limits N     physical limits of the machine with N threads (numjet's worker only)
  stream N W C seconds in which N threads move the row's bytes in way W, of C passes in a row
"""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import sys
import time
from typing import Any

import numpy as np
import peers
import rows
from registry import ROWS, Row

# At most so many elements of each result travel to the driver to be compared.
SAMPLED = 100_000


class Worker:
    """Holds one row's program, ready to be timed."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.array = peer in ("numjet", "jax")
        self.space = peers.space(peer) if self.array else None
        if not self.array:
            self.space = importlib.import_module(peer)
        self.version = str((self.space.top if self.array else self.space).__version__)
        self.call: Any = None
        self.row: Row | None = None
        self.moved: Any = None

    def load(self, name: str) -> list[tuple]:
        self.unload()
        self.row = row = ROWS[name]
        arguments = row.arguments()
        if self.array:
            self.space.x64(row.x64)
            function = row.array(self.space)
            arguments = peers.convert(arguments, self.space.np.asarray)
        else:
            if self.peer == "torch":
                arguments = peers.convert(arguments, self.space.from_numpy)
            function = row.others[self.peer](self.space)
        self.call = function, arguments
        result = function(*arguments)
        self.wait(result)
        samples = [sample(self.host(leaf)) for leaf in peers.leaves(result)]
        del result
        self.wait(function(*arguments))
        return samples

    def host(self, leaf: Any) -> np.ndarray:
        if self.peer == "torch" and hasattr(leaf, "detach"):
            leaf = leaf.detach().numpy()
        return np.asarray(leaf)

    def wait(self, result: Any) -> None:
        if self.array:
            self.space.block(result)

    def batch(self, count: int) -> float:
        function, arguments = self.call
        gc.collect()
        gc.disable()
        try:
            if self.row.block and self.array:
                wait = self.space.block
                start = time.perf_counter()
                for _ in range(count):
                    wait(function(*arguments))
                return (time.perf_counter() - start) / count
            start = time.perf_counter()
            for _ in range(count):
                result = function(*arguments)
            self.wait(result)
            return (time.perf_counter() - start) / count
        finally:
            gc.enable()

    def calibrate(self) -> float:
        """Seconds of a call, from a batch long enough to be past the cold first ones."""
        count = 1
        while True:
            seconds = self.batch(count)
            if seconds * count > 0.004 or count > 5_000:
                return seconds
            count *= 4

    def unload(self) -> None:
        self.call = self.row = self.moved = None
        gc.collect()

    def limits(self, threads: int) -> dict[str, float]:
        physical = importlib.import_module("physical")
        return physical.measure(threads)

    def stream(self, threads: int, way: int, count: int) -> float:
        if self.moved is None:
            physical = importlib.import_module("physical")
            self.moved = physical.Stream(self.row.reads, self.row.writes, threads)
        return self.moved.seconds(way, count)


def sample(array: np.ndarray) -> tuple:
    """Shape, dtype and up to SAMPLED elements, evenly spaced with an odd stride."""
    flat = array.reshape(-1)
    step = max(1, flat.size // SAMPLED) | 1
    return array.shape, str(array.dtype), np.ascontiguousarray(flat[::step])


def main() -> None:
    # What programs print must not get between the messages.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = os.fdopen(os.dup(0), "rb")
    worker = None
    while True:
        try:
            command, *arguments = pickle.load(requests)
        except EOFError:
            return
        try:
            if command == "start":
                rows.load_all()
                worker = Worker(*arguments)
                answer = ("ok", worker.version)
            else:
                answer = ("ok", getattr(worker, command)(*arguments))
        except Exception as error:  # reported by the driver beside the row
            line = (str(error).strip() or repr(error)).splitlines()[0]
            answer = ("error", f"{type(error).__name__}: {line}")
            del error
        pickle.dump(answer, answers, protocol=5)
        answers.flush()


if __name__ == "__main__":
    sys.setrecursionlimit(20_000)
    main()
