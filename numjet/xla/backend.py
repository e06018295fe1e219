"""The backend: programs compiled for devices of XLA, arrays on them, operations one by one.

Importing it fills `core.remote.Remote` in. Executables are kept with the jaxpr they were made of,
by devices and layouts of arguments, and in the disk cache. A place is a tuple of devices: one, or
the partitions of one program. For `api.placement.devices` and whoever asks for a platform; `cpu`
does not know it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.base import config, spans
from numjet.base.errors import XlaError
from numjet.core import hooks
from numjet.core.array import ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.deferred import Plan
from numjet.core.evaluate import check_finite
from numjet.core.hooks import Remote, Sharded
from numjet.core.jaxpr import ClosedJaxpr, bare
from numjet.core.memo import Memo
from numjet.core.primitive import Primitive
from numjet.core.remote import Expected, RemoteArray, target
from numjet.core.sharded import constraint_of, devices_named
from numjet.ops.stored_keys import has_words, viewed
from numjet.transforms.stage import stage_closed
from numjet.xla import client as clients, deferral, dlpack, hlo, host_calls
from numjet.xla.buffers import DeviceBuffer, explained, finish_readers
from numjet.xla.client import XlaDevice
from numjet.xla.layouts import Layout, everywhere, layout_of
from numjet.xla.programs import LoadedProgram

logger = logging.getLogger("numjet")
_MAX_OPERATIONS = 4096


def devices(platform: str) -> list[XlaDevice]:
    """The devices of a platform. Raises RuntimeError with a remedy where there are none."""
    found = clients.client(platform).devices()
    Remote.active = True
    return found


class Loaded:
    """A program of a place and how it is called."""

    __slots__ = ("program", "consts", "place", "avals", "module", "name", "outs", "calls")
    buffer = DeviceBuffer

    def __init__(self, program: LoadedProgram, consts: list[DeviceBuffer], place: tuple,
                 avals: Sequence[ShapedArray], module: hlo.Module, name: str,
                 outs: Sequence[Any]) -> None:  # fmt: skip
        self.program, self.consts, self.place = program, consts, place
        self.avals, self.module, self.name, self.outs = avals, module, name, outs
        program.name = name  # which errors tell
        self.calls = 0  # for `api.compiled.fastcall_remote`

    def __call__(self, args: Sequence[Any], committed: bool = False) -> list[RemoteArray]:
        buffers = [*self.consts, *[buffer_of(x, self.place) for x in args]]
        start = time.perf_counter_ns()
        try:
            if self.module.calls:
                results = host_calls.running(self.module.calls,
                                             lambda: self.program.finished(buffers))
            else:
                results = self.program(buffers)
            if spans.recorders:
                for buffer in results:
                    buffer.wait()
                spans.tell("program", f"jit({self.name})", start, time.perf_counter_ns(),
                           device=str(self.place[0]))
        except XlaError as error:
            raise explained(error, self.name) from None
        if config.numeric_checks[0]:
            for buffer in results:
                checked(self.name, buffer)
        shardings = self.shardings_out(args, committed)
        return [RemoteArray(b, aval, sharding)
                for b, aval, sharding in zip(results, self.avals, shardings, strict=True)]

    def check(self, error: int | None) -> None:
        """Raise what an execution returned, if it is an error."""
        try:
            self.program.client.plugin.check(error)
        except XlaError as found:
            raise explained(found, self.name) from None

    def kernels_text(self) -> str:
        """The module, as StableHLO."""
        return self.module.text

    def llvm_text(self) -> str:
        raise NotImplementedError(
            "compile().as_text: programs of XLA's devices are not shown as LLVM IR or assembly. "
            "lower(...).as_text('stablehlo') shows what the plugin is given, and "
            "runtime_executable().program.optimized() is what it made of it, a HloModuleProto."
        )

    assembly = llvm_text

    def cost_analysis(self) -> dict[str, float]:
        """What the plugin estimates of one call ("flops", "bytes accessed", ...)."""
        return self.program.cost_analysis()

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, results, temporaries and code."""
        return self.program.memory_analysis()

    def on_device(self, values: Sequence[Any]) -> list[RemoteArray]:
        """Arrays where the program runs, everywhere."""
        return [RemoteArray(buffer_of(x, self.place), x.aval, None) for x in values]

    def shardings_out(self, args: Sequence[Any], committed: bool = False) -> Sequence[Any]:
        """The shardings of results: None where no argument was put on the device by anyone."""
        if len(self.place) > 1:
            return self.outs
        put_there = committed or any(
            [type(x) is RemoteArray and x._sharding is not None for x in args])
        sharding = self.place[0].sharding if put_there else None
        return [sharding] * len(self.avals)


