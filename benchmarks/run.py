"""The benchmark: every row side by side, on numjet and its peers, in one go.

    python benchmarks/run.py [--rows softmax,matmul] [--quick] [--threads all|1|both] [--output DIR]

Each package runs in an environment and a long-lived process of its own, once with one thread and
once with all; results are compared before anything is timed; repetitions of the peers alternate.
Prints a line a row; a run of all rows (or one with --output) writes results.md, results.json and
results.png. `make bench ROWS=...` is the same.
"""

from __future__ import annotations

import argparse
import itertools
import os
import pathlib
import pickle
import select
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np
import peers
import report
import rows
from registry import ROWS, WAYS, Row, select as select_rows

HERE = pathlib.Path(__file__).resolve().parent
# A program that takes longer than this to compile and run has failed.
PATIENCE = 90.0
# Seconds of one timed batch, of all batches of a row and thread count, and a library's threads'
# time to fall asleep after their last job (they spin for about a tenth of a second).
BATCH = 0.02
ROW_BUDGET = 2.0
# A peer whose call takes longer is timed once.
SLOW = 0.8
SETTLE = 0.15


class Failure(Exception):
    """A package could not run a row; the text is printed in its place."""


class Process:
    """One package's worker: starts it when first asked, restarts it after a crash."""

    def __init__(self, peer: str, threads: int, cache: str) -> None:
        self.peer, self.threads, self.cache = peer, threads, cache
        self.python = peers.python_of(peer)
        self.process: subprocess.Popen | None = None
        self.version = ""

    def start(self) -> None:
        cores = peers.cores()
        # One thread: one core, so that no library finds a way to a second.
        chosen = set(cores if self.threads > 1 else cores[-1:])
        self.process = subprocess.Popen(
            [self.python, str(HERE / "worker.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=peers.settings(self.threads, self.cache),
            preexec_fn=lambda: os.sched_setaffinity(0, chosen),
        )
        self.version = self.ask("start", self.peer)

    def ask(self, *message: Any) -> Any:
        if self.process is None:
            self.start()
        assert self.process is not None
        pipe, answers = self.process.stdin, self.process.stdout
        try:
            pickle.dump(message, pipe)
            pipe.flush()
            if not select.select([answers], [], [], PATIENCE)[0]:
                self.stop()
                raise Failure(f"took more than {PATIENCE:.0f} s")
            kind, value = pickle.load(answers)
        except (EOFError, BrokenPipeError):
            code = self.process.wait()
            self.process = None
            raise Failure(f"the process died (status {code})") from None
        if kind == "error":
            raise Failure(value)
        return value

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def agree(name: str, row: Row, ours: list[tuple], theirs: list[tuple]) -> str:
    """An empty string, or how two packages' results differ."""
    if len(ours) != len(theirs):
        return f"{len(ours)} results, {name} has {len(theirs)}"
    for position, ((shape, dtype, a), (shape2, _, b)) in enumerate(zip(ours, theirs)):
        if shape != shape2:
            return f"result {position} has shape {shape}, {name}'s has {shape2}"
        if np.issubdtype(a.dtype, np.floating):
            tolerance = row.tolerance or (1e-9 if row.x64 else 2e-4)
            scale = np.nanmax(np.abs(b), initial=0.0)
            close = np.isclose(a, b, tolerance, tolerance * scale, equal_nan=True)
        else:
            close = a == b
        if not close.all():
            # Differently rounded sums may choose another of two nearly equal maxima.
            worst = np.flatnonzero(~close)[0]
            return (
                f"result {position} ({dtype}) differs from {name}'s in {np.mean(~close):.1%} of "
                f"the elements, first {a[worst]} and {b[worst]}"
            )
    return ""


def load(row: Row, processes: dict[str, Process]) -> tuple[list[str], dict[str, str]]:
    """Build the row everywhere and compare. Returns the packages to time, and the failures."""
    samples, failures = {}, {}
    for peer in row.peers():
        try:
            samples[peer] = processes[peer].ask("load", row.name)
        except Failure as failure:
            failures[peer] = str(failure)
    allowed = [p for p in samples if row.compare is None or p in row.compare]
    allowed = [p for p in allowed if p != "numjet"]
    for peer in allowed:
        if "numjet" in samples:
            difference = agree(peers.TITLES[peer], row, samples["numjet"], samples[peer])
            if difference:
                failures["numjet"] = f"wrong result: {difference}"
                break
    return [p for p in samples if p not in failures], failures


def time_row(row: Row, processes: dict[str, Process], quick: bool) -> tuple[dict, dict, list]:
    """Seconds of each package's batches, the failures, and the seconds in which the row's bytes are
    moved in each way (see physical.py), timed like a package's batches and between them."""
    ready, failures = load(row, processes)
    counts, cost, slow = {}, 0.0, {}
    for peer in ready[:]:
        try:
            seconds = processes[peer].ask("calibrate")
        except Failure as failure:
            failures[peer] = str(failure)
            ready.remove(peer)
            continue
        if seconds > SLOW and peer != "numjet":
            # Its two calls so far have taken long enough, and this was the third.
            slow[peer] = [seconds / row.per]
            ready.remove(peer)
            processes[peer].ask("unload")
            continue
        counts[peer] = int(min(max(BATCH / max(seconds, 1e-9), 1), 20_000))
        cost += counts[peer] * seconds
    repeats = int(min(row.repeats, max(3, ROW_BUDGET / max(cost, 1e-9))))
    if quick:
        repeats = min(repeats, 3)
    times: dict[str, list[float]] = {**{peer: [] for peer in ready}, **slow}
    moved: list[list[float]] = [[] for _ in range(WAYS)]
    turns = itertools.cycle(moved)
    for repeat in range(repeats):
        # A different package begins each round.
        for peer in ready[repeat % max(len(ready), 1) :] + ready[: repeat % max(len(ready), 1)]:
            if row.blas:
                time.sleep(SETTLE)
            try:
                times[peer].append(processes[peer].ask("batch", counts[peer]) / row.per)
            except Failure as failure:
                failures[peer] = str(failure)
            if row.reads + row.writes and "numjet" in ready:
                way, ours = next(turns), processes["numjet"]
                request = ours.threads, moved.index(way), counts["numjet"]
                way.append(ours.ask("stream", *request))
    for peer in ready:
        if processes[peer].process is not None:
            processes[peer].ask("unload")
    return {peer: values for peer, values in times.items() if values}, failures, moved


def time_cold(row: Row, quick: bool, second: bool) -> tuple[dict, dict]:
    """The same for rows that need fresh processes. `second`: with the first one's disk cache."""
    times: dict[str, list[float]] = {}
    failures: dict[str, str] = {}
    threads = len(peers.cores())
    for repeat in range(1 if quick else row.repeats):
        for peer in row.peers():
            python = peers.python_of(peer)
            if python is None or peer in failures:
                continue
            with tempfile.TemporaryDirectory() as cache:
                script = "memory.py" if row.unit == "bytes" else "cold.py"
                command = [python, str(HERE / script), peer, row.cold]
                # The first run of an import compiles Python's own caches.
                warm = second or (row.cold.startswith("import") and repeat == 0)
                for _ in range(2 if warm else 1):
                    try:
                        done = subprocess.run(
                            command,
                            env=peers.settings(threads, cache),
                            capture_output=True,
                            text=True,
                            timeout=PATIENCE,
                        )
                    except subprocess.TimeoutExpired:
                        failures[peer] = f"took more than {PATIENCE:.0f} s"
                        break
                    if done.returncode:
                        lines = done.stderr.strip().splitlines() or ["no message"]
                        failures[peer] = lines[-1]
                        break
                else:
                    times.setdefault(peer, []).append(float(done.stdout.split()[-1]))
    return times, failures


def settings_of(choice: str) -> dict[str, int]:
    count = len(peers.cores())
    return {"all": {"all": count}, "1": {"1": 1}, "both": {"all": count, "1": 1}}[choice]


def measure(chosen: list[Row], threads: dict[str, int], quick: bool) -> dict:
    """Run the rows; the answer is what report.py writes."""
    with tempfile.TemporaryDirectory() as cache:
        workers = {
            label: {
                peer: Process(peer, count, cache)
                for peer in peers.TITLES
                if peers.python_of(peer) is not None
            }
            for label, count in threads.items()
        }
        everyone = [process for group in workers.values() for process in group.values()]
        try:
            return _measure(chosen, threads, workers, quick)
        finally:
            for process in everyone:
                process.stop()


def _measure(chosen: list[Row], threads: dict[str, int], workers: dict, quick: bool) -> dict:
    for label in workers:
        for peer in list(workers[label]):
            try:
                workers[label][peer].start()
            except Failure as failure:
                print(f"{peers.TITLES[peer]} is left out: {failure}")
                workers[label][peer].stop()
                del workers[label][peer]
    limits = {}
    for label, count in threads.items():
        limits[label] = workers[label]["numjet"].ask("limits", count)
    outcome: dict[str, Any] = {
        "machine": report.machine(),
        "threads": threads,
        "limits": limits,
        "versions": {
            peer: process.version for group in workers.values() for peer, process in group.items()
        },
        "rows": {},
    }
    report.print_head(outcome)
    first = next(iter(threads))
    for row in chosen:
        entry: dict[str, Any] = {"times": {}, "failures": {}, "moved": {}}
        for label in threads:
            if row.cold:
                if label != first:
                    continue
                second = any(bar.startswith("row:") for bar in row.bars)
                times, failures = time_cold(row, quick, second)
            else:
                here = workers[label]
                present = Row(**{**vars(row), "only": tuple(p for p in row.peers() if p in here)})
                # The bars are about all threads: one thread is timed with fewer repetitions.
                times, failures, moved = time_row(present, here, quick or label != first)
                if any(moved):
                    entry["moved"][label] = min(statistics.median(way) for way in moved if way)
            entry["times"][label] = times
            entry["failures"][label] = failures
        outcome["rows"][row.name] = entry
        report.judge(row, outcome)
        report.print_row(row, outcome)
    # Once more: the machine may have been busy at the start.
    for label, count in threads.items():
        again = workers[label]["numjet"].ask("limits", count)
        limits[label] = {key: max(value, again[key]) for key, value in limits[label].items()}
    for row in chosen:
        report.judge(row, outcome)
    report.print_foot(outcome)
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="", help="names or groups, separated by commas")
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    parser.add_argument("--threads", default="both", choices=("all", "1", "both"))
    parser.add_argument("--output", help="folder for results.md, results.json, results.png")
    parser.add_argument("--note", default="", help="a sentence for the head of the results")
    parser.add_argument("--list", action="store_true", help="print the rows' names")
    options = parser.parse_args()
    rows.load_all()
    if options.list:
        print("\n".join(f"{row.name:20s} {row.title}" for row in ROWS.values()))
        return
    chosen = select_rows(options.rows)
    outcome = measure(chosen, settings_of(options.threads), options.quick)
    outcome["note"] = options.note
    if options.output or not options.rows:
        report.write(outcome, pathlib.Path(options.output or HERE))
    sys.exit(0)


if __name__ == "__main__":
    main()
