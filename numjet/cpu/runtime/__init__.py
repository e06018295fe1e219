"""What compiled programs need while they run: memory, threads, BLAS and LAPACK, events.

For: the compiler's executables and the layers above. Importing it makes the symbols
`nj_parallel_for`, `nj_pool_together` known to the linker; they cost nothing until an object
refers to them.
"""

from numjet.cpu.runtime import threads
from numjet.cpu.runtime.memory import empty

__all__ = ["empty", "threads"]
