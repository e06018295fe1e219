"""numjet.scipy.optimize: minimization of functions of a vector by BFGS, with all or little memory.

Source: Nocedal & Wright, "Numerical Optimization", 2006: algorithms 6.1 and 7.5, with a line search
for the strong Wolfe conditions (3.5 and 3.6 in one loop).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from numjet import lax, numpy as jnp
from numjet.api.derivatives.autodiff import value_and_grad
from numjet.api.flat import check_callable
from numjet.base import tree
from numjet.base.record import NamedTuple
from numjet.core import dtypes

# Of the Wolfe conditions: the part of the slope that a step must go down, and may leave.
DECREASE, CURVATURE = 1e-4, 0.9
# Trials stay this part of the bracket away from its ends: those where a cubic is least, and those
# where a parabola is.
CUBIC_MARGIN, PARABOLA_MARGIN = 0.2, 0.1
# A bracket is given up after so many trials in it. Its width does not tell: of functions whose
# values are large good steps are short.
BRACKET_TRIALS = 30
CONVERGED, STOPPED, STUCK, ENDLESS = 0, 1, 3, 5
# With little memory these have numbers of their own, and no step that goes down another.
TOO_MANY_CALLS, TOO_MANY_GRADIENTS, FLAT, STUCK_LIMITED = 2, 3, 4, 5
LIMITED = "l-bfgs-experimental-do-not-rely-on-this"
_COMMON = {"gtol": 1e-5, "norm": float("inf"), "maxiter": None}
_OPTIONS = {
    "bfgs": {**_COMMON, "line_search_maxiter": 10},
    # SciPy's default of ftol: ten million times the precision of doubles.
    LIMITED: {**_COMMON, "maxls": 20, "maxcor": 10, "ftol": 2.220446049250313e-09, "maxfun": None,
              "maxgrad": None},
}  # fmt: skip


class OptimizeResults(NamedTuple):
    """What `minimize` found. status: 0 converged, 1 too many iterations, 3 no step goes down, 5 it
    goes down further than steps were tried, or is NaN; of limited memory 2 and 3 too many
    evaluations of the function and its gradient, 4 it hardly gets smaller, 5 no step goes down.
    nfev, njev: the evaluations; nit: iterations.

    x: the point; success: whether it converged; fun: the function's value there; jac: its gradient;
    hess_inv: the estimate of the inverse of its second derivatives, None of limited memory.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import optimize
    >>> found = optimize.minimize(lambda x: jnp.sum(x ** 2), jnp.ones(2), method="BFGS")
    >>> int(found.status)
    0
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


class _Point(NamedTuple):
    """A step along the search direction: its length, value, gradient and slope there."""

    step: Any
    value: Any
    gradient: Any
    slope: Any


class _Search(NamedTuple):
    trial: Any  # the next step to try
    low: _Point  # the best so far with enough decrease
    high: _Point  # the other end, once there is one
    recent: _Point  # the end that was left last
    bracketed: Any
    done: Any
    tries: Any
    inside: Any  # how many of them were in the bracket


def _inner(x: Any, y: Any) -> Any:
    """The scalar product of real vectors; of complex ones that of their parts."""
    return jnp.vdot(x, y).real if dtypes.is_complex(x.dtype) else jnp.dot(x, y)


def _chosen(condition: Any, one: _Point, other: _Point) -> _Point:
    return _Point(*[jnp.where(condition, a, b) for a, b in zip(one, other, strict=True)])


def _between(low: _Point, high: _Point, recent: _Point, first: Any) -> Any:
    """The next trial in a bracket: where the cubic with the lower end's value and slope and the
    values at the other end and at the end before that is least (Nocedal & Wright, 3.58 and 3.59),
    or else such a parabola, or else the middle."""
    span, other = high.step - low.step, recent.step - low.step
    above = high.value - low.value - low.slope * span
    beyond = recent.value - low.value - low.slope * other
    scale = (span * other) ** 2 * (span - other)
    third = (other**2 * above - span**2 * beyond) / scale
    second = (span**3 * beyond - other**3 * above) / scale
    cubic = (jnp.sqrt(second**2 - 3 * third * low.slope) - second) / (3 * third)
    parabola = -low.slope * span**2 / (2 * above)

    def inner(move: Any, margin: float) -> Any:
        """Whether a move from the lower end keeps away from both."""
        return (move / span >= margin) & (move / span <= 1 - margin)

    move = jnp.where(inner(parabola, PARABOLA_MARGIN), parabola, span / 2)
    return low.step + jnp.where(~first & inner(cubic, CUBIC_MARGIN), cubic, move)


