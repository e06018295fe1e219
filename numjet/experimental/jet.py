"""numjet.experimental.jet: Taylor-mode differentiation, many derivatives along one direction.

A value becomes the coefficients of its Taylor polynomial in one variable, and each operation maps
those of its operands to those of its result: a linear operation each by itself, a bilinear one by
the Cauchy product. Every other operation y = f(x) solves y' = f'(x) x', where f'(x) x' is what the
operation's own `jvp` rule computes, run on coefficients: coefficient k of y is coefficient k - 1 of
the rule's tangent over k. Coefficients are computed when they are asked for, and an operation that
meets its own operands again inside its rule (exp in the rule of exp) is the same value, so that the
recurrence closes: order n costs about n²/2 products for each product of the rule.

Loops, branches and jitted functions are traced once, on all coefficients. What would break it: a
rule that asks for the derivative of its own result.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.api.flat import array_leaves
from numjet.base import tree
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import ClosedJaxpr, eval_closed
from numjet.core.primitive import Primitive, Zero
from numjet.core.structural import broadcast_in_dim, convert, zeros
from numjet.core.trace import Trace, Tracer, aval_of, current_trace, set_trace, user_source
from numjet.ops.bodies import fixed_point, split
from numjet.ops.cond import cond_p
from numjet.ops.conv import conv_general_dilated_p
from numjet.ops.jit_call import call, jit_p
from numjet.ops.scan import scan_p
from numjet.ops.while_loop import while_p
from numjet.scipy.special import gamma
from numjet.transforms.custom_rules import custom_vjp_p, run_call
from numjet.transforms.remat import remat_p
from numjet.transforms.stage import stage

# Linear in each of two operands: coefficients of a product of series.
_BILINEAR = frozenset({"mul", "dot_general", conv_general_dilated_p.name})
# Marked linear, but in these operands alone; the others follow the rule of derivatives.
_LINEAR_IN = {"div": {0}, "triangular_solve": {1}, "tridiagonal_solve": {3}, "ormqr": {2},
              "scatter-mul": {0}, "solve": set(), "custom_linear_solve": set(),
              "custom_lin": set()}  # fmt: skip


def jet(
    fun: Callable, primals: Sequence[Any], series: Sequence[Any], factorial_scaled: bool = True,
    **_: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """The value of `fun` at `primals`, and the derivatives of t -> fun(x(t)) at 0.

    primals: arrays, an argument each. series: for each argument a sequence of its derivatives at
    0, of orders 1, 2, ..., n; the same n for all. With factorial_scaled=False these and the results
    are Taylor coefficients: the derivatives over k!. Returns the value, and for each leaf of it a
    list of n. Raises ValueError for arguments that are no arrays, and for series of different
    lengths.

    >>> import numjet.numpy as jnp
    >>> y, series = jet(jnp.exp, (0.0,), ((1.0, 0.0, 0.0),))
    >>> print(y, *series)
    1.0 1.0 1.0 1.0
    """
    for i, x in enumerate(primals):
        if not tree.all_leaves([x]):
            raise ValueError(f"jet: primal value at position {i} is not an array, but {x!r}.")
    orders = {len(terms) for terms in series}
    if len(orders) != 1:
        raise ValueError("jet: jet terms have inconsistent lengths for different arguments.")
    order = orders.pop()
    scale = [1.0 / math.factorial(k) if factorial_scaled else 1.0 for k in range(order + 1)]
    values, _ = array_leaves("jet", tuple(primals))
    trace = JetTrace(current_trace())
    ins = [
        trace.known(x, [_term(i, x, t, scale[k]) for k, t in enumerate(terms, 1)])
        for i, (x, terms) in enumerate(zip(values, series, strict=False))
    ]
    with set_trace(trace):
        outs, out_tree = array_leaves("jet", fun(*ins), "output")
    out, out_series = [], []
    for y in outs:
        primal, coefficients = trace.open(y, order)
        aval = aval_of(primal)
        if not dtypes.is_inexact(aval.dtype):  # whose coefficients are float zeros all the same
            aval = ShapedArray(aval.shape, dtypes.canonical(np.float64), True)
        zero = zeros(aval.tangent())
        out.append(primal)
        out_series.append(
            [zero if c is None else c / s for s, c in zip(scale[1:], coefficients, strict=True)]
        )
    trace.close()
    # A leaf's list of coefficients stands where the leaf does.
    return tree.tree_unflatten(out_tree, out), tree.tree_unflatten(out_tree, out_series)


def _term(i: int, x: Any, term: Any, scale: float) -> Any:
    aval = x.aval
    if not dtypes.is_inexact(aval.dtype):
        raise TypeError(f"jet: argument {i} has dtype {aval.dtype.name}, expected floats.")
    term = as_array(term)
    if term.aval.shape == () != aval.shape:
        term = broadcast_in_dim(term, aval.shape, ())
    if term.aval.shape != aval.shape:
        raise TypeError(
            f"jet: series of argument {i}: expected shape {aval.shape} as the primal value's, got "
            f"{term.aval.shape}."
        )
    term = convert(term, aval.dtype, aval.weak_type)
    return term if scale == 1.0 else term * scale


# ------------------------------------------------------------------ series
class JetTracer(Tracer):
    """A value with its Taylor coefficients of orders 1, 2, ...: those in `terms` (None for zero),
    further ones from `extend(k)`, which makes `terms` at least k long."""

    __slots__ = ("primal", "terms", "extend", "aval", "slope")

    def __init__(self, trace: JetTrace, primal: Any, terms: list, extend: Any = None) -> None:
        self.owner, self.primal, self.terms, self.extend = trace, primal, terms, extend
        self.aval: ShapedArray = aval_of(primal)
        self.slope: JetTracer | None = None
        trace.made.append(self)

    def get(self, k: int) -> Any:
        """The coefficient of order k."""
        if k == 0:
            return self.primal
        if len(self.terms) < k:
            self.extend(k)
        return self.terms[k - 1]

    def concrete(self) -> Any:
        primal = self.primal
        return primal.concrete() if isinstance(primal, Tracer) else primal

    def origin(self) -> str:
        return self.primal.origin() if isinstance(self.primal, Tracer) else self.owner.origin()


class JetTrace(Trace):
    """Runs each operation on series; coefficients are values of the parent trace."""

    name = "Taylor-mode differentiation"

    def __init__(self, parent: Trace) -> None:
        self.parent: Any = parent
        self.staging = parent.staging
        self.source = user_source(3)
        self._depth = 0  # rules of operations that are running
        self._known: dict[tuple, tuple] = {}  # what the outermost operation's rules have met
        self.made: list[JetTracer] = []  # all series

    def origin(self) -> str:
        """A sentence on where the values of this trace come from."""
        return f"It was made by the jet at {self.source}." if self.source else ""

    def known(self, primal: Any, terms: list) -> JetTracer:
        """A series whose coefficients are all there."""
        return JetTracer(self, primal, terms)

    def open(self, x: Any, order: int) -> tuple[Any, list]:
        """The value and the coefficients up to `order` of anything."""
        if type(x) is not JetTracer or x.owner is not self:
            return x, [None] * order
        return x.primal, [x.get(k) for k in range(1, order + 1)]

    def close(self) -> None:
        """Forget how coefficients are made: series of rules would hold each other in circles."""
        for series in self.made:
            series.extend = series.slope = None
        self.made.clear()

    def process(self, primitive: Primitive, args: tuple, params: dict) -> Any:
        active = [type(x) is JetTracer and x.owner is self for x in args]
        primals = tuple([x.primal if a else x for x, a in zip(args, active, strict=True)])
        own = jet_rules.get(primitive)
        if not any(active) or (primitive.jvp is None and own is None):
            with set_trace(self.parent):
                return self.parent.process(primitive, primals, params)
        key = (primitive, *map(id, args), *[(name, _hashable(p)) for name, p in params.items()])
        found = self._known.get(key)
        if found is not None:
            return found[0]
        rule = _RULES.get(primitive, _differential) if own is None else _ruled(primitive, own)
        if rule is _differential and _is_linear(primitive, active):
            rule = _linear
        elif rule is _differential and primitive.name in _BILINEAR:
            rule = _bilinear
        outs = rule(self, primitive, args, active, primals, params)
        if self._depth:
            # Operations of rules: the same one on the same operands is the same series.
            self._known[key] = (outs, args, params)
            return outs
        self._depth += 1
        try:
            order = max(len(x.terms) for x, a in zip(args, active, strict=True) if a)
            for y in outs if primitive.multiple_results else [outs]:
                if type(y) is JetTracer and y.owner is self and order:
                    y.get(order)
        finally:
            self._depth -= 1
            self._known.clear()
        return outs

    def results(self, primitive: Primitive, outs: Any, extend_of: Callable) -> Any:
        """Series of the values `outs`, of which output i gets its coefficients by extend_of(i);
        plain values where there is no derivative."""
        flat = outs if primitive.multiple_results else [outs]
        made = []
        for i, y in enumerate(flat):
            if not dtypes.is_inexact(aval_of(y).dtype):
                made.append(y)
                continue
            series = JetTracer(self, y, [])
            series.extend = extend_of(i, series)
            made.append(series)
        return made if primitive.multiple_results else made[0]


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value


def _slope(x: JetTracer) -> JetTracer:
    """The series of x'(t)."""
    if x.slope is None:
        trace = x.owner

        def extend(k: int) -> None:
            with set_trace(trace.parent):
                while len(made.terms) < k:
                    n = len(made.terms) + 2
                    term = x.get(n)
                    made.terms.append(None if term is None else term * float(n))

        first = x.get(1)
        if first is None:
            with set_trace(trace.parent):
                first = zeros(x.aval.tangent())
        made = x.slope = JetTracer(trace, first, [], extend)
    return x.slope


