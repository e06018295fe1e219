"""The arguments of distributions: their promotion, and values outside of the support.

For the modules of this package. What would break it: a `safe` value of `inside` that is itself
outside of the support, where the derivative is NaN.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from numjet import numpy as jnp
from numjet.api.compiled.shown import FLAG, wanted
from numjet.api.derivatives.custom import jvp_of_arrays
from numjet.core import dtypes
from numjet.numpy.promote import as_arrays, promote_inexact, weak_alone


def weakly(name: str, *args: Any) -> list[Any]:
    """The arguments as arrays of one floating dtype, weak where they join to a weak type, as
    integers beside Python floats do. TypeError naming the function `name` where one is no array."""
    return promote_inexact(*as_arrays(name, *args))


def floats(name: str, x: Any, *parameters: Any) -> list[Any]:
    """`weakly` of functions whose results are weak for a single `x` alone: one with axes meets
    constants of its dtype in JAX, and is strong."""
    x, *rest = weakly(name, x, *parameters)
    return [weak_alone(x), *rest]


def one_less_exp(x: Any) -> Any:
    """1 - exp(x), whose derivative is right where the value is 1, too."""
    return -jnp.expm1(x) if FLAG.uses and wanted() else _one_less_exp(x)


@jvp_of_arrays
def _one_less_exp(x: Any) -> Any:
    return -jnp.expm1(x)


_one_less_exp.defjvps(lambda t, out, x: -t * jnp.exp(x))


def logarithm(p: Any) -> Any:
    """log p of probabilities; -∞ at 0, with the derivative 0."""
    good = ~(p <= 0)
    return jnp.where(good, jnp.log(inside(good, p, 1.0)), -jnp.inf)


def standard(name: str, x: Any, loc: Any, scale: Any) -> tuple[Any, Any]:
    """Where `x` is in the distribution at 0 of scale 1; the scale. NaN unless it is positive."""
    x, loc, scale = ordered(name, x, loc, scale)
    scale = jnp.where(scale > 0, scale, jnp.nan)
    return (x - loc) / scale, scale


def ordered(name: str, *args: Any) -> list[Any]:
    """`weakly` of functions that compare: TypeError for complex numbers."""
    values = weakly(name, *args)
    if dtypes.is_complex(values[0].aval.dtype):
        raise TypeError(
            f"{name} does not accept dtype {values[0].aval.dtype}: complex numbers have no order. "
            "Give the real part."
        )
    return values


def ordered_floats(name: str, x: Any, *parameters: Any) -> list[Any]:
    """`floats` of functions that compare: TypeError for complex numbers."""
    return floats(name, *ordered(name, x, *parameters))


def probability(q: Any) -> Any:
    """`q` where it is a probability, NaN elsewhere."""
    return jnp.where((q < 0) | (q > 1), jnp.nan, q)


def inside(good: Any, x: Any, safe: float) -> Any:
    """`x` where `good` does not say False, `safe` elsewhere: derivatives stay finite there."""
    return jnp.where(good, x, safe)


def in_jax(form: Callable, weak: bool = False) -> Callable[[Callable], Callable]:
    """A decorator: where `make_jaxpr` traces, a function is `form` of its arguments, all given and
    promoted: JAX's equations, where what runs has others, which keep more digits or derivatives.
    weak: numbers stay weakly typed."""

    def decorate(function: Callable) -> Callable:
        name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"

        @functools.wraps(function)
        def either(*args: Any, **kwargs: Any) -> Any:
            if FLAG.uses and wanted():
                given = inspect.signature(function).bind(*args, **kwargs)
                given.apply_defaults()
                return form(*(weakly if weak else floats)(name, *given.args))
            return function(*args, **kwargs)

        return either

    return decorate


def unless(value: Any, bad: Any, other: Any) -> Any:
    """`value`, which is computed first, and `other` where it is `bad`."""
    return jnp.where(bad, other, value)


def unlikely(q: Any) -> Any:
    """Whether `q` is no probability."""
    return jnp.isnan(q) | (q < 0) | (q > 1)
