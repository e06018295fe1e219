"""The late bindings of the package: what lower layers call and higher ones install.

Each has a name, a type and a default in Python. They are read by way of this module, at every call,
since they may be set at any time, and by another thread. What would break it: a hook that is read
under another name (`from numjet.core.hooks import describe` would keep the default).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _nobody(*_: Any) -> Any:
    raise NotImplementedError("numjet.api.dispatch is not loaded: nothing compiles programs.")


# How a jaxpr is compiled (once) and run on concrete arrays: (closed jaxpr, arrays, name) gives a
# list of Arrays. Installed by `api.dispatch`.
run_compiled: Callable[[Any, tuple, str], list] = _nobody

# One operation on large operands as a compiled function from a list of NumPy arrays to a list of
# results, or None where NumPy does it as well: (primitive, avals, params, aval or avals of the
# result). Installed by `api.dispatch`.
operation: Callable[[Any, tuple, dict, Any], Callable | None] = lambda *_: None

# An operation on large or deferred operands, written down instead of run: (primitive, arrays,
# params, avals, aval or avals of the result) gives deferred arrays, or None where it is to run at
# once. Installed by `api.deferral`.
defer: Callable[[Any, list, dict, tuple, Any], Any] = lambda *_: None

# The operations of a `deferred.Plan` on arrays of its avals, written down: a deferred array, or
# None where they are to run one by one. Installed by `api.deferral`.
defer_plan: Callable[[Any, Any], Any] = lambda *_: None

# An operation like one that was deferred before (primitive, operands, params), written down, or
# None. Installed by `api.deferral`.
defer_again: Callable[[Any, tuple, dict], Any] = lambda *_: None

# Evaluation of a primitive for operands of these avals is a NumPy function: (primitive, avals,
# function, aval of the result). It sets `primitive.run` to a function of the operands, which calls
# `evaluate_python` for operands it does not know. None: nothing is learned. By `native.operators`.
learn: Callable[[Any, tuple, Any, Any], None] | None = None

# Evaluation of a primitive with params, as a function of the operands, or None: (primitive, avals,
# params, aval of the result). None: Python evaluates. By `native.operators`.
executor: Callable[[Any, tuple, dict, Any], Callable | None] | None = None

# The sharding of an aval of that many dimensions. By the package itself, which loads
# `api.sharding` for it.
aval_sharding: Callable[[int], Any] = lambda _: None

# Arrays with a layout that was asked for as `out_sharding`: by `api.sharding`.
laid_out: Callable[[Any, Any], Any] = lambda x, _: x

# A pytree of places with shardings for its PartitionSpecs: (places, what else is a leaf). By
# `api.sharding`.
over_current_mesh: Callable[[Any, Callable[[Any], bool]], Any] = lambda places, _: places

# Called when a trace has become long, until native code is there to record such. By
# `native.operators`.
long_trace: Callable[[], None] | None = None

# The walk over a program's equations (`cpu.graph.forms`): (operands, equations, results, words, and
# what tells the numbers of a primitive, of params, of a literal and of an aval). None: Python does
# it. By `native.record`.
describe: Callable[..., bool | None] | None = None

# The line of the user's that called who calls this, as `core.trace.user_source` finds it; that
# module installs its own, and `native.record` one that is native.
user_line: Callable[[], Any] = lambda: None

# The compilation cache for backends beside the CPU's: `digest(bytes)` gives a key, `cache_get(key)`
# bytes or None, `cache_put(key, bytes)`, `cache_damaged(key, reason)`. The module `cpu.link.link`,
# installed by `api.dispatch`.
cache: Any = None
