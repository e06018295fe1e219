"""Equal operations of a block, written once: the emitters write an index as often as they need it.

On the text, since a line says all about its operation: two equal ones give the same value unless
they read memory. Values stay inside blocks, where selection folds them into their users.
"""

from __future__ import annotations

import re

_NAME = re.compile(r"%[\w.]+")
_PURE = frozenset(
    "add sub mul sdiv udiv srem urem and or xor shl lshr ashr fadd fsub fmul fdiv fneg icmp fcmp "
    "select getelementptr insertelement extractelement shufflevector trunc zext sext fptrunc fpext "
    "fptosi fptoui sitofp uitofp ptrtoint inttoptr bitcast".split()
)
# Intrinsic functions of the operands alone.
_CALLS = re.compile(
    r"[^@]*@llvm\.(?:fma|smin|smax|umin|umax|fabs|sqrt|maximum|minimum|floor|ceil|trunc|rint|round"
    r"|nearbyint|copysign|abs|ct|x86|vector\.reduce|fpto)"
)


def share(body: list[str]) -> list[str]:
    """The lines of a function without those that repeat another of their block."""
    known: dict[str, str] = {}
    same: dict[str, str] = {}
    kept = []

    def renamed(found: re.Match) -> str:
        return same.get(found[0], found[0])

    for line in body:
        if line[0] != "%":
            if line[-1] == ":":
                known = {}
            elif same:
                line = _NAME.sub(renamed, line)
            kept.append(line)
            continue
        name, _, rest = line.partition(" = ")
        if same:
            rest = _NAME.sub(renamed, rest)
            line = f"{name} = {rest}"
        word = rest[: rest.index(" ")]
        if word in _PURE or (word in ("call", "tail") and _CALLS.match(rest)):
            before = known.setdefault(rest, name)
            if before is not name:
                same[name] = before
                continue
        kept.append(line)
    if same:  # what loops carry stands before it is made
        kept = [_NAME.sub(renamed, line) if " = phi " in line else line for line in kept]
    return kept
