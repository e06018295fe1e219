"""Keys that are used twice are found: what the flag `debug_key_reuse` turns on.

While it is on, operations outside of other traces run under a `KeyTrace`. Each element of an array
of keys has a `Mark`, which slices and the like hand on; drawing from a key and splitting it set the
mark, and a key whose mark is set raises KeyReuseError. A compiled program, a loop or a branch is
walked through before it runs, with the marks of its operands: loops twice, so that what is drawn
from in every round is found.

What would break it: a random function that draws by a primitive that `_DRAWS` does not name.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from numjet.base.errors import KeyReuseError
from numjet.core import dtypes
from numjet.core.array import Array, ArrayImpl
from numjet.core.evaluate import evaluate
from numjet.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, subjaxprs
from numjet.core.primitive import Primitive
from numjet.core.trace import (
    EVAL,
    Trace,
    aval_of,
    current_trace,
    enter_trace,
    leave_trace,
    set_trace,
)
from numjet.cpu.graph.nodes import called

# What uses a key up: its first operand.
_DRAWS = frozenset(("random_bits", "random_split", "random_gamma"))
# What hands keys on to other places, by its `reference`, which works on marks as on words.
_MOVES = frozenset((
    "slice", "reshape", "transpose", "broadcast_in_dim", "rev", "concatenate", "dynamic_slice",
    "gather", "select_n", "squeeze", "expand_dims",
))  # fmt: skip


class Mark:
    """Whether a key was used, and `again`, by which run of a function under `checkpoint`, if by
    one: it runs once more in a backward pass."""

    __slots__ = ("used", "again")

    def __init__(self) -> None:
        self.used = False
        self.again: object = None


def _fresh(aval: Any) -> np.ndarray | None:
    """Marks for an array of keys; None for other arrays."""
    if not dtypes.is_key(getattr(aval, "dtype", None)):
        return None
    out = np.empty(aval.shape, object)
    for place in np.ndindex(out.shape):
        out[place] = Mark()
    return out


# By the id of an array: the array, weakly, and its marks.
_known: dict[int, tuple[Any, np.ndarray]] = {}


def _marks(x: Any) -> np.ndarray | None:
    """The marks of an array, made when it is first met."""
    found = _known.get(id(x))
    if found is not None and found[0]() is x:
        return found[1]
    marks = _fresh(x.aval)
    return None if marks is None else _attach(x, marks)


def _attach(x: Any, marks: np.ndarray) -> np.ndarray:
    at = id(x)

    def gone(ref: Any) -> None:
        found = _known.get(at)
        if found is not None and found[0] is ref:
            del _known[at]

    _known[at] = weakref.ref(x, gone), marks
    return marks


class KeyTrace(Trace):
    """Evaluation that follows keys."""

    __slots__ = ()
    name = "evaluation that follows keys"

    def process(self, primitive: Primitive, args: tuple, params: dict) -> Any:
        marks: list[Any] = []
        if any([isinstance(x, Array) and dtypes.is_key(x.aval.dtype) for x in args]) or any(
            map(_mentions_keys, subjaxprs(params))
        ):
            given = [_marks(x) if isinstance(x, Array) else None for x in args]
            values = [x._value if type(x) is ArrayImpl else None for x in args]
            outs = primitive.out_avals(tuple([aval_of(x) for x in args]), params)
            marks = _followed(primitive, params, given, values, _listed(outs), "")
        token = enter_trace(EVAL)
        try:
            out = evaluate(primitive, args, params)
        finally:
            leave_trace(token)
        for x, own in zip(_listed(out), marks, strict=False):
            if own is not None and isinstance(x, Array):
                _attach(x, own)
        return out


def _mentions_keys(jaxpr: Jaxpr) -> bool:
    """Whether there is a key among a jaxpr's operands, or inside of it. Remembered with it."""
    found = jaxpr.cache.get("mentions keys")
    if found is None:
        atoms = [*jaxpr.constvars, *jaxpr.invars, *[v for e in jaxpr.eqns for v in e.invars]]
        found = any([dtypes.is_key(getattr(v.aval, "dtype", None)) for v in atoms]) or any(
            [_mentions_keys(inner) for e in jaxpr.eqns for inner in subjaxprs(e.params)]
        )
        jaxpr.cache["mentions keys"] = found
    return found


def _listed(x: Any) -> Sequence[Any]:
    return x if isinstance(x, list | tuple) else [x]


def _use(marks: np.ndarray, what: str, within: str, again: object) -> None:
    """Keys are used up. Raises KeyReuseError where one of them was before: anywhere, or in the same
    run of a function under `checkpoint`."""
    for mark in marks.flat:
        if mark.used and (again is None or mark.again in (None, again)):
            told = f", in {within}" if within else ""
            raise KeyReuseError(
                f"Previously-consumed key passed to {what}{told} at index 0. In {what}, argument 0 "
                "is already consumed. Draw from keys that random.split or random.fold_in makes of "
                "it; random.clone marks a use that is meant."
            )
    for mark in marks.flat:
        mark.used, mark.again = True, again


