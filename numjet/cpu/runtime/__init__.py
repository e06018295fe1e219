"""What compiled programs need while they run: memory, threads, BLAS and LAPACK, queues.

For: the compiler's executables and the layers above. Importing it makes the symbols
`nj_parallel_for`, `nj_pool_…`, `nj_program_…`, `nj_lanes_…`, `nj_blas_…` and `nj_lapack_…`
known to the linker; they cost nothing until an object refers to them.
"""

from collections.abc import Callable

from numjet.cpu.link import link
from numjet.cpu.runtime import blas, lapack, programs, threads
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

    def work(text: Callable[[], str | None], quick: bool = False) -> Callable[[], None]:
        def compile() -> None:
            module = text()
            if module is not None:
                link.library_code(module, quick=quick)

        return compile

    # The longest first: LLVM takes 35, 20 and 5 ms.
    pieces = [work(threads.pool_ir), work(programs.programs_ir)]
    if threads.num_threads() > 1:
        pieces.append(work(blas.adapter_ir, quick=True))
    return pieces
