"""The registers of rules for `extend.core.Primitive`, by transformation: `ad` (derivatives),
`batching` (vmap), `mlir` (lowering), `partial_eval`, `xla`, `pxla`."""
import importlib as _importlib

_MODULES = ("ad", "batching", "mlir", "partial_eval", "pxla", "xla")


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return _importlib.import_module(f"numjet.interpreters.{name}")
    raise AttributeError(f"module 'numjet.interpreters' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_MODULES)
