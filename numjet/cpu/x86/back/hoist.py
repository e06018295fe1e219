"""Constants of loops in registers that the loops leave free.

An instruction can read a constant from memory as it can a register, so selection and allocation do
without registers for them. But each such read takes a place in the queues of loads and four more
bytes of code: the polynomial loops of elementary functions run a fifth faster with their constants
in registers (Sapphire Rapids). Here, after allocation, the vector registers that nobody has from
the block before a loop to the loop's end take the constants that are read most often, outer loops
first.
"""

from __future__ import annotations

from numjet.cpu.x86.back.allocate import Allocation
from numjet.cpu.x86.back.encode import OPS
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.types import VECTOR, VECTORS
from numjet.cpu.x86.select.jumps import call
from numjet.cpu.x86.select.select import Loop, Selector, Span, successors

_SHAPES = {formats.v3c: formats.v3, formats.v3ct: formats.v3t, formats.vreadc: formats.vread,
           formats.v4c: formats.v4}  # fmt: skip
# Loads that fill a register with one element, which are copies when a register holds them already.
_LOADS = frozenset(
    "vbroadcastss vbroadcastsd vpbroadcastb vpbroadcastw vpbroadcastd vpbroadcastq vmovddup "
    "vmovups vmovss vmovsd".split()
)
_BROADCASTS = {1: "vpbroadcastb", 2: "vpbroadcastw", 4: "vbroadcastss", 8: "vbroadcastsd"}


def hoist(s: Selector, allocation: Allocation) -> None:
    """Rewrite `out`: constants in loops are read from registers that are set before the loops."""
    if any(s.classes[r] == VECTOR for r in allocation.spilled):
        return
    loops = dict.fromkeys([loop for loop in s.loop_of if loop is not None])
    for loop in list(loops):
        outer = loop.parent
        while outer is not None:
            loops[outer] = None
            outer = outer.parent
    if loops:
        _Hoister(s, allocation).run(sorted(loops, key=lambda loop: loop.depth))


class _Use:
    """A constant that a loop reads: how often, by weight, and at which places of `out`."""

    __slots__ = ("data", "one", "places", "weight")

    def __init__(self, data: bytes, one: int) -> None:
        self.data, self.one = data, one
        self.weight = 0.0
        self.places: list[int] = []


