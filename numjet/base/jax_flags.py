"""JAX's flags, for programs that set them: their names and defaults, and what becomes of each.

A flag that numjet has as well (config.py) is that flag; a few go by another name here (`SAME`). The
rest change nothing in numjet: their values are kept and given back, and the first change of one
that could change results says so, as a warning of the logger `numjet`. Names and defaults are those
of JAX 0.10.2's public `jax.config.values`. Loaded when a flag is asked for that config.py does not
have.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from numjet.base.markers import NOT_GIVEN

# Flags of ours that mean the same under another name.
SAME = {
    "jax_enable_checks": "check_ir",
    "jax_cpu_enable_async_dispatch": "async_dispatch",
    "jax_enable_compilation_cache": "disk_cache",
    "jax_compilation_cache_dir": "cache_dir",
    # Other platforms can be asked for by name all the same, as in JAX.
    "jax_platform_name": "platforms",
}

DEFAULTS: dict[str, Any] = {
    "check_vma": False,
    "eager_constant_folding": False,
    "jax2tf_associative_scan_reductions": False,
    "jax2tf_default_native_serialization": True,
    "jax_allow_f16_reductions": True,
    "jax_array_garbage_collection_guard": None,
    "jax_auto_pcast": True,
    "jax_backend_target": "",
    "jax_bcoo_cusparse_lowering": False,
    "jax_captured_constants_report_frames": 0,
    "jax_captured_constants_warn_bytes": 2000000000,
    "jax_check_proxy_envs": True,
    "jax_check_static_indices": False,
    "jax_check_tracer_leaks": False,
    "jax_compilation_cache_check_contents": False,
    "jax_compilation_cache_dir": None,
    "jax_compilation_cache_expect_pgle": False,
    "jax_compilation_cache_include_metadata_in_key": False,
    "jax_compilation_cache_max_size": -1,
    "jax_compiler_detailed_logging_min_ops": 10,
    "jax_compiler_enable_remat_pass": True,
    "jax_cpu_collectives_implementation": "gloo",
    "jax_cpu_enable_async_dispatch": True,
    "jax_cpu_get_global_topology_timeout_minutes": 5,
    "jax_cpu_get_local_topology_timeout_minutes": 2,
    "jax_cross_host_transfer_socket_address": "",
    "jax_cross_host_transfer_timeout_seconds": None,
    "jax_cross_host_transfer_transfer_size": None,
    "jax_cross_host_transport_addresses": "",
    "jax_cuda_visible_devices": "all",
    "jax_custom_vjp3": False,
    "jax_debug_infs": False,
    "jax_debug_key_reuse": False,
    "jax_debug_leaked_clients_on_clear_backends": False,
    "jax_debug_log_modules": "",
    "jax_debug_nans": False,
    "jax_default_device": None,
    "jax_default_matmul_precision": None,
    "jax_default_prng_impl": "threefry2x32",
    "jax_disable_bwd_checks": False,
    "jax_disable_jit": False,
    "jax_disable_most_optimizations": False,
    "jax_disable_vmap_shmap_error": False,
    "jax_disallow_mesh_context_manager": False,
    "jax_distributed_debug": False,
    "jax_dump_ir_modes": "stablehlo",
    "jax_dump_ir_to": "",
    "jax_embedded_constants_max_bytes": 32,
    "jax_enable_checks": False,
    "jax_enable_compilation_cache": True,
    "jax_enable_custom_prng": False,
    "jax_enable_pgle": False,
    "jax_enable_preemption_service": True,
    "jax_enable_recoverability": False,
    "jax_enable_x64": False,
    "jax_error_checking_behavior_divide": "ignore",
    "jax_error_checking_behavior_nan": "ignore",
    "jax_error_checking_behavior_oob": "ignore",
    "jax_exec_time_optimization_effort": 0.0,
    "jax_experimental_unsafe_xla_runtime_errors": False,
    "jax_explain_cache_misses": False,
    "jax_explicit_x64_dtypes": "warn",
    "jax_export_calling_convention_version": 10,
    "jax_export_ignore_forward_compatibility": False,
    "jax_force_dcn_cross_host_transfers": False,
    "jax_high_dynamic_range_gumbel": False,
    "jax_hlo_source_file_canonicalization_regex": None,
    "jax_include_debug_info_in_dumps": True,
    "jax_include_full_tracebacks_in_locations": True,
    "jax_legacy_prng_key": "allow",
    "jax_log_checkpoint_residuals": False,
    "jax_log_compiles": False,
    "jax_logging_level": "NOTSET",
    "jax_memory_fitting_effort": 0.0,
    "jax_memory_fitting_level": "O2",
    "jax_mock_gpu_topology": "",
    "jax_mosaic_allow_hlo": False,
    "jax_mutable_array_checks": True,
    "jax_no_execution": False,
    "jax_no_tracing": False,
    "jax_num_cpu_devices": -1,
    "jax_numpy_dtype_promotion": "standard",
    "jax_numpy_rank_promotion": "allow",
    "jax_oneapi_visible_devices": "all",
    "jax_optimization_level": "UNKNOWN",
    "jax_pallas_enable_debug_checks": False,
    "jax_pallas_poison_buffers": False,
    "jax_pallas_use_mosaic_gpu": True,
    "jax_pallas_verbose_errors": False,
    "jax_persistent_cache_enable_xla_caches": "xla_gpu_per_fusion_autotune_cache_dir",
    "jax_persistent_cache_min_compile_time_secs": 1.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
    "jax_pgle_aggregation_percentile": 90,
    "jax_pgle_profiling_runs": 3,
    "jax_pjrt_client_create_options": None,
    "jax_platform_name": "",
    "jax_platforms": None,
    "jax_pprint_use_color": True,
    "jax_ragged_dot_use_gpu_pallas_triton_lowering": False,
    "jax_ragged_dot_use_ragged_dot_instruction": True,
    "jax_raise_persistent_cache_errors": False,
    "jax_random_seed_offset": 0,
    "jax_refs_to_pins": False,
    "jax_remat3": False,
    "jax_remove_custom_partitioning_ptr_from_cache_key": False,
    "jax_remove_size_one_mesh_axis_from_type": False,
    "jax_rocm_visible_devices": "all",
    "jax_scan3": False,
    "jax_send_traceback_to_runtime": "off",
    "jax_serialization_version": 0,
    "jax_share_binary_between_hosts": False,
    "jax_share_binary_between_hosts_timeout_ms": 1200000,
    "jax_softmax_custom_jvp": False,
    "jax_sort_devices_by_process_index": True,
    "jax_source_url_schema": None,
    "jax_thread_guard": False,
    "jax_threefry_gpu_kernel_lowering": False,
    "jax_threefry_partitionable": True,
    "jax_traceback_filtering": "auto",
    "jax_traceback_in_locations_limit": 100,
    "jax_tracer_error_num_traceback_frames": 5,
    "jax_transfer_guard": None,
    "jax_transfer_guard_device_to_device": None,
    "jax_transfer_guard_device_to_host": None,
    "jax_transfer_guard_host_to_device": None,
    "jax_use_direct_linearize": True,
    "jax_use_emit_pipeline_primitive": False,
    "jax_use_magma": "auto",
    "jax_use_shardy_partitioner": True,
    "jax_use_simplified_jaxpr_constants": False,
    "jax_xla_backend": "",
    "jax_xla_profile_version": 0,
    "mock_num_gpu_processes": 0,
}


# The values of flags that take some alone.
CHOICES: dict[str, tuple] = {
    "jax_array_garbage_collection_guard": (None, "allow", "log", "fatal"),
}
# Flags that ask for no other results: which compiled programs JAX writes to its disk cache (ours
# takes all), and how long XLA tries. Programs that set them run as they would with JAX, and there
# is nothing to say.
UNSEEN = frozenset(
    [
        "jax_compilation_cache_include_metadata_in_key",
        "jax_exec_time_optimization_effort",
        "jax_memory_fitting_effort",
        "jax_memory_fitting_level",
        "jax_optimization_level",
        "jax_persistent_cache_enable_xla_caches",
        "jax_persistent_cache_min_compile_time_secs",
        "jax_persistent_cache_min_entry_size_bytes",
        "jax_raise_persistent_cache_errors",
        "jax_use_shardy_partitioner",
    ]
)


class SilentFlag:
    """A flag of JAX without effect here: it keeps its value, and says once that it does nothing.

    Nothing is said of those in `UNSEEN`.
    """

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value, self._said = name, value, False
        self.__doc__ = (
            f"JAX's flag `{name}`, kept without effect here.\n\n"
            "new_val: its value within the block; True unless given where it is a switch. The "
            "first change\nsays that nothing depends on it, as a warning of the logger `numjet`. "
            f"Raises ValueError for a\nvalue that it does not take.\n\n"
            f">>> import numjet as nj\n>>> print(nj.config.read({name!r}))\n{value}"
        )

    def __call__(self, new_val: Any = NOT_GIVEN) -> contextlib.AbstractContextManager[None]:
        """A context in which the flag is `new_val`; a switch without one is on."""
        if new_val is NOT_GIVEN:
            if not isinstance(DEFAULTS[self.name], bool):
                raise TypeError(
                    f"Context manager for {self.name} config option requires an argument "
                    "representing the new value for the config option."
                )
            new_val = True
        return self._within(new_val)

    @contextlib.contextmanager
    def _within(self, value: Any) -> Iterator[None]:
        before = self.value
        self.set(value)
        try:
            yield
        finally:
            self.value = before

    def set(self, value: Any) -> None:
        """Keep `value`. Raises ValueError for one that the flag does not take."""
        choices = CHOICES.get(self.name)
        if choices is not None and value not in choices:
            raise ValueError(
                f"{self.name}: new enum value must be None or in "
                f"{[c for c in choices if c is not None]}, got {value!r}."
            )
        quiet = self._said or self.name in _READ or self.name in UNSEEN
        if value != DEFAULTS[self.name] and not quiet:
            self._said = True
            import logging

            logging.getLogger("numjet").warning(
                "config flag %r = %r has no effect in numjet: programs run as if it had its "
                "default, %r.",
                self.name,
                value,
                DEFAULTS[self.name],
            )
        self.value = value


_flags: dict[str, SilentFlag] = {}
# Those that do have an effect.
_READ = frozenset(
    ["jax_export_calling_convention_version", "jax_remove_size_one_mesh_axis_from_type"]
)


def find(name: str) -> SilentFlag | None:
    """The flag `name` of JAX's that config.py does not have; None where JAX has none either."""
    if name not in DEFAULTS:
        return None
    if name not in _flags:
        _flags[name] = SilentFlag(name, DEFAULTS[name])
    return _flags[name]


