"""What JAX answers to drawn programs, all of one call in one process of its own.

For tools/fuzz.py. Dtypes are compared, and values as `judge` does.
"""

from __future__ import annotations

import pickle
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import numjet as nj
from fuzzing import judge
from fuzzing.judge import Difference
from fuzzing.programs import NAMES, Program

_SCRIPT = f"""
import pickle, warnings
from jax import nn, lax, ops
import jax.scipy.special as jsp
warnings.simplefilter("ignore")
names = {NAMES!r}
for k, (x64, text, args) in enumerate(pickle.loads(programs.tobytes())):
    scope = {{name: getattr(jax, name) for name in names}}
    scope |= dict(np=np, jnp=jnp, nn=nn, ops=ops, jsp=jsp)
    with jax.enable_x64(x64):
        try:
            exec(text, scope)
            for j, y in enumerate(jax.jit(scope["program"])(*args)):
                out[f"{{k}}_{{j}}"] = np.asarray(y)
        except Exception as error:
            out[f"{{k}}_error"] = np.asarray(f"{{type(error).__name__}}: {{error}}"[:500])
    if k % 50 == 49:
        jax.clear_caches()
"""


def differences(programs: Sequence[Program]) -> list[Difference]:
    """Where numjet's plain way and JAX differ."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
    from oracle import run_in_oracle

    if not programs:
        return []
    given = [(p.x64, p.text(), list(p.arguments.values())) for p in programs]
    packed = np.frombuffer(pickle.dumps(given), np.uint8)
    answers = run_in_oracle(_SCRIPT, programs=packed, timeout=3600)
    found = []
    for k, program in enumerate(programs):
        error = str(answers.get(f"{k}_error", ""))
        if any([words in error for words in judge.REFUSED]):
            continue
        if error:
            what = f"JAX raises {error}"
        else:
            want = [answers[f"{k}_{j}"] for j in range(len(program.results))]
            what = _differs(program, want)
        if what:
            found.append(Difference(program, "JAX", what))
    return found


def _differs(program: Program, want: list[np.ndarray]) -> str:
    args = list(program.arguments.values())
    with nj.enable_x64(program.x64), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = [np.asarray(x) for x in judge._plainly(program.function(nj), args)]
        noisy = lambda k: judge._plainly(program.noisy(nj, k), args)
        return judge.differs(got, want, noisy).replace("instead of", "where JAX has")
