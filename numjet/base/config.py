"""Flags: read from `NUMJET_…` environment variables, set with `config.update`, or for a block
of code with a context manager.

Every layer may read them. A flag that changes what tracing produces is `traced=True`: its value
is part of every compilation key (see `trace_key`), so switching it never reuses a stale program.
"""

from __future__ import annotations

import contextlib
import os
import textwrap
import threading
from array import array
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from numjet.base import locks
from numjet.base.markers import NOT_GIVEN

_UNSET: Any = object()
FLAGS: dict[str, Flag] = {}
# How many switches ask for checks of each operation that are off by default (`_UNCHECKED`). Each
# operation reads this one number instead of the flags.
numeric_checks = [0]
# One number that compiled calls compare with the one they were prepared under: it grows with every
# change of a flag, and is negative while a block of code anywhere has a value of its own.
state = array("q", [0])
_blocks = [0, 0]  # such blocks now, and changes so far
# Blocks around which others were entered: kept, as a generator that is freed ends its block.
_entered: list[tuple] = []


def changed(blocks: int = 0) -> None:
    """Note a change of the flags, or of anything else that prepared calls rely on."""
    _blocks[0] += blocks
    _blocks[1] += 1
    state[0] = -1 if _blocks[0] else _blocks[1]


# Flags that ask for checks, with the values that ask for none; operations that may belong to
# another backend's device are looked at in the same place.
NATIVE = (None, "", "cpu")  # values of `platforms` that name the native backend alone
_UNCHECKED: dict[str, tuple] = {
    "platforms": NATIVE,
    "default_device": (None,),
    "debug_nans": (False,),
    "debug_infs": (False,),
    "no_execution": (False,),
    "numpy_rank_promotion": ("allow",),
    "transfer_guard_host_to_device": (None, "allow"),
}


# Counts, with the least that each may be.
_LEAST = {"num_threads": 0, "num_cpu_devices": 1, "cache_bytes": 0, "eager_fusion_bytes": 0}

_ALIASES = {"check_ir": "enable_checks"}  # names at the front door
# Flags that the front door has by their names, with a value for the example of each.
_IN_BLOCKS = {
    "check_ir": True, "enable_x64": True, "debug_nans": True, "debug_infs": True,
    "check_tracer_leaks": True, "debug_key_reuse": True,
    "log_compiles": False, "default_matmul_precision": "highest", "numpy_dtype_promotion": "strict",
    "numpy_rank_promotion": "raise", "no_tracing": True, "no_execution": True,
    "explain_cache_misses": False, "default_device": None, "default_prng_impl": "rbg",
    "enable_custom_prng": True, "legacy_prng_key": "error", "threefry_partitionable": False,
    "transfer_guard_host_to_device": "disallow", "transfer_guard_device_to_device": "log",
    "transfer_guard_device_to_host": "disallow",
}  # fmt: skip


def _flag(name: str) -> Flag:
    return FLAGS[name]


_counting = locks.lock()


