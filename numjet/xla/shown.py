"""A module as `lower(...).as_text("stablehlo")` shows it: in MLIR's own spelling of operations.

`shown` reads what `xla.writer` writes, the generic form that devices are given, and says
the same in the form that people know: `%0 = stablehlo.sine %arg0 : tensor<f32>`. Arguments,
constants and results are named as MLIR names them; @main says what JAX's does of its arguments
(`tf.aliasing_output`) and results (`jax.result_info`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from numjet.base.record import record
from numjet.base.tree import keystr, tree_flatten_with_path
from numjet.core.jaxpr import ClosedJaxpr, Var
from numjet.xla.hlo import own_module
from numjet.xla.writer import DTYPES

_HEAD = re.compile(r'\s*(?:(%\d+)(?::(\d+))? = )?"([\w.]+)"\(([^)]*)\)(.*)')
_TAIL = re.compile(r"(?: \{(.*)\})? : \(([^()]*)\) -> \(?([^()]*)\)?")
_FUNCTION = re.compile(r"func\.func (\w+) @(\w+)\((.*)\) -> \((.*)\) \{")
_ARGUMENT = re.compile(r"(%\d+): ([^,{]+)(?: \{([^}]*)\})?")
_DENSE = re.compile(r"value = dense<(.*)> : (tensor<((?:\d+x)*)([a-z].*)>)")
_EMPTY = re.compile(r"\b\w+_dims = \[\], ")
# More numbers than these are written as their bytes.
_MOST_NUMBERS = 100


@record(slots=True)
class Op:
    """One operation as it was read; regions are (arguments, operations)."""

    ref: str | None
    count: int
    name: str
    operands: list[str]
    regions: list[tuple[list[tuple[str, str]], list[Op]]]
    attributes: str
    ins: list[str]
    outs: list[str]


def _words(text: str) -> list[str]:
    return text.split(", ") if text else []


def _operations(lines: Sequence[str], at: int) -> tuple[list[Op], int]:
    """The operations from line `at` to the end of their block, and where that is."""
    found = []
    while at < len(lines) and not lines[at].strip().startswith("}"):
        head = _HEAD.fullmatch(lines[at])
        assert head is not None, lines[at]
        ref, count, name, operands, rest = head.groups()
        at += 1
        regions = []
        if rest == " ({":
            rest = "}, {"
            while rest == "}, {":
                arguments = []
                if lines[at].startswith("^bb0("):
                    arguments = [(m[1], m[2]) for m in _ARGUMENT.finditer(lines[at])]
                    arguments[-1] = arguments[-1][0], arguments[-1][1].removesuffix("):")
                    at += 1
                inner, at = _operations(lines, at)
                regions.append((arguments, inner))
                rest = lines[at].strip()
                at += 1
            rest = rest.removeprefix("})")
        tail = _TAIL.fullmatch(rest)
        assert tail is not None, rest
        results = _words(tail[3])
        found.append(Op(ref, int(count or len(results)), name, _words(operands), regions,
                        tail[1] or "", _words(tail[2]), results))  # fmt: skip
    return found, at


def _number(x: Any, dtype: np.dtype) -> str:
    """A number as MLIR writes it: with the digits that give it back."""
    if dtype.kind == "b":
        return str(bool(x)).lower()
    if dtype.kind in "iu" or dtype.name in ("int2", "int4", "uint2", "uint4"):
        return str(int(x))
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return f"({_number(x.real, part)},{_number(x.imag, part)})"
    if not np.isfinite(np.float64(x)):
        return f"0x{np.asarray(x, dtype).view(f'u{dtype.itemsize}').item():0{2 * dtype.itemsize}X}"
    text = f"{float(x):e}"
    if dtype.type(float(text)) == x:
        return text
    return f"{float(x):.{17 if dtype.itemsize == 8 else 9}g}".replace("e", "E")


def _nested(x: np.ndarray) -> str:
    if x.shape:
        return f"[{', '.join(map(_nested, x))}]"
    return _number(x[()], x.dtype)


def _constant(attributes: str) -> tuple[str, str, bool]:
    """A constant's numbers as text, its type, and whether they are integers."""
    found = _DENSE.fullmatch(attributes)
    assert found is not None, attributes
    value, kind, sizes, element = found.groups()
    dtype = np.dtype(getattr(ml_dtypes, DTYPES[element], None) or DTYPES[element])
    whole = dtype.kind in "biu" or "int" in dtype.name
    if value.startswith('"0x'):
        shape = tuple(map(int, sizes.split("x")[:-1]))
        flat = np.frombuffer(bytes.fromhex(value[3:-1]), dtype)
        if flat.size == 1:
            value = _number(flat[0], dtype)
        elif flat.size <= _MOST_NUMBERS:
            value = _nested(flat.reshape(shape))
    return f"dense<{value}>", kind, whole


