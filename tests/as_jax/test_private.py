"""The table of JAX's private names: every row leads somewhere, is sorted, and names its library."""
from __future__ import annotations

import ast

import pytest
from oracle import run_in_oracle
from python_process import run

ROWS = """
import numjet.as_jax
import inspect, numpy as np
from numjet.as_jax import private, stand_ins
from numjet.as_jax.finder import resolve
from numjet.base.tree_registry import KINDS

rows = [row[:2] for row in private.TABLE]
assert rows == sorted(set(rows)), "the table is sorted and says nothing twice"
for module, name, place, libraries in private.TABLE:
    assert module.startswith(private.ROOTS) and libraries, (module, name)
    found = resolve(place) if name else resolve(module)
    scope = {}
    exec(f"import {module}", scope)
    if name:
        exec(f"from {module} import {name} as x", scope)
        assert scope["x"] is found, (module, name)
assert private.known("jax._src") and private.known("jax._src.state")
assert not private.known("jax._src.zork")
assert dict in stand_ins.registry and int not in stand_ins.registry
entry = stand_ins.registry[dict]
assert list(entry.to_iter({"b": 1, "a": 2})[0]) == [2, 1] and entry._fields[1] == "from_iter"
assert entry.from_iter(("a", "b"), (2, 1)) == {"b": 1, "a": 2}
assert len(stand_ins.registry) == len(KINDS) == len(list(stand_ins.registry))
assert issubclass(stand_ins.TypedNdArray, np.ndarray)
assert stand_ins.trace_state_clean() and jax.jit(stand_ins.trace_state_clean)() == False
assert dict(stand_ins.backends) == {}
import os; os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=3"
assert jax.device_count() == 3 and list(stand_ins.backends) == ["cpu"]
assert not stand_ins.is_cuda_compute_capability_at_least("7.5")
print("all", len(rows))
""".replace("import inspect", "import inspect, jax")


def test_every_row_leads_somewhere():
    done = run("-c", ROWS)
    assert done.stdout.startswith("all "), done.stderr


def test_excluded_files_are_not_the_users_line(tmp_path):
    (tmp_path / "library.py").write_text(
        "import jax._src.traceback_util as t\nt.register_exclusion(__file__)\n"
        "def leak(xs, x):\n    xs.append(x + 1)\n")
    script = tmp_path / "program.py"
    script.write_text("import jax, library\nxs = []\n"
                      "jax.jit(lambda x: library.leak(xs, x))(1.0)\nprint(xs[0] + 1)\n")
    told = run("-m", "numjet.as_jax", str(script)).stderr
    assert "UnexpectedTracerError" in told and "program.py:3" in told.splitlines()[-1], told


PROMOTED = """
import jax, jax.numpy as jnp, numpy as np
from jax._src.interpreters.batching import is_vmappable
from jax._src.numpy.util import promote_args_inexact
from jax.experimental.ode import promote_dtypes_inexact

def told(f, *xs):
    try:
        return [(x.dtype.name, x.shape, x.weak_type, np.asarray(x).tolist()) for x in f(*xs)]
    except Exception as error:
        return type(error).__name__

cases = [(1, 2), (1, np.int8(2)), (np.float16(1), 2), (np.ones(3), np.ones((2, 3), "int32"), True),
         (np.ones(3), 2.0), (1j, 2), ([1], 2), (None,)]
found = [told(lambda *xs: promote_args_inexact("f", *xs), *case) for case in cases]
found += [told(promote_dtypes_inexact, *case) for case in cases[:4]]
jax.config.update("jax_numpy_rank_promotion", "raise")
found += [told(lambda *xs: promote_args_inexact("f", *xs), *cases[3])]
found += [[is_vmappable(x) for x in (jnp.ones(3), 1, None, [1])]]
"""


@pytest.mark.oracle
def test_promotion_of_arguments_agrees_with_jax():
    ours = run("-m", "numjet.as_jax", "-c", PROMOTED + "print(repr(found))")
    theirs = run_in_oracle(PROMOTED + 'out["told"] = np.array(repr(found))')["told"]
    assert ours.stdout.strip() == str(theirs), ours.stderr


