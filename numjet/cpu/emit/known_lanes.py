"""Vectors whose lanes are at places that are known: picked from the few vectors they lie in.

A vector that holds parts of several short rows (`passes/flat_rows.py`) reads neither one element
after the other nor at a constant step, but where each lane is, counted from the first one, is a
constant: whole vectors are read, and shuffled, instead of element after element. Only the emitter
uses it. What would break it: places further apart than `near` allows, of which too much is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from numjet.cpu.builder.builder import Builder, Value

# Vectors that are read for one.
_MOST = 4


def near(places: Sequence[int], lanes: int) -> bool:
    """Whether so few vectors hold all places that picking from them is worth it."""
    return max(places) - min(places) < _MOST * lanes


def pick(b: Builder, places: Sequence[int], read: Callable[[int, int], Value]) -> Value:
    """A lane for each place; `read(first, count)` reads so many elements from a place on, none of
    them before the first place or behind the last one."""
    lanes, low = len(places), min(places)
    window = max(places) - low + 1
    size = min(lanes, 1 << (window.bit_length() - 1))
    if size == 1:
        return read(low, 1)
    starts = [*range(0, window - size, size), window - size]
    of = [min([k for k, s in enumerate(starts) if s <= p - low < s + size]) for p in places]
    pieces = [read(low + start, size) for start in starts]
    at = [p - low - starts[k] for p, k in zip(places, of, strict=True)]
    found = b.shuffle(pieces[0], pieces[1] if len(pieces) > 1 else None, [
        -1 if k > 1 else place + k * size for place, k in zip(at, of, strict=True)
    ])  # fmt: skip
    for k, piece in enumerate(pieces[2:], 2):
        found = b.shuffle(found, piece, [
            lanes + place if its == k else lane if its < k else -1
            for lane, (place, its) in enumerate(zip(at, of, strict=True))
        ])  # fmt: skip
    return found
