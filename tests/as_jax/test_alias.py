"""`import numjet.as_jax`: JAX's names, what does not show, metadata, flags. In processes of their
own, since a process has the alias or not."""
from __future__ import annotations

import json
import os
import textwrap

import numpy as np
import pytest
from oracle import run_in_oracle
from python_process import ROOT, run

from numjet import export


def report(script: str, **environment: str) -> dict:
    """What `script` puts into the dictionary `out`, under the alias."""
    text = "out = {}\n" + textwrap.dedent(script) + "\nimport json; print('@' + json.dumps(out))"
    done = run("-c", text, **environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(next(line for line in done.stdout.splitlines() if line[:1] == "@")[1:])
    return found | {"stderr": done.stderr}


@pytest.fixture(scope="module")
def seen() -> dict:
    return report("""
        import numjet.as_jax
        import importlib.metadata, sys, types
        import numjet, jax, jaxlib, jax.numpy as jnp
        from jax import lax, random
        from jax.experimental import mesh_utils
        from jax.scipy.special import erf
        import jax.scipy.stats.norm

        def error(f):
            try:
                f()
            except Exception as e:
                return f"{type(e).__name__}: {e}"

        out["names"] = [m.__name__ for m in (jax, jnp, lax, random, mesh_utils, jax.nn, jax.tree)]
        out["module types"] = all(isinstance(m, types.ModuleType) for m in (jax, jnp, jax.core))
        out["same"] = (jnp.sin is numjet.numpy.sin, jax.jit is numjet.jit,
                       jax.Array is numjet.Array,
                       jax.scipy.stats.norm.pdf is numjet.scipy.stats.norm.pdf,
                       jax.config is numjet.config)
        out["versions"] = [jax.__version__, jaxlib.__version__, list(jax.__version_info__),
                           importlib.metadata.version("jax"), importlib.metadata.version("jaxlib"),
                           jax.version.__version__]
        out["value"] = jax.jit(jax.grad(lambda x: jnp.sin(x).sum()))(jnp.zeros(2)).tolist()
        out["core"] = [jax.core.Tracer is numjet.core.trace.Tracer, hasattr(jax.core, "primitive"),
                       jax.core.__name__]
        out["shown"] = [repr(jax.dtypes.prng_key), repr(jax.dtypes.extended)]
        out["hidden"] = [name for name in ("base", "api", "cpu", "transforms", "as_jax", "native")
                         if hasattr(jax, name) or name in dir(jax)]
        out["dir"] = [name in dir(jax) for name in ("numpy", "jit", "vmap", "core", "Array")]
        scope = {}
        exec("from jax.numpy import *", scope)
        from jax.experimental import jet, multihost_utils, ode, sparse
        from jax.experimental.sparse.bcoo import bcoo_dot_general
        out["beside"] = [jet.lax is lax, ode.jnp is jnp, ode.lu.__name__, ode.safe_zip([1], [2]),
                         multihost_utils.core is jax.core, sparse.random.__name__,
                         sparse.bcoo.bcoo_slice is sparse.bcoo_slice,
                         bcoo_dot_general is sparse.bcoo_dot_general, "lax" in dir(jet),
                         hasattr(ode, "np"), callable(sparse.linalg.spsolve)]
        out["star"] = ["sin" in scope, "_np" in scope, scope["sin"] is jnp.sin]
        out["unknown"] = [error(lambda: jax.zork), error(lambda: jax._src.core.zork),
                          error(lambda: __import__("jax._src.zork")), error(lambda: jnp._zork),
                          error(lambda: __import__("jax.experimental.zork"))]
        out["again"] = error(numjet.as_jax.finder.activate)
    """)


def test_modules_show_what_jaxs_import(seen):
    assert seen["beside"] == [True, True, "jax.extend.linear_util", [[1, 2]], True,
                              "jax.experimental.sparse.random", True, True, True, False, True]


def test_modules_have_jaxs_names(seen):
    assert seen["names"] == ["jax", "jax.numpy", "jax.lax", "jax.random",
                             "jax.experimental.mesh_utils", "jax.nn", "jax.tree"]
    assert seen["module types"] and all(seen["same"]) and seen["value"] == [1.0, 1.0]
    assert all(seen["dir"]) and seen["star"] == [True, False, True]


def test_versions_are_jaxs(seen):
    assert seen["versions"] == ["0.10.2", "0.10.2", [0, 10, 2], "0.10.2", "0.10.2", "0.10.2"]


def test_internal_packages_do_not_show(seen):
    assert seen["hidden"] == [] and seen["core"] == [True, False, "jax.core"]


def test_classes_that_libraries_print_have_jaxs_modules(seen):
    assert seen["shown"] == ["<class 'jax.dtypes.prng_key'>", "<class 'jax.dtypes.extended'>"]


def test_classes_are_found_where_they_say_they_are():
    """As pickle looks for them."""
    out = report("""
        import importlib
        import pickle
        import numjet.as_jax
        from numjet.as_jax.namespaces import SHOWN
        for ours, rows in SHOWN.items():
            importlib.import_module(ours)
        import jax, jax.numpy as jnp
        for module in ("example_libraries.optimizers", "experimental.checkify", "export"):
            importlib.import_module("jax." + module)
        wrong = [
            (ours, name)
            for ours, rows in SHOWN.items() for module, names in rows for name in names.split()
            if name not in ("int1", "uint1") or hasattr(jnp, name)  # ml_dtypes has them since 0.6
            for kind in [getattr(importlib.import_module(module), name)]
            if kind is not getattr(importlib.import_module(ours), name) or kind.__module__ != module
        ]
        struct = jax.ShapeDtypeStruct((2,), jnp.float32)
        assert pickle.loads(pickle.dumps(struct)) == struct
        out = {"wrong": wrong, "shown": [repr(jnp.float32), repr(jax.errors.JAXTypeError)]}
    """)
    assert out["wrong"] == []
    assert out["shown"] == ["<class 'jax.numpy.float32'>", "<class 'jax.errors.JAXTypeError'>"]


KEYS = """
import pickle
from numjet.core import alike
from numjet.cpu.program import cache

def gathers(x, i):
    picked = x.at[i].get(mode="promise_in_bounds") + x.at[i].add(1.0, mode="drop")[:2]
    narrow = lax.gather(x, i[:, None], lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 3))
    return picked @ narrow.T, lax.dot(picked, narrow.T, precision=lax.Precision.HIGHEST)

x, i = jnp.ones((3, 3)), jnp.array([0, 2])
closed = jax.make_jaxpr(gathers)(x, i)
key = cache.key(closed, ())
doubled = jax.jit(lambda x: 2 * x)
known = [alike.form(f) is not None for f in (
    lambda c, x: (jnp.sin(c).astype(jnp.float32), jax.nn.relu(x)), lambda c, x: doubled(c))]
"""


def test_programs_and_functions_are_found_again_under_either_name():
    """What is kept on disk, and what a line makes anew."""
    take = "\nout = {'key': key, 'known': known}"
    ours = report("import numjet as jax\nfrom numjet import lax, numpy as jnp\n" + KEYS + take)
    theirs = report(
        "import numjet.as_jax, jax\nfrom jax import lax, numpy as jnp\n" + KEYS + take
    )
    assert ours["key"] is not None and ours == theirs and ours["known"] == [True, True]


EXPORTED = """
from numjet.base.class_names import home
from numjet.export import deserialize
exported = export.export(jax.jit(gathers))(x, i)
written = exported.serialize()
read = [np.asarray(y).tolist() for y in deserialize(written).call(x, i)]
out = {"blob": written.hex(), "read": read, "moved": home(lax.GatherScatterMode)}
"""


def test_exported_programs_are_read_under_either_name():
    ours = report(
        "import numpy as np, numjet as jax\nfrom numjet import export, lax, numpy as jnp\n"
        + KEYS + EXPORTED
    )  # fmt: skip
    theirs = report(
        "import numpy as np, numjet.as_jax, jax\nfrom jax import export, lax, numpy as jnp\n"
        + KEYS + EXPORTED
    )  # fmt: skip
    assert ours["moved"] is None and theirs["moved"].startswith("numjet.")
    assert ours["read"] == theirs["read"]
    found = export.deserialize(bytes.fromhex(theirs["blob"])).call(
        np.ones((3, 3), np.float32), np.array([0, 2], np.int32)
    )
    assert [np.asarray(y).tolist() for y in found] == ours["read"]


def test_functions_say_the_module_that_they_were_asked_of():
    """What `help` prints; and libraries that print values know a library's functions by it."""
    out = report("""
        import numjet.as_jax
        import functools, pickle, pydoc
        import jax, jax.numpy as jnp
        import jax.experimental.sparse, jax.export
        from jax import lax, random, scipy
        some = [jax.nn.selu, jnp.hypot, jnp.trace, jnp.fft.rfft, lax.fori_loop, random.cauchy,
                jax.jvp, scipy.special.ndtr, jax.tree_util.tree_reduce]
        out["modules"] = [f.__module__ for f in some]
        out["found"] = [pickle.loads(pickle.dumps(f)) is f for f in some]
        out["help"] = pydoc.render_doc(jnp.trace).splitlines()[0]
        out["sparse"] = "bcoo_reshape" in dir(jax.experimental.sparse)
        # A function of numjet's stays one of numjet's: a loop's body is not refused for it.
        total = lax.scan(lambda c, x: (jnp.hypot(c, x), c), 0.0, jnp.arange(3.0))[0]
        out["loop"] = [float(total), float(lax.cond(True, jnp.cosh, jnp.sinh, 0.0))]
        out["exported"] = len(jax.export.export(jnp.hypot)(1.0, 2.0).in_avals)
    """)
    assert out["modules"] == [
        "jax.nn", "jax.numpy", "jax.numpy", "jax.numpy.fft", "jax.lax", "jax.random", "jax",
        "jax.scipy.special", "jax.tree_util",
    ]  # fmt: skip
    assert all(out["found"]) and out["sparse"] and out["exported"] == 2
    assert out["help"].endswith("function trace in module jax.numpy")
    assert out["loop"] == [pytest.approx(5**0.5), 1.0]


def test_modules_are_pickled_by_name():
    """As globals of functions that are written down whole (cloudpickle)."""
    out = report("""
        import numjet.as_jax
        import copy, pickle
        import jax, jax.numpy as jnp
        from jax import lax
        back = pickle.loads(pickle.dumps({"np": jnp, "more": [lax, jax]}))
        out["same"] = [back["np"] is jnp, back["more"][0] is lax, back["more"][1] is jax,
                       copy.copy(jnp) is jnp]
    """)
    assert out["same"] == [True] * 4


def test_errors_name_what_stands_in_place_of_removed_names():
    out = report("""
        import numjet.as_jax
        import importlib, re, jax
        from numjet.as_jax.removed import NAMES
        out["there"] = []
        for module, names in NAMES.items():
            try:
                found = importlib.import_module(module)
            except ModuleNotFoundError:
                found = None
            for name, use in names.items():
                if hasattr(found, name):
                    out["there"].append(f"{module}.{name}")
                for path in re.findall(r"\\bjax(?:\\.\\w+)+", use):
                    parent, _, last = path.rpartition(".")
                    if not hasattr(importlib.import_module(parent), last):
                        importlib.import_module(path)
        said = []
        for code in ("jax.tree_leaves", "import jax.experimental.host_callback", "jax.gone",
                     "from jax.config import config", "import jax.gone"):
            try:
                exec(code)
            except (AttributeError, ModuleNotFoundError) as e:
                said.append(str(e))
        out["said"] = said
    """)
    assert out["there"] == []
    leaves, callback, gone, config, module = out["said"]
    assert leaves.endswith("JAX has it no more: use jax.tree.leaves")
    assert "use jax.pure_callback" in callback and "use jax.config, an object" in config
    assert "no more" not in gone + module and "docs/limits.md" in module


def test_deprecated_names_warn_whenever_they_are_read_and_stand_in_no_list():
    out = report("""
        import numjet.as_jax
        import importlib, warnings, jax
        from numjet.as_jax.namespaces import DEPRECATED_IN
        from numjet.as_jax.removed import DEPRECATED
        out["modules"] = sorted(DEPRECATED) == sorted(DEPRECATED_IN)
        out["silent"], out["listed"] = [], []
        for module, names in DEPRECATED.items():
            found = importlib.import_module(module)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                out["listed"] += set(names) & ({*dir(found)} | set(vars(found)))
            for name in names:
                for code in (f"import {module}; {module}.{name}", f"from {module} import {name}"):
                    with warnings.catch_warnings(record=True) as told:
                        warnings.simplefilter("always")
                        exec(compile(code, "user's", "exec"), {})
                    if [(w.category, w.filename) for w in told] != [(DeprecationWarning, "user's")]:
                        out["silent"].append(code)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            jax.core.gensym, jax.core.is_constant_shape, jax.core.Tracer, jax.extend.core.gensym
        out["texts"] = [str(w.message) for w in told]
    """)
    assert out["modules"] and out["silent"] == [] and out["listed"] == []
    assert out["texts"] == ["jax.core.gensym is deprecated. Use jax.extend.core.gensym.",
                            "jax.core.is_constant_shape is deprecated."]


def test_the_names_of_sparse_are_shown_with_jaxs_modules():
    out = report("""
        import numjet.as_jax, jax.experimental.sparse
        out = {"names": dir(jax.experimental.sparse)}
    """)
    assert {"BCOO", "BCSR", "COO", "CSC", "CSR", "bcoo_dot_general_p"} <= set(out["names"])


def test_arrays_tell_whose_they_are_by_the_module_of_their_class():
    seen = report("""
        import numjet.as_jax
        import pickle, jax, jax.numpy as jnp
        kinds = [jnp.ones(2), jnp.ones((300, 300)) + 1, jax.random.key(0)]
        jax.jit(lambda x: kinds.append(x))(1.0)
        jax.vmap(lambda x: kinds.append(x))(jnp.ones(2))
        jax.grad(lambda x: (kinds.append(x), x)[1])(1.0)
        jax.jvp(lambda x: (kinds.append(x), x)[1], (1.0,), (1.0,))
        out["modules"] = [type(x).__module__.partition(".")[0] for x in kinds]
        out["class"] = [str(type(kinds[0])), jax.Array.__module__]
        out["pickled"] = pickle.loads(pickle.dumps(type(kinds[0]))) is type(kinds[0])
    """)
    assert seen["modules"] == ["jaxlib"] * 3 + ["jax"] * 4
    assert seen["class"] == ["<class 'jaxlib._jax.ArrayImpl'>", "jax"] and seen["pickled"]


def test_unknown_names_say_what_to_do(seen):
    public, private, module, underscore, absent = seen["unknown"]
    where = "AttributeError: module 'jax"
    assert public == where + "' has no attribute 'zork' (numjet under JAX's name)"
    assert private.startswith(where + "._src.core' has no attribute 'zork': it is private to JAX, "
                              "and numjet has only the private names that")
    assert module.startswith("ModuleNotFoundError: No module named 'jax._src.zork': it is private")
    assert underscore.startswith("AttributeError") and "private to JAX" in underscore
    assert absent.startswith("ModuleNotFoundError: No module named 'jax.experimental.zork': numjet")
    assert seen["again"] is None


def test_the_real_jax_in_the_process_is_refused(tmp_path):
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax/__init__.py").write_text("__version_info__ = (0, 10, 2)\n")
    done = run("-c", "import jax, numjet.as_jax", PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert "RuntimeError: numjet.as_jax: the real JAX is imported already" in done.stderr


def test_flags_of_jax():
    seen = report("""
        import numjet.as_jax, sys
        import jax
        c = jax.config
        out["environment"] = [c.jax_enable_x64, c.x64_enabled, c.values["jax_enable_x64"],
                              jax.device_count(), c.jax_debug_nans, c.jax_default_matmul_precision]
        out["defaults"] = [c.jax_traceback_filtering, c.values["jax_platforms"],
                           len(c.values) > 120, c.read("jax_numpy_rank_promotion"),
                           c.jax_pgle_profiling_runs]
        c.update("jax_traceback_filtering", "tracebackhide")
        c.update("jax_pgle_profiling_runs", 4)
        c.update("jax_pgle_profiling_runs", 5)
        c.update("jax_platforms", "cpu")
        c.update("jax_persistent_cache_min_compile_time_secs", 0.25)
        c.update("jax_persistent_cache_min_entry_size_bytes", 9)
        out["thresholds"] = [c.jax_persistent_cache_min_compile_time_secs,
                             c.jax_persistent_cache_min_entry_size_bytes]
        out["kept"] = [c.jax_traceback_filtering, c.jax_platforms]
        c.update("jax_cpu_enable_async_dispatch", False)
        out["same"] = c.async_dispatch
        with jax.enable_x64(False):
            out["block"] = [c.jax_enable_x64, str(jax.numpy.ones(1).dtype)]
        try:
            c.update("jax_zork", 1)
        except AttributeError as e:
            out["unknown"] = str(e)
    """, JAX_ENABLE_X64="1", XLA_FLAGS="--xla_force_host_platform_device_count=8",
        JAX_DEBUG_NANS="True", NUMJET_DEBUG_NANS="0", JAX_DEFAULT_MATMUL_PRECISION="highest")
    assert seen["environment"] == [True, True, True, 8, False, "highest"]
    assert seen["defaults"] == ["auto", None, True, "allow", 3]
    assert seen["kept"] == ["tracebackhide", "cpu"] and seen["same"] is False
    assert seen["block"] == [False, "float32"]
    assert "Unrecognized config option: jax_zork" in seen["unknown"]
    # What JAX's disk cache takes changes no result: nothing is said of it.
    assert seen["thresholds"] == [0.25, 9]
    assert seen["stderr"].count("has no effect in numjet") == 1
    assert "config flag 'jax_pgle_profiling_runs' = 4 has no effect" in seen["stderr"]


def test_variables_about_the_memory_of_gpus():
    seen = report("""
        import numjet.as_jax
        import os, jax
        os.environ["XLA_PYTHON_CLIENT_ALLOCATOR"] = "platform"
        jax.devices()
        names = "gpu_preallocate", "gpu_memory_fraction", "gpu_allocator", "cuda_visible_devices"
        out["flags"] = [jax.config.read(name) for name in names]
    """, XLA_PYTHON_CLIENT_PREALLOCATE="true", XLA_PYTHON_CLIENT_MEM_FRACTION=".9",
        XLA_CLIENT_MEM_FRACTION=".5", JAX_CUDA_VISIBLE_DEVICES="1")
    assert seen["flags"] == [True, 0.5, "platform", "1"]


def test_variables_that_a_program_sets_before_it_imports_jax():
    seen = report("""
        import os
        import numjet.as_jax, numjet
        os.environ.update(JAX_ENABLE_X64="1", JAX_DEBUG_NANS="1", JAX_NUM_CPU_DEVICES="3",
                          JAX_DISABLE_JIT="1")
        numjet.config.update("debug_infs", False)
        import jax
        c = jax.config
        out["read"] = [str(jax.numpy.arange(2).dtype), c.jax_debug_nans, jax.device_count(),
                       c.jax_disable_jit]
        out["kept"] = c.jax_debug_infs
        c.update("jax_enable_x64", False)
        import jax.numpy
        out["after"] = c.jax_enable_x64
    """, JAX_DEBUG_INFS="1")
    assert seen["read"] == ["int64", True, 3, True]
    assert seen["kept"] is False and seen["after"] is False


def test_environment_variables_that_make_no_sense_are_refused():
    done = run("-c", "import numjet.as_jax", JAX_ENABLE_X64="perhaps")
    assert "ValueError: jax_enable_x64='perhaps': expected 1 or 0." in done.stderr


def test_modules_have_files_and_sources():
    seen = report("""
        import numjet.as_jax
        import inspect, jax, jax.numpy, jaxlib, jax._src.core
        out["files"] = [m.__file__ for m in (jax, jax.numpy, jaxlib, jax._src.core)]
        out["source"] = inspect.getsource(jax.numpy)
    """)
    assert all(os.path.exists(file) for file in seen["files"]), seen["files"]
    assert "import" in seen["source"]


# What modules under JAX's names have beside JAX's: names that libraries ask for, and our own.
BESIDE = {
    "jax": {"device_put_replicated", "device_put_sharded"},
    "jax.api_util": {"flatten_fun", "flatten_fun_nokwargs"},
    "jax.debug": {"eager", "explain_sharding", "log", "memos"},
    "jax.dlpack": {"to_dlpack"},
    "jax.errors": {"InternalError"},
    "jax.example_libraries.stax": {
        "elu", "gelu", "glorot_normal", "leaky_relu", "log_softmax", "normal", "ones", "relu",
        "selu", "sigmoid", "softmax", "softplus", "standardize", "zeros",
    },
    "jax.experimental.checkify": {"ErrorCategory"},
    "jax.experimental.shard_map": {"shard_map"},
    "jax.interpreters.mlir": {"AxisContext", "LoweringRule", "MeshAxisName"},
    "jax.interpreters.partial_eval": {"Val"},
    "jax.interpreters.xla": {"pytype_aval_mappings"},
    "jax.lax": {
        "ConvGeneralDilatedDimensionNumbers", "DotDimensionNumbers", "PrecisionLike",
        "random_gamma_grad_p", "select_and_scatter_add",
    },
    "jax.stages": {"CompilerOptions"},
    "jax.numpy.linalg": {
        "EigResult", "EighResult", "LinAlgError", "QRResult", "SVDResult", "SlogdetResult"
    },
    "jax.scipy.special": {"lpmn", "lpmn_values"},
    "jax.sharding": {"P", "PmapSharding", "use_mesh"},
    "jax.tree_util": {"KeyPath", "build_tree"},
}  # fmt: skip


def test_helpers_are_no_attributes_of_modules():
    seen = report("""
        import warnings, csv, importlib, types
        warnings.simplefilter("ignore")
        import numjet.as_jax, jax
        theirs = {}
        for row in csv.DictReader(open("CONTRACT")):
            theirs.setdefault(row["module"], set()).add(row["name"])
        for module, names in theirs.items():
            try:
                ours = importlib.import_module(module.replace("jax", "numjet", 1))
                alias = importlib.import_module(module)
            except ImportError:
                continue
            out[module] = [
                name for name in vars(ours)
                if name[0] != "_" and name not in names
                and not isinstance(getattr(alias, name, jax), types.ModuleType)
            ]
            lost = [name for name in names & {*vars(ours)} - {"annotations"}
                    if not isinstance(vars(ours)[name], types.ModuleType)
                    and not hasattr(alias, name)]
            assert not lost, (module, lost)
    """.replace("CONTRACT", str(ROOT / "tools/public_api.csv")))
    # These have what interpreters are written with.
    for module in ("stderr", "jax.extend.core", "jax.interpreters.ad", "jax.interpreters.batching"):
        del seen[module]
    assert len(seen) > 70
    assert {m: names for m, names in seen.items() if set(names) - BESIDE.get(m, set())} == {}


def test_grids_are_lists():
    done = run("-c", """
import numjet.as_jax
import inspect, jax, jax.numpy as jnp
import numjet.numpy
x = jnp.arange(2.0)
for fun, arguments in ((jnp.meshgrid, (x, x)), (jnp.broadcast_arrays, (1, x)), (jnp.meshgrid, ())):
    assert type(fun(*arguments)) is list and len(fun(*arguments)) == len(arguments)
    own = getattr(numjet.numpy, fun.__name__)
    assert inspect.signature(fun) == inspect.signature(own) and type(own(x)) is tuple
assert jax.tree.map(jnp.add, jnp.meshgrid(x), [x])[0].tolist() == [0, 2]
assert jnp.meshgrid(x, x[:1], indexing="ij", sparse=True)[0].shape == (2, 1)
print("done")
""")
    assert done.stdout == "done\n", done.stderr


def test_finfo_has_numpys_scalars():
    # Programs ask `finfo(...).max.astype(...)`, and a float32 limit makes a bfloat16 sum float32.
    done = run("-c", """
import numjet.as_jax
import jax, jax.numpy as jnp, numpy as np
for finfo in (jnp.finfo, jax.dtypes.finfo):
    for name in ("eps", "max", "min", "tiny", "smallest_normal", "resolution"):
        assert type(getattr(finfo(jnp.float32), name)) is np.float32
        assert type(getattr(finfo(jnp.ones(2, jnp.float16).dtype), name)) is np.float16
    assert finfo(jnp.float8_e4m3fn).max.astype(jnp.float32) == 448 and finfo("bfloat16").bits == 16
assert (jnp.ones(2, jnp.bfloat16) + jnp.finfo(jnp.float32).eps).dtype == jnp.float32
assert jnp.array(jnp.finfo(jnp.float32).eps).weak_type is False
print("done")
""")
    assert done.stdout == "done\n", done.stderr


def test_types_that_annotations_name():
    """They stand in no list of functions and classes, but libraries are imported with them."""
    seen = report("""
        import numjet.as_jax, jax, jax.extend
        out["missing"] = [name for name in (
            "core.Atom", "core.Effects", "core.Value", "extend.core.Effects", "extend.core.Var",
            "interpreters.partial_eval.Val",
            "lax.DotDimensionNumbers", "lax.PrecisionLike",
            "lax.ConvGeneralDilatedDimensionNumbers", "stages.CompilerOptions", "typing.ArrayLike",
        ) if not __import__("operator").attrgetter(name)(jax)]
    """)
    assert seen["missing"] == []


def test_dictionaries_of_modules_hold_the_public_names():
    """Libraries take functions from `vars(module)` to wrap them, as scico does with jax.numpy's."""
    code = ("import numjet.as_jax, importlib, types\n"
            "for name in ('jax', 'jax.numpy', 'jax.lax', 'jax.ops', 'jax.scipy.special'):\n"
            "    module = importlib.import_module(name)\n"
            "    for public in dir(module):\n"
            "        known = public in vars(module)\n"
            "        known |= isinstance(getattr(module, public), types.ModuleType)\n"
            "        assert known, (name, public)\n"
            "import jax.numpy as jnp\n"
            "assert vars(jnp)['abs'] is jnp.abs and jnp.__dict__ is vars(jnp)\n"
            "jnp.mine = 3\nassert vars(jnp)['mine'] == 3\nprint('done')")
    done = run("-W", "error", "-c", code)
    assert done.stdout == "done\n", done.stderr


def test_jax_numpy_tells_of_the_array_api():
    """Hypothesis' strategies for arrays ask for the version (xarray-jax' tests)."""
    code = ("import numjet.as_jax, jax.numpy as jnp, numjet.numpy\n"
            "assert jnp.__array_api_version__ == numjet.numpy.__array_api_version__\n"
            "assert jnp.zeros(2).__array_namespace__() is jnp and jnp.__name__ == 'jax.numpy'\n"
            "assert jnp.__array_namespace_info__().capabilities()['max dimensions']\n"
            "assert not any(name.startswith('_') for name in jnp.__all__)\n")
    done = run("-W", "error", "-c", code)
    assert done.returncode == 0, done.stderr


def test_modules_that_jax_does_not_have_do_not_show():
    seen = report("""
        import numjet.as_jax, importlib
        import jax, jax.numpy, jax.scipy.stats, jax.nn
        def there(name):
            try:
                importlib.import_module(name)
            except ModuleNotFoundError:
                return False
            return True
        names = ["jax.numpy.at", "jax.numpy.reductions", "jax.random.keys", "jax.nn.activations",
                 "jax.scipy.stats.samples", "jax.partition", "jax.checkpoints", "jax.numpy.fft",
                 "jax.nn.initializers", "jax.scipy.stats.norm"]
        out["there"] = [there(name) for name in names]
        out["dir"] = [n for n in ("at", "reductions", "fft") if n in dir(jax.numpy)]
    """)
    assert seen["there"] == [False] * 7 + [True] * 3
    assert seen["dir"] == ["fft"]


def test_names_that_are_refused_can_be_imported():
    said = report("""
        import numjet.as_jax
        import jax, jax.experimental, jax.numpy as jnp
        from jax.experimental import EArray, fused, primal_tangent_dtype, profiler, transfer
        from jax.extend import sharding
        from jax.interpreters import ad, batching, mlir

        assert jax.experimental.compilation_cache.compilation_cache.set_cache_dir
        said = []
        for call in (
            lambda: EArray(None, None), lambda: primal_tangent_dtype(jnp.int8, jnp.bfloat16),
            lambda: fused.fused(out_spaces=()), lambda: transfer.start_transfer_server(),
            lambda: transfer.make_error_array(None, "lost"), lambda: transfer.TransferServer(),
            lambda: profiler.get_profiled_instructions_proto("."),
            lambda: sharding.get_hlo_sharding_from_serialized_proto(b""),
            lambda: sharding.get_op_sharding_from_serialized_proto(b""),
            lambda: sharding.get_serialized_proto_from_hlo_sharding(None),
        ):
            try:
                call()
            except NotImplementedError as e:
                said.append(str(e))
        assert mlir.AxisContext and mlir.MeshAxisName
        assert not {"Primitive", "Rules", "as_array", "clear_caches"} & {*dir(ad), *dir(batching)}
        out["said"] = said
    """)["said"]
    assert len(said) == 10 and all(text.endswith(".") for text in said)


def test_aliases_have_names_of_their_own():
    """The functions of jax.numpy and jax.tree say the names that JAX's say."""
    code = """
        import jax, jax.numpy as jnp
        names = [[module.__name__ + "." + n, f.__name__, getattr(f, "__qualname__", "")]
                 for module in (jnp, jax.tree)
                 for n, f in sorted(vars(module).items()) if n[:1] != "_" and callable(f)
                 and not isinstance(f, type) and isinstance(getattr(f, "__name__", None), str)]
        out["names"] = NAMES
    """
    ours = report("import numjet.as_jax\n" + textwrap.dedent(code).replace("NAMES", "names"))
    theirs = run_in_oracle(textwrap.dedent(code).replace("NAMES", "np.array(names)"))
    known = dict((n, rest) for n, *rest in ours["names"])
    asked = [(n, rest) for n, *rest in theirs["names"].tolist() if n in known]
    assert len(asked) > 350
    assert [(n, known[n], rest) for n, rest in asked if known[n] != rest] == []


def test_parameters_have_jaxs_names():
    code = """
        import inspect
        from jax.experimental import colocated_python, custom_partitioning, sparse
        texts = [[(p.name, p.kind.name, p.default is p.empty)
                  for p in inspect.signature(f).parameters.values()]
                 for f in (custom_partitioning.SdyShardingRule, custom_partitioning.ArrayMapping,
                           colocated_python.colocated_cpu_devices,
                           sparse.bcoo_conv_general_dilated)]
        out["texts"] = TEXTS
    """
    ours = report("import numjet.as_jax\n" + textwrap.dedent(code).replace("TEXTS", "texts"))
    told = textwrap.dedent(code).replace("TEXTS", "np.array(list(map(str, texts)))")
    theirs = run_in_oracle(told)
    as_text = [str([tuple(p) for p in function]) for function in ours["texts"]]
    assert as_text == theirs["texts"].tolist()
