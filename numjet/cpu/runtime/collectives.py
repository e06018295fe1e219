"""Collectives of compiled programs as calls of the MPI library that mpi4py loaded, without Python.

`Library.record` describes a collective as `code.collectives` reads it; the program calls `entry`
with that description and its own memory. What it does not take - types without a reduction of MPI's
or ours, more than 2**31 elements, systems whose code cannot be made - runs through mpi4py
(`runtime.mpi`). What would break it: a program that holds the lock of the interpreter while it
waits here: the thread that says where this process is needs it.
"""
from __future__ import annotations

import ctypes
import functools
import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.core.cluster import ranks_of
from numjet.cpu.builder.records import zeros
from numjet.cpu.runtime import build
from numjet.cpu.runtime.code import collectives as code

MOST = 2**31 - 1  # elements that a C int counts
# Bytes of a reduction that go to one call of MPI. It keeps half of them beside, in memory that is
# fresh in each call for more than 32 MB: whole, 100 MB took 47 ms of processor time, half of it for
# 12,208 page faults; in parts of 4 MB 42 ms, of 8 MB 26, of 16 MB 22, without faults.
PART = 8 << 20
_REDUCTIONS = {"psum": "add", "pmax": "max", "pmin": "min"}
_EXTREMES = {("max", "float32"): "most_f32", ("max", "float64"): "most_f64",
             ("min", "float32"): "least_f32", ("min", "float64"): "least_f64"}  # fmt: skip
_REPORT = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64)


class Library:
    """MPI's functions by their addresses, and handles as numbers. Raises OSError, AttributeError
    where the library does not show them."""

    def __init__(self, transport: Any) -> None:
        self.transport, mpi = transport, transport.mpi
        # A symbol of what the module depends on is found through the module.
        library = ctypes.CDLL(mpi.__file__)

        def function(name: str) -> int:
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0

        names = ("Allreduce", "Reduce_scatter_block", "Allgather", "Alltoall", "Sendrecv",
                 "Iallreduce", "Wait", "Op_create")  # fmt: skip
        self.functions = {name: function(f"MPI_{name}") for name in names}
        self.code = build.library("collectives")
        self.entry = self.code.address("collective")
        self.state = zeros(code.State)
        self.labels: dict[int, tuple[str, tuple[int, ...]]] = {}
        self.requests: dict[int, ctypes.c_int64] = {}
        self._seen: tuple[Any, float] = None, 0.0

    def doing(self) -> tuple[str, float, tuple[int, ...]] | None:
        """The collective that a program waits in, since when it was seen there, and its ranks."""
        call, begun = self.state.call, self.state.begun
        if not call:
            return None
        if self._seen[0] != (call, begun):
            self._seen = (call, begun), time.monotonic()
        label, ranks = self.labels[call]
        return label, self._seen[1], ranks

    @functools.cache  # noqa: B019 - there is one
    def _extreme(self, name: str) -> int:
        """MPI's handle of a reduction of ours."""
        handle = ctypes.create_string_buffer(8)
        create = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(
            self.functions["Op_create"]
        )
        if create(self.code.address(name), 1, handle):
            raise RuntimeError(f"MPI_Op_create failed for {name}.")
        size = self.transport.mpi._sizeof(self.transport.mpi.Op)
        return int.from_bytes(handle.raw[:size], sys.byteorder)

    def _operation(self, kind: str, dtype: np.dtype) -> int:
        own = _EXTREMES.get((kind, dtype.name))
        if own is not None:
            return self._extreme(own)
        return self.transport.mpi._handleof(self.transport.operation(kind, dtype))

    def record(
        self,
        name: str,
        params: dict,
        shapes: Sequence[tuple],
        dtype: np.dtype,
        out: tuple,
        failed: Callable[[int], int],
    ) -> Any:
        """The description of a collective of operands of these shapes, its result's `out`; None
        where it has no native form. failed(code): told of MPI's errors, says the program's status.
        """
        transport = self.transport
        handle = transport.mpi._handleof
        (shape,) = shapes
        ranks = ranks_of(params)
        assert ranks is not None
        comm = transport.group(ranks)
        size = math.prod(shape)
        if size > MOST or not size:
            return None
        call: Any = zeros(code.Collective)
        call.state, call.comm = self.state, handle(comm)
        call.type = handle(transport.type_of(dtype))
        call.bytes = math.prod(out) * dtype.itemsize
        call.nobody = transport.mpi.PROC_NULL
        if name in _REDUCTIONS:
            call.kind, call.reduce, call.count = code.REDUCE, self.functions["Allreduce"], size
            call.part, call.width = max(1, PART // dtype.itemsize), dtype.itemsize
            call.op = self._operation(_REDUCTIONS[name], dtype)
        elif name == "psum_start":
            call.kind, call.start, call.count = code.START, self.functions["Iallreduce"], size
            call.op, call.inplace = self._operation("add", dtype), int(transport.mpi.IN_PLACE)
            call.request = self._request(params["number"])
        elif name == "psum_done":
            call.kind, call.wait = code.WAIT, self.functions["Wait"]
            call.request = self._request(params["number"])
        elif name == "reduce_scatter" and params["axis"] == 0:
            call.kind, call.reduce = code.REDUCE, self.functions["Reduce_scatter_block"]
            call.op, call.count = self._operation("add", dtype), size // comm.size
            call.part = call.count  # the operand lies member by member
        elif name == "all_gather" and params["axis"] == 0:
            call.kind, call.gather, call.count = code.GATHER, self.functions["Allgather"], size
        elif name == "all_to_all" and params["split_axis"] == params["concat_axis"] == 0:
            call.kind, call.gather = code.GATHER, self.functions["Alltoall"]
            call.count = size // comm.size
        elif name == "ppermute":
            self._permute(call, params["perm"], comm.rank, size)
        else:
            return None
        report = _REPORT(failed)
        call.report = ctypes.cast(report, ctypes.c_void_p).value
        call._keep.append(report)
        self.labels[call._at] = transport.label(name, [(dtype, shape)]), ranks.mine
        return call

    def _request(self, number: int) -> int:
        """Where a sum of a program that is on its way is remembered: one program runs at a time."""
        return ctypes.addressof(self.requests.setdefault(number, ctypes.c_int64()))

    def _permute(
        self, call: Any, perm: Sequence[tuple[int, int]], here: int, size: int
    ) -> None:
        call.target = {s: d for s, d in perm}.get(here, call.nobody)
        call.source = {d: s for s, d in perm}.get(here, call.nobody)
        call.kind = code.STAY if call.source == here else code.EXCHANGE
        call.exchange, call.count = self.functions["Sendrecv"], size
