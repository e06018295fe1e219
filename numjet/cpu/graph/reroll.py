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

import itertools
import operator
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var, eval_closed
from numjet.core.lowering import Host, Kernel, Region
from numjet.core.primitive import Primitive
from numjet.cpu.graph.forms import Forms
from numjet.cpu.graph.nodes import LOOPS, called

# Fewer rounds, or equations in all of them, cost less to compile than they are worth a look.
FEWEST_ROUNDS, FEWEST_EQUATIONS = 8, 32
# Longer rounds are not looked for.
LONGEST_ROUND = 512
# How many different distances between equal steps are tried as the length of a round.
TRIED = 3
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
        carry = eval_closed(jaxpr, *consts, *carry)
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


def reroll(closed: ClosedJaxpr, forms: Forms | None = None) -> ClosedJaxpr:
    """The same program with its runs as loops; `closed` itself where there are none. `forms`: those
    of the program, where somebody has them."""
    jaxpr = closed.jaxpr
    eqns, outvars = jaxpr.eqns, jaxpr.outvars
    if len(eqns) < FEWEST_ROUNDS:
        return closed
    if forms is None:
        forms = Forms.of_jaxpr(closed)
    calls = _calls_with_steps(eqns, forms)
    if len(calls) >= FEWEST_ROUNDS:
        eqns, outvars = _without_calls(eqns, outvars, calls)
        forms = Forms([*jaxpr.constvars, *jaxpr.invars], eqns, outvars)
    runs = _find_all(_Program(eqns, outvars, forms), 0, len(eqns))
    if not runs:
        return closed
    done: list[Eqn] = []
    at = 0
    for run in runs:
        done += [*eqns[at : run.start], *run.equations()]
        at = run.stop
    done += eqns[at:]
    changed = Jaxpr(jaxpr.constvars, jaxpr.invars, outvars, done, jaxpr.effects)
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


def _calls_with_steps(eqns: list[Eqn], forms: Forms) -> set[int]:
    """The positions of calls that hold steps (and no constants)."""
    hiding = set()
    for number, first in enumerate(forms.firsts):
        eqn = eqns[first]
        if type(eqn.primitive.loops) is Region and _hides_steps(eqn) and _body(eqn) is not None:
            hiding.add(number)
    return {i for i, number in enumerate(forms.of) if number in hiding} if hiding else set()


def _without_calls(
    eqns: list[Eqn], outvars: list[Any], calls: set[int]
) -> tuple[list[Eqn], list[Any]]:
    """A program with what those calls do in their places."""
    out: list[Eqn] = []
    now: dict[Any, Any] = {}  # results of calls -> what they are called instead
    for i, eqn in enumerate(eqns):
        body = _body(eqn) if i in calls else None
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
    """The equations that are searched with their forms, and the results of the program."""

    def __init__(self, eqns: list[Eqn], outvars: list[Any], forms: Forms) -> None:
        self.eqns, self.outvars, self.forms = eqns, outvars, forms
        # Where steps are, those of each primitive and result for themselves.
        kinds: dict[Any, list[int]] = {}
        steps: dict[int, list[int]] = {}
        for number, first in enumerate(forms.firsts):
            eqn = eqns[first]
            if eqn.outvars and _is_step(eqn.primitive):
                steps[number] = kinds.setdefault((eqn.primitive, eqn.outvars[0].aval), [])
        for i, number in enumerate(forms.of):
            if number in steps:
                steps[number].append(i)
        self.places = [at for at in kinds.values() if len(at) >= FEWEST_ROUNDS]


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
    places = [at[bisect_left(at, begin) : bisect_left(at, end)] for at in program.places]
    for at in sorted(places, key=len, reverse=True):
        if len(at) < FEWEST_ROUNDS:
            break
        for period, count in _distances(at):
            if count >= FEWEST_ROUNDS - 1 and period <= LONGEST_ROUND:
                found = _with_period(program, at, period, end)
                if found is not None:
                    return found
    return None


def _distances(at: list[int]) -> list[tuple[int, int]]:
    """How far apart equal steps are most often, and how often."""
    next_ones = set(map(operator.sub, at[1:], at))
    if len(next_ones) == 1:
        (distance,) = next_ones
        return [(k * distance, len(at) - k) for k in range(1, TRIED + 1)]
    # Rounds may hold several equal steps: the next but one may be the same one again.
    found: Counter[int] = Counter()
    for skip in range(1, 5):
        found.update(map(operator.sub, at[skip:], at))
    return found.most_common(TRIED)


