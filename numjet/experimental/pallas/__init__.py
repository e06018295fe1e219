"""numjet.experimental.pallas: kernels over blocks of arrays, run as ordinary compiled loops.

`pallas_call` runs a kernel for each point of a grid, on references to blocks of its operands, as
JAX's interpret mode does: the order of the grid is kept, one point after the other. What is meant
for the memories, pipelines and meshes of accelerators (semaphores, `core_map`, `kernel`) is not
there.
"""

from numjet.experimental.pallas.blocks import (
    ANY as ANY,
    HOST as HOST,
    BlockDim as BlockDim,
    Blocked as Blocked,
    BlockSpec as BlockSpec,
    BoundedSlice as BoundedSlice,
    Buffered as Buffered,
    CompilerParams as CompilerParams,
    CostEstimate as CostEstimate,
    DeviceIdType as DeviceIdType,
    Element as Element,
    GridSpec as GridSpec,
    Indirect as Indirect,
    MemoryRef as MemoryRef,
    MemorySpace as MemorySpace,
    RevisitMode as RevisitMode,
    Squeezed as Squeezed,
    no_block_spec as no_block_spec,
    squeezed as squeezed,
)
from numjet.experimental.pallas.call import (
    num_programs as num_programs,
    pallas_call as pallas_call,
    program_id as program_id,
)
from numjet.experimental.pallas.helpers import (
    align_to as align_to,
    broadcast_to as broadcast_to,
    cdiv as cdiv,
    debug_print as debug_print,
    empty as empty,
    empty_like as empty_like,
    empty_ref_like as empty_ref_like,
    estimate_cost as estimate_cost,
    loop as loop,
    multiple_of as multiple_of,
    next_power_of_2 as next_power_of_2,
    reciprocal as reciprocal,
    run_scoped as run_scoped,
    run_state as run_state,
    strides_from_shape as strides_from_shape,
    when as when,
    with_scoped as with_scoped,
)
from numjet.numpy.dynamic_slices import Slice as Slice, ds as ds

dslice = ds

__all__ = [name for name in dir() if not name.startswith("_") and name not in (
    "annotations", "blocks", "call", "helpers")]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__]