class _Printer:
    """Writes a function; `names` are those of values by what the text called them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, str] = {}
        self.used: set[str] = set()
        self.values = self.arguments = self.conflicts = 0

    def named(self, name: str) -> str:
        """A name of its own, which begins with `name`."""
        found = name
        while found in self.used:
            found = f"{name}_{self.conflicts}"
            self.conflicts += 1
        self.used.add(found)
        return f"%{found}"

    def argument(self, ref: str) -> str:
        self.arguments += 1
        self.names[ref] = f"%arg{self.arguments - 1}"
        return self.names[ref]

    def refs(self, refs: Sequence[str]) -> str:
        found = []
        for ref in refs:
            base, _, part = ref.partition("#")
            found.append(self.names[base] + (f"#{part}" if part else ""))
        return ", ".join(found)

    def block(self, ops: Sequence[Op], indent: str, inside: bool) -> None:
        """The operations of a block: all its values are named before those in its regions."""
        for op in ops:
            if op.ref is None or not op.count:
                continue
            if op.name == "stablehlo.constant":
                whole = _constant(op.attributes)[2]
                self.names[op.ref] = self.named("c" if whole else "cst")
            else:
                self.names[op.ref] = f"%{self.values}"
                self.values += 1
        for op in ops:
            self.operation(op, indent, inside)

    def region(self, region: tuple, indent: str, head: bool = True) -> None:
        """The operations of a region, whose names no one else sees."""
        kept = self.used, self.conflicts, self.values, self.arguments
        self.used = {*self.used}
        arguments, ops = region
        if arguments and head:
            told = ", ".join([f"{self.argument(ref)}: {kind}" for ref, kind in arguments])
            self.lines.append(f"{indent}^bb0({told}):")
        self.block(ops, indent + "  ", True)
        self.used, self.conflicts, self.values, self.arguments = kept

    def operation(self, op: Op, indent: str, inside: bool) -> None:
        head = indent
        if op.name == "stablehlo.constant":
            value, kind, _ = _constant(op.attributes)
            name = self.names[op.ref or ""]
            self.lines.append(f"{indent}{name} = stablehlo.constant {value} : {kind}")
            return
        if op.ref in self.names:
            head += f"{self.names[op.ref]}{f':{op.count}' if op.count > 1 else ''} = "
        if op.name == "stablehlo.while":
            self._loop(op, head, indent)
            return
        told = self._reduction(op) if op.name == "stablehlo.reduce" else self._told(op, inside)
        if told is not None:
            self.lines.append(head + told)
            return
        if op.name == "stablehlo.reduce":
            self._reducer(op, head, indent)
            return
        attributes = _EMPTY.sub("", op.attributes)
        marked = f" <{{{attributes}}}>" if attributes else ""
        begun = f'{head}"{op.name}"({self.refs(op.operands)}){marked}'
        for k, region in enumerate(op.regions):
            self.lines.append(f"{begun} ({{" if not k else f"{indent}}}, {{")
            self.region(region, indent)
        begun = f"{indent}}})" if op.regions else begun
        results = op.outs[0] if len(op.outs) == 1 else f"({', '.join(op.outs)})"
        self.lines.append(f"{begun} : ({', '.join(op.ins)}) -> {results}")

    def _loop(self, op: Op, head: str, indent: str) -> None:
        kept = self.used, self.conflicts
        self.used = {*self.used}
        names = [self.named("iterArg") for _ in op.operands]
        pairs = zip(names, op.operands, strict=True)
        told = ", ".join([f"{name} = {self.refs([x])}" for name, x in pairs])
        self.lines += [f"{head}stablehlo.while({told}) : {', '.join(op.ins)}", f"{indent}cond {{"]
        for k, region in enumerate(op.regions):
            for (ref, _), name in zip(region[0], names, strict=True):
                self.names[ref] = name
            self.region(region, indent, head=False)
            self.lines.append(f"{indent}}}" if k else f"{indent}}} do {{")
        self.used, self.conflicts = kept

    def _reducer(self, op: Op, head: str, indent: str) -> None:
        """A reduction by more than one operation."""
        n = len(op.operands) // 2
        pairs = zip(op.operands[:n], op.operands[n:], strict=True)
        ins = ", ".join([f"({self.refs([x])} init: {self.refs([start])})" for x, start in pairs])
        results = op.outs[0] if n == 1 else f"({', '.join(op.outs)})"
        axes = _list(op.attributes, "dimensions")
        self.lines.append(
            f"{head}stablehlo.reduce{ins} across dimensions = [{axes}] : "
            f"({', '.join(op.ins)}) -> {results}"
        )
        at = len(self.lines)
        self.region(op.regions[0], indent)
        told = self.lines[at].strip().removeprefix("^bb0(").removesuffix("):").split(", ")
        both = " ".join([f"({told[k]}, {told[n + k]})" for k in range(n)])
        self.lines[at] = f"{indent} reducer{both}  {{"
        self.lines.append(f"{indent}}}")

    def _told(self, op: Op, inside: bool) -> str | None:
        """An operation without regions (or a reduction by one operation) in its own spelling;
        None where it is written in the generic form."""
        ins, name = self.refs(op.operands), op.name
        kinds, result = ", ".join(op.ins), ", ".join(op.outs)
        if name == "func.return":
            return f"return {ins} : {kinds}" if ins else "return"
        if name == "stablehlo.return":
            return f"{name} {ins} : {kinds}"
        if name in ("func.call", "call"):
            callee = op.attributes.removeprefix("callee = ")
            many = result if len(op.outs) == 1 else f"({result})"
            return f"{'func.' if inside else ''}call {callee}({ins}) : ({kinds}) -> {many}"
        if name == "stablehlo.optimization_barrier":
            return f"{name} {ins} : {kinds}" if ins else None
        if op.regions or len(op.outs) != 1:
            return None
        if name in _CALLED:
            return f"{name}{_CALLED[name](ins, op.attributes)} : ({kinds}) -> {result}"
        if name == "stablehlo.cholesky":
            return f"{name} {ins}, {op.attributes} : {result}"
        if name.startswith("chlo.") and not op.attributes:
            return f"{name} {ins} : {kinds} -> {result}"
        if name == "stablehlo.select":
            return f"{name} {ins} : {op.ins[0]}, {result}"
        if name == "stablehlo.iota":
            return f"{name} {_SPELLED[name](op.attributes)} : {result}"
        if name in _SPELLED:
            told = _SPELLED[name](op.attributes)
            if name == "stablehlo.compare":
                direction, kind = told.split(", ")
                return f"{name} {direction}, {ins}, {kind} : ({kinds}) -> {result}"
            space = "" if told.startswith(" ") else ", "
            if name in ("stablehlo.reduce_precision", "stablehlo.reverse"):
                return f"{name} {ins}{space}{told} : {result}"
            return f"{name} {ins}{space}{told} : ({kinds}) -> {result}"
        if op.attributes:
            return None
        same = {*op.ins, result} == {result} and name not in _NEVER_SHORT
        return f"{name} {ins} : {result if same else f'({kinds}) -> {result}'}"

    def _reduction(self, op: Op) -> str | None:
        ((arguments, inner),) = op.regions
        if len(op.outs) != 1 or len(inner) != 2 or inner[0].operands != [r for r, _ in arguments]:
            return None
        axes = _list(op.attributes, "dimensions")
        x, start = (self.refs([ref]) for ref in op.operands)
        return (
            f"stablehlo.reduce({x} init: {start}) applies {inner[0].name} across dimensions = "
            f"[{axes}] : ({', '.join(op.ins)}) -> {op.outs[0]}"
        )


# Written with all types even where these are equal.
_NEVER_SHORT = frozenset(("stablehlo.reshape", "stablehlo.bitcast_convert"))


def _list(attributes: str, name: str) -> str:
    """The numbers of an attribute, without what is around them."""
    found = re.search(rf"\b{name} = (?:array<i64(?:: )?([^>]*)>|\[([^\]]*)\])", attributes)
    assert found is not None, (name, attributes)
    return found[1] or found[2] or ""


def _product(attributes: str) -> str:
    parts = []
    for kind in ("batching", "contracting"):
        left, right = (_list(attributes, f"{side}_{kind}_dimensions") for side in ("lhs", "rhs"))
        if left or kind == "contracting":
            parts.append(f"{kind}_dims = [{left}] x [{right}]")
    if names := re.findall(r"<precision (\w+)>", attributes):
        parts.append(f"precision = [{', '.join(names)}]")
    return ", ".join(parts)


def _slice(attributes: str) -> str:
    names = "start_indices", "limit_indices", "strides"
    places = zip(*[_list(attributes, name).split(", ") for name in names], strict=True)
    told = [f"{a}:{b}" + (f":{c}" if c != "1" else "") for a, b, c in places]
    return f" [{', '.join(told)}]"


def _compare(attributes: str) -> str:
    direction = re.search(r"comparison_direction (\w+)", attributes)
    kind = re.search(r"comparison_type (\w+)", attributes)
    assert direction is not None
    return f"{direction[1]}, {kind[1] if kind else 'NOTYPE'}"


def _dims(attribute: str, shown: str) -> Callable[[str], str]:
    return lambda attributes: f"{shown} = [{_list(attributes, attribute)}]"


def _single(attribute: str) -> Callable[[str], str]:
    pattern = re.compile(attribute + r" = (\d+)")
    return lambda attributes: f"dim = {pattern.findall(attributes)[0]}"


def _convolution(ins: str, attributes: str) -> str:
    found = re.search(r"#stablehlo\.conv<(.*?)>, ", attributes)
    padding = re.search(r"padding = dense<(.*?)> : ", attributes)
    assert found is not None and padding is not None
    window = [f"{short} = [{_list(attributes, name)}]" for short, name in (
        ("stride", "window_strides"), ("lhs_dilate", "lhs_dilation"),
        ("rhs_dilate", "rhs_dilation"))]  # fmt: skip
    window.insert(1, f"pad = {padding[1] or '[]'}")
    rest = re.findall(r"(?:batch_group_count|feature_group_count) = \d+ : i64", attributes)
    rest += re.findall(r"precision_config = \[[^\]]*\]", attributes)
    layouts = re.sub(r"(?<!,) +", " ", found[1])
    return (f"({ins}) dim_numbers = {layouts}, window = {{{', '.join(window)}}} "
            f"{{{', '.join(rest)}}}")  # fmt: skip


def _custom(ins: str, attributes: str) -> str:
    target = re.search(r'call_target_name = "([^"]*)"', attributes)
    assert target is not None
    rest = attributes.replace(target[0], "").replace("has_side_effect = false", "")
    rest = re.sub(r"(, )+", ", ", rest).strip(", ")
    return f" @{target[1]}({ins})" + (f" {{{rest}}}" if rest else "")


def _transform(ins: str, attributes: str) -> str:
    kind = re.search(r"fft_type (\w+)", attributes)
    assert kind is not None
    return f" {ins}, type = {kind[1]}, length = [{_list(attributes, 'fft_length')}]"


# Operations whose operands stand among other words.
_CALLED: Mapping[str, Callable[[str, str], str]] = {
    "stablehlo.convolution": _convolution,
    "stablehlo.custom_call": _custom,
    "stablehlo.fft": _transform,
}

_SPELLED: Mapping[str, Callable[[str], str]] = {
    "stablehlo.broadcast_in_dim": _dims("broadcast_dimensions", "dims"),
    "stablehlo.compare": _compare,
    "stablehlo.concatenate": _single("dimension"),
    "stablehlo.dot_general": _product,
    "stablehlo.dynamic_slice": _dims("slice_sizes", "sizes"),
    "stablehlo.iota": _single("iota_dimension"),
    "stablehlo.pad": lambda attributes: ", ".join([
        f"{short} = [{_list(attributes, name)}]" for short, name in (
            ("low", "edge_padding_low"), ("high", "edge_padding_high"),
            ("interior", "interior_padding"))]),
    "stablehlo.reduce_precision": lambda attributes: "format = e{}m{}".format(
        *re.findall(r"_bits = (\d+)", attributes)),
    "stablehlo.reverse": _dims("dimensions", "dims"),
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _dims("permutation", "dims"),
}  # fmt: skip


def _marked(kind: str, marks: str) -> str:
    return f"{kind} {{{marks}}}" if marks else kind


def _function(
    lines: Sequence[str], aliases: Mapping[int, int], infos: Sequence[str] | None
) -> list[str]:
    head = _FUNCTION.fullmatch(lines[0])
    assert head is not None, lines[0]
    printer = _Printer()
    arguments = []
    for k, found in enumerate(_ARGUMENT.finditer(head[3])):
        marks = found[3] or ""
        if infos is not None and k in aliases:
            marks = f"tf.aliasing_output = {aliases[k]} : i32"
        arguments.append(f"{printer.argument(found[1])}: {_marked(found[2], marks)}")
    results = _words(head[4])
    if infos is not None:
        results = [f'{kind} {{jax.result_info = "{told}"}}'
                   for kind, told in zip(results, infos, strict=True)]  # fmt: skip
    one = len(results) == 1 and infos is None
    told = results[0] if one else f"({', '.join(results)})"
    printer.block(_operations(lines, 1)[0], "    ", False)
    return [
        f"  func.func {head[1]} @{head[2]}({', '.join(arguments)})" + (
            f" -> {told} {{" if results else " {"),
        *printer.lines, "  }",
    ]  # fmt: skip


def _aliases(closed: ClosedJaxpr, donated: Sequence[int]) -> dict[int, int]:
    """The result that takes the memory of each argument that was given away: the first of its type
    that takes no other's."""
    left = dict(enumerate(closed.out_avals))
    found = {}
    for i in donated:
        aval = closed.in_avals[i]
        fits = [k for k, a in left.items() if (a.shape, a.dtype) == (aval.shape, aval.dtype)]
        if fits:
            found[i] = fits[0]
            del left[fits[0]]
    return found


