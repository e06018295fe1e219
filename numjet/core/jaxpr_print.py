"""Printing jaxprs in JAX's notation: `{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }`.

`str(jaxpr)` goes through here, and nothing reads the text again. Params that JAX writes and ours do
not hold are added, others left out, so that programs that compare texts find them as they were.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from numjet.base.tree import tree_unflatten
from numjet.core import dtypes, hooks
from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from numjet.core.jaxpr_held import with_held
from numjet.core.jit_params import worth_showing
from numjet.core.memo import remembered
from numjet.core.primitive import REGISTRY
from numjet.core.ref_equations import NDIndexer, Slice, addupdate_p, get_p, swap_p
from numjet.core.structural import MappedAxes

# What JAX writes of equations beside what ours hold, where it is always the same.
_ALWAYS: dict[str, dict[str, Any]] = {
    "reduce_sum": {"out_sharding": None},
    "slice": {"strides": None},
    "reshape": {"dimensions": None, "sharding": None},
    "iota": {"sharding": None},
    "psum": {"axis_index_groups": None},
    "pmax": {"axis_index_groups": None},
    "pmin": {"axis_index_groups": None},
    "random_seed": {"impl": "fry"},
    "gather": {"fill_value": None},
    "random_wrap": {"impl": "fry"},
    "ffi_call": {"legacy_backend_config": None, "vmap_method": None},
    "remat2": {"differentiated": False, "policy": None},
    "rng_bit_generator": {"out_sharding": None},
    "svd": {"algorithm": None, "subset_by_index": None},
    "eigh": {"algorithm": None, "subset_by_index": None},
    "qr": {"use_magma": None},
    "schur": {"select_callable": None, "sort_eig_vals": False},
    "ragged_dot_general": {"group_offset": None, "out_sharding": None, "precision": None,
                           "preferred_element_type": None},
    "eig": {"implementation": None},
    "new_ref": {"kind": None, "memory_space": None},
    "empty_ref": {"memory_space": None},
    "conv_general_dilated": {
        "batch_group_count": 1,
        "out_sharding": None,
        "precision": None,
        "preferred_element_type": None,
    },
}
# What it leaves out.
_NEVER = {
    "empty2": ("weak_type",),
    "eigh": ("compute_v",),
    "qr": ("compute_q",),
    "broadcast_in_dim": ("shape",),  # the result's type says it
    "ffi_call": ("instance",),
}
_GENERATORS = ("RNG_DEFAULT", "RNG_THREE_FRY", "RNG_PHILOX")
_ROUNDINGS = {"round": 0, "round_even": 1}
_NAMES = {"random_gamma_of_key": "random_gamma", "round_even": "round",
          "pow_by_integer": "pow"}  # fmt: skip

# Reductions over the examples of a map, by the collectives that they are in JAX.
_MAPPED = {"reduce_sum": "psum", "reduce_max": "pmax", "reduce_min": "pmin"}


def _axes(given: Any) -> tuple:
    return given if type(given) is tuple else (given,)


def _gathered(eqn: Eqn) -> dict[str, Any]:
    p = eqn.params
    return {
        "all_gather_dimension": p["axis"], "axis_index_groups": None,
        "axis_name": (p["axis_name"],), "axis_size": p["size"], "tiled": p.get("tiled", False),
    }  # fmt: skip


def _scattered(eqn: Eqn) -> dict[str, Any]:
    axis = eqn.params["axis"]
    return {
        "axis_index_groups": None, "axis_name": (eqn.params["axis_name"],),
        "axis_size": eqn.params.get("size") or eqn.invars[0].aval.shape[axis],
        "scatter_dimension": axis, "tiled": "size" in eqn.params,
    }  # fmt: skip


def _debugged(eqn: Eqn) -> dict[str, Any]:
    """What is written of a callback that is there for its effects."""
    within = "debug_callback.<locals>._debug_callback.<locals>._flat_callback"
    return {
        "callback": f"<function {within} at 0x0>", "partitioned": False,
        "effect": "OrderedDebug" if eqn.params["ordered"] else "Debug",
    }  # fmt: skip


def _solved(eqn: Eqn) -> dict[str, Any]:
    """What is written of a linear solve: its functions, each for itself, and their closures."""
    parts = ("matvec", "vecmat", "solve", "transpose_solve")
    texts = [j if j is None else format_jaxpr(_open(j)) for j in eqn.params["jaxprs"]]
    written = [
        ", ".join([f"{name}={x}" for name, x in zip(parts, found, strict=True)])
        for found in (eqn.params["const_lengths"], texts)
    ]
    return {k: f"_LinearSolveTuple({x})" for k, x in zip(("const_lengths", "jaxprs"), written)}


def _constraint(sharding: Any, namer: _Namer) -> tuple[str, dict[str, Any]]:
    """The name and the params that are written of a constraint."""
    if getattr(getattr(sharding, "mesh", None), "are_all_axes_explicit", False):
        return "reshard", {}
    mesh, entered, axes = namer.context
    around = axes or mesh and mesh.abstract_mesh or entered
    spec = getattr(sharding, "spec", None) or ()
    open_ = [str(i) for i, entry in enumerate(spec) if str(entry) == "UNCONSTRAINED"]
    return "sharding_constraint", {
        "context_mesh": around or "Mesh()", "layout": None, "sharding": sharding,
        "unconstrained_dims": f"frozenset({{{', '.join(open_)}}})",
    }  # fmt: skip


# What JAX writes of collectives, by our equations.
_COLLECTIVES: dict[str, Callable[[Eqn], dict[str, Any]]] = {
    "all_gather": _gathered,
    "reduce_scatter": _scattered,
    "all_to_all": lambda eqn: {"tiled": False, **eqn.params, "axis_index_groups": None},
    "ragged_all_to_all": lambda eqn: {
        "axis_index_groups": None, "axis_name": _axes(eqn.params["axis_name"])
    },
    "pvary": lambda eqn: {"axes": _axes(eqn.params["axis_name"])},
    "ppermute": lambda eqn: {**eqn.params, "axis_name": (eqn.params["axis_name"],)},
}

# Operations beside the elementwise ones whose operands are of one dtype.
_JOINED = ("select_n", "clamp", "pad", "stack", "concatenate", "add_any", "dot_general")

# Addresses of objects, which would differ from process to process: what JAX shows in their place.
_ADDRESS, _NO_ADDRESS = " at 0x[0-9a-f]+", " at 0x" + 12 * "X"

# Params whose value is told by its name.
_RULES = ("jvp", "fwd", "bwd", "rule", "callback")

# Columns of a line before it is broken, as JAX breaks it.
_WIDTH = 80


# A jaxpr of more equations than this is written before the whole, under a name.
_LONG = 10


def _names(taken: set[str]) -> Iterator[str]:
    """a, b, ..., z, ba, bb, ...: numbers in base 26, without `taken` and the notation's words."""
    taken = taken | {"let", "in"}
    for number in itertools.count():
        name = ""
        while number or not name:
            number, digit = divmod(number, 26)
            name = chr(ord("a") + digit) + name
        if name not in taken:
            yield name


