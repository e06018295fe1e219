"""Handles of what is outside of Python live as long as somebody has them."""

from __future__ import annotations

import gc
import sys

import pytest

from numjet.base.handles import handles


def test_a_handle_is_given_back_once() -> None:
    freed: list[int] = []
    made = handles(freed.append)(1 << 40)
    other = (made, made)
    assert made == 1 << 40 and isinstance(made, int)
    del made
    assert not freed
    del other
    assert freed == [1 << 40] and type(freed.pop()) is not int


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="of CPython's collector")
def test_finalizers_of_a_cycle_find_handles_alive() -> None:
    freed: list[int] = []
    make = handles(lambda number: freed.append(int(number)))

    class Owner:
        def __init__(self, handle: tuple) -> None:
            self.handle, self.me = handle, self

    class User:
        def __init__(self, owner: Owner) -> None:
            self.owner = owner
            owner.me = self

        def __del__(self) -> None:
            seen.append((self.owner.handle, list(freed)))

    seen: list = []
    for k in range(3):
        owner = Owner((make(k),))
        User(owner)
        del owner
        gc.collect()
        assert seen[-1] == ((k,), [])
    seen.clear()
    gc.collect()
    assert sorted(freed) == [0, 1, 2]
