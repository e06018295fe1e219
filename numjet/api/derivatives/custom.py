"""Derivative rules by the user: `custom_jvp`, `custom_vjp`, `custom_gradient`, `closure_convert`.

The decorators flatten arguments and results; the primitives behind them are in
`transforms.custom_rules`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from numjet.api.flat import array_leaves, check_callable, checked_leaves, name_of
from numjet.api.maps.shared_gradients import note_rule, rule_sharing, run_rule
from numjet.base import config, tree
from numjet.base.errors import UnexpectedTracerError
from numjet.base.tracebacks import boundary
from numjet.core import dtypes
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.debug_info import Tracing
from numjet.core.given import array_of, seen, with_dtype
from numjet.core.jaxpr import eval_jaxpr
from numjet.core.primitive import Zero
from numjet.core.refs import Ref, lasting, refuse_returned, refuse_twice, rule_under
from numjet.core.shared import Shared
from numjet.core.structural import convert, zeros
from numjet.core.trace import Tracer, aval_of, current_trace
from numjet.ops.arrange import stop_gradient
from numjet.transforms.custom_rules import custom_jvp_p, custom_vjp_p
from numjet.transforms.remat_opt import optimized
from numjet.transforms.stage import apart, stage
from numjet.transforms.varying import along

_EQUATIONS = config.jax_equations


class SymbolicZero:
    """A tangent or cotangent known to be zero, as rules with `symbolic_zeros=True` see it: `.aval`,
    `.shape`, `.dtype`.

    aval: its shape and dtype. `instantiate()` makes an array of it.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype of an element."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return self.aval.ndim

    def __repr__(self) -> str:
        return "SymbolicZero"


class CustomVJPPrimal:
    """What the forward function of a custom_vjp with symbolic zeros gets for each leaf: `.value`
    and `.perturbed`.

    value: the primal; perturbed: whether it is differentiated.

    >>> from numjet import custom_derivatives
    >>> custom_derivatives.CustomVJPPrimal(2.0, True).value
    2.0
    """

    __slots__ = ("value", "perturbed")

    def __init__(self, value: Any, perturbed: bool) -> None:
        self.value, self.perturbed = value, perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def positional(fun: Callable) -> int:
    """How many arguments `fun` takes, where all of them may be given by position; else -1."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (ValueError, TypeError):
        return -1
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return len(parameters) if all([p.kind in plain for p in parameters]) else -1


def resolve_kwargs(decorator: str, fun: Callable, args: tuple, kwargs: dict) -> tuple:
    """All arguments of a function under `decorator` by position, with the function's defaults
    filled in. What a `functools.partial` has bound by name is no argument, nor is what can be given
    by name alone and is not given: its default is used."""
    if not kwargs and isinstance(fun, functools.partial):
        return args
    try:
        signature = inspect.signature(fun)
    except (ValueError, TypeError):
        if kwargs:
            raise
        return args
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{_unresolved(decorator, fun)}\n{error}.") from None
    bound.apply_defaults()  # first: what follows a parameter that was not given has a position too
    if unresolved := sorted(kwargs.keys() & bound.kwargs.keys()):
        raise TypeError(
            f"{_unresolved(decorator, fun)}\nThe following keyword arguments could not be resolved "
            f"to positions: {', '.join(unresolved)}."
        )
    return bound.args


def _unresolved(decorator: str, fun: Callable) -> str:
    name = name_of(fun)
    return (
        f"The input arguments to the {decorator}-decorated function {name} could not be resolved "
        "to positional-only arguments:"
    )


# What was found of a call's outputs, in order: their structure, and their types where the function
# itself gave them, None where a rule did. A plain list, as `core.alike` knows it.
_Outputs = list[tuple[Any, tuple[ShapedArray, ...] | None]]


_MUST_PRODUCE = {
    "custom_jvp": (
        "Custom JVP rule {rule} for function {name} must produce a pair (list or tuple of length "
        "two) where the first element represents the primal output (equal in value to the output "
        "of the custom_jvp-decorated function {name}), but instead the JVP rule output's first "
        "element had "
    ),
    "custom_vjp": (
        "Custom VJP fwd rule {rule} for function {name} must produce a pair (list or tuple of "
        "length two) where the first element represents the primal output (equal to the output of "
        "the custom_vjp-decorated function {name}) and the second element represents residuals "
        "(i.e. values stored from the forward pass for use on the backward pass), but instead the "
        "fwd rule output's first element had "
    ),
}


def _note_rule_output(
    found: _Outputs, decorator: str, rule: Any, name: str, treedef: Any, outs: Sequence[Any]
) -> None:
    """Note what a rule gave as the outputs of the function `name`; TypeError where the function
    itself gave something else."""
    structure, avals = next((entry for entry in found if entry[1] is not None), (None, None))
    found.append((treedef, None))
    if avals is None:
        return
    given = [aval_of(x) for x in outs]
    if structure != treedef:
        what, end = "container/pytree structure", "."
    elif [(a.shape, a.dtype) for a in given] != [(a.shape, a.dtype) for a in avals]:
        what, end = "shapes/dtypes of", ""
    else:
        return
    intro = _MUST_PRODUCE[decorator].format(rule=_named(rule), name=name)
    raise TypeError(
        f"{intro}{what}:\n    {_types(treedef, given)}\nwhile the {decorator}-decorated function "
        f"{name} had output {what}:\n    {_types(structure, avals)}{end}"
    )


def _as_noted(shows: Any) -> Any:
    """A context in which a rule is run as its function was: `make_jaxpr` writes other equations,
    so that what a linear function remembers has other shapes, and results may hold that."""
    return _EQUATIONS(True) if shows and not _EQUATIONS.value else nullcontext()


def _types(treedef: Any, avals: Sequence[ShapedArray]) -> str:
    return str(tree.tree_unflatten(treedef, [_Text(a.str_short()) for a in avals]))


class _Text(str):
    """A text that containers show without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _split_nondiff(nums: Sequence[int], args: tuple) -> tuple[list, list]:
    return [args[i] for i in nums], [x for i, x in enumerate(args) if i not in nums]


