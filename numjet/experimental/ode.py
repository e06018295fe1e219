"""numjet.experimental.ode: `odeint`, initial value problems with adaptive steps.

Dormand and Prince's method of order 5(4), whose step size follows the estimated error; between
steps the solution is its quartic (Hairer, Nørsett & Wanner, "Solving Ordinary Differential
Equations I", II.4 and II.6). Reverse mode solves the adjoint equation backwards in time, and keeps
nothing but the values at the times asked for.

The loop has no known number of rounds: derivatives of derivatives, and forward mode, are refused as
those of every `custom_vjp` are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet import lax, numpy as jnp
from numjet.api.compiled.jit import jit
from numjet.api.derivatives.custom import closure_convert, custom_vjp
from numjet.api.derivatives.pullbacks import vjp
from numjet.api.maps.mapping import vmap
from numjet.base import tree
from numjet.core import dtypes
from numjet.core.array import Array
from numjet.flatten_util import ravel_pytree

# The tableau: where the stages stand, what of earlier ones they are made of (the last row is the
# step itself), the step less an embedded one of order 4, and the value in the step's middle. The
# embedded one is Shampine's ("Some practical Runge-Kutta formulas", Math. Comp. 46, 1986), whose
# error is estimated as two thirds of Dormand and Prince's.
_NODES = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_ERROR = (71 / 86400, 0.0, -142 / 50085, 71 / 2880, -5751 / 169600, 44 / 1575, -1 / 60)
_MIDDLE = (
    6025192743 / 60171106304,
    0.0,
    51252292925 / 130801643196,
    -2691868925 / 90256659456,
    187940372067 / 3189068634112,
    -1776094331 / 39487288512,
    11237099 / 470086768,
)
ORDER = 5.0


def odeint(
    func: Callable,
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = np.inf,
    hmax: float = np.inf,
) -> Any:
    """The solution of dy/dt = func(y, t, *args), y(t[0]) = y0, at the increasing times `t`.

    y0: a pytree of arrays; `func` gives one whose leaves are the slopes of y0's. Returns y0's
    structure with an axis of times in front. The error of a step is held below atol + rtol·|y|;
    mxstep bounds the steps between two times (what is not reached then is the quartic, extended),
    hmax their size. Derivatives are with respect to y0, t and args. Raises TypeError for
    arguments that are no arrays, for y0 of integers and for complex slopes of a real y0, ValueError
    where func gives another number of numbers than y0 has.
    Source: Dormand and Prince's method, Hairer, Nørsett and Wanner, Solving Ordinary Differential
    Equations I, II.4 and II.6.

    >>> import numjet.numpy as jnp
    >>> odeint(lambda y, t: -y, 1.0, jnp.array([0.0, 1.0]), rtol=1e-6, atol=1e-6).round(4)
    Array([1.    , 0.3679], dtype=float32)
    """
    for x in tree.tree_leaves(args):
        if not isinstance(x, Array | np.ndarray | np.generic | float | int | complex):
            raise TypeError(
                f"The contents of odeint *args must be arrays or scalars, but got {x!r}. Values of "
                "other types can be closed over by func."
            )
    flat, unravel = ravel_pytree(y0)
    if not dtypes.is_inexact(flat.dtype):
        raise TypeError(f"y0 must be made of floats or complex numbers, got {flat.aval}.")
    if isinstance(t, list | tuple) or not jnp.issubdtype(jnp.asarray(t).dtype, jnp.floating):
        raise TypeError(f"t must be an array of floats, but got {t}.")
    times = jnp.asarray(t)
    leaves, structure = tree.tree_flatten(args)
    leaves = [jnp.asarray(x) for x in leaves]

    def flat_func(y: Any, at: Any, *values: Any) -> Any:
        state = unravel(y)
        slope = func(state, at, *tree.tree_unflatten(structure, values))
        found = ravel_pytree(slope)[0]
        if found.shape != y.shape:
            have, want = tree.tree_structure(slope), tree.tree_structure(state)
            raise ValueError(
                f"odeint: func must give as many numbers as y0 has, {y.size}, got {found.size}: "
                f"y0 is {want}, func gives {have}."
            )
        if dtypes.is_complex(found.dtype) and not dtypes.is_complex(y.dtype):
            raise TypeError(
                f"odeint: func gives complex slopes, {found.aval}, of a real y0, {y.aval}. Convert "
                "y0 with .astype(complex)."
            )
        return found.astype(y.dtype)

    converted, closed_over = closure_convert(flat_func, flat, times[0], *leaves)
    limits = (float(rtol), float(atol), mxstep, float(hmax))
    found = _odeint(converted, limits, flat, times, *leaves, *closed_over)
    return vmap(unravel)(found)


# ------------------------------------------------------------------ one step
def _combine(weights: Sequence[float], slopes: Any) -> Any:
    """The sum of `slopes` (a row each) with `weights`."""
    return jnp.asarray(np.asarray(weights), slopes.dtype) @ slopes


def runge_kutta_step(func: Callable, y0: Any, f0: Any, t0: Any, dt: Any) -> tuple:
    """A step from y0, where the slope is f0: the value after it, the slope there, the estimated
    error and the slopes of all stages, a row each."""
    slopes = [f0]
    for node, weights in zip(_NODES[1:], _STAGES[1:], strict=True):
        y = y0 + dt.astype(f0.dtype) * _combine(weights, jnp.stack(slopes))
        slopes.append(func(y, t0 + dt * node))
    rows = jnp.stack(slopes)
    return y, slopes[-1], dt.astype(f0.dtype) * _combine(_ERROR, rows), rows


def fit_4th_order_polynomial(y0: Any, y1: Any, y_mid: Any, dy0: Any, dy1: Any, dt: Any) -> Any:
    """The quartic on [0, 1] with these values at 0, 1 and 1/2 and slopes dt·dy0 and dt·dy1 at the
    ends: its coefficients, a row each, that of the highest power first."""
    rise, half = y1 - y0, y_mid - y0
    u, v = dt * dy0, dt * dy1
    return jnp.stack([
        16.0 * half - 8.0 * rise - 2.0 * u + 2.0 * v,
        14.0 * rise - 32.0 * half + 5.0 * u - 3.0 * v,
        16.0 * half - 5.0 * rise - 4.0 * u + v,
        u,
        y0,
    ])  # fmt: skip


def interp_fit_dopri(y0: Any, y1: Any, k: Any, dt: Any) -> Any:
    """The quartic through a step of Dormand and Prince's, whose slopes are the rows of k."""
    step = dt.astype(k.dtype)
    return fit_4th_order_polynomial(y0, y1, y0 + step * _combine(_MIDDLE, k), k[0], k[-1], step)


