"""numjet.lax: the primitives as functions of explicit shapes and dtypes, in JAX's names.

For users, and for the namespaces above. The operands of a binary function agree in dtype, and in
shape but for axes of size one (numjet.numpy promotes and broadcasts). Names come from the
layers below, and the binary functions from `lax.binary`; nothing is defined here.
"""

# ruff: noqa: A004
from __future__ import annotations

from numjet.api.compiled.hashed import hold as _hold
from numjet.api.compiled.shown import shown as _shown
from numjet.api.derivatives.implicit import (
    custom_linear_solve,
    custom_root,
    linear_solve_p,
)
from numjet.api.eager.large import drawn as _drawn, wrap_public as _wrap_public
from numjet.api.placement.reshard import with_sharding_constraint as with_sharding_constraint
from numjet.core.structural import (
    broadcast_in_dim_p,
    convert_element_type_p,
    reduce_sum_p,
    transpose_p,
)
from numjet.lax import linalg as linalg
from numjet.lax.binary import (
    add,
    atan2,
    betainc,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    clamp,
    complex,
    div,
    eq,
    ge,
    gt,
    igamma,
    igamma_grad_a,
    igammac,
    le,
    lt,
    max,
    min,
    mul,
    mulhi,
    ne,
    nextafter,
    polygamma,
    pow,
    random_gamma_grad,
    rem,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
    sub,
    zeta,
)
from numjet.ops.accuracy import AccuracyMode, Tolerance
from numjet.ops.approximate import (
    approx_max_k,
    approx_min_k,
    approx_top_k_p,
)
from numjet.ops.arithmetic import (
    abs,
    abs_p,
    add_p,
    clamp_p,
    div_p,
    integer_pow,
    integer_pow_p,
    max_p,
    min_p,
    mul_p,
    nextafter_p,
    reciprocal,
    rem_p,
    sign,
    sign_p,
    square,
    square_p,
    sub_p,
)
from numjet.ops.arrange import (
    broadcast,
    broadcast_in_dim,
    broadcast_like,
    broadcast_shapes,
    broadcast_to_rank,
    collapse,
    convert_element_type,
    dtype,
    empty,
    full,
    full_like,
    optimization_barrier,
    optimization_barrier_p,
    shape_as_value,
    split,
    stack,
    stop_gradient,
    stop_gradient_p,
    tile,
    transpose,
    unstack,
)
from numjet.ops.bits import bitcast_convert_type, bitcast_convert_type_p
from numjet.ops.by_name import (
    eq_to_p,
    le_to_p,
    lt_to_p,
    reduce_p,
    reduce_window_p,
    select_and_gather_add_p,
    select_and_scatter_add_p,
)
from numjet.ops.collective import (
    all_gather,
    all_gather_p,
    all_to_all,
    all_to_all_p,
    axis_index,
    axis_index_p,
    axis_size,
    pmax,
    pmax_p,
    pmean,
    pmin,
    pmin_p,
    psum,
    psum_p,
    psum_scatter,
    pswapaxes,
)
from numjet.ops.complex_ops import (
    complex_p,
    conj,
    conj_p,
    imag,
    imag_p,
    neg,
    neg_p,
    real,
    real_p,
)
from numjet.ops.composite import (
    composite,
)
from numjet.ops.cond import (
    cond,
    cond_p,
    switch,
)
from numjet.ops.constraint import (
    device_put_p as device_put_p,
    sharding_constraint_p as sharding_constraint_p,
)
from numjet.ops.conv import (
    conv,
    conv_general_dilated,
    conv_general_dilated_local,
    conv_general_dilated_p,
    conv_general_dilated_patches,
    conv_transpose,
    conv_transpose_shape_tuple,
    conv_with_general_padding,
)
from numjet.ops.conv_numbers import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    conv_dimension_numbers,
    conv_general_permutations,
    conv_general_shape_tuple,
    conv_shape_tuple,
    padtype_to_pads,
)
from numjet.ops.cumulative import (
    cumlogsumexp,
    cumlogsumexp_p,
    cummax,
    cummax_p,
    cummin,
    cummin_p,
    cumprod,
    cumprod_p,
    cumsum,
    cumsum_p,
)
from numjet.ops.dot import (
    DotDimensionNumbers,
    Precision,
    PrecisionLike,
    batch_matmul,
    dot,
    dot_general,
    dot_general_p,
)
from numjet.ops.dot_algorithms import (
    DotAlgorithm,
    DotAlgorithmPreset,
)
from numjet.ops.exchange import (
    pbroadcast,
    pcast,
    precv,
    psend,
    ragged_all_to_all,
    ragged_all_to_all_p,
)
from numjet.ops.fft import (
    FftType,
    fft,
    fft_p,
)
from numjet.ops.gather import (
    gather,
    gather_p,
)
from numjet.ops.generators import (
    RandomAlgorithm,
    rng_bit_generator,
    rng_bit_generator_p,
    rng_uniform,
    rng_uniform_p,
)
from numjet.ops.index_take import index_take as index_take
from numjet.ops.indexing import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from numjet.ops.logic import (
    RoundingMethod,
    and_p,
    bitwise_not,
    ceil,
    ceil_p,
    clz,
    clz_p,
    eq_p,
    floor,
    floor_p,
    ge_p,
    gt_p,
    is_finite,
    is_finite_p,
    le_p,
    lt_p,
    ne_p,
    not_p,
    or_p,
    population_count,
    population_count_p,
    round,
    round_away_p as round_p,
    shift_left_p,
    shift_right_arithmetic_p,
    shift_right_logical_p,
    xor_p,
)
from numjet.ops.mulhi import mulhi_p as mulhi_p
from numjet.ops.named import split_p, stack_p, stage, stage_p, tile_p, unstack_p
from numjet.ops.permute import ppermute, ppermute_p, pshuffle
from numjet.ops.precision import (
    reduce_precision,
    reduce_precision_p,
)
from numjet.ops.ragged import (
    RaggedDotDimensionNumbers,
    ragged_dot,
    ragged_dot_general,
)
from numjet.ops.reduce import (
    argmax,
    argmax_p,
    argmin,
    argmin_p,
    reduce,
    reduce_and,
    reduce_and_p,
    reduce_max,
    reduce_max_p,
    reduce_min,
    reduce_min_p,
    reduce_or,
    reduce_or_p,
    reduce_prod,
    reduce_prod_p,
    reduce_xor,
    reduce_xor_p,
    sum_over as reduce_sum,
)
from numjet.ops.scaled import (
    scaled_dot,
)
from numjet.ops.scan import (
    scan,
    scan_p,
)
from numjet.ops.scan_functions import (
    associative_scan,
    map,
    platform_dependent,
)
from numjet.ops.scatter import (
    scatter,
    scatter_add,
    scatter_add_p,
    scatter_apply,
    scatter_max,
    scatter_max_p,
    scatter_min,
    scatter_min_p,
    scatter_mul,
    scatter_mul_p,
    scatter_p,
    scatter_sub,
    scatter_sub_p,
)
from numjet.ops.select_scatter import select_and_scatter_p
from numjet.ops.shape import (
    broadcasted_iota,
    concatenate,
    concatenate_p,
    copy_p,
    expand_dims,
    iota,
    iota_p,
    pad,
    pad_p,
    reshape,
    reshape_p,
    rev,
    rev_p,
    select,
    select_n,
    select_n_p,
    squeeze,
    squeeze_p,
)
from numjet.ops.slicing import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_slice_p,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
    dynamic_update_slice_p,
    index_in_dim,
    slice,
    slice_in_dim,
    slice_p,
)
from numjet.ops.sort import (
    sort,
    sort_key_val,
    sort_p,
    top_k,
    top_k_p,
)
from numjet.ops.special import (
    bessel_i0e,
    bessel_i0e_p,
    bessel_i1e,
    bessel_i1e_p,
    digamma,
    digamma_p,
    erf,
    erf_inv,
    erf_inv_p,
    erf_p,
    erfc,
    erfc_p,
    igamma_grad_a_p,
    igamma_p,
    igammac_p,
    lgamma,
    lgamma_p,
    polygamma_p,
    random_gamma_grad_p,
    regularized_incomplete_beta_p,
    zeta_p,
)
from numjet.ops.tokens import (
    after_all,
    after_all_p,
    create_token,
    create_token_p,
    dce_sink,
    dce_sink_p,
)
from numjet.ops.transcendental import (
    acos,
    acos_p,
    acosh,
    acosh_p,
    asin,
    asin_p,
    asinh,
    asinh_p,
    atan,
    atan2_p,
    atan_p,
    atanh,
    atanh_p,
    cbrt,
    cbrt_p,
    cos,
    cos_p,
    cosh,
    cosh_p,
    exp,
    exp2,
    exp2_p,
    exp_p,
    expm1,
    expm1_p,
    log,
    log1p,
    log1p_p,
    log_p,
    logistic,
    logistic_p,
    pow_p,
    rsqrt,
    rsqrt_p,
    sin,
    sin_p,
    sinh,
    sinh_p,
    sqrt,
    sqrt_p,
    tan,
    tan_p,
    tanh,
    tanh_p,
)
from numjet.ops.while_loop import (
    fori_loop,
    while_loop,
    while_p,
)
from numjet.ops.window import (
    reduce_window as reduce_window,
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_shape_tuple as reduce_window_shape_tuple,
    reduce_window_sum_p,
    select_and_scatter_add as select_and_scatter_add,
)

