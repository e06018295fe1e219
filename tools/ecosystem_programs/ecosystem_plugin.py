"""A pytest plugin for tools/ecosystem.py: each test's processor time, and a sample of the tests.

The property `processor_seconds` of a test in the JUnit file is what the process, with all of its
threads, computed in the test's setup, body and teardown: seconds by the clock on the wall of two
runs compare only where nothing else runs on the machine. With `--sample N` the N tests whose names
have the smallest digests run: the same ones for both systems and every time, none chosen by hand.
"""

import hashlib
import time

import pytest


def digest(name: str) -> bytes:
    """What names are ordered by."""
    return hashlib.sha256(name.encode()).digest()


def pytest_addoption(parser):
    parser.addoption("--sample", type=int, default=0, help="run so many of the tests")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    count = config.getoption("--sample")
    if count:
        # The folder is another one in each environment, the file's name is not.
        ordered = sorted(items, key=lambda item: digest(item.nodeid.rpartition("/")[2]))
        config.hook.pytest_deselected(items=ordered[count:])
        chosen = set(ordered[:count])
        items[:] = [item for item in items if item in chosen]


BEGAN = pytest.StashKey[float]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    item.stash[BEGAN] = time.process_time()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item, call):
    if call.when == "teardown":
        seconds = time.process_time() - item.stash.get(BEGAN, time.process_time())
        item.user_properties.append(("processor_seconds", f"{seconds:.4f}"))