def _line_search(
    f: Callable, x: Any, direction: Any, start: _Point, first: Any, most: int
) -> _Search:
    """The search for a step by the strong Wolfe conditions: twice as long until one is too long,
    `most` trials at most, then in the bracket."""

    def body(s: _Search) -> _Search:
        value, gradient = f(x + s.trial * direction)
        here = _Point(s.trial, value, gradient, _inner(gradient, direction))
        enough = value <= start.value + DECREASE * s.trial * start.slope
        enough &= (value < s.low.value) | (s.tries == 0)
        flat = jnp.abs(here.slope) <= -CURVATURE * start.slope
        # Near the minimum rounding hides the decrease: there the slope alone says that it is one
        # (Hager & Zhang 2005).
        enough |= flat & (value <= start.value + rounding)
        enough &= jnp.isfinite(here.slope)
        # What is behind: uphill from here, seen from the lower end.
        ahead = jnp.where(s.bracketed, s.high.step - s.low.step, 1)
        turned = here.slope * ahead >= 0
        recent = _chosen(enough & ~turned, s.low, s.high)
        high = _chosen(enough & turned, s.low, _chosen(enough, s.high, here))
        low = _chosen(enough, here, s.low)
        bracketed = s.bracketed | ~enough | turned
        trial = jnp.where(bracketed, _between(low, high, recent, ~s.bracketed), 2 * s.trial)
        inside = jnp.where(s.bracketed, s.inside + 1, s.inside)
        return _Search(trial, low, high, recent, bracketed, enough & flat, s.tries + 1, inside)

    def going(s: _Search) -> Any:
        more = jnp.where(s.bracketed, s.inside < BRACKET_TRIALS, s.tries < most)
        return ~s.done & more

    rounding = 10 * jnp.finfo(x.dtype).eps * jnp.abs(start.value)
    false, none = jnp.asarray(False), jnp.asarray(0)
    return lax.while_loop(
        going, body, _Search(first, start, start, start, false, false, none, none)
    )


class _State(NamedTuple):
    x: Any
    value: Any
    before: Any  # the value one step before
    gradient: Any
    memory: Any
    anew: Any  # whether it was begun anew and no step was taken since, or there was none at all
    status: Any
    calls: Any
    iterations: Any


class _Method(NamedTuple):
    """What is kept of the steps: to begin with; the direction that it gives for a gradient; and
    after a step `move`, over which the gradient changed by `change`, with their product
    `curvature`, if it is positive; the first trial of a step, for the change of the value with the
    step before and the slope; and what is kept, begun anew, where no step goes down."""

    start: Any
    direction: Callable
    after: Callable
    first: Callable
    again: Callable | None


class _Inverse(NamedTuple):
    matrix: Any
    scale: Any  # of the last step: the reciprocal of the second derivative along it


def _whole(x: Any) -> _Method:
    """An estimate of the inverse of the second derivatives."""
    identity = jnp.eye(x.size, dtype=x.dtype)

    def after(inverse: _Inverse, move: Any, change: Any, curvature: Any) -> _Inverse:
        safe = jnp.where(curvature > 0, curvature, 1)
        turn = identity - jnp.outer(move, change) / safe
        matrix = turn @ inverse.matrix @ turn.T + jnp.outer(move, move) / safe
        return _Inverse(matrix, safe / jnp.dot(change, change))

    def first(decrease: Any, slope: Any) -> Any:
        """As far as a parabola would go that falls by what the step before fell, a bit further,
        so that it becomes 1 in the end (Nocedal & Wright, 3.60)."""
        step = 1.01 * 2 * decrease / slope
        return jnp.where((step > 0) & (step < 1), step, 1)

    def again(inverse: _Inverse) -> _Inverse:
        """Where 1 is far from the function's second derivatives rounding spoils the estimate: now
        their scale is known (Nocedal & Wright, 6.20)."""
        return _Inverse(inverse.scale * identity, inverse.scale)

    start = _Inverse(identity, jnp.ones((), x.dtype))
    def direction(inverse: _Inverse, gradient: Any) -> Any:
        return -(inverse.matrix @ gradient)

    return _Method(start, direction, after, first, again)


class _Steps(NamedTuple):
    moves: Any  # the last steps, the newest last
    changes: Any
    weights: Any  # 1 / their curvatures; 0 of steps that there were not
    scale: Any


