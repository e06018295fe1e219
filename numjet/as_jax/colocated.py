"""`jax.experimental.colocated_python` in one process: functions and objects of Python that run
where their arguments lie, which here is where they are called."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any

from numjet.base import tree
from numjet.core.array import Array

_WORDS = ("in_specs", "out_specs_fn", "devices")


def colocated_cpu_devices(devices_or_mesh: Any) -> Any:
    """The CPU devices beside some, or beside those of a mesh: all devices are the CPU's, so these
    themselves, a mesh as it is and others as a list."""
    return devices_or_mesh if hasattr(devices_or_mesh, "axis_names") else list(devices_or_mesh)


def colocated_python(fun: Callable) -> Callable:
    """`fun`, called on arrays and for arrays only; `specialize` tells its devices.

    JAX sends a copy of `fun` to the hosts of the arguments' devices, so that nothing it writes
    outside of modules is seen by the caller; here it runs as it is.
    """
    return _callable(fun, fun, {})


def _callable(run: Callable, fun: Callable, told: dict[str, Any]) -> Callable:
    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        where = _devices_of(tree.tree_leaves((args, kwargs)))
        if not (told.get("devices") or where):
            raise ValueError(
                "No devices found. colocated_python function without input arguments must be "
                "first specialized with devices."
            )
        if "devices" not in told and len(where) > 1:
            lists = ", ".join(str(devices) for devices in where)
            raise ValueError(
                "All arguments must use the same device list, but got multiple device lists: "
                f"{{{lists}}}."
            )
        results = run(*args, **kwargs)
        for leaf in tree.tree_leaves(results):
            if not isinstance(leaf, Array):
                raise ValueError(
                    "colocated_python only supports jax.Array as input and output, but got "
                    f"{type(leaf)}."
                )
        return results

    def specialize(
        in_specs: Any = None,
        out_specs_fn: Callable | None = None,
        devices: Sequence[Any] | None = None,
    ) -> Callable:
        """The function with what is given said of it: what its arguments and its results are
        like, which is for JAX to know how to start it, and the devices it runs on."""
        given = (in_specs, out_specs_fn, None if devices is None else tuple(devices))
        new = {word: value for word, value in zip(_WORDS, given) if value is not None}
        for word in new:
            if word in told:
                raise ValueError(f"{word} already specified")
        return _callable(run, fun, {**told, **new})

    call.specialize = specialize  # type: ignore[attr-defined]
    return call


def _devices_of(leaves: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The device lists of arrays, each once; what is no array has no dtype or no sharding."""
    found = []
    for leaf in leaves:
        leaf.dtype  # noqa: B018
        found.append(tuple(leaf.sharding._device_assignment))
    return list(dict.fromkeys(found))


class _Deferred:
    """An object that is made when it is first asked for, by whichever thread comes first."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make, self.lock = make, threading.Lock()

    @functools.cached_property
    def object(self) -> Any:
        return self.make()

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        with self.lock:
            found = self.object
        return getattr(found, name)(*args, **kwargs)


def colocated_python_class(cls: type) -> type:
    """A class whose objects have the methods of `cls`, each a colocated function, and nothing
    else of it. The object itself is made when the first of them is called."""
    methods = {
        name: method
        for name, method in inspect.getmembers(cls, inspect.isfunction)
        if not name.startswith("__")
    }

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        held = _Deferred(functools.partial(cls, *args, **kwargs))
        for name, method in methods.items():
            setattr(self, name, _callable(functools.partial(held.call, name), method, {}))

    namespace = {"__init__": init, "__doc__": cls.__doc__}
    return type(cls.__name__, (), namespace)
