"""debug.breakpoint: the prompt's commands, where it opens, and what it hands on."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import pytest

import numjet as nj
import numjet.numpy as jnp


def session(make: Callable, commands: str, *args: Any, **options: Any) -> str:
    """What a prompt says to the commands; `make` gives a function that calls `stop()`."""
    answers, asked = io.StringIO(commands.replace(";", "\n") + "\n"), io.StringIO()
    make({"stdin": answers, "stdout": asked, **options})(*args)
    nj.effects_barrier()
    return asked.getvalue()


def plain(options: dict) -> Callable:
    def f(x: Any) -> Any:
        half, told = x / 2, ("a", 3)
        nj.debug.breakpoint(**options)
        return half, told

    return f


def jitted(options: dict) -> Callable:
    return nj.jit(lambda x: plain(options)(x)[0])


def nested(options: dict) -> Callable:
    def inner(z: Any) -> Any:
        w = z + 1
        nj.debug.breakpoint(**options)
        return w

    @nj.jit
    def outer(x: Any) -> Any:
        y = inner(x * 10)
        return y

    return outer


@pytest.mark.parametrize("make", [plain, jitted])
def test_expressions(make: Callable) -> None:
    said = session(make, "p x, half;pp told;half * 2;p jnp.ones(1);p none;p 1 +;c", jnp.float32(3))
    assert said == "\n".join([
        "Entering jdb:",
        "(jdb) (Array(3., dtype=float32), Array(1.5, dtype=float32))",
        "(jdb) ('a', 3)",
        "(jdb) Array(3., dtype=float32)",
        "(jdb) Array([1.], dtype=float32)",
        "(jdb) *** NameError: name 'none' is not defined",
        "(jdb) *** SyntaxError: invalid syntax",
        "(jdb) ",
    ])  # fmt: skip


def test_the_stack() -> None:
    said = session(nested, "p w;u;p x;u;d;d;d;where;c", jnp.float32(3))
    assert re.search(r"31\.,.*3\.,", said, re.S)
    assert said.count("->          nj.debug.breakpoint(**options)") == 2
    assert said.count("->          y = inner(x * 10)") == 2
    assert "At bottommost frame." in said
    assert "(jdb) Traceback:\n" in said
    lines = re.findall(r'File "(.*)", line', said)
    assert lines and all(line.endswith((".py", "<string>")) for line in lines)
    assert said.index("    y = inner(x * 10)") < said.rindex("    nj.debug.breakpoint(**options)")
    assert not any("/numjet/api/" in line for line in lines)
    assert "At topmost frame." in session(nested, "u;c", jnp.float32(3), num_frames=1)
    with pytest.raises(ValueError, match="num_frames must be at least 1"):
        nj.debug.breakpoint(num_frames=0)


@pytest.mark.parametrize("commands", ["q", "exit", ""])
def test_the_end(commands: str) -> None:
    with pytest.raises(SystemExit):
        session(plain, commands, 1.0)


def test_transformations() -> None:
    mapped = session(lambda o: nj.vmap(jitted(o)), "p x;c;p x;c", jnp.arange(2.0))
    assert sorted(re.findall(r"Array\((.)\.", mapped)) == ["0", "1"]
    assert session(lambda o: nj.grad(jitted(o)), "p x;c", 3.0).count("Entering") == 1
    turns = session(lambda o: nj.jit(lambda x: [plain(o)(x + k)[0] for k in range(3)]),
                    "p x;c;p x;c;p x;c", jnp.float32(5), ordered=True)  # fmt: skip
    assert re.findall(r"Array\((.)\.", turns) == ["5", "6", "7"]


def test_tokens_are_handed_on() -> None:
    def handing(options: dict) -> Callable:
        def f(x: Any) -> Any:
            y = {"kept": 3 * x}
            return nj.debug.breakpoint(token=y, **options)["kept"]

        return f

    for change in (nj.jit, nj.grad, lambda f: nj.jit(nj.vmap(f))):
        x = jnp.arange(1.0, 2.0) if change not in (nj.jit, nj.grad) else 1.0
        out: list = []
        said = session(lambda o, c=change: lambda x: out.append(c(handing(o))(x)), "p y;c", x)
        assert said.count("Entering") == 1 and "3." in said
        assert float(jnp.sum(out[0])) == 3.0
