"""The README's example runs as it stands."""
from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def test_the_example_runs():
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    scope: dict = {}
    exec(compile(code, str(README), "exec"), scope)
    assert scope["value"].shape == () and scope["gradient"].shape == (3, 2)
    assert 0 < float(scope["value"]) <= 1
