"""Arguments of which JAX asks something before all else: that they can be hashed, as it compiles
programs for them (axes, modes), that they are booleans, that they have a shape.

`hold(namespace, module)` wraps functions of a public namespace, below the programs of
`api.eager.large`, so that calls which came before do not pass here. For the public namespaces. What
would break it: functions that are called thousands of times, which look at such arguments
themselves.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.api.compiled.jit_arguments import hashable
from numjet.base.tracebacks import hide, is_boundary
from numjet.core.trace import Tracer

# By module, a function to a line: its arguments; with a mark, arrays for which None is no value.
_HASHED = {
    "numjet.numpy": """
allclose equal_nan
angle deg
append axis
argpartition kth axis
argsort axis kind order stable descending
average returned keepdims
convolve mode precision preferred_element_type
corrcoef rowvar dtype
correlate mode precision preferred_element_type
count_nonzero axis keepdims
cov rowvar bias ddof dtype
cross axisa axisb axisc axis
cumprod axis dtype
cumsum axis dtype
diagonal offset axis1 axis2
diff n axis
digitize right method
geomspace endpoint dtype
gradient axis edge_order
intersect1d return_indices size
isclose equal_nan
isin assume_unique invert method
lexsort axis
linspace endpoint retstep dtype device
logspace endpoint dtype
mask_indices k
median axis overwrite_input keepdims
nancumprod axis dtype
nancumsum axis dtype
nanmax axis keepdims
nanmean axis dtype keepdims
nanmedian axis overwrite_input keepdims
nanmin axis keepdims
nanpercentile axis overwrite_input method keepdims
nanprod axis dtype keepdims
nanquantile axis overwrite_input method keepdims
nanstd axis dtype keepdims
nansum axis dtype keepdims
nanvar axis dtype keepdims
packbits axis bitorder
partition kth axis
percentile axis overwrite_input method keepdims
polyder m
polyfit deg rcond full cov
polyint m
polyval unroll
ptp keepdims
put_along_axis axis inplace mode
quantile axis overwrite_input method keepdims
resize new_shape
rollaxis axis start
rot90 k axes
searchsorted side method
setdiff1d assume_unique
setxor1d size
sort axis kind order stable descending
std dtype keepdims
take mode unique_indices indices_are_sorted fill_value
take_along_axis axis mode fill_value wrap_negative_indices
trace axis1 axis2 dtype
trapezoid axis
tril k
triu k
unpackbits axis count bitorder
unstack axis
unwrap axis
vander N increasing
var dtype keepdims
""",
    "numjet.numpy.linalg": """
cond p
diagonal offset
eigvalsh UPLO symmetrize_input
matrix_norm keepdims ord
matrix_power n
matrix_rank hermitian
norm ord axis keepdims
pinv hermitian
qr mode
slogdet method
svd full_matrices compute_uv hermitian subset_by_index
trace dtype
vector_norm keepdims
""",
    "numjet.nn": "glu axis\nlogmeanexp axis keepdims\nlogsumexp keepdims\n"
    "one_hot dtype axis\nstandardize axis algorithm",
    "numjet.lax": "fft fft_type fft_lengths",
    "numjet.image": "resize method antialias precision\nscale_and_translate precision",
    "numjet.scipy.linalg": """
convolution_matrix n mode
cho_factor a?
cho_solve b?
cholesky a?
dft n scale dtype
eigh a? lower eigvals_only eigvals type
eigh_tridiagonal d? e? eigvals_only select select_range
expm A? upper_triangular max_squarings
expm_frechet A? E? method compute_expm
funm A?
hadamard n dtype
helmert n full
hessenberg calc_q overwrite_a check_finite
hilbert n
invhilbert n
invpascal n kind
lu a? permute_l overwrite_a check_finite
lu_factor a? overwrite_a check_finite
lu_solve b?
pascal n kind
polar a? side method
qr a? mode pivoting
qr_multiply a? c?
rsf2csf T? Z?
solve lower
solve_sylvester A? B? C? method
solve_triangular a? b? trans lower unit_diagonal
svd a? full_matrices compute_uv
""",
    "numjet.scipy.ndimage": "map_coordinates order mode cval",
    "numjet.scipy.special": "bessel_jn v n_iter\nlogsumexp keepdims\nlog_softmax axis",
    "numjet.scipy.stats.samples": "mode axis nan_policy keepdims\nrankdata method axis nan_policy\n"
    "sem axis nan_policy keepdims",
}




def _scatters(names: str) -> str:
    flags = "dimension_numbers indices_are_sorted! unique_indices!"
    return "\n".join([f"{name} {flags}" for name in names.split()])


# The same of operations, whose parameters they are: JAX raises TypeError. With a mark, booleans.
# With an attribute, operands that JAX asks for it: AttributeError for Python's numbers, lists and
# others.
_PARAMETERS = {
    "numjet.image": "scale_and_translate image.ndim",
    "numjet.nn": "scaled_matmul lhs.ndim rhs.ndim lhs_scales.ndim rhs_scales.ndim",
    "numjet.scipy.linalg": "sqrtm A.astype",
    "numjet.scipy.signal": """