def _add(x: Any, y: Any) -> Any:
    return y if x is None else x if y is None else x + y


# ------------------------------------------------------------------ rules: operations
def _is_linear(primitive: Primitive, active: Sequence[bool]) -> bool:
    if not primitive.linear:
        return False
    if primitive.name in _BILINEAR:
        return sum(active) == 1
    linear_in = _LINEAR_IN.get(primitive.name)
    return linear_in is None or all(i in linear_in for i, a in enumerate(active) if a)


def _linear(
    trace: JetTrace, primitive: Primitive, args: tuple, active: list, primals: tuple, params: dict
) -> Any:
    """Each coefficient by itself: the rule of derivatives, at a coefficient in a tangent's
    place."""
    parent = trace.parent
    with set_trace(parent):
        outs = primitive.bind(*primals, **params)
    many = primitive.multiple_results
    whole = all(
        a or not dtypes.is_inexact(aval_of(x).dtype) for x, a in zip(args, active, strict=True)
    )
    jvp: Any = primitive.jvp

    def term(k: int) -> Sequence[Any]:
        given = [x.get(k) if a else None for x, a in zip(args, active, strict=True)]
        if all(t is None for t in given):
            return [None] * (len(outs) if many else 1)
        if whole and all(t is not None for t, a in zip(given, active, strict=True) if a):
            mixed = [t if a else x for t, x, a in zip(given, primals, active, strict=True)]
            found = primitive.bind(*mixed, **params)
        else:
            tangents = tuple([
                Zero(aval_of(x).tangent()) if t is None else t
                for t, x in zip(given, primals, strict=True)
            ])  # fmt: skip
            found = jvp(primals, tangents, **params)[1]
        return [None if type(t) is Zero else t for t in (found if many else [found])]

    return _each(trace, primitive, outs, term)


