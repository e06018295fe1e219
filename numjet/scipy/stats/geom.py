"""numjet.scipy.stats.geom: trials up to the first success of probability `p`."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.arguments import in_jax, inside, ordered_floats


def _log_in_jax(k: Any, p: Any, loc: Any) -> Any:
    x = k - loc
    value = special.xlog1py(x - 1, -p) + jnp.log(p)
    return jnp.where(x <= 0, -jnp.inf, value)


@in_jax(_log_in_jax, weak=True)
def logpmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """The logarithm of the probabilities of the geometric distribution.

    k: where; p: probability of success; loc: shifts it. Arrays that broadcast; integers become
    floats. Result: the broadcast shape. -∞ outside of its support. Differentiable in floats. Raises
    TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import geom
    >>> geom.logpmf(jnp.array([2]), 0.5).round(4)
    Array([-1.3863], dtype=float32)
    """
    k, p, loc = ordered_floats("geom.logpmf", k, p, loc)
    k = k - loc
    outside = k <= 0
    value = special.xlog1py(inside(~outside, k, 1.0) - 1, -p) + jnp.log(p)
    return jnp.where(outside, -jnp.inf, value)


def pmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """The probabilities of the geometric distribution: trials up to the first success, (1-p)^(k-1)
    p.

    k: where; p: probability of success; loc: shifts it. Arrays that broadcast; integers become
    floats. Result: the broadcast shape. 0 outside of its support. Differentiable in floats. Raises
    TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import geom
    >>> geom.pmf(jnp.array([2]), 0.5).round(4)
    Array([0.25], dtype=float32)
    """
    return jnp.exp(logpmf(k, p, loc))


__all__ = ["logpmf", "pmf"]


def __dir__() -> list[str]:
    return [*__all__]
