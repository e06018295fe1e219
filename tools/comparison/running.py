"""Runs cases in worker processes, one library each, and keeps what JAX answered on disk.

JAX takes most of the time. Its answers depend on the cases' text alone, so that a second run of the
same seed, after a change here, needs none of it. The folder is build/compare, or the one that
NUMJET_COMPARE_CACHE names.
"""

from __future__ import annotations

import os
import pickle
import select
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from comparison.cases import Case

ROOT = Path(__file__).resolve().parents[2]
WORKER = Path(__file__).with_name("worker.py")
BATCH = 50
PATIENCE = 400  # seconds without an answer, after which a worker is given up
Answer = dict[str, Any]


class Worker:
    """A worker process, started again when it dies."""

    def __init__(self, python: str, library: str):
        self.command = [python, str(WORKER), library]
        # One core each: several workers share the machine.
        self.environment = {
            **os.environ,
            "JAX_PLATFORMS": "cpu",
            "PYTHONPATH": str(ROOT) if library == "numjet" else "",
            # Programs are small, run once, and cost their compilation alone.
            "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0 "
            "--xla_llvm_disable_expensive_passes=true",
        }
        self.process: subprocess.Popen | None = None

    def start(self) -> subprocess.Popen:
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                env=self.environment,
            )
        return self.process

    def send(self, cases: list[Case]) -> None:
        process = self.start()
        data = memoryview(pickle.dumps([case.work for case in cases]))
        while data:
            data = data[process.stdin.write(data) :]

    def receive(self) -> Answer | None:
        """The next answer; None when the process died or hangs (it is ended then)."""
        size = self.read(8)
        payload = size and self.read(int.from_bytes(size, "little"))
        if payload:
            return pickle.loads(payload)
        self.process.kill()
        self._ended()
        return None

    def read(self, count: int) -> bytes:
        """So many bytes of the process' output; none when it ended or is silent for too long."""
        output, parts = self.process.stdout, b""
        while len(parts) < count:
            ready = select.select([output], [], [], PATIENCE)[0]
            part = os.read(output.fileno(), count - len(parts)) if ready else b""
            if not part:
                return b""
            parts += part
        return parts

    def answers(self, cases: list[Case], give: Callable[[Case, Answer], None]) -> None:
        """Answer all cases; one that ends the process is answered by that."""
        while cases:
            batch, cases = cases[:BATCH], cases[BATCH:]
            self.send(batch)
            for i, case in enumerate(batch):
                answer = self.receive()
                if answer is None:
                    give(case, {"prepare": ("died", self.process.returncode, "")})
                    cases = batch[i + 1 :] + cases
                    break
                give(case, answer)

    def close(self) -> None:
        if self.process is not None and not self.process.stdin.closed:
            self.process.stdin.close()
            self._ended()

    def _ended(self) -> None:
        """Let go of a process that ends."""
        self.process.wait(PATIENCE)
        self.process.stdin.close()
        self.process.stdout.close()


class Kept:
    """JAX's answers by the cases' keys."""

    def __init__(self) -> None:
        folder = Path(os.environ.get("NUMJET_COMPARE_CACHE", ROOT / "build/compare"))
        folder.mkdir(parents=True, exist_ok=True)
        self.base = sqlite3.connect(folder / "answers.sqlite", timeout=60)
        self.base.execute("create table if not exists answers (key text primary key, answer blob)")

    def get(self, case: Case) -> Answer | None:
        row = self.base.execute("select answer from answers where key = ?", (case.key,)).fetchone()
        return pickle.loads(row[0]) if row else None

    def put(self, case: Case, answer: Answer) -> None:
        self.base.execute(
            "insert or replace into answers values (?, ?)", (case.key, pickle.dumps(answer))
        )
        self.base.commit()


def oracle_python() -> str:
    """The interpreter that has JAX."""
    named = os.environ.get("NUMJET_ORACLE_PYTHON", str(ROOT / ".venvs/oracle/bin/python"))
    if not Path(named).exists():
        raise SystemExit(
            f"no JAX to compare with at {named}: run `make compare`, or set "
            "NUMJET_ORACLE_PYTHON to a Python that has JAX 0.10.2"
        )
    return named


def both(cases: list[Case], judge: Callable[[Case, Answer, Answer], None], jobs: int = 1) -> None:
    """Run the cases under both libraries and call `judge(case, JAX's answer, numjet's)` for each.

    jobs: so many pairs of processes side by side. `judge` is called by one thread at a time.
    """
    python = oracle_python()
    # Turns of one function side by side: what JAX compiled for one shape serves the others.
    cases = sorted(cases, key=lambda case: case.name)
    batches = iter([cases[start : start + BATCH] for start in range(0, len(cases), BATCH)])
    lock = threading.Lock()

    def work() -> None:
        kept = Kept()
        jax, numjet = Worker(python, "jax"), Worker(sys.executable, "numjet")
        try:
            while True:
                with lock:
                    batch = next(batches, None)
                if batch is None:
                    return
                pairs = list(answered(batch, kept, jax, numjet))
                with lock:
                    for pair in pairs:
                        judge(*pair)
        finally:
            jax.close()
            numjet.close()

    with ThreadPoolExecutor(jobs) as pool:
        for done in [pool.submit(work) for _ in range(jobs)]:
            done.result()


def answered(
    batch: list[Case], kept: Kept, jax: Worker, numjet: Worker
) -> Iterator[tuple[Case, Answer, Answer]]:
    """The cases of a batch with JAX's answer and numjet's."""
    theirs, ours = {case.number: kept.get(case) for case in batch}, {}

    def keep(case: Case, answer: Answer) -> None:
        theirs[case.number] = answer
        kept.put(case, answer)

    jax.answers([case for case in batch if theirs[case.number] is None], keep)
    numjet.answers(batch, lambda case, answer: ours.update({case.number: answer}))
    for case in batch:
        yield case, theirs[case.number], ours[case.number]
