"""What a test's reference needs: marks that leave tests out with older packages.

The package works with the oldest versions that pyproject.toml admits; some references of the tests
do not, such as functions that SciPy did not have yet, or gave wrong values.
"""

from __future__ import annotations

from importlib.metadata import version

import pytest


def needs(package: str, least: str) -> pytest.MarkDecorator:
    """Leave a test out where `package` is older than `least`, such as "1.15"."""
    numbers = [int(n) for n in version(package).split(".")[:2]]
    old = numbers < [int(n) for n in least.split(".")]
    return pytest.mark.skipif(old, reason=f"the reference is {package} {least} or newer")