_hold(globals(), __name__)
# What NumPy takes long for.
_wrap_public(
    globals(), __name__,
    ("bessel_i0e bessel_i1e clamp clz cumlogsumexp cummax cummin cumprod cumsum digamma dot erf "
     "erf_inv erfc igamma igammac lgamma logistic mulhi polygamma population_count pow reciprocal "
     "rem round select shift_left shift_right_arithmetic shift_right_logical sort sort_key_val "
     "zeta igamma_grad_a random_gamma_grad").split(),
)  # fmt: skip
_wrap_public(globals(), __name__, ["rng_bit_generator"], _drawn(1))
dynamic_index_in_dim = _shown(dynamic_index_in_dim, module=__name__)
dynamic_update_index_in_dim = _shown(dynamic_update_index_in_dim, module=__name__)

__all__ = [
    "AccuracyMode", "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers",
    "DotDimensionNumbers", "PrecisionLike", "DotAlgorithm", "DotAlgorithmPreset", "FftType",
    "GatherDimensionNumbers", "GatherScatterMode", "Precision", "RaggedDotDimensionNumbers",
    "RandomAlgorithm", "RoundingMethod", "ScatterDimensionNumbers", "Tolerance", "abs", "abs_p",
    "acos", "acos_p", "acosh", "acosh_p", "add", "add_p", "after_all", "after_all_p",
    "all_gather", "all_gather_p", "all_to_all", "all_to_all_p", "and_p", "approx_max_k",
    "approx_min_k", "approx_top_k_p", "argmax", "argmax_p", "argmin", "argmin_p", "asin",
    "asin_p", "asinh", "asinh_p", "associative_scan", "atan", "atan2", "atan2_p", "atan_p",
    "atanh", "atanh_p", "axis_index", "axis_index_p", "axis_size", "batch_matmul", "bessel_i0e",
    "bessel_i0e_p", "bessel_i1e", "bessel_i1e_p", "betainc", "bitcast_convert_type",
    "bitcast_convert_type_p", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor",
    "broadcast", "broadcast_in_dim", "broadcast_in_dim_p", "broadcast_like", "broadcast_shapes",
    "broadcast_to_rank", "broadcasted_iota", "cbrt", "cbrt_p", "ceil", "ceil_p", "clamp",
    "clamp_p", "clz", "clz_p", "collapse", "complex", "complex_p", "composite", "concatenate",
    "concatenate_p", "cond", "cond_p", "conj", "conj_p", "conv", "conv_dimension_numbers",
    "conv_general_dilated", "conv_general_dilated_local", "conv_general_dilated_p",
    "conv_general_dilated_patches", "conv_general_permutations", "conv_general_shape_tuple",
    "conv_shape_tuple", "conv_transpose", "conv_transpose_shape_tuple",
    "conv_with_general_padding", "convert_element_type", "convert_element_type_p", "copy_p",
    "cos", "cos_p", "cosh", "cosh_p", "create_token", "create_token_p", "cumlogsumexp",
    "cumlogsumexp_p", "cummax", "cummax_p", "cummin", "cummin_p", "cumprod", "cumprod_p",
    "cumsum", "cumsum_p", "custom_linear_solve", "custom_root", "dce_sink", "dce_sink_p",
    "device_put_p", "digamma", "digamma_p", "div", "div_p", "dot", "dot_general",
    "dot_general_p", "dtype", "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim",
    "dynamic_slice_p", "dynamic_update_index_in_dim", "dynamic_update_slice",
    "dynamic_update_slice_in_dim", "dynamic_update_slice_p", "empty", "eq", "eq_p", "eq_to_p",
    "erf", "erf_inv", "erf_inv_p", "erf_p", "erfc", "erfc_p", "exp", "exp2", "exp2_p", "exp_p",
    "expand_dims", "expm1", "expm1_p", "fft", "fft_p", "floor", "floor_p", "fori_loop", "full",
    "full_like", "gather", "gather_p", "ge", "ge_p", "gt", "gt_p", "igamma", "igamma_grad_a",
    "igamma_grad_a_p", "igamma_p", "igammac", "igammac_p", "imag", "imag_p", "index_in_dim",
    "index_take", "integer_pow", "integer_pow_p", "iota", "iota_p", "is_finite", "is_finite_p",
    "le", "le_p", "le_to_p", "lgamma", "lgamma_p", "linalg", "linear_solve_p", "log", "log1p",
    "log1p_p", "log_p", "logistic", "logistic_p", "lt", "lt_p", "lt_to_p", "map", "max",
    "max_p", "min", "min_p", "mul", "mul_p", "mulhi", "mulhi_p", "ne", "ne_p", "neg", "neg_p",
    "nextafter", "nextafter_p", "not_p", "optimization_barrier", "optimization_barrier_p",
    "or_p", "pad", "pad_p", "padtype_to_pads", "pbroadcast", "pcast", "platform_dependent",
    "pmax", "pmax_p", "pmean", "pmin", "pmin_p", "polygamma", "polygamma_p", "population_count",
    "population_count_p", "pow", "pow_p", "ppermute", "ppermute_p", "precv", "psend",
    "pshuffle", "psum", "psum_p", "psum_scatter", "pswapaxes", "ragged_all_to_all",
    "ragged_all_to_all_p",
    "ragged_dot", "ragged_dot_general", "random_gamma_grad", "random_gamma_grad_p",
    "real", "real_p", "reciprocal",
    "reduce", "reduce_and", "reduce_and_p", "reduce_max", "reduce_max_p", "reduce_min",
    "reduce_min_p", "reduce_or", "reduce_or_p", "reduce_p", "reduce_precision",
    "reduce_precision_p", "reduce_prod", "reduce_prod_p", "reduce_sum", "reduce_sum_p",
    "reduce_window", "reduce_window_max_p", "reduce_window_min_p", "reduce_window_p",
    "reduce_window_shape_tuple", "reduce_window_sum_p", "reduce_xor", "reduce_xor_p",
    "regularized_incomplete_beta_p", "rem", "rem_p", "reshape", "reshape_p", "rev", "rev_p",
    "rng_bit_generator", "rng_bit_generator_p", "rng_uniform", "rng_uniform_p", "round",
    "round_p", "rsqrt", "rsqrt_p", "scaled_dot", "scan", "scan_p", "scatter", "scatter_add",
    "scatter_add_p", "scatter_apply", "scatter_max", "scatter_max_p", "scatter_min",
    "scatter_min_p", "scatter_mul", "scatter_mul_p", "scatter_p", "scatter_sub",
    "scatter_sub_p", "select", "select_and_gather_add_p", "select_and_scatter_add",
    "select_and_scatter_add_p", "select_and_scatter_p", "select_n", "select_n_p", "shape_as_value",
    "sharding_constraint_p", "shift_left", "shift_left_p", "shift_right_arithmetic",
    "shift_right_arithmetic_p", "shift_right_logical", "shift_right_logical_p", "sign",
    "sign_p", "sin", "sin_p", "sinh", "sinh_p", "slice", "slice_in_dim", "slice_p", "sort",
    "sort_key_val", "sort_p", "split", "split_p", "sqrt", "sqrt_p", "square", "square_p",
    "squeeze", "squeeze_p", "stack", "stack_p", "stage", "stage_p", "stop_gradient",
    "stop_gradient_p", "sub", "sub_p", "switch", "tan", "tan_p", "tanh", "tanh_p", "tile",
    "tile_p", "top_k", "top_k_p", "transpose", "transpose_p", "unstack", "unstack_p",
    "while_loop", "while_p", "with_sharding_constraint", "xor_p", "zeta", "zeta_p",
]
