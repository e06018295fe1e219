"""numjet.monitoring: events that libraries record, and listeners that hear of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_event_listeners: list[Callable] = []
_duration_listeners: list[Callable] = []


def record_event(event: str, **kwargs: Any) -> None:
    """Tell every event listener of `event`."""
    for listener in _event_listeners:
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: Any) -> None:
    """Tell every duration listener that `event` took `duration` seconds."""
    for listener in _duration_listeners:
        listener(event, duration, **kwargs)


def register_event_listener(callback: Callable) -> None:
    """Have `callback(event, **kwargs)` called for each event."""
    _event_listeners.append(callback)


def register_event_duration_secs_listener(callback: Callable) -> None:
    """Have `callback(event, seconds, **kwargs)` called for each duration."""
    _duration_listeners.append(callback)


def clear_event_listeners() -> None:
    """Forget all listeners."""
    _event_listeners.clear()
    _duration_listeners.clear()


__all__ = [
    "clear_event_listeners",
    "record_event",
    "record_event_duration_secs",
    "register_event_duration_secs_listener",
    "register_event_listener",
]
