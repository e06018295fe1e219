"""Arrays on devices of other backends than the CPU, and which devices a computation belongs to.

A `RemoteArray` is no `ArrayImpl` by type, so that every fast way of concrete arrays leaves it
alone; what evaluates and compiles asks `target` where a computation belongs, once `Remote.active`
(`core.hooks`) says that there is such a backend. What would break it: code that reads `_value` of
whatever it is given, which fetches the array to the host.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from numjet.core import hooks, memories
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.dtypes import KeyDType, key_dtype
from numjet.core.hooks import Remote
from numjet.core.primitive import REGISTRY
from numjet.core.sharded import ShardedArray


class Device:
    """Somewhere that arrays lie and programs run. Identity is equality.

    `id`: its number among all; `platform`: "cpu", "gpu" or "tpu"; `device_kind`: the hardware's
    name; `process_index`: whose it is. `devices()` lists them.

    >>> import numjet as nj
    >>> nj.devices("cpu")[0].platform
    'cpu'
    """

    __slots__ = ("id",)
    id: int
    platform: str
    device_kind: str
    process_index: int
    client: Any
    # The names of the memories that it reads and writes; arrays are in the first by default.
    memory_kinds: tuple[str, ...]

    def __deepcopy__(self, memo: dict) -> Device:
        return self

    def __copy__(self) -> Device:
        return self

    def addressable_memories(self) -> list[memories.Memory]:
        """The memories that the device reads and writes, one for each kind."""
        return [memories.Memory(self, kind) for kind in self.memory_kinds]

    def default_memory(self) -> memories.Memory:
        """Where arrays are when nothing else was asked for."""
        return memories.Memory(self, self.memory_kinds[0])

    def memory(self, kind: str) -> memories.Memory:
        """The memory of that kind. Raises JaxRuntimeError for one that the device lacks."""
        return memories.memory(self, kind)


class Held:
    """What an array holds in the memory of `devices`: `handles`, one a device. `source` is the
    user's line that made it, or None; `maker` the name of the program that did (an empty slot where
    none did). A base for the backend's buffers, which native code makes."""

    __slots__ = ("handles", "devices", "source", "maker")
    handles: tuple[int, ...]
    devices: tuple
    source: Any
    maker: str


