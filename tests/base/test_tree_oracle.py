"""Pytrees agree with `jax.tree_util` on random trees: structures, paths, maps, refusals."""
from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from oracle import run_in_oracle

import numjet.tree_util as tu

# Runs here with tu = numjet.tree_util and there with tu = jax.tree_util.
CASES = """
import collections, dataclasses, functools, json, operator
Point = collections.namedtuple("Point", ["x", "y"])
class Box:
    def __init__(self, value, label):
        self.value, self.label = value, label
    def tree_flatten(self):
        return (self.value,), self.label
    @classmethod
    def tree_unflatten(cls, label, children):
        return cls(*children, label)
    def __repr__(self):
        return f"Box({self.value!r}, {self.label!r})"
tu.register_pytree_node_class(Box)
@dataclasses.dataclass
class Layer:
    weight: object
    bias: object
    name: object = dataclasses.field(default="layer", metadata={"static": True})
tu.register_dataclass(Layer)
OrderedDict, defaultdict = collections.OrderedDict, collections.defaultdict

def show(x):
    # The text of a tree, which is not the same in every Python where it has an OrderedDict.
    if isinstance(x, dict):
        items = ", ".join([f"{key!r}: {show(value)}" for key, value in x.items()])
        return f"{type(x).__name__}({{{items}}})"
    if type(x) in (list, tuple, Point):
        return f"{type(x).__name__}({', '.join([show(child) for child in x])})"
    if type(x) is Box:
        return f"Box({show(x.value)}, {x.label!r})"
    if type(x) is Layer:
        return f"Layer({show(x.weight)}, {show(x.bias)}, {x.name!r})"
    return repr(x)

def outcome(f):
    try:
        return show(f())
    except Exception as error:
        return f"{type(error).__name__}"

def facts(node, other):
    structure = tu.tree_structure(node)
    fold = lambda a, b: f"({a}{b})"
    return [
        repr(structure), structure.num_leaves, structure.num_nodes,
        outcome(lambda: structure.node_data()), repr(structure.children()),
        show(tu.tree_leaves(node)), repr(structure == tu.tree_structure(other)),
        outcome(lambda: tu.tree_leaves_with_path(node)),
        outcome(lambda: [tu.keystr(p) for p, _ in tu.tree_leaves_with_path(node)]),
        outcome(lambda: [tu.keystr(p, simple=True, separator="/")
                         for p, _ in tu.tree_leaves_with_path(node)]),
        outcome(lambda: tu.tree_map(lambda x: (x, x), node)),
        outcome(lambda: tu.tree_map(lambda x, y: [x, y], node, other)),
        outcome(lambda: structure.flatten_up_to(other)),
        outcome(lambda: tu.tree_leaves(node, is_leaf=lambda x: x is None)),
        outcome(lambda: tu.tree_structure(node, is_leaf=lambda x: isinstance(x, list))),
        outcome(lambda: tu.tree_broadcast(node, other)),
        outcome(lambda: tu.tree_broadcast(node, tu.tree_map(lambda x: (x, [x]), node))),
        outcome(lambda: tu.tree_reduce(fold, node)),
        outcome(lambda: tu.tree_reduce(fold, node, "")), outcome(lambda: tu.tree_all(node)),
        outcome(lambda: structure.compose(tu.tree_structure(other))),
        # JAX refuses an outer structure without leaves; here it is no special case.
        structure.num_leaves and outcome(lambda: tu.tree_transpose(
            structure, tu.tree_structure(other), tu.tree_map(lambda _: other, node))),
        outcome(lambda: tu.treedef_tuple([structure, tu.tree_structure(other)])),
        outcome(lambda: list(tu.flatten_one_level(node)[0])),
        outcome(lambda: tu.all_leaves([node, other])),
    ]

nodes = [eval(text) for text in json.loads(str(cases))]
answers = [facts(node, nodes[(i * 7 + 1) % len(nodes)]) for i, node in enumerate(nodes)]
answers += [facts(node, node) for node in nodes]
"""


def random_tree(rng: np.random.Generator, depth: int) -> str:
    """An expression that makes a tree, in the names that CASES defines."""
    def below() -> str:
        return random_tree(rng, depth - 1)

    kind = rng.integers(0, 12) if depth else 11
    children = [below() for _ in range(rng.integers(0, 4))] if depth else []
    joined = ", ".join(children)
    letters, digits = rng.permutation(list("abcd")), rng.permutation(5)
    items = ", ".join([f"'{key}': {child}" for key, child in zip(letters, children, strict=False)])
    if kind < 2:
        return f"[{joined}]"
    if kind < 4:
        return f"({joined}{',' if len(children) == 1 else ''})"
    if kind < 6:
        return f"{{{items}}}"
    if kind == 6:
        return f"OrderedDict({{{items}}})"
    if kind == 7:
        return f"Point({below()}, {below()})"
    if kind == 8:
        return f"Box({below()}, {rng.integers(3)})"
    if kind == 9:
        return f"Layer({below()}, {below()}, ('n', {rng.integers(2)}))"
    if kind == 10:
        pairs = zip(digits, children, strict=False)
        return "defaultdict(int, {" + ", ".join([f"{key}: {child}" for key, child in pairs]) + "})"
    return "None" if rng.integers(5) == 0 else str(rng.integers(100))


@pytest.mark.oracle
def test_agrees_with_jax_on_random_trees():
    rng = np.random.default_rng(0)
    texts = [random_tree(rng, 3) for _ in range(250)]
    texts += ["None", "()", "[]", "{}", "1", "{2: 1, 1: 2}", "[None]", "(None, [])"]
    script = "import jax.tree_util as tu\n" + CASES + "\nout['answers'] = json.dumps(answers)"
    theirs = json.loads(str(run_in_oracle(script, cases=json.dumps(texts))["answers"]))
    scope: dict[str, Any] = {"tu": tu, "cases": json.dumps(texts), "__name__": "__main__"}
    exec(CASES, scope)
    ours = scope["answers"]
    different = [
        f"{texts[i % len(texts)]}, fact {fact}: {a} here, {b} in JAX"
        for i, (mine, other) in enumerate(zip(ours, theirs, strict=True))
        for fact, (a, b) in enumerate(zip(mine, other, strict=True)) if a != b]
    assert not different, "\n".join(different[:20])
