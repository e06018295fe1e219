"""Memory, in bytes, each figure from fresh processes (see ../memory.py)."""

from registry import row

# Nothing, but for a few pages that the allocators of Python and C may add at any time.
NOTHING = {"bytes": 1 << 20}


def _row(name: str, title: str, bars: dict, peers: tuple = ("numjet", "jax")) -> None:
    row(
        f"memory_{name}",
        title,
        "memory",
        array=None,
        bars=bars,
        cold=name,
        unit="bytes",
        only=peers,
        repeats=3,
    )


_row("import", "resident after import and a first operation", {"jax": 1.0})
_row("planned", "transformer step, results and temporaries by memory_analysis()", {"jax": 1.0})
_row(
    "step",
    "transformer step, rise of the resident size",
    {"jax": 1.0, "row:memory_planned": 1.1},
)
_row("flat", "left behind by 10,000 steps of an MLP", NOTHING)
_row("donated", "x.at[3].set(1) and p - rate·g, 64 MB donated: rise", NOTHING)
_row("donated_step", "transformer step, parameters donated: rise after the first", NOTHING)
_row("disk", "most in a disk cache of 4 MB that 3 processes fill", {"bytes": 4 << 20}, ("numjet",))