def _each(trace: JetTrace, primitive: Primitive, outs: Any, term: Callable) -> Any:
    """Series whose coefficients of order k are term(k), for all outputs at once."""
    rows: list[Sequence[Any]] = []

    def extend_of(i: int, series: JetTracer) -> Callable:
        def extend(k: int) -> None:
            with set_trace(trace.parent):
                while len(series.terms) < k:
                    n = len(series.terms)
                    if len(rows) == n:
                        rows.append(term(n + 1))
                    series.terms.append(rows[n][i])

        return extend

    return trace.results(primitive, outs, extend_of)


def _bilinear(
    trace: JetTrace, primitive: Primitive, args: tuple, active: list, primals: tuple, params: dict
) -> Any:
    """The Cauchy product."""
    x, y = args
    with set_trace(trace.parent):
        out = primitive.bind(*primals, **params)

    def term(k: int) -> list[Any]:
        total = None
        for j in range(k + 1):
            left, right = x.get(j), y.get(k - j)
            if left is not None and right is not None:
                total = _add(total, primitive.bind(left, right, **params))
        return [total]

    return _each(trace, primitive, out, term)


def _differential(
    trace: JetTrace, primitive: Primitive, args: tuple, active: list, primals: tuple, params: dict
) -> Any:
    """y' = f'(x) x'."""
    with set_trace(trace.parent):
        outs = primitive.bind(*primals, **params)
    many = primitive.multiple_results
    jvp: Any = primitive.jvp
    slopes: list[Any] = []

    def slope(i: int) -> Any:
        if not slopes:
            tangents = tuple([
                _slope(x) if a else Zero(aval_of(x).tangent())
                for x, a in zip(args, active, strict=True)
            ])  # fmt: skip
            trace._depth += 1
            try:
                with set_trace(trace):
                    found = jvp(args, tangents, **params)[1]
            finally:
                trace._depth -= 1
            slopes.extend(found if many else [found])
        return slopes[i]

    def extend_of(i: int, series: JetTracer) -> Callable:
        def extend(k: int) -> None:
            t = slope(i)
            constant = type(t) is not JetTracer or t.owner is not trace
            while len(series.terms) < k:
                n = len(series.terms) + 1
                if constant:
                    term = t if n == 1 and type(t) is not Zero else None
                else:
                    term = t.get(n - 1)
                if term is not None and n > 1:
                    with set_trace(trace.parent):
                        term = term / float(n)
                series.terms.append(term)

        return extend

    return trace.results(primitive, outs, extend_of)


