"""Recordings of what a program does: spans of every thread, and the files that show them.

For `profiler`. While one is made, compiled calls take the longer way through Python, which tells of
them (`base.spans`); the programs and what is deferred stay the same. What would break it: two at a
time, which `begin` refuses.
"""

from __future__ import annotations

import functools
import gzip
import http.server
import json
import os
import socket
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from numjet.api import xspace
from numjet.base import config, spans
from numjet.base.spans import Span

# More are not kept: some hundred MB.
MOST_SPANS = 1_000_000
# Functions of these are not shown: ours, NumPy's, and what was made of text.
_UNSHOWN = (
    str(Path(__file__).resolve().parents[1]) + os.sep, os.path.dirname(np.__file__) + os.sep,
    "<frozen", "<string>",
)  # fmt: skip
_STANDARD, _SITE = os.path.dirname(os.__file__) + os.sep, os.sep + "site-packages" + os.sep
_PORT = 9001
_VIEWER = "https://ui.perfetto.dev"


class Recording:
    """What happened since it began. `python`: Python's functions, too, but for numjet's
    and NumPy's own and the standard library's."""

    current: Recording | None = None
    _beginning = threading.Lock()

    def __init__(self, python: bool) -> None:
        self._spans: list[Span] = []
        self._dropped = 0
        self._threads: dict[int, str] = {}
        # Somebody else's profiler keeps its place.
        self._python = python and sys.getprofile() is None and threading.getprofile() is None
        self._frames = threading.local()
        self._over = False
        self._begun = time.perf_counter_ns()

    def begin(self) -> None:
        """Listen from now on. Raises RuntimeError while another recording does."""
        with Recording._beginning:
            if Recording.current is not None:
                raise RuntimeError(
                    "Profile has already been started. Only one profile may be run at a time: "
                    "profiler.stop_trace() ends it."
                )
            Recording.current = self
        spans.recorders.append(self._hear)
        config.changed(1)
        if self._python:
            threading.setprofile(self._called)
            sys.setprofile(self._called)

    def end(self) -> None:
        """Listen no more."""
        self._over = True
        if self._python:
            # Who took the place meanwhile keeps it; other threads leave theirs at their next call.
            if threading.getprofile() == self._called:
                threading.setprofile(None)  # type: ignore[arg-type]
            if sys.getprofile() == self._called:
                sys.setprofile(None)
        config.changed(-1)
        spans.recorders.remove(self._hear)
        Recording.current = None

    def _hear(self, span: Span) -> None:
        if len(self._spans) >= MOST_SPANS:
            self._dropped += 1
            return
        self._spans.append(span)
        if span.thread not in self._threads:
            self._threads[span.thread] = threading.current_thread().name

    def _called(self, frame: Any, event: str, _: Any) -> None:
        """Python called a function, or one returned."""
        if self._over:
            sys.setprofile(None)
            return
        if event not in ("call", "return"):
            return
        try:
            began = self._frames.began
        except AttributeError:
            began = self._frames.began = []
        if event == "call":
            began.append(time.perf_counter_ns())
        elif began:  # else it was called before the recording
            start, code = began.pop(), frame.f_code
            if _shown(code.co_filename):
                file = os.path.basename(code.co_filename)
                spans.tell("python", f"${file}:{code.co_firstlineno} {code.co_name}", start,
                           time.perf_counter_ns())

    # ---------------------------------------------------------------- files
    def write(self, directory: Any, perfetto: bool) -> Path:
        """Write `HOST.xplane.pb`, `HOST.trace.json.gz` (and `perfetto_trace.json.gz`, the same)
        into `directory`/plugins/profile/TIME; where that is."""
        if self._dropped:
            warnings.warn(
                f"profiler: a recording holds {MOST_SPANS} spans; {self._dropped} that came later "
                "are not in it. Record less, or set ProfileOptions.python_tracer_level to 0.",
                RuntimeWarning, stacklevel=3,
            )  # fmt: skip
        folder = Path(directory, "plugins", "profile", time.strftime("%Y_%m_%d_%H_%M_%S"))
        folder.mkdir(parents=True, exist_ok=True)
        host = socket.gethostname() or "localhost"
        plane = self.plane()
        (folder / f"{host}.xplane.pb").write_bytes(xspace.write([plane]))
        shown = gzip.compress(json.dumps(trace_events(plane)).encode(), 6)
        names = [f"{host}.trace.json.gz", *["perfetto_trace.json.gz"] * perfetto]
        for name in names:
            (folder / name).write_bytes(shown)
        return folder

    def plane(self) -> xspace.Plane:
        """All of it: a line a thread, events by when they began, those around others first."""
        lines: dict[int, list[xspace.Event]] = {thread: [] for thread in self._threads}
        for span in sorted(self._spans, key=lambda s: (s.start, -s.end)):
            start = max(span.start, self._begun)
            details = {"kind": span.kind, **span.details}
            lines[span.thread].append(xspace.Event(
                span.name, float(start - self._begun), float(span.end - start), details))
        named = [xspace.Line(self._threads[k], events) for k, events in lines.items()]
        return xspace.Plane("/host:CPU", named, {})


@functools.cache
def _shown(file: str) -> bool:
    """Whether functions of this file are the user's or a library's of theirs."""
    standard = file.startswith(_STANDARD) and _SITE not in file
    return not (standard or file.startswith(_UNSHOWN))


def trace_events(plane: xspace.Plane) -> dict[str, Any]:
    """A plane in the trace event format, which browsers' viewers read; times in microseconds."""
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": plane.name}}
    ]
    for k, line in enumerate(plane.lines):
        events.append(
            {"ph": "M", "pid": 1, "tid": k, "name": "thread_name", "args": {"name": line.name}}
        )
        events += [
            {"ph": "X", "pid": 1, "tid": k, "name": e.name, "cat": e.stats.get("kind", ""),
             "ts": 1e-3 * e.start_ns, "dur": 1e-3 * e.duration_ns,
             "args": {n: v for n, v in e.stats.items() if n != "kind"}}
            for e in line.events
        ]  # fmt: skip
    return {"displayTimeUnit": "ns", "traceEvents": events}


def offer(file: Path) -> None:
    """Print a link that shows the file in a browser, and serve it until it was fetched once."""
    fetched = threading.Event()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(file.parent))

        def end_headers(self) -> None:
            self.send_header("Access-Control-Allow-Origin", _VIEWER)
            super().end_headers()

        def do_GET(self) -> None:
            super().do_GET()
            fetched.set()

        def log_message(self, format: str, *args: Any) -> None:
            return None

    with http.server.HTTPServer(("127.0.0.1", _PORT), Handler) as server:
        link = f"{_VIEWER}/#!/?url=http://127.0.0.1:{_PORT}/{file.name}"
        print(f"Open URL in browser: {link}", flush=True)
        while not fetched.is_set():
            server.handle_request()
