"""Calls of jitted functions that are prepared for wrappers of them, which want no step between.

For `api.eager.large`. What would break it: a call whose signature needs more than a program of one
device (`may_be_quick` says which do not).
"""

from __future__ import annotations

from numjet.api.compiled.jit import JitFunction
from numjet.api.compiled.jit_core import may_be_quick
from numjet.api.execution import dispatch
from numjet.core.array import ArrayImpl, as_array
from numjet.native import calls as fastcall_native


def prebuilt(
    function: JitFunction, args: tuple, kwargs: dict, calls: fastcall_native.Calls | None = None
) -> fastcall_native.Calls | None:
    """A table of native calls, `calls` or a new one, that knows calls of `function` like this one;
    None where there can be none. For wrappers of jitted functions that want no step between."""
    core = function._core
    statics, leaves, treedef = core._flatten(args, kwargs)
    if not fastcall_native.usable() or not all([type(x) in (ArrayImpl, float) for x in leaves]):
        return None
    entry = core._entry(statics, [as_array(x).aval for x in leaves], treedef, args, kwargs)
    if entry.executable is None or entry.executable.measured > dispatch.ASYNC_ABOVE:
        return None
    if entry.use is not None or entry.mesh_inside or core._place_for(entry, leaves) is not None:
        return None
    if not may_be_quick(entry, leaves):
        return None
    calls = fastcall_native.Calls() if calls is None else calls
    calls.add(entry, treedef, {k: value for k, value, _ in statics}, args, kwargs)
    return calls
