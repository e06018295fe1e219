"""Runs cases under one library and answers what each gives: a process of its own.

    python worker.py jax|numjet

Read from standard input: pickled lists of cases, each (setup, function, arguments, keywords, mode,
phases) in text. Written to standard output for each case: the length of a pickled answer in 8
bytes, and the answer, a dictionary from phase to ("value", structure, leaves) or ("raises", names
of the exception's classes, message). Imports nothing of the project but numjet, where that is the
library: the oracle's environment has JAX and NumPy only.

Phases: "eager" calls the function; "jit" calls it with the traced arguments as arguments of jit;
"grad" pulls a fixed cotangent back to the floating-point arguments, "grad jit" the same compiled.
Of JAX "jit" is answered by its abstract evaluation, which gives types and errors at a tenth of the
time, and its gradients are compiled, where that is possible. "types" and "grad types" are abstract
evaluation by both, "eager types" evaluation by numjet, whose types are compared with these.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import signal
import sys
import warnings

import ml_dtypes  # noqa: F401  (NumPy knows bfloat16 by name once this is imported)
import numpy as np

SECONDS = 60  # for one phase of one case


class TooLong(Exception):
    pass


class Library:
    """One of the two libraries, with what the text of cases sees."""

    def __init__(self, name):
        self.name = name
        self.jax = jax = importlib.import_module(name)
        self.jnp = jnp = importlib.import_module(name + ".numpy")
        for module in (
            "scipy.special",
            "scipy.linalg",
            "scipy.stats",
            "scipy.signal",
            "scipy.fft",
            "scipy.ndimage",
            "scipy.optimize",
            "scipy.integrate",
            "scipy.sparse.linalg",
            "scipy.cluster.vq",
            "scipy.interpolate",
            "scipy.spatial.transform",
            "nn.initializers",
            "lax.linalg",
        ):
            importlib.import_module(f"{name}.{module}")
        self.scope = {
            "jax": jax,
            "jnp": jnp,
            "lax": jax.lax,
            "np": np,
            "nan": np.nan,
            "inf": np.inf,
            "weak": self.weak,
            "spd": self.spd,
        }

    def spd(self, values, dtype):
        """A symmetric (Hermitian) matrix made of these values, with eigenvalues above 1."""
        x = np.asarray(values, "complex128" if dtype.startswith("complex") else "float64")
        return self.jnp.array(x @ x.conj().swapaxes(-1, -2) + 2 * np.eye(x.shape[-1]), dtype)

    def weak(self, values):
        """A weakly typed Array of these values."""
        values = np.asarray(values)
        zero = {"f": 0.0, "c": 0j, "i": 0}[values.dtype.kind]
        return self.jax.lax.full(values.shape, zero).at[...].set(values)

    def mode(self, name):
        """The context of a mode."""
        jax = self.jax
        return {
            "plain": contextlib.nullcontext,
            "x64": lambda: jax.enable_x64(True),
            "rank": lambda: jax.numpy_rank_promotion("raise"),
            "strict": lambda: jax.numpy_dtype_promotion("strict"),
            "nans": lambda: jax.debug_nans(True),
            "leaks": jax.checking_leaks,
            "interpreted": jax.disable_jit,
        }[name]()

    def described(self, value, concrete=True):
        """Structure (as text) and leaves: (class, dtype, shape, weak type, values or text)."""
        leaves = []

        def walk(x):
            if isinstance(x, dict):
                return "{" + ", ".join(f"{k!r}: {walk(v)}" for k, v in x.items()) + "}"
            if isinstance(x, (list, tuple)):
                name = type(x).__name__
                fields = "" if name in ("list", "tuple") else name
                return (
                    fields + "(["[name == "list"] + ", ".join(map(walk, x)) + ")]"[name == "list"]
                )
            if x is None or isinstance(x, (str, np.dtype, type, slice)):
                return repr(x) if not isinstance(x, type) else x.__name__
            if hasattr(x, "shape") and hasattr(x, "dtype"):
                leaves.append(self.leaf(x, concrete))
                return "*"
            for kind in (bool, int, float, complex):
                if isinstance(x, kind):  # of JAX's own classes of numbers, too
                    leaves.append((kind.__name__, "", (), False, kind(x)))
                    return "*"
            return type(x).__name__

        return "value", walk(value), leaves

    def leaf(self, x, concrete):
        jax = self.jax
        kind = (
            "numpy"
            if isinstance(x, (np.ndarray, np.generic))
            else "Array"
            if isinstance(x, (jax.Array, jax.ShapeDtypeStruct))
            else type(x).__name__
        )
        dtype, shape = str(x.dtype), tuple(x.shape)
        weak = bool(getattr(x, "weak_type", False))
        if not concrete or isinstance(x, jax.ShapeDtypeStruct):
            return kind, dtype, shape, weak, None
        if dtype.startswith("key<"):
            x = jax.random.key_data(x)
        return kind, dtype, shape, weak, np.asarray(x)


def argument_names(args, keywords):
    """A case's arguments: the name of each, its text and whether jit traces it."""
    named = [(f"a{i}", *item) for i, item in enumerate(args)]
    return named + [(key, *item) for key, item in keywords]


