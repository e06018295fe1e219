"""Operations that the user declares with rules of their own, some on values that are no arrays: the
primitive behind `experimental.hijax`.

A call's operands and results are flat arrays: a value that is none is the list of those that it
holds (`core.hi.LoweredValue`, a node of trees), and the rules are asked with values again (`Call`).
Under a derivative the rules for reverse mode make the call's linear part (`custom_lin`), those for
forward mode are run; operations that these apply to tangents are transposed by their own
`transpose`. Where a type's tangents are other arrays than its arrays' tangents, arrays of zeros
stand beside these to carry them (`core.hi.carriers_of`). What would break it: a value that the user
copies while it is traced: the copy has no such arrays.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from numjet.base import tree
from numjet.core import dtypes
from numjet.core.array import Array, as_array
from numjet.core.avals import ShapedArray
from numjet.core.hi import (
    LoweredValue,
    carriers_of,
    forward_rules,
    linear_rules,
    lowered,
    raised,
    raised_type,
)
from numjet.core.lowering import Region
from numjet.core.primitive import Linear, Primitive, Zero
from numjet.core.structural import convert, instantiate, moveaxis
from numjet.core.trace import Tracer, aval_of
from numjet.transforms import custom_rules
from numjet.transforms.batch import Axis
from numjet.transforms.linearize import PartialTracer


@contextlib.contextmanager
def linearizing() -> Iterator[None]:
    """Ask for rules of `lin` where an operation has them: the linear function is to be called."""
    before = linear_rules.set(True)
    try:
        yield
    finally:
        linear_rules.reset(before)


class Form:
    """Which leaves of a tree are values that are no arrays, and which arrays stand for each."""

    __slots__ = ("treedef", "types", "counts", "carriers")

    def __init__(self, treedef: Any, types: Sequence[Any], counts: Sequence[int]) -> None:
        # The type of each leaf, None for an array; how many arrays stand for it; and how many of
        # these, at the end, are there for tangents of another layout.
        self.treedef, self.types, self.counts = treedef, tuple(types), tuple(counts)
        self.carriers = [0 if ty is None else len(carriers_of(ty)) for ty in self.types]

    @classmethod
    def of(cls, value: Any) -> tuple[Form, list[Any]]:
        """The form of `value`, and its arrays, numbers among them."""
        leaves, treedef = tree.tree_flatten(value)
        types, counts = [], []
        flat: list[Any] = []
        for x in map(lowered, leaves):
            held = type(x) is LoweredValue
            arrays = x.arrays if held else [x]
            types.append(x.type if held else None)
            counts.append(len(arrays))
            flat += arrays
        return cls(treedef, types, counts), flat

    @classmethod
    def of_avals(cls, avals: Any) -> tuple[Form, list[ShapedArray]]:
        """The form of values of these types, and the avals of their arrays."""
        leaves, treedef = tree.tree_flatten(avals)
        types, counts = [], []
        flat: list[ShapedArray] = []
        for a in leaves:
            held = not isinstance(a, ShapedArray)
            arrays = [*a.lo_ty(), *carriers_of(a)] if held else [a]
            types.append(a if held else None)
            counts.append(len(arrays))
            flat += arrays
        return cls(treedef, types, counts), flat

    def groups(self, flat: Sequence[Any]) -> list[list[Any]]:
        """The arrays of each leaf."""
        out, at = [], 0
        for n in self.counts:
            out.append(list(flat[at : at + n]))
            at += n
        return out

    def value(self, flat: Sequence[Any]) -> Any:
        """The tree of these arrays."""
        leaves = [
            xs[0] if ty is None else raised(ty, xs)
            for ty, xs in zip(self.types, self.groups(flat), strict=True)
        ]
        return tree.tree_unflatten(self.treedef, leaves)

    def tangents(self, flat: Sequence[Any], cotangents: bool = False) -> list[Any]:
        """The tangent of each leaf, a Zero where all of it is zero; or the cotangent."""
        leaves = []
        for ty, ts, n in zip(self.types, self.groups(flat), self.carriers, strict=True):
            ts = ts[len(ts) - n :] if n else ts
            if ty is None:
                leaves.append(ts[0])
            elif all([type(t) is Zero for t in ts]) and not cotangents:
                leaves.append(Zero(raised_type(ty, cotangents)))
            else:
                of = raised_type(ty, cotangents)
                leaves.append(_raised(of, [_dense(t) for t in ts]))
        return leaves

    def flat_tangents(self, value: Any, avals: Sequence[ShapedArray]) -> list[Any]:
        """The tangents, or cotangents, of the arrays, of a tree of those of the leaves; None where
        there is none. `avals` are those of the arrays."""
        leaves = tree.flatten_axes("the derivative", self.treedef, value)
        out: list[Any] = []
        for x, n, carriers in zip(leaves, self.counts, self.carriers, strict=True):
            if carriers:  # which the derivative is of
                out += [Zero(a.tangent()) for a in avals[len(out) : len(out) + n - carriers]]
                n = carriers
            want = avals[len(out) : len(out) + n]
            if x is None or type(x) is Zero:
                out += [Zero(a.tangent()) for a in want]
                continue
            x = lowered(x)
            found = x.arrays[: len(x.type.lo_ty())] if type(x) is LoweredValue else [x]
            if len(found) != n:
                raise TypeError(
                    f"a derivative rule gave {len(found)} arrays for a value of {n}. Give one of "
                    "the value's tangent type."
                )
            for a, t in zip(want, found, strict=True):
                t = as_array(t)
                none = a.tangent().dtype == dtypes.float0
                out.append(Zero(a.tangent()) if none else convert(t, a.dtype, t.weak_type))
        return out


def _dense(t: Any) -> Any:
    if t.aval.dtype == dtypes.float0:
        raise NotImplementedError(
            "a value that is no array holds integers, which have no tangent: its tangents are "
            "other arrays than those of the arrays that it holds. Differentiate in arrays."
        )
    return instantiate(t)


def _raised(ty: Any, arrays: list) -> Any:
    if isinstance(ty, ShapedArray):
        if len(arrays) == 1:
            return arrays[0]
    elif len(ty.lo_ty()) == len(arrays):
        return ty.raise_val(*arrays)
    raise NotImplementedError(
        f"tangents of type {ty} are other arrays than the tangents of the {len(arrays)} arrays "
        "that a value holds. Give it a type whose tangents hold as many."
    )


def _instantiated(zero: Zero) -> Any:
    array = isinstance(zero.aval, ShapedArray)
    return instantiate(zero) if array else zero.aval.vspace_zero()  # type: ignore[attr-defined]


class Sum:
    """What an argument's cotangents add up to; `wanted`: whether anybody asks for it."""

    __slots__ = ("value", "wanted")

    def __init__(self, wanted: bool = True) -> None:
        self.value: Any = None
        self.wanted = wanted

    def accum(self, x: Any) -> None:
        """Add `x`, if it is no symbolic zero."""
        if self.wanted and x is not None and type(x) is not Zero:
            if self.value is None:
                self.value = x
            else:
                add = getattr(raised_type(x), "vspace_add", None)
                self.value = self.value + x if add is None else add(self.value, x)


