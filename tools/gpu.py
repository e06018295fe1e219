"""All that is to be seen on a GPU, in one go: `make gpu`.

    python tools/gpu.py [PLATFORM] [--jax PYTHON] [--out FOLDER] [--jobs N] [--minutes M]

Says what is there (`numjet.doctor`); runs the tests of XLA's devices, the acceptance file and the
demo side by side on PLATFORM (cuda); then, with the device to itself, `benchmarks/gpu.py` beside
JAX under PYTHON. Each step writes its output to FOLDER and is ended when it exceeds its share of M
minutes, the benchmark when all of them are over; the last lines say how each went. numjet is taken
from this checkout, so that the interpreter needs its dependencies, pytest, pytest-xdist and
hypothesis, but no installation.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ACCEPTANCE = Path(os.environ.get("ACCEPTANCE") or
                  ROOT.parent / "shared" / "acceptance" / "seed_examples.py")
# Shares of the time that the first steps may take; what they leave is the benchmark's.
DOCTOR, BESIDE = 0.1, 0.5


class Step:
    """A process that writes to a file."""

    def __init__(self, name: str, arguments: Sequence[object], folder: Path, seconds: float,
                 **environment: str) -> None:  # fmt: skip
        self.name, self.path, self.start = name, folder / f"{name}.log", time.monotonic()
        self.until = self.start + seconds
        self._process = subprocess.Popen(
            [sys.executable, *map(str, arguments)], cwd=ROOT, stderr=subprocess.STDOUT,
            stdout=self.path.open("w"), env={**os.environ, "PYTHONPATH": str(ROOT),
                                             "PYTHONUNBUFFERED": "1", **environment})

    def end(self) -> str:
        """Wait for it: a line that says how it went."""
        try:
            code = self._process.wait(max(0, self.until - time.monotonic()))
            how = "passed" if code == 0 else f"failed with {code}"
        except subprocess.TimeoutExpired:
            self._process.terminate()
            self._process.wait()
            how = "took too long"
        seconds = time.monotonic() - self.start
        last = [line for line in self.path.read_text(errors="replace").splitlines() if line.strip()]
        return f"{self.name}: {how} in {seconds:.0f} s: {last[-1] if last else 'no output'}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("platform", nargs="?", default="cuda")
    parser.add_argument("--jax", default="", help="an interpreter that has JAX")
    parser.add_argument("--out", default="build/gpu")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) * 3 // 4))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    folder = Path(given.out)
    folder.mkdir(parents=True, exist_ok=True)
    seconds, start, told = given.minutes * 60, time.monotonic(), []

    doctor = Step("doctor", ["-m", "numjet.doctor"], folder, DOCTOR * seconds)
    told.append(doctor.end())
    print(doctor.path.read_text(), flush=True)
    here = {"NUMJET_PLATFORMS": given.platform}
    exact = {**here, "NUMJET_DEFAULT_MATMUL_PRECISION": "highest"}
    steps = [Step("tests", ["-m", "pytest", "-q", "-n", given.jobs, "tests/xla", "--tb=short", "-p",
                            "no:cacheprovider", "-W", "default"],
                  folder, BESIDE * seconds, NUMJET_TEST_PLATFORM=given.platform),
             Step("demo", ["examples/digits.py", "--out", folder / "digits.png"], folder,
                  BESIDE * seconds, **here)]
    if ACCEPTANCE.exists():
        steps.append(Step("acceptance", [ACCEPTANCE, "numjet"], folder, BESIDE * seconds, **exact))
    for step in steps:
        told.append(step.end())
        print(told[-1], flush=True)
    failed = [line for line in (folder / "tests.log").read_text(errors="replace").splitlines()
              if line.startswith(("FAILED", "ERROR"))]
    print("\n".join([line[:200] for line in failed[:60]]), flush=True)
    jax = ["--jax", given.jax] if given.jax else []
    benchmark = Step("benchmark", ["benchmarks/gpu.py", given.platform, "--rounds", given.rounds,
                                   "--out", folder / "gpu.json", *jax],
                     folder, seconds - (time.monotonic() - start))
    told.append(benchmark.end())
    print(benchmark.path.read_text(), "\n".join(told), sep="\n", flush=True)
    return int(any([": passed in" not in line for line in told]))


if __name__ == "__main__":
    sys.exit(main())
