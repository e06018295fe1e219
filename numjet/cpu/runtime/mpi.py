"""Collectives of compiled programs over MPI: `Transport`, on the programs' own buffers.

`distributed.initialize` makes it. Programs call MPI themselves (`runtime.collectives`) where they
can, and `run` with addresses where not. Sums of types that MPI does not know (bfloat16, float16)
are added by NumPy inside MPI's reduction, and so are extremes here, which must keep NaN. What would
break it: two threads of a process that run programs over processes side by side: the order of
collectives must be the same everywhere.
"""
from __future__ import annotations

import importlib
import math
import os
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.core.cluster import Cluster, Ranks

_SUMS = frozenset(
    "float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 complex64 complex128".split()
)


Arrays = Sequence[np.ndarray]
Out = np.ndarray


class Disagreement(RuntimeError):
    """Processes wanted to run programs that differ."""


class Transport:
    """What carries collectives between the processes of an MPI communicator.

    calls: how many programs were run. meetings, runs: how many exchanges of all processes and
    collectives of programs were begun from Python. place: what runs now from Python, (operation,
    since when, the ranks of a program's collective). library: what programs call without Python,
    None where that cannot be.
    """

    def __init__(self, mpi: Any, comm: Any) -> None:
        self.mpi = mpi
        self.comm = comm.Dup()
        self.control = comm.Dup()
        self.index, self.count = comm.Get_rank(), comm.Get_size()
        self.checks = os.environ.get("NUMJET_COLLECTIVE_CHECKS", "1") != "0"
        self.calls = self.meetings = self.runs = 0
        self.program = ""
        self.place: tuple[str, float, tuple[int, ...] | None] | None = None
        self._comms: dict[tuple[int, ...], Any] = {}
        self._types: dict[Any, Any] = {}
        self._ops: dict[tuple[str, str], Any] = {}
        self._all = bytearray(16 * self.count)
        self.library = self._library()

    def _library(self) -> Any:
        try:
            return importlib.import_module("numjet.cpu.runtime.collectives").Library(self)
        except (OSError, AttributeError, RuntimeError) as reason:
            warnings.warn(
                f"collectives of programs go through Python: MPI's functions are not to be had "
                f"({reason}).", RuntimeWarning, stacklevel=3,
            )  # fmt: skip
            return None

    def doing(self) -> dict[str, Any]:
        """What this process does, for the watch: how many programs, meetings and collectives it
        has begun; the operation that it waits in, None outside of them, whether that is inside of
        a program, for how many seconds, and the ranks that have to come to it."""
        # Counted before the operation is looked at: never ahead of it.
        counts = {
            "calls": self.calls, "meetings": self.meetings, "program": self.program,
            "begun": self.runs + (0 if self.library is None else self.library.state.begun),
        }  # fmt: skip
        place = self.place
        if place is None and self.library is not None:
            place = self.library.doing()
        if place is None:
            return {**counts, "operation": None, "waits": 0.0}
        operation, since, ranks = place
        return {
            **counts, "operation": operation, "waits": max(0.0, time.monotonic() - since),
            "inside": ranks is not None, "ranks": ranks or tuple(range(self.count)),
        }  # fmt: skip

    # -------------------------------------------------------------- programs
    def entering(self, name: str) -> None:
        """A program begins."""
        self.calls += 1
        self.program = name

    def agree(self, digest: bytes, name: str) -> None:
        """Raise RuntimeError on all processes where they do not all run this program now."""
        if not self.checks:
            return
        self._meet(f"the agreement of ranks to run {name!r}")
        self.control.Allgather([digest, self.mpi.BYTE], [self._all, self.mpi.BYTE])
        self.place = None
        if self._all == digest * self.count:
            return
        names = self.control.allgather(name)
        kinds: dict[tuple, list[int]] = {}
        for rank, text in enumerate(names):
            row = bytes(self._all[16 * rank : 16 * rank + 16])
            kinds.setdefault((row, text), []).append(rank)
        said = "; ".join(
            f"rank{'s' if len(who) > 1 else ''} {', '.join(map(str, who))}: {text!r} "
            f"({digest.hex()[:8]})"
            for (digest, text), who in kinds.items()
        )
        raise Disagreement(
            f"The processes do not run the same program (call {self.calls + 1}): {said}. Every "
            "process must call the same functions in the same order on arguments of the same "
            "shapes, layouts and static values."
        )

    def objects(self, value: Any) -> list[Any]:
        """What each process gives, as Python objects."""
        self._meet("an exchange of values")
        found = self.control.allgather(value)
        self.place = None
        return found

    def leave(self) -> None:
        """Wait until all processes come here, however long it takes."""
        self._meet("distributed.shutdown", since=math.inf)
        self.control.Barrier()
        self.place = None

    def _meet(self, operation: str, since: float | None = None) -> None:
        """What all processes come to begins."""
        self.meetings += 1
        self.place = operation, time.monotonic() if since is None else since, None

    # -------------------------------------------------------------- collectives
    def group(self, ranks: Ranks) -> Any:
        """The communicator of this process's group."""
        mine = ranks.mine
        found = self._comms.get(mine)
        if found is None:
            if mine == tuple(range(self.count)):
                found = self.comm
            else:
                members = self.comm.Get_group().Incl(list(mine))
                found = self.comm.Create_group(members)
            self._comms[mine] = found
        return found

    def run(
        self, name: str, params: dict, ins: Sequence[np.ndarray], outs: Sequence[np.ndarray]
    ) -> None:
        """One collective, from `ins` to `outs`: views of a program's memory."""
        ranks = params["axes"][0] if "axes" in params else params["axis_name"]
        self.runs += 1
        label = self.label(name, [(x.dtype, x.shape) for x in ins])
        self.place = label, time.monotonic(), ranks.mine
        _RUN[name](self, self.group(ranks), ranks, params, ins, outs[0])
        self.place = None

    @staticmethod
    def label(name: str, operands: Sequence[tuple[np.dtype, tuple]]) -> str:
        """What messages call a collective of operands of these types and shapes."""
        return f"{name}[{', '.join([f'{dtype}{list(shape)}' for dtype, shape in operands])}]"

    def type_of(self, dtype: np.dtype) -> Any:
        """MPI's name of an element type; plain bytes for types that it has none for."""
        found = self._types.get(dtype)
        if found is None:
            if dtype.name in _SUMS:
                found = self.mpi._typedict[dtype.char]
            else:
                found = self.mpi.BYTE.Create_contiguous(dtype.itemsize).Commit()
            self._types[dtype] = found
        return found

    def operation(self, kind: str, dtype: np.dtype) -> Any:
        """MPI's reduction, or one of NumPy's."""
        if kind == "add" and dtype.name in _SUMS:
            return self.mpi.SUM
        if dtype.kind in "iu" and kind != "add":
            return self.mpi.MAX if kind == "max" else self.mpi.MIN
        found = self._ops.get((kind, dtype.name))
        if found is None:
            ufunc: Any = {"add": np.add, "max": np.maximum, "min": np.minimum}[kind]

            def reduce(a: Any, b: Any, _: Any) -> None:
                left, right = np.frombuffer(a, dtype), np.frombuffer(b, dtype)
                ufunc(left, right, out=right)

            found = self._ops[kind, dtype.name] = self.mpi.Op.Create(reduce, commute=True)
        return found


