"""Selection of jumps: what ends blocks, the values that meet where they lead, and calls.

A block's last instruction becomes one `Branch`, with the copies that each way needs: `finish`
decides how blocks follow each other. Comparisons that only a branch or a choice reads are written
directly before it and leave their answer in the flags.
"""

from __future__ import annotations

from numjet.core.memo import Memo
from numjet.cpu.x86.back.encode import GPR, OPS
from numjet.cpu.x86.back.opcodes import CONDITIONS
from numjet.cpu.x86.front import formats, instructions as ir
from numjet.cpu.x86.front.parse import split, typed
from numjet.cpu.x86.front.types import (
    GENERAL,
    MASK,
    PTR,
    VECTOR,
    VECTORS,
    Type,
    Unsupported,
    constant,
)  # fmt: skip
from numjet.cpu.x86.select.flags import FLOAT_FLAGS, flags, negated
from numjet.cpu.x86.select.select import (
    INTRINSICS,
    NARROW_INTRINSICS,
    Intrinsic,
    Selector,
    handles,
    size_of,
)

# (destination, source register or -1, constant bytes or number, type)
Copy = tuple[int, int, object, Type]


class Branch:
    """Where control goes: to `then` under `condition` (a number of `CONDITIONS`), else on.

    condition -1 says always. `cases` are (register, size, number, target, copies), compared in
    order before it.
    """

    __slots__ = ("cases", "condition", "otherwise", "otherwise_copies", "then", "then_copies")

    def __init__(
        self, condition: int, then: int, otherwise: int, then_copies: list[Copy],
        otherwise_copies: list[Copy],
    ) -> None:
        self.condition, self.then, self.otherwise = condition, then, otherwise
        self.then_copies, self.otherwise_copies = then_copies, otherwise_copies
        self.cases: list[tuple[int, int, int, int, list[Copy]]] = []


class Call:
    """A call: of a symbol, of code of this module (`label`), or through a register."""

    __slots__ = (
        "arguments", "label", "register", "reloads", "result", "result_type", "saved", "symbol",
    )  # fmt: skip

    def __init__(self) -> None:
        self.symbol = ""
        self.label = self.register = self.result = -1
        self.arguments: list[Copy] = []
        self.result_type: Type | None = None
        self.saved: list[tuple[int, int]] = []  # (register, slot), filled in by `allocate`
        self.reloads: list[tuple] = []  # what `hoist` sets again behind it


def branch(code: object, at: list[int], m: tuple) -> None:
    """(Branch,): written by `finish`, which knows what follows."""
    raise AssertionError


def leap(code: object, at: list[int], m: tuple) -> None:
    """(condition, block, copies): go there if it holds, else on; written by `finish`."""
    raise AssertionError


def call(code: object, at: list[int], m: tuple) -> None:
    """(Call,): written by `finish`, which knows what has to be kept."""
    raise AssertionError


def leave(code: object, at: list[int], m: tuple) -> None:
    """(register or -1, type or None): the end of the function; written by `finish`."""
    raise AssertionError


def copy_of(s: Selector, type: Type, d: int, text: str) -> list[Copy]:
    """What sets `d` to an operand, part by part."""
    if text[0] == "%":
        r = s.need(text)
        return [(d + k, r + k, None, type) for k in range(type.parts)]
    if text in ("poison", "undef"):
        return []
    if text[0] == "@":
        return [(d, -1, s.labels.get(text, text[1:]), type)]
    value = constant(type, text)
    return [(d + k, -1, (value, k), type) for k in range(type.parts)]


