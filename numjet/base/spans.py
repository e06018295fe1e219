"""Spans of time, told to whoever listens: what was traced, compiled and run, and how long it took.

Every layer may tell of one. `monitoring` listens for stages, a recording (`api.recording`) for all:
what runs often asks first whether there is a recorder. What would break it: a listener that raises.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from numjet.base.record import NamedTuple


class Span(NamedTuple):
    """`kind` is "trace", "lower" or "compile" (the stages), or "program", "step", "eager",
    "annotation", "python", which recorders alone hear of, or "cache" (a program looked up on disk:
    its name is "hit" or "miss"), which they do not; times are `time.perf_counter_ns`."""

    kind: str
    name: str
    start: int
    end: int
    thread: int
    details: dict[str, Any]


STAGES = ("trace", "lower", "compile")
# Who hears of stages, and who of everything.
listeners: list[Callable[[Span], None]] = []
recorders: list[Callable[[Span], None]] = []


class span:  # noqa: N801 - a context manager read as a statement
    """`with span("trace", name): ...` tells how long the block took, unless it raises."""

    __slots__ = ("kind", "name", "details", "start")

    def __init__(self, kind: str, name: str, **details: Any) -> None:
        self.kind, self.name, self.details = kind, name, details
        self.start = 0

    def __enter__(self) -> span:
        self.start = perf_counter_ns()
        return self

    def __exit__(self, error: Any, *_: Any) -> None:
        if error is None and (recorders or listeners):
            tell(self.kind, self.name, self.start, perf_counter_ns(), **self.details)


def during(kind: str, name: str, function: Callable, *args: Any) -> Any:
    """`function(*args)`, told of."""
    with span(kind, name):
        return function(*args)


def tell(kind: str, name: str, start: int, end: int, **details: Any) -> None:
    """Tell of a span that has ended."""
    told = Span(kind, name, start, end, threading.get_ident(), details)
    for listener in (*listeners, *recorders) if kind in STAGES else (*recorders,):
        listener(told)


def looked_up(found: bool, start: int) -> None:
    """Tell of a program that was looked up in the disk cache just now."""
    told = Span("cache", "hit" if found else "miss", start, perf_counter_ns(),
                threading.get_ident(), {})
    for listener in listeners:
        listener(told)