def _followed(
    primitive: Primitive,
    params: dict,
    marks: list,
    values: Sequence[Any],
    outs: Sequence[Any],
    within: str,
    again: object = None,
) -> list:
    """The marks of an equation's results. values: of its operands, None where unknown."""
    name = primitive.name
    if name in _DRAWS:
        _use(marks[0], name, within, again)
    elif name in _MOVES:
        moved = _moved(primitive, params, marks, values)
        return [_fresh(outs[0]) if moved is None else moved]
    elif name == "scan":
        return _scanned(params, marks, outs, again)
    elif name == "while":
        return _looped(params, marks, again)
    elif name == "cond":
        return _branched(params, marks, again)
    else:
        inner = called(params)
        if inner is not None:
            if again is None and name == "remat2":
                again = object()
            told = params.get("name") if isinstance(params.get("name"), str) else ""
            count = len(getattr(inner, "jaxpr", inner).invars)
            return _walked(inner, marks[len(marks) - count :], told or within or name, again)
    return [_fresh(aval) for aval in outs]


def _moved(primitive: Primitive, params: dict, marks: list, values: Sequence[Any]) -> Any:
    operands = [v if m is None else m for m, v in zip(marks, values, strict=True)]
    if any([x is None for x in operands]):
        return None
    try:
        return np.asarray(primitive.reference(*operands, **params), object)  # type: ignore[misc]
    except (TypeError, ValueError):  # a rule that counts on words: the keys count as new
        return None


def _walked(inner: Any, marks: Sequence[Any], within: str, again: object) -> list:
    """The marks of a jaxpr's results."""
    jaxpr = getattr(inner, "jaxpr", inner)
    consts = inner.consts if isinstance(inner, ClosedJaxpr) else []
    env: dict = {}
    for var, value in zip(jaxpr.constvars, consts, strict=False):
        env[var] = _marks(value) if isinstance(value, Array) else None
    env.update(zip(jaxpr.invars, marks, strict=True))

    def read(atom: Any) -> Any:
        return _marks(atom.value) if type(atom) is Literal else env.get(atom)

    def known(atom: Any) -> Any:
        return atom.value._value if type(atom) is Literal else None

    for eqn in jaxpr.eqns:
        given = [read(v) for v in eqn.invars]
        avals = [v.aval for v in eqn.outvars]
        inside = any(map(_mentions_keys, subjaxprs(eqn.params)))
        if inside or any([m is not None for m in given]):
            values = [known(v) for v in eqn.invars]
            outs = _followed(eqn.primitive, eqn.params, given, values, avals, within, again)
        else:
            outs = [_fresh(aval) for aval in avals]
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _repeated(what: str, body: Callable[[], Any]) -> None:
    """A further round of the loop's function `what`. Its reuse is that of the loop."""
    try:
        body()
    except KeyReuseError as error:
        raise KeyReuseError(
            f"{what} function leads to key reuse when repeatedly executed: {error}"
        ) from None


def _scanned(params: dict, marks: list, outs: Sequence[Any], again: object) -> list:
    jaxpr, num_consts, num_carry = params["jaxpr"], params["num_consts"], params["num_carry"]
    consts, carry = marks[:num_consts], marks[num_consts : num_consts + num_carry]
    xs = marks[num_consts + num_carry :]

    def row(i: int) -> list:
        return [None if m is None else m[i] if m.ndim > 1 else _scalar(m[i]) for m in xs]

    length = params["length"]
    ys: list = []
    for i in range(min(length, 2)):
        inputs = [*consts, *carry, *row(i)]
        if not i:
            found = _walked(jaxpr, inputs, "scan", again)
            carry, ys = found[:num_carry], found[num_carry:]
        else:
            _repeated("scan body", functools.partial(_walked, jaxpr, inputs, "scan", again))
    for i in range(2, length):  # rows of keys are drawn from in every round
        for m in xs:
            if m is not None and np.ravel(m[0])[0].used:
                _use(np.asarray(m[i], object), "scan", "", again)
    return [*carry, *[_fresh(aval) for aval in outs[num_carry : num_carry + len(ys)]]]


def _scalar(mark: Mark) -> np.ndarray:
    out = np.empty((), object)
    out[()] = mark
    return out


def _looped(params: dict, marks: list, again: object) -> list:
    n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
    tests, consts, carry = marks[:n_cond], marks[n_cond : n_cond + n_body], marks[n_cond + n_body :]

    def ask() -> list:
        return _walked(params["cond_jaxpr"], [*tests, *carry], "while_loop", again)

    def step() -> list:
        return _walked(params["body_jaxpr"], [*consts, *carry], "while_loop", again)

    ask()
    carry = step()
    _repeated("while_loop cond", ask)
    _repeated("while_loop body", step)
    return carry


def _branched(params: dict, marks: list, again: object) -> list:
    """Each branch begins with the marks as they are; what one of them used is used afterwards."""
    every = {id(m): m for given in marks if given is not None for m in given.flat}
    before = {at: (m.used, m.again) for at, m in every.items()}
    after: dict[int, tuple] = {}
    outs: list = []
    for branch in params["branches"]:
        for at, m in every.items():
            m.used, m.again = before[at]
        outs = _walked(branch, marks[1:], "cond", again)
        after.update({at: (True, m.again) for at, m in every.items() if m.used})
    for at, m in every.items():
        m.used, m.again = after.get(at, before[at])
    return outs


# ------------------------------------------------------------------ the flag
_KEYS = KeyTrace()


@contextlib.contextmanager
def following(value: bool) -> Iterator[None]:
    """A block in which keys are followed, or not. Inside of other traces nothing changes."""
    trace = current_trace()
    if trace is not EVAL and trace is not _KEYS:
        yield
        return
    with set_trace(_KEYS if value else EVAL):
        yield


def follow(value: bool) -> None:
    """`following` from here on, in this thread."""
    if current_trace() is EVAL and value:
        enter_trace(_KEYS)
    elif current_trace() is _KEYS and not value:
        enter_trace(EVAL)
