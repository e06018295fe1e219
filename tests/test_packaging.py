"""What pyproject.toml promises: the packages that `make portability` tests are its lower bounds."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_lowest_versions_are_the_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds = dict(re.fullmatch(r"(\w+)>=([\d.]+)", x).groups() for x in project["dependencies"])
    text = (ROOT / "tests" / "lowest-requirements.txt").read_text()
    pinned = dict(re.findall(r"^(\w+)==([\d.]+)$", text, re.M))
    assert pinned.keys() == bounds.keys()
    for name, bound in bounds.items():
        assert re.fullmatch(rf"{re.escape(bound)}(\.0)*", pinned[name]), (name, bound)