class RemoteArray(ArrayImpl):
    """An Array in the memory of devices. Reading its value copies it to the host, once.

    `_buffer` knows its `devices`, a tuple; `_sharding` is None where it lies on a device that
    nobody chose, so that computations may move it to where other arrays are.
    """

    __slots__ = ("_buffer", "_host")
    _buffer: Any
    _host: Any

    def __init__(self, buffer: Any, aval: ShapedArray, sharding: Any) -> None:
        self._buffer, self._sharding = buffer, sharding
        self._aval = aval if sharding is None else aval.over(sharding)

    def __getattr__(self, name: str) -> Any:
        # Slots that are empty: what is not on the host yet, what nobody placed.
        return None if name == "_host" or name == "_sharding" else super().__getattr__(name)

    @property
    def _value(self) -> np.ndarray:  # type: ignore[override]
        # Read once each: another thread may read or delete the array meanwhile.
        host, buffer = self._host, self._buffer
        if buffer is None:
            raise RuntimeError(
                f"Array has been deleted with shape={self.aval.str_short()}. Its buffer was "
                "donated (donate_argnums) or .delete() was called. Use the function's result "
                "instead of the donated argument."
            )
        if host is None:
            if hooks.guards is not None:
                hooks.guards.fetched(self)
            aval, sharding = self._aval, self._sharding
            shape = aval.shape
            words = type(aval.dtype) is KeyDType and aval.dtype is not key_dtype
            if words:  # which are the last axis there
                shape = (*shape, aval.dtype.itemsize // 4)
            host = buffer.result() if len(buffer.devices) == 1 else (
                buffer.assembled(sharding.indices(aval.shape), shape))
            if words:
                host = np.ascontiguousarray(host).view(aval.dtype.storage)[..., 0]
            self._host = host
        return host  # type: ignore[no-any-return]

    def block_until_ready(self) -> RemoteArray:
        """Wait for the value; errors of the computation surface here."""
        if self._buffer is None:
            self._value  # noqa: B018 - raises
        self._buffer.wait()
        return self

    def is_ready(self) -> bool:
        """Whether the value is there."""
        return self._buffer is None or self._buffer.done()

    def copy_to_host_async(self) -> None:
        """Begin to copy the value to the host, which the first read waits for."""
        if self._buffer is None:
            self._value  # noqa: B018 - raises
        if self._host is None:
            if hooks.guards is not None:
                hooks.guards.fetched(self)
            self._buffer.fetch()

    def delete(self) -> None:
        """Give the device's memory back; later reads raise RuntimeError."""
        buffer, self._buffer, self._host = self._buffer, None, None
        if buffer is not None:
            self._sharding = self._sharding or Remote.single(buffer.devices[0])
            buffer.delete()

    def is_deleted(self) -> bool:
        return self._buffer is None

    def unsafe_buffer_pointer(self) -> int:
        """The address of the first element, on the device."""
        return self._buffer.address()

    def __dlpack__(self, **kwargs: Any) -> Any:
        return Remote.capsule(self, **kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return Remote.dlpack_device(self)  # type: ignore[no-any-return]

    def __copy__(self) -> RemoteArray:
        return REGISTRY["copy"].bind(self)  # type: ignore[no-any-return]

    def __deepcopy__(self, memo: dict) -> RemoteArray:
        return self.__copy__()


def kept_home(outs: Sequence[Any], args: Sequence[Any]) -> None:
    """Note that results belong to the CPU, as arguments that were put there do; they lie in its
    memory, in whichever those do."""
    sharding = next(x._sharding for x in args if isinstance(x, ArrayImpl)
                    and type(x) is not RemoteArray and x._sharding is not None)
    sharding = sharding.with_memory_kind("device")
    for out in outs:
        if out._sharding is None and not any([out is x for x in args]):
            out._sharding = sharding


class Expected:
    """An argument that is not there yet: its type, and its sharding over devices or None."""

    __slots__ = ("aval", "shape", "ndim", "_sharding")

    def __init__(self, aval: ShapedArray, sharding: Any) -> None:
        self.aval, self._sharding = aval, sharding
        self.shape, self.ndim = aval.shape, aval.ndim


def target(values: Iterable[Any], name: str = "") -> tuple | None:
    """The place (a tuple of devices of another backend) that a computation on these values belongs
    to: () where one was put on the CPU, None where nothing says that it belongs elsewhere.

    Raises ValueError where they were put on several.
    """
    found = loose = home = laid = None
    for x in values:
        if type(x) is not RemoteArray:
            if type(x) is ShardedArray:
                laid = x._sharding.device_set if x._sharding.binds else laid
            elif isinstance(x, ArrayImpl) and x._sharding is not None:
                home = x._sharding.device_set
            continue
        if x._buffer is None:
            x._value  # noqa: B018 - raises: it was deleted
        here = x._buffer.devices
        if x._sharding is None:
            loose = loose or here
        elif found is None:
            found = here
        elif here is not found and here != found:
            raise ValueError(
                f"Received incompatible devices for {name or 'a computation'}: arguments lie "
                f"on {_named(found)} and {_named(here)}. Move them to one device with "
                "numjet.device_put."
            )
    on_cpu = home or laid
    if on_cpu is not None and found is not None:
        raise ValueError(
            f"Received incompatible devices for {name or 'a computation'}: arguments lie on "
            f"{_named(tuple(on_cpu))} and {_named(found)}. Move them to one device with "
            "numjet.device_put."
        )
    if home is not None:
        return ()
    if found is None and loose is None:
        chosen = Remote.choose()
        return None if chosen is None else (chosen,)
    return found or loose


# The platform that a function is traced for, where that is known.
traced_for: ContextVar[str | None] = ContextVar("numjet.platform", default=None)


def platform_of(values: Iterable[Any], name: str = "") -> str:
    """The platform, by its client's name, that a computation on these values belongs to, tracers of
    concrete values among them: that which is traced for, if any.

    Raises ValueError where they were put on several.
    """
    if not Remote.active:
        return "cpu"
    chosen = traced_for.get()
    if chosen is not None:
        return chosen
    below = []
    for x in values:
        # A tracer of a derivative or of vmap has what it stands for.
        while not isinstance(x, ArrayImpl | None):
            x = getattr(x, "primal", getattr(x, "value", None))
        below.append(x)
    place = target(below, name)
    return place[0].client.platform if place else "cpu"


@contextlib.contextmanager
def traced_with(values: Iterable[Any]) -> Iterator[None]:
    """Functions that are traced inside are traced for the platform of these values."""
    if not Remote.active or traced_for.get() is not None:
        yield
        return
    before = traced_for.set(platform_of(values))
    try:
        yield
    finally:
        traced_for.reset(before)


def _named(devices: tuple) -> str:
    return str(devices[0]) if len(devices) == 1 else f"{len(devices)} devices {list(devices)}"