@pytest.mark.oracle
def test_infer_argnums_and_argnames_agrees_with_jax():
    cases = ("s, None, None", "s, 0, None", "s, None, 'y'", "s, (0,), ('z',)", "s, (0, -1), None",
             "s, None, ('y', 'z')", "s, (1, 0), None", "s, None, ('w',)", "s, (0, 5), None")
    script = ("import inspect\ndef f(w, /, x, y=1, *, z=1): ...\ns = inspect.signature(f)\n"
              f"told = [repr(infer(*args)) for args in ({', '.join(f'({c})' for c in cases)})]")
    name = "infer_argnums_and_argnames as infer"
    ours = run("-c", f"from numjet.as_jax.stand_ins import {name}\n{script}\nprint(told)").stdout
    theirs = run_in_oracle(f"from jax._src.api_util import {name}\n"
                           f"g = {{'infer': infer}}\nexec({script!r}, g)\n"
                           "out['told'] = np.array(g['told'])")["told"].tolist()
    assert ast.literal_eval(ours) == theirs


@pytest.mark.oracle
def test_arrays_that_jax_pickled_load_under_the_alias(tmp_path):
    script = """
import pickle
tree = {"a": jnp.arange(3), "b": (jnp.asarray(1.5), jnp.ones(2, jnp.bfloat16)), "c": jnp.float32(2)}
out["bytes"] = np.frombuffer(pickle.dumps(tree), np.uint8)
"""
    data = run_in_oracle(script)["bytes"].tobytes()
    (tmp_path / "tree.pickle").write_bytes(data)
    code = ("import numjet.as_jax, jax, pickle\n"
            f"tree = pickle.load(open({str(tmp_path / 'tree.pickle')!r}, 'rb'))\n"
            "assert all(isinstance(x, jax.Array) for x in jax.tree.leaves(tree))\n"
            "again = pickle.loads(pickle.dumps(tree))\n"
            "print([(x.tolist(), str(x.dtype), x.weak_type) for x in jax.tree.leaves(again)])\n"
            f"open({str(tmp_path / 'ours.pickle')!r}, 'wb').write(pickle.dumps(tree))")
    done = run("-c", code)
    expected = [([0, 1, 2], "int32", False), (1.5, "float32", True),
                ([1.0, 1.0], "bfloat16", False), (2.0, "float32", False)]
    assert done.stdout.strip() == str(expected), done.stderr
    plain = run("-c", "import pickle\n"
                f"tree = pickle.load(open({str(tmp_path / 'ours.pickle')!r}, 'rb'))\n"
                "print(tree['a'].tolist(), type(tree['a']).__module__)")
    assert plain.stdout.strip() == "[0, 1, 2] numjet.core.array", plain.stderr


OF_JAX = """
import collections, pickle
structure = {"a": 1, "b": (2, [3], None), "c": {}, "d": collections.OrderedDict(z=1, y=2),
             "e": collections.defaultdict(int, k=1)}
objects = {
    "structure": (jax.tree.structure(structure), jax.tree.structure(1)),
    "path": tuple(jax.tree_util.tree_flatten_with_path({"a": [1]})[0][0][0]),
    "entries": [jax.tree_util.GetAttrKey("x"), jax.tree_util.FlattenedIndexKey(3)],
    "aval": jax.typeof(jnp.ones((2, 3))),
    "struct": jax.ShapeDtypeStruct((2,), "float32"),
    "spec": jax.P("x", None),
    "mesh": jax.sharding.AbstractMesh((2,), ("x",), (jax.sharding.AxisType.Auto,)),
    "keys": jax.random.split(jax.random.key(3)),
    "numbers": [jax.lax.Precision.HIGH, jax.lax.GatherDimensionNumbers((0,), (1,), (2,)),
                jax.lax.GatherScatterMode.CLIP,
                jax.lax.ConvDimensionNumbers((0, 1), (0, 1), (0, 1))],
}
"""