def _given(value: np.ndarray, text: Any) -> Any:
    """The Python number that was rounded to a weak scalar, as far as its digits tell."""
    if value.dtype == np.float32:
        return float(str(value[()]))
    if value.dtype == np.complex64:
        return complex(float(str(value.real[()])), float(str(value.imag[()])))
    return text


class _Namer:
    """Hands out names in order of first appearance, inner jaxprs included. `lets` are the jaxprs
    that are written before the whole, with their names."""

    def __init__(self, lets: dict[Jaxpr, str] | None = None, context: tuple = ()) -> None:
        """context: the mesh of `set_mesh`, that of `with mesh:` and the axes alone of one, within
        which the function was traced; None for those that there were not."""
        self.context = context or (None, None, None)
        self.names: dict[Var, str] = {}
        self.lets = lets or {}
        self.supply = _names(set(self.lets.values()))

    def bind(self, var: Var) -> str:
        return f"{self(var)}:{var.aval.str_short(True)}"

    def __call__(self, atom: Any, strong: bool = False) -> str:
        """strong: a number is written that takes the dtype of strong operands beside it."""
        if type(atom) is Literal:
            value = atom.value
            value = np.asarray(getattr(value, "_value", value))
            text = value.item() if value.dtype.kind != "V" else value
            if atom.aval.weak_type and not strong:  # Python code gave it: few digits tell it
                text = _given(value, text)
            if value.dtype.kind == "V" and dtypes.is_floating(value.dtype):
                text = float(value)
            return f"{text!s}:{atom.aval.str_short(True)}"
        name = self.names.get(atom)
        if name is None:
            name = self.names[atom] = next(self.supply)
        return name

    def share(self, eqn: Eqn, inner: Jaxpr) -> None:
        """Variables of a call's jaxpr have the names of the operands and results they stand for."""
        for own, operand in zip(inner.invars, eqn.invars, strict=True):
            if type(operand) is Var:
                name = self(operand)
                if name not in [self.names.get(v) for v in inner.invars]:
                    self.names[own] = name
        arguments = {*inner.invars}
        for out, result in zip(inner.outvars, eqn.outvars, strict=True):
            if type(out) is Var and out not in arguments and out not in self.names:
                self.names[out] = self(result)


