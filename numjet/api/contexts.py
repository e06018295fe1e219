"""Flags as context managers, under the names that the front door gives them.

Each name is a flag's own object: `with numjet.no_tracing(True):` sets it for a block. Those without
effect here say so once (base/jax_flags.py). Names load when they are first used. For users.
"""
from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import Any

from numjet.base import config
from numjet.base.markers import NOT_GIVEN

# Names of flags that are not their flag's own.
_FLAGS = {
    "enable_checks": "jax_enable_checks",
    "jax2tf_associative_scan_reductions": "jax2tf_associative_scan_reductions",
    **{
        name: f"jax_{name}"
        for name in (
            "allow_f16_reductions",
            "array_garbage_collection_guard",
            "auto_pcast",
            "debug_key_reuse",
            "default_device",
            "default_prng_impl",
            "enable_custom_prng",
            "explain_cache_misses",
            "legacy_prng_key",
            "no_execution",
            "no_tracing",
            "remove_size_one_mesh_axis_from_type",
            "softmax_custom_jvp",
            "thread_guard",
            "threefry_partitionable",
            "transfer_guard_device_to_device",
            "transfer_guard_device_to_host",
            "transfer_guard_host_to_device",
        )
    },
}


def __getattr__(name: str) -> Any:
    if name in _FLAGS:
        return config.flag(_FLAGS[name])
    raise AttributeError(f"module 'numjet.api.contexts' has no attribute {name!r}")


def disable_jit(disable: bool = True) -> contextlib.AbstractContextManager[None]:
    """A context in which compiled functions run operation by operation.

    disable: False turns compiling on again within such a context. Python's debugger and `print`
    then see every value, and Python's `if` works on them. Loops (`lax.scan`, `lax.while_loop`) run
    in Python too.

    >>> import numjet as nj
    >>> with nj.disable_jit():
    ...     print(nj.jit(lambda x: x if x > 0 else -x)(-2.0))
    2.0
    """
    return config.disable_jit(disable)


checking_leaks = config.check_tracer_leaks


@contextlib.contextmanager
def transfer_guard(new_val: str) -> Any:
    """A context that sets the three guards of transfers between host and devices at once.

    new_val: 'allow', None (the same), 'log', 'disallow', which refuses implicit transfers with
    JaxRuntimeError, 'log_explicit' or 'disallow_explicit' for all; ValueError for another. Implicit
    are NumPy arrays and Python numbers handed to operations and compiled functions, `jnp.array` of
    them, and arrays read by NumPy; explicit are `device_put` and `device_get`. The CPU's devices
    share the host's memory, from which nothing is transferred to the host. For this thread.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> x = jnp.arange(3.0)
    >>> with nj.transfer_guard("disallow"):
    ...     x + 1  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    JaxRuntimeError: INVALID_ARGUMENT: Disallowed host-to-device transfer: Python int
    """
    with contextlib.ExitStack() as stack:
        for name in ("", "_host_to_device", "_device_to_device", "_device_to_host"):
            stack.enter_context(config.flag(f"jax_transfer_guard{name}")(new_val))
        yield


class UserContext:
    """A value of the user's that programs are compiled for: `.value`, and `with context(value):`.

    A compiled function is traced anew for each value (which must be hashable) of each context.
    """

    def __init__(self, default_value: Any = None) -> None:
        self._number = len(config.user_contexts)
        self._value: ContextVar = ContextVar(f"numjet.user.{self._number}", default=default_value)
        config.user_contexts.append((self._value, default_value))
        config.changed()

    @property
    def value(self) -> Any:
        return self._value.get()

    def __call__(self, value: Any = NOT_GIVEN) -> contextlib.AbstractContextManager[None]:
        """A context in which `.value` is `value`."""
        if value is NOT_GIVEN:
            raise TypeError("a user context takes the value that the block is to see.")
        hash(value)
        return self._within(value)

    @contextlib.contextmanager
    def _within(self, value: Any) -> Any:
        token = self._value.set(value)
        with config.recomputed_key():
            try:
                yield
            finally:
                self._value.reset(token)


def make_user_context(default_value: Any = None) -> UserContext:
    """A context of the user's own, whose value is part of every compilation's key.

    default_value: the value outside of any block; hashable. The result has `.value`, and
    `context(value)` is a context manager that sets it. A compiled function that reads it while it
    is traced is traced anew for each value. Raises TypeError for a value that is not hashable.

    >>> import numjet as nj
    >>> units = nj.make_user_context("metre")
    >>> with units("mile"):
    ...     units.value
    'mile'
    """
    return UserContext(default_value)

