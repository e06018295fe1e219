"""Addresses of LAPACK routines for compiled programs: the symbols `nj_lapack_dpotrf`, ….

For: linked programs, as `blas`, whose conventions hold here too: Fortran's interface, 32-bit
integers. What would break it: a routine that SciPy's library does not export.
"""

from __future__ import annotations

from numjet.cpu.link import link
from numjet.cpu.runtime import blas


def address(name: str) -> int:
    """Address of LAPACK routine `name` ("spotrf", "dgetrf", "zgeev", …) with 32-bit integers."""
    return blas.routine(name, "cython_lapack")


link.provide("nj_lapack_", lambda symbol: address(symbol.removeprefix("nj_lapack_")))
