"""Long runs of equal equations, as Python loops over layers or steps leave them, as loops again.

`reroll(closed)` finds a group of equations that follows itself many times, each time on the results
of the time before, and writes one `repeat` equation in its place. Every later pass sees the group
once: a program of 2,000 equal layers compiles as quickly as one of ten. For: `backend`.

Keeps: the kernels of a round and the bits of its results. (What a run reads lies in memory then,
where a kernel might have computed it anew: a sum elsewhere that is fused with it may add in another
order.) A group begins with an equation that is a step of its own in any case (a product, a sort, a
loop), all others in it depend on such a one of the same round and no round hands on what was only
moved: so no kernel of the unrolled program would reach from one round into the next. What
would break it: fusion of what lies on both sides of such a step.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var, eval_jaxpr
from numjet.core.lowering import Host, Kernel, Region
from numjet.core.primitive import Primitive
from numjet.cpu.graph import LOOPS, called
from numjet.cpu.program_cache import Uncacheable, params_form

# Fewer rounds, or equations in all of them, cost less to compile than they are worth a look.
FEWEST_ROUNDS, FEWEST_EQUATIONS = 8, 32
# Longer rounds are not looked for.
LONGEST_ROUND = 512
# How many different distances between equal steps are tried as the length of a round.
TRIED = 3
_UNNUMBERED = 1 << 60  # the number of what is no result of a run; further from all than any width
# Operations that only move elements: what reads them reads through them, so they stand where they
# are read.
MOVERS = frozenset(
    ["broadcast_in_dim", "reshape", "transpose", "slice", "squeeze", "expand_dims", "rev", "iota"]
)


def _abstract(*avals: ShapedArray, jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    return jaxpr.out_avals


def _evaluate(*args: Any, jaxpr: ClosedJaxpr, length: int, num_consts: int) -> list[Any]:
    consts, carry = args[:num_consts], list(args[num_consts:])
    for _ in range(length):
        carry = eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *consts, *carry)
    return carry


def _batch(axis: Any, args: tuple, dims: tuple, **params: Any) -> tuple:
    raise NotImplementedError("repeat: programs are batched before their runs become loops.")


# carry = jaxpr(*consts, *carry), `length` times.
repeat_p = Primitive(
    "repeat",
    multiple_results=True,
    higher_order=True,
    differentiable=False,
    abstract=_abstract,
    evaluate=_evaluate,
    batch=_batch,
    loops=Region("repeat"),
)


def reroll(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program with its runs as loops; `closed` itself where there are none."""
    jaxpr = closed.jaxpr
    eqns, outvars = _without_calls(jaxpr.eqns, jaxpr.outvars)
    runs = _find_all(_Program(eqns, outvars), 0, len(eqns))
    if not runs:
        return closed
    done: list[Eqn] = []
    at = 0
    for run in runs:
        done += [*eqns[at : run.start], *run.equations()]
        at = run.stop
    done += eqns[at:]
    changed = Jaxpr(jaxpr.constvars, jaxpr.invars, done, outvars, jaxpr.effects)
    return ClosedJaxpr(changed, closed.consts)


def unrolled(eqn: Eqn) -> list[Eqn]:
    """The equations of a repeat, all rounds of them."""
    params = eqn.params
    body, n = params["jaxpr"].jaxpr, params["num_consts"]
    carry = eqn.invars[n:]
    out: list[Eqn] = []
    for k in range(params["length"]):
        names = eqn.outvars if k == params["length"] - 1 else [Var(v.aval) for v in body.outvars]
        env = dict(zip(body.outvars, names, strict=True))
        carry = _renamed(body, [*eqn.invars[:n], *carry], env, out)
    return out


def _renamed(body: Jaxpr, args: Sequence[Any], env: dict[Any, Any], out: list[Eqn]) -> list[Any]:
    """Add the equations of `body` on `args` to `out`; `env` has names for some of its variables.
    Returns the results."""
    env.update(zip(body.invars, args, strict=True))
    for eqn in body.eqns:
        for v in eqn.outvars:
            if v not in env:
                env[v] = Var(v.aval)
        invars = [a if type(a) is Literal else env[a] for a in eqn.invars]
        out.append(eqn.replace(invars=invars, outvars=[env[v] for v in eqn.outvars]))
    return [a if type(a) is Literal else env[a] for a in body.outvars]


