"""Runs small pieces of code under numjet and under JAX (the oracle) and compares what they answer.

A case is Python text whose last line is an expression. Compared are the structure of its value, of
each leaf the class (Array, NumPy array, Python number), dtype, shape, weak type and values; of a
case that raises, the exception's type. All cases of a call run in one process of the oracle. The
text sees `jax` (the library it runs under), `jnp`, `lax`, `nn`, `np`, `random`, `tree`, `grad`,
`jvp`, `vjp`, `vmap`, `jit`.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from oracle import decoded, digest, encoded, find_answer, keep_answer, run_in_oracle

# Also read by the oracle's interpreter, as text.
_RUN = '''
import ast
import json
import warnings
import numpy as np

PRELUDE = """
import functools
import numpy as np
import {package} as jax
import {package}.numpy as jnp
from {package} import custom_jvp, custom_vjp, grad, jit, jvp, lax, nn, random, vjp, vmap
from {package} import tree_util as tree
"""


def answer(text, package, scope):
    """The value of the last expression of `text`, described; or the name of what it raises."""
    module = ast.parse(text)
    body, last = module.body[:-1], module.body[-1]
    local = dict(scope)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            exec(compile(ast.Module(body, []), "<case>", "exec"), local)
            value = eval(compile(ast.Expression(last.value), "<case>", "eval"), local)
            return described(value)
    except Exception as error:
        return ("raises", type(error).__name__, str(error)[:300])


def described(x):
    if isinstance(x, dict):
        return ("dict", [(repr(k), described(v)) for k, v in x.items()])
    if isinstance(x, (list, tuple)):
        kind = type(x).__name__
        return (kind if kind in ("list", "tuple") else "named", [described(v) for v in x])
    if x is None:
        return ("python", "None", None)
    if not isinstance(x, np.generic):
        for kind in (bool, int, float, complex, str):
            if isinstance(x, kind):
                return ("python", kind.__name__, kind(x))
    if isinstance(x, (np.ndarray, np.generic)):
        return ("numpy", str(x.dtype), x.shape, False, values(x))
    if hasattr(x, "weak_type") and hasattr(x, "dtype"):
        if "key" in str(x.dtype):
            return ("key", str(x.dtype), x.shape, False, None)
        return ("array", str(x.dtype), tuple(x.shape), bool(x.weak_type), values(np.asarray(x)))
    return ("object", type(x).__name__)


def values(x):
    if x.dtype.names or x.dtype.itemsize == 0 or x.dtype.kind == "O":
        return None
    if x.dtype.isbuiltin == 1:
        return np.array(x)
    return np.array(x).astype(np.float64)


def answers(cases, package):
    scope = {"__name__": "__case__"}
    exec(PRELUDE.format(package=package), scope)
    return {name: answer(text, package, scope) for name, text in cases.items()}
'''
_here: dict[str, Any] = {}
exec(compile(_RUN, __file__, "exec"), _here)


def both(
    cases: Mapping[str, str], *, x64: bool = False, devices: int = 1
) -> dict[str, tuple[Any, Any]]:
    """What numjet and what JAX answer to each case."""
    import numjet

    names = {name: digest(_RUN, text, x64, devices) for name, text in cases.items()}
    want = {name: find_answer(names[name]) for name in cases}
    if missing := [name for name, answer in want.items() if answer is None]:
        script = _RUN + (
            "\nfound = encoded(answers(json.loads(str(cases)), 'jax'))"
            "\nout['answers'] = np.frombuffer(json.dumps(found).encode(), np.uint8)\n"
        )
        packed = json.dumps({name: cases[name] for name in missing})
        found = run_in_oracle(script, x64=x64, devices=devices, kept=False, cases=packed)
        want |= decoded(json.loads(found["answers"].tobytes()))
        for name in missing:
            raises = want[name][0] == "raises"  # JAX's own words are not kept
            keep_answer(names[name], want[name][:2] if raises else want[name])
    with numjet.enable_x64(x64):
        got = decoded(json.loads(json.dumps(encoded(_here["answers"](cases, "numjet")))))
    return {name: (got[name], want[name]) for name in cases}


def differs(got: Any, want: Any, rtol: float, atol: float) -> str:
    """What is different, or nothing."""
    if got[0] != want[0]:
        return f"{got} where JAX has {want}"
    if got[0] == "raises":
        return "" if got[1] == want[1] else f"raises {got[1:]} where JAX raises {want[1:]}"
    if got[0] == "dict":
        if [k for k, _ in got[1]] != [k for k, _ in want[1]]:
            return f"keys {got} where JAX has {want}"
        pairs = [(a, b) for (_, a), (_, b) in zip(got[1], want[1], strict=True)]
    elif got[0] in ("list", "tuple", "named"):
        if len(got[1]) != len(want[1]):
            return f"{got} where JAX has {want}"
        pairs = list(zip(got[1], want[1], strict=True))
    elif got[0] in ("array", "numpy", "key"):
        if got[1:4] != want[1:4]:
            return f"dtype, shape, weak type {got[1:4]} where JAX has {want[1:4]}"
        if got[4] is None or want[4] is None:
            return ""
        same = np.allclose(got[4], want[4], rtol=rtol, atol=atol, equal_nan=True)
        return "" if same else f"values {got[4]} where JAX has {want[4]}"
    elif got[0] == "python" and isinstance(got[2], float) and isinstance(want[2], float):
        return "" if np.isclose(got[2], want[2], rtol, atol, True) else f"{got}, JAX {want}"
    else:
        return "" if got == want else f"{got} where JAX has {want}"
    found = [(i, differs(a, b, rtol, atol)) for i, (a, b) in enumerate(pairs)]
    return "; ".join([f"[{i}] {text}" for i, text in found if text])


def differences(
    cases: Mapping[str, str], *, rtol: float = 2e-5, atol: float = 1e-6, **options: Any
) -> dict[str, str]:
    """The cases whose answers differ, with what differs."""
    for name, text in cases.items():
        assert isinstance(ast.parse(text).body[-1], ast.Expr), name
    found = {n: differs(g, w, rtol, atol) for n, (g, w) in both(cases, **options).items()}
    return {name: text for name, text in found.items() if text}
