"""Import, first operation and compilation, each in fresh processes (see cold.py).

The compile rows start the clock after x + 1 of 10⁶ numbers was compiled, for both packages: what
loading the compiler costs is in import_jit.
"""

from registry import row

_IMPORTS = (
    ("import_alone", "import the package", {"seconds": 0.3, "jax": 1.0}),
    ("import_first", "import and a first operation", {"jax": 0.35}),
    ("import_jit", "import, compile with nothing cached and run a chain", {"jax": 1.0}),
)
for name, title, bars in _IMPORTS:
    row(name, title, "import", array=None, bars=bars, cold=name, only=("numjet", "jax"), repeats=5)

_PROGRAMS = (
    ("chain", "tanh(exp(-x²)+sin x)", 0.2),
    ("mlp", "MLP value_and_grad", 0.25),
    ("transformer", "6-layer transformer value_and_grad", 0.2),
    ("deep", "200 × tanh(32×32 product)", 0.05),
)
for name, title, bar in _PROGRAMS:
    row(
        f"compile_{name}",
        f"trace, lower, compile: {title}",
        "compile",
        array=None,
        bars={"jax": bar},
        cold=f"compile_{name}",
        only=("numjet", "jax"),
        repeats=3,
    )
for name, title, _ in _PROGRAMS:
    row(
        f"second_{name}",
        f"the same in a second process: {title}",
        "compile",
        array=None,
        bars={f"row:compile_{name}": 0.1},
        cold=f"compile_{name}",
        only=("numjet",),
        repeats=3,
    )
