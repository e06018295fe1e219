"""Python processes for tests of what holds for a whole process: the alias, variables."""
from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# This checkout before what this process has on its path by a variable (tools/arm.py: packages).
PATH = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


def run(*arguments: str, cwd: Path | None = None,
        **environment: str) -> subprocess.CompletedProcess:
    """A Python process with numjet on its path and `environment` over this one's variables."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_"))}
    variables |= {"PYTHONPATH": PATH} | environment
    return subprocess.run([sys.executable, *arguments], env=variables, cwd=cwd,
                          capture_output=True, text=True, timeout=300)


def printed(text: str, *arguments: str, timeout: float = 120, **environment: str) -> str:
    """What a program prints, of which a warning or an exception is a failure of the test.

    text: the program, which may be indented. environment: over this process's variables, all of
    which it has.
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(text), *arguments],
        env=os.environ | environment, capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


# For such programs: a queue's thread calls a Python function.
SUBMIT = """
import ctypes

def submit(queue, function):
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)
    entry = kind(lambda *_: 0 * bool(function()))
    return queue.submit(ctypes.cast(entry, ctypes.c_void_p).value, (), entry)
"""
