"""numjet.monitoring: events that libraries record, and listeners that hear of them.

Of tracing and compiling they hear under JAX's names: `/jax/core/compile/jaxpr_trace_duration`,
`.../jaxpr_to_mlir_module_duration` and `.../backend_compile_duration`, each as a scalar (when it
began), a duration and a time span, with the function's name as `fun_name`. Of programs that are
looked up in the disk cache they hear `/jax/compilation_cache/compile_requests_use_cache` and
`.../cache_hits` or `.../cache_misses`, of the first one `.../tasks_using_cache`, and of a hit
`.../cache_retrieval_time_sec`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from numjet.base import spans
from numjet.base.spans import Span

_event_listeners: list[Callable] = []
_duration_listeners: list[Callable] = []
_span_listeners: list[Callable] = []
_scalar_listeners: list[Callable] = []


def record_event(event: str, **kwargs: Any) -> None:
    """Tell every event listener of an event.

    event: its name. kwargs: strings and numbers that go with it.

    >>> from numjet import monitoring
    >>> show = lambda event, **kwargs: print(event)
    >>> monitoring.register_event_listener(show)
    >>> monitoring.record_event("compiled")
    compiled
    >>> monitoring.unregister_event_listener(show)
    """
    for listener in list(_event_listeners):
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: Any) -> None:
    """Tell every listener of durations how long an event took.

    event: its name; duration: in seconds. kwargs: strings and numbers that go with it.

    >>> from numjet import monitoring
    >>> show = lambda event, seconds, **kwargs: print(event, seconds)
    >>> monitoring.register_event_duration_secs_listener(show)
    >>> monitoring.record_event_duration_secs("compiled", 0.5)
    compiled 0.5
    >>> monitoring.unregister_event_duration_listener(show)
    """
    for listener in list(_duration_listeners):
        listener(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: Any) -> None:
    """Tell every listener of time spans when an event began and ended.

    event: its name; start_time, end_time: in seconds. kwargs: strings and numbers that go with it.

    >>> from numjet import monitoring
    >>> show = lambda event, start, end, **kwargs: print(event, end - start)
    >>> monitoring.register_event_time_span_listener(show)
    >>> monitoring.record_event_time_span("compiled", 1.0, 3.0)
    compiled 2.0
    >>> monitoring.unregister_event_time_span_listener(show)
    """
    for listener in list(_span_listeners):
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: Any) -> None:
    """Tell every listener of scalars a value.

    event: its name; value: a number. kwargs: strings and numbers that go with it.

    >>> from numjet import monitoring
    >>> show = lambda event, value, **kwargs: print(event, value)
    >>> monitoring.register_scalar_listener(show)
    >>> monitoring.record_scalar("size", 5)
    size 5
    >>> monitoring.unregister_scalar_listener(show)
    """
    for listener in list(_scalar_listeners):
        listener(event, value, **kwargs)


def register_event_listener(callback: Callable) -> None:
    """Have `callback(event, **kwargs)` called for each event that is recorded.

    callback: a function; it is called until `unregister_event_listener` takes it away.

    >>> from numjet import monitoring
    >>> show = lambda event, **kwargs: print(event)
    >>> monitoring.register_event_listener(show)
    >>> monitoring.record_event("compiled")
    compiled
    >>> monitoring.unregister_event_listener(show)
    """
    _event_listeners.append(callback)


def register_event_duration_secs_listener(callback: Callable) -> None:
    """Have `callback(event, seconds, **kwargs)` called for each duration that is recorded.

    callback: a function; it is called until `unregister_event_duration_listener` takes it away.

    >>> from numjet import monitoring
    >>> show = lambda event, seconds, **kwargs: print(event, seconds)
    >>> monitoring.register_event_duration_secs_listener(show)
    >>> monitoring.record_event_duration_secs("compiled", 0.5)
    compiled 0.5
    >>> monitoring.unregister_event_duration_listener(show)
    """
    _duration_listeners.append(callback)


def register_event_time_span_listener(callback: Callable) -> None:
    """Have `callback(event, start, end, **kwargs)` called for each time span that is recorded.

    callback: a function; it is called until `unregister_event_time_span_listener` takes it away.

    >>> from numjet import monitoring
    >>> show = lambda event, start, end, **kwargs: print(event, end - start)
    >>> monitoring.register_event_time_span_listener(show)
    >>> monitoring.record_event_time_span("compiled", 1.0, 3.0)
    compiled 2.0
    >>> monitoring.unregister_event_time_span_listener(show)
    """
    _span_listeners.append(callback)


def register_scalar_listener(callback: Callable) -> None:
    """Have `callback(event, value, **kwargs)` called for each scalar that is recorded.

    callback: a function; it is called until `unregister_scalar_listener` takes it away.

    >>> from numjet import monitoring
    >>> show = lambda event, value, **kwargs: print(event, value)
    >>> monitoring.register_scalar_listener(show)
    >>> monitoring.record_scalar("size", 5)
    size 5
    >>> monitoring.unregister_scalar_listener(show)
    """
    _scalar_listeners.append(callback)


def unregister_event_listener(callback: Callable) -> None:
    """Forget a listener of events.

    callback: what `register_event_listener` took. Raises an exception where it is no listener.

    >>> from numjet import monitoring
    >>> show = lambda event, **kwargs: print(event)
    >>> monitoring.register_event_listener(show)
    >>> monitoring.record_event("compiled")
    compiled
    >>> monitoring.unregister_event_listener(show)
    """
    _forget(_event_listeners, callback)


def unregister_event_duration_listener(callback: Callable) -> None:
    """Forget a listener of durations.

    callback: what `register_event_duration_secs_listener` took. Raises an exception where it is no
    listener.

    >>> from numjet import monitoring
    >>> show = lambda event, seconds, **kwargs: print(event, seconds)
    >>> monitoring.register_event_duration_secs_listener(show)
    >>> monitoring.record_event_duration_secs("compiled", 0.5)
    compiled 0.5
    >>> monitoring.unregister_event_duration_listener(show)
    """
    _forget(_duration_listeners, callback)


def unregister_event_time_span_listener(callback: Callable) -> None:
    """Forget a listener of time spans.

    callback: what `register_event_time_span_listener` took. Raises an exception where it is no
    listener.

    >>> from numjet import monitoring
    >>> show = lambda event, start, end, **kwargs: print(event, end - start)
    >>> monitoring.register_event_time_span_listener(show)
    >>> monitoring.record_event_time_span("compiled", 1.0, 3.0)
    compiled 2.0
    >>> monitoring.unregister_event_time_span_listener(show)
    """
    _forget(_span_listeners, callback)


def unregister_scalar_listener(callback: Callable) -> None:
    """Forget a listener of scalars.

    callback: what `register_scalar_listener` took. Raises an exception where it is no listener.

    >>> from numjet import monitoring
    >>> show = lambda event, value, **kwargs: print(event, value)
    >>> monitoring.register_scalar_listener(show)
    >>> monitoring.record_scalar("size", 5)
    size 5
    >>> monitoring.unregister_scalar_listener(show)
    """
    _forget(_scalar_listeners, callback)


_STAGES = {
    "trace": "/jax/core/compile/jaxpr_trace_duration",
    "lower": "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "compile": "/jax/core/compile/backend_compile_duration",
}


def _stage(span: Span) -> None:
    """Tell the listeners of a stage of compiling."""
    if not (_event_listeners or _duration_listeners or _span_listeners or _scalar_listeners):
        return
    seconds = 1e-9 * (span.end - span.start)
    if span.kind == "cache":
        _looked_up(span.name == "hit", seconds)
        return
    end, event = time.time() - 1e-9 * (time.perf_counter_ns() - span.end), _STAGES[span.kind]
    record_scalar(event, end - seconds, fun_name=span.name)
    record_event_duration_secs(event, seconds, fun_name=span.name)
    record_event_time_span(event, end - seconds, end, fun_name=span.name)


_looked = False  # whether listeners were told that this process uses the cache


def _looked_up(found: bool, seconds: float) -> None:
    """Tell the listeners of a program that was looked up on disk."""
    global _looked
    where = "/jax/compilation_cache/"
    if not _looked:
        _looked = True
        record_event(where + "tasks_using_cache")
    record_event(where + "compile_requests_use_cache")
    record_event(where + ("cache_hits" if found else "cache_misses"))
    if found:
        record_event_duration_secs(where + "cache_retrieval_time_sec", seconds)


spans.listeners.append(_stage)


def _forget(listeners: list[Callable], callback: Callable) -> None:
    if callback not in listeners:
        raise ValueError(f"monitoring: {callback!r} is not registered for this kind of event.")
    listeners.remove(callback)


def clear_event_listeners() -> None:
    """Forget all listeners.

    >>> from numjet import monitoring
    >>> monitoring.clear_event_listeners()
    """
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


def __dir__() -> list[str]:
    return [*__all__]
