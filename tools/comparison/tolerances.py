"""How far values may differ, by family of function, each with the reason.

A tolerance is (relative, absolute): relative to each element, absolute to the largest element of
the result. Both are multiples of the dtype's epsilon.
"""

from __future__ import annotations

from comparison.cases import Case

EPSILON = {
    "float32": 1.2e-7,
    "float64": 2.3e-16,
    "complex64": 1.2e-7,
    "complex128": 2.3e-16,
    "float16": 9.8e-4,
    "bfloat16": 7.9e-3,
}

# (beginning of the name or the whole name): relative, absolute, why. The first that matches counts.
RULES: tuple[tuple[str, float, float, str], ...] = (
    ("numpy.linalg.", 200, 200, "LAPACK's rounding, which conditioning multiplies"),
    ("lax.linalg.", 200, 200, "LAPACK's rounding, which conditioning multiplies"),
    ("scipy.linalg.", 200, 200, "LAPACK's rounding, which conditioning multiplies"),
    ("numpy.polyfit", 1000, 200, "LAPACK's rounding, which conditioning multiplies"),
    ("numpy.fft.", 20, 20, "sums in another order"),
    ("scipy.fft.", 20, 20, "sums in another order"),
    ("scipy.stats.", 100, 2, "differences of special functions"),
    ("scipy.special.", 100, 2, "other expansions, each within some tens of ulp of the truth"),
    *[(f"lax.{name}", 100, 2, "other expansions, each within some tens of ulp of the truth")
      for name in ("igamma", "betainc", "zeta", "polygamma", "bessel", "random_gamma_grad",
                   "lgamma", "digamma", "erf")],
    ("numpy.", 16, 0, "elementary functions are within 2 ulp here and 4 in XLA"),
    ("lax.", 16, 0, "elementary functions are within 2 ulp here and 4 in XLA"),
    ("", 30, 4, "several roundings"),
)
# Parts of the names of functions that add up many terms, in another order than XLA's.
SUMS = tuple("""
    sum mean var std prod dot average trapezoid cov corr conv einsum matmul vec inner poly space
    norm detrend minimize bartlett blackman hamming hanning random""".split())
GRADIENT = 4  # gradients are sums of products of what the function itself rounds


# Where results are differences of equals: they may differ by these multiples of epsilon, whatever
# their size, since the arguments are about 1 to 10.
FLOORS = {
    "scipy.signal.detrend": 30,
    "numpy.blackman": 1,
    "scipy.stats.dirichlet.logpdf": 30,  # logarithms of gamma functions add up to about 0
    "scipy.stats.beta.logpdf": 30,      # the same
    "scipy.optimize.minimize": 30,      # iterates end at different roundings of the minimum
}
# The same of gradients: 1 - tanh², and what does not change when its operand grows.
GRADIENT_FLOORS = {"lax.tanh": 4, "numpy.tanh": 4, "numpy.corrcoef": 16}


def floor(case: Case, phase: str, dtype: str) -> float:
    """What a value may differ by, however small it is."""
    floors = GRADIENT_FLOORS if phase.startswith("grad") else FLOORS
    return floors.get(case.name, FLOORS.get(case.name, 0)) * EPSILON.get(dtype, 0.0)


def tolerance(case: Case, phase: str, dtype: str) -> tuple[float, float]:
    """Relative and absolute tolerance for the values of this phase."""
    epsilon = EPSILON.get(dtype, 0.0)
    relative, absolute = next((r, a) for start, r, a, _ in RULES if case.name.startswith(start))
    if any(word in case.name for word in SUMS):
        relative, absolute = max(relative, 30), max(absolute, 8)
    if phase.startswith("grad"):
        # They pass through the narrowest of the arguments' dtypes.
        narrow = [EPSILON[name] for name in ("float16", "bfloat16") if f"'{name}'" in str(case)]
        epsilon = max(epsilon, *narrow) if narrow else epsilon
        relative, absolute = relative * GRADIENT, max(absolute * GRADIENT, 16)
    return relative * epsilon, absolute * epsilon
