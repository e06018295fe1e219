"""numjet.scipy's parts are there without an import of their own."""

from __future__ import annotations

from python_process import printed


def test_parts_load_when_they_are_used() -> None:
    script = """
import sys, numjet as nj
assert "numjet.scipy" not in sys.modules
for name in dir(nj.scipy):
    if not name.startswith("_"):
        assert f"numjet.scipy.{name}" not in sys.modules
        print(getattr(nj.scipy, name).__name__)
nj.scipy.stats.norm.pdf(0.0)
try:
    nj.scipy.constants
except AttributeError as error:
    print(error)
"""
    assert printed(script).split("\n")[:-1] == [
        "numjet.scipy.cluster",
        "numjet.scipy.fft",
        "numjet.scipy.integrate",
        "numjet.scipy.interpolate",
        "numjet.scipy.linalg",
        "numjet.scipy.ndimage",
        "numjet.scipy.optimize",
        "numjet.scipy.signal",
        "numjet.scipy.sparse",
        "numjet.scipy.spatial",
        "numjet.scipy.special",
        "numjet.scipy.stats",
        "module 'numjet.scipy' has no attribute 'constants'",
    ]
