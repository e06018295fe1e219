"""Structured control flow of the function writer: loops that carry values, and branches.

For `builder`. The phi instructions of a loop's head are written when its body has ended, into lines
reserved for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from numjet.cpu.builder.types import Value
from numjet.cpu.builder.vectors import LaneWriter


class Loop:
    """A running counted loop: `index`, carried `values`, and after it `results`."""

    def __init__(self, index: Value, values: tuple[Value, ...]) -> None:
        self.index = index
        self.values = values
        self.results: tuple[Value, ...] = values
        self.yielded: tuple[Value, ...] | None = None

    def yield_(self, *values: Value) -> None:
        """Say what the carried values are after this iteration; once, as the body's last act."""
        _check_yield(self.values, values, "loop")
        self.yielded = values


class While:
    """A running while loop: `values` at its head, `test` once, then the body, then `yield_`."""

    def __init__(self, builder: ControlWriter, values: tuple[Value, ...], exit: str) -> None:
        self.values = self.results = values
        self.yielded: tuple[Value, ...] | None = None
        self.tested = False
        self._builder = builder
        self._exit = exit

    def test(self, condition: Value) -> None:
        """Leave the loop unless `condition` (i1) holds; `results` are the head's values."""
        body = self._builder.new_label("do")
        self._builder.cond_br(condition, body, self._exit)
        self._builder.block(body)
        self.tested = True

    def yield_(self, *values: Value) -> None:
        """Say what the carried values are at the next test."""
        _check_yield(self.values, values, "while")
        self.yielded = values


class Branch:
    """An `if_`: yield in both arms, then read `results`."""

    def __init__(self, builder: ControlWriter, slot: int, condition: Value) -> None:
        self.results: tuple[Value, ...] = ()
        self._builder = builder
        self._slot = slot
        self._condition = condition
        self._then: tuple[Value, ...] = ()
        self._yielded: tuple[Value, ...] = ()
        self._then_label = self._then_end = self._end = ""
        self._mark = self._slot_end = -1

    def yield_(self, *values: Value) -> None:
        """The arm's results."""
        self._yielded = values

    @contextmanager
    def else_(self) -> Iterator[None]:
        """The other arm; must follow the `if_` block with nothing emitted between."""
        b = self._builder
        if len(b.lines) != self._mark:
            raise RuntimeError("builder: else_ must follow its if_ block directly")
        del b.lines[self._slot_end :]
        other = b.new_label("else")
        b.lines[self._slot] = None, ("cbr", self._condition.ref, self._then_label, other)
        b.block(other)
        self._yielded = ()
        yield
        yielded: tuple[Value, ...] = self._yielded
        _check_yield(self._then, yielded, "else_")
        last = b.label
        b.br(self._end)
        b.block(self._end)
        self.results = tuple(
            b.phi(x.type, ((x, self._then_end), (y, last)))
            for x, y in zip(self._then, yielded, strict=True)
        )


def _check_yield(expected: Sequence[Value], got: Sequence[Value], what: str) -> None:
    if [v.type for v in expected] != [v.type for v in got]:
        raise TypeError(
            f"builder: {what} carries {[v.type for v in expected]}, "
            f"but yields {[v.type for v in got]}"
        )


