"""What is only needed now and then is not loaded with the package."""

import os
import subprocess
import sys

LEAVES_OUT = """
import sys
import pathlib, numpy, ml_dtypes
before = {*sys.modules}
import numjet, numjet.numpy as jnp
print(sorted({"logging", "_hashlib", "glob"} & {*sys.modules} - before))
numjet.config.update("jax_log_compiles", True)
numjet.jit(lambda x: x * 3)(jnp.ones(2))
print("logging" in sys.modules)
"""


def test_the_import_leaves_out_what_is_seldom_needed():
    done = subprocess.run(
        [sys.executable, "-c", LEAVES_OUT], capture_output=True, text=True, check=True,
        env={**os.environ, "NUMJET_NATIVE_CHECKS": ""},  # with checks, code is compiled at once
    )  # fmt: skip
    assert done.stdout.splitlines() == ["[]", "True"]
    for line in ("Finished tracing <lambda> for jit", "Compiling jit(<lambda>)"):
        assert line in done.stderr


HIT = """
import numjet, numjet.numpy as jnp
heard = []
numjet.monitoring.register_event_listener(lambda event, **_: heard.append(event))
for _ in range(2):
    with numjet.log_compiles():
        numjet.jit(lambda x: x * 13 - 5)(jnp.ones(3)).block_until_ready()
    numjet.clear_caches()
    import time
    time.sleep(0.5)  # until the entry is written
print(heard.count("/jax/compilation_cache/tasks_using_cache"))
"""


def test_programs_that_are_found_on_disk_are_told(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", HIT], capture_output=True, text=True, check=True,
        env={**os.environ, "NUMJET_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout.split() == ["1"]
    assert done.stderr.count("Persistent compilation cache hit for 'jit_<lambda>' with key") == 1
