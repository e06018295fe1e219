"""Records: fields, defaults, frozen ones, slots, equality, copies with changes; named tuples."""

from __future__ import annotations

import copy
import inspect
import pickle
import typing

import pytest

from numjet import tree_util as tree
from numjet.base.record import NamedTuple, field, record, replace


@record(frozen=True, slots=True)
class Point:
    """Two numbers."""

    x: int
    y: int = 2

    @property
    def sum(self) -> int:
        return self.x + self.y


@record(eq=False)
class Bag:
    """Things, of which each object has its own list."""

    name: str
    things: list[int] = field(default_factory=list)


@record(eq=False)
class Box(Bag):
    """A bag with a side."""

    side: float = 1.0

    def __post_init__(self) -> None:
        self.side *= 2

    def __repr__(self) -> str:
        return "a box"


def test_fields_by_position_name_and_default() -> None:
    assert (Point(1).x, Point(1).y, Point(1).sum) == (1, 2, 3)
    assert Point(y=5, x=1).y == 5
    with pytest.raises(TypeError):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Point(1, 2, 3)  # type: ignore[call-arg]


def test_frozen_ones_are_keys_and_do_not_change() -> None:
    assert Point(1) == Point(1, 2) != Point(1, 3)
    assert Point(1) != (1, 2)
    assert {Point(1): "a"}[Point(1, 2)] == "a"
    with pytest.raises(AttributeError, match="Point.x is set once"):
        Point(1).x = 3  # type: ignore[misc]
    with pytest.raises(AttributeError, match="Point.x is set once"):
        del Point(1).x
    assert not hasattr(Point(1), "__dict__")


def test_defaults_are_made_anew_and_fields_inherited() -> None:
    one, other = Bag("a"), Bag("a")
    one.things.append(1)
    assert other.things == [] and Bag("b", [3]).things == [3]
    assert one != other and len({one, other}) == 2  # by identity
    box = Box("c", side=4.0)
    assert (box.name, box.things, box.side) == ("c", [], 8.0)
    assert box.things is not Box("c").things


def test_texts_and_copies() -> None:
    assert repr(Point(1)) == "Point(x=1, y=2)" and repr(Box("c")) == "a box"
    assert replace(Point(1), y=7) == Point(1, 7)
    bag = Bag("a", [1])
    copy = replace(bag, name="b")
    assert copy.name == "b" and copy.things is bag.things and type(copy) is Bag
    with pytest.raises(TypeError):
        replace(bag, size=3)


def test_patterns_name_the_fields() -> None:
    match Point(3, 4):
        case Point(x, y):
            assert (x, y) == (3, 4)


def test_records_that_may_change_are_no_keys() -> None:
    @record()
    class Pair:
        a: int
        b: int

    assert Pair(1, 2) == Pair(1, 2)
    with pytest.raises(TypeError):
        hash(Pair(1, 2))


class Pair(NamedTuple):
    """Two fields and what is made of them."""

    left: int
    right: str = "r"
    _later = 3  # no field

    @property
    def both(self) -> str:
        return f"{self.left}{self.right}"

    def __bool__(self) -> bool:
        return self.left > 0


class Same(typing.NamedTuple):
    left: int
    right: str
Same.__new__.__defaults__ = ("r",)


def test_named_tuples_are_those_of_typing() -> None:
    x, same = Pair(1), Same(1)
    assert x == same == (1, "r") and isinstance(x, tuple) and Pair.__bases__ == (tuple,)
    assert (x.left, x.right, x.both, bool(x), bool(Pair(0))) == (1, "r", "1r", True, False)
    assert Pair._fields == Same._fields == Pair.__match_args__
    assert Pair._field_defaults == {"right": "r"}
    assert Pair._make([3, "b"]) == Pair(right="b", left=3) == Pair(3, "b")
    assert x._replace(left=5) == (5, "r") and x._asdict() == same._asdict()
    assert repr(x) == repr(same).replace("Same", "Pair")
    assert str(inspect.signature(Pair)) == "(left, right='r')"
    assert pickle.loads(pickle.dumps(x)) == x == copy.deepcopy(x)
    assert type(pickle.loads(pickle.dumps(x))) is Pair
    match x:
        case Pair(left, right):
            assert (left, right) == (1, "r")
    with pytest.raises(AttributeError):
        x.left = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        x.other = 2  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="other"):
        x._replace(other=1)
    for given in ((), (1, 2, 3)):
        with pytest.raises(TypeError, match=r"__new__\(\)"):
            Pair(*given)


def test_named_tuples_are_pytrees() -> None:
    made = tree.tree_map(lambda v: v + 1, {"a": Pair(1, 2.0)})  # type: ignore[arg-type]
    assert type(made["a"]) is Pair and made["a"] == (2, 3.0)


def test_any_number_of_fields() -> None:
    for n in range(11):
        names = [f"f{k}" for k in range(n)]
        own = {"__annotations__": dict.fromkeys(names, int), "__module__": __name__}
        last = {names[-1]: 7} if n else {}
        given = tuple(range(n - 1)) if n else ()
        made = record(frozen=True)(type("Made", (), {**own, **last}))(*given)
        assert [getattr(made, name) for name in names] == [*given, *last.values()]
        pair = type(NamedTuple)("Made", (NamedTuple,), {**own, **last})(*given)
        assert pair == (*given, *last.values()) and pair._asdict() == dict(zip(names, pair))
    with pytest.raises(TypeError, match="11 fields"):
        type(NamedTuple)("Made", (NamedTuple,), {"__annotations__": dict.fromkeys("abcdefghijk")})


def test_a_constructor_of_its_own_is_kept() -> None:
    @record(frozen=True)
    class Sorted:
        """Numbers in order."""

        numbers: tuple

        def __init__(self, *numbers: int) -> None:
            object.__setattr__(self, "numbers", tuple(sorted(numbers)))

    assert Sorted(3, 1) == Sorted(1, 3) and repr(Sorted(2, 1)).endswith("Sorted(numbers=(1, 2))")
