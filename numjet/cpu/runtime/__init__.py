"""What compiled programs need while they run: memory, threads, BLAS and LAPACK, queues.

For: the compiler's executables and the layers above. Importing it makes the symbols
`nj_parallel_for`, `nj_pool_together`, `nj_program_…`, `nj_lanes_…`, `nj_blas_…` and `nj_lapack_…`
known to the linker; they cost nothing until an object refers to them.
"""

from numjet.cpu import link
from numjet.cpu.runtime import blas, lapack, programs, threads
from numjet.cpu.runtime.events import Pending, Queue
from numjet.cpu.runtime.memory import allocate, empty, maker, release

__all__ = [
    "Pending", "Queue", "allocate", "blas", "empty", "lapack", "maker", "programs", "release",
    "threads",
]


def _parallel_for(name: str) -> int:
    # From the first parallel program on, NumPy's products must not fight our workers for cores.
    address = threads.parallel_for_address()
    if threads.num_threads() > 1:
        blas.adopt_numpy()
    return address


link.provide("nj_parallel_for", _parallel_for)
