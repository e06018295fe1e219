"""Running jaxprs on concrete arrays: compile once, call, wrap results.

Installs the evaluator that the core's eager mode uses for calls and loops. `api.jit` calls
`compiled` and `execute`.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet import cpu
from numjet.base import config
from numjet.core.array import ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.evaluate import Compiler, check_finite
from numjet.core.jaxpr import ClosedJaxpr, eval_jaxpr

logger = logging.getLogger("numjet")


def compiled(closed: ClosedJaxpr, name: str, donate: tuple[int, ...] = ()) -> Any:
    """The executable of `closed`, compiled at the first call and kept with the jaxpr."""
    key = ("executable", donate)
    found = closed.cache.get(key)
    if found is None:
        start = time.perf_counter()
        found = closed.cache[key] = cpu.compile(closed, {"donate": donate, "name": name})
        if config.log_compiles.value:
            logger.warning("Compiled %s in %.1f ms.", name, 1e3 * (time.perf_counter() - start))
    return found


def _references(values: Sequence[np.ndarray], i: int) -> int:
    return sys.getrefcount(values[i])


def _base_references(values: Sequence[np.ndarray], i: int) -> int:
    return sys.getrefcount(values[i].base)


# What the two count where nobody else knows of the array: in the list; of a view, its base.
_IN_LIST = _references([np.zeros(1)], 0)
_OF_VIEW = _base_references([np.zeros(2)[:1]], 0)


def is_shared(values: Sequence[np.ndarray], i: int) -> bool:
    """Whether anyone but one Array (and this list) sees the memory of `values[i]`, so that a
    program may not overwrite it although it was donated."""
    if _references(values, i) > _IN_LIST + 1:
        return True
    base = values[i].base
    if isinstance(base, np.ndarray):
        if _base_references(values, i) > _OF_VIEW + 1:  # and our name for it
            return True
        base = base.base
    return not (base is None or getattr(base, "from_pool", False))


def wrap(values: Sequence[np.ndarray], avals: Sequence[ShapedArray], name: str) -> list[ArrayImpl]:
    """Arrays around an executable's results."""
    if config.numeric_checks[0]:
        for value in values:
            check_finite(name, value)
    return [ArrayImpl(value, aval) for value, aval in zip(values, avals, strict=True)]


def run(closed: ClosedJaxpr, args: Sequence[Any], name: str) -> list[Any]:
    """Compile (once) and run; under `disable_jit` operation by operation instead."""
    if config.disable_jit.value:
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)
    executable = compiled(closed, name)
    values = [(x if type(x) is ArrayImpl else as_array(x))._value for x in args]
    return wrap(executable(values), closed.out_avals, name)


Compiler.run = staticmethod(run)
