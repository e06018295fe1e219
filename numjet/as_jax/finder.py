"""The finder that answers `import jax…` and `import jaxlib…`, and the modules it makes.

`activate` puts it first in `sys.meta_path`. A module under JAX's name is an `AliasModule`: it has
JAX's `__name__`, and takes each attribute, when it is first asked for, from the module of ours that
namespaces.py names, or from the rows of private.py. Names with an underscore, and ours that JAX
does not have a place for, do not show. The finder also answers for the distributions `jax` and
`jaxlib`, so that `importlib.metadata.version("jax")` works without an installation.

Called by `numjet.as_jax` alone.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any

from numjet.as_jax import environment, namespaces, private
from numjet.base.class_names import home, move
from numjet.core import hooks
from numjet.core.array import Array
from numjet.core.trace import Tracer

# The version of JAX whose names and behaviour these are.
JAX_VERSION = "0.10.2"


# Modules of ours whose classes still say so.
_UNSHOWN = set(namespaces.SHOWN)
_SINCE_ML_DTYPES_0_6 = ("int1", "uint1")
# The dictionary of a module as it is.
_dictionary = vars(ModuleType)["__dict__"].__get__


class AliasModule(ModuleType):
    """A module with JAX's name and the attributes of one of ours."""

    # Of the class, so that a module that is still being made has them too.
    _numjet_whole = False
    _numjet_source: ModuleType | None = None
    _numjet_rows: dict[str, str] = {}
    _numjet_children: frozenset[str] = frozenset()

    def __getattr__(self, name: str) -> Any:
        found = self._numjet_find(name)
        told = self._numjet_deprecated()
        if name in told:
            _warn(f"{self.__name__}.{name}{told[name]}")
        elif name != "__all__":
            _dictionary(self)[name] = found
            _show_function(found, self.__name__, name)
        return found

    def __reduce__(self) -> tuple:
        """By name: those who pickle functions with the modules that these use (cloudpickle) know
        modules of Python's own type, and ask others."""
        return importlib.import_module, (self.__name__,)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """What `vars(module)` shows: every public name that is no module, with those modules that
        were imported. Libraries take functions from there to wrap them (scico)."""
        names = _dictionary(self)
        if not self._numjet_whole and "_numjet_source" in names:
            names["_numjet_whole"] = True  # first: what is asked for below may import this module
            for name in self.__dir__():
                if name not in names and name not in self._numjet_children:
                    getattr(self, name)
        return names

    def _numjet_find(self, name: str) -> Any:
        own = self.__name__
        if name == "__all__":
            return [public for public in self.__dir__() if not public.startswith("_")]
        if name in self._numjet_rows:
            return resolve(self._numjet_rows[name])
        if name in self._numjet_children:
            return importlib.import_module(f"{own}.{name}")
        hidden = name.startswith("_") or name in namespaces.HIDDEN.get(own, ())
        hidden = hidden or self._numjet_helps(name)
        if self._numjet_source is not None and not hidden:
            found = getattr(self._numjet_source, name, None)
            if not isinstance(found, ModuleType):
                if found is not None or hasattr(self._numjet_source, name):
                    return found
            elif namespaces.known(f"{own}.{name}"):
                return importlib.import_module(f"{own}.{name}")
        raise AttributeError(self._numjet_missing(name))

    def _numjet_helps(self, name: str) -> bool:
        """Whether our module has a name for its own use: one that it imports and does not list."""
        names = {} if self._numjet_source is None else vars(self._numjet_source)
        value = names.get(name)
        kept = namespaces.KEPT.get(self.__name__, ())
        if name not in names or name in kept or isinstance(value, ModuleType):
            return False
        if "__all__" in names:
            return name not in names["__all__"]
        home = getattr(value, "__module__", None) or type(value).__module__
        return home in ("__future__", "collections.abc", "dataclasses", "types", "typing")

    def _numjet_shows(self, name: str) -> bool:
        """Whether a name of our module is no module, or one that JAX has too."""
        found = vars(self._numjet_source).get(name)
        return not isinstance(found, ModuleType) or namespaces.known(f"{self.__name__}.{name}")

    def _numjet_deprecated(self) -> dict[str, str]:
        """The names that warn when they are read, with the end of what the warning says."""
        if self.__name__ not in namespaces.DEPRECATED_IN:
            return {}
        from numjet.as_jax.removed import DEPRECATED  # of few modules

        return DEPRECATED[self.__name__]

    def _numjet_missing(self, name: str) -> str:
        own = self.__name__
        if name.startswith("__"):
            return f"module {own!r} has no attribute {name!r}"
        if own.startswith(private.ROOTS) or name.startswith("_"):
            return (
                f"module {own!r} has no attribute {name!r}: it is private to JAX, and numjet has "
                "only the private names that published libraries import (numjet/as_jax/private.py "
                "lists them). Use the public function of JAX instead."
            )
        from numjet.as_jax.removed import instead  # when a name is missing alone

        shown = f"module {own!r} has no attribute {name!r} (numjet under JAX's name)"
        return shown + instead(own, name)

    def __dir__(self) -> list[str]:
        names = {*_dictionary(self), *self._numjet_rows, *self._numjet_children}
        if self._numjet_source is not None:
            hidden = namespaces.HIDDEN.get(self.__name__, ())
            public = getattr(self._numjet_source, "__all__", dir(self._numjet_source))
            names.update(
                name
                for name in public
                if not name.startswith("_") and name not in hidden
                and not self._numjet_helps(name) and self._numjet_shows(name)
            )
        names.difference_update(self._numjet_deprecated())
        return sorted(name for name in names if not name.startswith("_numjet"))


