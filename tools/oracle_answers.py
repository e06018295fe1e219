"""Asks JAX for the answers that the tests compare with, and keeps them in tests/answers.

    python tools/oracle_answers.py [TEST_FILE ...]

Without files, all modules of tests that use the oracle. Each runs in a process of its own, and its
file of answers is written anew, so that none stays that no test asks for. Ends with 1 where a test
failed; `git diff --stat tests/answers` shows what changed.
"""
from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ANSWERS = ROOT / "tests/answers"


def modules() -> list[Path]:
    """The modules of tests that import the oracle, or a helper that does."""
    helpers = {"oracle"}
    texts = {p: p.read_text() for p in sorted((ROOT / "tests").rglob("*.py"))}

    def uses(path: Path) -> bool:
        names = re.findall(r"^ *(?:from|import) (\w+)", texts[path], re.M)
        return not helpers.isdisjoint(names)

    while found := {p.stem for p in texts if uses(p)} - helpers:
        helpers |= found
    return [p for p in texts if p.name.startswith("test_") and uses(p)]


def kept_in(module: Path) -> Path:
    return (ANSWERS / module.relative_to(ROOT / "tests")).with_suffix(".txt")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="modules of tests; none: all")
    asked = [name.resolve() for name in parser.parse_args().files]
    chosen = asked or modules()
    if not asked:
        for file in set(ANSWERS.rglob("*.txt")) - {kept_in(module) for module in chosen}:
            file.unlink()
    failed = []
    for module in chosen:
        file = kept_in(module)
        file.unlink(missing_ok=True)
        name = module.relative_to(ROOT)
        print(f"{name}:", flush=True)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "--no-header", str(name)],
            cwd=ROOT, env={**os.environ, "NUMJET_ORACLE_ANSWERS": "keep"})  # fmt: skip
        if done.returncode:
            failed.append(str(name))
        if file.exists():
            lines = sorted({x[:24]: x for x in file.read_text().splitlines()}.values())
            file.write_text("".join(line + "\n" for line in lines))
            print(f"    {len(lines)} answers, {file.stat().st_size} bytes", flush=True)
    print("failed: " + ", ".join(failed) if failed else "no failures")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
