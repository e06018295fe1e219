"""numjet.experimental.sparse: arrays given by the elements that are not zero.

`bcoo.py` has `BCOO`, by coordinates, `operations.py` what is done with it, `bcsr.py` `BCSR`,
matrices by rows, `transform.py` functions of dense arrays run on sparse ones, `ad.py` derivatives
with respect to their values, `convolution.py` convolutions. `coo.py` and `csr.py` have the older
formats `COO`, `CSR` and `CSC`, `linalg.py` solves and eigenvalues, `primitives.py` operations as
primitives.
"""

from __future__ import annotations

from numjet.base.class_names import is_own as _is_own
from numjet.experimental.sparse import linalg as linalg
from numjet.experimental.sparse.ad import (
    grad as grad,
    jacfwd as jacfwd,
    jacobian as jacobian,
    jacrev as jacrev,
    value_and_grad as value_and_grad,
)
from numjet.experimental.sparse.api import (
    empty as empty,
    eye as eye,
    todense as todense,
    todense_p as todense_p,
)
from numjet.experimental.sparse.bcoo import (
    BCOO as BCOO,
    JAXSparse as JAXSparse,
    bcoo_fromdense as bcoo_fromdense,
    bcoo_todense as bcoo_todense,
)
from numjet.experimental.sparse.bcsr import (
    BCSR as BCSR,
    bcsr_broadcast_in_dim as bcsr_broadcast_in_dim,
    bcsr_concatenate as bcsr_concatenate,
    bcsr_dot_general as bcsr_dot_general,
    bcsr_extract as bcsr_extract,
    bcsr_fromdense as bcsr_fromdense,
    bcsr_sum_duplicates as bcsr_sum_duplicates,
    bcsr_todense as bcsr_todense,
)
from numjet.experimental.sparse.convolution import (
    bcoo_conv_general_dilated as bcoo_conv_general_dilated,
)
from numjet.experimental.sparse.coo import (
    COO as COO,
    coo_fromdense as coo_fromdense,
    coo_fromdense_p as coo_fromdense_p,
    coo_matmat as coo_matmat,
    coo_matmat_p as coo_matmat_p,
    coo_matvec as coo_matvec,
    coo_matvec_p as coo_matvec_p,
    coo_todense as coo_todense,
    coo_todense_p as coo_todense_p,
)
from numjet.experimental.sparse.csr import (
    CSC as CSC,
    CSR as CSR,
    csr_fromdense as csr_fromdense,
    csr_fromdense_p as csr_fromdense_p,
    csr_matmat as csr_matmat,
    csr_matmat_p as csr_matmat_p,
    csr_matvec as csr_matvec,
    csr_matvec_p as csr_matvec_p,
    csr_todense as csr_todense,
    csr_todense_p as csr_todense_p,
)
from numjet.experimental.sparse.layouts import (
    SparseEfficiencyError as SparseEfficiencyError,
    SparseEfficiencyWarning as SparseEfficiencyWarning,
    bcoo_broadcast_in_dim as bcoo_broadcast_in_dim,
    bcoo_concatenate as bcoo_concatenate,
    bcoo_dynamic_slice as bcoo_dynamic_slice,
    bcoo_reshape as bcoo_reshape,
    bcoo_rev as bcoo_rev,
    bcoo_slice as bcoo_slice,
    bcoo_sort_indices as bcoo_sort_indices,
    bcoo_squeeze as bcoo_squeeze,
    bcoo_sum_duplicates as bcoo_sum_duplicates,
    bcoo_transpose as bcoo_transpose,
    bcoo_update_layout as bcoo_update_layout,
)
from numjet.experimental.sparse.operations import (
    bcoo_dot_general as bcoo_dot_general,
    bcoo_dot_general_sampled as bcoo_dot_general_sampled,
    bcoo_extract as bcoo_extract,
    bcoo_gather as bcoo_gather,
    bcoo_multiply_dense as bcoo_multiply_dense,
    bcoo_multiply_sparse as bcoo_multiply_sparse,
    bcoo_reduce_sum as bcoo_reduce_sum,
)
from numjet.experimental.sparse.primitives import (
    bcoo_dot_general_p as bcoo_dot_general_p,
    bcoo_dot_general_sampled_p as bcoo_dot_general_sampled_p,
    bcoo_extract_p as bcoo_extract_p,
    bcoo_fromdense_p as bcoo_fromdense_p,
    bcoo_sort_indices_p as bcoo_sort_indices_p,
    bcoo_spdot_general_p as bcoo_spdot_general_p,
    bcoo_sum_duplicates_p as bcoo_sum_duplicates_p,
    bcoo_todense_p as bcoo_todense_p,
    bcoo_transpose_p as bcoo_transpose_p,
    bcsr_dot_general_p as bcsr_dot_general_p,
    bcsr_extract_p as bcsr_extract_p,
    bcsr_fromdense_p as bcsr_fromdense_p,
    bcsr_todense_p as bcsr_todense_p,
)
from numjet.experimental.sparse.random import random_bcoo as random_bcoo
from numjet.experimental.sparse.transform import sparsify as sparsify
from numjet.experimental.sparse.util import CuSparseEfficiencyWarning as CuSparseEfficiencyWarning


def __dir__() -> list[str]:
    return [name for name, x in globals().items() if not name.startswith("_") and _is_ours(x)]


def _is_ours(x: object) -> bool:
    kind = x if isinstance(x, type) else type(x)
    return _is_own(kind) or hasattr(x, "__module__") and _is_own(x)
