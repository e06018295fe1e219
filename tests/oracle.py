"""What JAX, which the tests compare with and the package never imports, answers to a script.

Answers are kept in tests/answers, a file for each module of tests, under a digest of all that they
follow from: the script, its arguments, JAX's version. A script that has none there runs under JAX,
in an environment of its own (`make test` makes .venvs/oracle; NUMJET_ORACLE_PYTHON names another
interpreter). tools/oracle_answers.py asks JAX again for a module's answers, or for all, and keeps
them. NUMJET_ORACLE_ANSWERS=new asks JAX for everything and keeps nothing. A test collects its cases
and calls `run_in_oracle` once: starting JAX takes most of a second.
"""
from __future__ import annotations

import functools
import hashlib
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
ANSWERS = ROOT / "tests/answers"
NO_ORACLE = ("JAX is not installed beside the tests; run `make test`, or set "
             "NUMJET_ORACLE_PYTHON to a Python that has JAX 0.10.2.")

# Runs in the oracle's interpreter too. A NumPy archive holds no extension dtypes such as bfloat16,
# so these travel as bytes, with the dtype in the name. `encoded` makes JSON of nested lists, tuples
# and dictionaries of arrays and numbers, tuples as lists; `decoded` reads it.
_COMMON = """
import base64
import zlib

def _pack(name, value):
    value = np.asarray(value)
    if value.dtype.isbuiltin == 1 or value.dtype.kind in "SU":
        return name, value
    packed = np.ascontiguousarray(value).view(np.uint8).reshape(value.shape + (value.itemsize,))
    return f"{name}::{value.dtype.name}", packed

def _unpack(archive):
    values = {}
    for key in archive.files:
        name, _, dtype = key.partition("::")
        value = archive[key]
        if dtype:
            value = value.view(np.dtype(getattr(ml_dtypes, dtype))).reshape(value.shape[:-1])
        values[name] = value
    return values

def encoded(value):
    if isinstance(value, dict):
        return {str(k): encoded(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [encoded(v) for v in value]
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if not isinstance(value, np.ndarray):
        return value
    named = value.dtype.isbuiltin != 1 and value.dtype.kind not in "SU"
    dtype = value.dtype.name if named else value.dtype.str
    data = base64.b64encode(zlib.compress(np.ascontiguousarray(value).tobytes(), 9)).decode()
    return {"dtype": dtype, "shape": value.shape, "data": data}

def decoded(value):
    if isinstance(value, list):
        return [decoded(v) for v in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"complex"}:
        return complex(*value["complex"])
    if value.keys() != {"dtype", "shape", "data"}:
        return {k: decoded(v) for k, v in value.items()}
    data = bytearray(zlib.decompress(base64.b64decode(value["data"])))
    return np.ndarray(value["shape"], np.dtype(value["dtype"]), data)
"""
_SCRIPT = """
import sys
import ml_dtypes
import numpy as np
import jax
import jax.numpy as jnp
{common}
_inputs = _unpack(np.load(sys.argv[1]))
out = {{}}
_scope = dict(_inputs, np=np, jax=jax, jnp=jnp, ml_dtypes=ml_dtypes, out=out, encoded=encoded,
              __name__="__main__")
exec(compile(open(sys.argv[3]).read(), "<oracle script>", "exec"), _scope)
np.savez(sys.argv[2], **dict(_pack(k, v) for k, v in out.items()))
"""
_tools: dict[str, Any] = {"np": np, "ml_dtypes": ml_dtypes}
exec(_COMMON, _tools)
encoded, decoded = _tools["encoded"], _tools["decoded"]


@functools.cache
def oracle_python() -> str | None:
    """The interpreter that has JAX; None when there is none."""
    named = os.environ.get("NUMJET_ORACLE_PYTHON")
    places = [Path(named)] if named else [ROOT / f".venvs/{name}/bin/python"
                                          for name in ("oracle", "jax")]
    for place in places:
        if place.exists() and any(place.parent.parent.glob("lib/python*/site-packages/jax")):
            return str(place)
        if named:
            return str(place)
    return None