def _with_period(program: _Program, places: Sequence[int], period: int, limit: int) -> _Run | None:
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
        self.program, self.eqns, self.forms = program, program.eqns, program.forms
        self.start, self.period = start, period
        # Results are known by their numbers in the program; each round has `width` of them.
        self.first = self.forms.numbers[self.eqns[start].outvars[0]]
        self.width = sum([len(eqn.outvars) for eqn in self.round(0)])
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
        if any([eqn.effects or _hides_steps(eqn) for eqn in self.round(0)]):
            return 0
        second = self.start + self.period
        at = self.alike(second, min(second + self.period, end))
        if at == second + self.period and self.within(1):
            # Equal forms read what is equally far back: all of it results of this run.
            following = self.forms.of[at:end]
            differ = map(operator.ne, following, self.forms.of[second:])
            at += next(itertools.compress(itertools.count(), differ), len(following))
        return (self.alike(at, end) - self.start) // self.period

    def within(self, k: int) -> bool:
        """Whether round k reads nothing but results of the run and operands of the program, and has
        no params that may differ though their forms do not."""
        number, first, before = self.forms.numbers, self.first, self.forms.first
        loose = self.forms.loose
        if loose and any([self.forms.kind(eqn) in loose for eqn in self.round(k)]):
            return False
        read = [a for eqn in self.round(k) for a in eqn.invars if type(a) is Var]
        return not any([before <= number[a] < first for a in read])

    def alike(self, at: int, end: int) -> int:
        """The first equation from `at` on that does not do what the one a period before did."""
        number, first, width = self.forms.numbers, self.first, self.width
        # What the second round reads of the first's operands is seen later.
        free = self.start + 2 * self.period
        for eqn, before in zip(self.eqns[at:end], self.eqns[at - self.period :], strict=False):
            if eqn.primitive is not before.primitive or not self.same_params(eqn, before):
                break
            operands, others = eqn.invars, before.invars
            alike = len(operands) == len(others)
            for a, b in zip(operands, others):  # noqa: B905  every operand of every equation
                if a is b:
                    continue
                if type(a) is not Var or type(b) is not Var:
                    alike = alike and _same_literal(a, b)
                # What is numbered `width` later is the same of the next round.
                elif number[a] - number[b] != width or number[b] < first:
                    alike = alike and at < free and a.aval is b.aval
            for v, w in zip(eqn.outvars, before.outvars, strict=True):
                alike = alike and v.aval is w.aval
            if not alike:
                break
            at += 1
        return at

    def same_params(self, eqn: Eqn, other: Eqn) -> bool:
        if eqn.params is other.params:
            return True
        kind = self.forms.kind(eqn)
        if kind != self.forms.kind(other):
            return False
        return kind not in self.forms.loose or _same_params(eqn, other)

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
        base = self.first + k * self.width
        number, first = self.forms.numbers, self.first
        out: list[Any] = []
        for eqn in self.round(k):
            for v in eqn.invars:
                n = number[v] if type(v) is Var else -1
                out.append(v if n < first else n - base)
        return out

    def escapes(self) -> bool:
        """Whether anything but what the last round hands on is read behind the run."""
        number = self.forms.numbers
        first = number[self.results(0)[0]]
        last = first + (self.rounds - 1) * self.width
        allowed = {last + n for n in self.carries}
        for v in (*[v for e in self.eqns[self.stop :] for v in e.invars], *self.program.outvars):
            n = number[v] if type(v) is Var else -1
            if first <= n < last + self.width and n not in allowed:
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
        body = Jaxpr([], [*self.consts, *carried], [now[n] for n in self.carries], self.body)
        params = {
            "jaxpr": ClosedJaxpr(body, []),
            "length": self.rounds,
            "num_consts": len(self.consts),
        }
        outs = [last[n] for n in self.carries]
        return [*self.outside, Eqn([*self.consts, *self.inits], outs, repeat_p, params)]


def _same_params(eqn: Eqn, other: Eqn) -> bool:
    if eqn.params != other.params:
        return False
    # 0.0 equals -0.0 and 1 equals True, yet they are others.
    pairs = zip(eqn.params.values(), other.params.values(), strict=True)
    return all([v is w or (type(v) is type(w) and repr(v) == repr(w)) for v, w in pairs])


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
