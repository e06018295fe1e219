"""Executable: a compiled program that can be called, and looked at.

`backend.compile` makes it; `api` calls it with lists of C-contiguous NumPy arrays of the physical
dtypes and gets such a list back. It holds the linked code, the constants and the Python callbacks
of host steps. What would break it: arguments of another shape or dtype than compiled for (the
caller's signature look-up rules that out).
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
import struct
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.base import locks
from numjet.base.config import check_bounds
from numjet.base.record import NamedTuple
from numjet.base.spans import recorders
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.cluster import Cluster, ranks_of
from numjet.core.dtypes import physical
from numjet.core.evaluate import evaluate
from numjet.core.memo import remembered
from numjet.core.primitive import Primitive
from numjet.cpu.link import link
from numjet.cpu.runtime import memory as runtime
from numjet.cpu.runtime.entry import (
    CONSTS,
    CONTIGUOUS_ALIGNED,
    DATA_OFFSET,
    FLAGS_OFFSET,
    HEADER,
    MAIN,
    OBJECTS,
    PROGRAM,
    RUN,
)

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
FOREIGN = "ffi_call"
# A call that is expected to take longer than this (seconds) lets other Python threads run.
RELEASE_GIL_ABOVE = 5e-6
ALIGNMENT = 64
# Larger arenas go back to the memory pool after each call.
KEPT_ARENA = 1 << 22


class HostCall:
    """One call back into Python: run `primitive`'s reference on views of native memory.

    A collective of processes calls MPI natively where it can (`runtime.collectives`), a call of a
    compiled function of others that function (`runtime.foreign`). The first entry of their tables
    is what describes them, then come operands and results as for all.
    """

    __slots__ = ("primitive", "params", "ins", "outs", "failures", "function", "collective",
                 "foreign", "__weakref__")  # fmt: skip

    def __init__(
        self,
        primitive: Primitive,
        params: dict,
        ins: list[tuple[tuple, Any, ShapedArray]],
        outs: list[tuple[tuple, Any]],
    ) -> None:
        self.primitive, self.params, self.ins, self.outs = primitive, params, ins, outs
        self.failures: dict[int, BaseException] = {}
        self.function: Any = None
        # The description of a collective, of a foreign call; None before it was made.
        self.collective: Any = None
        self.foreign: Any = None

    @property
    def over_processes(self) -> bool:
        """Whether it is a collective of processes, which waits for others."""
        return self.primitive.collective and ranks_of(self.params) is not None

    @property
    def has_description(self) -> bool:
        """Whether its table begins with what describes it to native code."""
        return self.over_processes or self.primitive.name == FOREIGN

    @classmethod
    def of(
        cls,
        primitive: Primitive,
        params: dict,
        ins: Sequence[ShapedArray],
        outs: Sequence[ShapedArray],
    ) -> HostCall:
        """The call of `primitive` on values of these avals."""
        return cls(
            primitive,
            params,
            [(a.shape, physical(a.dtype), a) for a in ins],
            [(a.shape, physical(a.dtype)) for a in outs],
        )

    def bind(self, failures: dict[int, BaseException]) -> int:
        """The native address to call; exceptions are put into `failures`, under the thread."""
        self.failures = failures
        if self.primitive.name != FOREIGN and self.described():
            return Cluster.transport.library.entry
        _hook()
        # Whoever runs the program holds the call, which goes with that.
        self.function = _CALLBACK(functools.partial(_called, weakref.ref(self)))
        # `cast` would have the function hold itself.
        address = ctypes.c_void_p.from_buffer(self.function).value or 0
        if self.primitive.name != FOREIGN:
            return address
        native = importlib.import_module("numjet.cpu.runtime.foreign")
        self.foreign = native.Described(address, self._keep)
        return native.entry()

    def _keep(self, error: BaseException) -> None:
        self.failures[threading.get_ident()] = error

    def described(self) -> int:
        """The address of what describes the call to native code; 0: it runs in Python."""
        if self.foreign is not None:
            return self.foreign.address
        transport = Cluster.transport
        if not self.over_processes or transport is None or transport.library is None:
            return 0
        if self.collective is None:
            dtype = self.ins[0][1] if self.ins else None
            shapes = [shape for shape, _, _ in self.ins]
            self.collective = transport.library.record(
                self.primitive.name, self.params, shapes, dtype, self.outs[0][0], self._failed
            )
        return 0 if self.collective is None else self.collective._at

    def _failed(self, code: int) -> int:
        """MPI returned an error; the program's status."""
        self._keep(Cluster.transport.mpi.Exception(code))
        return 1

    def _run(self, table: int) -> int:
        try:
            if self.has_description:
                table += ctypes.sizeof(ctypes.c_void_p)
            pointers = _pointers(len(self.ins) + len(self.outs) + 1).from_address(table)
            if self.primitive.collective and Cluster.transport is not None:
                views = [_view(pointers[k], s, d) for k, (s, d, _) in enumerate(self.ins)]
                outs = [_view(pointers[len(views) + k], *o) for k, o in enumerate(self.outs)]
                Cluster.transport.run(self.primitive.name, self.params, views, outs)
                return 0
            args = tuple(
                [
                    ArrayImpl(_copied(_view(pointers[k], shape, dtype)), aval)
                    for k, (shape, dtype, aval) in enumerate(self.ins)
                ]
            )
            results = evaluate(self.primitive, args, self.params)
            if not self.primitive.multiple_results:
                results = [results]
            for k, (result, (shape, dtype)) in enumerate(zip(results, self.outs, strict=True)):
                if math.prod(shape) and dtype.itemsize:
                    _view(pointers[len(self.ins) + k], shape, dtype)[...] = result._value
            if self.foreign is not None and self.foreign.waiting:
                prepared = importlib.import_module("numjet.ops.foreign").prepared
                self.foreign.prepare(prepared([a for _, _, a in self.ins], self.params))
            pointers[-1] = 0  # after all else
        except BaseException as error:
            # It may not unwind through native frames: kept, and raised by the caller.
            self._keep(error)
            return 1
        return 0


