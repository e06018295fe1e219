"""Which platform computations belong to, by the flags; what a client of a GPU is created with."""
from __future__ import annotations

import numpy as np
import pytest
from xla.plugin import PLATFORM, needs_plugin

import numjet as nj
import numjet.numpy as jnp
from numjet import doctor
from numjet.api.placement import platforms as chosen_platforms
from numjet.base import config
from numjet.xla import plugins


@pytest.fixture
def platforms():
    """The flag, which has its value again afterwards."""
    before = config.platforms._global
    yield config.platforms.set
    config.platforms.set(before)


@pytest.mark.skipif(config.platforms.value is not None, reason="another platform is the default")
@pytest.mark.parametrize("named", ["cpu", "", None])
def test_naming_the_cpu_changes_nothing(platforms, named):
    checks = config.numeric_checks[0]
    platforms(named)
    assert config.numeric_checks[0] == checks and nj.default_backend() == "cpu"
    assert not jnp.ones(2).committed and not (jnp.ones(2) + 1).committed
    with nj.default_device(nj.devices("cpu")[0]):
        assert config.numeric_checks[0] == checks and not jnp.ones(2).committed


def test_the_first_platform_that_is_installed(platforms, monkeypatch):
    monkeypatch.setattr(plugins, "library", lambda platform: None)
    chosen_platforms._first_installed.cache_clear()
    platforms("cuda, cpu")
    assert nj.default_backend() == "cpu" == (jnp.ones(2) + 1).device.platform
    platforms("tpu")
    with pytest.raises(RuntimeError, match="backend tpu. Available backends are .'cpu'.*pip"):
        nj.default_backend()
    platforms("cpu,abacus")
    with pytest.raises(RuntimeError, match="initialize backend 'abacus'.*not in the list of known"):
        nj.devices()
    chosen_platforms._first_installed.cache_clear()


def test_jaxs_flag_of_the_default_platform(platforms):
    nj.config.update("jax_platform_name", "cpu")
    assert nj.config.platforms == "cpu"


def test_memory_of_gpus_is_taken_as_it_is_needed():
    assert plugins.create_options("cuda") == {
        "allocator": "bfc", "preallocate": False, "memory_fraction": 0.75}
    with config.gpu_memory_fraction(0.5), config.gpu_allocator("platform"), (
            config.gpu_preallocate(True)), config.cuda_visible_devices("0,2"):
        assert plugins.create_options("cuda") == {
            "allocator": "platform", "preallocate": True, "memory_fraction": 0.5,
            "visible_devices": [0, 2]}
    with config.cuda_visible_devices("first"), pytest.raises(ValueError, match="by commas"):
        plugins.create_options("cuda")


@needs_plugin
def test_what_was_put_on_the_cpu_stays_there(platforms):
    platforms(PLATFORM)
    cpu, there = nj.devices("cpu")[0], nj.devices()[0]
    c = nj.device_put(np.arange(4, dtype=np.float32), cpu)
    loose, g = jnp.ones(4), nj.device_put(np.ones(4, np.float32), there)
    assert loose.devices() == {there} and not loose.committed
    f = nj.jit(lambda x: x * 2)
    for y in (c + 1, c + loose, jnp.tanh(jnp.sin(c) * 2).sum(), c.at[0].set(1.0), jnp.sort(c), f(c),
              nj.jit(lambda x: x + loose)(c), nj.lax.scan(lambda s, x: (s + x, s), 0.0, c)[1],
              nj.vmap(jnp.cos)(c), nj.nn.softmax(c), f(f(c) + 1), f.lower(c).compile()(c)):
        assert y.devices() == {cpu}
    assert (c + 1).committed and f(c).committed
    np.testing.assert_array_equal(c + loose, [1, 2, 3, 4])
    given = c, c, c, loose, np.ones(4, np.float32), g, c, loose
    assert [next(iter(f(x).devices())) for x in given] == [cpu] * 3 + [there] * 3 + [cpu, there]
    for call in (lambda: c + g, lambda: nj.jit(jnp.add)(c, g), lambda: jnp.concatenate([c, g])):
        with pytest.raises(ValueError, match="Received incompatible devices for .* nu"):
            call()
    assert (nj.device_put(c, there) + g).devices() == {there}
    with nj.default_device(cpu):
        assert (jnp.ones(3) + 1).devices() == f(np.ones(3, np.float32)).devices() == {cpu}
        assert f(g).devices() == {there}
    donated = nj.device_put(np.ones(3, np.float32), cpu)
    nj.jit(lambda x: x + 1, donate_argnums=0)(donated)
    assert donated.is_deleted()


@pytest.mark.parametrize("file, words, remedy", [
    ("junk", "file too short", "Install a release of the plugin"),
    ("/nowhere.so", "No such file", "The plugin's file is not there"),
    (np._core._multiarray_umath.__file__, "is no PJRT plugin: it exports", "Install a"),
])
def test_the_doctor_says_why_a_plugin_cannot_be_used(monkeypatch, tmp_path, file, words, remedy):
    if file == "junk":
        file = str(tmp_path / "junk.so")
        (tmp_path / "junk.so").write_text("junk")
    monkeypatch.setenv("NUMJET_PJRT_TPU", file)
    lines = list(doctor.report())
    at = lines.index(f"tpu: plugin {file}")
    assert words in lines[at + 1] and "numjet.doctor" not in lines[at + 1]
    assert lines[at + 2].strip().startswith(remedy) and "nvidia" not in lines[at + 2]


def test_remedies_are_those_of_the_platform():
    cuda, tpu = plugins.known("gpu"), plugins.known("tpu")
    assert "nvidia-smi" in doctor._remedy(cuda, "No visible GPU devices.")
    assert "/dev/accel" in doctor._remedy(tpu, "TPU initialization failed: No jellyfish device")
    assert "Another process" in doctor._remedy(tpu, "The TPU is already in use by process 7")
    assert "Install a release" in doctor._remedy(cuda, "x.so speaks PJRT 0.12; numjet knows")
    assert "Update the driver" in doctor._remedy(cuda, "CUDA driver version is insufficient for")