def checked(name: str, buffer: DeviceBuffer) -> None:
    """Raise what the flags debug_nans, debug_infs and no_execution ask for."""
    if config.debug_nans.value or config.debug_infs.value or config.no_execution.value:
        for part in buffer.parts():
            check_finite(name, part)


# ------------------------------------------------------------------ arrays
def buffer_of(x: Any, place: tuple, kind: str | None = None) -> DeviceBuffer:
    """The array's buffer at the place, copied there (to each device) if it is elsewhere. kind: of
    the memory, None for that of arrays by default."""
    if type(x) is RemoteArray:
        if x._buffer is None:
            x._value  # noqa: B018 - raises: it was deleted
        buffer: DeviceBuffer = x._buffer
        here = buffer.devices
        if here == place:
            return buffer.in_memory(kind)
        if hooks.guards is not None:
            hooks.guards.moved(x, None)
        if len(here) == 1 and here[0].client is place[0].client:
            return buffer.in_memory(None).copy_to(place).in_memory(kind)
        return place[0].client.put(in_rows(x), place, kind)
    array = x if isinstance(x, ArrayImpl) else as_array(x)
    try:
        return place[0].client.put(in_rows(array), place, kind)
    except XlaError as error:
        raise explained(error, "device_put") from None


def in_rows(array: ArrayImpl) -> np.ndarray:
    """The array's value as a device has it: keys of several words are rows of them."""
    value = array._value
    if value.dtype.kind != "V" or not has_words(array.aval):
        return value
    return viewed(value, hlo.STORAGE.aval(array.aval))


def put(x: Any, sharding: Any, committed: bool = True) -> RemoteArray:
    """An Array laid out as a sharding of devices of one platform says; not `committed`: where
    computations may move it from."""
    array = x if isinstance(x, ArrayImpl) else as_array(x)
    place = place_of(sharding)
    kind = _other_memory(sharding, place)
    if len(place) == 1:
        if not committed and type(array) is RemoteArray:
            return array
        at = None
        if committed:
            at = place[0].sharding if kind is None else Remote.single(place[0], memory_kind=kind)
        return RemoteArray(buffer_of(array, place, kind), array.aval, at)
    if type(x) is RemoteArray and x._buffer is not None and x._buffer.devices == place and (
        layout_of(x._sharding, x.ndim, place) == layout_of(sharding, x.ndim, place)
    ):
        buffer = x._buffer.in_memory(kind)
        if buffer is x._buffer and x._sharding == sharding:
            return x
        return RemoteArray(buffer, array.aval, sharding)
    sharding.shard_shape(array.shape)  # raises where it does not fit
    value, parts = in_rows(array), {}
    for device, index in sharding.indices(array.shape):
        # One slice a device keeps its axis there.
        whole = tuple([slice(i, i + 1) if isinstance(i, int) else i for i in index])
        parts[device] = np.ascontiguousarray(value[whole]).reshape(value[whole].shape)
    buffer = place[0].client.put_parts([parts[d] for d in place], place, kind)
    return RemoteArray(buffer, array.aval, sharding)


