"""The backend: programs compiled for a device of XLA, arrays on it, operations one by one.

Importing it fills `core.remote.Remote` in. Executables are kept with the jaxpr they were made of,
by device; each process compiles its own. For `api.devices` and whoever asks for a platform; `cpu`
does not know it.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from typing import Any

from numjet.base import config
from numjet.core.array import ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.evaluate import check_finite
from numjet.core.jaxpr import ClosedJaxpr
from numjet.core.primitive import Primitive
from numjet.core.remote import Remote, RemoteArray, device_of
from numjet.transforms.stage import stage_closed
from numjet.xla import client as clients, hlo, host_calls
from numjet.xla.buffers import DeviceBuffer
from numjet.xla.client import XlaDevice
from numjet.xla.programs import LoadedProgram

logger = logging.getLogger("numjet")
_MAX_OPERATIONS = 4096


def devices(platform: str) -> list[XlaDevice]:
    """The devices of a platform. Raises RuntimeError with a remedy where there are none."""
    found = clients.client(platform).devices
    Remote.active = True
    return found


class Loaded:
    """A program of one device and how it is called."""

    __slots__ = ("program", "consts", "device", "avals", "module", "name")

    def __init__(self, program: LoadedProgram, consts: list[DeviceBuffer], device: XlaDevice,
                 avals: Sequence[ShapedArray], module: hlo.Module, name: str) -> None:  # fmt: skip
        self.program, self.consts, self.device = program, consts, device
        self.avals, self.module, self.name = avals, module, name

    def __call__(self, args: Sequence[Any]) -> list[RemoteArray]:
        buffers = [[*self.consts, *[buffer_of(x, self.device) for x in args]]]
        if self.module.calls:
            run = host_calls.running(self.module.calls, lambda: self.program.finished(buffers))
        else:
            run = self.program(buffers)
        (results,) = run
        sharding = sharding_of(self.device)
        if config.numeric_checks[0]:
            for buffer in results:
                checked(self.name, buffer)
        return [RemoteArray(b, aval, sharding) for b, aval in zip(results, self.avals, strict=True)]


@functools.cache
def sharding_of(device: XlaDevice) -> Any:
    """The sharding of arrays that lie on one device."""
    return Remote.single(device)


def buffer_of(x: Any, device: XlaDevice) -> DeviceBuffer:
    """The array's buffer on the device, copied there if it is elsewhere."""
    if type(x) is RemoteArray:
        if x._buffer is None:
            x._value  # noqa: B018 - raises: it was deleted
        here = next(iter(x._sharding.device_set))
        if here is device:
            return x._buffer
        if here.client is device.client:
            return x._buffer.copy_to(device)
        return device.client.put(x._value, device)
    array = x if isinstance(x, ArrayImpl) else as_array(x)
    return device.client.put(array._value, device)


def put(x: Any, device: XlaDevice) -> RemoteArray:
    """An Array on the device."""
    if type(x) is RemoteArray and next(iter(x._sharding.device_set)) is device:
        return x
    array = x if isinstance(x, ArrayImpl) else as_array(x)
    return RemoteArray(buffer_of(array, device), array.aval, sharding_of(device))


def checked(name: str, buffer: DeviceBuffer) -> None:
    """Raise what the flags debug_nans, debug_infs and no_execution ask for."""
    if config.debug_nans.value or config.debug_infs.value or config.no_execution.value:
        check_finite(name, buffer.result())


def compiled(closed: ClosedJaxpr, device: XlaDevice, name: str,
             donate: Sequence[int] = ()) -> Loaded:  # fmt: skip
    """The program of a jaxpr for a device, compiled at the first call and kept with the jaxpr."""
    key = ("xla", device, tuple(donate))
    found = closed.cache.get(key)
    if found is None:
        module = hlo.module(closed, name, donate)
        client = device.client
        if module.calls and not host_calls.register(client):
            raise NotImplementedError(
                f"{module.calls[0].primitive.name} in {name}: {device} cannot call Python "
                "functions. Call them outside the compiled function, or run it on the CPU "
                "(jit(..., backend='cpu'))."
            )
        program = _compile(client, module.text, device)
        consts = [buffer_of(as_array(c), device) for c in closed.consts]
        found = Loaded(program, consts, device, closed.out_avals, module, name)
        closed.cache[key] = found
    return found


def _compile(client: clients.Client, text: str, device: XlaDevice) -> LoadedProgram:
    options = clients.one_device_options(device.id)
    if config.log_compiles.value:
        logger.warning("Compiling for %s: %d lines.", device, text.count("\n"))
    return client.compile(text, options)


def run(closed: ClosedJaxpr, args: Sequence[Any], device: XlaDevice, name: str = "main",
        donate: Sequence[int] = ()) -> list[RemoteArray]:  # fmt: skip
    """Run a jaxpr on Arrays; its results on the device, which may still compute them."""
    # What the device has not got is put there for this call alone.
    here = [i for i in donate if type(args[i]) is RemoteArray and device_of(args[i]) is device]
    results = compiled(closed, device, name, here)(args)
    for i in donate:
        if isinstance(args[i], ArrayImpl):
            args[i].delete()
    return results


_operations: dict[Any, ClosedJaxpr] = {}


def evaluate(primitive: Primitive, args: tuple, params: dict, device: XlaDevice) -> Any:
    """One operation on the device."""
    arrays = [x if isinstance(x, ArrayImpl) else as_array(x) for x in args]
    avals = tuple([x.aval for x in arrays])
    try:
        key: Any = (primitive, avals, tuple(params.items()))
        closed = _operations.get(key)
    except TypeError:  # params that do not hash
        key = closed = None
    if closed is None:
        def operation(*xs: Any) -> list:
            out = primitive.bind(*xs, **params)
            return list(out) if primitive.multiple_results else [out]

        closed = stage_closed(operation, avals)
        if key is not None:
            if len(_operations) >= _MAX_OPERATIONS:
                _operations.clear()
            _operations[key] = closed
    outs = run(closed, arrays, device, primitive.name)
    return outs if primitive.multiple_results else outs[0]


Remote.run, Remote.put, Remote.evaluate = run, put, evaluate  # type: ignore[method-assign]