class Flag:
    """One setting: a process-wide value and, over it, a value for the current context."""

    __slots__ = (
        "name", "kind", "doc", "traced", "choices", "uses", "asks", "_global", "_local", "_hooks",
        "_begins", "_fixed", "_around", "_tests", "default",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        default: Any,
        kind: type,
        doc: str,
        traced: bool = False,
        choices: tuple = (),
    ) -> None:
        self.name, self.kind, self.doc, self.traced = name, kind, doc, traced
        self.choices = choices
        self._global = self.default = default
        self._local: ContextVar = ContextVar(f"numjet.{name}", default=_UNSET)
        self._hooks: list = []
        self._begins: list = []
        self._tests: list = []
        self._around: Any = None
        self._fixed = ""
        # How many blocks of code (in any thread) have set a value of their own right now.
        self.uses = 0
        raw = os.environ.get(f"NUMJET_{name.upper()}")
        if raw is not None:
            self._global = self._parse(raw)
            numeric_checks[0] += self._checks(self._global)
        # Whether the process's value asks for checks.
        self.asks = self._checks(self._global)
        FLAGS[name] = self

    def __reduce__(self) -> tuple:
        """By name: functions that are written down whole (cloudpickle) read flags."""
        return _flag, (self.name,)

    @property
    def __name__(self) -> str:
        return self.name

    def documentation(self) -> str:
        """The flag's docstring, from its record."""
        kind = f"one of {self.choices}" if self.choices else self.kind.__name__
        more = " Functions are traced anew for each value." if self.traced else ""
        text = "\n\n".join([
            textwrap.fill(paragraph, 96) for paragraph in (
                f"The flag `{self.name}`: {self.doc}.",
                f"new_val: {kind}{', True unless given' if self.kind is bool else ''}. A context "
                "in which the flag has this value, for its thread. For the process: "
                f"`config.update({self.name!r}, value)`, or before it begins "
                f"NUMJET_{self.name.upper()}; by default {self.default!r}. Raises ValueError or "
                f"TypeError for a value that it does not take.{more}",
            )
        ])
        if self.name in _IN_BLOCKS:
            value, public = _IN_BLOCKS[self.name], _ALIASES.get(self.name, self.name)
            text += (
                f"\n\n>>> import numjet as nj\n>>> with nj.{public}({value!r}):\n"
                f"...     print(nj.config.{self.name})\n{value}"
            )
        return text

    def _parse(self, raw: str) -> Any:
        if self.kind is bool:
            lowered = raw.strip().lower()
            if lowered in ("1", "true", "yes", "on"):
                return True
            if lowered in ("0", "false", "no", "off", ""):
                return False
            raise ValueError(f"NUMJET_{self.name.upper()}={raw!r}: expected 1 or 0.")
        try:
            return self._check(self.kind(raw))
        except ValueError as error:
            raise ValueError(f"NUMJET_{self.name.upper()}={raw!r}: {error}") from None

    def _check(self, value: Any) -> Any:
        if self.choices and value not in self.choices:
            raise ValueError(
                f"new enum value must be in {[*self.choices]}, got {value!r} for the config flag "
                f"{self.name!r}."
            )
        if value is not None and self.kind is int and not isinstance(value, int):
            raise TypeError(f"config flag {self.name!r} takes {self.kind.__name__}, got {value!r}.")
        if value is not None and self.kind is str and not isinstance(value, str):
            raise ValueError(
                f"new string config value must be None or of type str, got {value!r} of type "
                f"{type(value)} for the flag {self.name!r}."
            )
        for test in self._tests:
            test(value)
        if value is not None and self.name in _LEAST and value < _LEAST[self.name]:
            raise ValueError(
                f"config flag {self.name!r} takes {_LEAST[self.name]} or more, got {value!r}."
            )
        return self.kind(value) if value is not None and self.kind is bool else value

    def _checks(self, value: Any) -> bool:
        if self.name not in _UNCHECKED or value in _UNCHECKED[self.name]:
            return False
        return not getattr(value, "computes_anyway", False)

    @property
    def value(self) -> Any:
        local = self._local.get()
        return self._global if local is _UNSET else local

    @property
    def everywhere(self) -> Any:
        """The process-wide value."""
        return self._global

    def fix(self, reason: str) -> Any:
        """The value, which from now on cannot be changed: something was made by it."""
        self._fixed = reason
        return self.value

    def _set_before(self, value: Any) -> None:
        if self._fixed and value != self.value:
            raise RuntimeError(
                f"config flag {self.name!r} is {self.value!r} and cannot become {value!r}: "
                f"{self._fixed}. Set NUMJET_{self.name.upper()} before the process begins, or the "
                "flag right after numjet is imported."
            )

    def set(self, value: Any) -> None:
        """Set the process-wide value."""
        self._set_before(self._check(value))
        before, self._global = self._global, self._check(value)
        for begin in self._begins:
            begin()
        self.asks = self._checks(self._global)
        numeric_checks[0] += self.asks - self._checks(before)
        _refresh_key()
        changed()
        for hook in self._hooks:
            hook(self._global)

    def on_check(self, test: Any) -> None:
        """Call `test(value)`, which raises for a value that the flag does not take."""
        self._tests.append(test)

    def on_change(self, hook: Any) -> None:
        """Call `hook(value)` whenever the process-wide value is set."""
        self._hooks.append(hook)

    def on_block(self, around: Any) -> None:
        """Run each block that has a value of its own within the context `around(value)`."""
        self._around = around

    def on_begin(self, hook: Any) -> None:
        """Call `hook()` whenever the process-wide value is set, or a block gets its own."""
        self._begins.append(hook)

    @property
    def anywhere(self) -> bool:
        """Whether the process, or a block of code in any thread, has a value of its own."""
        return self.uses > 0 or self._global is not None

    def __call__(self, new_val: Any = NOT_GIVEN) -> contextlib.AbstractContextManager[None]:
        """A context in which the flag is `new_val`; a switch without one is on."""
        if new_val is NOT_GIVEN:
            if self.kind is not bool:
                raise TypeError(
                    f"Context manager for {self.name} config option requires an argument "
                    f"representing the new value for the config option."
                )
            new_val = True
        return Block(self, self._check(new_val))

    def count(self, by: int) -> None:
        """One more block of code that sets the flag, or whose readers are to ask; or one less."""
        with _counting:
            self.uses += by

    def _begin(self, value: Any) -> tuple:
        """Give a block of code its own value; `_end` takes what comes back."""
        self._set_before(value)
        token = self._local.set(value)
        numeric_checks[0] += self._checks(value)
        key = _key.set(_block_key()) if self.traced else None
        self.count(1)
        for begin in self._begins:
            begin()
        changed(1)
        around = None if self._around is None else self._around(value)
        if around is not None:
            around.__enter__()
        return value, token, key, around

    def _end(self, begun: tuple, *raised: Any) -> None:
        value, token, key, around = begun
        try:
            if around is not None:
                around.__exit__(*raised)
        finally:
            changed(-1)
            self.count(-1)
            self._local.reset(token)
            numeric_checks[0] -= self._checks(value)
            if key is not None:
                _key.reset(key)

    def __repr__(self) -> str:
        return f"Flag({self.name}={self.value!r})"