def _warn(text: str) -> None:
    """Warn who reads the name. `from module import name` asks a package twice: first whether a
    module has the name."""
    if sys._getframe(2).f_code.co_name == "_handle_fromlist":
        return
    from numjet.experimental.former import warn_importer  # which loads others beside it

    warn_importer(text)


def resolve(target: str) -> Any:
    """The object that `module:attribute.path` names, or the module without a colon."""
    module, _, path = target.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split(".") if path else ():
        found = getattr(found, part)
    return found


class Loader:
    """Makes the `AliasModule` of a name."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return AliasModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        if name == "jax":
            environment.read_flags()
            hooks.text_dialect = lambda: "stablehlo"
        source = namespaces.source(name)
        scope = _dictionary(module)
        scope["_numjet_rows"] = {**namespaces.names(name), **private.names(name)}
        scope["_numjet_children"] = namespaces.children(name) | private.children(name)
        scope["_numjet_source"] = importlib.import_module(source) if source else None
        if scope["_numjet_source"] is not None:
            scope["__doc__"] = scope["_numjet_source"].__doc__
        scope["__file__"] = getattr(scope["_numjet_source"], "__file__", None) or __file__
        _show_classes()
        if name == "jax.numpy":
            importlib.import_module("numjet.numpy.array_methods").NAMESPACE[0] = name
        if name in ("jax", "jaxlib", "jax.version", "jaxlib.version"):
            scope["__version__"] = JAX_VERSION
            scope["__version_info__"] = tuple(int(part) for part in JAX_VERSION.split("."))


class Finder:
    """Answers for `jax`, `jaxlib` and what is below them."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        root = fullname.partition(".")[0]
        if root not in ("jax", "jaxlib"):
            return None
        if not (namespaces.known(fullname) or private.known(fullname)):
            raise ModuleNotFoundError(_no_module(fullname), name=fullname)
        return ModuleSpec(fullname, Loader(), is_package=True)  # type: ignore[arg-type]

    def find_distributions(self, context: Any = None) -> Iterator[Any]:
        """The distributions `jax` and `jaxlib`, for `importlib.metadata`, which calls this."""
        # Loaded here: it costs as much as a sixth of numjet's import, and who asks has it.
        from numjet.as_jax.metadata import AliasDistribution, installed

        wanted = getattr(context, "name", None)
        for name in ("jax", "jaxlib"):
            if (wanted is None or wanted.lower() == name) and installed(name) is None:
                yield AliasDistribution(name, JAX_VERSION)

    def invalidate_caches(self) -> None:
        """Nothing is remembered that a new file could change."""


