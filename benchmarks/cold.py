"""One measurement in a fresh process: python cold.py PACKAGE WHAT, prints seconds.

WHAT is import_alone, import_first (and a first operation), import_jit (import, compile and run one
chain), or compile_NAME: trace, lower and compile a program of models.py. For the last the package
is imported, the arguments are made and x + 1 is compiled and run before the clock starts, so it
measures compiling and not starting.
"""

import sys
import time

package, what = sys.argv[1:]
start = time.perf_counter()
if what.startswith("import"):
    if package == "numjet":
        import numjet
        import numjet.numpy as np
    else:
        import jax
        import jax.numpy as np
    if what == "import_first":
        (np.ones(10) + 1).block_until_ready()
    if what == "import_jit":
        jit = numjet.jit if package == "numjet" else jax.jit
        run = jit(lambda x: np.tanh(np.exp(-x * x) + np.sin(x)))
        run(np.ones(10**6, np.float32)).block_until_ready()
else:
    import models
    import peers

    sys.setrecursionlimit(20_000)
    space = peers.space(package)
    function, arguments = models.program(what.removeprefix("compile_"), space)
    arguments = peers.convert(arguments, space.np.asarray)
    space.block(arguments)
    space.jit(lambda x: x + 1)(space.np.ones(10**6)).block_until_ready()
    start = time.perf_counter()
    space.jit(function).lower(*arguments).compile()
print(time.perf_counter() - start)