convolve in1.ndim in2.ndim
correlate in1.ndim in2.conj
csd x.ndim
stft x.ndim
welch x.ndim
""",
    "numjet.lax": f"""
batch_matmul lhs.ndim rhs.ndim
collapse operand.shape
conv lhs.shape rhs.shape
conv_transpose lhs.shape rhs.shape
conv_with_general_padding lhs.shape rhs.shape
index_take src.shape
scaled_dot lhs.ndim rhs.shape
approx_max_k k reduction_dimension recall_target reduction_input_size_override aggregate_to_topk
approx_min_k k reduction_dimension recall_target reduction_input_size_override aggregate_to_topk
associative_scan axis
conv_general_dilated lhs.shape rhs.shape feature_group_count batch_group_count
integer_pow y
ragged_dot preferred_element_type
scan reverse unroll
{_scatters("scatter scatter_add scatter_sub scatter_mul scatter_min scatter_max scatter_apply")}
sort is_stable!
sort_key_val keys.shape is_stable!
""",
    "numjet.lax.linalg": """
cholesky x.ndim
eigh x.ndim
lu_pivots_to_permutation permutation_size
ormqr left transpose
qr pivoting full_matrices use_magma
svd full_matrices compute_uv subset_by_index algorithm
symmetric_product alpha beta
triangular_solve left_side lower transpose_a unit_diagonal
tridiagonal_solve perturb_singular
""",
    "numjet.numpy.fft": "\n".join(
        f"{name} axis" for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    ),
}


def hold(namespace: dict[str, Any], module: str) -> None:
    """Replace functions of a public namespace by such that look at their arguments first."""
    for table, check in ((_HASHED, _static), (_PARAMETERS, _parameter)):
        for line in table.get(module, "").split("\n"):
            name, *arguments = line.split() or [""]
            if name:
                namespace[name] = _holding(namespace[name], module, arguments, check)


def _static(x: Any, what: str, name: str, needed: bool = False) -> None:
    if not needed:
        try:
            hashable(x, what, name)
        except ValueError as error:  # of a traced one, whose value a program may have asked for
            error.final = isinstance(x, Tracer)  # type: ignore[attr-defined]
            raise
    elif x is None:
        raise ValueError(f"{name}: None is not a valid value for {what}. Pass an array.")


def _parameter(x: Any, what: str, name: str, flag: bool = False, attribute: str = "") -> None:
    if isinstance(x, Tracer):
        return
    if attribute:
        if not hasattr(x, attribute):
            raise AttributeError(
                f"{name}: {what} must be an array: {type(x).__name__!r} object has no attribute "
                f"{attribute!r}."
            )
        return
    hash(x)  # raises TypeError
    if flag and not isinstance(x, bool | np.bool_):
        raise TypeError(f"{name}: {what} must be a bool, got {x!r}.")


def _holding(function: Callable, module: str, names: list[str], check: Callable) -> Callable:
    known: dict[str, dict] = {}
    for argument in names:
        name, _, attribute = argument.partition(".")
        marked = {"!": {"flag": True}, "?": {"needed": True}}.get(name[-1], {})
        known[name.rstrip("!?")] = {"attribute": attribute} if attribute else marked
    code = inspect.unwrap(function).__code__  # a signature takes longer to make than all the rest
    n = code.co_argcount
    parameters = code.co_varnames[: n + code.co_kwonlyargcount]
    places = [(i if i < n else sys.maxsize, x) for i, x in enumerate(parameters) if x in known]
    first = places[0][0]

    def check_all(args: tuple, kwargs: dict) -> None:
        for i, name in places:
            if i < len(args):
                check(args[i], f"argument {i}", function.__name__, **known[name])
            elif name in kwargs:
                check(kwargs[name], f"argument {name!r}", function.__name__, **known[name])

    @functools.wraps(function)
    @is_boundary
    def held(*args: Any, **kwargs: Any) -> Any:
        try:
            if kwargs or len(args) > first:
                check_all(args, kwargs)
            return function(*args, **kwargs)
        except Exception as error:
            hide(error)
            raise

    held.__module__ = module  # where pickle finds it
    return held