def _no_module(name: str) -> str:
    if name.startswith(private.ROOTS):
        return (
            f"No module named {name!r}: it is private to JAX, and numjet has only the private "
            "modules that published libraries import (numjet/as_jax/private.py lists them)."
        )
    from numjet.as_jax.removed import instead  # when a module is missing alone

    return (
        f"No module named {name!r}: numjet has no such module"
        + (instead(name) or " (docs/limits.md says what is not there)") + "."
    )  # fmt: skip


def activate() -> None:
    """Let `import jax` be numjet from now on. Does nothing the second time.

    Raises RuntimeError when the real JAX is loaded already: its arrays and ours do not mix.
    """
    if any(isinstance(entry, Finder) for entry in sys.meta_path):
        return
    loaded = sys.modules.get("jax")
    if loaded is not None and hasattr(loaded, "__version_info__"):
        raise RuntimeError(
            "numjet.as_jax: the real JAX is imported already in this process. Put "
            "`import numjet.as_jax` before every other import, or run the program as "
            "`python -m numjet.as_jax script.py`."
        )
    sys.meta_path.insert(0, Finder())
    # What is logged reaches the handlers of JAX's logger, at its level.
    logging.getLogger("numjet").parent = logging.getLogger("jax")
    before = {
        name: sys.modules.pop(name)
        for name in list(sys.modules) if name.partition(".")[0] in ("jax", "jaxlib")
    }  # fmt: skip
    for name in ("jax", "jaxlib"):
        if name in before:
            _stay_lazy(before[name], importlib.import_module(name))
    _name_classes()


def _stay_lazy(stub: ModuleType, alias: ModuleType) -> None:
    """Let a module that a LazyLoader of importlib loads stay in its place, as that demands, and
    take its attributes from `alias`."""
    if getattr(_dictionary(stub).get("__spec__"), "loader_state", None) is None:
        return
    shown = {k: v for k, v in _dictionary(alias).items() if not k.startswith(("__", "_numjet"))}
    _dictionary(stub).update(
        shown, __getattr__=lambda name: getattr(alias, name), __dir__=lambda: dir(alias),
        __doc__=alias.__doc__, __file__=alias.__file__,
    )  # fmt: skip
    sys.modules[alias.__name__] = stub


def _show_classes() -> None:
    """Give the classes of namespaces.SHOWN JAX's modules, where ours are loaded."""
    for ours in [name for name in _UNSHOWN if name in sys.modules]:
        rows = [(module, n) for module, names in namespaces.SHOWN[ours] for n in names.split()]
        found: list[tuple[Any, str]] = [
            (getattr(sys.modules[ours], n, None), module) for module, n in rows
            if n not in _SINCE_ML_DTYPES_0_6 or hasattr(sys.modules[ours], n)
        ]  # fmt: skip
        if all([kind is not None for kind, _ in found]):  # else it is being loaded
            _UNSHOWN.remove(ours)
            for kind, module in found:
                move(kind, module)


def _show_function(found: Any, module: str, name: str) -> None:
    """Give a function of ours the module of JAX that it was first asked of, by its own name there:
    `help` says it, and libraries (treescope) know a library's functions by it."""
    if type(found) is not FunctionType or found.__qualname__ != name:
        return
    public = not module.startswith(private.ROOTS)
    if public and found.__module__.startswith("numjet.") and home(found) is None:
        move(found, module)


def _name_classes() -> None:
    """Give the classes of arrays JAX's modules: libraries (autoray, PennyLane, opt_einsum) tell by
    the first word of `type(x).__module__` whose array x is."""
    kinds = [Array]
    for kind in kinds:
        if kind.__module__.startswith("numjet."):
            tracer = issubclass(kind, Tracer)
            below = "jax._src.core" if tracer else "jaxlib._jax"
            move(kind, "jax" if kind is Array else below)
        kinds += kind.__subclasses__()