# ------------------------------------------------------------------ rules: what holds jaxprs
def _jet_jaxpr(
    closed: ClosedJaxpr, active: Sequence[bool], order: int, force: Sequence[bool] | None = None,
    terms: bool = True,
) -> tuple[ClosedJaxpr, list[bool]]:  # fmt: skip
    """The jaxpr on series: each active input is followed by its `order` coefficients, and so is
    each output that has some, or is to have them (`force`); which these are comes with it. Without
    `terms` the outputs are values alone. Remembered with the jaxpr."""
    key = ("jet", tuple(active), order, None if force is None else tuple(force), terms)
    found = closed.cache.get(key)
    if found is not None:
        return found
    out_active: list[bool] = []

    def run(*given: Any) -> list[Any]:
        trace = JetTrace(current_trace())
        rest = iter(given)
        ins = [
            trace.known(next(rest), [next(rest) for _ in range(order)]) if a else next(rest)
            for a in active
        ]
        with set_trace(trace):
            outs = eval_closed(closed, *ins)
        results: list[Any] = []
        for i, y in enumerate(outs):
            primal, coefficients = trace.open(y, order)
            results.append(primal)
            wanted = force is not None and force[i]
            some = terms and (wanted or any(c is not None for c in coefficients))
            out_active.append(some)
            if some:
                aval = aval_of(primal).tangent()
                results.extend([zeros(aval) if c is None else c for c in coefficients])
        trace.close()
        return results

    avals = [a for aval, on in zip(closed.in_avals, active, strict=True)
             for a in ([aval] + [aval.tangent()] * (order if on else 0))]  # fmt: skip
    jaxpr, consts = stage(run, avals)
    result = closed.cache[key] = ClosedJaxpr(jaxpr, consts), out_active
    return result


def _flat(args: Sequence[Any], active: Sequence[bool], order: int) -> list[Any]:
    """The operands of a jaxpr on series; an operand that has to be one and is not gets zeros."""
    flat: list[Any] = []
    for x, a in zip(args, active, strict=True):
        is_series = type(x) is JetTracer
        flat.append(x.primal if is_series and a else x)
        if a:
            aval = aval_of(x).tangent()
            terms = [x.get(k) for k in range(1, order + 1)] if is_series else [None] * order
            flat.extend([zeros(aval) if t is None else t for t in terms])
    return flat


