"""numjet.profiler: recordings of what runs when, and names for parts of a program in them.

A recording (`trace`, or `start_trace` and `stop_trace`) shows calls of compiled functions and the
kernels in them, tracing and compiling, operations outside `jit` that ran together, annotations and
Python functions, on every thread. TensorBoard and https://ui.perfetto.dev show its files.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from numjet.api import xspace
from numjet.api.flat import check_callable
from numjet.api.placement.devices import devices
from numjet.api.recording import Recording, offer
from numjet.base import spans
from numjet.base.protobuf import block, number, varint
from numjet.process import live_arrays


class TraceAnnotation(contextlib.ContextDecorator):
    """A name for a block of code, which recordings show; it changes nothing that runs.

    name: a string. kwargs: strings and numbers that are shown with it.

    >>> from numjet import profiler
    >>> with profiler.TraceAnnotation("load", batch=3):
    ...     pass
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        self.name, self.metadata = name, kwargs
        self._start = 0

    def set_metadata(self, **kwargs: Any) -> None:
        """More that is shown with it. kwargs: strings and numbers.

        >>> from numjet import profiler
        >>> with profiler.TraceAnnotation("load") as block:
        ...     block.set_metadata(rows=7)
        """
        self.metadata = {**self.metadata, **kwargs}

    @staticmethod
    def is_enabled() -> bool:
        """Whether something is being recorded.

        >>> from numjet import profiler
        >>> profiler.TraceAnnotation.is_enabled()
        False
        """
        return bool(spans.recorders)

    def _recreate_cm(self) -> TraceAnnotation:
        return type(self)(self.name, **self.metadata)

    def __enter__(self) -> TraceAnnotation:
        self._start = perf_counter_ns()
        return self

    def __exit__(self, *exc: Any) -> None:
        if spans.recorders:
            details = {k: v for k, v in self.metadata.items() if v is not None}
            spans.tell("annotation", self.name, self._start, perf_counter_ns(), **details)


class StepTraceAnnotation(TraceAnnotation):
    """A name for one step of training, which recordings show; it changes nothing that runs.

    name: a string. kwargs: shown with it, `step_num` the step's number.

    >>> from numjet import profiler
    >>> for step in range(2):
    ...     with profiler.StepTraceAnnotation("train", step_num=step):
    ...         pass
    """


class ProfileOptions:
    """What a recording holds: `python_tracer_level` 0 leaves Python functions out. The others are
    JAX's, for what does not exist here.

    >>> from numjet import profiler
    >>> options = profiler.ProfileOptions()
    >>> options.python_tracer_level = 0
    """

    def __init__(self) -> None:
        self.host_tracer_level, self.python_tracer_level = 2, 1
        self.duration_ms, self.start_timestamp_ns = 0, 0
        self.enable_hlo_proto = self.include_dataset_ops = True
        self.raise_error_on_start_failure = False
        self.repository_path = self.session_id = ""
        self.advanced_configuration: dict[str, Any] = {}


