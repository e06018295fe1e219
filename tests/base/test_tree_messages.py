"""What a mistake with pytrees gets: the place in the tree, what was expected, what came."""
from __future__ import annotations

import functools
import operator
from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest
from tree_nodes import Box, Layer, Point

import numjet as nj
import numjet.numpy as jnp
import numjet.tree_util as tu
from numjet.base import tree
from numjet.base.tree import tree_flatten, tree_structure

Pair = namedtuple("Pair", "first second")


@pytest.mark.parametrize("first, second, text", [
    ({"a": [1, 2]}, {"a": [1, 2, 3]},
     r"tree_map: tree number 2 .* at \['a'\], expected a list of length 2, got a list of length 3"),
    ({"a": 1}, {"a": 1, "b": 2},
     r"at the root, expected a dict with keys \['a'\], got a dict with keys \['a', 'b'\]. "
     r"Dict key mismatch; expected keys: \['a'\]; present keys: \['a', 'b'\]. "
     r"\(Dict key mismatch; unexpected: 'b'.\)"),
    ({"a": 1, "c": 1}, {"a": 1, "b": 2}, r"\(Dict key mismatch; missing: 'c'; unexpected: 'b'.\)"),
    ([1, (2,)], [1, [2]], r"at \[1\], expected a tuple of length 1, got a list of length 1"),
    ([1, [2]], [1, 2], r"at \[1\], expected a list of length 1, got 2 of type int"),
    ([1, None], [1, 2], r"at \[1\], expected None, got 2 of type int.*is_leaf=lambda x: x is None"),
    ([1, [2]], [1, None], r"at \[1\], expected a list of length 1, got None.*is_leaf"),
    (Layer([1], 2), Layer((1,), 2), r"at .weight, expected a list of length 1, got a tuple"),
    (Box(1, "a"), Box(1, "b"),
     "expected a Box of 1 children with static data 'a', got a Box .*'b'"),
    (Point(1, 2), (1, 2), "expected a Point of 2 children, got a tuple of length 2"),
    (Point(1, 2), (1, 2), r"Expected named tuple, got \(1, 2\)."),
    (Pair(1, 2), Point(1, 2), r"Named tuple type mismatch: expected type: <class '.*Pair'>, tuple"),
    (Box(1, "a"), [1], r"Custom node type mismatch: expected type: <class '.*Box'>, value: \[1\]."),
    (Box(1, "a"), Box(1, "b"), "Mismatch custom node data: 'a' != 'b'."),
    ([1, 2, 3], [4], r"List arity mismatch: 1 != 3; list: \[4\]."),
    (OrderedDict(a=1, b=2), OrderedDict(b=1, a=2), "The order of the keys differs"),
    (defaultdict(list, a=1), defaultdict(int, a=1), "expected a defaultdict of <class 'list'>"),
])
def test_map_over_different_structures_names_the_place(first, second, text):
    for _ in range(4):
        with pytest.raises(ValueError, match=text):
            tree.tree_map(lambda a, b: a, first, second)


def test_the_number_of_leaves_is_checked():
    structure = tree_structure({"a": (1, 2)})
    for _ in range(5):
        with pytest.raises(ValueError, match=r"Too few leaves for PyTreeDef; expected 2, got 1"):
            structure.unflatten([1])
        with pytest.raises(ValueError, match="leaves for PyTreeDef; expected 2, got"):
            structure.unflatten(iter([1, 2, 3]))
    with pytest.raises(ValueError, match="Too many leaves for PyTreeDef; expected 0, got 1"):
        tree_structure([]).builder()([1])


def test_an_iterator_of_leaves_that_fails_is_seen():
    def failing():
        yield 1
        raise ValueError("from the iterator")

    with pytest.raises(ValueError) as caught:
        tree_structure((1, 2)).builder()(failing())
    assert "from the iterator" in str(caught.value.__context__)


def test_prefix_messages_name_the_argument_and_the_path():
    structure = tree_structure(({"a": 1, "b": [2, 3]}, 2))
    assert tree.flatten_axes("in_axes", structure, ({"a": None, "b": 0}, 1)) == [None, 0, 0, 1]
    with pytest.raises(ValueError, match=r"in_axes specification must be a tree "
                                         r"prefix .* at in_axes\[0\]\['b'\], expected a "
                                         r"list of length 2, got a tuple of length 2"):
        tree.flatten_axes("in_axes", structure, ({"a": None, "b": (0, 1)}, 1))
    with pytest.raises(ValueError, match="in_axes specification must be a tree "
                                         "prefix .* at in_axes, expected a "
                                         "tuple of length 2, got a tuple of length 1"):
        tree.flatten_axes("in_axes", structure, (0,))
    with pytest.raises(ValueError, match=r"prefix tree is not a prefix .* at \[1\], expected a "
                                         r"leaf, got a list of length 1"):
        tree.broadcast_prefix([1, [2]], [(3, 4), 5])
    assert tree.prefix_errors([1, (2,)], [1, [2]]) == [
        ((tu.SequenceKey(1),), "expected a tuple of length 1, got a list of length 1. "
         "(pytree structure error: different types.) Expected tuple, got [2].")]
    for tree_given, text in (([1, 2], "Expected dict, got 2."), ((1, {"a": 2}), "Expected list")):
        with pytest.raises(ValueError, match=text):
            tree_structure([1, {"a": 2}]).flatten_up_to(tree_given)