def _without_calls(eqns: list[Eqn], outvars: list[Any]) -> tuple[list[Eqn], list[Any]]:
    """A program with what calls do in their places, where many hold steps (and no constants)."""
    calls = [eqn for eqn in eqns if type(eqn.primitive.loops) is Region]
    hiding = {id(eqn) for eqn in calls if _hides_steps(eqn) and _body(eqn) is not None}
    if len(hiding) < FEWEST_ROUNDS:
        return eqns, outvars
    out: list[Eqn] = []
    now: dict[Any, Any] = {}  # results of calls -> what they are called instead
    for eqn in eqns:
        body = _body(eqn) if id(eqn) in hiding else None
        if not now.keys().isdisjoint(eqn.invars):
            eqn = eqn.replace(invars=[now.get(a, a) for a in eqn.invars])
        if body is None:
            out.append(eqn)
            continue
        # Operands in front of the body's are residuals of rules that nobody asks for here.
        args = eqn.invars[len(eqn.invars) - len(body.invars) :]
        now.update(zip(eqn.outvars, _renamed(body, args, {}, out), strict=True))
    return out, [now.get(a, a) for a in outvars]


def _body(eqn: Eqn) -> Jaxpr | None:
    """What a call does, where that can stand in its place."""
    inner = called(eqn.params)
    if inner is None or eqn.params.get("prevent_cse"):
        return None
    jaxpr = inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner
    return None if jaxpr.constvars or len(jaxpr.invars) > len(eqn.invars) else jaxpr


def _is_step(primitive: Primitive) -> bool:
    """Whether an equation of this kind may be a step of its own, which nothing is fused across."""
    rule = primitive.loops
    return type(rule) in (Kernel, Host) or (isinstance(rule, Region) and rule.name in LOOPS)


def _hides_steps(eqn: Eqn) -> bool:
    """Whether an equation is a call of which one cannot tell what is fused with its neighbours."""
    rule = eqn.primitive.loops
    if type(rule) is not Region or rule.name in LOOPS:
        return False
    inner = called(eqn.params)
    return (
        inner is None
        or bool(eqn.params.get("prevent_cse"))
        or any([_is_step(e.primitive) or _hides_steps(e) for e in inner.eqns])
    )


class _Program:
    """The equations that are searched, and the results of the program."""

    def __init__(self, eqns: list[Eqn], outvars: list[Any]) -> None:
        self.eqns, self.outvars = eqns, outvars


def _find_all(program: _Program, begin: int, end: int) -> list[_Run]:
    """The runs among equations `begin` to `end`, in order."""
    if end - begin < FEWEST_EQUATIONS:
        return []
    run = _find(program, begin, end)
    if run is None:
        return []
    return [*_find_all(program, begin, run.start), run, *_find_all(program, run.stop, end)]


def _find(program: _Program, begin: int, end: int) -> _Run | None:
    """A run among equations `begin` to `end`, if there is any."""
    eqns = program.eqns
    steps: dict[Primitive, bool] = {}
    places: dict[Any, list[int]] = {}
    for i in range(begin, end):
        eqn = eqns[i]
        primitive = eqn.primitive
        step = steps.get(primitive)
        if step is None:
            step = steps[primitive] = _is_step(primitive)
        if step:
            places.setdefault((primitive, eqn.outvars[0].aval), []).append(i)
    for at in sorted(places.values(), key=len, reverse=True):
        if len(at) < FEWEST_ROUNDS:
            break
        # Rounds may hold several equal steps: the next but one may be the same one again.
        distances = Counter([b - a for skip in range(1, 5) for a, b in zip(at, at[skip:])])  # noqa: B905
        for period, count in distances.most_common(TRIED):
            if count >= FEWEST_ROUNDS - 1 and period <= LONGEST_ROUND:
                found = _with_period(program, at, period, end)
                if found is not None:
                    return found
    return None