def _flat(x: np.ndarray) -> np.ndarray:
    """The bytes of a contiguous array."""
    return x.reshape(-1).view(np.uint8)


def _message(transport: Transport, x: np.ndarray) -> list:
    return [_flat(x), x.size, transport.type_of(x.dtype)]


def _reduction(kind: str) -> Callable:
    def run(t: Transport, comm: Any, ranks: Ranks, params: dict, ins: Arrays, out: Out) -> None:
        (x,) = ins
        comm.Allreduce(_message(t, x), _message(t, out), t.operation(kind, x.dtype))

    return run


def _all_gather(t: Transport, comm: Any, ranks: Ranks, params: dict, ins: Arrays, out: Out) -> None:
    (x,), axis = ins, params["axis"]
    if axis == 0:
        comm.Allgather(_message(t, x), _parts(t, out, comm.size))
        return
    rows = np.empty((comm.size, *x.shape), x.dtype)
    comm.Allgather(_message(t, x), _parts(t, rows, comm.size))
    out[...] = np.moveaxis(rows, 0, axis)


def _parts(t: Transport, x: np.ndarray, count: int) -> list:
    return [_flat(x), x.size // count, t.type_of(x.dtype)]


def _all_to_all(t: Transport, comm: Any, ranks: Ranks, params: dict, ins: Arrays, out: Out) -> None:
    (x,), split, concat = ins, params["split_axis"], params["concat_axis"]
    sent = np.ascontiguousarray(np.moveaxis(x, split, 0))
    got = out if concat == 0 else np.empty(sent.shape, x.dtype)
    comm.Alltoall(_parts(t, sent, comm.size), _parts(t, got, comm.size))
    if concat != 0:
        out[...] = np.moveaxis(got, 0, concat)


def _reduce_scatter(
    t: Transport, comm: Any, ranks: Ranks, params: dict, ins: Arrays, out: np.ndarray
) -> None:
    (x,), axis = ins, params["axis"]
    sent = np.ascontiguousarray(np.moveaxis(x, axis, 0))
    comm.Reduce_scatter_block(
        _parts(t, sent, comm.size), _message(t, out), t.operation("add", x.dtype)
    )


def _ppermute(t: Transport, comm: Any, ranks: Ranks, params: dict, ins: Arrays, out: Out) -> None:
    (x,), here, requests = ins, comm.rank, []
    received = False
    for source, target in params["perm"]:
        if target == here:
            received = True
            if source == here:
                out[...] = x
            else:
                requests.append(comm.Irecv(_message(t, out), source))
    for source, target in params["perm"]:
        if source == here and target != here:
            requests.append(comm.Isend(_message(t, x), target))
    if not received:
        out[...] = 0
    t.mpi.Request.Waitall(requests)


def _copy(t: Transport, comm: Any, ranks: Ranks, params: dict, ins: Arrays, out: Out) -> None:
    out[...] = ins[0]


def _axis_index(t: Transport, comm: Any, ranks: Ranks, params: dict, ins: Arrays, out: Out) -> None:
    out[...] = ranks.mine.index(Cluster.index)


_RUN: dict[str, Callable] = {
    "psum": _reduction("add"),
    "psum_start": _reduction("add"),
    "psum_done": _copy,
    "pmax": _reduction("max"),
    "pmin": _reduction("min"),
    "all_gather": _all_gather,
    "all_to_all": _all_to_all,
    "reduce_scatter": _reduce_scatter,
    "ppermute": _ppermute,
    "axis_index": _axis_index,
}
