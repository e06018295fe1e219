"""The operations on sparse arrays as primitives, which are bound with data and indices.

Each is composed of the gathers and scatters that the function of its name does, so that every
transformation knows it; `spinfo` (`util.SparseInfo`) says what the arrays are besides. The
functions themselves bind what these are composed of.
"""

from __future__ import annotations

from typing import Any

from numjet.experimental.sparse import bcsr, layouts, operations
from numjet.experimental.sparse.bcoo import BCOO, bcoo_fromdense, bcoo_todense
from numjet.experimental.sparse.bcsr import BCSR
from numjet.experimental.sparse.util import SparseInfo
from numjet.ops.composed import composed


def _bcoo(data: Any, indices: Any, info: SparseInfo) -> BCOO:
    return BCOO((data, indices), shape=info.shape, indices_sorted=info.indices_sorted,
                unique_indices=info.unique_indices)  # fmt: skip


def _bcsr(data: Any, indices: Any, indptr: Any, info: SparseInfo) -> BCSR:
    return BCSR((data, indices, indptr), shape=info.shape)


def _parts(mat: BCOO) -> list[Any]:
    return [mat.data, mat.indices]


def _as(out: Any, dtype: Any) -> Any:
    return out if dtype is None else out.astype(dtype)


def _product(data: Any, indices: Any, rhs: Any, *, dimension_numbers: Any, lhs_spinfo: SparseInfo,
             preferred_element_type: Any = None) -> Any:  # fmt: skip
    mat = _bcoo(data, indices, lhs_spinfo)
    out = operations.bcoo_dot_general(mat, rhs, dimension_numbers=dimension_numbers)
    return _as(out, preferred_element_type)


def _sparse_product(
    lhs_data: Any, lhs_indices: Any, rhs_data: Any, rhs_indices: Any, *, lhs_spinfo: SparseInfo,
    rhs_spinfo: SparseInfo, dimension_numbers: Any, preferred_element_type: Any = None,
) -> list[Any]:  # fmt: skip
    lhs = _bcoo(lhs_data, lhs_indices, lhs_spinfo)
    rhs = _bcoo(rhs_data, rhs_indices, rhs_spinfo)
    out = operations.bcoo_dot_general(lhs, rhs, dimension_numbers=dimension_numbers)
    return _parts(_as(out, preferred_element_type))


def _by_rows(data: Any, indices: Any, indptr: Any, rhs: Any, *, dimension_numbers: Any,
             lhs_spinfo: SparseInfo, preferred_element_type: Any = None) -> Any:  # fmt: skip
    mat = _bcsr(data, indices, indptr, lhs_spinfo)
    out = bcsr.bcsr_dot_general(mat, rhs, dimension_numbers=dimension_numbers)
    return _as(out, preferred_element_type)


def _rows_fromdense(mat: Any, **params: Any) -> list[Any]:
    found = bcsr.bcsr_fromdense(mat, **params)
    return [found.data, found.indices, found.indptr]


bcoo_todense_p = composed(
    "bcoo_todense", lambda data, indices, *, spinfo: bcoo_todense(_bcoo(data, indices, spinfo))
)
bcoo_fromdense_p = composed(
    "bcoo_fromdense", lambda mat, **params: _parts(bcoo_fromdense(mat, **params)), several=True
)
bcoo_extract_p = composed("bcoo_extract", operations.extracted)
bcoo_transpose_p = composed(
    "bcoo_transpose", several=True,
    function=lambda data, indices, *, permutation, spinfo: _parts(
        layouts.bcoo_transpose(_bcoo(data, indices, spinfo), permutation=permutation)),
)  # fmt: skip
bcoo_sort_indices_p = composed(
    "bcoo_sort_indices", several=True,
    function=lambda data, indices, *, spinfo: _parts(
        layouts.bcoo_sort_indices(_bcoo(data, indices, spinfo))),
)  # fmt: skip
bcoo_sum_duplicates_p = composed(
    "bcoo_sum_duplicates", several=True,
    function=lambda data, indices, *, spinfo, nse: _parts(
        layouts.bcoo_sum_duplicates(_bcoo(data, indices, spinfo), nse)),
)  # fmt: skip
bcoo_dot_general_p = composed("bcoo_dot_general", _product)
bcoo_spdot_general_p = composed("bcoo_spdot_general", _sparse_product, several=True)
bcoo_dot_general_sampled_p = composed(
    "bcoo_dot_general_sampled", operations.bcoo_dot_general_sampled
)
bcsr_todense_p = composed(
    "bcsr_todense",
    lambda data, indices, indptr, *, spinfo: _bcsr(data, indices, indptr, spinfo).todense(),
)
bcsr_fromdense_p = composed("bcsr_fromdense", _rows_fromdense, several=True)
bcsr_extract_p = composed("bcsr_extract", bcsr.bcsr_extract)
bcsr_dot_general_p = composed("bcsr_dot_general", _by_rows)