def _called(own: Callable[[], HostCall | None], table: int) -> int:
    call = own()
    return 1 if call is None else call._run(table)


@functools.cache
def _hook() -> None:
    """From now on an exception that arrives before a callback's first line (a signal's handler
    runs there: KeyboardInterrupt) is kept for who called the program, instead of printed."""
    former = sys.unraisablehook

    def keep(unraisable: Any) -> None:
        trace = unraisable.exc_traceback
        if trace is None or trace.tb_frame.f_code is not _called.__code__:
            former(unraisable)
            return
        failures = trace.tb_frame.f_locals["own"]().failures
        failures[threading.get_ident()] = unraisable.exc_value

    sys.unraisablehook = keep


class Description:
    """What describes a call, a collective's, as an entry of a program's table."""

    __slots__ = ("call",)

    def __init__(self, call: HostCall) -> None:
        self.call = call

    @property
    def params(self) -> dict:
        return self.call.params

    def bind(self, failures: dict[int, BaseException]) -> int:
        """The address of the description, 0 where nothing reads it."""
        return self.call.described()


def _view(address: int | None, shape: tuple, dtype: np.dtype) -> np.ndarray:
    nbytes = math.prod(shape) * dtype.itemsize
    if not nbytes:
        return np.empty(shape, dtype)
    return np.frombuffer(_bytes(nbytes).from_address(address), dtype).reshape(shape)


def _copied(view: np.ndarray) -> np.ndarray:
    """A copy of a program's value, which may be kept."""
    copy = runtime.empty(view.shape, view.dtype)
    copy[...] = view
    return copy


# Loaded where bounds are checked, and where a recording shows the steps.
_FENCES, _RECORDED = "numjet.cpu.program.fences", "numjet.cpu.program.recorded"
_making = locks.lock()


# Types of ctypes refer to themselves: one that is made for each program is garbage with it, which
# waits for the collector.
@remembered("types of lists of addresses", 256)
def _pointers(count: int) -> type[ctypes.Array]:
    return ctypes.c_void_p * max(count, 1)


@remembered("types of memory", 256)
def _bytes(count: int) -> Any:
    return ctypes.c_char * count


@remembered("types of programs' functions", 16)
def _prototype(releases: bool, kinds: tuple[type, ...]) -> Any:
    """Of a function that takes arguments of these kinds. releases: the GIL."""
    return (ctypes.CFUNCTYPE if releases else ctypes.PYFUNCTYPE)(ctypes.c_int, *kinds)


