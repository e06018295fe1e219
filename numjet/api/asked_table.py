"""Which exception a traced argument raises where JAX asks for its value: the table of `api.asked`.

JAX's functions ask in different ways. `shape`: "Shapes must be 1D sequences of concrete values";
`static`: the argument is one of a function that is compiled, and cannot be hashed; `param`: it is a
parameter of an operation, and cannot; `hash`: it cannot be hashed; `bool`, `integer`, `array`: what
Python or NumPy ask for; `concrete`: none of these. For each function the arguments: `axis` is the
traced value itself, `axis*` a tuple or list that holds some, `axis[]` a traced array with axes.
Asked of JAX 0.10.2 by generated calls of all public functions (`tools/comparison`).
"""

TABLE = """
static lax:
dynamic_update_index_in_dim axis; fft fft_type fft_lengths[]; dynamic_index_in_dim axis keepdims;
static nn:
log_softmax axis; logsumexp keepdims; glu axis; one_hot axis; standardize axis axis[];
logmeanexp axis;
static numpy:
amax keepdims; angle deg; any keepdims; argpartition kth; cov bias rowvar ddof; cumprod axis;
min keepdims; nanmax axis keepdims axis[]; nanmean axis keepdims axis[]; nanmedian axis keepdims;
nanpercentile keepdims axis; nanquantile axis; nanstd axis axis[]; partition kth axis; polyder m;
polyfit deg full cov; polyint m; quantile keepdims axis axis[]; rollaxis axis start; rot90 k axes[];
round decimals; sort axis descending stable; sum keepdims; swapaxes axis1 axis2;
take_along_axis axis; trace axis1 axis2; triu k; vander increasing N; append axis;
argsort axis stable descending; average returned keepdims; count_nonzero axis keepdims axis[];
diagonal offset axis1 axis2; mask_indices k; resize new_shape[] new_shape; around decimals;
diff n axis; intersect1d size return_indices assume_unique; nancumprod axis; nancumsum axis;
nanmin axis keepdims axis[]; nansum axis keepdims; put_along_axis axis inplace;
tril k; unpackbits axis count; unstack axis; digitize right; isin invert assume_unique;
nanvar axis keepdims axis[]; unwrap axis; geomspace endpoint; lexsort axis; nanprod axis keepdims;
packbits axis; amin keepdims; cumsum axis; percentile axis keepdims; setxor1d size; trapezoid axis;
prod keepdims; isclose equal_nan; median axis keepdims; all keepdims; allclose equal_nan;
max keepdims; corrcoef rowvar; mean keepdims; ptp keepdims;
static numpy.linalg:
diagonal offset; matrix_power n; norm ord axis keepdims; svd compute_uv full_matrices; cond p;
matrix_norm keepdims ord; cholesky upper; vector_norm keepdims;
static scipy.linalg:
cholesky lower; convolution_matrix n; dft n; eigh eigvals_only lower; hadamard n; helmert n;
hessenberg calc_q; hilbert n; invhilbert n; invpascal n; pascal n;
solve_triangular trans unit_diagonal lower; svd compute_uv; cho_factor lower; solve lower;
eigh_tridiagonal eigvals_only;
static scipy.ndimage:
map_coordinates order cval;
static scipy.special:
bessel_jn v; log_softmax axis; logsumexp keepdims;
static scipy.stats:
mode axis keepdims; rankdata axis; sem keepdims axis;
static scipy.integrate:
trapezoid axis;
param lax:
argmax axis; argmin axis; associative_scan axis;
broadcast_in_dim broadcast_dimensions* broadcast_dimensions[];
conv_general_dilated window_strides* window_strides[] feature_group_count;
conv_general_dilated_local window_strides* window_strides[]; empty shape* shape[];
pad padding_config*; reduce dimensions* dimensions[]; reduce_sum axes* axes[];
rev dimensions* dimensions[];
slice start_indices* start_indices[] limit_indices* limit_indices[] strides* strides[];
split sizes* sizes[]; tile reps* reps[]; conv_with_general_padding window_strides* window_strides[];
reduce_and axes* axes[]; reduce_prod axes* axes[];
reduce_window window_dimensions* window_dimensions[] window_strides*; approx_max_k k;
reduce_max axes* axes[]; approx_min_k k; reduce_xor axes* axes[]; integer_pow y; sort is_stable;
reduce_min axes* axes[];
param lax.linalg:
lu_pivots_to_permutation permutation_size; qr full_matrices; svd compute_uv;
triangular_solve left_side lower unit_diagonal transpose_a; symmetric_product alpha beta;
schur compute_schur_vectors; eigh lower;
param numpy:
tile reps* reps[] reps;
param scipy.fft:
dct n; idct n;
param random:
split num* num[] num;
shape lax:
broadcast_shapes shapes* shapes[]; conv_general_dilated_local filter_shape* filter_shape[];
conv_general_dilated_patches filter_shape* filter_shape[]; gather slice_sizes* slice_sizes[];
scatter_apply update_shape* update_shape[]; rng_bit_generator shape* shape[];
shape numpy:
fromfunction shape[]; full shape[]; mask_indices n; broadcast_shapes shapes[]; ones_like shape[];
zeros_like shape[]; broadcast_to shape[]; empty shape[]; reshape shape[]; zeros shape[]; diagflat k;
full_like shape[]; empty_like shape[]; ones shape[];
shape random:
pareto shape* shape[];
shape nn.initializers:
constant.init shape* shape[]; _times.init shape* shape[]; variance_scaling.init shape* shape[];
ones shape[]; zeros shape[];
hash numpy.fft:
fft axis; fft2 axes* axes[]; irfft2 axes* axes[]; rfft2 axes* axes[]; fftn axes* axes[]; irfft axis;
rfftn axes* axes[]; irfftn axes* axes[]; ifft2 axes* axes[]; rfft axis; ifft axis;
ifftn axes* axes[];
hash lax:
expand_dims dimensions* dimensions[];
hash nn:
logsumexp axis;
hash scipy.special:
logsumexp axis axis* axis[];
type lax:
broadcast_in_dim shape[]; padtype_to_pads window_shape[]; scan reverse;
type random:
choice shape[];
type scipy.fft:
idctn axes[]; dctn axes[];
type numpy:
tensordot axes* axes axes[];
concrete lax:
broadcasted_iota dimension; conv_general_shape_tuple window_strides* window_strides[];
conv_shape_tuple rhs_shape* rhs_shape[] strides* strides[]; cumlogsumexp axis; cummin axis;
cumprod axis; dynamic_update_slice_in_dim axis;
reduce_window_shape_tuple operand_shape* operand_shape[] window_dimensions*;
reduce_window_shape_tuple window_dimensions[] window_strides* window_strides[] padding*;
dynamic_slice_in_dim axis; index_in_dim axis; reduce_precision exponent_bits mantissa_bits;
cummax axis; cumsum axis; reshape dimensions[];
concrete numpy:
amax axis axis[]; bincount length minlength; delete obj; logspace axis; squeeze axis[];
tril_indices n m k; tril_indices_from k; triu_indices n k m;
array_split indices_or_sections* indices_or_sections[]; average axis[]; diag_indices n ndim;
expand_dims axis[]; indices dimensions* dimensions[]; min axis;
pad pad_width pad_width* pad_width[]; ravel_multi_index dims* dims[];
hsplit indices_or_sections* indices_or_sections[]; linspace axis; max axis[];
moveaxis source[] destination[] destination; prod axis[]; amin axis;
split indices_or_sections* indices_or_sections[]; triu_indices_from k;
vsplit indices_or_sections* indices_or_sections[]; geomspace axis; std axis axis[]; var axis[];
roll axis[]; ptp axis[];
concrete numpy.fft:
fftfreq n;
concrete random:
ball d; orthogonal n m;
concrete scipy.special:
bernoulli n; softmax axis[];
bool lax:
broadcast_in_dim shape*; cummin reverse; cumprod reverse; broadcast sizes* sizes[];
conv_with_general_padding lhs_dilation*; top_k k; conv_general_dilated lhs_dilation*;
bool numpy:
argmax keepdims; argmin keepdims; compress fill_value; extract fill_value; nanargmax keepdims;
repeat total_repeat_length; setxor1d assume_unique;
bool numpy.fft:
rfftfreq n;
bool random:
choice shape*;
bool scipy.signal:
istft nperseg;
bool numpy.linalg:
vector_norm ord;
integer lax:
dynamic_slice_in_dim slice_size; dot_general dimension_numbers*; reshape dimensions*;
sort dimension;
integer numpy:
apply_along_axis axis; concat axis; concatenate axis; cumulative_prod axis; delete axis;
nanargmax axis; nanargmin axis; squeeze axis*; stack axis; take axis; average axis*;
cumulative_sum axis; expand_dims axis*; permute_dims axes* axes[]; max axis*;
moveaxis source* destination*; prod axis*; transpose axes* axes[]; argmax axis; argmin axis; diag k;
amax axis*; unique axis; var axis*; roll axis*; std axis*; ptp axis*;
integer numpy.fft:
rfft2 s* s[]; fft2 s* s[]; irfft2 s* s[]; hfft axis; ihfft axis; ifft2 s* s[];
integer scipy.fft:
idctn axes*; dct axis; idct axis; dctn axes*;
integer random:
permutation axis;
integer scipy.special:
softmax axis*;
array lax:
conv window_strides* window_strides[];
conv_general_dilated_patches window_strides* window_strides[];
conv_general_shape_tuple lhs_shape* lhs_shape[] rhs_shape* rhs_shape[] padding*;
conv_shape_tuple lhs_shape* lhs_shape[] pads*;
conv_transpose_shape_tuple lhs_shape* lhs_shape[] rhs_shape* rhs_shape[];
padtype_to_pads in_shape* in_shape[] window_shape* window_strides* window_strides[];
reduce_window_shape_tuple base_dilation* base_dilation[] window_dilation* window_dilation[];
array numpy:
broadcast_shapes shapes*;
array random:
categorical axis;
"""
