"""Which results a kernel writes with non-temporal stores.

A store to a line that no cache holds reads the line first, and a result much larger than the caches
is gone from them before anybody reads it: writing whole lines straight to memory saves a third
to a half of the traffic. `streamed(step)` chooses by size and place; the emitter uses such stores
where they fill whole lines. Needs: planned buffers. What would break it: a result that begins at
no multiple of ALIGNMENT though its place here says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from numjet.base.record import replace
from numjet.cpu.graph.nodes import Val
from numjet.cpu.loops.ir import Kernel, Load, exprs
from numjet.cpu.program.buffers import ALIGNMENT
from numjet.cpu.program.steps import KernelStep, Step, place_of

# Measured on two cores with 2 MB of second-level cache each (and 260 MB of a third one that many
# share): filling 8 MB took 0.43 ms with ordinary stores and 0.37 with these, 16 MB 0.88 and 0.51,
# 64 MB 5.9 and 2.9; transposing 64 MB 25 and 5.4. Results of a program from here on; its
# temporaries, which it reads again, only where a large third-level cache cannot hold them.
RESULT_BYTES = 16 << 20
TEMPORARY_BYTES = 64 << 20


def may_stream(step: Step) -> bool:
    """Whether `streamed` depends on where the step's values lie, which is decided late."""
    return any([v.nbytes >= RESULT_BYTES for v in step.writes])


def streamed(step: Step) -> tuple[int, ...]:
    """The operands of `step`, by number, that are stored non-temporally."""
    if type(step) is not KernelStep or not may_stream(step):
        return ()
    written = [v for v in step.writes if worth_streaming(v, step.reads)]
    return tuple([next(k for k, x in enumerate(step.operands) if x is v) for v in written])


def worth_streaming(written: Val, reads: Sequence[Val]) -> bool:
    """Whether what a step that reads `reads` writes here, line by line, bypasses the caches."""
    if written.nbytes < RESULT_BYTES:
        return False
    place = place_of(written)
    slot = place.slot.owner()
    # What was just read lies in the caches: writing in place stays there.
    if place.terms or slot in {place_of(v).slot.owner() for v in reads}:
        return False
    least = RESULT_BYTES if slot.kind == "output" else TEMPORARY_BYTES
    fits = slot.kind in ("output", "arena") and written.nbytes >= least
    return fits and (slot.offset + place.offset) % ALIGNMENT == 0


def stream(kernel: Kernel, operands: tuple[int, ...]) -> Kernel:
    """The kernel with a note of the buffers that are stored non-temporally; names stay apart."""
    read = {e.buffer for e in exprs(kernel.body) if isinstance(e, Load)}
    chosen = frozenset(kernel.buffers[k] for k in operands) - read
    return replace(kernel, name=f"{kernel.name}_stream", notes={**kernel.notes, "stream": chosen})
