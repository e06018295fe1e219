"""Python processes for tests of what holds for a whole process: the alias, variables."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run(*arguments: str, cwd: Path | None = None,
        **environment: str) -> subprocess.CompletedProcess:
    """A Python process with numjet on its path and `environment` over this one's variables."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_"))}
    variables |= {"PYTHONPATH": str(ROOT)} | environment
    return subprocess.run([sys.executable, *arguments], env=variables, cwd=cwd,
                          capture_output=True, text=True, timeout=120)
