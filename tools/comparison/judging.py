"""Compares two answers to a case and says in what they differ.

A difference is a kind (a word or two, by which the report groups) and a text with both answers.
Tolerances stand in `tolerances.py`, differences that are accepted, with their reasons, in
`accepted.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes  # noqa: F401
import numpy as np

from comparison.cases import Case
from comparison.tolerances import floor, tolerance

# Numbers of which XLA makes zero: results below them are equal.
SMALLEST = {
    "float32": 1.2e-38,
    "complex64": 1.2e-38,
    "float64": 2.3e-308,
    "complex128": 2.3e-308,
    "float16": 6.2e-5,
    "bfloat16": 1.2e-38,
}
TRACED = {"jit": "eager", "grad jit": "grad"}  # where JAX's values of a phase come from
Difference = tuple[str, str]


def differences(case: Case, theirs: dict[str, Any], ours: dict[str, Any]) -> Iterator[Difference]:
    """What differs between JAX's answer and numjet's; nothing where JAX gives none."""
    if theirs.get("prepare", (None,))[0] == "died":
        return
    mine = ours.get("prepare")
    if mine is not None and theirs.get("prepare") is None:
        yield "arguments", f"numjet cannot make the arguments: {shown(mine)}"
        return
    seen: set[Difference] = set()
    for phase in case.phases:
        if phase == "eager types":  # beside what abstract evaluation says, where that gives types
            yield from evaluated(case, theirs.get("types"), ours.get(phase), seen)
            continue
        if phase not in theirs or phase not in ours:
            continue
        want, got = theirs[phase], ours[phase]
        if want[0] == "raises" and "TooLong" in want[1]:
            continue
        source = theirs.get(TRACED.get(phase, phase), want)
        if phase == "jit" and want[0] == "value" and source[0] == "raises":
            want = source  # abstract evaluation does not see what lowering and values raise
        for kind, text in compared(case, phase, want, got, source):
            # What differs in the plain phase differs when compiled as well: said once.
            if phase not in TRACED or (TRACED[phase], kind) not in seen:
                yield ("" if phase == "eager" else phase + ": ") + kind, text
            seen.add((phase, kind))


def evaluated(case: Case, want: Any, got: Any, seen: set[Difference]) -> Iterator[Difference]:
    """What of numjet's evaluation differs from the types that JAX's abstract evaluation gives."""
    if got is None or want is None or want[0] == "raises":
        return
    for kind, text in compared(case, "eager", want, got, want):
        # It makes descriptions of all values, Python's numbers too, and sees no NaN.
        unseen = kind.startswith(("class", "raises FloatingPointError"))
        if ("types", kind) not in seen and not unseen:
            yield kind, text


def compared(case: Case, phase: str, want: Any, got: Any, values: Any) -> Iterator[Difference]:
    if want[0] == "raises" or got[0] == "raises":
        yield from errors(want, got)
        return
    if want[1] != got[1]:
        yield "structure", f"{got[1]}; JAX {want[1]}"
        return
    concrete = values[2] if values[0] == "value" and values[1] == want[1] else want[2]
    for i, (theirs, ours) in enumerate(zip(want[2], got[2])):
        known = concrete[i] if theirs[4] is None and len(concrete) > i else theirs
        yield from leaf(case, phase, theirs, ours, known[4])


def errors(want: Any, got: Any) -> Iterator[Difference]:
    if want[0] != "raises":
        yield f"raises {got[1][0]}", f"{shown(got)}; JAX {shown(want)}"
    elif got[0] != "raises":
        yield f"does not raise {want[1][0]}", f"{shown(got)}; JAX {shown(want)}"
    elif public(want[1]) not in got[1]:
        yield f"raises {got[1][0]}, not {public(want[1])}", f"{shown(got)}; JAX {shown(want)}"


def public(classes: list[str]) -> str:
    """The first class that users can name: those of JAX's internals stand for their base."""
    internal = ("UnknownBackendError",)
    return next(name for name in classes if name not in internal and not name.startswith("_"))


def leaf(case: Case, phase: str, want: Any, got: Any, values: Any) -> Iterator[Difference]:
    shown_pair = f"{one(got)}; JAX {one((*want[:4], values))}"
    if want[0] != got[0]:
        yield f"class {got[0]}, not {want[0]}", shown_pair
        return
    if want[2] != got[2]:
        yield "shape", shown_pair
        return
    if want[1] != got[1]:
        yield f"dtype {got[1]}, not {want[1]}", shown_pair
        return
    if want[3] != got[3]:
        yield "weak type" if got[3] else "no weak type", shown_pair
    if values is None or got[4] is None:
        return
    theirs, ours = np.asarray(values), np.asarray(got[4])
    if theirs.shape != ours.shape:
        return
    dtype = str(want[1])
    kind = unequal(theirs, ours, dtype, *tolerance(case, phase, dtype), floor(case, phase, dtype))
    if kind:
        yield kind, shown_pair


def unequal(
    want: np.ndarray, got: np.ndarray, dtype: str, relative: float, absolute: float, least: float
) -> str | None:
    """The kind of difference between two arrays of the same dtype, None when they agree.

    relative: of each element; absolute: of the largest finite element; least: whatever their size.
    """
    if dtype in ("complex64", "complex128"):
        want, got = (np.stack([x.real, x.imag], -1) for x in (want, got))
    if want.dtype.kind not in "fV" and dtype not in ("bfloat16",):
        return None if np.array_equal(want, got) else "value"
    want, got = want.astype(np.float64), got.astype(np.float64)
    if not np.array_equal(np.isnan(want), np.isnan(got)):
        return "NaN"
    with np.errstate(all="ignore"):
        infinite = np.isinf(want) | np.isinf(got)
        if not np.array_equal(want[infinite], got[infinite]):
            top = (
                float(np.finfo(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype).max)
                if dtype != "bfloat16"
                else 3.38e38
            )
            clipped = [np.clip(x, -top, top) for x in (want, got)]
            if not np.allclose(*clipped, rtol=max(relative, 1e-6), equal_nan=True):
                return "infinity"
        finite = np.isfinite(want) & np.isfinite(got)
        a, b = want[finite], got[finite]
        if not a.size:
            return None
        scale = np.abs(a).max()
        bound = relative * np.abs(a) + absolute * scale + SMALLEST.get(dtype, 0.0) + least
        if np.any(np.abs(a - b) > bound):
            return "value"
        zero = (a == 0) & (b == 0)
        if absolute == 0 and np.any(np.signbit(a[zero]) != np.signbit(b[zero])):
            return "sign of zero"
    return None


def one(leaf: Any) -> str:
    """A leaf, shortly."""
    kind, dtype, shape, weak, values = leaf
    if values is None:
        body = ""
    else:
        body = np.array2string(np.asarray(values), threshold=40, precision=9, separator=",")
        body = " " + " ".join(body.split())[:400]
    kind = "" if kind == "Array" else kind + " "
    return f"{kind}{dtype}{list(shape)}{' weak' if weak else ''}{body}"


def shown(answer: Any) -> str:
    if answer[0] == "raises":
        return f"{answer[1][0]}: {' '.join(answer[2].split())[:200]}"
    if answer[0] == "died":
        return f"the process ended ({answer[1]})"
    return f"{answer[1]} of " + ", ".join(map(one, answer[2]))