def digest(*parts: Any) -> str:
    """A name for the answer to `parts`, arrays and values with a repr, of the JAX that the tests
    are written for."""
    found = hashlib.sha256((ROOT / "tests/oracle-requirements.txt").read_bytes())
    for part in parts:
        if isinstance(part, np.ndarray):
            text, data = f"{part.dtype.name}{part.shape}", part.tobytes()
        else:
            text, data = "", repr(part).encode()
        found.update(f"{text} {len(data)}:".encode() + data)
    return found.hexdigest()[:24]


def _answers_file() -> Path | None:
    """The file of the module whose test runs; None outside tests."""
    module = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]
    if not module.startswith("tests/"):
        return None
    return (ANSWERS / module.removeprefix("tests/")).with_suffix(".txt")


@functools.cache
def _answers(file: Path) -> dict[str, str]:
    lines = file.read_text().splitlines() if file.exists() else []
    return dict(line.split(" ", 1) for line in lines)


def find_answer(name: str) -> Any:
    """The value that is kept under `name` for the module whose test runs; None when none is."""
    file = _answers_file()
    if file is None or os.environ.get("NUMJET_ORACLE_ANSWERS"):
        return None
    text = _answers(file).get(name)
    return None if text is None else decoded(json.loads(text))


def keep_answer(name: str, value: Any) -> None:
    """Write `value` down under `name`, where tools/oracle_answers.py asks for it."""
    file = _answers_file()
    if file is None or os.environ.get("NUMJET_ORACLE_ANSWERS") != "keep":
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "ab", buffering=0) as lines:  # one write, since others may append as well
        lines.write(f"{name} {json.dumps(encoded(value), separators=(',', ':'))}\n".encode())


def run_in_oracle(script: str, *, x64: bool = False, devices: int = 1, timeout: float = 600,
                  kept: bool = True, **arrays: Any) -> dict[str, np.ndarray]:
    """Run `script` under JAX and return what it stores in the dictionary `out`, as NumPy arrays.

    The script sees `np`, `jax`, `jnp` and each of `arrays` (anything np.asarray takes) by its name:
    run_in_oracle("out['y'] = jnp.sin(x)", x=x)["y"]. Skips the calling test when JAX is absent;
    AssertionError with the script's error output when it fails. `timeout`: seconds; compiling some
    hundred programs took over 120 on two cores that others used as well. kept=False: the script's
    results differ from run to run, or are kept otherwise.
    """
    given = {name: np.asarray(value) for name, value in arrays.items()}
    name = digest(script, x64, devices, *(x for item in given.items() for x in item))
    if kept and (answer := find_answer(name)) is not None:
        return answer
    python = oracle_python()
    if python is None:
        pytest.skip(NO_ORACLE)
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": str(int(x64)),
                   "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}
    with tempfile.TemporaryDirectory() as folder:
        inputs, outputs, main, body = (
            os.path.join(folder, name) for name in ("in.npz", "out.npz", "main.py", "body.py"))
        np.savez(inputs, **dict(_tools["_pack"](*item) for item in given.items()))
        Path(main).write_text(_SCRIPT.format(common=_COMMON))
        Path(body).write_text(script)
        keeping = os.environ.get("NUMJET_ORACLE_ANSWERS") == "keep"  # waits as long as it takes
        done = subprocess.run([python, main, inputs, outputs, body], env=environment, text=True,
                              capture_output=True, timeout=None if keeping else timeout)
        assert done.returncode == 0, f"the oracle's script failed:\n{done.stderr[-4000:]}"
        with np.load(outputs) as archive:
            answer = _tools["_unpack"](archive)
    if kept:
        keep_answer(name, answer)
    return answer