class Block(contextlib.ContextDecorator):
    """A flag's value for a block of code, or for the calls of a function that it decorates.

    It may be entered as often as one likes, also within itself. What was entered by hand stays so
    until it is left, whether or not anybody keeps the object.
    """

    def __init__(self, flag: Flag, value: Any) -> None:
        self._flag, self._value = flag, value
        # What was begun and has not ended, by thread.
        self._begun: dict[int, list[tuple]] = {}

    def _recreate_cm(self) -> Block:
        return self

    def __enter__(self) -> None:
        begun = self._flag._begin(self._value)
        self._begun.setdefault(threading.get_ident(), []).append(begun)
        if begun[-1] is not None:
            _entered.append(begun)

    def __exit__(self, *raised: Any) -> None:
        thread = threading.get_ident()
        begun = self._begun[thread].pop()
        if not self._begun[thread]:
            del self._begun[thread]
        if begun[-1] is not None:
            _entered.remove(begun)
        self._flag._end(begun, *raised)


class _Documentation:
    """A flag's docstring, written when it is asked for, and that of the class."""

    def __init__(self, own: str | None) -> None:
        self.own = own

    def __get__(self, flag: Flag | None, owner: type) -> str | None:
        return self.own if flag is None else flag.documentation()


Flag.__doc__ = _Documentation(Flag.__doc__)  # type: ignore[assignment]
enable_x64 = Flag("enable_x64", False, bool, "64-bit types by default", traced=True)
disable_jit = Flag("disable_jit", False, bool, "run jitted functions operation by operation")
check_ir = Flag("check_ir", False, bool, "verify every IR after every pass")
debug_nans = Flag("debug_nans", False, bool, "raise where a NaN first appears")
debug_infs = Flag("debug_infs", False, bool, "raise where an infinity first appears")
debug_key_reuse = Flag("debug_key_reuse", False, bool, "raise where a random key is used twice")
check_tracer_leaks = Flag(
    "check_tracer_leaks", False, bool, "fail when a tracer outlives its trace"
)
log_compiles = Flag("log_compiles", False, bool, "log each compilation with its time")
num_cpu_devices = Flag("num_cpu_devices", 1, int, "virtual devices of the CPU backend")
eager_compile = Flag(
    "eager_compile", True, bool, "run large operations outside jit as compiled programs"
)
eager_fusion = Flag(
    "eager_fusion", True, bool, "write large operations outside jit down and run them fused"
)
eager_fusion_bytes = Flag(
    "eager_fusion_bytes", 1 << 28, int,
    "bytes that operations which were written down may keep from being freed",
)
num_threads = Flag("num_threads", 0, int, "threads of the native pool; 0 means one a core")
default_matmul_precision = Flag(
    "default_matmul_precision",
    None,
    str,
    "precision of products and convolutions that name none, where hardware offers a choice",
    traced=True,
    choices=(
        None, "default", "high", "highest", "bfloat16", "tensorfloat32", "float32",
        "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY",
        "ANY_F8_ANY_F8_ANY_FAST_ACCUM", "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16",
        "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9",
        "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64",
    ),
)  # fmt: skip
numpy_dtype_promotion = Flag(
    "numpy_dtype_promotion",
    "standard",
    str,
    "standard or strict",
    traced=True,
    choices=("standard", "strict"),
)
numpy_rank_promotion = Flag(
    "numpy_rank_promotion",
    "allow",
    str,
    "allow, warn or raise",
    traced=True,
    choices=("allow", "warn", "raise"),
)
cpu = Flag(
    "cpu",
    "native",
    str,
    "features of the processor that compiled code may use: all, or those of an x86-64 level",
    choices=("native", "x86-64-v2", "x86-64-v3", "x86-64-v4"),
)
no_tracing = Flag("no_tracing", False, bool, "raise where a compiled function is traced")
no_execution = Flag("no_execution", False, bool, "raise where an operation or a program runs")
disable_bwd_checks = Flag(
    "disable_bwd_checks", False, bool, "take cotangents of any shape from custom_vjp rules",
    traced=True,
)
explain_cache_misses = Flag(
    "explain_cache_misses", False, bool, "log why a compiled function is traced"
)
gpu_preallocate = Flag(
    "gpu_preallocate", False, bool, "take all of a GPU's memory that may be used at once"
)
gpu_memory_fraction = Flag(
    "gpu_memory_fraction", 0.75, float, "how much of a GPU's memory may be used"
)
gpu_allocator = Flag(
    "gpu_allocator", "bfc", str, "whose memory a GPU's arrays are: a pool's (bfc), the driver's "
    "(platform), or that of the driver's pool (cuda_async)",
    choices=("default", "bfc", "platform", "cuda_async"),
)
cuda_visible_devices = Flag(
    "cuda_visible_devices", "all", str, "the numbers of the GPUs to use, by commas, or all"
)
platforms = Flag(
    "platforms", None, str, "platforms to use, by commas, by default the first that is installed: "
    "cpu, cuda, tpu, xla_cpu"
)
default_device = Flag("default_device", None, object, "the device of arrays that name none")
default_prng_impl = Flag(
    "default_prng_impl",
    "threefry2x32",
    str,
    "the generator of keys that name none",
    traced=True,
    choices=("threefry2x32", "rbg", "unsafe_rbg"),
)
jax_equations = Flag(
    "jax_equations", False, bool, "equations as JAX writes them (make_jaxpr)", traced=True
)


