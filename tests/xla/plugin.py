"""The CPU plugin of XLA for tests: programs run on it beside the native backend."""
from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import numjet as nj
from numjet.ops.stored_keys import viewed
from numjet.xla import client, hlo, host_calls, plugins

# `make gpu` runs these tests on the GPU that is there.
PLATFORM = os.environ.get("NUMJET_TEST_PLATFORM", "xla_cpu")
needs_plugin = pytest.mark.skipif(
    plugins.library(PLATFORM) is None, reason=f"no plugin for {PLATFORM} is installed"
)


@functools.cache
def device() -> Any:
    return nj.devices(PLATFORM)[0]


class GpuLike:
    """A device that programs are written for as for a GPU, to run them on the plugin's."""

    class client:
        platform = "cuda"


def run(fun: Callable, args: Sequence[Any], written_for: Any = None) -> list[np.ndarray]:
    """The results of a function on the plugin, as NumPy arrays, all inputs given as buffers.
    written_for: the device that the program is written for, if it is another."""
    closed = hlo.stored(nj.make_jaxpr(fun)(*args))
    module = hlo.module(closed, devices=(written_for or device(),))
    assert not module.calls or host_calls.register(device().client)
    program = device().client.compile(module.text, client.options_for((device(),)), (device(),))
    memory = [np.asarray(getattr(x, "_value", x)) for x in [*closed.consts, *nj.tree.leaves(args)]]
    avals = [v.aval for v in [*closed.jaxpr.constvars, *closed.jaxpr.invars]]
    typed = [viewed(x, a) if type(x.dtype) is np.dtypes.VoidDType else
             x.astype(hlo.spec(a)[1]) for x, a in zip(memory, avals, strict=True)]
    buffers = [device().client.put(x, (device(),)) for x in typed]
    outs = host_calls.running(module.calls, lambda: program.finished(buffers))
    return [b.result() for b in outs]