def _is_jaxpr(value: Any) -> bool:
    return isinstance(value, ClosedJaxpr | Jaxpr)


def _open(value: Any) -> Jaxpr:
    return value.jaxpr if isinstance(value, ClosedJaxpr) else value


def _inner(jaxpr: Jaxpr) -> Iterator[tuple[Eqn, Jaxpr]]:
    """The jaxprs that the equations hold, with the equations."""
    for eqn in jaxpr.eqns:
        for value in eqn.params.values():
            for each in value if isinstance(value, tuple) else (value,):
                if _is_jaxpr(each):
                    yield eqn, _open(each)
        if (update := _update(eqn)) is not None:
            yield eqn, update


def _lets(jaxpr: Jaxpr) -> dict[Jaxpr, str]:
    """Inner jaxprs that are long, or stand in several places: the outermost first."""
    places: dict[Jaxpr, int] = {}
    name_of: dict[Jaxpr, str] = {}
    level = [jaxpr]
    while level:
        below = [found for outer in level for found in _inner(outer)]
        for eqn, each in below:
            places[each] = places.get(each, 0) + 1
            told = eqn.params.get("name", "") if eqn.primitive.name == "jit" else ""
            name_of.setdefault(each, "".join(c for c in told if c.isalnum() or c == "_") or "jaxpr")
        level = [each for _, each in below]
    lets: dict[Jaxpr, str] = {}
    count: dict[str, int] = {}
    for each, times in places.items():
        if times > 1 or len(each.eqns) > _LONG:
            name = name_of[each]
            number = count[name] = count.get(name, -1) + 1
            lets[each] = f"{name}{number}" if number else name
    return lets


def _param(name: str, value: Any, namer: _Namer, indent: int) -> str:
    """`name=value` for a line that starts in column `indent`."""
    if _is_jaxpr(value):
        return f"{name}={_jaxpr(value, namer, indent, len(name) + 1)}"
    if isinstance(value, tuple) and value and all(_is_jaxpr(v) for v in value):
        texts = [_jaxpr(v, namer, indent + 2) for v in value]
        one_line = f"{name}=({' '.join(texts)})"
        if all(_open(v) in namer.lets for v in value) and indent + len(one_line) <= _WIDTH:
            return one_line
        pad = " " * (indent + 2)
        inner = "\n".join(pad + text for text in texts)
        return f"{name}=(\n{inner}\n{' ' * indent})"
    if name == "dimension_numbers" and type(value) is tuple:  # of a product: pairs of axes
        value = tuple(tuple(list(axes) for axes in pair) for pair in value)
    elif isinstance(value, np.dtype):
        value = value.name
    elif isinstance(value, type) or (name in _RULES and hasattr(value, "__name__")):
        value = value.__name__
    return f"{name}={re.sub(_ADDRESS, _NO_ADDRESS, str(value))}"


def _filled(dtype: Any) -> Any:
    """What is read out of bounds where nobody says it."""
    if dtypes.is_inexact(dtype):
        return math.nan
    if dtypes.is_bool(dtype) or dtypes.is_key(dtype):
        return True if dtypes.is_bool(dtype) else None
    info = dtypes.iinfo(dtype)
    return int(info.min if dtypes.kind(dtype) == "i" else info.max)


# The operation that a scatter combines elements with.
_UPDATES = {"add": "add", "sub": "sub", "mul": "mul", "min": "min", "max": "max"}


def _update(eqn: Eqn) -> Jaxpr | None:
    """What a scatter does with two elements, as a jaxpr; None where it writes."""
    kind = eqn.primitive.name
    name = _UPDATES.get(kind[-3:]) if kind.startswith("scatter") and kind != "scatter" else None
    if name is None:
        return None
    return _of_elements(name, eqn.invars[0].aval.update(shape=(), weak_type=False))


