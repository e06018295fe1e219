"""What one call of a traced function costs, told from its jaxpr before anything is compiled.

Counted as XLA counts it: one operation an element for arithmetic, two a term of a product, one a
term of a reduction but the first; transcendental functions by themselves; moving elements costs
none. Of loops with an unknown number of rounds one counts, of branches the dearest. So the cost of
a function is the sum of its parts' whatever the compiler makes of it.

What would break it: a new primitive of arithmetic that is not elementwise and has no line here
counts nothing.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from numjet.core.jaxpr import Eqn, Jaxpr, subjaxprs
from numjet.core.lowering import Reduce

# Transcendental ones that are no function of `cpu.math`, and those there that are none.
_MORE = frozenset((
    "bessel_i0e", "bessel_i1e", "igamma", "igammac", "polygamma", "regularized_incomplete_beta",
    "zeta",
))  # fmt: skip
_LESS = frozenset(("fmod",))
# Elementwise ones that compute nothing.
_FREE = frozenset(("complex", "copy", "imag", "name", "real", "stop_gradient"))


@functools.cache
def _transcendental() -> frozenset[str]:
    from numjet.cpu.math import FUNCTIONS  # which nothing else needs before a program is compiled

    inexact = [name for name, function in FUNCTIONS.items() if function.ulps is not None]
    return (_MORE | {*inexact}) - _LESS


def _product(eqn: Eqn) -> float:
    (contracted, _), _ = eqn.params["dimension_numbers"]
    shape = eqn.invars[0].aval.shape
    return 2.0 * eqn.outvars[0].aval.size * math.prod([shape[a] for a in contracted])


def _taps(
    n: int, out: int, width: int, stride: int, low: int, lhs_dilation: int, rhs_dilation: int
) -> int:
    """How many elements of an axis the windows along it hold, not counting padding and gaps."""
    last = (n - 1) * lhs_dilation
    places = [
        at
        for i in range(out)
        for k in range(width)
        if 0 <= (at := i * stride - low + k * rhs_dilation) <= last and at % lhs_dilation == 0
    ]
    return len(places)


def _convolution(eqn: Eqn) -> float:
    lhs, rhs, out = (v.aval.shape for v in (*eqn.invars, eqn.outvars[0]))
    params, numbers = eqn.params, eqn.params["dimension_numbers"]
    spatial = [
        _taps(lhs[a], out[c], rhs[b], stride, low, lhs_dilation, rhs_dilation)
        for a, b, c, stride, (low, _), lhs_dilation, rhs_dilation in zip(
            numbers.lhs_spec[2:], numbers.rhs_spec[2:], numbers.out_spec[2:],
            params["window_strides"], params["padding"], params["lhs_dilation"],
            params["rhs_dilation"], strict=True,
        )
    ]  # fmt: skip
    batch, features = out[numbers.out_spec[0]], out[numbers.out_spec[1]]
    inputs = rhs[numbers.rhs_spec[1]]
    return 2.0 * batch * features * inputs * math.prod(spatial)


def _window(eqn: Eqn) -> float:
    window = eqn.params["window_dimensions"]
    return eqn.outvars[0].aval.size * (math.prod(window) - 1.0)


def _sort(eqn: Eqn) -> float:
    size = eqn.invars[0].aval.size
    return size * max(math.ceil(math.log2(size)), 1) if size else 0.0


def _matrices(factor: float) -> Callable[[Eqn], float]:
    """`factor` times rows × columns × columns of each matrix."""

    def cost(eqn: Eqn) -> float:
        aval = eqn.invars[0].aval
        return factor * aval.size * min(aval.shape[-2:])

    return cost


def _solution(eqn: Eqn) -> float:
    a, b = eqn.invars[0].aval, eqn.invars[1].aval
    return float(b.size * a.shape[-1])


_COSTS: dict[str, Callable[[Eqn], float]] = {
    "dot_general": _product,
    "conv_general_dilated": _convolution,
    **dict.fromkeys(("reduce_window_sum", "reduce_window_max", "reduce_window_min"), _window),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"),
                    lambda eqn: float(eqn.invars[0].aval.size)),
    **dict.fromkeys(("scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max"),
                    lambda eqn: float(eqn.invars[-1].aval.size)),
    "sort": _sort,
    "top_k": _sort,
    "cholesky": _matrices(1 / 3),
    "lu": _matrices(2 / 3),
    "geqrf": _matrices(2.0),
    "qr": _matrices(2.0),
    "eigh": _matrices(9.0),
    "eig": _matrices(25.0),
    "svd": _matrices(12.0),
    "triangular_solve": _solution,
    "solve": lambda eqn: _matrices(2 / 3)(eqn) + 2 * _solution(eqn),
}  # fmt: skip


def _of(jaxpr: Jaxpr) -> list[float]:
    """Operations, transcendental ones and bytes of one call."""
    total = [0.0, 0.0, 0.0]
    for eqn in jaxpr.eqns:
        primitive, params = eqn.primitive, eqn.params
        inside = [_of(j) for j in subjaxprs(params)]
        if inside:
            if primitive.name == "cond":
                inside = [max(inside)]
            rounds = params["length"] if primitive.name == "scan" else 1
            total = [t + rounds * sum(part) for t, *part in zip(total, *inside, strict=True)]
            continue
        out = eqn.outvars[0].aval.size if eqn.outvars else 0
        if primitive.name in _transcendental():
            total[1] += out
        elif primitive.name in _COSTS:
            total[0] += _COSTS[primitive.name](eqn)
        elif type(primitive.loops) is Reduce:
            total[0] += max(eqn.invars[0].aval.size - out, 0)
        elif primitive.name == "integer_pow":
            power = abs(params["y"])
            total[0] += out * max(power.bit_length() + power.bit_count() - 2, 0)
        elif primitive.elementwise and primitive.name not in _FREE:
            total[0] += out
        total[2] += sum([v.aval.nbytes for v in (*eqn.invars, *eqn.outvars)])
    return total


def cost_analysis(jaxpr: Jaxpr) -> dict[str, float]:
    """`flops` and `transcendentals`, where there are any, and `bytes accessed` of one call."""
    flops, transcendentals, moved = _of(jaxpr)
    counted = {"flops": flops, "transcendentals": transcendentals}
    return {**{name: n for name, n in counted.items() if n}, "bytes accessed": moved}
