"""Tests on devices of XLA: products are as exact as the native backend's there, whatever the
device's default is."""
from __future__ import annotations

from collections.abc import Iterator

import pytest

from numjet.base import config


@pytest.fixture(autouse=True)
def exact_products() -> Iterator[None]:
    with config.default_matmul_precision("highest"):
        yield