@remembered("what printed scatters do", 64)  # those of one kind are one jaxpr
def _of_elements(name: str, element: ShapedArray) -> Jaxpr:
    old, new, out = Var(element), Var(element), Var(element)
    return Jaxpr([], [old, new], [out], [Eqn([old, new], [out], REGISTRY[name], {})])


def _tiled(eqns: list[Eqn], uses: dict[Any, int]) -> list[Eqn]:
    """The equations, with collectives and the reshapes around them that join their tiles as one."""
    found: list[Eqn] = []
    for i, eqn in enumerate(eqns):
        before = found[-1] if found else None
        name = eqn.primitive.name
        reads = before is not None and [*before.outvars] == [*eqn.invars] != [] and (
            uses[eqn.invars[0]] == 1
        )
        if before is None or not reads:
            found.append(eqn)
        elif name == "pvary" and before.primitive.name == "reshape" and _scatters(eqns, i + 1):
            (x,), (out,) = before.invars, eqn.outvars
            cast = Var(x.aval.update_manual_axis_type(out.aval.manual_axis_type))
            found[-1:] = [eqn.replace(invars=[x], outvars=[cast]),
                          before.replace(invars=[cast], outvars=[out])]  # fmt: skip
        elif name == "reshape" and before.primitive.name == "all_gather":
            found[-1] = before.replace(outvars=eqn.outvars, params={**before.params, "tiled": True})
        elif name == "reduce_scatter" and before.primitive.name == "reshape":
            size = eqn.invars[0].aval.shape[eqn.params["axis"]]
            found[-1] = eqn.replace(invars=before.invars, params={**eqn.params, "size": size})
        elif name == "all_to_all" and before.primitive.name == "reshape":
            found[-1] = eqn.replace(invars=before.invars)
        elif name == "reshape" and before.primitive.name == "all_to_all" and (
            before.invars[0].aval.ndim == eqn.outvars[0].aval.ndim
        ):
            found[-1] = before.replace(outvars=eqn.outvars, params={**before.params, "tiled": True})
        else:
            found.append(eqn)
    return found


def _scatters(eqns: list[Eqn], i: int) -> bool:
    return i < len(eqns) and eqns[i].primitive.name in ("reduce_scatter", "all_to_all")


def _made_in_place(jaxpr: Jaxpr) -> list[Eqn]:
    """The equations; what is made and then laid out over Explicit axes is made so."""
    uses: dict[Any, int] = {}
    for x in [*jaxpr.outvars, *[x for eqn in jaxpr.eqns for x in eqn.invars]]:
        if type(x) is Var:
            uses[x] = uses.get(x, 0) + 1
    found: list[Eqn] = []
    for eqn in _tiled(jaxpr.eqns, uses):
        last = found[-1] if found else eqn
        if (
            eqn.primitive.name == "sharding_constraint"
            and last.primitive.name in ("broadcast_in_dim", "iota")
            and [*eqn.invars] == [*last.outvars]
            and uses[eqn.invars[0]] == 1
            and eqn.outvars[0].aval.placed is not None
        ):
            params = last.params
            if last.primitive.name == "iota":
                params = {**params, "sharding": eqn.outvars[0].aval.sharding}
            found[-1] = last.replace(outvars=eqn.outvars, params=params)
        else:
            found.append(eqn)
    return found


def _joins(eqn: Eqn) -> bool:
    """Whether numbers among the operands are made arrays of the strong ones' dtype."""
    kind = eqn.primitive
    if kind.name == "pow_by_integer" or not (kind.elementwise or kind.name in _JOINED):
        return False
    if kind.name == "stack":
        return True
    return any(
        [type(v) is Var and not v.aval.weak_type for v in eqn.invars[kind.name == "select_n" :]]
    )