class Case:
    """A case's text, made callable."""

    def __init__(self, library, case):
        self.library = library
        self.described, self.eval_shape = library.described, library.jax.eval_shape
        self.own = library.name == "numjet"
        setup, self.function, args, keywords, self.mode, self.phases = case
        self.positions = len(args)
        self.setup = setup
        self.named = argument_names(args, keywords)
        self.traced = [name for name, _, traced in self.named if traced]

    def prepare(self):
        scope = dict(self.library.scope)
        if self.setup:
            exec(self.setup, scope)
        self.values = {name: eval(text, scope) for name, text, _ in self.named}
        self.callee = eval(self.function, scope)

    def run(self, *traced):
        values = dict(self.values, **dict(zip(self.traced, traced)))
        args = [values.pop(f"a{i}") for i in range(self.positions)]
        return self.callee(*args, **values)

    @property
    def operands(self):
        return [self.values[name] for name in self.traced]

    def eager(self):
        return self.library.described(self.run(*self.operands))

    def jit(self):
        jax = self.library.jax
        if self.library.name == "jax":
            # A Python number is traced as the weakly typed value that jit makes of it.
            return self.library.described(jax.eval_shape(self.run, *self.operands), False)
        return self.library.described(jax.jit(self.run)(*self.operands))

    def pulled(self, *traced):
        """The cotangents of the floating-point arguments for a fixed cotangent of the result."""
        jax, jnp = self.library.jax, self.library.jnp
        flat, tree = jax.tree_util.tree_flatten(traced)

        def inexact(x):
            return (
                isinstance(x, (float, complex))
                or hasattr(x, "dtype")
                and jnp.issubdtype(x.dtype, jnp.inexact)
            )

        at = [i for i, x in enumerate(flat) if inexact(x)]

        def smooth(*chosen):
            values = list(flat)
            for i, x in zip(at, chosen):
                values[i] = x
            out = self.run(*tree.unflatten(values))
            return [x for x in jax.tree_util.tree_leaves(out) if inexact(x)]

        if not at:
            return []
        out, pull = jax.vjp(smooth, *[flat[i] for i in at])
        return pull([self.cotangent(x) for x in out])

    def cotangent(self, x):
        """Fixed numbers near 1, none equal to its neighbour."""
        jnp = self.library.jnp
        count = int(np.prod(np.shape(x)))
        values = (1 + 0.25 * np.cos(np.arange(count))).reshape(np.shape(x))
        return jnp.asarray(values, jnp.result_type(x))

    def grad(self):
        jax = self.library.jax
        if self.library.name == "jax" and self.mode != "interpreted":
            try:
                return self.library.described(jax.jit(self.pulled)(*self.operands))
            except (jax.errors.JAXTypeError, jax.errors.JAXIndexError):
                pass  # needs concrete values: as it is
        return self.library.described(self.pulled(*self.operands))

    def grad_jit(self):
        return self.library.described(self.library.jax.jit(self.pulled)(*self.operands))

    def types(self):
        return self.abstract(self.run)

    def grad_types(self):
        return self.abstract(self.pulled)

    def abstract(self, function):
        return self.described(self.eval_shape(function, *self.operands), False)

    def eager_types(self):
        """Evaluated by numjet alone."""
        return self.eager() if self.own else ("value", "", [])

    def phase(self, name):
        return getattr(self, name.replace(" ", "_"))()


def answer(library, text):
    case = Case(library, text)
    given = {}
    with library.mode(case.mode), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for phase in ("prepare", *case.phases):
            before = given.get("eager") or given.get("types") or ("value",)
            if phase.startswith("grad") and before[0] == "raises":
                continue
            signal.alarm(SECONDS)
            try:
                if phase == "prepare":
                    case.prepare()
                else:
                    given[phase] = case.phase(phase)
            except Exception as error:
                given[phase] = raised(error)
                if phase == "prepare":
                    break
            finally:
                signal.alarm(0)
    return given


def raised(error):
    return "raises", [kind.__name__ for kind in type(error).__mro__], str(error)[:300]


def stopped(number, frame):
    raise TooLong(f"no answer after {SECONDS} s")


def main():
    signal.signal(signal.SIGALRM, stopped)
    # Answers have the pipe for themselves: what anybody prints goes where errors go.
    results, sys.stdout = os.fdopen(os.dup(1), "wb"), sys.stderr
    os.dup2(2, 1)
    library, answered = Library(sys.argv[1]), 0
    while True:
        try:
            cases = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        for case in cases:
            payload = pickle.dumps(answer(library, case))
            results.write(len(payload).to_bytes(8, "little") + payload)
            results.flush()
            answered += 1
            if answered % 1500 == 0:
                library.jax.clear_caches()


if __name__ == "__main__":
    main()