def parse(name: str, raw: str, default: Any) -> Any:
    """The value that the text `raw` of a variable or an option means for flag `name`."""
    if isinstance(default, bool):
        lowered = raw.strip().lower()
        if lowered in ("1", "true", "yes", "y", "t", "on"):
            return True
        if lowered in ("0", "false", "no", "n", "f", "off", ""):
            return False
        raise ValueError(f"{name}={raw!r}: expected 1 or 0.")
    if isinstance(default, int | float):
        try:
            return type(default)(raw)
        except ValueError:
            raise ValueError(f"{name}={raw!r}: expected a number.") from None
    return raw


def define_with_absl(config: Any) -> None:
    """Make each flag of JAX an option of the command line that absl's `app.run` understands.

    Options given there are taken over when absl has read the command line. Raises
    ModuleNotFoundError without the package absl-py.
    """
    from absl import app, flags

    for name, default in DEFAULTS.items():
        if name in flags.FLAGS:
            continue
        define: Callable = {bool: flags.DEFINE_bool, int: flags.DEFINE_integer}.get(
            type(default), flags.DEFINE_string
        )
        plain = default is None or type(default) in (bool, int)
        define(name, default if plain else str(default), f"numjet: config flag {name}")
    app.call_after_init(lambda: take_from_absl(config))


def take_from_absl(config: Any) -> None:
    """Set every flag of JAX that was given on the command line."""
    from absl import flags

    for name, default in DEFAULTS.items():
        if name in flags.FLAGS and flags.FLAGS[name].present:
            value = flags.FLAGS[name].value
            config.update(name, parse(name, value, default) if isinstance(value, str) else value)


def parse_with_absl(config: Any) -> None:
    """Read JAX's flags from `sys.argv` now, and leave other options to those who know them."""
    from absl import flags

    define_with_absl(config)
    ours = [sys.argv[0] if sys.argv else ""]
    for option in sys.argv[1:]:
        if option == "--":
            break
        name = option.lstrip("-").partition("=")[0]
        if option.startswith("-") and (name in DEFAULTS or name.removeprefix("no") in DEFAULTS):
            ours.append(option)
    if not flags.FLAGS.is_parsed():
        flags.FLAGS(ours, known_only=True)
    take_from_absl(config)