@pytest.mark.oracle
def test_other_values_that_jax_pickled_load_under_the_alias(tmp_path):
    data = run_in_oracle(
        OF_JAX + 'out["bytes"] = np.frombuffer(pickle.dumps(objects), np.uint8)')["bytes"]
    (tmp_path / "of_jax.pickle").write_bytes(data.tobytes())
    done = run("-c", "import numjet.as_jax, jax, jax.numpy as jnp\n" + OF_JAX +
               f"found = pickle.load(open({str(tmp_path / 'of_jax.pickle')!r}, 'rb'))\n"
               """
again = pickle.loads(pickle.dumps(found))
for read in (found, again):
    words = [jax.random.key_data(d.pop("keys")).tolist() for d in (read, dict(objects))]
    assert words[0] == words[1]
    for name, value in read.items():
        assert value == objects[name] and type(value) is type(objects[name]), (name, value)
        assert repr(value) == repr(objects[name]), (name, value)
    built = jax.tree.unflatten(read["structure"][0], range(6))
    assert jax.tree.leaves(built) == list(range(6)) and type(built["d"]).__name__ == "OrderedDict"
    assert hash(read["structure"][0]) == hash(objects["structure"][0])
    assert {type(k) for k in read["path"]} == {type(k) for k in objects["path"]}
print("done")
""")
    assert done.stdout == "done\n", done.stderr


STAND_INS = """
import numjet.as_jax
import pickle, jax, jax.numpy as jnp, numpy as np
from jax._src.literals import TypedComplex, TypedFloat, TypedInt
from jax._src.public_test_util import check_close
from jax._src.random import threefry2x32 as fry

for kind, value, dtype in ((TypedInt, 5, "int8"), (TypedFloat, 0.5, "float32"),
                           (TypedComplex, 1j, "complex64")):
    typed = pickle.loads(pickle.dumps(kind(value, np.dtype(dtype))))
    assert typed == value and typed.dtype == dtype and type(typed) is kind
words = fry.threefry_seed(jnp.asarray(3))
key = jax.random.key(3)
assert (words == jax.random.key_data(key)).all()
assert (fry.threefry_split(words, (2,)) == jax.random.key_data(jax.random.split(key))).all()
for width in (8, 16, 32):
    drawn = jax.random.bits(key, (5,), f"uint{width}")
    assert (fry.threefry_random_bits(words, width, (5,)) == drawn).all()

def alike(x, y, **tolerances):
    try:
        check_close(x, y, **tolerances)
    except AssertionError:
        return False
    return True

one = np.ones(2, np.float32)
assert alike({"a": one}, {"a": one * np.float32(1.000001)})
assert not alike(one, one * np.float32(1.00001)) and alike(one, one * 1.1, atol=0.2)
assert alike(jnp.ones(2, "bfloat16"), jnp.ones(2) * 1.005)
assert not alike(jnp.ones(2, "bfloat16"), jnp.ones(2) * 1.05)
assert alike(one, one * np.float32(1.1), atol={"float32": 0.2, np.float64: 0})
assert not alike(one, one * np.float32(1.1), atol={"bfloat16": 0.2})
from jax._src.dtypes import to_complex_dtype
assert to_complex_dtype(np.float32) == to_complex_dtype("bfloat16") == np.complex64
assert alike(1, 1.0) and not alike(1, 2) and not alike(np.ones(2), np.ones(3))

from jax._src import util, xla_bridge

def refused(f, *args, error=ValueError):
    try:
        f(*args)
    except error:
        return True
    return False

assert util.safe_map(lambda *x: x, (1, 2), iter([3, 4])) == util.safe_zip([1, 2], (3, 4))
assert util.safe_zip([1, 2], [3, 4]) == [(1, 3), (2, 4)]
assert refused(util.safe_zip, [1], [1, 2]) and refused(util.safe_zip, error=TypeError)
assert refused(util.safe_map, len, error=TypeError) and refused(util.safe_map, len, [1], [1, 2])
assert util.unzip2([]) == ((), ()) and util.unzip2([(1, 2), (3, 4)]) == ((1, 3), (2, 4))
assert util.unzip3([(1, 2, 3)]) == ((1,), (2,), (3,)) and refused(util.unzip2, [(1, 2, 3)])
assert util.split_list((1, 2, 3, 4), [1, 2]) == [[1], [2, 3], [4]]
which, values = [True, False, True], [1, 2, 3]
assert util.partition_list(which, values) == ([2], [1, 3])
assert util.merge_lists(which, [2], [1, 3]) == values
assert refused(util.merge_lists, which, [2], [1]) and refused(util.merge_lists, which, [2], values)
assert refused(util.partition_list, [True], values)
jax.devices()
assert xla_bridge.backends_are_initialized() is True

import opt_einsum
from jax._src.ad_checkpoint import saved_residuals
from jax._src.numpy.einsum import _default_poly_einsum_handler, _einsum
from jax._src.numpy.util import promote_dtypes_complex
from jax.experimental.array_serialization import serialization
from jax.experimental.pallas.ops.tpu.megablox import gmm
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask
from jax.experimental import pallas

assert pallas.dot(np.ones((2, 3)), np.ones((3, 2))).shape == (2, 2) and pallas.pallas_call
found = promote_dtypes_complex(1, np.float32(2), jnp.ones(2, "bfloat16"))
assert [x.dtype for x in found] == [np.complex64] * 3 and not found[0].weak_type
assert promote_dtypes_complex(1.0)[0].weak_type
a, b, c = [np.arange(1.0, 1 + n * m, dtype=np.float32).reshape(n, m)
           for n, m in ((2, 3), (3, 4), (4, 2))]
assert _default_poly_einsum_handler is opt_einsum.contract_path
operands, steps = opt_einsum.contract_path("ij,jk,kl->il", a, b, c, einsum_call=True)
steps = [(positions, frozenset(gone), text) for positions, gone, text, *_ in steps]
calls = []
def product(*args, **kwargs):
    calls.append(1)
    return jax.lax.dot_general(*args, **kwargs)
np.testing.assert_allclose(_einsum(operands, steps, None, None, product), a @ b @ c, rtol=1e-6)
assert len(calls) == 2
sizes = jnp.array([1, 1])
rhs = np.stack([b, 2 * b])
np.testing.assert_allclose(gmm(a, rhs, sizes), np.stack([a[0] @ b, 2 * a[1] @ b]), rtol=1e-6)
turned = gmm(a.astype(np.float16), rhs.swapaxes(1, 2), sizes, np.float16, transpose_rhs=True)
assert turned.dtype == np.float16 and turned[1, 0] == gmm(a, rhs, sizes)[1, 0]
assert refused(lambda: gmm(a, rhs, sizes, existing_out=a), error=NotImplementedError)
assert refused(splash_attention_mask.CausalMask, (8, 8), error=NotImplementedError)
assert issubclass(serialization.GlobalAsyncCheckpointManager,
                  serialization.GlobalAsyncCheckpointManagerBase)
assert serialization.get_tensorstore_spec("a")["kvstore"] == {"driver": "file", "path": "a"}
(kept, told), = saved_residuals(lambda x: jnp.sin(x), jnp.ones(2))
assert kept.shape == (2,) and told.startswith("output of cos from")
print("done")
"""


