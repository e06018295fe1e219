"""The passes over each kernel of a program, and which kernels are equal.

`Annotated` makes equal kernels one, and has `LOOP_PASSES` choose vector loops and loops for threads
in each. Called by `pipeline`, for some kernels before the program is whole. What would break it:
reordering entries against the comments beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from numjet.base.config import check_ir
from numjet.base.record import replace
from numjet.cpu.loops.ir import Kernel
from numjet.cpu.loops.text import canonical
from numjet.cpu.loops.verify import verify
from numjet.cpu.passes.flat_rows import flat_rows
from numjet.cpu.passes.long_sums import long_sums
from numjet.cpu.passes.parallelize import parallelize
from numjet.cpu.passes.prefetch import prefetch
from numjet.cpu.passes.split_ranges import split_ranges
from numjet.cpu.passes.stream import stream, streamed
from numjet.cpu.passes.tile import tile
from numjet.cpu.passes.vectorize import vectorize
from numjet.cpu.passes.whole_complex import whole_complex
from numjet.cpu.program.steps import KernelStep, Step

LOOP_PASSES: tuple[Callable[[Kernel], Kernel], ...] = (
    whole_complex,  # before the others: they see elements then, not parts
    split_ranges,  # before tile and vectorize, which see loops without computed positions then
    flat_rows,  # before tile, which would take short rows apart
    tile,  # before vectorize: it needs loops that nobody annotated
    vectorize,  # before parallelize: lanes decide what a chunk costs
    parallelize,
    long_sums,  # after parallelize, which cuts what reduces everything; before prefetch, for loads
    prefetch,  # after vectorize: vector loops announce
)
# For kernels that were lowered with their vector loops.
ANNOTATED_PASSES = (split_ranges, *LOOP_PASSES[LOOP_PASSES.index(vectorize) :])


class _Known:
    """A kernel as lowered and as annotated; `text` is what equal ones share, once it is needed."""

    __slots__ = ("kernel", "lowered", "text")

    def __init__(self, lowered: Kernel, kernel: Kernel) -> None:
        self.lowered, self.kernel, self.text = lowered, kernel, ""


class Annotated:
    """The annotated kernels of one program; `fresh_name(hint)` names what had a name already."""

    def __init__(self, fresh_name: Callable[[str], str]) -> None:
        self.fresh_name = fresh_name
        # operands of non-temporal stores, shapes of the buffers -> kernels on such buffers
        self._alike: dict[tuple, list[_Known]] = {}
        self._names: set[str] = set()
        # a kernel as lowered, operands of non-temporal stores -> the same as annotated
        self._made: dict[tuple[Kernel, tuple], Kernel] = {}

    def kernel(self, step: KernelStep) -> Kernel:
        """The annotated kernel of a step."""
        stores, lowered = streamed(step), step.kernel
        made = self._made.get((lowered, stores))
        if made is None:
            alike = self._alike.setdefault((stores, *[b.shape for b in lowered.buffers]), [])
            made = _equal(alike, lowered)
            if made is None:
                made = self._annotate(lowered, stores)
                alike.append(_Known(lowered, made))
            self._made[lowered, stores] = made
        return made

    def _annotate(self, lowered: Kernel, stores: tuple) -> Kernel:
        kernel = lowered
        passes = ANNOTATED_PASSES if kernel.notes.get("annotated") else LOOP_PASSES
        if check_ir.value:
            verify(kernel)
        for change in passes:
            kernel = change(kernel)
            if check_ir.value:
                verify(kernel)
        if stores:
            kernel = stream(kernel, stores)
        if kernel.name in self._names:
            # Changed since it was started: what was written stays, and is not called.
            kernel = replace(kernel, name=self.fresh_name(kernel.name))
        self._names.add(kernel.name)
        return kernel


def _equal(alike: list[_Known], lowered: Kernel) -> Kernel | None:
    """The annotated kernel of one that equals `lowered`, if there is one."""
    if not alike:
        return None
    text = canonical(lowered)
    for other in alike:
        other.text = other.text or canonical(other.lowered)
        if other.text == text:
            return other.kernel
    return None


def annotate(steps: Iterable[Step], annotated: Annotated) -> None:
    """Give each step its annotated kernel."""
    found = [(step, annotated.kernel(step)) for step in steps if isinstance(step, KernelStep)]
    for step, kernel in found:
        step.kernel = kernel
