"""Transfer guards: values that move between the host and devices are refused, or logged.

The flags `transfer_guard_host_to_device`, `..._device_to_device` and `..._device_to_host` (and
`transfer_guard`, which sets all three) load this module when one of them is first given a level
that guards. As long as one does, anywhere, conversions of NumPy arrays and Python numbers pass
through `host_value`, and operations take the complete way (`config.numeric_checks`); otherwise none
of this is there.

A transfer is implicit where an operation or a compiled function is handed a value that lies
elsewhere, explicit where a function is called that exists to move values (`EXPLICIT`). What counts
is what a user's line hands in: constants that our own functions make are parts of programs. Who
handed a value in is found on the stack: it is among the arguments of the outermost of our functions
there. The CPU's devices read the host's memory, so that nothing moves from them to the host.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

import numpy as np

from numjet.api.placement import devices, host
from numjet.base import config, tree
from numjet.base.errors import JaxRuntimeError
from numjet.core import array, hooks
from numjet.core.array import Array, ArrayImpl
from numjet.core.hooks import Remote
from numjet.core.remote import RemoteArray
from numjet.core.trace import Tracer, current_trace, is_ours

_logger = logging.getLogger("numjet")

# Functions that exist to move values.
EXPLICIT: frozenset[CodeType] = frozenset([
    f.__code__ for f in (devices.device_put, host.device_get, host.copy_to_host_async,
                         RemoteArray.copy_to_host_async)])
# Where arguments are looked at for their types alone, and functions whose numbers say how much.
_ABSTRACT = frozenset(["JitCore.trace"])
_COUNTS = frozenset(["arange"])
# Arguments that say how, and are no values: small integers are one object wherever they are meant.
_OPTIONS = frozenset(
    "axis axes axis1 axis2 shape new_sizes ndim ndmin dtype keepdims num k n m N M length size "
    "ddof unroll reverse offset dimension dimensions permutation num_classes".split())
_REMEDY = {
    "host-to-device": "Move the value before with numjet.device_put, or make it within a compiled "
    "function",
    "device-to-device": "Move the array before with numjet.device_put",
    "device-to-host": "Read the value with numjet.device_get",
}


def _level(direction: str) -> str:
    flag = config.FLAGS["transfer_guard_" + direction.replace("-", "_")]
    return flag.value or "allow"


def _transfer(direction: str, explicit: bool, what: str) -> None:
    """A transfer: raise, log it, or neither."""
    level = _level(direction)
    if explicit and not level.endswith("_explicit") or level == "allow":
        return
    how = "explicit" if explicit else "implicit"
    if level.startswith("log"):
        _logger.warning("%s transfer (%s): %s", direction, how, what)
        return
    outer = f"transfer_guard_{direction.replace('-', '_')}"
    raise JaxRuntimeError(
        f"INVALID_ARGUMENT: Disallowed {direction} transfer: {what} ({how}; the flag {outer} is "
        f"{level!r}). {_REMEDY[direction]}, or allow it with numjet.{outer}('allow')."
    )


def _entry() -> FrameType | None:
    """The outermost of our functions that the innermost line of the user's calls; None where it
    asks for types alone."""
    frame: Any = sys._getframe(1)
    found = None
    while frame is not None:
        if is_ours(frame.f_code.co_filename):
            if frame.f_code.co_qualname in _ABSTRACT:
                return None
            found = frame
        elif found is not None and found.f_code.co_filename != __file__:
            break
        frame = frame.f_back
    return found


def _handed_in(frame: FrameType, x: Any) -> bool:
    """Whether `x` is among the arguments of the function of this frame."""
    code = frame.f_code
    if code.co_name in _COUNTS:
        return False
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)  # *args, **kwargs
    given = frame.f_locals
    for name in code.co_varnames[:count]:
        if name in _OPTIONS and type(x) in (int, bool):
            continue
        value = given.get(name)
        if value is x or isinstance(value, list | tuple | dict) and any(
            [leaf is x for leaf in tree.tree_leaves(value)]
        ):
            return True
    return False


def _told(x: Any) -> str:
    if isinstance(x, Array | np.ndarray | np.generic):
        name = "Array" if isinstance(x, Array) else f"NumPy {type(x).__name__}"
        return f"{name} {x.dtype}[{','.join(map(str, x.shape))}]"
    return f"Python {type(x).__name__}"


def host_value(x: Any) -> None:
    """A NumPy array or a number becomes an Array."""
    if _level("host-to-device") == "allow" or current_trace().staging is not None:
        return  # while a program is staged it becomes a constant of it
    frame = _entry()
    if frame is not None and _handed_in(frame, x):
        _transfer("host-to-device", frame.f_code in EXPLICIT, _told(x))


def made(*names: str) -> None:
    """An array is filled with a number, or made of the host's values, where the user calls a
    function of one of these names."""
    if _level("host-to-device") == "allow" or current_trace().staging is not None:
        return
    frame = _entry()
    if frame is not None and frame.f_code.co_name in names:
        _transfer("host-to-device", False, f"the values of {frame.f_code.co_name}")


def index(x: Any, given: Any) -> None:
    """`x` is read or written at an index, whose numbers are operands."""
    if _level("host-to-device") == "allow" or isinstance(x, Tracer):
        return
    if current_trace().staging is not None or _entry() is not sys._getframe(1):
        return
    for i, part in enumerate(given if type(given) is tuple else (given,)):
        whole = slice(0, x.shape[i] if i < len(x.shape) else 0)
        if isinstance(part, slice):
            bounded = part.step in (None, 1) and (part.start, part.stop) != (None, None)
            if bounded and not _covers(part, whole.stop):
                _transfer("host-to-device", False, f"the bounds of {part!r} in an index")
        elif isinstance(part, int | np.integer | np.ndarray | list) and not isinstance(part, bool):
            _transfer("host-to-device", False, f"an index, {_told(part)}")


def _covers(part: slice, size: int) -> bool:
    return all([isinstance(b, int | None) for b in (part.start, part.stop)]) and (
        part.indices(size)[:2] == (0, size))


def moved(x: Any, sharding: Any) -> None:
    """An Array is copied, or laid out anew, for a computation on other devices: those of a sharding
    of the CPU's, where it lies on one. The CPU's devices among themselves share memory, and hand
    arrays on all the same."""
    if _level("device-to-device") == "allow":
        return
    if type(x) is ArrayImpl and Remote.active and not (
        sharding is not None and isinstance(next(iter(sharding.device_set)), devices.CpuDevice)
    ):
        return  # what never was on a device moves from the host
    if type(x) is not RemoteArray:
        here = {devices.first_device()} if x._sharding is None else x._sharding.device_set
        if sharding is None or len(here) > 1 or sharding.device_set == here:
            return
    frame = _entry()
    if frame is not None and _handed_in(frame, x):
        _transfer("device-to-device", frame.f_code in EXPLICIT, _told(x))


def fetched(x: Any) -> None:
    """An Array in a device's own memory is copied to the host's."""
    if _level("device-to-host") == "allow":
        return
    frame = _entry()
    explicit = frame is not None and frame.f_code in EXPLICIT
    _transfer("device-to-host", explicit, _told(x))


# ------------------------------------------------------------------ turning it on
_lock = threading.Lock()
_blocks = [0]  # how many blocks of code guard something now
# Converters of types, and what stood in the table before: None for NumPy's scalars.
_wrapped: dict[type, tuple[Callable, Callable | None]] = {}


def _guarded(convert: Callable) -> Callable:
    def converted(x: Any) -> Any:
        host_value(x)
        return convert(x)

    return converted


def _scalars(kind: Any) -> Iterator[type]:
    for sub in kind.__subclasses__():
        yield sub
        yield from _scalars(sub)


def refresh() -> None:
    """Turn the checks on where anything may guard, and off where nothing does."""
    with _lock:
        names = [n for n in config.FLAGS if n.startswith("transfer_guard_")]
        wanted = _blocks[0] > 0 or any(
            [config.FLAGS[n]._global not in (None, "allow") for n in names])
        if wanted == (hooks.guards is not None):
            return
        table = array._CONVERTERS
        if wanted:
            for kind in [*table, *[k for k in _scalars(np.generic) if k not in table]]:
                before = table.get(kind)
                table[kind] = _guarded(before or array._from_numpy)
                _wrapped[kind] = table[kind], before
            hooks.guards = sys.modules[__name__]
        else:
            hooks.guards = None
            for kind, (wrapper, before) in _wrapped.items():
                if table.get(kind) is wrapper:  # a library may have put its own there
                    if before is None:
                        del table[kind]
                    else:
                        table[kind] = before
            _wrapped.clear()


@contextlib.contextmanager
def block(level: Any) -> Iterator[None]:
    """A block of code in which a flag is `level`."""
    if level in (None, "allow"):
        yield
        return
    _blocks[0] += 1
    refresh()
    try:
        yield
    finally:
        _blocks[0] -= 1
        refresh()
