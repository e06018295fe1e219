"""numjet.experimental.checkify: errors of compiled programs as values.

`checkify(f)` makes a function that returns an `Error` beside its result; `check` reports a
condition of the user's, and the sets `nan_checks`, `div_checks`, `index_checks` ask for checks of
operations. Checks of `cond` and `while_loop`, of their bodies and of nested calls are reported too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.base import config, tree
from numjet.core.array import Array, as_array
from numjet.core.jaxpr import ClosedJaxpr
from numjet.core.stretched import written_out
from numjet.core.trace import Tracer, aval_of
from numjet.experimental.checkify import rewrite
from numjet.experimental.checkify.sites import (
    DivisionByZeroError,
    ErrorMessage,
    FailedCheckError,
    JaxRuntimeError,
    NaNError,
    OOBError,
    Site,
    UserMessage,
    check_p,
    last_failing,
)
from numjet.lax import dynamic_index_in_dim
from numjet.numpy import isin, minimum, where
from numjet.ops.bodies import name_of
from numjet.transforms.stage import stage

# A kind of error that can be asked for; the sets below hold them.
ErrorCategory = type[JaxRuntimeError]

user_checks: frozenset[type] = frozenset({FailedCheckError})
nan_checks: frozenset[type] = frozenset({NaNError})
index_checks: frozenset[type] = frozenset({OOBError})
div_checks: frozenset[type] = frozenset({DivisionByZeroError})
float_checks: frozenset[type] = nan_checks | div_checks
automatic_checks: frozenset[type] = float_checks | index_checks
all_checks: frozenset[type] = automatic_checks | user_checks


class Error:
    """The first error of a checked call, or none. A pytree, so that it passes through `jit`, `vmap`
    and loops; under `vmap` it holds one error for each example."""

    __slots__ = ("_code", "_payloads", "_sites")

    def __init__(
        self, code: Any, payloads: Sequence[Sequence[Any]], sites: tuple[Site, ...]
    ) -> None:
        self._code, self._payloads, self._sites = code, payloads, sites

    def get(self) -> str | None:
        """The error's message; None when nothing failed. For a batch a line for each that did."""
        codes = np.asarray(self._code)
        if not codes.ndim:
            return self._message(())
        lines = [(at, self._message(at)) for at in np.ndindex(codes.shape)]
        told = [
            f"at mapped index {', '.join(map(str, at))}: {text}" for at, text in lines if text
        ]
        return "\n".join(told) or None

    def _message(self, at: tuple[int, ...]) -> str | None:
        number = int(np.asarray(self._code)[at])
        if number == 0:
            return None
        site = self._sites[number - 1]
        return site.message([np.asarray(x)[at] for x in self._payloads[number - 1]])

    def get_exception(self) -> JaxRuntimeError | None:
        """What `throw` raises, of the class of the check that failed; None when nothing failed. Of
        a batch the first one."""
        codes = np.asarray(self._code)
        for at in np.ndindex(codes.shape):
            if number := int(codes[at]):
                return self._sites[number - 1].category(self._message(at))
        return None

    def throw(self) -> None:
        """Raise JaxRuntimeError with the message, if there is one."""
        check_error(self)

    def __str__(self) -> str:
        return f"Error({self.get()})"

    def __repr__(self) -> str:
        if not self._sites:  # as JAX writes it where nothing was checked
            return "Error(_pred={}, _code={}, _metadata={}, _payload={})"
        known = not isinstance(self._code, Tracer)
        return str(self) if known else f"Error({aval_of(self._code).str_short()})"


tree.register_pytree_node(
    Error,
    lambda error: ((error._code, error._payloads), error._sites),
    lambda sites, children: Error(children[0], children[1], sites),
)