class _Asked(threading.local):
    """How often something that a thread traces was other than it were in the other form, JAX's or
    ours, or might have been: what asked for none is both (`transforms.forms`)."""

    forms = 0

    def note(self, times: int = 1) -> None:
        """It was asked for, so often."""
        self.forms += times

    def restore(self, times: int) -> None:
        """What asked since then does not count for what is traced around it."""
        self.forms = times


asked = _Asked()


def jax_form() -> bool:
    """Whether `make_jaxpr` traces, whose equations are to be JAX's. What is traced depends on the
    answer: ask where the two differ alone."""
    form = jax_equations
    if form.uses <= 0:
        return False
    asked.forms += 1
    local = form._local.get()
    return bool(form._global if local is _UNSET else local)


enable_custom_prng = Flag(
    "enable_custom_prng", False, bool, "typed keys from random.PRNGKey", traced=True
)
traceback_filtering = Flag(
    "traceback_filtering",
    "auto",
    str,
    "which frames of ours tracebacks show: off (all), tracebackhide (marked as hidden), "
    "remove_frames (none, with all in the cause), quiet_remove_frames (none), auto (the last; "
    "marked as hidden in IPython)",
    choices=("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"),
)
legacy_prng_key = Flag(
    "legacy_prng_key",
    "allow",
    str,
    "what happens to keys that are raw words: allow, warn or error",
    traced=True,
    choices=("allow", "warn", "error"),
)
_GUARDS = (None, "allow", "log", "disallow", "log_explicit", "disallow_explicit")
transfer_guard, *transfer_guards = [
    Flag(
        "transfer_guard" + direction,
        None,
        str,
        f"what happens to transfers {kind}: allow, log, disallow (the implicit ones), "
        "log_explicit, disallow_explicit (all)",
        choices=_GUARDS,
    )
    for direction, kind in (
        ("", "between host and devices; sets the three others"),
        ("_host_to_device", "from the host to devices"),
        ("_device_to_device", "among devices"),
        ("_device_to_host", "from devices to the host"),
    )
]
disk_cache = Flag("disk_cache", True, bool, "keep compiled objects on disk")
check_bounds = Flag(
    "check_bounds", False, bool, "end the process where compiled code leaves its arrays"
)
direct_code = Flag("direct_code", True, bool, "machine code without LLVM where possible")
cache_dir = Flag(
    "cache_dir", None, str, "the disk cache's directory: the user's own, or nowhere where it is ''"
)
cache_bytes = Flag("cache_bytes", 1 << 30, int, "bound of the disk cache in bytes")
async_dispatch = Flag("async_dispatch", True, bool, "hand long calls to a background thread")
threefry_partitionable = Flag(
    "threefry_partitionable", True, bool, "random bits by position, not in pairs", traced=True
)

