"""What kernels that call LAPACK share: calls, transposed matrices, batches cut over the threads.

LAPACK sees matrices column by column, so that a C-contiguous one is transposed into scratch memory
and its factors are transposed back. A batch runs over the thread pool; each routine itself runs on
one thread (`cpu.runtime.blas`). For: `cholesky`, `factors`, `spectral`. What would break it: a
matrix of 2^31 rows, or a task that takes more scratch than its `Scratch` counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from numjet.base.record import record
from numjet.cpu import host
from numjet.cpu.builder.builder import Builder, Module, Value, vector
from numjet.cpu.graph.nodes import Node, Val
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.idioms import lanes_of, parallel_call, prefix_mask, size_of, transpose_block
from numjet.cpu.link import link
from numjet.cpu.program.steps import SpecialStep, Step
from numjet.cpu.program.values import Values

TURN_PREFIX = "nj_turn_"
# Operations of a batch below which the pool costs more than it brings: LAPACK does about two of
# them a nanosecond with small matrices.
PARALLEL_FLOPS = 100_000


@record(frozen=True, slots=True)
class Element:
    """What LAPACK calls an element type: a letter, the real type, and reals in an element."""

    letter: str
    real: str
    reals: int

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.reals * size_of(self.real)

    @property
    def complex(self) -> bool:
        """Whether it is one."""
        return self.reals == 2


_ELEMENTS = {
    "float32": Element("s", "float", 1),
    "float64": Element("d", "double", 1),
    "complex64": Element("c", "float", 2),
    "complex128": Element("z", "double", 2),
}


def element_of(dtype: np.dtype) -> Element | None:
    """The element type, or None where LAPACK has no such."""
    return _ELEMENTS.get(dtype.name)


class Scratch:
    """The memory of one task: `take` gives the offsets of its parts."""

    def __init__(self) -> None:
        self.nbytes = 0

    def take(self, count: int, size: int) -> int:
        """Where `count` elements of `size` bytes lie."""
        at = self.nbytes
        self.nbytes += -(-max(count, 1) * size // 64) * 64
        return at


One = Callable[..., None]


def each_matrix(
    build: Values, node: Node, one: One, scratch: int, cost: int, inplace: bool = False,
    ndim: int = 2, parts: int = 1,
) -> list[Step]:  # fmt: skip
    """The step that runs `one(builder, operands, results, scratch)` for every element of a batch.

    scratch: bytes of it. cost: operations of one element, which decide about threads. inplace: the
    result may lie in the memory of the last operand, and `one` says what it does then. ndim: axes
    of an element of the first operand. parts: an element is computed in so many; `one` is given the
    part's number, too.
    """
    count = math.prod(node.ins[0].shape[:-ndim])
    tasks, pieces = 1, count * parts
    if pieces > 1 and count * cost >= PARALLEL_FLOPS:
        tasks = min(pieces, 4 * host.cpu_count())
    share = -(-pieces // tasks)
    tasks = -(-pieces // share)
    reads = [build.materialize(v) for v in node.ins]
    outs = list(node.outs)
    ins = len(reads)
    steps = [v.nbytes // count for v in (*reads, *outs)]
    work = [build.temporary(Val((tasks * scratch,), np.dtype(np.uint8)))] if scratch else []

    def emit(b: Builder, ins_: list[Value], outs_: list[Value]) -> None:
        def task(b: Builder, pointers: list[Value], begin: Value, end: Value) -> None:
            with b.loop(begin, end) as each:
                here = pointers[-1]
                if scratch:
                    here = b.gep(here, b.mul(each.index, scratch))
                start = b.mul(each.index, share)
                with b.loop(start, b.min(b.add(start, share), pieces)) as piece:
                    matrix, part = piece.index, tuple[Value, ...]()
                    if parts > 1:
                        matrix, part = b.udiv(matrix, parts), (b.urem(matrix, parts),)
                    places = [
                        b.gep(p, b.mul(matrix, step))
                        for p, step in zip(pointers, steps, strict=False)
                    ]
                    one(b, places[:ins], places[ins:], here, *part)

        grain = 1 if tasks > 1 else tasks
        parallel_call(b, task, [*ins_, *outs_], tasks, grain)

    pairs = [(outs[0], reads[-1])] if inplace else []
    name = node.primitive.name
    return [SpecialStep(name, reads, [*outs, *work], emit, inplace=pairs, flops=count * cost)]


# ------------------------------------------------------------------ calls
def numbers(b: Builder, *values: int) -> list[Value]:
    """Addresses of 32-bit integers."""
    if not values:
        return []
    base = b.module.array(values, "i32")
    return [b.gep(base, 4 * k) for k in range(len(values))]


def call(b: Builder, symbol: str, *args: Value | int | str) -> None:
    """Call a Fortran routine: integers and letters by address, the letters' lengths behind them."""
    integers = iter(numbers(b, *[x for x in args if isinstance(x, int)]))
    spelled = []
    for x in args:
        if isinstance(x, str):
            spelled.append(b.module.string(x))
        else:
            spelled.append(next(integers) if isinstance(x, int) else x)
    lengths = [b.const(1, "i64") for x in args if isinstance(x, str)]
    b.call(symbol, "void", *spelled, *lengths)