init_error = Error(as_array(np.int32(0)), [], ())


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Report an error where `pred` is False.

    pred: bool[]. msg: a format string for `fmt_args` and `fmt_kwargs`, pytrees of arrays. Outside
    of `checkify` a failing check raises JaxRuntimeError at once if its values are known, and
    ValueError where it is compiled; with debug=True it does nothing there. Raises TypeError for
    another `pred` or for arguments that are no arrays.

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental import checkify
    >>> def f(x):
    ...     checkify.check(x > 0, "x must be positive, got {}", x)
    ...     return jnp.log(x)
    >>> err, out = checkify.checkify(f)(jnp.float32(-1))
    >>> err.get()
    'x must be positive, got -1.0 (`check` failed)'
    """
    if not _is_bool(pred):
        name = "debug_check" if debug else "check"
        raise TypeError(f"{name} takes a scalar pred as argument, got {pred}")
    for value in tree.tree_leaves((fmt_args, fmt_kwargs)):
        if not isinstance(value, Array | np.ndarray | np.generic):
            raise TypeError(
                "Formatting arguments to checkify.check need to be PyTrees of arrays, but got "
                f"{value} of type {type(value)}."
            )
    leaves, structure = tree.tree_flatten((fmt_args, fmt_kwargs))
    bad = as_array(pred) ^ True
    values = [as_array(x) for x in leaves]
    check_p.bind(bad, *values, message=UserMessage(msg, structure), debug=debug)


def _is_bool(pred: Any) -> bool:
    if isinstance(pred, bool | np.bool_):
        return True
    return isinstance(pred, Array | np.ndarray) and pred.dtype == bool and pred.shape == ()


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """As `check`, but without any effect where there is no `checkify` around it.

    pred: a boolean scalar that should hold. msg: a format string; fmt_args, fmt_kwargs: arrays for
    it.

    >>> from numjet.experimental import checkify
    >>> checkify.debug_check(False, "not seen here")
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Report an error again: raise JaxRuntimeError if it is known and not empty.

    error: an Error, as a checked function gives it (TypeError for others). A traced one goes to the
    `checkify` around.

    >>> from numjet.experimental import checkify
    >>> error, _ = checkify.checkify(lambda x: x + 1)(1)
    >>> checkify.check_error(error)
    """
    if not isinstance(error, Error):
        raise TypeError(
            f"check_error takes an Error as argument, got type {type(error)} instead."
        )
    if not error._sites:
        return
    code, payloads = error._code, [x for payload in error._payloads for x in payload]
    batch = aval_of(code).shape
    if batch:
        code, *payloads = [x.reshape(-1, *x.shape[len(batch) :]) for x in (code, *payloads)]
        at = _example_to_tell(code, error._sites)
        code, *payloads = [
            dynamic_index_in_dim(x, at, 0, keepdims=False) for x in (code, *payloads)
        ]
    message = ErrorMessage(error._sites)
    check_p.bind(as_array(code) != 0, code, *payloads, message=message, debug=False)


def _example_to_tell(codes: Any, sites: tuple[Site, ...]) -> Any:
    """Which example of a batch is told of, given their codes: of each kind of error the last; of
    the kinds the one that stands first in the program."""
    kinds: dict[tuple, list[int]] = {}
    for number, site in enumerate(sites, 1):
        kinds.setdefault((site.category, site.avals), []).append(number)
    first, chosen = len(sites) + 1, as_array(np.int32(0))
    for numbers in kinds.values():
        bad = isin(codes, np.asarray(numbers, np.int32))
        at = last_failing(bad)
        number = where(bad.any(), codes[at], len(sites) + 1)
        chosen = where(number < first, at, chosen)
        first = minimum(number, first)
    return chosen


def checkify(f: Callable, errors: frozenset[type] = user_checks) -> Callable:
    """`f` with its errors as a value: a function that returns (Error, result).

    errors: which checks to make: `user_checks`, `nan_checks`, `div_checks`, `index_checks`,
    `float_checks`, `automatic_checks`, `all_checks`, or a union of these sets. The first error in
    the order of the program is kept. Leaves of the arguments that are no Arrays, such as numbers,
    are handed to `f` as they are. Inside of functions with rules of their own (`custom_jvp`,
    `custom_vjp`) checks are of the function, not of its rules. Raises NotImplementedError for a
    `check` in a function that is passed to a solver (`custom_root`, `custom_linear_solve`).

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental import checkify
    >>> err, y = checkify.checkify(jnp.log, errors=checkify.nan_checks)(jnp.float32(-1))
    >>> err.get()
    'nan generated by primitive: log.'
    """
    if not callable(f):
        raise TypeError(f"checkify: expected a function, got {f!r} of type {type(f).__name__}.")
    categories = frozenset(errors)

    @functools.wraps(f)
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        leaves, structure = tree.tree_flatten((args, kwargs))
        traced = [isinstance(x, Array) for x in leaves]
        given = [x for x, t in zip(leaves, traced, strict=True) if t]
        out_tree = []

        def flat(*values: Any) -> list[Any]:
            left = iter(values)
            all_leaves = [next(left) if t else x for x, t in zip(leaves, traced, strict=True)]
            inner_args, inner_kwargs = tree.tree_unflatten(structure, all_leaves)
            outs, treedef = tree.tree_flatten(f(*inner_args, **inner_kwargs))
            out_tree.append(treedef)
            return [as_array(x) for x in outs]

        # As JAX writes equations, indices that are known to be outside stand in them.
        with config.jax_equations(OOBError in categories or config.jax_equations.value):
            jaxpr, consts = stage(flat, [x.aval for x in given], name_of(f))
        jaxpr = written_out(ClosedJaxpr(jaxpr, consts)).jaxpr
        sites = rewrite.find_sites(jaxpr, categories)
        report = rewrite.Report.empty(sites)
        outs = rewrite.run(jaxpr, consts, given, categories, report, 0)
        error = Error(report.code, report.payloads, sites)
        return error, tree.tree_unflatten(out_tree[0], outs)

    return checked


__all__ = [
    "Error",
    "ErrorCategory",
    "JaxRuntimeError",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "checkify",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]
