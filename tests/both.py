"""Runs a script under numjet and under JAX and compares what it puts into `out`.

In the script PACKAGE stands for the library's name; `err(f)` is the name of the exception that `f`
raises, or "". Entries whose names begin with "~" are compared to rounding, the others exactly.
"""

from __future__ import annotations

import numpy as np
from oracle import run_in_oracle

_HEAD = """
import numpy as np
import PACKAGE as jax
import PACKAGE.numpy as jnp
from PACKAGE import lax

def err(f):
    try:
        f()
    except Exception as error:
        return type(error).__name__
    return ""
"""


def both(script: str) -> None:
    """Fail with the names of the entries that differ."""
    text = _HEAD + script
    want = run_in_oracle(text.replace("PACKAGE", "jax"))
    scope: dict = {"out": {}}
    exec(compile(text.replace("PACKAGE", "numjet"), "<script>", "exec"), scope)
    got = {name: np.asarray(value) for name, value in scope["out"].items()}
    assert got.keys() == want.keys()
    wrong = []
    for name, value in got.items():
        expected = want[name]
        close = name.startswith("~")
        same = value.shape == expected.shape and value.dtype.kind == expected.dtype.kind
        if same and close:
            same = np.allclose(value, expected, rtol=1e-4, atol=1e-5, equal_nan=True)
        elif same:
            same = value.dtype == expected.dtype or value.dtype.kind == "U"
            same = same and np.array_equal(value, expected)
        if not same:
            wrong.append(f"{name}: numjet {value!r}, JAX {expected!r}")
    assert not wrong, "\n".join(wrong)
