"""What the stages of compiling say of a function's arguments and results.

`api.stages` is built on this. What would break it: a stage without `_traced`.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

from numjet.api import dispatch
from numjet.api.devices import SingleDeviceSharding, devices
from numjet.base import tree
from numjet.core.avals import ShapedArray
from numjet.core.hooks import Remote


@dataclasses.dataclass(frozen=True)
class ArgInfo:
    """An argument of a traced function: its shape and dtype, and whether its buffer is given away.

    shape and dtype are the argument's; donated: whether its buffer is given away.
    """

    _aval: ShapedArray
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The argument's shape."""
        return self._aval.shape

    @property
    def dtype(self) -> Any:
        """The argument's dtype."""
        return self._aval.dtype


class MemoryStats(dict):
    """Bytes by what they are for, as items and as attributes."""

    def __getattr__(self, name: str) -> int:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(
                f"memory_analysis has no {name!r}; it has {', '.join(self)}."
            ) from None


class Described:
    """The arguments and results of a stage, in the structures of the function's: positional
    arguments as a tuple, the others as a dictionary."""

    _traced: Any

    def _arguments(self, of: Callable[[int, ShapedArray], Any]) -> Any:
        entry = self._traced._entry
        avals = entry.closed.in_avals[len(entry.consts) :]
        return tree.tree_unflatten(self._traced.in_tree, [of(i, a) for i, a in enumerate(avals)])

    @property
    def args_info(self) -> Any:
        """An ArgInfo for each argument."""
        donated = set(self.donate_argnums)
        return self._arguments(lambda i, aval: ArgInfo(aval, i in donated))

    @property
    def in_avals(self) -> Any:
        """The aval of each argument."""
        return self._arguments(lambda i, aval: aval)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Which arguments, counted as leaves, give their buffers away."""
        return tuple(self._traced._entry.donate)

    @property
    def in_tree(self) -> Any:
        """The structure of the arguments: ((positional ones), {others})."""
        return self._traced.in_tree

    @property
    def out_tree(self) -> Any:
        """The structure of the result."""
        return self._traced._entry.out_tree


class Placed(Described):
    """What a compiled stage says beside that: where arguments and results live."""

    _executable: Any

    def _home(self) -> Any:
        """The sharding of whole arrays where the program runs."""
        place = self._traced.place or (devices()[0],)
        return SingleDeviceSharding(place[0]) if len(place) == 1 else Remote.everywhere(place)

    @property
    def input_shardings(self) -> Any:
        """Where each argument is expected: on the first device, or where they lay."""
        return self._arguments(lambda i, aval: self._home())

    @property
    def output_shardings(self) -> Any:
        """Where each result is."""
        count = len(self._traced._entry.out_avals)
        several = len(self._traced.place or ()) > 1
        found = self._executable.outs if several else [self._home()] * count
        return tree.tree_unflatten(self.out_tree, list(found))

    @property
    def out_info(self) -> Any:
        """The shape and dtype of each result."""
        return self._traced.out_info


def _wanted(traced: Any) -> list[Any] | None:
    """The shardings that jit was told for the results."""
    given = traced._fun.layouts[1]
    if given is None:
        return None
    layouts = importlib.import_module("numjet.api.jit_layouts")
    return layouts.of_results(given, traced._entry.out_tree)


def executable(traced: Any) -> Any:
    """What a traced function is compiled to, for the CPU or where its arguments lie."""
    entry = traced._entry
    n = len(entry.consts)
    if traced.place is None:
        donate = tuple([i + n for i in entry.donate])
        return dispatch.compiled(entry.closed, entry.name, donate)
    args = [*entry.consts, *entry.closed.in_avals[n:]]
    return Remote.loaded(entry.closed, args, traced.place, entry.name, (), _wanted(traced))


def execute(traced: Any, values: list) -> list:
    """Run a compiled stage on arrays."""
    fun, entry = traced._fun, traced._entry
    if traced.place is None:
        if dispatch.any_spread(values) or entry.mesh_inside:
            layouts = importlib.import_module("numjet.api.jit_layouts")
            return layouts.run(fun, entry, values, None)
        return fun._execute(entry, values)
    donate = [i + len(entry.consts) for i in entry.donate]
    return Remote.run(entry.closed, [*entry.consts, *values], traced.place, entry.name, donate,
                      fun.device is not None, _wanted(traced))