def _with_period(
    program: _Program, places: Sequence[int], period: int, limit: int
) -> _Run | None:
    """The first run of rounds of `period` equations that begins at one of `places`."""
    known = set(places)
    begin = end = -1  # of the run looked at last
    for start in places:
        # Within a round there may be another step to begin with; later rounds are the same run.
        if begin + period <= start < end:
            continue
        if not all([start + k * period in known for k in range(1, FEWEST_ROUNDS)]):
            continue
        run = _Run(program, start, period, limit)
        if run.rounds >= FEWEST_ROUNDS and run.rounds * period >= FEWEST_EQUATIONS:
            begin, end = start, run.stop
            if run.settle():
                return run
    return None


class _Run:
    """Rounds of `period` equations from `start` on, of which each does to the results of the one
    before what that one did to those before it."""

    def __init__(self, program: _Program, start: int, period: int, end: int) -> None:
        self.program, self.eqns = program, program.eqns
        self.start, self.period = start, period
        # Results of the run, numbered; each round has `width` of them.
        self.numbers: dict[Any, int] = {}
        for eqn in self.round(0):
            for v in eqn.outvars:
                self.numbers[v] = len(self.numbers)
        self.width = len(self.numbers)
        self.rounds = self.count(end)
        self.outside: list[Eqn] = []  # what rounds have in common and is computed before them
        self.body: list[Eqn] = []
        self.consts: list[Var] = []
        self.carries: list[int] = []  # numbers of results of a round that the next one reads
        self.inits: list[Var] = []

    @property
    def stop(self) -> int:
        return self.start + self.period * self.rounds

    def round(self, k: int) -> Sequence[Eqn]:
        first = self.start + k * self.period
        return self.eqns[first : first + self.period]

    def results(self, k: int) -> list[Var]:
        return [v for eqn in self.round(k) for v in eqn.outvars]

    def count(self, end: int) -> int:
        """How many rounds there are; the first may read what it likes."""
        eqns, period, width, numbers = self.eqns, self.period, self.width, self.numbers
        if any([eqn.effects or _hides_steps(eqn) for eqn in self.round(0)]):
            return 0
        number = numbers.get
        at = self.start + period
        free = at + period  # what the second round reads of the first's operands is seen later
        new = len(numbers)
        for eqn, before in zip(eqns[at:end], eqns[self.start :], strict=False):
            if eqn.primitive is not before.primitive:
                break
            if eqn.params is not before.params and not _same_params(eqn, before):
                break
            operands, others = eqn.invars, before.invars
            alike = len(operands) == len(others)
            for a, b in zip(operands, others):  # noqa: B905  every operand of every equation
                # What is numbered `width` later is the same of the next round.
                if a is not b and number(a, 0) - number(b, _UNNUMBERED) != width:
                    both = type(a) is Var and type(b) is Var
                    known = both and at < free and a.aval is b.aval
                    alike = alike and (known or (not both and _same_literal(a, b)))
            for v, w in zip(eqn.outvars, before.outvars, strict=True):
                alike = alike and v.aval is w.aval
                numbers[v] = new
                new += 1
            if not alike:
                break
            at += 1
        return (at - self.start) // period

    def settle(self) -> bool:
        """Decide which rounds become a loop and what it carries; whether they may be one."""
        form, first = self.operands(1), self.operands(0)
        carried = sorted({n for n in form if type(n) is int and n < 0})
        if not carried or carried[0] < -self.width:
            return False
        if self.stop < len(self.eqns):
            self.rounds -= 1  # what follows may be fused with the last round
        inits = _first_values(first, form)
        if inits is None:
            # The first round is another; the second reads its results.
            results = self.results(0)
            inits = {n: results[n + self.width] for n in carried}
            self.start += self.period
            self.rounds -= 1
        self.inits = [inits[n] for n in carried]
        self.carries = [n + self.width for n in carried]
        return self.rounds >= FEWEST_ROUNDS and not self.escapes() and self.fill()

    def operands(self, k: int) -> list[Any]:
        """What round k reads: numbers of its own results, negative ones of the round before, or
        what is from outside."""
        base = k * self.width
        out: list[Any] = []
        for eqn in self.round(k):
            for v in eqn.invars:
                n = self.numbers.get(v) if type(v) is Var else None
                out.append(v if n is None else n - base)
        return out

    def escapes(self) -> bool:
        """Whether anything but what the last round hands on is read behind the run."""
        number = self.numbers.get
        first = number(self.results(0)[0], 0)
        last = first + (self.rounds - 1) * self.width
        allowed = {last + n for n in self.carries}
        for v in (*[v for e in self.eqns[self.stop :] for v in e.invars], *self.program.outvars):
            n = number(v)
            if n is not None and first <= n < last + self.width and n not in allowed:
                return True
        return False

    def fill(self) -> bool:
        """Decide what of a round is computed before the loop; whether the rest may be one."""
        before, now = self.results(0), self.results(1)
        carried = {before[n] for n in self.carries}
        handed = {now[n] for n in self.carries}
        steps: set[Var] = set()  # results that depend on a step of the round
        movers = {e.outvars[0]: e for e in self.eqns[: self.start] if e.primitive.name in MOVERS}
        moved: dict[Any, Eqn] = {}  # what is moved in each round anew, though it is the same
        outside, body = [], []
        for eqn in self.round(1):
            variables = [v for v in eqn.invars if type(v) is Var]
            new = any([v in carried for v in variables])
            mover = eqn.primitive.name in MOVERS
            if any([v in steps for v in variables]) or (new and _is_step(eqn.primitive)):
                if mover and not handed.isdisjoint(eqn.outvars):
                    return False
                steps.update(eqn.outvars)
                body.append(eqn)
            elif new:
                return False  # it could be computed in a kernel of the round before
            elif mover:
                moved[eqn.outvars[0]] = eqn
            else:
                outside.append(eqn)
        if not handed <= steps:
            return False
        self.outside, _ = _with_movers(outside, moved, set())
        self.body, self.consts = _with_movers(body, movers | moved, carried)
        return True

    def equations(self) -> list[Eqn]:
        """What stands in the run's place."""
        before, now, last = (self.results(k) for k in (0, 1, self.rounds - 1))
        carried = [before[n] for n in self.carries]
        body = Jaxpr([], [*self.consts, *carried], self.body, [now[n] for n in self.carries])
        params = {
            "jaxpr": ClosedJaxpr(body, []),
            "length": self.rounds,
            "num_consts": len(self.consts),
        }
        outs = [last[n] for n in self.carries]
        return [*self.outside, Eqn([*self.consts, *self.inits], outs, repeat_p, params)]


