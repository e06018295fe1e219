"""Fit the coefficients of numjet/cpu/math and write numjet/cpu/math/coefficients.py.

Run by hand after changing a degree or an interval:

    python tools/fit_polynomials.py            # all tables, about a minute
    python tools/fit_polynomials.py exp log    # print the errors of some, write nothing

Method: the Remez exchange (E. Ya. Remez 1934; see Muller, "Elementary Functions", 3rd ed., ch. 3)
on a Chebyshev-distributed grid in 50-digit arithmetic with mpmath. The coefficients are then
rounded to the target precision from the lowest, refitting the others by least squares. Rational
functions: the denominator's weight is iterated (Loeb 1957). Every error printed is the largest
weighted error of the rounded coefficients, as a power of two.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import mpmath
from mpmath import mp, mpf

mp.dps = 50
ROUND = {
    "f32": lambda c: mpf(struct.unpack("f", struct.pack("f", float(c)))[0]),
    "f64": lambda c: mpf(float(c)),
}


def grid(low: float, high: float, count: int) -> list[mpf]:
    """Points crowding at the ends of [low, high], as the extrema of the error do."""
    middle, half = (mpf(high) + low) / 2, (mpf(high) - low) / 2
    return [middle - half * mp.cos(mp.pi * (k + mpf(1) / 2) / count) for k in range(count)]


def remez(columns: list[list[mpf]], target: list[mpf], weight: list[mpf]) -> list[mpf]:
    """Minimize max |weight·(target - Σ c_j column_j)| over the grid."""
    n, points = len(columns), len(target)
    picks = [round(points * (1 - mp.cos(mp.pi * k / n)) / 2 - 0.5) for k in range(n + 1)]
    picks = sorted({min(max(int(p), 0), points - 1) for p in picks})
    extra = [k for k in range(points) if k not in picks]
    while len(picks) < n + 1:
        picks.append(extra.pop(len(extra) // 2))
    picks.sort()
    coefficients: list[mpf] = []
    for _ in range(30):
        matrix = mpmath.matrix(n + 1, n + 1)
        right = mpmath.matrix(n + 1, 1)
        for row, p in enumerate(picks):
            for j in range(n):
                matrix[row, j] = columns[j][p] * weight[p]
            matrix[row, n] = (-1) ** row
            right[row] = target[p] * weight[p]
        solved = mpmath.lu_solve(matrix, right)
        coefficients, level = [solved[j] for j in range(n)], abs(solved[n])
        errors = [
            weight[p] * (target[p] - sum(c * col[p] for c, col in zip(coefficients, columns)))
            for p in range(points)
        ]
        runs: list[int] = []
        for p in range(points):
            if runs and (errors[p] >= 0) == (errors[runs[-1]] >= 0):
                if abs(errors[p]) > abs(errors[runs[-1]]):
                    runs[-1] = p
            else:
                runs.append(p)
        while len(runs) > n + 1:
            runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
        if len(runs) < n + 1 or max(abs(e) for e in errors) < level * mpf("1.01"):
            break
        picks = runs
    return coefficients


def least_squares(columns: list[list[mpf]], target: list[mpf], weight: list[mpf]) -> list[mpf]:
    """Minimize Σ (weight·error)²; near-minimax on this grid, and safe where the weight vanishes."""
    points = range(0, len(target), 3)
    scaled = [[c[p] * weight[p] for p in points] for c in columns]
    right = [target[p] * weight[p] for p in points]
    n = len(columns)
    matrix = mpmath.matrix(n, n)
    for i in range(n):
        for j in range(i + 1):
            matrix[i, j] = matrix[j, i] = mpmath.fdot(scaled[i], scaled[j])
    vector = mpmath.matrix([mpmath.fdot(c, right) for c in scaled])
    return list(mpmath.lu_solve(matrix, vector))


def fit(
    f: Callable, low: float, high: float, terms: int, precision: str,
    weight: Callable = lambda x: 1, density: int = 30,
) -> tuple[list[mpf], mpf]:  # fmt: skip
    """Coefficients c_0 … of a polynomial of `terms` terms for f, and its largest error."""
    points = grid(low, high, density * terms // 2 * 2)  # even: not at 0
    target = [mpf(f(x)) for x in points]
    weights = [mpf(weight(x)) for x in points]
    powers = [[x**j for x in points] for j in range(terms)]

    def error(chosen: list[mpf]) -> mpf:
        return max(
            abs(w * (t - sum(c * col[p] for c, col in zip(chosen, powers))))
            for p, (t, w) in enumerate(zip(target, weights))
        )

    first = [ROUND[precision](c) for c in remez(powers, target, weights)]
    candidates = [(error(first), first)]
    for several in range(1, min(4, terms)):
        chosen = first[:several]
        rest = [
            t - sum(c * powers[j][p] for j, c in enumerate(chosen)) for p, t in enumerate(target)
        ]
        found = least_squares(powers[several:], rest, weights)
        first = chosen + [ROUND[precision](c) for c in found]
        candidates.append((error(first), first))
    wrong, chosen = min(candidates)
    return chosen, wrong


def fit_rational(
    f: Callable, low: float, high: float, top: int, bottom: int, precision: str,
    weight: Callable = lambda x: 1,
) -> tuple[list[mpf], list[mpf], mpf]:  # fmt: skip
    """P of `top` terms and Q of `bottom` terms with Q(0) = 1, for f = P/Q."""
    points = grid(low, high, 30 * (top + bottom))
    target = [mpf(f(x)) for x in points]
    weights = [mpf(weight(x)) for x in points]
    q = [mpf(1)] * len(points)
    for _ in range(8):
        columns = [[x**j for x in points] for j in range(top)]
        columns += [
            [-t * x**j for x, t in zip(points, target)] for j in range(1, bottom)
        ]  # fmt: skip
        found = remez(columns, target, [w / d for w, d in zip(weights, q)])
        q = [1 + sum(c * x ** (j + 1) for j, c in enumerate(found[top:])) for x in points]
    p = [ROUND[precision](c) for c in found[:top]]
    d = [mpf(1)] + [ROUND[precision](c) for c in found[top:]]
    error = max(
        abs(w * (t - mpmath.polyval(p[::-1], x) / mpmath.polyval(d[::-1], x)))
        for x, t, w in zip(points, target, weights)
    )
    return p, d, error


TABLES: dict[str, Callable[[], dict]] = {}
BOTH = ("f32", "f64")


def table(function: Callable) -> Callable:
    TABLES[function.__name__] = function
    return function


def series(name, f, low, high, terms, weight=lambda x: 1, precisions=BOTH, density=30):
    """One table a precision, under `NAME_F32` and `NAME_F64`."""
    made = {}
    for precision in precisions:
        count = terms[precision] if isinstance(terms, dict) else terms
        c, error = fit(f, low, high, count, precision, weight, density)
        made[f"{name}_{precision}".upper()] = (c, error)
    return made


def squared(f: Callable) -> Callable:
    """f of the square root: turns an even function of x into one of z = x²."""
    return lambda z: f(mp.sqrt(z))


@table
def exp():
    half = mp.ln2 / 2 * mpf("1.002")

    def rest(r):
        return (mp.expm1(r) - r) / r**2

    made = series(
        "exp", rest, -half, half, {"f32": 5, "f64": 10}, lambda r: r**2 / mp.exp(r)
    )
    made |= series(
        "expm1", rest, -half, half, {"f32": 5, "f64": 11}, lambda r: r**2 / abs(mp.expm1(r))
    )
    return made


@table
def exp2():
    return series(
        "exp2", lambda r: (mpf(2) ** r - 1) / r, -0.501, 0.501,
        {"f32": 6, "f64": 11}, abs,
    )  # fmt: skip


@table
def log():
    low, high = mp.sqrt(0.5) - 1 - 1e-6, mp.sqrt(2) - 1 + 1e-6
    made = series(
        "log", lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, low, high,
        {"f32": 8}, lambda f: f**3 / mp.log1p(f), precisions=("f32",),
    )  # fmt: skip
    # log(1+f) = f - f²/2 + s·(f²/2 + R(s²)) with s = f/(2+f), so R = 2·atanh(s)/s - 2 - …
    edge = (high / (2 + high)) ** 2

    def rest(z):
        s = mp.sqrt(z)
        return (2 * mp.atanh(s) / s - 2) / z

    made |= series("log", rest, mpf("1e-20"), edge, {"f64": 7}, lambda z: z, precisions=("f64",))
    return made


@table
def pow_():
    """For float32 through double: log2(m) = s·P(s²), 2^r; for float64 the tail after s³/3."""
    edge = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mpf("1.0001")

    def whole(z):
        s = mp.sqrt(z)
        return 2 * mp.atanh(s) / s / mp.ln2

    def tail(z):
        s = mp.sqrt(z)
        return ((mp.atanh(s) / s - 1) / z - mpf(1) / 3) / z

    c, error = fit(whole, mpf("1e-20"), edge, 6, "f64")
    e, wrong = fit(lambda r: mpf(2) ** r, -0.501, 0.501, 7, "f64")
    t, off = fit(tail, mpf("1e-12"), edge, 8, "f64", lambda z: z * z)
    return {"POW_LOG2_F32": (c, error), "POW_EXP2_F32": (e, wrong), "POW_TAIL_F64": (t, off)}


@table
def trigonometric():
    top = mpf("0.80") ** 2
    tiny = mpf("1e-12")
    made = series(
        "sin", squared(lambda x: (mp.sin(x) / x - 1) / x**2), tiny, top,
        {"f32": 3, "f64": 6}, squared(lambda x: x**3 / mp.sin(x)),
    )  # fmt: skip
    made |= series(
        "cos", squared(lambda x: (mp.cos(x) - 1 + x * x / 2) / x**4), tiny, top,
        {"f32": 3, "f64": 6}, squared(lambda x: x**4),
    )  # fmt: skip
    made |= series(
        "tan", squared(lambda x: (mp.tan(x) / x - 1) / x**2), tiny, top,
        {"f32": 7, "f64": 15}, squared(lambda x: x**3 / mp.tan(x)),
    )  # fmt: skip
    return made


@table
def inverse_trigonometric():
    tiny = mpf("1e-12")
    made = series(
        "asin", squared(lambda x: (mp.asin(x) / x - 1) / x**2), tiny, mpf("0.2501"),
        {"f32": 5, "f64": 12}, squared(lambda x: x**2),
    )  # fmt: skip
    made |= series(
        "atan", squared(lambda x: (mp.atan(x) / x - 1) / x**2), tiny, mpf("0.2501"),
        {"f32": 6, "f64": 12}, squared(lambda x: x**2),
    )  # fmt: skip
    return made


@table
def hyperbolic():
    tiny = mpf("1e-12")
    p, q, error = fit_rational(
        squared(lambda x: (mp.tanh(x) / x - 1) / x**2), tiny, mpf("0.36"), 3, 4, "f64",
        squared(lambda x: x**2),
    )  # fmt: skip
    made = {"TANH_P_F64": (p, error), "TANH_Q_F64": (q, error)}
    # In float32 expm1(2r)/2 = r + r²·q(r).
    half = mp.ln2 / 4 * mpf("1.002")
    made |= series(
        "tanh", lambda r: (mp.expm1(2 * r) / 2 - r) / r**2, -half, half, {"f32": 5},
        lambda r: 2 * r**2 / abs(mp.expm1(2 * r)), precisions=("f32",),
    )  # fmt: skip
    made |= series(
        "sinh", squared(lambda x: (mp.sinh(x) / x - 1) / x**2), tiny, mpf("1.0"),
        {"f32": 4, "f64": 7}, squared(lambda x: x**3 / mp.sinh(x)),
    )  # fmt: skip
    return made


@table
def error_function():
    tiny = mpf("1e-12")
    made = series(
        "erf", squared(lambda x: mp.erf(x) / x - 1), tiny, mpf("1.0"),
        {"f32": 7, "f64": 12}, squared(lambda x: x / mp.erf(x)),
    )  # fmt: skip
    # Beyond 1 only the absolute error counts: erf(x) = 1 - exp(-x·L(x)) in float64.
    made |= series(
        "erf_log", lambda x: -mp.log(mp.erfc(x)) / x, mpf("0.99"), mpf("6.0"), {"f64": 18},
        lambda x: x * mp.erfc(x), precisions=("f64",),
    )  # fmt: skip

    # In float32 erf = t - 4/27·t³, whose slope is 0 where it is 1, and t = x + x·P(x²)/Q(x²).
    def t(x):
        return 3 * mp.sin((mp.pi / 2 - 2 * mp.asin(mp.sqrt(mp.erfc(x) / 2))) / 3)

    def slope(x):
        return max(1 - t(x) ** 2 * 4 / 9, mpf(2) ** mpf("-12.5"))

    p, q, error = fit_rational(
        squared(lambda x: t(x) / x - 1), mpf("1e-6"), mpf("3.925") ** 2, 5, 5, "f32",
        squared(lambda x: slope(x) * x / mp.erf(x)),
    )  # fmt: skip
    made |= {"ERF_P_F32": (p, error), "ERF_Q_F32": (q, error)}

    # erfc(x) = exp(-x²)·G(t)/(x+3), t = (x-3)/(x+3), x in [0.45, 28]
    def scaled(t):
        x = 3 * (1 + t) / (1 - t)
        return mp.exp(x * x) * mp.erfc(x) * (x + 3)

    for precision, terms, end in (("f32", 10, mpf("10.3")), ("f64", 22, mpf(28))):
        made |= series(
            "erfc", scaled, (mpf("0.45") - 3) / (mpf("0.45") + 3), (end - 3) / (end + 3),
            {precision: terms}, lambda t: 1 / scaled(t), precisions=(precision,), density=12,
        )  # fmt: skip
    return made


@table
def erf_inverse():
    """erf_inv(x)/x as a polynomial of w = -log(1-x²), after M. Giles, GPU Computing Gems 2011."""

    def of_w(w):
        x = mp.sqrt(-mp.expm1(-w))
        tail = mp.exp(-w) / (1 + x)  # 1 - x without cancellation
        if x < 0.9:
            return mp.erfinv(x) / x
        start = mp.sqrt(max(w - mp.log(mp.sqrt(mp.pi * max(w, 1))), mpf("0.5")))
        y = start
        for _ in range(60):  # Newton on log erfc
            step = (mp.log(mp.erfc(y)) - mp.log(tail)) / (
                -2 / mp.sqrt(mp.pi) * mp.exp(-y * y) / mp.erfc(y)
            )
            y -= step
            if abs(step) < mpf(10) ** -45:
                break
        return y / x

    made = {}

    def piece(name, low, high, shift, root, terms, precision):
        change = (lambda t: (t + shift) ** 2) if root else (lambda t: t + shift)
        c, error = fit(
            lambda t: of_w(change(t)), low - shift, high - shift, terms, precision,
            lambda t: 1 / of_w(change(t)), density=8,
        )  # fmt: skip
        made[name] = (c, error)

    tiny = mpf("1e-15")
    piece("ERF_INV_CENTRE_F32", tiny, mpf(5), mpf("2.5"), False, 10, "f32")
    piece("ERF_INV_TAIL_F32", mp.sqrt(5), mp.sqrt(mpf("17.5")), mpf(3), True, 9, "f32")
    piece("ERF_INV_CENTRE_F64", tiny, mpf("6.25"), mpf("3.125"), False, 23, "f64")
    piece("ERF_INV_MIDDLE_F64", mpf("2.5"), mpf(4), mpf("3.25"), True, 19, "f64")
    piece("ERF_INV_TAIL_F64", mpf(4), mpf("6.1"), mpf(5), True, 17, "f64")
    return made


@table
def gamma():
    """lgamma(2+u) = u·P(u) on [-1/2, 1/2]."""
    return series(
        "lgamma", lambda u: mp.loggamma(2 + u) / u, mpf("-0.5001"), mpf("0.50011"), {"f64": 21},
        precisions=("f64",), density=10,
    )  # fmt: skip


HEADER = '''"""Coefficients of the elementary functions: written by tools/fit_polynomials.py.

Lowest degree first. The comment is the largest weighted error of the fit. Read by the family
files of this package; changing a number here without the script breaks their 2-ulp bar.
"""

'''


def spelled(name: str, coefficients: list[mpf], error: mpf) -> str:
    lines = [f"{name} = (  # 2^{float(mp.log(max(error, mpf(10)**-60), 2)):.1f}"]
    lines += [f"    {float(c)!r}," for c in coefficients]
    return "\n".join([*lines, ")"])


def main(names: Sequence[str]) -> None:
    parts = []
    for name, make in TABLES.items():
        if names and name not in names:
            continue
        for key, (coefficients, error) in make().items():
            parts.append(spelled(key, coefficients, error))
            print(key, len(coefficients), f"2^{float(mp.log(error, 2)):.1f}", flush=True)
    if not names:
        target = Path(__file__).parent.parent / "numjet" / "cpu" / "math" / "coefficients.py"
        target.write_text(HEADER + "\n".join(parts) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
