"""Everything whose libraries code may call: importing it makes their symbols known to the linker.

For processes that find a program in the cache and not the libraries it calls (`backend`). What
would break it: a module that calls `libraries.provide` and is not here.
"""

from numjet.cpu.kernels import fft
from numjet.cpu.kernels.linalg import lapack, side_by_side
from numjet.cpu.kernels.products import gemm, matvec, vecmat
from numjet.cpu.kernels.sorting import shares as sort_shares

__all__ = ["fft", "gemm", "lapack", "matvec", "side_by_side", "sort_shares", "vecmat"]
