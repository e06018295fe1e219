"""`jax.experimental.colocated_python`, in one process of several devices."""

from __future__ import annotations

from python_process import run

PROGRAM = """
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import colocated_python as colocated
from jax.sharding import NamedSharding, PartitionSpec as P

devices = jax.devices()
mesh = jax.make_mesh((4,), ("x",))
assert colocated.colocated_cpu_devices(mesh) == mesh
assert colocated.colocated_cpu_devices(tuple(devices[:2])) == devices[:2]

@colocated.colocated_python
def add(x, k=1):
    "adds"
    return jax.tree.map(lambda leaf: leaf + k, x)

assert (add.__name__, add.__doc__) == ("add", "adds")
x = jax.device_put(np.float32(1), devices[0])
y = jax.device_put(np.float32(1), devices[1])
over = jax.device_put(np.arange(4.0), NamedSharding(mesh, P("x")))
assert add(x) == 2 and add({"a": [x]}, k=x) == {"a": [2]}
assert add(over).sharding == over.sharding and add(over).tolist() == [1, 2, 3, 4]
with pytest.raises(AttributeError, match="no attribute 'sharding'"):
    add(np.float32(1))
with pytest.raises(AttributeError, match="no attribute 'dtype'"):
    add(x, 3)
with pytest.raises(AttributeError, match="sharding"):
    jax.jit(lambda x: add(x))(x)
with pytest.raises(ValueError, match="All arguments must use the same device list"):
    add([x, y])
assert add.specialize(devices=devices[:2])([x, y]) == [2, 2]
with pytest.raises(ValueError, match="only supports jax.Array as input and output"):
    colocated.colocated_python(lambda x: np.asarray(x))(x)

@colocated.colocated_python
def zeros():
    return jnp.zeros(2)

with pytest.raises(ValueError, match="must be first specialized with devices"):
    zeros()
placed = zeros.specialize(devices=devices[:1])
assert placed().tolist() == [0, 0]
with pytest.raises(ValueError, match="devices already specified"):
    placed.specialize(devices=devices[:1])
specs = ((jax.ShapeDtypeStruct((), np.float32, sharding=x.sharding),), {})
told = add.specialize(in_specs=specs, out_specs_fn=lambda x: x)
assert told(x) == 2
with pytest.raises(ValueError, match="out_specs_fn already specified"):
    told.specialize(out_specs_fn=lambda x: x)

events = []

@colocated.colocated_python_class
class Counter:
    "counts"

    def __init__(self, start):
        events.append("made")
        self.count = start

    def __del__(self):
        events.append("gone")

    def add(self, x):
        self.count = self.count + np.asarray(x)
        return jax.device_put(self.count, x.sharding)

    def fetch(self):
        return jnp.asarray(self.count)

assert (Counter.__name__, Counter.__doc__) == ("Counter", "counts")
counter = Counter(np.float32(5))
del counter
assert events == []
counter, other = Counter(np.float32(5)), Counter(np.float32(0))
assert events == [] and not hasattr(counter, "count")
assert [counter.add(x), counter.add(x), other.add(x)] == [6, 7, 1]
assert events == ["made", "made"]
with pytest.raises(ValueError, match="must be first specialized"):
    counter.fetch()
counter.fetch = counter.fetch.specialize(devices=devices[:1])
assert counter.fetch() == 7
with pytest.raises(TypeError):
    counter.add(x, x)
del counter
assert events[2:] == ["gone"]
print("done")
"""


def test_functions_and_objects_beside_arrays():
    done = run("-c", "import numjet.as_jax\n" + PROGRAM, NUMJET_NUM_CPU_DEVICES="4")
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stderr