def _eqn(eqn: Eqn, namer: _Namer, indent: int) -> str:
    inner = eqn.params.get("jaxpr") if eqn.primitive.name == "jit" else None
    if inner is not None and _open(inner) not in namer.lets:
        namer.share(eqn, _open(inner))
    outs = _wrapped([f" {namer.bind(v)}" for v in eqn.outvars], indent - 1, indent + 2)[1:]
    if eqn.primitive in (get_p, swap_p, addupdate_p):
        return _on_reference(eqn, namer, outs)
    kind, hidden = eqn.primitive.name, _NEVER.get(eqn.primitive.name, ())
    told = {k: v for k, v in eqn.params.items() if v is not None and k not in hidden}
    shown = {**_ALWAYS.get(kind, {}), **told}
    if kind in ("custom_jvp_call", "custom_vjp_call") and not shown["num_consts"]:
        del shown["num_consts"]
    if kind == "call_hi_primitive":
        shown = {"_prim": told["call"]}
    if kind == "sharding_constraint":
        kind, shown = _constraint(told["sharding"], namer)
    elif kind in ("mesh_cast", "reshard", "sum_cast"):
        kind, shown = "reshard", {}
    elif kind == "shard_map" and namer.context[0] is shown["mesh"] is not None:
        shown["mesh"] = shown["mesh"].abstract_mesh  # nobody named it: it is set_mesh's
    elif kind == "jit":
        shown = worth_showing(shown)
        if namer.context[0] is not None:
            shown["ctx_mesh"] = namer.context[0]
    elif kind == "gather" and "fill_value" not in told:
        if str(told["mode"]).endswith("FILL_OR_DROP"):
            shown["fill_value"] = _filled(eqn.outvars[0].aval.dtype)
    elif kind.startswith("scatter"):
        shown.update(update_consts=(), update_jaxpr=_update(eqn))
    elif kind == "inspect_sharding":
        shown["callback"] = str(shown["callback"])
    elif kind.endswith("_callback"):
        known = getattr(eqn.params["callback"], "told", None)
        if kind == "debug_callback":
            kind, shown = ("debug_print", known) if known else (kind, _debugged(eqn))
        else:
            shown.update(callback=known or shown["callback"], sharding=None)
            if kind == "pure_callback":
                shown["vmap_method"] = eqn.params.get("vmap_method")
    elif kind == "custom_vmap_call" and hasattr(shown["rule"], "told"):
        shown = {"call": shown["call_jaxpr"], **shown["rule"].told}
    elif kind in _COLLECTIVES:
        shown = _COLLECTIVES[kind](eqn)
    elif type(shown.get("axes")) is MappedAxes:
        shown["axis_index_groups"] = None
        shown.pop("out_sharding", None)
        kind = _MAPPED[kind]
    elif kind == "psum" and not eqn.invars[0].aval.manual_axis_type.varying.isdisjoint(
        eqn.params["axes"]
    ):
        kind, shown = "psum_invariant", {"axes": eqn.params["axes"]}
    elif kind == "ragged_dot_general":
        shown["ragged_dot_dimension_numbers"] = shown.pop("numbers")
    elif kind in _ROUNDINGS:
        shown["rounding_method"] = _ROUNDINGS[kind]
    elif kind == "rng_bit_generator":
        shown["algorithm"] = _GENERATORS[int(shown["algorithm"])]
    elif kind == "custom_linear_solve":
        shown = _solved(eqn)
    elif kind == "broadcast_in_dim" and not shown["broadcast_dimensions"]:
        shown = {}
    params = sorted(shown.items(), key=lambda item: (item[0] != "name", item[0]))
    strong = _joins(eqn)
    args = " ".join([namer(v, strong) for v in eqn.invars])
    head = _NAMES.get(kind, kind)
    if params:
        parts = [_param(k, v, namer, indent + 2) for k, v in params]
        head = f"{_NAMES.get(kind, kind)}[{' '.join(parts)}]"
        if "\n" in head or indent + len(f"{outs} = {head}" if outs else head) > _WIDTH:
            lines = "".join(f"\n{' ' * (indent + 2)}{part}" for part in parts)
            head = f"{_NAMES.get(kind, kind)}[{lines}\n{' ' * indent}]"
    line = f"{outs} = {head}" if outs else head
    column = len(line) - line.rfind("\n") - 1 if "\n" in line else indent + len(line)
    return line + (_wrapped([f" {arg}" for arg in args.split(" ")], column, indent + 2) or " ")


