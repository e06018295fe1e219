"""Pytrees: laws over generated trees, every way of registering, the functions over trees."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import gc
import operator
import pickle
import weakref
from collections import OrderedDict, defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from tree_nodes import Box, Layer, Point

import numjet.tree
import numjet.tree_util as tu
from numjet.base import tree, treedef
from numjet.base.tree import PyTreeDef, tree_flatten, tree_structure, tree_unflatten

leaves_strategy = st.integers(-5, 5) | st.floats(allow_nan=False, width=32) | st.text(max_size=2)
names = st.text("abcde", min_size=1, max_size=2)


def containers(children):
    dicts = st.dictionaries(names, children, max_size=4)
    return (
        st.lists(children, max_size=4)
        | st.lists(children, max_size=4).map(tuple)
        | dicts
        | dicts.map(OrderedDict)
        | dicts.map(lambda d: defaultdict(list, d))
        | st.dictionaries(st.integers(0, 9), children, max_size=3)
        | st.tuples(children, children).map(lambda pair: Point(*pair))
        | st.tuples(children, st.sampled_from(["a", 1, 1.0, None, (1, 2.0)])).map(
            lambda pair: Box(*pair)
        )
        | st.tuples(children, children, st.sampled_from(["a", 1, True, 0.0, -0.0])).map(
            lambda fields: Layer(*fields)
        )
    )


trees = st.recursive(leaves_strategy | st.none(), containers, max_leaves=25)


def reference_leaves(node: Any) -> list:
    """An independent statement of what the leaves are."""
    if node is None:
        return []
    if isinstance(node, (list, tuple)):
        children = list(node)
    elif isinstance(node, OrderedDict):
        children = list(node.values())
    elif isinstance(node, dict):
        children = [node[key] for key in sorted(node)]
    elif isinstance(node, Box):
        children = [node.value]
    elif isinstance(node, Layer):
        children = [node.weight, node.bias]
    else:
        return [node]
    return [leaf for child in children for leaf in reference_leaves(child)]


def same(a: Any, b: Any) -> bool:
    """Equal in values, types and the order of dictionaries: 1 is not 1.0, and 0.0 is not -0.0."""
    return repr(a) == repr(b)


def sorted_dicts(node: Any) -> Any:
    """The tree as unflattening makes it: with its plain dictionaries in sorted order."""
    leaves, structure = tree_flatten(node)
    return structure._unflatten_plainly(leaves)


# -- laws ---------------------------------------------------------------------------------------


@given(trees)
def test_flatten_lists_the_leaves_and_unflatten_makes_the_tree_again(node):
    # Four times: the structure's generated functions take over after a few uses.
    for _ in range(4):
        leaves, structure = tree_flatten(node)
        assert same(leaves, reference_leaves(node))
        assert structure.num_leaves == len(leaves)
        again = tree_unflatten(structure, leaves)
        assert again == node and same(sorted_dicts(again), again)
        assert same(tree_unflatten(structure, iter(leaves)), again)
        assert tree_structure(again) == structure
        assert hash(tree_structure(again)) == hash(structure)


@given(trees, trees)
def test_generated_functions_agree_with_the_plain_ones(node, other):
    leaves, structure = tree_flatten(node)
    assert same(structure.matcher()(node), leaves)
    assert same(structure.reader()(node), leaves)
    assert same(structure.builder()(leaves), structure._unflatten_plainly(leaves))
    plain: list = []
    same_structure = treedef._flatten_into(other, plain, None) == structure
    found = structure.matcher()(other)
    if found is not None:
        assert same_structure and same(found, plain)
        assert same(structure.builder()(found), sorted_dicts(other))


@given(trees, trees)
def test_structures_are_equal_exactly_when_they_print_alike_or_have_equal_data(one, two):
    first, second = tree_structure(one), tree_structure(two)
    if repr(first) == repr(second):
        assert first == second and hash(first) == hash(second)
    if first == second:
        assert list(tree.equality_errors(one, two)) == []
        assert tree.prefix_errors(one, two) == []
    else:
        assert list(tree.equality_errors(one, two))
        assert tree.difference_text("one", one, "two", two)


@given(trees)
def test_paths_lead_to_the_leaves(node):
    pairs, structure = tree.tree_flatten_with_path(node)
    assert structure == tree_structure(node)
    assert same([leaf for _, leaf in pairs], tree.tree_leaves(node))
    assert len({path for path, _ in pairs}) == len(pairs)
    for path, leaf in pairs:
        at = node
        for key in path:
            if isinstance(key, tu.GetAttrKey):
                at = getattr(at, key.name)
            elif isinstance(key, tu.FlattenedIndexKey):
                at = at.value
            else:
                at = at[key.idx if isinstance(key, tu.SequenceKey) else key.key]
        assert same(at, leaf)


@given(trees)
def test_map_is_a_functor(node):
    assert tree.tree_map(lambda leaf: leaf, node) == node
    twice = tree.tree_map(lambda leaf: (leaf,), tree.tree_map(lambda leaf: [leaf], node))
    assert twice == tree.tree_map(lambda leaf: [(leaf,)], node)
    pairs = tree.tree_map(lambda a, b: (a, b), node, node)
    assert tree.tree_leaves(pairs) == [x for leaf in tree.tree_leaves(node) for x in (leaf, leaf)]
    paths = tree.tree_map_with_path(lambda path, a, b: tree.keystr(path), node, node)
    assert tree.tree_leaves(paths) == [
        tree.keystr(path) for path, _ in tree.tree_leaves_with_path(node)
    ]


@given(trees)
def test_flatten_up_to_its_own_structure_and_to_the_root(node):
    leaves, structure = tree_flatten(node)
    assert same(structure.flatten_up_to(node), leaves)
    assert tree_structure(0).flatten_up_to(node) == [node]
    wider = tree.tree_map(lambda leaf: [leaf, {"k": leaf}], node)
    assert same(structure.flatten_up_to(wider), [[leaf, {"k": leaf}] for leaf in leaves])


@given(trees, trees)
def test_compose_puts_a_structure_in_place_of_every_leaf(outer, inner):
    composed = tree_structure(outer).compose(tree_structure(inner))
    assert composed == tree_structure(tree.tree_map(lambda _: inner, outer))
    assert (
        composed.num_leaves == tree_structure(outer).num_leaves * tree_structure(inner).num_leaves
    )


@given(trees)
def test_broadcast_of_a_prefix(node):
    structure = tree_structure(node)
    assert tree.broadcast_prefix(7, node) == [7] * structure.num_leaves
    leaves = list(range(structure.num_leaves))
    assert tree.broadcast_prefix(structure.unflatten(leaves), node) == leaves
    assert tree.flatten_axes("in_axes", structure, None) == [None] * structure.num_leaves
    wider = tree.tree_map(lambda leaf: (leaf, leaf), node)
    assert tree.broadcast_prefix(structure.unflatten(leaves), wider) == [
        i for i in leaves for _ in range(2)
    ]
    assert tree.tree_broadcast(0, node) == tree.tree_map(lambda _: 0, node)


@given(trees)
def test_children_and_node_data_make_the_structure_again(node):
    structure = tree_structure(node)
    again = PyTreeDef.from_node_data_and_children(structure.node_data(), structure.children())
    assert again == structure
    assert structure.num_nodes == 1 + sum(c.num_nodes for c in structure.children())


@given(trees)
def test_structures_survive_pickling_and_copying(node):
    structure = tree_structure(node)
    for again in (pickle.loads(pickle.dumps(structure)), copy.deepcopy(structure)):
        assert again == structure and repr(again) == repr(structure)


# -- nodes and leaves ---------------------------------------------------------------------------


class Subclassed(dict):
    pass


@pytest.mark.parametrize(
    "leaf",
    [
        1,
        "text",
        1.5,
        np.arange(3),
        {1, 2},
        collections.deque([1, 2]),
        Subclassed(a=1),
        object(),
        range(3),
        b"",
        Ellipsis,
    ],
    ids=lambda leaf: type(leaf).__name__,
)
def test_unregistered_types_are_leaves(leaf):
    leaves, structure = tree_flatten(leaf)
    assert len(leaves) == 1 and leaves[0] is leaf and tu.treedef_is_leaf(structure)
    assert not tu.is_tree_node(type(leaf)) and tu.all_leaves([leaf])


GOLDEN = [
    (1, "*"),
    (None, "None"),
    ((), "()"),
    ((1,), "(*,)"),
    ([1, (2, 3)], "[*, (*, *)]"),
    ({}, "{}"),
    ({"b": [1, 2], "a": 1}, "{'a': *, 'b': [*, *]}"),
    (Point(1, [2]), "CustomNode(namedtuple[Point], [*, [*]])"),
    (OrderedDict(b=1, a=2), "CustomNode(OrderedDict[('b', 'a')], [*, *])"),
    (defaultdict(list, b=1, a=2), "CustomNode(defaultdict[(<class 'list'>, ('a', 'b'))], [*, *])"),
    (Box(1, {"k": 2}), "CustomNode(Box[{'k': 2}], [*])"),
    (Layer(1, None), "CustomNode(Layer[('layer',)], [*, None])"),
    (tu.Partial(max, 1, key=2), "CustomNode(Partial[<built-in function max>], [(*,), {'key': *}])"),
]


@pytest.mark.parametrize("node, text", GOLDEN, ids=[text for _, text in GOLDEN])
def test_structures_print(node, text):
    assert repr(tree_structure(node)) == f"PyTreeDef({text})"


def test_plain_dictionaries_come_back_sorted_and_ordered_ones_in_their_order():
    for _ in range(5):
        assert list(tree.tree_map(abs, {"b": 1, "a": 2})) == ["a", "b"]
        assert list(tree.tree_map(abs, OrderedDict(b=1, a=2))) == ["b", "a"]
        made = tree.tree_map(abs, defaultdict(list, b=1, a=2))
        assert made.default_factory is list and list(made) == ["a", "b"]
    assert tree_structure({"a": 1, "b": 2}) == tree_structure({"b": 1, "a": 2})
    assert tree_structure(OrderedDict(a=1, b=2)) != tree_structure(OrderedDict(b=1, a=2))
    assert tree_structure({"a": 1}) != tree_structure(OrderedDict(a=1))


def test_keys_and_static_data_keep_their_types():
    for _ in range(5):
        for key in (1, True, 1.0, np.int64(1)):
            (found,) = tree.tree_map(lambda leaf: leaf, {key: 0})
            assert type(found) is type(key)
        for label in (1, True, 1.0, (1, 2), (1.0, 2), 0.0, -0.0, float("nan")):
            assert repr(tree.tree_map(lambda leaf: leaf, Box(0, label)).label) == repr(label)
            assert repr(tree.tree_map(lambda leaf: leaf, Layer(0, 0, label)).name) == repr(label)
    assert tree_structure({1: 0}) == tree_structure({True: 0})


def test_static_data_that_only_compare_equal_are_not_interchanged():
    class Config:
        def __init__(self, note):
            self.note = note

        def __eq__(self, other):
            return isinstance(other, Config)

        def __hash__(self):
            return 1

    one, two = Config("one"), Config("two")
    for _ in range(5):
        assert tree.tree_map(abs, [Box(1, one)])[0].label is one
        assert tree.tree_map(abs, [Box(1, two)])[0].label is two
    assert tree_structure(Box(1, one)) == tree_structure(Box(2, two))
    assert tree_structure([Box(1, one)]).matcher()([Box(1, two)]) is None


def test_structures_do_not_keep_closures_alive():
    class Big:
        def __call__(self):
            return None

    def flatten_some():
        big = Big()
        for _ in range(5):
            tree_flatten([tu.Partial(lambda: big, 1.0)])
            tree_flatten({"f": Box(1, big)})
        return weakref.ref(big)

    alive = flatten_some()
    gc.collect()
    assert alive() is None


def test_a_type_registered_after_it_was_seen_as_a_leaf():
    class Late:
        def __init__(self, value):
            self.value = value

    nodes = {"a": [Late(1), Late(2)], "b": Late(3)}
    for _ in range(5):
        assert len(tree.tree_leaves(nodes)) == 3
    structure = tree_structure(nodes)
    tu.register_pytree_node(Late, lambda node: ((node.value, 0), None), lambda _, c: Late(c[0]))
    assert tree.tree_leaves(nodes) == [1, 0, 2, 0, 3, 0]
    assert tree_structure(nodes) != structure


def test_a_namedtuple_may_be_registered_with_its_own_functions():
    Own = collections.namedtuple("Own", ["value", "label"])
    for _ in range(5):
        assert tree.tree_leaves([(Own(1, "a"), 2), 3]) == [1, "a", 2, 3]
    tu.register_pytree_node(
        Own, lambda node: ((node.value,), node.label), lambda label, children: Own(*children, label)
    )
    assert tree.tree_leaves([(Own(1, "a"), 2), 3]) == [1, 2, 3]
    with pytest.raises(ValueError, match="already a pytree node"):
        tu.register_pytree_node(Own, lambda node: ((), None), lambda _, c: None)


def test_deep_and_wide_trees():
    deep: Any = 1.0
    for _ in range(150):
        deep = [deep, {"a": None}]
    wide = {f"k{i:05}": [i, (i,)] for i in range(3000)}
    for node, count in ((deep, 1), (wide, 6000)):
        for _ in range(5):
            leaves, structure = tree_flatten(node)
            assert len(leaves) == count and structure.unflatten(leaves) == node
        assert structure.matcher()(node) == leaves
        assert structure.matcher()([0]) is None


def test_forgetting_known_structures_changes_nothing():
    node = {"a": (1, 2), "b": [Point(3, None)]}
    before = tree_structure(node)
    for _ in range(5):
        tree_flatten(node)
    treedef.forget_structures()
    after = tree_structure(node)
    assert before == after and hash(before) == hash(after) and {before: 1}[after] == 1


def test_the_tables_of_structures_are_bounded():
    for i in range(treedef.MAX_KNOWN + 100):
        for _ in range(4):
            tree_flatten({f"key{i}": [0]})
    assert len(treedef._interned) <= treedef.MAX_KNOWN
    assert len(treedef._candidates) <= treedef.MAX_KNOWN


class _NotGiven:
    """An empty class: its instance is only told from other objects."""


class _Noted:
    __slots__ = ("about",)


class _Held:
    def __init__(self, x, note):
        self.x, self.note = x, note


tu.register_pytree_node(
    _Held, lambda held: ((held.x,), (held.note, held.note)), lambda note, xs: _Held(xs[0], note[0])
)


def test_structures_with_a_marker_in_their_static_data_are_known():
    for marker in (_NotGiven(), object()):
        structure = tree_structure([_Held(1, marker)])
        assert tree_structure([_Held(2, marker)]) is structure
        assert tree_structure([_Held(2, type(marker)())]) != structure
        for x in range(treedef.USES_BEFORE_GENERATING + 2):
            assert tree_flatten([_Held(x, marker)]) == ([x], structure)
        assert treedef._candidates[list, _Held][0] is structure


def test_objects_that_hold_something_are_not_kept_by_known_structures():
    with_state, with_slot, callback = _NotGiven(), _Noted(), lambda: None
    with_state.about = with_slot.about = [0]
    for note in (with_state, with_slot, callback):
        first, second = (tree_structure(_Held(1, note)) for _ in range(2))
        assert first == second and first is not second


def test_what_is_below_a_node_with_a_closure_is_known():
    """As below a training state that carries functions: no walk over the parameters each time."""
    def apply():
        return None
    below = {"a": (0, [1]), "b": (None, 2)}
    state = _Held(below, apply)
    leaves, structure = tree_flatten(state)
    for _ in range(treedef.USES_BEFORE_GENERATING + 2):
        assert tree_flatten(state) == (leaves, structure)
        assert tree_flatten([state, 3]) == ([*leaves, 3], tree_structure([state, 3]))
        again = tree_unflatten(structure, leaves)
        assert again.x == below and again.note is apply
    assert tree_structure(state) is not structure
    assert treedef._candidates["a", "b"][0] is tree_structure(below) is structure.children()[0]
    assert structure.children()[0]._build is not None


def test_many_structures_of_one_outer_shape():
    nodes = [({"x": i} if i % 2 else {f"k{i}": i}, [i] * (i % 7)) for i in range(40)]
    for _ in range(6):
        for node in nodes:
            leaves, structure = tree_flatten(node)
            assert leaves == reference_leaves(node) and structure.unflatten(leaves) == node
    assert all(len(known) <= treedef.MAX_CANDIDATES for known in treedef._candidates.values())


def test_the_reader_leaves_containers_among_the_leaves():
    structure = tree_structure({"a": 1, "b": (2, 3)})
    assert structure.reader()({"a": [1], "b": (2, 3)}) == [[1], 2, 3]
    assert structure.matcher()({"a": [1], "b": (2, 3)}) is None
    assert structure.reader()({"a": 1, "c": (2, 3)}) is None


# -- registration -------------------------------------------------------------------------------


def test_register_pytree_node_class_and_its_data():
    structure = tree_structure(Box(1, "label"))
    assert structure.node_data() == (Box, "label")
    assert tree.tree_map(lambda leaf: leaf + 1, [Box(1, "label")]) == [Box(2, "label")]
    assert structure != tree_structure(Box(1, "other"))


def test_register_with_keys():
    class Named:
        def __init__(self, first, second):
            self.first, self.second = first, second

    tu.register_pytree_with_keys(
        Named,
        lambda node: ([(tu.GetAttrKey("first"), node.first), ("second", node.second)], None),
        lambda _, children: Named(*children),
    )

    @tu.register_pytree_with_keys_class
    class AlsoNamed(Named):
        def tree_flatten_with_keys(self):
            return [(tu.DictKey("f"), self.first), (tu.DictKey("s"), self.second)], None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    paths = [path for path, _ in tree.tree_leaves_with_path([Named(1, 2), AlsoNamed(3, 4)])]
    assert [tree.keystr(path) for path in paths] == [
        "[0].first",
        "[0]second",
        "[1]['f']",
        "[1]['s']",
    ]
    assert tree.tree_leaves([Named(1, 2), AlsoNamed(3, 4)]) == [1, 2, 3, 4]
    doubled = tree.tree_map(lambda leaf: leaf * 2, AlsoNamed(3, 4))
    assert (type(doubled), doubled.first, doubled.second) == (AlsoNamed, 6, 8)


def test_register_dataclass_as_call_as_decorator_and_with_plain_classes():
    @functools.partial(tu.register_dataclass, data_fields=["a"], meta_fields=["b"])
    @dataclasses.dataclass(frozen=True)
    class One:
        a: Any
        b: str

    @tu.register_dataclass
    @dataclasses.dataclass
    class Two:
        a: Any
        b: str = numjet.tree.static(default="b")
        c: list = dataclasses.field(init=False, default_factory=list)

    class Three:
        def __init__(self, a, b):
            self.a, self.b = a, b

    assert tu.register_dataclass(Three, ["a"], ["b"]) is Three
    for _ in range(5):
        for cls in (One, Two, Three):
            made = tree.tree_map(lambda leaf: leaf + 1, cls(1, "x"))
            assert (type(made), made.a, made.b) == (cls, 2, "x")
            assert tree.tree_leaves_with_path(cls(1, "x")) == [((tu.GetAttrKey("a"),), 1)]


@pytest.mark.parametrize(
    "data, meta, drop, error, text",
    [
        (["x"], None, (), TypeError, "must both be specified"),
        (["x"], [], (), ValueError, r"Missing fields: {'y'}.*drop_fields"),
        (["x", "y", "q"], [], (), ValueError, "Unexpected fields: {'q'}"),
        (["x", "y"], ["y"], (), ValueError, "not overlap. Overlapping fields: {'y'}"),
    ],
)
def test_register_dataclass_refuses(data, meta, drop, error, text):
    @dataclasses.dataclass
    class Pair:
        x: int
        y: int = 0

    with pytest.raises(error, match=text):
        tu.register_dataclass(Pair, data, meta, drop)
    assert not tu.is_tree_node(Pair)
    tu.register_dataclass(Pair, ["x"], [], drop_fields=["y"])
    assert tree.tree_leaves(Pair(1, 2)) == [1]


def test_register_dataclass_refuses_other_classes_without_fields():
    with pytest.raises(TypeError, match="is not a dataclass"):
        tu.register_dataclass(int)


def test_register_refuses_what_is_no_class_or_no_function():
    with pytest.raises(TypeError, match="expected a class, got 3"):
        tu.register_pytree_node(3, len, len)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be functions"):
        tu.register_pytree_node(Subclassed, None, None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="already a pytree node"):
        tu.register_pytree_node(list, lambda node: (node, None), lambda _, c: list(c))


def test_register_static():
    @tu.register_static
    @dataclasses.dataclass(frozen=True)
    class Setting:
        value: int

    leaves, structure = tree_flatten({"a": Setting(1), "b": 2})
    assert leaves == [2] and structure.unflatten([5]) == {"a": Setting(1), "b": 5}
    assert structure == tree_structure({"a": Setting(1), "b": 3})
    assert structure != tree_structure({"a": Setting(2), "b": 3})


def test_partial_is_a_tree_of_its_arguments():
    add = tu.Partial(operator.add, 1)
    assert add(2) == 3
    assert tree.tree_map(lambda leaf: leaf * 10, add)(2) == 12
    nested = tu.Partial(functools.partial(operator.sub, 5), 2)
    assert nested() == 3 and tree.tree_leaves(nested) == [2]
    assert tree.tree_map(lambda leaf: leaf + 1, nested)() == 2
    assert tree_structure(nested) == tree_structure(tu.Partial(nested.func, 9))
    keywords = tu.Partial(dict, a=1, b=[2, 3])
    assert tree.tree_leaves(keywords) == [1, 2, 3] and keywords() == {"a": 1, "b": [2, 3]}


# -- functions ----------------------------------------------------------------------------------


def test_is_leaf_stops_the_descent():
    node = [(1, 2), {"a": (3,)}, None]
    assert tree.tree_leaves(node, is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2), (3,)]
    assert tree.tree_leaves(node, is_leaf=lambda x: x is None) == [1, 2, 3, None]
    assert tree.tree_map(lambda a, b: b, [1, None], [2, None], is_leaf=lambda x: x is None) == [
        2,
        None,
    ]
    seen = tree.tree_leaves_with_path(node, lambda path, x: len(path) == 1, is_leaf_takes_path=True)
    assert [leaf for _, leaf in seen] == node
    assert tree.tree_map_with_path(
        lambda path, x: len(path), node, is_leaf=lambda x: x is None
    ) == [(2, 2), {"a": (3,)}, 1]


def test_reduce_all_transpose_and_build():
    node = {"a": 1, "b": [2, 3]}
    assert tree.tree_reduce(operator.add, node) == 6
    assert tree.tree_reduce(operator.add, node, 10) == 16
    assert tree.tree_reduce(lambda a, b: a + [b], node, []) == [1, 2, 3]
    assert tree.tree_reduce_associative(operator.add, node) == 6
    assert tree.tree_reduce_associative(operator.add, list("abcde")) == "abcde"
    assert tree.tree_reduce_associative(operator.add, [], identity=0) == 0
    assert tree.tree_all([True, 1]) and tree.tree_all([]) and not tree.tree_all([1, [0]])
    outer, inner = tree_structure([0, 0]), tree_structure({"x": 0, "y": 0})
    rows = [{"x": 1, "y": 2}, {"x": 3, "y": 4}]
    assert tree.tree_transpose(outer, inner, rows) == {"x": [1, 3], "y": [2, 4]}
    assert tree.tree_transpose(outer, None, rows) == {"x": [1, 3], "y": [2, 4]}
    assert tree.build_tree(tree_structure(node), [4, (5, 6)]) == {"a": 4, "b": [5, 6]}
    assert tu.treedef_tuple([outer, inner]) == tree_structure(([0, 0], {"x": 0, "y": 0}))
    assert tu.treedef_children(outer) == [tree_structure(0)] * 2
    assert tu.flatten_one_level({"b": [1], "a": 2}) == ((2, [1]), ("a", "b"))
    assert tu.flatten_one_level([1, [2]]) == ([1, [2]], None)
    assert tu.flatten_one_level_with_keys([7]) == ([(tu.SequenceKey(0), 7)], None)


def test_keys_print_compare_and_pickle():
    path = (tu.DictKey("a"), tu.SequenceKey(1), tu.GetAttrKey("z"), tu.FlattenedIndexKey(4))
    assert tree.keystr(path) == "['a'][1].z[<flat index 4>]"
    assert tree.keystr(path, simple=True, separator="/") == "a/1/z/4"
    assert repr(path) == (
        "(DictKey(key='a'), SequenceKey(idx=1), GetAttrKey(name='z'), FlattenedIndexKey(key=4))"
    )
    assert pickle.loads(pickle.dumps(path)) == path
    assert hash(path) == hash(pickle.loads(pickle.dumps(path)))
    for make, wrong in (
        (tu.GetAttrKey, 3), (tu.GetAttrKey, None), (tu.SequenceKey, "a"), (tu.SequenceKey, 1.5),
        (tu.FlattenedIndexKey, "a"),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            make(wrong)
    assert tu.SequenceKey(1) != tu.FlattenedIndexKey(1)
    match path[0]:
        case tu.DictKey(key):
            assert key == "a"


def test_public_namespaces_hold_the_same_functions():
    for name in numjet.tree.__all__:
        if name != "static":
            short, long = getattr(numjet.tree, name), getattr(tu, f"tree_{name}")
            assert short.__code__ is long.__code__ and short.__name__ == name
            assert long.__name__ == f"tree_{name}"
    assert all(hasattr(tu, name) for name in tu.__all__)


def test_structures_seen_a_few_times_are_flattened_by_generated_code():
    node = {"seen": [1, {"often": (2, 3)}]}
    for _ in range(treedef.USES_BEFORE_GENERATING):
        structure = tree_structure(node)
    assert treedef._candidates[("seen",)][0] is structure
    assert structure._match(node) == [1, 2, 3]


@pytest.mark.parametrize("moment", range(1, 12))
def test_structures_are_never_seen_half_remembered(moment):
    # As another thread would at that moment, a type flattens a tree when a table asks for its hash.
    class Watched(type):
        left = 0

        def __hash__(cls):
            Watched.left -= 1
            if Watched.left == 0:
                assert tree_flatten(value)[0] == [1, 2]
            return type.__hash__(cls)

    class Pair(metaclass=Watched):
        pass

    tu.register_pytree_node(Pair, lambda x: ((1, 2), None), lambda _, x: Pair())
    value = Pair()
    kept = [tree_flatten(value)[1] for _ in range(treedef.USES_BEFORE_GENERATING - 1)]
    Watched.left = moment
    assert tree_flatten(value) == ([1, 2], kept[0])
    assert treedef._candidates[Pair] == [kept[0]]


def test_what_stands_at_a_leaf_is_not_opened():
    class Node:
        pass

    tree.register_pytree_node(Node, lambda node: ((node.child,), None), lambda _, c: c[0])
    node = Node()
    node.child = node  # below itself
    pairs = tree.tree_map(lambda a, b: (a, b), {"x": 1}, {"x": node})
    assert pairs["x"] == (1, node)