def _other_memory(sharding: Any, place: tuple) -> str | None:
    """The kind of memory that a sharding names; None where arrays are there by default."""
    kind = getattr(sharding, "memory_kind", None)
    return None if kind == place[0].memory_kinds[0] else kind


_places: dict[tuple, tuple] = {}


def same(place: tuple) -> tuple:
    """The one tuple of these devices, so that places are compared by identity."""
    return _places.setdefault(place, place)


def place_of(sharding: Any) -> tuple:
    """The devices of a sharding, in its order."""
    mesh = getattr(sharding, "mesh", None)
    if mesh is not None:
        return same(tuple(mesh.devices.flat))
    members = getattr(sharding, "devices", None)
    return same(tuple(sharding.device_set) if members is None else tuple(members))


# ------------------------------------------------------------------ programs
def loaded(closed: ClosedJaxpr, args: Sequence[Any], place: tuple, name: str,
           donate: Sequence[int] = (), outs: Sequence[Any] | None = None) -> Loaded:  # fmt: skip
    """The program of a jaxpr for a place and arguments that lie as these do, compiled at the first
    call and kept with the jaxpr. outs: shardings of the results of several devices, None where they
    follow."""
    place = same(place)
    ins: tuple[Layout, ...] = ()
    results: tuple[Layout, ...] = ()
    if len(place) > 1:
        ins = tuple([_layout(x, place) for x in args])
        outs = _results(closed, args, place, outs)
        results = tuple([in_memory(layout_of(s, a.ndim, place), a)
                         for s, a in zip(outs, closed.out_avals, strict=True)])
    key = ("xla", place, ins, results, tuple(donate))
    found = closed.cache.get(key)
    if found is None:
        for named in devices_named(closed):
            if not {*named} <= {*place}:
                raise ValueError(
                    f"Received incompatible devices for jitted computation: {name} runs on "
                    f"{[*place]}, and names {[*named]} within. Move its arguments there with "
                    "numjet.device_put."
                )
        with spans.span("lower", f"jit({name})"):
            inner = hlo.stored(bare(closed))
            module = hlo.module(inner, name, donate, place, ins, results)
        client = place[0].client
        if module.calls and not host_calls.register(client):
            raise NotImplementedError(
                f"{module.calls[0].primitive.name} in {name}: {place[0]} cannot call Python "
                "functions. Call them outside the compiled function, or run it on the CPU "
                "(jit(..., backend='cpu'))."
            )
        with spans.span("compile", f"jit({name})"):
            program = _compile(module, place)
        consts = [buffer_of(as_array(c), place) for c in inner.consts]
        found = Loaded(program, consts, place, closed.out_avals, module, name, outs or ())
        closed.cache[key] = found
    return found


def in_memory(layout: Layout, aval: ShapedArray) -> Layout:
    """A layout of an array, with the axis that keys' words lie along."""
    return layout._replace(dims=(*layout.dims, ())) if has_words(aval) else layout


def _layout(x: Any, place: tuple) -> Layout:
    lies = x._sharding is not None if type(x) is Expected else (
        type(x) is RemoteArray and x._buffer is not None and x._buffer.devices == place)
    layout = layout_of(x._sharding, x.ndim, place) if lies else everywhere(len(x.shape), place)
    return in_memory(layout, x.aval)


def _results(closed: ClosedJaxpr, args: Sequence[Any], place: tuple,
             wanted: Sequence[Any] | None) -> list[Any]:  # fmt: skip
    """The shardings of results: those that are wanted, and what the partitioner finds."""
    given = [None] * len(closed.out_avals) if wanted is None else list(wanted)
    if None not in given:
        return given
    over = next((s for s in [*[getattr(x, "_sharding", None) for x in args], *given,
                             constraint_of(closed)] if hasattr(s, "of_layout")), None)
    if over is None or place_of(over) != place:
        return [Remote.everywhere(place) if s is None else s for s in given]
    return Remote.propagated(closed, over, [_cut(x, over.mesh) for x in args], given)


