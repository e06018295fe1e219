"""numjet.scipy: parts of SciPy on numjet's arrays, in JAX's names. Parts load when first used.

Arguments, dtypes and derivatives are as in `numjet.numpy`. Functions of elements take no `out`.
SciPy has no `precision` of products, and none of the parameters that are JAX's (`max_squarings`,
`upper_triangular`, `eps`, `max_iterations`, `debug`, `turbo`, `eigvals`, `key`, `solve_method`,
`tol`, the `method` of `polar` and `solve_sylvester`, the `dtype` of `dft`).
"""

import importlib as _importlib

_PARTS = (
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
)


def __getattr__(name: str) -> object:
    if name in _PARTS:
        return _importlib.import_module(f"numjet.scipy.{name}")
    raise AttributeError(f"module 'numjet.scipy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PARTS})