class _Program:
    """A program's table in memory (`program.table` wrote it, `entry` describes it): `address`."""

    __slots__ = ("_block", "address")

    def __init__(self, table: dict[str, Any], library: link.Library | None) -> None:
        functions: list[int] = []
        for name in table["functions"]:
            assert library is not None
            functions.append(library.address(name))
        places, steps = table["places"], table["steps"]
        # PROGRAM's words, the functions, the places, the steps: one block, which stays where it is.
        head = 8 * (len(PROGRAM) + len(functions))
        self._block = bytearray(head + len(places) + len(steps))
        self._block[head:] = places + steps
        base = self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._block))
        words = {
            "count": len(places) // 16,
            "places": base + head,
            "functions": base + 8 * len(PROGRAM),
            "steps": base + head + len(places),
            "bytes": table["bytes"],
            "most": table["most"],
        }
        struct.pack_into(
            f"={head // 8}Q", self._block, 0, *[words[name] for name in PROGRAM], *functions
        )


class Prepared(NamedTuple):
    """`function(inputs, outputs, arena, table)`: the first two are addresses of tables of array
    objects. `arenas` is the list of idle ones (see `new_arena`), None when none is needed;
    `failed` raises what a call that returned 1 left."""

    function: Any
    table: Any
    outs: list
    makers: list
    arenas: list | None
    failed: Callable[[], None]


_NDARRAY = {np.ndarray}


