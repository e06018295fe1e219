"""The packages that are compared: where each is installed, how its threads are set, and `Space`,
the names through which one program runs on numjet and on JAX.

Each package has an environment of its own; a missing one is skipped and the results say so.
Imported by the driver (paths, settings) and by the workers (`Space`).
"""

from __future__ import annotations

import importlib
import os
import pathlib
from types import SimpleNamespace
from typing import Any

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Environments in order of preference.
ENVIRONMENTS = {
    "numjet": (".venv",),
    "jax": (".venvs/oracle", ".venvs/jax"),
    "numpy": (".venv",),
    "torch": (".venvs/torch",),
    "numba": (".venvs/numba",),
}
TITLES = {
    "numjet": "numjet",
    "jax": "JAX",
    "numpy": "NumPy",
    "torch": "PyTorch",
    "numba": "Numba",
}
PEERS = ("jax", "numpy", "torch", "numba")
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMJET_NUM_THREADS",
)


def python_of(peer: str) -> str | None:
    """The interpreter of a package's environment, or None where it is not installed."""
    for folder in ENVIRONMENTS[peer]:
        path = ROOT / folder / "bin" / "python"
        if path.exists():
            return str(path)
    return None


def cores() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def settings(threads: int, cache: str) -> dict[str, str]:
    """Environment variables for a worker with so many threads and a disk cache of its own."""
    chosen = dict(os.environ)
    chosen.update({name: str(threads) for name in _THREAD_VARIABLES})
    chosen["JAX_PLATFORMS"] = "cpu"
    chosen["NUMJET_CACHE_DIR"] = cache
    chosen["PYTHONPATH"] = str(ROOT)
    chosen["PYTHONWARNINGS"] = "ignore"
    # Packages that are installed have their byte code; a checkout's is written by the first run.
    chosen.pop("PYTHONDONTWRITEBYTECODE", None)
    if threads == 1:
        # XLA sizes its pool by the cores it may use; the worker is pinned to one as well.
        flags = chosen.get("XLA_FLAGS", "")
        chosen["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    return chosen


def space(peer: str) -> Any:
    """The names of numjet or JAX that the rows' programs use."""
    top = importlib.import_module(peer)
    load = lambda name: importlib.import_module(f"{peer}.{name}")
    return SimpleNamespace(
        top=top,
        np=load("numpy"),
        lax=load("lax"),
        random=load("random"),
        nn=load("nn"),
        jit=top.jit,
        grad=top.grad,
        value_and_grad=top.value_and_grad,
        vmap=top.vmap,
        jvp=top.jvp,
        hessian=top.hessian,
        make_jaxpr=top.make_jaxpr,
        map=load("tree_util").tree_map,
        block=top.block_until_ready,
        x64=lambda on: top.config.update("jax_enable_x64", on),
    )


def convert(tree: Any, function: Any) -> Any:
    """Apply `function` to the NumPy arrays of nested tuples, lists and dictionaries."""
    if isinstance(tree, dict):
        return {key: convert(value, function) for key, value in tree.items()}
    if isinstance(tree, (tuple, list)):
        return type(tree)(convert(value, function) for value in tree)
    return function(tree) if isinstance(tree, np.ndarray) else tree


def leaves(tree: Any) -> list:
    """The leaves of nested tuples, lists and dictionaries (these by sorted keys)."""
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if isinstance(tree, (tuple, list)):
        return [leaf for value in tree for leaf in leaves(value)]
    return [] if tree is None else [tree]