def _edge(s: Selector, target: str, latch: bool) -> list[Copy]:
    """The copies into the phis of `target` on the way from here; wishes to do without them."""
    block = s.blocks[target]
    copies: list[Copy] = []
    here = s.block
    back = block.index <= here.index
    wishes = []
    for phi in block.phis:
        _, name, _, type, incoming = phi
        if s.counts[name] < 2 or (not back and name not in s.reg):
            continue
        fresh = name not in s.reg
        if fresh:
            s.reg[name] = s.new(type.cls, type.parts)
        p = s.reg[name]
        for part in range(p, p + type.parts):
            s.joined.add(part)
            s.end[part] = len(s.out)
            if back:
                loop = s.loop
                while loop is not None and loop.lo != block.index:
                    loop = loop.parent
                if loop is not None:
                    s.start[part] = min(s.start[part], loop.place)
        source = incoming[here.label]
        made = s.defs.get(source) if source[0] == "%" else None
        if (
            made is not None and made.block == here.index and made.op not in ("phi", "argument")
            and made.type.parts == type.parts
            and (source not in s.reg if not back else fresh or latch)
            and source not in s.merge
        ):  # fmt: skip
            wishes.append((source, p))
        copies += copy_of(s, type, p, source)
    for source, p in wishes:
        if source not in s.merge and s.reg[source] not in s.joined:
            s.merge[source] = (p, s.weight[p])
    return copies


def _unwish(s: Selector, copies: list[Copy]) -> None:
    """Take back wishes to write, before a branch, registers that copies on its ways still read."""
    read = {r for d, r, _, _ in copies if r >= 0 and r != d}
    for source in list(s.merge):
        p = s.merge[source][0]
        if any([p + k in read for k in range(s.defs[source].type.parts)]):
            del s.merge[source]


def _follow(s: Selector, header: str, after: str) -> None:
    """Wish that what a loop leaves in the phis behind it stays where the loop carries it.

    That may be where the only other way there is the one that goes past the loop: it sets the
    register instead of entering.
    """
    here = s.block.label
    for phi in s.blocks[after].phis:
        name, incoming = phi.name, phi.incoming
        source = incoming[here]
        others = [label for label in incoming if label != here]
        if source not in s.merge or source in s.follow or name not in s.reg or len(others) != 1:
            continue
        term = s.blocks[others[0]].term
        if type(term) is ir.CondBr and {term.then, term.otherwise} == {header, after}:
            s.follow[source] = name


@handles("br")
def br(s: Selector, instruction: ir.Br) -> None:
    target = s.blocks[instruction.label]
    copies = _edge(s, instruction.label, True)
    _unwish(s, copies)
    s.emit((branch, Branch(-1, target.index, -1, copies, [])))


@handles("cbr")
def cbr(s: Selector, instruction: ir.CondBr) -> None:
    _, _, _, _, condition, then, otherwise = instruction
    # The way back first: what it carries matters most.
    back = s.blocks[otherwise].index <= s.block.index
    if back:
        second = _edge(s, otherwise, False)
        first = _edge(s, then, False)
    else:
        first = _edge(s, then, False)
        second = _edge(s, otherwise, False)
    _unwish(s, first + second)
    if back or s.blocks[then].index <= s.block.index:
        _follow(s, *((otherwise, then) if back else (then, otherwise)))
    made = Branch(0, s.blocks[then].index, s.blocks[otherwise].index, first, second)
    s.emit((branch, made))
    two = _joined(s, condition)
    if two is not None:
        way = (made.then, first) if two.op == "or" else (made.otherwise, second)
    # What `hoist` sets before a loop stands before the last jump alone.
    if two is not None and (way[0] <= s.block.index or not s.heads(way[0])):
        # Each condition has a jump of its own.
        made.condition = CONDITIONS[flags(s, two.b)]
        place = len(s.out)
        s.emit(())
        found = flags(s, two.a)
        number = CONDITIONS[found if two.op == "or" else negated(found)]
        s.out[place] = (leap, number, *way)
        return
    made.condition = CONDITIONS[flags(s, condition)]


@handles("switch")
def switch(s: Selector, instruction: ir.Switch) -> None:
    _, _, _, type, value, default, choices = instruction
    made = Branch(-1, s.blocks[default].index, -1, _edge(s, default, False), [])
    x = s.general(type, value)
    for number, label in choices:
        if not -(1 << 31) <= number < 1 << 31:
            raise Unsupported("switch on large numbers")
        copies = _edge(s, label, False)
        made.cases.append((x, size_of(type), number, s.blocks[label].index, copies))
    _unwish(s, made.then_copies + [copy for case in made.cases for copy in case[4]])
    if type.bits < 32:
        raise Unsupported(f"switch on {type.text}")
    s.emit((branch, made))