def shown(
    closed: ClosedJaxpr, name: str, out_tree: Any, donated: Sequence[int], keep_unused: bool
) -> str:
    """The module of the jaxpr of the function `name`.

    out_tree: the structure of its results; donated: the arguments that were given away;
    keep_unused: whether those that are not read are arguments of @main, too.
    """
    paths = tree_flatten_with_path(out_tree.unflatten([0] * out_tree.num_leaves))[0]
    infos = [f"result{keystr(path)}" for path, _ in paths]
    jaxpr = closed.jaxpr
    if not keep_unused:
        read = {v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is Var}.union(
            [v for v in jaxpr.outvars if type(v) is Var])
        kept = [i for i, v in enumerate(jaxpr.invars) if v in read]
        donated = [kept.index(i) for i in donated if i in kept]
        closed = ClosedJaxpr(jaxpr.replace(invars=[jaxpr.invars[i] for i in kept]), closed.consts)
    aliases = _aliases(closed, donated)
    text = own_module(closed)
    lines = text.split("\n")
    found: list[list[str]] = []
    for line in lines[1:]:
        if line.startswith("func.func "):
            found.append([])
        if found:
            found[-1].append(line)
    found.sort(key=lambda one: " @main(" not in one[0])
    body = [
        line
        for one in found
        for line in _function(one, aliases, infos if " @main(" in one[0] else None)
    ]
    safe = re.sub(r"[^\w.]", "_", f"jit_{name}".replace(">", ""))
    return "\n".join([
        f"module @{safe} attributes {{mhlo.num_partitions = 1 : i32, "
        "mhlo.num_replicas = 1 : i32} {", *body, "}", "",
    ])  # fmt: skip
