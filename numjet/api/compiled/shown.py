"""Functions that JAX traces as calls (`jit[name=_where ...]`) and numjet writes in place.

`shown(function, name)` wraps a public function: where `make_jaxpr` traces (the flag
`jax_equations`), its call is one equation of this name, as in JAX; elsewhere it is the function.
For the public namespaces, and `api.eager.large`, which asks `call` itself. What would break it: an
argument that decides on shapes and is named neither in `_STATIC` nor by its type.
"""
from __future__ import annotations

import functools
import importlib
import inspect
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.api.compiled.jit import JitFunction
from numjet.base import config, tree
from numjet.base.errors import JAXIndexError, JAXTypeError
from numjet.core.array import Array
from numjet.core.trace import current_trace
from numjet.transforms.stage import StageTrace, apart

FLAG = config.jax_equations
# By the name of a call: the function that is traced for it, where it is not the one that runs.
_FORMS: dict[str, Callable] = {}
# Modules that have such functions, which load when the first is asked for.
LATER: list[str] = []
# By the name of a call: what is done with its arguments before.
PREPARED: dict[str, Callable[[tuple], tuple]] = {}
_OPERANDS = (Array, np.ndarray, np.generic, bool, int, float, complex)
# Parameters that are no operands, even where they are numbers.
_STATIC = frozenset(
    "axis axis1 axis2 axes keepdims dtype n k N M m ord offset decimals num endpoint retstep size "
    "length side method mode indexing num_classes full_matrices compute_uv hermitian increasing "
    "rowvar bias unroll total_repeat_length stable descending shape shift reps repeats "
    "assume_unique invert equal_nan density ndim deg assume_sorted unique_indices "
    "allow_negative_indices log_space indices_are_sorted symmetrize_input trans unit_diagonal "
    "overwrite_a overwrite_b check_finite include_initial lwork permute_l fill_value "
    "antialias precision".split()
)

# By module: public functions and the names of their calls.
_NUMPY = """
floor_divide remainder mod:remainder fmod copysign heaviside nansum nanmax nanmin
ptp:_ptp median convolve correlate interp:_interp cov corrcoef trapezoid kron cross angle packbits
searchsorted digitize fmax fmin tril triu hypot divmod nanvar nanstd gradient ldexp
modf i0 unwrap sinc polyval polyder diff isclose allclose nanmean nanmedian percentile quantile
nanpercentile nanquantile polyint take_along_axis nan_to_num lcm gcd append argsort bitwise_count
count_nonzero cumprod cumsum
ediff1d flip:_flip fliplr:_flip flipud:_flip iscomplex isinf
isreal nanargmax:_nanargmax nanargmin:_nanargmin nancumprod nancumsum nanprod polyadd
resize signbit sort sort_complex take:_take trunc isin:_in1d block lexsort partition rollaxis vander
unpackbits polysub polymul:convolve around matvec vecmat poly polyfit put_along_axis
"""
_LINALG = "cholesky det inv lstsq:_lstsq matrix_power matrix_rank norm qr slogdet svd eigh eigvalsh"
_LINALG += " eigvals cond solve"
_NN = """
celu elu glu hard_sigmoid hard_silu hard_swish:hard_silu hard_tanh leaky_relu log_sigmoid
log_softmax logmeanexp mish selu silu soft_sign softplus sparse_plus squareplus standardize
swish:silu
"""
_RANDOM = """
bernoulli:_bernoulli beta:_beta cauchy:_cauchy chisquare:_chisquare dirichlet:_dirichlet
double_sided_maxwell:_double_sided_maxwell
exponential:_exponential gamma:_gamma f:_f generalized_normal:_generalized_normal
geometric:_geometric gumbel:_gumbel laplace:_laplace logistic:_logistic loggamma:_gamma
maxwell:_maxwell normal:_normal pareto:_pareto poisson:_poisson rademacher:_rademacher
randint:_randint rayleigh:_rayleigh t:_t truncated_normal:_truncated_normal uniform:_uniform
wald:_wald weibull_min:_weibull_min
"""


def _table(text: str) -> dict[str, str]:
    pairs = [entry.partition(":") for entry in text.split()]
    return {name: call or name for name, _, call in pairs}


CALLS = defaultdict(dict, {
    "numjet.numpy": _table(_NUMPY),
    "numjet.numpy.linalg": _table(_LINALG),
    "numjet.image": _table("resize:_resize"),
    "numjet.nn": _table(_NN),
    "numjet.random": _table(_RANDOM),
    "numjet.scipy.linalg": _table(
        "block_diag lu_factor solve_triangular:_solve_triangular cholesky:_cholesky qr:_qr "
        "svd:_svd eigh:_eigh lu:_lu lu_solve hessenberg inv solve:_solve"
    ),
    "numjet.scipy.special": _table("log_softmax"),
})  # fmt: skip


