"""What compiled programs need while they run: memory, threads, BLAS and LAPACK, queues.

For: the compiler's executables and the layers above. Importing it makes the symbols
`nj_parallel_for`, `nj_pool_…`, `nj_program_…`, `nj_lanes_…`, `nj_blas_…` and `nj_lapack_…`
known to the linker; they cost nothing until an object refers to them.
"""

import functools
from collections.abc import Callable

from numjet.cpu import host
from numjet.cpu.link import link
from numjet.cpu.runtime import blas, build, lapack, programs, threads
from numjet.cpu.runtime.events import Pending, Queue
from numjet.cpu.runtime.memory import allocate, empty, maker, release

__all__ = [
    "Pending", "Queue", "allocate", "blas", "compile_ahead", "empty", "lapack", "maker", "programs",
    "release", "threads",
]


def _parallel_for(name: str) -> int:
    # From the first parallel program on, NumPy's products must not fight our workers for cores.
    address = threads.parallel_for_address()
    if threads.num_threads() > 1:
        blas.adopt_numpy()
    return address


link.provide("nj_parallel_for", _parallel_for)


def compile_ahead() -> list[Callable[[], None]]:
    """Pieces of work, for any thread, after which the runtime's own code is in the cache."""

    # The longest first.
    threaded = host.has_threads()
    pool = "functions" if threaded else "functions_without"
    pieces: list[Callable[[], None]] = [
        functools.partial(build.compile, "threads", pool),
        functools.partial(build.compile, "programs"),
    ]
    if threaded and threads.num_threads() > 1:
        pieces.append(functools.partial(build.compile, "blas", quick=True))
    return pieces
