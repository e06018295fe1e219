"""The registers that a test's code is for: those of AVX-512 and of AVX2, as the processor has them.
"""
from __future__ import annotations

from collections.abc import Iterator

import pytest
import x86_agree

from numjet.base import config


@pytest.fixture(autouse=True)
def wanted() -> Iterator[None]:
    """Builders write functions as for the direct generator, also where tests run by LLVM alone."""
    with config.direct_code(True):
        yield


@pytest.fixture(params=x86_agree.WIDTHS)
def vector_bytes(request: pytest.FixtureRequest) -> Iterator[int]:
    """Have `x86_agree.generated` make code for vectors of so many bytes."""
    before = x86_agree.chosen[:]
    x86_agree.chosen[:] = [request.param]
    yield request.param
    x86_agree.chosen[:] = before