def _limited(x: Any, count: int) -> _Method:
    """The last `count` steps, by which the gradient is multiplied twice."""
    real = dtypes.real_of(x.dtype) if dtypes.is_complex(x.dtype) else x.dtype
    none = jnp.zeros((count, x.size), x.dtype)
    start = _Steps(none, none, jnp.zeros(count, real), jnp.ones((), real))

    def direction(kept: _Steps, gradient: Any) -> Any:
        def back(rest: Any, step: tuple) -> tuple:
            move, change, weight = step
            part = weight * _inner(move, rest)
            return rest - part * change, part

        def forth(rest: Any, step: tuple) -> tuple:
            move, change, weight, part = step
            return rest + (part - weight * _inner(change, rest)) * move, None

        steps = kept[:3]
        rest, parts = lax.scan(back, gradient, steps, reverse=True)
        rest, _ = lax.scan(forth, kept.scale * rest, (*steps, parts))
        return -rest

    def after(kept: _Steps, move: Any, change: Any, curvature: Any) -> _Steps:
        safe = jnp.where(curvature > 0, curvature, 1)
        size = _inner(change, change)
        moves, changes, weights = [
            jnp.concatenate([old[1:], new[None]])
            for old, new in zip(kept[:3], (move, change, 1 / safe), strict=True)
        ]
        return _Steps(moves, changes, weights, safe / jnp.where(size > 0, size, 1))

    return _Method(start, direction, after, lambda decrease, slope: jnp.ones_like(slope),
                   None)  # fmt: skip


def _chosen_options(
    method: str, tol: float | None, options: Mapping[str, Any] | None
) -> dict[str, Any]:
    given, known = dict(options or {}), _OPTIONS[method]
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise TypeError(f"minimize: unknown options {unknown}. Known: {sorted(known)}.")
    return {**known, **({} if tol is None else {"gtol": tol}), **given}


def _vector(x0: Any, limited: bool) -> Any:
    x = jnp.asarray(x0)
    if x.ndim != 1:
        raise ValueError(
            f"minimize: x0 must be a vector, got shape {x.shape}. Flatten other arguments, with "
            "flatten_util.ravel_pytree for example."
        )
    if limited and dtypes.is_complex(x.dtype):
        return x
    return x if dtypes.is_floating(x.dtype) else x.astype(dtypes.canonical(float))