class _Hoister:
    def __init__(self, s: Selector, allocation: Allocation) -> None:
        self.s, self.at = s, allocation.at
        # (start, end, register) of what has a vector register.
        self.taken = [
            (s.start[r], s.end[r], self.at[r])
            for r, cls in enumerate(s.classes)
            if cls == VECTOR and r not in s.parent and s.end[r] >= 0
        ]
        self.roots = set(s.parent.values())
        self.inserted: dict[int, list[tuple]] = {}  # behind which instruction of `out`

    def run(self, loops: list[Loop]) -> None:
        """Give registers to the loops' constants, the outermost loops first."""
        for loop in loops:
            before = self._before(loop)
            if before:
                self._loop(loop, before)
        if not self.inserted:
            return
        s, inserted = self.s, sorted(self.inserted.items())
        out: list[tuple] = []
        done = 0
        for k, more in inserted:
            out += s.out[done : k + 1]
            out += more
            done = k + 1
        out += s.out[done:]
        s.out = out

        def moved(place: int) -> int:
            return place + sum([len(more) for k, more in inserted if k < place])

        s.places = [Span(moved(first), moved(end)) for first, end in s.places]

    def _before(self, loop: Loop) -> list[int]:
        """The blocks from which the loop is entered; none if they follow it."""
        first = self.s.function.blocks[loop.lo].label
        found = [
            block.index for block in self.s.function.blocks
            if not loop.lo <= block.index <= loop.hi and first in successors(block)
        ]  # fmt: skip
        return found if all(k < loop.lo for k in found) else []

    def _loop(self, loop: Loop, before: list[int]) -> None:
        s = self.s
        first = s.places[loop.hi].first
        uses, calls = self._uses(loop)
        if not uses:
            return
        # The end of the first block before it: whatever is read there by the branch counts.
        end = s.places[min(before)].first + 1
        free = sorted(set(range(VECTORS.count)) - {
            register for start, stop, register in self.taken if start <= end and stop >= first
        }, reverse=True)
        if calls is None or not free:
            return
        chosen = sorted(uses.values(), key=lambda use: -use.weight)[: len(free)]
        registers = free[: len(chosen)]
        self.taken += [(first, end, register) for register in registers]
        loads = []
        for held, use in enumerate(chosen, self._registers(registers)):
            loads.append(self._load(held, use.data, use.one))
            for place in use.places:
                self._rewrite(place, held)
        for block in before:
            self.inserted.setdefault(s.places[block].first, []).extend(loads)
        for place in calls:
            s.out[place][1].reloads.extend(loads)

    def _rewrite(self, place: int, held: int) -> None:
        """Have an instruction read its constant in a register, or its readers if it is a load."""
        s = self.s
        shape, op, d, a, _, k, z, length, _, imm = s.out[place]
        if op.name not in _LOADS or k != -1:
            s.out[place] = (_SHAPES[shape], op, d, a, held, k, z, length, imm)
            return
        s.out[place] = (formats.vmove, OPS["vmovaps"], d, held, length)
        if d in s.joined or d in s.parent or d in self.roots:
            return
        replaced = {}
        for number in range(s.start[d], place):
            m = s.out[number]
            writes, reads, memory = formats.ROLES.get(m[0], ((), (), 0))
            indexed = memory and d in m[memory][:2]
            if m[0] not in formats.ROLES or indexed or any(m[field] == d for field in writes):
                return
            fields = [field for field in reads if m[field] == d]
            if fields:
                replaced[number] = tuple([
                    held if field in fields else x for field, x in enumerate(m)
                ])
        for number, m in replaced.items():
            s.out[number] = m
        s.out[place] = (formats.vmove, OPS["vmovaps"], held, held, length)

    def _uses(
        self, loop: Loop
    ) -> tuple[dict[tuple[bytes, int], _Use], list[int] | None]:
        """The constants read in the loop by `_key`; its calls, None if some are hot."""
        s = self.s
        uses: dict[tuple[bytes, int], _Use] = {}
        calls: list[int] | None = []
        for index in range(loop.lo, loop.hi + 1):
            block = s.function.blocks[index]
            inner = s.loop_of[index]
            weight = 1e-3 if block.cold else 10.0 ** (inner.depth if inner else 0)
            for place in range(*s.places[index]):
                m = s.out[place]
                if m[0] is call:
                    if block.cold and calls is not None:
                        calls.append(place)
                    else:
                        calls = None
                elif m[0] in _SHAPES:
                    key = _key(m)
                    if key is not None:
                        use = uses.setdefault(key, _Use(*key))
                        use.weight += weight
                        use.places.append(place)
        return uses, calls

    def _registers(self, registers: list[int]) -> int:
        """The first of the virtual registers that are `registers`."""
        made = len(self.s.classes)
        none = self.at.pop()
        self.at += [*registers, none]
        self.s.classes += [VECTOR] * len(registers)
        return made

    def _load(self, held: int, data: bytes, one: int) -> tuple:
        """What sets a register to a constant; one: 1 for one element in all lanes."""
        if one:
            op, length = OPS[_BROADCASTS[len(data)]], VECTORS.length
            return (formats.v3c, op, held, -1, data, -1, 0, length, 0, None)
        length = {16: 0, 32: 1, 64: 2}[len(data)]
        return (formats.v3c, OPS["vmovups"], held, -1, data, -1, 0, length, 0, None)


def _key(m: tuple) -> tuple[bytes, int] | None:
    """(data, whether it is one element for all lanes) of an instruction's constant."""
    data, broadcast = m[4], m[8]
    if len(data) in (1, 2, 4, 8):
        return data, 1
    if broadcast or len(data) not in (16, 32, 64):
        return None
    return data, 0
