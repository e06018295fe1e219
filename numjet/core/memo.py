"""What operations did for operands of given avals, remembered: every learned shortcut is a `Memo`.

For every layer. A memo is a dict with a name and a bound: it is read as a dict is, at a dict's
speed, and the oldest quarter goes when it is full. All together are bounded too, by `TOTAL`
entries, so that programs of ever new shapes need no more memory than the first thousands did.
`remembered` does the same for what a function of plain values gives, each bounded by itself.
`numjet.debug.memos()` lists them, `numjet.clear_caches()` empties them. What would break it: an
entry that is needed for more than speed, and a value that anybody finds by an address alone.
"""

from __future__ import annotations

import functools
import itertools
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from numjet.base.record import NamedTuple

# Entries of one memo, and of all. An operation on one new shape leaves some 30 of 0.3 to 1.5 KB.
BOUND = 2048
TOTAL = 40_000
# So many entries are learned between two looks at the total.
_BETWEEN = 1024
_SAMPLE = 32  # entries whose size is looked at

_lasting: list[Memo] = []  # of operations, which live as long as the process
# By identity; not a WeakSet, which cannot be read while other threads add to it.
_passing: dict[int, weakref.ref[Memo]] = {}
_functions: list[tuple[str, int, Any]] = []  # name, bound, what `functools.lru_cache` made
_clearing: list[Callable[[], None]] = []
_clock = itertools.count(1)
_F = TypeVar("_F", bound=Callable)


class Memo(dict):
    """A bounded dict. `learned` and `dropped` count entries; `hits`, where somebody counts them,
    how often one was of use (None: reading takes less time than counting would)."""

    __slots__ = ("__weakref__", "bound", "dropped", "hits", "learned", "name")

    def __init__(
        self, name: str, bound: int = BOUND, *, passing: bool = False, counted: bool = False
    ) -> None:
        self.name, self.bound = name, bound
        self.learned = self.dropped = 0
        self.hits: int | None = 0 if counted else None
        if passing:
            key = id(self)
            _passing[key] = weakref.ref(self, lambda _: _passing.pop(key, None))
        else:
            _lasting.append(self)

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __setitem__(self, key: Any, value: Any) -> None:
        if len(self) >= self.bound and key not in self:
            self.drop(self.bound // 4 + 1)
        dict.__setitem__(self, key, value)
        self.learned += 1  # `count`, written out: programs are traced with hundreds of them
        if not next(_clock) % _BETWEEN:
            _bound_all()

    def count(self) -> None:
        """Count an entry that was learned."""
        self.learned += 1
        if not next(_clock) % _BETWEEN:
            _bound_all()

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """The value of `key`, which becomes `default` if there is none."""
        if key not in self:
            self[key] = default
        return self.get(key, default)

    def used(self) -> None:
        """Count a use of an entry."""
        if self.hits is not None:
            self.hits += 1

    def drop(self, count: int) -> None:
        """Forget the oldest entries."""
        for key in list(self.keys())[:count]:  # a view is read at once where there is no lock
            if self.pop(key, self) is not self:
                self.dropped += 1


class WeighedMemo(Memo):
    """A memo of large values: bounded by the bytes that they take, too.

    `weigh` estimates a value's; where all together are above `most`, the oldest quarter goes.
    """

    __slots__ = ("most", "weigh", "weight")

    def __init__(self, name: str, bound: int, most: int, weigh: Callable[[Any], int]) -> None:
        super().__init__(name, bound)
        self.most, self.weigh, self.weight = most, weigh, 0

    def __setitem__(self, key: Any, value: Any) -> None:
        before = self.get(key, self)  # another thread may forget it at any time
        if before is not self:
            self.weight -= self.weigh(before)
        super().__setitem__(key, value)
        self.weight += self.weigh(value)
        while self.weight > self.most and len(self) > 1:
            self.drop(len(self) // 4 + 1)

    def drop(self, count: int) -> None:
        super().drop(count)
        self.weight = sum(map(self.weigh, list(self.values())))


class FunctionMemo(Memo):
    """What was found of functions, forgotten with them: a dict of entries for each."""

    __slots__ = ()

    def entries(self, fun: Any) -> dict | None:
        """The entries of `fun`; None where it cannot be told from others or known to be gone."""
        if isinstance(fun, types.MethodType):  # made anew each time that it is asked for
            return None
        try:
            key = weakref.ref(fun, self._gone)
            found = self.get(key)
            if found is None:
                found = self[key] = {}
        except TypeError:
            return None
        return found

    def _gone(self, key: weakref.ref) -> None:
        self.pop(key, None)


def remembered(name: str, bound: int = BOUND) -> Callable[[_F], _F]:
    """A decorator: the results of a function of values with a hash are kept for `bound` arguments,
    those that were used last."""

    def wrap(function: _F) -> _F:
        made: Any = functools.lru_cache(bound)(function)
        _functions.append((name, bound, made))
        return made

    return wrap


def memos() -> Iterator[Memo]:
    """All memos that there are."""
    yield from list(_lasting)
    yield from [memo for found in list(_passing.values()) if (memo := found()) is not None]


def _bound_all() -> None:
    """Let the largest memos forget half of what they know while all know more than TOTAL."""
    found = sorted(memos(), key=len)
    total = sum(map(len, found))
    while total > TOTAL and found:
        largest = found.pop()
        total -= len(largest) // 2
        largest.drop(len(largest) // 2)


def on_clear(action: Callable[[], None]) -> Callable[[], None]:
    """Call `action` when everything is forgotten: for what is learned elsewhere than in memos."""
    _clearing.append(action)
    return action


def clear() -> None:
    """Forget everything."""
    for memo in memos():
        memo.drop(len(memo))
    for *_, function in list(_functions):
        function.cache_clear()
    for action in list(_clearing):
        action()


class MemoInfo(NamedTuple):
    """What a memo holds: entries, its bound, uses (None: not counted), bytes (an estimate; 0 for
    functions whose results are remembered, which nobody can look at)."""

    name: str
    size: int
    bound: int
    hits: int | None
    learned: int
    dropped: int
    bytes: int


def info() -> list[MemoInfo]:
    """The memos that hold something, those with most bytes first."""
    found = [
        MemoInfo(m.name, len(m), m.bound, m.hits, m.learned, m.dropped, _bytes(m))
        for m in memos()
        if m
    ]
    for name, bound, function in list(_functions):
        hits, misses, _, size = function.cache_info()
        if size:
            found.append(MemoInfo(name, size, bound, hits, misses, misses - size, 0))
    return sorted(found, key=lambda i: -i.bytes)


def _bytes(memo: Memo) -> int:
    """The table, and what some entries hold beside what is shared by the whole package, scaled."""
    items = list(itertools.islice(list(memo.items()), _SAMPLE))
    if not items:
        return sys.getsizeof(memo)
    sample = sum([_size(part, 3) for item in items for part in item])
    return sys.getsizeof(memo) + sample * len(memo) // len(items)


def _size(x: Any, depth: int) -> int:
    if x is None or type(x) in (bool, type) or callable(x) and not hasattr(x, "__self__"):
        return 0
    found = sys.getsizeof(x)
    if depth and type(x) in (tuple, list):
        found += sum([_size(part, depth - 1) for part in x])
    elif depth and type(x) is dict:
        found += sum([_size(part, depth - 1) for item in x.items() for part in item])
    return found