def _cut(x: Any, mesh: Any) -> Any:
    """By which axes of the mesh each dimension is cut; None where the array lies nowhere."""
    sharding: Any = x._sharding if type(x) in (RemoteArray, Expected) else None
    if not hasattr(sharding, "layout"):
        return None
    return sharding.layout(x.ndim) if sharding.mesh == mesh else ((),) * x.ndim


def _compile(module: hlo.Module, place: tuple) -> LoadedProgram:
    """The program of a module, from the disk cache where it is there."""
    client = place[0].client
    options = clients.options_for(place)
    key = None
    if not module.calls and client.identity:  # functions that it calls are this process's
        parts = (client.identity.encode(), options, module.text.encode())
        key = hooks.cache.digest(b"xla\0" + b"\0".join(parts))
        data = hooks.cache.cache_get(key)
        if data is not None:
            try:
                return client.load(data, place)
            except XlaError as error:
                hooks.cache.cache_damaged(key, error)
    if config.log_compiles.value:
        where = place[0] if len(place) == 1 else f"{len(place)} devices"
        logger.warning("Compiling for %s: %d lines.", where, module.text.count("\n"))
    program = client.compile(module.text, options, place)
    if key is not None:
        try:
            hooks.cache.cache_put(key, program.serialize())
        except XlaError as error:  # not every plugin writes programs down
            client.identity = ""
            logger.info("Programs of %s are not kept: %s", client.platform, error)
    return program


def within(closed: ClosedJaxpr, shardings: Sequence[Any] = ()) -> tuple | None:
    """The devices of XLA that shardings of results, or constraints in a program, name."""
    for sharding in (*shardings, constraint_of(closed)):
        mesh = getattr(sharding, "mesh", None)
        if sharding is None or mesh is not None and not hasattr(mesh, "devices_in_order"):
            continue  # nothing, or axes alone
        place = place_of(sharding)
        if isinstance(place[0], XlaDevice):
            return place
    return None


def _widened(closed: ClosedJaxpr, args: Sequence[Any], place: tuple,
             outs: Sequence[Any]) -> tuple:  # fmt: skip
    """The place of a program whose arguments nobody put on one device, but whose results or
    constraints name more."""
    if len(place) > 1 or any([type(x) is RemoteArray and x._sharding is not None for x in args]):
        return place
    wide = within(closed, outs)
    return place if wide is None else wide


def run(closed: ClosedJaxpr, args: Sequence[Any], place: tuple, name: str = "main",
        donate: Sequence[int] = (), committed: bool = False,
        outs: Sequence[Any] | None = None) -> list[RemoteArray]:  # fmt: skip
    """Run a jaxpr on Arrays; its results at the place, which may still compute them."""
    place = same(place if committed else _widened(closed, args, place, outs or ()))
    if len(place) > 1 and Sharded.contexts:
        Remote.check_context(args, name)
    # What the place has not got is put there for this call alone.
    here = [i for i in donate if type(args[i]) is RemoteArray
            and args[i]._buffer is not None and args[i]._buffer.devices == place
            and getattr(args[i]._buffer, "kind", None) is None]
    if donate:
        finish_readers("an array is donated")
    for i in here:
        args[i]._host = None  # what sees memory keeps it from being given away
    results = loaded(closed, args, place, name, here, outs)(args, committed)
    for i in donate:
        if isinstance(args[i], ArrayImpl):
            args[i].delete()
    if outs is not None:
        results = [r if s is None or _other_memory(s, place) is None else put(r, s)
                   for r, s in zip(results, outs, strict=True)]
    return results


# ------------------------------------------------------------------ operations one by one
_operations: Memo = Memo("operations on devices", _MAX_OPERATIONS)
_numbers: Memo = Memo("host numbers on devices")