def _whole(bind: Callable) -> Callable:
    """A rule for a primitive with jaxprs: bind(trace, args, active, order, params) gives flat
    results and which of them are followed by `order` coefficients."""

    def rule(
        trace: JetTrace, primitive: Primitive, args: tuple, active: list, primals: tuple,
        params: dict,
    ) -> Any:  # fmt: skip
        ran: list[Any] = []  # order, coefficients of each output

        def run(order: int) -> list[list]:
            if not ran or ran[0] < order:
                with set_trace(trace.parent):
                    flat, some = bind(trace, args, active, order, params)
                rest, values, rows = iter(flat), [], []
                for s in some:
                    values.append(next(rest))
                    rows.append([next(rest) for _ in range(order)] if s else [None] * order)
                ran[:] = [order, rows, values]
            return ran[1]

        if trace._depth == 0:
            order = max(len(x.terms) for x, a in zip(args, active, strict=True) if a)
            run(order)
            outs = ran[2] if primitive.multiple_results else ran[2][0]
        else:
            with set_trace(trace.parent):
                outs = primitive.bind(*primals, **params)

        def extend_of(i: int, series: JetTracer) -> Callable:
            def extend(k: int) -> None:
                series.terms[:] = run(k)[i]

            return extend

        return trace.results(primitive, outs, extend_of)

    return rule


def _bind_call(trace: JetTrace, args: tuple, active: list, order: int, params: dict) -> tuple:
    derived, some = _jet_jaxpr(params["jaxpr"], active, order)
    return call(derived, _flat(args, active, order), params["name"]), some


def _bind_remat(trace: JetTrace, args: tuple, active: list, order: int, params: dict) -> tuple:
    derived, some = _jet_jaxpr(params["jaxpr"], active, order)
    return remat_p.bind(*_flat(args, active, order), **{**params, "jaxpr": derived}), some


def _bind_cond(trace: JetTrace, args: tuple, active: list, order: int, params: dict) -> tuple:
    branches, on = params["branches"], active[1:]
    found = [_jet_jaxpr(b, on, order)[1] for b in branches]
    some = [any(flags) for flags in zip(*found, strict=True)]
    derived = tuple([_jet_jaxpr(b, on, order, some)[0] for b in branches])
    return cond_p.bind(args[0], *_flat(args[1:], on, order), branches=derived), some


def _bind_scan(trace: JetTrace, args: tuple, active: list, order: int, params: dict) -> tuple:
    body, nc, n = params["jaxpr"], params["num_consts"], params["num_carry"]
    on_consts, on_carry, on_xs = split(active, nc, n)
    free = [False] * (len(body.jaxpr.outvars) - n)
    on_carry, derived, some = fixed_point(
        lambda on: _jet_jaxpr(body, on_consts + on + on_xs, order, on + free), on_carry
    )
    changed = {
        "jaxpr": derived,
        "num_consts": nc + order * sum(on_consts),
        "num_carry": n + order * sum(on_carry),
    }
    flat = _flat(args, on_consts + on_carry + on_xs, order)
    return scan_p.bind(*flat, **{**params, **changed}), on_carry + some[n:]


def _bind_while(trace: JetTrace, args: tuple, active: list, order: int, params: dict) -> tuple:
    nc, nb = params["cond_nconsts"], params["body_nconsts"]
    on_cond, on_body, on_carry = split(active, nc, nb)
    body = params["body_jaxpr"]
    on_carry, derived, _ = fixed_point(
        lambda on: _jet_jaxpr(body, on_body + on, order, on), on_carry
    )
    test = _jet_jaxpr(params["cond_jaxpr"], on_cond + on_carry, order, terms=False)[0]
    outs = while_p.bind(
        *_flat(args, on_cond + on_body + on_carry, order), cond_jaxpr=test, body_jaxpr=derived,
        cond_nconsts=nc + order * sum(on_cond), body_nconsts=nb + order * sum(on_body),
    )  # fmt: skip
    return outs, on_carry