class Executable:
    """Call it with arrays in order; returns fresh arrays in order."""

    def __init__(
        self,
        images: Sequence[bytes],
        *,
        consts: Sequence[Any],
        hosts: dict[int, HostCall | Description],
        n_args: int,
        outs: Sequence[tuple[tuple, np.dtype]],
        facts: dict[str, Any],
        texts: Callable[[], dict[str, str]],
        aliases: dict[int, int],
    ) -> None:
        table = facts["table"]
        functions, whole = table["functions"], table["whole"]
        wanted = functions if whole else [*functions, MAIN]
        library = self._library = link.load(images, wanted) if wanted else None
        self.facts, self._texts = facts, texts
        self._n_args, self.outs, self._aliases = n_args, list(outs), aliases
        self._failures: dict[int, BaseException] = {}  # by thread: each raises its own
        self._hosts = hosts
        lay = importlib.import_module(_FENCES).constant if check_bounds.value else _aligned
        self._consts = [None if c is None else lay(np.ascontiguousarray(c)) for c in consts]
        link.resolve((RUN, OBJECTS, "nj_parallel_for") if table["chunked"] else (RUN, OBJECTS))
        if library is None or whole:
            self.address = link.defined_symbol(RUN) or 0
        else:
            self.address = library.address(MAIN)
        self._objects = link.defined_symbol(OBJECTS) or 0
        self._held: tuple[_Program, ctypes.Array] | None = None
        self.seconds = float(facts.get("seconds", 0.0))
        self._tables: list[tuple[Any, Any]] = []
        self.arenas: list[tuple[np.ndarray, ctypes.c_void_p]] = []
        self.arena_bytes = int(facts["arena_bytes"])
        # The shortest time that a call has taken: what `api` decides by, better than the estimate.
        self.measured = math.inf
        self.key: str | None = None  # in the disk cache

    # What only calls need is made when the first one comes: a type of ctypes takes 20 us.

    @locks.once
    def makers(self) -> list[Callable[[], np.ndarray]]:
        """Functions that make the results."""
        return [runtime.maker(shape, dtype) for shape, dtype in self.outs]

    def _prototype(self, kinds: tuple[type, ...] = ()) -> Any:
        return _prototype(self.seconds > RELEASE_GIL_ABOVE, kinds)

    @locks.once
    def _call_pointers(self) -> Any:
        return self._prototype()(self.address)

    @locks.once
    def _call_objects(self) -> Any:
        return self._prototype()(self._objects)

    @locks.once
    def table(self) -> ctypes.Array:
        """The last argument of the program: see `entry`."""
        with _making:  # one for all threads: it points to what is held here
            if self._held is None:
                program = _Program(self.facts["table"], self._library)
                self._held = program, self._table(program)
            return self._held[1]

    def _table(self, program: _Program) -> ctypes.Array:
        consts, hosts = self._consts, self._hosts
        table = _pointers(HEADER + len(consts))()
        words = {
            "program": program.address,
            "main": self.address,
            "inputs": self._n_args,
            "outputs": len(self.outs),
            "parallel_for": link.defined_symbol("nj_parallel_for") or 0,
        }
        for name, offset in CONSTS.items():
            table[offset // 8] = words[name]
        for k, array in enumerate(consts):
            table[HEADER + k] = hosts[k].bind(self._failures) if k in hosts else _address(array)
        return table

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run on C-contiguous arrays (others are copied first); results are new arrays."""
        if self._failures and threading.get_ident() in self._failures:
            self._raise()  # of a prepared call that ended early: nothing may run twice
        if check_bounds.value:
            return self._fenced(arrays)
        if self._aliases:
            arrays, results = self._donated(arrays)
        else:
            results = [make() for make in self.makers]
        status = 2
        recorded = recorders and self.facts["table"]["whole"]
        if _LAYOUT_KNOWN and not recorded:
            # A pair of tables is taken while it is in use: another thread gets another.
            try:
                tables = self._tables.pop()
            except IndexError:
                tables = _pointers(self._n_args)(), _pointers(len(results))()
            ins, outs = tables
            if {*map(type, arrays)} != _NDARRAY:
                for k, array in enumerate(arrays):
                    if not isinstance(array, np.ndarray):
                        raise TypeError(f"the memory of argument {k} is no ndarray: {array!r:.100}")
            ins[: len(arrays)] = [*map(id, arrays)]
            outs[: len(results)] = [*map(id, results)]
            if self.arena_bytes:
                status = self._native(self._call_objects, ins, outs)
            else:
                status = self._call_objects(ins, outs, None, self.table)
            self._tables.append(tables)
        if status == 2:
            arrays = [
                a if a.flags.c_contiguous and a.flags.aligned else np.array(a, order="C", copy=True)
                for a in arrays
            ]
            status = self._native(
                self._step_by_step if recorded else self._call_pointers,
                _pointers(self._n_args)(*map(_address, arrays)),
                _pointers(len(results))(*map(_address, results)),
            )
        if status:
            self._raise()
        return results

    @locks.once
    def _step_by_step(self) -> Callable[..., int]:
        """The same as `_call_pointers`, for a recording."""
        table, module = self.facts["table"], importlib.import_module(_RECORDED)
        names = {k: call.primitive.name for k, call in self._hosts.items()
                 if isinstance(call, HostCall)}
        parts, count = module.pieces(table, names), len(table["places"]) // 16
        return functools.partial(module.run, parts, count)

    def _fenced(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run on memory that ends where arrays end, in both ways to lie there."""
        fences, facts = importlib.import_module(_FENCES), self.facts

        def run(inputs: list[int], outputs: list[int], arena: int) -> int:
            tables = (_pointers(len(t))(*t) for t in (inputs, outputs))
            return self._call_pointers(*tables, ctypes.c_void_p(arena), self.table)

        # What happens in Python happens once.
        for at_end in (True,) if self._hosts else (False, True):
            arena = None
            if self.arena_bytes:
                arena = fences.Arena(self.arena_bytes, facts["guards"], facts["temporaries"])
            status, results = fences.call(run, arrays, self.outs, self._aliases, arena, at_end)
            if status:
                self._raise()
        return results

    def _donated(self, arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Arguments and results, these in the memory of donated arguments (copies of those we may
        not write) where they share it."""
        arrays = list(arrays)
        results = []
        for k, make in enumerate(self.makers):
            arg = self._aliases.get(k)
            if arg is None:
                results.append(make())
                continue
            flags = arrays[arg].flags
            if not (flags.writeable and flags.c_contiguous and flags.aligned):
                arrays[arg] = np.array(arrays[arg], order="C", copy=True)
            results.append(arrays[arg].reshape(self.outs[k][0]))
        return arrays, results

    def _native(self, function: Any, ins: Any, outs: Any) -> int:
        if not self.arena_bytes:
            return function(ins, outs, None, self.table)
        try:
            arena = self.arenas.pop()
        except IndexError:
            arena = self.new_arena()
        status = function(ins, outs, arena[1], self.table)
        if self.arena_bytes <= KEPT_ARENA:
            self.arenas.append(arena)
        return status

    def new_arena(self) -> tuple[np.ndarray, ctypes.c_void_p]:
        """Memory for the temporaries of one call, and its aligned address."""
        arena = runtime.empty((self.arena_bytes + ALIGNMENT,), _BYTE)
        return arena, ctypes.c_void_p(-(-_address(arena) // ALIGNMENT) * ALIGNMENT)

    def prepared(self) -> Prepared:
        """What a call made ahead for one signature needs. A status other than 0 means: call the
        executable itself, which copies arguments or raises."""
        kinds = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        function = self._prototype(kinds)(self._objects)
        arenas = self.arenas if self.arena_bytes else None
        return Prepared(function, self.table, self.outs, self.makers, arenas, self._raise)

    def _raise(self) -> None:
        error: BaseException | None = self._failures.pop(threading.get_ident(), None)
        if error is None:
            error = RuntimeError(
                "a compiled program failed: one of its calls of Python could not begin (what "
                "Python printed says why)."
            )
        raise error

    # ---- looking at it

    @locks.once
    def held_bytes(self) -> int:
        """About what a kept program takes: code, constants, temporaries of one call."""
        consts = sum([c.nbytes for c in self._consts if c is not None])
        arena = self.arena_bytes if self.arena_bytes <= KEPT_ARENA else 0
        return (1 << 14) + 2 * self.facts["code_bytes"] + consts + arena

    @property
    def num_kernels(self) -> int:
        """How many generated kernels (loops and special ones) the program has."""
        return self.facts["num_kernels"]

    @property
    def host_calls(self) -> list[str]:
        """Names of the operations that run in Python."""
        return self.facts["host_calls"]

    def program_text(self) -> str:
        """The steps and where values lie."""
        return self._texts()["program"]

    def kernels_text(self) -> str:
        """The kernels as loops."""
        return self._texts()["kernels"]

    def llvm_text(self) -> str:
        """The LLVM IR."""
        return self._texts()["llvm"]

    def as_text(self) -> str:
        """The LLVM IR (what `compiled.as_text()` shows)."""
        return self.llvm_text()

    def assembly(self) -> str:
        """The machine code as assembly."""
        return link.assembly(self.llvm_text())

    def cost_analysis(self) -> dict[str, float]:
        """Floating-point operations and bytes read and written, summed over the kernels."""
        return {"flops": float(self.facts["flops"]), "bytes accessed": float(self.facts["bytes"])}

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, outputs, temporaries (peak), shared outputs and code."""
        facts = self.facts
        return {
            "argument_size_in_bytes": facts["argument_bytes"],
            "output_size_in_bytes": facts["output_bytes"],
            "temp_size_in_bytes": facts["arena_bytes"],
            "alias_size_in_bytes": facts["alias_bytes"],
            "generated_code_size_in_bytes": facts["code_bytes"],
        }


_BYTE = np.dtype(np.uint8)


def _layout_known() -> bool:
    """Whether array objects hold data pointer and flags where native code looks for them."""
    for array in (np.zeros(3), np.zeros((4, 4), np.int8).T, np.zeros((2, 6))[:, ::2]):
        data = ctypes.c_void_p.from_address(id(array) + DATA_OFFSET).value
        flags = ctypes.c_int.from_address(id(array) + FLAGS_OFFSET).value
        good = array.flags.c_contiguous and array.flags.aligned
        if data != array.ctypes.data or (flags & CONTIGUOUS_ALIGNED == CONTIGUOUS_ALIGNED) != good:
            return False
    return True


_LAYOUT_KNOWN = ctypes.sizeof(ctypes.c_void_p) == 8 and _layout_known()


def _address(array: np.ndarray | None) -> int:
    return 0 if array is None else array.__array_interface__["data"][0]


def _aligned(array: np.ndarray) -> np.ndarray:
    """`array`, or a copy of it at an address that is a multiple of its element's size."""
    if _address(array) % max(array.dtype.itemsize, 1) == 0:
        return array
    return _copied(array)
