"""Sums over processes that begin as soon as their operand is there and end where they are read.

For `api.execution.processes`. What depends on a sum is put off until a collective, an effect or the
end of the program needs it, so that what does not depend on it runs meanwhile: in a backward pass
the products of earlier layers. Only sums of at most `MOST` bytes: MPICH takes twice as long for
larger ones when they are begun in this way. What would break it: an order of collectives that
depends on more than the jaxpr, which is the same for all processes.
"""
from __future__ import annotations

from typing import Any

from numjet.core.cluster import ranks_of
from numjet.core.jaxpr import Eqn, Jaxpr, Literal, Var
from numjet.ops.started import psum_done_p, psum_start_p

MOST = 4 << 20


def overlapped(jaxpr: Jaxpr, numbers: Any) -> Jaxpr:
    """The jaxpr with its sums in two parts, where something lies between them. numbers: an iterator
    of numbers that no other sum of the program has."""
    schedule = _Schedule()
    for eqn in jaxpr.eqns:
        schedule.add(eqn)
    schedule.needed(schedule.waiting)
    if not schedule.begun:
        return jaxpr
    return jaxpr.replace(eqns=_split(schedule, numbers))


def _split(schedule: _Schedule, numbers: Any) -> list[Eqn]:
    """The equations in their new order, sums that nothing lies behind as one equation."""
    eqns: list[Eqn] = []
    for k, (part, eqn) in enumerate(schedule.order):
        if part == "begin" and schedule.order[k + 1] == ("end", eqn):
            eqns.append(eqn)
        elif part == "begin":
            params = {**eqn.params, "number": next(numbers)}
            (out,) = eqn.outvars
            between = Var(out.aval)
            eqns.append(eqn.replace(primitive=psum_start_p, params=params, outvars=[between]))
            schedule.begun[eqn] = eqn.replace(
                primitive=psum_done_p, params=dict(params), invars=[between]
            )
        elif part == "end":
            if schedule.begun[eqn] is not None:
                eqns.append(schedule.begun[eqn])
        else:
            eqns.append(eqn)
    return eqns


class _Schedule:
    """order: equations, and where sums begin and end; waiting: what was put off, in order."""

    def __init__(self) -> None:
        self.order: list[tuple[str, Eqn]] = []
        self.waiting: list[Eqn] = []
        self.begun: dict[Eqn, Any] = {}
        self.makers: dict[Any, Eqn] = {}  # variable -> the equation that was put off

    def add(self, eqn: Eqn) -> None:
        """The next equation: at once, or put off because it reads what is."""
        late = [v for v in eqn.invars if type(v) is not Literal and v in self.makers]
        if _begins(eqn):
            self.needed([self.makers[v] for v in late])
            self.order.append(("begin", eqn))
            self.begun[eqn] = None
            self._put_off(eqn)
        elif eqn.effects:
            self.needed([self.makers[v] for v in late])
            self.order.append(("all", eqn))
        elif late:
            self._put_off(eqn)
        else:
            self.order.append(("all", eqn))

    def _put_off(self, eqn: Eqn) -> None:
        self.waiting.append(eqn)
        self.makers.update(dict.fromkeys(eqn.outvars, eqn))

    def needed(self, eqns: list[Eqn]) -> None:
        """Do these now, after what they read, in the order in which they stood."""
        todo, wanted = list(eqns), set()
        while todo:
            eqn = todo.pop()
            if eqn in wanted:
                continue
            wanted.add(eqn)
            if eqn not in self.begun:
                todo += [self.makers[v] for v in eqn.invars
                         if type(v) is not Literal and v in self.makers]  # fmt: skip
        for eqn in self.waiting:
            if eqn in wanted:
                self.order.append(("end" if eqn in self.begun else "all", eqn))
                for v in eqn.outvars:
                    del self.makers[v]
        self.waiting = [eqn for eqn in self.waiting if eqn not in wanted]


def _begins(eqn: Eqn) -> bool:
    if eqn.primitive.name != "psum" or ranks_of(eqn.params) is None:
        return False
    return 0 < eqn.invars[0].aval.nbytes <= MOST