def _custom_vjp(
    trace: JetTrace, primitive: Primitive, args: tuple, active: list, primals: tuple, params: dict
) -> list[Any]:
    # Its rule goes backwards: the function itself is what there is to expand.
    with set_trace(trace):
        return [as_array(y) for y in run_call(params["call_jaxpr"], args)]


# ------------------------------------------------------------------ rules: users'
class ZeroTerm:
    """A coefficient that is zero, in what a rule returns."""


class ZeroSeries:
    """A series whose coefficients are all zero, in what a rule returns."""


zero_term, zero_series = ZeroTerm(), ZeroSeries()
tree.register_pytree_node(ZeroTerm, lambda _: ((), None), lambda *_: zero_term)
tree.register_pytree_node(ZeroSeries, lambda _: ((), None), lambda *_: zero_series)

# Rules of users: primitive -> rule(primals, series, **params), which gives the result (a list of
# results where there are several) and its series: Taylor coefficients of orders 1 to n, as those of
# each operand are. They go before what the operation's derivative says.
jet_rules: dict[Primitive, Callable] = {}


def _ruled(primitive: Primitive, rule: Callable) -> Callable:
    def bind(trace: JetTrace, args: tuple, active: list, order: int, params: dict) -> tuple:
        opened = [trace.open(x, order) for x in args]
        series = [[zeros(aval_of(x)) if t is None else t for t in terms] for x, terms in opened]
        outs, rows = rule(tuple([x for x, _ in opened]), series, **params)
        if not primitive.multiple_results:
            outs, rows = [outs], [rows]
        elif rows is zero_series:
            rows = [zero_series] * len(outs)
        flat, some = [], []
        for y, terms in zip(outs, rows, strict=True):
            y = as_array(y)
            some.append(terms is not zero_series and dtypes.is_inexact(y.dtype))
            flat.append(y)
            if some[-1]:
                flat += [zeros(y.aval) if t is zero_term else as_array(t) for t in terms]
        return flat, some

    return _whole(bind)


def defzero(prim: Primitive) -> None:
    """Have `jet` take a primitive's results for constants.

    prim: the primitive.

    >>> from numjet.experimental import jet
    >>> from numjet.extend.core import Primitive
    >>> count_p = Primitive("count")
    >>> _ = count_p.def_impl(lambda x: x * 0 + 3)
    >>> jet.defzero(count_p)
    >>> jet.jet(count_p.bind, (1.0,), ((1.0,),))[1]
    [Array(0., dtype=float32, weak_type=True)]
    """
    jet_rules[prim] = functools.partial(zero_prop, prim)


def zero_prop(prim: Primitive, primals_in: Sequence[Any], series_in: Any, **params: Any) -> tuple:
    """The rule of a primitive whose results do not change: its results, and `zero_series`.

    prim: the primitive. primals_in: its operands. series_in: their series. params: its params.

    >>> from numjet import lax
    >>> from numjet.experimental import jet
    >>> y, series = jet.zero_prop(lax.floor_p, (lax.full((), 1.5),), ([1.0],))
    >>> print(y, series is jet.zero_series)
    1.0 True
    """
    del series_in
    return prim.bind(*primals_in, **params), zero_series


def deflinear(prim: Primitive) -> None:
    """Have `jet` take a primitive for linear in all of its operands together.

    prim: the primitive.

    >>> from numjet.experimental import jet
    >>> from numjet.extend.core import Primitive
    >>> twice_p = Primitive("twice")
    >>> _ = twice_p.def_impl(lambda x: 2 * x)
    >>> jet.deflinear(twice_p)
    >>> jet.jet(twice_p.bind, (1.0,), ((5.0,),))[1]
    [Array(10., dtype=float32, weak_type=True)]
    """
    jet_rules[prim] = functools.partial(linear_prop, prim)