def test_stand_ins_do_what_their_names_say():
    done = run("-c", STAND_INS)
    assert done.stdout == "done\n", done.stderr


SHARDINGS = """
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from jax._src.sharding_impls import canonicalize_sharding as canonical

def told(sharding):
    try:
        found = canonical(sharding, "asker")
    except (TypeError, ValueError) as error:
        return type(error).__name__
    return f"{found and (found.mesh.axis_names, found.mesh._any_axis_explicit, found.spec)}"

answers = [told(None), told(P("x")), told(jax.typeof(jax.numpy.ones(2)).sharding)]
for kind in (AxisType.Explicit, AxisType.Auto):
    mesh = jax.make_mesh((1,), ("x",), axis_types=(kind,))
    other = jax.make_mesh((1,), ("y",), axis_types=(AxisType.Explicit,))
    answers.append(told(NamedSharding(mesh, P(None))))
    with jax.set_mesh(mesh):
        asked = (P("x"), P(("x",)), P(), NamedSharding(mesh, P("x")), NamedSharding(other, P("y")),
                 jax.sharding.SingleDeviceSharding(jax.devices()[0]))
        answers += [told(s) for s in asked]
"""


@pytest.mark.oracle
def test_canonicalize_sharding_agrees_with_jax():
    ours = run("-c", f"import numjet.as_jax, jax\n{SHARDINGS}\nprint(answers)")
    theirs = run_in_oracle(f"import jax\n{SHARDINGS}\nout['told'] = np.array(answers)")
    assert ast.literal_eval(ours.stdout) == theirs["told"].tolist(), ours.stderr


