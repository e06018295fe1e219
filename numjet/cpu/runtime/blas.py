"""Addresses of BLAS routines for compiled programs: the symbols `nj_blas_sgemm`, `nj_blas_dgemv`, …

For: linked programs (the linker asks when an object refers to such a symbol) and `lapack`. The
routines have Fortran's interface: every argument a pointer, integers 32 bits, matrices column
by column, a character argument the address of one character. They come from the OpenBLAS
that SciPy brings, opened as a file (2-6 ms; importing scipy.linalg takes 140), else from the
capsules of `scipy.linalg.cython_blas`. What would break it: a routine's job that waits for a
lock held by its caller.

SciPy's OpenBLAS runs on one thread, and kernels cut their work over our pool. NumPy's, which eager
code calls, is made to run on the pool where it can be: its own workers spin for 100 ms after a call
and take the cores from the kernels that follow.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.machinery
import importlib.util
import os
from typing import Any

from numjet.base import config, locks
from numjet.cpu import host
from numjet.cpu.link import link
from numjet.cpu.runtime import build, threads

_lock = locks.lock()


def bundled_library(package: str, stem: str) -> ctypes.CDLL | None:
    """The OpenBLAS that came in the wheel of `package` ("scipy", "numpy"), opened; or None."""
    spec = importlib.machinery.PathFinder.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    root = spec.submodule_search_locations[0]
    for folder in (f"{root}.libs", f"{root}/.dylibs"):
        names = os.listdir(folder) if os.path.isdir(folder) else []
        for name in sorted([x for x in names if x.startswith(f"lib{stem}")]):
            try:
                return ctypes.CDLL(f"{folder}/{name}")
            except OSError:  # another architecture's copy
                continue
    return None


@functools.cache
def _openblas() -> ctypes.CDLL | None:
    library = bundled_library("scipy", "scipy_openblas")
    if library is not None:
        # One thread: kernels cut their work over our pool themselves. On two cores the threads of
        # OpenBLAS, or its jobs on our pool, took LU factors of 300x300 from 0.5 ms to 28, QR
        # factors of 300x200 from 0.5 to 1.2 and singular values of 150x150 from 2.0 to 3.1.
        library.scipy_openblas_set_num_threads(1)
    return library


def adopt(library: ctypes.CDLL, set_callback: str, set_threads: str) -> bool:
    """Make an OpenBLAS run its threads' jobs on our pool; False where it cannot.

    set_callback, set_threads: the names under which the copy exports its two settings. It uses
    at most as many threads as it did (OPENBLAS_NUM_THREADS) and as the pool has.
    """
    if host.symbol_address(set_callback, library) is None or not host.has_threads():
        return False
    most = getattr(library, set_threads.replace("_set_", "_get_"))()

    def limit(_value: int) -> None:
        getattr(library, set_threads)(min(most, threads.num_threads()))

    adapter = build.library("blas", quick=True)
    getattr(library, set_callback)(ctypes.c_void_p(adapter.address("adapter")))
    limit(0)
    config.num_threads.on_change(limit)
    return True


@functools.cache
def adopt_numpy() -> bool:
    """Let NumPy's own OpenBLAS use our pool too; False where it has none or another one.

    Its workers would otherwise spin on the cores our kernels need: on two cores a product of
    256x256 right after a kernel took 15 ms instead of 0.2, and a kernel after a product 0.5 ms
    instead of 0.009.
    """
    library = bundled_library("numpy", "scipy_openblas64_")
    return library is not None and adopt(
        library,
        "scipy_openblas_set_threads_callback_function64_",
        "scipy_openblas_set_num_threads64_",
    )


@functools.cache
def cython_capsules(module: str) -> dict[str, Any]:
    """The C functions of `scipy.linalg.<module>`, loaded without the rest of scipy.linalg."""
    spec = importlib.machinery.PathFinder.find_spec("scipy")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("numjet takes BLAS and LAPACK from SciPy; install it: pip install scipy")
    folder = os.path.join(spec.submodule_search_locations[0], "linalg")
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = os.path.join(folder, module + suffix)
        if os.path.exists(path):
            found = importlib.util.spec_from_file_location(f"scipy.linalg.{module}", path)
            if found is None or found.loader is None:
                break
            loaded = importlib.util.module_from_spec(found)
            found.loader.exec_module(loaded)
            return loaded.__pyx_capi__
    raise ImportError(f"scipy.linalg.{module} is not where it was expected, in {folder}")


def capsule_address(capsule: Any) -> int:
    """The pointer in a PyCapsule, whatever its name."""
    api = ctypes.pythonapi
    name = api.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = api.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, name(capsule))


def routine(name: str, module: str) -> int:
    """Address of Fortran routine `name`; module: the Cython module that has it otherwise."""
    with _lock:
        library = _openblas()
        if library is not None:
            for symbol in (f"scipy_{name}_", f"{name}_"):
                found = host.symbol_address(symbol, library)
                if found is not None:
                    return found
        try:
            return capsule_address(cython_capsules(module)[name])
        except KeyError:
            raise NotImplementedError(
                f"{name}: SciPy's {module} has no such routine; use another one or Host()"
            ) from None


def address(name: str) -> int:
    """Address of BLAS routine `name` ("sgemm", "zgemm", "dgemv", …) with 32-bit integers."""
    return routine(name, "cython_blas")


link.provide("nj_blas_", lambda symbol: address(symbol.removeprefix("nj_blas_")))