def _same_params(eqn: Eqn, other: Eqn) -> bool:
    if eqn.params == other.params:
        mine, others = eqn.params.values(), other.params.values()
        if all(map(operator.is_, mine, others)):
            return True
        # 0.0 equals -0.0 and 1 equals True, yet they are others.
        pairs = zip(mine, others, strict=True)
        return all([v is w or (type(v) is type(w) and repr(v) == repr(w)) for v, w in pairs])
    if type(eqn.primitive.loops) is not Region:
        return False
    try:
        return bool(params_form(eqn) == params_form(other))
    except Uncacheable:
        return False


def _same_literal(a: Any, b: Any) -> bool:
    if type(a) is not Literal or type(b) is not Literal or a.aval is not b.aval:
        return False
    x, y = (np.asarray(getattr(v.value, "_value", v.value)) for v in (a, b))
    return x.tobytes() == y.tobytes()


def _first_values(first: Sequence[Any], form: Sequence[Any]) -> dict[int, Var] | None:
    """The first values of what rounds of this form carry, by number; None where the first round,
    which reads `first`, is another."""
    found: dict[int, Var] = {}
    for a, b in zip(first, form, strict=True):
        if type(b) is int and b < 0:
            if type(a) is not Var or found.setdefault(b, a) is not a:
                return None
        elif type(b) is int:
            if a != b:
                return None
        elif a is not b and type(a) is not Literal:
            return None
    return found


def _with_movers(
    eqns: Sequence[Eqn], movers: dict[Any, Eqn], have: set[Var]
) -> tuple[list[Eqn], list[Var]]:
    """The equations, with those of `movers` that they read; and what they need beside `have`."""
    out: list[Eqn] = []
    free: dict[Var, None] = {}
    have = set(have)

    def need(v: Any) -> None:
        if type(v) is not Var or v in have:
            return
        have.add(v)
        eqn = movers.get(v)
        if eqn is None:
            free[v] = None
            return
        for x in eqn.invars:
            need(x)
        out.append(eqn)

    for eqn in eqns:
        for v in eqn.invars:
            need(v)
        out.append(eqn)
        have.update(eqn.outvars)
    return out, list(free)
