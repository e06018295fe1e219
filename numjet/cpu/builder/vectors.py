"""Loads, stores and vectors: the operations of the function writer on memory and on lanes.

For `builder`. Loads and stores default to the alignment of one element; masks are vectors of i1.
"""

from __future__ import annotations

from collections.abc import Sequence

from numjet.cpu.builder.core import Writer
from numjet.cpu.builder.types import _CONSTANTS, TYPES, Value, const_lanes, vector


def _pieces(mask: Sequence[bool], start: int = 0) -> list[tuple[int, int]]:
    """The lanes of a constant mask as parts of the vector that are whole halves, quarters, ...:
    (first lane, lanes) of each. Without AVX-512 a masked store takes as long as some 40 operations
    (rolled rows of 4 floats took 0.48 ms, in parts 0.21)."""
    if all(mask):
        return [(start, len(mask))]
    if not any(mask):
        return []
    half = len(mask) // 2
    return _pieces(mask[:half], start) + _pieces(mask[half:], start + half)


class LaneWriter(Writer):
    """A writer with loads, stores, gathers, shuffles and reductions."""

    # ---- memory

    def gep(self, base: Value, index: Value | int, element: str = "i8") -> Value:
        """The address `index` elements (bytes by default) after `base`; vectors of them too."""
        if index.__class__ is int and index == 0:
            return base
        index = self.value(index, "i64")
        lanes = TYPES[index.type].lanes or TYPES[base.type].lanes
        type = vector("ptr", lanes)
        instruction = ("getelementptr", type, element, base.type, base.ref, index.type, index.ref)
        return self.pure(instruction, type)

    def load(self, pointer: Value, type: str, align: int | None = None) -> Value:
        """Read a value; `align` defaults to one element's size."""
        align = align or max(TYPES[type].bits // 8, 1)
        return self.put(("load", type, pointer.ref, align), type)

    def store(
        self, value: Value, pointer: Value, align: int | None = None, nontemporal: bool = False
    ) -> None:
        """Write a value; a non-temporal store must be aligned to the whole vector to be one."""
        info = TYPES[value.type]
        align = align or max(info.bits // 8, 1)
        instruction = ("store", value.type, value.ref, pointer.ref, align, nontemporal)
        self.lines.append((None, instruction))

    def memcpy(self, to: Value, source: Value, nbytes: int | Value) -> None:
        """Copy bytes between memories that do not overlap, or are the same."""
        count = self.value(nbytes, "i64")
        self.module.declare("llvm.memcpy.p0.p0.i64", "void", ("ptr", "ptr", "i64", "i1"))
        self.line(
            f"call void @llvm.memcpy.p0.p0.i64(ptr {to.ref}, ptr {source.ref}, "
            f"i64 {count.ref}, i1 false)"
        )

    def memzero(self, to: Value, nbytes: int) -> None:
        """Set bytes to zero."""
        self.module.declare("llvm.memset.p0.i64", "void", ("ptr", "i8", "i64", "i1"))
        self.line(f"call void @llvm.memset.p0.i64(ptr {to.ref}, i8 0, i64 {nbytes}, i1 false)")

    def masked_load(
        self, pointer: Value, mask: Value, other: Value, align: int | None = None
    ) -> Value:
        """Lanes where `mask` holds from memory, the rest from `other`; those are not touched."""
        type = other.type
        name = f"llvm.masked.load.{TYPES[type].mangled}.p0"
        self.module.declare(name, type, ("ptr", "i32", mask.type, type))
        align = align or max(TYPES[type].bits // 8, 1)
        types = ("ptr", "i32", mask.type, type)
        refs = (pointer.ref, str(align), mask.ref, other.ref)
        return self.put(("call", type, f"@{name}", types, refs, ""), type)

    def masked_store(
        self, value: Value, pointer: Value, mask: Value, align: int | None = None
    ) -> None:
        """Write the lanes where `mask` holds."""
        type = value.type
        if mask.ref.startswith("<"):
            pieces = _pieces([lane == "i1 true" for lane in mask.ref[1:-1].split(", ")])
            # A scalar store: LLVM 22 makes one of the source's width when `value` is a truncation
            # (four bytes for one bfloat16), which overwrites the neighbour.
            single = [size for _, size in pieces] == [1]
            few = len(pieces) < TYPES[type].lanes.bit_length()
            if single or (few and not self.module.has("avx512f")):
                for lane, size in pieces:
                    self._store_lanes(value, pointer, lane, size)
                return
        name = f"llvm.masked.store.{TYPES[type].mangled}.p0"
        self.module.declare(name, "void", (type, "ptr", "i32", mask.type))
        align = align or max(TYPES[type].bits // 8, 1)
        types = (type, "ptr", "i32", mask.type)
        refs = (value.ref, pointer.ref, str(align), mask.ref)
        self.lines.append((None, ("call", "void", f"@{name}", types, refs, "")))

    def _store_lanes(self, value: Value, pointer: Value, lane: int, size: int) -> None:
        """Write some neighbouring lanes to their place of the vector at `pointer`."""
        info = TYPES[value.type]
        if lane:
            pointer = self.gep(pointer, lane, info.element)
        part = self.extract(value, lane) if size == 1 else self.slice(value, lane, size)
        self.store(part, pointer, max(info.bits // 8, 1))

    def gather(self, pointers: Value, type: str, mask: Value | None = None) -> Value:
        """Lane k from address k; lanes outside `mask` are 0 and not read."""
        info = TYPES[type]
        mask = mask or _CONSTANTS[True, f"<{info.lanes} x i1>"]
        name = f"llvm.masked.gather.{info.mangled}.v{info.lanes}p0"
        self.module.declare(name, type, (pointers.type, "i32", mask.type, type))
        types = (pointers.type, "i32", mask.type, type)
        refs = (pointers.ref, str(max(info.bits // 8, 1)), mask.ref, "zeroinitializer")
        return self.put(("call", type, f"@{name}", types, refs, ""), type)

    def scatter(self, value: Value, pointers: Value, mask: Value | None = None) -> None:
        """Lane k to address k, in lane order where addresses collide."""
        type = value.type
        info = TYPES[type]
        mask = mask or _CONSTANTS[True, f"<{info.lanes} x i1>"]
        name = f"llvm.masked.scatter.{info.mangled}.v{info.lanes}p0"
        self.module.declare(name, "void", (type, pointers.type, "i32", mask.type))
        types = (type, pointers.type, "i32", mask.type)
        refs = (value.ref, pointers.ref, str(max(info.bits // 8, 1)), mask.ref)
        self.lines.append((None, ("call", "void", f"@{name}", types, refs, "")))

    def prefetch(self, pointer: Value, write: bool = False, locality: int = 3) -> None:
        """Ask for the line at `pointer`; never faults."""
        self.module.declare("llvm.prefetch.p0", "void", ("ptr", "i32", "i32", "i32"))
        types = ("ptr", "i32", "i32", "i32")
        refs = (pointer.ref, str(int(write)), str(locality), "1")
        self.lines.append((None, ("call", "void", "@llvm.prefetch.p0", types, refs, "")))

    def alloca(self, type: str, count: int = 1, align: int = 64) -> Value:
        """Space for `count` values while the function runs (see `finished`)."""
        self.count += 1
        ref = f"%v{self.count}"
        self._allocas.append((ref, type, count, align))
        return Value(ref, "ptr")

    # ---- lanes

    def splat(self, x: Value | float, lanes: int, element: str | None = None) -> Value:
        """`x` in every one of `lanes` lanes (0: x itself); a number needs `element`."""
        if not isinstance(x, Value):
            if element is None:
                raise TypeError("builder: splat of a number needs the element type")
            return _CONSTANTS[x, vector(element, lanes)]
        if not lanes:
            return x
        type = f"<{lanes} x {x.type}>"
        one = self.pure(("insertelement", type, "poison", x.type, x.ref, "i64", "0"), type)
        zeros = (f"<{lanes} x i32>", "zeroinitializer")
        return self.pure(("shufflevector", type, type, one.ref, "poison", *zeros), type)

    def extract(self, x: Value, lane: Value | int) -> Value:
        """One lane as a scalar."""
        lane = self.value(lane, "i64")
        type = TYPES[x.type].element
        return self.pure(("extractelement", type, x.type, x.ref, lane.type, lane.ref), type)

    def insert(self, x: Value, scalar: Value | float, lane: Value | int) -> Value:
        """`x` with one lane replaced."""
        lane = self.value(lane, "i64")
        scalar = self.value(scalar, TYPES[x.type].element)
        return self.pure(
            ("insertelement", x.type, x.ref, scalar.type, scalar.ref, lane.type, lane.ref), x.type
        )

    def shuffle(self, a: Value, b: Value | None, lanes: Sequence[int]) -> Value:
        """Lanes picked from a followed by b; -1 leaves one unspecified."""
        if a.ref.startswith("<i1 ") and b is None:  # a constant mask stays one
            held = a.ref[1:-1].split(", ")
            picked = ", ".join([held[k] if k >= 0 else "i1 false" for k in lanes])
            return Value(f"<{picked}>", f"<{len(lanes)} x i1>")
        other = "poison" if b is None else b.ref
        mask = ", ".join("i32 poison" if k < 0 else f"i32 {k}" for k in lanes)
        type = f"<{len(lanes)} x {TYPES[a.type].element}>"
        order = f"<{len(lanes)} x i32>", f"<{mask}>"
        return self.pure(("shufflevector", type, a.type, a.ref, other, *order), type)

    def concat(self, parts: Sequence[Value]) -> Value:
        """Vectors of one type joined; their number is a power of two."""
        parts = list(parts)
        while len(parts) > 1:
            lanes = 2 * TYPES[parts[0].type].lanes
            parts = [
                self.shuffle(parts[k], parts[k + 1], range(lanes)) for k in range(0, len(parts), 2)
            ]
        return parts[0]

    def slice(self, x: Value, start: int, size: int) -> Value:
        """`size` neighbouring lanes from `start`."""
        return self.shuffle(x, None, range(start, start + size))

    def iota(self, element: str, lanes: int) -> Value:
        """0, 1, 2, … in the lanes (scalar 0 when `lanes` is 0)."""
        return const_lanes(range(lanes), element) if lanes else _CONSTANTS[0, element]

    def reduce(self, op: str, x: Value, start: Value | None = None) -> Value:
        """All lanes combined: add mul min max umin umax and or xor. Float sums may reassociate."""
        info = TYPES[x.type]
        if not info.lanes:
            return x
        result = info.element
        if not info.is_float:
            word = {"min": "smin", "max": "smax"}.get(op, op)
            if result == "i1":
                word = {"min": "and", "max": "or", "umin": "and", "umax": "or"}.get(op, op)
            return self.intrinsic(f"llvm.vector.reduce.{word}", x, result=result)
        if op in ("min", "max"):
            return self.intrinsic(
                f"llvm.vector.reduce.f{op}imum", x, result=result, flags="nsz "
            )
        if start is None:
            start = _CONSTANTS[-0.0 if op == "add" else 1.0, result]
        return self.intrinsic(
            f"llvm.vector.reduce.f{op}", start, x,
            result=result, overload=(x.type,), flags="reassoc ",
        )  # fmt: skip

    def any(self, mask: Value) -> Value:
        """i1: does any lane hold."""
        return self.reduce("or", mask)

    def all(self, mask: Value) -> Value:
        """i1: do all lanes hold."""
        return self.reduce("and", mask)
