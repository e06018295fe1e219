"""The programs of the GPU benchmark, ours and JAX's, compiled for an H100 that is not here.

    PYTHONPATH=.venvs/plugins python tools/xla_beside.py [--jax PYTHON] [--rows NAMES]

Both sides write the rows of benchmarks/gpu.py as StableHLO, which XLA's GPU compiler takes through
its plugin. What comes out is counted: kernels that are started (loops count their bodies once) and
bytes of temporary memory. Programs that are alike here take the same time on the device; nothing is
timed.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_KERNEL = re.compile(r"\s+(?:ROOT )?%?[\w.\-]+ = .*? (fusion|custom-call|sort|copy|cholesky|"
                     r"triangular-solve|fft)\(")
_FUSED = re.compile(r" fusion\(.* calls=%?([\w.\-]+)")


def write(of: str, folder: Path, chosen: list[str]) -> None:
    """The modules of one side's rows, a file each."""
    sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tools")]
    rows = importlib.import_module("gpu").rows
    package, array = importlib.import_module(of), importlib.import_module(f"{of}.numpy")
    for name, make in rows(package, array, False).items():
        if chosen and not any([word in name for word in chosen]):
            continue
        function, args = make()
        if of == "numjet":
            hlo = importlib.import_module("numjet.xla.hlo")
            place = importlib.import_module("xla_compile").Place(0, "cuda")
            closed = hlo.stored(package.make_jaxpr(function)(*args))
            text = hlo.module(closed, devices=(place,)).text
        else:
            traced = package.jit(function).trace(*args)
            text = traced.lower(lowering_platforms=("cuda",)).as_text()
        (folder / f"{name}.{of}").write_text(text)


def compiled(path: Path) -> None:
    """Compile a module; its temporary bytes."""
    sys.path.insert(0, str(ROOT / "tools"))
    tool: Any = importlib.import_module("xla_compile")
    print(tool.Compiler(tool.TARGETS["h100"])(path.read_text(), 1)["temporaries"])


def kernels(text: str) -> collections.Counter[str]:
    """What a compiled module starts, by kind: the operations of its entry, branches and loops."""
    found: collections.Counter[str] = collections.Counter()
    fused, inside = set(_FUSED.findall(text)), False
    for line in text.splitlines():
        if line and not line[0].isspace() and line.endswith("{"):
            inside = line.removeprefix("ENTRY ").lstrip("%").split(" ")[0] not in fused
        elif inside and (match := _KERNEL.match(line)):
            found[match[1]] += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax", default="", help="an interpreter that has JAX")
    parser.add_argument("--rows", default="", help="parts of names, by commas")
    parser.add_argument("--write", nargs=2, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--compile", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    chosen = [word for word in given.rows.split(",") if word]
    if given.write:
        return write(given.write[0], Path(given.write[1]), chosen)
    if given.compile:
        return compiled(Path(given.compile))
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "NUMJET_PLATFORMS": "cpu"}
    with tempfile.TemporaryDirectory() as made:
        folder, me = Path(made), Path(__file__).resolve()
        for of, python in (("numjet", sys.executable), ("jax", given.jax)):
            if python:
                path = str(ROOT) if of == "numjet" else ""
                subprocess.run([python, me, "--write", of, folder, "--rows", given.rows],
                               env={**environment, "PYTHONPATH": path}, check=True)
        print("| row | side | kernels | temporaries |\n|---|---|---|---|")
        for number, module in enumerate(sorted(folder.iterdir())):
            dump = folder / f"dump{number}"  # flags end at spaces
            flags = {"XLA_FLAGS": f"--xla_dump_to={dump} --xla_dump_hlo_as_text"}
            done = subprocess.run([sys.executable, me, "--compile", module],
                                  env={**environment, **flags}, capture_output=True, text=True)
            if done.returncode:
                print(f"| {module.stem} | {module.suffix[1:]} | {done.stderr.strip()[-200:]} | |")
                continue
            (text,) = dump.glob("*after_optimizations.txt")
            found = kernels(text.read_text())
            each = ", ".join([f"{n} {kind}" for kind, n in sorted(found.items())])
            print(f"| {module.stem} | {module.suffix[1:]} | {found.total()}: {each} | "
                  f"{int(done.stdout) / 2**20:,.1f} MiB |", flush=True)


if __name__ == "__main__":
    main()