def annotate_function(
    func: Callable, name: str | None = None, **decorator_kwargs: Any
) -> Callable:
    """`func`, whose calls recordings show under a name; it computes the same.

    func: any function. name: its own by default. decorator_kwargs: shown with each call.

    >>> from numjet import profiler
    >>> profiler.annotate_function(lambda x: x + 1, name="step")(1)
    2
    """
    check_callable("annotate_function", func)
    shown: str = name or getattr(func, "__qualname__", None) or repr(func)

    @functools.wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(shown, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


# Where the recording under way is written, whether for Perfetto too, and whether it is offered.
_wanted: list[tuple[Any, bool, bool]] = []


def start_trace(
    log_dir: Any,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Begin a recording; `stop_trace` ends it and writes its files.

    log_dir: the directory, made where it is missing. create_perfetto_trace: write
    `perfetto_trace.json.gz`, too. create_perfetto_link: the same, and `stop_trace` prints a link
    and waits until it was opened. profiler_options: `ProfileOptions`. Compiled functions run step
    by step meanwhile, and none is left running behind the caller's back. Raises RuntimeError while
    another recording is made.

    >>> from numjet import numpy as jnp, profiler
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     profiler.start_trace(folder)
    ...     x = jnp.ones(3) + 1
    ...     profiler.stop_trace()
    """
    options = profiler_options or ProfileOptions()
    folder = os.fspath(log_dir)
    Recording(options.python_tracer_level > 0).begin()
    _wanted[:] = [(folder, create_perfetto_link or create_perfetto_trace, create_perfetto_link)]


def stop_trace() -> None:
    """End the recording that `start_trace` began, and write
    `LOG_DIR/plugins/profile/TIME/HOST.xplane.pb` and `HOST.trace.json.gz`. Raises RuntimeError
    where none was begun.

    >>> from numjet import profiler
    >>> profiler.stop_trace()
    Traceback (most recent call last):
        ...
    RuntimeError: No profile started: profiler.start_trace(log_dir) starts one.
    """
    recording = Recording.current
    if recording is None:
        raise RuntimeError("No profile started: profiler.start_trace(log_dir) starts one.")
    recording.end()
    ((folder, perfetto, link),) = _wanted
    written = recording.write(folder, perfetto)
    if link:
        offer(written / "perfetto_trace.json.gz")


@contextlib.contextmanager
def trace(
    log_dir: Any,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Iterator[None]:
    """A context in which what runs is recorded: `start_trace`, and `stop_trace` at its end.

    log_dir, create_perfetto_link, create_perfetto_trace, profiler_options: as `start_trace` has
    them.

    >>> from numjet import numpy as jnp, profiler
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with profiler.trace(folder):
    ...         x = jnp.ones(3) + 1
    ...     print(len(list(pathlib.Path(folder).rglob("*.xplane.pb"))))
    1
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


class ProfilerServer:
    """What `start_server` gives: a port that nobody listens to."""

    def __init__(self, port: int) -> None:
        self.port = port


_servers: list[ProfilerServer] = []


def start_server(port: int, requires_backend: bool = True) -> ProfilerServer:
    """Only noted: there is no server that a profiler could ask for recordings, which a warning says
    once; `trace` records without one. Raises ValueError while there is one.

    port, requires_backend: what JAX's takes.

    >>> from numjet import profiler
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     server = profiler.start_server(9999)
    >>> profiler.stop_server()
    """
    if _servers:
        raise ValueError(
            "Only one profiler server can be active at a time: profiler.stop_server() ends it."
        )
    warnings.warn(
        f"profiler.start_server: nothing listens on port {port}. numjet has no server for "
        "profiles: record with profiler.trace(log_dir), whose files TensorBoard shows.",
        RuntimeWarning, stacklevel=2,
    )  # fmt: skip
    _servers.append(ProfilerServer(port))
    return _servers[0]


def stop_server() -> None:
    """Forget what `start_server` noted. Raises ValueError where there is none.

    >>> from numjet import profiler
    >>> profiler.stop_server()
    Traceback (most recent call last):
        ...
    ValueError: No active profiler server: profiler.start_server(port) starts one.
    """
    if not _servers:
        raise ValueError("No active profiler server: profiler.start_server(port) starts one.")
    _servers.clear()


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Not there: raises NotImplementedError. `trace` records without a server.

    pid, port: what JAX's takes.

    >>> from numjet import profiler
    >>> profiler.register_subprocess(1, 2)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    raise NotImplementedError(
        "profiler.register_subprocess: numjet has no server for profiles. Record in each process "
        "with profiler.trace(log_dir)."
    )


def device_memory_profile(backend: str | None = None) -> bytes:
    """The live arrays by dtype, shape and device, in pprof's format: `pprof -top FILE` lists them.

    backend: a platform, the default one unless given. Result: bytes, of a compressed profile with
    the values `allocations` and `space`. Where an array was made is not known.

    >>> from numjet import profiler
    >>> isinstance(profiler.device_memory_profile(), bytes)
    True
    """
    devices(backend)
    held = Counter(
        (x.aval.str_short(), str(device), x.nbytes)
        for x in live_arrays(backend) for device in x.devices()
    )  # fmt: skip
    return gzip.compress(_memory_profile(held))


def _memory_profile(held: Mapping[tuple[str, str, int], int]) -> bytes:
    """pprof's Profile of so many arrays of each (name, device, bytes). A function, and a location
    in it, stands for a name; fields by their numbers in profile.proto."""
    strings: dict[str, int] = {"": 0}

    def text(x: str) -> int:
        return strings.setdefault(x, len(strings))

    def label(key: str, value: str) -> bytes:
        return block(3, number(1, text(key)) + number(2, text(value)))

    kinds = [block(1, number(1, text(what)) + number(2, text(unit)))
             for what, unit in (("allocations", "count"), ("space", "bytes"))]
    places: dict[str, int] = {}
    samples = []
    for (name, device, nbytes), count in held.items():
        place = places.setdefault(name, len(places) + 1)
        values = block(1, varint(place)) + block(2, varint(count) + varint(count * nbytes))
        samples.append(block(2, values + label("kind", "buffer") + label("device", device)))
    locations = [block(4, number(1, k) + block(4, number(1, k))) for k in places.values()]
    functions = [block(5, number(1, k) + number(2, text(name)) + number(3, text(name)))
                 for name, k in places.items()]
    table = [block(6, x.encode()) for x in strings]
    return b"".join([*kinds, *samples, *locations, *functions, *table])


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


class ProfileEvent:
    """An event of a recording: `name`, `start_ns`, `duration_ns`, `end_ns`; `stats` gives pairs of
    names and values. `ProfileData` makes it."""

    def __init__(self, event: xspace.Event) -> None:
        self.name, self.start_ns, self.duration_ns = event.name, event.start_ns, event.duration_ns
        self.end_ns = event.start_ns + event.duration_ns
        self._stats = event.stats

    @property
    def stats(self) -> Iterator[tuple[str, Any]]:
        """What is known of it beside its time."""
        return iter(self._stats.items())


class _Line:
    """The events of a thread: `name`, `events`."""

    def __init__(self, line: xspace.Line) -> None:
        self.name, self._events = line.name, line.events

    @property
    def events(self) -> Iterator[ProfileEvent]:
        """The events, in the order of the file."""
        return map(ProfileEvent, self._events)


class ProfilePlane:
    """What a recording knows of a host or a device: `name`, `lines` and `stats`. `ProfileData`
    makes it."""

    def __init__(self, plane: xspace.Plane) -> None:
        self.name, self._lines, self._stats = plane.name, plane.lines, plane.stats

    @property
    def lines(self) -> Iterator[_Line]:
        """Its lines, one a thread."""
        return map(_Line, self._lines)

    @property
    def stats(self) -> Iterator[tuple[str, Any]]:
        """What is known of the whole plane."""
        return iter(self._stats.items())


class ProfileData:
    """A recording, read from an `.xplane.pb` file: `planes` of `lines` of `events`.

    >>> from numjet import numpy as jnp, profiler
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with profiler.trace(folder), profiler.TraceAnnotation("mine"):
    ...         x = jnp.ones(3) + 1
    ...     file = next(pathlib.Path(folder).rglob("*.xplane.pb"))
    ...     data = profiler.ProfileData.from_file(str(file))
    >>> plane = data.find_plane_with_name("/host:CPU")
    >>> "mine" in [event.name for line in plane.lines for event in line.events]
    True
    """

    def __init__(self, planes: Sequence[xspace.Plane]) -> None:
        self._planes = planes

    @classmethod
    def from_file(cls, proto_file_path: str) -> ProfileData:
        """Read a file. Raises OSError, and RuntimeError where it is no recording."""
        return cls.from_serialized_xspace(Path(proto_file_path).read_bytes())

    @classmethod
    def from_serialized_xspace(cls, serialized_xspace: bytes) -> ProfileData:
        """Read the bytes of a file. Raises RuntimeError where they are no recording."""
        try:
            return cls(xspace.read(serialized_xspace))
        except (ValueError, TypeError, AttributeError) as error:
            raise RuntimeError(f"Failed to parse XSpace from array: {error}") from None

    @classmethod
    def from_text_proto(cls, arg: str, /) -> ProfileData:
        """Not there: raises NotImplementedError."""
        raise NotImplementedError(
            "profiler.ProfileData.from_text_proto: recordings are read as bytes. Use from_file."
        )

    @property
    def planes(self) -> Iterator[ProfilePlane]:
        """Hosts and devices."""
        return map(ProfilePlane, self._planes)

    def find_plane_with_name(self, name: str) -> ProfilePlane | None:
        """The plane of this name, or None."""
        return next((ProfilePlane(p) for p in self._planes if p.name == name), None)


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