# ------------------------------------------------------------------ the size of steps
def abs2(x: Any) -> Any:
    """|x|²."""
    return jnp.real(x) ** 2 + jnp.imag(x) ** 2 if jnp.iscomplexobj(x) else x * x


def _norm(x: Any) -> Any:
    return jnp.sqrt(jnp.sum(abs2(x)))


def initial_step_size(
    fun: Callable, t0: Any, y0: Any, order: float, rtol: float, atol: float, f0: Any
) -> Any:
    """A first step for a method of `order`, by the slope f0 and how it changes (Hairer, Nørsett &
    Wanner, II.4)."""
    scale = atol + jnp.abs(y0) * rtol
    d0, d1 = _norm(y0 / scale), _norm(f0 / scale)
    small = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = jnp.where(small, 1e-6, 0.01 * d0 / jnp.where(small, 1.0, d1))
    f1 = fun(y0 + h0.astype(y0.dtype) * f0, t0 + h0)
    d2 = _norm((f1 - f0) / scale) / h0
    flat = (d1 <= 1e-15) & (d2 <= 1e-15)
    steepest = jnp.where(flat, 1.0, jnp.maximum(d1, d2))
    h1 = jnp.where(flat, jnp.maximum(1e-6, h0 * 1e-3), (0.01 / steepest) ** (1.0 / (order + 1.0)))
    return jnp.minimum(100.0 * h0, h1)


def mean_error_ratio(error_estimate: Any, rtol: float, atol: float, y0: Any, y1: Any) -> Any:
    """The root mean square of the errors over what is allowed."""
    allowed = atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))
    return jnp.sqrt(jnp.mean(abs2(error_estimate / allowed.astype(error_estimate.dtype))))


def optimal_step_size(
    last_step: Any,
    mean_error_ratio: Any,
    safety: float = 0.9,
    ifactor: float = 10.0,
    dfactor: float = 0.2,
    order: float = ORDER,
) -> Any:
    """The step after one whose error ratio is given: at most `ifactor` times as long, at least
    `dfactor` times, and not shorter than one that was good enough."""
    least = jnp.where(mean_error_ratio < 1, 1.0, dfactor)
    zero = mean_error_ratio == 0
    wanted = safety * jnp.where(zero, 1.0, mean_error_ratio) ** (-1.0 / order)
    factor = jnp.where(zero, ifactor, jnp.clip(wanted, least, ifactor))
    return last_step * factor.astype(last_step.dtype)


