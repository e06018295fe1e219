"""How a kernel sees its operands: blocks of arrays, which of them at each point of the grid.

For `pallas.call`. Sizes of a block are integers, or say how the index map's numbers are meant.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Any

from numjet.core import dtypes
from numjet.core.avals import ShapedArray


@dataclasses.dataclass(frozen=True)
class Blocked:
    """A dimension in blocks of `block_size`, which the index map counts. What lies beyond the
    array's end reads as undefined values and is not written.

    block_size: the elements of a block.
    """

    block_size: int


@dataclasses.dataclass(frozen=True)
class Element:
    """A dimension in blocks of `block_size` that begin at the element the index map names.

    block_size: the elements of a block. padding: undefined elements before and behind the array,
    which the index map counts too.
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)


@dataclasses.dataclass(frozen=True)
class Squeezed:
    """A dimension of which a block has one element, and which the kernel does not see; None is the
    same."""


@dataclasses.dataclass(frozen=True)
class BoundedSlice:
    """Not there: a block of it raises NotImplementedError. block_size: the most elements."""

    block_size: int


@dataclasses.dataclass(frozen=True)
class Indirect:
    """Not there: a block of it raises NotImplementedError. block_size: the elements of a block."""

    block_size: int


BlockDim = Element | Squeezed | Blocked | BoundedSlice | Indirect
squeezed = Squeezed()


class MemorySpace(enum.Enum):
    """Where a block or a buffer lies on an accelerator. Here there is one memory: it is kept.

    Called with a shape and a dtype it gives a MemoryRef.

    >>> from numjet.experimental import pallas as pl
    >>> pl.ANY((2, 3), "float32").shape
    (2, 3)
    """

    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"
    HOST = "host"

    def __str__(self) -> str:
        return self.value

    def __call__(self, shape: Sequence[int], dtype: Any) -> MemoryRef:  # type: ignore[override]
        return MemoryRef(ShapedArray(tuple(shape), dtypes.canonical(dtype)), self)


ANY, HOST = MemorySpace.ANY, MemorySpace.HOST


@dataclasses.dataclass(frozen=True)
class MemoryRef:
    """Shape, dtype and memory of a buffer that a kernel works in: for `scratch_shapes`.

    inner_aval: what says shape and dtype. memory_space: a MemorySpace.
    """

    inner_aval: Any
    memory_space: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self.inner_aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype of an element."""
        return self.inner_aval.dtype


class RevisitMode(enum.Enum):
    """Whether a block of a result may come back later; kept for accelerators."""

    IMMEDIATE = "immediate"
    ANY = "any"


class DeviceIdType(enum.Enum):
    """How devices are numbered between which accelerators' kernels send."""

    MESH = "mesh"
    LOGICAL = "logical"


@dataclasses.dataclass(frozen=True)
class Buffered:
    """How many blocks an accelerator's pipeline holds of an operand; it changes nothing here.

    buffer_count: blocks. use_lookahead, revisit: how the pipeline runs ahead.
    """

    buffer_count: int
    use_lookahead: bool = False
    revisit: RevisitMode | None = None


class CompilerParams:
    """Options for the compilers of accelerators; they change nothing here. args, kwargs: any."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.__dict__.update(kwargs)


@dataclasses.dataclass(frozen=True)
class CostEstimate:
    """What a kernel costs, for a scheduler. flops, transcendentals: operations; bytes_accessed,
    remote_bytes_transferred: bytes."""

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0


class BlockSpec:
    """Which block of an array a kernel sees at each point of the grid.

    block_shape: an integer a dimension, None (one element, the dimension is not seen), or Blocked,
    Element, Squeezed; None for the whole array. index_map: a function of the grid's indices that
    gives a block's number a dimension (its first element for Element); block 0 everywhere unless
    given. pipeline_mode, memory_space: for accelerators.

    >>> from numjet.experimental import pallas as pl
    >>> pl.BlockSpec((8, None), lambda i, j: (i, j)).block_shape
    (8, None)
    """

    def __init__(
        self,
        block_shape: Sequence[Any] | None = None,
        index_map: Callable | None = None,
        pipeline_mode: Buffered | None = None,
        *,
        memory_space: Any = None,
    ) -> None:
        self.block_shape = None if block_shape is None else tuple(block_shape)
        self.index_map, self.pipeline_mode = index_map, pipeline_mode
        self.memory_space = memory_space

    def replace(self, **changes: Any) -> BlockSpec:
        """The same with other fields.

        >>> from numjet.experimental import pallas as pl
        >>> pl.BlockSpec((8,)).replace(block_shape=(4,)).block_shape
        (4,)
        """
        fields = {**self.__dict__, **changes}
        return BlockSpec(fields.pop("block_shape"), fields.pop("index_map"), **fields)

    def __repr__(self) -> str:
        return (
            f"BlockSpec(block_shape={self.block_shape}, index_map={self.index_map}, "
            f"memory_space={self.memory_space}, pipeline_mode={self.pipeline_mode})"
        )


class _NoBlockSpec:
    """What says that an operand is seen whole."""

    def __repr__(self) -> str:
        return "NoBlockSpec"


no_block_spec = _NoBlockSpec()


class GridSpec:
    """The grid of a kernel and the blocks of its operands, as `pallas_call` takes them by name.

    grid: integers, the points along each axis. in_specs, out_specs: trees of BlockSpec.
    scratch_shapes: buffers that the kernel works in.

    >>> from numjet.experimental import pallas as pl
    >>> pl.GridSpec(grid=2).grid
    (2,)
    """

    # The leading operands that index maps see, whole (`pallas.tpu.PrefetchScalarGridSpec`).
    num_scalar_prefetch = 0

    def __init__(
        self,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ) -> None:
        self.grid = tuple(grid) if isinstance(grid, tuple | list) else (grid,)
        self.in_specs, self.out_specs = in_specs, out_specs
        self.scratch_shapes = scratch_shapes

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(grid={self.grid}, in_specs={self.in_specs}, "
            f"out_specs={self.out_specs}, scratch_shapes={self.scratch_shapes})"
        )
