"""Docstrings are contracts: every public function has a summary, its parameters and an example.

A hole is a public function whose docstring has no summary line, does not mention one of its
parameters (as a word), or has no example (`>>>`), which tests/test_docs.py runs. Classes need a
summary of their own.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
from types import ModuleType
from typing import Any

import pytest

import numjet
from numjet.core.array import ArrayImpl
from numjet.numpy import ufunc
from numjet.numpy.at import IndexUpdateRef
from numjet.scipy.spatial.transform import Rotation

PUBLIC = (
    "numjet numjet.ad_checkpoint numjet.api_util numjet.checkpoints numjet.custom_batching "
    "numjet.custom_derivatives numjet.debug numjet.distributed numjet.dlpack numjet.dtypes "
    "numjet.errors numjet.example_libraries.optimizers numjet.example_libraries.stax "
    "numjet.experimental.checkify numjet.experimental.hijax numjet.experimental.jet "
    "numjet.experimental.layout numjet.experimental.mesh_utils "
    "numjet.experimental.multihost_utils numjet.experimental.ode numjet.as_jax.beside "
    "numjet.experimental.pallas numjet.experimental.pallas.tpu "
    "numjet.experimental.pallas.triton numjet.experimental.pjit "
    "numjet.experimental.sparse numjet.experimental.sparse.linalg "
    "numjet.experimental.sparse.util numjet.export numjet.extend.backend "
    "numjet.extend.core numjet.extend.core.primitives numjet.extend.jax_core "
    "numjet.extend.linear_util numjet.extend.mlir numjet.extend.pallas numjet.extend.primitive "
    "numjet.extend.random numjet.extend.source_info_util numjet.extend.traces numjet.extend.types "
    "numjet.extend.xla numjet.ffi numjet.flatten_util numjet.image numjet.interpreters.ad "
    "numjet.interpreters.batching numjet.interpreters.mlir numjet.interpreters.partial_eval "
    "numjet.interpreters.xla numjet.lax numjet.lax.linalg numjet.monitoring numjet.nn "
    "numjet.nn.initializers numjet.numpy numjet.numpy.fft numjet.numpy.linalg numjet.profiler "
    "numjet.random numjet.ref numjet.scipy.cluster.vq numjet.scipy.fft numjet.scipy.integrate "
    "numjet.scipy.interpolate numjet.scipy.linalg numjet.scipy.ndimage numjet.scipy.optimize "
    "numjet.scipy.signal numjet.scipy.sparse.linalg numjet.scipy.spatial.transform "
    "numjet.scipy.special numjet.scipy.stats numjet.sharding numjet.stages numjet.test_util "
    "numjet.tree numjet.tree_util numjet.typing"
).split()
# A module each.
PUBLIC += [
    f"numjet.scipy.stats.{name}"
    for name in importlib.import_module("numjet.scipy.stats")._DISTRIBUTIONS
]


def public(module: ModuleType) -> dict[str, Any]:
    """The public callables of a module, without those that are other libraries' own."""
    listed = getattr(module, "__all__", None)
    found = {}
    for name in listed or dir(module):
        value = getattr(module, name)
        home = str(getattr(value, "__module__", ""))
        if name.startswith("_") or inspect.ismodule(value) or not callable(value):
            continue
        if isinstance(value, enum.Enum):  # its class has the docstring
            continue
        # What a single file without a list of its names imports is not its own.
        own = listed is not None or hasattr(module, "__path__") or home == module.__name__
        if home.startswith("numjet") and (own or module.__name__ == "numjet.lax.linalg"):
            found[name] = value
    return found


def missing(name: str, value: Any) -> list[str]:
    """What a docstring lacks."""
    text = inspect.getdoc(value) or ""
    if isinstance(value, type):
        # Named tuples and records get "Name(field, ...)" from Python, enumerations a general text.
        made = text.startswith(f"{value.__name__}(") or text == inspect.getdoc(enum.Enum)
        return [] if text and not made else ["summary"]
    found = [] if text.split("\n\n")[0].rstrip().endswith((".", ":", ")", ";")) else ["summary"]
    told = re.sub(r"^ *(>>>|\.\.\.).*$", "", text, flags=re.M)  # an example explains nothing
    for parameter in inspect.signature(value).parameters:
        if not parameter.startswith("_") and not re.search(rf"\b{parameter}\b", told):
            found.append(parameter)
    return found + ([] if ">>>" in text else ["example"])


@pytest.mark.parametrize("name", PUBLIC)
def test_public_docstrings_have_no_holes(name: str) -> None:
    module = importlib.import_module(name)
    holes = {}
    for public_name, value in public(module).items():
        lacks = missing(public_name, value)
        if lacks:
            holes[public_name] = " ".join(lacks)
    lines = "\n".join(f"  {key}: {value}" for key, value in holes.items())
    assert not holes, f"{name}:\n{lines}"


@pytest.mark.parametrize("kind", [numjet.Array, ArrayImpl, IndexUpdateRef, ufunc, Rotation])
def test_methods_have_no_holes(kind: type) -> None:
    holes = {}
    for name in dir(kind):
        value = inspect.getattr_static(kind, name)
        if name.startswith("_") or inspect.ismemberdescriptor(value):
            continue
        if inspect.isfunction(value):
            # Functions of numjet.numpy are methods too: the array is their first parameter.
            lacks = missing(name, value)
            first = next(iter(inspect.signature(value).parameters))
            holes[name] = [what for what in lacks if what != first]
        else:
            holes[name] = [] if inspect.getdoc(value) else ["summary"]
    lines = [f"  {name}: {' '.join(lacks)}" for name, lacks in holes.items() if lacks]
    assert not lines, f"methods of {kind.__name__}:\n" + "\n".join(lines)
