"""numjet.scipy.stats.gaussian_kde: densities estimated from samples by sums of normal densities.

Source: Scott, "Multivariate density estimation", 1992.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from numjet import numpy as jnp, random, tree_util
from numjet.core import dtypes
from numjet.numpy.promote import as_arrays, promote_inexact
from numjet.scipy import linalg, special

_FIELDS = ("neff", "dataset", "weights", "covariance", "inv_cov")


@tree_util.register_pytree_node_class
class gaussian_kde:  # noqa: N801 - a public name
    """A density made of normal densities around the samples `dataset`, [n] or [dimensions, n].

    bw_method: how wide they are as a part of the samples' spread: "scott" (the default),
    "silverman", a number, or a function of this object. weights: of the samples, [n]. Not changed
    after it is made; a pytree of `neff` (how many equal weights are as good), `dataset`
    [dimensions, n], `weights`, `covariance` and its inverse `inv_cov`. Complex samples are refused.

    >>> import numjet.numpy as jnp
    >>> density = gaussian_kde(jnp.array([1.0, 2.0, 4.0]))
    >>> print(density(jnp.array([2.0])).round(4))
    [0.2149]
    """

    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    def __init__(
        self, dataset: Any, bw_method: None | str | Any | Callable = None, weights: Any = None
    ) -> None:
        (dataset,) = as_arrays("gaussian_kde", dataset)
        if dtypes.is_complex(dataset.dtype):
            raise NotImplementedError("gaussian_kde does not support complex data.")
        dataset = jnp.atleast_2d(dataset)
        if dataset.ndim != 2:
            raise ValueError(
                f"gaussian_kde: dataset must have one or two axes, got shape {dataset.shape}."
            )
        if dataset.size <= 1:
            raise ValueError("gaussian_kde: `dataset` input should have multiple elements.")
        d, n = dataset.shape
        if weights is None:
            (dataset,) = promote_inexact(dataset)
            weights = jnp.full((n,), 1 / n, dataset.dtype)
        else:
            (weights,) = as_arrays("gaussian_kde", weights)
            if weights.ndim != 1:
                raise ValueError("gaussian_kde: `weights` input should be one-dimensional.")
            if weights.shape[0] != n:
                raise ValueError(f"gaussian_kde: `weights` input should be of length {n}.")
            dataset, weights = promote_inexact(dataset, weights)
            weights = weights / weights.sum()
        self._set(neff=1 / (weights * weights).sum(), dataset=dataset, weights=weights)
        factor = self._width(bw_method, d)
        spread = jnp.cov(dataset, rowvar=True, bias=False, aweights=weights)
        spread = jnp.atleast_2d(spread).astype(dataset.dtype)
        self._set(covariance=spread * factor**2, inv_cov=jnp.linalg.inv(spread) / factor**2)

    def _width(self, method: Any, d: int) -> Any:
        if method is None or isinstance(method, str) and method == "scott":
            return self.neff ** (-1 / (d + 4))
        if isinstance(method, str) and method == "silverman":
            return (self.neff * (d + 2) / 4) ** (-1 / (d + 4))
        if callable(method):
            return method(self)
        if isinstance(method, str) or jnp.ndim(method):
            raise ValueError(
                "gaussian_kde: `bw_method` should be 'scott', 'silverman', a scalar, or a "
                f"callable, got {method!r}."
            )
        return method

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("gaussian_kde: cannot be changed; make another one.")

    def __repr__(self) -> str:
        parts = [f"{name}={getattr(self, name)!r}" for name in _FIELDS]
        return f"gaussian_kde({', '.join(parts)})"

    def tree_flatten(self) -> tuple[tuple, None]:
        """Its arrays."""
        return tuple(getattr(self, name) for name in _FIELDS), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Sequence[Any]) -> gaussian_kde:
        """One with these arrays."""
        new = object.__new__(cls)
        new._set(**dict(zip(_FIELDS, children, strict=True)))
        return new

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return int(self.dataset.shape[0])

    @property
    def n(self) -> int:
        """The number of samples."""
        return int(self.dataset.shape[1])

    # ---------------------------------------------------------------- densities
    def _points(self, points: Any) -> Any:
        (points,) = as_arrays("gaussian_kde", points)
        if dtypes.is_complex(points.dtype):
            raise NotImplementedError("gaussian_kde does not support complex coordinates.")
        points = jnp.atleast_2d(promote_inexact(points, self.dataset)[0])
        if points.shape[0] != self.d:
            if points.shape[0] == 1 and points.shape[1] == self.d:
                return points.reshape(self.d, 1)
            raise ValueError(
                f"gaussian_kde: points have dimension {points.shape[0]}, dataset has dimension "
                f"{self.d}."
            )
        return points

    def _log_terms(self, center: Any, factor: Any, points: Any) -> Any:
        """log of the normal densities of lower factor `factor`, [centers, points]."""
        white = linalg.solve_triangular(factor, center, lower=True)
        apart = white[:, :, None] - linalg.solve_triangular(factor, points, lower=True)[:, None, :]
        size = jnp.log(jnp.diagonal(factor)).sum() + 0.5 * self.d * math.log(2 * math.pi)
        return -0.5 * (apart * apart).sum(0) - size

    def evaluate(self, points: Any) -> Any:
        """The density at points.

        points: [dimensions, m], or [m] in one dimension (ValueError for others). Result: [m].
        Differentiable.

        >>> from numjet import numpy as jnp
        >>> from numjet.scipy.stats import gaussian_kde
        >>> kde = gaussian_kde(jnp.array([0.0, 1.0, 3.0]))
        >>> kde.evaluate(jnp.array([1.0])).round(4)
        Array([0.2149], dtype=float32)
        """
        return jnp.exp(self.logpdf(points))

    def __call__(self, points: Any) -> Any:
        """The density at `points`; see `evaluate`."""
        return self.evaluate(points)

    def pdf(self, x: Any) -> Any:
        """The density at points; as `evaluate`.

        x: [dimensions, m], or [m] in one dimension.

        >>> from numjet import numpy as jnp
        >>> from numjet.scipy.stats import gaussian_kde
        >>> kde = gaussian_kde(jnp.array([0.0, 1.0, 3.0]))
        >>> kde.pdf(jnp.array([1.0])).round(4)
        Array([0.2149], dtype=float32)
        """
        return self.evaluate(x)

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density at points, without underflow.

        x: [dimensions, m], or [m] in one dimension. Result: [m].

        >>> from numjet import numpy as jnp
        >>> from numjet.scipy.stats import gaussian_kde
        >>> kde = gaussian_kde(jnp.array([0.0, 1.0, 3.0]))
        >>> kde.logpdf(jnp.array([1.0])).round(4)
        Array([-1.5376], dtype=float32)
        """
        factor = jnp.linalg.cholesky(self.covariance)
        terms = self._log_terms(self.dataset, factor, self._points(x))
        return special.logsumexp(terms, axis=0, b=self.weights[:, None])

    # ---------------------------------------------------------------- integrals
    def integrate_gaussian(self, mean: Any, cov: Any) -> Any:
        """The integral of the density times that of a normal distribution.

        mean: [dimensions]; cov: [dimensions, dimensions] (ValueError for others). Result: a scalar.

        >>> from numjet import numpy as jnp
        >>> from numjet.scipy.stats import gaussian_kde
        >>> kde = gaussian_kde(jnp.array([0.0, 1.0, 3.0]))
        >>> kde.integrate_gaussian(0.0, 1.0).round(4)
        Array(0.1668, dtype=float32)
        """
        mean = jnp.atleast_1d(jnp.squeeze(jnp.asarray(mean)))
        cov = jnp.atleast_2d(jnp.asarray(cov))
        if mean.shape != (self.d,):
            raise ValueError(f"gaussian_kde: mean does not have dimension {self.d}.")
        if cov.shape != (self.d, self.d):
            raise ValueError(f"gaussian_kde: covariance does not have dimension {self.d}.")
        factor = jnp.linalg.cholesky(self.covariance + cov)
        mean = mean.astype(self.dataset.dtype)
        terms = self._log_terms(self.dataset, factor, mean[:, None])[:, 0]
        return jnp.sum(jnp.exp(terms) * self.weights)

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """The probability between two numbers, of a density of one dimension.

        low, high: scalars (ValueError for others, and for more dimensions).

        >>> from numjet import numpy as jnp
        >>> from numjet.scipy.stats import gaussian_kde
        >>> kde = gaussian_kde(jnp.array([0.0, 1.0, 3.0]))
        >>> kde.integrate_box_1d(-jnp.inf, 1.0).round(4)
        Array(0.448, dtype=float32)
        """
        if self.d != 1:
            raise ValueError("gaussian_kde: integrate_box_1d() only handles 1D pdfs.")
        if jnp.ndim(low) or jnp.ndim(high):
            raise ValueError("gaussian_kde: the limits of integration must be scalars.")
        width = jnp.sqrt(self.covariance[0, 0])
        lower, upper = ((end - self.dataset[0]) / width for end in (low, high))
        return jnp.sum(self.weights * (special.ndtr(upper) - special.ndtr(lower)))

    def integrate_kde(self, other: gaussian_kde) -> Any:
        """The integral of the product of two such densities.

        other: a gaussian_kde of as many dimensions (ValueError).

        >>> from numjet import numpy as jnp
        >>> from numjet.scipy.stats import gaussian_kde
        >>> kde = gaussian_kde(jnp.array([0.0, 1.0, 3.0]))
        >>> kde.integrate_kde(kde).round(4)
        Array(0.1577, dtype=float32)
        """
        if other.d != self.d:
            raise ValueError("gaussian_kde: KDEs are not the same dimensionality.")
        factor = jnp.linalg.cholesky(self.covariance + other.covariance)
        terms = jnp.exp(self._log_terms(self.dataset, factor, other.dataset))
        return self.weights @ terms @ other.weights

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Any:
        """Not there: raises NotImplementedError; `integrate_box_1d` integrates over intervals.

        low_bounds, high_bounds, maxpts: what SciPy's takes.

        >>> from numjet import numpy as jnp
        >>> from numjet.scipy.stats import gaussian_kde
        >>> kde = gaussian_kde(jnp.array([0.0, 1.0, 3.0]))
        >>> kde.integrate_box([0.0], [1.0])  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
            ...
        NotImplementedError: ...
        """
        raise NotImplementedError(
            "gaussian_kde: only 1D box integrations are supported; use `integrate_box_1d`."
        )

    def set_bandwidth(self, bw_method: Any = None) -> Any:
        """Not there: raises NotImplementedError; pass bw_method to the class.

        bw_method: what SciPy's takes.

        >>> from numjet import numpy as jnp
        >>> from numjet.scipy.stats import gaussian_kde
        >>> kde = gaussian_kde(jnp.array([0.0, 1.0, 3.0]))
        >>> kde.set_bandwidth(0.5)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
            ...
        NotImplementedError: ...
        """
        raise NotImplementedError(
            "gaussian_kde: dynamically changing the bandwidth method is not supported; make "
            "another one with bw_method."
        )

    def resample(self, key: Any, shape: tuple[int, ...] = ()) -> Any:
        """Random values with this density.

        key: a PRNG key. shape: how many. Result: [dimensions, *shape].

        >>> import numjet as nj, numjet.numpy as jnp
        >>> from numjet.scipy.stats import gaussian_kde
        >>> kde = gaussian_kde(jnp.array([0.0, 1.0, 3.0]))
        >>> kde.resample(nj.random.key(0), (2,)).shape
        (1, 2)
        """
        which, how = random.split(key)
        chosen = random.choice(which, self.n, shape, p=self.weights)
        zero = jnp.zeros(self.d, self.dataset.dtype)
        moved = random.multivariate_normal(
            how, zero, self.covariance, shape=tuple(shape), dtype=self.dataset.dtype
        )
        return self.dataset[:, chosen] + jnp.moveaxis(moved, -1, 0)


__all__ = ["gaussian_kde"]