def wanted() -> bool:
    """Whether `make_jaxpr` traces, on whose answer what is traced depends."""
    if current_trace().at_once:
        return False
    config.asked.note()
    return bool(FLAG.value)


def kept() -> bool:
    """Whether what is traced keeps what calls are given, for the other form: a function that asks
    for the form hands its call to `apart` then, from within which the answer is no."""
    trace = current_trace()
    return type(trace) is StageTrace and trace.calls is not None


def written_apart(function: Callable) -> Callable:
    """`function`, which asks for the form: what its calls are given is kept for the other one."""

    @functools.wraps(function)
    def either(*args: Any, **kwargs: Any) -> Any:
        if FLAG.uses and kept():
            return apart(function, function, args, kwargs)
        return function(*args, **kwargs)

    return either


class Shown:
    """A function as calls of its name."""

    def __init__(self, function: Callable, name: str, whole: bool = False) -> None:
        """whole: arguments that are not given are operands, too, with their defaults."""
        self.function, self.name, self.whole = function, name, whole
        self.programs: dict[tuple, JitFunction] = {}  # by the places and names of static arguments

    @functools.cached_property
    def named(self) -> Callable:
        """The function that is traced, under the call's name."""

        @functools.wraps(self.function)
        def named(*args: Any, **kwargs: Any) -> Any:
            return forms().get(self.name, self.function)(*args, **kwargs)

        named.__name__ = named.__qualname__ = self.name
        return named

    @functools.cached_property
    def parameters(self) -> list[str]:
        return list(inspect.signature(self.function).parameters)

    def called(self, *args: Any, **kwargs: Any) -> Any:
        """`call`, with the arguments of the function."""
        return self.call(args, kwargs)

    def call(self, args: tuple, kwargs: dict) -> Any:
        """The call as an equation."""
        prepare = PREPARED.get(self.name)
        if prepare is not None:
            args = prepare(args)
        if self.whole:
            given = inspect.signature(self.function).bind(*args, **kwargs)
            given.apply_defaults()
            args, kwargs = given.args, given.kwargs
        names = self.parameters
        named = zip(args, [*names, *[names[-1]] * len(args)])
        places = tuple([i for i, (x, name) in enumerate(named) if _is_static(x, name)])
        static = tuple([name for name, x in kwargs.items() if _is_static(x, name)])
        program = self.programs.get((places, static))
        if program is None:
            program = JitFunction(self.named, places, static, (), ())
            program._core.tells = False
            self.programs[places, static] = program
        try:
            return program(*args, **kwargs)
        except (JAXTypeError, JAXIndexError):  # a number that decides on a shape: written in place
            return self.function(*args, **kwargs)


def _is_static(x: Any, name: str) -> bool:
    if isinstance(x, list | tuple):
        return not any([isinstance(part, Array) for part in tree.tree_leaves(x)])
    if name in ("lower", "upper", "right") and type(x) is bool:  # of a matrix or a bin, no bound
        return True
    return not isinstance(x, Array) and (name in _STATIC or not isinstance(x, _OPERANDS))


def in_place(name: str, *args: Any) -> Any:
    """What a form comes to, without a call around it, for functions that ask `wanted`."""
    return forms()[name](*args)


def forms() -> dict[str, Callable]:
    """The functions that are traced for calls, by the calls' names, where they are others."""
    for module in tuple(LATER):
        importlib.import_module(module)
    LATER.clear()  # not before: another thread would go on without them
    return _FORMS


def form(name: str) -> Callable[[Callable], Callable]:
    """A decorator: calls of this name show the function, which takes the same arguments."""

    def enter(function: Callable) -> Callable:
        _FORMS[name] = function
        _BY_NAME[name] = Shown(function, name)
        return function

    return enter


_BY_NAME: dict[str, Shown] = {}


def as_call(name: str, *args: Any, **kwargs: Any) -> Any:
    """The call of a form's name as an equation, for functions that ask `wanted` themselves."""
    forms()
    return _BY_NAME[name].call(args, kwargs)


def reflected(method: Callable, function: Callable) -> Callable:
    """The `method` for `x op y` of an array y, a call of `function` where `make_jaxpr` traces."""

    @functools.wraps(method)
    def either(y: Any, x: Any, /) -> Any:
        if FLAG.uses and isinstance(x, _OPERANDS) and wanted():
            return function(x, y)
        return method(y, x)

    return either


def shown(
    function: Callable, name: str = "", whole: bool = False, module: str = ""
) -> Callable:
    """`function`, a call of this name (its own unless given) where `make_jaxpr` traces. module:
    where pickle finds it, if not where it was written."""
    made = Shown(function, name or function.__name__, whole)

    @functools.wraps(function)
    def either(*args: Any, **kwargs: Any) -> Any:
        if FLAG.uses and not current_trace().at_once:
            return apart(made.called, function, args, kwargs)
        return function(*args, **kwargs)

    either.__module__ = module or function.__module__
    return either