def _check_folder(value: Any) -> None:
    if value is not None and "\0" in value:
        raise ValueError(f"config flag 'cache_dir': {value!r} with its null byte names no folder.")


cache_dir.on_check(_check_folder)

_TRACED = tuple(flag for flag in FLAGS.values() if flag.traced)


# Values of the user's that programs are compiled for (`api.contexts`), each with the one outside of
# any block. Keys hold them up to the last that is another: the key outside of blocks, and those of
# before a context was made, are the same whether it is there or not.
user_contexts: list[tuple[ContextVar, Any]] = []


def _block_key() -> tuple[tuple, tuple]:
    """The key in a block of code, and behind which key of the process it is."""
    values = [value.get() for value, _ in user_contexts]
    while values:
        outside = user_contexts[len(values) - 1][1]
        if values[-1] is not outside and values[-1] != outside:
            break
        values.pop()
    return _global_key[0], tuple([flag.value for flag in _TRACED] + values)


# The key is kept ready, since every call of a compiled function reads it: that of the process, and
# those of blocks, each beside the former as it was, since that may change while they last.
_global_key: list[tuple] = [()]
_key: ContextVar[tuple[tuple, tuple] | None] = ContextVar("numjet.trace_key", default=None)


def _refresh_key() -> None:
    _global_key[0] = tuple([flag._global for flag in _TRACED])


_refresh_key()


@contextlib.contextmanager
def recomputed_key() -> Iterator[None]:
    """A context whose keys hold the values that the user's contexts have now."""
    token = _key.set(_block_key())
    changed(1)
    try:
        yield
    finally:
        changed(-1)
        _key.reset(token)


def key_in_other_form(key: tuple) -> tuple:
    """The `trace_key` that this one were if `jax_equations` were the other way."""
    at = _TRACED.index(jax_equations)
    return (*key[:at], not key[at], *key[at + 1 :])


def trace_key() -> tuple:
    """The values of the flags that change what tracing produces, for compilation keys."""
    own = _key.get()
    if own is None:
        return _global_key[0]
    if own[0] is not _global_key[0]:
        own = _block_key()
        _key.set(own)
    return own[1]


def traced_flags() -> tuple[Flag, ...]:
    """The flags whose values `trace_key` gives, in its order."""
    return _TRACED


def flag(name: str) -> Any:
    """The flag of this name, with or without the prefix `jax_`: ours, or one of JAX's without
    effect here. Raises AttributeError where there is none."""
    found = FLAGS.get(name.removeprefix("jax_").removeprefix("numjet_"))
    if found is not None:
        return found
    from numjet.base import jax_flags

    if name in jax_flags.SAME:
        return FLAGS[jax_flags.SAME[name]]
    silent = jax_flags.find(name)
    if silent is None:
        known = ", ".join(sorted(FLAGS))
        raise AttributeError(
            f"Unrecognized config option: {name}. Known flags: {known}."
        )
    return silent


class Config:
    """The public `numjet.config`: `config.update(name, value)`, `config.enable_x64` (the value).

    Every flag of JAX's is known, with its prefix `jax_`; those without effect here say so when
    they are first changed (jax_flags.py).
    """

    def update(self, name: str, value: Any) -> None:
        """Set flag `name` (with or without the prefix `jax_`) for the whole process."""
        flag(name).set(value)

    def read(self, name: str) -> Any:
        """The current value of flag `name`."""
        return flag(name).value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return flag(name).value

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("jax_"):
            raise AttributeError(
                f"property {name!r} of 'Config' object has no setter: use "
                f"config.update({name!r}, value)."
            )
        flag(name).set(value)

    @property
    def values(self) -> dict[str, Any]:
        """The value of every flag: ours by their names, JAX's with their prefix."""
        from numjet.base import jax_flags

        ours = {name: own.value for name, own in FLAGS.items()}  # 3.12 mixes up equal names
        return ours | {name: flag(name).value for name in jax_flags.DEFAULTS}

    @property
    def x64_enabled(self) -> bool:
        """Whether 64-bit types are the default, as `enable_x64`."""
        return enable_x64.value

    def config_with_absl(self) -> None:
        """Have absl's `app.run` understand JAX's flags (`--jax_enable_x64`) as options."""
        from numjet.base import jax_flags

        jax_flags.define_with_absl(self)

    def parse_flags_with_absl(self) -> None:
        """Set the flags that the command line gives as options of absl's form, now."""
        from numjet.base import jax_flags

        jax_flags.parse_with_absl(self)


config = Config()