def evaluate(primitive: Primitive, args: tuple, params: dict, place: tuple) -> Any:
    """One operation at the place, now or later."""
    arrays = [x if isinstance(x, ArrayImpl) else as_array(x) for x in args]
    avals = tuple([x.aval for x in arrays])
    form, place = _form(primitive, params, avals), same(place)
    if form.may_wait and len(place) == 1 and deferral.enabled():
        made = deferral.defer(form, place, [_operand(x, place) for x in arrays], avals, _load)
        sharding = _sharding(arrays, place)
        outs = [RemoteArray(buffer, aval, sharding)
                for buffer, aval in zip(made, form.closed.out_avals, strict=True)]
    else:
        outs = run(form.closed, arrays, place, primitive.name)
    return outs if primitive.multiple_results else outs[0]


def defer_plan(plan: Plan, arrays: list) -> RemoteArray | None:
    """The operations of a plan on arrays of which some are on devices, later; None where they have
    to run at once."""
    if not deferral.enabled():
        return None
    if plan.remote is not None and len(plan.remote) == 1:
        found = deferral.next_row(plan.remote[0][0], arrays)
        if found is not None:
            return RemoteArray(found, plan.out, _sharding(arrays, found.devices))
    place = target(arrays)
    if not place or len(place) > 1:
        return None
    place = same(place)
    if plan.remote is None:
        avals, made = list(plan.avals), []
        for primitive, params, places, out in plan.equations:
            form = _form(primitive, params, tuple([avals[i] for i in places]))
            made.append((form, places, [avals[i] for i in places]))
            avals.append(out)
        plan.remote = made  # whole: other threads read it
    if not all([form.may_wait for form, _, _ in plan.remote]):
        return None
    operands = [*arrays, *plan.constants]
    buffers = [_operand(x, place) for x in operands]
    numbers = [(x, b) for x, b in zip(operands, buffers, strict=True) if type(x) is ArrayImpl]
    for form, places, avals in plan.remote:
        buffers += deferral.defer(form, place, [buffers[i] for i in places], avals, _load, numbers)
    return RemoteArray(buffers[-1], plan.out, _sharding(arrays, place))


def _sharding(arrays: list, place: tuple) -> Any:
    """That of results on one device: it is theirs to choose where an operand was put there."""
    for x in arrays:
        if type(x) is RemoteArray and x._sharding is not None:
            return place[0].sharding
    return None


def _form(primitive: Primitive, params: dict, avals: tuple) -> deferral.Form:
    """An operation as a row has it. Raises where it has no form on devices."""
    try:
        key: Any = (primitive, avals, tuple(params.items()))
        found = _operations.get(key)
    except TypeError:  # params that do not hash
        key = found = None
    if found is None:
        found = _made(primitive, params, avals)
        if key is not None:
            _operations[key] = found
    return found  # type: ignore[no-any-return]


def _made(primitive: Primitive, params: dict, avals: tuple) -> deferral.Form:

    def operation(*xs: Any) -> list:
        out = primitive.bind(*xs, **params)
        return list(out) if primitive.multiple_results else [out]

    closed = stage_closed(operation, avals)
    calls = hlo.module(hlo.stored(bare(closed)), primitive.name).calls
    return deferral.Form(primitive, params, closed, not calls and not closed.effects)


def _operand(x: ArrayImpl, place: tuple) -> DeviceBuffer:
    """The array's buffer at the place; numbers of the host are put there once."""
    if type(x) is RemoteArray or x.aval.size != 1:
        return buffer_of(x, place)
    key = place, x.aval, x._value.tobytes()
    found = _numbers.get(key)
    if found is None:
        found = _numbers[key] = buffer_of(x, place)
    return found


def _load(closed: ClosedJaxpr, place: tuple, name: str) -> Loaded:
    return loaded(closed, (), place, name)


Remote.run, Remote.put, Remote.evaluate = run, put, evaluate
Remote.loaded, Remote.within = loaded, within
Remote.capsule, Remote.dlpack_device = dlpack.capsule, dlpack.device_of
Remote.taken, Remote.defer_plan = dlpack.taken, defer_plan
