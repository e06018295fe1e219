"""Calls of functions of one array that native code writes down: their tables (`code.known`).

A function that does nothing with its other arguments but choose operations, and whose operations
on an array can be written down, is wrapped by `KnownCalls`; `learn` is told which plan a call was.
What would break it: a function whose operations depend on more than the array's aval, the other
arguments and the flags.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.base import config
from numjet.core.deferred import Plan
from numjet.core.evaluate import is_large
from numjet.core.memo import Memo
from numjet.cpu.builder.records import words
from numjet.native import deferral, tables
from numjet.native.entries import address
from numjet.transforms.eager import Whole

_WORDS = words(tables.KnownCall)


class KnownCalls(Memo):
    """The calls of a function, by their places in the table: the entry, and what it points to.
    `run` takes a call; what native code does not know goes to `function`."""

    def __init__(self, function: Callable, name: str) -> None:
        self.words = np.zeros(tables.KNOWN_SLOTS, np.int64)
        self.function = self.run = function
        super().__init__(f"calls written down: {name}", tables.KNOWN_SLOTS, passing=True)

    def learn(self, args: tuple, plan: Plan | Whole, kwargs: dict | None = None) -> None:
        """A call with these arguments is this plan of the first of them, or, where that is
        linearized, this operation."""
        if type(plan) is Whole:
            self.learn_linear(args, plan, {}, kwargs)
            return
        assert type(plan) is Plan
        facts = {"plan": id(plan), "large": is_large(plan.avals, plan.out), "key": id(args[0].aval)}
        self._learn(args, kwargs or {}, facts, plan)

    def learn_linear(
        self, args: tuple, primitive: Any, params: dict, kwargs: dict | None = None
    ) -> None:
        """A call with these arguments, of which the first is linearized, is this operation (a
        `Whole` as well)."""
        key = tables.linear_key(id(args[0].aval))
        facts = {"primitive": id(primitive), "params": id(params), "key": key}
        self._learn(args, kwargs or {}, facts, (primitive, params))

    def _learn(self, args: tuple, kwargs: dict, facts: dict, held: Any) -> None:
        if config.state[0] < 0:
            return
        if self.run is self.function:
            if not deferral.usable():
                return
            self.run = deferral.function("known_call", (self.words, self.function))
        others, names = (*args[1:], *kwargs.values()), tuple(kwargs)
        lists = [np.array([*map(id, x), 0], np.int64) for x in (others, names)]
        word = facts | {
            "state": config.state[0], "arguments": 1 + len(others), "other": address(lists[0]),
            "named": len(names), "name": address(lists[1]),
        }  # fmt: skip
        entry = np.array([word.get(name, 0) for name in _WORDS], np.int64)
        at = facts["key"] >> 4 ^ facts["key"] >> 10
        for x in others:
            at = tables.known_key(at, id(x))
        at &= tables.KNOWN_SLOTS - 1
        place = at if not self.words[at] or self.words[at ^ 1] else at ^ 1
        before = self.get(place)
        # In this order: storing may forget all, and then no word may lead to what nobody holds.
        self.words[place] = address(entry)
        self[place] = entry, lists, args[0].aval, others, names, held
        del before  # nobody reads it any more

    def drop(self, count: int) -> None:
        """Forget all."""
        self.words[:] = 0
        super().drop(len(self))