def linear_prop(prim: Primitive, primals_in: Sequence[Any], series_in: Any, **params: Any) -> tuple:
    """The rule of a linear primitive: it is applied to each order's coefficients.

    prim: the primitive. primals_in: its operands. series_in: their series. params: its params.

    >>> from numjet import lax, numpy as jnp
    >>> from numjet.experimental import jet
    >>> y, series = jet.linear_prop(lax.neg_p, (jnp.ones(()),), ([jnp.zeros(())],))
    >>> print(y, *series)
    -1.0 -0.0
    """
    rows = [prim.bind(*terms, **params) for terms in zip(*series_in, strict=True)]
    out = prim.bind(*primals_in, **params)
    if prim.multiple_results:
        return out, [[row[i] for row in rows] for i in range(len(out))]
    return out, rows


def def_deriv(prim: Primitive, deriv: Callable) -> None:
    """Tell `jet` the derivative of a primitive of one operand, element by element.

    prim: the primitive. deriv: the function that is its derivative.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import jet
    >>> from numjet.extend.core import Primitive
    >>> square_p = Primitive("my_square")
    >>> _ = square_p.def_impl(lambda x: x * x)
    >>> jet.def_deriv(square_p, lambda x: 2 * x)
    >>> print(*jet.jet(square_p.bind, (3.0,), ((1.0, 0.0),))[1])
    6.0 2.0
    """
    jet_rules[prim] = functools.partial(deriv_prop, prim, deriv)


def deriv_prop(
    prim: Primitive, deriv: Callable, primals_in: Sequence[Any], series_in: Any
) -> tuple:
    """The rule of a primitive by its derivative: y' = deriv(x) x', coefficient by coefficient.

    prim: the primitive. deriv: its derivative. primals_in: its operand. series_in: its series.

    >>> from numjet import lax, numpy as jnp
    >>> from numjet.experimental import jet
    >>> x = jnp.ones(())
    >>> y, series = jet.deriv_prop(lax.neg_p, lambda x: -jnp.ones(()), (x,), ([x, x],))
    >>> print(y, *series)
    -1.0 -1.0 -1.0
    """
    (x,), (terms,) = primals_in, series_in
    slope = [(k, term * float(k)) for k, term in enumerate(terms, 1)]
    first, rest = jet(deriv, (x,), (list(terms[:-1]),), factorial_scaled=False)
    slopes = [first, *rest]
    rows = []
    for n in range(1, len(terms) + 1):
        total = sum([slopes[n - k] * term for k, term in slope[1:n]], slopes[n - 1] * slope[0][1])
        rows.append(total / float(n))
    return prim.bind(x), rows


def def_comp(prim: Primitive, comp: Callable, **kwargs: Any) -> None:
    """Have `jet` take a primitive for what a function of other operations computes.

    prim: the primitive. comp: the function, of the same operands. kwargs: of `jet`.

    >>> from numjet.experimental import jet
    >>> from numjet.extend.core import Primitive
    >>> cube_p = Primitive("cube")
    >>> _ = cube_p.def_impl(lambda x: x * x * x)
    >>> jet.def_comp(cube_p, lambda x: x**3)
    >>> print(*jet.jet(cube_p.bind, (2.0,), ((1.0, 0.0),))[1])
    12.0 12.0
    """
    jet_rules[prim] = functools.partial(jet, comp, **{"factorial_scaled": False, **kwargs})


def fact(n: Any) -> Any:
    """n!, of an array.

    n: not negative.

    >>> from numjet.experimental import jet
    >>> print(jet.fact(5))
    120.0
    """
    return gamma(n + 1.0)


_RULES: dict[Primitive, Callable] = {
    jit_p: _whole(_bind_call),
    remat_p: _whole(_bind_remat),
    cond_p: _whole(_bind_cond),
    scan_p: _whole(_bind_scan),
    while_p: _whole(_bind_while),
    custom_vjp_p: _custom_vjp,
}

__all__ = [
    "JetTrace", "JetTracer", "ZeroSeries", "ZeroTerm", "def_comp", "def_deriv", "deflinear",
    "defzero", "deriv_prop", "fact", "jet", "jet_rules", "linear_prop", "zero_prop", "zero_series",
    "zero_term",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__]
