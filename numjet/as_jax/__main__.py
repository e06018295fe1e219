"""`python -m numjet.as_jax`: run a script, module or line with numjet as JAX, or install the alias.

    python -m numjet.as_jax script.py arguments…
    python -m numjet.as_jax -m module arguments…      (for example: -m pytest tests)
    python -m numjet.as_jax -c "code" arguments…
    python -m numjet.as_jax install [--version 0.11.1]
    python -m numjet.as_jax uninstall

A script runs as Python itself would run it: `sys.argv`, `sys.path[0]` and `__main__` are its own.
Python processes that it starts find the alias too, by a folder on `PYTHONPATH` (packages.py).
`--version` is what pip and `importlib.metadata` are told, for libraries that ask for a later JAX.
"""

from __future__ import annotations

import os
import runpy
import sys

from numjet.as_jax import packages


def run(arguments: list[str]) -> None:
    """Run what the command line `arguments` (without the program's name) asks for."""
    first = arguments[0] if arguments else "--help"
    if first in ("-h", "--help"):
        print(__doc__)
    elif first == "install" and len(arguments) == 1:
        print(packages.install())
    elif first == "install" and arguments[1] == "--version" and len(arguments) == 3:
        print(packages.install(arguments[2]))
    elif first == "uninstall" and len(arguments) == 1:
        print(packages.uninstall())
    elif first in ("install", "uninstall") and arguments[1].startswith("-"):
        sys.exit(f"numjet.as_jax: {first} does not know {' '.join(arguments[1:])}. See --help.")
    elif first in ("-m", "-c"):
        if len(arguments) < 2:
            sys.exit(f"numjet.as_jax: option {first} needs an argument. See --help.")
        packages.lend_to_children()
        if first == "-m":
            sys.argv = arguments[1:]
            sys.path[0] = os.getcwd()
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = ["-c", *arguments[2:]]
            sys.path[0] = ""
            exec(compile(arguments[1], "<string>", "exec"), _fresh_main())
    elif first.startswith("-"):
        sys.exit(f"numjet.as_jax: unknown option {first!r}. See --help.")
    else:
        packages.lend_to_children()
        sys.argv = arguments
        if not os.path.isdir(first):
            sys.path[0] = os.path.dirname(os.path.abspath(first))
        runpy.run_path(first, run_name="__main__")


def _fresh_main() -> dict:
    """The namespace of an empty `__main__`, so that code finds itself there."""
    module = type(sys)("__main__")
    sys.modules["__main__"] = module
    return module.__dict__


if __name__ == "__main__":
    run(sys.argv[1:])
