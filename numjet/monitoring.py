"""numjet.monitoring: events that libraries record, and listeners that hear of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_event_listeners: list[Callable] = []
_duration_listeners: list[Callable] = []
_span_listeners: list[Callable] = []
_scalar_listeners: list[Callable] = []


def record_event(event: str, **kwargs: Any) -> None:
    """Tell every event listener of `event`."""
    for listener in list(_event_listeners):
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: Any) -> None:
    """Tell every duration listener that `event` took `duration` seconds."""
    for listener in list(_duration_listeners):
        listener(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: Any) -> None:
    """Tell every listener of time spans when `event` began and ended, in seconds."""
    for listener in list(_span_listeners):
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: Any) -> None:
    """Tell every listener of scalars the value of `event`."""
    for listener in list(_scalar_listeners):
        listener(event, value, **kwargs)


def register_event_listener(callback: Callable) -> None:
    """Have `callback(event, **kwargs)` called for each event."""
    _event_listeners.append(callback)


def register_event_duration_secs_listener(callback: Callable) -> None:
    """Have `callback(event, seconds, **kwargs)` called for each duration."""
    _duration_listeners.append(callback)


def register_event_time_span_listener(callback: Callable) -> None:
    """Have `callback(event, start, end, **kwargs)` called for each time span."""
    _span_listeners.append(callback)


def register_scalar_listener(callback: Callable) -> None:
    """Have `callback(event, value, **kwargs)` called for each scalar."""
    _scalar_listeners.append(callback)


def unregister_event_listener(callback: Callable) -> None:
    """Forget a listener of events."""
    _forget(_event_listeners, callback)


def unregister_event_duration_listener(callback: Callable) -> None:
    """Forget a listener of durations."""
    _forget(_duration_listeners, callback)


def unregister_event_time_span_listener(callback: Callable) -> None:
    """Forget a listener of time spans."""
    _forget(_span_listeners, callback)


def unregister_scalar_listener(callback: Callable) -> None:
    """Forget a listener of scalars."""
    _forget(_scalar_listeners, callback)


def _forget(listeners: list[Callable], callback: Callable) -> None:
    if callback not in listeners:
        raise ValueError(f"monitoring: {callback!r} is not registered for this kind of event.")
    listeners.remove(callback)


def clear_event_listeners() -> None:
    """Forget all listeners."""
    for listeners in (_event_listeners, _duration_listeners, _span_listeners, _scalar_listeners):
        listeners.clear()


__all__ = [
    "clear_event_listeners",
    "record_event",
    "record_event_duration_secs",
    "record_event_time_span",
    "record_scalar",
    "register_event_duration_secs_listener",
    "register_event_listener",
    "register_event_time_span_listener",
    "register_scalar_listener",
    "unregister_event_duration_listener",
    "unregister_event_listener",
    "unregister_event_time_span_listener",
    "unregister_scalar_listener",
]
