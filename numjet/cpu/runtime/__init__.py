"""What compiled programs need while they run: memory, threads, BLAS and LAPACK, queues.

For: the compiler's executables and the layers above. Importing it makes the symbols
`nj_parallel_for`, `nj_pool_together`, `nj_program_…`, `nj_lanes_…`, `nj_blas_…` and `nj_lapack_…`
known to the linker; they cost nothing until an object refers to them.
"""

from collections.abc import Callable

from numjet.cpu import link
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

    def work(text: Callable[[], str | None]) -> Callable[[], None]:
        def compile() -> None:
            module = text()
            if module is not None:
                link.library_code(module)

        return compile

    # The longest first: LLVM takes 35, 20 and 15 ms.
    texts = [threads.pool_ir, programs.programs_ir]
    if threads.num_threads() > 1:
        texts.append(blas.adapter_ir)
    return [work(text) for text in texts]