@handles("ret")
def ret(s: Selector, instruction: ir.Ret) -> None:
    type, value = instruction.type, instruction.value
    copies: list[Copy] = []
    if type is not None and value is not None:
        if type.cls == MASK:
            raise Unsupported("a mask as a result")
        copies = copy_of(s, type, -1, value)
    s.emit((leave, copies, type))


@handles("unreachable")
def unreachable(s: Selector, instruction: ir.Unreachable) -> None:
    s.emit((leave, [], None))


# -- choices between scalars


@handles("select", classes=(GENERAL,))
def choose(s: Selector, instruction: ir.Select) -> None:
    """select between numbers in general registers."""
    _, name, _, type, condition, a, b, _ = instruction
    d = s.define(name)
    size = size_of(type)
    if _by_two(s, d, type, condition, a, b):
        return
    if b[0] == "%" and b not in s.reg and a[0] == "%" and s.tie(b, d):
        x, keep = s.general(type, a), b
    elif a[0] == "%" and s.tie(a, d):
        x, keep = s.general(type, b), a
    else:
        x, keep = s.general(type, a), b
        place = len(s.out)
        s.emit(())
        # Copies leave the flags alone; they come last, since `d` may be compared.
        s.end[d] = len(s.out)
        for copy in copy_of(s, type, d, keep):
            _set_general(s, copy)
        found = flags(s, condition)
        s.out[place] = (formats.g2t, GPR["cmov" + found], size, d, x)
        return
    place = len(s.out)
    s.emit(())
    found = flags(s, condition)
    if keep == a:
        found = negated(found)
    s.out[place] = (formats.g2t, GPR["cmov" + found], size, d, x)


def _by_two(s: Selector, d: int, type: Type, condition: str, a: str, b: str) -> bool:
    """Write d = a or b by two comparisons that `and` or `or` join: by two choices."""
    made = _joined(s, condition)
    if made is None:
        return False
    if made.op == "or":
        a, b = b, a
    t = s.new(GENERAL) if d in s.joined else d  # what is compared may be in d
    if t != d:
        s.put(d, (formats.gmove, GPR["mov"], 8, d, t))
    x = s.general(type, b)
    for half in (made.a, made.b):
        s.weight[t] += s.use_weight
        place = len(s.out)
        s.emit(())
        found = flags(s, half)
        if made.op == "and":
            found = negated(found)
        s.out[place] = (formats.g2t, GPR["cmov" + found], size_of(type), t, x)
    s.wish(a, t)
    s.end[t] = len(s.out)
    for copy in copy_of(s, type, t, a):
        _set_general(s, copy)
    return True


def _joined(s: Selector, condition: str) -> ir.Binary | None:
    """The `and` or `or` of two conditions that are both best compared where they are read."""
    made = s.once(condition, ir.Binary, "and") or s.once(condition, ir.Binary, "or")
    if made is None or made.b[0] != "%" or not (_sets_flags(s, made.a) and _sets_flags(s, made.b)):
        return None
    return made


def _sets_flags(s: Selector, name: str) -> bool:
    """Whether a condition is best compared where it is read."""
    made = s.defs.get(name)
    if not isinstance(made, ir.Compare) or name in s.reg or made.block != s.block.index:
        return False
    if made.type.lanes:
        return False
    return made.op == "icmp" or (made.op == "fcmp" and made.predicate in FLOAT_FLAGS)


def _set_general(s: Selector, copy: Copy) -> None:
    d, source, value, type = copy
    if source >= 0:
        s.emit((formats.gmove, GPR["mov"], 8, d, source))
    elif isinstance(value, int):
        s.emit((formats.gtable, d, value))
    elif isinstance(value, str):
        s.emit((formats.gsymbol, d, value))
    else:
        s.emit((formats.gconst, d, value[0].splat or 0))  # type: ignore[index]


# -- calls


@handles("call")
def call_(s: Selector, instruction: ir.Call) -> None:
    """A call, of what `INTRINSICS` knows or of a function."""
    name, callee = instruction.name, instruction.callee
    if not callee.startswith("@llvm.") or ".mem" in callee:
        _plain_call(s, instruction)
    elif name is None or name in s.reg:
        _intrinsic(s, instruction)


# By whether registers are AVX2's, and the callee with its types.
_known: dict[tuple[bool, str], Intrinsic] = Memo("intrinsics", 1024)


