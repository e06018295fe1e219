"""CompileOptions as bytes: fields read back one by one."""
from __future__ import annotations

import pytest

from numjet.xla import options


def fields(data: bytes) -> dict[int, list]:
    """The fields of a message: numbers and bytes by field number."""
    out: dict[int, list] = {}
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = varint()
        kind = tag & 7
        if kind == 0:
            value: object = varint()
        elif kind == 1:
            value, at = data[at : at + 8], at + 8
        else:
            size = varint()
            value, at = data[at : at + size], at + size
        out.setdefault(tag >> 3, []).append(value)
    return out


def test_one_device() -> None:
    build = fields(fields(options.compile_options(devices=[3]))[3][0])
    assert build[1] == [(1 << 64) - 1] and build[4] == [1] and build[5] == [1] and 6 not in build
    assignment = fields(build[9][0])
    assert assignment[1] == [1] and assignment[2] == [1]
    assert fields(assignment[3][0])[1] == [b"\x03"]


def test_replicas_and_partitions() -> None:
    data = options.compile_options(replicas=2, partitions=2, devices=[4, 5, 6, 300], shardy=True)
    build = fields(fields(data)[3][0])
    assert build[4] == [2] and build[5] == [2] and build[6] == [1] and build[19] == [1]
    columns = [fields(c)[1][0] for c in fields(build[9][0])[3]]
    assert columns == [b"\x04\x06", b"\x05\xac\x02"]
    with pytest.raises(ValueError, match="2 replicas of 2 partitions are 4 devices, got 3"):
        options.compile_options(replicas=2, partitions=2, devices=[0, 1, 2])


def test_flags() -> None:
    flags = {"a": "text", "b": True, "c": 7, "d": 0.5}
    found = {}
    for entry in fields(options.compile_options(flags=flags))[7]:
        parts = fields(entry)
        found[parts[1][0]] = fields(parts[2][0])
    assert found[b"a"] == {1: [b"text"]} and found[b"b"] == {2: [1]} and found[b"c"] == {3: [7]}
    assert found[b"d"] == {4: [b"\0\0\0\0\0\0\xe0?"]}
