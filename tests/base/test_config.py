"""Flags: environment variables, process-wide values, values for a block, messages."""
from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from numjet.base import config as flags
from numjet.base.config import config


def test_update_and_read():
    before = config.check_ir
    try:
        config.update("check_ir", True)
        assert config.check_ir is True and config.read("check_ir") is True
        config.update("numjet_check_ir", False)
        assert config.values["jax_debug_key_reuse"] is False
        assert config.read("jax_check_ir") is False and config.values["check_ir"] is False
    finally:
        config.update("check_ir", before)


def test_a_block_sees_its_value_and_nobody_else_does():
    before = flags.debug_nans.value
    seen = []
    with flags.debug_nans(not before):
        assert config.debug_nans is not before
        thread = threading.Thread(target=lambda: seen.append(config.debug_nans))
        thread.start()
        thread.join()
        with flags.debug_nans(before):
            assert config.debug_nans is before
        assert config.debug_nans is not before
    assert config.debug_nans is before and seen == [before]


def test_flags_that_change_tracing_are_part_of_every_key():
    key = flags.trace_key()
    with flags.enable_x64(not config.enable_x64):
        assert flags.trace_key() != key
    with flags.log_compiles(not config.log_compiles):
        assert flags.trace_key() == key
    assert flags.trace_key() == key


def test_messages():
    with pytest.raises(AttributeError, match="option: nothing. Known flags: .*enable_x64"):
        config.update("nothing", 1)
    with pytest.raises(AttributeError, match="option: nothing"):
        _ = config.nothing
    with pytest.raises(ValueError, match=r"must be in \['allow', 'warn', 'raise'\], got 'no'"):
        config.update("numpy_rank_promotion", "no")
    with pytest.raises(TypeError, match="'num_threads' takes int, got 'two'"):
        config.update("num_threads", "two")


@pytest.mark.parametrize("variables, printed", [
    ({"NUMJET_ENABLE_X64": "1", "NUMJET_NUM_CPU_DEVICES": "4"}, "True 4"),
    ({"NUMJET_ENABLE_X64": "off"}, "False 1"),
    ({"NUMJET_ENABLE_X64": "perhaps"}, "NUMJET_ENABLE_X64='perhaps': expected 1 or 0"),
    ({"NUMJET_NUM_CPU_DEVICES": "many"}, "NUMJET_NUM_CPU_DEVICES='many'"),
    ({"NUMJET_NUMPY_RANK_PROMOTION": "no"}, "NUMJET_NUMPY_RANK_PROMOTION='no'"),
])
def test_environment_variables(variables, printed):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMJET_")} | variables
    # Loaded by its file: the flags alone, without the rest of numjet.
    script = ("import importlib.util as u, sys;"
              "s = u.spec_from_file_location('flags', sys.argv[1]);"
              "m = u.module_from_spec(s); s.loader.exec_module(m);"
              "print(m.config.enable_x64, m.config.num_cpu_devices)")
    done = subprocess.run([sys.executable, "-c", script, flags.__file__], env=environment,
                          capture_output=True, text=True)
    assert printed in done.stdout + done.stderr


def test_a_block_may_be_entered_by_hand_and_again():
    before = config.debug_infs
    block = flags.debug_infs(not before)
    with block:
        with block:
            assert config.debug_infs is not before
        assert config.debug_infs is not before
    assert config.debug_infs is before

    @flags.debug_infs(not before)
    def seen(more):
        return [config.debug_infs] + (seen(more - 1) if more else [])

    assert seen(1) == [not before] * 2 and config.debug_infs is before


def test_a_block_that_nobody_keeps_lasts():
    script = ("import numjet as nj, numjet.numpy as jnp, numpy as np\n"
              "nj.enable_x64(True).__enter__()\n"
              "nj.transfer_guard_host_to_device('disallow').__enter__()\n"
              "x = nj.device_put(np.arange(2.0))\n"
              "try: x + np.ones(2)\n"
              "except nj.errors.JaxRuntimeError: print(x.dtype)\n")
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.stdout.strip() == "float64", run.stderr