def test_equality_errors_and_their_text():
    one, two = {"a": [1], "b": (1, 2), "c": 3}, {"a": (1,), "b": (1,), "c": 4}
    assert [(tree.keystr(path), why) for path, _, _, why in tree.equality_errors(one, two)] == [
        ("['a']", "the types of the nodes differ"), ("['b']", "the numbers of children differ")]
    assert tree.difference_text("the carry", one, "the result", two) == (
        "At ['a'], the carry has a list of length 1 and the result has a tuple of length 1: the "
        "types of the nodes differ. At ['b'], the carry has a tuple of length 2 and the result has "
        "a tuple of length 1: the numbers of children differ.")


def test_other_messages():
    with pytest.raises(ValueError, match=r"must be.*comparable.*got \[1, 'a'\].*OrderedDict"):
        tree_flatten({1: 0, "a": 0})
    with pytest.raises(TypeError, match="no leaves; pass an initializer"):
        tree.tree_reduce(operator.add, [])
    with pytest.raises(TypeError, match="Must specify identity.*empty sequence"):
        tree.tree_reduce_associative(operator.add, [])
    with pytest.raises(TypeError, match="Mismatch .* tree_transpose expects a tree"):
        tree.tree_transpose(tree_structure([0, 0]), tree_structure((0, 0)), [(1, 2, 3), (4, 5, 6)])
    pair, pairs = tree_structure((0, 0)), tree_structure([0, 0])
    turned = tree.tree_transpose(pair, pairs, {"a": [1, 2, 3, 4]})
    assert turned == [(1, 3), (2, 4)]
    assert tree.tree_transpose(tree_structure([]), tree_structure((0, 0)), []) == ([], [])
    with pytest.raises(ValueError, match="int is a leaf"):
        tu.flatten_one_level(3)
    assert hash(tree_structure(Box(1, {"k": 2}))) == hash(tree_structure(Box(5, {"k": 2})))
    with pytest.raises(RecursionError):
        cyclic: list = []
        cyclic.append(cyclic)
        tree_flatten(cyclic)


def test_an_error_of_a_registered_function_comes_through():
    class Broken:
        fails = False

    def flatten(node):
        if node.fails:
            raise KeyError("from flatten")
        return (1,), None

    tu.register_pytree_node(Broken, flatten, lambda _, c: Broken())
    node = [Broken()]
    for _ in range(5):
        tree_flatten(node)
    node[0].fails = True
    with pytest.raises(KeyError, match="from flatten"):
        tree_flatten(node)


@pytest.mark.parametrize("parts, text", [
    ("whole", r"return a \(children, aux_data\) tuple, got 'whole'"),
    ((1, 2, 3), r"return a \(children, aux_data\) tuple, got \(1, 2, 3\)"),
    ((5, None), r"tuple where 'children' is iterable, got \(5, None\)"),
])
def test_what_a_registered_function_has_to_return(parts, text):
    class Odd:
        pass

    tu.register_pytree_node(Odd, lambda _: parts, lambda _, c: Odd())
    with pytest.raises(ValueError, match="The to_iterable function for a custom PyTree.*" + text):
        tree_flatten(Odd())


def test_static_data_that_do_not_compare_say_so():
    one, two = [tree_structure(Box(1, np.arange(3))) for _ in range(2)]
    with pytest.raises(ValueError, match="checking equality of metadata fields of pytree"):
        _ = one == two


def test_a_partial_equals_the_partial_application_it_was_made_of():
    inner = functools.partial(operator.add, 1)
    made = tu.Partial(inner, 2)
    assert made.func == inner and inner == made.func and hash(made.func) == hash(inner)
    assert made.func != functools.partial(operator.add, 1)


def test_what_stands_at_a_leaf_is_not_looked_into():
    odd = {"a": 1, (2, 3): 4}
    assert tree.tree_map(lambda a, b: (a, b), {"x": 1}, {"x": odd}) == {"x": (1, odd)}
    with pytest.raises(ValueError, match="comparable|Dict key mismatch"):
        tree.tree_map(lambda a, b: a, {"a": 1}, odd)


def test_leaves_of_a_class_that_takes_no_stand_ins_have_a_path() -> None:
    """A class may count arrays alone as its children, or check what it is made of."""

    class Arrays:
        def __init__(self, parts: list) -> None:
            self.parts = parts

    def made(data: None, children: tuple) -> Arrays:
        if not all(isinstance(c, nj.Array) for c in children):
            raise AttributeError("an array is wanted")
        return Arrays(list(children))

    nj.tree_util.register_pytree_node(Arrays, lambda a: (a.parts, None), made)
    given = {"w": Arrays([jnp.ones(3), jnp.float32(2)])}
    with pytest.raises(ValueError, match="requested to map") as error:
        nj.vmap(lambda t: 0)(given)
    assert "args[0]['w'][<flat index 1>]" in str(error.value)
