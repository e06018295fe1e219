"""numjet.profiler: names for profilers. Recording a trace is left to profilers of the system."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from numjet.api.names import named_call

_REMEDY = (
    "numjet records no traces of its own. Use a profiler of the system (perf, py-spy, cProfile); "
    "jit(f).lower(x).compile().as_text() shows the code, config log_compiles what is compiled."
)


class TraceAnnotation(contextlib.ContextDecorator):
    """A name for a block of code; it changes nothing that runs."""

    def __init__(self, name: str, **_: Any) -> None:
        self.name = name

    def __enter__(self) -> TraceAnnotation:
        return self

    def __exit__(self, *exc: Any) -> None:
        return None


class StepTraceAnnotation(TraceAnnotation):
    """A name for one step of training; it changes nothing that runs."""


def annotate_function(fun: Callable, name: str | None = None, **_: Any) -> Callable:
    """`fun` under a name."""
    return named_call(fun, name=name)


def trace(*_: Any, **__: Any) -> Any:
    """Not supported. Raises NotImplementedError."""
    raise NotImplementedError(f"profiler.trace: {_REMEDY}")


def start_trace(*_: Any, **__: Any) -> None:
    """Not supported. Raises NotImplementedError."""
    raise NotImplementedError(f"profiler.start_trace: {_REMEDY}")


def stop_trace() -> None:
    """Not supported. Raises RuntimeError, since no trace was started."""
    raise RuntimeError(f"profiler.stop_trace: no trace was started. {_REMEDY}")


__all__ = [
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "start_trace",
    "stop_trace",
    "trace",
]
