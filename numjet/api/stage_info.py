"""What the stages of compiling say of a function's arguments and results.

`jit` makes its stages of this. What would break it: a stage without `_traced`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from numjet.api.devices import SingleDeviceSharding, devices
from numjet.base import tree
from numjet.core.avals import ShapedArray


@dataclasses.dataclass(frozen=True)
class ArgInfo:
    """An argument of a traced function: its shape and dtype, and whether its buffer is given
    away."""

    _aval: ShapedArray
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return self._aval.shape

    @property
    def dtype(self) -> Any:
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

    def _everywhere(self, count: int, structure: Any) -> Any:
        return tree.tree_unflatten(structure, [SingleDeviceSharding(devices()[0])] * count)

    @property
    def input_shardings(self) -> Any:
        """Where each argument is expected: on the first device."""
        return self._arguments(lambda i, aval: SingleDeviceSharding(devices()[0]))

    @property
    def output_shardings(self) -> Any:
        """Where each result is: on the first device."""
        return self._everywhere(len(self._traced._entry.out_avals), self.out_tree)

    @property
    def out_info(self) -> Any:
        """The shape and dtype of each result."""
        return self._traced.out_info
