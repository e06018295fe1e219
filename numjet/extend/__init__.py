"""Building blocks for libraries: primitives, jaxprs and traces (`extend.core`), wrapped functions
(`extend.linear_util`), generators (`extend.random`), and what else `jax.extend` has."""
import importlib as _importlib

_MODULES = (
    "backend", "core", "linear_util", "lowering", "mlir", "pallas", "random", "sharding",
    "source_info_util", "xla",
)  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return _importlib.import_module(f"numjet.extend.{name}")
    raise AttributeError(f"module 'numjet.extend' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_MODULES)
