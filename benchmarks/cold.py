"""One measurement in a fresh process: python cold.py PACKAGE WHAT, prints seconds.

WHAT is import_alone, import_first (and a first operation), or compile_NAME: trace, lower and
compile a program of models.py, with the package imported and the arguments made before the clock
starts.
"""

import sys
import time

package, what = sys.argv[1:]
start = time.perf_counter()
if what.startswith("import"):
    if package == "numjet":
        import numjet  # noqa: F401
        import numjet.numpy as np
    else:
        import jax  # noqa: F401
        import jax.numpy as np
    if what == "import_first":
        (np.ones(10) + 1).block_until_ready()
else:
    import models
    import peers

    sys.setrecursionlimit(20_000)
    space = peers.space(package)
    function, arguments = models.program(what.removeprefix("compile_"), space)
    arguments = peers.convert(arguments, space.np.asarray)
    space.block(arguments)
    start = time.perf_counter()
    space.jit(function).lower(*arguments).compile()
print(time.perf_counter() - start)
