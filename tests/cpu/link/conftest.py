"""What tests of the cache and the linker share."""
from __future__ import annotations

import pytest

from numjet.cpu.link import link


@pytest.fixture(autouse=True)
def own_store_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process's own store writes nothing meanwhile: a thread of its writes what tests before
    have compiled, and tests here replace functions of `os` by such as fail."""
    store = link._store()
    store.flush()
    monkeypatch.setattr(store, "_writable", False)
