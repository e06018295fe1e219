"""numjet.scipy: parts of SciPy on numjet's arrays, in JAX's names. Parts load when first used."""

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