class Status:
    """The `info` of a routine: it says whether the routine failed, or was not called at all."""

    def __init__(self, b: Builder) -> None:
        self.place = b.alloca("i32")
        b.store(b.const(-1, "i32"), self.place)

    def failed(self, b: Builder) -> Value:
        """i1."""
        return b.icmp("ne", b.load(self.place, "i32"), 0)

    def refused(self, b: Builder) -> Value:
        """i1: whether the routine was not called, or not with arguments that it takes; what it says
        of a singular matrix does not count."""
        return b.icmp("slt", b.load(self.place, "i32"), 0)


# ------------------------------------------------------------------ memory
def copy(b: Builder, source: Value, target: Value, nbytes: int | Value) -> None:
    """Copy memory, unless it is the same."""
    nbytes = b.value(nbytes, "i64")
    with b.if_(b.icmp("ne", source, target)):
        b.memcpy(target, source, nbytes)


def fill(b: Builder, pointer: Value, count: Value | int, real: str, value: float | Value) -> None:
    """Write `count` equal reals."""
    number = b.value(value, real)
    with b.loop(0, count) as each:
        b.store(number, b.gep(pointer, b.mul(each.index, size_of(real))))


def nan_where(b: Builder, failed: Value, element: Element, parts: Sequence[tuple]) -> None:
    """Where `failed`: NaN in the memory of (pointer, elements, whether they are real) each."""
    with b.if_(failed):
        for pointer, count, real in parts:
            each = 1 if real else element.reals
            reals = count * each if isinstance(count, int) else b.mul(count, each)
            fill(b, pointer, reals, element.real, math.nan)


def finite(b: Builder, pointer: Value, count: int, real: str) -> Value:
    """Whether none of `count` reals is infinite or NaN: 0·x is 0 for all others."""
    lanes = lanes_of(real)
    kind = vector(real, lanes)
    total, whole = b.const(0, kind), count // lanes * lanes
    with b.loop(0, whole, lanes, [total]) as each:
        x = b.load(b.gep(pointer, b.mul(each.index, size_of(real))), kind)
        each.yield_(b.add(each.values[0], b.mul(x, 0.0)))
    total = each.results[0]
    if whole < count:
        at = b.gep(pointer, whole * size_of(real))
        mask = prefix_mask(b, count - whole, lanes)
        total = b.add(total, b.mul(b.masked_load(at, mask, b.const(0, kind)), 0.0))
    return b.not_(b.any(b.fcmp("uno", total, total)))


def turn(b: Builder, element: Element | int, source: Value, target: Value, rows: int, columns: int,
         step: int | None = None, to: int | None = None) -> None:  # fmt: skip
    """target[j, i] = source[i, j]; step, to: elements from row to row, those of a row when None.

    element: or the size of one in bytes.
    """
    size = element if isinstance(element, int) else element.size
    steps = (columns if step is None else step, rows if to is None else to)
    symbol = f"{TURN_PREFIX}{8 * size}"
    b.call(
        symbol, "void", source, target, b.const(rows, "i64"), b.const(columns, "i64"),
        *[b.const(x * size, "i64") for x in steps],
    )  # fmt: skip


def prepare(element: Element) -> None:
    """Begin to compile what turns matrices."""
    libraries.start(f"{TURN_PREFIX}{8 * element.size}")


def _turn(bits: str) -> Module:
    """(source, target, rows, columns, bytes from row to row of both): squares in registers."""
    kind = {"32": "i32", "64": "i64", "128": "<2 x i64>"}[bits]
    size = int(bits) // 8
    module = Module(link.features())
    b = Builder(
        module, libraries.ENTRY,
        [("source", "ptr"), ("target", "ptr noalias"), ("rows", "i64"), ("columns", "i64"),
         ("step", "i64"), ("to", "i64")],
    )  # fmt: skip
    source, target, rows, columns, step, to = b.args
    side = 1 if size > 8 else min(lanes_of(kind), 8)

    def single(first: Value | int, last: Value, start: Value | int) -> None:
        with b.loop(first, last) as i:
            line, out = b.gep(source, b.mul(i.index, step)), b.gep(target, b.mul(i.index, size))
            with b.loop(start, columns) as j:
                x = b.load(b.gep(line, b.mul(j.index, size)), kind, size_of("i32"))
                b.store(x, b.gep(out, b.mul(j.index, to)), size_of("i32"))

    if side == 1:
        single(0, rows, 0)
        b.ret()
        return module
    block = vector(kind, side)
    most_rows, most_columns = b.and_(rows, -side), b.and_(columns, -side)
    with b.loop(0, most_rows, side) as i:
        line, out = b.gep(source, b.mul(i.index, step)), b.gep(target, b.mul(i.index, size))
        with b.loop(0, most_columns, side) as j:
            place, parts = b.gep(line, b.mul(j.index, size)), []
            for _ in range(side):
                parts.append(b.load(place, block, size))
                place = b.gep(place, step)
            place = b.gep(out, b.mul(j.index, to))
            for part in transpose_block(b, parts):
                b.store(part, place, size)
                place = b.gep(place, to)
    single(0, most_rows, most_columns)
    single(most_rows, rows, 0)
    b.ret()
    return module


libraries.provide(TURN_PREFIX, _turn, direct=lambda rest: True)
