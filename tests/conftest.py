"""What every test shares: a cache of its own, Hypothesis's settings, and the markers' meaning."""
from __future__ import annotations

import atexit
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator

import pytest
from cpu_devices import cpu_devices
from hypothesis import HealthCheck, settings

# Set before numjet is imported: tests neither read nor fill the user's cache of compiled objects.
_cache = tempfile.mkdtemp(prefix="numjet-test-cache-")
os.environ.setdefault("NUMJET_CACHE_DIR", _cache)
atexit.register(shutil.rmtree, _cache, ignore_errors=True)  # after what numjet does at the end

# Machines that run tests are shared, so a slow example says nothing.
settings.register_profile("numjet", deadline=None, max_examples=60, print_blob=True,
                          suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("numjet")


@pytest.fixture
def eight_devices() -> Iterator[None]:
    """Eight virtual devices while a test runs."""
    with cpu_devices(8):
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every", type=int, default=1, help="run one test in so many, evenly spread")


def pytest_configure(config: pytest.Config) -> None:
    if platform.machine() == "aarch64":
        # NumPy's products raise flags there that no number in them does.
        config.addinivalue_line("filterwarnings", "ignore:.*encountered in matmul:RuntimeWarning")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items[:] = items[:: config.getoption("--every")]
    no_gpu = not (os.path.exists("/dev/nvidia0") or os.path.exists("/dev/kfd"))
    for item in items:
        if no_gpu and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="This machine has no GPU."))