class ControlWriter(LaneWriter):
    """A writer with loops and branches."""

    def _open_phis(self, initial: Sequence[Value]) -> tuple[int, tuple[Value, ...]]:
        """Reserve a line and a name for each phi of a loop's head."""
        slot = len(self.lines)
        values = []
        for value in initial:
            self.lines.append("")
            self.count += 1
            values.append(Value(f"%v{self.count}", value.type))
        return slot, tuple(values)

    def _close_phis(
        self, slot: int, phis: Sequence[Value], initial: Sequence[Value], before: str,
        again: Sequence[Value], latch: str,
    ) -> None:  # fmt: skip
        for k, (phi, first, next_) in enumerate(zip(phis, initial, again, strict=True)):
            pairs = (first.ref, before), (next_.ref, latch)
            self.lines[slot + k] = phi.ref, ("phi", phi.type, pairs)

    @contextmanager
    def loop(
        self,
        start: Value | int,
        stop: Value | int,
        step: Value | int = 1,
        carried: Sequence[Value] = (),
        at_least_once: bool = False,
    ) -> Iterator[Loop]:
        """`for index in range(start, stop, step)` with step > 0, tested at the bottom.

        The body must end with `yield_` when values are carried. `results` afterwards are the last
        values (the initial ones when the loop does not run). A test before the loop is left out
        when constants or `at_least_once` show that it runs.
        """
        runs = at_least_once
        if not isinstance(start, Value) and not isinstance(stop, Value):
            runs = runs or start < stop
        type = next((x.type for x in (start, stop, step) if isinstance(x, Value)), "i64")
        start, stop, step = (self.value(x, type) for x in (start, stop, step))
        carried = tuple(carried)
        body, exit = self.new_label("loop"), self.new_label("end")
        if runs:
            self.br(body)
        else:
            self.cond_br(self.icmp("slt", start, stop), body, exit)
        before = self.label
        self.block(body)
        initial = (start, *carried)
        slot, phis = self._open_phis(initial)
        loop = Loop(phis[0], phis[1:])
        yield loop
        if loop.yielded is None:
            if carried:
                raise RuntimeError("builder: a loop with carried values must yield_ them")
            loop.yielded = ()
        following = self.add(loop.index, step)
        latch = self.label
        self.cond_br(self.icmp("slt", following, stop), body, exit)
        self._close_phis(slot, phis, initial, before, (following, *loop.yielded), latch)
        self.block(exit)
        if runs:
            loop.results = loop.yielded
        else:
            loop.results = tuple(
                self.phi(x.type, ((x, before), (y, latch)))
                for x, y in zip(carried, loop.yielded, strict=True)
            )

    @contextmanager
    def while_(self, carried: Sequence[Value] = ()) -> Iterator[While]:
        """A loop tested where its body says `test(condition)`; `results` are the head's values."""
        carried = tuple(carried)
        head, exit = self.new_label("while"), self.new_label("end")
        before = self.label
        self.br(head)
        self.block(head)
        slot, phis = self._open_phis(carried)
        loop = While(self, phis, exit)
        yield loop
        if not loop.tested:
            raise RuntimeError("builder: a while loop must test() a condition")
        if loop.yielded is None:
            if carried:
                raise RuntimeError("builder: a loop with carried values must yield_ them")
            loop.yielded = ()
        latch = self.label
        self.br(head)
        self._close_phis(slot, phis, carried, before, loop.yielded, latch)
        self.block(exit)

    @contextmanager
    def if_(self, condition: Value, otherwise: Sequence[Value] = ()) -> Iterator[Branch]:
        """Run the body if `condition` (i1) holds.

        `branch.yield_(...)` names its results; without an `else_` arm they are `otherwise` where
        the body does not run. `with branch.else_():` may follow directly. Then `branch.results`.
        """
        slot = len(self.lines)
        before = self.label
        self.lines.append("")
        branch = Branch(self, slot, condition)
        branch._then_label, branch._end = self.new_label("then"), self.new_label("end")
        self.block(branch._then_label)
        yield branch
        branch._then = branch._yielded
        branch._then_end = self.label
        self.br(branch._end)
        self.lines[slot] = None, ("cbr", condition.ref, branch._then_label, branch._end)
        branch._slot_end = len(self.lines)
        self.block(branch._end)
        if otherwise:
            _check_yield(otherwise, branch._then, "if_")
            branch.results = tuple(
                self.phi(x.type, ((x, branch._then_end), (y, before)))
                for x, y in zip(branch._then, otherwise, strict=True)
            )
        branch._mark = len(self.lines)
