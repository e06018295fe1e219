"""What native code knows of the interpreter's objects."""

from __future__ import annotations

import gc
import weakref

import pytest

from numjet.native import calls as fastcall_native, layout as objects


class Thing:
    pass


def test_what_is_kept_for_ever_outlives_garbage_collection() -> None:
    kept, other = objects.forever(Thing()), Thing()
    kept.other, other.kept = other, kept
    seen = weakref.ref(kept), weakref.ref(other)
    del kept, other
    gc.collect()
    assert seen[0]() is not None and seen[1]() is not None


def test_descriptions_of_native_functions_are_not_freed_before_the_functions() -> None:
    method = fastcall_native._method()
    if method is None:
        pytest.skip("another interpreter: nothing is described")
    seen = weakref.ref(method)
    fastcall_native._method.cache_clear()
    del method
    gc.collect()
    assert seen() is not None
    fastcall_native._method.cache_clear()