def _on_reference(eqn: Eqn, namer: _Namer, outs: str) -> str:
    """Reading, writing, or adding to a reference, as Python writes it."""
    ref, *operands = eqn.invars
    value, leaves = ([], operands) if eqn.primitive is get_p else (operands[:1], operands[1:])
    name = f"{namer(ref)}"
    places = [_place(index, namer) for index in tree_unflatten(eqn.params["tree"], leaves)]
    place = name + ("".join(places) or "[...]")
    if eqn.primitive is get_p:
        return f"{outs} <- {place}"
    (given,) = [namer(v) for v in value]
    if eqn.primitive is addupdate_p:
        return f"{place} += {given}"
    if namer(eqn.outvars[0]) == "_":
        return f"{place} <- {given}"
    return f"{outs}, {place} <- {place}, {given}"


def _place(index: NDIndexer, namer: _Namer) -> str:
    """An index in brackets."""
    texts = []
    for entry, n in zip(index.indices, index.shape, strict=True):
        if type(entry) is not Slice:
            texts.append(str(entry.value) if type(entry) is Literal else namer(entry))
            continue
        start, size = entry.start, entry.size
        if entry.is_dynamic_start:
            first = namer(start)
            texts.append(f"{first}:{first}+{size}")
        else:
            end = start + size
            texts.append(f"{start or ''}:{'' if end == n else end}")
    return f"[{','.join(texts)}]"


def _wrapped(words: list[str], column: int, indent: int) -> str:
    """Words, each with the blank before it, from a column on: a line ends behind the word that
    reaches its width."""
    text = ""
    for i, word in enumerate(words):
        if i and column >= _WIDTH:
            text, column = f"{text}\n{' ' * indent}{word[1:]}", indent + len(word) - 1
        else:
            text, column = text + word, column + len(word)
    return text


def _jaxpr(value: Any, namer: _Namer, indent: int = 0, before: int = 0) -> str:
    """The text of an inner jaxpr, or its name, if it was written before."""
    jaxpr = _open(value)
    return namer.lets.get(jaxpr) or _written(jaxpr, namer, indent, before)


def _written(jaxpr: Jaxpr, namer: _Namer, indent: int = 0, before: int = 0) -> str:
    """The text of a jaxpr whose line starts in column `indent`, behind `before` characters."""
    consts = [namer.bind(v) for v in jaxpr.constvars]
    ins = [namer.bind(v) for v in jaxpr.invars]
    eqns = [_eqn(e, namer, indent + 4) for e in _made_in_place(jaxpr)]
    outs = [namer(v) for v in jaxpr.outvars]
    end = ",) }" if len(outs) == 1 else ") }"
    one_line = f"{{ lambda {' '.join(consts)}; {' '.join(ins)}. let {'; '.join(eqns)} in ("
    one_line += ", ".join(outs) + end
    if "\n" not in one_line and indent + before + len(one_line) <= _WIDTH:
        return one_line
    body = "".join(f"\n{' ' * (indent + 4)}{eqn}" for eqn in eqns)
    head = "{ lambda"
    head += _wrapped([f" {v}" for v in consts] or [" "], indent + before + 8, indent + 4) + ";"
    column = len(head) - head.rfind("\n") - 1 if "\n" in head else indent + before + len(head)
    head += _wrapped([f" {v}" for v in ins] or [" "], column, indent + 4)
    words = [f" {v}," for v in outs[:-1]] + [f" {v}" for v in outs[-1:]]
    tail = _wrapped(words, indent + 5, indent + 4)[1:]
    return f"{head}. let{body}\n{' ' * (indent + 2)}in ({tail}{end}"


def format_jaxpr(jaxpr: Jaxpr) -> str:
    """The text of `jaxpr`: long jaxprs inside of it, and those in several places, come first."""
    context = jaxpr.cache.get("context", ())
    jaxpr = with_held(jaxpr)
    namer = _Namer(_lets(jaxpr), context)
    lines = []
    for inner, name in namer.lets.items():
        lines.append(f"let {name} = {_written(inner, namer, 0, len(f'let {name} = '))} in")
    # Results that nobody reads have no name here. They have in inner jaxprs.
    read = {v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is Var}
    read.update(v for v in jaxpr.outvars if type(v) is Var)
    namer.names.update({v: "_" for eqn in jaxpr.eqns for v in eqn.outvars if v not in read})
    return "\n".join([*lines, _written(jaxpr, namer)])


def format_eqn(eqn: Eqn) -> str:
    """The text of one equation."""
    return _eqn(eqn, _Namer(), 0)


hooks.print_jaxpr, hooks.print_equation = format_jaxpr, format_eqn