# ------------------------------------------------------------------ the whole
@functools.partial(jit, static_argnums=(0, 1))
def _solve(func: Callable, limits: tuple, y0: Any, times: Any, *args: Any) -> Any:
    """The values at `times`, a row each."""
    rtol, atol, mxstep, hmax = limits

    def slope(y: Any, at: Any) -> Any:
        return func(y, at, *args)

    def until(target: Any, state: tuple) -> tuple:
        def goes_on(carry: tuple) -> Any:
            count, (_, _, at, step, _, _) = carry
            on = (at < target) & (step > 0)
            return on if np.isinf(mxstep) else on & (count < mxstep)

        def advance(carry: tuple) -> tuple:
            count, (y, f, at, step, before, quartic) = carry
            new_y, new_f, error, slopes = runge_kutta_step(slope, y, f, at, step)
            ratio = mean_error_ratio(error, rtol, atol, y, new_y)
            fitted = interp_fit_dopri(y, new_y, slopes, step)
            moved = (new_y, new_f, at + step, at, fitted)
            stayed = (y, f, at, before, quartic)
            y, f, at, before, quartic = [
                jnp.where(ratio <= 1.0, a, b) for a, b in zip(moved, stayed, strict=True)
            ]
            step = jnp.clip(optimal_step_size(step, ratio), 0.0, hmax)
            return count + 1, (y, f, at, step, before, quartic)

        return lax.while_loop(goes_on, advance, (0, state))[1]

    def reach(state: tuple, target: Any) -> tuple:
        state = until(target, state)
        _, _, at, _, before, quartic = state
        where = ((target - before) / (at - before)).astype(y0.dtype)
        return state, jnp.polyval(quartic, where)

    f0 = slope(y0, times[0])
    step = initial_step_size(slope, times[0], y0, ORDER - 1, rtol, atol, f0)
    step = jnp.clip(step, 0.0, hmax).astype(times.dtype)
    state = (y0, f0, times[0], step, times[0], jnp.stack([y0] * 5))
    rows = lax.scan(reach, state, times[1:])[1]
    return jnp.concatenate([y0[None], rows])


@functools.partial(custom_vjp, nondiff_argnums=(0, 1))
def _odeint(func: Callable, limits: tuple, y0: Any, times: Any, *args: Any) -> Any:
    return _solve(func, limits, y0, times, *args)


def _forward(func: Callable, limits: tuple, y0: Any, times: Any, *args: Any) -> tuple:
    rows = _solve(func, limits, y0, times, *args)
    return rows, (rows, times, args)


def _backward(func: Callable, limits: tuple, residuals: tuple, cotangents: Any) -> tuple:
    """The adjoint equation: with y' = f(y, t, p) and a the cotangent of y(t), a' = -a·∂f/∂y, and
    the cotangent of p grows by a·∂f/∂p, from each time to the one before (Chen et al. 2018)."""
    rows, times, args = residuals
    active = [i for i, x in enumerate(args) if dtypes.is_inexact(x.dtype)]

    def merged(values: Sequence[Any]) -> list[Any]:
        every = list(args)
        for i, x in zip(active, values, strict=True):
            every[i] = x
        return every

    def pulled(state: tuple, minus_t: Any, *values: Any) -> tuple:
        """The slopes of the state with time running backwards."""
        y, a = state[:2]
        slope, pull = vjp(lambda y, at, *ps: func(y, at, *merged(ps)), y, -minus_t, *values)
        by_y, by_t, *by_args = pull(a)
        return (-slope, by_y, by_t, by_args)

    values = [args[i] for i in active]

    def interval(carry: tuple, given: tuple) -> tuple:
        a, by_t0, by_args = carry
        y, at, earlier, ct, ct_earlier = given
        by_t = jnp.real(jnp.dot(func(y, at, *args), ct)).astype(times.dtype)
        state = (y, a, by_t0 - by_t, by_args)
        _, a, by_t0, by_args = tree.tree_map(
            lambda x: x[1],
            odeint(pulled, state, jnp.stack([-at, -earlier]), *values,
                   rtol=limits[0], atol=limits[1], mxstep=limits[2], hmax=limits[3]),
        )  # fmt: skip
        return (a + ct_earlier, by_t0, by_args), by_t

    start = (cotangents[-1], jnp.zeros((), times.dtype), [jnp.zeros_like(x) for x in values])
    (a, by_t0, by_args), by_times = lax.scan(
        interval, start,
        (rows[1:], times[1:], times[:-1], cotangents[1:], cotangents[:-1]), reverse=True,
    )  # fmt: skip
    found: list[Any] = [None] * len(args)
    for i, ct in zip(active, by_args, strict=True):
        found[i] = ct
    return (a, jnp.concatenate([by_t0[None], by_times]), *found)


_odeint.defvjp(_forward, _backward)

__all__ = ["odeint"]


def __dir__() -> list[str]:
    return [*__all__]
