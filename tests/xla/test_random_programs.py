"""Programs drawn at random by the fuzzer (tools/fuzz.py --platform), on XLA's CPU plugin: their
values and derivatives are those of the CPU's own compiler."""
from __future__ import annotations

import pytest
from fuzzing import judge
from fuzzing.drawer import draw
from xla.plugin import PLATFORM, needs_plugin

pytestmark = needs_plugin


# Of the first, constants of a calling function once stood in the functions that it calls.
@pytest.mark.parametrize("seed", [20, 26, 53, 87, *range(1, 9)])
def test_random_programs(seed: int) -> None:
    difference = judge.check(draw(seed), direct=False, platform=PLATFORM)
    assert difference is None, f"{difference.way}: {difference.what}\n{draw(seed).text()}"