def _intrinsic(s: Selector, instruction: ir.Call) -> None:
    """A call of `@llvm.…`."""
    callee, arguments, type = instruction.callee, instruction.arguments, instruction.type
    found = _known.get((VECTORS.narrow, callee))
    if found is None:
        name = f"{callee[6:]}."
        while found is None:
            name, point, _ = name.rpartition(".")
            if not point:
                raise Unsupported(callee.rstrip("0123456789."))
            found = NARROW_INTRINSICS.get(name) if VECTORS.narrow else None
            found = found or INTRINSICS.get(name)
        _known[VECTORS.narrow, callee] = found
    if isinstance(arguments, tuple):  # all of one type
        parts = [*arguments]
        if not found.alike:
            parts = [f"{type.text} {x}" for x in parts]
    elif type is not None and found.alike:
        # Arguments of one type: split at its name.
        text = type.text
        parts = arguments[len(text) + 1 :].split(f", {text} ")
    else:
        parts = split(arguments)
    found.write(s, instruction, parts)


def _plain_call(s: Selector, instruction: ir.Call) -> None:
    """A call of a function, of memory or of the module."""
    _, name, _, type, callee, arguments, memory, _ = instruction
    s.memory = memory
    if callee.startswith("@llvm.mem") and _moved(s, callee, arguments):
        return
    made = Call()
    if type is not None and name is not None and name in s.reg:
        made.result, made.result_type = s.define(name), type
        if type.cls == MASK:
            raise Unsupported("a mask from a call")
    s.calls.append(len(s.out))
    parts = [typed(part) for part in split(arguments)]
    if callee.startswith("@llvm.mem"):
        made.symbol = callee.split(".")[1]
        parts = parts[:3]
        if made.symbol not in ("memcpy", "memset", "memmove"):
            raise Unsupported(callee)
    elif callee in s.labels:
        made.label = s.labels[callee]
    elif callee[0] == "@":
        made.symbol = callee[1:]
    else:
        made.register = s.need(callee)
    if sum(t.parts for t, _ in parts if t.cls == VECTOR) > 8:
        raise Unsupported("vectors on the stack")
    for t, text in parts:
        if t.cls == MASK:
            raise Unsupported("a mask as an argument")
        while text.split(" ", 1)[0] in ("noalias", "nocapture", "readonly", "noundef", "nonnull"):
            text = text.split(" ", 1)[1]
        if t.bits < 32 and t.cls == GENERAL and text[0] == "%":
            raise Unsupported(f"{t.text} as an argument")
        if t is PTR and text[0] == "%":
            made.arguments.append((-1, s.general(t, text), None, t))
        else:
            made.arguments += copy_of(s, t, -1, text)
    s.emit((call, made))


_MOVED = 64  # bytes that are moved in place, by pieces of up to 16


def _moved(s: Selector, callee: str, arguments: str) -> bool:
    """Write a `memcpy` of few bytes as loads and stores."""
    to, source, size = [_plain(typed(part)[1]) for part in split(arguments)[:3]]
    if not callee.startswith("@llvm.memcpy") or size[0] == "%" or int(size) > _MOVED:
        return False
    left, place = int(size), 0
    pieces = []
    while left:
        piece = min(16, 1 << left.bit_length() - 1)
        pieces.append((piece, place))
        left, place = left - piece, place + piece
    # The last first; what is read stays apart from what is written.
    target, origin = s.address(to), s.address(source)
    for piece, place in reversed(pieces):
        read, write = [(*where[:3], where[3] + place) for where in (origin, target)]
        if piece == 16:
            t = s.new(VECTOR)
            op = OPS["vmovups_s"]
            s.emit((formats.vstore, op, t, -1, write, -1, 0, 0, 0, None))
            s.put(t, (formats.v3m, OPS["vmovups"], t, -1, read, -1, 0, 0, 0, None))
            continue
        t = s.new(GENERAL)
        s.emit((formats.gmread, GPR["mov_s"], piece, t, write))
        word = {1: "movzx8", 2: "movzx16"}.get(piece, "mov")
        s.put(t, (formats.gm, GPR[word], max(piece, 4), t, read))
    return True


def _plain(text: str) -> str:
    """An argument without its attributes."""
    return text.rpartition(" ")[2]