def _merge(nums: Sequence[int], nondiff: Sequence[Any], diff: Sequence[Any]) -> list:
    out = list(diff)
    for i, x in sorted(zip(nums, nondiff, strict=True), key=lambda pair: pair[0]):
        out.insert(i, x)
    return out


def _named(rule: Any) -> str:
    """What a rule is called in messages."""
    return name_of(rule)


def _traced(x: Any) -> bool:
    return any(isinstance(leaf, Tracer) for leaf in tree.tree_leaves(x))


# Methods that set a rule: decorators hand those they lack on to the function they decorate.
RULES = frozenset({"def_vmap", "defjvp", "defjvps", "defvjp"})


class _CustomRule:
    """What both decorators share."""

    decorator = ""

    def __getattr__(self, name: str) -> Any:
        # Rules of decorators below this one are set through it.
        if name in RULES:
            fun = self.__dict__.get("fun")
            if hasattr(fun, name):
                return getattr(fun, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __init__(
        self, fun: Callable, nondiff_argnums: Sequence[int] | int = (), nondiff_argnames: Any = ()
    ) -> None:
        check_callable(type(self).__name__, fun)
        functools.update_wrapper(self, fun)  # type: ignore[arg-type]
        self.fun = fun
        nums = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        names = (
            (nondiff_argnames,) if isinstance(nondiff_argnames, str) else tuple(nondiff_argnames)
        )
        if names:
            order = list(inspect.signature(fun).parameters)
            nums += tuple([order.index(n) for n in names if n in order])
        if min(nums, default=0) < 0 and (n := positional(fun)) > 0:  # counted from the end
            nums = tuple([i + n if i < 0 else i for i in nums])
        self.nondiff_argnums = tuple(sorted(set(nums)))
        self._positional: int | None = None  # see there; found at the first call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(type(self).__name__)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _arguments(self, args: tuple, kwargs: dict) -> tuple[list, list]:
        if self._positional is None:
            self._positional = positional(self.fun)
        if kwargs or len(args) != self._positional:
            args = resolve_kwargs(type(self).decorator, self.fun, args, kwargs)
        nums = self.nondiff_argnums
        if nums and not 0 <= nums[0] <= nums[-1] < len(args):
            raise IndexError(
                f"tuple index out of range: nondiff_argnums of {name_of(self.fun)} are "
                f"{nums}, and it was called with {len(args)} arguments."
            )
        nondiff, diff = _split_nondiff(nums, args)
        if isinstance(self, custom_jvp):  # traced ones have no derivative, as the name says
            nondiff = [stop_gradient(x) if _traced(x) else x for x in nondiff]
            return nondiff, diff
        for i, x in zip(nums, nondiff, strict=True):
            for leaf in tree.tree_leaves(x):
                if isinstance(leaf, Tracer):
                    raise UnexpectedTracerError(
                        "Found a JAX Tracer object passed as an argument to a custom_vjp function "
                        "in a position indicated by nondiff_argnums as non-differentiable: "
                        f"{name_of(self.fun)}: argument number {i} is in nondiff_argnums but is a "
                        "traced array. nondiff_argnums is for functions and static values; pass "
                        "arrays as ordinary arguments and return None for their cotangent."
                    )
        return nondiff, diff

    def _leaves(self, diff: list) -> tuple[list[Any], Any]:
        """The leaves of the arguments that are differentiated, numbers and NumPy arrays among them
        with dtypes, and their structure."""
        leaves, in_tree = checked_leaves(name_of(self.fun), tuple(diff), refs=self._refs)
        return [x if type(x) is ArrayImpl else with_dtype(x) for x in leaves], in_tree

    def _refs(self, leaves: list[Any], in_tree: Any) -> None:
        """Refuse a reference that is given twice."""
        label = f"{type(self).decorator} fun"
        static = self.nondiff_argnums
        names = Tracing(self.fun, label, in_tree, static=static, by_name=False).names()
        refuse_twice(name_of(self.fun), label, leaves, names)

    def _caller(self, nondiff: list, in_tree: Any, out: _Outputs) -> Callable:
        nums = self.nondiff_argnums[: len(nondiff)]
        what = name_of(self.fun)
        if self.decorator == "custom_vjp":
            what = f"custom_vjp primal function {what}"

        def flat(*leaves: Any) -> list[Any]:
            result = self.fun(*_merge(nums, nondiff, tree.tree_unflatten(in_tree, leaves)))
            values, treedef = checked_leaves(what, result, "output")
            known = bool(values) and type(values[0]) is ArrayImpl  # run at once: no rule follows
            out.append((treedef, None if known else tuple([aval_of(x) for x in values])))
            return values

        # What messages tell, should it be staged.
        flat.traced = self.fun, self.decorator, in_tree, nums  # type: ignore[attr-defined]
        return flat


class custom_jvp(_CustomRule):  # noqa: N801 - a decorator
    """A function with a forward derivative rule of its own: `f.defjvp(rule)` or
    `f.defjvps(*rules)`.

    fun: the function, which computes the value. nondiff_argnums, nondiff_argnames: arguments that
    are not differentiated (functions, options); they come first in the rule. rule(primals,
    tangents) -> (primal_out, tangent_out), linear in the tangents, so that reverse mode can
    transpose it. `defjvps` takes one rule(tangent, out, *primals) for each argument, or None, and
    adds them. Raises AttributeError when it is differentiated without a rule, TypeError where a
    tangent does not fit its primal.

    >>> import numjet as nj
    >>> @nj.custom_jvp
    ... def f(x):
    ...     return x ** 2
    >>> f.defjvps(lambda t, out, x: 3.0 * t)
    >>> print(f(1.0), nj.grad(f)(1.0))
    1.0 3.0
    """

    decorator = "custom_jvp"
    jvp: Callable | None = None
    symbolic_zeros = False

    def defjvp(self, jvp: Callable, symbolic_zeros: bool = False) -> Callable:
        """Set the derivative rule for all arguments together. Usable as a decorator.

        jvp(primals, tangents) -> (primal_out, tangent_out), linear in the tangents; arguments of
        nondiff_argnums come first. symbolic_zeros: zero tangents arrive as SymbolicZeros instead of
        arrays. Result: jvp.

        >>> import numjet as nj
        >>> f = nj.custom_jvp(lambda x: x ** 2)
        >>> @f.defjvp
        ... def rule(primals, tangents):
        ...     return f(*primals), 3.0 * tangents[0]
        >>> print(nj.grad(f)(1.0))
        3.0
        """
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable | None) -> None:
        """Set one derivative rule for each argument; what they give is added.

        jvps: rule(tangent, out, *primals) -> tangent_out for each argument, or None where no
        derivative flows.

        >>> import numjet as nj
        >>> f = nj.custom_jvp(lambda x, y: x * y)
        >>> f.defjvps(lambda t, out, x, y: t * y, None)
        >>> print(*nj.grad(f, (0, 1))(2.0, 3.0))
        3.0 0.0
        """
        if self.nondiff_argnums:
            raise TypeError("defjvps does not go with nondiff_argnums. Use defjvp.")

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple:
            out = self(*primals)
            parts = [
                rule(t, out, *primals)
                for rule, t in zip(jvps, tangents, strict=True)
                if rule is not None
            ]
            if not parts:
                return out, tree.tree_map(lambda x: zeros(aval_of(x).tangent()), out)
            return out, tree.tree_map(lambda *ts: functools.reduce(lambda a, b: a + b, ts), *parts)

        self.defjvp(jvp)

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {name_of(self.fun)} using defjvp. Set one "
                f"with {name_of(self.fun)}.defjvp(rule)."
            )
        if type(self) is jvp_of_arrays and _EQUATIONS.uses and not current_trace().at_once:
            return apart(self._call, self._call, args, kwargs)
        return self._call(*args, **kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        nondiff, diff = self._arguments(args, kwargs)
        leaves, in_tree = self._leaves(diff)
        out_tree: _Outputs = []
        outs = custom_jvp_p.bind(
            *leaves,
            call_jaxpr=self._caller(nondiff, in_tree, out_tree),
            jvp=self._rule(nondiff, in_tree, out_tree),
            name=name_of(self.fun),
            num_consts=0,
            symbolic_zeros=self.symbolic_zeros,
        )
        return tree.tree_unflatten(out_tree[-1][0], outs)

    def _rule(self, nondiff: list, in_tree: Any, out_tree: _Outputs) -> Callable:
        rule, symbolic, name = self.jvp, self.symbolic_zeros, name_of(self.fun)
        of_arrays = type(self) is jvp_of_arrays
        shows = _EQUATIONS.value and config.jax_form()

        def flat(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list, list]:
            if symbolic:
                tangents = [SymbolicZero(t.aval) if type(t) is Zero else t for t in tangents]
            if not of_arrays:
                primals, tangents = seen(primals), seen(tangents)
            with _as_noted(shows):
                result = rule(
                    *nondiff,
                    tree.tree_unflatten(in_tree, primals),  # type: ignore[misc]
                    tree.tree_unflatten(in_tree, tangents),
                )
            if not isinstance(result, tuple | list) or len(result) != 2:
                raise TypeError(
                    f"Custom JVP rule {_named(rule)} for function {name} must produce a pair "
                    "(list or tuple of length two) representing primal and tangent outputs, but "
                    f"got {result!r}."
                )
            outs, treedef = checked_leaves(name, result[0], "output")
            _note_rule_output(out_tree, "custom_jvp", rule, name, treedef, outs)
            t_leaves, t_tree = tree.tree_flatten(result[1])
            if treedef != t_tree:
                raise TypeError(
                    f"Custom JVP rule {_named(rule)} for function {name} must produce primal and "
                    "tangent outputs with equal container (pytree) structures, but got "
                    f"{treedef} and {t_tree} respectively. "
                    + tree.structure_difference("the primal", treedef, "the tangent", t_tree)
                )
            return outs, [
                Zero(t.aval) if type(t) is SymbolicZero else array_of(t) for t in t_leaves
            ]

        flat.__name__ = _named(rule)
        return flat


class jvp_of_arrays(custom_jvp):  # noqa: N801 - a decorator
    """`custom_jvp` of numjet's own functions, whose rules are given Arrays for numbers."""

    def _leaves(self, diff: list) -> tuple[list[Any], Any]:
        return checked_leaves(name_of(self.fun), tuple(diff))


class custom_vjp(_CustomRule):  # noqa: N801 - a decorator
    """A function with a reverse derivative rule of its own: `f.defvjp(fwd, bwd)`.

    fun: the function, which computes the value. nondiff_argnums, nondiff_argnames: arguments that
    are not differentiated; `bwd` gets them first. fwd(*args) -> (output, residuals), residuals a
    pytree of arrays; bwd(*nondiff, residuals, cotangent) -> a tuple of cotangents, one for each
    argument that is differentiated, None where nothing flows. Forward-mode differentiation raises
    TypeError, differentiation without a rule AttributeError.

    >>> import numjet as nj
    >>> @nj.custom_vjp
    ... def f(x):
    ...     return x ** 2
    >>> f.defvjp(lambda x: (f(x), x), lambda x, ct: (5.0 * ct,))
    >>> print(f(1.0), nj.grad(f)(1.0))
    1.0 5.0
    """

    decorator = "custom_vjp"
    fwd: Callable | None = None
    bwd: Callable | None = None
    symbolic_zeros = False
    optimize_remat = False

    def defvjp(
        self,
        fwd: Callable,
        bwd: Callable,
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the forward and the backward function.

        fwd(*args) -> (output, residuals). bwd(*nondiff, residuals, cotangent) -> a tuple of
        cotangents, one for each argument that is differentiated, None where nothing flows.
        symbolic_zeros: fwd gets CustomVJPPrimals, bwd SymbolicZeros where there are zeros.
        optimize_remat: in passes of `checkpoint` that keep no residuals the function is run
        instead of fwd.

        >>> import numjet as nj
        >>> f = nj.custom_vjp(lambda x: x ** 2)
        >>> f.defvjp(lambda x: (f(x), x), lambda x, ct: (5.0 * ct,))
        >>> print(nj.grad(f)(1.0))
        5.0
        """
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros
        self.optimize_remat = optimize_remat

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.fwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {name_of(self.fun)} using defvjp. Set one "
                f"with {name_of(self.fun)}.defvjp(fwd, bwd)."
            )
        nondiff, diff = self._arguments(args, kwargs)
        leaves, in_tree = self._leaves(diff)
        out_tree: _Outputs = []
        res_tree: list = []
        note_rule()
        outs = custom_vjp_p.bind(
            *leaves,
            call_jaxpr=self._caller(nondiff, in_tree, out_tree),
            fwd=self._forward(nondiff, in_tree, out_tree, res_tree),
            bwd=self._backward(nondiff, in_tree, out_tree, res_tree),
            name=name_of(self.fun),
            num_consts=0,
            symbolic_zeros=self.symbolic_zeros,
        )
        return tree.tree_unflatten(out_tree[-1][0], outs)

    def _forward(
        self, nondiff: list, in_tree: Any, out_tree: _Outputs, res_tree: list
    ) -> Callable:
        fwd, symbolic, name, nums = (
            self.fwd,
            self.symbolic_zeros,
            name_of(self.fun),
            self.nondiff_argnums,
        )
        shows = _EQUATIONS.value and config.jax_form()
        around = current_trace()

        def flat(primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list, list]:
            leaves, primals = primals, seen(primals)
            if symbolic:
                primals = [CustomVJPPrimal(x, p) for x, p in zip(primals, perturbed, strict=True)]
            args = _merge(nums[: len(nondiff)], nondiff, tree.tree_unflatten(in_tree, primals))
            told, ruled = Shared.told.get(), Shared.ruled.get()
            with _as_noted(shows), rule_under(around):
                result = run_rule(lambda: fwd(*args), name, told, ruled)  # type: ignore[misc]
            if not isinstance(result, tuple | list) or len(result) != 2:
                raise TypeError(
                    f"Custom VJP fwd rule {_named(fwd)} for function {name} must produce a pair "
                    "(list or tuple of length two) where the first element represents the primal "
                    "output and the second element represents residuals (i.e. values stored from "
                    f"the forward pass for use on the backward pass), but got {result!r}."
                )
            outs, treedef = checked_leaves(f"custom_vjp fwd function {name}", result[0], "output")
            _note_rule_output(out_tree, "custom_vjp", fwd, name, treedef, outs)
            residuals, structure = tree.tree_flatten(result[1])
            arrays = [isinstance(x, Array) for x in residuals]  # the rest stays what it is
            others = [x for x, a in zip(residuals, arrays, strict=True) if not a]
            for x in others:
                if isinstance(x, Ref) and not any([x is y for y in tree.tree_leaves(args)]):
                    refuse_returned(x, f"custom_vjp fwd function {name}")
            others = [x if isinstance(x, Ref) else with_dtype(x) for x in others]
            shared = rule_sharing(leaves, outs, told, ruled) if told or Shared.axes.get() else None
            res_tree.append((structure, arrays, others, shared))
            return outs, [x for x, a in zip(residuals, arrays, strict=True) if a]

        flat.__name__ = _named(fwd)
        if not self.optimize_remat:
            return flat
        value = self._caller(nondiff, in_tree, [])

        def both(primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list, list]:
            return optimized(lambda *xs: flat(xs, perturbed), value, primals)

        both.__name__ = _named(fwd)
        return both

    def _backward(
        self, nondiff: list, in_tree: Any, out_tree: _Outputs, res_tree: list
    ) -> Callable:
        bwd, symbolic, name = self.bwd, self.symbolic_zeros, name_of(self.fun)

        def flat(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            structure, arrays, others, shared = res_tree[-1]
            others = [lasting(x) if type(x) is Ref else x for x in others]
            given, rest = iter(residuals), iter(others)
            res = tree.tree_unflatten(structure, [next(given) if a else next(rest) for a in arrays])
            if shared is not None:
                return shared.run(lambda res, cts: back(res, cts, shared.told), res, cts)
            return back(res, cts)

        def back(res: Any, cts: Sequence[Any], told: Any = None) -> list[Any]:
            if symbolic:
                cts = [SymbolicZero(ct.aval) if type(ct) is Zero else ct for ct in cts]
            given_cts = tree.tree_unflatten(out_tree[-1][0], seen(cts))
            rule = lambda: bwd(*nondiff, res, given_cts)  # type: ignore[misc]  # noqa: E731
            result = run_rule(rule, name, told, Shared.ruled.get())
            return _cotangents(name, in_tree, result)

        flat.__name__ = _named(bwd)
        flat.in_tree = in_tree  # type: ignore[attr-defined]  # what messages name leaves by
        return flat


def _cotangents(name: str, in_tree: Any, result: Any) -> list[Any]:
    """The flat cotangents, one a leaf of the arguments: None stands for a whole argument (or
    subtree) of zeros, an array for every leaf below its place."""
    n = len(in_tree.children())
    if isinstance(result, list):
        result = tuple(result)
    if not isinstance(result, tuple):
        raise TypeError(
            f"Custom VJP bwd rule of {name} must produce an output with the same container "
            "(pytree) structure as the args tuple of the primal function, and in particular must "
            f"produce a tuple of length equal to the number of arguments, {n} of them "
            f"differentiable, but got {type(result).__name__}. Write (ct,) for one argument."
        )
    if len(result) != n:
        raise TypeError(
            f"Custom VJP bwd rule of {name} must produce an output with the same container "
            "(pytree) structure as the args tuple of the primal function, and in particular must "
            f"produce a tuple of length equal to the number of arguments, {n} of them "
            f"differentiable, but got {len(result)}. Use None for those without a gradient."
        )
    found: list[Any] = []
    for i, (ct, structure) in enumerate(zip(result, in_tree.children(), strict=True)):
        try:
            leaves = tree.flatten_axes(f"the cotangent[{i}]", structure, ct)
        except ValueError as error:
            raise TypeError(
                f"Custom VJP bwd rule of {name} must produce an output with the same container "
                f"(pytree) structure as the args tuple of the primal function: {error}"
            ) from None
        for leaf in leaves:
            if type(leaf) is SymbolicZero:
                found.append(Zero(leaf.aval))
            else:
                none = leaf is None or getattr(leaf, "dtype", 0) == dtypes.float0
                found.append(None if none else array_of(leaf))
    return found


def custom_gradient(fun: Callable) -> Callable:
    """A function with a gradient of its own: `fun` returns the output together with its pullback.

    fun(*args) -> (output, pullback); pullback maps a cotangent of `output` to one cotangent for
    each argument, a tuple of them (one alone need not be in a tuple). It may close over
    intermediate values. Reverse mode only; `custom_vjp` separates the two halves.

    >>> import numjet as nj
    >>> @nj.custom_gradient
    ... def f(x):
    ...     return x ** 2, lambda g: (g * x,)
    >>> print(f(3.0), nj.grad(f)(3.0))
    9.0 3.0
    """

    @custom_vjp
    def wrapped_fun(*args: Any) -> Any:
        out, _ = fun(*args)
        return out

    def fwd(*args: Any) -> tuple:
        out, pullback = fun(*args)
        avals, treedef = [aval_of(x) for x in tree.tree_leaves(out)], tree.tree_structure(out)

        def flat(*cts: Any) -> list[Any]:
            result = pullback(tree.tree_unflatten(treedef, cts))
            result = result if isinstance(result, tuple | list) else (result,)
            leaves, structure = array_leaves("custom_gradient", tuple(result))
            out_tree.append(structure)
            return leaves

        out_tree: list = []
        jaxpr, consts = stage(flat, avals, "pullback")
        return out, (consts, tree.Partial(_Pullback(jaxpr, out_tree[0])))

    def bwd(residuals: tuple, ct: Any) -> Any:
        consts, partial = residuals
        pull = partial.func
        found = eval_jaxpr(pull.jaxpr, consts, *[as_array(x) for x in tree.tree_leaves(ct)])
        return tree.tree_unflatten(pull.out_tree, found)

    wrapped_fun.defvjp(fwd, bwd)
    functools.update_wrapper(wrapped_fun, fun)
    return wrapped_fun


class _Pullback:
    """A staged pullback with the structure of its result; compared by identity."""

    __slots__ = ("jaxpr", "out_tree")

    def __init__(self, jaxpr: Any, out_tree: Any) -> None:
        self.jaxpr, self.out_tree = jaxpr, out_tree

    def __call__(self, *args: Any) -> Any:
        return eval_jaxpr(self.jaxpr, [], *args)


def closure_convert(fun: Callable, *example_args: Any) -> tuple[Callable, list[Any]]:
    """`fun` as a function of its arguments and of the traced values that it closes over.

    example_args: arguments of the shapes and dtypes that `fun` will get. Result: (converted,
    values): converted(*args, *values) equals fun(*args). `values` are the closed-over values that a
    transformation is tracing just now; other arrays stay inside. Custom derivative rules of
    functions that take functions use it, to return cotangents for what a closure holds.

    >>> import numjet as nj
    >>> f, values = nj.closure_convert(lambda x: x * 2.0, 1.0)
    >>> print(f(3.0, *values), values)
    6.0 []
    """
    leaves, in_tree = array_leaves("closure_convert", example_args)
    out_tree: list = []

    def flat(*values: Any) -> list[Any]:
        outs, treedef = array_leaves(
            "closure_convert", fun(*tree.tree_unflatten(in_tree, values)), "output"
        )
        out_tree.append(treedef)
        return outs

    jaxpr, consts = stage(
        flat, [x.aval for x in leaves], name_of(fun), flows=along(leaves)
    )
    traced = [isinstance(c, Tracer) and dtypes.is_inexact(c.aval.dtype) for c in consts]
    hoisted = [c for c, t in zip(consts, traced, strict=True) if t]

    def converted(*args: Any) -> Any:
        n = len(args) - len(hoisted)
        given = iter(args[n:])
        values = [next(given) if t else c for c, t in zip(consts, traced, strict=True)]
        flat_args, treedef = array_leaves("closure_convert", tuple(args[:n]))
        if treedef != in_tree:
            raise TypeError(
                "The inputs to the closure produced by closure_convert must have the structure of "
                f"the example arguments, {in_tree}, followed by the values of the closure; got "
                f"{treedef}."
            )
        flat_args = [
            convert(x, a.aval.dtype, a.aval.weak_type)
            for x, a in zip(flat_args, leaves, strict=True)
        ]
        return tree.tree_unflatten(out_tree[0], eval_jaxpr(jaxpr, values, *flat_args))

    return converted, hoisted
