"""What JAX's private functions do that published libraries call, for those that numjet has no
counterpart of. Named by the rows of private.py, loaded when one of them is asked for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from numjet.api import devices as device_module
from numjet.base.tree_registry import KINDS
from numjet.core import trace
from numjet.core.array import Array, ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.trace import EVAL, current_trace


# ------------------------------------------------------------------ lines in messages
class Exclusions(set):
    """Files of libraries whose frames no message names as the user's line."""

    def add(self, path: Any) -> None:
        super().add(path)
        trace._internal[path] = True

    def remove(self, path: Any) -> None:
        super().remove(path)
        trace._internal.pop(path, None)

    def discard(self, path: Any) -> None:
        if path in self:
            self.remove(path)


exclude_paths = Exclusions()


def register_exclusion(path: str) -> None:
    """Messages about a traced value name the innermost line outside of numjet and `path`."""
    exclude_paths.add(path)


def api_boundary(fun: Callable, **_: Any) -> Callable:
    """`fun`: tracebacks are shown whole, so that there is nothing to cut at a library's border."""
    return fun


class UnfilteredStackTrace(Exception):
    """Never raised here: tracebacks are not filtered, so none is kept aside."""


def include_frame(frame: Any) -> bool:
    """Whether a traceback shows `frame`: those of registered files are left out."""
    return frame.f_code.co_filename not in exclude_paths


# ------------------------------------------------------------------ arguments
def infer_argnums_and_argnames(
    signature: inspect.Signature,
    argnums: int | Iterable[int] | None,
    argnames: str | Iterable[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the same arguments, where one of them (or neither) is given."""
    only, either = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = signature.parameters.values()
    named = [p.name for p in parameters if p.kind in (only, either)]
    by_name = {p.name for p in parameters if p.kind is either}
    nums = None if argnums is None else (argnums,) if isinstance(argnums, int) else tuple(argnums)
    names = (
        None if argnames is None else (argnames,) if isinstance(argnames, str) else tuple(argnames)
    )
    if nums is None and names is None:
        return (), ()
    if nums is None:
        wanted = by_name.intersection(names or ())
        nums = tuple([i for i, name in enumerate(named) if name in wanted])
    elif names is None:
        names = tuple([named[i] for i in nums if 0 <= i < len(named) and named[i] in by_name])
    return nums, names or ()


# ------------------------------------------------------------------ the state of the process
def trace_state_clean() -> bool:
    """Whether no transformation is under way here."""
    return current_trace() is EVAL


class Backends(Mapping):
    """The backends in use: none, or the CPU's after the first call of `devices`."""

    def __getitem__(self, name: str) -> Any:
        if name not in self._names():
            raise KeyError(name)
        return device_module.devices()[0].client

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    @staticmethod
    def _names() -> tuple[str, ...]:
        return () if device_module.before_first_use else ("cpu",)


backends = Backends()


class GlobalState:
    """Of several processes there is one, without a coordinator."""

    process_id = 0
    num_processes = 1
    client = None
    service = None
    coordinator_address = None
    preemption_sync_manager = None


global_state = GlobalState()


class IfrtPrograms:
    """Programs for plugins of other runtimes: none can be made here, so it has no names."""


class CheckpointManagerBase:
    """The interface of managers of checkpoints that libraries implement; itself saves nothing."""


def colocated_cpu_devices(devices: Any) -> Any:
    """The CPU devices beside `devices`: all devices are the CPU's, so these themselves."""
    return devices


def colocated_python(fun: Callable) -> Callable:
    """Raises NotImplementedError: there are no other hosts that could run `fun`."""
    raise NotImplementedError(
        f"colocated_python: {fun!r} would run on other hosts; numjet runs in one process."
    )


# ------------------------------------------------------------------ values and avals
def physical_aval(aval: Any) -> Any:
    """The aval of the memory of values of `aval`."""
    return aval


# ------------------------------------------------------------------ pytrees
class Registry(Mapping):
    """The types that are registered as pytree nodes."""

    def __contains__(self, cls: Any) -> bool:
        return cls in KINDS

    def __getitem__(self, cls: type) -> Any:
        return KINDS[cls]

    def __iter__(self) -> Iterator[type]:
        return iter(KINDS)

    def __len__(self) -> int:
        return len(KINDS)


registry = Registry()


# ------------------------------------------------------------------ kinds of values
class ExtendedDType:
    """Base of dtypes that libraries declare. No array has one: asking for it is a TypeError."""


class TypedNdArray(np.ndarray):
    """A NumPy array that remembers whether its dtype was asked for. None are made here."""


class TypedInt(int):
    """A Python integer with a dtype. None are made here."""


class TypedFloat(float):
    """A Python float with a dtype. None are made here."""


class TypedComplex(complex):
    """A Python complex number with a dtype. None are made here."""


def reconstruct_array(fun: Callable, args: tuple, state: tuple, aval_state: dict) -> Array:
    """The Array of a pickle that JAX wrote: NumPy's way to make one, and the weak type."""
    value = fun(*args)
    value.__setstate__(state)
    weak = aval_state.get("weak_type", False)
    return ArrayImpl(value, ShapedArray(value.shape, value.dtype, weak))
