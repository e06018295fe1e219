"""Profiles as TensorBoard reads them (XSpace, a protocol buffer): planes of lines of events.

For `api.recording`, which writes them, and `profiler.ProfileData`. Field numbers are those of the
public xplane.proto: a space holds planes (1); a plane its id (1), name (2), lines (3), names of
events (4) and of statistics (5), both as maps from ids; a line its id (1), name (2), beginning in
ns (3) and events (4); an event its name's id (1), offset in ps (2), length in ps (3), statistics
(4); a statistic its name's id (1) and a float (2), an unsigned (3) or signed (4) integer, a text
(5), bytes (6) or the id of a text among the statistics' names (7).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from numjet.base.protobuf import block, double, fields, number, signed
from numjet.base.record import NamedTuple


class Event(NamedTuple):
    """`start_ns` and `duration_ns` are floats; `stats` says more."""

    name: str
    start_ns: float
    duration_ns: float
    stats: Mapping[str, Any]


class Line(NamedTuple):
    """A thread's events."""

    name: str
    events: Sequence[Event]


class Plane(NamedTuple):
    """What happened on a host or a device."""

    name: str
    lines: Sequence[Line]
    stats: Mapping[str, Any]


class _Names:
    """Ids of names, from 1 on."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def __call__(self, name: str) -> int:
        return self.ids.setdefault(name, len(self.ids) + 1)

    def fields(self, field: int) -> bytes:
        return b"".join(
            block(field, number(1, k) + block(2, number(1, k) + block(2, name.encode())))
            for name, k in self.ids.items()
        )


def _statistic(name: int, value: Any) -> bytes:
    head = number(1, name)
    if isinstance(value, int):
        return head + number(4, value)
    return head + (double(2, value) if isinstance(value, float) else block(5, str(value).encode()))


def write(planes: Iterable[Plane]) -> bytes:
    """The space of these planes."""
    return b"".join([block(1, _plane(k, plane)) for k, plane in enumerate(planes)])


def _plane(k: int, plane: Plane) -> bytes:
    events, statistics, lines = _Names(), _Names(), []
    for place, line in enumerate(plane.lines):
        parts = [number(1, place), block(2, line.name.encode())]
        for event in line.events:
            stats = [block(4, _statistic(statistics(n), v)) for n, v in event.stats.items()]
            times = number(2, round(1000 * event.start_ns)) + number(
                3, round(1000 * event.duration_ns))
            parts.append(block(4, number(1, events(event.name)) + times + b"".join(stats)))
        lines.append(block(3, b"".join(parts)))
    own = [block(6, _statistic(statistics(n), v)) for n, v in plane.stats.items()]
    return (number(1, k) + block(2, plane.name.encode()) + b"".join(lines) + events.fields(4)
            + statistics.fields(5) + b"".join(own))  # fmt: skip


def read(data: bytes) -> list[Plane]:
    """The planes of a space. Raises ValueError where the bytes are none."""
    return [_read_plane(_bytes(v)) for field, v in fields(data) if field == 1]


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a field of the profile is not of its kind.")
    return value


def _named(entry: bytes) -> tuple[int, str]:
    """An entry of a map of names."""
    whole: dict = dict(fields(entry))
    inside: dict = dict(fields(whole.get(2, b"")))
    return whole.get(1, 0), inside.get(2, b"").decode()


def _read_plane(data: bytes) -> Plane:
    name, lines = "", []
    events: dict[int, str] = {}
    statistics: dict[int, str] = {}
    own = []
    for field, value in fields(data):
        if field == 2:
            name = _bytes(value).decode()
        elif field == 3:
            lines.append(_bytes(value))
        elif field == 4:
            events.update([_named(_bytes(value))])
        elif field == 5:
            statistics.update([_named(_bytes(value))])
        elif field == 6:
            own.append(_bytes(value))
    return Plane(name, [_read_line(x, events, statistics) for x in lines], _stats(own, statistics))


def _read_line(data: bytes, names: dict[int, str], statistics: dict[int, str]) -> Line:
    name, start, found = "", 0, []
    for field, value in fields(data):
        if field == 2:
            name = _bytes(value).decode()
        elif field == 3:
            start = int(value)
        elif field == 4:
            found.append(_bytes(value))
    events = []
    for event in found:
        plain = {k: v for k, v in fields(event) if k != 4}
        stats = [_bytes(v) for k, v in fields(event) if k == 4]
        offset, length = (1e-3 * signed(int(plain.get(k, 0))) for k in (2, 3))
        events.append(Event(names.get(int(plain.get(1, 0)), ""), start + offset, length,
                            _stats(stats, statistics)))
    return Line(name, events)


def _stats(found: Sequence[bytes], names: dict[int, str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for data in found:
        key: str = ""
        value: Any = None
        for field, given in fields(data):
            if field == 1:
                key = names.get(int(given), "")
            elif field == 4:
                value = signed(int(given))
            elif field == 5:
                value = _bytes(given).decode()
            else:
                value = names.get(int(given), "") if field == 7 else given
        out[key] = value
    return out
