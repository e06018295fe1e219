"""Docstrings say what is not obvious: derivatives, sources, what comes back, what NumPy does else.

The holes are found by calling each public function as its own example does
(`test_docstring_promises`): its derivative with respect to each argument, there and where elements
are equal; what comes back; the operations that it is made of; NumPy's or SciPy's function of the
same name beside it, its parameters and its results. What a docstring refers to in backticks counts
as said, and so does what the docstring of `numjet.numpy` or `numjet.scipy` says of all functions.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy
from test_docstring_promises import NAMESPACES, example_call, told
from test_docstrings import public

import numjet as nj
import numjet.numpy as jnp
from numjet.core.array import ArrayImpl
from numjet.core.jaxpr import ClosedJaxpr, Jaxpr

DERIVATIVE = r"(?i)derivative|gradient|differentiab|linear in|reverse mode"
SOURCE = r"Sources?( of [^:]+)?:|DLMF \d|Euclid"
# What comes back, by itself or as of another function.
RESULT = (
    r"\b[Rr]esults?\b|\b[Rr]eturns?\b|\b[Gg]ives?\b|come back|\bstays?\b|\b[Ww]hether\b"
    r"|(as|like) (in|of|for|that of)? ?`|: [\[(]\w+, |(count as|become|as) (floats|ints)"
    r"|whose shape|of (its|their|that|one) (shape|dtype)|[Aa]lias|an initializer|another name"
    r"|an array of|default (float|integer)|\bdtype: |, as u?int\d+|zeros of the same dtype"
    r"|to a uint8|A slice of"
)
# What these were compared with; others have other parameters.
PEERS = ("2.4", "1.17")

# Operations that are methods with a source, and not arithmetic, selection, or an order.
METHODS = frozenset(
    """bessel_i0e bessel_i1e cholesky cholesky_update conv_by_fft digamma eig eigh erf erf_inv erfc
    fft hessenberg householder_product igamma igamma_grad_a igammac lgamma lu ormqr polygamma
    polynomial qr random_bits random_fold_in random_gamma random_gamma_grad random_seed
    random_split regularized_incomplete_beta rng_bit_generator schur solve svd triangular_solve
    tridiagonal tridiagonal_solve while zeta""".split()
)
# Methods that operations do not show, beside functions elsewhere that are methods.
NAMED = """numpy.linalg.multi_dot numpy.quantile numpy.percentile
    image.resize image.scale_and_translate
    experimental.ode.odeint scipy.optimize.minimize
    lax.associative_scan nn.dot_product_attention""".split()
# Whose methods are arithmetic on what the name says.
PLAIN = {
    "lax.while_loop": "the user's own loop",
    "lax.custom_linear_solve": "the user's own solver",
    "lax.rng_uniform": "the process's generator",
    "scipy.stats": "densities are formulas; what they are made of has its source in scipy.special",
}
# Found otherwise than they seem.
NO_DERIVATIVE = {
    "lax.while_loop": "from other numbers the loop of the example does not end",
    "linearize": "returns a function",
    "vjp": "returns a function",
    "numpy.kaiser": "takes a size",
    "numpy.unravel_index": "takes integers",
}
# Results of these are not comparable by value.
OTHERWISE = {
    "numpy.empty": "undefined in NumPy",
    "numpy.empty_like": "undefined in NumPy",
}


def functions(namespace: str) -> Iterator[tuple[ModuleType, str, Callable, tuple[tuple, dict]]]:
    """The functions of a namespace with what their examples call them with."""
    module = importlib.import_module(namespace)
    for name, value in public(module).items():
        called = None if isinstance(value, type) else example_call(module, name, value)
        if called is not None:
            yield module, f"{namespace}.{name}".removeprefix("numjet."), value, called


def changed(called: tuple[tuple, dict], at: Any, x: Any) -> tuple[tuple, dict]:
    """The call with another argument at a position, or of a name."""
    args, named = list(called[0]), dict(called[1])
    if isinstance(at, int):
        args[at] = x
    else:
        named[at] = x
    return tuple(args), named


def arrays(called: tuple[tuple, dict]) -> Iterator[tuple[Any, Any]]:
    """The arguments that are arrays of numbers, and where."""
    for at, x in [*enumerate(called[0]), *called[1].items()]:
        if type(x) is ArrayImpl and not jnp.issubdtype(x.dtype, nj.dtypes.prng_key):
            yield at, x


# ------------------------------------------------------------------ derivatives
def inexact(out: Any) -> list[Any]:
    """The results of the widest floating and complex dtypes."""
    leaves = [x for x in nj.tree.leaves(out) if isinstance(x, nj.Array)]
    return [x for x in leaves if x.dtype in (jnp.float64, jnp.complex128)]


def kinks(function: Callable, called: tuple[tuple, dict]) -> list[str]:
    """Where the derivative in some argument raises, is zero all over or NaN, or one of several."""
    found: list[str] = []
    for at, x in [*enumerate(called[0]), *called[1].items()]:
        if type(x) is not ArrayImpl:
            if isinstance(x, bool) or not isinstance(x, int | float):
                continue
            x = jnp.asarray(x)
        if not jnp.issubdtype(x.dtype, jnp.number) or not x.size:
            continue
        x = x.astype(complex if jnp.issubdtype(x.dtype, jnp.complexfloating) else float)
        points = {"there": x, "0": 0 * x, "1": 0 * x + 1}
        whats = {where: [*kink(function, called, at, point)] for where, point in points.items()}
        if not all("is zero" in x for x in whats.values()):  # of many smooth functions at a point
            whats = {where: [y for y in x if y != "is zero"] for where, x in whats.items()}
        found += [f"{at} at {where}: {what}" for where, x in whats.items() for what in x]
    return found


def kink(function: Callable, called: tuple[tuple, dict], at: Any, point: Any) -> Iterator[str]:
    def value(x: Any) -> list[Any]:
        args, named = changed(called, at, x)
        return inexact(function(*args, **named))

    draw = np.random.default_rng(0)
    step = jnp.asarray(1e-6 * draw.standard_normal(point.shape)).astype(point.dtype)
    try:
        here, above, below = value(point), value(point + step), value(point - step)
        far = value(point * 1.7 + 0.83)
    except Exception:  # it does not take this argument, or not there
        return
    if not here:
        return
    try:
        tangents = nj.jvp(value, (point,), (step,))[1]
        nj.vjp(value, point)[1]([jnp.ones_like(x) for x in here])
    except (nj.errors.ConcretizationTypeError, nj.errors.TracerArrayConversionError):
        return  # a known number, as a length is
    except TypeError as error:
        if "derivative" in str(error):
            yield f"raises {error!r:.60}"
        return
    except Exception as error:
        yield f"raises {error!r:.60}"
        return
    moved = any(a.shape != b.shape or bool(jnp.any(a != b)) for a, b in zip(here, far, strict=True))
    if moved and not any(bool(jnp.any(t)) for t in tangents):
        yield "is zero"
        return
    for y, up, down, t in zip(here, above, below, tangents, strict=True):
        if up.shape != y.shape or down.shape != y.shape or not y.size:
            continue
        right, left = (np.asarray(d) / 1e-6 for d in (up - y, y - down))
        t = np.asarray(t) / 1e-6
        known = np.isfinite(right) & np.isfinite(left)
        size = np.abs(right) + np.abs(left) + 1e-3
        if np.any(known & np.isnan(t)):
            yield "is NaN"
        elif np.any(known & (size < 1e4) & (np.abs(right - left) > 1e-2 * size)):
            yield "differs on both sides"
        elif np.any(known & (size < 1e4) & (np.abs((right + left) / 2 - t) > 1e-2 * size)):
            yield "is not that of the values"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("namespace", NAMESPACES)
def test_docstrings_say_what_a_derivative_is(namespace: str) -> None:
    holes = []
    for module, name, function, called in functions(namespace):
        text = inspect.getdoc(function) or ""
        if name in NO_DERIVATIVE:
            continue
        with nj.enable_x64(True):
            found = kinks(function, called)
        if found and not re.search(DERIVATIVE, told(module, text)):
            holes.append(f"  {name}: {'; '.join(found[:3])}")
        zero = re.search(r"[Tt]he derivative is (zero|0)\b(?! in| where| beyond)", text)
        if zero and not all(" is zero" in x for x in found):
            holes.append(f"  {name} says that the derivative is zero: {'; '.join(found[:3])}")
    assert not holes, f"{namespace}:\n" + "\n".join(holes)


# ------------------------------------------------------------------ results
def promoted(called: tuple[tuple, dict], out: Any) -> bool:
    """Whether results have the dtype that the array arguments promote to."""
    given = [x for x in nj.tree.leaves(called) if isinstance(x, nj.Array)]
    kept = [x for x in given if not jnp.issubdtype(x.dtype, jnp.integer)] or given
    dtypes = {jnp.result_type(*x).name for x in (given, kept) if x}
    return all(x.dtype.name in dtypes for x in nj.tree.leaves(out) if isinstance(x, nj.Array))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("namespace", NAMESPACES)
def test_docstrings_say_what_comes_back(namespace: str) -> None:
    holes = []
    for _, name, function, called in functions(namespace):
        text = (inspect.getdoc(function) or "").split(">>>")[0]
        try:
            out = function(*called[0], **called[1])
        except Exception:  # it needs the context of the example
            continue
        if not any(isinstance(x, nj.Array) for x in nj.tree.leaves(out)):
            continue
        # The docstring of numjet.numpy says which dtype it is where that of a function does not.
        usual = namespace.startswith("numjet.numpy") and promoted(called, out)
        if not usual and not re.search(RESULT, text):
            holes.append(f"  {name}: {out!r:.60}")
    assert not holes, f"{namespace}:\n" + "\n".join(holes)


# ------------------------------------------------------------------ sources
def operations(x: Any) -> Iterator[str]:
    """The names of the primitives of a jaxpr, of those inside of it, too."""
    if isinstance(x, ClosedJaxpr | Jaxpr):
        for eqn in getattr(x, "jaxpr", x).eqns:
            yield eqn.primitive.name
            yield from operations(list(eqn.params.values()))
    elif isinstance(x, tuple | list):
        for part in x:
            yield from operations(part)


def methods(function: Callable, called: tuple[tuple, dict]) -> set[str]:
    """Which of METHODS a call is made of."""
    places = [at for at, x in [*enumerate(called[0]), *called[1].items()] if type(x) is ArrayImpl]

    def program(*given: Any) -> Any:
        args, named = called
        for at, x in zip(places, given, strict=True):
            args, named = changed((args, named), at, x)
        return nj.tree.leaves(function(*args, **named))

    try:
        given = {**dict(enumerate(called[0])), **called[1]}
        jaxpr = nj.make_jaxpr(program)(*[given[at] for at in places])
    except Exception:  # it needs known values, or gives what is no array
        return set()
    return METHODS & set(operations(jaxpr))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("namespace", NAMESPACES)
def test_docstrings_name_the_source_of_a_method(namespace: str) -> None:
    holes = []
    for module, name, function, called in functions(namespace):
        used = methods(function, called)
        if name in PLAIN or not used:
            continue
        if name.startswith("scipy.stats.") and name.endswith(("pdf", "pmf", "entropy")):
            continue
        if not re.search(SOURCE, told(module, inspect.getdoc(function) or "", 4)):
            holes.append(f"  {name}: {', '.join(sorted(used))}")
    assert not holes, f"{namespace}:\n" + "\n".join(holes)


@pytest.mark.parametrize("name", NAMED)
def test_methods_elsewhere_have_a_source(name: str) -> None:
    namespace, _, last = name.rpartition(".")
    module = importlib.import_module(f"numjet.{namespace}")
    text = told(module, inspect.getdoc(getattr(module, last)) or "", 4)
    assert re.search(SOURCE, text), text


# ------------------------------------------------------------------ NumPy and SciPy
def peer(name: str) -> Callable | None:
    """NumPy's or SciPy's function of the same name."""
    parts = name.split(".")
    if parts[0] not in ("numpy", "scipy"):
        return None
    found: Any = np if parts[0] == "numpy" else scipy
    for at, part in enumerate(parts[1:], 1):
        if parts[0] == "scipy" and at < len(parts) - 1 and not hasattr(found, part):
            importlib.import_module(".".join(parts[: at + 1]))
        found = getattr(found, part, None)
    return found if callable(found) and not isinstance(found, type) else None


def parameters(function: Callable) -> dict[str, inspect.Parameter] | None:
    """What a function takes by name; None where that is not told."""
    try:
        found = dict(inspect.signature(function).parameters)
    except ValueError:
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in found.values()):
        return None
    return {k: p for k, p in found.items() if p.kind is not p.VAR_KEYWORD}


def other_parameters(function: Callable, other: Callable) -> list[str]:
    """Parameters that one of two functions has alone, not those of another name alone."""
    ours, theirs = parameters(function), parameters(other)
    if ours is None or theirs is None or isinstance(other, np.ufunc):
        return []
    return [
        name
        for here, there in [(ours, theirs), (theirs, ours)]
        for name, p in here.items()
        if name not in there and p.default is not p.empty and p.kind is not p.POSITIONAL_ONLY
    ]


WIDE = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


def on_host(x: Any) -> Any:
    if isinstance(x, list | tuple):
        return type(x)(map(on_host, x)) if type(x) in (list, tuple) else x
    return np.asarray(x) if type(x) is ArrayImpl else x


def other_results(function: Callable, other: Callable, called: tuple[tuple, dict]) -> Iterator[str]:
    """Calls whose results have other shapes, dtypes (beside those of 64 bits) or values."""
    for at, x in arrays(called):
        for dtype in (x.dtype, jnp.float32, jnp.int32, jnp.complex64, bool, jnp.int8):
            args, named = changed(called, at, x.astype(dtype))
            try:
                ours = function(*args, **named)
                host = [on_host(a) for a in args]
                theirs = other(*host, **{k: on_host(a) for k, a in named.items()})
            except Exception:  # one of them does not take it
                continue
            what = difference(ours, theirs)
            if what:
                yield f"{at} as {np.dtype(dtype).name}: {what}"


def difference(ours: Any, theirs: Any) -> str:
    a = nj.tree.leaves(ours)
    b = nj.tree.leaves(tuple(theirs) if isinstance(theirs, list | tuple) else theirs)
    if len(a) != len(b):
        return f"{len(a)} results for {len(b)}"
    for x, y in zip(a, b, strict=True):
        if not isinstance(x, nj.Array):
            continue
        y = np.asarray(y)
        dtype = WIDE.get(y.dtype.name, y.dtype.name)
        if x.shape != y.shape:
            return f"shape {x.shape} for {y.shape}"
        if x.dtype.name != dtype and dtype != "float16":  # integers count as float32
            return f"{x.dtype.name} for {y.dtype.name}"
        if y.dtype.kind in "biufc" and not np.allclose(
            np.asarray(x).astype(y.dtype), y, rtol=1e-3, atol=1e-4, equal_nan=True
        ):
            return f"{np.asarray(x).ravel()[:4]} for {y.ravel()[:4]}"
    return ""


@pytest.mark.skipif(
    PEERS != tuple(".".join(m.__version__.split(".")[:2]) for m in (np, scipy)),
    reason="other versions have other parameters",
)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("namespace", [n for n in NAMESPACES if re.match(r"numjet\.(nu|sc)", n)])
def test_docstrings_say_what_differs_from_numpy(namespace: str) -> None:
    holes = []
    general = inspect.getdoc(jnp if namespace.startswith("numjet.numpy") else nj.scipy) or ""
    for module, name, function, called in functions(namespace):
        other = peer(name)
        if other is None or name in OTHERWISE:
            continue
        text = inspect.getdoc(function) or ""
        whole = told(module, text)
        for parameter in other_parameters(function, other):
            alone = "NumPy" in text or "SciPy" in text
            if not re.search(rf"\b{parameter}\b", general + (whole if alone else "")):
                holes.append(f"  {name}: {parameter}")
        found = list(other_results(function, other, called))
        if not name.startswith("numpy"):
            found = [x for x in found if "complex" not in x and " as bool" not in x]
        if found and not re.search("NumPy|SciPy", told(module, text, 1)):
            holes.append(f"  {name}: {'; '.join(found[:3])}")
    assert not holes, f"{namespace}:\n" + "\n".join(holes)
