"""Sizes from which the compiler cuts, blocks, shares out or streams, made small.

For tools/fuzz.py (`--small`): what is made for arrays of megabytes is reached by arrays of a few
hundred elements, whose references are quickly computed. `lower()` sets them in this process, before
anything is compiled; programs of a disk cache would be those of other sizes. What would break it: a
size that a kernel's code relies on, where these are only what was measured to pay.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import ModuleType

SMALL: dict[str, dict[str, object]] = {
    "passes.prefetch": {"LARGE": 1 << 9, "ROW": 1 << 12, "looks_ahead": lambda: True},
    "passes.rolling": {
        "LEAST_BYTES": 0, "LEAST_ROW_BYTES": 0, "FEWEST_ROWS": 8, "CHUNK_ROWS": range(8, 3, -1)
    },
    # Smaller results need not begin at a line.
    "passes.stream": {"RESULT_BYTES": 1 << 16, "TEMPORARY_BYTES": 1 << 16},
    "passes.tile_staged": {"_LARGE": 1 << 10, "_BESIDE": 1 << 9},
    "passes.parallelize": {"_WORTH": 200, "_CHUNK": 100},
    "regions.control": {"LARGE_CARRIES": 1 << 9, "TURNING_BYTES": 1 << 8},
    "fusion.chains": {"FEWEST_ELEMENTS": 8},
    "fusion.recompute": {"LARGE": 1 << 9, "PIECE": 16},
    "lower.core": {"PARALLEL_WORK": 1 << 8, "CHUNK_WORK": 1 << 6},
    "lower.columns": {
        "PARALLEL_WORK": 1 << 8, "LARGE": 1 << 12, "BLOCK_ELEMENTS": 1 << 8, "BLOCK_BYTES": 1 << 9,
        "NEAR": 1 << 8, "STACK_SCRATCH": 1 << 8,
    },
    "lower.chunks": {
        "STACK_SCRATCH": 1 << 7, "LARGE": 1 << 8, "FEWEST_ROWS": 8, "FEWEST_ELEMENTS": 1 << 6
    },
    "kernels.cumulative": {"PIECE_BYTES": 1 << 8, "PARALLEL_BYTES": 1 << 9, "BLOCK_BYTES": 1 << 7},
    "kernels.fft": {"_PARALLEL": 50, "_CHIRP": 16, "_LARGE": 1 << 8, "_FAR": 1 << 10},
    "kernels.fft_chirp": {"_PARALLEL": 64},
    "kernels.fft_long": {"_PARALLEL": 64},
    "kernels.scatter": {"COPIES_FROM": 1 << 4},
    "kernels.sorting.sort": {"PARALLEL_ELEMENTS": 1 << 6},
    "kernels.products.dot": {
        "SMALLEST": 16, "SMALLEST_BATCHED": 32, "SMALLEST_COMPLEX": 64, "LARGE_MATRIX": 1 << 8
    },
    "kernels.products.gemm": {
        "PARALLEL_FLOPS": 1000, "CLAIM_FLOPS": 500, "PLAIN_DEPTH": 64, "PART_DEPTH": 32
    },
    "kernels.products.vecmat": {"PARALLEL_BYTES": 1 << 9},
    "kernels.products.matvec": {"PART_DEPTH": 1 << 8},
    "passes.tile": {"_SHARED": 1 << 9, "_SMALL": 1 << 6},
    "passes.flat_rows": {"_SMALL": 1 << 6},
    "passes.long_sums": {"_LONG": 1 << 5},
    "passes.vectorize": {"_WORTH_ROWS": 100, "_SCRATCH_BYTES": 1 << 10},
    "fusion.turned": {"LARGE": 1 << 8, "SMALLEST": 1 << 5},
    "fusion.added_parts": {"FEWEST": 16},
    "regions.element_jaxprs": {"FEWEST": 16},
    "regions.chain": {"MOST_SCRATCH": 1 << 10},
    "lower.update": {"MANY_PLACES": 4},
    "lower.rows": {"STACK_SCRATCH": 1 << 7},
    "graph.rejoined": {"MANY": 4},
    "kernels.sorting.long": {"LONG": 1 << 9},
    "kernels.sorting.quarters": {"SHORT": 1 << 9},
    "kernels.linalg.large": {"PANEL": 4, "LEAST_ROWS": 12},
    "kernels.linalg.lapack": {"PARALLEL_FLOPS": 100},
    "kernels.linalg.side_by_side": {"_PARALLEL": 50},
    "pipeline": {"MODULE_LINES": 40, "SHARED_LINES": 10},
    "program.buffers": {"LEAST_HOST": 64, "SPLIT": 1.0},
}  # fmt: skip


def small() -> Iterator[tuple[ModuleType, str, object]]:
    """(module, name, small value) of each size."""
    for name, sizes in SMALL.items():
        module = importlib.import_module(f"numjet.cpu.{name}")
        for size, value in sizes.items():
            if not hasattr(module, size):
                raise AttributeError(f"{module.__name__} has no {size}: tools/fuzzing/sizes.py")
            if type(getattr(module, size)) is not type(value):
                raise TypeError(f"{module.__name__}.{size} is no {type(value).__name__} any more")
            yield module, size, value


def lower() -> None:
    """Make all of these sizes small for the rest of the process."""
    for module, size, value in small():
        setattr(module, size, value)
