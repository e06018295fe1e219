"""Runs a script under JAX, which the tests compare with and the package never imports.

JAX lives in an environment of its own (`make test` makes .venvs/oracle; NUMJET_ORACLE_PYTHON names
another interpreter). A test collects its cases and calls `run_in_oracle` once: starting JAX takes
most of a second.
"""
from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
NO_ORACLE = ("JAX is not installed beside the tests; run `make test`, or set "
             "NUMJET_ORACLE_PYTHON to a Python that has JAX 0.10.2.")

# Runs in the oracle's interpreter. A NumPy archive holds no extension dtypes such as bfloat16, so
# these travel as bytes, with the dtype in the name.
_COMMON = """
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
_scope = dict(_inputs, np=np, jax=jax, jnp=jnp, ml_dtypes=ml_dtypes, out=out, __name__="__main__")
exec(compile(open(sys.argv[3]).read(), "<oracle script>", "exec"), _scope)
np.savez(sys.argv[2], **dict(_pack(k, v) for k, v in out.items()))
"""
_tools: dict[str, Any] = {"np": np, "ml_dtypes": ml_dtypes}
exec(_COMMON, _tools)


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


def run_in_oracle(script: str, *, x64: bool = False, devices: int = 1, timeout: float = 600,
                  **arrays: Any) -> dict[str, np.ndarray]:
    """Run `script` under JAX and return what it stores in the dictionary `out`, as NumPy arrays.

    The script sees `np`, `jax`, `jnp` and each of `arrays` (anything np.asarray takes) by its name:
    run_in_oracle("out['y'] = jnp.sin(x)", x=x)["y"]. Skips the calling test when JAX is absent;
    AssertionError with the script's error output when it fails. `timeout`: seconds; compiling some
    hundred programs took over 120 on two cores that others used as well.
    """
    python = oracle_python()
    if python is None:
        pytest.skip(NO_ORACLE)
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": str(int(x64)),
                   "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}
    with tempfile.TemporaryDirectory() as folder:
        inputs, outputs, main, body = (
            os.path.join(folder, name) for name in ("in.npz", "out.npz", "main.py", "body.py"))
        np.savez(inputs, **dict(_tools["_pack"](name, value) for name, value in arrays.items()))
        Path(main).write_text(_SCRIPT.format(common=_COMMON))
        Path(body).write_text(script)
        done = subprocess.run([python, main, inputs, outputs, body], env=environment,
                              capture_output=True, text=True, timeout=timeout)
        assert done.returncode == 0, f"the oracle's script failed:\n{done.stderr[-4000:]}"
        with np.load(outputs) as archive:
            return _tools["_unpack"](archive)