def minimize(
    fun: Callable,
    x0: Any,
    args: tuple = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """A local minimum of `fun(x, *args)` near a vector, by the method of Broyden, Fletcher,
    Goldfarb and Shanno.

    fun: with a real scalar as its result. x0: float[n], where the search begins (ValueError for
    other ranks). args: a tuple (TypeError for others) of further arguments. method: "BFGS", or
    "l-bfgs-experimental-do-not-rely-on-this", which keeps the last steps instead of n numbers for
    each of x, and takes complex x0, too (ValueError for others). tol: the norm of the gradient at
    which to stop. options: `gtol` (the same, 1e-5), `norm` (its order, infinity), `maxiter` (200 n)
    and `line_search_maxiter` (10, how many trials there are, each twice as far, until one is too
    far), of limited memory `maxls` (20, the same), and `maxcor` (10), how many steps are kept,
    `maxfun` and `maxgrad` (no limit), and `ftol` (2.2e-9): it ends when one step makes the value
    smaller by less, relative to it or to 1. Result: OptimizeResults. Works under
    `jit` and `vmap`. Derivatives are not those of the minimum: forward mode gives those of the
    steps, reverse mode raises ValueError; `lax.custom_root` of the gradient has them. SciPy finds
    the gradient by differences where none is given; here it is exact. Source: Nocedal and Wright,
    Numerical Optimization, algorithms 6.1, 7.5, 3.5 and 3.6. Its `jac`, hess, hessp, `bounds`,
    `constraints` and `callback` are not there.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import optimize
    >>> found = optimize.minimize(lambda x: jnp.sum((x - 2.0) ** 4), jnp.zeros(2), method="BFGS")
    >>> bool(found.success), bool(jnp.abs(found.x - 2.0).max() < 0.05)
    (True, True)
    """
    check_callable("minimize", fun)
    name = method.lower() if isinstance(method, str) else method
    if name not in ("bfgs", LIMITED):
        raise ValueError(f"Method {method} not recognized by minimize. Use 'BFGS'.")
    if not isinstance(args, tuple):
        raise TypeError(f"minimize: args must be a tuple, got {args!r}. Write (args,).")
    limited = name == LIMITED
    chosen, x = _chosen_options(name, tol, options), _vector(x0, limited)
    limit = chosen["maxiter"]
    most = 200 * x.size if limit is None else operator.index(limit)
    trials = operator.index(chosen["maxls" if limited else "line_search_maxiter"])
    derivative = value_and_grad(lambda x: fun(x, *args))
    kept = _limited(x, operator.index(chosen["maxcor"])) if limited else _whole(x)

    def f(x: Any) -> tuple:
        value, gradient = derivative(x)
        return value, gradient.conj() if dtypes.is_complex(gradient.dtype) else gradient

    def small(gradient: Any) -> Any:
        return jnp.linalg.norm(gradient, ord=chosen["norm"]) < chosen["gtol"]

    def going(s: _State) -> Any:
        return (s.status == STOPPED) & (s.iterations < most)

    def ended(before: Any, value: Any, calls: Any) -> Any:
        """The status of a step that went down, of limited memory."""
        sizes = jnp.maximum(jnp.maximum(jnp.abs(before), jnp.abs(value)), 1)
        status = jnp.where(before - value <= chosen["ftol"] * sizes, FLAT, STOPPED)
        for text, found in (("maxgrad", TOO_MANY_GRADIENTS), ("maxfun", TOO_MANY_CALLS)):
            if chosen[text] is not None:
                status = jnp.where(calls > chosen[text], found, status)
        return status

    def step(s: _State) -> _State:
        direction = kept.direction(s.memory, s.gradient)
        start = _Point(jnp.zeros_like(s.value), s.value, s.gradient, _inner(s.gradient, direction))
        length = kept.first(s.value - s.before, start.slope).astype(s.value.dtype)
        search = _line_search(f, s.x, direction, start, length, trials)
        # Where it goes down without an end no step is taken.
        endless = ~search.done & ~search.bracketed
        found = _chosen(endless, start, search.low)
        better = found.step > 0
        # The direction may be infinite or NaN, where no step is taken.
        move = jnp.where(better, found.step * direction, 0)
        change = found.gradient - s.gradient
        curvature = _inner(change, move)
        memory = tree.tree_map(
            lambda new, old: jnp.where(better & (curvature > 0), new, old),
            kept.after(s.memory, move, change, curvature),
            s.memory,
        )
        # At the limit of rounding neither the value nor the slope gets smaller.
        better &= (found.value < s.value) | (
            jnp.linalg.norm(found.gradient) < jnp.linalg.norm(s.gradient)
        )
        calls = s.calls + search.tries
        if limited:
            status = jnp.where(better, ended(s.value, found.value, calls), STUCK_LIMITED)
        else:
            # The last iteration that there may be says so, whatever became of it.
            unknown = endless | jnp.isnan(s.value)
            stuck = jnp.where(s.iterations + 1 == most, STOPPED, jnp.where(unknown, ENDLESS, STUCK))
            status = jnp.where(better | ~s.anew, STOPPED, stuck)
        if kept.again is not None:
            memory = tree.tree_map(
                lambda new, old: jnp.where(better, old, new), kept.again(memory), memory
            )
        status = jnp.where(small(found.gradient), CONVERGED, status)
        # Begun anew with its scale known the first trial is 1: so far would any decrease lead.
        before = jnp.where(better, s.value, jnp.inf)
        return _State(
            s.x + move, found.value, before, found.gradient, memory, ~better, status, calls,
            s.iterations + 1,
        )  # fmt: skip

    value, gradient = f(x)
    status = jnp.where(small(gradient), CONVERGED, STOPPED)
    one, none = jnp.asarray(1), jnp.asarray(0)
    # As if the step before the first had been half the gradient's norm long.
    before = value + jnp.linalg.norm(gradient) / 2
    start = _State(x, value, before, gradient, kept.start, jnp.asarray(True), status, one, none)
    end = lax.while_loop(going, step, start)
    success = jnp.asarray(end.status == CONVERGED, bool)
    slope = end.gradient.conj() if dtypes.is_complex(x.dtype) else end.gradient
    return OptimizeResults(
        end.x, success, end.status, end.value, slope, None if limited else end.memory.matrix,
        end.calls, end.calls, end.iterations,
    )  # fmt: skip


__all__ = ["OptimizeResults", "minimize"]


def __dir__() -> list[str]:
    return [*__all__]
