"""CompileOptions, as the plugins read them: as protocol buffers.

For `xla.client`. Field numbers are those of XLA's public xla_data and compile_options files: in the
options 3 is what is built and 7 overrides of flags; in what is built 1 is the device (-1: any), 4
replicas, 5 partitions, 6 whether the partitioner runs, 9 the devices, 19 whether it is Shardy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numjet.base.protobuf import block, double, number, varint


def _override(value: str | bool | int | float) -> bytes:
    if isinstance(value, bool):
        return number(2, value)
    if isinstance(value, int):
        return number(3, value)
    if isinstance(value, float):
        return double(4, value)
    return block(1, value.encode())


def compile_options(
    *,
    replicas: int = 1,
    partitions: int = 1,
    devices: Sequence[int] | None = None,
    shardy: bool = False,
    flags: Mapping[str, str | bool | int | float] | None = None,
) -> bytes:
    """Options of one compilation.

    replicas, partitions: how many devices run it, with data of their own or parts of arrays.
    devices: their numbers, replica by replica; 0, 1, ... where not given. shardy: partition by
    Shardy's annotations instead of GSPMD's. flags: XLA's own, by name.
    """
    count = replicas * partitions
    devices = list(range(count)) if devices is None else list(devices)
    if len(devices) != count:
        raise ValueError(
            f"compile_options: {replicas} replicas of {partitions} partitions are {count} devices, "
            f"got {len(devices)}."
        )
    assignment = number(1, replicas) + number(2, partitions)
    for partition in range(partitions):
        ids = b"".join(varint(devices[r * partitions + partition]) for r in range(replicas))
        assignment += block(3, block(1, ids))
    build = number(1, -1) + number(4, replicas) + number(5, partitions)
    if partitions > 1:
        build += number(6, 1)
    build += block(9, assignment)
    if shardy:
        build += number(19, 1)
    overrides = b"".join(
        block(7, block(1, name.encode()) + block(2, _override(value)))
        for name, value in (flags or {}).items()
    )
    return block(3, build) + overrides