class Call:
    """An operation with the forms of its arguments and results, as flat functions."""

    __slots__ = ("op", "name", "ins", "outs", "in_avals", "out_avals", "params")

    def __init__(self, op: Any, args: Any, out_aval: Any, params: dict | None) -> None:
        self.op, self.name, self.params = op, op.name, params
        self.ins, flat = Form.of(args)
        self.in_avals = [aval_of(x) for x in flat]
        self.outs, self.out_avals = Form.of_avals(out_aval)

    def __repr__(self) -> str:
        return repr(self.op)

    def has(self, *names: str) -> bool:
        """Whether the operation's class gives one of these rules itself."""
        own = [(getattr(type(self.op), n, None), _declared(n)) for n in names]
        return any([rule is not None and rule not in declared for rule, declared in own])

    def run(self, *flat: Any) -> list[Any]:
        """The operation, of flat operands."""
        args = self.ins.value(flat)
        if self.params is None:
            out = self.op.expand(*args)
        else:
            out = self.op.to_lojax(*args, **self.params)
        return self.flat_results(out)

    def flat_results(self, out: Any) -> list[Any]:
        if self.params is not None and self.op.multiple_results:
            out = list(out)
        form, flat = Form.of(out)
        declared = tuple([ty if ty is None else ty.normalize() for ty in self.outs.types])
        if form.treedef != self.outs.treedef or form.types != declared:
            raise TypeError(
                f"{self.name}: its results have other types than it declares, {self.outs.types} in "
                f"a tree of structure {self.outs.treedef}."
            )
        arrays = [as_array(x) for x in flat]
        for x, a in zip(arrays, self.out_avals, strict=True):
            if x.shape != a.shape or x.aval.dtype != a.dtype:
                raise TypeError(
                    f"{self.name}: a result of type {x.aval.str_short()} is declared as "
                    f"{a.str_short()}. Correct out_aval."
                )
        return [convert(x, a.dtype, a.weak_type) for x, a in zip(arrays, self.out_avals)]

    # ---------------------------------------------------------------- derivatives
    def forward(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list, list]:
        """Results and tangents, by the user's `jvp`."""
        args = self.ins.value(primals)
        leaves = self.ins.tangents(tangents)
        if self.params is not None:  # these rules are given no symbolic zeros
            leaves = [_instantiated(t) if type(t) is Zero else t for t in leaves]
        ts = tree.tree_unflatten(self.ins.treedef, leaves)
        out, out_tangents = self.op.jvp(tuple(args), tuple(ts), **(self.params or {}))
        if self.params is not None and self.op.multiple_results:
            out_tangents = list(out_tangents)
        return self.flat_results(out), self.outs.flat_tangents(out_tangents, self.out_avals)

    def perturbed(self, flags: Sequence[bool]) -> Any:
        """Which arguments are differentiated, in a tree like theirs."""
        groups = self.ins.groups(flags)
        return tree.tree_unflatten(self.ins.treedef, [any(flags) for flags in groups])

    def residuals(self, flags: Sequence[bool], primals: Sequence[Any], found: dict) -> tuple:
        """Results and what is kept, by `vjp_fwd`; `found` notes the form of what is kept."""
        out, kept = self.op.vjp_fwd(self.perturbed(flags), *self.ins.value(primals))
        leaves, found["tree"] = tree.tree_flatten(tree.tree_map(lowered, kept))
        found["arrays"] = [isinstance(x, Array) for x in leaves]
        found["others"] = [x for x in leaves if not isinstance(x, Array)]
        found["flags"] = list(flags)
        return self.flat_results(out), [x for x in leaves if isinstance(x, Array)]

    def backward(self, found: dict, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """The cotangents of the arrays of the arguments, None where there is none."""
        given, others = iter(residuals), iter(found["others"])
        kept = tree.tree_unflatten(
            found["tree"], [next(given) if a else next(others) for a in found["arrays"]]
        )
        ct = tree.tree_unflatten(self.outs.treedef, self.outs.tangents(cts, True))
        if self.has("vjp_bwd"):
            groups = self.ins.groups(found["flags"])
            leaves = [Sum(any(flags)) for flags in groups]
            self.op.vjp_bwd(kept, ct, *tree.tree_unflatten(self.ins.treedef, leaves))
            result = tree.tree_unflatten(self.ins.treedef, [x.value for x in leaves])
        else:
            result = tuple(self.op.vjp_bwd_retval(kept, ct))
        flat = self.ins.flat_tangents(result, self.in_avals)
        return [None if type(t) is Zero else t for t in flat]


_HI: dict[str, Any] = {}


def _declared(name: str) -> list[Any]:
    """The methods of that name that the public classes have, which say that there is none."""
    return [vars(base)[name] for base in _HI["bases"] if name in vars(base)]


def note_bases(*bases: type) -> None:
    """Note the classes that users' operations are derived from."""
    _HI["bases"] = bases


def _lacks(call: Call, what: str, *names: str) -> NotImplementedError:
    told = " or ".join([f"`{n}`" for n in names])
    return NotImplementedError(
        f"for {what} support, subclass {type(call.op)} must implement {told}."
    )


def _known(t: Any) -> bool:
    """Whether a tangent is a value, and no variable of a program that may be transposed."""
    if type(t) is PartialTracer:
        return False
    return not isinstance(t, Tracer) or t.owner.staging is not t.owner


def _jvp(
    primals: tuple, tangents: tuple, *, call_jaxpr: Any, num_consts: int, name: str, call: Call
) -> tuple:
    primals, tangents = primals[num_consts:], tangents[num_consts:]
    given = [t for t in tangents if type(t) is not Zero]
    forward, reverse = call.has("jvp"), call.has("vjp_fwd")
    known = all([_known(t) for t in given])
    if call.has("lin") and (linear_rules.get() or not (forward or reverse)):
        return _lin(call, primals, tangents)
    if reverse and not (forward and (known or forward_rules.get())):
        if known:
            raise _lacks(call, "forward-mode autodiff", "jvp")
        if linear_rules.get() and not forward:
            raise _lacks(call, "linearize", "lin", "linearized")
        return _reverse(call, primals, tangents)
    if forward:
        return call.forward(primals, tangents)
    raise _lacks(call, "autodiff", "jvp", "vjp_fwd")


def _lin(call: Call, primals: tuple, tangents: tuple) -> tuple:
    flags = [type(t) is not Zero for t in tangents]
    out, kept = call.op.lin(call.perturbed(flags), *call.ins.value(primals))
    ts = tree.tree_unflatten(call.ins.treedef, call.ins.tangents(tangents))
    tangent = call.op.linearized(kept, *ts)
    return call.flat_results(out), call.outs.flat_tangents(tangent, call.out_avals)


def _reverse(call: Call, primals: tuple, tangents: tuple) -> tuple:
    """The call with its linear part: the rules for reverse mode transpose it, `jvp` runs it."""
    found: dict = {}
    flags = [type(t) is not Zero for t in tangents]
    outs, residuals = call.residuals(flags, primals, found)
    n = len(residuals)
    kept = [*residuals, *(primals if call.has("jvp") or call.has("lin") else ())]

    def bwd(kept: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        return call.backward(found, kept[:n], cts)

    def run(*operands: Any) -> list[Any]:
        if not (call.has("jvp") or call.has("lin")):
            raise _lacks(call, "forward-mode autodiff", "jvp")
        given = iter(operands[len(kept) :])
        ts = tuple([
            next(given) if f else Zero(a.tangent())
            for f, a in zip(flags, call.in_avals, strict=True)
        ])  # fmt: skip
        values = tuple(operands[n : len(kept)])
        moved = call.forward(values, ts) if call.has("jvp") else _lin(call, values, ts)
        return [instantiate(t) for t in moved[1]]

    bwd.forward = run  # type: ignore[attr-defined]
    out_avals = [aval_of(x).tangent() for x in outs]
    lin = custom_rules.custom_lin_p.bind(
        *kept,
        *[t for t in tangents if type(t) is not Zero],
        num_res=len(kept),
        bwd=bwd,
        name=call.name,
        out_avals=tuple(out_avals),
        perturbed=tuple(flags),
        in_avals=tuple([a.tangent() for a in call.in_avals]),
        symbolic_zeros=False,
    )
    return outs, [
        Zero(a) if a.dtype == dtypes.float0 else t for a, t in zip(out_avals, lin, strict=True)
    ]


def _transpose(
    cts: list, *args: Any, call_jaxpr: Any, num_consts: int, name: str, call: Call
) -> list:
    ct_leaves = call.outs.tangents(cts, True)
    leaves: list[Any] = []
    for ty, xs in zip(call.ins.types, call.ins.groups(args[num_consts:]), strict=True):
        linear = any([type(x) is Linear for x in xs])
        if linear:
            leaves.append(Linear(ty) if ty is not None else xs[0])
        else:
            leaves.append(xs[0] if ty is None else raised(ty, xs))
    if not call.has("transpose"):
        raise _lacks(call, "transpose", "transpose")
    if call.params is None:
        sums = [Sum() if type(x) is Linear else x for x in leaves]
        ct = tree.tree_unflatten(call.outs.treedef, ct_leaves)
        call.op.transpose(ct, *tree.tree_unflatten(call.ins.treedef, sums))
        found = [s.value if type(x) is Linear else None for s, x in zip(sums, leaves, strict=True)]
    else:
        ct = ct_leaves if call.op.multiple_results else ct_leaves[0]
        found = list(call.op.transpose(ct, *leaves, **call.params))
    flat = call.ins.flat_tangents(tree.tree_unflatten(call.ins.treedef, found), call.in_avals)
    return [None] * num_consts + [
        ct if type(x) is Linear else None
        for x, ct in zip(args[num_consts:], flat, strict=True)
    ]


def _batch(axis: Axis, args: tuple, dims: tuple, *, call: Call, **params: Any) -> tuple:
    n = params["num_consts"]
    arrays = not any([ty is not None for ty in (*call.ins.types, *call.outs.types)])
    if call.params is None and call.has("batch") and arrays:
        in_dims = tree.tree_unflatten(
            call.ins.treedef, [ds[0] for ds in call.ins.groups(dims[n:])]
        )
        out, out_dims = call.op.batch(axis, call.ins.value(args[n:]), tuple(in_dims))
        outs = [as_array(x) for x in Form.of(out)[1]]
        return outs, list(tree.flatten_axes("out_dims", tree.tree_structure(out), out_dims))
    if call.params is not None:
        raise NotImplementedError(f"Batching rule for '{call.name}' not implemented")
    rules = dict(call_jaxpr=params["call_jaxpr"], name=call.name, num_consts=n, symbolic_zeros=True)
    if call.has("vjp_fwd") and not call.has("jvp"):
        found: dict = {}

        def fwd(primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple:
            return call.residuals(perturbed, primals, found)

        def bwd(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            return call.backward(found, residuals, [instantiate(ct) for ct in cts])

        return custom_rules.batch_vjp(axis, args, dims, fwd=fwd, bwd=bwd, **rules)
    outs, out_dims = custom_rules.batch_jvp(axis, args, dims, jvp=call.forward, **rules)
    if not (arrays and call.has("batch_dim_rule")):
        return outs, out_dims
    asked = call.op.batch_dim_rule(axis, tuple([ds[0] for ds in call.ins.groups(dims[n:])]))
    want = list(tree.flatten_axes("out_dims", call.outs.treedef, asked))
    arranged = [
        x if have is None or have == dim or dim is None else moveaxis(x, have, dim)
        for x, have, dim in zip(outs, out_dims, want, strict=True)
    ]
    return arranged, [
        have if have is None or dim is None else dim
        for have, dim in zip(out_dims, want, strict=True)
    ]


hi_call_p = Primitive(
    "call_hi_primitive",
    multiple_results=True,
    higher_order=True,
    linear=True,
    abstract=lambda *_, call, **__: call.out_avals,
    evaluate=lambda *args, call_jaxpr, **_: custom_rules.run_call(call_jaxpr, args),
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    loops=Region("call"),
    effects=custom_rules.effects_of_call,
    stage=custom_rules.stage_call(lambda: hi_call_p),
)


def bind(op: Any, args: tuple, out_aval: Any, params: dict | None = None) -> Any:
    """Apply an operation under the current trace.

    args: its arguments, pytrees. out_aval: the types of its results, a tree of avals and types.
    params: None for one that has them as attributes (`expand`), else those of `to_lojax`.
    """
    call = Call(op, args, out_aval, params)
    flat = [as_array(x) for x in Form.of(args)[1]]
    outs = hi_call_p.bind(*flat, call_jaxpr=call.run, num_consts=0, name=call.name, call=call)
    return call.outs.value(outs)


__all__ = ["Call", "Form", "Sum", "bind", "hi_call_p", "linearizing", "note_bases"]