AXES = """
import numjet.as_jax
import numpy as np
from jax._src.api_util import _ensure_index_tuple
from jax._src.util import canonicalize_axis

assert canonicalize_axis(-1, 3) == 2
assert _ensure_index_tuple(np.int32(1)) == (1,) and _ensure_index_tuple([1, 2]) == (1, 2)
try:
    canonicalize_axis(3, 3)
except ValueError:
    print("all")
"""


def test_axes_are_counted_from_the_front():
    done = run("-c", AXES)
    assert done.stdout == "all\n", done.stderr


SEARCH = """
import numjet.as_jax
import jax, jax.numpy as jnp
from jax._src import array
from jax.experimental.sparse.linalg import _check_inputs, _eigh_ascending, _mm
a = jnp.array([[3.0, 1.0], [1.0, 2.0]])
values, vectors = _eigh_ascending(a)
assert values[0] > values[1] and jnp.allclose(_mm(a, vectors), vectors * values, atol=1e-5)
assert _check_inputs(lambda v: 3 * v, jnp.ones((6, 1))) is None
for a, x in ((jnp.negative, jnp.ones((5, 1))), (lambda v: v > 0, jnp.ones((9, 1))),
             (lambda v: v[1:], jnp.ones((9, 1)))):
    try:
        _check_inputs(a, x)
    except ValueError as error:
        assert "search dim" in str(error)
    else:
        raise AssertionError
assert type(jnp.ones(1)) is array.ArrayImpl
print("searched")
"""


def test_private_functions_of_searches_for_eigenvectors():
    """laplax takes them for a search that keeps its matrix on the side."""
    done = run("-c", SEARCH)
    assert done.stdout == "searched\n", done.stderr


VECTORIZED = """
import jax, jax.numpy as jnp
from jax._src import config
from jax._src.numpy.index_tricks import CClass, RClass
from jax._src.numpy import vectorize as v

assert config.numpy_rank_promotion.value == "allow"

said = []
say = lambda *x: said.append(" ".join(map(str, x)))

class Joined(RClass):
    def __getitem__(self, key):
        return super().__getitem__(key) * 2

say(Joined()[1:3, 0].tolist(), CClass()[jnp.arange(2), jnp.ones(2, int)].tolist())
whole = lambda a, b, c=1, d=2: (a, b, c, d)
f, args, named = v._apply_excluded(whole, {1, "d"}, (3, 4), {"c": 5, "d": 6})
say(args, named, f(30, c=50))
say(v._parse_gufunc_signature("(n,m),(m)->(n),()"))
arrays = jnp.ones((5, 1, 2, 3)), jnp.ones((4, 3))
say(v._parse_input_dimensions(arrays, [("n", "m"), ("m",)], ""))
for f in (lambda: v._parse_input_dimensions((jnp.ones(3),), [("n",), ()], ""),
          lambda: v._parse_input_dimensions((jnp.ones(3), jnp.ones(2)), [("n",), ("n",)], ""),
          lambda: v._parse_gufunc_signature("(n->()"),
          lambda: v._check_output_dims(lambda x: x, {"n": 3}, [("n",)], "")(jnp.ones(2)),
          lambda: v._check_output_dims(lambda x: x, {}, [("n",), ()], "")(jnp.ones(2))):
    try:
        say(f())
    except Exception as error:
        say(type(error).__name__)
say(v._check_output_dims(lambda x: x, {"n": 3}, [("n",)], "")(jnp.ones(3)).shape)
out["said"] = np.array(said)
"""


def test_parts_of_vectorize_and_of_index_tricks():
    begin, end = "import numjet.as_jax, numpy as np\nout = {}\n", "print(*said, sep='\\n')\n"
    ours = run("-c", begin + VECTORIZED + end)
    assert ours.stdout.splitlines() == run_in_oracle(VECTORIZED)["said"].tolist(), ours.stderr
