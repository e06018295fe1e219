"""numjet.profiler: names for profilers. Recording a trace is left to profilers of the system."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from numjet.api.devices import devices
from numjet.api.names import named_call
from numjet.process import live_arrays

_REMEDY = (
    "numjet records no traces of its own. Use a profiler of the system (perf, py-spy, cProfile); "
    "jit(f).lower(x).compile().as_text() shows the code, config log_compiles what is compiled."
)


class TraceAnnotation(contextlib.ContextDecorator):
    """A name for a block of code; it changes nothing that runs."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        self.name, self.metadata = name, kwargs

    def __enter__(self) -> TraceAnnotation:
        return self

    def __exit__(self, *exc: Any) -> None:
        return None


class StepTraceAnnotation(TraceAnnotation):
    """A name for one step of training; it changes nothing that runs."""


class ProfileOptions:
    """What a recording would hold; recordings are refused."""

    def __init__(self) -> None:
        self.host_tracer_level, self.python_tracer_level = 2, 0
        self.duration_ms, self.start_timestamp_ns = 0, 0
        self.enable_hlo_proto = self.include_dataset_ops = True
        self.raise_error_on_start_failure = False
        self.advanced_configuration: dict[str, Any] = {}


def annotate_function(
    func: Callable, name: str | None = None, **decorator_kwargs: Any
) -> Callable:
    """`func` under a name, for recordings; it computes the same.

    func: any function. name: its own by default. decorator_kwargs: kept by the annotation.

    >>> from numjet import profiler
    >>> profiler.annotate_function(lambda x: x + 1, name="step")(1)
    2
    """
    return named_call(func, name=name)


def trace(
    log_dir: Any,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Any:
    """Not there: raises NotImplementedError. `Piece`s of `debug.eager` and `log_compiles` show what
    runs.

    log_dir, create_perfetto_link, create_perfetto_trace, profiler_options: what JAX's takes.

    >>> from numjet import profiler
    >>> profiler.trace("log")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    raise NotImplementedError(f"profiler.trace: {_REMEDY}")


def start_trace(
    log_dir: Any,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Not there: raises NotImplementedError. `Piece`s of `debug.eager` and `log_compiles` show what
    runs.

    log_dir, create_perfetto_link, create_perfetto_trace, profiler_options: what JAX's takes.

    >>> from numjet import profiler
    >>> profiler.start_trace("log")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    raise NotImplementedError(f"profiler.start_trace: {_REMEDY}")


def stop_trace() -> None:
    """Not there: raises RuntimeError, since no trace was started.

    >>> from numjet import profiler
    >>> profiler.stop_trace()  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    RuntimeError: ...
    """
    raise RuntimeError(f"profiler.stop_trace: no trace was started. {_REMEDY}")


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Not there: raises NotImplementedError. `Piece`s of `debug.eager` and `log_compiles` show what
    runs.

    port, requires_backend: what JAX's takes.

    >>> from numjet import profiler
    >>> profiler.start_server(9999)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    raise NotImplementedError(f"profiler.start_server: {_REMEDY}")


def stop_server() -> None:
    """Not there: raises ValueError, since no server was started.

    >>> from numjet import profiler
    >>> profiler.stop_server()  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    ValueError: ...
    """
    raise ValueError(f"profiler.stop_server: no server was started. {_REMEDY}")


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Not there: raises NotImplementedError. `Piece`s of `debug.eager` and `log_compiles` show what
    runs.

    pid, port: what JAX's takes.

    >>> from numjet import profiler
    >>> profiler.register_subprocess(1, 2)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    raise NotImplementedError(f"profiler.register_subprocess: {_REMEDY}")


def device_memory_profile(backend: str | None = None) -> bytes:
    """The live arrays as text, a line each: bytes, shape and dtype, largest first.

    backend: a platform, the default one unless given. Result: bytes; pprof's format, which JAX
    writes, is not there.

    >>> from numjet import profiler
    >>> isinstance(profiler.device_memory_profile(), bytes)
    True
    """
    devices(backend)
    lines = sorted(((x.nbytes, x.aval.str_short()) for x in live_arrays(backend)), reverse=True)
    total = sum(n for n, _ in lines)
    text = [f"{total} bytes in {len(lines)} arrays", *[f"{n} {what}" for n, what in lines]]
    return ("\n".join(text) + "\n").encode()


def save_device_memory_profile(filename: Any, backend: str | None = None) -> None:
    """Write `device_memory_profile` to a file.

    filename: a path. backend: a platform, the default one unless given.

    >>> from numjet import profiler
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     profiler.save_device_memory_profile(file.name)
    """
    with open(filename, "wb") as file:
        file.write(device_memory_profile(backend))


class _Recorded:
    """What a recording holds, which JAX's profiler reads from its files. Raises
    NotImplementedError."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError(f"profiler.{type(self).__name__}: {_REMEDY}")


class ProfileData(_Recorded):
    """A recording. Raises NotImplementedError, whatever it is read from."""

    @classmethod
    def from_file(cls, proto_file_path: str) -> ProfileData:
        return cls(proto_file_path)

    @classmethod
    def from_serialized_xspace(cls, serialized_xspace: bytes) -> ProfileData:
        return cls(serialized_xspace)

    @classmethod
    def from_text_proto(cls, arg: str, /) -> ProfileData:
        return cls(arg)


class ProfilePlane(_Recorded):
    """Lines of one device. Raises NotImplementedError."""


class ProfileEvent(_Recorded):
    """An event of a line. Raises NotImplementedError."""


__all__ = [
    "ProfileData",
    "ProfileEvent",
    "ProfileOptions",
    "ProfilePlane",
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "device_memory_profile",
    "register_subprocess",
    "save_device_memory_profile",
    "start_server",
    "start_trace",
    "stop_server",
    "stop_trace",
    "trace",
]


def __dir__() -> list[str]:
    return [*__all__]
