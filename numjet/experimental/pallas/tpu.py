"""numjet.experimental.pallas.tpu: what kernels written for TPUs need to run here.

Memories are kept as words: there is one. Semaphores, copies between memories and between chips, and
the TPU's own random numbers are not there.
"""

from __future__ import annotations

import enum
from typing import Any

from numjet.experimental.pallas.blocks import (
    CompilerParams as CompilerParams,
    GridSpec,
    MemorySpace as MemorySpace,
    no_block_spec,
)
from numjet.experimental.pallas.triton import load as load, store as store
from numjet.numpy import roll as _roll


class _Memory:
    """A memory of a TPU. Called with a shape and a dtype it gives a MemoryRef.

    >>> from numjet.experimental.pallas import tpu
    >>> tpu.VMEM((2, 3), "float32").shape
    (2, 3)
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, shape: Any, dtype: Any) -> Any:
        return MemorySpace.DEFAULT(shape, dtype)

    def __repr__(self) -> str:
        return self.name


VMEM, SMEM, HBM, CMEM = map(_Memory, ("vmem", "smem", "hbm", "cmem"))
InterpretParams = CompilerParams


class GridDimensionSemantics(enum.Enum):
    """Whether the points along an axis of the grid may run in any order on a TPU; kept."""

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


PARALLEL, ARBITRARY = GridDimensionSemantics.PARALLEL, GridDimensionSemantics.ARBITRARY
CORE_PARALLEL = GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL = GridDimensionSemantics.SUBCORE_PARALLEL


class PrefetchScalarGridSpec(GridSpec):
    """A grid whose index maps see the first operands, as references behind the grid's indices.

    num_scalar_prefetch: how many operands these are; the kernel gets them first. grid, in_specs
    (of the others), out_specs, scratch_shapes: as GridSpec has them.

    >>> from numjet.experimental.pallas import tpu
    >>> tpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(4,)).grid
    (4,)
    """

    def __init__(
        self,
        num_scalar_prefetch: int,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ) -> None:
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


def roll(x: Any, shift: Any, axis: int, *, stride: Any = None, stride_axis: Any = None) -> Any:
    """`x` with its elements moved along an axis; those that leave it enter at its other end.

    x: an array. shift: an integer, may be traced. axis: an integer. stride, stride_axis: None.

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental.pallas import tpu
    >>> print(tpu.roll(jnp.arange(4), 1, 0))
    [3 0 1 2]
    """
    if stride is not None or stride_axis is not None:
        raise NotImplementedError("tpu.roll: stride is not there. Leave it and stride_axis away.")
    return _roll(x, shift, axis)


__all__ = ["ARBITRARY", "CMEM", "CORE_PARALLEL", "HBM", "PARALLEL", "SMEM", "SUBCORE_PARALLEL",
           "VMEM", "CompilerParams", "GridDimensionSemantics", "InterpretParams", "MemorySpace",
           "PrefetchScalarGridSpec", "load", "roll", "store"]  # fmt: skip
